//! `tatcell-ratelimit`: Envoy's rate limit service, with the configuration of the reference service.
//!
//! - [`api`]: the messages of version 3. [`grpc`]: the service. [`rules`]: the limits, and the rule that a descriptor
//!   matches; [`read`]: rules from YAML, with errors that name the line; [`watch`]: whether their files have changed.
//! - [`service`]: decides one request. [`server`]: settings, listening, reloading, stopping.

pub mod api;
#[cfg(feature = "server")]
mod asked;
#[cfg(feature = "server")]
pub mod fields;
#[cfg(feature = "server")]
pub mod grpc;
#[cfg(feature = "server")]
mod incoming;
#[cfg(feature = "server")]
mod json;
#[cfg(feature = "server")]
mod past;
mod pattern;
pub mod read;
pub mod rules;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod service;
#[cfg(feature = "server")]
pub mod watch;
