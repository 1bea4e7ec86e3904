# tap.sh - read by the scripts of this folder: claims in TAP.
#
#     claim NAME COMMAND...   "ok" if the command succeeds, else "not ok" and what the command printed
#     skip NAME WHY           what is missing, and how to get it
#     finish                  the number of claims; the script's last line
#
# $tmp is a folder of the script's own, which is removed at its end. A variable `prefix` stands before each name.
set -u
claims=0 failures=0 prefix=
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

claim() {
    claimed=$prefix$1
    shift
    claims=$((claims + 1))
    if "$@" > "$tmp/said" 2>&1; then
        echo "ok $claims - $claimed"
    else
        failures=$((failures + 1))
        echo "not ok $claims - $claimed"
        head -n 40 "$tmp/said" | sed 's/^/# /'
    fi
}

skip() {
    claims=$((claims + 1))
    echo "ok $claims - $prefix$1 # SKIP $2"
}

finish() {
    echo "1..$claims"
    [ "$failures" = 0 ]
}

have() {
    command -v "$1" > /dev/null
}

# A command that must fail, as a control.
fails() {
    if "$@"; then
        echo "this succeeded: $*"
        return 1
    fi
}
