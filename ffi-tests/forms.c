/* forms.c - the forms of a call: with counters and without, by key and by hash, shared and for one owner. Each answers
 * as the others do, says in its code what it says in its decision, and fills every place that it is given; and what a
 * call writes may lie over nothing that it reads or writes besides. */
#include <sys/stat.h>
#include <unistd.h>

#include "kit.h"
#include "tatcell_host.h"

enum { T = 1000, NOW = 777 * T, KEYS = 4 };

static kit_table k;
static tatcell_limit_t limit, limit32;
static tatcell_decision_t d;
static tatcell_counters_t c;
static union {
    uint64_t words[512];
    tatcell_decision_t decisions[4];
    tatcell_permit_t permits[8];
    tatcell_counters_t counters;
    tatcell_link_t links[2];
    tatcell_limit_t limit;
    tatcell_leaky_queue_t queue;
} place;

static void setup(void) {
    tatcell_limit_spec_t s = kit_spec(1, T, 9);
    s.max_delay = 30 * T, s.max_debt = 12, s.max_room = 2;
    EQ(kit_make(&k, s, 256, NULL), 0);
    EQ(tatcell_limit_init(&limit, 1, T, 3), 0);
    EQ(tatcell_limit32_init(&limit32, 1, T, 3), 0);
    tatcell_decision_t fresh = TATCELL_DECISION_INIT;
    tatcell_counters_t none = TATCELL_COUNTERS_INIT;
    d = fresh, c = none;
    memset(&place, 0, sizeof place);
}

/* One operation in its four forms, each on a key of its own line of time, so that all must answer alike. */
enum { CHECK, CHARGE, RESERVE, OPERATIONS };

static int32_t ask(int what, int hashed, const char *key, uint64_t cost, tatcell_decision_t *out,
    tatcell_counters_t *counters) {
    const tatcell_table_t *t = &k.table;
    const tatcell_limit_t *l = &k.limit;
    uint64_t hash = kit_hash(&k, key);
    size_t length = strlen(key);
    if (what == CHECK)
        return hashed ? tatcell_table_check_ex_hash(t, l, NOW, hash, cost, 0, out, counters)
                      : tatcell_table_check_ex(t, l, NOW, key, length, cost, 0, out, counters);
    if (what == CHARGE && counters)
        return hashed ? tatcell_table_charge_ex_hash(t, l, NOW, hash, cost, out, counters)
                      : tatcell_table_charge_ex(t, l, NOW, key, length, cost, out, counters);
    if (what == CHARGE)
        return hashed ? tatcell_table_charge_hash(t, l, NOW, hash, cost, out)
                      : tatcell_table_charge(t, l, NOW, key, length, cost, out);
    if (counters)
        return hashed ? tatcell_table_reserve_ex_hash(t, l, NOW, hash, cost, out, counters)
                      : tatcell_table_reserve_ex(t, l, NOW, key, length, cost, out, counters);
    return hashed ? tatcell_table_reserve_hash(t, l, NOW, hash, cost, out)
                  : tatcell_table_reserve(t, l, NOW, key, length, cost, out);
}

TEST(forms_of_an_operation_on_a_key_answer_alike) {
    static const char *const keys[OPERATIONS][KEYS] = {
        {"c0", "c1", "c2", "c3"}, {"h0", "h1", "h2", "h3"}, {"r0", "r1", "r2", "r3"}};
    DO(setup());
    for (int what = 0; what < OPERATIONS; what++) {
        for (int turn = 0; turn < 8; turn++) {
            uint64_t cost = turn == 7 ? UINT64_C(1) << 40 : 2 + (uint64_t)turn;
            tatcell_decision_t first = TATCELL_DECISION_INIT;
            tatcell_counters_t sum = TATCELL_COUNTERS_INIT;
            for (int form = 0; form < 4; form++) {
                NOTE("operation %d, turn %d, form %d", what, turn, form);
                tatcell_decision_t made;
                memset(&made, 0xa5, sizeof made);
                made.size = sizeof made;
                int32_t rc = ask(what, form & 1, keys[what][form], cost, &made, form & 2 ? &sum : NULL);
                EQ(rc, made.verdict);
                EQ(made.cost, cost);
                if (made.permit.stored) EQ(made.permit.tick, NOW);
                if (form == 0) first = made;
                EQ(made.verdict, first.verdict);
                EQ(made.remaining, first.remaining);
                EQ(made.retry_after, first.retry_after);
                EQ(made.reset_after, first.reset_after);
                EQ(made.departure, first.departure);
                EQ(made.permit.stored, first.permit.stored);
            }
            EQ(sum.inserted, turn == 0 ? 2 : 0);
            EQ(sum.conforming, first.verdict == 0 ? 2 : 0);
            EQ(sum.non_conforming, first.verdict == TATCELL_NON_CONFORMING ? 2 : 0);
            EQ(sum.never, first.verdict == TATCELL_NEVER ? 2 : 0);
        }
    }
    kit_free(&k);
}

