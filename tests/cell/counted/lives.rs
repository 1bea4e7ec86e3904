//! Lives of keys under a counting algorithm, in a cell, an exclusive cell, a table and an exclusive table; each key is
//! compared with its definition.
//!
//! Costs vary. Clocks step back by up to the skew, to the borders of windows and over idle times, so that the words of
//! tables wrap. Short and full single calls are mixed with bursts of many keys. Now and then a charge is refunded, and
//! the units of a limit change and change back.

use super::frame::{cost, Clock};
use super::{decay, fixed_window, quota_linear, sliding_counter};
use crate::common::{memory, Rng, Seed};
use tatcell::{
    Burst, Change, Decision, ExclusiveCell, ExclusiveTable, Limit, LimitSpec, NextBurst, Permit, Request,
    Table, TableLimit, TableOptions, Tracking, Verdict,
};

pub const KINDS: [&str; 5] =
    ["fixed window", "fixed window, aligned", "sliding counter", "quota-linear", "decay"];
/// How many of the counts are decisions.
pub const FORMS: usize = 4;
pub const NAMES: [&str; 9] = [
    "Cell",
    "ExclusiveCell",
    "Table",
    "ExclusiveTable",
    "in bursts *",
    "refunds of something *",
    "changes of units *",
    "passed *",
    "refused *",
];
/// Of a level a table gives back less than a cell, never less than nothing and within the bounds: see `decay`.
const DECAY: usize = 4;
const BURSTS: usize = 4;
const REFUNDS: usize = 5;
const CHANGES: usize = 6;
const PASSED: usize = 7;
pub type Counts = [u64; NAMES.len()];

const KEYS: usize = 5;
/// Lines of a table in which so few keys always find a slot.
const LINES: usize = 2 + 16;

/// The definition of one key's limit.
enum Rule {
    Fixed(fixed_window::Oracle),
    Sliding(sliding_counter::Oracle),
    Quota(quota_linear::Oracle),
    Decay(decay::Oracle),
}

/// What a charge is refunded by: its window or time, and its units.
#[derive(Clone, Copy)]
enum Charged {
    Window(u128),
    Quota(Option<i128>),
    Level(u64, u64),
}

impl Rule {
    fn new(limit: &Limit, phase: Option<u64>, kind: usize) -> Rule {
        match kind {
            0 | 1 => Rule::Fixed(fixed_window::Oracle::new(limit, phase)),
            2 => Rule::Sliding(sliding_counter::Oracle::new(limit)),
            3 => Rule::Quota(quota_linear::Oracle::new(limit)),
            _ => Rule::Decay(decay::Oracle::new(limit)),
        }
    }

    /// Holds the answer of an exclusive cell to the definition. `before`: whether it had been forgotten.
    fn judge(&mut self, now: u64, cost: u64, made: &Decision, before: bool) {
        let want = match self {
            Rule::Fixed(rule) => rule.check(now, cost),
            Rule::Sliding(rule) => rule.check(now, cost),
            Rule::Quota(rule) => rule.check(now, cost),
            Rule::Decay(rule) => {
                // Within the bounds that are stated: not below the exact level, hardly above it.
                rule.judge(now, cost, made, before);
                if made.passes() {
                    rule.charged(now, cost as f64, before);
                }
                return;
            }
        };
        assert_eq!(made.verdict, want, "cost {cost} at {now}");
        if let Rule::Sliding(rule) = self {
            // Searched for, so not every time.
            assert!(cost % 4 != 2 || made.remaining == rule.remaining(now), "{made:?} at {now}");
        }
    }

    fn charged(&self, now: u64, cost: u64) -> Charged {
        match self {
            Rule::Fixed(rule) => Charged::Window(rule.charged()),
            Rule::Sliding(rule) => Charged::Window(rule.charged()),
            Rule::Quota(rule) => Charged::Quota(rule.charged()),
            Rule::Decay(_) => Charged::Level(now, cost),
        }
    }

    /// What comes back by the definition; `made` of a level, which does not say.
    fn refund(&mut self, now: u64, (charged, units): (Charged, u64), made: u64, kept: bool) -> u64 {
        match (self, charged) {
            (Rule::Fixed(rule), Charged::Window(window)) => rule.refund(now, window, units),
            (Rule::Sliding(rule), Charged::Window(window)) => rule.refund(now, window, units),
            (Rule::Quota(rule), Charged::Quota(window)) => rule.refund(now, window, units),
            (Rule::Decay(rule), Charged::Level(then, cost)) => {
                assert!(made <= cost && (kept || made == 0), "{made} of {cost} at {now}");
                rule.refunded(now, then, cost as f64, kept);
                made
            }
            _ => panic!("a charge of another algorithm"),
        }
    }

    fn retune(&mut self, units: u64) {
        match self {
            Rule::Fixed(rule) => rule.retune(units),
            Rule::Sliding(rule) => rule.retune(units),
            Rule::Decay(rule) => rule.retune(units),
            Rule::Quota(_) => panic!("its rate is no number of units"),
        }
    }
}

