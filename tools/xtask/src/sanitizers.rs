//! Sanitizers, valgrind and Miri over what has unsafe code and threads. Each tool first sees a defect that was planted
//! for it (`tests/planted.rs`, `ffi-tests/planted.c`); one that does not report it fails, whatever else it says.
//!
//! | what runs | under | how |
//! |---|---|---|
//! | the crate's tests in Rust | thread and address sanitizer | std is built with them, from the toolchain's rust-src |
//! | programs of ffi-tests, with an instrumented archive | ASan with UBSan, TSan | the archive's symbols must show it |
//! | programs of ffi-tests with threads | helgrind, drd | the library's atomics are suppressed by name |
//! | tests in Rust | Miri: strict provenance, many seeds | the nightly toolchain's component |
//!
//! Flags that stable does not know are allowed by RUSTC_BOOTSTRAP=1, for these commands only.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{ensure, Context as _, Result};
use xshell::cmd;

use crate::binary::{members, names};
use crate::context::{command, Context, STRICT};
use crate::exec::{tail, Done, Run};
use crate::report::Report;
use crate::tools::{may_add, missing, Missing};

/// For all seeds of a file of tests.
const MIRI_PATIENCE: Duration = Duration::from_secs(3600);
/// Sizes of tests that race: sanitizers cost ten times the time and more.
const SIZES: [(&str, &str); 4] = [
    ("TATCELL_ROUNDS", "500"),
    ("TATCELL_RACES", "20000"),
    ("TATCELL_KILLS", "10"),
    ("TATCELL_COUNTED_STEPS", "20000"),
];

/// A sanitizer of rustc and of the C compiler.
struct Sanitizer {
    name: &'static str,
    /// Files of tests/ in the quick form; in full, all of `more` as well.
    tests: &'static [&'static str],
    more: &'static [&'static str],
    /// Planted defects of `tests/planted.rs`, and what must be said of them.
    planted: &'static [(&'static str, &'static str)],
    /// The same of `ffi-tests/planted.c`.
    planted_c: &'static [(&'static str, &'static str)],
    /// Flags of the C compiler.
    c_flags: &'static [&'static str],
    /// A symbol that instrumented code needs.
    symbol: &'static str,
    /// Programs of ffi-tests, with an argument.
    programs: &'static [(&'static str, &'static str)],
}

const SANITIZERS: [Sanitizer; 2] = [
    Sanitizer {
        name: "thread",
        tests: &["few_threads", "threads", "race", "refusals"],
        more: &["host", "overrides", "mark", "lease"],
        planted: &[("planted_race", "data race")],
        planted_c: &[("race", "data race"), ("two_owners", "data race")],
        c_flags: &["-O1", "-fsanitize=thread"],
        symbol: "__tsan_atomic64_",
        programs: &[
            ("threads", "5"),
            ("refusals", ""),
            ("sliding_log", ""),
            ("override", ""),
            ("meters", ""),
        ],
    },
    Sanitizer {
        name: "address",
        tests: &["table_image", "table", "host"],
        more: &[
            "table_hash",
            "migrate",
            "pair_burst",
            "prefixes",
            "shaper",
            "cell_options",
            "kill",
            "threads",
        ],
        planted: &[
            ("planted_overflow", "heap-buffer-overflow"),
            ("planted_use_after_free", "heap-use-after-free"),
        ],
        planted_c: &[("overflow", "heap-buffer-overflow"), ("shift", "shift exponent")],
        c_flags: &["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        symbol: "__asan_report_",
        programs: &[
            ("arguments", ""),
            ("burst", ""),
            ("growth", ""),
            ("semantics", ""),
            ("chain", ""),
            ("http", ""),
        ],
    },
];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    if ctx.quick {
        report.note("quick: fewer files of tests/, and 4 seeds of Miri instead of 64");
    }
    let source = rust_src(ctx);
    for sanitizer in &SANITIZERS {
        match &source {
            Ok(host) => {
                sanitizer.rust(ctx, report, host)?;
                sanitizer.archive(ctx, report, host)?;
            }
            Err(missing) => report.skip(sanitizer.name, missing),
        }
    }
    valgrind(ctx, report)?;
    miri(ctx, report)
}

/// The host's target, where the toolchain has the sources of std, or can get them.
fn rust_src(ctx: &Context) -> Result<String, Missing> {
    let lacks = || Missing::new("the toolchain has no sources of std", "rustup component add rust-src");
    let said = cmd!(ctx.sh, "rustc -vV").must().map_err(|_| lacks())?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: ")).ok_or_else(lacks)?.to_owned();
    let root = cmd!(ctx.sh, "rustc --print sysroot").must().map_err(|_| lacks())?;
    let lock = Path::new(root.trim()).join("lib/rustlib/src/rust/library/Cargo.lock");
    if !lock.exists() && may_add() {
        let _ = cmd!(ctx.sh, "rustup component add rust-src").done();
    }
    lock.exists().then_some(host).ok_or_else(lacks)
}

