#!/bin/sh
# A tool is only believed if it reports the defects of its kind in defects.c. Environment: TOOL, RUNNER, DEFECTS (the
# program), LIB, OUT.
. ffi-tests/tap.sh
prefix="$TOOL: "

# A defect was reported: all words were printed, and the run ended with an error before its end.
reported() {
    $RUNNER "$DEFECTS" "$1" > "$tmp/report" 2>&1 && { echo 'it ran to its end'; return 1; }
    shift
    for words; do
        grep -qF "$words" "$tmp/report" || { echo "nothing says '$words'"; tail -n 20 "$tmp/report"; return 1; }
    done
}
sees() { claim "reports_$1" reported "$@"; }
# The library's own objects, not only those of core, call this sanitizer, and those of the shipped library do not.
instrumented() {
    nm -A "$OUT/rust-$1"/*/release/libtatcell.a 2> /dev/null | grep 'tatcell.*\.o: *U ' | grep -q " $2" || return 1
    fails sh -c "nm -A '$LIB/libtatcell.a' | grep -q ' $2'"
}
export TSAN_OPTIONS=halt_on_error=1 ASAN_OPTIONS=detect_leaks=0
case $TOOL in
    asan)
        sees past_the_end 'heap-buffer-overflow' 'READ of size 1' 'past_the_end'
        sees shift 'shift exponent 33 is too large' ;;
    asan-rust)
        claim library_is_instrumented instrumented address __asan_report_
        sees read_behind 'heap-buffer-overflow' 'READ of size' 'tatcell_table_hash'
        sees write_behind 'heap-buffer-overflow' 'WRITE of size' 'tatcell_table_init'
        sees shift 'shift exponent 33 is too large' ;;
    tsan) sees two_writers 'ThreadSanitizer: data race' 'write_plainly' ;;
    tsan-rust)
        claim library_is_instrumented instrumented thread __tsan_atomic64_
        sees race 'ThreadSanitizer: data race' 'write_plainly'
        sees two_owners 'ThreadSanitizer: data race' 'tatcell_cell_check_exclusive' ;;
    memcheck)
        sees read_behind 'Invalid read of size' 'tatcell_table_hash'
        sees write_behind 'Invalid write of size' 'tatcell_table_init'
        sees unset 'depends on uninitialised value' 'tatcell_cell_check' ;;
    helgrind) sees race 'Possible data race' 'write_plainly' ;;
    drd) sees race 'Conflicting store' 'write_plainly' ;;
    sse2) sees wide 'Illegal instruction' ;;
esac
finish
