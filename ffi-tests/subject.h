/* subject.h - what is asked beside the bucket of bucket.h: a cell, a 32-bit one or a table, under two random limits. */
#ifndef TATCELL_SUBJECT_H
#define TATCELL_SUBJECT_H

#include "bucket.h"

enum kind { CELL64, EXCLUSIVE, CELL32, TABLE, OWN_TABLE, KINDS };
enum { KEYS = 24 };

typedef struct subject {
    enum kind kind;
    tatcell_cell_t cell;
    tatcell_cell32_t cell32;
    kit_table k;
    tatcell_limit_t limits[2], limit; /* a fast one and a slow one; what applies to the key that is asked */
    uint64_t hash[KEYS];
    char name[KEYS][16];
    unsigned form; /* of a call on a key, in turn: by its hash or its name, counted or not */
    tatcell_counters_t counters;
    int bits; /* W */
} subject;

typedef struct trace {
    unsigned long long random;
    bucket b[KEYS], of[2]; /* of each key, of each limit */
    int slow[KEYS];        /* which limit applies */
    tatcell_permit_t permit[KEYS];
    u128 stored[KEYS], tat[KEYS];
    u128 earliest; /* a refund that fills a bucket leaves it fresh for clocks that are behind, too */
    subject s;
    tatcell_limit_spec_t spec[2];
    long decisions;
} trace;

static inline uint64_t below(trace *t, uint64_t n) {
    return n ? check_random(&t->random) % n : 0;
}

static inline int32_t do_check(subject *s, int key, uint64_t now, uint32_t cost, uint64_t *retry) {
    switch (s->kind) {
        case CELL64: return tatcell_cell_check(&s->cell, &s->limit, now, cost, retry);
        case EXCLUSIVE: return tatcell_cell_check_exclusive(&s->cell, &s->limit, now, cost, retry);
        case CELL32: return tatcell_cell32_check(&s->cell32, &s->limit, now, cost, retry);
        default: return tatcell_table_check_hash(&s->k.table, &s->limit, now, s->hash[key], cost, retry);
    }
}

static inline int32_t do_check_ex(subject *s, int key, uint64_t now, uint32_t cost, uint64_t room,
                                  tatcell_decision_t *d) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_check_ex(&s->cell, &s->limit, now, cost, room, d, NULL);
        case CELL32: return tatcell_cell32_check_ex(&s->cell32, &s->limit, now, cost, room, d, NULL);
        default: return tatcell_table_check_ex_hash(&s->k.table, &s->limit, now, s->hash[key], cost, room, d, NULL);
    }
}

static inline int32_t do_peek(subject *s, int key, uint64_t now, uint32_t cost, tatcell_decision_t *d) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_peek(&s->cell, &s->limit, now, cost, d);
        case CELL32: return tatcell_cell32_peek(&s->cell32, &s->limit, now, cost, d);
        default: return tatcell_table_peek_hash(&s->k.table, &s->limit, now, s->hash[key], cost, d);
    }
}

static inline int32_t charge_key(subject *s, int key, uint64_t now, uint32_t cost, tatcell_decision_t *d) {
    const tatcell_table_t *t = &s->k.table;
    const tatcell_limit_t *l = &s->limit;
    const char *name = s->name[key];
    switch (s->form++ % 4) {
        case 0: return tatcell_table_charge_hash(t, l, now, s->hash[key], cost, d);
        case 1: return tatcell_table_charge_ex_hash(t, l, now, s->hash[key], cost, d, &s->counters);
        case 2: return tatcell_table_charge(t, l, now, name, strlen(name), cost, d);
        default: return tatcell_table_charge_ex(t, l, now, name, strlen(name), cost, d, &s->counters);
    }
}

