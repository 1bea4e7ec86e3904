/* property.c - random traces through the C ABI equal an exact token bucket in 128-bit integers.
 *
 * Usage: property [TRACES]. Seeds are fixed; a failure prints the seed and step that reproduce it. */
#include "kit.h"

__extension__ typedef unsigned __int128 u128;

/* ---- The oracle: an exact token bucket, as a debt in q-units. It knows no window and no wrap. ---- */

typedef struct bucket {
    u128 t, burst, room, debt_cap, delay, soft, horizon; /* q-units; `room` and `burst` in units */
    u128 tat;
    int s;
    int cell_bits; /* of a cell's word; 0 in a table */
} bucket;

typedef struct answer {
    int32_t verdict;
    uint32_t flags;
    u128 lead, wait, stored;
} answer;

static u128 clock_q(const bucket *b, u128 now) {
    return b->s >= 0 ? now << b->s : now >> -b->s;
}

static u128 lead_at(const bucket *b, u128 q) {
    return b->tat > q ? b->tat - q : 0;
}

static answer keep(int32_t verdict, u128 lead, u128 wait) {
    return (answer){verdict, 0, lead, wait, 0};
}

/* A cell whose word is 0 is fresh, so a TAT that would be 0 there is stored as 1: a q-unit late, never early. */
static void set_tat(bucket *b, u128 tat) {
    int zero = b->cell_bits && (tat & (((u128)1 << b->cell_bits) - 1)) == 0;
    b->tat = tat + (u128)zero;
}

static answer charge_to(bucket *b, u128 q, u128 lead, u128 stored) {
    answer a = keep(0, lead + stored, 0);
    a.stored = stored;
    if (a.lead > b->soft) a.flags |= TATCELL_FLAG_SOFT;
    if (stored) set_tat(b, q + a.lead);
    return a;
}

static answer oracle_check(bucket *b, u128 q, u128 cost, u128 room) {
    u128 lead = lead_at(b, q), c = cost * b->t, limit;
    if (room > b->room) room = b->room;
    limit = (b->burst + room) * b->t;
    if (cost > b->burst + room) return keep(TATCELL_NEVER, lead, 0);
    if (lead + c > limit) return keep(TATCELL_NON_CONFORMING, lead, lead + c - limit);
    answer a = charge_to(b, q, lead, c);
    if (a.lead > b->burst * b->t) a.flags |= TATCELL_FLAG_ELASTIC;
    return a;
}

static answer oracle_charge(bucket *b, u128 q, u128 cost) {
    u128 lead = lead_at(b, q), next = lead + cost * b->t;
    if (next > b->debt_cap) next = b->debt_cap > lead ? b->debt_cap : lead;
    return charge_to(b, q, lead, next - lead);
}

static answer oracle_reserve(bucket *b, u128 q, u128 cost) {
    u128 lead = lead_at(b, q), next = lead + cost * b->t, limit = b->burst * b->t;
    u128 wait = next > limit ? next - limit : 0;
    if (cost > b->burst) return keep(TATCELL_NEVER, lead, 0);
    if (wait > b->delay) return keep(TATCELL_NON_CONFORMING, lead, wait - b->delay);
    answer a = charge_to(b, q, lead, cost * b->t);
    a.wait = wait;
    return a;
}

static u128 oracle_refund(bucket *b, u128 q, u128 stored, u128 tat) {
    u128 lead = lead_at(b, q), left = tat > q ? tat - q : 0;
    if (left > b->horizon) left = 0;
    if (left > stored) left = stored;
    if (left > lead) left = lead;
    if (left) b->tat = q + lead - left;
    return left;
}

/* Ticks after `now` at which the q-clock has advanced by `q`: the definition, not a formula that might be shared. */
static u128 ticks(const bucket *b, u128 now, u128 q) {
    if (q == 0) return 0;
    if (b->s >= 0) return (q + ((u128)1 << b->s) - 1) >> b->s;
    return ((clock_q(b, now) + q) << -b->s) - now;
}

/* ---- The subjects ---- */

