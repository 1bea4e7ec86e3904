"""Makes the SBOM of a binary say what is in it: sbom.py MANIFEST FEATURES FOLDER < OF_CARGO_CYCLONEDX > SBOM

cargo-cyclonedx lists cargo's whole graph. Here a crate that no build takes is left out, and one that only the compiler
runs has the scope `excluded`. Names of files begin in FOLDER.
"""
import json
import sys

from notices import crates_of


def main():
    manifest, features, folder = sys.argv[1:]
    contained = crates_of(manifest, features, 'normal,no-proc-macro')
    taken = contained | crates_of(manifest, features, 'normal,build')
    bill = json.loads(sys.stdin.read().replace(folder + '/', ''))
    names = {one['bom-ref']: (one['name'], 'v' + one['version']) for one in bill['components']}
    gone = {ref for ref, name in names.items() if name not in taken}
    bill['components'] = [one | {'scope': 'required' if names[one['bom-ref']] in contained else 'excluded'}
                          for one in bill['components'] if one['bom-ref'] not in gone]
    bill['dependencies'] = [one for one in bill['dependencies'] if one['ref'] not in gone]
    for one in bill['dependencies']:
        if 'dependsOn' in one:
            one['dependsOn'] = [ref for ref in one['dependsOn'] if ref not in gone]
    json.dump(bill, sys.stdout, indent=2)
    print()


main()
