//! Numbers in the sizes of rows that would go stale if they were typed: they come from lists and logs when the page is
//! written.
//!
//! ```text
//! {rows FILE}           the lines of a list, without its head
//! {sum FILE COLUMN}     the sum of a column, by the name that the head gives it
//! {before SUITE WORDS}  the number that stands before these words in the log of the suite, where they stand first
//! {passes SUITE PART}   how many claims of the suite with this part in their names passed
//! ```
//!
//! What has no log is `?`. A form that finds no number fails its row.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{bail, Context as _, Result};
use regex_lite::{escape, Regex};

use crate::said::{Said, Skips};

/// A size with its forms filled in.
pub fn filled(size: &str, root: &Path, logs: &BTreeMap<String, String>) -> Result<String> {
    let mut parts = size.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (form, rest) = part.split_once('}').with_context(|| format!("a form without an end: {part}"))?;
        text.push_str(&number(form, root, logs).with_context(|| format!("{{{form}}}"))?);
        text.push_str(rest);
    }
    Ok(text)
}

/// Whether a text is this size with its forms filled in, whatever the numbers.
pub fn is_of(text: &str, size: &str) -> bool {
    let mut parts = size.split('{');
    let first = escape(parts.next().unwrap_or_default());
    let words = parts.map(|part| part.split_once('}').unwrap_or_default().1);
    let rest: String = words.map(|words| format!("([0-9 ]+|[?]){}", escape(words))).collect();
    Regex::new(&format!("^{first}{rest}$")).is_ok_and(|form| form.is_match(text))
}

fn number(form: &str, root: &Path, logs: &BTreeMap<String, String>) -> Result<String> {
    let mut words = form.splitn(3, ' ');
    let (kind, of, what) = (words.next().unwrap_or_default(), words.next(), words.next());
    let list = |name: &str| std::fs::read_to_string(root.join(name)).with_context(|| format!("no {name}"));
    let found = match (kind, of, what) {
        ("rows", Some(file), None) => rows(&list(file)?).1.count(),
        ("sum", Some(file), Some(column)) => sum(&list(file)?, column)?,
        ("before" | "passes", Some(suite), Some(what)) => match logs.get(suite) {
            None => return Ok("?".into()),
            Some(log) if kind == "before" => before(log, what).context("the log says no such number")?,
            Some(log) => passes(log, what),
        },
        _ => bail!("what form is this?"),
    };
    if found == 0 {
        bail!("it is 0");
    }
    Ok(grouped(found))
}

/// The head of a list and its rows: a list that begins with a `#` has no other head.
fn rows(text: &str) -> (Option<&str>, impl Iterator<Item = &str>) {
    let head = text.lines().next().filter(|line| !line.starts_with('#'));
    let rows = text.lines().skip(usize::from(head.is_some()));
    (head, rows.filter(|line| !line.starts_with('#') && !line.is_empty()))
}

fn sum(text: &str, column: &str) -> Result<usize> {
    let (head, rows) = rows(text);
    let at =
        head.and_then(|head| head.split('\t').position(|name| name == column)).context("no such column")?;
    let cell = |row: &str| row.split('\t').nth(at).and_then(|cell| cell.parse::<usize>().ok());
    rows.map(|row| cell(row).with_context(|| format!("no number: {row}"))).sum()
}

fn before(log: &str, words: &str) -> Option<usize> {
    log.lines().find_map(|line| {
        let (number, _) = line.split_once(words)?;
        number.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })
}

fn passes(log: &str, part: &str) -> usize {
    let mut skips = Skips::default();
    let said = log.lines().map(|line| Said::of(line, &mut skips));
    said.filter(|said| matches!(said, Said::Pass(name) if name.contains(part))).count()
}

/// With a space between thousands.
fn grouped(number: usize) -> String {
    match number / 1_000 {
        0 => number.to_string(),
        above => format!("{} {:03}", grouped(above), number % 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use anyhow::ensure;

    #[test]
    fn numbers_come_from_lists_and_logs() -> Result<()> {
        let root = std::env::temp_dir().join(format!("tatcell-sizes-{}", std::process::id()));
        std::fs::create_dir_all(&root)?;
        std::fs::write(root.join("headed"), "file\tall told\na\t1200\nb\t34\n")?;
        std::fs::write(root.join("noted"), "# a note\n# more\na\nb\n\nc\n")?;
        let log = "PASS z3: a\nSKIP z3: b: no\ntest z3: b ... ok\nPASS c\n910 ways, 3006 lines\n911 ways\n";
        let logs = BTreeMap::from([("proofs".to_owned(), log.to_owned())]);
        for (size, is) in [
            ("{rows headed} rows, {rows noted} notes", Some("2 rows, 3 notes")),
            ("{sum headed all told} in all", Some("1 234 in all")),
            ("{before proofs  ways} of {before proofs  lines}", Some("910 of 3 006")),
            ("{passes proofs z3: } claim", Some("1 claim")),
            ("{passes other z3: } claims", Some("? claims")),
            ("as it is", Some("as it is")),
            ("{rows none}", None),
            ("{sum headed none}", None),
            ("{before proofs  pages}", None),
            ("{passes proofs nothing}", None),
            ("{rows headed", None),
            ("{count headed}", None),
        ] {
            ensure!(filled(size, &root, &logs).ok().as_deref() == is, "{size}");
        }
        std::fs::remove_dir_all(root).map_err(Into::into)
    }

    #[test]
    fn a_size_is_known_again_by_its_words() {
        for (text, size, is) in [
            ("4 269 mutants of 99 files", "{sum a b} mutants of {rows c} files", true),
            ("? mutants of 1 files", "{sum a b} mutants of {rows c} files", true),
            ("some mutants of 1 files", "{sum a b} mutants of {rows c} files", false),
            ("1 mutants of 1 files, and more", "{sum a b} mutants of {rows c} files", false),
            ("1 mutant of 1 file", "{sum a b} mutants of {rows c} files", false),
            ("in all 1 234", "in all {rows c}", true),
            ("1e8 (or more)", "1e8 (or more)", true),
            ("1e8 (or more)", "1e9 (or more)", false),
        ] {
            assert_eq!(is_of(text, size), is, "{text}");
        }
    }

    #[test]
    fn every_form_of_the_rows_is_one_and_its_list_is_there() -> Result<()> {
        let ctx = Context::new()?;
        let mut forms = 0;
        for long in [false, true] {
            for row in super::super::rows(&ctx.read(super::super::ROWS)?, long)? {
                filled(&row.size, &ctx.root, &BTreeMap::new())?;
                forms += row.size.matches('{').count();
            }
        }
        ensure!(forms > 5, "{forms}");
        Ok(())
    }
}
