//! How many units of a key wait for the store's next answer: a bound, so that a key that is asked for faster than it
//! is granted does not fill the queue.
//!
//! The count **begins anew with each ask and with each answer, before anybody is told of it**: who was answered and
//! comes again finds none of what was counted before. So a request is refused by it only where others that came since
//! the last answer fill it. It counts requests that nobody waits for, too; what was counted while a line was let go is
//! forgotten by the next ask.

use crate::sync::{AtomicU32, Ordering};

#[derive(Debug)]
pub(crate) struct Waits(AtomicU32);

impl Waits {
    pub(crate) fn new() -> Waits {
        Waits(AtomicU32::new(0))
    }

    /// An ask begins, or its answer is here.
    pub(crate) fn anew(&self) {
        // ORDERING: Relaxed; a bound. Who is told of an answer synchronizes with the thread that tells, after this.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Counts a request. False: what waits already and this are more than `most`; one alone never is.
    pub(crate) fn add(&self, units: u64, most: u64) -> bool {
        // ORDERING: Relaxed; a bound, which threads that look at once may exceed by a request each.
        let waiting = u64::from(self.0.load(Ordering::Relaxed));
        if waiting > 0 && waiting.saturating_add(units) > most {
            return false;
        }
        self.also(units);
        true
    }

    /// Counts requests whatever waits.
    pub(crate) fn also(&self, units: u64) {
        // ORDERING: Relaxed; as above. Units of requests lie below those of a grant, so 32 bits hold those of many.
        self.0.fetch_add(units.min(u64::from(u32::MAX)) as u32, Ordering::Relaxed);
    }
}
