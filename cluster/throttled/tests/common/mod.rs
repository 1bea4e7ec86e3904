//! Clients that speak bytes.
#![allow(dead_code, unsafe_code)] // each test uses a part; libc::kill

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

#[path = "../../../door/testing/process.rs"]
mod process;
pub use process::*;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tatcell-throttled");

impl Server {
    pub fn start(settings: &[&str]) -> Server {
        Server::start_program(PROGRAM, settings)
    }

    pub fn connect(&self) -> Client {
        Client::to(&self.address)
    }
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

/// Judges a reply whose two times have run down since `begun`, in whole seconds, rounded up.
pub fn counted_down(reply: &Reply, wanted: [i64; 5], begun: Instant) {
    let passed = begun.elapsed().as_secs() as i64;
    let Reply::Array(list) = reply else { panic!("{reply:?}") };
    assert_eq!(list.len(), wanted.len(), "{list:?}");
    for (i, (found, want)) in list.iter().zip(wanted).enumerate() {
        let least = if i >= 3 && want > 0 { want - passed } else { want };
        let good = matches!(found, Reply::Number(n) if (least..=want).contains(n));
        assert!(good, "{list:?}, {passed} s after {wanted:?}");
    }
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
