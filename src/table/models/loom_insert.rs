//! Inserts against inserts: however threads and clocks interleave, a key has at most one LIVE word and one burst.
//!
//! Sets of 1 or 2 slots a line instead of 8; everything else is the shipped code. Every key has a burst of 1, so a
//! second LIVE word shows as a second admission. See `loom_kit` for what loom does not show. No model here shows
//! anything about more threads or preemptions than it names.

use std::sync::Arc;
use std::vec::Vec;

use super::loom_kit::{admitted, explore, race, race3, Bound, Slots, World, NOW, T};
use crate::sync::access::Shared;
use crate::sync::loom_atomic::spawn;
use crate::table::layout::policy::FullPolicy;

const X: u64 = 1;
const Y: u64 = 2;
const Z: u64 = 3;

fn world() -> World {
    World::new(1, 2, FullPolicy::Admit)
}

/// Threads with these clocks check X once each on these words: one admission, one LIVE word, no claim left. Thread i
/// first sweeps the slots `swept[i]`, numbered in address order.
fn one_admission<const N: usize>(
    name: &str,
    bound: Bound,
    words: [[u64; N]; 2],
    odd: bool,
    clocks: &'static [u64],
    swept: &'static [&'static [usize]],
) {
    explore(name, bound, move || {
        let w = world();
        let slots = if odd { Slots::odd(words) } else { Slots::new(words) };
        let (first, others) = clocks.split_first().expect("a clock");
        let threads: Vec<_> = others
            .iter()
            .enumerate()
            .map(|(i, now)| {
                let slots = Arc::clone(&slots);
                spawn(i + 1, move || {
                    let first = swept.get(i + 1).copied().unwrap_or(&[]);
                    first.iter().for_each(|number| w.sweep(&slots, *number, *now));
                    w.check::<Shared, N>(&slots, X, *now)
                })
            })
            .collect();
        let mut replies = std::vec![w.check::<Shared, N>(&slots, X, *first)];
        replies.extend(threads.into_iter().map(|t| t.join().expect("a thread of the model panicked")));
        let words = w.assert_settled(&slots, &[X, Y, Z]);
        assert_eq!(admitted(&replies), 1, "not admitted exactly once: {replies:x?} {words:x?}");
        assert_eq!(w.lives(words, X), 1, "not one live word: {words:x?}");
    });
}

/// Two threads insert one key into an empty set of two slots. Does not show: different clocks, more than two threads.
#[test]
fn insert_insert_admits_one_burst() {
    one_admission::<1>("insert/insert", Bound::Exhaustive, [[0], [0]], false, &[NOW, NOW], &[]);
}

/// The same with two slots a line. Does not show: different clocks, more than two threads.
#[test]
fn insert_insert_two_slots_a_line_admits_one_burst() {
    one_admission::<2>("insert/insert, N=2", Bound::Exhaustive, [[0; 2]; 2], false, &[NOW, NOW], &[]);
}

/// Three threads insert one key. Does not show: different clocks, more preemptions.
#[test]
fn three_inserts_admit_one_burst() {
    one_admission::<1>("three inserts", Bound::At(3, 4), [[0], [0]], false, &[NOW, NOW, NOW], &[]);
}

/// A slot is swept between the scans of two threads, so they claim different slots: the case that a plain
/// compare-and-swap insert gets wrong. Does not show: more than two clocks, a home line that is the second one.
#[test]
fn insert_beside_a_sweep_admits_one_burst() {
    let words = [[world().expired(Y)], [0]];
    one_admission::<1>("insert/sweep", Bound::First(3), words, false, &[NOW, NOW + 10], &[&[], &[0]]);
}

/// A slot expires between the clocks of two threads. Does not show: threads that claim different slots.
#[test]
fn insert_beside_expiry_admits_one_burst() {
    let words = [[world().live(Y, NOW + 5)], [0]];
    one_admission::<1>("insert/expire, clocks apart", Bound::Exhaustive, words, false, &[NOW, NOW + 10], &[]);
}

