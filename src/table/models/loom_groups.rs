//! Groups of two lanes, by the plain step, against single calls: a rival charges, claims, takes over or refunds between
//! the decode of a group and its swaps.
//!
//! The loop of groups is the shipped one. Does not show: the vector steps, which the tests of `simd` compare with it.

use std::sync::atomic::{AtomicBool, Ordering as Plain};
use std::sync::Arc;

use super::loom_kit::{explore, race, spec, Bound, Memory, NOW, T};
use super::loom_weak::Stores;
use crate::answer::Tracking;
use crate::limit::TableLimit;
use crate::sync::access::{Access, Shared};
use crate::table::burst::call::Burst;
use crate::table::burst::scalar::nothing;
use crate::table::calls::full_answer::Request;
use crate::table::counters::Counters;
use crate::table::layout::policy::FullPolicy;
use crate::table::set::search::Base;

/// The caller's hashes: home line 0 and these tags.
const X: u64 = 1;
const Y: u64 = 2;
const Z: u64 = 3;

/// A burst of 3, of which X owes one unit.
fn owing(policy: FullPolicy) -> (Arc<Memory>, TableLimit) {
    let memory = Memory::new(spec(3), policy);
    let limit = memory.limit(&spec(3));
    assert!(memory.check(&limit, NOW, X).0);
    (memory, limit)
}

/// Decides a burst in groups of two, and returns what passes.
fn groups<A: Access>(memory: &Memory, limit: &TableLimit, now: u64, hashes: &[u64]) -> u64 {
    counted::<A>(memory, limit, now, hashes).0
}

/// Does the same and returns also what was counted.
fn counted<A: Access>(memory: &Memory, limit: &TableLimit, now: u64, hashes: &[u64]) -> (u64, Counters) {
    let table = memory.table_as::<A>();
    let burst = Burst::new(limit, now, hashes);
    let mut counters = Counters::default();
    let pass = table.decide_groups::<Base, 2>(Base, &burst, 0, Some(&mut counters), nothing);
    assert_eq!(counters.conforming, u64::from(pass.count_ones()), "not all are counted: {counters:?}");
    (pass, counters)
}

fn beside_a_check<A: Access + 'static>(name: &str, bound: Bound) {
    explore(name, bound, || {
        let (memory, limit) = owing(FullPolicy::Admit);
        let (a, b) = (memory.clone(), memory.clone());
        let (passed, other) = race(
            move || groups::<A>(&a, &limit, NOW, &[X; 2]).count_ones(),
            move || b.table_as::<A>().check_hash(&limit, NOW, X, 1).expect("its own limit").passes(),
        );
        let all = passed + u32::from(other);
        assert_eq!((all, memory.lives(X, NOW)), (2, (1, 3 * T)), "a charge was lost or made up");
    });
}

/// A group of two and a check have room for two: two pass. Does not show: more rivals, more preemptions.
#[test]
fn group_beside_a_check_admits_what_is_left() {
    beside_a_check::<Shared>("group/check", Bound::At(3, 4));
}

/// MUST FAIL: stores instead of swaps.
#[test]
#[should_panic(expected = "a charge was lost")]
fn group_by_stores_is_caught() {
    beside_a_check::<Stores>("MUST FAIL: group by stores", Bound::At(3, 3));
}

/// Two groups: the second one reads what the first one charged. Does not show: more preemptions.
#[test]
fn groups_beside_a_check_admit_what_is_left() {
    explore("groups/check", Bound::At(2, 3), || {
        let (memory, limit) = owing(FullPolicy::Admit);
        let (a, b) = (memory.clone(), memory.clone());
        let (passed, other) =
            race(move || groups::<Shared>(&a, &limit, NOW, &[Y, X, X, Y]), move || b.check(&limit, NOW, X).0);
        let x = (passed & 0b0110).count_ones() + u32::from(other);
        assert_eq!((x, memory.lives(X, NOW)), (2, (1, 3 * T)), "a charge was lost or made up: {passed:b}");
        assert_eq!(
            (passed & 0b1001, memory.lives(Y, NOW)),
            (0b1001, (1, 2 * T)),
            "another key's: {passed:b}"
        );
    });
}

