//! Other measurements of the same run that show the cause of a missed goal: lines under it, after those of its floor
//! ([`restated`](crate::restated)).
//!
//! ```text
//!  half denied   the bare operations if half of the words, in no order, are swapped, as for requests that pass:
//!                every second branch is mispredicted there too
//!  two threads   how long a line takes that the other thread wrote last, if lines are shared
//!  parts         the same call over another table: the other differences of such a pair
//!  peers         what their medians are worth
//! ```

use crate::goal::Goal;
use crate::suite::Suite;

pub fn of(goal: &Goal, suite: &Suite) -> Vec<String> {
    let line = match goal {
        Goal::Times(_, row, _) if row.ends_with("_mixed") => half(suite),
        Goal::Times(_, row, _) if row.starts_with("cost.") => again(suite),
        Goal::Faster(_, one, _) if shares_lines(one) => handed_over(suite, one),
        _ => None,
    };
    line.into_iter().collect()
}

/// What a peer's median is worth: eight visits of ten lie between these.
pub fn spread(suite: &Suite, theirs: &str) -> Option<String> {
    let row = suite.row(theirs)?;
    let (low, high) = row.spread();
    Some(format!("theirs: {:.1} ns by median, {low:.1} to {high:.1} in four of five visits", row.median()))
}

fn half(suite: &Suite) -> Option<String> {
    let floor = "floor1e6.ahead64";
    let [all, half] = [floor, &format!("{floor}_half")].map(|id| suite.row(id));
    let (all, half) = (all?.min(), half?.min());
    Some(format!(
        "bare operations, {all:.1} ns where all are swapped, {half:.1} where half are in no order: {:.2} x",
        half / all
    ))
}

fn again(suite: &Suite) -> Option<String> {
    let [again, admit] = ["cost.again", "cost.admit"].map(|id| suite.row(id));
    let (again, admit) = (again?, admit?);
    Some(format!(
        "the same call over another table (cost.again): {:.2} x cost.admit by minimum, {:.2} x by median",
        again.min() / admit.min(),
        again.median() / admit.median()
    ))
}

/// A lease asks its cell once in 4096 decisions, and who is refused writes nothing.
fn shares_lines(row: &str) -> bool {
    !["threads.lease", "threads.denied"].iter().any(|name| row.starts_with(name))
}

fn handed_over(suite: &Suite, one: &str) -> Option<String> {
    let (each, line) = (suite.row(one)?.min(), suite.row("threads.handover")?.min());
    Some(format!(
        "a line that the other thread has written last takes {line:.0} ns; a decision of one thread alone {each:.1}"
    ))
}
