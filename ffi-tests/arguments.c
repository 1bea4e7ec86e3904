/* arguments.c - every function refuses every bad argument with its code, and then has changed nothing.
 *
 * One struct holds everything that a call may touch; REFUSES compares all of it before and after. */
#include <sys/mman.h>
#include <unistd.h>

#include "kit.h"
#include "refuses.h"

enum { BYTES = 128 + 4 * 128 + 64, USED = 128 + 4 * 128 };

static struct world {
    _Alignas(64) unsigned char memory[BYTES];
    _Alignas(64) unsigned char blank[BYTES];
    uint64_t image[BYTES / 8];
    tatcell_cell_t cell;
    tatcell_cell32_t cell32;
    tatcell_limit_t limit, limit32, tlimit, foreign, zero_limit, fresh_limit;
    tatcell_limit_spec_t spec, short_spec;
    tatcell_table_options_t options, short_options;
    tatcell_table_t table, caller, zero_table, fresh_table;
    _Alignas(64) unsigned char caller_memory[BYTES];
    _Alignas(64) unsigned char foreign_memory[BYTES];
    uint64_t ticks, hash, hashes[64], slot_number;
    tatcell_sweeper_t sweeper;
    size_t used;
    tatcell_decision_t d, short_d;
    tatcell_counters_t counters;
    tatcell_stats_t stats, short_stats;
    tatcell_table_info_t info, short_info;
    tatcell_table_numbers_t numbers;
    tatcell_limit_info_t limit_info, short_limit_info;
    tatcell_limit_numbers_t limit_numbers;
    tatcell_slot_t slot;
    tatcell_permit_t permit;
    uint8_t seed[16];
} w, before;

#define NULL_IS(call) REFUSES(TATCELL_ERR_NULL, call)
#define ODD_IS(call) REFUSES(TATCELL_ERR_ALIGN, call)
#define TAKES(call) EQ(call, 0)

static void setup(void) {
    tatcell_table_t other;
    memset(&w, 0, sizeof w);
    memcpy(w.seed, kit_seed, 16);
    w.spec = kit_spec(100, SECOND, 10);
    w.spec.max_delay = SECOND / 2;
    w.spec.max_debt = 5;
    w.short_spec = w.spec;
    w.short_spec.size = sizeof w.spec - 1;
    w.options = kit_options(&w.spec);
    w.short_options = w.options;
    w.short_options.size -= 1;
    w.d.size = sizeof w.d;
    w.info.size = sizeof w.info;
    w.numbers.size = sizeof w.numbers;
    w.limit_info.size = sizeof w.limit_info;
    w.limit_numbers.size = sizeof w.limit_numbers;
    w.short_d.size = sizeof w.d - 1;
    w.stats.size = sizeof w.stats;
    w.short_stats.size = sizeof w.stats - 1;
    EQ(tatcell_limit_init_spec(&w.limit, &w.spec), 0);
    EQ(tatcell_limit32_init_spec(&w.limit32, &w.spec), 0);
    EQ(tatcell_table_init(&w.table, w.memory, BYTES, &w.options), 0);
    EQ(tatcell_limit_init_table(&w.tlimit, &w.table, &w.spec), 0);
    EQ(tatcell_table_hash(&w.table, "key", 3, &w.hash), 0);
    EQ(tatcell_table_check_ex_hash(&w.table, &w.tlimit, 0, w.hash, 3, 0, &w.d, NULL), 0);
    w.permit = w.d.permit;
    EQ(tatcell_table_save(&w.table, 0, w.image, sizeof w.image, NULL), 0);
    tatcell_table_options_t o = w.options;
    o.hash = TATCELL_HASH_CALLER;
    o.seed = NULL;
    EQ(tatcell_table_init(&w.caller, w.caller_memory, BYTES, &o), 0);
    tatcell_limit_spec_t slow = kit_spec(1, 86400 * SECOND, 1000);
    o.fastest = &slow;
    EQ(tatcell_table_init(&other, w.foreign_memory, BYTES, &o), 0);
    EQ(tatcell_limit_init_table(&w.foreign, &other, &slow), 0);
}

