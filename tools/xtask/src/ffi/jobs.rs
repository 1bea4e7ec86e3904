//! Builds the programs of `programs.rs` into target/ffi and runs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use xshell::cmd;

use super::programs::{
    Language, Link, Program, Tool, Under, ASAN, FOREIGN, MEMCHECK, PLAIN, PROGRAMS, SSE2, TSAN,
};
use crate::context::{files, is_fresh, words, Context, STRICT};
use crate::exec::Run;
use crate::library::Library;
use crate::report::Report;
use crate::tools::{missing, Missing};

/// A run of a program under a tool.
struct Job {
    name: String,
    program: Program,
    under: Under,
    binary: PathBuf,
}

/// Builds and runs them all.
pub fn run(ctx: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let dpdk = cmd!(ctx.sh, "pkg-config --exists libdpdk").works();
    let here = |program: &&Program| dpdk || !matches!(program.link, Link::Dpdk);
    for program in PROGRAMS.iter().filter(|program| !here(program)) {
        report.skip(program.name, &Missing::new("DPDK is not installed", "apt-get install libdpdk-dev"));
    }
    let mut jobs: Vec<Job> = PROGRAMS.iter().filter(here).map(|p| Job::new(ctx, *p, PLAIN)).collect();
    for Under { tool, .. } in [ASAN, TSAN, MEMCHECK, SSE2] {
        if let Some(missing) = tool.missing(ctx)? {
            report.skip(tool.name, &missing);
            continue;
        }
        for program in PROGRAMS {
            let wanted = program.under.iter().filter(|u| u.tool.name == tool.name);
            jobs.extend(wanted.map(|u| Job::new(ctx, *program, *u)));
        }
    }
    // Memcheck and the emulator run the plain programs: they are built once.
    let mut builds = BTreeMap::new();
    for job in &jobs {
        if !builds.contains_key(&job.binary) {
            builds.insert(job.binary.clone(), job.build(ctx, library)?);
        }
    }
    let failures = two_at_a_time(builds);
    for job in &jobs {
        match failures.get(&job.binary) {
            Some(Err(why)) => report.fail(
                &job.name,
                &format!(
                    "does not compile
{why:#}"
                ),
            ),
            _ => drop(report.program(&job.name, job.command(ctx))?),
        }
    }
    for (name, [language, program]) in FOREIGN {
        if let Some(missing) = missing(&[language]) {
            report.skip(name, &missing);
            continue;
        }
        let mut command = Command::new(if *language == "python3" { python(ctx) } else { language });
        command.arg(program).arg(&library.shared).current_dir(&ctx.root);
        report.program(name, command)?;
    }
    Ok(())
}

/// Builds and runs one program with other arguments than every day's.
pub fn one(
    ctx: &Context,
    report: &mut Report,
    library: &Library,
    name: &str,
    arguments: &[&str],
) -> Result<()> {
    let program = PROGRAMS.iter().find(|p| p.name == name).context("no such program")?;
    let job = Job::new(ctx, *program, PLAIN);
    job.build(ctx, library)?.run(&job.binary)?;
    let mut command = Command::new(&job.binary);
    command.args(arguments).current_dir(&ctx.root);
    report.program(&job.name, command).map(drop)
}

/// A program that is built with an archive alone, and its arguments.
pub struct Alone {
    pub name: &'static str,
    pub binary: PathBuf,
    pub arguments: &'static [&'static str],
}

/// Builds the programs in C, and those in C++ by the newer standard, with another archive, into this folder.
pub fn with_archive(ctx: &Context, archive: &Path, folder: &Path) -> Result<Vec<Alone>> {
    let path = || archive.to_owned();
    let library = Library { archive: path(), shared: path(), object: path(), host_object: path() };
    let (mut builds, mut alone) = (BTreeMap::new(), Vec::new());
    for program in PROGRAMS {
        if !matches!(program.link, Link::Archive) || matches!(program.language, Language::Cxx("-std=c++17")) {
            continue;
        }
        let Program { name, arguments, .. } = *program;
        let binary = folder.join(name);
        let job = Job { binary: binary.clone(), ..Job::new(ctx, *program, PLAIN) };
        let mut build = job.build(ctx, &library)?;
        // What a whole archive of Rust needs beside the C library.
        build.command.args(["-ldl", "-lm"]);
        builds.insert(binary.clone(), build);
        alone.push(Alone { name, binary, arguments });
    }
    two_at_a_time(builds).into_values().collect::<Result<()>>()?;
    Ok(alone)
}