/* Both forms answer and count as the call with the full answer: new keys, live ones, peeks, costs above the burst, a
 * limit in shadow, a soft threshold, and sets that are full under every policy. */
TEST(a_counted_check_is_a_check_with_counters) {
    for (uint32_t policy = TATCELL_FULL_ADMIT; policy <= TATCELL_FULL_SAMPLED; policy++) {
        kit_table twins[3];
        tatcell_counters_t sums[3] = {TATCELL_COUNTERS_INIT, TATCELL_COUNTERS_INIT, TATCELL_COUNTERS_INIT};
        tatcell_limit_t shadows[3];
        tatcell_limit_spec_t s = kit_spec(1, T, 9);
        tatcell_table_options_t o = kit_options(&s);
        o.policy = policy;
        s.soft = 3;
        for (int i = 0; i < 3; i++) {
            tatcell_limit_spec_t shadow = s;
            shadow.flags = TATCELL_LIMIT_SHADOW;
            EQ(kit_make(&twins[i], s, 64, &o), 0);
            EQ(tatcell_limit_init_table(&shadows[i], &twins[i].table, &shadow), 0);
        }
        unsigned long long random = policy + 1;
        for (int turn = 0; turn < 4000; turn++) {
            char key[24];
            NOTE("policy %u, turn %d", policy, turn);
            size_t length = (size_t)snprintf(key, sizeof key, turn & 1 ? "key%u" : "a key of a user %u",
                (unsigned)(check_random(&random) % 200));
            uint64_t cost = check_random(&random) % 12, now = NOW + (uint64_t)turn * T / 64, hash;
            int shadow = check_random(&random) % 8 == 0;
            const tatcell_limit_t *limits[3];
            for (int i = 0; i < 3; i++) limits[i] = shadow ? &shadows[i] : &twins[i].limit;
            tatcell_decision_t made = TATCELL_DECISION_INIT;
            int32_t want =
                tatcell_table_check_ex(&twins[0].table, limits[0], now, key, length, cost, 0, &made, &sums[0]);
            uint64_t wait = want == 0 ? 0 : made.retry_after, waits[2] = {7, 7};
            int32_t keyed = tatcell_table_check_counted(&twins[1].table, limits[1], now, key, length, cost, &waits[0],
                &sums[1]);
            EQ(keyed, want);
            EQ(tatcell_table_hash(&twins[2].table, key, length, &hash), 0);
            int32_t hashed = tatcell_table_check_counted_hash(&twins[2].table, limits[2], now, hash, cost, &waits[1],
                &sums[2]);
            EQ(hashed, want);
            EQ(waits[0], wait);
            EQ(waits[1], wait);
        }
        for (int i = 1; i < 3; i++) EQ(memcmp(&sums[i], &sums[0], sizeof sums[0]), 0);
        EXPECT(sums[0].conforming && sums[0].shadow && sums[0].non_conforming && sums[0].never && sums[0].inserted);
        EXPECT(sums[0].soft);
        EXPECT(sums[0].untracked + sums[0].inherited + sums[0].forgiven > 0);
        for (int i = 0; i < 3; i++) kit_free(&twins[i]);
    }
}

