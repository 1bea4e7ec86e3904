/* burst.c - the burst structure: what it refuses, its forms of keys, its limits, its look ahead. */
#include "kit.h"
#include "refuses.h"

enum { N = 8 };

static struct world {
    tatcell_burst_t b, n;
    tatcell_limit_t limit, other, cell, foreign, zero;
    const tatcell_limit_t *limits[64];
    uint64_t hashes[64];
    uint32_t costs[64];
    char keys[64][16];
    const void *pointers[64];
    size_t lengths[64];
    tatcell_decision_t rows[64];
    tatcell_counters_t counters;
    uint64_t odd[2];
} w, before;

static kit_table k, caller;

/* The call with one field of the burst, or of the one next to it, changed. */
#define WITH(field, value, code) \
    do { \
        __typeof__(w.field) kept_ = w.field; \
        w.field = (value); \
        REFUSES(code, tatcell_table_check_burst(&k.table, &w.b, &w.n)); \
        w.field = kept_; \
    } while (0)

static void setup(uint32_t hash) {
    tatcell_table_options_t o = kit_options(NULL);
    tatcell_limit_spec_t wide = kit_spec(10, SECOND, 3);
    kit_table other;
    memset(&w, 0, sizeof w);
    kit_free(&k);
    kit_free(&caller);
    o.hash = hash;
    EQ(kit_make(&k, kit_spec(10, SECOND, 3), 1024, &o), 0);
    o.hash = TATCELL_HASH_CALLER;
    o.seed = NULL;
    EQ(kit_make(&caller, kit_spec(10, SECOND, 3), 1024, &o), 0);
    w.limit = k.limit;
    EQ(kit_make(&other, kit_spec(10, SECOND, 7), 64, NULL), 0);
    w.foreign = other.limit;
    kit_free(&other);
    wide.burst = 1;
    EQ(tatcell_limit_init_table(&w.other, &k.table, &wide), 0);
    EQ(tatcell_limit_init(&w.cell, 10, SECOND, 3), 0);
    for (int i = 0; i < 64; i++) {
        snprintf(w.keys[i], sizeof w.keys[i], "key %d", i % 16);
        w.pointers[i] = w.keys[i];
        w.lengths[i] = 16;
        w.costs[i] = 1;
        w.limits[i] = &w.limit;
        EQ(tatcell_table_hash(&k.table, w.keys[i], 16, &w.hashes[i]), 0);
    }
    w.b = kit_burst(&w.limit, 5, w.keys, 16, 16, N);
    w.n = kit_burst(&w.limit, 5, w.keys[20], 16, 16, N);
}

