//! The set of a key: its home line and the neighbour of that, and how a live slot is found and changed in it.

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
    #[inline(always)]
    pub fn slot(&self, at: usize) -> &AtomicU64 {
        // Positions come from searches and loops over the set. A wrong one would be a slot of this key's set all the
        // same: nothing outside of it is touched.
        let (line, i) = if at < N { (self.home, at) } else { (self.next, at - N) };
        line.get(i).unwrap_or_else(|| impossible!(&self.home[0]))
    }

    /// Position in address order.
    #[inline(always)]
    pub(in crate::table) fn rank(&self, at: usize) -> usize {
        if self.line & 1 == 1 {
            (at + N) % (2 * N)
        } else {
            at
        }
    }

    /// Number in the table of the slot at a position in search order.
    #[inline(always)]
    pub(in crate::table) fn number(&self, at: usize) -> u32 {
        let (line, i) = if at < N { (self.line, at) } else { (self.line ^ 1, at - N) };
        line * N as u32 + i as u32
    }

    /// Finds the key's live slot: home line first, lowest slot first. Gives its position, the slot and its word.
    #[inline(always)]
    pub fn find(&self, layout: &Layout, tag: Tag) -> Option<(usize, &AtomicU64, u64)> {
        self.find_by::<Shared>(Base, layout, tag)
    }

    /// As [`find`](Set::find), with another way to search a line, in a table of this access.
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

    /// As [`find`](Set::find), with AVX-512 where there is one: a branch that never changes.
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

    /// Finds the key's live slot in the home line alone; gives it with its word.
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

    /// Every slot with its position, in search order.
    #[inline(always)]
    pub(in crate::table) fn slots(&self) -> impl Iterator<Item = (usize, &AtomicU64)> {
        self.home.iter().chain(self.next).enumerate()
    }

    /// Turns the key's live word into a tombstone where it owes anything. False when contended.
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
            // Searched again each time: whoever won the swap may have moved the key.
            let Some((_, slot, word)) = self.find(layout, tag) else { return Some(None) };
            let (answer, next) = step(word);
            let Some(next) = next else { return Some(Some(answer)) };
            if A::replace(slot, word, next).is_ok() {
                return Some(Some(answer));
            }
        }
        None
    }

    /// Position in search order of a slot by its number; `None` where it is not one of this set.
    fn position(&self, number: u32) -> Option<usize> {
        let (line, i) = (number / N as u32, number as usize % N);
        match line ^ self.line {
            0 => Some(i),
            1 => Some(N + i),
            _ => None,
        }
    }

    /// Changes the key's live word in the slot of this number, if it is there; never inserts. `step` maps the word to
    /// an answer and the next word, if any. The inner `None`: it is not there. The outer one: contended, nothing
    /// changed.
    pub(in crate::table) fn update_in<A: Access, T>(
        &self,
        number: u32,
        layout: &Layout,
        tag: Tag,
        step: impl Fn(u64) -> (T, Option<u64>),
    ) -> Option<Option<T>> {
        // A permit of another key, or one of before the table was restored with other lines.
        let Some(at) = self.position(number) else { return Some(None) };
        let slot = self.slot(at);
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

/// The first slot of those that a search of this line gave, its place in the line and its word, if that is still LIVE
/// with this tag.
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
    // SAFETY: `matches` gives `BITS` bits a slot, all of them set or none, and one is: `first` is `BITS` times the
    // place of a slot of the line, whose words have so many bytes (more than 8 under the model checker).
    let slot = unsafe { &*line.as_ptr().byte_add(first * (size_of::<AtomicU64>() / S::BITS as usize)) };
    // ORDERING: Relaxed; single word, value only. The insert path looks again.
    let word = slot.load(Ordering::Relaxed);
    // Changed hands in between, which with one owner it cannot have: the insert path looks at the whole set.
    (A::EXCLUSIVE || layout.is_live_of(word, tag)).then_some((first / S::BITS as usize, slot, word))
}

#[cfg(all(test, not(tatcell_loom)))]
mod tests {
    use super::*;

    /// Search order begins at home, address order at the even line: for a home of either parity.
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
                assert!(core::ptr::eq(set.slot(at), &lines[address / 8][address % 8]), "{at} from {line}");
                assert_eq!(set.position(set.number(at)), Some(at));
            }
            assert!([0, 6 * 8 - 1, 8 * 8, u32::MAX].iter().all(|other| set.position(*other).is_none()));
            let all: std::vec::Vec<usize> = set.slots().map(|(at, _)| at).collect();
            assert_eq!(all, (0..16).collect::<std::vec::Vec<_>>());
        }
    }

    /// What a pair of limits gives back is in the slot whose number it kept: the position must be that of the slot.
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
                assert!(core::ptr::eq(set.slot(at), slot), "{address} from {line}");
            }
            assert!(set.find(&layout, layout.tag(9)).is_none());
        }
    }
}