TEST(cells_and_logs_count_and_say_what_they_decide) {
    DO(setup());
    tatcell_cell_t cell = TATCELL_CELL_INIT, stamps[3] = {{0}, {0}, {0}};
    tatcell_cell32_t cell32 = TATCELL_CELL32_INIT;
    tatcell_sliding_log_t log;
    EQ(tatcell_sliding_log_init(&log, stamps, 3, T, 0), 0);
    tatcell_counters_t want = TATCELL_COUNTERS_INIT;
    want.conforming = 3, want.non_conforming = 2;
    for (int form = 0; form < 3; form++) {
        tatcell_counters_t sum = TATCELL_COUNTERS_INIT;
        NOTE("form %d", form);
        for (int i = 0; i < 5; i++) {
            int32_t rc = form == 0 ? tatcell_cell_check_ex(&cell, &limit, NOW, 1, 0, &d, &sum)
                : form == 1        ? tatcell_cell32_check_ex(&cell32, &limit32, NOW, 1, 0, &d, &sum)
                                   : tatcell_sliding_log_check_ex(&log, NOW, &d, &sum);
            EQ(rc, i < 3 ? 0 : TATCELL_NON_CONFORMING);
            EQ(rc, d.verdict);
        }
        EQ(memcmp(&sum, &want, sizeof sum), 0);
    }
    tatcell_link_t link = TATCELL_LINK_INIT;
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    link.cell = &cell, link.limit = &limit, link.cost = 1;
    chain.links = &link, chain.link_size = sizeof link, chain.count = 1;
    EQ(tatcell_cell_peek(&cell, &limit, NOW, 1, &d), TATCELL_NON_CONFORMING);
    EQ(tatcell_cell32_peek(&cell32, &limit32, NOW, 1, &d), TATCELL_NON_CONFORMING);
    EQ(tatcell_sliding_log_peek(&log, NOW, &d), TATCELL_NON_CONFORMING);
    EQ(tatcell_chain_peek(&chain, NOW, &d), TATCELL_NON_CONFORMING);
    EQ(d.verdict, TATCELL_NON_CONFORMING);
    kit_free(&k);
}

/* Each call with two limits a key hashes the next burst: its keys need not be there any more when it is decided. */
TEST(a_burst_under_two_limits_prepares_the_next_one_and_uses_it_up) {
    for (int marks = 0; marks < 2; marks++) {
        DO(setup());
        NOTE("marks %d", marks);
        uint32_t keys[2][KEYS] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
        uint8_t colours[KEYS];
        tatcell_mark_t mark = TATCELL_MARK_INIT;
        mark.kind = TATCELL_METER_RFC4115, mark.committed = &k.limit, mark.second = &k.limit;
        tatcell_burst_t b[2];
        for (int i = 0; i < 2; i++) {
            b[i] = kit_burst(marks ? NULL : &k.limit, NOW, keys[i], 4, 4, KEYS);
            EQ(b[i].prepared, 0);
        }
        for (int i = 0; i < 2; i++) {
            tatcell_burst_t *next = i == 0 ? &b[1] : NULL;
            EQ(marks ? tatcell_table_mark_burst(&k.table, &b[i], &mark, NULL, colours, NULL, next)
                     : tatcell_table_check_pairs(&k.table, &b[i], &k.limit, NULL, next), 0);
            EQ(b[i].pass, (1 << KEYS) - 1);
            EQ(b[i].prepared, 0);
            EXPECT(i == 1 || b[1].prepared != 0);
            memset(keys[1], 0xff, sizeof keys[1]);
        }
        uint32_t seven = 7, overwritten = UINT32_MAX;
        EXPECT(tatcell_table_peek(&k.table, &k.limit, NOW, &seven, 4, 9, &d) == TATCELL_NON_CONFORMING);
        EQ(tatcell_table_peek(&k.table, &k.limit, NOW, &overwritten, 4, 9, &d), 0);
        kit_free(&k);
    }
}

