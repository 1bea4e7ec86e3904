/* meters.c - three-colour meters from C: the first colours, every bad argument, what a meter tells, sweep and reset. */
#include "kit.h"
#include "refuses.h"

enum { G = TATCELL_GREEN, Y = TATCELL_YELLOW, R = TATCELL_RED, KINDS = 4 };

static struct world {
    tatcell_meter_t meter;
    tatcell_meter_params_t params, zero, fresh;
    tatcell_meter_spec_t spec, short_spec;
    tatcell_meter_info_t info, short_info;
    uint32_t colour, swept;
} w, before;

#define NULL_IS(call) REFUSES(TATCELL_ERR_NULL, call)
#define ODD_IS(call) REFUSES(TATCELL_ERR_ALIGN, call)

static tatcell_meter_spec_t spec_of(uint32_t kind, uint64_t cir, uint64_t cbs, uint64_t rate2, uint64_t burst2) {
    tatcell_meter_spec_t s = TATCELL_METER_SPEC_INIT;
    s.kind = kind;
    s.cir = cir;
    s.cbs = cbs;
    s.rate2 = rate2;
    s.burst2 = burst2;
    s.tick_hz = SECOND;
    return s;
}

/* The four meters: 2697, 2698, 4115, 4115 coupled. */
static tatcell_meter_spec_t kind_of(int kind, uint64_t cir, uint64_t cbs, uint64_t rate2, uint64_t burst2) {
    static const uint32_t kinds[KINDS] = {TATCELL_METER_RFC2697, TATCELL_METER_RFC2698, TATCELL_METER_RFC4115,
        TATCELL_METER_RFC4115};
    tatcell_meter_spec_t s = spec_of(kinds[kind], cir, cbs, kind == 0 ? 0 : rate2, burst2);
    s.flags = kind == 3 ? TATCELL_METER_COUPLED : 0;
    return s;
}

static void setup(void) {
    memset(&w, 0, sizeof w);
    w.spec = spec_of(TATCELL_METER_RFC2697, 46000000, 2048, 0, 4096);
    w.short_spec = w.spec;
    w.short_spec.size -= 1;
    w.info.size = sizeof w.info;
    w.short_info.size = sizeof w.info - 1;
    EQ(tatcell_meter_params_init(&w.params, &w.spec), 0);
    EQ(tatcell_meter_check(&w.meter, &w.params, 1, 100, G, &w.colour), 0);
    w.colour = 77;
    w.swept = 77;
}

/* Takes all that a meter gives at one instant, in pieces. */
static void drain(tatcell_meter_t *meter, const tatcell_meter_params_t *params, uint64_t now, uint64_t cost) {
    int passed = 0;
    while (passed < 20000 && tatcell_meter_check(meter, params, now, cost, G, NULL) == 0) passed++;
    EXPECT(passed < 20000);
}

TEST(a_fresh_meter_gives_the_colours_of_dpdks_table) {
    static const uint64_t sizes[] = {2047, 2049, 4095, 4097};
    static const uint32_t table[3][4] = {{G, Y, Y, R}, {Y, Y, Y, R}, {R, R, R, R}};
    for (int kind = 0; kind < KINDS; kind++) {
        tatcell_meter_spec_t s = kind_of(kind, 46000000, 2048, 69000000, 4096);
        tatcell_meter_params_t params;
        EQ(tatcell_meter_params_init(&params, &s), 0);
        for (uint32_t pre = G; pre <= R; pre++)
            for (int i = 0; i < 4; i++) {
                tatcell_meter_t meter = TATCELL_METER_INIT, own = TATCELL_METER_INIT;
                uint32_t looked = 77, colour = 77, owned = 77, want = table[pre][i];
                NOTE("kind %d, %llu bytes that came %u", kind, (unsigned long long)sizes[i], pre);
                int32_t rc = tatcell_meter_peek(&meter, &params, SECOND, sizes[i], pre, &looked);
                EQ(meter.word, 0);
                EQ(tatcell_meter_check(&meter, &params, SECOND, sizes[i], pre, &colour), rc);
                EQ(tatcell_meter_check_exclusive(&own, &params, SECOND, sizes[i], pre, &owned), rc);
                EQ(colour, want);
                EQ(looked, want);
                EQ(owned, want);
                EQ(own.word, meter.word);
                EXPECT((meter.word != 0) == (want != R));
                EXPECT(rc == (want != R ? 0 : pre == R ? TATCELL_NON_CONFORMING : TATCELL_NEVER));
            }
    }
}

