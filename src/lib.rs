//! Rate limiting without heap, lock or clock.
//!
//! tatcell decides, for (key, cost, now), whether a request conforms to a rate limit: in bounded time, in memory that
//! the caller owns, with one atomic word per key and the exact token-bucket answer on every interleaving.
//!
//! - [`Limit`]: units per period of ticks, and a burst. Validated once; `const`.
//! - [`Cell`], [`Cell32`], [`ExclusiveCell`]: one word, one key.
//! - [`Lease`]: units of a shared cell, taken ahead by one core, so that one limit scales with cores.
//! - [`Table`]: many keys in fixed memory; several processes may share it.
//!
//! Time is always the caller's tick count (`u64`): nanoseconds, cycles, milliseconds. The library never reads a
//! clock, never allocates, never locks, never panics. Feature `host` adds ways to get a clock and memory on Unix (the
//! module `host`); nothing else uses them.
#![no_std]

#[cfg(feature = "std")]
extern crate std;

mod algorithms;
mod answer;
#[cfg(feature = "capi")]
mod capi;
mod cell;
mod cpu;
#[cfg(all(feature = "host", not(tatcell_loom)))]
pub mod host;
mod keys;
mod limit;
mod small;
mod sync;
mod table;
mod time;

pub use algorithms::gcra::Change;
pub use answer::{Decision, Outcome, Permit, Tracking, Verdict};
pub use cell::{Cell, Cell32, ExclusiveCell, Lease};
pub use keys::HashKind;
pub use limit::{Limit, Limit32, LimitError, LimitInfo, LimitSpec, TableLimit};
pub use small::{SmallLimit, SmallLimit32, SmallSlot, SmallTable};
pub use sync::MAX_LOST;
pub use table::{
    full_set_ppb, lines_for, lines_for_load, Access, AttachOptions, Burst, Counters, Exclusive,
    ExclusiveTable, FullPolicy, Line, Migrated, Request, Shared, Slot, Stats, Table, TableError,
    TableOptions, LAYOUT_VERSION, MAX_BURST, MIN_SLOTS, SLOTS_PER_LINE,
};
