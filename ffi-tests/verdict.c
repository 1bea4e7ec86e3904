/* verdict.c - the calls that return only the verdict of plain chains and ladders: what the checks say, also behind
 * overrides, and an error for all that is not plain. */
#include "kit.h"

enum { KEYS = 24 };
static kit_table a, b; /* the same limits and keys; one is asked by check, the other by verdict */
static tatcell_table_t bans;
static tatcell_ladder_t ladder_a, ladder_b;
static tatcell_cell_t cells[2][3];
static tatcell_limit_t limit;
TATCELL_ALIGNED(64) static unsigned char memory[TATCELL_TABLE_BYTES(256)];

static void table(kit_table *k, tatcell_ladder_t *ladder) {
    tatcell_limit_spec_t one = kit_spec(1, 1000, 4), fastest = one, slowest = one;
    EQ(tatcell_ladder_table_specs(&one, NULL, &fastest, &slowest), 0);
    k->bytes = tatcell_table_bytes(1024), k->memory = kit_memory(k->bytes);
    tatcell_table_options_t o = kit_options(&fastest);
    o.slowest = &slowest;
    EQ(tatcell_table_init(&k->table, k->memory, k->bytes, &o), 0);
    EQ(tatcell_limit_init_table(&k->limit, &k->table, &one), 0);
    EQ(tatcell_ladder_init(ladder, &k->table, &one, NULL), 0);
}

static void setup(void) {
    DO(table(&a, &ladder_a));
    DO(table(&b, &ladder_b));
    EQ(tatcell_limit_init(&limit, 1, 1000, 4), 0);
    memset(cells, 0, sizeof cells);
    tatcell_table_options_t o = TATCELL_TABLE_OPTIONS_INIT;
    o.seed = kit_seed, o.overrides = 1 << 30;
    EQ(tatcell_table_init(&bans, memory, sizeof memory, &o), 0);
}

/* Asks as a program of a later release, whose structures have one field more. */
static int32_t later_verdict(const tatcell_chain_t *chain, uint64_t now, uint64_t of_chain, uint64_t of_link) {
    struct {
        tatcell_chain_t known;
        uint64_t more;
    } later = {*chain, of_chain};
    struct {
        tatcell_link_t known;
        uint64_t more;
    } links[8];
    for (uint32_t i = 0; i < chain->count; i++)
        links[i].known = chain->links[i], links[i].more = i + 1 == chain->count ? of_link : 0;
    later.known.size = sizeof later, later.known.link_size = sizeof *links, later.known.links = &links[0].known;
    return tatcell_chain_verdict(&later.known, now);
}

static void done(void) {
    kit_free(&a), kit_free(&b);
}

TEST(a_verdict_is_that_of_the_check) {
    DO(setup());
    unsigned long long random = 7;
    uint64_t now = 1 << 20;
    int codes[2] = {0, 0}, decided = 0;
    for (int round = 0; round < 20000; round++) {
        NOTE("round %d", round);
        now += check_random(&random) % 512;
        uint64_t keys[8];
        tatcell_link_t links[2][8];
        const uint32_t count = 1 + (uint32_t)(check_random(&random) % 4);
        for (uint32_t i = 0; i < count; i++) {
            tatcell_link_t link = TATCELL_LINK_INIT;
            keys[i] = i * KEYS + check_random(&random) % KEYS;
            link.cost = 1 + check_random(&random) % 3;
            link.key = &keys[i], link.key_len = sizeof *keys;
            const int kind = (int)(check_random(&random) % 4);
            for (int side = 0; side < 2; side++) {
                links[side][i] = link;
                tatcell_link_t *l = &links[side][i];
                if (kind == 0 && i < 3) {
                    l->cell = &cells[side][i], l->limit = &limit, l->key = NULL, l->key_len = 0;
                } else if (kind == 1) {
                    l->table = &bans, l->flags = TATCELL_LINK_OVERRIDES, l->cost = 0;
                } else {
                    kit_table *k = side ? &b : &a;
                    l->table = &k->table, l->limit = &k->limit;
                }
            }
        }
        /* Nothing is overridden in the first half. */
        if (round > 10000 && check_random(&random) % 8 == 0) {
            const uint64_t key = check_random(&random) % (4 * KEYS), until = now + 1 + check_random(&random) % 131072;
            const int ban = check_random(&random) % 2 == 0;
            EQ((ban ? tatcell_table_ban : tatcell_table_exempt)(&bans, now, &key, sizeof key, until), 0);
        }
        tatcell_chain_t chain = TATCELL_CHAIN_INIT;
        chain.count = count, chain.link_size = sizeof **links, chain.links = links[0];
        tatcell_decision_t d = TATCELL_DECISION_INIT;
        const int32_t want = tatcell_chain_check(&chain, now, round % 2 ? &d : NULL);
        chain.links = links[1];
        EQ(round % 4 ? tatcell_chain_verdict(&chain, now) : later_verdict(&chain, now, 0, 0), want);
        EXPECT(want == TATCELL_PASS || want == TATCELL_NON_CONFORMING);
        codes[want]++;
        decided += round % 2 && d.flags != 0;
    }
    EXPECT(codes[0] > 2000 && codes[1] > 2000 && decided > 300);
    done();
}

