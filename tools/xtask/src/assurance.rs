//! The promises and what proves them: docs/assurance.tsv, held against the logs of the suites and written into
//! docs/ASSURANCE.md.
//!
//! A row names suites and checks, parts of the names that these report. It holds where each check has passed and none
//! has failed. What passes nothing fails, so a check that has vanished cannot hold a promise up. A check that the suite
//! skips by name is skipped with its reason, and so is `check@tool` where the suite says `SKIP tool`; a skip of
//! something else excuses nothing. `*` is all that the suites say. The short form takes suites that have a quick form
//! in that. A suite that was interrupted, or that broke off with an error instead of a failure, holds no row, whatever
//! had passed by then; one that ended with failures holds those that they are not of.
//!
//! docs/readme.tsv is the readme unit by unit, a paragraph, an item or a row of a table each, with the rows that would
//! fail if it were false, or why it promises nothing. A test holds it to the readme and to the rows.

use std::collections::BTreeMap;

use anyhow::{bail, ensure, Context as _, Result};
use xshell::cmd;

use crate::context::Context;
use crate::exec::Run;
use crate::report::is_signed;
use crate::suites;

const ROWS: &str = "docs/assurance.tsv";
const PAGE: &str = "docs/ASSURANCE.md";
const BEGIN: &str = "<!-- table: make assurance -->\n";
const END: &str = "<!-- end of table -->";

/// Suites that are read and not run, since they are long or bring servers and machines: CI runs them before, and their
/// rows are skipped without LOGS=1.
const READ: [&str; 11] = [
    "test-bench",
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

/// Holds a row against the lines of its suites, by name; a suite that is not there has no log. `read`: all were to have
/// one.
fn judge(row: &Row, logs: &BTreeMap<String, String>, read: bool) -> Ended {
    let mut lines = Vec::new();
    for suite in &row.suites {
        match logs.get(suite) {
            Some(log) if !is_signed(log, suite) => {
                return Ended::Fails(format!("{suite} did not come to its end"));
            }
            Some(log) => {
                // Its own name: an error that no FAIL had told of, behind which nothing more ran.
                if let Some(line) = log.lines().find(|line| line.starts_with(&format!("FAIL {suite}: "))) {
                    return Ended::Fails(line.chars().take(90).collect());
                }
                lines.extend(log.lines());
            }
            None if !read && READ.contains(&suite.as_str()) => {
                let how = format!("{suite} is read from its log: make {suite}, and LOGS=1 make assurance");
                return Ended::Skipped(how);
            }
            None => return Ended::Fails(format!("{suite} has not run")),
        }
    }
    let mut passed = 0;
    let mut skipped = None;
    for check in &row.checks {
        let (check, tool) = check.split_once('@').unwrap_or((check, ""));
        let of_check: Vec<&&str> = lines.iter().filter(|line| check == "*" || line.contains(check)).collect();
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
            let lacks = |line: &&str| {
                let reason = line.strip_prefix("SKIP ")?;
                let name = reason.split(": ").next()?;
                (check == "*" || name.contains(check) || !tool.is_empty() && name == tool)
                    .then(|| reason.to_owned())
            };
            match lines.iter().find_map(lacks) {
                Some(reason) => skipped = Some(reason),
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
    let here = |name: &str| wanted(name) && (read || long || !READ.contains(&name));
    let asked: Vec<&suites::Suite> = suites::SUITES.iter().filter(|suite| here(suite.name)).collect();
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
    let ended: Vec<Ended> = rows.iter().map(|row| judge(row, &logs, read || long)).collect();
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
        let log = format!("{log}\nend of test-rust: 1 passed, 1 failed, 1 skipped\n");
        let logs = BTreeMap::from([("test-rust".to_owned(), log)]);
        rows.first().map_or(Ended::Fails("no row".into()), |row| judge(row, &logs, true))
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
    fn a_suite_that_did_not_come_to_its_end_holds_no_row() -> Result<()> {
        let rows = rows("a claim\ttest-rust\tone\tsome", false)?;
        let end = "end of test-rust: 1 passed, 0 failed, 0 skipped\n";
        for (log, holds) in [
            (format!("test one ... ok\n{end}"), true),
            (format!("test one ... ok\nFAIL two: why\n{end}"), true),
            ("test one ... ok\n".into(), false),
            ("test one ... ok\n1 passed, 0 failed, 0 skipped\n".into(), false),
            (format!("{end}test one ... ok\n"), false),
            ("test one ... ok\nend of test-ffi: 1 passed, 0 failed, 0 skipped\n".into(), false),
            (format!("test one ... ok\nFAIL test-rust: the tests ended with signal 6\n{end}"), false),
        ] {
            let logs = BTreeMap::from([("test-rust".to_owned(), log.clone())]);
            let ended: Vec<Ended> = rows.iter().map(|row| judge(row, &logs, true)).collect();
            assert!(matches!(&ended[..], [Ended::Holds(1)]) == holds, "{ended:?}: {log}");
        }
        Ok(())
    }

    #[test]
    fn a_suite_without_a_log_fails_its_row() -> Result<()> {
        let rows = rows("a claim\ttest-rust test-ffi\tone\tsome", false)?;
        let log = "test one ... ok\nend of test-rust: 1 passed, 0 failed, 0 skipped\n";
        let logs = BTreeMap::from([("test-rust".to_owned(), log.to_owned())]);
        assert!(rows.iter().all(|row| fails(&judge(row, &logs, true))));
        assert_eq!(rows.len(), 1);
        Ok(())
    }

    #[test]
    fn a_suite_that_is_read_alone_is_skipped_where_nothing_is_read() -> Result<()> {
        let rows = rows("a claim\ttest-demo\t*\tsome", false)?;
        for (read, skipped) in [(false, true), (true, false)] {
            let ended: Vec<Ended> = rows.iter().map(|row| judge(row, &BTreeMap::new(), read)).collect();
            assert!(matches!(&ended[..], [Ended::Skipped(_)]) == skipped, "{ended:?}");
        }
        assert!(READ.iter().all(|name| suites::find(name).is_some()));
        Ok(())
    }

    #[test]
    fn a_row_without_its_tools_is_skipped_with_the_reason() {
        assert_eq!(judged("one@spin", "SKIP spin: no spin"), Ended::Skipped("spin: no spin".into()));
        assert_eq!(judged("one", "SKIP the_one: no two"), Ended::Skipped("the_one: no two".into()));
        assert_eq!(judged("one@spin two", "PASS one\ntest two ... ok"), Ended::Holds(2));
        assert_eq!(judged("*", "PASS one\nSKIP two: why\ntest two ... ok"), Ended::Holds(2));
        assert_eq!(judged("*", "SKIP all: no tool"), Ended::Skipped("all: no tool".into()));
        assert!(fails(&judged("*", "PASS one\nFAIL two: why")) && fails(&judged("*", "nothing")));
    }

    #[test]
    fn a_skip_of_something_else_excuses_no_check() {
        assert!(fails(&judged("one", "SKIP spin: no spin")));
        assert!(fails(&judged("one@z3", "SKIP spin: no z3, and not one")));
        assert!(fails(&judged("one@spin", "SKIP spin: no spin\nFAIL one: why")));
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
