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
//! An insert whose key nobody else inserts meets no other word of its tag in either look, and this file is all that it
//! runs: the look before, the claim, the fence, the look after, the commit. Whatever else a look meets, and a set
//! without a free slot, is left to `settle`, which looks again.
//!
//! Invariants:
//! - at most one LIVE word per tag and set: whoever commits has seen, after its claim (or a stranger's claim that it
//!   helps) was in place, that no other LIVE and no lower claim of the tag exists, and has dropped every higher one
//!   that it saw; whoever placed one that it did not see meets this claim in its own look, or what became of it;
//! - a claim word never recurs in a slot (its payload is above everything the slot held), so a commit or a kill
//!   cannot hit a later claim by accident;
//! - a refund lowers a payload, but not below what its slot was claimed at: the permit of a committing charge excludes
//!   the claim. Two uses of permits break that, and with it the two points above: several permits of one key refunded
//!   oldest first without `strict_refunds`, and a refund by a reading behind that of a later insert of the key, where
//!   the clocks in use lie more than a unit of time apart. The explorer has both as pinned cases
//!   (`step/step_permits.rs`), and the guide says so;
//! - a claim stores no charge: a thread that dies holding one has charged nothing, anyone with the same key commits
//!   it in its place, and everyone else may reuse the slot once it expires.
//!
//! Order among claims is the address order of the set, the same for all threads; the order of the search is home
//! line first. The fence between placing (or seeing) a claim and looking again is `SeqCst`: with acquire and release
//! alone two threads can each miss the other's claim (store buffering; the models have that as a must-fail case). Looks
//! are relaxed: which of two claims is seen is for the fence alone, and whatever else was seen is compared by a swap.
//!
//! Progress: lock-free, at most [`MAX_LOST`](crate::MAX_LOST) lost swaps and `MAX_PASSES` looks, then contended and
//! nothing charged; a claim of its own is taken back by one swap more, which may be lost, too. A hit
//! costs one swap, a denied hit only reads, an insert two swaps.

use super::attempt::{Ask, Done, Met};
use super::search::line::{LineWords, Words};
use super::set::{Seen, Set};
use crate::algorithms::Operation;
use crate::answer::{Step, Tracking, Verdict};
use crate::sync::access::Access;
use crate::sync::{AtomicU64, Ordering};
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::{Layout, Tag};

