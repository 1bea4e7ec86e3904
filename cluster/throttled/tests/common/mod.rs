//! The server as a process of its own, on a port that is free, and clients that speak bytes.
#![allow(dead_code, unsafe_code)] // each test uses a part; libc::kill

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;

pub const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with its handle.
pub struct Server {
    child: Child,
    lines: Receiver<String>,
    pub address: String,
    pub metrics: String,
}

impl Server {
    /// Starts it, and waits until it listens.
    pub fn start(settings: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tatcell-throttled"))
            .args(["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
            .args(settings)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server");
        let text = BufReader::new(child.stderr.take().expect("its lines"));
        let (say, lines) = channel();
        std::thread::spawn(move || text.lines().map_while(Result::ok).for_each(|line| drop(say.send(line))));
        let mut server = Server { child, lines, address: String::new(), metrics: String::new() };
        server.metrics = server.line_with("metrics at ");
        server.address = server.line_with("listening at ");
        server
    }

    /// What follows `text` in the next line that has it.
    pub fn line_with(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line");
            if let Some((_, rest)) = line.split_once(text) {
                return rest.to_owned();
            }
        }
    }

    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().expect("a port")
    }

    pub fn connect(&self) -> Client {
        Client::to(&self.address)
    }

    /// The value of a metric.
    pub fn metric(&self, name: &str) -> u64 {
        let page = http(&self.metrics, "/metrics").1;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().expect("a number")
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: a process that this test started and has not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }

    /// Waits for its end; returns what it said last.
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
    }
}

/// Status and body of a page.
pub fn http(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("the pages");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").expect("a request");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    let (head, body) = page.split_once("\r\n\r\n").expect("head and body");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Number(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Reply>),
}

pub fn numbers(values: [i64; 5]) -> Reply {
    Reply::Array(values.map(Reply::Number).to_vec())
}

/// A connection.
pub struct Client(pub BufReader<TcpStream>);

impl Client {
    pub fn to(address: &str) -> Client {
        let stream = TcpStream::connect(address).expect("the server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Client(BufReader::new(stream))
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("bytes sent");
    }

    pub fn say(&mut self, words: &str) -> Reply {
        self.send(&command(words));
        self.reply().expect("a reply")
    }

    /// The next reply; None where the server closed.
    pub fn reply(&mut self) -> Option<Reply> {
        let mut line = String::new();
        if self.0.read_line(&mut line).expect("a line") == 0 {
            return None;
        }
        let (kind, rest) = line.trim_end().split_at(1);
        let number = || rest.parse::<i64>().unwrap_or_else(|_| panic!("{line:?}"));
        Some(match kind {
            "+" => Reply::Simple(rest.into()),
            "-" => Reply::Error(rest.into()),
            ":" => Reply::Number(number()),
            "$" if number() < 0 => Reply::Null,
            "_" => Reply::Null,
            "$" => {
                let mut text = vec![0; number() as usize + 2];
                self.0.read_exact(&mut text).expect("a text");
                text.truncate(text.len() - 2);
                Reply::Bulk(text)
            }
            "*" => Reply::Array((0..number()).map(|_| self.reply().expect("an element")).collect()),
            "%" => Reply::Array((0..2 * number()).map(|_| self.reply().expect("an element")).collect()),
            _ => panic!("no reply: {line:?}"),
        })
    }
}

/// A command of these words, as an array.
pub fn command(words: &str) -> Vec<u8> {
    let words: Vec<&str> = words.split(' ').collect();
    let bulk = |word: &str| format!("${}\r\n{word}\r\n", word.len());
    format!("*{}\r\n{}", words.len(), words.iter().map(|word| bulk(word)).collect::<String>()).into_bytes()
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
