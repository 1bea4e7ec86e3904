/* chain.c - several limits for one request: all or none, by what C hands over; bursts under two limits a key; and every
 * bad argument is refused. */
#include "kit.h"

static tatcell_cell_t cells[2];
static tatcell_cell32_t cell32;
static tatcell_limit_t per_second, per_minute, limit32;
static tatcell_link_t links[8];
static tatcell_permit_t permits[8];
static tatcell_decision_t each[8];
static tatcell_counters_t counters;
static tatcell_chain_t chain;
static tatcell_decision_t d;
static kit_table k;

/* 5 a second and 100 a minute, 7 at once; ticks are milliseconds. */
static void setup(void) {
    memset(cells, 0, sizeof cells);
    memset(&cell32, 0, sizeof cell32);
    memset(links, 0, sizeof links);
    memset(permits, 0, sizeof permits);
    memset(each, 0, sizeof each);
    memset(&counters, 0, sizeof counters);
    EQ(tatcell_limit_init(&per_second, 5, 1000, 5), 0);
    EQ(tatcell_limit_init(&per_minute, 100, 60000, 7), 0);
    EQ(tatcell_limit32_init(&limit32, 1, 1000, 2), 0);
    links[0].cell = &cells[0], links[0].limit = &per_second, links[0].cost = 1;
    links[1].cell = &cells[1], links[1].limit = &per_minute, links[1].cost = 1;
    tatcell_chain_t c = TATCELL_CHAIN_INIT;
    c.links = links, c.link_size = sizeof *links, c.count = 2;
    c.permits = permits, c.decisions = each, c.decision_size = sizeof *each, c.counters = &counters;
    chain = c;
    memset(&d, 0, sizeof d);
    d.size = sizeof d;
}

static uint64_t left(int i) {
    tatcell_decision_t state = TATCELL_DECISION_INIT;
    if (tatcell_cell_peek(&cells[i], links[i].limit, 0, 0, &state) < 0) return UINT64_MAX;
    return state.remaining;
}

TEST(both_limits_are_charged_or_none) {
    DO(setup());
    for (int i = 0; i < 5; i++) EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EQ(d.policy, 0);
    EQ(d.remaining, 0);
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_NON_CONFORMING);
    EQ(d.policy, 0);
    EQ(d.retry_after, 200);
    EQ(left(1), 2);
    EQ(tatcell_chain_peek(&chain, 1000, &d), TATCELL_PASS);
    links[1].cost = 4; /* 2 are left, and 1.67 drain in a second: the fourth comes after 1200 ms */
    EQ(tatcell_chain_check(&chain, 1000, &d), TATCELL_NON_CONFORMING);
    EQ(d.policy, 1);
    EQ(d.retry_after, 200);
    links[1].cost = 8;
    EQ(tatcell_chain_check(&chain, 1000, &d), TATCELL_NEVER);
    EQ(d.policy, 1);
    EQ(d.retry_after, UINT64_MAX);
    EQ(counters.conforming, 5);
    EQ(counters.non_conforming, 2);
    EQ(counters.never, 1);
}

/* Three worlds that get the same chains of one to four cells: one answers with decisions, one with codes alone, and one
 * is asked by prepared chains. Two or three cells without a decision have a way of their own. */
