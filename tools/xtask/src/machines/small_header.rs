//! include/tatcell_small.h, in every language that it claims, with its limits and a table as static data; and what
//! it must refuse when it is compiled.

use std::path::Path;

use anyhow::{bail, ensure, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::context::{Context, STRICT};
use crate::exec::{tail, Run};
use crate::report::Report;
use crate::tools::missing;

const LANGUAGES: [(&str, &str); 6] =
    [("c", "c99"), ("c", "c11"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++17"), ("c++", "c++20")];

const USE: &str = r#"#include "tatcell_small.h"
static const tatcell_small_limit_t limit = TATCELL_SMALL_LIMIT_SHAPED(10, 1000000, 5, 20000);
static const tatcell_small32_limit_t limit32 = TATCELL_SMALL32_LIMIT(3, 1000, 5);
static const tatcell_small_limit_t duty = TATCELL_SMALL_DUTY(36000, 3600000, 1500);
static const tatcell_small32_limit_t duty32 = TATCELL_SMALL32_DUTY(36000, 3600000, 1500);
static tatcell_small_slot_t slots[64];
tatcell_small_table_t table = TATCELL_SMALL_TABLE(slots, 10, 1000, 5, TATCELL_FULL_INHERIT);
tatcell_cell_t cell;
tatcell_cell32_t cell32;
uint64_t ask(uint64_t now) {
    const uint8_t key[4] = {1, 2, 3, 4};
    return tatcell_small_check(&cell, &limit, now, 1) + tatcell_small32_check(&cell32, &limit32, (uint32_t)now, 1) +
           tatcell_small_table_check(&table, (uint32_t)now, key, sizeof key, 1) +
           TATCELL_SMALL32_SWEEP_INTERVAL(limit32) + TATCELL_SMALL32_SPAN(limit32) +
           tatcell_small_reserve(&cell, &duty, now, 50) + tatcell_small32_charge(&cell32, &duty32, 0, 50);
}
void (*write_line)(uint32_t left_out);
void line(uint32_t now) {
    uint32_t left_out;
    if (TATCELL_LOG_LIMITED(now, 2, 1000, 3, &left_out))
        write_line(left_out);
}
"#;

/// What cannot be represented, and what is no constant: name, declaration of x.
const REFUSED: [(&str, &str); 12] = [
    ("rate_0", "static const tatcell_small_limit_t x = TATCELL_SMALL_LIMIT(0, 1000, 5);"),
    ("burst_0", "static const tatcell_small32_limit_t x = TATCELL_SMALL32_LIMIT(1, 1000, 0);"),
    (
        "what_32_bits_cannot_hold",
        "static const tatcell_small32_limit_t x = TATCELL_SMALL32_LIMIT(1, 86400000000, 1);",
    ),
    (
        "a_table_of_half_a_set",
        "tatcell_small_table_t x = TATCELL_SMALL_TABLE(slots, 1, 1000, 5, TATCELL_FULL_DENY);",
    ),
    (
        "a_duty_cycle_without_a_rest",
        "static const tatcell_small32_limit_t x = TATCELL_SMALL32_DUTY(1500, 3600000, 1500);",
    ),
    (
        "a_duty_cycle_above_its_window",
        "static const tatcell_small_limit_t x = TATCELL_SMALL_DUTY(3600001, 3600000, 1500);",
    ),
    // Out of the window's range, and inside it: neither is a constant.
    ("a_wrong_variable", "VARIABLE(tatcell_small32_limit_t, TATCELL_SMALL32_LIMIT(1u, 604800000u * n, 5u))"),
    ("a_variable_period", "VARIABLE(tatcell_small_limit_t, TATCELL_SMALL_LIMIT(10, 1000 * n, 5))"),
    ("a_variable_duty", "VARIABLE(tatcell_small32_limit_t, TATCELL_SMALL32_DUTY(n, 3600000, 1500))"),
    (
        "a_variable_burst_of_a_table",
        "VARIABLE(tatcell_small_table_t, TATCELL_SMALL_TABLE(set, 10, 1000, n, TATCELL_FULL_DENY))",
    ),
    ("a_variable_log", "int f(unsigned n) { unsigned l; return TATCELL_LOG_LIMITED(0, n, 1000, 3, &l); }"),
    ("a_variable_delay", "VARIABLE(tatcell_small32_limit_t, TATCELL_SMALL32_LIMIT_SHAPED(10, 1000, 5, n))"),
];

/// The claims about the header.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let out = ctx.folder("firmware-test")?;
    let (source, object) = (out.join("header.c"), out.join("header.o"));
    std::fs::write(&source, USE)?;
    for (language, std) in LANGUAGES {
        let compiler = if language == "c" { &ctx.cc } else { &ctx.cxx };
        let name = format!("small_header_compiles_as_{std}");
        if let Some(missing) = missing(&[compiler.first().map_or("", |c| c)]) {
            report.skip(&name, &missing);
            continue;
        }
        let options = ["-x", language, &format!("-std={std}"), "-O2", "-Iinclude", "-c"];
        let compile = cmd!(ctx.sh, "env {compiler...} {options...} {STRICT...} {source} -o {object}");
        report.claim(&name, || compile.must().map(drop));
    }
    let (source, object) = (out.join("bad.c"), out.join("bad.o"));
    for (language, std, reason) in [
        ("c", "c11", "negative width|not an integer constant"),
        ("c++", "c++17", "this limit cannot be represented|constant expression"),
    ] {
        let compiler = if language == "c" { &ctx.cc } else { &ctx.cxx };
        if let Some(missing) = missing(&[compiler.first().map_or("", |c| c)]) {
            report.skip(&format!("small_header_refuses_in_{language}"), &missing);
            continue;
        }
        let reason = Regex::new(reason)?;
        for (name, declaration) in REFUSED {
            report.claim(&format!("small_header_refuses_{name}_in_{std}"), || {
                std::fs::write(&source, format!("{BEFORE}{declaration}\n"))?;
                // Optimised, as what the compiler could compute must be refused as well.
                let options = ["-x", language, &format!("-std={std}"), "-O2", "-w", "-Iinclude", "-c"];
                let done = cmd!(ctx.sh, "env {compiler...} {options...} {source} -o {object}").done()?;
                ensure!(!done.ok(), "it compiles");
                if !reason.is_match(&done.all) {
                    bail!("for another reason\n{}", tail(&done.all, 5));
                }
                Ok(())
            });
        }
    }
    verdicts(ctx, report, &source, &object);
    Ok(())
}

/// Before what must be refused.
const BEFORE: &str = "#include \"tatcell_small.h\"
tatcell_small_slot_t slots[8], set[16];
#define VARIABLE(type, value) type f(unsigned n) { type x = value; return x; }
";

/// A verdict that nobody looks at is an error where warnings are.
fn verdicts(ctx: &Context, report: &mut Report, source: &Path, object: &Path) {
    report.claim("small_header_warns_of_a_verdict_that_nobody_looks_at", || {
        let calls = "tatcell_small32_check(c, l, 0, 1);";
        std::fs::write(
            source,
            format!("{BEFORE}void f(tatcell_cell32_t *c, const tatcell_small32_limit_t *l) {{ {calls} }}\n"),
        )?;
        let cc = &ctx.cc;
        let done = cmd!(ctx.sh, "env {cc...} -std=c11 -Werror -Iinclude -c {source} -o {object}").done()?;
        ensure!(!done.ok() && done.all.contains("unused-result"), "no warning\n{}", tail(&done.all, 5));
        Ok(())
    });
}
