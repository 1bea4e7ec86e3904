/* algorithms.c - limits that carry another algorithm than GCRA, through the calls of every cell. */
#include "kit.h"

static tatcell_limit_t limit;
static tatcell_cell_t cell;
static tatcell_decision_t d;

static void fresh(void) {
    tatcell_decision_t blank = TATCELL_DECISION_INIT;
    memset(&cell, 0, sizeof cell);
    d = blank;
}

static int32_t ask(uint64_t now, uint64_t cost) {
    return tatcell_cell_check_ex(&cell, &limit, now, cost, 0, &d, NULL);
}

static tatcell_limit_spec_t counted(uint32_t algorithm, uint64_t units, uint64_t period) {
    tatcell_limit_spec_t spec = kit_spec(units, period, 0);
    spec.algorithm = algorithm;
    return spec;
}

/* ---- Buckets ---- */

TEST(token_and_leaky_buckets_are_gcra_under_other_names) {
    tatcell_limit_t gcra, token, leaky;
    EQ(tatcell_limit_init(&gcra, 7, 1000, 20), 0);
    EQ(tatcell_limit_init_token_bucket(&token, 7, 1000, 20), 0);
    EQ(tatcell_limit_init_leaky_bucket(&leaky, 7, 1000, 20), 0);
    EQ(memcmp(&gcra, &token, sizeof gcra), 0);
    EQ(memcmp(&gcra, &leaky, sizeof gcra), 0);
}

/* ---- Fixed windows ---- */

TEST(a_fixed_window_starts_with_its_first_request) {
    uint64_t retry = 0;
    fresh();
    EQ(tatcell_limit_init_window(&limit, 3, 1000), 0);
    EQ(ask(5000, 1), 0);
    EQ(ask(5400, 2), 0);
    EQ(d.burst, 3);
    EQ(d.remaining, 0);
    EQ(d.reset_after, 600);
    EQ(d.next_unit, 600);
    EQ(d.permit.stored, 2);
    EQ(tatcell_cell_check(&cell, &limit, 5999, 1, &retry), TATCELL_NON_CONFORMING);
    EQ(retry, 1);
    EQ(tatcell_cell_check(&cell, &limit, 5500, 4, &retry), TATCELL_NEVER);
    EQ(retry, UINT64_MAX);
    EQ(tatcell_cell_check_exclusive(&cell, &limit, 6300, 3, &retry), 0);
    EQ(tatcell_cell_peek(&cell, &limit, 7299, 1, &d), TATCELL_NON_CONFORMING);
    EQ(d.retry_after, 1);
}

TEST(aligned_windows_start_at_their_phase) {
    tatcell_limit_spec_t spec = counted(TATCELL_ALGORITHM_FIXED_WINDOW, 3, 1000);
    spec.flags = TATCELL_LIMIT_ALIGNED;
    spec.phase = 250;
    EQ(tatcell_limit_init_spec(&limit, &spec), 0);
    fresh();
    EQ(ask(5100, 3), 0);
    EQ(ask(5100, 1), TATCELL_NON_CONFORMING);
    EQ(d.retry_after, 150);
    EQ(ask(5250, 3), 0);
    EQ(d.reset_after, 1000);
}

TEST(windows_charge_and_refund_units) {
    tatcell_limit_spec_t spec = counted(TATCELL_ALGORITHM_FIXED_WINDOW, 10, 1000);
    uint64_t credited = 7;
    spec.max_debt = 5;
    EQ(tatcell_limit_init_spec(&limit, &spec), 0);
    fresh();
    EQ(tatcell_cell_charge(&cell, &limit, 0, 99, &d), 0);
    EQ(d.permit.stored, 15);
    EQ(tatcell_cell_refund(&cell, &limit, 999, &d.permit, &credited), 0);
    EQ(credited, 15);
    EQ(tatcell_cell_charge(&cell, &limit, 999, 2, &d), 0);
    EQ(tatcell_cell_refund(&cell, &limit, 1000, &d.permit, &credited), 0);
    EQ(credited, 0); /* its window is over */
}

