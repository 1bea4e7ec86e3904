//! Slip: every n-th refusal is flagged for a cheap answer, and the others get none.
//!
//! ```text
//!  Slip   [        refusals so far : 64        ]     0 = fresh; wraps after 2^64 refusals (584 years at 1e9 a second)
//!
//!  n = 3  flagged  -  -  flagged  -  -  flagged ..    the first one, and then every third
//! ```
//!
//! Any number of threads, interrupts and processes may use a slip at once; or one owner, without a locked instruction.
//! A refusal takes its number in one addition, so exactly one of any n consecutive numbers is flagged, on every
//! interleaving. Progress: wait-free. It decides nothing about limits: ask it only after a request was refused.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::sync::{add64, AtomicU64, Ordering};

/// Flags every n-th refusal for a cheap answer, as DNS servers do.
///
/// A server that answers no refused request at all cuts off everybody who shares an address (or a forged one) with an
/// attacker. One cheap answer in n lets honest clients through and gains a forger nothing: a truncated answer (TC=1)
/// that makes a DNS client ask again by TCP, or a short 429 instead of a closed connection. `n` 0 flags none, 1 every
/// refusal. 8 bytes; all-zero memory is the same as [`new`](Slip::new).
///
/// One slip for all threads is exact over all of them; one a thread shares no cache line, and is exact for that thread.
///
/// ```
/// use tatcell::Slip;
/// static SLIP: Slip = Slip::new();
/// let answers = [0; 5].map(|_| if SLIP.check(2) { "TC=1" } else { "-" });
/// assert_eq!(answers, ["TC=1", "-", "TC=1", "-", "TC=1"]);
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Slip {
    word: AtomicU64,
}

impl Slip {
    /// Makes a counter at 0: the first refusal is flagged.
    #[cfg(not(tatcell_loom))]
    pub const fn new() -> Slip {
        Slip { word: AtomicU64::new(0) }
    }

    /// Makes a counter at 0 (not `const` under the model checker).
    #[cfg(tatcell_loom)]
    pub fn new() -> Slip {
        Slip { word: AtomicU64::new(0) }
    }

    /// Counts one refusal and returns whether it is flagged.
    ///
    /// Exactly one of any `n` consecutive refusals is, as long as `n` stays the same. `n` 0 flags and counts none.
    ///
    /// # Concurrency
    /// Any number of callers. Cost: O(1), one atomic addition and one division, for refusals only.
    #[inline]
    pub fn check(&self, n: u32) -> bool {
        n != 0 && flagged(add64(&self.word, 1), n)
    }

    /// Does the same as [`check`](Slip::check) for the only owner, without an atomic instruction.
    #[inline]
    pub fn check_exclusive(&mut self, n: u32) -> bool {
        if n == 0 {
            return false;
        }
        // ORDERING: Relaxed; the only owner's word, here and in the store.
        let count = self.word.load(Ordering::Relaxed);
        // ORDERING: Relaxed; as the load.
        self.word.store(count.wrapping_add(1), Ordering::Relaxed);
        flagged(count, n)
    }

    /// Returns how many refusals were counted.
    ///
    /// # Concurrency
    /// Any number of callers; only reads.
    #[inline]
    pub fn refusals(&self) -> u64 {
        // ORDERING: Relaxed; single word, value only.
        self.word.load(Ordering::Relaxed)
    }
}

impl Default for Slip {
    fn default() -> Slip {
        Slip::new()
    }
}

/// Returns whether the refusal of this number, counted from 0, is flagged.
#[inline(always)]
fn flagged(number: u64, n: u32) -> bool {
    matches!(number.checked_rem(n.into()), Some(0))
}
