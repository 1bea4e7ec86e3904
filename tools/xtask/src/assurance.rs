//! The promises and what proves them: docs/assurance.tsv, held against the logs of the suites and written into
//! docs/ASSURANCE.md.
//!
//! A row names suites and checks, parts of the names that these report. It holds where each check has passed and none
//! has failed. What passes nothing fails, so a check that has vanished cannot hold a promise up. The short form takes
//! suites that have a quick form in that.

use std::collections::BTreeMap;

use anyhow::{bail, ensure, Context as _, Result};
use xshell::cmd;

use crate::context::Context;
use crate::exec::Run;
use crate::suites;

const ROWS: &str = "docs/assurance.tsv";
const PAGE: &str = "docs/ASSURANCE.md";
const BEGIN: &str = "<!-- table: make assurance -->\n";
const END: &str = "<!-- end of table -->";

/// A promise, and what proves it.
struct Row {
    claim: String,
    suites: Vec<String>,
    checks: Vec<String>,
    size: String,
}

/// How a row ended.
#[derive(Debug, PartialEq)]
enum Ended {
    /// So many lines passed.
    Holds(usize),
    Skipped(String),
    Fails(String),
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
        let words = |cell: &str| cell.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (suites, checks) = (words(suites), words(checks));
        ensure!(long || !checks.is_empty(), "a row without a check: {line}");
        for suite in &suites {
            ensure!(suites::find(suite).is_some(), "there is no suite {suite}: {line}");
        }
        Ok(Row { claim: (*claim).to_owned(), suites, checks, size: (*size).to_owned() })
    };
    let rows: Result<Vec<Row>> = lines.map(row).collect();
    Ok(rows?.into_iter().filter(|row| !row.checks.is_empty()).collect())
}

/// Holds a row against the lines of its suites, by name; a suite that is not there has no log.
fn judge(row: &Row, logs: &BTreeMap<String, String>) -> Ended {
    let mut lines = Vec::new();
    for suite in &row.suites {
        match logs.get(suite) {
            Some(log) => lines.extend(log.lines()),
            None => return Ended::Fails(format!("{suite} has not run")),
        }
    }
    let mut passed = 0;
    let mut skipped = None;
    for check in &row.checks {
        let of_check: Vec<&&str> = lines.iter().filter(|line| line.contains(check.as_str())).collect();
        let failed = |line: &str| {
            line.starts_with("FAIL ") || line.starts_with("test ") && line.ends_with(" ... FAILED")
        };
        if let Some(line) = of_check.iter().find(|line| failed(line)) {
            return Ended::Fails(line.chars().take(90).collect());
        }
        let good =
            |line: &str| line.starts_with("PASS ") || line.starts_with("test ") && line.ends_with(" ... ok");
        let found = of_check.iter().filter(|line| good(line)).count();
        passed += found;
        if found == 0 {
            // The tool of the check, or that of its whole suite.
            let reason = of_check
                .iter()
                .map(|line| **line)
                .chain(lines.iter().copied())
                .find(|l| l.starts_with("SKIP "));
            match reason {
                Some(line) => skipped = Some(line.trim_start_matches("SKIP ").to_owned()),
                None => return Ended::Fails(format!("nothing that passed is called {check}")),
            }
        }
    }
    match skipped {
        Some(why) => Ended::Skipped(why),
        None if passed == 0 => Ended::Fails("it has no check".into()),
        None => Ended::Holds(passed),
    }
}

/// The job: LONG=1 for the long forms, LOGS=1 to read what `make test` has left.
pub fn run(ctx: &Context) -> Result<()> {
    let is_set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let (long, read) = (is_set("LONG"), is_set("LOGS"));
    let rows = rows(&ctx.read(ROWS)?, long)?;
    let folder = ctx.folder("test-logs")?;
    let wanted = |name: &str| rows.iter().any(|row| row.suites.iter().any(|suite| suite == name));
    let asked: Vec<&suites::Suite> = suites::SUITES.iter().filter(|suite| wanted(suite.name)).collect();
    if !read {
        // A suite that fails fails its rows; the others' are looked at all the same.
        let form = Context { quick: ctx.quick || !long, ..ctx.another()? };
        let _ = suites::all(&form, &asked.iter().map(|suite| suite.name.to_owned()).collect::<Vec<_>>())?;
    }
    let log = |suite: &&suites::Suite| {
        let text = std::fs::read(folder.join(format!("{}.log", suite.name))).ok()?;
        Some((suite.name.to_owned(), String::from_utf8_lossy(&text).into_owned()))
    };
    let logs: BTreeMap<String, String> = asked.iter().filter_map(log).collect();
    let ended: Vec<Ended> = rows.iter().map(|row| judge(row, &logs)).collect();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (row, ended) in rows.iter().zip(&ended) {
        let (count, said) = match ended {
            Ended::Holds(n) => (&mut passed, format!("PASS assurance: {} ({n})", row.claim)),
            Ended::Fails(why) => (&mut failed, format!("FAIL assurance: {}: {why}", row.claim)),
            Ended::Skipped(why) => (&mut skipped, format!("SKIP assurance: {}: {why}", row.claim)),
        };
        *count += 1;
        println!("{said}");
    }
    write(ctx, &rows, &ended, long)?;
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ensure!(failed == 0 && passed > 0, "{failed} promises without proof");
    Ok(())
}

