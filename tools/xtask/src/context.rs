//! Where things are and which compilers are used: the environment of the harness, read once.
//!
//! `CC`, `CXX`, `CARGO` and `MAKE` may hold several words, as in make; `env` runs them. All paths are below the
//! repository's root, which is the working folder of every command.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context as _, Result};
use xshell::Shell;

/// Repository, compilers and versions.
pub struct Context {
    /// Commands run in the repository's root.
    pub sh: Shell,
    /// The repository's root, absolute.
    pub root: PathBuf,
    /// The C compiler.
    pub cc: Vec<String>,
    /// The C++ compiler.
    pub cxx: Vec<String>,
    /// Cargo.
    pub cargo: Vec<String>,
    /// GNU make, for the recipes that users run.
    pub make: Vec<String>,
    /// Where cargo builds.
    pub cargo_target: PathBuf,
    /// The version of the library.
    pub version: String,
    /// The version of its ABI.
    pub abi: String,
    /// What the command line says after the name of a suite.
    pub arguments: Vec<String>,
    /// Whether long suites run in their short forms, of a stated size: `TATCELL_QUICK=1`.
    pub quick: bool,
    /// Whether a variable takes a part of a suite.
    pub narrow: bool,
}

/// A lock that a run holds.
#[must_use]
pub struct Held {
    place: PathBuf,
}

impl Drop for Held {
    fn drop(&mut self) {
        // A file that stays is one of a process that is gone.
        drop(std::fs::remove_file(&self.place));
    }
}

/// Warnings are errors in everything written in C and C++.
pub const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];

/// Variables that take a part of a suite.
const NARROW: [&str; 3] = ["FILE", "LISTED", "ONLY"];
/// What begins so sets how much a test does, or which of its parts; but for these.
const SIZES: &str = "TATCELL_";
const NO_SIZES: [&str; 3] = ["TATCELL_QUICK", "TATCELL_LONG", "TATCELL_CPU"];

/// Does this variable make a suite another one than its own?
fn narrows(name: &str) -> bool {
    NARROW.contains(&name) || name.starts_with(SIZES) && !NO_SIZES.contains(&name)
}

/// The repository's root.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Where the number of the ABI stands.
const ABI_IN: &str = "src/capi/codes.rs";
const ABI_LINE: &str = "pub const TATCELL_ABI_VERSION: u32 = ";

impl Context {
    /// The SONAME of the shared library: it changes with the ABI only.
    pub fn soname(&self) -> String {
        format!("libtatcell.so.{}", self.abi)
    }

    /// Reads the environment. Must be called before any thread runs.
    pub fn new() -> Result<Self> {
        let root = Path::new(ROOT).canonicalize()?;
        forget_cargo_run(&root);
        Self::of(root)
    }

    /// The same, with the environment as it is.
    pub fn of(root: PathBuf) -> Result<Self> {
        let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
        let version = manifest.lines().find_map(|l| l.strip_prefix("version = \"")?.strip_suffix('"'));
        let codes = std::fs::read_to_string(root.join(ABI_IN))?;
        let abi = codes.lines().find_map(|l| l.strip_prefix(ABI_LINE)?.strip_suffix(';'));
        let cargo_target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        let sh = Shell::new()?;
        sh.change_dir(&root);
        Ok(Self {
            sh,
            cc: words("CC", "cc"),
            cxx: words("CXX", "c++"),
            cargo: words("CARGO", "cargo"),
            make: words("MAKE", "make"),
            cargo_target: root.join(cargo_target),
            version: version.context("Cargo.toml has no version")?.to_owned(),
            abi: abi.with_context(|| format!("{ABI_IN} has no ABI version"))?.to_owned(),
            arguments: std::env::args().skip(2).collect(),
            quick: is_set("TATCELL_QUICK"),
            narrow: std::env::vars_os()
                .any(|(name, value)| name.to_str().is_some_and(narrows) && !value.is_empty()),
            root,
        })
    }

    /// The same for another thread, which needs a shell of its own.
    pub fn another(&self) -> Result<Self> {
        let sh = Shell::new()?;
        sh.change_dir(&self.root);
        let Self { cc, cxx, cargo, make, cargo_target, version, abi, arguments, root, quick, narrow, .. } =
            self;
        Ok(Self {
            sh,
            cc: cc.clone(),
            cxx: cxx.clone(),
            cargo: cargo.clone(),
            make: make.clone(),
            cargo_target: cargo_target.clone(),
            version: version.clone(),
            abi: abi.clone(),
            arguments: arguments.clone(),
            quick: *quick,
            narrow: *narrow,
            root: root.clone(),
        })
    }