/// Two absent keys in a group, one of which a rival inserts meanwhile: each key gets one word with all its charges.
#[test]
fn group_beside_an_insert_gives_a_key_one_slot() {
    explore("group/insert", Bound::At(2, 3), || {
        let memory = Memory::new(spec(3), FullPolicy::Deny);
        let limit = memory.limit(&spec(3));
        memory.surround(&[0, 1, 8]);
        let (a, b) = (memory.clone(), memory.clone());
        let (passed, other) =
            race(move || groups::<Shared>(&a, &limit, NOW, &[X, Y]), move || b.check(&limit, NOW, Y).0);
        assert!(passed == 0b11 && other, "refused though there was room: {passed:b} {other}");
        let owes = (memory.lives(X, NOW), memory.lives(Y, NOW));
        assert_eq!(owes, ((1, T), (1, 2 * T)), "a charge was lost or made up");
    });
}

/// A rival takes the only slot, whose word has expired for the rival but not for the group. Whichever gets the slot,
/// nothing is charged to another key.
fn beside_a_rival_that_takes(slot: usize, name: &str, taken: &'static AtomicBool) {
    explore(name, Bound::At(3, 4), move || {
        let memory = Memory::new(spec(3), FullPolicy::Deny);
        let limit = memory.limit(&spec(3));
        memory.surround(&[slot]);
        let layout = memory.table().geometry.layout;
        memory.put(slot, layout.live(layout.tag(X), NOW + 1));
        let (a, b) = (memory.clone(), memory.clone());
        let (passed, other) = race(
            move || groups::<Shared>(&a, &limit, NOW, &[X, X]).count_ones(),
            move || b.check(&limit, NOW + 2, Z).0,
        );
        let (x, z) = (memory.lives(X, NOW), memory.lives(Z, NOW + 2));
        if other {
            taken.store(true, Plain::Relaxed);
            // Charges to X have gone with its word, or there were none.
            assert_eq!((x.0, z.0), (0, 1), "{x:?} {z:?}");
            assert!(z.1 <= T + layout.grace, "charged to a stranger: {z:?}");
        } else {
            assert_eq!((passed, x, z.0), (2, (1, 2 * T + 1), 0), "a charge was lost or made up");
        }
    });
    assert!(taken.load(Plain::Relaxed), "the slot was never taken");
}

#[test]
fn group_beside_a_rival_that_takes_its_slot_charges_no_stranger() {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    beside_a_rival_that_takes(0, "group/slot taken", &TAKEN);
}

/// The same in the second line of the set, which each lane searches for itself.
#[test]
fn group_beside_a_rival_that_takes_its_slot_in_the_second_line_charges_no_stranger() {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    beside_a_rival_that_takes(8, "group/second slot taken", &TAKEN);
}

/// A refund between decode and swaps is credited once, and what passes fits the burst.
#[test]
fn group_beside_a_refund_credits_it_once() {
    static BOTH: AtomicBool = AtomicBool::new(false);
    explore("group/refund", Bound::At(3, 4), || {
        let memory = Memory::new(spec(3), FullPolicy::Admit);
        let limit = memory.limit(&spec(3));
        let request = Request { limit: &limit, now: NOW, cost: 1, room: 0 };
        assert!(memory.check(&limit, NOW, X).0);
        let permit = memory.table().check_ex(&request, X, None).expect("its own limit").permit;
        let (a, b) = (memory.clone(), memory.clone());
        let (passed, back) = race(
            move || u64::from(groups::<Shared>(&a, &limit, NOW, &[X; 2]).count_ones()),
            move || b.table().refund(&limit, NOW, X, &permit).expect("its own limit").expect("not contended"),
        );
        // A denial was read before the refund, which may also happen to a single call.
        assert!((1..=2).contains(&passed) && back == T, "{passed} passed, {back} came back");
        if passed == 2 {
            BOTH.store(true, Plain::Relaxed);
        }
        assert_eq!(memory.lives(X, NOW), (1, (2 + passed) * T - back), "a charge was lost or made up");
    });
    assert!(BOTH.load(Plain::Relaxed), "the refund never came in time");
}

/// Sums what the keys of a model owe, including the debts of dropped takeovers.
fn owed(memory: &Memory) -> u64 {
    let layout = memory.table().geometry.layout;
    let is_debt = |word: &u64| layout.is_live(*word) || layout.holds_debt(*word, NOW);
    memory.words().iter().filter(|word| is_debt(word)).map(|word| layout.lead(*word, NOW)).sum()
}

