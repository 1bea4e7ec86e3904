//! A node process: asks for a hot key without a pause, for keys by Zipf's law, and for a flood of keys that come once.
//! It decides by leases and a reserve, or by one round trip per decision.

use std::error::Error;
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tatcell_cluster::script::{self, Ask, By, Grant};
use tatcell_cluster::{Cluster, Completion, LimitId, SharedLimit, Split, Verdict};

use crate::record::{write, write_figures, Record, FLOOD, HOT};
use crate::schedule::{BURST, NODES, RATE};

/// The number of keys of the Zipf load.
const KEYS: u64 = 1_000;

/// The decider.
trait Gate {
    /// Returns the reading of the machine's clock.
    fn now(&self) -> u64;
    /// Asks at this reading; returns the reading for which the request passed, if it did.
    fn passes(&mut self, key: u64, reading: u64) -> Option<u64>;
    /// Returns what passed later, by key and reading.
    fn later(&mut self) -> Vec<Record>;
    fn asks(&self) -> u64;
}

struct Leases {
    node: Cluster,
    limit: LimitId,
    answers: Vec<Completion>,
}

impl Gate for Leases {
    fn now(&self) -> u64 {
        self.node.now()
    }

    fn passes(&mut self, key: u64, reading: u64) -> Option<u64> {
        let verdict = self.node.submit_at(self.limit, &key.to_le_bytes(), 1, reading, key);
        verdict.passes().then_some(reading)
    }

    fn later(&mut self) -> Vec<Record> {
        self.node.drain(&mut self.answers);
        let passed = self.answers.drain(..).filter(|a| a.verdict == Verdict::Pass);
        passed.map(|a| Record { key: a.token, reading: a.reading }).collect()
    }

    fn asks(&self) -> u64 {
        self.node.metrics().asks
    }
}

/// The same script in strict form, with a wait for each answer.
struct Trips {
    client: redis::Client,
    connection: Option<redis::Connection>,
    tried: Instant,
    clock: Leases,
    split: Split,
    asks: u64,
}

impl Trips {
    fn ask(&mut self, key: u64) -> redis::RedisResult<Grant> {
        let timeout = Duration::from_millis(250);
        if self.connection.is_none() && self.tried.elapsed() > Duration::from_millis(50) {
            self.tried = Instant::now();
            let connection = self.client.get_connection_with_timeout(timeout)?;
            connection.set_read_timeout(Some(timeout))?;
            self.connection = Some(connection);
        }
        let Some(connection) = self.connection.as_mut() else {
            return Err((redis::ErrorKind::Io, "away").into());
        };
        self.asks += 1;
        let name = [b"trip:".as_slice(), &key.to_le_bytes()].concat();
        let one = Ask { want: 1, min: 1, version: 1, ..Ask::default() };
        let answer = script::grant(By::Digest, &name, &self.split, &one).query::<Grant>(connection);
        match answer {
            Err(e) if script::Fault::of(&e) == script::Fault::NoScript => {
                script::grant(By::Text, &name, &self.split, &one).query(connection)
            }
            Err(e) => {
                self.connection = None;
                Err(e)
            }
            answer => answer,
        }
    }
}

impl Gate for Trips {
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn passes(&mut self, key: u64, _reading: u64) -> Option<u64> {
        let passed = self.ask(key).is_ok_and(|grant| grant.units > 0);
        passed.then(|| self.now())
    }

    fn later(&mut self) -> Vec<Record> {
        Vec::new()
    }

    fn asks(&self) -> u64 {
        self.asks
    }
}

/// Runs a node until the clock reads `end`.
pub fn run(url: &str, number: u64, end: u64, trips: bool) -> Result<(), Box<dyn Error>> {
    let second = Duration::from_secs(1);
    let limit = SharedLimit::new("client", RATE, second, BURST);
    let prefix = if trips { "demo-clock" } else { "demo" };
    let node = Cluster::builder(url, NODES as u32).limit(limit.clone()).keys(65_536).prefix(prefix);
    let node = node.slot_ttl(2 * second).log(|_| {}).open()?;
    let limit_id = node.limit("client").ok_or("no limit")?;
    let leases = Leases { node, limit: limit_id, answers: Vec::new() };
    if trips {
        // No hold outlasts this round trip, so the limit is strict, and the whole burst belongs to the store.
        let split = limit.reserve(0, 0).split(1, Duration::from_secs(3_600))?;
        let client = redis::Client::open(url)?;
        let mut gate =
            Trips { client, connection: None, tried: Instant::now() - second, clock: leases, split, asks: 0 };
        return play(&mut gate, number, end);
    }
    let mut gate = leases;
    play(&mut gate, number, end)?;
    gate.node.shutdown(second);
    Ok(())
}

fn play(gate: &mut impl Gate, number: u64, end: u64) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    // Nanoseconds, of two significant digits.
    let (mut times, mut decisions, mut turn, mut random) =
        (Histogram::<u64>::new(2)?, 0u64, 0u64, number + 1);
    loop {
        let now = gate.now();
        if now >= end {
            break;
        }
        // 32 requests for the hot key, one for each of the others.
        for _ in 0..32 {
            let began = Instant::now();
            let reading = gate.now();
            if let Some(reading) = gate.passes(HOT, reading) {
                write(&mut out, Record { key: HOT, reading })?;
            }
            times.record(began.elapsed().as_nanos() as u64)?;
            decisions += 1;
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (random >> 11) as f64 / (1u64 << 53) as f64;
        let zipf = 1 + (KEYS as f64).powf(part) as u64;
        for key in [zipf, FLOOD + (number << 40) + turn] {
            let reading = gate.now();
            if let Some(reading) = gate.passes(key, reading) {
                write(&mut out, Record { key, reading })?;
            }
            decisions += 1;
        }
        for record in gate.later() {
            write(&mut out, record)?;
        }
        out.flush()?;
        turn += 1;
        std::thread::sleep(Duration::from_micros(100));
    }
    let [p50, p99] = [0.5, 0.99].map(|q| times.value_at_quantile(q));
    write_figures(&mut out, &[decisions, gate.asks(), p50, p99, times.max()])?;
    Ok(out.flush()?)
}
