#!/bin/sh
# The crate's own tests, threads included, on other hosts: big-endian, 32-bit, without 64-bit atomics. Long.
#
# tests/hosts.sh TRIPLE... tries only these. TATCELL_QUICK=1: on s390x, the host farthest from this one, the unit tests
# and what lays out words, keys and images; of aarch64 what NEON searches; for powerpc, which has no 64-bit atomics, the
# tests are compiled.
cd "$(dirname "$0")/.." || exit 1
. tests/claim.sh
export CARGO_TARGET_DIR=$work
s390x=s390x-unknown-linux-gnu powerpc=powerpc-unknown-linux-gnu aarch64=aarch64-unknown-linux-gnu
i686=i686-unknown-linux-gnu armv7=armv7-unknown-linux-gnueabihf
all="$s390x $powerpc $armv7 $aarch64 $i686"
# This test compares words with what this machine's C compiler lays out, which says nothing about another byte order.
left_out=the_header_computes_and_refuses_the_same_limits

features() { # TRIPLE: powerpc uses the lock that a hosted system without 64-bit atomics may use
    [ "$1" = $powerpc ] && echo std,fallback || echo std
}

# Runs the tests of a host that satisfy an expression of nextest, whose lines are counted.
tests() { # TRIPLE EXPRESSION OPTION...
    need "tests_on_$1" cargo-nextest "cargo install --locked cargo-nextest" || return 0
    # shellcheck disable=SC2046
    need "tests_on_$1" $(sed -n "/^.target.$1/,/^runner/s/^linker = \"\(.*\)-gcc\"/\1-gcc gcc-\1/p" targets.toml) ||
        return 0
    need "tests_on_$1" "$(sed -n "/^.target.$1/,/^runner/s/^runner = \[\"\([^\"]*\)\".*/\1/p" targets.toml)" \
        qemu-user-static libc6-dev-i386-cross || return 0
    triple=$1 expression=$2
    shift 2
    echo "== $triple: $expression"
    (cd .. && firmware/cargo "$triple" nextest --locked --no-fail-fast --features "$(features "$triple")" \
        --success-output immediate -E "($expression) and not test($left_out)" "$@") 2>&1
    status=$?
    [ $status != 77 ] || { echo "SKIP tests_on_$triple: no Rust for it"; return 0; }
    [ $status = 0 ] || failed=1
}

# What builds for aarch64 may ask for, and the tests that then run other code.
with_features() {
    CARGO_TARGET_DIR=$work/features CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+aes,+lse \
        tests $aarch64 'not test(/^algorithms::/) and (kind(lib) or test(/burst|table|hash/))'
}

# Bursts on an x86-64 processor with AVX2 and without AVX-512, which this emulator does not have: what takes the widest
# step that there is, and what tries each. That one part skips itself shows that there is no AVX-512.
avx2_alone() {
    [ "$(uname -m)" = x86_64 ] || { echo "SKIP bursts_with_avx2_alone: this machine is no x86-64 one"; return; }
    need bursts_with_avx2_alone cargo-nextest "cargo install --locked cargo-nextest" &&
        need bursts_with_avx2_alone qemu-x86_64-static qemu-user-static || return 0
    echo "== x86-64 with AVX2 alone"
    (cd .. && CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='qemu-x86_64-static -cpu max' cargo nextest run --locked \
        --target x86_64-unknown-linux-gnu --features std,host,heapless --success-output immediate --no-fail-fast \
        -E 'test(bursts_of) or test(groups_decide_count_and_store)') > "$work/avx2.txt" 2>&1 || failed=1
    cat "$work/avx2.txt"
    claim control_this_processor_has_no_avx512 grep -E 'SKIP .*by_avx512: ' "$work/avx2.txt"
}

# A build, because a check evaluates no constants of generic functions.
c_layer() {
    claim "the_c_layer_compiles_for_$i686" ./cargo $i686 build --quiet --locked --lib --manifest-path ../Cargo.toml \
        --features capi,host
}

if [ $# -gt 0 ]; then
    for triple in "$@"; do tests "$triple" 'all()'; done
elif [ -n "$TATCELL_QUICK" ]; then
    tests $s390x 'kind(lib) or (test(/word|image|sav|restor|migrat|address|prefix|hash|key/) and not binary(race))'
    tests $aarch64 'kind(lib) and test(/^table::.*(search|group|simd)/)'
    claim "tests_compile_for_$powerpc" ./cargo $powerpc check --quiet --locked --tests --manifest-path ../Cargo.toml \
        --features "$(features $powerpc)"
    c_layer
    avx2_alone
else
    for triple in $all; do tests "$triple" 'all()'; done
    with_features
    c_layer
    avx2_alone
fi
exit $failed