TEST(a_decaying_level_halves_and_a_refund_gives_back_the_rest) {
    uint64_t credited = 7;
    tatcell_permit_t charged;
    EQ(tatcell_limit_init_decay(&limit, 1000, SECOND), 0);
    fresh();
    EQ(ask(5, 1000), 0);
    charged = d.permit;
    EQ(d.remaining, 0);
    EQ(ask(5, 1), TATCELL_NON_CONFORMING);
    EXPECT(d.retry_after > SECOND / 1000 && d.retry_after < SECOND / 600);
    for (int half_lives = 1; half_lives <= 9; half_lives++) {
        NOTE("%d half-lives", half_lives);
        EQ(tatcell_cell_peek(&cell, &limit, 5 + (uint64_t)half_lives * SECOND + 1000, 1, &d), 0);
        EQ(d.remaining, 1000 - (1000 >> half_lives) - (half_lives > 3));
    }
    EQ(tatcell_cell_refund(&cell, &limit, 5 + SECOND, &charged, &credited), 0);
    EQ(credited, 499);
    EQ(ask(5 + SECOND, 1000), 0);
    /* One by one: what is rounded up adds up to nothing. */
    for (int i = 0; i < 1000; i++) EQ(ask(5 + 30 * SECOND, 1), 0);
    EQ(ask(5 + 30 * SECOND, 1), TATCELL_NON_CONFORMING);
    EQ(tatcell_limit_init_decay(&limit, 0, SECOND), TATCELL_ERR_RATE);
    EQ(tatcell_limit_init_decay(&limit, 10, 0), TATCELL_ERR_PERIOD);
    EQ(tatcell_limit_init_decay(&limit, 10, 999), TATCELL_ERR_REPRESENT);
    EQ(tatcell_limit_init_decay(&limit, UINT64_C(1) << 31, UINT64_C(1) << 50), TATCELL_ERR_UNITS);
    EQ(tatcell_limit_init_decay(&limit, 10, UINT64_MAX), TATCELL_ERR_HORIZON);
    EQ(tatcell_limit_init_decay(NULL, 10, SECOND), TATCELL_ERR_NULL);
    const tatcell_limit_spec_t good = counted(TATCELL_ALGORITHM_DECAY, 10, 1000);
    tatcell_limit_spec_t spec = good;
    spec.max_delay = 1;
    EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_ALGORITHM);
    spec = good, spec.penalty = 1;
    EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_ALGORITHM);
    spec = good, spec.flags = TATCELL_LIMIT_HEAL;
    EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_OPTION);
    spec = good, spec.max_room = 1; /* a half-life of 100 ticks a unit, and room is units too */
    EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_REPRESENT);
    EQ(tatcell_limit32_init_spec(&limit, &good), TATCELL_ERR_ALGORITHM);
    EQ(tatcell_limit_init_spec(&limit, &good), 0);
    fresh();
    EQ(tatcell_cell_reserve(&cell, &limit, 0, 1, &d), TATCELL_ERR_ALGORITHM);
    EQ(cell.word, 0);
}

TEST(a_limit_tells_its_algorithm) {
    tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
    tatcell_limit_numbers_t numbers = TATCELL_LIMIT_NUMBERS_INIT;
    EQ(tatcell_limit_init_window(&limit, 100, 60 * SECOND), 0);
    EQ(tatcell_limit_info(&limit, &info), 0);
    EQ(info.algorithm, TATCELL_ALGORITHM_FIXED_WINDOW);
    EQ(info.count_bits, 7);
    EQ(info.resolution, 0);
    EXPECT(info.units == 100 && info.burst == 100 && info.period == 60 * SECOND && info.bits == 64);
    EXPECT(info.span > UINT64_C(100000000) * SECOND); /* 3 years */
    EQ(tatcell_limit_export(&limit, &numbers), TATCELL_ERR_ALGORITHM);
    EQ(tatcell_limit_init(&limit, 1, SECOND, 1), 0);
    EQ(tatcell_limit_info(&limit, &info), 0);
    EQ(info.algorithm, TATCELL_ALGORITHM_GCRA);
    EQ(info.count_bits, 0);
}

/* ---- Sliding window counters ---- */

