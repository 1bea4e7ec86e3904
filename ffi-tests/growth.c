/* growth.c - structures of older and newer headers, objects of other libraries, and what ABI 1 promises for good. */
#include "kit.h"
#include "tatcell_host.h"

enum { LARGEST = 4096 };

/* A structure in a buffer that is as large as any may be, and some more. */
static _Alignas(8) unsigned char big[LARGEST + 64];
static const uint32_t bad_sizes[] = {0, 7, 8, 4100, 4097, 4104, 8192, UINT32_MAX};

static tatcell_limit_t limit;
static tatcell_table_t table;
static kit_table k;
static tatcell_meter_params_t params;

static void set_size(uint32_t size) {
    memcpy(big, &size, sizeof size);
}

typedef int32_t call(void *structure);

/* Options: the least size, every larger one whose tail is zero; nothing that the library does not know. */
static void options_grow(const void *good, size_t own, size_t least, call *take) {
    memset(big, 0, sizeof big);
    memcpy(big, good, own);
    EXPECT(least <= own);
    for (size_t size = own; size <= LARGEST; size += size < own + 64 ? 8 : 1000 / 8 * 8) {
        NOTE("size %d", (int)size);
        set_size((uint32_t)size);
        EQ(take(big), 0);
    }
    set_size(LARGEST);
    EQ(take(big), 0);
    set_size((uint32_t)least);
    EQ(take(big), 0);
    for (size_t i = own; i < LARGEST; i += i < own + 16 ? 1 : 61) {
        NOTE("byte %d", (int)i);
        big[i] = 1;
        set_size((uint32_t)own);
        EQ(take(big), 0); /* behind its end: not its own */
        set_size(LARGEST);
        EQ(take(big), TATCELL_ERR_OPTION);
        big[i] = 0;
    }
    for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++) {
        NOTE("size %u", bad_sizes[i]);
        set_size(bad_sizes[i]);
        EQ(take(big), TATCELL_ERR_SIZE);
    }
    set_size((uint32_t)least - 8);
    EQ(take(big), TATCELL_ERR_SIZE);
    set_size((uint32_t)own + 4);
    EQ(take(big), TATCELL_ERR_SIZE);
}

/* Results: written up to the smaller of both sizes, but for the size itself. */
static void results_grow(size_t own, size_t least, call *take) {
    static const size_t more[] = {0, 8, 64, 1024};
    for (int i = 0; i < 4; i++) {
        size_t size = own + more[i];
        NOTE("size %d", (int)size);
        memset(big, 0xa5, sizeof big);
        set_size((uint32_t)size);
        EQ(take(big), 0);
        uint32_t kept;
        memcpy(&kept, big, sizeof kept);
        EQ(kept, size);
        for (size_t b = own; b < sizeof big; b++) EQ(big[b], 0xa5);
    }
    memset(big, 0xa5, sizeof big);
    set_size((uint32_t)least);
    EQ(take(big), 0);
    for (size_t b = least; b < sizeof big; b++) EQ(big[b], 0xa5);
    for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++) {
        NOTE("size %u", bad_sizes[i]);
        set_size(bad_sizes[i]);
        EQ(take(big), TATCELL_ERR_SIZE);
        for (size_t b = 4; b < sizeof big; b++) EXPECT(b < least || big[b] == 0xa5);
    }
    set_size((uint32_t)least - 8);
    EQ(take(big), TATCELL_ERR_SIZE);
    set_size((uint32_t)own + 4);
    EQ(take(big), TATCELL_ERR_SIZE);
}

