//! Every folder of integrations/, tested against the installed library and the real server, kernel or tool.
//!
//! A folder is on its own: `make -C integrations/NAME test STAGE=PREFIX` builds against what `make install` put below
//! PREFIX and says PASS, FAIL and SKIP lines and their counts, as a suite does. Here the library is installed into a
//! staging folder, the Debian packages that a folder lacks are installed where they can be, and its lines are taken
//! over.

use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context as _, Result};
use xshell::cmd;

use crate::context::{command, Context};
use crate::exec::Run;
use crate::report::Report;
use crate::tools::{self, Missing};
use crate::{library, package};

/// Where they are.
const FOLDER: &str = "integrations";

/// The suite; `cargo xtask test-integrations NAME...` runs these folders alone.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let folders = asked(ctx)?;
    if folders.is_empty() {
        report.skip("integrations", &Missing::new("there is no folder in integrations/", "add one"));
        return Ok(());
    }
    library::build(ctx)?;
    let stage = ctx.empty_folder("integrations/stage")?;
    package::make(ctx, "install", &stage, &["PREFIX=/usr"])?;
    for name in folders {
        let packages = packages(&ctx.root.join(FOLDER).join(&name))?;
        tools::install_packages(&lacking(ctx, &packages), "tests");
        let mut test = command(&ctx.make)?;
        test.current_dir(&ctx.root).args(["--no-print-directory", "-s", "-C"]);
        test.arg(format!("{FOLDER}/{name}")).arg("test");
        test.arg(format!("STAGE={}", stage.join("usr").display()));
        folder(report, &name, test)?;
    }
    Ok(())
}

/// The names of the folders that have a Makefile, in order; those of the command line if it has any.
fn asked(ctx: &Context) -> Result<Vec<String>> {
    let found = found(&ctx.root.join(FOLDER))?;
    if let Some(name) = ctx.arguments.iter().find(|name| !found.contains(name)) {
        anyhow::bail!("{FOLDER}/ has no {name}, but {}", found.join(", "));
    }
    Ok(if ctx.arguments.is_empty() { found } else { ctx.arguments.clone() })
}

fn found(folder: &Path) -> Result<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).map(str::to_owned);
        names.extend(name.filter(|_| path.join("Makefile").is_file()));
    }
    names.sort();
    Ok(names)
}

/// The Debian packages that a folder needs: its file `packages`, one a line. It skips what it lacks by itself.
fn packages(folder: &Path) -> Result<Vec<String>> {
    let file = folder.join("packages");
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Those of the packages that dpkg does not know as installed; none where there is no dpkg.
fn lacking<'a>(ctx: &Context, packages: &'a [String]) -> Vec<&'a str> {
    if !tools::have("dpkg-query") {
        return Vec::new();
    }
    let installed = |name: &str| {
        let status = "${db:Status-Status}";
        cmd!(ctx.sh, "dpkg-query -W -f {status} {name}").done().is_ok_and(|d| d.stdout == "installed")
    };
    packages.iter().map(String::as_str).filter(|name| !installed(name)).collect()
}

/// Runs the test of one folder. Its own count must be that of its lines: a claim that was lost on the way is a failure.
fn folder(report: &mut Report, name: &str, test: Command) -> Result<()> {
    let before = report.tally();
    let mut last = String::new();
    let status = test.lines(|line| {
        if !line.trim().is_empty() {
            line.clone_into(&mut last);
        }
        match line.split_once(' ') {
            Some((word @ ("PASS" | "FAIL" | "SKIP"), rest)) => report.line(&format!("{word} {name}: {rest}")),
            _ => report.note(line),
        }
    })?;
    let said = report.tally() - before;
    report.claim(&format!("{name}: its_counts_are_those_of_its_lines"), || {
        ensure!(said.passed + said.failed + said.skipped > 0, "it ran no test, and ended with {status}");
        ensure!(last == said.to_string(), "its lines say {said}, and it ended with {last:?} and {status}");
        let right = status.success() == (said.failed == 0);
        ensure!(right, "{said}, and yet it ended with {status}");
        Ok(())
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ROOT;

    fn tally(script: &str) -> Result<(usize, usize, usize)> {
        let mut report = Report::new("suite", Box::new(std::io::sink()));
        let mut program = Command::new("sh");
        program.args(["-c", script]);
        folder(&mut report, "there", program)?;
        let tally = report.close(Ok(())).tally;
        Ok((tally.passed, tally.failed, tally.skipped))
    }

    #[test]
    fn lines_of_a_folder_and_its_count_are_taken_over() -> Result<()> {
        let script = "echo PASS a; echo 'SKIP b: no tool, get it'; echo 1 passed, 0 failed, 1 skipped";
        assert_eq!(tally(script)?, (2, 0, 1));
        let script = "echo PASS a; echo 'FAIL b: why'; echo 1 passed, 1 failed, 0 skipped; exit 1";
        assert_eq!(tally(script)?, (2, 1, 0));
        Ok(())
    }

    #[test]
    fn a_folder_that_counts_wrongly_or_dies_is_a_failure() -> Result<()> {
        assert_eq!(tally("echo PASS a; echo 2 passed, 0 failed, 0 skipped")?, (1, 1, 0));
        assert_eq!(tally("echo PASS a; kill -9 $$")?, (1, 1, 0));
        assert_eq!(tally("echo PASS a; echo 1 passed, 0 failed, 0 skipped; exit 2")?, (1, 1, 0));
        assert_eq!(tally("echo 'FAIL a: why'; echo 0 passed, 1 failed, 0 skipped")?, (0, 2, 0));
        assert_eq!(tally("echo 0 passed, 0 failed, 0 skipped")?, (0, 1, 0));
        Ok(())
    }

    #[test]
    fn every_folder_names_its_packages() -> Result<()> {
        let root = Path::new(ROOT).join(FOLDER);
        for name in found(&root)? {
            assert!(!packages(&root.join(&name))?.is_empty(), "{name} has no packages");
        }
        Ok(())
    }
}
