//! Reads the inputs of a plan as one: always the one whose next record is the oldest.
//!
//! A file waits closed until the time of its first record comes, so of rotated logs one is open at a time, and of the
//! logs of several servers one each. Records of one input may be out of order by some time. Then all records are out of
//! order by at most that time, so the window of `--sort` is as long as for one input.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;

use super::Plan;
use crate::failure::Failure;
use crate::input::{Input, Next};
use crate::record::Record;

/// So many bad records of an input without a good one end the plan.
pub(super) const HOPELESS: u64 = 1000;
/// Most inputs that are open at a time.
const OPEN: usize = 256;

/// The time of the next record of an input, and its place: of equal times the input that begins earlier comes first.
type Due = (u64, usize);

/// An input that is open.
pub(super) struct Opened {
    pub(super) input: Input,
    pub(super) is_binary: bool,
    /// Whether nothing has been taken from it.
    pub(super) is_new: bool,
    /// Its next record, if that waits.
    pub(super) record: Record,
    pub(super) waits: bool,
    /// Its records so far that count, and that do not.
    pub(super) good: u64,
    pub(super) bad: u64,
    /// The coarsest unit of which all of its stamps are multiples.
    pub(super) grain: u64,
    place: usize,
    /// When the next record of another input is due.
    until: Due,
}

impl Opened {
    /// Whether another input has a record before that of this one.
    pub(super) fn is_behind(&self) -> bool {
        (self.record.time, self.place) > self.until
    }
}

/// The inputs of a plan.
pub(super) struct Merge<'p> {
    plan: &'p Plan,
    names: Vec<String>,
    /// What is open and waits, for each name.
    waiting: Vec<Option<Box<Opened>>>,
    due: BinaryHeap<Reverse<Due>>,
    open: usize,
    /// Counts the bytes that are read.
    read: &'p Arc<AtomicU64>,
}

/// Returns the time of the first record of a file; None if it is empty.
fn first(plan: &Plan, name: &str) -> Result<Option<u64>, Failure> {
    // Its bytes count when it is read.
    let mut input = Input::open(name, &plan.how, &Arc::default())?;
    if input.is_empty() {
        return Ok(None);
    }
    let mut record = Record::new(&plan.how.wants);
    let mut bad = 0;
    loop {
        match input.next(&mut record) {
            Ok(Next::Record) => return Ok(Some(record.time)),
            Ok(Next::Other(_)) => {}
            Ok(Next::Bad(_)) if bad < HOPELESS => bad += 1,
            // What is wrong is said when it is read.
            _ => return Ok(Some(u64::MAX)),
        }
    }
}

impl<'p> Merge<'p> {
    /// Looks for the first records of files. A pipe can be read only once: it is opened before all files.
    pub(super) fn new(plan: &'p Plan, read: &'p Arc<AtomicU64>) -> Result<Merge<'p>, Failure> {
        let mut known = Vec::new();
        for name in &plan.files {
            let is_file = name != "-" && std::fs::metadata(name).is_ok_and(|data| data.is_file());
            match is_file && plan.files.len() > 1 {
                true => known.push((first(plan, name)?, name.clone())),
                false => known.push((Some(0), name.clone())),
            }
        }
        if known.iter().any(|(first, _)| first.is_some()) {
            // A log that was rotated a moment ago is empty, and an empty file has no format.
            known.retain(|(first, _)| first.is_some());
        }
        known.sort_by_key(|(first, _)| *first);
        let due = |(place, (first, _)): (usize, &(Option<u64>, String))| Reverse((first.unwrap_or(0), place));
        Ok(Merge {
            plan,
            waiting: known.iter().map(|_| None).collect(),
            due: known.iter().enumerate().map(due).collect(),
            names: known.into_iter().map(|(_, name)| name).collect(),
            open: 0,
            read,
        })
    }

    /// Takes the input whose next record is the oldest. Gives the name of one that is empty.
    pub(super) fn next(&mut self, empty: &mut Option<String>) -> Result<Option<Box<Opened>>, Failure> {
        while let Some(Reverse((_, place))) = self.due.pop() {
            let until = self.due.peek().map_or((u64::MAX, usize::MAX), |due| due.0);
            if let Some(mut one) = self.waiting[place].take() {
                (one.until, one.is_new) = (until, false);
                return Ok(Some(one));
            }
            let name = &self.names[place];
            if self.open == OPEN {
                return Err(Failure::Input(format!(
                    "{name}: more than {OPEN} inputs overlap in time: merge some of them first, as by sort -m"
                )));
            }
            let input = Input::open(name, &self.plan.how, self.read)?;
            if input.is_empty() {
                empty.get_or_insert(input.name);
                continue;
            }
            self.open += 1;
            return Ok(Some(Box::new(Opened {
                is_binary: input.is_binary(),
                input,
                is_new: true,
                record: Record::new(&self.plan.how.wants),
                waits: false,
                good: 0,
                bad: 0,
                grain: u64::MAX,
                place,
                until,
            })));
        }
        Ok(None)
    }

    /// Puts an input back until its record is the oldest.
    pub(super) fn wait(&mut self, one: Box<Opened>) {
        self.due.push(Reverse((one.record.time, one.place)));
        let place = one.place;
        self.waiting[place] = Some(one);
    }

    /// Ends an input.
    pub(super) fn close(&mut self) {
        self.open -= 1;
    }
}
