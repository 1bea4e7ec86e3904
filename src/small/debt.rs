//! The operations other than a check: charges after the fact, refunds, and a debt that survives a reset.
//!
//! ```text
//!         now            TAT              now + D      now + H
//!  -------+---------------+-----------------+------------+------>      H = D + delay
//!         <---- debt ---->
//!  charge   TAT + c * T, up to now + H; the answer is the part that found no room
//!  refund   TAT - the part of c * T that has not drained since it was charged
//!  cancel   TAT - c * T, if TAT is still the end of the cancelled place
//!  set      now + debt, up to now + H
//! ```
//!
//! A refund needs no permit, because it counts the charge as draining from its own tick on. Of `c * T` charged at
//! `then` at most `c * T - (now - then)` is left, whatever debt lay before it. That is the rule of
//! [`strict_refunds`](crate::LimitSpec::strict_refunds): no order of refunds gives a unit twice.
//!
//! A reservation that still waits is cancelled, not refunded. The reservations behind it know when they leave; if the
//! TAT moved back below their places, the next one would leave too soon after them.
//!
//! A check calls nothing of this file, so firmware that does not use it does not contain it.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::cell::{Small, Small32};
use super::limit::{fresh, SmallLimit, SmallLimit32};
use crate::algorithms::gcra::encode;
use crate::answer::Outcome;
use crate::cell::{Cell, Cell32, ExclusiveCell};
use crate::sync::{step32, step64, Ordering};

macro_rules! limits {
    ($limit:ident, $word:ty) => {
        impl $limit {
            /// Returns H, the largest debt that a store makes.
            #[inline(always)]
            fn most(&self) -> $word {
                // Below half of the word.
                fresh(&self.limit).wrapping_add(fresh(&self.delay))
            }

            /// Returns the whole ticks of `q` q-units, which are below half of the word.
            #[inline(always)]
            fn ticks_down(&self, q: $word) -> $word {
                // ticks_up rounds a negative number up.
                self.ticks_up(q).wrapping_neg()
            }
        }
    };
}

limits!(SmallLimit, u64);
limits!(SmallLimit32, u32);

