//! A check that a planted bug names: what is built for it in the copy of the tree, and how it is run.
//!
//! ```text
//! lib NAME          unit tests whose names contain NAME
//! capi NAME         the same with the C ABI
//! test FILE NAME    tests of tests/FILE.rs
//! avx2 FILE NAME    the same on an emulated x86-64 with AVX2 and without AVX-512, whatever this processor has
//! miri NAME         tests of tests/few_threads.rs under Miri, which knows weak memory, by some seeds
//! loom NAME         models, bounds as in the suite
//! step NAME         worlds of the explorer
//! ffi PROGRAM       a program of ffi-tests, all of its tests
//! fuzz TARGET       the replay of a target of fuzz/: its corpus, and inputs made from it
//! attacks CLAIM     one claim of docs/ATTACKS.md, in the short form
//! long NAME         tests of tests/long.rs, which are left out by day, with a million decisions
//! member PACKAGE FILE NAME
//!                   tests of FILE.rs in the tests of a package of cluster/, or of its library where FILE is lib
//! ```
//!
//! What is built is built apart from what is run, so that a bug that does not compile is not taken for one that was
//! noticed. A test that does not end within [`PATIENCE`] has noticed, too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{anyhow, bail, ensure, Context as _, Result};
use xshell::cmd;

#[cfg(test)]
use crate::context::files;
use crate::context::{command, Context};
use crate::exec::{built, Run};
use crate::machines::avx2_alone;
use crate::sanitizers::miri;
use crate::tools::Missing;

/// How long a check may run.
const PATIENCE: Duration = Duration::from_secs(150);

/// How long it may be built: the first of a package brings all that it needs.
const BUILDING: Duration = Duration::from_secs(3_600);

/// Sizes of tests that have one.
const SIZES: [(&str, &str); 3] =
    [("TATCELL_KILLS", "2000"), ("TATCELL_RACES", "200000"), ("TATCELL_DECISIONS", "1e6")];

/// Builds that follow each other closely.
const QUICK_BUILDS: [(&str, &str); 6] = [
    ("CARGO_INCREMENTAL", "1"),
    ("CARGO_PROFILE_TEST_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_TEST_DEBUG", "0"),
    ("CARGO_PROFILE_DEV_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_LOOM_LTO", "off"),
    ("CARGO_PROFILE_LOOM_CODEGEN_UNITS", "64"),
];

/// The file whose tests Miri runs, and in how many schedules each.
const MIRI: &str = "few_threads";
const SEEDS: u32 = 16;

/// What notices.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Check {
    /// Unit tests; with the C ABI.
    Lib(String, bool),
    /// Tests of a file.
    Test(String, String),
    /// The same where there is AVX2 and no AVX-512.
    Avx2(String, String),
    /// Tests of [`MIRI`].
    Miri(String),
    /// Models under a checker: loom or step.
    Model(&'static str, String),
    /// A program in C.
    Ffi(String),
    /// A target of fuzz/.
    Fuzz(String),
    /// A claim about attacks.
    Attacks(String),
    /// A test of the long run.
    Long(String),
    /// Tests of a package of cluster/: which, of which file or `lib`, and their name.
    Member(Member, String, String),
}