TEST(a_verdict_of_an_address_is_that_of_a_burst_of_one) {
    DO(setup());
    static const uint8_t v4[] = {32, 24}, v6[] = {48, 128, 64};
    tatcell_prefix_lengths_t lengths = TATCELL_PREFIX_LENGTHS_INIT;
    lengths.v4 = v4, lengths.v4_count = 2, lengths.v6 = v6, lengths.v6_count = 3;
    unsigned long long random = 9;
    uint64_t now = 1 << 20;
    int codes[2] = {0, 0}, overridden = 0;
    for (int round = 0; round < 20000; round++) {
        NOTE("round %d", round);
        now += check_random(&random) % 256;
        uint8_t address[16] = {0x20, 1, 0xd, 0xb8, [7] = check_random(&random) % 4, [15] = check_random(&random) % 4};
        const size_t length = round % 3 ? 16 : 4;
        if (length == 4) address[3] = address[15];
        if (round > 10000 && check_random(&random) % 16 == 0) {
            const uint64_t until = now + 1 + check_random(&random) % 4096;
            const uint32_t bits = length == 4 ? 32 : v6[check_random(&random) % 3];
            const int ban = check_random(&random) % 2 == 0;
            EQ((ban ? tatcell_table_ban_address : tatcell_table_exempt_address)(
                   &bans, now, address, length, bits < 33 ? bits : 32, bits, until), 0);
        }
        const uint32_t cost = 1 + (uint32_t)(check_random(&random) % 3);
        tatcell_decision_t d = TATCELL_DECISION_INIT;
        tatcell_ladder_burst_t burst = TATCELL_LADDER_BURST_INIT;
        burst.now = now, burst.count = 1, burst.addresses = address, burst.address_len = length, burst.costs = &cost;
        burst.overrides = &bans, burst.lengths = &lengths, burst.decisions = &d, burst.decision_size = sizeof d;
        uint64_t pass;
        EQ(tatcell_ladder_check_burst(&ladder_a, &a.table, &burst, &pass), 0);
        EQ(tatcell_ladder_verdict(&ladder_b, &b.table, &bans, &lengths, now, address, length, cost),
           pass ? TATCELL_PASS : TATCELL_NON_CONFORMING);
        codes[pass]++;
        overridden += (d.flags & (TATCELL_FLAG_BANNED | TATCELL_FLAG_EXEMPT)) != 0;
    }
    EXPECT(codes[0] > 2000 && codes[1] > 2000 && overridden > 300);
    /* Without overrides it is the check. */
    static const uint8_t other[4] = {192, 0, 2, 1};
    for (int i = 0; i < 6; i++)
        EQ(tatcell_ladder_verdict(&ladder_b, &b.table, NULL, NULL, now, other, 4, 1),
           tatcell_ladder_check(&ladder_a, &a.table, now, other, 4, 1, NULL, NULL, NULL));
    done();
}