enum kind { CELL64, EXCLUSIVE, CELL32, TABLE };
enum { KEYS = 24 };

typedef struct subject {
    enum kind kind;
    tatcell_cell_t cell;
    tatcell_cell32_t cell32;
    kit_table k;
    tatcell_limit_t limit;
    uint64_t hash[KEYS];
    char name[KEYS][16];
    unsigned form; /* of a call on a key, in turn: by its hash or its name, counted or not */
    tatcell_counters_t counters;
    int bits; /* W */
} subject;

typedef struct trace {
    unsigned long long random;
    bucket b[KEYS];
    tatcell_permit_t permit[KEYS];
    u128 stored[KEYS], tat[KEYS];
    u128 earliest; /* a refund that fills a bucket leaves it fresh for clocks that are behind, too */
    subject s;
    tatcell_limit_spec_t spec;
} trace;

static uint64_t below(trace *t, uint64_t n) {
    return n ? check_random(&t->random) % n : 0;
}

static int32_t do_check(subject *s, int key, uint64_t now, uint32_t cost, uint64_t *retry) {
    switch (s->kind) {
        case CELL64: return tatcell_cell_check(&s->cell, &s->limit, now, cost, retry);
        case EXCLUSIVE: return tatcell_cell_check_exclusive(&s->cell, &s->limit, now, cost, retry);
        case CELL32: return tatcell_cell32_check(&s->cell32, &s->limit, now, cost, retry);
        default: return tatcell_table_check_hash(&s->k.table, &s->limit, now, s->hash[key], cost, retry);
    }
}

static int32_t do_check_ex(subject *s, int key, uint64_t now, uint32_t cost, uint64_t room, tatcell_decision_t *d) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_check_ex(&s->cell, &s->limit, now, cost, room, d, NULL);
        case CELL32: return tatcell_cell32_check_ex(&s->cell32, &s->limit, now, cost, room, d, NULL);
        default: return tatcell_table_check_ex_hash(&s->k.table, &s->limit, now, s->hash[key], cost, room, d, NULL);
    }
}

static int32_t do_peek(subject *s, int key, uint64_t now, uint32_t cost, tatcell_decision_t *d) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_peek(&s->cell, &s->limit, now, cost, d);
        case CELL32: return tatcell_cell32_peek(&s->cell32, &s->limit, now, cost, d);
        default: return tatcell_table_peek_hash(&s->k.table, &s->limit, now, s->hash[key], cost, d);
    }
}

static int32_t charge_key(subject *s, int key, uint64_t now, uint32_t cost, tatcell_decision_t *d) {
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

static int32_t reserve_key(subject *s, int key, uint64_t now, uint32_t cost, tatcell_decision_t *d) {
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

static int32_t do_charge(subject *s, int key, uint64_t now, uint32_t cost, tatcell_decision_t *d) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_charge(&s->cell, &s->limit, now, cost, d);
        case CELL32: return tatcell_cell32_charge(&s->cell32, &s->limit, now, cost, d);
        default: return charge_key(s, key, now, cost, d);
    }
}

static int32_t do_reserve(subject *s, int key, uint64_t now, uint32_t cost, tatcell_decision_t *d) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_reserve(&s->cell, &s->limit, now, cost, d);
        case CELL32: return tatcell_cell32_reserve(&s->cell32, &s->limit, now, cost, d);
        default: return reserve_key(s, key, now, cost, d);
    }
}

static int32_t do_refund(subject *s, int key, uint64_t now, const tatcell_permit_t *p, uint64_t *credited) {
    switch (s->kind) {
        case CELL64: case EXCLUSIVE: return tatcell_cell_refund(&s->cell, &s->limit, now, p, credited);
        case CELL32: return tatcell_cell32_refund(&s->cell32, &s->limit, now, p, credited);
        default: return tatcell_table_refund_hash(&s->k.table, &s->limit, now, s->hash[key], p, credited);
    }
}

/* ---- Random limits that fit the word, with the emission interval worked out here ---- */

