/* walk.h - the same requests to the library and to tatcell_bpf.h, each with an image of its own: equal verdicts, waits,
 * tracking, flags and, word for word, images. Beside requests a walk resets keys, sweeps, lets all keys expire, steps
 * back in time, and plants in both images what stopped threads and strangers leave: claims, empty words of any version,
 * random words. */
#ifndef WALK_H
#define WALK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tatcell.h>
#include <tatcell_bpf.h>

#include "check.h"

#define LIMITS 4
#define UNLIMITED 2

static const uint8_t walk_seed[16] = "0123456789abcde";

/* What the other side is asked; it answers for the image that it has. */
typedef struct asked_t {
    uint64_t now, cost, key;
    uint32_t limit, length;
} asked_t;
typedef struct answered_t {
    uint64_t retry_after;
    int32_t verdict;
    uint32_t tracking, flags;
} answered_t;

typedef struct walk_t {
    const char *name;
    uint32_t policy, tag_bits;
    int resolution, shadow;
    uint64_t slots, keys, penalty, claim_lifetime;
} walk_t;

/* Policies times sizes and options; slots below the keys that are there at once make full sets. */
#define WALK_SIZES(policy, name) \
    {name " full", policy, 20, 0, 0, 32, 200, 0, 0}, {name " odd", policy, 12, -4, 1, 64, 150, 5, 400000}, { \
        name " large", policy, 24, 3, 0, 4096, 2000, 0, 0 \
    }
static const walk_t WALKS[] = {
    WALK_SIZES(TATCELL_FULL_ADMIT, "admit"),
    WALK_SIZES(TATCELL_FULL_INHERIT, "inherit"),
    WALK_SIZES(TATCELL_FULL_DENY, "deny"),
    WALK_SIZES(TATCELL_FULL_SAMPLED, "sampled"),
};
#define WALK_COUNT (sizeof WALKS / sizeof WALKS[0])

/* A table made twice, and its limits. */
typedef struct pair_t {
    tatcell_table_t ours, theirs;
    tatcell_limit_t limits[LIMITS];
    tatcell_bpf_limit_t bpf_limits[LIMITS];
    tatcell_bpf_table_t bpf;
    unsigned char *a, *b;
    size_t bytes;
} pair_t;

static uint64_t walk_random(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x * 0x2545f4914f6cdd1du;
}

/* Both images, in memory that the caller gives. */
static int32_t walk_make(pair_t *p, const walk_t *w, void *a, void *b) {
    tatcell_limit_spec_t fast = TATCELL_LIMIT_SPEC_INIT, slow;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    int32_t rc;
    p->a = a, p->b = b, p->bytes = tatcell_table_bytes(w->slots);
    fast.units = 1000, fast.period = 1000000000, fast.burst = 20, fast.penalty = w->penalty;
    slow = fast;
    slow.units = 10, slow.burst = 7;
    options.fastest = &fast, options.slowest = &slow, options.seed = walk_seed, options.policy = w->policy;
    options.tag_bits = w->tag_bits, options.claim_lifetime = w->claim_lifetime;
    options.flags = TATCELL_TABLE_RESOLUTION, options.resolution = w->resolution;
    if ((rc = tatcell_table_init(&p->ours, a, p->bytes, &options)) < 0) return rc;
    if ((rc = tatcell_table_init(&p->theirs, b, p->bytes, &options)) < 0) return rc;
    if ((rc = tatcell_limit_init_table(&p->limits[0], &p->ours, &fast)) < 0) return rc;
    if ((rc = tatcell_limit_init_table(&p->limits[1], &p->ours, &slow)) < 0) return rc;
    if ((rc = tatcell_limit_init_unlimited_table(&p->limits[UNLIMITED], &p->ours)) < 0) return rc;
    if (w->shadow) slow.flags = TATCELL_LIMIT_SHADOW;
    if ((rc = tatcell_limit_init_table(&p->limits[3], &p->ours, &slow)) < 0) return rc;
    if ((rc = tatcell_bpf_table_init(&p->bpf, &p->theirs, walk_seed)) < 0) return rc;
    for (int i = 0; i < LIMITS; i++)
        if ((rc = tatcell_bpf_limit_init_table(&p->bpf_limits[i], &p->theirs, &p->limits[i])) < 0) return rc;
    return 0;
}

