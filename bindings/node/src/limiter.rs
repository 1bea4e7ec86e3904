//! One limit for each of many keys.

use std::cell::RefCell;
use std::rc::Rc;

use tatcell::host::{random_seed, Memory};
use tatcell::{
    Burst, Decision, FullPolicy, LimitError, LimitInfo, LimitSpec, Line, NextBurst, Request, Sweeper, Table,
    TableError, TableLimit, TableOptions, MAX_BURST,
};

use crate::errors::{closed, host, wrong, Failed};
use crate::scratch::Scratch;
use crate::{named, number, Call, COST, FULL, NOW, PEEK, TICKS_PER_SECOND};

/// The chance, in billionths, that a new key finds its set full while `keys` keys are in debt.
const FULL_SET_PPB: u64 = 1_000;
/// Huge pages are 2 MiB each: a small table would waste most of one.
const HUGE_PAGE: usize = 2 << 20;

/// Reads a limit such as "10/s burst 20". Algorithms are in the order of the library.
pub(crate) fn spec(text: &str, algorithm: u32) -> Result<LimitSpec, Failed> {
    let said = |error: &dyn std::fmt::Display| wrong(format!("limit \"{text}\": {error}"));
    let spec = LimitSpec::parse(text, TICKS_PER_SECOND).map_err(|error| said(&error))?;
    let (units, period, burst) = spec.numbers();
    let spec = match algorithm {
        0 => return Ok(spec),
        1 => LimitSpec::fixed_window(units, period),
        2 => LimitSpec::sliding_counter(units, period),
        3 => LimitSpec::quota_linear(units, period),
        _ => LimitSpec::decay(units, period),
    };
    match (burst == units, text.contains("burst")) {
        (true, _) => Ok(spec),
        (_, true) => Err(said(&"only \"gcra\" has a burst: leave it out, all units may come at once")),
        (_, false) => Err(said(
            &"only \"gcra\" counts parts of a unit: write whole units, such as \"3/2s\" for \"1.5/s\"",
        )),
    }
}

/// What is wrong with a limit. The library's texts name what Rust has; these name what JavaScript has.
pub(crate) fn unfit(text: &str, error: LimitError) -> Failed {
    let what = match error {
        LimitError::NotRepresentable => "the rate is too fast or the burst too large: make it smaller",
        LimitError::HorizonTooLong => {
            "the period is too long, or the burst too large: make it shorter or smaller"
        }
        LimitError::TooManyUnits => "the limit counts more units than there are bits for: use larger units",
        error => error.text(),
    };
    wrong(format!("limit \"{text}\": {what}"))
}

/// Writes a limit as text.
pub(crate) fn text(spec: &LimitSpec) -> String {
    let (units, period, burst) = spec.numbers();
    match period % TICKS_PER_SECOND {
        0 => format!("{units}/{}s burst {burst}", period / TICKS_PER_SECOND),
        _ => format!("{units}/{period}ns burst {burst}"),
    }
}

/// The arguments of a new limiter.
pub(crate) struct Making {
    pub spec: LimitSpec,
    pub algorithm: u32,
    pub options: TableOptions,
    pub policy: FullPolicy,
    /// The lines of the table alone; its memory may have more.
    pub lines: usize,
}

impl Making {
    pub fn read(text: &str, algorithm: u32, keys: f64, full: i32) -> Result<Making, Failed> {
        let spec = spec(text, algorithm)?;
        let policy =
            match full {
                1 if algorithm != 0 => return Err(wrong(
                    "full \"inherit\" is for \"gcra\" alone, a count cannot be inherited: choose \"admit\", \
                     \"deny\" or \"sampled\"",
                )),
                1 => FullPolicy::Inherit,
                2 => FullPolicy::Deny,
                3 => FullPolicy::Sampled,
                _ => FullPolicy::Admit,
            };
        let options = TableOptions::new(spec)
            .policy(policy)
            .tick_hz(TICKS_PER_SECOND)
            .clock(tatcell::TableClock::Monotonic)
            .zeroed();
        let lines = tatcell::lines_for_load(keys as u64, FULL_SET_PPB);
        let size = lines
            .checked_mul(size_of::<Line>())
            .filter(|bytes| *bytes != 0 && *bytes <= isize::MAX as usize / 2);
        size.ok_or_else(|| wrong(format!("keys is {keys}: no table is large enough")))?;
        Ok(Making { spec, algorithm, options, policy, lines })
    }

    /// The bytes of the table and the trailer.
    pub fn bytes(&self) -> usize {
        (self.lines + 1) * size_of::<Line>()
    }

