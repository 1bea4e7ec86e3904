#!/usr/bin/env bash
# Runs every suite of ffi-tests; `make test-ffi` has built them. Exit status 1 if a line says FAIL.
source "$(dirname "$0")/lib.sh"
MAKE=${MAKE:-make}

# suite NAME COMMAND...: passes its lines on with NAME before each claim, and notices one that dies between two lines.
suite() {
    local name=$1 log status
    shift
    log=$("$@" 2>&1 </dev/null)
    status=$?
    sed -E "s/^(PASS|FAIL|SKIP) /\1 $name: /" <<<"$log"
    if [ $status -ne 0 ]; then
        failures=$((failures + 1))
        grep -q '^FAIL ' <<<"$log" || echo "FAIL $name: ended with status $status"
    fi
}

arguments_of() {
    case $1 in
        vectors) echo ffi-tests/data/vectors.tsv ;;
    esac
}

for name in layout codes growth arguments burst vectors property semantics threads process lease host cpp17 cpp20 \
    cpp_tables17 cpp_tables20 archives; do
    suite "$name" "$OUT/plain/$name" $(arguments_of "$name")
done
suite shared "$OUT/shared/semantics"
if have python3; then
    suite foreign python3 ffi-tests/foreign.py "$BUILD/libtatcell.so"
else
    skip foreign "python3 is not installed"
fi
if have luajit; then
    suite luajit luajit ffi-tests/foreign.lua "$BUILD/libtatcell.so"
else
    skip luajit_loads_the_header_and_decides "luajit is not installed (apt-get install luajit)"
fi
suite headers ffi-tests/headers.sh
suite gates ffi-tests/gates.sh

# works FLAG: the compiler has this sanitizer and its programs run here.
works() {
    echo 'int main(void) { return 0; }' | $CC -x c "$1" - -o "$OUT/probe" 2>/dev/null && "$OUT/probe" 2>/dev/null
}

if works -fsanitize=address,undefined; then
    for name in layout codes growth arguments burst vectors semantics threads process property lease host cpp20 \
        cpp_tables20; do
        if ! log=$($MAKE --no-print-directory -s "$OUT/asan/$name" 2>&1); then
            echo "$log"
            fail "asan_$name" "does not compile"
            continue
        fi
        case $name in
            threads) suite "asan_$name" "$OUT/asan/$name" 20 ;;
            property) suite "asan_$name" "$OUT/asan/$name" 100 ;;
            *) suite "asan_$name" "$OUT/asan/$name" $(arguments_of "$name") ;;
        esac
    done
else
    skip asan "$CC -fsanitize=address,undefined does not work here (gcc: apt-get install libasan8 libubsan1; clang: libclang-rt-dev)"
fi

if works -fsanitize=thread; then
    for name in threads codes; do
        if ! log=$($MAKE --no-print-directory -s "$OUT/tsan/$name" 2>&1); then
            echo "$log"
            fail "tsan_$name" "does not compile"
            continue
        fi
        suite "tsan_$name" "$OUT/tsan/$name" 10
    done
else
    skip tsan "$CC -fsanitize=thread does not work here (gcc: apt-get install libtsan2; clang: libclang-rt-dev)"
fi

# memcheck sees the Rust side as well. helgrind and drd take the lock-free words for races, so they prove nothing here.
if have valgrind; then
    VALGRIND="valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite"
    for name in layout vectors semantics burst; do
        suite "memcheck_$name" $VALGRIND "$OUT/plain/$name" $(arguments_of "$name")
    done
    suite memcheck_property $VALGRIND "$OUT/plain/property" 12
    for name in cpp17 cpp_tables17; do
        suite "memcheck_$name" $VALGRIND "$OUT/plain/$name"
    done
else
    skip memcheck "valgrind is not installed (apt-get install valgrind)"
fi
done_testing
