//! Goals that the hardware may make impossible, restated as a ratio to a floor of the same run: one that takes as many
//! instructions, or that does the same in another way. The goal itself stays, and is judged as it is; under a missed
//! goal stand the floor and how far the row is from it.
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
//!  More           this many instructions more than a floor
//! ```
//!
//! If the floor misses a goal too, the machine prevents it, not the table: "itself" is the value of the goal if the row
//! took as long as the floor.

use crate::count::{counted, Counts};
use crate::goal::{Found, Goal};
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
}

const fn restated(floor: Floor, wanted: f64, why: &'static str) -> Restated {
    Restated { floor, wanted, why }
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
const LINKS: &str = "links are looked at each time; a prepared chain has looked at them";
const ALL_OR_NONE: &str = "all words are looked at before the first swap";
const CALL: &str = "a call from C brings its arguments, which have to be looked at";
const INLINE: &str = "the same check by another compiler; a tenth of a nanosecond is two instructions";
const SMALL: &str = "whatever the memory does: it swings by more than the part costs";

// Cells.
pub static SWAP: Restated = restated(Same("floor.cmpxchg", 20), 1.1, BETWEEN);
pub static REFUSAL: Restated = restated(Bare("floor.denied"), 1.25, "limit and cost have to be looked at");
pub static REFUSAL_MORE: Restated =
    restated(More("floor.denied"), 12.0, "limit and cost have to be looked at");
pub static STORE: Restated = restated(Same("floor.store", 20), 1.25, "the same without a decision");
// Bursts beside floors, and beside peers.
pub static AHEAD_1E6: Restated = restated(Same("floor1e6.ahead64", 80), 1.25, BETWEEN);
pub static AHEAD_1E7: Restated = restated(Same("floor1e7.ahead64", 80), 1.25, BETWEEN);
pub static NEXT_1E6: Restated =
    restated(Same("floor1e6.next64", 80), 1.5, "both lines of 64 keys are asked for at once");
pub static NEXT_1E7: Restated =
    restated(Same("floor1e7.next64", 80), 1.5, "both lines of 64 keys are asked for at once");
pub static TWO_PHASE_1E6: Restated = restated(Same("floor1e6.two_phase32", 80), 1.4, BETWEEN);
pub static TWO_PHASE_1E7: Restated = restated(Same("floor1e7.two_phase32", 80), 1.4, BETWEEN);
// Single calls.
pub static RANDOM_1E6: Restated = restated(Same("floor1e6.random", 80), 1.25, WINDOW);
// Bursts beside each other.
pub static AHEAD_1E3: Restated = restated(Same("floor1e3.ahead64", 80), 1.25, BETWEEN);
pub static LOAD_1E3: Restated = restated(Same("floor1e3.ahead64_load", 80), 1.25, REFUSED);
pub static LOAD_1E6: Restated = restated(Same("floor1e6.ahead64_load", 80), 1.25, REFUSED);
pub static HALF_1E6: Restated =
    restated(Same("floor1e6.ahead64_half", 80), 1.25, "every other branch is mispredicted");
pub static STORE_1E3: Restated = restated(Same("floor1e3.ahead64_store", 80), 1.25, OWNED);
pub static STORE_1E6: Restated = restated(Same("floor1e6.ahead64_store", 80), 1.25, OWNED);
pub static INSERT_AHEAD_1E6: Restated = restated(Same("floor1e6.insert_ahead64", 240), 1.25, NEW);
pub static INSERT_1E6: Restated = restated(Same("floor1e6.insert", 240), 1.25, NEW);
// Two threads.
pub static GAIN_BURST: Restated = restated(Gain("threads.floor64_52"), 0.9, LINES);
pub static TWO_SINGLE: Restated = restated(Two("threads.floor1_68"), 1.25, TRANSFERS);
pub static GAIN_BURST_1E8: Restated = restated(Gain("threads.1e8_floor64_52"), 0.9, LINES);
pub static TWO_SINGLE_1E8: Restated = restated(Two("threads.1e8_floor1_68"), 1.25, TRANSFERS);
pub static GAIN_OWN: Restated = restated(Gain("threads.floorown"), 0.9, OWN);
pub static GAIN_HOT: Restated = restated(Gain("threads.floorhot"), 0.9, ONE_WORD);
pub static GAIN_1M: Restated = restated(Gain("paced.floor64_1mpps"), 0.9, LINES);
pub static GAIN_10M: Restated = restated(Gain("paced.floor64_10mpps"), 0.9, LINES);
pub static GAIN_100M: Restated = restated(Gain("paced.floor64_100mpps"), 0.9, LINES);
pub static TWO_1M: Restated = restated(Two("paced.floor1_1mpps"), 1.25, TRANSFERS);
pub static TWO_10M: Restated = restated(Two("paced.floor1_10mpps"), 1.25, TRANSFERS);
pub static TWO_100M: Restated = restated(Two("paced.floor1_100mpps"), 1.25, TRANSFERS);
// Instructions.
pub static SINGLE_COUNT: Restated = restated(
    Instructions("floor1e3.single"),
    1.5,
    "hash, search and swap, loop and key take these, and decide nothing",
);
// Parts.
pub static PART_COUNT: Restated = restated(Instructions("cost.admit"), 1.05, SMALL);
pub static LINE_COUNT: Restated = restated(Instructions("cost.one_line"), 1.05, SMALL);
// Chains, ladders, addresses.
pub static CHAIN_2: Restated = restated(Instructions("c.singles2"), 1.5, LINKS);
pub static CHAIN_3: Restated = restated(Instructions("c.singles3"), 1.5, LINKS);
pub static PREPARED_2: Restated = restated(Instructions("c.singles2"), 1.5, ALL_OR_NONE);
pub static PREPARED_3: Restated = restated(Instructions("c.singles3"), 1.5, ALL_OR_NONE);
pub static PREPARED_CELLS: Restated = restated(Instructions("c.singles2_cells"), 1.5, ALL_OR_NONE);
pub static PREPARED_MIXED: Restated = restated(Instructions("c.singles2_mixed"), 1.5, ALL_OR_NONE);
pub static LADDER_4: Restated = restated(Instructions("c.singles4"), 1.5, ALL_OR_NONE);
pub static LADDER_6: Restated = restated(Instructions("c.singles5"), 1.5, ALL_OR_NONE);
pub static CHAIN_DENIED: Restated = restated(Instructions("c.singles3_denied"), 1.5, LINKS);
pub static PREPARED_DENIED: Restated = restated(Instructions("c.singles3_denied"), 1.5, ALL_OR_NONE);
pub static CELLS_DENIED_2: Restated = restated(Instructions("c.singles2_cells_denied"), 1.5, ALL_OR_NONE);
pub static CELLS_DENIED_3: Restated = restated(Instructions("c.singles3_cells_denied"), 1.5, ALL_OR_NONE);
pub static LADDER_TOLD: Restated = restated(Instructions("c.ladder6"), 1.5, "each tier says what is left");
pub static LADDERS: Restated =
    restated(Instructions("c.ladder6"), 1.0, "a burst makes its answers one by one");
pub static PER_IP: Restated =
    restated(Bare("floor1e3.single"), 1.5, "address, clock and check, nothing else");
// C.
pub static CALL_SWAP: Restated = restated(Call("c.floor_conforming", "floor.cmpxchg"), 1.15, CALL);
pub static CALL_DENIED: Restated = restated(Call("c.floor_denied", "floor.load"), 1.15, CALL);
pub static CALL_STORE: Restated = restated(Call("c.floor_exclusive", "floor.store"), 1.15, CALL);
pub static CALL_LEASE: Restated = restated(Call("c.floor_lease", "floor.store"), 1.15, CALL);
pub static CALL_SINGLE: Restated = restated(Call("c.floor_single", "floor.cmpxchg"), 1.15, CALL);
pub static CALL_COUNT: Restated = restated(Instructions("table1e3.single"), 1.5, CALL);
pub static INLINE_SWAP: Restated = restated(Instructions("cell.conforming"), 1.15, INLINE);
pub static INLINE_DENIED: Restated = restated(Instructions("cell.denied"), 1.15, INLINE);
pub static INLINE_STORE: Restated = restated(Instructions("cell.exclusive"), 1.15, INLINE);

/// The lines under a goal that is missed, and whether its restated form is met: None where that cannot be judged.
pub fn of(restated: &Restated, goal: &Goal, suite: &Suite, counts: &Counts) -> (Vec<String>, Option<bool>) {
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
