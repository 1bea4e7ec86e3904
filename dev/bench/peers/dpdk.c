/* DPDK's meters, found by flow index or through rte_hash.
 *
 * All runs of a bed share its meters, one a key: at the key's number (index_*) or at the position that rte_hash gives
 * the key (hash_*). Green passes: srTCM without excess burst, and trTCM with equal rates, are the token bucket of the
 * other rows.
 *
 * srTCM branches on whether the bucket overflows. At half the rate, as the conforming rows come, that is a coin's throw
 * and costs some 5 ns; trTCM takes minima instead. */
#define _GNU_SOURCE
#include "peer.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_malloc.h>
#include <rte_meter.h>
#include <rte_prefetch.h>

#define BURST 32
#define HUGE_PAGE ((size_t)2 << 20)
#define HEAP "peers"

struct bed {
    uint32_t keys, debt, size; /* size: bytes of a packet */
    uint64_t now;
    struct rte_meter_srtcm_profile single_rate;
    struct rte_meter_trtcm_profile two_rate;
    struct rte_meter_srtcm *srtcm;
    struct rte_meter_trtcm *trtcm;
    struct rte_hash *hash;
};

static const char *why = "";

static void *refuse(const char *reason) {
    why = reason;
    return NULL;
}

/* Memory that the system is asked to back with huge pages, as the bench asks for its own tables. */
static void *huge(size_t bytes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *base = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (base == MAP_FAILED) return NULL;
    base += -(uintptr_t)base % HUGE_PAGE;
    madvise(base, bytes, MADV_HUGEPAGE);
    return base;
}

/* Starts DPDK once, without devices; the calling thread stays on its processors. */
static int start(void) {
    static int started;
    if (started != 0) return started > 0;
    started = -1;
    cpu_set_t before;
    if (sched_getaffinity(0, sizeof before, &before) != 0) return 0;
    int cpu = 0;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &before)) cpu++;
    char lcores[32];
    snprintf(lcores, sizeof lcores, "0@%d", cpu);
    char *argv[] = {"bench",    "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "--iova-mode=va",
                    "--lcores", lcores,      "-m",          "64",       "--log-level=lib.eal:error", NULL};
    const int rc = rte_eal_init((int)(sizeof argv / sizeof *argv) - 1, argv);
    sched_setaffinity(0, sizeof before, &before);
    if (rc < 0) return refuse(rte_strerror(rte_errno)), 0;
    if (rte_malloc_heap_create(HEAP) != 0) return refuse("no heap for rte_hash"), 0;
    started = 1;
    return 1;
}

/* Meters of this packet size: one packet in `period` ticks, as near as they get. Returns how far they are off.
 *
 * A meter adds whole bytes at whole periods and takes its rate in bytes a second of the time stamp counter. */
static double fit(struct bed *bed, uint64_t size, uint64_t period, uint64_t burst) {
    const double cir = floor((double)rte_get_tsc_hz() * (double)size / (double)period);
    struct rte_meter_srtcm_params single = {.cir = (uint64_t)cir, .cbs = burst * size, .ebs = 0};
    struct rte_meter_trtcm_params two = {.cir = single.cir, .pir = single.cir, .cbs = single.cbs, .pbs = single.cbs};
    if (size == 0 || size > UINT32_MAX || cir < 1) return INFINITY;
    if (rte_meter_srtcm_profile_config(&bed->single_rate, &single) != 0) return INFINITY;
    if (rte_meter_trtcm_profile_config(&bed->two_rate, &two) != 0) return INFINITY;
    bed->size = (uint32_t)size;
    const double bytes = (double)bed->single_rate.cir_bytes_per_period;
    return fabs((double)size * (double)bed->single_rate.cir_period / bytes - (double)period);
}

/* The limits of the uniform rows are met exactly where the counter runs at whole MHz, by packets of a size that makes
 * 2^k ticks a byte. The spent cell's (2^50 ticks) is met as nearly as its rate of some 1000 bytes a second allows. */
void *peer_open(uint32_t keys, uint64_t period, uint64_t burst, uint32_t debt) {
    if (!start()) return NULL;
    struct bed *bed = calloc(1, sizeof *bed);
    if (bed == NULL) return refuse("not enough memory");
    bed->keys = keys;
    bed->debt = debt;
    bed->now = PEER_START;
    unsigned best = 0;
    for (unsigned shift = 1; shift < 64; shift++)
        if (fit(bed, period >> shift, period, burst) <= fit(bed, period >> best, period, burst)) best = shift;
    if (fit(bed, period >> best, period, burst) <= (double)period / 1000) return bed;
    free(bed);
    return refuse("no meter has this limit");
}

