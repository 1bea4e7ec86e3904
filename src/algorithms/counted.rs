//! The dispatch for any algorithm: the list of those that count, and the calls that ask the one that a limit names.
//!
//! GCRA is asked first and directly, so that the others cost it nothing. They are dispatched at run time; each is one
//! file and one line of the list.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::state::{At, Change, Kind, Op, Operation, State};
use super::{decay, fixed_window, gcra, quota_linear, sliding_counter};
use crate::answer::{Answer, Decision, Numbers, Permit, Step, Tracking, Verdict};
use crate::limit::params::{Params, FLAG_SHADOW};
use crate::limit::{Algorithm, LimitError};

/// Lists the algorithms whose state is a time and a count. Each has a file with these functions:
///
/// - `fit(at, state, cost, most)`: returns the state after `cost` more units if that counts at most `most` (in the
///   scale of `Params::burst_q`), else the units of time after which it would;
/// - `add(at, state, cost)`: adds as many of `cost` units as the debt cap allows; returns the state and their number;
/// - `refund(at, state, charged, cost)`: takes back units that were charged when busy was `charged` ahead, and returns
///   the state and their number. Decay: `cost` is what is left of them, in the scale of its level. If nothing comes
///   back, the state is the same;
/// - `numbers(at, state)`: returns what is left, and when there will be more;
/// - `change(from, to, state, how)`: returns the state that has counted the same under another limit, and whether it
///   counts less because the new word cannot hold more;
/// - `merge(bits, a, b)`: makes one state, with `bits` aux bits, from two words of one key. It owes at least what
///   either does.
macro_rules! counted {
    ($($name:ident $file:ident),+ $(,)?) => {
        fn fit(at: At<'_>, state: State, cost: u64, most: u64) -> Result<State, u64> {
            match at.p.algorithm {
                $(n if n == Algorithm::$name as u8 => $file::fit(at, state, cost, most),)+
                _ => Err(u64::MAX),
            }
        }

        fn add(at: At<'_>, state: State, cost: u64) -> (State, u64) {
            match at.p.algorithm {
                $(n if n == Algorithm::$name as u8 => $file::add(at, state, cost),)+
                _ => (state, 0),
            }
        }

        fn give_back(at: At<'_>, state: State, charged: State, cost: u64) -> (State, u64) {
            match at.p.algorithm {
                $(n if n == Algorithm::$name as u8 => $file::refund(at, state, charged, cost),)+
                _ => (state, 0),
            }
        }

        /// Merges two states of one key that a restore or a migration brought together; q-units ahead of one clock.
        pub(crate) fn merge(algorithm: Algorithm, bits: u32, a: u64, b: u64) -> u64 {
            let states = (State::split(bits, a), State::split(bits, b));
            match algorithm {
                $(Algorithm::$name => $file::merge(bits, states.0, states.1).join(bits),)+
                _ => a.max(b),
            }
        }

        fn changed(from: At<'_>, to: At<'_>, state: State, how: Change) -> (State, bool) {
            match to.p.algorithm {
                $(n if n == Algorithm::$name as u8 => $file::change(from, to, state, how),)+
                _ => (state, false),
            }
        }

        fn numbers_of(at: At<'_>, state: State) -> Numbers {
            match at.p.algorithm {
                $(n if n == Algorithm::$name as u8 => $file::numbers(at, state),)+
                _ => Numbers { remaining: 0, next_unit: 0, reset_after: 0 },
            }
        }
    };
}

counted! {
    FixedWindow fixed_window,
    SlidingCounter sliding_counter,
    QuotaLinear quota_linear,
    Decay decay,
}

/// An operation of a limit that counts, at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    op: &'a Op<'a>,
    now: u64,
}

