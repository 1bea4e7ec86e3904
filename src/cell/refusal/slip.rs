//! Slip: every n-th refusal is flagged for a cheap answer, the others get none.
//!
//! ```text
//!  Slip   [        refusals so far : 64        ]     0 = fresh; wraps after 2^64 refusals (584 years at 1e9 a second)
//!
//!  n = 3  flagged  -  -  flagged  -  -  flagged ..    the first one, and then every third
//! ```
//!
//! Who may touch it: any number of threads, interrupts and processes at once; or one owner, without a locked
//! instruction. A refusal takes its number in one addition, so of any n consecutive numbers exactly one is flagged, on
//! every interleaving. Progress: wait-free. It decides nothing about limits: ask it only once a request was refused.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::sync::{add64, AtomicU64, Ordering};

/// Flags every n-th refusal for a cheap answer, as DNS servers do.
///
/// A server that answers no refused request at all cuts off whoever shares an address (or a forged one) with an
/// attacker. One cheap answer in n lets honest clients through and is no gain for a forger: a truncated answer (TC=1)
/// that makes a DNS client ask again by TCP, a short 429 instead of a closed connection. `n` 0 flags none, 1 every
/// refusal. 8 bytes; all-zero memory is the same as [`new`](Slip::new).
///
/// One for all threads is exact over all of them; one for each thread costs no shared line, and is exact for each.
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

    /// Counts one refusal and says whether it is flagged.
    ///
    /// Of any `n` consecutive refusals exactly one is, as long as `n` stays the same. `n` 0: none, and none is counted.
    ///
    /// # Concurrency
    /// Any number of callers. Cost: O(1), one atomic addition and one division, of refusals alone.
    #[inline]
    pub fn check(&self, n: u32) -> bool {
        n != 0 && flagged(add64(&self.word, 1), n)
    }

    /// As [`check`](Slip::check) for the only owner: no atomic instruction.
    #[inline]
    pub fn check_exclusive(&mut self, n: u32) -> bool {
        if n == 0 {
            return false;
        }
        // ORDERING: Relaxed; the one owner's own word, as is the store.
        let count = self.word.load(Ordering::Relaxed);
        // ORDERING: Relaxed; as the load.
        self.word.store(count.wrapping_add(1), Ordering::Relaxed);
        flagged(count, n)
    }

    /// Tells how many refusals were counted.
    ///
    /// # Concurrency
    /// Any number of callers; reads only.
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

/// Is the refusal of this number, counted from 0, flagged?
#[inline(always)]
fn flagged(number: u64, n: u32) -> bool {
    matches!(number.checked_rem(n.into()), Some(0))
}
