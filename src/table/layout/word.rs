//! The packed slot word of the keyed table, as pure functions.
//!
//! ```text
//!  bit 63   62            63-t   62-t                                 0
//!  [CLAIM:1][   tag : t       ][              payload : W = 63-t       ]
//!
//!  EMPTY    0    tag 0    version; 0 in an all-zero word, which counts as "now"
//!  LIVE     0    tag x    TAT of key x
//!  CLAIM    1    tag x    version: a key is being inserted, nothing is charged yet
//! ```
//!
//! The payload of a claim is strictly above everything that the slot held before. So a claim word never recurs, and a
//! stalled thread cannot mistake a new claim for its own. The parity says how a claim commits: an even claim took a
//! reusable slot, an odd one took over a debt (payload - 1). A dropped claim leaves an EMPTY word of the same parity.
//!
//! The reset of a key leaves a tombstone: an even EMPTY word above the debt that it forgave. No insert takes it until
//! all but a few q-units have drained, because a claim near now would lie below what the slot held before. The key's
//! next charges go to another slot, so a permit from before the reset gives nothing back (see `calls/full_answer.rs`).
//!
//! Payloads wrap after 2^W q-units; every comparison is modular and any 64-bit value is a valid word.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

const CLAIM: u64 = 1 << 63;

/// Says where tag and payload lie and how a payload is decoded; the same for every slot of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// W = 63 - tag bits.
    pub bits: u32,
    /// 0, so that the compiler leaves no byte unset: see `keys::hash::Zeros`.
    pub(in crate::table) filled: u32,
    /// 2^W - 1.
    pub mask: u64,
    /// The bits of the tag: neither payload nor CLAIM.
    pub field: u64,
    /// A tag of 1, shifted into its place.
    pub one: u64,
    /// CLAIM and the tag's bits. `head` is the high half of that four times, for the vector search.
    pub above: u64,
    pub head: [u32; 4],
    /// H + S of the table, never of a caller's limit: with another H the debt of another key would be misread.
    pub window: u64,
    /// The smallest lead that has expired: H + S + 1.
    pub past: u64,
    /// G, the claim lifetime, in q-units.
    pub lifetime: u64,
    /// How far ahead an EMPTY word may lie and still be taken: the claim lifetime and eight drops of one instant.
    pub grace: u64,
}

/// A tag in its place inside a word, with the CLAIM bit clear; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(pub u64);

impl Layout {
    /// Makes the layout for a tag width of 12..=24 bits.
    pub const fn new(tag_bits: u32, window: u64, lifetime: u64) -> Layout {
        let bits = 63u32.wrapping_sub(tag_bits);
        let mask = (1u64 << bits).wrapping_sub(1);
        Layout {
            bits,
            filled: 0,
            mask,
            field: !mask & !CLAIM,
            one: mask.wrapping_add(1),
            above: !mask,
            head: [(!mask >> 32) as u32; 4],
            window,
            past: window.wrapping_add(1),
            lifetime,
            grace: lifetime.wrapping_add(16),
        }
    }

    /// Returns the tag of a hash: its low bits, or 1 if they are 0.
    #[inline(always)]
    pub const fn tag(&self, hash: u64) -> Tag {
        // The multiplication shifts the tag into place without a register for the count.
        match hash.wrapping_mul(self.one) & self.field {
            0 => Tag(self.one),
            tag => Tag(tag),
        }
    }

    /// Returns the tag field of a word, in its place; 0 means EMPTY.
    #[inline(always)]
    pub const fn tag_field(&self, word: u64) -> u64 {
        word & self.field
    }

    #[inline(always)]
    pub const fn payload(&self, word: u64) -> u64 {
        word & self.mask
    }

    #[inline(always)]
    pub const fn is_empty(&self, word: u64) -> bool {
        self.tag_field(word) == 0
    }

    #[inline(always)]
    pub const fn is_claim(&self, word: u64) -> bool {
        word & CLAIM != 0 && !self.is_empty(word)
    }

    #[inline(always)]
    pub const fn is_live(&self, word: u64) -> bool {
        word & CLAIM == 0 && !self.is_empty(word)
    }

    /// Returns whether the word is LIVE with this tag. Then `word ^ tag` is the payload alone.
    #[inline(always)]
    pub const fn is_live_of(&self, word: u64, tag: Tag) -> bool {
        word ^ tag.0 <= self.mask
    }

    /// Returns whether the word is LIVE or CLAIM with this tag.
    #[inline(always)]
    pub const fn has_tag(&self, word: u64, tag: Tag) -> bool {
        self.tag_field(word) == tag.0
    }

    /// Returns whether the word is CLAIM with this tag.
    #[inline(always)]
    pub const fn is_claim_of(&self, word: u64, tag: Tag) -> bool {
        word & !self.mask == tag.0 | CLAIM
    }

