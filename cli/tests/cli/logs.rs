//! Logs whose truth is known: they are made of clients, and of each it is known what it sends when.

use std::fmt::Write;

/// 2023-11-14T22:13:20Z.
pub const START: u64 = 1_700_000_000;

/// A request: milliseconds after the start, address, path, bytes of the answer.
type Request = (u64, String, &'static str, u64);

/// A log that is being made.
#[derive(Default)]
pub struct Log {
    requests: Vec<Request>,
}

impl Log {
    /// A client that sends one request every so many milliseconds.
    pub fn steady(&mut self, address: &str, every: u64, from: u64, until: u64) -> &mut Log {
        self.add(address, (from..until).step_by(every as usize), "/api/status", 200)
    }

    /// A client that sends `count` at once, every so many milliseconds: a page with its images.
    pub fn bursty(&mut self, address: &str, count: usize, every: u64, from: u64, until: u64) -> &mut Log {
        let times = (from..until).step_by(every as usize).flat_map(|time| std::iter::repeat_n(time, count));
        self.add(address, times, "/static/image.png", 20_000)
    }

    /// A crawler: it asks for pages at a steady pace, one after the other.
    pub fn crawler(&mut self, address: &str, per_second: u64, from: u64, until: u64) -> &mut Log {
        self.add(address, (from..until).step_by((1000 / per_second) as usize), "/articles/page", 5_000)
    }

    /// An attack from so many hosts of one network, each once every so many milliseconds.
    pub fn attack(&mut self, network: &str, hosts: u64, every: u64, from: u64, until: u64) -> &mut Log {
        for host in 1..=hosts {
            let first = from + every * host / hosts;
            self.add(&format!("{network}{host}"), (first..until).step_by(every as usize), "/login", 300);
        }
        self
    }

    /// People behind one address: each sends one request every so many milliseconds, at a time of its own.
    pub fn nat(&mut self, address: &str, people: u64, every: u64, from: u64, until: u64) -> &mut Log {
        for person in 0..people {
            self.add(
                address,
                (from + every * person / people..until).step_by(every as usize),
                "/api/news",
                900,
            );
        }
        self
    }

    fn add(
        &mut self,
        address: &str,
        times: impl Iterator<Item = u64>,
        path: &'static str,
        bytes: u64,
    ) -> &mut Log {
        self.requests.extend(times.map(|time| (time, address.to_string(), path, bytes)));
        self
    }

    /// How many requests it has.
    pub fn len(&self) -> u64 {
        self.requests.len() as u64
    }

    /// Who comes when, in order: nanoseconds since 1970, and the address.
    pub fn visits(&self) -> impl Iterator<Item = (u64, std::net::IpAddr)> {
        let visit = |(time, address, ..): Request| {
            (START * 1_000_000_000 + time * 1_000_000, address.parse().expect("an address"))
        };
        self.sorted().into_iter().map(visit)
    }

    fn sorted(&self) -> Vec<Request> {
        let mut sorted = self.requests.clone();
        sorted.sort_by_key(|(time, ..)| *time);
        sorted
    }

    /// As nginx writes it by default, in whole seconds.
    pub fn combined(&self) -> String {
        let mut text = String::new();
        for (time, address, path, bytes) in self.sorted() {
            let clock = START + time / 1000;
            let (hour, minute, second) = (clock / 3600 % 24, clock / 60 % 60, clock % 60);
            let day = 14 + (clock - 1_699_920_000) / 86_400;
            let _ = writeln!(
                text,
                "{address} - - [{day:02}/Nov/2023:{hour:02}:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 \
                 {bytes} \"-\" \"test/1.0\""
            );
        }
        text
    }

    /// With milliseconds: `$remote_addr $msec "$request" $status $body_bytes_sent`.
    pub fn precise(&self) -> String {
        let mut text = String::new();
        for (time, address, path, bytes) in self.sorted() {
            let (second, part) = (START + time / 1000, time % 1000);
            let _ = writeln!(text, "{address} {second}.{part:03} \"GET {path} HTTP/1.1\" 200 {bytes}");
        }
        text
    }
}

/// The format of [`Log::precise`].
pub const PRECISE: &str = "$remote_addr $msec \"$request\" $status $body_bytes_sent";

const MINUTE: u64 = 60_000;

/// The incident of the page: an hour in which a crawler and an attack come on top of what is always there.
pub fn incident() -> Log {
    let mut log = Log::default();
    for host in 1..=200 {
        let start = host * 17_000 % (5 * MINUTE);
        log.bursty(&format!("192.0.2.{host}"), 6 + host as usize % 7, 5 * MINUTE, start, 60 * MINUTE);
    }
    log.steady("198.51.100.5", 10_000, 0, 60 * MINUTE);
    log.nat("198.51.100.80", 40, 20_000, 0, 60 * MINUTE);
    log.crawler("203.0.113.9", 20, 12 * MINUTE, 22 * MINUTE);
    log.attack("100.64.7.", 250, 1_000, 31 * MINUTE, 35 * MINUTE);
    log
}
