//! Proofs by programs of others: the insert protocol in Promela, by Spin; the arithmetic, by z3.
//!
//! What is weakened on purpose must be found out, each weakening in its own run: a model that finds nothing there would
//! find nothing elsewhere.

use anyhow::{ensure, Context as _, Result};
use xshell::cmd;

use crate::context::Context;
use crate::exec::{tail, Run};
use crate::report::Report;
use crate::tools::{have, missing, Missing};

const MODEL: &str = "proofs/insert.pml";

/// A run of the model: its name in the claims, and flags.
type Model = (&'static str, &'static [&'static str]);

/// What must hold, with a slot a line.
const HOLDS: &[Model] = &[("admit", &[]), ("inherit", &["INHERIT"])];

/// What must be found out.
const WEAKENED: &[Model] = &[
    ("insert_by_one_swap", &["NAIVE"]),
    ("no_second_look", &["NO_SECOND_LOOK"]),
    ("a_strangers_claim_after_one_look", &["FOREIGN_ONCE"]),
    ("claims_without_a_version", &["UNVERSIONED", "RECURS"]),
    ("higher_claims_stay", &["NO_DROP"]),
    ("a_drop_that_is_lost_is_ignored", &["DROP_IGNORED"]),
    ("the_home_line_alone_is_looked_at", &["HOME_ONLY"]),
    ("a_store_for_the_swap_of_a_charge", &["BLIND_CHARGE"]),
    ("a_refund_of_the_whole_inserting_charge", &["REFUND_WHOLE"]),
    ("claims_of_the_dead_block", &["CLAIMS_BLOCK"]),
    ("drops_lose_the_parity", &["INHERIT", "PARITY_LOST"]),
    ("a_debt_is_a_free_slot", &["INHERIT", "DEBT_FREE"]),
];

/// With two slots a line, world by world.
const LARGE: &[Model] = &[
    ("admit_two_keys", &["PER_LINE=2", "WORLD=2"]),
    ("admit_claims_of_the_dead", &["PER_LINE=2", "WORLD=3"]),
    ("admit_second_line", &["PER_LINE=2", "WORLD=4"]),
    ("inherit_strangers", &["PER_LINE=2", "INHERIT", "WORLD=5"]),
    ("inherit_debt_left", &["PER_LINE=2", "INHERIT", "WORLD=6"]),
];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    if let Some(missing) = missing(&["spin"]) {
        report.skip("spin", &missing);
    } else {
        holds(ctx, report, HOLDS)?;
        for (name, flags) in WEAKENED {
            let found = explore(ctx, flags)?;
            report.claim(&format!("spin: {name}_is_found_out"), || {
                ensure!(found.broken.is_some(), "nothing found in {} states", found.states);
                Ok(())
            });
        }
    }
    arithmetic(ctx, report)
}

/// The same model with more slots: minutes, and gigabytes of states.
pub fn long(ctx: &Context, report: &mut Report) -> Result<()> {
    match missing(&["spin"]) {
        Some(missing) => report.skip("spin", &missing),
        None => holds(ctx, report, LARGE)?,
    }
    Ok(())
}

fn holds(ctx: &Context, report: &mut Report, models: &[Model]) -> Result<()> {
    for (name, flags) in models {
        let found = explore(ctx, flags)?;
        report.note(&format!("{name}: {} states, all of them", found.states));
        report.claim(&format!("spin: {name}_holds_in_every_state"), || {
            ensure!(found.broken.is_none(), "{}", found.broken.unwrap_or_default());
            Ok(())
        });
    }
    Ok(())
}

/// What an exploration has found.
struct Found {
    states: u64,
    /// What was violated, if anything.
    broken: Option<String>,
}

/// Explores the whole model, or to its first violation; an error where it did not get through.
fn explore(ctx: &Context, flags: &[&str]) -> Result<Found> {
    let folder = ctx.folder(&format!("proofs/{}", flags.join("-")))?;
    let (cc, model) = (&ctx.cc, ctx.root.join(MODEL));
    let defines = flags.iter().map(|flag| format!("-D{flag}"));
    let quiet = ["-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048"];
    let _there = ctx.sh.push_dir(&folder);
    cmd!(ctx.sh, "spin -a {defines...} {model}").must()?;
    cmd!(ctx.sh, "env {cc...} {quiet...} -o pan pan.c").must()?;
    let done = cmd!(ctx.sh, "./pan -m1000000").done()?;
    let line = |part: &str| done.all.lines().find(|line| line.contains(part));
    let whole = line("Search not completed").is_none() && line("max search depth").is_none();
    let number = |line: &str| line.split_whitespace().find_map(|word| word.parse().ok());
    let states = line("states, stored").and_then(number);
    let states = states.with_context(|| format!("no count of states: {}", tail(&done.all, 5)))?;
    let broken = line("pan:1:").map(|line| line.trim_start_matches("pan:1: ").to_owned());
    let errors = line("errors: ").and_then(|line| line.rsplit_once(": ")?.1.trim().parse::<u64>().ok());
    let errors = errors.context("no count of errors")?;
    ensure!((errors > 0) == broken.is_some(), "{errors} errors, and {broken:?}");
    ensure!(broken.is_some() || whole, "the search did not get through: {}", tail(&done.all, 5));
    Ok(Found { states, broken })
}

fn arithmetic(ctx: &Context, report: &mut Report) -> Result<()> {
    // Another Python may come before the system's, which has Debian's package.
    let has_z3 = |python: &&str| have(python) && cmd!(ctx.sh, "{python} -c 'import z3'").works();
    match ["python3", "/usr/bin/python3"].into_iter().find(has_z3) {
        Some(python) => {
            let command = cmd!(ctx.sh, "{python} proofs/arithmetic.py");
            report.program("arithmetic", command.into()).map(drop)
        }
        None => {
            let get = "apt-get install python3-z3, or pip install z3-solver";
            report.skip("z3", &Missing::new("z3 for Python is not installed", get));
            Ok(())
        }
    }
}
