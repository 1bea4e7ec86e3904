#!/usr/bin/env bash
# The headers compile alone, twice, under every standard they promise, and their example programs run.
source "$(dirname "$0")/lib.sh"
STRICT="-Wall -Wextra -Werror -pedantic -Iinclude"

# Every initialiser and the macro for static memory are used, so that their warnings are seen.
{
    printf '#include "tatcell.h"\n#include "tatcell_host.h"\n#include "tatcell.h"\n#include "tatcell_host.h"\n'
    sed -n 's/^#define \(TATCELL_\([A-Z0-9_]*\)_INIT\).*/\1 \2/p' include/tatcell.h include/tatcell_host.h |
        while read -r init noun; do
            echo "static tatcell_$(tr 'A-Z' 'a-z' <<<"$noun")_t made_$noun = $init;"
            echo "static void use_$noun(void) { (void)made_$noun; }"
            echo "use_$noun();" >&3
        done 3>"$OUT/uses.txt"
    echo 'static TATCELL_ALIGNED(TATCELL_TABLE_MEMORY_ALIGN) unsigned char memory[TATCELL_TABLE_BYTES(100)];'
    echo 'int main(void) {'
    cat "$OUT/uses.txt"
    echo 'return tatcell_version() != TATCELL_VERSION || memory[0] != sizeof memory - tatcell_table_bytes(100); }'
} >"$OUT/twice.c"
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
    [ "$(grep -c 'error:' "$OUT/old.log")" = 1 ] && grep -q 'error:.*C++17' "$OUT/old.log" && return
    cat "$OUT/old.log"
    return 1
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

# The kernel and vmlinux.h bring their own types and no <stdint.h>; a user may bring types, attributes and asserts.
mkdir -p "$OUT/kernel/linux"
TYPES='typedef unsigned char uint8_t; typedef unsigned int uint32_t; typedef int int32_t; typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t; typedef __SIZE_TYPE__ size_t;'
echo "$TYPES" >"$OUT/kernel/linux/types.h"
echo 'int use(void); int use(void) { tatcell_burst_t b = TATCELL_BURST_INIT; return (int)(TATCELL_SKEW_NONE >> 63) + (int)b.count; }' \
    >"$OUT/use.txt"
kernel() { # FLAGS AND PREFIX: compiles without any include folder of the system
    local prefix=$1
    shift
    { echo "$prefix"; printf '#include "tatcell.h"\n'; cat "$OUT/use.txt"; } >"$OUT/kernel.c"
    $CC -std=gnu11 -nostdinc $STRICT "$@" -c "$OUT/kernel.c" -o "$OUT/kernel.o"
}
claim header_compiles_in_a_kernel kernel '' -D__KERNEL__ -I"$OUT/kernel"
claim header_compiles_beside_vmlinux_h kernel "#define __VMLINUX_H__ 1
$TYPES"
claim header_compiles_with_types_of_the_user kernel "#define TATCELL_NO_STDINT
$TYPES"
own_macros() {
    printf '%s\n' '#define TATCELL_API __attribute__((visibility("default")))' '#define TATCELL_NODISCARD __attribute__((warn_unused_result))' \
        '#define TATCELL_ALIGNED(n)' '#define TATCELL_NO_ASSERT' '#include "tatcell_host.h"' 'int main(void) { return 0; }' >"$OUT/own.c"
    $CC -std=c11 $STRICT -fsyntax-only "$OUT/own.c"
    $CC -E -P -Iinclude "$OUT/own.c" | grep -q 'warn_unused_result)) __attribute__((visibility("default")))' || { echo "not used"; return 1; }
    ! $CC -E -P -Iinclude "$OUT/own.c" | grep -q _Static_assert
}
claim api_alignment_nodiscard_and_asserts_are_the_users_to_define own_macros
discarded() { # a verdict that nobody looks at is a warning in C++17
    printf '#include "tatcell.h"\nvoid f(tatcell_cell_t *c, const tatcell_limit_t *l) { tatcell_cell_check(c, l, 0, 1, 0); }\n' >"$OUT/discard.cpp"
    ! $CXX -std=c++17 -Iinclude -Werror -fsyntax-only "$OUT/discard.cpp" 2>/dev/null && $CXX -std=c++14 -Iinclude -Werror -fsyntax-only "$OUT/discard.cpp"
}
claim a_discarded_verdict_is_a_warning discarded

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
refused limits_of_cells_are_none_of_tables \
    'tatcell::limit l; tatcell::table t; (void)t.check(l, tatcell::instant(0), "k");'
refused owners_of_memory_are_no_keys 'struct s { ~s(); int *p; } o; tatcell::key k(o);'
refused burst_keys_with_padding_do_not_compile 'padded p[2] = {}; tatcell::burst b; b.keys(p);'
refused cells_of_32_bits_have_no_exclusive_check \
    'tatcell::limit32 l; tatcell::cell32 c; (void)c.ref().check_exclusive(l, tatcell::instant(0));'
refused verdicts_are_looked_at 'tatcell::limit l; tatcell::cell c; c.check(l, tatcell::instant(0));'

# The programs in the comment at the top of tatcell.h: extracted, compiled as strictly as anything, and run.
example_runs() { # NUMBER, expected output on stdin
    awk -v want="$1" '/^ \*   #include <stdio.h>/{n++; on = n == want} on && /^ \*/{sub(/^ \*/, ""); sub(/^   /, ""); print; if ($0 == "}") exit}' \
        include/tatcell.h >"$OUT/example$1.c"
    [ "$(wc -l <"$OUT/example$1.c")" -gt 10 ] || { echo "no program found in the header"; return 1; }
    $CC -std=c99 $STRICT -O2 "$OUT/example$1.c" "$BUILD/libtatcell.a" -o "$OUT/example$1" || return 1
    "$OUT/example$1" >"$OUT/example$1.out" || return 1
    diff - "$OUT/example$1.out"
}
cell_program() {
    {
        for i in 1 2 3 4 5; do echo "request $i: passes, retry after 0 ns"; done
        echo "request 6: does not conform now, retry after 1000000000 ns"
    } | example_runs 1
}
table_program() { printf 'one key: passes\nburst: passes, bits 7\n' | example_runs 2; }
claim cell_program_in_header_comment_runs cell_program
claim table_program_in_header_comment_runs table_program

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
claim every_host_function_is_documented_completely python3 ffi-tests/docs.py include/tatcell_host.h include/tatcell.h
done_testing
