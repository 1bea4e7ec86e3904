//! The installed headers compile alone, twice, under every standard they promise, and their example programs run.
//!
//! Which they are says the line `HEADERS` of the Makefile. A `.h` is for C and C++, a `.hpp` for C++17 and later.

use std::path::{Path, PathBuf};

use anyhow::{ensure, Context as _, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::context::{files, Context, STRICT};
use crate::documents::comment_programs;
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
const CXX_TOO_OLD: [&str; 3] = ["c++98", "c++11", "c++14"];

/// Programs of ffi-tests to whose warnings the wrapper must not add.
const WRAPPER_TESTS: [&str; 2] = ["cpp", "cpp_tables"];

/// Headers whose every function must have a complete doc block.
const DOCUMENTED: [(&str, &str); 2] = [
    ("include/tatcell.h", "every_function_is_documented_completely"),
    ("include/tatcell_host.h", "every_host_function_is_documented_completely"),
];

/// How claims call a header, and a program that uses it.
fn face(ctx: &Context, header: &str) -> Result<(String, String)> {
    let wrapper = "int main() { return tatcell::cell().ref().reset() ? 0 : 1; }";
    Ok(match header {
        "tatcell.h" => ("header".into(), initialisers(&ctx.read("include/tatcell.h")?, MEMORY)?),
        "tatcell.hpp" => ("wrapper".into(), wrapper.to_owned()),
        other => (other.replace('.', "_"), initialisers(&ctx.read(format!("include/{other}"))?, "0")?),
    })
}

/// The macros for static memory, in a value that is 0.
const MEMORY: &str =
    "tatcell_version() != TATCELL_VERSION || memory[0] != sizeof memory - tatcell_table_bytes(100)";

/// A program that uses every initialiser of a header, so that its warnings are seen, and returns `value`.
fn initialisers(header: &str, value: &str) -> Result<String> {
    let macros = Regex::new(r"(?m)^#define (TATCELL_([A-Z0-9_]*)_INIT)")?;
    let (mut made, mut used) = (String::new(), String::new());
    for found in macros.captures_iter(header) {
        let part = |i| found.get(i).map_or("", |m| m.as_str());
        let (init, noun) = (part(1), part(2).to_lowercase());
        made.push_str(&format!("static tatcell_{noun}_t made_{noun} = {init};\n"));
        made.push_str(&format!("static void use_{noun}(void) {{ (void)made_{noun}; }}\n"));
        used.push_str(&format!("    use_{noun}();\n"));
    }
    if value == MEMORY {
        let bytes = "TATCELL_TABLE_BYTES(100)";
        made.push_str(&format!(
            "static TATCELL_ALIGNED(TATCELL_TABLE_MEMORY_ALIGN) unsigned char memory[{bytes}];\n"
        ));
    }
    Ok(format!("{made}int main(void) {{\n{used}    return {value};\n}}"))
}

/// What must not compile: keys with padding, pointers as keys, a limit of the other width or form, a raw number as time
/// or duration, copies of what is shared, a verdict that nobody looks at.
const REFUSED: &[(&str, &str)] = &[
    ("padded_keys_do_not_compile", "padded p{1, 2}; tatcell::key k(p);"),
    ("pointer_keys_do_not_compile", "int i = 0; tatcell::key k(&i);"),
    (
        "limits_of_the_other_width_do_not_compile",
        "tatcell::limit32 l; tatcell::cell c; (void)c.check(l, tatcell::instant(0));",
    ),
    ("raw_numbers_are_no_time", "tatcell::limit l; tatcell::cell c; (void)c.check(l, 5);"),
    ("cells_cannot_be_copied", "tatcell::cell a; tatcell::cell b(a);"),
    ("leases_cannot_be_copied", "tatcell::lease a; tatcell::lease b(a);"),
    ("raw_numbers_are_no_durations", "tatcell::limit l; (void)l.init(1, 1000, 5);"),
    (
        "limits_of_cells_are_none_of_tables",
        "tatcell::limit l; tatcell::table t; (void)t.check(l, tatcell::instant(0), \"k\");",
    ),
    ("owners_of_memory_are_no_keys", "struct s { ~s(); int *p; } o; tatcell::key k(o);"),
    ("burst_keys_with_padding_do_not_compile", "padded p[2] = {}; tatcell::burst b; b.keys(p);"),
    (
        "32_bit_cells_have_no_exclusive_check",
        "tatcell::limit32 l; tatcell::cell32 c; (void)c.ref().check_exclusive(l, tatcell::instant(0));",
    ),
    ("verdicts_are_looked_at", "tatcell::limit l; tatcell::cell c; c.check(l, tatcell::instant(0));"),
];

/// The kernel and vmlinux.h bring their own types and no <stdint.h>, and so may a user.
const TYPES: &str =
    "typedef unsigned char uint8_t; typedef unsigned int uint32_t; typedef int int32_t; typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t; typedef __SIZE_TYPE__ size_t;";

/// Claims about headers without <stdint.h>: what stands before the header in place of `TYPES`, and the options.
const NO_STDINT: [(&str, &str, &[&str]); 3] = [
    ("header_compiles_in_a_kernel", "", &["-D__KERNEL__"]),
    ("header_compiles_beside_vmlinux_h", "#define __VMLINUX_H__ 1\n", &[]),
    ("header_compiles_with_types_of_the_user", "#define TATCELL_NO_STDINT\n", &[]),
];

/// Macros of the header that a user defines otherwise.
const OWN: &str = "#define TATCELL_API __attribute__((visibility(\"default\")))
#define TATCELL_NODISCARD __attribute__((warn_unused_result))
#define TATCELL_ALIGNED(n)
#define TATCELL_NO_ASSERT
#include \"tatcell_host.h\"
int main(void) { return 0; }
";

/// What the programs in the comments print, after the six requests of the first one.
const TABLE_PROGRAM: &str = "one key: passes\nburst: passes, bits 7\n";
const WRAPPER_PROGRAM: &str = "one key: passes\nburst: passes, 1110\nleaves after 100000000 ns\n";

/// The header that comes with the archives for firmware.
const FIRMWARE: &str = "tatcell_small.h";

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
    report.claim("headers: every_header_is_installed_but_the_firmwares", || all_installed(ctx, &headers));
    compile(ctx, report, &headers, &out)?;
    if let Some(missing) = missing(&[ctx.cxx.first().map_or("", |c| c)]) {
        report.skip("headers: what_must_not_compile", &missing);
    } else {
        for (name, body) in REFUSED {
            report.claim(&format!("headers: {name}"), || refused(ctx, body, &out));
        }
    }
    without_stdint(ctx, report, &out)?;
    report.claim("headers: api_alignment_nodiscard_and_asserts_are_the_users_to_define", || {
        own_macros(ctx, &out)
    });
    report.claim("headers: a_discarded_verdict_is_a_warning", || discarded(ctx, &out));
    examples(ctx, report, library, &out)?;
    // What one header names stands in the other.
    let all = DOCUMENTED.iter().map(|(path, _)| ctx.read(path)).collect::<Result<String>>()?;
    for (header, claim) in DOCUMENTED {
        report.claim(&format!("headers: {claim}"), || {
            let bad = header_docs::problems(&ctx.read(header)?, &all)?;
            ensure!(bad.is_empty(), "{}", bad.join("\n"));
            Ok(())
        });
    }
    Ok(())
}

