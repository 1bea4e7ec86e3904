//! The calls in the life of a key, in every form, and the answers of its bucket.

use super::lives::{Counts, Key, World, CELL32, GROUPED, LISTED, PASSED};
use crate::common::oracle::{seen, Expected, Oracle};
use crate::common::Rng;
use tatcell::{Burst, Change, Counters, Decision, NextBurst, Permit, Request, Tracking};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Check,
    Room,
    Charge,
    Reserve,
}

/// What was stored, the TAT after it, and the permits of cell, exclusive cell, table and exclusive table, and of the
/// small cell.
pub struct Charged {
    stored: u64,
    tat: u128,
    permits: [Permit; 4],
    pub small: Option<Permit>,
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

/// Counts a decision of each form.
fn count(counts: &mut Counts, small: bool) {
    for (form, n) in counts[..5].iter_mut().enumerate() {
        *n += u64::from(form != CELL32 || small);
    }
}

impl Key {
    /// The limit for the small cell, where there is one and its word does not sit out.
    fn small_limit<'w>(&self, world: &'w World<'_>) -> Option<&'w tatcell::Limit32> {
        world.small.as_ref().filter(|_| !self.out).map(|limits| &limits[self.slow])
    }

    /// Whether the word of 32 bits has come out as 0; to be asked before the answers are compared.
    fn wraps(&mut self) {
        if self.oracle.tat != 0 && self.oracle.tat as u32 == 0 {
            self.out = true;
            if let Some(charged) = &mut self.permit {
                charged.small = None;
            }
        }
    }
}

/// A reservation, as the bucket has it: the answer and the departure.
fn reserved(oracle: &mut Oracle, now: u64, cost: u32) -> (Expected, u64) {
    let told = oracle.reserve(now.into(), cost);
    let left = oracle.peek(now.into(), 0);
    let (verdict, retry_after, departure) = match told {
        Ok(departure) => (0, 0, departure as u64),
        Err((2, _)) => (2, u64::MAX, 0),
        Err((verdict, retry_after)) => (verdict, retry_after, 0),
    };
    let stored = if verdict == 0 { u64::from(cost) * oracle.t as u64 } else { 0 };
    let soft = verdict == 0 && oracle.lead(now.into()) > oracle.soft.saturating_mul(oracle.t);
    (Expected { verdict, retry_after, stored, flags: u32::from(soft), ..left }, departure)
}

/// A request in every form. Those of a plain check are short half the time.
pub fn check(key: &mut Key, world: &World<'_>, now: u64, op: Op, rng: &mut Rng, counts: &mut Counts) {
    let limit = &world.cells[key.slow];
    let (cost, room) =
        (cost(rng, limit.burst()), if op == Op::Room { rng.below(limit.burst() + 2) } else { 0 });
    let (want, departure) = match op {
        Op::Check | Op::Room => (key.oracle.check(now.into(), cost, room), None),
        Op::Charge => (key.oracle.charge(now.into(), cost), None),
        Op::Reserve => {
            let (want, departure) = reserved(&mut key.oracle, now, cost);
            (want, Some(departure))
        }
    };
    key.wraps();
    let small = key.small_limit(world);
    if op == Op::Check && rng.one_in(2) {
        // The short calls tell less, but take ways of their own.
        assert_eq!(short(key, world, now, cost), [want.verdict == 0; 4], "cost {cost} at {now}: {want:?}");
        if let Some(limit) = small {
            let told = key.small.check(limit, now, cost.into());
            assert_eq!(told.passes(), want.verdict == 0, "32 bits, cost {cost} at {now}: {want:?}");
        }
    } else {
        let told = ask(key, world, now, cost, (op, room));
        told.iter().for_each(|d| same(d, &want, now, cost));
        assert!(told[..2].iter().all(|d| d.permit.stored == want.stored), "{op:?} cost {cost} at {now}");
        // What an insert proves is less by the lifetime of its claim at most, after a reset by what that has left.
        let claim = (1 << limit.emission_interval().1.max(1)) + 1;
        let proves = |p: &Permit| match want.stored.checked_sub(p.stored) {
            Some(less) => less <= claim || p.generation != 0,
            None => false,
        };
        assert!(
            told[2..].iter().all(|d| proves(&d.permit)),
            "{op:?} cost {cost} at {now}: {told:?}, {want:?}"
        );
        let told32 = small.map(|limit| match op {
            Op::Check | Op::Room => key.small.check_ex(limit, now, cost.into(), room),
            Op::Charge => key.small.charge(limit, now, cost.into()),
            Op::Reserve => key.small.reserve(limit, now, cost.into()),
        });
        if let Some(d) = &told32 {
            same(d, &want, now, cost);
            assert_eq!(d.permit.stored, want.stored, "32 bits, {op:?} cost {cost} at {now}");
        }
        if let Some(departure) = departure {
            assert!(
                told.iter().chain(&told32).all(|d| d.departure == departure),
                "{told:?}, not {departure}"
            );
        }
        // An inserting charge of a table stores less in its permit: only whole ones are comparable.
        if want.stored > 0 && told.iter().all(|d| d.permit.stored == want.stored) {
            let (permits, small) = (told.map(|d| d.permit), told32.map(|d| d.permit));
            key.permit = Some(Charged { stored: want.stored, tat: key.oracle.tat, permits, small });
        }
    }
    count(counts, small.is_some());
    counts[PASSED + usize::from(want.verdict != 0)] += 1;
}

/// Whether it passes by cell, exclusive cell, table and exclusive table; odd costs ask tables by bursts of one.
fn short(key: &mut Key, world: &World<'_>, now: u64, cost: u32) -> [bool; 4] {
    let (limit, keyed) = (&world.cells[key.slow], &world.tables[key.slow]);
    let (cell, own) = (key.cell.check(limit, now, cost.into()), key.own.check(limit, now, cost.into()));
    let [table, one] = if cost & 1 == 0 {
        [
            world.table.check_hash(keyed, now, key.hash, cost.into()).unwrap().passes(),
            world.one.check_hash(keyed, now, key.hash, cost.into()).unwrap().passes(),
        ]
    } else {
        let (hashes, costs) = ([key.hash], [cost]);
        let burst = Burst { costs: Some(&costs), ..Burst::new(keyed, now, &hashes) };
        [
            burst.check(&world.table, None, NextBurst::NONE).unwrap() == 1,
            burst.check(&world.one, None, NextBurst::NONE).unwrap() == 1,
        ]
    };
    [cell.passes(), own.passes(), table, one]
}

/// The full answers of cell, exclusive cell, table and exclusive table.
fn ask(key: &mut Key, world: &World<'_>, now: u64, units: u32, (op, room): (Op, u64)) -> [Decision; 4] {
    let (limit, keyed, hash) = (&world.cells[key.slow], &world.tables[key.slow], key.hash);
    let (table, one, cost) = (&world.table, &world.one, u64::from(units));
    match op {
        Op::Check | Op::Room => {
            let request = Request { limit: keyed, now, cost, room };
            [
                key.cell.check_ex(limit, now, cost, room),
                key.own.check_ex(limit, now, cost, room),
                table.check_ex(&request, hash, None).unwrap(),
                one.check_ex(&request, hash, None).unwrap(),
            ]
        }
        Op::Charge => [
            key.cell.charge(limit, now, cost),
            key.own.charge(limit, now, cost),
            table.charge(keyed, now, hash, cost, None).unwrap(),
            one.charge(keyed, now, hash, cost, None).unwrap(),
        ],
        Op::Reserve => [
            key.cell.reserve(limit, now, cost),
            key.own.reserve(limit, now, cost),
            table.reserve(keyed, now, hash, cost, None).unwrap(),
            one.reserve(keyed, now, hash, cost, None).unwrap(),
        ],
    }
}

fn same(d: &Decision, want: &Expected, now: u64, cost: u32) {
    assert_eq!(d.tracking, Tracking::Tracked);
    assert_eq!(Expected { stored: want.stored, ..seen(d) }, *want, "cost {cost} at {now}");
}

pub fn peek(key: &mut Key, world: &World<'_>, now: u64, rng: &mut Rng, counts: &mut Counts) {
    let (limit, keyed) = (&world.cells[key.slow], &world.tables[key.slow]);
    let units = cost(rng, limit.burst());
    let (want, cost) = (key.oracle.peek(now.into(), units), u64::from(units));
    same(&key.cell.peek(limit, now, cost), &want, now, units);
    same(&key.own.peek(limit, now, cost), &want, now, units);
    same(&world.table.peek(keyed, now, key.hash, cost).unwrap(), &want, now, units);
    same(&world.one.peek(keyed, now, key.hash, cost).unwrap(), &want, now, units);
    let small = key.small_limit(world);
    if let Some(limit) = small {
        same(&key.small.peek(limit, now, cost), &want, now, units);
    }
    count(counts, small.is_some());
}

/// Gives back what is left of the last permit. Whether that was anything.
pub fn refund(key: &mut Key, world: &World<'_>, now: u64) -> bool {
    let Some(Charged { stored, tat, permits, small }) = key.permit.take() else { return false };
    let (limit, keyed) = (&world.cells[key.slow], &world.tables[key.slow]);
    let o = &key.oracle;
    let horizon = o.burst * o.t + (o.room.max(o.debt) * o.t).max(o.delay);
    let back = key.oracle.refund(now.into(), stored, tat, horizon);
    let ticks = (back * key.oracle.den / key.oracle.num) as u64;
    let [cell, own, shared, alone] = permits;
    assert_eq!(key.cell.refund(limit, now, &cell), Some(ticks));
    assert_eq!(key.own.refund(limit, now, &own), Some(ticks));
    assert_eq!(world.table.refund(keyed, now, key.hash, &shared), Ok(Some(ticks)));
    assert_eq!(world.one.refund(keyed, now, key.hash, &alone), Ok(Some(ticks)));
    // Without its permit the small cell would keep what the others give back.
    key.wraps();
    match (key.small_limit(world), small) {
        (Some(limit), Some(permit)) => assert_eq!(key.small.refund(limit, now, &permit), Some(ticks)),
        _ => key.out = true,
    }
    back > 0
}

/// From one limit to the other, with its debt in time. A debt above the new burst would be cut in cells: not then.
/// Whether it was changed.
pub fn change(key: &mut Key, world: &World<'_>, now: u64) -> bool {
    let (from, to) = (key.slow, 1 - key.slow);
    let next = &world.buckets[to];
    let lead = key.oracle.lead(now.into());
    if lead == 0 || lead > next.burst * next.t {
        return false;
    }
    let (old, new) = (&world.cells[from], &world.cells[to]);
    assert_eq!(key.cell.change(old, new, now, Change::KeepTime), Ok(true));
    assert_eq!(key.own.change(old, new, now, Change::KeepTime), Ok(true));
    if let Some(small) = &world.small {
        assert_eq!(key.small.change(&small[from], &small[to], now, Change::KeepTime), Ok(true));
    }
    key.oracle = Oracle { tat: key.oracle.tat, ..next.clone() };
    (key.slow, key.permit) = (to, None);
    true
}

/// A key that has drained by this clock is left alone by tables: a clock that is behind may still see its debt.
pub fn reset(key: &mut Key, world: &World<'_>, now: u64) {
    if key.oracle.lead(now.into()) == 0 {
        return;
    }
    key.cell.reset();
    key.own.reset();
    key.small.reset();
    assert!(world.table.reset_key(now, key.hash) && world.one.reset_key(now, key.hash));
    (key.oracle.tat, key.permit, key.out) = (0, None, false);
}

/// A burst of up to 64 requests of some keys under one limit: by tables at once, by cells one after the other.
pub fn burst(keys: &mut [Key], world: &World<'_>, now: u64, rng: &mut Rng, counts: &mut Counts) {
    let slow = keys[rng.below(keys.len() as u64) as usize].slow;
    let of: Vec<usize> = (0..keys.len()).filter(|&k| keys[k].slow == slow).collect();
    let (first, few) = (rng.below(of.len() as u64) as usize, rng.within(1, of.len() as u64));
    // Groups take bursts of 24 and more whose requests cost one unit each.
    let whole = !rng.one_in(4);
    let n = if whole { rng.within(24, 64) } else { rng.within(2, 64) };
    let weighted = !whole && rng.one_in(2);
    let (limit, keyed) = (&world.cells[slow], &world.tables[slow]);
    let (mut hashes, mut costs, mut wanted) = (Vec::with_capacity(64), Vec::with_capacity(64), 0u64);
    for i in 0..n {
        let key = &mut keys[of[(first + rng.below(few) as usize) % of.len()]];
        let units = if weighted { cost(rng, limit.burst()) } else { 1 };
        let passes = key.oracle.check(now.into(), units, 0).verdict == 0;
        key.wraps();
        let told = [
            key.cell.check(limit, now, units.into()).passes(),
            key.own.check(limit, now, units.into()).passes(),
        ];
        assert_eq!(told, [passes; 2], "request {i} of a burst, cost {units} at {now}");
        let small = key.small_limit(world);
        if let Some(limit) = small {
            assert_eq!(
                key.small.check(limit, now, units.into()).passes(),
                passes,
                "request {i}, 32 bits at {now}"
            );
        }
        count(counts, small.is_some());
        counts[PASSED + usize::from(!passes)] += 1;
        wanted |= u64::from(passes) << i;
        hashes.push(key.hash);
        costs.push(units);
    }
    let costs = weighted.then_some(&costs[..]);
    // What the last burst had is a guess: any will do.
    let last = if rng.one_in(2) { !0 } else { 0 };
    let burst = Burst { limit: keyed, now, hashes: &hashes, costs, last };
    let mut counters = [Counters::default(); 2];
    let (counted, stands_alone) = (rng.one_in(2), rng.one_in(2));
    let [shared, alone] = counters.each_mut().map(|counters| counted.then_some(counters));
    let next = || if stands_alone { NextBurst::NONE } else { NextBurst::hashes(&[]) };
    let told =
        [burst.check(&world.table, shared, next()).unwrap(), burst.check(&world.one, alone, next()).unwrap()];
    assert_eq!(told, [wanted; 2], "a burst of {n} at {now}, {few} keys from {first} on");
    for c in counters.iter().filter(|c| c.conforming + c.non_conforming + c.never > 0) {
        let passed = u64::from(wanted.count_ones());
        assert_eq!((c.conforming, c.non_conforming + c.never), (passed, n - passed), "counted at {now}");
    }
    counts[if n >= 24 && !weighted { GROUPED } else { LISTED }] += 2 * n;
}
