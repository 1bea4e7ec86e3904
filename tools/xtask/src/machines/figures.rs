//! What is published of the firmware's costs: each number in the tables of firmware/README.md is the one that was
//! measured, and no function of the archives is larger than firmware/budget/text.tsv has it.
//!
//! `TATCELL_WRITE_BUDGET=1` writes that file anew; what may grow says so in its commit.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{ensure, Context as _, Result};

use crate::context::Context;
use crate::machines::archive;
use crate::machines::boards::{Board, CHOICES};
use crate::machines::budget::{text_of, Case};
use crate::report::Report;

const README: &str = "firmware/README.md";
const TEXT: &str = "firmware/budget/text.tsv";

/// The cases of each board, in the archive that masks interrupts itself.
pub type Measured = HashMap<&'static str, Vec<Case>>;

/// Names of the two boards that most tables are of.
const M0: &str = "microbit";
const M3: &str = "lm3s6965evb";

/// The rows of README under "What else there is": the call there, its function in 32 and in 64 bits, and the kind of
/// case (empty: the largest number of any).
const CALLS: [(&str, &str, &str, &str); 8] = [
    ("`reserve`, leaves now", "tatcell_small32_reserve", "tatcell_small_reserve", "conforming"),
    ("`charge`", "tatcell_small32_charge", "tatcell_small_charge", ""),
    ("`refund`", "tatcell_small32_refund", "tatcell_small_refund", ""),
    ("`cancel`", "tatcell_small32_cancel", "tatcell_small_cancel", ""),
    ("`debt`", "tatcell_small32_debt", "tatcell_small_debt", ""),
    ("`set_debt`", "tatcell_small32_set_debt", "tatcell_small_set_debt", ""),
    ("`limit_init`", "tatcell_small32_limit_init", "tatcell_small_limit_init", ""),
    ("`tatcell_small_log`", "tatcell_small_log", "", ""),
];

/// Compares README with what was measured by the compiler that its numbers are of.
pub fn readme(ctx: &Context, report: &mut Report, measured: &Measured) {
    report.claim("figures_of_the_readme_are_those_that_were_measured", || {
        let text = ctx.read(README)?.replace("**", "").replace('\n', " ");
        let missing: Vec<String> =
            published(&Figures(measured))?.into_iter().filter(|row| !text.contains(row.as_str())).collect();
        ensure!(missing.is_empty(), "{README} has other numbers; it should have\n{}", missing.join("\n"));
        Ok(())
    });
}

/// Compares the sizes of the forms of a check in Rust, on a Cortex-M0, with the sentence about them.
pub fn forms(ctx: &Context, size: &BTreeMap<&str, u64>) -> Result<()> {
    let bytes = |form| size.get(form).with_context(|| format!("no size of {form}"));
    let sentence = format!(
        "`check_const` takes {} bytes on a Cortex-M0 where `check_small` takes {} (64 bits: {} and {})",
        bytes("const32")?,
        bytes("memory32")?,
        bytes("const64")?,
        bytes("memory64")?
    );
    let text = ctx.read(README)?.replace('\n', " ");
    ensure!(text.contains(&sentence), "{README} has other numbers; it should have\n{sentence}");
    Ok(())
}

/// Numbers by board and function.
struct Figures<'a>(&'a Measured);

impl Figures<'_> {
    /// The largest number of the cases of a function and a kind; the kind empty: of any.
    fn most(&self, board: &str, function: &str, kind: &str, number: fn(&Case) -> u64) -> Result<u64> {
        let cases = self.0.get(board).with_context(|| format!("nothing was measured on {board}"))?;
        let of = cases.iter().filter(|c| c.name.split(':').next() == Some(function));
        let most = of.filter(|c| kind.is_empty() || c.kind == kind).map(number).max();
        most.with_context(|| format!("no case of {function} {kind} on {board}"))
    }

    fn text(&self, board: &str, function: &str) -> Result<u64> {
        self.most(board, function, "", |c| c.text)
    }

    /// Instructions of a conforming and of a denied call.
    fn steps(&self, board: &str, function: &str) -> Result<String> {
        let steps = |kind| self.most(board, function, kind, |c| c.instructions);
        Ok(format!("{} / {}", steps("conforming")?, steps("denied")?))
    }

    /// The least and the most of the conforming and denied cases of a function.
    fn range(&self, function: &str, number: fn(&Case) -> u64) -> Result<(u64, u64)> {
        let cases = self.0.get(M0).context("nothing was measured")?;
        let of = cases.iter().filter(|c| c.name.split(':').next() == Some(function));
        let numbers: Vec<u64> = of.map(number).collect();
        numbers.iter().min().zip(numbers.iter().max()).map(|(a, b)| (*a, *b)).context("no case")
    }
}

