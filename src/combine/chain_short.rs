//! A chain as links of the short way, and what needs no word of it.

use super::chain::{Answers, Chain};
use super::link::{Target, MAX_LINKS};
use super::short::{check, decide, overriding, passes, All, Links, Seen, Short, MOST};
use crate::answer::{Decision, Permit, Verdict};
use crate::table::Override;

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

    #[inline(always)]
    fn overridden(&self, now: u64, all: &All<'a>) -> Option<Override> {
        if self.overrides {
            overriding(self, now, all)
        } else {
            None
        }
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

    /// Decides if the short way can, in a frame of its own, and writes the decision. Returns false, nothing charged, if
    /// the long way must decide.
    #[inline(never)]
    pub(super) fn check_short(&self, now: u64, to: &mut Decision) -> bool {
        self.short && check(self, now, to)
    }

    /// Decides and sets the answers of all links, unless a look refuses or the long way must decide. Returns the
    /// charges that inserted a key, one bit each; in `Err` those that it has given back.
    #[inline(never)]
    pub(super) fn short_answers(&self, now: u64, answers: &mut Answers) -> Result<u64, u64> {
        let mut all = [Seen::Absent; MOST];
        let made = if self.short { decide(self, now, &mut all) } else { Short::Long };
        let bit = |(i, seen): (usize, &Seen<'_>)| u64::from(seen.is_inserted()).wrapping_shl(i as u32);
        let inserted = all.iter().enumerate().map(bit).fold(0, |all, bit| all | bit);
        let late = match made {
            Short::Passes => false,
            Short::Late { .. } => true,
            Short::Refused { .. } | Short::Overridden { .. } | Short::Long => return Err(inserted),
        };
        for (i, (answer, seen)) in answers.iter_mut().zip(&all).enumerate().take(self.count) {
            let Some((target, cost)) = self.at(i) else { break };
            *answer = Some(match seen {
                Seen::Absent | Seen::Named(_) if !target.is_overrides() => target.peek(now, cost, 0),
                // What was charged has been given back.
                Seen::Word(_) | Seen::Made(_) if late => {
                    Decision { units: 0, permit: Permit::NONE, ..target.charged(now, cost, seen) }
                }
                _ => target.charged(now, cost, seen),
            });
        }
        Ok(inserted)
    }
}

#[cfg(all(test, not(any(tatcell_loom, tatcell_step))))]
#[path = "chain_short_tests.rs"]
mod tests;
