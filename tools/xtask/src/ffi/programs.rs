//! The programs of ffi-tests: one line each says what is built from what and under which tools it runs.
//!
//! Each prints PASS, FAIL or SKIP lines (ffi-tests/check.h), which get the name of the program, with its tool, in front.
//! The Rust side is not instrumented: asan and tsan watch what the C side does and hands over; memcheck sees both.
//! helgrind and drd take the lock-free words for races, so they would prove nothing.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use xshell::cmd;

use crate::context::{is_fresh, words, Context, STRICT};
use crate::exec::Run;
use crate::library::Library;
use crate::report::Report;
use crate::tools::{missing, Missing};

/// Every program. A new one is a new line.
const PROGRAMS: &[Program] = &[
    c("layout").under(&[ASAN, MEMCHECK]),
    c("codes").under(&[ASAN, TSAN]),
    c("arguments").under(&[ASAN]),
    c("vectors").with(&["ffi-tests/data/vectors.tsv"]).under(&[ASAN, MEMCHECK]),
    // Arguments: how many traces.
    c("property").under(&[ASAN.with(&["100"]), MEMCHECK.with(&["12"])]),
    c("semantics").under(&[ASAN, MEMCHECK]),
    // Argument: percent of the rounds.
    c("threads").under(&[ASAN.with(&["20"]), TSAN.with(&["10"])]),
    c("process").under(&[ASAN]),
    c("lease").under(&[ASAN]),
    c("host").under(&[ASAN]),
    cxx("cpp17", "cpp.cpp", "-std=c++17").under(&[MEMCHECK]),
    cxx("cpp20", "cpp.cpp", "-std=c++20").under(&[ASAN]),
    c("archives").linked(Link::BesideRust),
    Program { name: "shared", ..c("semantics") }.linked(Link::Shared),
];

/// A program and how it is built and run.
#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    source: &'static str,
    language: Language,
    link: Link,
    arguments: &'static [&'static str],
    under: &'static [Under],
}

#[derive(Clone, Copy)]
enum Language {
    /// C11; the source is named after the program.
    C,
    /// C++ of this standard.
    Cxx(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Archive,
    Shared,
    /// With a second Rust archive, which has std, a panic handler and an allocator of its own.
    BesideRust,
}

/// A further run of a program.
#[derive(Clone, Copy)]
struct Under {
    tool: &'static Tool,
    /// Instead of the usual arguments, where the tool is slow.
    arguments: Option<&'static [&'static str]>,
}

/// A sanitizer, or valgrind.
struct Tool {
    name: &'static str,
    /// Flags of the compiler.
    flags: &'static [&'static str],
    /// What runs the program.
    runner: &'static [&'static str],
    /// How to get it.
    get: &'static str,
}

const PLAIN: Under = plain(&Tool { name: "", flags: &[], runner: &[], get: "" });
const ASAN: Under = plain(&Tool {
    name: "asan",
    flags: &["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    runner: &[],
    get: "gcc: apt-get install libasan8 libubsan1; clang: libclang-rt-dev",
});
const TSAN: Under = plain(&Tool {
    name: "tsan",
    flags: &["-O1", "-fsanitize=thread"],
    runner: &[],
    get: "gcc: apt-get install libtsan2; clang: libclang-rt-dev",
});
const MEMCHECK: Under = plain(&Tool {
    name: "memcheck",
    flags: &[],
    runner: &[
        "valgrind",
        "-q",
        "--error-exitcode=99",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
    ],
    get: "",
});

const fn plain(tool: &'static Tool) -> Under {
    Under { tool, arguments: None }
}

const fn c(name: &'static str) -> Program {
    Program { name, source: name, language: Language::C, link: Link::Archive, arguments: &[], under: &[] }
}

const fn cxx(name: &'static str, source: &'static str, standard: &'static str) -> Program {
    Program { source, language: Language::Cxx(standard), ..c(name) }
}

impl Under {
    const fn with(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments: Some(arguments), ..self }
    }
}

impl Program {
    const fn with(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments, ..self }
    }

    const fn under(self, under: &'static [Under]) -> Self {
        Self { under, ..self }
    }

    const fn linked(self, link: Link) -> Self {
        Self { link, ..self }
    }
}

/// A run of a program under a tool.
struct Job {
    name: String,
    program: Program,
    under: Under,
    binary: PathBuf,
}

/// Builds and runs them all.
pub fn run(ctx: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let mut jobs: Vec<Job> = PROGRAMS.iter().map(|p| Job::new(ctx, *p, PLAIN)).collect();
    for Under { tool, .. } in [ASAN, TSAN, MEMCHECK] {
        if let Some(missing) = tool.missing(ctx)? {
            report.skip(tool.name, &missing);
            continue;
        }
        for program in PROGRAMS {
            let wanted = program.under.iter().filter(|u| u.tool.name == tool.name);
            jobs.extend(wanted.map(|u| Job::new(ctx, *program, *u)));
        }
    }
    let mut builds = Vec::new();
    for job in &jobs {
        builds.push(job.build(ctx, library)?);
    }
    for (job, failed) in jobs.iter().zip(two_at_a_time(builds)) {
        match failed {
            Some(why) => report.fail(&job.name, &format!("does not compile\n{why}")),
            None => drop(report.program(&job.name, job.command(ctx))?),
        }
    }
    Ok(())
}

