"""Prints the licence texts of the crates that a binary contains: notices.py MANIFEST [FEATURES]

A crate without a text of its own is an error unless its licence is one of COMMON, whose text every package of tatcell
ships."""
import json
import os
import pathlib
import re
import subprocess
import sys

COMMON = ('MIT', 'Apache-2.0')


def is_common(licence):
    """Whether the texts of COMMON are enough for an SPDX expression: one side of OR, and both sides of AND.

    >>> [is_common(one) for one in ('MIT', 'Zlib OR MIT', 'Zlib/MIT', '(Zlib OR MIT) AND Apache-2.0')]
    [True, True, True, True]
    >>> [is_common(one) for one in ('MIT-0', 'SUMMIT', 'MIT AND Zlib', 'Apache-2.0 WITH LLVM-exception', '')]
    [False, False, False, False, False]
    """
    words = re.findall(r'[()]|[^\s()]+', licence.replace('/', ' OR '))

    def one():
        word = words.pop(0) if words else ''
        if word == '(':
            inner = either()
            words[:1] = []
            return inner
        exception = words[:1] == ['WITH']
        words[:2 * exception] = []
        return word in COMMON and not exception

    def both():
        common = one()
        while words[:1] == ['AND']:
            words.pop(0)
            common = one() and common
        return common

    def either():
        common = both()
        while words[:1] == ['OR']:
            words.pop(0)
            common = both() or common
        return common

    return either()


def asked(command, manifest, features, *flags):
    """What a command of cargo says of a crate."""
    return subprocess.run((os.environ.get('CARGO', 'cargo'), command, '--quiet', '--locked', '--manifest-path', manifest,
                           '--features', features, *flags), check=True, stdout=subprocess.PIPE, text=True).stdout


def crates_of(manifest, features, edges):
    """Name and version of the crates that a build for this machine takes by these edges of its graph.

    The graph of `cargo metadata` also has optional crates that no build takes.
    """
    tree = asked('tree', manifest, features, '--edges', edges, '--prefix', 'none')
    return {tuple(line.split()[:2]) for line in tree.splitlines()}


def main():
    manifest, features = sys.argv[1], ','.join(sys.argv[2:])
    # What the binary contains: normal dependencies, and no build script's or procedural macro's.
    crates = crates_of(manifest, features, 'normal,no-proc-macro')
    data = json.loads(asked('metadata', manifest, features, '--format-version', '1'))
    missing = []
    for package in sorted(data['packages'], key=lambda one: (one['name'], one['version'])):
        if package['source'] is None or (package['name'], 'v' + package['version']) not in crates:
            continue
        folder = pathlib.Path(package['manifest_path']).parent
        # Also those of code that a crate has from elsewhere, in a folder of its own. zstd offers the GPL (COPYING) next to
        # its LICENSE: the latter is taken.
        texts = sorted(path for path in folder.rglob('*')
                       if path.is_file() and path.name.upper().startswith(('LICENSE', 'LICENCE', 'COPYING', 'NOTICE'))
                       and not (path.name == 'COPYING' and (path.parent / 'LICENSE').is_file()))
        spdx = package['license'] or ''
        print(f"{'=' * 80}\n{package['name']} {package['version']}: {spdx}\n")
        if not texts and not is_common(spdx):
            missing.append(f"{package['name']} {package['version']}: {spdx or 'no licence'}")
        for path in texts:
            print(f"{path.relative_to(folder)}:\n\n{path.read_text(errors='replace').rstrip()}\n")
    if missing:
        sys.exit('no licence text: ' + '; '.join(missing))


if __name__ == '__main__':
    main()
