//! Every machine that is not this one, in one table: bare targets, the boards of QEMU, and hosts.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::context::Context;
use crate::exec::{Done, Run};
use crate::tools::{self, Missing};

/// A core family: one C compiler, one emulator.
pub struct Family {
    /// Prefix of gcc and binutils.
    pub prefix: &'static str,
    /// The option that chooses this core for the linker.
    pub emulation: &'static [&'static str],
    /// The emulator of whole machines.
    pub emulator: &'static str,
    /// The file of examples/firmware that starts the program.
    pub start: &'static str,
    /// The linker script of examples/firmware.
    pub script: &'static str,
}

const ARM: Family = Family {
    prefix: "arm-none-eabi-",
    emulation: &[],
    emulator: "qemu-system-arm",
    start: "board_arm.c",
    script: "arm.ld",
};
const RISCV: Family = Family {
    prefix: "riscv64-unknown-elf-",
    emulation: &["-m", "elf32lriscv"],
    emulator: "qemu-system-riscv32",
    start: "board_rv32.c",
    script: "rv32.ld",
};

/// A target of Rust without an operating system.
pub struct Bare {
    /// Rust's name of it.
    pub triple: &'static str,
    /// Compilers and emulator.
    pub family: &'static Family,
    /// The optimisation that measures best there, see `budget.rs`.
    pub level: &'static str,
    /// Flags of gcc for this core.
    pub arch: &'static [&'static str],
}

const fn bare(
    triple: &'static str,
    family: &'static Family,
    level: &'static str,
    arch: &'static [&'static str],
) -> Bare {
    Bare { triple, family, level, arch }
}

const V6M: Bare = bare("thumbv6m-none-eabi", &ARM, "z", &["-mthumb", "-mcpu=cortex-m0"]);
const V7M: Bare = bare("thumbv7m-none-eabi", &ARM, "s", &["-mthumb", "-mcpu=cortex-m3"]);
const V7EM: Bare = bare(
    "thumbv7em-none-eabihf",
    &ARM,
    "s",
    &["-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
);
const IMC: Bare = bare("riscv32imc-unknown-none-elf", &RISCV, "s", &["-march=rv32imc_zicsr", "-mabi=ilp32"]);
const IMAC: Bare =
    bare("riscv32imac-unknown-none-elf", &RISCV, "s", &["-march=rv32imac_zicsr", "-mabi=ilp32"]);

/// Targets for which archives are built.
pub const TARGETS: [&Bare; 5] = [&V6M, &V7M, &V7EM, &IMC, &IMAC];

/// A board of QEMU.
pub struct Board {
    /// Its name in the tests and in examples/firmware/Makefile.
    pub name: &'static str,
    /// Its name for QEMU, with the options of its core.
    pub machine: &'static [&'static str],
    /// Its core, as the recipes call it.
    pub cpu: &'static str,
    /// What it runs.
    pub target: &'static Bare,
    /// An instruction takes 2^shift ns, near to a tick of its clock.
    pub shift: u32,
    /// Whether exactness under interrupts is tested there.
    pub exact: bool,
    /// Whether its emulator shows every step to the end of a program, for instructions that interrupts must reach.
    pub traced: bool,
    /// Whether code size, instructions and stack are measured there.
    pub measured: bool,
    /// Features of the Rust example there; None: it has no timer of SysTick's kind.
    pub rust: Option<&'static [&'static str]>,
}

const BOARD: Board = Board {
    name: "",
    machine: &[],
    cpu: "",
    target: &V7M,
    shift: 6,
    exact: false,
    traced: false,
    measured: false,
    rust: None,
};
const VIRT: [&str; 5] = ["virt", "-cpu", "rv32", "-bios", "none"];

/// Every board.
pub const BOARDS: &[Board] = &[
    Board {
        name: "microbit",
        machine: &["microbit"],
        cpu: "cortex-m0",
        target: &V6M,
        exact: true,
        traced: true,
        measured: true,
        rust: Some(&[]),
        ..BOARD
    },
    Board {
        name: "lm3s6965evb",
        machine: &["lm3s6965evb"],
        cpu: "cortex-m3",
        exact: true,
        traced: true,
        measured: true,
        rust: Some(&["--features", "lm3s6965"]),
        ..BOARD
    },
    Board {
        name: "mps2-an385",
        machine: &["mps2-an385"],
        cpu: "cortex-m3",
        shift: 5,
        exact: true,
        rust: Some(&[]),
        ..BOARD
    },
    Board {
        name: "mps2-an386",
        machine: &["mps2-an386"],
        cpu: "cortex-m4",
        target: &V7EM,
        shift: 5,
        rust: Some(&[]),
        ..BOARD
    },
    Board { name: "rv32imc", machine: &VIRT, cpu: "rv32imc", target: &IMC, ..BOARD },
    Board { name: "rv32imac", machine: &VIRT, cpu: "rv32imac", target: &IMAC, ..BOARD },
];

