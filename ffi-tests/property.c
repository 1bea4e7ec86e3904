/* property.c - random traces through the C ABI equal an exact token bucket in 128-bit integers.
 *
 * Usage: property [TRACES [LEAST [SEED]]]. Prints how many decisions of each form were compared, and fails below LEAST
 * in all. Seeds are numbers from 1; a failure prints the seed and step, and `property 1 0 SEED` begins with it. */
#include "subject.h"

/* What a permit says was stored. A charge that inserts its key into a table proves up to a claim lifetime less: one
 * tick here, at least two q-units, made even. */
static void stored(const bucket *b, enum kind kind, answer *a, u128 got) {
    u128 claim = is_table(kind) ? ((u128)1 << (b->s > 1 ? b->s : 1)) + 1 : 0;
    EXPECT(got <= a->stored && got + claim >= a->stored);
    a->stored = got;
}

/* Up to 64 requests of keys under one limit at once: what each would be told by itself, in order. */
static void burst(trace *t, u128 now) {
    subject *s = &t->s;
    int slow = t->slow[below(t, KEYS)], keys[KEYS], of = 0, mode = (int)below(t, 6);
    uint32_t n = 2 + (uint32_t)below(t, 63), costs[TATCELL_BURST_MAX];
    uint64_t hashes[TATCELL_BURST_MAX], want = 0;
    const bucket *asked[TATCELL_BURST_MAX];
    answer answers[TATCELL_BURST_MAX];
    tatcell_decision_t d[TATCELL_BURST_MAX];
    for (int key = 0; key < KEYS; key++)
        if (t->slow[key] == slow) keys[of++] = key;
    uint64_t few = 1 + below(t, (uint64_t)of);
    for (uint32_t i = 0; i < n; i++) {
        int key = keys[below(t, few)];
        bucket *b = &t->b[key];
        costs[i] = mode > 1 ? 1 : (uint32_t)below(t, (uint64_t)b->burst + 2);
        hashes[i] = s->hash[key];
        asked[i] = b;
        answers[i] = oracle_check(b, clock_q(b, now), costs[i], 0);
        want |= (uint64_t)(answers[i].verdict == 0) << i;
    }
    tatcell_burst_t many = TATCELL_BURST_INIT;
    many.limit = &s->limits[slow];
    many.now = (uint64_t)now;
    many.hashes = hashes;
    many.count = n;
    many.costs = mode > 1 ? NULL : costs;
    many.decisions = mode == 1 || mode == 2 ? d : NULL;
    many.decision_size = sizeof d[0];
    many.counters = mode == 3 ? &s->counters : NULL;
    EQ(tatcell_table_check_burst(&s->k.table, &many, NULL), 0);
    EQ(many.pass, want);
    for (uint32_t i = 0; i < n && many.decisions; i++) DO(compare(asked[i], now, costs[i], &answers[i], &d[i]));
    t->decisions += n - 1;
}

