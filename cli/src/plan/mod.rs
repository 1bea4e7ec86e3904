//! Which limit a log would have needed, and whom a limit would have refused.

mod charts;
pub mod curve;
mod html;
pub mod keys;
pub mod limits;
mod live;
mod merge;
pub mod order;
mod reading;
pub mod replay;
pub mod report;
mod text;
mod tiers;
pub mod timeline;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use tatcell::FullPolicy;

use self::curve::{Curves, Rate};
use self::keys::Keys;
use self::order::{Held, MOST, RUNGS};
use self::reading::Reading;
use self::replay::Replay;
use self::report::Report;
use self::timeline::Timeline;
use crate::failure::Failure;
use crate::input::How;
use crate::key::KeySpec;
use crate::limit::Chained;
use crate::progress::{bar, short};
use crate::units::seconds;
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
    /// What was of another kind than a request, such as packets that are not IP.
    pub others: u64,
    /// The first of these, with its place.
    pub first_other: Option<String>,
    /// Messages of dnstap that are no queries of clients, and replies of Unbound.
    pub passed_over: u64,
    /// Where inputs could not be read any further.
    pub cut: Vec<String>,
    /// The first and the last time.
    pub span: Option<(u64, u64)>,
    /// The coarsest unit of time of which all stamps of an input are multiples, in nanoseconds.
    pub grain: u64,
    /// The fields that were subtracted from times.
    pub subtracted: Vec<String>,
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
    /// What each of them let pass and refused over time.
    pub timelines: Vec<Timeline>,
    /// Records that came too late to be sorted, and those that left the window early.
    pub late: (u64, u64),
    /// The window in which all could have been sorted, in nanoseconds; 0 if none came too late.
    pub sort_needed: u64,
    /// The good keys with their numbers, if they were seen.
    pub good: Vec<(String, Option<u32>)>,
}

/// What else is done with the records, besides counting them.
pub trait Each {
    /// Takes the next record, in the order of their times.
    fn record(&mut self, held: &Held, keys: &Keys) -> Result<(), Failure>;

    /// Drops the keys that are not in the sample any more: the new number of each old one.
    fn keep(&mut self, to: &[u32]);

    /// Whether nothing more needs to be read.
    fn is_done(&self) -> bool {
        false
    }
}

/// One record in this many may come too late to be sorted. If more do, there is no answer.
const LATE: u64 = 100;

/// Nothing else is done.
pub(crate) struct NoMore;

impl Each for NoMore {
    fn record(&mut self, _: &Held, _: &Keys) -> Result<(), Failure> {
        Ok(())
    }

    fn keep(&mut self, _: &[u32]) {}
}

impl Plan {
    /// Reads the inputs and answers.
    pub fn run(&self, far: &Far) -> Result<Report, Failure> {
        let found = self.stream(far, &mut NoMore)?;
        self.judge_order(&found)?;
        Ok(Report::new(self, &found))
    }

    /// Refuses to answer if too many records count at another time than their own.
    fn judge_order(&self, found: &Found) -> Result<(), Failure> {
        let (late, all) = (found.late.0, found.counts.records);
        if late <= all / LATE {
            return Ok(());
        }
        if found.late.1 > 0 {
            return Err(Failure::Input(format!(
                "{late} of {all} records came too late to be sorted, and the answer would be wrong: more than {MOST} \
                 records lie in the window of --sort: sort the input first"
            )));
        }
        let (given, needed) = (self.sort.as_secs_f64(), seconds(found.sort_needed));
        let many = match all > MOST as u64 {
            true => format!(", if no more than {MOST} records lie within it; else sort the input first"),
            false => String::new(),
        };
        Err(Failure::Input(format!(
            "{late} of {all} records came more than {given} s after a newer one, and the answer would be wrong: \
             --sort {needed} sorts them{many}"
        )))
    }

    /// Reads the inputs, and hands each record on in the order of their times.
    pub fn stream(&self, far: &Far, each: &mut dyn Each) -> Result<Found, Failure> {
        let mut reading = Reading::new(self, far, each)?;
        reading.all()?;
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
}

/// How far the reading is, for a progress.
#[derive(Clone, Default)]
pub struct Far {
    /// Bytes of all files so far.
    bytes: Arc<AtomicU64>,
    /// Records of all files so far.
    records: Arc<AtomicU64>,
}

impl Far {
    /// Makes the line. It has a bar where it is known how much there is: of a pipe it is not.
    pub fn text(&self, files: &[String]) -> impl Fn() -> String + Send + 'static {
        let far = self.clone();
        let name = match files {
            [one] => short(one),
            files => format!("{} files", files.len()),
        };
        let size =
            |name: &String| std::fs::metadata(name).ok().filter(|data| data.is_file()).map(|data| data.len());
        let all = files.iter().map(size).sum::<Option<u64>>();
        move || {
            // ORDERING: Relaxed, both; single numbers, which nothing else depends on.
            let (read, records) = (far.bytes.load(Ordering::Relaxed), far.records.load(Ordering::Relaxed));
            let read = match all {
                Some(all) if all > 0 => bar(&name, read, all),
                _ => format!("{name} {} MB", read / 1_000_000),
            };
            format!("{read}, {}", plural(records, "record"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_a_bar_where_all_are_files() {
        let far = Far::default();
        // ORDERING: Relaxed, both; one thread.
        far.bytes.store(5_000_000, Ordering::Relaxed);
        far.records.store(7, Ordering::Relaxed);
        let this = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").to_owned();
        let line =
            |files: &[&String]| far.text(&files.iter().map(|file| (*file).clone()).collect::<Vec<_>>())();
        assert_eq!(line(&[&"-".into()]), "- 5 MB, 7 records");
        assert_eq!(line(&[&this, &"-".into()]), "2 files 5 MB, 7 records");
        assert_eq!(line(&[&this, &this]), format!("2 files [{}] 100 %, 7 records", "#".repeat(30)));
    }
}
