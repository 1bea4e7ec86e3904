/* elastic.c - room, charges after the fact and counters of each link in chains, ladders and bursts; ladders with
 * overrides, over bursts of addresses; and every bad argument is refused. */
#include "kit.h"

#define OFF(p) ((void *)((uintptr_t)(p) + 1))
#define REFUSES(code, call) EQ(call, code)

static tatcell_limit_t limit;
static tatcell_cell_t cells[2];
static tatcell_link_t links[3];
static tatcell_decision_t each[64];
static tatcell_permit_t permits[64 * TATCELL_CHAIN_MAX];
static tatcell_counters_t whole, of_links[TATCELL_CHAIN_MAX];
static tatcell_chain_t chain;
static tatcell_decision_t d;

/* Two cells of one limit: one a second, 2 at once, 3 of room, 8 of debt. */
static void setup(void) {
    tatcell_limit_spec_t spec = kit_spec(1, 1000, 2);
    spec.max_room = 3, spec.max_debt = 8;
    EQ(tatcell_limit_init_spec(&limit, &spec), 0);
    memset(cells, 0, sizeof cells);
    memset(links, 0, sizeof links);
    memset(permits, 0, sizeof permits);
    memset(each, 0, sizeof each);
    memset(&whole, 0, sizeof whole);
    memset(of_links, 0, sizeof of_links);
    for (int i = 0; i < 2; i++) links[i].cell = &cells[i], links[i].limit = &limit, links[i].cost = 1;
    tatcell_chain_t c = TATCELL_CHAIN_INIT;
    c.links = links, c.link_size = sizeof *links, c.count = 2;
    c.decisions = each, c.decision_size = sizeof *each, c.permits = permits;
    c.counters = &whole, c.link_counters = of_links;
    chain = c;
    memset(&d, 0, sizeof d);
    d.size = sizeof d;
}

static uint64_t debt(int i) {
    tatcell_decision_t now = TATCELL_DECISION_INIT;
    return tatcell_cell_peek(&cells[i], &limit, 0, 0, &now) < 0 ? UINT64_MAX : now.reset_after;
}

TEST(a_link_has_room_as_a_single_call_has) {
    DO(setup());
    links[0].room = 9, links[1].room = 1; /* more than the limit's room is as much as that */
    for (int i = 0; i < 3; i++) EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EXPECT((each[1].flags & TATCELL_FLAG_ELASTIC) != 0);
    EQ(tatcell_chain_peek(&chain, 0, &d), TATCELL_NON_CONFORMING);
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_NON_CONFORMING);
    EQ(d.policy, 1);
    EQ(d.retry_after, 1000);
    EQ(debt(0), 3000);
    links[1].room = 2;
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EQ(tatcell_chain_refund(&chain, 0), 0);
    EQ(debt(0), 3000);
    links[0].room = 0;
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_NON_CONFORMING);
    EQ(d.policy, 0);
    REFUSES(TATCELL_ERR_OPTION, tatcell_chain_reserve(&chain, 0, &d));
    /* An older program: its links end before room. */
    tatcell_chain_t old = chain;
    unsigned char packed[2 * TATCELL_LINK_MIN];
    tatcell_link_t narrow[2];
    for (int i = 0; i < 2; i++) memcpy(packed + (size_t)i * TATCELL_LINK_MIN, &links[i], TATCELL_LINK_MIN);
    memcpy(narrow, packed, sizeof packed);
    old.links = narrow, old.link_size = TATCELL_LINK_MIN;
    EQ(tatcell_chain_check(&old, 2000, &d), TATCELL_PASS);
    EQ(tatcell_chain_check(&old, 2000, &d), TATCELL_NON_CONFORMING);
}

TEST(a_charge_takes_every_link_whatever_it_says) {
    DO(setup());
    links[0].cost = 5, links[1].cost = 50;
    EQ(tatcell_chain_charge(&chain, 0, &d), TATCELL_PASS);
    EQ(debt(0), 5000);
    EQ(debt(1), 10000); /* the burst and max_debt */
    EQ(each[0].units, 5);
    EQ(each[1].units, 10);
    EQ(whole.conforming, 1);
    EQ(of_links[0].conforming, 1);
    EQ(tatcell_chain_charge(&chain, 0, NULL), TATCELL_PASS);
    EQ(debt(0), 10000);
    links[0].cost = links[1].cost = 0;
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_NON_CONFORMING); /* in debt */
    EQ(of_links[0].non_conforming, 1);
    EQ(tatcell_chain_charge(&chain, 0, OFF(&d)), TATCELL_ERR_ALIGN);
    EQ(tatcell_chain_charge(NULL, 0, &d), TATCELL_ERR_NULL);
}

