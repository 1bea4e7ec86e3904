#!/bin/sh
# Tests the Go package: test.sh FOLDER [lint]. FOLDER takes what is built.
set -u
cd "$(dirname "$0")" || exit 1
out=${1:?folder to build in} GO=${GO:-go} CARGO=${CARGO:-cargo}
mkdir -p "$out" || exit 1
. ../../mk/tap.sh
# The package needs no module, so a look for one is an error.
unset GO111MODULE GOFLAGS MAKEFLAGS MFLAGS MAKELEVEL
export GOPROXY=off

if ! have "$GO"; then
    skip 'the Go package' 'no go: apt-get install golang-go'
    exit
fi

# tests PREFIX ARGUMENTS...: runs `go test`, a line for each test.
tests() {
    prefix=$1; shift
    "$GO" test -count=1 -v "$@" > "$out/log" 2>&1
    status=$?
    sed -n "s/^--- \(PASS\|FAIL\|SKIP\): \([^ ]*\).*/\1 $prefix\2/p" "$out/log"
    [ $status = 0 ] || { echo "FAIL ${prefix}go test $*"; tail -n 60 "$out/log" | sed 's/^/# /'; }
}
build() { "$CARGO" build --quiet --locked --release --target-dir "$out/cargo" --manifest-path "$1" -p "$2"; }
formatted() { [ -z "$(gofmt -l . | tee /dev/stderr)" ]; }
standard() {
    "$GO" list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' ./... > "$out/imports" &&
        ! grep -v '^tatcell\.example/tatcell' "$out/imports"
}
# The README has the lines for gRPC that the tests compile and run.
quotes() {
    sed -n '/^```go grpc$/,/^```$/p' README.md | sed '1d;$d' > "$out/quote"
    sed -n '/^import/,$p' compare/grpc_readme_test.go | diff - "$out/quote"
}
short_lines() { ! LC_ALL=C.UTF-8 grep -rnE '.{121}' --include='*.go' --include='*.sh' --include='*.md' .; }

if [ "${2:-}" = lint ]; then
    check 'gofmt' formatted
    check 'go vet' "$GO" vet ./...
    check 'imports of the standard library alone' standard
    check 'the README quotes the server of gRPC' quotes
    check 'no line of more than 120 columns' short_lines
    check 'rustfmt of the oracle' "$CARGO" fmt --check --manifest-path oracle/Cargo.toml
    exit
fi

check 'the trace of the library' build ../../firmware/rust/Cargo.toml trace
check 'it prints testdata/trace.txt' sh -c "'$out/cargo/release/trace' | diff - testdata/trace.txt"
check 'the program that answers by the library' build oracle/Cargo.toml tatcell-go-oracle
export TATCELL_ORACLE="$out/cargo/release/tatcell-go-oracle"
tests '' ./...
unset TATCELL_ORACLE
if [ "$("$GO" env CGO_ENABLED)" = 1 ] && have "${CC:-cc}"; then
    tests 'race: ' -race -run 'Goroutines|Inserts|AtOnce|Failure|Streams' ./...
else
    skip 'the race detector' 'no C compiler: apt-get install gcc'
fi
# A big-endian machine and one of 32 bits, in QEMU, whose threads do not bear the signals that preempt goroutines.
for machine in arm:qemu-arm-static s390x:qemu-s390x-static; do
    arch=${machine%%:*} runner=${machine#*:}
    if have "$runner"; then
        check "the trace on $arch" env GODEBUG=asyncpreemptoff=1 CGO_ENABLED=0 GOARCH="$arch" \
            "$GO" test -exec "$runner" -run Trace .
    else
        skip "the trace on $arch" "no $runner: apt-get install qemu-user-static"
    fi
done
./peers.sh "$out" test -v . > "$out/grpc" 2>&1
if grep -q '^SKIP google.golang.org/grpc' "$out/grpc"; then
    skip 'interceptors of google.golang.org/grpc' 'no source of it: apt-get install golang-google-grpc-dev'
else
    check 'interceptors of google.golang.org/grpc' grep '^--- PASS: TestInterceptorsOfGRPC' "$out/grpc"
fi
