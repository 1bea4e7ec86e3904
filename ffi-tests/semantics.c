/* semantics.c - what options and operations promise, one claim at a time. What property.c holds to an exact bucket
 * (soft, room, debt, refunds, reservations) is not said again. */
#include "kit.h"

#define T SECOND

static tatcell_decision_t d;
static tatcell_cell_t cell;
static tatcell_limit_t limit;
static kit_table k;

static void fresh(void) {
    tatcell_decision_t init = TATCELL_DECISION_INIT;
    memset(&cell, 0, sizeof cell);
    d = init;
}

static int32_t ask(uint64_t now, uint32_t cost) {
    return tatcell_cell_check_ex(&cell, &limit, now, cost, 0, &d, NULL);
}

static int32_t ask_key(uint64_t now, uint64_t hash, uint32_t cost) {
    return tatcell_table_check_ex_hash(&k.table, &k.limit, now, hash, cost, 0, &d, NULL);
}

/* ---- Verdicts ---- */

TEST(idle_cell_admits_its_burst_and_no_more) {
    uint64_t retry = 7;
    fresh();
    EQ(tatcell_limit_init(&limit, 1, T, 5), 0);
    for (int i = 0; i < 5; i++) EQ(tatcell_cell_check(&cell, &limit, 0, 1, &retry), 0);
    EQ(retry, 0);
    EQ(tatcell_cell_check(&cell, &limit, 0, 1, &retry), TATCELL_NON_CONFORMING);
    EQ(retry, T);
}

TEST(denied_requests_and_looks_change_nothing) {
    fresh();
    EQ(tatcell_limit_init(&limit, 1, T, 5), 0);
    EQ(ask(0, 5), 0);
    uint64_t word = cell.word;
    EQ(ask(0, 1), TATCELL_NON_CONFORMING);
    EQ(ask(0, 6), TATCELL_NEVER);
    EQ(d.retry_after, UINT64_MAX);
    EQ(ask(0, 0), 0);
    EQ(tatcell_cell_peek(&cell, &limit, 0, 1, &d), TATCELL_NON_CONFORMING);
    EQ(cell.word, word);
    fresh();
    EQ(ask(0, 0), 0);
    EQ(cell.word, 0);
}

TEST(a_rate_and_a_clock_frequency_make_the_same_limit) {
    tatcell_limit_t same;
    EQ(tatcell_limit_init(&limit, 100, T, 5), 0);
    EQ(tatcell_limit_init_rate(&same, 100, T, 5), 0);
    EQ(memcmp(&limit, &same, sizeof limit), 0);
}

TEST(everything_conforms_to_an_unlimited_limit) {
    fresh();
    EQ(tatcell_limit_init_unlimited(&limit), 0);
    for (int i = 0; i < 100; i++) EQ(ask(0, UINT32_MAX), 0);
    EQ(d.remaining, UINT64_MAX);
    EQ(d.burst, UINT64_MAX);
    EQ(cell.word, 0);
}

/* ---- Options ---- */

TEST(shadow_mode_passes_flagged_and_uncharged) {
    tatcell_limit_spec_t s = kit_spec(1, T, 2);
    fresh();
    s.flags = TATCELL_LIMIT_SHADOW;
    EQ(tatcell_limit_init_spec(&limit, &s), 0);
    EQ(ask(0, 2), 0);
    EQ(d.flags, 0);
    uint64_t word = cell.word, retry = 7;
    EQ(ask(0, 1), 0);
    EQ(d.flags, TATCELL_FLAG_SHADOW);
    EQ(d.retry_after, T); /* what would have been answered */
    EQ(d.permit.stored, 0);
    char text[64];
    tatcell_http_policy_t said = TATCELL_HTTP_POLICY_INIT;
    said.name = "p", said.limit = &limit, said.decision = &d;
    EQ(tatcell_http_value(&said, 1, T, TATCELL_HTTP_RATELIMIT, text, sizeof text), 0); /* which no client is told */
    EQ(ask(0, 3), 0);
    EQ(d.flags, TATCELL_FLAG_SHADOW);
    EQ(tatcell_cell_check(&cell, &limit, 0, 1, &retry), 0);
    EQ(retry, 0);
    EQ(cell.word, word);
}

