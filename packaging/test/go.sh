#!/bin/sh
# Uses the Go package as its users do, as TAP: packaging/test/go.sh. A module outside of the checkout gets the package as
# `make dist` packs it, from a module proxy of files, builds the programs of the README and runs those whose output
# follows.
set -u
cd "$(dirname "$0")/../.." || exit 1
GO=${GO:-go}
out=$PWD/target/go-package
unset MAKEFLAGS MFLAGS MAKELEVEL GO111MODULE
version=v$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Nothing but the packed module is there, and no checksum of it is public. Its copy may be removed again.
export GOPROXY="file://$out/proxy" GOSUMDB=off GOMODCACHE="$out/cache" GOFLAGS=-modcacherw SOURCE_DATE_EPOCH=1700000000
# Go indexes a module in the cache once for a path and version. Here one version has other files after each change.
export GODEBUG=goindex=0
rm -rf "$out" && mkdir -p "$out" || exit 1

. mk/tap.sh

packed() {
    at=$out/proxy/tatcell.example/tatcell/@v
    mkdir -p "$at" && python3 bindings/go/zip.py "$at/$version.zip" "$version" && cp bindings/go/go.mod "$at/$version.mod" &&
        echo "{\"Version\": \"$version\"}" > "$at/$version.info" && echo "$version" > "$at/list"
}
# Block N of Go becomes user/N/main.go; the text behind it is user/N/want.
blocks() {
    awk -v to="$out/user" '
        /^```go$/ { file = to "/" ++n "/main.go"; system("mkdir -p " to "/" n); go = 1; next }
        /^```text$/ && go == 2 { file = to "/" n "/want"; go = 0; next }
        /^```/ { if (go) go = 2; file = ""; next }
        NF && !file { go = 0 }
        file { print > file }
    ' bindings/go/README.md && [ -f "$out/user/1/want" ] && [ -f "$out/user/2/main.go" ]
}
module() { cd "$out/user" && "$GO" mod init user.example/user && "$GO" get "tatcell.example/tatcell@$version"; }
builds() { (cd "$out/user" && "$GO" vet ./... && "$GO" build -o "$out/bin/" ./...); }
prints() { "$out/bin/1" | diff "$out/user/1/want" -; }
# The server of the README, at a port that is free.
asked() {
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])') &&
        mkdir -p "$out/user/served" "$out/files" && echo hello > "$out/files/index.html" &&
        sed "s/127\.0\.0\.1:8080/127.0.0.1:$port/" "$out/user/2/main.go" > "$out/user/served/main.go" &&
        grep -q ":$port" "$out/user/served/main.go" &&
        (cd "$out/user" && "$GO" build -o "$out/bin/" ./served) || return 1
    (cd "$out/files" && exec "$out/bin/served") & server=$!
    python3 - "$port" <<'END'
import sys, time, urllib.request
for left in range(200, -1, -1):
    try:
        answer = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/")
        break
    except OSError:
        if not left:
            raise
        time.sleep(0.1)
got = answer.status, answer.read(), answer.headers["RateLimit-Policy"], answer.headers["RateLimit"]
sys.exit(f"{got}" if got != (200, b"hello\n", '"default";q=20;w=2', '"default";r=19;t=1') else 0)
END
    answered=$?
    kill "$server"
    wait "$server"
    return "$answered"
}
tested() { (cd "$out/user" && "$GO" test tatcell.example/tatcell/...); }

if ! have "$GO"; then
    skip 'the Go package' 'no go: apt-get install golang-go'
else
    check 'the module is packed' packed
    check 'the README has a program with its output, and a server' blocks
    check 'a module of its own gets it' eval '(module)'
    check 'the programs of the README build with it alone' builds
    check 'the first one prints what the README says' prints
    check 'its server answers, with the fields of its limit' asked
    check 'the tests of the module pass there' tested
fi
echo "1..$n"
