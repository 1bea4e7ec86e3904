//! Inserts into a full set, one model for each policy: no key gets two LIVE words, and debts go where the policy says.
//!
//! Sets of two slots, both live. See `loom_kit` for what loom does not show. A `Sampled` table samples every request
//! here, outside the models one in 16.

use std::sync::Arc;

use super::loom_kit::{admitted, explore, race, race3, Bound, Reply, Slots, World, NOW, T};
use crate::answer::{Tracking, Verdict};
use crate::sync::access::Shared;
use crate::table::layout::policy::FullPolicy;

const X: u64 = 1;
const Y: u64 = 2;
const Z: u64 = 3;
const V: u64 = 4;

/// Y owes one unit of two, Z owes both.
fn full_set(w: &World) -> Arc<Slots<1>> {
    Slots::new([[w.live(Y, NOW + T)], [w.live(Z, NOW + 2 * T)]])
}

/// Sums what the keys of the set owe: the debts of live words and of dropped takeovers.
fn debt(w: &World, words: [[u64; 1]; 2]) -> u64 {
    let owed = |word: &&u64| w.layout.is_live(**word) || w.layout.holds_debt(**word, NOW);
    words.iter().flatten().filter(owed).map(|word| w.layout.lead(*word, NOW)).sum()
}

/// Inherit: two new keys and the key whose slot they want share one unit of room. In the end the keys owe what they
/// owed before plus what passed. Does not show: time passing, N > 1.
#[test]
fn inherit_never_admits_more_than_the_set_has_room_for() {
    explore("takeover, Inherit: strangers", Bound::At(3, 4), || {
        let w = World::new(2, 2, FullPolicy::Inherit);
        let slots = full_set(&w);
        let (a, b, c) = (slots.clone(), slots.clone(), slots.clone());
        let (a, b, c) = race3(
            move || w.check::<Shared, 1>(&a, X, NOW),
            move || w.check::<Shared, 1>(&b, Y, NOW),
            move || w.check::<Shared, 1>(&c, V, NOW),
        );
        let words = w.assert_settled(&slots, &[X, Y, Z, V]);
        let passed = [a, b, c].iter().filter(|r| r.passes()).count() as u64;
        assert!(passed <= 1, "room for one unit: {a:x?} {b:x?} {c:x?} {words:x?}");
        assert!(debt(&w, words) >= (3 + passed) * T, "a debt was forgiven: {words:x?}");
        assert!(debt(&w, words) <= (3 + passed) * T + 16, "a debt was made up: {words:x?}");
    });
}

/// Inherit: one new key asks twice; the second request finds the slot of the first, debt included. Does not show: time
/// passing, N > 1.
#[test]
fn inherit_takes_one_slot_over_once() {
    explore("takeover, Inherit: one key", Bound::Exhaustive, || {
        let w = World::new(2, 2, FullPolicy::Inherit);
        let slots = full_set(&w);
        let (a, b) = (slots.clone(), slots.clone());
        let (a, b) = race(move || w.check::<Shared, 1>(&a, X, NOW), move || w.check::<Shared, 1>(&b, X, NOW));
        let words = w.assert_settled(&slots, &[X, Y, Z]);
        assert_eq!(admitted(&[a, b]), 1, "room for one unit: {a:x?} {b:x?} {words:x?}");
        assert_eq!((w.lives(words, X), w.lives(words, Y)), (1, 0), "not taken over: {words:x?}");
        assert!(debt(&w, words) >= 4 * T, "a debt was forgiven: {words:x?}");
    });
}

/// Inherit: a thread has stopped in the middle of a takeover. Whoever completes it takes the debt, whether its request
/// is of the same key or of another. Does not show: the stopped thread continuing.
#[test]
fn stalled_takeover_keeps_its_debt() {
    for others in [X, V] {
        explore("takeover, Inherit: stalled", Bound::Exhaustive, move || {
            let w = World::new(2, 2, FullPolicy::Inherit);
            let claim = w.layout.claim_of_debt(w.tag(X), w.live(Y, NOW + T));
            let slots = Slots::new([[claim], [w.live(Z, NOW + 2 * T)]]);
            let (a, b) = (slots.clone(), slots.clone());
            let (a, b) =
                race(move || w.check::<Shared, 1>(&a, X, NOW), move || w.check::<Shared, 1>(&b, others, NOW));
            let words = w.assert_settled(&slots, &[X, Y, Z, V]);
            assert_eq!(admitted(&[a, b]), 1, "room for one unit: {a:x?} {b:x?} {words:x?}");
            assert!(debt(&w, words) >= 4 * T, "a debt was forgiven: {words:x?}");
        });
    }
}

