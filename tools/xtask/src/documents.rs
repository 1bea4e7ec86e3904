//! Runs what the documents show.
//!
//! Every `c` and `rust` block with a main function is compiled and run; a `text` block right after it is its
//! output. Every line of an `sh` block is a command that must succeed. The programs in the comments of the headers are
//! run as well, those of C as C99 and as C++17, and the loop that tatcell.h shows. What a document links to must exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context as _, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::context::{files, Context, STRICT};
use crate::exec::Run;
use crate::library;
use crate::report::Report;
use crate::tools::missing;

/// The documents beside those of docs/.
const DOCUMENTS: &[&str] =
    &["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "firmware/README.md"];

/// Those that must have a program.
const WITH_PROGRAMS: &[&str] = &["README.md", "docs/GUIDE.md"];

/// Commands that are run by the harness itself or by a suite of their own, or that need what is not here. One that
/// ends with a space or a slash stands for all that start so.
const ELSEWHERE: &[(&str, &str)] = &[
    ("make test", "this run"),
    ("make test-firmware", "this run"),
    ("make demo", "the suite test-demo"),
    ("make bench", "the suite test-bench, for a second"),
    ("make firmware", "the suite test-firmware"),
    ("make -C integrations/", "the suite test-integrations"),
    ("cd packaging/firmware/cmake", "the suite test-recipes"),
    ("cmake -B build ", "the suite test-recipes"),
    ("cmake --build build", "the suite test-recipes"),
    ("qemu-system-arm ", "the suite test-recipes"),
    ("packaging/firmware/arduino/assemble ", "the suite test-recipes"),
    ("west build ", "nobody here; the suite test-recipes has a stand-in of Zephyr"),
];

/// What the first programs of two headers print.
const SIX: &str = "request 1: passes, retry after 0 ns
request 2: passes, retry after 0 ns
request 3: passes, retry after 0 ns
request 4: passes, retry after 0 ns
request 5: passes, retry after 0 ns
request 6: does not conform now, retry after 1000000000 ns
";

/// The headers with programs in their comments, each with what it prints; those of `None` have no main function, and
/// are compiled alone. What those of tatcell.h and tatcell.hpp print, test-ffi looks at too.
const HEADERS: [(&str, &[Option<&str>]); 4] = [
    ("tatcell.h", &[Some(SIX), Some("one key: passes\nburst: passes, bits 7\n")]),
    ("tatcell_inline.h", &[Some("200 of 300 packets pass\n")]),
    ("tatcell_small.h", &[None]),
    ("tatcell.hpp", &[Some(SIX), Some("one key: passes\nburst: passes, 1110\nleaves after 100000000 ns\n")]),
];

/// The folders whose files a document may name in backquotes.
const NAMED: &str =
    r"`((?:tests|src|ffi-tests|examples|docs|include|firmware|tools|benches|integrations)/[\w./-]+\.\w+)`";

/// A block of a document.
struct Block {
    kind: String,
    body: String,
}

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    let page = Page { archive: library::build(ctx)?.archive, out: ctx.folder("docs")?, ctx };
    for document in &documents(ctx)? {
        let text = ctx.read(document)?;
        let stem = stem(document);
        let programs = page.run(report, &stem, &blocks(&text))?;
        if programs == 0 && WITH_PROGRAMS.iter().any(|name| document == Path::new(name)) {
            report.fail(&format!("{stem}_has_a_program"), "found none");
        }
        report.claim(&format!("{stem}_names_files_that_exist"), || links(ctx, document, &text));
    }
    page.headers(report)?;
    page.run(report, "tatcell", &burst_loop(ctx)?).map(drop)
}

/// Every document, by its path from the root.
fn documents(ctx: &Context) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = DOCUMENTS.iter().map(PathBuf::from).collect();
    found.retain(|name| ctx.root.join(name).exists());
    for folder in ["docs", "integrations"] {
        for page in files(&ctx.root.join(folder), ".md")? {
            found.push(page.strip_prefix(&ctx.root)?.to_owned());
        }
    }
    Ok(found)
}

