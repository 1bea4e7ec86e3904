//! One key each: cells of 64 and 32 bits, leases, meters and sliding logs.

#[allow(clippy::module_inception)] // the file of its noun, as in the other modules
pub(super) mod cell;
pub(super) mod cell32;
mod image;
mod lease;
pub(super) mod meter;
mod sliding_log;
