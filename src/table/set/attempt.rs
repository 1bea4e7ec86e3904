//! One request of one key on its set: what is asked, what an insert has met, what it ends with; and the two swaps that
//! change a debt, the charge of a live slot and the commit of a claim.
//!
//! `insert` and `settle` find the slot, by the protocol that is drawn in `insert`.

use super::set::{Seen, Set};
use crate::algorithms::Operation;
use crate::answer::{Answer, Step, Tracking};
use crate::sync::access::Access;
use crate::sync::{back_off, Ordering, MAX_LOST};
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::{Layout, Tag};

/// One request of one key.
pub(in crate::table) struct Ask<'a, O> {
    pub layout: &'a Layout,
    pub policy: FullPolicy,
    pub tag: Tag,
    pub now_q: u64,
    pub op: &'a O,
    /// Under `Sampled`: this request may take over a debt.
    pub sample: bool,
}

/// What an insert has met so far.
#[derive(Default)]
pub(in crate::table) struct Met {
    /// Looks at the set that are over.
    pub looks: u32,
    /// Swaps lost to rivals.
    pub lost: u32,
    /// The claim it has placed.
    pub own: Option<Seen>,
}

/// What a request ended with; `None` answer = contended.
pub(crate) struct Done {
    pub answer: Option<Answer>,
    pub tracking: Tracking,
    /// Number in the table of the slot charged.
    pub slot: u32,
    /// The key was not there before.
    pub inserted: bool,
    /// What was charged; `answer.stored` is the part that a permit may give back.
    pub charged: u64,
}

impl Done {
    #[inline(always)]
    fn hit(answer: Answer, slot: u32) -> Done {
        Done {
            answer: Some(answer),
            tracking: Tracking::Tracked,
            slot,
            inserted: false,
            charged: answer.stored,
        }
    }

    pub(in crate::table) fn untracked(answer: Option<Answer>, tracking: Tracking) -> Done {
        Done { answer, tracking, slot: 0, inserted: false, charged: 0 }
    }
}

impl<O> Clone for Ask<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<O> Copy for Ask<'_, O> {}

impl<O: Operation> Ask<'_, O> {
    /// May this request take the slot of another key?
    #[inline(always)]
    pub fn may_take(&self, word: u64) -> bool {
        let Ask { layout, now_q, .. } = *self;
        // Where debts are inherited, the debt of a dropped takeover stays with its slot: taking the slot for nothing
        // would forgive it.
        let inherit = matches!(self.policy, FullPolicy::Inherit);
        layout.is_reusable(word, now_q) && !(inherit && layout.holds_debt(word, now_q))
    }

    /// The claim on a slot that it may take.
    #[inline(always)]
    pub fn claim(&self, word: u64) -> u64 {
        let Ask { layout, tag, now_q, .. } = *self;
        if layout.holds_debt(word, now_q) {
            layout.claim_of_debt(tag, word)
        } else {
            layout.claim_of_reusable(tag, word, now_q)
        }
    }

    /// How the charge is reported that commits this claim.
    #[inline(always)]
    pub fn tracking(&self, claim: u64) -> Tracking {
        match self.policy {
            FullPolicy::Inherit if Layout::is_takeover(claim) => Tracking::Inherited,
            FullPolicy::Sampled if Layout::is_takeover(claim) => Tracking::Forgiven,
            _ => Tracking::Tracked,
        }
    }

    /// Makes the claim LIVE with this lead, the answer being that of the operation. `None`: it changed
    /// meanwhile.
    ///
    /// The caller has seen, in a look behind a fence after the claim was placed or seen, no LIVE and no lower claim
    /// of the key, and has dropped every higher one that the look met.
    #[inline(always)]
    pub fn commit<A: Access, const N: usize>(
        &self,
        set: &Set<'_, N>,
        claim: Seen,
        lead: u64,
        mut answer: Answer,
    ) -> Option<Done> {
        let Ask { layout, tag, now_q, .. } = *self;
        let ahead = layout.lead(claim.word, now_q);
        // A claim lies above everything that the slot held, and a store never lowers a payload: so a commit ends at the
        // claim or above it. A takeover needs no such care, because `lead` has the debt that it took over.
        let lead = if Layout::is_takeover(claim.word) { lead } else { self.op.commit_lead(lead, ahead) };
        let charged = answer.stored;
        answer.lead = lead;
        // What lies below the claim is nobody's charge, so no permit may give it back.
        answer.stored = self.op.refundable(answer.stored, lead.saturating_sub(ahead));
        let next = layout.live(tag, now_q.wrapping_add(lead));
        A::replace(set.slot(claim.at), claim.word, next).ok()?;
        let tracking = self.tracking(claim.word);
        Some(Done { answer: Some(answer), tracking, slot: set.number(claim.at), inserted: true, charged })
    }
}

impl<const N: usize> Set<'_, N> {
    /// Charges a live slot while it stays the key's. `None`: the slot changed hands, look again.
    #[inline(always)]
    pub(in crate::table) fn charge<A: Access, O: Operation>(
        &self,
        ask: Ask<'_, O>,
        seen: Seen,
        lost: &mut u32,
    ) -> Option<Done> {
        let Ask { layout, tag, now_q, op, .. } = ask;
        let slot = self.slot(seen.at);
        let mut word = seen.word;
        // The bound counts the swaps that the whole request has lost, not those of this slot.
        while *lost < MAX_LOST {
            let Step { answer, store } = op.step(layout.lead(word, now_q));
            let Some(lead) = store else { return Some(Done::hit(answer, self.number(seen.at))) };
            match A::replace(slot, word, layout.live(tag, now_q.wrapping_add(lead))) {
                Ok(()) => return Some(Done::hit(answer, self.number(seen.at))),
                // The failed swap has read the word: no second load.
                Err(found) => {
                    *lost += 1;
                    word = found;
                }
            }
            if cfg!(tatcell_back_off) {
                back_off(*lost);
                // ORDERING: Relaxed; single word, value only. What was found is old by now.
                word = slot.load(Ordering::Relaxed);
            }
            // Reset, or expired and taken by another key: the key may be in another slot by now.
            if !layout.is_live_of(word, tag) {
                return None;
            }
        }
        Some(Done::untracked(None, Tracking::Tracked))
    }
}
