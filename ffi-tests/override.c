/* override.c - keys that are banned or exempt until a time: to the tick, in chains, among processes, and every bad
 * argument. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

#define DAY UINT64_C(86400000) /* milliseconds */

static tatcell_table_t table;
static TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES(256)];

static tatcell_table_options_t overrides(uint64_t longest) {
    tatcell_table_options_t o = TATCELL_TABLE_OPTIONS_INIT;
    o.overrides = longest, o.seed = kit_seed;
    return o;
}

static void setup(void) {
    const tatcell_table_options_t o = overrides(365 * DAY);
    memset(memory, 0, sizeof memory);
    EQ(tatcell_table_init(&table, memory, sizeof memory, &o), 0);
}

/* kind * 2^60 + left. */
static uint64_t state(uint64_t now, const char *key) {
    uint32_t kind = 77;
    uint64_t left = 77, hash = 0, twin = 77;
    if (tatcell_table_overridden(&table, now, key, strlen(key), &kind, &left) != 0) return UINT64_MAX;
    const uint64_t found = (uint64_t)kind << 60 | left;
    if (tatcell_table_hash(&table, key, strlen(key), &hash) != 0) return UINT64_MAX;
    if (tatcell_table_overridden_hash(&table, now, hash, &kind, &twin) != 0 || twin != left) return UINT64_MAX;
    return found;
}
#define BAN(left) ((uint64_t)TATCELL_OVERRIDE_BAN << 60 | (left))
#define EXEMPT(left) ((uint64_t)TATCELL_OVERRIDE_EXEMPT << 60 | (left))

TEST(overrides_end_at_their_tick) {
    DO(setup());
    EQ(tatcell_table_ban(&table, 1000, "mallory", 7, 61000), 0);
    EQ(tatcell_table_exempt(&table, 1000, "alice", 5, 1000 + 365 * DAY), 0);
    EQ(state(1000, "mallory"), BAN(60000));
    EQ(state(60999, "mallory"), BAN(1));
    EQ(state(61000, "mallory"), 0);
    EQ(state(1000, "alice"), EXEMPT(365 * DAY));
    EQ(state(1000 + 365 * DAY, "alice"), 0);
    EQ(state(1000, "bob"), 0);
    EQ(tatcell_table_exempt(&table, 2000, "mallory", 7, 5000), 0);
    EQ(state(2000, "mallory"), EXEMPT(3000));
    EQ(tatcell_table_lift(&table, 2000, "mallory", 7), 0);
    EQ(state(2000, "mallory"), 0);
    EQ(tatcell_table_lift(&table, 2000, "mallory", 7), TATCELL_END);
    /* Statistics and walks have what overrides somebody: neither second words, nor what was lifted. */
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    tatcell_slot_t slot, top[4];
    uint32_t found = 0;
    EQ(tatcell_table_ban(&table, 2000, "eve", 3, 9000), 0);
    EQ(tatcell_table_stats(&table, 2000, &stats), 0);
    EXPECT(stats.live == 2 && stats.exemptions == 1 && stats.longest == 365 * DAY - 1000);
    EQ(tatcell_table_top(&table, 2000, top, 4, &found), 0);
    EXPECT(found == 2 && top[0].reset_after == 365 * DAY - 1000 && top[1].reset_after == 7000);
    EQ(tatcell_table_next(&table, 2000, 0, &slot), 0);
    EQ(tatcell_table_next(&table, 2000, slot.number + 1, &slot), 0);
    EQ(tatcell_table_next(&table, 2000, slot.number + 1, &slot), TATCELL_END);
    EQ(tatcell_table_lift(&table, 2000, "eve", 3), 0);
    uint64_t hash = 0;
    EQ(tatcell_table_hash(&table, "mallory", 7, &hash), 0);
    EQ(tatcell_table_ban_hash(&table, 2000, hash, 9000), 0);
    EQ(state(2000, "mallory"), BAN(7000));
    EQ(tatcell_table_exempt_hash(&table, 2000, hash, 9000), 0);
    EQ(state(2000, "mallory"), EXEMPT(7000));
    EQ(tatcell_table_lift_hash(&table, 2000, hash), 0);
    EQ(tatcell_table_lift_hash(&table, 2000, hash), TATCELL_END);
    tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
    EQ(tatcell_table_info(&table, &info), 0);
    EQ(info.algorithm, TATCELL_ALGORITHM_OVERRIDES);
    EQ(info.policy, TATCELL_FULL_DENY);
}