impl<const N: usize> Set<'_, N> {
    /// The first slot whose bit is set, in search order: its position and the slot.
    #[inline(always)]
    fn pick(&self, home: u32, next: impl FnOnce() -> u32) -> Option<(usize, &AtomicU64)> {
        let (line, first, bits) = match home {
            0 => (self.next, N, next()),
            bits => (self.home, 0, bits),
        };
        if bits == 0 {
            return None;
        }
        let i = bits.trailing_zeros() as usize;
        // SAFETY: there is a bit for each of the N slots of a line, and one of them is set.
        Some((first + i, unsafe { line.get_unchecked(i) }))
    }

    /// Runs an operation on the key: a hit by one swap, else an insert.
    #[inline(never)]
    pub fn run<A: Access, O: Operation>(
        &self,
        layout: &Layout,
        policy: FullPolicy,
        tag: Tag,
        now_q: u64,
        op: &O,
        sample: bool,
    ) -> Done {
        let ask = Ask { layout, policy, tag, now_q, op, sample };
        // Most known keys are in their home line: the second one is loaded only if they are not, and kept, because an
        // insert needs it too.
        let home = Words::load(self.home);
        let (mut next, mut lost) = (None, 0);
        let tagged =
            self.pick(home.tagged(layout, tag), || next.insert(Words::load(self.next)).tagged(layout, tag));
        if let Some((at, slot)) = tagged {
            // ORDERING: Relaxed; single word, value only.
            let word = slot.load(Ordering::Relaxed);
            // A claim of the key is no hit: somebody inserts it, and `settle` helps.
            if layout.is_live_of(word, tag) {
                if let Some(done) = self.charge::<A, O>(ask, slot, Seen { at, word }, &mut lost) {
                    return done;
                }
            }
        } else if let Some(next) = next {
            return self.insert::<A, O>(ask, home, next);
        }
        self.settle::<A, O>(ask, Met { lost, ..Met::default() })
    }

    /// The slot of the second line that has this tag, LIVE or CLAIM, with its word; or that line as it was seen.
    #[inline(always)]
    pub(in crate::table) fn second(&self, layout: &Layout, tag: Tag) -> Result<(&AtomicU64, u64), Words<N>> {
        let next = Words::load(self.next);
        match self.pick(0, || next.tagged(layout, tag)) {
            // ORDERING: Relaxed; single word, value only.
            Some((_, slot)) => Ok((slot, slot.load(Ordering::Relaxed))),
            None => Err(next),
        }
    }

    /// As [`run`](Set::run) for a key that was not in its second line, `next`, and most likely is not in the home line.
    /// Inline: of the answer only that is made which the caller asks for. `None`: it is there, nothing was done.
    #[inline(always)]
    pub(in crate::table) fn insert_behind<A: Access, O: Operation>(
        &self,
        ask: Ask<'_, O>,
        next: Words<N>,
    ) -> Option<Done> {
        let home = Words::load(self.home);
        if home.tagged(ask.layout, ask.tag) != 0 {
            return None;
        }
        Some(self.insert::<A, O>(ask, home, next))
    }

    /// Inserts a key of which the look that gave `home` and `next` met no word.
    #[inline(always)]
    fn insert<A: Access, O: Operation>(&self, ask: Ask<'_, O>, home: Words<N>, next: Words<N>) -> Done {
        // A refused request, or one that stores nothing, needs no slot.
        let Step { answer, store } = ask.op.first_step();
        let lead = match store {
            Some(lead) if answer.verdict == Verdict::Conforming => lead,
            _ => return Done::untracked(Some(answer), Tracking::Tracked),
        };
        let Some((at, slot, word)) = self.vacancy(&ask, home, next) else {
            return self.settle::<A, O>(ask, Met::default());
        };
        let claim = Seen { at, word: ask.claim(word) };
        if A::replace(slot, word, claim.word).is_err() {
            return self.settle::<A, O>(ask, Met { looks: 1, lost: 1, own: None });
        }
        // Between the claim and the look behind it: without it two threads can each miss the other's claim.
        A::fence_behind_swap();
        // Exclusive table: the first look already proved the key absent.
        if !A::EXCLUSIVE && !self.is_alone(&ask, at) {
            return self.settle::<A, O>(ask, Met { looks: 1, lost: 0, own: Some(claim) });
        }
        match ask.commit::<A, N>(self, slot, claim, lead, answer) {
            Some(done) => done,
            None => self.settle::<A, O>(ask, Met { looks: 2, lost: 1, own: Some(claim) }),
        }
    }

    /// The slot that an insert of this key takes: the first EMPTY one in search order, else the one that has been
    /// expired longest, so that a key that was away finds its slot again while there is any other. Gives its position,
    /// the slot and its word. `None` also where it has changed hands since the look, its debt is to be inherited, or it
    /// is a tombstone: `settle` knows what to do then.
    #[inline(always)]
    fn vacancy<O: Operation>(
        &self,
        ask: &Ask<'_, O>,
        home: Words<N>,
        next: Words<N>,
    ) -> Option<(usize, &AtomicU64, u64)> {
        let Ask { layout, tag, now_q, .. } = *ask;
        let at = match Words::tagged_in(&home, &next, layout, Tag(0)) {
            // A key that comes back finds its old slot as long as others have expired before it.
            0 => Words::oldest(&home, &next, layout, now_q)?,
            empty => empty.trailing_zeros() as usize,
        };
        let slot = self.slot(at)?;
        // ORDERING: Relaxed; single word, value only, and the swap decides.
        let word = slot.load(Ordering::Relaxed);
        (ask.may_take(word) && !layout.has_tag(word, tag)).then_some((at, slot, word))
    }

    /// Is the word at this position the only one of its tag in the set?
    #[inline(always)]
    fn is_alone<O>(&self, ask: &Ask<'_, O>, at: usize) -> bool {
        // Loaded again: the words of the look before are from ahead of the fence.
        let (home, next) = (Words::load(self.home), Words::load(self.next));
        Words::tagged_in(&home, &next, ask.layout, ask.tag) == 1 << at
    }
}
