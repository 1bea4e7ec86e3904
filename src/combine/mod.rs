//! Several limits for one request: all of them are charged, or none.
//!
//! ```text
//!  chain.rs   link 0: cell, limit, cost ----+
//!             link 1: key, limit, cost -----+--> look at all --> charge in order --> passes
//!             ...                           |         |                 |
//!             link 7 -----------------------+     one refuses       one refuses: give back in reverse
//! ```
//!
//! `ladder_limits.rs` makes such a chain of the prefixes of an address, `pair.rs` decides bursts of keys under two
//! limits each. `mark.rs` is the one that is not all or none: two limits of a key give three colours.
//!
//! What is combined are the calls that cells and tables have for everybody (peek, check, reserve, charge, refund): no
//! algorithm is known here, and no word is touched but through them.

mod chain;
mod error;
mod ladder_limits;
pub(crate) mod link;
mod mark;
mod pair;
mod shaper;

#[cfg(all(test, tatcell_loom))]
mod models;

pub use chain::{Chain, MAX_LINKS};
pub use error::ChainError;
pub use ladder_limits::LadderLimits;
pub use link::{Link, TableRef};
pub use mark::{Mark, MarkBurst, Marked};
pub use pair::PairBurst;
pub use shaper::{
    ring_words, wheel_words, Fifo, Group, LeakyQueue, NotQueued, Ring, Shaper, ShaperError, Waiting, Wheel,
};