/* A table of one set, which 16 keys fill: key 1 owes one unit, the others owe eight. */
static void fill(kit_table *t, uint32_t policy) {
    tatcell_limit_spec_t spec = kit_spec(1, 1000, 8);
    spec.max_debt = 2, spec.max_delay = 2000;
    tatcell_table_options_t o = kit_options(&spec);
    o.policy = policy;
    EQ(kit_make(t, spec, 16, &o), 0);
    for (uint64_t i = 1; i <= 16; i++)
        EQ(tatcell_table_check_hash(&t->table, &t->limit, 0, i, i == 1 ? 1 : 8, NULL), TATCELL_PASS);
    links[0].cell = NULL, links[0].table = &t->table, links[0].limit = &t->limit, links[0].flags = TATCELL_LINK_HASH;
}

static uint64_t debt_of(const kit_table *t, uint64_t hash) {
    tatcell_decision_t state = TATCELL_DECISION_INIT;
    if (tatcell_table_peek_hash(&t->table, &t->limit, 0, hash, 0, &state) < 0) return UINT64_MAX;
    return state.reset_after;
}

TEST(a_charge_says_that_a_full_set_left_a_link_out) {
    static const struct { uint32_t policy; int32_t code; } each_policy[] = {
        {TATCELL_FULL_DENY, TATCELL_NON_CONFORMING}, {TATCELL_FULL_ADMIT, TATCELL_PASS}};
    for (int i = 0; i < 2; i++) {
        DO(setup());
        kit_table t;
        DO(fill(&t, each_policy[i].policy));
        int32_t code = each_policy[i].code;
        links[0].hash = 99, links[0].cost = 3, links[1].cost = 3;
        EQ(tatcell_chain_charge(&chain, 0, &d), code);
        EQ(each[0].units, 0);
        EQ(each[1].verdict, TATCELL_PASS);
        EQ(each[1].units, 3);
        EQ(debt(1), 3000);
        EQ(tatcell_table_charge_hash(&t.table, &t.limit, 0, 99, 3, &d), code);
        EQ(d.units, 0);
        const uint64_t hashes[] = {99, 1};
        tatcell_burst_t burst = TATCELL_BURST_INIT;
        burst.limit = &t.limit, burst.hashes = hashes, burst.count = 2;
        EQ(tatcell_table_charge_burst(&t.table, &burst, NULL), 0);
        EQ(burst.pass, code == TATCELL_PASS ? 3 : 2);
        EQ(debt_of(&t, 99), 0);
        EQ(debt_of(&t, 1), 2000);
        kit_free(&t);
    }
}

/* Key 1 owes the least of its set, so a new key would take its slot over. But it is a link of the same chain. */
TEST(charges_and_reservations_take_no_slot_of_their_own_chain) {
    for (uint64_t key = 99; key < 160; key++) {
        for (int form = 0; form < 3; form++) {
            DO(setup());
            kit_table t;
            DO(fill(&t, TATCELL_FULL_INHERIT));
            tatcell_link_t cell = links[1];
            links[0].hash = 1, links[0].cost = 1, links[1] = links[0], links[1].hash = key;
            if (form == 0) EQ(tatcell_chain_charge(&chain, 0, &d), TATCELL_PASS);
            if (form == 1) EQ(tatcell_chain_reserve(&chain, 0, &d), TATCELL_PASS);
            EQ(debt_of(&t, 1), form == 2 ? 1000 : 2000);
            /* Refused by a cell that is used up: nothing changes, not even a slot. */
            uint64_t before = debt_of(&t, key);
            links[2] = cell, links[2].cost = 1, chain.count = 3;
            EQ(tatcell_cell_charge(links[2].cell, links[2].limit, 0, 10, &d), TATCELL_PASS);
            EQ(tatcell_chain_reserve(&chain, 0, &d), TATCELL_NON_CONFORMING);
            EQ(debt_of(&t, 1), form == 2 ? 1000 : 2000);
            EQ(debt_of(&t, key), before);
            kit_free(&t);
        }
    }
}