TEST(a_sliding_counter_weighs_the_previous_window) {
    uint64_t retry = 0, credited = 7;
    fresh();
    EQ(tatcell_limit_init_sliding(&limit, 100, 1000), 0);
    EQ(ask(5000, 60), 0);
    EQ(ask(5999, 40), 0);
    EQ(d.burst, 100);
    EQ(d.remaining, 0);
    EQ(d.next_unit, 11);
    EQ(d.reset_after, 1001);
    EQ(tatcell_cell_check(&cell, &limit, 6000, 25, &retry), TATCELL_NON_CONFORMING);
    EQ(retry, 250);
    EQ(tatcell_cell_check(&cell, &limit, 6249, 25, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_cell_refund(&cell, &limit, 6249, &d.permit, &credited), 0);
    EQ(credited, 0); /* its window is no longer the current one */
    EQ(tatcell_cell_check_exclusive(&cell, &limit, 6250, 25, &retry), 0);
    EQ(ask(6500, 25), 0);
    EQ(tatcell_cell_refund(&cell, &limit, 6999, &d.permit, &credited), 0);
    EQ(credited, 25);
    EQ(tatcell_cell_peek(&cell, &limit, 7000, 101, &d), TATCELL_NEVER);
    EQ(d.remaining, 75);
}

/* ---- Quota-linear ---- */

TEST(a_used_up_quota_comes_back_unit_by_unit) {
    uint64_t retry = 0, credited = 7, passed = 0;
    fresh();
    EQ(tatcell_limit_init_quota_linear(&limit, 10, 1000), 0);
    EQ(ask(5000, 4), 0);
    EQ(d.remaining, 6);
    EQ(d.reset_after, 1000);
    EQ(tatcell_cell_refund(&cell, &limit, 5001, &d.permit, &credited), 0);
    EQ(credited, 4);
    /* At twice the limit: the quota, where a bucket gives twice as much. */
    for (uint64_t now = 5010; now < 6000; now += 50) passed += ask(now, 1) == 0;
    EQ(passed, 10);
    EQ(d.reset_after, 1000 + 900 - 960);
    for (uint64_t unit = 0; unit < 20; unit++) {
        EQ(ask(6000 + unit * 100 - 1, 1), TATCELL_NON_CONFORMING);
        EQ(d.retry_after, 1);
        EQ(ask(6000 + unit * 100, 1), 0);
    }
    EQ(tatcell_cell_refund(&cell, &limit, 7900, &d.permit, &credited), 0);
    EQ(credited, 0); /* not while it is smooth */
    /* After a pause the quota is there at once. */
    EQ(tatcell_cell_check(&cell, &limit, 8899, 10, &retry), TATCELL_NON_CONFORMING);
    EQ(retry, 1);
    EQ(tatcell_cell_check(&cell, &limit, 8900, 10, &retry), 0);
    EQ(tatcell_cell_check(&cell, &limit, 8900, 1, &retry), TATCELL_NON_CONFORMING);
    EQ(retry, 1000);
}

/* ---- What an algorithm does not have ---- */

TEST(bad_specifications_are_named_and_change_nothing) {
    tatcell_limit_t before;
    EQ(tatcell_limit_init_window(&limit, 3, 1000), 0);
    before = limit;
    EQ(tatcell_limit_init_window(&limit, 0, 1000), TATCELL_ERR_RATE);
    EQ(tatcell_limit_init_window(&limit, 3, 0), TATCELL_ERR_PERIOD);
    EQ(tatcell_limit_init_window(&limit, UINT64_MAX, 1000), TATCELL_ERR_UNITS);
    EQ(tatcell_limit_init_window(NULL, 3, 1000), TATCELL_ERR_NULL);
    static const uint32_t algorithms[] = {TATCELL_ALGORITHM_FIXED_WINDOW};
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        const tatcell_limit_spec_t good = counted(algorithms[i], 10, 1000);
        tatcell_limit_spec_t spec = good;
        spec.burst = 11;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_ALGORITHM);
        spec = good, spec.max_delay = 1;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_ALGORITHM);
        spec = good, spec.penalty = 1;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_ALGORITHM);
        spec = good, spec.flags = TATCELL_LIMIT_HEAL;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_OPTION);
        spec = good, spec.phase = 1; /* without the flag */
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_OPTION);
        spec = good, spec.flags = TATCELL_LIMIT_ALIGNED, spec.phase = 1000;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_PHASE);
        spec = good, spec.reserved = 1;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_OPTION);
        spec = good, spec.algorithm = 99;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_OPTION);
        spec = good;
        EQ(tatcell_limit32_init_spec(&limit, &spec), TATCELL_ERR_ALGORITHM);
    }
    EQ(memcmp(&limit, &before, sizeof limit), 0);
}

