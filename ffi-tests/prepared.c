/* prepared.c - prepared chains answer as chains, one by one and in bursts; and every bad argument is refused. */
#include "kit.h"
#include "refuses.h"

typedef struct world {
    tatcell_cell_t all;
    tatcell_limit_t of_all;
    tatcell_prepared_chain_t prepared;
    tatcell_link_t links[9];
    tatcell_chain_t chain;
    tatcell_decision_t d;
    uint64_t pass, retries[64];
} world;

/* Two worlds that get the same requests. */
static world w, before, other;
static kit_table k, k2;

/* A key has 3 at once, all together 5; ticks are milliseconds. */
static void make(world *o, kit_table *table) {
    memset(o, 0, sizeof *o);
    EQ(kit_make(table, kit_spec(10, 1000, 3), 64, NULL), 0);
    EQ(tatcell_limit_init(&o->of_all, 10, 1000, 5), 0);
    o->links[0].table = &table->table, o->links[0].limit = &table->limit;
    o->links[1].cell = &o->all, o->links[1].limit = &o->of_all;
    const tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    const tatcell_decision_t decision = TATCELL_DECISION_INIT;
    o->chain = chain, o->d = decision;
    o->chain.links = o->links, o->chain.link_size = sizeof *o->links, o->chain.count = 2;
    EQ(tatcell_prepared_chain_init(&o->prepared, &o->chain), 0);
}

static void setup(void) {
    DO(make(&w, &k));
    DO(make(&other, &k2));
}

static void teardown(void) {
    kit_free(&k);
    kit_free(&k2);
}

static tatcell_chain_key_t *keys_of(const char *name) {
    static tatcell_chain_key_t keys[2];
    keys[0].key = name, keys[0].key_len = strlen(name);
    return keys;
}

/* The same request of a chain that is made for it. */
static int32_t plain(const char *name, uint64_t now, const uint64_t *costs) {
    other.links[0].key = name, other.links[0].key_len = strlen(name);
    other.links[0].cost = costs ? costs[0] : 1, other.links[1].cost = costs ? costs[1] : 1;
    return tatcell_chain_check(&other.chain, now, &other.d);
}

TEST(a_prepared_chain_decides_as_a_chain) {
    DO(setup());
    static const char *const names[] = {"a", "b", "0123456789abcdef", "four", ""};
    unsigned random = 1, passed = 0, never = 0;
    for (uint64_t i = 0, now = 1000; i < 20000; i++) {
        random = random * 1103515245 + 12345;
        now += random >> 16 & 127;
        const char *name = names[(random >> 8) % 5];
        const uint64_t costs[2] = {random >> 24 & 3, 1 + (random >> 26) % 6};
        const uint64_t *c = random >> 30 ? costs : NULL;
        const int32_t code = plain(name, now, c);
        NOTE("request %d", (int)i);
        if (random >> 20 & 1) {
            EQ(tatcell_prepared_chain_check(&w.prepared, now, keys_of(name), c, NULL), code);
        } else if (random >> 21 & 1) {
            const uint64_t hashes[2] = {kit_hash(&k, name), 0};
            EQ(tatcell_prepared_chain_check_hash(&w.prepared, now, hashes, c, NULL), code);
        } else {
            EQ(tatcell_prepared_chain_check(&w.prepared, now, keys_of(name), c, &w.d), code);
            EQ(memcmp(&w.d, &other.d, sizeof w.d), 0);
        }
        passed += code == TATCELL_PASS, never += code == TATCELL_NEVER;
    }
    EXPECT(passed > 2000 && passed < 18000 && never > 500);
    teardown();
}

