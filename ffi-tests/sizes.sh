#!/bin/sh
# How many bytes of code and constants a static program gets from the archive, by the functions that it calls: the
# table of docs/PLATFORMS.md. From the root: ffi-tests/sizes.sh [ARCHIVE]
archive=${1:-target/c/libtatcell.a}
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
functions=$(sed -n 's/^ *\(tatcell_[a-z0-9_]*\);.*/\1/p' include/tatcell.map)

# row NAME PATTERN [NOT]: the functions that match the extended regular expression PATTERN and not NOT.
row() {
    called=$(echo "$functions" | grep -xE "tatcell_($2)" | grep -vxE "tatcell_(${3:-})")
    # shellcheck disable=SC2046
    ld -static --gc-sections --unresolved-symbols=ignore-all -e 0 $(printf -- '-u %s ' $called) "$archive" -o "$out" ||
        exit 1
    size -A "$out" | awk -v name="$1" '$1 ~ /^\.(text|rodata|data\.rel\.ro)/ { sum += $2 }
        END { printf "| %s | %d |\n", name, (sum + 500) / 1000 }'
}
row '`tatcell_cell_check`' cell_check
row 'the same, `tatcell_limit_init`' 'cell_check|limit_init'
row 'all of cells and their limits' '(cell|cell32|limit|exclusive)_.*' 'limit_init_.*table'
row leases 'lease_.*'
row 'colour meters' 'meter_.*'
row '`tatcell_table_init`, `_limit_init_table`, `_table_check`' 'table_init|limit_init_table|table_check'
row 'the same with `tatcell_table_check_burst` instead' 'table_init|limit_init_table|table_check_burst'
row '`tatcell_chain_check`' chain_check
row '`tatcell_ladder_check`' ladder_check
row 'all of chains and ladders' '(prepared_)?(chain|ladder)_.*'
row 'migration of a table' 'table_migrate.*'
row overrides 'table_(ban|exempt|lift|overridden).*'
row 'shapers and queues' '(shaper|group|leaky_queue)_.*'
row 'header fields of HTTP' 'http_.*'
row 'text for Prometheus' 'metrics_text'
row 'all of tables' 'table_.*'
row 'everything but `tatcell_host_*`' '.*' 'host_.*'
