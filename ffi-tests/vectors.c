/* vectors.c - replays vectors from other projects' tests (tests/data/vectors.tsv) through a cell and a table; all
 * stated columns must be exact. Usage: vectors FILE. tests/cell/vectors.rs has every form, and property.c holds each
 * form in C to an exact bucket. */
#include "kit.h"

typedef struct row {
    char name[32];
    uint64_t t_ns, burst, now, remaining, reset, retry;
    uint32_t cost, step;
    int32_t verdict;
} row;

static row rows[256];
static size_t row_count;

static int load(const char *path) {
    char line[512];
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    while (row_count < sizeof rows / sizeof *rows && fgets(line, sizeof line, f)) {
        char verdict[16], *field[12] = {0}, *p = line;
        if (line[0] == '#' || line[0] == '\n') continue;
        line[strcspn(line, "\n")] = 0;
        for (int i = 0; i < 12 && p; i++) {
            field[i] = p;
            p = strchr(p, '\t');
            if (p) *p++ = 0;
        }
        row *r = &rows[row_count++];
        if (!field[9]) return 0;
        snprintf(r->name, sizeof r->name, "%s", field[0]);
        snprintf(verdict, sizeof verdict, "%s", field[6]);
        r->t_ns = strtoull(field[1], NULL, 10);
        r->burst = strtoull(field[2], NULL, 10);
        r->step = (uint32_t)strtoul(field[3], NULL, 10);
        r->now = strtoull(field[4], NULL, 10);
        r->cost = (uint32_t)strtoul(field[5], NULL, 10);
        r->verdict = !strcmp(verdict, "ok") ? 0 : !strcmp(verdict, "deny") ? 1 : 2;
        r->remaining = strtoull(field[7], NULL, 10);
        r->reset = strtoull(field[8], NULL, 10);
        r->retry = !strcmp(field[9], "never") ? UINT64_MAX : strtoull(field[9], NULL, 10);
    }
    fclose(f);
    return row_count >= 37; /* the whole sample */
}

/* A step of a new vector starts with a fresh key. */
static int starts(size_t i) {
    return i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0;
}

static void same(const row *r, const tatcell_decision_t *d) {
    EQ(d->verdict, r->verdict);
    EQ(d->remaining, r->remaining);
    EQ(d->reset_after, r->reset);
    EQ(d->retry_after, r->retry);
    EQ(d->burst, r->burst);
    EQ(d->cost, r->cost);
}

#define EACH_ROW(r) \
    for (size_t i_ = 0; i_ < row_count; i_++) \
        for (const row *r = &rows[i_]; r; r = NULL) \
            if ((NOTE("%s step %u", r->name, r->step), 1))

TEST(cell_check_ex_gives_every_column) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit;
    EACH_ROW(r) {
        tatcell_decision_t d = TATCELL_DECISION_INIT;
        if (starts(i_)) {
            cell.word = 0;
            EQ(tatcell_limit_init_rate(&limit, 1, r->t_ns, r->burst), 0);
        }
        EQ(tatcell_cell_check_ex(&cell, &limit, r->now, r->cost, 0, &d, NULL), r->verdict);
        DO(same(r, &d));
        EQ(tatcell_cell_peek(&cell, &limit, r->now, 0, &d), 0);
        EQ(d.remaining, r->remaining);
        EQ(d.reset_after, r->reset);
    }
}

TEST(table_check_ex_gives_every_column) {
    kit_table k = {0};
    EACH_ROW(r) {
        tatcell_decision_t d = TATCELL_DECISION_INIT;
        if (starts(i_)) {
            kit_free(&k);
            EQ(kit_make(&k, kit_spec(1, r->t_ns, r->burst), 64, NULL), 0);
        }
        EQ(tatcell_table_check_ex_hash(&k.table, &k.limit, r->now, kit_hash(&k, r->name), r->cost, 0, &d, NULL),
            r->verdict);
        DO(same(r, &d));
        EQ(d.tracking, TATCELL_TRACKED);
    }
    kit_free(&k);
}

