#!/bin/sh
# Makes the package, target/node/dist/tatcell-VERSION.tgz: bindings/node/build.sh
#
# It has the addon for this platform, and the sources of addon and library: on other platforms install.js builds them
# with cargo.
set -eu
cd "$(dirname "$0")/../.."
CARGO=${CARGO:-cargo} NODE=${NODE:-node} NPM=${NPM:-npm}
root=$PWD out=$PWD/target/node
tree=$out/tree
# The addon names no folder of this machine.
RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$root=/tatcell --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
CARGO_TARGET_DIR=$out/cargo
export RUSTFLAGS CARGO_TARGET_DIR
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
platform=$("$NODE" -p '`${process.platform}-${process.arch}`')

$CARGO build --quiet --release --locked --manifest-path bindings/node/Cargo.toml
$CARGO package --quiet --no-verify --allow-dirty --target-dir "$out/crate"
rm -rf "$tree" "$out/dist" && mkdir -p "$tree/prebuilt/$platform" "$tree/vendor" "$out/dist"
for library in libtatcell_node.so libtatcell_node.dylib; do
    [ ! -f "$CARGO_TARGET_DIR/release/$library" ] ||
        cp "$CARGO_TARGET_DIR/release/$library" "$tree/prebuilt/$platform/tatcell.node"
done
cp LICENSE-MIT LICENSE-APACHE "$tree"
# The addon contains these crates, too.
CARGO=$CARGO python3 -B packaging/release/notices.py bindings/node/Cargo.toml > "$tree/LICENSE-THIRD-PARTY"
tar -xzf "$out/crate/package/tatcell-$version.crate" -C "$tree/vendor"
mv "$tree/vendor/tatcell-$version" "$tree/vendor/tatcell"
cd bindings/node
cp -R README.md index.js index.d.ts express.js express.d.ts fastify.js fastify.d.ts install.js lib \
    Cargo.lock build.rs src "$tree"
sed 's|path = "../.."|path = "vendor/tatcell"|' Cargo.toml |
    awk '{ print } $0 == "[workspace]" { print "exclude = [\"vendor\"]" }' > "$tree/Cargo.toml"
# The version is that of the library.
sed "s/\"version\": .*/\"version\": \"$version\",/" package.json > "$tree/package.json"
# npm packs the rights that files have here, and those of a checkout are its owner's choice.
chmod -R u=rwX,go=rX "$tree"
"$NPM" pack --silent --ignore-scripts --pack-destination "$out/dist" "$tree" > "$out/pack.log"
ls "$out"/dist/*.tgz
