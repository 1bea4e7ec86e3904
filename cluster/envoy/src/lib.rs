//! `tatcell-ratelimit`: Envoy's rate limit service, with the configuration of the reference service.
//!
//! - [`api`]: the messages of version 3. [`grpc`]: the service. [`rules`]: the limits, and the rule that a descriptor
//!   matches; [`read`]: rules from YAML, with errors that name the line; [`watch`]: whether their files have changed.
//! - [`service`]: decides one request. [`server`]: settings, listening, reloading, stopping.

pub mod api;
mod asked;
mod fields;
pub mod grpc;
mod incoming;
mod json;
mod past;
mod pattern;
pub mod read;
pub mod rules;
pub mod server;
pub mod service;
pub mod watch;
