//! Promises beside the table of assurance: docs/readme.tsv names, for each paragraph, item and row of a table of the
//! readme, the rows of docs/assurance.tsv that would fail if it were false, or says why it promises nothing;
//! docs/sections.tsv does that for whole sections of the guide and of the headers.
//!
//! Each line has a digest of the whole text that it was held against, whatever its line breaks. A text that has changed
//! since fails the test until someone has looked at it again and put the new digest into its line.

use anyhow::{bail, ensure, Context as _, Result};

use crate::context::Context;

/// What a line of a list is about: where it stands, and its text in one line.
type Unit = (String, String);

/// A line of a list.
struct Entry<'a> {
    place: &'a str,
    beginning: &'a str,
    digest: &'a str,
    rows: &'a str,
}

/// The documents that are held by sections.
const BY_SECTIONS: [&str; 7] = [
    "docs/GUIDE.md",
    "include/tatcell.h",
    "include/tatcell_host.h",
    "include/tatcell_inline.h",
    "include/tatcell_small.h",
    "include/tatcell_bpf.h",
    "include/tatcell.hpp",
];

/// FNV-1a of 32 bits, in hexadecimal digits: it is to notice changes that nobody hides.
fn digest(text: &str) -> String {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", text.bytes().fold(0x811c_9dc5, step))
}

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

/// The sections of a document, each with its name as the beginning of its text, without programs of pages and code of
/// headers: below the headings of Markdown; of a header the words in capitals of its first comment, its titles between
/// rules, and `Declarations` where the code begins. A section without a text of its own is none.
fn sections(document: &str, text: &str) -> Vec<Unit> {
    let is_page = document.ends_with(".md");
    let (mut sections, mut fenced, mut declares) = (vec!["Top".to_owned()], false, false);
    for line in text.lines() {
        let bare = line.trim().trim_start_matches(['/', '*']).trim_end_matches("*/").trim();
        let is_comment = ["/*", "*", "//"].iter().any(|start| line.trim().starts_with(start));
        let begun = if is_page {
            let is_fence = line.starts_with("```");
            fenced ^= is_fence;
            if fenced || is_fence {
                continue;
            }
            line.strip_prefix('#').map(|rest| (rest.trim_matches(['#', ' ']), ""))
        } else if is_comment {
            title(line, bare)
        } else if bare.is_empty() || declares {
            continue;
        } else {
            declares = true;
            Some(("Declarations", ""))
        };
        match (begun, sections.last_mut()) {
            (Some((title, rest)), _) => sections.push(format!("{title} {rest}").trim().to_owned()),
            (None, Some(section)) if !bare.is_empty() => *section = format!("{section} {bare}"),
            _ => {}
        }
    }
    let titles = ["Top", "Declarations"];
    let is_bare = |section: &str| {
        titles.contains(&section) || text.lines().any(|line| line.trim_matches(['#', ' ']) == section)
    };
    sections.retain(|section| !is_bare(section));
    sections.into_iter().map(|section| (document.to_owned(), section)).collect()
}

/// The title of a section of a header, if its line begins one, and what stands beside it.
fn title<'a>(line: &str, bare: &'a str) -> Option<(&'a str, &'a str)> {
    for rule in ["====", "----"] {
        if let Some(rest) = bare.strip_prefix(rule) {
            return Some((rest.trim_matches(['=', '-', ' ']), "")).filter(|(title, _)| !title.is_empty());
        }
    }
    let (word, rest) = bare.split_once("  ")?;
    let is_word = word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase() || c == ' ');
    let stands =
        [" * ", "// "].iter().any(|start| line.strip_prefix(start).is_some_and(|l| l.starts_with(word)));
    (is_word && stands && !rest.trim().is_empty()).then_some((word, rest.trim()))
}

/// The lines of a list.
fn entries(list: &str) -> Result<Vec<Entry<'_>>> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let entry = |line| match str::split(line, '\t').collect::<Vec<_>>()[..] {
        [place, beginning, digest, rows] => Ok(Entry { place, beginning, digest, rows }),
        _ => bail!("not four cells: {line}"),
    };
    lines.map(entry).collect()
}

/// Holds a list to the units that it is of and to the claims of the table.
fn judge(units: &[Unit], list: &str, claims: &[&str]) -> Result<()> {
    let entries = entries(list)?;
    for Entry { place, beginning, rows, .. } in &entries {
        match rows.strip_prefix("- ") {
            Some(why) => ensure!(!why.trim().is_empty(), "no reason: {place}: {beginning}"),
            None => rows.split(" | ").try_for_each(|row| {
                let found = claims.iter().filter(|claim| !row.is_empty() && claim.starts_with(row)).count();
                ensure!(found == 1, "{found} rows begin with {row:?}: {place}: {beginning}");
                Ok(())
            })?,
        }
    }
    let is_of = |entry: &Entry, (place, text): &Unit| {
        entry.place == place && text.starts_with(entry.beginning) && !entry.beginning.is_empty()
    };
    let mut changed = Vec::new();
    for unit in units {
        let of: Vec<&Entry> = entries.iter().filter(|entry| is_of(entry, unit)).collect();
        let [entry] = of[..] else {
            bail!(
                "not one line of the list, but {}, for {unit:?}; its digest: {}",
                of.len(),
                digest(&unit.1)
            );
        };
        if entry.digest != digest(&unit.1) {
            changed.push(format!(
                "{}\t{}\t{}\t{}",
                entry.place,
                entry.beginning,
                digest(&unit.1),
                entry.rows
            ));
        }
    }
    let gone = entries.iter().find(|entry| !units.iter().any(|unit| is_of(entry, unit)));
    ensure!(gone.is_none(), "nothing begins so: {:?}", gone.map(|entry| (entry.place, entry.beginning)));
    ensure!(entries.len() == units.len(), "{} lines for {} units", entries.len(), units.len());
    ensure!(
        changed.is_empty(),
        "these texts have changed. Read each beside the rows of its line: would one of them fail if it were false? \
         Then the line is, with the new digest,\n{}",
        changed.join("\n")
    );
    Ok(())
}

