//! Goals that hardware may refuse, restated: each as a ratio to a floor that does the same number of instructions, or
//! that has the same to do in another way, measured in the same run. The goal itself stays as it is and is judged as
//! it is; under one that is missed stand the floor and how far the row is from that.
//!
//! ```text
//!  Same           a floor of bare operations over the same memory in the same order, with as many other instructions
//!                 between them as the row has. The run has it with none and with N (its row `_N`); between and
//!                 beyond, a straight line: instructions between two locked swaps cost their retirement, whatever they
//!                 are. Counts are of the row of 1e3 keys: the code is the same.
//!  Bare           a floor as it is
//!  Gain           what a second thread brings to the floor; its `_1` and `_2` have other instructions of their own
//!  Two            what the floor takes on two threads: of single calls, which alone wait for their search, so that
//!                 their gain and the floor's say little of each other
//!  Call           Rust's row, and what the C call of a bare operation takes above that operation in Rust
//!  Instructions   those of a floor, or of the row beside it: of pairs that differ in nothing else, or too fast to time
//!  More           so many instructions more than a floor
//! ```
//!
//! A goal that the floor misses too is refused by the machine, not by the table: "itself" is what the goal would show
//! if the row took as long as the floor.

use crate::count::{counted, Counts};
use crate::goals::{name, Found, Goal};
use crate::suite::Suite;

