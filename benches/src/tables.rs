//! The keyed table: single calls, bursts, the exclusive form and churn.
//!
//! ```text
//! conforming  each key comes at half its rate: about half the words are live, half expired
//! denied      each key has one unit in 1024 of its visits and spent it: nearly every decision is a denied hit
//! churn       every key is new; it occupies its slot for as long as a quarter of all slots need to fill
//! ```
//!
//! All keys are inserted before the first decision. A table has room for at least twice its keys; a few keys in a
//! thousand find their set full at first and get a slot when one expires.

use tatcell::{lines_for, Access, Exclusive, LimitSpec, Shared, Table, TableLimit, TableOptions};

use crate::keys::{key, Stream};
use crate::memory::Memory;
use crate::suite::{Body, Mix, Suite, DT};

const SEED: [u8; 16] = *b"not so secret 16";

/// Slots of a table for this many keys: load 0.48 at most.
pub const fn slots_for(keys: usize) -> usize {
    keys * 21 / 10
}

/// Untimed and timed decisions of a visit: enough to fill the caches again.
pub const fn visits(keys: u32) -> (u64, u64) {
    match keys {
        0..=4_096 => (1 << 13, 1 << 16),
        4_097..=200_000 => (1 << 17, 1 << 17),
        _ => (1 << 19, 1 << 18),
    }
}

/// The limit under which a stream of `keys` uniform keys passes or is denied; the peers get the same.
pub fn spec(keys: u32, mix: Mix) -> (u64, u64) {
    let visit = u64::from(keys) * DT;
    match mix {
        Mix::Deny => (visit * 1024, 1),
        _ => (visit / 2, 32),
    }
}

/// The emission interval that keeps a quarter of the slots of the 1e6 table busy when every key is new.
pub const CHURN_PERIOD: u64 = slots_for(1_000_000) as u64 / 4 * DT;

pub struct Bed<M: Access> {
    table: Table<'static, M>,
    limit: TableLimit,
    stream: Stream,
    now: u64,
    fresh: u64,
}

type Init<M> = fn(&mut Memory, &TableOptions) -> Table<'static, M>;

fn shared(memory: &mut Memory, options: &TableOptions) -> Table<'static, Shared> {
    Table::init(memory.lines(), options).expect("a table")
}

fn exclusive(memory: &mut Memory, options: &TableOptions) -> Table<'static, Exclusive> {
    Table::init_exclusive(memory.lines_mut(), options).expect("a table")
}

/// An empty table with its limit.
fn bed<M: Access>(init: Init<M>, keys: u32, (period, burst): (u64, u64), notes: &mut Vec<String>) -> Bed<M> {
    let spec = LimitSpec::new(1, period, burst);
    let mut memory = Memory::new(lines_for(slots_for(keys as usize)) * 64);
    let table = init(&mut memory, &TableOptions::new(spec).seed(SEED));
    if keys >= 1_000_000 && !notes.iter().any(|note| note.starts_with("huge")) {
        notes.push(format!("huge pages: {}", memory.huge_pages()));
    }
    let limit = table.limit(&spec).expect("a limit");
    Bed { table, limit, stream: Stream::uniform(keys), now: 1 << 40, fresh: 0 }
}

/// A table with all its keys.
fn filled<M: Access>(init: Init<M>, keys: u32, mix: Mix, hash: Hash<M>, notes: &mut Vec<String>) -> Bed<M> {
    let bed = bed(init, keys, spec(keys, mix), notes);
    for id in 0..u64::from(keys) {
        let _ = bed.table.check_hash(&bed.limit, bed.now, hash(&bed.table, id), 1);
    }
    bed
}

fn row<M: Access + 'static>(mut bed: Bed<M>, step: Step<M>) -> Body {
    Box::new(move |n| step(&mut bed, n))
}

