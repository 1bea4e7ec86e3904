//! The suites, in one table, and how they are run: one alone with its lines on standard output, or all with a log each,
//! on the lanes that the table says.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Instant;

use anyhow::{bail, Result};

use crate::context::Context;
use crate::lanes::{self, Lane};
use crate::report::{sign, Closed, Report};
use crate::tools::{self, For};
use crate::{
    bench, cluster, cluster_c, containers, coverage, demo, documents, doors, ffi, fuzz, integrations, lint,
    loom, machines, mutants, package, planted, proofs, rust_tests, sanitizers, tree,
};

/// Tests that are run together.
pub struct Suite {
    /// Its name, here and in make.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// Whether `test` runs it.
    pub always: bool,
    /// What it may run beside.
    pub lane: Lane,
    /// The tools that are installed for it, where they can be.
    pub tools: Option<For>,
    /// Lists of the tree that it writes what it has found into.
    pub writes: &'static [&'static str],
    /// Runs it.
    pub run: Run,
}

type Run = fn(&Context, &mut Report) -> Result<()>;

/// A suite of `test`.
const fn suite(name: &'static str, lane: Lane, tools: Option<For>, about: &'static str, run: Run) -> Suite {
    Suite { name, about, always: true, lane, tools, writes: &[], run }
}

/// A suite that is asked for by name, because it is long.
const fn apart(name: &'static str, lane: Lane, tools: Option<For>, about: &'static str, run: Run) -> Suite {
    Suite { always: false, ..suite(name, lane, tools, about, run) }
}

use For::{Containers, Machines, Proofs, Store, Tests};
use Lane::{Alone, Free, Own, Usual};

/// Whose tools are installed for suites.
const USERS: [For; 5] = [Tests, Machines, Store, Proofs, Containers];

