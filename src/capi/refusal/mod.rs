//! What happens to a refused request: log lines, rare answers, and fields of HTTP.

pub(super) mod http;
mod log_gate;
mod slip;