TEST(a_burst_refuses_bad_arguments_and_changes_nothing) {
    for (uint32_t hash = 0; hash <= TATCELL_HASH_AES; hash += TATCELL_HASH_AES) {
        if (tatcell_hash_available(hash) != 0) continue;
        DO(setup(hash));
        tatcell_table_t none;
        memset(&none, 0, sizeof none);
        REFUSES(TATCELL_ERR_NULL, tatcell_table_check_burst(NULL, &w.b, &w.n));
        REFUSES(TATCELL_ERR_NULL, tatcell_table_check_burst(&k.table, NULL, &w.n));
        REFUSES(TATCELL_ERR_NULL, tatcell_table_check_burst(&k.table, NULL, NULL));
        REFUSES(TATCELL_ERR_ALIGN, tatcell_table_check_burst(OFF(&k.table), &w.b, &w.n));
        REFUSES(TATCELL_ERR_ALIGN, tatcell_table_check_burst(&k.table, OFF(&w.b), NULL));
        REFUSES(TATCELL_ERR_ALIGN, tatcell_table_check_burst(&k.table, &w.b, OFF(&w.limits)));
        REFUSES(TATCELL_ERR_HANDLE, tatcell_table_check_burst(&none, &w.b, &w.n));
        REFUSES(TATCELL_ERR_OPTION, tatcell_table_check_burst(&k.table, &w.b, &w.b));
        REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_check_burst(&k.table, &w.b,
            (tatcell_burst_t *)(void *)&w.b.scratch[8]));
        REFUSES(TATCELL_ERR_HASH, tatcell_table_check_burst(&caller.table, &w.b, NULL));
        static const uint32_t sizes[] = {0, 7, 8, sizeof(tatcell_burst_t) - 8, sizeof(tatcell_burst_t) + 4, 4104,
            UINT32_MAX};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            NOTE("size %u", sizes[i]);
            WITH(b.size, sizes[i], TATCELL_ERR_SIZE);
            WITH(n.size, sizes[i], TATCELL_ERR_SIZE);
        }
        WITH(b.flags, 2, TATCELL_ERR_OPTION);
        WITH(b.flags, 2 | TATCELL_BURST_PREFETCHED, TATCELL_ERR_OPTION);
        WITH(n.flags, UINT32_C(1) << 31, TATCELL_ERR_OPTION);
        WITH(b.count, 65, TATCELL_ERR_COUNT);
        WITH(n.count, UINT32_MAX, TATCELL_ERR_COUNT);
        WITH(b.keys, NULL, TATCELL_ERR_NULL);
        WITH(n.keys, NULL, TATCELL_ERR_NULL);
        WITH(b.key_pointers, w.pointers, TATCELL_ERR_OPTION);
        WITH(n.key_pointers, w.pointers, TATCELL_ERR_OPTION);
        WITH(b.hashes, w.hashes, TATCELL_ERR_OPTION);
        WITH(n.hashes, w.hashes, TATCELL_ERR_OPTION);
        WITH(b.key_len, SIZE_MAX, TATCELL_ERR_KEY_LENGTH);
        WITH(n.key_len, SIZE_MAX, TATCELL_ERR_KEY_LENGTH);
        WITH(b.key_lens, (const size_t *)OFF(w.lengths), TATCELL_ERR_ALIGN);
        w.lengths[N - 1] = SIZE_MAX;
        WITH(b.key_lens, w.lengths, TATCELL_ERR_KEY_LENGTH);
        w.lengths[N - 1] = 16;
        WITH(b.limit, NULL, TATCELL_ERR_NULL);
        WITH(b.limit, (const tatcell_limit_t *)OFF(&w.limit), TATCELL_ERR_ALIGN);
        WITH(b.limit, &w.zero, TATCELL_ERR_LIMIT);
        WITH(b.limit, &w.cell, TATCELL_ERR_LIMIT);
        WITH(b.limit, &w.foreign, TATCELL_ERR_FOREIGN);
        WITH(b.limits, w.limits, TATCELL_ERR_OPTION);
        WITH(b.costs, (const uint32_t *)OFF(w.costs), TATCELL_ERR_ALIGN);
        WITH(b.counters, (tatcell_counters_t *)OFF(&w.counters), TATCELL_ERR_ALIGN);
        w.b.decision_size = sizeof w.rows[0];
        WITH(b.decisions, (tatcell_decision_t *)OFF(w.rows), TATCELL_ERR_ALIGN);
        w.b.decisions = w.rows;
        static const uint32_t rows[] = {0, 7, 136, 148, 4104};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) WITH(b.decision_size, rows[i], TATCELL_ERR_SIZE);
        w.b.limit = NULL;
        w.b.limits = w.limits;
        w.limits[N - 1] = NULL;
        REFUSES(TATCELL_ERR_NULL, tatcell_table_check_burst(&k.table, &w.b, &w.n));
        w.limits[N - 1] = &w.cell;
        REFUSES(TATCELL_ERR_LIMIT, tatcell_table_check_burst(&k.table, &w.b, &w.n));
        w.limits[N - 1] = &w.foreign;
        REFUSES(TATCELL_ERR_FOREIGN, tatcell_table_check_burst(&k.table, &w.b, &w.n));
        w.limits[N - 1] = &w.limit;
        w.b.keys = NULL;
        w.b.key_pointers = w.pointers;
        w.pointers[N - 1] = NULL;
        REFUSES(TATCELL_ERR_NULL, tatcell_table_check_burst(&k.table, &w.b, &w.n));
        w.pointers[N - 1] = w.keys[N - 1];
        EQ(tatcell_table_check_burst(&k.table, &w.b, &w.n), 0);
        /* Hashes that are prepared belong to the caller's table too. */
        DO(setup(hash));
        w.b.keys = NULL;
        w.b.hashes = w.hashes;
        REFUSES(TATCELL_ERR_FOREIGN, (w.b.limit = &w.foreign, before.b.limit = &w.foreign,
                                      tatcell_table_check_burst(&k.table, &w.b, &w.n)));
        w.b.limit = &caller.limit;
        REFUSES(TATCELL_ERR_HASH, tatcell_table_check_burst(&caller.table, &w.b, &w.n));
    }
}

