//! Models of chains: on every interleaving two or three chains over two cells pass no more than each limit allows, and
//! a refused one leaves no debt.
//!
//! All threads of a model share one clock reading, so that what is owed can be summed exactly. See
//! `table/models/loom_kit.rs` for the bounds and for what loom does not show. One model has different clocks: it bounds
//! what a late undo gives back.

use std::sync::atomic::{AtomicBool, Ordering as Plain};
use std::sync::Arc;

use crate::answer::{Decision, Permit, Verdict};
use crate::cell::Cell;
use crate::combine::{Chain, Link, PreparedChain};
use crate::limit::{Limit, LimitSpec};
use crate::table::models::loom_kit::{explore, race, race3, Bound, NOW};

/// Emission interval in ticks; one q-unit a tick.
const T: u64 = 1 << 16;

struct World {
    limit: Limit,
    cells: [Cell; 2],
}

impl World {
    fn new(burst: u64) -> Arc<World> {
        let spec = LimitSpec::new(1, T, burst).max_delay(2 * T).max_room(1).max_debt(3);
        let limit = spec.resolution(0).build().expect("a limit");
        Arc::new(World { limit, cells: [Cell::new(), Cell::new()] })
    }

    /// Makes a chain over both cells, `first` before the other.
    fn chain(&self, first: usize, cost: u64) -> Chain<'_> {
        let link = |i: usize| Link::cell(&self.cells[i], &self.limit, cost);
        Chain::new(&[link(first), link(1 - first)]).expect("a chain")
    }

    /// Makes the same chain with a unit of room in each cell.
    fn elastic(&self, first: usize, cost: u64) -> Chain<'_> {
        let link = |i: usize| Link::cell(&self.cells[i], &self.limit, cost).room(1);
        Chain::new(&[link(first), link(1 - first)]).expect("a chain")
    }

    /// Returns what both cells owe, in units.
    fn debts(&self) -> [u64; 2] {
        [0, 1].map(|i| self.cells[i].peek(&self.limit, NOW, 0).reset_after / T)
    }
}

fn check(world: &Arc<World>, first: usize, cost: u64) -> impl FnOnce() -> bool + 'static {
    let world = world.clone();
    move || {
        let mut permits = [Permit::NONE; 2];
        let decision = world.chain(first, cost).check_ex(NOW, None, |i, d| permits[i] = d.permit);
        assert_eq!(decision.passes(), permits[0] != Permit::NONE, "a permit for nothing");
        decision.passes()
    }
}

/// Two chains in opposite orders want one unit of each cell: at most one passes, and both cells owe what passed. The
/// race in which both are refused occurs. Does not show: more threads.
#[test]
fn loom_chains_in_opposite_orders_never_pass_together() {
    static NONE_PASSED: AtomicBool = AtomicBool::new(false);
    explore("chain: opposite orders", Bound::At(3, 4), || {
        let world = World::new(1);
        let (a, b) = race(check(&world, 0, 1), check(&world, 1, 1));
        let passed = a as u64 + b as u64;
        assert!(passed <= 1, "both passed");
        assert_eq!(world.debts(), [passed; 2], "debt of a refused chain");
        NONE_PASSED.fetch_or(passed == 0, Plain::Relaxed);
    });
    assert!(NONE_PASSED.load(Plain::Relaxed), "the race that needs an undo was never run");
}

/// Two prepared chains in opposite orders want one unit of each cell, under a plain limit, so that their words are in
/// registers until a swap is lost: at most one passes, and both cells owe what passed. Does not show: more threads.
#[test]
fn loom_prepared_chains_of_cells_in_opposite_orders_never_pass_together() {
    static NONE_PASSED: AtomicBool = AtomicBool::new(false);
    explore("chain: prepared, opposite orders", Bound::At(3, 4), || {
        let limit = LimitSpec::new(1, T, 1).resolution(0).build().expect("a limit");
        let world = Arc::new(World { limit, cells: [Cell::new(), Cell::new()] });
        let check = |first: usize| {
            let world = world.clone();
            move || {
                let link = |i: usize| Link::cell(&world.cells[i], &world.limit, 1);
                let chain = PreparedChain::new(&[link(first), link(1 - first)]).expect("a chain");
                assert!(chain.cells() == 2 && world.limit.0.plain != 0, "another way");
                chain.verdict(NOW, &[0; 2], None).expect("two hashes").passes()
            }
        };
        let (a, b) = race(check(0), check(1));
        let passed = a as u64 + b as u64;
        assert!(passed <= 1, "both passed");
        assert_eq!(world.debts(), [passed; 2], "debt of a refused chain");
        NONE_PASSED.fetch_or(passed == 0, Plain::Relaxed);
    });
    assert!(NONE_PASSED.load(Plain::Relaxed), "the race that needs an undo was never run");
}

