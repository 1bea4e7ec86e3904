//! Limits of any rate in memory of a fixed size.
//!
//! A slot of the core's table has 43 bits for a TAT, in the table's unit of time. So a table keeps limits whose burst
//! drains within a horizon, to a precision of 1/1024. Six tables cover all limits. A limit lives in the first table
//! whose horizon it fits, which is the finest.
//!
//! | unit of time | one unit takes at least | the burst drains within | largest number |
//! |---|---|---|---|
//! | 1/64 ns | 16 ns | 7 s | 62 million a second |
//! | 1 ns | 1.024 us | 18 minutes | 58 million a minute |
//! | 32 ns | 32.8 us | 9.7 hours | 109 million an hour |
//! | 1.024 us | 1.05 ms | 13 days | 82 million a day, 576 million a week |
//! | 32.8 us | 33.6 ms | 1.1 years | 77 million in 30 days, 939 million a year |
//! | 1.05 ms | 1.07 s | 36 years | |
//!
//! A slot keeps a time, so a key may come with another limit each time, and keeps its debt as a time. Only if the limit
//! moves to another table, the key starts there with a full burst. A table takes its memory when the first limit comes
//! that needs it: 8 bytes a slot, two slots a key.

use std::sync::OnceLock;

use tatcell::host::{random_seed, Memory};
use tatcell::{
    lines_for, Decision, FullPolicy, LimitSpec, Line, Request, Table, TableLimit, TableOptions, Tracking,
    Verdict,
};

/// The resolution of each table: its unit of time is 2^-this ns.
const RESOLUTIONS: [i8; 6] = [6, 0, -5, -10, -15, -20];

/// How many units of a table's time one unit of a limit takes at least.
const FASTEST: u64 = 1 << 10;

/// How old a clock reading may be, in nanoseconds: ten seconds.
const SKEW: u64 = 10_000_000_000;

/// How often a contended request is tried before the caller gets no decision.
const ATTEMPTS: u32 = 64;

/// Keeps limits of any rate.
#[derive(Debug)]
pub struct Tables {
    tables: [OnceLock<Option<Table<'static>>>; RESOLUTIONS.len()],
    lines: usize,
    policy: FullPolicy,
    seed: [u8; 16],
}

/// Holds a limit in one of the tables.
#[derive(Clone, Copy, Debug)]
pub struct TablesLimit {
    table: Table<'static>,
    limit: TableLimit,
    burst: u64,
}

impl Tables {
    /// Makes room for `keys` keys in debt at one time. Each table takes its memory with its first limit.
    ///
    /// # Errors
    /// Too many keys, or no random bytes from the system.
    pub fn new(keys: usize, policy: FullPolicy) -> Result<Tables, String> {
        let lines = keys.checked_mul(2).filter(|slots| *slots > 0 && *slots <= 1 << 34).map(lines_for);
        let lines = lines.ok_or("keys must be 1 to 8589934592")?;
        let seed = random_seed().map_err(|e| format!("the system has no random bytes: {e}"))?;
        Ok(Tables { tables: [const { OnceLock::new() }; RESOLUTIONS.len()], lines, policy, seed })
    }

    /// Makes a limit of `units` per `period` nanoseconds with this burst.
    ///
    /// # Errors
    /// Text: no table fits such a limit, or there is no memory.
    pub fn limit(&self, units: u64, period: u64, burst: u64) -> Result<TablesLimit, String> {
        let spec = LimitSpec::new(units, period, burst);
        for (place, resolution) in self.tables.iter().zip(RESOLUTIONS) {
            if let Some(Some(table)) = place.get() {
                match table.limit(&spec) {
                    Ok(limit) => return Ok(TablesLimit { table: *table, limit, burst }),
                    Err(_) => continue,
                }
            }
            // The smallest table shows what a full one would say of the limit, without taking its memory.
            let probe = [Line::EMPTY; 4];
            let fits = Table::init(&probe, &self.options(resolution)).and_then(|table| table.limit(&spec));
            if fits.is_err() {
                continue;
            }
            let table =
                place.get_or_init(|| self.table(resolution)).as_ref().ok_or("no memory: give fewer keys")?;
            let Ok(limit) = table.limit(&spec) else { continue };
            return Ok(TablesLimit { table: *table, limit, burst });
        }
        Err(Tables::misfit(units, period, burst))
    }

    /// Says why no table keeps a limit.
    fn misfit(units: u64, period: u64, burst: u64) -> String {
        if units == 0 || period == 0 || burst == 0 {
            return "its numbers must be above 0".into();
        }
        let drains = (u128::from(period) * u128::from(burst)).div_ceil(u128::from(units));
        let time = |ns: u128| match ns {
            0..=999_999 => format!("{ns} ns"),
            1_000_000..=999_999_999 => format!("{} us", ns / 1_000),
            _ => format!("{} s", ns / 1_000_000_000),
        };
        let mut all =
            RESOLUTIONS.iter().map(|r| (time_in(1 << 40, *r) - u128::from(SKEW), time_in(1 << 10, *r)));
        match all.find(|(horizon, _)| drains < *horizon) {
            Some((_, least)) => format!(
                "a burst that drains in {} needs units that take {} or more: give a smaller number, or a smaller burst",
                time(drains),
                time(least)
            ),
            None => "the burst drains in more than 36 years: give a smaller burst".into(),
        }
    }

