//! Branch coverage of the pure modules: the tests in Rust run every line of them and take every branch both ways.
//!
//! The tests are built with the counters of rustc (`-Cinstrument-coverage`, branches with `RUSTC_BOOTSTRAP=1`) in a
//! folder of their own, run, and read with llvm-profdata and llvm-cov of the same toolchain. What is pure is in
//! [`PURE`], or in [`OUTSIDE`] with why it is not held to this; the tests that stand in a file are not looked at. What
//! no test can reach is a line of `docs/coverage.tsv`: file, text of the line, what of it is not taken (`true`, `false`
//! or `line`), and the reason. A reason that is not needed fails, so the list tells no more than what is so.

mod lcov;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context as _, Result};
use xshell::cmd;

use crate::context::{command, files, Context};
use crate::exec::{built, tail, Run};
use crate::report::Report;
use crate::tools::{may_add, Missing};
use lcov::{Gap, Seen};

pub use lcov::tests_of;

/// Files, and folders with all below them, that name no atomic, no pointer and no `unsafe`.
const PURE: [&str; 27] = [
    "src/time.rs",
    "src/algorithms/",
    "src/limit/",
    "src/answer/",
    "src/http/",
    "src/keys/hash.rs",
    "src/keys/address.rs",
    "src/keys/ladder.rs",
    "src/table/geometry.rs",
    "src/table/word.rs",
    "src/table/choose.rs",
    "src/table/choose_count.rs",
    "src/table/options.rs",
    "src/table/size.rs",
    "src/combine/error.rs",
    "src/combine/shaper/hierarchy.rs",
    "src/combine/shaper/submit.rs",
    "src/table/burst_prepared.rs",
    "src/table/one.rs",
    "src/table/policy.rs",
    "src/table/run.rs",
    "src/capi/mod.rs",
    "src/table/info.rs",
    "src/table/numbers.rs",
    "src/table/override_word.rs",
    "src/table/top.rs",
    "src/table/migrate/report.rs",
];
/// The other files that name none, and why they are not in [`PURE`]: what of them no test in Rust takes, though one
/// could. Each file of `src` stands here or there.
const OUTSIDE: [(&str, &str); 15] = [
    ("src/cell/lease.rs", "every way is taken; a lease whose cell is contended is not met"),
    ("src/cell/sliding_log.rs", "a call that loses every swap runs in loom alone; its window is not asked"),
    ("src/combine/chain.rs", "7 ways: lost swaps (loom), more links than it has, exemptions; and Debug"),
    ("src/combine/link.rs", "every way is taken; some calls for small cells and overrides are not asked"),
    ("src/combine/shaper/error.rs", "texts: every_code_has_its_own_text asks through the C ABI"),
    ("src/combine/shaper/group.rs", "1 way: an arrival whose group loses every swap"),
    ("src/combine/shaper/queue.rs", "1 way: a queue that is full; and what tells its limit"),
    (
        "src/combine/shaper/wheel.rs",
        "10 ways: the bounds of its memory, which hold, and a wheel that is full",
    ),
    ("src/combine/tiers.rs", "every way is taken; what tells its ladder is not asked"),
    ("src/small/hash.rs", "every way is taken; a part of four bytes that has not four cannot come"),
    ("src/small/macros.rs", "every way is taken; a constructor's error is not asked in one of its forms"),
    ("src/small/rate.rs", "1 way of `carried || rest >= units` in its long division"),
    ("src/table/burst_list.rs", "lists as C has them: ffi-tests runs them, and no test in Rust"),
    ("src/table/counters.rs", "every way is taken but that of a call that is contended"),
    ("src/table/error.rs", "texts: every_code_has_its_own_text asks through the C ABI"),
];
/// What a file of neither names, above its tests.
#[cfg(test)]
const NAMED: [&str; 7] = ["unsafe ", "Atomic", "crate::sync", "sync::atomic", "*const ", "*mut ", "NonNull"];
/// What is left out of these: tests in files of their own.
const TESTS: [&str; 2] = ["_tests.rs", "/tests.rs"];
/// Ways of branches that there are at least: fewer were not counted, rather than taken.
const LEAST: usize = 930;
/// Tests that take long, whose threads race, or that look at files: they reach no line of a pure module that the others
/// do not.
const NOT_RUN: [&str; 14] = [
    "chain_explorer",
    "clock",
    "defects",
    "explorer",
    "few_threads",
    "kill",
    "layout",
    "lease_cost",
    "long",
    "race",
    "refusals",
    "small_header",
    "small_shared",
    "threads",
];
/// What is not taken and why.
const EXCUSED: &str = "docs/coverage.tsv";
/// Counters, those of branches among them.
const FLAGS: &str = "-Cinstrument-coverage -Zcoverage-options=branch";

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let Some([profdata, cov]) = tools(ctx)? else {
        let get = "rustup component add llvm-tools";
        report.skip("coverage", &Missing::new("llvm-cov of the toolchain is not installed", get));
        return Ok(());
    };
    let programs = programs(ctx)?;
    let raw = ctx.empty_folder("coverage/raw")?;
    for program in &programs {
        let mut tests = Command::new(program);
        tests.arg("--test-threads=2").current_dir(&ctx.root);
        tests.env("LLVM_PROFILE_FILE", raw.join("%m_%p.profraw"));
        let done = tests.done()?;
        ensure!(done.ok(), "{}: {}\n{}", program.display(), done.how(), tail(&done.all, 30));
    }
    let seen = Seen::read(&exported(ctx, &profdata, &cov, &raw, &programs)?, &ctx.root)?;
    ctx.empty_folder("coverage/raw")?;
    judge(ctx, report, &seen)
}

