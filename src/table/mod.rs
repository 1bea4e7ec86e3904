//! The keyed table: one slot word per key, in fixed memory that the caller owns.
//!
//! ```text
//!  memory   [ header, 2 lines ][ line 0 ][ line 1 ][ line 2 ][ line 3 ] ...   64 bytes each, 8 slots a line
//!                              '----- set 0 -----' '----- set 1 -----'
//!  key -> hash -> home line + tag; the set is the home line and its neighbour: 16 slots
//! ```
//!
//! Promise: while a set is not full and no two keys share set and tag, every key gets the exact answer of its own token
//! bucket, on any interleaving of any number of threads and processes. When a set is full, the table's [`FullPolicy`]
//! decides, and the decision says so. Unlike a map, a table allocates nothing, deletes nothing (an expired word equals
//! an absent key) and holds no lock, and a killed thread or process blocks nothing.
//!
//! A table does not store keys. A slot keeps a tag of 12 to 24 bits, so with chance 16 * 2^-bits (1.5e-5 by default, at
//! full load) a new key shares the slot of another, and both share one debt. Use cells where even that must not happen.

mod burst;
mod calls;
mod counters;
mod error;
mod handle;
mod hashing;
mod layout;
mod migrate;
#[cfg(test)]
pub(crate) mod models;
mod overrides;
mod set;
mod upkeep;

pub use crate::sync::access::{Access, Exclusive, Mode, ReadOnly, Shared};
pub(crate) use burst::call::cost_of;
pub use burst::call::{Burst, NextBurst};
#[cfg(feature = "capi")]
pub(crate) use burst::list::Keys;
pub use calls::full_answer::Request;
pub(crate) use calls::look::{left, passed, told, wait};
pub(crate) use calls::pair::{Half, Known};
pub use counters::Counters;
pub use error::TableError;
pub use handle::{ExclusiveTable, ReadOnlyTable, Table};
pub use layout::clock::TableClock;
pub use layout::fit_report::{FitPart, TableFit};
pub use layout::geometry::{MAX_BURST, MIN_SLOTS, SLOTS_PER_LINE};
pub use layout::image::{lines_for, Line, LAYOUT_VERSION};
pub use layout::options::{AttachOptions, TableOptions};
pub use layout::policy::FullPolicy;
pub use layout::size::{full_set_ppb, lines_for_load};
pub use migrate::Migrated;
pub(crate) use overrides::AT_ONCE as PREFIXES_AT_ONCE;
pub use overrides::{Override, PrefixLengths};
pub(crate) use set::attempt::Done;
#[cfg(feature = "host")]
pub(crate) use upkeep::counter_blocks;
pub use upkeep::export::TableNumbers;
pub use upkeep::info::TableInfo;
pub use upkeep::sweep::{Slot, Stats};
pub use upkeep::sweeper::Sweeper;
pub use upkeep::words::{SlotWord, WordKind};
