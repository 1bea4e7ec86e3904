//! The long table of the page: a line for each row that has a long form, with the day of its last run and the commit
//! whose tree that ran on.
//!
//! Long suites are run one at a time, on different days and trees, and their logs do not last. So of a row that is not
//! judged the line stays, word by word: the record of an earlier run. It stays as long as its row does: with another
//! claim, other suites or another size, whatever its numbers, it would be a record of something else.

use anyhow::{Context as _, Result};
use xshell::cmd;

use super::page::{cells, parts, put, result, NOT_RUN};
use super::{sizes, Ended, Held, Row};
use crate::context::Context;
use crate::exec::Run;
use crate::suites;
use crate::tree::PAGE;

/// Begin and end of the table.
const LONG: [&str; 2] = ["<!-- long: make assurance LONG=1 -->\n", "<!-- end of long -->"];
const HEAD: &str = "| Promise | Suites | Size | Last result | Of |\n|---|---|---|---|---|\n";

/// What the page says of a row.
struct Record<'a> {
    line: &'a str,
    result: &'a str,
    of: &'a str,
}

impl<'a> Record<'a> {
    /// The line of this row, where the page has one.
    fn of(page: &'a str, row: &Row) -> Option<Record<'a>> {
        let [_, table, _] = parts(page, LONG).ok()?;
        let begin = format!("| {} | {} | ", row.claim, row.suites.join(", "));
        table.lines().find_map(|line| {
            let mut cells = line.strip_prefix(&begin)?.strip_suffix(" |")?.rsplitn(3, " | ");
            let (of, result, size) = (cells.next()?, cells.next()?, cells.next()?);
            sizes::is_of(size, &row.size).then_some(Record { line, result, of })
        })
    }

    /// The same of a row that has run.
    fn of_run(page: &'a str, row: &Row) -> Option<Record<'a>> {
        Record::of(page, row).filter(|record| record.result != NOT_RUN)
    }
}

/// What is known of a row that is not judged.
pub fn known(page: &str, row: &Row) -> String {
    Record::of_run(page, row).map_or(NOT_RUN.to_owned(), |record| format!("kept as of {}", record.of))
}

/// Writes the table. `page`: as it is; `commit`: that of the tree that the logs are of, where git knows it.
pub fn write(ctx: &Context, page: &str, rows: &[Held], commit: Option<&str>) -> Result<()> {
    let commit = commit.map(|commit| format!(", {commit}")).unwrap_or_default();
    let of = |row: &Row| Ok(day(ctx, row)? + &commit);
    let page = put(page, LONG, &table(page, rows, of)?)?;
    std::fs::write(ctx.root.join(PAGE), page).map_err(Into::into)
}

/// The day on which the last of its suites has ended.
fn day(ctx: &Context, row: &Row) -> Result<String> {
    let mut days = Vec::new();
    for suite in &row.suites {
        let log = suites::log(ctx, suite)?;
        // A row that fails by one suite may lack the other.
        if log.is_file() {
            days.push(cmd!(ctx.sh, "date -r {log} +%F").must()?);
        }
    }
    Ok(days.iter().max().context("no log")?.trim().to_owned())
}

/// The table, of rows as they ended and of what the page says of the others.
fn table(page: &str, rows: &[Held], of: impl Fn(&Row) -> Result<String>) -> Result<String> {
    let mut table = HEAD.to_owned();
    for Held { row, size, ended } in rows {
        let of = match (ended, Record::of_run(page, row)) {
            (Ended::Untold(_), Some(record)) => {
                table.extend([record.line, "\n"]);
                continue;
            }
            (Ended::Untold(_), None) => "-".to_owned(),
            _ => of(row)?,
        };
        table.push_str(&cells(&[&row.claim, &row.suites.join(", "), size, &result(ended), &of]));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::judge::Logs;
    use super::super::{held, rows, said, verdict, ROWS};
    use super::*;
    use crate::report::Tally;
    use anyhow::ensure;

    const LIST: &str = "one\ttest-rust\ta\tsome\ttest-long\ta\t1e9\n\
                        two\ttest-rust\ta\tsome\tloom-long proofs-long\tb\t{passes loom-long b} models\n\
                        short\ttest-rust\ta\tsome\t\t\t\n";
    const ONE: &str = "| one | test-long | 1e9 | holds (3) | 2026-10-09, 01234567 |\n";
    const TWO: &str =
        "| two | loom-long, proofs-long | 12 models | **fails**: why | 2026-10-08, changed since 76543210 |\n";

    /// What the job makes of a page.
    struct Made {
        page: String,
        said: String,
        counts: (usize, usize, usize),
        ends_well: bool,
    }

    /// Of these logs, where the tree is ab12.
    fn made(list: &str, page: &str, logs: &[(&str, String)]) -> Result<Made> {
        let texts = logs.iter().map(|(suite, log)| ((*suite).to_owned(), log.clone())).collect();
        let logs = Logs { texts, all: true, tree: Some("ab12".into()), keeps: true };
        let rows = rows(list, true)?.into_iter();
        let rows: Vec<Held> = rows.map(|row| held(row, &logs, Path::new("none"))).collect();
        let (mut tally, mut lines) = (Tally::default(), Vec::new());
        for (count, line) in rows.iter().map(|held| said(held, page)) {
            tally += count;
            lines.push(line);
        }
        let page = put(page, LONG, &table(page, &rows, |_| Ok("2026-11-27, 89abcdef".into()))?)?;
        let counts = (tally.passed, tally.failed, tally.skipped);
        Ok(Made { page, said: lines.join("\n"), counts, ends_well: verdict(tally, true).is_ok() })
    }

    /// A log, as it is signed.
    fn log<'a>(suite: &'a str, said: &str, failed: usize, of: &str) -> (&'a str, String) {
        (suite, format!("{said}\nend of {suite}: 1 passed, {failed} failed, 0 skipped{of}\n"))
    }

    fn page(lines: &[&str]) -> String {
        format!("before\n{}\n{HEAD}{}\n{}\nafter\n", LONG[0], lines.concat(), LONG[1])
    }

    #[test]
    fn a_row_whose_suites_ran_in_full_on_this_tree_has_a_new_line() -> Result<()> {
        let old = page(&[ONE, TWO]);
        let made = made(LIST, &old, &[log("test-long", "PASS a", 0, ", of tree ab12")])?;
        let new = "| one | test-long | 1e9 | holds (1) | 2026-11-27, 89abcdef |\n";
        ensure!(made.page == page(&[new, TWO]), "{}", made.page);
        ensure!(
            made.counts == (1, 0, 1) && made.ends_well && made.said.starts_with("PASS assurance: one (1)\n")
        );
        Ok(())
    }

    #[test]
    fn of_any_other_row_the_line_is_kept_word_by_word_and_skipped() -> Result<()> {
        let old = page(&[ONE, TWO]);
        let cut = ("test-long", "PASS a\n".to_owned());
        for (logs, why) in [
            (vec![], "has not run"),
            (vec![cut], "did not come to its end"),
            (vec![log("test-long", "PASS a", 0, ", of tree ab13")], "is of another tree: make test-long"),
            (
                vec![log("test-long", "PASS a", 0, ", quick, of tree ab12")],
                "has not run in full but quick: make test-long",
            ),
            (
                vec![log("test-long", "FAIL a: why", 1, ", in part, of tree ab12")],
                "has not run in full but in part: make test-long",
            ),
            (vec![log("test-long", "FAIL a: why", 1, "")], "is of another tree: make test-long"),
        ] {
            let made = made(LIST, &old, &logs)?;
            ensure!(made.page == old, "{why}: {}", made.page);
            let one = format!("SKIP assurance: one: kept as of 2026-10-09, 01234567: test-long {why}\n");
            let two =
                "SKIP assurance: two: kept as of 2026-10-08, changed since 76543210: loom-long has not run";
            ensure!(made.said == one + two, "{}", made.said);
            ensure!(made.counts == (0, 0, 2) && made.ends_well, "{why}");
        }
        Ok(())
    }

    #[test]
    fn a_row_that_has_no_line_and_no_logs_is_not_run_yet() -> Result<()> {
        let (one, two) = (
            "| one | test-long | 1e9 | not run yet | - |\n",
            "| two | loom-long, proofs-long | ? models | not run yet | - |\n",
        );
        // Half of what it needs is nothing, and a quick log gives a size no number.
        let logs = [log("loom-long", "PASS b", 0, ", quick, of tree ab12")];
        for old in [page(&[]), page(&[one, two])] {
            let made = made(LIST, &old, &logs)?;
            ensure!(made.page == page(&[one, two]), "{}", made.page);
            let end = "two: not run yet: loom-long has not run in full but quick: make loom-long";
            ensure!(made.counts == (0, 0, 2) && made.said.ends_with(end), "{}", made.said);
        }
        Ok(())
    }

    #[test]
    fn a_line_goes_with_its_row() -> Result<()> {
        let old = page(&[ONE, TWO]);
        let lines = |from: &str, to: &str| -> Result<bool> {
            let made = made(&LIST.replace(from, to), &old, &[])?;
            ensure!(
                made.page.contains(TWO) && made.page.starts_with("before") && made.page.ends_with("after\n")
            );
            Ok(made.page.contains(ONE))
        };
        ensure!(lines("short", "another")?, "a row without a long form");
        ensure!(!lines("one\t", "won\t")?, "another claim");
        ensure!(!lines("\ttest-long\t", "\ttest-long loom-long\t")?, "another suite");
        ensure!(!lines("1e9", "1e8")?, "another size");
        ensure!(!lines("one\ttest-rust\ta\tsome\ttest-long\ta\t1e9\n", "")?, "no such row");
        Ok(())
    }

    #[test]
    fn a_row_that_fails_says_so_and_so_does_the_job() -> Result<()> {
        let old = page(&[ONE, TWO]);
        let logs = [
            log("test-long", "PASS b", 0, ", of tree ab12"),
            log("proofs-long", "PASS b\nFAIL c: why", 1, ", of tree ab12"),
        ];
        let made = made(LIST, &old, &logs)?;
        let of = "2026-11-27, 89abcdef";
        let one = format!("| one | test-long | 1e9 | **fails**: nothing that passed is called a | {of} |\n");
        // One of its suites has failed, whatever the other one would say.
        let why = "proofs-long: 1 failed, first: c: why";
        let two = format!("| two | loom-long, proofs-long | ? models | **fails**: {why} | {of} |\n");
        ensure!(made.page == page(&[&one, &two]), "{}", made.page);
        ensure!(made.counts == (0, 2, 0) && !made.ends_well, "{}", made.said);
        Ok(())
    }

    #[test]
    fn what_has_run_may_keep_nothing() {
        let sum = |passed, failed, skipped| Tally { passed, failed, skipped };
        assert!(verdict(sum(1, 0, 9), false).is_ok() && verdict(sum(0, 0, 9), true).is_ok());
        assert!(verdict(sum(0, 0, 9), false).is_err() && verdict(sum(9, 1, 0), true).is_err());
    }

    #[test]
    fn each_row_with_a_long_form_has_its_line_of_the_page() -> Result<()> {
        let ctx = Context::new()?;
        let page = ctx.read(PAGE)?;
        let rows = rows(&ctx.read(ROWS)?, true)?;
        let lines = rows.iter().map(|row| {
            let record = Record::of(&page, row);
            record
                .map(|record| record.line)
                .with_context(|| format!("{}: LONG=1 LOGS=1 make assurance", row.claim))
        });
        let lines = lines.collect::<Result<Vec<&str>>>()?;
        let [_, table, _] = parts(&page, LONG)?;
        ensure!(table.trim() == format!("{HEAD}{}", lines.join("\n")), "another line, or another order");
        ensure!(lines.len() > 10, "{}", lines.len());
        Ok(())
    }
}
