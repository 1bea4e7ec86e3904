/* told.c - what is asked for is told: every option of limits, tables, meters and ladders, and every number that they
 * came out as, field by field. No field here is 0 by chance: each is asked for with a value of its own. */
#include "kit.h"

enum { SHIFT = 4, T = 1000 }; /* a tick is 2^4 q-units; a unit takes 1000 ticks */

static tatcell_limit_t limit;
static kit_table k;

static tatcell_limit_spec_t full_spec(void) {
    tatcell_limit_spec_t s = kit_spec(3, 3 * T, 10);
    s.soft = 4, s.max_room = 3, s.max_delay = 7 * T, s.max_debt = 40, s.penalty = 30;
    s.skew = 90 * T, s.epoch = 9;
    s.flags = TATCELL_LIMIT_RESOLUTION, s.resolution = SHIFT;
    return s;
}

TEST(a_limit_tells_every_number_that_it_was_given) {
    tatcell_limit_spec_t s = full_spec();
    tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
    tatcell_limit_numbers_t n = TATCELL_LIMIT_NUMBERS_INIT;
    for (int bits = 32; bits <= 64; bits += 32) {
        NOTE("%d bits", bits);
        EQ((bits == 64 ? tatcell_limit_init_spec : tatcell_limit32_init_spec)(&limit, &s), 0);
        EQ(tatcell_limit_info(&limit, &info), 0);
        EQ(tatcell_limit_export(&limit, &n), 0);
        EQ(info.bits, bits);
        EQ(info.resolution, SHIFT);
        EQ(info.units, 3);
        EQ(info.period, 3 * T);
        EQ(info.burst, 10);
        EQ(info.emission_q, T << SHIFT);
        EQ(info.horizon, 50 * T); /* the largest: burst and debt */
        EQ(info.skew, 90 * T);
        EXPECT(info.span != 0 && info.span <= (UINT64_MAX >> (64 - bits) >> SHIFT));
        EXPECT(info.span >= (UINT64_MAX >> (64 - bits) >> SHIFT) - 140 * T - 1);
        EQ(info.rate_error_ppb, 0);
        EQ(info.algorithm, TATCELL_ALGORITHM_GCRA);
        EQ(n.bits, bits);
        EQ(n.shift_left, SHIFT);
        EQ(n.shift_right, 0);
        EQ(n.epoch, 9);
        EQ(n.emission_q, T << SHIFT);
        EQ(n.burst_q, 10 * T << SHIFT);
        EQ(n.horizon_q, 50 * T << SHIFT);
        EQ(n.window_q, 140 * T << SHIFT);
        EQ(n.soft_q, 4 * T << SHIFT);
        EQ(n.delay_q, 7 * T << SHIFT);
        EQ(n.debt_q, 50 * T << SHIFT);
        EQ(n.penalty_q, 40 * T << SHIFT);
        EQ(n.burst, 10);
        EQ(n.room, 3);
    }
    s.resolution = -3, s.skew = 8 << 20, s.units = 1, s.period = 8 << 10, s.flags = TATCELL_LIMIT_RESOLUTION;
    s.max_delay = 8 << 10;
    EQ(tatcell_limit_init_spec(&limit, &s), 0);
    EQ(tatcell_limit_export(&limit, &n), 0);
    EQ(n.shift_left, 0);
    EQ(n.shift_right, 3);
    EQ(n.emission_q, 1 << 10);
}

TEST(a_limit_tells_each_of_its_flags) {
    static const uint32_t flags[] = {TATCELL_LIMIT_HEAL, TATCELL_LIMIT_SHADOW, TATCELL_LIMIT_STRICT_REFUNDS,
        TATCELL_LIMIT_ALIGNED, 0};
    for (int i = 0; i < 5; i++) {
        NOTE("flag %u", flags[i]);
        tatcell_limit_spec_t s = kit_spec(1, T, 3);
        tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
        s.flags = flags[i];
        if (flags[i] == TATCELL_LIMIT_ALIGNED) s.algorithm = TATCELL_ALGORITHM_FIXED_WINDOW, s.phase = 7, s.burst = 0;
        EQ(tatcell_limit_init_spec(&limit, &s), 0);
        EQ(tatcell_limit_info(&limit, &info), 0);
        EQ(info.flags, flags[i]);
        EQ(info.algorithm, s.algorithm);
        EXPECT((info.count_bits != 0) == (s.algorithm == TATCELL_ALGORITHM_FIXED_WINDOW));
    }
}

