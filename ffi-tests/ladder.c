/* ladder.c - limits for the prefixes of an address; canonical addresses; and every bad argument is refused. */
#include "kit.h"

static kit_table k;
static tatcell_ladder_t ladder;
static tatcell_permit_t permits[TATCELL_CHAIN_MAX];
static tatcell_counters_t counters;
static tatcell_decision_t d;

/* A table and a ladder over 10 a second, 5 at once; rungs NULL = the defaults. */
static void setup(const tatcell_ladder_spec_t *rungs) {
    tatcell_limit_spec_t one = kit_spec(10, SECOND, 5), fastest = one, slowest = one;
    EQ(tatcell_ladder_table_specs(&one, rungs, &fastest, &slowest), 0);
    memset(&k, 0, sizeof k);
    k.bytes = tatcell_table_bytes(4096);
    k.memory = kit_memory(k.bytes);
    tatcell_table_options_t o = kit_options(&fastest);
    o.slowest = &slowest;
    EQ(tatcell_table_init(&k.table, k.memory, k.bytes, &o), 0);
    EQ(tatcell_limit_init_table(&k.limit, &k.table, &one), 0);
    EQ(tatcell_ladder_init(&ladder, &k.table, &one, rungs), 0);
    memset(permits, 0, sizeof permits);
    memset(&counters, 0, sizeof counters);
    memset(&d, 0, sizeof d);
    d.size = sizeof d;
}

static int32_t ask(const uint8_t *address, size_t length, uint64_t cost) {
    return tatcell_ladder_check(&ladder, &k.table, 0, address, length, cost, &d, permits, &counters);
}

TEST(each_tier_holds_its_share) {
    DO(setup(NULL));
    uint8_t v4[4] = {198, 51, 100, 1};
    EQ(ask(v4, 4, 5), 0);
    EQ(counters.inserted, 4);
    EQ(ask(v4, 4, 1), TATCELL_NON_CONFORMING);
    EQ(d.policy, 0);
    EQ(d.retry_after, SECOND / 10);
    int passed = 1;
    for (int host = 2; host < 256; host++) {
        v4[3] = (uint8_t)host;
        passed += ask(v4, 4, 5) == 0;
    }
    EQ(passed, 32);
    EQ(d.policy, 1);
    tatcell_rung_t rung;
    EQ(tatcell_ladder_rung(&ladder, v4, 4, d.policy, &rung), 0);
    EQ(rung.bits, 24);
    EQ(rung.multiplier, 32);
    EQ(tatcell_ladder_rung(&ladder, v4, 4, 4, &rung), TATCELL_END);
    uint8_t v6[16] = {0x20, 1, 0xd, 0xb8};
    for (passed = 0; v6[15] < 100; v6[15]++) passed += ask(v6, 16, 1) == 0;
    EQ(passed, 10);
    EQ(tatcell_ladder_rung(&ladder, v6, 16, d.policy, &rung), 0);
    EQ(rung.bits, 64);
    v6[7] = 1; /* a neighbour in the same /56 */
    EQ(ask(v6, 16, 5), 0);
    v6[7] = 2;
    EQ(ask(v6, 16, 1), TATCELL_NON_CONFORMING);
    EQ(tatcell_ladder_rung(&ladder, v6, 16, d.policy, &rung), 0);
    EQ(rung.bits, 56);
    kit_free(&k);
}

TEST(a_ladder_of_ones_own_replaces_the_defaults_of_its_family) {
    static const tatcell_rung_t v4[] = {{32, 1}, {0, 3}};
    tatcell_ladder_spec_t rungs = TATCELL_LADDER_SPEC_INIT;
    rungs.v4 = v4, rungs.v4_count = 2;
    DO(setup(&rungs));
    uint8_t a[4] = {1, 2, 3, 4}, v6[16] = {0x20, 1};
    for (int i = 0; i < 4; i++) {
        a[0] = (uint8_t)(50 * i);
        EQ(ask(a, 4, 5), i < 3 ? TATCELL_PASS : TATCELL_NON_CONFORMING);
    }
    tatcell_rung_t rung;
    EQ(tatcell_ladder_rung(&ladder, a, 4, d.policy, &rung), 0);
    EQ(rung.bits, 0);
    EQ(tatcell_ladder_rung(&ladder, v6, 16, 4, &rung), 0);
    EQ(rung.multiplier, 64);
    EQ(ask(v6, 16, 1), 0);
    kit_free(&k);
}

