//! Which limit a log would have needed, and whom a limit would have refused.

mod charts;
pub mod curve;
mod html;
pub mod keys;
pub mod limits;
pub mod order;
pub mod replay;
pub mod report;
mod text;
pub mod timeline;

use std::time::{Duration, Instant};

use tatcell::{ExclusiveTable, FullPolicy, LimitSpec};

use self::curve::{Curves, Rate};
use self::keys::{Keys, NO_KEY};
use self::order::{Held, Order, RUNGS};
use self::replay::{Common, Replay};
use self::report::Report;
use crate::failure::Failure;
use crate::input::{How, Input, Next};
use crate::key::{KeySpec, NoKey};
use crate::limit::Chained;
use crate::record::Record;

/// What is asked.
pub struct Plan {
    /// The files, in any order; `-` is the standard input.
    pub files: Vec<String>,
    /// How to read them.
    pub how: How,
    /// What a key is.
    pub key: KeySpec,
    /// The rates of the arrival curves.
    pub rates: Vec<Rate>,
    /// The limits to replay.
    pub limits: Vec<Chained>,
    /// What a full set does; each limit is replayed with each.
    pub policies: Vec<FullPolicy>,
    /// The share of keys, in millionths, that the smallest limit is to leave alone.
    pub spare_ppm: u64,
    /// Keys that the smallest limit is to leave alone, as a person writes them.
    pub good: Vec<String>,
    /// Most keys that are counted exactly.
    pub max_keys: usize,
    /// Slots of each table.
    pub slots: usize,
    /// The chance of a full set, in billionths, for which a table is recommended.
    pub target_ppb: u64,
    /// How far records may be out of order.
    pub sort: Duration,
    /// The length of the windows of which the worst is reported.
    pub window: Duration,
    /// How many keys are listed.
    pub top: usize,
    /// The seed of the hash; the same seed gives the same answer.
    pub seed: [u8; 16],
    /// Whether the first record that cannot be read ends the plan.
    pub strict: bool,
}

/// What is counted while reading.
#[derive(Default)]
pub struct Counts {
    /// Records that count.
    pub records: u64,
    /// Records whose path has not the form that the key asks for.
    pub other_paths: u64,
    /// Records that could not be read.
    pub bad: u64,
    /// The first of them, with file, line and column.
    pub first_bad: Vec<String>,
    /// The first and the last time.
    pub span: Option<(u64, u64)>,
    /// The coarsest unit of time of which all stamps are multiples, in nanoseconds.
    pub grain: u64,
    /// Whether times are those of the ends of requests.
    pub stamps_end: bool,
    /// The formats that were found.
    pub formats: Vec<String>,
}

/// What was read, with all that is known of its keys.
pub struct Found {
    /// Counts of the input.
    pub counts: Counts,
    /// The keys.
    pub keys: Keys,
    /// Their curves.
    pub curves: Curves,
    /// The tables that were asked.
    pub replays: Vec<Replay>,
    /// Records that came too late to be sorted, and those that left the window early.
    pub late: (u64, u64),
    /// The good keys with their numbers, if they were seen.
    pub good: Vec<(String, Option<u32>)>,
}

/// What else is done with the records, besides counting them.
pub trait Each {
    /// Takes the next record, in the order of their times.
    fn record(&mut self, held: &Held, keys: &Keys) -> Result<(), Failure>;

    /// Drops the keys that are not in the sample any more: the new number of each old one.
    fn keep(&mut self, to: &[u32]);
}

struct NoMore;

impl Each for NoMore {
    fn record(&mut self, _: &Held, _: &Keys) -> Result<(), Failure> {
        Ok(())
    }

    fn keep(&mut self, _: &[u32]) {}
}

/// Bad records whose message is kept.
const MESSAGES: usize = 3;
/// So many bad records without a good one end the plan.
const HOPELESS: u64 = 1000;
const GRAINS: [u64; 3] = [1_000_000_000, 1_000_000, 1_000];

impl Plan {
    /// Reads the inputs and answers.
    pub fn run(&self, progress: &mut dyn FnMut(&Progress)) -> Result<Report, Failure> {
        Ok(Report::new(self, &self.read(progress)?))
    }

    /// Reads the inputs.
    pub fn read(&self, progress: &mut dyn FnMut(&Progress)) -> Result<Found, Failure> {
        self.stream(progress, &mut NoMore)
    }

    /// Reads the inputs, and hands each record on in the order of their times.
    pub fn stream(&self, progress: &mut dyn FnMut(&Progress), each: &mut dyn Each) -> Result<Found, Failure> {
        let mut reading = Reading::new(self, each)?;
        for file in self.in_order()? {
            reading.file(&file, progress)?;
        }
        reading.finish()
    }

