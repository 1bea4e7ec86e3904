//! What an archive for bare metal must be, checked on the objects themselves: it exports the documented functions and
//! nothing else, what few call apart from the rest, needs nothing (but the firmware's two functions), and holds no
//! division, panic, allocation, float or lock.
//!
//! Builds that would bring the spin lock in, or that made no choice, must fail and say what to choose.

use std::path::Path;

use anyhow::{bail, ensure, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::binary::{bytes_in, members, names};
use crate::context::Context;
use crate::exec::{tail, Run};
use crate::machines::archive;
use crate::machines::boards::{short, Family, CHOICES, TARGETS};
use crate::machines::rust_target::is_added;
use crate::report::Report;
use crate::tools::Missing;

/// Names that firmware must not have.
const NAMES: &str = "(?i)fallback|LOCKS|seqlock|panic|unwind|unwrap|alloc|u?(div|mod)[sdt]i[34]|[ui]divmod|\
    __aeabi_[uil]*(div|mod)|u128_div|__aeabi_[fd]|fmt|bounds|begin_";

/// Instructions that firmware must not have: a core with a divider needs no function to divide.
const INSTRUCTIONS: &str = "^([us]div|div|divu|rem|remu|v(add|sub|mul|div|cvt|ldr|str|mov)[.a-z0-9]*|\
    f(add|sub|mul|div|lw|sw|mv)[.a-z0-9]*)$";

/// Targets for which a build without a choice is tried.
const UNDECIDED: [&str; 3] = ["thumbv6m-none-eabi", "thumbv7m-none-eabi", "riscv32imac-unknown-none-elf"];

/// Builds that must fail: name with TARGET in it, features, words of the message.
const REFUSED: [(&str, &str, &str); 3] = [
    ("build_for_TARGET_without_a_choice_says_what_to_choose", "", "Choose how cells are shared"),
    (
        "spin_lock_on_TARGET_is_refused_and_says_what_to_choose",
        "fallback",
        "Choose instead how cells are shared",
    ),
    ("spin_lock_on_TARGET_is_refused_beside_a_choice_too", "fallback,single-core", "would hang"),
];

/// The gates.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let exports = ctx.exports(archive::MAP)?;
    for target in TARGETS {
        let family = target.family;
        if let Some(missing) = family.missing() {
            report.skip(&format!("archives_of_{}", short(target.triple)), &missing);
            continue;
        }
        for choice in &CHOICES {
            let path = archive::path(ctx, target, choice.name);
            let members = members(&path)?;
            let name = format!("archive_{}_{}", short(target.triple), choice.name);
            report.claim(&format!("{name}_exports_the_header_and_nothing_else"), || {
                let found = names(&members, |s| s.global && s.defined);
                ensure!(found == exports, "it exports {}", found.join(" "));
                Ok(())
            });
            report.claim(&format!("{name}_needs_nothing_from_a_runtime"), || {
                let found = names(&members, |s| !s.defined);
                ensure!(found == choice.needs, "it needs {}", found.join(" "));
                Ok(())
            });
            report.claim(&format!("{name}_has_no_division_panic_allocation_float_or_lock"), || {
                let found = forbidden(ctx, family, &path)?;
                ensure!(found.is_empty(), "{}", found.join(" "));
                Ok(())
            });
            report.claim(&format!("{name}_keeps_what_few_call_in_objects_of_their_own"), || {
                for function in archive::APART {
                    let home =
                        members.iter().find(|m| m.symbols.iter().any(|s| s.name == function && s.defined));
                    let found = home.map(|m| names(std::slice::from_ref(m), |s| s.global && s.defined));
                    ensure!(
                        found.as_deref() == Some(&[function]),
                        "{function} lies beside others: {found:?}"
                    );
                }
                Ok(())
            });
            report.claim(&format!("{name}_makes_no_linker_warn_of_its_stack"), || {
                let noted = members.iter().find(|m| m.sections.iter().any(|(s, _)| s == ".note.GNU-stack"));
                ensure!(noted.is_none(), "{} has .note.GNU-stack", noted.map_or("", |m| &m.name));
                Ok(())
            });
            report.claim(&format!("{name}_has_no_memory_of_its_own"), || {
                let bytes = bytes_in(&members, |s| s.starts_with(".data") || s.starts_with(".bss"));
                ensure!(bytes == 0, "{bytes} bytes of data");
                Ok(())
            });
        }
    }
    sees_division(ctx, report);
    for triple in UNDECIDED {
        for (name, features, message) in REFUSED {
            let name = name.replace("TARGET", short(triple));
            if is_added(ctx, triple) {
                report.claim(&name, || refused(ctx, triple, features, message));
            } else {
                report.skip(&name, &Missing::new("the target", format!("rustup target add {triple}")));
            }
        }
    }
    Ok(())
}

/// The gate must see: the same search over the whole library, runtime and all, as rustc makes it.
fn sees_division(ctx: &Context, report: &mut Report) {
    let ([target, ..], [choice, ..]) = (TARGETS, &CHOICES);
    let name = "gate_finds_division_where_there_is_some";
    match target.family.missing() {
        Some(missing) => report.skip(name, &missing),
        None => {
            let raw = archive::raw(ctx, target, choice);
            report.claim(name, || {
                let found = forbidden(ctx, target.family, &raw)?;
                ensure!(found.iter().any(|f| f.contains("div")), "nothing found in {}", raw.display());
                Ok(())
            });
        }
    }
}

/// Names and instructions in an archive that firmware must not have.
fn forbidden(ctx: &Context, family: &Family, archive: &Path) -> Result<Vec<String>> {
    let (bad_name, bad_instruction) = (Regex::new(NAMES)?, Regex::new(INSTRUCTIONS)?);
    let mut found: Vec<String> =
        names(&members(archive)?, |s| bad_name.is_match(&s.name)).iter().map(|n| n.to_string()).collect();
    let objdump = family.tool("objdump");
    // Of a raw archive it cannot read all members, and says so by its exit status.
    let text = cmd!(ctx.sh, "{objdump} -d --no-show-raw-insn {archive}").done()?.stdout;
    ensure!(text.contains("Disassembly"), "nothing to read in {}", archive.display());
    let mnemonics = text.lines().filter_map(|l| l.split_once(":\t")).map(|(_, code)| code);
    let mnemonics = mnemonics.filter_map(|code| code.split_whitespace().next());
    let mut instructions: Vec<String> =
        mnemonics.filter(|m| bad_instruction.is_match(m)).map(str::to_owned).collect();
    instructions.sort();
    instructions.dedup();
    found.append(&mut instructions);
    Ok(found)
}

fn refused(ctx: &Context, triple: &str, features: &str, message: &str) -> Result<()> {
    let cargo = &ctx.cargo;
    let out = ctx.folder("firmware-test/refused")?;
    let options = ["--lib", "--target", triple, "--features", features];
    let done = cmd!(ctx.sh, "env {cargo...} check --quiet {options...} --target-dir {out}").done()?;
    ensure!(!done.ok(), "it builds");
    let errors = done.all.lines().filter(|l| l.starts_with("error: ")).count();
    if !done.all.contains(message) || errors > 2 {
        bail!("another message than \"{message}\"\n{}", tail(&done.all, 15));
    }
    Ok(())
}
