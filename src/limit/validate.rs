//! Which file makes the numbers of which algorithm.
#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects)]

use super::algorithm::Algorithm;
use super::error::LimitError;
use super::params::{Params, Width};
use super::spec::LimitSpec;
use super::{rate, window};

/// Validates a specification for a word of `width`; `shift` None = chosen there.
pub(crate) const fn build(spec: &LimitSpec, width: Width, shift: Option<i8>) -> Result<Params, LimitError> {
    if let Err(e) = spec.validate() {
        return Err(e);
    }
    match spec.algorithm {
        Algorithm::Gcra => rate::build(spec, width, shift),
        // Time and count need more bits than these.
        _ if width.bits == 32 => Err(LimitError::BadAlgorithm),
        _ => window::build(spec, width, shift),
    }
}

/// Validates a specification at one resolution: q-units of 2^-shift ticks, whole units of time of 2^-shift ticks where
/// words hold a count.
pub(crate) const fn at(spec: &LimitSpec, width: Width, shift: i32) -> Result<Params, LimitError> {
    if let Err(e) = spec.validate() {
        return Err(e);
    }
    match spec.algorithm {
        Algorithm::Gcra => rate::at(spec, width, shift),
        _ => window::at(spec, width, shift),
    }
}