    /// A limit that fits no table of nanoseconds: says which part of it is in the way.
    pub fn refused(&self, error: TableError) -> Failed {
        let limit = text(&self.spec);
        let of_room = matches!(
            error,
            TableError::SpanTooShort
                | TableError::Limit(LimitError::TooManyUnits | LimitError::HorizonTooLong)
        );
        match self.options.fit() {
            // Counts need bits for units, too, and then there may be room enough for the time.
            Ok(fit) if of_room && fit.culprit.is_some() && fit.needed > fit.available => wrong(format!(
                "limit \"{limit}\": it needs {} ms of horizon, and a table has {} ms at this rate: make its {} \
                 smaller, or the rate lower",
                fit.needed / 1_000_000,
                fit.available / 1_000_000,
                fit.culprit.map_or_else(String::new, |part| format!("{part:?}").to_lowercase()),
            )),
            _ => match error {
                TableError::Limit(error) => unfit(&limit, error),
                TableError::SpanTooShort => wrong(format!(
                    "limit \"{limit}\": the period is too long, or the burst too large: make it shorter or smaller"
                )),
                error => wrong(format!("limit \"{limit}\": {error}")),
            },
        }
    }
}

/// A table with the memory that it lies in.
pub(crate) struct Open {
    pub limit: TableLimit,
    pub table: Table<'static>,
    /// Behind the table: who shares that shares it, too.
    sweeper: &'static Sweeper,
    // Holds what `table` and `sweeper` point to, and unmaps it.
    pub memory: Memory,
}

impl Open {
    /// Makes or finds the table in the first `lines` lines of memory; one line more is the trailer.
    pub fn new(
        memory: Memory,
        making: &Making,
        table: impl FnOnce(&'static [Line], &Memory) -> Result<Table<'static>, TableError>,
    ) -> Result<Open, TableError> {
        // SAFETY: the mapping stays where it is until `memory` is dropped, and `table` is lent out only for as long as
        // this object lives.
        let lines: &'static [Line] = unsafe { &*std::ptr::from_ref(&memory.lines()[..making.lines]) };
        let swept = &named::trailer(&memory, making)[named::SWEPT];
        // SAFETY: as above; a sweeper is one such word.
        let sweeper: &'static Sweeper = unsafe { &*std::ptr::from_ref(swept).cast() };
        let table = table(lines, &memory)?;
        let limit = table.limit(&making.spec)?;
        Ok(Open { limit, sweeper, table, memory })
    }

    fn private(making: &Making) -> Result<Open, Failed> {
        let bytes = making.bytes();
        let memory = Memory::new(bytes, bytes >= HUGE_PAGE, false).map_err(host)?;
        let options = making.options.seed(random_seed().map_err(host)?);
        Open::new(memory, making, |lines, _| Table::init(lines, &options))
            .map_err(|error| making.refused(error))
    }

    fn hash(&self, key: &[u8]) -> u64 {
        // Never an error: the options leave the hash to the table.
        self.table.hash(key).unwrap_or(0)
    }
}

/// A table until it is closed, and its limit.
pub(crate) struct Limiter {
    pub scratch: Rc<Scratch>,
    pub spec: LimitSpec,
    pub info: LimitInfo,
    pub open: RefCell<Option<Open>>,
}

impl Limiter {
    pub fn open(scratch: Rc<Scratch>, making: &Making, name: &str) -> Result<Limiter, Failed> {
        let open = match name {
            "" => Open::private(making)?,
            name => named::open(name, making)?,
        };
        Ok(Limiter { scratch, spec: making.spec, info: open.limit.info(), open: RefCell::new(Some(open)) })
    }

    pub fn close(&self) {
        self.open.take();
    }

    pub fn memory(&self) -> usize {
        self.open.borrow().as_ref().map_or(0, |open| open.memory.bytes())
    }

    /// Calls a function with the table, and the time for it. It sweeps what is due first: words would wrap, and old
    /// debts count once more. A peek with `now` may be about another time, so it changes nothing.
    fn with<A>(&self, call: &Call, function: impl FnOnce(&Open, u64) -> A) -> Result<A, Failed> {
        match &*self.open.borrow() {
            None => Err(closed()),
            Some(open) if call.is(PEEK) && call.is(NOW) => {
                Ok(function(open, open.sweeper.peek_time(&open.table, call.now)))
            }
            Some(open) => {
                open.sweeper.sweep(&open.table, call.now);
                Ok(function(open, call.now))
            }
        }
    }

