//! Floors: what the bare operations under a decision cost on this machine, in this run.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tatcell::{lines_for, LimitSpec, Line, Table, TableOptions};

use crate::keys::{key, Stream};
use crate::memory::Memory;
use crate::suite::{Body, Mix, Suite, DT};
use crate::tables::slots_for;

const CELL: (u64, u64) = (1 << 10, 1 << 17);
const LARGE: (u64, u64) = (1 << 19, 1 << 18);

pub fn add(suite: &mut Suite) {
    suite.add("floor.cmpxchg", "load + lock cmpxchg, one word", Mix::Bare, CELL, |_| {
        let word = Box::new(AtomicU64::new(0));
        Box::new(move |n| cmpxchg(&word, n))
    });
    suite.add("floor.load", "load + compare, one word", Mix::Bare, CELL, |_| {
        let word = Box::new(AtomicU64::new(u64::MAX));
        Box::new(move |n| load(&word, n))
    });
    suite.add("floor.siphash", "SipHash-1-3 of 16 bytes", Mix::Bare, CELL, |_| {
        let lines: &'static [Line] = Memory::new(lines_for(16) * 64).lines();
        let spec = LimitSpec::new(1, 1 << 20, 1);
        let table = Table::init(lines, &TableOptions::new(spec).seed(*b"not so secret 16")).expect("a table");
        Box::new(move |n| siphash(&table, n))
    });
    suite
        .add("floor.random", "lock cmpxchg over the 1e6 table's memory", Mix::Bare, LARGE, |_| words(random));
    suite.add("floor.two_phase32", "32 prefetches, then 32 lock cmpxchg", Mix::Bare, LARGE, |_| {
        words(two_phase::<32>)
    });
    suite.add("floor.two_phase64", "64 prefetches, then 64 lock cmpxchg", Mix::Bare, LARGE, |_| {
        words(two_phase::<64>)
    });
    suite.add("floor.ahead32", "prefetch 32 ahead + lock cmpxchg", Mix::Bare, LARGE, |_| words(ahead::<32>));
    suite.add("floor.ahead64", "prefetch 64 ahead + lock cmpxchg", Mix::Bare, LARGE, |_| words(ahead::<64>));
}

#[inline(never)]
fn cmpxchg(word: &AtomicU64, n: u64) -> u64 {
    let (mut won, mut now) = (0, 0u64);
    for _ in 0..n {
        now += DT;
        let seen = word.load(Relaxed);
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
fn siphash(table: &Table<'static>, n: u64) -> u64 {
    let mut sum = 0u64;
    for id in 0..n {
        sum = sum.wrapping_add(table.hash(&key(id)).unwrap_or(0));
    }
    std::hint::black_box(sum);
    n
}

/// Words of a table of the size that 1e6 keys get, and a random order to visit them.
struct Words {
    words: &'static [AtomicU64],
    stream: Stream,
}

fn words(step: fn(&mut Words, u64) -> u64) -> Body {
    let words = Memory::new((lines_for(slots_for(1_000_000)) - 1) * 64).words();
    for word in words {
        word.store(1, Relaxed);
    }
    let mut state = Words { words, stream: Stream::uniform(words.len() as u32) };
    Box::new(move |n| step(&mut state, n))
}

#[inline(always)]
fn touch(word: &AtomicU64) -> u64 {
    let seen = word.load(Relaxed);
    word.compare_exchange(seen, seen.wrapping_add(DT), Relaxed, Relaxed).is_ok() as u64
}

#[inline(always)]
fn prefetch(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of a valid address has no effect but on the caches.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

#[inline(never)]
fn random(state: &mut Words, n: u64) -> u64 {
    let words = state.words;
    state.stream.take(n as usize).0.iter().map(|&i| touch(&words[i as usize])).sum()
}

#[inline(never)]
fn two_phase<const K: usize>(state: &mut Words, n: u64) -> u64 {
    let words = state.words;
    let mut won = 0;
    for burst in state.stream.take(n as usize).0.chunks_exact(K) {
        burst.iter().for_each(|&i| prefetch(&words[i as usize]));
        won += burst.iter().map(|&i| touch(&words[i as usize])).sum::<u64>();
    }
    won
}

#[inline(never)]
fn ahead<const K: usize>(state: &mut Words, n: u64) -> u64 {
    let words = state.words;
    let ids = state.stream.take(n as usize).0;
    ids.iter().take(K).for_each(|&i| prefetch(&words[i as usize]));
    let rolling: u64 = ids
        .iter()
        .zip(&ids[K..])
        .map(|(&i, &next)| {
            prefetch(&words[next as usize]);
            touch(&words[i as usize])
        })
        .sum();
    rolling + ids[ids.len() - K..].iter().map(|&i| touch(&words[i as usize])).sum::<u64>()
}
