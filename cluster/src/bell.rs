//! Wakes the store's thread. Workers ring after they have put something where it looks; only a thread that sleeps is
//! woken, which costs a system call.
//!
//! ```text
//!   worker          put a job, then swap(AWAKE)   -- was it ASLEEP: wake
//!   store's thread  swap(ASLEEP), then look for jobs, then sleep
//! ```
//!
//! **Invariant.** One of the two swaps comes first. If it is the worker's, the other thread's swap reads it or a later
//! one, so it sees the job. If it is that of the store's thread, the worker finds ASLEEP and wakes.

use std::sync::OnceLock;

use crate::sync::{AtomicU32, Ordering};

/// Ends the sleep of the thread.
type Wake = Box<dyn Fn() + Send + Sync>;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The bell of one store's thread.
pub(crate) struct Bell {
    state: AtomicU32,
    wake: OnceLock<Wake>,
}

impl Bell {
    pub(crate) fn new() -> Bell {
        Bell { state: AtomicU32::new(AWAKE), wake: OnceLock::new() }
    }

    /// Sets what ends the sleep; once.
    pub(crate) fn set_wake(&self, wake: impl Fn() + Send + Sync + 'static) {
        // A thread sets its own bell, before it sleeps for the first time.
        let _ = self.wake.set(Box::new(wake));
    }

    /// Wakes the thread if it sleeps.
    pub(crate) fn ring(&self) {
        // ORDERING: AcqRel; see the invariant. Release publishes what was put.
        if self.state.swap(AWAKE, Ordering::AcqRel) == ASLEEP {
            if let Some(wake) = self.wake.get() {
                wake();
            }
        }
    }

    /// Says that the thread is about to sleep; it must look once more afterwards.
    pub(crate) fn sleep(&self) {
        // ORDERING: AcqRel; see the invariant. Acquire sees what was put before the ring that this swap reads.
        self.state.swap(ASLEEP, Ordering::AcqRel);
    }

    /// Says that the thread does not sleep, so that nobody needs to wake it.
    pub(crate) fn wake_up(&self) {
        // ORDERING: AcqRel, and a swap: a store would hide what the ring before it publishes.
        self.state.swap(AWAKE, Ordering::AcqRel);
    }

    /// Returns whether somebody rang after the thread said that it is about to sleep.
    pub(crate) fn rang(&self) -> bool {
        // ORDERING: Relaxed; a hint. The thread looks after its next swap.
        self.state.load(Ordering::Relaxed) == AWAKE
    }
}

#[cfg(all(test, tatcell_cluster_loom))]
#[path = "loom_bell.rs"]
mod loom_bell;
