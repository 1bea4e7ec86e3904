//! Groups: the latest eligibility time that any flow of a group got.
//!
//! ```text
//!  Group   [        latest departure : 64        ]   ticks; 0 = fresh; only ever raised, so the clock must not wrap
//! ```
//!
//! A reservation of the group is made at max(now, this word), and then raises the word to its departure e. In the terms
//! of 802.1Qcr: eligibility = max(arrival, group eligibility, scheduler eligibility).
//!
//! Linearizable, although word and cell are two: put the reservations in the order of their departures. In that order
//! the word before one of them is at most its own departure e, and a reservation at any time up to e has the same
//! answer: either it had to wait for e, whatever the word was, or e is the later of now and a word that was at most
//! that. No call comes before one that had ended when it began: the word was at least that one's departure by then.
//!
//! Any number of threads, interrupts and processes may use a group at once. Progress: wait-free.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::sync::{max64, AtomicU64, Ordering};

/// Makes its flows leave in the order in which they became eligible, as in IEEE 802.1Qcr.
///
/// The flows of a group have limits and cells of their own; the group adds one word, 8 bytes. All-zero memory is the
/// same as [`new`](Group::new). The clock must not wrap: only [`reset`](Group::reset) makes a group forget.
///
/// See [`reserve`](Group::reserve) and [`Shaper::submit_in`](crate::Shaper::submit_in).
#[derive(Debug)]
#[repr(transparent)]
pub struct Group {
    word: AtomicU64,
}

impl Group {
    /// Makes a group without reservations.
    #[cfg(not(tatcell_loom))]
    pub const fn new() -> Group {
        Group { word: AtomicU64::new(0) }
    }

    /// Makes a group without reservations (not `const` under the model checker).
    #[cfg(tatcell_loom)]
    pub fn new() -> Group {
        Group { word: AtomicU64::new(0) }
    }

    /// Returns the latest departure of the group, in ticks: no later reservation leaves before it.
    #[inline]
    pub fn eligible(&self) -> u64 {
        // ORDERING: Relaxed; single word, value only. By coherence a call that began when another had ended sees what
        // that one raised the word to.
        self.word.load(Ordering::Relaxed)
    }

    /// Raises it to this tick, if it is lower.
    #[inline]
    pub fn raise(&self, departure: u64) {
        max64(&self.word, departure);
    }

    /// Forgets all reservations, for a clock that starts anew.
    pub fn reset(&self) {
        // ORDERING: Relaxed; single word, value only.
        self.word.store(0, Ordering::Relaxed);
    }
}

impl Default for Group {
    fn default() -> Group {
        Group::new()
    }
}
