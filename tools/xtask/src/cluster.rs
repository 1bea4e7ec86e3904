//! The companion crate: its tests against a redis-server of their own, and the models of its lines.

use anyhow::{bail, Context as _, Result};
use xshell::{cmd, Cmd};

use crate::context::{command, words, Context};
use crate::exec::{tail, Run};
use crate::report::Report;
use crate::tools;

const PACKAGE: [&str; 4] = ["-p", "tatcell-cluster", "--features", "tatcell-cluster/tokio"];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    cmd!(sh, "env {cargo...} test --quiet {PACKAGE...} --no-run").must()?;
    let threads = ["--nocapture", "--test-threads=2"];
    let usual = report.lines_of(cmd!(sh, "env {cargo...} test --no-fail-fast {PACKAGE...} -- {threads...}"));

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
    usual
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