/// llvm-profdata and llvm-cov, got where that is allowed.
fn tools(ctx: &Context) -> Result<Option<[PathBuf; 2]>> {
    let sysroot = cmd!(ctx.sh, "rustc --print sysroot").must()?;
    let version = cmd!(ctx.sh, "rustc -vV").must()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc has no host")?;
    let folder = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin");
    let both = ["llvm-profdata", "llvm-cov"].map(|name| folder.join(name));
    let there = |both: &[PathBuf; 2]| both.iter().all(|tool| tool.is_file());
    if !there(&both) && may_add() {
        let _ = cmd!(ctx.sh, "rustup component add llvm-tools").done();
    }
    Ok(there(&both).then_some(both))
}

/// Builds the tests with counters.
fn programs(ctx: &Context) -> Result<Vec<PathBuf>> {
    let mut build = command(&ctx.cargo)?;
    build.args(["test", "--no-run", "--features", "std,host,heapless,single-core,capi", "--lib"]);
    for name in crate::rust_tests::targets(ctx)? {
        if !NOT_RUN.contains(&name.as_str()) {
            build.args(["--test", &name]);
        }
    }
    build.current_dir(&ctx.root).env("CARGO_TARGET_DIR", ctx.folder("coverage/build")?);
    build.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS).env("CARGO_INCREMENTAL", "0");
    build.env("CARGO_PROFILE_TEST_OPT_LEVEL", "1").env("CARGO_PROFILE_TEST_DEBUG", "0");
    // Build scripts have counters, too.
    build.env("LLVM_PROFILE_FILE", ctx.folder("coverage/scripts")?.join("%m_%p.profraw"));
    let said = build.done()?.must().context("the tests do not compile with counters")?;
    ctx.empty_folder("coverage/scripts")?;
    let paths: Vec<PathBuf> = built(&said).map(|path| ctx.root.join(path)).collect();
    ensure!(paths.len() > 20, "cargo does not say what it built");
    Ok(paths)
}