static int setup(trace *t, enum kind kind) {
    bucket b;
    tatcell_table_options_t o = TATCELL_TABLE_OPTIONS_INIT;
    subject *s = &t->s;
    memset(s, 0, sizeof *s);
    memset(&b, 0, sizeof b);
    s->kind = kind;
    s->bits = kind == CELL32 ? 32 : kind == TABLE ? 43 : 64;
    b.cell_bits = kind == TABLE ? 0 : s->bits;
    b.s = (int)below(t, 25) - 12;
    uint64_t units = 1 + below(t, UINT64_C(1) << below(t, 20)), period = 1 + below(t, UINT64_C(1) << below(t, 34));
    u128 num = b.s >= 0 ? (u128)period << b.s : period, den = b.s >= 0 ? units : (u128)units << -b.s;
    b.t = (num + den - 1) / den;
    if (num < den || (kind == TABLE && b.t < 1024)) return 0;
    b.burst = 1 + below(t, UINT64_C(1) << below(t, 14));
    b.room = below(t, (uint64_t)b.burst + 1) * (below(t, 2));
    u128 debt = below(t, (uint64_t)b.burst + 1) * below(t, 2), soft = below(t, (uint64_t)b.burst + 1) * below(t, 2);
    uint64_t delay = below(t, UINT64_C(1) << below(t, 30)) * below(t, 2);
    b.delay = b.s >= 0 ? (u128)delay << b.s : delay >> -b.s;
    b.debt_cap = (b.burst + debt) * b.t;
    b.soft = soft ? soft * b.t : (u128)UINT64_MAX;
    u128 extra = b.room * b.t > debt * b.t ? b.room * b.t : debt * b.t;
    b.horizon = b.burst * b.t + (extra > b.delay ? extra : b.delay);
    /* Half the word for the horizon and its skew, the other half for time to pass. */
    if (b.horizon >= (u128)1 << (s->bits - 5)) return 0;
    t->spec = kit_spec(units, period, (uint64_t)b.burst);
    t->spec.flags = TATCELL_LIMIT_RESOLUTION;
    t->spec.resolution = b.s;
    t->spec.max_room = (uint64_t)b.room;
    t->spec.max_debt = (uint64_t)debt;
    t->spec.max_delay = delay;
    t->spec.soft = (uint64_t)soft;
    t->spec.skew = (uint64_t)ticks(&b, 0, b.horizon); /* one horizon */
    int32_t rc;
    if (kind == TABLE) {
        t->spec.flags = 0; /* the table's resolution counts */
        o = kit_options(NULL);
        o.flags = TATCELL_TABLE_RESOLUTION;
        o.resolution = b.s;
        rc = kit_make(&s->k, t->spec, 1024, &o);
        s->limit = s->k.limit;
        for (int i = 0; i < KEYS; i++) {
            snprintf(s->name[i], sizeof s->name[i], "key %d", i);
            s->hash[i] = kit_hash(&s->k, s->name[i]);
        }
    } else if (kind == CELL32) {
        rc = tatcell_limit32_init_spec(&s->limit, &t->spec);
    } else {
        rc = tatcell_limit_init_spec(&s->limit, &t->spec);
    }
    if (rc != 0) check_fail(__FILE__, __LINE__, "limit refused: %s", tatcell_strerror(rc));
    tatcell_limit_numbers_t told = TATCELL_LIMIT_NUMBERS_INIT;
    rc = tatcell_limit_export(&s->limit, &told);
    if (rc != 0 || told.emission_q != b.t || told.burst_q != b.burst * b.t || told.horizon_q != b.horizon)
        check_fail(__FILE__, __LINE__, "the limit tells other numbers, or %s", tatcell_strerror(rc));
    for (int i = 0; i < KEYS; i++) t->b[i] = b;
    return 1;
}

static uint64_t retry_of(const bucket *b, u128 now, const answer *a) {
    return a->verdict == TATCELL_NEVER ? UINT64_MAX : a->verdict == 0 ? 0 : (uint64_t)ticks(b, now, a->wait);
}

