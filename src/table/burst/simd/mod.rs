//! Bursts in groups of eight: vectors compute everything that a swap needs, then eight swaps follow each other.
//!
//! ```text
//!  A place   8 hashes --multiply, shift--> 8 home lines, 8 tags          vectors
//!  B search  8 words ^ tag, test --> mask --> slot, for each lane        8 instructions a lane, no branch: the last
//!                                                                        word of a line always counts as a match
//!  C decode  8 slots --load, compare, decode--> live, pass, 8 new words  vectors
//!  S swaps   8 x (load old, new, slot; swap; jump if lost)               if all eight lanes pass
//!
//!  turn k    C k   prefetch for the requests of group k   B k+1   S k   A k+2
//! ```
//!
//! With AVX-512 both lines of a set are prefetched for the requests to come. With AVX2 only the home lines are: B says
//! which keys are absent there, and their second lines are prefetched behind B, before S.
//!
//! B scans only the home line. If a few lanes of a group (at most `MOST_ABSENT`) did not find their key there, scalar
//! code scans the second line for each of them. If more did not, most of the keys are new, and the insert scans anyway.
//! The fast path is a group whose eight lanes all pass and whose eight swaps succeed. Other groups are decided in the
//! order of their lanes:
//!
//! - All lanes are live and denied: nothing is stored.
//! - Some lanes pass, or a swap was lost: each passing lane swaps in turn. A lane that loses its swap loads its slot
//!   again, and is decided again.
//! - A lane is absent, or lost its second swap: a single call decides it. That call may insert. So of the lanes after
//!   it, those that pass still have their swap to prove it, and the others load their slot again.
//!
//! # Why the verdicts are those of single calls, one after the other
//!
//! C of a group comes after every store of the groups before it. So only earlier lanes of the same group can come
//! between the load of a lane and its turn, and they do one of two things: charge, or insert.
//!
//! 1. A pass is proved by its swap, because the slot must still hold the word that the lane was decided from (exclusive
//!    tables compare before each store). If an earlier lane charged the same key, or an insert took its slot over, the
//!    swap is lost, and the lane is decided again.
//! 2. A denied key stays denied: under one limit at one instant a charge only raises its lead, and charges of other
//!    keys do not change it. An insert may take its slot over, so a denied lane after an insert is decided again.
//! 3. Absent is never an answer: B may have scanned before the key was inserted, so a single call scans again.
//! 4. Another key may take a slot over between B and C. So C and every later load compare the whole word with the tag.
//!    An equal word is the live word of the key, because a key has only one.
//!
//! To other threads each decision is one of its own, made within the call: a pass at its swap, a denial at the load in
//! C, which may come before the swaps of earlier lanes. A refund or reset between that load and those swaps comes too
//! late for the denied lane, as if it had come a moment later than a single call.
//!
//! Bounded: a group swaps each lane at most three times. Then a single call decides it, which has bounds of its own.
//! Groups do not decide requests with costs, limits with options, soft limits that are counted, and limits that count.
//!
//! # When groups are faster
//!
//! Zen 4 (AMD EPYC of family 25 with AVX-512, 2026-11-23, other work on the machine; 1000 keys, 64 at a time, the next
//! burst prefetched between the decisions). The table has the ns of the fastest visit of 2^16. Each build ran twice, in
//! turn with the others, and the slower run counts. The columns are: without groups; with groups by AVX2; by AVX-512;
//! by AVX-512 only after some requests were denied.
//!
//! | | without | AVX2 | AVX-512 | after denials |
//! |---|---|---|---|---|
//! | conforming | 6.80 | 6.53 | 6.18 | 7.12 |
//! | half denied, in no order | 13.4 | 7.42 | 7.07 | 7.18 |
//! | denied; exclusive | 5.62; 6.07 | 4.99; 5.41 | 4.83; 5.36 | 5.31; 5.36 |
//!
//! An instruction between two locked swaps costs 0.05 ns there. When half of the requests pass, the scalar loop
//! mispredicts every second branch, and a group mispredicts once: how many of its lanes pass.
//!
//! Zen 5 (AMD EPYC of family 26, 2026-11-22, the same bursts, medians of seven runs, AVX-512 after denials): exclusive
//! bursts went from 4.51 to 3.37, and denied ones from 4.42 to 3.74. If every request passed, groups were slower: 6.6
//! became 6.9, and 7.5 became 7.9 to 9.3. It made no difference whether B of the next group stood before or between
//! the swaps, whether C stood before or after them, and whether vectors hashed the keys. Instructions between two
//! locked swaps cost the same there however they are spread. So on a Zen 5 a shared table uses groups only after
//! [`DENIED`] requests of this burst or of the last one were denied. Elsewhere it uses them at once.
//!
//! Zen 3 (AMD EPYC of family 25, model 1, with AVX2 but not AVX-512; 2026-11-27): it has room for 24
//! misses, and drops a prefetch that finds none. With home lines alone, and second lines behind B, bursts of 64 went
//! from 24.5 to 15.6 ns a decision at 1e7 keys; in cache from 7.0 to 7.3. B before C gained 0.1 in cache, and lost 2
//! at 1e6 keys. docs/PERFORMANCE.md has the other rows.
//!
//! A NEON vector has two words, and its step saves no instruction: 96.3 a conforming decision instead of 94.8 without
//! groups (docs/PERFORMANCE.md, what was tried). So other processors have the plain step, and only in tests.

