//! The promises and what proves them: docs/assurance.tsv, held against the logs of the suites (`judge`) and written
//! into docs/ASSURANCE.md (`page`).
//!
//! A row names suites and checks, parts of the names that these report; `suite:check` is looked for in that suite
//! alone, the others in all of the row's; of `check#n` at least n have to have passed. It holds where each check has
//! passed, each suite has given one that passed, and nothing at all has failed in these suites: a model that must fail
//! and did not is a failure of its suite, and what stands beside it proves less than it says. What passes nothing
//! fails, so a check that has vanished cannot hold a promise up, and so does a suite that was interrupted. A check
//! that the suite skips by name is skipped with its reason, and so is `check@tool` where the suite says `SKIP tool`; a
//! skip of something else excuses nothing, and one beside lines that passed is told with these. `*` is all that the
//! suites say. Numbers in a size are filled in (`sizes`). The short form takes suites that have a quick form in that.
//!
//! With LOGS=1 the logs are read that lie there: each must be of the tree as it is now ([`crate::tree`]).
//!
//! With LONG=1 the rows are those that have a long form, in a table of their own (`long`). With both, a row is judged
//! where each of its suites has left such a log and ran in full, and of the others the page keeps what it says.
//!
//! docs/readme.tsv is the readme unit by unit, a paragraph, an item or a row of a table each, with the rows that would
//! fail if it were false, or why it promises nothing. A test holds it to the readme and to the rows.

mod judge;
mod long;
mod page;
mod sizes;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{bail, ensure, Result};

use crate::context::{is_set, Context};
use crate::report::Tally;
use crate::{suites, tree};
use judge::{judge, Ended, Logs};

const ROWS: &str = "docs/assurance.tsv";

/// Suites that are read and not run, since they are long or bring servers and machines: CI runs them before, and their
/// rows are skipped without LOGS=1. The others are the quick form, which ASSURANCE.md names.
const READ: [&str; 12] = [
    "test-bench",
    "test-cluster",
    "test-cluster-c",
    "test-demo",
    "test-docs",
    "test-doors",
    "test-firmware",
    "test-firmware-rust",
    "test-integrations",
    "test-lint",
    "test-long",
    "test-package",
];

/// A promise, and what proves it.
struct Row {
    claim: String,
    suites: Vec<String>,
    checks: Vec<Check>,
    size: String,
}

/// A part of the names of claims that must have passed.
struct Check {
    /// Of this suite alone.
    suite: Option<String>,
    text: String,
    /// As many have passed, at least.
    least: usize,
    /// Skipped where the suite says `SKIP tool`.
    tool: Option<String>,
}

impl Check {
    fn of(word: &str, suites: &[String]) -> Check {
        let (word, tool) = word.split_once('@').map_or((word, None), |(word, tool)| (word, Some(tool)));
        let of = word.split_once(':').filter(|(suite, _)| suites.iter().any(|name| name == suite));
        let (suite, text) = of.map_or((None, word), |(suite, text)| (Some(suite), text));
        let counted = text.split_once('#').and_then(|(text, least)| Some((text, least.parse().ok()?)));
        let (text, least) = counted.unwrap_or((text, 1));
        Check { suite: suite.map(str::to_owned), text: text.to_owned(), least, tool: tool.map(str::to_owned) }
    }
}

/// A row that was held against the logs.
struct Held {
    row: Row,
    /// With its numbers.
    size: String,
    ended: Ended,
}

/// Rows in their short forms, or those that have a long one in that.
fn rows(text: &str, long: bool) -> Result<Vec<Row>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [claim, suites, checks, size, more @ ..] = &cells[..] else { bail!("too few cells: {line}") };
        let (suites, checks, size) = match more {
            _ if !long => (suites, checks, size),
            [suites, checks, size] if more.iter().all(|cell| !cell.is_empty()) => (suites, checks, size),
            _ if more.iter().all(|cell| cell.is_empty()) => return Ok(None),
            _ => bail!("half a long form: {line}"),
        };
        let suites: Vec<String> = suites.split_whitespace().map(str::to_owned).collect();
        let checks: Vec<Check> = checks.split_whitespace().map(|word| Check::of(word, &suites)).collect();
        ensure!(!checks.is_empty(), "a row without a check: {line}");
        ensure!(checks.iter().all(|check| !check.text.is_empty()), "a check without a name: {line}");
        for suite in &suites {
            ensure!(suites::find(suite).is_some(), "there is no suite {suite}: {line}");
        }
        Ok(Some(Row { claim: (*claim).to_owned(), suites, checks, size: (*size).to_owned() }))
    };
    lines.filter_map(|line| row(line).transpose()).collect()
}

