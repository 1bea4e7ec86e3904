//! The bench: times tatcell, the bare atomic operations under it, and other rate limiters, in one run.
//!
//! ```text
//! tatcell-bench run [--seconds S] [--only TEXT,TEXT] [--count] [--lib libtatcell.so] [--tsv FILE] [--svg FILE]
//!                   [--baseline FOLDER]                  and compares it with a kept run of the same processor
//! tatcell-bench chart TSV SVG                            draws the chart of a run that is kept
//! tatcell-bench count [--rows ROW,ROW] [--lib SO]        instructions per decision, through valgrind
//! tatcell-bench gate FILE [--write] [--lib SO]           holds them to the file of counts, or writes it
//! tatcell-bench loop ROW N [--lib SO]                    N decisions of one row and nothing else, for profilers
//! ```
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

use count::Counts;
use machine::Machine;
use suite::Wanted;

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
    baseline: Option<String>,
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
                "--baseline" => args.baseline = Some(value()?),
                _ => args.rest.push(word),
            }
        }
        Ok(args)
    }
}

fn run(args: &Args) -> Result<(), String> {
    let cpus = cpu::pin();
    let wanted = args.only.clone().map_or(Wanted::All, Wanted::Containing);
    let machine = Machine::read(cpus.map(|cpus| cpus.main));
    let mut suite = rows::all(wanted, args.lib.as_deref(), cpus);
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
    let done = Args::read().and_then(|args| {
        let lib = args.lib.as_deref();
        match (args.mode.as_str(), args.rest.as_slice()) {
            ("run", []) => run(&args),
            ("count", []) => Counts::of(args.rows.as_deref(), lib).map(|counts| counts.print()),
            ("gate", [file]) => gate::run(file, lib, args.write),
            ("chart", [tsv, svg]) => chart_of(tsv, svg),
            ("loop", [id, n]) => count::one(id, n, lib),
            ("counted", [id, n]) => count::count_alone(id, n, lib),
            _ => Err("usage: tatcell-bench run | count | gate FILE | chart TSV SVG | loop ROW N\n\
                     options: [--seconds S] [--only TEXT,TEXT] [--count] [--rows ROW,ROW] \
                     [--write] [--lib SO] [--tsv FILE] [--svg FILE] [--baseline FOLDER]"
                .into()),
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