/// A full set: Y in the home line owes `y` ticks, Z in the other line owes `z`.
fn full(burst: u64, policy: FullPolicy, y: u64, z: u64) -> (Arc<Memory>, TableLimit) {
    let memory = Memory::new(spec(burst), policy);
    let limit = memory.limit(&spec(burst));
    memory.surround(&[0, 8]);
    let layout = memory.table().geometry.layout;
    memory.put(0, layout.live(layout.tag(Y), NOW + y));
    memory.put(8, layout.live(layout.tag(Z), NOW + z));
    (memory, limit)
}

/// Inherit: Y is denied until a rival refunds its own charge of Y. Then an insert by the lane before Y, or by the
/// rival, may take over Y's slot, debt included. Does not show: more preemptions.
#[test]
fn group_that_inherits_from_a_denied_lane_forgives_nothing() {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    const V: u64 = 4;
    explore("group/takeover, Inherit", Bound::At(2, 3), || {
        let (memory, limit) = full(2, FullPolicy::Inherit, 10, 2 * T);
        let (passed, permit) = memory.check(&limit, NOW, Y);
        assert!(passed && owed(&memory) == 3 * T + 10);
        let (a, b) = (memory.clone(), memory.clone());
        let (passed, (back, other)) = race(
            move || groups::<Shared>(&a, &limit, NOW, &[X, Y]),
            move || {
                let back = b.table().refund(&limit, NOW, Y, &permit).expect("its own limit");
                (back.expect("not contended"), b.check(&limit, NOW, V).0)
            },
        );
        let passes = u64::from(passed.count_ones()) + u64::from(other);
        assert!(back == T && passes <= 1, "room for one unit: {passed:b} {other}, {back} back");
        let lives = [X, V, Y].map(|key| memory.lives(key, NOW).0);
        let taken = (passed & 1) as usize;
        let expected = [taken, other.into(), 1 - taken - usize::from(other)];
        assert_eq!(lives, expected, "{passed:b} {other}");
        let least = 2 * T + 10 + passes * T;
        assert!((least..least + 16).contains(&owed(&memory)), "a debt was forgiven or made up: {passed:b}");
        if taken == 1 {
            TAKEN.store(true, Plain::Relaxed);
        }
    });
    assert!(TAKEN.load(Plain::Relaxed), "the slot was never taken over");
}

/// A key whose requests at `NOW` are among the one in 16 that may take over a slot of a Sampled table, unlike Y's.
const S: u64 = sampled(4);
const _: () = assert!(sampled(Y) != Y);

const fn sampled(mut key: u64) -> u64 {
    while (key ^ NOW).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 != 0 {
        key += 1;
    }
    key
}

/// Sampled: an insert takes over the slot of the denied lane behind it, while a rival asks for both. Y has no slot when
/// its turn comes, and passes untracked. Does not show: a bound on what is forgiven, which nobody promises.
#[test]
fn group_that_forgives_a_denied_lane_its_debt_lets_it_pass_untracked() {
    explore("group/takeover, Sampled", Bound::At(2, 3), || {
        let (memory, limit) = full(1, FullPolicy::Sampled, T - 9, T);
        let (a, b) = (memory.clone(), memory.clone());
        let check = move |memory: &Memory, key| {
            let request = Request { limit: &limit, now: NOW, cost: 1, room: 0 };
            memory.table().check_ex(&request, key, None).expect("its own limit")
        };
        let ((passed, counters), (y, s)) =
            race(move || counted::<Shared>(&a, &limit, NOW, &[S, Y]), move || (check(&b, Y), check(&b, S)));
        assert_eq!(passed & 0b10, 0b10, "denied though its slot was taken over: {counters:?}");
        assert_eq!((passed & 1) + u64::from(s.passes()), 1, "one burst: {passed:b} {s:?}");
        let forgiven = counters.forgiven + u64::from(s.tracking == Tracking::Forgiven && s.passes());
        assert_eq!((forgiven, counters.untracked), (1, 1), "{counters:?} {s:?}");
        assert!(!y.passes() || y.tracking == Tracking::Untracked, "{y:?}");
        let lives = [S, Y, Z].map(|key| memory.lives(key, NOW));
        assert_eq!(lives, [(1, T), (0, 0), (1, T)], "a charge was lost or made up");
    });
}
