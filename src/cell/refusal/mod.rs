//! What happens to a refused request: how often it is logged, and how often it gets an answer.

mod log_gate;
mod slip;

pub use log_gate::{LogGate, LogLine};
pub use slip::Slip;
