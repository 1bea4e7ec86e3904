//! The C example on every board, under both choices of section, and those of docs/FIRMWARE-RECIPES.md on four boards.
//! They check their own numbers.

use std::path::Path;

use anyhow::{bail, ensure, Result};

use crate::context::Context;
use crate::machines::boards::{BOARDS, CHOICES};
use crate::machines::emulator::Program;
use crate::report::Report;

const SOURCE: &str = "examples/firmware/main.c";

/// The other programs, each on a core without atomics and one with.
const OTHERS: [&str; 3] = ["lora", "sleep", "shaping"];
const BOARDS_OF_OTHERS: [&str; 4] = ["microbit", "lm3s6965evb", "rv32imc", "rv32imac"];

/// The example, and a copy of it that expects something wrong.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let out = ctx.folder("firmware-test")?;
    for board in BOARDS {
        for choice in &CHOICES {
            let name = format!("example_on_{}_{}", board.name, choice.name);
            if let Some(missing) = board.target.family.missing() {
                report.skip(&name, &missing);
                continue;
            }
            report.claim(&name, || {
                let source = Path::new(SOURCE);
                let program = Program { choice: choice.name, ..Program::new("main", source, &out) };
                let done = board.run(&board.build(ctx, &program)?, Some(board.shift))?;
                if !done.ok() || !done.all.lines().any(|l| l == "PASS") {
                    bail!("{}\n{}", done.how(), done.all);
                }
                Ok(())
            });
        }
    }
    others(ctx, report, &out);
    unprivileged(ctx, report, &out);
    // The exit status is the program's: with a wrong expectation it must not be 0.
    let name = "example_with_a_wrong_expectation_fails";
    let Some(board) = BOARDS.first() else { return Ok(()) };
    if let Some(missing) = board.target.family.missing() {
        report.skip(name, &missing);
        return Ok(());
    }
    let wrong = out.join("wrong.c");
    let source = ctx.read(SOURCE)?;
    std::fs::write(&wrong, source.replace("5 + 99", "5 + 98"))?;
    report.claim(name, || {
        let elf = board.build(ctx, &Program::new("wrong", &wrong, &out))?;
        let done = board.run(&elf, Some(board.shift))?;
        ensure!(!done.ok() && done.all.contains("wanted 103"), "it passes");
        Ok(())
    });
    Ok(())
}

/// Code without privileges on a Cortex-M3 cannot mask interrupts, and the library says so.
fn unprivileged(ctx: &Context, report: &mut Report, out: &Path) {
    for board in BOARDS.iter().filter(|b| b.cpu == "cortex-m3") {
        let name = format!("unprivileged_code_is_told_that_it_cannot_mask_on_{}", board.name);
        if let Some(missing) = board.target.family.missing() {
            report.skip(&name, &missing);
            continue;
        }
        let source = Path::new("firmware/privilege/privilege.c");
        let program = Program::new("privilege", source, out);
        report.claim(&name, || {
            let done = board.run(&board.build(ctx, &program)?, None)?;
            let told = done.all.contains("privileged: 0") && done.all.contains("unprivileged: -26");
            ensure!(done.ok() && told, "{}\n{}", done.how(), done.all);
            Ok(())
        });
    }
}

/// Duty cycles for a year of virtual time, debts over resets, shaping: the last line that each prints is its verdict.
fn others(ctx: &Context, report: &mut Report, out: &Path) {
    for board in BOARDS.iter().filter(|b| BOARDS_OF_OTHERS.contains(&b.name)) {
        for example in OTHERS {
            let name = format!("example_{example}_on_{}", board.name);
            if let Some(missing) = board.target.family.missing() {
                report.skip(&name, &missing);
                continue;
            }
            let source = format!("examples/firmware/{example}.c");
            let program = Program::new(example, Path::new(&source), out);
            report.claim(&name, || {
                let done = board.run(&board.build(ctx, &program)?, None)?;
                if !done.ok() || done.all.lines().last() != Some("PASS") {
                    bail!("{}\n{}", done.how(), done.all);
                }
                Ok(())
            });
        }
    }
}
