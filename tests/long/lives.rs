//! Lives of keys: eight of them in every form of a limiter, each beside an exact bucket, over days of virtual time.
//!
//! Arrivals are staggered and weighted; clocks step back by up to the skew and forward by up to a quarter of a table's
//! span, so that the words of tables wrap about once in a life; where the resolution is fine enough the words of cells
//! wrap, too. Limits change and change back, permits are refunded, keys reset, slots swept. Every answer of every form
//! is compared with the bucket's.

use crate::common::oracle::{seen, Expected, Oracle};
use crate::common::{hash_of, memory, Rng, Seed};
use tatcell::{
    Cell, Change, Decision, ExclusiveCell, ExclusiveTable, Limit, LimitSpec, Permit, Request, Table,
    TableLimit, TableOptions, Tracking,
};

const KEYS: usize = 8;
/// A set for each key: what a reset leaves takes a slot until it has drained, and no set may fill.
const LINES: usize = 2 * KEYS;
/// Decisions compared in a step: one of each form.
pub const FORMS: u64 = 4;

/// One key in the cells, its bucket, and a permit of each form that has not been used.
struct Key {
    hash: u64,
    cell: Cell,
    own: ExclusiveCell,
    oracle: Oracle,
    /// Which of the two limits applies.
    slow: usize,
    /// What was stored, the TAT after it, and the permits of cell, exclusive cell, table and exclusive table.
    permit: Option<(u64, u128, [Permit; 4])>,
}

/// What applies to keys, as made for cells and for the tables.
struct Limits {
    cells: [Limit; 2],
    tables: [TableLimit; 2],
    interval: [(u64, i32); 2],
    skew: u64,
}

/// A life of so many steps. Returns how many requests passed and were refused.
pub fn life(seed: u64, steps: u64) -> [u64; 2] {
    let _shown = Seed(seed);
    let mut rng = Rng(seed);
    let s = rng.within(0, 8) as i8;
    let (period, units) = (rng.within(1 << 12, 1 << 24), rng.within(1, 4));
    let burst = rng.within(1, 40);
    let fast = LimitSpec::new(units, period, burst);
    let slow = LimitSpec::new(units, period * rng.within(2, 5) + rng.below(7), rng.within(1, burst));
    let unit = period / units;
    let skew = rng.below(4 * unit * burst) + 1;
    let options = TableOptions::new(fast).slowest(slow).caller_hash().resolution(s).skew(skew);
    let (lines, mut lines_of_one) = (memory(2 + LINES), memory(2 + LINES));
    let table = Table::init(&lines, &options).expect("it fits by far");
    let one = ExclusiveTable::init_exclusive(&mut lines_of_one, &options).expect("as the shared one");
    let made = |spec: &LimitSpec| spec.resolution(s).skew(skew).build().expect("it fits by far");
    let limits = Limits {
        cells: [made(&fast), made(&slow)],
        tables: [fast, slow].map(|spec| table.limit(&spec).expect("of this table")),
        interval: [fast, slow].map(|spec| made(&spec).emission_interval()),
        skew,
    };
    // Half the lives begin a little before the words of their cells wrap.
    let start = if s > 0 && rng.one_in(2) {
        (rng.within(1, (1 << s) - 1) << (64 - s)) - rng.below(1 << 30)
    } else {
        rng.next() >> 2
    };
    let mut keys: [Key; KEYS] = core::array::from_fn(|k| Key {
        hash: hash_of(2 * k as u32 + (k as u32 & 1), LINES as u32, rng.within(1, 0xf_ffff) as u32),
        cell: Cell::new(),
        own: ExclusiveCell::new(),
        oracle: bucket(&limits, 0, burst),
        slow: 0,
        permit: None,
    });
    let (mut top, mut counts) = (start, [0; 2]);
    let far = table.info().span / 4;
    for _ in 0..steps {
        top += match rng.below(4_096) {
            0 => {
                // No word may be forgotten for a span; a sweep sees to it.
                let far = rng.below(far);
                table.sweep(top + far, 0, table.slots());
                one.sweep(top + far, 0, one.slots());
                far
            }
            1..=64 => rng.below(unit * burst + 2),
            65..=1_024 => rng.below(unit + 2),
            1_025..=2_048 => rng.below(unit / 16 + 2),
            _ => 0,
        };
        let now = if rng.one_in(16) { top - rng.below(skew + 1).min(rng.scaled(40)) } else { top };
        let now = now.max(start);
        let key = &mut keys[rng.below(KEYS as u64) as usize];
        match rng.below(1_024) {
            0 => reset(key, &table, &one, now),
            1..=32 => change(key, &limits, now),
            33..=150 => refund(key, &limits, &table, &one, now, &mut rng),
            151..=170 => peek(key, &limits, &table, now, &mut rng),
            _ => {
                let passed = check(key, &limits, &table, &one, now, &mut rng);
                counts[usize::from(!passed)] += 1;
            }
        }
    }
    counts
}

fn bucket(limits: &Limits, slow: usize, burst: u64) -> Oracle {
    let (t_q, s) = limits.interval[slow];
    Oracle::fixed(t_q, s, burst)
}

fn cost(rng: &mut Rng, burst: u64) -> u32 {
    match rng.below(16) {
        0 => rng.next() as u32,
        1 => burst as u32 + 1,
        2 => 0,
        3..=5 => rng.within(1, burst) as u32,
        _ => 1,
    }
}

