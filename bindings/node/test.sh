#!/bin/sh
# Tests the package as npm installs it, as TAP: bindings/node/test.sh FOLDER [lint | compare]. FOLDER takes what is
# built. Without Node 18, npm, or packages and crates from their registries it skips, and says how to get them.
set -u
cd "$(dirname "$0")" || exit 1
out=${1:?folder to build in} NODE=${NODE:-node} NPM=${NPM:-npm} CARGO=${CARGO:-cargo}
mkdir -p "$out" || exit 1
. ../../mk/tap.sh
unset MAKEFLAGS MFLAGS MAKELEVEL

new_enough() { [ "$("$NODE" -p 'process.versions.node.split(".")[0] >= 18' 2> /dev/null)" = true ]; }
syntax() { for file in *.js lib/*.js test/*.js compare/*.js; do "$NODE" --check "$file" || return 1; done; }
none() { pattern=$1; shift; ! LC_ALL=C.UTF-8 grep -nE "$pattern" "$@"; }
# unpacked FOLDER: this package is among those that are installed below $out.
unpacked() {
    rm -rf "$out/$1/node_modules/tatcell" && mkdir "$out/$1/node_modules/tatcell" &&
        tar -xzf "$out"/dist/*.tgz -C "$out/$1/node_modules/tatcell" --strip-components 1
}
copied() { rm -f "$out"/test/*.js && cp test/*.js test/*.ts ../../tests/data/vectors.tsv "$out/test"; }
types() {
    cd "$out/test" && node_modules/.bin/tsc --noEmit --strict --module node16 --target es2022 --types node types.ts
}

if ! new_enough; then skip 'the Node package' 'no Node 18: apt-get install nodejs'; exit; fi
if ! $CARGO fetch --quiet --locked > "$out/fetch.log" 2>&1; then
    missing 'the Node package' 'no crates' "$out/fetch.log"
    exit
fi
case ${2:-} in
lint)
    ../../mk/lint.sh bindings/node
    check 'JavaScript: syntax' syntax
    check 'JavaScript: no line of more than 120 columns' none '.{121}' ./*.js ./*.ts ./*.sh lib/* test/*.js test/*.ts \
        compare/*.js README.md
    check 'JavaScript: no unfinished marker' none 'TO[D]O|FIX[M]E|X[X]X' ./*.js ./*.ts lib/* test/*.js compare/*.js
    exit ;;
compare)
    ./build.sh > /dev/null && ./packages.sh "$out" compare && unpacked compare && cp compare/*.js "$out/compare" &&
        exec ${TIMED:-} "$NODE" "$out/compare/compare.js"
    exit 1 ;;
esac
for tool in "$NPM" python3; do
    have "$tool" || { skip 'the tests of the Node package' "no $tool: apt-get install npm python3"; exit; }
done
check 'the package is built' ./build.sh
if ! ./packages.sh "$out" test > "$out/npm.log" 2>&1; then
    missing 'the tests of the Node package' 'no packages from npm' "$out/npm.log"
    exit
fi
check 'the package is unpacked' unpacked test
check 'the tests stand next to it' copied
check 'a program of TypeScript knows its types' types
cd "$out/test" || exit 1
"$NODE" --expose-gc --test --test-reporter=tap ./*.test.js > "$out/tests" 2>&1
status=$?
grep -E '^ *(ok|not ok) ' "$out/tests"
[ $status = 0 ] || sed -n '/^ *not ok/,/^ *\.\.\./p' "$out/tests" | sed 's/^/# /' | head -n 60
[ $status != 0 ] || [ "$(grep -cE '^ *ok ' "$out/tests")" -ge 80 ] ||
    { echo 'FAIL node --test: fewer than 80 tests'; status=1; }
exit $status
