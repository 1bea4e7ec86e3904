//! Same answers everywhere: builds one trace program for this host, for bare machines in QEMU and for other hosts, and
//! compares what they print, byte for byte.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, ensure, Context as _, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::context::{command, Context};
use crate::exec::{Done, Run};
use crate::machines::boards::{short, BOARDS, HOSTS};
use crate::machines::rust_target::{self, RustTarget};
use crate::report::Report;
use crate::tools::missing;

/// The first request whose cost the control raises by one.
const CONTROL: &str = "200";
const PATIENCE: Duration = Duration::from_secs(300);

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let cargo = command(&ctx.cargo)?;
    let host = build(ctx, cargo, None).context("the trace does not build for this host")?;
    let done = cmd!(ctx.sh, "{host}").done()?;
    let text = done.stdout.clone();
    report.claim("trace_exclusive_forms_equal_shared_forms", || {
        if !done.ok() {
            let said: Vec<&str> = text.lines().filter(|l| l.starts_with("FAIL")).collect();
            bail!("{}\n{}", done.how(), said.join("\n"));
        }
        Ok(())
    });
    report.claim("trace_has_at_least_1e5_requests", || {
        let events = text.lines().find_map(|l| l.strip_prefix("EVENTS ")).context("no count")?;
        ensure!(events.trim().parse::<u64>()? >= 100_000, "{events}");
        Ok(())
    });
    // A comparison that cannot fail shows nothing.
    report.claim("trace_control_changed_costs_change_every_digest", || {
        let flipped = cmd!(ctx.sh, "{host} {CONTROL}").done()?.stdout;
        let digest = Regex::new(" [0-9a-f]{16}$")?;
        let digests: BTreeSet<&str> = text.lines().filter(|l| digest.is_match(l)).collect();
        ensure!(!digests.is_empty(), "no digests");
        ensure!(!flipped.lines().any(|l| digests.contains(l)), "some digests are equal");
        Ok(())
    });

    for board in BOARDS {
        let triple = board.target.triple;
        let name = format!("trace_same_on_{}_{}", board.machine_name(), short(triple));
        if let Some(missing) = missing(&[board.target.family.emulator]) {
            report.skip(&name, &missing);
            continue;
        }
        let run = |rust: &RustTarget| board.run(&build(ctx, rust.cargo(ctx, "build")?, Some(triple))?, None);
        compare(ctx, report, &name, triple, &text, run);
    }
    for host in HOSTS {
        let name = format!("trace_same_on_{}_linux_{}", short(host.triple), host.what);
        let tools = match host.tools() {
            Ok(tools) => tools,
            Err(missing) => {
                report.skip(&name, &missing);
                continue;
            }
        };
        let run = |rust: &RustTarget| {
            let mut cargo = rust.cargo(ctx, "build")?;
            cargo.envs(tools.variables.iter().map(|(k, v)| (k, v)));
            let program = build(ctx, cargo, Some(host.triple))?;
            command(&tools.runner)?.arg(program).done_within(PATIENCE)
        };
        compare(ctx, report, &name, host.triple, &text, run);
    }
    Ok(())
}

fn compare(
    ctx: &Context,
    report: &mut Report,
    name: &str,
    triple: &str,
    wanted: &str,
    run: impl Fn(&RustTarget) -> Result<Done>,
) {
    match rust_target::find(ctx, triple) {
        Err(missing) => report.skip(name, &missing),
        Ok(rust) => drop(report.claim(name, || {
            let done = run(&rust)?;
            ensure!(done.ok(), "{}", done.how());
            same(wanted, &done.all)
        })),
    }
}

fn same(wanted: &str, found: &str) -> Result<()> {
    if wanted == found {
        return Ok(());
    }
    let first = wanted.lines().zip(found.lines()).find(|(w, f)| w != f);
    let (w, f) = first.unwrap_or(("the end", "another end"));
    bail!("first difference: {w} is {f}");
}

/// Builds the program; returns the file.
fn build(ctx: &Context, mut cargo: Command, triple: Option<&str>) -> Result<PathBuf> {
    let target = ctx.cargo_target.join("fw-rust");
    if triple.is_none() {
        cargo.arg("build").current_dir(&ctx.root);
    }
    cargo.args([
        "--quiet",
        "--locked",
        "--release",
        "--manifest-path",
        "firmware/rust/Cargo.toml",
        "-p",
        "trace",
    ]);
    if let Some(triple) = triple {
        cargo.args(["--target", triple]);
    }
    cargo.env("CARGO_TARGET_DIR", &target).must().context("does not build")?;
    Ok(target.join(triple.unwrap_or("")).join("release/trace"))
}
