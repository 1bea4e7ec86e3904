//! `tatcell-throttled`: a server that speaks `CL.THROTTLE`, for clients of redis-cell.
//!
//! - [`resp`]: the parts of Redis' protocol that are needed. [`throttle`]: one call and its five integers.
//! - [`commands`]: the list of the commands. [`session`]: what they do for one client. [`batch`]: those of a batch.
//! - [`connection`]: bytes in, bytes out, and how it ends.
//! - [`server`]: settings, and what connections share and count. [`listen`]: listening, accepting, stopping.

pub mod batch;
pub mod commands;
pub mod connection;
pub mod listen;
pub mod resp;
pub mod server;
pub mod session;
pub mod throttle;