/// Every piece of README that holds measured numbers.
fn published(is: &Figures<'_>) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    for (title, board, function, asked, steps) in [
        ("M0, 64-bit, weighted", M0, "tatcell_small_check", "240 B", "110 / 70"),
        ("M0, 64-bit, cost 1", M0, "tatcell_small_check_unit", "160 B", "75 / 50"),
        ("M0, 32-bit, cost 1", M0, "tatcell_small32_check_unit", "120 B", "40 / 25"),
        ("M3, 32-bit, cost 1", M3, "tatcell_small32_check_unit", "100 B", "35 / 20"),
        ("rv32imc, 64-bit, weighted", "rv32imc", "tatcell_small_check", "-", "-"),
    ] {
        let (text, took) = (is.text(board, function)?, is.steps(board, function)?);
        rows.push(format!("| {title} | {asked} | {text} B | {steps} | {took} |"));
    }
    for (title, function) in
        [("32-bit, cost 1", "tatcell_small32_check_unit"), ("64-bit, weighted", "tatcell_small_check")]
    {
        rows.push(format!(
            "| tatcell, {title} | {} B | {} |",
            is.text(M0, function)?,
            is.steps(M0, function)?
        ));
    }
    let narrow = "tatcell_small32_check";
    let (took, text) = (is.steps(M0, narrow)?, is.text(M0, narrow)?);
    rows.push(format!("the same weighted request in {took} instructions and {text} bytes"));
    let keyed = "tatcell_small_table_check";
    let (least, most) = is.range(keyed, |c| c.instructions)?;
    let (text, stack) = (is.text(M0, keyed)?, is.most(M0, keyed, "", |c| c.stack)?);
    rows.push(format!(" | {text} B, stack {stack} B | - | {least} to {most} |"));
    let unit = "tatcell_small32_check_unit";
    let (imc, imac) = (is.text("rv32imc", unit)?, is.text("rv32imac", unit)?);
    let steps = [is.steps("rv32imc", unit)?, is.steps("rv32imac", unit)?].join(", ");
    rows.push(format!("| rv32imc / rv32imac, 32-bit, cost 1 | - | {imc} B / {imac} B | - | {steps} |"));

    let masked = |function, kind| is.most(M0, function, kind, |c| c.masked);
    let keyed = is.range(keyed, |c| if c.name.ends_with(":full") { 0 } else { c.masked })?.1;
    rows.push(format!(
        "at most {} instructions of a 32-bit check, {} of a 64-bit one, {} to {keyed} of a keyed one, and {} where",
        masked("tatcell_small32_check", "")?,
        masked("tatcell_small_check", "")?,
        is.range("tatcell_small_table_check", |c| c.masked)?.0,
        masked("tatcell_small_table_check", "")?,
    ));

    for (title, narrow, wide, kind) in CALLS {
        let pair = |number: fn(&Case) -> u64| -> Result<String> {
            let mut text = is.most(M0, narrow, kind, number)?.to_string();
            if !wide.is_empty() {
                write!(text, " ({})", is.most(M0, wide, kind, number)?)?;
            }
            Ok(text)
        };
        let (text, steps) = (pair(|c| c.text)?, pair(|c| c.instructions)?);
        let (masked, stack) = (pair(|c| c.masked)?, pair(|c| c.stack)?);
        rows.push(format!("| {title} | {text} B | {steps} | {masked} | {stack} B |"));
    }
    let waits = |number| -> Result<String> {
        let [narrow, wide] = ["tatcell_small32_reserve", "tatcell_small_reserve"]
            .map(|function| is.most(M0, function, "waiting", number));
        Ok(format!("{} ({})", narrow?, wide?))
    };
    let (steps, masked) = (waits(|c| c.instructions)?, waits(|c| c.masked)?);
    rows.push(format!("| `reserve`, waits | | {steps} | {masked} | {} B |", waits(|c| c.stack)?));
    let place = is.text(M0, "TATCELL_LOG_LIMITED")?;
    rows.push(format!("| one more `TATCELL_LOG_LIMITED` | {place} B, 8 of them RAM | | | |"));
    let m3 = is.most(M3, "tatcell_small32_reserve", "waiting", |c| c.instructions)?;
    let none = is.most(M3, "tatcell_small32_reserve", "", |c| c.masked)?;
    ensure!(none == 0, "a 32-bit reservation masks {none} instructions of a Cortex-M3");
    rows.push(format!(
        "On a Cortex-M3 a 32-bit reservation that waits takes {m3} instructions and masks nothing"
    ));
    Ok(rows)
}

/// Holds every function of the archives on these boards to the bytes that it had, and so many percent.
pub fn sizes(ctx: &Context, report: &mut Report, boards: &[&Board], percent: u64, out: &Path) -> Result<()> {
    let exports = ctx.exports(archive::MAP)?;
    let [choice, ..] = &CHOICES;
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for function in exports {
        let sizes: Result<Vec<u64>> =
            boards.iter().map(|board| text_of(ctx, board, choice.name, &function, out)).collect();
        found.insert(function, sizes?);
    }
    let mut text = "function".to_owned();
    for board in boards {
        write!(text, "\t{}", board.name)?;
    }
    for (function, sizes) in &found {
        write!(text, "\n{function}")?;
        for size in sizes {
            write!(text, "\t{size}")?;
        }
    }
    text.push('\n');
    if std::env::var_os("TATCELL_WRITE_BUDGET").is_some() {
        std::fs::write(ctx.root.join(TEXT), &text)?;
    }
    report.claim("no_function_of_the_archives_has_grown", || {
        let kept = ctx.read(TEXT)?;
        let names = |text: &str| -> Vec<String> {
            text.lines().filter_map(|l| l.split('\t').next()).map(str::to_owned).collect()
        };
        ensure!(names(&kept) == names(&text), "{TEXT} has other functions than the archives");
        ensure!(kept.lines().next() == text.lines().next(), "{TEXT} has other boards");
        let numbers = |line: &str| -> Vec<u64> { line.split('\t').filter_map(|n| n.parse().ok()).collect() };
        let mut grown = Vec::new();
        for (was, is) in kept.lines().zip(text.lines()).skip(1) {
            let (old, new) = (numbers(was), numbers(is));
            ensure!(old.len() == new.len(), "{TEXT}: {was}");
            if old.iter().zip(&new).any(|(old, new)| *new == 0 || *new > old + old * percent / 100) {
                grown.push(format!("{is}\twas {old:?}"));
            }
        }
        ensure!(grown.is_empty(), "larger than in {TEXT}, + {percent} %\n{}", grown.join("\n"));
        Ok(())
    });
    Ok(())
}