TEST(permits_of_an_address_give_all_its_prefixes_back) {
    DO(setup(NULL));
    static const uint8_t a[4] = {192, 0, 2, 1};
    EQ(ask(a, 4, 1), 0);
    uint64_t later = SECOND; /* of another tick than the inserts, whose claims are not given back */
    EQ(tatcell_ladder_check(&ladder, &k.table, later, a, 4, 5, NULL, permits, NULL), 0);
    EXPECT(permits[3].stored != 0 && permits[4].stored == 0);
    EQ(tatcell_ladder_peek(&ladder, &k.table, later, a, 4, 1, &d), TATCELL_NON_CONFORMING);
    EQ(tatcell_ladder_refund(&ladder, &k.table, later, a, 4, permits), 0);
    EXPECT(permits[0].stored == 0 && permits[3].stored == 0);
    EQ(tatcell_ladder_peek(&ladder, &k.table, later, a, 4, 5, &d), TATCELL_PASS);
    kit_free(&k);
}

TEST(addresses_have_one_form) {
    static const struct { uint8_t written[16]; size_t length, canonical; } forms[] = {
        {{192, 0, 2, 1}, 4, 4},
        {{[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1}, 16, 4},
        {{[1] = 0x64, [2] = 0xff, [3] = 0x9b, [12] = 192, [14] = 2, [15] = 1}, 16, 4},
        {{0x20, 0x02, 192, 0, 2, 1, 7, 7, 7, 7}, 16, 4},
        {{0x20, 0x01, 0, 0, 192, 0, 2, 1}, 16, 16},
        {{[12] = 192, [14] = 2, [15] = 1}, 16, 16},
    };
    static const uint8_t v4[16] = {192, 0, 2, 1};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        NOTE("form %d", (int)i);
        uint8_t canonical[16];
        size_t length = 0;
        memset(canonical, 0xa5, sizeof canonical);
        EQ(tatcell_address_canonical(forms[i].written, forms[i].length, canonical, &length), 0);
        EQ(length, forms[i].canonical);
        EQ(memcmp(canonical, length == 4 ? v4 : forms[i].written, 16), 0);
        /* In place. */
        memset(canonical, 0, sizeof canonical);
        memcpy(canonical, forms[i].written, forms[i].length);
        EQ(tatcell_address_canonical(canonical, forms[i].length, canonical, &length), 0);
        EQ(memcmp(canonical, length == 4 ? v4 : forms[i].written, 16), 0);
    }
    DO(setup(NULL));
    for (size_t i = 0; i < 4; i++) EQ(ask(forms[i].written, forms[i].length, 1), 0);
    EQ(ask(forms[1].written, 16, 2), TATCELL_NON_CONFORMING);
    EQ(counters.inserted, 4);
    kit_free(&k);
}

#define OFF(p) ((void *)((char *)(p) + 1))

static struct {
    tatcell_ladder_t ladder;
    tatcell_permit_t permits[TATCELL_CHAIN_MAX];
    tatcell_counters_t counters;
    tatcell_decision_t d;
    unsigned char memory[4096];
} before;

#define REFUSES(code, call) \
    do { \
        before.ladder = ladder, before.counters = counters, before.d = d; \
        memcpy(before.permits, permits, sizeof permits); \
        memcpy(before.memory, k.memory, sizeof before.memory); \
        EQ(call, code); \
        EQ(memcmp(&before.ladder, &ladder, sizeof ladder), 0); \
        EQ(memcmp(&before.counters, &counters, sizeof counters), 0); \
        EQ(memcmp(&before.d, &d, sizeof d), 0); \
        EQ(memcmp(before.permits, permits, sizeof permits), 0); \
        EQ(memcmp(before.memory, k.memory, sizeof before.memory), 0); \
    } while (0)