/// The suites that rows name, in their order; without those that are read where they are not.
fn asked(rows: &[Row], all: bool) -> Vec<&'static suites::Suite> {
    let wanted = |name: &str| rows.iter().any(|row| row.suites.iter().any(|suite| suite == name));
    let here = |name: &str| wanted(name) && (all || !READ.contains(&name));
    suites::SUITES.iter().filter(|suite| here(suite.name)).collect()
}

/// The job: LONG=1 for the long forms, LOGS=1 to read what `make test` has left.
pub fn run(ctx: &Context) -> Result<()> {
    let started = Instant::now();
    let (long, read) = (is_set("LONG"), is_set("LOGS"));
    let rows = rows(&ctx.read(ROWS)?, long)?;
    let asked = asked(&rows, read || long);
    // As it began: suites write their lists.
    let commit = tree::commit(&ctx.root);
    // A suite that fails fails its rows; the others' are looked at all the same.
    let mut good = true;
    if !read {
        let form = Context { quick: ctx.quick || !long, ..ctx.another()? };
        ensure!(
            !long || form.form().is_none(),
            "LONG=1 runs whole suites: without TATCELL_QUICK, FILE, LISTED and ONLY"
        );
        good = suites::all(&form, &asked.iter().map(|suite| suite.name.to_owned()).collect::<Vec<_>>())?;
    }
    let seconds = (!read).then(|| started.elapsed().as_secs());
    let log = |suite: &&suites::Suite| {
        let text = std::fs::read(suites::log(ctx, suite.name).ok()?).ok()?;
        Some((suite.name.to_owned(), String::from_utf8_lossy(&text).into_owned()))
    };
    let texts = asked.iter().filter_map(log).collect();
    // What has just run is of this tree, whatever it wrote.
    let tree = read.then(|| tree::of(&ctx.root)).flatten();
    let logs = Logs { texts, all: read || long, tree, keeps: read && long };
    let page = ctx.read(tree::PAGE)?;
    let all: Vec<Held> = rows.into_iter().map(|row| held(row, &logs, &ctx.root)).collect();
    let mut tally = Tally::default();
    for held in &all {
        let (count, line) = said(held, &page);
        tally += count;
        println!("{line}");
    }
    match long {
        true => long::write(ctx, &page, &all, commit.as_deref())?,
        false => page::write(ctx, &all, seconds)?,
    }
    println!("make assurance took {} s", started.elapsed().as_secs());
    println!("{tally}");
    verdict(tally, logs.keeps)?;
    ensure!(good, "a suite has failed");
    Ok(())
}

/// A row held against the logs, with the numbers of its size: those of lists alone where no log tells of the row.
fn held(row: Row, logs: &Logs, root: &Path) -> Held {
    let ended = judge(&row, logs);
    let none = BTreeMap::new();
    let texts = if matches!(ended, Ended::Untold(_)) { &none } else { &logs.texts };
    let (size, ended) = match (ended, sizes::filled(&row.size, root, texts)) {
        (ended @ Ended::Holds(..), Err(why)) => {
            ("?".to_owned(), Ended::Fails(format!("its size, after {ended:?}: {why:#}")))
        }
        (ended, size) => (size.unwrap_or_else(|_| "?".to_owned()), ended),
    };
    Held { row, size, ended }
}

/// What a row counts as, and its line on standard output. `page`: as it is, before it is written anew.
fn said(Held { row, ended, .. }: &Held, page: &str) -> (Tally, String) {
    let none = Tally::default();
    let [passed, failed, skipped] =
        [Tally { passed: 1, ..none }, Tally { failed: 1, ..none }, Tally { skipped: 1, ..none }];
    let Row { claim, .. } = row;
    match ended {
        Ended::Holds(n, None) => (passed, format!("PASS assurance: {claim} ({n})")),
        Ended::Holds(n, Some(why)) => (passed, format!("PASS assurance: {claim} ({n}), skipped: {why}")),
        Ended::Fails(why) => (failed, format!("FAIL assurance: {claim}: {why}")),
        Ended::Skipped(why) => (skipped, format!("SKIP assurance: {claim}: {why}")),
        Ended::Untold(why) => {
            (skipped, format!("SKIP assurance: {claim}: {}: {why}", long::known(page, row)))
        }
    }
}