TEST(options_that_sliding_and_quota_linear_do_not_have_are_named) {
    static const uint32_t algorithms[] = {TATCELL_ALGORITHM_SLIDING_COUNTER, TATCELL_ALGORITHM_QUOTA_LINEAR};
    tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
    tatcell_limit_t before;
    EQ(tatcell_limit_init_sliding(&limit, 10, 1000), 0);
    before = limit;
    EQ(tatcell_limit_init_sliding(&limit, 0, 1000), TATCELL_ERR_RATE);
    EQ(tatcell_limit_init_sliding(&limit, 3, 0), TATCELL_ERR_PERIOD);
    EQ(tatcell_limit_init_sliding(&limit, UINT64_MAX, 1000), TATCELL_ERR_UNITS);
    EQ(tatcell_limit_init_sliding(&limit, (1u << 30) - 1, 1000), TATCELL_ERR_HORIZON);
    EQ(tatcell_limit_init_sliding(NULL, 3, 1000), TATCELL_ERR_NULL);
    EQ(tatcell_limit_init_quota_linear(&limit, 0, 1000), TATCELL_ERR_RATE);
    EQ(tatcell_limit_init_quota_linear(&limit, 3, 0), TATCELL_ERR_PERIOD);
    EQ(tatcell_limit_init_quota_linear(&limit, UINT64_MAX, 1000), TATCELL_ERR_UNITS);
    EQ(tatcell_limit_init_quota_linear(&limit, UINT64_C(1) << 59, 1000), TATCELL_ERR_HORIZON);
    EQ(tatcell_limit_init_quota_linear(NULL, 3, 1000), TATCELL_ERR_NULL);
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        const tatcell_limit_spec_t good = counted(algorithms[i], 10, 1000);
        const int32_t rooms = algorithms[i] == TATCELL_ALGORITHM_SLIDING_COUNTER ? 0 : TATCELL_ERR_ALGORITHM;
        tatcell_limit_spec_t spec = good;
        spec.max_delay = 1;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_ALGORITHM);
        spec = good, spec.penalty = 1;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_ALGORITHM);
        spec = good, spec.flags = TATCELL_LIMIT_HEAL;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_OPTION);
        spec = good, spec.flags = TATCELL_LIMIT_ALIGNED;
        EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_OPTION);
        EQ(tatcell_limit32_init_spec(&limit, &good), TATCELL_ERR_ALGORITHM);
        EQ(memcmp(&limit, &before, sizeof limit), 0);
        spec = good, spec.max_room = 1;
        EQ(tatcell_limit_init_spec(&limit, &spec), rooms);
        spec = good, spec.max_debt = 1;
        EQ(tatcell_limit_init_spec(&limit, &spec), rooms);
        EQ(tatcell_limit_init_spec(&limit, &good), 0);
        EQ(tatcell_limit_info(&limit, &info), 0);
        EQ(info.algorithm, algorithms[i]);
        fresh();
        EQ(tatcell_cell_reserve(&cell, &limit, 0, 1, &d), TATCELL_ERR_ALGORITHM);
        EQ(tatcell_limit_init_sliding(&limit, 10, 1000), 0);
    }
    /* T of quota-linear, 100 ticks in units of 2^-4: the tests of Rust say why. */
    EQ(tatcell_limit_init_quota_linear(&limit, 10, 1000), 0);
    EQ(tatcell_limit_info(&limit, &info), 0);
    EXPECT(info.emission_q == 1600 && info.resolution == 4 && info.count_bits == 5 && info.rate_error_ppb == 0);
}

