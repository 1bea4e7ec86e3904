//! Planted bugs: each is put into a copy of the tree, and the checks that it names must notice.
//!
//! The bugs are texts in `tests/planted/` (`bug`), the copy is `target/planted/tree`, and each kind of check builds in
//! a folder of its own there, so that what follows a bug is a small rebuild (`check`). A check must pass before
//! anything is planted; a bug must compile, or nobody has noticed anything; and every check that it names must fail,
//! once of three times at least. A bug of the library names two checks of different programs, or says why there is but
//! one.
//!
//! `ONLY=a,b` takes the bugs of these names, and for a name that no bug has those whose names contain it.
//! `TATCELL_QUICK=1` takes a few, others with each commit. What was found of each is a line of `docs/planted.tsv`,
//! which a run brings up to date for the bugs that it takes; a quick one writes to `target/planted.tsv`. Two runs at
//! once would plant into one copy, so the second is refused.

mod areas;
mod bug;
mod check;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[cfg(test)]
use anyhow::bail;
use anyhow::{ensure, Context as _, Result};
use xshell::cmd;

use crate::context::Context;
use crate::exec::Run;
use crate::report::Report;
use crate::tools::Missing;
use bug::Bug;
use check::{Bench, Check, Ended};

pub use areas::areas;

/// Where the bugs are.
const FOLDER: &str = "tests/planted";
/// What runs have found.
pub const TABLE: &str = "docs/planted.tsv";
/// How many a quick run takes.
const FEW: usize = 4;
/// How often a check is run before it has not noticed.
const TRIES: usize = 3;
/// How many there are at least.
const LEAST: usize = 60;

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let all = bug::all(&ctx.root.join(FOLDER))?;
    ensure!(all.len() >= LEAST, "{} planted bugs, and there should be {LEAST}", all.len());
    let chosen = choose(ctx, &all)?;
    let _alone = ctx.hold("planted/lock")?;
    let tree = ctx.folder("planted/tree")?;
    copy(ctx, &tree)?;
    let bench = Bench::new(ctx, &tree)?;
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let lacks = |bug: &Bug| {
        let flag = bug.lacks(&cpu).map(|flag| format!("no {flag} in this processor"));
        let flag = flag.map(|what| Missing::new(what, "run it on one that has it"));
        flag.or_else(|| bug.checks.iter().find_map(|check| check.lacks(ctx)))
    };
    let mut able = Vec::new();
    for bug in chosen {
        match lacks(bug) {
            None => able.push(bug),
            // Its row stays that of the machine that had it.
            Some(missing) => report.skip(&bug.name, &missing),
        }
    }
    let unharmed = before(&bench, &able, report)?;
    let mut table = Table::read(ctx, &all)?;
    for bug in &able {
        let started = Instant::now();
        if let Some(why) = &bug.open {
            report.skip(&bug.name, &Missing::new("no check of a day's notices it", why));
            table.set(bug, &[], 0)?;
            continue;
        }
        let caught = plant(&bench, bug, &unharmed, report)?;
        table.set(bug, &caught, started.elapsed().as_secs())?;
    }
    report.note(&format!("{} of {} bugs; the table: {}", able.len(), all.len(), table.place.display()));
    Ok(())
}

/// The results, a line a bug, written after each so that a run that is ended has told what it knew.
struct Table {
    place: PathBuf,
    /// By the names of the bugs, in their order.
    rows: Vec<(String, String)>,
}

impl Table {
    const HEAD: &str = "bug\tfile\twhat\tchecks\tcaught by\tseconds";

    /// What earlier runs have found of the bugs that there are. A quick run has a table of its own.
    fn read(ctx: &Context, all: &[Bug]) -> Result<Table> {
        let place = ctx.root.join(if ctx.quick { "target/planted.tsv" } else { TABLE });
        let text = std::fs::read_to_string(&place).unwrap_or_default();
        let row = |bug: &Bug| text.lines().find(|row| row.split('\t').next() == Some(&bug.name));
        let rows = all.iter().map(|bug| (bug.name.clone(), row(bug).unwrap_or_default().to_owned()));
        Ok(Table { rows: rows.collect(), place })
    }

