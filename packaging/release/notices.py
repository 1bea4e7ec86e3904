"""Prints the licence texts of the crates that a binary contains, from `cargo metadata` on stdin.

A crate without a text of its own is an error unless its licence is one of COMMON, whose text every package of tatcell
ships."""
import json
import pathlib
import sys

COMMON = ('MIT', 'Apache-2.0')


def main():
    data = json.load(sys.stdin)
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
        if not texts and not any(name in spdx for name in COMMON):
            missing.append(f"{package['name']} {package['version']}: {spdx or 'no licence'}")
        for path in texts:
            print(f"{path.name}:\n\n{path.read_text(errors='replace').rstrip()}\n")
    if missing:
        sys.exit('no licence text: ' + '; '.join(missing))


main()
