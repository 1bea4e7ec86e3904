//! Cells: every operation on a few keys with very different limits, through wraps of clock and word.

use crate::digest::Trace;
use tatcell::{Cell, Cell32, Change, ExclusiveCell, Limit, Limit32, LimitSpec, Permit};

const KEYS: usize = 6;
const EVENTS: u64 = 24_000;

/// Each with the limit that it changes to and back; a pair has one resolution.
const SPECS: [[LimitSpec; 2]; KEYS] = [
    // 10 a second in nanoseconds, all allowances.
    [
        everything(LimitSpec::new(10, 1_000_000_000, 20).resolution(2)),
        everything(LimitSpec::new(7, 1_000_000_000, 5).resolution(2)),
    ],
    // Bytes at 1 Gbit/s: 8 ns each.
    pair(LimitSpec::new(125_000_000, 1_000_000_000, 96_000)),
    // One a day.
    pair(LimitSpec::new(1, 86_400_000_000_000, 3)),
    // A clock that is coarser than its tick.
    pair(LimitSpec::new(3, 1 << 40, 9).skew(1 << 44).resolution(-12)),
    pair(LimitSpec::new(1_000, 1_000_000_000, 100).penalty(2).resolution(4)),
    [
        LimitSpec::new(1, 300, 7).heal().skew(1 << 30).resolution(9),
        LimitSpec::new(1, 300, 7).shadow().skew(1 << 30).resolution(9),
    ],
];

/// A 16-bit timer at 1 MHz, a millisecond tick, and more: what a 32-bit cell is for.
const NARROW: [[LimitSpec; 2]; KEYS] = [
    [
        everything(LimitSpec::new(1, 100_000, 20).resolution(0)),
        everything(LimitSpec::new(1, 70_000, 5).resolution(0)),
    ],
    pair(LimitSpec::new(1, 1_000, 1_000)),
    pair(LimitSpec::new(1, 1, 250)),
    pair(LimitSpec::new(3, 1_000_000, 9).resolution(3)),
    pair(LimitSpec::new(1, 5_000, 100).penalty(2).resolution(0)),
    pair(LimitSpec::new(64, 1_000, 128).shadow().resolution(5)),
];

const fn pair(spec: LimitSpec) -> [LimitSpec; 2] {
    [spec, spec.epoch(1)]
}

const fn everything(spec: LimitSpec) -> LimitSpec {
    spec.soft(4).max_room(3).max_delay(300_000).max_debt(6)
}

/// Clocks of 64-bit cells use all of a u64; those of 32-bit cells are a 32-bit timer, which wraps.
macro_rules! clock_mask {
    (Cell32) => {
        u32::MAX as u64
    };
    ($other:ident) => {
        u64::MAX
    };
}

macro_rules! section {
    ($function:ident, $name:literal, $cell:ident, $limit:ident, $build:ident, $specs:ident, $bits:literal, $start:expr) => {
        pub fn $function(flip: Option<u64>) -> Trace {
            const LIMITS: [[$limit; 2]; KEYS] = {
                let mut limits = [[$limit::UNLIMITED; 2]; KEYS];
                let mut i = 0;
                while i < 2 * KEYS {
                    limits[i / 2][i % 2] = match $specs[i / 2][i % 2].$build() {
                        Ok(limit) => limit,
                        Err(_) => panic!("a limit of the trace is not valid"),
                    };
                    i += 1;
                }
                limits
            };
            // An exclusive cell needs `mut`, a shared one does not.
            #[allow(unused_mut)]
            let mut cells = [const { $cell::new() }; KEYS];
            let mut chosen = [0usize; KEYS];
            let mut permits = [Permit::NONE; KEYS];
            let mut t = Trace::new($name, EVENTS, flip);
            let mut now: u64 = $start;
            for _ in 0..EVENTS {
                now = t.step(now, $bits) & clock_mask!($cell);
                let r = t.random();
                let key = ((r >> 8) % KEYS as u64) as usize;
                let (cell, limit) = (&mut cells[key], &LIMITS[key][chosen[key]]);
                let cost = u64::from(t.cost(limit.burst()));
                match r % 32 {
                    0..=3 => {
                        let d = cell.check_ex(limit, now, cost, (r >> 16) % 5);
                        t.decision(&d);
                        permits[key] = d.permit;
                    }
                    4 => {
                        let d = cell.charge(limit, now, cost);
                        t.decision(&d);
                        permits[key] = d.permit;
                    }
                    5..=6 => {
                        let left = cell.refund(limit, now, &permits[key]);
                        t.put(left.unwrap_or(u64::MAX));
                        permits[key] = Permit::NONE;
                    }
                    7..=9 => {
                        let d = cell.reserve(limit, now, cost);
                        t.decision(&d);
                        permits[key] = d.permit;
                    }
                    10 => t.decision(&cell.peek(limit, now, cost)),
                    11 if r >> 60 == 0 => cell.reset(),
                    12 if r >> 62 == 0 => {
                        let how =
                            [Change::KeepTime, Change::KeepUnits, Change::Reset][((r >> 32) % 3) as usize];
                        chosen[key] ^= 1;
                        let done = cell.change(limit, &LIMITS[key][chosen[key]], now, how);
                        t.put(done.is_ok_and(|done| done) as u64);
                    }
                    _ => t.outcome(cell.check(limit, now, cost)),
                }
                t.put(cells[key].word() as u64);
                t.next();
            }
            t
        }
    };
}

section!(shared, "cell", Cell, Limit, build, SPECS, 36, u64::MAX - (1 << 44));
section!(exclusive, "cell-exclusive", ExclusiveCell, Limit, build, SPECS, 36, u64::MAX - (1 << 44));
section!(narrow, "cell32", Cell32, Limit32, build32, NARROW, 19, u32::MAX as u64 - (1 << 25));
