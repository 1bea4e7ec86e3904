//! The units that a node admits by itself while the store is away, if `when_down` is `Share`: its part of the rate,
//! started empty.
//!
//! Each line has one word, `low`, in nanoseconds. A request of cost c gets `[low', low' + c T N)` if that ends by now,
//! where `low'` is the latest of `low`, the time when the store went away, the time when the limit came into force, and
//! `now - burst T N`. The word of an earlier outage lies before the start of this one, so it need not be reset.

use crate::sync::{AtomicU64, Ordering};

/// A node's part of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// The nanoseconds of one unit at the node's part of the rate, rounded up.
    pub unit_ns: u64,
    /// The most nanoseconds that can be saved up.
    pub burst_ns: u64,
    /// When its limit came into force. Nothing is saved up before, because the share of the limit before had that.
    pub from: u64,
}

/// The number of swaps of the word that a worker may lose before it is refused.
const MAX_LOST: u32 = 8;

impl Share {
    /// Takes `cost` units of the share that began at `since`.
    pub(crate) fn take(self, low: &AtomicU64, since: u64, now: u64, cost: u64) -> bool {
        for _ in 0..MAX_LOST {
            // ORDERING: Relaxed; the word is the whole state.
            let old = low.load(Ordering::Relaxed);
            let from = old.max(since).max(self.from).max(now.saturating_sub(self.burst_ns));
            let Some(end) = cost.checked_mul(self.unit_ns).and_then(|c| from.checked_add(c)) else {
                return false;
            };
            if end > now {
                return false;
            }
            // ORDERING: Relaxed; as above.
            if low.compare_exchange(old, end, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
        false
    }
}

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_share_starts_empty_and_saves_up_no_more_than_its_burst() {
        let (share, low) = (Share { unit_ns: 10, burst_ns: 30, from: 0 }, AtomicU64::new(0));
        assert!(!share.take(&low, 1_000, 1_009, 1));
        assert!(share.take(&low, 1_000, 1_010, 1));
        assert!(!share.take(&low, 1_000, 1_019, 1));
        assert!(!share.take(&low, 1_000, 2_000, 4));
        assert!(share.take(&low, 1_000, 2_000, 3));
        assert!(!share.take(&low, 1_000, 2_000, 1));
        // A later outage starts empty again.
        assert!(!share.take(&low, 3_000, 3_009, 1));
        assert!(share.take(&low, 3_000, 3_010, 1));
        assert!(!share.take(&low, 0, 1 << 40, u64::MAX));
    }

    #[test]
    fn the_share_of_a_limit_that_comes_into_force_while_the_store_is_away_starts_empty() {
        let (share, low) = (Share { unit_ns: 10, burst_ns: 30, from: 2_000 }, AtomicU64::new(0));
        assert!(!share.take(&low, 1_000, 2_009, 1));
        assert!(share.take(&low, 1_000, 2_010, 1));
        assert!(!share.take(&low, 1_000, 2_019, 1));
    }
}
