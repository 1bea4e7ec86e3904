#!/bin/sh
# What the archives must be, read from their objects: they export the functions of the header and nothing else, with
# what few programs call in objects of its own; they need nothing (but the two functions of the firmware), and hold no
# division, panic, allocation, float or lock. The control searches the compiler's raw library, which has all that.
# Builds that would bring the spin lock in, or that chose nothing, must fail and say what to choose.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh

names='fallback|LOCKS|seqlock|panic|unwind|unwrap|alloc|u?(div|mod)[sdt]i[34]|[ui]divmod|__aeabi_[uil]*(div|mod)'
names="$names|u128_div|__aeabi_[fd]|fmt|bounds|begin_"
# A core with a divider needs no function to divide.
instructions='[us]div|divu?|remu?|v(add|sub|mul|div|cvt|ldr|str|mov)[.a-z0-9]*|f(add|sub|mul|div|lw|sw|mv)[.a-z0-9]*'

forbidden() { # PREFIX ARCHIVE
    "${1}nm" "$2" 2> /dev/null | awk 'NF > 1 { print $NF }' | grep -iE "$names" | sort -u
    # objdump cannot read the metadata in a raw archive, and says so by its status.
    "${1}objdump" -d --no-show-raw-insn "$2" 2> /dev/null | awk -F '\t' '$1 ~ /:$/ { print $2 }' |
        grep -oE '^[^ ]+' | grep -xE "$instructions" | sort -u
}

exports_the_header() {
    found=$("${prefix}nm" -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort -u)
    [ "$found" = "$exports" ] || { echo "it exports" $found; return 1; }
}

needs_nothing() {
    found=$(echo $("${prefix}nm" -u "$archive" | awk '$1 == "U" { print $2 }' | sort -u))
    wanted=
    [ "$choice" = single ] || wanted="tatcell_critical_enter tatcell_critical_exit"
    [ "$found" = "$wanted" ] || { echo "it needs $found"; return 1; }
}

has_nothing_forbidden() {
    found=$(forbidden "$prefix" "$archive")
    [ -z "$found" ] || { echo "it has" $found; return 1; }
    "${prefix}objdump" -d "$archive" | grep -q '<tatcell_small_check>:' || { echo "it holds no code"; return 1; }
}

has_objects_apart() {
    for function in $apart; do
        found=$("${prefix}nm" -g --defined-only "$archive" | awk -v f="$function" '
            NF == 1 { if (mine) exit; all = ""; next }
            NF == 3 { all = all " " $3; if ($3 == f) mine = 1 }
            END { print all }')
        [ "$found" = " $function" ] || { echo "$function is in one object with others:$found"; return 1; }
    done
}

has_no_note_of_stack() {
    ! "${prefix}objdump" -h "$archive" | grep -F .note.GNU-stack
}

has_no_memory() {
    bytes=$("${prefix}size" -A "$archive" | awk '/^\.(s?data|s?bss)/ { n += $2 } END { print n + 0 }')
    [ "$bytes" = 0 ] || { echo "$bytes bytes of data"; return 1; }
}

if need_archives gates && need gates arm-none-eabi-nm binutils-arm-none-eabi && need gates riscv64-unknown-elf-nm \
    binutils-riscv64-unknown-elf; then
    for triple in $targets; do
        for choice in $choices; do
            prefix=$(prefix_of "$triple") archive=$archives/$triple/libtatcell-$choice.a
            name=archive_${triple%%-*}_$choice
            claim "${name}_exports_the_header_and_nothing_else" exports_the_header
            claim "${name}_needs_nothing_from_a_runtime" needs_nothing
            claim "${name}_has_no_division_panic_allocation_float_or_lock" has_nothing_forbidden
            claim "${name}_keeps_what_few_call_in_objects_of_their_own" has_objects_apart
            claim "${name}_makes_no_linker_warn_of_its_stack" has_no_note_of_stack
            claim "${name}_has_no_memory_of_its_own" has_no_memory
        done
    done
    finds_division() {
        forbidden arm-none-eabi- "$out/single/thumbv6m-none-eabi/release/libtatcell.a" | grep div
    }
    claim control_the_gate_finds_division_in_the_raw_library finds_division
fi

check_only() { # TRIPLE FEATURES
    (cd .. && CARGO_TARGET_DIR=$work firmware/cargo "$1" check --quiet --lib --features "$2")
}

must_not_build() { # TRIPLE FEATURES PATTERN
    said=$(check_only "$1" "$2" 2>&1) && { echo "it builds"; return 1; }
    case $said in "no Rust for"*) echo "$said"; return 77 ;; esac
    echo "$said" | grep -q "$3" || { echo "$said"; return 1; }
    # One message that helps, not a page of errors.
    [ "$(echo "$said" | grep -c '^error: ')" -le 2 ] || { echo "$said"; return 1; }
}
for triple in thumbv6m-none-eabi thumbv7m-none-eabi riscv32imac-unknown-none-elf; do
    name=${triple%%-*}
    claim "build_for_${name}_without_a_choice_says_what_to_choose" \
        must_not_build $triple '' 'Choose how cells are shared'
    claim "spin_lock_on_${name}_is_refused_and_says_what_to_choose" \
        must_not_build $triple fallback 'Choose instead how cells are shared'
    claim "spin_lock_on_${name}_is_refused_beside_a_choice_too" \
        must_not_build $triple fallback,single-core 'would hang'
done
exit $failed
