//! How many units of a key wait for the store's next answer. The count has a bound, so that a key that gets more
//! requests than units cannot fill the queue.
//!
//! The count **starts anew with each ask and with each answer, before any caller is told of it**: a caller that was
//! answered and comes again finds nothing of what was counted before. So the bound refuses a request only if other
//! requests since the last answer fill it. The count includes requests that nobody waits for. What was counted while a
//! line was released is forgotten at the next ask.

use crate::sync::{AtomicU32, Ordering};

#[derive(Debug)]
pub(crate) struct Waits(AtomicU32);

impl Waits {
    pub(crate) fn new() -> Waits {
        Waits(AtomicU32::new(0))
    }

    /// Starts the count anew: an ask begins, or its answer is here.
    pub(crate) fn anew(&self) {
        // ORDERING: Relaxed; a bound. After this, a caller that gets an answer synchronizes with the thread that tells.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Counts a request. Returns false if it and those that wait exceed `most`; a request alone never does.
    pub(crate) fn add(&self, units: u64, most: u64) -> bool {
        // ORDERING: Relaxed; a bound, which threads that check at once may exceed by one request each.
        let waiting = u64::from(self.0.load(Ordering::Relaxed));
        if waiting > 0 && waiting.saturating_add(units) > most {
            return false;
        }
        self.also(units);
        true
    }

    /// Counts units, whatever waits.
    pub(crate) fn also(&self, units: u64) {
        // ORDERING: Relaxed; as above. The units of a request are below those of a grant, so 32 bits hold many of them.
        self.0.fetch_add(units.min(u64::from(u32::MAX)) as u32, Ordering::Relaxed);
    }
}
