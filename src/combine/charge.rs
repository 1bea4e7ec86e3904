//! Charges a chain after the fact, and counts each link for itself.
//!
//! A charge undoes nothing: each link is charged by its own call, in order. A link that lost all its swaps, or whose
//! set is full, is not charged, and its decision says so.

use super::chain::{Answers, Chain, Charge, UNDO};
use super::counters::ChainCounters;
use super::error::ChainError;
use super::link::MAX_LINKS;
use super::short::kept;
use crate::answer::{Decision, Verdict};
use crate::table::Counters;

impl Chain<'_> {
    /// Charges all links after the fact, for a request that was let through and whose costs are known only now, as
    /// [`charge`](crate::Cell::charge) does for one cell: whatever each limit would have said, up to its burst plus its
    /// `max_debt`.
    ///
    /// The decision passes if all links are charged, with the fields of [`check`](Chain::check): `policy` is the link
    /// that has the fewest requests like this one left. Each link's own `units` say what it took. No room is needed,
    /// and extras are charged as well. If an override exempts the request and none bans it, nothing is charged. A ban
    /// changes nothing, because the request was let through, but its link has the flag [`BANNED`](Decision::BANNED) and
    /// the time that is left.
    ///
    /// Nothing is undone. Contended: a link lost 64 swaps to others. Non-conforming: the key of a link has no slot in a
    /// full set under `Deny`, or under `Inherit` if no slot can be taken over. Each link's own decision says whether it
    /// is charged. Under `Admit` and `Sampled` a key without a slot passes, with `units` of 0.
    ///
    /// ```
    /// use tatcell::{Cell, Chain, ChainError, LimitSpec, Link};
    /// // Bytes: 100 a tick for a client, 1000 for all. A request passes while nobody is in debt.
    /// let limit = |rate| LimitSpec::new(rate, 1, rate).max_debt(9 * rate).build().unwrap();
    /// let (client, all, [own, shared]) = (Cell::new(), Cell::new(), [limit(100), limit(1_000)]);
    /// let chain = |cost| Chain::new(&[Link::cell(&client, &own, cost), Link::cell(&all, &shared, cost)]);
    /// assert!(chain(0)?.check(0).passes());
    /// assert!(chain(350)?.charge(0).passes());
    /// let refused = chain(0)?.check(0);
    /// assert_eq!((refused.policy, refused.retry_after), (0, 3)); // 250 more than the burst
    /// # Ok::<(), ChainError>(())
    /// ```
    ///
    /// # Concurrency
    /// As [`check`](Chain::check); nothing is undone.
    ///
    /// # Cost
    /// One lookup and one compare-and-swap for each link; for keys in tables that take slots over one more lookup.
    pub fn charge(&self, now: u64) -> Decision {
        self.charge_ex(now, None, |_, _| ())
    }

    /// Charges like [`charge`](Chain::charge), with counters and each link's decision as in
    /// [`check_ex`](Chain::check_ex). [`refund`](Chain::refund) takes the permits.
    pub fn charge_ex<'c>(
        &self,
        now: u64,
        counters: impl Into<ChainCounters<'c>>,
        each: impl FnMut(usize, &Decision),
    ) -> Decision {
        let counters = counters.into();
        let mut answers = [None; MAX_LINKS];
        let mut inserted = 0;
        if self.overrides {
            self.look(now, &mut answers, false);
            if self.is_exempt(&answers) {
                answers.iter_mut().flatten().for_each(|answer| let_through(answer, now));
                return self.finish(&answers, 0, counters, each);
            }
        }
        for (i, (charge, answer)) in self.charges().zip(&mut answers).enumerate() {
            let mut made = Counters::default();
            let mut try_it = || charge.target.charge(now, charge.cost, Some(&mut made), self.kept_of(charge));
            let mut told = try_it();
            for _ in 1..UNDO {
                if told.verdict != Verdict::Contended {
                    break;
                }
                told = try_it();
            }
            if charge.target.is_overrides() {
                let_through(&mut told, now);
                // An exemption that came after the look changes nothing.
                told.flags &= !Decision::EXEMPT;
            }
            inserted |= made.inserted.wrapping_shl(i as u32);
            *answer = Some(told);
        }
        self.charge_extras(now, &mut answers);
        self.finish(&answers, inserted, counters, each)
    }

    /// Charges the extras of all links that were charged. Inlined, because its frame would lie below that of
    /// [`charge_ex`](Chain::charge_ex), and a kernel has little stack.
    #[inline(always)]
    pub(super) fn charge_extras(&self, now: u64, answers: &mut Answers) {
        for (charge, answer) in self.charges().zip(answers.iter_mut().flatten()) {
            if charge.extra == 0 || !answer.passes() {
                continue;
            }
            // Contended charges nothing: one random extra less.
            let extra = charge.target.charge(now, charge.extra, None, self.kept_of(charge));
            if extra.passes() {
                answer.remaining = extra.remaining;
                answer.next_unit = extra.next_unit;
                answer.reset_after = extra.reset_after;
                answer.units = answer.units.saturating_add(extra.units);
            }
        }
    }

    /// Returns the slots that this charge must not take over.
    fn kept_of(&self, charge: &Charge<'_>) -> u32 {
        // A key that has a slot takes over none, so nobody looks for the others.
        if charge.target.may_take_over() {
            kept(self, &charge.target)
        } else {
            0
        }
    }

    /// Counts each charge for its first link.
    #[cold]
    #[inline(never)]
    pub(super) fn count_links(&self, answers: &Answers, inserted: u64, links: &mut [Counters]) {
        let exempt = self.is_exempt(answers);
        for (i, (charge, answer)) in self.charges().zip(answers.iter().flatten()).enumerate() {
            if let Some(own) = links.get_mut(charge.link as usize) {
                if !exempt || charge.target.is_overrides() {
                    own.count(answer, inserted.wrapping_shr(i as u32) & 1 != 0);
                }
            }
        }
    }

    /// Refuses limits under which nothing can be reserved.
    pub(super) fn may_reserve(&self) -> Result<(), ChainError> {
        if !self.charges().all(|charge| charge.target.is_gcra()) {
            return Err(ChainError::BadAlgorithm);
        }
        match self.charges().all(|charge| charge.room == 0) {
            true => Ok(()),
            false => Err(ChainError::BadRoom),
        }
    }

    /// Returns the longest time that a reservation may have to wait, in ticks.
    pub(super) fn max_delay(&self) -> Result<u64, ChainError> {
        let each = self.charges().map(|charge| charge.target.max_delay());
        each.reduce(|a, b| Some(a?.max(b?))).flatten().ok_or(ChainError::BadAlgorithm)
    }
}