pub enum Floor {
    Same(&'static str, u32),
    Bare(&'static str),
    Gain(&'static str),
    Two(&'static str),
    Call(&'static str, &'static str),
    Instructions(&'static str),
    More(&'static str),
}

use Floor::{Bare, Call, Gain, Instructions, More, Same, Two};

pub struct Restated {
    pub floor: Floor,
    pub wanted: f64,
    pub why: &'static str,
    /// The goals by the names under which they are printed.
    pub goals: &'static [&'static str],
}

const fn restated(floor: Floor, wanted: f64, why: &'static str, goals: &'static [&'static str]) -> Restated {
    Restated { floor, wanted, why, goals }
}

const BETWEEN: &str = "what lies between two swaps costs its retirement";
const WINDOW: &str = "with more instructions a processor looks ahead to fewer lines";
const REFUSED: &str = "a refusal saves the swap and nothing else";
const OWNED: &str = "one owner saves the lock and nothing else";
const NEW: &str = "a new key needs three looks at two lines and two swaps";
const LINES: &str = "lines of both threads go to and fro; 1.8 is 0.9 of two";
const TRANSFERS: &str = "two threads wait for the lines that the other one has written";
const ONE_WORD: &str = "one word is at one processor at a time";
const OWN: &str = "processors share their clock and caches; 1.8 is 0.9 of two";
const CALL: &str = "a call from C brings its arguments, which have to be looked at";
const INLINE: &str = "the same check by another compiler; a tenth of a nanosecond is two instructions";
const SMALL: &str = "whatever the memory does: it swings by more than the part costs";

pub const RESTATED: &[Restated] = &[
    // Cells.
    restated(Same("floor.cmpxchg", 20), 1.1, BETWEEN, &["cell.conforming / floor.cmpxchg"]),
    restated(Bare("floor.denied"), 1.25, "limit and cost have to be looked at", &["cell.denied"]),
    restated(
        More("floor.denied"),
        12.0,
        "limit and cost have to be looked at",
        &["cell.denied - floor.load", "cell.denied_const - floor.load"],
    ),
    restated(Same("floor.store", 20), 1.25, "the same without a decision", &["cell.exclusive"]),
    // Bursts beside floors, and beside peers.
    restated(
        Same("floor1e6.ahead64", 80),
        1.25,
        BETWEEN,
        &[
            "table1e6.ahead64 / floor1e6.ahead64",
            "table1e6.then64 / floor1e6.ahead64",
            "peer1e6.hash_srtcm_bulk32 / table1e6.ahead64",
            "peer1e6.foldhash / table1e6.ahead64",
            "peer1e6.governor / table1e6.ahead64",
            "c.ahead64 / table1e6.ahead64",
            "c.next32 / table1e6.ahead32",
        ],
    ),
    restated(
        Same("floor1e7.ahead64", 80),
        1.25,
        BETWEEN,
        &[
            "table1e7.ahead64 / floor1e7.ahead64",
            "table1e7.then64 / floor1e7.ahead64",
            "peer1e7.hash_srtcm_bulk32 / table1e7.ahead64",
            "peer1e7.foldhash / table1e7.ahead64",
            "peer1e7.governor / table1e7.ahead64",
        ],
    ),
    restated(
        Same("floor1e6.next64", 80),
        1.5,
        "both lines of 64 keys are asked for at once",
        &["table1e6.next64 / floor1e6.ahead64"],
    ),
    restated(
        Same("floor1e7.next64", 80),
        1.5,
        "both lines of 64 keys are asked for at once",
        &["table1e7.next64 / floor1e7.ahead64"],
    ),
    restated(
        Same("floor1e6.two_phase32", 80),
        1.4,
        BETWEEN,
        &["table1e6.burst32 / floor1e6.two_phase32", "table1e6.prepared32 / floor1e6.two_phase32"],
    ),
    restated(
        Same("floor1e7.two_phase32", 80),
        1.4,
        BETWEEN,
        &["table1e7.burst32 / floor1e7.two_phase32", "table1e7.prepared32 / floor1e7.two_phase32"],
    ),
    // Single calls.
    restated(
        Same("floor1e6.random", 80),
        1.25,
        WINDOW,
        &[
            "table1e6.single / floor1e6.single",
            "peer1e6.foldhash / table1e6.single",
            "c.single1e6 / table1e6.single",
        ],
    ),
    // Bursts beside each other.
    restated(
        Same("floor1e3.ahead64", 80),
        1.25,
        BETWEEN,
        &["c.ahead32_1e3 / table1e3.ahead32", "c.ahead64_1e3 / table1e3.ahead64"],
    ),
    restated(
        Same("floor1e3.ahead64_load", 80),
        1.25,
        REFUSED,
        &["table1e3.ahead64_denied / table1e3.ahead64", "c.ahead64_denied_1e3 / table1e3.ahead64_denied"],
    ),
    restated(
        Same("floor1e6.ahead64_load", 80),
        1.25,
        REFUSED,
        &["table1e6.ahead64_denied / table1e6.ahead64"],
    ),
    restated(
        Same("floor1e6.ahead64_half", 80),
        1.25,
        "every other branch is mispredicted",
        &["table1e6.ahead64_mixed / table1e6.ahead64"],
    ),
    restated(
        Same("floor1e3.ahead64_store", 80),
        1.25,
        OWNED,
        &[
            "table1e3.exclusive_ahead64 / table1e3.ahead64",
            "c.exclusive_ahead64_1e3 / table1e3.exclusive_ahead64",
        ],
    ),
    restated(
        Same("floor1e6.ahead64_store", 80),
        1.25,
        OWNED,
        &["table1e6.exclusive_ahead64 / table1e6.ahead64"],
    ),
    restated(
        Same("floor1e6.insert_ahead64", 240),
        1.25,
        NEW,
        &["churn.ahead64 / table1e6.ahead64", "churn.next32 / table1e6.next32"],
    ),
    restated(Same("floor1e6.insert", 240), 1.25, NEW, &["churn.single / table1e6.single"]),
    // Two threads.
    restated(
        Gain("threads.floor64_52"),
        0.9,
        LINES,
        &["threads.ahead64_1 / threads.ahead64_2", "threads.stagger_ahead64_1 / threads.stagger_ahead64_2"],
    ),
    restated(
        Two("threads.floor1_68"),
        1.25,
        TRANSFERS,
        &["threads.single_1 / threads.single_2", "threads.stagger_single_1 / threads.stagger_single_2"],
    ),
    restated(Gain("threads.1e8_floor64_52"), 0.9, LINES, &["threads.1e8_ahead64_1 / threads.1e8_ahead64_2"]),
    restated(Two("threads.1e8_floor1_68"), 1.25, TRANSFERS, &["threads.1e8_single_1 / threads.1e8_single_2"]),
    restated(
        Gain("threads.floorown"),
        0.9,
        OWN,
        &["threads.lease_1 / threads.lease_2", "threads.denied_1 / threads.denied_2"],
    ),
    restated(
        Gain("threads.floorhot"),
        0.9,
        ONE_WORD,
        &["threads.hot_1 / threads.hot_2", "threads.hot_key_1 / threads.hot_key_2"],
    ),
    restated(Gain("paced.floor64_1mpps"), 0.9, LINES, &["paced.ahead64_1mpps_1 / paced.ahead64_1mpps_2"]),
    restated(Gain("paced.floor64_10mpps"), 0.9, LINES, &["paced.ahead64_10mpps_1 / paced.ahead64_10mpps_2"]),
    restated(
        Gain("paced.floor64_100mpps"),
        0.9,
        LINES,
        &["paced.ahead64_100mpps_1 / paced.ahead64_100mpps_2"],
    ),
    restated(Two("paced.floor1_1mpps"), 1.25, TRANSFERS, &["paced.single_1mpps_1 / paced.single_1mpps_2"]),
    restated(Two("paced.floor1_10mpps"), 1.25, TRANSFERS, &["paced.single_10mpps_1 / paced.single_10mpps_2"]),
    restated(
        Two("paced.floor1_100mpps"),
        1.25,
        TRANSFERS,
        &["paced.single_100mpps_1 / paced.single_100mpps_2"],
    ),
    // Instructions.
    restated(
        Instructions("floor1e3.single"),
        1.5,
        "hash, search and swap, loop and key take these, and decide nothing",
        &["table1e3.single", "table1e3.single_denied", "table1e3.burst32", "table1e3.ahead64"],
    ),
    // Parts.
    restated(
        Instructions("cost.admit"),
        1.05,
        SMALL,
        &[
            "cost.counters / cost.admit",
            "cost.inherit / cost.admit",
            "cost.deny / cost.admit",
            "cost.sampled / cost.admit",
        ],
    ),
    restated(Instructions("cost.one_line"), 1.05, SMALL, &["cost.two_lines / cost.one_line"]),
    // C.
    restated(Call("c.floor_conforming", "floor.cmpxchg"), 1.15, CALL, &["c.conforming / cell.conforming"]),
    restated(Call("c.floor_denied", "floor.load"), 1.15, CALL, &["c.denied / cell.denied"]),
    restated(Call("c.floor_exclusive", "floor.store"), 1.15, CALL, &["c.exclusive / cell.exclusive"]),
    restated(Call("c.floor_lease", "floor.store"), 1.15, CALL, &["c.lease / cell.lease"]),
    restated(Call("c.floor_single", "floor.cmpxchg"), 1.15, CALL, &["c.single1e3 / table1e3.single"]),
    restated(Instructions("cell.conforming"), 1.15, INLINE, &["c.inline / cell.conforming"]),
    restated(Instructions("cell.denied"), 1.15, INLINE, &["c.inline_denied / cell.denied"]),
    restated(Instructions("cell.exclusive"), 1.15, INLINE, &["c.inline_exclusive / cell.exclusive"]),
];

/// The lines under a goal that is missed, and whether its restated form is met: None where that cannot be judged.
pub fn of(goal: &Goal, suite: &Suite, counts: &Counts) -> (Vec<String>, Option<bool>) {
    let name = name(goal);
    let Some(restated) = RESTATED.iter().find(|restated| restated.goals.contains(&name.as_str())) else {
        return (Vec::new(), None);
    };
    match measure(restated, goal, suite, counts) {
        Ok((text, found)) => {
            let sign = if found.at_least { ">=" } else { "<=" };
            let (is, wanted, verdict) = (found.is, found.wanted, found.verdict());
            let times = match (&restated.floor, found.unit) {
                (Two(_), _) => "x that by two",
                (_, "x") => "x that",
                _ => "instructions more than that",
            };
            let line = format!("restated: {is:.2} {times}, {sign} {wanted}: {verdict}; {}", restated.why);
            (vec![text, line], Some(found.spare() >= 0.0))
        }
        Err(why) => (vec![format!("restated: not judged: {why}")], None),
    }
}

/// What the floor shows, and the row beside it.
fn measure(
    restated: &Restated,
    goal: &Goal,
    suite: &Suite,
    counts: &Counts,
) -> Result<(String, Found), String> {
    let row = goal.judged();
    let found = |is: f64, at_least, unit| Found {
        is,
        by_median: is,
        wanted: restated.wanted,
        at_least,
        unit,
        median: false,
    };
    let ns = |id: &str| time(goal, suite, id);
    Ok(match restated.floor {
        Same(floor, others) => {
            let (own, decision) = (counts.get(&counted(floor))?, counts.get(&counted(row))?);
            let (bare, full) = (ns(floor)?, ns(&format!("{floor}_{others}"))?);
            let same = (bare + (full - bare) * (decision - own) / f64::from(others)).max(bare);
            let text = format!(
                "{decision:.0} instructions; {floor} has {own:.0}, and with as many takes {same:.1} ns{}",
                itself(goal, suite, same)
            );
            (text, found(ns(row)? / same, false, "x"))
        }
        Bare(floor) => {
            let same = ns(floor)?;
            (
                format!("{floor} takes {same:.2} ns{}", itself(goal, suite, same)),
                found(ns(row)? / same, false, "x"),
            )
        }
        Gain(floor) => {
            let gain = |id: &str| Ok::<_, String>(ns(&format!("{id}_1"))? / ns(&format!("{id}_2"))?);
            let (one, two) = (ns(&format!("{floor}_1"))?, ns(&format!("{floor}_2"))?);
            let own = gain(row.trim_end_matches("_2"))?;
            let text =
                format!("{floor}: {one:.1} ns by one thread, {two:.1} by two, itself {:.2} x", one / two);
            (text, found(own * two / one, true, "x"))
        }
        Two(floor) => {
            let [one, two] = [1, 2].map(|n| ns(&format!("{floor}_{n}")));
            let (one, two) = (one?, two?);
            let text =
                format!("{floor}: {one:.1} ns by one thread, {two:.1} by two, itself {:.2} x", one / two);
            (text, found(ns(row)? / two, false, "x"))
        }
        Call(c, bare) => {
            let Goal::Times(_, _, rust) = goal else { return Err("it has no row of Rust".into()) };
            let (call, rust) = ((ns(c)? - ns(bare)?).max(0.0), ns(rust)?);
            let text = format!(
                "{c} takes {call:.2} ns more than {bare}; with that {rust:.2} ns are {:.2}{}",
                rust + call,
                itself(goal, suite, rust + call)
            );
            (text, found(ns(row)? / (rust + call), false, "x"))
        }
        Instructions(floor) => {
            let (own, least) = (counts.get(&counted(row))?, counts.get(&counted(floor))?);
            (format!("{own:.1} instructions; {floor} has {least:.1}"), found(own / least, false, "x"))
        }
        More(floor) => {
            let (own, least) = (counts.get(row)?, counts.get(floor)?);
            (format!("{own:.0} instructions; {floor} has {least:.0}"), found(own - least, false, "ins"))
        }
    })
}

/// By medians, where the goal is judged so.
fn time(goal: &Goal, suite: &Suite, id: &str) -> Result<f64, String> {
    let row = suite.row(id).ok_or_else(|| format!("{id}: {}", suite.why_absent(id)))?;
    Ok(if matches!(goal, Goal::Beside(..)) { row.median() } else { row.min() })
}

/// What the goal would show of a row that took as long as its floor.
fn itself(goal: &Goal, suite: &Suite, floor: f64) -> String {
    let shown = match goal {
        Goal::Times(_, _, to) => time(goal, suite, to).map(|to| floor / to),
        Goal::Beside(_, peer, _) => time(goal, suite, peer).map(|peer| peer / floor),
        _ => return String::new(),
    };
    shown.map_or(String::new(), |shown| format!(", itself {shown:.2} x"))
}

#[cfg(test)]
#[path = "restated_tests.rs"]
mod tests;
