//! What passes and what is refused over time, and who is refused when, in a bounded number of parts of time.
//!
//! How long an input lasts is known only at its end. So parts are short at first. If a record lies beyond the last
//! part, several parts become one: seconds become 5 s, 15 s, minutes, and so on, until it fits.

use std::collections::HashMap;

use super::keys::NO_KEY;
use crate::units::HZ;

/// Most parts of a timeline.
const PARTS: usize = 120;
/// Most parts of the times of a key.
const COLUMNS: usize = 48;
/// Most refused keys whose times are kept, with at most [`COLUMNS`] numbers each: 21 MiB.
const REFUSED: usize = 1 << 16;

const MINUTE: u64 = 60 * HZ;
const HOUR: u64 = 60 * MINUTE;

/// How long a part may be. Each is a multiple of the one before; beyond these it doubles.
const WIDTHS: [u64; 9] = [HZ, 5 * HZ, 15 * HZ, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, 24 * HOUR];

/// Parts of time of one length. Each starts at a multiple of it.
struct Parts {
    start: Option<u64>,
    width: u64,
    most: u64,
}

/// How parts become longer: each `by` of them are one, the first with `before` that had no record.
#[derive(Clone, Copy)]
struct Longer {
    by: usize,
    before: usize,
}

impl Parts {
    fn new(width: u64, most: usize) -> Parts {
        Parts { start: None, width, most: most as u64 }
    }

    /// Returns the part of a time, and how parts become longer before that.
    fn place(&mut self, time: u64) -> (usize, Option<Longer>) {
        let old = *self.start.get_or_insert(time - time % self.width);
        let (mut start, width) = (old, self.width);
        while time.saturating_sub(start) / self.width >= self.most {
            let next = WIDTHS.into_iter().find(|width| *width > self.width);
            self.width = next.unwrap_or(self.width.saturating_mul(2));
            start = old - old % self.width;
        }
        self.start = Some(start);
        let count = |time: u64, width: u64| (time / width) as usize;
        let longer = Longer { by: count(self.width, width), before: count(old - start, width) };
        (count(time.saturating_sub(start), self.width), (self.width > width).then_some(longer))
    }
}

/// Replaces the values of parts that become longer by their sums.
fn merge<T: Copy + Default + std::ops::AddAssign>(values: &mut Vec<T>, Longer { by, before }: Longer) {
    for part in 0..values.len() {
        let value = std::mem::take(&mut values[part]);
        values[(before + part) / by] += value;
    }
    values.truncate((before + values.len()).div_ceil(by));
}

/// Adds to a value that may not be there yet.
fn add<T: Copy + Default + std::ops::AddAssign>(values: &mut Vec<T>, at: usize, value: T) {
    if values.len() <= at {
        values.resize(at + 1, T::default());
    }
    values[at] += value;
}

/// What came and what was refused in each part of time; and for each refused key, when.
pub struct Timeline {
    parts: Parts,
    came: Vec<u64>,
    refused: Vec<u64>,
    columns: Parts,
    of_key: HashMap<u32, Vec<u32>>,
    /// Whether the times of more refused keys were not kept.
    pub is_cut: bool,
}

impl Timeline {
    /// Starts without records.
    pub fn new() -> Timeline {
        let (parts, columns) = (Parts::new(HZ, PARTS), Parts::new(MINUTE, COLUMNS));
        let (came, refused, of_key) = (Vec::new(), Vec::new(), HashMap::new());
        Timeline { parts, came, refused, columns, of_key, is_cut: false }
    }

