"""Runs select_archive.py of the library with a stand-in of PlatformIO's environment. Argument: the library's folder."""
import json
import os
import sys

library = os.path.abspath(sys.argv[1])
with open(os.path.join(library, "library.json")) as f:
    script = os.path.join(library, json.load(f)["build"]["extraScript"])


class Folder:
    abspath = library

    def srcnode(self):
        return self


class Environment(dict):
    def __init__(self, board, flags):
        super().__init__(LINKFLAGS=flags, CCFLAGS=[])
        self.board = board

    def BoardConfig(self):
        return self.board

    def Dir(self, _):
        return Folder()

    def Flatten(self, flags):
        return flags

    def Append(self, **more):
        for name, values in more.items():
            self.setdefault(name, []).extend(values)


def chosen(board, flags=()):
    env = Environment(board, list(flags))
    scope = {"env": env, "Import": lambda _: None, "DefaultEnvironment": lambda: env}
    with open(script) as f:
        exec(compile(f.read(), script, "exec"), scope)
    assert env["LIBS"] == ["tatcell"]
    return os.path.relpath(env["LIBPATH"][0], os.path.join(library, "src"))


assert chosen({"build.cpu": "cortex-m0plus"}) == "cortex-m0plus"
assert chosen({"build.cpu": "cortex-m4"}) == "cortex-m4"
assert chosen({"build.cpu": "cortex-m4"}, ["-mfloat-abi=hard"]) == "cortex-m4/fpv4-sp-d16-hard"
assert chosen({"build.mcu": "esp32c3"}) == "esp32c3"
try:
    chosen({"build.mcu": "atmega328p"})
except SystemExit as e:
    assert "no archive" in str(e)
else:
    raise AssertionError("an AVR must be refused")
print("archives are chosen by core and float ABI")
