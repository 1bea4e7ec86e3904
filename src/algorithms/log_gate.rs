//! The log gate: writes one line per interval and counts the others. Pure functions of (word, interval, now).
//!
//! ```text
//!  word   63                  32 31                   0
//!         [     next : 32      ][    left out : 32     ]     0 = fresh; a computed next of 0 is stored as 1
//!
//!            now                 next                now + 2 I
//!  ----------+---------------------+---------------------+--------------->   log ticks, mod 2^32
//!   write <- | <------------- leave out and count -----> | -> write
//! ```
//!
//! `next` is the time from which the next line may be written, in log ticks of 2^s ticks. s is chosen so that an
//! interval I has 2^10 to 2^11 log ticks: rounding makes an interval at most 0.3 % longer, and never shorter. Intervals
//! below 2^11 ticks are exact. `left out` counts the lines since the last written one. It saturates at [`MOST`], a
//! quarter of what fits, so that threads that add at the same time never carry into `next`.
//!
//! - Invariant: if clocks agree, two consecutive written lines are at least one interval apart. A line that
//!   comes an interval and 3 log ticks after a written one is written.
//! - A clock reading that is older than another one by at most one interval writes nothing; an older one writes an
//!   extra line.
//! - Wrap: if no line came for 2^32 log ticks (at least 2^21 intervals: 24 days of a line a second), the word may, with
//!   a chance of 2 I / 2^32 < 2^-20, read as if a line had just been written. Lines are then counted instead of
//!   written, for at most two intervals; none is lost.
//!
//! This is not a rate limit: there are no bursts of lines, and nothing is charged. The caller's clock must not wrap.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

/// The most left-out lines that a word counts: this number means "that many or more".
pub(crate) const MOST: u32 = 1 << 30;

/// The bits of an interval in log ticks.
const PRECISION: u32 = 11;

/// An interval in log ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// A log tick is 2^shr ticks.
    shr: u32,
    /// I: log ticks from one line to the next.
    interval: u32,
}

/// What happens to one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is written, with the number of lines left out before it; `word` is the next word.
    Write { left_out: u32, word: u64 },
    /// It is counted.
    LeaveOut,
}

impl Pace {
    /// Converts an interval in ticks; any is valid, and with 0 every line is written.
    #[inline(always)]
    pub const fn of(interval: u64) -> Pace {
        let bits = u64::BITS.wrapping_sub(interval.leading_zeros());
        let shr = bits.saturating_sub(PRECISION);
        let whole = interval.wrapping_shr(shr) as u32;
        if shr == 0 {
            return Pace { shr, interval: whole };
        }
        // Round up, and add one because now is rounded down: at most 2^11 + 1.
        let part = interval & 1u64.wrapping_shl(shr).wrapping_sub(1) != 0;
        Pace { shr, interval: whole.wrapping_add(part as u32).wrapping_add(1) }
    }

    /// Decides about a line at `now`, in ticks.
    #[inline(always)]
    pub const fn step(self, word: u64, now: u64) -> Step {
        match self.next(word.wrapping_shr(32) as u32, now, u32::MAX) {
            None => Step::LeaveOut,
            Some(next) => Step::Write { left_out: left_out(word), word: (next as u64).wrapping_shl(32) },
        }
    }

    /// Returns the time of the line after this one if this one is written. Times are log ticks modulo `mask + 1`, a
    /// power of two well above two intervals.
    #[inline(always)]
    pub(super) const fn next(self, next: u32, now: u64, mask: u32) -> Option<u32> {
        let now = now.wrapping_shr(self.shr) as u32 & mask;
        // One comparison for 1..=2 I; an interval of 0 has no such distance.
        let ahead = next.wrapping_sub(now) & mask;
        if next != 0 && ahead.wrapping_sub(1) < self.interval.wrapping_mul(2) {
            return None;
        }
        let next = now.wrapping_add(self.interval) & mask;
        Some(next | (next == 0) as u32)
    }
}

/// Returns how many lines a word counts; [`MOST`] stands for that many or more.
#[inline(always)]
pub(crate) const fn left_out(word: u64) -> u32 {
    let count = word as u32;
    if count < MOST {
        count
    } else {
        MOST
    }
}

/// Returns the word without its count; the time of the next line stays.
#[inline(always)]
pub(crate) const fn told(word: u64) -> u64 {
    word & (u32::MAX as u64).wrapping_shl(32)
}

