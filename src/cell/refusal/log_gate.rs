//! Log lines that are counted instead of written: one line an interval is written, and says how many were left out.
//!
//! ```text
//!  LogGate   63                  32 31                   0
//!            [     next : 32      ][    left out : 32     ]     drawn, with its wrap, in `algorithms::log_gate`
//! ```
//!
//! Any number of threads, interrupts and processes may use a gate at once. A line that is written takes the count in
//! the same compare-and-swap that sets `next`; a line that is left out is one addition. So each line is either written
//! or counted, and exactly one written line (or [`LogGate::take`]) reports each count, on every interleaving.
//!
//! Progress: a line that is left out is a load and an addition, without a loop. A line that might be written swaps;
//! after [`MAX_LOST`](crate::MAX_LOST) lost swaps, each lost to a rival that wrote or counted, it is counted. No answer
//! is contended: at worst the next caller writes a line instead.
//!
//! Saturation: a count of 2^30 means that many or more.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::algorithms::log_gate::{left_out, told, Pace, Step, MOST};
use crate::sync::{add64, update64, AtomicU64, Ordering};

/// Says what to do with one log line.
///
/// ```
/// use tatcell::{LogGate, LogLine};
/// let gate = LogGate::new();
/// let lines = [0, 1, 2, 5_000].map(|now| gate.line(now, 1_000)); // ticks are milliseconds
/// let (first, last) = (LogLine::Write { left_out: 0 }, LogLine::Write { left_out: 2 });
/// assert_eq!(lines, [first, LogLine::LeaveOut, LogLine::LeaveOut, last]);
/// ```
#[must_use = "a line that is neither written nor left out is no answer"]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLine {
    /// Write it, and if `left_out` is not 0, say that this many lines before it were not written.
    Write {
        /// Lines left out since the last written one; [`LogGate::MOST_LEFT_OUT`] means that many or more.
        left_out: u32,
    },
    /// Do not write it: it is counted, and the next written line reports it.
    LeaveOut,
}

/// Lets one log line an interval pass and counts the others, so that a flood of refusals cannot flood the log.
///
/// An operator sees one line a second that says "and 41207 more were not logged". 8 bytes; all-zero memory is the same
/// as [`new`](LogGate::new). Use one gate with one interval: another interval reads the gate in another scale, which
/// makes one line early, or late by two intervals.
///
/// For many keys make an array of gates and choose one by a hash of the key, which exists also for a request that a
/// full table does not track. Two keys of one gate have their lines merged, and nothing worse. A hash that strangers
/// cannot predict ([`Table::hash`](crate::Table::hash)) keeps them from choosing whose line they merge with.
///
/// ```
/// use tatcell::{LogGate, LogLine};
///
/// const SECOND: u64 = 1_000_000_000; // ticks are nanoseconds
/// static GATES: [LogGate; 256] = [const { LogGate::new() }; 256];
/// let gate = &GATES[0xc0_00_02_01 % GATES.len()]; // by a hash of the client's address
///
/// assert_eq!(gate.line(0, SECOND), LogLine::Write { left_out: 0 });
/// for _ in 0..41_207 {
///     assert_eq!(gate.line(SECOND / 2, SECOND), LogLine::LeaveOut);
/// }
/// match gate.line(3 * SECOND, SECOND) {
///     LogLine::Write { left_out: 0 } => println!("192.0.2.1 refused"),
///     LogLine::Write { left_out } => println!("192.0.2.1 refused, and {left_out} more were not logged"),
///     LogLine::LeaveOut => {}
/// }
/// # assert_eq!(gate.left_out(), 0);
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct LogGate {
    word: AtomicU64,
}

impl LogGate {
    /// The largest count of lines left out: it means that many or more.
    pub const MOST_LEFT_OUT: u32 = MOST;

    /// Makes a fresh gate, which lets the first line pass.
    #[cfg(not(tatcell_loom))]
    pub const fn new() -> LogGate {
        LogGate { word: AtomicU64::new(0) }
    }