static int32_t take_spec(void *s) { return tatcell_limit_init_spec(&limit, (const tatcell_limit_spec_t *)s); }
static int32_t take_spec32(void *s) { return tatcell_limit32_init_spec(&limit, (const tatcell_limit_spec_t *)s); }
static int32_t take_table_spec(void *s) {
    return tatcell_limit_init_table(&limit, &k.table, (const tatcell_limit_spec_t *)s);
}
static int32_t take_options(void *s) {
    return tatcell_table_init(&table, k.memory, k.bytes, (const tatcell_table_options_t *)s);
}
static int32_t take_attach(void *s) {
    return tatcell_table_attach(&table, k.memory, k.bytes, (const tatcell_attach_options_t *)s);
}
static int32_t take_meter(void *s) { return tatcell_meter_params_init(&params, (const tatcell_meter_spec_t *)s); }
static int32_t take_burst(void *s) { return tatcell_table_check_burst(&k.table, (tatcell_burst_t *)s, NULL); }
static int32_t take_chain(void *s) { return tatcell_chain_check((tatcell_chain_t *)s, 0, NULL); }
static int32_t take_mark(void *s) {
    return tatcell_table_mark_hash(&k.table, (tatcell_mark_t *)s, 0, 1, 0, TATCELL_GREEN, NULL);
}
/* A link as large as its chain says; what it says of its own size is not read. */
static int32_t take_link(void *s) {
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    chain.links = (const tatcell_link_t *)s, chain.count = 1;
    memcpy(&chain.link_size, s, sizeof chain.link_size);
    return tatcell_chain_check(&chain, 0, NULL);
}
static int32_t take_rungs(void *s) {
    tatcell_limit_spec_t one = kit_spec(10, SECOND, 5), fastest = one, slowest = one;
    return tatcell_ladder_table_specs(&one, (const tatcell_ladder_spec_t *)s, &fastest, &slowest);
}
static tatcell_table_t bans;
static int32_t take_lengths(void *s) {
    uint32_t kind;
    const tatcell_prefix_lengths_t *lengths = (const tatcell_prefix_lengths_t *)s;
    return tatcell_table_overridden_address(&bans, 5, "1234", 4, lengths, &kind, NULL, NULL);
}

static const tatcell_meter_spec_t meter = {sizeof meter, 0, TATCELL_METER_RFC2697, 0, 46000000, 2048, 0, 4096, SECOND,
    0, 0};

TEST(options_of_newer_headers_are_taken_unless_they_use_what_is_unknown) {
    tatcell_limit_spec_t spec = kit_spec(10, SECOND, 5);
    EQ(kit_make(&k, spec, 64, NULL), 0);
    DO(options_grow(&spec, sizeof spec, TATCELL_LIMIT_SPEC_MIN, take_spec));
    tatcell_limit_spec_t slow = kit_spec(10, 1000, 5);
    DO(options_grow(&slow, sizeof slow, TATCELL_LIMIT_SPEC_MIN, take_spec32));
    DO(options_grow(&spec, sizeof spec, TATCELL_LIMIT_SPEC_MIN, take_table_spec));
    tatcell_table_options_t o = kit_options(&k.spec);
    DO(options_grow(&o, sizeof o, TATCELL_TABLE_OPTIONS_MIN, take_options));
    DO(options_grow(kit_attach(kit_seed, 0), sizeof(tatcell_attach_options_t), TATCELL_ATTACH_OPTIONS_MIN,
        take_attach));
    tatcell_burst_t b = kit_burst(&k.limit, 0, "a key", 5, 0, 3);
    DO(options_grow(&b, sizeof b, TATCELL_BURST_MIN, take_burst));
    DO(options_grow(&meter, sizeof meter, TATCELL_METER_SPEC_MIN, take_meter));
    static tatcell_cell_t chained;
    static tatcell_limit_t unlimited;
    EQ(tatcell_limit_init_unlimited(&unlimited), 0);
    tatcell_link_t link = TATCELL_LINK_INIT;
    link.cell = &chained, link.limit = &unlimited, link.cost = 1;
    DO(options_grow(&link, sizeof link, TATCELL_LINK_MIN, take_link));
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    chain.links = &link, chain.count = 1, chain.link_size = sizeof link;
    DO(options_grow(&chain, sizeof chain, TATCELL_CHAIN_MIN, take_chain));
    tatcell_mark_t mark = TATCELL_MARK_INIT;
    mark.kind = TATCELL_METER_RFC4115, mark.committed = mark.second = &k.limit;
    DO(options_grow(&mark, sizeof mark, TATCELL_MARK_MIN, take_mark));
    tatcell_ladder_spec_t rungs = TATCELL_LADDER_SPEC_INIT;
    DO(options_grow(&rungs, sizeof rungs, TATCELL_LADDER_SPEC_MIN, take_rungs));
    static TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES(16)];
    tatcell_table_options_t overrides = TATCELL_TABLE_OPTIONS_INIT;
    overrides.overrides = 1000, overrides.seed = kit_seed;
    EQ(tatcell_table_init(&bans, memory, sizeof memory, &overrides), 0);
    const tatcell_prefix_lengths_t lengths = TATCELL_PREFIX_LENGTHS_INIT;
    DO(options_grow(&lengths, sizeof lengths, TATCELL_PREFIX_LENGTHS_MIN, take_lengths));
    kit_free(&k);
}