TEST(each_link_counts_its_own_decision) {
    DO(setup());
    links[1].cost = 2;
    EQ(tatcell_chain_check(&chain, 0, NULL), TATCELL_PASS);
    EQ(tatcell_chain_check(&chain, 0, NULL), TATCELL_NON_CONFORMING);
    EQ(whole.conforming, 1);
    EQ(whole.non_conforming, 1);
    EQ(of_links[0].conforming, 2); /* it would have passed */
    EQ(of_links[1].conforming, 1);
    EQ(of_links[1].non_conforming, 1);
    chain.counters = NULL;
    EQ(tatcell_chain_check(&chain, 0, NULL), TATCELL_NON_CONFORMING);
    EQ(of_links[1].non_conforming, 2);
    EQ(tatcell_chain_peek(&chain, 0, &d), TATCELL_NON_CONFORMING);
    EQ(of_links[1].non_conforming, 2);
    chain.reserved_pointer = &d;
    REFUSES(TATCELL_ERR_OPTION, tatcell_chain_check(&chain, 0, &d));
    chain.reserved_pointer = NULL;
    chain.link_counters = OFF(of_links);
    REFUSES(TATCELL_ERR_ALIGN, tatcell_chain_check(&chain, 0, &d));
    chain.link_counters = (tatcell_counters_t *)(void *)permits;
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_chain_check(&chain, 0, &d));
    chain.link_counters = of_links, chain.counters = &of_links[1];
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_chain_check(&chain, 0, &d));
    EQ(of_links[1].non_conforming, 2);
}

/* Two tables: one for bursts, one for the same single calls. */
TEST(bursts_with_room_and_charged_bursts_are_single_calls) {
    static kit_table a, b;
    tatcell_limit_spec_t spec = kit_spec(1, SECOND, 2);
    spec.max_room = 3, spec.max_debt = 20;
    EQ(kit_make(&a, spec, 4096, NULL), 0);
    EQ(kit_make(&b, spec, 4096, NULL), 0);
    static uint32_t keys[2][64], costs[64], rooms[64];
    tatcell_counters_t counted, single;
    memset(&counted, 0, sizeof counted), memset(&single, 0, sizeof single);
    uint32_t seed = 1;
    int elastic = 0, refused = 0;
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 64; i++) {
            seed = seed * 1664525 + 1013904223;
            keys[0][i] = seed >> 29, keys[1][i] = keys[0][i] + 8, costs[i] = seed >> 20 & 3, rooms[i] = seed >> 16 & 7;
        }
        uint64_t now = (uint64_t)round * 20 * SECOND;
        tatcell_burst_t burst = kit_burst(&a.limit, now, keys[0], 4, 4, 64), next = burst;
        burst.costs = costs, burst.decisions = each, burst.decision_size = sizeof *each, burst.counters = &counted;
        next.keys = keys[1];
        int charges = round % 3 == 2;
        if (charges) EQ(tatcell_table_charge_burst(&a.table, &burst, round & 1 ? &next : NULL), 0);
        else EQ(tatcell_table_check_burst_room(&a.table, &burst, rooms, round & 1 ? &next : NULL), 0);
        EXPECT(!(round & 1) || next.prepared != 0);
        for (int i = 0; i < 64; i++) {
            NOTE("round %d, request %d", round, i);
            d.size = sizeof d;
            const uint32_t *key = &keys[0][i];
            int32_t rc = charges
                ? tatcell_table_charge_ex(&b.table, &b.limit, now, key, 4, costs[i], &d, &single)
                : tatcell_table_check_ex(&b.table, &b.limit, now, key, 4, costs[i], rooms[i], &d, &single);
            EQ(burst.pass >> i & 1, rc == TATCELL_PASS);
            each[i].size = sizeof d;
            EQ(memcmp(&each[i], &d, sizeof d), 0);
            elastic += (d.flags & TATCELL_FLAG_ELASTIC) != 0, refused += rc != TATCELL_PASS;
        }
        EQ(memcmp(&counted, &single, sizeof single), 0);
    }
    EXPECT(elastic > 100 && refused > 100);
    tatcell_burst_t burst = kit_burst(&a.limit, 0, keys[0], 4, 4, 64);
    REFUSES(TATCELL_ERR_ALIGN, tatcell_table_check_burst_room(&a.table, &burst, OFF(rooms), NULL));
    REFUSES(TATCELL_ERR_OVERLAP,
        tatcell_table_check_burst_room(&a.table, &burst, (const uint32_t *)(void *)burst.scratch, NULL));
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_charge_burst(&a.table, &burst, &burst));
    REFUSES(TATCELL_ERR_NULL, tatcell_table_charge_burst(&a.table, NULL, NULL));
    EQ(tatcell_table_check_burst_room(&a.table, &burst, NULL, NULL), 0);
    burst.limit = &limit;
    REFUSES(TATCELL_ERR_LIMIT, tatcell_table_charge_burst(&a.table, &burst, NULL));
    burst.count = 65, burst.limit = &a.limit;
    REFUSES(TATCELL_ERR_COUNT, tatcell_table_charge_burst(&a.table, &burst, NULL));
    kit_free(&a);
    kit_free(&b);
}

