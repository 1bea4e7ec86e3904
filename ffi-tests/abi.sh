#!/bin/sh
# The C ABI next to that of each release: layouts on other machines, types and functions by abidiff, and programs and
# libraries of each release with those of each other one and of today.
#
# The headers of the last release lie in ffi-tests/abi/VERSION, without their comments; those of older ones are in
# their commits. A release replaces the folder and adds its line to `releases`; what it adds to program.c is in
# program_VERSION.h.
# From the root; environment: CC, INC, LIB, OUT, CARGO.
. ffi-tests/tap.sh
prefix='abi: '
kept=ffi-tests/abi
strict='-Wall -Wextra -Werror -pedantic'
# Version, the number of the release in program.c, and its commit: no release has a tag. The oldest first.
releases='0.2.0 2 8fc3a5f
0.3.0 3 597196b'
others='i686-linux-gnu-gcc arm-linux-gnueabihf-gcc aarch64-linux-gnu-gcc s390x-linux-gnu-gcc'

# Every size and offset is that of layout.h, by compilers of other machines, too; a wrong one is refused.
layout() {
    $1 -std=c11 -fsyntax-only -I"$INC" $kept/layouts.c &&
        fails $1 -DWRONG_SIZE -std=c11 -fsyntax-only -I"$INC" $kept/layouts.c
}
claim layout_of_every_structure_by_this_compiler layout "$CC"
for compiler in $others; do
    if have "$compiler"; then claim "layout_of_every_structure_by_$compiler" layout "$compiler"
    else skip "layout_of_every_structure_by_$compiler" "$compiler is missing: apt-get install gcc-${compiler%-gcc}"; fi