TEST(what_a_burst_writes_must_lie_apart) {
    DO(setup(0));
    WITH(b.keys, w.b.scratch, TATCELL_ERR_OVERLAP);
    WITH(b.keys, (const void *)((uintptr_t)&w.b - 15), TATCELL_ERR_OVERLAP);
    WITH(b.keys, w.n.scratch, TATCELL_ERR_OVERLAP);
    WITH(n.keys, w.n.scratch, TATCELL_ERR_OVERLAP);
    WITH(n.keys, &w.b.now, TATCELL_ERR_OVERLAP);
    w.b.keys = NULL;
    WITH(b.key_pointers, (const void *const *)(void *)w.b.scratch, TATCELL_ERR_OVERLAP);
    WITH(b.key_pointers, (const void *const *)(void *)&w.n.scratch[60], TATCELL_ERR_OVERLAP);
    w.b.keys = w.keys;
    w.n.stride = -16;
    WITH(n.keys, (char *)&w.limit, TATCELL_ERR_OVERLAP); /* backwards into the bursts */
    w.n.stride = 16;
    w.b.count = 1; /* by one byte, at either end */
    WITH(b.keys, (const void *)((uintptr_t)&w.b - 15), TATCELL_ERR_OVERLAP);
    w.b.keys = (const void *)((uintptr_t)&w.b + sizeof w.b - 1);
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_check_burst(&k.table, &w.b, NULL));
    w.b.count = N;
    w.b.keys = NULL;
    w.b.hashes = w.n.scratch; /* the hashes of the next burst would go where these are read */
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_check_burst(&k.table, &w.b, &w.n));
    w.b.hashes = &w.n.scratch[60];
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_check_burst(&k.table, &w.b, &w.n));
    w.b.hashes = w.b.scratch;
    REFUSES(TATCELL_ERR_OVERLAP, tatcell_table_check_burst(&k.table, &w.b, &w.n));
    w.b.hashes = w.hashes;
    WITH(b.costs, (const uint32_t *)&w.n.scratch[3], TATCELL_ERR_OVERLAP);
    WITH(b.costs, (const uint32_t *)&w.b.scratch[3], TATCELL_ERR_OVERLAP);
    WITH(b.limit, (const tatcell_limit_t *)(const void *)w.b.scratch, TATCELL_ERR_OVERLAP);
    WITH(b.counters, (tatcell_counters_t *)(void *)w.hashes, TATCELL_ERR_OVERLAP);
    WITH(b.counters, (tatcell_counters_t *)(void *)w.n.scratch, TATCELL_ERR_OVERLAP);
    WITH(b.counters, (tatcell_counters_t *)(void *)&w.limit, TATCELL_ERR_OVERLAP);
    w.b.decision_size = sizeof w.rows[0];
    WITH(b.decisions, (tatcell_decision_t *)(void *)&w.hashes[2], TATCELL_ERR_OVERLAP);
    WITH(b.decisions, (tatcell_decision_t *)(void *)w.b.scratch, TATCELL_ERR_OVERLAP);
    WITH(b.decisions, (tatcell_decision_t *)(void *)&w.limit, TATCELL_ERR_OVERLAP);
    w.b.decisions = w.rows;
    WITH(b.counters, (tatcell_counters_t *)(void *)&w.rows[3], TATCELL_ERR_OVERLAP);
    WITH(b.costs, (const uint32_t *)&w.rows[7].cost, TATCELL_ERR_OVERLAP);
    w.b.counters = &w.counters;
    w.b.costs = w.costs;
    EQ(tatcell_table_check_burst(&k.table, &w.b, &w.n), 0);
}