TEST(cells_decide_alike_with_a_decision_without_and_prepared) {
    static tatcell_cell_t worlds[3][4];
    static tatcell_limit_t limits[3];
    static const tatcell_limit_spec_t none = TATCELL_LIMIT_SPEC_INIT;
    tatcell_limit_spec_t spec = none;
    spec.units = 9, spec.period = 1000, spec.burst = 3, spec.max_room = 2;
    EQ(tatcell_limit_init(&limits[0], 5, 1000, 5), 0);
    EQ(tatcell_limit_init(&limits[1], 100, 60000, 7), 0);
    EQ(tatcell_limit_init_spec(&limits[2], &spec), 0);
    EQ(tatcell_limit32_init(&limit32, 1, 1000, 2), 0);
    memset(worlds, 0, sizeof worlds);
    unsigned long long random = 3;
    int codes[3] = {0}, errors = 0;
    uint64_t now = 1000;
    for (int round = 0; round < 60000; round++) {
        NOTE("round %d", round);
        now += check_random(&random) % 256;
        const uint32_t count = 1 + (uint32_t)(check_random(&random) % 4);
        const int odd = check_random(&random) % 4 == 0;
        tatcell_link_t of[3][4];
        tatcell_chain_t chains[3];
        uint64_t costs[4];
        for (uint32_t i = 0; i < count; i++) {
            tatcell_link_t link = TATCELL_LINK_INIT;
            const uint64_t cell = odd ? check_random(&random) % 4 : (i + (uint64_t)round) % 3;
            link.limit = &limits[cell == 3 ? 2 : cell % 2];
            link.cost = costs[i] = odd ? check_random(&random) % 9 : 1 + check_random(&random) % 2;
            if (odd && check_random(&random) % 8 == 0) link.room = 1;
            if (odd && check_random(&random) % 8 == 0) link.extra = 1;
            if (odd && check_random(&random) % 32 == 0) link.flags = TATCELL_LINK_HASH;
            if (odd && check_random(&random) % 32 == 0) link.limit = check_random(&random) % 2 ? NULL : &limit32;
            for (int w = 0; w < 3; w++) of[w][i] = link, of[w][i].cell = &worlds[w][cell];
        }
        for (int w = 0; w < 3; w++) {
            const tatcell_chain_t c = TATCELL_CHAIN_INIT;
            chains[w] = c, chains[w].links = of[w], chains[w].link_size = sizeof **of, chains[w].count = count;
        }
        tatcell_decision_t told = TATCELL_DECISION_INIT;
        const int32_t want = tatcell_chain_check(&chains[0], now, &told);
        EQ(tatcell_chain_check(&chains[1], now, NULL), want);
        tatcell_prepared_chain_t prepared;
        const tatcell_chain_key_t keys[4] = {{0, NULL, 0}};
        const int32_t made = tatcell_prepared_chain_init(&prepared, &chains[2]);
        EQ(made < 0, want < 0);
        if (made == 0) EQ(tatcell_prepared_chain_check(&prepared, now, keys, costs, NULL), want);
        EQ(memcmp(worlds[0], worlds[1], sizeof *worlds), 0);
        EQ(memcmp(worlds[0], worlds[2], sizeof *worlds), 0);
        if (want < 0) errors++;
        else codes[want]++;
    }
    EXPECT(codes[TATCELL_PASS] > 10000 && codes[TATCELL_NON_CONFORMING] > 10000 && codes[TATCELL_NEVER] > 2000);
    EXPECT(errors > 1000);
}

TEST(links_have_permits_and_decisions_of_their_own) {
    DO(setup());
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EXPECT(permits[0].stored != 0 && permits[1].stored != 0 && d.permit.stored == 0);
    EQ(memcmp(&each[1].permit, &permits[1], sizeof permits[1]), 0);
    EQ(each[0].policy, 0);
    EQ(each[1].policy, 1);
    EQ(each[0].remaining, 4);
    EQ(each[1].remaining, 6);
    EQ(tatcell_chain_refund(&chain, 0), 0);
    EQ(left(0), 5);
    EQ(left(1), 7);
    EXPECT(permits[0].stored == 0 && permits[1].stored == 0);
    EQ(tatcell_chain_refund(&chain, 0), 0); /* nothing is left to give back */
    EQ(tatcell_cell_check(&cells[0], &per_second, 0, 5, NULL), 0);
    memset(permits, 1, sizeof permits);
    EQ(tatcell_chain_check(&chain, 0, NULL), TATCELL_NON_CONFORMING);
    EXPECT(permits[0].stored == 0 && permits[1].stored == 0);
    EQ(each[0].verdict, TATCELL_NON_CONFORMING);
    EQ(each[1].verdict, TATCELL_PASS);
    EQ(left(1), 7);
}