    fn set(&mut self, bug: &Bug, caught: &[Check], seconds: u64) -> Result<()> {
        let caught = if caught.is_empty() { "nothing".into() } else { words(caught) };
        let line =
            format!("{}\t{}\t{}\t{}\t{caught}\t{seconds}", bug.name, bug.file, bug.about, words(&bug.checks));
        if let Some((_, row)) = self.rows.iter_mut().find(|(name, _)| *name == bug.name) {
            *row = line;
        }
        let known = self.rows.iter().map(|(_, row)| row.as_str()).filter(|row| !row.is_empty());
        let text: String = std::iter::once(Self::HEAD).chain(known).flat_map(|row| [row, "\n"]).collect();
        std::fs::write(&self.place, text).with_context(|| format!("cannot write {}", self.place.display()))
    }
}

/// Checks as the table has them.
fn words(checks: &[Check]) -> String {
    checks.iter().map(Check::to_string).collect::<Vec<_>>().join(", ")
}

/// Those that are asked for.
fn choose<'b>(ctx: &Context, all: &'b [Bug]) -> Result<Vec<&'b Bug>> {
    let only = std::env::var("ONLY").unwrap_or_default();
    let parts: Vec<&str> = only.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if !parts.is_empty() {
        return named(all, &parts);
    }
    if !ctx.quick {
        return Ok(all.iter().collect());
    }
    // Where there is no history, the first ones.
    let commits = cmd!(ctx.sh, "git rev-list --count HEAD").done()?;
    let commits: usize = commits.stdout.trim().parse().unwrap_or(0);
    let first = commits.wrapping_mul(FEW) % all.len().max(1);
    Ok(all.iter().cycle().skip(first).take(FEW).collect())
}

/// Those of these names, or for one that is the name of none those with it in their names.
fn named<'b>(all: &'b [Bug], parts: &[&str]) -> Result<Vec<&'b Bug>> {
    let is_name = |part: &str| all.iter().any(|bug| bug.name == part);
    let is_of = |bug: &Bug, part: &str| match is_name(part) {
        true => bug.name == part,
        false => bug.name.contains(part),
    };
    for part in parts {
        ensure!(all.iter().any(|bug| is_of(bug, part)), "no bug has a name with {part}");
    }
    Ok(all.iter().filter(|bug| parts.iter().any(|part| is_of(bug, part))).collect())
}

/// Brings the copy up to date: what is the same is not touched, so that nothing is built twice.
pub fn copy(ctx: &Context, tree: &Path) -> Result<()> {
    let listed = cmd!(ctx.sh, "git ls-files --cached --others --exclude-standard").done()?.must()?;
    let names: Vec<&str> = listed.lines().filter(|name| ctx.root.join(name).is_file()).collect();
    for name in &names {
        let (from, to) = (ctx.root.join(name), tree.join(name));
        let bytes = std::fs::read(&from)?;
        if std::fs::read(&to).ok().as_deref() != Some(&bytes) {
            if let Some(folder) = to.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(&to, bytes)?;
        }
    }
    for file in crate::context::files(tree, "")? {
        let name = file.strip_prefix(tree)?.to_string_lossy().into_owned();
        if names.binary_search(&name.as_str()).is_err() && !names.contains(&name.as_str()) {
            std::fs::remove_file(file)?;
        }
    }
    Ok(())
}

/// Runs the checks of these bugs with nothing planted: which of them may tell.
fn before(bench: &Bench, bugs: &[&Bug], report: &mut Report) -> Result<BTreeMap<Check, bool>> {
    let mut found = BTreeMap::new();
    for check in bugs.iter().flat_map(|bug| &bug.checks) {
        if found.contains_key(check) {
            continue;
        }
        let ended = bench.run(check)?;
        let good = matches!(ended, Ended::Passed);
        if !good {
            report.fail(&format!("before: {check}"), &ended.to_string());
        }
        found.insert(check.clone(), good);
    }
    Ok(found)
}

