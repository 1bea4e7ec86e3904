//! Mutation testing: cargo-mutants changes one operator, value or arm of the core at a time, and a test must fail.
//!
//! The changes are made in a copy of the tree (`target/mutants/tree`). A group of files has two passes. The first
//! builds the unit tests alone, without optimization, and runs those of the group until one fails: seconds a mutant.
//! What that misses meets every unit test and the group's files of `tests/`, optimized. What these have not noticed
//! either has survived, and must be a line of `docs/mutants.tsv`: file, the mutation, the text that it changes, from
//! there to the end of its line, and a verdict: `equivalent: why`, `killed: by which test` (it has a test now, and must
//! not survive again), or `open: why`, which is skipped and said. A line that says `equivalent` of what is noticed
//! fails, too. A run brings `docs/mutants-files.tsv` up to date for the files that it takes.
//!
//! `FILE=a,b` takes the files whose names contain one of these. cargo-mutants does not look into macros: the cells'
//! operations, which are written once for three cells, are not changed here; `tests/planted/cell.txt` changes them. Nor
//! do the models run here: of the insert's protocol much is noticed by loom and the explorer alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{bail, ensure, Context as _, Result};
use xshell::cmd;

use crate::context::Context;
use crate::exec::{tail, Run};
use crate::report::Report;
use crate::tools::Missing;

/// Files that the same tests are for.
struct Group {
    files: &'static [&'static str],
    /// Parts of the names of unit tests.
    units: &'static [&'static str],
    /// Files of tests/.
    tests: &'static [&'static str],
}

/// What is changed, the most important first.
const CORE: [Group; 6] = [
    Group {
        files: &[
            "src/algorithms/gcra.rs",
            "src/answer/step.rs",
            "src/cell/mod.rs",
            "src/sync/drive.rs",
            "src/time.rs",
        ],
        units: &["algorithms", "limit", "cell", "answer", "time", "small"],
        tests: &["cell_options", "cell_wrap", "cell_properties", "permits", "table", "numbers", "refusals"],
    },
    Group {
        files: &[
            "src/table/word.rs",
            "src/table/set.rs",
            "src/table/settle.rs",
            "src/table/insert.rs",
            "src/table/search/mod.rs",
            "src/table/search/line.rs",
            "src/table/ask.rs",
            "src/table/one.rs",
        ],
        units: &["table::"],
        tests: &["table", "table_full", "second_line", "permits", "table_image", "overrides", "few_threads"],
    },
    Group {
        files: &["src/limit/rate.rs", "src/limit/params.rs", "src/limit/validate.rs", "src/limit/window.rs"],
        units: &["limit", "algorithms", "cell"],
        tests: &["limits", "numbers", "cell_options", "counted"],
    },
    Group {
        files: &[
            "src/table/choose.rs",
            "src/table/choose_count.rs",
            "src/table/geometry.rs",
            "src/table/options.rs",
            "src/table/size.rs",
            "src/table/numbers.rs",
        ],
        units: &["table::"],
        tests: &["table", "numbers", "counted", "overrides", "limits", "table_image"],
    },
    Group {
        files: &[
            "src/algorithms/any.rs",
            "src/algorithms/decay.rs",
            "src/algorithms/exp2.rs",
            "src/algorithms/fixed_window.rs",
            "src/algorithms/quota_linear.rs",
            "src/algorithms/sliding_counter.rs",
            "src/algorithms/sliding_log.rs",
            "src/algorithms/state.rs",
        ],
        units: &["algorithms", "cell"],
        tests: &["counted", "migrate", "overrides"],
    },
    Group {
        files: &["src/keys/hash.rs", "src/keys/address.rs", "src/keys/ladder.rs", "src/http/"],
        units: &["keys", "http"],
        tests: &["table_hash", "prefixes", "http"],
    },
];

/// The first pass leaves out what takes more than a second without optimization.
const SLOW: [&str; 3] = ["w16_", "bursts_decide_count_and_store", "any_geometry_that_init_accepts"];
/// The second one what takes longer than all others together.
const SLOWEST: &str = "w16_decode_is_the_true_lead_for_every_word";

