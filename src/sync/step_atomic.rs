//! The atomics of the step explorer (`--cfg tatcell_step`): one access per step, when the explorer says so.
//!
//! A "thread" of the explorer is a call that the explorer runs again from its start for each step. Its earlier accesses
//! return what the log says they found. The next access happens in memory, and the one after it stops the call by
//! unwinding. So the shipped code runs with no scheduler below it. A thread is known by its log, and the explorer can
//! return to any state by storing its words.
//!
//! Accesses are sequentially consistent: the loom models (`loom_atomic`) cover weak memory. A word that the world does
//! not watch is a constant: a load of it takes no step, and a store to it is an error of the world, unless the memory
//! belongs to the call alone ([`own`]).

use std::boxed::Box;
use std::cell::RefCell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::vec;
use std::vec::Vec;

use core::ops::Range;
use core::sync::atomic as plain;
pub(crate) use core::sync::atomic::Ordering;

/// A word that the explorer may watch.
#[repr(transparent)]
pub struct AtomicU64(plain::AtomicU64);

/// The number of accesses that a call may make alone. A call that makes more counts as endless.
const MANY: usize = 4_000;

struct Stepper {
    watched: Vec<*const AtomicU64>,
    log: Vec<u64>,
    at: usize,
    fresh: Option<u64>,
    alone: bool,
    /// Memory that the call has to itself.
    own: Vec<Range<*const u8>>,
}

std::thread_local! {
    static STEPPER: RefCell<Option<Stepper>> = const { RefCell::new(None) };
}

/// The panic payload of a call that was stopped.
struct Stop;

/// A call that made at most one access beyond its log, and then was stopped or returned.
pub(crate) struct Step<T> {
    /// The value that the access found; `None` if the call returned before it made one.
    pub found: Option<u64>,
    /// The result of the call, if it returned.
    pub end: Option<T>,
}

/// Runs a call one access beyond its log.
pub(crate) fn step<T>(watched: &[*const AtomicU64], log: Vec<u64>, call: impl FnOnce() -> T) -> Step<T> {
    run(watched, log, false, call)
}

/// Declares that this memory belongs to the running call alone, which may then write it without a step.
pub(crate) fn own<T>(memory: &[T]) {
    let Range { start, end } = memory.as_ptr_range();
    STEPPER.with(|place| {
        if let Some(stepper) = place.borrow_mut().as_mut() {
            stepper.own.push(start.cast()..end.cast());
        }
    });
}

/// Runs a call from the end of its log to its return, with no other call beside it. Returns `None` if it is endless.
pub(crate) fn alone<T>(watched: &[*const AtomicU64], log: Vec<u64>, call: impl FnOnce() -> T) -> Option<T> {
    run(watched, log, true, call).end
}

fn run<T>(watched: &[*const AtomicU64], log: Vec<u64>, alone: bool, call: impl FnOnce() -> T) -> Step<T> {
    let stepper = Stepper { watched: watched.to_vec(), log, at: 0, fresh: None, alone, own: vec![] };
    STEPPER.with(|place| *place.borrow_mut() = Some(stepper));
    let end = catch_unwind(AssertUnwindSafe(call));
    let stepper = STEPPER.with(|place| place.borrow_mut().take()).expect("it was put there");
    match end {
        Ok(end) => {
            assert!(stepper.at >= stepper.log.len(), "a call made another access than the time before");
            Step { found: stepper.fresh, end: Some(end) }
        }
        Err(why) if why.is::<Stop>() => Step { found: stepper.fresh, end: None },
        Err(why) => resume_unwind(why),
    }
}

/// Makes an access, or returns what the log says it found.
fn access(word: &AtomicU64, writes: bool, make: impl FnOnce() -> u64) -> u64 {
    let stop = STEPPER.with(|place| {
        let mut place = place.borrow_mut();
        let Some(stepper) = place.as_mut() else { return Ok(make()) };
        if !stepper.watched.contains(&(word as *const AtomicU64)) {
            let at: *const u8 = (word as *const AtomicU64).cast();
            let is_own = stepper.own.iter().any(|range| range.contains(&at));
            assert!(!writes || is_own, "a word that is not watched is written");
            return Ok(make());
        }
        stepper.at += 1;
        if let Some(found) = stepper.log.get(stepper.at - 1) {
            return Ok(*found);
        }
        if stepper.alone {
            return if stepper.at < MANY { Ok(make()) } else { Err(()) };
        }
        match stepper.fresh {
            Some(_) => Err(()),
            None => Ok(*stepper.fresh.insert(make())),
        }
    });
    stop.unwrap_or_else(|()| resume_unwind(Box::new(Stop)))
}

impl AtomicU64 {
    pub const fn new(word: u64) -> AtomicU64 {
        AtomicU64(plain::AtomicU64::new(word))
    }

    pub fn load(&self, _: Ordering) -> u64 {
        // ORDERING: SeqCst; one thread makes all accesses, in the order of the schedule.
        access(self, false, || self.0.load(Ordering::SeqCst))
    }

    pub fn store(&self, word: u64, _: Ordering) {
        access(self, true, || {
            self.0.store(word, Ordering::SeqCst);
            0
        });
    }

    /// Never fails spuriously.
    pub fn compare_exchange(&self, old: u64, new: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        let found = access(self, true, || {
            self.0
                // ORDERING: SeqCst; one thread makes all accesses, in the order of the schedule.
                .compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst)
                .unwrap_or_else(|found| found)
        });
        if found == old {
            Ok(found)
        } else {
            Err(found)
        }
    }

    pub fn compare_exchange_weak(&self, old: u64, new: u64, a: Ordering, b: Ordering) -> Result<u64, u64> {
        self.compare_exchange(old, new, a, b)
    }

    pub fn fetch_add(&self, n: u64, _: Ordering) -> u64 {
        // ORDERING: SeqCst; one thread makes all accesses, in the order of the schedule.
        access(self, true, || self.0.fetch_add(n, Ordering::SeqCst))
    }

    pub fn fetch_and(&self, n: u64, _: Ordering) -> u64 {
        // ORDERING: SeqCst; one thread makes all accesses, in the order of the schedule.
        access(self, true, || self.0.fetch_and(n, Ordering::SeqCst))
    }

    pub fn fetch_max(&self, n: u64, _: Ordering) -> u64 {
        // ORDERING: SeqCst; one thread makes all accesses, in the order of the schedule.
        access(self, true, || self.0.fetch_max(n, Ordering::SeqCst))
    }

    /// Sets a word between steps.
    pub(crate) fn set(&self, word: u64) {
        self.0.store(word, Ordering::SeqCst);
    }

    /// Reads a word between steps.
    pub(crate) fn get(&self) -> u64 {
        // ORDERING: SeqCst; one thread makes all accesses, in the order of the schedule.
        self.0.load(Ordering::SeqCst)
    }
}

impl core::fmt::Debug for AtomicU64 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// Does nothing: a sequentially consistent order leaves nothing to order.
pub(crate) fn fence(_: Ordering) {}
