//! Limits and meter parameters: initialised once, read by every check.

pub(super) mod algorithms;
#[allow(clippy::module_inception)] // the file of its noun, as in the other modules
pub(super) mod limit;
pub(super) mod meter_params;
mod parse;