/// How a pass builds: small builds that follow each other closely.
const BUILDS: [(&str, &str); 5] = [
    ("CARGO_INCREMENTAL", "1"),
    ("CARGO_PROFILE_TEST_DEBUG", "0"),
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    // Tests that end with the first failure.
    ("RUSTC_BOOTSTRAP", "1"),
    ("CARGO_TERM_COLOR", "never"),
];

/// The survivors, and the files that were run.
const SURVIVORS: &str = "docs/mutants.tsv";
const FILES: &str = "docs/mutants-files.tsv";
const HEAD: &str =
    "file\tmutants\tunit tests caught\tother tests caught\tendless\tdid not compile\tsurvived\tseconds\tbuilt";

/// A mutant, as cargo-mutants names it, without its place: that moves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Mutant {
    file: String,
    what: String,
    /// The text from its place to the end of the line.
    at: String,
}

/// A line of [`SURVIVORS`].
struct Row {
    mutant: Mutant,
    verdict: String,
}

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let cargo = &ctx.cargo;
    if !cmd!(ctx.sh, "env {cargo...} mutants --version").works() {
        let get = "cargo install --locked cargo-mutants";
        report.skip("mutants", &Missing::new("cargo-mutants is not installed", get));
        return Ok(());
    }
    let rows = rows(&ctx.read(SURVIVORS)?)?;
    let tree = ctx.folder("mutants/tree")?;
    crate::planted::copy(ctx, &tree)?;
    let only = std::env::var("FILE").unwrap_or_default();
    let parts: Vec<&str> = only.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let mut taken = 0;
    for (number, group) in CORE.iter().enumerate() {
        let wanted = |file: &&&str| parts.is_empty() || parts.iter().any(|part| file.contains(part));
        let files: Vec<&str> = group.files.iter().filter(wanted).copied().collect();
        if files.is_empty() {
            continue;
        }
        taken += files.len();
        let started = Instant::now();
        let out = ctx.empty_folder(&format!("mutants/group-{number}"))?;
        let first = pass(ctx, &tree, &out, &files, &Pass::units(group))?;
        let second = pass(ctx, &tree, &out, &files, &Pass::all(group))?;
        judge(ctx, report, &rows, &Found { first, second, seconds: started.elapsed().as_secs() })?;
    }
    ensure!(taken > 0, "no file of the core is called {only}");
    Ok(())
}

/// One run of cargo-mutants.
struct Pass {
    again: bool,
    level: &'static str,
    /// What is built: cargo's arguments. (Those behind `--` are for the run alone: all tests would be built.)
    targets: Vec<String>,
    /// Which tests of that: libtest's.
    chosen: Vec<&'static str>,
}

impl Pass {
    fn units(group: &Group) -> Pass {
        let skipped = SLOW.iter().flat_map(|name| ["--skip", *name]);
        let chosen = group.units.iter().copied().chain(skipped).collect();
        Pass { again: false, level: "0", targets: vec!["--lib".to_owned()], chosen }
    }

    fn all(group: &Group) -> Pass {
        let tests = group.tests.iter().map(|name| format!("--test={name}"));
        let targets = std::iter::once("--lib".to_owned()).chain(tests).collect();
        Pass { again: true, level: "1", targets, chosen: vec!["--skip", SLOWEST] }
    }
}

/// What a pass said, by file: its mutants as `file:line:column: what`.
#[derive(Default)]
struct Said {
    caught: Vec<String>,
    timeout: Vec<String>,
    unviable: Vec<String>,
    missed: Vec<String>,
}