enum meters { SRTCM, TRTCM };

static inline uint64_t green(struct bed *bed, enum meters meters, uint32_t at, uint64_t now) {
    const enum rte_color color =
        meters == SRTCM ? rte_meter_srtcm_color_blind_check(&bed->srtcm[at], &bed->single_rate, now, bed->size)
                        : rte_meter_trtcm_color_blind_check(&bed->trtcm[at], &bed->two_rate, now, bed->size);
    return color == RTE_COLOR_GREEN;
}

static inline void prefetch(const struct bed *bed, enum meters meters, uint32_t at) {
    rte_prefetch0(meters == SRTCM ? (const void *)&bed->srtcm[at] : (const void *)&bed->trtcm[at]);
}

/* One meter for all decisions. */
static inline uint64_t alone(struct bed *bed, const struct peer_visit *visit) {
    uint64_t passed = 0, now = bed->now;
    for (uint64_t i = 0; i < visit->n; i++) {
        now += visit->dt;
        passed += green(bed, SRTCM, 0, now);
    }
    bed->now = now;
    return passed;
}

/* The flow index is given: the number of the key. The meter of the decision this far ahead is prefetched. */
static inline uint64_t by_index(struct bed *bed, const struct peer_visit *visit, enum meters meters, unsigned ahead) {
    uint64_t passed = 0, now = bed->now;
    for (uint64_t i = 0; i < visit->n; i++) {
        if (ahead != 0 && i + ahead < visit->n) prefetch(bed, meters, peer_id(visit, i + ahead, bed->keys));
        now += visit->dt;
        passed += green(bed, meters, peer_id(visit, i, bed->keys), now);
    }
    bed->now = now;
    return passed;
}

/* One look-up a decision. */
static inline uint64_t by_hash(struct bed *bed, const struct peer_visit *visit, enum meters meters) {
    uint64_t passed = 0, now = bed->now;
    for (uint64_t i = 0; i < visit->n; i++) {
        unsigned char key[PEER_KEY];
        peer_key(key, peer_id(visit, i, bed->keys));
        now += visit->dt;
        const int32_t found = rte_hash_lookup(bed->hash, key);
        if (found >= 0) passed += green(bed, meters, (uint32_t)found, now);
    }
    bed->now = now;
    return passed;
}

/* A burst is looked up at once, its meters are prefetched, and it is metered at one time. */
static inline uint64_t by_bulk(struct bed *bed, const struct peer_visit *visit, enum meters meters) {
    unsigned char keys[BURST][PEER_KEY];
    const void *key[BURST];
    int32_t found[BURST];
    uint64_t passed = 0, now = bed->now;
    for (unsigned i = 0; i < BURST; i++) key[i] = keys[i];
    for (uint64_t first = 0; first + BURST <= visit->n; first += BURST) {
        for (unsigned i = 0; i < BURST; i++) peer_key(keys[i], peer_id(visit, first + i, bed->keys));
        now += BURST * visit->dt;
        if (rte_hash_lookup_bulk(bed->hash, key, BURST, found) != 0) continue;
        for (unsigned i = 0; i < BURST; i++)
            if (found[i] >= 0) prefetch(bed, meters, (uint32_t)found[i]);
        for (unsigned i = 0; i < BURST; i++)
            if (found[i] >= 0) passed += green(bed, meters, (uint32_t)found[i], now);
    }
    bed->now = now;
    return passed;
}

#define RUN(name, call) \
    static uint64_t name(void *bed, const struct peer_visit *visit) { return call; }

RUN(srtcm, alone(bed, visit))
RUN(index_srtcm, by_index(bed, visit, SRTCM, 0))
RUN(index_srtcm_ahead, by_index(bed, visit, SRTCM, BURST))
RUN(index_trtcm, by_index(bed, visit, TRTCM, 0))
RUN(index_trtcm_ahead, by_index(bed, visit, TRTCM, BURST))
RUN(hash_srtcm, by_hash(bed, visit, SRTCM))
RUN(hash_srtcm_bulk, by_bulk(bed, visit, SRTCM))
RUN(hash_trtcm_bulk, by_bulk(bed, visit, TRTCM))

