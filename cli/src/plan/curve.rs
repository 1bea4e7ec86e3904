//! Arrival curves: for each rate, the burst that a key needs so as never to be refused.
//!
//! A limit with a burst B refuses nobody whose debt never exceeds B units. A debt is that of a leaky bucket into which
//! each record puts its cost, and which drains at the rate. It is counted here as a table of the library counts it, so
//! that a replay of the answer refuses nobody. A table rounds the time of a unit up to its own unit of time, and
//! rounds clocks down:
//!
//! ```text
//! debt = max(debt - elapsed, 0) + cost * T        needed burst = ceil(largest debt / T)
//! ```
//!
//! How coarse that unit is depends on the burst: a longer debt needs a coarser one. So the bursts of a rate have
//! levels, and the library says what T is in each. A key keeps when its debt began, and what it has spent since. So if
//! a key needs the burst of the next level, its debt there follows from these numbers.
//!
//! Costs beyond 64 bits stay at the largest number, and the answer says that it is a least one.

use tatcell::{LimitSpec, Line, Table, TableOptions};

use super::keys::keep;
use crate::units::HZ;

/// How a table keeps a rate, for some of its bursts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    /// The bursts.
    least: u64,
    most: u64,
    /// T, in units of time.
    interval: u64,
    /// A tick is 2^shl units of time.
    shl: u32,
    /// A unit of time is 2^shr ticks.
    shr: u32,
    /// By how much the rate is slower than asked for, in billionths.
    error_ppb: u64,
    /// Whether a table holds these bursts.
    fits: bool,
}

/// A rate, in lowest terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How it was written.
    pub text: String,
    /// Units a period.
    pub units: u64,
    /// The period, in nanoseconds.
    pub period: u64,
    /// How tables keep it, as far as that was asked.
    levels: Vec<Level>,
}

impl Rate {
    /// Reads a rate, as in a limit: `10/s`, `100/min`, `1.5MB/s`.
    pub fn parse(text: &str) -> Result<Rate, String> {
        let fail = |what: String| format!("rate {text:?}: {what}");
        let spec = LimitSpec::parse(text, HZ).map_err(|error| fail(error.to_string()))?;
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
        let (units, period) = (info.units / a, info.period / a);
        let mut rate = Rate { text: text.into(), units, period, levels: Vec::new() };
        let first = rate.level(1).ok_or_else(|| fail("no word of a table holds one unit of it".into()))?;
        rate.levels.push(first);
        Ok(rate)
    }

    /// Returns the units that may come in `time` nanoseconds, rounded up.
    pub fn units_in(&self, time: u64) -> u64 {
        let units = (u128::from(time) * u128::from(self.units)).div_ceil(u128::from(self.period));
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    /// How a table keeps it that has this burst, or None if no table does.
    fn kept(&self, burst: u64) -> Option<Level> {
        let spec = LimitSpec::new(self.units, self.period, burst);
        let lines = [const { Line::EMPTY }; 4];
        let table = Table::init(&lines, &TableOptions::new(spec).seed([0; 16]).tick_hz(HZ)).ok()?;
        let info = table.limit(&spec).ok()?.info();
        Some(Level {
            least: burst,
            most: burst,
            interval: info.emission_q,
            shl: info.resolution.max(0).unsigned_abs(),
            shr: info.resolution.min(0).unsigned_abs(),
            error_ppb: info.rate_error_ppb,
            fits: true,
        })
    }

    /// The level that begins with this burst.
    fn level(&self, least: u64) -> Option<Level> {
        let first = self.kept(least)?;
        let is_same =
            |burst| self.kept(burst).is_some_and(|other| (other.shl, other.shr) == (first.shl, first.shr));
        // A level has about as many bursts as all before it.
        let mut high = least.saturating_mul(4);
        while is_same(high) {
            high = high.saturating_mul(4);
        }
        let mut low = least;
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            *(if is_same(middle) { &mut low } else { &mut high }) = middle;
        }
        Some(Level { most: low, ..first })
    }

    /// Finds the next level. Beyond the last one no table holds the burst; then the numbers are those of the last.
    fn grow(&mut self) {
        let last = self.levels[self.levels.len() - 1].clone();
        let least = last.most.saturating_add(1);
        let beyond = Level { least, most: u64::MAX, fits: false, ..last };
        self.levels.push(self.level(least).unwrap_or(beyond));
    }

    /// The level of a burst that was needed.
    fn of(&self, burst: u64) -> &Level {
        let found = self.levels.iter().find(|level| burst <= level.most);
        found.unwrap_or(&self.levels[self.levels.len() - 1])
    }

    /// Returns by how many billionths a table with this burst is slower than the rate.
    pub fn error_ppb(&self, burst: u64) -> u64 {
        self.of(burst).error_ppb
    }

    /// Returns the largest burst that a table holds, if this one is larger.
    pub fn largest_burst(&self, burst: u64) -> Option<u64> {
        let level = self.of(burst);
        (!level.fits).then_some(level.least - 1)
    }
}

