//! Instructions of a decision of the companion crate, by each way of deciding, beside the committed ones.
//!
//! ```text
//!  cluster/gates.tsv            row <tab> instructions of a decision
//!  # rustc 1.95                 the compiler of the numbers
//!  cargo xtask cluster-count    shows them; with --write it writes the file
//!  the suite                    fails above the file's number + 2 %, + 25 % with another compiler
//! ```
//!
//! The rows are those of `cluster/examples/decision_cost.rs`, each in a process of its own under callgrind, which
//! collects in one function only: neither the opening nor the store's thread is in a count. What a process draws at
//! random, where keys lie, moves a count by less than the margin.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, ensure, Context as _, Result};
use xshell::cmd;

use crate::cluster_store::Store;
use crate::context::Context;
use crate::exec::Run;
use crate::report::Report;
use crate::tools::{self, missing, For};

const FILE: &str = "cluster/gates.tsv";
const ROWS: [&str; 3] = ["lease", "reserve", "refused"];
/// As the program has it.
const DECISIONS: f64 = 16_384.0;

/// How far a count may lie above its line, in percent: with the compiler of the file, and with another.
const SLACK: [f64; 2] = [2.0, 25.0];
const COMPILER: &str = "# rustc ";

const HEAD: &str = "\
# Instructions of a decision of a node, loop included, the clock not: row, count. Shown by `cargo xtask cluster-count`,
# written by it with --write, checked by `make test-cluster`: a row fails above its count + 2 %, or + 25 % with another
# compiler than this one.
";

/// `cargo xtask cluster-count [--write]`.
pub fn job(ctx: &Context) -> Result<()> {
    tools::install(ctx, For::Store);
    if let Some(missing) = missing(&["valgrind", "redis-server"]) {
        bail!("{missing}");
    }
    let counts = counts(ctx)?;
    counts.iter().for_each(|(row, each)| println!("{row:8} {each:.2} instructions a decision"));
    if ctx.arguments.iter().any(|argument| argument == "--write") {
        let mut text = format!("{HEAD}{COMPILER}{}\n", compiler(ctx)?);
        counts.iter().try_for_each(|(row, each)| writeln!(text, "{row}\t{each:.2}"))?;
        std::fs::write(ctx.root.join(FILE), text)?;
    }
    Ok(())
}

/// Each row as a claim.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    if let Some(missing) = missing(&["valgrind", "redis-server"]) {
        report.skip("a_decision_takes_no_more_instructions", &missing);
        return Ok(());
    }
    let (file, compiler) = (ctx.read(FILE)?, compiler(ctx)?);
    for (row, each) in counts(ctx)? {
        let name = format!("{row}: a_decision_takes_no_more_instructions");
        match judge(&file, &compiler, row, each) {
            Ok(text) => {
                report.note(&text);
                report.pass(&name);
            }
            Err(why) => report.fail(&name, &why.to_string()),
        }
    }
    Ok(())
}

/// What is said of a row; an error where it takes too many.
fn judge(file: &str, compiler: &str, row: &str, each: f64) -> Result<String> {
    let most = file.lines().find_map(|line| line.strip_prefix(row)?.strip_prefix('\t'));
    let most: f64 = most.with_context(|| format!("{FILE} has no row {row}; write it again"))?.parse()?;
    let same = file.lines().any(|line| line.strip_prefix(COMPILER) == Some(compiler));
    let [with_the_same, with_another] = SLACK;
    let slack = if same { with_the_same } else { with_another };
    let text = format!("{row}: {each:.2} instructions, {most:.2} + {slack} % allowed");
    ensure!(each <= most * (1.0 + slack / 100.0), "{text}");
    Ok(text)
}

fn counts(ctx: &Context) -> Result<Vec<(&'static str, f64)>> {
    let cargo = &ctx.cargo;
    cmd!(ctx.sh, "env {cargo...} build --quiet --release -p tatcell-cluster --example decision_cost")
        .must()?;
    let program = ctx.cargo_target.join("release/examples/decision_cost");
    let store = Store::start(&ctx.folder("cluster-count")?)?;
    ROWS.into_iter().map(|row| Ok((row, count(&program, &store.url(), row)?))).collect()
}

fn count(program: &Path, url: &str, row: &str) -> Result<f64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg("--toggle-collect=*counted_decisions*").arg(program).args([url, row]);
    let said = valgrind.done()?.must().with_context(|| format!("{row} under valgrind"))?;
    let collected =
        said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<f64>().ok());
    let collected = collected.filter(|count| *count > 0.0);
    Ok(collected.with_context(|| format!("no count of {row}: {said}"))? / DECISIONS)
}

/// Major and minor version.
fn compiler(ctx: &Context) -> Result<String> {
    let text = cmd!(ctx.sh, "rustc --version").must()?;
    let version = text.split_whitespace().nth(1).context("a version")?;
    Ok(version.rsplit_once('.').map_or(version, |(minor, _)| minor).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_held_to_its_line_and_to_a_wide_one_with_another_compiler() -> Result<()> {
        let file = "# rustc 1.95\nlease\t100.00\nreserve\t200.00\n";
        for (compiler, row, each, fine) in [
            ("1.95", "lease", 101.9, true),
            ("1.95", "lease", 102.1, false),
            ("1.95", "reserve", 102.1, true),
            ("1.96", "lease", 124.9, true),
            ("1.96", "lease", 125.1, false),
            ("1.95", "refused", 1.0, false),
        ] {
            let judged = judge(file, compiler, row, each);
            ensure!(judged.is_ok() == fine, "{compiler} {row} {each}: {judged:?}");
        }
        Ok(())
    }
}