/* The same in cells of both widths and in a table: at once, a wait that it is spared, and two refusals. */
TEST(shadow_mode_lets_a_reservation_leave_at_once_and_charges_its_wait) {
    static const struct {
        uint64_t cost, retry_after, units, flags;
    } want[] = {{1, 0, 1, 0}, {1, 1000, 1, 2}, {1, 500, 0, 2}, {2, UINT64_MAX, 0, 2}};
    tatcell_limit_spec_t s = kit_spec(1, 1000, 1);
    tatcell_limit_t limit32;
    tatcell_cell32_t cell32 = TATCELL_CELL32_INIT;
    tatcell_counters_t c = TATCELL_COUNTERS_INIT;
    fresh();
    s.flags = TATCELL_LIMIT_SHADOW;
    s.max_delay = 1500;
    EQ(kit_make(&k, s, 64, NULL), 0);
    EQ(tatcell_limit_init_spec(&limit, &s), 0);
    EQ(tatcell_limit32_init_spec(&limit32, &s), 0);
    for (int form = 0; form < 3; form++) {
        for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
            NOTE("form %d, reservation %d", form, (int)i);
            if (form == 0) EQ(tatcell_cell_reserve(&cell, &limit, 7, want[i].cost, &d), 0);
            if (form == 1) EQ(tatcell_cell32_reserve(&cell32, &limit32, 7, (uint32_t)want[i].cost, &d), 0);
            if (form == 2) EQ(tatcell_table_reserve_ex(&k.table, &k.limit, 7, "key", 3, want[i].cost, &d, &c), 0);
            EQ(d.departure, 7);
            EQ(d.flags, want[i].flags);
            EQ(d.retry_after, want[i].retry_after);
            EQ(d.units, want[i].units);
            EQ(d.permit.stored != 0, want[i].units);
        }
        EQ(d.reset_after, 2000);
    }
    EXPECT(c.conforming == 1 && c.shadow == 3 && c.non_conforming == 0 && c.never == 0);
    kit_free(&k);
}

TEST(penalty_charges_denied_requests_up_to_its_floor) {
    tatcell_limit_spec_t s = kit_spec(1, T, 2);
    fresh();
    s.penalty = 1;
    EQ(tatcell_limit_init_spec(&limit, &s), 0);
    EQ(ask(0, 2), 0);
    for (int i = 0; i < 10; i++) EQ(ask(0, 1), TATCELL_NON_CONFORMING);
    EQ(d.reset_after, 3 * T);
    EQ(d.retry_after, 2 * T);
    EQ(ask(2 * T, 1), 0);
}

TEST(heal_turns_an_impossible_word_into_one_burst_of_debt) {
    tatcell_limit_spec_t s = kit_spec(1, T, 4);
    fresh();
    s.skew = T;
    EQ(tatcell_limit_init_spec(&limit, &s), 0);
    cell.word = 1000 * T; /* the clock was stepped back by 1000 s */
    EQ(tatcell_cell_peek(&cell, &limit, 0, 0, &d), 0);
    EQ(d.remaining, 4); /* forgiven */
    s.flags = TATCELL_LIMIT_HEAL;
    s.max_debt = 3;
    EQ(tatcell_limit_init_spec(&limit, &s), 0);
    tatcell_cell_t far = cell;
    EQ(ask(0, 1), TATCELL_NON_CONFORMING);
    EQ(d.reset_after, 4 * T);
    /* What is charged comes on top of that burst, and stays. */
    cell = far;
    EQ(tatcell_cell_charge(&cell, &limit, 0, 2, &d), 0);
    EQ(d.permit.stored, 2 * T);
    EQ(tatcell_cell_peek(&cell, &limit, 0, 0, &d), TATCELL_NON_CONFORMING);
    EQ(d.reset_after, 6 * T);
    EQ(ask(3 * T - 1, 1), TATCELL_NON_CONFORMING);
    EQ(ask(3 * T, 1), 0);
}

/* ---- Charge, refund, reserve, change, reset ---- */

TEST(refund_of_another_epoch_credits_nothing) {
    tatcell_limit_spec_t s = kit_spec(1, T, 4);
    uint64_t credited = 7;
    fresh();
    s.epoch = 1;
    EQ(tatcell_limit_init_spec(&limit, &s), 0);
    EQ(ask(0, 4), 0);
    EQ(d.permit.epoch, 1);
    s.epoch = 2;
    EQ(tatcell_limit_init_spec(&limit, &s), 0);
    EQ(tatcell_cell_refund(&cell, &limit, 0, &d.permit, &credited), 0);
    EQ(credited, 0);
}

TEST(change_keeps_time_or_tokens_or_nothing) {
    tatcell_limit_t faster;
    static const struct { uint32_t how; uint64_t remaining, reset; } c[] = {
        {TATCELL_CHANGE_KEEP_TIME, 2, 4 * T}, /* 4 s of debt are 8 units of half a second */
        {TATCELL_CHANGE_KEEP_UNITS, 6, 2 * T},
        {TATCELL_CHANGE_RESET, 10, 0},
    };
    EQ(tatcell_limit_init(&limit, 1, T, 5), 0);
    EQ(tatcell_limit_init(&faster, 2, T, 10), 0);
    for (int i = 0; i < 3; i++) {
        fresh();
        NOTE("how %d", i);
        EQ(ask(7, 4), 0);
        EQ(tatcell_cell_change(&cell, &limit, &faster, 7, c[i].how), 0);
        EQ(tatcell_cell_peek(&cell, &faster, 7, 0, &d), 0);
        EQ(d.remaining, c[i].remaining);
        EQ(d.reset_after, c[i].reset);
    }
}