/// Two chains of different costs in one order: what passes fits, nothing else is owed. Does not show: more threads.
#[test]
fn loom_chains_of_other_costs_fit_together_or_not_at_all() {
    explore("chain: costs 2 and 1 of 2", Bound::Exhaustive, || {
        let world = World::new(2);
        let (a, b) = race(check(&world, 0, 2), check(&world, 0, 1));
        let passed = 2 * a as u64 + b as u64;
        assert!(passed <= 2, "over-admitted");
        assert_eq!(world.debts(), [passed; 2], "debt of a refused chain");
    });
}

/// Three chains in one order with one cost, and two units in each cell: two pass. Does not show: other orders.
#[test]
fn loom_three_chains_in_one_order_pass_as_one_after_the_other() {
    explore("chain: 3 threads, 2 units", Bound::At(2, 3), || {
        let world = World::new(2);
        let (a, b, c) = race3(check(&world, 0, 1), check(&world, 0, 1), check(&world, 0, 1));
        assert_eq!([a, b, c].iter().filter(|passed| **passed).count(), 2, "not exactly the burst");
        assert_eq!(world.debts(), [2; 2], "debt of a refused chain");
    });
}

/// A chain against single checks of its second cell: it may lose after its peek. Does not show: refunds of the rival.
#[test]
fn loom_a_chain_that_loses_a_race_gives_its_first_link_back() {
    static LOST: AtomicBool = AtomicBool::new(false);
    explore("chain: beside single checks", Bound::Exhaustive, || {
        let world = World::new(2);
        let (chain, rival) = (world.clone(), world.clone());
        let (d, singles) = race(
            move || chain.chain(0, 1).check(NOW),
            move || [0; 2].map(|_| rival.cells[1].check(&rival.limit, NOW, 1).passes()),
        );
        let (own, others) = (d.passes() as u64, singles.iter().filter(|p| **p).count() as u64);
        assert_eq!(own + others, 2, "a unit was refused to all");
        assert_eq!(world.debts(), [own, 2]);
        if let Decision { verdict: Verdict::NonConforming, policy, retry_after, .. } = d {
            assert_eq!((policy, retry_after), (1, T));
            LOST.store(true, Plain::Relaxed);
        }
    });
    assert!(LOST.load(Plain::Relaxed), "the race was never lost");
}

/// A chain that loses its second cell undoes its first by its own reading. The rival's clock is one emission interval
/// ahead, so the undo gives back what has drained for the rival: one unit more than the burst, and no more. The model
/// must reach that case. Does not show: clocks further apart.
#[test]
fn loom_a_late_undo_gives_back_what_drained_meanwhile_and_no_more() {
    static LATE: AtomicBool = AtomicBool::new(false);
    explore("chain: a late undo", Bound::Exhaustive, || {
        let world = World::new(1);
        let (chain, rival) = (world.clone(), world.clone());
        let (_, passed) = race(
            move || chain.chain(0, 1).check(NOW),
            move || {
                let _ = rival.cells[1].check(&rival.limit, NOW, 1);
                (0..3).filter(|_| rival.cells[0].check(&rival.limit, NOW + T, 1).passes()).count()
            },
        );
        assert!((1..=2).contains(&passed), "{passed} units at one instant");
        LATE.fetch_or(passed == 2, Plain::Relaxed);
    });
    assert!(LATE.load(Plain::Relaxed), "no undo was ever late");
}

