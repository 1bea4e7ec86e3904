//! One program with all mutants: a copy of the tree whose sources `tools/mutants` writes, compiled until no mutant is
//! left that does not compile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context as _, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::context::{command, Context};
use crate::exec::{built, tail, Run};
use crate::ffi::jobs::{self, Alone};

/// Features with which the tests are built.
const FEATURES: &str = "std,host,heapless,single-core,capi";
/// Tests that look at files, take a program apart, reach no line of the core, or judge what the machine does.
pub const NOT_RUN: [&str; 8] =
    ["defects", "explorer", "kill", "layout", "lease_cost", "long", "race", "small_header"];
/// Errors that come from the mutant and not from the way in which it is written here: there is no such macro, path,
/// value, function, trait, type, operator, constant function.
const ITS_OWN: [&str; 12] = [
    "E0433", "E0425", "E0432", "E0423", "E0277", "E0308", "E0599", "E0369", "E0600", "E0015", "E0107",
    "E0282",
];
/// How it builds.
const BUILDS: [(&str, &str); 4] = [
    // Tests that end with the first failure, and what tells a running program from what is computed before.
    ("RUSTC_BOOTSTRAP", "1"),
    ("CARGO_PROFILE_TEST_DEBUG", "0"),
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ("CARGO_TERM_COLOR", "never"),
];
/// All in one program, which runs for minutes; and one alone, whose next build is a small one.
const TOGETHER: [(&str, &str); 3] =
    [("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_TEST_OPT_LEVEL", "1"), ("CARGO_PROFILE_DEV_OPT_LEVEL", "1")];
const APART: [(&str, &str); 3] =
    [("CARGO_INCREMENTAL", "1"), ("CARGO_PROFILE_TEST_OPT_LEVEL", "0"), ("CARGO_PROFILE_DEV_OPT_LEVEL", "0")];

/// A mutant of the list.
pub struct Listed {
    pub number: u32,
    /// `file:line:column: what`.
    pub name: String,
    pub state: State,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is in the program.
    Placed,
    /// It cannot be written so, or what is written does not compile for a reason that may not be its own.
    Alone,
    /// It does not compile.
    Uncompiled,
}

/// The copy of the tree, and what cargo-mutants says of it.
pub struct Bench<'a> {
    pub ctx: &'a Context,
    pub tree: PathBuf,
    list: PathBuf,
    tool: PathBuf,
}

