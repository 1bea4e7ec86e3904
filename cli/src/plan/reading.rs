//! Reads the records of a plan: makes their keys, puts them in order, and counts them.
//!
//! With many keys, what is known of a key is not in the cache. So keys are looked for, and counted, several at a time:
//! then the processor loads what it needs for all of them at once, instead of waiting for one after the other.

use std::sync::atomic::Ordering;

use tatcell::{ExclusiveTable, FullPolicy, LimitSpec};

use super::curve::Curves;
use super::keys::{Keys, NO_KEY};
use super::merge::{Merge, Opened, HOPELESS};
use super::order::{Held, Order, RUNGS};
use super::replay::{self, Common, Replay};
use super::timeline::Timeline;
use super::{Counts, Each, Far, Found, Plan};
use crate::failure::Failure;
use crate::input::{Fields, Next};
use crate::key::{KeySpec, NoKey};
use crate::record::Record;

/// Bad records whose message is kept.
const MESSAGES: usize = 3;
const GRAINS: [u64; 3] = [1_000_000_000, 1_000_000, 1_000];

/// Records that are taken at a time, fewer if their keys have more bytes than this.
const BATCH: usize = 32;
const BATCH_BYTES: usize = 1 << 16;

/// A record whose key is not numbered yet.
struct Unnumbered {
    time: u64,
    number: u64,
    cost: u64,
    hash: u64,
    wide: [u64; RUNGS],
    is_v4: bool,
    /// Where the bytes of its key end; they begin where those of the record before end.
    end: usize,
}

/// Reads the inputs of a plan.
pub(super) struct Reading<'p> {
    plan: &'p Plan,
    far: &'p Far,
    each: &'p mut dyn Each,
    hasher: ExclusiveTable<'static>,
    order: Order,
    found: Found,
    key: Vec<u8>,
    /// The prefixes that limits count by, and their hashes in the record that is read.
    prefixes: Vec<KeySpec>,
    wide: [u64; RUNGS],
    wider: Vec<u8>,
    /// Whether a ladder asks for the family of the address, and whether that of the record is IPv4.
    asks_family: bool,
    is_v4: bool,
    number: u64,
    /// The first input that is empty.
    empty: Option<String>,
    /// Records whose keys are to be numbered, and the bytes of these.
    unnumbered: Vec<Unnumbered>,
    bytes: Vec<u8>,
    /// Records that have left the window for sorting, and are to be counted.
    ready: Vec<Held>,
}

impl<'p> Reading<'p> {
    /// Makes the tables, and starts without a record.
    pub(super) fn new(plan: &'p Plan, far: &'p Far, each: &'p mut dyn Each) -> Result<Reading<'p>, Failure> {
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
            counts: Counts::default(),
            keys: Keys::new(plan.max_keys, pinned),
            curves: Curves::new(plan.rates.clone()),
            timelines: replays.iter().map(|_| Timeline::new()).collect(),
            replays,
            late: (0, 0),
            sort_needed: 0,
            good: Vec::new(),
        };
        let order = Order::new(u64::try_from(plan.sort.as_nanos()).unwrap_or(u64::MAX));
        Ok(Reading {
            plan,
            far,
            each,
            hasher,
            order,
            found,
            key: Vec::new(),
            prefixes,
            wide: [0; RUNGS],
            wider: Vec::new(),
            asks_family: plan.limits.iter().any(|limit| limit.ladder.is_some()),
            is_v4: false,
            number: 0,
            empty: None,
            unnumbered: Vec::new(),
            bytes: Vec::new(),
            ready: Vec::new(),
        })
    }

    /// Reads all inputs, in the order of their times.
    pub(super) fn all(&mut self) -> Result<(), Failure> {
        let mut merge = Merge::new(self.plan, &self.far.bytes)?;
        while let Some(mut one) = merge.next(&mut self.empty)? {
            if one.is_new {
                let format = one.input.format.map_or("a log format of one's own", |format| format.name());
                add(&mut self.found.counts.formats, format);
            }
            if self.some(&mut one)? {
                merge.wait(one);
                continue;
            }
            let counts = &mut self.found.counts;
            counts.passed_over += one.input.passed_over();
            if one.grain != u64::MAX {
                counts.grain = counts.grain.max(one.grain).max(one.input.grain());
            }
            counts.stamps_end |= one.good > 0 && one.input.stamps_end();
            if let Some(field) = one.input.subtracted() {
                add(&mut counts.subtracted, &format!("{field} (seconds)"));
            }
            merge.close();
        }
        Ok(())
    }

