//! Models of chains of the keys of a table, on the short way: two chains and other calls change the same words.
//!
//! All threads of a model share one clock reading unless it says otherwise. See `table/models/loom_kit.rs` for the
//! bounds and for what loom does not show.

use std::sync::atomic::{AtomicBool, Ordering as Plain};
use std::sync::Arc;

use crate::combine::{Chain, Link};
use crate::limit::TableLimit;
use crate::table::models::loom_kit::{explore, race, race3, spec, Bound, Memory, NOW, T};
use crate::table::FullPolicy;

/// The caller's hashes: home line 0 and these tags.
const X: u64 = 1;
const Y: u64 = 2;
const Z: u64 = 3;

/// A table of two free slots, with a word of X and of Y that owe this much; a burst of three units.
struct World {
    memory: Arc<Memory>,
    limit: TableLimit,
}

impl World {
    fn new(policy: FullPolicy, owed: [u64; 2]) -> World {
        let memory = Memory::new(spec(3), policy);
        let (limit, layout) = (memory.limit(&spec(3)), memory.table().geometry.layout);
        memory.surround(&[0, 8]);
        for (number, key, owed) in [(0, X, owed[0]), (8, Y, owed[1])] {
            memory.put(number, layout.live(layout.tag(key), NOW + owed));
        }
        World { memory, limit }
    }

    /// Returns a thread's call of a chain, one unit of each key.
    fn chain(&self, keys: [u64; 2]) -> impl FnOnce() -> bool + 'static {
        let (memory, limit) = (self.memory.clone(), self.limit);
        move || {
            let table = memory.table();
            let links = keys.map(|key| Link::hash(&table, &limit, key, 1));
            Chain::new(&links).expect("a chain").verdict(NOW).passes()
        }
    }

    fn check(&self, key: u64) -> impl FnOnce() -> bool + 'static {
        let (memory, limit) = (self.memory.clone(), self.limit);
        move || memory.check(&limit, NOW, key).0
    }

    /// Returns what a key owes, in ticks.
    fn owes(&self, key: u64) -> u64 {
        let (lives, lead) = self.memory.lives(key, NOW);
        assert!(lives <= 1, "two live words of one key");
        lead
    }
}

/// Two chains in opposite orders want one unit of each key, which has one left: at most one passes, and both keys owe
/// what passed. Does not show: more threads.
#[test]
fn loom_chains_of_two_keys_in_opposite_orders_never_pass_together() {
    static NONE_PASSED: AtomicBool = AtomicBool::new(false);
    explore("short chain: opposite orders", Bound::At(3, 4), || {
        let world = World::new(FullPolicy::Admit, [2 * T, 2 * T]);
        let (a, b) = race(world.chain([X, Y]), world.chain([Y, X]));
        let passed = a as u64 + b as u64;
        assert!(passed <= 1, "both passed");
        assert_eq!([X, Y].map(|key| world.owes(key)), [2 * T + passed * T; 2], "debt of a refused chain");
        NONE_PASSED.fetch_or(passed == 0, Plain::Relaxed);
    });
    assert!(NONE_PASSED.load(Plain::Relaxed), "the race that needs an undo was never run");
}

/// A chain and an insert of one of its keys, both absent: one slot a key, and as many units as passed. Does not show:
/// a full set.
#[test]
fn loom_a_chain_beside_an_insert_of_its_key_charges_one_slot() {
    explore("short chain: beside an insert", Bound::At(2, 3), || {
        let world = World::new(FullPolicy::Admit, [0, 0]);
        world.memory.put(0, 0);
        world.memory.put(8, 0);
        let (a, b) = race(world.chain([X, Y]), world.check(X));
        assert!(a && b, "a unit was refused");
        assert_eq!([X, Y].map(|key| world.owes(key)), [2 * T, T], "a charge was lost or made up");
    });
}

/// Y has room for one unit, for which a chain and a check race. X is charged, and refunded, by a third thread. What X
/// owes in the end is what passed. Does not show: a refund of an older permit.
#[test]
fn loom_an_undo_beside_a_refund_takes_back_its_own_charge() {
    static UNDONE: AtomicBool = AtomicBool::new(false);
    explore("short chain: undo beside a refund", Bound::At(2, 3), || {
        let world = World::new(FullPolicy::Admit, [T / 2, 2 * T]);
        let (memory, limit) = (world.memory.clone(), world.limit);
        let (chain, single, ()) = race3(world.chain([X, Y]), world.check(Y), move || {
            let (passed, permit) = memory.check(&limit, NOW, X);
            if passed {
                let back = memory.table().refund(&limit, NOW, X, &permit).expect("its own");
                assert_eq!(back, Some(T), "the refund gave back something else");
            }
        });
        assert!(!(chain && single), "over-admitted");
        assert_eq!(world.owes(X), T / 2 + chain as u64 * T, "a charge was lost or made up");
        assert_eq!(world.owes(Y), 2 * T + (chain || single) as u64 * T);
        UNDONE.fetch_or(!chain && single, Plain::Relaxed);
    });
    assert!(UNDONE.load(Plain::Relaxed), "no chain was refused");
}