fn pass(ctx: &Context, tree: &Path, out: &Path, files: &[&str], pass: &Pass) -> Result<Said> {
    let mut run = Command::new("nice");
    run.args(["-n", "19"]).args(&ctx.cargo).args([
        "mutants",
        "--in-place",
        "--package",
        "tatcell",
        "--colors",
        "never",
    ]);
    run.args(["--no-times", "--minimum-test-timeout", "60", "--build-timeout", "300", "--output"]).arg(out);
    for file in files {
        run.args(["--file", &if file.ends_with('/') { format!("{file}**") } else { (*file).to_owned() }]);
    }
    for file in crate::coverage::sources(ctx, files)? {
        let text = ctx.read(&file)?;
        let tests = crate::coverage::tests_of(&text)..text.lines().count();
        // cargo-mutants knows a module of tests by `cfg(test)` alone; its names have the line.
        if !tests.is_empty() {
            let lines: Vec<String> = tests.map(|line| line.saturating_add(1).to_string()).collect();
            run.args(["--exclude-re", &format!("^{}:({}):", file.replace('.', r"\."), lines.join("|"))]);
        }
    }
    if pass.again {
        run.arg("--iterate");
    }
    run.args(pass.targets.iter().map(|target| format!("--cargo-arg={target}")));
    run.args(["--", "--", "--test-threads=2", "-Zunstable-options", "--fail-fast"]).args(&pass.chosen);
    run.current_dir(tree).env_remove("CARGO_TARGET_DIR").envs(BUILDS);
    run.env("CARGO_PROFILE_TEST_OPT_LEVEL", pass.level).env("CARGO_PROFILE_DEV_OPT_LEVEL", pass.level);
    let mut said = String::new();
    let status = run.lines(|line| {
        println!("{line}");
        said.push_str(line);
        said.push('\n');
    })?;
    // 2: some were missed; 3: some did not end.
    ensure!(matches!(status.code(), Some(0 | 2 | 3)), "cargo mutants: {status}\n{}", tail(&said, 20));
    let lines = |name: &str| -> Result<Vec<String>> {
        let text = std::fs::read_to_string(out.join("mutants.out").join(name))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    Ok(Said {
        caught: lines("caught.txt")?,
        timeout: lines("timeout.txt")?,
        unviable: lines("unviable.txt")?,
        missed: lines("missed.txt")?,
    })
}

/// Both passes of a group.
struct Found {
    first: Said,
    second: Said,
    seconds: u64,
}

/// A claim a file: whatever has survived is a line of the list, and no line more.
fn judge(ctx: &Context, report: &mut Report, rows: &[Row], found: &Found) -> Result<()> {
    let Found { first, second, seconds } = found;
    let lists =
        [&first.caught, &second.caught, &second.timeout, &first.timeout, &first.unviable, &second.missed];
    let mut files: Vec<&str> =
        lists.into_iter().flatten().filter_map(|line| line.split(':').next()).collect();
    files.sort_unstable();
    files.dedup();
    let mut table = Table::read(ctx)?;
    for file in files {
        let of = |list: &[String]| list.iter().filter(|line| line.split(':').next() == Some(file)).count();
        let text = ctx.read(file)?;
        let mut left = Vec::new();
        let mut unused: Vec<&Row> = rows.iter().filter(|row| row.mutant.file == file).collect();
        for line in second.missed.iter().filter(|line| line.split(':').next() == Some(file)) {
            let mutant = Mutant::of(line, &text)?;
            let row = unused.iter().position(|row| row.mutant == mutant).map(|at| unused.swap_remove(at));
            match row.map(|row| row.verdict.as_str()) {
                Some(verdict) if verdict.starts_with("equivalent: ") => {}
                Some(verdict) if verdict.starts_with("open: ") => {
                    report.skip(line, &Missing::new("no test notices it", verdict));
                }
                Some(verdict) => left.push(format!("{line}: {verdict}, and it has survived")),
                None => left.push(format!("{file}\t{}\t{}\t", mutant.what, mutant.at)),
            }
        }
        for row in unused.iter().filter(|row| !row.verdict.starts_with("killed: ")) {
            left.push(format!("noticed, but listed: {}\t{}", row.mutant.what, row.mutant.at));
        }
        let endless = of(&first.timeout).max(of(&second.timeout));
        let counts =
            [of(&first.caught), of(&second.caught), endless, of(&first.unviable), of(&second.missed)];
        let counts = counts.map(|count| count.to_string()).join("\t");
        let all = [&first.caught, &first.missed, &first.timeout, &first.unviable].map(|list| of(list));
        table.set(file, &format!("{}\t{counts}\t{seconds}\teach alone", all.iter().sum::<usize>()))?;
        report.claim(&format!("mutants_{file}"), || {
            ensure!(left.is_empty(), "{} of {counts}\n{}", left.len(), left.join("\n"));
            Ok(())
        });
    }
    Ok(())
}

impl Mutant {
    /// Of `file:line:column: what`; `text` is the file's.
    fn of(line: &str, text: &str) -> Result<Mutant> {
        let mut parts = line.splitn(4, ':');
        let mut part = || parts.next().with_context(|| format!("no mutant: {line}"));
        let (file, number, column, what) = (part()?, part()?, part()?, part()?);
        let (number, column): (usize, usize) = (number.parse()?, column.parse()?);
        let source = number.checked_sub(1).and_then(|at| text.lines().nth(at)).context("no such line")?;
        let at: String = source.chars().skip(column.saturating_sub(1)).collect();
        Ok(Mutant { file: file.to_owned(), what: what.trim().to_owned(), at: at.trim().to_owned() })
    }
}

/// The survivors that are known.
fn rows(text: &str) -> Result<Vec<Row>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let row = |line: &str| {
        let [file, what, at, verdict] = line.split('\t').collect::<Vec<_>>()[..] else {
            bail!("{SURVIVORS}: not four cells: {line}");
        };
        let known = ["equivalent: ", "killed: ", "open: "]
            .iter()
            .any(|word| verdict.strip_prefix(word).is_some_and(|why| !why.trim().is_empty()));
        ensure!(known, "{SURVIVORS}: not a verdict: {verdict}");
        let mutant = Mutant { file: file.into(), what: what.into(), at: at.into() };
        Ok(Row { mutant, verdict: verdict.into() })
    };
    lines.map(row).collect()
}