impl Level {
    /// What is still owed at `now` of the units spent since `from`, in units of time.
    fn debt(&self, spent: u64, from: u64, now: u64) -> u128 {
        let elapsed = u128::from((now >> self.shr) - (from >> self.shr)) << self.shl;
        self.price(spent).saturating_sub(elapsed)
    }

    fn price(&self, units: u64) -> u128 {
        u128::from(units) * u128::from(self.interval)
    }
}

/// What is known of a key at a rate.
#[derive(Clone, Copy, Default)]
struct Point {
    /// When its debt began, and what it has spent since.
    from: u64,
    spent: u64,
    /// The burst that it needs.
    needed: u64,
}

impl Point {
    /// Adds a record if the first level has the burst that the key then needs, and all numbers fit 64 bits: nearly
    /// always, and in fewer instructions than `add`.
    fn add_few(&mut self, level: &Level, now: u64, cost: u64) -> Option<()> {
        if self.needed > level.most || level.shl > 0 {
            return None;
        }
        let elapsed = (now >> level.shr).saturating_sub(self.from >> level.shr);
        let before = self.spent.checked_mul(level.interval)?.saturating_sub(elapsed);
        let debt = before.checked_add(cost.checked_mul(level.interval)?)?;
        let mut needed = self.needed;
        if debt > needed.checked_mul(level.interval)? {
            needed = debt.div_ceil(level.interval);
            if needed > level.most {
                return None;
            }
        }
        let (from, spent) = if before == 0 { (now, 0) } else { (self.from, self.spent) };
        *self = Point { from, spent: spent.checked_add(cost)?, needed };
        Some(())
    }

    fn add(&mut self, rate: &mut Rate, now: u64, cost: u64) {
        if self.add_few(&rate.levels[0], now, cost).is_some() {
            return;
        }
        let mut level = rate.of(self.needed);
        let before = level.debt(self.spent, self.from, now);
        if before == 0 {
            (self.from, self.spent) = (now, 0);
        }
        self.spent = self.spent.saturating_add(cost);
        let mut debt = before + level.price(cost);
        if debt <= level.price(self.needed) {
            return;
        }
        loop {
            let needed = u64::try_from(debt.div_ceil(level.interval.into())).unwrap_or(u64::MAX);
            self.needed = needed.max(level.least);
            if self.needed <= level.most {
                return;
            }
            // It needs a coarser unit of time, in which its debt may be another.
            let (next, known) = (level.most.saturating_add(1), rate.levels.len());
            if rate.levels[known - 1].most < next {
                rate.grow();
            }
            level = rate.of(next);
            debt = level.debt(self.spent, self.from, now);
        }
    }
}

/// The curves of all keys.
pub struct Curves {
    /// The rates, one point of each curve.
    pub rates: Vec<Rate>,
    /// The records of each key.
    counts: Vec<u64>,
    /// The points of all keys, one key after the other.
    points: Vec<Point>,
}

/// Points of a cache line, rounded down.
const LINE: usize = 2;

impl Curves {
    /// Starts without keys.
    pub fn new(rates: Vec<Rate>) -> Curves {
        Curves { rates, counts: Vec::new(), points: Vec::new() }
    }

    /// Adds a record of a key; keys are numbered from 0. Times do not go back.
    pub fn add(&mut self, key: usize, time: u64, cost: u64) {
        let width = self.rates.len();
        if self.counts.len() <= key {
            self.counts.resize(key + 1, 0);
            self.points.resize((key + 1) * width, Point::default());
        }
        self.counts[key] += 1;
        let points = &mut self.points[key * width..(key + 1) * width];
        self.rates.iter_mut().zip(points).for_each(|(rate, point)| point.add(rate, time, cost));
    }

    /// Loads what is known of a key into the cache; returns a part of it, so that it is not left out.
    pub fn touch(&self, key: usize) -> u64 {
        let width = self.rates.len();
        let row = self.points.get(key.saturating_mul(width)..).unwrap_or_default();
        let row = &row[..width.min(row.len())];
        let row = row.iter().step_by(LINE).chain(row.last());
        row.fold(self.records(key), |sum, point| sum ^ point.needed)
    }

    /// Returns the records of a key.
    pub fn records(&self, key: usize) -> u64 {
        self.counts.get(key).copied().unwrap_or(0)
    }

    /// Returns the burst that a key needs at a rate, at least 1.
    pub fn needed(&self, key: usize, rate: usize) -> u64 {
        self.points.get(key * self.rates.len() + rate).map_or(1, |point| point.needed.max(1))
    }

    /// Returns whether a needed burst is a least one, because it was too large for 64 bits.
    pub fn is_least(&self, key: usize, rate: usize) -> bool {
        self.needed(key, rate) == u64::MAX
    }

    /// Drops the keys that are not in the sample any more.
    pub fn keep(&mut self, to: &[u32]) {
        let known = self.counts.len();
        keep(&mut self.counts, 1, &to[..known]);
        keep(&mut self.points, self.rates.len(), &to[..known]);
    }

    /// Returns about how many bytes the curves take.
    pub fn memory(&self) -> usize {
        self.counts.capacity() * 8 + self.points.capacity() * size_of::<Point>()
    }
}
