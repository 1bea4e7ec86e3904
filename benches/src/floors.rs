//! Floors: what the bare operations under a decision cost on this machine, in this run. Their loops go over words of
//! their own, in the order of the same streams; they have no verdict.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tatcell::{lines_for, HashKind, LimitSpec, Line, Table, TableOptions};

use crate::beds::{slots_for, visits};
use crate::keys::{key, Stream};
use crate::memory::Memory;
use crate::suite::{Body, Mix, Suite, DT};
use crate::tables::LARGEST;

const CELL: (u64, u64) = (1 << 10, 1 << 17);

pub fn add(suite: &mut Suite) {
    suite.add("floor.cmpxchg", "load + lock cmpxchg, one word", Mix::Bare, CELL, |_| {
        let word = Box::new(AtomicU64::new(0));
        Box::new(move |n| cmpxchg(&word, n))
    });
    between(suite);
    suite.add("floor.load", "load + compare, one word", Mix::Bare, CELL, |_| {
        let word = Box::new(AtomicU64::new(u64::MAX));
        Box::new(move |n| load(&word, n))
    });
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
    for (keys, size) in [(1_000_000, "1e6"), (10_000_000, "1e7"), (LARGEST, "1e8")] {
        let mut made: Option<Rc<RefCell<Words>>> = None;
        let mut add = |id: &str, text: &str, step: fn(&mut Words, u64) -> u64| {
            let (id, text) = (format!("floor{size}.{id}"), format!("{size} keys, {text}"));
            suite.add(&id, &text, Mix::Bare, visits(keys), |_| {
                let words = made.get_or_insert_with(|| Rc::new(RefCell::new(words(keys)))).clone();
                Box::new(move |n| step(&mut words.borrow_mut(), n))
            });
        };
        add("random", "lock cmpxchg", |state, n| random(state, n, || {}));
        add("two_phase32", "32 prefetches, 32 cmpxchg", |state, n| two_phase::<32>(state, n, || {}));
        add("two_phase64", "64 prefetches, 64 cmpxchg", |state, n| two_phase::<64>(state, n, || {}));
        add("ahead32", "prefetch 32 ahead, cmpxchg", |state, n| ahead::<32>(state, n, || {}));
        add("ahead64", "prefetch 64 ahead, cmpxchg", |state, n| ahead::<64>(state, n, || {}));
        add("ahead64_half", "prefetch 64 ahead, cmpxchg of half of them, in no order", half::<64>);
        if keys == LARGEST {
            add("ahead128", "prefetch 128 ahead, cmpxchg", |state, n| ahead::<128>(state, n, || {}));
            add("ahead256", "prefetch 256 ahead, cmpxchg", |state, n| ahead::<256>(state, n, || {}));
        }
        #[cfg(target_arch = "x86_64")]
        {
            add("random_80", "lock cmpxchg, 80 other instructions", |state, n| {
                random(state, n, others::<20>)
            });
            add("two_phase32_80", "32 prefetches, 32 cmpxchg, 80 other instructions each", |state, n| {
                two_phase::<32>(state, n, others::<20>)
            });
            add("ahead64_80", "prefetch 64 ahead, cmpxchg, 80 other instructions", |state, n| {
                ahead::<64>(state, n, others::<20>)
            });
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
    #[cfg(target_arch = "x86_64")]
    {
        add("floor.words_40", "the same, 40 other instructions", |state, n| {
            spaced(state, n, |_| others::<10>())
        });
        add("floor.words_store", "the same, a store just before", |state, n| {
            // SAFETY: a store to a live word.
            spaced(state, n, |place| unsafe {
                std::arch::asm!("mov qword ptr [{p}], {p}", p = in(reg) place, options(nostack, preserves_flags));
            })
        });
    }
}

/// Four instructions R times: none waits for another, and nothing waits for them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn others<const R: usize>() {
    // SAFETY: arithmetic on two registers.
    unsafe {
        std::arch::asm!(
            ".rept {r}",
            "lea {b}, [{a} + 1]", "lea {c}, [{a} + 2]", "lea {b}, [{a} + 3]", "lea {c}, [{a} + 4]",
            ".endr",
            r = const R, a = in(reg) 0u64, b = out(reg) _, c = out(reg) _,
            options(nomem, nostack, preserves_flags)
        );
    }
}

#[inline(always)]
fn spaced(state: &mut Words, n: u64, between: impl Fn(&mut u64)) -> u64 {
    let words = state.words;
    let (ids, turn) = state.stream.take(n as usize);
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
fn hash(table: &Table<'static>, n: u64) -> u64 {
    let mut sum = 0u64;
    for id in 0..n {
        sum = sum.wrapping_add(table.hash(&key(id)).unwrap_or(0));
    }
    std::hint::black_box(sum);
    n
}

/// The words of a table for so many keys, and a random order to visit them.
struct Words {
    words: &'static [AtomicU64],
    stream: Stream,
}

fn words(keys: u32) -> Words {
    let words = Memory::new((lines_for(slots_for(keys as usize)) - 1) * 64).words();
    for word in words {
        word.store(1, Relaxed);
    }
    Words { words, stream: Stream::uniform(words.len() as u32) }
}

#[inline(always)]
fn touch(word: &AtomicU64, between: impl Fn()) -> u64 {
    let seen = word.load(Relaxed);
    between();
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
fn random(state: &mut Words, n: u64, between: impl Fn()) -> u64 {
    let words = state.words;
    let (ids, turn) = state.stream.take(n as usize);
    ids.iter().map(|&i| touch(&words[turn.id(i) as usize], &between)).sum()
}

#[inline(never)]
fn two_phase<const K: usize>(state: &mut Words, n: u64, between: impl Fn()) -> u64 {
    let words = state.words;
    let (ids, turn) = state.stream.take(n as usize);
    let mut won = 0;
    for burst in ids.chunks_exact(K) {
        burst.iter().for_each(|&i| prefetch(&words[turn.id(i) as usize]));
        won += burst.iter().map(|&i| touch(&words[turn.id(i) as usize], &between)).sum::<u64>();
    }
    won
}

/// As [`ahead`]; a word of an odd number is only compared, as where a request does not conform.
#[inline(never)]
fn half<const K: usize>(state: &mut Words, n: u64) -> u64 {
    let words = state.words;
    let (ids, turn) = state.stream.take(n as usize);
    let at = |i: u32| turn.id(i) as usize;
    let step = |place: usize| match place % 2 {
        0 => touch(&words[place], || {}),
        _ => u64::from(words[place].load(Relaxed) == 0),
    };
    ids.iter().take(K).for_each(|&i| prefetch(&words[at(i)]));
    let rolling: u64 = ids
        .iter()
        .zip(&ids[K..])
        .map(|(&i, &next)| {
            prefetch(&words[at(next)]);
            step(at(i))
        })
        .sum();
    rolling + ids[ids.len() - K..].iter().map(|&i| step(at(i))).sum::<u64>()
}

#[inline(never)]
fn ahead<const K: usize>(state: &mut Words, n: u64, between: impl Fn()) -> u64 {
    let words = state.words;
    let (ids, turn) = state.stream.take(n as usize);
    let word = |i: u32| &words[turn.id(i) as usize];
    ids.iter().take(K).for_each(|&i| prefetch(word(i)));
    let rolling: u64 = ids
        .iter()
        .zip(&ids[K..])
        .map(|(&i, &next)| {
            prefetch(word(next));
            touch(word(i), &between)
        })
        .sum();
    rolling + ids[ids.len() - K..].iter().map(|&i| touch(word(i), || {})).sum::<u64>()
}
