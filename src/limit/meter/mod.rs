//! Three-colour meters: two rates with a burst each, or one rate with two bursts, validated once into fixed point.
//!
//! As for limits, all division happens here, every constructor is a `const fn`, and what cannot be represented is
//! refused with an error of its own. A rate is never exceeded: a charge is rounded up to a q-unit, its test is exact.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod info;
pub(crate) mod params;
mod spec;

pub use info::MeterInfo;
pub use spec::{MeterError, MeterKind, MeterSpec};

use params::MeterParams;

/// Holds the validated limits of a [`Meter`](crate::Meter): two rates and bursts, in q-units.
///
/// Use one of these for a word: another one would misread it. To change the limits of a meter, reset the meter.
///
/// ```
/// use tatcell::{MeterLimit, MeterSpec};
/// let limit: MeterLimit = MeterSpec::rfc2697(1_000, 1_500, 3_000, 1_000).build()?; // bytes; ticks are milliseconds
/// assert_eq!((limit.info().cir, limit.info().cbs), (1_000, 1_500));
/// # Ok::<(), tatcell::MeterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct MeterLimit(pub(crate) MeterParams);

impl MeterLimit {
    /// Returns everything about the meter limits, for reports. Divides.
    pub const fn info(&self) -> MeterInfo {
        MeterInfo::of(&self.0)
    }
}

impl MeterSpec {
    /// Validates the meter.
    ///
    /// The build chooses the finest q-unit that gives the word its span, but none finer than 2^-11 of the time that a
    /// unit takes at the faster rate. If no allowed q-unit gives the default span, it chooses the coarsest.
    ///
    /// # Errors
    /// Any [`MeterError`].
    pub const fn build(&self) -> Result<MeterLimit, MeterError> {
        match MeterParams::build(self) {
            Ok(p) => Ok(MeterLimit(p)),
            Err(e) => Err(e),
        }
    }
}