TEST(bad_ladders_are_refused_and_change_nothing) {
    DO(setup(NULL));
    tatcell_limit_spec_t one = kit_spec(10, SECOND, 5), fastest = one, slowest = one, zero = kit_spec(10, SECOND, 0);
    tatcell_table_t zero_table;
    memset(&zero_table, 0, sizeof zero_table);
    static const tatcell_rung_t bad[][3] = {{{33, 1}}, {{32, 0}}, {{32, 2}, {24, 1}}, {{24, 1}, {24, 1}}, {{288, 1}}};
    static const uint32_t counts[] = {1, 1, 2, 2, 1};
    tatcell_ladder_spec_t rungs = TATCELL_LADDER_SPEC_INIT;
    for (int i = 0; i < 5; i++) {
        NOTE("rungs %d", i);
        rungs.v4 = bad[i], rungs.v4_count = counts[i];
        REFUSES(TATCELL_ERR_LADDER, tatcell_ladder_init(&ladder, &k.table, &one, &rungs));
        REFUSES(TATCELL_ERR_LADDER, tatcell_ladder_table_specs(&one, &rungs, &fastest, &slowest));
    }
    rungs.v4_count = 9;
    REFUSES(TATCELL_ERR_LADDER, tatcell_ladder_init(&ladder, &k.table, &one, &rungs));
    rungs.v4_count = 1, rungs.v4 = NULL;
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_init(&ladder, &k.table, &one, &rungs));
    rungs.v4 = (const tatcell_rung_t *)OFF(bad);
    REFUSES(TATCELL_ERR_ALIGN, tatcell_ladder_init(&ladder, &k.table, &one, &rungs));
    rungs.v4_count = 0, rungs.flags = 1;
    REFUSES(TATCELL_ERR_OPTION, tatcell_ladder_init(&ladder, &k.table, &one, &rungs));
    rungs.flags = 0, rungs.size = 0;
    REFUSES(TATCELL_ERR_SIZE, tatcell_ladder_init(&ladder, &k.table, &one, &rungs));
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_init(NULL, &k.table, &one, NULL));
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_init(&ladder, NULL, &one, NULL));
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_init(&ladder, &k.table, NULL, NULL));
    REFUSES(TATCELL_ERR_ALIGN, tatcell_ladder_init(OFF(&ladder), &k.table, &one, NULL));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_ladder_init(&ladder, &zero_table, &one, NULL));
    REFUSES(TATCELL_ERR_BURST, tatcell_ladder_init(&ladder, &k.table, &zero, NULL));
    tatcell_limit_spec_t fast = kit_spec(1000000, SECOND, 5), huge = kit_spec(UINT64_MAX / 2, SECOND, 5);
    REFUSES(TATCELL_ERR_TOO_FAST, tatcell_ladder_init(&ladder, &k.table, &fast, NULL));
    /* Only the last tier is refused. */
    static const tatcell_rung_t last[] = {{128, 1}, {64, 2}, {48, 100000}};
    const tatcell_ladder_spec_t defaults = TATCELL_LADDER_SPEC_INIT;
    rungs = defaults, rungs.v6 = last, rungs.v6_count = 3;
    REFUSES(TATCELL_ERR_TOO_FAST, tatcell_ladder_init(&ladder, &k.table, &one, &rungs));
    const tatcell_table_t table = k.table;
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_ladder_init((tatcell_ladder_t *)(void *)&k.table, &k.table, &one, NULL));
    EQ(memcmp(&table, &k.table, sizeof table), 0);
    REFUSES(TATCELL_ERR_REPRESENT, tatcell_ladder_table_specs(&huge, NULL, &fastest, &slowest));
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_ladder_table_specs(&one, NULL, &fastest, &fastest));
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_table_specs(&one, NULL, NULL, &slowest));
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_table_specs(NULL, NULL, &fastest, &slowest));
    kit_free(&k);
}

