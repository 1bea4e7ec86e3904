#!/bin/sh
# Plants known bugs, one at a time, in a copy of the tree, and shows that a check notices each.
#
#     dev/planted/run.sh [NAME...]        all bugs, or those of these names; TATCELL_QUICK=1 takes two
#
# A bug is a file NAME.patch: a sentence that says what is wrong, a line 'Check: COMMAND' for each check that notices it
# (TATCELL_QUICK=1 runs the first), and a diff. Each command must pass in the unchanged copy and fail with the patch. It
# runs cargo-nextest, whose exit status tells a failed test (100) from a bug that does not compile (101) and from a
# filter that finds no test (4); only 100 counts as noticed. A patch that no longer applies is a failure.
#
# The copy is a git worktree in target/planted/tree. It has the last commit and the uncommitted changes of tracked
# files. The output is TAP, one line a bug.
set -eu
cd "$(dirname "$0")/../.."
here=$PWD/dev/planted tree=$PWD/target/planted/tree log=$PWD/target/planted/log
# A check runs for seconds; a build may take minutes, the first one most of all.
limit=${TATCELL_PLANTED_SECONDS:-1800}

skip_all() { echo 1..1; echo "ok 1 - planted bugs # SKIP $1"; exit 0; }
cargo nextest --version > /dev/null 2>&1 || skip_all 'cargo-nextest is missing: cargo install cargo-nextest'
commit=$(git -c user.name=planted -c user.email=planted@localhost stash create 2> /dev/null) ||
    skip_all 'this is not a git checkout'
commit=${commit:-$(git rev-parse HEAD)}

if [ $# = 0 ]; then
    for patch in "$here"/*.patch; do set -- "$@" "$(basename "$patch" .patch)"; done
    if [ -n "${TATCELL_QUICK:-}" ]; then
        # Two in a row, from a place that the commit's hash chooses: other ones after each commit.
        first=$((0x$(git rev-parse HEAD | cut -c1-6) % $#))
        set -- $(printf '%s\n' "$@" "$@" | sed -n "$((first + 1)),$((first + 2))p")
    fi
fi

mkdir -p target/planted
# Two runs would plant into one copy.
exec 9> target/planted/lock
flock -n 9 || { echo 'not ok 1 - another run of planted bugs is under way'; exit 1; }
git worktree prune
if [ -e "$tree/.git" ]; then
    git -C "$tree" checkout -q -f --detach "$commit"
else
    git worktree add -q --force --detach "$tree" "$commit"
fi

# Builds that follow each other closely, rather than fast programs.
export CARGO_INCREMENTAL=1 CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_TEST_DEBUG=0
export CARGO_PROFILE_LOOM_LTO=off CARGO_PROFILE_LOOM_CODEGEN_UNITS=64
unset CARGO_TARGET_DIR

# Runs a command in the copy and gives its exit status.
run() {
    status=0
    # Without the lock's descriptor: what outlives an interrupted run must not keep the next one out.
    (cd "$tree" && timeout "$limit" sh -c "$1" 9>&-) < /dev/null > "$log" 2>&1 || status=$?
    echo "$status"
}
why() {
    case $1 in
        0) echo 'passed' ;; 4) echo 'found no test' ;; 100) echo 'failed' ;; 101) echo 'did not compile' ;;
        124) echo "did not end within $limit s" ;; *) echo "ended with status $1" ;;
    esac
}

# Every check first runs in the unchanged copy, once: its status is kept beside it.
known=target/planted/known checks=target/planted/checks tab=$(printf '\t')
checks_of() { sed -n 's/^Check: //p' "$here/$1.patch" | head -n "$most"; }
known_status() { awk -F '\t' -v check="$1" '$2 == check { print $1 }' "$known"; }
most=9
[ -z "${TATCELL_QUICK:-}" ] || most=1
: > "$known"
for name; do
    checks_of "$name" > "$checks"
    while IFS= read -r check; do
        [ -n "$(known_status "$check")" ] || echo "$(run "$check")$tab$check" >> "$known"
    done < "$checks"
done

# Says why the checks of a bug do not show that they notice it; nothing if they do.
notice() {
    checks_of "$1" > "$checks"
    [ -s "$checks" ] || { echo 'it names no check'; return; }
    while IFS= read -r check; do
        clean=$(known_status "$check")
        [ "$clean" = 0 ] || { echo "without the bug its check $(why "$clean"): $check"; return; }
    done < "$checks"
    # One line of context on each side is enough: the text may change around the place of the bug.
    git -C "$tree" apply -p1 -C1 "$here/$1.patch" 2> "$log" || { echo 'the patch does not apply'; return; }
    while IFS= read -r check; do
        status=$(run "$check")
        [ "$status" = 100 ] || { echo "its check $(why "$status"): $check"; break; }
    done < "$checks"
    git -C "$tree" checkout -q -- .
}

echo "1..$#"
failed=0 number=0
for name; do
    number=$((number + 1)) problem=$(notice "$name")
    if [ -z "$problem" ]; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name: $problem"
        sed 's/^/# /' "$log" | tail -n 20
        failed=1
    fi
done
exit $failed