/* Puts the same word into both images, in the set of a hash. */
static void walk_plant(pair_t *p, uint64_t hash, uint64_t now, uint64_t random) {
    uint64_t mask = p->bpf.mask, line = tatcell_bpf_home(&p->bpf, hash) ^ (random & 1);
    uint64_t at = line * 8 + (random >> 1 & 7), clock = tatcell_bpf_clock(now, p->bpf.shift_left, p->bpf.shift_right);
    uint64_t tag = hash * (mask + 1) & ~mask & (UINT64_MAX >> 1), near = (clock + (random >> 8 & 0x3f)) & mask;
    uint64_t ahead = (clock + (random >> 8) % (p->bpf.window_q + 2)) & mask;
    uint64_t word = 0;
    switch (random >> 4 & 7) {
    case 0: word = TATCELL_BPF_CLAIM | tag | near; break;                /* the key's own insert, stopped */
    case 1: word = TATCELL_BPF_CLAIM | tag | ahead; break;               /* its takeover, stopped */
    case 2: word = ahead; break;                                         /* a dropped takeover or a reset */
    case 3: word = near; break;                                          /* a dropped claim */
    case 4: word = random * 0x9e3779b97f4a7c15u; break;                  /* anything */
    case 5: word = TATCELL_BPF_CLAIM | (tag ^ (mask + 1)) | near; break; /* a stranger's insert */
    case 6: word = 0; break;
    default: return;
    }
    /* Two words of one tag in a set would be the work of a broken writer: what is done then is not promised. */
    for (uint64_t slot = line / 2 * 16; slot < line / 2 * 16 + 16; slot++) {
        uint64_t other;
        memcpy(&other, p->a + slot * 8, 8);
        if (slot != at && word >> 63 == 0 && (word & ~mask) != 0 && ((other ^ word) & ~mask & (UINT64_MAX >> 1)) == 0)
            return;
    }
    memcpy(p->a + at * 8, &word, 8);
    memcpy(p->b + at * 8, &word, 8);
}

/* Walks; `decide` answers for image b. What differs first goes to `why`. */
static void walk(pair_t *p, const walk_t *w, long steps, void (*decide)(void *, const asked_t *, answered_t *),
                 void *context, long counts[6], char why[256]) {
    uint64_t x = 88172645463325252u + w->policy * 77 + w->slots, now = 1000000000000;
    tatcell_counters_t counters;
    memset(&counters, 0, sizeof counters);
    for (long i = 0; i < steps && !why[0]; i++) {
        uint64_t random = walk_random(&x), hash, retry = 0, inserted = counters.inserted;
        asked_t ask = {0, (random >> 33) % 4, (random >> 40) % w->keys, 0, 4};
        answered_t got = {0, 0, 0, 0};
        tatcell_decision_t full = TATCELL_DECISION_INIT;
        int32_t rc;
        now += random & 7 ? random >> 13 & 0xfffff : 0 - (random >> 30 & 0xffff);
        if ((random >> 20 & 0xfff) == 0) now += 30000000000u;
        if ((random >> 50 & 63) == 0) ask.cost = (random >> 8) % 40;
        ask.limit = ask.key % 11 == 0 ? UNLIMITED : ask.key % 13 == 0 ? 3 : ask.key & 1;
        if (ask.key % 3 == 0) ask.key |= 0xfd0000000000, ask.length = 6;
        if (ask.key % 5 == 0) ask.key |= 0xab00000000000000, ask.length = 8;
        ask.now = now;
        (void)tatcell_table_hash(&p->ours, &ask.key, ask.length, &hash);
        if ((random >> 3 & 0x1ff) == 0) {
            (void)tatcell_table_reset_hash(&p->ours, now, hash);
            (void)tatcell_table_reset_hash(&p->theirs, now, hash);
        }
        if ((random >> 4 & 0xff) == 1) walk_plant(p, hash, now, walk_random(&x));
        if ((random >> 5 & 0x3fff) == 2) {
            (void)tatcell_table_sweep(&p->ours, now, 0, w->slots, NULL);
            (void)tatcell_table_sweep(&p->theirs, now, 0, w->slots, NULL);
        }
        decide(context, &ask, &got);
        if (i & 1) {
            rc = tatcell_table_check_hash(&p->ours, &p->limits[ask.limit], now, hash, ask.cost, &retry);
        } else {
            rc = tatcell_table_check_ex_hash(&p->ours, &p->limits[ask.limit], now, hash, ask.cost, 0, &full, &counters);
            retry = rc == TATCELL_PASS ? 0 : full.retry_after;
            /* The short answer of a limit without end is given before a slot is looked at. */
            if (got.tracking != full.tracking && ask.limit != UNLIMITED)
                say(why, "step %ld: tracking %u, the library %u", i, got.tracking, full.tracking);
            if (!!(got.flags & TATCELL_BPF_INSERTED) != (counters.inserted != inserted))
                say(why, "step %ld: inserted %u, the library not so", i, got.flags & TATCELL_BPF_INSERTED);
            if (!!(got.flags & TATCELL_BPF_SHADOWED) != !!(full.flags & TATCELL_FLAG_SHADOW))
                say(why, "step %ld: shadowed %u, the library not so", i, got.flags & TATCELL_BPF_SHADOWED);
            if (full.tracking < 4) counts[2 + full.tracking]++;
        }
        if (rc != got.verdict || retry != got.retry_after)
            say(why, "step %ld: verdict %d and wait %llu, the library %d and %llu", i, got.verdict,
                (unsigned long long)got.retry_after, rc, (unsigned long long)retry);
        counts[0] += rc == TATCELL_NON_CONFORMING;
        counts[1] += rc == TATCELL_NEVER;
        if ((i & 0xff) == 0 && memcmp(p->a, p->b, p->bytes)) say(why, "step %ld: images differ", i);
    }
    if (memcmp(p->a, p->b, p->bytes)) say(why, "images differ at the end");
}

#endif
