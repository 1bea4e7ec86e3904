//! A log gate that knows whose lines it counts.
//!
//! ```text
//!  KeyLogGate   [ next : 24 ][ tag : 14 ][ left out : 26 ]     drawn, with its wrap, in `algorithms::key_log`
//!
//!  left out     add 1; if the word before had another key's tag, clear the tag: the lines are of several keys
//!  first one    of another key than the written line: one swap takes the tag
//!  written      one swap takes count and tag, and leaves this key's tag
//! ```
//!
//! Invariants, on every interleaving: each line is written, or reported exactly once; a gate that one key uses has that
//! key's tag; once the calls have returned, a tag stands for all lines of the count. Between the addition and the
//! clearing of another thread, a written line or a [`KeyLogGate::take`] may report that thread's one line under the tag
//! of the others.
//!
//! Progress: as [`LogGate`](super::log_gate::LogGate). A line whose swaps are all lost to rivals is counted by one
//! addition.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::algorithms::key_log::{is_of_another, left_out, step, tag_of, told, Step, MOST, OF_SEVERAL};
use crate::algorithms::log_gate::Pace;
use crate::sync::{add64, and64, update64, AtomicU64, Ordering};

/// Says how many log lines were left out, and whose they were.
///
/// ```
/// use tatcell::KeyLogGate;
/// let (gate, alice, bob) = (KeyLogGate::new(), 0x5eed_0000_0000_0001, 0x5eed_0000_0000_0101);
/// assert!(gate.line(0, 1_000, alice).is_some());
/// assert!(gate.line(1, 1_000, alice).is_none() && gate.line(2, 1_000, bob).is_none());
/// let rest = gate.take().unwrap();
/// assert_eq!((rest.count, rest.tag), (2, 0)); // one line of each: no tag stands for both
/// ```
#[must_use = "a count that was taken is reported nowhere else"]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Lines left out; [`KeyLogGate::MOST_LEFT_OUT`] means that many or more.
    pub count: u32,
    /// The [tag](KeyLogGate::tag) of the key of all of them; 0 if they are of several keys, or if there are none.
    pub tag: u32,
}

impl LeftOut {
    /// Returns whether all lines are of this key, or, with a chance of 2^-14, of another one that has its tag.
    pub const fn is_of(&self, hash: u64) -> bool {
        self.tag == tag_of(hash)
    }
}

/// Lets one log line an interval pass and counts the others, like [`LogGate`](crate::LogGate), and knows the key of the
/// lines that it counts. So a program can say of whom it left out 437 lines: in the next line, and when it ends.
///
/// 8 bytes; all-zero memory is the same as [`new`](KeyLogGate::new). Make an array of gates and choose one by a hash of
/// the key. The gate keeps a tag of 14 bits of the hash, not the key: keep the name of the last key next to each gate,
/// or compare the tags of the keys that you know. Two keys have equal tags with a chance of 2^-14. Use one gate with
/// one interval.
///
/// ```
/// use tatcell::{KeyLogGate, LeftOut};
///
/// const SECOND: u64 = 1_000_000_000; // ticks are nanoseconds
/// static GATE: KeyLogGate = KeyLogGate::new();
/// let (mallory, bob) = (0x5eed_0000_0000_0001, 0x5eed_0000_0000_0101); // from Table::hash
///
/// assert_eq!(GATE.line(0, SECOND, bob), Some(LeftOut::default())); // write it
/// for _ in 0..437 {
///     assert_eq!(GATE.line(1, SECOND, mallory), None); // leave it out
/// }
/// let rest = GATE.take().unwrap_or_default(); // at the end of the program
/// assert_eq!((rest.count, rest.is_of(mallory), rest.is_of(bob)), (437, true, false));
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct KeyLogGate {
    word: AtomicU64,
}

/// How a line was decided.
enum Done {
    Written(u64),
    Counted,
    ToCount,
}

impl KeyLogGate {
    /// The largest count of lines left out: it means that many or more.
    pub const MOST_LEFT_OUT: u32 = MOST;

    /// Makes a fresh gate, which lets the first line pass.
    #[cfg(not(tatcell_loom))]
    pub const fn new() -> KeyLogGate {
        KeyLogGate { word: AtomicU64::new(0) }
    }