/// What is installed is what there is: a header that the list has lost would be neither installed nor tried.
fn all_installed(ctx: &Context, headers: &[String]) -> Result<()> {
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let all = files(&ctx.root.join("include"), "")?;
    let there = all.iter().filter_map(name).filter(|name| name.ends_with(".h") || name.ends_with(".hpp"));
    let mut wanted: Vec<String> = there.filter(|name| name != FIRMWARE).collect();
    let mut listed = headers.to_vec();
    wanted.sort();
    listed.sort();
    ensure!(listed == wanted, "the Makefile lists {listed:?} of {wanted:?}");
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
            let (face, main) = face(ctx, header)?;
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
            let extra: &[&str] = if wrapper { &NO_RUNTIME } else { &[] };
            for std in if wrapper { &CXX_OF_HPP[..] } else { &CXX[..] } {
                let claim = format!("headers: {face}_compiles_as_{std}_with_{cplus}");
                let flags = STRICT.iter().chain(&MORE_CXX).chain(extra);
                let compile =
                    cmd!(ctx.sh, "env {cxx...} -std={std} {flags...} -Iinclude -fsyntax-only {plus}");
                report.claim(&claim, || compile.must().map(drop));
            }
        }
        wrapper(ctx, report, cxx, &cplus, out);
    }
    Ok(())
}

