//! Models of the cells: every interleaving of operations on one word gives the answers of some order of them.
//!
//! All threads of a model share one clock reading, so that their charges can be summed exactly. See
//! `table/models/loom_kit.rs` for the bounds and for what loom does not show: in particular a weak swap never fails
//! here without cause. Nothing is shown of more threads or operations than are named.

use std::sync::atomic::{AtomicBool, Ordering as Plain};
use std::sync::Arc;

use crate::algorithms::Change;
use crate::answer::{Outcome, Permit};
use crate::cell::{Cell, Cell32};
use crate::limit::{Limit, Limit32, LimitSpec};
use crate::sync::MAX_LOST;
use crate::table::models::loom_kit::{explore, race, race3, Bound, NOW};

/// Emission interval in ticks; `spec` makes one q-unit one tick.
const T: u64 = 1 << 16;

fn spec(burst: u64) -> LimitSpec {
    LimitSpec::new(1, T, burst).resolution(0)
}

fn limit(burst: u64) -> Limit {
    spec(burst).build().expect("limit")
}

/// Returns the debt of a cell at `NOW`, in q-units.
fn debt(cell: &Cell) -> u64 {
    match cell.word() {
        0 => 0,
        word => word - NOW,
    }
}

fn passed(outcomes: &[Outcome]) -> u64 {
    outcomes.iter().filter(|o| o.passes()).count() as u64
}

/// Three threads, one check each, burst 2: exactly 2 pass and the word holds their charge. Does not show: different
/// clocks, other operations.
#[test]
fn three_checks_admit_exactly_the_burst() {
    explore("cell: 3 threads x 1 check", Bound::Exhaustive, || {
        let limit = limit(2);
        let cell = Arc::new(Cell::new());
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (a, b, c) = race3(
            move || a.check(&limit, NOW, 1),
            move || b.check(&limit, NOW, 1),
            move || c.check(&limit, NOW, 1),
        );
        assert_eq!(passed(&[a, b, c]), 2, "not exactly the burst");
        assert_eq!(debt(&cell), 2 * T, "the word does not hold what was charged");
        assert!([a, b, c].contains(&Outcome::NonConforming { retry_after: T }), "no exact refusal");
    });
}

/// Two threads, three checks each, burst 4: exactly 4 pass. Does not show: more threads, different clocks.
#[test]
fn two_threads_of_three_checks_admit_exactly_the_burst() {
    explore("cell: 2 threads x 3 checks", Bound::Exhaustive, || {
        let limit = limit(4);
        let cell = Arc::new(Cell::new());
        let (a, b) = (cell.clone(), cell.clone());
        let (a, b) = race(
            move || [0; 3].map(|_| a.check(&limit, NOW, 1)),
            move || [0; 3].map(|_| b.check(&limit, NOW, 1)),
        );
        assert_eq!(passed(&a) + passed(&b), 4, "not exactly the burst");
        assert_eq!(debt(&cell), 4 * T, "the word does not hold what was charged");
    });
}

/// Two threads whose clocks differ by less than the debt: they admit at most the burst plus what drains between the
/// clocks, and the word never falls. Does not show: clocks that differ by more than the skew.
#[test]
fn clocks_apart_admit_no_more_than_drains_between_them() {
    explore("cell: clocks apart", Bound::Exhaustive, || {
        let limit = limit(2);
        let cell = Arc::new(Cell::new());
        let (a, b) = (cell.clone(), cell.clone());
        let (a, b) = race(
            move || [0; 2].map(|_| (a.check(&limit, NOW, 1), a.word())),
            move || [0; 2].map(|_| (b.check(&limit, NOW + T, 1), b.word())),
        );
        let passes = a.iter().chain(&b).filter(|(o, _)| o.passes()).count();
        assert!((2..=3).contains(&passes), "{passes} of a burst of 2 and one emission interval");
        assert!(a[0].1 <= a[1].1 && b[0].1 <= b[1].1, "the word fell");
        assert!(cell.word() >= a[1].1.max(b[1].1), "the word fell");
    });
}

/// A refund, a charge and a check: the word ends with what was charged minus what was given back, and a refund gives
/// back its own charge once. Does not show: refunds while time passes, two refunds of one permit.
#[test]
fn refund_beside_charge_and_check_loses_nothing() {
    explore("cell: check/refund/charge", Bound::First(4), || {
        let limit = spec(3).max_debt(2).build().expect("limit");
        let cell = Arc::new(Cell::new());
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (back, charged, checked) = race3(
            move || {
                let permit = a.check_ex(&limit, NOW, 2, 0).permit;
                (permit, a.refund(&limit, NOW, &permit).expect("contended"))
            },
            move || b.charge(&limit, NOW, 2).permit,
            move || c.check_ex(&limit, NOW, 1, 0).permit,
        );
        let (permit, refunded) = back;
        assert_eq!(refunded, permit.stored, "a fresh charge comes back whole");
        assert_eq!(debt(&cell), charged.stored + checked.stored, "a charge was lost or made up");
        assert_eq!(charged.stored, 2 * T, "a charge below its cap was cut");
    });
}

