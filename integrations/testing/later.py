"""A clock that a test moves on, for a server that it starts: CLOCK_MONOTONIC alone."""

import os
import pathlib
import shutil
import subprocess

from claims import Skip

SECOND = 10 ** 9
# Just before words of nanoseconds wrap, when old debts would count once more; and long after.
SILENCES = [2 ** 43 - SECOND, 100 * 86400 * SECOND, 1000 * 2 ** 43 - SECOND]


class Later:
    def __init__(self, build):
        if not shutil.which("cc"):
            raise Skip("no compiler: apt-get install gcc")
        build.mkdir(parents=True, exist_ok=True)
        library, self.file = build / "later.so", build / "later"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library,
                        pathlib.Path(__file__).with_suffix(".c")], check=True)
        self.now = 0
        self.move(0)
        self.environment = {**os.environ, "LD_PRELOAD": str(library.resolve()), "TATCELL_LATER": str(self.file)}

    def move(self, ticks):
        self.now += ticks
        new = self.file.with_suffix(".new")
        new.write_text(str(self.now))
        new.replace(self.file)