static const struct kind {
    const char *name;
    peer_run *run;
    enum meters meters;
    int hashed;
} kinds[] = {
    {"srtcm", srtcm, SRTCM, 0},
    {"index_srtcm", index_srtcm, SRTCM, 0},
    {"index_srtcm_ahead32", index_srtcm_ahead, SRTCM, 0},
    {"index_trtcm", index_trtcm, TRTCM, 0},
    {"index_trtcm_ahead32", index_trtcm_ahead, TRTCM, 0},
    {"hash_srtcm", hash_srtcm, SRTCM, 1},
    {"hash_srtcm_bulk32", hash_srtcm_bulk, SRTCM, 1},
    {"hash_trtcm_bulk32", hash_trtcm_bulk, TRTCM, 1},
};

/* A new meter is full and carries the counter's time; the bench's time takes its place. */
static int add_meters(struct bed *bed, enum meters meters) {
    if (meters == SRTCM ? bed->srtcm != NULL : bed->trtcm != NULL) return 1;
    struct rte_meter_srtcm single;
    struct rte_meter_trtcm two;
    if (rte_meter_srtcm_config(&single, &bed->single_rate) != 0 || rte_meter_trtcm_config(&two, &bed->two_rate) != 0)
        return refuse("no meter has this limit"), 0;
    single.time = two.time_tc = two.time_tp = bed->now;
    void *memory = huge(bed->keys * (meters == SRTCM ? sizeof single : sizeof two));
    if (memory == NULL) return refuse("not enough memory"), 0;
    if (meters == SRTCM) bed->srtcm = memory;
    else bed->trtcm = memory;
    for (uint32_t i = 0; i < bed->keys; i++) {
        if (meters == SRTCM) bed->srtcm[i] = single;
        else bed->trtcm[i] = two;
        for (uint32_t unit = 0; unit < bed->debt; unit++) green(bed, meters, i, bed->now);
    }
    return 1;
}

/* Without hugetlbfs DPDK's own memory lies on small pages. This gives rte_hash the pages that the other tables have.
 * DPDK writes to all of it: a key takes 32 bytes, and 12 more for each entry of the next power of two. */
static int add_heap(uint32_t keys) {
    size_t bytes = 32 * (size_t)keys + 12 * (size_t)rte_align32pow2(keys + 1) + 2 * HUGE_PAGE;
    bytes -= bytes % HUGE_PAGE;
    void *memory = huge(bytes);
    return memory != NULL &&
           rte_malloc_heap_memory_add(HEAP, memory, bytes, NULL, (unsigned)(bytes / HUGE_PAGE), HUGE_PAGE) == 0;
}

/* Hashed by CRC32 instructions. No extra flag: one thread needs no lock, no change counter and no overflow chains. More
 * entries than keys make it slower at 1e6 keys, by up to a fifth. */
static int add_hash(struct bed *bed) {
    static unsigned names;
    if (bed->hash != NULL) return 1;
    if (!add_heap(bed->keys)) return refuse("not enough memory"), 0;
    char name[RTE_HASH_NAMESIZE];
    snprintf(name, sizeof name, "peer%u", names++);
    const struct rte_hash_parameters with = {
        .name = name,
        .entries = bed->keys,
        .key_len = PEER_KEY,
        .hash_func = rte_hash_crc,
        .socket_id = rte_malloc_heap_get_socket(HEAP),
    };
    struct rte_hash *hash = rte_hash_create(&with);
    if (hash == NULL) return refuse(rte_strerror(rte_errno)), 0;
    for (uint32_t id = 0; id < bed->keys; id++) {
        unsigned char key[PEER_KEY];
        peer_key(key, id);
        const int32_t at = rte_hash_add_key(hash, key);
        if (at < 0 || (uint32_t)at >= bed->keys) {
            rte_hash_free(hash);
            return refuse("rte_hash is full"), 0;
        }
    }
    bed->hash = hash;
    return 1;
}

peer_run *peer_kind(void *bed, const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct kind *kind = &kinds[i];
        if (strcmp(kind->name, name) != 0) continue;
        return add_meters(bed, kind->meters) && (!kind->hashed || add_hash(bed)) ? kind->run : NULL;
    }
    return refuse("no such kind"), NULL;
}

const char *peer_why(void) { return why; }
