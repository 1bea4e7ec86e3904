//! include/tatcell_small.h, in every language that it claims, with its limits and a table as static data; and what
//! it must refuse when it is compiled.

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
static tatcell_small_slot_t slots[64];
tatcell_small_table_t table = TATCELL_SMALL_TABLE(slots, 10, 1000, 5, TATCELL_FULL_INHERIT);
tatcell_cell_t cell;
tatcell_cell32_t cell32;
uint64_t ask(uint64_t now) {
    const uint8_t key[4] = {1, 2, 3, 4};
    return tatcell_small_check(&cell, &limit, now, 1) + tatcell_small32_check(&cell32, &limit32, (uint32_t)now, 1) +
           tatcell_small_table_check(&table, (uint32_t)now, key, sizeof key, 1) +
           TATCELL_SMALL32_SWEEP_INTERVAL(limit32);
}
"#;

/// What cannot be represented: name, declaration of x.
const REFUSED: [(&str, &str); 4] = [
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
    let reason = Regex::new("negative|division by zero|not constant")?;
    for (name, declaration) in REFUSED {
        report.claim(&format!("small_header_refuses_{name}"), || {
            let before = "#include \"tatcell_small.h\"\nstatic tatcell_small_slot_t slots[8];\n";
            let main = "int main(void) { return (int)sizeof x + (slots != 0); }\n";
            std::fs::write(&source, format!("{before}{declaration}\n{main}"))?;
            let cc = &ctx.cc;
            let done = cmd!(ctx.sh, "env {cc...} -std=c11 -w -Iinclude -c {source} -o {object}").done()?;
            ensure!(!done.ok(), "it compiles");
            if !reason.is_match(&done.all) {
                bail!("for another reason\n{}", tail(&done.all, 5));
            }
            Ok(())
        });
    }
    Ok(())
}
