//! The algorithms that a limit can ask for, and what each needs of a word.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

/// Says by which rule a limit decides.
///
/// The calls are the same for all; a limit carries its algorithm, made by one of the constructors of
/// [`LimitSpec`](crate::LimitSpec). A cell and a table serve one algorithm for life. What an algorithm does not have is
/// said at the call: a window cannot [reserve](crate::Cell::reserve), for instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Algorithm {
    /// The generic cell rate algorithm: token bucket and leaky bucket in one number. Exact.
    #[default]
    Gcra = 0,
    /// So many units in a window of time, which starts with its first request, or at fixed times. Exact by its own
    /// definition; up to twice as many units in a window's length across a border.
    FixedWindow = 1,
    /// Two fixed windows, the previous one weighted by how much of it still lies in a window's length. An approximation
    /// of the sliding log; up to twice as many units in a window's length.
    SlidingCounter = 2,
    /// A quota at any speed, then one unit after the other at the quota's rate until the client pauses (Finch).
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
    /// The algorithm of a number, as `algorithm as u32` gives it.
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

    /// Bits that a word holds beside the time, where a key may count up to `most` units.
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

    /// How far ahead a time may be stored, in units of time, for windows of `window` of them; saturates.
    pub(super) const fn horizon(self, window: u64, most: u64) -> u64 {
        match self {
            Algorithm::Gcra => 0,
            Algorithm::SlidingCounter => window.saturating_mul(2).saturating_add(1),
            Algorithm::QuotaLinear => window.saturating_mul(2).saturating_add(2),
            // From 2^-10 units up to all of them.
            Algorithm::Decay => window.saturating_mul((bits_of(most) as u64).wrapping_add(11)),
            // A fixed window.
            _ => window.saturating_add(1),
        }
    }
}
