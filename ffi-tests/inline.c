/* inline.c - tatcell_inline.h: every answer and every word is the library's, and both kinds of calls share a cell. */
#include "tatcell_inline.h"

#include <pthread.h>

#include "kit.h"

enum { STEPS = 100000, THREADS = 4, REQUESTS = 100000, BURST = 1000 };

static uint64_t seed = 1;

/* splitmix64 */
static uint64_t draw(void) {
    uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A limit, and whether its usual checks are decided inline. */
typedef struct kind {
    const char *name;
    tatcell_limit_spec_t spec;
    int is_inline;
} kind;

enum { KINDS = 15 };
static kind kinds[KINDS];

static kind *add(int at, const char *name, uint64_t units, uint64_t period, uint64_t burst, int is_inline) {
    kinds[at].name = name;
    kinds[at].spec = kit_spec(units, period, burst);
    kinds[at].is_inline = is_inline;
    return &kinds[at];
}

static void add_all(void) {
    add(0, "burst of 1", 1, 1000000, 1, 1);
    add(1, "burst of 20", 3, 700000, 20, 1);
    add(2, "long", 1, SECOND, 31000000, 1);
    add(3, "fast", 1000, 3000, 50, 1);
    add(4, "a q-unit is 2^-40 ticks", 5, 100, 10, 1)->spec.resolution = 40;
    kinds[4].spec.flags = TATCELL_LIMIT_RESOLUTION;
    add(5, "soft", 1, 100000, 10, 1)->spec.soft = 5;
    add(6, "debt", 1, 100000, 10, 1)->spec.max_debt = 7;
    add(7, "delay", 1, 100000, 10, 1)->spec.max_delay = 700000;
    add(8, "a q-unit is 16 ticks", 1, 16 * 100000, 10, 0)->spec.resolution = -4;
    kinds[8].spec.flags = TATCELL_LIMIT_RESOLUTION;
    add(9, "heal", 1, 100000, 10, 0)->spec.flags = TATCELL_LIMIT_HEAL;
    add(10, "shadow", 1, 100000, 10, 0)->spec.flags = TATCELL_LIMIT_SHADOW;
    add(11, "penalty", 1, 100000, 10, 0)->spec.penalty = 3;
    add(12, "fixed window", 10, 100000, 0, 0)->spec.algorithm = TATCELL_ALGORITHM_FIXED_WINDOW;
    add(13, "quota-linear", 10, 100000, 0, 0)->spec.algorithm = TATCELL_ALGORITHM_QUOTA_LINEAR;
    add(14, "decay", 10, 100000, 0, 0)->spec.algorithm = TATCELL_ALGORITHM_DECAY;
}

/* The clock goes on, stands, steps back, jumps anywhere; the word is now and then any word. */
static void beside(const tatcell_limit_t *limit, uint64_t period, uint64_t burst, int exclusive,
                   int refuses) {
    tatcell_inline_limit_t here;
    tatcell_cell_t cell = TATCELL_CELL_INIT, twin = TATCELL_CELL_INIT;
    uint64_t now = 0 - 3 * period, seen[2] = {0, 0};
    EQ(tatcell_inline_limit_init(&here, limit), 0);
    for (int i = 0; i < STEPS; i++) {
        uint64_t r = draw(), cost = (r & 7) != 0 ? 1 : (r >> 3) % (burst + 3), retry[2] = {77, 77};
        uint64_t *a = r >> 60 ? &retry[0] : NULL, *b = a ? &retry[1] : NULL;
        now += (r >> 32) % (period + 1);
        if (r >> 48 & 1) now -= (r >> 20) % (period + 1);
        if ((r >> 49 & 1023) == 0) now = draw();
        if ((r >> 49 & 1023) == 1) cell.word = twin.word = draw();
        if ((r >> 49 & 1023) == 2) cell.word = twin.word = 0;
        if ((r >> 49 & 1023) == 3) cost = draw();
        if ((r >> 49 & 1023) == 4) cell.word = twin.word = (now << here.shift) + here.window_q + (r >> 20) % 3;
        int32_t want, got;
        if (exclusive) {
            got = tatcell_inline_cell_check_exclusive(&cell, &here, now, cost, a);
            want = tatcell_cell_check_exclusive(&twin, limit, now, cost, b);
        } else {
            got = tatcell_inline_cell_check(&cell, &here, now, cost, a);
            want = tatcell_cell_check(&twin, limit, now, cost, b);
        }
        EQ(got, want);
        EQ(cell.word, twin.word);
        EQ(retry[0], retry[1]);
        seen[want == TATCELL_NON_CONFORMING] += want == TATCELL_PASS || want == TATCELL_NON_CONFORMING;
    }
    EXPECT(seen[0] > STEPS / 100);
    EXPECT(!refuses || seen[1] > STEPS / 100);
}

TEST(every_answer_and_word_is_the_librarys) {
    add_all();
    for (int i = 0; i < 2 * KINDS; i++) {
        const kind *k = &kinds[i / 2];
        tatcell_limit_t limit;
        NOTE("%s, %s", k->name, i % 2 ? "exclusive" : "shared");
        EQ(tatcell_limit_init_spec(&limit, &k->spec), 0);
        uint64_t burst = k->spec.burst ? k->spec.burst : k->spec.units;
        uint64_t interval = k->spec.period / k->spec.units;
        DO(beside(&limit, interval ? interval : 1, burst > 100 ? 100 : burst, i % 2, k->spec.burst < 1000 &&
                  !(k->spec.flags & TATCELL_LIMIT_SHADOW)));
    }
}

/* Where there is no limit to ask, a call of the library is an error. */
TEST(passes_and_refusals_of_plain_limits_are_no_calls) {
    add_all();
    for (int k = 0; k < KINDS; k++) {
        tatcell_limit_t limit;
        tatcell_inline_limit_t here;
        tatcell_cell_t cell = TATCELL_CELL_INIT;
        NOTE("%s", kinds[k].name);
        EQ(tatcell_limit_init_spec(&limit, &kinds[k].spec), 0);
        EQ(tatcell_inline_limit_init(&here, &limit), 0);
        EXPECT(here.limit == &limit);
        EQ(here.most != 0, kinds[k].is_inline);
        if (!here.most) continue;
        here.limit = NULL;
        for (int exclusive = 0; exclusive < 2; exclusive++, cell.word = 0) {
            int32_t rc = TATCELL_PASS;
            for (uint64_t i = 0; i <= here.most && rc == TATCELL_PASS && i < 100; i++)
                rc = exclusive ? tatcell_inline_cell_check_exclusive(&cell, &here, 1, 1, NULL)
                               : tatcell_inline_cell_check(&cell, &here, 1, 1, NULL);
            EQ(rc, here.most < 100 ? TATCELL_NON_CONFORMING : TATCELL_PASS);
        }
        EQ(tatcell_inline_cell_check(&cell, &here, 1, 0, NULL), TATCELL_ERR_NULL);
        EQ(tatcell_inline_cell_check(&cell, &here, 1, here.most + 1, NULL), TATCELL_ERR_NULL);
    }
}

TEST(an_unlimited_limit_passes_everything) {
    tatcell_inline_limit_t here;
    tatcell_limit_t limit;
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    uint64_t retry = 77;
    EQ(tatcell_limit_init_unlimited(&limit), 0);
    EQ(tatcell_inline_limit_init(&here, &limit), 0);
    EQ(tatcell_inline_cell_check(&cell, &here, 1, UINT64_MAX, &retry), TATCELL_PASS);
    EQ(retry, 0);
    EQ(cell.word, 0);
}

typedef struct worker {
    tatcell_cell_t *cell;
    const tatcell_limit_t *limit;
    const tatcell_inline_limit_t *here;
    pthread_barrier_t *start;
    uint64_t passed, contended;
    int number;
} worker;

static void *work(void *at) {
    worker *w = at;
    pthread_barrier_wait(w->start);
    for (int i = 0; i < REQUESTS; i++) {
        int32_t rc = w->number % 2 ? tatcell_cell_check(w->cell, w->limit, 5, 1, NULL)
                                   : tatcell_inline_cell_check(w->cell, w->here, 5, 1, NULL);
        w->passed += rc == TATCELL_PASS;
        w->contended += rc == TATCELL_CONTENDED;
    }
    return NULL;
}

TEST(threads_that_call_and_threads_that_do_not_pass_the_burst_together) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit;
    tatcell_inline_limit_t here;
    pthread_barrier_t start;
    EQ(tatcell_limit_init(&limit, 1, 1000000, BURST * (uint64_t)THREADS), 0);
    EQ(tatcell_inline_limit_init(&here, &limit), 0);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[THREADS];
        worker workers[THREADS];
        uint64_t passed = 0;
        cell.word = 0;
        EQ(pthread_barrier_init(&start, NULL, THREADS), 0);
        for (int t = 0; t < THREADS; t++) {
            workers[t] = (worker){&cell, &limit, &here, &start, 0, 0, t};
            EQ(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
        }
        for (int t = 0; t < THREADS; t++) {
            EQ(pthread_join(threads[t], NULL), 0);
            passed += workers[t].passed;
        }
        EQ(pthread_barrier_destroy(&start), 0);
        EQ(passed, BURST * THREADS);
    }
}

