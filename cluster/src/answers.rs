//! The answers to requests that were pending, in the order in which they came, until the caller takes them.
//!
//! Each request with a token reserves a place. If no place is left, the request is Overloaded: so the list has a bound,
//! and no answer is lost. The store's thread and the caller who takes hold the lock for a few instructions.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::sync::{AtomicU32, Ordering};
use crate::verdict::Completion;

/// The number of places.
pub(crate) const PLACES: u32 = 4_096;

/// The store's thread calls this when an answer has come.
pub(crate) type Wake = Box<dyn Fn() + Send + Sync>;

pub(crate) struct Answers {
    list: Mutex<VecDeque<Completion>>,
    /// Places in use: by requests under way, and by answers that nobody has taken yet.
    taken: AtomicU32,
    wake: Option<Wake>,
}

impl Answers {
    pub(crate) fn new(wake: Option<Wake>) -> Answers {
        Answers { list: Mutex::default(), taken: AtomicU32::new(0), wake }
    }

    /// Takes a place; returns false if none is left.
    pub(crate) fn reserve(&self) -> bool {
        // ORDERING: Relaxed; a bound.
        let took = self.taken.fetch_add(1, Ordering::Relaxed) < PLACES;
        if !took {
            self.release(1);
        }
        took
    }

    /// Gives places back.
    pub(crate) fn release(&self, places: u32) {
        // ORDERING: Relaxed; a bound.
        self.taken.fetch_sub(places, Ordering::Relaxed);
    }

    /// Puts an answer into its place.
    pub(crate) fn put(&self, completion: Completion) {
        // If a thread panicked while it held the lock, the list is still a list.
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push_back(completion);
        if let Some(wake) = &self.wake {
            wake();
        }
    }

    /// Takes at most `most` answers.
    pub(crate) fn take(&self, most: usize) -> Vec<Completion> {
        self.take_from(&mut self.list.lock().unwrap_or_else(PoisonError::into_inner), most).0
    }

    /// Takes at most `most` answers, and says whether more are left. Does not wait: returns `None` if the lock is held.
    #[cfg_attr(not(feature = "capi"), allow(dead_code))]
    pub(crate) fn try_take(&self, most: usize) -> Option<(Vec<Completion>, bool)> {
        match self.list.try_lock() {
            Ok(mut list) => Some(self.take_from(&mut list, most)),
            Err(TryLockError::Poisoned(list)) => Some(self.take_from(&mut list.into_inner(), most)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn take_from(
        &self,
        list: &mut MutexGuard<'_, VecDeque<Completion>>,
        most: usize,
    ) -> (Vec<Completion>, bool) {
        let count = list.len().min(most);
        let taken: Vec<Completion> = list.drain(..count).collect();
        self.release(count as u32);
        (taken, !list.is_empty())
    }
}
