//! Models of the fixed window on a cell: counts against counts, refunds, and a window that ends in between.
//!
//! See `table/models/loom_kit.rs` for the bounds and for what loom does not show, and `loom_counts.rs` there for slots.

use std::sync::Arc;

use crate::answer::Outcome;
use crate::cell::Cell;
use crate::limit::{Limit, LimitSpec};
use crate::sync::{AtomicU64, Ordering};
use crate::table::models::loom_kit::{explore, race, race3, Bound, NOW};

/// Ticks of a window. One tick is one unit of time.
const W: u64 = 1 << 12;

/// Three units in a window; two bits a count.
fn limit() -> Limit {
    LimitSpec::fixed_window(3, W).resolution(0).build().expect("limit")
}

/// Returns the word of a window that ends at `end`.
fn word(end: u64, count: u64) -> u64 {
    end << 2 | count
}

fn cell_of(word: u64) -> Arc<Cell> {
    Arc::new(Cell { word: AtomicU64::new(word) })
}

fn passed(outcomes: &[Outcome]) -> u64 {
    outcomes.iter().filter(|o| o.passes()).count() as u64
}

/// Three threads, one check each, two of three units left: exactly 2 pass and the word holds them. Does not show:
/// different clocks.
#[test]
fn window_checks_admit_exactly_what_is_left() {
    explore("window: 3 threads x 1 check", Bound::First(3), || {
        let limit = limit();
        let cell = cell_of(word(NOW + 9, 1));
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (a, b, c) = race3(
            move || a.check(&limit, NOW, 1),
            move || b.check(&limit, NOW, 1),
            move || c.check(&limit, NOW, 1),
        );
        assert_eq!(passed(&[a, b, c]), 2, "not exactly what is left");
        assert_eq!(cell.word(), word(NOW + 9, 3), "the word does not hold what was charged");
    });
}

/// A charge in the last tick of a window, a refund in it and a clock that is ahead: everything that passed is in the
/// window that the word holds at the end, or in the one that ended. Does not show: more than two threads.
fn charge_and_refund_beside_an_end(name: &str, check: fn(&Cell, &Limit, u64) -> Outcome) {
    explore(name, Bound::Exhaustive, move || {
        let limit = limit();
        let cell = cell_of(word(NOW + 1, 1));
        let charged = cell.check_ex(&limit, NOW, 1, 0);
        let (a, b) = (cell.clone(), cell.clone());
        let ((back, again), ahead) = race(
            move || (a.refund(&limit, NOW, &charged.permit), check(&a, &limit, NOW)),
            move || check(&b, &limit, NOW + 1),
        );
        assert!(again.passes() && ahead.passes(), "there was room in either window");
        let end = cell.word();
        // Refunded before the end: that unit is free again. After it: the permit belongs to a window that is over.
        let before = [word(NOW + 1 + W, 1), word(NOW + 1 + W, 2)];
        match back {
            Some(1) => assert!(before.contains(&end), "a charge was lost: {end:x}"),
            Some(0) => assert_eq!(end, word(NOW + 1 + W, 2), "a charge was lost"),
            other => panic!("contended with one rival: {other:?}"),
        }
    });
}

#[test]
fn window_charge_and_refund_beside_an_end_lose_nothing() {
    charge_and_refund_beside_an_end("window: end beside a refund", |cell, limit, now| {
        cell.check(limit, now, 1)
    });
}

/// MUST FAIL: a store in place of the swap forgets what came in between.
#[test]
#[should_panic(expected = "a charge was lost")]
fn must_fail_window_stored_instead_of_swapped() {
    charge_and_refund_beside_an_end("window: must fail, a store", |cell, limit, now| {
        let mut own = crate::cell::ExclusiveCell::from_word(cell.word());
        let made = own.check(limit, now, 1);
        // ORDERING: Relaxed; wrong on purpose, because this is no swap.
        cell.word.store(own.word(), Ordering::Relaxed);
        made
    });
}
