//! The library through its C ABI, from C and C++: programs of ffi-tests, headers, and gates on what was built.

pub mod abi;
mod gates;
mod header_docs;
pub mod headers;
mod http_server;
pub mod jobs;
mod programs;

use anyhow::Result;

use crate::context::Context;
use crate::library;
use crate::report::Report;

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let library = library::build(ctx)?;
    jobs::run(ctx, report, &library)?;
    headers::run(ctx, report, &library)?;
    http_server::run(ctx, report, &library)?;
    gates::run(ctx, report, &library)
}

/// The programs of oracles alone: exact buckets with so many traces that compare at least so many decisions, and the
/// algorithms that count with so many decisions each.
pub fn oracles(ctx: &Context, report: &mut Report, buckets: [&str; 2], counted: &str) -> Result<()> {
    let library = library::build(ctx)?;
    jobs::one(ctx, report, &library, "property", &buckets)?;
    jobs::one(ctx, report, &library, "counted", &[counted])
}
