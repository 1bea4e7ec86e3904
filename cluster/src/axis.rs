//! Lengths on the time axis of the store, exact: whole microseconds and fractions of 2^-26.
//!
//! ```text
//!   length in q-units of 2^-26 us (u128)      us = q >> 26  |  frac = q mod 2^26
//! ```
//!
//! The script computes with such pairs. Each half is an integer below 2^53, so doubles are exact. Here one integer of
//! 128 bits holds both. The server's time in microseconds stays below 2^53 until the year 2255.

/// Q-units in a microsecond.
pub const Q_PER_US: u128 = 1 << 26;

/// Nanoseconds in a microsecond.
const NS_PER_US: u128 = 1_000;

/// Holds a length of time, in q-units of 2^-26 microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(u128);

impl Span {
    /// Makes a length of `q` q-units.
    pub const fn from_q(q: u128) -> Span {
        Span(q)
    }

    /// Returns the length in q-units.
    pub const fn q(self) -> u128 {
        self.0
    }

    /// Returns the whole microseconds; saturates at 2^64 - 1.
    pub const fn us(self) -> u64 {
        let us = self.0 / Q_PER_US;
        if us > u64::MAX as u128 {
            u64::MAX
        } else {
            us as u64
        }
    }

    /// Returns what is left above the whole microseconds, in q-units.
    pub const fn frac(self) -> u64 {
        (self.0 % Q_PER_US) as u64
    }

    /// Returns the length in whole nanoseconds, rounded down; saturates at 2^64 - 1.
    pub const fn ns_down(self) -> u64 {
        let ns = self.0.saturating_mul(NS_PER_US) / Q_PER_US;
        if ns > u64::MAX as u128 {
            u64::MAX
        } else {
            ns as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_make_the_whole_and_nanoseconds_are_below_it() {
        for q in [0, 1, 67_108, 67_109, Q_PER_US - 1, Q_PER_US, 5 * Q_PER_US + 3, (1 << 51) * Q_PER_US] {
            let span = Span::from_q(q);
            assert_eq!(u128::from(span.us()) * Q_PER_US + u128::from(span.frac()), q);
            let ns = u128::from(span.ns_down());
            assert!(ns * Q_PER_US <= q * NS_PER_US && (ns + 1) * Q_PER_US > q * NS_PER_US);
        }
        assert_eq!(Span::from_q(u128::MAX).ns_down(), u64::MAX);
    }
}