/// Every suite, in the order of `test`.
pub const SUITES: &[Suite] = &[
    suite(
        "test-harness",
        Usual,
        None,
        "the harness's own tests: it counts and sees what it must",
        rust_tests::harness,
    ),
    suite("test-rust", Usual, None, "semantics, properties, kills, the protocol explorer", rust_tests::run),
    suite(
        "test-fuzz",
        Usual,
        None,
        "hostile inputs: the corpus of each fuzz target, and made ones",
        fuzz::replay,
    ),
    suite("test-ffi", Usual, Some(Tests), "the C ABI, from C and C++; headers; what was built", ffi::run),
    suite("test-abi", Usual, Some(Tests), "the ABI beside what it was, and on other machines", ffi::abi::run),
    suite(
        "test-package",
        Usual,
        Some(Tests),
        "the installed package, with pkg-config and CMake",
        package::run,
    ),
    suite("test-docs", Usual, None, "every program and command of the documents", documents::run),
    suite(
        "test-bench",
        Usual,
        Some(Tests),
        "a short run of the bench: verdicts, files, instructions",
        bench::test,
    ),
    suite("test-attacks", Usual, None, "floods, evaders and collisions against tables", demo::test_attacks),
    suite("test-loom", Free, None, "every interleaving of small models of cells and tables", loom::run),
    suite("test-explorer", Free, None, "every schedule of small worlds, one access a step", loom::explorer),
    suite(
        "test-proofs",
        Usual,
        Some(Proofs),
        "the insert protocol by Spin, the arithmetic by z3",
        proofs::run,
    ),
    suite("test-firmware", Own, Some(Machines), "QEMU: gates, exactness, budgets", machines::run),
    suite(
        "test-firmware-rust",
        Own,
        Some(Machines),
        "Rust: the example on four boards, tasks of embassy, durations, sizes",
        machines::rust_example,
    ),
    suite("test-trace", Own, Some(Machines), "one trace, the same answers on every machine", machines::trace),
    suite("test-recipes", Own, Some(Machines), "the recipes for make, CMake and others", machines::recipes),
    suite(
        "test-frames",
        Alone,
        Some(Machines),
        "real frames, policed and shaped by firmware",
        machines::frames,
    ),
    suite("test-races", Alone, None, "threads that race for one word a million times", rust_tests::races),
    suite("test-demo", Alone, None, "the demo's verdict lines", demo::test),
    apart("test-lint", Usual, None, "formatting, clippy, rustdoc and word rules", lint::run),
    apart("test-shuttle", Free, None, "eight threads on one set, in orders drawn at random", loom::shuttle),
    apart(
        "test-integrations",
        Usual,
        None,
        "the folders of integrations/, against the real servers and tools",
        integrations::run,
    ),
    apart(
        "test-cluster",
        Alone,
        Some(Store),
        "nodes that share limits through a store of their own",
        cluster::run,
    ),
    apart(
        "test-cluster-c",
        Alone,
        Some(Store),
        "the C interface of cluster/, as built and as installed; the demo's verdict lines",
        cluster_c::run,
    ),
    apart(
        "test-doors",
        Alone,
        Some(Store),
        "the servers for clients of redis-cell and for Envoy, with clients that others made",
        doors::run,
    ),
    apart(
        "test-containers",
        Own,
        Some(Containers),
        "the container files of the servers, built from a fresh clone and run (minutes)",
        containers::run,
    ),
    apart(
        "test-sanitizers",
        Free,
        Some(Tests),
        "sanitizers in Rust and C, valgrind, Miri, each with a planted defect (long)",
        sanitizers::run,
    ),
    apart("test-hosts", Own, Some(Machines), "the crate's own tests on other hosts (long)", machines::hosts),
    apart(
        "attacks-long",
        Usual,
        None,
        "attacks in full, 1e8 lookups; the page has these figures",
        demo::attacks_long,
    ),
    apart("test-long", Usual, None, "1e9 oracle decisions, 1e5 kills, the large explorer", rust_tests::long),
    apart(
        "explorer-long",
        Own,
        None,
        "the explorer's large worlds (minutes, gigabytes)",
        loom::explorer_long,
    ),
    apart("proofs-long", Own, Some(Proofs), "the Promela model with more slots (minutes)", proofs::long),
    apart("loom-long", Own, None, "the loom models with higher bounds (an hour)", loom::long),
    apart("shuttle-long", Own, None, "a million orders of eight threads (minutes)", loom::shuttle_long),
    apart("coverage", Free, None, "every branch of the pure modules both ways (minutes)", coverage::run),
    Suite {
        writes: &[mutants::FILES],
        ..apart(
            "mutants",
            Own,
            None,
            "every operator of the core changed in turn, and a test that notices (half an hour)",
            mutants::run,
        )
    },
    Suite {
        writes: &[planted::TABLE],
        ..apart(
            "planted",
            Own,
            Some(Store),
            "bugs put into a copy of the tree, and the checks that notice",
            planted::run,
        )
    },
];

/// The suite of this name.
pub fn find(name: &str) -> Option<&'static Suite> {
    let name = if name == "loom" { "test-loom" } else { name };
    SUITES.iter().find(|s| s.name == name)
}

/// Where the log of a suite is, as it ran last.
pub fn log(ctx: &Context, suite: &str) -> Result<PathBuf> {
    Ok(ctx.folder("test-logs")?.join(format!("{suite}.log")))
}

/// Writes to standard output and to a log.
struct Both(std::fs::File);

impl Write for Both {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::io::stdout().write_all(bytes)?;
        self.0.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stdout().flush()
    }
}

/// Runs one suite; its lines and its counts go to standard output, the lines also to its log. Returns whether nothing
/// failed.
pub fn alone(ctx: &Context, suite: &Suite) -> Result<bool> {
    if let Some(user) = suite.tools {
        tools::install(ctx, user);
    }
    let log = log(ctx, suite.name)?;
    let closed = logged(ctx, suite, &log, Box::new(Both(std::fs::File::create(&log)?)))?;
    println!("{}", closed.tally);
    Ok(closed.tally.failed == 0)
}

/// Runs a suite, whose lines go to its log by `out`, and signs that with the tree as it was before: what is changed
/// meanwhile makes another one of it. What the suite itself writes does not, or no log of it would be of any tree.
pub fn logged(ctx: &Context, suite: &Suite, log: &Path, out: Box<dyn Write + Send>) -> Result<Closed> {
    let others = || tree::without(&ctx.root, suite.writes);
    let (before, others_before) = (tree::of(&ctx.root), others());
    let mut report = Report::new(suite.name, out);
    let result = (suite.run)(ctx, &mut report);
    let closed = report.close(result);
    let is_of_now = !suite.writes.is_empty() && others() == others_before;
    let tree = if is_of_now { tree::of(&ctx.root) } else { before };
    sign(log, suite.name, closed.tally, ctx.form(), tree.as_deref())?;
    Ok(closed)
}

