//! All mutants of cargo-mutants in one program, one of them chosen as it starts (mutant schemata): built once, where
//! cargo-mutants builds once a mutant.
//!
//! ```text
//! tatcell-mutants all   FROM TO LIST LEFT_OUT   writes the sources of FROM to TO, with the mutants of LIST but those
//!                                               whose numbers stand in the file LEFT_OUT; prints number, tab, whether
//!                                               it is in it, tab, name of each
//! tatcell-mutants alone FROM TO LIST NUMBER     writes one source with one mutant, as cargo-mutants does
//! ```
//!
//! LIST is what `cargo mutants --list --json` prints. What is computed as the library is compiled has no mutant: those
//! that nothing else asks for are for `alone`.

mod list;
mod schemata;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{bail, Context as _, Result};

use list::{Mutant, Places};

/// What chooses.
const CHOSEN: &str = include_str!("chosen.rs");
/// Stands in lib.rs; what is needed to choose stands behind it.
const FIRST: &str = "#![no_std]\n";
/// Of the compiler: told apart from what is computed as the library is compiled.
const NEEDED: &str =
    "#![feature(const_eval_select, core_intrinsics)]\n#![allow(internal_features, warnings)]\n";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["all", from, to, list, left_out] => all(Path::new(from), Path::new(to), list, left_out),
        ["alone", from, to, list, number] => alone(Path::new(from), Path::new(to), list, number.parse()?),
        _ => bail!("tatcell-mutants all FROM TO LIST LEFT_OUT, or alone FROM TO LIST NUMBER"),
    }
}

fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn all(from: &Path, to: &Path, list: &str, left_out: &str) -> Result<()> {
    let mutants = list::read(&read(list)?)?;
    let left_out: BTreeSet<u32> = read(left_out)?.lines().filter_map(|line| line.parse().ok()).collect();
    let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    let mut placed = BTreeSet::new();
    for file in files {
        let mine = |mutant: &&Mutant| mutant.file == file && !left_out.contains(&mutant.number);
        let mine: Vec<&Mutant> = mutants.iter().filter(mine).collect();
        let (text, numbers) =
            schemata::write(&read(from.join(file))?, &mine).with_context(|| file.to_owned())?;
        std::fs::write(to.join(file), text)?;
        placed.extend(numbers);
    }
    let root = to.join("src/lib.rs");
    let text = read(from.join("src/lib.rs"))?.replacen(FIRST, &format!("{FIRST}{NEEDED}"), 1);
    let count = format!("const COUNT: usize = {};\n", mutants.len().saturating_add(1));
    let chosen = CHOSEN.replacen("    const UNKNOWN", &format!("    {count}    const UNKNOWN"), 1);
    std::fs::write(root, format!("{text}\n{chosen}"))?;
    for mutant in &mutants {
        println!("{}\t{}\t{}", mutant.number, u8::from(placed.contains(&mutant.number)), mutant.name);
    }
    Ok(())
}

fn alone(from: &Path, to: &Path, list: &str, number: u32) -> Result<()> {
    let mutants = list::read(&read(list)?)?;
    let mutant = mutants.iter().find(|mutant| mutant.number == number).context("no such mutant")?;
    let mut text = read(from.join(&mutant.file))?;
    let span = mutant.span(&Places::of(&text))?;
    text.replace_range(span, &mutant.replacement);
    std::fs::write(to.join(&mutant.file), text)?;
    Ok(())
}
