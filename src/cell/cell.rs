//! Cells: one state word each, shared by any number of threads or owned by one.
//!
//! ```text
//!  Cell           [              TAT : 64              ]   0 = fresh; wraps at 2^64 q-units (3.3 days at 1e9/s in ns)
//!  Cell32         [     TAT : 32     ]                     0 = fresh; wraps at 2^32 q-units (49.7 days of ms)
//!  ExclusiveCell  as Cell, through `&mut`: plain load and store
//! ```
//!
//! Any number of threads, interrupts and processes may use a `Cell` and a `Cell32` at once; an `ExclusiveCell` has one
//! owner. Every change is one compare-and-swap of the whole word. So each request takes effect at one instant (its
//! successful swap, or its load if nothing is stored), and no interleaving admits more than a serial order would.
//!
//! Progress: lock-free; at most [`MAX_LOST`](crate::MAX_LOST) lost swaps (a short check one more, see there), then
//! `Contended` with nothing charged. A swap is lost only because another thread's swap succeeded. A denial only loads.
//!
//! The loop [`Cell::update`] is generic: it runs any algorithm whose state is one word.

use crate::algorithms::gcra::{self, decode, encode, whole_lead};
use crate::algorithms::{self, Call, Change, Kind, Op, Operation};
use crate::answer::{units_of, Answer, Decision, Outcome, Permit, Place, Tracking};
use crate::limit::{Limit, Limit32, LimitError};
use crate::sync::{back_off, update32, update64, AtomicU32, AtomicU64, Ordering};
use crate::time::shifted;

macro_rules! shared_cell {
    ($(#[$doc:meta])* $name:ident, $atomic:ident, $word:ty, $update:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name {
            pub(crate) word: $atomic,
        }

        impl $name {
            /// Makes a fresh cell: the full burst is available. All-zero memory is the same.
            #[cfg(not(tatcell_loom))]
            pub const fn new() -> $name {
                $name { word: $atomic::new(0) }
            }

            /// Makes a fresh cell (not `const` under the model checker).
            #[cfg(tatcell_loom)]
            pub fn new() -> $name {
                $name { word: $atomic::new(0) }
            }

            /// Makes a cell from a word; any value is valid. Files: [`restore`](Self::restore) also checks the limit.
            #[cfg(not(tatcell_loom))]
            pub const fn from_word(word: $word) -> $name {
                $name { word: $atomic::new(word) }
            }

            /// Reads the state word, for saving or inspection.
            #[inline]
            pub fn word(&self) -> $word {
                // ORDERING: Relaxed; single word, value only.
                self.word.load(Ordering::Relaxed)
            }

            /// Runs one bounded compare-and-swap loop for any algorithm whose state is one word.
            ///
            /// `step` maps the current word to an answer and, if something changes, the next word; it may be called
            /// several times. Returns `None` after [`MAX_LOST`](crate::MAX_LOST) lost swaps, with nothing stored.
            ///
            /// # Concurrency
            /// Any number of callers. The answer is that of the word which was replaced, or only loaded.
            #[inline(always)]
            pub fn update<A>(&self, step: impl FnMut($word) -> (A, Option<$word>)) -> Option<A> {
                $update(&self.word, step)
            }

            /// Makes one attempt. Returns false if the word has changed (or, on LL/SC targets, for no reason).
            #[inline(always)]
            fn swap(&self, old: $word, new: $word) -> bool {
                // ORDERING: Relaxed on both sides; the word is the whole state and orders nothing else.
                self.word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            }

            /// Makes the cell fresh again: the full burst is available.
            #[inline]
            pub fn reset(&self) {
                // ORDERING: Relaxed; single word, value only.
                self.word.store(0, Ordering::Relaxed);
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::new()
            }
        }
    };
}

