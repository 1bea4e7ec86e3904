//! The load program of `make demo`: attacks demo/udp_gate.c over loopback, limiter off, then on, and judges it.
//!
//! It starts the gate as a child process, finds the scale this machine can play, plays one fixed schedule of requests
//! from thousands of 127.x.y.z sources, follows the gate's log of decisions with an exact oracle, and ends with a
//! verdict and a picture. Everything stays on the loopback device and ends by itself after about half a minute.

mod calibrate;
mod gate;
mod load;
mod machine;
mod net;
mod oracle;
mod plot;
mod schedule;
mod stats;
mod table;
mod verdict;

use calibrate::{calibrate, Calibration, HELD};
use gate::{Gate, Setup};
use lexopt::{Arg::Long, ValueExt};
use load::{stopping, STOP, STOPPED};
use net::{clock_ns, Net};
use oracle::Audit;
use schedule::{attack, BIN_US, END_US, LIMIT_BURST, LIMIT_PER_SEC, SETTLE_US, SWITCH_US};
use stats::{times, Stats};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::Duration;
use table::{Now, Table};
use verdict::{busy, grouped, judge, speed, verdict, Line, Outcome, Verdict, Waits, Watched, OVERLOAD_BINS};

const USAGE: &str =
    "usage: tatcell-demo [--gate PROGRAM] [--port N] [--svg FILE] [--buffer BYTES] [--verdict]";
/// What `run` says when the phase without the limiter shows that the calibration did not hold.
const CHANGED: &str = "the machine's speed changed";
/// How often a demo is played whose verdict other programs have decided, before it ends without a verdict.
const PLAYS: u32 = 3;
/// Time after the last request in which answers still count.
const DRAIN_US: u64 = 700_000;

struct Options {
    gate: PathBuf,
    port: u16,
    svg: PathBuf,
    buffer: Option<u32>,
    /// Without the live table: for the tests.
    quiet: bool,
}

fn options() -> Result<Options, lexopt::Error> {
    let (gate, svg) = ("target/c/udp_gate".into(), "demo.svg".into());
    let mut options = Options { gate, port: 47474, svg, buffer: None, quiet: false };
    let mut words = lexopt::Parser::from_env();
    while let Some(word) = words.next()? {
        match word {
            Long("verdict") => (options.quiet, options.svg) = (true, "target/demo.svg".into()),
            Long("gate") => options.gate = words.value()?.into(),
            Long("port") => options.port = words.value()?.parse().map_err(|e| format!("--port: {e}"))?,
            Long("svg") => options.svg = words.value()?.into(),
            Long("buffer") => {
                options.buffer = Some(words.value()?.parse().map_err(|e| format!("--buffer: {e}"))?)
            }
            _ => return Err(word.unexpected()),
        }
    }
    Ok(options)
}

extern "C" fn on_signal(_: libc::c_int) {
    STOP.store(true, Relaxed);
}

fn catch_signals() {
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(number, on_signal as *const () as libc::sighandler_t) };
    }
}

/// Makes a file in memory for the gate's log; it leaves nothing behind. The gate inherits it under the same number.
fn memory_file() -> Result<File, String> {
    // SAFETY: the descriptor is new and owned by the File alone.
    unsafe {
        let fd = libc::memfd_create(c"tatcell-demo-log".as_ptr(), 0);
        if fd < 0 {
            return Err(format!("cannot make the log: {}", std::io::Error::last_os_error()));
        }
        Ok(File::from_raw_fd(fd))
    }
}