    /// The hash of a key, and the time, for a chain.
    pub fn hash(&self, call: &Call, key: &[u8]) -> Result<(u64, u64), Failed> {
        self.with(call, |open, now| (open.hash(key), now))
    }

    pub fn decide(&self, call: &Call, key: &[u8]) -> Result<u32, Failed> {
        self.with(call, |Open { table, limit, .. }, now| {
            if !call.is(PEEK | FULL) {
                return table.check(limit, now, key, call.cost).map(|outcome| number(outcome.verdict()));
            }
            let hash = table.hash(key)?;
            let decision: Decision = match call.is(PEEK) {
                true => table.peek(limit, now, hash, call.cost)?,
                false => table.check_ex(&Request { limit, now, cost: call.cost, room: 0 }, hash, None)?,
            };
            self.scratch.put(0, &decision);
            Ok(number(decision.verdict))
        })?
        .map_err(wrong)
    }

    pub fn reset(&self, call: &Call, key: &[u8]) -> Result<bool, Failed> {
        self.with(call, |open, now| open.table.reset_key(now, open.hash(key)))
    }

    pub fn burst(&self, call: &Call, count: usize) -> Result<(), Failed> {
        self.with(call, |open, now| {
            let (mut hashes, mut filled) = ([0; MAX_BURST], 0);
            let mut places = hashes.iter_mut();
            self.scratch.each_key(count, |key| {
                if let Some(place) = places.next() {
                    *place = open.hash(key);
                    filled += 1;
                }
            })?;
            let costs = Costs::of(call)?;
            let burst =
                Burst { costs: costs.each(filled), ..Burst::new(&open.limit, now, &hashes[..filled]) };
            let pass = burst.check(&open.table, None, NextBurst::NONE).map_err(wrong)?;
            self.scratch.put_verdicts(pass);
            Ok(())
        })?
    }

    pub fn rows(
        &self,
        call: &Call,
        array: &[u8],
        width: usize,
        kind: u32,
        verdicts: &mut [u8],
    ) -> Result<(), Failed> {
        let hash = |open: &Open, row: &[u8]| match (kind, row) {
            (1, &[a, b]) => open.hash(&u64::from(u16::from_ne_bytes([a, b])).to_ne_bytes()),
            (2, &[a, b]) => open.hash(&i64::from(i16::from_ne_bytes([a, b])).to_ne_bytes()),
            (1, &[a, b, c, d]) => open.hash(&u64::from(u32::from_ne_bytes([a, b, c, d])).to_ne_bytes()),
            (2, &[a, b, c, d]) => open.hash(&i64::from(i32::from_ne_bytes([a, b, c, d])).to_ne_bytes()),
            _ => open.hash(row),
        };
        let fill =
            |open: &Open, hashes: &mut [u64; MAX_BURST], rows: &mut std::slice::ChunksExact<'_, u8>| {
                let places = hashes.iter_mut().zip(rows);
                places.map(|(place, row)| *place = hash(open, row)).count()
            };
        self.with(call, |open, now| {
            let mut rows = array.chunks_exact(width.max(1));
            let costs = Costs::of(call)?;
            let (mut these, mut those) = ([0; MAX_BURST], [0; MAX_BURST]);
            let mut count = fill(open, &mut these, &mut rows);
            open.table.prefetch(&these[..count]);
            for verdicts in verdicts.chunks_mut(MAX_BURST) {
                // The lines of the next burst are on their way while this one is decided.
                let next = fill(open, &mut those, &mut rows);
                let burst =
                    Burst { costs: costs.each(count), ..Burst::new(&open.limit, now, &these[..count]) };
                let pass =
                    burst.check(&open.table, None, NextBurst::hashes(&those[..next])).map_err(wrong)?;
                for (i, verdict) in verdicts.iter_mut().enumerate() {
                    *verdict = (pass >> i & 1) as u8;
                }
                std::mem::swap(&mut these, &mut those);
                count = next;
            }
            Ok(())
        })?
    }
}

/// The costs of a burst, if they are not 1.
struct Costs(Option<[u32; MAX_BURST]>);

impl Costs {
    fn of(call: &Call) -> Result<Costs, Failed> {
        if !call.is(COST) {
            return Ok(Costs(None));
        }
        let cost = u32::try_from(call.cost)
            .map_err(|_| wrong("the cost of each key of hitMany is at most 4294967295"))?;
        Ok(Costs(Some([cost; MAX_BURST])))
    }

    /// One for each of `count` keys.
    fn each(&self, count: usize) -> Option<&[u32]> {
        self.0.as_ref().and_then(|costs| costs.get(..count))
    }
}