/// The sweep again, where search order and address order differ. Does not show: more than two clocks.
#[test]
fn insert_beside_a_sweep_in_the_second_line_admits_one_burst() {
    let words = [[0], [world().expired(Y)]];
    one_admission::<1>(
        "insert/sweep, home line second",
        Bound::First(3),
        words,
        true,
        &[NOW, NOW + 10],
        &[&[], &[1]],
    );
}

/// The sweep with two slots a line, so that one thread finds two slots EMPTY and the other three. Does not show: more
/// than two clocks.
#[test]
fn insert_beside_a_sweep_two_slots_a_line_admits_one_burst() {
    let (y, z) = (world().expired(Y), world().live(Z, NOW + T));
    one_admission::<2>(
        "insert/sweep, N=2",
        Bound::First(3),
        [[y, z], [0, 0]],
        false,
        &[NOW, NOW + 10],
        &[&[], &[0]],
    );
}

/// Three threads, two clocks, a slot that is swept in between. Does not show: more preemptions.
#[test]
fn three_inserts_beside_a_sweep_admit_one_burst() {
    let words = [[world().expired(Y)], [0]];
    one_admission::<1>(
        "three inserts/sweep",
        Bound::At(2, 3),
        words,
        false,
        &[NOW, NOW + 10, NOW],
        &[&[], &[0]],
    );
}

/// Three threads, three clocks, two slots that are swept in between: each thread claims a slot of its own. Does not
/// show: more preemptions.
#[test]
fn three_clocks_and_three_claims_admit_one_burst() {
    let words = [[world().expired(Y), world().expired(Z)], [0, 0]];
    let swept: &[&[usize]] = &[&[], &[1], &[0]];
    one_admission::<2>("three claims, N=2", Bound::At(1, 2), words, false, &[NOW, NOW + 10, NOW + 20], swept);
}

/// A thread has stopped right after its claim, which is alive by one clock and expired by the other. The others make
/// progress and commit or replace it, once. Does not show: the stopped thread continuing (see below).
#[test]
fn stalled_claim_blocks_nobody_and_admits_one_burst() {
    let words = [[world().claim(X, NOW)], [0]];
    one_admission::<1>("stalled claim, one clock", Bound::Exhaustive, words, false, &[NOW, NOW], &[]);
    one_admission::<1>("stalled claim, clocks apart", Bound::Exhaustive, words, false, &[NOW, NOW + 10], &[]);
}

/// The same with the stalled claim in the higher slot while the lower one is free. Does not show: more threads.
#[test]
fn stalled_higher_claim_admits_one_burst() {
    let words = [[0], [world().claim(X, NOW)]];
    one_admission::<1>("stalled higher claim", Bound::Exhaustive, words, false, &[NOW, NOW + 10], &[]);
}

/// Two stalled claims of one key, left by threads with different clocks: the lower one is committed, the higher one
/// dropped. Does not show: their owners continuing.
#[test]
fn two_stalled_claims_admit_one_burst() {
    let words = [[world().claim(X, NOW + 10)], [world().claim(X, NOW)]];
    one_admission::<1>("two stalled claims", Bound::First(4), words, false, &[NOW, NOW + 10], &[]);
}

/// Three threads and a stalled claim. Does not show: more preemptions.
#[test]
fn three_inserts_beside_a_stalled_claim_admit_one_burst() {
    let words = [[world().claim(X, NOW)], [0]];
    one_admission::<1>(
        "three inserts, stalled claim",
        Bound::At(3, 4),
        words,
        false,
        &[NOW, NOW + 10, NOW],
        &[],
    );
}

