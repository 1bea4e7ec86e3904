//! The schedule: the nodes, the limit, and the times of the events.

pub const NODES: usize = 4;
/// The limit of each key: units per second, and at once.
pub const RATE: u64 = 2_000;
pub const BURST: u64 = 1_000;
/// Seconds from the start: one node is killed, the store is stopped, the store goes on, the end.
pub const KILL: f64 = 5.0;
pub const STOP: f64 = 6.0;
pub const GO_ON: f64 = 8.0;
pub const END: f64 = 11.0;
