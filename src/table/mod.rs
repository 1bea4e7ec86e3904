//! The keyed table: one slot word per key, in fixed memory that the caller owns.
//!
//! ```text
//!  memory   [ header line ][ line 0 ][ line 1 ][ line 2 ][ line 3 ] ...   64 bytes each, 8 slots a line
//!                          '----- set 0 -----' '----- set 1 -----'
//!  key -> hash -> home line + tag; the set is the home line and its neighbour: 16 slots
//! ```
//!
//! Promise: while a set is not full and no two keys share set and tag, every key gets the exact answer of its own
//! token bucket, on any interleaving of any number of threads and processes. When a set is full the table's
//! [`FullPolicy`] decides, and the decision says so. What differs from a map: nothing is allocated, nothing is
//! deleted (an expired word equals an absent key), no lock is held, a killed thread or process blocks nothing.
//!
//! Not in the table: the key itself. A slot keeps a tag of 12 to 24 bits, so with chance 16 * 2^-bits (1.5e-5 by
//! default, at full load) a new key shares the slot of another and both share one debt. Use cells where even that
//! must not happen.

mod ask;
mod burst;
#[cfg(feature = "capi")]
mod burst_list;
mod burst_prepared;
mod choose;
mod choose_count;
mod counters;
mod error;
mod geometry;
#[cfg(any(tatcell_sse2, test))]
mod groups;
mod handle;
mod image;
mod info;
mod insert;
mod migrate;
mod numbers;
mod one;
mod options;
mod override_word;
mod overrides;
mod pair;
mod policy;
mod run;
mod search;
mod set;
mod settle;
mod single;
mod size;
mod top;
mod upkeep;
mod word;

#[cfg(all(test, not(tatcell_loom)))]
mod reset_tests;

#[cfg(all(test, tatcell_loom))]
mod loom_attach;
#[cfg(all(test, tatcell_loom))]
mod loom_bursts;
#[cfg(all(test, tatcell_loom))]
mod loom_counts;
#[cfg(all(test, tatcell_loom))]
mod loom_every;
#[cfg(all(test, tatcell_loom))]
mod loom_full;
#[cfg(all(test, tatcell_loom))]
mod loom_groups;
#[cfg(all(test, tatcell_loom))]
mod loom_insert;
#[cfg(all(test, tatcell_loom))]
pub(crate) mod loom_kit;
#[cfg(all(test, tatcell_loom))]
mod loom_ops;
#[cfg(all(test, tatcell_loom))]
mod loom_overrides;
#[cfg(all(test, tatcell_loom))]
mod loom_resets;
#[cfg(all(test, tatcell_loom))]
mod loom_saves;
#[cfg(all(test, tatcell_loom))]
mod loom_weak;
#[cfg(all(test, not(any(tatcell_loom, tatcell_step))))]
mod lost_tests;
#[cfg(all(test))]
mod schedule_tests;
#[cfg(all(test, not(any(tatcell_loom, tatcell_step))))]
mod settle_tests;
#[cfg(all(test, tatcell_step))]
mod step;

// Its files name it as `super::access`.
use crate::sync::access;
pub use crate::sync::{Access, Exclusive, Shared};
#[cfg(feature = "capi")]
pub(crate) use burst_list::Keys;
pub use counters::Counters;
pub use error::TableError;
pub use geometry::{MAX_BURST, MIN_SLOTS, SLOTS_PER_LINE};
pub use handle::{ExclusiveTable, Table};
pub use image::{lines_for, Line, LAYOUT_VERSION};
pub use info::TableInfo;
pub use migrate::Migrated;
pub use numbers::TableNumbers;
pub use one::Request;
pub use options::{AttachOptions, TableOptions};
pub use overrides::Override;
pub(crate) use pair::{Half, Known};
pub use policy::FullPolicy;
pub use run::Burst;
pub use size::{full_set_ppb, lines_for_load};
pub use upkeep::{Slot, Stats};
