//! Instructions per decision, counted by valgrind: exact, and the same on a busy machine.
//!
//! ```text
//!  tatcell-bench count ----- for each row ----> valgrind tatcell-bench counted ROW N
//!                                                 build the fixture, N decisions        not counted
//!    instructions, processor <------------------  [`counted_decisions`]             counted: N decisions, with loop
//!                                                 stdout: what its processor has    and keys
//! ```
//!
//! Callgrind collects in one function only, so neither start-up nor the filling of tables is counted. The same binary
//! and N give the same number to the instruction (except for peers whose maps seed their hashes at random). Each row
//! has its own process, so that nothing of another row, such as its allocations, changes it.

use std::process::{Command, Stdio};

use crate::machine;
use crate::progress;
use crate::suite::{Row, Suite, Wanted, GRAIN};

/// Decisions that are counted, and as many before them.
const N: u64 = 1 << 14;

const NO_ROW: &str = "there is no row ";

/// What `count` counts if no rows are named.
pub const ROWS: &[&str] = &[
    "floor.load",
    "floor.store",
    "floor.denied",
    "floor.cmpxchg",
    "floor.siphash",
    "floor.aes",
    "cell.conforming",
    "cell.denied",
    "cell.denied_const",
    "cell.exclusive",
    "cell.lease",
    "cell.cell32",
    "table1e3.single",
    "table1e3.single_denied",
    "table1e3.sip_single",
    "table1e3.burst32",
    "table1e3.next32_denied",
    "table1e3.next32",
    "table1e3.ahead16",
    "table1e3.ahead32",
    "table1e3.ahead64",
    "table1e3.ahead64_costs",
    "table1e3.exclusive",
    "table1e3.exclusive_ahead64",
    "table1e3.next64",
    "table1e3.then64",
    "table1e3.prepared32",
    "table1e3.ahead64_denied",
    "table1e3.ahead64_mixed",
    "floor1e3.single",
    "floor1e6.random",
    "floor1e6.two_phase32",
    "floor1e6.next64",
    "floor1e6.ahead64",
    "floor1e6.ahead64_load",
    "floor1e6.ahead64_store",
    "floor1e6.ahead64_half",
    "floor1e6.insert",
    "floor1e6.insert_ahead64",
    "stagger1e3.single_new5",
    "stagger1e3.ahead64_new5",
    "churn.single",
    "churn.next32",
    "churn.ahead64",
    "cost.one_line",
    "cost.two_lines",
    "cost.admit",
    "cost.inherit",
    "cost.deny",
    "cost.sampled",
    "cost.counters",
    "algorithm.fixed_window",
    "algorithm.sliding_counter",
    "algorithm.quota_linear",
    "algorithm.decay",
    "algorithm.log64",
    "algorithm.rfc2697",
    "algorithm.rfc2698",
    "algorithm.chain2",
    "algorithm1e3.fixed_window",
    "algorithm1e3.sliding_counter",
    "algorithm1e3.pairs32",
    "c.conforming",
    "c.denied",
    "c.exclusive",
    "c.inline",
    "c.inline_denied",
    "c.inline_exclusive",
    "c.lease",
    "c.singles2",
    "c.chain2",
    "c.prepared2",
    "c.chains2",
    "c.singles3",
    "c.singles3_denied",
    "c.chain3",
    "c.chain3_denied",
    "c.chain3_denied2",
    "c.chain3_denied3",
    "c.prepared3",
    "c.prepared3_denied",
    "c.prepared3_denied2",
    "c.prepared3_denied3",
    "c.singles3_cells_denied",
    "c.chain3_cells_denied",
    "c.chain3_cells_denied2",
    "c.chain3_cells_denied3",
    "c.prepared3_cells_denied",
    "c.prepared3_cells_denied2",
    "c.prepared3_cells_denied3",
    "c.singles2_cells",
    "c.singles2_cells_denied",
    "c.chain2_cells",
    "c.chain2_cells_denied",
    "c.chain2_cells_denied2",
    "c.prepared2_cells",
    "c.prepared2_cells_denied",
    "c.prepared2_cells_denied2",
    "c.singles2_mixed",
    "c.chain2_mixed",
    "c.prepared2_mixed",
    "c.singles4",
    "c.singles5",
    "c.ladder4",
    "c.ladder4_denied",
    "c.ladder6",
    "c.ladder6_denied",
    "c.ladder6_denied5",
    "c.ladder6_told",
    "c.ladder6_verdict",
    "c.ladder6_unused",
    "c.ladder6_overrides",
    "c.ladders6",
    "c.ladders6_unused",
    "c.ladders6_overrides",
    "ip.prefix_1",
    "ip.prefix_hash_1",
    "address.from",
    "address.prefix",
    "c.single1e3",
    "c.single4_1e3",
    "c.single12_1e3",
    "c.hash_single1e3",
    "c.sip_single1e3",
    "c.exclusive_single1e3",
    "c.penalty_single1e3",
    "c.window_single1e3",
    "c.churn1e3",
    "c.ahead32_1e3",
    "c.ahead64_1e3",
    "c.ahead64_denied_1e3",
    "c.exclusive_ahead64_1e3",
    "c.floor_conforming",
    "c.floor_denied",
    "c.floor_exclusive",
    "c.floor_lease",
    "c.floor_single",
    "peer.governor_conforming",
    "peer.governor_denied",
    "peer1e3.foldhash",
    "peer1e3.foldhash_denied",
    "churn.governor",
];

