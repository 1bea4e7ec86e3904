//! The sliding log: at most N units in every window of w ticks, by a stamp for each unit that is still in the window.
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
//! A stamp is the time at which its unit leaves the window, so its unit counts while the stamp lies ahead of now, and
//! it is decoded as a TAT is: lead = leave - now where that is in 1..=w + S, else 0, and the stamp is free. A request
//! conforms iff any stamp is free; it then takes that one. Each stamp is thus a bucket of one unit that takes w to
//! refill, and the order of the stamps means nothing: there is no head to move.
//!
//! Exact: who takes a stamp at `t` found `leave <= t`, so two units of one stamp lie at least w apart and no window
//! `(t - w, t]` holds two of them: at most N of N stamps, whatever the clocks (up to S) and the order of calls. And a
//! refusal saw N units later than `now - w`. Wraps after 2^64 ticks, when a stamp that nobody touched may count for w +
//! S once more: that refuses and never admits.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use crate::answer::{Decision, Permit, Tracking, Verdict};
use crate::limit::LimitError;

/// Skew unless another is given: an eighth of the span of a 64-bit word, as for other words of this width.
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
    /// Validates the window of a log of `units` stamps. A permit names its stamp with 32 bits.
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

/// Where a call looks first: another place at another time, so that callers do not all try for the same stamp. Spreads
/// equally spaced times evenly (Knuth's multiplicative hash), by the high bits of a product.
#[inline(always)]
pub(crate) const fn first(now: u64, units: usize) -> usize {
    let spread = now.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((spread as u128).wrapping_mul(units as u128) >> 64) as usize
}

/// The place behind this one, the first behind the last.
#[inline(always)]
pub(crate) const fn behind(place: usize, units: usize) -> usize {
    let next = place.wrapping_add(1);
    if next < units {
        next
    } else {
        0
    }
}

/// What a walk over the stamps of a log has seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    /// Stamps whose units are in the window.
    live: u64,
    /// Ticks until the first of them leaves, and until the last does.
    soonest: u64,
    latest: u64,
    /// The stamp that the request took, and what it holds then.
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

    /// The full answer after a walk over all `units` stamps: of a look, or of a request that takes what is free.
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

    /// Callers that come at equal distances start everywhere alike.
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
