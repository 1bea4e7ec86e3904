//! Measures code size, instructions and stack on a Cortex-M0, a Cortex-M3 and RISC-V, and prints what was asked beside
//! what is.
//!
//! The test fails above what was measured below + 2 %, or + 25 % with another compiler than the one named: a change
//! that costs an instruction is seen, also far below what was asked. A line that misses what was asked has its
//! analysis in firmware/README.md.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{ensure, Context as _, Result};
use xshell::cmd;

use crate::binary::{bytes_in, members};
use crate::context::Context;
use crate::exec::Run;
use crate::machines::archive;
use crate::machines::boards::{Board, BOARDS, CHOICES};
use crate::machines::emulator::Program;
use crate::machines::figures::{self, Measured};
use crate::machines::rust_target::is_added;
use crate::machines::steps::{each_step, Code, Mask};
use crate::report::Report;

/// What is asked of one function on one board.
struct Budget {
    board: &'static str,
    function: &'static str,
    what: What,
    asked: u64,
    /// What it was under [`COMPILER`].
    was: u64,
    label: &'static str,
}

/// The compiler of the numbers below.
const COMPILER: &str = "rustc 1.95.";

/// What is measured of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// Bytes of the function and of all that it calls in the library, read-only data included.
    Text,
    /// Instructions of the library for one conforming call.
    Conforming,
    /// The same for a denied call.
    Denied,
    /// The same for a reservation that waits.
    Waiting,
    /// The most instructions of one call that run with interrupts masked.
    Masked,
    /// Bytes of stack that the call has touched.
    Stack,
    /// Bytes of text, data and zeroed memory that one more place adds, by the compiler of C.
    Place,
}

use What::{Conforming, Denied, Masked, Place, Stack, Text, Waiting};

const fn m0(function: &'static str, what: What, asked: u64, was: u64, label: &'static str) -> Budget {
    Budget { board: "microbit", function, what, asked, was, label }
}

const fn m3(function: &'static str, what: What, asked: u64, was: u64, label: &'static str) -> Budget {
    Budget { board: "lm3s6965evb", function, what, asked, was, label }
}

const fn imc(function: &'static str, what: What, asked: u64, was: u64, label: &'static str) -> Budget {
    Budget { board: "rv32imc", function, what, asked, was, label }
}

const fn imac(function: &'static str, what: What, asked: u64, was: u64, label: &'static str) -> Budget {
    Budget { board: "rv32imac", function, what, asked, was, label }
}

/// The macro of one log line of a place.
const LOG: &str = "TATCELL_LOG_LIMITED";

