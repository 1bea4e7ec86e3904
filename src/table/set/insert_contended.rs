//! The insert that meets others: rivals, abandoned claims, full sets.
//!
//! ```text
//!            .-- LIVE of the key ------------> charge it; changed hands: scan again
//!   scan ----+-- CLAIM of the key, new ------> remember it; scan again
//!            +-- CLAIM of the key, known ----> drop the higher ones, commit it
//!            +-- a free slot ----------------> claim it; scan again
//!            '-- neither --------------------> the policy: a verdict, or claim the slot with the smallest debt
//! ```
//!
//! [`insert`](super::insert) only searches for the words of one tag; each scan here reads all slots and compares them.
//! The protocol and its invariants are drawn there. A claim found in two scans with a fence between them counts as the
//! request's own, even if another placed it.

use super::attempt::{Ask, Done, Met};
use super::set::{Seen, Set};
use crate::algorithms::Operation;
use crate::answer::{Answer, Decision, Step, Tracking, Verdict};
use crate::sync::access::Ways;
use crate::sync::Ordering;
use crate::sync::MAX_LOST;
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::Layout;

/// Scans of the set after which an insert gives up. Each lost race costs at most three.
const MAX_PASSES: u32 = 3 * MAX_LOST;

/// What one scan of a whole set found.
struct Survey {
    live: Option<Seen>,
    /// The lowest claim of the key, in address order.
    claim: Option<Seen>,
    /// The slot that an insert takes: the first EMPTY one in search order, else the one that has been expired longest.
    free: Option<Seen>,
    /// How long that one has been expired; the largest number if it is EMPTY.
    free_age: u64,
    /// The slot with the smallest debt that may be taken over: live, or (where debts are inherited) emptied with its
    /// debt kept.
    least: Option<Seen>,
    least_lead: u64,
    /// The lead of the slot that drains first, tombstones included.
    soonest: u64,
}

