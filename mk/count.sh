#!/bin/sh
# Runs a command, passes its output on, and ends with 'N passed, N failed, N skipped'.
#
#     mk/count.sh make test-c
#
# It counts TAP, libtest, nextest and lines that begin with PASS, FAIL or SKIP. A Rust test that cannot run here prints
# "SKIP name: why" and returns; nextest indents that line, and then the pass of that test is taken off. A command that
# fails without a counted failure, or that runs no test at all, counts as one failure.
# mawk waits for a full buffer unless it is told to take each line as it comes.
case $(awk -W version 2> /dev/null < /dev/null) in mawk*) lines='-W interactive' ;; *) lines= ;; esac
{ "$@" 2>&1; echo "=status $?"; } | awk $lines '
    /^=status / { status = $2; next }
    { print; fflush() }
    /^ *(ok|not ok) [0-9]+/ { if (/# [Ss][Kk][Ii][Pp]/) skipped++; else if (/^ *ok/) passed++; else failed++; next }
    /^PASS / { passed++; next }
    /^FAIL / { failed++; next }
    /^SKIP [^ ]+/ { skipped++; next }
    /^ +SKIP [^ ]+:/ { skipped++; by_itself++; next }
    /^test .* \.\.\. ok$/ { rust++; next }
    /^test .* \.\.\. FAILED$/ { failed++; next }
    /^ +PASS \[/ { rust++; next }
    /^ +(TRY [0-9]+ )?(FAIL|ABORT|SIG[A-Z]+|TIMEOUT) \[/ { if (!(seen[$NF]++)) failed++; next }
    END {
        passed += rust - by_itself
        if (status && !failed || passed + failed + skipped == 0) {
            failed++
            print "FAIL it ended with status " status ", and no failure was counted"
        }
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
        exit failed > 0
    }'
