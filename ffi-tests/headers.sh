#!/bin/sh
# The installed headers: each compiles alone, twice, under every standard it promises; what must not compile does not;
# the programs in their comments run. From the root; environment: CC, CXX, INC, LIB.
. ffi-tests/tap.sh
strict='-Wall -Wextra -Werror -pedantic'
# Warnings that a careful user turns on: the headers must not add to them.
more_c='-Wshadow -Wundef -Wconversion -Wstrict-prototypes -Wmissing-prototypes'
more_cxx='-Wshadow -Wundef -Wconversion -Wnon-virtual-dtor'
no_runtime='-fno-exceptions -fno-rtti'
prefix='headers: '

# The list of what `make install` installs. tatcell.ffi.h is not C: it is for the parsers of LuaJIT and of Python.
installed=$(sed -n ':more; /\\$/ { N; s/\\\n//; b more }; s/^HEADERS := *//p' $(ls Makefile mk/*.mk 2> /dev/null))
all_installed() {
    there=$(cd "$INC" && ls *.h *.hpp | grep -vx tatcell_small.h)
    echo "$installed" | tr -s ' ' '\n' | LC_ALL=C sort > "$tmp/installed"
    echo "$there" | LC_ALL=C sort | diff "$tmp/installed" -
}
claim every_header_is_installed_but_the_one_for_firmware all_installed

# A program that includes a header twice and uses every initialiser in it, so that its warnings are seen.
program() {
    printf '#include "%s"\n#include "%s"\n' "$1" "$1"
    case $1 in
        *.hpp) echo 'int main() { tatcell::cell c; return c.ref().reset() ? 0 : 1; }'; return ;;
        tatcell.h)
            echo 'static TATCELL_ALIGNED(TATCELL_TABLE_MEMORY_ALIGN) unsigned char memory[TATCELL_TABLE_BYTES(100)];'
            value='tatcell_version() != TATCELL_VERSION || memory[0] != sizeof memory - tatcell_table_bytes(100)' ;;
        *) value=0 ;;
    esac
    nouns=$(sed -n 's/^#define TATCELL_\([A-Z0-9_]*\)_INIT.*/\1/p' "$INC/$1")
    for noun in $nouns; do
        low=$(echo "$noun" | tr A-Z a-z)
        echo "static tatcell_${low}_t made_$low = TATCELL_${noun}_INIT;"
        echo "static void use_$low(void) { (void)made_$low; }"
    done
    echo 'int main(void) {'
    for noun in $nouns; do echo "    use_$(echo "$noun" | tr A-Z a-z)();"; done
    echo "    return $value;"
    echo '}'
}
for header in $installed; do
    program "$header" > "$tmp/$header.c"
    cp "$tmp/$header.c" "$tmp/$header.cpp"
done

compiles() { "$@" -I"$INC" -fsyntax-only; }
# Does this compiler know the standard?
knows() { echo 'int x;' | $1 -std="$2" -fsyntax-only -x "$3" - 2> /dev/null; }
# A wrapper that is read under an older standard is one error, which names C++17.
one_error() {
    printf '#include "tatcell.hpp"\n#include "tatcell.hpp"\nint main() { return 0; }\n' > "$tmp/old.cpp"
    LC_ALL=C fails $1 -std="$2" -I"$INC" -fsyntax-only "$tmp/old.cpp" > "$tmp/errors" 2>&1 &&
        [ "$(grep -c 'error:' "$tmp/errors")" = 1 ] && grep -q 'error:.*C++17' "$tmp/errors" ||
        { cat "$tmp/errors"; return 1; }
}
# An unused verdict is a warning, unless TATCELL_IGNORE makes the call or the program has turned the warnings off. It
# takes more than -fsyntax-only: gcc warns when it makes code.
unused() {
    while read -r header call; do
        printf '#include "%s"\nvoid f(void);\nvoid f(void) { CALL(%s); }\n' "$header" "$call" > "$tmp/unused.c"
        makes="$1 -std=$2 $strict -Wundef -Wconversion -I$INC -c $tmp/unused.c -o $tmp/unused.o"
        $makes -DCALL=TATCELL_IGNORE && $makes '-DCALL(call)=call' -DTATCELL_NODISCARD= &&
            fails $makes '-DCALL(call)=call' || return 1
    done << 'EOF'
tatcell.h tatcell_cell_check(0, 0, 0, 1, 0)
tatcell_host.h tatcell_host_random(0, 16, 0)
tatcell_small.h tatcell_small_check(0, 0, 0, 1)
tatcell_bpf.h tatcell_bpf_cell_check(0, 0, 0, 1, 0)
tatcell_inline.h tatcell_inline_cell_check(0, 0, 0, 1, 0)
EOF
}
# refused.txt as a program: line 2 or 3 of each record, in a function of its own whose file is the record's name.
lines() {
    awk -v line="$1" '
        /^[a-z_0-9]+$/ { name = $0; number = 1; next }
        /^    / && ++number == line { printf "#line 1 \"%s\"\nvoid %s() { %s }\n", name, name, $0 }' \
        ffi-tests/refused.txt > "$tmp/lines.inc"
    cat > "$tmp/lines.cpp" << 'EOF'
#include <array>
#include <cstring>
#include <string>
#include <vector>
#include "tatcell.hpp"
using namespace std::chrono_literals;
extern tatcell::cell cell;
extern tatcell::cell32 narrow_cell;
extern tatcell::limit limit;
extern tatcell::limit32 narrow_limit;
extern tatcell::table table;
extern tatcell::table_limit per_key;
extern tatcell::lease lease;
extern tatcell::decision decision;
extern tatcell::burst burst;
extern tatcell::host::memory memory;
extern tatcell::host::owned_table owned;
extern tatcell::ladder_burst addresses;
extern tatcell::prefix_lengths lengths;
extern tatcell::http_policy policy;
extern std::string user;
extern std::uint32_t number, numbers[2];
struct with_padding { char c; int i; };
extern with_padding padded, all_padded[2];
constexpr tatcell::instant now(0);
constexpr tatcell::limit_spec spec(1, 1s, 1);
std::vector<tatcell::link> links();
#include "lines.inc"
EOF
    $2 -std="$3" -I"$INC" -fsyntax-only $4 "$tmp/lines.cpp" > "$tmp/lines.out" 2>&1
}
right_lines() { lines 2 "$1" "$2" "$strict" || { cat "$tmp/lines.out"; return 1; }; }
# Each wrong line is an error, or leads to one inside the header. clang also warns about lines that gcc lets pass.
wrong_lines() {
    more='-fmax-errors=0 -Werror=unused-result'
    ! $1 --version | grep -q clang || more='-ferror-limit=0 -Werror=unused-result -Werror=dangling'
    fails lines 3 "$1" "$2" "$more" > /dev/null || return 1
    [ "$(wc -l < "$tmp/names")" -gt 30 ] || return 1
    while read -r name; do
        case $name$more in clang_*max-errors*) continue ;; esac
        grep -Eq "^$name:1:[0-9]+:( error|   | note: in instantiation)" "$tmp/lines.out" ||
            { echo "$name compiles"; compiled=1; }
    done < "$tmp/names"
    [ -z "${compiled-}" ]
}
grep '^[a-z_0-9]*$' ffi-tests/refused.txt | grep . > "$tmp/names"
with_compilers() {
    cc=$1 cxx=$2
    for header in $installed; do
        case $header in *.ffi.h) continue ;; *.hpp) c= cplus='c++17 c++20 c++23' extra=$no_runtime ;;
            *) c='c99 c11 c17 c2x' cplus='c++11 c++14 c++17 c++20 c++23' extra= ;; esac
        for std in $c; do
            knows "$cc" "$std" c || continue
            claim "${header}_compiles_as_${std}_with_$cc" compiles $cc -std="$std" $strict $more_c "$tmp/$header.c"
        done
        for std in $cplus; do
            knows "$cxx" "$std" c++ || continue
            claim "${header}_compiles_as_${std}_with_$cxx" \
                compiles $cxx -std="$std" $strict $more_cxx -Wold-style-cast $extra "$tmp/$header.cpp"
        done
    done
    for std in c99 c11 c17 c2x; do
        knows "$cc" "$std" c && claim "an_unused_verdict_is_a_warning_as_${std}_with_$cc" unused "$cc -x c" "$std"
    done
    for std in c++11 c++14 c++17 c++20; do
        claim "an_unused_verdict_is_a_warning_as_${std}_with_$cxx" unused "$cxx -x c++" "$std"
    done
    # The wrapper adds no warning to programs that use all of it. (The Makefile runs those of C++20.)
    for std in c++17 c++20; do
        for test in cpp cpp_chain cpp_meters cpp_shaper cpp_tables; do
            claim "wrapper_adds_no_warning_to_${test}_as_${std}_with_$cxx" \
                compiles $cxx -std="$std" $strict $more_cxx $no_runtime "ffi-tests/$test.cpp"
        done
    done
    for std in c++17 c++20 c++23; do
        knows "$cxx" "$std" c++ || continue
        claim "wrapper_compiles_the_right_lines_as_${std}_with_$cxx" right_lines "$cxx" "$std"
        claim "wrapper_refuses_each_wrong_line_as_${std}_with_$cxx" wrong_lines "$cxx" "$std"
    done
    for std in c++98 c++11 c++14; do claim "wrapper_is_one_error_as_${std}_with_$cxx" one_error "$cxx" "$std"; done
}
with_compilers "$CC" "$CXX"
if $CC --version | grep -q clang; then :
elif have clang && have clang++; then with_compilers clang clang++
else skip headers_compile_with_clang 'clang is missing: apt-get install clang'; fi