static void compare(const bucket *b, u128 now, uint32_t cost, const answer *a, const tatcell_decision_t *d) {
    u128 full = b->burst * b->t, left = a->lead < full ? (full - a->lead) / b->t : 0;
    EQ(d->verdict, a->verdict);
    EQ(d->flags, a->flags);
    EQ(d->cost, cost);
    EQ(d->burst, b->burst);
    EQ(d->remaining, left);
    EQ(d->retry_after, retry_of(b, now, a));
    EQ(d->next_unit, left == b->burst ? 0 : ticks(b, now, a->lead + (left + 1) * b->t - full));
    EQ(d->reset_after, ticks(b, now, a->lead));
}

/* What a permit says was stored. A charge that inserts its key into a table proves up to a claim lifetime less: one
 * tick here, at least two q-units, made even. */
static void stored(const bucket *b, enum kind kind, answer *a, u128 got) {
    u128 claim = kind == TABLE ? ((u128)1 << (b->s > 1 ? b->s : 1)) + 1 : 0;
    EXPECT(got <= a->stored && got + claim >= a->stored);
    a->stored = got;
}

static void step(trace *t, int key, u128 now) {
    bucket *b = &t->b[key];
    subject *s = &t->s;
    u128 q = clock_q(b, now);
    uint64_t tick = (uint64_t)now, out = 7, room = below(t, 4) ? 0 : below(t, (uint64_t)b->burst + 2);
    uint32_t cost = (uint32_t)(below(t, 3) ? below(t, 3) : below(t, (uint64_t)b->burst + (uint64_t)b->room + 3));
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    tatcell_permit_t *permit = &t->permit[key];
    answer a;
    switch (below(t, s->kind == EXCLUSIVE ? 1 : 10)) {
        default: /* a check */
            a = oracle_check(b, q, cost, 0);
            EQ(do_check(s, key, tick, cost, &out), a.verdict);
            EQ(out, retry_of(b, now, &a));
            return;
        case 4: case 5: /* a check with room */
            a = oracle_check(b, q, cost, room);
            EQ(do_check_ex(s, key, tick, cost, room, &d), a.verdict);
            DO(compare(b, now, cost, &a, &d));
            DO(stored(b, s->kind, &a, d.permit.stored));
            break;
        case 6: { /* a look */
            bucket copy = *b;
            a = oracle_check(&copy, q, cost, 0);
            if (a.verdict == 0) a = (answer){0, a.flags, lead_at(b, q), 0, 0};
            EQ(do_peek(s, key, tick, cost, &d), a.verdict);
            DO(compare(b, now, cost, &a, &d));
            return;
        }
        case 7: /* a charge after the fact */
            a = oracle_charge(b, q, cost);
            EQ(do_charge(s, key, tick, cost, &d), 0);
            DO(compare(b, now, cost, &a, &d));
            DO(stored(b, s->kind, &a, d.permit.stored));
            break;
        case 8: { /* a reservation */
            a = oracle_reserve(b, q, cost);
            EQ(do_reserve(s, key, tick, cost, &d), a.verdict);
            DO(compare(b, now, cost, &a, &d));
            EQ(d.departure, a.verdict == 0 ? (uint64_t)(now + ticks(b, now, a.wait)) : 0);
            DO(stored(b, s->kind, &a, d.permit.stored));
            break;
        }
        case 9: /* a refund of the last charge */
            a.stored = oracle_refund(b, q, t->stored[key], t->tat[key]);
            if (a.stored && tick != 0) set_tat(b, b->tat); /* at tick 0 a full refund makes the cell fresh */
            if (a.stored && lead_at(b, q) == 0) t->earliest = now;
            EQ(do_refund(s, key, tick, permit, &out), 0);
            EQ(out, b->s >= 0 ? a.stored >> b->s : a.stored << -b->s);
            a.stored = t->stored[key] = 0;
            memset(&d.permit, 0, sizeof d.permit);
            break;
    }
    t->stored[key] = a.stored;
    t->tat[key] = b->tat;
    *permit = d.permit;
}

static int traces = 400;