/// A key in its cells, and the last that it was charged.
struct Key {
    hash: u64,
    cell: tatcell::Cell,
    own: ExclusiveCell,
    rule: Rule,
    last: Option<(Charged, u64, [Permit; FORMS])>,
}

/// The two tables and the limits of the algorithm, of which one applies at a time.
struct World<'m> {
    table: Table<'m>,
    one: ExclusiveTable<'m>,
    cells: [Limit; 2],
    tables: [TableLimit; 2],
    now_is: usize,
}

fn any_spec(rng: &mut Rng, kind: usize) -> (LimitSpec, LimitSpec, Option<u64>) {
    let window = rng.pick(&[7, 1_000, 60_000, 1_000_003, 60_000_000_000]) * (1 + rng.below(9)) + rng.below(4);
    let units = match (1 + rng.scaled(14), kind) {
        (units, DECAY) => 1 + units % 1_000,
        (units, _) => units,
    };
    let phase = rng.below(window);
    let of = |units: u64| match kind {
        0 => LimitSpec::fixed_window(units, window),
        1 => LimitSpec::fixed_window(units, window).aligned(phase),
        2 => LimitSpec::sliding_counter(units, window),
        3 => LimitSpec::quota_linear(units, window),
        _ => LimitSpec::decay(units, window + 1_000_000),
    };
    // Fewer units, but in as many bits.
    let least = 1 << units.ilog2();
    let fewer = rng.within(least, units);
    (of(units), of(fewer), (kind == 1).then_some(phase))
}

/// A life of a number of steps under an algorithm of this kind. Returns what it compared.
pub fn life(seed: u64, kind: usize, steps: u64) -> Counts {
    let _shown = Seed(seed);
    let mut rng = Rng(seed);
    let (lines, mut lines_of_one) = (memory(LINES), memory(LINES));
    // What does not fit a slot is drawn anew.
    let (table, options, [spec, fewer], phase) = loop {
        let (spec, fewer, phase) = any_spec(&mut rng, kind);
        let options = TableOptions::new(spec).caller_hash().tag_bits(rng.pick(&[12, 16, 20]));
        if let Ok(table) = Table::init(&lines, &options) {
            break (table, options, [spec, fewer], phase);
        }
    };
    let one = ExclusiveTable::init_exclusive(&mut lines_of_one, &options).unwrap();
    // A limit that is not alike is left out: then both are the same.
    let fewer = if kind != 3 && table.limit(&fewer).is_ok() { fewer } else { spec };
    let unit = table.info().resolution as i8;
    let cells = [spec, fewer].map(|spec| spec.resolution(unit).build().unwrap());
    let tables = [spec, fewer].map(|spec| table.limit(&spec).unwrap());
    let mut clock = Clock::of(&mut rng, &tables[0].info());
    let mut world = World { table, one, cells, tables, now_is: 0 };
    // Tags apart from each other, and from 0.
    let mut keys: [Key; KEYS] = core::array::from_fn(|k| Key {
        hash: rng.next() & !7 | (k as u64 + 2),
        cell: tatcell::Cell::new(),
        own: ExclusiveCell::new(),
        rule: Rule::new(&world.cells[0], phase, kind),
        last: None,
    });
    let (mut swept, mut counts) = (clock.top, [0; NAMES.len()]);
    for _ in 0..steps {
        let before = clock.top;
        clock.step(&mut rng);
        if clock.top - swept > world.tables[0].info().horizon {
            // Or a key that is asked seldom would find its debt ahead again, a span later. By the reading before, so
            // that the clock has not gone further than it may since.
            world.table.sweep(before, 0, world.table.slots());
            world.one.sweep(before, 0, world.one.slots());
            swept = before;
        }
        let (now, k) = (clock.now, rng.below(KEYS as u64) as usize);
        match rng.below(64) {
            0 => burst(&mut keys, &world, now, &mut rng, &mut counts),
            1..=4 if kind != DECAY => counts[REFUNDS] += u64::from(keys[k].refund(&world, now)),
            5 if rng.one_in(4) && world.cells[0] != world.cells[1] => {
                world.change(&mut keys, now);
                counts[CHANGES] += 1;
            }
            _ => keys[k].ask(&world, now, &mut rng, &mut counts),
        }
    }
    counts
}

impl World<'_> {
    /// From one limit to the other, of all keys.
    fn change(&mut self, keys: &mut [Key], now: u64) {
        let [old, new] = [self.now_is, 1 - self.now_is];
        for key in keys {
            let [old, new] = [&self.cells[old], &self.cells[new]];
            assert_eq!(key.cell.change(old, new, now, Change::KeepUnits), Ok(true));
            assert_eq!(key.own.change(old, new, now, Change::KeepTime), Ok(true));
            key.rule.retune(new.info().units);
        }
        self.now_is = new;
    }
}

