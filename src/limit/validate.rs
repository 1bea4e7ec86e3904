//! Chooses the file that makes the numbers of each algorithm.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::algorithm::Algorithm;
use super::error::LimitError;
use super::params::{Params, Width};
use super::spec::LimitSpec;
use super::{rate, window};

/// Validates a specification for a word of `width`. If `shift` is `None`, chooses the resolution.
pub(crate) const fn build(spec: &LimitSpec, width: Width, shift: Option<i8>) -> Result<Params, LimitError> {
    if let Err(e) = spec.validate() {
        return Err(e);
    }
    match spec.algorithm {
        Algorithm::Gcra => rate::build(spec, width, shift),
        // 32 bits are too few for a time and a count.
        _ if width.bits == 32 => Err(LimitError::BadAlgorithm),
        _ => window::build(spec, width, shift),
    }
}

/// Validates a specification at one resolution: q-units of 2^-shift ticks. If words hold a count, that is the unit of
/// time, of which a stored time is a whole number.
pub(crate) const fn at(spec: &LimitSpec, width: Width, shift: i32) -> Result<Params, LimitError> {
    if let Err(e) = spec.validate() {
        return Err(e);
    }
    match spec.algorithm {
        Algorithm::Gcra => rate::at(spec, width, shift),
        _ => window::at(spec, width, shift),
    }
}
