/* counted.c - the algorithms that count beside their textbook rules (rules.h): cells, exclusive cells, tables and
 * exclusive tables through the C ABI, every verdict compared, and what is left.
 *
 * Usage: counted [DECISIONS [SEED]]: so many of each algorithm (4e5), printed. Windows, units and units of time are
 * drawn by the seed, a number from 1; a failure prints it, and `counted 1 SEED` runs the one alone. */

#include "kit.h"
#include "rules.h"

enum { KEYS = 5, STEPS = 2000 };

static uint64_t below(unsigned long long *random, uint64_t n) {
    return n ? (uint64_t)(((u128)check_random(random) * n) >> 64) : 0;
}

/* A key in its cells, what the textbook has of it, and what it was charged last. */
typedef struct key {
    tatcell_cell_t cell, own;
    state s, charged;
    uint64_t units, hash;
    tatcell_permit_t permit[4];
} key;

typedef struct trace {
    unsigned long long random;
    shape l;
    rule by;
    tatcell_limit_t limit, keyed;
    kit_table table, alone;
    key keys[KEYS];
    uint64_t top, swept, skew;
    long decisions, verdicts[2], credits;
} trace;

/* A limit that cells and slots can hold. For quotas the emission interval is a whole number of units of time. Windows
 * are longer than a claim, two units of time: the first of a key in a table ends no sooner. */
static int setup(trace *t, uint32_t algorithm, int aligned) {
    int z = (int)below(&t->random, 12);
    shape *l = &t->l;
    l->u = UINT64_C(1) << z;
    l->units = 1 + below(&t->random, UINT64_C(1) << below(&t->random, 8));
    l->ticks = 3 * l->u + 1 + below(&t->random, l->u << below(&t->random, 12));
    if (algorithm == TATCELL_ALGORITHM_QUOTA_LINEAR) l->ticks = l->units * l->u * (4 + below(&t->random, 64));
    l->w = (l->ticks + l->u - 1) / l->u;
    l->aligned = aligned;
    l->phase = aligned ? below(&t->random, l->ticks) : 0;
    t->skew = 2 * l->ticks + 2 * l->u;
    tatcell_limit_spec_t spec = kit_spec(l->units, l->ticks, 0);
    spec.algorithm = algorithm;
    spec.phase = l->phase;
    spec.skew = t->skew;
    spec.resolution = -z;
    spec.flags = TATCELL_LIMIT_RESOLUTION | (aligned ? TATCELL_LIMIT_ALIGNED : 0u);
    if (tatcell_limit_init_spec(&t->limit, &spec) != 0) return 0;
    spec.flags &= ~(uint32_t)TATCELL_LIMIT_RESOLUTION;
    tatcell_table_options_t o = kit_options(NULL);
    o.flags = TATCELL_TABLE_RESOLUTION;
    o.resolution = -z;
    o.skew = t->skew;
    int32_t shared = kit_make(&t->table, spec, 128, &o);
    o.flags |= TATCELL_TABLE_EXCLUSIVE;
    int32_t alone = kit_make(&t->alone, spec, 128, &o);
    if (shared == 0 && alone == 0) {
        t->keyed = t->table.limit;
        t->top = t->swept = (UINT64_C(1) << 52) + below(&t->random, UINT64_C(1) << 52);
        for (unsigned char k = 0; k < KEYS; k++) t->keys[k].hash = kit_hash(&t->table, (char[]){(char)('a' + k), 0});
        return 1;
    }
    kit_free(&t->table);
    kit_free(&t->alone);
    return 0;
}

/* The clock goes on, mostly by little; to the borders of windows; back by up to the skew. */
static uint64_t clock_of(trace *t) {
    uint64_t w = t->l.ticks, *top = &t->top;
    switch (below(&t->random, 20)) {
        case 0: *top += below(&t->random, 3 * w); break;
        case 1: *top += w - 1 + below(&t->random, 3); break;
        case 2: return *top - below(&t->random, t->skew);
        case 3: case 4: case 5: break;
        case 6: *top += below(&t->random, 50) ? 0 : below(&t->random, 1000 * w); break;
        default: *top += below(&t->random, w / 16 + 2);
    }
    return *top;
}

static uint64_t cost_of(trace *t) {
    uint64_t units = t->l.units;
    switch (below(&t->random, 16)) {
        case 0: return 1 + below(&t->random, units + 2);
        case 1: case 2: case 3: return 1 + below(&t->random, units / 4 + 1);
        default: return 1;
    }
}

