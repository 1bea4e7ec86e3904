//! The atomics of the models: loom's, with every conflict made visible to its search.
//!
//! Loom 0.7 keeps only the last access to each atomic. Every loop of the library loads a word before it swaps it. That
//! load overwrites the record of an earlier load by another thread. So loom does not see that this load and the swap
//! conflict, and never runs the schedule in which the swap comes first. For one load next to one load-and-swap it tries
//! one execution and finds one answer (a test in `loom_weak` shows it). So each word here has one marker per thread of
//! the model. A load stores to the marker of its own thread, a store or swap to all of them. The accesses to one marker
//! all conflict, so its last access is enough. No thread switch is tried between an access and its markers.
//!
//! Stores to markers are Relaxed, and nothing loads a marker. So no thread learns anything through one: a marker can
//! add schedules, but cannot hide a value or an order.

use std::cell::Cell;

use loom::sync::atomic as plain;
pub(crate) use loom::sync::atomic::{fence, Ordering};

/// The number of threads of a model, including its main thread.
pub(crate) const THREADS: usize = 3;

loom::thread_local! {
    static THREAD: Cell<usize> = Cell::new(0);
}

/// Starts thread `number` of a model, 1..[`THREADS`]; the main thread has 0. Two threads must not share a number.
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

            #[allow(dead_code)] // used for one width only
            pub fn fetch_add(&self, n: $word, order: Ordering) -> $word {
                let old = self.word.fetch_add(n, order);
                self.markers.stored();
                old
            }

            #[allow(dead_code)] // used for one width only
            pub fn swap(&self, n: $word, order: Ordering) -> $word {
                let old = self.word.swap(n, order);
                self.markers.stored();
                old
            }

            #[allow(dead_code)] // used for one width only
            pub fn fetch_and(&self, n: $word, order: Ordering) -> $word {
                let old = self.word.fetch_and(n, order);
                self.markers.stored();
                old
            }

            #[allow(dead_code)] // used for one width only
            pub fn fetch_max(&self, n: $word, order: Ordering) -> $word {
                let old = self.word.fetch_max(n, order);
                self.markers.stored();
                old
            }

            /// Never fails spuriously.
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
