//! The bench: times tatcell beside the bare atomic operations under it and beside other rate limiters, in one run.
//!
//! ```text
//! tatcell-bench run [--seconds S] [--only TEXT] [--lib libtatcell.so] [--tsv FILE]
//! tatcell-bench count [--tsv FILE]        instructions per decision, through valgrind
//! tatcell-bench loop ID N                 N decisions of one row and nothing else, for profilers
//! ```
//!
//! Rows are grouped one idea a file: [`floors`], [`cells`], [`tables`], [`capi`], [`peers`], [`foreign`].
//! A row that decides something else than it says (a denied row that passes) ends the run with an error: see
//! [`suite`].

mod capi;
mod cells;
mod count;
mod floors;
mod foreign;
mod goals;
mod keys;
mod memory;
mod peers;
mod report;
mod suite;
mod tables;

use std::process::ExitCode;

use suite::{Suite, Wanted};

/// What the command line asked for.
pub struct Args {
    pub mode: String,
    pub rest: Vec<String>,
    pub seconds: f64,
    pub only: Option<String>,
    pub lib: Option<String>,
    pub tsv: Option<String>,
}

impl Args {
    fn read() -> Result<Args, String> {
        let mut words = std::env::args().skip(1);
        let mode = words.next().unwrap_or_else(|| "run".into());
        let mut args = Args { mode, rest: Vec::new(), seconds: 60.0, only: None, lib: None, tsv: None };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--seconds" => args.seconds = value()?.parse().map_err(|e| format!("--seconds: {e}"))?,
                "--only" => args.only = Some(value()?),
                "--lib" => args.lib = Some(value()?),
                "--tsv" => args.tsv = Some(value()?),
                _ => args.rest.push(word),
            }
        }
        Ok(args)
    }
}

/// Every row of the bench that is wanted, in the order of the report.
fn rows(wanted: Wanted, lib: Option<&str>) -> Suite {
    let mut suite = Suite::new(wanted);
    floors::add(&mut suite);
    cells::add(&mut suite);
    tables::add(&mut suite);
    capi::add(&mut suite, lib);
    peers::add(&mut suite);
    foreign::add(&mut suite);
    suite
}

fn run(args: &Args) -> Result<(), String> {
    let cpu = suite::pin_last();
    let wanted = args.only.clone().map_or(Wanted::All, Wanted::Containing);
    eprintln!("bench: building tables and filling them");
    let mut suite = rows(wanted, args.lib.as_deref());
    if suite.rows.is_empty() {
        return Err("no row matches".into());
    }
    let rounds = suite.run(args.seconds)?;
    report::print(&suite, cpu, rounds);
    goals::print(&suite);
    if let Some(path) = &args.tsv {
        report::write_tsv(&suite, rounds, path).map_err(|e| format!("{path}: {e}"))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let done = Args::read().and_then(|args| match (args.mode.as_str(), args.rest.as_slice()) {
        ("run", []) => run(&args),
        ("count", []) => count::run(args.tsv.as_deref()),
        ("loop", [id, n]) => count::one(id, n),
        _ => Err("usage: tatcell-bench run | count | loop ID N   [--seconds S] [--only TEXT] [--lib SO] [--tsv FILE]".into()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
