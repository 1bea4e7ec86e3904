//! What happens to a refused request: log lines, rare answers, and HTTP fields.

pub(super) mod http;
mod log_gate;
mod slip;