TEST(a_burst_decides_as_single_checks_in_its_order) {
    DO(setup());
    unsigned random = 7, passed = 0, refused = 0;
    for (uint64_t i = 0, now = 1000; i < 2000; i++) {
        struct { char name[4]; uint16_t other; } packets[64];
        uint64_t costs[64][2], hashes[64][2];
        tatcell_chain_key_t keys[2] = {{sizeof *packets, packets[0].name, 4}, {0, NULL, 0}};
        tatcell_chain_burst_t burst = TATCELL_CHAIN_BURST_INIT;
        random = random * 1103515245 + 12345;
        now += random >> 16 & 2047;
        burst.now = now, burst.count = random >> 10 & 63;
        for (unsigned j = 0; j < 64; j++) {
            random = random * 1103515245 + 12345;
            memcpy(packets[j].name, "nam", 3);
            packets[j].name[3] = (char)('a' + (random >> 16) % 9);
            costs[j][0] = 1 + (random >> 20) % 2, costs[j][1] = random >> 25 & 3;
            EQ(tatcell_table_hash(&k.table, packets[j].name, 4, &hashes[j][0]), 0);
            hashes[j][1] = 0;
        }
        burst.costs = i & 1 ? &costs[0][0] : NULL;
        burst.retry_after = i & 2 ? w.retries : NULL;
        if (i & 4) burst.hashes = &hashes[0][0];
        else burst.keys = keys;
        EQ(tatcell_prepared_chain_check_burst(&w.prepared, &burst, &w.pass), 0);
        for (unsigned j = 0; j < burst.count; j++) {
            char name[5] = {0};
            memcpy(name, packets[j].name, 4);
            NOTE("burst %d", (int)i);
            const int32_t code = plain(name, now, i & 1 ? costs[j] : NULL);
            EQ(w.pass >> j & 1, code == TATCELL_PASS);
            if (i & 2) EQ(w.retries[j], code == TATCELL_PASS ? 0 : other.d.retry_after);
            passed += code == TATCELL_PASS, refused += code != TATCELL_PASS;
        }
        EQ(burst.count < 64 ? w.pass >> burst.count : 0, 0);
    }
    EXPECT(passed > 3000 && refused > 3000);
    teardown();
}

TEST(keys_of_one_table_may_be_equal) {
    DO(setup());
    /* Both links are keys of one table under one limit: one debt if the keys are equal. */
    w.links[1] = w.links[0];
    EQ(tatcell_prepared_chain_init(&w.prepared, &w.chain), 0);
    const tatcell_chain_key_t keys[2] = {{0, "same", 4}, {0, "same", 4}};
    EQ(tatcell_prepared_chain_check(&w.prepared, 0, keys, NULL, NULL), TATCELL_PASS);
    EQ(tatcell_prepared_chain_check(&w.prepared, 0, keys, NULL, NULL), TATCELL_NON_CONFORMING); /* 4 of 3 */
    const uint64_t most[2] = {UINT64_MAX, 1};
    REFUSES(TATCELL_ERR_COST, tatcell_prepared_chain_check(&w.prepared, 0, keys, most, NULL));
    tatcell_limit_t two;
    const tatcell_limit_spec_t spec = kit_spec(10, 1000, 2);
    EQ(tatcell_limit_init_table(&two, &k.table, &spec), 0);
    w.links[1].limit = &two;
    EQ(tatcell_prepared_chain_init(&w.prepared, &w.chain), 0);
    REFUSES(TATCELL_ERR_TWO_LIMITS, tatcell_prepared_chain_check(&w.prepared, 0, keys, NULL, NULL));
    tatcell_chain_burst_t burst = TATCELL_CHAIN_BURST_INIT;
    burst.count = 2, burst.keys = keys;
    REFUSES(TATCELL_ERR_TWO_LIMITS, tatcell_prepared_chain_check_burst(&w.prepared, &burst, &w.pass));
    teardown();
}

