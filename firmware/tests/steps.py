"""Reads single steps of a program from QEMU's log: which instructions ran, and whether interrupts were masked there.

    steps.py reached PREFIX ELF LOG REPORT   every instruction of the library that could be interrupted was: one that ran
                                             unmasked after `window` and before `timer_stop`, and REPORT has `hit N`
    steps.py costs PREFIX ELF LOG REPORT     a line for each `case NAME KIND stack BYTES` of REPORT: NAME KIND, then the
                                             instructions of the library, those of them that ran masked, bytes of stack

PREFIX is that of nm and objdump. Masked is what lies after `cpsid` and before `msr primask`, on RISC-V after `csrrc` and
before `csrs mstatus` (archive `single`), or between the two functions of the firmware (archive `critical`).
"""

import re
import subprocess
import sys

what, prefix, elf, log, report = sys.argv[1:]


def run(tool, *options):
    return subprocess.run([prefix + tool, *options, elf], check=True, stdout=subprocess.PIPE, text=True).stdout


# The lowest bit of a function's address only says that it is Thumb code.
symbols = {words[2]: int(words[0], 16) & ~1 for words in map(str.split, run("nm").splitlines()) if len(words) == 3}
library = range(symbols["library_start"], symbols["library_end"])
mask, unmask = ("csrrc", "csrs\tmstatus") if prefix.startswith("riscv") else ("cpsid", "msr")
code = [line.split(":\t", 1) for line in run("objdump", "-d", "--no-show-raw-insn").splitlines() if ":\t" in line]
masks = {int(address, 16) for address, text in code if text.startswith(mask)}
unmasks = {int(address, 16) for address, text in code if text.startswith(unmask)}
enter, leave = symbols.get("tatcell_critical_enter"), symbols.get("tatcell_critical_exit")


def steps(begin):
    """Gives each address, and whether its instruction ran masked; nothing is masked at `begin`."""
    masked = False
    # Trace 0: 0x7f51e8000100 [00800400/00001644/00000110/ff000201] reset
    for match in re.finditer(r"^Trace \d+: \S+ \[\w+/(\w+)/", open(log).read(), re.M):
        pc = int(match[1], 16)
        masked = pc not in (begin, leave) and (masked or pc == enter)
        yield pc, masked
        if pc in library:
            masked = pc in masks or masked and pc not in unmasks


if what == "reached":
    could, started = set(), False
    for pc, masked in steps(None):
        started = (started or pc == symbols["window"]) and pc != symbols["timer_stop"]
        if started and not masked and pc in library:
            could.add((pc - library.start) // 2)
    did = {int(line.split()[1]) for line in open(report) if line.startswith("hit ")}
    missed = sorted(could - did)
    if missed or not could:
        sys.exit(f"of {len(could)} instructions that can be interrupted, no interrupt came at halfwords {missed}")
else:
    counts, inside = [], False
    for pc, masked in steps(symbols["mark_begin"]):
        if pc == symbols["mark_begin"]:
            inside = True
            counts.append([0, 0])
        inside = inside and pc != symbols["mark_end"]
        if inside and pc in library:
            counts[-1][0] += 1
            counts[-1][1] += masked
    cases = [line.split() for line in open(report) if line.startswith("case ")]
    assert len(cases) == len(counts) > 0, f"{len(cases)} cases, {len(counts)} marks"
    for (_, name, kind, _, stack, *_), (instructions, masked) in zip(cases, counts):
        print(name, kind, instructions, masked, stack)
