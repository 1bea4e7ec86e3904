/* contended.c - for the tests: the policer on a table whose words other lcores win, or that is not there.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Linked with --wrap of the calls that decide. TATCELL_LOSES=once: keys whose 16th byte is divisible by 3 (sources of
 * IPv6 have 0) lose in a burst, and get their verdict when they are asked for alone; always: there, too; table: every
 * tenth call is an error. A meter loses every third packet in all of them. */
#include <stdlib.h>
#include <string.h>

#include <tatcell.h>

typedef int32_t ask(const tatcell_table_t *table, tatcell_burst_t *one, const void *limit, const uint32_t *costs,
                    uint8_t *colours);

int32_t __real_tatcell_table_check_burst(const tatcell_table_t *, tatcell_burst_t *, tatcell_burst_t *);
int32_t __real_tatcell_table_check_pairs(const tatcell_table_t *, tatcell_burst_t *, const tatcell_limit_t *,
                                         const uint32_t *, tatcell_burst_t *);
int32_t __real_tatcell_table_mark_burst(const tatcell_table_t *, tatcell_burst_t *, const tatcell_mark_t *,
                                        const uint8_t *, uint8_t *, uint64_t *, tatcell_burst_t *);
int32_t __real_tatcell_meter_check(tatcell_meter_t *, const tatcell_meter_params_t *, uint64_t, uint64_t, uint32_t,
                                   uint32_t *);

static int32_t check(const tatcell_table_t *table, tatcell_burst_t *one, const void *limit, const uint32_t *costs,
                     uint8_t *colours) {
    (void)limit, (void)costs, (void)colours;
    return __real_tatcell_table_check_burst(table, one, NULL);
}

static int32_t pair(const tatcell_table_t *table, tatcell_burst_t *one, const void *limit, const uint32_t *costs,
                    uint8_t *colours) {
    (void)colours;
    return __real_tatcell_table_check_pairs(table, one, limit, costs, NULL);
}

static int32_t mark(const tatcell_table_t *table, tatcell_burst_t *one, const void *limit, const uint32_t *costs,
                    uint8_t *colours) {
    (void)costs;
    return __real_tatcell_table_mark_burst(table, one, limit, NULL, colours, NULL, NULL);
}

/* A packet at a time. Only bursts have another one next. */
static int32_t each(ask *of_one, const tatcell_table_t *table, tatcell_burst_t *burst, const void *limit,
                    const uint32_t *costs, uint8_t *colours, const tatcell_burst_t *next) {
    static unsigned calls;
    const char *const loses = getenv("TATCELL_LOSES");
    if (loses == NULL) return TATCELL_ERR_OPTION;
    if (strcmp(loses, "table") == 0 && ++calls % 10 == 0) return TATCELL_ERR_HANDLE;
    const int lossy = strcmp(loses, "always") == 0 || (strcmp(loses, "once") == 0 && next != NULL);
    burst->pass = 0;
    for (uint32_t i = 0; i < burst->count; i++) {
        const uint8_t *const key = (const uint8_t *)burst->keys + burst->stride * i;
        if (lossy && key[15] % 3 == 0) {
            burst->counters->contended++;
            continue;
        }
        tatcell_burst_t one = *burst;
        one.count = 1, one.prepared = 0, one.keys = key, one.key_lens = NULL;
        if (burst->key_lens != NULL) one.key_len = burst->key_lens[i];
        if (burst->costs != NULL) one.costs = burst->costs + i;
        const int32_t rc = of_one(table, &one, limit, costs == NULL ? NULL : costs + i,
                                  colours == NULL ? NULL : colours + i);
        if (rc < 0) return rc;
        burst->pass |= (one.pass & 1) << i;
    }
    return TATCELL_PASS;
}

int32_t __wrap_tatcell_table_check_burst(const tatcell_table_t *table, tatcell_burst_t *burst, tatcell_burst_t *next) {
    return each(check, table, burst, NULL, NULL, NULL, next);
}

int32_t __wrap_tatcell_table_check_pairs(const tatcell_table_t *table, tatcell_burst_t *burst,
                                         const tatcell_limit_t *second, const uint32_t *costs, tatcell_burst_t *next) {
    return each(pair, table, burst, second, costs, NULL, next);
}

int32_t __wrap_tatcell_table_mark_burst(const tatcell_table_t *table, tatcell_burst_t *burst,
                                        const tatcell_mark_t *of, const uint8_t *pre, uint8_t *colours,
                                        uint64_t *counts, tatcell_burst_t *next) {
    (void)pre, (void)counts;
    return each(mark, table, burst, of, NULL, colours, next);
}

int32_t __wrap_tatcell_meter_check(tatcell_meter_t *meter, const tatcell_meter_params_t *params, uint64_t now,
                                   uint64_t cost, uint32_t pre, uint32_t *colour) {
    static unsigned packets;
    if (packets++ % 3 == 0) {
        *colour = TATCELL_RED;
        return TATCELL_CONTENDED;
    }
    return __real_tatcell_meter_check(meter, params, now, cost, pre, colour);
}