TEST(specifications_that_no_meter_has_are_refused_by_name) {
    const struct { int32_t code; tatcell_meter_spec_t s; } rows[] = {
        {TATCELL_ERR_RATE, spec_of(TATCELL_METER_RFC4115, 0, 0, 0, 0)},
        {TATCELL_ERR_PEAK, spec_of(TATCELL_METER_RFC2698, 1, 1, 0, 1)},
        {TATCELL_ERR_BURST, spec_of(TATCELL_METER_RFC2698, 0, 1, 0, 0)},
        {TATCELL_ERR_BURST, spec_of(TATCELL_METER_RFC2697, 1, 0, 0, 0)},
        {TATCELL_ERR_BURST, spec_of(TATCELL_METER_RFC2698, 1, 0, 1, 1)},
        {TATCELL_ERR_BURST, spec_of(TATCELL_METER_RFC2698, 1, 1, 1, 0)},
        {TATCELL_ERR_BURST, spec_of(TATCELL_METER_RFC4115, 1, 0, 1, 1)},
        {TATCELL_ERR_BURST, spec_of(TATCELL_METER_RFC4115, 1, 1, 1, 0)},
        {TATCELL_ERR_PEAK, spec_of(TATCELL_METER_RFC2698, 2, 1, 1, 1)},
        {TATCELL_ERR_REPRESENT, spec_of(TATCELL_METER_RFC2698, 1, UINT64_MAX, UINT64_MAX, UINT64_MAX)},
        {TATCELL_ERR_OPTION, spec_of(0, 1, 1, 1, 1)},
        {TATCELL_ERR_OPTION, spec_of(2699, 1, 1, 1, 1)},
        {TATCELL_ERR_OPTION, spec_of(TATCELL_METER_RFC2697, 1, 1, 1, 1)}, /* one rate */
    };
    DO(setup());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        NOTE("row %d", (int)i);
        w.spec = rows[i].s;
        REFUSES(rows[i].code, tatcell_meter_params_init(&w.fresh, &w.spec));
    }
    w.spec = spec_of(TATCELL_METER_RFC2697, 46000000, 2048, 0, 4096);
    w.spec.tick_hz = 0;
    REFUSES(TATCELL_ERR_PERIOD, tatcell_meter_params_init(&w.fresh, &w.spec));
    w.spec.tick_hz = SECOND;
    w.spec.skew = UINT64_MAX / 2;
    REFUSES(TATCELL_ERR_HORIZON, tatcell_meter_params_init(&w.fresh, &w.spec));
    w.spec.skew = 0;
    w.spec.span = UINT64_MAX;
    REFUSES(TATCELL_ERR_SHORT_SPAN, tatcell_meter_params_init(&w.fresh, &w.spec));
    w.spec.span = 0;
    w.spec.reserved = 1;
    REFUSES(TATCELL_ERR_OPTION, tatcell_meter_params_init(&w.fresh, &w.spec));
    w.spec.reserved = 0;
    for (w.spec.flags = 1; w.spec.flags != 0; w.spec.flags <<= 1) /* coupling is not for one rate */
        REFUSES(TATCELL_ERR_OPTION, tatcell_meter_params_init(&w.fresh, &w.spec));
    w.spec = spec_of(TATCELL_METER_RFC4115, 46000000, 2048, 46000000, 4096);
    w.spec.flags = TATCELL_METER_COUPLED;
    EQ(tatcell_meter_params_init(&w.fresh, &w.spec), 0);
    EXPECT(strcmp(tatcell_strerror_name(TATCELL_ERR_PEAK), "TATCELL_ERR_PEAK") == 0);
    EXPECT(strcmp(tatcell_strerror_name(TATCELL_ERR_SHORT_SPAN), "TATCELL_ERR_SHORT_SPAN") == 0);
}

