//! The atomics of the schedules (`--cfg tatcell_shuttle`): the processor's, with a point before each access at which
//! another thread may go on.
//!
//! Words are as they are outside, so the shipped searches run, vectors included: a vector is read between two points.
//! Who goes on is shuttle's to say, whose threads are coroutines of one thread, or that of a [`Baton`], which real
//! threads hand to each other: one runs at a time, and a seed gives the same order again. Accesses are sequentially
//! consistent under shuttle; weak memory is loom's to show (`loom_atomic`).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex};
use std::vec::Vec;

use core::sync::atomic as plain;
pub(crate) use core::sync::atomic::Ordering;

/// Who says which thread goes on.
enum Driver {
    /// A load of this is where shuttle may switch.
    Shuttle(Rc<shuttle::sync::atomic::AtomicBool>),
    /// The number of this thread among those that hand it on.
    Real(Arc<Baton>, usize),
}

std::thread_local! {
    static DRIVER: RefCell<Option<Driver>> = const { RefCell::new(None) };
}

/// From here on shuttle schedules what this thread runs.
pub(crate) fn under_shuttle() {
    let gate = Rc::new(shuttle::sync::atomic::AtomicBool::new(false));
    DRIVER.with(|driver| *driver.borrow_mut() = Some(Driver::Shuttle(gate)));
}

/// Nobody schedules: accesses are what they are outside.
pub(crate) fn alone() {
    DRIVER.with(|driver| *driver.borrow_mut() = None);
}

/// Another thread may go on.
fn point() {
    let gate = DRIVER.with(|driver| match &*driver.borrow() {
        None => None,
        Some(Driver::Shuttle(gate)) => Some(Ok(gate.clone())),
        Some(Driver::Real(baton, number)) => Some(Err((baton.clone(), *number))),
    });
    match gate {
        None => {}
        // ORDERING: any; shuttle is sequentially consistent, and the value is of no use.
        Some(Ok(gate)) => drop(gate.load(Ordering::Relaxed)),
        Some(Err((baton, number))) => baton.pass(number),
    }
}

/// What real threads hand to each other: whoever has it runs.
pub(crate) struct Baton {
    state: Mutex<Turn>,
    turns: Vec<Condvar>,
}

struct Turn {
    /// Who runs.
    holder: usize,
    /// Who has not ended.
    runs: Vec<bool>,
    seed: u64,
}

impl Turn {
    fn next(&mut self, n: usize) -> usize {
        // SplitMix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.seed ^ self.seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z >> 32) as usize % n.max(1)
    }

    fn give(&mut self) -> usize {
        let running: Vec<usize> = (0..self.runs.len()).filter(|i| self.runs[*i]).collect();
        let at = self.next(running.len());
        self.holder = running.get(at).copied().unwrap_or(usize::MAX);
        self.holder
    }
}

impl Baton {
    /// Runs these to their ends, in an order that the seed gives.
    pub fn run(seed: u64, threads: Vec<std::boxed::Box<dyn FnOnce() + Send>>) {
        let n = threads.len();
        let mut turn = Turn { holder: 0, runs: std::vec![true; n], seed };
        turn.give();
        let turns = (0..n).map(|_| Condvar::new()).collect();
        let baton = Arc::new(Baton { state: Mutex::new(turn), turns });
        let handles: Vec<_> = threads
            .into_iter()
            .enumerate()
            .map(|(number, run)| {
                let baton = baton.clone();
                std::thread::spawn(move || {
                    let held = Held(baton.clone(), number);
                    baton.wait(number);
                    DRIVER.with(|driver| *driver.borrow_mut() = Some(Driver::Real(baton, number)));
                    run();
                    drop(held);
                })
            })
            .collect();
        for handle in handles {
            handle.join().expect("a thread of the world panicked");
        }
    }

    fn wait(&self, number: usize) {
        let state = self.state.lock().expect("nobody panics with it");
        drop(self.turns[number].wait_while(state, |turn| turn.holder != number).expect("as above"));
    }

    /// Three times of four whoever has it keeps it: stalls last as long as runs do.
    fn pass(&self, number: usize) {
        let mut state = self.state.lock().expect("nobody panics with it");
        if state.next(4) != 0 {
            return;
        }
        let next = state.give();
        if next != number {
            self.turns[next].notify_one();
            drop(self.turns[number].wait_while(state, |turn| turn.holder != number).expect("as above"));
        }
    }
}

/// Gives the baton on where its thread ends.
struct Held(Arc<Baton>, usize);

impl Drop for Held {
    fn drop(&mut self) {
        DRIVER.with(|driver| *driver.borrow_mut() = None);
        let mut state = self.0.state.lock().expect("nobody panics with it");
        state.runs[self.1] = false;
        let next = state.give();
        if let Some(turn) = self.0.turns.get(next) {
            turn.notify_one();
        }
    }
}

/// A word like core's.
#[repr(transparent)]
pub struct AtomicU64(plain::AtomicU64);

impl AtomicU64 {
    pub const fn new(word: u64) -> AtomicU64 {
        AtomicU64(plain::AtomicU64::new(word))
    }

    pub fn load(&self, ordering: Ordering) -> u64 {
        point();
        self.0.load(ordering)
    }

    pub fn store(&self, word: u64, ordering: Ordering) {
        point();
        self.0.store(word, ordering);
    }

    pub fn compare_exchange(&self, old: u64, new: u64, done: Ordering, not: Ordering) -> Result<u64, u64> {
        point();
        self.0.compare_exchange(old, new, done, not)
    }

    pub fn compare_exchange_weak(
        &self,
        old: u64,
        new: u64,
        done: Ordering,
        not: Ordering,
    ) -> Result<u64, u64> {
        point();
        self.0.compare_exchange_weak(old, new, done, not)
    }

    pub fn fetch_add(&self, n: u64, ordering: Ordering) -> u64 {
        point();
        self.0.fetch_add(n, ordering)
    }

    pub fn fetch_max(&self, n: u64, ordering: Ordering) -> u64 {
        point();
        self.0.fetch_max(n, ordering)
    }
}

impl core::fmt::Debug for AtomicU64 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A point as well: between a claim and the look behind it.
pub(crate) fn fence(ordering: Ordering) {
    point();
    plain::fence(ordering);
}
