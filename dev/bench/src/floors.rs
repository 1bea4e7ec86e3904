//! Floors: the cost of the bare operations under a decision, on this machine and in this run: of one word, of words in
//! the first cache, of a hash. They have no verdict. [`floor_words`](crate::floor_words) has those over a table's
//! memory.
//!
//! `_20`, `_40` and so on: with this many [`other`](others) instructions between the operations.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tatcell::{lines_for, HashKind, LimitSpec, Line, Table, TableOptions};

use crate::bare::{others, words, Words, HAS_OTHERS};
use crate::cells::CELL;
use crate::keys::key;
use crate::memory::Memory;
use crate::suite::{Body, Mix, Suite, DT};

pub fn add(suite: &mut Suite) {
    suite.add("floor.cmpxchg", "load + lock cmpxchg, one word", Mix::Bare, CELL, |_| {
        let word = Box::new(AtomicU64::new(0));
        Box::new(move |n| cmpxchg::<0>(&word, n))
    });
    between(suite);
    suite.add("floor.load", "load + compare, one word", Mix::Bare, CELL, |_| {
        let word = Box::new(AtomicU64::new(u64::MAX));
        Box::new(move |n| load(&word, n))
    });
    suite.add("floor.store", "load, compare, store, one word", Mix::Bare, CELL, |_| {
        let word = Box::new(AtomicU64::new(2 * DT));
        Box::new(move |n| store::<0>(&word, n))
    });
    suite.add("floor.denied", "limit and cost looked at, load + compare", Mix::Bare, CELL, |_| {
        let both = Box::new((AtomicU64::new(1 << 63), Terms::new(1 << 50)));
        Box::new(move |n| denied(&both.0, &both.1, n))
    });
    if HAS_OTHERS {
        suite.add("floor.cmpxchg_20", "the first, 20 other instructions", Mix::Bare, CELL, |_| {
            let word = Box::new(AtomicU64::new(0));
            Box::new(move |n| cmpxchg::<5>(&word, n))
        });
        suite.add("floor.store_20", "the store, 20 other instructions", Mix::Bare, CELL, |_| {
            let word = Box::new(AtomicU64::new(2 * DT));
            Box::new(move |n| store::<5>(&word, n))
        });
    }
    for (id, text, kind) in [
        ("floor.siphash", "SipHash-1-3 of 16 bytes", HashKind::SipHash13),
        ("floor.aes", "keyed AES hash of 16 bytes", HashKind::Aes),
    ] {
        if kind.is_available() {
            suite.add(id, text, Mix::Bare, CELL, |_| hash_row(kind));
        } else {
            suite.skip(id, "no AES in this processor");
        }
    }
}

/// What other work costs between two locked swaps of different words, which nothing runs beside.
fn between(suite: &mut Suite) {
    let mut add = |id: &str, text: &str, step: fn(&mut Words, u64) -> u64| {
        suite.add(id, text, Mix::Bare, CELL, |_| {
            let mut words = words(500);
            Box::new(move |n| step(&mut words, n))
        });
    };
    add("floor.words", "load + lock cmpxchg, words in L1", |state, n| spaced(state, n, |_| {}));
    if HAS_OTHERS {
        add("floor.words_40", "the same, 40 other instructions", |state, n| {
            spaced(state, n, |_| others::<10>())
        });
    }
    #[cfg(target_arch = "x86_64")]
    {
        add("floor.words_store", "the same, a store just before", |state, n| {
            // SAFETY: a store to a live word.
            spaced(state, n, |place| unsafe {
                std::arch::asm!("mov qword ptr [{p}], {p}", p = in(reg) place, options(nostack, preserves_flags));
            })
        });
    }
}

#[inline(always)]
fn spaced(state: &mut Words, n: u64, between: impl Fn(&mut u64)) -> u64 {
    let Words { words, stream } = state;
    let (ids, turn) = stream.take(n as usize);
    let mut place = 0;
    let step = |&i: &u32| {
        let word = &words[turn.id(i) as usize];
        let seen = word.load(Relaxed);
        between(&mut place);
        word.compare_exchange(seen, seen.wrapping_add(DT), Relaxed, Relaxed).is_ok() as u64
    };
    ids.iter().map(step).sum()
}

fn hash_row(kind: HashKind) -> Body {
    let lines: &'static [Line] = Memory::new(lines_for(16) * 64).lines();
    let options = TableOptions::new(LimitSpec::new(1, 1 << 20, 1)).hash(kind);
    let table = Table::init(lines, &options.seed(*b"not so secret 16")).expect("a table");
    Box::new(move |n| hash(&table, n))
}

#[inline(never)]
fn cmpxchg<const R: usize>(word: &AtomicU64, n: u64) -> u64 {
    let (mut won, mut now) = (0, 0u64);
    for _ in 0..n {
        now += DT;
        let seen = word.load(Relaxed);
        others::<R>();
        won += word.compare_exchange(seen, seen.wrapping_add(now), Relaxed, Relaxed).is_ok() as u64;
    }
    won
}

#[inline(never)]
fn load(word: &AtomicU64, n: u64) -> u64 {
    let (mut passed, mut now) = (0, 0u64);
    for _ in 0..n {
        now += DT;
        passed += (word.load(Relaxed) <= now) as u64;
    }
    passed
}

#[inline(never)]
fn store<const R: usize>(word: &AtomicU64, n: u64) -> u64 {
    let (mut passed, mut now) = (0, 0u64);
    for _ in 0..n {
        now += DT;
        let seen = word.load(Relaxed);
        others::<R>();
        if seen.wrapping_sub(now) <= u64::MAX >> 1 {
            word.store(seen.wrapping_add(DT), Relaxed);
            passed += 1;
        }
    }
    passed
}

/// What of a limit has to be looked at before a word can be refused; taken from memory each time, as where each call
/// has another limit, because they are atomics.
struct Terms {
    kind: AtomicU64,
    most: AtomicU64,
    units: AtomicU64,
    burst: AtomicU64,
}

impl Terms {
    fn new(units: u64) -> Terms {
        let [kind, most, units, burst] = [0, 1, units, 0].map(AtomicU64::new);
        Terms { kind, most, units, burst }
    }
}

#[inline(never)]
fn denied(word: &AtomicU64, terms: &Terms, n: u64) -> u64 {
    let (mut passed, mut now, cost) = (0, 0u64, black_box(1u64));
    for _ in 0..n {
        now += DT;
        if terms.kind.load(Relaxed) != 0 || cost.wrapping_sub(1) >= terms.most.load(Relaxed) {
            return 0;
        }
        let ahead = word.load(Relaxed).wrapping_sub(now).wrapping_add(terms.units.load(Relaxed));
        if ahead <= terms.burst.load(Relaxed) {
            passed += 1;
        }
    }
    passed
}

#[inline(never)]
fn hash(table: &Table<'static>, n: u64) -> u64 {
    let mut sum = 0u64;
    for id in 0..n {
        sum = sum.wrapping_add(table.hash(&key(id)).unwrap_or(0));
    }
    std::hint::black_box(sum);
    n
}