/* The whole has the flags of the link that decided, each link its own; and a peek writes the decisions, no more. */
TEST(flags_are_those_of_the_link_that_decided) {
    tatcell_limit_spec_t s = kit_spec(10, 1000, 100), t = kit_spec(10, 1000, 1);
    tatcell_limit_t soft, shadow;
    DO(setup());
    s.soft = 1, t.flags = TATCELL_LIMIT_SHADOW;
    EQ(tatcell_limit_init_spec(&soft, &s), 0);
    EQ(tatcell_limit_init_spec(&shadow, &t), 0);
    links[0].limit = &soft, links[0].cost = 2;
    memset(permits, 0x77, sizeof permits);
    EQ(tatcell_chain_peek(&chain, 0, &d), TATCELL_PASS);
    EXPECT(d.policy == 1 && d.flags == 0 && each[0].flags == TATCELL_FLAG_SOFT && each[1].flags == 0);
    EXPECT(each[0].burst == 100 && each[1].remaining == 7 && each[0].units == 0 && counters.conforming == 0);
    EQ(permits[0].stored, UINT64_C(0x7777777777777777));
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EXPECT(d.policy == 1 && d.flags == 0 && d.units == 1 && each[0].flags == TATCELL_FLAG_SOFT && each[0].units == 2);
    EQ(counters.soft, 1);
    memset(cells, 0, sizeof cells);
    links[0].limit = &shadow, links[0].cost = 1, links[1].cost = 7;
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_NON_CONFORMING);
    EXPECT(d.policy == 1 && d.flags == 0 && each[0].flags == TATCELL_FLAG_SHADOW && each[1].flags == 0);
    EQ(tatcell_chain_reserve(&chain, 0, &d), TATCELL_NON_CONFORMING); /* as the other link alone */
    links[1].cost = 0;
    EQ(tatcell_chain_reserve(&chain, 0, &d), TATCELL_PASS); /* the link in shadow mode alone would refuse */
    EXPECT(each[0].flags == TATCELL_FLAG_SHADOW && each[0].units == 0 && d.departure == 0 && d.retry_after == 100);
}

TEST(cells_of_both_widths_and_keys_mix) {
    DO(setup());
    EQ(kit_make(&k, kit_spec(1, 1000, 3), 64, NULL), 0);
    links[0].cell = NULL, links[0].cell32 = &cell32, links[0].limit = &limit32;
    links[1].cell = NULL, links[1].table = &k.table, links[1].limit = &k.limit;
    links[1].key = "user", links[1].key_len = 4;
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EQ(counters.inserted, 1);
    /* The same key by its hash. */
    links[1].key = NULL, links[1].key_len = 0, links[1].flags = TATCELL_LINK_HASH;
    links[1].hash = kit_hash(&k, "user");
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EQ(each[1].remaining, 1);
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_NON_CONFORMING);
    EQ(d.policy, 0);
    EQ(d.retry_after, 1000);
    kit_free(&k);
}

TEST(an_extra_is_charged_once_it_has_passed) {
    DO(setup());
    links[1].extra = 2;
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EQ(left(0), 4);
    EQ(left(1), 4);
    links[1].extra = 100;
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EQ(left(1), 0);
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_NON_CONFORMING);
    EQ(d.policy, 1);
}

TEST(a_reservation_departs_at_the_latest_of_its_links) {
    DO(setup());
    tatcell_limit_spec_t fast = kit_spec(10, 1000, 1), slow = kit_spec(1, 1000, 1);
    fast.max_delay = 250, slow.max_delay = 3000;
    EQ(tatcell_limit_init_spec(&per_second, &fast), 0);
    EQ(tatcell_limit_init_spec(&per_minute, &slow), 0);
    static const uint64_t departures[] = {50, 1050, 2050};
    for (int i = 0; i < 3; i++) {
        EQ(tatcell_chain_reserve(&chain, 50, &d), TATCELL_PASS);
        EQ(d.departure, departures[i]);
    }
    EQ(tatcell_chain_reserve(&chain, 50, &d), TATCELL_NON_CONFORMING); /* 300 of 250 for the first link */
    EQ(d.policy, 0);
    EQ(d.retry_after, 50);
    tatcell_decision_t state = TATCELL_DECISION_INIT;
    EQ(tatcell_cell_peek(&cells[1], &per_minute, 50, 0, &state), TATCELL_NON_CONFORMING);
    EQ(state.reset_after, 3000);
    EQ(tatcell_chain_refund(&chain, 50), 0);
}

/* Everything that a call may touch. */
static struct {
    tatcell_cell_t cells[2];
    tatcell_permit_t permits[8];
    tatcell_decision_t each[8], d;
    tatcell_counters_t counters;
} before;

static void keep(void) {
    memcpy(before.cells, cells, sizeof cells);
    memcpy(before.permits, permits, sizeof permits);
    memcpy(before.each, each, sizeof each);
    before.d = d, before.counters = counters;
}

static int changed(void) {
    return memcmp(before.cells, cells, sizeof cells) || memcmp(before.permits, permits, sizeof permits) ||
           memcmp(before.each, each, sizeof each) || memcmp(&before.d, &d, sizeof d) ||
           memcmp(&before.counters, &counters, sizeof counters);
}

#define REFUSES(code, call) \
    do { \
        keep(); \
        EQ(call, code); \
        EXPECT(!changed()); \
    } while (0)
