#!/bin/sh
# Uses the Go package as its users do, as TAP: packaging/test/go.sh. A module outside of the checkout, with a copy of the
# package's module, builds the programs of the README and runs those whose output follows.
set -u
cd "$(dirname "$0")/../.." || exit 1
GO=${GO:-go}
out=$PWD/target/go-package
unset MAKEFLAGS MFLAGS MAKELEVEL GO111MODULE GOFLAGS
rm -rf "$out" && mkdir -p "$out" || exit 1

. mk/tap.sh

# As the module proxy packs it: the files that git has, without nested modules.
packed() {
    mkdir "$out/module" && (cd bindings/go && git ls-files | grep -v -e ^compare/ -e ^oracle/ | tar -cf - -T -) |
        tar -xf - -C "$out/module"
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
module() {
    cd "$out/user" && "$GO" mod init user.example/user && "$GO" mod edit -require tatcell.example/tatcell@v0.0.0 \
        -replace "tatcell.example/tatcell=$out/module"
}
builds() { (cd "$out/user" && GOPROXY=off "$GO" vet ./... && GOPROXY=off "$GO" build -o "$out/bin/" ./...); }
prints() { "$out/bin/1" | diff "$out/user/1/want" -; }
tested() { (cd "$out/module" && GOPROXY=off "$GO" test ./...); }

if ! have "$GO"; then
    skip 'the Go package' 'no go: apt-get install golang-go'
else
    check 'the module is copied' packed
    check 'the README has a program with its output, and a server' blocks
    check 'a module of its own requires it' eval '(module)'
    check 'the programs of the README build without a module proxy' builds
    check 'the first one prints what the README says' prints
    check 'the tests of the module pass outside of the checkout' tested
fi
echo "1..$n"
