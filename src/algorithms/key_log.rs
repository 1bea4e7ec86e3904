//! The log gate that knows whose lines it counts. Pure functions of (word, interval, now, tag).
//!
//! ```text
//!  word   63            40 39         26 25             0
//!         [   next : 24   ][  tag : 14  ][ left out : 26 ]     0 = fresh; a computed next of 0 is stored as 1
//! ```
//!
//! `next` is that of [`log_gate`](super::log_gate), modulo 2^24 log ticks. `tag` belongs to the key of all lines that
//! `left out` counts; 0 stands for several keys. Without a count it is the key of the last written line, so that a gate
//! of one key always has its tag: then a line is counted by one addition, whatever happens meanwhile.
//!
//! - Two keys have equal tags with a chance of 2^-14, whatever chose their gate: a tag depends on all bits of the hash.
//! - Wrap: if no line came for 2^13 intervals or more (2.3 hours of a line a second), the word may, with a chance below
//!   2^-12, read as if a line had just been written. Lines are then counted instead of written, for at most two
//!   intervals; none is lost.
//! - `left out` saturates at [`MOST`], half of what fits, so that threads that add at the same time never carry into
//!   the tag.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::log_gate::Pace;

/// The most left-out lines that a word counts: this number means "that many or more".
pub(crate) const MOST: u32 = 1 << 25;

const COUNT_BITS: u32 = 26;
const TAG_BITS: u32 = 14;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const TAG: u64 = ((1 << TAG_BITS) - 1) << COUNT_BITS;
const NEXT: u32 = (1 << 24) - 1;

/// Keeps everything but the tag: the lines are of several keys.
pub(crate) const OF_SEVERAL: u64 = !TAG;

/// What happens to one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is written; `word` is the next word.
    Write { word: u64 },
    /// It is the first to be left out, and of another key than the written line: `word` counts it.
    First { word: u64 },
    /// It is counted.
    LeaveOut,
}

/// Returns the tag of a key by its hash: 1 to 2^14 - 1.
#[inline(always)]
pub(crate) const fn tag_of(hash: u64) -> u32 {
    // Fibonacci hashing: the upper bits depend on all bits, so also on those that did not choose the gate.
    let tag = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_shr(64 - TAG_BITS) as u32;
    tag | (tag == 0) as u32
}

/// Decides about a line of this tag at `now`, in ticks.
#[inline(always)]
pub(crate) const fn step(pace: Pace, word: u64, now: u64, tag: u32) -> Step {
    let own = (tag as u64).wrapping_shl(COUNT_BITS);
    match pace.next(word.wrapping_shr(COUNT_BITS + TAG_BITS) as u32, now, NEXT) {
        Some(next) => Step::Write { word: (next as u64).wrapping_shl(COUNT_BITS + TAG_BITS) | own },
        None if word & COUNT == 0 && word & TAG != own => Step::First { word: word & OF_SEVERAL | own | 1 },
        None => Step::LeaveOut,
    }
}

/// Returns whether a line of this tag changes whose lines the word counts.
#[inline(always)]
pub(crate) const fn is_of_another(word: u64, tag: u32) -> bool {
    word & TAG != 0 && word & TAG != (tag as u64).wrapping_shl(COUNT_BITS)
}

/// Returns how many lines a word counts, and their tag: 0 if they are of several keys, or if there are none.
#[inline(always)]
pub(crate) const fn left_out(word: u64) -> (u32, u32) {
    let count = (word & COUNT) as u32;
    let tag = (word & TAG).wrapping_shr(COUNT_BITS) as u32;
    (if count < MOST { count } else { MOST }, if count == 0 { 0 } else { tag })
}

/// Returns the word without its count; the time of the next line and the tag stay.
#[inline(always)]
pub(crate) const fn told(word: u64) -> u64 {
    word & !COUNT
}

#[cfg(all(test, not(tatcell_loom)))]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_keys_are_spread_whatever_chose_their_gate() {
        // Hashes of one gate of 256, by their low bits and by their high ones.
        for hash in [|i: u64| i << 8 | 7, |i: u64| 7 << 56 | i, |i: u64| i << 40] {
            let mut seen = [0u32; 1 << TAG_BITS];
            (0..1 << 16).for_each(|i| seen[tag_of(hash(i)) as usize] += 1);
            assert_eq!(seen[0], 0);
            // 4 of 65536 each; 0 has become 1.
            assert!(seen.iter().skip(2).all(|n| (1..16).contains(n)), "{:?}", seen.iter().max());
        }
    }

    /// The time of a line is that of a gate without tags, but for its wrap.
    #[test]
    fn lines_are_written_when_those_of_a_plain_gate_are() {
        use super::super::log_gate::Step as Plain;
        let mut seed = 9u64;
        let mut written = 0;
        for interval in [0, 1, 7, 2_047, 1 << 20, 1_000_000_000] {
            let (pace, mut now, mut own, mut plain) = (Pace::of(interval), 1 << 30, 0, 0);
            for _ in 0..20_000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                now += (seed >> 33) & (interval.next_power_of_two().max(2) - 1);
                let expected = match pace.step(plain, now) {
                    Plain::Write { word, .. } => {
                        plain = word;
                        true
                    }
                    Plain::LeaveOut => false,
                };
                let writes = match step(pace, own, now, 5) {
                    Step::Write { word } => {
                        own = word;
                        true
                    }
                    _ => false,
                };
                // Where a computed next of 0 is stored as 1 differs.
                assert_eq!(writes, expected, "{interval} at {now}");
                written += u32::from(writes);
            }
        }
        assert!(written > 30_000, "{written}");
    }

    #[test]
    fn a_quiet_gate_reads_as_just_written_for_two_intervals_of_its_span() {
        let pace = Pace::of(700);
        let Step::Write { word } = step(pace, 0, 5, 9) else { panic!("a fresh word writes") };
        let span = 1u64 << 24;
        let quiet = |after: u64| !matches!(step(pace, word, 5 + after, 9), Step::Write { .. });
        assert_eq!((span - 3_000..span + 3_000).filter(|after| quiet(*after)).count(), 1_400);
    }

    #[test]
    fn counts_saturate_and_carry_into_nothing() {
        let word = 77 << 40 | 5 << COUNT_BITS;
        assert_eq!(left_out(word), (0, 0));
        assert_eq!(left_out(word + u64::from(MOST) - 1), (MOST - 1, 5));
        assert_eq!(left_out(word + u64::from(MOST) + 1_000_000), (MOST, 5));
        assert_eq!(told(word + 12), word);
        assert_eq!(left_out((word + 12) & OF_SEVERAL), (12, 0));
    }
}