/* All four functions, after a change that is taken back. */
#define BAD(code, change, back) \
    do { \
        change; \
        REFUSES(code, tatcell_chain_check(&chain, 0, &d)); \
        REFUSES(code, tatcell_chain_peek(&chain, 0, &d)); \
        REFUSES(code, tatcell_chain_reserve(&chain, 0, &d)); \
        REFUSES(code, tatcell_chain_refund(&chain, 0)); \
        back; \
    } while (0)
#define OFF(p) ((void *)((char *)(p) + 1))

TEST(bad_arguments_are_refused_and_change_nothing) {
    DO(setup());
    EQ(kit_make(&k, kit_spec(1, 1000, 3), 64, NULL), 0);
    kit_table caller, other;
    tatcell_table_options_t o = kit_options(NULL);
    o.hash = TATCELL_HASH_CALLER;
    EQ(kit_make(&caller, kit_spec(1, 1000, 3), 64, &o), 0);
    EQ(kit_make(&other, kit_spec(1, 1 << 30, 300), 64, NULL), 0);
    tatcell_limit_t zero_limit;
    tatcell_table_t zero_table;
    memset(&zero_limit, 0, sizeof zero_limit);
    memset(&zero_table, 0, sizeof zero_table);
    const tatcell_chain_t good = chain;
    const tatcell_link_t second = links[1];
#define CHAIN(code, change) BAD(code, change, chain = good)
#define LINK(code, change) BAD(code, change, links[1] = second)
    REFUSES(TATCELL_ERR_NULL, tatcell_chain_check(NULL, 0, &d));
    REFUSES(TATCELL_ERR_NULL, tatcell_chain_peek(&chain, 0, NULL));
    REFUSES(TATCELL_ERR_NULL, tatcell_chain_reserve(&chain, 0, NULL));
    REFUSES(TATCELL_ERR_NULL, tatcell_chain_refund(NULL, 0));
    REFUSES(TATCELL_ERR_ALIGN, tatcell_chain_check(OFF(&chain), 0, &d));
    REFUSES(TATCELL_ERR_ALIGN, tatcell_chain_check(&chain, 0, OFF(&d)));
    chain.permits = NULL;
    REFUSES(TATCELL_ERR_NULL, tatcell_chain_refund(&chain, 0));
    chain = good;
    d.size = 8;
    REFUSES(TATCELL_ERR_SIZE, tatcell_chain_check(&chain, 0, &d));
    d.size = sizeof d;
    CHAIN(TATCELL_ERR_SIZE, chain.size = 0);
    CHAIN(TATCELL_ERR_SIZE, chain.link_size = 0);
    CHAIN(TATCELL_ERR_SIZE, chain.link_size = TATCELL_LINK_MIN - 8);
    CHAIN(TATCELL_ERR_SIZE, chain.decision_size = 0);
    CHAIN(TATCELL_ERR_OPTION, chain.flags = 1);
    CHAIN(TATCELL_ERR_OPTION, chain.reserved = 1);
    CHAIN(TATCELL_ERR_LINKS, chain.count = 0);
    CHAIN(TATCELL_ERR_LINKS, chain.count = 9);
    CHAIN(TATCELL_ERR_LINKS, chain.count = UINT32_MAX);
    CHAIN(TATCELL_ERR_NULL, chain.links = NULL);
    CHAIN(TATCELL_ERR_ALIGN, chain.links = OFF(links));
    CHAIN(TATCELL_ERR_ALIGN, chain.permits = OFF(permits));
    CHAIN(TATCELL_ERR_ALIGN, chain.decisions = OFF(each));
    CHAIN(TATCELL_ERR_ALIGN, chain.counters = OFF(&counters));
    CHAIN(TATCELL_ERR_OVERLAP, chain.permits = &each[1].permit);
    CHAIN(TATCELL_ERR_OVERLAP, chain.counters = (tatcell_counters_t *)(void *)permits);
    CHAIN(TATCELL_ERR_OVERLAP, chain.decisions = (tatcell_decision_t *)(void *)links);
    chain.decisions = &d;
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_chain_check(&chain, 0, &d));
    chain = good;
    links[1].size = sizeof d; /* as what starts a decision there */
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_chain_check(&chain, 0, (tatcell_decision_t *)(void *)&links[1]));
    links[1] = second;
    LINK(TATCELL_ERR_NULL, links[1].cell = NULL);
    LINK(TATCELL_ERR_NULL, links[1].limit = NULL);
    LINK(TATCELL_ERR_ALIGN, links[1].cell = (tatcell_cell_t *)OFF(cells));
    LINK(TATCELL_ERR_ALIGN, links[1].limit = (tatcell_limit_t *)OFF(&per_second));
    LINK(TATCELL_ERR_OPTION, links[1].flags = 2);
    LINK(TATCELL_ERR_OPTION, links[1].flags = TATCELL_LINK_HASH);
    LINK(TATCELL_ERR_OPTION, links[1].cell32 = &cell32);
    LINK(TATCELL_ERR_OPTION, links[1].table = &k.table);
    LINK(TATCELL_ERR_LIMIT, links[1].limit = &zero_limit);
    LINK(TATCELL_ERR_LIMIT, links[1].limit = &limit32);
    LINK(TATCELL_ERR_LIMIT, links[1].limit = &k.limit);
    LINK(TATCELL_ERR_TWO_LIMITS, links[1].cell = &cells[0]);
    LINK(TATCELL_ERR_COST, (links[1] = links[0], links[1].cost = UINT64_MAX));
    tatcell_link_t key = second;
    key.cell = NULL, key.table = &k.table, key.limit = &k.limit, key.key = "k", key.key_len = 1;
