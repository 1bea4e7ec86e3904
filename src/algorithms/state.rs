//! What the algorithms have in common: the operations, and states that are a time and a count.
//!
//! ```text
//!  word   [             busy : F             ][     aux : a     ]   0 = EMPTY; a computed 0 is stored as 1
//!
//!         t                busy                  t + H               t + H + S
//!  -------+------------------+----------------------+---------------------+------->
//!   absent  <--- ahead ----> |      what a store may reach    | skew      |  absent
//! ```
//!
//! busy is a time in units u of 2^z ticks, never the number of a window: the first unit in which the key may be
//! forgotten. aux is what the algorithm counts. The code that drives words knows neither. It knows how far a word lies
//! ahead of the clock, as for a TAT. So the clock is `t` with all aux bits set, past every count of its moment, and
//! `lead = (busy - t) * 2^a + aux - (2^a - 1)` is above 0 exactly while busy is ahead of t. Words wrap after 2^F units:
//! an idle key may then read as busy for at most H + S, which refuses requests and never admits one.
//!
//! A stored busy time falls only by a reset. A clock that is behind finds the state of the later window, and uses it as
//! it is.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::answer::Step;
use crate::limit::params::Params;

/// One operation of an algorithm, on the state of one key.
pub(crate) trait Operation {
    /// Maps a state that lies `lead` q-units ahead to the answer and to how far ahead the next state lies, if there is
    /// one. A lead of 0 is the state of an absent key.
    fn step(&self, lead: u64) -> Step;

    /// Does the same as `step(0)`, for an absent key, with the common case first.
    fn first_step(&self) -> Step;

    /// Returns whether the limit passes requests that it would refuse, flagged and uncharged.
    fn shadows(&self) -> bool;

    /// Returns how far ahead a newly inserted key lies if the claim on its slot lies `claim` ahead: at least `lead`,
    /// and so far that no later claim of the slot can bring back a word that the slot has held.
    fn commit_lead(&self, lead: u64, claim: u64) -> u64;

    /// Returns how much of `stored` a permit may give back if its word lies `above` its claim: the word must stay above
    /// it.
    fn refundable(&self, stored: u64, above: u64) -> u64;
}

/// An operation as a value: cells and tables carry it through their retry loops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op<'a> {
    pub p: &'a Params,
    pub kind: Kind,
    /// The units asked for. For the refund of a count: how far ahead the charged word lay.
    pub cost: u64,
    /// Check: elastic room in units. Refund: credit in q-units, or in counted units. Reserve: q-units before which the
    /// request may not leave.
    pub amount: u64,
}

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Check,
    Charge,
    Reserve,
    Refund,
}

impl<'a> Op<'a> {
    #[inline(always)]
    pub const fn new(p: &'a Params, kind: Kind, cost: u64, amount: u64) -> Op<'a> {
        Op { p, kind, cost, amount }
    }
}

/// Says what happens to a key's state when its limit changes.
///
/// ```
/// use tatcell::{Cell, Change, Limit};
/// let (cell, old, new) = (Cell::new(), Limit::new(10, 1_000, 20)?, Limit::new(20, 1_000, 20)?); // milliseconds
/// assert!(cell.check(&old, 0, 20).passes()); // 2 s until full
/// assert!(cell.change(&old, &new, 0, Change::KeepUnits)?);
/// assert_eq!(cell.peek(&new, 0, 0).reset_after, 1_000); // 20 units short, at twice the rate
/// # Ok::<(), tatcell::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Keeps the debt in time: a key that needed 2 s to be full still needs 2 s, whatever the new rate.
    KeepTime,
    /// Keeps the debt in units: a key that was 7 units short of full still is.
    KeepUnits,
    /// Starts the key full.
    Reset,
}

/// Scales a lead from units of `from` q-units each to units of `to` q-units each, rounded up. Only a forged limit has a
/// `from` of 0.
pub(super) fn scaled(lead: u64, to: u64, from: u64) -> u64 {
    match from {
        0 => 0,
        from => {
            let exact = (lead as u128).wrapping_mul(to as u128).div_ceil(from as u128);
            u64::try_from(exact).unwrap_or(u64::MAX)
        }
    }
}