/* The calls that 64-bit and 32-bit cells share; `c` names the family, `lim` its limit, `wrong` the other's. */
#define CELL_FAMILY(name, f, c, lim, wrong) \
    TEST(name) { \
        DO(setup()); \
        NULL_IS(f##_check(NULL, lim, 0, 1, &w.ticks)); \
        NULL_IS(f##_check(c, NULL, 0, 1, &w.ticks)); \
        ODD_IS(f##_check(OFF(c), lim, 0, 1, &w.ticks)); \
        ODD_IS(f##_check(c, OFF(lim), 0, 1, &w.ticks)); \
        ODD_IS(f##_check(c, lim, 0, 1, OFF(&w.ticks))); \
        NULL_IS(f##_check_ex(NULL, lim, 0, 1, 0, &w.d, &w.counters)); \
        NULL_IS(f##_check_ex(c, NULL, 0, 1, 0, &w.d, &w.counters)); \
        NULL_IS(f##_check_ex(c, lim, 0, 1, 0, NULL, &w.counters)); \
        ODD_IS(f##_check_ex(OFF(c), lim, 0, 1, 0, &w.d, &w.counters)); \
        ODD_IS(f##_check_ex(c, OFF(lim), 0, 1, 0, &w.d, &w.counters)); \
        ODD_IS(f##_check_ex(c, lim, 0, 1, 0, OFF(&w.d), &w.counters)); \
        NULL_IS(f##_peek(NULL, lim, 0, 1, &w.d)); \
        NULL_IS(f##_peek(c, NULL, 0, 1, &w.d)); \
        NULL_IS(f##_peek(c, lim, 0, 1, NULL)); \
        ODD_IS(f##_peek(OFF(c), lim, 0, 1, &w.d)); \
        ODD_IS(f##_peek(c, OFF(lim), 0, 1, &w.d)); \
        ODD_IS(f##_peek(c, lim, 0, 1, OFF(&w.d))); \
        NULL_IS(f##_charge(NULL, lim, 0, 1, &w.d)); \
        NULL_IS(f##_charge(c, NULL, 0, 1, &w.d)); \
        ODD_IS(f##_charge(OFF(c), lim, 0, 1, &w.d)); \
        ODD_IS(f##_charge(c, OFF(lim), 0, 1, &w.d)); \
        ODD_IS(f##_charge(c, lim, 0, 1, OFF(&w.d))); \
        NULL_IS(f##_refund(NULL, lim, 0, &w.permit, &w.ticks)); \
        NULL_IS(f##_refund(c, NULL, 0, &w.permit, &w.ticks)); \
        NULL_IS(f##_refund(c, lim, 0, NULL, &w.ticks)); \
        ODD_IS(f##_refund(OFF(c), lim, 0, &w.permit, &w.ticks)); \
        ODD_IS(f##_refund(c, OFF(lim), 0, &w.permit, &w.ticks)); \
        ODD_IS(f##_refund(c, lim, 0, OFF(&w.permit), &w.ticks)); \
        ODD_IS(f##_refund(c, lim, 0, &w.permit, OFF(&w.ticks))); \
        NULL_IS(f##_reserve(NULL, lim, 0, 1, &w.d)); \
        NULL_IS(f##_reserve(c, NULL, 0, 1, &w.d)); \
        NULL_IS(f##_reserve(c, lim, 0, 1, NULL)); \
        ODD_IS(f##_reserve(OFF(c), lim, 0, 1, &w.d)); \
        ODD_IS(f##_reserve(c, OFF(lim), 0, 1, &w.d)); \
        ODD_IS(f##_reserve(c, lim, 0, 1, OFF(&w.d))); \
        ODD_IS(f##_check_ex(c, lim, 0, 1, 0, &w.d, OFF(&w.counters))); \
        NULL_IS(f##_change(NULL, lim, lim, 0, 0)); \
        NULL_IS(f##_change(c, NULL, lim, 0, 0)); \
        NULL_IS(f##_change(c, lim, NULL, 0, 0)); \
        ODD_IS(f##_change(OFF(c), lim, lim, 0, 0)); \
        ODD_IS(f##_change(c, OFF(lim), lim, 0, 0)); \
        ODD_IS(f##_change(c, lim, OFF(lim), 0, 0)); \
        REFUSES(TATCELL_ERR_OPTION, f##_change(c, lim, lim, 0, 3)); \
        REFUSES(TATCELL_ERR_OPTION, f##_change(c, lim, lim, 0, UINT32_MAX)); \
        NULL_IS(f##_reset(NULL)); \
        ODD_IS(f##_reset(OFF(c))); \
        const tatcell_limit_t *bad[] = {&w.zero_limit, wrong, &w.tlimit}; \
        for (int i = 0; i < 3; i++) { \
            REFUSES(TATCELL_ERR_LIMIT, f##_check(c, bad[i], 0, 1, &w.ticks)); \
            REFUSES(TATCELL_ERR_LIMIT, f##_check_ex(c, bad[i], 0, 1, 0, &w.d, &w.counters)); \
            REFUSES(TATCELL_ERR_LIMIT, f##_peek(c, bad[i], 0, 1, &w.d)); \
            REFUSES(TATCELL_ERR_LIMIT, f##_charge(c, bad[i], 0, 1, &w.d)); \
            REFUSES(TATCELL_ERR_LIMIT, f##_refund(c, bad[i], 0, &w.permit, &w.ticks)); \
            REFUSES(TATCELL_ERR_LIMIT, f##_reserve(c, bad[i], 0, 1, &w.d)); \
            REFUSES(TATCELL_ERR_LIMIT, f##_change(c, bad[i], lim, 0, 0)); \
            REFUSES(TATCELL_ERR_LIMIT, f##_change(c, lim, bad[i], 0, 0)); \
        } \
        for (int i = 0; i < 2; i++) { \
            w.short_d.size = i ? (uint32_t)sizeof w.d - 1 : 0; \
            REFUSES(TATCELL_ERR_SIZE, f##_check_ex(c, lim, 0, 1, 0, &w.short_d, &w.counters)); \
            REFUSES(TATCELL_ERR_SIZE, f##_peek(c, lim, 0, 1, &w.short_d)); \
            REFUSES(TATCELL_ERR_SIZE, f##_charge(c, lim, 0, 1, &w.short_d)); \
            REFUSES(TATCELL_ERR_SIZE, f##_reserve(c, lim, 0, 1, &w.short_d)); \
        } \
        TAKES(f##_check(c, lim, 0, 1, NULL)); \
        TAKES(f##_charge(c, lim, 0, 1, NULL)); \
        TAKES(f##_reserve(c, lim, 0, 1, &w.d)); \
        TAKES(f##_refund(c, lim, 0, &w.permit, NULL)); \
        TAKES(f##_check_ex(c, lim, 0, 1, 0, &w.d, NULL)); \
    }

CELL_FAMILY(cell_functions_refuse_bad_arguments, tatcell_cell, &w.cell, &w.limit, &w.limit32)
CELL_FAMILY(cell32_functions_refuse_bad_arguments, tatcell_cell32, &w.cell32, &w.limit32, &w.limit)

TEST(cell_check_exclusive_refuses_bad_arguments) {
    DO(setup());
    NULL_IS(tatcell_cell_check_exclusive(NULL, &w.limit, 0, 1, &w.ticks));
    NULL_IS(tatcell_cell_check_exclusive(&w.cell, NULL, 0, 1, &w.ticks));
    ODD_IS(tatcell_cell_check_exclusive(OFF(&w.cell), &w.limit, 0, 1, &w.ticks));
    ODD_IS(tatcell_cell_check_exclusive(&w.cell, OFF(&w.limit), 0, 1, &w.ticks));
    ODD_IS(tatcell_cell_check_exclusive(&w.cell, &w.limit, 0, 1, OFF(&w.ticks)));
    REFUSES(TATCELL_ERR_LIMIT, tatcell_cell_check_exclusive(&w.cell, &w.limit32, 0, 1, &w.ticks));
    TAKES(tatcell_cell_check_exclusive(&w.cell, &w.limit, 0, 1, NULL));
}

TEST(limit_functions_refuse_bad_arguments) {
    DO(setup());
    NULL_IS(tatcell_limit_init(NULL, 1, 1, 1));
    NULL_IS(tatcell_limit_init_rate(NULL, 1, SECOND, 1));
    NULL_IS(tatcell_limit_init_spec(NULL, &w.spec));
    NULL_IS(tatcell_limit_init_spec(&w.fresh_limit, NULL));
    NULL_IS(tatcell_limit32_init_spec(NULL, &w.spec));
    NULL_IS(tatcell_limit32_init_spec(&w.fresh_limit, NULL));
    NULL_IS(tatcell_limit_init_unlimited(NULL));
    ODD_IS(tatcell_limit_init(OFF(&w.fresh_limit), 1, 1, 1));
    ODD_IS(tatcell_limit_init_rate(OFF(&w.fresh_limit), 1, SECOND, 1));
    ODD_IS(tatcell_limit_init_spec(OFF(&w.fresh_limit), &w.spec));
    ODD_IS(tatcell_limit_init_spec(&w.fresh_limit, OFF(&w.spec)));
    ODD_IS(tatcell_limit32_init_spec(OFF(&w.fresh_limit), &w.spec));
    ODD_IS(tatcell_limit32_init_spec(&w.fresh_limit, OFF(&w.spec)));
    ODD_IS(tatcell_limit_init_unlimited(OFF(&w.fresh_limit)));
    /* A limit in use stays as it is when a new one is refused. */
    REFUSES(TATCELL_ERR_RATE, tatcell_limit_init(&w.limit, 0, 1, 1));
    REFUSES(TATCELL_ERR_PERIOD, tatcell_limit_init(&w.limit, 1, 0, 1));
    REFUSES(TATCELL_ERR_BURST, tatcell_limit_init(&w.limit, 1, 1, 0));
    REFUSES(TATCELL_ERR_RATE, tatcell_limit_init_rate(&w.limit, 0, 1, 1));
    REFUSES(TATCELL_ERR_PERIOD, tatcell_limit_init_rate(&w.limit, 1, 0, 1));
    REFUSES(TATCELL_ERR_BURST, tatcell_limit_init_rate(&w.limit, 1, 1, 0));
    for (int i = 0; i < 2; i++) {
        w.short_spec.size = i ? (uint32_t)sizeof w.spec - 1 : 0;
        REFUSES(TATCELL_ERR_SIZE, tatcell_limit_init_spec(&w.limit, &w.short_spec));
        REFUSES(TATCELL_ERR_SIZE, tatcell_limit32_init_spec(&w.limit, &w.short_spec));
        REFUSES(TATCELL_ERR_SIZE, tatcell_limit_init_table(&w.limit, &w.table, &w.short_spec));
    }
    for (int bit = 4; bit < 32; bit++) {
        w.spec.flags = UINT32_C(1) << bit;
        NOTE("flag bit %d", bit);
        REFUSES(TATCELL_ERR_OPTION, tatcell_limit_init_spec(&w.limit, &w.spec));
        REFUSES(TATCELL_ERR_OPTION, tatcell_limit32_init_spec(&w.limit, &w.spec));
        REFUSES(TATCELL_ERR_OPTION, tatcell_limit_init_table(&w.limit, &w.table, &w.spec));
    }
    w.spec.flags = TATCELL_LIMIT_RESOLUTION;
    static const int32_t far[] = {64, -64, 127, 128, -129, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        w.spec.resolution = far[i];
        NOTE("resolution %d", far[i]);
        REFUSES(TATCELL_ERR_OPTION, tatcell_limit_init_spec(&w.limit, &w.spec));
        REFUSES(TATCELL_ERR_OPTION, tatcell_limit32_init_spec(&w.limit, &w.spec));
    }
    w.spec.flags = 0;
    TAKES(tatcell_limit_init_spec(&w.limit, &w.spec));
    NULL_IS(tatcell_limit32_init(NULL, 1, 1, 1));
    NULL_IS(tatcell_limit32_init_rate(NULL, 1, 1, 1));
    NULL_IS(tatcell_limit32_init_unlimited(NULL));
    ODD_IS(tatcell_limit32_init(OFF(&w.fresh_limit), 1, 1, 1));
    ODD_IS(tatcell_limit32_init_rate(OFF(&w.fresh_limit), 1, 1, 1));
    ODD_IS(tatcell_limit32_init_unlimited(OFF(&w.fresh_limit)));
    REFUSES(TATCELL_ERR_RATE, tatcell_limit32_init(&w.limit32, 0, 1, 1));
    REFUSES(TATCELL_ERR_PERIOD, tatcell_limit32_init_rate(&w.limit32, 1, 0, 1));
    TAKES(tatcell_limit32_init(&w.fresh_limit, 10, 1000, 5));
    TAKES(tatcell_limit32_init_rate(&w.fresh_limit, 10, 1000, 5));
    TAKES(tatcell_limit32_init_unlimited(&w.fresh_limit));
    tatcell_limit_t *const kinds[] = {&w.limit, &w.limit32, &w.tlimit};
    for (int i = 0; i < 3; i++) {
        TAKES(tatcell_limit_info(kinds[i], &w.limit_info));
        EQ(w.limit_info.burst, 10);
        EQ(w.limit_info.bits, i == 0 ? 64 : i == 1 ? 32 : 43);
        TAKES(tatcell_limit_export(kinds[i], &w.limit_numbers));
        EQ(w.limit_numbers.emission_q, w.limit_info.emission_q);
        EQ(w.limit_numbers.burst_q, 10 * w.limit_info.emission_q);
    }
    NULL_IS(tatcell_limit_info(NULL, &w.limit_info));
    NULL_IS(tatcell_limit_info(&w.limit, NULL));
    ODD_IS(tatcell_limit_info(OFF(&w.limit), &w.limit_info));
    ODD_IS(tatcell_limit_info(&w.limit, OFF(&w.limit_info)));
    REFUSES(TATCELL_ERR_LIMIT, tatcell_limit_info(&w.zero_limit, &w.limit_info));
    REFUSES(TATCELL_ERR_SIZE, tatcell_limit_info(&w.limit, &w.short_limit_info));
    NULL_IS(tatcell_limit_export(NULL, &w.limit_numbers));
    NULL_IS(tatcell_limit_export(&w.limit, NULL));
    REFUSES(TATCELL_ERR_LIMIT, tatcell_limit_export(&w.zero_limit, &w.limit_numbers));
}

TEST(table_init_refuses_bad_arguments) {
    DO(setup());
    NULL_IS(tatcell_table_init(NULL, w.blank, BYTES, &w.options));
    NULL_IS(tatcell_table_init(&w.fresh_table, NULL, BYTES, &w.options));
    NULL_IS(tatcell_table_init(&w.fresh_table, w.blank, BYTES, NULL));
    ODD_IS(tatcell_table_init(OFF(&w.fresh_table), w.blank, BYTES, &w.options));
    for (int i = 1; i < 64; i++) ODD_IS(tatcell_table_init(&w.fresh_table, w.blank + i, BYTES - 64, &w.options));
    ODD_IS(tatcell_table_init(&w.fresh_table, w.blank, BYTES, OFF(&w.options)));
    REFUSES(TATCELL_ERR_SIZE, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.short_options));
    w.short_options.size = 0;
    REFUSES(TATCELL_ERR_SIZE, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.short_options));
    static const size_t small[] = {0, 1, 63, 64, 128, 192, 255};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        NOTE("%d bytes", (int)small[i]);
        REFUSES(TATCELL_ERR_TOO_SMALL, tatcell_table_init(&w.fresh_table, w.blank, small[i], &w.options));
    }
    REFUSES(TATCELL_ERR_TOO_LARGE, tatcell_table_init(&w.fresh_table, w.blank, SIZE_MAX, &w.options));
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_init((tatcell_table_t *)(void *)w.blank, w.blank, BYTES, &w.options));
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_init((tatcell_table_t *)(void *)(w.blank + BYTES - 8), w.blank, BYTES,
        &w.options));
    w.options.reserved = &w;
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.options.reserved = NULL;
    w.options.fastest = NULL;
    NULL_IS(tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.options.fastest = OFF(&w.spec);
    ODD_IS(tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.options.fastest = &w.short_spec;
    REFUSES(TATCELL_ERR_SIZE, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.options.fastest = &w.spec;
    w.options.slowest = OFF(&w.spec);
    ODD_IS(tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.options.slowest = &w.short_spec;
    REFUSES(TATCELL_ERR_SIZE, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.options.slowest = NULL;
    w.options.seed = NULL;
    REFUSES(TATCELL_ERR_SEED, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.options.seed = w.seed;
    for (int bit = 2; bit < 32; bit++) {
        w.options.flags = UINT32_C(1) << bit;
        if (w.options.flags == TATCELL_TABLE_ZEROED) continue;
        REFUSES(TATCELL_ERR_OPTION, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    }
    w.options.flags = TATCELL_TABLE_RESOLUTION;
    w.options.resolution = 64;
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.options.resolution = 1000;
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.options.flags = 0;
    w.spec.units = 0;
    REFUSES(TATCELL_ERR_RATE, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.spec.units = 100;
    w.spec.flags = TATCELL_LIMIT_HEAL;
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
    w.spec.flags = 0;
    /* The seed has no alignment, and a table may be initialised again in place. */
    unsigned char bytes[17] = {0};
    w.options.seed = bytes + 1;
    TAKES(tatcell_table_init(&w.fresh_table, w.blank, 256, &w.options));
    TAKES(tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options));
}

/* What one call may be given can be given again: an explicit resolution makes no image that attach refuses. */
TEST(every_table_that_init_makes_can_be_attached) {
    int made = 0;
    for (int32_t s = -63; s <= 63; s++) {
        for (int e = 0; e < 64; e++) {
            DO(setup());
            w.spec = e < 32 ? kit_spec(UINT64_C(1) << e, 1024, 1) : kit_spec(1, UINT64_C(1) << e, 1);
            w.options.flags = TATCELL_TABLE_RESOLUTION;
            w.options.resolution = s;
            NOTE("resolution %d, units %llu, period %llu", s, (unsigned long long)w.spec.units,
                 (unsigned long long)w.spec.period);
            if (tatcell_table_init(&w.fresh_table, w.blank, BYTES, &w.options) != 0) continue;
            TAKES(tatcell_table_attach(&w.fresh_table, w.blank, BYTES, kit_attach(w.seed, 0)));
            made++;
        }
    }
    EXPECT(made > 100);
}

TEST(table_attach_refuses_bad_arguments_and_images) {
    DO(setup());
    uint64_t *header = (uint64_t *)(void *)w.memory;
    NULL_IS(tatcell_table_attach(NULL, w.memory, BYTES, kit_attach(w.seed, 0)));
    NULL_IS(tatcell_table_attach(&w.fresh_table, NULL, BYTES, kit_attach(w.seed, 0)));
    ODD_IS(tatcell_table_attach(OFF(&w.fresh_table), w.memory, BYTES, kit_attach(w.seed, 0)));
    ODD_IS(tatcell_table_attach(&w.fresh_table, w.memory + 8, BYTES - 64, kit_attach(w.seed, 0)));
    static const size_t small[] = {0, 63, 64, 127};
    for (int i = 0; i < 4; i++)
        REFUSES(TATCELL_ERR_TOO_SMALL, tatcell_table_attach(&w.fresh_table, w.memory, small[i], kit_attach(w.seed, 0)));
    REFUSES(TATCELL_ERR_TOO_LARGE, tatcell_table_attach(&w.fresh_table, w.memory, SIZE_MAX, kit_attach(w.seed, 0)));
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_attach((tatcell_table_t *)(void *)w.memory, w.memory, BYTES,
        kit_attach(w.seed, 0)));
    NULL_IS(tatcell_table_attach(&w.fresh_table, w.memory, BYTES, NULL));
    ODD_IS(tatcell_table_attach(&w.fresh_table, w.memory, BYTES, OFF(kit_attach(w.seed, 0))));
    tatcell_attach_options_t o = *kit_attach(w.seed, 0);
    o.size = 0;
    REFUSES(TATCELL_ERR_SIZE, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, &o));
    o = *kit_attach(w.seed, 0);
    o.reserved = 1;
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, &o));
    o = *kit_attach(w.seed, 0);
    o.reserved_pointer = &o;
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, &o));
    o = *kit_attach(w.seed, 0);
    o.policy = TATCELL_FULL_DENY; /* not asked for by a flag */
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, &o));
    o.flags = TATCELL_TABLE_POLICY;
    REFUSES(TATCELL_ERR_MODE, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, &o));
    o.policy = 4;
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, &o));
    o.policy = TATCELL_FULL_ADMIT;
    TAKES(tatcell_table_attach(&w.fresh_table, w.memory, BYTES, &o));
    o.tick_hz = 1000;
    REFUSES(TATCELL_ERR_MODE, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, &o));
    REFUSES(TATCELL_ERR_GEOMETRY, tatcell_table_attach(&w.fresh_table, w.memory, 128, kit_attach(w.seed, 0)));
    REFUSES(TATCELL_ERR_GEOMETRY, tatcell_table_attach(&w.fresh_table, w.memory, BYTES - 128, kit_attach(w.seed, 0)));
    REFUSES(TATCELL_ERR_NOT_READY, tatcell_table_attach(&w.fresh_table, w.blank, BYTES, kit_attach(w.seed, 0)));
    REFUSES(TATCELL_ERR_SEED, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(NULL, 0)));
    REFUSES(TATCELL_ERR_WRONG_SEED, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.blank, 0)));
    REFUSES(TATCELL_ERR_MODE, tatcell_table_attach(&w.fresh_table, w.memory, BYTES,
        kit_attach(w.seed, TATCELL_TABLE_EXCLUSIVE)));
    uint32_t known = TATCELL_TABLE_EXCLUSIVE | TATCELL_TABLE_POLICY | TATCELL_TABLE_READ_ONLY;
    for (int bit = 0; bit < 32; bit++)
        if (!(known >> bit & 1))
            REFUSES(TATCELL_ERR_OPTION, tatcell_table_attach(&w.fresh_table, w.memory, BYTES,
                kit_attach(w.seed, UINT32_C(1) << bit)));
    for (int i = 16; i < 64; i++) {
        header[0] ^= UINT64_C(1) << i;
        REFUSES(TATCELL_ERR_NOT_READY, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.seed, 0)));
        header[0] ^= UINT64_C(1) << i;
    }
    for (int i = 0; i < 16; i++) {
        header[0] ^= UINT64_C(1) << i;
        REFUSES(TATCELL_ERR_VERSION, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.seed, 0)));
        header[0] ^= UINT64_C(1) << i;
    }
    for (int i = 32; i < 64; i++) { /* number of lines */
        header[1] ^= UINT64_C(1) << i;
        REFUSES(TATCELL_ERR_GEOMETRY, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.seed, 0)));
        header[1] ^= UINT64_C(1) << i;
    }
    for (int word = 2; word < 5; word++) { /* horizon, window, lifetime */
        uint64_t old = header[word];
        header[word] = UINT64_MAX;
        REFUSES(TATCELL_ERR_GEOMETRY, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.seed, 0)));
        header[word] = 0;
        REFUSES(TATCELL_ERR_GEOMETRY, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.seed, 0)));
        header[word] = old;
    }
    for (int bit = 40; bit < 64; bit++) { /* a window beyond an eighth of the span of 2^43, its tag having 20 bits */
        uint64_t old = header[3];
        header[3] = (UINT64_C(1) << bit) + 1;
        REFUSES(TATCELL_ERR_GEOMETRY, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.seed, 0)));
        header[3] = old;
    }
    header[5] ^= 1;
    REFUSES(TATCELL_ERR_WRONG_SEED, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.seed, 0)));
    header[5] ^= 1;
    for (int i = 0; i < 64; i++) { /* features, algorithm */
        for (int word = 6; word < 8; word++) {
            header[word] = UINT64_C(1) << i;
            REFUSES(TATCELL_ERR_VERSION, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.seed, 0)));
            header[word] = 0;
        }
        for (int word = 10; word < (i < 8 ? 15 : 16); word++) { /* word 15 has a byte for the kind of clock */
            header[word] = UINT64_C(1) << i;
            REFUSES(TATCELL_ERR_GEOMETRY, tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.seed, 0)));
            header[word] = 0;
        }
    }
    TAKES(tatcell_table_attach(&w.fresh_table, w.memory, BYTES, kit_attach(w.seed, 0)));
    TAKES(tatcell_table_attach(&w.fresh_table, w.memory, USED, kit_attach(w.seed, 0)));
    TAKES(tatcell_table_attach(&w.fresh_table, w.caller_memory, BYTES, kit_attach(NULL, 0)));
}

TEST(table_restore_refuses_bad_arguments_and_images) {
    DO(setup());
    tatcell_table_t *t = &w.fresh_table;
    NULL_IS(tatcell_table_restore(NULL, w.blank, USED, w.image, USED, kit_attach(w.seed, 0), 0));
    NULL_IS(tatcell_table_restore(t, NULL, USED, w.image, USED, kit_attach(w.seed, 0), 0));
    NULL_IS(tatcell_table_restore(t, w.blank, USED, NULL, USED, kit_attach(w.seed, 0), 0));
    ODD_IS(tatcell_table_restore(OFF(t), w.blank, USED, w.image, USED, kit_attach(w.seed, 0), 0));
    ODD_IS(tatcell_table_restore(t, w.blank + 8, USED, w.image, USED, kit_attach(w.seed, 0), 0));
    ODD_IS(tatcell_table_restore(t, w.blank, USED, OFF(w.image), USED, kit_attach(w.seed, 0), 0));
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_restore(t, w.blank, USED, w.image, USED, kit_attach(w.seed, 2), 0));
    REFUSES(TATCELL_ERR_WRONG_SIZE, tatcell_table_restore(t, w.blank, USED - 128, w.image, USED,
        kit_attach(w.seed, 0), 0));
    REFUSES(TATCELL_ERR_WRONG_SIZE, tatcell_table_restore(t, w.blank, 0, w.image, USED, kit_attach(w.seed, 0), 0));
    REFUSES(TATCELL_ERR_TOO_LARGE, tatcell_table_restore(t, w.blank, SIZE_MAX, w.image, USED, kit_attach(w.seed, 0),
        0));
    REFUSES(TATCELL_ERR_TOO_LARGE, tatcell_table_restore(t, w.blank, USED, w.image, SIZE_MAX, kit_attach(w.seed, 0),
        0));
    REFUSES(TATCELL_ERR_GEOMETRY, tatcell_table_restore(t, w.blank, USED, w.image, USED - 128, kit_attach(w.seed, 0),
        0));
    REFUSES(TATCELL_ERR_GEOMETRY, tatcell_table_restore(t, w.blank, USED, w.image, 0, kit_attach(w.seed, 0), 0));
    REFUSES(TATCELL_ERR_SEED, tatcell_table_restore(t, w.blank, USED, w.image, USED, kit_attach(NULL, 0), 0));
    REFUSES(TATCELL_ERR_WRONG_SEED, tatcell_table_restore(t, w.blank, USED, w.image, USED, kit_attach(w.blank, 0), 0));
    REFUSES(TATCELL_ERR_MODE, tatcell_table_restore(t, w.blank, USED, w.image, USED, kit_attach(w.seed, 1), 0));
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_restore(t, w.memory, USED, w.memory + 64, USED, kit_attach(w.seed, 0),
        0));
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_restore((tatcell_table_t *)(void *)w.blank, w.blank, USED, w.image,
        USED, kit_attach(w.seed, 0), 0));
    w.image[0] ^= 1;
    REFUSES(TATCELL_ERR_VERSION, tatcell_table_restore(t, w.blank, USED, w.image, USED, kit_attach(w.seed, 0), 0));
    w.image[0] = 0;
    REFUSES(TATCELL_ERR_NOT_READY, tatcell_table_restore(t, w.blank, USED, w.image, USED, kit_attach(w.seed, 0), 0));
    w.image[0] = *(uint64_t *)(void *)w.memory;
    /* Nor is anything changed where a table lies already. */
    REFUSES(TATCELL_ERR_WRONG_SIZE, tatcell_table_restore(t, w.memory, USED - 128, w.image, USED,
        kit_attach(w.seed, 0), 0));
    REFUSES(TATCELL_ERR_WRONG_SEED, tatcell_table_restore(t, w.memory, USED, w.image, USED, kit_attach(w.blank, 0), 0));
    REFUSES(TATCELL_ERR_MODE, tatcell_table_restore(t, w.memory, USED, w.image, USED, kit_attach(w.seed, 1), 0));
    TAKES(tatcell_table_restore(t, w.blank, USED, w.image, USED, kit_attach(w.seed, 0), 0));
    /* Memory that init and attach take with a line to spare is taken by restore too. */
    TAKES(tatcell_table_restore(t, w.blank, BYTES, w.image, USED, kit_attach(w.seed, 0), 0));
}

TEST(table_limit_refuses_bad_arguments) {
    DO(setup());
    NULL_IS(tatcell_limit_init_table(&w.fresh_limit, NULL, &w.spec));
    NULL_IS(tatcell_limit_init_table(&w.fresh_limit, &w.table, NULL));
    NULL_IS(tatcell_limit_init_table(NULL, &w.table, &w.spec));
    ODD_IS(tatcell_limit_init_table(&w.fresh_limit, OFF(&w.table), &w.spec));
    ODD_IS(tatcell_limit_init_table(&w.fresh_limit, &w.table, OFF(&w.spec)));
    ODD_IS(tatcell_limit_init_table(OFF(&w.fresh_limit), &w.table, &w.spec));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_limit_init_table(&w.fresh_limit, &w.zero_table, &w.spec));
    NULL_IS(tatcell_limit_init_unlimited_table(&w.fresh_limit, NULL));
    NULL_IS(tatcell_limit_init_unlimited_table(NULL, &w.table));
    ODD_IS(tatcell_limit_init_unlimited_table(&w.fresh_limit, OFF(&w.table)));
    ODD_IS(tatcell_limit_init_unlimited_table(OFF(&w.fresh_limit), &w.table));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_limit_init_unlimited_table(&w.fresh_limit, &w.zero_table));
    w.spec.burst *= 1000;
    REFUSES(TATCELL_ERR_TOO_FAST, tatcell_limit_init_table(&w.fresh_limit, &w.table, &w.spec));
}

TEST(table_hash_refuses_bad_arguments) {
    DO(setup());
    NULL_IS(tatcell_table_hash(NULL, "k", 1, &w.hash));
    NULL_IS(tatcell_table_hash(&w.table, NULL, 1, &w.hash));
    NULL_IS(tatcell_table_hash(&w.table, NULL, 0, &w.hash));
    NULL_IS(tatcell_table_hash(&w.table, "k", 1, NULL));
    ODD_IS(tatcell_table_hash(OFF(&w.table), "k", 1, &w.hash));
    ODD_IS(tatcell_table_hash(&w.table, "k", 1, OFF(&w.hash)));
    REFUSES(TATCELL_ERR_KEY_LENGTH, tatcell_table_hash(&w.table, "k", SIZE_MAX, &w.hash));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_hash(&w.zero_table, "k", 1, &w.hash));
    REFUSES(TATCELL_ERR_HASH, tatcell_table_hash(&w.caller, "k", 1, &w.hash));
    TAKES(tatcell_table_hash(&w.table, "k", 0, &w.hash));
}

/* The arguments that all per-key calls share. CALL(t, l) is the call with this table and limit. */
#define TABLE_AND_LIMIT(CALL) \
    do { \
        NULL_IS(CALL(NULL, &w.tlimit)); \
        NULL_IS(CALL(&w.table, NULL)); \
        ODD_IS(CALL(OFF(&w.table), &w.tlimit)); \
        ODD_IS(CALL(&w.table, OFF(&w.tlimit))); \
        REFUSES(TATCELL_ERR_HANDLE, CALL(&w.zero_table, &w.tlimit)); \
        REFUSES(TATCELL_ERR_LIMIT, CALL(&w.table, &w.zero_limit)); \
        REFUSES(TATCELL_ERR_LIMIT, CALL(&w.table, &w.limit)); \
        REFUSES(TATCELL_ERR_LIMIT, CALL(&w.table, &w.limit32)); \
        REFUSES(TATCELL_ERR_FOREIGN, CALL(&w.table, &w.foreign)); \
    } while (0)

/* The two forms of a call: REST follows key and length, or the hash. */
#define KEYED(f, t, l, ...) f(t, l, 0, "key", 3, __VA_ARGS__)
#define HASHED(f, t, l, ...) f##_hash(t, l, 0, w.hash, __VA_ARGS__)
/* As KEYED with a key of the length that has a way of its own. */
#define KEYED16(f, t, l, ...) f(t, l, 0, "sixteen bytes ..", 16, __VA_ARGS__)

/* What every call for one key refuses, in both forms. */
#define BOTH_FORMS(f, ...) \
    do { \
        NULL_IS(f(&w.table, &w.tlimit, 0, NULL, 3, __VA_ARGS__)); \
        NULL_IS(f(&w.table, &w.tlimit, 0, NULL, 0, __VA_ARGS__)); \
        REFUSES(TATCELL_ERR_KEY_LENGTH, f(&w.table, &w.tlimit, 0, "key", SIZE_MAX, __VA_ARGS__)); \
        REFUSES(TATCELL_ERR_HASH, f(&w.caller, &w.tlimit, 0, "key", 3, __VA_ARGS__)); \
        NULL_IS(f(&w.table, &w.tlimit, 0, NULL, 16, __VA_ARGS__)); \
        REFUSES(TATCELL_ERR_HASH, KEYED16(f, &w.caller, &w.tlimit, __VA_ARGS__)); \
        TABLE_AND_LIMIT_OF(f, KEYED, __VA_ARGS__); \
        TABLE_AND_LIMIT_OF(f, KEYED16, __VA_ARGS__); \
        TABLE_AND_LIMIT_OF(f, HASHED, __VA_ARGS__); \
    } while (0)
#define TABLE_AND_LIMIT_OF(f, FORM, ...) \
    do { \
        NULL_IS(FORM(f, NULL, &w.tlimit, __VA_ARGS__)); \
        NULL_IS(FORM(f, &w.table, NULL, __VA_ARGS__)); \
        ODD_IS(FORM(f, OFF(&w.table), &w.tlimit, __VA_ARGS__)); \
        ODD_IS(FORM(f, &w.table, OFF(&w.tlimit), __VA_ARGS__)); \
        REFUSES(TATCELL_ERR_HANDLE, FORM(f, &w.zero_table, &w.tlimit, __VA_ARGS__)); \
        REFUSES(TATCELL_ERR_LIMIT, FORM(f, &w.table, &w.zero_limit, __VA_ARGS__)); \
        REFUSES(TATCELL_ERR_LIMIT, FORM(f, &w.table, &w.limit, __VA_ARGS__)); \
        REFUSES(TATCELL_ERR_LIMIT, FORM(f, &w.table, &w.limit32, __VA_ARGS__)); \
        REFUSES(TATCELL_ERR_FOREIGN, FORM(f, &w.table, &w.foreign, __VA_ARGS__)); \
    } while (0)
/* One argument in both forms: CODE for these values of REST. */
#define BOTH(code, f, ...) \
    do { \
        REFUSES(code, KEYED(f, &w.table, &w.tlimit, __VA_ARGS__)); \
        REFUSES(code, KEYED16(f, &w.table, &w.tlimit, __VA_ARGS__)); \
        REFUSES(code, HASHED(f, &w.table, &w.tlimit, __VA_ARGS__)); \
    } while (0)
#define BOTH_TAKE(f, ...) \
    do { \
        TAKES(KEYED(f, &w.table, &w.tlimit, __VA_ARGS__)); \
        TAKES(HASHED(f, &w.table, &w.tlimit, __VA_ARGS__)); \
    } while (0)

TEST(table_calls_for_one_key_refuse_bad_arguments) {
    DO(setup());
    BOTH_FORMS(tatcell_table_check, 1, &w.ticks);
    BOTH_FORMS(tatcell_table_check_counted, 1, &w.ticks, &w.counters);
    BOTH_FORMS(tatcell_table_check_ex, 1, 0, &w.d, &w.counters);
    BOTH_FORMS(tatcell_table_peek, 1, &w.d);
    BOTH_FORMS(tatcell_table_charge, 1, &w.d);
    BOTH_FORMS(tatcell_table_charge_ex, 1, &w.d, &w.counters);
    BOTH_FORMS(tatcell_table_reserve, 1, &w.d);
    BOTH_FORMS(tatcell_table_reserve_ex, 1, &w.d, &w.counters);
    BOTH_FORMS(tatcell_table_refund, &w.permit, &w.ticks);
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_check, 1, OFF(&w.ticks));
    BOTH(TATCELL_ERR_NULL, tatcell_table_check_counted, 1, &w.ticks, NULL);
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_check_counted, 1, OFF(&w.ticks), &w.counters);
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_check_counted, 1, &w.ticks, OFF(&w.counters));
    BOTH(TATCELL_ERR_OVERLAP, tatcell_table_check_counted, 1, &w.counters.never, &w.counters);
    BOTH(TATCELL_ERR_NULL, tatcell_table_check_ex, 1, 0, NULL, &w.counters);
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_check_ex, 1, 0, OFF(&w.d), &w.counters);
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_check_ex, 1, 0, &w.d, OFF(&w.counters));
    BOTH(TATCELL_ERR_OVERLAP, tatcell_table_check_ex, 1, 0, &w.d, (tatcell_counters_t *)(void *)&w.d.permit);
    BOTH(TATCELL_ERR_NULL, tatcell_table_peek, 1, NULL);
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_peek, 1, OFF(&w.d));
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_charge, 1, OFF(&w.d));
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_charge_ex, 1, &w.d, OFF(&w.counters));
    BOTH(TATCELL_ERR_OVERLAP, tatcell_table_charge_ex, 1, &w.d, (tatcell_counters_t *)(void *)&w.d.cost);
    BOTH(TATCELL_ERR_OVERLAP, tatcell_table_charge_ex, 1, (tatcell_decision_t *)(void *)&w.counters, &w.counters);
    BOTH(TATCELL_ERR_NULL, tatcell_table_reserve, 1, NULL);
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_reserve, 1, OFF(&w.d));
    BOTH(TATCELL_ERR_OVERLAP, tatcell_table_reserve_ex, 1, &w.d, (tatcell_counters_t *)(void *)&w.d.cost);
    BOTH(TATCELL_ERR_NULL, tatcell_table_refund, NULL, &w.ticks);
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_refund, OFF(&w.permit), &w.ticks);
    BOTH(TATCELL_ERR_ALIGN, tatcell_table_refund, &w.permit, OFF(&w.ticks));
    static const uint32_t sizes[] = {0, 7, 8, 136, 143, 145, 148, 4097, 4100, 4104, UINT32_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        w.short_d.size = sizes[i];
        NOTE("size %u", sizes[i]);
        BOTH(TATCELL_ERR_SIZE, tatcell_table_check_ex, 1, 0, &w.short_d, &w.counters);
        BOTH(TATCELL_ERR_SIZE, tatcell_table_peek, 1, &w.short_d);
        BOTH(TATCELL_ERR_SIZE, tatcell_table_charge, 1, &w.short_d);
        BOTH(TATCELL_ERR_SIZE, tatcell_table_reserve, 1, &w.short_d);
    }
    NULL_IS(tatcell_table_reset(NULL, 0, "key", 3));
    NULL_IS(tatcell_table_reset(&w.table, 0, NULL, 3));
    ODD_IS(tatcell_table_reset(OFF(&w.table), 0, "key", 3));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_reset(&w.zero_table, 0, "key", 3));
    REFUSES(TATCELL_ERR_HASH, tatcell_table_reset(&w.caller, 0, "key", 3));
    REFUSES(TATCELL_ERR_KEY_LENGTH, tatcell_table_reset(&w.table, 0, "key", SIZE_MAX));
    NULL_IS(tatcell_table_change(&w.table, &w.tlimit, &w.tlimit, 0, NULL, 3, 0));
    NULL_IS(tatcell_table_change(&w.table, NULL, &w.tlimit, 0, "key", 3, 0));
    NULL_IS(tatcell_table_change(&w.table, &w.tlimit, NULL, 0, "key", 3, 0));
    ODD_IS(tatcell_table_change_hash(OFF(&w.table), &w.tlimit, &w.tlimit, 0, 1, 0));
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_change_hash(&w.table, &w.tlimit, &w.tlimit, 0, 1, 3));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_change_hash(&w.zero_table, &w.tlimit, &w.tlimit, 0, 1, 0));
    REFUSES(TATCELL_ERR_HASH, tatcell_table_change(&w.caller, &w.tlimit, &w.tlimit, 0, "key", 3, 0));
    REFUSES(TATCELL_ERR_LIMIT, tatcell_table_change_hash(&w.table, &w.zero_limit, &w.tlimit, 0, 1, 0));
    REFUSES(TATCELL_ERR_FOREIGN, tatcell_table_change_hash(&w.table, &w.foreign, &w.tlimit, 0, 1, 0));
    REFUSES(TATCELL_ERR_FOREIGN, tatcell_table_change_hash(&w.table, &w.tlimit, &w.foreign, 0, 1, 0));
    TAKES(tatcell_table_change(&w.table, &w.tlimit, &w.tlimit, 0, "key", 3, 0));
    BOTH_TAKE(tatcell_table_check, 1, NULL);
    TAKES(tatcell_table_check(&w.table, &w.tlimit, 0, "", 0, 1, NULL));
    TAKES(tatcell_table_check_ex(&w.table, &w.tlimit, 0, "key", 3, 1, 0, &w.d, NULL));
    BOTH_TAKE(tatcell_table_charge, 1, NULL);
    BOTH_TAKE(tatcell_table_charge_ex, 1, NULL, NULL);
    TAKES(tatcell_table_reserve_ex(&w.table, &w.tlimit, 0, "key", 3, 1, &w.d, NULL));
    BOTH_TAKE(tatcell_table_refund, &w.permit, NULL);
    TAKES(tatcell_table_reset(&w.table, 0, "key", 3));
}

TEST(table_operations_refuse_bad_arguments) {
    DO(setup());
    const tatcell_table_t *t = &w.table;
    static uint64_t image[BYTES / 8];
    NULL_IS(tatcell_table_save(NULL, 0, image, BYTES, &w.used));
    NULL_IS(tatcell_table_save(t, 0, NULL, BYTES, &w.used));
    ODD_IS(tatcell_table_save(OFF(t), 0, image, BYTES, &w.used));
    ODD_IS(tatcell_table_save(t, 0, OFF(image), BYTES - 8, &w.used));
    ODD_IS(tatcell_table_save(t, 0, image, BYTES, OFF(&w.used)));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_save(&w.zero_table, 0, image, BYTES, &w.used));
    REFUSES(TATCELL_ERR_BUFFER, tatcell_table_save(t, 0, image, USED - 1, &w.used));
    REFUSES(TATCELL_ERR_BUFFER, tatcell_table_save(t, 0, image, 0, &w.used));
    REFUSES(TATCELL_ERR_TOO_LARGE, tatcell_table_save(t, 0, image, SIZE_MAX, &w.used));
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_save(t, 0, w.memory, USED, &w.used));
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_save(t, 0, w.memory + USED - 8, 8, &w.used));
    for (size_t i = 0; i < BYTES / 8; i++) EQ(image[i], 0);
    tatcell_migrated_t moved = TATCELL_MIGRATED_INIT;
    NULL_IS(tatcell_table_migrate_in_place(NULL, w.memory, BYTES, 1, &w.options, 0, &moved));
    NULL_IS(tatcell_table_migrate_in_place(&w.fresh_table, NULL, BYTES, 1, &w.options, 0, &moved));
    NULL_IS(tatcell_table_migrate_in_place(&w.fresh_table, w.memory, BYTES, 1, NULL, 0, &moved));
    NULL_IS(tatcell_table_migrate_in_place(&w.fresh_table, w.memory, BYTES, 1, &w.options, 0, NULL));
    ODD_IS(tatcell_table_migrate_in_place(&w.fresh_table, w.memory + 8, BYTES - 64, 1, &w.options, 0, &moved));
    REFUSES(TATCELL_ERR_SIZE,
        tatcell_table_migrate_in_place(&w.fresh_table, w.memory, BYTES, 1, &w.short_options, 0, &moved));
    REFUSES(TATCELL_ERR_MODE,
        tatcell_table_migrate_in_place(&w.fresh_table, w.memory, BYTES, 2, &w.options, 0, &moved));
    REFUSES(TATCELL_ERR_NOT_READY,
        tatcell_table_migrate_in_place(&w.fresh_table, w.blank, BYTES, 1, &w.options, 0, &moved));
    REFUSES(TATCELL_ERR_OVERLAP,
        tatcell_table_migrate_in_place((tatcell_table_t *)(void *)w.memory, w.memory, BYTES, 1, &w.options, 0, &moved));
    NULL_IS(tatcell_table_reset_hash(NULL, 0, 1));
    ODD_IS(tatcell_table_reset_hash(OFF(t), 0, 1));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_reset_hash(&w.zero_table, 0, 1));
    NULL_IS(tatcell_table_sweep(NULL, 0, 0, 10, &w.slot_number));
    ODD_IS(tatcell_table_sweep(OFF(t), 0, 0, 10, &w.slot_number));
    ODD_IS(tatcell_table_sweep(t, 0, 0, 10, OFF(&w.slot_number)));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_sweep(&w.zero_table, 0, 0, 10, &w.slot_number));
    NULL_IS(tatcell_table_sweep_due(NULL, &w.sweeper, 0));
    NULL_IS(tatcell_table_sweep_due(t, NULL, 0));
    ODD_IS(tatcell_table_sweep_due(OFF(t), &w.sweeper, 0));
    ODD_IS(tatcell_table_sweep_due(t, OFF(&w.sweeper), 0));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_sweep_due(&w.zero_table, &w.sweeper, 0));
    NULL_IS(tatcell_table_peek_time(NULL, &w.sweeper, 0, &w.slot_number));
    NULL_IS(tatcell_table_peek_time(t, NULL, 0, &w.slot_number));
    NULL_IS(tatcell_table_peek_time(t, &w.sweeper, 0, NULL));
    ODD_IS(tatcell_table_peek_time(OFF(t), &w.sweeper, 0, &w.slot_number));
    ODD_IS(tatcell_table_peek_time(t, OFF(&w.sweeper), 0, &w.slot_number));
    ODD_IS(tatcell_table_peek_time(t, &w.sweeper, 0, OFF(&w.slot_number)));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_peek_time(&w.zero_table, &w.sweeper, 0, &w.slot_number));
    NULL_IS(tatcell_table_info(NULL, &w.info));
    NULL_IS(tatcell_table_info(t, NULL));
    ODD_IS(tatcell_table_info(OFF(t), &w.info));
    ODD_IS(tatcell_table_info(t, OFF(&w.info)));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_info(&w.zero_table, &w.info));
    REFUSES(TATCELL_ERR_SIZE, tatcell_table_info(t, &w.short_info));
    NULL_IS(tatcell_table_export(NULL, &w.numbers));
    NULL_IS(tatcell_table_export(t, NULL));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_export(&w.zero_table, &w.numbers));
    NULL_IS(tatcell_table_prefetch(NULL, w.hashes, 4));
    NULL_IS(tatcell_table_prefetch(t, NULL, 4));
    ODD_IS(tatcell_table_prefetch(OFF(t), w.hashes, 4));
    ODD_IS(tatcell_table_prefetch(t, OFF(w.hashes), 4));
    REFUSES(TATCELL_ERR_COUNT, tatcell_table_prefetch(t, w.hashes, 65));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_prefetch(&w.zero_table, w.hashes, 4));
    TAKES(tatcell_table_prefetch(t, NULL, 0));
    TAKES(tatcell_table_prefetch(t, w.hashes, 64));
    TAKES(tatcell_table_prefetch(&w.caller, w.hashes, 4));
    tatcell_counters_t more = TATCELL_COUNTERS_INIT;
    NULL_IS(tatcell_counters_add(NULL, &more));
    NULL_IS(tatcell_counters_add(&w.counters, NULL));
    ODD_IS(tatcell_counters_add(OFF(&w.counters), &more));
    ODD_IS(tatcell_counters_add(&w.counters, OFF(&more)));
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_counters_add(&w.counters, &w.counters));
    EQ(tatcell_hash_available(TATCELL_HASH_SIPHASH13), 0);
    EQ(tatcell_hash_available(TATCELL_HASH_CALLER), 0);
    int32_t aes = tatcell_hash_available(TATCELL_HASH_AES);
    EXPECT(aes == 0 || aes == TATCELL_ERR_HASH_UNAVAILABLE);
    EQ(tatcell_hash_available(3), TATCELL_ERR_OPTION);
    EQ(tatcell_hash_available(UINT32_MAX), TATCELL_ERR_OPTION);
    NULL_IS(tatcell_table_stats(NULL, 0, &w.stats));
    NULL_IS(tatcell_table_stats(t, 0, NULL));
    ODD_IS(tatcell_table_stats(OFF(t), 0, &w.stats));
    ODD_IS(tatcell_table_stats(t, 0, OFF(&w.stats)));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_stats(&w.zero_table, 0, &w.stats));
    REFUSES(TATCELL_ERR_SIZE, tatcell_table_stats(t, 0, &w.short_stats));
    w.short_stats.size = 0;
    REFUSES(TATCELL_ERR_SIZE, tatcell_table_stats(t, 0, &w.short_stats));
    NULL_IS(tatcell_table_next(NULL, 0, 0, &w.slot));
    NULL_IS(tatcell_table_next(t, 0, 0, NULL));
    ODD_IS(tatcell_table_next(OFF(t), 0, 0, &w.slot));
    ODD_IS(tatcell_table_next(t, 0, 0, OFF(&w.slot)));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_next(&w.zero_table, 0, 0, &w.slot));
    REFUSES(TATCELL_END, tatcell_table_next(t, 0, UINT64_MAX, &w.slot));
    TAKES(tatcell_table_save(t, 0, image, USED, NULL));
    TAKES(tatcell_table_sweep(t, 0, 0, UINT64_MAX, NULL));
    TAKES(tatcell_table_sweep(t, 0, UINT64_MAX, UINT64_MAX, &w.slot_number));
    EQ(w.slot_number, 0);
    TAKES(tatcell_table_info(t, &w.info));
    EQ(w.info.slots, 64);
    EQ(w.info.image_bytes, USED);
    EQ(w.info.window, w.info.horizon + w.info.skew);
    EXPECT(w.info.span > w.info.window && w.info.sweep_interval < w.info.span);
    TAKES(tatcell_table_export(t, &w.numbers));
    EQ(w.numbers.lines, 8);
    EQ(w.numbers.header_bytes, 128);
}

