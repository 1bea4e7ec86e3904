//! The example of examples/firmware-embassy: tasks of embassy that wait for their turn on a board in QEMU, whose defmt
//! lines are put into words here and compared with those that the example says it has.

use std::path::Path;

use anyhow::{ensure, Result};

use crate::context::Context;
use crate::machines::boards::{short, Board, BOARDS};
use crate::machines::rust_example::build;
use crate::machines::{defmt, rust_target};
use crate::report::Report;
use crate::tools::missing;

const EXAMPLE: &str = "examples/firmware-embassy";
/// A core without compare-and-swap, and one with.
const ON: [&str; 2] = ["microbit", "mps2-an385"];

/// The claims.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let out = ctx.folder("firmware-test")?;
    for board in BOARDS.iter().filter(|b| ON.contains(&b.name)) {
        let triple = board.target.triple;
        let name = format!("tasks_of_embassy_wait_and_log_on_{}_{}", board.name, short(triple));
        if let Some(missing) = missing(&[board.target.family.emulator]) {
            report.skip(&name, &missing);
            continue;
        }
        match rust_target::find(ctx, triple) {
            Err(missing) => report.skip(&name, &missing),
            Ok(rust) => {
                report.claim(&name, || {
                    let folder = ctx.root.join(EXAMPLE);
                    let elf = build(ctx, &rust, &folder, triple, &["--locked"])?.join("firmware-embassy");
                    judge(ctx, board, &elf, &out.join("tasks.defmt"))
                });
            }
        }
    }
    Ok(())
}

/// Lines of one tick may come in another order with another compiler; those of different ticks may not.
fn judge(ctx: &Context, board: &Board, elf: &Path, bytes: &Path) -> Result<()> {
    let done = board.run_into(elf, board.shift, bytes)?;
    let said = defmt::lines(elf, &std::fs::read(bytes)?)?;
    let text = ctx.read(format!("{EXAMPLE}/lines.txt"))?;
    let mut wanted: Vec<&str> = text.lines().collect();
    let mut lines: Vec<&str> = said.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    lines.sort_unstable();
    let list = said.join("\n");
    ensure!(done.ok() && lines == wanted, "{}\n{}{list}\ninstead of\n{text}", done.how(), done.all);
    Ok(())
}