done
# layout.h has a line for each structure and each field. (A line too many does not compile.)
every_field() {
    for header in tatcell.h tatcell_host.h; do
        $CC -fpreprocessed -dD -E -P -w "$INC/$header"
    done | awk '
        /^typedef struct tatcell_[a-z0-9_]+_t \{/ {
            noun = $3
            sub(/^tatcell_/, "", noun)
            sub(/_t$/, "", noun)
            print "SIZE(" noun ","
        }
        noun != "" && /^\}/ { noun = "" }
        noun != "" && /;/ {
            field = $NF
            sub(/(\[.*)?;.*/, "", field)
            sub(/^\**/, "", field)
            print "AT(" noun ", " field ","
        }' > "$tmp/fields"
    [ "$(wc -l < "$tmp/fields")" -gt 200 ] || { cat "$tmp/fields"; return 1; }
    while read -r line; do
        grep -qF "$line" $kept/layout.h || { echo "layout.h has no line $line"; return 1; }
    done < "$tmp/fields"
}
claim every_field_of_the_headers_has_its_place_in_the_layouts every_field

# A library of stubs with debugging information, which the real library has none of: $2, from the headers in folder $1.
stubs() {
    $CC -I"$1" -E -P "$1/tatcell_host.h" > "$tmp/plain.h" || return
    { echo '#include "tatcell_host.h"'
      awk 'BEGIN { RS = ";" }
          /[ *\n]tatcell_[a-z0-9_]+\(/ && !/[{}]|typedef|_Static_assert/ { print $0 " { __builtin_trap(); }" }' \
          "$tmp/plain.h"; } > "$tmp/stubs.c"
    functions=$(grep -c __builtin_trap "$tmp/stubs.c")
    [ "$functions" -gt 150 ] || { echo "only $functions functions in the headers of $1"; return 1; }
    $CC -std=c11 -g -O0 -w -shared -fPIC -I"$1" -o "$2" "$tmp/stubs.c"
}
# Structures may grow at their ends: copies the headers of folder $1 to $2, without the fields that are new there.
shortened() {
    mkdir -p "$2" && for header in tatcell.h tatcell_host.h; do
        awk '
            /^typedef struct tatcell_/ { noun = $3; field = 0 }
            /^}/ { noun = "" }
            noun != "" && /^    [a-z].*;/ {
                if (NR == FNR) fields[noun]++
                else if (noun in fields && ++field > fields[noun]) next
            }
            NR != FNR' "$kept/$last/$header" "$1/$header" > "$2/$header" || return
    done
}
now() { shortened "$INC" "$tmp/short" && stubs "$tmp/short" "$tmp/now.so"; }
kept_types() {
    stubs "$kept/$last" "$tmp/last.so" && now && abidiff --no-added-syms "$tmp/last.so" "$tmp/now.so"
}
# The control: a narrower field and a lost function, in both headers, and a field before others.
found_out() {
    while read -r before after; do
        before=$(echo "$before" | tr '~' ' ') after=$(echo "$after" | tr '~' ' ')
        rm -rf "$tmp/broken" && mkdir "$tmp/broken" && cp "$INC/tatcell.h" "$INC/tatcell_host.h" "$tmp/broken" || return
        grep -qF "$before" "$tmp"/broken/*.h || { echo "no header has '$before'"; return 1; }
        sed -i "s/$before/$after/" "$tmp"/broken/*.h
        shortened "$tmp/broken" "$tmp/short" && stubs "$tmp/short" "$tmp/broken.so" || return
        fails abidiff --no-added-syms "$tmp/now.so" "$tmp/broken.so" || { echo "$after is not found out"; return 1; }
    done << 'EOF'
~~~~uint64_t~stored; ~~~~uint32_t~stored;
tatcell_cell_peek( tatcell_cell_look(
~~~~uint32_t~pages; ~~~~uint16_t~pages;
tatcell_host_random( tatcell_host_chance(
~~~~tatcell_permit_t~permit; ~~~~uint64_t~more;~tatcell_permit_t~permit;
EOF
}
if have abidiff; then
    last=$(echo "$releases" | tail -n 1 | cut -d' ' -f1)
    claim types_and_functions_are_those_of_the_last_release_or_more kept_types
    claim a_narrower_field_and_a_lost_function_are_found_out found_out
else
    skip types_and_functions_are_those_of_the_last_release_or_more 'abidiff is missing: apt-get install abigail-tools'
fi

# The shared library of a release, built from its commit once.
release_library() {
    folder=$OUT/abi/$1
    [ -e "$folder/libtatcell.so.1" ] && return
    rm -rf "$folder" && mkdir -p "$folder/tree" && git archive "$2" | tar -x -C "$folder/tree" &&
        $CARGO rustc --quiet --release --manifest-path "$folder/tree/Cargo.toml" --target-dir "$folder/target" \
            --features capi,host --lib --crate-type cdylib &&
        mv "$folder/target/release/libtatcell.so" "$folder/libtatcell.so.1" && rm -rf "$folder/target" "$folder/tree"
}
# Writes the headers of a release to a folder that it prints, unless they are in the tree.
headers_of() {
    [ ! -d "$kept/$1" ] || { echo "$kept/$1"; return; }
    folder=$OUT/abi/headers-$1
    mkdir -p "$folder" && for header in tatcell.h tatcell_host.h; do
        git show "$2:include/$header" > "$folder/$header" || return
    done && echo "$folder"
}
# The program with the headers $1 and the library $3, of which the older one is of release $2.
program() {
    $CC -std=c11 -I"$1" -DRELEASE="$2" $strict $kept/program.c "$3" -Wl,-rpath,"${3%/*}" -o "$tmp/program" &&
        "$tmp/program"
}
# Every program with one library: its name, its release's number, its path.
with_library() {
    echo "$releases
today $newest" > "$tmp/programs"
    while read -r version number commit <&5; do
        if [ "$version" = today ]; then headers=$INC
        elif ! headers=$(headers_of "$version" "$commit" 2> /dev/null); then
            skip "program_of_${version}_with_the_library_of_$1" \
                "its commit $commit is missing: clone with the whole history"
            continue
        fi
        [ "$number" -lt "$2" ] || number=$2
        claim "program_of_${version}_with_the_library_of_$1" program "$headers" "$number" "$3"
    done 5< "$tmp/programs"
}
newest=$(echo "$releases" | tail -n 1 | cut -d' ' -f2)
with_library today "$newest" "$(realpath "$LIB/libtatcell.so")"
echo "$releases" > "$tmp/releases"
while read -r version number commit <&4; do
    if ! git cat-file -e "$commit" 2> /dev/null; then
        skip "programs_with_the_library_of_$version" "its commit $commit is missing: clone with the whole history"
    elif claim "library_of_${version}_is_built_from_its_commit" release_library "$version" "$commit" &&
        [ -e "$OUT/abi/$version/libtatcell.so.1" ]; then
        with_library "$version" "$number" "$OUT/abi/$version/libtatcell.so.1"
    fi
done 4< "$tmp/releases"
finish
