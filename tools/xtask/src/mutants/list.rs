//! The survivors that are known, and the files that were run: two tables of `docs/`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{bail, ensure, Context as _, Result};

use crate::context::Context;

/// The survivors, and the files that were run, which a run writes.
pub const SURVIVORS: &str = "docs/mutants.tsv";
pub const FILES: &str = "docs/mutants-files.tsv";
const HEAD: &str =
    "file\tmutants\tcaught\tendless\tdid not compile\tnever run\tsurvived\tas of\tlisted since";

/// A mutant, as cargo-mutants names it, without its place: that moves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mutant {
    pub file: String,
    pub what: String,
    /// The text from its place to the end of the line.
    pub at: String,
}

/// A line of [`SURVIVORS`].
pub struct Row {
    pub mutant: Mutant,
    pub verdict: String,
}

impl Mutant {
    /// Of `file:line:column: what`; `text` is the file's.
    pub fn of(line: &str, text: &str) -> Result<Mutant> {
        let mut parts = line.splitn(4, ':');
        let mut part = || parts.next().with_context(|| format!("no mutant: {line}"));
        let (file, number, column, what) = (part()?, part()?, part()?, part()?);
        let (number, column): (usize, usize) = (number.parse()?, column.parse()?);
        let source = number.checked_sub(1).and_then(|at| text.lines().nth(at)).context("no such line")?;
        let at: String = source.chars().skip(column.saturating_sub(1)).collect();
        Ok(Mutant { file: file.to_owned(), what: what.trim().to_owned(), at: at.trim().to_owned() })
    }
}

impl Row {
    /// The file of tests/, or none for the library, and the name of the test that kills it.
    pub fn killer(&self) -> Option<(Option<&str>, Option<&str>)> {
        let test = self.verdict.strip_prefix("killed: ")?;
        Some(test.split_once(' ').map_or((None, Some(test)), |(file, test)| (Some(file), Some(test))))
    }
}

/// The survivors that are known.
pub fn rows(text: &str) -> Result<Vec<Row>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let row = |line: &str| {
        let [file, what, at, verdict] = line.split('\t').collect::<Vec<_>>()[..] else {
            bail!("{SURVIVORS}: not four cells: {line}");
        };
        let known = ["equivalent: ", "killed: ", "elsewhere: ", "open: "]
            .iter()
            .any(|word| verdict.strip_prefix(word).is_some_and(|why| !why.trim().is_empty()));
        ensure!(known, "{SURVIVORS}: not a verdict: {verdict}");
        let mutant = Mutant { file: file.into(), what: what.into(), at: at.into() };
        Ok(Row { mutant, verdict: verdict.into() })
    };
    lines.map(row).collect()
}

/// How many of these rows are of a file and not known to be noticed.
pub fn not_noticed(rows: &[Row], file: &str) -> usize {
    rows.iter().filter(|row| row.mutant.file == file && row.killer().is_none()).count()
}

/// The files that were run, in the order of their names. A row has the counts of its run, the commit that the run was
/// on, and how many more mutants [`SURVIVORS`] has as not noticed now than that run had: 0 where the two are one, less
/// where tests have come since, more where code has.
pub struct Table {
    place: PathBuf,
    rows: BTreeMap<String, String>,
}

impl Table {
    pub fn read(ctx: &Context) -> Result<Table> {
        let place = ctx.root.join(FILES);
        let text = std::fs::read_to_string(&place).unwrap_or_default();
        let rows = text.lines().skip(1).filter_map(|row| row.split_once('\t'));
        Ok(Table { rows: rows.map(|(file, rest)| (file.to_owned(), rest.to_owned())).collect(), place })
    }

    pub fn set(&mut self, file: &str, row: &str) -> Result<()> {
        self.rows.insert(file.to_owned(), row.to_owned());
        let rows = self.rows.iter().map(|(file, row)| format!("{file}\t{row}\n"));
        let text: String = std::iter::once(format!("{HEAD}\n")).chain(rows).collect();
        std::fs::write(&self.place, text).with_context(|| format!("cannot write {}", self.place.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_files_add_up_and_are_those_of_the_list_but_for_what_they_say() -> Result<()> {
        let ctx = Context::new()?;
        let survivors = super::rows(&ctx.read(SURVIVORS)?)?;
        let text = ctx.read(FILES)?;
        ensure!(text.lines().next() == Some(HEAD));
        for row in text.lines().skip(1) {
            let cells: Vec<&str> = row.split('\t').collect();
            let [file, counts @ .., as_of, since] = &cells[..] else { bail!("too few cells: {row}") };
            let counts: Vec<usize> = counts.iter().map(|cell| cell.parse()).collect::<Result<_, _>>()?;
            let [all, caught, endless, uncompiled, never, survived] = counts[..] else { bail!("{row}") };
            ensure!(all == caught + endless + uncompiled + never + survived, "{file} does not add up: {row}");
            ensure!(as_of.len() >= 7 || *as_of == "?", "{file}: no commit: {as_of}");
            let (now, since) = (i64::try_from(not_noticed(&survivors, file))?, since.parse::<i64>()?);
            let then = i64::try_from(never + survived)?;
            ensure!(
                now - then == since,
                "{file}: {now} in the list, {then} in the run, so {} since, not {since}: FILE={file} make mutants",
                now - then
            );
        }
        Ok(())
    }

    #[test]
    fn a_mutant_is_known_by_its_text_wherever_that_moves() -> Result<()> {
        let text = "fn a() {\n    if x < y && y < z {\n";
        let mutant = Mutant::of("src/a.rs:2:19: replace < with <= in a", text)?;
        ensure!(mutant.at == "< z {" && mutant.what == "replace < with <= in a", "{mutant:?}");
        ensure!(Mutant::of("src/a.rs:2:10: replace < with <= in a", text)?.at == "< y && y < z {");
        ensure!(Mutant::of("src/a.rs:9:1: replace", text).is_err() && Mutant::of("src/a.rs", text).is_err());
        Ok(())
    }

    #[test]
    fn a_verdict_has_its_reason() {
        for verdict in ["equivalent: ", "equivalent", "killed", "so what"] {
            assert!(rows(&format!("f\tw\ta\t{verdict}\n")).is_err(), "{verdict}");
        }
        assert!(rows("# file\nf\tw\ta\tequivalent: why\n").is_ok_and(|rows| rows.len() == 1));
    }

    #[test]
    fn a_test_that_kills_is_one_of_the_library_or_of_a_file() {
        let mutant = Mutant { file: "f".into(), what: "w".into(), at: "a".into() };
        let row = |verdict: &str| Row { mutant: mutant.clone(), verdict: verdict.into() };
        assert_eq!(row("equivalent: why").killer(), None);
        assert_eq!(row("killed: a::tests::b").killer(), Some((None, Some("a::tests::b"))));
        assert_eq!(row("killed: file m::b").killer(), Some((Some("file"), Some("m::b"))));
    }
}