/* Five in a quarter of an hour of UTC, in milliseconds: the next one passes at the border, to the tick. */
TEST(a_limit_is_read_from_text_and_an_error_names_its_byte) {
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    size_t position = 77;
    spec.soft = 7;
    EQ(tatcell_limit_spec_parse(&spec, "1.5MB/s burst 64kB, and more", 18, SECOND, &position), 0);
    EXPECT(spec.units == 1500000 && spec.period == SECOND && spec.burst == 64000 && spec.soft == 7 && position == 77);
    EQ(tatcell_limit_init_spec(&limit, &spec), 0);
    EQ(tatcell_limit_spec_parse(&spec, "100r/m", 6, 1000, NULL), 0);
    EXPECT(spec.units == 100 && spec.period == 60000 && spec.burst == 100);
    EQ(tatcell_limit_spec_parse(&spec, "10/fortnight", 12, 1000, &position), TATCELL_ERR_SYNTAX);
    EQ(position, 3);
    EQ(tatcell_limit_spec_parse(&spec, "10/s burst ", 11, 1000, &position), TATCELL_ERR_SYNTAX);
    EQ(position, 11);
    EQ(tatcell_limit_spec_parse(&spec, "", 0, 1000, &position), TATCELL_ERR_SYNTAX);
    EQ(position, 0);
    EQ(tatcell_limit_spec_parse(&spec, "1/s burst 99999999T", 19, 1000, &position), TATCELL_ERR_TOO_LARGE);
    EQ(position, 10);
    EQ(tatcell_limit_spec_parse(&spec, "1/s", 3, 0, &position), TATCELL_ERR_FREQUENCY);
    EXPECT(spec.units == 100 && spec.period == 60000 && spec.burst == 100);
}

TEST(what_does_not_fit_one_table_is_named) {
    static const uint8_t seed[16] = {1};
    static TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES(64)];
    tatcell_limit_spec_t fast = TATCELL_LIMIT_SPEC_INIT, slow = TATCELL_LIMIT_SPEC_INIT;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    tatcell_table_fit_t fit = TATCELL_TABLE_FIT_INIT;
    tatcell_table_t table;
    EQ(tatcell_limit_spec_parse(&fast, "10M/s", 5, SECOND, NULL), 0);
    EQ(tatcell_limit_spec_parse(&slow, "1/s burst 60", 12, SECOND, NULL), 0);
    options.fastest = &fast, options.slowest = &slow, options.seed = seed;
    EQ(tatcell_table_init(&table, memory, sizeof memory, &options), TATCELL_ERR_SPAN);
    EQ(tatcell_table_options_fit(&options, &fit), 0);
    EXPECT(fit.culprit == TATCELL_FIT_BURST && fit.needed == 120 * SECOND && fit.available < fit.needed);
    options.tag_bits = fit.tag_bits;
    EQ(tatcell_table_init(&table, memory, sizeof memory, &options), 0);
    EQ(tatcell_table_options_fit(&options, &fit), 0);
    EQ(fit.culprit, 0);
    options.tag_bits++;
    EQ(tatcell_table_init(&table, memory, sizeof memory, &options), TATCELL_ERR_SPAN);
    options.tag_bits = 25;
    EQ(tatcell_table_options_fit(&options, &fit), TATCELL_ERR_OPTION);
}

TEST(an_aligned_window_of_a_table_ends_at_its_border) {
    static TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES(64)];
    static const uint8_t seed[16] = {1};
    const uint64_t start = UINT64_C(1795000019304), border = UINT64_C(1795000500000);
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT, day = TATCELL_LIMIT_SPEC_INIT;
    spec.algorithm = day.algorithm = TATCELL_ALGORITHM_FIXED_WINDOW;
    spec.flags = day.flags = TATCELL_LIMIT_ALIGNED;
    spec.units = 5, spec.period = 900000, day.units = 20, day.period = 86400000;
    for (int with_a_day = 0; with_a_day < 2; with_a_day++) {
        tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
        tatcell_table_info_t made = TATCELL_TABLE_INFO_INIT;
        tatcell_table_t table;
        uint64_t retry = 0;
        options.fastest = &spec, options.slowest = with_a_day ? &day : NULL, options.seed = seed;
        EQ(tatcell_table_init(&table, memory, sizeof memory, &options), 0);
        EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);
        EQ(tatcell_table_info(&table, &made), 0);
        EXPECT(made.border_error == 0 && made.resolution == 0);
        EQ(tatcell_table_check(&table, &limit, start, "x", 1, 5, &retry), 0);
        EQ(tatcell_table_check(&table, &limit, start, "x", 1, 1, &retry), TATCELL_NON_CONFORMING);
        EQ(start + retry, border);
        EQ(tatcell_table_check(&table, &limit, border - 1, "x", 1, 1, &retry), TATCELL_NON_CONFORMING);
        EQ(tatcell_table_check(&table, &limit, border, "x", 1, 1, &retry), 0);
    }
}

