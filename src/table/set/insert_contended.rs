//! The insert that is not alone: rivals, claims left behind, full sets.
//!
//! ```text
//!            .-- LIVE of the key ------------> charge it; changed hands: look again
//!   look ----+-- CLAIM of the key, new ------> remember it; look again
//!            +-- CLAIM of the key, known ----> drop the higher ones, commit it
//!            +-- a free slot ----------------> claim it; look again
//!            '-- neither --------------------> the policy: a verdict, or claim the slot with the smallest debt
//! ```
//!
//! Where [`insert`](super::insert) looks for words of one tag and stops, each look here reads all slots and weighs
//! them. The protocol and its invariants are drawn there; a claim seen in two looks with a fence between them counts
//! as its own, whoever placed it.

use super::attempt::{Ask, Done, Met};
use super::set::{Seen, Set};
use crate::algorithms::Operation;
use crate::answer::{Answer, Decision, Step, Tracking, Verdict};
use crate::sync::access::Access;
use crate::sync::Ordering;
use crate::sync::MAX_LOST;
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::Layout;

/// Looks at the set after which an insert gives up. Each lost race costs at most three.
const MAX_PASSES: u32 = 3 * MAX_LOST;

/// What one look at a whole set found.
struct Survey {
    live: Option<Seen>,
    /// The lowest claim of the key, in address order.
    claim: Option<Seen>,
    /// The slot that an insert takes: the first EMPTY one in search order, else the one that has been expired longest.
    free: Option<Seen>,
    /// How good that one is.
    free_age: u64,
    /// The slot with the smallest debt, any key: live, or (where debts are inherited) emptied with its debt kept.
    least: Option<Seen>,
    least_lead: u64,
    /// The lead of the first slot to drain, tombstones included.
    soonest: u64,
}

