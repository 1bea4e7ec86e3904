//! The ABI against what it was: types and functions beside the dump of the last release, layouts on other machines, and
//! programs and libraries of the first release of this ABI.
//!
//! `abidw` reads types from debugging information, which the library has none of: the dump is of a library of stubs, a
//! function of the header each. `TATCELL_WRITE_ABI=1` writes the dump anew; that is a release's business.

use std::path::{Path, PathBuf};

use anyhow::{ensure, Context as _, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::context::{Context, STRICT};
use crate::exec::Run;
use crate::library::{self, Library};
use crate::report::Report;
use crate::tools::{have, missing, Missing};

/// The dump of the last release.
const DUMP: &str = "ffi-tests/abi/tatcell-1.abi";
/// The first release of this ABI: what its library is built from, where the history is there.
const FIRST: &str = "8fc3a5f";
/// Compilers of other machines; this one's own comes on top.
const OTHERS: [&str; 4] =
    ["i686-linux-gnu-gcc", "arm-linux-gnueabihf-gcc", "aarch64-linux-gnu-gcc", "s390x-linux-gnu-gcc"];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    layouts(ctx, report)?;
    dump(ctx, report)?;
    programs(ctx, report, &library::build(ctx)?)
}

fn layouts(ctx: &Context, report: &mut Report) -> Result<()> {
    let own = ctx.cc.join(" ");
    for compiler in [own.as_str()].into_iter().chain(OTHERS) {
        let name = format!("abi: layout_of_every_structure_by_{}", compiler.replace(' ', "_"));
        if let Some(missing) = missing(&[compiler.split(' ').next().unwrap_or_default()]) {
            report.skip(&name, &missing);
            continue;
        }
        let words = compiler.split(' ');
        let options = ["-std=c11", "-fsyntax-only", "-Iinclude", "ffi-tests/abi/layouts.c"];
        let (words, plain): (Vec<&str>, Vec<&str>) = (words.clone().collect(), words.collect());
        report.claim(&name, || {
            cmd!(ctx.sh, "env {plain...} {options...}").must()?;
            ensure!(!cmd!(ctx.sh, "env {words...} -DWRONG_SIZE {options...}").works(), "it takes any layout");
            Ok(())
        });
    }
    Ok(())
}

/// A library of stubs, with the functions of a header and the types of their parameters.
fn stubs(ctx: &Context, header: &str, name: &str) -> Result<PathBuf> {
    let folder = ctx.folder("abi")?;
    let (text, source) = (folder.join(format!("{name}.h")), folder.join(format!("{name}.c")));
    std::fs::write(&text, header)?;
    let cc = &ctx.cc;
    let plain = cmd!(ctx.sh, "env {cc...} -E -P {text}").must()?;
    let function = Regex::new(r"(?s)\n([a-z][a-z0-9_ ]*[ *]+tatcell_[a-z0-9_]+\([^;{}]*\));")?;
    let bodies = function.captures_iter(&plain).filter_map(|c| Some(c.get(1)?.as_str().to_owned()));
    let bodies: Vec<String> = bodies.map(|f| format!("{f} {{ __builtin_trap(); }}\n")).collect();
    ensure!(bodies.len() > 100, "{} functions in the header", bodies.len());
    std::fs::write(&source, format!("#include \"{name}.h\"\n{}", bodies.concat()))?;
    let library = folder.join(format!("lib{name}.so"));
    cmd!(ctx.sh, "env {cc...} -std=c11 -g -O0 -w -shared -fPIC -o {library} {source}").must()?;
    Ok(library)
}

