//! The sanitizers that are compiled in, on the Rust side with std, on the C side as well. One runtime serves both: that
//! of the Rust toolchain, for the C compiler's may be older than the code that rustc makes.
//!
//! Flags that stable does not know are allowed by RUSTC_BOOTSTRAP=1, for these commands only. Searches are loops here
//! (`build.rs`), since no sanitizer sees what assembly reads; as vectors they are watched by valgrind.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context as _, Result};
use xshell::cmd;

use super::{part, passed, reported};
use crate::binary::{members, Member};
use crate::context::{command, Context, STRICT};
use crate::exec::Run;
use crate::report::Report;
use crate::tools::{may_add, Missing};

/// Sizes of tests that race, kill or compare for long: sanitizers cost ten times the time and more.
const SIZES: [(&str, &str); 6] = [
    ("TATCELL_ROUNDS", "2000"),
    ("TATCELL_RACES", "50000"),
    ("TATCELL_KILLS", "500"),
    ("TATCELL_COUNTED_STEPS", "20000"),
    ("TATCELL_METER_PACKETS", "20000"),
    // A race ends a run; memory that is not given back is no matter of a library that takes none.
    ("TSAN_OPTIONS", "halt_on_error=1"),
];

/// A file of tests, or a program: its name and arguments, and whether the quick form runs it.
type Part = (&'static str, &'static str, bool);
const QUICK: bool = true;
const FULL: bool = false;

