//! The readme beside the table of assurance: docs/readme.tsv names, for each of its paragraphs, items and rows of
//! tables, the rows of docs/assurance.tsv that would fail if it were false, or says why it promises nothing.

use anyhow::{ensure, Context as _, Result};

use crate::context::Context;

/// A paragraph, an item or a row of a table: the heading above it, and its text in one line.
type Unit = (String, String);

/// The units of a document in Markdown, without its programs.
fn units(text: &str) -> Vec<Unit> {
    let (mut units, mut heading, mut fenced, mut open) = (Vec::<Unit>::new(), "", false, false);
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            (fenced, open) = (!fenced, false);
        } else if fenced {
        } else if let Some(words) = line.strip_prefix('#') {
            (heading, open) = (words.trim_start_matches('#').trim(), false);
        } else if line.is_empty() || line.chars().all(|c| "|-: ".contains(c)) {
            open = false;
        } else {
            match units.last_mut().filter(|_| open && !line.starts_with("- ") && !line.starts_with('|')) {
                Some((_, unit)) => *unit = format!("{unit} {line}"),
                None => units.push((heading.to_owned(), line.to_owned())),
            }
            open = !line.starts_with('|');
        }
    }
    units
}

/// Holds the list to the readme and to the claims of the table.
fn judge(readme: &str, list: &str, claims: &[&str]) -> Result<()> {
    let mut lines = Vec::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [heading, beginning, rows] = cells[..] else { anyhow::bail!("not three cells: {line}") };
        match rows.strip_prefix("- ") {
            Some(why) => ensure!(!why.trim().is_empty(), "no reason: {line}"),
            None => rows.split(" | ").try_for_each(|row| {
                let found = claims.iter().filter(|claim| !row.is_empty() && claim.starts_with(row)).count();
                ensure!(found == 1, "{found} rows begin with {row:?}: {line}");
                Ok(())
            })?,
        }
        lines.push((heading, beginning));
    }
    let of = |(heading, text): &Unit| {
        lines.iter().filter(|(h, beginning)| h == heading && text.starts_with(beginning)).count()
    };
    let units = units(readme);
    let bare = units.iter().find(|unit| of(unit) != 1);
    ensure!(bare.is_none(), "not one line of the list, but {}, for {bare:?}", bare.map_or(0, of));
    let unit_of = |line: &(&str, &str)| units.iter().any(|(h, text)| h == line.0 && text.starts_with(line.1));
    let gone = lines.iter().find(|line| !unit_of(line));
    ensure!(gone.is_none(), "nothing in the readme begins so: {gone:?}");
    ensure!(lines.len() == units.len(), "{} lines for {} units", lines.len(), units.len());
    Ok(())
}

/// The first cells of the table of assurance.
fn claims(table: &str) -> Vec<&str> {
    table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split('\t').next()).collect()
}

#[test]
fn every_unit_of_the_readme_has_a_row_that_would_fail_or_a_reason() -> Result<()> {
    let ctx = Context::new()?;
    let (readme, list) = (ctx.read("README.md")?, ctx.read("docs/readme.tsv")?);
    ensure!(units(&readme).len() > 100, "{} units", units(&readme).len());
    let table = ctx.read("docs/assurance.tsv")?;
    judge(&readme, &list, &claims(&table)).context("docs/readme.tsv")
}

#[test]
fn a_unit_without_a_row_and_a_row_without_a_claim_are_found() {
    let readme =
        "# A\n\nIt is exact. It\nis fast.\n\n- one\n  item\n- two\n\n| a | b |\n|---|---|\n| c | d |\n\
        ```c\nx\n```\n";
    let units: Vec<String> = units(readme).into_iter().map(|(_, text)| text).collect();
    assert_eq!(units, ["It is exact. It is fast.", "- one item", "- two", "| a | b |", "| c | d |"]);
    let list = "A\tIt is\texact\nA\t- one\texact | bounded\nA\t- two\t- no promise\nA\t| a\t- a head\nA\t| c\tbounded";
    let claims = ["exact in all", "bounded in time"];
    let holds = |list: &str| judge(readme, list, &claims).is_ok();
    assert!(holds(list));
    for (from, to) in [
        ("A\t- two\t- no promise\n", ""),
        ("- no promise", "- "),
        ("\texact\n", "\texactly\n"),
        ("exact | bounded", "exact | "),
        ("- two", "- three"),
        ("A\t| c", "B\t| c"),
        ("- two", "- "),
    ] {
        assert!(!holds(&list.replacen(from, to, 1)), "{to:?} for {from:?}");
    }
}