TEST(an_unlimited_limit_of_a_table_tells_that_it_is_one) {
    tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
    tatcell_limit_numbers_t n = TATCELL_LIMIT_NUMBERS_INIT;
    EQ(kit_make(&k, kit_spec(1, T, 3), 64, NULL), 0);
    EQ(tatcell_limit_init_unlimited_table(&limit, &k.table), 0);
    info.units = info.period = info.emission_q = n.emission_q = 7;
    EQ(tatcell_limit_info(&limit, &info), 0);
    EQ(info.units, 0);
    EQ(info.period, 0);
    EQ(info.burst, UINT64_MAX);
    EQ(info.emission_q, 0);
    EQ(tatcell_limit_export(&limit, &n), 0);
    EQ(n.emission_q, 0);
    EQ(n.burst, UINT64_MAX);
    kit_free(&k);
}

/* One is unlimited, the other is not; the mark of a table alone does not make a limit of what is mixed of both. */
TEST(no_limit_of_a_table_has_the_interval_of_one_and_the_burst_of_another) {
    tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
    EQ(kit_make(&k, kit_spec(1, T, 3), 64, NULL), 0);
    EQ(tatcell_limit_init_unlimited_table(&limit, &k.table), 0);
    const tatcell_limit_t *of[2] = {&limit, &k.limit};
    for (int i = 0; i < 2; i++) {
        int refused = 0;
        for (size_t word = 0; word < sizeof limit / 8; word++) {
            NOTE("limit %d, word %d of the other", i, (int)word);
            tatcell_limit_t mixed = *of[i];
            mixed.opaque[word] = of[!i]->opaque[word];
            int32_t rc = tatcell_limit_info(&mixed, &info);
            EXPECT(rc == 0 || rc == TATCELL_ERR_LIMIT);
            if (rc == 0) EQ(info.burst == UINT64_MAX, info.emission_q == 0);
            else refused++;
        }
        EXPECT(refused >= 2);
    }
    kit_free(&k);
}

/* A strict permit drains from its charge on; an ordinary one only when it is the oldest debt. */
TEST(strict_refunds_are_those_of_the_limit_that_asked_for_them) {
    for (int strict = 0; strict < 2; strict++) {
        tatcell_limit_spec_t s = kit_spec(1, T, 10);
        tatcell_cell_t cell = TATCELL_CELL_INIT;
        tatcell_decision_t first = TATCELL_DECISION_INIT, second = TATCELL_DECISION_INIT;
        uint64_t credited;
        s.flags = strict ? TATCELL_LIMIT_STRICT_REFUNDS : 0;
        EQ(tatcell_limit_init_spec(&limit, &s), 0);
        EQ(tatcell_cell_check_ex(&cell, &limit, 0, 4, 0, &first, NULL), 0);
        EQ(tatcell_cell_check_ex(&cell, &limit, 0, 4, 0, &second, NULL), 0);
        EQ(tatcell_cell_refund(&cell, &limit, 2 * T, &second.permit, &credited), 0);
        EQ(credited, (strict ? 2 : 4) * T);
    }
}

/* A table with every option: flags, policy, hash, tag bits, resolution, times, clock. */
static void make(uint32_t flags, int32_t resolution, uint32_t hash, uint32_t policy) {
    tatcell_limit_spec_t s = kit_spec(1, 1 << 20, 8);
    tatcell_table_options_t o = kit_options(NULL);
    o.flags = flags | TATCELL_TABLE_RESOLUTION, o.policy = policy, o.hash = hash, o.tag_bits = 18;
    o.resolution = resolution, o.skew = 5 << 20, o.claim_lifetime = 3 << 12, o.tick_hz = 1 << 20;
    if (hash == TATCELL_HASH_CALLER) o.seed = NULL;
    EQ(kit_make(&k, s, 1024, &o), 0);
}

