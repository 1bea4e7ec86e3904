//! Exactness under interrupts: firmware/exact/exact.c on a Cortex-M0, two Cortex-M3, and RISC-V with and without
//! atomics, each form and each choice.
//!
//! Main loop and interrupt ask one cell for more than the burst holds; what is admitted is the burst exactly, and the
//! interrupt has landed on every instruction that can be interrupted. The functions for one owner, used from both
//! contexts, are the controls: they must be seen to admit too much.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{bail, Context as _, Result};

use crate::context::Context;
use crate::exec::Done;
use crate::machines::boards::{Board, BOARDS, CHOICES};
use crate::machines::emulator::Program;
use crate::machines::steps::{each_step, Code, Mask};
use crate::report::Report;

/// Forms that sections protect.
const FORMS: [&str; 10] = [
    "CELL32",
    "CELL32_WEIGHTED",
    "CELL64",
    "CELL64_WEIGHTED",
    "TABLE",
    "RESERVE32",
    "RESERVE64",
    "ADJUST32",
    "CANCEL32",
    "LOG",
];
/// Forms for one owner. They use neither choice, so one of the two is enough.
const CONTROLS: [&str; 2] = ["CELL64_PLAIN", "TABLE_PLAIN"];

/// Every form on every board.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let out = ctx.folder("firmware-test")?;
    for board in BOARDS.iter().filter(|b| b.exact) {
        for (number, choice) in CHOICES.iter().enumerate() {
            for form in FORMS {
                let name =
                    format!("exact_under_interrupts_{}_{}_{}", board.name, choice.name, form.to_lowercase());
                one(ctx, report, board, &name, choice.name, form, &out);
            }
            for form in CONTROLS.iter().filter(|_| number == 0) {
                let name = format!("control_without_sections_fails_{}_{}", board.name, form.to_lowercase());
                one(ctx, report, board, &name, choice.name, form, &out);
            }
        }
    }
    Ok(())
}

fn one(ctx: &Context, report: &mut Report, board: &Board, name: &str, choice: &str, form: &str, out: &Path) {
    if let Some(missing) = board.target.family.missing() {
        report.skip(name, &missing);
        return;
    }
    match judge(ctx, board, choice, form, out) {
        Ok(said) => report.pass(&format!("{name} ({said})")),
        Err(e) => report.fail(name, &format!("{e:#}")),
    }
}

/// Runs a form; returns what it reports where it is as it must be.
fn judge(ctx: &Context, board: &Board, choice: &str, form: &str, out: &Path) -> Result<String> {
    let source = Path::new("firmware/exact/exact.c");
    let (name, defines) = (format!("exact-{form}"), format!("-DVARIANT={form}"));
    let program = Program { choice, defines: &defines, ..Program::new(&name, source, out) };
    let elf = board.build(ctx, &program)?;
    let done = board.run(&elf, Some(board.shift))?;
    let line = done.all.lines().find(|l| l.starts_with("rounds")).context("no report")?;
    let mut said = line.trim().to_owned();
    let mut reached = true;
    if board.traced {
        let (traced, link) = (format!("trace-{form}"), "-Wl,--defsym,traced=1");
        let elf = board.build(ctx, &Program { name: &traced, object: &name, link, ..program })?;
        let could = interruptible(ctx, board, &elf, &out.join("exact.trace"))?;
        let did: BTreeSet<u64> =
            done.all.lines().filter_map(|l| l.strip_prefix("hit ")?.trim().parse().ok()).collect();
        let missed = could.difference(&did).count();
        said += &format!(", {} of {} interruptible instructions", could.len() - missed, could.len());
        reached = missed == 0 && !could.is_empty();
    }
    let holds =
        if form.ends_with("PLAIN") { admits_too_much(&done, line) } else { reached && is_exact(&done, line) };
    if !holds {
        bail!("{said}");
    }
    Ok(said)
}

/// The number after a word of the report.
fn field(line: &str, name: &str) -> Option<u64> {
    line.split_whitespace().skip_while(|w| *w != name).nth(1)?.parse().ok()
}

fn is_exact(done: &Done, line: &str) -> bool {
    let enough = field(line, "rounds").is_some_and(|n| n >= 1000);
    done.ok() && enough && field(line, "wrong") == Some(0) && field(line, "quiet_rounds") == Some(0)
}

fn admits_too_much(done: &Done, line: &str) -> bool {
    let wrong = field(line, "wrong").is_some_and(|n| n > 0);
    done.code() == Some(1) && wrong && field(line, "most") > field(line, "of")
}

/// Halfwords (from the start of the library) of the instructions that can be interrupted: those that one round
/// executes, less those that run masked.
fn interruptible(ctx: &Context, board: &Board, elf: &Path, trace: &Path) -> Result<BTreeSet<u64>> {
    board.trace(elf, trace)?;
    let code = Code::of(ctx, board.target.family, elf)?;
    let (window, stop) = (code.symbol("window")?, code.symbol("timer_stop")?);
    let mut mask = Mask::new(&code);
    let mut started = false;
    let mut seen = BTreeSet::new();
    each_step(trace, |pc| {
        started = (started || pc == window) && pc != stop;
        let (library, masked) = mask.step(pc);
        if library && started && !masked {
            seen.insert((pc - code.library.start) / 2);
        }
    })?;
    std::fs::remove_file(trace)?;
    Ok(seen)
}