/* What the textbook answers. */
static int32_t wanted(trace *t, key *k, uint64_t now, uint64_t n, uint64_t *left) {
    if (n > t->l.units) {
        uint64_t none = 0;
        state copy = k->s;
        (void)t->by(&t->l, &copy, now, none, left);
        return TATCELL_NEVER;
    }
    int passes = t->by(&t->l, &k->s, now, n, left);
    t->verdicts[passes]++;
    return passes ? TATCELL_PASS : TATCELL_NON_CONFORMING;
}

static void cells(trace *t, key *k, uint64_t now, uint64_t n, int32_t want) {
    EQ(tatcell_cell_check(&k->cell, &t->limit, now, n, NULL), want);
    EQ(tatcell_cell_check_exclusive(&k->own, &t->limit, now, n, NULL), want);
}

static void one(trace *t, key *k, uint64_t now) {
    uint64_t n = cost_of(t), left = 0;
    int32_t want = wanted(t, k, now, n, &left);
    t->decisions += 4;
    if (below(&t->random, 2)) {
        DO(cells(t, k, now, n, want));
        EQ(tatcell_table_check_hash(&t->table.table, &t->keyed, now, k->hash, n, NULL), want);
        EQ(tatcell_table_check_hash(&t->alone.table, &t->alone.limit, now, k->hash, n, NULL), want);
        return;
    }
    tatcell_decision_t d[4] = {TATCELL_DECISION_INIT, TATCELL_DECISION_INIT, TATCELL_DECISION_INIT,
                               TATCELL_DECISION_INIT};
    EQ(tatcell_cell_check_ex(&k->cell, &t->limit, now, n, 0, &d[0], NULL), want);
    EQ(tatcell_cell_check_ex(&k->own, &t->limit, now, n, 0, &d[1], NULL), want);
    EQ(tatcell_table_check_ex_hash(&t->table.table, &t->keyed, now, k->hash, n, 0, &d[2], NULL), want);
    EQ(tatcell_table_check_ex_hash(&t->alone.table, &t->alone.limit, now, k->hash, n, 0, &d[3], NULL), want);
    for (int i = 0; i < 4; i++) EQ(d[i].remaining, left);
    if (want != TATCELL_PASS) return;
    k->charged = k->s, k->units = n;
    for (int i = 0; i < 4; i++) k->permit[i] = d[i].permit;
}

/* Up to 64 requests of one unit each, or of any: tables at once, cells in order. */
static void burst(trace *t, uint64_t now) {
    uint32_t n = 2 + (uint32_t)below(&t->random, 63), costs[TATCELL_BURST_MAX];
    int whole = (int)below(&t->random, 2);
    uint64_t hashes[TATCELL_BURST_MAX], want = 0, left;
    for (uint32_t i = 0; i < n; i++) {
        key *k = &t->keys[below(&t->random, KEYS)];
        costs[i] = whole ? 1 : (uint32_t)cost_of(t);
        hashes[i] = k->hash;
        int32_t verdict = wanted(t, k, now, costs[i], &left);
        DO(cells(t, k, now, costs[i], verdict));
        want |= (uint64_t)(verdict == TATCELL_PASS) << i;
    }
    for (int i = 0; i < 2; i++) {
        tatcell_burst_t many = TATCELL_BURST_INIT;
        many.limit = i ? &t->alone.limit : &t->keyed;
        many.now = now;
        many.hashes = hashes;
        many.count = n;
        many.costs = whole ? NULL : costs;
        EQ(tatcell_table_check_burst(i ? &t->alone.table : &t->table.table, &many, NULL), 0);
        EQ(many.pass, want);
    }
    t->decisions += 4 * n;
}

/* What was charged last comes back where its window goes on. A permit lasts a window by the clock of its charge. */
static void refund(trace *t, key *k, uint64_t now) {
    uint64_t units = k->units, credited[4];
    k->units = 0;
    if (units == 0 || now > k->permit[0].tick + t->l.ticks) return;
    uint64_t want = give_back(&t->l, t->by, &k->s, now, &k->charged, units);
    EQ(tatcell_cell_refund(&k->cell, &t->limit, now, &k->permit[0], &credited[0]), 0);
    EQ(tatcell_cell_refund(&k->own, &t->limit, now, &k->permit[1], &credited[1]), 0);
    EQ(tatcell_table_refund_hash(&t->table.table, &t->keyed, now, k->hash, &k->permit[2], &credited[2]), 0);
    EQ(tatcell_table_refund_hash(&t->alone.table, &t->alone.limit, now, k->hash, &k->permit[3], &credited[3]), 0);
    for (int i = 0; i < 4; i++) EQ(credited[i], want);
    t->credits += want > 0;
}

