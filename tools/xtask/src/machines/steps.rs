//! Single steps of a program in the emulator: where it was, and whether interrupts were masked there.
//!
//! Masked is what lies after `cpsid` and before `msr primask`, on RISC-V after `csrrc` and before `csrs mstatus`
//! (archive `single`), or between the two functions of the firmware (archive `critical`).

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result};
use xshell::cmd;

use crate::binary::members;
use crate::context::Context;
use crate::exec::Run;
use crate::machines::boards::Family;

/// What the steps are compared with: symbols of a program, and its instructions that mask and unmask.
pub struct Code {
    symbols: HashMap<String, u64>,
    masks: HashSet<u64>,
    unmasks: HashSet<u64>,
    /// Where the library lies.
    pub library: Range<u64>,
}

impl Code {
    /// Reads a program.
    pub fn of(ctx: &Context, family: &Family, elf: &Path) -> Result<Self> {
        let symbols = members(elf)?.into_iter().flat_map(|m| m.symbols);
        // The lowest bit of a function's address only says that it is Thumb code.
        let symbols: HashMap<String, u64> = symbols.map(|s| (s.name, s.address & !1)).collect();
        let objdump = family.tool("objdump");
        let text = cmd!(ctx.sh, "{objdump} -d --no-show-raw-insn {elf}").must()?;
        let at = |mnemonic: &str| -> HashSet<u64> {
            let lines = text.lines().filter_map(|l| l.split_once(":\t"));
            let found = lines.filter(|(_, code)| code.starts_with(mnemonic));
            found.filter_map(|(address, _)| u64::from_str_radix(address.trim(), 16).ok()).collect()
        };
        let (masks, unmasks) = (at(family.masks), at(family.unmasks));
        let mut code = Self { masks, unmasks, symbols, library: 0..0 };
        code.library = code.symbol("library_start")?..code.symbol("library_end")?;
        Ok(code)
    }

    /// The address of a symbol that must be there.
    pub fn symbol(&self, name: &str) -> Result<u64> {
        self.symbols.get(name).copied().with_context(|| format!("the program has no {name}"))
    }
}

/// Whether interrupts are masked, along the steps.
pub struct Mask<'a> {
    code: &'a Code,
    enter: Option<u64>,
    exit: Option<u64>,
    masked: bool,
}

impl<'a> Mask<'a> {
    /// At the start of a program they are not.
    pub fn new(code: &'a Code) -> Self {
        let symbol = |name| code.symbols.get(name).copied();
        Self {
            code,
            enter: symbol("tatcell_critical_enter"),
            exit: symbol("tatcell_critical_exit"),
            masked: false,
        }
    }

    /// Takes a step; returns whether it lies in the library and whether its instruction runs masked.
    pub fn step(&mut self, pc: u64) -> (bool, bool) {
        if Some(pc) == self.enter {
            self.masked = true;
        }
        if Some(pc) == self.exit {
            self.masked = false;
        }
        let library = self.code.library.contains(&pc);
        let masked = self.masked;
        if library && self.code.masks.contains(&pc) {
            self.masked = true;
        }
        if library && self.code.unmasks.contains(&pc) {
            self.masked = false;
        }
        (library, masked)
    }

    /// Forgets what was.
    pub fn clear(&mut self) {
        self.masked = false;
    }
}

/// Gives each executed address of a trace to `each`.
///
/// A line of it: `Trace 0: 0x7f51e8000100 [00800400/00001644/00000110/ff000201] reset`.
pub fn each_step(trace: &Path, mut each: impl FnMut(u64)) -> Result<()> {
    let file = File::open(trace).with_context(|| format!("cannot read {}", trace.display()))?;
    for line in BufReader::new(file).lines() {
        let line = line?;
        let Some(fields) = line.strip_prefix("Trace ").and_then(|l| l.split_whitespace().nth(2)) else {
            continue;
        };
        let pc = fields.split('/').nth(1).context("a step without an address")?;
        each(u64::from_str_radix(pc, 16)?);
    }
    Ok(())
}