/* A 32-bit counter of milliseconds wraps after 49.7 days. */
TEST(a_cell_of_32_bits_passes_one_burst_where_the_counter_of_the_ticks_wraps) {
    static const struct {
        uint64_t units, period, burst;
        int32_t rc;
    } t[] = {{10, 1000, 20, 0}, {1, 86400000, 3, 0}, {1, 86400000, 6, 0}, {1, 86400000, 12, 0}, /* a day */
             {1, 86400000, 13, TATCELL_ERR_HORIZON}, {1, 2592000000u, 1, TATCELL_ERR_HORIZON}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        tatcell_cell32_t c = TATCELL_CELL32_INIT;
        EQ(tatcell_limit32_init(&limit, t[i].units, t[i].period, t[i].burst), t[i].rc);
        if (t[i].rc < 0) continue;
        uint32_t tick = UINT32_MAX - 999;
        EQ(tatcell_cell32_check(&c, &limit, tick, (uint32_t)t[i].burst, NULL), 0);
        tick += 1500;
        EQ(tatcell_cell32_check(&c, &limit, tick, (uint32_t)(1 + 1500 * t[i].units / t[i].period), NULL), 1);
    }
    /* Where it is asked for by name the q-unit may have several ticks, and the counter must not wrap. */
    tatcell_limit_spec_t s = kit_spec(1, 2592000000u, 1);
    s.flags = TATCELL_LIMIT_RESOLUTION, s.resolution = -3;
    EQ(tatcell_limit32_init_spec(&limit, &s), 0);
}

TEST(reset_makes_a_cell_fresh) {
    fresh();
    EQ(tatcell_limit_init(&limit, 1, T, 5), 0);
    EQ(ask(0, 5), 0);
    EQ(tatcell_cell_reset(&cell), 0);
    EQ(cell.word, 0);
    EQ(ask(0, 5), 0);
}

/* ---- The table ---- */

static void table(uint64_t burst, uint64_t slots, uint32_t policy) {
    tatcell_table_options_t o = kit_options(NULL);
    tatcell_limit_spec_t s = kit_spec(1, T, burst);
    o.policy = policy;
    s.max_debt = s.max_room = burst;
    s.max_delay = burst * T;
    fresh();
    EQ(kit_make(&k, s, slots, &o), 0);
}

TEST(exempt_keys_take_no_slot) {
    tatcell_limit_t exempt;
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    DO(table(2, 64, 0));
    EQ(tatcell_limit_init_unlimited_table(&exempt, &k.table), 0);
    for (int i = 0; i < 50; i++) EQ(tatcell_table_check(&k.table, &exempt, 0, &i, sizeof i, UINT32_MAX, NULL), 0);
    EQ(tatcell_table_stats(&k.table, 0, &stats), 0);
    EQ(stats.live + stats.claims, 0);
    kit_free(&k);
}

TEST(hash_and_key_calls_are_the_same) {
    DO(table(2, 64, 0));
    EQ(tatcell_table_check(&k.table, &k.limit, 0, "a", 1, 1, NULL), 0);
    EQ(tatcell_table_check_hash(&k.table, &k.limit, 0, kit_hash(&k, "a"), 1, NULL), 0);
    EQ(tatcell_table_check(&k.table, &k.limit, 0, "a", 1, 1, NULL), TATCELL_NON_CONFORMING);
    kit_free(&k);
}

TEST(reset_key_makes_one_key_full_again) {
    DO(table(4, 64, 0));
    EQ(ask_key(0, kit_hash(&k, "a"), 4), 0);
    EQ(ask_key(0, kit_hash(&k, "b"), 4), 0);
    EQ(tatcell_table_reset_hash(&k.table, 0, kit_hash(&k, "a")), 0);
    EQ(tatcell_table_reset_hash(&k.table, 0, kit_hash(&k, "absent")), 0);
    EQ(ask_key(0, kit_hash(&k, "a"), 3), 0);
    EXPECT(d.reset_after <= 3 * T + 100); /* a trace of debt stays */
    EQ(tatcell_table_reset_hash(&k.table, 0, kit_hash(&k, "a")), 0);
    EQ(ask_key(100, kit_hash(&k, "a"), 4), 0);
    EQ(ask_key(100, kit_hash(&k, "b"), 1), TATCELL_NON_CONFORMING);
    kit_free(&k);
}

