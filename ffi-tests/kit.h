/* kit.h - limits and tables as most suites want them. */
#ifndef TATCELL_KIT_H
#define TATCELL_KIT_H

#include <stdlib.h>

#include "check.h"
#include "tatcell.h"

#define SECOND UINT64_C(1000000000)

static const uint8_t kit_seed[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static inline tatcell_limit_spec_t kit_spec(uint64_t units, uint64_t period, uint64_t burst) {
    tatcell_limit_spec_t s = TATCELL_LIMIT_SPEC_INIT;
    s.units = units;
    s.period = period;
    s.burst = burst;
    return s;
}

static inline tatcell_table_options_t kit_options(const tatcell_limit_spec_t *fastest) {
    tatcell_table_options_t o = TATCELL_TABLE_OPTIONS_INIT;
    o.fastest = fastest;
    o.seed = kit_seed;
    return o;
}

/* Attach options with this seed and these flags, until the next call in this thread. */
static inline const tatcell_attach_options_t *kit_attach(const uint8_t *seed, uint32_t flags) {
    static __thread tatcell_attach_options_t o;
    tatcell_attach_options_t fresh = TATCELL_ATTACH_OPTIONS_INIT;
    fresh.seed = seed;
    fresh.flags = flags;
    o = fresh;
    return &o;
}

/* A burst of keys of one length at a stride, under one limit. */
static inline tatcell_burst_t kit_burst(const tatcell_limit_t *limit, uint64_t now, const void *keys, size_t len,
                                        int64_t stride, uint32_t count) {
    tatcell_burst_t b = TATCELL_BURST_INIT;
    b.limit = limit;
    b.now = now;
    b.keys = keys;
    b.key_len = len;
    b.stride = stride;
    b.count = count;
    return b;
}

/* Zeroed table memory from the heap, so that sanitizers and valgrind see its ends. */
static inline void *kit_memory(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, TATCELL_TABLE_MEMORY_ALIGN, bytes) != 0) abort();
    memset(p, 0, bytes);
    return p;
}

/* A table, its memory and one limit. */
typedef struct kit_table {
    tatcell_table_t table;
    tatcell_limit_t limit;
    tatcell_limit_spec_t spec;
    void *memory;
    size_t bytes;
} kit_table;

/* Makes a table for one limit; `o` NULL = defaults. */
static inline int32_t kit_make(kit_table *k, tatcell_limit_spec_t spec, uint64_t slots,
    const tatcell_table_options_t *o) {
    memset(k, 0, sizeof *k);
    k->spec = spec;
    k->bytes = tatcell_table_bytes(slots);
    k->memory = kit_memory(k->bytes);
    tatcell_table_options_t options = o ? *o : kit_options(&k->spec);
    options.fastest = &k->spec;
    int32_t rc = tatcell_table_init(&k->table, k->memory, k->bytes, &options);
    options.fastest = NULL;
    return rc ? rc : tatcell_limit_init_table(&k->limit, &k->table, &k->spec);
}

static inline void kit_free(kit_table *k) {
    free(k->memory);
    k->memory = NULL;
}

static inline uint64_t kit_hash(const kit_table *k, const char *key) {
    uint64_t h = 0;
    if (tatcell_table_hash(&k->table, key, strlen(key), &h) != 0) abort();
    return h;
}

#endif /* TATCELL_KIT_H */
