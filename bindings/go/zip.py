"""Packs the module as the module proxy serves it: python3 bindings/go/zip.py FILE VERSION

The same bytes come from the same files: the time of each is that of SOURCE_DATE_EPOCH, and their order is that of their
names. SPDX-License-Identifier: MIT OR Apache-2.0
"""

import os
import pathlib
import sys
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# Modules of their own, and what only the tests of the checkout use.
APART = {"compare", "oracle", "Makefile", "packages", "peers.packages", "peers.sh", "test.sh", "zip.py"}

target, version = sys.argv[1:]
module = (HERE / "go.mod").read_text().split()[1]
when = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
files = {path.relative_to(HERE).as_posix(): path for path in HERE.rglob("*") if path.is_file()}
files = {name: path for name, path in files.items() if name.split("/")[0] not in APART}
files |= {name: HERE.parent.parent / name for name in ("LICENSE-MIT", "LICENSE-APACHE")}
with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
    for name in sorted(files):
        entry = zipfile.ZipInfo(f"{module}@{version}/{name}", when)
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
        archive.writestr(entry, files[name].read_bytes())