#define KEY(code, change) LINK(code, (links[1] = key, change))
    KEY(TATCELL_ERR_NULL, links[1].key = NULL);
    KEY(TATCELL_ERR_KEY_LENGTH, links[1].key_len = SIZE_MAX);
    KEY(TATCELL_ERR_HANDLE, links[1].table = &zero_table);
    KEY(TATCELL_ERR_LIMIT, links[1].limit = &per_second);
    KEY(TATCELL_ERR_FOREIGN, links[1].limit = &other.limit);
    KEY(TATCELL_ERR_HASH, (links[1].table = &caller.table, links[1].limit = &caller.limit));
    EQ(tatcell_chain_check(&chain, 0, &d), 0);
    kit_free(&k);
    kit_free(&caller);
    kit_free(&other);
}

/* What C hands over: costs of each limit, keys or hashes, a burst that is prepared. tests/table/pair_burst.rs has
 * chains of both limits beside such bursts. */
TEST(pairs_take_costs_of_both_limits_and_keys_or_hashes) {
    static const uint32_t keys[4] = {1, 2, 3, 1}, packets[4] = {1, 5, 2, 3}, sizes[4] = {200, 1, 301, 100};
    tatcell_limit_spec_t bytes = kit_spec(1, 1 << 12, 300), slow = kit_spec(1, 1 << 18, 4);
    tatcell_table_options_t o = kit_options(NULL);
    tatcell_limit_t first;
    uint64_t hashes[4];
    o.slowest = &slow;
    EQ(kit_make(&k, bytes, 256, &o), 0);
    EQ(tatcell_limit_init_table(&first, &k.table, &slow), 0);
    for (int i = 0; i < 4; i++) EQ(tatcell_table_hash(&k.table, &keys[i], 4, &hashes[i]), 0);
    for (uint64_t turn = 1; turn <= 2; turn++) {
        NOTE("turn %d", (int)turn);
        const uint64_t now = turn << 30;
        tatcell_counters_t c = TATCELL_COUNTERS_INIT;
        tatcell_burst_t none = TATCELL_BURST_INIT, b = kit_burst(&first, now, keys, 4, 4, 4);
        if (turn == 2) b.keys = NULL, b.hashes = hashes;
        b.costs = packets, b.counters = &c;
        EQ(tatcell_table_check_pairs(&k.table, &none, &k.limit, NULL, &b), 0);
        EQ(tatcell_table_check_pairs(&k.table, &b, &k.limit, sizes, NULL), 0);
        EQ(b.pass, 9); /* the second has more packets than the burst, the third more bytes */
        EQ(c.conforming, 2);
        EQ(c.never, 2);
        d.size = sizeof d;
        EQ(tatcell_table_check_ex_hash(&k.table, &first, now, hashes[0], 0, 0, &d, NULL), 0);
        EQ(d.remaining, 0);
        EQ(tatcell_table_check_ex_hash(&k.table, &k.limit, now, tatcell_hash_second(hashes[0]), 0, 0, &d, NULL), 0);
        EQ(d.remaining, 0);
    }
    kit_free(&k);
}

