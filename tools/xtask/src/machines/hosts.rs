//! The crate's own tests, threads included, on other hosts: big-endian, 32-bit, without 64-bit atomics. Long.
//!
//! `cargo xtask test-hosts TRIPLE...` tries only these; the quick form tries only the one in `QUICK`, and of aarch64
//! what NEON searches. On an x86-64 machine bursts run on an emulated one without AVX-512, too, whose AVX2 they take.
//! On aarch64 what its AES and its swap of one instruction change is tested, too, and instructions are counted
//! ([`counts`]); with `counts` in place of a triple, that alone is done.

use std::process::Command;

use anyhow::Result;

use crate::context::{command, Context};
use crate::exec::Run;
use crate::machines::boards::{short, Host, HOSTS};
use crate::machines::counts;
use crate::machines::rust_target::{self, variable, HostTools, RustTarget};
use crate::report::Report;
use crate::tools::{have, Missing};

/// A test that compares words with what this machine's C compiler lays out says nothing about another byte order.
const LEFT_OUT: [&str; 2] = ["--skip", "the_header_computes_and_refuses_the_same_limits"];

/// The host of the quick form: the farthest from this one.
const QUICK: &str = "s390x-unknown-linux-gnu";

/// Asks for instruction counts alone.
const COUNTS: &str = "counts";

/// What a build for aarch64 may ask for, and the tests that then run other code.
const FEATURES: &str = "-Ctarget-feature=+aes,+lse";
const CHANGED: [&str; 7] = ["--lib", "--test", "bursts", "--test", "table", "--test", "table_hash"];
/// No instruction of theirs changes, and they take minutes.
const UNCHANGED: [&str; 2] = ["--skip", "algorithms::"];

/// The host without 64-bit atomics: the quick form compiles its tests, which has found what nobody had run there.
const COMPILED: &str = "powerpc-unknown-linux-gnu";

/// The host whose vectors no other has, and the unit tests of what they search; seconds.
const NEON: &str = "aarch64-unknown-linux-gnu";
const SEARCHES: [&str; 2] = ["table::search", "table::groups"];

/// A processor of x86-64 with AVX2 and without AVX-512, which this emulator does not have.
const AVX2_ALONE: [&str; 3] = ["qemu-x86_64-static", "-cpu", "max"];
/// What takes the widest step that there is, and what tries each.
const STEPS: [&str; 2] = ["bursts_of", "groups_decide_count_and_store"];
/// A test that skips itself there.
const NO_STEP: &str = "groups_decide_count_and_store_as_single_calls_do_by_avx512: ";

/// Which of the tests, built how.
struct Part {
    /// What is built and run; all where there is none.
    targets: &'static [&'static str],
    /// Behind `--`.
    filters: &'static [&'static str],
    flags: Option<&'static str>,
    /// What its folder and its log are called beside those of the others.
    name: &'static str,
}

const ALL: Part = Part { targets: &[], filters: &[], flags: None, name: "" };
const WITH_FEATURES: Part =
    Part { targets: &CHANGED, filters: &UNCHANGED, flags: Some(FEATURES), name: "-flags" };
const SEARCHED: Part = Part { targets: &["--lib"], filters: &SEARCHES, flags: None, name: "-searches" };

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let named = |name: &str| ctx.arguments.iter().any(|a| a == name);
    let asked = |triple: &str| match &ctx.arguments[..] {
        [] => !ctx.quick || triple == QUICK,
        _ => named(triple),
    };
    if ctx.quick {
        let searches = SEARCHES.join(" and ");
        report.note(&format!(
            "quick: {QUICK}; of {NEON} the tests of {searches}; for {COMPILED} they are compiled"
        ));
    }
    if ctx.arguments.is_empty() {
        match avx2_alone() {
            Ok(_) => tested(report, "bursts_pass_with_avx2_alone", steps(ctx)),
            Err(missing) => report.skip("bursts_pass_with_avx2_alone", &missing),
        }
    }
    for host in HOSTS {
        let with_features = host.triple == counts::TRIPLE;
        let counted = with_features && (asked(host.triple) || named(COUNTS));
        let quick = ctx.quick && ctx.arguments.is_empty();
        let (searched, compiled) = (quick && host.triple == NEON, quick && host.triple == COMPILED);
        if !asked(host.triple) && !counted && !searched && !compiled {
            continue;
        }
        let name = match (searched, compiled) {
            (true, _) => "searches_and_groups_pass_with_neon".to_owned(),
            (_, true) => format!("tests_compile_on_{}_linux_{}", short(host.triple), host.what),
            _ => format!("tests_pass_on_{}_linux_{}", short(host.triple), host.what),
        };
        let found = host.tools().and_then(|tools| Ok((tools, rust_target::find(ctx, host.triple)?)));
        let (tools, rust) = match found {
            Ok(found) => found,
            Err(missing) => {
                report.skip(&name, &missing);
                continue;
            }
        };
        if compiled {
            report.claim(&name, || tests_compile(ctx, host, &rust));
        }
        if searched {
            tested(report, &name, tests(ctx, host, &tools, &rust, &SEARCHED));
        }
        if asked(host.triple) {
            tested(report, &name, tests(ctx, host, &tools, &rust, &ALL));
            if with_features {
                let name = "tests_pass_on_aarch64_with_aes_and_lse";
                tested(report, name, tests(ctx, host, &tools, &rust, &WITH_FEATURES));
            }
        }
        if counted {
            counts::run(ctx, report, host, &tools, &rust)?;
        }
    }
    Ok(())
}

