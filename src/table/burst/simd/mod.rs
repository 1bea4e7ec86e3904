//! Bursts by groups of eight: all that comes before a swap in vectors, then eight swaps and little else.
//!
//! ```text
//!  A place   8 hashes --multiply, shift--> 8 home lines, 8 tags          vectors
//!  B search  8 words ^ tag, test --> mask --> slot, for each lane        8 instructions a lane, no branch: the last
//!                                                                        word of a line counts as a match always
//!  C decode  8 slots --load, compare, decode--> live, pass, 8 new words  vectors
//!  S swaps   8 x (load old, new, slot; swap; jump if lost)               where all eight lanes pass
//!
//!  turn k    C k   ahead for the requests of group k   B k+1   S k   A k+2
//! ```
//!
//! The lane of a key that is not in its home line is patched by scalar code where the key is in the second line; where
//! [`MOST_ABSENT`] lanes or fewer are absent, since of more most are new.
//! A group leaves the fast path by these rules, and then goes in the order of its lanes:
//!
//! - all lanes are live and denied: nothing is stored;
//! - some pass, or a swap was lost: swap by swap; a lane whose swap is lost is looked at once more, in its slot;
//! - a lane is absent, or lost again: it is decided as a single call does, which looks, inserts and asks the policy. Of
//!   the lanes behind it those that pass have their swap still, the others look once more, in the slot that was found.
//!
//! # Why the verdicts are those of single calls, one after the other
//!
//! C of a group comes after everything that the groups before it stored. So only lanes of its own group can come
//! between the word that a lane was decided from and its turn, and they do one of two things: charge, or insert.
//!
//! 1. A pass is proved by its swap (exclusive tables compare before each store): the word is the one that it was
//!    decided from. Where an earlier lane has charged the same key, or an insert has taken its slot over, the swap is
//!    lost, and the lane looks again.
//! 2. A denied key stays denied: under one limit at one instant a charge only raises its lead. Charges of other keys
//!    leave it as it is. An insert may take its slot over, so a denied lane behind one looks again.
//! 3. Absent is never an answer: B may have looked before the key was inserted, so an absent lane looks again.
//! 4. A slot that B found may have changed hands before C: C compares the whole word with the tag, and so does whoever
//!    looks again. A word that is equal is the live word of the key, however it came to be there, since a key has one.
//!
//! Beside other threads each decision is one of its own, made within the call: a pass at its swap, a denial at the read
//! in C, which may lie before the swaps of earlier lanes. A refund or reset between that read and a swap of an earlier
//! lane comes too late for the denied one, as it would be a moment later in a single call.
//!
//! Bounded: a group swaps each lane at most three times before a single call, whose bounds are its own. What is not
//! here: costs, options, soft limits that are counted, limits that count.
//!
//! # Where they pay
//!
//! On a Zen 4 (AMD EPYC of family 25, 2026-11-23, beside other work; 1000 keys, 64 at a time with the next burst in
//! between, ns by the fastest visit of 2^16; of two runs of each build in turn the slower one), without groups
//! and with all by those of AVX2, of AVX-512, or of AVX-512 where some were denied:
//!
//! | | without | AVX2 | AVX-512 | where denied |
//! |---|---|---|---|---|
//! | conforming | 6.80 | 6.53 | 6.18 | 7.12 |
//! | half denied, in no order | 13.4 | 7.42 | 7.07 | 7.18 |
//! | denied; exclusive | 5.62; 6.07 | 4.99; 5.41 | 4.83; 5.36 | 5.31; 5.36 |
//!
//! What lies between two locked swaps there costs its instructions, 0.05 ns each. Of requests of which half pass, the
//! scalar loop mispredicts every other one, a group how many they are.
//!
//! On a Zen 5 (AMD EPYC of family 26, 2026-11-22, the same bursts, medians of seven runs, with AVX-512 where
//! denied) groups took exclusive bursts from 4.51 to 3.37, denied ones from 4.42 to 3.74. Where each passed they
//! did not pay: 6.6 became 6.9 and 7.5 became 7.9 to 9.3, whether B of the next group stood before the swaps or between
//! them, C before or after them, the keys were hashed in vectors or not. What lies between two locked swaps costs the
//! same there however it is spread. So on a Zen 5 a shared table goes by groups when [`DENIED`] requests of the burst
//! were denied, or of the one before it; elsewhere at once.
//!
//! NEON has two words a vector, and its step saves no instruction: with it 96.3 a conforming decision beside 94.8
//! without (docs/PERFORMANCE.md, what was tried). So other processors have the plain step, and only in tests.

