//! The set of a key: its home line and the neighbour of that, and how a live slot is found and changed in it.

use super::access::Access;
use super::search::{Base, Scan};
use super::word::{Layout, Tag};
use crate::algorithms::gcra;
use crate::answer::{Answer, Step};
use crate::sync::MAX_LOST;
use crate::sync::{AtomicU64, Ordering};

/// The two lines of a key: the home line, and its neighbour. `N` is 8 except in models.
pub(crate) struct Set<'a, const N: usize> {
    pub home: &'a [AtomicU64; N],
    pub next: &'a [AtomicU64; N],
    /// The home line is the second one in address order.
    pub odd: bool,
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

    /// Every slot with its position, in search order.
    #[inline(always)]
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, &AtomicU64)> {
        self.home.iter().chain(self.next).enumerate()
    }

    /// Runs a step on the key's live slot if there is one; never inserts. None when contended.
    pub(crate) fn update<A: Access>(
        &self,
        layout: &Layout,
        tag: Tag,
        now_q: u64,
        step: impl Fn(usize, u64) -> Step,
    ) -> Option<Answer> {
        for _ in 0..MAX_LOST {
            let Some((at, slot, word)) = self.find(layout, tag) else {
                return Some(gcra::refund(0, 0).answer);
            };
            let Step { answer, store } = step(at, layout.lead(word, now_q));
            let Some(lead) = store else { return Some(answer) };
            let next = layout.live(tag, now_q.wrapping_add(lead));
            if A::replace(slot, word, next).is_ok() {
                return Some(answer);
            }
        }
        None
    }
}