# Without any include folder of the system: the kernel and vmlinux.h bring types of their own, and so may a user.
types='typedef unsigned char uint8_t; typedef unsigned int uint32_t; typedef int int32_t;
typedef __INT64_TYPE__ int64_t; typedef __UINT64_TYPE__ uint64_t; typedef __SIZE_TYPE__ size_t;'
mkdir -p "$tmp/kernel/linux"
echo "$types" > "$tmp/kernel/linux/types.h"
no_stdint() {
    { printf '%s\n' "$1"
      echo '#include "tatcell.h"'
      echo 'int use(void); int use(void) { tatcell_burst_t b = TATCELL_BURST_INIT;'
      echo 'return (int)(TATCELL_SKEW_NONE >> 63) + (int)b.count; }'; } > "$tmp/kernel.c"
    shift
    $CC -std=gnu11 -nostdinc "$@" $strict -I"$tmp/kernel" -I"$INC" -c "$tmp/kernel.c" -o "$tmp/kernel.o"
}
claim header_compiles_in_a_kernel no_stdint '' -D__KERNEL__
claim header_compiles_beside_vmlinux_h no_stdint "#define __VMLINUX_H__ 1
$types"
claim header_compiles_with_types_of_the_user no_stdint "#define TATCELL_NO_STDINT
$types"