/// The first cells of the table of assurance.
fn claims(table: &str) -> Vec<&str> {
    table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split('\t').next()).collect()
}

#[test]
fn every_unit_of_the_readme_has_a_row_that_would_fail_or_a_reason() -> Result<()> {
    let ctx = Context::new()?;
    let units = units(&ctx.read("README.md")?);
    ensure!(units.len() > 100, "{} units", units.len());
    let table = ctx.read("docs/assurance.tsv")?;
    judge(&units, &ctx.read("docs/readme.tsv")?, &claims(&table)).context("docs/readme.tsv")
}

#[test]
fn every_section_of_the_guide_and_of_the_headers_has_a_row_that_would_fail_or_a_reason() -> Result<()> {
    let ctx = Context::new()?;
    let mut units = Vec::new();
    for document in BY_SECTIONS {
        units.extend(sections(document, &ctx.read(document)?));
    }
    ensure!(units.len() > 100, "{} sections", units.len());
    let table = ctx.read("docs/assurance.tsv")?;
    judge(&units, &ctx.read("docs/sections.tsv")?, &claims(&table)).context("docs/sections.tsv")
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str =
        "# A\n\nIt is exact. It\nis fast.\n\n- one\n  item\n- two\n\n| a | b |\n|---|---|\n| c | d |\n\
        ```c\nx\n```\n";

    /// A list of these cells, with the digests of README as it is.
    fn list(cells: &[(&str, &str)]) -> String {
        let units = units(README);
        let text = |beginning: &str| units.iter().find(|unit| unit.1.starts_with(beginning)).map(|u| &*u.1);
        let line = |&(beginning, rows): &(&str, &str)| {
            format!("A\t{beginning}\t{}\t{rows}\n", digest(text(beginning).unwrap_or_default()))
        };
        cells.iter().map(line).collect()
    }

    const CELLS: [(&str, &str); 5] = [
        ("It is", "exact"),
        ("- one", "exact | bounded"),
        ("- two", "- no promise"),
        ("| a", "- a head"),
        ("| c", "bounded"),
    ];

    fn holds(readme: &str, list: &str) -> bool {
        judge(&units(readme), list, &["exact in all", "bounded in time"]).is_ok()
    }

    #[test]
    fn a_unit_without_a_row_and_a_row_without_a_claim_are_found() {
        let texts: Vec<String> = units(README).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["It is exact. It is fast.", "- one item", "- two", "| a | b |", "| c | d |"]);
        let list = list(&CELLS);
        assert!(holds(README, &list));
        for (from, to) in [
            ("- no promise\n", "- \n"),
            ("\texact\n", "\texactly\n"),
            ("exact | bounded", "exact | "),
            ("- two", "- three"),
            ("A\t| c", "B\t| c"),
            ("- two", "- "),
            ("- two", ""),
        ] {
            assert!(!holds(README, &list.replacen(from, to, 1)), "{to:?} for {from:?}");
        }
        let without: String =
            list.lines().filter(|line| !line.contains("- two")).flat_map(|l| [l, "\n"]).collect();
        assert!(!holds(README, &without), "a unit without a line");
    }

    #[test]
    fn a_text_that_has_changed_anywhere_is_found_and_told() {
        let list = list(&CELLS);
        for (from, to) in
            [("is fast", "is slow"), ("item", "thing"), ("| d |", "| e |"), ("fast.", "fast. Ever.")]
        {
            let changed = README.replacen(from, to, 1);
            assert!(!holds(&changed, &list), "{to}");
            let said = judge(&units(&changed), &list, &["exact in all", "bounded in time"]);
            let said = said.map_or_else(|e| e.to_string(), |()| String::new());
            // What it says is the line that holds again.
            let line = said.lines().last().unwrap_or_default();
            let beginning = line.split('\t').nth(1).unwrap_or("no line");
            let renewed =
                list.lines().map(|old| if old.split('\t').nth(1) == Some(beginning) { line } else { old });
            assert!(holds(&changed, &renewed.flat_map(|l| [l, "\n"]).collect::<String>()), "{said}");
        }
        assert!(holds(&README.replace("It\nis", "It is"), &list), "line breaks are no change");
    }

    #[test]
    fn sections_are_those_of_a_page_or_of_a_header() {
        let of = |name: &str, text: &str| -> Vec<String> {
            sections(name, text).into_iter().map(|(_, section)| section).collect()
        };
        assert_eq!(
            of("a.md", "# A\nx\n\n## B\n```c\n# no title\n```\ny\n\n## C\n\n### D\nz\n"),
            ["A x", "B y", "D z"]
        );
        let header =
            "/*\n * a.h - it.\n *\n * MODEL    one\n *          two\n * ONE USE  x\n *\n */\n#define A 1\n\
                      /* why */\n/* ==== 1 Codes: all ==== */\n/** Text. */\nint a(void);\n";
        assert_eq!(
            of("a.h", header),
            ["Top a.h - it.", "MODEL one two", "ONE USE x", "Declarations why", "1 Codes: all Text."]
        );
        assert_eq!(of("a.hpp", "// ---- A program ----\n// x\n// TIME  one\n"), ["A program x", "TIME one"]);
    }
}
