/* sliding_log.c - sliding logs: the window's units and no more, threads, the full answer, arguments. */
#include <pthread.h>
#include <stdatomic.h>

#include "kit.h"

enum { THREADS = 4, REQUESTS = 40000, UNITS = 8, WINDOW = 3000 };

TEST(the_units_of_every_window_pass_and_none_more) {
    tatcell_cell_t stamps[UNITS] = {TATCELL_CELL_INIT}, own[UNITS] = {TATCELL_CELL_INIT};
    tatcell_sliding_log_t log, twin;
    EQ(tatcell_sliding_log_size(), TATCELL_SLIDING_LOG_SIZE);
    EQ(sizeof log, TATCELL_SLIDING_LOG_SIZE);
    EQ(tatcell_sliding_log_init(&log, stamps, UNITS, WINDOW, 0), 0);
    EQ(tatcell_sliding_log_init(&twin, own, UNITS, WINDOW, 0), 0);
    static uint64_t passed[100000];
    size_t count = 0;
    unsigned long long random = 77;
    for (uint64_t now = 0; now < 400000; now += check_random(&random) % 500) {
        uint64_t inside = 0, retry = 77, other = 77;
        for (size_t i = count; i-- > 0 && passed[i] + WINDOW > now;) inside++;
        int32_t rc = tatcell_sliding_log_check(&log, now, &retry);
        EQ(rc, inside < UNITS ? 0 : TATCELL_NON_CONFORMING);
        EQ(retry, rc == 0 ? 0 : passed[count - UNITS] + WINDOW - now);
        EQ(tatcell_sliding_log_check_exclusive(&twin, now, &other), rc);
        EQ(other, retry);
        EXPECT(memcmp(stamps, own, sizeof own) == 0);
        if (rc == 0) passed[count++] = now;
    }
    EXPECT(count > 500 && count < 1400);
}

TEST(the_full_answer_counts_and_a_permit_gives_its_unit_back) {
    tatcell_cell_t stamps[3] = {TATCELL_CELL_INIT};
    tatcell_sliding_log_t log;
    tatcell_counters_t counters = TATCELL_COUNTERS_INIT;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    tatcell_permit_t first;
    uint64_t back = 77;
    EQ(tatcell_sliding_log_init(&log, stamps, 3, 1000, TATCELL_SKEW_NONE), 0);
    EQ(tatcell_sliding_log_peek(&log, 5, &d), 0);
    EQ(d.remaining, 3);
    EQ(d.reset_after, 0);
    EQ(tatcell_sliding_log_check_ex(&log, 100, &d, &counters), 0);
    EQ(d.remaining, 2);
    EQ(d.burst, 3);
    EQ(d.cost, 1);
    EQ(d.next_unit, 1000);
    first = d.permit;
    EQ(tatcell_sliding_log_check_ex(&log, 200, &d, &counters), 0);
    EQ(tatcell_sliding_log_check_ex(&log, 300, &d, &counters), 0);
    EQ(tatcell_sliding_log_check_ex(&log, 400, &d, &counters), TATCELL_NON_CONFORMING);
    EQ(d.retry_after, 700);
    EQ(d.next_unit, 700);
    EQ(d.reset_after, 900);
    EQ(tatcell_sliding_log_refund(&log, 500, &first, &back), 0);
    EQ(back, 1);
    EQ(tatcell_sliding_log_refund(&log, 500, &first, &back), 0);
    EQ(back, 0);
    EQ(tatcell_sliding_log_check_ex(&log, 500, &d, &counters), 0);
    EQ(counters.conforming, 4);
    EQ(counters.non_conforming, 1);
    EQ(tatcell_sliding_log_reset(&log), 0);
    EQ(tatcell_sliding_log_peek(&log, 500, &d), 0);
    EQ(d.remaining, 3);
}

/* Threads on one log and one clock that only counts; each writes down what it was given. */
static _Atomic uint64_t clock_;
static tatcell_cell_t shared_[UNITS];
static tatcell_sliding_log_t log_;
static uint64_t passed_[THREADS][REQUESTS];
static size_t count_[THREADS];

