//! Several limits for one request: all of them are charged, or none.
//!
//! ```text
//!  chain.rs   link 0: cell, limit, cost ----+
//!             link 1: key, limit, cost -----+--> look at all --> charge in order --> passes
//!             ...                           |         |                 |
//!             link 7 -----------------------+     one refuses       one refuses: give back in reverse
//! ```
//!
//! `tiers.rs` makes such a chain of the prefixes of an address, `pair.rs` decides bursts of keys under two limits each.
//! `mark.rs` is the one that is not all or none: two limits of a key give three colours.
//!
//! What is combined are the calls that cells and tables have for everybody (peek, check, reserve, charge, refund): no
//! algorithm is known here, and no word is touched but through them.

mod chain;
mod error;
mod link;
mod mark;
mod pair;
mod shaper;
mod tiers;

#[cfg(all(test, tatcell_loom))]
mod loom_chain;
#[cfg(all(test, tatcell_loom))]
mod loom_mark;

pub use chain::{Chain, MAX_LINKS};
pub use error::ChainError;
pub use link::{Link, TableRef};
pub use mark::{Mark, MarkBurst, Marked};
pub use pair::PairBurst;
pub use shaper::{
    ring_words, wheel_words, Fifo, LeakyQueue, NotQueued, Ring, Shaper, ShaperError, Waiting, Wheel,
};
pub use tiers::LadderLimits;