TEST(windows_cannot_reserve_and_change_their_algorithm_by_reset_alone) {
    tatcell_limit_t other;
    EQ(tatcell_limit_init_window(&limit, 3, 1000), 0);
    EQ(tatcell_limit_init(&other, 3, 1000, 3), 0);
    fresh();
    EQ(tatcell_cell_reserve(&cell, &limit, 0, 1, &d), TATCELL_ERR_ALGORITHM);
    EQ(cell.word, 0);
    EQ(ask(0, 1), 0);
    uint64_t word = cell.word;
    EQ(tatcell_cell_change(&cell, &limit, &other, 0, TATCELL_CHANGE_KEEP_UNITS), TATCELL_ERR_ALGORITHM);
    EQ(tatcell_cell_change(&cell, &other, &limit, 0, TATCELL_CHANGE_KEEP_TIME), TATCELL_ERR_ALGORITHM);
    EQ(cell.word, word);
    EQ(tatcell_cell_change(&cell, &limit, &other, 0, TATCELL_CHANGE_RESET), 0);
    EQ(cell.word, 0);
}

/* A million a month used to the last but 1000, then two million and one: a bit more in the word. */
TEST(a_quota_changes_with_its_count_and_its_end) {
    static int32_t (*const init[])(tatcell_limit_t *, uint64_t, uint64_t) = {
        tatcell_limit_init_window, tatcell_limit_init_sliding, tatcell_limit_init_quota_linear,
    };
    const uint64_t month = UINT64_C(31) * 86400 * 1000, start = UINT64_C(1) << 40;
    for (size_t i = 0; i < sizeof init / sizeof *init; i++) {
        tatcell_limit_t larger, smaller, longer;
        NOTE("algorithm %d", (int)i);
        EQ(init[i](&limit, 1000000, month), 0);
        EQ(init[i](&larger, 2000001, month), 0);
        EQ(init[i](&smaller, 500000, month), 0);
        EQ(init[i](&longer, 2000001, month + 1), 0);
        fresh();
        EQ(tatcell_cell_check(&cell, &limit, start, 999000, NULL), 0);
        uint64_t word = cell.word;
        EQ(tatcell_cell_change(&cell, &limit, &longer, start + 1, TATCELL_CHANGE_KEEP_UNITS),
            TATCELL_ERR_KEEP_WINDOW);
        EQ(tatcell_cell_change(&cell, &limit, &smaller, start + 1, TATCELL_CHANGE_KEEP_UNITS),
            TATCELL_ERR_KEEP_COUNT);
        EQ(cell.word, word);
        EQ(tatcell_cell_change(&cell, &limit, &larger, start + 1, TATCELL_CHANGE_KEEP_UNITS), 0);
        EQ(tatcell_cell_peek(&cell, &larger, start + 1, 1, &d), 0);
        EQ(d.remaining, 2000001 - 999000);
        EQ(tatcell_cell_check(&cell, &larger, start + 1, 1001001, NULL), 0);
        EQ(tatcell_cell_peek(&cell, &larger, start + 2, 1, &d), TATCELL_NON_CONFORMING);
        /* Not before the window ends, and later by less than a unit of time of both words. */
        EXPECT(i == 1 || (d.retry_after >= month - 2 && d.retry_after < month + 10000));
    }
}

TEST(a_lease_leaves_a_window_to_its_cell) {
    tatcell_lease_t lease = TATCELL_LEASE_INIT;
    uint64_t retry = 0, passed = 0;
    EQ(tatcell_limit_init_window(&limit, 5, 1000), 0);
    fresh();
    for (int i = 0; i < 20; i++) passed += tatcell_lease_check(&lease, &cell, &limit, 7, 1, &retry) == 0;
    EQ(passed, 5);
    EQ(retry, 1000);
}

