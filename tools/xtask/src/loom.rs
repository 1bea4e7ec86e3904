//! Models of the shipped code under loom, every schedule up to a bound. The cfg reaches these commands only.
//!
//! The models run in processes of one thread each: within one process they wait for each other's stacks to be mapped.

use std::process::Command;

use anyhow::{anyhow, ensure, Result};

use crate::context::{command, Context};
use crate::exec::Run;
use crate::report::Report;

/// Arguments that choose the models of each process; together they are all of them, once.
const SHARES: [&[&str]; 2] = [&["loom_insert"], &["loom_", "--skip", "loom_insert"]];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    models(ctx, report, "")
}

/// The same with higher bounds.
pub fn long(ctx: &Context, report: &mut Report) -> Result<()> {
    models(ctx, report, "long")
}

fn models(ctx: &Context, report: &mut Report, bounds: &str) -> Result<()> {
    let mut build = cargo_test(ctx)?;
    build.args(["--quiet", "--no-run"]).must()?;
    let mut processes = Vec::new();
    for share in SHARES {
        let mut command = cargo_test(ctx)?;
        command.env("TATCELL_LOOM", bounds).arg("--").args(share).arg("--test-threads=1");
        processes.push(std::thread::spawn(move || {
            let mut lines = Vec::new();
            command.lines(|line| lines.push(line.to_owned())).map(|status| (lines, status))
        }));
    }
    let mut all = true;
    for process in processes {
        let (lines, status) = process.join().map_err(|_| anyhow!("a thread of the harness panicked"))??;
        for line in lines {
            report.line(&line);
        }
        all &= status.success();
    }
    ensure!(all, "a process with models ended with an error");
    Ok(())
}

fn cargo_test(ctx: &Context) -> Result<Command> {
    let mut command = command(&ctx.cargo)?;
    command.args(["test", "--release", "--lib", "--features", "std"]).current_dir(&ctx.root);
    command.env("CARGO_TARGET_DIR", ctx.folder("loom")?).env("RUSTFLAGS", "--cfg tatcell_loom");
    Ok(command)
}