/* Colours of four packets of 600 bytes at one instant, and of one a day later. */
static uint32_t five(uint32_t kind, uint64_t cir, uint64_t cbs, uint64_t rate2, uint64_t burst2) {
    uint32_t colours = 0;
    tatcell_meter_t meter = TATCELL_METER_INIT;
    w.spec = spec_of(kind, cir, cbs, rate2, burst2);
    if (tatcell_meter_params_init(&w.fresh, &w.spec) != 0) return 99999;
    for (int i = 0; i < 5; i++) {
        const uint64_t now = i < 4 ? 7 : 86400 * SECOND;
        uint32_t colour = 9;
        if (tatcell_meter_check(&meter, &w.fresh, now, 600, TATCELL_GREEN, &colour) < 0) return 99999;
        colours = colours * 10 + colour;
    }
    return colours;
}

/* Both buckets are full at time 0, and nothing fills one whose rate is 0: 0 green, 1 yellow, 2 red. */
TEST(the_burst_of_a_rate_of_0_is_given_once) {
    DO(setup());
    EQ(five(TATCELL_METER_RFC2697, 0, 700, 0, 1300), 1122); /* 0 1 1 2 2 */
    EQ(five(TATCELL_METER_RFC2698, 0, 700, 0, 1300), 1222);
    EQ(five(TATCELL_METER_RFC2698, 0, 700, 1000, 1300), 1221);
    EQ(five(TATCELL_METER_RFC2698, 0, 0, 1000, 1300), 11221);
    EQ(five(TATCELL_METER_RFC4115, 0, 700, 1000, 700), 1221);
    EQ(five(TATCELL_METER_RFC4115, 1000, 700, 0, 1300), 1120);
    EQ(five(TATCELL_METER_RFC4115, 0, 700, 0, 1300), 1122);
    tatcell_meter_info_t info = TATCELL_METER_INFO_INIT;
    EQ(tatcell_meter_params_info(&w.fresh, &info), 0);
    EXPECT(info.horizon == UINT64_MAX && info.span == UINT64_MAX && info.committed_m == 0 && info.burst2 == 1300);
}

TEST(functions_refuse_bad_arguments_and_change_nothing) {
    DO(setup());
    NULL_IS(tatcell_meter_params_init(NULL, &w.spec));
    NULL_IS(tatcell_meter_params_init(&w.fresh, NULL));
    ODD_IS(tatcell_meter_params_init(OFF(&w.fresh), &w.spec));
    ODD_IS(tatcell_meter_params_init(&w.fresh, OFF(&w.spec)));
    REFUSES(TATCELL_ERR_SIZE, tatcell_meter_params_init(&w.fresh, &w.short_spec));
#define CALLS(f) \
    NULL_IS(f(NULL, &w.params, 5, 1, G, &w.colour)); \
    NULL_IS(f(&w.meter, NULL, 5, 1, G, &w.colour)); \
    ODD_IS(f(OFF(&w.meter), &w.params, 5, 1, G, &w.colour)); \
    ODD_IS(f(&w.meter, OFF(&w.params), 5, 1, G, &w.colour)); \
    ODD_IS(f(&w.meter, &w.params, 5, 1, G, OFF(&w.colour))); \
    REFUSES(TATCELL_ERR_LIMIT, f(&w.meter, &w.zero, 5, 1, G, &w.colour)); \
    REFUSES(TATCELL_ERR_OPTION, f(&w.meter, &w.params, 5, 1, 3, &w.colour)); \
    REFUSES(TATCELL_ERR_OPTION, f(&w.meter, &w.params, 5, 1, UINT32_MAX, &w.colour)); \
    REFUSES(0, f(&w.meter, &w.params, 5, 0, G, NULL))
    CALLS(tatcell_meter_check);
    CALLS(tatcell_meter_check_exclusive);
    CALLS(tatcell_meter_peek);
    NULL_IS(tatcell_meter_sweep(NULL, &w.params, 5, &w.swept));
    NULL_IS(tatcell_meter_sweep(&w.meter, NULL, 5, &w.swept));
    ODD_IS(tatcell_meter_sweep(OFF(&w.meter), &w.params, 5, &w.swept));
    ODD_IS(tatcell_meter_sweep(&w.meter, OFF(&w.params), 5, &w.swept));
    ODD_IS(tatcell_meter_sweep(&w.meter, &w.params, 5, OFF(&w.swept)));
    REFUSES(TATCELL_ERR_LIMIT, tatcell_meter_sweep(&w.meter, &w.zero, 5, &w.swept));
    REFUSES(0, tatcell_meter_sweep(&w.meter, &w.params, 5, NULL));
    NULL_IS(tatcell_meter_reset(NULL));
    ODD_IS(tatcell_meter_reset(OFF(&w.meter)));
    NULL_IS(tatcell_meter_params_info(NULL, &w.info));
    NULL_IS(tatcell_meter_params_info(&w.params, NULL));
    ODD_IS(tatcell_meter_params_info(OFF(&w.params), &w.info));
    ODD_IS(tatcell_meter_params_info(&w.params, OFF(&w.info)));
    REFUSES(TATCELL_ERR_LIMIT, tatcell_meter_params_info(&w.zero, &w.info));
    REFUSES(TATCELL_ERR_SIZE, tatcell_meter_params_info(&w.params, &w.short_info));
}

