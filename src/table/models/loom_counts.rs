//! Tables whose words count: fixed windows and sliding counters through claim, commit, takeover and a window's end.
//!
//! Sets of one slot a line. The protocol is that of GCRA words; new is the state below the time. See `loom_kit` for the
//! bounds and for what loom does not show.

use std::boxed::Box;
use std::sync::Arc;

use super::loom_kit::{admitted, explore, race, race3, Bound, Reply, Slots, World, NOW};
use crate::algorithms::{Call, Kind, Op, Operation};
use crate::answer::Step;
use crate::limit::LimitSpec;
use crate::sync::access::Shared;
use crate::table::layout::policy::FullPolicy;

const X: u64 = 1;
const Y: u64 = 2;
/// Ticks of a window. One tick is one unit of time.
const W: u64 = 1 << 12;
/// Units in a window, and the bits of their count.
const UNITS: u64 = 3;
const BITS: u32 = 2;

fn fixed() -> World {
    World::of(LimitSpec::fixed_window(UNITS, W), 1, FullPolicy::Admit)
}

fn sliding() -> World {
    World::of(LimitSpec::sliding_counter(UNITS, W), 1, FullPolicy::Admit)
}

/// Requests `cost` units, as `Table::check_ex` does.
fn check(w: &World, slots: &Slots<1>, key: u64, now: u64, cost: u64) -> Reply {
    let op = Op::new(&w.limit.0, Kind::Check, cost, 0);
    w.run_as::<Shared, _, 1>(slots, key, now, &Call::new(&op, now))
}

/// LIVE(key) of a fixed window that ends at `end` and holds `count`.
fn window(w: &World, key: u64, end: u64, count: u64) -> u64 {
    w.live(key, end << BITS | count)
}

/// Two threads insert one key, each for two of three units: one of them gets a slot and both its units. Does not show:
/// different clocks.
#[test]
fn two_inserts_count_in_one_window() {
    for (name, world) in
        [("counts: insert/insert", fixed as fn() -> World), ("sliding: insert/insert", sliding)]
    {
        explore(name, Bound::Exhaustive, move || {
            let (w, slots) = (world(), Slots::new([[0], [0]]));
            let (a, b) = (Arc::clone(&slots), Arc::clone(&slots));
            let (a, b) = race(move || check(&w, &a, X, NOW, 2), move || check(&w, &b, X, NOW, 2));
            let words = w.assert_settled(&slots, &[X]);
            assert_eq!(admitted(&[a, b]), 1, "not admitted exactly once: {words:x?}");
            assert_eq!(w.lives(words, X), 1, "not one live word: {words:x?}");
        });
    }
}

/// Three threads ask for one unit each of a key with a limit of two. The slot holds a stranger's window that ends
/// between their clocks. Does not show: more preemptions.
#[test]
fn three_inserts_where_a_window_ends_admit_no_more_than_its_units() {
    explore("counts: three inserts at an end", Bound::At(3, 3), || {
        let spec = LimitSpec::fixed_window(2, W);
        let w = World::of(spec, 1, FullPolicy::Admit);
        // Over only by the clock that is ahead.
        let slots = Slots::new([[window(&w, Y, NOW + 5, 1)], [window(&w, Y, NOW - W, 1)]]);
        let (a, b, c) = (Arc::clone(&slots), Arc::clone(&slots), Arc::clone(&slots));
        let replies = race3(
            move || check(&w, &a, X, NOW, 1),
            move || check(&w, &b, X, NOW + 10, 1),
            move || check(&w, &c, X, NOW, 1),
        );
        let words = w.assert_settled(&slots, &[X]);
        assert_eq!(admitted(&[replies.0, replies.1, replies.2]), 2, "not its units: {words:x?}");
    });
}

