#!/usr/bin/env bash
# What the built libraries contain: the exports, nothing undefined, nothing needed, nothing that panics or locks.
source "$(dirname "$0")/lib.sh"
A=$BUILD/libtatcell.a SO=$BUILD/libtatcell.so OBJECT=$BUILD/tatcell.o

# What a library without heap, lock and panic cannot contain, in any symbol, local or global. `rust_eh_personality`
# and `_Unwind` are covered by "unwind" and "personality".
FORBIDDEN='panic|alloc|fallback4lock|lock5LOCKS|spin_?lock|unwind|personality|rust_begin|begin_unwind|bounds_check|unwrap_failed|expect_failed|slice_index|slice_(start|end)|core3fmt|div_by_zero|pthread|mutex|__tls'

# flagged OBJECT: forbidden symbols, each with one function that uses it.
flagged() {
    nm -a "$1" | awk '{print $NF}' | grep -v '^\.' | grep -iE "$FORBIDDEN" | grep -vE '^fallocate' | sort -u | while read -r symbol; do
        user=$(objdump -dr "$1" | awk -v s="$symbol" '/^[0-9a-f]+ <.*>:/{f=$2} index($0, s) && /R_/ && !index(f, s) {print f; exit}')
        echo "$symbol, used by ${user:-nobody}"
    done
}

# raw_object LIB.a OUT.o EXPORT...: one object of what the exports reach, as mk/10-lib.mk makes it.
raw_object() {
    local lib=$1 out=$2
    shift 2
    ld -r --gc-sections $(printf -- '-u %s ' "$@") -o "$out" "$lib"
}

sed -n 's/^ *\(tatcell_[a-z0-9_]*\);.*/\1/p' include/tatcell.map | sort >"$OUT/map.txt"
ABI=$(sed -n 's/^#define TATCELL_ABI_VERSION //p' include/tatcell.h)
# tatcell_host.h brings tatcell.h with it.
$CC -std=c99 -fsyntax-only -Iinclude -aux-info "$OUT/aux.txt" include/tatcell_host.h 2>/dev/null
sed -n 's/.*[ *]\(tatcell_[a-z0-9_]*\) (.*/\1/p' "$OUT/aux.txt" 2>/dev/null | sort -u >"$OUT/declared.txt"
if [ ! -s "$OUT/declared.txt" ]; then # not gcc
    $CC -E -P -Iinclude include/tatcell_host.h | grep -oE '\btatcell_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$OUT/declared.txt"
fi
nm -g --defined-only "$A" | awk 'NF == 3 {print $3}' | sort >"$OUT/archive.txt"
nm -D --defined-only "$SO" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort >"$OUT/shared.txt"

claim export_list_equals_the_functions_of_the_header same "$OUT/map.txt" "$OUT/declared.txt"
claim archive_defines_exactly_the_export_list same "$OUT/map.txt" "$OUT/archive.txt"
claim shared_library_exports_exactly_the_export_list same "$OUT/map.txt" "$OUT/shared.txt"

versioned() { [ "$(nm -D --defined-only "$SO" | grep -c "@@TATCELL_$ABI\$")" = "$(wc -l <"$OUT/map.txt")" ]; }
claim every_export_is_versioned_by_the_abi versioned

# One object for everything, and one for tatcell_host_*, which a linker takes only for programs that use it.
members() { [ "$(ar t "$A" | tr '\n' ' ')" = "tatcell.o tatcell_host.o " ]; }
claim archive_is_the_library_and_its_host_part members
HOST='__errno_location|clock_get(res|time)|close|fallocate|ftruncate|lseek|madvise|mmap|munmap|open|read|strlen|unlink'

only() { # OBJECT, PATTERN
    local extra
    extra=$(nm -u "$1" | awk '{print $NF}' | grep -vxE "$2")
    [ -z "$extra" ] || { echo $extra; return 1; }
}
claim library_leaves_only_memory_functions_undefined only "$OBJECT" 'mem(cpy|set|move|cmp)'
claim host_part_leaves_only_these_system_functions_undefined only "$BUILD/tatcell_host.o" "mem(cpy|set|move|cmp)|$HOST"

