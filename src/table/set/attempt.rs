//! One request of one key on its set: what it asks, what its insert has met, how it ends; and the two swaps that change
//! a debt, the charge of a live slot and the commit of a claim.
//!
//! `insert` and `settle` find the slot, by the protocol that is drawn in `insert`.

use super::set::{Seen, Set};
use crate::algorithms::{gcra, Op, Operation};
use crate::answer::{Answer, Decision, Step, Tracking, Verdict};
use crate::sync::{back_off, AtomicU64, Ordering, MAX_LOST};
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::{Layout, Tag};

/// One request of one key.
pub(in crate::table) struct Ask<'a, O: ?Sized> {
    pub layout: &'a Layout,
    pub policy: FullPolicy,
    pub tag: Tag,
    pub now_q: u64,
    pub op: &'a O,
    /// Under `Sampled`: whether this request may take over a debt.
    pub sample: bool,
    /// The slots whose debts it must not take over, because their keys are links of the same chain: one bit for each
    /// position in search order.
    pub kept: u32,
}

/// What an insert has met so far.
#[derive(Default)]
pub(in crate::table) struct Met {
    /// Completed scans of the set.
    pub looks: u32,
    /// Swaps lost to rivals.
    pub lost: u32,
    /// The claim it has placed.
    pub own: Option<Seen>,
}

/// A check that is [plain](gcra::is_plain). Its first step calls nothing, so that an insert has all registers for the
/// words of its set.
pub(in crate::table) struct PlainCheck<'a>(pub Op<'a>);

impl Operation for PlainCheck<'_> {
    fn step(&self, lead: u64) -> Step {
        self.0.step(lead)
    }

    #[inline(always)]
    fn first_step(&self) -> Step {
        let Op { p, cost, .. } = self.0;
        match gcra::fits(0, cost.wrapping_mul(p.t_q), p.burst_q) {
            Ok(lead) => {
                let flags = if lead > p.soft_q { Decision::SOFT } else { 0 };
                let answer = Answer { verdict: Verdict::Conforming, flags, lead, wait: 0, stored: lead };
                Step { answer, store: Some(lead) }
            }
            // Only a forged limit does not have room for a plain cost.
            Err(wait) => {
                let answer = Answer { verdict: Verdict::NonConforming, flags: 0, lead: 0, wait, stored: 0 };
                Step { answer, store: None }
            }
        }
    }

    fn shadows(&self) -> bool {
        self.0.shadows()
    }

    #[inline(always)]
    fn commit_lead(&self, lead: u64, claim: u64) -> u64 {
        self.0.commit_lead(lead, claim)
    }

    #[inline(always)]
    fn refundable(&self, stored: u64, above: u64) -> u64 {
        self.0.refundable(stored, above)
    }
}

/// How a request ended; an answer of `None` means contended.
pub(crate) struct Done {
    pub answer: Option<Answer>,
    pub tracking: Tracking,
    /// The number in the table of the charged slot.
    pub slot: u32,
    /// Whether the key was absent before.
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

impl<O: ?Sized> Clone for Ask<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<O: ?Sized> Copy for Ask<'_, O> {}

impl<'a, O: Operation> Ask<'a, O> {
    /// Returns the same request for code that all operations share.
    #[inline(always)]
    pub fn any(self) -> Ask<'a, dyn Operation + 'a> {
        let Ask { layout, policy, tag, now_q, op, sample, kept } = self;
        Ask { layout, policy, tag, now_q, op, sample, kept }
    }
}

impl<O: Operation + ?Sized> Ask<'_, O> {
    /// Returns whether this request may take the slot of another key.
    #[inline(always)]
    pub fn may_take(&self, word: u64) -> bool {
        let Ask { layout, now_q, .. } = *self;
        // Where debts are inherited, that of a dropped takeover stays with its slot. A plain claim would forgive it.
        let inherit = matches!(self.policy, FullPolicy::Inherit);
        layout.is_reusable(word, now_q) && !(inherit && layout.holds_debt(word, now_q))
    }

    /// Returns the claim on a slot that the request may take.
    #[inline(always)]
    pub fn claim(&self, word: u64) -> u64 {
        let Ask { layout, tag, now_q, .. } = *self;
        if layout.holds_debt(word, now_q) {
            layout.claim_of_debt(tag, word)
        } else {
            layout.claim_of_reusable(tag, word, now_q)
        }
    }

    /// Returns how the charge that commits this claim is reported.
    #[inline(always)]
    pub fn tracking(&self, claim: u64) -> Tracking {
        match self.policy {
            FullPolicy::Inherit if Layout::is_takeover(claim) => Tracking::Inherited,
            FullPolicy::Sampled if Layout::is_takeover(claim) => Tracking::Forgiven,
            _ => Tracking::Tracked,
        }
    }