/// Plays the attack against a fresh gate, toggles its limiter on the way, and draws the table.
fn run(
    setup: &Setup,
    calibration: Calibration,
    last_try: bool,
    table: &mut Table,
) -> Result<Outcome, String> {
    let events = attack(calibration.scale);
    let log = memory_file()?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", log.as_raw_fd()));
    let mut gate = Gate::start(setup, calibration.rounds, Some(&path))?;
    let mut net = Net::open(setup.port).map_err(|e| format!("cannot open the load socket: {e}"))?;
    let start_ns = clock_ns() + 20_000_000;
    let stats = Mutex::new(Stats::new(start_ns, (END_US / BIN_US) as usize));
    let audit = Mutex::new(Audit::default());
    let (done, give_up) = (AtomicBool::new(false), AtomicBool::new(false));
    let (figures, watched) = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            load::sleep_precisely();
            load::play(&mut net, &events, start_ns, start_ns + (END_US + DRAIN_US) * 1_000, &stats, &give_up);
        });
        let follow = scope.spawn(|| loop {
            let last = done.load(Relaxed);
            audit
                .lock()
                .expect("audit lock")
                .follow(&log)
                .map_err(|e| format!("cannot read the log: {e}"))?;
            if last {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        });
        let watched = watch(&mut gate, start_ns, &stats, &audit, last_try, table);
        give_up.store(watched.is_err(), Relaxed);
        load.join().expect("load thread");
        let figures = watched.and_then(|seen| Ok((gate.finish()?, seen)));
        done.store(true, Relaxed);
        let followed: Result<(), String> = follow.join().expect("oracle thread");
        followed.and(figures)
    })?;
    let stats = stats.into_inner().expect("stats lock");
    let audit = audit.into_inner().expect("audit lock");
    Ok(Outcome { calibration, stats, audit, watched, figures })
}

/// Draws the table every half second, switches the limiter on at its time, and watches the gate from outside.
fn watch(
    gate: &mut Gate,
    start_ns: u64,
    stats: &Mutex<Stats>,
    audit: &Mutex<Audit>,
    last_try: bool,
    table: &mut Table,
) -> Result<Watched, String> {
    let mut before = Waits::default();
    let mut seen = Watched::default();
    for step in 1..=END_US / BIN_US {
        let due_ns = start_ns + step * BIN_US * 1_000;
        while clock_ns() < due_ns {
            std::thread::sleep(Duration::from_nanos((due_ns - clock_ns().min(due_ns)).min(100_000_000)));
            if stopping() {
                return Err(STOPPED.to_string());
            }
        }
        if step * BIN_US == SWITCH_US {
            let overload = stats.lock().expect("stats lock").overload(OVERLOAD_BINS);
            if !last_try && !HELD.contains(&overload) {
                return Err(CHANGED.to_string());
            }
            gate.toggle();
            before = waits(gate);
        }
        if let Some(why) = gate.ended() {
            return Err(why);
        }
        let resident_kib = gate.resident_kib().ok_or("cannot read the gate's memory from /proc")?;
        if step * BIN_US == SWITCH_US + SETTLE_US {
            seen.resident_kib.0 = resident_kib;
        }
        let (sent, answered, recent) = {
            let mut stats = stats.lock().expect("stats lock");
            let recent = std::mem::replace(&mut stats.recent, times());
            (stats.sent_total, stats.answered_total, recent)
        };
        let now = {
            let audit = audit.lock().expect("audit lock");
            Now {
                elapsed_us: (clock_ns() - start_ns) / 1_000,
                sent,
                answered,
                p99_ns: recent.value_at_quantile(0.99),
                resident_kib,
                decisions: audit.decisions,
                over_admitted: audit.over_admitted,
                wrongly_refused: audit.wrongly_refused,
            }
        };
        table.draw(&now);
    }
    seen.resident_kib.1 = gate.resident_kib().ok_or("cannot read the gate's memory from /proc")?;
    let after = waits(gate);
    seen.waits = Waits {
        gate_ns: after.gate_ns.saturating_sub(before.gate_ns),
        sender_ns: after.sender_ns.saturating_sub(before.sender_ns),
        stolen_ns: after.stolen_ns.saturating_sub(before.stolen_ns),
    };
    Ok(seen)
}

/// All waits so far.
fn waits(gate: &Gate) -> Waits {
    Waits {
        gate_ns: gate.run_and_wait_ns().map_or(0, |(_, wait)| wait),
        sender_ns: machine::own_wait_ns(),
        stolen_ns: machine::stolen_ns(),
    }
}

