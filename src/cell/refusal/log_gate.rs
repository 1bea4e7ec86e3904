//! Log lines that are counted instead of written: one a second (or any interval) a key, and how many were left out.
//!
//! ```text
//!  LogGate   63                  32 31                   0
//!            [     next : 32      ][    left out : 32     ]     drawn, with its wrap, in `algorithms::log`
//! ```
//!
//! Who may touch it: any number of threads, interrupts and processes at once. A line that is written takes the count in
//! the same compare-and-swap that sets `next`; a line that is left out is one addition. So each line is either written
//! or counted, and each count is told by exactly one written line (or by [`LogGate::take`]), on every interleaving.
//!
//! Progress: a line that is left out is a load and an addition, without a loop. A line that might be written swaps;
//! after [`MAX_LOST`](crate::MAX_LOST) lost swaps, each lost to a rival that wrote or counted, it is counted. There is
//! no contended answer: the worst is a line that the next caller writes instead.
//!
//! Saturation: a count of 2^30 means so many or more.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::algorithms::log_gate::{left_out, told, Pace, Step, MOST};
use crate::sync::{add64, update64, AtomicU64, Ordering};

/// Says what becomes of one log line.
#[must_use = "a line that is neither written nor left out is no answer"]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLine {
    /// Write it, and if this is not 0, that so many more before it were not written.
    Write {
        /// Lines left out since the last one that was written; [`LogGate::MOST_LEFT_OUT`] means so many or more.
        left_out: u32,
    },
    /// Do not write it: it is counted, and the next line that is written tells of it.
    LeaveOut,
}

/// Lets one log line an interval pass and counts the others, so that a flood of refusals cannot flood the log.
///
/// What an operator sees is one line a second, and in it "and 41207 more were not logged". 8 bytes; all-zero memory is
/// the same as [`new`](LogGate::new). Use one gate with one interval: another one reads it in another scale, which
/// makes one line early, or late by two intervals.
///
/// For many keys make an array of gates and choose one by a hash of the key, which also a request has that a full table
/// does not track: two keys of one gate have their lines merged, and nothing worse. A hash that strangers cannot
/// predict ([`Table::hash`](crate::Table::hash)) keeps them from choosing whose line they merge with.
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
    /// The largest count of lines left out: it means so many or more.
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

    /// What the models weaken.
    #[cfg(all(tatcell_loom, test))]
    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.word
    }

    /// Decides one line: written, or counted.
    ///
    /// `now` and `interval` are ticks of the caller's clock. Lines that are written by clocks that agree are at least
    /// one interval apart, and at most 0.3 % more; intervals below 2048 ticks are exact. An interval of 0 writes every
    /// line. A reading of the clock that is older than another by more than one interval writes a line too many.
    ///
    /// # Concurrency
    /// Any number of callers; each line is written or counted exactly once. Cost: O(1), no division; a load and an
    /// atomic addition where it is left out, one compare-and-swap where it is written.
    #[inline]
    pub fn line(&self, now: u64, interval: u64) -> LogLine {
        let pace = Pace::of(interval);
        let answer = update64(&self.word, |word| match pace.step(word, now) {
            Step::Write { left_out, word } => (LogLine::Write { left_out }, Some(word)),
            Step::LeaveOut => (LogLine::LeaveOut, None),
        });
        match answer {
            Some(LogLine::Write { left_out }) => LogLine::Write { left_out },
            // Left out; or every swap was lost, and then rivals wrote their lines instead of this one.
            Some(LogLine::LeaveOut) | None => {
                self.count();
                LogLine::LeaveOut
            }
        }
    }

    /// As [`line`](LogGate::line), with the interval before the clock.
    #[deprecated(since = "0.4.0", note = "use `line`, which takes the clock first, as every other call does")]
    #[inline]
    pub fn check(&self, interval: u64, now: u64) -> LogLine {
        self.line(now, interval)
    }

    /// Counts one line. Between the look and the addition the word may have become that of a later line: then that
    /// one's successor tells of it. Threads that add at once pass `MOST` by no more than their number, and 3 * 2^30
    /// of them would be needed to reach `next`.
    #[inline(always)]
    fn count(&self) {
        if self.left_out() < MOST {
            add64(&self.word, 1);
        }
    }

    /// Tells how many lines are counted and not yet told.
    ///
    /// # Concurrency
    /// Any number of callers; reads only.
    #[inline]
    pub fn left_out(&self) -> u32 {
        // ORDERING: Relaxed; single word, value only.
        left_out(self.word.load(Ordering::Relaxed))
    }

    /// Takes the count of lines left out, for a line that a timer or the end of the program writes about them; when
    /// the next line may be written stays as it is.
    ///
    /// `None`: contended, nothing was taken; ask again.
    ///
    /// # Concurrency
    /// Any number of callers; each count is taken or told exactly once. Cost: one compare-and-swap, or one load where
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

    /// Threads that add at once may pass it; one that sees it does not add.
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