TEST(what_is_not_plain_is_an_error_and_charges_nothing) {
    DO(setup());
    tatcell_cell32_t cell32 = TATCELL_CELL32_INIT;
    tatcell_limit_t limit32, penalty, foreign = a.limit;
    EQ(tatcell_limit32_init(&limit32, 1, 1000, 4), 0);
    tatcell_limit_spec_t spec = kit_spec(1, 1000, 4);
    spec.penalty = 1;
    EQ(tatcell_limit_init_spec(&penalty, &spec), 0);
    tatcell_link_t links[2] = {TATCELL_LINK_INIT, TATCELL_LINK_INIT};
    const tatcell_link_t fresh = links[0];
    tatcell_link_t *l = &links[1];
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    chain.links = links, chain.link_size = sizeof *links, chain.count = 2;
#define VERDICT(want, ...) \
    do { \
        links[0].cell = &cells[0][0], links[0].limit = &limit, links[0].cost = 1; \
        *l = fresh, l->table = &b.table, l->limit = &b.limit, l->key = "k", l->key_len = 1, l->cost = 1; \
        __VA_ARGS__; \
        EQ(tatcell_chain_verdict(&chain, 0), want); \
        EQ(cells[0][0].word, 0); \
    } while (0)
    VERDICT(TATCELL_ERR_NOT_PLAIN, l->cost = 0);
    VERDICT(TATCELL_ERR_NOT_PLAIN, l->cost = 5);
    VERDICT(TATCELL_ERR_NOT_PLAIN, l->extra = 1);
    VERDICT(TATCELL_ERR_NOT_PLAIN, l->room = 1);
    VERDICT(TATCELL_ERR_NOT_PLAIN, *l = links[0]);
    VERDICT(TATCELL_ERR_NOT_PLAIN, *l = fresh, l->cell32 = &cell32, l->limit = &limit32, l->cost = 1);
    VERDICT(TATCELL_ERR_NOT_PLAIN, *l = fresh, l->cell = &cells[0][1], l->limit = &penalty, l->cost = 1);
    VERDICT(TATCELL_ERR_FOREIGN, l->table = &bans, l->limit = &foreign);
    VERDICT(TATCELL_ERR_OPTION, l->table = &bans, l->flags = TATCELL_LINK_OVERRIDES);
    VERDICT(TATCELL_ERR_ALGORITHM, l->flags = TATCELL_LINK_OVERRIDES, l->limit = NULL);
    VERDICT(TATCELL_ERR_NOT_PLAIN, l->table = &bans, l->limit = NULL, l->flags = TATCELL_LINK_OVERRIDES, l->room = 1);
    VERDICT(TATCELL_ERR_OPTION, l->flags = 4);
    VERDICT(TATCELL_ERR_OPTION, l->cell = &cells[0][1]);
    VERDICT(TATCELL_ERR_NULL, l->table = NULL);
    VERDICT(TATCELL_ERR_NULL, l->key = NULL);
    tatcell_permit_t permits[2];
    tatcell_counters_t counters;
    VERDICT(TATCELL_ERR_OPTION, chain.permits = permits);
    VERDICT(TATCELL_ERR_OPTION, chain.permits = NULL, chain.counters = &counters);
    VERDICT(TATCELL_ERR_OPTION, chain.counters = NULL, chain.flags = 1);
    VERDICT(TATCELL_ERR_LINKS, chain.flags = 0, chain.count = 0);
    VERDICT(TATCELL_ERR_LINKS, chain.count = 9);
    VERDICT(TATCELL_ERR_SIZE, chain.count = 2, chain.link_size = TATCELL_LINK_MIN - 8);
    VERDICT(TATCELL_ERR_SIZE, chain.link_size = sizeof *links + 4);
    VERDICT(TATCELL_ERR_SIZE, chain.link_size = sizeof *links, chain.size = TATCELL_CHAIN_MIN - 8);
    chain.size = sizeof chain;
    /* A later release brings a field that this one does not know. */
    l->cost = 0;
    EQ(later_verdict(&chain, 0, 0, 0), TATCELL_ERR_NOT_PLAIN);
    l->cost = 1;
    EQ(later_verdict(&chain, 0, 1, 0), TATCELL_ERR_OPTION);
    EQ(later_verdict(&chain, 0, 0, 1), TATCELL_ERR_OPTION);
    EQ(cells[0][0].word, 0);
    EQ(tatcell_chain_verdict(NULL, 0), TATCELL_ERR_NULL);
    static const uint8_t address[4] = {192, 0, 2, 1}, v4[] = {33};
    tatcell_prefix_lengths_t lengths = TATCELL_PREFIX_LENGTHS_INIT;
    lengths.v4 = v4, lengths.v4_count = 1;
#define LADDER(ladder, table, overrides, lengths, length, cost) \
    tatcell_ladder_verdict(ladder, table, overrides, lengths, 0, address, length, cost)
    EQ(LADDER(&ladder_a, &a.table, NULL, NULL, 4, 0), TATCELL_ERR_NOT_PLAIN);
    EQ(LADDER(&ladder_a, &a.table, NULL, NULL, 4, 5), TATCELL_ERR_NOT_PLAIN);
    EQ(LADDER(&ladder_a, &bans, NULL, NULL, 4, 1), TATCELL_ERR_FOREIGN);
    EQ(LADDER(&ladder_a, &a.table, &b.table, NULL, 4, 1), TATCELL_ERR_ALGORITHM);
    EQ(LADDER(&ladder_a, &a.table, &bans, &lengths, 4, 1), TATCELL_ERR_PREFIX);
    EQ(LADDER(&ladder_a, &a.table, NULL, NULL, 5, 1), TATCELL_ERR_ADDRESS);
    EQ(LADDER(NULL, &a.table, NULL, NULL, 4, 1), TATCELL_ERR_NULL);
    tatcell_ladder_t shadow;
    spec.penalty = 0, spec.flags = TATCELL_LIMIT_SHADOW;
    EQ(tatcell_ladder_init(&shadow, &a.table, &spec, NULL), 0);
    EQ(LADDER(&shadow, &a.table, NULL, NULL, 4, 1), TATCELL_ERR_NOT_PLAIN);
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    EQ(tatcell_ladder_peek(&ladder_a, &a.table, 0, address, 4, 4, &d), TATCELL_PASS);
    EQ(d.remaining, 4);
    done();
}

