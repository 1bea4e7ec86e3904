//! The atomics of the models: loom's, with every conflict made visible to its search.
//!
//! Loom 0.7 keeps one last access an atomic. A thread that loads a word before it swaps it, as every loop here does,
//! overwrites what an earlier load of another thread left there, so loom does not see that load and swap conflict and
//! never runs the schedule in which the swap comes first: a load beside a load-and-swap takes it one execution and
//! one answer (`loom_weak` has that as a test). So here a word has one marker for each thread of a model: right after a
//! load its own thread's is stored, after a store or swap all are. Each marker then sees a chain of accesses that all
//! conflict, and its last one is enough. No thread switch is tried between an access and its markers.
//!
//! Markers are stored with Relaxed ordering and never loaded, so no thread learns anything through them: a schedule
//! can be found because of a marker, no value or order can be hidden by one.

use std::cell::Cell;

use loom::sync::atomic as plain;
pub(crate) use loom::sync::atomic::{fence, Ordering};

/// Threads of a model, its own included.
pub(crate) const THREADS: usize = 3;

loom::thread_local! {
    static THREAD: Cell<usize> = Cell::new(0);
}

/// Starts thread number 1..[`THREADS`] of a model; the model's own is 0. Two threads must not have one number.
pub(crate) fn spawn<T: 'static>(
    number: usize,
    body: impl FnOnce() -> T + 'static,
) -> loom::thread::JoinHandle<T> {
    assert!((1..THREADS).contains(&number), "no such thread");
    loom::thread::spawn(move || {
        THREAD.with(|thread| thread.set(number));
        body()
    })
}

struct Markers([plain::AtomicUsize; THREADS]);

impl Markers {
    fn new() -> Markers {
        Markers(core::array::from_fn(|_| plain::AtomicUsize::new(0)))
    }

    fn loaded(&self) {
        let number = THREAD.with(|thread| thread.get());
        loom::stop_exploring();
        self.0[number].store(0, Ordering::Relaxed);
        loom::explore();
    }

    fn stored(&self) {
        loom::stop_exploring();
        for marker in &self.0 {
            marker.store(0, Ordering::Relaxed);
        }
        loom::explore();
    }
}

macro_rules! atomic {
    ($name:ident, $word:ty) => {
        pub struct $name {
            word: plain::$name,
            markers: Markers,
        }

        impl $name {
            pub fn new(word: $word) -> $name {
                $name { word: plain::$name::new(word), markers: Markers::new() }
            }

            pub fn load(&self, order: Ordering) -> $word {
                let word = self.word.load(order);
                self.markers.loaded();
                word
            }

            pub fn store(&self, word: $word, order: Ordering) {
                self.word.store(word, order);
                self.markers.stored();
            }

            pub fn compare_exchange(
                &self,
                old: $word,
                new: $word,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$word, $word> {
                let found = self.word.compare_exchange(old, new, success, failure);
                self.markers.stored();
                found
            }

            #[allow(dead_code)] // of one width only
            pub fn fetch_add(&self, n: $word, order: Ordering) -> $word {
                let old = self.word.fetch_add(n, order);
                self.markers.stored();
                old
            }

            #[allow(dead_code)] // of one width only
            pub fn swap(&self, n: $word, order: Ordering) -> $word {
                let old = self.word.swap(n, order);
                self.markers.stored();
                old
            }

            #[allow(dead_code)] // of one width only
            pub fn fetch_max(&self, n: $word, order: Ordering) -> $word {
                let old = self.word.fetch_max(n, order);
                self.markers.stored();
                old
            }

            /// Never fails without cause.
            pub fn compare_exchange_weak(
                &self,
                old: $word,
                new: $word,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$word, $word> {
                self.compare_exchange(old, new, success, failure)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.word.fmt(f)
            }
        }
    };
}

atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);