static const uint8_t v4[4] = {192, 0, 2, 1}, mapped[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1},
                     nat64[16] = {0, 0x64, 0xff, 0x9b, [12] = 192, 0, 2, 1},
                     sixto4[16] = {0x20, 0x02, 192, 0, 2, 1, [15] = 9}, native[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};

/* How an address is overridden, and by how many bits: kind * 1000 + bits. */
static uint32_t by(const void *address, size_t len, const tatcell_prefix_lengths_t *lengths) {
    uint32_t kind = 77, bits = 77;
    uint64_t left = 77;
    const int32_t rc = tatcell_table_overridden_address(&table, 1000, address, len, lengths, &kind, &left, &bits);
    if (rc != 0 || (left != 0) != (kind != TATCELL_OVERRIDE_NONE)) return 99999;
    return kind * 1000 + bits;
}

TEST(addresses_are_banned_however_they_are_written) {
    static const uint8_t *const same[3] = {mapped, nat64, sixto4};
    for (int i = 0; i < 4; i++) {
        DO(setup());
        EQ(tatcell_table_ban_address(&table, 1000, i < 3 ? same[i] : v4, i < 3 ? 16 : 4, 32, 64, 9000), 0);
        EQ(by(v4, 4, NULL), 1032);
        for (int k = 0; k < 3; k++) EQ(by(same[k], 16, NULL), 1032);
        EQ(by(native, 16, NULL), 0);
        EQ(tatcell_table_exempt_address(&table, 1000, v4, 4, 32, 64, 9000), 0);
        EQ(by(mapped, 16, NULL), 2032);
        EQ(tatcell_table_lift_address(&table, 1000, mapped, 16, 32, 64), 0);
        EQ(tatcell_table_lift_address(&table, 1000, v4, 4, 32, 64), TATCELL_END);
        EQ(by(v4, 4, NULL), 0);
    }
}

TEST(the_longest_prefix_that_is_asked_decides) {
    DO(setup());
    static const uint8_t four[] = {0, 24, 16, 32}, six[] = {64, 0, 128, 48};
    tatcell_prefix_lengths_t all = TATCELL_PREFIX_LENGTHS_INIT, some = TATCELL_PREFIX_LENGTHS_INIT;
    all.v4 = four, all.v4_count = 4, all.v6 = six, all.v6_count = 4;
    EQ(tatcell_table_ban_address(&table, 1000, mapped, 16, 16, 64, 9000), 0); /* 192.0.0.0/16 */
    EQ(tatcell_table_exempt_address(&table, 1000, v4, 4, 24, 64, 9000), 0);
    EQ(tatcell_table_ban_address(&table, 1000, native, 16, 24, 48, 9000), 0);
    EQ(by(mapped, 16, &all), 2024);
    EQ(by(native, 16, &all), 1048);
    EQ(by(v4, 4, NULL), 0);
    some.v4 = four, some.v4_count = 1; /* /0, and /128 by default */
    EQ(by(v4, 4, &some), 0);
    EQ(by(native, 16, &some), 0);
    /* All of IPv6, and no IPv4 address. */
    static const uint8_t any[16];
    EQ(tatcell_table_ban_address(&table, 1000, any, 16, 0, 0, 9000), 0);
    EQ(by(v4, 4, &some), 0);
    EQ(by(mapped, 16, &some), 0);
    EQ(by(any, 16, &all), 1000);
    /* The hash is that of a link. */
    uint64_t hash, left;
    uint32_t kind;
    EQ(tatcell_address_prefix_hash(&table, native, 16, 24, 48, &hash), 0);
    EQ(tatcell_table_overridden_hash(&table, 1000, hash, &kind, &left), 0);
    EQ(kind, TATCELL_OVERRIDE_BAN);
}

