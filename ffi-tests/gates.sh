#!/bin/sh
# What the built library must be: exactly the exports of tatcell.map with their symbol versions; nothing undefined but
# what is listed here; nothing that panics, allocates or locks; no state of its own. A library that panics goes through
# the same gate, which must see it. From the root; environment: LIB, INC, OUT, CC, POINTERS, HEADER_CMD.
. ffi-tests/tap.sh
prefix='gates: '
map=$INC/tatcell.map

# What a library without heap, lock and panic cannot contain in any symbol, local or global. "unwind" and "personality"
# cover _Unwind_* and rust_eh_personality.
forbidden='panic|alloc|fallback4lock|lock5LOCKS|spin_?lock|unwind|personality|rust_begin|bounds_check|unwrap_failed'
forbidden="$forbidden|expect_failed|slice_index|slice_(start|end)|core3fmt|div_by_zero|pthread|mutex|__tls"
# The compiler calls these wherever it likes.
memory='mem(cpy|set|move|cmp)'
# What the object of tatcell_host_* takes from the C library.
system='__errno_location|clock_get(res|time)|close|fallocate|fcntl|ftruncate|geteuid|lseek|madvise|mmap|munmap|open'
system="$system|poll|read|strlen|syscall|unlink"
# How many unsafe blocks the C layer may have, and which files outside of POINTERS have one: host/mod.rs
# unmaps memory, and table/handle.rs says that a short handle has no other form.
unsafe_blocks=24
unsafe_outside='host/mod.rs table/handle.rs'

# Bytes at most, on x86-64: the shared library without symbols, the archive, and what a check of one cell adds to a
# static program. A little above what they have: a change that grows them says why.
most_shared=625000 most_archive=904000 most_cell=21300

mkdir "$tmp/objects"
archive=$LIB/libtatcell.a shared=$(realpath "$LIB/libtatcell.so")
(cd "$tmp/objects" && ar x "$archive") || exit 1
core=$tmp/objects/tatcell.o host=$tmp/objects/tatcell_host.o
# The same objects with the names of local functions. A library that was installed comes without them.
named=$LIB/named

exports() { sed -n 's/^ *\(tatcell_[a-z0-9_]*\);.*/\1/p' "$map" | LC_ALL=C sort -u; }
same() { exports | diff - "$1"; }
none() { ! grep .; }
exports > "$tmp/exports"