macro_rules! operations {
    (
        $cell:ident, $limit:ident, $small:ident, $word:ty, $me:ident, ($($recv:tt)+),
        $step:expr, $load:expr, $store:expr
    ) => {
        impl $cell {
            #[inline(always)]
            pub(super) fn small_charge($($recv)+, limit: &$limit, now: $word, cost: u32) -> $small {
                if cost > limit.burst {
                    return $small::NEVER;
                }
                let (now_q, charge) = (limit.now_q(now), limit.charge(cost));
                $step($me, |word| {
                    let (lead, most) = (limit.lead(word, now_q), limit.most());
                    // Both terms are below half of the word.
                    let wanted = lead.wrapping_add(charge);
                    // An older clock reading may see a lead above H; the charge must not lower it.
                    let room = if lead > most { lead } else { most };
                    let next = if wanted < room { wanted } else { room };
                    let left = $small(limit.ticks_up(next.wrapping_sub(wanted)));
                    (left, if next == lead { None } else { Some(stored(now_q, next)) })
                })
                .unwrap_or($small::CONTENDED)
            }

            #[inline(always)]
            pub(super) fn small_refund($($recv)+, limit: &$limit, now: $word, then: $word, cost: u32) -> $small {
                if cost > limit.burst {
                    return $small(0);
                }
                let now_q = limit.now_q(now);
                let age = now_q.wrapping_sub(limit.now_q(then));
                let credit = limit.charge(cost).saturating_sub(age);
                $step($me, |word| {
                    let lead = limit.lead(word, now_q);
                    let back = if credit < lead { credit } else { lead };
                    let next = if back == 0 { None } else { Some(stored(now_q, lead.wrapping_sub(back))) };
                    ($small(limit.ticks_down(back)), next)
                })
                .unwrap_or($small::CONTENDED)
            }

            #[inline(always)]
            pub(super) fn small_cancel(
                $($recv)+,
                limit: &$limit,
                now: $word,
                then: $word,
                wait: $word,
                cost: u32,
            ) -> $small {
                let now_q = limit.now_q(now);
                let age = now_q.wrapping_sub(limit.now_q(then));
                // The most that was owed when the place was taken (`wait` is rounded up); below half of the word.
                let place = fresh(&limit.limit).wrapping_add(limit.now_q(wait));
                if cost > limit.burst || age >= place {
                    return $small(0);
                }
                let charge = limit.charge(cost);
                let credit = if wait == 0 { charge.saturating_sub(age) } else { charge };
                $step($me, |word| {
                    let lead = limit.lead(word, now_q);
                    // A later reservation owes more than `place`. No overflow, because age < place.
                    let last = lead.wrapping_add(age) <= place;
                    let back = if !last {
                        0
                    } else if credit < lead {
                        credit
                    } else {
                        lead
                    };
                    let next = if back == 0 { None } else { Some(stored(now_q, lead.wrapping_sub(back))) };
                    ($small(limit.ticks_down(back)), next)
                })
                .unwrap_or($small::CONTENDED)
            }

            /// Charges what was sent anyway, after the fact: a transmission that took longer than foreseen. Returns the
            /// ticks of debt that found no room; 0 if all is charged.
            ///
            /// The debt grows up to the burst plus the limit's delay, so a limit [with a delay](SmallLimit::shaped) has
            /// room above the burst.
            ///
            /// # Errors
            /// Nothing was charged: `Never` if the cost is above the burst (charge it in parts), or `Contended`.
            #[inline]
            pub fn charge_small($($recv)+, limit: &$limit, now: $word, cost: u32) -> Result<$word, Outcome> {
                match $me.small_charge(limit, now, cost) {
                    $small::NEVER => Err(Outcome::Never),
                    $small::CONTENDED => Err(Outcome::Contended),
                    $small(left) => Ok(left),
                }
            }

            /// Gives back `cost` units that were charged at tick `then`, for a transmission, or a part of it, that did
            /// not take place. Returns the ticks of debt taken off, rounded down; 0 if all has drained already.
            ///
            /// No permit is needed: the charge counts as draining from `then` on, so that no order of refunds gives
            /// back what time has given back already. Refund a charge once, by the clock that charged it, and within
            /// the limit's span.
            ///
            /// # Errors
            /// `Contended`: nothing changed; ask again.
            #[inline]
            pub fn refund_small(
                $($recv)+,
                limit: &$limit,
                now: $word,
                then: $word,
                cost: u32,
            ) -> Result<$word, Outcome> {
                match $me.small_refund(limit, now, then, cost) {
                    $small::CONTENDED => Err(Outcome::Contended),
                    $small(ticks) => Ok(ticks),
                }
            }

            /// Gives up a reservation of `cost` units that was made at tick `then`, was told to wait for `wait` ticks,
            /// and does not leave. Returns the ticks of debt taken off, rounded down.
            ///
            /// If it was the last place, all of it is taken off (if it could leave at once, what has not drained). If
            /// another one waits behind it, nothing is: that one leaves when it was told, and the next reservation
            /// would leave too soon after it. Cancel a reservation once, by the clock that reserved it. Refund no
            /// checks of a cell that takes reservations.
            ///
            /// # Errors
            /// `Contended`: nothing changed; ask again.
            #[inline]
            pub fn cancel_small(
                $($recv)+,
                limit: &$limit,
                now: $word,
                then: $word,
                wait: $word,
                cost: u32,
            ) -> Result<$word, Outcome> {
                match $me.small_cancel(limit, now, then, wait, cost) {
                    $small::CONTENDED => Err(Outcome::Contended),
                    $small(ticks) => Ok(ticks),
                }
            }

            /// Returns the debt: the ticks until the full burst is available again, rounded up. Save it over a reset or
            /// over a sleep that stops the clock, and [set](Self::set_debt) it afterwards.
            #[inline]
            pub fn debt(&self, limit: &$limit, now: $word) -> $word {
                limit.ticks_up(limit.lead($load(self), limit.now_q(now)).wrapping_neg())
            }

            /// Sets the debt, whatever it was: the full burst is available `ticks` after `now`. A debt that no charge
            /// could have made is cut to burst plus delay.
            ///
            /// After a sleep of `asleep` ticks set `saved.saturating_sub(asleep)`, with `asleep` rounded down. Then the
            /// cell forgives nothing, and refuses nothing for more than two ticks longer than if the clock had run on.
            ///
            /// # Concurrency
            /// One store: a charge of another context at the same time is lost.
            #[inline]
            pub fn set_debt($($recv)+, limit: &$limit, now: $word, ticks: $word) {
                let most = limit.most();
                let lead = if ticks > limit.ticks_down(most) { most } else { limit.now_q(ticks) };
                let word = if lead == 0 { 0 } else { stored(limit.now_q(now), lead) };
                $store($me, word);
            }
        }
    };
}

/// A word of either width.
trait Stored {
    fn stored(now_q: Self, lead: Self) -> Self;
}

impl Stored for u64 {
    #[inline(always)]
    fn stored(now_q: u64, lead: u64) -> u64 {
        encode(now_q, lead, u64::MAX)
    }
}

impl Stored for u32 {
    #[inline(always)]
    fn stored(now_q: u32, lead: u32) -> u32 {
        encode(now_q as u64, lead as u64, u32::MAX as u64) as u32
    }
}

/// Makes the word of a lead.
#[inline(always)]
fn stored<W: Stored>(now_q: W, lead: W) -> W {
    W::stored(now_q, lead)
}

operations!(
    Cell,
    SmallLimit,
    Small,
    u64,
    self,
    (&self),
    |me: &Cell, f| step64(&me.word, f),
    // ORDERING: Relaxed, load and store; single word, value only.
    |me: &Cell| me.word.load(Ordering::Relaxed),
    |me: &Cell, word| me.word.store(word, Ordering::Relaxed)
);
operations!(
    Cell32,
    SmallLimit32,
    Small32,
    u32,
    self,
    (&self),
    |me: &Cell32, f| step32(&me.word, f),
    // ORDERING: Relaxed, as above.
    |me: &Cell32| me.word.load(Ordering::Relaxed),
    |me: &Cell32, word| me.word.store(word, Ordering::Relaxed)
);
operations!(
    ExclusiveCell,
    SmallLimit,
    Small,
    u64,
    self,
    (&mut self),
    |me: &mut ExclusiveCell, f| me.update(f),
    |me: &ExclusiveCell| me.word(),
    |me: &mut ExclusiveCell, word| *me = ExclusiveCell::from_word(word)
);
