//! Tests of limits and cells, and of what builds on one cell: leases, meters, refusals, the header fields of HTTP.

#[path = "../common/mod.rs"]
mod common;

mod counted;
mod every_state;
mod http;
mod lease;
mod lease_cost;
mod lease_policy;
mod limits;
mod long;
mod meters;
mod options;
mod properties;
mod refusals;
mod vectors;
mod wrap;
