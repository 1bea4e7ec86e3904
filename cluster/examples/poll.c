/*
 * A poll loop over a node: workers ask for one hot key and for cold ones, the loop takes the answers that come later,
 * and the end is an audit: each pending request had exactly one answer, and no window of the hot key holds more than
 * R*w + B.
 *
 *   cc poll.c -ltatcell_cluster -lpthread -o poll && ./poll redis://127.0.0.1:6379/ [workers [milliseconds]]
 *
 * C11, and C++17 too.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tatcell_cluster.h>
#include <time.h>

#define MAX_WORKERS 16
#define MAX_PASSES 100000
#define RATE 2000
#define BURST 400
#define SECOND UINT64_C(1000000000)

/* The admissions of the hot key that one thread saw, by the reading that each was decided for. */
struct passes {
    uint64_t reading[MAX_PASSES];
    size_t count;
};

struct worker {
    pthread_t thread;
    const tatcell_cluster_t *node;
    uint32_t limit;
    uint64_t number, until, decided, pending;
    struct passes passes;
};

static struct worker workers[MAX_WORKERS];
static struct passes late, all;

static void note(struct passes *passes, uint64_t reading) {
    if (passes->count == MAX_PASSES) abort();
    passes->reading[passes->count++] = reading;
}

/* Asks until its time is over. Token: the worker, and in the lowest bit whether it was the hot key. */
static void *work(void *argument) {
    struct worker *me = (struct worker *)argument;
    struct timespec pause = {0, 50000};
    uint64_t turn, now;
    for (turn = 0; (now = tatcell_cluster_now(me->node)) < me->until; turn++) {
        uint64_t cold = me->number << 32 | turn % 97;
        int hot = turn % 4 != 0;
        const void *key = hot ? (const void *)"hot" : (const void *)&cold;
        int32_t rc = tatcell_cluster_check(me->node, me->limit, key, hot ? 3 : sizeof cold, 1, now,
                                           me->number << 1 | (uint64_t)hot, NULL);
        if (rc < 0) abort();
        if (rc == TATCELL_CLUSTER_PASS && hot) note(&me->passes, now);
        if (rc == TATCELL_CLUSTER_PENDING) me->pending++;
        me->decided++;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds of the axis by which the worst window holds more than R*w + B; at most 0. */
static int64_t excess(struct passes *passes) {
    int64_t unit = (int64_t)(SECOND / RATE), level = 0, top = 0;
    size_t i;
    qsort(passes->reading, passes->count, sizeof passes->reading[0], by_value);
    for (i = 0; i < passes->count; i++) {
        if (i > 0) level -= (int64_t)(passes->reading[i] - passes->reading[i - 1]);
        level = (level < 0 ? 0 : level) + unit;
        if (level > top) top = level;
    }
    return top - BURST * unit;
}

/* Takes what has come, and counts it by worker. */
static void drain(const tatcell_cluster_t *node, uint64_t *answered) {
    tatcell_cluster_answer_t answers[64];
    int32_t i, count = tatcell_cluster_drain(node, answers, 64);
    if (count < 0) abort();
    for (i = 0; i < count; i++) {
        if (answers[i].token >> 1 >= MAX_WORKERS) abort();
        answered[answers[i].token >> 1]++;
        if (answers[i].verdict == TATCELL_CLUSTER_PASS && (answers[i].token & 1)) note(&late, answers[i].reading);
    }
}

int main(int argc, char **argv) {
    tatcell_cluster_limit_t per_key = TATCELL_CLUSTER_LIMIT_INIT;
    tatcell_cluster_options_t options = TATCELL_CLUSTER_OPTIONS_INIT;
    tatcell_cluster_metrics_t metrics = TATCELL_CLUSTER_METRICS_INIT;
    tatcell_cluster_t *node;
    char error[512];
    int count = argc > 2 ? atoi(argv[2]) : 4, i, wrong = 0;
    uint64_t ms = argc > 3 ? strtoull(argv[3], NULL, 10) : 2000, answered[MAX_WORKERS] = {0}, until, decided = 0;
    uint32_t limit;
    if (argc < 2 || count < 1 || count > MAX_WORKERS) return fprintf(stderr, "usage: poll URL [workers [ms]]\n"), 2;

    per_key.name = "poll", per_key.units = RATE, per_key.period_ns = SECOND, per_key.burst = BURST;
    options.url = argv[1], options.nodes = 1, options.prefix = "poll", options.limits = &per_key;
    options.limit_count = 1, options.keys = 4096, options.slot_ttl_ns = SECOND / 2;
    if (tatcell_cluster_open(&options, &node, error, sizeof error) < 0) return fprintf(stderr, "poll: %s\n", error), 2;
    if (tatcell_cluster_limit(node, "poll", &limit) < 0) return 2;

    until = tatcell_cluster_now(node) + ms * 1000000;
    for (i = 0; i < count; i++) {
        workers[i].node = node, workers[i].limit = limit, workers[i].number = (uint64_t)i, workers[i].until = until;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) return 2;
    }
    /* The loop: half a second longer than the workers, for what is still under way. */
    while (tatcell_cluster_now(node) < until + SECOND / 2) {
        struct pollfd waits = {0, POLLIN, 0};
        waits.fd = tatcell_cluster_fd(node);
        if (poll(&waits, 1, 100) > 0) drain(node, answered);
    }
    for (i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].pending != answered[i]) wrong = 1;
        decided += workers[i].decided;
        memcpy(all.reading + all.count, workers[i].passes.reading, workers[i].passes.count * sizeof all.reading[0]);
        all.count += workers[i].passes.count;
        printf("worker %d: %llu decided, %llu pending, %llu answered\n", i, (unsigned long long)workers[i].decided,
               (unsigned long long)workers[i].pending, (unsigned long long)answered[i]);
    }
    memcpy(all.reading + all.count, late.reading, late.count * sizeof all.reading[0]);
    all.count += late.count;
    tatcell_cluster_metrics(node, &metrics);
    printf("%llu decided, %zu of the hot key passed, %lld ns above the bound, %llu asks\n", (unsigned long long)decided,
           all.count, (long long)excess(&all), (unsigned long long)metrics.asks);
    if (all.count < RATE * ms / 1000 / 2) wrong = 1;
    if (tatcell_cluster_close(node, SECOND) != 0) wrong = 1;
    return wrong || excess(&all) > 0;
}
