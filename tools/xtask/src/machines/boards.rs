//! Every machine that is not this one, in one table: bare targets, the boards of QEMU, and hosts.

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
    /// The instructions that mask interrupts in the archive `single`, as objdump begins them (csrrc or csrrci).
    pub masks: &'static str,
    /// The instructions that let them in again.
    pub unmasks: &'static str,
}

const ARM: Family = Family {
    prefix: "arm-none-eabi-",
    emulation: &[],
    emulator: "qemu-system-arm",
    start: "board_arm.c",
    script: "arm.ld",
    masks: "cpsid",
    unmasks: "msr",
};
const RISCV: Family = Family {
    prefix: "riscv64-unknown-elf-",
    emulation: &["-m", "elf32lriscv"],
    emulator: "qemu-system-riscv32",
    start: "board_rv32.c",
    script: "rv32.ld",
    masks: "csrrc",
    unmasks: "csrs\tmstatus",
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
/// A tick of its timer is 100 ns: an instruction takes longer, so that interrupts reach each of them.
const RV32: Board = Board { machine: &VIRT, shift: 7, exact: true, traced: true, measured: true, ..BOARD };

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
    Board { name: "rv32imc", cpu: "rv32imc", target: &IMC, ..RV32 },
    Board { name: "rv32imac", cpu: "rv32imac", target: &IMAC, ..RV32 },
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