static void steps(trace *t, int seed) {
    for (int i = 0; i < STEPS; i++) {
        NOTE("seed %d step %d", seed, i);
        uint64_t before = t->top, now = clock_of(t);
        /* No slot may be forgotten for a span. */
        if (t->top - t->swept > t->l.ticks) {
            t->swept = before;
            EQ(tatcell_table_sweep(&t->table.table, before, 0, 128, NULL), 0);
            EQ(tatcell_table_sweep(&t->alone.table, before, 0, 128, NULL), 0);
        }
        key *k = &t->keys[below(&t->random, KEYS)];
        switch (below(&t->random, 32)) {
            case 0: DO(burst(t, now)); break;
            case 1: case 2: DO(refund(t, k, now)); break;
            default: DO(one(t, k, now)); break;
        }
    }
}

static long each = 400000;
static int only;

static void beside(const char *name, uint32_t algorithm, int aligned, rule by) {
    static trace t;
    long decisions = 0, verdicts[2] = {0, 0}, credits = 0;
    for (int seed = only ? only : 1; decisions < each; seed++) {
        memset(&t, 0, sizeof t);
        t.random = (unsigned long long)seed * 0x9e3779b97f4a7c15ULL;
        t.by = by;
        if (!setup(&t, algorithm, aligned)) {
            EXPECT(!only && seed < 1000000);
            continue;
        }
        DO(steps(&t, seed));
        kit_free(&t.table);
        kit_free(&t.alone);
        decisions += t.decisions, credits += t.credits;
        verdicts[0] += t.verdicts[0], verdicts[1] += t.verdicts[1];
    }
    printf("%s: %ld decisions compared, 0 differences, and %ld refunds of something\n", name, decisions, credits);
    EXPECT(only || (verdicts[0] > decisions / 40 && verdicts[1] > decisions / 40 && credits > decisions / 2000));
}

TEST(fixed_windows_decide_as_the_textbook) {
    beside("fixed window", TATCELL_ALGORITHM_FIXED_WINDOW, 0, fixed);
}

TEST(aligned_windows_decide_as_the_textbook) {
    beside("fixed window, aligned", TATCELL_ALGORITHM_FIXED_WINDOW, 1, fixed);
}

TEST(sliding_counters_decide_as_the_textbook) {
    beside("sliding counter", TATCELL_ALGORITHM_SLIDING_COUNTER, 0, sliding);
}

TEST(quotas_decide_as_the_textbook) {
    beside("quota-linear", TATCELL_ALGORITHM_QUOTA_LINEAR, 0, quota);
}

/* Time goes on by whole half-lives, so that the level is exact in binary; near the limit the table may be stricter. */
TEST(a_table_of_decaying_levels_halves_them) {
    enum { HALF = 1 << 20, UNITS = 10 };
    tatcell_limit_spec_t spec = kit_spec(UNITS, HALF, 0);
    spec.algorithm = TATCELL_ALGORITHM_DECAY;
    tatcell_table_options_t options = kit_options(&spec);
    tatcell_table_t table;
    tatcell_limit_t limit;
    unsigned long long random = 9;
    double levels[KEYS] = {0};
    uint64_t last[KEYS] = {0}, t = (uint64_t)1 << 30, verdicts[2] = {0, 0};
    size_t bytes = tatcell_table_bytes(64);
    void *memory = kit_memory(bytes);
    EQ(tatcell_table_init(&table, memory, bytes, &options), 0);
    EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);
    for (int i = 0; i < 200000; i++) {
        unsigned char key = (unsigned char)below(&random, KEYS);
        uint64_t n = 1 + below(&random, 3);
        t += below(&random, 8) == 0 ? HALF : 0;
        for (; last[key] < t && levels[key] > 1e-9; last[key] += HALF) levels[key] /= 2;
        last[key] = t;
        double after = levels[key] + (double)n;
        int32_t rc = tatcell_table_check(&table, &limit, t, &key, 1, n, NULL);
        if (after > UNITS) EQ(rc, TATCELL_NON_CONFORMING);
        else if (after < UNITS - 0.05) EQ(rc, TATCELL_PASS);
        if (rc == TATCELL_PASS) levels[key] = after;
        verdicts[rc == TATCELL_PASS]++;
    }
    free(memory);
    EXPECT(verdicts[0] > 10000 && verdicts[1] > 10000);
}

int main(int argc, char **argv) {
    if (argc > 1) each = (long)strtod(argv[1], NULL);
    if (argc > 2) only = atoi(argv[2]);
    RUN(fixed_windows_decide_as_the_textbook);
    RUN(aligned_windows_decide_as_the_textbook);
    RUN(sliding_counters_decide_as_the_textbook);
    RUN(quotas_decide_as_the_textbook);
    RUN(a_table_of_decaying_levels_halves_them);
    return check_end();
}
