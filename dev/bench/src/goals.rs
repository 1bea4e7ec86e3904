//! The goals, and whether this run met them. It compares minimums over rounds, and shows the same of the medians: if
//! the two are far apart, the machine changed during the run. For peers the medians decide, and their spread is shown.
//! Under a missed goal stand the floor that hardware sets, how far the row is from that ([`restated`]), and the
//! [`cause`].

use crate::cause;
use crate::count::Counts;
use crate::goal::Found;
use crate::goal::Goal::{self, Beside, Faster, Instructions, More, Ns, Times};
use crate::restated::{self, *};
use crate::suite::{Row, Suite};

/// A goal and its restated form.
pub type Asked = (Goal, &'static Restated);

pub const GOALS: &[(&str, &[Asked])] = &[
    (
        "one limit, one cell",
        &[
            (Times(1.1, "cell.conforming", "floor.cmpxchg"), &SWAP),
            (Ns(1.0, "cell.denied"), &REFUSAL),
            (More(12.0, "cell.denied", "floor.load"), &REFUSAL_MORE),
            (More(12.0, "cell.denied_const", "floor.load"), &REFUSAL_MORE),
            (Ns(1.5, "cell.exclusive"), &STORE),
        ],
    ),
    (
        "bursts, keyed hash included, next to prefetch + cmpxchg over as much memory",
        &[
            (Times(1.25, "table1e6.ahead64", "floor1e6.ahead64"), &AHEAD_1E6),
            (Times(1.25, "table1e7.ahead64", "floor1e7.ahead64"), &AHEAD_1E7),
            (Times(1.25, "table1e6.then64", "floor1e6.ahead64"), &AHEAD_1E6),
            (Times(1.25, "table1e7.then64", "floor1e7.ahead64"), &AHEAD_1E7),
            (Times(1.5, "table1e6.next64", "floor1e6.ahead64"), &NEXT_1E6),
            (Times(1.5, "table1e7.next64", "floor1e7.ahead64"), &NEXT_1E7),
            (Times(1.4, "table1e6.burst32", "floor1e6.two_phase32"), &TWO_PHASE_1E6),
            (Times(1.4, "table1e7.burst32", "floor1e7.two_phase32"), &TWO_PHASE_1E7),
            (Times(1.4, "table1e6.prepared32", "floor1e6.two_phase32"), &TWO_PHASE_1E6),
            (Times(1.4, "table1e7.prepared32", "floor1e7.two_phase32"), &TWO_PHASE_1E7),
        ],
    ),
    (
        "a single call next to its hash, search and cmpxchg over as much memory",
        &[(Times(1.25, "table1e6.single", "floor1e6.single"), &RANDOM_1E6)],
    ),
    (
        "bursts next to each other",
        &[
            (Times(0.6, "table1e3.ahead64_denied", "table1e3.ahead64"), &LOAD_1E3),
            (Times(0.6, "table1e6.ahead64_denied", "table1e6.ahead64"), &LOAD_1E6),
            (Times(1.1, "table1e6.ahead64_mixed", "table1e6.ahead64"), &HALF_1E6),
            (Times(0.7, "table1e3.exclusive_ahead64", "table1e3.ahead64"), &STORE_1E3),
            (Times(0.7, "table1e6.exclusive_ahead64", "table1e6.ahead64"), &STORE_1E6),
            (Times(2.5, "churn.ahead64", "table1e6.ahead64"), &INSERT_AHEAD_1E6),
            (Times(2.5, "churn.next32", "table1e6.next32"), &INSERT_AHEAD_1E6),
            (Times(2.5, "churn.single", "table1e6.single"), &INSERT_1E6),
        ],
    ),
    (
        "next to the peers, by medians",
        &[
            (Beside(4.0, "peer1e6.hash_srtcm_bulk32", "table1e6.ahead64"), &AHEAD_1E6),
            (Beside(8.0, "peer1e6.foldhash", "table1e6.ahead64"), &AHEAD_1E6),
            (Beside(20.0, "peer1e6.governor", "table1e6.ahead64"), &AHEAD_1E6),
            (Beside(4.0, "peer1e7.hash_srtcm_bulk32", "table1e7.ahead64"), &AHEAD_1E7),
            (Beside(8.0, "peer1e7.foldhash", "table1e7.ahead64"), &AHEAD_1E7),
            (Beside(20.0, "peer1e7.governor", "table1e7.ahead64"), &AHEAD_1E7),
            (Beside(2.5, "peer1e6.foldhash", "table1e6.single"), &RANDOM_1E6),
        ],
    ),
    (
        "two threads compared with one",
        &[
            (Faster(1.8, "threads.ahead64_1", "threads.ahead64_2"), &GAIN_BURST),
            (Faster(1.8, "threads.single_1", "threads.single_2"), &TWO_SINGLE),
            (Faster(1.8, "threads.stagger_ahead64_1", "threads.stagger_ahead64_2"), &GAIN_BURST),
            (Faster(1.8, "threads.stagger_single_1", "threads.stagger_single_2"), &TWO_SINGLE),
            (Faster(1.8, "threads.1e8_ahead64_1", "threads.1e8_ahead64_2"), &GAIN_BURST_1E8),
            (Faster(1.8, "threads.1e8_single_1", "threads.1e8_single_2"), &TWO_SINGLE_1E8),
            (Faster(1.8, "threads.lease_1", "threads.lease_2"), &GAIN_OWN),
            (Faster(1.8, "threads.denied_1", "threads.denied_2"), &GAIN_OWN),
            (Faster(1.8, "threads.hot_1", "threads.hot_2"), &GAIN_HOT),
            (Faster(1.8, "threads.hot_key_1", "threads.hot_key_2"), &GAIN_HOT),
            (Faster(1.8, "paced.ahead64_1mpps_1", "paced.ahead64_1mpps_2"), &GAIN_1M),
            (Faster(1.8, "paced.ahead64_10mpps_1", "paced.ahead64_10mpps_2"), &GAIN_10M),
            (Faster(1.8, "paced.ahead64_100mpps_1", "paced.ahead64_100mpps_2"), &GAIN_100M),
            (Faster(1.8, "paced.single_1mpps_1", "paced.single_1mpps_2"), &TWO_1M),
            (Faster(1.8, "paced.single_10mpps_1", "paced.single_10mpps_2"), &TWO_10M),
            (Faster(1.8, "paced.single_100mpps_1", "paced.single_100mpps_2"), &TWO_100M),
        ],
    ),
    (
        "instructions per decision",
        &[
            // What no decision about a key does without takes 54, loop and key included.
            (Instructions(60.0, "table1e3.single"), &SINGLE_COUNT),
            (Instructions(60.0, "table1e3.single_denied"), &SINGLE_COUNT),
            (Instructions(75.0, "table1e3.burst32"), &SINGLE_COUNT),
            (Instructions(75.0, "table1e3.ahead64"), &SINGLE_COUNT),
        ],
    ),
    (
        "what the parts of the table cost",
        &[
            (Times(1.05, "cost.counters", "cost.admit"), &PART_COUNT),
            (Times(1.05, "cost.two_lines", "cost.one_line"), &LINE_COUNT),
            (Times(1.05, "cost.inherit", "cost.admit"), &PART_COUNT),
            (Times(1.05, "cost.deny", "cost.admit"), &PART_COUNT),
            (Times(1.05, "cost.sampled", "cost.admit"), &PART_COUNT),
        ],
    ),
    (
        "chains next to their single calls, from C",
        &[
            (Times(1.3, "c.chain2", "c.singles2"), &CHAIN_2),
            (Times(1.3, "c.chain3", "c.singles3"), &CHAIN_3),
            (Times(1.3, "c.prepared2", "c.singles2"), &PREPARED_2),
            (Times(1.3, "c.prepared3", "c.singles3"), &PREPARED_3),
            (Times(1.5, "c.prepared2_cells", "c.singles2_cells"), &PREPARED_CELLS),
            (Times(1.5, "c.prepared2_mixed", "c.singles2_mixed"), &PREPARED_MIXED),
            (Times(1.5, "c.chain3_denied", "c.singles3_denied"), &CHAIN_DENIED),
            (Times(1.5, "c.chain3_denied2", "c.singles3_denied"), &CHAIN_DENIED),
            (Times(1.5, "c.chain3_denied3", "c.singles3_denied"), &CHAIN_DENIED),
            (Times(1.5, "c.prepared3_denied", "c.singles3_denied"), &PREPARED_DENIED),
            (Times(1.5, "c.prepared3_denied2", "c.singles3_denied"), &PREPARED_DENIED),
            (Times(1.5, "c.prepared3_denied3", "c.singles3_denied"), &PREPARED_DENIED),
            (Times(1.5, "c.chain2_cells_denied", "c.singles2_cells_denied"), &CELLS_DENIED_2),
            (Times(1.5, "c.chain2_cells_denied2", "c.singles2_cells_denied"), &CELLS_DENIED_2),
            (Times(1.5, "c.prepared2_cells_denied", "c.singles2_cells_denied"), &CELLS_DENIED_2),
            (Times(1.5, "c.prepared2_cells_denied2", "c.singles2_cells_denied"), &CELLS_DENIED_2),
            (Times(1.5, "c.chain3_cells_denied", "c.singles3_cells_denied"), &CELLS_DENIED_3),
            (Times(1.5, "c.chain3_cells_denied2", "c.singles3_cells_denied"), &CELLS_DENIED_3),
            (Times(1.5, "c.chain3_cells_denied3", "c.singles3_cells_denied"), &CELLS_DENIED_3),
            (Times(1.5, "c.prepared3_cells_denied", "c.singles3_cells_denied"), &CELLS_DENIED_3),
            (Times(1.5, "c.prepared3_cells_denied2", "c.singles3_cells_denied"), &CELLS_DENIED_3),
            (Times(1.5, "c.prepared3_cells_denied3", "c.singles3_cells_denied"), &CELLS_DENIED_3),
            (Times(1.3, "c.chain2_1e5", "c.singles2_1e5"), &CHAIN_2),
            (Times(1.3, "c.prepared2_1e5", "c.singles2_1e5"), &PREPARED_2),
            (Times(1.3, "c.chain3_1e5", "c.singles3_1e5"), &CHAIN_3),
            (Times(1.3, "c.prepared3_1e5", "c.singles3_1e5"), &PREPARED_3),
            (Times(1.5, "c.prepared2_mixed_1e5", "c.singles2_mixed_1e5"), &PREPARED_MIXED),
            (Times(1.5, "c.chain3_denied_1e5", "c.singles3_denied_1e5"), &CHAIN_DENIED),
            (Times(1.5, "c.chain3_denied2_1e5", "c.singles3_denied_1e5"), &CHAIN_DENIED),
            (Times(1.5, "c.chain3_denied3_1e5", "c.singles3_denied_1e5"), &CHAIN_DENIED),
            (Times(1.5, "c.prepared3_denied3_1e5", "c.singles3_denied_1e5"), &PREPARED_DENIED),
            (Times(1.3, "c.chain2_1e6", "c.singles2_1e6"), &CHAIN_2),
            (Times(1.3, "c.prepared2_1e6", "c.singles2_1e6"), &PREPARED_2),
            (Times(1.3, "c.chain3_1e6", "c.singles3_1e6"), &CHAIN_3),
            (Times(1.3, "c.prepared3_1e6", "c.singles3_1e6"), &PREPARED_3),
            (Times(1.5, "c.prepared2_mixed_1e6", "c.singles2_mixed_1e6"), &PREPARED_MIXED),
            (Times(1.5, "c.chain3_denied_1e6", "c.singles3_denied_1e6"), &CHAIN_DENIED),
            (Times(1.5, "c.chain3_denied2_1e6", "c.singles3_denied_1e6"), &CHAIN_DENIED),
            (Times(1.5, "c.chain3_denied3_1e6", "c.singles3_denied_1e6"), &CHAIN_DENIED),
            (Times(1.5, "c.prepared3_denied3_1e6", "c.singles3_denied_1e6"), &PREPARED_DENIED),
        ],
    ),
    (
        "ladders, from C",
        &[
            (Times(1.3, "c.ladder4", "c.singles4"), &LADDER_4),
            (Times(1.3, "c.ladder6", "c.singles5"), &LADDER_6),
            (Times(1.3, "c.ladder4_1e5", "c.singles4_1e5"), &LADDER_4),
            (Times(1.3, "c.ladder6_1e5", "c.singles5_1e5"), &LADDER_6),
            (Times(1.3, "c.ladder4_1e6", "c.singles4_1e6"), &LADDER_4),
            (Times(1.3, "c.ladder6_1e6", "c.singles5_1e6"), &LADDER_6),
            (Times(1.5, "c.ladder6_told", "c.ladder6"), &LADDER_TOLD),
            (Times(1.5, "c.ladder6_told_1e5", "c.ladder6_1e5"), &LADDER_TOLD),
            (Times(1.5, "c.ladder6_told_1e6", "c.ladder6_1e6"), &LADDER_TOLD),
            (Times(0.5, "c.ladders6_1e6", "c.ladder6_1e6"), &LADDERS),
        ],
    ),
    (
        "limits by address with a clock, next to governor with its own",
        &[
            (Times(0.7, "ip.prefix_1", "ip.governor_1"), &PER_IP),
            (Times(0.7, "ip.prefix_1e5", "ip.governor_1e5"), &PER_IP),
            (Times(0.7, "ip.prefix_hash_1", "ip.governor_1"), &PER_IP),
            (Times(0.7, "ip.prefix_hash_1e5", "ip.governor_1e5"), &PER_IP),
        ],
    ),
    (
        "C next to Rust",
        &[
            (Times(1.15, "c.conforming", "cell.conforming"), &CALL_SWAP),
            (Times(1.15, "c.denied", "cell.denied"), &CALL_DENIED),
            (Times(1.15, "c.exclusive", "cell.exclusive"), &CALL_STORE),
            (Times(1.15, "c.inline", "cell.conforming"), &INLINE_SWAP),
            (Times(1.15, "c.inline_denied", "cell.denied"), &INLINE_DENIED),
            (Times(1.15, "c.inline_exclusive", "cell.exclusive"), &INLINE_STORE),
            (Times(1.15, "c.lease", "cell.lease"), &CALL_LEASE),
            (Times(1.15, "c.single1e3", "table1e3.single"), &CALL_SINGLE),
            (Goal::Counts(1.35, "c.single1e3", "table1e3.single"), &CALL_COUNT),
            (Times(1.15, "c.ahead32_1e3", "table1e3.ahead32"), &AHEAD_1E3),
            (Times(1.15, "c.ahead64_1e3", "table1e3.ahead64"), &AHEAD_1E3),
            (Times(1.15, "c.ahead64_denied_1e3", "table1e3.ahead64_denied"), &LOAD_1E3),
            (Times(1.15, "c.exclusive_ahead64_1e3", "table1e3.exclusive_ahead64"), &STORE_1E3),
            (Times(1.15, "c.single1e6", "table1e6.single"), &RANDOM_1E6),
            (Times(1.15, "c.next32", "table1e6.ahead32"), &AHEAD_1E6),
            (Times(1.15, "c.ahead64", "table1e6.ahead64"), &AHEAD_1E6),
        ],
    ),
];

pub fn print(suite: &Suite, counts: &Counts) {
    println!("\n{:<56} {:>8} {:>8}      {:<10} by minimum", "GOALS", "minimum", "median", "wanted");
    let (mut met, mut missed, mut absent, mut unasked, mut near) = (0, 0, 0, 0, 0);
    for (title, goals) in GOALS {
        let (asked, others): (Vec<&Asked>, Vec<&Asked>) =
            goals.iter().partition(|(goal, _)| is_asked(goal, suite));
        unasked += others.len();
        if !asked.is_empty() {
            println!("\n{title}");
        }
        for (goal, restated) in asked {
            let name = name(goal);
            match find(goal, suite, counts) {
                Ok(found) => {
                    let Found { is, by_median, wanted, unit, .. } = &found;
                    let (sign, verdict) = (if found.at_least { ">=" } else { "<=" }, found.verdict());
                    println!(
                        "  {name:<54} {is:>8.2} {by_median:>8.2} {unit:<4} {sign} {wanted:<7} {verdict}"
                    );
                    if found.spare() >= 0.0 {
                        met += 1;
                    } else {
                        missed += 1;
                        let (lines, by_floor) = restated::of(restated, goal, suite, counts);
                        near += usize::from(by_floor == Some(true));
                        let causes = cause::of(goal, suite);
                        lines.iter().chain(&causes).for_each(|line| println!("      {line}"));
                    }
                    if let Beside(_, theirs, _) = goal {
                        cause::spread(suite, theirs).iter().for_each(|line| println!("      {line}"));
                    }
                }
                Err(why) => {
                    println!("  {name:<54} not run: {why}");
                    absent += 1;
                }
            }
        }
    }
    if let Some(row) = suite.row("threads.handover") {
        println!(
            "\ntwo threads that write one cache line in turn hand it over in {:.0} ns each time",
            row.min()
        );
    }
    println!(
        "\n{met} goals met, {missed} missed, of which {near} are met as restated, {} not run",
        absent + unasked
    );
}

/// False for goals of rows that were left out on request; a whole run asks for all.
fn is_asked(goal: &Goal, suite: &Suite) -> bool {
    goal.rows().iter().all(|row| suite.asks(row))
}

/// As it is printed.
pub fn name(goal: &Goal) -> String {
    match goal {
        Ns(_, row) | Instructions(_, row) => row.to_string(),
        Times(_, row, to) => format!("{row} / {to}"),
        Faster(_, slow, fast) | Beside(_, slow, fast) => format!("{slow} / {fast}"),
        More(_, row, than) => format!("{row} - {than}"),
        Goal::Counts(_, row, to) => format!("{row} / {to}, instructions"),
    }
}

/// Or why it cannot be judged.
fn find(goal: &Goal, suite: &Suite, counts: &Counts) -> Result<Found, String> {
    let row = |id: &str| suite.row(id).ok_or_else(|| format!("{id}: {}", suite.why_absent(id)));
    let ratio = |a: &Row, b: &Row| (a.min() / b.min(), a.median() / b.median());
    let ((is, by_median), wanted, at_least, unit) = match goal {
        Ns(most, id) => ((row(id)?.min(), row(id)?.median()), *most, false, "ns"),
        Times(most, a, b) => (ratio(row(a)?, row(b)?), *most, false, "x"),
        Faster(least, slow, fast) | Beside(least, slow, fast) => {
            (ratio(row(slow)?, row(fast)?), *least, true, "x")
        }
        Instructions(most, id) => ((counts.get(id)?, counts.get(id)?), *most, false, "ins"),
        More(most, a, b) => {
            let more = counts.get(a)? - counts.get(b)?;
            ((more, more), *most, false, "ins")
        }
        Goal::Counts(most, a, b) => {
            let ratio = counts.get(a)? / counts.get(b)?;
            ((ratio, ratio), *most, false, "x")
        }
    };
    let median = matches!(goal, Beside(..));
    Ok(Found { is, by_median, wanted, at_least, unit, median })
}
