//! The suites, in one table, and how they are run: one alone with its lines on standard output, or all with a log each.

use std::fs::File;

use anyhow::{bail, Result};

use crate::context::Context;
use crate::exec::tail;
use crate::report::{Report, Tally};
use crate::tools::{self, For};
use crate::{bench, demo, documents, ffi, lint, loom, machines, package, rust_tests};

/// Tests that are run together.
pub struct Suite {
    /// Its name, here and in make.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// Whether `test` runs it.
    pub always: bool,
    /// The tools that are installed for it, where they can be.
    pub tools: Option<For>,
    /// Runs it.
    pub run: fn(&Context, &mut Report) -> Result<()>,
}

type Run = fn(&Context, &mut Report) -> Result<()>;

/// A suite of `test`.
const fn suite(name: &'static str, tools: Option<For>, about: &'static str, run: Run) -> Suite {
    Suite { name, about, always: true, tools, run }
}

/// A suite that is asked for by name: long, or a part of another.
const fn apart(name: &'static str, tools: Option<For>, about: &'static str, run: Run) -> Suite {
    Suite { always: false, ..suite(name, tools, about, run) }
}

/// Every suite, in the order of `test`.
pub const SUITES: &[Suite] = &[
    suite("test-lint", None, "formatting, clippy, rustdoc and word rules", lint::run),
    suite(
        "test-harness",
        None,
        "the harness's own tests: it counts and sees what it must",
        rust_tests::harness,
    ),
    suite("test-rust", None, "semantics, properties, races, kills, the protocol explorer", rust_tests::run),
    suite("test-loom", None, "every interleaving of small models of cells and tables", loom::run),
    suite("test-ffi", Some(For::Tests), "the C ABI, from C and C++; headers; what was built", ffi::run),
    suite("test-package", Some(For::Tests), "the installed package, with pkg-config and CMake", package::run),
    suite("test-docs", None, "every program and command of the documents", documents::run),
    suite(
        "test-bench",
        Some(For::Tests),
        "a short run of the bench: verdicts, files, instructions",
        bench::test,
    ),
    suite("test-demo", None, "the demo's verdict lines", demo::test),
    suite(
        "test-firmware",
        Some(For::Machines),
        "QEMU: gates, exactness, budgets, same answers",
        machines::run,
    ),
    apart("test-trace", Some(For::Machines), "one trace, the same answers on every machine", machines::trace),
    apart(
        "test-frames",
        Some(For::Machines),
        "real frames, policed and shaped by firmware",
        machines::frames,
    ),
    apart(
        "test-firmware-rust",
        Some(For::Machines),
        "the Rust example on four boards",
        machines::rust_example,
    ),
    apart("test-recipes", Some(For::Machines), "the recipes for make, CMake and others", machines::recipes),
    apart("test-hosts", Some(For::Machines), "the crate's own tests on other hosts (long)", machines::hosts),
    apart("test-long", None, "1e9 oracle decisions, 1e5 kills, large explorer and models", rust_tests::long),
    apart("loom-long", None, "the loom models with higher bounds (hours)", loom::long),
];

/// The suite of this name.
pub fn find(name: &str) -> Option<&'static Suite> {
    let name = if name == "loom" { "test-loom" } else { name };
    SUITES.iter().find(|s| s.name == name)
}

/// Runs one suite; its lines and its counts go to standard output. Returns whether nothing failed.
pub fn alone(ctx: &Context, suite: &Suite) -> Result<bool> {
    if let Some(user) = suite.tools {
        tools::install(ctx, user);
    }
    let mut report = Report::new(suite.name, Box::new(std::io::stdout()));
    let result = (suite.run)(ctx, &mut report);
    let closed = report.close(result);
    println!("{}", closed.tally);
    Ok(closed.tally.failed == 0)
}

/// Runs the suites named, or all of `test`: a line and a log each, then the ends of the logs with a FAIL, then the
/// counts.
pub fn all(ctx: &Context, names: &[String]) -> Result<bool> {
    if let Some(name) = names.iter().find(|n| find(n).is_none()) {
        bail!("there is no suite {name}");
    }
    let asked: Vec<&Suite> = match names {
        [] => SUITES.iter().filter(|s| s.always).collect(),
        names => names.iter().filter_map(|n| find(n)).collect(),
    };
    for user in [For::Tests, For::Machines] {
        if asked.iter().any(|s| s.tools == Some(user)) {
            tools::install(ctx, user);
        }
    }
    let logs = ctx.folder("test-logs")?;
    let mut sum = Tally::default();
    let mut troubled = Vec::new();
    for suite in asked {
        let log = logs.join(format!("{}.log", suite.name));
        let mut report = Report::new(suite.name, Box::new(File::create(&log)?));
        let result = (suite.run)(ctx, &mut report);
        let closed = report.close(result);
        let Tally { passed, failed, skipped } = closed.tally;
        let (name, seconds) = (suite.name, closed.seconds);
        println!("{name:<14} {passed:>5} passed {failed:>3} failed {skipped:>3} skipped {seconds:>5} s");
        for line in closed.trouble {
            println!("{line}");
        }
        if failed > 0 {
            troubled.push(log);
        }
        sum += closed.tally;
    }
    for log in troubled {
        println!("--- end of {}", log.strip_prefix(&ctx.root).unwrap_or(&log).display());
        println!("{}", tail(&String::from_utf8_lossy(&std::fs::read(&log)?), 60));
    }
    println!("{sum}");
    Ok(sum.failed == 0)
}
