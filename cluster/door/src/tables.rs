//! Limits of any rate in memory of a fixed size.
//!
//! A slot of the core's table keeps a TAT in the table's unit of time. So a table keeps limits whose burst drains
//! within a horizon, and whose unit takes 1024 units of the table's time or more: to a precision of 1/1024. Several
//! tables, each of another unit of time, cover all limits. A limit lives in the first table of this list that fits it.
//!
//! | unit of time | one unit takes at least | the burst drains within | tag |
//! |---|---|---|---|
//! | 1/64 ns | 16 ns | 7 s | 20 bits |
//! | 1 ns | 1.024 us | 18 minutes | 20 bits |
//! | 32 ns | 32.8 us | 9.7 hours | 20 bits |
//! | 1.024 us | 1.05 ms | 13 days | 20 bits |
//! | 32.8 us | 33.6 ms | 1.1 years | 20 bits |
//! | 1.05 ms | 1.07 s | 36 years | 20 bits |
//! | 2^-n ns, for each n from 13 to -16 | 2^(10-n) ns | 2^(44-n) ns less 1 s | 16 bits |
//!
//! The first six keep every usual limit. The others, the wide ones, have fewer bits for the tag and more for the time,
//! and each has half the horizon of the next. So a limit finds a horizon of which it uses nearly a half or more, and
//! its unit takes 1024 units of time if the burst is 2^32 or less. At full load a new key is mistaken for a live one
//! with chance 1.5e-5 in a usual table, and 2.4e-4 in a wide one.
//!
//! **What is kept**: every limit whose burst is at most 2^32 units, of which none takes less than 1/8 ns, and which
//! drains within 36 years. So the largest number of each unit of time, from a second to a year, is 2^32.
//!
//! Metrics name a table by its unit of time, as in "2^-6 ns" and "wide 2^13 ns".
//!
//! A slot keeps a time, so a key may come with another limit each time, and keeps its debt as a time. Only if the limit
//! moves to another table, the key starts there with a full burst. A table takes its memory when the first limit comes
//! that needs it: 8 bytes a slot, two slots a key.
//!
//! Words come round, those of the finest wide table within 17 s, and then an old debt would count once more. So each
//! call on a table first sweeps what is due, also the first one after the process was stopped.

use std::sync::OnceLock;

use tatcell::host::{random_seed, Memory};
use tatcell::metrics::{write_text, Format, TableMetrics};
use tatcell::{
    lines_for, Counters, Decision, FullPolicy, LimitSpec, Line, Request, Sweeper, Table, TableLimit,
    TableOptions, Tracking, Verdict,
};

use crate::counted::Counted;

/// What distinguishes a table from the others.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// Its unit of time is 2^-this ns.
    resolution: i8,
    /// The bits of a slot that tell keys apart.
    tag_bits: u32,
    /// Horizon and skew together are 2^this units of time.
    window_bits: u32,
    /// How old a clock reading may be, in nanoseconds.
    skew: u64,
}

impl Range {
    const fn usual(resolution: i8) -> Range {
        Range { resolution, tag_bits: 20, window_bits: 40, skew: 10_000_000_000 }
    }

    /// A reading may be a second old, because more would leave the finest table no horizon.
    const fn wide(resolution: i8) -> Range {
        Range { resolution, tag_bits: 16, window_bits: 44, skew: 1_000_000_000 }
    }

    /// Returns the longest time in which a burst may drain, in nanoseconds. The skew is rounded up to a unit of time.
    const fn horizon(&self) -> u64 {
        let ns = time_in(1 << self.window_bits, self.resolution) as u64;
        ns - self.skew - time_in(1, self.resolution) as u64
    }
}

const USUAL: [i8; 6] = [6, 0, -5, -10, -15, -20];
const WIDE: usize = 30;

/// The tables, in the order in which they are tried.
const RANGES: [Range; USUAL.len() + WIDE] = {
    let mut ranges = [Range::wide(13); USUAL.len() + WIDE];
    let mut i = 0;
    while i < ranges.len() {
        ranges[i] = match i < USUAL.len() {
            true => Range::usual(USUAL[i]),
            false => Range::wide(13 - (i - USUAL.len()) as i8),
        };
        i += 1;
    }
    ranges
};

/// How many units of a table's time one unit of a limit takes at least: the precision of the core's slots.
const FASTEST: u64 = 1 << 10;

/// The largest burst, the most units in a nanosecond, and the longest time in which a burst drains, in nanoseconds.
const MOST: u64 = 1 << 32;
const MOST_A_NS: u64 = 8;
const LONGEST: u64 = 36 * 365 * 86_400 * 1_000_000_000;

