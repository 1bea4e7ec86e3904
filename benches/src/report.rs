//! The table on stdout and the file for machines.

use std::fmt::Write as _;

use crate::suite::{Mix, Row, Suite};

/// The row that a group's ratios are against.
fn base(id: &str) -> &'static str {
    match id.split('.').next().unwrap_or("") {
        "floor1e6" => "floor1e6.ahead64",
        "floor1e7" => "floor1e7.ahead64",
        group if group.ends_with("1e7") => "table1e7.single",
        group if group.ends_with("1e3") => "table1e3.single",
        group if group.ends_with("1e5") => "table1e5.single",
        group if group.ends_with("1e6") => "table1e6.single",
        "churn" => "churn.single",
        "floor" | "cell" | "peer" => "floor.cmpxchg",
        _ if id == "c.single1e3" => "table1e3.single",
        _ if id == "c.single1e6" || id == "c.next32" => "table1e6.single",
        _ => "floor.cmpxchg",
    }
}

/// What runs beside the bench makes the median, and can make the minimum: say so.
fn machine(cpu: Option<usize>, rounds: usize) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(": ").nth(1)).unwrap_or("?").to_string()
    };
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?").to_string();
    let pinned = cpu.map_or("not pinned".into(), |cpu| format!("pinned to cpu {cpu}"));
    let (model, family) = (field("model name"), field("cpu family"));
    format!("{model} (family {family}), {pinned}, load {load}, {rounds} rounds, ns of CPU time per decision")
}

pub fn print(suite: &Suite, cpu: Option<usize>, rounds: usize) {
    println!("{}", machine(cpu, rounds));
    for note in &suite.notes {
        println!("{note}");
    }
    println!(
        "{:<26} {:<50} {:>8} {:>8} {:>8}  {:>7}  ratio to",
        "row", "", "min ns", "median", "ratio", "passed"
    );
    let mut groups: Vec<&str> = suite.rows.iter().map(Row::group).collect();
    let mut seen = std::collections::HashSet::new();
    groups.retain(|group| seen.insert(*group));
    for group in groups {
        println!();
        for row in suite.rows.iter().filter(|row| row.group() == group) {
            line(suite, row);
        }
    }
}

fn line(suite: &Suite, row: &Row) {
    let (id, text, min, median, base) = (&row.id, &row.text, row.min(), row.median(), base(&row.id));
    let ratio = suite.row(base).map_or("-".into(), |base| format!("{:.2}", min / base.min()));
    println!("{id:<26} {text:<50} {min:>8.2} {median:>8.2} {ratio:>8}  {:>7}  {base}", passed(row));
}

fn passed(row: &Row) -> String {
    match row.mix {
        Mix::Bare => "-".into(),
        _ => format!("{:.1} %", row.passed as f64 / row.decided.max(1) as f64 * 100.0),
    }
}

/// One line a row: id, min, median, rounds, decisions, passed.
pub fn write_tsv(suite: &Suite, rounds: usize, path: &str) -> std::io::Result<()> {
    let mut text = String::from("row\tmin_ns\tmedian_ns\trounds\tdecided\tpassed\n");
    for row in &suite.rows {
        let (min, median) = (row.min(), row.median());
        let _ =
            writeln!(text, "{}\t{min:.3}\t{median:.3}\t{rounds}\t{}\t{}", row.id, row.decided, row.passed);
    }
    std::fs::write(path, text)
}
