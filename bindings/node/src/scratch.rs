//! The buffer in which JavaScript leaves keys and finds answers: `lib/scratch.js` has the same numbers.
//!
//! ```text
//!     0   cost, now             u64 each, if the call says that they are given
//!    16   9 answers             8 f64 each: verdict, flags, link, cost, burst, remaining, retry_after, reset_after
//!   592   64 lengths            u32 each, of the keys of a chain or a burst
//!   848   verdicts of a burst   u64, a bit for each key
//!  1024   keys                  each begins at a multiple of 8
//! ```
//!
//! An answer loses nothing that a header field says. Units above 2^53 are rounded down, ticks up: a whole second below
//! 2^62 ns is a number of its own, so no time is rounded past it. What never comes is infinite.

use std::cell::Cell;

use tatcell::{Decision, Permit, Tracking, Verdict};

use crate::errors::{wrong, Failed};
use crate::number;

const COST: usize = 0;
const NOW: usize = 8;
const ANSWERS: usize = 16;
const ANSWER: usize = 8;
const LENGTHS: usize = 592;
const VERDICTS: usize = 848;
const KEYS: usize = 1024;

/// Flags of an answer.
const TRACKED: u64 = 1;
const IN_DEBT: u64 = 2;

/// A buffer of JavaScript. No call of JavaScript runs while this is read or written, and no other thread has it.
pub(crate) struct Scratch {
    start: Cell<*mut u8>,
    bytes: Cell<usize>,
}

impl Scratch {
    pub fn new(buffer: &mut [u8]) -> Scratch {
        assert!(buffer.len() >= KEYS, "lib/scratch.js makes it larger");
        Scratch { start: Cell::new(buffer.as_mut_ptr()), bytes: Cell::new(buffer.len()) }
    }

    pub fn replace(&self, buffer: &mut [u8]) {
        assert!(buffer.len() >= KEYS, "lib/scratch.js makes it larger");
        self.start.set(buffer.as_mut_ptr());
        self.bytes.set(buffer.len());
    }

    fn load<const N: usize>(&self, at: usize) -> [u8; N] {
        assert!(at + N <= self.bytes.get());
        // SAFETY: inside of the buffer, as just seen; see the type for who else has it.
        unsafe { self.start.get().add(at).cast::<[u8; N]>().read() }
    }

    fn store(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.bytes.get());
        // SAFETY: as in `load`; `bytes` are ours.
        unsafe { self.start.get().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    pub fn cost(&self) -> u64 {
        u64::from_ne_bytes(self.load(COST))
    }

    pub fn now(&self) -> u64 {
        u64::from_ne_bytes(self.load(NOW))
    }

    fn bytes(&self, at: usize, length: usize) -> Result<&[u8], Failed> {
        let end = at.checked_add(length).filter(|end| *end <= self.bytes.get());
        end.ok_or_else(|| wrong("a key ends outside of the buffer"))?;
        // SAFETY: as in `load`. The slice is gone before the call returns, and nothing stores to keys before that.
        Ok(unsafe { std::slice::from_raw_parts(self.start.get().add(at), length) })
    }

    /// Returns the only key.
    pub fn key(&self, length: usize) -> Result<&[u8], Failed> {
        self.bytes(KEYS, length)
    }

    /// Stores what replaces the only key.
    pub fn put_key(&self, key: &[u8]) {
        self.store(KEYS, key);
    }

    /// Calls a function with each of `count` keys.
    pub fn each_key(&self, count: usize, mut call: impl FnMut(&[u8])) -> Result<(), Failed> {
        let mut at = KEYS;
        for i in 0..count.min(64) {
            let length = u32::from_ne_bytes(self.load(LENGTHS + 4 * i)) as usize;
            call(self.bytes(at, length)?);
            at += length.next_multiple_of(8);
        }
        Ok(())
    }

    /// Stores the verdicts of a burst.
    pub fn put_verdicts(&self, pass: u64) {
        self.store(VERDICTS, &pass.to_ne_bytes());
    }

    /// Stores an answer, 0 to 8.
    pub fn put(&self, index: usize, decision: &Decision) {
        let tracked = if decision.tracking == Tracking::Tracked { TRACKED } else { 0 };
        let flags = tracked | if decision.in_debt { IN_DEBT } else { 0 };
        let numbers = [
            number(decision.verdict).into(),
            flags as f64,
            decision.policy.into(),
            down(decision.cost),
            down(decision.burst),
            down(decision.remaining),
            up(decision.retry_after),
            up(decision.reset_after),
        ];
        for (i, number) in numbers.into_iter().enumerate() {
            self.store(ANSWERS + 8 * (ANSWER * index + i), &f64::to_ne_bytes(number));
        }
    }

    /// Returns an answer that JavaScript has stored again.
    pub fn answer(&self, index: usize) -> Decision {
        let part = |i: usize| f64::from_ne_bytes(self.load(ANSWERS + 8 * (ANSWER * index + i)));
        let whole = |i: usize| part(i) as u64; // what is too large becomes the largest number
        Decision {
            verdict: match whole(0) {
                0 => Verdict::Conforming,
                1 => Verdict::NonConforming,
                2 => Verdict::Never,
                _ => Verdict::Contended,
            },
            tracking: Tracking::Tracked,
            flags: 0,
            policy: 0,
            cost: whole(3),
            burst: whole(4),
            remaining: whole(5),
            retry_after: whole(6),
            next_unit: 0,
            reset_after: whole(7),
            departure: 0,
            permit: Permit::NONE,
            units: 0,
            in_debt: whole(1) & IN_DEBT != 0,
        }
    }
}

/// The nearest number that is not larger.
fn down(units: u64) -> f64 {
    let near = units as f64;
    if near as u128 > u128::from(units) {
        near.next_down()
    } else {
        near
    }
}

/// The nearest number that is not smaller.
fn up(ticks: u64) -> f64 {
    let near = ticks as f64;
    if ticks == u64::MAX {
        f64::INFINITY
    } else if (near as u128) < u128::from(ticks) {
        near.next_up()
    } else {
        near
    }
}