const BUDGETS: &[Budget] = &[
    m0("tatcell_small_check", Text, 240, 238, "M0 64-bit, weighted"),
    m0("tatcell_small_check", Conforming, 110, 100, "M0 64-bit, weighted"),
    m0("tatcell_small_check", Denied, 70, 96, "M0 64-bit, weighted"),
    m0("tatcell_small_check_unit", Text, 160, 130, "M0 64-bit, cost 1"),
    m0("tatcell_small_check_unit", Conforming, 75, 50, "M0 64-bit, cost 1"),
    m0("tatcell_small_check_unit", Denied, 50, 49, "M0 64-bit, cost 1"),
    m0("tatcell_small32_check_unit", Text, 120, 66, "M0 32-bit, cost 1"),
    m0("tatcell_small32_check_unit", Conforming, 40, 27, "M0 32-bit, cost 1"),
    m0("tatcell_small32_check_unit", Denied, 25, 23, "M0 32-bit, cost 1"),
    m3("tatcell_small32_check_unit", Text, 100, 96, "M3 32-bit, cost 1"),
    m3("tatcell_small32_check_unit", Conforming, 35, 27, "M3 32-bit, cost 1"),
    m3("tatcell_small32_check_unit", Denied, 20, 20, "M3 32-bit, cost 1"),
    m0("tatcell_small_table_check", Text, 2048, 614, "M0 keyed check, 4-byte key"),
    m0("tatcell_small_table_check", Stack, 128, 68, "M0 keyed check, 4-byte key"),
    m0("tatcell_small_reserve", Text, 346, 346, "M0 64-bit, reservation"),
    m0("tatcell_small_reserve", Waiting, 165, 165, "M0 64-bit, reservation"),
    m0("tatcell_small_reserve", Masked, 99, 99, "M0 64-bit, reservation"),
    m0("tatcell_small_reserve", Stack, 128, 124, "M0 64-bit, reservation"),
    m0("tatcell_small32_reserve", Text, 146, 146, "M0 32-bit, reservation"),
    m0("tatcell_small32_reserve", Waiting, 63, 63, "M0 32-bit, reservation"),
    m0("tatcell_small32_reserve", Masked, 46, 46, "M0 32-bit, reservation"),
    m3("tatcell_small32_reserve", Waiting, 52, 52, "M3 32-bit, reservation"),
    m0("tatcell_small32_charge", Text, 106, 106, "M0 32-bit, charge"),
    m0("tatcell_small32_refund", Text, 98, 98, "M0 32-bit, refund"),
    m0("tatcell_small32_cancel", Text, 150, 150, "M0 32-bit, place cancelled"),
    m0("tatcell_small32_cancel", Conforming, 67, 67, "M0 32-bit, place cancelled"),
    m0("tatcell_small32_cancel", Masked, 28, 28, "M0 32-bit, place cancelled"),
    m0("tatcell_small_cancel", Text, 386, 386, "M0 64-bit, place cancelled"),
    m0("tatcell_small_cancel", Conforming, 181, 181, "M0 64-bit, place cancelled"),
    m0("tatcell_small_cancel", Masked, 55, 55, "M0 64-bit, place cancelled"),
    m0("tatcell_small32_debt", Text, 44, 44, "M0 32-bit, debt read"),
    m0("tatcell_small32_set_debt", Text, 60, 60, "M0 32-bit, debt set"),
    m0("tatcell_small32_limit_init", Text, 1024, 504, "M0 limit at run time"),
    m0("tatcell_small32_limit_init", Stack, 148, 148, "M0 limit at run time"),
    m0("tatcell_small_limit_init", Text, 1024, 504, "M0 64-bit limit at run time"),
    m0("tatcell_small_log", Text, 96, 96, "M0 log line"),
    m0("tatcell_small_log", Conforming, 33, 33, "M0 log line"),
    m0(LOG, Place, 160, 68, "M0 log line, each place"),
    m3(LOG, Place, 160, 68, "M3 log line, each place"),
    imc("tatcell_small_check", Text, 254, 254, "rv32imc 64-bit, weighted"),
    imc("tatcell_small32_check_unit", Text, 70, 70, "rv32imc 32-bit, cost 1"),
    imc("tatcell_small32_check_unit", Conforming, 24, 23, "rv32imc 32-bit, cost 1"),
    imc("tatcell_small32_check_unit", Denied, 22, 19, "rv32imc 32-bit, cost 1"),
    imc("tatcell_small32_reserve", Waiting, 39, 39, "rv32imc 32-bit, reservation"),
    imac("tatcell_small32_check_unit", Text, 92, 92, "rv32imac 32-bit, cost 1"),
    imac("tatcell_small32_check_unit", Conforming, 24, 23, "rv32imac 32-bit, cost 1"),
    imac("tatcell_small32_check_unit", Denied, 18, 16, "rv32imac 32-bit, cost 1"),
    imac("tatcell_small32_reserve", Waiting, 41, 41, "rv32imac 32-bit, reservation"),
];

/// One measured call.
pub struct Case {
    /// Function, and after a colon what is special.
    pub name: String,
    /// What it came to: conforming, denied, waiting and so on.
    pub kind: String,
    /// Bytes.
    pub text: u64,
    /// Of one call.
    pub instructions: u64,
    /// Of these, with interrupts masked.
    pub masked: u64,
    /// Bytes.
    pub stack: u64,
}

