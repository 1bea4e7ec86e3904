//! The rows of direct cells: one word, one key, no fixture. Their loop, [`decide`], serves every direct limiter.
//!
//! The conforming stream starts five units in debt and then pays back exactly what it takes, so the word is live
//! at every decision and every decision stores. The denied stream has spent its burst for years.

use std::hint::black_box;

use tatcell::{limit, Cell, Cell32, ExclusiveCell, Lease, Limit, Limit32};

use crate::suite::{Mix, Suite, DT};

/// Untimed and timed decisions of a visit.
pub const CELL: (u64, u64) = (1 << 10, 1 << 17);
/// One unit each tick step: the stream conforms for ever. (units, period, burst), used for every direct limiter.
pub const STEADY: (u64, u64, u64) = (1, DT, 64);
/// One unit in 2^50 ticks (13 days): once spent, denied for the whole run.
pub const SPENT: (u64, u64, u64) = (1, 1 << 50, 1);
/// The hot key of several threads: four units for each decision of one, and a burst longer than a visit, so that
/// threads whose clocks have drifted apart in a visit still conform.
pub const HOT: (u64, u64, u64) = (4, DT, 1 << 20);
/// Units that a lease takes ahead of it. At a quarter of the rate it asks the cell once in 4096 decisions.
pub const BATCH: u32 = 1 << 14;
/// Denied for the whole run, on a 32-bit clock.
const SPENT32: (u64, u64, u64) = (1, 1 << 27, 1);

/// On lines of its own, so that no row depends on what else the allocator put there, and out of reach of the
/// neighbour-line prefetcher.
#[repr(align(128))]
pub struct Apart<T>(pub T);

/// A row over one cell: makes it, charges `$debt` units at the first instant, then decides in a loop.
macro_rules! row {
    ($cell:ty, $limit:ty, $spec:expr, $debt:expr, $step:expr) => {
        |_| {
            let (units, period, burst) = $spec;
            let limit = <$limit>::new(units, period, burst).expect("a limit");
            let mut pair = Box::new(Apart((<$cell>::new(), limit)));
            let mut now = DT;
            for _ in 0..$debt {
                let (cell, limit) = &mut pair.0;
                let _ = cell.check(limit, now, 1);
            }
            Box::new(move |n| {
                let (cell, limit) = &mut black_box(&mut *pair).0;
                decide(n, &mut now, $step, |now| cell.check(limit, now, 1).passes())
            })
        }
    };
}

pub fn add(suite: &mut Suite) {
    suite.add("cell.conforming", "Cell, conforming", Mix::Pass, CELL, row!(Cell, Limit, STEADY, 5, DT));
    suite.add("cell.denied", "Cell, denied", Mix::Deny, CELL, row!(Cell, Limit, SPENT, 1, DT));
    let text = "Cell, denied, limit known to the compiler";
    suite.add("cell.denied_const", text, Mix::Deny, CELL, |_| {
        static LIMIT: Limit = limit!(1 per SPENT.1, burst SPENT.2);
        let cell = Box::new(Apart(Cell::new()));
        let mut now = DT;
        let _ = cell.0.check(&LIMIT, now, 1);
        Box::new(move |n| {
            let cell = &black_box(&*cell).0;
            decide(n, &mut now, DT, |now| cell.check(&LIMIT, now, 1).passes())
        })
    });
    suite.add(
        "cell.exclusive",
        "ExclusiveCell, conforming",
        Mix::Pass,
        CELL,
        row!(ExclusiveCell, Limit, STEADY, 5, DT),
    );
    suite.add(
        "cell.exclusive_denied",
        "ExclusiveCell, denied",
        Mix::Deny,
        CELL,
        row!(ExclusiveCell, Limit, SPENT, 1, DT),
    );
    suite.add("cell.lease", "Lease of 16384 over a Cell, conforming", Mix::Pass, CELL, |_| {
        let (units, period, burst) = HOT;
        let limit = Limit::new(units, period, burst).expect("a limit");
        let mut all = Box::new(Apart((Lease::with_batch(BATCH), Cell::new(), limit)));
        let mut now = DT;
        Box::new(move |n| {
            let (lease, cell, limit) = &mut black_box(&mut *all).0;
            decide(n, &mut now, DT, |now| lease.check(cell, limit, now, 1).passes())
        })
    });
    suite.add("cell.cell32", "Cell32, conforming", Mix::Pass, CELL, row!(Cell32, Limit32, STEADY, 5, DT));
    // The clock stands still: 2^32 ticks would not last for the run.
    suite.add("cell.cell32_denied", "Cell32, denied", Mix::Deny, CELL, row!(Cell32, Limit32, SPENT32, 1, 0));
}

/// The loop of every direct row, ours and the peers': time advances by `step` before each decision.
#[inline(always)]
pub fn decide(n: u64, clock: &mut u64, step: u64, mut check: impl FnMut(u64) -> bool) -> u64 {
    let (mut passed, mut now) = (0, *clock);
    for _ in 0..n {
        now += step;
        passed += u64::from(check(now));
    }
    *clock = now;
    passed
}
