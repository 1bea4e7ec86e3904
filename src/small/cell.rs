//! The small checks: they decide under a plain limit, on one state word, in the width of the cell.
//!
//! ```text
//!  answer   0                passes
//!           1 ..= window     ticks until the same request conforms (or departs, for a reservation)
//!           MAX              never: the cost is greater than the burst
//!           MAX - 1          contended: nothing charged, no verdict (cores with ldrex/strex or lr/sc only)
//!           MAX - 2          refused: a reservation that would wait longer than the limit's delay
//! ```
//!
//! Words and answers are those of [`Cell`] and [`Cell32`] under the same limit, so one cell can take both big and small
//! calls. See `gcra.rs` for the drawing. H + S is below half of the word, so the three codes are free.
//!
//! If a masked section changes the word, the multiplication and the clock's conversion come before it, and the rounding
//! after it: the section contains the decode, the comparison and the store.
#![forbid(unsafe_code)]

use super::limit::{fresh, read, SmallLimit, SmallLimit32};
use crate::algorithms::gcra::encode;
use crate::answer::Outcome;
use crate::cell::{Cell, Cell32, ExclusiveCell};
use crate::sync::{step32, step64};

macro_rules! small {
    ($small:ident, $word:ty, $signed:ty, $limit:ident) => {
        /// A small answer; the module doc lists its values.
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
            /// Returns the lead of a word: how far it lies ahead of now, 0 if it is empty or outside the window.
            ///
            /// This is a copy of `gcra::lead_of`. In the best of five forms tried, `lead_of` makes a 64-bit check on a
            /// Cortex-M0 256 bytes instead of 238, and 111 instructions instead of 100. A denied 32-bit check of cost 1
            /// on a Cortex-M3 takes 22 instructions instead of 20. Both exceed `firmware/budget/test`.
            #[inline(always)]
            pub(crate) fn lead(&self, word: $word, now_q: $word) -> $word {
                self.lead_as::<false>(word, now_q)
            }

            /// Returns the lead of a word; with `FOLD` for a limit that is a constant of the program.
            #[inline(always)]
            fn lead_as<const FOLD: bool>(&self, word: $word, now_q: $word) -> $word {
                let lead = word.wrapping_sub(now_q);
                if word == 0 || lead > read::<FOLD, _>(&self.window) {
                    0
                } else {
                    lead
                }
            }

            /// Decides a request of `charge` q-units: returns the answer, and the word to store if it conforms.
            ///
            /// This is a copy of `gcra::fits`: one subtraction gives both verdict and wait. `fits` makes a 64-bit check
            /// on a Cortex-M0 248 bytes instead of 238, and a denied check of cost 1 takes 56 instructions instead of
            /// 49, above their budgets.
            ///
            /// No overflow: lead <= H + S < half of the word and charge <= D, so `limit - next` lies between -(H + S)
            /// and D. Its sign is the verdict, and its size the wait.
            #[inline(always)]
            pub(crate) fn take(
                &self,
                word: $word,
                now_q: $word,
                charge: impl Fn() -> $word,
            ) -> ($small, Option<$word>) {
                self.take_as::<false>(word, now_q, charge, |room| self.ticks_up(room))
            }

            /// Decides a request like [`take`](Self::take); with `FOLD` for a limit that is a constant of the program.
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

            /// Reserves `charge` q-units: returns the ticks until departure, and the word to store.
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

            /// Returns whether a word may be emptied: it must have expired by more than H + S, so that it does not
            /// count for any caller whose clock is within the skew.
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
                // Cost 0 only peeks: it never writes.
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
                // If it is contended, the cell is in use and so not idle.
                let _ = $step($me, |word| ((), if limit.is_idle(word, now_q) { Some(0) } else { None }));
            }

            /// Decides one request under a plain limit: the answer of `check`, with native arithmetic of this width.
            ///
            /// # Concurrency
            /// That of `check`. If the core has no atomics of this width, the call is one short masked section.
            #[inline]
            pub fn check_small($($recv)+, limit: &$limit, now: $word, cost: u32) -> Outcome {
                $me.small_check(limit, now, cost).outcome()
            }

            /// Decides one request under a limit that is a constant of the program. The compiler folds the limit's
            /// numbers, and a constant cost, into the code, which makes it smaller than a call with a limit in memory.
            /// For a limit that is not a constant, [`check_small`](Self::check_small) makes less code.
            #[inline(always)]
            pub fn check_const($($recv)+, limit: $limit, now: $word, cost: u32) -> Outcome {
                if cost > limit.burst {
                    return Outcome::Never;
                }
                // shift <= 31.
                let now_q = now.wrapping_shl(limit.shift as u32);
                // It fits, because cost <= burst.
                let charge = (cost as $word).wrapping_mul(limit.t);
                // The same as `ticks_up`.
                let ticks_up =
                    |room: $word| ((room as $signed).wrapping_shr(limit.shift as u32) as $word).wrapping_neg();
                $step($me, |word| match limit.take_as::<true>(word, now_q, || charge, ticks_up) {
                    (answer, _) if charge == 0 => (answer, None),
                    other => other,
                })
                .unwrap_or($small::CONTENDED)
                .outcome()
            }

            /// Decides one request of cost 1, without a multiplication.
            #[inline]
            pub fn check_unit($($recv)+, limit: &$limit, now: $word) -> Outcome {
                $me.small_check1(limit, now).outcome()
            }

            /// Reserves `cost` units for the earliest conforming instant, for shaping. `Ok` is the ticks until
            /// departure; 0 means at once.
            ///
            /// A caller that checks the same cell meanwhile starves: reservations take every unit in advance, and a
            /// check passes only when none waits. Use each cell either for checks or for reservations.
            ///
            /// # Errors
            /// Nothing was charged: `Never`, `Contended`, or `NonConforming` if the request would wait longer than the
            /// limit's delay. Its retry time is not computed and is 0.
            #[inline]
            pub fn reserve_small($($recv)+, limit: &$limit, now: $word, cost: u32) -> Result<$word, Outcome> {
                match $me.small_reserve(limit, now, cost) {
                    $small::NEVER => Err(Outcome::Never),
                    $small::CONTENDED => Err(Outcome::Contended),
                    $small::REFUSED => Err(Outcome::NonConforming { retry_after: 0 }),
                    $small(ticks) => Ok(ticks),
                }
            }

            /// Empties a cell that has long been idle, so that a wrapped clock cannot read it as a debt.
            ///
            /// Call it once per sweep interval, from any context, for cells that may rest longer than the limit's span.
            /// A cell that is charged more often does not need it. It changes no answer.
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
