//! One key each: [`cell`] holds the word of a limit, [`meter`] that of a meter, [`lease`] spares a shared cell,
//! [`sliding_log`] keeps a window of words, and [`refusal`] says how often a refusal is logged or answered.

// The room is named after what it is about, and its first file after what it holds.
#[allow(clippy::module_inception)]
mod cell;
mod lease;
mod meter;
#[cfg(all(test, tatcell_loom))]
mod models;
mod refusal;
mod sliding_log;

pub use cell::{Cell, Cell32, ExclusiveCell};
pub use lease::Lease;
pub use meter::{ExclusiveMeter, Meter};
pub use refusal::{LogGate, LogLine, Slip};
pub use sliding_log::{ExclusiveSlidingLog, SlidingLog};
