//! Runs the suites of `test` on two lanes, and then those that judge time with nothing beside them.
//!
//! Cargo locks the folder that it builds in, so suites that build in the same one would wait for each other: they are
//! on one lane, in the order of the table. What builds where nobody else does is taken by the lane that is through
//! first. Each suite writes a log of its own. Its line is said when it and all suites
//! before it in the table have ended, so that the order is always the same.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::Mutex;

use anyhow::{anyhow, Context as _, Result};

use crate::context::Context;
use crate::exec::tail;
use crate::report::{Closed, Report, Tally};
use crate::suites::{logged, Suite};

/// What a suite of `test` may run beside.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// It builds in cargo's usual folder.
    Usual,
    /// It builds in folders that are not the usual one, but those of others on this lane: other machines.
    Own,
    /// It builds in a folder that no suite beside it builds in: a checker's cfg, instrumented.
    Free,
    /// It judges time, and so runs with nothing beside it.
    Alone,
}

/// Those that run at the same time.
const BESIDE: [Lane; 2] = [Lane::Usual, Lane::Own];

/// Runs suites, with a log each in a folder, and says a line for each and the end of every log with a FAIL. `ready`
/// returns when what a suite needs is there. Returns the sum of what they counted.
pub fn run(
    ctx: &Context,
    asked: &[&Suite],
    logs: &Path,
    ready: impl Fn(&Context, &Suite) + Sync,
    say: impl FnMut(&str),
) -> Result<Tally> {
    let mut lines = Lines { asked, logs, say, ended: Vec::new(), said: 0, sum: Tally::default() };
    lines.ended.resize_with(asked.len(), || None);
    let of = |lane| asked.iter().enumerate().filter(move |(_, suite)| suite.lane == lane);
    // Before any thread runs: each has a shell of its own.
    let contexts = [ctx.another()?, ctx.another()?];
    let free = &Mutex::new(of(Lane::Free));
    std::thread::scope(|scope| {
        let (sender, ended) = channel();
        let mut lanes = Vec::new();
        for (ctx, lane) in contexts.into_iter().zip(BESIDE) {
            let (sender, ready) = (sender.clone(), &ready);
            lanes.push(scope.spawn(move || {
                let taken = std::iter::from_fn(|| free.lock().ok()?.next());
                for (number, suite) in of(lane).chain(taken) {
                    ready(&ctx, suite);
                    if sender.send((number, one(&ctx, suite, logs))).is_err() {
                        return;
                    }
                }
            }));
        }
        drop(sender);
        for (number, closed) in ended {
            lines.end(number, closed);
        }
        // A panic of a lane must not end the others: what it left out is a failure below.
        for lane in lanes {
            drop(lane.join());
        }
    });
    for (number, suite) in of(Lane::Alone) {
        ready(ctx, suite);
        lines.end(number, one(ctx, suite, logs));
    }
    lines.close()
}

fn log_of(logs: &Path, suite: &Suite) -> PathBuf {
    logs.join(format!("{}.log", suite.name))
}

/// Runs a suite; what it says goes to its log.
fn one(ctx: &Context, suite: &Suite, logs: &Path) -> Closed {
    let place = log_of(logs, suite);
    let closed = File::create(&place).context("has no log");
    let closed = closed.and_then(|log| logged(ctx, suite, &place, Box::new(log)));
    closed.unwrap_or_else(|e| broken(suite, &format!("{e:#}")))
}

/// A suite that did not run, or not to its end: one failure.
fn broken(suite: &Suite, why: &str) -> Closed {
    Report::new(suite.name, Box::new(std::io::sink())).close(Err(anyhow!("{why}")))
}

/// What has ended, and how much of it has been said.
struct Lines<'a, S> {
    asked: &'a [&'a Suite],
    logs: &'a Path,
    say: S,
    ended: Vec<Option<Closed>>,
    said: usize,
    sum: Tally,
}