TEST(the_longest_debts_come_first_and_are_known_by_their_hash) {
    tatcell_slot_t top[5];
    uint32_t found = 9;
    DO(table(40, 1024, 0));
    EQ(tatcell_table_top(&k.table, 0, top, 5, &found), 0);
    EQ(found, 0);
    for (int i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        EQ(tatcell_table_check(&k.table, &k.limit, 0, key, strlen(key), 1 + (uint32_t)(i * 7 % 40), NULL), 0);
    }
    EQ(tatcell_table_top(&k.table, 0, top, 5, &found), 0);
    EQ(found, 5);
    for (uint32_t n = 0; n < 5; n++) {
        int mine = 0;
        EQ(top[n].reset_after, (40 - n) * T);
        for (int i = 0; i < 40; i++) {
            char key[16];
            snprintf(key, sizeof key, "%d", i);
            int32_t is = tatcell_table_may_be(&k.table, &top[n], kit_hash(&k, key));
            EXPECT(is == 0 || is == TATCELL_END);
            if (is == 0) {
                mine++;
                EQ(1 + i * 7 % 40, 40 - (int)n);
            }
        }
        EQ(mine, 1);
    }
    EQ(tatcell_table_top(&k.table, 0, NULL, 0, &found), 0);
    EQ(found, 0);
    EQ(tatcell_table_top(&k.table, 0, top, 65, &found), TATCELL_ERR_COUNT);
    EQ(tatcell_table_top(&k.table, 0, NULL, 1, &found), TATCELL_ERR_NULL);
    EQ(tatcell_table_top(&k.table, 0, top, 1, NULL), TATCELL_ERR_NULL);
    EQ(tatcell_table_may_be(&k.table, NULL, 1), TATCELL_ERR_NULL);
    top[0].number = UINT64_MAX;
    EQ(tatcell_table_may_be(&k.table, &top[0], 1), TATCELL_END);
    kit_free(&k);
}

TEST(stats_and_next_see_each_live_key_once) {
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    tatcell_slot_t slot;
    uint64_t tags = 0, want = 0, resets = 0, n = 0, debts = 0;
    DO(table(4, 1024, 0));
    for (int i = 0; i < 50; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        want += kit_hash(&k, key) & 0xfffff;
        EQ(tatcell_table_check(&k.table, &k.limit, 0, key, strlen(key), 1 + (uint32_t)(i & 3), NULL), 0);
    }
    EQ(tatcell_table_stats(&k.table, 0, &stats), 0);
    EQ(stats.slots, 1024);
    EQ(stats.live, 50);
    EQ(stats.claims, 0);
    EQ(stats.expired, 0);
    EQ(stats.load_ppm, 50 * 1000000 / 1024);
    for (int i = 0; i < 8; i++) debts += stats.debt[i];
    EQ(debts, 50);
    for (uint64_t from = 0; tatcell_table_next(&k.table, 0, from, &slot) == 0; from = slot.number + 1, n++) {
        EXPECT(slot.number >= from && slot.number < 1024);
        tags += slot.tag;
        resets += slot.reset_after / T;
    }
    EQ(n, 50);
    EQ(tags, want);
    EQ(resets, 13 + 2 * 13 + 3 * 12 + 4 * 12);
    EQ(tatcell_table_stats(&k.table, 2 * T, &stats), 0); /* costs 1 and 2 have drained */
    EQ(stats.live, 24);
    EQ(stats.expired, 26);
    kit_free(&k);
}

TEST(a_call_after_any_silence_finds_no_old_debt) {
    tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
    tatcell_decision_t seen = TATCELL_DECISION_INIT;
    tatcell_sweeper_t sweeper = TATCELL_SWEEPER_INIT;
    uint64_t now = 1, time = 0;
    DO(table(4, 256, 0));
    EQ(tatcell_table_info(&k.table, &info), 0);
    for (int call = 0; call < 300; call++) {
        EQ(tatcell_table_peek_time(&k.table, &sweeper, now, &time), 0);
        EQ(tatcell_table_peek(&k.table, &k.limit, time, "a", 1, 4, &seen), 0);
        EQ(tatcell_table_sweep_due(&k.table, &sweeper, now), 0);
        EQ(tatcell_table_check(&k.table, &k.limit, now, "a", 1, 4, NULL), 0);
        EQ(tatcell_table_sweep_due(&k.table, &sweeper, now), 0);
        EQ(tatcell_table_check(&k.table, &k.limit, now, "a", 1, 1, NULL), TATCELL_NON_CONFORMING);
        /* Until the word has wrapped, some times: then its debt would count once more. */
        now += (info.span + info.window) * (uint64_t)(call % 3 + 1) - info.window * (uint64_t)call / 300;
    }
    kit_free(&k);
}

