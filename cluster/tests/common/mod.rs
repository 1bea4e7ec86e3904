//! A redis-server of the test's own on loopback, and numbers from a seed.
#![allow(dead_code, unsafe_code)] // each test uses a part; libc::kill

pub mod audit;
pub mod fleet;
pub mod load;
pub mod proxy;
pub mod tls;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A server that ends with its handle.
pub struct Server {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
    arguments: Vec<String>,
}

/// A port at which nobody listens, given out once by this process: of two servers that start at one port at the same
/// time, the second one's test would take the first for its own. It and the port 10000 above, at which a server of a
/// cluster listens, too, lie below those that the system gives to connections: a client that tries one of these before
/// its server listens can be connected to itself.
fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    for _ in 0..10_000 {
        // ORDERING: Relaxed; single counter, each number given once.
        let number = std::process::id().wrapping_mul(127).wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = 12_000 + (number % 10_000) as u16;
        if [port, port + 10_000].into_iter().all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return port;
        }
    }
    panic!("no port is free")
}

/// The program of the server: that of Redis, or of Valkey, which takes the same arguments.
pub fn program() -> String {
    std::env::var("TATCELL_STORE_PROGRAM").unwrap_or_else(|_| "redis-server".into())
}

/// Says in one line that this test is skipped, by its full name: that of its thread.
pub fn skip(why: &str) {
    println!("SKIP {}: {why}", std::thread::current().name().unwrap_or_default());
}

/// Whether a program is here; where it is not, says in one line that the test is skipped.
pub fn have_or_skip(program: &str, package: &str) -> bool {
    let here = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if here.is_err() {
        skip(&format!("no {program}; apt-get install {package}"));
    }
    here.is_ok()
}

/// Starts a server, or says in one line that the test is skipped.
pub fn server_or_skip(arguments: &[&str]) -> Option<Server> {
    have_or_skip(&program(), "redis-server").then(|| Server::start(arguments))
}

impl Server {
    pub fn start(arguments: &[&str]) -> Server {
        Server::start_at(|_, _| arguments.iter().map(|a| a.to_string()).collect())
    }

    /// Starts a server with arguments that depend on its port and its folder.
    pub fn start_at(arguments: impl Fn(u16, &Path) -> Vec<String>) -> Server {
        // The server ends where something else took the port meanwhile, and the next one is tried.
        for _ in 0..100 {
            let port = free_port();
            let folder = tempfile::tempdir().expect("a folder");
            let arguments = arguments(port, folder.path());
            let child = Self::spawn(port, folder.path(), &arguments);
            let mut server = Server { child, port, folder, arguments };
            if server.answers() {
                return server;
            }
        }
        panic!("the server does not start");
    }

    fn spawn(port: u16, folder: &Path, arguments: &[String]) -> Child {
        let mut command = Command::new(program());
        if !arguments.contains(&"--sentinel".to_owned()) {
            let usual = [
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                "--repl-diskless-sync-delay",
                "0",
            ];
            command.args(["--port", &port.to_string()]).args(usual);
        }
        let command = command.args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("a server")
    }

    fn answers(&mut self) -> bool {
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            if self.child.try_wait().expect("its status").is_some() {
                return false;
            }
            if self.says_anything().is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Some reply, or an end of the connection (TLS): it has come to its loop. One that only listens may end yet.
    fn says_anything(&self) -> std::io::Result<()> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        connection.write_all(b"PING\r\n")?;
        match connection.read(&mut [0; 64]) {
            Err(e) if e.kind() != std::io::ErrorKind::ConnectionReset => Err(e),
            _ => Ok(()),
        }
    }

    /// How clients name it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A call on a fresh connection. An error, too, where none can be made: a server that is promoted just now ends
    /// those that it has.
    pub fn say<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        redis::cmd(words[0]).arg(&words[1..]).query(&mut self.try_connect()?)
    }

    /// A line of INFO.
    pub fn info(&self, name: &str) -> Option<String> {
        let info: String = self.say(&["INFO", "all"]).ok()?;
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::to_owned)
    }

    /// A connection.
    pub fn connect(&self) -> redis::Connection {
        self.try_connect().expect("a connection")
    }

    fn try_connect(&self) -> redis::RedisResult<redis::Connection> {
        redis::Client::open(self.url())?.get_connection_with_timeout(Duration::from_secs(5))
    }

    /// A connection as this user.
    pub fn connect_as(&self, user: &str, password: &str) -> redis::RedisResult<redis::Connection> {
        let url = format!("redis://{user}:{password}@127.0.0.1:{}/", self.port);
        redis::Client::open(url)?.get_connection_with_timeout(Duration::from_secs(5))
    }

    /// Kills it; its data are lost.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, empty, at the same port.
    pub fn restart(&mut self) {
        self.kill();
        self.child = Self::spawn(self.port, self.folder.path(), &self.arguments);
        assert!(self.answers(), "redis-server does not start again");
    }

    fn signal(&self, signal: libc::c_int) {
        self::signal(&self.child, signal);
    }

    /// Stops it as it is: connections stay open and nothing answers.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal(libc::SIGCONT);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Signals a process that the test started and has not waited for.
pub fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: no memory is touched; the process is this one's child, so the number is not another's.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
}

/// Waits until something is so.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !so() {
        assert!(Instant::now() < end, "not in half a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the long forms of tests are asked for.
pub fn long() -> bool {
    std::env::var_os("TATCELL_LONG").is_some_and(|v| !v.is_empty())
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

    /// 1 to 10^digits, each size as likely as another.
    pub fn sized(&mut self, digits: u32) -> u64 {
        let digits = self.below(u64::from(digits) + 1) as u32;
        1 + self.below(10u64.pow(digits))
    }
}