impl<'a> Call<'a> {
    #[inline(always)]
    pub const fn new(op: &'a Op<'a>, now: u64) -> Call<'a> {
        Call { op, now }
    }

    const fn at(&self) -> At<'a> {
        At { p: self.op.p, now: self.now }
    }

    /// Decides a request: it passes iff the count is then at most the limit plus the room.
    #[inline(always)]
    fn check(&self, lead: u64) -> Step {
        let Op { p, cost, amount, .. } = *self.op;
        let room = if amount < p.room { amount } else { p.room };
        let shadow = p.has(FLAG_SHADOW);
        if cost > p.burst.saturating_add(room) {
            return if shadow {
                Step::keep(Verdict::Conforming, Decision::SHADOW, lead, u64::MAX)
            } else {
                Step::keep(Verdict::Never, 0, lead, u64::MAX)
            };
        }
        let most = p.burst_q.saturating_add(room.saturating_mul(p.t_q));
        match fit(self.at(), State::of(p, lead), cost, most) {
            Ok(next) => self.pass(lead, next, cost),
            Err(wait) => {
                let wait = wait.wrapping_shl(p.shl as u32);
                if shadow {
                    Step::keep(Verdict::Conforming, Decision::SHADOW, lead, wait)
                } else {
                    Step::keep(Verdict::NonConforming, 0, lead, wait)
                }
            }
        }
    }

    /// Charges after the fact, up to the debt cap.
    fn charge(&self, lead: u64) -> Step {
        let (next, stored) = add(self.at(), State::of(self.op.p, lead), self.op.cost);
        self.pass(lead, next, stored)
    }

    /// Makes the step of `stored` units that passed; 0 units change nothing.
    #[inline(always)]
    fn pass(&self, lead: u64, next: State, stored: u64) -> Step {
        if stored == 0 {
            return Step::keep(Verdict::Conforming, 0, lead, 0);
        }
        let p = self.op.p;
        let flags = if p.soft_q == u64::MAX && p.room == 0 { 0 } else { self.flags(next) };
        let lead = next.lead(p);
        let answer = Answer { verdict: Verdict::Conforming, flags, lead, wait: 0, stored };
        Step { answer, store: Some(lead) }
    }

    /// Returns the flags of a request after which this is the state.
    #[cold]
    fn flags(&self, next: State) -> u32 {
        let (p, at) = (self.op.p, self.at());
        let above = |most: u64| fit(at, next, 0, most).is_err();
        let soft = p.soft_q != u64::MAX && above(p.soft_q);
        let room = matches!(self.op.kind, Kind::Check) && self.op.amount.min(p.room) != 0;
        let soft = if soft { Decision::SOFT } else { 0 };
        soft | if room && above(p.burst_q) { Decision::ELASTIC } else { 0 }
    }

    /// Gives back `amount` units that were charged when the word lay `cost` q-units ahead.
    fn refund(&self, lead: u64) -> Step {
        let Op { p, cost, amount, .. } = *self.op;
        let state = State::of(p, lead);
        let (next, stored) = match (state, State::of(p, cost)) {
            (State { ahead: 0, .. }, _) | (_, State { ahead: 0, .. }) => (state, 0),
            (state, charged) => give_back(self.at(), state, charged, amount),
        };
        let (same, next) = (next == state, next.lead(p));
        let answer = Answer { verdict: Verdict::Conforming, flags: 0, lead: next, wait: 0, stored };
        Step { answer, store: if same { None } else { Some(next) } }
    }
}

impl Operation for Call<'_> {
    #[inline]
    fn step(&self, lead: u64) -> Step {
        match self.op.kind {
            Kind::Check => self.check(lead),
            Kind::Charge => self.charge(lead),
            // Only GCRA knows when a request may leave.
            Kind::Reserve => Step::keep(Verdict::Never, 0, lead, u64::MAX),
            Kind::Refund => self.refund(lead),
        }
    }

    fn first_step(&self) -> Step {
        self.step(0)
    }

    fn shadows(&self) -> bool {
        self.op.shadows()
    }

    /// Returns the later of the two times with the key's count. The result may lie below the claim by part of a unit:
    /// the slot is not taken again before that time, and then every claim on it lies above.
    fn commit_lead(&self, lead: u64, claim: u64) -> u64 {
        let p = self.op.p;
        let (state, claim) = (State::of(p, lead), State::of(p, claim));
        let ahead = if state.ahead > claim.ahead { state.ahead } else { claim.ahead };
        State { ahead, ..state }.lead(p)
    }

    /// Returns all of it: a refund lowers only the count, never the time (for decay see `Table::refund`).
    fn refundable(&self, stored: u64, _: u64) -> u64 {
        stored
    }
}

/// Checks whether a change between these limits can keep what a key has counted.
pub(crate) const fn keeps(old: &Params, new: &Params) -> Result<(), LimitError> {
    if old.algorithm != new.algorithm {
        return Err(LimitError::BadAlgorithm);
    }
    // A level has no window: it decays by the new half-life from now on.
    let windows = !old.is_gcra() && old.algorithm != Algorithm::Decay as u8;
    if windows && old.period != new.period {
        return Err(LimitError::OtherWindow);
    }
    Ok(())
}