    /// Makes the claim LIVE with this lead by `replace` and returns `answer`. Returns `None` if the claim has changed.
    ///
    /// The caller has scanned the set behind a fence after the claim was placed or seen. It found no LIVE word and no
    /// lower claim of the key, and has dropped every higher claim that it found.
    #[inline(always)]
    pub fn commit<const N: usize>(
        &self,
        replace: impl Fn(&AtomicU64, u64, u64) -> Result<(), u64>,
        set: &Set<'_, N>,
        slot: &AtomicU64,
        claim: Seen,
        lead: u64,
        mut answer: Answer,
    ) -> Option<Done> {
        let Ask { layout, tag, now_q, .. } = *self;
        let ahead = layout.lead(claim.word, now_q);
        // A claim lies above everything that the slot held, and a store never lowers a payload, so the commit must not
        // lie before the claim. A takeover needs no such care: `lead` includes the debt that it took over.
        let lead = if Layout::is_takeover(claim.word) { lead } else { self.op.commit_lead(lead, ahead) };
        let charged = answer.stored;
        answer.lead = lead;
        // Nobody was charged for what lies below the claim, so no permit may give it back.
        answer.stored = self.op.refundable(answer.stored, lead.saturating_sub(ahead));
        let next = layout.live(tag, now_q.wrapping_add(lead));
        replace(slot, claim.word, next).ok()?;
        let tracking = self.tracking(claim.word);
        Some(Done { answer: Some(answer), tracking, slot: set.number(claim.at), inserted: true, charged })
    }
}

impl<const N: usize> Set<'_, N> {
    /// Charges a live slot by `replace` as long as it belongs to the key. Returns `None` if the slot changed hands:
    /// scan again.
    #[inline(always)]
    pub(in crate::table) fn charge<O: Operation + ?Sized>(
        &self,
        replace: impl Fn(&AtomicU64, u64, u64) -> Result<(), u64>,
        ask: Ask<'_, O>,
        slot: &AtomicU64,
        seen: Seen,
        lost: &mut u32,
    ) -> Option<Done> {
        let Ask { layout, tag, now_q, op, .. } = ask;
        let mut word = seen.word;
        // The bound counts the swaps that the whole request has lost, not those of this slot.
        while *lost < MAX_LOST {
            let Step { answer, store } = op.step(layout.lead(word, now_q));
            let Some(lead) = store else { return Some(Done::hit(answer, self.number(seen.at))) };
            match replace(slot, word, layout.live(tag, now_q.wrapping_add(lead))) {
                Ok(()) => return Some(Done::hit(answer, self.number(seen.at))),
                // The failed swap has returned the current word, so no second load is needed.
                Err(found) => {
                    *lost += 1;
                    word = found;
                }
            }
            if cfg!(tatcell_back_off) {
                back_off(*lost);
                // ORDERING: Relaxed; single word, value only. The wait has made the word of the swap old.
                word = slot.load(Ordering::Relaxed);
            }
            // Reset, or expired and taken by another key: this key may be in another slot by now.
            if !layout.is_live_of(word, tag) {
                return None;
            }
        }
        Some(Done::untracked(None, Tracking::Tracked))
    }
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;
    use crate::algorithms::Kind;
    use crate::impossible::tests::answered;
    use crate::limit::LimitSpec;
    use crate::sync::access::{Shared, Ways};
    use crate::table::layout::image::Line;
    use crate::table::layout::options::TableOptions;
    use crate::table::{Table, TableError};

    /// The first slot of the home line holds the word of a stranger, and the wrong position comes with that word.
    #[test]
    fn a_position_outside_of_the_set_charges_nobody() -> Result<(), TableError> {
        let (memory, spec) = ([const { Line::EMPTY }; 4], LimitSpec::new(1, 1_000, 8));
        let table = Table::init(&memory, &TableOptions::new(spec).caller_hash())?;
        let limit = table.limit(&spec)?;
        let ((set, tag), op) = (table.place(7), Op::new(&limit.0, Kind::Check, 1, 0));
        let stranger = table.geometry.layout.live(table.place(8).1, 5_000);
        // ORDERING: Relaxed; one thread.
        set.home[0].store(stranger, Ordering::Relaxed);
        let ask = table.ask(tag, 7, 0, &op);
        answered(|| {
            let seen = Seen { at: 16, word: stranger };
            assert!(set.slot(16).is_none());
            set.settle(Ways::of::<Shared>(), ask.any(), Met { looks: 0, lost: MAX_LOST, own: Some(seen) });
        });
        // ORDERING: Relaxed; one thread.
        assert_eq!(set.home[0].load(Ordering::Relaxed), stranger);
        Ok(())
    }
}