#define OVERLAPS(call) \
    do { \
        memcpy(before, &place, sizeof place); \
        EQ(call, TATCELL_ERR_OVERLAP); \
        EQ(memcmp(before, &place, sizeof place), 0); \
    } while (0)

static unsigned char before[sizeof place];

TEST(what_a_chain_writes_lies_over_nothing_that_it_reads) {
    DO(setup());
    tatcell_cell_t cells[2] = {{0}, {0}};
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    for (int i = 0; i < 2; i++) {
        place.links[i].cell = &cells[i], place.links[i].limit = &limit, place.links[i].cost = 1;
        place.links[i].size = sizeof d;
    }
    chain.links = place.links, chain.link_size = sizeof *place.links, chain.count = 2;
    OVERLAPS(tatcell_chain_check(&chain, NOW, place.decisions));
    OVERLAPS(tatcell_chain_peek(&chain, NOW, place.decisions));
    OVERLAPS(tatcell_chain_reserve(&chain, NOW, place.decisions));
    chain.permits = place.permits;
    OVERLAPS(tatcell_chain_check(&chain, NOW, &d));
    chain.permits = NULL, chain.counters = &place.counters;
    OVERLAPS(tatcell_chain_check(&chain, NOW, &d));
    chain.counters = NULL, chain.decisions = place.decisions, chain.decision_size = sizeof d;
    OVERLAPS(tatcell_chain_check(&chain, NOW, &d));
    chain.decisions = NULL;
    EQ(cells[0].word | cells[1].word, 0);
    EQ(tatcell_chain_check(&chain, NOW, &d), 0);
    kit_free(&k);
}

TEST(a_queue_lies_over_neither_its_memory_nor_its_limit) {
    DO(setup());
    tatcell_leaky_queue_t queue;
    size_t bytes = tatcell_leaky_queue_bytes(32);
    EXPECT(bytes <= sizeof place);
    EQ(tatcell_limit_init(&place.limit, 1, T, 3), 0);
    OVERLAPS(tatcell_leaky_queue_init(&queue, &place, bytes, &place.limit, NOW));
    OVERLAPS(tatcell_leaky_queue_init(&place.queue, place.words + 256, 512, &place.limit, NOW));
    OVERLAPS(tatcell_leaky_queue_init(&place.queue, &place, bytes, &limit, NOW));
    EQ(tatcell_leaky_queue_init(&queue, place.words + 64, bytes, &place.limit, NOW), 0);
    kit_free(&k);
}

/* Whether the other arguments are good or not: those that are get the quicker look at all of them together. */
TEST(a_lease_lies_over_neither_its_cell_nor_its_limit) {
    DO(setup());
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_lease_t lease = TATCELL_LEASE_INIT;
    uint64_t told = 7;
    EQ(tatcell_limit_init(&place.limit, 1, T, 64), 0);
    for (size_t word = 0; word < sizeof place.limit / 8; word++) {
        NOTE("at word %d of the limit", (int)word);
        tatcell_lease_t *over = (tatcell_lease_t *)(void *)(place.words + word);
        OVERLAPS(tatcell_lease_check(over, &cell, &place.limit, NOW, 1, &told));
        OVERLAPS(tatcell_lease_return(over, &cell, &place.limit, NOW, &told));
        OVERLAPS(tatcell_lease_held(over, &cell, &place.limit, NOW, &told));
    }
    for (size_t word = 0; word < sizeof lease / 8; word++) {
        tatcell_cell_t *over = (tatcell_cell_t *)(void *)(place.words + 64 + word);
        OVERLAPS(tatcell_lease_check((tatcell_lease_t *)(void *)(place.words + 64), over, &limit, NOW, 1, &told));
    }
    EQ(told, 7);
    EQ(cell.word, 0);
    EQ(tatcell_lease_check(&lease, &cell, &place.limit, NOW, 1, &told), 0);
    kit_free(&k);
}