/// Its path in words of a claim.
fn stem(path: &Path) -> String {
    let name = path.with_extension("").to_string_lossy().to_lowercase();
    name.trim_start_matches("docs/").replace('/', "_")
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

/// The loop of tatcell_table_check_burst in tatcell.h: 7 keys with a burst of 2 each, 70 requests.
fn burst_loop(ctx: &Context) -> Result<[Block; 2]> {
    let header = ctx.read("include/tatcell.h")?;
    let looped =
        excerpt(&header, " *     tatcell_burst_t b[2]", " *     }").context("no loop in tatcell.h")?;
    let around = ctx.read("tests/data/burst_loop.c.in")?;
    let block = |kind: &str, body: String| Block { kind: kind.to_owned(), body };
    Ok([block("c", around.replace("@LOOP@", looped.trim_end())), block("text", "0: 14 of 70\n".to_owned())])
}

/// The programs in the comments of a header, of C (` *   `) or C++ (`//   `): from an #include to a closing brace.
pub fn comment_programs(header: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in header.lines() {
        let code = line.get(CUT..).unwrap_or_default();
        let commented = line.starts_with(" *   ") || line.starts_with("//   ");
        if open.is_none() && commented && code.starts_with("#include") {
            open = Some(String::new());
        }
        let Some(program) = &mut open else { continue };
        program.push_str(code);
        program.push('\n');
        if code == "}" {
            found.extend(open.take());
        }
    }
    found
}

/// What stands before the code of a comment, and how much.
const CUT: usize = " *   ".len();

/// Lines of a comment from the first that starts so to the one that is the end, each without what stands before it.
fn excerpt(text: &str, first: &str, end: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|l| !l.starts_with(first));
    let mut found = String::new();
    loop {
        let line = lines.next()?;
        found.push_str(line.get(CUT..).unwrap_or_default());
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
        // Without what a comment says.
        let lines = body.lines().map(|l| l.split_once(" #").map_or(l, |(command, _)| command).trim());
        for line in lines.filter(|l| !l.is_empty()) {
            if let Some((_, who)) = ELSEWHERE.iter().find(|(command, _)| is_of(line, command)) {
                report.note(&format!("NOTE {line}: run by {who}"));
                continue;
            }
            report
                .claim(&format!("{stem}: {line}"), || cmd!(self.ctx.sh, "bash -ec {line}").must().map(drop));
        }
    }

    /// The programs in the comments of the headers, each in every language of its header.
    fn headers(&self, report: &mut Report) -> Result<()> {
        let (cc, cxx) = (&self.ctx.cc[..], &self.ctx.cxx[..]);
        for path in files(&self.ctx.root.join("include"), "")? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let programs = comment_programs(&std::fs::read_to_string(&path)?);
            let printed = HEADERS.iter().find(|(header, _)| *header == name).map_or(&[][..], |(_, all)| *all);
            let stem = name.replace('.', "_");
            if programs.len() != printed.len() {
                let why = format!("{} in its comments, and not {}", programs.len(), printed.len());
                report.fail(&format!("header_{stem}_has_its_programs"), &why);
            }
            for (i, (program, printed)) in programs.iter().zip(printed).enumerate() {
                for (std, compiler) in [("c99", cc), ("c++17", cxx)] {
                    if std == "c99" && name.ends_with(".hpp") {
                        continue;
                    }
                    let claim = format!("header_{stem}_{}_as_{std}", i + 1);
                    if let Some(missing) = missing(&[compiler.first().map_or("", |c| c)]) {
                        report.skip(&claim, &missing);
                        continue;
                    }
                    let name = claim.replace('+', "p");
                    report.claim(&claim, || {
                        let binary = self.compile(compiler, std, program, &name, printed.is_some());
                        let binary = binary.context("does not compile")?;
                        printed.map_or(Ok(()), |printed| self.prints(&binary, Some(printed)))
                    });
                }
            }
        }
        Ok(())
    }

    fn program(&self, kind: &str, source: &str, expected: Option<&str>, name: &str) -> Result<()> {
        let binary = match kind {
            "c" => self.compile(&self.ctx.cc, "c11", source, name, true),
            _ => self.compile_rust(source, name),
        };
        self.prints(&binary.context("does not compile")?, expected)
    }

    /// A program ends with 0 and prints this, if anything is expected.
    fn prints(&self, binary: &Path, expected: Option<&str>) -> Result<()> {
        let done = cmd!(self.ctx.sh, "{binary}").done()?;
        if !done.ok() {
            bail!("ends with {}\n{}", done.how(), done.all);
        }
        match expected {
            Some(text) if text != done.stdout => bail!("prints\n{}instead of\n{text}", done.stdout),
            _ => Ok(()),
        }
    }

    /// A program, or what has no main function.
    fn compile(
        &self,
        compiler: &[String],
        std: &str,
        source: &str,
        name: &str,
        linked: bool,
    ) -> Result<PathBuf> {
        let end = if std.starts_with("c++") { "cpp" } else { "c" };
        let file = self.out.join(format!("{name}.{end}"));
        let binary = self.out.join(name);
        std::fs::write(&file, source)?;
        let with = if linked { self.archive.as_os_str() } else { "-c".as_ref() };
        cmd!(self.ctx.sh, "env {compiler...} -std={std} {STRICT...} -Iinclude {file} {with} -o {binary}")
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

/// Whether a line is this command, or one of those that it stands for.
fn is_of(line: &str, command: &str) -> bool {
    line == command || command.ends_with([' ', '/']) && line.starts_with(command)
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
    fn programs_are_taken_out_of_comments() {
        let header = "/*\n *   #include <a.h>\n *\n *   int main(void) {\n *   }\n * more\n *   }\n */\n";
        assert_eq!(comment_programs(header), ["#include <a.h>\n\nint main(void) {\n}\n"]);
        let header =
            "//   #include <a>\n//   #include <b>\n//   int a() {\n//   }\n//\n//   #include <c>\n//   }\n";
        let wanted = ["#include <a>\n#include <b>\nint a() {\n}\n", "#include <c>\n}\n"];
        assert_eq!(comment_programs(header), wanted);
    }

    #[test]
    fn a_command_stands_for_itself_or_for_what_starts_so() {
        assert!(is_of("make test", "make test") && !is_of("make tests", "make test"));
        assert!(is_of("west build -b board", "west build ") && !is_of("west", "west build "));
    }
}
