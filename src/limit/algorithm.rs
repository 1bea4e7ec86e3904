//! The algorithms that a limit can have, and how many bits and how much time each needs in a word.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

/// Names the rule by which a limit decides.
///
/// Every algorithm has the same calls. The constructors of [`LimitSpec`](crate::LimitSpec) choose the algorithm, and
/// the limit carries it. A cell or a table serves one algorithm for life. If an algorithm lacks an operation, the call
/// says so: a window cannot [reserve](crate::Cell::reserve), for instance.
///
/// ```
/// use tatcell::{Algorithm, LimitError, LimitSpec};
/// assert_eq!(LimitSpec::per_second(10).build()?.info().algorithm, Algorithm::Gcra);
/// assert_eq!(LimitSpec::fixed_window(100, 60_000).build()?.info().algorithm, Algorithm::FixedWindow);
/// # Ok::<(), LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Algorithm {
    /// The generic cell rate algorithm: token bucket and leaky bucket in one number. Exact.
    #[default]
    Gcra = 0,
    /// At most N units in a window of time, which starts with its first request or at fixed times. Exact by its
    /// own definition; across a border, up to twice as many units within a window's length.
    FixedWindow = 1,
    /// Two fixed windows; the previous one counts by the share of it that is still in sight. Approximates the sliding
    /// log; admits fewer than twice as many units within a window's length.
    SlidingCounter = 2,
    /// A quota at any speed, then single units at the quota's rate until the client pauses (Finch).
    QuotaLinear = 3,
    /// A level that halves in every half-life: an exponentially decaying count.
    Decay = 4,
    /// No limit has this. Before 0.4 it was the algorithm of a table of overrides.
    #[deprecated(since = "0.4.0", note = "no limit has this algorithm; use TableInfo::overrides")]
    #[doc(hidden)]
    Overrides = 5,
}

/// Bits of a count.
pub(crate) const fn bits_of(count: u64) -> u32 {
    u64::BITS.wrapping_sub(count.leading_zeros())
}

impl Algorithm {
    /// Returns the algorithm with this number (`algorithm as u32`).
    pub(crate) const fn of(number: u32) -> Option<Algorithm> {
        match number {
            0 => Some(Algorithm::Gcra),
            1 => Some(Algorithm::FixedWindow),
            2 => Some(Algorithm::SlidingCounter),
            3 => Some(Algorithm::QuotaLinear),
            4 => Some(Algorithm::Decay),
            _ => None,
        }
    }

    /// Returns the bits that a word keeps next to its time, if a key may count up to `most` units.
    pub(super) const fn aux_bits(self, most: u64) -> u32 {
        let count = bits_of(most);
        match self {
            Algorithm::Gcra | Algorithm::Decay => 0,
            // Current and previous.
            Algorithm::SlidingCounter => count.wrapping_mul(2),
            // Mode, and a count or the fraction of a time.
            Algorithm::QuotaLinear => count.wrapping_add(1),
            // A fixed window.
            _ => count,
        }
    }

    /// Returns how far ahead a time may be stored, for windows of `window` units of time; saturates.
    pub(super) const fn horizon(self, window: u64, most: u64) -> u64 {
        match self {
            Algorithm::Gcra => 0,
            Algorithm::SlidingCounter => window.saturating_mul(2).saturating_add(1),
            Algorithm::QuotaLinear => window.saturating_mul(2).saturating_add(2),
            // A level decays from `most` units to 2^-10 units.
            Algorithm::Decay => window.saturating_mul((bits_of(most) as u64).wrapping_add(11)),
            // A fixed window.
            _ => window.saturating_add(1),
        }
    }
}
