//! The installed headers compile alone, twice, under every standard they promise, and their example programs run.
//!
//! Which they are says the line `HEADERS` of the Makefile. A `.h` is for C and C++, a `.hpp` for C++17 and later.

use std::path::Path;

use anyhow::{bail, ensure, Context as _, Result};
use xshell::cmd;

use crate::context::{Context, STRICT};
use crate::documents::comment_program;
use crate::exec::Run;
use crate::ffi::header_docs;
use crate::library::Library;
use crate::report::Report;
use crate::tools::missing;

/// Warnings that a careful user turns on: the headers must not add to them.
const MORE_C: [&str; 5] =
    ["-Wshadow", "-Wundef", "-Wconversion", "-Wstrict-prototypes", "-Wmissing-prototypes"];
const MORE_CXX: [&str; 5] = ["-Wshadow", "-Wundef", "-Wconversion", "-Wold-style-cast", "-Wnon-virtual-dtor"];

const C: [&str; 3] = ["c99", "c11", "c17"];
const CXX: [&str; 3] = ["c++11", "c++17", "c++20"];
const CXX_OF_HPP: [&str; 2] = ["c++17", "c++20"];

/// Headers whose every function must have a complete doc block.
const DOCUMENTED: &[&str] = &["include/tatcell.h", "include/tatcell_host.h"];

/// How claims call a header, and a program that uses it.
fn face(header: &str) -> (String, &'static str) {
    match header {
        "tatcell.h" => ("header".into(), "int main(void) { return tatcell_version() != TATCELL_VERSION; }"),
        "tatcell.hpp" => ("wrapper".into(), "int main() { return tatcell::cell().ref().reset() ? 0 : 1; }"),
        other => (other.replace('.', "_"), "int main(void) { return 0; }"),
    }
}

/// What must not compile: keys with padding, pointers as keys, a limit of the other width, a raw number as time.
const REFUSED: &[(&str, &str)] = &[
    ("padded_keys_do_not_compile", "padded p{1, 2}; tatcell::key k(p);"),
    ("pointer_keys_do_not_compile", "int i = 0; tatcell::key k(&i);"),
    (
        "limits_of_the_other_width_do_not_compile",
        "tatcell::limit32 l; tatcell::cell c; (void)c.check(l, tatcell::instant(0));",
    ),
    ("raw_numbers_are_no_time", "tatcell::limit l; tatcell::cell c; (void)c.check(l, 5);"),
    ("cells_cannot_be_copied", "tatcell::cell a; tatcell::cell b(a);"),
];

/// Names of the installed headers.
pub fn installed(ctx: &Context) -> Result<Vec<String>> {
    let makefile = ctx.read("Makefile")?.replace("\\\n", " ");
    let line = makefile.lines().find_map(|l| l.strip_prefix("HEADERS := "));
    Ok(line.context("the Makefile has no line HEADERS")?.split_whitespace().map(str::to_owned).collect())
}

/// Every claim about headers.
pub fn run(ctx: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let out = ctx.folder("ffi/headers")?;
    let headers = installed(ctx)?;
    compile(ctx, report, &headers, &out)?;
    if let Some(missing) = missing(&[ctx.cxx.first().map_or("", |c| c)]) {
        report.skip("headers: what_must_not_compile", &missing);
    } else {
        for (name, body) in REFUSED {
            report.claim(&format!("headers: {name}"), || refused(ctx, body, &out));
        }
    }
    report.claim("headers: example_in_header_comment_runs", || example(ctx, library, &out));
    // Together: the codes that one names stand in the other.
    let all = DOCUMENTED.iter().map(|path| ctx.read(path)).collect::<Result<Vec<_>>>()?;
    let documented = header_docs::problems(&all.concat())?;
    report.claim("headers: every_function_is_documented_completely", || {
        ensure!(documented.is_empty(), "{}", documented.join("\n"));
        Ok(())
    });
    Ok(())
}

