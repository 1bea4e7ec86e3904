//! The small checks: the decision of a plain limit in the width of the cell, on one state word.
//!
//! ```text
//!  answer   0                passes
//!           1 ..= window     ticks until the same request conforms (or departs, for a reservation)
//!           MAX              never: the cost is greater than the burst
//!           MAX - 1          contended: nothing charged, no verdict (cores with ldrex/strex or lr/sc only)
//!           MAX - 2          refused: a reservation that would wait longer than the limit's delay
//! ```
//!
//! Words and answers are those of [`Cell`] and [`Cell32`] under the same limit: big and small calls may be mixed on
//! one cell. See `gcra.rs` for the drawing. H + S is below a half of the word, so the three codes are free.
//!
//! Where the word is changed in a masked section, multiplication and clock conversion are done before it and the
//! rounding after it: the section holds the decode, the comparison and the store.
#![forbid(unsafe_code)]

use super::limit::{fresh, read, SmallLimit, SmallLimit32};
use crate::algorithms::gcra::encode;
use crate::answer::Outcome;
use crate::cell::{Cell, Cell32, ExclusiveCell};
use crate::sync::{step32, step64};

macro_rules! small {
    ($small:ident, $word:ty, $signed:ty, $limit:ident) => {
        /// A small answer; see the module.
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(transparent)]
        pub(crate) struct $small(pub $word);

        impl $small {
            pub const NEVER: $small = $small(<$word>::MAX);
            pub const CONTENDED: $small = $small(<$word>::MAX - 1);
            pub const REFUSED: $small = $small(<$word>::MAX - 2);

            #[inline(always)]
            pub fn outcome(self) -> Outcome {
                match self {
                    $small(0) => Outcome::Conforming,
                    $small::NEVER => Outcome::Never,
                    $small::CONTENDED => Outcome::Contended,
                    $small(ticks) => Outcome::NonConforming { retry_after: ticks as u64 },
                }
            }
        }

        impl $limit {
            /// Lead of a word: how far it lies ahead of now, 0 when empty or outside the window.
            ///
            /// A copy of `gcra::lead_of`. With that one, in the best of five forms tried, a 64-bit check on a Cortex-M0
            /// takes 256 bytes instead of 238 and 111 instructions instead of 100, and a denied 32-bit one of cost 1
            /// on a Cortex-M3 22 instructions instead of 20, above their budgets (`firmware/budget/test`).
            #[inline(always)]
            pub(crate) fn lead(&self, word: $word, now_q: $word) -> $word {
                self.lead_as::<false>(word, now_q)
            }

            /// As [`lead`](Self::lead), for a limit that the compiler knows where `FOLD`.
            #[inline(always)]
            fn lead_as<const FOLD: bool>(&self, word: $word, now_q: $word) -> $word {
                let lead = word.wrapping_sub(now_q);
                if word == 0 || lead > read::<FOLD, _>(&self.window) {
                    0
                } else {
                    lead
                }
            }

            /// A request of `charge` q-units: the answer, and the word to store if it conforms.
            ///
            /// A copy of `gcra::fits`, as one subtraction that gives verdict and wait. With that one a 64-bit check on
            /// a Cortex-M0 takes 248 bytes instead of 238, and a denied one of cost 1 56 instructions instead of 49,
            /// above their budgets.
            ///
            /// No overflow: lead <= H + S < half of the word and charge <= D, so that `limit - next` lies between
            /// -(H + S) and D: its sign tells the verdict, and its size the wait.
            #[inline(always)]
            pub(crate) fn take(
                &self,
                word: $word,
                now_q: $word,
                charge: impl Fn() -> $word,
            ) -> ($small, Option<$word>) {
                self.take_as::<false>(word, now_q, charge, |room| self.ticks_up(room))
            }

            /// As [`take`](Self::take), for a limit that the compiler knows where `FOLD`.
            #[inline(always)]
            fn take_as<const FOLD: bool>(
                &self,
                word: $word,
                now_q: $word,
                charge: impl Fn() -> $word,
                ticks_up: impl Fn($word) -> $word,
            ) -> ($small, Option<$word>) {
                let next = self.lead_as::<FOLD>(word, now_q).wrapping_add(charge());
                let room = read::<FOLD, _>(&self.limit).wrapping_sub(next);
                if (room as $signed) >= 0 {
                    ($small(0), Some(encode(now_q as u64, next as u64, <$word>::MAX as u64) as $word))
                } else {
                    ($small(ticks_up(room)), None)
                }
            }

            /// A reservation of `charge` q-units: the ticks until departure, and the word to store.
            #[inline(always)]
            pub(crate) fn reserve(
                &self,
                word: $word,
                now_q: $word,
                charge: $word,
            ) -> ($small, Option<$word>) {
                let next = self.lead(word, now_q).wrapping_add(charge);
                let room = fresh(&self.limit).wrapping_sub(next);
                let wait = if (room as $signed) >= 0 {
                    0
                } else if room.wrapping_neg() <= fresh(&self.delay) {
                    self.ticks_up(room)
                } else {
                    return ($small::REFUSED, None);
                };
                ($small(wait), Some(encode(now_q as u64, next as u64, <$word>::MAX as u64) as $word))
            }

            /// May a word be emptied? Only when it has expired by more than H + S, so that no caller whose clock is
            /// within the skew still counts it.
            #[inline(always)]
            pub(crate) const fn is_idle(&self, word: $word, now_q: $word) -> bool {
                let age = now_q.wrapping_sub(word);
                age > self.window && age < self.window.wrapping_neg()
            }
        }
    };
}

