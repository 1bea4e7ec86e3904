//! The page: docs/ASSURANCE.md, whose tables stand between marks.

use anyhow::{Context as _, Result};
use xshell::cmd;

use super::{Ended, Row};
use crate::context::Context;
use crate::exec::Run;
use crate::planted;
use crate::tree::PAGE;

/// Begin and end of the table of promises.
const PROMISES: [&str; 2] = ["<!-- table: make assurance -->\n", "<!-- end of table -->"];
/// Those of the planted bugs.
const PLANTED: [&str; 2] = ["<!-- planted: make assurance -->\n", "<!-- end of planted -->"];
/// As many checks are named in a cell.
const NAMED: usize = 3;

/// Writes the tables between their marks. The long form has a page of its own below target/, for hours of machines
/// differ. `rows`: with their sizes and ends; `seconds`: those of the suites, where they ran.
pub fn write(ctx: &Context, rows: &[(Row, String, Ended)], seconds: Option<u64>, long: bool) -> Result<()> {
    let date = cmd!(ctx.sh, "date +%F").must()?;
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = format!("{}, {cores} cores, {}", model.unwrap_or("unknown".into()), date.trim());
    let form = if long { "Long form" } else { "Short form" };
    let took = seconds.map(|seconds| format!("; the suites took {seconds} s")).unwrap_or_default();
    let mut table = format!(
        "{form}; {machine}{took}.\n\n| Promise | Suites | Checks | Size | Last result |\n|---|---|---|---|---|\n"
    );
    rows.iter().for_each(|(row, size, ended)| table.push_str(&line(row, size, ended)));
    if long {
        return std::fs::write(ctx.folder("assurance")?.join("long.md"), table).map_err(Into::into);
    }
    let page = between(&ctx.read(PAGE)?, PROMISES, &table)?;
    let page = between(&page, PLANTED, &planted::areas(ctx)?)?;
    std::fs::write(ctx.root.join(PAGE), page).map_err(Into::into)
}

/// A text with another one between its marks.
fn between(page: &str, [begin, end]: [&str; 2], text: &str) -> Result<String> {
    let (before, rest) = page.split_once(begin).with_context(|| format!("the page has no {begin}"))?;
    let (_, after) = rest.split_once(end).with_context(|| format!("the page has no {end}"))?;
    Ok(format!("{before}{begin}\n{text}\n{end}{after}"))
}

/// A row of the table.
fn line(row: &Row, size: &str, ended: &Ended) -> String {
    let result = match ended {
        Ended::Holds(n, None) => format!("holds ({n})"),
        Ended::Holds(n, Some(skipped)) => format!("holds ({n}), skipped: {skipped}"),
        Ended::Skipped(why) => format!("skipped: {why}"),
        Ended::Fails(why) => format!("**fails**: {why}"),
    };
    let name = |text: &str| if text == "*" { "all".to_owned() } else { format!("`{text}`") };
    let mut checks: Vec<String> = row.checks.iter().take(NAMED).map(|check| name(&check.text)).collect();
    if let Some(more) = row.checks.len().checked_sub(NAMED).filter(|more| *more > 0) {
        checks.push(format!("+{more}"));
    }
    let cells = [&row.claim, &row.suites.join(", "), &checks.join(", "), size, &result.replace('|', "/")];
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::ensure;

    #[test]
    fn a_line_names_its_checks_and_what_was_skipped() -> Result<()> {
        let rows = super::super::rows("a claim\ttest-rust test-ffi\ttest-rust:a b c d e\tsome", false)?;
        let row = rows.first().context("a row")?;
        let start = "| a claim | test-rust, test-ffi | `a`, `b`, `c`, +2 | some | ";
        let said = line(row, "some", &Ended::Holds(5, None));
        ensure!(said == format!("{start}holds (5) |\n"), "{said}");
        let said = line(row, "some", &Ended::Holds(5, Some("e: no | tool".into())));
        ensure!(said == format!("{start}holds (5), skipped: e: no / tool |\n"), "{said}");
        let rows = super::super::rows("a claim\ttest-rust\t*\tsome", false)?;
        let row = rows.first().context("a row")?;
        ensure!(line(row, "some", &Ended::Fails("why".into())).contains(" | all | some | **fails**: why |"));
        Ok(())
    }

    #[test]
    fn the_page_has_marks_for_each_of_its_tables() -> Result<()> {
        let page = Context::new()?.read(PAGE)?;
        for marks in [PROMISES, PLANTED] {
            let other = between(&page, marks, "text")?;
            ensure!(other.contains(&format!("{}\ntext\n{}", marks[0], marks[1])));
            ensure!(between(&other.replace(marks[1], ""), marks, "text").is_err());
        }
        Ok(())
    }
}
