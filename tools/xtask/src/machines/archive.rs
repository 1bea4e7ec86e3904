//! The firmware archives: localised objects with the functions of include/tatcell_small.map and nothing else.
//!
//! The checks are one object, whose sections stay apart. What few programs call has an object for each function: a
//! program that does not call it has none of its bytes, also where its linker keeps whole objects. No runtime of the
//! compiler, so that they link beside anything. They are in `target/firmware/TRIPLE`, where the recipes look for them.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context as _, Result};
use xshell::cmd;

use crate::context::{files, is_fresh, Context};
use crate::exec::Run;
use crate::library::partial_link;
use crate::machines::boards::{Bare, Choice, CHOICES, TARGETS};
use crate::machines::rust_target::{self, RustTarget};
use crate::tools::{missing, Missing};

/// The functions of the archives.
pub const MAP: &str = "include/tatcell_small.map";

/// Functions with an object of their own.
pub const APART: [&str; 14] = [
    "tatcell_small32_cancel",
    "tatcell_small32_charge",
    "tatcell_small32_debt",
    "tatcell_small32_limit_init",
    "tatcell_small32_refund",
    "tatcell_small32_set_debt",
    "tatcell_small_cancel",
    "tatcell_small_charge",
    "tatcell_small_debt",
    "tatcell_small_limit_init",
    "tatcell_small_log",
    "tatcell_small_refund",
    "tatcell_small_section_check",
    "tatcell_small_set_debt",
];

/// Builds all archives; an error says what is missing.
pub fn job(ctx: &Context) -> Result<()> {
    if let Some(missing) = all(ctx)? {
        bail!("{missing}");
    }
    for archive in TARGETS.iter().flat_map(|t| CHOICES.iter().map(|c| path(ctx, t, c.name))) {
        println!("{}", archive.strip_prefix(&ctx.root).unwrap_or(&archive).display());
    }
    Ok(())
}

/// Builds all archives where they are older than their sources, or says what is missing for that.
pub fn all(ctx: &Context) -> Result<Option<Missing>> {
    for target in TARGETS {
        for choice in &CHOICES {
            if let Err(missing) = one(ctx, target, choice)? {
                return Ok(Some(missing));
            }
        }
    }
    Ok(None)
}

/// Where an archive is.
pub fn path(ctx: &Context, target: &Bare, choice: &str) -> PathBuf {
    ctx.root.join("target/firmware").join(target.triple).join(format!("libtatcell-{choice}.a"))
}

/// Where cargo leaves the whole library, runtime and all.
pub fn raw(ctx: &Context, target: &Bare, choice: &Choice) -> PathBuf {
    cargo_target(ctx, choice).join(target.triple).join("release/libtatcell.a")
}

/// One folder a choice: their files have the same names.
fn cargo_target(ctx: &Context, choice: &Choice) -> PathBuf {
    ctx.cargo_target.join(format!("firmware-{}", choice.name))
}

/// Builds one archive, or says what is missing for that.
pub fn one(ctx: &Context, target: &Bare, choice: &Choice) -> Result<Result<PathBuf, Missing>> {
    let archive = path(ctx, target, choice.name);
    let mut sources = files(&ctx.root.join("src"), ".rs")?;
    sources.extend(["Cargo.toml", "build.rs", MAP].map(|name| ctx.root.join(name)));
    if is_fresh(&archive, &sources) {
        return Ok(Ok(archive));
    }
    if let Some(missing) = missing(&[&target.family.tool("ld"), &target.family.tool("objcopy")]) {
        return Ok(Err(missing));
    }
    match rust_target::find(ctx, target.triple) {
        Ok(rust) => build(ctx, target, choice, &rust, &archive).map(|()| Ok(archive)),
        Err(missing) => Ok(Err(missing)),
    }
}

fn build(ctx: &Context, target: &Bare, choice: &Choice, rust: &RustTarget, archive: &Path) -> Result<()> {
    let mut cargo = rust.cargo(ctx, "rustc")?;
    cargo.args(["--quiet", "--release", "--lib", "--crate-type", "staticlib"]);
    cargo.arg(format!("--features=small-capi,{}", choice.feature)).args(["--target", target.triple]);
    cargo
        .env("CARGO_TARGET_DIR", cargo_target(ctx, choice))
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", target.level);
    cargo.must().with_context(|| format!("the library does not compile for {}", target.triple))?;

    let family = target.family;
    let tool = |name: &str| family.tool(name);
    let work = ctx.empty_folder("firmware/work")?;
    // The library's own objects only: it needs nothing from the compiler's, and the gate proves it.
    let (ar, raw) = (tool("ar"), raw(ctx, target, choice));
    let listed = cmd!(ctx.sh, "{ar} t {raw}").must()?;
    let own: Vec<&str> = listed.lines().filter(|m| m.starts_with("tatcell")).collect();
    ensure!(!own.is_empty(), "{} has no object of the library", raw.display());
    let objects: Vec<PathBuf> = own.iter().map(|m| work.join(m)).collect();
    cmd!(ctx.sh, "{ar} x --output {work} {raw} {own...}").must()?;
    // What is exported stays; the sections stay apart, so that a firmware keeps only the functions that it calls.
    let ld = tool("ld");
    let ld: Vec<&str> = [ld.as_str()].into_iter().chain(family.emulation.iter().copied()).collect();
    let (apart, together): (Vec<_>, Vec<_>) =
        ctx.exports(MAP)?.into_iter().partition(|name| APART.contains(&name.as_str()));
    let alone = apart.into_iter().map(|name| (work.join(format!("{name}.o")), vec![name]));
    let parts: Vec<(PathBuf, Vec<String>)> =
        std::iter::once((work.join("small.o"), together)).chain(alone).collect();
    // With a note of how the stack is used, beside objects without one, as gcc makes them here, every link would warn.
    let dropped = [".llvmbc", ".llvmcmd", ".comment", ".note.GNU-stack", ".ARM.exidx*", ".rel.ARM.exidx*"];
    for (object, exports) in &parts {
        partial_link(ctx, &ld, &objects, exports, object)?;
        let (objcopy, list) = (tool("objcopy"), object.with_extension("exports"));
        let dropped = dropped.iter().flat_map(|section| ["-R", section]);
        cmd!(ctx.sh, "{objcopy} --keep-global-symbols={list} --strip-debug {dropped...} {object}").must()?;
    }
    std::fs::create_dir_all(archive.parent().context("no folder")?)?;
    if archive.exists() {
        std::fs::remove_file(archive)?;
    }
    let parts: Vec<&PathBuf> = parts.iter().map(|(object, _)| object).collect();
    cmd!(ctx.sh, "{ar} rcs {archive} {parts...}").must().map(drop)
}