type Step<M> = fn(&mut Bed<M>, u64) -> u64;
type Hash<M> = fn(&Table<'static, M>, u64) -> u64;

pub fn add(suite: &mut Suite) {
    for (keys, size) in [(1_000, "1e3"), (100_000, "1e5"), (1_000_000, "1e6")] {
        let mut add = |id: &str, text: &str, mix, hash: Hash<Shared>, step: Step<Shared>| {
            let (id, text) = (format!("table{size}.{id}"), format!("{size} keys, {text}"));
            suite.add(&id, &text, mix, visits(keys), |notes| {
                row(filled(shared, keys, mix, hash, notes), step)
            });
        };
        let (pass, deny) = (Mix::Pass, Mix::Deny);
        add("single", "single call", pass, sip, single);
        add("single_denied", "single call, denied", deny, sip, single);
        add("burst32", "burst of 32", pass, sip, |bed, n| lone::<_, 32>(bed, n, sip));
        add("burst32_denied", "burst of 32, denied", deny, sip, |bed, n| lone::<_, 32>(bed, n, sip));
        add("burst64", "burst of 64", pass, sip, |bed, n| lone::<_, 64>(bed, n, sip));
        add("next32", "burst of 32, next prefetched", pass, sip, |bed, n| next::<_, 32>(bed, n, sip));
        add("next32_denied", "the same, denied", deny, sip, |bed, n| next::<_, 32>(bed, n, sip));
        add("next64", "burst of 64, next prefetched", pass, sip, |bed, n| next::<_, 64>(bed, n, sip));
        add("hashed32", "burst of 32, caller's hash", pass, mix64, |bed, n| lone::<_, 32>(bed, n, mix64));
        add("hashed_next32", "the same, next prefetched", pass, mix64, |bed, n| next::<_, 32>(bed, n, mix64));
        add("hashed_next64", "burst of 64, the same", pass, mix64, |bed, n| next::<_, 64>(bed, n, mix64));
        let mut add = |id: &str, text: &str, step: Step<Exclusive>| {
            let (id, text) = (format!("table{size}.{id}"), format!("{size} keys, exclusive, {text}"));
            suite.add(&id, &text, pass, visits(keys), |notes| {
                row(filled(exclusive, keys, pass, sip, notes), step)
            });
        };
        add("exclusive", "single call", single);
        add("exclusive_next32", "burst of 32, next prefetched", |bed, n| next::<_, 32>(bed, n, sip));
    }
    let mut add = |id: &str, text: &str, step: Step<Shared>| {
        suite.add(id, text, Mix::Pass, visits(1_000_000), |notes| {
            row(bed(shared, 1_000_000, (CHURN_PERIOD, 1), notes), step)
        });
    };
    add("churn.single", "every key new, single call", churn);
    add("churn.next32", "every key new, burst of 32, next prefetched", churn_next::<_, 32>);
}

/// The table's own hash of a key.
#[inline(always)]
fn sip<M: Access>(table: &Table<'static, M>, id: u64) -> u64 {
    table.hash(&key(id)).unwrap_or(0)
}

/// A hash that costs next to nothing, as one that a network card delivers.
#[inline(always)]
fn mix64<M: Access>(_: &Table<'static, M>, id: u64) -> u64 {
    let z = (id + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 32).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 32
}

#[inline(never)]
fn single<M: Access>(bed: &mut Bed<M>, n: u64) -> u64 {
    let (table, limit) = (&bed.table, &bed.limit);
    let (mut passed, mut now) = (0, bed.now);
    let (ids, turn) = bed.stream.take(n as usize);
    for &id in ids {
        now += DT;
        passed += u64::from(table.check(limit, now, &key(turn.id(id)), 1).is_ok_and(|o| o.passes()));
    }
    bed.now = now;
    passed
}

/// Bursts of K, each hashed and decided before the next is looked at.
#[inline(always)]
fn lone<M: Access, const K: usize>(
    bed: &mut Bed<M>,
    n: u64,
    hash: impl Fn(&Table<'static, M>, u64) -> u64,
) -> u64 {
    let Bed { table, limit, stream, now, .. } = bed;
    let mut passed = 0;
    let (ids, turn) = stream.take(n as usize);
    for ids in ids.chunks_exact(K) {
        *now += DT * K as u64;
        let hashes: [u64; K] = std::array::from_fn(|i| hash(table, turn.id(ids[i])));
        passed += u64::from(table.check_burst(limit, *now, &hashes, None).unwrap_or(0).count_ones());
    }
    passed
}

/// Bursts of K, each hashed and prefetched before the one ahead of it is decided.
#[inline(always)]
fn next<M: Access, const K: usize>(
    bed: &mut Bed<M>,
    n: u64,
    hash: impl Fn(&Table<'static, M>, u64) -> u64,
) -> u64 {
    let Bed { table, limit, stream, now, .. } = bed;
    let (ids, turn) = stream.take(n as usize);
    let bursts = ids.chunks_exact(K);
    rolling::<M, K>(
        table,
        limit,
        now,
        bursts.map(|ids| std::array::from_fn(|i| hash(table, turn.id(ids[i])))),
    )
}

#[inline(always)]
fn rolling<M: Access, const K: usize>(
    table: &Table<'static, M>,
    limit: &TableLimit,
    now: &mut u64,
    mut bursts: impl Iterator<Item = [u64; K]>,
) -> u64 {
    let mut passed = 0;
    let mut decide = |hashes: &[u64; K]| {
        *now += DT * K as u64;
        passed += u64::from(table.check_burst(limit, *now, hashes, None).unwrap_or(0).count_ones());
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

#[inline(never)]
fn churn<M: Access>(bed: &mut Bed<M>, n: u64) -> u64 {
    let Bed { table, limit, now, fresh, .. } = bed;
    let mut passed = 0;
    for _ in 0..n {
        *now += DT;
        *fresh += 1;
        passed += u64::from(table.check(limit, *now, &key(*fresh), 1).is_ok_and(|o| o.passes()));
    }
    passed
}

#[inline(never)]
fn churn_next<M: Access, const K: usize>(bed: &mut Bed<M>, n: u64) -> u64 {
    let Bed { table, limit, now, fresh, .. } = bed;
    let bursts = (0..n / K as u64).map(|_| {
        std::array::from_fn(|_| {
            *fresh += 1;
            sip(table, *fresh)
        })
    });
    rolling::<M, K>(table, limit, now, bursts)
}