/* Every array of a burst at every place that the call writes: the burst itself, the next one, decisions, counters. */
TEST(what_a_burst_reads_lies_under_nothing_that_it_writes) {
    DO(setup());
    static uint32_t keys[KEYS] = {1, 2, 3, 4}, costs[KEYS] = {1, 1, 1, 1};
    const void *pointers[KEYS] = {keys, keys + 1, keys + 2, keys + 3};
    const tatcell_limit_t *limits[KEYS] = {&k.limit, &k.limit, &k.limit, &k.limit};
    size_t lengths[KEYS] = {4, 4, 4, 4};
    enum { POINTERS, LENGTHS, LIMITS, COSTS, KEY_BYTES, HASHES, ARRAYS };
    for (int array = 0; array < ARRAYS; array++) {
        for (int over = 0; over < 4; over++) {
            NOTE("array %d over %d", array, over);
            tatcell_burst_t b = kit_burst(&k.limit, NOW, keys, 4, 4, KEYS), next = b;
            b.decisions = place.decisions, b.decision_size = sizeof d, b.counters = &c;
            void *const to = over == 0 ? (void *)b.scratch
                : over == 1            ? (void *)next.scratch
                : over == 2            ? (void *)(place.decisions + 1)
                                       : (void *)&c;
            tatcell_counters_t none = TATCELL_COUNTERS_INIT;
            c = none;
            if (array == POINTERS) b.keys = NULL, b.key_pointers = (const void *const *)to;
            if (array == POINTERS) memcpy(to, pointers, sizeof pointers);
            if (array == LENGTHS) b.key_len = 0, b.key_lens = memcpy(to, lengths, sizeof lengths);
            if (array == LIMITS) b.limit = NULL, b.limits = (const tatcell_limit_t *const *)to;
            if (array == LIMITS) memcpy(to, limits, sizeof limits);
            if (array == COSTS) b.costs = memcpy(to, costs, sizeof costs);
            if (array == KEY_BYTES) b.keys = memcpy(to, keys, sizeof keys);
            if (array == HASHES) b.keys = NULL, b.hashes = memset(to, 1, KEYS * sizeof(uint64_t));
            OVERLAPS(tatcell_table_check_burst(&k.table, &b, &next));
        }
    }
    kit_free(&k);
}

/* The same of bursts under two limits: what is written there are both bursts and counters, with marks colours and
 * sums besides. */
TEST(what_bursts_under_two_limits_read_lies_under_nothing_that_they_write) {
    DO(setup());
    static uint32_t keys[KEYS] = {1, 2, 3, 4}, costs[KEYS] = {1, 1, 1, 1};
    static uint8_t colours[64];
    static uint64_t sums[64];
    enum { LIMIT, COSTS, KEY_BYTES, HASHES, ARRAYS };
    for (int marks = 0; marks < 2; marks++) {
        for (int array = 0; array < ARRAYS; array++) {
            for (int over = 0; over < (marks ? 5 : 3); over++) {
                NOTE("marks %d, array %d over %d", marks, array, over);
                tatcell_burst_t b = kit_burst(marks ? NULL : &k.limit, NOW, keys, 4, 4, KEYS), next = b;
                tatcell_mark_t mark = TATCELL_MARK_INIT;
                mark.kind = TATCELL_METER_RFC2698, mark.committed = &k.limit, mark.second = &k.limit;
                b.counters = &place.counters;
                void *const to = over == 0 ? (void *)b.scratch
                    : over == 1            ? (void *)next.scratch
                    : over == 2            ? (void *)&place.counters
                    : over == 3            ? (void *)place.words
                                           : (void *)(place.words + 256);
                uint8_t *coloured = over == 3 ? (uint8_t *)place.words : colours;
                uint64_t *summed = over == 4 ? place.words + 256 : sums;
                if (over == 3) b.counters = NULL;
                const tatcell_limit_t *second = &k.limit;
                if (array == LIMIT) mark.second = second = memcpy(to, &k.limit, sizeof k.limit);
                if (array == COSTS) b.costs = memcpy(to, costs, sizeof costs);
                if (array == KEY_BYTES) b.keys = memcpy(to, keys, sizeof keys);
                if (array == HASHES) b.keys = NULL, b.hashes = memset(to, 1, KEYS * sizeof(uint64_t));
                if (marks)
                    OVERLAPS(tatcell_table_mark_burst(&k.table, &b, &mark, NULL, coloured, summed, &next));
                else
                    OVERLAPS(tatcell_table_check_pairs(&k.table, &b, second, NULL, &next));
            }
        }
        for (int over = 0; over < 2; over++) {
            NOTE("marks %d, counters over %d", marks, over);
            tatcell_burst_t b = kit_burst(marks ? NULL : &k.limit, NOW, keys, 4, 4, KEYS), next = b;
            tatcell_mark_t mark = TATCELL_MARK_INIT;
            mark.kind = TATCELL_METER_RFC2698, mark.committed = &k.limit, mark.second = &k.limit;
            b.counters = (tatcell_counters_t *)(void *)(over ? next.scratch : b.scratch);
            if (marks)
                OVERLAPS(tatcell_table_mark_burst(&k.table, &b, &mark, NULL, colours, NULL, &next));
            else
                OVERLAPS(tatcell_table_check_pairs(&k.table, &b, &k.limit, NULL, &next));
        }
    }
    kit_free(&k);
}

