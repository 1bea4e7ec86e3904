//! The bench: one binary, one run, interleaved rounds. It prints a table and the goals; numbers go to
//! target/bench.tsv, a chart to target/bench.svg.
//!
//! As a test it is short: its rows decide what they say, its files are whole, and no decision has become longer. Times
//! decide nothing.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context as _, Result};
use regex_lite::Regex;
use xshell::{cmd, Cmd};

use crate::context::{is_fresh, words, Context, STRICT};
use crate::exec::Run;
use crate::library::{self, Library};
use crate::report::Report;
use crate::tools::{self, have, For};

/// Rows of the test, by parts of their names.
const ROWS: &str =
    "cell.,floor.cmp,floor.load,floor.denied,floor.store,floor1e3.,table1e3.,c.conforming,c.single1e3,c.floor,\
    threads.denied,threads.floorown,peer.governor,peer1e3.foldhash";

/// One row of every kind must be in the file.
const KINDS: [&str; 4] = ["cell.conforming", "table1e3.ahead64", "peer.governor_denied", "c.single1e3"];

/// Runs that are kept, one a family of processors.
const KEPT: &str = "docs/bench";

/// Instructions of each row, at most these and 2 %.
const GATES: &str = "benches/gates.tsv";

/// The suite.
pub fn test(ctx: &Context, report: &mut Report) -> Result<()> {
    let Library { shared, .. } = library::build(ctx)?;
    own_peers(ctx)?;
    let bench = build(ctx)?;
    let cargo = &ctx.cargo;
    report.lines_of(cmd!(ctx.sh, "env {cargo...} test --release -p tatcell-bench"))?;
    let out = ctx.empty_folder("bench-test")?;
    let (tsv, svg) = (out.join("bench.tsv"), out.join("bench.svg"));
    let mut text = String::new();
    report.claim("every_row_decides_what_it_says", || {
        let files = ["--tsv".into(), tsv.clone(), "--svg".into(), svg.clone()];
        let done = cmd!(ctx.sh, "{bench} run --seconds 1 --only {ROWS} --lib {shared} {files...}").done()?;
        text.clone_from(&done.all);
        done.must().map(drop)
    });
    report.claim("the_file_has_the_rows_of_every_kind", || {
        let table = ctx.read(&tsv)?;
        let rows: Vec<&str> =
            table.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split('\t').next()).collect();
        let lost: Vec<&str> = KINDS.into_iter().filter(|k| !rows.contains(k)).collect();
        ensure!(lost.is_empty(), "without {}", lost.join(", "));
        Ok(())
    });
    report.claim("the_chart_is_well_formed", || {
        roxmltree::Document::parse(&ctx.read(&svg)?)?;
        Ok(())
    });
    report.claim("the_goals_are_judged", || {
        let goal = Regex::new("cell.conforming / floor.cmpxchg .*(met|MISSED)")?;
        ensure!(goal.is_match(&text), "no goal in the report");
        Ok(())
    });
    // With the file of the run above: first as it is, then as that of another processor.
    let compared = || cmd!(ctx.sh, "{bench} run --seconds 0 --only floor.cmp --kept {out}").done();
    report.claim("a_run_is_compared_with_the_kept_one_of_its_family", || {
        let text = compared()?.all;
        let comparison = Regex::new("(?s)COMPARED with .* [1-9][0-9]* rows in common")?;
        ensure!(comparison.is_match(&text), "no comparison:\n{text}");
        let other = ctx.read(&tsv)?.replace("# family: ", "# family: another ");
        ctx.sh.write_file(&tsv, other)?;
        let text = compared()?.all;
        ensure!(text.contains("no run of this family"), "compared with another family:\n{text}");
        Ok(())
    });
    report.lines_of(cmd!(ctx.sh, "{bench} gate {GATES} --lib {shared}"))
}

/// Times and instructions, with the peers.
pub fn all(ctx: &Context) -> Result<()> {
    peers(ctx)?;
    run(ctx)?.arg("--count").quiet().run().map_err(Into::into)
}

/// Only the times.
pub fn times(ctx: &Context) -> Result<()> {
    peers(ctx)?;
    run(ctx)?.quiet().run().map_err(Into::into)
}

