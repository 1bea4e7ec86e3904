//! The crate's own tests, threads included, on other hosts: big-endian, 32-bit, without 64-bit atomics. Long.
//!
//! `cargo xtask test-hosts TRIPLE...` tries only these; the quick form tries only the one in `QUICK`.

use anyhow::Result;

use crate::context::Context;
use crate::exec::Run;
use crate::machines::boards::{short, Host, HOSTS};
use crate::machines::rust_target::{self, HostTools, RustTarget};
use crate::report::Report;

/// A test that compares words with what this machine's C compiler lays out says nothing about another byte order.
const LEFT_OUT: [&str; 2] = ["--skip", "the_header_computes_and_refuses_the_same_limits"];

/// The host of the quick form: the farthest from this one.
const QUICK: &str = "s390x-unknown-linux-gnu";

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let asked = |triple: &str| match &ctx.arguments[..] {
        [] => !ctx.quick || triple == QUICK,
        some => some.iter().any(|a| a == triple),
    };
    if ctx.quick {
        report.note(&format!("quick: {QUICK} only"));
    }
    for host in HOSTS.iter().filter(|h| asked(h.triple)) {
        let name = format!("tests_pass_on_{}_linux_{}", short(host.triple), host.what);
        let found = host.tools().and_then(|tools| Ok((tools, rust_target::find(ctx, host.triple)?)));
        match found {
            Err(missing) => report.skip(&name, &missing),
            Ok((tools, rust)) => match tests(ctx, host, &tools, &rust) {
                Ok(count) => report.pass(&format!("{name} ({count} tests)")),
                Err(e) => report.fail(&name, &format!("{e:#}")),
            },
        }
    }
    Ok(())
}

/// Runs the tests; returns how many there were.
fn tests(ctx: &Context, host: &Host, tools: &HostTools, rust: &RustTarget) -> Result<usize> {
    let mut cargo = rust.cargo(ctx, "test")?;
    cargo.args(["--locked", "--features", host.features, "--target", host.triple]);
    cargo.args(["--", "--test-threads=2"]).args(LEFT_OUT);
    cargo
        .env("CARGO_TARGET_DIR", ctx.cargo_target.join("hosts"))
        .envs(tools.variables.iter().map(|(k, v)| (k, v)));
    let log = ctx.folder("hosts")?.join(format!("{}.log", host.triple));
    let mut text = String::new();
    let status = cargo.lines(|line| {
        text.push_str(line);
        text.push('\n');
    })?;
    std::fs::write(&log, &text)?;
    let count = |end: &str| text.lines().filter(|l| l.starts_with("test ") && l.ends_with(end)).count();
    let (ran, bad) = (count(" ok"), count(" FAILED"));
    anyhow::ensure!(
        status.success() && ran > 0,
        "{status}, {ran} passed, {bad} failed, see {}",
        log.display()
    );
    Ok(ran)
}