/// A defect's name, and what must be said of it.
type Defect = (&'static str, &'static [&'static str]);

/// A sanitizer of rustc and of the C compiler.
pub struct Sanitizer {
    pub name: &'static str,
    /// As in the name of the runtime.
    runtime: &'static str,
    /// Files of tests/; `lib` is the crate's own tests.
    tests: &'static [Part],
    /// Of `tests/defects.rs`.
    defects: &'static [Defect],
    /// Of `ffi-tests/defects.c`.
    defects_c: &'static [Defect],
    /// Flags of the C compiler.
    c_flags: &'static [&'static str],
    /// A symbol that instrumented code needs.
    symbol: &'static str,
    /// Programs of ffi-tests.
    programs: &'static [Part],
}

/// Both of them.
pub const SANITIZERS: [Sanitizer; 2] = [
    Sanitizer {
        name: "thread",
        runtime: "tsan",
        tests: &[
            ("few_threads", "", QUICK),
            ("threads", "", QUICK),
            ("race", "", QUICK),
            ("refusals", "", QUICK),
            ("lib", "", FULL),
            ("host", "", FULL),
            ("overrides", "", FULL),
            ("mark", "", FULL),
            ("lease", "", FULL),
            ("chain", "", FULL),
            ("migrate_drive", "", FULL),
        ],
        defects: &[
            ("a_plain_write_of_a_slot_beside_a_charge", &["ThreadSanitizer: data race", "write_plainly"]),
            (
                "a_plain_write_of_a_slot_beside_a_search",
                &["ThreadSanitizer: data race", "write_plainly", "search/mod.rs"],
            ),
            ("a_publication_without_release", &["ThreadSanitizer: data race"]),
        ],
        defects_c: &[
            ("race", &["ThreadSanitizer: data race", "write_plainly"]),
            ("two_owners", &["ThreadSanitizer: data race", "tatcell_cell_check_exclusive"]),
        ],
        c_flags: &["-O1", "-fsanitize=thread"],
        symbol: "__tsan_atomic64_",
        programs: &[
            ("threads", "50", QUICK),
            ("refusals", "", QUICK),
            ("sliding_log", "", QUICK),
            ("override", "", QUICK),
            ("meters", "", QUICK),
            ("mark", "20000", FULL),
            ("lease", "", FULL),
        ],
    },
    Sanitizer {
        name: "address",
        runtime: "asan",
        tests: &[
            ("table_image", "", QUICK),
            ("table", "", QUICK),
            ("host", "", QUICK),
            ("second_line", "", QUICK),
            ("lib", "", FULL),
            ("table_hash", "", FULL),
            ("table_full", "", FULL),
            ("migrate", "", FULL),
            ("migrate_image", "", FULL),
            ("pair_burst", "", FULL),
            ("prefixes", "", FULL),
            ("shaper", "", FULL),
            ("cell_options", "", FULL),
            ("small", "", FULL),
            ("kill", "", FULL),
            ("threads", "", FULL),
        ],
        defects: &[
            (
                "a_search_behind_the_end_of_the_memory",
                &["heap-buffer-overflow", "READ of size", "search/mod.rs"],
            ),
            ("a_search_of_memory_that_is_gone", &["heap-use-after-free", "search/mod.rs"]),
        ],
        defects_c: &[
            ("read_behind", &["heap-buffer-overflow", "READ of size", "tatcell_table_hash"]),
            ("write_behind", &["heap-buffer-overflow", "WRITE of size", "tatcell_table_init"]),
            ("shift", &["shift exponent 33 is too large"]),
        ],
        c_flags: &["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        symbol: "__asan_report_",
        programs: &[
            ("arguments", "", QUICK),
            ("burst", "", QUICK),
            ("growth", "", QUICK),
            ("semantics", "", QUICK),
            ("chain", "", QUICK),
            ("http", "", QUICK),
            ("algorithms", "", FULL),
            ("counted", "", FULL),
            ("ladder", "", FULL),
            ("shaper", "", FULL),
            ("lease", "", FULL),
            ("mark", "100000", FULL),
            ("threads", "20", FULL),
        ],
    },
];

/// What the toolchain has for a sanitizer.
struct Toolchain {
    host: String,
    runtime: PathBuf,
}

impl Sanitizer {
    /// Its part of the suite.
    pub fn run(&self, ctx: &Context, report: &mut Report) {
        let toolchain = match self.toolchain(ctx) {
            Ok(toolchain) => toolchain,
            Err(missing) => return report.skip(self.name, &missing),
        };
        part(report, self.name, |report| self.rust(ctx, report, &toolchain.host));
        part(report, &format!("{}_in_c", self.name), |report| self.archive(ctx, report, &toolchain));
    }

    /// The sources of std, fetched if need be, and the runtime.
    fn toolchain(&self, ctx: &Context) -> Result<Toolchain, Missing> {
        let get = "rustup component add rust-src";
        let lacks = || Missing::new("the toolchain has no sources of std", get);
        let said = cmd!(ctx.sh, "rustc -vV").must().map_err(|_| lacks())?;
        let host = said.lines().find_map(|line| line.strip_prefix("host: ")).ok_or_else(lacks)?.to_owned();
        let root = cmd!(ctx.sh, "rustc --print sysroot").must().map_err(|_| lacks())?;
        let rustlib = Path::new(root.trim()).join("lib/rustlib");
        let end = format!("_rt.{}.a", self.runtime);
        let libraries = rustlib.join(&host).join("lib").read_dir().into_iter().flatten().flatten();
        let runtime = libraries.map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with(&end));
        let no_runtime =
            || Missing::new(format!("rustc has no {} sanitizer for {host}", self.name), "x86-64 Linux has");
        let runtime = runtime.ok_or_else(no_runtime)?;
        let lock = rustlib.join("src/rust/library/Cargo.lock");
        if !lock.exists() && may_add() {
            let _ = cmd!(ctx.sh, "rustup component add rust-src").done();
        }
        lock.exists().then_some(Toolchain { host, runtime }).ok_or_else(lacks)
    }

    /// Cargo with this sanitizer, std included.
    fn cargo(&self, ctx: &Context, host: &str, words: &[&str]) -> Result<Command> {
        let mut cargo = command(&ctx.cargo)?;
        // Tests unwind: with a dev profile that aborts, std would be built twice, and each crate would see both.
        cargo.args(words).args(["-Zbuild-std", "--config", "profile.dev.panic='unwind'", "--target", host]);
        cargo.current_dir(&ctx.root);
        cargo.env("RUSTC_BOOTSTRAP", "1").envs(SIZES).env("ASAN_OPTIONS", "detect_leaks=0");
        cargo.env("RUSTFLAGS", format!("-Zsanitizer={} -Cforce-frame-pointers", self.name));
        cargo.env("CARGO_TARGET_DIR", ctx.folder(&format!("sanitizer-{}", self.name))?);
        Ok(cargo)
    }

    /// The tests in Rust.
    fn rust(&self, ctx: &Context, report: &mut Report, host: &str) -> Result<()> {
        let options = ["test", "--features", "std,host,heapless"];
        let test = |words: &[&str]| -> Result<Command> {
            let mut cargo = self.cargo(ctx, host, &options)?;
            cargo.args(words);
            Ok(cargo)
        };
        for (defect, says) in self.defects {
            let words = ["--test", "defects", "--", "--ignored", "--exact", defect, "--nocapture"];
            let done = test(&words)?.done()?;
            report.claim(&format!("{}_reports_{defect}", self.name), || reported(&done, says));
        }
        for (file, _, _) in self.tests.iter().filter(|(.., quick)| *quick || !ctx.quick) {
            let which = if *file == "lib" { vec!["--lib"] } else { vec!["--test", file] };
            let done = test(&[&which[..], &["--", "--test-threads=2"]].concat())?.done()?;
            match passed(&done) {
                Ok(count) => report.pass(&format!("{}_tests_{file}: {count} tests", self.name)),
                Err(e) => report.fail(&format!("{}_tests_{file}", self.name), &format!("{e:#}")),
            }
        }
        Ok(())
    }

    /// The archive with this sanitizer, under programs of C with the same.
    fn archive(&self, ctx: &Context, report: &mut Report, toolchain: &Toolchain) -> Result<()> {
        let kind = ["rustc", "--release", "--lib", "--features", "capi,host", "--crate-type", "staticlib"];
        let mut cargo = self.cargo(ctx, &toolchain.host, &kind)?;
        cargo.args(["--config", "profile.release.lto=false", "--config", "profile.release.debug=1"]);
        cargo.must().with_context(|| format!("no archive with the {} sanitizer", self.name))?;
        let target = ctx.folder(&format!("sanitizer-{}", self.name))?;
        let archive = target.join(&toolchain.host).join("release/libtatcell.a");
        report.claim(&format!("{}_archive_is_instrumented", self.name), || {
            ensure!(self.instruments(&archive)?, "no {}* among its own symbols", self.symbol);
            let plain = crate::library::build(ctx)?.archive;
            ensure!(!self.instruments(&plain)?, "the one without a sanitizer would do as well");
            Ok(())
        });
        let folder = ctx.folder(&format!("sanitizer-{}/ffi", self.name))?;
        let compile = |name| self.compile(ctx, name, &archive, &toolchain.runtime, &folder);
        let defects = compile("defects")?;
        for (defect, says) in self.defects_c {
            let done = Command::new(&defects).arg(defect).done()?;
            report.claim(&format!("{}_reports_{defect}_in_c", self.name), || reported(&done, says));
        }
        for (name, arguments, _) in self.programs.iter().filter(|(.., quick)| *quick || !ctx.quick) {
            let mut program = Command::new(compile(name)?);
            program.args(arguments.split_whitespace()).envs(SIZES).current_dir(&ctx.root);
            report.program(&format!("{}_both_{name}", self.name), program)?;
        }
        Ok(())
    }

    /// Whether the library's own objects, not only those of core, call this sanitizer.
    fn instruments(&self, archive: &Path) -> Result<bool> {
        let members = members(archive)?;
        let own: Vec<&Member> = members.iter().filter(|member| member.name.contains("tatcell")).collect();
        ensure!(!own.is_empty(), "{} has no object of the library", archive.display());
        let calls = |member: &&Member| {
            member.symbols.iter().any(|symbol| !symbol.defined && symbol.name.starts_with(self.symbol))
        };
        Ok(own.iter().any(calls))
    }

    /// A program, linked with the Rust toolchain's runtime.
    fn compile(
        &self,
        ctx: &Context,
        name: &str,
        archive: &Path,
        runtime: &Path,
        folder: &Path,
    ) -> Result<PathBuf> {
        let (cc, flags) = (&ctx.cc, self.c_flags);
        let (object, out) = (folder.join(format!("{name}.o")), folder.join(name));
        let options = ["-std=c11", "-D_GNU_SOURCE", "-pthread", "-Iinclude", "-g", "-c"];
        let source = format!("ffi-tests/{name}.c");
        cmd!(ctx.sh, "env {cc...} {options...} {STRICT...} {flags...} {source} -o {object}").must()?;
        let whole =
            ["-Wl,--whole-archive", &runtime.to_string_lossy(), "-Wl,--no-whole-archive"].map(str::to_owned);
        let libraries = ["-pthread", "-lm", "-ldl", "-lrt"];
        cmd!(ctx.sh, "env {cc...} {object} {archive} {whole...} {libraries...} -o {out}").must()?;
        Ok(out)
    }
}
