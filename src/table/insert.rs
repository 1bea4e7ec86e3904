//! Finding, charging and inserting a key in its set: the claim / commit protocol.
//!
//! ```text
//!   EMPTY / expired --claim--> CLAIM(x,v) --commit--> LIVE(x,tat) --charge--> LIVE(x,tat+c) ...
//!        ^                        |                        |
//!        +------- drop, kill -----+                        +--takeover--> CLAIM(y,odd) --commit--> LIVE(y,..)
//! ```
//!
//! A plain compare-and-swap insert is wrong: callers hold different `now`, so two of them can find different slots
//! reusable and give one key two slots, each with a full burst. Here a thread first claims a slot (charging
//! nothing), then looks at the whole set again, and only the lowest claim of a key may commit.
//!
//! Invariants:
//! - at most one LIVE word per tag and set: whoever commits has seen, after its claim (or a stranger's claim that it
//!   helps) was in place, that no other LIVE and no lower claim of the tag exists, and has dropped every higher one;
//! - a claim word never recurs in a slot (its payload is above everything the slot held), so a commit or a kill
//!   cannot hit a later claim by accident;
//! - a claim stores no charge: a thread that dies holding one has charged nothing, anyone with the same key commits
//!   it in its place, and everyone else may reuse the slot once it expires.
//!
//! Order among claims is the address order of the set, the same for all threads; the order of the search is home
//! line first. The fence between placing (or seeing) a claim and looking again is `SeqCst`: with acquire and release
//! alone two threads can each miss the other's claim (store buffering; the models have that as a must-fail case).
//!
//! Progress: lock-free, at most [`MAX_LOST`] lost swaps and [`MAX_PASSES`] passes, then contended and nothing
//! charged. A hit costs one swap, a denied hit only reads.

use super::find::{Base, Scan};
use super::options::FullPolicy;
use super::word::{Layout, Tag};
use crate::cell::MAX_LOST;
use crate::gcra::{Answer, Op, Step};
use crate::outcome::{Tracking, CONFORMING, NON_CONFORMING};
use crate::sync::{fence, AtomicU64, Ordering};

/// Looks at the set after which an insert gives up. Each lost race costs at most three.
const MAX_PASSES: u32 = 3 * MAX_LOST;

/// How a slot is changed: by compare-and-swap, or by its only owner.
pub trait Access: sealed::Sealed {
    /// The image must be one that only this owner uses.
    #[doc(hidden)]
    const EXCLUSIVE: bool;

    /// Decides whether a handle is `Sync`.
    #[doc(hidden)]
    type Sharing;

    /// Replaces `old` by `new`; `Err` is the word found instead.
    #[doc(hidden)]
    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64>;

    /// Separates a claim from the look that follows it.
    #[doc(hidden)]
    fn fence();
}

pub(super) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Shared {}
    impl Sealed for super::Exclusive {}
}

/// A table that any number of threads and processes use at once.
#[derive(Debug)]
pub enum Shared {}

/// A table with one owner at a time: plain loads and stores.
#[derive(Debug)]
pub enum Exclusive {}

impl Access for Shared {
    const EXCLUSIVE: bool = false;
    type Sharing = ();

    #[inline(always)]
    fn replace(slot: &AtomicU64, old: u64, new: u64) -> Result<(), u64> {
        // ORDERING: AcqRel on success pairs with the Acquire looks of other inserters; a hit needs only its value.
        match slot.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(found) => Err(found),
        }
    }

    #[inline(always)]
    fn fence() {
        // ORDERING: SeqCst; pairs with the same fence of every other inserter of this tag. Of two threads that each
        // placed a claim, at least one sees the other's.
        fence(Ordering::SeqCst);
    }
}

impl Access for Exclusive {
    const EXCLUSIVE: bool = true;
    type Sharing = core::cell::Cell<()>;

    #[inline(always)]
    fn replace(slot: &AtomicU64, _old: u64, new: u64) -> Result<(), u64> {
        // ORDERING: Relaxed; one owner, no rival (the exclusive handle is neither Sync nor Clone).
        slot.store(new, Ordering::Relaxed);
        Ok(())
    }

    #[inline(always)]
    fn fence() {}
}