    /// Makes a fresh gate (not `const` under the model checker).
    #[cfg(tatcell_loom)]
    pub fn new() -> LogGate {
        LogGate { word: AtomicU64::new(0) }
    }

    /// The word, for models that change it in a weaker way.
    #[cfg(all(tatcell_loom, test))]
    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.word
    }

    /// Decides one line: written, or counted.
    ///
    /// `now` and `interval` are ticks of the caller's clock. If clocks agree, written lines are at least one interval
    /// apart, and at most 0.3 % more; intervals below 2048 ticks are exact. An interval of 0 writes every line. A
    /// reading of the clock that is older than another by more than one interval writes a line too many.
    ///
    /// # Concurrency
    /// Any number of callers; each line is written or counted exactly once. Cost: O(1), no division; a load and an
    /// atomic addition if it is left out, one compare-and-swap if it is written.
    #[inline]
    pub fn line(&self, now: u64, interval: u64) -> LogLine {
        let pace = Pace::of(interval);
        let answer = update64(&self.word, |word| match pace.step(word, now) {
            Step::Write { left_out, word } => (LogLine::Write { left_out }, Some(word)),
            Step::LeaveOut => (LogLine::LeaveOut, None),
        });
        match answer {
            Some(LogLine::Write { left_out }) => LogLine::Write { left_out },
            // Left out; or every swap was lost to rivals that wrote their lines instead of this one.
            Some(LogLine::LeaveOut) | None => {
                self.count();
                LogLine::LeaveOut
            }
        }
    }

    /// Decides one line, like [`line`](LogGate::line), but takes the interval first.
    #[deprecated(since = "0.4.0", note = "use `line`, which takes the clock first, as every other call does")]
    #[inline]
    pub fn check(&self, interval: u64, now: u64) -> LogLine {
        self.line(now, interval)
    }

    /// Counts one line. Between the load and the addition the word may have become that of a later line, whose
    /// successor then reports the count. Threads that add at once exceed `MOST` by no more than their number, and it
    /// would take 3 * 2^30 of them to reach `next`.
    #[inline(always)]
    fn count(&self) {
        if self.left_out() < MOST {
            add64(&self.word, 1);
        }
    }

    /// Returns how many lines are counted and not yet reported.
    ///
    /// # Concurrency
    /// Any number of callers; only reads.
    #[inline]
    pub fn left_out(&self) -> u32 {
        // ORDERING: Relaxed; single word, value only.
        left_out(self.word.load(Ordering::Relaxed))
    }

    /// Takes the count of lines left out, for a line about them that a timer or the end of the program writes. The time
    /// of the next line stays as it is.
    ///
    /// Returns `None` when contended: nothing was taken, try again.
    ///
    /// # Concurrency
    /// Any number of callers; each count is taken or reported exactly once. Cost: one compare-and-swap, or one load if
    /// the count is 0.
    #[inline]
    pub fn take(&self) -> Option<u32> {
        update64(&self.word, |word| {
            let count = left_out(word);
            (count, if count == 0 { None } else { Some(told(word)) })
        })
    }
}

impl Default for LogGate {
    fn default() -> LogGate {
        LogGate::new()
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    /// Threads that add at once may exceed it; one that sees it does not add.
    #[test]
    fn a_count_at_its_most_stays_there() {
        let next = 99 << 32;
        let gate = LogGate { word: AtomicU64::new(next | u64::from(MOST - 2)) };
        for count in [MOST - 1, MOST, MOST, MOST] {
            assert_eq!(gate.line(98, 50), LogLine::LeaveOut);
            // ORDERING: Relaxed; one thread.
            assert_eq!(gate.word.load(Ordering::Relaxed), next | u64::from(count));
        }
        assert_eq!((gate.left_out(), gate.take(), gate.left_out()), (MOST, Some(MOST), 0));
    }
}