TEST(limits_that_are_none_of_64_bit_cells_are_refused) {
    tatcell_inline_limit_t here, before;
    tatcell_limit_t limit;
    kit_table k;
    tatcell_limit_spec_t spec = kit_spec(10, SECOND, 5);
    memset(&here, 0x5a, sizeof here);
    before = here;
    memset(&limit, 0, sizeof limit);
    EQ(tatcell_inline_limit_init(&here, &limit), TATCELL_ERR_LIMIT);
    EQ(tatcell_inline_limit_init(&here, NULL), TATCELL_ERR_NULL);
    EQ(kit_make(&k, spec, 64, NULL), 0);
    EQ(tatcell_inline_limit_init(&here, &k.limit), TATCELL_ERR_LIMIT);
    kit_free(&k);
    EQ(tatcell_limit32_init(&limit, 1, 1000, 5), 0);
    EQ(tatcell_inline_limit_init(&here, &limit), TATCELL_ERR_LIMIT);
    EQ(memcmp(&here, &before, sizeof here), 0);
    EQ(tatcell_limit_init(&limit, 1, 1000000, 5), 0);
    EQ(tatcell_inline_limit_init(NULL, &limit), TATCELL_ERR_NULL);
}

TEST(an_inline_limit_that_is_all_zero_is_refused) {
    tatcell_inline_limit_t here;
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    memset(&here, 0, sizeof here);
    EQ(tatcell_inline_cell_check(&cell, &here, 1, 1, NULL), TATCELL_ERR_NULL);
    EQ(tatcell_inline_cell_check_exclusive(&cell, &here, 1, 1, NULL), TATCELL_ERR_NULL);
    EQ(cell.word, 0);
}

int main(void) {
    RUN(every_answer_and_word_is_the_librarys);
    RUN(passes_and_refusals_of_plain_limits_are_no_calls);
    RUN(an_unlimited_limit_passes_everything);
    RUN(threads_that_call_and_threads_that_do_not_pass_the_burst_together);
    RUN(limits_that_are_none_of_64_bit_cells_are_refused);
    RUN(an_inline_limit_that_is_all_zero_is_refused);
    return check_end();
}