/// How interrupts are kept out of a section: the archives, and the functions that each needs of the firmware.
pub const CHOICES: [Choice; 2] = [
    Choice { name: "single", feature: "single-core", needs: &[] },
    Choice {
        name: "critical",
        feature: "critical-section-c",
        needs: &["tatcell_critical_enter", "tatcell_critical_exit"],
    },
];

/// One way to keep interrupts out.
pub struct Choice {
    /// Its name in that of the archive.
    pub name: &'static str,
    /// The feature of the crate.
    pub feature: &'static str,
    /// Functions that the firmware writes.
    pub needs: &'static [&'static str],
}

/// Another host: its programs run here in an emulator of user programs.
pub struct Host {
    /// Rust's name of it.
    pub triple: &'static str,
    /// Prefix of gcc, and of the C library's folder below /usr.
    pub prefix: &'static str,
    /// The emulator.
    pub emulator: &'static str,
    /// What it shows.
    pub what: &'static str,
    /// Features that the crate's tests need there.
    pub features: &'static str,
}

const fn host(
    triple: &'static str,
    prefix: &'static str,
    emulator: &'static str,
    what: &'static str,
) -> Host {
    Host { triple, prefix, emulator, what, features: "std" }
}

/// Every other host.
pub const HOSTS: &[Host] = &[
    host("s390x-unknown-linux-gnu", "s390x-linux-gnu", "qemu-s390x-static", "64-bit_big_endian"),
    Host {
        // The lock that a hosted system without 64-bit atomics may use.
        features: "std,fallback",
        ..host(
            "powerpc-unknown-linux-gnu",
            "powerpc-linux-gnu",
            "qemu-ppc-static",
            "32-bit_big_endian_no_64-bit_atomics",
        )
    },
    host("armv7-unknown-linux-gnueabihf", "arm-linux-gnueabihf", "qemu-arm-static", "32-bit_LL/SC"),
    host("aarch64-unknown-linux-gnu", "aarch64-linux-gnu", "qemu-aarch64-static", "64-bit_weakly_ordered"),
    host("i686-unknown-linux-gnu", "i686-linux-gnu", "qemu-i386-static", "32-bit_x86"),
];

/// The first word of a triple.
pub fn short(triple: &str) -> &str {
    triple.split('-').next().unwrap_or(triple)
}

/// The last board with this core.
pub fn with_cpu(cpu: &str) -> Option<&'static Board> {
    BOARDS.iter().rfind(|b| cpu.starts_with(b.cpu))
}

impl Family {
    /// A tool of this family.
    pub fn tool(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// What is missing to build and run programs.
    pub fn missing(&self) -> Option<Missing> {
        tools::missing(&["make", self.emulator, &self.tool("gcc")])
    }
}

/// How long a program may run.
const PATIENCE: Duration = Duration::from_secs(120);

impl Board {
    /// The name that QEMU has for it.
    pub fn machine_name(&self) -> &str {
        self.machine.first().copied().unwrap_or(self.name)
    }

    /// Runs a program; its exit status is the program's. Instructions are counted where `shift` says how long each takes,
    /// so that a timer interrupt comes at the same places on any host.
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
    pub fn build(&self, ctx: &Context, program: &Program<'_>) -> Result<std::path::PathBuf> {
        let Program { name, source, choice, defines, out, library } = program;
        let mut make = crate::context::command(&ctx.make)?;
        make.args(["--no-print-directory", "-s", "-C", "examples/firmware"]).current_dir(&ctx.root);
        make.arg(format!("BOARD={}", self.name)).arg(format!("CHOICE={choice}"));
        make.arg(format!("PROGRAM={name}")).arg(format!("OUT={}", out.display()));
        make.arg(format!("SOURCE={}", ctx.root.join(source).display())).arg(format!("DEFINES={defines}"));
        if let Some(library) = library {
            make.arg(format!("LIB={}", library.display()));
        }
        make.must()?;
        Ok(out.join(format!("{name}-{}-{choice}.elf", self.name)))
    }
}

/// A program for a board.
pub struct Program<'a> {
    /// Its name in that of the file.
    pub name: &'a str,
    /// Its source, from the root.
    pub source: &'a Path,
    /// The choice of section.
    pub choice: &'a str,
    /// Flags that choose among its variants.
    pub defines: &'a str,
    /// Where it is put.
    pub out: &'a Path,
    /// Another archive than that of `make firmware`.
    pub library: Option<&'a Path>,
}
