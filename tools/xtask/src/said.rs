//! What a line of a log claims, for the counts of a suite and for the promises that hang on its log.
//!
//! ```text
//! PASS name                      holds             test name ... ok
//! FAIL name: why                 does not          test name ... FAILED
//! SKIP name: why                 was not looked at
//! SKIP: why                      of what? A failure of form
//! ```
//!
//! A test of cargo's that skips itself says `SKIP`, its name and why, and returns, and so passes: [`Skips`] takes it
//! for what it says it is. Names of programs stand before those of tests, each with a colon behind it.

/// A line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said<'a> {
    /// What is named holds.
    Pass(&'a str),
    /// It does not; with the reason, where there is one.
    Fail(&'a str),
    /// It was not looked at: name, colon, reason.
    Skip(&'a str),
    /// Something was not looked at, and nobody knows what.
    Nameless,
    /// No claim.
    Other,
}

impl<'a> Said<'a> {
    /// Of a line. `skips` has the tests that have skipped themselves up to here.
    pub fn of(line: &'a str, skips: &mut Skips) -> Said<'a> {
        if let Some((name, end)) = line.strip_prefix("test ").and_then(|test| test.rsplit_once(" ... ")) {
            return match end {
                // It was counted when it said so.
                "ok" if skips.take(name) => Said::Other,
                "ok" => Said::Pass(name),
                "FAILED" => Said::Fail(name),
                _ => Said::Other,
            };
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "PASS" if !rest.is_empty() => Said::Pass(rest),
            "FAIL" => Said::Fail(rest),
            "SKIP" if name_of(rest).is_some() => {
                skips.0.push(rest.to_owned());
                Said::Skip(rest)
            }
            "SKIP" | "SKIP:" => Said::Nameless,
            _ => Said::Other,
        }
    }
}

/// The name of `name: why`, with those of programs before it; None where there is none. Reasons have colons, too:
/// behind the first a name is one word.
pub fn name_of(skip: &str) -> Option<&str> {
    let (first, mut rest) = skip.split_once(':')?;
    let mut end = first.len();
    while let Some((part, more)) = rest.split_once(": ") {
        let word = part.trim_start();
        if word.is_empty() || word.contains(' ') {
            break;
        }
        end = skip.len() - more.len() - ": ".len();
        rest = more;
    }
    skip.get(..end).filter(|_| !first.trim().is_empty() && !first.starts_with(' '))
}

/// Tests that have said that they skip themselves, and have not ended yet.
#[derive(Default)]
pub struct Skips(Vec<String>);

impl Skips {
    /// Whether the test of this name, which ends now, has said that it skips itself.
    fn take(&mut self, test: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|skip| skip.strip_prefix(test).is_none_or(|rest| !rest.starts_with(':')));
        self.0.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{files, Context};
    use anyhow::{ensure, Context as _, Result};

    /// Where tests in Rust are that skip themselves.
    const PLACES: [&str; 3] = ["src", "tests", "cluster"];

    #[test]
    fn tests_skip_themselves_by_their_full_names() -> Result<()> {
        let root = Context::new()?.root;
        let mut seen = 0;
        for path in PLACES {
            for path in files(&root.join(path), ".rs")? {
                let text = std::fs::read_to_string(&path)?;
                // tests/clock/stopped.rs is a module of tests/clock.rs.
                let deep =
                    path.strip_prefix(root.join("tests")).is_ok_and(|path| path.components().count() > 1);
                let module =
                    path.file_stem().filter(|_| deep).map(|stem| stem.to_string_lossy().into_owned());
                for skip in text.split("\"SKIP").skip(1) {
                    let line = skip.lines().next().unwrap_or_default();
                    let place = || format!("{}: {line}", path.display());
                    let name = skip.strip_prefix(' ').and_then(name_of).with_context(place)?;
                    seen += 1;
                    // That of the thread, a part of a test that has passed, or a constant.
                    let named = || text.split_once("const NAME: &str = \"")?.1.split('"').next();
                    let name = match name {
                        "{}" | "{test}_by_{name}" => continue,
                        "{NAME}" => named().with_context(place)?,
                        name => name,
                    };
                    let (of, test) = name.rsplit_once("::").unwrap_or(("", name));
                    ensure!(text.contains(&format!("fn {test}()")), "no such test: {}", place());
                    ensure!(
                        module.as_ref().is_none_or(|module| module == of),
                        "not its full name: {}",
                        place()
                    );
                }
            }
        }
        ensure!(seen > 8, "{seen}");
        Ok(())
    }

    #[test]
    fn a_test_that_skips_itself_does_not_pass() {
        let mut skips = Skips::default();
        let mut of = |line: &'static str| Said::of(line, &mut skips);
        assert_eq!(of("SKIP a::one: no tool; get it"), Said::Skip("a::one: no tool; get it"));
        assert_eq!(of("test a::one_more ... ok"), Said::Pass("a::one_more"));
        assert_eq!(of("test one ... ok"), Said::Pass("one"), "of another module");
        assert_eq!(of("test a::one ... ok"), Said::Other, "it was skipped");
        assert_eq!(of("test a::one ... ok"), Said::Pass("a::one"), "the same test of another program");
        assert_eq!(of("SKIP valkey: two: no tool"), Said::Skip("valkey: two: no tool"));
        assert_eq!(of("test valkey: two ... ok"), Said::Other);
        assert_eq!(of("SKIP three: why"), Said::Skip("three: why"));
        assert_eq!(of("test three ... FAILED"), Said::Fail("three"), "and yet it failed");
    }

    #[test]
    fn a_skip_without_a_name_is_a_failure_of_form() {
        let of = |line| Said::of(line, &mut Skips::default());
        for line in ["SKIP: why", "SKIP", "SKIP ", "SKIP : why", "SKIP why not"] {
            assert_eq!(of(line), Said::Nameless, "{line}");
        }
        assert_eq!(of("SKIPPED one: why"), Said::Other);
    }

    #[test]
    fn the_name_of_a_skip_ends_where_its_reason_begins() {
        for (skip, name) in [
            ("one: why", "one"),
            ("two of three: no tool: get it", "two of three"),
            ("program: one: no tool (get it)", "program: one"),
            ("a: z3: one: memfd_create: no such: thing", "a: z3: one: memfd_create"),
            ("a::one: why", "a::one"),
            ("one:", "one"),
        ] {
            assert_eq!(name_of(skip), Some(name), "{skip}");
        }
        assert_eq!(name_of("why"), None);
    }
}