TEST(bad_addresses_are_refused) {
    DO(setup());
    static unsigned char before[sizeof memory];
    memcpy(before, memory, sizeof memory);
    static const struct {
        const uint8_t *address;
        size_t len;
        uint32_t v4, v6;
        int32_t rc;
    } t[] = {{v4, 5, 32, 64, TATCELL_ERR_ADDRESS},   {v4, 4, 33, 64, TATCELL_ERR_PREFIX},
             {v4, 4, 257, 64, TATCELL_ERR_PREFIX},   {native, 16, 32, 129, TATCELL_ERR_PREFIX},
             {mapped, 16, 96, 96, TATCELL_ERR_PREFIX}, {native, 16, 32, 1u << 31, TATCELL_ERR_PREFIX},
             {NULL, 4, 32, 64, TATCELL_ERR_NULL}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        EQ(tatcell_table_ban_address(&table, 5, t[i].address, t[i].len, t[i].v4, t[i].v6, 9), t[i].rc);
        EQ(tatcell_table_exempt_address(&table, 5, t[i].address, t[i].len, t[i].v4, t[i].v6, 9), t[i].rc);
        EQ(tatcell_table_lift_address(&table, 5, t[i].address, t[i].len, t[i].v4, t[i].v6), t[i].rc);
    }
    EQ(tatcell_table_ban_address(&table, 5, v4, 4, 32, 64, 5), TATCELL_ERR_UNTIL);
    uint32_t kind = 77, bits = 77;
    uint64_t left = 77, hash = 77;
    uint8_t key[TATCELL_PREFIX_KEY_MAX];
    size_t key_len = 77;
    static const uint8_t long4[] = {33}, many[130];
    tatcell_prefix_lengths_t l = TATCELL_PREFIX_LENGTHS_INIT;
#define ASKED tatcell_table_overridden_address(&table, 5, native, 16, &l, &kind, &left, &bits)
    l.v4 = long4, l.v4_count = 1;
    EQ(ASKED, TATCELL_ERR_PREFIX);
    l.v4 = many, l.v4_count = 130;
    EQ(ASKED, TATCELL_ERR_PREFIX);
    l.v4 = NULL, l.v4_count = 1;
    EQ(ASKED, TATCELL_ERR_NULL);
    l.v4_count = 0, l.flags = 1;
    EQ(ASKED, TATCELL_ERR_OPTION);
    l.flags = 0, l.size = 4;
    EQ(ASKED, TATCELL_ERR_SIZE);
    EQ(tatcell_table_overridden_address(&table, 5, v4, 3, NULL, &kind, &left, &bits), TATCELL_ERR_ADDRESS);
    EQ(tatcell_table_overridden_address(&table, 5, v4, 4, NULL, NULL, &left, &bits), TATCELL_ERR_NULL);
    EQ(tatcell_address_prefix_key(v4, 4, 33, 64, key, &key_len), TATCELL_ERR_PREFIX);
    EQ(tatcell_address_prefix_key(native, 16, 32, 129, key, &key_len), TATCELL_ERR_PREFIX);
    EQ(tatcell_address_prefix_key(v4, 3, 32, 64, key, &key_len), TATCELL_ERR_ADDRESS);
    EQ(tatcell_address_prefix_key(v4, 4, 32, 64, NULL, &key_len), TATCELL_ERR_NULL);
    EQ(tatcell_address_prefix_hash(&table, v4, 4, 256, 64, &hash), TATCELL_ERR_PREFIX);
    EXPECT(kind == 77 && left == 77 && bits == 77 && hash == 77 && key_len == 77);
    EQ(memcmp(before, memory, sizeof memory), 0);
    EQ(tatcell_address_prefix_key(mapped, 16, 24, 64, key, &key_len), 0);
    EXPECT(key_len == 5 && memcmp(key, "\4\30\300\0\2\0\0\0\0\0\0\0\0\0\0\0\0", 18) == 0);
}

