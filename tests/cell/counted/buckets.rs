//! A token bucket, and a leaky bucket as a meter, are GCRA under other names: equal answers, in their own numbers.

use super::frame::cost;
use crate::common::{cases, size_from};
use tatcell::{Decision, ExclusiveCell, LimitSpec, Verdict};

/// A token bucket by its definition, in exact tokens of `1 / period`: `tokens` flow in per `period`.
struct TokenBucket {
    tokens: u128,
    period: u128,
    capacity: u128,
    /// What it holds, times period.
    holds: u128,
    at: u64,
}

impl TokenBucket {
    fn take(&mut self, now: u64, cost: u64) -> Option<u64> {
        let full = self.capacity * self.period;
        self.holds = full.min(self.holds + u128::from(now - self.at) * self.tokens);
        self.at = now;
        let price = u128::from(cost) * self.period;
        if self.holds < price {
            return None;
        }
        self.holds -= price;
        Some((self.holds / self.period) as u64)
    }
}

/// A leaky bucket by its definition: `units` leak out per `period`.
struct LeakyBucket {
    units: u128,
    period: u128,
    depth: u128,
    /// What lies in it, times period.
    level: u128,
    at: u64,
}

impl LeakyBucket {
    fn pour(&mut self, now: u64, cost: u64) -> Option<u64> {
        self.level = self.level.saturating_sub(u128::from(now - self.at) * self.units);
        self.at = now;
        let next = self.level + u128::from(cost) * self.period;
        if next > self.depth * self.period {
            return None;
        }
        self.level = next;
        Some(next.div_ceil(self.period) as u64)
    }
}

/// Unit and weighted costs, at rates whose emission interval is a whole number of ticks, so that nothing is rounded.
#[test]
fn gcra_token_bucket_and_leaky_bucket_answer_alike() {
    cases(size_from("TATCELL_COUNTED_STEPS", 4e5 as u64) / 1_000, |rng| {
        let units = 1 + rng.scaled(12);
        let period = units * (1 + rng.scaled(20));
        let size = 1 + rng.scaled(10);
        let token = LimitSpec::token_bucket(units, period, size);
        assert_eq!(token, LimitSpec::leaky_bucket(units, period, size));
        assert_eq!(token, LimitSpec::new(units, period, size));
        let limit = token.build().unwrap();
        let (units, wide, depth) = (u128::from(units), u128::from(period), u128::from(size));
        let mut now = rng.scaled(40);
        let mut bucket =
            TokenBucket { tokens: units, period: wide, capacity: depth, holds: depth * wide, at: now };
        let mut meter = LeakyBucket { units, period: wide, depth, level: 0, at: now };
        let mut cell = ExclusiveCell::new();
        let weighted = rng.one_in(2);
        for _ in 0..1_000 {
            let bits = if rng.one_in(50) { 40 } else { 18 };
            now += rng.scaled(bits);
            let cost = if weighted { cost(rng, size) } else { 1 };
            let answer: Decision = cell.check_ex(&limit, now, cost, 0);
            let (tokens, level) = (bucket.take(now, cost), meter.pour(now, cost));
            assert_eq!(tokens.is_some(), answer.passes(), "{token:?} now {now} cost {cost}");
            assert_eq!(level.is_some(), answer.passes());
            if let (Some(tokens), Some(level)) = (tokens, level) {
                assert_eq!((answer.tokens(), answer.level()), (tokens, level));
                assert_eq!(answer.tokens() + answer.level(), size);
            } else {
                assert_eq!(answer.verdict == Verdict::Never, cost > size);
            }
        }
    });
}
