//! Counts of lines and branches in lcov's form, as llvm-cov writes them.
//!
//! ```text
//! SF:/.../src/time.rs
//! BRDA:12,0,1,7        line, branch of the line, way (even: true), times; `-`: the line was not reached
//! DA:12,7              line, times
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{ensure, Context as _, Result};

/// What was run, by file, from the root on.
pub struct Seen {
    pub files: BTreeMap<String, File>,
}

/// Of a file.
#[derive(Default)]
pub struct File {
    /// Line, number of the way in the line: how often.
    pub branches: BTreeMap<(usize, u32), u64>,
    /// Line: how often.
    pub lines: BTreeMap<usize, u64>,
}

/// What was not taken.
#[derive(Debug, PartialEq, Eq)]
pub struct Gap {
    pub number: usize,
    /// The text of the line.
    pub line: String,
    /// `true`, `false` or `line`.
    pub what: &'static str,
}

impl Seen {
    /// Of a text that llvm-cov has written. Functions that were made more than once count together.
    pub fn read(text: &str, root: &Path) -> Result<Seen> {
        let mut files: BTreeMap<String, File> = BTreeMap::new();
        let mut name = String::new();
        for line in text.lines() {
            let (kind, rest) = line.split_once(':').unwrap_or((line, ""));
            let numbers: Vec<&str> = rest.split(',').collect();
            let file = || name.clone();
            match (kind, &numbers[..]) {
                ("SF", _) => {
                    let path = Path::new(rest);
                    name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
                }
                ("BRDA", [at, _, way, times]) => {
                    let times = if *times == "-" { 0 } else { times.parse().context("a count")? };
                    let branches = &mut files.entry(file()).or_default().branches;
                    *branches.entry((at.parse()?, way.parse()?)).or_default() += times;
                }
                ("DA", [at, times, ..]) => {
                    let lines = &mut files.entry(file()).or_default().lines;
                    *lines.entry(at.parse()?).or_default() += times.parse::<u64>()?;
                }
                _ => {}
            }
        }
        ensure!(!files.is_empty(), "llvm-cov says nothing of any file");
        Ok(Seen { files })
    }
}

impl File {
    /// Ways and lines above the file's own tests.
    pub fn counts(&self, text: &str) -> (usize, usize) {
        let end = tests_of(text);
        let ways = self.branches.keys().filter(|(line, _)| *line <= end).count();
        (ways, self.lines.keys().filter(|line| **line <= end).count())
    }

    /// Ways and lines that were not taken, above the file's own tests.
    pub fn gaps(&self, text: &str) -> Vec<Gap> {
        let all: Vec<&str> = text.lines().collect();
        let end = tests_of(text);
        let gap = |number: usize, what| {
            let line = number.checked_sub(1).filter(|at| *at < end).and_then(|at| all.get(at))?;
            Some(Gap { number, line: line.trim().to_owned(), what })
        };
        let ways = self.branches.iter().filter(|(_, times)| **times == 0);
        let ways =
            ways.filter_map(|((number, way), _)| gap(*number, if way % 2 == 0 { "true" } else { "false" }));
        let lines = self.lines.iter().filter(|(_, times)| **times == 0);
        ways.chain(lines.filter_map(|(number, _)| gap(*number, "line"))).collect()
    }
}

/// How many lines stand above a file's own tests.
pub fn tests_of(text: &str) -> usize {
    let all: Vec<&str> = text.lines().collect();
    (0..all.len()).find(|at| tests_begin(all.iter().skip(*at))).unwrap_or(all.len())
}

/// Attributes, the condition `test` first, and a module? What is there for tests, too, but not for them alone
/// (`any(test, ..)`), is shipped.
fn tests_begin<'a>(mut lines: impl Iterator<Item = &'a &'a str>) -> bool {
    let alone = ["#[cfg(test)]", "#[cfg(all(test, "];
    let first = lines.next().is_some_and(|line| alone.iter().any(|condition| line.starts_with(condition)));
    let module = lines.find(|line| !line.starts_with("#["));
    first && module.is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LCOV: &str =
        "SF:/tree/src/a.rs\nBRDA:2,0,0,5\nBRDA:2,0,1,0\nBRDA:2,1,2,-\nBRDA:2,1,3,1\nDA:1,9\nDA:3,0\n\
        DA:8,0\nend_of_record\nSF:/tree/src/a.rs\nBRDA:2,1,2,1\nend_of_record\n";
    const TEXT: &str = "fn a() {\n    if x && y {\n        z();\n}\n\
        #[cfg(all(test, x))]\n#[allow(y)]\nmod tests {\n    never();\n}\n";

    #[test]
    fn ways_and_lines_that_are_not_taken_are_told_and_the_tests_left_out() -> Result<()> {
        let seen = Seen::read(LCOV, Path::new("/tree"))?;
        let file = seen.files.get("src/a.rs").context("a file")?;
        ensure!(file.branches.len() == 4 && file.lines.len() == 3);
        let gaps = file.gaps(TEXT);
        let gap = |number, line: &str, what| Gap { number, line: line.into(), what };
        ensure!(gaps == [gap(2, "if x && y {", "false"), gap(3, "z();", "line")], "{gaps:?}");
        Ok(())
    }

    #[test]
    fn a_module_that_tests_have_too_is_not_one_of_tests() {
        assert_eq!((tests_of(TEXT), tests_of("#[cfg(test)]\nmod tests {\n")), (4, 0));
        assert_eq!(tests_of("fn a() {}\n#[cfg(any(test, not(x)))]\nmod words {\n    b();\n}\n"), 5);
        assert_eq!(tests_of("#[cfg(not(test))]\nmod words {\n"), 2);
    }

    #[test]
    fn what_says_nothing_is_an_error() {
        assert!(Seen::read("", Path::new("/")).is_err());
        assert!(Seen::read("SF:/a\nBRDA:x,0,0,1\n", Path::new("/")).is_err());
    }
}