/// What all of them have run, in lcov's form.
fn exported(ctx: &Context, profdata: &Path, cov: &Path, raw: &Path, programs: &[PathBuf]) -> Result<String> {
    let merged = raw.with_file_name("all.profdata");
    let counts = files(raw, ".profraw")?;
    cmd!(ctx.sh, "{profdata} merge -sparse {counts...} -o {merged}").must()?;
    let objects = programs.iter().flat_map(|program| ["-object".into(), program.clone()]);
    let mut export = Command::new(cov);
    export.args(["export", "-format=lcov", "-instr-profile"]).arg(&merged);
    export.args(objects.skip(1)).current_dir(&ctx.root);
    let done = export.done()?;
    ensure!(done.ok(), "llvm-cov: {}\n{}", done.how(), tail(&done.all, 10));
    Ok(done.stdout)
}

/// A line of the list.
struct Excuse {
    file: String,
    line: String,
    what: String,
}

impl Excuse {
    fn all(text: &str) -> Result<Vec<Excuse>> {
        let rows = text.lines().filter(|row| !row.starts_with('#') && !row.is_empty());
        let excuse = |row: &str| match row.split('\t').collect::<Vec<_>>()[..] {
            [file, line, what @ ("true" | "false" | "line"), why] if !why.is_empty() => {
                Ok(Excuse { file: file.into(), line: line.into(), what: what.into() })
            }
            _ => bail!("{EXCUSED}: not a file, a line, what and a reason: {row}"),
        };
        rows.map(excuse).collect()
    }
}

/// The gaps of a file that no excuse is for. Each excuse is for one gap: of lines with the same text, one is excused as
/// often as it stands in the list.
fn not_excused(name: &str, gaps: Vec<Gap>, excuses: &[Excuse], needed: &mut [bool]) -> Vec<String> {
    let mut left = Vec::new();
    for Gap { number, line, what } in gaps {
        let is_of = |e: &Excuse| e.file == name && e.line == line && e.what == what;
        let mut free = excuses.iter().zip(needed.iter_mut()).filter(|(e, needed)| is_of(e) && !**needed);
        match free.next() {
            Some((_, needed)) => *needed = true,
            None => left.push(format!("{name}:{number}: {what} never: {line}")),
        }
    }
    left
}

/// A claim a file, and one for the list.
fn judge(ctx: &Context, report: &mut Report, seen: &Seen) -> Result<()> {
    let excuses = Excuse::all(&ctx.read(EXCUSED)?)?;
    let mut needed = vec![false; excuses.len()];
    let (mut branches, mut lines) = (0, 0);
    for name in pure(ctx)? {
        let Some(file) = seen.files.get(&name) else {
            // Constants and types alone.
            report.note(&format!("{name}: no function"));
            continue;
        };
        let text = ctx.read(&name)?;
        let (ways, of) = file.counts(&text);
        (branches, lines) = (branches + ways, lines + of);
        let left = not_excused(&name, file.gaps(&text), &excuses, &mut needed);
        report.claim(&format!("coverage_{name}"), || {
            ensure!(left.is_empty(), "{} not taken\n{}", left.len(), left.join("\n"));
            Ok(())
        });
    }
    for (excuse, needed) in excuses.iter().zip(needed) {
        if !needed {
            report.fail(&format!("coverage_{}", excuse.file), &format!("excused and taken: {}", excuse.line));
        }
    }
    for (name, why) in OUTSIDE {
        let text = ctx.read(name)?;
        match seen.files.get(name) {
            Some(file) if file.gaps(&text).is_empty() => {
                report.fail(&format!("coverage_{name}"), "all of it is taken: it can be held to that");
            }
            _ => report.note(&format!("{name} is not held to this: {why}")),
        }
    }
    report.note(&format!("{branches} ways of branches, {lines} lines, {} excused", excuses.len()));
    report.note(&format!("{} files are not held to this", OUTSIDE.len()));
    report.claim("coverage_counts_branches", || {
        ensure!(branches >= LEAST, "{branches} ways of branches, and there should be {LEAST}");
        Ok(())
    });
    Ok(())
}

/// The files of [`PURE`].
fn pure(ctx: &Context) -> Result<Vec<String>> {
    sources(ctx, &PURE)
}