    /// Counts a record. Times do not go back.
    pub fn add(&mut self, time: u64, key: u32, refused: bool) {
        let (at, longer) = self.parts.place(time);
        if let Some(longer) = longer {
            merge(&mut self.came, longer);
            merge(&mut self.refused, longer);
        }
        add(&mut self.came, at, 1);
        add(&mut self.refused, at, u64::from(refused));
        let (column, longer) = self.columns.place(time);
        if let Some(longer) = longer {
            self.of_key.values_mut().for_each(|counts| merge(counts, longer));
        }
        if !refused || key == NO_KEY {
            return;
        }
        if self.of_key.len() >= REFUSED && !self.of_key.contains_key(&key) {
            self.is_cut = true;
            return;
        }
        add(self.of_key.entry(key).or_default(), column, 1);
    }

    /// Returns the start of the first part and the length of a part, in nanoseconds, and of each part how many records
    /// came and how many were refused.
    pub fn parts(&self) -> (u64, u64, impl Iterator<Item = (u64, u64)> + '_) {
        (
            self.parts.start.unwrap_or(0),
            self.parts.width,
            self.came.iter().copied().zip(self.refused.iter().copied()),
        )
    }

    /// Returns the start and the length of the parts of the times of keys, and how many there are.
    pub fn columns(&self) -> (u64, u64, usize) {
        let count = self.of_key.values().map(Vec::len).max().unwrap_or(0);
        (self.columns.start.unwrap_or(0), self.columns.width, count)
    }

    /// Returns how often a key was refused in each part.
    pub fn refused(&self, key: u32) -> &[u32] {
        self.of_key.get(&key).map_or(&[], |counts| counts)
    }

    /// Drops the keys that are not in the sample any more.
    pub fn keep(&mut self, to: &[u32]) {
        let new = |key: u32| to.get(key as usize).copied().unwrap_or(key);
        let kept = std::mem::take(&mut self.of_key).into_iter().map(|(key, counts)| (new(key), counts));
        self.of_key = kept.filter(|(key, _)| *key != NO_KEY).collect();
    }
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_longer_and_keep_their_counts() {
        let mut state = 5u64;
        for span in [10, 1_000, 100_000, 10_000_000] {
            let (mut timeline, mut times) = (Timeline::new(), Vec::new());
            // A minute before the hour ends.
            let mut now = 1_700_002_740 * HZ;
            for number in 0..5_000u32 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                now += (state >> 33) % (span * HZ / 2_500);
                let refused = state >> 63 == 1;
                timeline.add(now, number % 7, refused);
                times.push((now, number % 7, refused));
            }
            let starts_with_the_first = |start: u64, width: u64| {
                assert!(
                    start.is_multiple_of(width) && (start..start + width).contains(&times[0].0),
                    "{start} and {width}"
                );
            };
            let (start, width, parts) = timeline.parts();
            starts_with_the_first(start, width);
            let parts: Vec<_> = parts.collect();
            assert!(
                parts.len() <= PARTS && (parts.len() > PARTS / 7 || span == 10),
                "{} parts of {width}",
                parts.len()
            );
            for (part, (came, refused)) in parts.iter().enumerate() {
                let from = start + part as u64 * width;
                let here = times.iter().filter(|(time, ..)| (from..from + width).contains(time));
                let (mut all, mut no) = (0, 0);
                here.for_each(|(_, _, refused)| (all, no) = (all + 1, no + u64::from(*refused)));
                assert_eq!((*came, *refused), (all, no), "part {part} of {span} s");
            }
            let (start, width, columns) = timeline.columns();
            starts_with_the_first(start, width);
            assert!(columns <= COLUMNS);
            for key in 0..7 {
                for (column, count) in timeline.refused(key).iter().enumerate() {
                    let from = start + column as u64 * width;
                    let is_here = |time: &u64| (from..from + width).contains(time);
                    let here =
                        times.iter().filter(|(time, of, refused)| *of == key && *refused && is_here(time));
                    assert_eq!(here.count() as u32, *count);
                }
            }
            timeline.keep(&[NO_KEY, 0, 1, NO_KEY, 2, 3, 4]);
            assert!(timeline.refused(5).is_empty() && !timeline.refused(4).is_empty());
        }
    }
}