/// Whether the job ends well: nothing fails, and something holds, but where the page may keep what it says.
fn verdict(tally: Tally, keeps: bool) -> Result<()> {
    ensure!(tally.failed == 0, "{} promises without proof", tally.failed);
    ensure!(tally.passed > 0 || keeps, "no promise holds");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn rows_without_checks_or_with_an_unknown_suite_are_refused() {
        assert!(rows("a claim\ttest-rust\t\tsome", false).is_err());
        assert!(rows("a claim\ttest-rust\ttest-rust:\tsome", false).is_err());
        assert!(rows("a claim\ttest-nothing\tone\tsome", false).is_err());
    }

    #[test]
    fn a_row_has_a_long_form_whole_or_none() {
        let long = |more: &str| {
            let rows = rows(&format!("a claim\ttest-rust\tone\tsome{more}"), true).ok()?;
            Some(rows.into_iter().map(|row| row.size).collect::<String>())
        };
        assert_eq!(long("\ttest-long\ttwo\tmany").as_deref(), Some("many"));
        assert_eq!((long("\t\t\t").as_deref(), long("").as_deref()), (Some(""), Some("")));
        assert!(long("\ttest-long\ttwo\t").is_none() && long("\t\t\tmany").is_none());
        assert!(long("\ttest-long\ttwo").is_none() && long("\ttest-nothing\ttwo\tmany").is_none());
    }

    #[test]
    fn a_check_may_be_of_one_suite_and_of_a_tool() {
        let suites = ["test-ffi".to_owned()];
        let of = |word| {
            let Check { suite, text, least, tool } = Check::of(word, &suites);
            (suite.unwrap_or_default(), text, least, tool.unwrap_or_default())
        };
        let is = |suite: &str, text: &str, tool: &str| (suite.into(), text.into(), 1, tool.into());
        assert_eq!(of("test-ffi:one@tool"), is("test-ffi", "one", "tool"));
        assert_eq!(of("test-rust:one"), is("", "test-rust:one", ""), "no suite of the row");
        assert_eq!(of("nginx:@nginx"), is("", "nginx:", "nginx"));
        assert_eq!(of("a::one"), is("", "a::one", ""));
        assert_eq!(of("test-ffi:z3:#61@z3"), ("test-ffi".into(), "z3:".into(), 61, "z3".into()));
    }

    #[test]
    fn the_page_names_the_suites_of_the_quick_form_and_those_that_are_read() -> Result<()> {
        let ctx = Context::new()?;
        let page = ctx.read(tree::PAGE)?;
        let rows = rows(&ctx.read(ROWS)?, false)?;
        let named = |begin: &str| -> Result<Vec<String>> {
            let (_, rest) = page.split_once(begin).with_context(|| format!("the page says not: {begin}"))?;
            let (names, _) = rest.split_once('.').context("no end")?;
            let mut names: Vec<String> = names.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            names.sort();
            Ok(names)
        };
        let mut runs: Vec<&str> = asked(&rows, false).iter().map(|suite| suite.name).collect();
        runs.sort_unstable();
        ensure!(named("The quick form runs ")? == runs, "{runs:?}");
        ensure!(named("reads what the others wrote: ")? == READ);
        Ok(())
    }

    #[test]
    fn every_promise_of_the_readme_is_a_row() -> Result<()> {
        let ctx = Context::new()?;
        let rows = rows(&ctx.read(ROWS)?, false)?;
        let readme = ctx.read("README.md")?;
        let (_, promises) = readme.split_once("| Promise | Proof |\n|---|---|\n").context("no promises")?;
        let promises = promises.lines().take_while(|line| line.starts_with("| "));
        let claims = promises.filter_map(|line| line.trim_start_matches("| ").split(" | ").next());
        let lost: Vec<&str> = claims
            .clone()
            .filter(|claim| !rows.iter().any(|row| claim.split(" ([").next() == Some(&row.claim)))
            .collect();
        assert!(claims.count() > 10 && lost.is_empty(), "{lost:?}");
        Ok(())
    }
}