static tatcell_table_t tables[2], bans;
static tatcell_ladder_t ladders[2];
static void *memories[3];

static void ladder_setup(void) {
    tatcell_limit_spec_t one = kit_spec(10, 1000, 3), fastest = one, slowest = one;
    one.max_room = 2, one.max_debt = 30;
    EQ(tatcell_ladder_table_specs(&one, NULL, &fastest, &slowest), 0);
    size_t bytes = tatcell_table_bytes(4096);
    for (int i = 0; i < 3; i++) memories[i] = kit_memory(bytes);
    tatcell_table_options_t o = kit_options(&fastest), of_bans = TATCELL_TABLE_OPTIONS_INIT;
    o.slowest = &slowest;
    for (int i = 0; i < 2; i++) {
        EQ(tatcell_table_init(&tables[i], memories[i], bytes, &o), 0);
        EQ(tatcell_ladder_init(&ladders[i], &tables[i], &one, NULL), 0);
    }
    of_bans.overrides = 86400000, of_bans.seed = kit_seed;
    EQ(tatcell_table_init(&bans, memories[2], bytes, &of_bans), 0);
    memset(permits, 0, sizeof permits);
    memset(of_links, 0, sizeof of_links);
    memset(&whole, 0, sizeof whole);
}

static void ladder_free(void) {
    for (int i = 0; i < 3; i++) free(memories[i]);
}

