//! Holds a row against the logs of its suites.

use std::collections::BTreeMap;

use super::{Check, Row, READ};
use crate::report::End;
use crate::said::{name_of, Said, Skips};

/// As many skips are told of a row that holds.
const TOLD: usize = 3;

/// How a row ended.
#[derive(Debug, PartialEq)]
pub enum Ended {
    /// So many lines passed; and what of its checks was not looked at, where something was not.
    Holds(usize, Option<String>),
    Skipped(String),
    Fails(String),
    /// No log tells of a suite of it, and why.
    Untold(String),
}

/// What the suites have said last.
pub struct Logs {
    /// Their logs, by name; a suite that is not there has none.
    pub texts: BTreeMap<String, String>,
    /// All suites were to have one.
    pub all: bool,
    /// The tree that they are to be of, where they are read and git knows it.
    pub tree: Option<String>,
    /// They are to be of whole suites, and a row of one that has left no such log is not judged: the page keeps what
    /// an earlier run has found.
    pub keeps: bool,
}

/// What a suite claims of a row.
struct Claims<'a> {
    suite: &'a str,
    passes: Vec<&'a str>,
    fails: Vec<&'a str>,
    skips: Vec<&'a str>,
}

impl<'a> Claims<'a> {
    /// Of a log that has come to its end without a failure.
    fn of(suite: &'a str, logs: &'a Logs) -> Result<Claims<'a>, Ended> {
        let untold = |why: &str| Err(Ended::Untold(format!("{suite} {why}")));
        let Some(log) = logs.texts.get(suite) else {
            if logs.all || !READ.contains(&suite) {
                return untold("has not run");
            }
            let how = format!("{suite} is read from its log: make {suite}, and LOGS=1 make assurance");
            return Err(Ended::Skipped(how));
        };
        let Some(end) = End::of(log, suite) else { return untold("did not come to its end") };
        if logs.tree.is_some() && end.tree != logs.tree.as_deref() {
            return untold(&format!("is of another tree: make {suite}"));
        }
        if let Some(form) = end.form.filter(|_| logs.keeps) {
            return untold(&format!("has not run in full but {form}: make {suite}"));
        }
        let mut claims = Claims { suite, passes: Vec::new(), fails: Vec::new(), skips: Vec::new() };
        let (mut skips, mut first) = (Skips::default(), None);
        for line in log.lines() {
            match Said::of(line, &mut skips) {
                Said::Pass(_) => claims.passes.push(line),
                Said::Fail(name) => {
                    claims.fails.push(line);
                    first = first.or(Some(name));
                }
                Said::Skip(rest) => claims.skips.push(rest),
                Said::Nameless => first = first.or(Some(line)),
                Said::Other => {}
            }
        }
        match end.tally.failed {
            0 => Ok(claims),
            failed => {
                let first = short(first.unwrap_or("unnamed"));
                Err(Ended::Fails(format!("{suite}: {failed} failed, first: {first}")))
            }
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(90).collect()
}

/// Holds a row against the lines of its suites.
pub fn judge(row: &Row, logs: &Logs) -> Ended {
    let (mut suites, mut untold) = (Vec::new(), None);
    for suite in &row.suites {
        match Claims::of(suite, logs) {
            Ok(claims) => suites.push(claims),
            Err(Ended::Untold(why)) if !logs.keeps => return Ended::Fails(why),
            Err(ended @ Ended::Fails(_)) => return ended,
            // A failure of another suite fails the row all the same.
            Err(ended) => untold = untold.or(Some(ended)),
        }
    }
    if let Some(ended) = untold {
        return ended;
    }
    let mut given = vec![0_usize; suites.len()];
    let (mut whole, mut parts) = (None, Vec::new());
    for check in &row.checks {
        let mut found = 0;
        let mut lacking = Vec::new();
        for (claims, given) in suites.iter().zip(&mut given).filter(|(claims, _)| check.is_of(claims.suite)) {
            if let Some(line) = claims.fails.iter().find(|line| check.is_in(line)) {
                return Ended::Fails(short(line));
            }
            let passed = claims.passes.iter().filter(|line| check.is_in(line)).count();
            let skips = claims.skips.iter().filter(|skip| check.is_skipped_by(skip));
            let lacks: Vec<&str> = skips.copied().collect();
            found += passed;
            // What a suite cannot look at is no silence of it.
            *given += passed + lacks.len();
            lacking.extend(lacks);
        }
        match lacking[..] {
            [] if found > 0 && found < check.least => {
                return Ended::Fails(format!("{found} of {} passed: {}", check.least, check.text));
            }
            [] if found == 0 => return Ended::Fails(format!("nothing that passed is called {}", check.text)),
            [first, ..] if found == 0 => whole = whole.or(Some(first.to_owned())),
            _ => parts.extend(lacking.iter().map(|skip| (*skip).to_owned())),
        }
    }
    if let Some((claims, _)) = suites.iter().zip(&given).find(|(_, given)| **given == 0) {
        return Ended::Fails(format!("no check of it has passed in {}", claims.suite));
    }
    let passed = given.iter().sum::<usize>() - parts.len();
    match whole {
        Some(why) => Ended::Skipped(why),
        None if passed == 0 => Ended::Fails("it has no check".into()),
        None => Ended::Holds(passed, told(&parts)),
    }
}

/// The first few of what was skipped, each once, and how many more. What has one reason is told by that.
fn told(skips: &[String]) -> Option<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for skip in skips {
        let reason = skip.rsplit_once(": ").map_or(skip.as_str(), |(_, reason)| reason);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, each)) if each.contains(&skip.as_str()) => {}
            Some((_, each)) => each.push(skip),
            None => reasons.push((reason, vec![skip])),
        }
    }
    let more = reasons.len().saturating_sub(TOLD);
    let more = if more > 0 { format!("; and {more} more reasons") } else { String::new() };
    let words = reasons.iter().take(TOLD).map(|(reason, each)| match each[..] {
        [one] => one.to_owned(),
        _ => format!("{} checks: {reason}", each.len()),
    });
    (!skips.is_empty()).then(|| words.collect::<Vec<_>>().join("; ") + &more)
}