shared_cell! {
    /// Holds the state of one limit in 64 bits, for any number of threads.
    ///
    /// ```
    /// use tatcell::{limit, Cell, Limit, Outcome};
    /// static LIMIT: Limit = limit!(1 per 1_000_000_000, burst 5); // 1 a second, 5 at once, ticks in ns
    /// static CELL: Cell = Cell::new();
    /// for _ in 0..5 {
    ///     assert_eq!(CELL.check(&LIMIT, 0, 1), Outcome::Conforming);
    /// }
    /// assert_eq!(CELL.check(&LIMIT, 0, 1), Outcome::NonConforming { retry_after: 1_000_000_000 });
    /// ```
    Cell, AtomicU64, u64, update64
}
shared_cell! {
    /// Holds the state of one limit in 32 bits, for targets with 32-bit atomics or for half the memory.
    ///
    /// Its clock wraps after 2^32 q-units. A cell idle for nearly that long may, for a share (H + S) / 2^32 of idle
    /// times, read as a debt of at most H + S until it drains. If that matters, reset idle cells at least every
    /// [`Limit32::span`](crate::Limit32::span) ticks. It never admits more than the limit.
    Cell32, AtomicU32, u32, update32
}

/// Holds the state of one limit for one owner: plain load and store, no atomic instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct ExclusiveCell {
    word: u64,
}

impl ExclusiveCell {
    /// Makes a fresh cell: the full burst is available. All-zero memory is the same.
    pub const fn new() -> ExclusiveCell {
        ExclusiveCell { word: 0 }
    }

    /// Makes a cell from a word; any value is valid. Files: [`restore`](Self::restore) also checks the limit.
    pub const fn from_word(word: u64) -> ExclusiveCell {
        ExclusiveCell { word }
    }

    /// Reads the state word, for saving or inspection.
    #[inline]
    pub const fn word(&self) -> u64 {
        self.word
    }

    /// Runs one step of any algorithm whose state is one word; never `None`.
    #[inline(always)]
    pub fn update<A>(&mut self, mut step: impl FnMut(u64) -> (A, Option<u64>)) -> Option<A> {
        let (answer, next) = step(self.word);
        if let Some(next) = next {
            self.word = next;
        }
        Some(answer)
    }

    #[inline(always)]
    fn swap(&mut self, _old: u64, new: u64) -> bool {
        self.word = new;
        true
    }

    /// Makes the cell fresh again: the full burst is available.
    #[inline]
    pub fn reset(&mut self) {
        self.word = 0;
    }
}