/* Of a list: address/bits. */
TEST(networks_are_read_as_they_are_written) {
    static const struct {
        const uint8_t *address;
        size_t len;
        uint32_t bits, canonical; /* 0xff: refused */
    } t[] = {{v4, 4, 24, 24},       {v4, 4, 33, 0xff},     {mapped, 16, 120, 24}, {mapped, 16, 128, 32},
             {mapped, 16, 97, 1},   {mapped, 16, 96, 0xff}, {mapped, 16, 64, 0xff}, {nat64, 16, 112, 16},
             {nat64, 16, 96, 0xff}, {sixto4, 16, 40, 24},  {sixto4, 16, 64, 32},  {sixto4, 16, 16, 0xff},
             {sixto4, 16, 0, 0xff}, {native, 16, 0, 0},    {native, 16, 128, 128}, {native, 16, 257, 0xff}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        uint8_t canonical[16];
        size_t len = 77;
        uint32_t bits = 77;
        NOTE("network %d", (int)i);
        const int refused = t[i].canonical == 0xff, is_v4 = t[i].address != native;
        EQ(tatcell_address_network(t[i].address, t[i].len, t[i].bits, canonical, &len, &bits),
           refused ? TATCELL_ERR_PREFIX : 0);
        EQ(bits, refused ? 77 : t[i].canonical);
        EQ(len, refused ? 77 : is_v4 ? 4 : 16);
        if (!refused) EQ(memcmp(canonical, is_v4 ? v4 : native, len), 0);
    }
    uint8_t canonical[16];
    size_t len;
    uint32_t bits;
    EQ(tatcell_address_network(v4, 5, 24, canonical, &len, &bits), TATCELL_ERR_ADDRESS);
    EQ(tatcell_address_network(NULL, 4, 24, canonical, &len, &bits), TATCELL_ERR_NULL);
    EQ(tatcell_address_network(v4, 4, 24, canonical, &len, NULL), TATCELL_ERR_NULL);
}

