//! Counts the keys that are in debt at a time.

use super::keys::{keep, NO_KEY};

/// Counts the keys in debt: each answer says for how long its key now is.
///
/// Time is cut into parts, 4096 in the longest debt, and a key counts until the part in which its debt ends is over. So
/// the count may be too large, by keys whose debt ended a moment ago, and is never too small.
pub(super) struct Live {
    width: u64,
    /// How many debts end in each part, from that of now on, around in a ring.
    ends: Vec<u64>,
    /// The part in which the debt of each key ends.
    end: Vec<u64>,
    now: u64,
    count: u64,
    /// The most that were in debt at a time.
    pub(super) peak: u64,
}

impl Live {
    const PARTS: u64 = 4096;

    pub(super) fn new(horizon: u64) -> Live {
        let width = (horizon / Live::PARTS).max(1);
        // The part of now, and the one into which the last debt reaches.
        let ends = vec![0; (horizon / width + 2) as usize];
        Live { width, ends, end: Vec::new(), now: 0, count: 0, peak: 0 }
    }

    fn place(&self, part: u64) -> usize {
        (part % self.ends.len() as u64) as usize
    }

    /// A key is in debt until then.
    pub(super) fn until(&mut self, key: usize, now: u64, reset_after: u64, one_in: u64) {
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
            let part = now.saturating_add(reset_after.min(longest)) / self.width;
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

    pub(super) fn keep(&mut self, to: &[u32]) {
        let known = self.end.len().min(to.len());
        for (key, _) in to[..known].iter().enumerate().filter(|(_, to)| **to == NO_KEY) {
            self.forget(self.end[key]);
        }
        keep(&mut self.end, 1, &to[..known]);
    }
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