TEST(a_ladder_may_be_made_over_what_it_is_made_from) {
    DO(setup(NULL));
    union {
        struct { tatcell_limit_spec_t one; tatcell_ladder_spec_t rungs; tatcell_rung_t v4[2]; } from;
        tatcell_ladder_t ladder;
    } both;
    const tatcell_ladder_spec_t defaults = TATCELL_LADDER_SPEC_INIT;
    memset(&both, 0xa5, sizeof both);
    both.from.one = kit_spec(10, SECOND, 5), both.from.rungs = defaults;
    both.from.v4[0].bits = 32, both.from.v4[1].bits = 24;
    both.from.v4[0].multiplier = 1, both.from.v4[1].multiplier = 32;
    both.from.rungs.v4 = both.from.v4, both.from.rungs.v4_count = 2;
    EQ(tatcell_ladder_init(&both.ladder, &k.table, &both.from.one, &both.from.rungs), 0);
    static const uint8_t a[4] = {192, 0, 2, 1};
    tatcell_rung_t rung;
    EQ(tatcell_ladder_rung(&both.ladder, a, 4, 1, &rung), 0);
    EXPECT(rung.bits == 24 && rung.multiplier == 32);
    EQ(tatcell_ladder_rung(&both.ladder, a, 4, 2, &rung), TATCELL_END);
    ladder = both.ladder;
    EQ(ask(a, 4, 5), 0);
    EQ(ask(a, 4, 1), TATCELL_NON_CONFORMING);
    EQ(d.policy, 0);
    kit_free(&k);
}

TEST(a_family_has_at_most_eight_rungs) {
    tatcell_rung_t v4[9], v6[9], rung;
    for (uint32_t i = 0; i < 9; i++) {
        v4[i].bits = 32 - 2 * i, v6[i].bits = 128 - 8 * i;
        v4[i].multiplier = v6[i].multiplier = i + 1;
    }
    tatcell_ladder_spec_t rungs = TATCELL_LADDER_SPEC_INIT;
    rungs.v4 = v4, rungs.v6 = v6, rungs.v4_count = rungs.v6_count = 8;
    DO(setup(&rungs));
    for (size_t length = 4; length <= 16; length += 12) {
        static const uint8_t a[16] = {0x20, 1, 0xd, 0xb8};
        NOTE("address of %d bytes", (int)length);
        counters.inserted = 0;
        EQ(ask(a, length, 5), 0);
        EQ(counters.inserted, 8);
        EQ(tatcell_ladder_rung(&ladder, a, length, 7, &rung), 0);
        EQ(rung.bits, length == 4 ? 18 : 72);
        EQ(rung.multiplier, 8);
        EQ(tatcell_ladder_rung(&ladder, a, length, 8, &rung), TATCELL_END);
    }
    tatcell_limit_spec_t one = kit_spec(10, SECOND, 5), fastest = one, slowest = one;
    memset(&ladder, 0, sizeof ladder);
    for (int family = 0; family < 2; family++) {
        NOTE("family %d", family);
        rungs.v4_count = family == 0 ? 9 : 8, rungs.v6_count = family == 1 ? 9 : 8;
        REFUSES(TATCELL_ERR_LADDER, tatcell_ladder_init(&ladder, &k.table, &one, &rungs));
        REFUSES(TATCELL_ERR_LADDER, tatcell_ladder_table_specs(&one, &rungs, &fastest, &slowest));
    }
    kit_free(&k);
}

