//! A redis-server of the test's own on loopback, and numbers from a seed.
#![allow(dead_code, unsafe_code)] // each test uses a part; libc::kill

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that ends with its handle.
pub struct Server {
    child: Child,
    port: u16,
    folder: PathBuf,
    arguments: Vec<String>,
}

/// Starts a server, or says in one line that the test is skipped.
pub fn server_or_skip(test: &str, arguments: &[&str]) -> Option<Server> {
    if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("SKIP {test}: no redis-server; apt-get install redis-server");
        return None;
    }
    Some(Server::start(arguments))
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        // A port that was free a moment ago; the server says so where it is not any more, and the next one is tried.
        for _ in 0..100 {
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = free.local_addr().expect("its address").port();
            drop(free);
            // A server of a cluster also listens 10000 above.
            if port > 55_000 {
                continue;
            }
            let folder = std::env::temp_dir().join(format!("tatcell-cluster-{}-{port}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a folder");
            let arguments: Vec<String> = arguments.iter().map(|a| a.to_string()).collect();
            let child = Self::spawn(port, &folder, &arguments);
            let mut server = Server { child, port, folder, arguments };
            if server.answers() {
                return server;
            }
        }
        panic!("redis-server does not start");
    }

    fn spawn(port: u16, folder: &PathBuf, arguments: &[String]) -> Child {
        Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server")
    }

    fn answers(&mut self) -> bool {
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            if self.child.try_wait().expect("its status").is_some() {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// How clients name it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection.
    pub fn connect(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("a URL");
        client.get_connection_with_timeout(Duration::from_secs(5)).expect("a connection")
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
        self.child = Self::spawn(self.port, &self.folder, &self.arguments);
        assert!(self.answers(), "redis-server does not start again");
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: a process that this test started and has not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
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
        let _ = std::fs::remove_dir_all(&self.folder);
    }
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