/// These files, and of folders all but their tests.
pub fn sources(ctx: &Context, parts: &[&str]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for part in parts {
        let path = ctx.root.join(part);
        let found = if part.ends_with('/') { files(&path, ".rs")? } else { vec![path] };
        for file in found {
            ensure!(file.is_file(), "there is no {}", file.display());
            let name = file.strip_prefix(&ctx.root)?.to_string_lossy().into_owned();
            if !TESTS.iter().any(|end| name.ends_with(end)) {
                names.push(name);
            }
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_excuse_is_of_a_pure_file_and_of_one_of_its_lines() -> Result<()> {
        let ctx = Context::new()?;
        let pure = pure(&ctx)?;
        ensure!(pure.len() > 40, "{}", pure.len());
        for excuse in Excuse::all(&ctx.read(EXCUSED)?)? {
            ensure!(pure.contains(&excuse.file), "{}", excuse.file);
            let text = ctx.read(&excuse.file)?;
            ensure!(text.lines().any(|line| line.trim() == excuse.line), "{}", excuse.line);
        }
        Ok(())
    }

    #[test]
    fn a_row_without_a_reason_is_no_excuse() {
        for row in ["src/time.rs\tx\ttrue\t", "src/time.rs\tx\ttrue", "src/time.rs\tx\tboth\twhy"] {
            assert!(Excuse::all(row).is_err(), "{row}");
        }
        assert!(Excuse::all("# file\nsrc/time.rs\tx\ttrue\twhy\n").is_ok_and(|all| all.len() == 1));
    }

    #[test]
    fn an_excuse_is_for_one_line_of_its_text() -> Result<()> {
        let excuses = Excuse::all("f\treturn 0;\tline\twhy\nf\treturn 0;\ttrue\twhy\n")?;
        let gap = |number, what| Gap { number, line: "return 0;".to_owned(), what };
        let left = |gaps: Vec<Gap>| {
            let mut needed = [false; 2];
            (not_excused("f", gaps, &excuses, &mut needed).len(), needed)
        };
        ensure!(left(vec![gap(1, "line")]) == (0, [true, false]));
        ensure!(left(vec![gap(1, "line"), gap(9, "line")]) == (1, [true, false]), "two lines, one excuse");
        ensure!(left(vec![gap(1, "line"), gap(1, "true"), gap(1, "false")]) == (1, [true, true]));
        ensure!(not_excused("g", vec![gap(1, "line")], &excuses, &mut [false; 2]).len() == 1, "another file");
        Ok(())
    }

    #[test]
    fn every_file_that_is_not_run_is_there() -> Result<()> {
        let names: Vec<String> = crate::rust_tests::targets(&Context::new()?)?;
        ensure!(NOT_RUN.iter().all(|name| names.iter().any(|other| other == name)));
        Ok(())
    }

    #[test]
    fn each_file_without_atomics_pointers_or_unsafe_is_pure_or_says_why_not() -> Result<()> {
        let ctx = Context::new()?;
        let pure = pure(&ctx)?;
        // Models and worlds are tests, with modules of their own.
        let is_test = |name: &str| name.contains("/loom_") || name.contains("/step/");
        for name in sources(&ctx, &["src/"])?.iter().filter(|name| !is_test(name)) {
            let text = ctx.read(name)?;
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            let code: Vec<&str> = text.lines().take(lcov::tests_of(&text)).filter(is_code).collect();
            let named = NAMED.iter().find(|word| code.iter().any(|line| line.contains(**word)));
            let decides = code.iter().any(|line| line.contains("fn "));
            let outside = OUTSIDE.iter().filter(|(file, _)| file == name).count();
            let places = usize::from(pure.contains(name)) + outside;
            match named {
                Some(word) => ensure!(places == 0, "{name} names {word}"),
                None if decides => ensure!(places == 1, "{name} stands in {places} lists"),
                None => ensure!(outside == 0, "{name} has no function"),
            }
        }
        ensure!(OUTSIDE.iter().all(|(file, why)| !why.is_empty() && ctx.root.join(file).is_file()));
        Ok(())
    }
}
