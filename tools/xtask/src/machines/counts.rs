//! Instructions of a decision on aarch64, counted in the emulator: no such machine is needed, and every run gives the
//! same number.
//!
//! ```text
//!  qemu-aarch64-static -singlestep -d exec,nochain tatcell-bench counted ROW N
//!    Trace 0: 0x7f6638178c40 [.../0000005500046b18/.../...] counted_decisions      a line an instruction
//!    from the first one of that function to the one behind its call: N decisions, with loop and keys
//! ```
//!
//! The rows, N and what is counted are those of callgrind on x86-64 (`benches/src/count.rs`). Two builds: one for
//! machines with LSE, whose swap is one instruction; one for all, which calls a function that looks whether there is
//! LSE, here on a processor without. A number says nothing about time.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{ensure, Context as _, Result};
use xshell::cmd;

use crate::context::Context;
use crate::exec::Run;
use crate::machines::boards::Host;
use crate::machines::rust_target::{is_added, variable, HostTools, RustTarget};
use crate::report::Report;

/// The only host whose instructions are counted.
pub const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// The compiler of the numbers below. They may grow by 2 % with it, by 25 % with another.
const COMPILER: &str = "rustc 1.95";

/// Decisions that are counted.
const N: u64 = 1 << 14;

/// A build, and the processor that runs it.
struct Kind {
    name: &'static str,
    lse: bool,
    features: &'static str,
    processor: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind { name: "with_lse", lse: true, features: "+lse,+aes", processor: "max" },
    Kind { name: "without_lse", lse: false, features: "+aes", processor: "cortex-a72" },
];

/// Instructions of one decision of a row, with LSE and without.
const ROWS: [(&str, [f64; 2]); 8] = [
    ("cell.conforming", [32.00, 43.00]),
    ("cell.denied", [25.00, 25.00]),
    ("table1e3.single", [97.39, 110.34]),
    ("table1e3.single_denied", [89.83, 89.84]),
    ("table1e3.burst32", [94.25, 114.84]),
    ("table1e3.ahead64", [89.53, 111.83]),
    ("table1e3.ahead64_denied", [83.89, 86.91]),
    ("table1e3.ahead64_mixed", [85.71, 98.34]),
];

/// Counts and judges.
pub fn run(
    ctx: &Context,
    report: &mut Report,
    host: &Host,
    tools: &HostTools,
    rust: &RustTarget,
) -> Result<()> {
    let known = is_added(ctx, TRIPLE) && cmd!(ctx.sh, "rustc --version").must()?.starts_with(COMPILER);
    let percent = if known { 2.0 } else { 25.0 };
    for kind in &KINDS {
        let bench = build(ctx, kind, tools, rust)?;
        for (row, [with, without]) in ROWS {
            let Kind { name, processor, .. } = kind;
            let was = if kind.lse { with } else { without };
            let claim = format!("{}_on_aarch64_{name}_takes_no_more_instructions", row.replace('.', "_"));
            let counted = count(host, processor, &bench, row);
            let text = counted.as_ref().map_or(String::new(), |is| format!("{is:.2}"));
            report.note(&format!("{row:<24} {name:<12} {text}"));
            report.claim(&claim, || {
                let most = was * (1.0 + percent / 100.0);
                let is = counted?;
                ensure!(is <= most, "{is:.2}, at most {most:.2} ({was} + {percent} %)");
                Ok(())
            });
        }
    }
    Ok(())
}

fn build(ctx: &Context, kind: &Kind, tools: &HostTools, rust: &RustTarget) -> Result<PathBuf> {
    let target = ctx.cargo_target.join("hosts-counts").join(kind.name);
    let mut cargo = rust.cargo(ctx, "build")?;
    cargo.args(["--quiet", "--locked", "--release", "-p", "tatcell-bench", "--target", TRIPLE]);
    cargo.envs(tools.variables.iter().map(|(k, v)| (k, v)));
    cargo.env(variable(TRIPLE, "RUSTFLAGS"), format!("-C target-feature={}", kind.features));
    cargo.env("CARGO_TARGET_DIR", &target).must().context("the bench does not compile for aarch64")?;
    Ok(target.join(TRIPLE).join("release/tatcell-bench"))
}

/// Instructions of one decision.
fn count(host: &Host, processor: &str, bench: &Path, row: &str) -> Result<f64> {
    let mut emulator = Command::new(host.emulator);
    emulator.args(["-L", &format!("/usr/{}", host.prefix), "-cpu", processor]);
    emulator.args(["-singlestep", "-d", "exec,nochain"]).arg(bench);
    emulator.args(["counted", row, &N.to_string()]);
    emulator.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = emulator.spawn().with_context(|| format!("cannot run {}", host.emulator))?;
    let mut lines = BufReader::new(child.stderr.take().context("no pipe")?);
    let mut counter = Counter::default();
    let (mut line, mut said) = (Vec::new(), String::new());
    // Millions of lines: a buffer for all of them, and no channel.
    while lines.read_until(b'\n', &mut line)? > 0 {
        match step(&line) {
            Some((pc, symbol)) => counter.step(pc, symbol == b"counted_decisions"),
            None => said = String::from_utf8_lossy(&line).into_owned(),
        }
        line.clear();
    }
    let status = child.wait()?;
    ensure!(status.success(), "{row}: {status}, {said}");
    ensure!(counter.back && counter.steps >= N, "{row}: {} instructions were seen", counter.steps);
    Ok(counter.steps as f64 / N as f64)
}

/// Address and symbol of an executed instruction. (What a program says without an end of line stands before it.)
fn step(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut words = line.strip_prefix(b"Trace ")?.split(|byte| *byte == b' ').skip(2);
    let pc = words.next()?.split(|byte| *byte == b'/').nth(1)?;
    let symbol = words.next().unwrap_or(&[]).trim_ascii_end();
    Some((u64::from_str_radix(std::str::from_utf8(pc).ok()?, 16).ok()?, symbol))
}

/// Counts the steps from the first one in a function to the one that its call returns to.
#[derive(Default)]
struct Counter {
    last: u64,
    /// Where the function returns to, once it was called.
    end: Option<u64>,
    back: bool,
    steps: u64,
}

impl Counter {
    fn step(&mut self, pc: u64, is_in: bool) {
        if is_in && self.end.is_none() {
            self.end = Some(self.last.wrapping_add(4));
        }
        self.back |= self.end == Some(pc);
        self.steps += u64::from(self.end.is_some() && !self.back);
        self.last = pc;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_a_call_and_its_return_is_counted() -> Result<()> {
        let trace: &[(u64, &str)] = &[
            (0x100, "main"),
            (0x104, "main"),
            (0x500, "counted_decisions"),
            (0x700, ""),
            (0x504, "counted_decisions"),
            (0x108, "main"),
            (0x500, "counted_decisions"),
        ];
        let mut counter = Counter::default();
        for (pc, symbol) in trace {
            let line =
                format!("Trace 1: 0x7fdf80136040 [0000000001009331/{pc:016x}/00000001/00080201] {symbol}\n");
            let (pc, symbol) = step(line.as_bytes()).context("no step")?;
            counter.step(pc, symbol == b"counted_decisions");
        }
        assert_eq!((counter.steps, counter.back), (3, true));
        assert!(step(b"building table1e3.single\n").is_none());
        Ok(())
    }
}