TEST(a_burst_of_addresses_is_single_calls_with_overrides) {
    DO(ladder_setup());
    static const uint8_t v4_bits[] = {32, 24}, network[4] = {198, 51, 100, 0}, friend[4] = {192, 0, 2, 9};
    tatcell_prefix_lengths_t lengths = TATCELL_PREFIX_LENGTHS_INIT;
    lengths.v4 = v4_bits, lengths.v4_count = 2;
    TATCELL_IGNORE(tatcell_table_ban_address(&bans, 0, network, 4, 24, 64, 60000));
    TATCELL_IGNORE(tatcell_table_exempt_address(&bans, 0, friend, 4, 32, 128, 60000));
    static uint8_t addresses[64][16];
    static uint32_t costs[64];
    size_t lens[64];
    tatcell_counters_t single;
    memset(&single, 0, sizeof single);
    uint32_t seed = 7;
    int seen[4] = {0, 0, 0, 0};
    for (int round = 0; round < 40; round++) {
        uint64_t now = (uint64_t)round * 100;
        for (int i = 0; i < 64; i++) {
            static const uint8_t forms[4][16] = {{192, 0, 2}, {198, 51, 100}, {[10] = 0xff, [11] = 0xff, 192, 0, 2},
                {0x20, 1, 0xd, 0xb8}};
            seed = seed * 1664525 + 1013904223;
            int form = (int)(seed >> 30);
            memcpy(addresses[i], forms[form], 16);
            lens[i] = form < 2 ? 4 : 16, costs[i] = seed >> 20 & 3;
            addresses[i][lens[i] - 1] = (uint8_t)(seed >> 26 & 15);
        }
        tatcell_ladder_burst_t burst = TATCELL_LADDER_BURST_INIT;
        burst.now = now, burst.count = 64, burst.addresses = addresses, burst.stride = 16, burst.address_lens = lens;
        burst.costs = costs, burst.overrides = &bans, burst.lengths = &lengths;
        burst.decisions = each, burst.decision_size = sizeof *each, burst.permits = permits;
        burst.counters = &whole, burst.tier_counters = of_links;
        uint64_t pass = 0;
        int charges = round % 4 == 3;
        if (charges) EQ(tatcell_ladder_charge_burst(&ladders[0], &tables[0], &burst, &pass), 0);
        else EQ(tatcell_ladder_check_burst(&ladders[0], &tables[0], &burst, &pass), 0);
        for (int i = 0; i < 64; i++) {
            NOTE("round %d, request %d", round, i);
            uint32_t kind;
            uint64_t left;
            EQ(tatcell_table_overridden_address(&bans, now, addresses[i], lens[i], &lengths, &kind, &left, NULL), 0);
            d.size = sizeof d;
            const uint64_t bit = pass >> i & 1;
            if (kind == TATCELL_OVERRIDE_EXEMPT || (kind == TATCELL_OVERRIDE_BAN && !charges)) {
                EQ(bit, kind == TATCELL_OVERRIDE_EXEMPT);
                EQ(each[i].retry_after, bit ? 0 : left);
                EQ(each[i].flags, bit ? TATCELL_FLAG_EXEMPT : TATCELL_FLAG_BANNED);
                EQ(each[i].policy, TATCELL_CHAIN_MAX);
                EQ(each[i].units, 0);
                EQ(permits[i * (int)TATCELL_CHAIN_MAX].stored, 0);
                tatcell_rung_t rung;
                EQ(tatcell_ladder_rung(&ladders[0], addresses[i], lens[i], each[i].policy, &rung), TATCELL_END);
                seen[bit]++;
            } else if (charges) {
                EQ(bit, 1); /* charged below, by the only call of before that charges all: a check of each tier */
            } else {
                tatcell_permit_t own[TATCELL_CHAIN_MAX];
                int32_t rc = tatcell_ladder_check(&ladders[1], &tables[1], now, addresses[i], lens[i], costs[i], &d,
                    own, &single);
                EQ(bit, rc == TATCELL_PASS);
                each[i].size = sizeof d;
                EQ(memcmp(&each[i], &d, sizeof d), 0);
                EQ(memcmp(&permits[i * (int)TATCELL_CHAIN_MAX], own, sizeof own), 0);
                seen[2 + bit]++;
            }
        }
        if (charges) {
            /* The same charges one by one, so that both tables stay equal. */
            for (uint32_t i = 0; i < 64; i++) {
                burst.count = 1, burst.addresses = addresses[i], burst.address_lens = &lens[i], burst.costs = &costs[i];
                burst.decisions = NULL, burst.permits = NULL, burst.counters = &single, burst.tier_counters = NULL;
                EQ(tatcell_ladder_charge_burst(&ladders[1], &tables[1], &burst, &pass), 0);
                EQ(pass, 1);
            }
        } else {
            EQ(memcmp(memories[0], memories[1], tatcell_table_bytes(4096)), 0);
        }
    }
    EXPECT(seen[0] > 20 && seen[1] > 20 && seen[2] > 20 && seen[3] > 20);
    EXPECT(of_links[0].conforming > 100 && of_links[7].conforming == 0);
    DO(ladder_free());
}

TEST(a_tier_has_its_share_of_the_room) {
    DO(ladder_setup());
    uint8_t address[16] = {0x20, 1, 0xd, 0xb8};
    static const uint32_t room[3] = {0, 1, 2};
    tatcell_ladder_burst_t ask = TATCELL_LADDER_BURST_INIT;
    ask.count = 1, ask.addresses = address, ask.address_len = 16;
    int passed[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        ask.rooms = &room[i];
        for (int host = 0; host < 30; host++) {
            uint64_t pass = 0;
            address[15]++;
            EQ(tatcell_ladder_check_burst(&ladders[0], &tables[0], &ask, &pass), 0);
            passed[i] += (int)pass;
        }
    }
    EQ(passed[0], 6); /* a /64: twice the limit of an address, and twice its room */
    EQ(passed[1], 2);
    EQ(passed[2], 2);
    DO(ladder_free());
}

#define LADDER(error, change) do { \
    tatcell_ladder_burst_t b = good; \
    change; \
    REFUSES(error, tatcell_ladder_check_burst(&ladders[0], &tables[0], &b, &pass)); \
    REFUSES(error, tatcell_ladder_charge_burst(&ladders[0], &tables[0], &b, &pass)); \
    } while (0)

