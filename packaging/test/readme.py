"""Runs the programs of a page, each by itself: readme.py PAGE. SPDX-License-Identifier: MIT OR Apache-2.0

A program is a block of Python. If a block of text follows, the program must print it.
"""

import pathlib
import re
import subprocess
import sys

page = pathlib.Path(sys.argv[1]).read_text()
blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", page, re.MULTILINE | re.DOTALL)
for number, (program, wanted) in enumerate(blocks, 1):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    if done.returncode or (wanted and done.stdout != wanted):
        sys.exit(f"program {number} printed:\n{done.stdout}{done.stderr}\nand should print:\n{wanted}")
if len(blocks) < 4:
    sys.exit(f"the page has {len(blocks)} programs")