TEST(a_table_tells_every_option_that_it_was_given) {
    static const uint32_t hashes[] = {TATCELL_HASH_SIPHASH13, TATCELL_HASH_CALLER, TATCELL_HASH_AES};
    for (int i = 0; i < 3; i++) {
        if (tatcell_hash_available(hashes[i]) != 0) continue;
        uint32_t flags = i == 1 ? TATCELL_TABLE_EXCLUSIVE : 0, policy = (uint32_t)i + 1;
        int32_t resolution = i == 2 ? 2 : -2 * i;
        uint64_t left = resolution > 0 ? (uint64_t)resolution : 0, right = resolution < 0 ? (uint64_t)-resolution : 0;
        NOTE("table %d", i);
        DO(make(flags, resolution, hashes[i], policy));
        tatcell_table_info_t t = TATCELL_TABLE_INFO_INIT;
        tatcell_table_numbers_t n = TATCELL_TABLE_NUMBERS_INIT;
        EQ(tatcell_table_info(&k.table, &t), 0);
        EQ(t.flags, flags);
        EQ(t.policy, policy);
        EQ(t.hash, hashes[i]);
        EQ(t.tag_bits, 18);
        EQ(t.resolution, resolution);
        EQ(t.slots, 1024);
        EQ(t.lines, 128);
        EQ(t.image_bytes, k.bytes);
        EQ(t.horizon, 8 << 20);
        EQ(t.skew, 5 << 20);
        EQ(t.window, 13 << 20);
        uint64_t span = (UINT64_C(1) << 45) - ((UINT64_C(13) << 20) << left >> right);
        EQ(t.span, span >> left << right);
        EXPECT(t.sweep_interval != 0 && t.sweep_interval < t.span && t.sweep_interval > t.span / 8);
        EQ(t.claim_lifetime, 3 << 12);
        EQ(t.tick_hz, 1 << 20);
        EQ(t.generation, 1);
        EQ(t.algorithm, TATCELL_ALGORITHM_GCRA);
        EQ(t.count_bits, 0);
        EQ(t.guard, 0);
        EQ(tatcell_table_export(&k.table, &n), 0);
        EQ(n.flags, flags);
        EQ(n.policy, policy);
        EQ(n.hash, hashes[i]);
        EQ(n.shift_left, left);
        EQ(n.shift_right, right);
        EQ(n.lines, 128);
        EQ(n.header_bytes, 128);
        EQ(n.mask, (UINT64_C(1) << 45) - 1);
        EQ(n.horizon_q, (uint64_t)(8 << 20) << left >> right);
        EQ(n.window_q, (uint64_t)(13 << 20) << left >> right);
        EQ(n.claim_lifetime_q, (uint64_t)(3 << 12) << left >> right);
        EXPECT(n.grace_q != 0 && n.grace_q <= n.window_q);
        EQ(n.generation, 1);
        kit_free(&k);
    }
}

TEST(a_restored_table_tells_another_generation) {
    DO(make(0, 0, TATCELL_HASH_SIPHASH13, TATCELL_FULL_DENY));
    tatcell_table_numbers_t n = TATCELL_TABLE_NUMBERS_INIT;
    tatcell_table_info_t t = TATCELL_TABLE_INFO_INIT;
    void *image = kit_memory(k.bytes);
    EQ(tatcell_table_save(&k.table, 0, image, k.bytes, NULL), 0);
    EQ(tatcell_table_restore(&k.table, k.memory, k.bytes, image, k.bytes, kit_attach(kit_seed, 0), 0), 0);
    EQ(tatcell_table_export(&k.table, &n), 0);
    EQ(tatcell_table_info(&k.table, &t), 0);
    EQ(n.generation, 2);
    EQ(t.generation, 2);
    free(image);
    kit_free(&k);
}

TEST(a_table_of_windows_tells_its_guard_and_its_count) {
    tatcell_limit_spec_t s = kit_spec(100, 1 << 20, 0);
    s.algorithm = TATCELL_ALGORITHM_FIXED_WINDOW, s.flags = TATCELL_LIMIT_ALIGNED;
    tatcell_table_options_t o = kit_options(NULL);
    o.guard = 3 << 15;
    EQ(kit_make(&k, s, 64, &o), 0);
    tatcell_table_info_t t = TATCELL_TABLE_INFO_INIT;
    tatcell_table_numbers_t n = TATCELL_TABLE_NUMBERS_INIT;
    EQ(tatcell_table_info(&k.table, &t), 0);
    EXPECT(t.guard >= 3 << 15 && t.guard < 4 << 15);
    EQ(t.algorithm, TATCELL_ALGORITHM_FIXED_WINDOW);
    EXPECT(t.count_bits >= 7);
    EQ(tatcell_table_export(&k.table, &n), TATCELL_ERR_ALGORITHM);
    EQ(tatcell_limit_export(&k.limit, &(tatcell_limit_numbers_t)TATCELL_LIMIT_NUMBERS_INIT), TATCELL_ERR_ALGORITHM);
    kit_free(&k);
}