/// The row that is counted in place of this one, whose code is the same: a table's of 1e3 keys, a floor's of 1e6. A
/// chain's or ladder's of more clients has the size at its end.
pub fn counted(id: &str) -> String {
    let bare = id.strip_suffix("_1e5").or_else(|| id.strip_suffix("_1e6")).unwrap_or(id);
    match id {
        _ if bare != id && bare.starts_with("c.") => bare.into(),
        "c.single1e6" => "c.single1e3".into(),
        "c.ahead64" => "c.ahead64_1e3".into(),
        "c.next32" => "c.ahead32_1e3".into(),
        "floor1e3.single" => id.into(),
        _ if id.starts_with("floor1e") => id.replace("1e3.", "1e6.").replace("1e7.", "1e6."),
        _ => id.replace("1e6.", "1e3.").replace("1e7.", "1e3."),
    }
}

/// `loop ID N`: N decisions of one row.
pub fn one(id: &str, n: u64, lib: Option<&str>) -> Result<(), String> {
    let mut suite = built(id, lib)?;
    let row = &mut suite.rows[0];
    // In visits, as the timed runs do: a stream is shorter than n may be.
    let mut left = n.next_multiple_of(GRAIN);
    while left > 0 {
        let visit = left.min(N);
        row.decide(visit);
        left -= visit;
    }
    row.verify()
}

/// `counted ID N`: what [`Counts`] runs under valgrind. On a thread of its own: its stack begins at a page, while the
/// first one's begins behind the environment, and setting unaligned memory takes other instructions.
pub fn count_alone(id: &str, n: u64, lib: Option<&str>) -> Result<(), String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| count_here(id, n, lib));
        thread.join().unwrap_or_else(|_| Err(format!("{id} panicked")))
    })
}

fn count_here(id: &str, n: u64, lib: Option<&str>) -> Result<(), String> {
    let (mut suite, n) = (built(id, lib)?, n.next_multiple_of(GRAIN));
    let row = &mut suite.rows[0];
    row.decide(n);
    counted_decisions(row, n);
    println!("{PROCESSOR}{}", machine::processor());
    row.verify()
}

const PROCESSOR: &str = "processor: ";

/// What callgrind collects in; it knows the function by this name.
#[no_mangle]
#[inline(never)]
fn counted_decisions(row: &mut Row, n: u64) {
    row.decide(n);
}

/// The suite of one row.
fn built(id: &str, lib: Option<&str>) -> Result<Suite, String> {
    let suite = crate::rows::all(Wanted::Exactly(id.to_string()), lib, None);
    if suite.rows.is_empty() {
        return Err(match suite.why_skipped(id) {
            Some(why) => format!("{NO_ROW}{id} here: {why}"),
            None => format!("{NO_ROW}{id}"),
        });
    }
    Ok(suite)
}

