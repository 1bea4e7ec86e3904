//! The tests in Rust, run by cargo: the usual ones, and the long ones.

use anyhow::Result;
use xshell::cmd;

use crate::context::Context;
use crate::exec::Run;
use crate::report::Report;

/// Two threads: the machines of the tests have two cores.
const RUN: [&str; 3] = ["--", "--nocapture", "--test-threads=2"];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    cmd!(sh, "env {cargo...} test --quiet --features std,host,heapless --no-run").must()?;
    report.lines_of(cmd!(sh, "env {cargo...} test --no-fail-fast --features std,host,heapless {RUN...}"))
}

/// The harness's own tests.
pub fn harness(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    // As it was built to run, so that its dependencies need not be built again.
    let profile = "profile.test.opt-level=0";
    report.lines_of(cmd!(sh, "env {cargo...} test --config {profile} -p tatcell-xtask -- --test-threads=2"))
}

/// The files with tests that are too long for every day.
const LONG: [&str; 4] = ["long", "kill", "explorer", "clock"];

/// Their sizes in the quick form: decisions, kills, states of random worlds, runs of ten seconds with stopped workers.
const QUICK: [(&str, &str); 4] = [
    ("TATCELL_DECISIONS", "1e7"),
    ("TATCELL_KILLS", "1e3"),
    ("TATCELL_STATES", "2e6"),
    ("TATCELL_STOP_RUNS", "1"),
];

/// The tests that are too long for every day.
pub fn long(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    let files = LONG.iter().flat_map(|name| ["--test", name]);
    let options = ["--release", "--no-fail-fast", "--features", "std"].into_iter().chain(files);
    let mut tests = cmd!(sh, "env {cargo...} test {options...} -- --ignored --nocapture --test-threads=2");
    if ctx.quick {
        let sizes = QUICK.map(|(name, size)| format!("{name}={size}"));
        report.note(&format!("quick: {}", sizes.join(" ")));
        tests = tests.envs(QUICK);
    }
    report.lines_of(tests)
}