TEST(chains_ask_overrides_before_their_limits) {
    DO(setup());
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit;
    EQ(tatcell_limit_init(&limit, 1, 1000, 2), 0);
    tatcell_link_t links[2] = {TATCELL_LINK_INIT, TATCELL_LINK_INIT};
    links[0].flags = TATCELL_LINK_OVERRIDES, links[0].table = &table, links[0].key = "mallory", links[0].key_len = 7;
    links[1].cell = &cell, links[1].limit = &limit, links[1].cost = 1;
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    chain.links = links, chain.link_size = sizeof *links, chain.count = 2;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    EQ(tatcell_chain_check(&chain, 0, &d), TATCELL_PASS);
    EQ(d.flags, 0);
    EQ(d.policy, 1);
    EQ(d.remaining, 1);
    EQ(tatcell_table_ban(&table, 0, "mallory", 7, 5000), 0);
    EQ(tatcell_chain_check(&chain, 10, &d), TATCELL_NON_CONFORMING);
    EQ(d.flags, TATCELL_FLAG_BANNED);
    EQ(d.policy, 0);
    EQ(d.retry_after, 4990);
    EQ(tatcell_table_exempt(&table, 10, "mallory", 7, 5000), 0);
    for (int i = 0; i < 9; i++) EQ(tatcell_chain_check(&chain, 10, &d), TATCELL_PASS);
    EQ(d.flags, TATCELL_FLAG_EXEMPT);
    EQ(tatcell_cell_peek(&cell, &limit, 10, 0, &d), TATCELL_PASS);
    EQ(d.remaining, 1);
    EQ(tatcell_table_hash(&table, "mallory", 7, &links[0].hash), 0);
    links[0].flags |= TATCELL_LINK_HASH, links[0].key = NULL;
    EQ(tatcell_chain_check(&chain, 10, &d), TATCELL_PASS);
    EQ(d.flags, TATCELL_FLAG_EXEMPT);
    /* A ban by one link outweighs the exemption by another: a charge of a request that was let through charges. */
    tatcell_link_t three[3] = {links[0], links[0], links[1]};
    three[1].flags = TATCELL_LINK_OVERRIDES, three[1].key = "trudy", three[1].key_len = 5, three[1].hash = 0;
    EQ(tatcell_table_ban(&table, 10, "trudy", 5, 5000), 0);
    tatcell_counters_t counted[3];
    memset(counted, 0, sizeof counted);
    chain.links = three, chain.count = 3, chain.link_counters = counted;
    EQ(tatcell_chain_check(&chain, 10, &d), TATCELL_NON_CONFORMING);
    EQ(d.flags, TATCELL_FLAG_BANNED);
    EQ(counted[2].conforming, 1);
    EQ(tatcell_chain_reserve(&chain, 10, &d), TATCELL_NON_CONFORMING);
    EQ(tatcell_cell_peek(&cell, &limit, 10, 0, &d), TATCELL_PASS);
    EQ(d.remaining, 1);
    EQ(tatcell_chain_charge(&chain, 10, &d), TATCELL_PASS);
    EQ(tatcell_cell_peek(&cell, &limit, 10, 0, &d), TATCELL_PASS);
    EQ(d.remaining, 0);
    chain.links = links, chain.count = 2, chain.link_counters = NULL;
    /* What such a link cannot be. */
    links[0].limit = &limit;
    EQ(tatcell_chain_check(&chain, 10, &d), TATCELL_ERR_OPTION);
    links[0].limit = NULL, links[1].flags = TATCELL_LINK_OVERRIDES;
    EQ(tatcell_chain_check(&chain, 10, &d), TATCELL_ERR_OPTION);
    links[1].flags = 0;
    kit_table debts;
    EQ(kit_make(&debts, kit_spec(1, 1000, 3), 64, NULL), 0);
    links[0].table = &debts.table;
    EQ(tatcell_chain_check(&chain, 10, &d), TATCELL_ERR_ALGORITHM);
    links[0].flags = TATCELL_LINK_HASH, links[0].table = &table, links[0].limit = &debts.limit;
    EQ(tatcell_chain_check(&chain, 10, &d), TATCELL_ERR_FOREIGN);
    kit_free(&debts);
}

