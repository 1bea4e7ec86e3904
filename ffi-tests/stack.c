/* stack.c - how much stack chains and ladders take. Each call runs on a stack of its own that was painted before, and
 * the lowest byte that changed is as deep as it went. On x86-64 with glibc, without a sanitizer. */
#include "kit.h"

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MEASURES 1
#include <ucontext.h>

/* The most that a plain chain takes, a prepared one, and a ladder; a chain that asks overrides, and a ladder; a chain
   that inserts keys, and a ladder; one that gives back what it charged; a ladder with its decision; a chain with its
   decision, or whose links are not plain; a ladder that is made, whose tiers are named, or that counts; a burst of
   addresses, of plain limits and of others; a verdict of a chain of another size, and one that gives back what it
   charged. */
enum { MOST_CHAIN = 512, MOST_PREPARED = 576, MOST_LADDER = 800, MOST_ASKED = 1280, MOST_LADDER_ASKED = 1344 };
enum { MOST_INSERT = 896, MOST_INSERTS = 1280, MOST_UNDO = 1664, MOST_TOLD = 1792, MOST_LONG = 4096 };
enum { MOST_MADE = 2304, MOST_NAMED = 512, MOST_COUNTED = 4864, MOST_BURST = 7680, MOST_BURST_LONG = 9216 };
enum { MOST_LATER = 1792, MOST_LATER_UNDO = 2816 };
enum { DEEPEST = 1 << 16, PAINT = 0xa5 };
static unsigned char stack[DEEPEST] __attribute__((aligned(64)));
static ucontext_t here, there;

static kit_table k, full, bans;
static tatcell_ladder_t ladder;
static uint8_t keys[8][16], address[16];
static tatcell_link_t links[8];
static tatcell_chain_t chain;
static tatcell_prepared_chain_t prepared;
static tatcell_chain_key_t given[8];
static tatcell_decision_t d, *out;
static uint64_t now = SECOND;
static int32_t rc;

static __attribute__((noinline)) int32_t nothing(const void *a, uint64_t b, const void *c) {
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c) : "memory");
    return 0;
}

static void call_nothing(void) { rc = nothing(&chain, now, out); }
static void chain_check(void) { rc = tatcell_chain_check(&chain, now, out); }
static void chain_verdict(void) { rc = tatcell_chain_verdict(&chain, now); }
/* As a program of a later release, whose links have one field more. */
static struct {
    tatcell_link_t known;
    uint64_t more;
} later[8];
static tatcell_chain_t of_later;
static void later_verdict(void) { rc = tatcell_chain_verdict(&of_later, now); }
static void ladder_check(void) {
    rc = tatcell_ladder_check(&ladder, &k.table, now, address, 16, 1, out, NULL, NULL);
}
static void ladder_verdict(void) {
    rc = tatcell_ladder_verdict(&ladder, &k.table, NULL, NULL, now, address, 16, 1);
}
static void ladder_asks(void) {
    rc = tatcell_ladder_verdict(&ladder, &k.table, &bans.table, NULL, now, address, 16, 1);
}
static tatcell_limit_spec_t one, fastest, slowest;
static tatcell_rung_t rung, eight[2][8];
static tatcell_ladder_spec_t rungs;
static tatcell_permit_t permits[TATCELL_CHAIN_MAX];
static tatcell_counters_t counters;
static void ladder_init(void) { rc = tatcell_ladder_init(&ladder, &k.table, &one, &rungs); }
static void ladder_table_specs(void) { rc = tatcell_ladder_table_specs(&one, &rungs, &fastest, &slowest); }
static void ladder_rung(void) { rc = tatcell_ladder_rung(&ladder, address, 16, 1, &rung); }
static void ladder_peek(void) { rc = tatcell_ladder_peek(&ladder, &k.table, now, address, 16, 1, &d); }
static void ladder_refund(void) { rc = tatcell_ladder_refund(&ladder, &k.table, now, address, 16, permits); }
static void ladder_counts(void) {
    rc = tatcell_ladder_check(&ladder, &k.table, now, address, 16, 1, &d, permits, &counters);
}
static tatcell_ladder_burst_t burst = TATCELL_LADDER_BURST_INIT;
static tatcell_decision_t decisions[64];
static uint64_t pass;
static void ladder_burst(void) { rc = tatcell_ladder_check_burst(&ladder, &k.table, &burst, &pass); }
static void ladder_charge(void) { rc = tatcell_ladder_charge_burst(&ladder, &k.table, &burst, &pass); }
static void prepared_check(void) { rc = tatcell_prepared_chain_check(&prepared, now, given, NULL, NULL); }

