//! Models of quota-linear on a cell: the switch from bursty to smooth during other requests and refunds.
//!
//! See `table/models/loom_kit.rs` for the bounds and for what loom does not show.

use std::sync::Arc;

use crate::answer::Outcome;
use crate::cell::{Cell, ExclusiveCell};
use crate::limit::{Limit, LimitSpec};
use crate::sync::{AtomicU64, Ordering};
use crate::table::models::loom_kit::{explore, race, race3, Bound, NOW};

/// Ticks of a window, and between two units of a quota of 3. One tick is one unit of time.
const W: u64 = 3 << 10;
const T: u64 = 1 << 10;

/// A quota of 3: two bits besides the mode.
fn limit() -> Limit {
    LimitSpec::quota_linear(3, W).resolution(0).build().expect("limit")
}

/// Returns the word of a window that ends at `end`.
fn bursty(end: u64, used: u64) -> u64 {
    end << 3 | used
}

/// Returns the word of a bucket that is full at `full`, in whole ticks.
fn smooth(full: u64) -> u64 {
    // ceil(y), and y - 1 below the point, in thirds.
    full << 3 | 1 << 2 | 2
}

/// Three threads and one unit of the quota: one thread uses it up and makes the key smooth, the others wait for the
/// window's end. `check` is how they check.
fn last_unit(name: &str, check: fn(&Cell, &Limit, u64) -> Outcome) {
    explore(name, Bound::First(3), move || {
        let (limit, end) = (limit(), NOW + W / 2);
        let cell = cell_of(bursty(end, 2));
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (a, b, c) = race3(
            move || check(&a, &limit, NOW),
            move || check(&b, &limit, NOW),
            move || check(&c, &limit, NOW),
        );
        let passed = [a, b, c].iter().filter(|o| o.passes()).count();
        assert_eq!(passed, 1, "the last unit passed {passed} times");
        assert!([a, b, c].contains(&Outcome::NonConforming { retry_after: W / 2 }), "no exact refusal");
        assert_eq!(cell.word(), smooth(end + 2 * T), "the word does not hold the switch");
    });
}

/// Does not show: different clocks.
#[test]
fn quota_last_unit_passes_once_and_switches() {
    last_unit("quota: last unit", |cell, limit, now| cell.check(limit, now, 1));
}

/// A refund during the request that uses the quota up: either it comes first and there is no switch, or it is too late
/// and gives nothing back. Does not show: two refunds.
#[test]
fn quota_refund_beside_the_switch_is_serial() {
    explore("quota: refund beside the switch", Bound::Exhaustive, || {
        let limit = limit();
        let cell = cell_of(bursty(NOW + W, 1));
        let permit = cell.check_ex(&limit, NOW, 1, 0).permit;
        let (a, b) = (cell.clone(), cell.clone());
        let (back, last) =
            race(move || a.refund(&limit, NOW, &permit).expect("contended"), move || b.check(&limit, NOW, 1));
        assert!(last.passes(), "a unit of the quota was left");
        let serial = [(1, bursty(NOW + W, 2)), (0, smooth(NOW + W + 2 * T))];
        assert!(serial.contains(&(back, cell.word())), "no serial order: {back}, {:#x}", cell.word());
    });
}

/// Smooth, with two units, and clocks that differ by half of T: two pass and a third never does, and y moves by T for
/// each. Does not show: clocks that differ by more than T.
#[test]
fn quota_smooth_requests_pass_one_a_unit() {
    explore("quota: smooth, clocks apart", Bound::First(3), || {
        let (limit, full) = (limit(), NOW + T);
        let cell = cell_of(smooth(full));
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (a, b, c) = race3(
            move || a.check(&limit, NOW, 1),
            move || b.check(&limit, NOW + T / 2, 1),
            move || c.check(&limit, NOW, 1),
        );
        let passed = [a, b, c].iter().filter(|o| o.passes()).count();
        assert_eq!(passed, 2, "{passed} of two units");
        assert_eq!(cell.word(), smooth(full + 2 * T), "a charge was lost or made up");
    });
}

fn cell_of(word: u64) -> Arc<Cell> {
    Arc::new(Cell { word: AtomicU64::new(word) })
}

/// A store in place of the swap; the rest is as shipped.
fn check_and_store(cell: &Cell, limit: &Limit, now: u64) -> Outcome {
    let mut own = ExclusiveCell::from_word(cell.word());
    let outcome = own.check(limit, now, 1);
    // ORDERING: Relaxed, as the swap; wrong on purpose, because it compares nothing.
    cell.word.store(own.word(), Ordering::Relaxed);
    outcome
}

#[test]
#[should_panic(expected = "the last unit passed")]
fn quota_store_for_swap_is_caught() {
    last_unit("MUST FAIL: quota, store for swap", check_and_store);
}
