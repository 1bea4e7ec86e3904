/* user.c - the object for kernel modules in a program, for an architecture whose kernel is not booted here: that it is
 * code of that architecture, and decides as everywhere. Prints what it finds; 1 where it is something else. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tatcell.h>

static int claims, bad;

static void claim(bool holds, const char *what, uint64_t found, uint64_t wanted) {
    claims++;
    if (holds) return;
    bad++, printf("%s: %llu, %llu wanted; ", what, (unsigned long long)found, (unsigned long long)wanted);
}

#include "../module/ladders.h"

int main(void) {
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit, of_keys;
    tatcell_table_t table;
    size_t bytes = tatcell_table_bytes(4096);
    void *memory = aligned_alloc(64, bytes);
    int of_cell = 0, of_table = 0;
    uint64_t wait = 0;
    spec.units = 10, spec.period = 1000000000, spec.burst = 3;
    options.fastest = &spec, options.seed = (const uint8_t *)"sixteen bytes: x";
    if (tatcell_limit_init_spec(&limit, &spec) < 0 || tatcell_table_init(&table, memory, bytes, &options) < 0 ||
        tatcell_limit_init_table(&of_keys, &table, &spec) < 0)
        return 1;
    for (int i = 0; i < 10; i++) of_cell += tatcell_cell_check(&cell, &limit, 1000, 1, &wait) == TATCELL_PASS;
    for (int key = 0; key < 500; key++)
        for (int i = 0; i < 5; i++)
            of_table += tatcell_table_check(&table, &of_keys, 1000, &key, sizeof key, 1, NULL) == TATCELL_PASS;
    ladder_claims(aligned_alloc(64, 2 * tatcell_table_bytes(LADDER_SLOTS)));
    printf("a cell admits %d of 3, wait %d ms, 500 keys %d of 1500, %d of %d claims of ladders hold\n", of_cell,
           (int)(wait / 1000000), of_table, claims - bad, claims);
    return bad || claims < 20 || of_cell != 3 || wait != 100000000 || of_table != 1500;
}