    /// In which form suites run that do not run in full: a log of that is no evidence of the whole.
    pub fn form(&self) -> Option<&'static str> {
        match self.narrow || !self.arguments.is_empty() {
            true => Some("in part"),
            false => self.quick.then_some("quick"),
        }
    }

    /// A folder below `target/`, made if need be.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join("target").join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// The same, empty.
    pub fn empty_folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join("target").join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path).with_context(|| format!("cannot empty {}", path.display()))?;
        }
        self.folder(name)
    }

    /// Takes a lock below `target/` until what is returned goes; an error while another run has it. A run that was
    /// killed leaves the file: it names a process that is gone, and is taken over.
    pub fn hold(&self, name: &str) -> Result<Held> {
        let place = self.root.join("target").join(name);
        std::fs::create_dir_all(place.parent().unwrap_or(&self.root))?;
        if let Ok(holder) = std::fs::read_to_string(&place) {
            if Path::new("/proc").join(holder.trim()).is_dir() && !holder.trim().is_empty() {
                bail!("process {} runs it in this tree ({})", holder.trim(), place.display());
            }
            std::fs::remove_file(&place)?;
        }
        let mut file = std::fs::File::create_new(&place)
            .with_context(|| format!("another run has taken {}", place.display()))?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Held { place })
    }

    /// The text of a file of the repository.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = self.root.join(path);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Names of the functions that a linker script exports.
    pub fn exports(&self, map: &str) -> Result<Vec<String>> {
        let text = self.read(map)?;
        let names = text.lines().filter_map(|l| l.trim().split_once(';')).map(|(name, _)| name);
        let mut names: Vec<String> = names.filter(|n| n.starts_with("tatcell_")).map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }
}

/// Whether a variable is there, and not empty.
pub fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// The words of a variable; `default` where it is unset or empty.
pub fn words(name: &str, default: &str) -> Vec<String> {
    let value = std::env::var(name).ok().filter(|v| !v.trim().is_empty()).unwrap_or(default.to_owned());
    value.split_whitespace().map(str::to_owned).collect()
}

/// A command of several words.
pub fn command(words: &[String]) -> Result<Command> {
    let (program, options) = words.split_first().context("a command of no words")?;
    let mut command = Command::new(program);
    command.args(options);
    Ok(command)
}

/// Files below a folder whose names end so, in order.
pub fn files(folder: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.append(&mut files(&path, end)?);
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Whether `made` is there and not older than any of what it is made from.
pub fn is_fresh(made: &Path, from: &[PathBuf]) -> bool {
    let age = |p: &Path| p.metadata().and_then(|m| m.modified()).ok();
    age(made).is_some_and(|m| from.iter().all(|f| age(f).is_some_and(|f| f <= m)))
}

/// `cargo run` and make leave variables for their children that would be taken for the user's own.
fn forget_cargo_run(root: &Path) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let of_the_package =
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|p| name.starts_with(p));
        if of_the_package || ["MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL"].contains(&&*name) {
            std::env::remove_var(&*name);
        }
    }
    if let Some(paths) = std::env::var_os("LD_LIBRARY_PATH") {
        let own =
            |p: &PathBuf| p.starts_with(root) || p.to_string_lossy().contains("rustlib") || is_toolchain(p);
        let kept: Vec<PathBuf> = std::env::split_paths(&paths).filter(|p| !own(p)).collect();
        match std::env::join_paths(&kept) {
            Ok(paths) if !kept.is_empty() => std::env::set_var("LD_LIBRARY_PATH", paths),
            _ => std::env::remove_var("LD_LIBRARY_PATH"),
        }
    }
}

fn is_toolchain(path: &Path) -> bool {
    path.ends_with("lib") && path.join("rustlib").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_all_of_a_suite_says_so() -> Result<()> {
        let mut ctx = Context::of(Path::new(ROOT).canonicalize()?)?;
        let texts = [ctx.read("tools/xtask/src/mutants.rs")?, ctx.read("tools/xtask/src/planted/mod.rs")?];
        assert!(NARROW.iter().all(|name| texts.concat().contains(&format!("(\"{name}\")"))), "their names");
        assert!(["FILE", "TATCELL_DECISIONS", "TATCELL_KILLS", "TATCELL_STATES"].into_iter().all(narrows));
        assert!(!["TATCELL_QUICK", "TATCELL_LONG", "PATH", "LOGS"].into_iter().any(narrows));
        let part = Some("in part");
        for (narrow, argument, quick, form) in [
            (false, None, false, None),
            (false, None, true, Some("quick")),
            (false, Some("miri"), false, part),
            (true, None, false, part),
            (true, None, true, part),
        ] {
            ctx.arguments = argument.map(str::to_owned).into_iter().collect();
            (ctx.narrow, ctx.quick) = (narrow, quick);
            assert_eq!(ctx.form(), form, "{narrow} {argument:?} {quick}");
        }
        Ok(())
    }

    #[test]
    fn a_lock_is_held_once_and_taken_over_from_the_dead() -> Result<()> {
        let ctx = Context::of(Path::new(ROOT).canonicalize()?)?;
        let place = ctx.folder("lock-test")?.join("lock");
        drop(std::fs::remove_file(&place));
        let held = ctx.hold("lock-test/lock")?;
        assert!(ctx.hold("lock-test/lock").is_err(), "held twice");
        drop(held);
        drop(ctx.hold("lock-test/lock")?);
        // No process has this number.
        std::fs::write(&place, "4194305\n")?;
        drop(ctx.hold("lock-test/lock")?);
        assert!(!place.exists());
        Ok(())
    }
}
