#!/bin/sh
# All of a release, as TAP: packaging/test/dist.sh. It is made in two clones of the last commit at once, in folders with
# other names, and each file must have the same sum. One of them stays in target/dist-test/dist, for deb.sh. Release
# builds of everything, twice: 15 minutes. What this machine has no tool for is left out, with a line.
set -u
cd "$(dirname "$0")/../.." || exit 1
MAKE=${MAKE:-make} out=$PWD/target/dist-test
unset MAKEFLAGS MFLAGS MAKELEVEL CC CXX LD AR OBJCOPY
rm -rf "$out" && mkdir -p "$out" || exit 1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
target=$(rustc -vV | sed -n 's/^host: //p')

. mk/tap.sh
firmware_tools() { have arm-none-eabi-ld && have riscv64-unknown-elf-ld; }
debian_tools() { have dh && have dpkg-buildpackage && have dh_nginx; }
parts='source crate go binary python'
! have npm || parts="$parts node"
! firmware_tools || parts="$parts firmware"
! debian_tools || parts="$parts deb"
! have cargo-cyclonedx || parts="$parts sbom"
# The second one belongs to somebody else: other rights of new files, another zone, and what another build left.
stale() {
    RUSTFLAGS='-C opt-level=1' $MAKE -s -C "$out/$1" lib && archive=$out/$1/target/firmware/thumbv6m-none-eabi &&
        mkdir -p "$archive" && echo old > "$archive/libtatcell-single.a"
}
make_in() {
    [ "$1" = a ] || { umask 077 && export TZ=Asia/Kathmandu LC_ALL=C; }
    git clone --quiet --no-hardlinks "file://$PWD" "$out/$1" && { [ "$1" = a ] || stale "$1"; } &&
        case $parts in
        'source crate go binary python node firmware deb sbom') $MAKE -s -C "$out/$1" dist ;;
        *) "$out/$1/packaging/release/dist.sh" $parts ;;
        esac
}
make_both() {
    for clone in a another; do
        (make_in "$clone" > "$out/$clone.log" 2>&1; echo $? > "$out/$clone.status") &
    done
    wait
}
made() { cat "$out/$1.log"; return "$(cat "$out/$1.status")"; }
# A machine without the tools: all programs that a shell and the start of the script need, some tools of each part, and
# a Python that makes no environment.
incomplete() {
    mkdir -p "$out/few" && for tool in sh dirname sed head rustc git; do
        ln -sf "$(command -v "$tool")" "$out/few/$tool" || return 1
    done
    for tool in dh arm-none-eabi-ld tar python3; do
        printf '#!/bin/sh\nexit 1\n' > "$out/few/$tool" && chmod +x "$out/few/$tool" || return 1
    done
    fails env "PATH=$out/few" packaging/release/dist.sh > "$out/said" 2>&1 &&
        grep -x 'dist: nothing is made: .* leave their parts out: packaging/release/dist.sh crate go' "$out/said" &&
        fails packaging/release/dist.sh crate tree > "$out/none" 2>&1 && grep 'tree is no part' "$out/none" || return 1
    while read -r line; do
        grep -F "dist: $line: " "$out/said" || { echo "not said: $line"; cat "$out/said"; return 1; }
    done << 'END'
no xz for the part source
no python3-venv for the part python
no npm for the part node
no xz for the part binary
no riscv64-unknown-elf-ld xz for the part firmware
no dpkg-buildpackage dh_nginx pkg-config for the part deb
no cargo-cyclonedx for the part sbom
END
}
sums() { (cd "$out/a/target/dist" && sha256sum --check --quiet SHA256SUMS) && diff "$out"/a*/target/dist/SHA256SUMS; }
named() {
    for file in "$@"; do
        grep "  $file\$" "$out/a/target/dist/SHA256SUMS" || { echo "no $file"; return 1; }
    done
}
binaries() (
    tar -C "$out" -xf "$out/a/target/dist/tatcell-$version-$target.tar.xz" && cd "$out/tatcell-$version-$target" || return 1
    for program in tatcell tatcell-throttled tatcell-ratelimit; do
        notices=share/doc/tatcell/THIRD-PARTY-$program
        # A crate of which the program names a file is one whose licence it brings.
        [ "$("bin/$program" --version)" = "$program $version" ] && grep -q '^siphasher ' "$notices" &&
            grep -aoE '/cargo/registry/src/[^/]*/[a-z0-9_-]+-[0-9]+\.[^/]*' "bin/$program" | sed -E 's|.*/||; s|-([0-9]+\.)| \1|' |
            sort -u > "$out/crates" && [ "$(wc -l < "$out/crates")" -ge 5 ] || { echo "$program"; return 1; }
        while read -r crate; do
            grep -qF "$crate: " "$notices" || { echo "$notices: no $crate"; return 1; }
        done < "$out/crates"
    done
    grep -q '^rustls ' share/doc/tatcell/THIRD-PARTY-tatcell-ratelimit && grep -q '^zstd/LICENSE' share/doc/tatcell/THIRD-PARTY-tatcell
)
# Owners are 0, nobody but the owner may write, no file is newer than the commit, and none names a folder of its maker.
archives() {
    python3 -B packaging/test/archives.py "$(git log -1 --format=%ct)" "$out/a" "${CARGO_HOME:-$HOME/.cargo}" \
        "$out"/a/target/dist/*
}
check 'without a tool of a part nothing is made' incomplete
make_both
check 'a release is made in a clone' made a
check 'and in another one' made another
check 'both have the same bytes' sums
check 'its archives say nothing of who made them' archives
check 'it has its tarballs, crates, Go module and Python package' named "tatcell-$version.tar.xz" \
    "tatcell-$version.crate" "tatcell-tower-$version.crate" "tatcell-$version-$target.tar.xz" "tatcell-go-$version.zip" \
    'tatcell-.*\.tar\.gz' 'tatcell-.*\.whl'
if have npm; then check 'and the Node package' named "tatcell-$version.tgz"
else skip 'and the Node package' 'no npm: apt-get install nodejs npm'; fi
if debian_tools; then check 'and the Debian packages' named 'tatcell_.*\.deb' 'libtatcell1_.*\.deb' 'libtatcell-dev_.*\.deb'
else skip 'and the Debian packages' 'no debhelper, dpkg-dev or nginx-dev: apt-get install debhelper dpkg-dev nginx-dev'; fi
if have cargo-cyclonedx; then
    check 'and an SBOM of each binary' named "tatcell-$version.cdx.json" "tatcell-$version-firmware.cdx.json" \
        "tatcell-$version-cli.cdx.json" "tatcell-$version-throttled.cdx.json" "tatcell-$version-ratelimit.cdx.json" \
        "tatcell-$version-node.cdx.json"
else skip 'and an SBOM of each binary' 'no cargo-cyclonedx: cargo install --locked cargo-cyclonedx'; fi
if firmware_tools; then check 'and the firmware' named "tatcell-firmware-$version.tar.xz"
else skip 'and the firmware' 'no linkers for bare cores: apt-get install binutils-arm-none-eabi binutils-riscv64-unknown-elf'; fi
check 'its programs run, and have the licences of their crates' binaries
# As README.txt of the tarball says, in the folder where it lies.
linked() (
    main=$PWD/packaging/test/main.c && cd "$out/tatcell-$version-$target" && export "PKG_CONFIG_PATH=$PWD/lib/pkgconfig" &&
        cc "$main" $(pkg-config --cflags --libs tatcell) "-Wl,-rpath,$PWD/lib" -o gate && ./gate &&
        for file in $(grep -o 'share/doc/[a-z/.-]*[a-z]' README.txt); do ls -d "$file" || return 1; done
)
# The crates that it has are the library's. Those of the other workspaces come from their registry, as in a clone.
workspaces() (
    tar -C "$out" -xf "$out/a/target/dist/tatcell-$version.tar.xz" && cd "$out/tatcell-$version" || return 1
    for folder in cli cluster bindings/node; do
        cargo metadata --quiet --locked --format-version 1 --manifest-path "$folder/Cargo.toml" > /dev/null || return 1
    done
)
check 'the source tarball lets the command, the servers and the addon find their crates' workspaces
if have pkg-config; then check 'a program is linked with its library' linked
else skip 'a program is linked with its library' 'no pkg-config: apt-get install pkg-config'; fi
mv "$out/a/target/dist" "$out"
# What is left of the old version is not the library's: no file says it of tatcell, and every lock file is true.
renamed() (
    cd "$out/another" && packaging/release/version.sh 987.65.43 && fails git grep -nF "\"$version\"" -- '*Cargo.toml' \
        '*.yml' '*package.json' '*.lua' && grep -q 'VERSION: u32 = 9876543;' src/capi/codes.rs || return 1
    for lock in $(git ls-files '*Cargo.lock'); do
        ! grep -A 1 '^name = "tatcell' "$lock" | grep -F "\"$version\"" || return 1
        cargo metadata --locked --format-version 1 --manifest-path "${lock%.lock}.toml" > /dev/null || return 1
    done
)
check 'one command gives all of it another version' renamed
rm -rf "$out/a" "$out/another"
. packaging/test/oldest.sh
oldest bindings/node 'the addon for Node'
oldest cluster 'the cluster and its servers' --features tls -p tatcell-cluster -p tatcell-throttled -p tatcell-ratelimit
oldest cli 'the command'
echo "1..$n"
