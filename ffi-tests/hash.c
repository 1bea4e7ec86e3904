/* hash.c - the hashes of keys and where these go, against the drawings of the documents: SipHash-1-3 by its paper, the
 * keyed AES hash by FIPS 197, the home line and the tag of a hash. All of it is written here from these. */
#include "kit.h"

typedef uint8_t block[16];

static uint64_t load(const uint8_t *p, size_t n) {
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++) word |= (uint64_t)p[i] << 8 * i;
    return word;
}

static uint64_t turn(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1], v[1] = turn(v[1], 13) ^ v[0], v[0] = turn(v[0], 32);
    v[2] += v[3], v[3] = turn(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = turn(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = turn(v[1], 17) ^ v[2], v[2] = turn(v[2], 32);
}

static uint64_t siphash(int c, int d, const uint8_t *seed, const uint8_t *key, size_t n) {
    uint64_t k0 = load(seed, 8), k1 = load(seed + 8, 8);
    uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                     k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
    for (size_t at = 0; at <= n; at += 8) {
        uint64_t m = at + 8 <= n ? load(key + at, 8) : load(key + at, n - at) | (uint64_t)n << 56;
        v[3] ^= m;
        for (int i = 0; i < c; i++) sip_round(v);
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < d; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Times x modulo x^8 + x^4 + x^3 + x + 1. */
static uint8_t twice(uint8_t a) {
    return (uint8_t)(a << 1 ^ (a >> 7) * 0x1b);
}

static uint8_t times(uint8_t a, uint8_t b) {
    uint8_t sum = 0;
    for (; b; b >>= 1, a = twice(a)) sum ^= b & 1 ? a : 0;
    return sum;
}

static uint8_t sbox(uint8_t a) {
    uint8_t inverse = 0, out = 0x63;
    for (int b = 1; b < 256; b++)
        if (times(a, (uint8_t)b) == 1) inverse = (uint8_t)b;
    for (int i = 0; i < 5; i++) out ^= (uint8_t)(inverse << i | inverse >> (8 - i));
    return out;
}

static void aes_round(block state, const uint8_t *key) {
    static uint8_t table[256];
    block s;
    if (!table[0])
        for (int i = 0; i < 256; i++) table[i] = sbox((uint8_t)i);
    for (int i = 0; i < 16; i++) s[i] = table[state[(i + 4 * (i % 4)) % 16]];
    for (int i = 0; i < 16; i++) {
        const uint8_t *c = s + i / 4 * 4;
        uint8_t two = c[i % 4] ^ c[(i + 1) % 4];
        state[i] = twice(two) ^ c[(i + 1) % 4] ^ c[(i + 2) % 4] ^ c[(i + 3) % 4] ^ key[i];
    }
}

static uint64_t aes_hash(const uint8_t *seed, const uint8_t *key, size_t n) {
    uint8_t keys[6][16];
    for (int i = 0; i < 12; i++) {
        uint8_t name[5] = {'a', 'e', 's', (uint8_t)(i / 2), (uint8_t)(i % 2)};
        uint64_t half = siphash(1, 3, seed, name, sizeof name);
        for (int b = 0; b < 8; b++) keys[i / 2][8 * (i % 2) + b] = (uint8_t)(half >> 8 * b);
    }
    block state;
    memcpy(state, keys[0], 16);
    for (int b = 0; b < 8; b++) state[b] ^= (uint8_t)((uint64_t)n >> 8 * b);
    for (size_t at = 0; at == 0 || at < n; at += 16) {
        for (size_t b = 0; b < 16 && at + b < n; b++) state[b] ^= key[at + b];
        for (int i = 1; i < 5; i++) aes_round(state, keys[i]);
    }
    aes_round(state, keys[5]);
    return load(state, 8);
}

TEST(what_is_written_here_gives_the_vectors_of_its_sources) {
    uint8_t count[16];
    for (int i = 0; i < 16; i++) count[i] = (uint8_t)i;
    EQ(siphash(2, 4, count, count, 15), UINT64_C(0xa129ca6149be45e5)); /* the paper, appendix A */
    /* FIPS 197, appendix B: the start of round 1, its key, the start of round 2. */
    static const block start = {0x19, 0x3d, 0xe3, 0xbe, 0xa0, 0xf4, 0xe2, 0x2b,
                                 0x9a, 0xc6, 0x8d, 0x2a, 0xe9, 0xf8, 0x48, 0x08};
    static const block key = {0xa0, 0xfa, 0xfe, 0x17, 0x88, 0x54, 0x2c, 0xb1,
                               0x23, 0xa3, 0x39, 0x39, 0x2a, 0x6c, 0x76, 0x05};
    static const block next = {0xa4, 0x9c, 0x7f, 0xf2, 0x68, 0x9f, 0x35, 0x2b,
                                0x6b, 0x5b, 0xea, 0x43, 0x02, 0x6a, 0x50, 0x49};
    block state;
    memcpy(state, start, 16);
    aes_round(state, key);
    EXPECT(memcmp(state, next, 16) == 0);
}

/* The word that a check of this key has written: by the hash that is due, in its home line, with its tag. */
static void lands(const kit_table *k, uint64_t hash, const uint8_t *key, size_t n) {
    uint64_t lines = (k->bytes - 128) / 64, home = ((hash >> 32) * lines) >> 32, tag = hash & 0xfffff;
    const uint64_t *words = (const uint64_t *)(const void *)((const char *)k->memory + 128);
    tag = tag ? tag : 1;
    EQ(tatcell_table_check(&k->table, &k->limit, SECOND, key, n, 1, NULL), 0);
    int found = 0;
    for (int i = 0; i < 8; i++) found += words[home * 8 + (uint64_t)i] >> 43 == tag;
    EQ(found, 1);
}

static void as_documented(uint32_t kind, uint64_t (*due)(const uint8_t *, const uint8_t *, size_t)) {
    unsigned long long rng = 1 + kind;
    uint8_t seed[16], keys[128];
    for (size_t n = 0; n < 100; n++) {
        NOTE("%zu bytes", n);
        for (size_t i = 0; i < sizeof seed; i++) seed[i] = (uint8_t)check_random(&rng);
        for (size_t i = 0; i < sizeof keys; i++) keys[i] = (uint8_t)check_random(&rng);
        kit_table k;
        tatcell_table_options_t o = kit_options(NULL);
        o.seed = seed, o.hash = kind;
        EQ(kit_make(&k, kit_spec(10, SECOND, 3), 4096 - n * 16, &o), 0);
        for (int at = 0; at < 4; at++) { /* at any alignment */
            uint64_t hash = 0, want = due(seed, keys + at, n);
            EQ(tatcell_table_hash(&k.table, keys + at, n, &hash), 0);
            EQ(hash, want);
            DO(lands(&k, want, keys + at, n));
            if (n == 0) break;
        }
        /* As one of many, whose lines are asked for. */
        tatcell_burst_t b = TATCELL_BURST_INIT, next = kit_burst(&k.limit, SECOND, keys, n, 1, 9);
        EQ(tatcell_table_check_burst(&k.table, &b, &next), 0);
        for (size_t i = 0; i < 9; i++) EQ(next.scratch[i], due(seed, keys + i, n));
        kit_free(&k);
    }
}

static uint64_t sip_1_3(const uint8_t *seed, const uint8_t *key, size_t n) {
    return siphash(1, 3, seed, key, n);
}

TEST(keys_of_every_length_hash_to_siphash_1_3_and_land_where_it_says) {
    as_documented(TATCELL_HASH_SIPHASH13, sip_1_3);
}

TEST(keys_of_every_length_hash_to_the_aes_hash_and_land_where_it_says) {
    if (tatcell_hash_available(TATCELL_HASH_AES) != 0) SKIP("this processor has no AES");
    as_documented(TATCELL_HASH_AES, aes_hash);
}

int main(void) {
    RUN(what_is_written_here_gives_the_vectors_of_its_sources);
    RUN(keys_of_every_length_hash_to_siphash_1_3_and_land_where_it_says);
    RUN(keys_of_every_length_hash_to_the_aes_hash_and_land_where_it_says);
    return check_end();
}
