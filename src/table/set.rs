//! The set of a key: its home line and the neighbour of that, and how a live slot is found and changed in it.

use super::access::Access;
use super::search::{Base, Scan};
use super::word::{Layout, Tag};
use crate::sync::{AtomicU64, Ordering, MAX_LOST};

/// The two lines of a key: the home line, and its neighbour. `N` is 8 except in models.
pub(crate) struct Set<'a, const N: usize> {
    pub home: &'a [AtomicU64; N],
    pub next: &'a [AtomicU64; N],
    /// Number of the home line in the table; its neighbour is `line ^ 1`.
    pub line: u32,
}

/// A slot and the word seen in it.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// Position in search order: 0..N home line, N..2N its neighbour.
    pub at: usize,
    pub word: u64,
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
    pub(super) fn rank(&self, at: usize) -> usize {
        if self.line & 1 == 1 {
            (at + N) % (2 * N)
        } else {
            at
        }
    }

    /// Number in the table of the slot at a position in search order.
    #[inline(always)]
    pub(super) fn number(&self, at: usize) -> u32 {
        let (line, i) = if at < N { (self.line, at) } else { (self.line ^ 1, at - N) };
        line * N as u32 + i as u32
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

    /// Every slot with its position, in search order.
    #[inline(always)]
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, &AtomicU64)> {
        self.home.iter().chain(self.next).enumerate()
    }

    /// Changes the key's live word if there is one; never inserts. `step` maps its position and word to an answer and
    /// the next word, if any; the word was in place when it is called. The inner `None`: there is no live word. The
    /// outer one: contended, nothing changed.
    pub(super) fn update<A: Access, T>(
        &self,
        layout: &Layout,
        tag: Tag,
        step: impl Fn(Seen) -> (T, Option<u64>),
    ) -> Option<Option<T>> {
        for _ in 0..MAX_LOST {
            let Some((at, slot, _)) = self.find(layout, tag) else { return Some(None) };
            // ORDERING: Acquire; pairs with the AcqRel swap that placed the word: what was in the other slots before
            // that is seen by `step`.
            let word = slot.load(Ordering::Acquire);
            if !layout.is_live_of(word, tag) {
                continue;
            }
            let (answer, next) = step(Seen { at, word });
            let Some(next) = next else { return Some(Some(answer)) };
            if A::replace(slot, word, next).is_ok() {
                return Some(Some(answer));
            }
        }
        None
    }

    /// Turns the key's live word into a tombstone where it owes anything. False when contended.
    pub(super) fn reset<A: Access>(&self, layout: &Layout, tag: Tag, now_q: u64) -> bool {
        self.update::<A, ()>(layout, tag, |seen| {
            let owes = layout.lead(seen.word, now_q) != 0;
            ((), owes.then(|| layout.tombstone(seen.word)))
        })
        .is_some()
    }

    /// Does a tombstone of this set lie at least `left` ahead? Then a permit with as much left may be of before the
    /// reset of its key.
    pub(super) fn has_tombstone(&self, layout: &Layout, now_q: u64, left: u64) -> bool {
        self.slots().any(|(_, slot)| {
            // ORDERING: Relaxed; after the Acquire load of the live word, which whoever reset the key came before.
            layout.tombstone_lead(slot.load(Ordering::Relaxed), now_q) >= left
        })
    }
}