TEST(bad_arguments_are_refused_and_change_nothing) {
    DO(setup());
    static unsigned char before[sizeof memory];
    kit_table debts;
    uint32_t kind = 77;
    uint64_t left = 77;
    tatcell_table_t zero;
    memset(&zero, 0, sizeof zero);
    EQ(kit_make(&debts, kit_spec(1, 1000, 3), 64, NULL), 0);
    memcpy(before, memory, sizeof memory);
    EQ(tatcell_table_ban(&table, 5, "k", 1, 5), TATCELL_ERR_UNTIL);
    EQ(tatcell_table_ban(&table, 5, "k", 1, 4), TATCELL_ERR_UNTIL);
    EQ(tatcell_table_exempt(&table, 5, "k", 1, 366 * DAY), TATCELL_ERR_UNTIL);
    EQ(tatcell_table_ban(&debts.table, 5, "k", 1, 9), TATCELL_ERR_ALGORITHM);
    EQ(tatcell_table_exempt_hash(&debts.table, 5, 1, 9), TATCELL_ERR_ALGORITHM);
    EQ(tatcell_table_lift(&debts.table, 5, "k", 1), TATCELL_ERR_ALGORITHM);
    EQ(tatcell_table_overridden(&debts.table, 5, "k", 1, &kind, &left), TATCELL_ERR_ALGORITHM);
    EQ(tatcell_table_ban(&zero, 5, "k", 1, 9), TATCELL_ERR_HANDLE);
    EQ(tatcell_table_ban(NULL, 5, "k", 1, 9), TATCELL_ERR_NULL);
    EQ(tatcell_table_ban(&table, 5, NULL, 0, 9), TATCELL_ERR_NULL);
    EQ(tatcell_table_lift(&table, 5, "k", SIZE_MAX), TATCELL_ERR_KEY_LENGTH);
    EQ(tatcell_table_overridden(&table, 5, "k", 1, NULL, &left), TATCELL_ERR_NULL);
    EQ(tatcell_table_overridden(&table, 5, "k", 1, &kind, (uint64_t *)((char *)&left + 1)), TATCELL_ERR_ALIGN);
    EQ(tatcell_table_overridden_hash(&table, 5, 1, NULL, NULL), TATCELL_ERR_NULL);
    EXPECT(kind == 77 && left == 77 && memcmp(before, memory, sizeof memory) == 0);
    tatcell_limit_t limit;
    const tatcell_limit_spec_t spec = kit_spec(1, 1000, 3);
    EQ(tatcell_limit_init_table(&limit, &table, &spec), TATCELL_ERR_ALGORITHM);
    tatcell_limit_spec_t none = spec;
    none.algorithm = TATCELL_ALGORITHM_OVERRIDES;
    EQ(tatcell_limit_init_spec(&limit, &none), TATCELL_ERR_OPTION);
    tatcell_table_t other;
    tatcell_table_options_t o = overrides(DAY);
    o.fastest = &spec;
    EQ(tatcell_table_init(&other, debts.memory, debts.bytes, &o), TATCELL_ERR_OPTION);
    o.fastest = NULL, o.slowest = &spec;
    EQ(tatcell_table_init(&other, debts.memory, debts.bytes, &o), TATCELL_ERR_OPTION);
    o = overrides(DAY), o.policy = TATCELL_FULL_INHERIT;
    EQ(tatcell_table_init(&other, debts.memory, debts.bytes, &o), TATCELL_ERR_INHERIT);
    o = overrides(UINT64_MAX);
    EXPECT(tatcell_table_init(&other, debts.memory, debts.bytes, &o) < 0);
    o = overrides(DAY), o.policy = TATCELL_FULL_DENY, o.flags = TATCELL_TABLE_EXCLUSIVE;
    EQ(tatcell_table_init(&other, debts.memory, debts.bytes, &o), 0);
    EQ(tatcell_table_ban(&other, 5, "k", 1, 9), 0);
    kit_free(&debts);
}

/* A ban by one process is a ban for all that share the memory. */
TEST(processes_share_overrides) {
    const tatcell_table_options_t o = overrides(DAY);
    void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(shared != MAP_FAILED);
    EQ(tatcell_table_init(&table, shared, 4096, &o), 0);
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        tatcell_table_t own;
        int32_t rc = tatcell_table_attach(&own, shared, 4096, kit_attach(kit_seed, 0));
        if (rc == 0) rc = tatcell_table_ban(&own, 1000, "mallory", 7, 2000);
        _exit(rc != 0);
    }
    int status = -1;
    EQ(waitpid(child, &status, 0), child);
    EQ(status, 0);
    EQ(state(1500, "mallory"), BAN(500));
    munmap(shared, 4096);
}

int main(void) {
    RUN(overrides_end_at_their_tick);
    RUN(addresses_are_banned_however_they_are_written);
    RUN(the_longest_prefix_that_is_asked_decides);
    RUN(bad_addresses_are_refused);
    RUN(networks_are_read_as_they_are_written);
    RUN(chains_ask_overrides_before_their_limits);
    RUN(bad_arguments_are_refused_and_change_nothing);
    RUN(processes_share_overrides);
    return check_end();
}