/* Of aligned windows too, whose slots outlive them by the guard. */
TEST(a_walk_tells_of_each_key_what_a_look_at_it_tells) {
    static const uint32_t flags[] = {0, 0, TATCELL_LIMIT_ALIGNED};
    for (int i = 0; i < 3; i++) {
        NOTE("table %d", i);
        tatcell_limit_spec_t s = kit_spec(100, 100 << 20, i == 0 ? 100 : 0);
        s.flags = flags[i], s.algorithm = i == 0 ? TATCELL_ALGORITHM_GCRA : TATCELL_ALGORITHM_FIXED_WINDOW;
        tatcell_table_options_t o = kit_options(NULL);
        if (flags[i]) o.guard = 5 << 20;
        EQ(kit_make(&k, s, 64, &o), 0);
        tatcell_decision_t d = TATCELL_DECISION_INIT;
        tatcell_slot_t slot;
        uint64_t now = UINT64_C(1) << 40;
        EQ(tatcell_table_check(&k.table, &k.limit, now, "key", 3, 30, NULL), 0);
        EQ(tatcell_table_peek(&k.table, &k.limit, now + 7, "key", 3, 0, &d), 0);
        EQ(tatcell_table_next(&k.table, now + 7, 0, &slot), 0);
        EXPECT(d.reset_after != 0);
        EQ(slot.reset_after, d.reset_after);
        EQ(tatcell_table_next(&k.table, now + 7, slot.number + 1, &slot), TATCELL_END);
        kit_free(&k);
    }
}

/* Slots written by hand, as the numbers say how: one live, one expired, one claim. */
TEST(statistics_tell_live_words_expired_ones_and_claims_apart) {
    DO(make(0, 0, TATCELL_HASH_SIPHASH13, TATCELL_FULL_DENY));
    tatcell_table_numbers_t n = TATCELL_TABLE_NUMBERS_INIT;
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    EQ(tatcell_table_export(&k.table, &n), 0);
    uint64_t now = 1 << 30, *slots = (uint64_t *)(void *)((unsigned char *)k.memory + n.header_bytes), tag = n.mask + 1;
    slots[3] = tag | (now + n.horizon_q);
    slots[5] = tag | (now + 1);
    slots[20] = tag | (now - 1);
    for (int i = 40; i < 43; i++) slots[i] = UINT64_C(1) << 63 | tag | (now + 2);
    EQ(tatcell_table_stats(&k.table, now, &stats), 0);
    EQ(stats.slots, 1024);
    EQ(stats.live, 2);
    EQ(stats.expired, 1);
    EQ(stats.claims, 3);
    EQ(stats.load_ppm, 2 * 1000000 / 1024);
    EQ(stats.debt[0], 1);
    EQ(stats.debt[7], 1);
    kit_free(&k);
}

TEST(a_meter_tells_every_number_that_it_was_given) {
    tatcell_meter_spec_t s = TATCELL_METER_SPEC_INIT;
    tatcell_meter_params_t params;
    tatcell_meter_info_t m = TATCELL_METER_INFO_INIT;
    s.kind = TATCELL_METER_RFC4115, s.flags = TATCELL_METER_COUPLED;
    s.cir = 70000, s.cbs = 70, s.rate2 = 90000, s.burst2 = 110, s.tick_hz = 100000, s.skew = 4321;
    EQ(tatcell_meter_params_init(&params, &s), 0);
    EQ(tatcell_meter_params_info(&params, &m), 0);
    EQ(m.flags, TATCELL_METER_COUPLED);
    EQ(m.kind, TATCELL_METER_RFC4115);
    EXPECT(m.word_bits > 32 && m.word_bits < 64);
    EXPECT(m.resolution > 0 && m.resolution < 32);
    EXPECT(m.committed_m != 0 && m.committed_k != 0 && m.second_m != 0 && m.second_k != 0);
    EQ(m.cir, 70000);
    EQ(m.cbs, 70);
    EQ(m.rate2, 90000);
    EQ(m.burst2, 110);
    EQ(m.tick_hz, 100000);
    EQ(m.skew, 4321);
    EXPECT(m.horizon >= 110 * 100000 / 90000 && m.horizon <= 2 * 110 * 100000 / 70000);
    /* The word wraps with its bits of time, and wants a sweep before. */
    uint64_t wraps = m.word_bits - (uint32_t)m.resolution;
    EXPECT(m.span < UINT64_C(1) << wraps && m.span > UINT64_C(1) << (wraps - 1));
    EXPECT(m.sweep_interval != 0 && m.sweep_interval < m.span);
    /* One q-unit is so many billionths of a unit's time, rounded up. */
    uint64_t second_q = (UINT64_C(1) << m.resolution) * 100000;
    EQ(m.committed_rounding_ppb, (70000 * UINT64_C(1000000000) + second_q - 1) / second_q);
    EQ(m.second_rounding_ppb, (90000 * UINT64_C(1000000000) + second_q - 1) / second_q);
    s.skew = TATCELL_SKEW_NONE;
    EQ(tatcell_meter_params_init(&params, &s), 0);
    EQ(tatcell_meter_params_info(&params, &m), 0);
    EQ(m.skew, 0);
}

