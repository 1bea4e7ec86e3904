//! Limits of tatcell that several machines share through Redis or Valkey, and still decide without a round trip.
//!
//! The store grants a node *pieces of a key's time axis*, which the node spends by itself. Each node also has a small
//! *reserve* of its own, which the store does not grant. Whatever is delayed, lost or killed, all nodes together admit
//! at most `R w + B` units of a key in any window w. `docs/CLUSTER.md` states what lost data and wrong clocks add to
//! that, and how windows are counted for limits that ask the store each time.
//!
//! - [`Cluster`]: a node. [`SharedLimit`]: a limit. [`Verdict`]: the answer. [`Down`]: what happens without the store.
//! - [`Split`]: how a limit is divided, and which form it has. [`script`]: the scripts that run in the store.

mod answers;
mod axis;
mod bell;
#[cfg(feature = "capi")]
mod capi;
mod clock;
mod cluster;
mod counts;
mod demand;
mod driver;
mod endpoint;
mod error;
mod limit_version;
mod limit_versions;
mod line;
mod lines;
mod link;
mod log;
mod machine;
mod map;
mod mark;
mod miss;
mod node;
mod open;
mod opening;
mod piece;
mod random;
mod reserve;
pub mod script;
mod settle;
mod share;
#[cfg(feature = "sim")]
#[doc(hidden)]
pub mod sim;
mod slot;
mod split;
mod store;
mod store_thread;
mod streams;
mod sync;
#[cfg(feature = "tls")]
mod tls;
mod verdict;
mod waits;
mod wire;

pub use axis::{Span, Q_PER_US};
pub use cluster::{Cluster, LimitId};
pub use counts::Metrics;
pub use error::OpenError;
pub use open::Builder;
pub use reserve::SlotState;
pub use split::{LimitError, Reserve, SharedLimit, Split, MAX_GRANT, MAX_NODES};
#[cfg(feature = "tls")]
pub use tls::Tls;
pub use verdict::{ChangeError, Completion, Down, Verdict};

#[cfg(all(test, not(tatcell_cluster_loom)))]
mod capacity_tests;
