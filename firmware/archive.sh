#!/bin/sh
# Builds the archive of a target: archive.sh TRIPLE single|critical
#
# It exports the functions of include/tatcell_small.map and nothing else. The checks are one object, whose sections stay
# apart. What few programs call has an object for each function, so a program that does not call it has none of its
# bytes, also where its linker keeps whole objects. The compiler's runtime is left out, so that the archive links beside
# anything.
set -eu
unset MAKEFLAGS MFLAGS
cd "$(dirname "$0")"
. ./boards.sh
triple=$1 choice=$2
prefix=$(prefix_of "$triple") ld=$(ld_of "$triple")
work=$out/archive/$triple-$choice
raw=$out/$choice/$triple/release/libtatcell.a

feature=single-core
[ "$choice" = single ] || feature=critical-section-c
# The level that measures best on each core.
level=s
[ "$triple" != thumbv6m-none-eabi ] || level=z
(cd "$root" && CARGO_TARGET_DIR="$out/$choice" CARGO_PROFILE_RELEASE_OPT_LEVEL=$level \
    firmware/cargo "$triple" rustc --quiet --release --lib --crate-type staticlib --features "small-capi,$feature")

rm -rf "$work"
mkdir -p "$work" "$archives/$triple"
# The library's own objects only: it needs nothing of the compiler's, and tests/gates.sh proves it.
"${prefix}ar" x --output "$work" "$raw" $("${prefix}ar" t "$raw" | grep '^tatcell')
own=$(ls "$work"/tatcell*)

object() { # NAME FUNCTION...: an object with these functions and what they use
    object=$work/$1.o
    shift
    printf '%s\n' "$@" > "$object.exports"
    $ld -r --gc-sections $(printf ' -u %s' "$@") -o "$object" $own
    # Objects with a note of how the stack is used, linked with gcc's, which have none here, make each link warn.
    "${prefix}objcopy" --keep-global-symbols="$object.exports" --strip-debug -R .llvmbc -R .llvmcmd -R .comment \
        -R .note.GNU-stack -R '.ARM.exidx*' -R '.rel.ARM.exidx*' "$object"
}

together=$(printf '%s\n' $exports | grep -vxF "$(printf '%s\n' $apart)")
object small $together
for function in $apart; do
    object "$function" "$function"
done
archive=$archives/$triple/libtatcell-$choice.a
rm -f "$archive"
(cd "$work" && "${prefix}ar" rcs "$archive" small.o $(printf '%s.o ' $apart))