/// A scan takes time: a thread that meets a claim at its end may have read another slot before a rival took that. Here
/// a thread whose clock is behind finds no free slot, so `settle` scans again; one that is ahead inserts into the first
/// slot; a third, whose scan is long past, claims the second slot and stops. Nobody commits that claim before a second
/// scan. Does not show: the stopped thread continuing.
#[test]
fn a_claim_that_is_met_once_is_not_committed() {
    explore("a claim met once", Bound::At(3, 4), || {
        let w = World::new(1, 2, FullPolicy::Deny);
        let (y, z) = (w.live(Y, NOW + 1), w.live(Z, NOW + 1));
        let slots = Slots::new([[y], [z]]);
        let (a, b, c) = (Arc::clone(&slots), Arc::clone(&slots), Arc::clone(&slots));
        let (behind, ahead, _) = race3(
            move || w.check::<Shared, 1>(&a, X, NOW),
            move || w.check::<Shared, 1>(&b, X, NOW + 2),
            move || c.swap(1, z, w.layout.claim_of_reusable(w.tag(X), z, NOW + 2)),
        );
        let words = slots.words();
        assert!(w.lives(words, X) <= 1, "two live words of one key: {words:x?}");
        assert!(admitted(&[behind, ahead]) <= 1, "{behind:?} {ahead:?} {words:x?}");
    });
}

/// A stalled claim blocks no stranger beyond its lifetime, nor in another slot. Does not show: a full set of claims.
#[test]
fn stranger_passes_a_stalled_claim() {
    explore("stranger beside a stalled claim", Bound::Exhaustive, || {
        let w = world();
        let slots = Slots::new([[w.claim(X, NOW)], [w.live(Z, NOW + T)]]);
        let (a, b) = (Arc::clone(&slots), Arc::clone(&slots));
        let replies = race(
            move || w.check::<Shared, 1>(&a, Y, NOW + 10), // the claim has expired
            move || w.check::<Shared, 1>(&b, X, NOW),      // the claim is alive
        );
        let words = w.assert_settled(&slots, &[X, Y, Z]);
        assert!(replies.0.passes() && replies.1.passes(), "refused: {replies:x?}");
        assert_eq!(w.lives(words, Z), 1, "a live stranger was lost: {words:x?}");
        assert_eq!(w.lives(words, X) + w.lives(words, Y), 1, "the slot has no owner: {words:x?}");
    });
}

/// Two keys race for the last reusable slot: one gets it, the policy answers the other, and the live neighbour stays.
/// Does not show: both keys repeating their requests.
#[test]
fn strangers_race_for_the_last_slot() {
    explore("strangers, last slot", Bound::Exhaustive, || {
        let w = world();
        let slots = Slots::new([[w.live(Z, NOW + T)], [w.live(X, NOW - 1)]]);
        let (a, b) = (Arc::clone(&slots), Arc::clone(&slots));
        let replies =
            race(move || w.check::<Shared, 1>(&a, Y, NOW), move || w.check::<Shared, 1>(&b, 4, NOW));
        let words = w.assert_settled(&slots, &[X, Y, Z, 4]);
        assert_eq!(admitted(&[replies.0, replies.1]), 1, "not one of them: {replies:x?}");
        assert!(replies.0.passes() && replies.1.passes(), "refused: {replies:x?}");
        assert_eq!(w.lives(words, Z), 1, "a live stranger was lost: {words:x?}");
        assert_eq!(w.lives(words, Y) + w.lives(words, 4), 1, "the slot has no owner: {words:x?}");
    });
}

/// A thread reuses the expired slot of a key while that key comes back, twice: the key moves or stays, and has one
/// burst. Does not show: more than one stranger.
#[test]
fn reclaim_beside_revival_admits_one_burst() {
    explore("reclaim/update", Bound::Exhaustive, || {
        let w = world();
        let slots = Slots::new([[w.live(X, NOW - 1)], [0]]);
        let (a, b) = (Arc::clone(&slots), Arc::clone(&slots));
        let replies = race(
            move || [w.check::<Shared, 1>(&a, X, NOW), w.check::<Shared, 1>(&a, X, NOW)],
            move || [w.check::<Shared, 1>(&b, Y, NOW), w.check::<Shared, 1>(&b, Y, NOW)],
        );
        let words = w.assert_settled(&slots, &[X, Y]);
        assert_eq!(admitted(&replies.0), 1, "returning key: {replies:x?} {words:x?}");
        assert_eq!(admitted(&replies.1), 1, "new key: {replies:x?} {words:x?}");
        assert_eq!(w.lives(words, X), 1, "lost: {words:x?}");
        assert_eq!(w.lives(words, Y), 1, "lost: {words:x?}");
    });
}
