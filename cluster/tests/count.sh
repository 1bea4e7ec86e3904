#!/bin/sh
# Counts the instructions of a decision by each way of deciding, and compares them with gates.tsv: tests/count.sh PROGRAM
# (examples/decision_cost.rs, built). WRITE=1 writes the file instead. `make count` runs it.
#
# Callgrind collects in one function only, so neither the opening nor the thread of the store is in a count. What a
# process draws at random, where keys lie, moves a count by less than the margin: 2 % above the file's number with the
# compiler of the file, 25 % with another.
set -u
program=$1
compiler=$(rustc --version | sed 's/^rustc \([0-9]*\.[0-9]*\).*/\1/')
# As the program has it.
decisions=16384
for tool in valgrind redis-server redis-cli; do
    command -v $tool > /dev/null ||
        { echo "SKIP a_decision_takes_no_more_instructions: no $tool (apt-get install valgrind redis-server redis-tools)"
          exit 0; }
done

# What callgrind collected, for one way.
collected() {
    tests/store.sh sh -c "valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        '--toggle-collect=*counted_decisions*' '$program' \"\$STORE\" $1" 2>&1 | sed -n 's/.*Collected : *//p'
}

rows=$(for row in lease reserve refused; do
    collected $row | awk -v row=$row -v n=$decisions '$1 > 0 { printf "%s\t%.2f\n", row, $1 / n }'
done)
if [ -n "${WRITE:-}" ]; then
    { sed -n '/^# rustc/q; /^#/p' gates.tsv; echo "# rustc $compiler"; echo "$rows"; } > gates.tsv.new
    mv gates.tsv.new gates.tsv && cat gates.tsv
    exit
fi
# Each row of the file must have been counted.
echo "$rows" | awk -v compiler="$compiler" '
    FNR == NR && /^# rustc / { slack = $3 == compiler ? 2 : 25 }
    FNR == NR && !/^#/ { most[$1] = $2 }
    FNR != NR && NF { each[$1] = $2 }
    END {
        for (row in most) {
            name = row ": a_decision_takes_no_more_instructions"
            said = sprintf("%s instructions, %s + %d %% allowed", each[row], most[row], slack)
            if (each[row] > 0 && each[row] <= most[row] * (1 + slack / 100)) print "PASS " name " (" said ")"
            else { print "FAIL " name ": " said; failed = 1 }
            rows++
        }
        exit failed || rows == 0
    }' gates.tsv -
