/* native.c STEPS: tatcell_bpf.h, compiled for this machine, against the library; a million steps for each of 12 tables
 * and each of 5 cells unless told otherwise. Then what the _init functions refuse. */
#include "walk.h"

static void native(void *context, const asked_t *ask, answered_t *got) {
    pair_t *p = context;
    tatcell_bpf_line_t *lines = (tatcell_bpf_line_t *)(void *)p->b;
    uint64_t hash = tatcell_bpf_hash(&p->bpf, ask->key, 0, ask->length);
    uint32_t home = tatcell_bpf_home(&p->bpf, hash), next = tatcell_bpf_next(&p->bpf, home);
    tatcell_bpf_answer_t answer;
    got->verdict = tatcell_bpf_table_check(&p->bpf, &lines[home], &lines[next], &p->bpf_limits[ask->limit], ask->now,
                                           hash, ask->cost, &answer);
    got->retry_after = answer.retry_after;
    got->tracking = answer.tracking;
    got->flags = answer.flags;
}

static void tables(long steps) {
    for (size_t i = 0; i < WALK_COUNT; i++) {
        const walk_t *w = &WALKS[i];
        char why[256] = "", name[160];
        long counts[6] = {0};
        pair_t *p = calloc(1, sizeof *p);
        size_t bytes = tatcell_table_bytes(w->slots);
        void *a = aligned_alloc(64, bytes), *b = aligned_alloc(64, bytes);
        int32_t rc = walk_make(p, w, a, b);
        if (rc < 0) say(why, "%s", tatcell_strerror(rc));
        if (!why[0]) walk(p, w, steps, native, p, counts, why);
        /* A walk that meets no full set, or denies nothing, shows nothing. */
        if (!why[0] && (counts[0] < steps / 2000 || counts[1] < steps / 10000))
            say(why, "%ld denied, %ld never", counts[0], counts[1]);
        if (!why[0] && w->slots < 64 && counts[2 + TATCELL_UNTRACKED] + counts[2 + TATCELL_INHERITED] < steps / 100)
            say(why, "hardly any set was full");
        snprintf(name, sizeof name,
                 "native table %s: %ld steps equal (denied %ld, never %ld, untracked %ld, inherited %ld, "
                 "forgiven %ld)",
                 w->name, steps, counts[0], counts[1], counts[3], counts[4], counts[5]);
        claim(name, why);
        free(a), free(b), free(p);
    }
}

/* A key of every length that is hashed here. */
static void hashes(void) {
    char why[256] = "";
    pair_t *p = calloc(1, sizeof *p);
    size_t bytes = tatcell_table_bytes(64);
    void *a = aligned_alloc(64, bytes), *b = aligned_alloc(64, bytes);
    uint64_t x = 7, words[2], hash;
    if (walk_make(p, &(walk_t){"", 0, 20, 0, 0, 64, 1, 0, 0}, a, b) < 0) say(why, "no table");
    for (uint32_t length = 0; length <= 16 && !why[0]; length++) {
        for (int i = 0; i < 2000; i++) {
            unsigned char key[16] = {0};
            for (uint32_t k = 0; k < length; k++) key[k] = (unsigned char)walk_random(&x);
            memcpy(words, key, 16);
            (void)tatcell_table_hash(&p->ours, key, length, &hash);
            if (hash != tatcell_bpf_hash(&p->bpf, words[0], words[1], length)) say(why, "of %u bytes", length);
        }
    }
    claim("native hash: equal for keys of 0 to 16 bytes", why);
    free(a), free(b), free(p);
}

static void cells(long steps) {
    static const char *const NAMES[] = {"plain", "penalty", "shadow", "heal", "coarse"};
    for (int kind = 0; kind < 5; kind++) {
        char why[256] = "", name[128];
        tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
        tatcell_limit_t limit;
        tatcell_bpf_limit_t bpf = {0};
        uint64_t x = 5 + (uint64_t)kind, now = 0;
        long denied = 0, never = 0, healed = 0;
        int32_t rc;
        spec.units = 1000, spec.period = 1000000000, spec.burst = 9;
        if (kind == 1) spec.penalty = 4;
        if (kind == 2) spec.flags = TATCELL_LIMIT_SHADOW;
        if (kind == 3) spec.flags = TATCELL_LIMIT_HEAL | TATCELL_LIMIT_RESOLUTION, spec.resolution = 0;
        if (kind == 4) spec.flags = TATCELL_LIMIT_RESOLUTION, spec.resolution = -10;
        if ((rc = tatcell_limit_init_spec(&limit, &spec)) < 0) say(why, "%s", tatcell_strerror(rc));
        if (!why[0] && (rc = tatcell_bpf_limit_init(&bpf, &limit)) < 0) say(why, "%s", tatcell_strerror(rc));
        tatcell_cell_t ours = TATCELL_CELL_INIT;
        uint64_t theirs = 0;
        for (long i = 0; i < steps && !why[0]; i++) {
            uint64_t random = walk_random(&x), cost = (random >> 40) % 4, a = 0, b = 0;
            if (i) now += random & 7 ? random >> 13 & 0x1fffff : 0 - (random >> 30 & 0xffff);
            if ((random >> 50 & 31) == 0) cost = (random >> 8) % 20;
            if ((random >> 56) == 1) ours.word = theirs = walk_random(&x), healed++;
            if ((random >> 56) == 2) ours.word = theirs = now + (random >> 20 & 0xffff), healed++;
            int32_t want = tatcell_cell_check(&ours, &limit, now, cost, &a);
            int32_t got = tatcell_bpf_cell_check(&theirs, &bpf, now, cost, &b);
            if (want != got || a != b || ours.word != theirs)
                say(why, "step %ld: verdict %d, wait %llu, the library %d, %llu", i, got, (unsigned long long)b, want,
                    (unsigned long long)a);
            denied += want == TATCELL_NON_CONFORMING;
            never += want == TATCELL_NEVER;
        }
        if (!why[0] && kind != 2 && (denied < steps / 100 || !never || !healed)) say(why, "%ld denied", denied);
        snprintf(name, sizeof name, "native cell %s: %ld steps equal (denied %ld, never %ld)", NAMES[kind], steps,
                 denied, never);
        claim(name, why);
    }
}

