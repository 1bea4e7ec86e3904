/* mark.c - three-colour marking of the keys of a table: the RFCs' buckets packet by packet, bursts as single calls,
 * threads, and every bad argument.
 *
 * Usage: mark [PACKETS], of each kind beside the buckets. */
#include <pthread.h>
#include <stdatomic.h>

#include "kit.h"

enum { G = TATCELL_GREEN, Y = TATCELL_YELLOW, R = TATCELL_RED, FLOWS = 16, THREADS = 4 };

static const uint32_t kinds[2] = {TATCELL_METER_RFC2698, TATCELL_METER_RFC4115};
static long packets = 1100000;

/* A table with a mark. */
typedef struct marked_table {
    kit_table k;
    tatcell_limit_t second;
    tatcell_mark_t mark;
} marked_table;

/* Bytes a second; ticks are nanoseconds. */
static int32_t make(marked_table *m, uint32_t kind, uint64_t cir, uint64_t cbs, uint64_t rate2, uint64_t burst2) {
    const tatcell_limit_spec_t committed = kit_spec(cir, SECOND, cbs), second = kit_spec(rate2, SECOND, burst2);
    tatcell_table_options_t o = kit_options(NULL);
    o.slowest = cir < rate2 ? &committed : &second;
    int32_t rc = kit_make(&m->k, cir < rate2 ? second : committed, 512, &o);
    if (rc == 0) rc = tatcell_limit_init_table(&m->k.limit, &m->k.table, &committed);
    if (rc == 0) rc = tatcell_limit_init_table(&m->second, &m->k.table, &second);
    const tatcell_mark_t fresh = TATCELL_MARK_INIT;
    m->mark = fresh;
    m->mark.kind = kind, m->mark.committed = &m->k.limit, m->mark.second = &m->second;
    return rc;
}

TEST(a_fresh_flow_gets_the_colours_of_dpdks_table) {
    static const uint64_t sizes[] = {2047, 2049, 4095, 4097};
    static const uint32_t table[3][4] = {{G, Y, Y, R}, {Y, Y, Y, R}, {R, R, R, R}};
    for (int kind = 0; kind < 2; kind++)
        for (uint32_t pre = 0; pre < 3; pre++)
            for (int i = 0; i < 4; i++) {
                marked_table m;
                uint32_t colour = 77, twin = 77;
                EQ(make(&m, kinds[kind], 46000000, 2048, 69000000, 4096), 0);
                NOTE("kind %d, %d bytes that came %u", kind, (int)sizes[i], pre);
                int32_t rc = tatcell_table_mark(&m.k.table, &m.mark, SECOND, "flow", 4, sizes[i], pre, &colour);
                EQ(colour, table[pre][i]);
                EQ(rc, colour != R ? TATCELL_PASS : pre != R ? TATCELL_NEVER : TATCELL_NON_CONFORMING);
                const uint64_t other = kit_hash(&m.k, "another");
                EQ(tatcell_table_mark_hash(&m.k.table, &m.mark, SECOND, other, sizes[i], pre, &twin), rc);
                EQ(twin, colour);
                EQ(tatcell_table_mark_hash(&m.k.table, &m.mark, SECOND, other, 0, R, NULL), TATCELL_NON_CONFORMING);
                kit_free(&m.k);
            }
}

__extension__ typedef unsigned __int128 u128;

/* The RFCs' buckets in whole tokens, SECOND to a byte. */
typedef struct buckets {
    u128 t1, t2;
    uint64_t last;
} buckets;

typedef struct rates {
    uint64_t cir, cbs, rate2, burst2;
} rates;

static uint32_t oracle(buckets *b, const rates *s, uint32_t kind, uint64_t now, uint64_t cost, uint32_t pre) {
    const u128 full1 = (u128)s->cbs * SECOND, full2 = (u128)s->burst2 * SECOND;
    const u128 size = (u128)cost * SECOND, passed = now - b->last;
    b->last = now;
    b->t1 += passed * s->cir, b->t2 += passed * s->rate2;
    if (b->t1 > full1) b->t1 = full1;
    if (b->t2 > full2) b->t2 = full2;
    const int first = b->t1 >= size, second = b->t2 >= size;
    if (kind == TATCELL_METER_RFC2698) {
        if (pre == R || !second) return R;
        b->t2 -= size;
        if (pre == Y || !first) return Y;
        b->t1 -= size;
        return G;
    }
    if (pre == G && first) return b->t1 -= size, G;
    if (pre != R && second) return b->t2 -= size, Y;
    return R;
}

