//! Floors over the memory of a table: the bare operations on as many words, in an order that no processor can predict.
//!
//! ```text
//!  random        swap                                                      as a single call waits for its line
//!  two_phase32   prefetch 32, swap 32                                      as a lone burst
//!  next64        prefetch both lines of the next 64 at once, swap 64       as a burst after `prefetch` of the next
//!  ahead64       prefetch one, swap the one of 64 before                   as a burst that prefetches in between
//!  .._load       load and compare in place of the swap                     as where all is refused
//!  .._store      load, compare, store                                      as where one owner decides
//!  .._half       a swap or a comparison, in no order                       as where half is refused
//!  .._80         80 other instructions with each
//! ```

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::bare::{others, prefetch, words, Words, HAS_OTHERS};
use crate::fixtures::visits;
use crate::suite::{Mix, Suite, DT};
use crate::tables::LARGEST;

type Step = fn(&mut Words, u64) -> u64;

/// Repetitions of four instructions that make 80.
const R80: usize = 20;

pub fn add(suite: &mut Suite) {
    for (keys, size) in [(1_000, "1e3"), (1_000_000, "1e6"), (10_000_000, "1e7"), (LARGEST, "1e8")] {
        let mut add = |id: &str, text: &str, step: Step| {
            let (id, text) = (format!("floor{size}.{id}"), format!("{size} keys, {text}"));
            suite.add(&id, &text, Mix::Bare, visits(keys), |_| {
                let mut words = words(keys);
                Box::new(move |n| step(&mut words, n))
            });
        };
        let mut both = |id: &str, text: &str, bare: Step, full: Step| {
            add(id, text, bare);
            if HAS_OTHERS {
                add(&format!("{id}_80"), &format!("{text}, 80 others"), full);
            }
        };
        both("ahead64", "prefetch 64 ahead, cmpxchg", ahead::<64, Swap<0>>, ahead::<64, Swap<R80>>);
        if keys <= 1_000_000 {
            let text = "prefetch 64 ahead, load + compare";
            both("ahead64_load", text, ahead::<64, Look<0>>, ahead::<64, Look<R80>>);
            let text = "prefetch 64 ahead, load, compare, store";
            both("ahead64_store", text, ahead::<64, Store<0>>, ahead::<64, Store<R80>>);
        }
        if keys >= 1_000_000 {
            both("random", "lock cmpxchg", random::<Swap<0>>, random::<Swap<R80>>);
            let text = "32 prefetches, 32 cmpxchg";
            both("two_phase32", text, two_phase::<32, Swap<0>>, two_phase::<32, Swap<R80>>);
            let text = "prefetch 64 ahead, cmpxchg of half of them";
            both("ahead64_half", text, ahead::<64, Half<0>>, ahead::<64, Half<R80>>);
        }
        if keys == 1_000_000 || keys == 10_000_000 {
            let text = "both lines of the next 64, 64 cmpxchg";
            both("next64", text, next::<64, Swap<0>>, next::<64, Swap<R80>>);
        }
        if keys >= 1_000_000 {
            add("two_phase64", "64 prefetches, 64 cmpxchg", two_phase::<64, Swap<0>>);
            add("ahead32", "prefetch 32 ahead, cmpxchg", ahead::<32, Swap<0>>);
        }
        if keys == LARGEST {
            add("ahead128", "prefetch 128 ahead, cmpxchg", ahead::<128, Swap<0>>);
            add("ahead256", "prefetch 256 ahead, cmpxchg", ahead::<256, Swap<0>>);
        }
    }
}

/// What is done with a word, between R times four other instructions.
trait Bare {
    fn step(word: &AtomicU64, place: usize) -> u64;
}

struct Swap<const R: usize>;
struct Look<const R: usize>;
struct Store<const R: usize>;
struct Half<const R: usize>;

impl<const R: usize> Bare for Swap<R> {
    #[inline(always)]
    fn step(word: &AtomicU64, _: usize) -> u64 {
        let seen = word.load(Relaxed);
        others::<R>();
        word.compare_exchange(seen, seen.wrapping_add(DT), Relaxed, Relaxed).is_ok() as u64
    }
}

impl<const R: usize> Bare for Look<R> {
    #[inline(always)]
    fn step(word: &AtomicU64, _: usize) -> u64 {
        let seen = word.load(Relaxed);
        others::<R>();
        u64::from(seen == 0)
    }
}

impl<const R: usize> Bare for Store<R> {
    #[inline(always)]
    fn step(word: &AtomicU64, _: usize) -> u64 {
        let seen = word.load(Relaxed);
        others::<R>();
        if seen == 0 {
            return 0;
        }
        word.store(seen.wrapping_add(DT), Relaxed);
        1
    }
}

/// A word of an odd number is only compared, as where a request does not conform.
impl<const R: usize> Bare for Half<R> {
    #[inline(always)]
    fn step(word: &AtomicU64, place: usize) -> u64 {
        match place % 2 {
            0 => Swap::<R>::step(word, place),
            _ => Look::<R>::step(word, place),
        }
    }
}

#[inline(never)]
fn random<B: Bare>(state: &mut Words, n: u64) -> u64 {
    let Words { words, stream } = state;
    let (ids, turn) = stream.take(n as usize);
    ids.iter().map(|&i| turn.id(i) as usize).map(|i| B::step(&words[i], i)).sum()
}

#[inline(never)]
fn two_phase<const K: usize, B: Bare>(state: &mut Words, n: u64) -> u64 {
    let Words { words, stream } = state;
    let (ids, turn) = stream.take(n as usize);
    let at = |&i: &u32| turn.id(i) as usize;
    let mut won = 0;
    for burst in ids.chunks_exact(K) {
        burst.iter().map(at).for_each(|i| prefetch::<false>(&words[i]));
        won += burst.iter().map(at).map(|i| B::step(&words[i], i)).sum::<u64>();
    }
    won
}

#[inline(never)]
fn next<const K: usize, B: Bare>(state: &mut Words, n: u64) -> u64 {
    let Words { words, stream } = state;
    let (ids, turn) = stream.take(n as usize);
    let at = |&i: &u32| turn.id(i) as usize;
    let ask = |i: usize| {
        prefetch::<false>(words.as_ptr().wrapping_add(i));
        // A line has eight words: the one of the same place in the neighbour.
        prefetch::<true>(words.as_ptr().wrapping_add(i ^ 8));
    };
    let mut won = 0;
    let mut coming = ids.chunks_exact(K);
    coming.next().into_iter().flatten().map(at).for_each(ask);
    for burst in ids.chunks_exact(K) {
        coming.next().into_iter().flatten().map(at).for_each(ask);
        won += burst.iter().map(at).map(|i| B::step(&words[i], i)).sum::<u64>();
    }
    won
}

#[inline(never)]
fn ahead<const K: usize, B: Bare>(state: &mut Words, n: u64) -> u64 {
    let Words { words, stream } = state;
    let (ids, turn) = stream.take(n as usize);
    let at = |i: u32| turn.id(i) as usize;
    let step = |i: u32| B::step(&words[at(i)], at(i));
    ids.iter().take(K).for_each(|&i| prefetch::<false>(&words[at(i)]));
    let rolling: u64 = ids
        .iter()
        .zip(ids.iter().skip(K))
        .map(|(&i, &next)| {
            prefetch::<false>(&words[at(next)]);
            step(i)
        })
        .sum();
    rolling + ids.iter().skip(ids.len().saturating_sub(K)).map(|&i| step(i)).sum::<u64>()
}