/// Runs a program, whose path follows, where there is AVX2 and no AVX-512.
pub fn avx2_alone() -> Result<Command, Missing> {
    let [emulator, options @ ..] = AVX2_ALONE;
    if !cfg!(target_arch = "x86_64") {
        return Err(Missing::new("this machine is no x86-64 one", "run it on one"));
    }
    if !have(emulator) {
        return Err(Missing::new(emulator, "apt-get install qemu-user-static"));
    }
    let mut command = Command::new(emulator);
    command.args(options);
    Ok(command)
}

/// The tests of bursts there.
fn steps(ctx: &Context) -> Result<Ran> {
    let mut cargo = command(&ctx.cargo)?;
    cargo.args(["test", "--locked", "--features", "std,host,heapless", "--lib", "--test", "bursts", "--"]);
    cargo.args(["--test-threads=2", "--show-output"]).args(STEPS).current_dir(&ctx.root);
    cargo.env("CARGO_TARGET_DIR", &ctx.cargo_target);
    cargo.env(variable("x86_64-unknown-linux-gnu", "RUNNER"), AVX2_ALONE.join(" "));
    let ran = ran(ctx, cargo, "avx2")?;
    anyhow::ensure!(ran.skips.iter().any(|skip| skip.starts_with(NO_STEP)), "this one has AVX-512");
    Ok(ran)
}

/// A claim for all of them, and a line for each that has skipped itself.
fn tested(report: &mut Report, name: &str, tests: Result<Ran>) {
    match tests {
        Ok(Ran { passed, skips }) => {
            skips.iter().for_each(|skip| report.line(&format!("SKIP {name}: {skip}")));
            report.pass(&format!("{name} ({passed} tests)"));
        }
        Err(e) => report.fail(name, &format!("{e:#}")),
    }
}

/// Tests that ran.
#[derive(PartialEq, Debug)]
struct Ran {
    passed: usize,
    /// What those say that skipped themselves.
    skips: Vec<String>,
}

impl Ran {
    /// Of what cargo's tests say with `--show-output`: what each said comes when all have ended.
    fn of(text: &str) -> Ran {
        let skips = text.lines().filter_map(|line| line.strip_prefix("SKIP "));
        let skips: Vec<String> = skips.map(str::to_owned).collect();
        // A test may also say that it skipped a part, by the name of that.
        let named = |skip: &str, test: &str| {
            let name = skip.split(": ").next().unwrap_or_default();
            test.strip_suffix(name).is_some_and(|path| path.is_empty() || path.ends_with("::"))
        };
        let skipped = |test: &str| skips.iter().any(|skip| named(skip, test));
        let ok = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok"));
        let passed = ok.filter(|test| !skipped(test)).count();
        Ran { passed, skips }
    }
}

/// Compiles all tests; without a linker of that host.
fn tests_compile(ctx: &Context, host: &Host, rust: &RustTarget) -> Result<()> {
    let mut cargo = rust.cargo(ctx, "check")?;
    cargo.args(["--locked", "--tests", "--features", host.features, "--target", host.triple]);
    cargo.env("CARGO_TARGET_DIR", ctx.cargo_target.join("hosts"));
    cargo.must().map(drop)
}

/// Runs a part of the tests.
fn tests(ctx: &Context, host: &Host, tools: &HostTools, rust: &RustTarget, part: &Part) -> Result<Ran> {
    let Part { targets, filters, flags, name } = part;
    let mut cargo = rust.cargo(ctx, "test")?;
    cargo.args(["--locked", "--features", host.features, "--target", host.triple]).args(*targets);
    cargo.args(["--", "--test-threads=2", "--show-output"]).args(LEFT_OUT).args(*filters);
    // Flags build everything anew; other filters build nothing.
    let folder = if flags.is_some() { format!("hosts{name}") } else { "hosts".to_owned() };
    cargo
        .env("CARGO_TARGET_DIR", ctx.cargo_target.join(folder))
        .envs(tools.variables.iter().map(|(k, v)| (k, v)))
        .envs(flags.map(|flags| (variable(host.triple, "RUSTFLAGS"), flags)));
    ran(ctx, cargo, &format!("{}{name}", host.triple))
}

/// Runs tests, and writes what they say to a log of this name.
fn ran(ctx: &Context, cargo: Command, name: &str) -> Result<Ran> {
    let log = ctx.folder("hosts")?.join(format!("{name}.log"));
    let mut text = String::new();
    let status = cargo.lines(|line| {
        text.push_str(line);
        text.push('\n');
    })?;
    std::fs::write(&log, &text)?;
    let ran = Ran::of(&text);
    let bad = text.lines().filter(|line| line.starts_with("test ") && line.ends_with(" FAILED")).count();
    anyhow::ensure!(
        status.success() && ran.passed > 0,
        "{status}, {} passed, {bad} failed, see {}",
        ran.passed,
        log.display()
    );
    Ok(ran)
}

#[cfg(test)]
mod its_tests {
    use super::*;

    #[test]
    fn a_test_of_another_machine_that_skips_itself_has_not_passed() {
        let text = "test a ... ok\ntest b ... ok\n\nsuccesses:\n\n---- b stdout ----\nSKIP b: no tool\n";
        assert_eq!(Ran::of(text), Ran { passed: 1, skips: vec!["b: no tool".into()] });
        let text = "test a ... ok\ntest x::b ... ok\n\n---- x::b stdout ----\nSKIP x::b: no tool\n";
        assert_eq!(Ran::of(text).passed, 1);
        assert_eq!(Ran::of("test a ... ok\ntest b ... FAILED\n").passed, 1);
        let part = "test x::a ... ok\n\n---- x::a stdout ----\nSKIP a_by_avx512: no such processor\n";
        assert_eq!(Ran::of(part), Ran { passed: 1, skips: vec!["a_by_avx512: no such processor".into()] });
    }
}