/* A limit that nobody initialised is all zeros, and no table may take it for its own: one that is not of GCRA, or whose
 * q-unit is not a tick, has no limit that goes the shortest way. */
TEST(tables_of_every_form_refuse_limits_that_are_not_theirs) {
    static const struct {
        uint32_t algorithm, flags;
        int32_t resolution;
    } forms[] = {
        {TATCELL_ALGORITHM_GCRA, 0, 0},
        {TATCELL_ALGORITHM_GCRA, TATCELL_TABLE_EXCLUSIVE, 0},
        {TATCELL_ALGORITHM_GCRA, TATCELL_TABLE_RESOLUTION, 0},
        {TATCELL_ALGORITHM_GCRA, TATCELL_TABLE_RESOLUTION, 3},
        {TATCELL_ALGORITHM_GCRA, TATCELL_TABLE_RESOLUTION, -3},
        {TATCELL_ALGORITHM_GCRA, TATCELL_TABLE_RESOLUTION | TATCELL_TABLE_EXCLUSIVE, -3},
        {TATCELL_ALGORITHM_FIXED_WINDOW, 0, 0},
        {TATCELL_ALGORITHM_SLIDING_COUNTER, 0, 0},
        {TATCELL_ALGORITHM_QUOTA_LINEAR, 0, 0},
        {TATCELL_ALGORITHM_DECAY, TATCELL_TABLE_EXCLUSIVE, 0},
    };
    static const uint32_t hashes[] = {TATCELL_HASH_SIPHASH13, TATCELL_HASH_AES};
    for (size_t i = 0; i < 2 * (sizeof forms / sizeof *forms); i++) {
        NOTE("form %zu", i);
        DO(setup());
        tatcell_limit_spec_t spec = kit_spec(10, SECOND, 10);
        spec.algorithm = forms[i / 2].algorithm;
        tatcell_table_options_t o = kit_options(&spec);
        o.flags = forms[i / 2].flags;
        o.resolution = forms[i / 2].resolution;
        o.hash = hashes[i % 2];
        int32_t rc = tatcell_table_init(&w.table, w.memory, BYTES, &o);
        if (rc == TATCELL_ERR_HASH_UNAVAILABLE) continue;
        EQ(rc, 0);
        EQ(tatcell_limit_init_table(&w.tlimit, &w.table, &spec), 0);
        /* Not its own, whatever else is wrong with it. */
        tatcell_limit_t ones, inverted = w.tlimit;
        memset(&ones, 0xff, sizeof ones);
        inverted.opaque[0] = ~inverted.opaque[0]; /* the mark that a handle has for what no limit is */
        tatcell_burst_t b = TATCELL_BURST_INIT;
        b.count = 1, b.hashes = &w.hash;
        const tatcell_limit_t *bad[] = {&w.zero_limit, &ones, &w.limit, &w.limit32, &w.foreign, &inverted};
        /* A table that counts, or whose q-unit is not a tick, does not tell the inverted mark from a limit: it harms
         * nothing, and is nobody's by chance. */
        for (size_t j = 0; j < (i / 2 < 3 ? 6 : 5); j++) {
            int32_t code = j == 4 ? TATCELL_ERR_FOREIGN : TATCELL_ERR_LIMIT;
            NOTE("form %zu, limit %zu", i, j);
            REFUSES(code, KEYED(tatcell_table_check, &w.table, bad[j], 1, &w.ticks));
            REFUSES(code, KEYED16(tatcell_table_check, &w.table, bad[j], 1, &w.ticks));
            REFUSES(code, tatcell_table_check(&w.table, bad[j], 0, "four", 4, 1, &w.ticks));
            REFUSES(code, HASHED(tatcell_table_check, &w.table, bad[j], 1, &w.ticks));
            REFUSES(code, HASHED(tatcell_table_check, &w.table, bad[j], 0, NULL));
            REFUSES(code, HASHED(tatcell_table_check_ex, &w.table, bad[j], 1, 0, &w.d, NULL));
            b.limit = bad[j];
            REFUSES(code, tatcell_table_check_burst(&w.table, &b, NULL));
        }
        TAKES(KEYED(tatcell_table_check, &w.table, &w.tlimit, 1, &w.ticks));
        TAKES(KEYED16(tatcell_table_check, &w.table, &w.tlimit, 1, &w.ticks));
        TAKES(HASHED(tatcell_table_check, &w.table, &w.tlimit, 1, &w.ticks));
    }
}

