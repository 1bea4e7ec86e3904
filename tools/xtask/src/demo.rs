//! The comparison of the algorithms, and the demo, which attacks examples/udp_gate.c over loopback, limiter off, then
//! on, and judges it. No privilege.
//!
//! As a test its verdict lines are the claims; where the machine was busy it gets one more try.

use std::path::PathBuf;

use anyhow::{bail, Context as _, Result};
use xshell::{cmd, Cmd};

use crate::context::{is_fresh, words, Context};
use crate::exec::{tail, Run};
use crate::library;
use crate::report::Report;
use crate::tools::have;

/// Runs the demo before the user's eyes; an error if a goal is missed.
pub fn run(ctx: &Context) -> Result<()> {
    let gate = build(ctx)?;
    let svg = words("DEMO_SVG", "demo.svg").join(" ");
    attack(ctx, &gate, &svg).quiet().run().context("the demo missed a goal")
}

/// Sends the same arrivals through every algorithm; an error if a claim does not hold.
pub fn compare(ctx: &Context) -> Result<()> {
    let (cargo, svg) = (&ctx.cargo, words("COMPARE_SVG", "compare.svg"));
    cmd!(ctx.sh, "env {cargo...} run --quiet --release -p tatcell-compare -- {svg...}")
        .quiet()
        .run()
        .context("a claim about an algorithm does not hold")
}

/// Attacks tables in virtual time; writes the figures of docs/ATTACKS.md and its picture. An error if a claim does not
/// hold.
pub fn attacks(ctx: &Context) -> Result<()> {
    let (cargo, to) = (&ctx.cargo, ["docs/attacks.svg", "docs/ATTACKS.md"]);
    cmd!(ctx.sh, "env {cargo...} run --quiet --release -p tatcell-attacks -- {to...}")
        .quiet()
        .run()
        .context("a claim about attacks does not hold")
}

/// The same in small, as a test.
pub fn test_attacks(ctx: &Context, report: &mut Report) -> Result<()> {
    hold_attacks(ctx, report, "small", &["--quick"])
}

/// The same in full; the figures of docs/ATTACKS.md must be those of this run. In its quick form in small.
pub fn attacks_long(ctx: &Context, report: &mut Report) -> Result<()> {
    match ctx.quick {
        true => test_attacks(ctx, report),
        false => hold_attacks(ctx, report, "full", &["--hold"]),
    }
}

fn hold_attacks(ctx: &Context, report: &mut Report, form: &str, flags: &[&str]) -> Result<()> {
    let cargo = &ctx.cargo;
    cmd!(ctx.sh, "env {cargo...} build --quiet --release -p tatcell-attacks").must()?;
    let mut attacks = std::process::Command::new(ctx.cargo_target.join("release/tatcell-attacks"));
    attacks.args(flags).arg(ctx.folder("c")?.join("attacks.svg"));
    if flags.contains(&"--hold") {
        attacks.arg(ctx.root.join("docs/ATTACKS.md"));
    }
    report.program(form, attacks).map(drop)
}

/// The suite.
pub fn test(ctx: &Context, report: &mut Report) -> Result<()> {
    let (cargo, picture) = (&ctx.cargo, "target/c/compare.svg");
    let compared =
        cmd!(ctx.sh, "env {cargo...} run --quiet --release -p tatcell-compare -- {picture}").done()?;
    for line in compared.stdout.lines().filter(|l| l.starts_with("PASS ") || l.starts_with("FAIL ")) {
        report.line(line);
    }
    if !compared.ok() {
        bail!("the comparison ended with {}\n{}", compared.how(), tail(&compared.all, 20));
    }
    let gate = build(ctx)?;
    let svg = "target/c/demo.svg";
    let mut done = attack(ctx, &gate, svg).done()?;
    if !done.ok() {
        report.note("once more");
        done = attack(ctx, &gate, svg).done()?;
    }
    std::fs::write(ctx.root.join("target/c/demo.log"), &done.all)?;
    for line in done.stdout.lines().filter(|l| l.starts_with("PASS ") || l.starts_with("FAIL ")) {
        report.line(line);
    }
    if !done.ok() {
        bail!("the demo ended with {}\n{}", done.how(), tail(&done.all, 20));
    }
    Ok(())
}

fn attack<'a>(ctx: &'a Context, gate: &PathBuf, svg: &str) -> Cmd<'a> {
    let demo = ctx.cargo_target.join("release/tatcell-demo");
    let port = words("DEMO_PORT", "47474");
    cmd!(ctx.sh, "{demo} --gate {gate} --port {port...} --svg {svg}")
}

fn build(ctx: &Context) -> Result<PathBuf> {
    let (cc, cargo) = (&ctx.cc, &ctx.cargo);
    for tool in cc.first().into_iter().chain(cargo.first()).map(String::as_str).chain(["ld", "objcopy"]) {
        if !have(tool) {
            bail!(
                "{tool} is missing; the demo needs a C compiler (gcc or clang, or CC=...), binutils and Rust"
            );
        }
    }
    let archive = library::build(ctx)?.archive;
    let gate = ctx.folder("c")?.join("udp_gate");
    let source = ctx.root.join("examples/udp_gate.c");
    if !is_fresh(&gate, &[source.clone(), ctx.root.join("include/tatcell.h"), archive.clone()]) {
        let warnings = ["-Wall", "-Wextra"];
        cmd!(ctx.sh, "env {cc...} -O2 {warnings...} -Iinclude {source} {archive} -o {gate}").must()?;
    }
    cmd!(ctx.sh, "env {cargo...} build --quiet --release -p tatcell-demo").must()?;
    Ok(gate)
}
