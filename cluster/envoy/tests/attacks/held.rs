//! Clients that make the server hold as much for each connection as it can. The bound is that of the page.

use std::collections::HashMap;
use std::io::Write;
use std::net::TcpStream;
use std::time::Instant;

use prost::Message;
use tatcell_ratelimit::api::{Descriptor, Entry, Override, RateLimitRequest};
use tatcell_ratelimit::fields::{DESCRIPTORS, ENTRIES};
use tatcell_ratelimit::grpc::{MAX_REQUEST, METHOD};
use tatcell_ratelimit::server::{HELD, STREAMS};

use super::attack::{attack, flood, page_says, unread_pages};
use super::common::{request, Client, Redis, Rules, Server};
use super::{closed, connect, frame, good, next_frame, open_stream, speak, PREFACE, RULES};

/// The MiB that a number of connections may take, and 16 for everything else.
fn held(count: usize) -> u64 {
    (count * HELD).div_ceil(1 << 20) as u64 + 16
}

const HEALTH: &str = "/grpc.health.v1.Health/Check";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// Flags of a frame.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The begin of a connection that lets this many bytes of each answer come.
fn preface(window: u32) -> Vec<u8> {
    let setting = [&4u16.to_be_bytes()[..], &window.to_be_bytes()].concat();
    [&PREFACE[..24], &frame(4, 0, 0, &setting)].concat()
}

/// Headers of a call of this path, with more fields.
fn call(number: u32, path: &str, more: &[u8], flags: u8) -> Vec<u8> {
    let mut block = vec![0x83, 0x86, 0x04, path.len() as u8];
    block.extend_from_slice(path.as_bytes());
    block.extend_from_slice(b"\x0f\x10\x10application/grpc");
    block.extend_from_slice(more);
    frame(1, flags | END_HEADERS, number, &block)
}

/// A message with its length, or with a longer one that it does not reach.
fn message(bytes: &[u8], length: usize) -> Vec<u8> {
    [&[0][..], &(length as u32).to_be_bytes(), bytes].concat()
}

/// A connection that sends no more than the server's windows let in.
struct Filler {
    stream: TcpStream,
    window: usize,
    windows: HashMap<u32, usize>,
}

impl Filler {
    fn new(server: &Server, window: u32) -> Filler {
        let mut stream = connect(server);
        stream.write_all(&preface(window)).expect("sent");
        Filler { stream, window: 65_535, windows: HashMap::new() }
    }

    fn open(&mut self, number: u32, path: &str) {
        self.stream.write_all(&call(number, path, &[], 0)).expect("sent");
        self.windows.insert(number, 65_535);
    }

    /// Sends bytes of a call, until the server has answered or reset it.
    fn send(&mut self, number: u32, bytes: &[u8], flags: u8) {
        let parts: Vec<&[u8]> = bytes.chunks(16_000).collect();
        for (at, part) in parts.iter().enumerate() {
            while self.windows.get(&number).is_some_and(|own| self.window.min(*own) < part.len()) {
                let (kind, stream, payload) = next_frame(&mut self.stream).expect("a frame");
                let value = payload.iter().fold(0, |sum: usize, byte| sum << 8 | usize::from(*byte));
                match (kind, stream) {
                    (8, 0) => self.window += value,
                    (8, stream) => drop(self.windows.get_mut(&stream).map(|own| *own += value)),
                    (1 | 3, stream) => drop(self.windows.remove(&stream)),
                    _ => {}
                }
            }
            let Some(own) = self.windows.get_mut(&number) else { return };
            (*own, self.window) = (*own - part.len(), self.window - part.len());
            let flags = if at + 1 == parts.len() { flags } else { 0 };
            self.stream.write_all(&frame(0, flags, number, part)).expect("sent");
        }
    }

    /// Waits until all that was sent has been read.
    fn settle(&mut self) {
        self.stream.write_all(&frame(6, 0, 0, &[0; 8])).expect("sent");
        while !matches!(next_frame(&mut self.stream).expect("a frame"), (6, ..)) {}
    }
}

/// Sends in each of the streams of some connections what `bytes` makes, and waits until the end.
fn fill(
    server: &Server,
    count: usize,
    end: Instant,
    window: u32,
    path: &str,
    bytes: &(dyn Fn() -> Vec<u8> + Sync),
    flags: u8,
) {
    let fill = || {
        let mut filler = Filler::new(server, window);
        for number in (0..STREAMS).map(|i| 2 * i + 1) {
            filler.open(number, path);
            filler.send(number, &bytes(), flags);
        }
        filler.settle();
        filler
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..count).map(|_| scope.spawn(fill)).collect();
        let _held: Vec<Filler> = all.into_iter().map(|one| one.join().expect("sent")).collect();
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
    });
}