small!(Small, u64, i64, SmallLimit);
small!(Small32, u32, i32, SmallLimit32);

macro_rules! operations {
    ($cell:ident, $limit:ident, $small:ident, $word:ty, $signed:ty, $me:ident, ($($recv:tt)+), $step:expr) => {
        impl $cell {
            #[inline(always)]
            pub(crate) fn small_check($($recv)+, limit: &$limit, now: $word, cost: u32) -> $small {
                if cost > limit.burst {
                    return $small::NEVER;
                }
                let (now_q, charge) = (limit.now_q(now), limit.charge(cost));
                // Cost 0 looks and never writes.
                let look = charge == 0;
                $step($me, |word| match limit.take(word, now_q, || charge) {
                    (answer, _) if look => (answer, None),
                    other => other,
                })
                .unwrap_or($small::CONTENDED)
            }

            #[inline(always)]
            pub(crate) fn small_check1($($recv)+, limit: &$limit, now: $word) -> $small {
                let now_q = limit.now_q(now);
                $step($me, |word| limit.take(word, now_q, || fresh(&limit.t))).unwrap_or($small::CONTENDED)
            }

            #[inline(always)]
            pub(crate) fn small_reserve($($recv)+, limit: &$limit, now: $word, cost: u32) -> $small {
                if cost > limit.burst {
                    return $small::NEVER;
                }
                let (now_q, charge) = (limit.now_q(now), limit.charge(cost));
                let look = charge == 0;
                $step($me, |word| match limit.reserve(word, now_q, charge) {
                    (answer, _) if look => (answer, None),
                    other => other,
                })
                .unwrap_or($small::CONTENDED)
            }

            #[inline(always)]
            pub(crate) fn small_idle($($recv)+, limit: &$limit, now: $word) {
                let now_q = limit.now_q(now);
                // Contended: the cell is in use, so not idle.
                let _ = $step($me, |word| ((), if limit.is_idle(word, now_q) { Some(0) } else { None }));
            }

            /// Decides one request under a plain limit, as `check` does, with native arithmetic of this width.
            ///
            /// # Concurrency
            /// As `check`; where the core has no atomics of this width, one short masked section.
            #[inline]
            pub fn check_small($($recv)+, limit: &$limit, now: $word, cost: u32) -> Outcome {
                $me.small_check(limit, now, cost).outcome()
            }

            /// As [`check_small`](Self::check_small) for a limit that is a constant of the program: the compiler folds
            /// its numbers, and a constant cost, into the code, which is then smaller than a call with a limit in
            /// memory. Of a limit that it does not know it makes more code.
            #[inline(always)]
            pub fn check_const($($recv)+, limit: $limit, now: $word, cost: u32) -> Outcome {
                if cost > limit.burst {
                    return Outcome::Never;
                }
                // shift <= 31.
                let now_q = now.wrapping_shl(limit.shift as u32);
                // It fits: cost <= burst.
                let charge = (cost as $word).wrapping_mul(limit.t);
                // As in `ticks_up`.
                let ticks_up =
                    |room: $word| ((room as $signed).wrapping_shr(limit.shift as u32) as $word).wrapping_neg();
                $step($me, |word| match limit.take_as::<true>(word, now_q, || charge, ticks_up) {
                    (answer, _) if charge == 0 => (answer, None),
                    other => other,
                })
                .unwrap_or($small::CONTENDED)
                .outcome()
            }

            /// Decides one request of cost 1: no multiplication.
            #[inline]
            pub fn check_unit($($recv)+, limit: &$limit, now: $word) -> Outcome {
                $me.small_check1(limit, now).outcome()
            }

            /// Reserves `cost` units for the earliest conforming instant, for shaping: `Ok` is the ticks until
            /// departure, 0 at once.
            ///
            /// Whoever checks the same cell meanwhile starves: reservations take every unit before it is there, and a
            /// check passes only where none waits. One cell is either polled or reserved from.
            ///
            /// # Errors
            /// Nothing was charged: `Never`, `Contended`, or `NonConforming` where it would wait longer than the
            /// limit's delay. Its retry time is not computed here and reads 0.
            #[inline]
            pub fn reserve_small($($recv)+, limit: &$limit, now: $word, cost: u32) -> Result<$word, Outcome> {
                match $me.small_reserve(limit, now, cost) {
                    $small::NEVER => Err(Outcome::Never),
                    $small::CONTENDED => Err(Outcome::Contended),
                    $small::REFUSED => Err(Outcome::NonConforming { retry_after: 0 }),
                    $small(ticks) => Ok(ticks),
                }
            }

            /// Empties the cell if it has long been idle, so that a wrapped clock cannot read it as a debt.
            ///
            /// Call it once per sweep interval, from any context, for cells that may rest longer than the limit's span;
            /// a cell that is charged more often needs none of it. It changes no answer.
            #[inline]
            pub fn idle($($recv)+, limit: &$limit, now: $word) {
                $me.small_idle(limit, now);
            }
        }
    };
}

operations!(Cell, SmallLimit, Small, u64, i64, self, (&self), |me: &Cell, f| step64(&me.word, f));
operations!(Cell32, SmallLimit32, Small32, u32, i32, self, (&self), |me: &Cell32, f| step32(&me.word, f));
operations!(ExclusiveCell, SmallLimit, Small, u64, i64, self, (&mut self), |me: &mut ExclusiveCell, f| me
    .update(f));