TEST(bad_arguments_are_refused_and_change_nothing) {
    DO(setup(NULL));
    kit_table other;
    EQ(kit_make(&other, kit_spec(1, 1 << 30, 300), 64, NULL), 0);
    tatcell_ladder_t zero;
    memset(&zero, 0, sizeof zero);
    static const uint8_t a[16] = {192, 0, 2, 1};
    const tatcell_table_t *t = &k.table;
#define CHECK(l, t, a, n, out, p, c) tatcell_ladder_check(l, t, 0, a, n, 1, out, p, c)
    REFUSES(TATCELL_ERR_NULL, CHECK(NULL, t, a, 4, &d, permits, &counters));
    REFUSES(TATCELL_ERR_NULL, CHECK(&ladder, NULL, a, 4, &d, permits, &counters));
    REFUSES(TATCELL_ERR_NULL, CHECK(&ladder, t, NULL, 4, &d, permits, &counters));
    REFUSES(TATCELL_ERR_HANDLE, CHECK(&zero, t, a, 4, &d, permits, &counters));
    REFUSES(TATCELL_ERR_FOREIGN, CHECK(&ladder, &other.table, a, 4, &d, permits, &counters));
    REFUSES(TATCELL_ERR_ALIGN, CHECK(OFF(&ladder), t, a, 4, &d, permits, &counters));
    REFUSES(TATCELL_ERR_ALIGN, CHECK(&ladder, t, a, 4, OFF(&d), permits, &counters));
    REFUSES(TATCELL_ERR_ALIGN, CHECK(&ladder, t, a, 4, &d, OFF(permits), NULL));
    REFUSES(TATCELL_ERR_ALIGN, CHECK(&ladder, t, a, 4, &d, NULL, OFF(&counters)));
    REFUSES(TATCELL_ERR_OVERLAP, CHECK(&ladder, t, a, 4, &d, permits, (tatcell_counters_t *)(void *)permits));
    REFUSES(TATCELL_ERR_OVERLAP, CHECK(&ladder, t, a, 4, &d, &d.permit, &counters));
    static const size_t lengths[] = {0, 3, 5, 15, 17, SIZE_MAX};
    for (int i = 0; i < 6; i++) {
        NOTE("length %d", i);
        tatcell_rung_t rung;
        uint8_t canonical[16];
        size_t length;
        REFUSES(TATCELL_ERR_ADDRESS, CHECK(&ladder, t, a, lengths[i], &d, permits, &counters));
        REFUSES(TATCELL_ERR_ADDRESS, tatcell_ladder_peek(&ladder, t, 0, a, lengths[i], 1, &d));
        REFUSES(TATCELL_ERR_ADDRESS, tatcell_ladder_refund(&ladder, t, 0, a, lengths[i], permits));
        REFUSES(TATCELL_ERR_ADDRESS, tatcell_ladder_rung(&ladder, a, lengths[i], 0, &rung));
        REFUSES(TATCELL_ERR_ADDRESS, tatcell_address_canonical(a, lengths[i], canonical, &length));
    }
    d.size = 0;
    REFUSES(TATCELL_ERR_SIZE, CHECK(&ladder, t, a, 4, &d, permits, &counters));
    d.size = sizeof d;
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_peek(&ladder, t, 0, a, 4, 1, NULL));
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_refund(&ladder, t, 0, a, 4, NULL));
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_rung(&ladder, a, 4, 0, NULL));
    EQ(CHECK(&ladder, t, a, 4, NULL, NULL, NULL), 0);
    EQ(tatcell_ladder_size(), sizeof ladder);
    kit_free(&other);
    kit_free(&k);
}

int main(void) {
    RUN(each_tier_holds_its_share);
    RUN(a_ladder_of_ones_own_replaces_the_defaults_of_its_family);
    RUN(permits_of_an_address_give_all_its_prefixes_back);
    RUN(addresses_have_one_form);
    RUN(bad_ladders_are_refused_and_change_nothing);
    RUN(a_ladder_may_be_made_over_what_it_is_made_from);
    RUN(a_family_has_at_most_eight_rungs);
    RUN(bad_arguments_are_refused_and_change_nothing);
    return check_end();
}