impl Sanitizer {
    /// Cargo with this sanitizer, std included.
    fn cargo(&self, ctx: &Context, host: &str, words: &[&str]) -> Result<Command> {
        let mut cargo = command(&ctx.cargo)?;
        // Tests unwind: with a dev profile that aborts, std would be built twice, and each crate would see both.
        cargo.args(words).args(["-Zbuild-std", "--config", "profile.dev.panic='unwind'", "--target", host]);
        cargo.current_dir(&ctx.root);
        cargo.env("RUSTC_BOOTSTRAP", "1").envs(SIZES);
        cargo.env("RUSTFLAGS", format!("-Zsanitizer={} -Cforce-frame-pointers", self.name));
        cargo.env("CARGO_TARGET_DIR", ctx.folder(&format!("sanitizer-{}", self.name))?);
        Ok(cargo)
    }

    fn rust(&self, ctx: &Context, report: &mut Report, host: &str) -> Result<()> {
        let options = ["test", "--features", "std,host,heapless"];
        for (planted, says) in self.planted {
            let words = ["--test", "planted", "--", "--ignored", "--exact", planted, "--nocapture"];
            let done = place_flags(self.cargo(ctx, host, &options)?, &words).done()?;
            report.claim(&format!("{}_{planted}_is_reported", self.name), || reported(&done, says));
        }
        let more = if ctx.quick { &[] } else { self.more };
        let files = self.tests.iter().chain(more).flat_map(|name| ["--test", name]);
        let mut words: Vec<&str> = files.collect();
        if !ctx.quick {
            words.push("--lib");
        }
        words.extend(["--", "--nocapture", "--test-threads=2"]);
        report.lines_of(place_flags(self.cargo(ctx, host, &options)?, &words))
    }

    /// The archive with this sanitizer, under programs of C with the same.
    fn archive(&self, ctx: &Context, report: &mut Report, host: &str) -> Result<()> {
        let kind = ["rustc", "--release", "--lib", "--features", "capi,host", "--crate-type", "staticlib"];
        let mut cargo = self.cargo(ctx, host, &kind)?;
        cargo.args(["--config", "profile.release.lto=false", "--config", "profile.release.debug=1"]);
        cargo.must().with_context(|| format!("no archive with the {} sanitizer", self.name))?;
        let target = ctx.folder(&format!("sanitizer-{}", self.name))?;
        let archive = target.join(host).join("release/libtatcell.a");
        report.claim(&format!("{}_archive_is_instrumented", self.name), || {
            let members = members(&archive)?;
            let own = members.iter().filter(|member| member.name.contains("tatcell")).count();
            let found = names(&members, |symbol| symbol.name.starts_with(self.symbol) && !symbol.defined);
            ensure!(own > 0 && !found.is_empty(), "no {}* among the symbols of {own} objects", self.symbol);
            Ok(())
        });
        let folder = ctx.folder(&format!("sanitizer-{}/ffi", self.name))?;
        let planted = self.compile(ctx, "planted", &archive, &folder)?;
        for (which, says) in self.planted_c {
            let done = Command::new(&planted).arg(which).done()?;
            report
                .claim(&format!("{}_planted_{which}_is_reported_in_c", self.name), || reported(&done, says));
        }
        for (name, argument) in self.programs {
            let mut program = Command::new(self.compile(ctx, name, &archive, &folder)?);
            program.args(argument.split_whitespace()).current_dir(&ctx.root);
            report.program(&format!("{}_both_{name}", self.name), program)?;
        }
        Ok(())
    }

    fn compile(&self, ctx: &Context, name: &str, archive: &Path, folder: &Path) -> Result<PathBuf> {
        let (cc, flags, out) = (&ctx.cc, self.c_flags, folder.join(name));
        let options = ["-std=c11", "-D_GNU_SOURCE", "-pthread", "-Iinclude", "-g"];
        let source = format!("ffi-tests/{name}.c");
        cmd!(ctx.sh, "env {cc...} {options...} {STRICT...} {flags...} {source} {archive} -o {out}").must()?;
        Ok(out)
    }
}

/// Adds words behind those of cargo itself.
fn place_flags(mut cargo: Command, words: &[&str]) -> Command {
    cargo.args(words);
    cargo
}

/// A planted defect was seen: the words were said, and the run ended with an error before its end.
fn reported(done: &Done, says: &str) -> Result<()> {
    ensure!(
        !done.ok() && done.all.contains(says),
        "it was not seen: {}\n{}",
        done.how(),
        tail(&done.all, 20)
    );
    Ok(())
}

/// Suppresses what looks like a race to tools that do not know atomics: reports whose access is the library's.
const SUPPRESSED: &str = "{\n   atomics of the library\n   Helgrind:Race\n   fun:tatcell_*\n   ...\n}\n\
    {\n   atomics of the library, in its functions\n   Helgrind:Race\n   fun:_R*tatcell*\n   ...\n}\n\
    {\n   the same, mangled as of old\n   Helgrind:Race\n   fun:_ZN7tatcell*\n   ...\n}\n\
    {\n   atomics of the library\n   drd:ConflictingAccess\n   fun:tatcell_*\n   ...\n}\n\
    {\n   atomics of the library, in its functions\n   drd:ConflictingAccess\n   fun:_R*tatcell*\n   ...\n}\n\
    {\n   the same, mangled as of old\n   drd:ConflictingAccess\n   fun:_ZN7tatcell*\n   ...\n}\n";

