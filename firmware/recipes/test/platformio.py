"""Stand-in of PlatformIO: runs the library's script for a board and prints the folder that it links the archive from.

    platformio.py LIBRARY KEY=VALUE [FLAG...]       KEY as in the board's manifest; FLAGs of compiler and linker
"""
import json
import os
import sys

library = os.path.abspath(sys.argv[1])
board = dict([sys.argv[2].split("=", 1)])
with open(os.path.join(library, "library.json")) as f:
    script = os.path.join(library, json.load(f)["build"]["extraScript"])


class Folder:
    abspath = library

    def srcnode(self):
        return self


class Environment(dict):
    def BoardConfig(self):
        return board

    def Dir(self, _):
        return Folder()

    def Flatten(self, flags):
        return flags

    def Append(self, **more):
        for name, values in more.items():
            self.setdefault(name, []).extend(values)


env = Environment(LINKFLAGS=sys.argv[3:], CCFLAGS=[])
with open(script) as f:
    exec(compile(f.read(), script, "exec"), {"env": env, "Import": lambda _: None, "DefaultEnvironment": lambda: env})
assert env["LIBS"] == ["tatcell"]
print(os.path.relpath(env["LIBPATH"][0], os.path.join(library, "src")))