TEST(bad_arguments_are_refused_and_change_nothing) {
    DO(setup());
    tatcell_chain_key_t keys[2] = {{0, "name", 4}, {0, NULL, 0}};
    static tatcell_prepared_chain_t zero;
    tatcell_permit_t permits[2];
#define CHECK(p, keys, costs, out) tatcell_prepared_chain_check(p, 0, keys, costs, out)
    REFUSES(TATCELL_ERR_NULL, CHECK(NULL, keys, NULL, NULL));
    REFUSES(TATCELL_ERR_HANDLE, CHECK(&zero, keys, NULL, NULL));
    REFUSES(TATCELL_ERR_ALIGN, CHECK(OFF(&w.prepared), keys, NULL, NULL));
    REFUSES(TATCELL_ERR_NULL, CHECK(&w.prepared, NULL, NULL, NULL));
    REFUSES(TATCELL_ERR_ALIGN, CHECK(&w.prepared, OFF(keys), NULL, NULL));
    REFUSES(TATCELL_ERR_ALIGN, CHECK(&w.prepared, keys, OFF(w.retries), NULL));
    REFUSES(TATCELL_ERR_ALIGN, CHECK(&w.prepared, keys, NULL, OFF(&w.d)));
    w.d.size = 0;
    REFUSES(TATCELL_ERR_SIZE, CHECK(&w.prepared, keys, NULL, &w.d));
    w.d.size = sizeof w.d;
    keys[0].key = NULL;
    REFUSES(TATCELL_ERR_NULL, CHECK(&w.prepared, keys, NULL, NULL));
    keys[0].key = "name", keys[0].key_len = SIZE_MAX;
    REFUSES(TATCELL_ERR_KEY_LENGTH, CHECK(&w.prepared, keys, NULL, NULL));
    keys[0].key_len = 4;
    REFUSES(TATCELL_ERR_NULL, tatcell_prepared_chain_check_hash(&w.prepared, 0, NULL, NULL, NULL));

    REFUSES(TATCELL_ERR_NULL, tatcell_prepared_chain_init(NULL, &w.chain));
    REFUSES(TATCELL_ERR_NULL, tatcell_prepared_chain_init(&w.prepared, NULL));
#define BAD(code, change, back) \
    do { \
        change; \
        REFUSES(code, tatcell_prepared_chain_init(&w.prepared, &w.chain)); \
        back; \
    } while (0)
    BAD(TATCELL_ERR_LINKS, w.chain.count = 0, (void)0);
    BAD(TATCELL_ERR_LINKS, w.chain.count = 9, w.chain.count = 2);
    BAD(TATCELL_ERR_OPTION, w.chain.flags = 1, w.chain.flags = 0);
    BAD(TATCELL_ERR_OPTION, w.chain.reserved = 1, w.chain.reserved = 0);
    BAD(TATCELL_ERR_OPTION, w.chain.permits = permits, w.chain.permits = NULL);
    BAD(TATCELL_ERR_OPTION, w.links[0].flags = 8, w.links[0].flags = 0);
    BAD(TATCELL_ERR_NULL, w.links[1].limit = NULL, w.links[1].limit = &w.of_all);
    kit_table foreign;
    EQ(kit_make(&foreign, kit_spec(1, 1 << 30, 300), 64, NULL), 0);
    BAD(TATCELL_ERR_FOREIGN, w.links[0].limit = &foreign.limit, w.links[0].limit = &k.limit);
    kit_free(&foreign);
    BAD(TATCELL_ERR_SIZE, w.chain.link_size = 8, w.chain.link_size = sizeof *w.links);

    tatcell_chain_burst_t burst = TATCELL_CHAIN_BURST_INIT;
    uint64_t hashes[4] = {1, 2, 3, 4};
    EQ(tatcell_prepared_chain_check_burst(&w.prepared, &burst, &w.pass), 0);
    burst.count = 2, burst.keys = keys;
#define BURST(code, change, back) \
    do { \
        change; \
        REFUSES(code, tatcell_prepared_chain_check_burst(&w.prepared, &burst, &w.pass)); \
        back; \
    } while (0)
    BURST(TATCELL_ERR_OPTION, burst.flags = 1, burst.flags = 0);
    BURST(TATCELL_ERR_OPTION, burst.reserved = 1, burst.reserved = 0);
    BURST(TATCELL_ERR_OPTION, burst.hashes = hashes, burst.hashes = NULL);
    BURST(TATCELL_ERR_COUNT, burst.count = 65, burst.count = 2);
    BURST(TATCELL_ERR_NULL, burst.keys = NULL, burst.keys = keys);
    BURST(TATCELL_ERR_NULL, keys[0].key = NULL, keys[0].key = "name");
    BURST(TATCELL_ERR_SIZE, burst.size = 8, burst.size = sizeof burst);
    BURST(TATCELL_ERR_OVERLAP, burst.retry_after = &w.pass, burst.retry_after = NULL);
    BURST(TATCELL_ERR_OVERLAP, burst.retry_after = &burst.now, burst.retry_after = NULL);
    BURST(TATCELL_ERR_OVERLAP, burst.retry_after = (uint64_t *)(void *)&w.prepared + 1, burst.retry_after = NULL);
    BURST(TATCELL_ERR_OVERLAP, (burst.costs = w.retries, burst.retry_after = w.retries),
        (burst.costs = NULL, burst.retry_after = NULL));
    BURST(TATCELL_ERR_OVERLAP, (keys[0].key = w.retries, burst.retry_after = w.retries),
        (keys[0].key = "name", burst.retry_after = NULL));
    REFUSES(TATCELL_ERR_NULL, tatcell_prepared_chain_check_burst(&w.prepared, &burst, NULL));
    REFUSES(TATCELL_ERR_NULL, tatcell_prepared_chain_check_burst(&w.prepared, NULL, &w.pass));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_prepared_chain_check_burst(&zero, &burst, &w.pass));
    EQ(tatcell_prepared_chain_check_burst(&w.prepared, &burst, &w.pass), 0);
    EQ(w.pass, 3);
    EQ(tatcell_prepared_chain_size(), sizeof w.prepared);
    teardown();
}

int main(void) {
    RUN(a_prepared_chain_decides_as_a_chain);
    RUN(a_burst_decides_as_single_checks_in_its_order);
    RUN(keys_of_one_table_may_be_equal);
    RUN(bad_arguments_are_refused_and_change_nothing);
    return check_end();
}
