//! The bench: times tatcell beside the bare atomic operations under it and beside other rate limiters, in one run.
//!
//! ```text
//! tatcell-bench run [--seconds S] [--only TEXT,TEXT] [--count] [--lib libtatcell.so] [--tsv FILE] [--svg FILE]
//! tatcell-bench count                     instructions per decision, through valgrind
//! tatcell-bench loop ID N                 N decisions of one row and nothing else, for profilers
//! ```
//!
//! Rows are one idea a file: [`floors`], [`cells`], [`tables`], [`costs`], [`capi`], [`peers`], [`foreign`],
//! [`threads`]; what they stand on is in [`beds`], [`steps`], [`keys`] and [`crew`]. A row that decides something else
//! than it says (a denied row that passes) ends the run with an error: see [`suite`].

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
struct Args {
    mode: String,
    rest: Vec<String>,
    seconds: f64,
    only: Option<String>,
    count: bool,
    lib: Option<String>,
    tsv: Option<String>,
    svg: Option<String>,
}

impl Args {
    fn read() -> Result<Args, String> {
        let mut words = std::env::args().skip(1);
        let mode = words.next().unwrap_or_else(|| "run".into());
        let (rest, seconds, count) = (Vec::new(), 60.0, false);
        let mut args = Args { mode, rest, seconds, only: None, count, lib: None, tsv: None, svg: None };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--seconds" => args.seconds = value()?.parse().map_err(|e| format!("--seconds: {e}"))?,
                "--only" => args.only = Some(value()?).filter(|only| !only.is_empty()),
                "--count" => args.count = true,
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
    let counts = if args.count { Counts::collect()? } else { Counts::NONE };
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
    let done = Args::read().and_then(|args| match (args.mode.as_str(), args.rest.as_slice()) {
        ("run", []) => run(&args),
        ("count", []) => Counts::collect().map(|counts| counts.print()),
        ("loop", [id, n]) => count::one(id, n),
        _ => {
            Err("usage: tatcell-bench run | count | loop ID N   [--seconds S] [--only TEXT,TEXT] [--count] \
                  [--lib SO] [--tsv FILE] [--svg FILE]"
                .into())
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