/* Neither garbage, nor a limit of a cell, nor one bit of difference in the mark is a meter's. */
TEST(parameters_are_known_by_their_mark) {
    union { tatcell_meter_params_t params; tatcell_limit_t limit; } x;
    DO(setup());
    memset(&x, 0, sizeof x);
    EQ(tatcell_limit_init(&x.limit, 1, SECOND, 5), 0);
    EQ(tatcell_meter_check(&w.meter, &x.params, 5, 1, G, NULL), TATCELL_ERR_LIMIT);
    for (int bit = 0; bit < 64; bit++) {
        NOTE("bit %d", bit);
        x.params = w.params;
        x.params.opaque[0] ^= UINT64_C(1) << bit;
        EQ(tatcell_meter_check(&w.meter, &x.params, 5, 1, G, NULL), TATCELL_ERR_LIMIT);
        EQ(tatcell_cell_check((tatcell_cell_t *)&w.meter, &x.limit, 5, 1, NULL), TATCELL_ERR_LIMIT);
    }
}

TEST(a_rested_meter_is_swept_and_a_reset_one_is_full) {
    DO(setup());
    EQ(tatcell_meter_params_info(&w.params, &w.info), 0);
    const uint64_t now = 1 + w.info.horizon + w.info.skew;
    EQ(tatcell_meter_sweep(&w.meter, &w.params, 2, &w.swept), 0);
    EQ(w.swept, 0);
    EXPECT(w.meter.word != 0);
    EQ(tatcell_meter_sweep(&w.meter, &w.params, now, &w.swept), 0);
    EQ(w.swept, 1);
    EQ(w.meter.word, 0);
    DO(drain(&w.meter, &w.params, now, 512));
    EQ(tatcell_meter_peek(&w.meter, &w.params, now, 512, G, &w.colour), TATCELL_NON_CONFORMING);
    EQ(w.colour, R);
    EQ(tatcell_meter_reset(&w.meter), 0);
    EQ(w.meter.word, 0);
    EQ(tatcell_meter_check(&w.meter, &w.params, now, 2048, G, &w.colour), 0);
    EQ(w.colour, G);
}

int main(void) {
    RUN(a_fresh_meter_gives_the_colours_of_dpdks_table);
    RUN(specifications_that_no_meter_has_are_refused_by_name);
    RUN(the_burst_of_a_rate_of_0_is_given_once);
    RUN(functions_refuse_bad_arguments_and_change_nothing);
    RUN(parameters_are_known_by_their_mark);
    RUN(a_rested_meter_is_swept_and_a_reset_one_is_full);
    return check_end();
}
