//! What was measured of the cause of a goal that is missed, in the same run: lines under it.
//!
//! ```text
//!  beside a floor   the same floor with as many other instructions between its swaps as the row has. The run has it
//!                   with none and with 80; between and beyond, a straight line: instructions between two locked swaps
//!                   cost their retirement, whatever they are. Counts are of the row of 1e3 keys: the code is the same.
//!  half denied      the bare operations where half of the words in no order are swapped, as for requests that pass:
//!                   every other branch is mispredicted there, too
//!  two threads      the bare operations on two threads: what the machine leaves to be had; or how long a line takes
//!                   that the other thread has written last
//!  instructions     those of the floor that hashes, searches and swaps, and decides nothing
//!  others           instructions of both, where they were counted
//! ```
//!
//! A goal of which the floor of as many instructions takes as long is refused by the machine, not by the table: what is
//! asked for then is fewer instructions, and the ratio to that floor is what remains to be judged.

use crate::count::Counts;
use crate::goals::Goal;
use crate::suite::Suite;

/// Other instructions in the floors that have some.
const OTHERS: f64 = 80.0;

pub fn of(goal: &Goal, suite: &Suite, counts: &Counts) -> Vec<String> {
    let line = match goal {
        Goal::Times(_, row, floor) if floor.starts_with("floor1e") => {
            beside_floor(suite, counts, row, floor).or_else(|| instructions(counts, row, floor))
        }
        Goal::Times(_, row, _) if row.ends_with("_mixed") => half(suite, counts, row),
        Goal::Faster(_, one, two) => threads(suite, one, two),
        Goal::Times(_, a, b) | Goal::Beside(_, a, b) | Goal::Multiple(_, a, b) | Goal::More(_, a, b) => {
            instructions(counts, a, b)
        }
        Goal::Instructions(_, row) => bare_call(counts, row),
        Goal::Ns(_, row) => alone(counts, row),
    };
    line.into_iter().collect()
}

/// What a peer's median is worth: nine visits of ten lie between these.
pub fn spread(suite: &Suite, theirs: &str) -> Option<String> {
    let row = suite.row(theirs)?;
    let (low, high) = row.spread();
    Some(format!("theirs: {:.1} ns by median, {low:.1} to {high:.1} in four of five visits", row.median()))
}

fn beside_floor(suite: &Suite, counts: &Counts, row: &str, floor: &str) -> Option<String> {
    let (bare, full) = (suite.row(floor)?.min(), suite.row(&format!("{floor}_80"))?.min());
    let small = |id: &str, size: &str| Some(format!("{size}.{}", id.split_once('.')?.1));
    let decision = counts.get(&small(row, "table1e3")?).ok()?;
    let own = counts.get(&small(floor, "floor1e6")?).ok()?;
    let same = bare + (full - bare) * (decision - own) / OTHERS;
    let times = suite.row(row)?.min() / same;
    Some(format!(
        "{decision:.0} instructions; the floor has {own:.0}, and with as many takes {same:.1} ns: {times:.2} times that"
    ))
}

fn half(suite: &Suite, counts: &Counts, row: &str) -> Option<String> {
    let floor = "floor1e6.ahead64";
    let [all, half] = [floor, &format!("{floor}_half")].map(|id| suite.row(id));
    let (all, half, own) = (all?.min(), half?.min(), counts.get(&twin(row)).ok());
    let own = own.map_or(String::new(), |own| format!("{own:.0} instructions; "));
    Some(format!(
        "{own}bare operations, {all:.1} ns where all are swapped, {half:.1} where half are in no order: {:.2} x",
        half / all
    ))
}

fn bare_call(counts: &Counts, row: &str) -> Option<String> {
    let (own, floor) = (counts.get(row).ok()?, counts.get("floor1e3.single").ok()?);
    let more = own - floor;
    Some(format!(
        "hash, search and swap alone, with loop and key, take {floor:.0} instructions; {more:.0} are left"
    ))
}

fn alone(counts: &Counts, row: &str) -> Option<String> {
    Some(format!("{:.0} instructions", counts.get(row).ok()?))
}

fn threads(suite: &Suite, one: &str, two: &str) -> Option<String> {
    let (floor, what) = match two {
        _ if two.contains("hot") => ("threads.floorhot", "one word, swapped until won"),
        _ if two.contains("ahead64") => ("threads.floor64", "words of their own on lines of both"),
        _ => {
            let (each, line) = (suite.row(one)?.min(), suite.row("threads.handover")?.min());
            return Some(format!(
                "a line that the other thread has written last, as half of them are, takes {line:.0} ns; a decision of \
                 one thread alone {each:.0}"
            ));
        }
    };
    let [one, two] = [1, 2].map(|n| suite.row(&format!("{floor}_{n}")));
    let (one, two) = (one?.min(), two?.min());
    Some(format!("bare operations, {what}: {one:.1} ns by one thread, {two:.1} by two: {:.2} x", one / two))
}

fn instructions(counts: &Counts, a: &str, b: &str) -> Option<String> {
    let [a, b] = [a, b].map(|id| counts.get(&twin(id)).ok());
    Some(format!("{:.0} instructions against {:.0}", a?, b?))
}

/// The row of 1e3 keys, which is the one that is counted.
fn twin(id: &str) -> String {
    match id {
        "c.single1e6" => "c.single1e3".into(),
        "c.ahead64" => "c.ahead64_1e3".into(),
        _ => id.replace("1e6.", "1e3.").replace("1e7.", "1e3."),
    }
}
