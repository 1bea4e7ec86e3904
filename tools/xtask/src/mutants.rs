//! Mutation testing: cargo-mutants changes one operator, value or arm of the core at a time, and a test must fail.
//!
//! All mutants of the files that are taken are built into one program (those of the C layer into an archive, too, for
//! the programs of ffi-tests, each of which is one test), and an environment variable says which one is on
//! (`tools/mutants`), in a copy of the tree (`target/mutants/tree`). Each test is run once without one and says which
//! mutants it asks for; then each mutant meets the tests that ask for it, quick ones first, until one fails. What does
//! not compile so, and what is computed as the library is compiled, is built alone and meets the unit tests.
//!
//! What is not noticed must be a line of `docs/mutants.tsv`: file, the mutation, the text that it changes, from there
//! to the end of its line, and a verdict: `equivalent: why`, `killed: by which test` (it has a test now, and must not
//! survive again), `elsewhere: by which check` (loom, the explorer, another processor: what the tests that run here
//! cannot see), or `open: why`, which is skipped and said. A line that says `equivalent` or `open` of what is noticed
//! fails, too. A mutant that is listed as not noticed meets [`LISTED`] of its tests, the others [`ALL`]; one that is
//! built alone and listed as killed meets the test that is named: `a::tests::b` of the library, `file b` of tests/. A
//! run brings `docs/mutants-files.tsv` up to date for the files that it takes, with the commit that it was on, and
//! leaves `target/mutants/fates.tsv`.
//!
//! `FILE=a,b` takes the files whose names contain one of these, `LISTED=1` only the mutants that stand in the list.
//! cargo-mutants does not look into macros: the cells' operations, which are written once for three cells, are not
//! changed here; `tests/planted/cell.txt` changes them.

mod build;
mod list;
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as FmtWrite;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context as _, Error, Result};
use xshell::cmd;

use crate::context::{is_set, Context};
use crate::exec::Run;
use crate::report::Report;
use crate::tools::Missing;
use crate::workers;
use build::{Bench, State, NOT_RUN};
use list::{Mutant, Row, Table, SURVIVORS};
use tests::Fate;

pub use list::FILES;

/// What is changed: files, and folders with all below them.
const CORE: [&str; 14] = [
    "src/table/",
    "src/cell/",
    "src/algorithms/",
    "src/limit/",
    "src/answer/",
    "src/sync/drive.rs",
    "src/sync/access.rs",
    "src/sync/masked.rs",
    "src/time.rs",
    "src/small/",
    "src/combine/",
    "src/keys/",
    "src/http/",
    "src/capi/",
];
/// The C layer, which the programs of ffi-tests try.
const C: &str = "src/capi/";
/// Of these what tests alone are made of, and what is for firmware alone.
const NOT_CHANGED: [&str; 5] = ["/loom_", "/step/", "_tests.rs", "/tests.rs", "src/small/c.rs"];

/// How much of its tests, by their times, a mutant meets that is known to survive them.
const LISTED: Duration = Duration::from_secs(1);
/// The same of every other one. What is slower than that is told: `Survived(7, 9)` has met seven of nine.
const ALL: Duration = Duration::from_secs(40);

/// Whether the mutants that stand in the list are all that is asked for.
fn only_listed() -> bool {
    is_set("LISTED")
}

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let cargo = &ctx.cargo;
    if !cmd!(ctx.sh, "env {cargo...} mutants --version").works() {
        let get = "cargo install --locked cargo-mutants";
        report.skip("mutants", &Missing::new("cargo-mutants is not installed", get));
        return Ok(());
    }
    let rows = list::rows(&ctx.read(SURVIVORS)?)?;
    let only = std::env::var("FILE").unwrap_or_default();
    let parts: Vec<&str> = only.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let files: Vec<String> = core(ctx)?
        .into_iter()
        .filter(|file| parts.is_empty() || parts.iter().any(|part| file.contains(part)))
        .collect();
    ensure!(!files.is_empty(), "no file of the core is called {only}");
    let fates = fates(ctx, report, &files, &rows)?;
    judge(ctx, report, &rows, &fates)
}

/// The files of [`CORE`].
fn core(ctx: &Context) -> Result<Vec<String>> {
    let files = crate::coverage::sources(ctx, &CORE)?;
    Ok(files.into_iter().filter(|file| !NOT_CHANGED.iter().any(|part| file.contains(part))).collect())
}