/// The files that were run, in the order of their names.
struct Table {
    place: PathBuf,
    rows: BTreeMap<String, String>,
}

impl Table {
    fn read(ctx: &Context) -> Result<Table> {
        let place = ctx.root.join(FILES);
        let text = std::fs::read_to_string(&place).unwrap_or_default();
        let rows = text.lines().skip(1).filter_map(|row| row.split_once('\t'));
        Ok(Table { rows: rows.map(|(file, rest)| (file.to_owned(), rest.to_owned())).collect(), place })
    }

    fn set(&mut self, file: &str, row: &str) -> Result<()> {
        self.rows.insert(file.to_owned(), row.to_owned());
        let rows = self.rows.iter().map(|(file, row)| format!("{file}\t{row}\n"));
        let text: String = std::iter::once(format!("{HEAD}\n")).chain(rows).collect();
        std::fs::write(&self.place, text).with_context(|| format!("cannot write {}", self.place.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_is_known_by_its_text_wherever_that_moves() -> Result<()> {
        let text = "fn a() {\n    if x < y && y < z {\n";
        let mutant = Mutant::of("src/a.rs:2:19: replace < with <= in a", text)?;
        ensure!(mutant.at == "< z {" && mutant.what == "replace < with <= in a", "{mutant:?}");
        ensure!(Mutant::of("src/a.rs:2:10: replace < with <= in a", text)?.at == "< y && y < z {");
        ensure!(Mutant::of("src/a.rs:9:1: replace", text).is_err() && Mutant::of("src/a.rs", text).is_err());
        Ok(())
    }

    #[test]
    fn a_verdict_has_its_reason() {
        for verdict in ["equivalent: ", "equivalent", "killed", "so what"] {
            assert!(rows(&format!("f\tw\ta\t{verdict}\n")).is_err(), "{verdict}");
        }
        assert!(rows("# file\nf\tw\ta\tequivalent: why\n").is_ok_and(|rows| rows.len() == 1));
    }

    #[test]
    fn every_survivor_is_a_line_of_a_file_of_the_core() -> Result<()> {
        let ctx = Context::new()?;
        let core: Vec<&str> = CORE.iter().flat_map(|group| group.files.iter().copied()).collect();
        for Row { mutant, .. } in rows(&ctx.read(SURVIVORS)?)? {
            ensure!(core.iter().any(|file| mutant.file.starts_with(file)), "{}", mutant.file);
            let text = ctx.read(&mutant.file)?;
            ensure!(text.lines().any(|line| line.trim_end().ends_with(&mutant.at)), "{mutant:?}");
        }
        Ok(())
    }

    #[test]
    fn every_file_and_test_of_the_core_is_there() -> Result<()> {
        let ctx = Context::new()?;
        let names = crate::rust_tests::targets(&ctx)?;
        for group in &CORE {
            for file in group.files {
                ensure!(ctx.root.join(file).exists(), "there is no {file}");
            }
            ensure!(group.tests.iter().all(|test| names.iter().any(|name| name == test)));
        }
        Ok(())
    }
}