static void run(enum kind kind) {
    static trace t;
    long decisions = 0;
    for (int n = 0, seed = 1; n < traces; seed++) {
        memset(&t, 0, sizeof t);
        t.random = (unsigned long long)seed * 0x9e3779b97f4a7c15ULL + (unsigned)kind;
        NOTE("seed %d", seed);
        int fits = setup(&t, kind);
        if (failed()) return;
        if (!fits) continue;
        n++;
        const bucket *b = &t.b[0];
        u128 start = below(&t, UINT64_C(1) << (1 + below(&t, 62)));
        /* With a clock no coarser than its tick, the tick count may wrap as well. */
        if (b->s >= 0 && below(&t, 4) == 0) start = ((u128)1 << 64) - below(&t, 1 << 20);
        u128 top = start, skew = t.spec.skew, end_q = clock_q(b, start) + ((u128)1 << (t.s.bits - 2));
        for (int i = 0; i < 1500; i++) {
            u128 t_ticks = ticks(b, 0, b->t);
            if (below(&t, 3) == 0) top += below(&t, (uint64_t)t_ticks * 3 + 2);
            if (below(&t, 200) == 0) top += below(&t, (uint64_t)ticks(b, 0, b->horizon) + 2);
            if (clock_q(b, top) >= end_q) break;
            u128 now = top;
            /* Clocks within the skew; in a table a slot may be reused meanwhile, so there time only advances. */
            if (kind != TABLE && below(&t, 8) == 0 && top >= start + skew) now -= below(&t, (uint64_t)skew + 1);
            if (now < t.earliest) now = top;
            NOTE("seed %d step %d", seed, i);
            DO(step(&t, kind == TABLE ? (int)below(&t, KEYS) : 0, now));
            decisions++;
        }
        if (kind == TABLE) kit_free(&t.s.k);
    }
    EXPECT(decisions > traces * 20L);
}

TEST(cell_equals_the_exact_token_bucket) { run(CELL64); }
TEST(exclusive_cell_equals_the_exact_token_bucket) { run(EXCLUSIVE); }
TEST(cell32_equals_the_exact_token_bucket) { run(CELL32); }
TEST(table_equals_one_exact_token_bucket_per_key) { run(TABLE); }

/* Whatever resolution the library chooses: never more than the configured rate, and at most 15 ppm less. */
TEST(rounding_never_admits_more_and_at_most_15_ppm_less) {
    for (int seed = 1; seed <= traces / 4 + 1; seed++) {
        unsigned long long random = (unsigned long long)seed * 0x2545f4914f6cdd1dULL;
        tatcell_cell_t cell = TATCELL_CELL_INIT;
        tatcell_limit_t limit;
        uint64_t units = 1 + (check_random(&random) >> (34 + check_random(&random) % 30));
        uint64_t period = 1 + (check_random(&random) >> (24 + check_random(&random) % 40));
        uint64_t burst = 1 + (check_random(&random) >> (44 + check_random(&random) % 20));
        NOTE("seed %d: %llu per %llu, burst %llu", seed, (unsigned long long)units, (unsigned long long)period,
             (unsigned long long)burst);
        int32_t rc = tatcell_limit_init(&limit, units, period, burst);
        if (rc == TATCELL_ERR_HORIZON || rc == TATCELL_ERR_REPRESENT) continue;
        EQ(rc, 0);
        u128 debt = 0, admitted = 0, now = 0; /* debt in ticks * units */
        for (int i = 0; i < 4000; i++) {
            /* Greedy, so that the whole rate is used: come back exactly when told to. */
            uint64_t retry;
            uint32_t cost = 1 + (uint32_t)(check_random(&random) % (burst < 1000 ? burst : 1000));
            while ((rc = tatcell_cell_check(&cell, &limit, (uint64_t)now, cost, &retry)) == TATCELL_NON_CONFORMING) {
                EXPECT(retry > 0);
                now += retry;
                u128 drained = (u128)retry * units;
                debt = debt > drained ? debt - drained : 0;
            }
            EQ(rc, 0);
            debt += (u128)cost * period;
            EXPECT(debt <= (u128)burst * period);
            admitted += cost;
            if (now >> 50) break;
        }
        /* Each wait is rounded up to a tick, so a tick per decision may be lost on top. */
        u128 exact = now * units / period;
        EXPECT(admitted + (u128)4000 * units / period + 4000 >= exact - exact / 65536);
    }
}