/* Bursts with a look ahead and single calls in turn, of flows with buckets of their own. Of these rates a byte takes a
 * whole number of q-units: nothing rounds, and every colour is the RFC's. */
TEST(colours_are_those_of_the_rfcs_buckets) {
    static const rates of[2] = {{125000000, 20000, 250000000, 60000}, {125000000, 20000, 62500000, 60000}};
    unsigned long long random = 21;
    for (int kind = 0; kind < 2; kind++) {
        const rates *s = &of[kind];
        marked_table m;
        EQ(make(&m, kinds[kind], s->cir, s->cbs, s->rate2, s->burst2), 0);
        buckets flows[FLOWS];
        uint64_t now = UINT64_C(1) << 40, counts[3] = {0}, seen[3] = {0};
        for (int i = 0; i < FLOWS; i++) {
            const buckets full = {(u128)s->cbs * SECOND, (u128)s->burst2 * SECOND, now};
            flows[i] = full;
        }
        tatcell_burst_t b[2] = {TATCELL_BURST_INIT, TATCELL_BURST_INIT};
        static uint32_t keys[2][64], sizes[64];
        static uint8_t pre[64], colours[64];
        tatcell_counters_t counted = TATCELL_COUNTERS_INIT;
        long done = 0;
        for (int round = 0; done < packets; round++) {
            tatcell_burst_t *burst = &b[round & 1], *next = &b[~round & 1];
            next->count = (uint32_t)(check_random(&random) % 65);
            for (uint32_t i = 0; i < next->count; i++) keys[~round & 1][i] = (uint32_t)(check_random(&random) % FLOWS);
            next->keys = keys[~round & 1], next->key_len = next->stride = 4, next->counters = &counted;
            burst->now = now, burst->costs = sizes;
            uint64_t wanted = 0;
            uint32_t want[64];
            for (uint32_t i = 0; i < burst->count; i++) {
                sizes[i] = 64 + (uint32_t)(check_random(&random) % 8937);
                pre[i] = (uint8_t)(check_random(&random) % 10 < 7 ? 0 : check_random(&random) % 3);
                want[i] = oracle(&flows[keys[round & 1][i]], s, kinds[kind], now, sizes[i], pre[i]);
                wanted |= (uint64_t)(want[i] != R) << i;
            }
            NOTE("kind %d, round %d, seed 21", kind, round);
            memset(colours, 77, sizeof colours);
            const int in_place = round % 3 == 0;
            if (in_place) memcpy(colours, pre, sizeof pre);
            uint8_t *came = in_place ? colours : pre;
            EQ(tatcell_table_mark_burst(&m.k.table, burst, &m.mark, came, colours, counts, next), 0);
            EQ(burst->pass, wanted);
            for (uint32_t i = 0; i < burst->count; i++) {
                EQ(colours[i], want[i]);
                seen[want[i]]++;
            }
            done += (long)burst->count;
            now += check_random(&random) % (burst->count * 4000 + 1);
            if (round % 7 == 0) {
                const uint32_t key = (uint32_t)(check_random(&random) % FLOWS);
                const uint64_t cost = 64 + check_random(&random) % 8937;
                uint32_t colour = 77;
                const uint32_t right = oracle(&flows[key], s, kinds[kind], now, cost, G);
                EQ(tatcell_table_mark(&m.k.table, &m.mark, now, &key, 4, cost, G, &colour), right == R);
                EQ(colour, right);
            }
        }
        EQ(memcmp(counts, seen, sizeof counts), 0);
        EQ(counted.conforming, seen[G] + seen[Y]);
        EQ(counted.non_conforming, seen[R]);
        for (int c = 0; c < 3; c++) EXPECT(seen[c] > (uint64_t)packets / 100);
        kit_free(&m.k);
    }
}

