//! Machines that are not this one: firmware in QEMU, and other hosts. The boards, targets and hosts are in `boards.rs`.

pub mod archive;
mod boards;
mod budget;
mod counts;
mod defmt;
mod embedded;
mod emulator;
mod exact;
mod examples;
mod figures;
mod frames;
mod gates;
mod hosts;
mod recipes;
mod rust_example;
mod rust_target;
mod small_header;
mod steps;
mod tasks;
mod trace;

pub use frames::run as frames;
pub use hosts::{avx2_alone, run as hosts};
pub use recipes::run as recipes;
pub use rust_example::run as rust_example;
pub use trace::run as trace;

use anyhow::{ensure, Result};

use crate::context::Context;
use crate::machines::boards::{HOSTS, TARGETS};
use crate::report::Report;
use crate::tools::missing;

type Part = fn(&Context, &mut Report) -> Result<()>;

/// What `test-firmware` runs once the archives are there.
const PARTS: &[(&str, Part)] = &[
    ("gates", gates::run),
    ("small_header", small_header::run),
    ("examples", examples::run),
    ("exact", exact::run),
    ("budget", budget::run),
];

/// Adds the targets of Rust that are missing, where their other tools are here and adding is allowed.
pub fn add_targets(ctx: &Context) {
    let bare = TARGETS.iter().filter(|t| t.family.missing().is_none()).map(|t| t.triple);
    let hosts = HOSTS.iter().filter(|h| h.tools().is_ok()).map(|h| h.triple);
    for triple in bare.chain(hosts) {
        rust_target::add(ctx, triple);
    }
}

/// Firmware in C: what was built, and what it does.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    if let Some(missing) = missing(&["arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"]) {
        report.skip("firmware", &missing);
        return Ok(());
    }
    if let Some(missing) = archive::all(ctx)? {
        report.skip("firmware", &missing);
        return Ok(());
    }
    report.pass("archives_build");
    // A part that cannot go on must not cost the others. `cargo xtask test-firmware exact budget` runs only these.
    let mut broken = Vec::new();
    let asked = |name: &str| ctx.arguments.is_empty() || ctx.arguments.iter().any(|a| a == name);
    for (name, part) in PARTS.iter().filter(|(name, _)| asked(name)) {
        if let Err(e) = part(ctx, report) {
            report.fail(name, &format!("{e:#}"));
            broken.push(*name);
        }
    }
    ensure!(broken.is_empty(), "{} did not come to an end", broken.join(", "));
    Ok(())
}
