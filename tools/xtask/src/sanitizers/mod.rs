//! Sanitizers, valgrind and Miri over what has unsafe code and threads. Each tool first sees the defects of its kind
//! (`tests/defects.rs`, `ffi-tests/defects.c`); one that does not report them fails, whatever else it says.
//!
//! | what runs | under | how |
//! |---|---|---|
//! | the crate's tests in Rust | thread and address sanitizer | with std, from the toolchain's rust-src |
//! | ffi-tests, with an instrumented archive | the same; UBSan in C | the archive's symbols must show it |
//! | ffi-tests, with the archive as shipped | memcheck, helgrind, drd | the library's atomics are suppressed |
//! | tests in Rust | Miri: strict provenance, many seeds | a component of the nightly toolchain |

mod compiled;
pub mod miri;
mod valgrind;

use anyhow::{ensure, Result};

use crate::context::Context;
use crate::exec::{tail, Done};
use crate::report::Report;

/// The parts, by which `cargo xtask test-sanitizers NAME...` runs some of them alone.
const PARTS: [&str; 4] = ["thread", "address", "valgrind", "miri"];

/// The suite. A part that ends with an error is a failure, and the others are run all the same.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    if let Some(name) = ctx.arguments.iter().find(|name| !PARTS.contains(&name.as_str())) {
        anyhow::bail!("there is no part {name}, but {}", PARTS.join(", "));
    }
    let asked = |name: &str| ctx.arguments.is_empty() || ctx.arguments.iter().any(|asked| asked == name);
    if ctx.quick {
        report.note(
            "quick: fewer files of tests/ and programs of ffi-tests/, and 4 seeds of Miri instead of 64",
        );
    }
    for sanitizer in compiled::SANITIZERS.iter().filter(|sanitizer| asked(sanitizer.name)) {
        sanitizer.run(ctx, report);
    }
    if asked("valgrind") {
        part(report, "valgrind", |report| valgrind::run(ctx, report));
    }
    if asked("miri") {
        part(report, "miri", |report| miri::run(ctx, report));
    }
    Ok(())
}

/// Runs a part of the suite.
fn part(report: &mut Report, name: &str, run: impl FnOnce(&mut Report) -> Result<()>) {
    if let Err(e) = run(report) {
        report.fail(name, &format!("{e:#}"));
    }
}

/// A defect was reported: all of these words were said, and the run ended with an error before its end.
fn reported(done: &Done, says: &[&str]) -> Result<()> {
    let silent = says.iter().find(|words| !done.all.contains(**words));
    ensure!(
        !done.ok() && silent.is_none(),
        "it was not seen: {}, nothing says {:?}\n{}",
        done.how(),
        silent.unwrap_or(&""),
        tail(&done.all, 20)
    );
    Ok(())
}

/// Programs of cargo's tests that ended well and reported nothing: how many tests passed, none of none.
fn passed(done: &Done) -> Result<usize> {
    let results = done.all.split("test result: ok. ").skip(1);
    let count = results.filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok()).sum();
    ensure!(done.ok() && !done.all.contains("Sanitizer: "), "{}\n{}", done.how(), first_report(&done.all));
    ensure!(count > 0, "it ran no test\n{}", tail(&done.all, 20));
    Ok(count)
}

/// What a sanitizer has found, or else the end of what was said.
fn first_report(all: &str) -> String {
    let lines: Vec<&str> = all.lines().collect();
    match lines.iter().position(|line| line.contains("Sanitizer: ") || line.contains("Undefined Behavior")) {
        Some(at) => lines.iter().skip(at).take(40).copied().collect::<Vec<_>>().join("\n"),
        None => tail(all, 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Run;
    use std::process::Command;

    fn said(script: &str) -> Result<Done> {
        let mut sh = Command::new("sh");
        sh.args(["-c", script]).done()
    }

    #[test]
    fn a_defect_is_reported_where_all_words_are_said_and_the_run_fails() -> Result<()> {
        assert!(reported(&said("echo data race; echo slot; exit 66")?, &["data race", "slot"]).is_ok());
        assert!(reported(&said("echo data race; exit 66")?, &["data race", "slot"]).is_err(), "half of it");
        assert!(reported(&said("echo data race")?, &["data race"]).is_err(), "and went on");
        assert!(reported(&said("exit 66")?, &["data race"]).is_err(), "died of something else");
        Ok(())
    }

    #[test]
    fn tests_passed_where_some_ran_and_nothing_was_reported() -> Result<()> {
        let well = "echo 'test result: ok. 5 passed; 0 failed'";
        assert_eq!(passed(&said(&format!("{well}; {well}"))?)?, 10);
        assert!(passed(&said(&format!("{well}; exit 66"))?).is_err(), "an error at the end");
        assert!(passed(&said(&format!("echo 'WARNING: ThreadSanitizer: data race'; {well}"))?).is_err());
        assert!(passed(&said("echo 'test result: ok. 0 passed; 0 failed'")?).is_err(), "no test");
        Ok(())
    }
}