/* Four keys that end where the counters begin: one that is longer by a byte lies under them, key_len says nothing. */
TEST(keys_with_lengths_of_their_own_are_as_long_as_these_say) {
    DO(setup());
    tatcell_counters_t *const behind = (tatcell_counters_t *)(void *)(place.words + 2);
    for (int longer = 0; longer < KEYS; longer++) {
        NOTE("key %d", longer);
        size_t lengths[KEYS] = {16, 12, 8, 4};
        tatcell_burst_t b = kit_burst(&k.limit, NOW, place.words, 64, 4, KEYS);
        b.key_lens = lengths, b.counters = behind;
        EQ(tatcell_table_check_burst(&k.table, &b, NULL), 0);
        b.key_len = 0, lengths[longer]++;
        OVERLAPS(tatcell_table_check_burst(&k.table, &b, NULL));
    }
    EQ(behind->conforming, 4 * KEYS);
    kit_free(&k);
}

/* Keys may lie inside larger structures: what else is in these is no key. */
TEST(what_lies_between_keys_may_be_written) {
    static struct {
        char key[16];
        tatcell_counters_t counted;
        tatcell_burst_t burst;
    } requests[KEYS];
    DO(setup());
    for (int i = 0; i < KEYS; i++) {
        NOTE("request %d", i);
        for (int way = 0; way < 2; way++) {
            tatcell_burst_t *const b = &requests[i].burst;
            const ptrdiff_t stride = (ptrdiff_t)sizeof requests[0];
            *b = kit_burst(&k.limit, NOW, requests[way ? KEYS - 1 : 0].key, 16, way ? -stride : stride, KEYS);
            b->counters = &requests[i].counted;
            EQ(tatcell_table_check_burst(&k.table, b, NULL), 0);
            b->counters = (tatcell_counters_t *)(void *)(requests[i].key + 8);
            OVERLAPS(tatcell_table_check_burst(&k.table, b, NULL));
        }
        EQ(requests[i].counted.conforming + requests[i].counted.non_conforming, 2 * KEYS);
    }
    kit_free(&k);
}

TEST(marks_refuse_a_burst_that_asks_for_what_they_do_not_have) {
    DO(setup());
    static uint32_t keys[KEYS] = {1, 2, 3, 4};
    uint8_t colours[KEYS];
    const tatcell_limit_t *limits[KEYS] = {&k.limit, &k.limit, &k.limit, &k.limit};
    for (int what = 0; what < 3; what++) {
        NOTE("%d", what);
        tatcell_burst_t b = kit_burst(NULL, NOW, keys, 4, 4, KEYS);
        tatcell_mark_t mark = TATCELL_MARK_INIT;
        mark.kind = TATCELL_METER_RFC2698, mark.committed = &k.limit, mark.second = &k.limit;
        if (what == 0) b.limit = &k.limit;
        if (what == 1) b.limits = limits;
        if (what == 2) b.decisions = place.decisions, b.decision_size = sizeof d;
        EQ(tatcell_table_mark_burst(&k.table, &b, &mark, NULL, colours, NULL, NULL), TATCELL_ERR_OPTION);
    }
    kit_free(&k);
}

