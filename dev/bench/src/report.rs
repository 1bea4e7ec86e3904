//! The printed notes and table of a run, and the file for machines.

use std::fmt::Write as _;

use crate::count::Counts;
use crate::machine::Machine;
use crate::suite::{Mix, Row, Suite};

/// Groups in words, and the row that their ratios are to. What is not listed shows under its own name.
const GROUPS: &[(&str, &str, &str)] = &[
    (
        "floor",
        "Floors: bare operations on one word, hashes of a key; ratio to load + lock cmpxchg",
        "floor.cmpxchg",
    ),
    (
        "floor1e3",
        "Floors: over the memory of a 1e3 table; ratio to load + lock cmpxchg of one word",
        "floor.cmpxchg",
    ),
    (
        "floor1e6",
        "Floors: over the memory of a 1e6 table; ratio to load + lock cmpxchg of one word",
        "floor.cmpxchg",
    ),
    (
        "floor1e7",
        "Floors: over the memory of a 1e7 table; ratio to load + lock cmpxchg of one word",
        "floor.cmpxchg",
    ),
    ("cell", "tatcell: one limit; ratio to load + lock cmpxchg", "floor.cmpxchg"),
    ("peer", "Peers: one limit; ratio to load + lock cmpxchg", "floor.cmpxchg"),
    ("table1e3", "tatcell: 1e3 keys; ratio to load + lock cmpxchg of one word", "floor.cmpxchg"),
    ("peer1e3", "Peers: 1e3 keys; ratio to a single call of tatcell", "table1e3.single"),
    ("table1e5", "tatcell: 1e5 keys; ratio to load + lock cmpxchg of one word", "floor.cmpxchg"),
    ("peer1e5", "Peers: 1e5 keys; ratio to a single call of tatcell", "table1e5.single"),
    ("table1e6", "tatcell: 1e6 keys; ratio to prefetch 64 ahead + lock cmpxchg", "floor1e6.ahead64"),
    ("peer1e6", "Peers: 1e6 keys; ratio to a single call of tatcell", "table1e6.single"),
    ("stagger1e3", "tatcell: 1e3 keys, staggered; ratio to the same call where keys keep their slots", ""),
    ("stagger1e6", "tatcell: 1e6 keys, staggered; ratio to the same call where keys keep their slots", ""),
    ("table1e7", "tatcell: 1e7 keys; ratio to prefetch 64 ahead + lock cmpxchg", "floor1e7.ahead64"),
    ("peer1e7", "Peers: 1e7 keys; ratio to a single call of tatcell", "table1e7.single"),
    (
        "floor1e8",
        "Floors: over the memory of a 1e8 table; ratio to load + lock cmpxchg of one word",
        "floor.cmpxchg",
    ),
    (
        "table1e8",
        "tatcell: 1e8 keys, staggered; ratio to prefetch 64 ahead + lock cmpxchg",
        "floor1e8.ahead64",
    ),
    ("churn", "Every key new; ratio to a single call of tatcell", "churn.single"),
    (
        "cost",
        "Parts of the table: 1e6 keys, burst of 32, next prefetched; ratio to policy Admit",
        "cost.admit",
    ),
    ("c", "tatcell from C, through the shared library; ratio to the same from Rust", ""),
    ("ip", "Limits by address, the clock included; ratio to governor as shipped", ""),
    ("threads", "One thread and two, ns of all together; ratio to one thread; last: by wall time", ""),
    ("paced", "Requests at a rate, a clock read once in 64; ratio to one thread; last: by wall time", ""),
    ("algorithm", "Other algorithms and meters, one word; ratio to load + lock cmpxchg", "floor.cmpxchg"),
    ("algorithm1e3", "Other algorithms, 1e3 keys; ratio to a single call under GCRA", "table1e3.single"),
    ("algorithm1e6", "Other algorithms, 1e6 keys; ratio to a single call under GCRA", "table1e6.single"),
];

