#!/bin/sh
# Uses the Node package as its users do, as TAP: packaging/test/node.sh [source]. Packs it, installs the packed file
# into an empty folder without the checkout, and runs the programs of the README there. With `source` it builds the
# addon from the sources in the package, as other platforms do.
set -u
cd "$(dirname "$0")/../.." || exit 1
MAKE=${MAKE:-make} NODE=${NODE:-node} NPM=${NPM:-npm} CARGO=${CARGO:-cargo}
root=$PWD out=$PWD/target/node-package
unset MAKEFLAGS MFLAGS MAKELEVEL NODE_PATH NODE_OPTIONS
# Node looks for modules in all folders above, so the user's folder is outside of the checkout.
user=$(mktemp -d)
trap 'rm -rf "$user"' EXIT
rm -rf "$out" && mkdir -p "$out/stubs" "$out/reads" || exit 1

. mk/tap.sh

built() { $MAKE -s -C bindings/node pack; }
packed() { ls "$root"/target/node/dist/*.tgz; }
# installs FOLDER WHAT...: an empty folder with what npm installs.
installs() {
    mkdir -p "$user/$1" && cd "$user/$1" && shift && echo '{ "private": true }' > package.json &&
        "$NPM" install --no-audit --no-fund --foreground-scripts "$@"
}
# The install script calls a cargo that fails, so the package brings what it needs.
without_cargo() { (PATH="$out/stubs:$PATH" installs plain "$(packed)"); }
peers() {
    bindings/node/packages.sh "$root/target/node" test &&
        ln -s "$root"/target/node/test/node_modules/express "$root"/target/node/test/node_modules/fastify \
            "$user/plain/node_modules"
}
runs() { (cd "$user/plain" && "$NODE" "$root/packaging/test/readme.mjs" "$root/bindings/node/README.md"); }
# Only what Node calls is defined.
alone() {
    nm -D --defined-only "$user"/plain/node_modules/tatcell/prebuilt/*/tatcell.node | awk '{ print $NF }' > "$out/names"
    [ -s "$out/names" ] && cat "$out/names" && fails grep -v '^napi_' "$out/names"
}
names_no_folder() {
    addon=$(ls "$user"/plain/node_modules/tatcell/prebuilt/*/tatcell.node) &&
        fails grep -laF -e "$root" -e "$HOME/.cargo" "$addon"
}
# The addon of another platform is of no use.
other_platform() {
    mkdir "$out/tree" && tar -xzf "$(packed)" -C "$out/tree" --strip-components 1 && rm -r "$out/tree/prebuilt" &&
        "$NPM" pack --silent --ignore-scripts --pack-destination "$out" "$out/tree"
}
works() { "$NODE" -p "new (require('tatcell').Limiter)('1/h').hit('a')" | grep true; }
# Instead of a minute of compiling, this cargo reads the manifest with its lock, and brings the addon of the package.
calls_cargo() {
    printf '#!/bin/sh\n[ "$1 $2 $3 $4" = "build --release --locked --manifest-path" ] && [ "$6" = --target-dir ] &&
        %s metadata --quiet --locked --format-version 1 --manifest-path "$5" > "%s" && mkdir -p "$7/release" &&
        cp "%s" "$7/release/libtatcell_node.so"\n' \
        "$CARGO" "$out/metadata" "$(ls "$user"/plain/node_modules/tatcell/prebuilt/*/tatcell.node)" > "$out/reads/cargo"
    chmod +x "$out/reads/cargo"
    (CARGO=$out/reads/cargo installs stub "$out"/*.tgz && works)
}
# Without optimization, because it only has to work.
with_cargo() {
    (CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        installs cargo "$out"/*.tgz && works)
}
says_what_it_needs() {
    (fails env PATH="$out/stubs:$PATH" "$NPM" install --prefix "$user/none" --foreground-scripts "$out"/*.tgz) \
        > "$out/said" 2>&1 && grep 'so it needs Rust' "$out/said"
}

printf '#!/bin/sh\nexit 1\n' > "$out/stubs/cargo" && chmod +x "$out/stubs/cargo"
if ! have "$NODE" || ! have "$NPM" || ! have python3; then
    skip 'the Node package' 'no Node, npm or python3: apt-get install nodejs npm python3'
elif ! $CARGO fetch --quiet --locked --manifest-path bindings/node/Cargo.toml > "$out/fetch.log" 2>&1; then
    missing 'the Node package' 'no crates' "$out/fetch.log"
elif [ "${1:-}" = source ]; then
    check 'the package is packed' built
    check 'the package without the addon' other_platform
    check 'it builds with cargo on another platform' with_cargo
else
    check 'the package is packed' built
    check 'it installs without cargo' without_cargo
    if have nm && [ "$(uname -s)" = Linux ]; then check 'the addon defines what Node calls, and no more' alone; fi
    check 'the addon names no folder of the machine that built it' names_no_folder
    if peers > "$out/npm.log" 2>&1; then check 'the README runs with it' runs
    else missing 'the README runs with it' 'no packages from npm' "$out/npm.log"; fi
    check 'the package without the addon' other_platform
    check 'on another platform it asks cargo to build the sources in it' calls_cargo
    check 'without addon and cargo the installation says what it needs' says_what_it_needs
fi
echo "1..$n"
