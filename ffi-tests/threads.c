/* threads.c - whatever the schedule, exactly the limit is admitted: on a key, in bursts, by two handles, with refunds,
 * and next to upkeep. tests/processes/{threads,race}.rs have cells of both widths, clocks apart, and inserts.
 *
 * Usage: threads [PERCENT]. Time stands still unless a test says otherwise, so the total must be exact. */
#include <pthread.h>
#include <unistd.h>

#include "kit.h"

enum { THREADS = 4 };

static int percent = 100;

static struct {
    pthread_barrier_t start;
    tatcell_cell_t cell;
    tatcell_limit_t limit;
    kit_table k;
    tatcell_table_t second;
    uint64_t hash;
    int tries;
    long admitted[THREADS], contended[THREADS], errors[THREADS];
} g;

typedef int32_t attempt(int thread, int i);

static attempt *body;

static void *worker(void *arg) {
    int me = (int)(size_t)arg;
    pthread_barrier_wait(&g.start);
    for (int i = 0; i < g.tries; i++) {
        int32_t rc;
        do {
            rc = body(me, i);
            g.contended[me] += rc == TATCELL_CONTENDED;
        } while (rc == TATCELL_CONTENDED);
        g.admitted[me] += rc == 0;
        g.errors[me] += rc < 0;
    }
    return NULL;
}

/* Runs `f` g.tries times on each thread; gives the number of passes. */
static long race(attempt *f) {
    pthread_t t[THREADS];
    long sum = 0;
    body = f;
    memset(g.admitted, 0, sizeof g.admitted);
    memset(g.contended, 0, sizeof g.contended);
    memset(g.errors, 0, sizeof g.errors);
    pthread_barrier_init(&g.start, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, worker, (void *)i) != 0) abort();
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        sum += g.errors[i] ? -1000000000 : g.admitted[i];
    }
    pthread_barrier_destroy(&g.start);
    return sum;
}

/* Twice as many tries as units. */
static uint64_t units_for(int tries) {
    g.tries = tries * percent / 100;
    return (uint64_t)g.tries * THREADS / 2;
}

static int32_t try_key(int me, int i) {
    (void)i;
    return me & 1 ? tatcell_table_check_hash(&g.k.table, &g.k.limit, 0, g.hash, 1, NULL)
                  : tatcell_table_check(&g.k.table, &g.k.limit, 0, "one key", 7, 1, NULL);
}

TEST(one_key_admits_exactly_its_burst) {
    uint64_t burst = units_for(60000);
    EQ(kit_make(&g.k, kit_spec(1, 1024, burst), 64, NULL), 0);
    g.hash = kit_hash(&g.k, "one key");
    EQ(race(try_key), burst);
    kit_free(&g.k);
}

/* Eight keys, each several times in a burst. */
static int32_t try_burst(int me, int i) {
    uint32_t keys[32];
    uint64_t pass = 0;
    tatcell_decision_t d[32];
    memset(d, 0, sizeof d);
    for (uint32_t j = 0; j < 32; j++) keys[j] = (j + (uint32_t)i) % 8;
    tatcell_burst_t burst = kit_burst(&g.k.limit, 0, keys, 4, 4, 32);
    burst.decisions = d;
    burst.decision_size = sizeof d[0];
    int32_t rc = tatcell_table_check_burst(&g.k.table, &burst, NULL);
    pass = burst.pass;
    for (int j = 0; j < 32; j++) {
        while (d[j].verdict == TATCELL_CONTENDED) {
            uint64_t hash;
            d[j].size = sizeof d[j];
            g.contended[me]++;
            if (tatcell_table_hash(&g.k.table, &keys[j], 4, &hash) != 0) return TATCELL_ERR_HASH;
            if (tatcell_table_check_ex_hash(&g.k.table, &g.k.limit, 0, hash, 1, 0, &d[j], NULL) == 0)
                pass |= UINT64_C(1) << j;
        }
    }
    while (pass) {
        pass &= pass - 1;
        g.admitted[me]++;
    }
    return rc < 0 ? rc : 1; /* counted above */
}

