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


def metadata(manifest, features):
    """What cargo says of a crate for this machine."""
    host = subprocess.run(('rustc', '-vV'), check=True, stdout=subprocess.PIPE, text=True).stdout
    target = re.search('^host: (.*)', host, re.M).group(1)
    said = subprocess.run((os.environ.get('CARGO', 'cargo'), 'metadata', '--quiet', '--locked', '--format-version', '1',
                           '--manifest-path', manifest, '--filter-platform', target, '--features', features),
                          check=True, stdout=subprocess.PIPE).stdout
    return json.loads(said)


def main():
    data = metadata(sys.argv[1], ','.join(sys.argv[2:]))
    packages = {package['id']: package for package in data['packages']}
    nodes = {node['id']: node for node in data['resolve']['nodes']}
    root = data['resolve']['root'] or data['workspace_default_members'][0]
    # What the binary contains: normal dependencies, and no build script's or procedural macro's.
    seen, todo = set(), [root]
    while todo:
        at = todo.pop()
        if at in seen or any('proc-macro' in target['kind'] for target in packages[at]['targets']):
            continue
        seen.add(at)
        for dep in nodes[at]['deps']:
            if any(kind['kind'] is None for kind in dep['dep_kinds']):
                todo.append(dep['pkg'])
    missing = []
    for package in sorted((packages[at] for at in seen), key=lambda one: (one['name'], one['version'])):
        if package['source'] is None:
            continue
        folder = pathlib.Path(package['manifest_path']).parent
        texts = sorted(path for path in folder.iterdir()
                       if path.is_file() and path.name.upper().startswith(('LICENSE', 'LICENCE', 'COPYING', 'NOTICE')))
        spdx = package['license'] or ''
        print(f"{'=' * 80}\n{package['name']} {package['version']}: {spdx}\n")
        if not texts and not is_common(spdx):
            missing.append(f"{package['name']} {package['version']}: {spdx or 'no licence'}")
        for path in texts:
            print(f"{path.name}:\n\n{path.read_text(errors='replace').rstrip()}\n")
    if missing:
        sys.exit('no licence text: ' + '; '.join(missing))


if __name__ == '__main__':
    main()
