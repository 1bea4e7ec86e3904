//! A node's right to its reserve: one of N slots in the store, held for a time and renewed.
//!
//! ```text
//!   claimed at the store      held there for PX, counted by the node from the sending of the claim
//!   +--- PX ---+--- until an empty reserve is full ---+--- the node spends its reserve ... while it holds the slot
//! ```
//!
//! The reserve of a node is a token bucket of its own. The bound counts N of them, whoever has them. A node that takes
//! over a slot finds its own table fresh, so it waits until everything that the last holder may have spent has drained.

use crate::sync::{AtomicU64, Ordering};

/// From when and until when the reserve may be spent, nanoseconds.
#[derive(Debug)]
pub(crate) struct Right {
    from: AtomicU64,
    until: AtomicU64,
}

impl Right {
    pub(crate) fn new() -> Right {
        Right { from: AtomicU64::new(u64::MAX), until: AtomicU64::new(0) }
    }

    /// Returns whether the reserve may be spent now.
    #[inline]
    pub(crate) fn holds(&self, now: u64) -> bool {
        // ORDERING: Acquire; pairs with the Release of `claimed`: who sees an end sees its beginning.
        let until = self.until.load(Ordering::Acquire);
        // ORDERING: Relaxed; ordered by the load above.
        now < until && now >= self.from.load(Ordering::Relaxed)
    }

    /// Returns whether the slot has not ended yet, for all that this node knows.
    pub(crate) fn may_be_held(&self, now: u64) -> bool {
        // ORDERING: Relaxed; only the store's thread asks, and it writes the time.
        now < self.until.load(Ordering::Relaxed)
    }

    /// Records that a call sent at `sent` claimed the slot.
    pub(crate) fn claimed(&self, sent: u64, px_ns: u64, full_ns: u64) {
        // ORDERING: Relaxed; published by the store below.
        self.from.store(sent.saturating_add(px_ns).saturating_add(full_ns), Ordering::Relaxed);
        self.renewed(sent, px_ns);
    }

    /// Records that the slot was still held.
    pub(crate) fn renewed(&self, sent: u64, px_ns: u64) {
        // ORDERING: Release; pairs with the Acquire of `holds`.
        self.until.store(sent.saturating_add(px_ns), Ordering::Release);
    }

    /// Records that another node has the slot.
    pub(crate) fn lost(&self) {
        // ORDERING: Release; as above.
        self.until.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_spent_only_after_the_wait_and_while_the_slot_is_held() {
        let right = Right::new();
        assert!(!right.holds(0) && !right.holds(u64::MAX - 1));
        right.claimed(1_000, 100, 50);
        assert!(!right.holds(1_050) && !right.holds(1_150), "not renewed in time");
        right.renewed(1_080, 100);
        assert!(!right.holds(1_149) && right.holds(1_150) && right.holds(1_179) && !right.holds(1_180));
        right.claimed(1_200, 100, 50);
        right.renewed(1_280, 100);
        assert!(!right.holds(1_349) && right.holds(1_350), "a new claim waits again");
        right.lost();
        assert!(!right.holds(1_350));
    }
}
