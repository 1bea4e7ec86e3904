//! Why a wheel cannot be made, or does not take a request.

use crate::combine::error::ChainError;

/// Says why a wheel, a shaper or a queue cannot be made, or why it does not take a request. Nothing was changed:
/// nothing is reserved, and nothing new waits.
///
/// ```
/// use tatcell::{wheel_words, ShaperError, Wheel};
/// let mut memory = [0; wheel_words(64, 1)];
/// let error = Wheel::new(&mut memory, 65, 16, 0).unwrap_err();
/// assert_eq!(error, ShaperError::BadSlots);
/// assert_eq!(error.to_string(), "the slots must be a power of two from 64 to 4096");
/// ```
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
            ShaperError::BadSlots => "the slots must be a power of two from 64 to 4096",
            ShaperError::BadGranularity => "a slot must be a power of two of ticks, all below 2^62 ticks",
            ShaperError::TooSmall => "the memory is too small for a handle: give more",
            ShaperError::TooLarge => "the memory is for 2^32 - 1 handles or more: give less",
            ShaperError::Full => "no room for another handle: take out those due, or give more memory",
            ShaperError::TooFar => "the departure may lie beyond the horizon: use more or longer slots",
            ShaperError::Behind => "handles have been due for too long: take them out first",
            ShaperError::Chain(e) => return e.fmt(f),
        })
    }
}

impl core::error::Error for ShaperError {}