/// The state of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// Units of time until the key may be forgotten; 0 = absent.
    pub ahead: u64,
    /// What the algorithm counts; 0 when absent.
    pub aux: u64,
}

impl State {
    pub const ABSENT: State = State { ahead: 0, aux: 0 };

    /// Returns the state that lies `lead` q-units ahead.
    #[inline(always)]
    pub const fn of(p: &Params, lead: u64) -> State {
        State::split(p.shl as u32, lead)
    }

    /// Returns the state that lies `lead` q-units ahead, for words with `bits` aux bits.
    #[inline(always)]
    pub const fn split(bits: u32, lead: u64) -> State {
        if lead == 0 {
            return State::ABSENT;
        }
        let mask = 1u64.wrapping_shl(bits).wrapping_sub(1);
        let place = lead.wrapping_add(mask);
        State { ahead: place.wrapping_shr(bits), aux: place & mask }
    }

    /// Returns how many q-units ahead the state lies. No overflow: `(ahead << a) <= ((H + S) << a) < 2^63`.
    #[inline(always)]
    pub const fn lead(self, p: &Params) -> u64 {
        self.join(p.shl as u32)
    }

    /// Returns the same time with a count that fits `bits` aux bits, and whether the count was cut.
    pub const fn cut(self, bits: u32) -> (State, bool) {
        let most = 1u64.wrapping_shl(bits).wrapping_sub(1);
        if self.aux > most {
            (State { aux: most, ..self }, true)
        } else {
            (self, false)
        }
    }

    /// Returns how many q-units ahead the state lies, for words with `bits` aux bits.
    #[inline(always)]
    pub const fn join(self, bits: u32) -> u64 {
        if self.ahead == 0 {
            return 0;
        }
        let mask = 1u64.wrapping_shl(bits).wrapping_sub(1);
        (self.ahead.wrapping_shl(bits) | self.aux).wrapping_sub(mask)
    }
}

/// The limit and the instant for which a state is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    pub p: &'a Params,
    /// The caller's clock, in ticks.
    pub now: u64,
}

impl At<'_> {
    /// Returns the window in units of time, rounded up to whole ones.
    #[inline(always)]
    pub const fn window(&self) -> u64 {
        // A period is at least one tick, so nothing wraps.
        self.p.period.wrapping_sub(1).wrapping_shr(self.p.shr as u32).wrapping_add(1)
    }

    /// Returns the ticks until `units` units of time have passed.
    #[inline(always)]
    pub const fn ticks(&self, units: u64) -> u64 {
        self.p.ticks_up(units.wrapping_shl(self.p.shl as u32), self.now)
    }

    /// Returns the units of time from the current one to the first that starts at or after `ticks` from now.
    #[inline(always)]
    pub const fn units_until(&self, ticks: u64) -> u64 {
        let (z, part) = (self.p.shr as u32, 1u64.wrapping_shl(self.p.shr as u32).wrapping_sub(1));
        // The part of this unit that has passed, and a window: below 2^64, because (H + S) * u is below 2^63.
        (self.now & part).wrapping_add(ticks).wrapping_add(part).wrapping_shr(z)
    }

    /// Returns how far the coarser clock of another limit lies behind this one's, in its units of time, rounded up.
    pub const fn units_behind(&self, to: &At<'_>) -> u64 {
        if to.p.shr > self.p.shr {
            to.units_until(0)
        } else {
            0
        }
    }

    /// Converts a time `ahead` units ahead to the units of another limit at the same instant, rounded up. Each time
    /// includes the guard of its limit.
    pub const fn units_in(&self, to: &At<'_>, ahead: u64) -> u64 {
        let (z, w) = (self.p.shr as u32, to.p.shr as u32);
        let end = (self.now.wrapping_shr(z) as i128).wrapping_add(ahead as i128);
        let ticks = end.wrapping_sub(self.p.guard as i128).wrapping_shl(z);
        let part = 1i128.wrapping_shl(w).wrapping_sub(1);
        let end = ticks.wrapping_add(part).wrapping_shr(w).wrapping_add(to.p.guard as i128);
        let ahead = end.wrapping_sub(to.now.wrapping_shr(w) as i128);
        if ahead > 0 {
            ahead as u64
        } else {
            0
        }
    }
}
