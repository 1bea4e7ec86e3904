//! Finding, charging and inserting a key in its set: the claim / commit protocol.
//!
//! ```text
//!   EMPTY / expired --claim--> CLAIM(x,v) --commit--> LIVE(x,tat) --charge--> LIVE(x,tat+c) ...
//!        ^                        |                        |
//!        +------- drop, kill -----+                        +--takeover--> CLAIM(y,odd) --commit--> LIVE(y,..)
//! ```
//!
//! A plain compare-and-swap insert is wrong: callers hold different `now`, so two of them can find different slots
//! reusable and give one key two slots, each with a full burst. Here a thread first claims a slot, which charges
//! nothing. Then it scans the whole set again, and only the lowest claim of a key may commit.
//!
//! If nobody else inserts the key, neither scan finds another word of its tag, and this file is all that runs: first
//! scan, claim, fence, second scan, commit. In any other case, and without a free slot, `settle` scans again.
//!
//! Invariants:
//! - at most one LIVE word per tag and set: a committing thread has scanned the set after its claim (or another
//!   thread's claim that it helps) was in place. It found no other LIVE word and no lower claim of the tag, and dropped
//!   every higher one that it found. A thread that placed one unseen finds this claim, or what became of it, in its own
//!   scan;
//! - a claim word never recurs in a slot (its payload is above everything the slot held), so a commit or a kill cannot
//!   hit a later claim by accident;
//! - a refund lowers a payload, but not below the claim of its slot: the permit of a committing charge excludes the
//!   claim. Two uses of permits break that, and with it the two points above: refunding several permits of one key
//!   oldest first without `strict_refunds`, and refunding by a reading behind that of a later insert of the key, if the
//!   clocks in use differ by more than a unit of time. The explorer pins both (`step/step_permits.rs`); the guide names
//!   them;
//! - a claim stores no charge: a thread that dies holding one has charged nothing. Any thread with the same key commits
//!   it instead, and all others may reuse the slot once it expires.
//!
//! Claims are ordered by address in the set, the same for all threads; searches go home line first. The fence between
//! placing (or seeing) a claim and the next scan is `SeqCst`: with acquire and release alone two threads can each miss
//! the other's claim (store buffering; the models have that as a must-fail case). The loads of a scan are relaxed: the
//! fence alone decides which of two claims is seen, and a swap compares everything else.
//!
//! Progress: lock-free. After [`MAX_LOST`](crate::MAX_LOST) lost swaps or `MAX_PASSES` scans the answer is contended
//! and nothing is charged; the request's own claim is taken back by one more swap, which may be lost too. A hit costs
//! one swap, a denied hit only loads, an insert two swaps.

use super::attempt::{Ask, Done, Met};
use super::search::line::{LineWords, Words};
use super::set::{Seen, Set};
use crate::algorithms::Operation;
use crate::answer::{Step, Tracking, Verdict};
use crate::sync::access::{Access, Ways};
use crate::sync::{AtomicU64, Ordering};
use crate::table::layout::policy::FullPolicy;
use crate::table::layout::word::{Layout, Tag};