    fn options(&self, resolution: i8) -> TableOptions {
        let units = |q: u64| time_in(q.into(), resolution) as u64;
        let fastest = LimitSpec::new(1, units(FASTEST), 1);
        // Both are rounded up to whole units of time.
        let slowest = LimitSpec::new(1, units(1 << 40) - SKEW - units(1), 1);
        let options = TableOptions::new(fastest).slowest(slowest).resolution(resolution).skew(SKEW);
        options.policy(self.policy).seed(self.seed).tick_hz(1_000_000_000)
    }

    fn table(&self, resolution: i8) -> Option<Table<'static>> {
        let memory = Memory::huge(self.lines * std::mem::size_of::<Line>()).ok()?;
        Table::init(memory.leak(), &self.options(resolution)).ok()
    }

    fn made(&self) -> impl Iterator<Item = &Table<'static>> {
        self.tables.iter().filter_map(|table| table.get()?.as_ref())
    }

    /// Decides a request at this reading of a nanosecond clock. Returns `None`, and has charged nothing, if other
    /// threads decide the same key at this very time.
    pub fn check(limit: &TablesLimit, key: &[u8], cost: u64, now: u64) -> Option<Decision> {
        let hash = limit.table.hash(key).ok()?;
        let request = Request { limit: &limit.limit, now, cost, room: 0 };
        (0..ATTEMPTS).find_map(|_| {
            let decision = limit.table.check_ex(&request, hash, None).ok()?;
            (decision.verdict != Verdict::Contended).then_some(decision)
        })
    }

    /// Forgets a key: every limit starts with its full burst. Returns whether the key owed anything.
    pub fn forget(&self, key: &[u8], now: u64) -> bool {
        let mut owed = false;
        for table in self.made() {
            let any = LimitSpec::new(1, 1 << 30, 1);
            if let (Ok(hash), Ok(limit)) = (table.hash(key), table.limit(&any)) {
                owed |= table.peek(&limit, now, hash, 0).is_ok_and(|seen| seen.reset_after > 0);
                (0..ATTEMPTS).find(|_| table.reset_key(now, hash));
            }
        }
        owed
    }

    /// Empties expired slots, so that no key ever meets an old debt. Call it once a second.
    pub fn sweep(&self, now: u64, second: usize) {
        for table in self.made() {
            // The finest table must be swept within 100 s.
            let part = table.slots().div_ceil(32);
            table.sweep(now, part * (second % 32), part);
        }
    }

    /// Returns how many keys owe something, and how many slots there are, in all tables in use. Reads them all.
    pub fn in_use(&self, now: u64) -> (u64, u64) {
        let all = self.made().map(|table| table.stats(now));
        all.fold((0, 0), |(live, slots), stats| (live + stats.live, slots + stats.slots))
    }
}

impl TablesLimit {
    /// Returns the time of one unit as the table keeps it, in units of 2^-resolution ns, and the resolution. That is at
    /// most 1/1024 longer than asked for, and never shorter.
    pub fn unit(&self) -> (u64, i32) {
        let info = self.limit.info();
        (info.emission_q, info.resolution)
    }

    /// Returns what a key owed at `at`, as the table saw it then, in whole nanoseconds, rounded down. Only reads.
    pub fn owed(&self, key: &[u8], at: u64) -> u64 {
        let tick = self.tick();
        let hash = self.table.hash(key);
        let seen = hash.and_then(|hash| self.table.peek(&self.limit, at / tick * tick, hash, 0));
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
        let debt = more.saturating_add(self.owed(key, now)).clamp(least, full);
        let limit = self.table.limit(&LimitSpec::new(1, debt, 1)).ok()?;
        let hash = self.table.hash(key).ok()?;
        (0..ATTEMPTS).find_map(|_| {
            let decision = self.table.charge(&limit, now, hash, 1, None).ok()?;
            let has = decision.tracking == Tracking::Tracked || self.owed(key, now) > 0;
            (decision.verdict != Verdict::Contended).then_some(has)
        })
    }

    /// Makes a key owe nothing of what it owed at `at`.
    pub fn forgive(&self, key: &[u8], at: u64) {
        if let Ok(hash) = self.table.hash(key) {
            (0..ATTEMPTS).find(|_| self.table.reset_key(at, hash));
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
        // Below 2^61, 2^41 and 2^26.
        let shift = old_resolution - new_resolution;
        let up = (u128::from(ns) * u128::from(new)) << shift.max(0);
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

/// Returns so many units of time of 2^-`resolution` ns, in nanoseconds, rounded up.
fn time_in(units: u128, resolution: i8) -> u128 {
    match resolution < 0 {
        true => units << -resolution,
        false => units.div_ceil(1 << resolution),
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
