//! A chain as links of the short way, and what needs no word of it.

use super::chain::{Answers, Chain, MAX_LINKS};
use super::error::ChainError;
use super::link::Target;
use super::short::{check, decide, passes, Links, Seen, Short, MOST};
use crate::answer::{Decision, Verdict};

const _: () = assert!(MOST == MAX_LINKS);

impl<'a> Links<'a> for Chain<'a> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn at(&self, i: usize) -> Option<(Target<'a>, u64)> {
        self.charges.get(i).map(|charge| (charge.target, charge.cost))
    }
}

impl Chain<'_> {
    /// Decides like [`check`](Chain::check), and returns only the verdict: the fastest form.
    pub fn verdict(&self, now: u64) -> Verdict {
        match self.passes_short(now) {
            Some(true) => Verdict::Conforming,
            Some(false) => Verdict::NonConforming,
            None => self.check_long(now).verdict,
        }
    }

    #[inline(never)]
    fn passes_short(&self, now: u64) -> Option<bool> {
        self.short.then(|| passes(self, now)).flatten()
    }

    /// Decides if the short way can, in a frame of its own.
    #[inline(never)]
    pub(super) fn check_short(&self, now: u64) -> Option<Decision> {
        self.short.then(|| check(self, now)).flatten()
    }

    /// Decides the long way at once.
    #[inline(never)]
    pub(crate) fn check_long(&self, now: u64) -> Decision {
        let mut answers = [None; MAX_LINKS];
        self.long_answers(now, &mut answers, false);
        self.finish(&answers, 0, None, |_, _| ())
    }

    /// Decides and sets the answers of all links, if the short way passes. Returns how many keys it has inserted; in
    /// `Err` those that it has given back.
    #[inline(never)]
    pub(super) fn short_answers(&self, now: u64, answers: &mut Answers) -> Result<u64, u64> {
        let mut all = [Seen::Absent; MOST];
        let passes = self.short && matches!(decide(self, now, &mut all), Short::Passes);
        let inserted = all.iter().filter(|seen| seen.is_inserted()).count() as u64;
        if !passes {
            return Err(inserted);
        }
        for (i, (answer, seen)) in answers.iter_mut().zip(&all).enumerate().take(self.count) {
            *answer = self.at(i).map(|(target, cost)| target.charged(now, cost, seen));
        }
        Ok(inserted)
    }

    /// Returns the longest time that a reservation may have to wait, in ticks.
    pub(super) fn max_delay(&self) -> Result<u64, ChainError> {
        let each = self.charges().map(|charge| charge.target.max_delay());
        each.reduce(|a, b| Some(a?.max(b?))).flatten().ok_or(ChainError::BadAlgorithm)
    }
}

impl core::fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let costs = self.charges.map(|charge| charge.cost);
        f.debug_struct("Chain").field("costs", &costs.get(..self.count)).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(tatcell_loom, tatcell_step))))]
#[path = "chain_short_tests.rs"]
mod tests;
