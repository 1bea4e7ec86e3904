//! What happens to a refused request: how often it is logged, and how often it gets an answer.

mod key_log_gate;
mod log_gate;
mod slip;

pub use key_log_gate::{KeyLogGate, LeftOut};
pub use log_gate::{LogGate, LogLine};
pub use slip::Slip;
