#!/bin/sh
# Runs a part of the Rust tests of the library:
#
#     mk/rust-tests.sh check     the unit tests of the library alone
#     mk/rust-tests.sh unit      what takes seconds: unit tests, tests/, examples, programs in the documentation
#     mk/rust-tests.sh races     threads that race for one word a million times; nothing else runs meanwhile
#     mk/rust-tests.sh loom      models under loom: every schedule of small calls with weak memory, up to a bound
#     mk/rust-tests.sh step      worlds of the explorer: every schedule of whole calls, one atomic access a step
#     mk/rust-tests.sh long      1e9 decisions compared with oracles, 1e5 kills, stopped clocks (an hour)
#     mk/rust-tests.sh loom-long the models with higher bounds (hours)
#     mk/rust-tests.sh step-long the worlds that take minutes and gigabytes each
#
# TATCELL_QUICK=1 makes the last three short: minutes. With cargo-nextest every test has a process of its own; without
# it cargo test runs the same tests. Fewer tests than are known to exist are a failure: a filter that finds nothing does
# not pass. A test that cannot run here prints "SKIP name: why", which mk/count.sh takes off the passes.
set -eu
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
quick=${TATCELL_QUICK:-}
# With the C ABI, whose pointers and numbers have unit tests, too. Without it the examples are not programs in C.
all=std,host,heapless,single-core,capi
documented=std,host,heapless,single-core
nextest=
if [ -z "${TATCELL_NO_NEXTEST:-}" ] && $cargo nextest --version > /dev/null 2>&1; then nextest=yes; fi

races='binary(race) | test(/^refusals::threads_/)'
steps='test(/^table::(models::)?step::/)'
failed=0

# run LEAST PROFILE RUN FILTER NAMES OPTIONS...: runs the tests that nextest's FILTER finds, LEAST or more of them; RUN
# is "default" or "only" for those that are ignored by day. cargo test takes NAMES, as arguments of its programs.
run() {
    least=$1 profile=$2 which=$3 filter=$4 names=$5
    shift 5
    ignored=
    [ "$which" = default ] || ignored=--ignored
    if [ -n "$nextest" ]; then
        list=$($cargo nextest list --profile "$profile" --run-ignored "$which" -T oneline "$@" -E "$filter")
        found=$(printf '%s\n' "$list" | grep -c . || true)
    else
        # shellcheck disable=SC2086 # names are words
        list=$($cargo test --quiet "$@" -- --list --format=terse $ignored $names)
        found=$(printf '%s\n' "$list" | grep -c ': test$' || true)
    fi
    if [ "$found" -lt "$least" ]; then
        echo "FAIL rust-tests: $found tests found, and $least are known: a test is gone, or the filter is wrong"
        failed=1
    fi
    if [ -n "$nextest" ]; then
        # What a test that passed has printed, but for the lines that are the same for every test.
        {
            $cargo nextest run --profile "$profile" --run-ignored "$which" --success-output immediate "$@" \
                -E "$filter" 2>&1 || echo "=failed"
        } | awk '
            /^=failed$/ { bad = 1; next }
            /^ *$/ || /^  std(out|err) ───/ || /^    running 1 test$/ || /^    test .* ok$/ || /^    test result: ok/ { next }
            { print; fflush() }
            END { exit bad }' || failed=1
    else
        # shellcheck disable=SC2086
        cargo_test "$@" -- --show-output --test-threads=2 $ignored $names
    fi
}

# cargo test, with SKIP lines indented, as nextest does it: mk/count.sh then knows that a test printed them.
cargo_test() {
    { $cargo test --no-fail-fast "$@" 2>&1 || echo "=failed"; } | {
        bad=0
        while IFS= read -r line; do
            case $line in
            =failed) bad=1 ;;
            SKIP\ *) printf '    %s\n' "$line" ;;
            *) printf '%s\n' "$line" ;;
            esac
        done
        exit "$bad"
    } || failed=1
}

# The library alone, with the atomics of a checker: checker CFG.
checker() {
    RUSTFLAGS="--cfg tatcell_$1" CARGO_TARGET_DIR=$PWD/target/$1
    export RUSTFLAGS CARGO_TARGET_DIR
}