/* Returns the bytes of stack that a call took, its return address and that of its caller included. */
static size_t painted(void (*call)(void)) {
    memset(stack, PAINT, sizeof stack);
    getcontext(&there);
    there.uc_stack.ss_sp = stack, there.uc_stack.ss_size = sizeof stack, there.uc_link = &here;
    makecontext(&there, call, 0);
    swapcontext(&here, &there);
    size_t low = 0;
    while (low < sizeof stack && stack[low] == PAINT) low++;
    return sizeof stack - low;
}

/* Checks that a call returns `want` and takes at most `most` bytes. */
static void takes(const char *name, void (*call)(void), int32_t want, size_t most) {
    const size_t none = painted(call_nothing), bytes = painted(call) - none;
    printf("# %-36s %5d bytes of %d\n", name, (int)bytes, (int)most);
    NOTE("%s took %d bytes", name, (int)bytes);
    EQ(rc, want);
    EXPECT(bytes <= most);
}

/* Eight keys that no call has named yet. */
static void fresh(void) {
    static uint64_t next;
    address[0] = 0x20;
    for (int i = 0; i < 8; i++) next++, memcpy(keys[i], &next, sizeof next);
    memcpy(address + 4, &next, sizeof next);
}

static void setup(void) {
    one = fastest = slowest = kit_spec(1, SECOND, 4);
    EQ(tatcell_ladder_table_specs(&one, NULL, &fastest, &slowest), 0);
    k.bytes = tatcell_table_bytes(4096), k.memory = kit_memory(k.bytes);
    tatcell_table_options_t o = kit_options(&fastest);
    o.slowest = &slowest;
    EQ(tatcell_table_init(&k.table, k.memory, k.bytes, &o), 0);
    EQ(tatcell_limit_init_table(&k.limit, &k.table, &one), 0);
    EQ(tatcell_ladder_init(&ladder, &k.table, &one, NULL), 0);
    o = kit_options(&one), o.policy = TATCELL_FULL_DENY;
    full.bytes = tatcell_table_bytes(16), full.memory = kit_memory(full.bytes);
    EQ(tatcell_table_init(&full.table, full.memory, full.bytes, &o), 0);
    EQ(tatcell_limit_init_table(&full.limit, &full.table, &one), 0);
    tatcell_table_options_t of_bans = TATCELL_TABLE_OPTIONS_INIT;
    of_bans.seed = kit_seed, of_bans.overrides = 1000 * SECOND;
    bans.bytes = tatcell_table_bytes(64), bans.memory = kit_memory(bans.bytes);
    EQ(tatcell_table_init(&bans.table, bans.memory, bans.bytes, &of_bans), 0);
    EQ(tatcell_table_ban_address(&bans.table, now, "\12\0\0\1", 4, 32, 128, 900 * SECOND), 0);
    const tatcell_chain_t empty = TATCELL_CHAIN_INIT;
    const tatcell_decision_t untold = TATCELL_DECISION_INIT;
    chain = empty, chain.links = links, chain.link_size = sizeof *links, chain.count = 8, d = untold;
    for (int i = 0; i < 8; i++) {
        const tatcell_link_t link = TATCELL_LINK_INIT;
        links[i] = link, links[i].table = &k.table, links[i].limit = &k.limit, links[i].cost = 1;
        links[i].key = keys[i], links[i].key_len = 16;
        given[i].key = keys[i], given[i].key_len = 16;
    }
    EQ(tatcell_prepared_chain_init(&prepared, &chain), 0);
    /* What the dynamic linker does at a first call is none of the library's stack. */
    volatile size_t length = 64;
    unsigned char from[64] = {0}, to[64];
    memcpy(to, from, length), memset(to, 0, length);
    rc = to[0];
}