static tatcell_cell_t cell;

static int32_t check_ex(void *d) {
    cell.word = 0;
    return tatcell_cell_check_ex(&cell, &limit, 5, 1, 0, (tatcell_decision_t *)d, NULL);
}
static int32_t peek(void *d) { return tatcell_table_peek(&k.table, &k.limit, 5, "key", 3, 1, (tatcell_decision_t *)d); }
static int32_t stats(void *s) { return tatcell_table_stats(&k.table, 5, (tatcell_stats_t *)s); }
static int32_t limit_info(void *s) { return tatcell_limit_info(&k.limit, (tatcell_limit_info_t *)s); }
static int32_t limit_export(void *s) { return tatcell_limit_export(&k.limit, (tatcell_limit_numbers_t *)s); }
static int32_t table_info(void *s) { return tatcell_table_info(&k.table, (tatcell_table_info_t *)s); }
static int32_t meter_info(void *s) { return tatcell_meter_params_info(&params, (tatcell_meter_info_t *)s); }
static tatcell_shaper_t shaper;
static int32_t shaper_info(void *s) { return tatcell_shaper_info(&shaper, (tatcell_shaper_info_t *)s); }
static int32_t table_export(void *s) { return tatcell_table_export(&k.table, (tatcell_table_numbers_t *)s); }
static int32_t huge(void *s) {
    tatcell_host_memory_t *m = (tatcell_host_memory_t *)s;
    int32_t rc = tatcell_host_memory_map(4096, 0, m);
    if (rc != 0) return rc;
    tatcell_host_memory_t copy = *m;
    copy.size = sizeof copy;
    return tatcell_host_memory_unmap(&copy);
}

static int32_t guard(void *g) { return tatcell_host_guard_start((tatcell_host_guard_t *)g, SECOND, 5, NULL); }

TEST(results_fill_what_both_headers_know_and_keep_the_size) {
    EQ(kit_make(&k, kit_spec(10, SECOND, 5), 64, NULL), 0);
    EQ(tatcell_limit_init(&limit, 10, SECOND, 5), 0);
    DO(results_grow(sizeof(tatcell_decision_t), TATCELL_DECISION_MIN, check_ex));
    DO(results_grow(sizeof(tatcell_decision_t), TATCELL_DECISION_MIN, peek));
    DO(results_grow(sizeof(tatcell_stats_t), TATCELL_STATS_MIN, stats));
    DO(results_grow(sizeof(tatcell_limit_info_t), TATCELL_LIMIT_INFO_MIN, limit_info));
    DO(results_grow(sizeof(tatcell_limit_numbers_t), TATCELL_LIMIT_NUMBERS_MIN, limit_export));
    DO(results_grow(sizeof(tatcell_table_info_t), TATCELL_TABLE_INFO_MIN, table_info));
    DO(results_grow(sizeof(tatcell_table_numbers_t), TATCELL_TABLE_NUMBERS_MIN, table_export));
    EQ(tatcell_meter_params_init(&params, &meter), 0);
    DO(results_grow(sizeof(tatcell_meter_info_t), TATCELL_METER_INFO_MIN, meter_info));
    static uint64_t memory[TATCELL_SHAPER_BYTES(64, 1) / 8];
    EQ(tatcell_shaper_init(&shaper, memory, sizeof memory, 64, 1, 0), 0);
    DO(results_grow(sizeof(tatcell_shaper_info_t), TATCELL_SHAPER_INFO_MIN, shaper_info));
    DO(results_grow(sizeof(tatcell_host_memory_t), TATCELL_HOST_MEMORY_MIN, huge));
    DO(results_grow(sizeof(tatcell_host_guard_t), TATCELL_HOST_GUARD_MIN, guard));
    kit_free(&k);
}