/// Returns whether every word means the same under both limits, so that a change has nothing to do: windows or
/// half-lives of one length, with the same bits and unit of time. A clock that is behind sees such a word beyond the
/// horizon, and must not cut it.
pub(crate) fn keeps_word(old: &Params, new: &Params) -> bool {
    let shape = |p: &Params| (p.algorithm, p.shl, p.shr, p.period);
    let counts = !matches!(new.algorithm(), Algorithm::Gcra | Algorithm::QuotaLinear);
    counts && shape(old) == shape(new) && old.horizon_q <= new.horizon_q
}

/// Returns how far ahead a key lies under `new` if it lies `lead` ahead under `old`, both of one algorithm. Also
/// returns whether that is less than before, because the new word cannot hold its count, level or debt.
pub(crate) fn change(old: &Params, new: &Params, lead: u64, now: u64, how: Change) -> (u64, bool) {
    if old.is_gcra() {
        return gcra::change(old, new, lead, now, how);
    }
    if lead == 0 {
        return (0, false);
    }
    let (next, cut) = changed(At { p: old, now }, At { p: new, now }, State::of(old, lead), how);
    let most = new.horizon_q.wrapping_shr(new.shl as u32);
    // An end in coarser units of time may lie up to one of them behind that of the window.
    let finer = (old.shr as u32).saturating_sub(new.shr as u32);
    let late = next.ahead.saturating_sub(most) >= 1u64.wrapping_shl(finer);
    // Only the count of a forged limit reaches beyond the horizon.
    let lead = State { ahead: next.ahead.min(most), ..next }.lead(new);
    (lead.min(new.horizon_q), cut || late)
}

/// Returns how much of a permit may still be given back, in the algorithm's own count, and how many q-units ahead the
/// charged word lies.
fn count_of(p: &Params, permit: &Permit, generation: u64, now: u64, mask: u64) -> (u64, u64) {
    if !gcra::is_fresh(p, permit, generation, now) {
        return (0, 0);
    }
    let units =
        if p.algorithm == Algorithm::Decay as u8 { decay::left(p, permit, now) } else { permit.stored };
    (units, gcra::lead_of(permit.tat, p.clock_q(now), mask, p.window_q))
}

/// Makes the refund of a permit, for a word of `mask`'s width.
pub(crate) fn refund<'a>(p: &'a Params, permit: &Permit, generation: u64, now: u64, mask: u64) -> Op<'a> {
    let (credit, lead) = if p.is_gcra() {
        (gcra::credit(p, permit, generation, now, mask), 0)
    } else {
        count_of(p, permit, generation, now, mask)
    };
    Op::new(p, Kind::Refund, lead, credit)
}

/// Applies an operation to a state that lies `lead` q-units ahead.
pub(crate) fn step(op: &Op<'_>, now: u64, lead: u64) -> Step {
    if op.p.is_gcra() {
        op.step(lead)
    } else {
        Call::new(op, now).step(lead)
    }
}

/// Returns a state that lies `lead` q-units ahead, with its time no earlier than that of `least`.
pub(crate) fn no_less(op: &Op<'_>, now: u64, lead: u64, least: u64) -> u64 {
    if op.p.is_gcra() {
        op.commit_lead(lead, least)
    } else {
        Call::new(op, now).commit_lead(lead, least)
    }
}

/// Makes the full answer. Divides, so it is not for the hot path.
pub(crate) fn decision(
    answer: &Answer,
    p: &Params,
    now: u64,
    cost: u64,
    tracking: Tracking,
    permit: Permit,
) -> Decision {
    let numbers = if p.is_gcra() {
        gcra::numbers(p, answer.lead, now)
    } else {
        numbers_of(At { p, now }, State::of(p, answer.lead))
    };
    answer.decision(p, now, cost, tracking, permit, numbers)
}

/// Answers a peek at a state that lies `lead` q-units ahead; nothing changes.
pub(crate) fn peek(p: &Params, lead: u64, now: u64, cost: u64, room: u64) -> Answer {
    if p.is_gcra() {
        // Nearly every call has no room, and the compiler leaves out what room costs.
        return match room {
            0 => gcra::peek(p, lead, cost, 0).answer,
            room => gcra::peek(p, lead, cost, room).answer,
        };
    }
    let op = Op::new(p, Kind::Check, cost, room);
    let mut step = Call::new(&op, now).step(lead);
    if step.store.take().is_some() {
        (step.answer.lead, step.answer.stored) = (lead, 0);
    }
    step.answer
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "counted_tests.rs"]
mod tests;
