/* counted.c - tables of the other algorithms beside their textbook rules, one state a key: every verdict is compared.
 * The unit of time is a tick here and the quota divides the window, so the rules need no rounding. */

#include "kit.h"

enum { KEYS = 5, WINDOW = 1000, UNITS = 10, STEPS = 200000 };

/* What a key has: the start (fixed, sliding) or end (quota) of its window, the smooth time, and counts. */
typedef struct state {
    uint64_t at, smooth, now, before;
    int live;
} state;

static uint64_t seed_ = 88172645463325252u;

static uint64_t below(uint64_t n) {
    seed_ ^= seed_ << 13, seed_ ^= seed_ >> 7, seed_ ^= seed_ << 17;
    return (seed_ >> 11) % n;
}

/* Anchored: a window begins with the first request behind the one before. */
static int fixed(state *s, uint64_t t, uint64_t n) {
    state next = s->live && t < s->at + WINDOW ? *s : (state){.at = t, .live = 1};
    if (next.now + n > UNITS) return 0;
    next.now += n, *s = next;
    return 1;
}

static int sliding(state *s, uint64_t t, uint64_t n) {
    state next = *s;
    if (!next.live || t >= next.at + 2 * WINDOW) next = (state){.at = t, .live = 1};
    else if (t >= next.at + WINDOW) next.before = next.now, next.now = 0, next.at += WINDOW;
    if (next.before * (WINDOW - (t - next.at)) + (next.now + n) * WINDOW > UNITS * WINDOW) return 0;
    next.now += n, *s = next;
    return 1;
}

/* Finch's: a quota in a window; who uses it up gets one unit each emission interval, until all has drained. The request
 * that begins a window never switches. */
static int quota(state *s, uint64_t t, uint64_t n) {
    const uint64_t emission = WINDOW / UNITS;
    state next = *s;
    const int begins = !next.live || t >= (next.smooth ? next.smooth : next.at);
    if (begins) next = (state){.at = t + WINDOW, .live = 1};
    if (next.smooth) {
        if (t + UNITS * emission < next.smooth + n * emission) return 0;
        next.smooth += n * emission;
    } else {
        if (next.now + n > UNITS) return 0;
        next.now += n;
        if (next.now == UNITS && !begins) next.smooth = next.at - emission + UNITS * emission;
    }
    *s = next;
    return 1;
}

static void beside(uint32_t algorithm, int (*rule)(state *, uint64_t, uint64_t)) {
    tatcell_limit_spec_t spec = kit_spec(UNITS, WINDOW, 0);
    spec.algorithm = algorithm;
    tatcell_table_options_t options = kit_options(&spec);
    tatcell_table_t table;
    tatcell_limit_t limit;
    state keys[KEYS] = {{0}};
    size_t bytes = tatcell_table_bytes(64);
    uint64_t t = 1000000, verdicts[2] = {0, 0};
    void *memory = kit_memory(bytes);
    EQ(tatcell_table_init(&table, memory, bytes, &options), 0);
    EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);
    for (int i = 0; i < STEPS; i++) {
        unsigned char key = (unsigned char)below(KEYS);
        uint64_t n = 1 + below(below(8) == 0 ? UNITS : 2);
        t += below(64) == 0 ? below(3 * WINDOW) : below(30);
        int wanted = rule(&keys[key], t, n);
        EQ(tatcell_table_check(&table, &limit, t, &key, 1, n, NULL), wanted ? TATCELL_PASS : TATCELL_NON_CONFORMING);
        verdicts[wanted]++;
    }
    free(memory);
    EXPECT(verdicts[0] > STEPS / 10 && verdicts[1] > STEPS / 10);
}

TEST(a_table_of_fixed_windows_decides_as_the_textbook) {
    beside(TATCELL_ALGORITHM_FIXED_WINDOW, fixed);
}

TEST(a_table_of_sliding_counters_decides_as_the_textbook) {
    beside(TATCELL_ALGORITHM_SLIDING_COUNTER, sliding);
}

TEST(a_table_of_quotas_decides_as_the_textbook) {
    beside(TATCELL_ALGORITHM_QUOTA_LINEAR, quota);
}

/* Time goes on by whole half-lives, so that the level is exact in binary; near the limit the table may be stricter. */
TEST(a_table_of_decaying_levels_halves_them) {
    enum { HALF = 1 << 20 };
    tatcell_limit_spec_t spec = kit_spec(UNITS, HALF, 0);
    spec.algorithm = TATCELL_ALGORITHM_DECAY;
    tatcell_table_options_t options = kit_options(&spec);
    tatcell_table_t table;
    tatcell_limit_t limit;
    double levels[KEYS] = {0};
    uint64_t last[KEYS] = {0}, t = (uint64_t)1 << 30, verdicts[2] = {0, 0};
    size_t bytes = tatcell_table_bytes(64);
    void *memory = kit_memory(bytes);
    EQ(tatcell_table_init(&table, memory, bytes, &options), 0);
    EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);
    for (int i = 0; i < STEPS; i++) {
        unsigned char key = (unsigned char)below(KEYS);
        uint64_t n = 1 + below(3);
        t += below(8) == 0 ? HALF : 0;
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
    EXPECT(verdicts[0] > STEPS / 20 && verdicts[1] > STEPS / 20);
}

int main(void) {
    RUN(a_table_of_fixed_windows_decides_as_the_textbook);
    RUN(a_table_of_sliding_counters_decides_as_the_textbook);
    RUN(a_table_of_quotas_decides_as_the_textbook);
    RUN(a_table_of_decaying_levels_halves_them);
    return check_failures != 0;
}