/* Decisions of a newer header, in a row: what lies between them stays as it is. */
TEST(rows_of_larger_decisions_are_written_apart) {
    struct { tatcell_decision_t d; uint64_t more[5]; } rows[8];
    EQ(kit_make(&k, kit_spec(10, SECOND, 5), 64, NULL), 0);
    tatcell_burst_t b = kit_burst(&k.limit, 0, "a key", 5, 0, 8);
    memset(rows, 0xa5, sizeof rows);
    b.decisions = &rows[0].d;
    b.decision_size = sizeof rows[0];
    EQ(tatcell_table_check_burst(&k.table, &b, NULL), 0);
    for (int i = 0; i < 8; i++) {
        NOTE("row %d", i);
        EQ(rows[i].d.size, 0xa5a5a5a5); /* neither read nor written */
        EQ(rows[i].d.verdict, i < 5 ? 0 : TATCELL_NON_CONFORMING);
        EQ(rows[i].d.remaining, i < 5 ? 4 - (unsigned)i : 0);
        for (int m = 0; m < 5; m++) EXPECT(rows[i].more[m] == UINT64_C(0xa5a5a5a5a5a5a5a5));
    }
    kit_free(&k);
}

/* A mark is 64 bits and holds the layout: garbage does not pass, nor does one bit of difference. */
/* A decision of the first release, with other objects right behind it: it does not reach into them. */
TEST(a_shorter_decision_ends_where_its_caller_says) {
    static struct {
        unsigned char decision[TATCELL_DECISION_MIN];
        tatcell_counters_t counters;
        unsigned char second[TATCELL_DECISION_MIN];
        tatcell_permit_t permits[8];
    } as;
    tatcell_decision_t *d = (tatcell_decision_t *)(void *)as.decision;
    tatcell_decision_t *second = (tatcell_decision_t *)(void *)as.second;
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_link_t link = TATCELL_LINK_INIT;
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    EXPECT(sizeof(tatcell_decision_t) > TATCELL_DECISION_MIN);
    EQ(kit_make(&k, kit_spec(1, 1000, 9), 64, NULL), 0);
    EQ(tatcell_limit_init(&limit, 1, 1000, 9), 0);
    d->size = second->size = TATCELL_DECISION_MIN;
    EQ(tatcell_table_check_ex(&k.table, &k.limit, 1, "k", 1, 1, 0, d, &as.counters), 0);
    EQ(tatcell_table_charge_ex(&k.table, &k.limit, 1, "k", 1, 1, d, &as.counters), 0);
    EXPECT(d->remaining == 7 && as.counters.conforming == 2);
    link.cell = &cell, link.limit = &limit, link.cost = 1;
    chain.links = &link, chain.link_size = sizeof link, chain.count = 1, chain.permits = as.permits;
    EQ(tatcell_chain_check(&chain, 1, second), 0);
    EXPECT(second->remaining == 8 && as.permits[0].stored != 0);
    EQ(tatcell_chain_refund(&chain, 1), 0);
    kit_free(&k);
}