/// How the wrapper must compile, too.
const NO_RUNTIME: [&str; 2] = ["-fno-exceptions", "-fno-rtti"];

/// The wrapper adds no warning to programs that use all of it, and is one error to compilers that it is not for.
fn wrapper(ctx: &Context, report: &mut Report, cxx: &[String], name: &str, out: &Path) {
    for (std, test) in CXX_OF_HPP.iter().flat_map(|std| WRAPPER_TESTS.map(|test| (std, test))) {
        let flags = MORE_CXX.iter().filter(|f| **f != "-Wold-style-cast").chain(&STRICT).chain(&NO_RUNTIME);
        let source = format!("ffi-tests/{test}.cpp");
        let compile = cmd!(ctx.sh, "env {cxx...} -std={std} {flags...} -Iinclude -fsyntax-only {source}");
        let claim = format!("headers: wrapper_adds_no_warning_to_{test}_as_{std}_with_{name}");
        report.claim(&claim, || compile.must().map(drop));
    }
    for std in CXX_TOO_OLD {
        report.claim(&format!("headers: wrapper_is_one_error_as_{std}_with_{name}"), || {
            let source = out.join("old.cpp");
            let twice = "#include \"tatcell.hpp\"\n".repeat(2);
            std::fs::write(&source, format!("{twice}int main() {{ return 0; }}\n"))?;
            let compile = cmd!(ctx.sh, "env {cxx...} -std={std} -Iinclude -fsyntax-only {source}");
            let said = compile.env("LC_ALL", "C").done()?;
            ensure!(!said.ok(), "it compiles");
            let errors: Vec<&str> = said.all.lines().filter(|l| l.contains("error:")).collect();
            ensure!(errors.len() == 1 && errors.iter().all(|e| e.contains("C++17")), "{}", said.all);
            Ok(())
        });
    }
}

fn refused(ctx: &Context, body: &str, out: &Path) -> Result<()> {
    let source = out.join("refused.cpp");
    let before = "#include \"tatcell.hpp\"\n#include <span>\nstruct padded { char a; int b; };\n";
    let (cxx, used) = (&ctx.cxx, "-Werror=unused-result");
    let compiles = |body: &str| -> Result<bool> {
        std::fs::write(&source, format!("{before}int main() {{ {body} }}\n"))?;
        Ok(cmd!(ctx.sh, "env {cxx...} -std=c++20 {used} -Iinclude -fsyntax-only {source}").works())
    };
    ensure!(compiles("")?, "nothing compiles around it");
    ensure!(!compiles(body)?, "it compiles: {body}");
    Ok(())
}

/// Without any include folder of the system.
fn without_stdint(ctx: &Context, report: &mut Report, out: &Path) -> Result<()> {
    let kernel = ctx.folder("ffi/headers/kernel")?;
    std::fs::create_dir_all(kernel.join("linux"))?;
    std::fs::write(kernel.join("linux/types.h"), TYPES)?;
    let uses = "int use(void); int use(void) { tatcell_burst_t b = TATCELL_BURST_INIT; \
                return (int)(TATCELL_SKEW_NONE >> 63) + (int)b.count; }";
    let (cc, source, object) = (&ctx.cc, out.join("kernel.c"), out.join("kernel.o"));
    for (claim, before, options) in NO_STDINT {
        report.claim(&format!("headers: {claim}"), || {
            // The kernel's come from its own header.
            let types = if before.is_empty() { "" } else { TYPES };
            std::fs::write(&source, format!("{before}{types}\n#include \"tatcell.h\"\n{uses}\n"))?;
            let folders = [format!("-I{}", kernel.display()), "-Iinclude".to_owned()];
            let options = options.iter().copied().chain(STRICT).chain(folders.iter().map(String::as_str));
            cmd!(ctx.sh, "env {cc...} -std=gnu11 -nostdinc {options...} -c {source} -o {object}")
                .must()
                .map(drop)
        });
    }
    Ok(())
}

