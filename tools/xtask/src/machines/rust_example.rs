//! Firmware in Rust: the example on four boards in QEMU, whose report is compared with that of the C example, and what
//! is in `embedded`.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context as _, Result};
use regex_lite::{Captures, Regex};

use crate::context::{files, Context};
use crate::exec::{tail, Run};
use crate::machines::archive;
use crate::machines::boards::{short, Board, BOARDS, CHOICES};
use crate::machines::embedded;
use crate::machines::emulator::Program;
use crate::machines::rust_target::{self, RustTarget};
use crate::machines::tasks;
use crate::report::Report;
use crate::tools::missing;

const EXAMPLE: &str = "examples/firmware-rust";
/// On every board, so that the timer interrupt comes at the same places.
const SHIFT: Option<u32> = Some(5);

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let out = ctx.cargo_target.join("fw-rust/example");
    std::fs::create_dir_all(&out)?;
    for board in BOARDS {
        let Some(features) = board.rust else { continue };
        let triple = board.target.triple;
        let name = format!("rust_example_on_{}_{}", board.name, short(triple));
        if let Some(missing) = missing(&[board.target.family.emulator]) {
            report.skip(&name, &missing);
            continue;
        }
        let rust = match rust_target::find(ctx, triple) {
            Ok(rust) => rust,
            Err(missing) => {
                report.skip(&name, &missing);
                continue;
            }
        };
        let mut text = String::new();
        report.claim(&name, || {
            let options: Vec<&str> = ["--locked"].into_iter().chain(features.iter().copied()).collect();
            let elf = build(ctx, &rust, &ctx.root.join(EXAMPLE), triple, &options)?.join("firmware-rust");
            let done = board.run(&elf, SHIFT)?;
            text.clone_from(&done.all);
            if !done.ok() || done.all.lines().last() != Some("PASS") {
                bail!("{}\n{}", done.how(), done.all);
            }
            Ok(())
        });
        as_in_c(ctx, report, board, &text, &out)?;
    }
    bad_limit(ctx, report, &out)?;
    tasks::run(ctx, report)?;
    embedded::run(ctx, report)
}

fn as_in_c(ctx: &Context, report: &mut Report, board: &Board, text: &str, out: &Path) -> Result<()> {
    let name = format!("rust_example_reports_as_c_example_on_{}", board.name);
    let [choice, ..] = &CHOICES;
    let library = match board.target.family.missing() {
        Some(missing) => Err(missing),
        None => archive::one(ctx, board.target, choice)?,
    };
    if let Err(missing) = library {
        report.skip(&name, &missing);
        return Ok(());
    }
    report.claim(&name, || {
        let source = Path::new("examples/firmware/main.c");
        let program = Program { choice: choice.name, ..Program::new("main", source, out) };
        let elf = board.build(ctx, &program).context("the C example does not build")?;
        let done = board.run(&elf, SHIFT)?;
        // How often the timer came depends on the length of the code.
        let lines = |text: &str| -> Vec<String> {
            text.lines().filter(|l| !l.starts_with("timer")).map(str::to_owned).collect()
        };
        if !done.ok() || lines(text) != lines(&done.all) {
            bail!("{}\n{}instead of\n{text}", done.how(), done.all);
        }
        Ok(())
    });
    Ok(())
}

/// A limit that cannot be represented must stop the compiler, not the device.
fn bad_limit(ctx: &Context, report: &mut Report, out: &Path) -> Result<()> {
    let name = "rust_example_with_a_bad_limit_does_not_compile";
    let triple = "thumbv6m-none-eabi";
    let rust = match rust_target::find(ctx, triple) {
        Ok(rust) => rust,
        Err(missing) => {
            report.skip(name, &missing);
            return Ok(());
        }
    };
    let (from, bad) = (ctx.root.join(EXAMPLE), out.join("bad"));
    let outside = Regex::new(r#""(\.\./\.\.[^"]*)""#)?;
    for file in files(&from, "")? {
        let to = bad.join(file.strip_prefix(&from)?);
        let text = std::fs::read_to_string(&file)?;
        let text = text.replace("SmallLimit32::new(10, 1000, 5)", "SmallLimit32::new(0, 1000, 5)");
        let absolute =
            |c: &Captures<'_>| format!("\"{}/{}\"", from.display(), c.get(1).map_or("", |m| m.as_str()));
        std::fs::create_dir_all(to.parent().context("no folder")?)?;
        std::fs::write(&to, outside.replace_all(&text, absolute).as_bytes())?;
    }
    report.claim(name, || {
        let error = build(ctx, &rust, &bad, triple, &[]).err().context("it does")?;
        let text = format!("{error:#}");
        ensure!(text.contains("this limit cannot be represented"), "for another reason\n{}", tail(&text, 15));
        Ok(())
    });
    Ok(())
}

/// Builds the program of a folder; returns where it lies.
pub fn build(
    ctx: &Context,
    rust: &RustTarget,
    folder: &Path,
    triple: &str,
    options: &[&str],
) -> Result<PathBuf> {
    let target = ctx.cargo_target.join("fw-rust");
    let mut cargo = rust.cargo(ctx, "build")?;
    cargo.args(["--quiet", "--release", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    cargo.args(["--target", triple]).args(options).env("CARGO_TARGET_DIR", &target);
    let done = cargo.done()?;
    ensure!(done.ok(), "does not build\n{}", done.all);
    Ok(target.join(triple).join("release"))
}
