# PlatformIO: links the archive of the board's core. SPDX-License-Identifier: MIT OR Apache-2.0
import os

Import("env")  # noqa: F821, by PlatformIO

board = env.BoardConfig()  # noqa: F821
core = board.get("build.cpu", "") or board.get("build.mcu", "")
program = DefaultEnvironment()  # noqa: F821
flags = " ".join(str(flag) for flag in program.Flatten(program.get("LINKFLAGS", []) + program.get("CCFLAGS", [])))
folder = core
if "-mfloat-abi=hard" in flags:
    folder = {
        "cortex-m4": "cortex-m4/fpv4-sp-d16-hard",
        "cortex-m7": "cortex-m7/fpv5-d16-hard",
        "cortex-m33": "cortex-m33/fpv5-sp-d16-hard",
    }.get(core, "none")
path = os.path.join(env.Dir(".").srcnode().abspath, "src", folder)  # noqa: F821
if not os.path.exists(os.path.join(path, "libtatcell.a")):
    raise SystemExit("tatcell: no archive for core '%s'" % folder)
program.Append(LIBPATH=[path], LIBS=["tatcell"])
