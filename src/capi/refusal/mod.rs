//! What happens to a refused request: log lines, rare answers, and HTTP fields.

pub(super) mod http;
mod key_log_gate;
mod log_gate;
mod slip;
