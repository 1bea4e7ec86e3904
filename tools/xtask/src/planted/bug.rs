//! The text of a planted bug.
//!
//! ```text
//! === name
//! file src/table/burst.rs
//! about what is wrong, in a sentence
//! check step a_burst_beside         any number; see `check`. In src/ two that stand apart: of two programs, at least
//! alike why                         two that do not stand apart, or one, will do
//! open why                          nothing of a day's checks notices: skipped, and said
//! needs avx2                        flags of the processor without which what is wrong never runs: skipped there
//! <<<<
//! the lines as they are, once in the file
//! ====
//! the lines with the bug
//! >>>>                              more such pairs may follow, of the same file
//! ```
//!
//! Lines before the first name are for the reader.

use std::path::Path;

use anyhow::{bail, ensure, Context as _, Result};

use super::check::Check;
use crate::context::files;

/// Where a bug must be noticed by two checks.
const LIBRARY: &str = "src/";

/// A bug.
pub struct Bug {
    /// Its name, by which `ONLY` finds it.
    pub name: String,
    /// Where it is planted.
    pub file: String,
    /// What is wrong.
    pub about: String,
    /// What must notice.
    pub checks: Vec<Check>,
    /// Why checks that stand apart are not to be had, if so.
    pub alike: Option<String>,
    /// Why nothing notices it yet, if so.
    pub open: Option<String>,
    /// Flags of a processor that runs what is wrong; all do where there is none.
    pub needs: Vec<String>,
    /// What stands there, and what is put in its place.
    pairs: Vec<(String, String)>,
}

impl Bug {
    /// Is it one of the library's own?
    pub fn is_of_the_library(&self) -> bool {
        self.file.starts_with(LIBRARY)
    }

    /// The first flag that it needs and that this processor, as in /proc/cpuinfo, does not have.
    pub fn lacks(&self, cpu: &str) -> Option<&str> {
        let flags = |line: &str| line.split_once(':').map(|(_, flags)| flags.to_owned());
        let line = cpu.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
        let flags = line.and_then(flags).unwrap_or_default();
        self.needs.iter().map(String::as_str).find(|need| flags.split_whitespace().all(|flag| flag != *need))
    }

    /// The text of the file with the bug in it. An error where what it replaces is not there, or more than once.
    pub fn planted(&self, tree: &Path) -> Result<String> {
        let mut text = std::fs::read_to_string(tree.join(&self.file))
            .with_context(|| format!("there is no {}", self.file))?;
        for (old, new) in &self.pairs {
            let times = text.matches(old.as_str()).count();
            let first = old.lines().next().unwrap_or_default().trim();
            ensure!(times == 1, "its text is {times} times in {}: {first}", self.file);
            text = text.replacen(old.as_str(), new, 1);
        }
        Ok(text)
    }
}

/// All bugs of a folder.
pub fn all(folder: &Path) -> Result<Vec<Bug>> {
    let mut bugs: Vec<Bug> = Vec::new();
    for file in files(folder, ".txt")? {
        let text = std::fs::read_to_string(&file)?;
        for part in text.split("\n=== ").skip(1) {
            let bug = parse(part).with_context(|| {
                format!("{}: {}", file.display(), part.lines().next().unwrap_or_default())
            })?;
            ensure!(bugs.iter().all(|other| other.name != bug.name), "two bugs are called {}", bug.name);
            bugs.push(bug);
        }
    }
    Ok(bugs)
}