/* What a call of the host tells besides its result, it tells whether it succeeds or not. */
TEST(calls_of_the_host_fill_every_place_that_they_are_given) {
    int32_t error = 77, rc;
    uint64_t value = 0, uncertainty = UINT64_MAX;
    EQ(tatcell_host_clock_resolution(TATCELL_HOST_CLOCK_MONOTONIC, &value, &error), 0);
    EXPECT(value != 0 && error == 0);
    error = 77;
    EQ(tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &value, &error), 0);
    EXPECT(value != 0 && error == 0);
    error = 77;
    rc = tatcell_host_ticks_calibrate(2000000, &value, &uncertainty, &error);
    EXPECT(rc == 0 || rc == TATCELL_ERR_UNSUPPORTED);
    EXPECT(error == 0 && (rc != 0 || (value != 0 && uncertainty < 1000000000)));
    tatcell_host_memory_t memory = TATCELL_HOST_MEMORY_INIT;
    EQ(tatcell_host_memory_map(4096, 0, &memory), 0);
    error = 77;
    rc = tatcell_host_memory_huge_bytes(&memory, &value, &error);
    EXPECT((rc == 0 || rc == TATCELL_ERR_UNSUPPORTED) && error == 0);
    EQ(tatcell_host_memory_unmap(&memory), 0);
    error = 77;
    EQ(tatcell_host_memory_unlink("/tatcell-forms-there-is-none", &error), TATCELL_ERR_ABSENT);
    EQ(error, 0);
}

/* Memory with a name has the mode and the size that were asked for; of another size it is not attached. */
TEST(named_memory_is_what_was_asked_for) {
    char name[64], path[96];
    snprintf(name, sizeof name, "/tatcell-forms-%d", (int)getpid());
    snprintf(path, sizeof path, "/dev/shm%s", name);
    tatcell_host_memory_t memory = TATCELL_HOST_MEMORY_INIT, other = TATCELL_HOST_MEMORY_INIT;
    const mode_t before_it = umask(0);
    int32_t rc = tatcell_host_memory_create(name, 8192, 0664, &memory);
    umask(before_it);
    EQ(rc, 0);
    struct stat told;
    int found = stat(path, &told);
    int32_t smaller = tatcell_host_memory_attach(name, 4096, &other);
    int32_t larger = tatcell_host_memory_attach(name, 16384, &other);
    EQ(tatcell_host_memory_unlink(name, NULL), 0);
    EQ(tatcell_host_memory_unmap(&memory), 0);
    EQ(smaller, TATCELL_ERR_WRONG_SIZE);
    EQ(larger, TATCELL_ERR_WRONG_SIZE);
    if (found == 0) EQ(told.st_mode & 0777, 0664);
}

int main(void) {
    RUN(forms_of_an_operation_on_a_key_answer_alike);
    RUN(a_counted_check_is_a_check_with_counters);
    RUN(cells_and_logs_count_and_say_what_they_decide);
    RUN(a_burst_under_two_limits_prepares_the_next_one_and_uses_it_up);
    RUN(what_a_chain_writes_lies_over_nothing_that_it_reads);
    RUN(a_queue_lies_over_neither_its_memory_nor_its_limit);
    RUN(a_lease_lies_over_neither_its_cell_nor_its_limit);
    RUN(what_a_burst_reads_lies_under_nothing_that_it_writes);
    RUN(what_bursts_under_two_limits_read_lies_under_nothing_that_they_write);
    RUN(keys_with_lengths_of_their_own_are_as_long_as_these_say);
    RUN(what_lies_between_keys_may_be_written);
    RUN(marks_refuse_a_burst_that_asks_for_what_they_do_not_have);
    RUN(calls_of_the_host_fill_every_place_that_they_are_given);
    RUN(named_memory_is_what_was_asked_for);
    return check_end();
}