/// Instructions of [`N`] decisions of a row.
pub struct Count {
    pub id: String,
    pub instructions: u64,
    /// What the processor has that valgrind shows to the program.
    pub processor: String,
}

impl Count {
    pub fn each(&self) -> f64 {
        self.instructions as f64 / N as f64
    }
}

/// Counts by row, and why others are absent.
pub struct Counts {
    pub rows: Vec<Count>,
    pub absent: Vec<(String, String)>,
    /// Why there is none at all.
    pub none: Option<&'static str>,
}

impl Counts {
    pub const NONE: Counts =
        Counts { rows: Vec::new(), absent: Vec::new(), none: Some("instructions were not counted") };

    /// Counts these rows, as far as this machine has them.
    pub fn collect(ids: &[&str], lib: Option<&str>) -> Result<Counts, String> {
        let mut counts = Counts { none: None, ..Counts::NONE };
        for (i, id) in ids.iter().enumerate() {
            progress::tell(&format!("counting instructions, {} of {}, {id}", i + 1, ids.len()));
            match collected(id, lib)? {
                Counted::At(count) => counts.rows.push(count),
                Counted::NoRow(why) => counts.absent.push((id.to_string(), why)),
                Counted::NoValgrind => {
                    counts.none = Some("valgrind is not installed (apt-get install valgrind)");
                    break;
                }
            }
        }
        progress::clear();
        Ok(counts)
    }

    /// Counts the rows that are named, with commas between them, or those of [`ROWS`].
    pub fn of(named: Option<&str>, lib: Option<&str>) -> Result<Counts, String> {
        match named {
            Some(named) => Counts::collect(&named.split(',').collect::<Vec<_>>(), lib),
            None => Counts::collect(ROWS, lib),
        }
    }

    pub fn get(&self, id: &str) -> Result<f64, String> {
        let found = self.rows.iter().find(|count| count.id == id);
        found.map(Count::each).ok_or_else(|| format!("{id}: {}", self.why_absent(id)))
    }

    /// Why there is no count of this row.
    pub fn why_absent(&self, id: &str) -> &str {
        let known = self.absent.iter().find(|(row, _)| row == id);
        self.none.unwrap_or(known.map_or("not counted", |(_, why)| why))
    }

    pub fn print(&self) {
        println!("\ninstructions per decision, and of {N} (callgrind, loop included)");
        for count in &self.rows {
            println!("  {:<28} {:8.2} {:10}", count.id, count.each(), count.instructions);
        }
        for (id, why) in &self.absent {
            println!("  {id:<28} not run: {why}");
        }
        if let Some(why) = self.none {
            println!("  not run: {why}");
        }
    }
}

enum Counted {
    At(Count),
    NoValgrind,
    NoRow(String),
}

/// Instructions inside [`counted_decisions`].
fn collected(id: &str, lib: Option<&str>) -> Result<Counted, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args([
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--toggle-collect=counted_decisions",
    ]);
    valgrind.arg(exe).args(["counted", id, &N.to_string()]).stdin(Stdio::null());
    valgrind.args(lib.iter().flat_map(|lib| ["--lib", lib]));
    let Ok(output) = valgrind.output() else { return Ok(Counted::NoValgrind) };
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let after = |text: &str, mark: &str| {
        text.lines().find_map(|line| line.split_once(mark)).map(|(_, rest)| rest.trim().to_string())
    };
    if let Some(why) = after(&err, &format!("{NO_ROW}{id} here: ")) {
        return Ok(Counted::NoRow(why));
    }
    if err.contains(NO_ROW) {
        return Err(format!("{NO_ROW}{id}"));
    }
    if !output.status.success() {
        return Err(format!("valgrind on {id}: {err}"));
    }
    let instructions = after(&err, "Collected : ").and_then(|count| count.parse().ok());
    match (instructions, after(&out, PROCESSOR)) {
        (Some(instructions @ 1..), Some(processor)) => {
            Ok(Counted::At(Count { id: id.into(), instructions, processor }))
        }
        _ => Err(format!("valgrind on {id} reported no count: {err}")),
    }
}
