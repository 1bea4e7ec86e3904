#!/bin/sh
# Uses the layer for tower as its users do, as TAP: packaging/test/tower.sh. A crate outside of the checkout depends on the
# packed crates of the library and of the layer, with the lines of the layer's README, and its server is asked until it
# refuses.
set -u
cd "$(dirname "$0")/../.." || exit 1
CARGO=${CARGO:-cargo}
root=$PWD out=$PWD/target/tower-package tower=$PWD/bindings/tower
unset MAKEFLAGS MFLAGS MAKELEVEL
rm -rf "$out" && mkdir -p "$out/user/src" || exit 1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

. mk/tap.sh

# packed MANIFEST NAME: the crate as a registry would get it, unpacked.
packed() {
    $CARGO package --quiet --no-verify --allow-dirty --exclude-lockfile --manifest-path "$1" --target-dir "$out/crate" &&
        tar -xzf "$out/crate/package/$2-$version.crate" -C "$out"
}
crates() {
    packed Cargo.toml tatcell && packed bindings/tower/Cargo.toml tatcell-tower &&
        mv "$out/tatcell-$version" "$out/tatcell" && mkdir -p "$out/tatcell/bindings" &&
        mv "$out/tatcell-tower-$version" "$out/tatcell/bindings/tower" &&
        for file in LICENSE-APACHE LICENSE-MIT README.md src/lib.rs; do
            cmp "$tower/$file" "$out/tatcell/bindings/tower/$file" || return 1
        done
}
# block LANGUAGE: the first block of the README in it.
block() { awk -v open='```'"$1" '$0 == "```" { if (on) exit } on { print } $0 == open { on = 1 }' "$tower/README.md"; }
# The packed crates lie as in the checkout of which the README speaks, so its lines stand as they are. Only the packed
# layer names a library in a registry. Versions and profile are those of the layer's tests, so that crates are built once.
user() {
    {
        printf '[package]\nname = "user"\nversion = "1.0.0"\nedition = "2021"\n\n'
        block toml
        printf '\n[patch.crates-io]\ntatcell = { path = "../tatcell" }\n'
        printf '\n[profile.dev]\ndebug = "line-tables-only"\n\n[workspace]\n'
    } > "$out/user/Cargo.toml"
    block rust,no_run | sed "s/127\.0\.0\.1:3000/127.0.0.1:$port/" > "$out/user/src/main.rs"
    cp "$tower/Cargo.lock" "$out/user"
    cat "$out/user/Cargo.toml"
    grep -F "127.0.0.1:$port" "$out/user/src/main.rs" &&
        $CARGO build --quiet --manifest-path "$out/user/Cargo.toml" --target-dir "$tower/target"
}
# 10 a second and 20 at once: 200 requests would take 18 seconds if all passed.
refuses() {
    "$tower/target/debug/user" &
    server=$!
    python3 - "$port" << 'END'
import http.client, sys, time
for attempt in range(100):
    try:
        client = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=10)
        client.connect()
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
seen = []
for request in range(200):
    client.request('GET', '/')
    answer = client.getresponse()
    body = answer.read()
    seen.append(answer.status)
    if answer.status == 429:
        break
print(seen, body, dict(answer.getheaders()))
assert seen[:20] == [200] * 20 and seen[-1] == 429, seen
assert int(answer.getheader('Retry-After')) >= 1 and 'per-ip' in answer.getheader('RateLimit-Policy')
END
    status=$?
    kill "$server"
    wait "$server" 2> /dev/null
    return $status
}

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' bindings/tower/Cargo.toml)
if ! printf '%s\n' "$oldest" "$(${RUSTC:-rustc} --version | cut -d' ' -f2)" | sort -V -C; then
    skip 'the layer for tower' "no Rust $oldest: rustup update"
elif ! $CARGO fetch --quiet --locked --manifest-path bindings/tower/Cargo.toml 2> "$out/fetch.log"; then
    missing 'the layer for tower' 'no crates' "$out/fetch.log"
else
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    check 'the library and the layer are packed' crates
    check 'a crate outside of the checkout builds the server of the README with them' user
    check 'the server refuses a client as the README says' refuses
fi
echo "1..$n"
