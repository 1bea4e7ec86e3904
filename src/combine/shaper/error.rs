//! Why a wheel cannot be made, or does not take a request.

use crate::combine::error::ChainError;

/// Says why a wheel, a shaper or a queue cannot be made, or why it does not take a request. Nothing was changed:
/// nothing is reserved, and nothing new waits.
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShaperError {
    /// The number of slots is not a power of two from 64 to 4096.
    BadSlots,
    /// The granularity is not a power of two, or all slots together are 2^62 ticks or more.
    BadGranularity,
    /// The memory does not hold even one handle.
    TooSmall,
    /// The memory is for 2^32 - 1 handles or more.
    TooLarge,
    /// The memory holds no more handles than those that wait.
    Full,
    /// A departure may lie beyond the horizon of the wheel; for a limit: its `max_delay` does.
    TooFar,
    /// Handles that are long due were not taken out, and the slots do not reach from there to the new departure: take
    /// out what is due first.
    Behind,
    /// A link or a chain cannot be reserved.
    Chain(ChainError),
}

impl From<ChainError> for ShaperError {
    fn from(e: ChainError) -> ShaperError {
        ShaperError::Chain(e)
    }
}

impl core::fmt::Display for ShaperError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            ShaperError::BadSlots => "slots are not a power of two from 64 to 4096",
            ShaperError::BadGranularity => "granularity is not a power of two, or too long",
            ShaperError::TooSmall => "memory holds no handle",
            ShaperError::TooLarge => "memory is for too many handles",
            ShaperError::Full => "no room for another handle",
            ShaperError::TooFar => "departure may lie beyond the horizon of the wheel",
            ShaperError::Behind => "what is due was not taken out for too long",
            ShaperError::Chain(e) => return e.fmt(f),
        })
    }
}

impl core::error::Error for ShaperError {}
