//! `tatcell`: see `tatcell --help`.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;
use tatcell_cli::args::{Arguments, Command, PlanArguments};
use tatcell_cli::emit::Emitted;
use tatcell_cli::failure::Failure;
use tatcell_cli::plan::report::Report;
use tatcell_cli::plan::Far;
use tatcell_cli::progress::{short, Progress};

/// Takes what came of writing an answer. A reader that has seen enough closes the pipe; that is no failure.
fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Input(format!("cannot write the answer: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes an answer, as text or as JSON.
fn put<T: Serialize + std::fmt::Display>(answer: &T, json: bool) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let put = match json {
        true => serde_json::to_writer_pretty(&mut out, answer)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
        false => write!(out, "{answer}"),
    };
    written(put.and_then(|()| out.flush()))
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Plan(plan) => run_plan(&plan),
        Command::Replay(replay) => {
            let answer = replay.replay()?;
            put(&answer, replay.json)?;
            replay.judge(&answer)
        }
        Command::Show(show) => {
            let out = io::BufWriter::new(io::stdout().lock());
            let terminal = io::stdout().is_terminal();
            written(show.run(terminal, out)?)
        }
        Command::Check(check) => {
            let config = short(&check.config);
            let progress = Progress::start(move || format!("reading {config}"));
            let answer = check.check()?;
            drop(progress);
            put(&answer, check.json)?;
            check.judge(&answer)
        }
        Command::Size(size) => {
            let answer = size.size()?;
            put(&answer, size.json)?;
            size.judge(&answer)
        }
    }
}

/// An answer and a configuration, as JSON.
#[derive(Serialize)]
struct Both<'a> {
    #[serde(flatten)]
    report: &'a Report,
    emitted: Emitted,
}

impl std::fmt::Display for Both<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.report.fmt(f)
    }
}

fn run_plan(plan: &PlanArguments) -> Result<(), Failure> {
    let asked = plan.plan()?;
    // What a program cannot have, and a page that cannot be written, is said before the input is read.
    plan.emitted(&asked, None)?;
    let page = plan.open_report()?;
    let far = Far::default();
    let progress = Progress::start(far.text(&asked.files));
    let report = asked.run(&far)?;
    drop(progress);
    if let (Some(file), Some(page)) = (&plan.report, page) {
        let text = match file.ends_with(".svg") {
            // The arguments ask for a limit with it.
            true => report.picture().unwrap_or_default(),
            false => report.html(),
        };
        page.write(&text).map_err(|error| Failure::Input(format!("{file}: {error}")))?;
    }
    match plan.emitted(&asked, Some(&report))? {
        Some(emitted) if plan.json => put(&Both { report: &report, emitted }, true)?,
        Some(emitted) => put(&emitted, false)?,
        None => put(&report, plan.json)?,
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
