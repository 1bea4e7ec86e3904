//! One request under two limits. In the common case an all-or-none decision takes one scan of both sets and a swap
//! each. A second form asks the second limit depending on the verdict of the first.
//!
//! All other cases (an absent key, an option, a cost of 0 or above a burst, a lost swap) go to `combine::PairBurst`,
//! which uses a chain, and to `combine::Mark`.

use crate::algorithms::gcra::{self, Plain};
use crate::answer::{Answer, Place, Verdict};
use crate::limit::TableLimit;
use crate::sync::access::Access;
use crate::sync::AtomicU64;
use crate::table::handle::Table;
use crate::table::layout::word::Tag;
use crate::table::set::search::{Avx512, Base, Scan};

/// Attempts to refund the first charge if the second swap was lost. If all fail, the charge stays until it drains.
const UNDO: u32 = 8;

/// Limit, hash and cost of one of the two.
#[derive(Clone, Copy)]
pub(crate) struct Half<'a> {
    pub limit: &'a TableLimit,
    pub hash: u64,
    pub cost: u64,
}

/// The live word of a key, as it was loaded.
#[derive(Clone, Copy)]
pub(crate) struct Known<'t> {
    slot: &'t AtomicU64,
    word: u64,
    tag: Tag,
}

impl<M: Access> Table<'_, M> {
    /// Returns the live word of a hash, if there is one.
    #[inline(always)]
    pub(crate) fn known(&self, hash: u64) -> Option<Known<'_>> {
        let (set, tag) = self.place(hash);
        let (_, slot, word) = set.find_wide(self.wide, &self.geometry.layout, tag)?;
        Some(Known { slot, word, tag })
    }

    /// Makes one attempt on a live word that was loaded before and may have changed (in an exclusive table it cannot).
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

    /// Charges both or none if both keys are live and both limits plain, and returns whether the request passes.
    /// Returns `None`, nothing charged, in every other case.
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
        // By chance both keys may share one word. In a shared table the second swap finds that out.
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
        // Both would conform. If this swap is lost, nothing was charged. If the next one is, the first is undone.
        M::replace(slot, word, layout.live(tag, now_q.wrapping_add(lead))).ok()?;
        if M::replace(slot2, word2, layout.live(tag2, now_q.wrapping_add(lead2))).is_ok() {
            return Some(true);
        }
        self.undo_first(now, first, lead, set.number(at));
        None
    }

    /// Gives the first charge back, by the permit that it would have.
    #[cold]
    #[inline(never)]
    fn undo_first(&self, now: u64, first: Half<'_>, lead: u64, slot: u32) {
        let p = &first.limit.0;
        let stored = first.cost.wrapping_mul(p.t_q);
        let answer = Answer { verdict: Verdict::Conforming, flags: 0, lead, wait: 0, stored };
        let (mask, generation) = (self.geometry.layout.mask, self.geometry.generation);
        let permit = answer.permit(p, Place { now, mask, generation, slot });
        // If the refund loses every race, the charge stays although the request fails: less is admitted, never more.
        let _ = (0..UNDO).any(|_| matches!(self.refund(first.limit, now, first.hash, &permit), Ok(Some(_))));
    }
}
