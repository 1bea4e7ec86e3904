#!/bin/sh
# Uses the Python package as its users do, as TAP: packaging/test/python.sh. Builds the source distribution and the
# wheel, installs each into a fresh environment without the checkout, and runs the programs of the README there.
set -u
cd "$(dirname "$0")/../.." || exit 1
MAKE=${MAKE:-make} PYTHON=${PYTHON:-python3}
root=$PWD out=$PWD/target/python-package
unset MAKEFLAGS MFLAGS MAKELEVEL PYTHONPATH
# Python finds nothing of the checkout, and writes nothing into it.
export PYTHONDONTWRITEBYTECODE=1
rm -rf "$out" && mkdir -p "$out/stubs" || exit 1

. mk/tap.sh

built() {
    $MAKE -s -C bindings/python wheel PYTHON="$PYTHON" && (cd target/python/dist && sha256sum ./*) > "$out/$1.sums"
}
again() { built second && diff "$out/first.sums" "$out/second.sums"; }
no_registry() { ! built first > "$out/log" 2>&1 && unreached "$out/log"; }
# pip NAME ARGUMENTS...: the pip of the build, for another environment. A pip for each would take seconds to install.
pip() { venv=$out/$1; shift; target/python/venv/bin/pip --disable-pip-version-check --python "$venv/bin/python" "$@"; }
# fresh NAME ARGUMENTS...: an environment with what pip installs.
fresh() { "$PYTHON" -m venv --without-pip "$out/$1" && name=$1 && shift && pip "$name" install "$@"; }
runs() { (cd "$out" && "$out/$1/bin/python" "$root/packaging/test/readme.py" "$root/bindings/python/README.md"); }
wheel() { ls "$root"/target/python/dist/*.whl; }
tagged() { wheel | grep -F "abi3-$1"; }
# Only the functions of the headers come with it, and none of them shows.
alone() {
    (cd "$out" && "$out/wheel/bin/python" -m zipfile -e "$(wheel)" "$out/unpacked") &&
        nm -D --defined-only "$out/unpacked/tatcell/_core.abi3.so" > "$out/names" && cat "$out/names" &&
        [ "$(awk '{ print $NF }' "$out/names")" = PyInit__core ]
}
# The build of the source distribution calls a cargo that fails, so it has the compiler alone.
without_cargo() { PATH="$out/stubs:$PATH" fresh source target/python/dist/*.tar.gz; }
# The archive of another platform is of no use.
other_platform() {
    mkdir "$out/tree" && tar -xzf target/python/dist/*.tar.gz -C "$out/tree" --strip-components 1 &&
        rm "$out"/tree/vendor/*/libtatcell.a
}
crates() { ${CARGO:-cargo} fetch --quiet --manifest-path "$out/tree/vendor/crate/Cargo.toml" 2> "$out/log"; }
# Without optimization, because it only has to work.
with_cargo() {
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        fresh cargo "$out/tree"
}
says_what_it_needs() {
    rm -rf "$out/tree/build"
    (PATH="$out/stubs:$PATH" fails pip source install --force-reinstall "$out/tree") > "$out/said" 2>&1 &&
        grep 'so it needs Rust' "$out/said"
}

printf '#!/bin/sh\nexit 1\n' > "$out/stubs/cargo" && chmod +x "$out/stubs/cargo"
if ! "$PYTHON" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2> "$out/log"; then
    skip 'the Python package' 'no Python 3.11 with venv: apt-get install python3 python3-venv'
elif no_registry; then
    skip 'the Python package' "no packages from PyPI: $(grep -v '^make' "$out/log" | tail -n 1 | cut -c 1-90)"
else
    check 'the source distribution, and the wheel from it: two builds make the same bytes' again
    if [ "$(getconf GNU_LIBC_VERSION 2> /dev/null)" ]; then check 'the wheel has a manylinux tag' tagged manylinux
    else skip 'the wheel has a manylinux tag' 'no glibc: the wheel has the tag of its platform'; fi
    check 'the wheel installs' fresh wheel --no-index "$(wheel)"
    check 'the module defines nothing but its entry' alone
    check 'the README runs with the wheel' runs wheel
    check 'the source distribution builds with a compiler alone' without_cargo
    check 'the README runs with it' runs source
    check 'the source distribution without the archive' other_platform
    if crates; then
        check 'the source distribution builds with cargo on another platform' with_cargo
        check 'the README runs with that' runs cargo
    else
        skip 'the source distribution builds with cargo on another platform' \
            "no crates: $(tail -n 1 "$out/log" | sed 's/^ *//' | cut -c 1-90)"
    fi
    check 'without archive and cargo the build says what it needs' says_what_it_needs
fi
echo "1..$n"
