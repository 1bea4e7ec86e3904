//! The page: docs/ASSURANCE.md, whose tables stand between marks.

use anyhow::{Context as _, Result};
use xshell::cmd;

use super::{Ended, Held};
use crate::context::Context;
use crate::exec::Run;
use crate::planted;
use crate::tree::PAGE;

/// Begin and end of the table of promises.
const PROMISES: [&str; 2] = ["<!-- table: make assurance -->\n", "<!-- end of table -->"];
/// Those of the planted bugs.
const PLANTED: [&str; 2] = ["<!-- planted: make assurance -->\n", "<!-- end of planted -->"];
/// The result of a row of which nothing is known.
pub const NOT_RUN: &str = "not run yet";
/// As many checks are named in a cell.
const NAMED: usize = 3;

/// Writes the tables between their marks, but for the long one. `seconds`: those of the suites, where they ran.
pub fn write(ctx: &Context, rows: &[Held], seconds: Option<u64>) -> Result<()> {
    let date = cmd!(ctx.sh, "date +%F").must()?;
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = format!("{}, {cores} cores, {}", model.unwrap_or("unknown".into()), date.trim());
    let took = seconds.map(|seconds| format!("; the suites took {seconds} s")).unwrap_or_default();
    let mut table = format!(
        "Short form; {machine}{took}.\n\n| Promise | Suites | Checks | Size | Last result |\n|---|---|---|---|---|\n"
    );
    rows.iter().for_each(|held| table.push_str(&line(held)));
    let page = put(&ctx.read(PAGE)?, PROMISES, &table)?;
    let page = put(&page, PLANTED, &planted::areas(ctx)?)?;
    std::fs::write(ctx.root.join(PAGE), page).map_err(Into::into)
}

/// What stands before these marks, between them and behind them.
pub fn parts<'a>(page: &'a str, [begin, end]: [&str; 2]) -> Result<[&'a str; 3]> {
    let (before, rest) = page.split_once(begin).with_context(|| format!("the page has no {begin}"))?;
    let (between, after) = rest.split_once(end).with_context(|| format!("the page has no {end}"))?;
    Ok([before, between, after])
}

/// The page with a text between these marks.
pub fn put(page: &str, [begin, end]: [&str; 2], text: &str) -> Result<String> {
    let [before, _, after] = parts(page, [begin, end])?;
    Ok(format!("{before}{begin}\n{text}\n{end}{after}"))
}

/// A line of a table.
pub fn cells(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// How a row ended, in a cell.
pub fn result(ended: &Ended) -> String {
    let result = match ended {
        Ended::Holds(n, None) => format!("holds ({n})"),
        Ended::Holds(n, Some(skipped)) => format!("holds ({n}), skipped: {skipped}"),
        Ended::Skipped(why) => format!("skipped: {why}"),
        Ended::Fails(why) => format!("**fails**: {why}"),
        Ended::Untold(_) => NOT_RUN.to_owned(),
    };
    result.replace('|', "/")
}

/// A row of the table.
fn line(Held { row, size, ended }: &Held) -> String {
    let name = |text: &str| if text == "*" { "all".to_owned() } else { format!("`{text}`") };
    let mut checks: Vec<String> = row.checks.iter().take(NAMED).map(|check| name(&check.text)).collect();
    if let Some(more) = row.checks.len().checked_sub(NAMED).filter(|more| *more > 0) {
        checks.push(format!("+{more}"));
    }
    cells(&[&row.claim, &row.suites.join(", "), &checks.join(", "), size, &result(ended)])
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;
    use anyhow::ensure;

    #[test]
    fn a_line_names_its_checks_and_what_was_skipped() -> Result<()> {
        let said = |suites: &str, checks: &str, ended| -> Result<String> {
            let row = rows(&format!("a claim\t{suites}\t{checks}\tsome"), false)?.pop().context("a row")?;
            Ok(line(&Held { row, size: "some".into(), ended }))
        };
        let two = |ended| said("test-rust test-ffi", "test-rust:a b c d e", ended);
        let start = "| a claim | test-rust, test-ffi | `a`, `b`, `c`, +2 | some | ";
        ensure!(two(Ended::Holds(5, None))? == format!("{start}holds (5) |\n"));
        let told = two(Ended::Holds(5, Some("e: no | tool".into())))?;
        ensure!(told == format!("{start}holds (5), skipped: e: no / tool |\n"), "{told}");
        let fails = said("test-rust", "*", Ended::Fails("why".into()))?;
        ensure!(fails.contains(" | all | some | **fails**: why |"), "{fails}");
        Ok(())
    }

    #[test]
    fn the_page_has_marks_for_each_of_its_tables() -> Result<()> {
        let page = Context::new()?.read(PAGE)?;
        for marks in [PROMISES, PLANTED] {
            let other = put(&page, marks, "text")?;
            ensure!(other.contains(&format!("{}\ntext\n{}", marks[0], marks[1])));
            ensure!(put(&other.replace(marks[1], ""), marks, "text").is_err());
        }
        Ok(())
    }
}