/// Two chains reserve in opposite orders: both cells owe both requests, and these do not both leave at once. Does not
/// show: more threads.
#[test]
fn loom_reservations_of_chains_share_no_departure() {
    explore("chain: reservations", Bound::Exhaustive, || {
        let world = World::new(1);
        let reserve = |first: usize| {
            let world = world.clone();
            move || world.chain(first, 1).reserve(NOW).unwrap()
        };
        let (a, b) = race(reserve(0), reserve(1));
        assert!(a.passes() && b.passes(), "a delay of two units is enough for two");
        assert_eq!(world.debts(), [2; 2]);
        // In opposite orders both may leave second, in one cell each; neither leaves as if the other were not there.
        assert!(a.departure.max(b.departure) == NOW + T, "both left at once");
    });
}

/// Two chains in opposite orders want two units of each cell, one of them from room: at most one passes, and the room
/// that a refused one took is given back. The race in which both are refused occurs. Does not show: more threads.
#[test]
fn loom_room_that_a_refused_chain_took_is_given_back() {
    static NONE_PASSED: AtomicBool = AtomicBool::new(false);
    explore("chain: room, opposite orders", Bound::Exhaustive, || {
        let world = World::new(1);
        let check = |first: usize| {
            let world = world.clone();
            move || world.elastic(first, 2).check(NOW)
        };
        let (a, b) = race(check(0), check(1));
        let passed = a.passes() as u64 + b.passes() as u64;
        assert!(passed <= 1, "over-admitted");
        assert_eq!(world.debts(), [2 * passed; 2], "debt of a refused chain");
        NONE_PASSED.fetch_or(passed == 0, Plain::Relaxed);
    });
    assert!(NONE_PASSED.load(Plain::Relaxed), "the race that needs an undo was never run");
}

/// Two chains are charged after the fact in opposite orders, and a third call checks one cell: every charge is owed.
/// Does not show: contention to the bound.
#[test]
fn loom_charges_of_chains_are_all_owed() {
    explore("chain: charges", Bound::At(2, 3), || {
        let world = World::new(1);
        let charge = |first: usize| {
            let world = world.clone();
            move || world.chain(first, 1).charge(NOW).passes()
        };
        let rival = world.clone();
        let check = move || rival.cells[0].check(&rival.limit, NOW, 1).passes();
        let (a, b, c) = race3(charge(0), charge(1), check);
        assert!(a && b, "a charge refuses nothing");
        assert_eq!(world.debts(), [2 + c as u64, 2], "a charge was lost");
    });
}

/// Checks the two cells like a chain that has no undo, through the same calls.
fn check_without_undo(world: &Arc<World>, first: usize) -> impl FnOnce() -> bool + 'static {
    let world = world.clone();
    move || [first, 1 - first].iter().all(|&i| world.cells[i].check(&world.limit, NOW, 1).passes())
}

/// MUST FAIL: a forgotten undo leaves debt.
#[test]
#[should_panic(expected = "debt of a refused chain")]
fn loom_weak_chain_that_forgets_its_undo_is_caught() {
    explore("chain, weakened: no undo", Bound::Exhaustive, || {
        let world = World::new(1);
        let (a, b) = race(check_without_undo(&world, 0), check_without_undo(&world, 1));
        assert_eq!(world.debts(), [a as u64 + b as u64; 2], "debt of a refused chain");
    });
}

/// MUST FAIL: a chain that believes its peek and then charges without checking passes two.
#[test]
#[should_panic(expected = "over-admitted")]
fn loom_weak_chain_that_believes_its_look_is_caught() {
    explore("chain, weakened: look, then charge", Bound::Exhaustive, || {
        let world = World::new(1);
        let believe = || {
            let world = world.clone();
            move || {
                let passes = world.chain(0, 1).peek(NOW).passes();
                for cell in world.cells.iter().filter(|_| passes) {
                    let _ = cell.charge(&world.limit, NOW, 1);
                }
                passes
            }
        };
        let (a, b) = race(believe(), believe());
        assert!(a as u64 + b as u64 <= 1, "over-admitted");
    });
}
