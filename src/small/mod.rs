//! Cells for small machines: plain limits as static data, native arithmetic, no division and no option.
//!
//! - [`SmallLimit`], [`SmallLimit32`]: what a plain limit needs, computed by the compiler.
//! - `check_small`, `check_unit`, `reserve_small`, `idle` on [`Cell`](crate::Cell), [`Cell32`](crate::Cell32) and
//!   [`ExclusiveCell`](crate::ExclusiveCell): the same words and answers in a third of the code.
//! - [`SmallTable`]: many keys in 8 bytes each, 32-bit ticks, exclusive or shared with interrupts.

#[cfg(feature = "small-capi")]
mod c;
mod cell;
mod hash;
mod limit;
mod table;

pub use limit::{SmallLimit, SmallLimit32};
pub use table::{SmallSlot, SmallTable};