static inline int32_t reserve_key(subject *s, int key, uint64_t now, uint32_t cost, tatcell_decision_t *d) {
    const tatcell_table_t *t = &s->k.table;
    const tatcell_limit_t *l = &s->limit;
    const char *name = s->name[key];
    switch (s->form++ % 4) {
        case 0: return tatcell_table_reserve_hash(t, l, now, s->hash[key], cost, d);
        case 1: return tatcell_table_reserve_ex_hash(t, l, now, s->hash[key], cost, d, &s->counters);
        case 2: return tatcell_table_reserve(t, l, now, name, strlen(name), cost, d);
        default: return tatcell_table_reserve_ex(t, l, now, name, strlen(name), cost, d, &s->counters);
    }
}

static inline int32_t do_charge(subject *s, int key, uint64_t now, uint32_t cost, tatcell_decision_t *d) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_charge(&s->cell, &s->limit, now, cost, d);
        case CELL32: return tatcell_cell32_charge(&s->cell32, &s->limit, now, cost, d);
        default: return charge_key(s, key, now, cost, d);
    }
}

static inline int32_t do_reserve(subject *s, int key, uint64_t now, uint32_t cost, tatcell_decision_t *d) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_reserve(&s->cell, &s->limit, now, cost, d);
        case CELL32: return tatcell_cell32_reserve(&s->cell32, &s->limit, now, cost, d);
        default: return reserve_key(s, key, now, cost, d);
    }
}

static inline int32_t do_refund(subject *s, int key, uint64_t now, const tatcell_permit_t *p, uint64_t *credited) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_refund(&s->cell, &s->limit, now, p, credited);
        case CELL32: return tatcell_cell32_refund(&s->cell32, &s->limit, now, p, credited);
        default: return tatcell_table_refund_hash(&s->k.table, &s->limit, now, s->hash[key], p, credited);
    }
}

/* From one limit to another, with the debt in time. A table needs no call: the key is asked under the other one. */
static inline int32_t do_change(subject *s, uint64_t now, const tatcell_limit_t *to) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_change(&s->cell, &s->limit, to, now, TATCELL_CHANGE_KEEP_TIME);
        case CELL32: return tatcell_cell32_change(&s->cell32, &s->limit, to, now, TATCELL_CHANGE_KEEP_TIME);
        default: return 0;
    }
}

/* ---- Random limits that fit the word, with the emission interval worked out here ---- */

static inline int is_table(enum kind kind) {
    return kind == TABLE || kind == OWN_TABLE;
}

/* The bucket of a spec whose burst and options are those of `like`; 0 if it does not fit. */
static inline int bucket_of(bucket *b, enum kind kind, const tatcell_limit_spec_t *spec, int s) {
    int bits = kind == CELL32 ? 32 : is_table(kind) ? 43 : 64;
    u128 num = s >= 0 ? (u128)spec->period << s : spec->period;
    u128 den = s >= 0 ? spec->units : (u128)spec->units << -s;
    memset(b, 0, sizeof *b);
    b->s = s;
    b->cell_bits = is_table(kind) ? 0 : bits;
    b->t = (num + den - 1) / den;
    if (num < den || (is_table(kind) && b->t < 1024)) return 0;
    b->burst = spec->burst;
    b->room = spec->max_room;
    b->delay = s >= 0 ? (u128)spec->max_delay << s : spec->max_delay >> -s;
    b->debt_cap = (b->burst + spec->max_debt) * b->t;
    b->soft = spec->soft ? spec->soft * b->t : (u128)UINT64_MAX;
    u128 extra = (b->room > spec->max_debt ? b->room : spec->max_debt) * b->t;
    b->horizon = b->burst * b->t + (extra > b->delay ? extra : b->delay);
    /* Half the word for the horizon and its skew, the other half for time to pass. */
    return b->horizon < (u128)1 << (bits - 5);
}

/* Keys whose names fall into sets apart: a clock that is behind finds each in its slot, drained or not. */
static inline void names(subject *s) {
    unsigned char taken[512] = {0};
    tatcell_stats_t stats = {.size = sizeof stats};
    tatcell_table_info_t info = {.size = sizeof info};
    EQ(tatcell_table_stats(&s->k.table, 0, &stats), 0);
    EQ(tatcell_table_info(&s->k.table, &info), 0);
    EQ(info.flags, s->kind == OWN_TABLE ? TATCELL_TABLE_EXCLUSIVE : 0);
    EXPECT(stats.slots / 16 <= sizeof taken && stats.slots / 16 > 2 * KEYS);
    for (int i = 0, n = 0; n < KEYS; i++) {
        snprintf(s->name[n], sizeof s->name[n], "key %d", i);
        s->hash[n] = kit_hash(&s->k, s->name[n]);
        unsigned set = (unsigned)(((s->hash[n] >> 32) * (stats.slots / 8)) >> 33);
        if (!taken[set]) taken[set] = 1, n++;
    }
}