TEST(the_specifications_of_a_ladder_have_all_that_was_given) {
    tatcell_limit_spec_t one = full_spec(), fastest = TATCELL_LIMIT_SPEC_INIT, slowest = TATCELL_LIMIT_SPEC_INIT;
    tatcell_rung_t v4[2] = {{32, 1}, {24, 16}}, v6[1] = {{64, 2}};
    tatcell_ladder_spec_t rungs = TATCELL_LADDER_SPEC_INIT;
    rungs.v4 = v4, rungs.v4_count = 2, rungs.v6 = v6, rungs.v6_count = 1;
    EQ(tatcell_ladder_table_specs(&one, &rungs, &fastest, &slowest), 0);
    EQ(fastest.units, 16 * one.units);
    EQ(fastest.burst, 16 * one.burst);
    EQ(fastest.soft, 16 * one.soft);
    EQ(fastest.max_room, 16 * one.max_room);
    EQ(fastest.max_debt, 16 * one.max_debt);
    EQ(fastest.penalty, 16 * one.penalty);
    EQ(slowest.units, one.units);
    EXPECT(slowest.burst > one.burst && slowest.burst <= one.burst + 2);
    EQ(slowest.soft, one.soft);
    EQ(slowest.max_room, one.max_room);
    EQ(slowest.max_debt, one.max_debt);
    EQ(slowest.penalty, one.penalty);
    const tatcell_limit_spec_t *each[2] = {&fastest, &slowest};
    for (int i = 0; i < 2; i++) {
        EQ(each[i]->period, one.period);
        EQ(each[i]->max_delay, one.max_delay);
        EQ(each[i]->skew, one.skew);
        EQ(each[i]->epoch, one.epoch);
        EQ(each[i]->flags, one.flags);
        EQ(each[i]->resolution, one.resolution);
    }
}

TEST(every_counter_is_added) {
    uint64_t words[16] = {0};
    for (uint64_t i = 0; i < 10; i++) words[i] = UINT64_MAX / 3 + i;
    tatcell_counters_t sum, more;
    memcpy(&sum, words, sizeof sum);
    memcpy(&more, words, sizeof more);
    for (uint64_t times = 2; times < 5; times++) {
        EQ(tatcell_counters_add(&sum, &more), 0);
        uint64_t told[16];
        memcpy(told, &sum, sizeof told);
        for (int i = 0; i < 16; i++) EQ(told[i], times * words[i]);
        EQ(memcmp(&more, words, sizeof more), 0);
    }
}

int main(void) {
    RUN(a_limit_tells_every_number_that_it_was_given);
    RUN(a_limit_tells_each_of_its_flags);
    RUN(an_unlimited_limit_of_a_table_tells_that_it_is_one);
    RUN(no_limit_of_a_table_has_the_interval_of_one_and_the_burst_of_another);
    RUN(strict_refunds_are_those_of_the_limit_that_asked_for_them);
    RUN(a_table_tells_every_option_that_it_was_given);
    RUN(a_restored_table_tells_another_generation);
    RUN(a_table_of_windows_tells_its_guard_and_its_count);
    RUN(a_walk_tells_of_each_key_what_a_look_at_it_tells);
    RUN(statistics_tell_live_words_expired_ones_and_claims_apart);
    RUN(a_meter_tells_every_number_that_it_was_given);
    RUN(every_counter_is_added);
    RUN(the_specifications_of_a_ladder_have_all_that_was_given);
    return check_end();
}
