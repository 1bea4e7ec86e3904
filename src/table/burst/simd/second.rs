//! The second lines of a group: prefetched for the keys that B did not find in their home line, and scanned.

use super::{all, Decoded, Homes, Rule, Side, Step, Words};
use crate::algorithms::gcra::{self, Plain};
use crate::keys::home_line;
use crate::sync::access::Access;
use crate::sync::Ordering;
use crate::table::burst::prefetch_line;
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::word::Tag;

/// If at most this many lanes of a group (and at most half of them) are absent, their second lines are scanned before
/// any lane is decided. If more are absent, none is.
pub(super) const MOST_ABSENT: u32 = 3;

impl<M: Access> Table<'_, M> {
    /// Prefetches the second lines of these lanes of the group that A placed last.
    #[inline(always)]
    pub(super) fn prefetch_seconds<const L: usize>(&self, homes: &Homes<'_, L>, mut lanes: u32) {
        while lanes != 0 {
            let (lane, base) = (lanes.trailing_zeros() as usize % L, self.slots.as_ptr());
            lanes &= lanes.wrapping_sub(1);
            let home =
                (core::ptr::from_ref(homes.0[lane]) as usize).wrapping_sub(base as usize) / size_of::<Line>();
            prefetch_line::<false>(base.wrapping_add(home ^ 1).cast());
        }
    }

    /// Scans the second lines of the lanes whose key is not in its home line, and corrects those that it finds.
    #[inline(never)]
    pub(super) fn second_lines<'m, S: Step<L>, const L: usize>(
        &self,
        step: S,
        rule: &Rule<'m>,
        side: &mut Side<'m, L>,
        words: &mut Words<L>,
        hashes: &[u64; L],
        decoded: Decoded,
    ) -> Decoded {
        let Decoded { mut live, mut pass } = decoded;
        let layout = rule.layout;
        let mut absent = !live & all(L);
        // If many are absent, most are new keys, and the insert of a new key scans its second line anyway.
        if absent.count_ones() > MOST_ABSENT.min(L as u32 / 2) {
            return decoded;
        }
        while absent != 0 {
            let (i, bit) = (absent.trailing_zeros() as usize % L, absent & absent.wrapping_neg());
            absent ^= bit;
            let tag = Tag(side.tags[i]);
            let Some(line) = rule.slots.get(home_line(hashes[i], rule.lines as u32) ^ 1) else { continue };
            let bits = step.matches(&line.words, layout, tag);
            let Some(slot) = line.words.get((bits.trailing_zeros() / S::BITS) as usize) else { continue };
            // ORDERING: Relaxed; single word, value only.
            let word = slot.load(Ordering::Relaxed);
            if !layout.is_live_of(word, tag) {
                continue;
            }
            live |= bit;
            (side.slots[i], words.old[i]) = (slot, word);
            if let Plain::Store(lead) = gcra::plain(rule.params, layout.lead(word, rule.now), 1) {
                pass |= bit;
                words.new[i] = layout.live(tag, rule.now.wrapping_add(lead));
            }
        }
        Decoded { live, pass }
    }
}