/// A package whose tests are no tests of the library: its name, its folder, and the features of its tests.
pub type Member = (&'static str, &'static str, &'static str);

const MEMBERS: [Member; 4] = [
    ("tatcell-cluster", "cluster", "tokio,tls"),
    ("tatcell-door", "cluster/door", ""),
    ("tatcell-throttled", "cluster/throttled", ""),
    ("tatcell-ratelimit", "cluster/envoy", ""),
];

impl Check {
    /// Reads what stands behind `check`.
    pub fn parse(text: &str) -> Result<Check> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(match *words.as_slice() {
            ["lib", name] => Check::Lib(name.into(), false),
            ["capi", name] => Check::Lib(name.into(), true),
            ["test", file, name] => Check::Test(file.into(), name.into()),
            ["avx2", file, name] => Check::Avx2(file.into(), name.into()),
            ["miri", name] => Check::Miri(name.into()),
            ["loom", name] => Check::Model("loom", name.into()),
            ["step", name] => Check::Model("step", name.into()),
            ["ffi", program] => Check::Ffi(program.into()),
            ["fuzz", target] => Check::Fuzz(target.into()),
            ["attacks", claim] => Check::Attacks(claim.into()),
            ["long", name] => Check::Long(name.into()),
            ["member", package, file, name] => {
                let member = MEMBERS.into_iter().find(|member| member.0 == package);
                let member = member.with_context(|| format!("no package of cluster/: {package}"))?;
                Check::Member(member, file.into(), name.into())
            }
            _ => bail!("no check: {text}"),
        })
    }

    /// What it needs and this machine lacks.
    pub fn lacks(&self, ctx: &Context) -> Option<Missing> {
        match self {
            Check::Miri(_) => miri::found(ctx).err(),
            Check::Avx2(..) => avx2_alone().err(),
            _ => None,
        }
    }

    /// Is there such a test? By its text, without building anything.
    #[cfg(test)]
    pub fn is_there(&self, root: &Path) -> Result<bool> {
        let (folder, name) = match self {
            Check::Ffi(program) => return Ok(root.join(format!("ffi-tests/{program}.c")).is_file()),
            Check::Miri(name) => return Check::Test(MIRI.into(), name.clone()).is_there(root),
            Check::Test(file, name) | Check::Avx2(file, name) => {
                if !root.join(format!("tests/{file}.rs")).is_file() {
                    return Ok(false);
                }
                ("tests".into(), name)
            }
            Check::Fuzz(target) => return Ok(root.join(format!("fuzz/corpus/{target}.hex")).is_file()),
            Check::Attacks(claim) => {
                let text = std::fs::read_to_string(root.join("tools/attacks/src/claims.rs"))?;
                return Ok(text.contains(&format!("(\"{claim}\",")));
            }
            Check::Long(name) => {
                let text = std::fs::read_to_string(root.join("tests/long.rs"))?;
                return Ok(text.contains(&format!("fn {name}")));
            }
            Check::Lib(name, _) | Check::Model(_, name) => ("src".into(), name),
            Check::Member((_, folder, _), file, name) if file == "lib" => (format!("{folder}/src"), name),
            Check::Member((_, folder, _), file, name) => {
                let text = std::fs::read_to_string(root.join(format!("{folder}/tests/{file}.rs")));
                return Ok(text.is_ok_and(|text| text.contains(&format!("fn {name}"))));
            }
        };
        // A function, or a module, which is a file.
        let last = name.rsplit("::").next().unwrap_or(name);
        for file in files(&root.join(folder), ".rs")? {
            let stem = file.file_stem().is_some_and(|stem| stem.to_string_lossy().contains(last));
            let text = std::fs::read_to_string(&file)?;
            if stem || text.lines().any(|line| line.contains("fn ") && line.contains(last)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The program that it is of: checks of two programs have no code of tests in common.
    pub fn stands_on(&self) -> (&'static str, &str) {
        match self {
            Check::Lib(..) => ("lib", ""),
            Check::Test(file, _) | Check::Avx2(file, _) => ("test", file),
            Check::Miri(_) => ("test", MIRI),
            Check::Model(checker, _) => (checker, ""),
            Check::Ffi(program) => ("ffi", program),
            Check::Fuzz(_) => ("fuzz", ""),
            Check::Attacks(_) => ("attacks", ""),
            Check::Long(_) => ("test", "long"),
            Check::Member((package, ..), file, _) => (package, file),
        }
    }

    fn name(&self) -> &str {
        match self {
            Check::Lib(name, _) | Check::Test(_, name) | Check::Model(_, name) | Check::Ffi(name) => name,
            Check::Avx2(_, name)
            | Check::Miri(name)
            | Check::Fuzz(name)
            | Check::Attacks(name)
            | Check::Long(name) => name,
            Check::Member(_, _, name) => name,
        }
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Check::Lib(name, false) => write!(f, "lib {name}"),
            Check::Lib(name, true) => write!(f, "capi {name}"),
            Check::Test(file, name) => write!(f, "test {file} {name}"),
            Check::Avx2(file, name) => write!(f, "avx2 {file} {name}"),
            Check::Miri(name) => write!(f, "miri {name}"),
            Check::Model(checker, name) => write!(f, "{checker} {name}"),
            Check::Ffi(program) => write!(f, "ffi {program}"),
            Check::Fuzz(target) => write!(f, "fuzz {target}"),
            Check::Attacks(claim) => write!(f, "attacks {claim}"),
            Check::Long(name) => write!(f, "long {name}"),
            Check::Member((package, ..), file, name) => write!(f, "member {package} {file} {name}"),
        }
    }
}

/// How a check ended.
pub enum Ended {
    /// All of its tests passed, and there was one.
    Passed,
    /// A test failed.
    Failed,
    /// It was ended.
    TooLong,
    /// It has no test.
    Nothing,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Ended::Passed => "passed",
            Ended::Failed => "failed",
            Ended::TooLong => "did not end",
            Ended::Nothing => "has no test",
        })
    }
}

/// Where checks are built and run.
pub struct Bench {
    /// The copy of the tree.
    pub tree: PathBuf,
    build: PathBuf,
    cargo: Vec<String>,
    cc: Vec<String>,
    sh: xshell::Shell,
}

impl Bench {
    /// Over a copy of the tree.
    pub fn new(ctx: &Context, tree: &Path) -> Result<Bench> {
        let sh = xshell::Shell::new()?;
        sh.change_dir(tree);
        let build = ctx.folder("planted/build")?;
        Ok(Bench { tree: tree.into(), build, cargo: ctx.cargo.clone(), cc: ctx.cc.clone(), sh })
    }

