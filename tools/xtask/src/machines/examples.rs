//! The C example on every board, under both choices of section. It checks its own numbers.

use std::path::Path;

use anyhow::{bail, ensure, Result};

use crate::context::Context;
use crate::machines::boards::{BOARDS, CHOICES};
use crate::machines::emulator::Program;
use crate::report::Report;

const SOURCE: &str = "examples/firmware/main.c";

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
                let elf = board.build(
                    ctx,
                    &Program {
                        name: "main",
                        source,
                        choice: choice.name,
                        defines: "",
                        out: &out,
                        library: None,
                    },
                )?;
                let done = board.run(&elf, Some(board.shift))?;
                if !done.ok() || !done.all.lines().any(|l| l == "PASS") {
                    bail!("{}\n{}", done.how(), done.all);
                }
                Ok(())
            });
        }
    }
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
        let elf = board.build(
            ctx,
            &Program {
                name: "wrong",
                source: &wrong,
                choice: "single",
                defines: "",
                out: &out,
                library: None,
            },
        )?;
        let done = board.run(&elf, Some(board.shift))?;
        ensure!(!done.ok() && done.all.contains("wanted 103"), "it passes");
        Ok(())
    });
    Ok(())
}