TEST(bad_bursts_of_addresses_are_refused_and_charge_nobody) {
    DO(ladder_setup());
    static const uint8_t addresses[2][4] = {{192, 0, 2, 1}, {192, 0, 2, 2}}, long_bits[] = {129};
    static const void *const pointers[2] = {addresses[0], addresses[1]};
    static const size_t lens[2] = {4, 5};
    static const uint32_t units[2] = {1, 1};
    uint64_t pass = 9;
    tatcell_prefix_lengths_t lengths = TATCELL_PREFIX_LENGTHS_INIT;
    tatcell_ladder_burst_t good = TATCELL_LADDER_BURST_INIT;
    good.count = 2, good.addresses = addresses, good.stride = 4, good.address_len = 4;
    LADDER(TATCELL_ERR_SIZE, b.size = 0);
    LADDER(TATCELL_ERR_OPTION, b.flags = 1);
    LADDER(TATCELL_ERR_OPTION, b.address_pointers = pointers);
    LADDER(TATCELL_ERR_NULL, b.addresses = NULL);
    LADDER(TATCELL_ERR_COUNT, b.count = 65);
    LADDER(TATCELL_ERR_ADDRESS, b.address_len = 8);
    LADDER(TATCELL_ERR_ADDRESS, b.address_lens = lens);
    LADDER(TATCELL_ERR_SIZE, b.decisions = each);
    LADDER(TATCELL_ERR_ALIGN, (b.costs = OFF(units)));
    LADDER(TATCELL_ERR_ALIGN, (b.rooms = OFF(units)));
    LADDER(TATCELL_ERR_ALIGN, (b.permits = OFF(permits)));
    LADDER(TATCELL_ERR_ALIGN, (b.counters = OFF(&whole)));
    LADDER(TATCELL_ERR_ALIGN, (b.tier_counters = OFF(of_links)));
    LADDER(TATCELL_ERR_ALGORITHM, b.overrides = &tables[1]);
    lengths.v6 = long_bits, lengths.v6_count = 1;
    LADDER(TATCELL_ERR_PREFIX, (b.overrides = &bans, b.lengths = &lengths));
    LADDER(TATCELL_ERR_OVERLAP, b.permits = (tatcell_permit_t *)(void *)&b);
    LADDER(TATCELL_ERR_OVERLAP, b.permits = (tatcell_permit_t *)(void *)&ladders[0]);
    LADDER(TATCELL_ERR_OVERLAP, b.counters = (tatcell_counters_t *)(void *)&tables[0]);
    LADDER(TATCELL_ERR_OVERLAP, (b.overrides = &bans, b.counters = (tatcell_counters_t *)(void *)&bans));
    LADDER(TATCELL_ERR_OVERLAP, (b.counters = &of_links[3], b.tier_counters = of_links));
    LADDER(TATCELL_ERR_OVERLAP, (b.costs = (const uint32_t *)(void *)&whole, b.counters = &whole));
    REFUSES(TATCELL_ERR_OVERLAP, (good.counters = (tatcell_counters_t *)(void *)of_links,
        tatcell_ladder_check_burst(&ladders[0], &tables[0], &good, &of_links[0].soft)));
    good.counters = NULL;
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_check_burst(&ladders[0], &tables[0], &good, NULL));
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_check_burst(&ladders[0], &tables[0], NULL, &pass));
    REFUSES(TATCELL_ERR_NULL, tatcell_ladder_check_burst(NULL, &tables[0], &good, &pass));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_ladder_check_burst(&ladders[0], (tatcell_table_t *)(void *)each, &good, &pass));
    EQ(pass, 9);
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    EQ(tatcell_table_stats(&tables[0], 0, &stats), 0);
    EQ(stats.live, 0);
    tatcell_ladder_burst_t empty = TATCELL_LADDER_BURST_INIT;
    EQ(tatcell_ladder_check_burst(&ladders[0], &tables[0], &empty, &pass), 0);
    EQ(pass, 0);
    good.addresses = NULL, good.address_pointers = pointers;
    EQ(tatcell_ladder_check_burst(&ladders[0], &tables[0], &good, &pass), 0);
    EQ(pass, 3);
    DO(ladder_free());
}

int main(void) {
    RUN(a_link_has_room_as_a_single_call_has);
    RUN(a_charge_takes_every_link_whatever_it_says);
    RUN(a_charge_says_that_a_full_set_left_a_link_out);
    RUN(charges_and_reservations_take_no_slot_of_their_own_chain);
    RUN(each_link_counts_its_own_decision);
    RUN(bursts_with_room_and_charged_bursts_are_single_calls);
    RUN(a_burst_of_addresses_is_single_calls_with_overrides);
    RUN(a_tier_has_its_share_of_the_room);
    RUN(bad_bursts_of_addresses_are_refused_and_charge_nobody);
    return check_end();
}