/// What became of each mutant of these files, by its name.
fn fates(ctx: &Context, report: &mut Report, files: &[String], rows: &[Row]) -> Result<Vec<(String, Fate)>> {
    let started = Instant::now();
    let bench = Bench::of(ctx, files)?;
    let texts: BTreeMap<&String, String> =
        files.iter().map(|file| Ok((file, ctx.read(file)?))).collect::<Result<_>>()?;
    let row_of = |name: &str| -> Result<Option<&Row>> {
        let file = name.split(':').next().unwrap_or_default();
        let mutant = Mutant::of(name, texts.get(&file.to_owned()).context("a file that was not asked for")?)?;
        Ok(rows.iter().find(|row| row.mutant == mutant))
    };
    let mut listed = bench.write()?;
    if only_listed() {
        let mut kept = Vec::new();
        for one in listed {
            if row_of(&one.name)?.is_some() {
                kept.push(one);
            }
        }
        listed = kept;
    }
    let names = crate::rust_tests::targets(ctx)?;
    let names: Vec<String> = names.into_iter().filter(|name| !NOT_RUN.contains(&name.as_str())).collect();
    let programs = bench.programs(&names)?.context("the tests do not compile with the mutants")?;
    let in_c = if files.iter().any(|file| file.starts_with(C)) { bench.programs_in_c()? } else { Vec::new() };
    report.note(&format!("{} mutants; built after {} s", listed.len(), started.elapsed().as_secs()));
    let (mut tests, mut failed) = tests::all(&bench, &programs)?;
    tests::programs(&bench, &in_c, &mut tests, &mut failed)?;
    for name in failed {
        report.fail(&format!("mutants_none: {name}"), "fails without a mutant");
    }
    report.note(&format!("{} tests; each once after {} s", tests.len(), started.elapsed().as_secs()));
    let is_listed = |name: &str| Ok::<_, Error>(row_of(name)?.is_some_and(|row| row.killer().is_none()));
    let tree = bench.tree.as_path();
    let done = AtomicUsize::new(0);
    let place = ctx.folder("mutants")?.join("fates.tsv");
    // As they come, so that a run that is ended has told what it knew.
    let told = Mutex::new(std::fs::File::create(&place)?);
    let mut placed: Vec<_> = listed.iter().filter(|one| one.state == State::Placed).collect();
    // What the list says is looked at first.
    let others: BTreeSet<u32> = placed
        .iter()
        .map(|one| Ok(row_of(&one.name)?.is_none().then_some(one.number)))
        .filter_map(Result::transpose)
        .collect::<Result<_>>()?;
    placed.sort_by_key(|one| others.contains(&one.number));
    let met = workers::each(&placed, |_, one| {
        let budget = if is_listed(&one.name)? { LISTED } else { ALL };
        let fate = tests::meet(tree, &tests, one.number, budget)?;
        if let Ok(mut file) = told.lock() {
            writeln!(file, "{}\t{fate:?}", one.name)?;
        }
        // ORDERING: Relaxed; a counter, to be printed.
        let done = done.fetch_add(1, Ordering::Relaxed);
        if matches!(fate, Fate::Survived(..)) || done % 100 == 99 {
            let seconds = started.elapsed().as_secs();
            println!("{} of {} after {seconds} s: {}: {fate:?}", done + 1, placed.len(), one.name);
        }
        Ok(fate)
    })?;
    let met: BTreeMap<u32, Fate> = placed.iter().map(|one| one.number).zip(met).collect();
    report.note(&format!("{} met their tests after {} s", met.len(), started.elapsed().as_secs()));
    listed.sort_by_key(|one| one.number);
    let mut all = Vec::new();
    let mut apart = 0;
    for one in listed {
        let fate = match (met.get(&one.number), one.state) {
            (_, State::Uncompiled) => Fate::Uncompiled,
            (Some(fate), _) if *fate != Fate::NeverRun => fate.clone(),
            // Known, and it would be a build of its own: what no test asks for stays listed.
            _ if is_listed(&one.name)? => Fate::NeverRun,
            _ => {
                apart += 1;
                let (file, test) = row_of(&one.name)?.and_then(Row::killer).unwrap_or_default();
                let fate = match bench.programs_alone(one.number, file)? {
                    Some(programs) => tests::meet_alone(tree, &programs, test)?,
                    None => Fate::Uncompiled,
                };
                println!("alone after {} s: {}: {fate:?}", started.elapsed().as_secs(), one.name);
                fate
            }
        };
        all.push((one.name, fate));
    }
    report.note(&format!("{apart} built alone; all after {} s", started.elapsed().as_secs()));
    let line = |text: &mut String, (name, fate): &(String, Fate)| {
        let _ = FmtWrite::write_fmt(text, format_args!("{name}\t{fate:?}\n"));
    };
    let text = all.iter().fold(String::new(), |mut text, one| {
        line(&mut text, one);
        text
    });
    std::fs::write(place, text)?;
    Ok(all)
}