/// A change of rate during checks under the old limit: the word ends as in one of the serial orders. Does not show:
/// checks under the new limit at the same time, limits of different resolution.
#[test]
fn change_of_rate_beside_checks_is_serial() {
    explore("cell: change of rate", Bound::Exhaustive, || {
        let old = limit(4);
        let new = LimitSpec::new(1, 3 * T, 4).resolution(0).build().expect("limit");
        let cell = Arc::new(Cell::new());
        assert!(cell.check(&old, NOW, 1).passes());
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (changed, b, c) = race3(
            move || a.change(&old, &new, NOW, Change::KeepUnits).unwrap(),
            move || b.check(&old, NOW, 1),
            move || c.check(&old, NOW, 1),
        );
        assert!(changed, "contended with two rivals");
        // Two, one or no check before the change. After it the old burst of 4T leaves room for at most one more.
        let serial = [(2, 9 * T), (1, 6 * T), (1, 3 * T + T)];
        let end = (passed(&[b, c]), debt(&cell));
        assert!(serial.contains(&end), "no serial order: {end:?}");
    });
}

/// The 32-bit cell: three threads, one check each. Does not show: the wrap of its clock.
#[test]
fn cell32_three_checks_admit_exactly_the_burst() {
    explore("cell32: 3 threads x 1 check", Bound::Exhaustive, || {
        let limit: Limit32 = LimitSpec::new(1, 4096, 2).resolution(0).build32().expect("limit");
        let cell = Arc::new(Cell32::new());
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let (a, b, c) = race3(
            move || a.check(&limit, NOW, 1),
            move || b.check(&limit, NOW, 1),
            move || c.check(&limit, NOW, 1),
        );
        assert_eq!(passed(&[a, b, c]), 2, "not exactly the burst");
        assert_eq!(cell.word() as u64, NOW + 2 * 4096, "the word does not hold what was charged");
    });
}

/// A call that loses every swap to a rival is contended, and the word holds only what the rival charged. Contended is
/// reached, and only after [`MAX_LOST`] lost swaps. Does not show: several rivals.
#[test]
fn contended_call_charges_nothing() {
    static REACHED: AtomicBool = AtomicBool::new(false);
    explore("cell: contended", Bound::Exhaustive, || {
        let limit = limit(64);
        let cell = Arc::new(Cell::new());
        let (a, b) = (cell.clone(), cell.clone());
        let (decision, rival) = race(
            move || a.check_ex(&limit, NOW, 32, 0),
            move || {
                for _ in 0..MAX_LOST {
                    assert!(b.check(&limit, NOW, 1).passes());
                }
                MAX_LOST as u64
            },
        );
        let own = match decision.outcome() {
            Outcome::Conforming => 32,
            Outcome::Contended => {
                REACHED.store(true, Plain::Relaxed);
                assert_eq!(decision.permit, Permit::NONE, "a permit for nothing");
                0
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(debt(&cell), (own + rival) * T, "a charge was lost or made up");
    });
    assert!(REACHED.load(Plain::Relaxed), "the model never reached the bound");
}

/// A change of the limit that loses every swap to a rival says that it was not made, and it was not. Does not show:
/// several rivals.
#[test]
fn contended_change_says_that_it_was_not_made() {
    static REACHED: AtomicBool = AtomicBool::new(false);
    explore("cell: contended change", Bound::Exhaustive, || {
        let (old, slower) = (limit(64), LimitSpec::new(1, 2 * T, 64).resolution(0).build().expect("limit"));
        let cell = Arc::new(Cell::new());
        assert!(cell.check(&old, NOW, 1).passes());
        let (a, b) = (cell.clone(), cell.clone());
        let (made, ()) = race(
            move || a.change(&old, &slower, NOW, Change::KeepUnits).expect("two limits of GCRA"),
            move || (0..MAX_LOST).for_each(|_| assert!(b.check(&old, NOW, 1).passes())),
        );
        // From the change on, the units before it owe twice as long.
        let charged = (1 + MAX_LOST) as u64 * T;
        assert_eq!(made, debt(&cell) > charged, "what it says is not what it did");
        REACHED.fetch_or(!made, Plain::Relaxed);
    });
    assert!(REACHED.load(Plain::Relaxed), "the model never reached the bound");
}

/// Reservations of one cell depart in the order in which they took effect: no two share an emission interval. Does not
/// show: reservations with different clocks.
#[test]
fn reservations_do_not_share_a_departure() {
    explore("cell: reservations", Bound::Exhaustive, || {
        let limit = spec(1).max_delay(4 * T).build().expect("limit");
        let cell = Arc::new(Cell::new());
        let (a, b, c) = (cell.clone(), cell.clone(), cell.clone());
        let reserve = move |cell: Arc<Cell>| {
            let d = cell.reserve(&limit, NOW, 1);
            assert!(d.passes(), "{d:?}");
            d.departure
        };
        let (a, b, c) = race3(move || reserve(a), move || reserve(b), move || reserve(c));
        let mut departures = [a, b, c];
        departures.sort_unstable();
        assert_eq!(departures, [NOW, NOW + T, NOW + 2 * T], "departures collide or leave a gap");
    });
}
