//! The bench: times tatcell, the bare atomic operations under it, and other rate limiters, in one run.
//!
//! How a fixture, a step, a crew and a row hang together:
//!
//! ```text
//!  FIXTURE a table, its limit, a stream of keys, the time; made once, shared by the rows that ask the same of it
//!   |
//!  STEP    a way to call: a loop over a fixture that makes n decisions and returns how many passed
//!   |
//!   |   MEMBER  what one thread decides on: a step over a table that others use too, or a cell
//!   |    |
//!   |   CREW    one member or two, each on a processor of its own, started and stopped together
//!   |    |
//!  BODY  |      a step that has its fixture, or the loop of a row without one (a cell, bare words, another limiter)
//!   |    |
//!  ROW          a body or a crew, with a name, a mix (who must pass) and the decisions of a visit
//!   |
//!  SUITE        all rows; a ROUND visits each once: some decisions untimed, then some timed
//!   |           after each visit a row verifies its mix: one that decides something else ends the run
//!  run: ns of each visit -> table, file, chart, goals       count, gate: a row alone under valgrind -> instructions
//! ```
//!
//! [`fixture`], [`fixtures`], [`steps`], [`crew`], [`row`] and [`suite`] are that machine, built on [`keys`],
//! [`traffic`], [`memory`] and [`cpu`]. The [`rows`] have one idea per file: [`floors`] and [`floor_words`] (both on
//! [`bare`]), `floor_single`, `floor_insert`, [`cells`], [`tables`], [`algorithms`], [`stagger`], [`costs`], [`capi`],
//! [`capi_chains`] (on [`capi_combined`]), [`capi_floors`], [`peers`], [`per_ip`], [`foreign`], [`threads`],
//! [`thread_floors`], [`paced`]. These use the results: [`report`], [`chart`], [`goal`], [`goals`], [`restated`],
//! [`cause`], [`baseline`], [`count`], [`gate`]; [`machine`] and [`progress`] help them.

mod algorithms;
mod bare;
mod baseline;
mod capi;
mod capi_chains;
mod capi_combined;
mod capi_floors;
mod cause;
mod cells;
mod chart;
mod costs;
mod count;
mod cpu;
mod crew;
mod fixture;
mod fixtures;
#[cfg(target_arch = "x86_64")]
mod floor_insert;
#[cfg(target_arch = "x86_64")]
mod floor_single;
mod floor_words;
mod floors;
mod foreign;
mod gate;
mod goal;
mod goals;
mod keys;
mod machine;
mod memory;
mod paced;
mod peers;
mod per_ip;
mod progress;
mod report;
mod restated;
mod row;
mod rows;
mod stagger;
mod steps;
mod suite;
mod tables;
mod thread_floors;
mod threads;
mod traffic;

use std::process::ExitCode;

use clap::Parser;

use count::Counts;
use machine::Machine;
use suite::Wanted;

/// Times tatcell, the bare atomic operations under it, and other rate limiters, in one run
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    mode: Mode,
    /// The C library, for the rows that call it
    #[arg(long, global = true, value_name = "SO")]
    lib: Option<String>,
}

#[derive(clap::Subcommand)]
enum Mode {
    /// Times the rows
    Run(Run),
    /// Draws the chart of a run that is kept
    Chart { tsv: String, svg: String },
    /// Counts instructions per decision, through valgrind
    Count {
        /// Only these
        #[arg(long, value_name = "ROW,ROW")]
        rows: Option<String>,
    },
    /// Holds the instructions to a file of counts
    Gate {
        file: String,
        /// Writes the file
        #[arg(long)]
        write: bool,
    },
    /// Makes N decisions of one row and nothing else, for profilers
    Loop { row: String, n: u64 },
    /// What `count` starts under valgrind
    #[command(hide = true)]
    Counted { row: String, n: u64 },
}

#[derive(clap::Args)]
struct Run {
    /// How long, in all
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    seconds: f64,
    /// Only rows whose names contain one of these
    #[arg(long, value_name = "TEXT,TEXT")]
    only: Option<String>,
    /// Counts instructions, too
    #[arg(long)]
    count: bool,
    /// Writes the numbers
    #[arg(long, value_name = "FILE")]
    tsv: Option<String>,
    /// Writes the chart
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
    /// Compares it with the run of the same processor in this folder
    #[arg(long, value_name = "FOLDER")]
    baseline: Option<String>,
}

fn run(args: &Run, lib: Option<&str>) -> Result<(), String> {
    let cpus = cpu::pin();
    let wanted = args.only.clone().map_or(Wanted::All, Wanted::Containing);
    let machine = Machine::read(cpus.map(|cpus| cpus.main));
    let mut suite = rows::all(wanted, lib, cpus);
    if suite.rows.is_empty() {
        return Err("no row matches".into());
    }
    let rounds = suite.run(args.seconds)?;
    report::print(&suite, &machine, rounds);
    let counts = if args.count { Counts::of(None, lib)? } else { Counts::NONE };
    if args.count {
        counts.print();
    }
    goals::print(&suite, &counts);
    if let Some(folder) = &args.baseline {
        baseline::print(&suite, &machine, folder);
    }
    if let Some(path) = &args.tsv {
        report::write_tsv(&suite, &counts, &machine, rounds, path)?;
        println!("numbers: {path}");
    }
    if let Some(path) = &args.svg {
        let min = |id: &str| suite.row(id).map(suite::Row::min);
        if chart::write(min, &machine.text, &machine.date, path)?.is_some() {
            println!("chart:   {path}");
        }
    }
    Ok(())
}

/// Draws a run that is kept, with the minimum of each row.
fn chart_of(tsv: &str, svg: &str) -> Result<(), String> {
    let run = baseline::read(tsv.into()).ok_or(format!("{tsv} cannot be read"))?;
    match chart::write(|id| run.min(id), &run.machine, &run.date, svg)? {
        Some(()) => Ok(()),
        None => Err(format!("{tsv} has no row of the chart")),
    }
}

fn main() -> ExitCode {
    let Args { mode, lib } = Args::parse();
    let lib = lib.as_deref();
    let done = match mode {
        Mode::Run(args) => run(&args, lib),
        Mode::Chart { tsv, svg } => chart_of(&tsv, &svg),
        Mode::Count { rows } => Counts::of(rows.as_deref(), lib).map(|counts| counts.print()),
        Mode::Gate { file, write } => gate::run(&file, lib, write),
        Mode::Loop { row, n } => count::one(&row, n, lib),
        Mode::Counted { row, n } => count::count_alone(&row, n, lib),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
