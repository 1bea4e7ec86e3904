//! The harness of tatcell: builds the libraries and runs the tests. `cargo xtask` lists what it knows; `make` is
//! its front.
//!
//! Suites are in `suites.rs`, what they say is in `report.rs`, the programs that they need in `tools.rs`. Commands
//! run in the repository's root; what is built lies below `target/`.

mod assurance;
mod bench;
mod binary;
mod cluster;
mod cluster_c;
mod cluster_counts;
mod cluster_library;
mod cluster_store;
mod containers;
mod context;
mod coverage;
mod demo;
mod documents;
mod door_files;
mod doors;
mod exec;
mod ffi;
mod fuzz;
mod integrations;
mod lanes;
mod library;
mod lint;
mod loom;
mod machines;
mod mutants;
mod package;
mod planted;
mod proofs;
#[cfg(test)]
mod readme;
mod report;
mod rust_tests;
mod said;
mod sanitizers;
mod suites;
mod tools;
mod tree;
mod workers;

use std::process::ExitCode;

use anyhow::{bail, Result};

use crate::context::Context;

/// A command that is no suite.
struct Job {
    name: &'static str,
    about: &'static str,
    run: fn(&Context) -> Result<()>,
}

const fn job(name: &'static str, about: &'static str, run: fn(&Context) -> Result<()>) -> Job {
    Job { name, about, run }
}

const JOBS: &[Job] = &[
    job("lib", "build libtatcell.a and libtatcell.so into target/c", library::job),
    job("cluster-lib", "build libtatcell_cluster.a and .so into target/c", cluster_library::job),
    job(
        "header",
        "generate the headers and the lists of exports from src/capi of both crates",
        library::header,
    ),
    job("firmware", "build the firmware archives (Cortex-M0 to M4F, RISC-V)", machines::archive::job),
    job(
        "fuzz",
        "search for inputs that break a target of fuzz/ (TARGET, SECONDS; KEEP=1 keeps them)",
        fuzz::job,
    ),
    job("demo", "attack a UDP server, without the limiter, then with it (DEMO_PORT, DEMO_SVG)", demo::run),
    job(
        "cluster-count",
        "instructions of a decision of the companion crate; --write: into cluster/gates.tsv",
        cluster_counts::job,
    ),
    job("demo-cluster", "four nodes and a store, killed, stopped and audited (CLUSTER_SVG)", cluster::demo),
    job("compare", "send the same arrivals through every algorithm (COMPARE_SVG)", demo::compare),
    job(
        "assurance",
        "hold every promise against its checks; docs/ASSURANCE.md (LONG=1, LOGS=1)",
        assurance::run,
    ),
    job("attacks", "attack tables in virtual time; docs/ATTACKS.md and docs/attacks.svg", demo::attacks),
    job("bench", "time rows, count instructions, judge the goals (BENCH_SECONDS, BENCH_ONLY)", bench::all),
    job("bench-time", "only the times", bench::times),
    job("bench-count", "only the instructions per decision", bench::counts),
    job("bench-peers", "build the peers in C++ and C", bench::peers),
    job("bench-tools", "install what the bench can use and this machine lacks", |c| {
        tools::install(c, tools::For::Bench);
        Ok(())
    }),
];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("xtask: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything that was asked for holds.
fn run() -> Result<bool> {
    let mut ctx = Context::new()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        list();
        return Ok(true);
    };
    if name == "test" {
        // They name suites, and are nothing for the suites themselves.
        ctx.arguments.clear();
        return suites::all(&ctx, rest);
    }
    if let Some(suite) = suites::find(name) {
        return suites::alone(&ctx, suite);
    }
    match JOBS.iter().find(|j| j.name == name) {
        Some(job) => (job.run)(&ctx).map(|()| true),
        None => bail!("{name} is unknown; cargo xtask lists what there is"),
    }
}

fn list() {
    println!("cargo xtask COMMAND\n");
    println!("  {:<20} every suite marked *, or those named after it; the counts are the last line", "test");
    for suite in suites::SUITES {
        println!("  {:<20} {}{}", suite.name, if suite.always { "* " } else { "" }, suite.about);
    }
    println!();
    for job in JOBS {
        println!("  {:<20} {}", job.name, job.about);
    }
}
