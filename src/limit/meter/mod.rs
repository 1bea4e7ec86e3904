//! Three-colour meters: two rates with a burst each, or one rate with two bursts, validated once into fixed point.
//!
//! As for limits, all division happens here, every constructor is a `const fn`, and what cannot be represented is
//! refused by name. A rate is never exceeded: charges round up to a q-unit, the test of a charge does not round.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

mod info;
pub(crate) mod params;
mod spec;

pub use info::MeterInfo;
pub use spec::{MeterError, MeterKind, MeterSpec};

use params::MeterParams;

/// The validated limits of a [`Meter`](crate::Meter): two rates and bursts, in q-units.
///
/// A word belongs to one of these: another one reads it as something else. To change a meter's, reset it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct MeterLimit(pub(crate) MeterParams);

impl MeterLimit {
    /// Everything about it, for reports. Divides.
    pub const fn info(&self) -> MeterInfo {
        MeterInfo::of(&self.0)
    }
}

impl MeterSpec {
    /// Validates the meter.
    ///
    /// The q-unit is the finest that leaves the word its span, but no finer than 2^-11 of what a unit takes at the
    /// faster rate; where no q-unit of at most that leaves the default span, the coarsest counts.
    ///
    /// # Errors
    /// Every [`MeterError`].
    pub const fn build(&self) -> Result<MeterLimit, MeterError> {
        match MeterParams::build(self) {
            Ok(p) => Ok(MeterLimit(p)),
            Err(e) => Err(e),
        }
    }
}