static struct {
    marked_table m;
    _Atomic uint64_t clock, passed[2];
} race;

static void *worker(void *argument) {
    unsigned long long random = 1 + *(int *)argument;
    for (int i = 0; i < 20000; i++) {
        const uint64_t now = atomic_fetch_add(&race.clock, 200), cost = 64 + check_random(&random) % 1437;
        uint32_t colour;
        if (tatcell_table_mark(&race.m.k.table, &race.m.mark, now, "flow", 4, cost, G, &colour) == 0)
            atomic_fetch_add(&race.passed[colour], cost);
    }
    return NULL;
}

TEST(threads_on_one_flow_break_no_envelope) {
    for (int kind = 0; kind < 2; kind++) {
        pthread_t threads[THREADS];
        int numbers[THREADS];
        memset(&race, 0, sizeof race);
        race.clock = UINT64_C(1) << 40;
        EQ(make(&race.m, kinds[kind], 1250000000, 20000, 1875000000, 30000), 0);
        for (int i = 0; i < THREADS; i++) {
            numbers[i] = i;
            EQ(pthread_create(&threads[i], NULL, worker, &numbers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        const uint64_t ticks = race.clock - 200 - (UINT64_C(1) << 40), green = race.passed[G], yellow = race.passed[Y];
        const uint64_t committed = 20000 + ticks * 5 / 4, second = 30000 + ticks * 15 / 8;
        NOTE("kind %d: %llu green, %llu yellow", kind, (unsigned long long)green, (unsigned long long)yellow);
        EXPECT(green <= committed && green > committed / 10 * 9 && yellow > 0);
        EXPECT((kind == 0 ? green + yellow : yellow) <= second);
        kit_free(&race.m.k);
    }
}

/* Everything that a call may touch. */
static marked_table m;
static uint8_t pre[4], colours[4];
static uint64_t counts[3];
static uint32_t colour;
static tatcell_counters_t counters;
static struct {
    unsigned char image[8192];
    uint8_t pre[4], colours[4];
    uint64_t counts[3];
    uint32_t colour;
    tatcell_counters_t counters;
} before;

static void keep(void) {
    memcpy(before.image, m.k.memory, m.k.bytes);
    memcpy(before.pre, pre, sizeof pre), memcpy(before.colours, colours, sizeof colours);
    memcpy(before.counts, counts, sizeof counts);
    before.colour = colour, before.counters = counters;
}

static int changed(void) {
    return memcmp(before.image, m.k.memory, m.k.bytes) || memcmp(before.pre, pre, sizeof pre) ||
           memcmp(before.colours, colours, sizeof colours) || memcmp(before.counts, counts, sizeof counts) ||
           before.colour != colour || memcmp(&before.counters, &counters, sizeof counters);
}

#define OFF(p) ((void *)((char *)(p) + 1))
#define REFUSES(code, call) \
    do { \
        keep(); \
        EQ(call, code); \
        EXPECT(!changed()); \
    } while (0)
/* All three functions, after a change of the mark that is taken back. */
#define BAD(code, change) \
    do { \
        change; \
        REFUSES(code, tatcell_table_mark(&m.k.table, &m.mark, 0, "k", 1, 1, G, &colour)); \
        REFUSES(code, tatcell_table_mark_hash(&m.k.table, &m.mark, 0, 1, 1, G, &colour)); \
        REFUSES(code, tatcell_table_mark_burst(&m.k.table, &b, &m.mark, pre, colours, counts, NULL)); \
        m.mark = good; \
    } while (0)
/* A burst, after a change of it that is taken back. */
#define BURST(code, change, pre, colours, counts, next) \
    do { \
        change; \
        REFUSES(code, tatcell_table_mark_burst(&m.k.table, &b, &m.mark, pre, colours, counts, next)); \
        b = fine; \
    } while (0)

TEST(bad_arguments_are_refused_and_change_nothing) {
    static const uint32_t keys[4] = {1, 2, 3, 4}, costs[4] = {1, 1, 1, 1};
    kit_table other, windows, caller;
    EQ(make(&m, TATCELL_METER_RFC2698, 1000, 500, 2000, 900), 0);
    EXPECT(m.k.bytes <= sizeof before.image);
    EQ(kit_make(&other, kit_spec(1, 1 << 30, 300), 64, NULL), 0);
    tatcell_limit_spec_t window = kit_spec(100, SECOND, 0);
    window.algorithm = TATCELL_ALGORITHM_FIXED_WINDOW;
    EQ(kit_make(&windows, window, 64, NULL), 0);
    tatcell_table_options_t o = kit_options(NULL);
    o.hash = TATCELL_HASH_CALLER;
    EQ(kit_make(&caller, kit_spec(1, 1000, 3), 64, &o), 0);
    tatcell_limit_t zero_limit, cells;
    tatcell_table_t zero_table;
    memset(&zero_limit, 0, sizeof zero_limit);
    memset(&zero_table, 0, sizeof zero_table);
    EQ(tatcell_limit_init(&cells, 1, 1000, 3), 0);
    const tatcell_mark_t good = m.mark;
    tatcell_burst_t b = TATCELL_BURST_INIT, next = TATCELL_BURST_INIT;
    b.keys = keys, b.key_len = b.stride = 4, b.count = 4, b.costs = costs, b.counters = &counters;
    const tatcell_burst_t fine = b;
    BAD(TATCELL_ERR_SIZE, m.mark.size = 0);
    BAD(TATCELL_ERR_SIZE, m.mark.size = sizeof m.mark - 8);
    BAD(TATCELL_ERR_OPTION, m.mark.flags = 1);
    BAD(TATCELL_ERR_OPTION, m.mark.reserved = 1);
    BAD(TATCELL_ERR_OPTION, m.mark.kind = 0);
    BAD(TATCELL_ERR_OPTION, m.mark.kind = TATCELL_METER_RFC2697);
    BAD(TATCELL_ERR_NULL, m.mark.committed = NULL);
    BAD(TATCELL_ERR_NULL, m.mark.second = NULL);
    BAD(TATCELL_ERR_ALIGN, m.mark.second = (const tatcell_limit_t *)OFF(&m.second));
    BAD(TATCELL_ERR_LIMIT, m.mark.committed = &zero_limit);
    BAD(TATCELL_ERR_LIMIT, m.mark.second = &cells);
    BAD(TATCELL_ERR_FOREIGN, m.mark.committed = &other.limit);
    BAD(TATCELL_ERR_FOREIGN, m.mark.second = &other.limit);
    BAD(TATCELL_ERR_PEAK, (m.mark.committed = &m.second, m.mark.second = &m.k.limit));
    m.mark.committed = m.mark.second = &windows.limit;
    REFUSES(TATCELL_ERR_ALGORITHM, tatcell_table_mark(&windows.table, &m.mark, 0, "k", 1, 1, G, &colour));
    REFUSES(TATCELL_ERR_ALGORITHM, tatcell_table_mark_burst(&windows.table, &b, &m.mark, pre, colours, counts, NULL));
    m.mark.committed = m.mark.second = &caller.limit;
    REFUSES(TATCELL_ERR_HASH, tatcell_table_mark(&caller.table, &m.mark, 0, "k", 1, 1, G, &colour));
    REFUSES(TATCELL_ERR_HASH, tatcell_table_mark_burst(&caller.table, &b, &m.mark, pre, colours, counts, NULL));
    EQ(tatcell_table_mark_hash(&caller.table, &m.mark, 0, 5, 1, G, NULL), 0);
    m.mark = good;
    REFUSES(TATCELL_ERR_NULL, tatcell_table_mark(NULL, &m.mark, 0, "k", 1, 1, G, &colour));
    REFUSES(TATCELL_ERR_HANDLE, tatcell_table_mark(&zero_table, &m.mark, 0, "k", 1, 1, G, &colour));
    REFUSES(TATCELL_ERR_NULL, tatcell_table_mark(&m.k.table, NULL, 0, "k", 1, 1, G, &colour));
    REFUSES(TATCELL_ERR_NULL, tatcell_table_mark(&m.k.table, &m.mark, 0, NULL, 0, 1, G, &colour));
    REFUSES(TATCELL_ERR_KEY_LENGTH, tatcell_table_mark(&m.k.table, &m.mark, 0, "k", SIZE_MAX, 1, G, &colour));
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_mark(&m.k.table, &m.mark, 0, "k", 1, 1, 3, &colour));
    REFUSES(TATCELL_ERR_OPTION, tatcell_table_mark_hash(&m.k.table, &m.mark, 0, 1, 1, UINT32_MAX, &colour));
    REFUSES(TATCELL_ERR_ALIGN, tatcell_table_mark(&m.k.table, &m.mark, 0, "k", 1, 1, G, (uint32_t *)OFF(&colour)));
    REFUSES(TATCELL_ERR_NULL, tatcell_table_mark_burst(&m.k.table, NULL, &m.mark, pre, colours, counts, NULL));
    BURST(TATCELL_ERR_SIZE, b.size = 0, pre, colours, counts, NULL);
    BURST(TATCELL_ERR_COUNT, b.count = 65, pre, colours, counts, NULL);
    BURST(TATCELL_ERR_OPTION, b.limit = &m.k.limit, pre, colours, counts, NULL);
    BURST(TATCELL_ERR_OPTION, b.flags = 2, pre, colours, counts, NULL);
    BURST(TATCELL_ERR_OPTION, , pre, colours, counts, &b);
    BURST(TATCELL_ERR_NULL, , pre, NULL, counts, NULL);
    BURST(TATCELL_ERR_NULL, b.keys = NULL, pre, colours, counts, NULL);
    BURST(TATCELL_ERR_ALIGN, , pre, colours, (uint64_t *)OFF(counts), NULL);
    BURST(TATCELL_ERR_OVERLAP, , pre, colours, (uint64_t *)(void *)b.scratch, NULL);
    BURST(TATCELL_ERR_OVERLAP, , pre, (uint8_t *)b.scratch, counts, NULL);
    BURST(TATCELL_ERR_OVERLAP, , pre, (uint8_t *)counts + 20, counts, NULL);
    BURST(TATCELL_ERR_OVERLAP, , pre, (uint8_t *)&counters, counts, NULL);
    BURST(TATCELL_ERR_OVERLAP, , pre, (uint8_t *)&m.mark, counts, NULL);
    BURST(TATCELL_ERR_OVERLAP, , (uint8_t *)&counters, colours, counts, NULL);
    BURST(TATCELL_ERR_OVERLAP, , pre, colours, (uint64_t *)(void *)&m.second, NULL);
    pre[3] = 3;
    BURST(TATCELL_ERR_OPTION, , pre, colours, counts, NULL);
    pre[3] = Y;
    next.count = 65;
    BURST(TATCELL_ERR_COUNT, , pre, colours, counts, &next);
    EQ(tatcell_table_mark_burst(&m.k.table, &b, &m.mark, pre, colours, counts, NULL), 0);
    EQ(b.pass, 15);
    EQ(colours[0], G);
    EQ(colours[3], Y);
    EQ(counts[0], 3);
    EQ(counts[1], 1);
    EQ(counters.conforming, 4);
    EQ(counters.inserted, 7);
    b.count = 0;
    EQ(tatcell_table_mark_burst(&m.k.table, &b, &m.mark, NULL, NULL, NULL, NULL), 0);
    kit_free(&m.k);
    kit_free(&other);
    kit_free(&windows);
    kit_free(&caller);
}

int main(int argc, char **argv) {
    if (argc > 1) packets = atol(argv[1]);
    RUN(a_fresh_flow_gets_the_colours_of_dpdks_table);
    RUN(colours_are_those_of_the_rfcs_buckets);
    RUN(threads_on_one_flow_break_no_envelope);
    RUN(bad_arguments_are_refused_and_change_nothing);
    return check_end();
}