fn parse(part: &str) -> Result<Bug> {
    let mut lines = part.lines();
    let name = lines.next().unwrap_or_default().trim().to_owned();
    let (file, about, needs) = (String::new(), String::new(), Vec::new());
    let mut bug =
        Bug { name, file, about, checks: Vec::new(), alike: None, open: None, needs, pairs: Vec::new() };
    while let Some(line) = lines.next() {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("file", file) => bug.file = file.to_owned(),
            ("about", about) => bug.about = about.to_owned(),
            ("check", check) => bug.checks.push(Check::parse(check)?),
            ("alike", why) if !why.is_empty() => bug.alike = Some(why.to_owned()),
            ("open", why) => bug.open = Some(why.to_owned()),
            ("needs", flags) => bug.needs.extend(flags.split_whitespace().map(str::to_owned)),
            ("<<<<", "") => {
                let old: Vec<&str> = lines.by_ref().take_while(|line| *line != "====").collect();
                let new: Vec<&str> = lines.by_ref().take_while(|line| *line != ">>>>").collect();
                bug.pairs.push((old.join("\n"), new.join("\n")));
            }
            ("", "") => {}
            _ => bail!("what is this line: {line}"),
        }
    }
    ensure!(!bug.about.is_empty() && !bug.pairs.is_empty(), "it does not say what is wrong");
    ensure!(bug.pairs.iter().all(|(old, new)| !old.trim().is_empty() && old != new), "it changes nothing");
    let stand = |check: &Check| bug.checks.iter().any(|other| other.stands_on() != check.stands_on());
    let apart = !bug.is_of_the_library() || bug.checks.iter().any(stand);
    ensure!(bug.open.is_some() || !bug.checks.is_empty(), "too few checks");
    ensure!(bug.open.is_some() || apart != bug.alike.is_some(), "its checks stand apart: {apart}");
    Ok(bug)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "a\nfile f\nabout b\ncheck lib c\n<<<<\nx\ny\n====\nz\n>>>>\n";

    #[test]
    fn a_bug_is_read_and_what_is_no_bug_refused() -> Result<()> {
        let bug = parse(GOOD)?;
        ensure!(bug.pairs == [("x\ny".to_owned(), "z".to_owned())] && bug.checks.len() == 1);
        for (from, to) in
            [("z", "x\ny"), ("check lib c\n", ""), ("lib", "bil"), ("check lib", "core\ncheck lib")]
        {
            ensure!(parse(&GOOD.replace(from, to)).is_err(), "{to} for {from}");
        }
        Ok(())
    }

    #[test]
    fn a_bug_of_the_library_has_checks_of_two_programs_or_says_why_not() -> Result<()> {
        let of = |checks: &str| {
            parse(&GOOD.replace("file f", "file src/f").replace("check lib c\n", checks)).is_ok()
        };
        ensure!(!of("check lib c\n") && !of("check lib c\ncheck lib d\n"), "one program");
        ensure!(!of("check test a c\ncheck test a d\n") && of("check test a c\ncheck test b c\n"));
        ensure!(of("check loom c\ncheck step c\n") && of("check lib c\ncheck ffi c\n"));
        ensure!(of("check lib c\nalike why\n") && !of("check lib c\nalike \n"));
        ensure!(!of("check lib c\ncheck ffi c\nalike why\n"), "a reason that is not needed");
        Ok(())
    }

    #[test]
    fn a_bug_of_another_processor_lacks_what_that_has() -> Result<()> {
        let bug = parse(&GOOD.replace("about b", "needs avx2 bmi1\nabout b"))?;
        let cpu = "processor\t: 0\nmodel name\t: avx2\nflags\t\t: sse2 avx2 bmi1\n";
        ensure!(bug.lacks(cpu).is_none() && parse(GOOD)?.lacks("").is_none());
        ensure!(bug.lacks(&cpu.replace(" bmi1", "")) == Some("bmi1"));
        ensure!(bug.lacks(&cpu.replace("sse2 avx2", "avx2-not")) == Some("avx2"));
        ensure!(bug.lacks(&cpu.replace("flags\t\t", "Features\t")).is_none());
        Ok(())
    }

    #[test]
    fn a_text_that_has_moved_is_an_error() -> Result<()> {
        let bug = parse(GOOD)?;
        let folder = std::env::temp_dir().join(format!("tatcell-planted-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        for (text, planted) in [("a\nx\ny\nb", Some("a\nz\nb")), ("x\n", None), ("x\ny\nx\ny", None)] {
            std::fs::write(folder.join("f"), text)?;
            ensure!(bug.planted(&folder).ok().as_deref() == planted, "{text}");
        }
        std::fs::remove_dir_all(folder).map_err(Into::into)
    }
}
