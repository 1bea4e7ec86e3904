//! The tests in Rust, run by cargo: the usual ones, and the long ones.

use anyhow::Result;
use xshell::cmd;

use crate::context::Context;
use crate::exec::Run;
use crate::ffi;
use crate::report::Report;

/// Two threads: the machines of the tests have two cores.
const RUN: [&str; 3] = ["--", "--nocapture", "--test-threads=2"];

/// The files whose threads wait for each other a million times: seconds with both cores, minutes beside other work.
const RACES: [&str; 3] = ["race", "refusals", "threads"];

/// With the C ABI, whose pointers and numbers have unit tests, too.
const FEATURES: &str = "std,host,heapless,single-core,capi";
/// Without it: the examples in its documentation are programs in C.
const OF_EXAMPLES: &str = "std,host,heapless,single-core";

/// The suite: all but the races.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    cmd!(sh, "env {cargo...} test --quiet --features {FEATURES} --no-run").must()?;
    let files = targets(ctx)?.into_iter().filter(|name| !RACES.contains(&name.as_str()));
    let files: Vec<String> = files.flat_map(|name| ["--test".to_owned(), name]).collect();
    let options = ["--no-fail-fast", "--features", FEATURES];
    let tests =
        report.lines_of(cmd!(sh, "env {cargo...} test {options...} --lib --examples {files...} {RUN...}"));
    report.lines_of(cmd!(sh, "env {cargo...} test --no-fail-fast --features {OF_EXAMPLES} --doc"))?;
    tests
}

/// The races, which have the machine to themselves.
pub fn races(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    let files = RACES.iter().flat_map(|name| ["--test", name]);
    let options = ["--no-fail-fast", "--features", FEATURES].into_iter().chain(files);
    report.lines_of(cmd!(sh, "env {cargo...} test {options...} -- --nocapture --test-threads=1"))
}

/// The names of the files in tests/, each a program.
pub fn targets(ctx: &Context) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in ctx.root.join("tests").read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "rs") {
            names.extend(path.file_stem().and_then(|name| name.to_str()).map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

/// The harness's own tests.
pub fn harness(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    // As it was built to run, so that its dependencies need not be built again.
    let profile = "profile.test.opt-level=0";
    report.lines_of(cmd!(sh, "env {cargo...} test --config {profile} -p tatcell-xtask -- --test-threads=2"))
}

/// The files with tests that are too long for every day.
const LONG: [&str; 5] = ["long", "counted", "kill", "explorer", "clock"];

/// Their sizes in the quick form: kills, states of random worlds, runs of ten seconds with stopped workers. Decisions
/// beside the oracles are as many as in full, 1e9 of a test: some 30 to 60 ns each, so a minute.
const QUICK: [(&str, &str); 3] =
    [("TATCELL_KILLS", "1e3"), ("TATCELL_STATES", "2e6"), ("TATCELL_STOP_RUNS", "1")];

/// The files of the algorithms that count and of the markers: every day's tests, with more steps.
const ORACLES: [&str; 3] = ["counted", "meters_properties", "mark"];

/// How many steps each of them takes: of a test (each asks some ten times), and packets, of meters in all and of marks
/// by kind. In the quick form what counts leaves numbers to its lives in `LONG`; packets are as many, a quarter of a
/// microsecond each.
const STEPS: [(&str, &str); 2] = [("TATCELL_COUNTED_STEPS", "2e7"), ("TATCELL_METER_PACKETS", "5e7")];
const FEW_STEPS: [(&str, &str); 2] = [("TATCELL_COUNTED_STEPS", "1e6"), ("TATCELL_METER_PACKETS", "5e7")];

/// Through the C ABI: traces of the exact buckets, some 14 000 decisions each, and the least that they have to compare;
/// decisions of each algorithm that counts.
const TRACES: [&str; 2] = ["8000", "1e8"];
const COUNTED: &str = "2.5e7";

/// Bursts by groups beside single calls.
const BURSTS: &str = "1e8";
const FEW_BURSTS: &str = "1e6";

/// The tests that are too long for every day.
pub fn long(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    let files = LONG.iter().flat_map(|name| ["--test", name]);
    let options = ["--release", "--no-fail-fast", "--features", "std"].into_iter().chain(files);
    let mut tests = cmd!(sh, "env {cargo...} test {options...} -- --ignored --nocapture --test-threads=2");
    if ctx.quick {
        let sizes = QUICK.map(|(name, size)| format!("{name}={size}"));
        report.note(&format!("quick: {}", sizes.join(" ")));
        tests = tests.envs(QUICK);
    }
    report.lines_of(tests)?;
    let files = ORACLES.iter().flat_map(|name| ["--test", name]);
    let options = ["--release", "--no-fail-fast", "--features", "std"].into_iter().chain(files);
    let steps = if ctx.quick { FEW_STEPS } else { STEPS };
    report.note(&steps.map(|(name, size)| format!("{name}={size}")).join(" "));
    let tests = cmd!(sh, "env {cargo...} test {options...} -- --nocapture --test-threads=2").envs(steps);
    report.lines_of(tests)?;
    // A unit test, since only the library can choose the step of a group.
    let bursts = ("TATCELL_BURSTS", if ctx.quick { FEW_BURSTS } else { BURSTS });
    report.note(&format!("{}={}", bursts.0, bursts.1));
    let groups = ["--release", "--lib", "--features", "std", "groups_decide_count_and_store"];
    report.lines_of(cmd!(sh, "env {cargo...} test {groups...} -- --nocapture").env(bursts.0, bursts.1))?;
    ffi::oracles(ctx, report, TRACES, COUNTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_races_is_there() -> Result<()> {
        let names = targets(&Context::new()?)?;
        assert!(names.len() > 30 && RACES.iter().all(|race| names.iter().any(|name| name == race)));
        Ok(())
    }
}
