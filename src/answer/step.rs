//! What one step of an algorithm decided, in q-units, and how that becomes an answer in ticks and units.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::decision::{Decision, Reservation, Tracking};
use super::outcome::{Outcome, CONFORMING, NON_CONFORMING};
use super::permit::Permit;
use crate::limit::params::{Params, FLAG_STRICT};

/// What one step decided, before it is turned into ticks and units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub verdict: i32,
    pub flags: u32,
    /// Lead after the step, q-units.
    pub lead: u64,
    /// q-units until the same request conforms (0 when it does), or until it may depart.
    pub wait: u64,
    /// q-units charged.
    pub stored: u64,
}

/// An answer and the lead to store, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub answer: Answer,
    pub store: Option<u64>,
}

impl Step {
    pub const fn keep(verdict: i32, flags: u32, lead: u64, wait: u64) -> Step {
        Step { answer: Answer { verdict, flags, lead, wait, stored: 0 }, store: None }
    }
}

impl Answer {
    /// The short answer; one shift at most.
    #[inline(always)]
    pub fn outcome(&self, p: &Params, now: u64) -> Outcome {
        match self.verdict {
            CONFORMING => Outcome::Conforming,
            NON_CONFORMING => Outcome::NonConforming { retry_after: p.ticks_up(self.wait, now) },
            _ => Outcome::Never,
        }
    }

    /// The departure of a reservation.
    #[inline(always)]
    pub fn reservation(&self, p: &Params, now: u64, permit: Permit) -> Reservation {
        match self.verdict {
            CONFORMING => {
                Reservation::Reserved { departure: now.wrapping_add(p.ticks_up(self.wait, now)), permit }
            }
            NON_CONFORMING => Reservation::TooLong { retry_after: p.ticks_up(self.wait, now) },
            _ => Reservation::Never,
        }
    }

    /// The permit of what was charged into a word of `mask`'s width.
    #[inline(always)]
    pub const fn permit(&self, p: &Params, now_q: u64, mask: u64, slot: u32) -> Permit {
        if self.stored == 0 {
            return Permit::NONE;
        }
        let ahead = if p.has(FLAG_STRICT) { self.stored } else { self.lead };
        let tat = now_q.wrapping_add(ahead) & mask;
        Permit { tat, stored: self.stored, epoch: p.epoch, slot }
    }

    /// The full answer. The only place that divides, and off the hot path.
    pub fn decision(&self, p: &Params, now: u64, cost: u32, tracking: Tracking, permit: Permit) -> Decision {
        let available = p.burst_q.saturating_sub(self.lead);
        // t_q is 0 only for an unlimited limit.
        let (remaining, next_unit) = match available.checked_div(p.t_q) {
            None => (u64::MAX, 0),
            Some(left) if left >= p.burst => (p.burst, 0),
            Some(left) => {
                // left + 1 <= burst, so this is at most burst_q.
                let wanted = left.wrapping_add(1).wrapping_mul(p.t_q);
                (left, self.lead.wrapping_add(wanted).wrapping_sub(p.burst_q))
            }
        };
        Decision {
            size: core::mem::size_of::<Decision>() as u32,
            verdict: self.verdict,
            flags: self.flags,
            tracking: tracking as u32,
            policy: 0,
            cost,
            limit: p.burst,
            remaining,
            retry_after: if self.wait == u64::MAX { u64::MAX } else { p.ticks_up(self.wait, now) },
            next_unit: p.ticks_up(next_unit, now),
            reset_after: p.ticks_up(self.lead, now),
            permit,
        }
    }
}