/// The two lines of a key: the home line, and its neighbour. `N` is 8 except in models.
pub(crate) struct Set<'a, const N: usize> {
    pub home: &'a [AtomicU64; N],
    pub next: &'a [AtomicU64; N],
    /// The home line is the second one in address order.
    pub odd: bool,
}

/// A slot and the word seen in it.
#[derive(Clone, Copy)]
struct Seen {
    /// Position in search order: 0..N home line, N..2N its neighbour.
    at: usize,
    word: u64,
}

/// What a request ended with; `None` answer = contended.
pub(crate) struct Done {
    pub answer: Option<Answer>,
    pub tracking: Tracking,
    /// Position of the slot charged, in search order.
    pub at: usize,
    /// The key was not there before.
    pub inserted: bool,
}

impl Done {
    #[inline(always)]
    fn hit(answer: Answer, at: usize) -> Done {
        Done { answer: Some(answer), tracking: Tracking::Tracked, at, inserted: false }
    }

    fn untracked(answer: Option<Answer>, tracking: Tracking) -> Done {
        Done { answer, tracking, at: 0, inserted: false }
    }
}

/// One look at a whole set.
struct Look {
    live: Option<Seen>,
    /// The lowest claim of the key, in address order.
    claim: Option<Seen>,
    /// The first reusable slot, in search order.
    free: Option<Seen>,
    /// The slot with the smallest debt, any key: live, or (where debts are inherited) emptied with its debt kept.
    least: Option<Seen>,
    least_lead: u64,
}