TEST(sizing_functions_answer_any_number) {
    EQ(tatcell_table_bytes(0), 256);
    EQ(tatcell_table_bytes(16), 256);
    EQ(tatcell_table_bytes(17), 128 + 2 * 128);
    EQ(tatcell_table_bytes(UINT64_MAX), 0);
    EQ(tatcell_table_full_ppb(0), 0);
    EXPECT(tatcell_table_full_ppb(UINT64_MAX) <= 1000000000);
    EQ(tatcell_table_size_for(1, 0) == 0 || tatcell_table_size_for(1, 0) > 255, 1);
    EXPECT(tatcell_table_size_for(0, 1000) > 255);
    EQ(tatcell_table_size_for(UINT64_MAX, 1000), 0);
    EXPECT(tatcell_table_size_for(1000, UINT64_MAX) > 255);
    for (uint64_t ppb = 1; ppb < 1000000000; ppb *= 10) {
        size_t bytes = tatcell_table_size_for(100000, ppb);
        uint64_t slots = (bytes - 128) / 8;
        NOTE("target %llu", (unsigned long long)ppb);
        EXPECT(tatcell_table_full_ppb(100000 * UINT64_C(1000000) / slots) <= ppb);
    }
}

/* Random and damaged images, in memory that ends at a guard page: no call may touch anything else or crash. */
TEST(hostile_table_bytes_are_safe) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = (char *)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(map != (char *)MAP_FAILED && mprotect(map + page, page, PROT_NONE) == 0);
    uint64_t *words = (uint64_t *)(void *)(map + page - USED);
    unsigned long long random = 42;
    int attached = 0;
    DO(setup());
    for (int round = 0; round < 20000; round++) {
        NOTE("round %d, seed 42", round);
        uint64_t now = check_random(&random) >> (check_random(&random) & 63);
        memcpy(words, w.memory, USED);
        for (int i = 16; i < USED / 8; i++) words[i] = check_random(&random) >> (check_random(&random) & 31);
        if (round & 1) { /* damage the header too */
            int word = 1 + (int)(check_random(&random) % 9);
            words[word] ^= UINT64_C(1) << (check_random(&random) & 63);
        }
        memset(&w.fresh_table, 0, sizeof w.fresh_table);
        int32_t rc = tatcell_table_attach(&w.fresh_table, words, USED, kit_attach(w.seed, 0));
        EXPECT(rc <= 0 && rc >= TATCELL_ERR_FOLDER);
        if (rc != 0) continue;
        attached++;
        const tatcell_table_t *t = &w.fresh_table;
        tatcell_limit_t l;
        tatcell_permit_t permit = {check_random(&random), check_random(&random), now, 1, 0,
            (uint32_t)check_random(&random), {0, 0, 0}};
        if (tatcell_limit_init_table(&l, t, &w.spec) != 0) continue;
        for (int i = 0; i < 8; i++) {
            uint64_t h = check_random(&random);
            w.hashes[i] = h;
            rc = tatcell_table_check_hash(t, &l, now, h, (uint32_t)(h % 12), &w.ticks);
            EXPECT(rc >= 0 && rc <= 3);
            EXPECT(tatcell_table_check_ex_hash(t, &l, now, h, 1, h, &w.d, &w.counters) >= 0);
            EXPECT(tatcell_table_peek_hash(t, &l, now, h, 1, &w.d) >= 0);
            EXPECT(tatcell_table_charge_hash(t, &l, now, h, 3, &w.d) >= 0);
            EXPECT(tatcell_table_reserve_hash(t, &l, now, h, 2, &w.d) >= 0);
            EXPECT(tatcell_table_refund_hash(t, &l, now, h, &permit, NULL) >= 0);
            EXPECT(tatcell_table_reset_hash(t, now, h) >= 0);
        }
        tatcell_burst_t burst = TATCELL_BURST_INIT;
        burst.limit = &l, burst.now = now, burst.hashes = w.hashes, burst.count = 8, burst.counters = &w.counters;
        EQ(tatcell_table_check_burst(t, &burst, NULL), 0);
        EQ(tatcell_table_stats(t, now, &w.stats), 0);
        EQ(w.stats.slots, 64);
        EXPECT(w.stats.live + w.stats.claims + w.stats.expired <= 64);
        uint64_t live = 0;
        for (uint64_t from = 0; tatcell_table_next(t, now, from, &w.slot) == 0; from = w.slot.number + 1) live++;
        EQ(live, w.stats.live);
        EQ(tatcell_table_sweep(t, now, 0, UINT64_MAX, NULL), 0);
        EQ(tatcell_table_save(t, now, w.image, USED, NULL), 0);
    }
    EXPECT(attached > 9000);
    munmap(map, 2 * page);
}