fn check(
    key: &mut Key,
    limits: &Limits,
    table: &Table<'_>,
    one: &ExclusiveTable<'_>,
    now: u64,
    rng: &mut Rng,
) -> bool {
    let (limit, keyed) = (&limits.cells[key.slow], &limits.tables[key.slow]);
    let cost = cost(rng, limit.burst());
    let want = key.oracle.check(now.into(), cost, 0);
    let request = Request { limit: keyed, now, cost: cost.into(), room: 0 };
    let decisions = match rng.below(4) {
        // The short calls and bursts tell less, but take ways of their own.
        0 => {
            let passes = want.verdict == 0;
            let told = [
                key.cell.check(limit, now, cost.into()).passes(),
                key.own.check(limit, now, cost.into()).passes(),
                table.check_hash(keyed, now, key.hash, cost.into()).unwrap().passes(),
                one.check_hash(keyed, now, key.hash, cost.into()).unwrap().passes(),
            ];
            assert_eq!(told, [passes; 4], "cost {cost} at {now}: {want:?}");
            None
        }
        1 => {
            let told = [
                u64::from(key.cell.check(limit, now, cost.into()).passes()),
                u64::from(key.own.check(limit, now, cost.into()).passes()),
                table.check_burst(keyed, now, &[key.hash], Some(&[cost])).unwrap(),
                one.check_burst(keyed, now, &[key.hash], Some(&[cost])).unwrap(),
            ];
            assert_eq!(told, [u64::from(want.verdict == 0); 4], "cost {cost} at {now}: {want:?}");
            None
        }
        _ => Some([
            key.cell.check_ex(limit, now, cost.into(), 0),
            key.own.check_ex(limit, now, cost.into(), 0),
            table.check_ex(&request, key.hash, None).unwrap(),
            one.check_ex(&request, key.hash, None).unwrap(),
        ]),
    };
    if let Some(decisions) = decisions {
        decisions.iter().for_each(|d| same(d, &want, now, cost));
        // An inserting charge of a table stores less in its permit: only whole ones are comparable.
        if want.stored > 0 && decisions.iter().all(|d| d.permit.stored == want.stored) {
            key.permit = Some((want.stored, key.oracle.tat, decisions.map(|d| d.permit)));
        }
    }
    want.verdict == 0
}

fn same(d: &Decision, want: &Expected, now: u64, cost: u32) {
    assert_eq!(d.tracking, Tracking::Tracked);
    assert_eq!(Expected { stored: want.stored, ..seen(d) }, *want, "cost {cost} at {now}");
}

fn peek(key: &mut Key, limits: &Limits, table: &Table<'_>, now: u64, rng: &mut Rng) {
    let cost = cost(rng, limits.cells[key.slow].burst());
    let want = key.oracle.peek(now.into(), cost);
    same(&key.cell.peek(&limits.cells[key.slow], now, cost.into()), &want, now, cost);
    same(&table.peek(&limits.tables[key.slow], now, key.hash, cost.into()).unwrap(), &want, now, cost);
}

fn refund(
    key: &mut Key,
    limits: &Limits,
    table: &Table<'_>,
    one: &ExclusiveTable<'_>,
    now: u64,
    rng: &mut Rng,
) {
    let Some((stored, tat, permits)) = key.permit.take() else { return };
    let (limit, keyed) = (&limits.cells[key.slow], &limits.tables[key.slow]);
    // Some come too late for anything.
    let now = if rng.one_in(8) { now.max(now.wrapping_sub(limits.skew)) } else { now };
    let horizon = key.oracle.burst * key.oracle.t;
    let back = key.oracle.refund(now.into(), stored, tat, horizon);
    let ticks = (back * key.oracle.den / key.oracle.num) as u64;
    let [cell, own, shared, alone] = permits;
    assert_eq!(key.cell.refund(limit, now, &cell), Some(ticks));
    assert_eq!(key.own.refund(limit, now, &own), Some(ticks));
    assert_eq!(table.refund(keyed, now, key.hash, &shared), Ok(Some(ticks)));
    assert_eq!(one.refund(keyed, now, key.hash, &alone), Ok(Some(ticks)));
}

/// From one limit to the other, with its debt in time. A debt above the new burst would be cut in cells: not then.
fn change(key: &mut Key, limits: &Limits, now: u64) {
    let to = 1 - key.slow;
    let next = bucket(limits, to, limits.cells[to].burst());
    let lead = key.oracle.lead(now.into());
    if lead == 0 || lead > next.burst * next.t {
        return;
    }
    let (old, new) = (&limits.cells[key.slow], &limits.cells[to]);
    assert_eq!(key.cell.change(old, new, now, Change::KeepTime), Ok(true));
    assert_eq!(key.own.change(old, new, now, Change::KeepTime), Ok(true));
    key.oracle = Oracle { tat: key.oracle.tat, ..next };
    (key.slow, key.permit) = (to, None);
}

/// A key that has drained by this clock is left alone by tables: a clock that is behind may still see its debt.
fn reset(key: &mut Key, table: &Table<'_>, one: &ExclusiveTable<'_>, now: u64) {
    if key.oracle.lead(now.into()) == 0 {
        return;
    }
    key.cell.reset();
    key.own.reset();
    assert!(table.reset_key(now, key.hash) && one.reset_key(now, key.hash));
    (key.oracle.tat, key.permit) = (0, None);
}
