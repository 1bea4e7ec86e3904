//! The ABI against what it was: types and functions beside the dump of the last release, layouts on other machines, and
//! programs and libraries of each release of this ABI beside those of each other one and of today.
//!
//! What a release had lies in `ffi-tests/abi/`: its headers without their comments in a folder named after it, what it
//! added to the program in `program_*.h`. A release copies its headers, adds a line to [`RELEASES`] and writes the dump
//! anew with `TATCELL_WRITE_ABI=1`. `abidw` reads types from debugging information, which the library has none of: the
//! dump is of a library of stubs, a function of the headers each.

use std::path::{Path, PathBuf};

use anyhow::{ensure, Context as _, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::context::{Context, STRICT};
use crate::exec::Run;
use crate::library;
use crate::report::Report;
use crate::tools::{have, missing, Missing};

/// Headers, programs and the dump.
const KEPT: &str = "ffi-tests/abi";
/// The dump of the last release.
const DUMP: &str = "ffi-tests/abi/tatcell-1.abi";

/// A release of this ABI.
struct Release {
    version: &'static str,
    /// What the release is taken to be, as none has a tag: a commit whose changelog has it on top, with all that it
    /// brought. Its library is built from it, where the history is there.
    commit: &'static str,
    /// `RELEASE` of program.c.
    number: u32,
}

/// The oldest first.
const RELEASES: &[Release] = &[
    Release { version: "0.2.0", commit: "8fc3a5f", number: 2 },
    Release { version: "0.3.0", commit: "597196b", number: 3 },
];

/// Compilers of other machines; this one's own comes on top.
const OTHERS: [&str; 4] =
    ["i686-linux-gnu-gcc", "arm-linux-gnueabihf-gcc", "aarch64-linux-gnu-gcc", "s390x-linux-gnu-gcc"];

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    layouts(ctx, report)?;
    dump(ctx, report)?;
    programs(ctx, report)
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
    report.claim("abi: every_field_of_the_headers_has_its_place_in_the_layouts", || every_field(ctx));
    Ok(())
}

/// Is there a line of layout.h for each structure and each field of the headers? (Not the other way round: compilers
/// refuse a line without its field.)
fn every_field(ctx: &Context) -> Result<()> {
    let layout = ctx.read("ffi-tests/abi/layout.h")?;
    let structure = Regex::new(r"(?s)typedef struct tatcell_(\w+)_t \{(.*?)\n\} tatcell_")?;
    let field = Regex::new(r"(\w+)(?:\[[^;]*\])?;")?;
    let mut count = 0;
    for header in HEADERS {
        let header = ctx.root.join("include").join(header);
        let cc = &ctx.cc;
        let plain = cmd!(ctx.sh, "env {cc...} -fpreprocessed -dD -E -P -w {header}").must()?;
        for c in structure.captures_iter(&plain) {
            let (noun, fields) = (&c[1], &c[2]);
            ensure!(layout.contains(&format!("\nSIZE({noun}, ")), "no size of {noun}");
            for name in field.captures_iter(fields) {
                let at = format!("\nAT({noun}, {}, ", &name[1]);
                ensure!(layout.contains(&at), "no place of {noun}.{}", &name[1]);
                count += 1;
            }
        }
    }
    ensure!(count > 200, "{count} fields in the headers");
    Ok(())
}

/// The headers of the ABI; the second includes the first.
const HEADERS: [&str; 2] = ["tatcell.h", "tatcell_host.h"];

/// The texts of the headers in a folder.
fn headers(ctx: &Context, folder: &str) -> Result<[String; 2]> {
    let [main, host] = HEADERS.map(|name| ctx.read(format!("{folder}/{name}")));
    Ok([main?, host?])
}

/// A library of stubs, with the functions of headers and the types of their parameters.
fn stubs(ctx: &Context, texts: &[String; 2], name: &str) -> Result<PathBuf> {
    let folder = ctx.folder("abi")?.join(format!("stubs-{name}"));
    std::fs::create_dir_all(&folder)?;
    for (header, text) in HEADERS.iter().zip(texts) {
        std::fs::write(folder.join(header), text)?;
    }
    let (source, last) = (folder.join("stubs.c"), folder.join(HEADERS[1]));
    let cc = &ctx.cc;
    let plain = cmd!(ctx.sh, "env {cc...} -E -P {last}").must()?;
    let function = Regex::new(r"(?s)\n([a-z][a-z0-9_ ]*[ *]+tatcell_[a-z0-9_]+\([^;{}]*\));")?;
    let bodies = function.captures_iter(&plain).filter_map(|c| Some(c.get(1)?.as_str().to_owned()));
    let bodies: Vec<String> = bodies.map(|f| format!("{f} {{ __builtin_trap(); }}\n")).collect();
    let host = bodies.iter().filter(|body| body.contains(" tatcell_host_")).count();
    ensure!(bodies.len() > 150 && host > 10, "{} functions in the headers, {host} of the host", bodies.len());
    std::fs::write(&source, format!("#include \"{}\"\n{}", HEADERS[1], bodies.concat()))?;
    let library = folder.join("libstubs.so");
    // The dump is to say nothing of where it was made.
    let here = format!("-fdebug-prefix-map={}=.", folder.display());
    cmd!(ctx.sh, "env {cc...} -std=c11 -g -O0 -w -shared -fPIC {here} -o {library} {source}").must()?;
    Ok(library)
}