    /// By which keys the limits of a chain count: 0 is that of the plan, from 1 on they are in `prefixes`.
    fn places(&self, limit: &Chained, prefixes: &mut Vec<KeySpec>) -> Result<Vec<usize>, String> {
        let mut places = Vec::new();
        for rung in &limit.rungs {
            let Some(lengths) = rung.lengths else {
                places.push(0);
                continue;
            };
            let prefix = self.key.with_lengths(lengths)?;
            let at = prefixes.iter().position(|known| *known == prefix).unwrap_or(prefixes.len());
            if at == RUNGS {
                return Err(format!("limit {:?}: at most {RUNGS} different prefixes in a plan", limit.text));
            }
            if at == prefixes.len() {
                prefixes.push(prefix);
            }
            places.push(at + 1);
        }
        Ok(places)
    }

    /// The files, the one with the oldest first record first. Pipes stay where they are named.
    fn in_order(&self) -> Result<Vec<String>, Failure> {
        let is_file = |name: &String| std::fs::metadata(name).is_ok_and(|data| data.is_file());
        if self.files.len() < 2 || !self.files.iter().all(is_file) {
            return Ok(self.files.clone());
        }
        let mut known = Vec::new();
        // A log that was rotated a moment ago is empty, and an empty file has no format.
        let is_empty = |name: &&String| std::fs::metadata(name).is_ok_and(|data| data.len() == 0);
        if self.files.iter().all(|name| is_empty(&name)) {
            return Ok(self.files.clone());
        }
        for name in self.files.iter().filter(|name| !is_empty(name)) {
            let mut input = Input::open(name, &self.how)?;
            let mut record = Record::new(&self.how.wants);
            let mut first = u64::MAX;
            for _ in 0..HOPELESS {
                match input.next(&mut record)? {
                    Next::Record => first = record.time,
                    Next::Bad(_) => continue,
                    Next::End => {}
                }
                break;
            }
            known.push((first, name.clone()));
        }
        known.sort_by_key(|(first, _)| *first);
        Ok(known.into_iter().map(|(_, name)| name).collect())
    }
}

/// How far the reading is.
pub struct Progress {
    /// The file.
    pub file: String,
    /// Its bytes so far, and all of them where that is known.
    pub bytes: (u64, Option<u64>),
    /// Records of all files so far.
    pub records: u64,
}

struct Reading<'p> {
    plan: &'p Plan,
    each: &'p mut dyn Each,
    hasher: ExclusiveTable<'static>,
    order: Order,
    found: Found,
    key: Vec<u8>,
    /// The prefixes that limits count by, and their hashes in the record that is read.
    prefixes: Vec<KeySpec>,
    wide: [u64; RUNGS],
    wider: Vec<u8>,
    number: u64,
}