soname() { readelf -d "$SO" | grep -q "SONAME.*\[libtatcell\.so\.$ABI\]"; }
claim shared_library_has_its_soname soname
no_needed() { ! readelf -d "$SO" | grep NEEDED; }
claim shared_library_needs_no_other no_needed
no_text_relocations() { ! readelf -d "$SO" | grep TEXTREL; }
claim shared_library_has_no_text_relocations no_text_relocations
no_executable_stack() { ! readelf -lW "$SO" | grep 'GNU_STACK.*RWE'; }
claim shared_library_has_no_executable_stack no_executable_stack
writable_data() { # no .data; .bss is what CPUID said, 4 bytes an object: every other state is the caller's
    local data bss
    data=$(bytes_of data tdata tbss)
    bss=$(bytes_of bss)
    [ "$data" -eq 0 ] && [ "$bss" -le 8 ] || { echo "$data bytes of data, $bss of bss"; return 1; }
}
bytes_of() {
    size -A "$A" | awk -v names=" $* " '{n = split($1, part, ".")}
        n > 1 && $1 ~ /^\./ && index(names, " " part[2] " ") && $1 !~ /rel\.ro/ {sum += $2}
        END {print sum + 0}'
}
claim archive_has_no_state_but_the_processor_cache writable_data

# The gate looks at local symbols too, so it must see some: stripped or localised objects would pass it blindly.
sees_locals() { [ "$(nm -a "$OBJECT" | grep -c ' t .*tatcell.*gcra')" -gt 0 ]; }
claim symbol_gate_sees_local_symbols sees_locals
no_forbidden() {
    local found
    found=$(flagged "$1")
    [ -z "$found" ] || { echo $found; return 1; }
}
claim archive_has_no_panic_alloc_or_lock_symbol no_forbidden "$OBJECT"
claim host_part_has_no_panic_alloc_or_lock_symbol no_forbidden "$BUILD/tatcell_host.o"
claim shared_library_has_no_panic_alloc_or_lock_symbol no_forbidden "$SO"

# Negative control: the same gate, a library that divides by what may be 0.
gate_can_fail() {
    $RUSTC --edition 2021 --crate-type staticlib --crate-name panics -O -C panic=abort -C embed-bitcode=yes -C lto=fat \
        ffi-tests/panics/lib.rs -o "$OUT/libpanics.a" || return 1
    raw_object "$OUT/libpanics.a" "$OUT/panics.o" panics_divide || return 1
    printf 'panics_divide\n' >"$OUT/panics.exports"
    objcopy --keep-global-symbols="$OUT/panics.exports" --strip-debug "$OUT/panics.o"
    flagged "$OUT/panics.o" | grep -q panic || { echo "a panicking library passes the gate"; return 1; }
}
if have "$RUSTC"; then
    claim symbol_gate_flags_a_library_that_panics gate_can_fail
else
    skip symbol_gate_flags_a_library_that_panics "rustc is not installed (https://rustup.rs)"
fi

if $CARGO build --quiet -p tatcell-header 2>"$OUT/header.log"; then
    mkdir -p "$OUT/fresh"
    fresh() { $CARGO run --quiet -p tatcell-header -- "$OUT/fresh"; }
    claim headers_can_be_generated fresh
    for file in tatcell.h tatcell_host.h tatcell.ffi.h tatcell.map; do
        claim "committed_${file}_is_fresh" same "include/$file" "$OUT/fresh/$file"
    done
else
    skip headers_can_be_generated "tatcell-header cannot be built: $(tail -1 "$OUT/header.log")"
fi

# One place for pointers: C pointers become references in the kit and nowhere else, but for the calls that pass one on.
kit_alone() {
    local blocks outside
    blocks=$(grep -ho 'unsafe {' src/capi/kit.rs src/capi/kit/lists.rs | wc -l)
    outside=$(grep -nE '&(mut )?\*|from_raw_parts|\.(read|write)\(\)' src/capi/*.rs | grep -vE '^src/capi/kit' | grep -vE ':[0-9]+: *//')
    [ -z "$outside" ] || { echo "$outside"; return 1; }
    [ "$blocks" -le 32 ] || { echo "$blocks unsafe blocks in the kit"; return 1; }
}
claim c_pointers_are_dereferenced_in_the_kit_alone kit_alone

# freestanding.c was linked by the makefile without libc; it decides and exits with what it found.
if [ -x "$OUT/freestanding" ]; then
    claim archive_works_without_libc "$OUT/freestanding"
else
    skip archive_works_without_libc "ffi-tests/freestanding.c knows the exit call of x86-64 and aarch64 Linux only"
fi
done_testing
