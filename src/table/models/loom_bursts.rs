//! Bursts against single calls on one live slot: together they admit what one call after the other would.
//!
//! Through the public table on whole lines of 8 slots; each thread attaches to the same memory. A burst has another
//! loop, search and first attempt: these models show that it swaps. See `loom_kit` for what loom does not show.

use std::sync::atomic::{AtomicBool, Ordering as Plain};
use std::sync::Arc;

use super::loom_kit::{explore, race, race3, spec, Bound, Memory, NOW, T};
use super::loom_weak::Stores;
use crate::limit::{LimitSpec, TableLimit};
use crate::sync::access::{Access, Shared};
use crate::table::burst::call::{Burst, NextBurst};
use crate::table::calls::pair::Half;
use crate::table::counters::Counters;
use crate::table::layout::options::TableOptions;
use crate::table::layout::policy::FullPolicy;

/// The caller's hashes: home line 0 and these tags.
const X: u64 = 1;
const Y: u64 = 2;

/// A burst of 3, of which X owes one unit.
fn owing() -> (Arc<Memory>, TableLimit) {
    let memory = Memory::new(spec(3), FullPolicy::Admit);
    let limit = memory.limit(&spec(3));
    assert!(memory.check(&limit, NOW, X).0);
    (memory, limit)
}

/// Decides a burst of two requests of X, and returns how many pass.
fn burst<A: Access>(memory: &Memory, limit: &TableLimit, counted: bool) -> u32 {
    let mut counters = Counters::default();
    let pass = Burst::new(limit, NOW, &[X; 2]).check(
        &memory.table_as::<A>(),
        counted.then_some(&mut counters),
        NextBurst::NONE,
    );
    let passed = pass.expect("its own limit").count_ones();
    assert!(!counted || counters.conforming == u64::from(passed), "not all are counted: {counters:?}");
    passed
}

fn beside_a_check<A: Access + 'static>(name: &str, bound: Bound, counted: bool) {
    explore(name, bound, move || {
        let (memory, limit) = owing();
        let (a, b) = (memory.clone(), memory.clone());
        let (passed, other) = race(
            move || burst::<A>(&a, &limit, counted),
            move || b.table_as::<A>().check_hash(&limit, NOW, X, 1).expect("its own limit").passes(),
        );
        let all = passed + u32::from(other);
        assert_eq!((all, memory.lives(X, NOW)), (2, (1, 3 * T)), "a charge was lost or made up");
    });
}

/// A burst of two and a check have room for two: two pass. Does not show: more than one rival.
#[test]
fn burst_beside_a_check_admits_what_is_left() {
    beside_a_check::<Shared>("burst/check", Bound::Exhaustive, false);
}

/// The same with counted verdicts, for which the plain loop ends in another way. Does not show: soft limits.
#[test]
fn counted_burst_beside_a_check_admits_and_counts_what_is_left() {
    beside_a_check::<Shared>("counted burst/check", Bound::Exhaustive, true);
}

/// Two bursts and a check. Does not show: more preemptions.
#[test]
fn bursts_beside_a_check_admit_what_is_left() {
    explore("burst/burst/check", Bound::At(3, 3), || {
        let (memory, limit) = owing();
        let (a, b, c) = (memory.clone(), memory.clone(), memory.clone());
        let (a, b, c) = race3(
            move || burst::<Shared>(&a, &limit, false),
            move || burst::<Shared>(&b, &limit, true),
            move || c.check(&limit, NOW, X).0,
        );
        assert_eq!(
            (a + b + u32::from(c), memory.lives(X, NOW)),
            (2, (1, 3 * T)),
            "a charge was lost or made up"
        );
    });
}

/// MUST FAIL: stores instead of swaps.
#[test]
#[should_panic(expected = "a charge was lost")]
fn burst_by_stores_is_caught() {
    beside_a_check::<Stores>("MUST FAIL: burst by stores", Bound::Exhaustive, false);
}

/// MUST FAIL: the same, counted.
#[test]
#[should_panic(expected = "a charge was lost")]
fn counted_burst_by_stores_is_caught() {
    beside_a_check::<Stores>("MUST FAIL: counted burst by stores", Bound::Exhaustive, true);
}

/// A burst under a short limit inserts a key, and asks for another one that owes more than the short limit's horizon
/// and is charged meanwhile under its own limit. Nobody takes its slot or forgives it. Does not show: different clocks.
#[test]
fn burst_leaves_a_debt_beyond_its_own_horizon() {
    explore("burst/stranger of longer horizon", Bound::First(3), || {
        let (fast, slow) = (spec(1), LimitSpec::new(1, 8 * T, 3));
        let memory = Memory::with(&TableOptions::new(fast).slowest(slow).policy(FullPolicy::Deny));
        memory.surround(&[0, 8]);
        let (short, long) = (memory.limit(&fast), memory.limit(&slow));
        assert!(memory.check(&long, NOW, Y).0);
        let (a, b) = (memory.clone(), memory.clone());
        let (passed, other) = race(
            move || {
                let burst = Burst::new(&short, NOW, &[Y, X]);
                burst.check(&a.table(), None, NextBurst::NONE).expect("its own limit")
            },
            move || b.check(&long, NOW, Y).0,
        );
        assert!(other && passed == 0b10, "passed: {passed:b}, {other}");
        assert_eq!(memory.lives(Y, NOW), (1, 16 * T), "the stranger's debt is another one");
        assert_eq!(memory.lives(X, NOW), (1, T), "a charge was lost or made up");
    });
}

/// A pair of two keys, whose second key has room for one unit, and a check of that key: one of the two passes. If it is
/// the check, the first charge of the pair was given back. Does not show: the chain that decides after a lost swap.
#[test]
fn pair_beside_a_check_of_its_second_key_charges_both_or_none() {
    static LOST: AtomicBool = AtomicBool::new(false);
    explore("pair/check", Bound::Exhaustive, || {
        let (memory, limit) = owing();
        assert!(memory.check(&limit, NOW, Y).0 && memory.check(&limit, NOW, Y).0);
        let (a, b) = (memory.clone(), memory.clone());
        let (pair, check) = race(
            move || a.table().check_pair(NOW, half_of(&limit, X), half_of(&limit, Y)),
            move || b.check(&limit, NOW, Y).0,
        );
        if pair.is_none() {
            LOST.store(true, Plain::Relaxed);
        }
        let both = u64::from(pair == Some(true));
        assert_eq!(both + u64::from(check), 1, "room for one: {pair:?} {check}");
        let owes = (memory.lives(X, NOW), memory.lives(Y, NOW));
        assert_eq!(owes, ((1, (1 + both) * T), (1, 3 * T)), "a charge was lost or made up: {pair:?}");
    });
    assert!(LOST.load(Plain::Relaxed), "the second swap was never lost");
}

fn half_of(limit: &TableLimit, hash: u64) -> Half<'_> {
    Half { limit, hash, cost: 1 }
}