TEST(an_empty_burst_needs_nothing) {
    DO(setup(0));
    tatcell_burst_t b = TATCELL_BURST_INIT, n = TATCELL_BURST_INIT;
    b.pass = 7;
    EQ(tatcell_table_check_burst(&k.table, &b, NULL), 0);
    EQ(b.pass, 0);
    EQ(tatcell_table_check_burst(&k.table, &b, &n), 0);
    EQ(tatcell_table_check_burst(&caller.table, &n, &b), 0);
    EQ(tatcell_table_check_burst(&k.table, &b, &w.n), 0);
    EXPECT(w.n.prepared != 0);
}

/* Three units a key, one request each: who passes tells which keys were read. */
static int decides(tatcell_burst_t b, const char *const *keys) {
    kit_table one, many;
    uint64_t want = 0;
    if (kit_make(&one, k.spec, 256, NULL) || kit_make(&many, k.spec, 256, NULL)) return 0;
    b.limit = &many.limit;
    for (uint32_t i = 0; i < b.count; i++) {
        size_t len = b.key_lens ? b.key_lens[i] : b.key_len;
        want |= (uint64_t)(tatcell_table_check(&one.table, &one.limit, b.now, keys[i], len, 1, NULL) == 0) << i;
    }
    int same = tatcell_table_check_burst(&many.table, &b, NULL) == 0 && b.pass == want && b.prepared == 0 &&
               memcmp(one.memory, many.memory, one.bytes) == 0;
    kit_free(&one);
    kit_free(&many);
    return same;
}

