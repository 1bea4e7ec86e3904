#!/usr/bin/env bash
# The headers compile alone, twice, under every standard they promise, and their example programs run.
source "$(dirname "$0")/lib.sh"
STRICT="-Wall -Wextra -Werror -pedantic -Iinclude"

printf '#include "tatcell.h"\n#include "tatcell.h"\nint main(void) { return tatcell_version() != TATCELL_VERSION; }\n' \
    >"$OUT/twice.c"
cp "$OUT/twice.c" "$OUT/twice.cpp"
printf '#include "tatcell.hpp"\n#include "tatcell.hpp"\n#include "tatcell.h"\nint main() { return tatcell::cell().ref().reset() ? 0 : 1; }\n' \
    >"$OUT/wrapper.cpp"

# Several words of warnings that a careful user turns on: the header must not add to them.
MORE="-Wshadow -Wundef -Wconversion -Wstrict-prototypes -Wmissing-prototypes"
MOREXX="-Wshadow -Wundef -Wconversion -Wold-style-cast -Wnon-virtual-dtor"

# Below C++17: one error that says so, and no wall of those that follow from it.
one_error() {
    printf '#include "tatcell.hpp"\n#include "tatcell.hpp"\nint main() { return 0; }\n' >"$OUT/old.cpp"
    LC_ALL=C "$@" -Iinclude -fsyntax-only "$OUT/old.cpp" 2>"$OUT/old.log" && { echo "it compiles"; return 1; }
    [ "$(grep -c 'error:' "$OUT/old.log")" = 1 ] && grep -q 'error:.*C++17' "$OUT/old.log" || { cat "$OUT/old.log"; return 1; }
}

for compilers in "$CC $CXX" "clang clang++"; do
    read -r cc cxx <<<"$compilers"
    if ! have "$cc" || ! have "$cxx"; then
        skip "headers_compile_with_$cc" "$cc is not installed (apt-get install clang)"
        continue
    fi
    [ "$cc" = clang ] && "$CC" --version | grep -q clang && continue
    for std in c99 c11 c17; do
        claim "header_compiles_as_${std}_with_$cc" $cc -std=$std $STRICT $MORE -fsyntax-only "$OUT/twice.c"
    done
    for std in c++11 c++17 c++20; do
        claim "header_compiles_as_${std}_with_$cxx" $cxx -std=$std $STRICT $MOREXX -fsyntax-only "$OUT/twice.cpp"
    done
    for std in c++17 c++20; do
        claim "wrapper_compiles_as_${std}_with_$cxx" \
            $cxx -std=$std $STRICT $MOREXX -fno-exceptions -fno-rtti -fsyntax-only "$OUT/wrapper.cpp"
        for suite in cpp cpp_tables; do
            claim "wrapper_adds_no_warning_to_${suite}_as_${std}_with_$cxx" \
                $cxx -std=$std $STRICT ${MOREXX/-Wold-style-cast/} -fno-exceptions -fno-rtti -fsyntax-only \
                "ffi-tests/$suite.cpp"
        done
    done
    for std in c++98 c++11 c++14; do
        claim "wrapper_is_one_error_as_${std}_with_$cxx" one_error $cxx -std=$std
    done
done

# What must not compile: keys with padding, pointers as keys, a limit of the other width, a raw number as time.
refused() {
    printf '#include "tatcell.hpp"\n#include <span>\nstruct padded { char a; int b; };\nint main() { %s }\n' "$2" >"$OUT/refused.cpp"
    if $CXX -std=c++20 -Werror=unused-result -Iinclude -fsyntax-only "$OUT/refused.cpp" 2>/dev/null; then
        fail "$1" "it compiles: $2"
    else
        pass "$1"
    fi
}
refused padded_keys_do_not_compile 'padded p{1, 2}; tatcell::key k(p);'
refused pointer_keys_do_not_compile 'int i = 0; tatcell::key k(&i);'
refused limits_of_the_other_width_do_not_compile 'tatcell::limit32 l; tatcell::cell c; (void)c.check(l, tatcell::instant(0));'
refused raw_numbers_are_no_time 'tatcell::limit l; tatcell::cell c; (void)c.check(l, 5);'
refused cells_cannot_be_copied 'tatcell::cell a; tatcell::cell b(a);'
refused leases_cannot_be_copied 'tatcell::lease a; tatcell::lease b(a);'
refused raw_numbers_are_no_durations 'tatcell::limit l; (void)l.init(1, 1000, 5);'
refused limits_of_cells_are_none_of_tables 'tatcell::limit l; tatcell::table t; (void)t.check(l, tatcell::instant(0), "k");'
refused owners_of_memory_are_no_keys 'struct s { ~s(); int *p; } o; tatcell::key k(o);'
refused burst_keys_with_padding_do_not_compile 'padded p[2] = {}; tatcell::burst b; b.keys(p);'
refused 32_bit_cells_have_no_exclusive_check 'tatcell::limit32 l; tatcell::cell32 c; (void)c.ref().check_exclusive(l, tatcell::instant(0));'
refused verdicts_are_looked_at 'tatcell::limit l; tatcell::cell c; c.check(l, tatcell::instant(0));'

# The program in the comment at the top of tatcell.h: extracted, compiled as strictly as anything, and run.
example_runs() {
    awk '/^ \*   #include <stdio.h>/{on=1} on && /^ \*   ?/{sub(/^ \*   ?/, ""); print; if ($0 == "}") exit}' \
        include/tatcell.h >"$OUT/example.c"
    [ "$(wc -l <"$OUT/example.c")" -gt 10 ] || { echo "no program found in the header"; return 1; }
    $CC -std=c99 $STRICT -O2 "$OUT/example.c" "$BUILD/libtatcell.a" -o "$OUT/example" || return 1
    "$OUT/example" >"$OUT/example.out" || return 1
    {
        for i in 1 2 3 4 5; do echo "request $i: passes, retry after 0 ns"; done
        echo "request 6: does not conform now, retry after 1000000000 ns"
    } | diff - "$OUT/example.out"
}
claim example_in_header_comment_runs example_runs

# Both programs in the comment at the top of tatcell.hpp.
wrapper_examples_run() {
    rm -f "$OUT"/wrapper_example*
    awk -v out="$OUT/wrapper_example" '/^\/\/   #include <cstdio>/{on=1; n++}
        on && /^\/\/   ?/{sub(/^\/\/   ?/, ""); print >(out n ".cpp"); if ($0 == "}") on=0}' include/tatcell.hpp
    local n
    for n in 1 2; do
        [ "$(wc -l <"$OUT/wrapper_example$n.cpp")" -gt 10 ] || { echo "no program $n found"; return 1; }
        $CXX -std=c++17 $STRICT $MOREXX -O2 "$OUT/wrapper_example$n.cpp" "$BUILD/libtatcell.a" \
            -o "$OUT/wrapper_example$n" || return 1
        "$OUT/wrapper_example$n" || return 1
    done >"$OUT/wrapper_example.out" 2>&1
    {
        for i in 1 2 3 4 5; do echo "request $i: passes, retry after 0 ns"; done
        echo "request 6: does not conform now, retry after 1000000000 ns"
        echo "one key: passes"
        echo "burst: passes, 1110"
        echo "leaves after 100000000 ns"
    } | diff - "$OUT/wrapper_example.out"
}
claim examples_in_wrapper_comment_run wrapper_examples_run

# Every function documents itself completely: STYLE 15.
claim every_function_is_documented_completely python3 ffi-tests/docs.py include/tatcell.h
done_testing