fn dump(ctx: &Context, report: &mut Report) -> Result<()> {
    let name = "abi: types_and_functions_are_those_of_the_last_release_or_more";
    if let Some(missing) = missing(&["abidw"]) {
        report.skip(name, &missing);
        return Ok(());
    }
    let last = RELEASES.last().context("no release")?;
    let release = stubs(ctx, &headers(ctx, &format!("{KEPT}/{}", last.version))?, "release")?;
    let kept = ctx.root.join(DUMP);
    if std::env::var_os("TATCELL_WRITE_ABI").is_some() {
        let plain = ["--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--type-id-style", "hash"];
        cmd!(ctx.sh, "abidw {plain...} --out-file {kept} {release}").must()?;
    }
    let differs =
        |options: &[&str], library: &Path| cmd!(ctx.sh, "abidiff {options...} {kept} {library}").done();
    report.claim("abi: the_dump_is_that_of_the_last_release_and_no_more", || {
        let found = differs(&[], &release)?;
        ensure!(found.ok(), "of {}: {}", last.version, found.all);
        Ok(())
    });
    let texts = headers(ctx, "include")?;
    report.claim(name, || {
        let found = differs(&["--no-added-syms"], &stubs(ctx, &texts, "now")?)?;
        ensure!(found.ok(), "{}", found.all);
        Ok(())
    });
    report.claim("abi: a_narrower_field_and_a_lost_function_are_found_out", || {
        for (what, with) in [
            ("    uint64_t stored;", "    uint32_t stored;"),
            ("tatcell_cell_peek(", "tatcell_cell_look("),
            ("    uint32_t pages;", "    uint16_t pages;"),
            ("tatcell_host_random(", "tatcell_host_chance("),
        ] {
            ensure!(texts.iter().any(|text| text.contains(what)), "no header has {what}");
            let library = stubs(ctx, &texts.each_ref().map(|text| text.replace(what, with)), "broken")?;
            ensure!(!differs(&["--no-added-syms"], &library)?.ok(), "{with} is not");
        }
        Ok(())
    });
    Ok(())
}

/// What a program or a library is of: a release, or today.
#[derive(Clone, Copy)]
enum Of<'a> {
    Release(&'a Release),
    Today,
}

impl Of<'_> {
    fn all() -> impl DoubleEndedIterator<Item = Of<'static>> {
        RELEASES.iter().map(Of::Release).chain([Of::Today])
    }

    /// `0_2`, or `today`.
    fn name(self) -> String {
        match self {
            Of::Release(r) => r.version.trim_end_matches(".0").replace('.', "_"),
            Of::Today => "today".into(),
        }
    }

    /// Where its headers are.
    fn headers(self) -> String {
        match self {
            Of::Release(r) => format!("{KEPT}/{}", r.version),
            Of::Today => "include".into(),
        }
    }

    /// What its headers and its library have.
    fn number(self) -> u32 {
        match self {
            Of::Release(r) => r.number,
            Of::Today => RELEASES.iter().map(|r| r.number).max().unwrap_or_default(),
        }
    }
}

/// The program of every release and of today with the library of every release and of today.
fn programs(ctx: &Context, report: &mut Report) -> Result<()> {
    // Today's library first: it is always there.
    for library in Of::all().rev() {
        let (of, path) = match library {
            Of::Today => ("this_library".to_owned(), library::build(ctx)?.shared),
            Of::Release(release) => {
                let of = format!("the_library_of_{}", library.name());
                let commit = release.commit;
                if !have("git") || !cmd!(ctx.sh, "git cat-file -e {commit}").works() {
                    let why = format!("the commit of release {} is not here", release.version);
                    let get = "a clone with its whole history";
                    report.skip(&format!("abi: programs_with_{of}"), &Missing::new(why, get));
                    continue;
                }
                (of, built(ctx, release)?)
            }
        };
        for header in Of::all() {
            let number = header.number().min(library.number());
            let program = build_program(ctx, header, number, library, &path)?;
            let name = format!("abi: program_of_{}_with_{of}", header.name());
            report.program(&name, std::process::Command::new(program))?;
        }
    }
    Ok(())
}

/// The program with these headers, as of release `number`, linked with a library that it finds where it is.
fn build_program(ctx: &Context, header: Of, number: u32, library: Of, path: &Path) -> Result<PathBuf> {
    let program = ctx.folder("abi")?.join(format!("program-{}-{}", header.name(), library.name()));
    let options = ["-std=c11".into(), format!("-I{}", header.headers()), format!("-DRELEASE={number}")];
    let rpath = format!("-Wl,-rpath,{}", path.parent().context("no folder")?.display());
    let cc = &ctx.cc;
    cmd!(ctx.sh, "env {cc...} {STRICT...} {options...} ffi-tests/abi/program.c {path} {rpath} -o {program}")
        .must()?;
    Ok(program)
}

/// The shared library of a release, built from the history once.
fn built(ctx: &Context, release: &Release) -> Result<PathBuf> {
    let (commit, folder) = (release.commit, ctx.folder(&format!("abi/{}", release.version))?);
    let library = folder.join(format!("target/release/{}", ctx.soname()));
    if !library.exists() {
        let cargo = &ctx.cargo;
        let archive = folder.join("tree.tar");
        cmd!(ctx.sh, "git archive --output {archive} {commit}").must()?;
        cmd!(ctx.sh, "tar -xf {archive} -C {folder}").must()?;
        let manifest = folder.join("Cargo.toml");
        let target = folder.join("target");
        let options = ["--quiet", "--release", "--features", "capi,host", "--lib", "--crate-type", "cdylib"];
        cmd!(ctx.sh, "env {cargo...} rustc --manifest-path {manifest} --target-dir {target} {options...}")
            .must()?;
        std::fs::rename(folder.join("target/release/libtatcell.so"), &library)?;
    }
    Ok(library)
}