static void refusals(void) {
    char why[256] = "";
    static TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES(64)], other[TATCELL_TABLE_BYTES(64)];
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT, window = TATCELL_LIMIT_SPEC_INIT;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    tatcell_table_t table, foreign;
    tatcell_limit_t limit, limit32;
    tatcell_bpf_table_t bpf;
    tatcell_bpf_limit_t to;
    uint8_t wrong[16] = {1};
    int32_t rc;
    spec.units = 10, spec.period = 1000000000, spec.burst = 5;
    window.units = 10, window.period = 1000000000, window.burst = 10, window.algorithm = TATCELL_ALGORITHM_FIXED_WINDOW;
    options.fastest = &spec, options.seed = walk_seed;
#define IS(want, call) \
    do { \
        if ((rc = (call)) != (want)) say(why, "%s is %d", #call, rc); \
    } while (0)
    IS(0, tatcell_table_init(&table, memory, sizeof memory, &options));
    IS(0, tatcell_limit_init_table(&limit, &table, &spec));
    IS(0, tatcell_bpf_table_init(&bpf, &table, walk_seed));
    IS(0, tatcell_bpf_limit_init_table(&to, &table, &limit));
    IS(TATCELL_ERR_SEED, tatcell_bpf_table_init(&bpf, &table, NULL));
    IS(TATCELL_ERR_WRONG_SEED, tatcell_bpf_table_init(&bpf, &table, wrong));
    IS(TATCELL_ERR_NULL, tatcell_bpf_table_init(NULL, &table, walk_seed));
    IS(TATCELL_ERR_NULL, tatcell_bpf_limit_init(NULL, &limit));
    options.skew = 5000000000;
    IS(0, tatcell_table_init(&foreign, other, sizeof other, &options));
    IS(TATCELL_ERR_FOREIGN, tatcell_bpf_limit_init_table(&to, &foreign, &limit));
    options.skew = 0, options.hash = TATCELL_HASH_AES;
    rc = tatcell_table_init(&foreign, other, sizeof other, &options);
    if (rc == 0) IS(TATCELL_ERR_HASH_UNAVAILABLE, tatcell_bpf_table_init(&bpf, &foreign, walk_seed));
    options.hash = TATCELL_HASH_CALLER;
    IS(0, tatcell_table_init(&foreign, other, sizeof other, &options));
    IS(0, tatcell_bpf_table_init(&bpf, &foreign, NULL));
    options.hash = 0, options.flags = TATCELL_TABLE_EXCLUSIVE;
    IS(0, tatcell_table_init(&foreign, other, sizeof other, &options));
    IS(TATCELL_ERR_MODE, tatcell_bpf_table_init(&bpf, &foreign, walk_seed));
    options.flags = 0, options.fastest = &window;
    IS(0, tatcell_table_init(&foreign, other, sizeof other, &options));
    IS(TATCELL_ERR_ALGORITHM, tatcell_bpf_table_init(&bpf, &foreign, walk_seed));
    IS(0, tatcell_limit_init_table(&limit, &foreign, &window));
    IS(TATCELL_ERR_ALGORITHM, tatcell_bpf_limit_init(&to, &limit));
    IS(0, tatcell_limit32_init(&limit32, 10, 1000, 5));
    IS(TATCELL_ERR_LIMIT, tatcell_bpf_limit_init(&to, &limit32));
    claim("native: what BPF cannot decide is refused by name", why);
}

int main(int argc, char **argv) {
    long steps = argc > 1 ? atol(argv[1]) : 1000000;
    hashes();
    refusals();
    cells(steps);
    tables(steps);
    return check_end();
}