impl Tool {
    fn missing(&self, ctx: &Context) -> Result<Option<Missing>> {
        if !self.runner.is_empty() {
            return Ok(missing(&self.runner.iter().copied().take(1).collect::<Vec<_>>()));
        }
        let probe = ctx.folder("ffi")?.join("probe");
        let (cc, flags, source) = (&ctx.cc, self.flags, probe.with_extension("c"));
        std::fs::write(&source, "int main(void) { return 0; }\n")?;
        let works = cmd!(ctx.sh, "env {cc...} {flags...} {source} -o {probe}").works()
            && cmd!(ctx.sh, "{probe}").works();
        let what = format!("{} {} does not work here", cc.join(" "), flags.join(" "));
        Ok((!works).then(|| Missing::new(what, self.get)))
    }
}

impl Job {
    fn new(ctx: &Context, program: Program, under: Under) -> Self {
        let tool = under.tool;
        let name = if tool.name.is_empty() {
            program.name.into()
        } else {
            format!("{}_{}", tool.name, program.name)
        };
        let folder = if tool.flags.is_empty() { "plain" } else { tool.name };
        let binary = ctx.root.join("target/ffi").join(folder).join(program.name);
        Self { name, program, under, binary }
    }

    /// The compilation, unless what it would make is there.
    fn build(&self, ctx: &Context, library: &Library) -> Result<Option<Command>> {
        let mut inputs = crate::context::files(&ctx.root.join("include"), "")?;
        inputs.extend(crate::context::files(&ctx.root.join("ffi-tests"), ".h")?);
        inputs.extend([library.archive.clone(), library.shared.clone()]);
        let Program { source, language, link, .. } = self.program;
        let (compiler, options, source) = match language {
            Language::C => (&ctx.cc, vec!["-std=c11", "-D_GNU_SOURCE", "-pthread"], format!("{source}.c")),
            Language::Cxx(standard) => {
                (&ctx.cxx, vec![standard, "-fno-exceptions", "-fno-rtti"], source.to_owned())
            }
        };
        let source = ctx.root.join("ffi-tests").join(source);
        inputs.push(source.clone());
        let (archive, binary) = (&library.archive, &self.binary);
        std::fs::create_dir_all(binary.parent().context("no folder")?)?;
        if is_fresh(binary, &inputs) {
            return Ok(None);
        }
        let folder = archive.parent().context("no folder")?.display();
        let linked: Vec<String> = match link {
            Link::Archive => vec![archive.display().to_string()],
            Link::Shared => vec![format!("-L{folder}"), "-ltatcell".into(), format!("-Wl,-rpath,{folder}")],
            Link::BesideRust => {
                let other = second_archive(ctx)?.display().to_string();
                vec![archive.display().to_string(), other, "-ldl".into(), "-lm".into()]
            }
        };
        let flags = self.under.tool.flags;
        let common = ["-Iinclude", "-O2", "-g"];
        Ok(Some(
            cmd!(
                ctx.sh,
                "env {compiler...} {options...} {common...} {STRICT...} {flags...} {source} {linked...} -o {binary}"
            )
            .into(),
        ))
    }

    fn command(&self, ctx: &Context) -> Command {
        let arguments = self.under.arguments.unwrap_or(self.program.arguments);
        let mut words = self.under.tool.runner.iter();
        let mut command = match words.next() {
            Some(runner) => Command::new(runner),
            None => Command::new(&self.binary),
        };
        if !self.under.tool.runner.is_empty() {
            command.args(words).arg(&self.binary);
        }
        command.args(arguments).current_dir(&ctx.root);
        command
    }
}

fn second_archive(ctx: &Context) -> Result<PathBuf> {
    let out = ctx.folder("ffi")?.join("libother.a");
    let source = ctx.root.join("ffi-tests/other/lib.rs");
    if !is_fresh(&out, std::slice::from_ref(&source)) {
        let rustc = words("RUSTC", "rustc").join(" ");
        let kind = ["--edition", "2021", "--crate-type", "staticlib", "--crate-name", "other", "-O"];
        cmd!(ctx.sh, "{rustc} {kind...} {source} -o {out}").must()?;
    }
    Ok(out)
}

/// Runs compilations, two at a time; returns why each failed.
fn two_at_a_time(builds: Vec<Option<Command>>) -> Vec<Option<String>> {
    let mut failures: Vec<Option<String>> = builds.iter().map(|_| None).collect();
    let queue = Mutex::new(builds.into_iter().zip(&mut failures));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| loop {
                let next = queue.lock().map(|mut q| q.next());
                let Ok(Some((build, failure))) = next else { return };
                *failure = build.and_then(|b| b.must().err()).map(|e| e.to_string());
            });
        }
    });
    failures
}
