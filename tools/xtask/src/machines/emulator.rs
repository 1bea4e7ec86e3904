//! Builds programs for a board and runs them in its emulator.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::context::{command, Context};
use crate::exec::{Done, Run};
use crate::machines::boards::Board;

/// How long a program may run.
const PATIENCE: Duration = Duration::from_secs(120);

impl Board {
    /// The name that QEMU has for it.
    pub fn machine_name(&self) -> &str {
        self.machine.first().copied().unwrap_or(self.name)
    }

    /// Runs a program; its exit status is the program's. Instructions are counted where `shift` says how long each
    /// takes, so that a timer interrupt comes at the same places on any host.
    pub fn run(&self, elf: &Path, shift: Option<u32>) -> Result<Done> {
        let mut command = self.emulator(elf);
        if let Some(shift) = shift {
            command.args(["-icount", &format!("shift={shift},sleep=off")]);
        }
        let mut done = command.done_within(PATIENCE)?;
        // The emulator's own remarks are no answer of the program.
        let remark = |l: &&str| !l.starts_with("Timer with period zero") && !l.starts_with("qemu");
        done.all = done.all.lines().filter(remark).map(|l| format!("{l}\n")).collect();
        Ok(done)
    }

    /// As [`run`](Self::run), with the bytes of its standard output in a file.
    pub fn run_into(&self, elf: &Path, shift: u32, into: &Path) -> Result<Done> {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" > \"$0\""]).arg(into);
        let emulator = self.emulator(elf);
        command.arg(emulator.get_program()).args(emulator.get_args());
        command.args(["-icount", &format!("shift={shift},sleep=off")]);
        command.done_within(PATIENCE)
    }

    /// Runs a program and writes each executed instruction into a file.
    pub fn trace(&self, elf: &Path, into: &Path) -> Result<Done> {
        let mut command = self.emulator(elf);
        command.args(["-singlestep", "-d", "exec,nochain", "-D"]).arg(into);
        command.done_within(PATIENCE)
    }

    fn emulator(&self, elf: &Path) -> Command {
        let mut command = Command::new(self.target.family.emulator);
        command.arg("-machine").args(self.machine);
        command.args(["-nographic", "-monitor", "none", "-serial", "null"]);
        command.args(["-semihosting-config", "enable=on,target=native", "-kernel"]).arg(elf);
        command
    }

    /// Builds a program with examples/firmware/Makefile; returns the file.
    pub fn build(&self, ctx: &Context, program: &Program<'_>) -> Result<PathBuf> {
        let Program { name, object, source, choice, defines, link, out } = program;
        let mut make = command(&ctx.make)?;
        make.args(["--no-print-directory", "-s", "-C", "examples/firmware"]).current_dir(&ctx.root);
        make.arg(format!("BOARD={}", self.name)).arg(format!("CHOICE={choice}"));
        make.arg(format!("PROGRAM={name}")).arg(format!("OUT={}", out.display()));
        make.arg(format!("OBJECT={}", if object.is_empty() { name } else { object }))
            .arg(format!("LINK={link}"));
        make.arg(format!("SOURCE={}", ctx.root.join(source).display())).arg(format!("DEFINES={defines}"));
        make.must()?;
        Ok(out.join(format!("{name}-{}-{choice}.elf", self.name)))
    }
}

/// A program for a board.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// Its name in that of the file.
    pub name: &'a str,
    /// The name of its object where that is another's too.
    pub object: &'a str,
    /// Its source, from the root.
    pub source: &'a Path,
    /// The choice of section.
    pub choice: &'a str,
    /// Flags that choose among its variants.
    pub defines: &'a str,
    /// Flags of the linker.
    pub link: &'a str,
    /// Where it is put.
    pub out: &'a Path,
}

impl<'a> Program<'a> {
    /// A program as it is in the archive `single`.
    pub const fn new(name: &'a str, source: &'a Path, out: &'a Path) -> Self {
        Self { name, object: "", source, choice: "single", defines: "", link: "", out }
    }
}