/* The pointers of a check are asked for their alignment at once: two that are off by as much must not cancel each
 * other. What has a mark has it at the odd place, too. */
TEST(two_pointers_that_are_off_by_as_much_are_refused) {
    static union {
        uint64_t words[72];
        unsigned char bytes[576];
    } limits, cells, ticks, leases, tables;
    DO(setup());
    void *const limit = limits.bytes + 4, *const cell = cells.bytes + 4, *const out = ticks.bytes + 4;
    void *const lease = leases.bytes + 4, *const table = tables.bytes + 4;
    memcpy(limit, &w.limit, sizeof w.limit);
    ODD_IS(tatcell_cell_check(cell, limit, 0, 1, NULL));
    ODD_IS(tatcell_cell_check(&w.cell, limit, 0, 1, out));
    ODD_IS(tatcell_cell_check(cell, &w.limit, 0, 1, out));
    ODD_IS(tatcell_cell_check_exclusive(cell, limit, 0, 1, NULL));
    ODD_IS(tatcell_lease_check(lease, cell, &w.limit, 0, 1, NULL));
    ODD_IS(tatcell_lease_check(lease, &w.cell, limit, 0, 1, NULL));
    memcpy(limit, &w.tlimit, sizeof w.tlimit);
    memcpy(table, &w.table, sizeof w.table);
    ODD_IS(tatcell_table_check(table, limit, 0, "key", 3, 1, NULL));
    ODD_IS(tatcell_table_check(table, &w.tlimit, 0, "key", 3, 1, out));
    ODD_IS(tatcell_table_check_hash(&w.table, limit, 0, w.hash, 1, out));
}

int main(void) {
    RUN(two_pointers_that_are_off_by_as_much_are_refused);
    RUN(cell_functions_refuse_bad_arguments);
    RUN(cell32_functions_refuse_bad_arguments);
    RUN(cell_check_exclusive_refuses_bad_arguments);
    RUN(limit_functions_refuse_bad_arguments);
    RUN(table_init_refuses_bad_arguments);
    RUN(every_table_that_init_makes_can_be_attached);
    RUN(table_attach_refuses_bad_arguments_and_images);
    RUN(table_restore_refuses_bad_arguments_and_images);
    RUN(table_limit_refuses_bad_arguments);
    RUN(table_hash_refuses_bad_arguments);
    RUN(table_calls_for_one_key_refuse_bad_arguments);
    RUN(table_operations_refuse_bad_arguments);
    RUN(tables_of_every_form_refuse_limits_that_are_not_theirs);
    RUN(sizing_functions_answer_any_number);
    RUN(hostile_table_bytes_are_safe);
    return check_end();
}