/* A call with keys that are absent, one that passes and one that refuses. */
static void ways(const char *name, void (*call)(void), size_t insert, size_t pass, size_t refuse) {
    char text[64];
    DO(fresh());
    snprintf(text, sizeof text, "%s, inserts", name);
    DO(takes(text, call, TATCELL_PASS, insert));
    snprintf(text, sizeof text, "%s, passes", name);
    DO(takes(text, call, TATCELL_PASS, pass));
    call(), call();
    snprintf(text, sizeof text, "%s, is refused", name);
    DO(takes(text, call, TATCELL_NON_CONFORMING, refuse));
}

TEST(plain_chains_and_ladders_take_little_stack) {
    out = NULL;
    DO(ways("chain", chain_check, MOST_INSERT, MOST_CHAIN, MOST_CHAIN));
    DO(ways("chain, verdict", chain_verdict, MOST_INSERT, MOST_CHAIN, MOST_CHAIN));
    DO(ways("chain, prepared", prepared_check, MOST_INSERT, MOST_PREPARED, MOST_PREPARED));
    DO(ways("ladder", ladder_check, MOST_INSERTS, MOST_LADDER, MOST_LADDER));
    DO(ways("ladder, verdict", ladder_verdict, MOST_INSERTS, MOST_LADDER, MOST_LADDER));
}

TEST(overrides_take_little_more) {
    out = NULL;
    DO(ways("ladder, asks overrides", ladder_asks, MOST_LADDER_ASKED, MOST_LADDER_ASKED, MOST_LADDER_ASKED));
    links[0].table = &bans.table, links[0].limit = NULL, links[0].flags = TATCELL_LINK_OVERRIDES;
    DO(ways("chain, asks overrides", chain_check, MOST_INSERTS, MOST_ASKED, MOST_ASKED));
    DO(ways("chain, verdict, asks overrides", chain_verdict, MOST_INSERTS, MOST_ASKED, MOST_ASKED));
    links[0].table = &k.table, links[0].limit = &k.limit, links[0].flags = 0;
}

TEST(an_undo_takes_at_most_two_kib_and_a_copy_one_more) {
    /* A full set refuses the last link, when the others are charged. */
    for (uint64_t i = 0; i < 64; i++) {
        int32_t code = tatcell_table_check(&full.table, &full.limit, now, &i, sizeof i, 1, NULL);
        EXPECT(code == TATCELL_PASS || code == TATCELL_NON_CONFORMING);
    }
    out = NULL;
    fresh();
    links[7].table = &full.table, links[7].limit = &full.limit;
    DO(takes("chain, undoes inserts", chain_check, TATCELL_NON_CONFORMING, MOST_UNDO));
    chain.count = 7;
    DO(takes("chain", chain_check, TATCELL_PASS, MOST_CHAIN));
    chain.count = 8;
    DO(takes("chain, undoes swaps", chain_check, TATCELL_NON_CONFORMING, MOST_UNDO));
    of_later = chain, of_later.links = &later[0].known, of_later.link_size = sizeof *later;
    for (int i = 0; i < 8; i++) later[i].known = links[i];
    DO(takes("chain of another size, undoes swaps", later_verdict, TATCELL_NON_CONFORMING, MOST_LATER_UNDO));
    fresh();
    DO(takes("chain of another size, undoes inserts", later_verdict, TATCELL_NON_CONFORMING, MOST_LATER_UNDO));
    of_later.count = 7;
    DO(takes("chain of another size, passes", later_verdict, TATCELL_PASS, MOST_LATER));
    links[7].table = &k.table, links[7].limit = &k.limit;
}

TEST(a_decision_and_the_long_way_take_at_most_four_kib) {
    out = &d;
    DO(ways("chain, told", chain_check, MOST_LONG, MOST_LONG, MOST_LONG));
    DO(ways("ladder, told", ladder_check, MOST_TOLD, MOST_TOLD, MOST_TOLD));
    out = NULL;
    fresh();
    for (int i = 0; i < 8; i++) links[i].room = links[i].extra = 1;
    EQ(tatcell_chain_verdict(&chain, now), TATCELL_ERR_NOT_PLAIN);
    DO(takes("chain, long way, inserts", chain_check, TATCELL_PASS, MOST_LONG));
    DO(takes("chain, long way, passes", chain_check, TATCELL_PASS, MOST_LONG));
    DO(takes("chain, long way, is refused", chain_check, TATCELL_NON_CONFORMING, MOST_LONG));
}

