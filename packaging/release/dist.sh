#!/bin/sh
# Makes what a release ships of the last commit, in target/dist: packaging/release/dist.sh [PART...]
#
#   source    tatcell-VERSION.tar.xz             the tree, and the crates that the library is built with: `make install`
#                                                there needs no network
#   crate     tatcell-VERSION.crate              the library for a registry of crates
#             tatcell-tower-VERSION.crate        its layer for axum, hyper and tonic
#   go        tatcell-go-VERSION.zip             the Go module, as a module proxy serves it
#   python    tatcell-VERSION.tar.gz, .whl       the Python package: sources, and a wheel for this platform
#   node      tatcell-VERSION.tgz                the Node package: sources, and the addon for this platform
#   binary    tatcell-VERSION-TARGET.tar.xz      what `make install` installs, the command, both servers, licences
#   firmware  tatcell-firmware-VERSION.tar.xz    archives for bare cores, headers, recipes
#   deb       *.deb                              packages for Debian, by packaging/debian
#   sbom      tatcell-VERSION*.cdx.json          what each binary is made of; the wheel and the module of nginx have of
#                                                crates what the library has
#
# All of them without PART; then SHA256SUMS. If the machine lacks a tool of a part, nothing is made: a release has every
# part unless you leave it out. Two runs on one machine make the same bytes, in whatever folder: times are that of the
# commit, owners are 0, and the compiler is told to forget the folders (rustc.sh is a part of that).
set -eu
cd "$(dirname "$0")/../.."
CARGO=${CARGO:-cargo} MAKE=${MAKE:-make}
root=$PWD dist=$PWD/target/dist work=$PWD/target/release-tree
say() { echo "dist: $*"; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=tatcell-$version
target=$(rustc -vV | sed -n 's/^host: //p')
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2> /dev/null) || { say 'a release is made in a clone: here is no commit'; exit 1; }
cargo_home=${CARGO_HOME:-$HOME/.cargo}
RUSTFLAGS="--remap-path-prefix=$root=/tatcell --remap-path-prefix=$cargo_home=/cargo"
RUSTC_WRAPPER=$root/packaging/release/rustc.sh
export CARGO SOURCE_DATE_EPOCH RUSTFLAGS RUSTC_WRAPPER
# Files that others can read, whatever their maker's umask is.
umask 022
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR PREFIX LIBDIR INCLUDEDIR DOCDIR BINDIR MANDIR BASHDIR ZSHDIR FISHDIR CLI

# packed FOLDER OF: an archive of FOLDER/OF, the same bytes from the same files.
packed() {
    tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
        -cf "$dist/$2.tar" "$2"
    xz "-${TATCELL_XZ:-6}" "$dist/$2.tar"
}
# The tree of the commit, as NAME in the work folder. A release needs no tests, so it has no crates for them either.
tree() {
    rm -rf "$work" && mkdir -p "$work"
    git archive --prefix="$name/" -o "$work/tree.tar" HEAD
    tar -x -C "$work" -f "$work/tree.tar"
    cd "$work/$name"
    awk -f packaging/release/manifest.awk "$root/Cargo.toml" > Cargo.toml
    $CARGO update --quiet --workspace --offline 2> /dev/null || $CARGO update --quiet --workspace
    cd "$root"
}
notices() { python3 -B packaging/release/notices.py "$@"; }
# lacks PART: how to get the tools of a part that are not there.
lacks() {
    case $1 in
    source) tools='tar xz' get='apt-get install tar xz-utils' ;;
    go) tools=python3 get='apt-get install python3' ;;
    python) tools='python3 python3-venv' get='apt-get install python3 python3-venv' ;;
    node) tools='npm python3' get='apt-get install nodejs npm python3' ;;
    binary) tools='tar xz python3' get='apt-get install tar xz-utils python3' ;;
    firmware) tools='arm-none-eabi-ld riscv64-unknown-elf-ld tar xz python3'
        get='apt-get install binutils-arm-none-eabi binutils-riscv64-unknown-elf tar xz-utils python3' ;;
    deb) tools='dh dpkg-buildpackage dh_nginx pkg-config python3'
        get='apt-get install debhelper dpkg-dev nginx-dev pkg-config python3' ;;
    sbom) tools='cargo-cyclonedx python3' get='cargo install --locked cargo-cyclonedx, apt-get install python3' ;;
    crate) return 1 ;;
    *) say "$1 is no part of a release; the first lines of packaging/release/dist.sh name them" && exit 1 ;;
    esac
    missing=
    for tool in $tools; do
        case $tool in
        # The module is there without it, but makes no environment.
        python3-venv) python3 -c 'import ensurepip, venv' 2> /dev/null || missing="$missing $tool" ;;
        *) command -v "$tool" > /dev/null || missing="$missing $tool" ;;
        esac
    done
    [ -n "$missing" ] && say "no$missing for the part $1: $get"
}

