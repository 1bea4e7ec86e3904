//! The tests in Rust, run by cargo: the usual ones, and the long ones.

use anyhow::Result;
use xshell::cmd;

use crate::context::Context;
use crate::exec::Run;
use crate::loom;
use crate::report::Report;

/// Two threads: the machines of the tests have two cores.
const RUN: [&str; 3] = ["--", "--nocapture", "--test-threads=2"];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    cmd!(sh, "env {cargo...} test --quiet --features std,host --no-run").must()?;
    report.lines_of(cmd!(sh, "env {cargo...} test --no-fail-fast --features std,host {RUN...}"))
}

/// The harness's own tests.
pub fn harness(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    // As it was built to run, so that its dependencies need not be built again.
    let profile = "profile.test.opt-level=0";
    report.lines_of(cmd!(sh, "env {cargo...} test --config {profile} -p tatcell-xtask -- --test-threads=2"))
}

/// The tests that are too long for every day.
pub fn long(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    let options = ["--release", "--features", "std"];
    report
        .lines_of(cmd!(sh, "env {cargo...} test {options...} -- --ignored --nocapture --test-threads=2"))?;
    loom::long(ctx, report)
}
