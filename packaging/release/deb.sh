#!/bin/sh
# Builds the packages for Debian from packaging/debian: packaging/release/deb.sh OUT. Needs debhelper and nginx-dev.
set -eu
cd "$(dirname "$0")/../.."
out=$(realpath "$1") work=$PWD/target/deb
for tool in dh dpkg-buildpackage dh_nginx; do
    command -v "$tool" > /dev/null && continue
    echo "$tool is missing: apt-get install debhelper dpkg-dev nginx-dev" >&2
    exit 1
done
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
rm -rf "$work" && mkdir -p "$work/tree"
cp -R packaging/debian "$work/tree"
# 0.4.0-dev comes before 0.4.0, which Debian writes 0.4.0~dev.
cat > "$work/tree/debian/changelog" << END
tatcell ($(echo "$version" | sed 's/-/~/')) unstable; urgency=medium

  * See CHANGELOG.md of this version.

 -- The tatcell developers <tatcell@example.org>  $(git log -1 --format=%cD)
END
cd "$work/tree"
if ! ROOT=$OLDPWD dpkg-buildpackage --build=binary --no-sign --no-check-builddeps > "$work/log" 2>&1; then
    tail -n 20 "$work/log" >&2
    exit 1
fi
cp "$work"/*.deb "$out"
