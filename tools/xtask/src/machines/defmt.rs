//! Puts the lines of defmt into words, as far as the examples need: what `defmt-print` does for people.
//!
//! ```text
//! frame   [ number of the text : 16 ][ time ][ arguments ... ]     little-endian, packed by rzCOBS, 0 at its end
//! ```
//!
//! The texts are the names of symbols in the program, whose addresses are their numbers. An argument without a type of
//! its own ({}) is the number of another text, and what that one asks for; a text of several parts (a|b) is a kind of
//! enumeration, whose number comes first.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{bail, Context as _, Result};
use regex_lite::{Captures, Regex};

use crate::binary::members;

/// A text and its kind: defmt_info, defmt_derived, ...
type Texts = HashMap<u16, (String, String)>;

/// The lines in these bytes, as `defmt-decoder` shows them.
pub fn lines(elf: &Path, bytes: &[u8]) -> Result<Vec<String>> {
    let symbol = Regex::new(r#"^\{.*"tag":"([^"]*)","data":"(.*)","disambiguator".*\}$"#)?;
    let mut texts = Texts::new();
    for found in members(elf)?.iter().flat_map(|m| &m.symbols) {
        if let Some(c) = symbol.captures(&found.name) {
            texts.insert(found.address.try_into()?, (c[1].to_owned(), c[2].replace("\\\"", "\"")));
        }
    }
    let argument = Regex::new(r"\{\{|\}\}|\{(?:=([a-z0-9]+))?(?::[^}]*)?\}")?;
    let time = texts.iter().find(|(_, t)| t.0 == "defmt_timestamp").map(|(_, t)| t.1.clone());
    let time = time.context("the program has no clock for its lines")?;
    let mut lines = Vec::new();
    for packed in bytes.split(|&b| b == 0).filter(|f| !f.is_empty()) {
        let frame = unpack(packed).context("a frame that is not packed right")?;
        let mut frame = Frame { bytes: &frame, texts: &texts, argument: &argument };
        let (kind, text) = frame.text()?;
        let ms: u64 = frame.fill(&time)?.parse()?;
        let level = kind.trim_start_matches("defmt_").to_uppercase();
        let words = frame.fill(&text)?;
        lines.push(format!("{}.{:03} {level} {words}", ms / 1000, ms % 1000));
    }
    Ok(lines)
}

/// What is left of one frame.
struct Frame<'a> {
    bytes: &'a [u8],
    texts: &'a Texts,
    argument: &'a Regex,
}

impl Frame<'_> {
    /// A number of so many bytes.
    fn number(&mut self, len: usize) -> Result<u64> {
        let (head, rest) = self.bytes.split_at_checked(len).context("a frame ends inside an argument")?;
        self.bytes = rest;
        Ok(head.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// Kind and words of the text whose number comes.
    fn text(&mut self) -> Result<(String, String)> {
        let number = self.number(2)?.try_into()?;
        self.texts.get(&number).cloned().with_context(|| format!("no text has the number {number}"))
    }

    /// A text with its arguments.
    fn fill(&mut self, text: &str) -> Result<String> {
        let mut error = None;
        let filled = self.argument.clone().replace_all(text, |c: &Captures<'_>| {
            let words = match &c[0] {
                "{{" => Ok("{".to_owned()),
                "}}" => Ok("}".to_owned()),
                _ => self.value(c.get(1).map_or("?", |m| m.as_str())),
            };
            words.unwrap_or_else(|e| {
                error.get_or_insert(e);
                String::new()
            })
        });
        error.map_or(Ok(filled.into_owned()), Err)
    }

    fn value(&mut self, kind: &str) -> Result<String> {
        let len = match kind {
            "u8" => 1,
            "u16" => 2,
            "u32" => 4,
            "u64" => 8,
            "bool" => return Ok((self.number(1)? != 0).to_string()),
            "?" => {
                let (_, text) = self.text()?;
                let mut parts = text.split('|');
                let part = match text.contains('|') {
                    true => parts.nth(self.number(1)?.try_into()?),
                    false => parts.next(),
                };
                return self.fill(part.context("an enumeration has no such part")?);
            }
            kind => bail!("an argument of the type {kind}"),
        };
        Ok(self.number(len)?.to_string())
    }
}

/// Undoes rzCOBS, from the end on: a byte that tells which of seven are 0 stands after them, one from 128 on after so
/// many that are not, of which 0x80 | n means n + 7 and a zero.
fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut frame = Vec::new();
    let mut bytes = packed.iter().rev();
    while let Some(&code) = bytes.next() {
        let run = match code {
            0 => return None,
            0xff => 134,
            0x80..=0xfe => {
                frame.push(0);
                usize::from(code & 0x7f) + 7
            }
            _ => {
                for bit in (0..7).rev() {
                    frame.push(if code >> bit & 1 == 0 { *bytes.next()? } else { 0 });
                }
                0
            }
        };
        for _ in 0..run {
            frame.push(*bytes.next()?);
        }
    }
    frame.reverse();
    Some(frame)
}