/// Runs the suites named, or all of `test`: a line and a log each, then the ends of the logs with a FAIL, the time and
/// the counts.
pub fn all(ctx: &Context, names: &[String]) -> Result<bool> {
    if let Some(name) = names.iter().find(|n| find(n).is_none()) {
        bail!("there is no suite {name}");
    }
    let asked: Vec<&Suite> = match names {
        [] => SUITES.iter().filter(|s| s.always).collect(),
        names => names.iter().filter_map(|n| find(n)).collect(),
    };
    let started = Instant::now();
    // Packages come while the first suites, which need none, are built.
    let installed = USERS.map(|user| (user, Once::new()));
    let lacks = |once: &Once, user, ctx: &Context| {
        once.call_once(|| {
            tools::install(ctx, user);
            if user == Machines {
                machines::add_targets(ctx);
            }
        });
    };
    let other = ctx.another()?;
    let sum = std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = other;
            for (user, once) in &installed {
                if asked.iter().any(|s| s.tools == Some(*user)) {
                    lacks(once, *user, &other);
                }
            }
        });
        let ready = |ctx: &Context, suite: &Suite| {
            for (user, once) in installed.iter().filter(|(user, _)| suite.tools == Some(*user)) {
                lacks(once, *user, ctx);
            }
        };
        lanes::run(ctx, &asked, &ctx.folder("test-logs")?, ready, |line| println!("{line}"))
    })?;
    println!("all of it: {} s", started.elapsed().as_secs());
    println!("{sum}");
    Ok(sum.failed == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ROOT;
    use crate::report::End;
    use anyhow::{ensure, Context as _};

    #[test]
    fn a_log_is_of_the_tree_as_it_began_but_for_what_its_suite_writes() -> Result<()> {
        fn writes(ctx: &Context, report: &mut Report, name: &str) -> Result<()> {
            report.line("PASS a");
            std::fs::write(ctx.root.join(name), "found\n").map_err(Into::into)
        }
        let root = std::env::temp_dir().join(format!("tatcell-logged-{}", std::process::id()));
        std::fs::create_dir_all(&root)?;
        let mut ctx = Context { root: root.clone(), ..Context::of(Path::new(ROOT).canonicalize()?)? };
        (ctx.quick, ctx.narrow, ctx.arguments) = (true, false, Vec::new());
        ensure!(std::process::Command::new("git")
            .arg("-C")
            .arg(&root)
            .args(["init", "-q"])
            .status()?
            .success());
        std::fs::write(root.join(".gitignore"), "log\nbuilt\n")?;
        for (run, is_of_now) in [
            ((|ctx, report| writes(ctx, report, "built")) as Run, true),
            (|ctx, report| writes(ctx, report, "list"), true),
            (|ctx, report| writes(ctx, report, "other"), false),
        ] {
            ["list", "other"].iter().try_for_each(|name| std::fs::write(root.join(name), ""))?;
            let before = tree::of(&root);
            let suite = Suite { writes: &["list"], ..apart("found", Own, None, "", run) };
            let log = root.join("log");
            logged(&ctx, &suite, &log, Box::new(std::fs::File::create(&log)?))?;
            let text = std::fs::read_to_string(&log)?;
            let end = End::of(&text, "found").context("an end")?;
            let tree = if is_of_now { tree::of(&root) } else { before };
            ensure!(end.tree.is_some() && end.tree == tree.as_deref() && end.form == Some("quick"), "{text}");
            ensure!((tree == tree::of(&root)) == is_of_now);
        }
        std::fs::remove_dir_all(root).map_err(Into::into)
    }

    #[test]
    fn the_lists_that_suites_write_are_there() -> Result<()> {
        let written: Vec<&str> = SUITES.iter().flat_map(|suite| suite.writes).copied().collect();
        ensure!(written.len() == 2 && written.iter().all(|name| Path::new(ROOT).join(name).is_file()));
        Ok(())
    }
}