/// Measures and judges.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let mut measured = Measured::new();
    for board in BOARDS.iter().filter(|b| b.measured) {
        let name = format!("budget_on_{}", board.name);
        if let Some(missing) = board.target.family.missing() {
            report.skip(&name, &missing);
            continue;
        }
        for choice in &CHOICES {
            let cases = match measure(ctx, board, choice.name) {
                Ok(cases) => cases,
                Err(e) => {
                    report.fail(&name, &format!("cannot be measured\n{e:#}"));
                    continue;
                }
            };
            let archive = format!("libtatcell-{}.a", choice.name);
            report.note("");
            report.note(&format!(
                "{}, {archive}: text bytes, instructions of one call, of these masked, bytes of stack",
                board.name
            ));
            for c in &cases {
                let Case { name, kind, text, instructions, masked, stack } = c;
                report.note(&format!(
                    "  {name:<38} {kind:<11} {text:>5} {instructions:>5} {masked:>5} {stack:>5}"
                ));
            }
            // The budgets are those of the archive that masks interrupts itself.
            measured.entry(board.name).or_insert(cases);
        }
    }
    report.note("");
    report.note(&format!("{:<30} {:<11} {:>6} {:>6}", "what", "", "asked", "is"));
    let mut verdicts = Vec::new();
    for budget in BUDGETS {
        let Some(cases) = measured.get(budget.board) else { continue };
        let is = cases.iter().map(|c| budget.of(c)).max().unwrap_or(0);
        let Budget { label, what, asked, .. } = budget;
        let verdict =
            if is <= *asked { "met".to_owned() } else { format!("missed by {}", is.saturating_sub(*asked)) };
        report.note(&format!("{label:<30} {:<11} {asked:>6} {is:>6}  {verdict}", what.name()));
        verdicts.push((budget, is));
    }
    let known = is_known(ctx)?;
    let percent = if known { 2 } else { 25 };
    let boards: Vec<&Board> = BOARDS.iter().filter(|b| b.measured).collect();
    if boards.iter().all(|b| measured.contains_key(b.name)) {
        figures::sizes(ctx, report, &boards, percent, &ctx.folder("firmware-test/budget")?)?;
        if known {
            figures::readme(ctx, report, &measured);
        }
    }
    for (Budget { board, function, what, was, .. }, is) in verdicts {
        let function = function.trim_start_matches("tatcell_");
        report.claim(&format!("budget_{board}_{function}_{}", what.name()), || {
            let most = was + was * percent / 100;
            ensure!((1..=most).contains(&is), "{is}, at most {most} ({was} + {percent} %)");
            Ok(())
        });
    }
    Ok(())
}

/// Whether the boards' libraries came from the compiler of the numbers.
pub fn is_known(ctx: &Context) -> Result<bool> {
    let ours = BOARDS.iter().filter(|b| b.measured).all(|b| is_added(ctx, b.target.triple));
    Ok(ours && cmd!(ctx.sh, "rustc --version").must()?.starts_with(COMPILER))
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Text => "text",
            Conforming => "conforming",
            Denied => "denied",
            Waiting => "waiting",
            Masked => "masked",
            Stack => "stack",
            Place => "place",
        }
    }
}

impl Budget {
    /// What a case says about this; 0 where it is another function or kind.
    fn of(&self, case: &Case) -> u64 {
        let function = case.name.split(':').next();
        match self.what {
            _ if function != Some(self.function) => 0,
            Text => case.text,
            Stack => case.stack,
            Masked => case.masked,
            Place => case.text,
            Conforming | Denied | Waiting if case.kind == self.what.name() => case.instructions,
            Conforming | Denied | Waiting => 0,
        }
    }
}

