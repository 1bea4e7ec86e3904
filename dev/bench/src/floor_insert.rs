//! The floor of a new key: only the work that every insert into a set of two lines must do.
//!
//! ```text
//!  hash, place        as in floor_single; every key is new, as in the rows of churn
//!  look for the tag   both lines                         is the key there?
//!  look for room      both lines                         else the slot that the tag names
//!  swap               claim the slot
//!  look for the tag   both lines                         has another thread claimed one for this key?
//!  swap               commit
//! ```
//!
//! An insert also finds out whose limit it is, how old each of sixteen words is, which slot it may take and what to do
//! with a claim whose thread has died; then it makes the charge and the answer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::bare::{others, prefetch};
use crate::fixtures::visits;
use crate::floor_single::{found, has_all, Line, Lines, Search, Sse2, Wide, LACKS};
use crate::keys::key;
use crate::suite::{Mix, Suite};

const KEYS: u32 = 1_000_000;
/// Keys that are asked for before the first of them is inserted.
const AHEAD: usize = 64;
/// Repetitions of four instructions that make 240.
const R240: usize = 60;
/// In a word that is claimed and not committed.
const CLAIM: u64 = 2;

type Step = fn(&mut New, u64) -> u64;

/// The lines, and the last new key.
struct New {
    lines: Lines,
    fresh: u64,
}

pub fn add(suite: &mut Suite) {
    let wide = is_x86_feature_detected!("avx512f");
    let mut add = |id: &str, text: &str, [narrow, broad]: [Step; 2]| {
        if !has_all() {
            suite.skip(id, LACKS);
            return;
        }
        let step = if wide { broad } else { narrow };
        suite.add(id, text, Mix::Bare, visits(KEYS), |_| {
            let mut new = New { lines: Lines::with(KEYS, u64::MAX), fresh: 0 };
            Box::new(move |n| step(&mut new, n))
        });
    };
    let (one, ahead) = ("1e6 keys, new: hash, three looks, 2 cmpxchg", "1e6 keys, the same, 64 ahead");
    let more = |text: &str| format!("{text}, 240 others");
    add("floor1e6.insert", one, [single::<Sse2, 0>, single::<Wide, 0>]);
    add("floor1e6.insert_240", &more(one), [single::<Sse2, R240>, single::<Wide, R240>]);
    add("floor1e6.insert_ahead64", ahead, [rolling::<Sse2, 0>, rolling::<Wide, 0>]);
    add("floor1e6.insert_ahead64_240", &more(ahead), [rolling::<Sse2, R240>, rolling::<Wide, R240>]);
}

#[inline(never)]
fn single<S: Search, const R: usize>(new: &mut New, n: u64) -> u64 {
    let New { lines, fresh } = new;
    let mut won = 0;
    for _ in 0..n {
        *fresh += 1;
        let (home, tag) = lines.place(lines.hash(key(*fresh)));
        won += insert::<S, R>(lines, home, tag);
    }
    won
}

#[inline(never)]
fn rolling<S: Search, const R: usize>(new: &mut New, n: u64) -> u64 {
    let New { lines, fresh } = new;
    let coming = |fresh: &mut u64| {
        *fresh += 1;
        let (home, tag) = lines.place(lines.hash(key(*fresh)));
        prefetch::<false>(lines.lines[home].0.as_ptr());
        prefetch::<true>(lines.lines[home ^ 1].0.as_ptr());
        (home, tag)
    };
    let mut ring: [(usize, u64); AHEAD] = std::array::from_fn(|_| coming(fresh));
    let mut won = 0;
    for i in 0..n as usize {
        let (home, tag) = std::mem::replace(&mut ring[i % AHEAD], coming(fresh));
        won += insert::<S, R>(lines, home, tag);
    }
    won
}

#[inline(always)]
fn insert<S: Search, const R: usize>(lines: &Lines, home: usize, tag: u64) -> u64 {
    let (first, second) = (&lines.lines[home], &lines.lines[home ^ 1]);
    let slot = match look::<S>(lines, first, second, tag) {
        Some(slot) => slot,
        // The bits of the tag that are above the least say where.
        None => look::<S>(lines, first, second, 0).unwrap_or(&first.0[(tag >> 50) as usize % 8]),
    };
    others::<R>();
    let seen = slot.load(Relaxed);
    let claimed = slot.compare_exchange(seen, tag | CLAIM, Relaxed, Relaxed).is_ok();
    let seen = look::<S>(lines, first, second, tag).unwrap_or(slot);
    u64::from(claimed && seen.compare_exchange(tag | CLAIM, tag | 1, Relaxed, Relaxed).is_ok())
}

/// The word of this tag in either line.
#[inline(always)]
fn look<'a, S: Search>(lines: &Lines, first: &'a Line, second: &'a Line, tag: u64) -> Option<&'a AtomicU64> {
    let bits = [S::search(first, lines, tag), S::search(second, lines, tag)];
    match bits {
        [0, 0] => None,
        [0, bits] => Some(found::<S>(second, bits)),
        [bits, _] => Some(found::<S>(first, bits)),
    }
}
