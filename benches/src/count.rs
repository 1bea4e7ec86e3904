//! Instructions per decision, counted by valgrind: exact, and the same on a busy machine.
//!
//! Each row runs twice in a process of its own, for N and for 2N decisions; the difference is N decisions without
//! start-up, table filling or the loop's first pass.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::suite::{Wanted, GRAIN};

const N: u64 = 1 << 14;

const ROWS: &[&str] = &[
    "floor.load",
    "floor.cmpxchg",
    "floor.siphash",
    "floor.aes",
    "cell.conforming",
    "cell.denied",
    "cell.exclusive",
    "cell.cell32",
    "table1e3.single",
    "table1e3.single_denied",
    "table1e3.burst32",
    "table1e3.next32_denied",
    "table1e3.next32",
    "table1e3.exclusive",
    "churn.single",
    "peer.governor_conforming",
    "peer.governor_denied",
    "peer1e3.foldhash",
    "peer1e3.foldhash_denied",
    "churn.governor",
];

/// `loop ID N`: N decisions of one row.
pub fn one(id: &str, n: &str) -> Result<(), String> {
    let n: u64 = n.parse().map_err(|e| format!("{n}: {e}"))?;
    let mut suite = crate::rows(Wanted::Exactly(id.to_string()), None);
    let row = suite.rows.first_mut().ok_or(format!("no row {id}"))?;
    // In visits, as the timed runs do: a stream is shorter than n may be.
    let mut left = n.next_multiple_of(GRAIN);
    while left > 0 {
        let visit = left.min(1 << 14);
        row.decide(visit);
        left -= visit;
    }
    row.verify()
}

/// `count`: prints instructions per decision of every row in [`ROWS`], and appends them to the file.
pub fn run(tsv: Option<&str>) -> Result<(), String> {
    println!("\ninstructions per decision (callgrind, {N} decisions, loop included)");
    let mut lines = String::new();
    for id in ROWS {
        let (Some(once), Some(twice)) = (collected(id, N)?, collected(id, 2 * N)?) else {
            println!("  skipped: valgrind is not installed");
            return Ok(());
        };
        let each = (twice - once) as f64 / N as f64;
        println!("  {id:<28} {each:7.1}");
        lines += &format!("{id}.instructions\t{each:.1}\t{each:.1}\t1\t{N}\t\n");
    }
    let Some(path) = tsv else { return Ok(()) };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(lines.as_bytes())).map_err(|e| format!("{path}: {e}"))
}

/// Instructions of the whole process; None where there is no valgrind.
fn collected(id: &str, n: u64) -> Result<Option<u64>, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(exe);
    valgrind.args(["loop", id, &n.to_string()]).stdin(Stdio::null());
    let Ok(output) = valgrind.output() else { return Ok(None) };
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("valgrind on {id}: {text}"));
    }
    let line = text.lines().find_map(|line| line.split_once("Collected : "));
    match line.and_then(|(_, count)| count.trim().parse().ok()) {
        Some(count) => Ok(Some(count)),
        None => Err(format!("valgrind on {id} reported no count: {text}")),
    }
}