static void step(trace *t, int key, u128 now) {
    bucket *b = &t->b[key];
    subject *s = &t->s;
    s->limit = s->limits[t->slow[key]];
    u128 q = clock_q(b, now);
    uint64_t tick = (uint64_t)now, out = 7, room = below(t, 4) ? 0 : below(t, (uint64_t)b->burst + 2);
    uint32_t cost = (uint32_t)(below(t, 3) ? below(t, 3) : below(t, (uint64_t)b->burst + (uint64_t)b->room + 3));
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    tatcell_permit_t *permit = &t->permit[key];
    answer a;
    t->decisions++;
    switch (below(t, 12)) {
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
        case 10: /* another rate; one that a table has no room for waits */
            t->decisions--;
            if (is_table(s->kind) && lead_at(b, q) > t->of[!t->slow[key]].horizon) return;
            if (!oracle_change(b, q, &t->of[!t->slow[key]])) return;
            EQ(do_change(s, tick, &s->limits[!t->slow[key]]), 0);
            t->slow[key] = !t->slow[key];
            a.stored = 0;
            memset(&d.permit, 0, sizeof d.permit);
            break;
        case 11:
            if (is_table(s->kind)) {
                DO(burst(t, now));
                return;
            }
            a = oracle_check(b, q, cost, 0);
            EQ(do_check(s, key, tick, cost, &out), a.verdict);
            EQ(out, retry_of(b, now, &a));
            return;
        case 9: /* a refund of the last charge */
            t->decisions--;
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

static long traces = 400, least, compared;
static int first = 1;

/* Prints how many decisions were compared; `each` trace has so many on average, or more. */
static void run(enum kind kind, const char *name, long each) {
    static trace t;
    long decisions = 0;
    for (int n = 0, seed = first; n < traces; seed++) {
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
        u128 top = start, skew = t.spec[0].skew, end_q = clock_q(b, start) + ((u128)1 << (t.s.bits - 2));
        for (int i = 0; i < 1500; i++) {
            u128 t_ticks = ticks(b, 0, b->t);
            if (below(&t, 3) == 0) top += below(&t, (uint64_t)t_ticks * 3 + 2);
            if (below(&t, 200) == 0) top += below(&t, (uint64_t)ticks(b, 0, b->horizon) + 2);
            if (clock_q(b, top) >= end_q) break;
            u128 now = top;
            /* Clocks within the skew. */
            if (below(&t, 8) == 0 && top >= start + skew) now -= below(&t, (uint64_t)skew + 1);
            if (now < t.earliest) now = top;
            NOTE("seed %d step %d", seed, i);
            DO(step(&t, is_table(kind) ? (int)below(&t, KEYS) : 0, now));
        }
        decisions += t.decisions;
        if (is_table(kind)) kit_free(&t.s.k);
    }
    printf("%s: %ld decisions compared in %ld traces, 0 differences\n", name, decisions, traces);
    EXPECT(first > 1 || decisions >= traces * each); /* one trace may be short */
    compared += decisions;
}

TEST(cell_equals_the_exact_token_bucket) { run(CELL64, "cell", 1000); }
TEST(exclusive_cell_equals_the_exact_token_bucket) { run(EXCLUSIVE, "exclusive cell", 1000); }
TEST(cell32_equals_the_exact_token_bucket) { run(CELL32, "32-bit cell", 900); }
TEST(table_equals_one_exact_token_bucket_per_key) { run(TABLE, "table", 4000); }
TEST(exclusive_table_equals_one_exact_token_bucket_per_key) { run(OWN_TABLE, "exclusive table", 4000); }

TEST(as_many_decisions_as_were_asked_for_were_compared) {
    printf("all: %ld decisions compared\n", compared);
    EXPECT(compared >= least);
}

/* A burst call decides as single calls do, in order, repeated keys and full sets included; in every fifth round it
 * prepares nothing for the next one, and in half of these says that its lines are there already. */
TEST(bursts_with_a_look_ahead_and_without_equal_single_calls) {
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
            burst->flags = round % 10 == 0 ? TATCELL_BURST_PREFETCHED : 0; /* true or not, the verdicts are the same */
            EQ(tatcell_table_check_burst(&many.table, burst, round % 5 == 0 ? NULL : next), 0);
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
    if (argc > 1) traces = atol(argv[1]);
    if (argc > 2) least = (long)strtod(argv[2], NULL);
    if (argc > 3) first = atoi(argv[3]);
    RUN(cell_equals_the_exact_token_bucket);
    RUN(exclusive_cell_equals_the_exact_token_bucket);
    RUN(cell32_equals_the_exact_token_bucket);
    RUN(table_equals_one_exact_token_bucket_per_key);
    RUN(exclusive_table_equals_one_exact_token_bucket_per_key);
    RUN(as_many_decisions_as_were_asked_for_were_compared);
    RUN(bursts_with_a_look_ahead_and_without_equal_single_calls);
    return check_end();
}
