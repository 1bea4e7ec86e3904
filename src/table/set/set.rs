//! The set of a key, its home line and the neighbouring line; and how a live slot is found and changed in it.

use super::search::{Avx512, Base, Scan};
use crate::sync::access::{Access, Shared};
use crate::sync::{AtomicU64, Ordering, MAX_LOST};
use crate::table::layout::word::{Layout, Tag};

/// The two lines of a key: the home line, and its neighbour. `N` is 8 except in models.
pub(crate) struct Set<'a, const N: usize> {
    pub home: &'a [AtomicU64; N],
    pub next: &'a [AtomicU64; N],
    /// Number of the home line in the table; its neighbour is `line ^ 1`.
    pub line: u32,
}

/// A slot and the word seen in it.
#[derive(Clone, Copy)]
pub(in crate::table) struct Seen {
    /// Position in search order: 0..N home line, N..2N its neighbour.
    pub at: usize,
    pub word: u64,
}

impl<'a, const N: usize> Set<'a, N> {
    /// The slot at a position in search order. Positions come from searches and loops over the set, so there is one;
    /// else `None`, and the caller charges nobody: it scans again, and is contended at its bound.
    #[inline(always)]
    pub fn slot(&self, at: usize) -> Option<&'a AtomicU64> {
        let (line, i) = if at < N { (self.home, at) } else { (self.next, at - N) };
        line.get(i).or_else(|| impossible!(None))
    }

    /// Returns the position in address order.
    #[inline(always)]
    pub(in crate::table) fn rank(&self, at: usize) -> usize {
        if self.line & 1 == 1 {
            (at + N) % (2 * N)
        } else {
            at
        }
    }

    /// Returns the number in the table of the slot at a position in search order.
    #[inline(always)]
    pub(in crate::table) fn number(&self, at: usize) -> u32 {
        let (line, i) = if at < N { (self.line, at) } else { (self.line ^ 1, at - N) };
        line * N as u32 + i as u32
    }

    /// Finds the key's live slot: home line first, lowest slot first. Returns its position, the slot and its word.
    #[inline(always)]
    pub fn find(&self, layout: &Layout, tag: Tag) -> Option<(usize, &AtomicU64, u64)> {
        self.find_by::<Shared>(Base, layout, tag)
    }

    /// Does the same as [`find`](Set::find) with another way to search a line, in a table of this access.
    #[inline(always)]
    pub fn find_by<A: Access>(
        &self,
        scan: impl Scan,
        layout: &Layout,
        tag: Tag,
    ) -> Option<(usize, &'a AtomicU64, u64)> {
        let (line, first, bits) = match scan.matches(self.home, layout, tag) {
            0 => (self.next, N, scan.matches(self.next, layout, tag)),
            bits => (self.home, 0, bits),
        };
        let (i, slot, word) = seen_at::<A, _, N>(scan, line, bits, layout, tag)?;
        Some((first + i, slot, word))
    }

    /// Does the same as [`find`](Set::find), with AVX-512 if there is one. That branch always goes the same way.
    #[inline(always)]
    pub fn find_wide(
        &self,
        wide: Option<Avx512>,
        layout: &Layout,
        tag: Tag,
    ) -> Option<(usize, &'a AtomicU64, u64)> {
        match wide {
            Some(wide) => self.find_by::<Shared>(wide, layout, tag),
            None => self.find_by::<Shared>(Base, layout, tag),
        }
    }

    /// Finds the key's live slot in the home line only. Returns the slot and its word.
    #[inline(always)]
    pub fn find_home<A: Access>(
        &self,
        scan: impl Scan,
        layout: &Layout,
        tag: Tag,
    ) -> Option<(&'a AtomicU64, u64)> {
        let bits = scan.matches(self.home, layout, tag);
        let (_, slot, word) = seen_at::<A, _, N>(scan, self.home, bits, layout, tag)?;
        Some((slot, word))
    }

    /// Iterates over every slot with its position, in search order.
    #[inline(always)]
    pub(in crate::table) fn slots(&self) -> impl Iterator<Item = (usize, &AtomicU64)> {
        self.home.iter().chain(self.next).enumerate()
    }

    /// Turns the key's live word into a tombstone if it owes anything. Returns false when contended.
    pub(in crate::table) fn reset<A: Access>(&self, layout: &Layout, tag: Tag, now_q: u64) -> bool {
        let owes = |word| layout.lead(word, now_q) != 0;
        self.update::<A, _>(layout, tag, |word| ((), owes(word).then(|| layout.tombstone(word)))).is_some()
    }

    /// Changes the key's live word, if there is one; never inserts. The answers are those of
    /// [`update_in`](Set::update_in).
    pub(in crate::table) fn update<A: Access, T>(
        &self,
        layout: &Layout,
        tag: Tag,
        step: impl Fn(u64) -> (T, Option<u64>),
    ) -> Option<Option<T>> {
        for _ in 0..MAX_LOST {
            // Searches again each time: the winner of the swap may have moved the key.
            let Some((_, slot, word)) = self.find(layout, tag) else { return Some(None) };
            let (answer, next) = step(word);
            let Some(next) = next else { return Some(Some(answer)) };
            if A::replace(slot, word, next).is_ok() {
                return Some(Some(answer));
            }
        }
        None
    }

    /// Returns the position in search order of the slot with this number, or `None` if this set does not have it.
    fn position(&self, number: u32) -> Option<usize> {
        let (line, i) = (number / N as u32, number as usize % N);
        match line ^ self.line {
            0 => Some(i),
            1 => Some(N + i),
            _ => None,
        }
    }

    /// Changes the key's live word in the slot of this number; never inserts. `step` maps the word to an answer and the
    /// next word, if any. Returns `Some(None)` if the word is not there, and `None` if contended, nothing changed.
    pub(in crate::table) fn update_in<A: Access, T>(
        &self,
        number: u32,
        layout: &Layout,
        tag: Tag,
        step: impl Fn(u64) -> (T, Option<u64>),
    ) -> Option<Option<T>> {
        // A permit of another key, or one of before the table was restored with other lines.
        let Some(slot) = self.position(number).and_then(|at| self.slot(at)) else { return Some(None) };
        for _ in 0..MAX_LOST {
            // ORDERING: Relaxed; single word, value only, and the swap decides.
            let word = slot.load(Ordering::Relaxed);
            if !layout.is_live_of(word, tag) {
                return Some(None);
            }
            let (answer, next) = step(word);
            let Some(next) = next else { return Some(Some(answer)) };
            if A::replace(slot, word, next).is_ok() {
                return Some(Some(answer));
            }
        }
        None
    }
}