impl<const N: usize> Set<'_, N> {
    /// Returns the first slot whose bit is set, in search order, and its position.
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
        let ask = Ask { layout, policy, tag, now_q, op, sample, kept: 0 };
        // Most known keys are in their home line. The second line is loaded only for the others, and kept because an
        // insert needs it too.
        let home = Words::load(self.home);
        let (mut next, mut lost) = (None, 0);
        let tagged =
            self.pick(home.tagged(layout, tag), || next.insert(Words::load(self.next)).tagged(layout, tag));
        if let Some((at, slot)) = tagged {
            // ORDERING: Relaxed; single word, value only.
            let word = slot.load(Ordering::Relaxed);
            // A claim of the key is no hit: another thread inserts it, and `settle` helps.
            if layout.is_live_of(word, tag) {
                if let Some(done) = self.charge(A::replace, ask, slot, Seen { at, word }, &mut lost) {
                    return done;
                }
            }
        } else if let Some(next) = next {
            return match self.insert::<A, O>(ask, home, next) {
                Ok(done) => done,
                Err(met) => self.settle(Ways::of::<A>(), ask.any(), met),
            };
        }
        self.settle(Ways::of::<A>(), ask.any(), Met { lost, ..Met::default() })
    }

    /// Returns the slot of the second line that has this tag, LIVE or CLAIM, with its word; else the line as loaded.
    #[inline(always)]
    pub(in crate::table) fn second(&self, layout: &Layout, tag: Tag) -> Result<(&AtomicU64, u64), Words<N>> {
        let next = Words::load(self.next);
        match self.pick(0, || next.tagged(layout, tag)) {
            // ORDERING: Relaxed; single word, value only.
            Some((_, slot)) => Ok((slot, slot.load(Ordering::Relaxed))),
            None => Err(next),
        }
    }

    /// Does the same as [`run`](Set::run) for a key that was not in its second line, `next`, and most likely is not in
    /// the home line. Inline, so that the compiler computes only the parts of the answer that are used. Returns `None`,
    /// nothing done, if the key is in the home line.
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
        match self.insert::<A, O>(ask, home, next) {
            Ok(done) => Some(done),
            Err(met) => Some(self.settle(Ways::of::<A>(), ask.any(), met)),
        }
    }

    /// Inserts a key that most likely has no word. `Err`: [`settle`](Set::settle) goes on from there.
    #[inline(always)]
    pub(in crate::table) fn insert_absent<A: Access, O: Operation>(
        &self,
        ask: Ask<'_, O>,
    ) -> Result<Done, Met> {
        let (home, next) = (Words::load(self.home), Words::load(self.next));
        match Words::tagged_in(&home, &next, ask.layout, ask.tag) {
            0 => self.insert::<A, O>(ask, home, next),
            _ => Err(Met::default()),
        }
    }

    /// Inserts a key of which the scan that loaded `home` and `next` found no word. `Err`: it has met others, and
    /// [`settle`](Set::settle) goes on. The caller calls that, so there is one call for all that can happen here.
    #[inline(always)]
    fn insert<A: Access, O: Operation>(
        &self,
        ask: Ask<'_, O>,
        home: Words<N>,
        next: Words<N>,
    ) -> Result<Done, Met> {
        // A refused request, or one that stores nothing, needs no slot.
        let Step { answer, store } = ask.op.first_step();
        let lead = match store {
            Some(lead) if answer.verdict == Verdict::Conforming => lead,
            _ => return Ok(Done::untracked(Some(answer), Tracking::Tracked)),
        };
        let Some((at, slot, word)) = self.vacancy(&ask, home, next) else {
            return Err(Met::default());
        };
        let claim = Seen { at, word: ask.claim(word) };
        if A::replace(slot, word, claim.word).is_err() {
            return Err(Met { looks: 1, lost: 1, own: None });
        }
        // Separates the claim from the next scan: without the fence two threads can each miss the other's claim.
        A::fence_behind_swap();
        // Exclusive table: the first scan already proved the key absent.
        if !A::EXCLUSIVE && !self.is_alone(&ask, at) {
            return Err(Met { looks: 1, lost: 0, own: Some(claim) });
        }
        let done = ask.commit(A::replace, self, slot, claim, lead, answer);
        done.ok_or(Met { looks: 2, lost: 1, own: Some(claim) })
    }

    /// Returns the slot that an insert of this key takes, its position and its word: the first EMPTY one in search
    /// order, else the one that has been expired longest. Returns `None` also if the slot changed hands since the scan,
    /// its debt is to be inherited, or it is a tombstone: `settle` handles these cases.
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

    /// Returns whether the word at this position is the only one of its tag in the set.
    #[inline(always)]
    fn is_alone<O>(&self, ask: &Ask<'_, O>, at: usize) -> bool {
        // Loads again, because the words of the first scan were loaded before the fence.
        let (home, next) = (Words::load(self.home), Words::load(self.next));
        Words::tagged_in(&home, &next, ask.layout, ask.tag) == 1 << at
    }
}
