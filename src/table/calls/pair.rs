//! One key under two limits: the common case of an all-or-none decision, with one look at both slots and a swap each;
//! and of one that asks the second limit by what the first has said.
//!
//! What is not common (an absent key, an option, a cost of 0 or above a burst, a lost swap) is left to
//! `combine::PairBurst`, which has a chain for it, and to `combine::Mark`.

use crate::algorithms::gcra::{self, Plain};
use crate::answer::{Answer, Place, Verdict};
use crate::limit::TableLimit;
use crate::sync::access::Access;
use crate::sync::AtomicU64;
use crate::table::handle::Table;
use crate::table::layout::word::Tag;
use crate::table::set::search::{Avx512, Base, Scan};

/// Refunds that are tried for the first charge when the second swap was lost; at the bound it stays until it drains.
const UNDO: u32 = 8;

/// Limit, hash and cost of one of the two.
#[derive(Clone, Copy)]
pub(crate) struct Half<'a> {
    pub limit: &'a TableLimit,
    pub hash: u64,
    pub cost: u64,
}

/// The live word of a key as it was seen.
#[derive(Clone, Copy)]
pub(crate) struct Known<'t> {
    slot: &'t AtomicU64,
    word: u64,
    tag: Tag,
}

impl<M: Access> Table<'_, M> {
    /// The live word of a hash, if there is one.
    #[inline(always)]
    pub(crate) fn known(&self, hash: u64) -> Option<Known<'_>> {
        let (set, tag) = self.place(hash);
        let (_, slot, word) = set.find_wide(self.wide, &self.geometry.layout, tag)?;
        Some(Known { slot, word, tag })
    }

    /// One attempt on a live word that was seen before and may have changed since (in an exclusive table it cannot).
    /// Returns `None`, nothing charged, if the limit is not plain or the word changed.
    #[inline(always)]
    pub(crate) fn check_known(
        &self,
        known: Known<'_>,
        limit: &TableLimit,
        now: u64,
        cost: u64,
    ) -> Option<Verdict> {
        let Known { slot, word, tag } = known;
        let made = self.attempt((slot, word), tag, limit, self.now_q(now), cost, |q| q)?;
        Some(made.verdict())
    }

    /// Charges both or none where both keys are live and both limits plain: does the request pass? None: something
    /// else is the case, and nothing is charged.
    #[inline(always)]
    pub(crate) fn check_pair(&self, now: u64, first: Half<'_>, second: Half<'_>) -> Option<bool> {
        match self.wide {
            Some(wide) => self.check_pair_by::<Avx512>(wide, now, first, second),
            None => self.check_pair_by(Base, now, first, second),
        }
    }

    #[inline(always)]
    fn check_pair_by<S: Scan + Copy>(
        &self,
        scan: S,
        now: u64,
        first: Half<'_>,
        second: Half<'_>,
    ) -> Option<bool> {
        let (layout, now_q) = (&self.geometry.layout, self.now_q(now));
        let ((set, tag), (set2, tag2)) = (self.place(first.hash), self.place(second.hash));
        let (at, slot, word) = set.find_by::<M>(scan, layout, tag)?;
        let (_, slot2, word2) = set2.find_by::<M>(scan, layout, tag2)?;
        // By chance both debts are one word. Among many the second swap finds that out.
        if M::EXCLUSIVE && core::ptr::eq(slot, slot2) {
            return None;
        }
        let plain = gcra::plain(&first.limit.0, layout.lead(word, now_q), first.cost);
        let plain2 = gcra::plain(&second.limit.0, layout.lead(word2, now_q), second.cost);
        let (lead, lead2) = match (plain, plain2) {
            (Plain::Other, _) | (_, Plain::Other) => return None,
            (Plain::Store(lead), Plain::Store(lead2)) => (lead, lead2),
            _ => return Some(false),
        };
        // Both would conform. A swap lost here has charged nothing yet; one lost behind it takes the first charge back.
        M::replace(slot, word, layout.live(tag, now_q.wrapping_add(lead))).ok()?;
        if M::replace(slot2, word2, layout.live(tag2, now_q.wrapping_add(lead2))).is_ok() {
            return Some(true);
        }
        self.undo_first(now, first, lead, set.number(at));
        None
    }

    /// Gives the charge of the first back, as its permit says.
    #[cold]
    #[inline(never)]
    fn undo_first(&self, now: u64, first: Half<'_>, lead: u64, slot: u32) {
        let p = &first.limit.0;
        let stored = first.cost.wrapping_mul(p.t_q);
        let answer = Answer { verdict: Verdict::Conforming, flags: 0, lead, wait: 0, stored };
        let (mask, generation) = (self.geometry.layout.mask, self.geometry.generation);
        let permit = answer.permit(p, Place { now, mask, generation, slot });
        // A refund that loses every race leaves a charge without a pass: the limit then admits less, never more.
        let _ = (0..UNDO).any(|_| matches!(self.refund(first.limit, now, first.hash, &permit), Ok(Some(_))));
    }
}
