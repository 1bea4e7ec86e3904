//! Miri, from the nightly toolchain: undefined behaviour, strict provenance, data races and weak memory, a schedule a
//! seed. It knows no vector instruction: searches are loops (`build.rs`).

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{ensure, Result};
use xshell::cmd;

use super::{first_report, reported};
use crate::context::Context;
use crate::exec::Run;
use crate::report::Report;
use crate::tools::{may_add, Missing};

/// For all seeds of a file of tests.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How Miri is got.
const GET: &str =
    "rustup toolchain install nightly --profile minimal --component miri,rust-src --allow-downgrade";

/// Defects of `tests/defects.rs`, and what must be said of them: of a race the line of the plain write, which is one of
/// its two accesses. (Its function is named only where it came second.)
const DEFECTS: [(&str, &[&str]); 6] = [
    ("a_plain_write_of_a_slot_beside_a_charge", &["Undefined Behavior: Data race", ".write(value)"]),
    ("a_plain_write_of_a_slot_beside_a_search", &["Undefined Behavior: Data race", ".write(value)"]),
    ("a_publication_without_release", &["Undefined Behavior: Data race"]),
    ("a_search_behind_the_end_of_the_memory", &["Undefined Behavior", "beyond the bounds"]),
    ("a_search_of_memory_that_is_gone", &["Undefined Behavior", "use-after-free"]),
    ("a_slot_reached_through_a_number", &["integer-to-pointer casts", "strict-provenance"]),
];

/// Tests that Miri runs: few threads and few calls, which reach the unsafe code and the atomics. A file, parts of the
/// names of its tests, and whether they have threads: without, one seed is as good as many.
const TESTS: &[(&str, &[&str], bool)] = &[
    ("few_threads", &[], true),
    ("permits", &["a_permit_of_before", "a_live_save", "a_limit_works"], false),
    ("table", &["every_call_error", "reset_key", "unlimited_keys"], false),
];
/// Machines of the other byte order and of the other width, in full.
const OTHERS: [&str; 2] = ["s390x-unknown-linux-gnu", "i686-unknown-linux-gnu"];

/// CARGO is that of one toolchain where cargo runs this, and takes no other's name.
const NIGHTLY: [&str; 5] = ["rustup", "run", "nightly", "cargo", "miri"];

/// Sees to it that Miri is there, or says how it is got.
pub fn found(ctx: &Context) -> Result<(), Missing> {
    let sh = &ctx.sh;
    let works = || cmd!(sh, "env {NIGHTLY...} --version").works();
    if !works() && may_add() {
        // A nightly that is there stays as it is.
        let add = ["component", "add", "miri", "rust-src", "--toolchain", "nightly"];
        if !cmd!(sh, "rustup {add...}").works() {
            let words = GET.split(' ');
            let _ = cmd!(sh, "env {words...}").done();
        }
    }
    if works() {
        Ok(())
    } else {
        Err(Missing::new("Miri is not installed", GET))
    }
}

/// A command for tests of a file of this tree, built there.
pub fn test(tree: &Path, build: &Path, file: &str, flags: &str, options: &[&str]) -> Command {
    let mut cargo = Command::new("env");
    cargo.args(NIGHTLY).args(["test", "--features", "std", "--test", file]).args(options);
    cargo.current_dir(tree).env("CARGO_TARGET_DIR", build);
    cargo.env("MIRIFLAGS", format!("-Zmiri-strict-provenance {flags}"));
    cargo
}

/// The part of the suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    if let Err(missing) = found(ctx) {
        report.skip("miri", &missing);
        return Ok(());
    }
    let build = ctx.folder("miri")?;
    let test = |file: &str, flags: &str, options: &[&str]| test(&ctx.root, &build, file, flags, options);
    // Sysroot and tests first, which are long to build: the time of a defect is its own.
    for file in ["defects"].into_iter().chain(TESTS.iter().map(|(file, ..)| *file)) {
        test(file, "", &["--no-run"]).done_within(PATIENCE)?.must()?;
    }
    for (name, says) in DEFECTS {
        let done = test("defects", "", &["--", "--ignored", "--exact", name]).done()?;
        report.claim(&format!("miri_reports_{name}"), || reported(&done, says));
    }
    let mut seeded = |file: &str, parts: &[&str], seeds: usize, target: Option<&str>| -> Result<()> {
        let words: Vec<&str> = target.iter().flat_map(|target| ["--target", target]).chain(["--"]).collect();
        let mut tests = test(file, &format!("-Zmiri-many-seeds=0..{seeds}"), &words);
        let done = tests.args(parts).done_within(PATIENCE)?;
        let on = target.map(|target| format!("_on_{target}")).unwrap_or_default();
        report.claim(&format!("miri_tests_{file}{on}_seeds_{seeds}"), || {
            // Seeds run beside each other, and their lines get mixed.
            let runs = done.all.matches(" passed; 0 failed").count()
                - done.all.matches(" 0 passed; 0 failed").count();
            ensure!(done.ok() && runs >= seeds, "{}, {runs} runs\n{}", done.how(), first_report(&done.all));
            Ok(())
        });
        Ok(())
    };
    for (file, parts, threads) in TESTS {
        let seeds = if !threads {
            1
        } else if ctx.quick {
            4
        } else {
            64
        };
        seeded(file, parts, seeds, None)?;
    }
    for other in OTHERS.iter().filter(|_| !ctx.quick) {
        seeded("few_threads", &[], 4, Some(other))?;
    }
    Ok(())
}