/// The operations, written once for the three cells.
macro_rules! operations {
    ($cell:ident, $limit:ident, $word:ty, $me:ident, ($($recv:tt)+)) => {
        impl $cell {
            const MASK: u64 = <$word>::MAX as u64;

            /// Decodes, steps and encodes. Every operation except the plain check is one [`Op`].
            #[inline(never)]
            fn drive($($recv)+, op: &Op<'_>, now: u64) -> Option<Answer> {
                if !op.p.is_gcra() {
                    return $me.drive_count(op, now);
                }
                let now_q = op.p.now_q(now);
                $me.update(|word| {
                    let (lead, healed) = decode(op.p, word as u64, now_q, Self::MASK);
                    let step = op.step(lead);
                    let store = if healed { Some(step.store.unwrap_or(lead)) } else { step.store };
                    (step.answer, store.map(|lead| Self::stored(now, now_q, lead)))
                })
            }

            /// Does the same as [`drive`](Self::drive) for a word that holds a count.
            #[cold]
            #[inline(never)]
            fn drive_count($($recv)+, op: &Op<'_>, now: u64) -> Option<Answer> {
                let (now_q, call) = (op.p.clock_q(now), Call::new(op, now));
                $me.update(|word| {
                    let step = call.step(whole_lead(word as u64, now_q, Self::MASK, op.p.window_q));
                    (step.answer, step.store.map(|lead| encode(now_q, lead, Self::MASK) as $word))
                })
            }

            /// Returns the word of a lead. A lead of 0 is a TAT of now, not EMPTY: a clock that steps back must not
            /// find the cell full. Only at tick 0, the first of any clock, it is EMPTY: the word 0 would otherwise
            /// become 1, a debt of one q-unit.
            #[inline(always)]
            fn stored(now: u64, now_q: u64, lead: u64) -> $word {
                if now == 0 && lead == 0 {
                    0
                } else {
                    encode(now_q, lead, Self::MASK) as $word
                }
            }

            /// Decides one request and charges it if it conforms.
            ///
            /// `now` is the caller's clock in ticks, `cost` in units. Cost 0 peeks and never writes.
            ///
            /// # Concurrency
            /// One compare-and-swap if it conforms, one load if not. Cost: O(1), no division.
            ///
            /// Source: ITU-T I.371 annex A (virtual scheduling), with weights.
            #[inline]
            pub fn check($($recv)+, limit: &$limit, now: u64, cost: u64) -> Outcome {
                match $me.check_plain(limit, now, cost) {
                    Some(outcome) => outcome,
                    None => $me.check_again(limit, now, cost),
                }
            }

            /// Decides the common case: no options, a cost within the burst, and one attempt.
            #[inline(always)]
            pub(crate) fn check_plain($($recv)+, limit: &$limit, now: u64, cost: u64) -> Option<Outcome> {
                $me.attempt(limit, limit.0.now_q(now), cost, |q| limit.0.ticks_up(q, now))
            }

            /// Does the same as [`check_plain`](Self::check_plain) if q-units are ticks, and otherwise tries nothing.
            #[inline(always)]
            #[allow(dead_code)] // the C layer calls it
            pub(crate) fn check_whole($($recv)+, limit: &$limit, now: u64, cost: u64) -> Option<Outcome> {
                if limit.0.is_whole() { $me.attempt(limit, now, cost, |q| q) } else { None }
            }

            /// Does the same as [`check_plain`](Self::check_plain) but always shifts; `retry_after` is in q-units.
            #[inline(always)]
            #[allow(dead_code)] // as above
            pub(crate) fn check_shifted($($recv)+, limit: &$limit, now: u64, cost: u64) -> Option<Outcome> {
                $me.attempt(limit, shifted(now, limit.0.shl, limit.0.shr), cost, |q| q)
            }

            #[inline(always)]
            fn attempt<F>($($recv)+, limit: &$limit, now_q: u64, cost: u64, ticks: F) -> Option<Outcome>
            where
                F: FnOnce(u64) -> u64,
            {
                let (p, word) = (&limit.0, $me.word());
                match gcra::plain_word(p, word as u64, now_q, Self::MASK, cost)? {
                    Err(q) => Some(Outcome::NonConforming { retry_after: ticks(q) }),
                    Ok(tat) if $me.swap(word, tat as $word) => Some(Outcome::Conforming),
                    Ok(_) => None,
                }
            }

            /// Decides with options, a cost above the burst, or after a first attempt lost to a rival.
            #[cold]
            #[inline(never)]
            pub(crate) fn check_again($($recv)+, limit: &$limit, now: u64, cost: u64) -> Outcome {
                let op = Op::new(&limit.0, Kind::Check, cost, 0);
                // The common case gets here only if it lost its swap.
                if limit.0.is_gcra() && cost.wrapping_sub(1) < limit.0.plain {
                    back_off(1);
                }
                let made = if limit.0.is_gcra() { $me.drive(&op, now) } else { $me.drive_count(&op, now) };
                made.map_or(Outcome::Contended, |answer| answer.outcome(&limit.0, now))
            }

            /// Decides one request with the full answer. This call may use `room` units above the burst, at most the
            /// limit's `max_room`.
            #[inline]
            pub fn check_ex($($recv)+, limit: &$limit, now: u64, cost: u64, room: u64) -> Decision {
                let answer = $me.drive(&Op::new(&limit.0, Kind::Check, cost, room), now);
                Self::decision(limit, now, cost, answer)
            }

            /// Charges after the fact: always charges, up to the burst plus the limit's `max_debt`.
            ///
            /// The decision passes, and `permit.stored` says what was charged. `Contended` charged nothing.
            #[inline]
            pub fn charge($($recv)+, limit: &$limit, now: u64, cost: u64) -> Decision {
                let answer = $me.drive(&Op::new(&limit.0, Kind::Charge, cost, 0), now);
                Self::decision(limit, now, cost, answer)
            }

            /// Gives back what a permit proves was charged and has not drained since.
            ///
            /// Returns the ticks of debt removed, rounded down (units if the limit counts units); `None` when contended
            /// (nothing changed, try again). Use a permit once: a second refund would give back another request's
            /// charge, and so would a refund after a reset (give the limit another epoch when you reset). Refund
            /// several permits of one key newest first, or make the limit with
            /// [`strict_refunds`](crate::LimitSpec::strict_refunds). Refund only the last one of a queue of
            /// reservations, with or without strict refunds: after a refund from the middle, the next to reserve gets a
            /// departure that another one has already.
            #[inline]
            pub fn refund($($recv)+, limit: &$limit, now: u64, permit: &Permit) -> Option<u64> {
                let answer = $me.drive(&algorithms::refund(&limit.0, permit, 0, now, Self::MASK), now)?;
                Some(limit.0.credited(answer.stored))
            }

            /// As [`refund`](Self::refund) with the full answer: the state of the cell afterwards, and in `units` the
            /// units given back.
            #[inline]
            pub fn refund_ex($($recv)+, limit: &$limit, now: u64, permit: &Permit) -> Decision {
                let answer = $me.drive(&algorithms::refund(&limit.0, permit, 0, now, Self::MASK), now);
                let units = answer.map_or(0, |answer| units_of(&limit.0, 0, answer.stored));
                let made = Self::decision(limit, now, 0, answer.map(|answer| Answer { stored: 0, ..answer }));
                Decision { units, ..made }
            }

            /// Reserves `cost` units for the earliest conforming instant, for shaping: the decision's `departure`.
            ///
            /// Departures of one cell are monotone in the order of their reservations, as long as callers' clocks do
            /// not step back: a caller whose clock is behind gets the same place on the time axis, but with its own
            /// `now`. A request that would wait longer than the limit's `max_delay` is refused and charges nothing; its
            /// `retry_after` is the time until the same request would be accepted. Only GCRA knows when a request may
            /// leave: under another algorithm the verdict is `Never`.
            ///
            /// Source: IEEE 802.1Qcr asynchronous traffic shaping, which reserves at max(now, group eligibility).
            #[inline]
            pub fn reserve($($recv)+, limit: &$limit, now: u64, cost: u64) -> Decision {
                let answer = $me.drive(&Op::new(&limit.0, Kind::Reserve, cost, 0), now);
                Self::decision(limit, now, cost, answer)
            }

            /// Reserves like [`reserve`](Self::reserve), but for the earliest conforming instant at or after tick
            /// `from`, as if the request came then. `max_delay` and `retry_after` still count from `now`.
            ///
            /// The cell is charged for a time that lies ahead, so a request that comes before `from` waits behind it.
            #[inline]
            pub fn reserve_from($($recv)+, limit: &$limit, now: u64, from: u64, cost: u64) -> Decision {
                let op = Op::new(&limit.0, Kind::Reserve, cost, limit.0.q_until(now, from));
                let answer = $me.drive(&op, now);
                Self::decision(limit, now, cost, answer).not_before(from)
            }

            /// Moves the state from one limit to another, from `now` on. Returns false when contended: try again.
            ///
            /// A window keeps its count and its end, a sliding counter both counts, and a used-up quota its bucket. A
            /// level stays the same and decays by the new half-life from now on; `Change::KeepTime` keeps the time
            /// after which it is forgotten instead. Give the new limit another epoch, or permits from before may be
            /// taken for its own.
            ///
            /// While other threads still check with the old limit, both must have the same
            /// [resolution](crate::LimitSpec::resolution), and limits that count units the same
            /// [bits](crate::LimitInfo::count_bits). Otherwise change when nobody checks.
            ///
            /// # Errors
            /// Nothing changes then, and only `Change::Reset` is possible. [`LimitError::BadAlgorithm`]: the limits
            /// have different algorithms. [`LimitError::OtherWindow`]: their windows differ in length.
            /// [`LimitError::LargerCount`]: the key has counted more than the word of the new limit holds.
            #[inline]
            pub fn change(
                $($recv)+,
                old: &$limit,
                new: &$limit,
                now: u64,
                how: Change,
            ) -> Result<bool, LimitError> {
                let counts = !old.0.is_gcra() || !new.0.is_gcra();
                if counts && matches!(how, Change::Reset) {
                    $me.reset();
                    return Ok(true);
                }
                algorithms::keeps(&old.0, &new.0)?;
                if algorithms::keeps_word(&old.0, &new.0) {
                    return Ok(true);
                }
                let (old_q, new_q) = (old.0.clock_q(now), new.0.clock_q(now));
                let alike = counts && (old.0.shl, old.0.shr) == (new.0.shl, new.0.shr);
                let done = $me.update(|word| {
                    let (lead, _) = decode(&old.0, word as u64, old_q, Self::MASK);
                    let next = match algorithms::change(&old.0, &new.0, lead, now, how) {
                        (_, true) if counts => return (Err(LimitError::LargerCount), None),
                        // A fresh cell stays fresh. A clock that is behind goes on with the window that it knows.
                        (0, _) if word == 0 || alike => word,
                        // Otherwise a lead of 0 is a TAT of now, as everywhere.
                        (lead, _) => Self::stored(now, new_q, lead),
                    };
                    (Ok(()), if next == word { None } else { Some(next) })
                });
                match done {
                    Some(Err(e)) => Err(e),
                    done => Ok(done.is_some()),
                }
            }

            #[inline(always)]
            #[allow(dead_code)] // of a cell with one owner nobody else asks
            pub(crate) fn permit(limit: &$limit, now: u64, answer: &Answer) -> Permit {
                answer.permit(&limit.0, Place { now, mask: Self::MASK, generation: 0, slot: 0 })
            }

            #[inline(always)]
            #[allow(dead_code)] // of a cell with one owner nobody else asks
            pub(crate) fn decision(limit: &$limit, now: u64, cost: u64, answer: Option<Answer>) -> Decision {
                match answer {
                    Some(answer) => {
                        let permit = Self::permit(limit, now, &answer);
                        algorithms::decision(&answer, &limit.0, now, cost, Tracking::Tracked, permit)
                    }
                    None => Decision::contended(cost, limit.0.burst),
                }
            }
        }
    };
}

