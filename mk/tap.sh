# tap.sh - read by scripts that print TAP from the root. They set `out`, a folder of their own, and end with "1..$n".
#
#     check NAME COMMAND...   one line; if the command fails, the end of its output
#     skip NAME WHY           what is missing, and how to get it
#     missing NAME WHY LOG    the same, where LOG is what the client of a registry wrote; fails if LOG says that a lock
#                             file is stale, which is an error of the tree
#     unreached LOG           whether LOG says that pip reached no registry; a package or version that the registry does
#                             not have is an error of the tree
n=0
check() {
    n=$((n + 1)) title=$1; shift
    if "$@" > "$out/log" 2>&1; then echo "ok $n - $title"
    else echo "not ok $n - $title"; tail -n 20 "$out/log" | sed 's/^/# /'; fi
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }
missing() {
    if grep -qE -e '--locked|code EUSAGE' "$3"; then check "$1: the lock file is that of its manifest" fails cat "$3"
    else skip "$1" "$2: $(tail -n 1 "$3" | sed 's/^ *//' | cut -c 1-90)"; fi
}
unreached() { grep -qE 'connection broken by|ConnectionError|name resolution' "$1"; }
have() { command -v "$1" > /dev/null; }
fails() { ! "$@"; }
