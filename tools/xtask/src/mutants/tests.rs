//! The tests, which mutants each of them asks for, and whether they notice one.
//!
//! Each test is run once in a process of its own, with no mutant on: it says which ones it asked for, and takes its
//! time. Then a mutant meets the tests that ask for it, the quick ones first, a few a process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::build::{gently, Bench};
use crate::exec::{Done, Run};
use crate::ffi::jobs::Alone;
use crate::workers;

/// A test that takes longer is left out.
const LONGEST: Duration = Duration::from_secs(90);
/// The first few together; each next few take so many times what those before took, up to the last.
const FIRST: Duration = Duration::from_millis(150);
const MORE: u32 = 2;
const MOST: Duration = Duration::from_secs(8);
/// What takes less is as quick as any.
const QUICK: Duration = Duration::from_millis(16);
/// As many at once, at most.
const AT_ONCE: usize = 40;
/// Memory of a process, in kB: what grows without end has been noticed.
const MEMORY: u32 = 8_000_000;

/// A test.
pub struct Test {
    program: PathBuf,
    name: String,
    /// Of a program that is a test as a whole: its arguments.
    whole: Option<&'static [&'static str]>,
    takes: Duration,
    /// The mutants that it asks for.
    reaches: Vec<u32>,
}

/// What a mutant met.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// This test failed.
    Caught(String),
    /// It took several times its time, without an end.
    Endless,
    /// It does not compile.
    Uncompiled,
    /// No test asks for it, and none has failed where it was built alone.
    NeverRun,
    /// None of so many tests failed, of so many that ask for it.
    Survived(usize, usize),
}