impl<const N: usize> Set<'_, N> {
    fn survey(&self, ask: &Ask<'_, dyn Operation + '_>) -> Survey {
        let Ask { layout, tag, now_q, kept, .. } = *ask;
        let mut found = Survey {
            live: None,
            claim: None,
            free: None,
            free_age: 0,
            least: None,
            least_lead: u64::MAX,
            soonest: u64::MAX,
        };
        // A fold, so that the compiler makes two plain loops for the two lines.
        self.slots().for_each(|(at, slot)| {
            // ORDERING: Relaxed; single words, values only. A fence precedes the scan that follows a claim.
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
                // A tombstone is nobody's debt: an insert waits for it and does not take it over.
                let may_take = kept.wrapping_shr(at as u32) & 1 == 0;
                if lead < found.least_lead && may_take && layout.tombstone_lead(word, now_q) == 0 {
                    (found.least, found.least_lead) = (Some(seen), lead);
                }
            }
        });
        found
    }

    /// Turns a claim back into an empty slot. If another thread has changed it first, that stands.
    fn drop_claim(&self, ways: &Ways, layout: &Layout, claim: Option<Seen>) {
        if let Some((slot, word)) = claim.and_then(|Seen { at, word }| Some((self.slot(at)?, word))) {
            let _ = (ways.replace)(slot, word, layout.dropped(word));
        }
    }

    /// Drops every claim of the key that is higher than `than`. Returns false if one of them has changed or committed
    /// since the scan: scan again.
    fn drop_higher(&self, ways: &Ways, ask: &Ask<'_, dyn Operation + '_>, than: usize) -> bool {
        let Ask { layout, tag, .. } = *ask;
        self.slots().filter(|(at, _)| self.rank(*at) > self.rank(than)).all(|(_, slot)| {
            // ORDERING: Relaxed; single word, value only, and the swap decides.
            let word = slot.load(Ordering::Relaxed);
            if layout.is_claim_of(word, tag) {
                (ways.replace)(slot, word, layout.dropped(word)).is_ok()
            } else {
                !layout.is_live_of(word, tag)
            }
        })
    }

    /// Scans the set, does what the result calls for and scans again, up to the bound. It is cold and long, so there is
    /// one for all operations and both kinds of tables.
    #[cold]
    #[inline(never)]
    pub(in crate::table) fn settle(&self, ways: &Ways, ask: Ask<'_, dyn Operation + '_>, met: Met) -> Done {
        let Ask { layout, policy, tag, op, sample, .. } = ask;
        let Met { looks, mut lost, mut own } = met;
        let mut known = own;
        for pass in looks..MAX_PASSES {
            if lost >= MAX_LOST {
                break;
            }
            // Separates placing or seeing a claim from the next scan. Neither has happened before the first scan.
            if pass != 0 {
                (ways.fence)();
            }
            let survey = self.survey(&ask);
            // A live word decides, whatever claims there are: they came late, and threads that find them drop them.
            if let Some(seen) = survey.live {
                let charged = |slot| self.charge(ways.replace, ask, slot, seen, &mut lost);
                match self.slot(seen.at).and_then(charged) {
                    None => continue,
                    Some(done) => {
                        self.drop_claim(ways, layout, own);
                        return done;
                    }
                }
            }
            if let Some(claim) = survey.claim {
                // A claim commits only after a scan that began later. A thread that placed one which this scan missed
                // finds this claim in its own scan, so one of the two gives way.
                if !known.is_some_and(|k| k.at == claim.at && k.word == claim.word) {
                    known = Some(claim);
                    continue;
                }
                let Step { answer, store } = op.step(ask.claim_lead(claim.word));
                let lead = match store {
                    Some(lead) if answer.verdict == Verdict::Conforming => lead,
                    _ => {
                        self.drop_claim(ways, layout, own);
                        return Done::untracked(Some(answer), ask.tracking(claim.word));
                    }
                };
                // Rivals hold higher claims or abandoned them. Once dropped, they cannot commit a second slot of this
                // key.
                if self.drop_higher(ways, &ask, claim.at) {
                    let commit = |slot| ask.commit(ways.replace, self, slot, claim, lead, answer);
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
                            // Refused, or a charge that is at its cap: nothing would be stored, so no key loses a slot.
                            if inherited.answer.verdict != Verdict::Conforming || inherited.store.is_none() {
                                return Done::untracked(Some(inherited.answer), Tracking::Inherited);
                            }
                        }
                        (seen, claim)
                    }
                    // At this moment every slot is being claimed: return no verdict rather than a guess.
                    None if matches!(policy, FullPolicy::Inherit) && survey.soonest == u64::MAX => break,
                    _ => return full(policy, fresh.answer, op.shadows(), &survey),
                }
            };
            // The next look tells whether this claim is the lowest one, and only then it is committed.
            if self.slot(seen.at).is_some_and(|slot| (ways.replace)(slot, seen.word, claim).is_ok()) {
                own = Some(Seen { at: seen.at, word: claim });
                known = own;
            } else {
                lost += 1;
            }
        }
        // At the bound nothing is charged. The claim would only keep others from the slot until it expires.
        self.drop_claim(ways, layout, own);
        Done::untracked(None, Tracking::Tracked)
    }
}

impl<O: ?Sized> Ask<'_, O> {
    /// Returns the lead that a claim commits on: the debt that it took over, or 0.
    fn claim_lead(&self, claim: u64) -> u64 {
        if Layout::is_takeover(claim) && matches!(self.policy, FullPolicy::Inherit) {
            self.layout.lead(claim.wrapping_sub(1), self.now_q)
        } else {
            0
        }
    }
}

/// Returns the answer of a policy that stores nothing.
fn full(policy: FullPolicy, fresh: Answer, shadows: bool, survey: &Survey) -> Done {
    // Waits for the slot that drains first. A set of claims alone drains within the claim lifetime.
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
