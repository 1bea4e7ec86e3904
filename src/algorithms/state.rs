//! What the algorithms have in common: operations, and the states that are a time and a count.
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
//! forgotten. aux is what the algorithm counts. What drives words knows neither; it knows how far a word lies ahead of
//! the clock, as it does for a TAT. The clock therefore enters behind every count of its moment, as `t` with all aux
//! bits set, and then `lead = (busy - t) * 2^a + aux - (2^a - 1)`: above 0 exactly while busy is ahead of t. Wraps
//! after 2^F units; an idle key may then read as busy for at most H + S, which refuses and never admits.
//!
//! A busy that is stored never falls but by a reset: a clock that is behind finds the state of the later window and
//! uses it as it stands.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::answer::Step;
use crate::limit::params::Params;

/// One operation of an algorithm, on the state of one key.
pub(crate) trait Operation {
    /// What the operation does to a state that lies `lead` q-units ahead: the answer, and how far ahead the next one
    /// lies if there is one. 0 is the state of an absent key.
    fn step(&self, lead: u64) -> Step;

    /// What the operation does to an absent key: as `step(0)`, with the common case first.
    fn first_step(&self) -> Step;

    /// Does its limit pass what it would refuse, flagged and uncharged?
    fn shadows(&self) -> bool;

    /// How far ahead a key that has just been inserted lies, where the claim on its slot lies `claim` ahead: never less
    /// than `lead`, and so far that no later claim of the slot brings a word back that it has held.
    fn commit_lead(&self, lead: u64, claim: u64) -> u64;

    /// How much of what was `stored` a permit may give back where its word lies `above` its claim: no more than leaves
    /// it above.
    fn refundable(&self, stored: u64, above: u64) -> u64;
}

/// An operation, as a value: what cells and tables carry through their retry loops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op<'a> {
    pub p: &'a Params,
    pub kind: Kind,
    /// Units asked for. Refund of a count: how far ahead the word lay that was charged.
    pub cost: u64,
    /// Elastic room in units (check), credit in q-units or units counted (refund), or q-units
    /// before which it may not leave (reserve).
    pub amount: u64,
}

/// Which operation.
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

/// What a key's state becomes when its limit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The debt stays the same in time: 2 s until full remain 2 s, whatever the new rate.
    KeepTime,
    /// The debt stays the same in units: 7 units short of full remain 7 units short.
    KeepUnits,
    /// The key starts full.
    Reset,
}

/// Scales a lead to units that take `to` q-units each, where they took `from`: rounded up. `from` is 0 only in a forged
/// limit.
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

    /// The state that lies so many q-units ahead.
    #[inline(always)]
    pub const fn of(p: &Params, lead: u64) -> State {
        State::split(p.shl as u32, lead)
    }

    /// As [`of`](State::of) for words with so many aux bits.
    #[inline(always)]
    pub const fn split(bits: u32, lead: u64) -> State {
        if lead == 0 {
            return State::ABSENT;
        }
        let mask = 1u64.wrapping_shl(bits).wrapping_sub(1);
        let place = lead.wrapping_add(mask);
        State { ahead: place.wrapping_shr(bits), aux: place & mask }
    }

    /// How many q-units ahead it lies. No overflow: ahead is at most H + S, and `(H + S) << a` is below 2^63.
    #[inline(always)]
    pub const fn lead(self, p: &Params) -> u64 {
        self.join(p.shl as u32)
    }

    /// The same time with the largest count that so many aux bits hold, where its own is larger; and whether it is.
    pub const fn cut(self, bits: u32) -> (State, bool) {
        let most = 1u64.wrapping_shl(bits).wrapping_sub(1);
        if self.aux > most {
            (State { aux: most, ..self }, true)
        } else {
            (self, false)
        }
    }

    /// As [`lead`](State::lead) for words with so many aux bits.
    #[inline(always)]
    pub const fn join(self, bits: u32) -> u64 {
        if self.ahead == 0 {
            return 0;
        }
        let mask = 1u64.wrapping_shl(bits).wrapping_sub(1);
        (self.ahead.wrapping_shl(bits) | self.aux).wrapping_sub(mask)
    }
}

/// When and under which limit a state is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    pub p: &'a Params,
    /// The caller's clock, in ticks.
    pub now: u64,
}

impl At<'_> {
    /// The window, in units of time: the limit's own, rounded up to whole ones.
    #[inline(always)]
    pub const fn window(&self) -> u64 {
        // At least one tick, so nothing wraps.
        self.p.period.wrapping_sub(1).wrapping_shr(self.p.shr as u32).wrapping_add(1)
    }

    /// Ticks until so many units of time have passed.
    #[inline(always)]
    pub const fn ticks(&self, units: u64) -> u64 {
        self.p.ticks_up(units.wrapping_shl(self.p.shl as u32), self.now)
    }

    /// Units of time from the current one to the first that starts at or after `ticks` from now.
    #[inline(always)]
    pub const fn units_until(&self, ticks: u64) -> u64 {
        let (z, part) = (self.p.shr as u32, 1u64.wrapping_shl(self.p.shr as u32).wrapping_sub(1));
        // The part of this unit that has passed and a window: below 2^64, for (H + S) * u is below 2^63.
        (self.now & part).wrapping_add(ticks).wrapping_add(part).wrapping_shr(z)
    }

    /// A time so many units ahead, in the units of another limit at the same instant: rounded up, each with its guard.
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