source() {
    cd "$work/$name"
    # Only `make lib` reads it: a .cargo/config.toml would keep the other workspaces from their crates.
    $CARGO vendor --locked --versioned-dirs vendor > ../config.toml 2> ../vendor.log
    mv ../config.toml vendor
    cd "$root"
    packed "$work" "$name"
    # The crate is packed from the tree without them.
    rm -rf "$work/$name/vendor"
}
crate() {
    (cd "$work/$name" && $CARGO package --quiet --no-verify --allow-dirty --target-dir "$root/target/package-crate")
    # The layer belongs to a workspace of its own, and the library that it names is in no registry yet: so no lock file.
    (cd "$work/$name/bindings/tower" && awk -f "$root/packaging/release/manifest.awk" "$root/bindings/tower/Cargo.toml" \
        > Cargo.toml && $CARGO package --quiet --no-verify --allow-dirty --exclude-lockfile \
        --target-dir "$root/target/package-crate")
    cp "target/package-crate/package/$name.crate" "target/package-crate/package/tatcell-tower-$version.crate" "$dist"
}
go() { python3 "$work/$name/bindings/go/zip.py" "$dist/tatcell-go-$version.zip" "v$version"; }
python() {
    $MAKE -s -C bindings/python wheel > "$work/python.log"
    cp target/python/dist/*.tar.gz target/python/dist/*.whl "$dist"
}
node() {
    $MAKE -s -C bindings/node pack > "$work/node.log"
    cp target/node/dist/*.tgz "$dist"
}
binary() {
    stage=$work/$name-$target
    rm -rf "$stage" && mkdir -p "$stage/share/doc/tatcell"
    $MAKE -s cli
    $MAKE -s install "PREFIX=$stage"
    (cd cluster && $CARGO build --quiet --release --locked --features tls -p tatcell-throttled -p tatcell-ratelimit)
    install -s -m 755 cli/target/release/tatcell cluster/target/release/tatcell-throttled \
        cluster/target/release/tatcell-ratelimit "$stage/bin"
    install -m 644 packaging/release/binary.txt "$stage/README.txt"
    # Laid out like the tree, so that pages find each other.
    git archive HEAD README.md CHANGELOG.md SECURITY.md docs cli/README.md cluster/throttled/README.md \
        cluster/throttled/throttled.toml cluster/throttled/tatcell-throttled.service cluster/envoy/README.md \
        cluster/envoy/ratelimit.toml cluster/envoy/rules.yaml cluster/envoy/tatcell-ratelimit.service |
        tar -x -C "$stage/share/doc/tatcell"
    notices Cargo.toml capi,host > "$stage/share/doc/tatcell/THIRD-PARTY-libtatcell"
    notices cli/Cargo.toml > "$stage/share/doc/tatcell/THIRD-PARTY-tatcell"
    notices cluster/throttled/Cargo.toml tls > "$stage/share/doc/tatcell/THIRD-PARTY-tatcell-throttled"
    notices cluster/envoy/Cargo.toml tls > "$stage/share/doc/tatcell/THIRD-PARTY-tatcell-ratelimit"
    packed "$work" "$name-$target"
}
# Laid out like the tree, so that each recipe finds its files.
firmware() {
    folder=tatcell-firmware-$version
    git archive --prefix="$folder/" HEAD Cargo.toml LICENSE-MIT LICENSE-APACHE include/tatcell.h include/tatcell_small.h \
        firmware/README.md firmware/RECIPES.md firmware/budget firmware/examples/c firmware/examples/embassy/lines.txt \
        firmware/recipes | tar -x -C "$work"
    install -m 644 packaging/release/firmware.txt "$work/$folder/README.txt"
    # Not those that are in target/firmware: they may be of other flags. No archive names a folder.
    (cd firmware && . ./boards.sh && for triple in $targets; do printf "$triple %s\n" $choices; done) |
        env -u RUSTFLAGS -u RUSTC_WRAPPER "TATCELL_FIRMWARE_DIR=$work/$folder/target/firmware" \
            xargs -P "$(nproc)" -n 2 firmware/archive.sh
    notices Cargo.toml small-capi single-core > "$work/$folder/THIRD-PARTY"
    packed "$work" "$folder"
}
deb() { packaging/release/deb.sh "$dist"; }
sbom() {
    for of in .::capi,host .:-firmware:small-capi,single-core cli:-cli: cluster/throttled:-throttled:tls \
        cluster/envoy:-ratelimit:tls bindings/node:-node:; do
        folder=${of%%:*} features=${of##*:} suffix=${of#*:} suffix=${suffix%:*}
        $CARGO cyclonedx --quiet --format json --manifest-path "$work/$name/$folder/Cargo.toml" \
            --features "$features" --override-filename "$name$suffix.cdx"
        python3 -B packaging/release/sbom.py "$work/$name/$folder/Cargo.toml" "$features" "$work" \
            < "$work/$name/$folder/$name$suffix.cdx.json" > "$dist/$name$suffix.cdx.json"
    done
}

# Who publishes the packages fills in where the project lives: this tree names no place (CONTRIBUTING.md, "A release").
while read -r file line; do
    grep -q "^$line" "$file" || say "$file does not say where the project lives: it has no line $line"
done << 'END'
Cargo.toml repository = "https://
bindings/tower/Cargo.toml repository = "https://
bindings/python/pyproject.toml Repository = "https://
firmware/recipes/arduino/tatcell/library.properties url=https://
packaging/debian/control Homepage: https://
END
git diff --quiet HEAD || say 'the tree has changes that are not committed: binaries and packages contain them, the source does not'
[ $# -gt 0 ] || set -- source crate go binary python node firmware deb sbom
others= whole=yes
for part; do if lacks "$part"; then whole=no; else others="$others $part"; fi; done
[ $whole = yes ] || {
    say "nothing is made: get these tools${others:+, or leave their parts out: packaging/release/dist.sh$others}"
    exit 1
}
rm -rf "$dist" && mkdir -p "$dist"
# Make would take an archive that was built with other flags. Cargo builds it anew only if it was.
case " $* " in *' python '* | *' binary '* | *' deb '*) rm -f target/lib/release/libtatcell.a ;; esac
tree
for part; do
    say "$part"
    $part
done
# The list must not be there yet when the shell looks for files.
cd "$dist" && sha256sum ./* | sed 's|\./||' > "$work/SHA256SUMS" && mv "$work/SHA256SUMS" . && cat SHA256SUMS