# The functions that the installed headers declare, without those that a header defines.
declared() {
    for header in tatcell tatcell_host tatcell_inline tatcell_bpf; do echo "#include \"$header.h\""; done |
        $CC -std=c99 -E -P -I"$INC" -x c - | grep -oE '\btatcell_[a-z0-9_]+ ?\(' | tr -d ' (' |
        grep -vE '^tatcell_(bpf|inline)_' | LC_ALL=C sort -u > "$tmp/declared"
    same "$tmp/declared"
}
archive_defines() {
    nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort > "$tmp/defined"
    same "$tmp/defined"
}
shared_exports() {
    nm -D --defined-only "$shared" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort > "$tmp/dynamic"
    same "$tmp/dynamic"
}
# Each export has the node under which it stands in the map: TATCELL_1, TATCELL_0.4 and later ones.
versions() {
    awk '/\{/ { node = $1 } match($0, /tatcell_[a-z0-9_]+;/) { print substr($0, RSTART, RLENGTH - 1) "@@" node }' \
        "$map" | LC_ALL=C sort > "$tmp/wanted"
    nm -D --defined-only "$shared" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort | diff "$tmp/wanted" -
}
# Each node of the map is in the library, an empty one, too.
nodes() {
    for node in $(awk '/\{/ { print $1 }' "$map"); do
        readelf -VW "$shared" | grep -q "Name: $node\$" || { echo "the library has no node $node"; return 1; }
    done
}
members() { [ "$(echo $(ar t "$archive"))" = 'tatcell.o tatcell_host.o' ] || { ar t "$archive"; return 1; }; }
needs_only() { nm -u "$1" | awk '{ print $NF }' | grep -vxE "$2" | none; }
soname() {
    abi=$(sed -n 's/^#define TATCELL_ABI_VERSION \([0-9]*\).*/\1/p' "$INC/tatcell.h")
    readelf -d "$shared" | grep SONAME | grep -F "[libtatcell.so.$abi]" || { readelf -d "$shared"; return 1; }
}
dynamic_without() { readelf -d "$shared" | grep "$1" | none; }
no_executable_stack() { readelf -lW "$shared" | grep 'GNU_STACK.*RWE' | none; }
# No .data. In .bss lies what CPUID said, 4 bytes an object; all other state is the caller's.
no_state() {
    size -A "$archive" | awk '
        ($1 ~ /^\.(data|tdata|tbss)(\.|$)/ && $1 !~ /rel\.ro/) && $2 { print; bad = 1 }
        $1 ~ /^\.bss(\.|$)/ { bss += $2 }
        END { if (bss > 8) { print bss " bytes of .bss"; bad = 1 } exit bad }'
}
# The gate looks at local symbols, too, so there must be some: a stripped object would pass unseen.
local_symbols() { nm "$named/tatcell.o" | grep -qE ' t .*tatcell.*gcra'; }
# What has names has the same code as what is shipped.
same_code() {
    for object in tatcell tatcell_host; do
        size "$named/$object.o" "$tmp/objects/$object.o" |
            awk 'NR > 1 { print $1, $2, $3 }' | uniq | wc -l | grep -qx 1 || return 1
    done
}
flagged() { nm "$1" | awk '{ print $NF }' | grep -v '^\.' | grep -v '^fallocate' | grep -Ei "$forbidden"; }
unflagged() { flagged "$1" | none; }
# The control: a library that divides by what may be 0. The name of its function is no proof.
panics() {
    rustc --edition 2021 --crate-type staticlib --crate-name panics -O -C panic=abort -C embed-bitcode=yes -C lto=fat \
        ffi-tests/panics/lib.rs -o "$tmp/libpanics.a" &&
        ld -r --gc-sections -u panics_divide -o "$tmp/panics.o" "$tmp/libpanics.a" &&
        flagged "$tmp/panics.o" | grep -v panics_divide
}
# The folder where C pointers become references has all that is unsafe in the C layer, but for what is named.
pointers_alone() {
    folder=${POINTERS%/*}
    outside=$(grep -rc 'unsafe {' --include='*.rs' --exclude='*tests.rs' "$folder" | grep -v ':0$' |
        grep -v "^$POINTERS/" | sed "s|^$folder/||; s/:1\$//" | LC_ALL=C sort)
    [ "$(echo $outside)" = "$unsafe_outside" ] || { echo "unsafe outside of $POINTERS: $outside"; return 1; }
    blocks=$(grep -rho 'unsafe {' --include='*.rs' --exclude='*tests.rs' "$folder" | wc -l)
    [ "$blocks" -le "$unsafe_blocks" ] || { echo "$blocks unsafe blocks"; return 1; }
}
freestanding() {
    $CC -std=c11 -I"$INC" -O2 -g -Wall -Wextra -Werror -pedantic -ffreestanding -nostdlib -static \
        -fno-stack-protector ffi-tests/freestanding.c "$archive" -o "$tmp/freestanding" && "$tmp/freestanding"
}

below() { echo "$1 bytes, at most $2"; [ "$1" -le "$2" ]; }
bytes() { wc -c < "$1"; }
shared_size() { strip -o "$tmp/stripped" "$shared" && below "$(bytes "$tmp/stripped")" $most_shared; }
archive_size() { below "$(bytes "$archive")" $most_archive; }
# One section a function, so that a linker takes what is called. Sections are counted, not pages of the file.
cell_size() {
    for calls in 0 1; do
        $CC -O2 -std=c11 -I"$INC" -DCALLS=$calls -static -Wl,--gc-sections -x c - -x none "$archive" \
            -o "$tmp/cell$calls" <<'END' || return 1
#include <tatcell.h>
static tatcell_cell_t cell;
int main(int argc, char **argv) {
    tatcell_limit_t limit;
    (void)argv;
    return CALLS && (tatcell_limit_init(&limit, 1, 1000, 5) || tatcell_cell_check(&cell, &limit, argc, 1, NULL));
}
END
    done
    set -- $(size "$tmp/cell0" "$tmp/cell1" | awk 'NR > 1 { print $4 }')
    below $(($2 - $1)) $most_cell
}

claim export_list_equals_the_functions_of_the_headers declared
claim archive_defines_exactly_the_export_list archive_defines
claim shared_library_exports_exactly_the_export_list shared_exports
claim every_export_has_the_version_of_its_node versions
claim every_node_of_the_map_is_in_the_shared_library nodes
claim archive_is_the_library_and_its_host_part members
claim library_leaves_only_memory_functions_undefined needs_only "$core" "$memory"
claim host_part_leaves_only_these_system_functions_undefined needs_only "$host" "$memory|$system"
claim shared_library_has_its_soname soname
claim shared_library_needs_no_other dynamic_without NEEDED
claim shared_library_has_no_text_relocations dynamic_without TEXTREL
claim shared_library_has_no_executable_stack no_executable_stack
claim archive_has_no_state_but_the_processor_cache no_state
if [ -d "$named" ]; then
    claim symbol_gate_sees_local_symbols local_symbols
    claim objects_with_names_have_the_code_of_the_archive same_code
    claim archive_has_no_panic_alloc_or_lock_symbol unflagged "$named/tatcell.o"
    claim host_part_has_no_panic_alloc_or_lock_symbol unflagged "$named/tatcell_host.o"
else skip archive_has_no_panic_alloc_or_lock_symbol 'an installed archive has no local names: use target/c'
fi
claim shared_library_has_no_panic_alloc_or_lock_symbol unflagged "$shared"
claim c_pointers_are_dereferenced_in_one_place pointers_alone
if have rustc; then claim symbol_gate_flags_a_library_that_panics panics
else skip symbol_gate_flags_a_library_that_panics 'rustc is missing: https://rustup.rs'; fi
case $($CC -dumpmachine) in
    x86_64*linux* | aarch64*linux*) claim archive_works_without_libc freestanding ;;
    *) skip archive_works_without_libc 'it exits by a system call of x86-64 or aarch64 Linux' ;;
esac

case $($CC -dumpmachine) in
    x86_64*linux*)
        claim shared_library_is_no_larger_than_its_limit shared_size
        claim archive_is_no_larger_than_its_limit archive_size
        claim check_of_a_cell_adds_little_to_a_static_program cell_size
        ;;
    *) skip sizes_are_within_their_limits 'the limits are those of x86-64 Linux' ;;
esac

# The generated files of include/ are those that the sources give today. HEADER_CMD writes them into two folders, and
# refuses a function whose comment lacks a part.
if ! have "${HEADER_CMD%% *}"; then skip headers_are_generated_from_the_sources "${HEADER_CMD%% *} is missing"
else
    mkdir "$tmp/fresh"
    claim headers_can_be_generated $HEADER_CMD "$tmp/fresh" "$tmp/fresh"
    for file in tatcell.h tatcell_host.h tatcell.ffi.h tatcell.map; do
        claim "committed_${file}_is_fresh" diff -u "include/$file" "$tmp/fresh/$file"
    done
    for file in tatcell_cluster.h tatcell_cluster.map; do
        claim "committed_${file}_is_fresh" diff -u "cluster/include/$file" "$tmp/fresh/$file"
    done
fi
finish
