# tap.sh - read by scripts that print TAP from the root. They set `out`, a folder of their own, and end with "1..$n".
#
#     check NAME COMMAND...   one line; if the command fails, the end of its output
#     skip NAME WHY           what is missing, and how to get it
n=0
check() {
    n=$((n + 1)) title=$1; shift
    if "$@" > "$out/log" 2>&1; then echo "ok $n - $title"
    else echo "not ok $n - $title"; tail -n 20 "$out/log" | sed 's/^/# /'; fi
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }
have() { command -v "$1" > /dev/null; }
fails() { ! "$@"; }