/* Hashes of the keys 30 31 32 .. under the seed 00 01 .. 0f: SipHash-1-3 by its paper, and the AES hash by FIPS 197 and
 * the drawing in the documents. tests/table/hash.rs works them out for keys of every length. */
static const struct { uint32_t length; uint64_t siphash, aes; } hashes[] = {
    {0, UINT64_C(0xabac0158050fc4dc), UINT64_C(0x436b947de963ee26)},
    {3, UINT64_C(0xfebff5ea7ce50a70), UINT64_C(0x4f45d940e090cabc)},
    {4, UINT64_C(0xbe8dc4fd05f3b178), UINT64_C(0xd527e99e6b0a02fc)},
    {5, UINT64_C(0xb176e13ffe4bc260), UINT64_C(0x05ae95dfaae2a92f)},
    {15, UINT64_C(0x8038409800759711), UINT64_C(0x5689b341d83262aa)},
    {16, UINT64_C(0xd2ed34a18dc6e935), UINT64_C(0x95f59244724dccf0)},
    {17, UINT64_C(0xd42e13e1dcd22989), UINT64_C(0x6a0c3058e66f8454)},
    {32, UINT64_C(0xa0fb73dcdaaaaa33), UINT64_C(0x80286e890607c28f)},
    {33, UINT64_C(0x7489b532e25d94fc), UINT64_C(0x008a3b979a8a169a)},
};

static void hash_as_documented(uint32_t kind) {
    uint8_t seed[16], key[33];
    for (size_t i = 0; i < sizeof seed; i++) seed[i] = (uint8_t)i;
    for (size_t i = 0; i < sizeof key; i++) key[i] = (uint8_t)(0x30 + i);
    kit_table k;
    tatcell_table_options_t o = kit_options(NULL);
    o.seed = seed, o.hash = kind;
    EQ(kit_make(&k, kit_spec(10, SECOND, 3), 64, &o), 0);
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++) {
        uint64_t hash = 0, due = kind == TATCELL_HASH_AES ? hashes[i].aes : hashes[i].siphash;
        NOTE("%u bytes", hashes[i].length);
        EQ(tatcell_table_hash(&k.table, key, hashes[i].length, &hash), 0);
        EQ(hash, due);
        /* As the only key of a burst whose lines are prefetched. */
        tatcell_burst_t b = TATCELL_BURST_INIT, next = kit_burst(&k.limit, SECOND, key, hashes[i].length, 1, 1);
        EQ(tatcell_table_check_burst(&k.table, &b, &next), 0);
        EQ(next.scratch[0], due);
        /* A check of the key, which for 4 and 16 bytes may hash by a shorter way, charges the key of that hash. */
        EQ(tatcell_table_check(&k.table, &k.limit, SECOND, key, hashes[i].length, 3, NULL), 0);
        EQ(tatcell_table_check(&k.table, &k.limit, SECOND, key, hashes[i].length, 1, NULL), TATCELL_NON_CONFORMING);
        EQ(tatcell_table_check_hash(&k.table, &k.limit, SECOND, due, 1, NULL), TATCELL_NON_CONFORMING);
    }
    kit_free(&k);
}

TEST(keys_hash_to_siphash_1_3_of_the_seed) {
    hash_as_documented(TATCELL_HASH_SIPHASH13);
}

TEST(keys_hash_to_the_aes_hash_of_the_seed) {
    if (tatcell_hash_available(TATCELL_HASH_AES) != 0) SKIP("this processor has no AES");
    hash_as_documented(TATCELL_HASH_AES);
}

int main(int argc, char **argv) {
    if (argc != 2 || !load(argv[1])) {
        printf("not ok 1 - vectors_are_read\n# usage: vectors FILE\n");
        return 1;
    }
    RUN(cell_check_ex_gives_every_column);
    RUN(table_check_ex_gives_every_column);
    RUN(keys_hash_to_siphash_1_3_of_the_seed);
    RUN(keys_hash_to_the_aes_hash_of_the_seed);
    return check_end();
}
