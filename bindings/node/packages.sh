#!/bin/sh
# Installs the packages of test/ or compare/ into a folder of the same name: bindings/node/packages.sh OUT NAME
# It keeps what is there as long as the lock file is the same.
set -eu
cd "$(dirname "$0")"
to=$1/$2 NPM=${NPM:-npm}
mkdir -p "$to" && cp "$2/package.json" "$2/package-lock.json" "$to"
if cmp -s "$2/package-lock.json" "$to/ready"; then exit; fi
(cd "$to" && "$NPM" ci --loglevel=error --ignore-scripts --no-audit --no-fund)
cp "$2/package-lock.json" "$to/ready"