impl<const N: usize> Set<'_, N> {
    fn survey<O: Operation>(&self, ask: &Ask<'_, O>) -> Survey {
        let Ask { layout, tag, now_q, .. } = *ask;
        let mut found = Survey {
            live: None,
            claim: None,
            free: None,
            free_age: 0,
            least: None,
            least_lead: u64::MAX,
            soonest: u64::MAX,
        };
        // A fold, so that the two lines become two plain loops.
        self.slots().for_each(|(at, slot)| {
            // ORDERING: Relaxed; single words, values only. A look behind a claim has a fence ahead.
            let word = slot.load(Ordering::Relaxed);
            let seen = Seen { at, word };
            if layout.has_tag(word, tag) {
                if !layout.is_claim(word) {
                    found.live = found.live.or(Some(seen));
                } else if found.claim.is_none_or(|c| self.rank(at) < self.rank(c.at)) {
                    found.claim = Some(seen);
                }
            } else if ask.may_take(word) {
                let age = if layout.is_empty(word) { u64::MAX } else { layout.age(word, now_q) };
                if found.free.is_none() || age > found.free_age {
                    (found.free, found.free_age) = (Some(seen), age);
                }
            } else if !layout.is_claim(word) {
                let lead = layout.lead(word, now_q);
                found.soonest = found.soonest.min(lead);
                // A tombstone is nobody's debt: it is waited for, not taken over.
                if lead < found.least_lead && layout.tombstone_lead(word, now_q) == 0 {
                    (found.least, found.least_lead) = (Some(seen), lead);
                }
            }
        });
        found
    }

    /// Turns a claim back into an empty slot; whoever was faster is right.
    fn drop_claim<A: Access>(&self, layout: &Layout, claim: Option<Seen>) {
        if let Some((slot, word)) = claim.and_then(|Seen { at, word }| Some((self.slot(at)?, word))) {
            let _ = A::replace(slot, word, layout.dropped(word));
        }
    }

    /// Drops every claim of the key that is higher than `than`. False: one of them changed, or has committed, since
    /// the look; look again.
    fn drop_higher<A: Access, O>(&self, ask: &Ask<'_, O>, than: usize) -> bool {
        let Ask { layout, tag, .. } = *ask;
        self.slots().filter(|(at, _)| self.rank(*at) > self.rank(than)).all(|(_, slot)| {
            // ORDERING: Relaxed; single word, value only, and the swap decides.
            let word = slot.load(Ordering::Relaxed);
            if layout.is_claim_of(word, tag) {
                A::replace(slot, word, layout.dropped(word)).is_ok()
            } else {
                !layout.is_live_of(word, tag)
            }
        })
    }

    /// Looks at the set, does what it calls for and looks again, up to the bound.
    #[cold]
    #[inline(never)]
    pub(in crate::table) fn settle<A: Access, O: Operation>(&self, ask: Ask<'_, O>, met: Met) -> Done {
        let Ask { layout, policy, tag, op, sample, .. } = ask;
        let Met { looks, mut lost, mut own } = met;
        let mut known = own;
        for pass in looks..MAX_PASSES {
            if lost >= MAX_LOST {
                break;
            }
            // Between placing or seeing a claim and the next look; ahead of the first look there is neither.
            if pass != 0 {
                A::fence();
            }
            let survey = self.survey(&ask);
            // A live word decides, whatever claims there are: they are late, and whoever sees them drops them.
            if let Some(seen) = survey.live {
                let charged = |slot| self.charge::<A, O>(ask, slot, seen, &mut lost);
                match self.slot(seen.at).and_then(charged) {
                    None => continue,
                    Some(done) => {
                        self.drop_claim::<A>(layout, own);
                        return done;
                    }
                }
            }
            if let Some(claim) = survey.claim {
                // A claim commits only after a look that began behind it. Whoever placed one that this look missed sees
                // this claim in its own look, so one of both gives way.
                if !known.is_some_and(|k| k.at == claim.at && k.word == claim.word) {
                    known = Some(claim);
                    continue;
                }
                let Step { answer, store } = op.step(ask.claim_lead(claim.word));
                let lead = match store {
                    Some(lead) if answer.verdict == Verdict::Conforming => lead,
                    _ => {
                        self.drop_claim::<A>(layout, own);
                        return Done::untracked(Some(answer), ask.tracking(claim.word));
                    }
                };
                // Rivals hold higher claims, or left them behind. Gone, they cannot commit a second slot of this key.
                if self.drop_higher::<A, O>(&ask, claim.at) {
                    let commit = |slot| ask.commit::<A, N>(self, slot, claim, lead, answer);
                    if let Some(done) = self.slot(claim.at).and_then(commit) {
                        return done;
                    }
                }
                lost += 1;
                continue;
            }
            // The key is absent.
            let fresh = op.step(0);
            if fresh.store.is_none() || fresh.answer.verdict != Verdict::Conforming {
                return Done::untracked(Some(fresh.answer), Tracking::Tracked);
            }
            let (seen, claim) = if let Some(seen) = survey.free {
                (seen, ask.claim(seen.word))
            } else {
                let take = match policy {
                    FullPolicy::Inherit => true,
                    FullPolicy::Sampled => sample,
                    FullPolicy::Admit | FullPolicy::Deny => false,
                };
                match survey.least {
                    Some(seen) if take => {
                        let claim = layout.claim_of_debt(tag, seen.word);
                        if matches!(policy, FullPolicy::Inherit) {
                            let inherited = op.step(ask.claim_lead(claim));
                            // Refused, or a charge that is at its cap: nothing would be stored, so nobody loses a slot.
                            if inherited.answer.verdict != Verdict::Conforming || inherited.store.is_none() {
                                return Done::untracked(Some(inherited.answer), Tracking::Inherited);
                            }
                        }
                        (seen, claim)
                    }
                    // Every slot is being inserted into at this moment: no verdict rather than a guess.
                    None if matches!(policy, FullPolicy::Inherit) && survey.soonest == u64::MAX => break,
                    _ => return full(policy, fresh.answer, op.shadows(), &survey),
                }
            };
            // The next look tells whether this claim is the lowest one, and only then it is committed.
            if self.slot(seen.at).is_some_and(|slot| A::replace(slot, seen.word, claim).is_ok()) {
                own = Some(Seen { at: seen.at, word: claim });
                known = own;
            } else {
                lost += 1;
            }
        }
        // At the bound nothing is charged, and the claim would only keep a slot from others until it expires.
        self.drop_claim::<A>(layout, own);
        Done::untracked(None, Tracking::Tracked)
    }
}

impl<O> Ask<'_, O> {
    /// The lead that a claim commits on: what it took over, or nothing.
    fn claim_lead(&self, claim: u64) -> u64 {
        if Layout::is_takeover(claim) && matches!(self.policy, FullPolicy::Inherit) {
            self.layout.lead(claim.wrapping_sub(1), self.now_q)
        } else {
            0
        }
    }
}

/// The answer of a policy that stores nothing.
fn full(policy: FullPolicy, fresh: Answer, shadows: bool, survey: &Survey) -> Done {
    // The first slot to drain; a set of claims alone drains within the claim lifetime.
    let wait = if survey.soonest == u64::MAX { 1 } else { survey.soonest };
    let answer = match policy {
        FullPolicy::Admit | FullPolicy::Sampled => Answer { stored: 0, ..fresh },
        FullPolicy::Deny | FullPolicy::Inherit if shadows => {
            Answer { verdict: Verdict::Conforming, flags: Decision::SHADOW, lead: 0, wait, stored: 0 }
        }
        FullPolicy::Deny | FullPolicy::Inherit => {
            Answer { verdict: Verdict::NonConforming, flags: 0, lead: 0, wait, stored: 0 }
        }
    };
    Done::untracked(Some(answer), Tracking::Untracked)
}