# Macros of the header that a user defines otherwise.
own_macros() {
    cat > "$tmp/own.c" << 'EOF'
#define TATCELL_API __attribute__((visibility("default")))
#define TATCELL_NODISCARD __attribute__((warn_unused_result))
#define TATCELL_ALIGNED(n)
#define TATCELL_NO_ASSERT
#include "tatcell_host.h"
int main(void) { return 0; }
EOF
    compiles $CC -std=c11 $strict "$tmp/own.c" && $CC -std=c11 -E -P -I"$INC" "$tmp/own.c" > "$tmp/own.i" &&
        grep -qF '__attribute__((warn_unused_result)) __attribute__((visibility("default")))' "$tmp/own.i" &&
        fails grep _Static_assert "$tmp/own.i"
}
claim api_alignment_nodiscard_and_asserts_are_the_users_to_define own_macros
# The programs in the comments at the top: compiled as strictly as anything, and run. Programs of a comment go into
# example1, example2, ..., and what they print together must be the text behind the compiler.
comment_programs() {
    rm -f "$tmp"/example*
    awk -v out="$tmp/example" -v end="$2" '
        !open && /^( \*|\/\/)   #include/ { open = 1; n++ }
        open { line = substr($0, 6); print line > (out n end); if (line == "}") open = 0 }' "$1"
}
examples() {
    wanted=$1 names=$2
    shift 2
    : > "$tmp/printed"
    for name in $names; do
        "$@" -I"$INC" -O2 $strict "$tmp/$name" "$LIB/libtatcell.a" -o "$tmp/example" &&
            "$tmp/example" >> "$tmp/printed" || return 1
    done
    printf '%b' "$wanted" | diff - "$tmp/printed"
}
requests=$(for i in 1 2 3 4 5; do printf 'request %s: passes, retry after 0 ns\\n' $i; done
    printf 'request 6: does not conform now, retry after 1000000000 ns\\n')
comment_programs "$INC/tatcell.h" .c
claim cell_program_in_header_comment_runs examples "$requests" example1.c $CC -std=c99
claim table_program_in_header_comment_runs examples 'one key: passes\nburst: passes, bits 7\n' example2.c $CC -std=c99
comment_programs "$INC/tatcell.hpp" .cpp
claim programs_in_wrapper_comment_run examples \
    "${requests}one key: passes\nburst: passes, 1110\nleaves after 100000000 ns\n" 'example1.cpp example2.cpp' \
    $CXX -std=c++17 $more_cxx -Wold-style-cast

finish