impl Check {
    fn is_of(&self, suite: &str) -> bool {
        self.suite.as_ref().is_none_or(|of| of == suite)
    }

    fn is_in(&self, line: &str) -> bool {
        self.text == "*" || line.contains(&self.text)
    }

    /// By its name, or by that of its tool.
    fn is_skipped_by(&self, skip: &str) -> bool {
        let name = name_of(skip).unwrap_or_default();
        let is_tool = |part: &str| Some(part) == self.tool.as_deref();
        self.is_in(name) || name.split(": ").any(is_tool)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;
    use crate::suites;
    use anyhow::{Context as _, Result};

    /// A row of these checks and suites, held against these logs; each ends with these counts of failures.
    fn judged_by(suites: &str, checks: &str, said: &[(&str, &str, usize)], tree: Option<&str>) -> Ended {
        let rows = rows(&format!("a claim\t{suites}\t{checks}\tsome"), false).unwrap_or_default();
        let log = |(suite, text, failed): &(&str, &str, usize)| {
            let text =
                format!("{text}\nend of {suite}: 1 passed, {failed} failed, 1 skipped, of tree ab12\n");
            ((*suite).to_owned(), text)
        };
        let texts = said.iter().map(log).collect();
        let logs = Logs { texts, all: true, tree: tree.map(str::to_owned), keeps: false };
        rows.first().map_or(Ended::Fails("no row".into()), |row| judge(row, &logs))
    }

    fn judged(checks: &str, log: &str) -> Ended {
        judged_by("test-rust", checks, &[("test-rust", log, 0)], None)
    }

    fn fails(ended: &Ended) -> bool {
        matches!(ended, Ended::Fails(_))
    }

    fn holds(passed: usize) -> Ended {
        Ended::Holds(passed, None)
    }

    #[test]
    fn a_row_holds_where_each_of_its_checks_has_passed() {
        assert_eq!(judged("one two", "test a::one ... ok\nPASS layout: two\ntest other ... ok"), holds(2));
    }

    #[test]
    fn a_check_that_is_gone_has_failed_or_was_left_out_fails_its_row() {
        assert!(fails(&judged("one two", "test one ... ok")), "gone");
        assert!(fails(&judged("one two", "test one ... ok\ntest two ... FAILED")), "failed");
        assert!(fails(&judged("one", "FAIL one: why\nPASS one")), "failed once");
        assert!(fails(&judged("one", "test one ... ignored")), "left out");
        assert!(fails(&judged("one", "it says one passed")), "a line that is no result");
        assert!(fails(&judged("one", "")), "ran nothing");
    }

    #[test]
    fn any_failure_of_a_suite_fails_each_of_its_rows() {
        let of = |log, failed| judged_by("test-rust", "one", &[("test-rust", log, failed)], None);
        assert_eq!(of("test one ... ok", 0), holds(1));
        let ended = of("test one ... ok\ntest must_fail_two ... FAILED\nFAIL three: why", 2);
        assert_eq!(ended, Ended::Fails("test-rust: 2 failed, first: must_fail_two".into()));
        let ended = of("test one ... ok\nSKIP: of what?", 1);
        assert_eq!(ended, Ended::Fails("test-rust: 1 failed, first: SKIP: of what?".into()));
        assert!(fails(&of("test one ... ok", 1)), "counted, and not told");
        let both = [("test-rust", "PASS one", 0), ("test-ffi", "PASS one\nFAIL two: why", 1)];
        assert!(fails(&judged_by("test-rust test-ffi", "one", &both, None)), "of either suite");
    }

    #[test]
    fn a_suite_that_did_not_come_to_its_end_holds_no_row() -> Result<()> {
        let rows = rows("a claim\ttest-rust\tone\tsome", false)?;
        let end = "end of test-rust: 1 passed, 0 failed, 0 skipped\n";
        for (log, holds) in [
            (format!("test one ... ok\n{end}"), true),
            (format!("test one ... ok\nFAIL two: why\n{}", end.replace("0 failed", "1 failed")), false),
            ("test one ... ok\n".into(), false),
            ("test one ... ok\n1 passed, 0 failed, 0 skipped\n".into(), false),
            (format!("{end}test one ... ok\n"), false),
            ("test one ... ok\nend of test-ffi: 1 passed, 0 failed, 0 skipped\n".into(), false),
            ("test one ... ok\nend of test-rust: \n".into(), false),
        ] {
            let texts = BTreeMap::from([("test-rust".to_owned(), log.clone())]);
            let logs = Logs { texts, all: true, tree: None, keeps: false };
            let ended: Vec<Ended> = rows.iter().map(|row| judge(row, &logs)).collect();
            assert!(matches!(&ended[..], [Ended::Holds(1, None)]) == holds, "{ended:?}: {log}");
        }
        Ok(())
    }

    #[test]
    fn a_suite_without_a_log_fails_its_row() {
        let ended = judged_by("test-rust test-ffi", "one", &[("test-rust", "test one ... ok", 0)], None);
        assert_eq!(ended, Ended::Fails("test-ffi has not run".into()));
    }

    #[test]
    fn each_suite_of_a_row_has_to_give_a_check_that_passed() {
        let both = |checks, other| {
            let said = [("test-rust", "test one ... ok\ntest two ... ok", 0), ("test-ffi", other, 0)];
            judged_by("test-rust test-ffi", checks, &said, None)
        };
        assert_eq!(
            both("one two", "PASS three"),
            Ended::Fails("no check of it has passed in test-ffi".into())
        );
        assert_eq!(both("one two", "PASS two"), holds(3));
        assert_eq!(both("test-rust:one test-ffi:two", "PASS two"), holds(2));
        assert!(fails(&both("test-rust:one test-ffi:two", "PASS one")), "the check of another suite");
        assert!(fails(&both("test-rust:one two", "PASS three")));
        assert_eq!(both("one ffi@tool", "SKIP tool: get it"), Ended::Skipped("tool: get it".into()));
    }

    #[test]
    fn as_many_have_to_pass_as_the_check_says() {
        let log = "PASS z3: a\nPASS z3: b";
        assert_eq!((judged("z3:#2", log), judged("z3:", log)), (holds(2), holds(2)));
        assert_eq!(judged("z3:#3", log), Ended::Fails("2 of 3 passed: z3:".into()));
        assert!(fails(&judged("z3:#3", "nothing")));
        let skipped = format!("{log}\nSKIP z3: c: no tool");
        assert_eq!(judged("z3:#3@z3", &skipped), Ended::Holds(2, Some("z3: c: no tool".into())));
    }

    #[test]
    fn a_log_of_another_tree_holds_no_row() {
        let of = |tree| judged_by("test-rust", "one", &[("test-rust", "PASS one", 0)], tree);
        assert_eq!((of(Some("ab12")), of(None)), (holds(1), holds(1)));
        assert_eq!(of(Some("ab13")), Ended::Fails("test-rust is of another tree: make test-rust".into()));
    }

    #[test]
    fn a_log_that_is_not_of_a_whole_suite_holds_a_short_row_alone() -> Result<()> {
        let rows = rows("a claim\ttest-rust\tone\tsome", false)?;
        let row = rows.first().context("a row")?;
        let ended = |form, keeps| {
            let log =
                format!("PASS one\nend of test-rust: 1 passed, 0 failed, 0 skipped{form}, of tree ab12\n");
            let texts = BTreeMap::from([("test-rust".to_owned(), log)]);
            judge(row, &Logs { texts, all: true, tree: Some("ab12".into()), keeps })
        };
        assert_eq!([ended("", false), ended(", quick", false), ended("", true)], [1, 1, 1].map(holds));
        assert!(matches!(ended(", quick", true), Ended::Untold(_)));
        Ok(())
    }

    #[test]
    fn a_suite_that_is_read_alone_is_skipped_where_nothing_is_read() -> Result<()> {
        let rows = rows("a claim\ttest-demo\t*\tsome", false)?;
        let row = rows.first().context("a row")?;
        for (all, skipped) in [(false, true), (true, false)] {
            let ended = judge(row, &Logs { texts: BTreeMap::new(), all, tree: None, keeps: false });
            assert!(matches!(&ended, Ended::Skipped(_)) == skipped, "{ended:?}");
        }
        assert!(READ.iter().all(|name| suites::find(name).is_some()));
        Ok(())
    }

    #[test]
    fn a_suite_that_is_not_read_hides_no_failure_of_another() -> Result<()> {
        let rows = rows("a claim\ttest-demo test-rust\t*\tsome", false)?;
        let row = rows.first().context("a row")?;
        let ended = |failed: usize| {
            let log = format!("PASS one\nend of test-rust: 1 passed, {failed} failed, 0 skipped\n");
            let texts = BTreeMap::from([("test-rust".to_owned(), log)]);
            judge(row, &Logs { texts, all: false, tree: None, keeps: false })
        };
        assert!(matches!(ended(0), Ended::Skipped(_)) && fails(&ended(1)), "{:?}", ended(1));
        Ok(())
    }

    #[test]
    fn a_row_without_its_tools_is_skipped_with_the_reason() {
        let skipped = |why: &str| Ended::Skipped(why.into());
        assert_eq!(judged("one@spin", "SKIP spin: no spin"), skipped("spin: no spin"));
        assert_eq!(judged("one@z3", "SKIP arithmetic: z3: none"), skipped("arithmetic: z3: none"));
        assert_eq!(judged("one", "SKIP the_one: no two"), skipped("the_one: no two"));
        assert_eq!(judged("one", "SKIP abi: the_one: no two"), skipped("abi: the_one: no two"));
        assert_eq!(judged("one@spin two", "PASS one\ntest two ... ok"), holds(2));
        assert_eq!(judged("*", "SKIP all: no tool"), skipped("all: no tool"));
        assert!(fails(&judged("*", "nothing")));
    }

    #[test]
    fn what_was_skipped_of_a_check_that_passed_is_told() {
        let told = |passed, why: &str| Ended::Holds(passed, Some(why.into()));
        let log = "PASS layout_by_cc\nSKIP layout_by_arm: no compiler\nSKIP other: why";
        assert_eq!(judged("layout_by_", log), told(1, "layout_by_arm: no compiler"));
        assert_eq!(judged("layout_by_cc", log), holds(1));
        assert!(matches!(judged("layout_by_cc layout_by_arm", log), Ended::Skipped(_)), "named, and skipped");
        assert_eq!(judged("*", "PASS one\nSKIP two: why\ntest three ... ok"), told(2, "two: why"));
        let many = "PASS a\nSKIP b: w\nSKIP c: w\nSKIP d: v\nSKIP e: w\nSKIP b: w";
        assert_eq!(judged("*", many), told(1, "3 checks: w; d: v"));
        let many = "PASS a\nSKIP b: s\nSKIP c: t\nSKIP d: u\nSKIP e: v\nSKIP f: w";
        assert_eq!(judged("*", many), told(1, "b: s; c: t; d: u; and 2 more reasons"));
    }

    #[test]
    fn a_test_that_skipped_itself_has_not_passed() {
        let log = "SKIP nodes_mint_nothing: no server\ntest nodes_mint_nothing ... ok";
        assert_eq!(judged("mint_nothing", log), Ended::Skipped("nodes_mint_nothing: no server".into()));
        let more = format!("{log}\ntest mint_nothing ... ok");
        let told = Ended::Holds(1, Some("nodes_mint_nothing: no server".into()));
        assert_eq!(judged("mint_nothing", &more), told);
    }

    #[test]
    fn a_skip_of_something_else_excuses_no_check() {
        assert!(fails(&judged("one", "SKIP spin: no spin")));
        assert!(fails(&judged("one@z3", "SKIP spin: no z3, and not one")));
        assert!(fails(&judged("one@spin", "SKIP spin: no spin\nFAIL one: why")));
    }
}
