//! Refund, charge, sweep and reset against inserts and hits, through the public table on whole lines of 8 slots.
//!
//! Each thread attaches to the same memory, as another process would. See `loom_kit` for what loom does not show. All
//! models here use one clock unless they say otherwise.

use std::sync::atomic::{AtomicBool, Ordering as Plain};

use super::loom_kit::{explore, race, race3, spec, Bound, Memory, Slots, World, NOW, T};
use crate::algorithms::{Kind, Op};
use crate::sync::access::sealed::Sealed;
use crate::sync::access::{Access, Shared};
use crate::sync::{AtomicU64, MAX_LOST};
use crate::table::layout::policy::FullPolicy;

/// The caller's hashes: home line 0 and these tags.
const X: u64 = 1;
const Y: u64 = 2;

/// A refund of a hit, a charge and a check: the word ends with what was charged minus what came back. Does not show:
/// takeovers between charge and refund.
#[test]
fn refund_beside_charge_loses_nothing() {
    explore("table: check/refund/charge", Bound::At(3, 4), || {
        let spec = spec(4);
        let memory = Memory::new(spec, FullPolicy::Admit);
        let limit = memory.limit(&spec);
        assert!(memory.check(&limit, NOW, X).0);
        let (a, b, c) = (memory.clone(), memory.clone(), memory.clone());
        let (back, charged, checked) = race3(
            move || {
                let (_, permit) = a.check(&limit, NOW, X);
                assert_eq!(a.table().refund(&limit, NOW, X, &permit), Ok(Some(permit.stored)));
            },
            move || b.table().charge(&limit, NOW, X, 1, None).expect("charge").permit.stored,
            move || c.check(&limit, NOW, X).1.stored,
        );
        let () = back;
        assert_eq!(memory.lives(X, NOW), (1, T + charged + checked), "a charge was lost or made up");
    });
}

/// One thread inserts a key and refunds it at once, another inserts the same key: at most one LIVE word, and the refund
/// mints nothing. Does not show: a later refund, when part of the charge has drained.
#[test]
fn refund_beside_insert_mints_nothing() {
    explore("table: insert/refund/insert", Bound::First(4), || {
        let spec = spec(1);
        let memory = Memory::new(spec, FullPolicy::Admit);
        let limit = memory.limit(&spec);
        let (a, b) = (memory.clone(), memory.clone());
        let (a, b) = race(
            move || {
                let (passed, permit) = a.check(&limit, NOW, X);
                let back = a.table().refund(&limit, NOW, X, &permit).expect("refund").expect("contended");
                assert!(back <= permit.stored, "gave back more than the permit");
                (passed, back)
            },
            move || [b.check(&limit, NOW, X).0, b.check(&limit, NOW, X).0],
        );
        let passed = (a.0 as u64) + b.iter().filter(|p| **p).count() as u64;
        let (lives, lead) = memory.lives(X, NOW);
        assert_eq!(lives, 1, "not one live word");
        assert_eq!(lead, passed * T - a.1, "a charge was lost or made up");
        assert!(lead <= T, "above the burst");
    });
}

/// Two threads insert one key into a slot that a third one sweeps: one LIVE word, one burst. Does not show: a sweep by
/// a clock further apart than the skew.
#[test]
fn sweep_beside_insert_changes_no_decision() {
    explore("table: sweep/insert/insert", Bound::At(3, 4), || {
        let spec = spec(1);
        let memory = Memory::new(spec, FullPolicy::Admit);
        let limit = memory.limit(&spec);
        let layout = memory.table().geometry.layout;
        memory.put(0, layout.live(layout.tag(Y), NOW - layout.window - 1));
        let (a, b, c) = (memory.clone(), memory.clone(), memory.clone());
        let (_, b, c) = race3(
            move || a.table().sweep(NOW, 0, 2),
            move || b.check(&limit, NOW, X).0,
            move || c.check(&limit, NOW, X).0,
        );
        assert!(b != c, "not admitted exactly once");
        assert_eq!(memory.lives(X, NOW), (1, T), "not one live word");
    });
}

/// An insert takes so long that its claim is swept, and another thread inserts by that later clock: at most one LIVE
/// word. Does not show: an insert that takes a whole span of the clock.
#[test]
fn sweep_of_a_slow_claim_leaves_one_live_word() {
    explore("table: sweep/slow insert", Bound::Exhaustive, || {
        let spec = spec(1);
        let memory = Memory::new(spec, FullPolicy::Admit);
        let limit = memory.limit(&spec);
        let later = NOW + memory.table().geometry.layout.window + 16;
        let (a, b) = (memory.clone(), memory.clone());
        let (a, b) = race(
            move || a.check(&limit, NOW, X).0,
            move || {
                b.table().sweep(later, 0, 1);
                b.check(&limit, later, X).0
            },
        );
        assert!(a || b, "nobody got in");
        assert_eq!(memory.lives(X, later).0, 1, "not one live word");
    });
}

/// A key is reset during its insert and its second request: it passes once, or twice if the reset comes in between, and
/// its charges stay in one place. Does not show: two resets, different clocks.
#[test]
fn reset_key_beside_insert_frees_one_burst() {
    explore("table: reset/insert", Bound::Exhaustive, || {
        let spec = spec(1);
        let memory = Memory::new(spec, FullPolicy::Admit);
        let limit = memory.limit(&spec);
        let (a, b) = (memory.clone(), memory.clone());
        let (passed, reset) = race(
            move || [a.check(&limit, NOW, X).0, a.check(&limit, NOW, X).0],
            move || b.table().reset_key(NOW, X),
        );
        assert!(reset, "contended with one rival");
        assert!(passed[0], "the first request was refused");
        // The reset came before the first request, between both (or while the second was refused), or after both.
        let (lives, lead) = memory.lives(X, NOW);
        match (lives, passed[1]) {
            (1, _) => assert_eq!(lead, T, "a charge was lost or made up"),
            (0, false) => {}
            other => panic!("live words and second verdict: {other:?}"),
        }
    });
}

