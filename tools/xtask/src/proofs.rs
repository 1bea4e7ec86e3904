//! Proofs by programs of others: the insert protocol in Promela, by Spin; the arithmetic, by z3.
//!
//! What is weakened on purpose must be found out, each weakening in its own run, and by the assertion that it breaks: a
//! model that finds nothing there would find nothing elsewhere, and one that stops at something else has not found it.
//! A whole search must not have fewer states than it had, but for a fifth or so.

use anyhow::{bail, ensure, Context as _, Result};
use xshell::cmd;

use crate::context::Context;
use crate::exec::{tail, Run};
use crate::report::Report;
use crate::tools::{have, missing, Missing};

const MODEL: &str = "proofs/insert.pml";

/// A run of the model: its name in the claims, flags, and how many states it has at least: a world that was lost, or a
/// caller that never runs, leaves fewer.
type Model = (&'static str, &'static [&'static str], u64);

/// What must hold, with a slot a line: 5 011 484 and 676 521 states.
const HOLDS: &[Model] = &[("admit", &[], 4_000_000), ("inherit", &["INHERIT"], 1_000_000)];

// Assertions of the model, in Spin's words.
const TWO_WORDS: &str =
    "((((j==to)||(((next>>11)&3)==0))||((next>>13)==1))|| !(((slot[j]>>11)==((next>>11)&3))))";
const CLAIM_NOT_ABOVE: &str = "((next&2047)>highest[to])";
const ABOVE_A_BURST: &str = "(solo||(net[key]<=((64+last)-first)))";
const NEVER_ENDS: &str = "(looks<=5)";
const REFUSED_FOR_EVER: &str = "(verdict==1)";
const DEBT_LOST: &str = "((sum+((2*1)*(last-first)))>=((owed+net[1])+net[2]))";

/// A weakened run: its name in the claims, flags, and the assertion that it breaks first.
type Weakened = (&'static str, &'static [&'static str], &'static str);

/// What must be found out.
const WEAKENED: &[Weakened] = &[
    ("insert_by_one_swap", &["NAIVE"], TWO_WORDS),
    ("no_second_look", &["NO_SECOND_LOOK"], TWO_WORDS),
    ("a_strangers_claim_after_one_look", &["FOREIGN_ONCE"], TWO_WORDS),
    ("claims_without_a_version", &["UNVERSIONED", "RECURS"], TWO_WORDS),
    ("higher_claims_stay", &["NO_DROP"], TWO_WORDS),
    ("a_drop_that_is_lost_is_ignored", &["DROP_IGNORED"], TWO_WORDS),
    // Who is alone tries for ever to claim a slot that it has not looked at.
    ("the_home_line_alone_is_looked_at", &["HOME_ONLY"], NEVER_ENDS),
    ("a_store_for_the_swap_of_a_charge", &["BLIND_CHARGE"], ABOVE_A_BURST),
    // The word falls below its claim, and the next claim on it below that.
    ("a_refund_of_the_whole_inserting_charge", &["REFUND_WHOLE"], CLAIM_NOT_ABOVE),
    ("claims_of_the_dead_block", &["CLAIMS_BLOCK"], REFUSED_FOR_EVER),
    ("drops_lose_the_parity", &["INHERIT", "PARITY_LOST"], DEBT_LOST),
    ("a_debt_is_a_free_slot", &["INHERIT", "DEBT_FREE"], DEBT_LOST),
];

/// With two slots a line, world by world: 24 382 912, 155 376, 42 213, 3 467 495 and 2 854 193 states.
const LARGE: &[Model] = &[
    ("admit_two_keys", &["PER_LINE=2", "WORLD=2"], 20_000_000),
    ("admit_claims_of_the_dead", &["PER_LINE=2", "WORLD=3"], 120_000),
    ("admit_second_line", &["PER_LINE=2", "WORLD=4"], 30_000),
    ("inherit_strangers", &["PER_LINE=2", "INHERIT", "WORLD=5"], 2_500_000),
    ("inherit_debt_left", &["PER_LINE=2", "INHERIT", "WORLD=6"], 2_000_000),
];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    if let Some(missing) = missing(&["spin"]) {
        report.skip("spin", &missing);
    } else {
        holds(ctx, report, HOLDS)?;
        for (name, flags, assertion) in WEAKENED {
            let found = explore(ctx, flags)?;
            report.claim(&format!("spin: {name}_is_found_out"), || found.is_of(assertion));
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
    for (name, flags, least) in models {
        let found = explore(ctx, flags)?;
        report.note(&format!("{name}: {} states, all of them", found.states));
        report.claim(&format!("spin: {name}_holds_in_every_state"), || found.holds(*least));
    }
    Ok(())
}

/// What an exploration has found.
struct Found {
    states: u64,
    /// What was violated, if anything.
    broken: Option<String>,
}

impl Found {
    /// Nothing was violated, in so many states at least.
    fn holds(&self, least: u64) -> Result<()> {
        ensure!(self.broken.is_none(), "{}", self.broken.as_deref().unwrap_or_default());
        ensure!(self.states >= least, "{} states, and there should be {least}", self.states);
        Ok(())
    }

    /// This assertion was violated, and nothing else before it.
    fn is_of(&self, assertion: &str) -> Result<()> {
        let Some(broken) = &self.broken else { bail!("nothing found in {} states", self.states) };
        let is_it = broken.strip_prefix("assertion violated ").and_then(|rest| rest.strip_prefix(assertion));
        ensure!(
            is_it.is_some_and(|rest| rest.starts_with(" (at depth ")),
            "{broken}, instead of {assertion}"
        );
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(states: u64, broken: &str) -> Found {
        Found { states, broken: (!broken.is_empty()).then(|| broken.to_owned()) }
    }

    #[test]
    fn a_weakened_model_is_found_out_by_its_own_assertion_alone() {
        let of = |broken: &str| found(1_743, broken).is_of(TWO_WORDS).is_ok();
        assert!(of(&format!("assertion violated {TWO_WORDS} (at depth 181)")));
        assert!(!of(&format!("assertion violated {NEVER_ENDS} (at depth 444)")), "another assertion");
        assert!(!of("invalid end state (at depth 40)"), "a deadlock");
        assert!(!of("indexing slot[4] - size is 2 (at depth 12)") && !of(""), "an index, or nothing");
    }

    #[test]
    fn a_model_holds_that_broke_nothing_in_no_fewer_states_than_it_has() {
        for ((_, _, least), states) in HOLDS.iter().zip([5_011_484, 1_414_101]) {
            assert!(found(states, "").holds(*least).is_ok() && found(least - 1, "").holds(*least).is_err());
            assert!(states - least < states / 3, "a world could be lost");
            assert!(found(states, "invalid end state (at depth 40)").holds(*least).is_err());
        }
    }
}