    /// Builds and runs a check; an error where it does not compile.
    pub fn run(&self, check: &Check) -> Result<Ended> {
        let mut run = match check {
            Check::Ffi(program) => Command::new(self.program(program)?),
            Check::Miri(name) => self.under_miri(name)?,
            Check::Avx2(_, name) => {
                let mut run = avx2_alone().map_err(|missing| anyhow!("{missing}"))?;
                run.arg(self.tests(check)?).args([name, "--test-threads=2"]);
                run
            }
            Check::Attacks(claim) => {
                let mut run = Command::new(self.attacks()?);
                run.args(["--quick", "--only", claim]);
                run
            }
            _ => {
                let mut run = Command::new(self.tests(check)?);
                run.arg(check.name()).arg("--test-threads=2");
                run
            }
        };
        match check {
            Check::Model("loom", _) => drop(run.env("TATCELL_LOOM", "").env("RUST_TEST_THREADS", "1")),
            // The name of one target is part of no other's, but of a test of them all.
            Check::Fuzz(_) => drop(run.arg("--exact")),
            Check::Long(_) => drop(run.arg("--ignored")),
            _ => {}
        }
        run.current_dir(&self.tree).envs(SIZES);
        let done = run.done_within(PATIENCE)?;
        let tests = done.stdout.lines().any(|line| line.starts_with("PASS") || line.ends_with("... ok"));
        Ok(match done.status {
            None => Ended::TooLong,
            Some(status) if !status.success() => Ended::Failed,
            Some(_)
                if tests || done.stdout.contains("test result: ok") && !done.stdout.contains(" 0 passed") =>
            {
                Ended::Passed
            }
            Some(_) => Ended::Nothing,
        })
    }

    /// The program with the tests of a check.
    fn tests(&self, check: &Check) -> Result<PathBuf> {
        let mut build = command(&self.cargo)?;
        build.arg("test").arg("--no-run");
        let features = match check {
            Check::Lib(_, true) => "std,capi,host",
            Check::Model(..) => "std",
            Check::Member((.., features), ..) => features,
            Check::Fuzz(_) => "",
            _ => "std,host,heapless",
        };
        build.args(["--features", features]);
        match check {
            Check::Member((package, ..), file, _) if file == "lib" => build.args(["-p", package, "--lib"]),
            Check::Member((package, ..), file, _) => build.args(["-p", package, "--test", file]),
            Check::Test(file, _) | Check::Avx2(file, _) => build.args(["--test", file]),
            Check::Fuzz(_) => build.args(["-p", "tatcell-fuzz", "--test", "replay"]),
            Check::Long(_) => build.args(["--test", "long"]),
            _ => build.arg("--lib"),
        };
        let mut folder = "usual";
        if let Check::Model(checker, _) = check {
            folder = checker;
            build.args(["--profile", "loom"]).env("RUSTFLAGS", format!("--cfg tatcell_{checker}"));
        }
        build.current_dir(&self.tree).envs(QUICK_BUILDS).env("CARGO_TARGET_DIR", self.build.join(folder));
        let said = build.done_within(BUILDING)?;
        ensure!(said.ok(), "does not compile:\n{}", crate::exec::tail(&said.all, 30));
        let path = built(&said.all).next().context("cargo does not say what it built")?;
        Ok(self.tree.join(path))
    }

    /// Miri with these tests, which compile.
    fn under_miri(&self, name: &str) -> Result<Command> {
        let seeds = format!("-Zmiri-many-seeds=0..{SEEDS}");
        let tests =
            |options: &[&str]| miri::test(&self.tree, &self.build.join("miri"), MIRI, &seeds, options);
        let said = tests(&["--no-run"]).done_within(BUILDING)?;
        ensure!(said.ok(), "does not compile:\n{}", crate::exec::tail(&said.all, 30));
        Ok(tests(&["--", name]))
    }

    /// The program with the claims about attacks, as fast as its suite has it.
    fn attacks(&self) -> Result<PathBuf> {
        let mut build = command(&self.cargo)?;
        build.args(["build", "--quiet", "--release", "-p", "tatcell-attacks"]);
        let folder = self.build.join("usual");
        build.current_dir(&self.tree).env("CARGO_TARGET_DIR", &folder);
        let said = build.done_within(BUILDING)?;
        ensure!(said.ok(), "does not compile:\n{}", crate::exec::tail(&said.all, 30));
        Ok(folder.join("release/tatcell-attacks"))
    }

    /// A program in C, with the library as it is in the tree.
    fn program(&self, name: &str) -> Result<PathBuf> {
        let mut build = command(&self.cargo)?;
        build.args(["rustc", "--quiet", "--lib", "--features", "capi,host,std", "--crate-type", "staticlib"]);
        let folder = self.build.join("usual");
        build.current_dir(&self.tree).envs(QUICK_BUILDS).env("CARGO_TARGET_DIR", &folder);
        build.done()?.must().context("does not compile")?;
        let (archive, source) =
            (folder.join("debug/libtatcell.a"), self.tree.join(format!("ffi-tests/{name}.c")));
        let out = self.build.join(name);
        let cc = &self.cc;
        let options = ["-std=c11", "-D_GNU_SOURCE", "-pthread", "-Iinclude", "-O1", "-g"];
        cmd!(self.sh, "env {cc...} {options...} {source} {archive} -ldl -lm -o {out}").must()?;
        Ok(out)
    }
}
