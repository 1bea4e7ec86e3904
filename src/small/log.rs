//! Log lines under a small limit: each is written, or counted and reported by the next written one.
//!
//! ```text
//!  SmallLog   [ TAT : 32 ][ left out : 32 ]     8 bytes, all zero = fresh; one for each place that logs
//! ```
//!
//! Main loop, interrupts and tasks may use it at once, like a [`Cell32`]. A line that passes takes the whole count; any
//! other line adds 1 to it. So in every interleaving each line is written, or reported once by a later line, or still
//! counted ([`SmallLog::left_out`]). The count wraps at 2^32 lines.
//!
//! Unlike [`LogGate`](crate::LogGate) it has a burst and 32-bit ticks: it masks no 64-bit word.
#![forbid(unsafe_code)]

use super::limit::{fresh, SmallLimit32};
use crate::cell::Cell32;
use crate::sync::{add32, step32, take32, AtomicU32, Ordering};

/// Lets the log lines of one place pass at a rate, with a burst, and counts the others.
///
/// ```
/// use tatcell::{SmallLimit32, SmallLog};
/// // Two lines a second at most, three at once; ticks are milliseconds.
/// const LIMIT: SmallLimit32 = match SmallLimit32::new(2, 1_000, 3) {
///     Ok(limit) => limit,
///     Err(_) => panic!("cannot be represented"),
/// };
/// static QUEUE_FULL: SmallLog = SmallLog::new();
/// let written: Vec<Option<u32>> = (0..5).map(|_| QUEUE_FULL.check(&LIMIT, 0)).collect();
/// assert_eq!(written, [Some(0), Some(0), Some(0), None, None]);
/// assert_eq!(QUEUE_FULL.check(&LIMIT, 500), Some(2)); // "queue full (2 more were not logged)"
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct SmallLog {
    cell: Cell32,
    left_out: AtomicU32,
}

impl SmallLog {
    /// Makes a fresh log: the full burst may be written. All-zero memory is the same.
    #[cfg(not(tatcell_loom))]
    pub const fn new() -> SmallLog {
        SmallLog { cell: Cell32::new(), left_out: AtomicU32::new(0) }
    }

    /// Makes a fresh log (not `const` under the model checker).
    #[cfg(tatcell_loom)]
    pub fn new() -> SmallLog {
        SmallLog { cell: Cell32::new(), left_out: AtomicU32::new(0) }
    }

    /// Decides one line. `Some(n)` means: write it; `n` lines before it were left out. `None` means: leave it out.
    ///
    /// # Concurrency
    /// Any context may call it. It costs a check of cost 1, and one swap or addition.
    #[inline]
    pub fn check(&self, limit: &SmallLimit32, now: u32) -> Option<u32> {
        // This is the check of cost 1, but not a call of it: for size the compiler would merge the common part into one
        // function, and `tatcell_small32_check_unit` would take 10 bytes and 5 instructions more on a Cortex-M0.
        let now_q = limit.now_q(now);
        let passes = step32(&self.cell.word, |word| limit.take(word, now_q, || fresh(&limit.t)));
        if passes.is_some_and(|answer| answer.0 == 0) {
            Some(take32(&self.left_out))
        } else {
            add32(&self.left_out, 1);
            None
        }
    }

    /// Returns the number of left-out lines that no line has reported yet.
    #[inline]
    pub fn left_out(&self) -> u32 {
        // ORDERING: Relaxed; single word, value only.
        self.left_out.load(Ordering::Relaxed)
    }
}

impl Default for SmallLog {
    fn default() -> SmallLog {
        SmallLog::new()
    }
}