/// All tests of these programs, and what each asks for. Those that fail without a mutant are told by name.
pub fn all(bench: &Bench, programs: &[PathBuf]) -> Result<(Vec<Test>, Vec<String>)> {
    let tree = bench.tree.as_path();
    let mut names = Vec::new();
    for program in programs {
        let list = |more: &str| -> Result<Vec<String>> {
            let mut ask = process(tree, "0");
            let said =
                ask.arg(program).args(["--list", "--format=terse"]).args(more.split_whitespace()).must()?;
            Ok(said.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
        };
        let ignored = list("--ignored")?;
        let mine = list("")?.into_iter().filter(|name| !ignored.contains(name));
        names.extend(mine.map(|name| (program.clone(), name)));
    }
    let folder = bench.ctx.empty_folder("mutants/reached")?;
    let one = |at: usize, (program, name): &(PathBuf, String)| -> Result<Option<Test>> {
        let file = folder.join(at.to_string());
        let mut run = process(tree, "reached");
        run.arg(program).args(["--exact", name, "--test-threads=1"]).env("TATCELL_MUTANT_FILE", &file);
        let started = Instant::now();
        let done = run.done_within(LONGEST)?;
        let takes = started.elapsed();
        if done.status.is_none() {
            return Ok(Some(Test {
                program: program.clone(),
                name: name.clone(),
                whole: None,
                takes,
                reaches: Vec::new(),
            }));
        }
        if !done.ok() {
            return Ok(None);
        }
        let reaches = reached(&file)?;
        Ok(Some(Test { program: program.clone(), name: name.clone(), whole: None, takes, reaches }))
    };
    let found = workers::each(&names, one)?;
    let failed = names.iter().zip(&found).filter(|(_, test)| test.is_none());
    let failed = failed.map(|((_, name), _)| name.clone()).collect();
    Ok((found.into_iter().flatten().collect(), failed))
}

/// Adds programs that are a test each.
pub fn programs(
    bench: &Bench,
    programs: &[Alone],
    tests: &mut Vec<Test>,
    failed: &mut Vec<String>,
) -> Result<()> {
    let folder = bench.ctx.empty_folder("mutants/reached-in-c")?;
    for Alone { name, binary, arguments } in programs {
        let file = folder.join(name);
        let mut run = process(&bench.tree, "reached");
        run.arg(binary).args(*arguments).env("TATCELL_MUTANT_FILE", &file);
        let started = Instant::now();
        let done = run.done_within(LONGEST)?;
        if done.ok() {
            let (program, name, whole) = (binary.clone(), (*name).to_owned(), Some(*arguments));
            tests.push(Test { program, name, whole, takes: started.elapsed(), reaches: reached(&file)? });
        } else {
            failed.push((*name).to_owned());
        }
    }
    Ok(())
}

/// The mutants that a process asked for, of the file that it wrote.
fn reached(file: &Path) -> Result<Vec<u32>> {
    let bytes = std::fs::read(file).unwrap_or_default();
    let reached = bytes.iter().enumerate().filter(|(_, byte)| **byte != 0).map(|(at, _)| at);
    reached.map(u32::try_from).collect::<Result<_, _>>().map_err(Into::into)
}

/// Runs the tests that ask for a mutant until one fails, up to `budget` by their own times.
pub fn meet(tree: &Path, tests: &[Test], number: u32, budget: Duration) -> Result<Fate> {
    let mut mine: Vec<&Test> = tests.iter().filter(|test| test.reaches.contains(&number)).collect();
    if mine.is_empty() {
        return Ok(Fate::NeverRun);
    }
    // Of those that take about as long, first what asks for few mutants: it is about them.
    mine.sort_by_key(|test| (test.takes.max(QUICK).as_millis().ilog2(), test.reaches.len()));
    let (mut ran, mut took, mut step) = (0_usize, Duration::ZERO, FIRST);
    let mut rest = mine.as_slice();
    while !rest.is_empty() && took < budget {
        let mut sum = Duration::ZERO;
        let few = rest.iter().take(AT_ONCE).take_while(|test| {
            sum += test.takes;
            sum <= step
        });
        let (few, others) = rest.split_at(few.count().max(1));
        let mut by_program: BTreeMap<&PathBuf, Vec<&Test>> = BTreeMap::new();
        few.iter().for_each(|test| by_program.entry(&test.program).or_default().push(test));
        for (program, few) in by_program {
            let sum: Duration = few.iter().map(|test| test.takes).sum();
            let mut run = process(tree, &number.to_string());
            // An endless loop spends its time; an endless wait does not.
            run.env("SECONDS_MOST", (2 * sum + Duration::from_secs(4)).as_secs().to_string());
            run.arg(program);
            match few.iter().find_map(|test| test.whole) {
                Some(arguments) => run.args(arguments),
                None => {
                    run.arg("--exact").args(few.iter().map(|test| &test.name));
                    run.args(["--test-threads=1", "-Zunstable-options", "--fail-fast"])
                }
            };
            let done = run.done_within(20 * sum + Duration::from_secs(60))?;
            if let Some(fate) = fate(&done) {
                return Ok(fate);
            }
            ran += few.len();
            took += sum;
        }
        rest = others;
        step = (MORE * step).min(MOST);
    }
    Ok(Fate::Survived(ran, mine.len()))
}

/// The tests of programs that have one mutant alone: all of them, or the one of this name.
pub fn meet_alone(tree: &Path, programs: &[PathBuf], only: Option<&str>) -> Result<Fate> {
    for program in programs {
        let mut run = process(tree, "0");
        run.env("SECONDS_MOST", "300");
        run.arg(program).args(only.into_iter().flat_map(|name| ["--exact", name]));
        run.args(["--test-threads=2", "-Zunstable-options", "--fail-fast"]);
        let done = run.done()?;
        if let Some(fate) = fate(&done) {
            return Ok(fate);
        }
    }
    Ok(Fate::NeverRun)
}

/// What a run says of its mutant; None: all tests have passed.
fn fate(done: &Done) -> Option<Fate> {
    const KILLED_FOR_TIME: [i32; 2] = [9, 24];
    use std::os::unix::process::ExitStatusExt as _;
    let Some(status) = done.status else { return Some(Fate::Endless) };
    if status.success() {
        return None;
    }
    if status.signal().is_some_and(|signal| KILLED_FOR_TIME.contains(&signal)) {
        return Some(Fate::Endless);
    }
    let is_failed =
        |line: &&str| line.starts_with("FAIL ") || line.starts_with("test ") && line.ends_with("FAILED");
    let name = done.stdout.lines().find(is_failed).and_then(|line| line.split_whitespace().nth(1));
    Some(Fate::Caught(name.map_or_else(|| status.to_string(), str::to_owned)))
}

/// A process that runs a test program, whose path and arguments follow, with this mutant on.
fn process(tree: &Path, mutant: &str) -> Command {
    let mut run = gently();
    let limits = format!("ulimit -v {MEMORY}; ulimit -t ${{SECONDS_MOST:-600}}; exec \"$@\"");
    run.args(["sh", "-c", &limits, "sh"]).current_dir(tree);
    run.env("TATCELL_MUTANT", mutant).env("RUST_BACKTRACE", "0");
    // A failure is enough: its smallest form is not looked for.
    run.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("RUSTC_BOOTSTRAP", "1");
    run
}

#[cfg(test)]
mod its_tests {
    use super::*;
    use anyhow::ensure;

    fn sh(script: &str) -> Result<Done> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).done_within(Duration::from_secs(20))
    }

    #[test]
    fn a_failure_an_end_by_force_and_a_pass_are_told_apart() -> Result<()> {
        ensure!(fate(&sh("echo test a ... ok")?).is_none());
        let caught = fate(&sh("echo test a ... ok; echo test b::c ... FAILED; exit 101")?);
        ensure!(caught == Some(Fate::Caught("b::c".into())), "{caught:?}");
        ensure!(fate(&sh("ulimit -t 1; while :; do :; done")?) == Some(Fate::Endless));
        ensure!(matches!(fate(&sh("kill -ABRT $$")?), Some(Fate::Caught(_))));
        Ok(())
    }
}
