//! One key each: [`cell`] holds the word of a limit, [`meter`] that of a meter, [`lease`] takes units of a shared cell
//! in advance, [`sliding_log`] keeps a stamp for each unit, [`image`] saves a cell for another process, [`refusal`]
//! says how often a refusal is logged or answered.

// The module is named after its topic, and its first file after the type in it.
#[allow(clippy::module_inception)]
mod cell;
pub(crate) mod image;
mod lease;
mod look;
mod meter;
#[cfg(all(test, tatcell_loom))]
mod models;
mod refusal;
mod sliding_log;

pub use cell::{Cell, Cell32, ExclusiveCell};
pub use image::{CellImage, ImageError, CELL_IMAGE_WORDS};
pub use lease::Lease;
pub use meter::{ExclusiveMeter, Meter};
pub use refusal::{KeyLogGate, LeftOut, LogGate, LogLine, Slip};
pub use sliding_log::{ExclusiveSlidingLog, SlidingLog};