#[cfg(tatcell_sse2)]
mod avx2;
#[cfg(tatcell_sse2)]
mod avx512;
#[cfg(test)]
mod portable;

use core::ops::Range;

use super::scalar::{Burst, Stop};
use crate::algorithms::gcra::{self, Plain};
use crate::keys::home_line;
use crate::limit::params::Params;
use crate::sync::access::Access;
use crate::sync::{AtomicU64, Ordering};
use crate::table::counters::Counters;
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::word::{Layout, Tag};
use crate::table::set::search::Scan;

/// Lanes of a group, and fewer in models.
#[cfg(tatcell_sse2)]
pub(in crate::table) const LANES: usize = 8;
#[cfg(not(tatcell_sse2))]
pub(in crate::table) const LANES: usize = 2;

/// The shortest burst that goes by groups.
const FEWEST: usize = 3 * LANES;

/// So many lanes of a group, at most half of them, are looked for in their second lines before any is decided; of more,
/// none.
const MOST_ABSENT: u32 = 3;

/// A shared table whose bursts do not go by groups at once goes by them when so many requests of a burst were denied.
const DENIED: usize = 4;

/// What a processor does for a group of `L` requests. `L` is 8 except in models.
pub(in crate::table) trait Step<const L: usize>: Scan {
    /// A: the home lines of these hashes, and their tags.
    fn place<'m>(self, rule: &Rule<'m>, homes: &mut Homes<'m, L>, side: &mut Side<'m, L>, hashes: &[u64; L]);

    /// B: a slot of each home line placed last; that of its key if it is there.
    fn search<'m>(self, rule: &Rule<'m>, homes: &Homes<'m, L>, side: &mut Side<'m, L>);

    /// C: loads the words, each whole, and decides from them.
    fn decode(self, rule: &Rule<'_>, side: &Side<'_, L>, words: &mut Words<L>) -> Decoded;
}

/// What all requests of a burst have in common, as vectors read it.
#[repr(C)]
pub(in crate::table) struct Rule<'m> {
    /// The first line of the table, and how many there are.
    base: *const Line,
    lines: u64,
    /// The layout of its words: W, the tag's bits, a tag of 1, all but the payload, the payload, the first lead past.
    bits: u64,
    field: u64,
    one: u64,
    head: u64,
    mask: u64,
    past: u64,
    /// Now, as a payload; the most lead that may be charged; the charge.
    now: u64,
    limit: u64,
    charge: u64,
    /// The same once more for scalar code.
    slots: &'m [Line],
    layout: &'m Layout,
    params: &'m Params,
}

/// Home lines of the group that A placed last.
#[repr(C, align(64))]
pub(in crate::table) struct Homes<'m, const L: usize>([&'m Line; L]);

/// What A and B found for a group, in arrays of a lane each. Groups take turns with two of them.
#[repr(C, align(64))]
pub(in crate::table) struct Side<'m, const L: usize> {
    tags: [u64; L],
    slots: [&'m AtomicU64; L],
}

/// What C loaded for a group, and what a swap makes of it.
#[repr(C, align(64))]
pub(in crate::table) struct Words<const L: usize> {
    old: [u64; L],
    new: [u64; L],
}

/// What C found. Bit i is that of lane i.
#[derive(Clone, Copy)]
pub(in crate::table) struct Decoded {
    /// The slot holds the live word of its key.
    live: u32,
    /// Of these: it conforms.
    pass: u32,
}

/// Changes a word to another while it is the one that was decided from.
#[inline(always)]
fn swap<M: Access>(slot: &AtomicU64, old: u64, new: u64) -> bool {
    // ORDERING: Relaxed; one owner. An earlier lane may have changed it.
    (!M::EXCLUSIVE || slot.load(Ordering::Relaxed) == old) && M::replace(slot, old, new).is_ok()
}

/// All lanes of a group.
const fn all(lanes: usize) -> u32 {
    (1 << lanes) - 1
}

/// Slots, words and new words of a group, after C.
#[inline(always)]
fn lanes<'a, const L: usize>(
    side: &'a Side<'_, L>,
    words: &'a Words<L>,
) -> impl Iterator<Item = (&'a AtomicU64, u64, u64)> {
    side.slots.iter().zip(&words.old).zip(&words.new).map(|((slot, old), new)| (*slot, *old, *new))
}

