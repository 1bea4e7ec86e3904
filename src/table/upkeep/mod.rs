//! Running a table: sweeps, statistics, the busiest keys, and what a table reports about itself.

#[cfg(feature = "host")]
pub(crate) mod counter_blocks;
pub(super) mod export;
pub(super) mod info;
pub(super) mod sweep;
pub(super) mod sweeper;
mod top;
pub(super) mod words;
