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
//! docs/readme.tsv is the readme unit by unit, a paragraph, an item or a row of a table each, with the rows that would
//! fail if it were false, or why it promises nothing. A test holds it to the readme and to the rows.

mod judge;
mod page;
mod sizes;

use std::time::Instant;

use anyhow::{bail, ensure, Result};

use crate::context::Context;
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

/// Rows in their short forms, or those that have a long one in that.
fn rows(text: &str, long: bool) -> Result<Vec<Row>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [claim, suites, checks, size, more @ ..] = &cells[..] else { bail!("too few cells: {line}") };
        let (suites, checks, size) = match more {
            [suites, checks, size] if long => (suites, checks, size),
            _ => (suites, checks, size),
        };
        let suites: Vec<String> = suites.split_whitespace().map(str::to_owned).collect();
        let checks: Vec<Check> = checks.split_whitespace().map(|word| Check::of(word, &suites)).collect();
        ensure!(long || !checks.is_empty(), "a row without a check: {line}");
        ensure!(checks.iter().all(|check| !check.text.is_empty()), "a check without a name: {line}");
        for suite in &suites {
            ensure!(suites::find(suite).is_some(), "there is no suite {suite}: {line}");
        }
        Ok(Row { claim: (*claim).to_owned(), suites, checks, size: (*size).to_owned() })
    };
    let rows: Result<Vec<Row>> = lines.map(row).collect();
    Ok(rows?.into_iter().filter(|row| !row.checks.is_empty()).collect())
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
    let is_set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let (long, read) = (is_set("LONG"), is_set("LOGS"));
    let rows = rows(&ctx.read(ROWS)?, long)?;
    let folder = ctx.folder("test-logs")?;
    let asked = asked(&rows, read || long);
    // A suite that fails fails its rows; the others' are looked at all the same.
    let mut good = true;
    if !read {
        let form = Context { quick: ctx.quick || !long, ..ctx.another()? };
        good = suites::all(&form, &asked.iter().map(|suite| suite.name.to_owned()).collect::<Vec<_>>())?;
    }
    let seconds = (!read).then(|| started.elapsed().as_secs());
    let log = |suite: &&suites::Suite| {
        let text = std::fs::read(folder.join(format!("{}.log", suite.name))).ok()?;
        Some((suite.name.to_owned(), String::from_utf8_lossy(&text).into_owned()))
    };
    let texts = asked.iter().filter_map(log).collect();
    // What has just run is of this tree, whatever it wrote.
    let tree = read.then(|| tree::of(&ctx.root)).flatten();
    let logs = Logs { texts, all: read || long, tree };
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut all = Vec::new();
    for row in rows {
        let (size, ended) = match (judge(&row, &logs), sizes::filled(&row.size, &ctx.root, &logs.texts)) {
            (ended @ Ended::Holds(..), Err(why)) => {
                ("?".to_owned(), Ended::Fails(format!("its size, after {ended:?}: {why:#}")))
            }
            (ended, size) => (size.unwrap_or_else(|_| "?".to_owned()), ended),
        };
        let (count, said) = match &ended {
            Ended::Holds(n, None) => (&mut passed, format!("PASS assurance: {} ({n})", row.claim)),
            Ended::Holds(n, Some(why)) => {
                (&mut passed, format!("PASS assurance: {} ({n}), skipped: {why}", row.claim))
            }
            Ended::Fails(why) => (&mut failed, format!("FAIL assurance: {}: {why}", row.claim)),
            Ended::Skipped(why) => (&mut skipped, format!("SKIP assurance: {}: {why}", row.claim)),
        };
        *count += 1;
        println!("{said}");
        all.push((row, size, ended));
    }
    page::write(ctx, &all, seconds, long)?;
    println!("make assurance took {} s", started.elapsed().as_secs());
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ensure!(failed == 0 && passed > 0, "{failed} promises without proof");
    ensure!(good, "a suite has failed");
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
