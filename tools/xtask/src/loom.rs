//! Models of the shipped code on every schedule: under loom with weak memory and up to a bound, under the explorer
//! without either. The cfgs reach these commands only.
//!
//! Each model runs in a process of its own: within one they wait for each other's stacks to be mapped. Its lines come
//! as it ends, so that what runs for hours has told what it knew.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use anyhow::{anyhow, ensure, Context as _, Result};

use crate::context::{command, files, Context};
use crate::exec::{built, Run};
use crate::report::Report;
use crate::workers;

/// What the names of all models have.
const MODELS: &str = "loom_";
/// The same of those that begin, since they are the longest: none of them is left when the others are done.
const FIRST: &str = "loom_insert";

/// Models of the quick form of the long run: each has a higher bound there than in the suite, and ends in seconds to
/// half a minute.
const QUICK: [&str; 4] = [
    "refund_of_before_a_reset_takes_nothing_from_what_came_after_it",
    "two_stalled_claims_admit_one_burst",
    "claim_without_version_is_caught",
    "the_shipped_protocol_passes_beside_a_stopped_thread",
];

/// Models that there are at least: fewer were lost, rather than thought superfluous.
const LEAST: usize = 130;
/// Worlds of the explorer, those of a day and those that are left out by day, and tests by shuttle: the same.
const LEAST_WORLDS: Tests = Tests { of_a_day: 34, left_out: 3 };
const LEAST_SCHEDULES: usize = 5;

/// How many tests there are.
#[derive(Default, PartialEq, Eq, Debug)]
struct Tests {
    of_a_day: usize,
    left_out: usize,
}

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    whole(ctx, report, "")
}

/// All models, and none of the sources that no process has run.
fn whole(ctx: &Context, report: &mut Report, bounds: &str) -> Result<()> {
    let is_of_loom = |file: &Path| file.file_name().is_some_and(|n| n.to_string_lossy().starts_with("loom_"));
    let there = tests_of(&ctx.root.join("src"), is_of_loom)?.of_a_day;
    counted(report, "every_model_of_the_sources_has_run", (there, LEAST), |report| {
        models(ctx, report, bounds, &[MODELS])
    })
}

/// Runs tests, of which there are so many in the sources, and should be so many at least; as many must have run, which
/// they do not where a filter or a cfg leaves some out.
fn counted(
    report: &mut Report,
    claim: &str,
    (there, least): (usize, usize),
    run: impl FnOnce(&mut Report) -> Result<()>,
) -> Result<()> {
    let before = report.tally();
    let ended = run(report);
    let ran = report.tally() - before;
    report.claim(claim, || {
        let ran = ran.passed + ran.failed;
        ensure!(there >= least && there == ran, "{ran} of {there} tests, and there should be {least}");
        Ok(())
    });
    ended
}

/// How many tests some of the sources have.
fn tests_of(sources: &Path, which: impl Fn(&Path) -> bool) -> Result<Tests> {
    let mut tests = Tests::default();
    for file in files(sources, ".rs")?.iter().filter(|file| which(file)) {
        count(&std::fs::read_to_string(file)?, &mut tests);
    }
    Ok(tests)
}

fn count(text: &str, tests: &mut Tests) {
    let (mut is_test, mut is_left_out) = (false, false);
    for line in text.lines().map(str::trim) {
        match line {
            "#[test]" => is_test = true,
            _ if line.starts_with("#[ignore") => is_left_out = true,
            _ if line.starts_with("fn ") => {
                tests.of_a_day += usize::from(is_test && !is_left_out);
                tests.left_out += usize::from(is_test && is_left_out);
                (is_test, is_left_out) = (false, false);
            }
            _ => {}
        }
    }
}

/// The same with higher bounds.
pub fn long(ctx: &Context, report: &mut Report) -> Result<()> {
    if ctx.quick {
        report.note(&format!("quick: {} of the models", QUICK.len()));
        return models(ctx, report, "long", &QUICK);
    }
    whole(ctx, report, "long")
}

/// The explorer: worlds of the shipped table, one access a step.
pub fn explorer(ctx: &Context, report: &mut Report) -> Result<()> {
    worlds(ctx, report, false)
}

/// The same with the worlds that take minutes and gigabytes.
pub fn explorer_long(ctx: &Context, report: &mut Report) -> Result<()> {
    worlds(ctx, report, true)
}