fn dump(ctx: &Context, report: &mut Report) -> Result<()> {
    let name = "abi: types_and_functions_are_those_of_the_last_release_or_more";
    if let Some(missing) = missing(&["abidw"]) {
        report.skip(name, &missing);
        return Ok(());
    }
    let header = ctx.read("include/tatcell.h")?;
    let now = stubs(ctx, &header, "now")?;
    let kept = ctx.root.join(DUMP);
    if std::env::var_os("TATCELL_WRITE_ABI").is_some() {
        let plain = ["--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--type-id-style", "hash"];
        cmd!(ctx.sh, "abidw {plain...} --out-file {kept} {now}").must()?;
    }
    let differs = |library: &Path| cmd!(ctx.sh, "abidiff --no-added-syms {kept} {library}").done();
    report.claim(name, || {
        let found = differs(&now)?;
        ensure!(found.ok(), "{}", found.all);
        Ok(())
    });
    report.claim("abi: a_narrower_field_and_a_lost_function_are_found_out", || {
        for (what, with) in
            [("    uint64_t stored;", "    uint32_t stored;"), ("tatcell_cell_peek(", "tatcell_cell_look(")]
        {
            ensure!(header.contains(what), "the header has no {what}");
            let broken = stubs(ctx, &header.replace(what, with), "broken")?;
            ensure!(!differs(&broken)?.ok(), "{with} is not");
        }
        Ok(())
    });
    Ok(())
}

fn programs(ctx: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let old_header = build_program(ctx, "tatcell-0.2.0.h", &library.shared)?;
    report.program("abi: program_of_0_2_with_this_library", ctx_command(&old_header))?;
    let name = "abi: programs_with_the_library_of_0_2";
    let there = have("git") && cmd!(ctx.sh, "git cat-file -e {FIRST}").works();
    if !there {
        let get = "a clone with its whole history";
        report.skip(name, &Missing::new("the commit of release 0.2.0 is not here", get));
        return Ok(());
    }
    let old = first_library(ctx)?;
    let same = build_program(ctx, "tatcell-0.2.0.h", &old)?;
    report.program("abi: program_of_0_2_with_its_own_library", ctx_command(&same))?;
    let new_header = build_program(ctx, "tatcell.h", &old)?;
    report.program("abi: program_of_today_with_the_library_of_0_2", ctx_command(&new_header)).map(drop)
}

fn ctx_command(program: &Path) -> std::process::Command {
    std::process::Command::new(program)
}

/// The program with a header, linked with a library that it finds where it is.
fn build_program(ctx: &Context, header: &str, library: &Path) -> Result<PathBuf> {
    let of = library.parent().and_then(Path::file_name).context("no folder")?.to_string_lossy().into_owned();
    let program = ctx.folder("abi")?.join(format!("{of}-{header}.program"));
    let define = format!("-DHEADER=\"{header}\"");
    let rpath = format!("-Wl,-rpath,{}", library.parent().context("no folder")?.display());
    let (cc, include) = (&ctx.cc, ["-std=c11", "-Iinclude", "-Iffi-tests/abi"]);
    cmd!(ctx.sh, "env {cc...} {STRICT...} {include...} {define} ffi-tests/abi/program.c {library} {rpath} -o {program}")
        .must()?;
    Ok(program)
}

/// The shared library of the first release, built from the history once.
fn first_library(ctx: &Context) -> Result<PathBuf> {
    let folder = ctx.folder("abi/first")?;
    let library = folder.join(format!("target/release/{}", ctx.soname()));
    if !library.exists() {
        let cargo = &ctx.cargo;
        let archive = folder.join("tree.tar");
        cmd!(ctx.sh, "git archive --output {archive} {FIRST}").must()?;
        cmd!(ctx.sh, "tar -xf {archive} -C {folder}").must()?;
        let manifest = folder.join("Cargo.toml");
        let target = folder.join("target");
        let options = ["--quiet", "--release", "--features", "capi", "--lib", "--crate-type", "cdylib"];
        cmd!(ctx.sh, "env {cargo...} rustc --manifest-path {manifest} --target-dir {target} {options...}")
            .must()?;
        std::fs::rename(folder.join("target/release/libtatcell.so"), &library)?;
    }
    Ok(library)
}
