//! `tatcell-ratelimit`: Envoy's rate limit service, with the configuration of the reference service.
//!
//! - [`api`]: the messages and the service of gRPC, version 3. [`rules`]: what is limited, and which rule a descriptor
//!   matches; [`read`]: rules from YAML, with errors that name the line.
//! - [`service`]: one request. [`server`]: settings, listening, reloading, stopping.

pub mod api;
mod pattern;
pub mod read;
pub mod rules;
pub mod server;
pub mod service;