# models LEAST FILTER NAMES: models of loom. Within one process they would wait for each other's stacks to be mapped,
# so without nextest each is started alone.
models() {
    checker loom
    if [ -n "$nextest" ]; then
        run "$1" "$profile" default "$2" '' --cargo-profile loom --lib --features std
        return
    fi
    said=$($cargo test --profile loom --lib --features std --no-run 2>&1) || { echo "$said"; exit 1; }
    program=$(printf '%s\n' "$said" | sed -n 's/.*Executable .*(\(.*\))$/\1/p')
    # shellcheck disable=SC2086
    list=$("$program" --list --format=terse $3 | sed -n 's/: test$//p')
    if [ "$(printf '%s\n' "$list" | grep -c .)" -lt "$1" ]; then
        echo "FAIL rust-tests: fewer than $1 models found"
        failed=1
    fi
    # What a model says comes as a whole, when it has ended: two run at a time.
    # shellcheck disable=SC2016 # the inner shell's
    printf '%s\n' "$list" |
        xargs -P 2 -n 1 sh -c 'said=$("$0" --exact "$1" 2>&1); as=$?; printf "%s\n" "$said"; exit $as' "$program" ||
        failed=1
}

case ${1:-} in
check)
    run 259 default default 'kind(lib)' '' --features "$all" --lib
    ;;
unit)
    if [ -n "$nextest" ]; then
        run 785 default default "not ($races)" '' --features "$all" --lib --tests --examples
    else
        run 785 default default '' '--skip refusals::threads_' --features "$all" --lib --examples --test cell \
            --test table --test combine --test small --test host --test kill --test defects --test layout
    fi
    cargo_test --features "$documented" --doc
    ;;
races)
    run 10 default default "binary(race)" '' --features "$all" --test race
    run 3 default default 'test(/^refusals::threads_/)' refusals::threads_ --features "$all" --test cell
    ;;
loom)
    profile=default
    models 150 'test(/loom_/)' loom_
    ;;
loom-long)
    profile=long
    export TATCELL_LOOM=long
    if [ -z "$quick" ]; then
        models 150 'test(/loom_/)' loom_
    else
        # Each has a higher bound here than by day, and ends in seconds to half a minute.
        some='refund_of_before_a_reset_takes_nothing_from_what_came_after_it two_stalled_claims_admit_one_burst
            claim_without_version_is_caught the_shipped_protocol_passes_beside_a_stopped_thread'
        # shellcheck disable=SC2086
        models 4 "test(/$(echo $some | tr ' ' '|')/)" "$some"
    fi
    ;;
step)
    checker step
    run 62 default default "$steps" step:: --cargo-profile loom --lib --features std
    ;;
step-long)
    checker step
    run 3 long only "$steps" step:: --cargo-profile loom --lib --features std
    ;;
long)
    options="--release --features std,host"
    # The quick form asks the oracles as often: 1e9 decisions of 30 to 60 ns, so a minute.
    if [ -n "$quick" ]; then export TATCELL_KILLS=1e3 TATCELL_STOP_RUNS=1; fi
    # shellcheck disable=SC2086
    run 2 long only 'binary(kill) | (binary(host) & test(/^clock::/))' '' $options --test kill --test host
    # Every day's tests beside oracles, with more: decisions of a test; steps of a test, each of which asks some ten
    # times; and packets, of meters in all and of marks by kind.
    export TATCELL_DECISIONS="${TATCELL_DECISIONS:-1e9}"
    TATCELL_COUNTED_STEPS=2e7 TATCELL_METER_PACKETS=5e7
    [ -z "$quick" ] || TATCELL_COUNTED_STEPS=1e6
    export TATCELL_COUNTED_STEPS TATCELL_METER_PACKETS
    # shellcheck disable=SC2086
    run 74 long default 'test(/^(long|counted|meters::properties|mark)::/)' \
        'long:: counted:: meters::properties:: mark::' \
        $options --test cell --test combine
    # Bursts by groups beside single calls: a unit test, since only the library can choose the step of a group.
    TATCELL_BURSTS=1e8
    [ -z "$quick" ] || TATCELL_BURSTS=1e6
    export TATCELL_BURSTS
    # shellcheck disable=SC2086
    run 1 long default 'test(groups_decide_count_and_store)' groups_decide_count_and_store $options --lib
    # Both ways of a chain beside single calls: a unit test, since only the library can choose the way.
    TATCELL_CHAINS=1e7
    [ -z "$quick" ] || TATCELL_CHAINS=1e6
    export TATCELL_CHAINS
    # shellcheck disable=SC2086
    run 1 long default 'test(both_ways_answer_and_store)' both_ways_answer_and_store $options --lib
    ;;
*)
    echo "usage: mk/rust-tests.sh check|unit|races|loom|step|long|loom-long|step-long" >&2
    exit 2
    ;;
esac
exit "$failed"
