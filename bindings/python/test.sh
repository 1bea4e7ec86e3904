#!/bin/sh
# Tests the wheel: bindings/python/test.sh VENV [lint]
# It prints lines PASS, FAIL and SKIP. Without Python 3.11, venv or PyPI it skips, and says how to get them.
set -u
cd "$(dirname "$0")" || exit 1
venv=$1 out=$(dirname "$1")
# What make tells its parts is not for the make that builds the library.
unset MAKEFLAGS MFLAGS MAKELEVEL
export PYTHONDONTWRITEBYTECODE=1 MYPY_CACHE_DIR="$out/mypy"

# said NAME COMMAND...
said() {
    name=$1; shift
    if "$@" > "$out/log" 2>&1; then echo "PASS $name"
    else echo "FAIL $name"; tail -n 30 "$out/log"; return 1; fi
}
# none PATTERN: in no line of the C sources.
none() { ls ext/*.c && fails env LC_ALL=C.UTF-8 grep -nE "$1" ext/*.[ch]; }
. ../../mk/tap.sh

mkdir -p "$out"
if ! make -s "$venv/ready" > "$out/log" 2>&1; then
    why=$(grep -v '^make' "$out/log" | tail -n 1)
    unreached "$out/log" || grep -qE 'older than 3\.11|ensurepip|not found$' "$out/log" ||
        { echo "FAIL packages of requirements.txt: $why"; exit 1; }
    echo "SKIP python: $why (needs PyPI, and Python 3.11 with venv: apt-get install python3-venv)"
    exit 0
fi
if [ "${2:-}" = lint ]; then
    said format "$venv/bin/ruff" format --no-cache --check . ../../packaging/test/readme.py
    said ruff "$venv/bin/ruff" check --no-cache . ../../packaging/test/readme.py
    said columns none '.{121}'
    said markers none 'TO[D]O|FIX[M]E|X[X]X'
    said types_of_the_package "$venv/bin/mypy" --strict src/tatcell
    exit
fi
said wheel env CFLAGS=-Werror ./build.sh "$venv/bin/python" || exit 1
said install "$venv/bin/pip" install --quiet --force-reinstall --no-deps "$out"/dist/*.whl || exit 1
# The tests and the programs of the README, as a user's, against the types that the wheel installs.
rm -rf "$out/readme" && mkdir "$out/readme"
awk -v out="$out/readme" '/^```python$/ { file = out "/program" ++n ".py"; next } /^```/ { file = "" }
    file { print > file }' README.md
said types_of_a_program "$venv/bin/mypy" --strict tests "$out"/readme/*.py
rm -f "$out/lines"
TATCELL_LINES="$out/lines" "$venv/bin/python" -bb -m pytest -q -p no:cacheprovider --no-header tests > "$out/tests" 2>&1
status=$?
cat "$out/lines"
[ $status = 0 ] || sed -n '/^=.* FAILURES/,$p' "$out/tests" | tail -n 60
[ $status != 0 ] || [ "$(grep -c '^PASS ' "$out/lines")" -ge 250 ] ||
    { echo 'FAIL pytest: fewer than 250 tests'; status=1; }
exit $status
