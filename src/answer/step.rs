//! What one step of an algorithm decided, in q-units, and how that becomes an answer in ticks and units.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::decision::{Decision, Tracking};
use super::outcome::Outcome;
use super::permit::Permit;
use super::verdict::Verdict;
use crate::limit::params::{Params, FLAG_STRICT};

/// What one step decided, before it is turned into ticks and units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub verdict: Verdict,
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
    pub const fn keep(verdict: Verdict, flags: u32, lead: u64, wait: u64) -> Step {
        Step { answer: Answer { verdict, flags, lead, wait, stored: 0 }, store: None }
    }
}

/// Where and when a charge was made: what its permit remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The caller's clock, in ticks.
    pub now: u64,
    /// The bits of a word that hold the TAT.
    pub mask: u64,
    /// Generation and slot of a table; 0 for cells.
    pub generation: u64,
    pub slot: u32,
}

impl Answer {
    /// The short answer; one shift at most.
    #[inline(always)]
    pub fn outcome(&self, p: &Params, now: u64) -> Outcome {
        match self.verdict {
            Verdict::Conforming => Outcome::Conforming,
            Verdict::NonConforming => Outcome::NonConforming { retry_after: p.ticks_up(self.wait, now) },
            Verdict::Never => Outcome::Never,
            Verdict::Contended => Outcome::Contended,
        }
    }

    /// The permit of what was charged at this place.
    #[inline(always)]
    pub const fn permit(&self, p: &Params, at: Place) -> Permit {
        if self.stored == 0 {
            return Permit::NONE;
        }
        let ahead = if p.has(FLAG_STRICT) { self.stored } else { self.lead };
        let tat = p.now_q(at.now).wrapping_add(ahead) & at.mask;
        Permit {
            tat,
            stored: self.stored,
            tick: at.now,
            generation: at.generation,
            epoch: p.epoch,
            slot: at.slot,
            reserved: [0; 3],
        }
    }

    /// The full answer. The only place that divides, and off the hot path.
    pub fn decision(&self, p: &Params, now: u64, cost: u64, tracking: Tracking, permit: Permit) -> Decision {
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
        let wait = if self.wait == u64::MAX { u64::MAX } else { p.ticks_up(self.wait, now) };
        // A shadow limit lets pass at once what it says would have waited.
        let shadow = self.flags & Decision::SHADOW != 0;
        let (retry_after, departure) = match self.verdict {
            Verdict::Conforming if shadow => (wait, now),
            Verdict::Conforming => (0, now.wrapping_add(wait)),
            _ => (wait, 0),
        };
        Decision {
            verdict: self.verdict,
            tracking,
            flags: self.flags,
            policy: 0,
            cost,
            burst: p.burst,
            remaining,
            retry_after,
            next_unit: p.ticks_up(next_unit, now),
            reset_after: p.ticks_up(self.lead, now),
            departure,
            permit,
        }
    }
}