    /// Reads one input, until its next record is that of another time than the next one of all. False at its end.
    fn some(&mut self, one: &mut Opened) -> Result<bool, Failure> {
        while !self.each.is_done() {
            if !std::mem::take(&mut one.waits) {
                match one.input.next(&mut one.record) {
                    Ok(Next::End) => return Ok(false),
                    Ok(Next::Record) if one.is_behind() => {
                        one.waits = true;
                        return Ok(true);
                    }
                    Ok(Next::Record) => self.record(one)?,
                    Ok(Next::Bad(problem)) => self.bad(problem.in_file(&one.input.name), one)?,
                    Ok(Next::Other(problem)) => {
                        self.found.counts.others += 1;
                        let first = &mut self.found.counts.first_other;
                        first.get_or_insert_with(|| problem.in_file(&one.input.name));
                    }
                    Err(failure) if self.plan.strict => return Err(failure),
                    Err(failure) => {
                        self.found.counts.cut.push(failure.to_string());
                        return Ok(false);
                    }
                }
            } else {
                self.record(one)?;
            }
            self.number += 1;
            // ORDERING: Relaxed; a single number, which nothing else depends on.
            self.far.records.store(self.found.counts.records, Ordering::Relaxed);
        }
        Ok(false)
    }

    /// Takes the record that an input has.
    fn record(&mut self, one: &mut Opened) -> Result<(), Failure> {
        match self.plan.key.write(&one.record.values, one.is_binary, &mut self.key) {
            Ok(()) => {
                self.widen(&one.record, one.is_binary)?;
                self.take(&one.record, &mut one.grain)?;
                one.good += 1;
            }
            Err(NoKey::OtherPath) => {
                self.found.counts.other_paths += 1;
                one.good += 1;
            }
            Err(NoKey::NoAddress(index)) => {
                let text = Fields::quote(&one.record.values[index]);
                let what = format!("{} is no address: {text}", self.plan.key.fields()[index]);
                self.bad(one.input.wrong(index, what).in_file(&one.input.name), one)?;
            }
        }
        Ok(())
    }

