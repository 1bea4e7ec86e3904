# lib.sh - for the suites that are scripts: one PASS, FAIL or SKIP line per claim, as check.h prints them.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
CC=${CC:-cc} CXX=${CXX:-c++} CARGO=${CARGO:-cargo} RUSTC=${RUSTC:-rustc} BUILD=${BUILD:-target/c} OUT=${OUT:-target/ffi}
mkdir -p "$OUT"
failures=0

pass() { echo "PASS $1"; }
skip() { echo "SKIP $1: $2"; }
fail() {
    echo "FAIL $1: ${2:-}"
    failures=$((failures + 1))
}

# claim NAME COMMAND...: the command succeeds. Its output is shown if it does not.
claim() {
    local name=$1 log
    shift
    if log=$("$@" 2>&1); then
        pass "$name"
    else
        [ -z "$log" ] || echo "$log"
        fail "$name" "${log%%$'\n'*}"
    fi
}

# same A B: two files are equal, else their difference.
same() { diff -u "$1" "$2"; }

have() { command -v "$1" >/dev/null 2>&1; }

done_testing() { exit $((failures != 0)); }