#[cfg(tatcell_sse2)]
mod avx2;
#[cfg(tatcell_sse2)]
mod avx512;
#[cfg(test)]
mod portable;
mod second;

use core::ops::Range;

use super::call::Burst;
use super::scalar::Stop;
use super::Which;
use crate::algorithms::gcra::{self, Plain};
use crate::limit::params::Params;
use crate::sync::access::Access;
use crate::sync::{AtomicU64, Ordering};
use crate::table::counters::Counters;
use crate::table::handle::Table;
use crate::table::layout::image::Line;
use crate::table::layout::word::Layout;
use crate::table::set::search::Scan;

/// Lanes of a group. Models have fewer.
#[cfg(tatcell_sse2)]
pub(in crate::table) const LANES: usize = 8;
#[cfg(not(tatcell_sse2))]
pub(in crate::table) const LANES: usize = 2;

/// The shortest burst that is decided in groups.
pub(super) const FEWEST: usize = 3 * LANES;

/// A shared table that does not use groups at once uses them after this many requests of a burst were denied.
const DENIED: usize = 4;

/// The parts of a group's decision that a processor does with its vectors. `L`, the lanes of the group, is 8 except in
/// models.
pub(in crate::table) trait Step<const L: usize>: Scan {
    /// Which lines are prefetched for the requests to come. If only the home lines are, B says which keys are absent
    /// there, and their second lines are prefetched then.
    const AHEAD: Which;

    /// A: stores the home line and the tag of each hash.
    fn place<'m>(self, rule: &Rule<'m>, homes: &mut Homes<'m, L>, side: &mut Side<'m, L>, hashes: &[u64; L]);

    /// B: stores one slot of each home line that A placed last: the slot of the key if it is there, else any. Returns
    /// bit i if the key of lane i was absent, or 0 if `AHEAD` is both lines.
    fn search<'m>(self, rule: &Rule<'m>, homes: &Homes<'m, L>, side: &mut Side<'m, L>) -> u32;

    /// C: loads the word of each slot with one load, and decides from it.
    fn decode(self, rule: &Rule<'_>, side: &Side<'_, L>, words: &mut Words<L>) -> Decoded;
}

/// What all requests of a burst have in common, in the form that vectors read.
#[repr(C)]
pub(in crate::table) struct Rule<'m> {
    /// The first line of the table, and the number of lines.
    base: *const Line,
    lines: u64,
    /// The layout of a word: the bits of its payload; masks of the tag, a tag of 1, all but the payload, the payload.
    /// Then the first lead that counts as expired.
    bits: u64,
    field: u64,
    one: u64,
    head: u64,
    mask: u64,
    past: u64,
    /// Now, as a payload; the largest lead that conforms; the charge.
    now: u64,
    limit: u64,
    charge: u64,
    /// The lines and the layout again, for scalar code.
    slots: &'m [Line],
    layout: &'m Layout,
    params: &'m Params,
}

/// The home lines of the group that A placed last.
#[repr(C, align(64))]
pub(in crate::table) struct Homes<'m, const L: usize>([&'m Line; L]);