fn own_macros(ctx: &Context, out: &Path) -> Result<()> {
    let (cc, source) = (&ctx.cc, out.join("own.c"));
    std::fs::write(&source, OWN)?;
    cmd!(ctx.sh, "env {cc...} -std=c11 {STRICT...} -Iinclude -fsyntax-only {source}").must()?;
    let text = cmd!(ctx.sh, "env {cc...} -std=c11 -E -P -Iinclude {source}").must()?;
    let own = "__attribute__((warn_unused_result)) __attribute__((visibility(\"default\")))";
    ensure!(text.contains(own), "they are not used");
    ensure!(!text.contains("_Static_assert"), "there are asserts");
    Ok(())
}

/// A verdict that nobody looks at, in C++17; in C++14 there is no such attribute.
fn discarded(ctx: &Context, out: &Path) -> Result<()> {
    let (cxx, source) = (&ctx.cxx, out.join("discard.cpp"));
    let call = "tatcell_cell_check(c, l, 0, 1, 0);";
    let function = format!("void f(tatcell_cell_t *c, const tatcell_limit_t *l) {{ {call} }}\n");
    std::fs::write(&source, format!("#include \"tatcell.h\"\n{function}"))?;
    let compiles =
        |std: &str| cmd!(ctx.sh, "env {cxx...} -std={std} -Iinclude -Werror -fsyntax-only {source}").works();
    ensure!(!compiles("c++17"), "it is no warning");
    ensure!(compiles("c++14"), "nothing compiles around it");
    Ok(())
}

/// The programs in the comments at the top of the headers: compiled as strictly as anything, and run.
fn examples(ctx: &Context, report: &mut Report, library: &Library, out: &Path) -> Result<()> {
    let mut requests: String = (1..=5).map(|i| format!("request {i}: passes, retry after 0 ns\n")).collect();
    requests.push_str("request 6: does not conform now, retry after 1000000000 ns\n");
    let both = requests.clone() + WRAPPER_PROGRAM;
    let ours = comment_programs(&ctx.read("include/tatcell.h")?);
    let wrapped = comment_programs(&ctx.read("include/tatcell.hpp")?);
    let part = |i| ours.get(i..=i).unwrap_or_default();
    let c = [&["-std=c99"][..], &STRICT].concat();
    let cxx = [&["-std=c++17"][..], &STRICT, &MORE_CXX].concat();
    let (c, cxx) = ((&ctx.cc, &c[..], "example.c"), (&ctx.cxx, &cxx[..], "example.cpp"));
    for (claim, programs, wanted, (compiler, flags, source)) in [
        ("cell_program_in_header_comment_runs", part(0), requests.as_str(), c),
        ("table_program_in_header_comment_runs", part(1), TABLE_PROGRAM, c),
        ("examples_in_wrapper_comment_run", &wrapped, &both, cxx),
    ] {
        report.claim(&format!("headers: {claim}"), || {
            ensure!(!programs.is_empty(), "no program found in the header");
            let (source, binary) = (out.join(source), out.join("example"));
            let archive = &library.archive;
            let mut said = String::new();
            for program in programs {
                std::fs::write(&source, program)?;
                let flags = flags.iter().copied().chain(["-Iinclude", "-O2"]);
                cmd!(ctx.sh, "env {compiler...} {flags...} {source} {archive} -o {binary}").must()?;
                let done = cmd!(ctx.sh, "{binary}").done()?;
                ensure!(done.ok(), "{}, it prints\n{}", done.how(), done.all);
                said.push_str(&done.stdout);
            }
            ensure!(said == wanted, "they print\n{said}instead of\n{wanted}");
            Ok(())
        });
    }
    Ok(())
}