/// Returns the first slot that a search of this line found, after its place in the line and before its word, if the
/// word is still LIVE with this tag.
#[inline(always)]
fn seen_at<'a, A: Access, S: Scan, const N: usize>(
    _: S,
    line: &'a [AtomicU64; N],
    bits: u32,
    layout: &Layout,
    tag: Tag,
) -> Option<(usize, &'a AtomicU64, u64)> {
    if bits == 0 {
        return None;
    }
    let first = bits.trailing_zeros() as usize;
    // SAFETY: `matches` sets all `BITS` bits of a slot or none, and at least one bit is set. So `first` is `BITS` times
    // the place of a slot in the line, and the offset is that of its word (more than 8 bytes under the model checker).
    let slot = unsafe { &*line.as_ptr().byte_add(first * (size_of::<AtomicU64>() / S::BITS as usize)) };
    // ORDERING: Relaxed; single word, value only. The insert path scans again.
    let word = slot.load(Ordering::Relaxed);
    // With one owner the word cannot have changed hands. Otherwise the insert path scans the whole set.
    (A::EXCLUSIVE || layout.is_live_of(word, tag)).then_some((first / S::BITS as usize, slot, word))
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    /// Search order begins at the home line, address order at the even line, for a home line of either parity.
    #[test]
    fn a_set_is_in_address_order() {
        let lines: [[AtomicU64; 8]; 2] =
            core::array::from_fn(|_| core::array::from_fn(|_| AtomicU64::new(0)));
        for line in [6u32, 7] {
            let (home, next) = (&lines[line as usize & 1], &lines[line as usize & 1 ^ 1]);
            let set = Set { home, next, line };
            for at in 0..16 {
                let address = if (at < 8) == (line == 6) { at % 8 } else { 8 + at % 8 };
                assert_eq!(
                    (set.rank(at), set.number(at)),
                    (address, 6 * 8 + address as u32),
                    "{at} from {line}"
                );
                let here = core::ptr::from_ref(&lines[address / 8][address % 8]);
                assert_eq!(set.slot(at).map(core::ptr::from_ref), Some(here), "{at} from {line}");
                assert_eq!(set.position(set.number(at)), Some(at));
            }
            assert!([0, 6 * 8 - 1, 8 * 8, u32::MAX].iter().all(|other| set.position(*other).is_none()));
            let all: std::vec::Vec<usize> = set.slots().map(|(at, _)| at).collect();
            assert_eq!(all, (0..16).collect::<std::vec::Vec<_>>());
        }
    }

    /// A pair of limits refunds the slot whose number it kept, so the position must be that of the slot.
    #[test]
    fn a_live_slot_is_found_with_its_position() {
        let layout = Layout::new(20, 1 << 20, 16);
        let (tag, other) = (layout.tag(7), layout.tag(8));
        for (line, address) in [6u32, 7].into_iter().flat_map(|line| (0..16).map(move |at| (line, at))) {
            let lines = [const { crate::table::layout::image::Line::EMPTY }; 2];
            for (i, slot) in lines.iter().flat_map(|line| &line.words).enumerate() {
                // ORDERING: Relaxed; one thread.
                slot.store(layout.live(if i == address { tag } else { other }, 5), Ordering::Relaxed);
            }
            let (home, next) = (&lines[line as usize & 1].words, &lines[line as usize & 1 ^ 1].words);
            let set = Set { home, next, line };
            let wide = Avx512::detect();
            for found in [set.find(&layout, tag), set.find_wide(wide, &layout, tag)] {
                let (at, slot, word) = found.expect("it is there");
                assert_eq!((set.number(at), word), (6 * 8 + address as u32, layout.live(tag, 5)));
                let same = set.slot(at).map(core::ptr::from_ref);
                assert_eq!(same, Some(core::ptr::from_ref(slot)), "{address} from {line}");
            }
            assert!(set.find(&layout, layout.tag(9)).is_none());
        }
    }
}