    /// Makes a fresh gate (not `const` under the model checker).
    #[cfg(tatcell_loom)]
    pub fn new() -> KeyLogGate {
        KeyLogGate { word: AtomicU64::new(0) }
    }

    /// The word, for models that change it in a weaker way.
    #[cfg(all(tatcell_loom, test))]
    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.word
    }

    /// Returns the tag of the key with this hash: 1 to 16383.
    pub const fn tag(hash: u64) -> u32 {
        tag_of(hash)
    }

    /// Decides one line about the key with this hash. `Some` means: write it, and say what was left out before it.
    /// `None` means: leave it out; it is counted.
    ///
    /// `now` and `interval` are ticks of the caller's clock, with the same effect as for
    /// [`LogGate::line`](crate::LogGate::line). A gate that was unused for 2^13 intervals or more may, with a chance of
    /// 2^-12, leave out lines for two more intervals.
    ///
    /// # Concurrency
    /// Any number of callers; each line is written or counted exactly once. Cost: O(1), no division; a load and an
    /// atomic addition if it is left out, one compare-and-swap if it is written or if its key is another one than that
    /// of the lines before it.
    #[inline]
    #[must_use = "a line that is neither written nor left out is no answer"]
    pub fn line(&self, now: u64, interval: u64, hash: u64) -> Option<LeftOut> {
        let (pace, tag) = (Pace::of(interval), tag_of(hash));
        let done = update64(&self.word, |word| match step(pace, word, now, tag) {
            Step::Write { word: next } => (Done::Written(word), Some(next)),
            Step::First { word: next } => (Done::Counted, Some(next)),
            Step::LeaveOut => (Done::ToCount, None),
        });
        match done {
            Some(Done::Written(before)) => Some(reported(before)),
            Some(Done::Counted) => None,
            // Every swap may have been lost to rivals that wrote or counted their lines instead of this one.
            Some(Done::ToCount) | None => {
                self.count(tag);
                None
            }
        }
    }

    /// Counts one line. Between the load and the addition the word may have become that of other lines: the word that
    /// the addition found tells whose.
    #[inline(always)]
    fn count(&self, tag: u32) {
        // ORDERING: Relaxed; single word, value only.
        let seen = self.word.load(Ordering::Relaxed);
        let found = if left_out(seen).0 < MOST { add64(&self.word, 1) } else { seen };
        if is_of_another(found, tag) {
            and64(&self.word, OF_SEVERAL);
        }
    }

    /// Returns how many lines are counted and not yet reported, and whose.
    ///
    /// # Concurrency
    /// Any number of callers; only reads.
    #[inline]
    pub fn left_out(&self) -> LeftOut {
        // ORDERING: Relaxed; single word, value only.
        reported(self.word.load(Ordering::Relaxed))
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
    pub fn take(&self) -> Option<LeftOut> {
        update64(&self.word, |word| {
            let left_out = reported(word);
            (left_out, if left_out.count == 0 { None } else { Some(told(word)) })
        })
    }
}

impl Default for KeyLogGate {
    fn default() -> KeyLogGate {
        KeyLogGate::new()
    }
}

#[inline(always)]
fn reported(word: u64) -> LeftOut {
    let (count, tag) = left_out(word);
    LeftOut { count, tag }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    /// A line that is not added still says that the lines are of several keys.
    #[test]
    fn a_count_at_its_most_stays_there_and_forgets_its_key() {
        let (a, b) = (1, 2);
        let gate = KeyLogGate::new();
        assert_eq!(gate.line(10, 50, a), Some(LeftOut::default()));
        add64(&gate.word, u64::from(MOST) - 1);
        for _ in 0..3 {
            assert_eq!(gate.line(11, 50, a), None);
            assert_eq!(gate.left_out(), LeftOut { count: MOST, tag: tag_of(a) });
        }
        assert_eq!(gate.line(11, 50, b), None);
        assert_eq!(gate.take(), Some(LeftOut { count: MOST, tag: 0 }));
        assert_eq!(gate.left_out(), LeftOut::default());
    }
}