fn describe(c: &Calibration) {
    println!("gate: {}; holds about {:.0} datagrams", c.greeting, c.queue);
    match c.reason {
        None => println!("scale: 1, every rate as stated"),
        Some(why) => println!("scale: all rates times {:.2}, because {why}", c.scale),
    }
    println!(
        "work: {:.1} us an answer; the peak load of {} requests/s is {:.2} times the {}/s that the gate can answer",
        c.us_per_answer,
        grouped(c.peak_per_sec as u64),
        c.peak_per_sec / c.answers_per_sec,
        grouped(c.answers_per_sec as u64),
    );
    if c.core_share < 0.9 {
        println!("note: this machine is busy, the gate got only {:.0} % of a core", c.core_share * 100.0);
    }
}

fn failed(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(|line| !line.pass)
}

/// Plays until a play is judged, or `PLAYS` times. A decision that is wrong fails at once, however busy the machine is.
fn demo() -> Result<bool, String> {
    let options = options().map_err(|e| format!("{e}\n{USAGE}"))?;
    catch_signals();
    let setup = Setup { program: &options.gate, port: options.port, buffer: options.buffer };
    println!("tatcell demo: each source is held to {LIMIT_PER_SEC}/s, burst {LIMIT_BURST}; about 25 s; Ctrl-C ends it");
    println!(
        "{} s without the limiter, {} s with it; the first second of each is not judged",
        SWITCH_US / 1_000_000,
        (END_US - SWITCH_US) / 1_000_000
    );
    let mut tries = 1..=PLAYS;
    let (outcome, lines, busy) = loop {
        let last_try = tries.next() == Some(PLAYS);
        println!("calibrating ...");
        let calibration = calibrate(&setup)?;
        describe(&calibration);
        let outcome = match run(&setup, calibration, last_try, &mut Table::new(options.quiet)) {
            Err(why) if why == CHANGED => {
                println!("{CHANGED} since the calibration: once more");
                continue;
            }
            other => other?,
        };
        let (lines, busy) = (judge(&outcome), busy(&outcome));
        match (verdict(&lines, busy.is_some()), &busy) {
            (Verdict::NotJudged, Some(why)) if !last_try => {
                failed(&lines).for_each(|line| println!("{}", line.text));
                println!("not judged: the machine was busy ({why}): once more");
            }
            _ => break (outcome, lines, busy),
        }
    };
    let verdict = verdict(&lines, busy.is_some());
    println!();
    for line in &lines {
        match (line.pass, verdict) {
            (true, _) => println!("PASS {}", line.text),
            (false, Verdict::NotJudged) => println!("SKIP {}; not judged: the machine was busy", line.text),
            (false, _) => println!("FAIL {}", line.text),
        }
    }
    println!("     {}", speed(&outcome));
    let Waits { gate_ns, sender_ns, stolen_ns } = outcome.watched.waits;
    let [gate_s, sender_s, stolen_s] = [gate_ns, sender_ns, stolen_ns].map(|ns| ns as f64 / 1e9);
    println!(
        "     with the limiter on the gate waited {gate_s:.2} s for a core, the sender {sender_s:.2} s, and the host \
         took {stolen_s:.2} s"
    );
    if outcome.stats.send_errors > 0 {
        println!("note: {} sends failed", outcome.stats.send_errors);
    }
    match (verdict, busy) {
        (Verdict::NotJudged, Some(why)) => {
            println!("not judged: the machine was busy ({why}) in {PLAYS} plays")
        }
        (Verdict::Pass, Some(why)) => println!("note: the machine was busy ({why})"),
        _ => {}
    }
    plot::draw(&options.svg, &outcome)?;
    println!("     picture: {}", options.svg.display());
    Ok(verdict != Verdict::Fail)
}

fn main() -> ExitCode {
    match demo() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) if why == STOPPED => {
            println!("\nstopped, no verdict");
            ExitCode::from(130)
        }
        Err(why) => {
            eprintln!("tatcell-demo: {why}");
            ExitCode::from(2)
        }
    }
}
