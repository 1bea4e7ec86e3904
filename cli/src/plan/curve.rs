//! Arrival curves: for each rate, the burst that a key needs so as never to be refused.
//!
//! A limit of `units` a `period` with a burst B refuses nobody whose debt never exceeds B units. The debt is that of a
//! leaky bucket into which each record puts its cost, and which drains at the rate. Here a debt is kept in parts of a
//! unit, 1 / period of it, so every number is whole and the answer exact:
//!
//! ```text
//! debt = max(debt - elapsed * units, 0) + cost * period        needed burst = ceil(largest debt / period)
//! ```
//!
//! A debt that needs more than 64 bits stays at the largest number, and the answer says that it is a least one.

use tatcell::LimitSpec;

use super::keys::keep;

/// A rate, in lowest terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How it was written.
    pub text: String,
    /// Units a period.
    pub units: u64,
    /// The period, in nanoseconds.
    pub period: u64,
}

impl Rate {
    /// Reads a rate, as in a limit: `10/s`, `100/min`, `1.5MB/s`.
    pub fn parse(text: &str) -> Result<Rate, String> {
        let fail = |what: String| format!("rate {text:?}: {what}");
        let spec = LimitSpec::parse(text, 1_000_000_000).map_err(|error| fail(error.to_string()))?;
        if text.contains("burst") {
            return Err(fail(
                "a rate has no burst: the burst is the answer; for a whole limit use --limit".into(),
            ));
        }
        let info = spec.build().map_err(|error| fail(error.to_string()))?.info();
        let (mut a, mut b) = (info.units, info.period);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Ok(Rate { text: text.into(), units: info.units / a, period: info.period / a })
    }

    /// Returns the units that may come in so many nanoseconds, rounded up.
    pub fn units_in(&self, time: u64) -> u64 {
        let units = (u128::from(time) * u128::from(self.units)).div_ceil(u128::from(self.period));
        u64::try_from(units).unwrap_or(u64::MAX)
    }
}

/// The curves of all keys.
pub struct Curves {
    /// The rates, one point of each curve.
    pub rates: Vec<Rate>,
    /// Of each key, in one place: its last time, its records, and for each rate its debt and its largest debt.
    state: Vec<u64>,
    width: usize,
}

/// Words of a cache line.
const LINE: usize = 8;

impl Curves {
    /// Starts without keys.
    pub fn new(rates: Vec<Rate>) -> Curves {
        Curves { width: 2 + 2 * rates.len(), rates, state: Vec::new() }
    }

    /// Adds a record of a key; keys are numbered from 0. Times do not go back.
    pub fn add(&mut self, key: usize, time: u64, cost: u64) {
        let end = (key + 1) * self.width;
        if self.state.len() < end {
            self.state.resize(end, 0);
        }
        let [last, count, debts @ ..] = &mut self.state[end - self.width..end] else { return };
        let elapsed = if *count == 0 { 0 } else { time - *last };
        (*last, *count) = (time, *count + 1);
        for (rate, debt) in self.rates.iter().zip(debts.chunks_exact_mut(2)) {
            let drained = elapsed.saturating_mul(rate.units);
            debt[0] = debt[0].saturating_sub(drained).saturating_add(cost.saturating_mul(rate.period));
            debt[1] = debt[1].max(debt[0]);
        }
    }

    /// Loads what is known of a key into the cache; returns a part of it, so that it is not left out.
    pub fn touch(&self, key: usize) -> u64 {
        let row = self.state.chunks_exact(self.width).nth(key).unwrap_or_default();
        row.iter().step_by(LINE).fold(row.last().copied().unwrap_or(0), |sum, word| sum ^ word)
    }

    /// Returns the records of a key.
    pub fn records(&self, key: usize) -> u64 {
        self.state.get(key * self.width + 1).copied().unwrap_or(0)
    }

    /// The largest debt of a key, in parts of a unit.
    fn most(&self, key: usize, rate: usize) -> u64 {
        self.state.get(key * self.width + 3 + 2 * rate).copied().unwrap_or(0)
    }

    /// Returns the burst that a key needs at a rate, at least 1.
    pub fn needed(&self, key: usize, rate: usize) -> u64 {
        self.most(key, rate).div_ceil(self.rates[rate].period).max(1)
    }

    /// Returns whether a needed burst is a least one, because a debt was too large for 64 bits.
    pub fn is_least(&self, key: usize, rate: usize) -> bool {
        self.most(key, rate) == u64::MAX
    }

    /// Drops the keys that are not in the sample any more.
    pub fn keep(&mut self, to: &[u32]) {
        let known = self.state.len() / self.width;
        keep(&mut self.state, self.width, &to[..known]);
    }

    /// Returns about how many bytes the curves take.
    pub fn memory(&self) -> usize {
        self.state.capacity() * 8
    }
}
