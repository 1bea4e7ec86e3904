//! Helpers for the tests of both servers: a server as a process on free ports, a redis-server, pages, and numbers from
//! a seed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;

pub const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with its handle.
pub struct Server {
    child: Child,
    lines: Mutex<Receiver<String>>,
    reader: Option<JoinHandle<Option<String>>>,
    pub address: String,
    pub metrics: String,
}

impl Server {
    /// Starts a program, and waits until it listens.
    pub fn start_program(program: &str, settings: &[&str]) -> Server {
        Server::start_command(Command::new(program), settings)
    }

    /// Starts a program that may open only this many files, and waits until it listens.
    pub fn start_with_files(files: u32, program: &str, settings: &[&str]) -> Server {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\""), program]);
        Server::start_command(shell, settings)
    }

    fn start_command(mut command: Command, settings: &[&str]) -> Server {
        let mut child = command
            .args(["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
            .args(settings)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server");
        let text = BufReader::new(child.stderr.take().expect("its lines"));
        let (say, lines) = channel();
        let reader = std::thread::spawn(move || {
            let mut panic = None;
            for line in text.lines().map_while(Result::ok) {
                if line.contains("panicked at ") {
                    panic = Some(line.clone());
                }
                drop(say.send(line));
            }
            panic
        });
        let (address, metrics) = (String::new(), String::new());
        let mut server = Server { child, lines: Mutex::new(lines), reader: Some(reader), address, metrics };
        server.metrics = server.line_with("metrics at ");
        server.address = server.line_with("listening at ");
        server
    }

    /// Returns what follows `text` in the next line that contains it.
    pub fn line_with(&self, text: &str) -> String {
        let lines = self.lines.lock().expect("one reader");
        loop {
            let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no line with {text:?}"));
            if let Some((_, rest)) = line.split_once(text) {
                return rest.to_owned();
            }
        }
    }

    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().expect("a port")
    }

    /// Returns the value of a metric.
    pub fn metric(&self, name: &str) -> u64 {
        let page = http(&self.metrics, "/metrics").1;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().expect("a number")
    }

    /// Returns the processor time that the server has taken; Linux counts it in hundredths of a second.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("its numbers");
        // After the name, which may have spaces: user and system time are the 14th and 15th.
        let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).map(|n| n.parse::<u64>().expect("a number")).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Returns its memory, in MiB.
    pub fn rss(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("its numbers");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: a process that this test started and has not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }

    /// Waits for its end; returns its last line.
    pub fn ended(mut self) -> String {
        let last = self.line_with("stopped; ");
        assert!(self.child.wait().expect("an end").success());
        last
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A release ends at a panic. Here only a thread or a task ends, and a test might not notice.
        let panic = self.reader.take().and_then(|reader| reader.join().ok()).flatten();
        assert!(std::thread::panicking() || panic.is_none(), "the server: {panic:?}");
    }
}

/// Returns the error of a program that does not start; it must fail at once.
pub fn refused(program: &str, settings: &[&str]) -> String {
    let output = Command::new(program).args(settings).output().expect("the program");
    assert!(!output.status.success(), "{settings:?} started");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// Sends SIGHUP and then SIGTERM to a program that has not read its settings yet: a new pipe without a writer keeps it
/// there, and its handlers must stand before. Returns whether it ended well.
pub fn hang_up_at_the_settings(program: &str, pipe: &std::path::Path) -> bool {
    assert!(Command::new("mkfifo").arg(pipe).status().is_ok_and(|status| status.success()));
    let mut child = Command::new(program).arg("--config").arg(pipe).spawn().expect("the program");
    let id = child.id().to_string();
    let send = |signal: &str| {
        let sent = Command::new("kill").args([signal, id.as_str()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{signal}");
    };
    // It sleeps in the opening of the pipe, and its thread for signals stands.
    let tasks = format!("/proc/{}/task", child.id());
    let begun = std::time::Instant::now();
    while std::fs::read_dir(&tasks).map_or(0, Iterator::count) < 2 {
        assert!(begun.elapsed() < PATIENCE, "no thread for signals");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    send("-HUP");
    std::thread::sleep(Duration::from_millis(200));
    send("-TERM");
    child.wait().expect("an end").success()
}

/// Returns status and body of a page.
pub fn http(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("the pages");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").expect("a request");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    let (head, body) = page.split_once("\r\n\r\n").expect("head and body");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

/// Prints one line that says that this test is skipped, with its full name, which is that of its thread.
pub fn skip(why: &str) {
    println!("SKIP {}: {why}", std::thread::current().name().unwrap_or_default());
}

/// A child that ends with its handle, and its port.
pub struct Redis(Child, pub u16);

impl Redis {
    /// Starts a redis-server, or prints one line that says that the test is skipped.
    pub fn start_or_skip(arguments: &[&str]) -> Option<Redis> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            skip("no redis-server; apt-get install redis-server");
            return None;
        }
        for _ in 0..20 {
            let port = free_port();
            let child = Command::new("redis-server")
                .args([
                    "--port",
                    &port.to_string(),
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                ])
                .args(arguments)
                .stdout(Stdio::null())
                .spawn()
                .expect("redis-server");
            let mut redis = Redis(child, port);
            if redis.answers() {
                return Some(redis);
            }
        }
        panic!("redis-server does not start");
    }

    fn answers(&mut self) -> bool {
        (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            TcpStream::connect(("127.0.0.1", self.1)).is_ok()
        }) && self.0.try_wait().expect("its status").is_none()
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.1)
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: a process that this test started and has not waited for.
        assert_eq!(unsafe { libc::kill(self.0.id() as libc::pid_t, signal) }, 0);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a port on which nobody listens, once per process, below the ports that the system gives to connections. If
/// two servers got one port, the test of the second would talk to the first.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    for _ in 0..10_000 {
        // ORDERING: Relaxed; single counter, each number given once.
        let number = std::process::id().wrapping_mul(127).wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = 22_000 + (number % 10_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free")
}

/// Returns a Python that has these modules, or prints one line that says that the test is skipped.
pub fn python_or_skip(modules: &str) -> Option<String> {
    let python = std::env::var("TATCELL_PYTHON").unwrap_or_else(|_| "python3".into());
    let imports =
        Command::new(&python).args(["-c", &format!("import {modules}")]).stderr(Stdio::null()).status();
    if imports.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    skip(&format!("no Python with {modules}; install them, and name it in TATCELL_PYTHON"));
    None
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.any()) * u128::from(n.max(1))) >> 64) as u64
    }
}
