/* mark.c - three-colour marking of the keys of a table: the first colours, a burst, and every bad argument.
 * tests/combine/mark.rs has the RFCs' buckets, bursts beside single calls, and threads. */
#include "kit.h"

enum { G = TATCELL_GREEN, Y = TATCELL_YELLOW, R = TATCELL_RED };

static const uint32_t kinds[2] = {TATCELL_METER_RFC2698, TATCELL_METER_RFC4115};

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
    /* Above the committed burst, and above both; then all is drained, and the colours that came are where the new ones
     * go. */
    static const uint32_t large[4] = {1, 501, 901, 1};
    static const uint8_t wanted[4] = {G, Y, R, Y};
    b.costs = large;
    for (uint64_t turn = 1; turn <= 2; turn++) {
        NOTE("turn %d", (int)turn);
        b.now = turn * 100 * SECOND;
        memcpy(colours, pre, sizeof pre);
        EQ(tatcell_table_mark_burst(&m.k.table, &b, &m.mark, turn == 1 ? pre : colours, colours, counts, NULL), 0);
        EQ(b.pass, 11);
        EQ(memcmp(colours, wanted, sizeof wanted), 0);
        EQ(counts[G], turn);
        EQ(counts[Y], 2 * turn);
        EQ(counts[R], turn);
        EQ(counters.conforming, 3 * turn);
    }
    EQ(counters.inserted, 4);
    b.count = 0;
    EQ(tatcell_table_mark_burst(&m.k.table, &b, &m.mark, NULL, NULL, NULL, NULL), 0);
    kit_free(&m.k);
    kit_free(&other);
    kit_free(&windows);
    kit_free(&caller);
}

int main(void) {
    RUN(a_fresh_flow_gets_the_colours_of_dpdks_table);
    RUN(bad_arguments_are_refused_and_change_nothing);
    return check_end();
}