TEST(sweep_walks_the_table_in_parts_and_changes_no_decision) {
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    uint64_t next = 0;
    tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
    uint64_t interval = 0;
    int calls = 0;
    DO(table(4, 256, 0));
    for (int i = 0; i < 40; i++) EQ(tatcell_table_check(&k.table, &k.limit, 0, &i, sizeof i, 1, NULL), 0);
    EQ(tatcell_table_info(&k.table, &info), 0);
    interval = info.sweep_interval;
    EXPECT(interval > 100 * T);
    EQ(tatcell_table_check(&k.table, &k.limit, 0, "late", 4, 4, NULL), 0);
    EQ(tatcell_table_sweep(&k.table, 0, 0, SIZE_MAX, &next), 0); /* nothing has expired */
    EQ(next, 0);
    EQ(tatcell_table_stats(&k.table, 0, &stats), 0);
    EQ(stats.live, 41);
    uint64_t later = interval / 2;
    EQ(tatcell_table_check(&k.table, &k.limit, later, "later", 5, 4, NULL), 0);
    do {
        EQ(tatcell_table_sweep(&k.table, later, next, 100, &next), 0);
        calls++;
    } while (next != 0);
    EQ(calls, 3);
    EQ(tatcell_table_stats(&k.table, later, &stats), 0);
    EQ(stats.live, 1);
    EQ(stats.expired, 0);
    EQ(tatcell_table_check(&k.table, &k.limit, later, "later", 5, 1, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_table_check(&k.table, &k.limit, later, "late", 4, 4, NULL), 0);
    kit_free(&k);
}

TEST(counters_count_each_answer) {
    tatcell_counters_t c = TATCELL_COUNTERS_INIT, want = TATCELL_COUNTERS_INIT;
    tatcell_limit_spec_t s = kit_spec(1, T, 4);
    tatcell_limit_t shadow;
    fresh();
    s.soft = 2;
    EQ(kit_make(&k, s, 64, NULL), 0);
    s.flags = TATCELL_LIMIT_SHADOW;
    EQ(tatcell_limit_init_table(&shadow, &k.table, &s), 0);
    uint64_t h = kit_hash(&k, "a");
    for (int i = 0; i < 6; i++) EQ(tatcell_table_check_ex_hash(&k.table, &k.limit, 0, h, 1, 0, &d, &c), i >= 4);
    EQ(tatcell_table_check_ex_hash(&k.table, &k.limit, 0, h, 5, 0, &d, &c), TATCELL_NEVER);
    EQ(tatcell_table_check_ex_hash(&k.table, &shadow, 0, h, 1, 0, &d, &c), TATCELL_PASS);
    want.conforming = 4;
    want.soft = 2;
    want.non_conforming = 2;
    want.never = 1;
    want.shadow = 1;
    want.inserted = 1;
    EQ(memcmp(&c, &want, sizeof c), 0);
    kit_free(&k);
}

/* A full set: 16 keys hold all slots of a one-set table; each policy answers the 17th as it says. */
static void overfill(uint32_t policy) {
    DO(table(4, 16, policy));
    for (uint64_t i = 0; i < 16; i++) EQ(ask_key(0, i + 1, i == 0 ? 2 : 4), 0);
}

TEST(full_set_policy_admit_passes_untracked) {
    DO(overfill(TATCELL_FULL_ADMIT));
    for (int i = 0; i < 10; i++) {
        EQ(ask_key(0, 99, 4), 0);
        EQ(d.tracking, TATCELL_UNTRACKED);
        EQ(d.permit.stored, 0);
    }
    EQ(ask_key(2 * T, 99, 4), 0); /* the first slot has drained */
    EQ(d.tracking, TATCELL_TRACKED);
    EQ(ask_key(2 * T, 99, 1), TATCELL_NON_CONFORMING);
    kit_free(&k);
}

TEST(full_set_policy_inherit_takes_the_smallest_debt_over) {
    DO(overfill(TATCELL_FULL_INHERIT));
    EQ(ask_key(0, 99, 3), TATCELL_NON_CONFORMING); /* measured against 2 units of debt */
    EQ(d.tracking, TATCELL_INHERITED);
    EQ(ask_key(0, 99, 2), 0);
    EQ(d.tracking, TATCELL_INHERITED);
    EQ(d.remaining, 0);
    EQ(ask_key(0, 99, 1), TATCELL_NON_CONFORMING);
    EQ(d.tracking, TATCELL_TRACKED);
    kit_free(&k);
}

TEST(full_set_policy_deny_refuses) {
    DO(overfill(TATCELL_FULL_DENY));
    EQ(ask_key(0, 99, 1), TATCELL_NON_CONFORMING);
    EQ(d.tracking, TATCELL_UNTRACKED);
    EQ(d.retry_after, 2 * T);
    EQ(ask_key(2 * T, 99, 4), 0);
    EQ(d.tracking, TATCELL_TRACKED);
    kit_free(&k);
}

TEST(full_set_policy_sampled_forgives_now_and_then) {
    int forgiven = 0;
    DO(overfill(TATCELL_FULL_SAMPLED));
    for (uint64_t i = 0; i < 1600; i++) {
        EQ(ask_key(0, 1000 + i * 0x9e3779b97f4a7c15u, 1), 0);
        EXPECT(d.tracking == TATCELL_UNTRACKED || d.tracking == TATCELL_FORGIVEN || d.tracking == TATCELL_TRACKED);
        forgiven += d.tracking == TATCELL_FORGIVEN;
        EQ(tatcell_table_refund_hash(&k.table, &k.limit, 0, 1000 + i * 0x9e3779b97f4a7c15u, &d.permit, NULL), 0);
    }
    EXPECT(forgiven > 60 && forgiven < 140); /* one in 16: 100, and four standard deviations */
    kit_free(&k);
}

/* ---- Save and restore ---- */

TEST(a_restored_table_owes_what_the_saved_one_owed) {
    static const int64_t offsets[] = {0, 1000000, -50, INT64_C(1) << 40};
    for (int i = 0; i < 4; i++) {
        NOTE("offset %lld", (long long)offsets[i]);
        DO(table(4, 256, 0));
        EQ(ask_key(100 * T, kit_hash(&k, "a"), 4), 0);
        EQ(ask_key(100 * T, kit_hash(&k, "b"), 1), 0);
        uint64_t *image = (uint64_t *)malloc(k.bytes), saved_at = 101 * T;
        size_t used = 0;
        EXPECT(image != NULL);
        EQ(tatcell_table_save(&k.table, saved_at, image, k.bytes, &used), 0);
        EQ(used, k.bytes);
        kit_table r = {.memory = kit_memory(k.bytes), .bytes = k.bytes};
        EQ(tatcell_table_restore(&r.table, r.memory, r.bytes, image, used, kit_attach(kit_seed, 0), offsets[i]), 0);
        EQ(tatcell_limit_init_table(&r.limit, &r.table, &k.spec), 0);
        uint64_t now = saved_at + (uint64_t)offsets[i];
        EQ(tatcell_table_peek_hash(&r.table, &r.limit, now, kit_hash(&k, "a"), 1, &d), 0);
        EQ(d.reset_after, 3 * T);
        EQ(d.remaining, 1);
        EQ(tatcell_table_peek_hash(&r.table, &r.limit, now, kit_hash(&k, "b"), 4, &d), 0); /* had drained */
        EQ(kit_hash(&r, "a"), kit_hash(&k, "a"));
        free(image);
        kit_free(&r);
        kit_free(&k);
    }
}

TEST(an_image_can_be_attached_where_it_was_copied) {
    tatcell_table_t t;
    DO(table(4, 256, 0));
    EQ(ask_key(0, kit_hash(&k, "a"), 4), 0);
    void *copy = kit_memory(k.bytes);
    memcpy(copy, k.memory, k.bytes);
    EQ(tatcell_table_attach(&t, copy, k.bytes, kit_attach(kit_seed, 0)), 0);
    EQ(tatcell_table_check(&t, &k.limit, 0, "a", 1, 1, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_table_check(&t, &k.limit, 0, "b", 1, 4, NULL), 0);
    EQ(ask_key(0, kit_hash(&k, "b"), 4), 0); /* the original is another table */
    free(copy);
    kit_free(&k);
}

TEST(zeroed_memory_is_a_table_once_its_header_is_there) {
    tatcell_table_options_t o = kit_options(NULL);
    tatcell_table_t t;
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        kit_table plain;
        o.flags = TATCELL_TABLE_ZEROED | (exclusive ? TATCELL_TABLE_EXCLUSIVE : 0);
        EQ(kit_make(&plain, kit_spec(7, T, 4), 256, NULL), 0);
        void *fresh = kit_memory(plain.bytes);
        memset(fresh, 0, plain.bytes);
        tatcell_limit_spec_t spec = kit_spec(7, T, 4);
        tatcell_limit_t limit;
        o.fastest = &spec;
        EQ(tatcell_table_init(&t, fresh, plain.bytes, &o), 0);
        EQ(tatcell_limit_init_table(&limit, &t, &spec), 0);
        for (uint64_t i = 0; i < 2000; i++) {
            uint64_t now = i * (T / 50), key = i * i % 41;
            NOTE("request %llu", (unsigned long long)i);
            EQ(tatcell_table_check(&t, &limit, now, &key, 8, 1, NULL),
               tatcell_table_check(&plain.table, &plain.limit, now, &key, 8, 1, NULL));
        }
        EQ(tatcell_table_init(&t, fresh, plain.bytes, &o), TATCELL_ERR_MODE);
        EQ(tatcell_table_attach(&t, fresh, plain.bytes, kit_attach(kit_seed, o.flags & TATCELL_TABLE_EXCLUSIVE)), 0);
        free(fresh);
        kit_free(&plain);
    }
}

TEST(a_migrated_table_owes_what_the_old_one_owed) {
    tatcell_migrated_t told = TATCELL_MIGRATED_INIT, foreseen = TATCELL_MIGRATED_INIT;
    DO(table(4, 64, 0));
    for (int i = 0; i < 20; i++) EQ(tatcell_table_check(&k.table, &k.limit, 0, &i, sizeof i, 3, NULL), 0);
    tatcell_table_options_t o = kit_options(&k.spec);
    kit_table n = {.bytes = tatcell_table_bytes(256)};
    n.memory = kit_memory(n.bytes);
    EQ(tatcell_table_migrate_foresee(&k.table, n.bytes, &o, 0, &foreseen), 0);
    EQ(tatcell_table_migrate(&n.table, k.memory, k.bytes, &o, &k.table, 0, &told), TATCELL_ERR_OVERLAP);
    EQ(tatcell_table_migrate(&k.table, n.memory, n.bytes, &o, &k.table, 0, &told), TATCELL_ERR_OVERLAP);
    EQ(tatcell_table_migrate((tatcell_table_t *)n.memory, n.memory, n.bytes, &o, &k.table, 0, &told),
        TATCELL_ERR_OVERLAP);
    EQ(tatcell_table_migrate(&n.table, n.memory, 255, &o, &k.table, 0, &told), TATCELL_ERR_TOO_SMALL);
    o.tag_bits = 21;
    EQ(tatcell_table_migrate(&n.table, n.memory, n.bytes, &o, &k.table, 0, &told), TATCELL_ERR_OPTION);
    o.tag_bits = 0;
    told.size = 7;
    EQ(tatcell_table_migrate(&n.table, n.memory, n.bytes, &o, &k.table, 0, &told), TATCELL_ERR_SIZE);
    told.size = sizeof told;
    EQ(tatcell_table_migrate(&n.table, n.memory, n.bytes, &o, &k.table, 0, &told), 0);
    EQ(memcmp(&told, &foreseen, sizeof told), 0);
    EQ(told.dropped + told.clamped + told.opened, 0);
    EXPECT(told.copied >= 20);
    EQ(tatcell_limit_init_table(&n.limit, &n.table, &k.spec), 0);
    for (int i = 0; i < 20; i++) {
        NOTE("key %d", i);
        EQ(tatcell_table_check(&n.table, &n.limit, 0, &i, sizeof i, 2, NULL), TATCELL_NON_CONFORMING);
        EQ(tatcell_table_check(&n.table, &n.limit, 0, &i, sizeof i, 1, NULL), 0);
    }
    kit_free(&n);
    kit_free(&k);
}

/* 60 an hour are used up, and the limit is raised tenfold. Ticks are milliseconds. */
TEST(a_raised_limit_leaves_what_a_counter_would) {
    const tatcell_limit_spec_t few = kit_spec(60, 3600000, 60), many = kit_spec(600, 3600000, 600);
    tatcell_migrated_t told = TATCELL_MIGRATED_INIT;
    tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    tatcell_limit_t old, new;
    tatcell_table_options_t o = kit_options(&many);
    o.slowest = &few;
    for (int way = 0; way < 4; way++) {
        kit_table n = {.bytes = tatcell_table_bytes(16)};
        NOTE("way %d", way);
        n.memory = kit_memory(n.bytes);
        o.old_limit = o.new_limit = NULL;
        EQ(kit_make(&k, many, 16, &o), 0);
        EQ(tatcell_limit_init_table(&old, &k.table, &few), 0);
        EQ(tatcell_table_check_ex(&k.table, &old, 0, "x", 1, 60, 0, &d, NULL), 0);
        tatcell_permit_t permit = d.permit;
        uint64_t left = 540;
        switch (way) {
        case 0: /* as a time */
            EQ(tatcell_table_migrate(&n.table, n.memory, n.bytes, &o, &k.table, 0, &told), 0);
            left = 0;
            break;
        case 1:
            o.old_limit = &few;
            EQ(tatcell_table_migrate(&n.table, n.memory, n.bytes, &o, &k.table, 0, &told), TATCELL_ERR_OPTION);
            o.new_limit = &many;
            EQ(tatcell_table_init(&n.table, n.memory, n.bytes, &o), TATCELL_ERR_OPTION);
            EQ(tatcell_table_migrate(&n.table, n.memory, n.bytes, &o, &k.table, 0, &told), 0);
            break;
        case 2:
            o.old_limit = &few, o.new_limit = &many;
            EQ(tatcell_table_info(&k.table, &info), 0);
            EQ(tatcell_table_migrate_in_place(&k.table, k.memory, k.bytes, info.generation, &o, 0, &told), 0);
            EQ(tatcell_table_migrate_in_place(&k.table, k.memory, k.bytes, info.generation, &o, 0, &told),
                TATCELL_ERR_MODE);
            o.flags = TATCELL_TABLE_EXCLUSIVE;
            EQ(tatcell_table_migrate_in_place(&k.table, k.memory, k.bytes, info.generation + 1, &o, 0, &told),
                TATCELL_ERR_MODE);
            o.flags = 0;
            n.table = k.table;
            break;
        default: /* by its name; its permits are those of another epoch, or of the new limit */
            EQ(tatcell_limit_init_table(&new, &k.table, &many), 0);
            EQ(tatcell_table_change(&k.table, &old, &new, 0, "x", 1, TATCELL_CHANGE_KEEP_UNITS), 0);
            EQ(tatcell_table_change(&k.table, &old, &new, 0, "absent", 6, TATCELL_CHANGE_KEEP_UNITS), 0);
            EQ(tatcell_table_change(&k.table, &old, &new, 0, "x", 1, 3), TATCELL_ERR_OPTION);
            n.table = k.table;
        }
        EQ(told.dropped + told.clamped + told.opened, 0);
        EQ(tatcell_limit_init_table(&new, &n.table, &many), 0);
        uint64_t credited = 1;
        if (way < 3) {
            EQ(tatcell_table_refund(&n.table, &new, 0, "x", 1, &permit, &credited), 0);
            EQ(credited, 0);
        }
        EQ(tatcell_table_peek(&n.table, &new, 0, "x", 1, 1, &d), left ? 0 : TATCELL_NON_CONFORMING);
        EQ(d.remaining, left);
        EQ(tatcell_table_change_hash(&n.table, &new, &new, 0, kit_hash(&k, "x"), TATCELL_CHANGE_RESET), 0);
        EQ(tatcell_table_peek(&n.table, &new, 0, "x", 1, 1, &d), 0);
        EQ(d.remaining, 600);
        free(n.memory);
        kit_free(&k);
    }
}

TEST(sizing_meets_its_target) {
    /* 16 servers at 4 erlangs: 3.9e-6; at 8 erlangs: 4.5e-3 (Erlang B tables). */
    EXPECT(tatcell_table_full_ppb(250000) > 3000 && tatcell_table_full_ppb(250000) < 5000);
    EXPECT(tatcell_table_full_ppb(500000) > 4000000 && tatcell_table_full_ppb(500000) < 5000000);
    EQ(tatcell_table_bytes(1000), 128 + 63 * 128);
}

int main(void) {
    RUN(idle_cell_admits_its_burst_and_no_more);
    RUN(denied_requests_and_looks_change_nothing);
    RUN(a_rate_and_a_clock_frequency_make_the_same_limit);
    RUN(everything_conforms_to_an_unlimited_limit);
    RUN(shadow_mode_passes_flagged_and_uncharged);
    RUN(shadow_mode_lets_a_reservation_leave_at_once_and_charges_its_wait);
    RUN(penalty_charges_denied_requests_up_to_its_floor);
    RUN(heal_turns_an_impossible_word_into_one_burst_of_debt);
    RUN(refund_of_another_epoch_credits_nothing);
    RUN(change_keeps_time_or_tokens_or_nothing);
    RUN(a_cell_of_32_bits_passes_one_burst_where_the_counter_of_the_ticks_wraps);
    RUN(reset_makes_a_cell_fresh);
    RUN(exempt_keys_take_no_slot);
    RUN(hash_and_key_calls_are_the_same);
    RUN(reset_key_makes_one_key_full_again);
    RUN(stats_and_next_see_each_live_key_once);
    RUN(the_longest_debts_come_first_and_are_known_by_their_hash);
    RUN(a_call_after_any_silence_finds_no_old_debt);
    RUN(sweep_walks_the_table_in_parts_and_changes_no_decision);
    RUN(counters_count_each_answer);
    RUN(full_set_policy_admit_passes_untracked);
    RUN(full_set_policy_inherit_takes_the_smallest_debt_over);
    RUN(full_set_policy_deny_refuses);
    RUN(full_set_policy_sampled_forgives_now_and_then);
    RUN(a_restored_table_owes_what_the_saved_one_owed);
    RUN(an_image_can_be_attached_where_it_was_copied);
    RUN(zeroed_memory_is_a_table_once_its_header_is_there);
    RUN(a_migrated_table_owes_what_the_old_one_owed);
    RUN(a_raised_limit_leaves_what_a_counter_would);
    RUN(sizing_meets_its_target);
    return check_end();
}
