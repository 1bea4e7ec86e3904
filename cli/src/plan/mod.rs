//! Which limit a log would have needed, and whom a limit would have refused.

mod charts;
pub mod curve;
mod html;
pub mod keys;
pub mod limits;
mod live;
pub mod order;
mod reading;
pub mod replay;
pub mod report;
mod text;
mod tiers;
pub mod timeline;

use std::fmt;
use std::time::Duration;

use tatcell::FullPolicy;

use self::curve::{Curves, Rate};
use self::keys::Keys;
use self::order::{Held, RUNGS};
use self::reading::{Reading, HOPELESS};
use self::replay::Replay;
use self::report::Report;
use crate::failure::Failure;
use crate::input::{How, Input, Next};
use crate::key::KeySpec;
use crate::limit::Chained;
use crate::progress::bar;
use crate::record::Record;
use crate::words::plural;

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
            if prefix == self.key {
                places.push(0);
                continue;
            }
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

impl fmt::Display for Progress {
    /// Draws a bar where it is known how much there is: of a pipe it is not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.file)?;
        match self.bytes {
            (read, Some(all)) if all > 0 => {
                f.write_str(&bar("", read, all))?;
            }
            (read, _) => write!(f, "{} MB", read / 1_000_000)?,
        }
        write!(f, ", {}", plural(self.records, "record"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_as_what_is_read() {
        let draw = |bytes| Progress { file: "log".into(), bytes, records: 7 }.to_string();
        let empty = "-".repeat(15);
        assert_eq!(draw((0, Some(10))), format!("log [{empty}{empty}] 0 %, 7 records"));
        assert_eq!(draw((5, Some(10))), format!("log [{}{empty}] 50 %, 7 records", "#".repeat(15)));
        // A file may grow while it is read.
        assert_eq!(draw((12, Some(10))), format!("log [{}] 100 %, 7 records", "#".repeat(30)));
        assert_eq!(draw((5_000_000, None)), "log 5 MB, 7 records");
    }
}
