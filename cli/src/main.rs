//! `tatcell`: see `tatcell --help`.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use tatcell_cli::args::{Arguments, Command};
use tatcell_cli::failure::Failure;
use tatcell_cli::plan::Progress;

/// Writes how far the reading is, over itself.
fn show(progress: &Progress) {
    let done = match progress.bytes {
        (read, Some(all)) if all > 0 => format!("{} %", read * 100 / all),
        (read, _) => format!("{} MB", read / 1_000_000),
    };
    let _ = write!(std::io::stderr(), "\r{}: {done}, {} records\x1b[K", progress.file, progress.records);
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let Command::Plan(plan) = arguments.command;
    let terminal = std::io::stderr().is_terminal();
    let report = plan.plan()?.run(&mut |progress| {
        if terminal {
            show(progress);
        }
    });
    if terminal {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    let report = report?;
    let text = if plan.json {
        serde_json::to_string_pretty(&report).map_err(|error| Failure::Input(error.to_string()))? + "\n"
    } else {
        report.to_string()
    };
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader that has seen enough closes the pipe; that is no failure.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            return Err(Failure::Input(format!("cannot write the answer: {error}")));
        }
        _ => {}
    }
    plan.judge(&report)
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tatcell: {failure}");
            ExitCode::from(failure.code())
        }
    }
}
