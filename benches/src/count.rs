//! Instructions per decision, counted by valgrind: exact, and the same on a busy machine.
//!
//! Each row runs twice in a process of its own, for N and for 2N decisions; the difference is N decisions without
//! start-up, table filling or the loop's first pass.

use std::process::{Command, Stdio};

use crate::progress;
use crate::suite::{Wanted, GRAIN};

const N: u64 = 1 << 14;

const NO_ROW: &str = "there is no row";

const ROWS: &[&str] = &[
    "floor.load",
    "floor.cmpxchg",
    "floor.siphash",
    "floor.aes",
    "cell.conforming",
    "cell.denied",
    "cell.denied_const",
    "cell.exclusive",
    "cell.cell32",
    "table1e3.single",
    "table1e3.single_denied",
    "table1e3.burst32",
    "table1e3.next32_denied",
    "table1e3.next32",
    "table1e3.ahead64",
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
    let mut suite = crate::rows(Wanted::Exactly(id.to_string()), None, None);
    let row = suite.rows.first_mut().ok_or(format!("{NO_ROW} {id}"))?;
    // In visits, as the timed runs do: a stream is shorter than n may be.
    let mut left = n.next_multiple_of(GRAIN);
    while left > 0 {
        let visit = left.min(1 << 14);
        row.decide(visit);
        left -= visit;
    }
    row.verify()
}

/// Instructions per decision by row, and why others are absent.
pub struct Counts {
    rows: Vec<(&'static str, f64)>,
    why_absent: &'static str,
}

impl Counts {
    pub const NONE: Counts = Counts { rows: Vec::new(), why_absent: "instructions were not counted" };

    /// Counts every row of [`ROWS`] that this machine has.
    pub fn collect() -> Result<Counts, String> {
        let mut rows = Vec::new();
        for (i, id) in ROWS.iter().enumerate() {
            progress::tell(&format!("counting instructions, {} of {}, {id}", i + 1, ROWS.len()));
            match (collected(id, N)?, collected(id, 2 * N)?) {
                (Counted::At(once), Counted::At(twice)) => rows.push((*id, (twice - once) as f64 / N as f64)),
                (Counted::NoValgrind, _) => {
                    progress::clear();
                    return Ok(Counts { rows, why_absent: "valgrind is not installed" });
                }
                _ => {}
            }
        }
        progress::clear();
        Ok(Counts { rows, why_absent: "no such row" })
    }

    pub fn get(&self, id: &str) -> Result<f64, String> {
        let found = self.rows.iter().find(|(row, _)| *row == id);
        found.map(|(_, each)| *each).ok_or_else(|| format!("{id}: {}", self.why_absent))
    }

    pub fn print(&self) {
        println!("\ninstructions per decision (callgrind, {N} decisions, loop included)");
        if self.rows.is_empty() {
            println!("  not run: {}", self.why_absent);
        }
        for (id, each) in &self.rows {
            println!("  {id:<28} {each:7.1}");
        }
    }

    pub fn rows(&self) -> impl Iterator<Item = &(&'static str, f64)> {
        self.rows.iter()
    }
}

enum Counted {
    At(u64),
    NoValgrind,
    NoRow,
}

/// Instructions of the whole process.
fn collected(id: &str, n: u64) -> Result<Counted, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(exe);
    valgrind.args(["loop", id, &n.to_string()]).stdin(Stdio::null());
    let Ok(output) = valgrind.output() else { return Ok(Counted::NoValgrind) };
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains(NO_ROW) {
        return Ok(Counted::NoRow);
    }
    if !output.status.success() {
        return Err(format!("valgrind on {id}: {text}"));
    }
    let line = text.lines().find_map(|line| line.split_once("Collected : "));
    match line.and_then(|(_, count)| count.trim().parse().ok()) {
        Some(count) => Ok(Counted::At(count)),
        None => Err(format!("valgrind on {id} reported no count: {text}")),
    }
}
