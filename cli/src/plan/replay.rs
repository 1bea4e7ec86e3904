//! Replays the records through a table of the library, under one limit and one policy.
//!
//! Every record is asked, also those of keys outside the sample: the table has a fixed size, and its full sets and the
//! refused share are those of all keys.

use std::time::Duration;

use tatcell::{
    full_set_ppb, lines_for, lines_for_load, Counters, ExclusiveTable, FullPolicy, LimitSpec, Line, Request,
    Table, TableLimit, TableOptions, Tracking,
};

use super::keys::{keep, NO_KEY};
use super::order::Held;
use crate::limit::Asked;
use crate::units::HZ;

/// A window of time with its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its start, in nanoseconds since 1970.
    pub start: u64,
    /// Refused units' requests in it.
    pub refused: u64,
    /// All requests in it.
    pub requests: u64,
}

/// Counts the keys in debt: each answer says for how long its key now is.
///
/// Time is cut into parts, 4096 in the longest debt, and a key counts until the part in which its debt ends is over. So
/// the count may be too large, by keys whose debt ended a moment ago, and is never too small.
struct Live {
    width: u64,
    /// How many debts end in each part, from that of now on, around in a ring.
    ends: Vec<u64>,
    /// Of each key, the part in which its debt ends.
    end: Vec<u64>,
    now: u64,
    count: u64,
    peak: u64,
}

impl Live {
    const PARTS: u64 = 4096;

    fn new(horizon: u64) -> Live {
        let width = (horizon / Live::PARTS).max(1);
        // The part of now, and the one into which the last debt reaches.
        let ends = vec![0; (horizon / width + 2) as usize];
        Live { width, ends, end: Vec::new(), now: 0, count: 0, peak: 0 }
    }

    fn place(&self, part: u64) -> usize {
        (part % self.ends.len() as u64) as usize
    }

    /// A key is in debt until then.
    fn until(&mut self, key: usize, now: u64, reset_after: u64, one_in: u64) {
        let now_part = now / self.width;
        while self.now < now_part && self.count > 0 {
            let place = self.place(self.now);
            self.count -= std::mem::take(&mut self.ends[place]);
            self.now += 1;
        }
        self.now = now_part;
        if key >= self.end.len() {
            self.end.resize(key + 1, 0);
        }
        self.forget(self.end[key]);
        let longest = (self.ends.len() as u64 - 1) * self.width;
        // No debt at all: an end before now.
        self.end[key] = 0;
        if reset_after > 0 {
            let part = (now + reset_after.min(longest)) / self.width;
            let part = part.min(now_part + self.ends.len() as u64 - 1);
            let place = self.place(part);
            self.ends[place] += 1;
            self.count += 1;
            self.end[key] = part;
            self.peak = self.peak.max(self.count * one_in);
        }
    }

    /// Takes out a debt that ends in this part, if it has not ended before now.
    fn forget(&mut self, part: u64) {
        if part >= self.now && part > 0 {
            let place = self.place(part);
            self.ends[place] -= 1;
            self.count -= 1;
        }
    }

    fn keep(&mut self, to: &[u32]) {
        let known = self.end.len().min(to.len());
        for (key, _) in to[..known].iter().enumerate().filter(|(_, to)| **to == NO_KEY) {
            self.forget(self.end[key]);
        }
        keep(&mut self.end, 1, &to[..known]);
    }
}

/// A table that is asked for every record.
pub struct Replay {
    /// The limit.
    pub asked: Asked,
    /// What a full set does.
    pub policy: FullPolicy,
    /// What the table counted.
    pub counters: Counters,
    /// The window with the most refused.
    pub worst: Window,
    table: ExclusiveTable<'static>,
    limit: TableLimit,
    slots: usize,
    refused: Vec<u64>,
    window: u64,
    current: Window,
    live: Live,
    swept: u64,
    sweep_from: usize,
    sweep_interval: u64,
    horizon: u64,
    last: u64,
}

/// Makes a table for one limit. Its memory is not given back: it lasts as long as the program's work.
pub fn table(
    spec: LimitSpec,
    policy: FullPolicy,
    seed: [u8; 16],
    slots: usize,
) -> Result<ExclusiveTable<'static>, String> {
    let mut lines = Vec::new();
    lines.resize_with(lines_for(slots), Line::new);
    let options = TableOptions::new(spec).policy(policy).seed(seed).tick_hz(HZ);
    Table::init_exclusive(lines.leak(), &options).map_err(|error| error.to_string())
}

