//! Runs what the documents show.
//!
//! Every `c` and `rust` block with a main function is compiled and run; a `text` block right after it is its
//! output. Every line of an `sh` block is a command that must succeed. The program in a header's top comment is run
//! as well, and the loop that it shows. What a document links to must exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context as _, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::context::{Context, STRICT};
use crate::exec::Run;
use crate::library;
use crate::report::Report;

/// The documents whose programs and commands are run.
const DOCUMENTS: &[&str] = &["README.md", "docs/GUIDE.md", "docs/PERFORMANCE.md"];

/// Documents of which only the links are followed: their commands need tools, or hours.
const PROSE: &[&str] = &[
    "docs/ARCHITECTURE.md",
    "docs/FIRMWARE-RECIPES.md",
    "firmware/README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
];

/// Commands that are run by the harness itself, or by a suite of their own.
const ELSEWHERE: &[(&str, &str)] = &[
    ("make test", "this run"),
    ("make demo", "the suite test-demo"),
    ("make bench", "the suite test-bench, for a second"),
];

/// The folders whose files a document may name in backquotes.
const NAMED: &str = r"`((?:tests|src|ffi-tests|examples|docs|include|firmware|tools|benches)/[\w./-]+\.\w+)`";

/// A block of a document.
struct Block {
    kind: String,
    body: String,
}

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let page = Page { archive: library::build(ctx)?.archive, out: ctx.folder("docs")?, ctx };
    for name in DOCUMENTS {
        let path = Path::new(name);
        let text = ctx.read(path)?;
        let stem = stem(path);
        let blocks = blocks(&text);
        let programs = page.run(report, &stem, &blocks)?;
        // Prose about commands needs no program.
        let prose = path.starts_with("docs") && blocks.iter().any(|b| b.kind == "sh");
        if programs == 0 && !prose {
            report.fail(&format!("{stem}_has_a_program"), "found none");
        }
        report.claim(&format!("{stem}_names_files_that_exist"), || links(ctx, path, &text));
    }
    for name in PROSE {
        let claim = format!("{}_names_files_that_exist", name.trim_end_matches(".md").to_lowercase());
        report.claim(&claim, || links(ctx, Path::new(name), &ctx.read(name)?));
    }
    page.run(report, "tatcell", &header_programs(ctx)?).map(drop)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        match &mut open {
            Some(_) if line == "```" => found.extend(open.take()),
            Some(block) => {
                block.body.push_str(line);
                block.body.push('\n');
            }
            None => {
                let kind = line.strip_prefix("```").filter(|k| !k.is_empty());
                open = kind.map(|k| Block { kind: k.to_owned(), body: String::new() });
            }
        }
    }
    found
}

/// The program at the top of tatcell.h, and the loop of tatcell_table_check_burst_ahead: 7 keys with a burst of 2
/// each, 70 requests.
fn header_programs(ctx: &Context) -> Result<Vec<Block>> {
    let header = ctx.read("include/tatcell.h")?;
    let program = comment_program(&header).context("no program in the top comment of tatcell.h")?;
    let looped =
        excerpt(&header, " *     uint64_t hashes[2]", " *     }", 3).context("no loop in tatcell.h")?;
    let around = ctx.read("tests/data/burst_loop.c.in")?;
    let block = |kind: &str, body: String| Block { kind: kind.to_owned(), body };
    Ok(vec![
        block("c", program),
        block("c", around.replace("@LOOP@", looped.trim_end())),
        block("text", "0: 14 of 70\n".to_owned()),
    ])
}

/// The program in a header's top comment.
pub fn comment_program(header: &str) -> Option<String> {
    excerpt(header, " *   #include", " *   }", 5)
}

/// Lines of a comment from the first that starts so to the one that is the end, each without its first characters.
fn excerpt(text: &str, first: &str, end: &str, cut: usize) -> Option<String> {
    let mut lines = text.lines().skip_while(|l| !l.starts_with(first));
    let mut found = String::new();
    loop {
        let line = lines.next()?;
        found.push_str(line.get(cut..).unwrap_or_default());
        found.push('\n');
        if line == end {
            return Some(found);
        }
    }
}

