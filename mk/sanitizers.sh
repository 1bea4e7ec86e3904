#!/bin/sh
# Runs Rust tests of the library under the thread sanitizer, the address sanitizer and Miri:
#
#     mk/sanitizers.sh [thread] [address] [miri]      all three without a name
#
# TATCELL_QUICK=1: fewer tests, and 4 seeds of Miri instead of 64. Each tool first has to report the defects of its kind
# in tests/processes/defects.rs: one that does not see them fails, whatever it says of the tests. Searches are loops
# under all three (build.rs), since no sanitizer sees what assembly reads.
#
# The sanitizers need the toolchain's sources of std, so that std is watched, too: rustup component add rust-src. Flags
# that stable does not know are allowed by RUSTC_BOOTSTRAP=1, for these commands only. Miri is a part of nightly.
set -u
cd "$(dirname "$0")/.." || exit 1

cargo=${CARGO:-cargo}
quick=${TATCELL_QUICK:-}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

pass() { echo "PASS $1"; }
fail() {
    echo "FAIL $1: $2"
    sed -n '/Sanitizer: \|Undefined Behavior/,$p' "$log" | head -n 40 | grep . || tail -n 30 "$log"
    failed=1
}

# reported NAME WORDS COMMAND...: the command must fail, and say each of the WORDS, which "|" parts.
reported() {
    name=$1 words=$2
    shift 2
    if "$@" > "$log" 2>&1; then
        fail "$name" "the run ended well"
        return
    fi
    old=$IFS
    IFS='|'
    for word in $words; do
        grep -qF -- "$word" "$log" || { IFS=$old; fail "$name" "nothing says '$word'"; return; }
    done
    IFS=$old
    pass "$name"
}

# Cargo with a sanitizer, std included: sanitized SUBCOMMAND OPTIONS... Tests unwind: with a dev profile that aborts,
# std would be built twice, and each crate would see both. Tests that race, kill or compare for long are shorter.
sanitized() {
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=$sanitizer -Cforce-frame-pointers" \
        CARGO_TARGET_DIR="$PWD/target/sanitizer-$sanitizer" TSAN_OPTIONS=halt_on_error=1 ASAN_OPTIONS=detect_leaks=0 \
        TATCELL_ROUNDS=2000 TATCELL_RACES=50000 TATCELL_KILLS=500 TATCELL_SCHEDULES=200 TATCELL_COUNTED_STEPS=20000 \
        TATCELL_METER_PACKETS=20000 $cargo "$@"
}

# sanitizer NAME RUNTIME QUICK_TARGETS QUICK_TESTS TARGETS TESTS: defects come from standard input, "name words" a line;
# TARGETS are options of cargo, TESTS parts of names as a regular expression.
sanitizer() {
    sanitizer=$1 runtime=$2
    if [ -n "$quick" ]; then targets=$3 tests=$4; else targets="$3 $5" tests="$4|$6"; fi
    sysroot=$(rustc --print sysroot)
    host=$(rustc -vV | sed -n 's/^host: //p')
    if ! ls "$sysroot/lib/rustlib/$host/lib/"*"_rt.$runtime.a" > /dev/null 2>&1; then
        echo "SKIP $sanitizer: rustc has no such sanitizer for $host (x86-64 Linux has)"
        return
    fi
    if [ ! -e "$sysroot/lib/rustlib/src/rust/library/Cargo.lock" ]; then
        echo "SKIP $sanitizer: the toolchain has no sources of std (rustup component add rust-src)"
        return
    fi
    options="-Zbuild-std --config profile.dev.panic='unwind' --target $host --features std,host,heapless"
    while read -r defect words; do
        # shellcheck disable=SC2086 # options are words
        reported "${sanitizer}_reports_$defect" "$words" sanitized test $options --test defects -- --ignored \
            --exact --nocapture "$defect" < /dev/null
    done
    # shellcheck disable=SC2086
    if $cargo nextest --version > /dev/null 2>&1; then
        sanitized nextest run $options $targets -E "test(/$tests/)" || failed=1
    else
        sanitized test --no-fail-fast $options $targets -- --test-threads=2 --show-output \
            $(echo "$tests" | tr -d '^()' | tr '|' ' ') || failed=1
    fi
}