#[cfg(all(test, not(tatcell_loom)))]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    /// The word after a line at `now`.
    fn written(pace: Pace, now: u64) -> u64 {
        match pace.step(0, now) {
            Step::Write { left_out: 0, word } => word,
            other => panic!("a fresh word at {now}: {other:?}"),
        }
    }

    /// Intervals of every magnitude, including those around powers of two.
    fn intervals() -> impl Iterator<Item = u64> {
        let powers = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        powers.chain([3, 1000, 1_000_000_000, 86_400_000_000_000, u64::MAX / 3, u64::MAX])
    }

    #[test]
    fn an_interval_is_never_cut_short_and_at_most_three_log_ticks_longer() {
        for interval in intervals().filter(|i| *i > 0) {
            let pace = Pace::of(interval);
            let tick = 1u128 << pace.shr;
            for start in [0, 1, tick as u64 - 1, tick as u64, interval, 0xdead_beef_cafe] {
                let word = written(pace, start);
                let late = u128::from(start) + u128::from(interval) + 3 * tick;
                // The caller's clock ends at 2^64.
                if late > u128::from(u64::MAX) {
                    continue;
                }
                assert_eq!(pace.step(word, start), Step::LeaveOut, "{interval} from {start}");
                assert_eq!(pace.step(word, start + interval - 1), Step::LeaveOut, "{interval} from {start}");
                assert!(
                    matches!(pace.step(word, late as u64), Step::Write { .. }),
                    "{interval} from {start}"
                );
            }
            assert!(pace.shr == 0 || tick * 1024 <= u128::from(interval), "{interval}: coarser than 0.1 %");
        }
    }

    /// Now is rounded down, so one log tick is added; a whole number of log ticks is not rounded up as well.
    #[test]
    fn an_interval_of_whole_log_ticks_is_longer_by_one() {
        for interval in (11..64).map(|bit| 1u64 << bit) {
            let pace = Pace::of(interval);
            assert_eq!(u64::from(pace.interval) << pace.shr, interval + (1 << pace.shr), "{interval}");
        }
        let parts = Pace::of((1 << 20) + 1);
        assert_eq!(u64::from(parts.interval) << parts.shr, (1 << 20) + (2 << parts.shr));
    }

    #[test]
    fn intervals_below_2048_ticks_are_exact() {
        for interval in 1..2048u64 {
            let pace = Pace::of(interval);
            let word = written(pace, 10_000);
            assert_eq!(pace.step(word, 9_999 + interval), Step::LeaveOut);
            assert!(matches!(pace.step(word, 10_000 + interval), Step::Write { .. }), "{interval}");
        }
    }

    #[test]
    fn an_interval_of_0_writes_every_line() {
        let mut word = 0;
        for now in [0, 0, 5, 5, 4, u64::MAX, 0] {
            let Step::Write { left_out: 0, word: next } = Pace::of(0).step(word, now) else {
                panic!("a line was left out at {now}");
            };
            word = next;
        }
    }

    #[test]
    fn a_fresh_word_writes_at_any_tick() {
        for interval in intervals() {
            for now in [0, 1, 1 << 20, u64::from(u32::MAX) - 1, u64::from(u32::MAX), 1 << 63, u64::MAX] {
                assert!(matches!(Pace::of(interval).step(0, now), Step::Write { left_out: 0, .. }));
            }
        }
    }

    #[test]
    fn a_reading_one_interval_old_writes_nothing_and_one_beyond_writes() {
        for interval in [1, 100, 2047] {
            let pace = Pace::of(interval);
            let word = written(pace, 10_000);
            assert_eq!(pace.step(word, 10_000 - interval), Step::LeaveOut);
            assert!(matches!(pace.step(word, 10_000 - interval - 1), Step::Write { .. }));
        }
    }

    #[test]
    fn the_share_of_the_span_that_reads_as_just_written_is_two_intervals() {
        let pace = Pace::of(700);
        let word = written(pace, 5);
        // All distances around the wrap: 700 before it, the wrap itself, 700 after it.
        let quiet = |now: u64| matches!(pace.step(word, now), Step::LeaveOut);
        let span = 1u64 << 32;
        let around = (span - 3_000..span + 3_000).filter(|after| quiet(5 + after)).count();
        assert_eq!(around, 1400);
        assert!(quiet(5 + span) && !quiet(5 + span + 700) && !quiet(5 + span - 701));
    }

    #[test]
    fn counts_saturate_and_a_next_of_0_is_stored_as_1() {
        assert_eq!(left_out(u64::from(MOST) - 1), MOST - 1);
        assert_eq!((left_out(u64::from(MOST)), left_out(u64::from(u32::MAX))), (MOST, MOST));
        let word = written(Pace::of(10), (1 << 32) - 10);
        assert_eq!(word >> 32, 1);
        assert_eq!(told(word | 77), word);
    }
}