/// Only the instructions.
pub fn counts(ctx: &Context) -> Result<()> {
    tools::install(ctx, For::Bench);
    library::build(ctx)?;
    let bench = build(ctx)?;
    cmd!(ctx.sh, "{bench} count").quiet().run().map_err(Into::into)
}

fn run(ctx: &Context) -> Result<Cmd<'_>> {
    let Library { shared, .. } = library::build(ctx)?;
    let bench = build(ctx)?;
    let seconds = words("BENCH_SECONDS", "90").join("");
    let only = words("BENCH_ONLY", "").join("");
    let files = ["--tsv", "target/bench.tsv", "--svg", "target/bench.svg", "--kept", KEPT];
    Ok(cmd!(ctx.sh, "{bench} run --seconds {seconds} --only {only} --lib {shared} {files...}"))
}

fn build(ctx: &Context) -> Result<PathBuf> {
    let cargo = &ctx.cargo;
    cmd!(ctx.sh, "env {cargo...} build --quiet --release -p tatcell-bench")
        .must()
        .context("the bench does not compile")?;
    Ok(ctx.cargo_target.join("release/tatcell-bench"))
}

/// The peers in C++ and C, each where its tools are, and our own inline checks in C; the report of the bench names what
/// is not run.
pub fn peers(ctx: &Context) -> Result<()> {
    tools::install(ctx, For::Bench);
    let sh = &ctx.sh;
    let out = ctx.folder("bench")?;
    own_peers(ctx)?;
    if ctx.cxx.first().is_some_and(|c| have(c)) {
        let flags = ["-std=c++17", "-pedantic"];
        peer(ctx, &ctx.cxx, &flags, "benches/peers/map.cpp", &[], &[], &out.join("libpeer_map.so"))?;
    }
    if cmd!(sh, "pkg-config --exists libdpdk").works() {
        // pkg-config brings the -march=corei7 that DPDK's own libraries are built with; -march=native changes no row by
        // more than the noise.
        let flags = cmd!(sh, "pkg-config --cflags libdpdk").must()?;
        let libraries = cmd!(sh, "pkg-config --libs libdpdk").must()? + " -lm";
        let flags: Vec<&str> = ["-std=gnu11"].into_iter().chain(flags.split_whitespace()).collect();
        let libraries: Vec<&str> = libraries.split_whitespace().collect();
        peer(ctx, &ctx.cc, &flags, "benches/peers/dpdk.c", &[], &libraries, &out.join("libpeer_dpdk.so"))?;
    }
    Ok(())
}

/// Those of our own in C: inline checks, and the floors of calls.
fn own_peers(ctx: &Context) -> Result<()> {
    let out = ctx.folder("bench")?;
    let archive = library::build(ctx)?.archive;
    let archive = archive.to_str().context("the archive has a name of UTF-8")?;
    let own = ["include/tatcell.h", "include/tatcell_inline.h", archive];
    let flags = ["-std=c11", "-Iinclude"];
    peer(ctx, &ctx.cc, &flags, "benches/peers/inline.c", &own, &[archive], &out.join("libpeer_inline.so"))?;
    let flags = ["-std=c11"];
    peer(ctx, &ctx.cc, &flags, "benches/peers/floor.c", &[], &[], &out.join("libpeer_floor.so"))?;
    Ok(())
}

fn peer(
    ctx: &Context,
    compiler: &[String],
    flags: &[&str],
    source: &str,
    beside: &[&str],
    libraries: &[&str],
    out: &Path,
) -> Result<()> {
    let sources: Vec<_> =
        [source, "benches/peers/peer.h"].iter().chain(beside).map(|name| ctx.root.join(name)).collect();
    if is_fresh(out, &sources) {
        return Ok(());
    }
    let [all, extra, errors, _] = STRICT;
    let shared = ["-O3", "-fPIC", "-shared", all, extra, errors];
    let built =
        cmd!(ctx.sh, "env {compiler...} {shared...} {flags...} -o {out} {source} {libraries...}").done()?;
    if !built.ok() {
        bail!("{source} does not compile\n{}", built.all);
    }
    Ok(())
}