    /// Returns how far the payload lies ahead: 1..=H + S, or 0 if it has expired.
    ///
    /// This is a copy of `gcra::lead_of` without its comparison, because about half the words of a busy table are
    /// expired, in an order that no branch predictor learns. The comparison would save a hit 1.5 to 2.5 instructions,
    /// but add one to three branches and half a misprediction (callgrind with simulated branches: 0.53 instead of 0.03
    /// in a single call, 0.63 instead of 0.12 in a burst). Payload and window are below 2^52, so every bit of `d -
    /// (window + 1)` from 52 up is its sign: 1 = live. The compiler would recognise a shift by 63 as the sign and
    /// branch on it, so the shift is 56.
    #[inline(always)]
    pub const fn lead(&self, word: u64, now_q: u64) -> u64 {
        let d = word.wrapping_sub(now_q) & self.mask;
        let live = (d as i64).wrapping_sub(self.past as i64) >> 56;
        d & live as u64
    }

    /// Returns whether an insert of any key may take this slot. An EMPTY word that holds the debt of a dropped takeover
    /// is reusable unless debts are inherited (`holds_debt`). A tombstone is reusable once `grace` or less of it is
    /// left.
    #[inline(always)]
    pub const fn is_reusable(&self, word: u64, now_q: u64) -> bool {
        let lead = self.lead(word, now_q);
        lead == 0 || self.is_empty(word) && (word == 0 || word & 1 == 1 || lead <= self.grace)
    }

    /// Returns how much of a tombstone has not drained: an EMPTY word that a reset left, or one like it. Else 0.
    #[inline(always)]
    pub const fn tombstone_lead(&self, word: u64, now_q: u64) -> u64 {
        if self.is_empty(word) && word != 0 && word & 1 == 0 {
            self.lead(word, now_q)
        } else {
            0
        }
    }

    /// Returns how many q-units ago a word expired; meaningful only if its lead is 0.
    #[inline(always)]
    pub const fn age(&self, word: u64, now_q: u64) -> u64 {
        now_q.wrapping_sub(word) & self.mask
    }

    /// Returns whether this is the EMPTY word of a dropped takeover whose debt has not drained.
    #[inline(always)]
    pub const fn holds_debt(&self, word: u64, now_q: u64) -> bool {
        // One comparison tests EMPTY and odd: the parity of other words is random, so no branch may depend on it.
        word & (self.field | 1) == 1 && self.lead(word, now_q) != 0
    }

    #[inline(always)]
    pub const fn live(&self, tag: Tag, tat: u64) -> u64 {
        tag.0 | tat & self.mask
    }

    /// Returns the claim of an insert on a reusable slot: even, above what the slot held, alive for G or longer.
    #[inline(always)]
    pub const fn claim_of_reusable(&self, tag: Tag, old: u64, now_q: u64) -> u64 {
        let ahead = if old == 0 { 0 } else { self.lead(old, now_q) };
        let above = ahead.wrapping_add(1);
        let ahead = if above > self.lifetime { above } else { self.lifetime };
        let v = now_q.wrapping_add(ahead);
        tag.0 | CLAIM | v.wrapping_add(v & 1) & self.mask
    }

    /// Returns the claim that takes over a debt: the smallest odd payload above it.
    #[inline(always)]
    pub const fn claim_of_debt(&self, tag: Tag, old: u64) -> u64 {
        tag.0 | CLAIM | (old.wrapping_add(1) | 1) & self.mask
    }

    /// Returns what a dropped claim becomes: EMPTY, above the claim, with its parity.
    #[inline(always)]
    pub const fn dropped(&self, claim: u64) -> u64 {
        claim.wrapping_add(2) & self.mask
    }

    /// Returns what a reset makes of a live word: the smallest even version above its TAT + 1.
    #[inline(always)]
    pub const fn tombstone(&self, live: u64) -> u64 {
        let version = live.wrapping_add(2).wrapping_add(live & 1) & self.mask;
        // Never 0, which means a slot that never held anything.
        version | ((version == 0) as u64) << 1
    }

    /// Returns whether a sweep may empty this word: if it has been expired for more than H + S, so that no caller whose
    /// clock is within the skew counts it as live. An EMPTY word must have been expired for a quarter of the span.
    #[inline(always)]
    pub const fn is_sweepable(&self, word: u64, now_q: u64) -> bool {
        let age = now_q.wrapping_sub(word) & self.mask;
        let old = if self.is_empty(word) { self.mask / 4 } else { self.window };
        word != 0 && self.lead(word, now_q) == 0 && age > old
    }

    /// Returns the EMPTY word of a sweep: an even version above the expired payload. It is not ahead of any caller
    /// whose clock is within the skew, because that caller's insert would be charged the difference.
    #[inline(always)]
    pub const fn swept(&self, now_q: u64) -> u64 {
        now_q.wrapping_sub(self.window).wrapping_add(1) & self.mask & !1
    }

    /// Returns whether this claim, or dropped claim, takes over a debt.
    #[inline(always)]
    pub const fn is_takeover(claim: u64) -> bool {
        claim & 1 == 1
    }
}

#[cfg(all(test, not(tatcell_loom)))]
#[path = "word_tests.rs"]
mod tests;
