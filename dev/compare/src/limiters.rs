//! The limiters: every algorithm, each with a limit of [`UNITS`](super::streams::UNITS) a second. One line each.

use tatcell::{Cell, Limit, LimitSpec, SlidingLog};

use crate::streams::{SECOND, UNITS};

/// Decides a unit request at an instant.
pub type Decide = Box<dyn FnMut(u64) -> bool>;

/// An algorithm under one limit.
pub struct Limiter {
    pub name: &'static str,
    /// Units that a client may ever get within one second, as documented.
    pub bound: u64,
    /// Bytes of one key's state.
    pub bytes: usize,
    /// A fresh key.
    pub fresh: fn() -> Decide,
}

/// A cell under a limit that carries its algorithm.
fn cell(limit: Limit) -> Decide {
    let cell = Cell::new();
    Box::new(move |now| cell.check(&limit, now, 1).passes())
}

const fn of(name: &'static str, bound: u64, fresh: fn() -> Decide) -> Limiter {
    Limiter { name, bound, bytes: size_of::<Cell>(), fresh }
}

fn made(spec: LimitSpec) -> Decide {
    cell(spec.build().expect("a limit of the comparison"))
}

/// A stamp for each unit.
fn log() -> Decide {
    let stamps: Vec<Cell> = (0..UNITS).map(|_| Cell::new()).collect();
    Box::new(move |now| {
        let log = SlidingLog::new(&stamps, SECOND).expect("a log of the comparison");
        log.check(now).passes()
    })
}

/// The half-life whose limit of [`UNITS`] sustains that many a second: ln 2 seconds.
const HALF_LIFE: u64 = 693_147_181;

/// Every limiter, in the order of the table.
pub const ALL: &[Limiter] = &[
    of("gcra, burst 100", 2 * UNITS, || made(LimitSpec::new(UNITS, SECOND, UNITS))),
    of("gcra, burst 10", UNITS + 10, || made(LimitSpec::new(UNITS, SECOND, 10))),
    of("fixed window", 2 * UNITS, || made(LimitSpec::fixed_window(UNITS, SECOND))),
    of("fixed window, aligned", 2 * UNITS, || made(LimitSpec::fixed_window(UNITS, SECOND).aligned(0))),
    of("sliding counter", 2 * UNITS - 1, || made(LimitSpec::sliding_counter(UNITS, SECOND))),
    of("quota-linear", 2 * UNITS, || made(LimitSpec::quota_linear(UNITS, SECOND))),
    of("decay", 2 * UNITS, || made(LimitSpec::decay(UNITS, HALF_LIFE))),
    Limiter { name: "sliding log", bound: UNITS, bytes: UNITS as usize * size_of::<Cell>(), fresh: log },
];