impl<'a> Bench<'a> {
    /// Copies the tree and lists the mutants of these files.
    pub fn of(ctx: &'a Context, files: &[String]) -> Result<Bench<'a>> {
        let (cargo, sh) = (&ctx.cargo, &ctx.sh);
        let tree = ctx.folder("mutants/tree")?;
        crate::planted::copy(ctx, &tree)?;
        let mut ask = command(cargo)?;
        ask.args(["mutants", "--list", "--json", "--package", "tatcell", "--colors", "never"]);
        ask.current_dir(&ctx.root);
        for file in files {
            let text = ctx.read(file)?;
            ask.args(["--file", file]);
            let tests = crate::coverage::tests_of(&text)..text.lines().count();
            // cargo-mutants knows a module of tests by `cfg(test)` alone; its names have the line.
            if !tests.is_empty() {
                let lines: Vec<String> = tests.map(|line| line.saturating_add(1).to_string()).collect();
                ask.args(["--exclude-re", &format!("^{}:({}):", file.replace('.', r"\."), lines.join("|"))]);
            }
        }
        let list = ctx.folder("mutants")?.join("list.json");
        let done = ask.done()?;
        ensure!(done.ok(), "cargo mutants: {}\n{}", done.how(), tail(&done.all, 20));
        std::fs::write(&list, done.stdout)?;
        cmd!(sh, "env {cargo...} build --quiet --package tatcell-mutants").must()?;
        let tool = ctx.cargo_target.join("debug/tatcell-mutants");
        Ok(Bench { ctx, tree, list, tool })
    }

    /// Writes the sources; what the compiler refuses is left out of the next writing.
    pub fn write(&self) -> Result<Vec<Listed>> {
        let mut left_out: BTreeMap<u32, State> = BTreeMap::new();
        let file = self.list.with_file_name("left-out");
        // As the library of the tests in tests/, then as that of its own.
        for profile in ["dev", "test"] {
            loop {
                let numbers: Vec<String> = left_out.keys().map(u32::to_string).collect();
                std::fs::write(&file, numbers.join("\n"))?;
                let check =
                    self.cargo(&["check", "--lib", "--message-format=short", "--profile", profile])?;
                self.tool("all", &file.to_string_lossy())?;
                let done = check.done()?;
                if done.ok() {
                    break;
                }
                let found = refused(&self.tree, &done.all)?;
                let before = left_out.len();
                for (number, state) in found {
                    left_out.entry(number).or_insert(state);
                }
                ensure!(left_out.len() > before, "not a mutant's error:\n{}", tail(&done.all, 40));
            }
        }
        let listed = |line: &str| {
            let [number, placed, name] = line.split('\t').collect::<Vec<_>>()[..] else { bail!("{line}") };
            let number = number.parse()?;
            let state = match left_out.get(&number) {
                Some(state) => *state,
                None if placed == "1" => State::Placed,
                None => State::Alone,
            };
            Ok(Listed { number, name: name.to_owned(), state })
        };
        self.tool("all", &file.to_string_lossy())?.lines().map(listed).collect()
    }

    /// Builds the tests of the library, and these of tests/, with all mutants. None: it does not compile.
    pub fn programs(&self, tests: &[String]) -> Result<Option<Vec<PathBuf>>> {
        let mut build = self.cargo(&["test", "--no-run", "--lib"])?;
        build.args(tests.iter().map(|name| format!("--test={name}")));
        self.built(build)
    }

    /// Builds the unit tests, or one file of tests/, with one mutant alone. None: it does not compile.
    pub fn programs_alone(&self, number: u32, file: Option<&str>) -> Result<Option<Vec<PathBuf>>> {
        crate::planted::copy(self.ctx, &self.tree)?;
        self.tool("alone", &number.to_string())?;
        let which = file.map_or("--lib".to_owned(), |name| format!("--test={name}"));
        let mut build = self.cargo(&["test", "--no-run", &which])?;
        build.envs(APART).env("CARGO_TARGET_DIR", self.ctx.folder("mutants/apart")?);
        self.built(build)
    }

    /// Builds the programs in C with an archive that has all mutants.
    pub fn programs_in_c(&self) -> Result<Vec<Alone>> {
        let build = self.cargo(&["rustc", "--lib", "--crate-type", "staticlib"])?;
        build.done_within(std::time::Duration::from_secs(3600))?.must()?;
        let archive = self.ctx.folder("mutants/build")?.join("debug/libtatcell.a");
        jobs::with_archive(self.ctx, &archive, &self.ctx.folder("mutants/ffi")?)
    }

    fn built(&self, build: Command) -> Result<Option<Vec<PathBuf>>> {
        let done = build.done_within(std::time::Duration::from_secs(3600))?;
        if !done.ok() {
            ensure!(done.all.contains("could not compile"), "{}\n{}", done.how(), tail(&done.all, 40));
            return Ok(None);
        }
        Ok(Some(built(&done.all).map(|path| self.tree.join(path)).collect()))
    }

    fn tool(&self, how: &str, what: &str) -> Result<String> {
        let mut tool = Command::new(&self.tool);
        tool.arg(how).arg(&self.ctx.root).arg(&self.tree).arg(&self.list).arg(what);
        tool.must()
    }

    fn cargo(&self, words: &[&str]) -> Result<Command> {
        let mut cargo = gently();
        cargo.args(&self.ctx.cargo).args(words).args(["--features", FEATURES]);
        cargo.current_dir(&self.tree).envs(BUILDS).envs(TOGETHER);
        cargo.env("CARGO_TARGET_DIR", self.ctx.folder("mutants/build")?);
        Ok(cargo)
    }
}

/// A command, whose words follow, that gives way to others: as far as this one does, where that is far already. Twice
/// as far, beside others that do, takes ten times as long.
pub fn gently() -> Command {
    static MORE: std::sync::OnceLock<&str> = std::sync::OnceLock::new();
    let more = MORE.get_or_init(|| {
        let far = Command::new("nice").must().ok().and_then(|said| said.trim().parse::<i32>().ok());
        match far {
            Some(10..) => "0",
            _ => "10",
        }
    });
    let mut nice = Command::new("nice");
    nice.args(["-n", more]);
    nice
}

/// The mutants that an error of the compiler is about, by the comments in the text that was compiled.
fn refused(tree: &Path, said: &str) -> Result<BTreeMap<u32, State>> {
    let place = Regex::new(r"(?m)^(src/\S+?):(\d+):\d+: error(.*)$")?;
    let own = Regex::new(r"^\s*/\*(\d+)\*/ (\d+ =>|if crate::mutant)")?;
    let mark = Regex::new(r"/\*(\d+)\*/")?;
    let mut found = BTreeMap::new();
    for error in place.captures_iter(said) {
        let part = |at: usize| error.get(at).map_or("", |part| part.as_str());
        let text = std::fs::read_to_string(tree.join(part(1)))?;
        let lines: Vec<&str> = text.lines().take(part(2).parse()?).collect();
        let last = lines.last().copied().context("an error without a line")?;
        if let Some(number) = own.captures(last).and_then(|own| own.get(1)) {
            let its =
                ITS_OWN.iter().any(|code| part(3).contains(code)) || part(3).contains("cannot find macro");
            let state = if its { State::Uncompiled } else { State::Alone };
            found.insert(number.as_str().parse()?, state);
            continue;
        }
        let marked = lines.iter().rev().find(|line| mark.is_match(line)).copied().unwrap_or_default();
        let numbers: BTreeSet<&str> =
            mark.captures_iter(marked).filter_map(|one| Some(one.get(1)?.as_str())).collect();
        for number in numbers {
            found.entry(number.parse()?).or_insert(State::Alone);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_brought_home_to_its_mutant() -> Result<()> {
        let tree = std::env::temp_dir().join(format!("tatcell-mutants-{}", std::process::id()));
        std::fs::create_dir_all(tree.join("src"))?;
        let text = "fn a() {\n/*3*/ if crate::mutant::is(3) { return x; }\n/*4*//*5*/ (match a {\n\
                    /*4*/ 4 => b,\n/*5*/ 5 => c,\n/*4*//*5*/ _ => d\n})\n";
        std::fs::write(tree.join("src/a.rs"), text)?;
        let of = |said: &str| -> Result<Vec<(u32, bool)>> {
            let found = refused(&tree, said)?.into_iter();
            Ok(found.map(|(number, state)| (number, state == State::Uncompiled)).collect())
        };
        ensure!(of("src/a.rs:2:40: error[E0425]: cannot find value\n")? == [(3, true)]);
        ensure!(of("src/a.rs:5:4: error[E0507]: cannot move\n")? == [(5, false)]);
        ensure!(
            of("src/a.rs:3:4: error[E0308]: x\nsrc/a.rs:4:1: error[E0308]: x\n")? == [(4, true), (5, false)]
        );
        ensure!(of("src/a.rs:5:4: warning: unused\n")?.is_empty());
        std::fs::remove_dir_all(tree).map_err(Into::into)
    }

    #[test]
    fn who_gives_way_already_gives_way_no_further() -> Result<()> {
        let far = |command: Command| -> Result<i32> { Ok(command.must()?.trim().parse()?) };
        let own = far(Command::new("nice"))?;
        let mut child = gently();
        child.arg("nice");
        let more = if own < 10 { 10 } else { 0 };
        ensure!(far(child)? == (own + more).min(19));
        Ok(())
    }

    #[test]
    fn every_test_that_no_mutant_meets_is_there() -> Result<()> {
        let names: Vec<String> = crate::rust_tests::targets(&Context::new()?)?;
        ensure!(NOT_RUN.iter().all(|name| names.iter().any(|other| other == name)));
        Ok(())
    }
}