operations!(Cell, Limit, u64, self, (&self));
operations!(Cell32, Limit32, u32, self, (&self));
operations!(ExclusiveCell, Limit, u64, self, (&mut self));

macro_rules! looks {
    ($cell:ident, $limit:ident) => {
        impl $cell {
            /// Returns what a request of this cost would be answered, without charging it. Only reads.
            #[inline]
            pub fn peek(&self, limit: &$limit, now: u64, cost: u64) -> Decision {
                self.peek_with(limit, now, cost, 0).peeked()
            }

            /// Peeks with elastic room.
            #[inline]
            pub(crate) fn peek_with(&self, limit: &$limit, now: u64, cost: u64, room: u64) -> Decision {
                let answer = self.look(limit, now, cost, room);
                algorithms::decision(&answer, &limit.0, now, cost, Tracking::Tracked, Permit::NONE)
            }

            /// Returns the raw answer of [`peek`](Self::peek), with elastic room.
            #[inline]
            pub(crate) fn look(&self, limit: &$limit, now: u64, cost: u64, room: u64) -> Answer {
                let (lead, _) = decode(&limit.0, self.word() as u64, limit.0.clock_q(now), Self::MASK);
                algorithms::peek(&limit.0, lead, now, cost, room)
            }

            /// Returns what [`reserve`](Self::reserve) would answer under a limit of GCRA, without charging it.
            #[allow(dead_code)] // no chain has a cell with one owner
            pub(crate) fn peek_reserve(&self, limit: &$limit, now: u64, cost: u64) -> Decision {
                let answer = gcra::peek_reserve(&limit.0, self.look(limit, now, cost, 0).lead, cost);
                algorithms::decision(&answer, &limit.0, now, cost, Tracking::Tracked, Permit::NONE)
            }
        }
    };
}

looks!(Cell, Limit);
looks!(Cell32, Limit32);
looks!(ExclusiveCell, Limit);
