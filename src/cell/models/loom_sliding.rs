//! Models of the sliding window counter on a cell: windows that roll while other threads load and swap.
//!
//! See `table/models/loom_kit.rs` for the bounds and for what loom does not show.

use std::sync::Arc;

use crate::answer::Outcome;
use crate::cell::{Cell, ExclusiveCell};
use crate::limit::{Limit, LimitSpec};
use crate::sync::{AtomicU64, Ordering};
use crate::table::models::loom_kit::{explore, race, race3, Bound, NOW};

/// Ticks of a window. One tick is one unit of time.
const W: u64 = 1 << 12;

/// Three units in a window; two bits a count.
fn limit() -> Limit {
    LimitSpec::sliding_counter(3, W).resolution(0).build().expect("limit")
}

/// Returns the word of a window that started at `start`.
fn word(start: u64, current: u64, previous: u64) -> u64 {
    (start + 2 * W) << 4 | current << 2 | previous
}

fn passed(outcomes: &[Outcome]) -> u64 {
    outcomes.iter().filter(|o| o.passes()).count() as u64
}

/// Three threads, one check each, two of three units left: exactly 2 pass and the word holds them. Does not show:
/// different clocks.
#[test]
fn sliding_checks_admit_exactly_what_is_left() {
    explore("sliding: 3 threads x 1 check", Bound::First(3), || {
        let limit = limit();
        let cell = cell_of(word(NOW - 9, 1, 0));
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (a, b, c) = race3(
            move || a.check(&limit, NOW, 1),
            move || b.check(&limit, NOW, 1),
            move || c.check(&limit, NOW, 1),
        );
        assert_eq!(passed(&[a, b, c]), 2, "not exactly what is left");
        assert_eq!(cell.word(), word(NOW - 9, 3, 0), "the word does not hold what was charged");
    });
}

/// One thread charges in the last tick of a window while another, whose clock is half a window ahead, rolls it: the end
/// is that of one of the two orders. `check` is how they check.
fn charge_beside_roll(name: &str, check: fn(&Cell, &Limit, u64) -> Outcome) {
    explore(name, Bound::Exhaustive, move || {
        let (limit, start) = (limit(), NOW - W + 1);
        let cell = cell_of(word(start, 2, 0));
        let (a, b) = (cell.clone(), cell.clone());
        let (behind, ahead) =
            race(move || check(&a, &limit, NOW), move || check(&b, &limit, NOW + 1 + W / 2));
        // The third unit passes, and then the roll finds three half in sight. Or the roll finds two, and the clock that
        // is behind sees both of them whole next to the new one.
        let serial = [(true, word(start + W, 1, 3)), (false, word(start + W, 1, 2))];
        assert!(ahead.passes(), "the roll found no room");
        assert!(serial.contains(&(behind.passes(), cell.word())), "no serial order: a charge was lost");
    });
}

/// Does not show: more than one roll at once.
#[test]
fn sliding_charge_beside_a_roll_is_serial() {
    charge_beside_roll("sliding: charge beside a roll", |cell, limit, now| cell.check(limit, now, 1));
}

/// Two threads roll at once, and one of them refunds its charge: one roll, and neither window loses a count. Does not
/// show: a refund while another thread rolls on.
#[test]
fn sliding_rolls_and_a_refund_keep_both_counts() {
    explore("sliding: two rolls and a refund", Bound::Exhaustive, || {
        let (limit, start) = (limit(), NOW - W - W / 2);
        let cell = cell_of(word(start, 1, 3));
        let (a, b) = (cell.clone(), cell.clone());
        let (back, kept) = race(
            move || {
                let charge = a.check_ex(&limit, NOW, 1, 0);
                assert!(charge.passes(), "two units are free");
                a.refund(&limit, NOW, &charge.permit).expect("contended")
            },
            move || b.check(&limit, NOW, 1),
        );
        assert_eq!((back, passed(&[kept])), (1, 1), "a charge or its refund failed");
        assert_eq!(cell.word(), word(start + W, 1, 1), "a charge was lost or made up");
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
#[should_panic(expected = "a charge was lost")]
fn sliding_store_for_swap_beside_a_roll_is_caught() {
    charge_beside_roll("MUST FAIL: sliding, store for swap", check_and_store);
}