/// Sampled: one new key asks twice, and so does the key whose slot it takes over, once. Does not show: a bound on what
/// is forgiven, which nobody promises.
#[test]
fn sampled_takes_one_slot_over_and_says_so() {
    explore("takeover, Sampled", Bound::At(2, 3), || {
        let w = World::new(1, 2, FullPolicy::Sampled);
        let slots = Slots::new([[w.live(Y, NOW + T - 9)], [w.live(Z, NOW + T)]]);
        let (a, b, c) = (slots.clone(), slots.clone(), slots.clone());
        let (a, b, c) = race3(
            move || w.check::<Shared, 1>(&a, X, NOW),
            move || w.check::<Shared, 1>(&b, X, NOW),
            move || w.check::<Shared, 1>(&c, Y, NOW),
        );
        let words = w.assert_settled(&slots, &[X, Y, Z]);
        let forgiven = [a, b, c].iter().filter(|r| r.tracking == Tracking::Forgiven && r.inserted).count();
        assert_eq!(forgiven, admitted(&[a, b, c]), "admitted without saying why: {a:x?} {b:x?} {c:x?}");
        assert!(forgiven >= 1, "nobody got the slot: {a:x?} {b:x?} {c:x?}");
        if !c.admitted() {
            assert_eq!(admitted(&[a, b]), 1, "one burst of a key that nobody evicts: {words:x?}");
        }
    });
}

/// Deny and Admit store nothing: during a charge of a live key, the set ends as that charge alone leaves it. Does not
/// show: a slot that drains meanwhile.
#[test]
fn deny_and_admit_touch_nothing() {
    for policy in [FullPolicy::Deny, FullPolicy::Admit] {
        explore("full set, Deny and Admit", Bound::Exhaustive, move || {
            let w = World::new(2, 2, policy);
            let slots = full_set(&w);
            let (a, b, c) = (slots.clone(), slots.clone(), slots.clone());
            let (a, b, c): (Reply, Reply, Reply) = race3(
                move || w.check::<Shared, 1>(&a, X, NOW),
                move || w.check::<Shared, 1>(&b, Y, NOW),
                move || w.check::<Shared, 1>(&c, X, NOW),
            );
            assert!(b.admitted(), "{b:x?}");
            assert_eq!(slots.words(), [[w.live(Y, NOW + 2 * T)], [w.live(Z, NOW + 2 * T)]]);
            for r in [a, c] {
                assert_eq!((r.tracking, r.stored), (Tracking::Untracked, 0));
                assert_eq!(r.verdict == Some(Verdict::NonConforming), policy == FullPolicy::Deny);
                assert_eq!(r.passes(), policy == FullPolicy::Admit);
            }
        });
    }
}

/// If all slots of a set are being claimed, Inherit has no debt to measure against: contended, and nothing changes. The
/// owner of a claim still completes. Does not show: more than one such request.
#[test]
fn inherit_among_claims_guesses_nothing() {
    explore("full set of claims, Inherit", Bound::Exhaustive, || {
        let w = World::new(1, 2, FullPolicy::Inherit);
        let slots = Slots::new([[w.claim(Y, NOW)], [w.claim(Z, NOW)]]);
        let (a, b) = (slots.clone(), slots.clone());
        let (a, b) = race(move || w.check::<Shared, 1>(&a, X, NOW), move || w.check::<Shared, 1>(&b, Y, NOW));
        let words = w.assert_settled(&slots, &[X, Y]);
        assert!(b.admitted(), "{b:x?}");
        // Measured against Y's debt once that is live; before that there is no verdict.
        assert!(a.verdict.is_none() || a.verdict == Some(Verdict::NonConforming), "{a:x?} {words:x?}");
        assert_eq!((w.lives(words, X), w.lives(words, Y)), (0, 1), "{words:x?}");
    });
}