#[test]
fn the_page_says_what_a_connection_holds() {
    let each = HELD.div_ceil(1 << 20);
    let all = (HELD * 1_000).div_ceil(1 << 30);
    let said = format!("holds at most {each} MiB ([attacks](#attacks)), so 1000 of them at most {all} GiB");
    page_says(include_str!("../../README.md"), &said);
    page_says(include_str!("../../README.md"), &format!("each with at most {STREAMS} requests at once"));
}

/// A limit whose name is as long as may be, so that answers are.
fn rules() -> String {
    let named = format!("rate_limit: {{unit: day, requests_per_unit: 9, name: {}}}", "n".repeat(256));
    format!("{RULES}  - key: long\n    {named}\n")
}

#[test]
fn attacks_that_fill_what_a_connection_may_hold() {
    let rules = Rules::new(&rules());
    let server = rules.start(&[]);
    let address = server.address.as_str();
    let run = |name: &str, most: u64, how: &dyn Fn(Instant)| attack(&server, name, most, good(&server), how);
    let length = 4 << 20;
    for path in [HEALTH, WATCH] {
        run(&format!("messages of 4 MiB for {path}, that lack a byte"), held(1), &|end| {
            fill(&server, 1, end, 65_535, path, &|| message(&vec![b'x'; length - 1], length), 0);
        });
    }
    // A whole message of which nothing but its size is wrong, and all but a byte of another one.
    let empty = [0x12, 0].repeat(MAX_REQUEST / 2);
    let more = message(&vec![b'x'; MAX_REQUEST - 1], MAX_REQUEST);
    let both = [message(&empty, MAX_REQUEST), more].concat();
    run("20 connections with messages of empty descriptors, and no end", held(20), &|end| {
        fill(&server, 20, end, 65_535, METHOD, &|| both.clone(), 0);
    });
    let asked = request("edge", &["long=x"; DESCRIPTORS]).encode_to_vec();
    for window in [0, 1] {
        run(
            &format!("20 connections that let {window} bytes of the longest answers come"),
            held(20),
            &|end| {
                fill(&server, 20, end, window, METHOD, &|| message(&asked, asked.len()), END_STREAM);
            },
        );
    }
    run("50 connections that watch the health, with all their requests", held(50), &|end| {
        fill(&server, 50, end, 65_535, WATCH, &|| message(&[], 0), END_STREAM);
    });
    // As many fields as fit, with the shortest names.
    let name = |i: usize| [b'a' + (i % 26) as u8, b'a' + (i / 26) as u8];
    let fields: Vec<u8> = (0..220).flat_map(|i| [&[0, 2][..], &name(i), &[0]].concat()).collect();
    run("20 connections with as many fields as fit, and no end", held(20), &|end| {
        let all: Vec<TcpStream> = (0..20).map(|_| connect(&server)).collect();
        for mut stream in &all {
            let calls = (0..STREAMS).flat_map(|i| call(2 * i + 1, METHOD, &fields, 0));
            stream.write_all(&[PREFACE.to_vec(), calls.collect()].concat()).expect("sent");
        }
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
    });
    run("20 connections with fields to be remembered, each in a piece of its own", held(20), &|end| {
        let all: Vec<TcpStream> = (0..20).map(|_| connect(&server)).collect();
        for mut stream in &all {
            stream.write_all(PREFACE).expect("sent");
            for i in 0..124 {
                // A short field that is remembered, and a long one that is not.
                let short = [&[0x40, 2][..], &name(i), &[0]].concat();
                let long = [&[0, 1, b'z', 0x7f, 0x81, 0x36][..], &[b'x'; 7_040]].concat();
                let call = call(2 * i as u32 + 1, "/nothing", &[short, long].concat(), END_STREAM);
                stream.write_all(&call).expect("sent");
            }
        }
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
    });
    run("paths that nobody serves, and no answer is read", held(50), &|end| {
        let calls = (0..5_000).flat_map(|i| call(2 * i + 1, "/nothing", &[], END_STREAM));
        flood(address, 50, end, &preface(0), &calls.collect::<Vec<u8>>());
    });
    run("parts of messages that are empty, without end", 16, &|end| {
        speak(&server, end, |round| match round {
            0 => open_stream(1),
            _ => frame(0, 0, 1, &[]).repeat(1_000),
        });
    });
    run("limits of descriptors, in every range", 40, &|end| {
        let client = Client::to(address);
        let mut number = 1u32;
        while Instant::now() < end {
            number = number.wrapping_mul(0x9e37_79b9).wrapping_add(1);
            let limits =
                (0..100).map(|i| Override { requests_per_unit: number >> (i % 32), unit: 1 + i % 7 });
            let mut asked = request("edge", &["user=x"; 100]);
            asked.descriptors.iter_mut().zip(limits).for_each(|(of, limit)| of.limit = Some(limit));
            assert!(client.ask(asked).is_ok());
        }
    });
    assert!(Client::to(address).left("edge", &["user=a"]).0);
}

