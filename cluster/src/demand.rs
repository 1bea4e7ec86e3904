//! How many units to ask for, and how long a refusal counts. Pure; the store's thread keeps one for each line.

use crate::split::Split;

/// What the store's thread remembers about a line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    /// The owner; another key, or the key under another version of the limit, starts anew.
    pub tag: u64,
    pub version: u64,
    /// The key, and its value in the store after the last grant.
    pub key: Box<[u8]>,
    pub stamp: String,
    asked_at: u64,
    per_second: f64,
    wanted: u64,
    lead_us: u64,
    refusals: u32,
}

/// The requests that wait for the answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    /// The units of all of them.
    pub units: u64,
    /// Units of the largest request.
    pub largest: u64,
}

/// The shortest and the longest time that an ask provides for.
const SPAN_NS: (f64, f64) = (2e6, 1e9);

/// The most refusals in a row that lengthen the wait.
const MAX_REFUSALS: u32 = 3;

impl Demand {
    pub(crate) fn new(tag: u64, version: u64, key: Box<[u8]>) -> Demand {
        Demand { tag, version, key, ..Demand::default() }
    }

    /// Returns for how many nanoseconds a piece is useful: the wait until it begins, and then the hold.
    fn span_ns(&self, split: &Split) -> f64 {
        (split.hold_ns as f64 + self.lead_us as f64 * 1e3).clamp(SPAN_NS.0, SPAN_NS.1)
    }

    /// Returns the units wanted and the fewest that are useful: what will be spent before it lapses and half as much
    /// again, but at most twice as much as the last time.
    pub(crate) fn ask(&mut self, split: &Split, waiting: Waiting, offered: u64, now: u64) -> (u64, u64) {
        if self.asked_at != 0 {
            let ns = now.saturating_sub(self.asked_at).max(1_000_000) as f64;
            let rate = offered as f64 * 1e9 / ns;
            self.per_second = if self.per_second == 0.0 { rate } else { (self.per_second + rate) / 2.0 };
        }
        self.asked_at = now;
        let goal = (self.per_second * self.span_ns(split) * 1.5e-9) as u64;
        let min = split.min.max(waiting.largest).min(split.largest_cost);
        let most = split.most.max(min);
        let want = goal.min(self.wanted.saturating_mul(2)).max(waiting.units).clamp(min, most);
        self.wanted = want;
        (want, min)
    }

    /// Records a grant. Returns true if more than a unit or two will be needed before it lapses: then the next piece is
    /// asked for while this one is spent.
    pub(crate) fn granted(&mut self, split: &Split, lead_us: u64) -> bool {
        (self.lead_us, self.refusals) = (lead_us, 0);
        self.per_second * self.span_ns(split) >= 2e9
    }

    /// Records a refusal. Returns by how many nanoseconds at most it counts longer than the store says: so nodes do not
    /// come back all at one instant, and come later each time.
    pub(crate) fn refused(&mut self, split: &Split, min: u64, lead_us: u64) -> u64 {
        self.lead_us = lead_us;
        let spread = (min.saturating_mul(split.unit_ns) << self.refusals) / 2;
        self.refusals = (self.refusals + 1).min(MAX_REFUSALS);
        spread
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;
    use crate::split::SharedLimit;
    use std::time::Duration;

    fn split() -> Split {
        let limit = SharedLimit::new("x", 10_000, Duration::from_secs(1), 1_000).reserve(0, 0);
        limit.split(1, Duration::from_millis(1)).expect("a limit")
    }

    #[test]
    fn asks_grow_twofold_up_to_what_is_spent_in_time() {
        let (split, mut demand) = (split(), Demand::default());
        let mut asks = Vec::new();
        for turn in 1..=8u64 {
            // 5000 units a second are offered.
            asks.push(demand.ask(&split, Waiting::default(), 50, turn * 10_000_000).0);
        }
        // 1.5 times 5000 a second for a hold of 12.5 ms.
        assert_eq!((split.min, split.hold_ns), (50, 12_500_000));
        assert_eq!(asks, [50, 93, 93, 93, 93, 93, 93, 93]);
    }

    #[test]
    fn what_waits_is_asked_for_within_what_can_be_granted() {
        let (split, mut demand) = (split(), Demand::default());
        assert_eq!((split.most, split.largest_cost), (218, 875));
        assert_eq!(demand.ask(&split, Waiting { units: 120, largest: 7 }, 0, 1), (120, 50));
        assert_eq!(demand.ask(&split, Waiting { units: 5_000, largest: 70 }, 0, 1), (218, 70));
        assert_eq!(demand.ask(&split, Waiting { units: 600, largest: 500 }, 0, 1), (500, 500));
    }

    #[test]
    fn refusals_count_longer_each_time_up_to_eightfold() {
        let (split, mut demand) = (split(), Demand::default());
        let spreads: Vec<u64> = (0..5).map(|_| demand.refused(&split, 2, 0)).collect();
        let unit = split.unit_ns;
        assert_eq!(spreads, [unit, 2 * unit, 4 * unit, 8 * unit, 8 * unit]);
        assert!(!demand.granted(&split, 0));
        assert_eq!(demand.refused(&split, 2, 0), unit);
    }
}
