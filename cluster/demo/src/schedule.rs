//! What is played: the nodes, the limit, and when what happens.

pub const NODES: usize = 4;
/// The limit of each key: units a second, and at once.
pub const RATE: u64 = 2_000;
pub const BURST: u64 = 1_000;
/// Seconds from the beginning: one node is killed, the store is stopped, it goes on, the end.
pub const KILL: f64 = 5.0;
pub const STOP: f64 = 6.0;
pub const GO_ON: f64 = 8.0;
pub const END: f64 = 11.0;