/* A program of an earlier release, whose structures end before the fields that were added since. */
TEST(the_smallest_structures_are_decided_alike) {
    DO(setup());
    unsigned char packed[2 * TATCELL_LINK_MIN];
    for (size_t i = 0; i < 2; i++) {
        tatcell_link_t link = TATCELL_LINK_INIT;
        link.cell = &cells[0][i], link.limit = &limit, link.cost = 1;
        memcpy(packed + i * TATCELL_LINK_MIN, &link, TATCELL_LINK_MIN);
    }
    tatcell_link_t narrow[2];
    memcpy(narrow, packed, sizeof packed);
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    chain.links = narrow, chain.count = 2, chain.link_size = TATCELL_LINK_MIN, chain.size = TATCELL_CHAIN_MIN;
    unsigned char *const memory_of_chain = kit_memory(TATCELL_CHAIN_MIN);
    memcpy(memory_of_chain, &chain, TATCELL_CHAIN_MIN);
    const tatcell_chain_t *const small = (const tatcell_chain_t *)(const void *)memory_of_chain;
    for (int i = 0; i < 4; i++) EQ(tatcell_chain_verdict(small, 0), TATCELL_PASS);
    EQ(tatcell_chain_verdict(small, 0), TATCELL_NON_CONFORMING);
    EXPECT(cells[0][0].word != 0 && cells[0][0].word == cells[0][1].word);
    free(memory_of_chain);
    done();
}

int main(void) {
    RUN(a_verdict_is_that_of_the_check);
    RUN(a_verdict_of_an_address_is_that_of_a_burst_of_one);
    RUN(what_is_not_plain_is_an_error_and_charges_nothing);
    RUN(the_smallest_structures_are_decided_alike);
    return check_end();
}
