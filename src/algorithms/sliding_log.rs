//! The sliding log: at most N units in every window of w ticks. It has a stamp for each unit in the window.
//!
//! ```text
//!  stamp  [         leave = now + w : 64         ]   0 = EMPTY; a computed 0 is stored as 1; N of them are a log
//!
//!         now - w              now                  leave            now + w + S
//!  ----------(------------------]--------------------+---------------------+------->
//!            a unit of this window   <---- lead ---->|  stamped by a clock |  left
//!            leaves after now                        |  ahead, at most S   |
//! ```
//!
//! A stamp is the time at which its unit leaves the window, so the unit counts while the stamp lies ahead of now. It is
//! decoded like a TAT: lead = leave - now if that is in 1..=w + S, else 0, and the stamp is free. A request conforms
//! iff any stamp is free; it then takes that one. So each stamp is a bucket of one unit that takes w to refill. The
//! order of the stamps means nothing: there is no head to move.
//!
//! The log is exact. A call that takes a stamp at `t` found `leave <= t`, so two units of one stamp lie at least w
//! apart. No window `(t - w, t]` holds two of them, so N stamps admit at most N, whatever the clocks (up to S) and the
//! order of calls. And a refusal saw N units later than `now - w`. Stamps wrap after 2^64 ticks: a stamp that nobody
//! touched may then count for w + S once more, which refuses and never admits.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::answer::{Decision, Permit, Tracking, Verdict};
use crate::limit::LimitError;

/// The default skew: an eighth of the span of a 64-bit word, as for other words of this width.
const SKEW: u64 = 1 << 61;

/// A validated window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// w, ticks.
    pub window: u64,
    /// w + S.
    pub both: u64,
}

impl Window {
    /// Validates the window of a log of `units` stamps. They must fit 32 bits, with which a permit names its stamp.
    pub const fn new(units: usize, window: u64, skew: Option<u64>) -> Result<Window, LimitError> {
        if units == 0 {
            return Err(LimitError::ZeroRate);
        }
        if units as u128 > u32::MAX as u128 {
            return Err(LimitError::TooManyUnits);
        }
        if window == 0 {
            return Err(LimitError::ZeroPeriod);
        }
        let skew = match skew {
            Some(ticks) => ticks,
            None => SKEW,
        };
        match window.checked_add(skew) {
            Some(both) if both < 1 << 63 => Ok(Window { window, both }),
            _ => Err(LimitError::HorizonTooLong),
        }
    }
}

/// Returns the place of the first stamp that a call tries: it depends on the time, so that callers do not all try the
/// same stamp. It spreads evenly spaced times evenly (Knuth's multiplicative hash), by the high bits of a product.
#[inline(always)]
pub(crate) const fn first(now: u64, units: usize) -> usize {
    let spread = now.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((spread as u128).wrapping_mul(units as u128) >> 64) as usize
}

/// Returns the next place; after the last comes the first.
#[inline(always)]
pub(crate) const fn behind(place: usize, units: usize) -> usize {
    let next = place.wrapping_add(1);
    if next < units {
        next
    } else {
        0
    }
}

/// What a scan of the stamps of a log has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    /// Stamps whose units are in the window.
    live: u64,
    /// Ticks until the first of them leaves, and until the last one does.
    soonest: u64,
    latest: u64,
    /// The stamp that the request took, and its new word.
    pub taken: Option<(usize, u64)>,
}

impl Tally {
    pub const EMPTY: Tally = Tally { live: 0, soonest: u64::MAX, latest: 0, taken: None };

    /// Counts a stamp that lies `lead` ticks ahead.
    #[inline(always)]
    pub const fn count(&mut self, lead: u64) {
        if lead == 0 {
            return;
        }
        self.live = self.live.saturating_add(1);
        if lead < self.soonest {
            self.soonest = lead;
        }
        if lead > self.latest {
            self.latest = lead;
        }
    }

    /// Makes the full answer after a scan of all `units` stamps, for a peek (`looks`) or for a request.
    pub const fn decision(&self, units: usize, now: u64, looks: bool) -> Decision {
        let burst = units as u64;
        let remaining = burst.saturating_sub(self.live);
        let passes = self.taken.is_some() || looks && remaining > 0;
        let next_unit = if self.live == 0 { 0 } else { self.soonest };
        let permit = match self.taken {
            Some((slot, stamp)) => {
                Permit { tat: stamp, stored: 1, tick: now, slot: slot as u32, ..Permit::NONE }
            }
            None => Permit::NONE,
        };
        Decision {
            verdict: if passes { Verdict::Conforming } else { Verdict::NonConforming },
            tracking: Tracking::Tracked,
            flags: 0,
            policy: 0,
            cost: 1,
            burst,
            remaining,
            retry_after: if passes { 0 } else { self.soonest },
            next_unit,
            reset_after: self.latest,
            departure: if passes { now } else { 0 },
            units: permit.stored,
            in_debt: false,
            permit,
        }
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// A permit names its stamp with 32 bits.
    #[test]
    fn a_log_of_more_stamps_than_a_permit_can_name_is_refused() {
        let most = u32::MAX as usize;
        assert!(Window::new(most, 10, None).is_ok());
        assert_eq!(Window::new(most.wrapping_add(1), 10, None), Err(LimitError::TooManyUnits));
        assert_eq!(Window::new(0, 10, None), Err(LimitError::ZeroRate));
        assert_eq!(Window::new(1, 0, None), Err(LimitError::ZeroPeriod));
        let both = |window: u64, skew: u64| Window::new(1, window, Some(skew)).map(|w| w.both);
        assert_eq!(both(1 << 62, (1 << 62) - 1), Ok((1 << 63) - 1));
        assert_eq!(both(1 << 62, 1 << 62), Err(LimitError::HorizonTooLong));
        assert_eq!(both(u64::MAX, 1), Err(LimitError::HorizonTooLong));
        assert_eq!(Window::new(1, 10, None).map(|w| w.both), Ok((1 << 61) + 10), "an eighth of the span");
    }

    /// Callers that come at equal intervals start at every place equally often.
    #[test]
    fn looks_start_at_all_stamps_alike() {
        for (units, step) in [(7, 1), (64, 1), (64, 1_000_000), (100, 4096)] {
            let mut starts = std::vec![0u32; units];
            (0..units as u64 * 100).for_each(|i| starts[first(i.wrapping_mul(step), units)] += 1);
            assert!(starts.iter().all(|n| (80..=120).contains(n)), "{units} by {step}: {starts:?}");
        }
    }

    #[test]
    fn a_permit_names_its_stamp_and_the_tick_of_its_charge() {
        let tally = Tally { taken: Some((3, 77)), ..Tally::EMPTY };
        let permit = Permit { tat: 77, stored: 1, tick: 70, slot: 3, ..Permit::NONE };
        assert_eq!(tally.decision(5, 70, false).permit, permit);
    }
}