#[test]
fn attacks_on_pages_take_the_memory_of_a_few() {
    let long = |i: usize| {
        format!("  - key: {i}{}\n    rate_limit: {{unit: day, requests_per_unit: 1}}\n", "k".repeat(4_000))
    };
    let rules = Rules::new(&format!("{RULES}{}", (0..300).map(long).collect::<String>()));
    let server = rules.start(&[]);
    // A page has 3.6 MB. Four are held. Each of two threads makes another one, whose buffer grows by half of itself.
    let page = super::common::http(&server.metrics, "/metrics").1.len() >> 20;
    attack(&server, "long pages that nobody reads", 12 * page as u64 + 8, good(&server), |end| {
        unread_pages(&server, end);
    });
}

#[test]
fn attacks_on_a_service_with_a_store_take_what_the_page_says() {
    let Some(redis) = Redis::start_or_skip(&[]) else { return };
    // The longest name of a domain, and rules for one entry and for ten.
    let domain = "d".repeat(256);
    let limit = "rate_limit: {unit: hour, requests_per_unit: 6}";
    let deep = (0..9)
        .fold(format!("{{key: user, {limit}}}"), |below, _| format!("{{key: user, descriptors: [{below}]}}"));
    let text = format!("domain: {domain}\ndescriptors:\n  - key: one\n    {limit}\n  - {deep}\n");
    let rules = Rules::new(&text);
    let url = redis.url();
    let server = rules.start(&["--store", &url, "--nodes", "1", "--keys", "10000", "--store-wait", "5s"]);
    let asked = |key: &str, entries: usize, length: usize| {
        let descriptor = |i: usize| {
            let entry = Entry { key: key.into(), value: format!("{i:0length$}") };
            Descriptor { entries: vec![entry; entries], ..Descriptor::default() }
        };
        let descriptors = (0..DESCRIPTORS).map(descriptor).collect();
        RateLimitRequest { domain: domain.clone(), descriptors, hits_addend: 1 }.encode_to_vec()
    };
    let (long, many) = (asked("one", 1, 300), asked("user", ENTRIES / DESCRIPTORS, 15));
    assert!(long.len().min(many.len()) > MAX_REQUEST * 3 / 4 && long.len().max(many.len()) <= MAX_REQUEST);
    let good = || {
        let client = Client::to(&server.address);
        move || assert!(client.left("nobody", &["x=y"]).0)
    };
    // 30 MB of keys, and a node keeps the key of each line.
    attack(&server, "1000 new values of 30 KB at least, behind a store", 16, good(), |end| {
        let client = Client::to(&server.address);
        for key in (0..).take_while(|key| *key < 1_000 || Instant::now() < end) {
            let value = format!("one={}{key:05}", "v".repeat(30_000));
            assert!(client.ask(request(&domain, &[&value])).is_ok());
        }
    });
    redis.signal(libc::SIGSTOP);
    for (name, bytes) in [("long values", long), ("as many entries as may be", many)] {
        attack(
            &server,
            &format!("20 connections that wait for a silent store, with {name}"),
            held(20),
            good(),
            |end| {
                fill(&server, 20, end, 65_535, METHOD, &|| message(&bytes, bytes.len()), END_STREAM);
            },
        );
    }
    redis.signal(libc::SIGCONT);
}

#[test]
fn a_connection_that_answers_no_ping_is_closed_and_one_that_does_stays() {
    let rules = Rules::new(RULES);
    let server = rules.start(&["--ping", "2s"]);
    let (mut silent, mut answers) = (connect(&server), connect(&server));
    for stream in [&mut silent, &mut answers] {
        stream.write_all(PREFACE).expect("sent");
    }
    for _ in 0..2 {
        let ping = loop {
            if let (6, 0, ping) = next_frame(&mut answers).expect("a frame") {
                break ping;
            }
        };
        answers.write_all(&frame(6, 1, 0, &ping)).expect("sent");
    }
    assert!(closed(silent));
}