TEST(bad_pairs_are_refused_and_change_nothing) {
    DO(setup());
    kit_table other;
    EQ(kit_make(&k, kit_spec(1, 1000, 3), 64, NULL), 0);
    EQ(kit_make(&other, kit_spec(1, 1 << 30, 300), 64, NULL), 0);
    static const uint32_t keys[4] = {1, 2, 3, 4}, costs[4] = {1, 1, 1, 1};
    tatcell_burst_t b = kit_burst(&k.limit, 0, keys, 4, 4, 4), next = b;
    b.counters = &counters;
    const tatcell_burst_t good = b;
    static unsigned char image[2048];
    EXPECT(k.bytes <= sizeof image);
    memcpy(image, k.memory, k.bytes);
#define PAIRS(code, change, burst, second, costs, next) \
    do { \
        change; \
        keep(); \
        EQ(tatcell_table_check_pairs(&k.table, burst, second, costs, next), code); \
        EXPECT(!changed() && memcmp(image, k.memory, k.bytes) == 0); \
        b = good; \
    } while (0)
    EQ(tatcell_table_check_pairs(NULL, &b, &k.limit, costs, NULL), TATCELL_ERR_NULL);
    PAIRS(TATCELL_ERR_NULL, , NULL, &k.limit, costs, NULL);
    PAIRS(TATCELL_ERR_NULL, , &b, NULL, costs, NULL);
    PAIRS(TATCELL_ERR_NULL, b.limit = NULL, &b, &k.limit, costs, NULL);
    PAIRS(TATCELL_ERR_NULL, b.keys = NULL, &b, &k.limit, costs, NULL);
    PAIRS(TATCELL_ERR_ALIGN, , &b, &k.limit, (const uint32_t *)OFF(costs), NULL);
    PAIRS(TATCELL_ERR_ALIGN, , &b, (const tatcell_limit_t *)OFF(&k.limit), costs, NULL);
    PAIRS(TATCELL_ERR_LIMIT, , &b, &per_second, costs, NULL);
    PAIRS(TATCELL_ERR_FOREIGN, , &b, &other.limit, costs, NULL);
    PAIRS(TATCELL_ERR_FOREIGN, b.limit = &other.limit, &b, &k.limit, costs, NULL);
    PAIRS(TATCELL_ERR_OPTION, , &b, &k.limit, costs, &b);
    PAIRS(TATCELL_ERR_OPTION, b.flags = 2, &b, &k.limit, costs, NULL);
    PAIRS(TATCELL_ERR_OPTION, (b.decisions = each, b.decision_size = sizeof *each), &b, &k.limit, costs, NULL);
    const tatcell_limit_t *const limits[4] = {&k.limit, &k.limit, &k.limit, &k.limit};
    PAIRS(TATCELL_ERR_OPTION, (b.limits = limits, b.limit = NULL), &b, &k.limit, costs, NULL);
    PAIRS(TATCELL_ERR_COUNT, b.count = 65, &b, &k.limit, costs, NULL);
    PAIRS(TATCELL_ERR_SIZE, b.size = 0, &b, &k.limit, costs, NULL);
    next.count = 65;
    PAIRS(TATCELL_ERR_COUNT, , &b, &k.limit, costs, &next);
    PAIRS(TATCELL_ERR_OVERLAP, b.counters = (tatcell_counters_t *)(void *)b.scratch, &b, &k.limit, costs, NULL);
    PAIRS(TATCELL_ERR_OVERLAP, , &b, &k.limit, (const uint32_t *)(void *)b.scratch, NULL);
    EQ(tatcell_table_check_pairs(&k.table, &b, &k.limit, NULL, NULL), 0);
    EQ(b.pass, 15);
    b.count = 0;
    EQ(tatcell_table_check_pairs(&k.table, &b, NULL, NULL, NULL), 0);
    kit_free(&k);
    kit_free(&other);
}

int main(void) {
    RUN(both_limits_are_charged_or_none);
    RUN(cells_decide_alike_with_a_decision_without_and_prepared);
    RUN(links_have_permits_and_decisions_of_their_own);
    RUN(flags_are_those_of_the_link_that_decided);
    RUN(cells_of_both_widths_and_keys_mix);
    RUN(an_extra_is_charged_once_it_has_passed);
    RUN(a_reservation_departs_at_the_latest_of_its_links);
    RUN(bad_arguments_are_refused_and_change_nothing);
    RUN(pairs_take_costs_of_both_limits_and_keys_or_hashes);
    RUN(bad_pairs_are_refused_and_change_nothing);
    return check_end();
}
