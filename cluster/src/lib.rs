//! Limits of [tatcell](https://docs.rs/tatcell) that several machines share through Redis or Valkey.
//!
//! Each node is granted *pieces of a key's time axis* and spends them by itself. So far here: how a limit is divided
//! ([`SharedLimit`], [`Split`]) and what runs in the store ([`script`]).

mod axis;
#[allow(dead_code)]
mod line;
mod piece;
pub mod script;
mod split;
mod sync;

pub use axis::{Span, Q_PER_US};
pub use split::{LimitError, Reserve, SharedLimit, Split, MAX_GRANT, MAX_NODES};

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod model_tests;
