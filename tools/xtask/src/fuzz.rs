//! The targets of fuzz/: replayed on stable by a suite, searched by libFuzzer on demand.
//!
//! libFuzzer needs its runtime, which clang brings (libclang-rt-dev) or else the crate libfuzzer-sys builds from its
//! sources in C++, and code with counters, which any rustc makes. The address sanitizer is asked for by a flag that
//! stable knows under RUSTC_BOOTSTRAP=1. A corpus is one file of hexadecimal lines; the fuzzer gets it as a folder, and
//! what it found comes back in the fewest inputs that reach the same code.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context as _, Result};
use xshell::cmd;

use crate::context::{command, Context};
use crate::exec::Run;
use crate::report::Report;

/// What libFuzzer counts and compares.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// Faults, and sums that do not fit.
const CHECKS: [&str; 4] =
    ["-Zsanitizer=address", "-Cdebug-assertions", "-Coverflow-checks", "-Cforce-frame-pointers"];
/// Longest input, in bytes.
const LONGEST: &str = "256";
/// Most bytes of a corpus that is kept.
const KEPT: usize = 12_000;

/// The suite: corpus and made inputs, on stable.
pub fn replay(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    report.lines_of(cmd!(
        sh,
        "env {cargo...} test -p tatcell-fuzz --test replay -- --nocapture --test-threads=2"
    ))
}

/// `make fuzz TARGET=name SECONDS=60`: searches, and keeps what it found with `KEEP=1`.
pub fn job(ctx: &Context) -> Result<()> {
    let set = |name: &str, default: &str| {
        std::env::var(name).ok().filter(|text| !text.is_empty()).unwrap_or(default.to_owned())
    };
    let (target, seconds) = (set("TARGET", ""), set("SECONDS", "60"));
    let packed = ctx.root.join("fuzz/corpus").join(format!("{target}.hex"));
    ensure!(packed.is_file(), "TARGET names a file of fuzz/corpus: {}", names(ctx)?.join(", "));
    let fuzzer = build(ctx)?;
    let folder = ctx.folder(&format!("fuzz/corpus-{target}"))?;
    unpack(&packed, &folder)?;
    let run = |arguments: &[&str]| -> Result<()> {
        let mut command = Command::new(&fuzzer);
        command.args(arguments).current_dir(&folder).env("TATCELL_TARGET", &target);
        let status = command.lines(|line| println!("{line}"))?;
        ensure!(status.success(), "{target}: {status}; its input lies in {}", folder.display());
        Ok(())
    };
    let here = folder.display().to_string();
    let (length, time) = (format!("-max_len={LONGEST}"), format!("-max_total_time={seconds}"));
    run(&[&length, &time, "-timeout=10", "-print_final_stats=1", "-detect_leaks=0", &here])?;
    if set("KEEP", "").is_empty() {
        return Ok(());
    }
    let least = ctx.empty_folder(&format!("fuzz/least-{target}"))?;
    run(&[&length, "-merge=1", "-verbosity=0", &least.display().to_string(), &here])?;
    pack(&least, &packed)
}

fn names(ctx: &Context) -> Result<Vec<String>> {
    let files = crate::context::files(&ctx.root.join("fuzz/corpus"), ".hex")?;
    Ok(files.iter().filter_map(|p| Some(p.file_stem()?.to_str()?.to_owned())).collect())
}

/// The fuzzer, built beside what cargo builds otherwise.
fn build(ctx: &Context) -> Result<PathBuf> {
    let host = cmd!(ctx.sh, "rustc -vV").must()?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc has no host")?;
    let flags =
        CHECKS.iter().chain(&COVERAGE).chain(&["--cfg=fuzzing"]).copied().collect::<Vec<_>>().join(" ");
    let mut cargo = command(&ctx.cargo)?;
    cargo.args(["build", "--quiet", "--release", "--config", "profile.release.lto=false", "--target", host]);
    cargo.args(["-p", "tatcell-fuzz", "--features", "libfuzzer"]).current_dir(&ctx.root);
    let target = ctx.folder("fuzz")?;
    cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", &target);
    if let Some(runtime) = clang_runtime(ctx, host) {
        cargo.env("CUSTOM_LIBFUZZER_PATH", runtime);
    }
    cargo.must().context("the fuzzer does not compile; it needs a C++ compiler")?;
    Ok(target.join(host).join("release/fuzz"))
}

/// The runtime of an installed clang.
fn clang_runtime(ctx: &Context, host: &str) -> Option<String> {
    let machine = host.split('-').next().unwrap_or_default();
    let name = format!("libclang_rt.fuzzer-{machine}.a");
    ["clang", "clang-14", "clang-19", "clang-22"].iter().find_map(|clang| {
        let path = cmd!(ctx.sh, "{clang} --print-file-name={name}").must().ok()?.trim().to_owned();
        Path::new(&path).is_absolute().then_some(path)
    })
}

/// One file an input, named by its number.
fn unpack(packed: &Path, folder: &Path) -> Result<()> {
    for (i, line) in std::fs::read_to_string(packed)?.lines().enumerate() {
        let digits = line.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).unwrap_or("-"));
        let bytes: Result<Vec<u8>, _> = digits.map(|two| u8::from_str_radix(two, 16)).collect();
        let bytes = bytes.with_context(|| format!("{}:{}", packed.display(), i + 1))?;
        std::fs::write(folder.join(format!("kept-{i}")), bytes)?;
    }
    Ok(())
}

/// The inputs of a folder as lines, the shortest first; of many every second, third and so on, the longest included.
fn pack(folder: &Path, packed: &Path) -> Result<()> {
    let mut inputs = Vec::new();
    for entry in folder.read_dir()? {
        inputs.push(std::fs::read(entry?.path())?);
    }
    if inputs.is_empty() {
        bail!("nothing to keep");
    }
    inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let every = |step: usize| inputs.iter().rev().step_by(step);
    let step = (1..).find(|step| every(*step).map(Vec::len).sum::<usize>() <= KEPT).unwrap_or(1);
    let mut kept: Vec<&Vec<u8>> = every(step).collect();
    kept.reverse();
    let hex = |input: &Vec<u8>| input.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    std::fs::write(packed, kept.iter().map(|input| hex(input)).collect::<String>())?;
    println!("{}: {} inputs", packed.display(), kept.len());
    Ok(())
}