impl<'p> Reading<'p> {
    fn new(plan: &'p Plan, each: &'p mut dyn Each) -> Result<Reading<'p>, Failure> {
        let hasher = replay::table(LimitSpec::per_second(1), FullPolicy::Admit, plan.seed, 16)
            .map_err(Failure::Usage)?;
        let mut pinned = Vec::new();
        for text in &plan.good {
            let key = plan.key.read(text).map_err(Failure::Usage)?;
            pinned.push(hasher.hash(&key).map_err(|error| Failure::Usage(error.to_string()))?);
        }
        let (mut replays, mut prefixes) = (Vec::new(), Vec::new());
        let (seed, slots, window, max_keys) = (plan.seed, plan.slots, plan.window, plan.max_keys);
        for limit in &plan.limits {
            let places = plan.places(limit, &mut prefixes).map_err(Failure::Usage)?;
            for policy in &plan.policies {
                let common = Common { seed, slots, window, max_keys };
                let replay = Replay::new(limit.clone(), &places, *policy, &common);
                replays.push(replay.map_err(Failure::Usage)?);
            }
        }
        let found = Found {
            counts: Counts { grain: u64::MAX, ..Counts::default() },
            keys: Keys::new(plan.max_keys, pinned),
            curves: Curves::new(plan.rates.clone()),
            replays,
            late: (0, 0),
            good: Vec::new(),
        };
        let order = Order::new(u64::try_from(plan.sort.as_nanos()).unwrap_or(u64::MAX));
        Ok(Reading {
            plan,
            each,
            hasher,
            order,
            found,
            key: Vec::new(),
            prefixes,
            wide: [0; RUNGS],
            wider: Vec::new(),
            number: 0,
        })
    }

    fn file(&mut self, name: &str, progress: &mut dyn FnMut(&Progress)) -> Result<(), Failure> {
        let mut input = Input::open(name, &self.plan.how)?;
        let format = input.format.map_or("a log format of one's own", |format| format.name());
        if !self.found.counts.formats.iter().any(|known| known == format) {
            self.found.counts.formats.push(format.into());
        }
        let binary = input.is_binary();
        let mut record = Record::new(&self.plan.how.wants);
        let mut told = Instant::now();
        let mut good = 0;
        loop {
            match input.next(&mut record)? {
                Next::End => break,
                Next::Bad(problem) => self.bad(problem.in_file(&input.name), good)?,
                Next::Record => match self.plan.key.write(&record.values, binary, &mut self.key) {
                    Ok(()) => {
                        self.widen(&record, binary)?;
                        self.take(&record)?;
                        good += 1;
                    }
                    Err(NoKey::OtherPath) => {
                        self.found.counts.other_paths += 1;
                        good += 1;
                    }
                    Err(NoKey::NoAddress(index)) => {
                        let text = String::from_utf8_lossy(&record.values[index]).escape_debug().to_string();
                        let field = &self.plan.key.fields()[index];
                        self.bad(
                            format!("{}:{}: {field} is no address: \"{text}\"", input.name, input.line()),
                            good,
                        )?;
                    }
                },
            }
            self.number += 1;
            if self.number.is_multiple_of(1 << 16) && told.elapsed() > Duration::from_millis(300) {
                told = Instant::now();
                let bytes = (input.bytes_read(), input.size);
                progress(&Progress { file: input.name.clone(), bytes, records: self.found.counts.records });
            }
        }
        self.found.counts.stamps_end |= good > 0 && input.stamps_end();
        Ok(())
    }

    fn bad(&mut self, message: String, good: u64) -> Result<(), Failure> {
        let counts = &mut self.found.counts;
        counts.bad += 1;
        if self.plan.strict || counts.bad >= HOPELESS && good == 0 {
            return Err(Failure::Input(message));
        }
        if counts.first_bad.len() < MESSAGES {
            counts.first_bad.push(message);
        }
        Ok(())
    }

    /// Hashes the prefixes that limits count by. A record that has a key has an address.
    fn widen(&mut self, record: &Record, binary: bool) -> Result<(), Failure> {
        for (prefix, hash) in self.prefixes.iter().zip(&mut self.wide) {
            if prefix.write(&record.values, binary, &mut self.wider).is_ok() {
                *hash = self.hasher.hash(&self.wider).map_err(|error| Failure::Usage(error.to_string()))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, record: &Record) -> Result<(), Failure> {
        let hash = self.hasher.hash(&self.key).map_err(|error| Failure::Usage(error.to_string()))?;
        let (key, new) = self.found.keys.number(&self.key, hash);
        let counts = &mut self.found.counts;
        counts.records += 1;
        if !record.stamp.is_multiple_of(counts.grain) || counts.grain == u64::MAX {
            let grain = GRAINS.into_iter().find(|grain| record.stamp.is_multiple_of(*grain)).unwrap_or(1);
            counts.grain = counts.grain.min(grain);
        }
        let held =
            Held { time: record.time, number: self.number, cost: record.cost, hash, wide: self.wide, key };
        self.order.push(held);
        if new && self.found.keys.is_over() {
            self.halve();
        }
        while let Some(held) = self.order.pop(false) {
            self.add(&held)?;
        }
        Ok(())
    }

    fn add(&mut self, held: &Held) -> Result<(), Failure> {
        self.found.add(held)?;
        self.each.record(held, &self.found.keys)
    }

    fn halve(&mut self) {
        while self.found.keys.is_over() {
            let to = self.found.keys.halve();
            self.order.renumber(&to);
            self.found.curves.keep(&to);
            self.found.replays.iter_mut().for_each(|replay| replay.keep(&to));
            self.each.keep(&to);
            if to.iter().all(|to| *to != NO_KEY) && self.found.keys.one_in() > 1 << 40 {
                // Only pinned keys are left.
                break;
            }
        }
    }

    fn finish(mut self) -> Result<Found, Failure> {
        while let Some(held) = self.order.pop(true) {
            self.add(&held)?;
        }
        if self.found.counts.records == 0 {
            let first = self.found.counts.first_bad.first();
            let why = match (first, self.found.counts.other_paths) {
                (Some(first), _) => first.clone(),
                (None, 0) => "the input has no record".into(),
                (None, other) => format!("none of {other} paths has the form that the key asks for"),
            };
            return Err(Failure::Input(why));
        }
        self.found.replays.iter_mut().for_each(Replay::finish);
        self.found.late = (self.order.late, self.order.early);
        for text in &self.plan.good {
            let key = self.plan.key.read(text).map_err(Failure::Usage)?;
            let hash = self.hasher.hash(&key).map_err(|error| Failure::Usage(error.to_string()))?;
            self.found.good.push((text.clone(), self.found.keys.find(&key, hash)));
        }
        Ok(self.found)
    }
}

impl Found {
    fn add(&mut self, held: &Held) -> Result<(), Failure> {
        let span = self.counts.span.get_or_insert((held.time, held.time));
        span.1 = held.time;
        if held.key != NO_KEY {
            self.curves.add(held.key as usize, held.time, held.cost);
        }
        let one_in = self.keys.one_in();
        for replay in &mut self.replays {
            replay.ask(held, one_in).map_err(Failure::Usage)?;
        }
        Ok(())
    }
}