/// How often a contended request is tried before the caller gets no decision.
const ATTEMPTS: u32 = 64;

/// Keeps limits of any rate.
#[derive(Debug)]
pub struct Tables {
    tables: [OnceLock<Option<&'static Made>>; RANGES.len()],
    lines: usize,
    policy: FullPolicy,
    seed: [u8; 16],
}

/// A table, and the counts of its decisions. It lives as long as the process.
#[derive(Debug)]
struct Made {
    table: Table<'static>,
    sweeper: Sweeper,
    counted: Counted,
}

/// Holds a limit in one of the tables.
#[derive(Clone, Copy, Debug)]
pub struct TablesLimit {
    made: &'static Made,
    limit: TableLimit,
    burst: u64,
}

impl Tables {
    /// Makes room for `keys` keys in debt at one time. Each table takes its memory with its first limit.
    ///
    /// # Errors
    /// Too many keys, or no random bytes from the system.
    pub fn new(keys: usize, policy: FullPolicy) -> Result<Tables, String> {
        let lines = Tables::lines(keys)?;
        let seed = random_seed().map_err(|e| format!("the system has no random bytes: {e}"))?;
        let tables = [const { OnceLock::new() }; RANGES.len()];
        Ok(Tables { tables, lines, policy, seed })
    }

    /// Returns the lines of a table for so many keys.
    pub(crate) fn lines(keys: usize) -> Result<usize, &'static str> {
        let slots = keys.checked_mul(2).filter(|slots| *slots > 0 && *slots <= 1 << 34);
        slots.map(lines_for).ok_or("keys must be 1 to 8589934592")
    }

    /// Returns the counts of all tables together.
    pub fn counts(&self) -> Counters {
        let mut sum = Counters::default();
        self.made().for_each(|(_, made)| sum.add(&made.counted.sum()));
        sum
    }

    /// Makes a limit of `units` per `period` nanoseconds with this burst.
    ///
    /// # Errors
    /// Text: no table fits such a limit, or there is no memory.
    pub fn limit(&self, units: u64, period: u64, burst: u64) -> Result<TablesLimit, String> {
        Tables::keepable(units, period, burst)?;
        let spec = LimitSpec::new(units, period, burst);
        for (place, range) in self.tables.iter().zip(&RANGES) {
            if let Some(Some(made)) = place.get() {
                match made.table.limit(&spec) {
                    Ok(limit) => return Ok(made.with(limit, burst)),
                    Err(_) => continue,
                }
            }
            // The smallest table shows what a full one would say of the limit, without taking its memory.
            let probe = [Line::EMPTY; 4];
            let fits = Table::init(&probe, &self.options(range)).and_then(|table| table.limit(&spec));
            if fits.is_err() {
                continue;
            }
            let made = place.get_or_init(|| self.make(range)).ok_or("no memory: give fewer keys")?;
            let Ok(limit) = made.table.limit(&spec) else { continue };
            return Ok(made.with(limit, burst));
        }
        // The tests ask for limits of every size, and always find a table.
        Err("no range of rates has it: give a smaller burst".into())
    }

    /// Says why no table keeps a limit.
    fn keepable(units: u64, period: u64, burst: u64) -> Result<(), String> {
        if units == 0 || period == 0 || burst == 0 {
            return Err("its numbers must be above 0".into());
        }
        if burst > MOST {
            return Err(format!("a burst of {burst} units is above the most, {MOST}: give a smaller burst"));
        }
        if units.div_ceil(MOST_A_NS) > period {
            let most = u128::from(MOST_A_NS) * u128::from(period);
            return Err(format!(
                "{units} units in {} are more than {most}, one each 0.125 ns: give fewer units, or a longer period",
                time(period.into())
            ));
        }
        let drains = (u128::from(period) * u128::from(burst)).div_ceil(u128::from(units));
        if drains > u128::from(LONGEST) {
            return Err(format!(
                "the burst drains in {}, more than 36 years of 365 days: give a smaller burst, or a higher rate",
                time(drains)
            ));
        }
        Ok(())
    }

    fn options(&self, range: &Range) -> TableOptions {
        // 2^10 units of time, which may be less than a nanosecond.
        let fastest = match range.resolution {
            10.. => LimitSpec::new(1 << (range.resolution - 10), 1, 1),
            resolution => LimitSpec::new(1, time_in(FASTEST.into(), resolution) as u64, 1),
        };
        let slowest = LimitSpec::new(1, range.horizon(), 1);
        let options =
            TableOptions::new(fastest).slowest(slowest).resolution(range.resolution).skew(range.skew);
        options.tag_bits(range.tag_bits).policy(self.policy).seed(self.seed).tick_hz(1_000_000_000)
    }