impl Key {
    /// One request of the cells, full; judged.
    fn cells(&mut self, world: &World<'_>, now: u64, cost: u64) -> [Decision; 2] {
        let limit = &world.cells[world.now_is];
        let fresh =
            matches!(self.rule, Rule::Decay(_)) && self.own.peek(limit, now, 1).remaining == limit.burst();
        let made = [self.own.check_ex(limit, now, cost, 0), self.cell.check_ex(limit, now, cost, 0)];
        self.rule.judge(now, cost, &made[0], fresh);
        assert_eq!(made[0], made[1], "cost {cost} at {now}");
        made
    }

    /// One request in every form.
    fn ask(&mut self, world: &World<'_>, now: u64, rng: &mut Rng, counts: &mut Counts) {
        let limit = &world.tables[world.now_is];
        let cost = cost(rng, limit.info().units);
        let [own, cell] = self.cells(world, now, cost);
        let (table, one, hash) = (&world.table, &world.one, self.hash);
        if rng.one_in(2) {
            let told = [table.check_hash(limit, now, hash, cost), one.check_hash(limit, now, hash, cost)];
            assert_eq!(told, [Ok(own.outcome()); 2], "cost {cost} at {now}");
        } else {
            let request = Request { limit, now, cost, room: 0 };
            let table = table.check_ex(&request, hash, None).unwrap();
            let one = one.check_ex(&request, hash, None).unwrap();
            assert_eq!([answer(&table), answer(&one)], [answer(&own); 2], "cost {cost} at {now}");
            if own.passes() {
                let permits = [own, cell, table, one].map(|d| d.permit);
                self.last = Some((self.rule.charged(now, cost), cost, permits));
            }
        }
        counts[..FORMS].iter_mut().for_each(|n| *n += 1);
        counts[PASSED + usize::from(!own.passes())] += 1;
    }

    /// Refunds what was charged last. Whether anything came back.
    fn refund(&mut self, world: &World<'_>, now: u64) -> bool {
        let Some((charged, units, [own, cell, table, one])) = self.last.take() else { return false };
        let (limit, keyed) = (&world.cells[world.now_is], &world.tables[world.now_is]);
        let kept = match &self.rule {
            Rule::Decay(_) => {
                let forgotten = self.own.peek(limit, now, 1).remaining == limit.burst();
                own.tat.wrapping_sub(now >> -limit.info().resolution) as i64 > 0 && !forgotten
            }
            _ => true,
        };
        let made = self.own.refund(limit, now, &own).unwrap();
        assert_eq!(self.cell.refund(limit, now, &cell), Some(made));
        // A permit lasts a horizon, which is longer in tables whose windows are guarded; by the clock of its charge,
        // which may have been far behind.
        if now > own.tick + limit.info().horizon {
            assert_eq!(made, 0, "a permit of {} at {now}", own.tick);
            return false;
        }
        assert_eq!(world.table.refund(keyed, now, self.hash, &table), Ok(Some(made)));
        assert_eq!(world.one.refund(keyed, now, self.hash, &one), Ok(Some(made)));
        assert_eq!(made, self.rule.refund(now, (charged, units), made, kept), "{units} at {now}");
        made > 0
    }
}

/// A decision without what tells where it was made.
fn answer(d: &Decision) -> Decision {
    assert_eq!(d.tracking, Tracking::Tracked);
    let mut d = *d;
    (d.permit.slot, d.permit.generation, d.permit.tat) = (0, 0, 0);
    d
}

/// A burst of up to 64 requests: by tables at once, by cells one after the other.
fn burst(keys: &mut [Key], world: &World<'_>, now: u64, rng: &mut Rng, counts: &mut Counts) {
    let limit = &world.tables[world.now_is];
    let weighted = rng.one_in(2);
    let n = rng.within(2, 64);
    let (mut hashes, mut costs, mut wanted) = (Vec::with_capacity(64), Vec::with_capacity(64), 0u64);
    for i in 0..n {
        let key = &mut keys[rng.below(KEYS as u64) as usize];
        let cost = if weighted { cost(rng, limit.info().units) } else { 1 };
        let [made, _] = key.cells(world, now, cost);
        assert_ne!(made.verdict, Verdict::Contended);
        wanted |= u64::from(made.passes()) << i;
        counts[PASSED + usize::from(!made.passes())] += 1;
        hashes.push(key.hash);
        costs.push(cost as u32);
    }
    let costs = weighted.then_some(&costs[..]);
    let burst = Burst { costs, ..Burst::new(limit, now, &hashes) };
    let told =
        [burst.check(&world.table, None, NextBurst::NONE), burst.check(&world.one, None, NextBurst::NONE)];
    assert_eq!(told, [Ok(wanted); 2], "a burst of {n} at {now}");
    counts[..FORMS].iter_mut().for_each(|count| *count += n);
    counts[BURSTS] += n;
}
