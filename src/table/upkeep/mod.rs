//! Running a table: sweeps, statistics, the busiest keys, and what it says of itself.

pub(super) mod export;
pub(super) mod info;
pub(super) mod sweep;
mod top;