/// S: swaps all lanes in order. Gives the number of the first that was lost, `L` if none.
#[inline(always)]
fn swaps<M: Access, const L: usize>(side: &Side<'_, L>, words: &Words<L>) -> usize {
    for (i, (slot, old, new)) in lanes(side, words).enumerate() {
        if !swap::<M>(slot, old, new) {
            return i;
        }
    }
    L
}

impl<M: Access> Table<'_, M> {
    /// May a burst be decided in groups? Where this processor has a step for them, and the burst asks for one unit
    /// each, under a limit without options, and for no soft pass to be counted.
    #[inline(always)]
    pub(in crate::table) fn may_group(&self, burst: &Burst<'_>, counted: bool) -> bool {
        let Burst { limit, hashes, costs, .. } = burst;
        let calm = !counted || limit.0.soft_q >= limit.0.burst_q;
        let has_step = self.half.is_some() || self.wide.is_some();
        hashes.len() >= FEWEST && costs.is_none() && limit.0.plain != 0 && calm && has_step
    }

    /// Decides a burst that may be decided in groups, by them where they pay.
    #[inline(always)]
    pub(in crate::table) fn decide_by(
        &self,
        burst: &Burst<'_>,
        mut counters: Option<&mut Counters>,
        ahead: impl Fn(&Self, Range<usize>) + Copy,
    ) -> u64 {
        let Stop { at, pass } = match M::EXCLUSIVE || self.at_once || burst.denies(DENIED) {
            true => Stop { at: 0, pass: 0 },
            false => self.decide_from(burst, 0, DENIED, counters.as_deref_mut(), ahead),
        };
        if at >= burst.hashes.len() {
            return pass;
        }
        pass | match (self.wide, self.half) {
            (Some(wide), _) => self.decide_groups::<_, LANES>(wide, burst, at, counters, ahead),
            (None, Some(half)) => self.decide_groups::<_, LANES>(half, burst, at, counters, ahead),
            (None, None) => self.decide_from(burst, at, usize::MAX, counters, ahead).pass,
        }
    }

    /// Decides the requests from number `from` on, calling `ahead(self, these)` before the swaps of these.
    #[inline(never)]
    pub(in crate::table) fn decide_groups<S: Step<L>, const L: usize>(
        &self,
        step: S,
        burst: &Burst<'_>,
        from: usize,
        mut counters: Option<&mut Counters>,
        ahead: impl Fn(&Self, Range<usize>) + Copy,
    ) -> u64 {
        let Some(line) = self.slots.first() else { return 0 };
        let (rule, slot) = (&self.rule(burst), &line.words[0]);
        let homes = &mut Homes([line; L]);
        let [mut side, mut other] = [(); 2].map(|()| Side { tags: [0; L], slots: [slot; L] });
        let (mut side, mut other) = (&mut side, &mut other);
        let words = &mut Words { old: [0; L], new: [0; L] };
        let hashes = burst.hashes.get(from..).unwrap_or_else(|| impossible!(&[]));
        let mut groups = hashes.chunks_exact(L).filter_map(|group| group.first_chunk::<L>());
        if let Some(hashes) = groups.next() {
            step.place(rule, homes, side, hashes);
            step.search(rule, homes, side);
        }
        if let Some(hashes) = groups.next() {
            step.place(rule, homes, other, hashes);
        }
        let (mut at, mut pass) = (from, 0u64);
        for hashes in hashes.chunks_exact(L).filter_map(|group| group.first_chunk::<L>()) {
            let mut decoded = step.decode(rule, side, words);
            if decoded.live != all(L) {
                decoded = self.second_lines(step, rule, side, words, hashes, decoded);
            }
            ahead(self, at..at + L);
            step.search(rule, homes, other);
            let bits = self.settle_group(burst, &mut counters, side, words, hashes, decoded);
            pass |= u64::from(bits).wrapping_shl(at as u32);
            if let Some(hashes) = groups.next() {
                step.place(rule, homes, side, hashes);
            }
            core::mem::swap(&mut side, &mut other);
            at += L;
        }
        if at < burst.hashes.len() {
            pass |= self.decide_from(burst, at, usize::MAX, counters, ahead).pass;
        }
        pass
    }

    #[inline(always)]
    fn rule<'a>(&'a self, burst: &Burst<'a>) -> Rule<'a> {
        let (layout, p) = (&self.geometry.layout, &burst.limit.0);
        Rule {
            base: self.slots.as_ptr(),
            lines: self.geometry.lines.into(),
            bits: layout.bits.into(),
            field: layout.field,
            one: layout.mask.wrapping_add(1),
            head: !layout.mask,
            mask: layout.mask,
            past: layout.past,
            now: self.now_q(burst.now) & layout.mask,
            // A plain limit has a burst of at least one unit.
            limit: p.burst_q.wrapping_sub(p.t_q),
            charge: p.t_q,
            slots: self.slots,
            layout,
            params: p,
        }
    }

    /// Decides a group from what C found. Bit i is 1 where lane i passes.
    #[inline(always)]
    fn settle_group<const L: usize>(
        &self,
        burst: &Burst<'_>,
        counters: &mut Option<&mut Counters>,
        side: &Side<'_, L>,
        words: &Words<L>,
        hashes: &[u64; L],
        decoded: Decoded,
    ) -> u32 {
        let done = if decoded.pass == all(L) { swaps::<M, L>(side, words) } else { 0 };
        let bits = match decoded {
            _ if done == L => all(L),
            Decoded { live, pass: 0 } if live == all(L) => 0,
            _ => return self.in_order(burst, counters, side, words, hashes, (decoded, done)),
        };
        if let Some(counters) = counters {
            counters.count_plain(bits.count_ones(), L as u32);
        }
        bits
    }

    /// Decides what is left of a group in the order of its lanes. `done`: so many have passed; where all were to, the
    /// next one has lost its swap.
    ///
    /// From one that passes or is absent to the next: asking each lane would be wrong half of the time where half of
    /// them pass. Behind one that may have been inserted the denied ones look once more, too.
    #[inline(never)]
    fn in_order<const L: usize>(
        &self,
        burst: &Burst<'_>,
        counters: &mut Option<&mut Counters>,
        side: &Side<'_, L>,
        words: &Words<L>,
        hashes: &[u64; L],
        (decoded, done): (Decoded, usize),
    ) -> u32 {
        let mut pass = (1u32 << done) - 1;
        let lost = if decoded.pass == all(L) { 1 << done } else { 0 };
        let mut left = (decoded.pass | !decoded.live) & all(L) & !pass;
        let mut alone = 0u32;
        while left != 0 {
            let (i, bit) = (left.trailing_zeros() as usize % L, left & left.wrapping_neg());
            left ^= bit;
            let (slot, hash) = (side.slots[i], hashes[i]);
            let made = if decoded.pass & !lost & bit != 0 && swap::<M>(slot, words.old[i], words.new[i]) {
                Some(true)
            } else if decoded.live & bit != 0 {
                self.once_more(burst, slot, hash)
            } else {
                None
            };
            let passes = match made {
                Some(passes) => passes,
                None => {
                    alone |= bit;
                    left = all(L) & !(bit | (bit - 1));
                    self.decide_one(burst, hash, 1, counters.as_deref_mut())
                }
            };
            pass |= u32::from(passes) << i;
        }
        if let Some(counters) = counters {
            counters.count_plain((pass & !alone).count_ones(), L as u32 - alone.count_ones());
        }
        pass
    }

    /// Looks again at a slot whose swap was lost, most often to the same key in an earlier lane. `None`: it is not the
    /// key's any more, or the swap was lost again.
    #[inline(always)]
    fn once_more(&self, burst: &Burst<'_>, slot: &AtomicU64, hash: u64) -> Option<bool> {
        let (layout, now_q) = (&self.geometry.layout, self.now_q(burst.now));
        let tag = layout.tag(hash);
        // ORDERING: Relaxed; single word, value only.
        let word = slot.load(Ordering::Relaxed);
        if !layout.is_live_of(word, tag) {
            return None;
        }
        // Requests of a group cost one unit each.
        match gcra::plain(&burst.limit.0, layout.lead(word, now_q), 1) {
            Plain::Store(lead) => {
                let next = layout.live(tag, now_q.wrapping_add(lead));
                M::replace(slot, word, next).is_ok().then_some(true)
            }
            Plain::Wait(_) => Some(false),
            Plain::Other => None,
        }
    }

    /// Looks for the lanes that are not in their home line in the second one, and patches what it finds.
    #[inline(never)]
    fn second_lines<'m, S: Step<L>, const L: usize>(
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
        // Of many that are absent most are new, and whoever inserts one looks at its second line, too.
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

#[cfg(all(test, not(tatcell_loom)))]
#[path = "mod_tests.rs"]
mod tests;
