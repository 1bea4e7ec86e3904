//! Cells for small machines: plain limits as static data, native arithmetic, no division and no options.
//!
//! - [`SmallLimit`], [`SmallLimit32`]: the numbers of a plain limit. The compiler computes them, or the device does,
//!   without a division.
//! - `check_small`, `check_unit`, `reserve_small`, `idle` on [`Cell`](crate::Cell), [`Cell32`](crate::Cell32) and
//!   [`ExclusiveCell`](crate::ExclusiveCell): the same words and answers in a third of the code.
//! - `charge_small`, `refund_small`, `cancel_small`, `debt`, `set_debt` on the same cells.
//! - [`SmallLog`]: writes log lines at a rate, and counts those that it leaves out.
//! - [`SmallTable`]: many keys in 8 bytes each, 32-bit ticks, exclusive or shared with interrupts.

#[cfg(feature = "small-capi")]
mod c;
mod cell;
mod debt;
mod hash;
mod limit;
mod log;
#[cfg(all(test, tatcell_loom))]
mod loom_log;
mod macros;
mod rate;
mod table;

pub use log::SmallLog;

/// Returns whether masked sections keep interrupts out. They do not in unprivileged code of a Cortex-M with the feature
/// `single-core`: the instruction that masks does nothing there. Call it once, in the code that will check.
///
/// ```
/// // In main(), before the first check of firmware that shares a SmallTable with interrupts.
/// assert!(tatcell::section_works(), "interrupts cannot be masked here");
/// ```
#[inline]
pub fn section_works() -> bool {
    crate::sync::masked::works()
}

pub use limit::{SmallLimit, SmallLimit32};
pub use table::{SmallSlot, SmallTable};
