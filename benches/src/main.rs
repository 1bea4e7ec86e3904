//! The bench: times tatcell beside the bare atomic operations under it and beside other rate limiters, in one run.
//!
//! ```text
//! tatcell-bench run [--seconds S] [--only TEXT,TEXT] [--count] [--lib libtatcell.so] [--tsv FILE] [--svg FILE]
//! tatcell-bench count [--rows ROW,ROW] [--lib SO]        instructions per decision, through valgrind
//! tatcell-bench gate FILE [--write] [--lib SO]           holds them to the file of counts, or writes it
//! tatcell-bench loop ROW N [--lib SO]                    N decisions of one row and nothing else, for profilers
//! ```
//!
//! How a bed, a step, a crew and a row hang together:
//!
//! ```text
//!  BED (beds)             STEP (steps)              BODY                ROW (row)                SUITE (suite)
//!  a table, its limit,    a loop of n decisions     a step and the      name, mix, visit sizes   rows in the order of
//!  a stream of keys       over a bed: single,       bed it goes over,   + body or crew           a round; visits each
//!  (keys) and the time;   lone, next, ahead,        as a closure of n                            in turn and times it
//!  shared by the rows     churn                          |                 |
//!  that ask the same           |                         |                 |
//!       '------ n decisions ---'---- passed of n --------'--> verify: as many passed as the mix says, or the run ends
//!       |
//!       '-- with() ------> MEMBER of a CREW (crew): one thread with a bed of its own over the same table, or a cell;
//!           a crew of one or two starts together, stops together and times itself        (only in threads)
//!
//!  rows without a table:  floors (atomics), cells, peers and foreign (other limiters) bring a closure of n at once
//! ```
//!
//! What the rows are, one idea a file: [`floors`], [`cells`], [`tables`], [`stagger`], [`costs`], [`capi`], [`peers`],
//! [`foreign`], [`threads`]. What becomes of them: [`report`], [`chart`], [`goals`]; [`count`] and [`gate`], which run
//! a body under valgrind instead of timing it. What they stand on: [`memory`], [`cpu`], [`machine`], [`progress`].

mod beds;
mod capi;
mod cells;
mod chart;
mod costs;
mod count;
mod cpu;
mod crew;
mod floors;
mod foreign;
mod gate;
mod goals;
mod keys;
mod machine;
mod memory;
mod peers;
mod progress;
mod report;
mod row;
mod stagger;
mod steps;
mod suite;
mod tables;
mod threads;

use std::process::ExitCode;

use count::Counts;
use machine::Machine;
use suite::{Suite, Wanted};

/// What the command line asked for.
#[derive(Default)]
struct Args {
    mode: String,
    rest: Vec<String>,
    seconds: f64,
    only: Option<String>,
    count: bool,
    rows: Option<String>,
    write: bool,
    lib: Option<String>,
    tsv: Option<String>,
    svg: Option<String>,
}

impl Args {
    fn read() -> Result<Args, String> {
        let mut words = std::env::args().skip(1);
        let mode = words.next().unwrap_or_else(|| "run".into());
        let mut args = Args { mode, seconds: 60.0, ..Args::default() };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--seconds" => args.seconds = value()?.parse().map_err(|e| format!("--seconds: {e}"))?,
                "--only" => args.only = Some(value()?).filter(|only| !only.is_empty()),
                "--count" => args.count = true,
                "--rows" => args.rows = Some(value()?),
                "--write" => args.write = true,
                "--lib" => args.lib = Some(value()?),
                "--tsv" => args.tsv = Some(value()?),
                "--svg" => args.svg = Some(value()?),
                _ => args.rest.push(word),
            }
        }
        Ok(args)
    }
}

/// Every row of the bench that is wanted, in the order in which a round visits them.
fn rows(wanted: Wanted, lib: Option<&str>, cpus: Option<cpu::Cpus>) -> Suite {
    let (mut suite, mut beds) = (Suite::new(wanted), beds::Beds::default());
    floors::add(&mut suite);
    cells::add(&mut suite);
    tables::add(&mut suite, &mut beds);
    stagger::add(&mut suite, &mut beds);
    costs::add(&mut suite, &mut beds);
    capi::add(&mut suite, lib);
    peers::add(&mut suite);
    foreign::add(&mut suite);
    threads::add(&mut suite, &mut beds, cpus);
    suite
}

fn run(args: &Args) -> Result<(), String> {
    let cpus = cpu::pin();
    let wanted = args.only.clone().map_or(Wanted::All, Wanted::Containing);
    let machine = Machine::read(cpus.map(|cpus| cpus.main));
    let mut suite = rows(wanted, args.lib.as_deref(), cpus);
    if suite.rows.is_empty() {
        return Err("no row matches".into());
    }
    let rounds = suite.run(args.seconds)?;
    report::print(&suite, &machine, rounds);
    let counts = if args.count { Counts::of(None, args.lib.as_deref())? } else { Counts::NONE };
    if args.count {
        counts.print();
    }
    goals::print(&suite, &counts);
    if let Some(path) = &args.tsv {
        report::write_tsv(&suite, &counts, &machine, rounds, path)?;
        println!("numbers: {path}");
    }
    if let Some(path) = &args.svg {
        if chart::write(&suite, &machine, path)?.is_some() {
            println!("chart:   {path}");
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let done = Args::read().and_then(|args| {
        let lib = args.lib.as_deref();
        match (args.mode.as_str(), args.rest.as_slice()) {
            ("run", []) => run(&args),
            ("count", []) => Counts::of(args.rows.as_deref(), lib).map(|counts| counts.print()),
            ("gate", [file]) => gate::run(file, lib, args.write),
            ("loop", [id, n]) => count::one(id, n, lib),
            ("counted", [id, n]) => count::counted(id, n, lib),
            _ => {
                Err("usage: tatcell-bench run | count | gate FILE | loop ROW N   [--seconds S] [--only TEXT,TEXT] \
                      [--count] [--rows ROW,ROW] [--write] [--lib SO] [--tsv FILE] [--svg FILE]"
                    .into())
            }
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