    fn make(&self, range: &Range) -> Option<&'static Made> {
        let memory = Memory::huge(self.lines * std::mem::size_of::<Line>()).ok()?;
        let table = Table::init(memory.leak(), &self.options(range)).ok()?;
        Some(Box::leak(Box::new(Made { table, sweeper: Sweeper::new(), counted: Counted::default() })))
    }

    /// The tables in use, with their names.
    fn made(&self) -> impl Iterator<Item = (String, &Made)> {
        let places = self.tables.iter().zip(&RANGES).enumerate();
        places.filter_map(|(i, (place, range))| {
            let wide = if i < USUAL.len() { "" } else { "wide " };
            let made = (*place.get()?)?;
            Some((format!("{wide}2^{} ns", -i32::from(range.resolution)), made))
        })
    }

    /// The tables in use, after what is due was swept.
    fn swept(&self, now: u64) -> impl Iterator<Item = &Table<'static>> {
        self.tables.iter().filter_map(move |place| Some((*place.get()?)?.swept(now)))
    }

    /// Decides a request at this reading of a nanosecond clock. Returns `None`, and has charged nothing, if other
    /// threads decide the same key at this very time.
    pub fn check(limit: &TablesLimit, key: &[u8], cost: u64, now: u64) -> Option<Decision> {
        let table = limit.made.swept(now);
        let hash = table.hash(key).ok()?;
        let request = Request { limit: &limit.limit, now, cost, room: 0 };
        until_decided(&limit.made.counted, |counters| table.check_ex(&request, hash, Some(counters)).ok())
    }

    /// Forgets a key: every limit starts with its full burst. Returns whether the key owed anything.
    pub fn forget(&self, key: &[u8], now: u64) -> bool {
        let mut owed = false;
        for table in self.swept(now) {
            let any = LimitSpec::new(1, 1 << 30, 1);
            if let (Ok(hash), Ok(limit)) = (table.hash(key), table.limit(&any)) {
                owed |= table.peek(&limit, now, hash, 0).is_ok_and(|seen| seen.reset_after > 0);
                (0..ATTEMPTS).find(|_| table.reset_key(now, hash));
            }
        }
        owed
    }

    /// Sweeps what is due, as each call does: from a timer, so that none has much to sweep after a pause.
    pub fn sweep(&self, now: u64) {
        self.swept(now).for_each(drop);
    }

    /// Writes the metrics of the tables in use, for Prometheus. Reads them all.
    pub fn metrics(&self, now: u64, out: &mut String) {
        let made: Vec<_> = self.made().collect();
        let said = |(name, made): &'_ (String, &Made)| {
            let stats = made.swept(now).stats(now);
            (name.clone(), made.counted.sum(), stats, made.table.info())
        };
        let said: Vec<_> = made.iter().map(said).collect();
        let metrics = said.iter().map(|(name, counters, stats, info)| {
            TableMetrics::new(name).counters(counters).stats(stats).info(info)
        });
        let metrics: Vec<_> = metrics.collect();
        // A String takes all.
        let _ = write_text(&metrics, Format::Prometheus, out);
    }
}

/// Tries until no other thread is faster. Counts the request once: as decided, or as contended if it lost each time.
fn until_decided(
    counted: &Counted,
    mut attempt: impl FnMut(&mut Counters) -> Option<Decision>,
) -> Option<Decision> {
    let mut last = Counters::default();
    let decided = (0..ATTEMPTS).find_map(|_| {
        last = Counters::default();
        attempt(&mut last).filter(|decision| decision.verdict != Verdict::Contended)
    });
    counted.add(&last);
    decided
}

impl Made {
    fn with(&'static self, limit: TableLimit, burst: u64) -> TablesLimit {
        TablesLimit { made: self, limit, burst }
    }

    /// Sweeps what is due by now. Then every call on the table is right.
    fn swept(&self, now: u64) -> &Table<'static> {
        self.sweeper.sweep(&self.table, now);
        &self.table
    }
}

impl TablesLimit {
    /// Returns the time of one unit as the table keeps it, in units of 2^-resolution ns, and the resolution. That is at
    /// most 1/1024 longer than asked for, and never shorter.
    pub fn unit(&self) -> (u64, i32) {
        let info = self.limit.info();
        (info.emission_q, info.resolution)
    }