/// Plants one, and gives the checks that noticed.
fn plant(
    bench: &Bench,
    bug: &Bug,
    unharmed: &BTreeMap<Check, bool>,
    report: &mut Report,
) -> Result<Vec<Check>> {
    let text = match bug.planted(&bench.tree) {
        Ok(text) => text,
        Err(why) => {
            report.fail(&bug.name, &format!("{why:#}"));
            return Ok(Vec::new());
        }
    };
    let place = bench.tree.join(&bug.file);
    let whole = std::fs::read(&place)?;
    std::fs::write(&place, text)?;
    let (mut caught, mut missed) = (Vec::new(), Vec::new());
    for check in bug.checks.iter().filter(|check| unharmed.get(check).copied().unwrap_or(false)) {
        // What hangs on how threads or nodes meet may miss it once, where the machine is busy.
        let mut ended = bench.run(check);
        for _ in 1..TRIES {
            if matches!(ended, Ok(Ended::Passed)) {
                ended = bench.run(check);
            }
        }
        match ended {
            Ok(Ended::Failed | Ended::TooLong) => caught.push(check.clone()),
            Ok(ended) => missed.push(format!("{check}: {ended}")),
            Err(why) => missed.push(format!("{check}: {why:#}")),
        }
    }
    std::fs::write(&place, whole)?;
    if missed.is_empty() && caught.len() == bug.checks.len() {
        report.pass(&bug.name);
    } else {
        report.fail(&bug.name, &format!("not noticed by {}", missed.join("; ")));
    }
    Ok(caught)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ROOT;

    /// The table is of the bugs that there are: each has its row, and every check that it names has noticed it.
    #[test]
    fn every_planted_bug_is_a_row_that_all_its_checks_have_noticed() -> Result<()> {
        let all = bug::all(&Path::new(ROOT).join(FOLDER))?;
        let text = std::fs::read_to_string(Path::new(ROOT).join(TABLE))?;
        let mut lines = text.lines();
        ensure!(lines.next() == Some(Table::HEAD));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
        for bug in all.iter().filter(|bug| bug.open.is_none()) {
            let row = rows.iter().find(|row| row.first() == Some(&bug.name.as_str()));
            let [_, file, about, checks, caught, _] = row.map_or(&[][..], Vec::as_slice) else {
                bail!("{} has no row: ONLY={} make planted", bug.name, bug.name);
            };
            let words = words(&bug.checks);
            ensure!(*file == bug.file && *about == bug.about, "{}: another row", bug.name);
            ensure!(*checks == words && *caught == words, "{}: {words}, and caught by {caught}", bug.name);
        }
        let gone = rows.iter().find(|row| all.iter().all(|bug| row.first() != Some(&bug.name.as_str())));
        ensure!(gone.is_none(), "no such bug: {gone:?}");
        Ok(())
    }

    #[test]
    fn a_whole_name_takes_one_bug_and_a_part_of_names_all_that_have_it() -> Result<()> {
        let text = "\n=== a\nfile f\nabout b\ncheck lib c\n<<<<\nx\n====\ny\n>>>>\n";
        let folder = std::env::temp_dir().join(format!("tatcell-named-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let texts: String =
            ["swap", "swap-late", "late"].map(|name| text.replace("=== a", &format!("=== {name}"))).concat();
        std::fs::write(folder.join("bugs.txt"), texts)?;
        let all = bug::all(&folder)?;
        let names = |parts: &[&str]| -> Result<Vec<&str>> {
            Ok(named(&all, parts)?.into_iter().map(|bug| bug.name.as_str()).collect())
        };
        ensure!(names(&["swap"])? == ["swap"] && names(&["swap", "swap-late"])? == ["swap", "swap-late"]);
        ensure!(names(&["swa"])? == ["swap", "swap-late"] && names(&["swa", "late"])?.len() == 3);
        ensure!(names(&["swap", "early"]).is_err(), "a name of none");
        std::fs::remove_dir_all(folder).map_err(Into::into)
    }

    #[test]
    fn every_planted_bug_has_its_place_and_its_checks() -> Result<()> {
        let all = bug::all(&Path::new(ROOT).join(FOLDER))?;
        ensure!(all.len() >= LEAST);
        for bug in &all {
            bug.planted(Path::new(ROOT)).with_context(|| bug.name.clone())?;
            for check in &bug.checks {
                ensure!(check.is_there(Path::new(ROOT))?, "{}: there is no {check}", bug.name);
            }
        }
        Ok(())
    }
}