impl<S: FnMut(&str)> Lines<'_, S> {
    fn end(&mut self, number: usize, closed: Closed) {
        if let Some(place) = self.ended.get_mut(number) {
            *place = Some(closed);
        }
        while let (Some(suite), Some(Some(closed))) = (self.asked.get(self.said), self.ended.get(self.said)) {
            let Tally { passed, failed, skipped } = closed.tally;
            let (name, seconds) = (suite.name, closed.seconds);
            (self.say)(&format!(
                "{name:<18} {passed:>5} passed {failed:>3} failed {skipped:>3} skipped {seconds:>5} s"
            ));
            for line in &closed.trouble {
                (self.say)(line);
            }
            self.sum += closed.tally;
            self.said += 1;
        }
    }

    /// Says what is left.
    fn close(mut self) -> Result<Tally> {
        for (number, suite) in self.asked.iter().enumerate() {
            if self.ended.get(number).is_some_and(Option::is_none) {
                self.end(number, broken(suite, "did not come to its end"));
            }
        }
        for (suite, ended) in self.asked.iter().zip(&self.ended) {
            if ended.as_ref().is_some_and(|closed| closed.tally.failed > 0) {
                let log = log_of(self.logs, suite);
                let name = log.file_name().unwrap_or_default().to_string_lossy();
                (self.say)(&format!("--- end of {name}"));
                let text = std::fs::read(&log).unwrap_or_default();
                (self.say)(&tail(&String::from_utf8_lossy(&text), 60));
            }
        }
        Ok(self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ROOT;
    use crate::report::End;
    use crate::tree;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::Barrier;

    fn passes(_: &Context, report: &mut Report) -> Result<()> {
        report.line("PASS it does");
        report.line("SKIP more: no tool");
        Ok(())
    }

    fn fails(_: &Context, report: &mut Report) -> Result<()> {
        report.line("PASS a part");
        report.line("FAIL it does not: why");
        Ok(())
    }

    fn breaks(_: &Context, _: &mut Report) -> Result<()> {
        Err(anyhow!("no compiler"))
    }

    #[expect(clippy::panic)]
    fn panics(_: &Context, _: &mut Report) -> Result<()> {
        panic!("as a test of the lanes")
    }

    type Run = fn(&Context, &mut Report) -> Result<()>;

    /// Runs suites of these names; returns the lines and the sum.
    fn lines(folder: &str, suites: &[(&'static str, Lane, Run)]) -> Result<(Vec<String>, Tally)> {
        let suites: Vec<Suite> = suites
            .iter()
            .map(|&(name, lane, run)| Suite {
                name,
                about: "",
                always: true,
                lane,
                tools: None,
                writes: &[],
                run,
            })
            .collect();
        let ctx = Context::of(Path::new(ROOT).canonicalize()?)?;
        let logs = ctx.empty_folder(&format!("lanes-test/{folder}"))?;
        let asked: Vec<&Suite> = suites.iter().collect();
        let mut said = Vec::new();
        let sum = run(&ctx, &asked, &logs, |_, _| (), |line| said.push(line.to_owned()))?;
        Ok((said, sum))
    }

    fn counts(t: Tally) -> (usize, usize, usize) {
        (t.passed, t.failed, t.skipped)
    }

    #[test]
    fn lines_come_in_the_order_of_the_table_and_are_summed() -> Result<()> {
        // The first suite ends after all of the other lane but its last.
        static ENDS: Barrier = Barrier::new(2);
        fn waits(ctx: &Context, report: &mut Report) -> Result<()> {
            ENDS.wait();
            passes(ctx, report)
        }
        let suites: [(&str, Lane, Run); 5] = [
            ("a", Lane::Usual, waits),
            ("b", Lane::Own, passes),
            ("c", Lane::Alone, passes),
            ("d", Lane::Usual, passes),
            ("e", Lane::Own, waits),
        ];
        let (said, sum) = lines("order", &suites)?;
        let first: String =
            said.iter().filter(|l| !l.starts_with("SKIP")).filter_map(|l| l.get(..1)).collect();
        assert_eq!((first.as_str(), counts(sum)), ("abcde", (5, 0, 5)));
        Ok(())
    }

    #[test]
    fn a_failure_on_either_lane_or_alone_is_counted_and_shown() -> Result<()> {
        for lane in [Lane::Usual, Lane::Own, Lane::Alone] {
            let other = if lane == Lane::Own { Lane::Usual } else { Lane::Own };
            let suites: [(&str, Lane, Run); 3] =
                [("good", other, passes), ("bad", lane, fails), ("none", lane, breaks)];
            let (said, sum) = lines("fails", &suites)?;
            assert_eq!(counts(sum), (2, 2, 1));
            let shown = ["FAIL it does not: why", "FAIL none: no compiler", "--- end of bad.log"];
            assert!(shown.iter().all(|s| said.iter().any(|l| l == s)), "{said:?}");
        }
        Ok(())
    }

    #[test]
    fn suites_that_a_lane_does_not_come_to_are_failures() -> Result<()> {
        let suites: [(&str, Lane, Run); 3] =
            [("first", Lane::Own, panics), ("second", Lane::Own, passes), ("other", Lane::Usual, passes)];
        let (_, sum) = lines("panics", &suites)?;
        assert_eq!(counts(sum), (1, 2, 1));
        // What did not come to its end has no log that says so.
        let logs = Path::new(ROOT).join("target/lanes-test/panics");
        let log = |name: &str| std::fs::read_to_string(logs.join(format!("{name}.log"))).unwrap_or_default();
        // As it is signed, it is of this tree.
        let other = log("other");
        let end = End::of(&other, "other").context("other has ended")?;
        assert_eq!(end.tree.is_some(), tree::of(Path::new(ROOT)).is_some());
        assert!(End::of(&log("first"), "first").is_none());
        Ok(())
    }

    #[test]
    fn what_builds_for_itself_is_taken_by_the_lane_that_is_through() -> Result<()> {
        // Each waits for the other, so one lane alone would never end; behind them the usual lane is through first.
        static BOTH: Barrier = Barrier::new(2);
        fn meets(ctx: &Context, report: &mut Report) -> Result<()> {
            BOTH.wait();
            passes(ctx, report)
        }
        let suites: [(&str, Lane, Run); 4] = [
            ("own", Lane::Own, meets),
            ("free", Lane::Free, meets),
            ("one", Lane::Free, meets),
            ("two", Lane::Free, meets),
        ];
        assert_eq!(counts(lines("free", &suites)?.1), (4, 0, 4));
        Ok(())
    }

    #[test]
    fn what_judges_time_runs_with_nothing_beside_it() -> Result<()> {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        // The two lanes do run at the same time, or this never ends.
        static BOTH: Barrier = Barrier::new(2);
        fn beside(ctx: &Context, report: &mut Report) -> Result<()> {
            RUNNING.fetch_add(1, Ordering::SeqCst);
            BOTH.wait();
            let result = passes(ctx, report);
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            result
        }
        fn alone(_: &Context, report: &mut Report) -> Result<()> {
            report.claim("nobody else runs", || {
                anyhow::ensure!(RUNNING.load(Ordering::SeqCst) == 0, "someone does");
                Ok(())
            });
            Ok(())
        }
        let suites: [(&str, Lane, Run); 3] =
            [("alone", Lane::Alone, alone), ("own", Lane::Own, beside), ("usual", Lane::Usual, beside)];
        assert_eq!(counts(lines("alone", &suites)?.1), (3, 0, 2));
        Ok(())
    }
}