/// Schedules of eight threads that shuttle draws, and real threads that a seed orders.
pub fn shuttle(ctx: &Context, report: &mut Report) -> Result<()> {
    schedules(ctx, report, "2e4")
}

/// A million of them; quick: ten times the daily ones.
pub fn shuttle_long(ctx: &Context, report: &mut Report) -> Result<()> {
    schedules(ctx, report, if ctx.quick { "2e5" } else { "1e6" })
}

fn schedules(ctx: &Context, report: &mut Report, schedules: &str) -> Result<()> {
    let mut tests = cargo_test(ctx, "shuttle")?;
    tests.env("TATCELL_SCHEDULES", schedules);
    tests.args(["--", "table::schedule_tests", "--nocapture", "--test-threads=2"]);
    let there = tests_of(&ctx.root.join("src"), |file| file.ends_with("schedule_tests.rs"))?.of_a_day;
    counted(report, "every_test_by_shuttle_of_the_sources_has_run", (there, LEAST_SCHEDULES), |report| {
        report.lines_of(tests)
    })
}

/// Those of a day, or those that are left out by day.
fn worlds(ctx: &Context, report: &mut Report, left_out: bool) -> Result<()> {
    let mut tests = cargo_test(ctx, "step")?;
    tests.args(["--", "table::step", "--nocapture", "--test-threads=2"]);
    let there = tests_of(&ctx.root.join("src/table/step"), |_| true)?;
    let (there, least) = match left_out {
        true => (there.left_out, LEAST_WORLDS.left_out),
        false => (there.of_a_day, LEAST_WORLDS.of_a_day),
    };
    if left_out {
        tests.arg("--ignored");
    }
    counted(report, "every_world_of_the_sources_has_run", (there, least), |report| report.lines_of(tests))
}

/// Runs the models whose names contain one of these parts.
fn models(ctx: &Context, report: &mut Report, bounds: &str, parts: &[&str]) -> Result<()> {
    let said = cargo_test(ctx, "loom")?.arg("--no-run").must()?;
    let program = ctx.root.join(built(&said).next().context("cargo does not say what it built")?);
    let said = Command::new(&program).args(parts).args(["--list", "--format=terse"]).must()?;
    let mut names: Vec<&str> = said.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    names.sort_by_key(|name| !name.contains(FIRST));
    let (report, root) = (Mutex::new(report), ctx.root.as_path());
    let ended = workers::each(&names, |_, name| {
        let mut model = Command::new(&program);
        model.args(["--exact", name, "--test-threads=1"]).env("TATCELL_LOOM", bounds);
        let mut lines = Vec::new();
        let status = model.current_dir(root).lines(|line| lines.push(line.to_owned()))?;
        let mut report = report.lock().map_err(|_| anyhow!("a thread of the harness panicked"))?;
        lines.iter().filter(|line| is_of_a_test(line)).for_each(|line| report.line(line));
        Ok(status.success())
    })?;
    ensure!(ended.iter().all(|ended| *ended), "a process with a model ended with an error");
    Ok(())
}

/// Whether a line says more than that one test begins or has ended.
fn is_of_a_test(line: &str) -> bool {
    !line.is_empty() && !["running ", "test result: "].iter().any(|word| line.starts_with(word))
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
    fn tests_are_counted_apart_from_those_that_are_left_out_by_day() {
        let mut tests = Tests::default();
        count("#[test]\nfn a() {}\nfn c() {}\n    #[test]\n    fn d() {}\n", &mut tests);
        count("#[test]\n#[ignore = \"long\"]\nfn b() {}\n", &mut tests);
        assert_eq!(tests, Tests { of_a_day: 2, left_out: 1 });
    }

    #[test]
    fn tests_that_did_not_run_or_are_gone_are_a_failure() {
        let failed = |numbers, lines: &[&str]| {
            let mut report = Report::new("suite", Box::new(std::io::sink()));
            let ended = counted(&mut report, "all", numbers, |report| {
                lines.iter().for_each(|line| report.line(line));
                Ok(())
            });
            assert!(ended.is_ok());
            report.tally().failed
        };
        assert_eq!(failed((2, 2), &["test a ... ok", "test b ... ok"]), 0);
        assert_eq!(failed((3, 2), &["test a ... ok", "test b ... ok"]), 1, "one was left out by a filter");
        assert_eq!(failed((1, 2), &["test a ... ok"]), 1, "one is gone from the sources");
        assert_eq!(failed((1, 1), &["test a ... ok", "test b ... ok"]), 1, "one that nobody has counted");
    }

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