/// Every relative link, followed from the document, and every file named in it, from the root, exists.
fn links(ctx: &Context, document: &Path, text: &str) -> Result<()> {
    let (link, named) = (Regex::new(r"\]\(([^)#]+)(?:#[^)]*)?\)")?, Regex::new(NAMED)?);
    let folder = ctx.root.join(document.parent().unwrap_or(Path::new("")));
    let all = [(&link, &folder), (&named, &ctx.root)];
    let targets = all.iter().flat_map(|(pattern, from)| {
        pattern.captures_iter(text).filter_map(|c| c.get(1)).map(|m| (m.as_str(), *from))
    });
    let local = targets.filter(|(name, _)| !name.starts_with("http"));
    let lost: BTreeSet<&str> =
        local.filter(|(name, from)| !from.join(name).exists()).map(|(name, _)| name).collect();
    ensure!(lost.is_empty(), "missing {lost:?}");
    Ok(())
}

/// How programs of a document are built.
struct Page<'a> {
    ctx: &'a Context,
    archive: PathBuf,
    out: PathBuf,
}

impl Page<'_> {
    /// Runs the programs and commands among these blocks; returns how many programs there are.
    fn run(&self, report: &mut Report, stem: &str, blocks: &[Block]) -> Result<usize> {
        let main = Regex::new(r"\bmain\s*\(")?;
        let mut programs = 0;
        for (i, block) in blocks.iter().enumerate() {
            let kind = block.kind.as_str();
            if matches!(kind, "c" | "rust") && main.is_match(&block.body) {
                programs += 1;
                let name = format!("{stem}_{kind}_{programs}");
                let expected = blocks.get(i + 1).filter(|b| b.kind == "text").map(|b| b.body.as_str());
                report.claim(&name, || self.program(kind, &block.body, expected, &name));
            } else if kind == "sh" {
                self.commands(report, stem, &block.body);
            }
        }
        Ok(programs)
    }

    fn commands(&self, report: &mut Report, stem: &str, body: &str) {
        for line in body.lines().map(str::trim).filter(|l| !l.is_empty()) {
            if let Some((_, who)) = ELSEWHERE.iter().find(|(command, _)| *command == line) {
                report.note(&format!("NOTE {line}: run by {who}"));
                continue;
            }
            report
                .claim(&format!("{stem}: {line}"), || cmd!(self.ctx.sh, "bash -ec {line}").must().map(drop));
        }
    }

    fn program(&self, kind: &str, source: &str, expected: Option<&str>, name: &str) -> Result<()> {
        let binary = if kind == "c" { self.compile_c(source, name) } else { self.compile_rust(source, name) };
        let binary = binary.context("does not compile")?;
        let done = cmd!(self.ctx.sh, "{binary}").done()?;
        if !done.ok() {
            bail!("ends with {}\n{}", done.how(), done.all);
        }
        match expected {
            Some(text) if text != done.stdout => bail!("prints\n{}instead of\n{text}", done.stdout),
            _ => Ok(()),
        }
    }

    fn compile_c(&self, source: &str, name: &str) -> Result<PathBuf> {
        let file = self.out.join(format!("{name}.c"));
        let binary = self.out.join(name);
        std::fs::write(&file, source)?;
        let (cc, archive) = (&self.ctx.cc, &self.archive);
        cmd!(self.ctx.sh, "env {cc...} -std=c11 {STRICT...} -Iinclude {file} {archive} -o {binary}")
            .must()?;
        Ok(binary)
    }

    /// As a crate of its own, with the versions of this repository.
    fn compile_rust(&self, source: &str, name: &str) -> Result<PathBuf> {
        let root = &self.ctx.root;
        let folder = self.out.join(name);
        std::fs::create_dir_all(folder.join("src"))?;
        std::fs::write(folder.join("src/main.rs"), source)?;
        let library = "tatcell = { path = \"../../..\" }";
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
             [dependencies]\n{library}\n[workspace]\n"
        );
        std::fs::write(folder.join("Cargo.toml"), manifest)?;
        std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let (cargo, target) = (&self.ctx.cargo, self.out.join("target"));
        let manifest = folder.join("Cargo.toml");
        cmd!(self.ctx.sh, "env {cargo...} build --quiet --target-dir {target} --manifest-path {manifest}")
            .must()?;
        Ok(target.join("debug").join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_a_kind_and_a_body() {
        let found = blocks("text\n```sh\nmake\n```\n```\nplain\n```\n```c\nint main(void) {}\n```\n");
        let kinds: Vec<&str> = found.iter().map(|b| b.kind.as_str()).collect();
        assert_eq!(kinds, ["sh", "c"]);
        assert_eq!(found.first().map(|b| b.body.as_str()), Some("make\n"));
    }

    #[test]
    fn a_program_is_taken_out_of_a_comment() {
        let header = "/*\n *   #include <a.h>\n *   int main(void) {\n *   }\n * more\n *   }\n */\n";
        assert_eq!(comment_program(header).as_deref(), Some("#include <a.h>\nint main(void) {\n}\n"));
    }
}