/* ---- Tables ---- */

TEST(a_table_counts_in_the_slots_of_its_keys) {
    tatcell_limit_spec_t spec = counted(TATCELL_ALGORITHM_FIXED_WINDOW, 3, 1000000);
    tatcell_table_options_t options = kit_options(&spec);
    tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
    tatcell_table_numbers_t numbers = TATCELL_TABLE_NUMBERS_INIT;
    tatcell_table_t table;
    uint64_t retry = 0, pass = 0, credited = 7;
    size_t bytes = tatcell_table_bytes(64);
    void *memory = kit_memory(bytes);
    spec.flags = TATCELL_LIMIT_ALIGNED;
    options.guard = 2000;
    EQ(tatcell_table_init(&table, memory, bytes, &options), 0);
    EQ(tatcell_table_info(&table, &info), 0);
    EXPECT(info.algorithm == TATCELL_ALGORITHM_FIXED_WINDOW && info.count_bits == 2 && info.guard >= 2000);
    EQ(tatcell_table_export(&table, &numbers), TATCELL_ERR_ALGORITHM);
    EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);
    d = (tatcell_decision_t)TATCELL_DECISION_INIT;
    EQ(tatcell_table_check(&table, &limit, 400000, "a", 1, 2, &retry), 0);
    EQ(tatcell_table_check_ex(&table, &limit, 400000, "a", 1, 1, 0, &d, NULL), 0);
    EQ(d.remaining, 0);
    EQ(tatcell_table_check(&table, &limit, 400000, "a", 1, 1, &retry), TATCELL_NON_CONFORMING);
    EXPECT(retry >= 600000 && retry <= 600000 + 1024);
    EQ(tatcell_table_check(&table, &limit, 400000, "b", 1, 3, &retry), 0);
    EQ(tatcell_table_reserve(&table, &limit, 400000, "c", 1, 1, &d), TATCELL_ERR_ALGORITHM);
    d.size = sizeof d;
    EQ(tatcell_table_charge(&table, &limit, 1100000, "a", 1, 2, &d), 0);
    EQ(tatcell_table_refund(&table, &limit, 1100000, "a", 1, &d.permit, &credited), 0);
    EQ(credited, 2);
    tatcell_burst_t burst = TATCELL_BURST_INIT;
    const char *keys = "aaaab";
    burst.limit = &limit, burst.now = 1200000, burst.keys = keys, burst.key_len = 1, burst.stride = 1;
    burst.count = 5;
    EQ(tatcell_table_check_burst(&table, &burst, NULL), 0);
    pass = burst.pass;
    EQ(pass, 0x17); /* three of the first key, and the other one */
    spec.units = 4;
    EQ(tatcell_limit_init_table(&limit, &table, &spec), TATCELL_ERR_TOO_FAST);
    spec = kit_spec(1, 1000000, 1);
    EQ(tatcell_limit_init_table(&limit, &table, &spec), TATCELL_ERR_ALGORITHM);
    free(memory);
}

int main(void) {
    RUN(token_and_leaky_buckets_are_gcra_under_other_names);
    RUN(a_fixed_window_starts_with_its_first_request);
    RUN(aligned_windows_start_at_their_phase);
    RUN(windows_charge_and_refund_units);
    RUN(a_decaying_level_halves_and_a_refund_gives_back_the_rest);
    RUN(a_limit_tells_its_algorithm);
    RUN(a_sliding_counter_weighs_the_previous_window);
    RUN(a_used_up_quota_comes_back_unit_by_unit);
    RUN(options_that_sliding_and_quota_linear_do_not_have_are_named);
    RUN(bad_specifications_are_named_and_change_nothing);
    RUN(a_limit_is_read_from_text_and_an_error_names_its_byte);
    RUN(what_does_not_fit_one_table_is_named);
    RUN(an_aligned_window_of_a_table_ends_at_its_border);
    RUN(windows_cannot_reserve_and_change_their_algorithm_by_reset_alone);
    RUN(a_quota_changes_with_its_count_and_its_end);
    RUN(a_lease_leaves_a_window_to_its_cell);
    RUN(a_table_counts_in_the_slots_of_its_keys);
    return check_end();
}
