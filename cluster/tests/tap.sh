# Read by scripts that speak TAP: claim, skip, done_testing. Each claim says who makes it: $part.
number=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# claim NAME COMMAND...: passes where the command does; of one that fails the last lines follow. Returns whether it passed.
claim() {
    claimed=$1
    shift
    number=$((number + 1))
    if "$@" > "$log" 2>&1 < /dev/null; then
        echo "ok $number - $part: $claimed"
    else
        failed=1
        echo "not ok $number - $part: $claimed"
        tail -n 30 "$log" | sed 's/^/# /'
        return 1
    fi
}

# skip NAME WHY
skip() {
    number=$((number + 1))
    echo "ok $number - $part: $1 # SKIP $2"
}

# have PROGRAM: whether it is installed.
have() { command -v "$1" > /dev/null; }

# Fails with these words.
fault() {
    echo "$*"
    return 1
}

# same WHAT FILE FILE: fails where two lists differ, and shows how.
same() { diff "$2" "$3" || fault "$1: < is what is wanted, > is what is there"; }

done_testing() {
    echo "1..$number"
    exit $failed
}