static void *caller(void *arg) {
    size_t id = (size_t)arg;
    for (int i = 0; i < REQUESTS; i++) {
        uint64_t now = atomic_fetch_add_explicit(&clock_, 1, memory_order_relaxed);
        if (tatcell_sliding_log_check(&log_, now, NULL) == 0) passed_[id][count_[id]++] = now;
    }
    return NULL;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

TEST(threads_admit_together_no_more_than_the_units_of_any_window) {
    pthread_t threads[THREADS];
    static uint64_t all[THREADS * REQUESTS];
    size_t count = 0;
    clock_ = 1 << 20;
    EQ(tatcell_sliding_log_init(&log_, shared_, UNITS, 50, 0), 0);
    for (size_t id = 0; id < THREADS; id++) EQ(pthread_create(&threads[id], NULL, caller, (void *)id), 0);
    for (size_t id = 0; id < THREADS; id++) EQ(pthread_join(threads[id], NULL), 0);
    for (size_t id = 0; id < THREADS; id++)
        for (size_t i = 0; i < count_[id]; i++) all[count++] = passed_[id][i];
    qsort(all, count, sizeof *all, ascending);
    for (size_t i = UNITS; i < count; i++) EXPECT(all[i] - all[i - UNITS] >= 50);
    EXPECT(count >= UNITS * 10);
}

TEST(bad_arguments_change_nothing) {
    tatcell_cell_t stamps[2] = {TATCELL_CELL_INIT}, *odd = (tatcell_cell_t *)(void *)((char *)stamps + 4);
    tatcell_sliding_log_t log, zero, *odd_log = (tatcell_sliding_log_t *)(void *)((char *)&log + 4);
    tatcell_decision_t d = TATCELL_DECISION_INIT, unset;
    tatcell_permit_t permit;
    uint64_t n = 77, most = (UINT64_C(1) << 63) - (UINT64_C(1) << 61) - 1;
    memset(&zero, 0, sizeof zero);
    memset(&unset, 0, sizeof unset);
    memset(&permit, 0, sizeof permit);
    log = zero;
    EQ(tatcell_sliding_log_init(NULL, stamps, 2, 5, 0), TATCELL_ERR_NULL);
    EQ(tatcell_sliding_log_init(&log, NULL, 2, 5, 0), TATCELL_ERR_NULL);
    EQ(tatcell_sliding_log_init(odd_log, stamps, 2, 5, 0), TATCELL_ERR_ALIGN);
    EQ(tatcell_sliding_log_init(&log, odd, 2, 5, 0), TATCELL_ERR_ALIGN);
    EQ(tatcell_sliding_log_init(&log, stamps, SIZE_MAX / 2, 5, 0), TATCELL_ERR_TOO_LARGE);
    EQ(tatcell_sliding_log_init(&log, (tatcell_cell_t *)(void *)&log.opaque[7], 2, 5, 0), TATCELL_ERR_OVERLAP);
    EQ(tatcell_sliding_log_init(&log, stamps, 0, 5, 0), TATCELL_ERR_RATE);
    EQ(tatcell_sliding_log_init(&log, stamps, 2, 0, 0), TATCELL_ERR_PERIOD);
    EQ(tatcell_sliding_log_init(&log, stamps, 2, most + 1, 0), TATCELL_ERR_HORIZON);
    EQ(tatcell_sliding_log_init(&log, stamps, 2, 5, UINT64_MAX - 1), TATCELL_ERR_HORIZON);
    struct {
        tatcell_sliding_log_t log;
        tatcell_cell_t stamps[1];
    } row; /* so many stamps that they would reach over a log behind them */
    row.log = zero;
    if (sizeof(size_t) == 8)
        EQ(tatcell_sliding_log_init(&row.log, row.stamps, (size_t)(UINT64_C(1) << 32), 5, 0), TATCELL_ERR_UNITS);
    EXPECT(memcmp(&row.log, &zero, sizeof zero) == 0);
    EXPECT(memcmp(&log, &zero, sizeof zero) == 0);
    EQ(tatcell_sliding_log_check(&zero, 0, &n), TATCELL_ERR_HANDLE);
    EQ(tatcell_sliding_log_check(NULL, 0, &n), TATCELL_ERR_NULL);
    EQ(tatcell_sliding_log_check_exclusive(&zero, 0, &n), TATCELL_ERR_HANDLE);
    EQ(tatcell_sliding_log_check_ex(&zero, 0, &d, NULL), TATCELL_ERR_HANDLE);
    EQ(tatcell_sliding_log_peek(&zero, 0, &d), TATCELL_ERR_HANDLE);
    EQ(tatcell_sliding_log_refund(&zero, 0, &permit, &n), TATCELL_ERR_HANDLE);
    EQ(tatcell_sliding_log_reset(&zero), TATCELL_ERR_HANDLE);
    EQ(tatcell_sliding_log_init(&log, stamps, 2, most, 0), 0);
    EQ(tatcell_sliding_log_check_ex(&log, 0, NULL, NULL), TATCELL_ERR_NULL);
    EQ(tatcell_sliding_log_check_ex(&log, 0, &unset, NULL), TATCELL_ERR_SIZE);
    EQ(tatcell_sliding_log_peek(&log, 0, &unset), TATCELL_ERR_SIZE);
    EQ(tatcell_sliding_log_refund(&log, 0, NULL, &n), TATCELL_ERR_NULL);
    EQ(tatcell_sliding_log_check(&log, 0, (uint64_t *)(void *)((char *)&n + 1)), TATCELL_ERR_ALIGN);
    EQ(n, 77);
    EQ(stamps[0].word, 0);
    EQ(stamps[1].word, 0);
}

int main(void) {
    RUN(the_units_of_every_window_pass_and_none_more);
    RUN(the_full_answer_counts_and_a_permit_gives_its_unit_back);
    RUN(threads_admit_together_no_more_than_the_units_of_any_window);
    RUN(bad_arguments_change_nothing);
    return check_end();
}
