//! The answers to requests that were pending, in the order in which they came, until whoever asked takes them.
//!
//! Each request that is given a token has a place from then on; where no place is left it is Overloaded, so the list
//! has a bound and no answer is lost. The lock is held for a few instructions, by the store's thread and by who takes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::sync::{AtomicU32, Ordering};
use crate::verdict::Completion;

/// Places.
pub(crate) const PLACES: u32 = 4_096;

/// Called by the store's thread when an answer has come.
pub(crate) type Wake = Box<dyn Fn() + Send + Sync>;

pub(crate) struct Answers {
    list: Mutex<VecDeque<Completion>>,
    /// Places that are taken: by requests under way, and by answers that wait.
    taken: AtomicU32,
    wake: Option<Wake>,
}

impl Answers {
    pub(crate) fn new(wake: Option<Wake>) -> Answers {
        Answers { list: Mutex::default(), taken: AtomicU32::new(0), wake }
    }

    /// Takes a place; False: none is left.
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
        // A list, whatever a thread did that held it.
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push_back(completion);
        if let Some(wake) = &self.wake {
            wake();
        }
    }

    /// Takes at most so many answers.
    pub(crate) fn take(&self, most: usize) -> Vec<Completion> {
        self.take_from(&mut self.list.lock().unwrap_or_else(PoisonError::into_inner), most).0
    }

    /// As [`take`](Self::take) without waiting for the lock, and whether more are left: None where it is held.
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