/// With the compilers of the build, and with clang.
fn compile(ctx: &Context, report: &mut Report, headers: &[String], out: &Path) -> Result<()> {
    let clang = (vec!["clang".to_owned()], vec!["clang++".to_owned()]);
    for (cc, cxx) in [(ctx.cc.clone(), ctx.cxx.clone()), clang] {
        let (cc, cxx) = (&cc, &cxx);
        let name = |words: &[String]| words.first().map_or(String::new(), |w| w.to_owned());
        let (c, cplus) = (name(cc), name(cxx));
        if let Some(missing) = missing(&[&c, &cplus]) {
            report.skip(&format!("headers: headers_compile_with_{c}"), &missing);
            continue;
        }
        let own = &ctx.cc;
        if c == "clang" && *cc != ctx.cc && cmd!(ctx.sh, "env {own...} --version").must()?.contains("clang") {
            continue;
        }
        // tatcell.ffi.h is not C: it is for the parsers of LuaJIT and of Python.
        for header in headers.iter().filter(|h| !h.ends_with(".ffi.h")) {
            let (face, main) = face(header);
            let source = out.join(format!("{header}.c"));
            std::fs::write(&source, format!("#include \"{header}\"\n#include \"{header}\"\n{main}\n"))?;
            let plus = source.with_extension("cpp");
            std::fs::copy(&source, &plus)?;
            let wrapper = header.ends_with(".hpp");
            for std in C.iter().filter(|_| !wrapper) {
                let claim = format!("headers: {face}_compiles_as_{std}_with_{c}");
                let compile = cmd!(
                    ctx.sh,
                    "env {cc...} -std={std} {STRICT...} -Iinclude {MORE_C...} -fsyntax-only {source}"
                );
                report.claim(&claim, || compile.must().map(drop));
            }
            let extra: &[&str] = if wrapper { &["-fno-exceptions", "-fno-rtti"] } else { &[] };
            for std in if wrapper { &CXX_OF_HPP[..] } else { &CXX[..] } {
                let claim = format!("headers: {face}_compiles_as_{std}_with_{cplus}");
                let flags = STRICT.iter().chain(&MORE_CXX).chain(extra);
                let compile =
                    cmd!(ctx.sh, "env {cxx...} -std={std} {flags...} -Iinclude -fsyntax-only {plus}");
                report.claim(&claim, || compile.must().map(drop));
            }
        }
    }
    Ok(())
}

fn refused(ctx: &Context, body: &str, out: &Path) -> Result<()> {
    let source = out.join("refused.cpp");
    let before = "#include \"tatcell.hpp\"\n#include <span>\nstruct padded { char a; int b; };\n";
    let cxx = &ctx.cxx;
    let compiles = |body: &str| -> Result<bool> {
        std::fs::write(&source, format!("{before}int main() {{ {body} }}\n"))?;
        Ok(cmd!(ctx.sh, "env {cxx...} -std=c++20 -Iinclude -fsyntax-only {source}").works())
    };
    ensure!(compiles("")?, "nothing compiles around it");
    ensure!(!compiles(body)?, "it compiles: {body}");
    Ok(())
}

/// The program in the comment at the top of tatcell.h: compiled as strictly as anything, and run.
fn example(ctx: &Context, library: &Library, out: &Path) -> Result<()> {
    let program =
        comment_program(&ctx.read("include/tatcell.h")?).context("no program found in the header")?;
    let (source, binary) = (out.join("example.c"), out.join("example"));
    std::fs::write(&source, program)?;
    let (cc, archive) = (&ctx.cc, &library.archive);
    cmd!(ctx.sh, "env {cc...} -std=c99 {STRICT...} -Iinclude -O2 {source} {archive} -o {binary}").must()?;
    let said = cmd!(ctx.sh, "{binary}").done()?;
    let mut wanted: String = (1..=5).map(|i| format!("request {i}: passes, retry after 0 ns\n")).collect();
    wanted.push_str("request 6: does not conform now, retry after 1000000000 ns\n");
    if !said.ok() || said.stdout != wanted {
        bail!("{}, it prints\n{}", said.how(), said.all);
    }
    Ok(())
}