    /// Returns what a key owed at `at`, as the table saw it then, in whole nanoseconds, rounded down. What has drained
    /// by now may be forgotten.
    pub fn owed(&self, key: &[u8], at: u64, now: u64) -> u64 {
        let (tick, table) = (self.tick(), self.made.swept(now));
        let hash = table.hash(key);
        let seen = hash.and_then(|hash| table.peek(&self.limit, at / tick * tick, hash, 0));
        // The answer is rounded up. Units of time of whole nanoseconds need no rounding.
        seen.map_or(0, |seen| seen.reset_after.saturating_sub((self.unit().1 > 0).into()))
    }

    /// Makes a key owe this many nanoseconds more, rounded up to the unit of time, but at most the whole burst. Returns
    /// whether it has a slot, maybe one that it took over from another key. Returns `None`, and has charged nothing, if
    /// other threads decide the same key at this very time. The caller sees to it that nobody else charges the key
    /// meanwhile.
    pub fn owe(&self, key: &[u8], more: u64, now: u64) -> Option<bool> {
        let least = self.time_of(u128::from(FASTEST));
        let full = self.full().max(least);
        // A limit whose only unit is the debt: a charge fills it to its brim.
        let debt = more.saturating_add(self.owed(key, now, now)).clamp(least, full);
        let table = self.made.swept(now);
        let limit = table.limit(&LimitSpec::new(1, debt, 1)).ok()?;
        let hash = table.hash(key).ok()?;
        (0..ATTEMPTS).find_map(|_| {
            let decision = table.charge(&limit, now, hash, 1, None).ok()?;
            let has = decision.tracking == Tracking::Tracked || self.owed(key, now, now) > 0;
            (decision.verdict != Verdict::Contended).then_some(has)
        })
    }

    /// Gives up to `units` back to a key, as far as it still owes them: see [`Table::credit`]. Inserts nothing. Returns
    /// in `units` what the key got, and its state once the trace that a credit leaves has drained: 18 units of the
    /// table's time and a claim lifetime, which is 21 ms in the coarsest table. Returns `None`, nothing changed, if
    /// other threads decide the same key at this very time.
    pub fn credit(&self, key: &[u8], units: u64, now: u64) -> Option<Decision> {
        let table = self.made.swept(now);
        let hash = table.hash(key).ok()?;
        let given = (0..ATTEMPTS).find_map(|_| {
            let decision = table.credit(&self.limit, now, hash, units).ok()?;
            (decision.verdict != Verdict::Contended).then_some(decision.units)
        })?;
        let trace = self.time_of(18).saturating_add(table.info().claim_lifetime);
        let state = table.peek(&self.limit, now.saturating_add(trace), hash, 0).ok()?;
        Some(Decision { units: given, ..state })
    }

    /// Makes a key owe nothing of what it owed at `at`.
    pub fn forgive(&self, key: &[u8], at: u64) {
        let table = &self.made.table;
        if let Ok(hash) = table.hash(key) {
            (0..ATTEMPTS).find(|_| table.reset_key(at, hash));
        }
    }

    /// Returns the nanoseconds in which the whole burst drains.
    pub fn full(&self) -> u64 {
        self.time_of(u128::from(self.burst) * u128::from(self.unit().0))
    }

    /// Returns what a debt of `ns` nanoseconds under this limit is under another one: as many units, rounded down to
    /// the nanosecond. The table rounds up to its unit of time, so whole units stay whole.
    pub fn as_under(&self, other: &TablesLimit, ns: u64) -> u64 {
        let ((old, old_resolution), (new, new_resolution)) = (self.unit(), other.unit());
        let shift = old_resolution - new_resolution;
        // No overflow: a burst and a unit have at most 2^44 units of their table's time, and the new table's is 2^20 ns
        // at most, so this is below 2^109.
        let up = (u128::from(ns.min(self.full())) * u128::from(new)) << shift.max(0);
        let down = u128::from(old.max(1)) << (-shift).max(0);
        u64::try_from(up / down).unwrap_or(u64::MAX)
    }

    fn time_of(&self, units_of_time: u128) -> u64 {
        let ns = time_in(units_of_time, self.unit().1 as i8);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Returns the table's unit of time, in whole nanoseconds.
    pub fn tick(&self) -> u64 {
        1 << (-self.unit().1).max(0)
    }
}

/// Converts units of time of 2^-`resolution` ns to nanoseconds, rounded up.
const fn time_in(units: u128, resolution: i8) -> u128 {
    match resolution < 0 {
        true => units << -resolution,
        false => units.div_ceil(1 << resolution),
    }
}

/// Writes a time that is given in nanoseconds.
fn time(ns: u128) -> String {
    match ns {
        0..=999_999 => format!("{ns} ns"),
        1_000_000..=999_999_999 => format!("{} us", ns / 1_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