/// A charge from before a reset is refunded during the reset and the key's next charge: in every order the charge after
/// the reset stays owed. Does not show: different clocks, where a tombstone has drained by one and not by the other.
#[test]
fn refund_of_before_a_reset_takes_nothing_from_what_came_after_it() {
    static LATE: AtomicBool = AtomicBool::new(false);
    explore("table: reset, check/refund", Bound::At(3, 4), || {
        let spec = spec(4);
        let memory = Memory::new(spec, FullPolicy::Admit);
        let limit = memory.limit(&spec);
        let (passed, _) = memory.check(&limit, NOW - T, X);
        let (again, old) = memory.check(&limit, NOW, X);
        assert!(passed && again && old.stored == T);
        let (a, b) = (memory.clone(), memory.clone());
        let (charged, back) = race(
            move || {
                assert!(a.table().reset_key(NOW, X), "contended with one rival");
                a.check(&limit, NOW, X)
            },
            move || b.table().refund(&limit, NOW, X, &old),
        );
        assert!(charged.0, "the key was not full");
        if back == Ok(Some(0)) {
            LATE.store(true, Plain::Relaxed);
        }
        let (lives, lead) = memory.lives(X, NOW);
        assert_eq!((lives, lead), (1, T), "the refund took from what came after the reset: {back:?}");
    });
    assert!(LATE.load(Plain::Relaxed), "the refund never came late");
}

/// A hit that loses every swap is contended and leaves no trace. The model reaches that bound. Does not show: several
/// rivals, an insert that gives up. The rival here swaps without loading first.
#[test]
fn contended_hit_charges_nothing() {
    static REACHED: AtomicBool = AtomicBool::new(false);
    explore("table: contended hit", Bound::Exhaustive, || {
        let w = World::new(64, 2, FullPolicy::Admit);
        let owes = move |units: u64| w.live(X, NOW + units * T);
        let slots = Slots::new([[owes(1)], [0]]);
        let (a, b) = (slots.clone(), slots.clone());
        let (big, rival) = race(
            move || w.run::<Shared, 1>(&a, X, NOW, &Op::new(&w.limit.0, Kind::Check, 32, 0)),
            move || {
                let slot = &b.set().home[0];
                let swaps = (1..=MAX_LOST as u64).map(|n| Shared::replace(slot, owes(n), owes(n + 1)));
                swaps.take_while(Result::is_ok).count() as u64
            },
        );
        if big.verdict.is_none() {
            REACHED.store(true, Plain::Relaxed);
            assert_eq!((big.stored, rival), (0, MAX_LOST as u64), "gave up without cause");
        }
        let own = if big.admitted() { 32 } else { 0 };
        assert_eq!(slots.words(), [[owes(1 + rival + own)], [0]], "a charge was lost or made up");
    });
    assert!(REACHED.load(Plain::Relaxed), "the model never reached the bound");
}

/// Whether a swap of this thread was lost to a word of another key.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The shipped code, which also records that the slot has changed hands under a swap.
enum Tells {}

impl Sealed for Tells {}

impl Access for Tells {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        let done = Shared::replace(slot, old, new);
        if done.is_err_and(|found| (found ^ old) >> 43 != 0) {
            TAKEN.store(true, Plain::Relaxed);
        }
        done
    }

    fn fence() {
        Shared::fence();
    }
}

/// Lost swaps add up although the slot changes hands: a call that loses some to charges of its key, one to another key
/// that takes the slot, and the rest when its key is back, gives up at the same sum. Does not show: a rival that loads
/// first, an insert that gives up.
#[test]
fn losses_before_and_after_a_change_of_hands_are_one_sum() {
    static REACHED: AtomicBool = AtomicBool::new(false);
    explore("table: contended across a change of hands", Bound::Exhaustive, || {
        TAKEN.store(false, Plain::Relaxed);
        let w = World::new(64, 2, FullPolicy::Admit);
        let owes = move |units: u64| w.live(X, NOW + units * T);
        let slots = Slots::new([[owes(1)], [w.live(Y, NOW + 9 * T)]]);
        let (a, b) = (slots.clone(), slots.clone());
        let (big, rival) = race(
            move || w.run::<Tells, 1>(&a, X, NOW, &Op::new(&w.limit.0, Kind::Check, 32, 0)),
            move || {
                // The fifth swap gives the slot to a stranger, the sixth gives it back.
                let word = |n: u64| if n == 5 { w.live(3, NOW + T) } else { owes(1 + n) };
                let swaps = (0..=MAX_LOST as u64).map(|n| b.swap(0, word(n), word(n + 1)));
                swaps.take_while(|won| *won).count() as u64
            },
        );
        if big.verdict.is_none() {
            REACHED.fetch_or(TAKEN.load(Plain::Relaxed), Plain::Relaxed);
            assert_eq!((big.stored, rival), (0, MAX_LOST as u64 + 1), "gave up without cause");
        }
    });
    assert!(REACHED.load(Plain::Relaxed), "no call that met a stranger reached the bound");
}