/// The table, between its marks. The long form has a page of its own below target/, for hours of machines differ.
fn write(ctx: &Context, rows: &[Row], ended: &[Ended], long: bool) -> Result<()> {
    let date = cmd!(ctx.sh, "date +%F").must()?;
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = format!("{}, {cores} cores, {}", model.unwrap_or("unknown".into()), date.trim());
    let form = if long { "Long form" } else { "Short form" };
    let mut table = format!(
        "{form}; {machine}.\n\n| Promise | Suites | Checks | Size | Last result |\n|---|---|---|---|---|\n"
    );
    for (row, ended) in rows.iter().zip(ended) {
        let result = match ended {
            Ended::Holds(n) => format!("holds ({n})"),
            Ended::Skipped(why) => format!("skipped: {why}"),
            Ended::Fails(why) => format!("**fails**: {why}"),
        };
        let cells = (row.suites.join(", "), row.checks.len(), &row.size, result.replace('|', "/"));
        table.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            row.claim, cells.0, cells.1, cells.2, cells.3
        ));
    }
    if long {
        return std::fs::write(ctx.folder("assurance")?.join("long.md"), table).map_err(Into::into);
    }
    let page = ctx.read(PAGE)?;
    let (before, rest) = page.split_once(BEGIN).context("the page has no mark for its table")?;
    let (_, after) = rest.split_once(END).context("the page has no mark behind its table")?;
    std::fs::write(ctx.root.join(PAGE), format!("{before}{BEGIN}\n{table}\n{END}{after}")).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(checks: &str, log: &str) -> Ended {
        let text = format!("a claim\ttest-rust\t{checks}\tsome");
        let rows = rows(&text, false).unwrap_or_default();
        let logs = BTreeMap::from([("test-rust".to_owned(), log.to_owned())]);
        rows.first().map_or(Ended::Fails("no row".into()), |row| judge(row, &logs))
    }

    fn fails(ended: &Ended) -> bool {
        matches!(ended, Ended::Fails(_))
    }

    #[test]
    fn a_row_holds_where_each_of_its_checks_has_passed() {
        let log = "test a::one ... ok\nPASS layout: two\ntest other ... FAILED";
        assert_eq!(judged("one two", log), Ended::Holds(2));
    }

    #[test]
    fn a_check_that_is_gone_has_failed_or_was_left_out_fails_its_row() {
        assert!(fails(&judged("one two", "test one ... ok")), "gone");
        assert!(fails(&judged("one two", "test one ... ok\ntest two ... FAILED")), "failed");
        assert!(fails(&judged("one", "FAIL one: why\nPASS one")), "failed once");
        assert!(fails(&judged("one", "test one ... ignored")), "left out");
        assert!(fails(&judged("one", "it says one passed")), "a line that is no result");
        assert!(fails(&judged("one", "")), "ran nothing");
    }

    #[test]
    fn a_suite_without_a_log_fails_its_row() -> Result<()> {
        let rows = rows("a claim\ttest-rust test-ffi\tone\tsome", false)?;
        let logs = BTreeMap::from([("test-rust".to_owned(), "test one ... ok".to_owned())]);
        assert!(rows.iter().all(|row| fails(&judge(row, &logs))));
        assert_eq!(rows.len(), 1);
        Ok(())
    }

    #[test]
    fn a_row_without_its_tools_is_skipped_with_the_reason() {
        assert_eq!(judged("one", "SKIP spin: no spin"), Ended::Skipped("spin: no spin".into()));
    }

    #[test]
    fn rows_without_checks_or_with_an_unknown_suite_are_refused() {
        assert!(rows("a claim\ttest-rust\t\tsome", false).is_err());
        assert!(rows("a claim\ttest-nothing\tone\tsome", false).is_err());
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