TEST(a_ladder_is_made_in_little_stack) {
    const tatcell_ladder_spec_t defaults = TATCELL_LADDER_SPEC_INIT;
    const tatcell_ladder_t before = ladder;
    rungs = defaults;
    DO(takes("ladder, is made", ladder_init, 0, MOST_MADE));
    for (uint32_t i = 0; i < 8; i++) {
        eight[0][i].bits = 32 - 2 * i, eight[1][i].bits = 128 - 8 * i;
        eight[0][i].multiplier = eight[1][i].multiplier = 1 + i;
    }
    rungs.v4 = eight[0], rungs.v6 = eight[1], rungs.v4_count = rungs.v6_count = 8;
    DO(takes("ladder of 16 rungs, is made", ladder_init, 0, MOST_MADE));
    DO(takes("ladder, options of its table", ladder_table_specs, 0, MOST_MADE));
    const tatcell_ladder_t made = ladder;
    eight[1][7].multiplier = 1 << 20;
    DO(takes("ladder, its last tier is refused", ladder_init, TATCELL_ERR_TOO_FAST, MOST_MADE));
    EQ(memcmp(&ladder, &made, sizeof ladder), 0);
    ladder = before;
}

TEST(other_calls_of_ladders_take_what_they_did) {
    static uint8_t addresses[64][16];
    DO(takes("ladder, names a tier", ladder_rung, 0, MOST_NAMED));
    fresh();
    DO(takes("ladder, peek", ladder_peek, TATCELL_PASS, MOST_LONG));
    DO(takes("ladder, permits and counters", ladder_counts, TATCELL_PASS, MOST_COUNTED));
    DO(takes("ladder, refund", ladder_refund, 0, MOST_LONG));
    for (int i = 0; i < 64; i++) fresh(), memcpy(addresses[i], address, 16);
    burst.now = now, burst.count = 64, burst.addresses = addresses, burst.address_len = 16;
    DO(takes("ladder, burst, verdicts", ladder_burst, 0, MOST_BURST));
    burst.decisions = decisions, burst.decision_size = sizeof *decisions, burst.overrides = &bans.table;
    DO(takes("ladder, burst, decisions", ladder_burst, 0, MOST_BURST));
    burst.decisions = NULL;
    DO(takes("ladder, burst, charges", ladder_charge, 0, MOST_BURST));
    tatcell_limit_spec_t penalty = one, quick = one, slow = one;
    penalty.penalty = 1;
    EQ(tatcell_ladder_table_specs(&penalty, NULL, &quick, &slow), 0);
    kit_table held = {.bytes = tatcell_table_bytes(4096)};
    held.memory = kit_memory(held.bytes);
    tatcell_table_options_t o = kit_options(&quick);
    o.slowest = &slow;
    EQ(tatcell_table_init(&held.table, held.memory, held.bytes, &o), 0);
    const tatcell_ladder_t of_plain = ladder;
    const tatcell_table_t plain = k.table;
    k.table = held.table;
    EQ(tatcell_ladder_init(&ladder, &k.table, &penalty, NULL), 0);
    DO(takes("ladder of penalties, burst, verdicts", ladder_burst, 0, MOST_BURST_LONG));
    burst.decisions = decisions;
    DO(takes("ladder of penalties, burst, decisions", ladder_burst, 0, MOST_BURST_LONG));
    burst.decisions = NULL, ladder = of_plain, k.table = plain;
    free(held.memory);
}
#endif

int main(void) {
#ifdef MEASURES
    setup();
    RUN(plain_chains_and_ladders_take_little_stack);
    RUN(overrides_take_little_more);
    RUN(an_undo_takes_at_most_two_kib_and_a_copy_one_more);
    RUN(a_decision_and_the_long_way_take_at_most_four_kib);
    RUN(a_ladder_is_made_in_little_stack);
    RUN(other_calls_of_ladders_take_what_they_did);
#endif
    return check_end();
}