/// Programs with threads under helgrind and drd, the rest of a program's own memory under memcheck.
const CHECKED: &[(&str, &str)] = &[("threads", "1"), ("refusals", ""), ("override", "")];

fn valgrind(ctx: &Context, report: &mut Report) -> Result<()> {
    if let Some(missing) = missing(&["valgrind"]) {
        report.skip("valgrind", &missing);
        return Ok(());
    }
    let library = crate::library::build(ctx)?;
    let folder = ctx.folder("sanitizer-valgrind")?;
    let suppressed = folder.join("suppressed");
    std::fs::write(&suppressed, SUPPRESSED)?;
    let compile = |name: &str| -> Result<PathBuf> {
        let (cc, out, archive) = (&ctx.cc, folder.join(name), &library.archive);
        let options = ["-std=c11", "-D_GNU_SOURCE", "-pthread", "-Iinclude", "-g", "-O1"];
        let source = format!("ffi-tests/{name}.c");
        cmd!(ctx.sh, "env {cc...} {options...} {STRICT...} {source} {archive} -o {out}").must()?;
        Ok(out)
    };
    let planted = compile("planted")?;
    let tools = [
        ("memcheck", "overflow", "Invalid write"),
        ("helgrind", "race", "Possible data race"),
        ("drd", "race", "Conflicting"),
    ];
    for (tool, which, says) in tools {
        let under = |program: &Path| {
            let mut valgrind = Command::new("valgrind");
            valgrind.args([format!("--tool={tool}"), format!("--suppressions={}", suppressed.display())]);
            valgrind.args(["-q", "--error-exitcode=99"]).arg(program).current_dir(&ctx.root);
            valgrind
        };
        let done = under(&planted).arg(which).done()?;
        report.claim(&format!("{tool}_planted_{which}_is_reported"), || reported(&done, says));
        for (name, argument) in CHECKED {
            let mut program = under(&compile(name)?);
            program.args(argument.split_whitespace());
            report.program(&format!("{tool}_{name}"), program)?;
        }
    }
    Ok(())
}

/// Tests that Miri runs: few threads and few calls, which reach the unsafe code and the atomics.
const MIRI: &[(&str, &[&str])] = &[
    ("few_threads", &[]),
    ("permits", &["a_permit_of_before", "a_live_save", "a_limit_works"]),
    ("table", &["every_call_error", "reset_key", "unlimited_keys"]),
];

/// Miri, from the nightly toolchain: undefined behaviour, provenance, data races and weak memory, a schedule a seed.
fn miri(ctx: &Context, report: &mut Report) -> Result<()> {
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    let nightly = ["+nightly", "miri"];
    if !cmd!(sh, "env {cargo...} {nightly...} --version").works() {
        if may_add() {
            let _ = cmd!(sh, "rustup component add miri rust-src --toolchain nightly").done();
        }
        if !cmd!(sh, "env {cargo...} {nightly...} --version").works() {
            let get = "rustup component add miri rust-src --toolchain nightly";
            report.skip("miri", &Missing::new("Miri is not installed", get));
            return Ok(());
        }
    }
    let seeds = if ctx.quick { 4 } else { 64 };
    let target = ctx.folder("miri")?;
    let test = |file: &str, flags: &str| -> Result<Command> {
        let mut cargo = command(&ctx.cargo)?;
        cargo.args(nightly).args(["test", "--features", "std", "--test", file]).current_dir(&ctx.root);
        cargo.env("CARGO_TARGET_DIR", &target).env("MIRIFLAGS", format!("-Zmiri-strict-provenance {flags}"));
        Ok(cargo)
    };
    let planted = [
        ("planted_race", "Data race"),
        ("planted_overflow", "out-of-bounds"),
        ("planted_use_after_free", "dangling"),
    ];
    for (name, says) in planted {
        let mut one = test("planted", "")?;
        let done = one.args(["--", "--ignored", "--exact", name]).done()?;
        report.claim(&format!("miri_{name}_is_reported"), || reported(&done, says));
    }
    for (file, parts) in MIRI {
        let mut tests = test(file, &format!("-Zmiri-many-seeds=0..{seeds}"))?;
        let done = tests.arg("--").args(*parts).done_within(MIRI_PATIENCE)?;
        report.claim(&format!("miri_{file}_of_{seeds}_seeds"), || {
            // Seeds run beside each other, and their lines get mixed.
            let runs = done.all.matches(" passed; 0 failed").count();
            ensure!(done.ok() && runs >= seeds, "{}\n{}", done.how(), tail(&done.all, 30));
            Ok(())
        });
    }
    Ok(())
}