impl Replay {
    /// Makes the table.
    pub fn new(
        asked: Asked,
        policy: FullPolicy,
        seed: [u8; 16],
        slots: usize,
        window: Duration,
    ) -> Result<Replay, String> {
        let fail = |what: String| format!("limit {:?}: {what}", asked.text);
        let table = table(asked.spec, policy, seed, slots).map_err(fail)?;
        let limit = table.limit(&asked.spec).map_err(|error| fail(error.to_string()))?;
        let info = table.info();
        Ok(Replay {
            policy,
            counters: Counters::default(),
            worst: Window::default(),
            limit,
            slots: table.slots(),
            refused: Vec::new(),
            window: u64::try_from(window.as_nanos()).unwrap_or(u64::MAX).max(1),
            current: Window::default(),
            live: Live::new(info.horizon),
            swept: 0,
            sweep_from: 0,
            sweep_interval: info.sweep_interval.max(2048),
            horizon: info.horizon,
            last: 0,
            table,
            asked,
        })
    }

    /// Asks the table. `one_in`: for how many keys each numbered one stands.
    pub fn ask(&mut self, held: &Held, one_in: u64) -> Result<(), String> {
        self.upkeep(held.time);
        let start = held.time - held.time % self.window;
        if start != self.current.start {
            self.close();
            self.current = Window { start, ..Window::default() };
        }
        self.current.requests += 1;
        let request = Request { limit: &self.limit, now: held.time, cost: held.cost, room: 0 };
        let answer = self.table.check_ex(&request, held.hash, Some(&mut self.counters));
        let answer = answer.map_err(|error| error.to_string())?;
        if held.key != NO_KEY && answer.tracking != Tracking::Untracked {
            self.live.until(held.key as usize, held.time, answer.reset_after, one_in);
        }
        if !answer.passes() {
            self.current.refused += 1;
            if held.key != NO_KEY {
                let key = held.key as usize;
                if key >= self.refused.len() {
                    self.refused.resize(key + 1, 0);
                }
                self.refused[key] += 1;
            }
        }
        Ok(())
    }

    /// What a program does that runs this table, by the clock of the log.
    fn upkeep(&mut self, now: u64) {
        if self.last == 0 {
            self.swept = now;
        }
        if now - self.last > self.sweep_interval / 4 && self.last != 0 {
            // A gap: the sweep that a timer would have made after the last debt had drained.
            let drained = self.last.saturating_add(self.horizon).saturating_add(1);
            if drained < now {
                self.table.sweep(drained, 0, self.slots);
            }
        }
        self.last = now;
        if now - self.swept > self.sweep_interval / 2048 {
            self.swept = now;
            self.sweep_from = self.table.sweep(now, self.sweep_from, self.slots / 1024 + 1);
        }
    }

    fn close(&mut self) {
        if self.current.refused > self.worst.refused {
            self.worst = self.current;
        }
    }

    /// Ends the replay.
    pub fn finish(&mut self) {
        self.close();
    }

    /// Returns how many requests of a key were refused.
    pub fn refused(&self, key: usize) -> u64 {
        self.refused.get(key).copied().unwrap_or(0)
    }

    /// Returns how many requests were refused, and how many were asked.
    pub fn totals(&self) -> (u64, u64) {
        let c = &self.counters;
        let refused = c.non_conforming + c.never + c.contended;
        (refused, refused + c.conforming + c.shadow)
    }

    /// Returns the slots and bytes of the table, its highest load in millionths, and the chance of a full set then.
    pub fn load(&self) -> (usize, usize, u64, u64) {
        let ppm = (self.live.peak.saturating_mul(1_000_000) / self.slots as u64).min(1_000_000);
        (self.slots, lines_for(self.slots) * 64, ppm, full_set_ppb(ppm))
    }

    /// Returns the most keys that were in debt at a time.
    pub fn peak_live(&self) -> u64 {
        self.live.peak
    }

    /// Returns by how much the rate is slower than asked for, in billionths: a table's word rounds it.
    pub fn rate_error_ppb(&self) -> u64 {
        self.limit.info().rate_error_ppb
    }

    /// Drops the keys that are not in the sample any more.
    pub fn keep(&mut self, to: &[u32]) {
        let known = self.refused.len().min(to.len());
        keep(&mut self.refused, 1, &to[..known]);
        self.live.keep(to);
    }
}

/// Returns the bytes of the smallest table in which so many keys in debt meet a full set with at most this chance.
pub fn bytes_for(live: u64, target_ppb: u64) -> usize {
    lines_for_load(live.max(1), target_ppb) * 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_keys_are_in_debt_as_answers_say() {
        let mut live = Live::new(10_000);
        let mut ends = [0u64; 50];
        let (mut now, mut state, mut peak) = (1_000u64, 9u64, 0);
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (key, reset) = ((state >> 33) as usize % 50, (state >> 40) % 10_001);
            now += (state >> 50) % 400;
            live.until(key, now, reset, 1);
            ends[key] = now + reset;
            // A part is 2 ticks long here: a debt that ended in the part of now still counts.
            let exact = ends.iter().filter(|end| **end > now).count() as u64;
            let roomy = ends.iter().filter(|end| **end + 2 > now).count() as u64;
            assert!((exact..=roomy).contains(&live.count), "{exact} to {roomy}, not {}", live.count);
            peak = peak.max(live.count);
        }
        assert_eq!(live.peak, peak);
        assert!(peak > 20);
    }
}