TEST(bursts_from_several_threads_admit_exactly_the_bursts_of_their_keys) {
    uint64_t burst = units_for(3000) * 4; /* 32 requests a try, 8 keys, half of them */
    EQ(kit_make(&g.k, kit_spec(1, 1024, burst), 64, NULL), 0);
    EQ(race(try_burst), burst * 8);
    kit_free(&g.k);
}

static int32_t try_two_handles(int me, int i) {
    (void)i;
    return tatcell_table_check(me & 1 ? &g.second : &g.k.table, &g.k.limit, 0, "one key", 7, 1, NULL);
}

TEST(two_handles_of_one_memory_share_its_limit) {
    uint64_t burst = units_for(60000);
    EQ(kit_make(&g.k, kit_spec(1, 1024, burst), 64, NULL), 0);
    EQ(tatcell_table_attach(&g.second, g.k.memory, g.k.bytes, kit_attach(kit_seed, 0)), 0);
    EQ(race(try_two_handles), burst);
    kit_free(&g.k);
}

/* Charge, and give back every second time: in the end the cell owes what was not given back, to the unit. */
static int32_t try_refund(int me, int i) {
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    (void)me;
    int32_t rc = tatcell_cell_check_ex(&g.cell, &g.limit, 5, 3, 0, &d, NULL);
    if (rc != 0 || i % 2 == 0) return rc;
    while ((rc = tatcell_cell_refund(&g.cell, &g.limit, 5, &d.permit, NULL)) == TATCELL_CONTENDED) {}
    return rc;
}

TEST(charges_and_refunds_of_threads_lose_no_unit) {
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    units_for(30000);
    const uint64_t asked = (uint64_t)g.tries * THREADS, kept = asked - (uint64_t)(g.tries / 2) * THREADS;
    EQ(tatcell_limit_init(&g.limit, 1, SECOND, 3 * asked), 0);
    EQ(tatcell_cell_reset(&g.cell), 0);
    EQ(race(try_refund), asked);
    EQ(tatcell_cell_peek(&g.cell, &g.limit, 5, 0, &d), 0);
    EQ(d.remaining, 3 * (asked - kept));
}

/* Sweep, statistics, iteration and saving beside checks: they change no decision and see whole words. */
static int32_t try_beside(int me, int i) {
    if (me != 0) return try_key(me, i);
    static uint64_t image[1024];
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    tatcell_slot_t slot;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    switch (i % 5) {
        case 0: return tatcell_table_sweep(&g.k.table, 0, 0, 1000, NULL) == 0 ? 1 : -1;
        case 1: return tatcell_table_stats(&g.k.table, 0, &stats) == 0 && stats.live <= 1 ? 1 : -1;
        case 2: return tatcell_table_next(&g.k.table, 0, 0, &slot) >= 0 ? 1 : -1;
        case 3: return tatcell_table_save(&g.k.table, 0, image, sizeof image, NULL) == 0 ? 1 : -1;
        default: return tatcell_table_peek_hash(&g.k.table, &g.k.limit, 0, g.hash, 1, &d) >= 0 ? 1 : -1;
    }
}

TEST(operations_beside_checks_change_no_decision) {
    uint64_t burst = units_for(40000);
    EQ(kit_make(&g.k, kit_spec(1, 1024, burst), 64, NULL), 0);
    g.hash = kit_hash(&g.k, "one key");
    EQ(race(try_beside), burst);
    kit_free(&g.k);
}

int main(int argc, char **argv) {
    if (argc > 1) percent = atoi(argv[1]);
    RUN(one_key_admits_exactly_its_burst);
    RUN(bursts_from_several_threads_admit_exactly_the_bursts_of_their_keys);
    RUN(two_handles_of_one_memory_share_its_limit);
    RUN(charges_and_refunds_of_threads_lose_no_unit);
    RUN(operations_beside_checks_change_no_decision);
    return check_end();
}
