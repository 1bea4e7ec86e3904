//! Models of the shipped code on every schedule: under loom with weak memory and up to a bound, under the explorer
//! without either. The cfgs reach these commands only.
//!
//! The models run in processes of one thread each: within one process they wait for each other's stacks to be mapped.

use std::path::Path;
use std::process::Command;

use anyhow::{anyhow, ensure, Result};

use crate::context::{command, files, Context};
use crate::exec::Run;
use crate::report::Report;

/// Arguments that choose the models of each process; together they are all of them, once.
const SHARES: [&[&str]; 2] = [&["loom_insert"], &["loom_", "--skip", "loom_insert"]];

/// Models of the quick form of the long run: each has a higher bound there than in the suite, and ends in seconds to
/// half a minute.
const QUICK: [&str; 5] = [
    "loom_three_packets_share_the_bursts",
    "refund_of_before_a_reset_takes_nothing_from_what_came_after_it",
    "two_stalled_claims_admit_one_burst",
    "claim_without_version_is_caught",
    "the_shipped_protocol_passes_beside_a_stopped_thread",
];

/// Models that there are at least: fewer were lost, rather than thought superfluous.
const LEAST: usize = 130;

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    whole(ctx, report, "")
}

/// All models, and none of the sources that no process has run.
fn whole(ctx: &Context, report: &mut Report, bounds: &str) -> Result<()> {
    let before = report.tally();
    let ended = models(ctx, report, bounds, &SHARES);
    let ran = report.tally() - before;
    report.claim("every_model_of_the_sources_has_run", || {
        let (there, ran) = (models_of(&ctx.root.join("src"))?, ran.passed + ran.failed);
        ensure!(there >= LEAST && there == ran, "{ran} of {there} models, and there should be {LEAST}");
        Ok(())
    });
    ended
}

/// How many tests the files of models have.
fn models_of(sources: &Path) -> Result<usize> {
    let mut count = 0;
    for file in files(sources, ".rs")? {
        if file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("loom_")) {
            count += std::fs::read_to_string(file)?.lines().filter(|line| line.trim() == "#[test]").count();
        }
    }
    Ok(count)
}

/// The same with higher bounds.
pub fn long(ctx: &Context, report: &mut Report) -> Result<()> {
    if ctx.quick {
        report.note(&format!("quick: {} of the models", QUICK.len()));
        return models(ctx, report, "long", &[&QUICK]);
    }
    whole(ctx, report, "long")
}

/// The explorer: worlds of the shipped table, one access a step.
pub fn explorer(ctx: &Context, report: &mut Report) -> Result<()> {
    worlds(ctx, report, &[])
}

/// The same with the worlds that take minutes and gigabytes.
pub fn explorer_long(ctx: &Context, report: &mut Report) -> Result<()> {
    worlds(ctx, report, &["--ignored"])
}

/// Schedules of eight threads that shuttle draws, and real threads that a seed orders.
pub fn shuttle(ctx: &Context, report: &mut Report) -> Result<()> {
    schedules(ctx, report, "2e4")
}

/// A million of them; quick: ten times the daily ones.
pub fn shuttle_long(ctx: &Context, report: &mut Report) -> Result<()> {
    schedules(ctx, report, if ctx.quick { "2e5" } else { "1e6" })
}

fn schedules(ctx: &Context, report: &mut Report, count: &str) -> Result<()> {
    let mut tests = cargo_test(ctx, "shuttle")?;
    tests.env("TATCELL_SCHEDULES", count);
    tests.args(["--", "table::schedule_tests", "--nocapture", "--test-threads=2"]);
    report.lines_of(tests)
}

fn worlds(ctx: &Context, report: &mut Report, which: &[&str]) -> Result<()> {
    let mut tests = cargo_test(ctx, "step")?;
    tests.args(["--", "table::step", "--nocapture", "--test-threads=2"]).args(which);
    report.lines_of(tests)
}

/// A process for each share of the models.
fn models(ctx: &Context, report: &mut Report, bounds: &str, shares: &[&[&str]]) -> Result<()> {
    let mut build = cargo_test(ctx, "loom")?;
    build.args(["--quiet", "--no-run"]).must()?;
    let mut processes = Vec::new();
    for share in shares {
        let mut command = cargo_test(ctx, "loom")?;
        command.env("TATCELL_LOOM", bounds).arg("--").args(*share).arg("--test-threads=1");
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

/// The tests of the library with the atomics of a checker.
fn cargo_test(ctx: &Context, checker: &str) -> Result<Command> {
    let mut command = command(&ctx.cargo)?;
    command.args(["test", "--profile", "loom", "--lib", "--features", "std"]).current_dir(&ctx.root);
    command
        .env("CARGO_TARGET_DIR", ctx.folder(checker)?)
        .env("RUSTFLAGS", format!("--cfg tatcell_{checker}"));
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ROOT;

    #[test]
    fn quick_models_are_there() -> Result<()> {
        let sources = Path::new(ROOT).join("src");
        let text: String =
            files(&sources, ".rs")?.iter().map(std::fs::read_to_string).collect::<Result<_, _>>()?;
        let lost: Vec<_> = QUICK.iter().filter(|name| !text.contains(&format!("fn {name}()"))).collect();
        ensure!(lost.is_empty(), "there is no {lost:?}");
        Ok(())
    }
}