/// The row that this one's ratio is to.
fn base(row: &Row) -> String {
    let of_c = |name: &str| match name {
        "conforming" | "denied" | "exclusive" | "lease" => format!("cell.{name}"),
        "single1e3" => "table1e3.single".into(),
        "inline_exclusive" => "cell.exclusive".into(),
        "inline_denied" | "floor_denied" => "cell.denied".into(),
        "inline" | "floor_conforming" => "cell.conforming".into(),
        "floor_exclusive" => "cell.exclusive".into(),
        "floor_lease" => "cell.lease".into(),
        "floor_single" => "table1e3.single".into(),
        _ if name.ends_with("_1e3") => format!("table1e3.{}", name.trim_end_matches("_1e3")),
        "single1e6" => "table1e6.single".into(),
        "next32" => "table1e6.ahead32".into(),
        _ => format!("table1e6.{name}"),
    };
    match row.id.split_once('.') {
        Some(("c", name)) => of_c(name),
        Some(("ip", name)) => format!("ip.governor_{}", name.rsplit('_').next().unwrap_or(name)),
        Some((group @ ("threads" | "paced"), name)) => {
            format!("{group}.{}_1", name.rsplit_once('_').map_or(name, |(name, _)| name))
        }
        Some((group, name)) if group.starts_with("stagger") => {
            let call = if name.contains("ahead64") { "ahead64" } else { "single" };
            format!("table{}.{call}", &group["stagger".len()..])
        }
        Some(("peer1e6", name)) if name.starts_with("zipf") => "table1e6.zipf_single".into(),
        Some((peers, name)) if peers.starts_with("peer1") && name.ends_with("_denied") => {
            format!("table{}.single_denied", &peers[4..])
        }
        _ => GROUPS.iter().find(|(group, ..)| *group == row.group()).map_or("", |(.., base)| base).into(),
    }
}

pub fn print(suite: &Suite, machine: &Machine, rounds: usize) {
    println!("tatcell bench, {}", machine.date);
    println!("{}", machine.text);
    println!(
        "{rounds} rounds; ns of CPU time per decision; keys of 16 bytes, uniform, where nothing is said"
    );
    for note in &suite.notes {
        println!("{note}");
    }
    if suite.rows.iter().any(|row| row.id.starts_with("peer1e")) {
        println!("peers keep their maps where their allocator puts them: no huge pages are asked for");
    }
    let known = GROUPS.iter().map(|(group, title, _)| (*group, *title));
    let mut groups: Vec<(&str, &str)> = known.collect();
    for row in &suite.rows {
        if !groups.iter().any(|(group, _)| *group == row.group()) {
            groups.push((row.group(), row.group()));
        }
    }
    for (group, title) in groups {
        let rows: Vec<&Row> = suite.rows.iter().filter(|row| row.group() == group).collect();
        if rows.is_empty() {
            continue;
        }
        println!("\n{title}");
        println!("  {:<32} {:<48} {:>7} {:>7} {:>7} {:>6}", "", "", "min", "median", "passed", "ratio");
        rows.iter().for_each(|row| line(suite, row));
    }
}

fn line(suite: &Suite, row: &Row) {
    let (id, min, median, passed) = (&row.id, row.min(), row.median(), passed(row));
    // The heading says how many keys.
    let text = row.text.split_once(" keys, ").map_or(row.text.as_str(), |(_, text)| text);
    let text = if row.group().contains("1e") { text } else { &row.text };
    let ratio = suite.row(&base(row)).map_or("-".into(), |base| format!("{:.2}", min / base.min()));
    let wall = row.min_wall().map_or(String::new(), |wall| format!("{wall:8.2}"));
    println!("  {id:<32} {text:<48} {min:>7.2} {median:>7.2} {passed:>7} {ratio:>6}{wall}");
}

fn passed(row: &Row) -> String {
    match row.mix {
        Mix::Bare => "-".into(),
        _ => format!("{:.0} %", row.share() * 100.0),
    }
}

/// Tab-separated: one line a row, after lines that start with #.
pub fn write_tsv(
    suite: &Suite,
    counts: &Counts,
    machine: &Machine,
    rounds: usize,
    path: &str,
) -> Result<(), String> {
    let Machine { family, model, features, text: machine, date } = machine;
    let mut text = format!("# family: {family}\n# model: {model}\n# features: {features}\n");
    let _ = write!(text, "# machine: {machine}\n# date: {date}\n");
    text += "row\tunit\tmin\tmedian\trounds\tdecided\tpassed\n";
    for row in &suite.rows {
        let Row { id, decided, passed, .. } = row;
        let (min, median) = (row.min(), row.median());
        let _ = writeln!(text, "{id}\tns\t{min:.3}\t{median:.3}\t{rounds}\t{decided}\t{passed}");
        if let Some(wall) = row.min_wall() {
            let _ = writeln!(text, "{id}\twall_ns\t{wall:.3}\t\t{rounds}\t{decided}\t{passed}");
        }
    }
    for count in &counts.rows {
        let (id, each) = (&count.id, count.each());
        let _ = writeln!(text, "{id}\tinstructions\t{each:.1}\t{each:.1}\t1\t\t");
    }
    std::fs::write(path, text).map_err(|e| format!("{path}: {e}"))
}