TEST(keys_come_at_any_stride_by_pointers_or_with_lengths_of_their_own) {
    static char text[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    static const int64_t strides[] = {16, 5, 1, 0, -1, -4};
    static const size_t lengths[] = {0, 1, 4, 7, 16};
    const char *at[16];
    DO(setup(0));
    for (int s = 0; s < 6; s++) {
        for (int l = 0; l < 5; l++) {
            NOTE("stride %d length %d", (int)strides[s], (int)lengths[l]);
            const char *first = strides[s] < 0 ? text + 30 : text;
            uint32_t n = strides[s] == 16 ? 2 : strides[s] == 5 ? 6 : 6;
            for (uint32_t i = 0; i < n; i++) at[i] = first + (int64_t)i * strides[s];
            tatcell_burst_t b = kit_burst(NULL, 3, first, lengths[l], strides[s], n);
            EXPECT(decides(b, at));
            b.keys = NULL;
            b.key_pointers = (const void *const *)at;
            EXPECT(decides(b, at));
            size_t own[16];
            for (uint32_t i = 0; i < n; i++) own[i] = (i * 5 + (uint32_t)l) % 9;
            b.key_lens = own;
            EXPECT(decides(b, at));
            b.keys = first;
            b.key_pointers = NULL;
            EXPECT(decides(b, at));
        }
    }
}

TEST(a_limit_a_request_is_that_request_s_limit) {
    DO(setup(0));
    for (int i = 0; i < N; i++) w.limits[i] = i & 1 ? &w.other : &w.limit;
    w.b.limit = NULL;
    w.b.limits = w.limits;
    w.b.keys = w.keys[0];
    w.b.stride = 0; /* one key, eight times: a burst of 3, or of 1 */
    EQ(tatcell_table_check_burst(&k.table, &w.b, NULL), 0);
    EQ(w.b.pass, 1 | 4 | 16);
    w.b.keys = w.keys[1];
    w.b.counters = &w.counters;
    w.b.decisions = w.rows;
    w.b.decision_size = sizeof w.rows[0];
    EQ(tatcell_table_check_burst(&k.table, &w.b, NULL), 0);
    EQ(w.b.pass, 1 | 4 | 16);
    EQ(w.rows[0].burst, 3);
    EQ(w.rows[1].burst, 1);
    EQ(w.rows[0].size, 0);
    EQ(w.counters.conforming, 3);
    EQ(w.counters.non_conforming, 5);
}

TEST(a_prepared_burst_is_decided_by_what_its_keys_were) {
    for (uint32_t hash = 0; hash <= TATCELL_HASH_AES; hash += TATCELL_HASH_AES) {
        if (tatcell_hash_available(hash) != 0) continue;
        DO(setup(hash));
        tatcell_burst_t none = TATCELL_BURST_INIT;
        EQ(tatcell_table_check_burst(&k.table, &none, &w.n), 0);
        for (int i = 0; i < N; i++) EQ(w.n.scratch[i], w.hashes[20 + i]);
        memset(w.keys, 'x', sizeof w.keys); /* one key now; but they have been read */
        EQ(tatcell_table_check_burst(&k.table, &w.n, NULL), 0);
        EQ(w.n.pass, 0xff);
        EQ(w.n.prepared, 0);
        EQ(tatcell_table_check_burst(&k.table, &w.n, NULL), 0); /* read again: one key, three units */
        EQ(w.n.pass, 7);
        /* Prepared for another table, or with another count: hashed again. */
        kit_table other;
        tatcell_table_options_t o = kit_options(NULL);
        uint8_t seed[16] = {42};
        o.seed = seed;
        EQ(kit_make(&other, k.spec, 1024, &o), 0);
        for (int i = 0; i < 64; i++) snprintf(w.keys[i], sizeof w.keys[i], "k%d", i);
        EQ(tatcell_table_check_burst(&k.table, &none, &w.n), 0);
        EQ(tatcell_table_check_burst(&other.table, &w.n, NULL), 0);
        for (int i = 0; i < N; i++) {
            uint64_t h = 0;
            EQ(tatcell_table_hash(&other.table, w.keys[20 + i], 16, &h), 0);
            EQ(w.n.scratch[i], h);
        }
        kit_free(&other);
        EQ(tatcell_table_check_burst(&k.table, &none, &w.n), 0);
        w.n.count = N + 1;
        EQ(tatcell_table_check_burst(&k.table, &w.n, NULL), 0);
        EQ(w.n.pass, 0x1ff);
    }
}

/* The same under two limits a key: what was prepared is decided, not what has come where its keys were. */
TEST(a_prepared_burst_of_pairs_is_decided_by_what_its_keys_were) {
    DO(setup(0));
    tatcell_burst_t none = TATCELL_BURST_INIT;
    EQ(tatcell_table_check_pairs(&k.table, &none, &w.limit, NULL, &w.n), 0);
    memset(w.keys, 'x', sizeof w.keys);
    EQ(tatcell_table_check_pairs(&k.table, &w.n, &w.limit, NULL, NULL), 0);
    EQ(w.n.pass, 0xff);
    EQ(w.n.prepared, 0);
    EQ(tatcell_table_check_pairs(&k.table, &w.n, &w.limit, NULL, NULL), 0); /* read again: one key, three units */
    EQ(w.n.pass, 7);
}

TEST(hashes_of_the_caller_are_decided_and_looked_ahead_at) {
    DO(setup(0));
    tatcell_burst_t a = TATCELL_BURST_INIT, b = TATCELL_BURST_INIT;
    a.limit = b.limit = &caller.limit;
    a.hashes = w.hashes, b.hashes = w.hashes + 8;
    a.count = b.count = 8;
    EQ(tatcell_table_check_burst(&caller.table, &a, &b), 0);
    EQ(a.pass, 0xff);
    EXPECT(b.prepared != 0);
    EQ(tatcell_table_check_burst(&caller.table, &b, &a), 0);
    EQ(b.pass, 0xff);
    for (int i = 0; i < 2; i++) EQ(tatcell_table_check_burst(&caller.table, &a, NULL), 0);
    EQ(a.pass, 0xff);
    EQ(tatcell_table_check_burst(&caller.table, &a, NULL), 0);
    EQ(a.pass, 0);
}

TEST(pairs_that_were_prefetched_are_decided_alike) {
    tatcell_burst_t b[2];
    kit_table other;
    uint64_t any = 0, all = UINT64_MAX;
    DO(setup(0));
    EQ(kit_make(&other, k.spec, 1024, NULL), 0);
    for (uint64_t round = 0; round < 20; round++) {
        for (int i = 0; i < 2; i++) {
            const kit_table *t = i == 0 ? &k : &other;
            b[i] = kit_burst(&t->limit, round * 60000000, w.keys, 16, 16, 40);
            b[i].flags = i == 0 ? TATCELL_BURST_PREFETCHED : 0;
            EQ(tatcell_table_check_pairs(&t->table, &b[i], &t->limit, w.costs, NULL), 0);
        }
        EQ(b[0].pass, b[1].pass);
        any |= b[0].pass;
        all &= b[0].pass;
    }
    EXPECT(any != 0 && all == 0);
    EXPECT(memcmp(other.memory, k.memory, k.bytes) == 0);
    kit_free(&other);
}

/* The loop of the header's comment: every key of every burst is decided once, in order. */
static uint32_t received, forwarded;
static int turn;

static uint32_t receive(uint32_t (*keys)[1]) {
    static const uint32_t sizes[] = {5, 64, 1, 0};
    uint32_t n = sizes[turn < 3 ? turn++ : 3];
    for (uint32_t i = 0; i < n; i++) keys[i][0] = i % 7;
    received += n;
    return n;
}

static void forward(uint64_t pass, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) forwarded += pass >> i & 1;
}

