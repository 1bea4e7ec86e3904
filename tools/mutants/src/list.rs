//! The mutants of a file, as `cargo mutants --list --json` tells them.

use std::ops::Range;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// A change of the text of a file.
pub struct Mutant {
    /// From 1 on, over all files.
    pub number: u32,
    pub file: String,
    /// `file:line:column: what`.
    pub name: String,
    pub genre: String,
    /// What stands in its place.
    pub replacement: String,
    start: (usize, usize),
    end: (usize, usize),
}

impl Mutant {
    /// The bytes that it replaces.
    pub fn span(&self, places: &Places) -> Result<Range<usize>> {
        let at = |(line, column): (usize, usize)| {
            places.byte(line, column.wrapping_sub(1)).with_context(|| format!("no such place: {}", self.name))
        };
        Ok(at(self.start)?..at(self.end)?)
    }
}

/// All of a list.
pub fn read(text: &str) -> Result<Vec<Mutant>> {
    let list: Value = serde_json::from_str(text).context("no list of mutants")?;
    let list = list.as_array().context("no list of mutants")?;
    let mutant = |(at, value): (usize, &Value)| -> Result<Mutant> {
        let word = |name: &str| {
            let word = value.get(name).and_then(Value::as_str).map(str::to_owned);
            word.with_context(|| format!("a mutant without {name}: {value}"))
        };
        let place = |end: &str| -> Option<(usize, usize)> {
            let place = value.get("span")?.get(end)?;
            let number = |name: &str| usize::try_from(place.get(name)?.as_u64()?).ok();
            Some((number("line")?, number("column")?))
        };
        Ok(Mutant {
            number: u32::try_from(at)?.wrapping_add(1),
            file: word("file")?,
            name: word("name")?,
            genre: word("genre")?,
            replacement: word("replacement")?,
            start: place("start").context("a mutant without a place")?,
            end: place("end").context("a mutant without an end")?,
        })
    };
    list.iter().enumerate().map(mutant).collect()
}

/// Lines and columns of a text, in bytes.
pub struct Places<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Places<'a> {
    /// Of this text.
    pub fn of(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Places { text, lines: std::iter::once(0).chain(ends).collect() }
    }

    /// The byte at a line, from 1 on, and a column in characters, from 0 on.
    pub fn byte(&self, line: usize, column: usize) -> Option<usize> {
        let start = *self.lines.get(line.checked_sub(1)?)?;
        let rest = self.text.get(start..)?;
        let within = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(column)?;
        Some(start + within)
    }

    /// The bytes of what syn has parsed.
    pub fn span(&self, span: proc_macro2::Span) -> Option<Range<usize>> {
        let (start, end) = (span.start(), span.end());
        Some(self.byte(start.line, start.column)?..self.byte(end.line, end.column)?)
    }
}