TEST(garbage_is_neither_a_limit_nor_a_handle) {
    unsigned long long random = 12;
    static tatcell_table_t handle;
    tatcell_limit_t garbage;
    uint64_t retry;
    tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
    EQ(kit_make(&k, kit_spec(10, SECOND, 5), 64, NULL), 0);
    EQ(tatcell_limit_init(&limit, 10, SECOND, 5), 0);
    for (int round = 0; round < 200000; round++) {
        NOTE("round %d, seed 12", round);
        for (int i = 0; i < 16; i++) garbage.opaque[i] = check_random(&random) >> (check_random(&random) & 48);
        for (int i = 0; i < 64 && round < 2000; i++) handle.opaque[i] = check_random(&random);
        EQ(tatcell_cell_check(&cell, &garbage, 0, 1, &retry), TATCELL_ERR_LIMIT);
        EQ(tatcell_limit_info(&garbage, &info), TATCELL_ERR_LIMIT);
        int32_t rc = tatcell_table_check_hash(&k.table, &garbage, 0, 1, 1, &retry);
        EXPECT(rc == TATCELL_ERR_LIMIT || rc == TATCELL_ERR_FOREIGN);
        if (round < 2000) EQ(tatcell_table_check_hash(&handle, &k.limit, 0, 1, 1, &retry), TATCELL_ERR_HANDLE);
    }
    for (int bit = 0; bit < 64; bit++) {
        NOTE("bit %d", bit);
        tatcell_limit_t l = limit, t = k.limit;
        l.opaque[0] ^= UINT64_C(1) << bit;
        t.opaque[0] ^= UINT64_C(1) << bit;
        EQ(tatcell_cell_check(&cell, &l, 0, 1, &retry), TATCELL_ERR_LIMIT);
        int32_t rc = tatcell_table_check_hash(&k.table, &t, 0, 1, 1, &retry);
        EXPECT(rc == (bit < 48 ? TATCELL_ERR_FOREIGN : TATCELL_ERR_LIMIT));
        memcpy(&handle, &k.table, sizeof handle);
        handle.opaque[0] ^= UINT64_C(1) << bit;
        EQ(tatcell_table_check_hash(&handle, &k.limit, 0, 1, 1, &retry), TATCELL_ERR_HANDLE);
    }
    kit_free(&k);
}

/* A limit is tied to what its numbers mean: resolution, horizon, skew, claim lifetime. Nothing else. */
TEST(a_limit_of_a_table_with_other_ties_is_foreign) {
    tatcell_limit_spec_t spec = kit_spec(10, SECOND, 5), longer = kit_spec(10, SECOND, 6);
    static const int other[] = {0, 1, 2, 3, 4, 5};
    EQ(kit_make(&k, spec, 64, NULL), 0);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        kit_table t;
        tatcell_table_options_t o = kit_options(NULL);
        NOTE("difference %d", other[i]);
        if (i == 1) o.claim_lifetime = 1000;
        if (i == 2) o.skew = 3 * SECOND;
        if (i == 3) o.tag_bits = 19;
        if (i == 4) o.policy = TATCELL_FULL_DENY, o.tick_hz = SECOND;
        if (i == 5) o.slowest = &longer;
        EQ(kit_make(&t, spec, 64, &o), 0);
        int32_t want = i == 0 || i == 4 ? 0 : TATCELL_ERR_FOREIGN;
        EQ(tatcell_table_check(&t.table, &k.limit, 0, "key", 3, 1, NULL), want);
        EQ(tatcell_table_check(&k.table, &t.limit, 0, "key", 3, 1, NULL), want);
        kit_free(&t);
    }
    kit_free(&k);
}