thread() {
    sanitizer thread tsan \
        '--test race --test table --test cell' '^threads::|race|^few_threads::|^refusals::' \
        '--lib --test host --test combine' \
        '^(system|overrides|mark|lease|chain)::|^migrate::drive::|^(answer|capi|cell|combine|table)::' <<'DEFECTS'
a_plain_write_of_a_slot_beside_a_charge ThreadSanitizer: data race|write_plainly
a_plain_write_of_a_slot_beside_a_search ThreadSanitizer: data race|write_plainly|search/mod.rs
a_publication_without_release ThreadSanitizer: data race
DEFECTS
}

address() {
    sanitizer address asan \
        '--test table --test host' '^image::|^calls::|^system::|^second_home' \
        '--lib --test kill --test race --test small --test cell --test combine' '::' <<'DEFECTS'
a_search_behind_the_end_of_the_memory heap-buffer-overflow|READ of size|search/mod.rs
a_search_of_memory_that_is_gone heap-use-after-free|search/mod.rs
DEFECTS
}

# Undefined behaviour, strict provenance, data races and weak memory; a schedule a seed.
interpreted() {
    MIRIFLAGS="-Zmiri-strict-provenance $flags" CARGO_TARGET_DIR="$PWD/target/miri" \
        rustup run nightly cargo miri test --features std "$@"
}

# seeds NAME NUMBER OPTIONS...: seeds run beside each other and their lines get mixed, so runs are counted, not tests.
seeds() {
    name=$1 number=$2
    shift 2
    flags="-Zmiri-many-seeds=0..$number"
    interpreted --test table "$@" > "$log" 2>&1
    status=$?
    runs=$(grep -o ' [0-9]* passed; 0 failed' "$log" | grep -vc ' 0 passed')
    if [ $status = 0 ] && [ "$runs" -ge "$number" ]; then
        pass "miri_tests_$name: $number seeds"
    else
        fail "miri_tests_$name" "status $status, $runs runs of $number"
    fi
}

miri() {
    if ! rustup run nightly cargo miri --version > /dev/null 2>&1; then
        echo "SKIP miri: it is not installed (rustup toolchain install nightly --component miri,rust-src)"
        return
    fi
    flags=
    while read -r defect words; do
        reported "miri_reports_$defect" "$words" interpreted --test defects -- --ignored --exact "$defect" < /dev/null
    done <<'DEFECTS'
a_plain_write_of_a_slot_beside_a_charge Undefined Behavior: Data race|.write(value)
a_plain_write_of_a_slot_beside_a_search Undefined Behavior: Data race|.write(value)
a_publication_without_release Undefined Behavior: Data race
a_search_behind_the_end_of_the_memory Undefined Behavior|beyond the bounds
a_search_of_memory_that_is_gone Undefined Behavior|use-after-free
a_slot_reached_through_a_number integer-to-pointer casts|strict-provenance
DEFECTS
    number=64
    [ -z "$quick" ] || number=4
    seeds few_threads $number -- few_threads::
    # Without threads one seed is as good as many.
    seeds permits_and_calls 1 -- permits::a_permit_of_before permits::a_live_save permits::a_limit_works \
        calls::every_call_error reset_key unlimited_keys
    [ -z "$quick" ] || return
    # Machines of the other byte order and of the other width.
    for target in s390x-unknown-linux-gnu i686-unknown-linux-gnu; do
        seeds "few_threads_on_$target" 4 --target $target -- few_threads::
    done
}

[ $# -gt 0 ] || set -- thread address miri
for tool; do
    case $tool in
    thread | address | miri) $tool ;;
    *)
        echo "usage: mk/sanitizers.sh [thread] [address] [miri]" >&2
        exit 2
        ;;
    esac
done
exit $failed