static inline int32_t make(trace *t, enum kind kind) {
    subject *s = &t->s;
    int32_t rc = 0;
    if (is_table(kind)) {
        tatcell_table_options_t o = kit_options(NULL);
        o.flags = TATCELL_TABLE_RESOLUTION | (kind == OWN_TABLE ? TATCELL_TABLE_EXCLUSIVE : 0u);
        o.resolution = t->of[0].s;
        o.slowest = &t->spec[1];
        o.skew = t->spec[0].skew;
        t->spec[0].flags = t->spec[1].flags = 0; /* the table's resolution counts */
        rc = kit_make(&s->k, t->spec[0], 1024, &o);
        s->limits[0] = s->k.limit;
        if (rc == 0) rc = tatcell_limit_init_table(&s->limits[1], &s->k.table, &t->spec[1]);
        if (rc == 0) names(s);
    }
    for (int i = 0; i < 2 && rc == 0 && !is_table(kind); i++)
        rc = kind == CELL32 ? tatcell_limit32_init_spec(&s->limits[i], &t->spec[i])
                            : tatcell_limit_init_spec(&s->limits[i], &t->spec[i]);
    return rc;
}

static inline int setup(trace *t, enum kind kind) {
    subject *s = &t->s;
    memset(s, 0, sizeof *s);
    s->kind = kind;
    s->bits = kind == CELL32 ? 32 : is_table(kind) ? 43 : 64;
    int resolution = (int)below(t, 25) - 12;
    uint64_t units = 1 + below(t, UINT64_C(1) << below(t, 20)), period = 1 + below(t, UINT64_C(1) << below(t, 34));
    uint64_t burst = 1 + below(t, UINT64_C(1) << below(t, 14));
    tatcell_limit_spec_t *spec = &t->spec[0];
    *spec = kit_spec(units, period, burst);
    spec->flags = TATCELL_LIMIT_RESOLUTION;
    spec->resolution = resolution;
    spec->max_room = below(t, burst + 1) * below(t, 2);
    spec->max_debt = below(t, burst + 1) * below(t, 2);
    spec->soft = below(t, burst + 1) * below(t, 2);
    spec->max_delay = below(t, UINT64_C(1) << below(t, 30)) * below(t, 2);
    t->spec[1] = *spec;
    t->spec[1].period = period * (1 + below(t, 4)) + below(t, 7);
    for (int i = 0; i < 2; i++)
        if (!bucket_of(&t->of[i], kind, &t->spec[i], resolution)) return 0;
    for (int i = 0; i < 2; i++) t->spec[i].skew = (uint64_t)ticks(&t->of[0], 0, t->of[0].horizon); /* one horizon */
    int32_t rc = make(t, kind);
    if (rc != 0) check_fail(__FILE__, __LINE__, "limit refused: %s", tatcell_strerror(rc));
    for (int i = 0; i < 2; i++) {
        const bucket *b = &t->of[i];
        tatcell_limit_numbers_t told = TATCELL_LIMIT_NUMBERS_INIT;
        rc = tatcell_limit_export(&s->limits[i], &told);
        if (rc != 0 || told.emission_q != b->t || told.burst_q != b->burst * b->t || told.horizon_q != b->horizon)
            check_fail(__FILE__, __LINE__, "the limit tells other numbers, or %s", tatcell_strerror(rc));
    }
    for (int i = 0; i < KEYS; i++) t->b[i] = t->of[0];
    s->limit = s->limits[0];
    return 1;
}

#endif /* TATCELL_SUBJECT_H */
