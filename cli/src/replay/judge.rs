//! Whether a server can have decided so by the limit, at some time while a request was on its way.
//!
//! Nobody outside knows when a server decided: at some time between the sending of a request and its answer. So its
//! theoretical arrival time of a key is not one number here, but lies between two bounds. They follow from what the
//! server has answered, whatever the library said, so one odd decision does not make the next ones odd:
//!
//! ```text
//! passed    possible if   least + price <= latest + full
//!           then          least = max(least, earliest) + price
//!                         most = min(max(most, latest) + price, latest + full)
//! refused   possible if   most + price > earliest + full
//!           then          least = max(least, earliest + full - price)
//!                         most = min(most, latest + full)
//! ```
//!
//! Times are in parts of a nanosecond, 1 / units of it, so every number is whole and exact. After an impossible
//! decision nothing is known of the key, and its bounds are as far apart as they can be.

use std::time::Duration;

use tatcell::LimitSpec;

/// Between which bounds the theoretical arrival time of a key lies. At first there is no debt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    least: i128,
    most: i128,
}

/// A limit, and how exact the clock of the server is.
pub struct Judge {
    units: i128,
    period: i128,
    full: i128,
    slack: i128,
}

/// A request: when it was sent and answered, in nanoseconds since the start, and its units.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// When it was sent.
    pub sent: u64,
    /// When the answer came.
    pub answered: u64,
    /// Its units.
    pub cost: u64,
}

impl Judge {
    /// Takes a rate and a burst. The clock of the server may be wrong by `slack`.
    pub fn new(limit: &LimitSpec, slack: Duration) -> Judge {
        let (units, period, burst) = limit.numbers();
        let slack = i128::try_from(slack.as_nanos()).unwrap_or(i128::MAX >> 70);
        let (units, period) = (i128::from(units), i128::from(period));
        Judge { units, period, full: i128::from(burst) * period, slack }
    }

    /// Takes note of a decision. Returns whether the limit can have made it.
    pub fn can_be(&self, bounds: &mut Bounds, asked: Asked, passed: bool) -> bool {
        let earliest = (i128::from(asked.sent) - self.slack) * self.units;
        let latest = (i128::from(asked.answered) + self.slack) * self.units;
        let price = i128::from(asked.cost) * self.period;
        let possible = if passed {
            price <= self.full && bounds.least + price <= latest + self.full
        } else {
            price > self.full || bounds.most + price > earliest + self.full
        };
        if !possible {
            *bounds = Bounds { least: earliest, most: latest + self.full };
        } else if passed {
            bounds.least = bounds.least.max(earliest) + price;
            bounds.most = (bounds.most.max(latest) + price).min(latest + self.full);
        } else {
            bounds.least = bounds.least.max(earliest + self.full - price);
            bounds.most = bounds.most.min(latest + self.full);
        }
        possible
    }

    /// Takes note of a request without an answer. The server may charge it long after nobody waits any more: until the
    /// next answer nothing is known of the most.
    pub fn unknown(&self, bounds: &mut Bounds) {
        bounds.most = i128::MAX >> 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A token bucket with a clock of its own, which decides somewhere on the way.
    struct Bucket {
        burst: u64,
        every: u64,
        tat: u64,
    }

    impl Bucket {
        fn passes(&mut self, now: u64) -> bool {
            let tat = self.tat.max(now) + self.every;
            let passes = tat <= now + self.burst * self.every;
            if passes {
                self.tat = tat;
            }
            passes
        }
    }

    /// How many decisions of a server with this burst and interval cannot be those of 10/s burst 5, of how many.
    fn impossible(burst: u64, every_ms: u64, slack_ms: u64, off: u64) -> (u64, u64) {
        let limit = LimitSpec::parse("10/s burst 5", 1_000_000_000).expect("a limit");
        let judge = Judge::new(&limit, Duration::from_millis(slack_ms));
        let mut bucket = Bucket { burst, every: every_ms * MS, tat: 0 };
        let (mut bounds, mut random, mut now, mut odd, mut refused) = (Bounds::default(), 1u64, 0, 0, 0);
        for request in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // A pause now and then: a full burst tells more than a debt that stays.
            now += (random >> 40) % (100 * MS) + if request % 100 == 0 { 2_000 * MS } else { 0 };
            let on_its_way = (random >> 33) % (20 * MS);
            let decided = now + (random >> 20) % (on_its_way + 1);
            let passed = bucket.passes(decided + off);
            refused += u64::from(!passed);
            let asked = Asked { sent: now, answered: now + on_its_way, cost: 1 };
            odd += u64::from(!judge.can_be(&mut bounds, asked, passed));
            now += on_its_way;
        }
        (odd, refused)
    }

    #[test]
    fn no_decision_of_the_same_limit_is_impossible_and_some_of_another_are() {
        let (odd, refused) = impossible(5, 100, 0, 0);
        assert!(odd == 0 && refused > 5_000, "{odd} of {refused}");
        // The clock of the server may begin anywhere.
        assert_eq!(impossible(5, 100, 0, 7_777_777_777).0, 0);
        for (burst, every) in [(4, 100), (6, 100), (5, 90), (5, 110), (5, 200)] {
            let odd = impossible(burst, every, 0, 0).0;
            assert!(odd > 20, "burst {burst}, every {every} ms: {odd}");
        }
    }

    #[test]
    fn a_request_without_an_answer_may_be_charged_until_the_next_one() {
        let limit = LimitSpec::parse("10/s burst 5", 1_000_000_000).expect("a limit");
        let judge = Judge::new(&limit, Duration::ZERO);
        let at = |ms: u64| Asked { sent: ms * MS, answered: (ms + 1) * MS, cost: 1 };
        let mut bounds = Bounds::default();
        judge.unknown(&mut bounds);
        // The server stood still for 9 seconds, and then charged all of the burst.
        assert!(judge.can_be(&mut bounds, at(9_000), false));
        assert!(judge.can_be(&mut bounds, at(9_050), false));
        assert!(!judge.can_be(&mut bounds, at(9_501), false), "the burst is full again");
    }

    #[test]
    fn more_than_the_burst_never_passes() {
        let limit = LimitSpec::parse("10/s burst 5", 1_000_000_000).expect("a limit");
        let judge = Judge::new(&limit, Duration::ZERO);
        let asked = Asked { sent: 0, answered: MS, cost: 6 };
        let mut bounds = Bounds::default();
        assert!(judge.can_be(&mut bounds, asked, false));
        assert!(!judge.can_be(&mut bounds, asked, true));
    }
}
