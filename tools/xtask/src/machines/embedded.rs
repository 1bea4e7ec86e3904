//! What firmware in Rust has beside checks: firmware/rust/embedded on this host and compiled for bare cores, and the
//! sizes of the forms of a check (firmware/rust/sizes).

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{bail, ensure, Context as _, Result};
use xshell::cmd;

use crate::binary::{bytes_in, members};
use crate::context::Context;
use crate::exec::{tail, Run};
use crate::machines::boards::{short, Bare, TARGETS};
use crate::machines::budget::is_known;
use crate::machines::figures;
use crate::machines::rust_target::{self, RustTarget};
use crate::report::Report;
use crate::tools::missing;

const FOLDER: &str = "firmware/rust";
/// The forms: a smaller one, and one that it is smaller than.
const SMALLER: [(&str, &str); 2] = [("const64", "memory64"), ("const32", "memory32")];
/// Bytes that a limit made when the program runs, and a log line, may take.
const AT_MOST: [(&str, u64); 2] = [("made32", 1024), ("line", 160)];

/// The claims.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    report.claim("embedded_crate_waits_and_converts_as_its_tests_say", || {
        let (cargo, target) = (&ctx.cargo, ctx.cargo_target.join("fw-rust"));
        let options = ["--locked", "-p", "tatcell-embedded", "--all-features"];
        let manifest = format!("{FOLDER}/Cargo.toml");
        let done =
            cmd!(ctx.sh, "env {cargo...} test --manifest-path {manifest} --target-dir {target} {options...}")
                .done()?;
        ensure!(done.ok() && done.all.contains("test result: ok. 3 passed"), "{}", tail(&done.all, 30));
        Ok(())
    });
    for target in TARGETS {
        let name = format!("embedded_crate_compiles_for_{}", short(target.triple));
        match rust_target::find(ctx, target.triple) {
            Err(missing) => report.skip(&name, &missing),
            Ok(rust) => {
                report.claim(&name, || {
                    let features = "embassy-time,fugit,tatcell/single-core,tatcell/defmt";
                    // With the macros that the example of tasks was built with.
                    let options = ["--release", "-p", "tatcell-embedded", "--features", features];
                    cargo(ctx, &rust, target, "check", &options)
                });
            }
        }
    }
    for target in TARGETS {
        let name = format!("forms_of_a_check_have_their_sizes_on_{}", short(target.triple));
        if let Some(missing) = missing(&[&target.family.tool("ld")]) {
            report.skip(&name, &missing);
            continue;
        }
        match rust_target::find(ctx, target.triple) {
            Err(missing) => report.skip(&name, &missing),
            Ok(rust) => sizes(ctx, report, &rust, target, &name)?,
        }
    }
    Ok(())
}

fn cargo(ctx: &Context, rust: &RustTarget, target: &Bare, what: &str, options: &[&str]) -> Result<()> {
    let mut cargo = rust.cargo(ctx, what)?;
    cargo.args(["--quiet", "--locked", "--target", target.triple]).args(options);
    cargo.arg("--manifest-path").arg(ctx.root.join(FOLDER).join("Cargo.toml"));
    cargo.env("CARGO_TARGET_DIR", ctx.cargo_target.join("fw-rust"));
    let done = cargo.done()?;
    if !done.ok() {
        bail!("{}", tail(&done.all, 20));
    }
    Ok(())
}

fn sizes(ctx: &Context, report: &mut Report, rust: &RustTarget, target: &Bare, name: &str) -> Result<()> {
    let archive = ctx.cargo_target.join("fw-rust").join(target.triple).join("release/libsizes.a");
    let mut found = String::new();
    report.claim(name, || {
        cargo(ctx, rust, target, "build", &["-p", "sizes", "--release"])?;
        let mut sizes = BTreeMap::new();
        let mut size = |function: &'static str| -> Result<u64> {
            let bytes = text_of(ctx, target, &archive, function)?;
            found += &format!(" {function} {bytes}");
            sizes.insert(function, bytes);
            Ok(bytes)
        };
        for (smaller, larger) in SMALLER {
            let (smaller, larger) = (size(smaller)?, size(larger)?);
            ensure!(
                smaller > 0 && smaller < larger,
                "a constant limit takes {smaller} bytes, one in memory {larger}"
            );
        }
        for (function, most) in AT_MOST {
            let bytes = size(function)?;
            ensure!(bytes > 0 && bytes <= most, "{function} takes {bytes} bytes of at most {most}");
        }
        if target.triple.starts_with("thumbv6m") && is_known(ctx)? {
            figures::forms(ctx, &sizes)?;
        }
        Ok(())
    });
    report.note(&format!("  {}:{found}", target.triple));
    Ok(())
}

/// Bytes that stay when only this function is wanted, zeroed memory and all.
fn text_of(ctx: &Context, target: &Bare, archive: &Path, function: &str) -> Result<u64> {
    let (ld, emulation) = (target.family.tool("ld"), target.family.emulation);
    let one = ctx.folder("firmware-test")?.join("one.o");
    cmd!(ctx.sh, "{ld} {emulation...} -r --gc-sections -u {function} -o {one} {archive}")
        .must()
        .context("it cannot be linked")?;
    let parts = [".text", ".rodata", ".srodata", ".data", ".sdata", ".bss", ".sbss"];
    Ok(bytes_in(&members(&one)?, |s| parts.iter().any(|part| s.starts_with(part))))
}