    fn bad(&mut self, message: String, one: &mut Opened) -> Result<(), Failure> {
        let counts = &mut self.found.counts;
        counts.bad += 1;
        one.bad += 1;
        if self.plan.strict {
            return Err(Failure::Input(message));
        }
        if one.bad >= HOPELESS && one.good == 0 {
            let what = format!("{message}; none of {HOPELESS} records could be read");
            return Err(Failure::Input(what));
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
        if self.asks_family {
            self.is_v4 = self.plan.key.is_v4(&record.values, binary);
        }
        Ok(())
    }

    fn take(&mut self, record: &Record, grain: &mut u64) -> Result<(), Failure> {
        let hash = self.hasher.hash(&self.key).map_err(|error| Failure::Usage(error.to_string()))?;
        let counts = &mut self.found.counts;
        counts.records += 1;
        if !record.stamp.is_multiple_of(*grain) || *grain == u64::MAX {
            let found = GRAINS.into_iter().find(|grain| record.stamp.is_multiple_of(*grain)).unwrap_or(1);
            *grain = found.min(*grain);
        }
        self.bytes.extend_from_slice(&self.key);
        let (time, cost, end) = (record.time, record.cost, self.bytes.len());
        let (number, wide, is_v4) = (self.number, self.wide, self.is_v4);
        self.unnumbered.push(Unnumbered { time, number, cost, hash, wide, is_v4, end });
        if self.unnumbered.len() >= BATCH || self.bytes.len() >= BATCH_BYTES {
            self.number_keys()?;
        }
        Ok(())
    }

    /// Numbers the keys of the records that are there, and puts these in order.
    fn number_keys(&mut self) -> Result<(), Failure> {
        let (mut records, mut bytes) =
            (std::mem::take(&mut self.unnumbered), std::mem::take(&mut self.bytes));
        let mut known = [NO_KEY; BATCH];
        let mut start = 0;
        for (record, known) in records.iter().zip(&mut known) {
            let key = &bytes[std::mem::replace(&mut start, record.end)..record.end];
            *known = self.found.keys.find(key, record.hash).unwrap_or(NO_KEY);
        }
        start = 0;
        for (at, record) in records.iter().enumerate() {
            let bytes = &bytes[std::mem::replace(&mut start, record.end)..record.end];
            let (key, new) = match known[at] {
                NO_KEY => self.found.keys.number(bytes, record.hash),
                key => (key, false),
            };
            let Unnumbered { time, number, cost, hash, wide, is_v4, .. } = *record;
            self.order.push(Held { time, number, cost, hash, wide, key, is_v4 });
            if new && self.found.keys.is_over() {
                self.count()?;
                self.halve();
                // The numbers that were found are old ones.
                known = [NO_KEY; BATCH];
            }
            while let Some(held) = self.order.pop(false) {
                self.ready(held)?;
            }
        }
        self.count()?;
        records.clear();
        bytes.clear();
        (self.unnumbered, self.bytes) = (records, bytes);
        Ok(())
    }

    fn ready(&mut self, held: Held) -> Result<(), Failure> {
        self.ready.push(held);
        if self.ready.len() >= BATCH {
            self.count()?;
        }
        Ok(())
    }

    /// Counts the records that are ready.
    fn count(&mut self) -> Result<(), Failure> {
        let touched = self.ready.iter().fold(0, |sum, held| sum ^ self.found.touch(held));
        std::hint::black_box(touched);
        for held in &self.ready {
            self.found.add(held)?;
            self.each.record(held, &self.found.keys)?;
        }
        self.ready.clear();
        Ok(())
    }

    fn halve(&mut self) {
        while self.found.keys.is_over() {
            let to = self.found.keys.halve();
            self.order.renumber(&to);
            self.found.curves.keep(&to);
            self.found.replays.iter_mut().for_each(|replay| replay.keep(&to));
            self.found.timelines.iter_mut().for_each(|timeline| timeline.keep(&to));
            self.each.keep(&to);
        }
    }

    /// Ends with what still waits to be sorted.
    pub(super) fn finish(mut self) -> Result<Found, Failure> {
        self.number_keys()?;
        while let Some(held) = self.order.pop(true) {
            self.ready(held)?;
        }
        self.count()?;
        if self.found.counts.records == 0 {
            let counts = &self.found.counts;
            let first = counts.cut.first().or(counts.first_bad.first());
            let passed_over = counts.passed_over;
            let passed_over = match counts.formats.iter().any(|format| format == "unbound") {
                _ if passed_over == 0 => None,
                true => Some(format!("none of {passed_over} replies of Unbound counts: turn log-queries on")),
                false => Some(format!(
                    "none of {passed_over} messages counts: only CLIENT_QUERY and AUTH_QUERY do"
                )),
            };
            let why = match (first, counts.other_paths, &counts.first_other, &self.empty) {
                (Some(first), ..) => {
                    [first.clone()].into_iter().chain(passed_over).collect::<Vec<_>>().join("; ")
                }
                (None, 1.., ..) => {
                    format!("none of {} paths has the form that the key asks for", counts.other_paths)
                }
                (None, 0, Some(other), _) => {
                    format!("none of {} packets counts, the first: {other}", counts.others)
                }
                (None, 0, None, Some(empty)) => format!("{empty}:1:1: no known format: the input is empty"),
                (None, 0, None, None) => passed_over.unwrap_or_else(|| "the input has no record".into()),
            };
            return Err(Failure::Input(why));
        }
        self.found.replays.iter_mut().for_each(Replay::finish);
        self.found.late = (self.order.late, self.order.early);
        self.found.sort_needed = self.order.needed;
        for text in &self.plan.good {
            let key = self.plan.key.read(text).map_err(Failure::Usage)?;
            let hash = self.hasher.hash(&key).map_err(|error| Failure::Usage(error.to_string()))?;
            self.found.good.push((text.clone(), self.found.keys.find(&key, hash)));
        }
        Ok(self.found)
    }
}

/// Adds a text that is not there yet.
fn add(texts: &mut Vec<String>, text: &str) {
    if !texts.iter().any(|known| known == text) {
        texts.push(text.into());
    }
}

impl Found {
    /// Loads what is known of the key of a record; returns a part of it, so that it is not left out.
    fn touch(&self, held: &Held) -> u64 {
        self.replays.iter().for_each(|replay| replay.prefetch(held));
        self.curves.touch(held.key as usize)
    }

    fn add(&mut self, held: &Held) -> Result<(), Failure> {
        let span = self.counts.span.get_or_insert((held.time, held.time));
        span.1 = held.time;
        if held.key != NO_KEY {
            self.curves.add(held.key as usize, held.time, held.cost);
        }
        let one_in = self.keys.one_in();
        for (replay, timeline) in self.replays.iter_mut().zip(&mut self.timelines) {
            let passes = replay.ask(held, one_in).map_err(Failure::Usage)?;
            timeline.add(held.time, held.key, !passes);
        }
        Ok(())
    }
}
