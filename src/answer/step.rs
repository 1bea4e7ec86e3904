//! The result of one step of an algorithm, in q-units, and its conversion to an answer in ticks and units.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::decision::{Decision, Tracking};
use super::outcome::Outcome;
use super::permit::Permit;
use super::verdict::Verdict;
use crate::limit::params::{Params, FLAG_STRICT};

/// The result of one step, in q-units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub verdict: Verdict,
    pub flags: u32,
    /// The lead after the step, in q-units.
    pub lead: u64,
    /// q-units until the same request conforms (0 if it does now), or until it may depart.
    pub wait: u64,
    /// The charge in q-units; in units if the limit counts units.
    pub stored: u64,
}

/// The units that are left of a limit, and when more will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Units that are left.
    pub remaining: u64,
    /// Ticks until one more is left; 0 if all are.
    pub next_unit: u64,
    /// Ticks until all are left.
    pub reset_after: u64,
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

/// The place and time of a charge, which its permit records.
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
    /// Makes the short answer; shifts once at most.
    #[inline(always)]
    pub fn outcome(&self, p: &Params, now: u64) -> Outcome {
        match self.verdict {
            // The only verdict that needs a shift.
            Verdict::NonConforming => Outcome::NonConforming { retry_after: p.ticks_up(self.wait, now) },
            verdict => Outcome::new(verdict, 0),
        }
    }

    /// Makes the permit of the charge at this place.
    #[inline(always)]
    pub const fn permit(&self, p: &Params, at: Place) -> Permit {
        if self.stored == 0 {
            return Permit::NONE;
        }
        let ahead = if p.has(FLAG_STRICT) { self.stored } else { self.lead };
        let tat = p.clock_q(at.now).wrapping_add(ahead) & at.mask;
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

    /// Makes the full answer.
    pub const fn decision(
        &self,
        p: &Params,
        now: u64,
        cost: u64,
        tracking: Tracking,
        permit: Permit,
        numbers: Numbers,
    ) -> Decision {
        let wait = if self.wait == u64::MAX { u64::MAX } else { p.ticks_up(self.wait, now) };
        // In shadow mode the request passes at once, and `retry_after` reports the wait that it was spared.
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
            remaining: numbers.remaining,
            retry_after,
            next_unit: numbers.next_unit,
            reset_after: numbers.reset_after,
            departure,
            permit,
            units: units_of(p, cost, self.stored),
            in_debt: false,
        }
    }
}

/// The whole units of a stored charge, of which a request asked for `cost`. Divides if those are not the same.
pub(crate) const fn units_of(p: &Params, cost: u64, stored: u64) -> u64 {
    if stored == 0 {
        return 0;
    }
    // Also if units are counted: no more than `cost` is stored, so both are the same only if a unit is one.
    if stored == cost.saturating_mul(p.t_q) {
        return cost;
    }
    match stored.checked_div(p.t_q) {
        Some(units) if p.is_gcra() => units,
        _ => stored,
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;
    use crate::limit::LimitSpec;

    #[test]
    fn the_short_answer_is_the_verdict_and_the_wait_in_ticks() {
        let p = LimitSpec::new(1, 1 << 20, 5).resolution(-4).build().expect("a limit").0;
        let said = |verdict| Step::keep(verdict, 0, 0, 3).answer.outcome(&p, 0);
        assert_eq!(said(Verdict::Conforming), Outcome::Conforming);
        assert_eq!(said(Verdict::NonConforming), Outcome::NonConforming { retry_after: 48 });
        assert_eq!(said(Verdict::Never), Outcome::Never);
        assert_eq!(said(Verdict::Contended), Outcome::Contended);
    }
}