/// The tags from A and the slots from B, one for each lane. Two groups are in work at a time, and each has one.
#[repr(C, align(64))]
pub(in crate::table) struct Side<'m, const L: usize> {
    tags: [u64; L],
    slots: [&'m AtomicU64; L],
}

/// The words that C loaded for a group, and the words that the swaps store.
#[repr(C, align(64))]
pub(in crate::table) struct Words<const L: usize> {
    old: [u64; L],
    new: [u64; L],
}

/// What C decided. Bit i belongs to lane i.
#[derive(Clone, Copy)]
pub(in crate::table) struct Decoded {
    /// The slot holds the live word of the key.
    live: u32,
    /// The lane is live and its request conforms.
    pass: u32,
}

/// Replaces the word that a lane was decided from, if the slot still holds it.
#[inline(always)]
fn swap<M: Access>(slot: &AtomicU64, old: u64, new: u64) -> bool {
    // ORDERING: Relaxed; one owner. The comparison is needed because an earlier lane may have changed the word.
    (!M::EXCLUSIVE || slot.load(Ordering::Relaxed) == old) && M::replace(slot, old, new).is_ok()
}

/// A bit for each lane of a group.
const fn all(lanes: usize) -> u32 {
    (1 << lanes) - 1
}

/// The slot, the old word and the new word of each lane, after C.
#[inline(always)]
fn lanes<'a, const L: usize>(
    side: &'a Side<'_, L>,
    words: &'a Words<L>,
) -> impl Iterator<Item = (&'a AtomicU64, u64, u64)> {
    side.slots.iter().zip(&words.old).zip(&words.new).map(|((slot, old), new)| (*slot, *old, *new))
}

/// S: swaps all lanes in order. Returns the number of the first lane that lost its swap, or `L`.
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
    /// Returns whether a burst may be decided in groups: this processor has a step for them, each request costs one
    /// unit, the limit has no options, and no soft pass must be counted.
    #[inline(always)]
    pub(in crate::table) fn may_group(&self, burst: &Burst<'_>, counted: bool) -> bool {
        let Burst { limit, hashes, costs, .. } = burst;
        let calm = !counted || limit.0.soft_q >= limit.0.burst_q;
        let has_step = self.half.is_some() || self.wide.is_some();
        hashes.len() >= FEWEST && costs.is_none() && limit.0.plain != 0 && calm && has_step
    }

    /// Decides a burst that may be decided in groups, and uses them if they are faster.
    #[inline(always)]
    pub(in crate::table) fn decide_by(
        &self,
        burst: &Burst<'_>,
        mut counters: Option<&mut Counters>,
        ahead: impl Fn(&Self, Range<usize>, Which) + Copy,
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

    /// Decides the requests from number `from` on. Calls `ahead(self, range, which)` before the swaps of each range.
    #[inline(never)]
    pub(in crate::table) fn decide_groups<S: Step<L>, const L: usize>(
        &self,
        step: S,
        burst: &Burst<'_>,
        from: usize,
        mut counters: Option<&mut Counters>,
        ahead: impl Fn(&Self, Range<usize>, Which) + Copy,
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
            self.prefetch_seconds(homes, step.search(rule, homes, side));
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
            ahead(self, at..at + L, S::AHEAD);
            // Behind the last group there is none whose absent keys could need a line.
            if matches!(S::AHEAD, Which::Both) || at + 2 * L <= burst.hashes.len() {
                self.prefetch_seconds(homes, step.search(rule, homes, other));
            }
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
            // This cannot wrap: a plain limit has a burst of at least one unit.
            limit: p.burst_q.wrapping_sub(p.t_q),
            charge: p.t_q,
            slots: self.slots,
            layout,
            params: p,
        }
    }

    /// Decides a group from the result of C. Bit i is 1 if lane i passes.
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

    /// Decides the rest of a group in the order of its lanes. The first `done` lanes have passed. If all lanes were to
    /// pass, the next one has lost its swap.
    ///
    /// The loop goes from one lane that passes or is absent to the next one. A branch for each lane would be
    /// mispredicted half of the time when half of them pass. After a lane that may have been inserted, the denied lanes
    /// load their slots again, too.
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

    /// Decides a lane again from its slot after its swap was lost, most often to the same key in an earlier lane.
    /// Returns `None` if the slot no longer belongs to the key, or if the swap was lost again.
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
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "mod_tests.rs"]
mod tests;
