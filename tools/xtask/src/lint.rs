//! Formatting, lints and documentation without a warning, and rules about words that a compiler does not check.

use std::path::Path;

use anyhow::{bail, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::context::{files, Context};
use crate::exec::Run;
use crate::report::Report;
use crate::tools::Missing;

/// Clippy runs with these arguments, each with its claim.
const CLIPPY: &[(&str, &[&str])] = &[
    ("core_has_no_lint", &["-p", "tatcell", "--lib"]),
    ("c_abi_has_no_lint", &["-p", "tatcell", "--lib", "--features", "capi,host"]),
    // The companion crate and the servers have suites of their own: what they stand on is long to compile.
    (
        "everything_has_no_lint",
        &[
            "--workspace",
            "--exclude",
            "tatcell-cluster",
            "--exclude",
            "tatcell-door",
            "--exclude",
            "tatcell-throttled",
            "--exclude",
            "tatcell-ratelimit",
            "--all-targets",
            "--features",
            "std,capi,host,heapless",
        ],
    ),
];

/// The files that word rules read.
const TEXTS: &[&str] = &[".rs", ".c", ".h", ".hpp", ".md", ".mk"];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let cargo = &ctx.cargo;
    let sh = &ctx.sh;
    if cmd!(sh, "env {cargo...} fmt --version").works() {
        report.claim("code_is_formatted", || cmd!(sh, "env {cargo...} fmt --all --check").must().map(drop));
    } else {
        report.skip("code_is_formatted", &component("rustfmt"));
    }
    if cmd!(sh, "env {cargo...} clippy --version").works() {
        for &(name, what) in CLIPPY {
            let clippy = cmd!(sh, "env {cargo...} clippy --quiet {what...} -- -D warnings");
            report.claim(name, || clippy.must().map(drop));
        }
    } else {
        for (name, _) in CLIPPY {
            report.skip(name, &component("clippy"));
        }
    }
    let doc = cmd!(sh, "env {cargo...} doc --quiet -p tatcell --no-deps --features capi,host,heapless");
    report.claim("rustdoc_has_no_warning", || doc.env("RUSTDOCFLAGS", "-D warnings").must().map(drop));

    match cmd!(sh, "git ls-files").done() {
        Ok(listed) if listed.ok() => {
            report.claim("no_unfinished_marker", || unfinished(ctx, listed.stdout.lines()));
        }
        _ => {
            report.skip("no_unfinished_marker", &Missing::new("the list of files", "a git checkout, and git"))
        }
    }
    let rules = [
        ("every_unsafe_block_names_its_invariant", Rule::safety()?),
        ("every_atomic_access_names_its_ordering", Rule::ordering()?),
    ];
    for (name, rule) in rules {
        report.claim(name, || {
            ["src", "cluster/src", "cluster/door", "cluster/envoy", "cluster/throttled"]
                .iter()
                .try_for_each(|at| rule.holds_in(&ctx.root.join(at)))
        });
    }
    Ok(())
}

fn component(name: &str) -> Missing {
    Missing::new(format!("{name} is not installed"), format!("rustup component add {name}"))
}

fn unfinished<'a>(ctx: &Context, names: impl Iterator<Item = &'a str>) -> Result<()> {
    // In parts, so that this file does not find itself.
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("X", "XX"),
        concat!("to", "do!"),
        concat!("unimpl", "emented!"),
    ];
    let mut found = Vec::new();
    for name in names.filter(|n| TEXTS.iter().any(|end| n.ends_with(end))) {
        // A file that was just removed is still listed.
        let Ok(text) = ctx.read(name) else { continue };
        let lines = text.lines().enumerate().filter(|(_, line)| words.iter().any(|w| line.contains(w)));
        found.extend(lines.map(|(i, line)| format!("{name}:{}: {}", i + 1, line.trim())));
    }
    none(&found)
}

/// Lines that need a comment close above them.
struct Rule {
    needs: Regex,
    comment: &'static str,
    /// How many lines above at most.
    within: usize,
    /// Whether models and tests are read as well.
    tests_too: bool,
}

impl Rule {
    fn safety() -> Result<Self> {
        Ok(Self { needs: Regex::new(r"unsafe \{")?, comment: "SAFETY", within: 4, tests_too: true })
    }

    fn ordering() -> Result<Self> {
        let needs = Regex::new("Ordering::(Relaxed|Acquire|Release|AcqRel|SeqCst)")?;
        Ok(Self { needs, comment: "ORDERING", within: 6, tests_too: false })
    }

    fn holds_in(&self, folder: &Path) -> Result<()> {
        let mut found = Vec::new();
        for path in files(folder, ".rs")?.iter().filter(|p| self.tests_too || !is_test(p)) {
            let text = std::fs::read_to_string(path)?;
            found.extend(
                self.bare_lines(&text).map(|n| format!("{}:{n} has no {}", path.display(), self.comment)),
            );
        }
        none(&found)
    }

    /// Numbers of the lines without their comment.
    fn bare_lines<'a>(&'a self, text: &'a str) -> impl Iterator<Item = usize> + 'a {
        let mut said = None;
        text.lines().enumerate().filter_map(move |(i, line)| {
            if line.contains(self.comment) {
                said = Some(i);
            }
            let bare = self.needs.is_match(line) && said.is_none_or(|s| i - s > self.within);
            bare.then_some(i + 1)
        })
    }
}

fn is_test(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("loom") || name.ends_with("_tests.rs")
}

fn none(found: &[String]) -> Result<()> {
    match found {
        [] => Ok(()),
        found => bail!("{}", found.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(rule: Result<Rule>, text: &str) -> Vec<usize> {
        rule.map(|r| r.bare_lines(text).collect()).unwrap_or_default()
    }

    #[test]
    fn a_block_without_its_invariant_is_found() {
        let text = "// SAFETY: aligned\nunsafe { a }\n\n\n\nunsafe { b }\n";
        assert_eq!(bare(Rule::safety(), text), [6]);
    }

    #[test]
    fn an_access_without_its_ordering_is_found() {
        let text = "x.load(Ordering::Relaxed);\n// ORDERING: value only\nx.load(Ordering::Relaxed);\n";
        assert_eq!(bare(Rule::ordering(), text), [1]);
    }
}
