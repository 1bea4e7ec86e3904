//! MUST FAIL: weakened forms of the insert protocol, and loom finds the fault of each.
//!
//! If the shipped code takes the weakening as a parameter ([`Access`]), the shipped code runs. Otherwise a copy of the
//! protocol runs, for one key of burst 1 in two slots; its unweakened form passes the same model. If a test here no
//! longer fails inside, the models have lost their teeth. Does not show: that other weakenings are found, or what each
//! one costs in practice.

use std::sync::atomic::{AtomicUsize, Ordering as Plain};
use std::sync::Arc;

use super::loom_kit::{explore, race, race3, Bound, Slots, World, NOW, T};
use crate::sync::access::sealed::Sealed;
use crate::sync::access::{Access, Shared};
use crate::sync::{fence, AtomicU64, Ordering};
use crate::table::layout::policy::FullPolicy;

const X: u64 = 1;
const Y: u64 = 2;

fn world() -> World {
    World::new(1, 2, FullPolicy::Admit)
}

/// Loom alone runs one execution of this (see `loom_atomic`). Shows that the search of all other models also runs the
/// schedule in which another thread's swap comes before a load.
#[test]
fn search_sees_a_swap_behind_a_load() {
    static SEEN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    explore("load beside load and swap", Bound::Exhaustive, || {
        let word = Arc::new(AtomicU64::new(0));
        let w = word.clone();
        let (seen, _) = race(
            move || word.load(Ordering::Acquire),
            move || {
                let old = w.load(Ordering::Acquire);
                w.compare_exchange(old, 1, Ordering::AcqRel, Ordering::Acquire)
            },
        );
        SEEN[seen as usize].fetch_add(1, Plain::Relaxed);
    });
    assert!(SEEN.iter().all(|n| n.load(Plain::Relaxed) > 0), "a schedule was never run");
}

/// The shipped code with only acquire and release, in the swap and in the fence.
struct AcquireRelease;

impl Sealed for AcquireRelease {}

impl Access for AcquireRelease {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        // ORDERING: AcqRel and Acquire; the strongest below SeqCst.
        slot.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    fn fence() {
        // ORDERING: AcqRel; as above.
        fence(Ordering::AcqRel);
    }
}

/// The shipped code with plain stores instead of swaps.
pub(in crate::table) enum Stores {}

impl Sealed for Stores {}

impl Access for Stores {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    fn replace(slot: &AtomicU64, _old: u64, new: u64) -> Result<(), u64> {
        // ORDERING: Release, so that nothing but the missing comparison is wrong.
        slot.store(new, Ordering::Release);
        Ok(())
    }

    fn fence() {
        Shared::fence();
    }
}

/// The shipped code, believing that it is the only owner: it commits without a scan after its claim.
struct NoLookAfter;

impl Sealed for NoLookAfter {}

impl Access for NoLookAfter {
    const EXCLUSIVE: bool = true;
    type Sharing = ();

    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        Shared::replace(slot, old, new)
    }

    fn fence() {
        Shared::fence();
    }
}

/// Two inserts with a sweep between their scans; `insert_beside_a_sweep_admits_one_burst` is the same model with
/// nothing weakened.
fn two_inserts<A: Access + 'static>(name: &str) {
    explore(name, Bound::Exhaustive, || {
        let w = world();
        let slots = Slots::new([[w.expired(Y)], [0]]);
        let (a, b) = (slots.clone(), slots.clone());
        race(
            move || w.check::<A, 1>(&a, X, NOW),
            move || {
                w.sweep(&b, 0, NOW + 10);
                w.check::<A, 1>(&b, X, NOW + 10)
            },
        );
        w.assert_settled(&slots, &[X]);
    });
}

/// Store buffering: each thread claims its slot and misses the other's claim.
#[test]
#[should_panic(expected = "two live words of one key")]
fn acquire_release_alone_is_caught() {
    two_inserts::<AcquireRelease>("MUST FAIL: acquire and release alone");
}

/// Two claims in two slots, both of which are committed.
#[test]
#[should_panic(expected = "two live words of one key")]
fn commit_without_a_look_after_the_claim_is_caught() {
    two_inserts::<NoLookAfter>("MUST FAIL: no look after the claim");
}

/// Plain stores instead of swaps: a commit overwrites the drop of its claim.
#[test]
#[should_panic(expected = "two live words of one key")]
fn store_for_swap_is_caught() {
    two_inserts::<Stores>("MUST FAIL: store for swap");
}

/// Plain stores on a live word lose a charge.
#[test]
#[should_panic(expected = "a charge was lost")]
fn store_for_swap_on_a_hit_is_caught() {
    explore("MUST FAIL: store for swap on a hit", Bound::Exhaustive, || {
        let w = World::new(4, 2, FullPolicy::Admit);
        let slots = Slots::new([[w.live(X, NOW + T)], [0]]);
        let (a, b) = (slots.clone(), slots.clone());
        race(move || w.check::<Stores, 1>(&a, X, NOW), move || w.check::<Stores, 1>(&b, X, NOW));
        assert_eq!(slots.words(), [[w.live(X, NOW + 3 * T)], [0]], "a charge was lost");
    });
}

/// Inserts with one swap: if the key is absent, the first reusable slot becomes LIVE.
fn naive_insert(w: &World, slots: &Slots<1>, now: u64) {
    let set = slots.set();
    let live = w.live(X, now + T);
    loop {
        // Fences before and after, so a missing fence is not why this fails.
        fence(Ordering::SeqCst);
        if set.find(&w.layout, w.tag(X)).is_some() {
            return;
        }
        let free = (0..2).map(|at| (at, slots.slot(at).load(Ordering::Acquire)));
        let Some((at, word)) = free.into_iter().find(|(_, word)| w.layout.is_reusable(*word, now)) else {
            return;
        };
        if Shared::replace(slots.slot(at), word, live).is_ok() {
            return fence(Ordering::SeqCst);
        }
    }
}

