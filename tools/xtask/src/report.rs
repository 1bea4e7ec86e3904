//! What the tests say: one line a claim, a count at the end.
//!
//! ```text
//! PASS name
//! FAIL name: why
//! SKIP name: what is missing and how to get it
//! 12 passed, 0 failed, 1 skipped
//! ```
//!
//! Programs of other languages print the same lines, and cargo prints "test name ... ok": [`Report::line`] counts them
//! all, as [`Said`] reads them. A suite that ends with an error without a FAIL is one failure, and so is one that ran
//! no test. The log of a suite that has come to its end says so in its last line, with its counts, what it is short of
//! all that the suite does, and the tree that it is of ([`sign`], [`End`]).

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{ensure, Context as _, Error, Result};

use crate::exec::Run;
use crate::said::{Said, Skips};
use crate::tools::Missing;

/// How many claims held, did not, and could not be looked at.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// Claims that hold.
    pub passed: usize,
    /// Claims that do not.
    pub failed: usize,
    /// Claims whose tools are missing.
    pub skipped: usize,
}

impl Tally {
    /// Nothing was claimed, not even that a tool is missing.
    pub const fn is_nothing(self) -> bool {
        self.passed + self.failed + self.skipped == 0
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::ops::Sub for Tally {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            passed: self.passed - before.passed,
            failed: self.failed - before.failed,
            skipped: self.skipped - before.skipped,
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The last line of a log, without the counts.
fn signature(suite: &str) -> String {
    format!("end of {suite}: ")
}

/// Between the counts and the tree.
const OF_TREE: &str = ", of tree ";

/// Writes the last line of a log: the suite has come to its end, and no run that was interrupted says that. `form`:
/// where it was not all of the suite ([`crate::context::Context::form`]); `tree`: the one that it is of, where that is
/// known.
pub fn sign(log: &Path, suite: &str, tally: Tally, form: Option<&str>, tree: Option<&str>) -> Result<()> {
    let form = form.map(|form| format!(", {form}")).unwrap_or_default();
    let tree = tree.map(|tree| format!("{OF_TREE}{tree}")).unwrap_or_default();
    let line = format!("{}{tally}{form}{tree}\n", signature(suite));
    let written =
        OpenOptions::new().append(true).open(log).and_then(|mut log| log.write_all(line.as_bytes()));
    written.with_context(|| format!("cannot sign {}", log.display()))
}

/// What the last line of a log says.
pub struct End<'a> {
    /// What was counted.
    pub tally: Tally,
    /// What it was short of all of the suite.
    pub form: Option<&'a str>,
    /// The tree that the suite ran on.
    pub tree: Option<&'a str>,
}

impl<'a> End<'a> {
    /// Of the log of a suite; None where that did not come to its end.
    pub fn of(log: &'a str, suite: &str) -> Option<End<'a>> {
        let last = log.strip_suffix('\n')?.lines().last()?;
        let rest = last.strip_prefix(&signature(suite))?;
        let (counts, tree) = rest.split_once(OF_TREE).map_or((rest, None), |(c, tree)| (c, Some(tree)));
        let counts: Vec<&str> = counts.splitn(4, ", ").collect();
        let [passed, failed, skipped, ref form @ ..] = counts[..] else { return None };
        let count = |words: &str, word| words.strip_suffix(word)?.parse().ok();
        let tally = Tally {
            passed: count(passed, " passed")?,
            failed: count(failed, " failed")?,
            skipped: count(skipped, " skipped")?,
        };
        Some(End { tally, form: form.first().copied(), tree })
    }
}

/// The report of one suite.
pub struct Report {
    suite: String,
    out: Box<dyn Write + Send>,
    tally: Tally,
    trouble: Vec<String>,
    /// "test name ... " that waits for its "ok": cargo's tests print their own lines between the two.
    open_test: Option<String>,
    skips: Skips,
    started: Instant,
}

/// A finished report.
pub struct Closed {
    /// Its counts.
    pub tally: Tally,
    /// Its FAIL and SKIP lines.
    pub trouble: Vec<String>,
    /// How long it took.
    pub seconds: u64,
}

impl Report {
    /// A report that goes to `out`: standard output, or a log.
    pub fn new(suite: &str, out: Box<dyn Write + Send>) -> Self {
        Self {
            suite: suite.to_owned(),
            out,
            tally: Tally::default(),
            trouble: Vec::new(),
            open_test: None,
            skips: Skips::default(),
            started: Instant::now(),
        }
    }

    /// What was counted so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The claim holds.
    pub fn pass(&mut self, name: &str) {
        self.line(&format!("PASS {name}"));
    }

    /// The claim does not hold. The first line of `why` goes beside the name, the others above it.
    pub fn fail(&mut self, name: &str, why: &str) {
        let mut lines = why.trim_end().lines();
        let first = lines.next().unwrap_or_default();
        for line in lines {
            self.note(&format!("    {line}"));
        }
        self.line(&format!("FAIL {name}: {first}"));
    }

    /// The claim cannot be looked at here.
    pub fn skip(&mut self, name: &str, missing: &Missing) {
        self.line(&format!("SKIP {name}: {missing}"));
    }

    /// A line that is no claim.
    pub fn note(&mut self, text: &str) {
        // A report that cannot be written has no other place to say so; the counts still decide.
        let _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
    }

    /// Asks: the claim holds where the answer is no error.
    pub fn claim(&mut self, name: &str, ask: impl FnOnce() -> Result<()>) -> bool {
        match ask() {
            Ok(()) => self.pass(name),
            Err(e) => {
                self.fail(name, &in_words(&e));
                return false;
            }
        }
        true
    }

    /// Passes a line of a test program on and counts what it claims.
    pub fn line(&mut self, line: &str) {
        let Some(line) = self.whole_test(line) else { return };
        self.note(&line);
        match Said::of(&line, &mut self.skips) {
            Said::Pass(_) => self.tally.passed += 1,
            Said::Fail(_) | Said::Nameless => {
                self.tally.failed += 1;
                self.trouble.push(line);
            }
            Said::Skip(_) => {
                self.tally.skipped += 1;
                self.trouble.push(line);
            }
            Said::Other => {}
        }
    }

    /// Runs a test program and passes its lines on, with `prefix` before each claim. One that dies between two lines is
    /// a failure, too, and so is one that claims nothing. Returns whether it ended with 0.
    pub fn program(&mut self, prefix: &str, command: Command) -> Result<bool> {
        let before = self.tally;
        let status = command.lines(|line| match line.split_once(' ') {
            Some((word @ ("PASS" | "FAIL" | "SKIP"), rest)) => self.line(&format!("{word} {prefix}: {rest}")),
            _ => self.note(line),
        })?;
        let claimed = self.tally - before;
        if !status.success() && claimed.failed == 0 {
            self.fail(prefix, &format!("ended with {status}"));
        } else if claimed.is_nothing() {
            self.fail(prefix, "claims nothing");
        }
        Ok(status.success())
    }

    /// Runs tests that name their claims in full, and passes their lines on; an error if they end with one, or if there
    /// is none: a filter that nothing matches tests nothing.
    pub fn lines_of(&mut self, tests: impl Run) -> Result<()> {
        let before = self.tally;
        let status = tests.lines(|line| self.line(line))?;
        ensure!(status.success(), "the tests ended with {status}");
        ensure!(!(self.tally - before).is_nothing(), "no test ran");
        Ok(())
    }

    /// Ends the suite with what it returned.
    pub fn close(mut self, result: Result<()>) -> Closed {
        let suite = self.suite.clone();
        match result {
            Err(e) if self.tally.failed == 0 => self.fail(&suite, &in_words(&e)),
            Err(e) => self.note(&in_words(&e)),
            Ok(()) if self.tally.is_nothing() => {
                self.fail(&suite, "ran no test");
            }
            Ok(()) => {}
        }
        Closed { tally: self.tally, trouble: self.trouble, seconds: self.started.elapsed().as_secs() }
    }

    /// With one test thread a test's own lines come between "test name ... " and its "ok": puts the two together.
    fn whole_test(&mut self, line: &str) -> Option<String> {
        if let Some((name, rest)) = line.strip_prefix("test ").and_then(|t| t.split_once(" ... ")) {
            let end = rest.split([',', ' ']).next().unwrap_or_default();
            if !matches!(end, "ok" | "FAILED" | "ignored") {
                self.open_test = Some(format!("test {name} ... "));
                return (!rest.is_empty()).then(|| self.named(rest));
            }
        } else if matches!(line, "ok" | "FAILED") {
            if let Some(open) = self.open_test.take() {
                return Some(open + line);
            }
        }
        Some(self.named(line))
    }

    /// With one test thread a test runs on `main` and does not know its name: a SKIP of that, between "test name ... "
    /// and its "ok", is its own.
    fn named(&self, line: &str) -> String {
        let open = self.open_test.as_ref().and_then(|open| open.strip_prefix("test ")?.strip_suffix(" ... "));
        match (open, line.strip_prefix("SKIP main: ")) {
            (Some(test), Some(why)) => format!("SKIP {test}: {why}"),
            _ => line.to_owned(),
        }
    }
}

/// An error and what caused it.
fn in_words(e: &Error) -> String {
    format!("{e:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of a suite that says these lines and ends so.
    fn tally(lines: &[&str], result: Result<()>) -> (usize, usize, usize) {
        let mut report = Report::new("suite", Box::new(std::io::sink()));
        for line in lines {
            report.line(line);
        }
        let Tally { passed, failed, skipped } = report.close(result).tally;
        (passed, failed, skipped)
    }

    fn error() -> Result<()> {
        Err(anyhow::anyhow!("ended early"))
    }

    #[test]
    fn lines_of_all_kinds_are_counted() {
        let lines = [
            "PASS a",
            "test b ... ok",
            "test c ... ignored, long",
            "SKIP d: no tool",
            "PASSED e",
            "test f ...",
        ];
        assert_eq!(tally(&lines, Ok(())), (2, 0, 1));
        assert_eq!(tally(&["FAIL a: why", "test b ... FAILED"], Ok(())), (0, 2, 0));
    }

    #[test]
    fn a_test_that_skips_itself_is_not_counted_as_passed() {
        let lines = ["SKIP a::b: no tool", "test c ... ok", "test a::b ... ok"];
        assert_eq!(tally(&lines, Ok(())), (1, 0, 1));
        // With one thread.
        let lines = ["test a ... ", "SKIP main: no tool", "ok", "test b ... SKIP main: no: tool", "ok"];
        assert_eq!(tally(&lines, Ok(())), (0, 0, 2));
        assert_eq!(tally(&["SKIP: no tool", "test a ... ok"], Ok(())), (1, 1, 0), "of what?");
    }

    #[test]
    fn a_test_and_its_own_lines_in_between_are_one() {
        let lines = ["test a ... states: 7", "ok", "test b ... ", "states: 9", "FAILED", "ok"];
        assert_eq!(tally(&lines, Ok(())), (1, 1, 0));
    }

    #[test]
    fn an_error_without_a_fail_is_one_failure() {
        assert_eq!(tally(&["PASS a"], error()), (1, 1, 0));
        assert_eq!(tally(&["FAIL a: why"], error()), (0, 1, 0));
    }

    #[test]
    fn a_suite_that_ran_no_test_fails() {
        assert_eq!(tally(&["nothing"], Ok(())), (0, 1, 0));
        assert_eq!(tally(&["SKIP a: no tool"], Ok(())), (0, 0, 1));
    }

    #[test]
    fn a_log_is_signed_behind_all_that_the_suite_has_said() -> Result<()> {
        let log = std::env::temp_dir().join(format!("tatcell-signed-{}", std::process::id()));
        let mut report = Report::new("suite", Box::new(std::fs::File::create(&log)?));
        report.line("PASS a");
        // What a program says of itself is no end of the suite.
        report.note("1 passed, 0 failed, 0 skipped");
        ensure!(End::of(&std::fs::read_to_string(&log)?, "suite").is_none());
        let tally = report.close(Ok(())).tally;
        sign(&log, "suite", tally, None, None)?;
        let text = std::fs::read_to_string(&log)?;
        ensure!(text.ends_with("\nend of suite: 1 passed, 0 failed, 0 skipped\n"), "{text}");
        let is_signed = |text: &str, suite: &str| End::of(text, suite).is_some();
        ensure!(
            is_signed(&text, "suite") && !is_signed(&text, "suit") && !is_signed(text.trim_end(), "suite")
        );
        ensure!(!is_signed(&format!("{text}PASS b\n"), "suite"), "more was said");
        ensure!(!is_signed(&text.replace("0 failed", "some failed"), "suite"), "no counts");
        for (form, tree) in
            [(None, None), (Some("in part"), None), (None, Some("ab12")), (Some("quick"), Some("ab12"))]
        {
            sign(&log, "suite", Tally { failed: 3, ..tally }, form, tree)?;
            let text = std::fs::read_to_string(&log)?;
            let end = End::of(&text, "suite").context("an end")?;
            ensure!(end.form == form && end.tree == tree, "{text}");
            ensure!(end.tally.passed == 1 && end.tally.failed == 3 && end.tally.skipped == 0, "{text}");
        }
        std::fs::remove_file(log).map_err(Into::into)
    }

    fn sh(script: &str) -> Command {
        let mut program = Command::new("sh");
        program.args(["-c", script]);
        program
    }

    #[test]
    fn a_program_that_dies_or_claims_nothing_is_a_failure() -> Result<()> {
        for (script, counts) in [
            ("echo PASS a; kill -9 $$", (1, 1)),
            ("echo a", (0, 1)),
            ("echo FAIL a: why; exit 1", (0, 1)),
            ("echo PASS a", (1, 0)),
        ] {
            let mut report = Report::new("suite", Box::new(std::io::sink()));
            report.program("sh", sh(script))?;
            let tally = report.close(Ok(())).tally;
            assert_eq!((tally.passed, tally.failed), counts, "{script}");
        }
        Ok(())
    }

    #[test]
    fn tests_of_which_none_ran_are_an_error_though_others_did() -> Result<()> {
        let mut report = Report::new("suite", Box::new(std::io::sink()));
        report.lines_of(sh("echo test a ... ok"))?;
        assert!(report.lines_of(sh("echo 'running 0 tests'; echo 'test b ... ignored'")).is_err());
        report.lines_of(sh("echo 'SKIP c: no tool'"))
    }
}