/// A full set refuses Z after X was charged. X owes what the single check was charged. Does not show: takeovers.
#[test]
fn loom_a_chain_that_a_full_set_refuses_gives_its_charge_back() {
    static BETWEEN: AtomicBool = AtomicBool::new(false);
    explore("short chain: a full set", Bound::At(3, 4), || {
        let world = World::new(FullPolicy::Deny, [3 * T / 2, 2 * T]);
        let (chain, single) = race(world.chain([X, Z]), world.check(X));
        assert!(!chain, "a full set took a key");
        assert_eq!(world.owes(X), 3 * T / 2 + single as u64 * T, "a charge was lost or made up");
        BETWEEN.fetch_or(!single, Plain::Relaxed);
    });
    assert!(BETWEEN.load(Plain::Relaxed), "no check ever met the charge that was given back");
}

/// A key is reset while a chain holds a charge on it. X owes no more than its burst, and has one slot. Does not show:
/// different clocks.
#[test]
fn loom_an_undo_beside_a_reset_leaves_the_key_one_slot() {
    explore("short chain: undo beside a reset", Bound::At(2, 3), || {
        let world = World::new(FullPolicy::Admit, [T / 2, 2 * T]);
        let (memory, limit) = (world.memory.clone(), world.limit);
        let (chain, single, ()) = race3(world.chain([X, Y]), world.check(Y), move || {
            let _ = memory.table().reset_key(NOW, X);
            let _ = memory.check(&limit, NOW, X);
        });
        assert!(!(chain && single), "over-admitted");
        assert!(world.owes(X) <= 3 * T, "above the burst");
    });
}

/// A stranger takes over the slot of X, or of Y, while a chain holds a charge there. Under Inherit no debt is lost.
/// Does not show: time passing.
#[test]
fn loom_an_undo_beside_a_takeover_loses_no_debt() {
    for policy in [FullPolicy::Inherit, FullPolicy::Sampled] {
        explore("short chain: undo beside a takeover", Bound::At(1, 2), move || {
            let world = World::new(policy, [T / 2, 2 * T]);
            let (chain, single, stranger) = race3(world.chain([X, Y]), world.check(Y), world.check(Z));
            let all: u64 = [X, Y, Z].map(|key| world.owes(key)).iter().sum();
            if policy == FullPolicy::Inherit {
                let passed = 2 * chain as u64 + single as u64 + stranger as u64;
                let owed = T / 2 + 2 * T + passed * T;
                assert!(all >= owed, "a debt was lost: {all} of {owed}");
            }
            assert!(all <= 6 * T + 64, "a debt was made up: {all}");
        });
    }
}

/// A slot is swept by a clock for which its word has expired, while a chain holds a charge on it. Does not show: an
/// insert into the swept slot.
#[test]
fn loom_an_undo_beside_a_sweep_leaves_the_key_one_slot() {
    explore("short chain: undo beside a sweep", Bound::At(2, 3), || {
        let world = World::new(FullPolicy::Admit, [0, 2 * T]);
        let layout = world.memory.table().geometry.layout;
        world.memory.put(0, layout.live(layout.tag(X), NOW - layout.window - 5));
        let memory = world.memory.clone();
        let (chain, single, _) =
            race3(world.chain([X, Y]), world.check(Y), move || memory.table().sweep(NOW + 2, 0, 1));
        assert!(!(chain && single), "over-admitted");
        let owed = world.owes(X);
        assert!(owed == chain as u64 * T || !chain && owed <= 32, "debt of a refused chain: {owed}");
    });
}

/// X has expired, and a stranger takes its slot between the look of a chain and its swap: the chain must not charge the
/// word of the stranger. Does not show: a word of X that comes back.
#[test]
fn loom_a_chain_that_lost_its_slot_leaves_the_word_of_the_stranger() {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    explore("short chain: a stranger in the slot", Bound::At(2, 3), || {
        let world = World::new(FullPolicy::Admit, [0, 0]);
        let layout = world.memory.table().geometry.layout;
        world.memory.put(0, layout.live(layout.tag(X), NOW - layout.window - 5));
        let (memory, limit) = (world.memory.clone(), world.limit);
        let (chain, stored) = race(world.chain([X, Y]), move || memory.check(&limit, NOW, Z).1.stored);
        assert!(chain, "all have room");
        assert!(stored == 0 || world.owes(Z) == T, "the charge of the stranger was lost");
        TAKEN.fetch_or(stored != 0, Plain::Relaxed);
    });
    assert!(TAKEN.load(Plain::Relaxed), "the stranger never got the slot");
}