/// A slot expires between the clocks of two threads, so each takes another slot.
#[test]
#[should_panic(expected = "two live words of one key")]
fn naive_insert_is_caught() {
    explore("MUST FAIL: naive insert", Bound::Exhaustive, || {
        let w = world();
        let slots = Slots::new([[w.live(Y, NOW + 5)], [0]]);
        let (a, b) = (slots.clone(), slots.clone());
        race(move || naive_insert(&w, &a, NOW), move || naive_insert(&w, &b, NOW + 10));
        w.assert_settled(&slots, &[X]);
    });
}

/// What the copy of the protocol may leave out.
#[derive(Clone, Copy)]
struct Rules {
    /// A claim's payload is above what the slot held; otherwise every claim of the key is the same word.
    version: bool,
    /// Another thread's claim is committed only after two scans that found it.
    second_look: bool,
}

const ALL: Rules = Rules { version: true, second_look: true };

impl Rules {
    fn claim(self, w: &World, old: u64, now: u64) -> u64 {
        if self.version {
            w.layout.claim_of_reusable(w.tag(X), old, now)
        } else {
            w.claim(X, NOW)
        }
    }

    fn drop(self, w: &World, slot: &AtomicU64, claim: u64) -> bool {
        let empty = if self.version { w.layout.dropped(claim) } else { 0 };
        Shared::replace(slot, claim, empty).is_ok()
    }

    /// Runs one check of X, with a burst of 1.
    fn check(self, w: &World, slots: &Slots<1>, now: u64) {
        let (layout, x) = (&w.layout, w.tag(X));
        let live = w.live(X, now + T);
        let mut known = None;
        for _ in 0..12 {
            fence(Ordering::SeqCst);
            let words = [0, 1].map(|at| slots.slot(at).load(Ordering::Acquire));
            if let Some(at) = words.iter().position(|word| layout.is_live_of(*word, x)) {
                if layout.lead(words[at], now) != 0
                    || Shared::replace(slots.slot(at), words[at], live).is_ok()
                {
                    return;
                }
            } else if let Some(at) = words.iter().position(|word| layout.is_claim_of(*word, x)) {
                if self.second_look && known != Some((at, words[at])) {
                    known = Some((at, words[at]));
                } else if (at == 1 || self.drop_second(w, slots))
                    && Shared::replace(slots.slot(at), words[at], live).is_ok()
                {
                    return;
                }
            } else if let Some(at) = words.iter().position(|word| layout.is_reusable(*word, now)) {
                let claim = self.claim(w, words[at], now);
                if Shared::replace(slots.slot(at), words[at], claim).is_ok() {
                    known = Some((at, claim));
                }
            }
        }
    }

    /// Drops a claim in the second slot. Returns false if it has changed or committed.
    fn drop_second(self, w: &World, slots: &Slots<1>) -> bool {
        let x = w.tag(X);
        let word = slots.slot(1).load(Ordering::Acquire);
        if w.layout.is_claim_of(word, x) {
            self.drop(w, slots.slot(1), word)
        } else {
            !w.layout.is_live_of(word, x)
        }
    }
}

/// Two checks with different clocks, and a thread that found the second slot empty, then claims it and stops for good.
fn beside_a_stopped_thread(name: &str, rules: Rules) {
    explore(name, Bound::At(4, 5), move || {
        let w = world();
        let slots = Slots::new([[w.live(Y, NOW + 5)], [0]]);
        let (a, b, c) = (slots.clone(), slots.clone(), slots.clone());
        let (_, _, _) = race3(
            move || rules.check(&w, &a, NOW),
            move || rules.check(&w, &b, NOW + 10),
            move || Shared::replace(c.slot(1), 0, rules.claim(&w, 0, NOW)),
        );
        let words = slots.words();
        assert!(w.lives(words, X) <= 1, "two live words of one key: {words:x?}");
    });
}

/// The copy with all its rules passes the model that the two weakened ones fail.
#[test]
fn the_whole_protocol_passes_beside_a_stopped_thread() {
    beside_a_stopped_thread("copy with all rules", ALL);
}

/// A thread that is about to commit its claim commits another claim that looks the same.
#[test]
#[should_panic(expected = "two live words of one key")]
fn claim_without_version_is_caught() {
    beside_a_stopped_thread("MUST FAIL: claim without version", Rules { version: false, ..ALL });
}

/// A thread finds a claim whose owner had placed none when it scanned the slots below, and commits it at once.
#[test]
#[should_panic(expected = "two live words of one key")]
fn commit_without_second_look_is_caught() {
    beside_a_stopped_thread("MUST FAIL: commit without second look", Rules { second_look: false, ..ALL });
}

/// The shipped code passes the model that the weakened copies fail.
#[test]
fn the_shipped_protocol_passes_beside_a_stopped_thread() {
    explore("shipped code beside a stopped thread", Bound::At(3, 4), || {
        let w = world();
        let slots = Slots::new([[w.live(Y, NOW + 5)], [0]]);
        let (a, b, c) = (slots.clone(), slots.clone(), slots.clone());
        let (_, _, _) = race3(
            move || w.check::<Shared, 1>(&a, X, NOW),
            move || w.check::<Shared, 1>(&b, X, NOW + 10),
            move || Shared::replace(c.slot(1), 0, ALL.claim(&w, 0, NOW)),
        );
        let words = slots.words();
        assert_eq!(w.lives(words, X), 1, "two live words of one key: {words:x?}");
    });
}