/// Makes an answer that of a request that was let through, whatever is said now. Only overrides are still reported.
fn let_through(answer: &mut Decision, now: u64) {
    (answer.verdict, answer.departure) = (Verdict::Conforming, now);
    answer.flags &= Decision::EXEMPT | Decision::BANNED;
    if answer.flags & Decision::BANNED == 0 {
        answer.retry_after = 0;
    }
}

impl core::fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let costs = self.charges.map(|charge| charge.cost);
        f.debug_struct("Chain").field("costs", &costs.get(..self.count)).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use crate::combine::Link;
    use crate::limit::LimitSpec;

    /// A link that lost all its swaps is told as not charged, so its extra is not charged either.
    #[test]
    fn a_link_that_was_not_charged_gets_no_extra() {
        let limit = LimitSpec::new(1, 1_000, 5).build().expect("a limit");
        let cells = [Cell::new(), Cell::new()];
        let links = [0, 1].map(|i| Link::cell(&cells[i], &limit, 1).extra(2));
        let chain = Chain::new(&links).expect("a chain");
        let mut answers: Answers = [None; MAX_LINKS];
        (answers[0], answers[1]) = (Some(Decision::contended(1, 5)), Some(cells[1].charge(&limit, 0, 1)));
        chain.charge_extras(0, &mut answers);
        let units = answers.map(|answer| answer.map_or(0, |answer| answer.units));
        assert_eq!((units[0], units[1]), (0, 3));
        assert_eq!([0, 1].map(|i| cells[i].peek(&limit, 0, 0).remaining), [5, 2]);
    }
}