fn measure(ctx: &Context, board: &Board, choice: &str) -> Result<Vec<Case>> {
    let out = ctx.folder("firmware-test/budget")?;
    let source = Path::new("firmware/budget/budget.c");
    let program = Program { choice, ..Program::new("budget", source, &out) };
    let elf = board.build(ctx, &program)?;
    let trace = out.join("trace");
    let said = board.trace(&elf, &trace)?.must()?;
    let code = Code::of(ctx, board.target.family, &elf)?;
    let counts = count(&code, &trace)?;
    std::fs::remove_file(&trace)?;
    let mut text = HashMap::new();
    let mut cases = Vec::new();
    for line in said.lines().filter_map(|l| l.strip_prefix("case ")) {
        // NAME KIND stack BYTES answer ...
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, kind, _, stack, ..] = words[..] else { continue };
        let function = name.split(':').next().unwrap_or(name);
        if !text.contains_key(function) {
            text.insert(function.to_owned(), text_of(ctx, board, choice, function, &out)?);
        }
        let (instructions, masked) = counts.get(cases.len()).copied().context("more cases than marks")?;
        let text = text.get(function).copied().unwrap_or(0);
        let stack = stack.parse()?;
        cases.push(Case { name: name.to_owned(), kind: kind.to_owned(), text, instructions, masked, stack });
    }
    ensure!(cases.len() == counts.len(), "{} marks, {} cases", counts.len(), cases.len());
    let text = place(ctx, board, &out)?;
    cases.push(Case {
        name: LOG.to_owned(),
        kind: "place".to_owned(),
        text,
        instructions: 0,
        masked: 0,
        stack: 0,
    });
    Ok(cases)
}

/// Bytes that one more place with a limited log line adds, in a function of its own and without the line itself.
fn place(ctx: &Context, board: &Board, out: &Path) -> Result<u64> {
    let (gcc, arch) = (board.target.family.tool("gcc"), board.target.arch);
    let (source, object) = (out.join("place.c"), out.join("place.o"));
    let mut bytes = [0; 2];
    for (places, bytes) in [1, 3].into_iter().zip(&mut bytes) {
        let mut text = "#include \"tatcell_small.h\"\nvoid line(uint32_t left_out);\n".to_owned();
        for i in 0..places {
            text += &format!(
                "void place{i}(uint32_t now) {{ uint32_t left_out; \
                 if ({LOG}(now, 2, 1000, 3, &left_out)) line(left_out); }}\n"
            );
        }
        std::fs::write(&source, text)?;
        let options = ["-std=c11", "-Os", "-ffreestanding", "-Iinclude", "-c"];
        cmd!(ctx.sh, "{gcc} {arch...} {options...} {source} -o {object}").must()?;
        let parts = [".text", ".rodata", ".srodata", ".data", ".sdata", ".bss", ".sbss"];
        *bytes = bytes_in(&members(&object)?, |s| parts.iter().any(|part| s.starts_with(part)));
    }
    let [one, three] = bytes;
    Ok(three.saturating_sub(one) / 2)
}

/// Instructions of the library between the marks of each case, and how many of them ran masked.
fn count(code: &Code, trace: &Path) -> Result<Vec<(u64, u64)>> {
    let (begin, end) = (code.symbol("mark_begin")?, code.symbol("mark_end")?);
    let mut mask = Mask::new(code);
    let mut counts: Vec<(u64, u64)> = Vec::new();
    let mut inside = false;
    each_step(trace, |pc| {
        if pc == begin {
            inside = true;
            mask.clear();
            counts.push((0, 0));
        } else if pc == end {
            inside = false;
        } else if let (true, Some(count)) = (inside, counts.last_mut()) {
            let (library, masked) = mask.step(pc);
            count.0 += u64::from(library);
            count.1 += u64::from(library && masked);
        }
    })?;
    Ok(counts)
}

/// Bytes that stay when only this function is wanted.
pub fn text_of(ctx: &Context, board: &Board, choice: &str, function: &str, out: &Path) -> Result<u64> {
    let family = board.target.family;
    let (ld, archive) = (family.tool("ld"), archive::path(ctx, board.target, choice));
    let (emulation, one) = (family.emulation, out.join("one.o"));
    cmd!(ctx.sh, "{ld} {emulation...} -r --gc-sections -u {function} -o {one} {archive}").must()?;
    Ok(bytes_in(&members(&one)?, |s| [".text", ".rodata", ".data"].iter().any(|p| s.starts_with(p))))
}
