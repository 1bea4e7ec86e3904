"""Parses the module's Kconfig as Zephyr would see it, and its module.yml. Argument: the module's folder."""
import os
import sys
import tempfile

import kconfiglib
import yaml

module = os.path.abspath(sys.argv[1])
with open(os.path.join(module, "zephyr/module.yml")) as f:
    build = yaml.safe_load(f)["build"]
assert os.path.exists(os.path.join(module, build["cmake"], "CMakeLists.txt"))


def config(symbols, wanted):
    """Symbols that the module ends up with on a core that has `symbols`."""
    lines = ["mainmenu \"test\""]
    for name in ("CPU_CORTEX_M", "RISCV", "64BIT", "SMP"):
        lines += [f"config {name}", "\tbool", f"\tdefault {'y' if name in symbols else 'n'}"]
    lines.append(f'source "{module}/{build["kconfig"]}"')
    with tempfile.NamedTemporaryFile("w", suffix=".kconfig") as f:
        f.write("\n".join(lines) + "\n")
        f.flush()
        kconf = kconfiglib.Kconfig(f.name, warn_to_stderr=False)
    for name in wanted:
        kconf.syms[name].set_value(2)
    assert not kconf.warnings, kconf.warnings
    return {n: kconf.syms[n].str_value for n in ("TATCELL", "TATCELL_CRITICAL", "TATCELL_SINGLE")}


off = {"TATCELL": "n", "TATCELL_CRITICAL": "n", "TATCELL_SINGLE": "n"}
assert config({"CPU_CORTEX_M"}, []) == off
assert config({"CPU_CORTEX_M"}, ["TATCELL"]) == {"TATCELL": "y", "TATCELL_CRITICAL": "y", "TATCELL_SINGLE": "n"}
single = {"TATCELL": "y", "TATCELL_CRITICAL": "n", "TATCELL_SINGLE": "y"}
assert config({"RISCV"}, ["TATCELL", "TATCELL_SINGLE"]) == single
# On several cores masking is not enough, and 64-bit cores use the hosted library.
assert config({"RISCV", "SMP"}, ["TATCELL", "TATCELL_SINGLE"])["TATCELL_SINGLE"] == "n"
assert config({"RISCV", "64BIT"}, ["TATCELL"]) == off
print("module.yml and Kconfig are as documented")