/* A burst call decides as single calls do, in order, repeated keys included. */
TEST(bursts_equal_single_calls) {
    unsigned long long random = 5;
    for (int round = 0; round < traces; round++) {
        kit_table one, many;
        uint64_t now = check_random(&random) >> 20;
        tatcell_limit_spec_t spec = kit_spec(1 + check_random(&random) % 1000, SECOND, 1 + check_random(&random) % 20);
        tatcell_counters_t c1 = TATCELL_COUNTERS_INIT, c2 = TATCELL_COUNTERS_INIT;
        tatcell_table_options_t o = kit_options(NULL);
        o.policy = (uint32_t)round & 3;
        EQ(kit_make(&one, spec, 16, &o), 0); /* one set: full ones too */
        EQ(kit_make(&many, spec, 16, &o), 0);
        for (int b = 0; b < 8; b++) {
            uint32_t keys[TATCELL_BURST_MAX], costs[TATCELL_BURST_MAX], n = (uint32_t)(check_random(&random) % 65);
            tatcell_decision_t d[TATCELL_BURST_MAX];
            uint64_t want = 0;
            memset(d, 0, sizeof d);
            int mode = (int)(check_random(&random) % 4);
            for (uint32_t i = 0; i < n; i++) {
                keys[i] = (uint32_t)(check_random(&random) % 24);
                costs[i] = mode == 0 ? 1 : (uint32_t)(check_random(&random) % 4);
            }
            tatcell_burst_t burst = kit_burst(&many.limit, now, keys, 4, 4, n);
            burst.costs = mode == 0 ? NULL : costs;
            burst.decisions = mode > 1 ? d : NULL;
            burst.decision_size = sizeof d[0];
            burst.counters = mode > 2 ? &c1 : NULL;
            burst.flags = round & 4 ? TATCELL_BURST_PREFETCHED : 0; /* true or not, the verdicts are the same */
            EQ(tatcell_table_check_burst(&many.table, &burst, NULL), 0);
            for (uint32_t i = 0; i < n; i++) {
                tatcell_decision_t single = TATCELL_DECISION_INIT;
                uint64_t hash;
                NOTE("seed 5 round %d burst %d request %u", round, b, i);
                EQ(tatcell_table_hash(&one.table, &keys[i], 4, &hash), 0);
                int32_t rc = tatcell_table_check_ex_hash(&one.table, &one.limit, now, hash, costs[i], 0, &single,
                                                    mode > 2 ? &c2 : NULL);
                want |= (uint64_t)(rc == 0) << i;
                single.size = 0; /* never written in a row */
                if (mode > 1) EQ(memcmp(&d[i], &single, sizeof single), 0);
            }
            EQ(burst.pass, want);
            now += check_random(&random) % (SECOND / 50);
        }
        EQ(memcmp(one.memory, many.memory, one.bytes), 0);
        EQ(memcmp(&c1, &c2, sizeof c1), 0);
        kit_free(&one);
        kit_free(&many);
    }
}

