//! Several limits for one request: all of them are charged, or none.
//!
//! ```text
//!  chain.rs   link 0: cell, limit, cost ----+
//!             link 1: key, limit, cost -----+--> peek at all --> charge in order --> passes
//!             ...                           |         |                 |
//!             link 7 -----------------------+     one refuses       one refuses: give back in reverse
//! ```
//!
//! `short.rs` does this for links that are all plain (GCRA limits without options): it looks once at each word and
//! swaps it for the next one. `short_cells.rs` does it for two or three cells, with their words in registers.
//! `plain.rs` has what both ask of a link. `chain_long.rs` serves every other chain. `charge.rs` charges a chain after
//! the fact.
//!
//! `ladder_limits.rs` makes such a chain from the prefixes of an address, and `ladder_burst.rs` decides many addresses.
//! Both ask overrides before the limits (`ladder_overrides.rs`). `pair.rs` decides bursts of keys with two limits each.
//! `mark.rs` is not all or none: the two limits of a key give three colours.
//!
//! These modules combine calls of cells and tables (look, peek, check, reserve, charge, refund). They know no
//! algorithm. They touch no word except through these calls and the swaps that a look has made.

mod chain;
mod chain_long;
mod chain_short;
mod charge;
mod counters;
mod error;
mod ladder_ahead;
mod ladder_burst;
mod ladder_limits;
mod ladder_look;
mod ladder_overrides;
mod ladder_verdicts;
pub(crate) mod link;
mod mark;
mod pair;
mod plain;
mod prepared;
mod prepared_burst;
mod shaper;
pub(crate) mod short;
pub(crate) mod short_cells;

#[cfg(all(test, tatcell_loom))]
mod models;

pub use chain::Chain;
pub use counters::ChainCounters;
pub use error::ChainError;
pub use ladder_burst::LadderBurst;
pub use ladder_limits::LadderLimits;
pub use ladder_overrides::LadderOverrides;
pub use link::{Link, TableRef, MAX_LINKS};
pub use mark::{Mark, MarkBurst, Marked};
pub use pair::PairBurst;
pub use prepared::PreparedChain;
pub use prepared_burst::ChainBurst;
pub use shaper::{
    ring_words, wheel_words, Fifo, Group, LeakyQueue, NotQueued, Ring, Shaper, ShaperError, Waiting, Wheel,
};
