//! Valgrind over programs of C and the library as it is shipped, vector searches (those of SSE2) included.
//!
//! helgrind and drd do not know atomics: they take each of the library's for a race. What has such an access on either
//! side is suppressed by the names of the library's functions, so they watch the programs, and the table's memory
//! against the programs; the library against itself is watched by the thread sanitizer and Miri.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use xshell::cmd;

use super::reported;
use crate::context::{Context, STRICT};
use crate::exec::Run;
use crate::report::Report;
use crate::tools::missing;

/// Names of the library's functions, exported, and mangled in both ways.
const OWN: [&str; 3] = ["tatcell_*", "_R*tatcell*", "_ZN7tatcell*"];
/// What the tools call an access that is a race.
const RACES: [&str; 2] = ["Helgrind:Race", "drd:ConflictingAccess"];

/// A tool: its defects of `ffi-tests/defects.c` with what it must say, and the programs it runs.
struct Tool {
    name: &'static str,
    defects: &'static [(&'static str, &'static [&'static str])],
    /// Name, arguments, and whether the quick form runs it.
    programs: &'static [(&'static str, &'static str, bool)],
}

/// Programs with threads.
const THREADS: &[(&str, &str, bool)] =
    &[("threads", "1", true), ("refusals", "", true), ("override", "", false), ("sliding_log", "", false)];

const TOOLS: [Tool; 3] = [
    Tool {
        name: "memcheck",
        defects: &[
            ("read_behind", &["Invalid read of size", "tatcell_table_hash"]),
            ("write_behind", &["Invalid write of size", "tatcell_table_init"]),
            ("unset", &["depends on uninitialised value", "tatcell_cell_check"]),
        ],
        programs: &[
            ("threads", "1", true),
            ("refusals", "", true),
            ("override", "", true),
            ("arguments", "", true),
            ("growth", "", false),
            ("counted", "", false),
            ("lease", "", false),
        ],
    },
    Tool {
        name: "helgrind",
        defects: &[("race", &["Possible data race", "write_plainly"])],
        programs: THREADS,
    },
    Tool { name: "drd", defects: &[("race", &["Conflicting store", "write_plainly"])], programs: THREADS },
];

/// The part of the suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    if let Some(missing) = missing(&["valgrind"]) {
        report.skip("valgrind", &missing);
        return Ok(());
    }
    let library = crate::library::build(ctx)?;
    let folder = ctx.folder("sanitizer-valgrind")?;
    let suppressed = folder.join("suppressed");
    std::fs::write(&suppressed, suppressions())?;
    let compile = |name: &str| -> Result<PathBuf> {
        let (cc, out, archive) = (&ctx.cc, folder.join(name), &library.archive);
        let options = ["-std=c11", "-D_GNU_SOURCE", "-pthread", "-Iinclude", "-g", "-O1"];
        let source = format!("ffi-tests/{name}.c");
        cmd!(ctx.sh, "env {cc...} {options...} {STRICT...} {source} {archive} -o {out}").must()?;
        Ok(out)
    };
    let defects = compile("defects")?;
    for Tool { name: tool, defects: these, programs } in TOOLS {
        let under = |program: &Path| {
            let mut valgrind = Command::new("valgrind");
            valgrind.args([format!("--tool={tool}"), format!("--suppressions={}", suppressed.display())]);
            valgrind.args(["-q", "--error-exitcode=99"]).arg(program).current_dir(&ctx.root);
            valgrind
        };
        for (defect, says) in these {
            let done = under(&defects).arg(defect).done()?;
            report.claim(&format!("{tool}_reports_{defect}_in_c"), || reported(&done, says));
        }
        for (name, arguments, _) in programs.iter().filter(|(.., quick)| *quick || !ctx.quick) {
            let mut program = under(&compile(name)?);
            program.args(arguments.split_whitespace());
            report.program(&format!("{tool}_{name}"), program)?;
        }
    }
    Ok(())
}

/// A file of suppressions: races whose access is the library's.
fn suppressions() -> String {
    let one =
        |kind: &str, own: &str| format!("{{\n   atomics of {own}\n   {kind}\n   fun:{own}\n   ...\n}}\n");
    RACES.iter().flat_map(|kind| OWN.map(|own| one(kind, own))).collect()
}