/// A claim a file: whatever was not noticed is a line of the list, and no line more.
fn judge(ctx: &Context, report: &mut Report, rows: &[Row], fates: &[(String, Fate)]) -> Result<()> {
    let file_of = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
    let files: BTreeSet<String> = fates.iter().map(|(name, _)| file_of(name)).collect();
    let mut table = Table::read(ctx)?;
    let commit = cmd!(ctx.sh, "git rev-parse --short=8 HEAD").done().ok().filter(|done| done.ok());
    let as_of = commit.map_or_else(|| "?".to_owned(), |commit| commit.stdout.trim().to_owned());
    let (mut sums, mut listed) = ([0; 5], 0);
    for file in &files {
        let file = file.clone();
        let text = ctx.read(&file)?;
        let mut left = Vec::new();
        let mut unused: Vec<&Row> = rows.iter().filter(|row| row.mutant.file == file).collect();
        let mut counts = [0; 5];
        for (name, fate) in fates.iter().filter(|(name, _)| file_of(name) == file) {
            let kind = match fate {
                Fate::Caught(_) => 0,
                Fate::Endless => 1,
                Fate::Uncompiled => 2,
                Fate::NeverRun => 3,
                Fate::Survived(..) => 4,
            };
            for counts in [&mut counts, &mut sums] {
                counts.iter_mut().skip(kind).take(1).for_each(|count| *count += 1);
            }
            if kind < 3 {
                continue;
            }
            let mutant = Mutant::of(name, &text)?;
            let row = unused.iter().position(|row| row.mutant == mutant).map(|at| unused.swap_remove(at));
            match row.map(|row| row.verdict.as_str()) {
                Some(verdict) if verdict.starts_with("killed: ") => {
                    left.push(format!("{name}: {verdict}, and it has survived"));
                }
                Some(verdict) if verdict.starts_with("open: ") => {
                    report.skip(name, &Missing::new("no test notices it", verdict));
                }
                Some(_) => listed += 1,
                None => left.push(format!("{file}\t{}\t{}\t", mutant.what, mutant.at)),
            }
        }
        for row in unused.iter().filter(|row| !row.verdict.starts_with("killed: ")) {
            left.push(format!("noticed, but listed: {}\t{}", row.mutant.what, row.mutant.at));
        }
        let all: usize = counts.iter().sum();
        let then = i64::try_from(counts.iter().skip(3).sum::<usize>())?;
        let since = i64::try_from(list::not_noticed(rows, &file))? - then;
        let counts = counts.map(|count| count.to_string()).join("\t");
        if !only_listed() {
            table.set(&file, &format!("{all}\t{counts}\t{as_of}\t{since}"))?;
        }
        report.claim(&format!("mutants_{file}"), || {
            ensure!(left.is_empty(), "{} of {counts}\n{}", left.len(), left.join("\n"));
            Ok(())
        });
    }
    let [caught, endless, uncompiled, never, survived] = sums;
    report.note(&format!(
        "{} mutants of {} files: {caught} caught, {endless} endless, {uncompiled} did not compile, {} not noticed, of \
         which {listed} are listed with a reason",
        sums.iter().sum::<usize>(),
        files.len(),
        never + survived
    ));
    Ok(())
}

#[cfg(test)]
mod its_tests {
    use super::*;

    #[test]
    fn every_survivor_is_a_line_of_a_file_of_the_core() -> Result<()> {
        let ctx = Context::new()?;
        let core = core(&ctx)?;
        ensure!(core.len() > 80, "{}", core.len());
        for Row { mutant, .. } in list::rows(&ctx.read(SURVIVORS)?)? {
            ensure!(core.contains(&mutant.file), "{}", mutant.file);
            let text = ctx.read(&mutant.file)?;
            ensure!(text.lines().any(|line| line.trim_end().ends_with(&mutant.at)), "{mutant:?}");
        }
        Ok(())
    }
}
