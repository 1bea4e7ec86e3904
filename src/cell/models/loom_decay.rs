//! Models of a decaying level in a shared cell: every interleaving charges what some order of the calls would.
//!
//! The loop is that of all cells; new is that a charge depends on the whole level and does not only add to it. See
//! `table/models/loom_kit.rs` for the bounds and for what loom does not show. Nothing is shown of more calls than are
//! named.

use std::sync::Arc;

use crate::cell::cell::{Cell, ExclusiveCell};
use crate::limit::Limit;
use crate::sync::Ordering;
use crate::table::models::loom_kit::{explore, race3, Bound, NOW};

fn limit() -> Limit {
    Limit::decay(2, 1 << 20).expect("limit")
}

/// Returns the word after this many units at `NOW`, one after the other.
fn charged(units: u64) -> u64 {
    let mut cell = ExclusiveCell::new();
    for _ in 0..units {
        assert!(cell.check(&limit(), NOW, 1).passes());
    }
    cell.word()
}

/// Three threads, one unit each at one instant, a limit of two: exactly two pass, and the level is that of two charges.
#[test]
fn three_units_raise_the_level_by_exactly_two() {
    explore("decay: 3 threads x 1 check", Bound::First(3), || {
        let cell = Arc::new(Cell::new());
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (a, b, c) = race3(
            move || a.check(&limit(), NOW, 1).passes(),
            move || b.check(&limit(), NOW, 1).passes(),
            move || c.check(&limit(), NOW, 1).passes(),
        );
        assert_eq!([a, b, c].iter().filter(|passed| **passed).count(), 2, "not exactly the limit");
        assert_eq!(cell.word(), charged(2), "a charge was lost");
    });
}

/// A refund during two requests: the level is that of what passed, and one of them can have the unit that came back.
#[test]
fn refund_beside_requests_lowers_the_level_by_its_unit() {
    explore("decay: refund", Bound::First(3), || {
        let cell = Arc::new(Cell::new());
        let permit = cell.check_ex(&limit(), NOW, 1, 0).permit;
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (back, b, c) = race3(
            move || a.refund(&limit(), NOW, &permit),
            move || b.check(&limit(), NOW, 1).passes(),
            move || c.check(&limit(), NOW, 1).passes(),
        );
        assert_eq!(back, Some(1), "a fresh charge did not come back");
        let left = u64::from(b) + u64::from(c);
        assert!(left >= 1, "both were refused beside a unit that is free");
        let remaining = cell.peek(&limit(), NOW, 1).remaining;
        assert_eq!(remaining, 2 - left, "a charge was lost or made up");
    });
}

/// MUST FAIL: storing where the cell swaps loses charges, and three units pass.
#[test]
#[should_panic(expected = "more than the limit")]
fn stores_instead_of_swaps_admit_a_third_unit() {
    fn stores(cell: &Cell) -> bool {
        let mut own = ExclusiveCell::from_word(cell.word());
        let passed = own.check(&limit(), NOW, 1).passes();
        // ORDERING: Relaxed, as in the cell: only the missing comparison is wrong.
        cell.word.store(own.word(), Ordering::Relaxed);
        passed
    }
    explore("decay: stores", Bound::Exhaustive, || {
        let cell = Arc::new(Cell::new());
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (a, b, c) = race3(move || stores(&a), move || stores(&b), move || stores(&c));
        assert!([a, b, c].iter().filter(|passed| **passed).count() <= 2, "more than the limit");
    });
}