/// The Python that has cffi: another one may come before the system's. Without any, the first says so.
fn python(ctx: &Context) -> &'static str {
    let found = ["python3", "/usr/bin/python3"];
    found.into_iter().find(|python| cmd!(ctx.sh, "{python} -c 'import cffi'").works()).unwrap_or("python3")
}

impl Tool {
    fn missing(&self, ctx: &Context) -> Result<Option<Missing>> {
        if self.name == SSE2.tool.name && !cfg!(target_arch = "x86_64") {
            return Ok(Some(Missing::new("this machine is no x86-64 one", self.get)));
        }
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

    /// The compilation.
    fn build(&self, ctx: &Context, library: &Library) -> Result<Build> {
        let Program { source, language, link, .. } = self.program;
        let (compiler, options, source) = match language {
            Language::C => (&ctx.cc, vec!["-std=c11", "-D_GNU_SOURCE", "-pthread"], format!("{source}.c")),
            Language::Cxx(standard) => {
                (&ctx.cxx, vec![standard, "-fno-exceptions", "-fno-rtti"], source.to_owned())
            }
        };
        let source = ctx.root.join("ffi-tests").join(source);
        let mut inputs = files(&ctx.root.join("include"), "")?;
        inputs.extend(files(&ctx.root.join("ffi-tests"), ".h")?);
        inputs.extend([library.archive.clone(), library.shared.clone(), source.clone()]);
        let (archive, binary) = (&library.archive, &self.binary);
        let folder = archive.parent().context("no folder")?.display();
        let linked: Vec<String> = match link {
            Link::Archive => vec![archive.display().to_string()],
            Link::Shared => vec![format!("-L{folder}"), "-ltatcell".into(), format!("-Wl,-rpath,{folder}")],
            Link::BesideRust => {
                let other = second_archive(ctx)?.display().to_string();
                vec![archive.display().to_string(), other, "-ldl".into(), "-lm".into()]
            }
            Link::Dpdk => {
                // Its headers are not held to our warnings.
                let flags = cmd!(ctx.sh, "pkg-config --cflags libdpdk").must()?.replace("-I", "-isystem");
                let mut linked: Vec<String> = flags.split_whitespace().map(String::from).collect();
                linked.extend([archive.display().to_string(), "-l:librte_meter.a".into()]);
                linked
            }
        };
        let flags = self.under.tool.flags;
        let common = ["-Iinclude", "-O2", "-g"];
        let command = cmd!(
            ctx.sh,
            "env {compiler...} {options...} {common...} {STRICT...} {flags...} {source} {linked...} -o {binary}"
        );
        Ok(Build { command: command.into(), inputs })
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

/// A compilation and what it reads.
struct Build {
    command: Command,
    inputs: Vec<PathBuf>,
}

impl Build {
    /// Runs it, unless what it makes is there, made by the same command.
    fn run(mut self, binary: &Path) -> Result<()> {
        let stamp = binary.with_extension("command");
        let words = format!("{:?}", self.command);
        let same = std::fs::read_to_string(&stamp).is_ok_and(|s| s == words);
        if same && is_fresh(binary, &self.inputs) {
            return Ok(());
        }
        std::fs::create_dir_all(binary.parent().context("no folder")?)?;
        (&mut self.command).must()?;
        std::fs::write(stamp, words).map_err(Into::into)
    }
}

/// Runs compilations, two at a time; returns how each ended.
fn two_at_a_time(builds: BTreeMap<PathBuf, Build>) -> BTreeMap<PathBuf, Result<()>> {
    let queue = Mutex::new(builds.into_iter());
    let ended = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| loop {
                let next = queue.lock().map(|mut q| q.next());
                let Ok(Some((binary, build))) = next else { return };
                let result = build.run(&binary);
                if let Ok(mut ended) = ended.lock() {
                    ended.insert(binary, result);
                }
            });
        }
    });
    ended.into_inner().unwrap_or_default()
}
