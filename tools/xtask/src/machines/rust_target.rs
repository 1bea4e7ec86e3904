//! Finds a Rust compiler for another machine, or says what is missing.
//!
//! Rustup's target where there is one or it can be added; else Debian's Rust with its sources, which builds core
//! and std for any target but brings no linker for bare ones. TATCELL_NO_INSTALL=1: add nothing.
//! TATCELL_RUST=debian: try only Debian's.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use xshell::cmd;

use crate::context::{command, Context};
use crate::exec::Run;
use crate::machines::boards::{Host, TARGETS};
use crate::tools::{have, may_add, missing, Missing};

/// A compiler for one target.
pub struct RustTarget {
    cargo: Vec<String>,
    environment: Vec<(String, String)>,
    /// How Debian's builds the library of the target; empty with rustup's.
    build_std: &'static [&'static str],
}

const DEBIAN: &str = "/usr/bin/rustc";
const PATIENCE: Duration = Duration::from_secs(120);

/// The compiler for a target.
pub fn find(ctx: &Context, triple: &str) -> Result<RustTarget, Missing> {
    if std::env::var("TATCELL_RUST").is_ok_and(|v| v == "debian") {
        return debian(triple);
    }
    add(ctx, triple);
    if is_added(ctx, triple) {
        return Ok(RustTarget { cargo: ctx.cargo.clone(), environment: Vec::new(), build_std: &[] });
    }
    debian(triple)
}

/// Adds a target of rustup's that is missing, where that is allowed.
pub fn add(ctx: &Context, triple: &str) {
    if !is_added(ctx, triple) && may_add() && have("rustup") {
        // Where it cannot be added, is_added says so.
        let _ = cmd!(ctx.sh, "rustup target add {triple}").done_within(PATIENCE);
    }
}

/// Whether the compiler on the path has the library of a target.
pub fn is_added(ctx: &Context, triple: &str) -> bool {
    let Ok(found) = cmd!(ctx.sh, "rustc --print target-libdir --target {triple}").done() else {
        return false;
    };
    let core = std::fs::read_dir(found.stdout.trim());
    found.ok()
        && core.is_ok_and(|mut d| {
            d.any(|f| f.is_ok_and(|f| f.file_name().to_string_lossy().starts_with("libcore-")))
        })
}

/// The compiler of the system's own prefix, with the library sources beside it.
fn debian(triple: &str) -> Result<RustTarget, Missing> {
    let sysroot =
        Command::new(DEBIAN).args(["--print", "sysroot"]).done().map_or(String::new(), |d| d.stdout);
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core");
    if !have("/usr/bin/cargo") || sysroot.is_empty() || !sources.is_dir() {
        let get = format!("rustup target add {triple}, or apt-get install rustc-web cargo-web rust-web-src");
        return Err(Missing::new(format!("a Rust compiler for {triple}"), get));
    }
    let mut environment: Vec<(String, String)> =
        [("RUSTC", DEBIAN), ("RUSTDOC", "/usr/bin/rustdoc"), ("RUSTC_BOOTSTRAP", "1")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
    let bare = TARGETS.iter().find(|t| t.triple == triple);
    if let Some(family) = bare.map(|t| t.family) {
        let ld = family.tool("ld");
        if let Some(missing) = missing(&[&ld]) {
            return Err(missing);
        }
        environment.push((variable(triple, "LINKER"), ld));
        if let [option, core] = family.emulation {
            environment.push((variable(triple, "RUSTFLAGS"), format!("-Clink-arg={option}{core}")));
        }
    }
    let build_std: &[&str] =
        if bare.is_some() { &["-Z", "build-std=core"] } else { &["-Z", "build-std=std,panic_abort,test"] };
    Ok(RustTarget { cargo: vec!["/usr/bin/cargo".to_owned()], environment, build_std })
}

/// cargo's variable of a target.
pub fn variable(triple: &str, what: &str) -> String {
    format!("CARGO_TARGET_{}_{what}", triple.to_uppercase().replace('-', "_"))
}

impl RustTarget {
    /// A command of cargo for this target; the target itself is not named yet.
    pub fn cargo(&self, ctx: &Context, command_name: &str) -> Result<Command> {
        let mut cargo = command(&self.cargo)?;
        cargo.arg(command_name).args(self.build_std).current_dir(&ctx.root);
        cargo.envs(self.environment.iter().map(|(k, v)| (k, v)));
        Ok(cargo)
    }
}

impl Host {
    /// How programs of this host are linked and run: variables of cargo, and the words that run a program.
    pub fn tools(&self) -> Result<HostTools, Missing> {
        let prefix = self.prefix;
        // The 32-bit program of an x86-64 machine runs by itself, through the cross C library's loader: the emulator's
        // threads are not to be trusted for it.
        let loader = format!("/usr/{prefix}/lib/ld-linux.so.2");
        let runner = if self.triple.starts_with("i686") && cfg!(target_arch = "x86_64") {
            if !have(&loader) {
                return Err(Missing::new(loader, "apt-get install libc6-dev-i386-cross"));
            }
            vec![loader, "--library-path".to_owned(), format!("/usr/{prefix}/lib")]
        } else {
            if !have(self.emulator) {
                return Err(Missing::new(self.emulator, "apt-get install qemu-user-static"));
            }
            vec![self.emulator.to_owned(), "-L".to_owned(), format!("/usr/{prefix}")]
        };
        let gcc = format!("{prefix}-gcc");
        if !have(&gcc) {
            let get = format!("apt-get install gcc-{prefix} and its libc6-dev-*-cross");
            return Err(Missing::new(gcc, get));
        }
        if !Path::new(&format!("/usr/{prefix}/lib")).is_dir() {
            return Err(Missing::new(
                format!("the C library of {prefix}"),
                "apt-get install its libc6-dev-*-cross",
            ));
        }
        let variables =
            vec![(variable(self.triple, "LINKER"), gcc), (variable(self.triple, "RUNNER"), runner.join(" "))];
        Ok(HostTools { variables, runner })
    }
}

/// How programs of a host are linked and run.
pub struct HostTools {
    /// Variables of cargo.
    pub variables: Vec<(String, String)>,
    /// The words before the program.
    pub runner: Vec<String>,
}