impl<const N: usize> Set<'_, N> {
    #[inline(always)]
    pub fn slot(&self, at: usize) -> &AtomicU64 {
        // Both indexes are masked into range by construction; `get` keeps a wrong one from panicking.
        let (line, i) = if at < N { (self.home, at) } else { (self.next, at - N) };
        line.get(i).unwrap_or(&self.home[0])
    }

    /// Position in address order.
    #[inline(always)]
    fn rank(&self, at: usize) -> usize {
        if self.odd {
            (at + N) % (2 * N)
        } else {
            at
        }
    }

    /// Finds the key's live slot: home line first, lowest slot first. Gives its position, the slot and its word.
    #[inline(always)]
    pub fn find(&self, layout: &Layout, tag: Tag) -> Option<(usize, &AtomicU64, u64)> {
        self.find_by(Base, layout, tag)
    }

    /// As [`find`](Set::find), with another way to search a line.
    #[inline(always)]
    pub fn find_by(&self, scan: impl Scan, layout: &Layout, tag: Tag) -> Option<(usize, &AtomicU64, u64)> {
        let (line, first, bits) = match scan.matches(self.home, &layout.mask, tag.0) {
            0 => (self.next, N, scan.matches(self.next, &layout.mask, tag.0)),
            bits => (self.home, 0, bits),
        };
        if bits == 0 {
            return None;
        }
        let i = bits.trailing_zeros() as usize;
        // SAFETY: `matches` gives N bits, and one of them is set.
        let slot = unsafe { line.get_unchecked(i) };
        // ORDERING: Relaxed; single word, value only. The insert path looks again with Acquire.
        let word = slot.load(Ordering::Relaxed);
        // Changed hands in between: the insert path looks at the whole set.
        layout.is_live_of(word, tag).then_some((first + i, slot, word))
    }

    /// Runs an operation on the key: a hit by one swap, else an insert.
    #[inline(never)]
    pub fn run<A: Access>(
        &self,
        layout: &Layout,
        policy: FullPolicy,
        tag: Tag,
        now_q: u64,
        op: &Op<'_>,
        sample: bool,
    ) -> Done {
        if let Some((at, _, word)) = self.find(layout, tag) {
            let mut lost = 0;
            if let Some(done) = self.charge::<A>(layout, tag, now_q, op, Seen { at, word }, &mut lost) {
                return done;
            }
        }
        self.insert::<A>(layout, policy, tag, now_q, op, sample)
    }

    /// Charges a live slot while it stays the key's. `None`: the slot changed hands, look again.
    fn charge<A: Access>(
        &self,
        layout: &Layout,
        tag: Tag,
        now_q: u64,
        op: &Op<'_>,
        seen: Seen,
        lost: &mut u32,
    ) -> Option<Done> {
        let slot = self.slot(seen.at);
        let mut word = seen.word;
        while *lost < MAX_LOST {
            let Step { answer, store } = op.step(layout.lead(word, now_q));
            let Some(lead) = store else { return Some(Done::hit(answer, seen.at)) };
            match A::replace(slot, word, layout.live(tag, now_q.wrapping_add(lead))) {
                Ok(()) => return Some(Done::hit(answer, seen.at)),
                Err(found) => {
                    *lost += 1;
                    word = found;
                }
            }
            if !layout.is_live_of(word, tag) {
                return None;
            }
        }
        Some(Done::untracked(None, Tracking::Tracked))
    }

    /// Every slot with its position, in search order.
    #[inline(always)]
    fn slots(&self) -> impl Iterator<Item = (usize, &AtomicU64)> {
        self.home.iter().chain(self.next).enumerate()
    }

    fn look(&self, layout: &Layout, policy: FullPolicy, tag: Tag, now_q: u64) -> Look {
        let inherit = matches!(policy, FullPolicy::Inherit);
        let mut look = Look { live: None, claim: None, free: None, least: None, least_lead: u64::MAX };
        // A fold, so that the two lines become two plain loops.
        self.slots().for_each(|(at, slot)| {
            // ORDERING: Acquire; pairs with the AcqRel swap that placed what is seen.
            let word = slot.load(Ordering::Acquire);
            let seen = Seen { at, word };
            if layout.has_tag(word, tag) {
                if !layout.is_claim(word) {
                    look.live = look.live.or(Some(seen));
                } else if look.claim.is_none_or(|c| self.rank(at) < self.rank(c.at)) {
                    look.claim = Some(seen);
                }
            } else if look.free.is_some() {
                // A slot to go to is enough: the rest is looked at for the tag alone.
            } else if layout.is_reusable(word, now_q) && !(inherit && layout.holds_debt(word, now_q)) {
                look.free = Some(seen);
            } else if !layout.is_claim(word) {
                let lead = layout.lead(word, now_q);
                if lead < look.least_lead {
                    look.least = Some(seen);
                    look.least_lead = lead;
                }
            }
        });
        look
    }

    /// Turns a claim back into an empty slot; whoever was faster is right.
    fn drop_claim<A: Access>(&self, layout: &Layout, claim: Option<Seen>) {
        if let Some(Seen { at, word }) = claim {
            let _ = A::replace(self.slot(at), word, layout.dropped(word));
        }
    }

    /// Drops every claim of the key that is higher than `than`. False: one of them changed, or has committed, since
    /// the look; look again.
    fn drop_higher<A: Access>(&self, layout: &Layout, tag: Tag, than: usize) -> bool {
        self.slots().filter(|(at, _)| self.rank(*at) > self.rank(than)).all(|(_, slot)| {
            // ORDERING: Acquire; pairs with the AcqRel swap that placed what is seen.
            let word = slot.load(Ordering::Acquire);
            if layout.is_claim_of(word, tag) {
                A::replace(slot, word, layout.dropped(word)).is_ok()
            } else {
                !layout.is_live_of(word, tag)
            }
        })
    }

    /// The lead that a claim commits on: what it took over, or nothing.
    fn claim_lead(&self, layout: &Layout, policy: FullPolicy, claim: u64, now_q: u64) -> u64 {
        if Layout::is_takeover(claim) && matches!(policy, FullPolicy::Inherit) {
            layout.lead(claim.wrapping_sub(1), now_q)
        } else {
            0
        }
    }

    #[cold]
    #[inline(never)]
    fn insert<A: Access>(
        &self,
        layout: &Layout,
        policy: FullPolicy,
        tag: Tag,
        now_q: u64,
        op: &Op<'_>,
        sample: bool,
    ) -> Done {
        let mut lost = 0;
        let mut own: Option<Seen> = None;
        let mut known: Option<Seen> = None;
        for pass in 0..MAX_PASSES {
            if lost >= MAX_LOST {
                break;
            }
            if pass != 0 {
                A::fence();
            }
            let look = self.look(layout, policy, tag, now_q);
            if let Some(seen) = look.live {
                match self.charge::<A>(layout, tag, now_q, op, seen, &mut lost) {
                    None => continue,
                    Some(done) => {
                        self.drop_claim::<A>(layout, own);
                        return done;
                    }
                }
            }
            if let Some(claim) = look.claim {
                if !known.is_some_and(|k| k.at == claim.at && k.word == claim.word) {
                    known = Some(claim);
                    continue;
                }
                let takeover = Layout::is_takeover(claim.word);
                let base = self.claim_lead(layout, policy, claim.word, now_q);
                let tracking = match policy {
                    FullPolicy::Inherit if takeover => Tracking::Inherited,
                    FullPolicy::Sampled if takeover => Tracking::Forgiven,
                    _ => Tracking::Tracked,
                };
                let Step { mut answer, store } = op.step(base);
                let lead = match store {
                    Some(lead) if answer.verdict == CONFORMING => lead,
                    _ => {
                        self.drop_claim::<A>(layout, own);
                        return Done::untracked(Some(answer), tracking);
                    }
                };
                if !self.drop_higher::<A>(layout, tag, claim.at) {
                    lost += 1;
                    continue;
                }
                let ahead = layout.lead(claim.word, now_q);
                let lead = if takeover || lead > ahead { lead } else { ahead };
                answer.lead = lead;
                // A refund of this charge must not bring the payload below the claim, or a stalled thread could take
                // a later claim for its own: the permit is for what lies above it.
                let above = lead.saturating_sub(ahead);
                if answer.stored > above {
                    answer.stored = above;
                }
                let next = layout.live(tag, now_q.wrapping_add(lead));
                if A::replace(self.slot(claim.at), claim.word, next).is_ok() {
                    return Done { answer: Some(answer), tracking, at: claim.at, inserted: true };
                }
                lost += 1;
                continue;
            }
            // The key is absent.
            let fresh = op.step(0);
            if fresh.store.is_none() || fresh.answer.verdict != CONFORMING {
                return Done::untracked(Some(fresh.answer), Tracking::Tracked);
            }
            let (seen, claim) = if let Some(seen) = look.free {
                let claim = if layout.holds_debt(seen.word, now_q) {
                    layout.claim_of_debt(tag, seen.word)
                } else {
                    layout.claim_of_reusable(tag, seen.word, now_q)
                };
                (seen, claim)
            } else {
                let take = match policy {
                    FullPolicy::Inherit => true,
                    FullPolicy::Sampled => sample,
                    FullPolicy::Admit | FullPolicy::Deny => false,
                };
                match look.least {
                    Some(seen) if take => {
                        let claim = layout.claim_of_debt(tag, seen.word);
                        if matches!(policy, FullPolicy::Inherit) {
                            let inherited = op.step(self.claim_lead(layout, policy, claim, now_q));
                            // Refused, or a charge that is at its cap: nothing would be stored, so nobody loses a slot.
                            if inherited.answer.verdict != CONFORMING || inherited.store.is_none() {
                                return Done::untracked(Some(inherited.answer), Tracking::Inherited);
                            }
                        }
                        (seen, claim)
                    }
                    // Every slot is being inserted into at this moment: no verdict rather than a guess.
                    None if matches!(policy, FullPolicy::Inherit) => break,
                    _ => return self.full(policy, fresh.answer, &look),
                }
            };
            if A::replace(self.slot(seen.at), seen.word, claim).is_ok() {
                own = Some(Seen { at: seen.at, word: claim });
                known = own;
            } else {
                lost += 1;
            }
        }
        self.drop_claim::<A>(layout, own);
        Done::untracked(None, Tracking::Tracked)
    }

    /// The answer of a policy that stores nothing.
    fn full(&self, policy: FullPolicy, fresh: Answer, look: &Look) -> Done {
        let answer = match policy {
            FullPolicy::Deny => Answer {
                verdict: NON_CONFORMING,
                flags: 0,
                lead: 0,
                // The first slot to drain; a set of claims alone drains within the claim lifetime.
                wait: if look.least.is_some() { look.least_lead } else { 1 },
                stored: 0,
            },
            _ => Answer { stored: 0, ..fresh },
        };
        Done::untracked(Some(answer), Tracking::Untracked)
    }
}