TEST(costs_above_32_bits_are_costs) {
    const uint64_t five = UINT64_C(5) << 32;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    tatcell_lease_t lease = TATCELL_LEASE_INIT;
    tatcell_limit_t bytes;
    tatcell_limit_spec_t spec = kit_spec(UINT64_C(50) * SECOND, SECOND, 2 * five); /* 400 Gbit/s in bytes */
    spec.max_delay = spec.max_debt = SECOND;
    uint64_t retry = 0;
    EQ(tatcell_limit_init_spec(&bytes, &spec), 0);
    cell.word = 0;
    EQ(tatcell_cell_check(&cell, &bytes, 0, five, NULL), 0);
    EQ(tatcell_cell_check(&cell, &bytes, 0, five + 1, &retry), TATCELL_NON_CONFORMING);
    EQ(retry, 1);
    EQ(tatcell_cell_check(&cell, &bytes, 0, 2 * five + 1, &retry), TATCELL_NEVER);
    EQ(tatcell_cell_check(&cell, &bytes, 0, UINT64_MAX, &retry), TATCELL_NEVER);
    EQ(tatcell_cell_check_ex(&cell, &bytes, 0, five, 0, &d, NULL), 0);
    EQ(d.cost, five);
    EQ(d.remaining, 0);
    EQ(tatcell_cell_charge(&cell, &bytes, 0, UINT64_C(1) << 33, &d), 0);
    EQ(d.cost, UINT64_C(1) << 33);
    cell.word = 0;
    EQ(tatcell_cell_check_exclusive(&cell, &bytes, 0, 2 * five, NULL), 0);
    EQ(tatcell_cell_check_exclusive(&cell, &bytes, 0, five, NULL), TATCELL_NON_CONFORMING);
    cell.word = 0;
    EQ(tatcell_lease_check(&lease, &cell, &bytes, 0, 2 * five, NULL), 0);
    EQ(tatcell_lease_check(&lease, &cell, &bytes, 0, five, NULL), TATCELL_NON_CONFORMING);
    tatcell_table_options_t o = kit_options(NULL);
    o.tag_bits = 12;
    EQ(kit_make(&k, kit_spec(1, 1024, five), 64, &o), 0);
    EQ(tatcell_table_check(&k.table, &k.limit, 0, "key", 3, five, NULL), 0);
    EQ(tatcell_table_check(&k.table, &k.limit, 0, "key", 3, five, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_table_check(&k.table, &k.limit, 0, "other", 5, five + 1, NULL), TATCELL_NEVER);
    EQ(tatcell_table_reserve(&k.table, &k.limit, 0, "third", 5, five, &d), 0);
    EQ(d.cost, five);
    EQ(d.remaining, 0);
    kit_free(&k);
}

/* 50e9 bytes a second in nanoseconds: exactly one span of the word after the charge its TAT is what it was. */
TEST(a_permit_one_span_old_credits_nothing) {
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
    tatcell_limit_t bytes;
    uint64_t credited = 7;
    EQ(tatcell_limit_init(&bytes, UINT64_C(50) * SECOND, SECOND, UINT64_C(1000000)), 0);
    EQ(tatcell_limit_info(&bytes, &info), 0);
    EQ(info.bits - (uint32_t)info.resolution, 42); /* the word's clock wraps after 2^42 ns */
    EXPECT(info.horizon == 20000 || info.horizon == 20001); /* rounded up */
    const uint64_t turn = UINT64_C(1) << 42, starts[] = {0, 12345, UINT64_C(1) << 50};
    for (int i = 0; i < 3; i++) {
        uint64_t now = starts[i];
        NOTE("start %d", i);
        cell.word = 0;
        EQ(tatcell_cell_check_ex(&cell, &bytes, now, 1000000, 0, &d, NULL), 0);
        tatcell_permit_t permit = d.permit;
        EQ(tatcell_cell_reset(&cell), 0); /* untouched, it would read as the old debt: a false one */
        EQ(tatcell_cell_check_ex(&cell, &bytes, now + turn, 1000000, 0, &d, NULL), 0);
        EQ(tatcell_cell_refund(&cell, &bytes, now + turn, &permit, &credited), 0);
        EQ(credited, 0);
        EQ(tatcell_cell_check(&cell, &bytes, now + turn, 1, NULL), TATCELL_NON_CONFORMING);
        EQ(tatcell_cell_refund(&cell, &bytes, now + turn, &d.permit, &credited), 0); /* the newer one is worth all */
        EQ(credited, 20000);
    }
}

/* Limits tell their span and by how much their rate is lower: 15 ppm in cells, 0.1 % in tables and 32-bit cells. */
TEST(a_limit_tells_its_precision_and_its_span) {
    tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
    unsigned long long random = 8;
    uint64_t worst[3] = {0, 0, 0};
    for (int round = 0; round < 2000; round++) {
        uint64_t units = 1 + check_random(&random) % 1000000, period = units + check_random(&random) % SECOND;
        tatcell_limit_t l[3];
        NOTE("round %d, seed 8: %llu per %llu", round, (unsigned long long)units, (unsigned long long)period);
        int32_t made[3] = {tatcell_limit_init(&l[0], units, period, 1), tatcell_limit32_init(&l[1], units, period, 1),
            -1};
        int32_t rc = kit_make(&k, kit_spec(units, period, 1), 16, NULL);
        made[2] = rc;
        l[2] = k.limit;
        for (int i = 0; i < 3; i++) {
            if (made[i] != 0) continue;
            EQ(tatcell_limit_info(&l[i], &info), 0);
            EQ(info.units, units);
            EQ(info.period, period);
            EQ(info.burst, 1);
            EXPECT(info.span > info.horizon + info.skew);
            if (period % units == 0) EQ(info.rate_error_ppb, 0);
            if (info.rate_error_ppb > worst[i]) worst[i] = info.rate_error_ppb;
        }
        kit_free(&k);
    }
    EXPECT(worst[0] > 0 && worst[0] <= 15259);
    EXPECT(worst[1] > 15259 && worst[1] <= 976563);
    EXPECT(worst[2] > 15259 && worst[2] <= 976563);
}

TEST(a_table_tells_those_who_attach_what_it_was_made_for) {
    tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
    tatcell_table_options_t o = kit_options(NULL);
    tatcell_attach_options_t a = *kit_attach(kit_seed, 0);
    o.policy = TATCELL_FULL_INHERIT;
    o.tick_hz = SECOND;
    o.skew = 5 * SECOND;
    EQ(kit_make(&k, kit_spec(10, SECOND, 5), 100, &o), 0);
    a.flags = TATCELL_TABLE_POLICY;
    a.policy = TATCELL_FULL_INHERIT;
    a.tick_hz = SECOND;
    EQ(tatcell_table_attach(&table, k.memory, k.bytes, &a), 0);
    EQ(tatcell_table_info(&table, &info), 0);
    tatcell_table_info_t made = TATCELL_TABLE_INFO_INIT;
    EQ(tatcell_table_info(&k.table, &made), 0);
    EXPECT(info.policy == TATCELL_FULL_INHERIT && memcmp(&info, &made, sizeof info) == 0); /* told.c has each field */
    a.policy = TATCELL_FULL_ADMIT;
    EQ(tatcell_table_attach(&table, k.memory, k.bytes, &a), TATCELL_ERR_MODE);
    a.policy = TATCELL_FULL_INHERIT;
    a.tick_hz = 1000;
    EQ(tatcell_table_attach(&table, k.memory, k.bytes, &a), TATCELL_ERR_MODE);
    kit_free(&k);
}

int main(void) {
    RUN(options_of_newer_headers_are_taken_unless_they_use_what_is_unknown);
    RUN(results_fill_what_both_headers_know_and_keep_the_size);
    RUN(rows_of_larger_decisions_are_written_apart);
    RUN(a_shorter_decision_ends_where_its_caller_says);
    RUN(garbage_is_neither_a_limit_nor_a_handle);
    RUN(a_limit_of_a_table_with_other_ties_is_foreign);
    RUN(costs_above_32_bits_are_costs);
    RUN(a_permit_one_span_old_credits_nothing);
    RUN(a_limit_tells_its_precision_and_its_span);
    RUN(a_table_tells_those_who_attach_what_it_was_made_for);
    return check_end();
}
