//! The step of a group in plain Rust. Models use it, and tests compare the vectors with it.

use super::{Decoded, Homes, Rule, Side, Step, Words};
use crate::keys::home_line;
use crate::sync::Ordering;
use crate::table::burst::Which;
use crate::table::layout::word::Tag;
use crate::table::set::search::{Base, Scan};

impl<const L: usize> Step<L> for Base {
    const AHEAD: Which = Which::Home;

    fn place<'m>(self, rule: &Rule<'m>, homes: &mut Homes<'m, L>, side: &mut Side<'m, L>, hashes: &[u64; L]) {
        for (i, &hash) in hashes.iter().enumerate() {
            homes.0[i] = &rule.slots[home_line(hash, rule.lines as u32)];
            side.tags[i] = rule.layout.tag(hash).0;
        }
    }

    fn search<'m>(self, rule: &Rule<'m>, homes: &Homes<'m, L>, side: &mut Side<'m, L>) -> u32 {
        let mut absent = 0;
        for (i, home) in homes.0.iter().enumerate() {
            let found = self.matches(&home.words, rule.layout, Tag(side.tags[i]));
            absent |= u32::from(found == 0) << i;
            // The last word always counts as a match, so there is no branch for an absent key.
            let bits = found | 1 << (7 * Self::BITS);
            side.slots[i] = &home.words[(bits.trailing_zeros() / Self::BITS) as usize];
        }
        absent
    }

    fn decode(self, rule: &Rule<'_>, side: &Side<'_, L>, words: &mut Words<L>) -> Decoded {
        let (mut live, mut pass) = (0, 0);
        for i in 0..L {
            // ORDERING: Relaxed; single word, value only.
            let word = side.slots[i].load(Ordering::Relaxed);
            let (tag, lead) = (Tag(side.tags[i]), rule.layout.lead(word, rule.now));
            words.old[i] = word;
            words.new[i] = rule.layout.live(tag, rule.now + lead + rule.charge);
            if rule.layout.is_live_of(word, tag) {
                live |= 1 << i;
                pass |= u32::from(lead <= rule.limit) << i;
            }
        }
        Decoded { live, pass }
    }
}
