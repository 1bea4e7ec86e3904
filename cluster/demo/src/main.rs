//! `make demo`: four node processes and a redis-server on loopback share a limit. The load is a hot key, keys by Zipf's
//! law, and a flood of keys that come once. One node is killed; the store is stopped for two seconds and goes on. Every
//! admission is audited against R w + B. Then the same load runs with one round trip per decision, for comparison.

mod audit;
mod node;
mod plot;
mod record;
mod schedule;

use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use audit::{judge, Run};
use schedule::{BURST, END, GO_ON, KILL, NODES, RATE, STOP};
use tatcell_cluster::{Cluster, SharedLimit};

/// A process that ends with its handle.
struct Process(Child);

impl Process {
    fn signal(&self, signal: libc::c_int) {
        // SAFETY: a child of this process that was not waited for.
        unsafe { libc::kill(self.0.id() as libc::pid_t, signal) };
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL ends a stopped process too.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn store() -> Result<(Process, String), Box<dyn Error>> {
    for _ in 0..20 {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        let child = command.current_dir(std::env::temp_dir()).stdout(Stdio::null()).spawn();
        let mut server =
            Process(child.map_err(|e| format!("redis-server: {e}; apt-get install redis-server"))?);
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until && server.0.try_wait()?.is_none() {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok((server, format!("redis://127.0.0.1:{port}/")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Err("redis-server does not start".into())
}

/// Plays the schedule; with `trips` each decision is a round trip.
fn run(trips: bool) -> Result<Run, Box<dyn Error>> {
    let (server, url) = store()?;
    // Reads the clock that all nodes of this machine share.
    let clock = Cluster::builder(&url, 1).prefix("demo-parent").log(|_| {});
    let clock = clock.limit(SharedLimit::new("clock", 1, Duration::from_secs(1), 1).reserve(0, 0)).open()?;
    // The nodes start within the first half of a second, and so does the clock of the picture.
    let start = clock.now();
    let end = start + (END * 1e9) as u64;
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "--node",
            &url,
            &number.to_string(),
            &end.to_string(),
            if trips { "trips" } else { "leases" },
        ]);
        let mut child = Process(command.stdout(Stdio::piped()).spawn()?);
        let out = child.0.stdout.take().ok_or("no output")?;
        nodes.push((child, std::thread::spawn(move || record::read(out))));
    }
    let at = |seconds: f64| {
        let due = start + (seconds * 1e9) as u64;
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(clock.now())));
    };
    at(KILL);
    nodes[NODES - 1].0 .0.kill()?;
    at(STOP);
    server.signal(libc::SIGSTOP);
    at(GO_ON);
    server.signal(libc::SIGCONT);
    at(END);
    let (mut records, mut figures) = (Vec::new(), Vec::new());
    for (child, reader) in nodes {
        let (admitted, told) = reader.join().map_err(|_| "a reader")??;
        records.extend(admitted);
        figures.extend(told);
        drop(child);
    }
    drop(server);
    Ok(judge(records, figures, start))
}

/// Returns what must hold, in words, and whether the load of the machine affects it.
fn verdict(leases: &Run, trips: &Run) -> Vec<(bool, bool, String)> {
    let ([hot, others, half], [decided, asks, _, p99, longest]) = (leases.excess, leases.speed());
    let [trip_decided, _, trip_p50, trip_p99, trip_longest] = trips.speed();
    let (killed, stopped) = (leases.rate(KILL, STOP), leases.rate(STOP + 0.5, STOP + 1.2));
    let back = leases.rate(GO_ON + 1.0, END);
    let part = |rate: f64| 100.0 * rate / RATE as f64;
    vec![
        (
            false,
            hot <= 0.01,
            format!("bound kept: of {} admissions of the hot key no window holds more than R w + B, the fullest {:.1} \
                     units less", leases.hot.len(), -hot),
        ),
        (
            false,
            others <= 0.01 && leases.zipf > 1_000 && leases.flood > 1_000,
            format!("nor of any of {} other admissions and {} keys of the flood: {:.1} units less", leases.zipf,
                    leases.flood, -others),
        ),
        (
            false,
            half > 0.0,
            format!("the audit can fail: at half the rate the same admissions are {half:.0} units above"),
        ),
        (false, leases.figures.len() == NODES - 1, "three nodes lived to the end, one was killed".to_owned()),
        (
            true,
            killed > 0.5 * RATE as f64,
            format!("after a node was killed the others admit {:.0} % of R", part(killed)),
        ),
        (
            stopped < RATE as f64,
            stopped > 0.01 * RATE as f64 && stopped < RATE as f64 && p99 < 1e6,
            format!("store stopped: {:.1} % of R is admitted, from pieces and reserves; p99 of all decisions {:.1} us, \
                     the longest {:.1} ms", part(stopped), p99 / 1e3, longest / 1e6),
        ),
        (true, back > 0.5 * RATE as f64, format!("after it was back the nodes admit {:.0} % of R", part(back))),
        (
            true,
            decided > 3.0 * trip_decided && asks < 0.5,
            format!("{:.0} decisions a second a node and {asks:.4} asks a decision; one round trip a decision: {:.0} a \
                     second, p50 {:.0} us, p99 {:.0} us, the longest {:.0} ms", decided, trip_decided, trip_p50 / 1e3,
                    trip_p99 / 1e3, trip_longest / 1e6),
        ),
    ]
}

/// Returns whether other programs take more than half of the processor time, as Linux counts it over half a second.
fn is_busy() -> bool {
    // All processors: user, nice, system, idle, waiting for disks ..
    let times = || -> Option<(u64, u64)> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let all: Vec<u64> = text.lines().next()?.split(' ').filter_map(|n| n.parse().ok()).collect();
        Some((all.get(3)? + all.get(4)?, all.iter().sum()))
    };
    let before = times();
    std::thread::sleep(Duration::from_millis(500));
    let (Some((idle_before, before)), Some((idle, now))) = (before, times()) else { return false };
    2 * (idle - idle_before) < now - before
}

fn demo(svg: &str) -> Result<bool, Box<dyn Error>> {
    println!("tatcell demo: {NODES} nodes share {RATE}/s, burst {BURST}, for each key; {} s", 2.0 * END);
    println!("{KILL} s: a node is killed; {STOP} s: the store is stopped; {GO_ON} s: it goes on");
    let mut busy = is_busy();
    println!("leases and reserves ...");
    let leases = run(false)?;
    println!("one round trip a decision ...");
    let trips = run(true)?;
    busy |= is_busy();
    let lines = verdict(&leases, &trips);
    let mut good = true;
    for (by_load, holds, line) in &lines {
        match (holds, *by_load && busy) {
            (true, _) => println!("PASS {line}"),
            (false, true) => println!("SKIP {line}: not judged, the machine was busy with other programs"),
            (false, false) => println!("FAIL {line}"),
        }
        good &= *holds || *by_load && busy;
    }
    plot::draw(svg, &leases, &trips)?;
    println!("     picture: {svg}");
    Ok(good)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--node", url, number, end, kind] => match (number.parse(), end.parse()) {
            (Ok(number), Ok(end)) => node::run(url, number, end, *kind == "trips").map(|()| true),
            _ => Err("not a number".into()),
        },
        ["--svg", svg] => demo(svg),
        _ => Err("usage: tatcell-cluster-demo --svg FILE".into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("tatcell-cluster-demo: {why}");
            ExitCode::from(2)
        }
    }
}