TEST(the_loop_of_the_header_decides_every_request) {
    static uint32_t keys[2][64][1];
    DO(setup(0));
    int32_t rc = 0;
    uint64_t now = 0;
    tatcell_burst_t b[2] = {TATCELL_BURST_INIT, TATCELL_BURST_INIT};
    b[0].limit = b[1].limit = &k.limit;
    for (int i = 0;; i ^= 1) {
        tatcell_burst_t *burst = &b[i], *next = &b[i ^ 1];
        next->keys = keys[i ^ 1], next->key_len = next->stride = sizeof keys[0][0];
        next->count = receive(keys[i ^ 1]);
        if (burst->count + next->count == 0) break;
        burst->now = now;
        rc = tatcell_table_check_burst(&k.table, burst, next);
        if (rc < 0) break;
        forward(burst->pass, burst->count);
    }
    EQ(rc, 0);
    EQ(received, 70);
    EQ(forwarded, 21); /* seven keys, three units each */
}

int main(void) {
    RUN(a_burst_refuses_bad_arguments_and_changes_nothing);
    RUN(what_a_burst_writes_must_lie_apart);
    RUN(an_empty_burst_needs_nothing);
    RUN(keys_come_at_any_stride_by_pointers_or_with_lengths_of_their_own);
    RUN(a_limit_a_request_is_that_request_s_limit);
    RUN(a_prepared_burst_is_decided_by_what_its_keys_were);
    RUN(a_prepared_burst_of_pairs_is_decided_by_what_its_keys_were);
    RUN(hashes_of_the_caller_are_decided_and_looked_ahead_at);
    RUN(pairs_that_were_prefetched_are_decided_alike);
    RUN(the_loop_of_the_header_decides_every_request);
    kit_free(&k);
    kit_free(&caller);
    return check_end();
}
