//! Steps, the loops over a fixture. Each makes n decisions, [`DT`] apart, and returns how many passed: single calls,
//! lone bursts, bursts that prefetch the next one before or in between, churn.

use tatcell::{Access, Burst, NextBurst, Table, TableLimit};

use crate::fixture::{keyed, Fixture};
use crate::keys::key;
use crate::suite::DT;

#[inline(never)]
pub fn single<M: Access, const N: usize>(
    fixture: &mut Fixture<M>,
    n: u64,
    key: impl Fn(u64) -> [u8; N],
) -> u64 {
    let Fixture { table, limit, stream, now, .. } = fixture;
    let (mut passed, mut t) = (0, *now);
    let (ids, turn) = stream.take(n as usize);
    for &id in ids {
        t += DT;
        passed += u64::from(table.check(limit, t, &key(turn.id(id)), 1).is_ok_and(|o| o.passes()));
    }
    *now = t;
    passed
}

/// Bursts of K, each hashed and decided before the next is looked at.
#[inline(never)]
pub fn lone<M: Access, const K: usize>(
    fixture: &mut Fixture<M>,
    n: u64,
    hash: impl Fn(&Table<'static, M>, u64) -> u64,
) -> u64 {
    let Fixture { table, limit, stream, now, .. } = fixture;
    let mut passed = 0;
    let (ids, turn) = stream.take(n as usize);
    for ids in ids.chunks_exact(K) {
        *now += DT * K as u64;
        let hashes: [u64; K] = std::array::from_fn(|i| hash(table, turn.id(ids[i])));
        let pass = Burst::new(limit, *now, &hashes).check(table, None, NextBurst::NONE);
        passed += u64::from(pass.unwrap_or(0).count_ones());
    }
    passed
}

/// Hashes a burst, and prefetches each key as soon as it is hashed: the first call of a stream.
#[inline(always)]
fn prepare<M: Access, const N: usize>(
    table: &Table<'static, M>,
    limit: &TableLimit,
    hashes: &mut [u64],
    key: impl Fn(usize) -> [u8; N],
) {
    let _ = Burst::new(limit, 0, &[]).check(table, None, NextBurst::keys(hashes, key));
}

/// The same, each key prefetched as soon as it is hashed.
#[inline(never)]
pub fn prepared<M: Access, const K: usize, const N: usize>(
    fixture: &mut Fixture<M>,
    n: u64,
    key: impl Fn(u64) -> [u8; N] + Copy,
) -> u64 {
    let Fixture { table, limit, stream, now, .. } = fixture;
    let (mut passed, mut last, mut hashes) = (0, 0u64, [0; K]);
    let (ids, turn) = stream.take(n as usize);
    for ids in ids.chunks_exact(K) {
        *now += DT * K as u64;
        prepare(table, limit, &mut hashes, |i| key(turn.id(ids[i])));
        let burst = Burst { last, ..Burst::new(limit, *now, &hashes) };
        last = burst.check(table, None, NextBurst::hashes(&[])).unwrap_or(0);
        passed += u64::from(last.count_ones());
    }
    passed
}

/// Bursts of K, each prepared B bursts before it is decided: a longer look-ahead than one burst.
#[inline(never)]
pub fn far<M: Access, const K: usize, const B: usize, const N: usize>(
    fixture: &mut Fixture<M>,
    n: u64,
    key: impl Fn(u64) -> [u8; N] + Copy,
) -> u64 {
    let Fixture { table, limit, stream, now, .. } = fixture;
    let (mut passed, mut last, mut ring) = (0, 0u64, [[0; K]; B]);
    let (ids, turn) = stream.take(n as usize);
    let mut coming = ids.chunks_exact(K);
    for (hashes, ids) in ring.iter_mut().zip(&mut coming) {
        prepare(table, limit, hashes, |i| key(turn.id(ids[i])));
    }
    for at in 0..n as usize / K {
        *now += DT * K as u64;
        let hashes = &mut ring[at % B];
        let burst = Burst { last, ..Burst::new(limit, *now, hashes) };
        last = burst.check(table, None, NextBurst::hashes(&[])).unwrap_or(0);
        passed += u64::from(last.count_ones());
        if let Some(ids) = coming.next() {
            prepare(table, limit, hashes, |i| key(turn.id(ids[i])));
        }
    }
    passed
}

/// Bursts of K, each hashed and prefetched before the one ahead of it is decided.
#[inline(never)]
pub fn next<M: Access, const K: usize>(
    fixture: &mut Fixture<M>,
    n: u64,
    hash: impl Fn(&Table<'static, M>, u64) -> u64,
) -> u64 {
    next_with::<M, K>(fixture, n, hash, plain)
}

/// As [`next`], with another call for the decision.
#[inline(always)]
pub fn next_with<M: Access, const K: usize>(
    fixture: &mut Fixture<M>,
    n: u64,
    hash: impl Fn(&Table<'static, M>, u64) -> u64,
    decide: impl FnMut(&Table<'static, M>, &TableLimit, u64, &[u64; K]) -> u64,
) -> u64 {
    let Fixture { table, limit, stream, now, .. } = fixture;
    let (ids, turn) = stream.take(n as usize);
    let bursts = ids.chunks_exact(K).map(|ids| std::array::from_fn(|i| hash(table, turn.id(ids[i]))));
    rolling(table, limit, now, bursts, decide)
}

/// The bits of those that pass.
#[inline(always)]
fn plain<M: Access, const K: usize>(
    table: &Table<'static, M>,
    limit: &TableLimit,
    now: u64,
    hashes: &[u64; K],
) -> u64 {
    Burst::new(limit, now, hashes).check(table, None, NextBurst::hashes(&[])).unwrap_or(0)
}

#[inline(always)]
fn rolling<M: Access, const K: usize>(
    table: &Table<'static, M>,
    limit: &TableLimit,
    now: &mut u64,
    mut bursts: impl Iterator<Item = [u64; K]>,
    mut decide: impl FnMut(&Table<'static, M>, &TableLimit, u64, &[u64; K]) -> u64,
) -> u64 {
    let mut passed = 0;
    let mut decide = |hashes: &[u64; K]| {
        *now += DT * K as u64;
        passed += u64::from(decide(table, limit, *now, hashes).count_ones());
    };
    let Some(mut waiting) = bursts.next() else { return 0 };
    table.prefetch(&waiting);
    for next in bursts {
        table.prefetch(&next);
        decide(&waiting);
        waiting = next;
    }
    decide(&waiting);
    passed
}

/// Bursts of K, each hashed before the one ahead of it is decided, and prefetched by the call that decides that.
#[inline(never)]
pub fn then<M: Access, const K: usize>(
    fixture: &mut Fixture<M>,
    n: u64,
    hash: impl Fn(&Table<'static, M>, u64) -> u64,
) -> u64 {
    let Fixture { table, limit, stream, now, .. } = fixture;
    let (ids, turn) = stream.take(n as usize);
    let mut bursts = ids.chunks_exact(K).map(|ids| std::array::from_fn(|i| hash(table, turn.id(ids[i]))));
    let (mut passed, mut last) = (0, 0);
    let mut waiting: [u64; K] = bursts.next().unwrap_or([0; K]);
    table.prefetch(&waiting);
    let mut decide = |hashes: &[u64; K], next: &[u64]| {
        *now += DT * K as u64;
        let burst = Burst { last, ..Burst::new(limit, *now, hashes) };
        last = burst.check(table, None, NextBurst::hashes(next)).unwrap_or(0);
        passed += u64::from(last.count_ones());
    };
    for next in bursts {
        decide(&waiting, &next);
        waiting = next;
    }
    decide(&waiting, &[]);
    passed
}

/// Bursts of K, each hashed and prefetched by the call that decides the one before it.
#[inline(never)]
pub fn ahead<M: Access, const K: usize, const N: usize>(
    fixture: &mut Fixture<M>,
    n: u64,
    key: impl Fn(u64) -> [u8; N] + Copy,
) -> u64 {
    let Fixture { table, limit, stream, now, .. } = fixture;
    let (mut passed, mut last) = (0, 0u64);
    let (ids, turn) = stream.take(n as usize);
    let mut bursts = ids.chunks_exact(K);
    let Some(first) = bursts.next() else { return 0 };
    let (mut hashes, mut next) = ([0; K], [0; K]);
    prepare(table, limit, &mut hashes, |i| key(turn.id(first[i])));
    for ids in bursts {
        *now += DT * K as u64;
        let burst = Burst { last, ..Burst::new(limit, *now, &hashes) };
        let pass = burst.check(table, None, NextBurst::keys(&mut next, move |i| key(turn.id(ids[i]))));
        last = pass.unwrap_or(0);
        passed += u64::from(last.count_ones());
        std::mem::swap(&mut hashes, &mut next);
    }
    *now += DT * K as u64;
    passed + u64::from(plain(table, limit, *now, &hashes).count_ones())
}

/// As [`ahead`], each request with a cost of its own (one unit, which the call does not know).
#[inline(never)]
pub fn ahead_costs<M: Access, const K: usize, const N: usize>(
    fixture: &mut Fixture<M>,
    n: u64,
    key: impl Fn(u64) -> [u8; N] + Copy,
) -> u64 {
    let Fixture { table, limit, stream, now, .. } = fixture;
    let (mut passed, mut last, costs) = (0, 0u64, std::hint::black_box([1; K]));
    let (ids, turn) = stream.take(n as usize);
    let mut bursts = ids.chunks_exact(K);
    let Some(first) = bursts.next() else { return 0 };
    let (mut hashes, mut next) = ([0; K], [0; K]);
    prepare(table, limit, &mut hashes, |i| key(turn.id(first[i])));
    for ids in bursts {
        *now += DT * K as u64;
        let burst = Burst { limit, now: *now, hashes: &hashes, costs: Some(&costs), last };
        let pass = burst.check(table, None, NextBurst::keys(&mut next, move |i| key(turn.id(ids[i]))));
        last = pass.unwrap_or(0);
        passed += u64::from(last.count_ones());
        std::mem::swap(&mut hashes, &mut next);
    }
    *now += DT * K as u64;
    passed + u64::from(plain(table, limit, *now, &hashes).count_ones())
}

#[inline(never)]
pub fn churn<M: Access>(fixture: &mut Fixture<M>, n: u64) -> u64 {
    let Fixture { table, limit, now, fresh, .. } = fixture;
    let mut passed = 0;
    for _ in 0..n {
        *now += DT;
        *fresh += 1;
        let hash = keyed(table, *fresh);
        passed += u64::from(table.check_hash(limit, *now, hash, 1).is_ok_and(|o| o.passes()));
    }
    passed
}

#[inline(never)]
pub fn churn_next<M: Access, const K: usize>(fixture: &mut Fixture<M>, n: u64) -> u64 {
    let Fixture { table, limit, now, fresh, .. } = fixture;
    let bursts = (0..n / K as u64).map(|_| {
        std::array::from_fn(|_| {
            *fresh += 1;
            keyed(table, *fresh)
        })
    });
    rolling::<M, K>(table, limit, now, bursts, plain)
}

/// As [`ahead`] with keys that are all new.
#[inline(never)]
pub fn churn_ahead<M: Access, const K: usize>(fixture: &mut Fixture<M>, n: u64) -> u64 {
    let Fixture { table, limit, now, fresh, .. } = fixture;
    let (mut passed, mut last) = (0, 0u64);
    let (mut hashes, mut next) = ([0; K], [0; K]);
    let mut from = *fresh + 1;
    prepare(table, limit, &mut hashes, |i| key(from + i as u64));
    for _ in 1..n / K as u64 {
        from += K as u64;
        *now += DT * K as u64;
        let burst = Burst { last, ..Burst::new(limit, *now, &hashes) };
        let pass = burst.check(table, None, NextBurst::keys(&mut next, move |i| key(from + i as u64)));
        last = pass.unwrap_or(0);
        passed += u64::from(last.count_ones());
        std::mem::swap(&mut hashes, &mut next);
    }
    *fresh = from + K as u64;
    *now += DT * K as u64;
    passed + u64::from(plain(table, limit, *now, &hashes).count_ones())
}
