//! Every schedule of three threads with one check each, and of two threads with three, on a live slot and on a new key.
//! Models of other files have more slots, clocks and operations, most of them up to a bound of preemptions.
//!
//! Without a bound: three threads on a live slot in the daily run, 309 691 executions; two threads in the long run, 1
//! 562 329. With new keys the bound is 3 preemptions in the daily and 4 in the long run: 184 736 and 986 346 executions
//! of three threads (6 s with a bound of 2, 40 s with 3, 304 s with 4, unfinished without one after 7 minutes of
//! processor time; AMD EPYC, family 25, unknown model, 2026-11-23, busy), 24 541 and 139 682 of two. The explorer runs
//! both without a bound, but also without weak memory (`step_inserts`). One clock, sets of one slot a line, room for 2
//! or 4 units. Each model was seen to fail with stores for swaps. See `loom_kit` for what loom does not show.

use super::loom_kit::{admitted, explore, race, race3, Bound, Reply, Slots, World, NOW, T};
use super::loom_weak::Stores;
use crate::sync::access::{Access, Shared};
use crate::table::layout::policy::FullPolicy;

const X: u64 = 1;

/// A key that owes one unit and has `room` units left in its burst.
fn live(room: u64) -> (World, u64) {
    let w = World::new(1 + room, 2, FullPolicy::Admit);
    (w, w.live(X, NOW + T))
}

/// Checks that exactly the burst was admitted, and that the only word of the key owes it on top of what it owed before.
fn is_exact(w: &World, words: [[u64; 1]; 2], replies: &[Reply], room: u64, before: u64) {
    assert_eq!(admitted(replies) as u64, room, "not exactly the burst: {replies:x?} {words:x?}");
    assert_eq!(w.lives(words, X), 1, "not one live word: {words:x?}");
    let word = words.into_iter().flatten().find(|word| w.layout.is_live_of(*word, w.tag(X)));
    assert_eq!(word, Some(w.live(X, NOW + (before + room) * T)), "the word does not hold what was charged");
}

/// Three threads check a key once each; there is room for two.
fn three_by_one<A: Access + 'static>(name: &str, bound: Bound, is_new: bool) {
    explore(name, bound, move || {
        let (w, word) = if is_new { (World::new(2, 2, FullPolicy::Admit), 0) } else { live(2) };
        let slots = Slots::new([[word], [0]]);
        let (a, b, c) = (slots.clone(), slots.clone(), slots.clone());
        let (a, b, c) = race3(
            move || w.check::<A, 1>(&a, X, NOW),
            move || w.check::<A, 1>(&b, X, NOW),
            move || w.check::<A, 1>(&c, X, NOW),
        );
        is_exact(&w, w.assert_settled(&slots, &[X]), &[a, b, c], 2, u64::from(!is_new));
    });
}

/// Two threads check a key three times each; there is room for four.
fn two_by_three<A: Access + 'static>(name: &str, bound: Bound, is_new: bool) {
    explore(name, bound, move || {
        let (w, word) = if is_new { (World::new(4, 2, FullPolicy::Admit), 0) } else { live(4) };
        let slots = Slots::new([[word], [0]]);
        let (a, b) = (slots.clone(), slots.clone());
        let (a, b) = race(
            move || [0; 3].map(|_| w.check::<A, 1>(&a, X, NOW)),
            move || [0; 3].map(|_| w.check::<A, 1>(&b, X, NOW)),
        );
        is_exact(&w, w.assert_settled(&slots, &[X]), &[a, b].concat(), 4, u64::from(!is_new));
    });
}

/// Does not show: inserts.
#[test]
fn three_checks_of_a_live_slot_admit_exactly_the_burst() {
    three_by_one::<Shared>("table: 3 threads x 1 check", Bound::Exhaustive, false);
}

/// Does not show: inserts, more threads.
#[test]
fn two_threads_of_three_checks_of_a_live_slot_admit_exactly_the_burst() {
    two_by_three::<Shared>("table: 2 threads x 3 checks", Bound::First(4), false);
}

/// Does not show: clocks apart.
#[test]
fn three_checks_of_a_new_key_admit_exactly_the_burst() {
    three_by_one::<Shared>("table: 3 threads x 1 check, new key", Bound::At(3, 4), true);
}

/// Does not show: clocks apart, more threads.
#[test]
fn two_threads_of_three_checks_of_a_new_key_admit_exactly_the_burst() {
    two_by_three::<Shared>("table: 2 threads x 3 checks, new key", Bound::At(3, 4), true);
}

#[test]
#[should_panic(expected = "not exactly the burst")]
fn three_checks_by_stores_are_caught() {
    three_by_one::<Stores>("MUST FAIL: 3 threads x 1 check by stores", Bound::Exhaustive, false);
}

#[test]
#[should_panic(expected = "not exactly the burst")]
fn two_threads_of_three_checks_by_stores_are_caught() {
    two_by_three::<Stores>("MUST FAIL: 2 threads x 3 checks by stores", Bound::Exhaustive, false);
}

#[test]
#[should_panic(expected = "not exactly the burst")]
fn three_checks_of_a_new_key_by_stores_are_caught() {
    three_by_one::<Stores>("MUST FAIL: 3 threads x 1 check, new key, by stores", Bound::Exhaustive, true);
}

#[test]
#[should_panic(expected = "not exactly the burst")]
fn two_threads_of_three_checks_of_a_new_key_by_stores_are_caught() {
    two_by_three::<Stores>("MUST FAIL: 2 threads x 3 checks, new key, by stores", Bound::Exhaustive, true);
}