/// A commit keeps the charged count, and a window no shorter than asked for, whatever version bits the claim has: the
/// time is the later of both, the count that of the state. Windows so short that the claim lies above the state.
#[test]
fn a_commit_keeps_the_count_and_at_least_the_window() {
    for ticks in [1, 2, 3] {
        explore("counts: commit above the state", Bound::Exhaustive, move || {
            let w = World::of(LimitSpec::fixed_window(UNITS, ticks), 1, FullPolicy::Admit);
            let slots = Slots::new([[0], [0]]);
            let (a, b) = (Arc::clone(&slots), Arc::clone(&slots));
            let replies = race(move || check(&w, &a, X, NOW, 1), move || check(&w, &b, Y, NOW, 2));
            assert_eq!(admitted(&[replies.0, replies.1]), 2);
            let words = w.assert_settled(&slots, &[X, Y]);
            for (key, count) in [(X, 1), (Y, 2)] {
                let word =
                    words.iter().flatten().copied().find(|word| w.layout.is_live_of(*word, w.tag(key)));
                let payload = w.layout.payload(word.expect("live"));
                assert_eq!(payload & 3, count, "the count is not what was charged");
                assert!(payload >> BITS >= NOW + ticks, "a window shorter than asked for");
            }
        });
    }
}

/// A window ends between two threads: one charges its last unit, the other, whose clock is ahead, starts the next
/// window. `holds` gets the final payload, and which of the three requests passed.
fn roll<O: Operation>(name: &str, made: fn(Call<'static>) -> O, holds: fn(u64, [bool; 3]))
where
    O: 'static,
{
    // Operations borrow their limit and threads hold operations, so both must live as long as the program.
    let w: &'static World = Box::leak(Box::new(fixed()));
    let op: &'static Op<'static> = Box::leak(Box::new(Op::new(&w.limit.0, Kind::Check, 1, 0)));
    explore(name, Bound::Exhaustive, move || {
        let slots = Slots::new([[window(w, X, NOW + 1, UNITS - 1)], [0]]);
        let ask = move |slots: &Slots<1>, now: u64| {
            w.run_as::<Shared, _, 1>(slots, X, now, &made(Call::new(op, now))).passes()
        };
        let (a, b) = (Arc::clone(&slots), Arc::clone(&slots));
        let ((first, second), ahead) = race(move || (ask(&a, NOW), ask(&a, NOW)), move || ask(&b, NOW + 1));
        let words = w.assert_settled(&slots, &[X]);
        let word = words.iter().flatten().copied().find(|word| w.layout.is_live_of(*word, w.tag(X)));
        holds(w.layout.payload(word.expect("live")), [first, second, ahead]);
    });
}

/// Every unit that passed is counted in one window: the old one, or the one that began in between.
#[test]
fn a_window_that_ends_between_look_and_swap_loses_no_charge() {
    roll(
        "counts: roll beside a charge",
        |call| call,
        |payload, [first, second, ahead]| {
            assert!(ahead, "the next window has room");
            assert_eq!(payload >> BITS, NOW + 1 + W, "the next window was not started once");
            // The first unit may be the last one of the old window or the second one of the next.
            let passed = u64::from(first) + u64::from(second) + 1;
            let counted = payload & 3;
            assert!(counted == passed || counted + 1 == passed, "counted {counted}, passed {passed}");
            assert!(first, "there was room in either window");
        },
    );
}

/// MUST FAIL: takes a state of a later window for no state, like a test for "another window than mine". A thread whose
/// clock is behind then starts its window anew and forgets what was counted.
#[test]
#[should_panic(expected = "a later window was forgotten")]
fn must_fail_another_window_read_as_fresh_mints() {
    struct Fresh<'a>(Call<'a>, u64);
    impl Operation for Fresh<'_> {
        fn step(&self, lead: u64) -> Step {
            // Its own window would end at most W ahead.
            let own = lead.wrapping_add(3) >> BITS <= self.1;
            self.0.step(if own { lead } else { 0 })
        }
        fn first_step(&self) -> Step {
            self.0.first_step()
        }
        fn shadows(&self) -> bool {
            false
        }
        fn commit_lead(&self, lead: u64, claim: u64) -> u64 {
            self.0.commit_lead(lead, claim)
        }
        fn refundable(&self, stored: u64, above: u64) -> u64 {
            self.0.refundable(stored, above)
        }
    }
    roll(
        "counts: must fail, a later window is fresh",
        |call| Fresh(call, W),
        |payload, _| {
            assert_eq!(payload >> BITS, NOW + 1 + W, "a later window was forgotten");
        },
    );
}
