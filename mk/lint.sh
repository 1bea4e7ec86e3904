#!/bin/sh
# Lints one Cargo workspace, as TAP: mk/lint.sh FOLDER [SOURCES...]
#
# FOLDER is `.`, bindings/node, bindings/tower, cli, cluster or dev: each has a Cargo.toml of its own. SOURCES are the
# folders below it whose atomic accesses must name their ordering (src, if left out). The root leaves the other parts to
# themselves.
set -u
folder=${1:?folder of a workspace}; shift
cd "$(dirname "$0")/../$folder" || exit 1
CARGO=${CARGO:-cargo} n=0 log=$(mktemp)
trap 'rm -f "$log"' EXIT
parts=
[ "$folder" != . ] || parts=':!bindings :!cli :!cluster :!dev :!firmware :!integrations'

check() {
    n=$((n + 1)) title=$1; shift
    if "$@" > "$log" 2>&1; then echo "ok $n - $folder: $title"
    else echo "not ok $n - $folder: $title"; tail -n 30 "$log" | sed 's/^/# /'; fi
}
# tool COMPONENT NAME COMMAND...: the check, if the component of Rust is there.
tool() {
    component=$1 title=$2; shift 2
    if $CARGO "$component" --version > /dev/null 2>&1; then check "$title" "$@"
    else n=$((n + 1)); echo "ok $n - $folder: $title # SKIP no $component: rustup component add $component"; fi
}
clippy() { $CARGO clippy --quiet "$@" -- -D warnings -D clippy::undocumented_unsafe_blocks; }
# none PATTERN FILES...: git finds the pattern in no such file.
none() { pattern=$1; shift; ! LC_ALL=C.UTF-8 git grep -nE "$pattern" -- "$@" $parts; }
# Within six lines above each atomic access a comment says ORDERING and why. Models and tests need none.
orderings() {
    files=$(git ls-files "$@" | grep '\.rs$' | grep -vE '(/loom[^/]*|_tests\.rs|/tests/.*|/models/.*)$')
    [ -n "$files" ] || { echo "no sources in $*"; return 1; }
    awk 'FNR == 1 { said = -9 } /ORDERING/ { said = FNR }
        /Ordering::(Relaxed|Acquire|Release|AcqRel|SeqCst)/ && FNR - said > 6 { print FILENAME ":" FNR; bad = 1 }
        END { exit bad }' $files
}

# The pages are made, and each item that has a page has an example on it. An older page may be left of an item that is
# gone.
rustdoc() {
    pages=${CARGO_TARGET_DIR:-target}/doc
    rm -rf "$pages" && RUSTDOCFLAGS='-D warnings' $CARGO doc --quiet --no-deps "$@" || return 1
    # Not the pages of sources, nor those that only lead to another page.
    bare=$(grep -rlZ --exclude-dir=src --include='[a-z]*.[A-Za-z]*.html' 'id="main-content"' "$pages" |
        xargs -0 grep -L rust-example-rendered)
    [ -z "$bare" ] || { printf 'without an example:\n%s\n' "$bare"; return 1; }
}

tool fmt 'formatting' $CARGO fmt --all --check
if [ "$folder" = . ]; then
    tool clippy 'clippy, without features' clippy -p tatcell --lib
    tool clippy 'clippy, the C ABI' clippy -p tatcell --lib --features capi,host
    tool clippy 'clippy, everything' clippy --workspace --all-targets \
        --features tatcell/std,tatcell/capi,tatcell/host,tatcell/heapless
    check 'rustdoc, with an example for each item' rustdoc -p tatcell --features capi,host,heapless
elif [ "${folder%%/*}" = bindings ]; then
    tool clippy 'clippy' clippy --workspace --all-targets --all-features
    # Nobody but its own JavaScript calls the addon of Node.
    if [ "$folder" != bindings/node ]; then check 'rustdoc, with an example for each item' rustdoc --all-features
    else check 'rustdoc' env RUSTDOCFLAGS='-D warnings' $CARGO doc --quiet --no-deps --all-features; fi
elif [ "$folder" = cluster ]; then
    features=tatcell-cluster/tokio,tatcell-cluster/tls
    tool clippy 'clippy' clippy --workspace --all-targets --features $features
    check 'rustdoc' env RUSTDOCFLAGS='-D warnings' $CARGO doc --quiet --no-deps --workspace --features $features
else
    tool clippy 'clippy' clippy --workspace --all-targets
fi
# The tools in dev are not shipped, and most of them do without these comments.
[ "$folder" = dev ] || check 'each atomic access names its ordering' orderings "${@:-src}"
check 'no unfinished marker' none 'TO[D]O|FIX[M]E|X[X]X|todo[!]|unimplemented[!]' \
    '*.rs' '*.c' '*.h' '*.hpp' '*.md' '*.mk'
check 'no line of more than 120 columns' none '.{121}' '*.rs' '*.c' '*.h' '*.hpp' '*.cpp'
echo "1..$n"