TEST(bursts_with_a_look_ahead_equal_single_calls) {
    unsigned long long random = 6;
    static const size_t lengths[] = {4, 7, 16};
    for (int round = 0; round < traces; round++) {
        kit_table one, many;
        size_t len = lengths[round % 3];
        uint64_t now = check_random(&random) >> 20;
        tatcell_limit_spec_t spec = kit_spec(1 + check_random(&random) % 1000, SECOND, 1 + check_random(&random) % 20);
        tatcell_table_options_t o = kit_options(NULL);
        tatcell_counters_t c1 = TATCELL_COUNTERS_INIT, c2 = TATCELL_COUNTERS_INIT;
        o.policy = (uint32_t)round & 3;
        o.flags = round & 8 ? TATCELL_TABLE_EXCLUSIVE : 0;
        o.hash = round & 4 ? TATCELL_HASH_AES : TATCELL_HASH_SIPHASH13;
        int32_t made = kit_make(&one, spec, 16, &o);
        if (made == TATCELL_ERR_HASH_UNAVAILABLE) {
            kit_free(&one);
            continue;
        }
        EQ(made, 0);
        EQ(kit_make(&many, spec, 16, &o), 0);
        static uint32_t keys[2][TATCELL_BURST_MAX][4]; /* 16 bytes apart, whatever their length */
        const void *pointers[2][TATCELL_BURST_MAX];
        const tatcell_limit_t *limits[TATCELL_BURST_MAX];
        uint32_t costs[TATCELL_BURST_MAX];
        tatcell_decision_t d[TATCELL_BURST_MAX];
        tatcell_burst_t bursts[2] = {TATCELL_BURST_INIT, TATCELL_BURST_INIT};
        int form = round / 64 % 4; /* at a stride, backwards, by pointers, with limits and decisions */
        memset(d, 0, sizeof d);
        for (int i = 0; i < TATCELL_BURST_MAX; i++) limits[i] = &many.limit;
        for (int b = 0; b < 8; b++) {
            tatcell_burst_t *burst = &bursts[b & 1], *next = &bursts[~b & 1];
            uint32_t(*fresh)[4] = keys[~b & 1], n = b == 7 ? 0 : (uint32_t)(check_random(&random) % 65);
            for (uint32_t i = 0; i < n; i++) {
                for (int part = 0; part < 4; part++) fresh[i][part] = (uint32_t)(check_random(&random) % 3);
                pointers[~b & 1][i] = fresh[i];
            }
            *next = kit_burst(&many.limit, 0, fresh, len, sizeof fresh[0], n);
            if (form == 1 && n) next->keys = fresh[n - 1], next->stride = -(int64_t)sizeof fresh[0];
            if (form == 2) next->keys = NULL, next->key_pointers = pointers[~b & 1];
            for (uint32_t i = 0; i < burst->count; i++) costs[i] = (uint32_t)(check_random(&random) % 4);
            burst->now = now;
            burst->limit = form == 3 ? NULL : &many.limit;
            burst->limits = form == 3 ? limits : NULL;
            burst->decisions = form == 3 ? d : NULL;
            burst->decision_size = sizeof d[0];
            burst->costs = round & 16 ? costs : NULL;
            burst->counters = round & 32 ? &c1 : NULL;
            EQ(tatcell_table_check_burst(&many.table, burst, next), 0);
            uint64_t want = 0, hash;
            for (uint32_t i = 0; i < burst->count; i++) {
                NOTE("seed 6 round %d burst %d request %u", round, b, i);
                tatcell_decision_t single = TATCELL_DECISION_INIT;
                const void *key = keys[b & 1][form == 1 ? burst->count - 1 - i : i];
                EQ(tatcell_table_hash(&one.table, key, len, &hash), 0);
                int32_t rc = tatcell_table_check_ex_hash(&one.table, &one.limit, now, hash, round & 16 ? costs[i] : 1,
                    0,
                                                         &single, round & 32 ? &c2 : NULL);
                want |= (uint64_t)(rc == 0) << i;
                single.size = 0;
                if (form == 3) EQ(memcmp(&d[i], &single, sizeof single), 0);
            }
            EQ(burst->pass, want);
            now += check_random(&random) % (SECOND / 50);
        }
        EQ(memcmp(one.memory, many.memory, one.bytes), 0);
        EQ(memcmp(&c1, &c2, sizeof c1), 0);
        kit_free(&one);
        kit_free(&many);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) traces = atoi(argv[1]);
    RUN(cell_equals_the_exact_token_bucket);
    RUN(exclusive_cell_equals_the_exact_token_bucket);
    RUN(cell32_equals_the_exact_token_bucket);
    RUN(table_equals_one_exact_token_bucket_per_key);
    RUN(rounding_never_admits_more_and_at_most_15_ppm_less);
    RUN(bursts_equal_single_calls);
    RUN(bursts_with_a_look_ahead_equal_single_calls);
    return check_failures != 0;
}
