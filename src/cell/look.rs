//! A cell of a request that is decided by several limits together: its word, without storing, and the parts of an
//! answer about a swap that was made elsewhere (`combine::short`).

use super::cell::Cell;
use crate::algorithms::gcra::{self, whole_lead};
use crate::answer::{Answer, Decision, Verdict};
use crate::limit::Limit;
use crate::sync::{Look, Swap};

impl Cell {
    /// Looks at the word; stores nothing.
    #[inline(always)]
    pub(crate) fn look_at(&self, limit: &Limit, now: u64, cost: u64) -> Look<'_> {
        let (p, word) = (&limit.0, self.word());
        match gcra::plain_word(p, word, p.now_q(now), u64::MAX, cost) {
            Some(Ok(next)) => Look::Fits(Swap { slot: &self.word, word, next }),
            // The excess is lead + charge - burst.
            Some(Err(over)) => {
                Look::Refuses(over.wrapping_add(p.burst_q).wrapping_sub(cost.wrapping_mul(p.t_q)))
            }
            None => Look::Other,
        }
    }

    /// Returns whether a refund of a swap that was stored would store the word that the swap replaced: it lies ahead of
    /// now.
    pub(crate) fn is_refund(limit: &Limit, now: u64, swap: &Swap<'_>) -> bool {
        whole_lead(swap.word, limit.0.now_q(now), u64::MAX, limit.0.window_q) != 0
    }

    /// Returns how far ahead the cell lies after a swap that was stored.
    #[inline(always)]
    pub(crate) fn lead_after(limit: &Limit, now: u64, swap: &Swap<'_>) -> u64 {
        whole_lead(swap.next, limit.0.now_q(now), u64::MAX, limit.0.window_q)
    }

    /// Returns the answer to a request whose swap was stored.
    pub(crate) fn stored_answer(limit: &Limit, now: u64, cost: u64, swap: &Swap<'_>) -> Answer {
        let (p, lead) = (&limit.0, Cell::lead_after(limit, now, swap));
        let flags = if lead > p.soft_q { Decision::SOFT } else { 0 };
        Answer { verdict: Verdict::Conforming, flags, lead, wait: 0, stored: cost.wrapping_mul(p.t_q) }
    }
}
