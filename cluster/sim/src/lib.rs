//! Simulation of the cluster companion: one seed is one world of nodes, servers, clocks, a network, and faults, on one
//! thread, in virtual time. The nodes, their store's threads and the scripts are those that ship.
//!
//! - [`plan`]: what a seed draws. [`play`]: plays it, judges it, shrinks it.
//! - [`table`]: what each fault may add; the page's table. [`judge`]: what a world may admit. [`audit`]: what it did.
//! - [`server`], [`data`], [`lua`], [`resp`]: the store.

pub mod audit;
pub mod clock;
pub mod data;
mod host;
pub mod judge;
pub mod kept;
mod later;
pub mod lua;
mod net;
pub mod plan;
pub mod play;
pub mod random;
pub mod resp;
pub mod server;
pub mod table;
mod world;
