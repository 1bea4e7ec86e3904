#!/bin/sh
# Gives all that has the library's version another one: packaging/release/version.sh 0.4.0
#
# Those are the manifests and lock files of every workspace, what they ask of each other, the packages of Node, ESP-IDF
# and OpenResty, and TATCELL_VERSION. Python, Go, Debian and CMake read that of Cargo.toml when they are packed.
set -eu
cd "$(dirname "$0")/../.."
CARGO=${CARGO:-cargo} new=${1:?a version, such as 0.4.0 or 0.5.0-dev}
echo "$new" | grep -qxE '[0-9]+\.[0-9]+\.[0-9]+(-dev)?' || { echo "$new is no version such as 0.4.0 or 0.5.0-dev"; exit 1; }
old=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
written=$(printf '%s\n' "$old" | sed 's/\./\\./g')
git ls-files '*Cargo.toml' '*idf_component.yml' '*package.json' '*.lua' | xargs sed -Ei \
    "s/(version\"?(:| =) |_VERSION = )\"$written\"/\1\"$new\"/"
number=$(echo "${new%%-*}" | awk -F. '{ print $1 * 10000 + $2 * 100 + $3 }')
sed -i "s/^\(pub const TATCELL_VERSION: u32 = \).*;/\1$number;/" src/capi/codes.rs
for lock in $(git ls-files '*Cargo.lock'); do
    set -- metadata --quiet --format-version 1 --manifest-path "${lock%.lock}.toml"
    $CARGO "$@" --offline > /dev/null 2>&1 || $CARGO "$@" > /dev/null
done
git diff --stat
