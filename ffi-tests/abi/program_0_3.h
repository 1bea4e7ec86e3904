/* program_0_3.h - the part of program.c that uses what 0.3.0 brought: other algorithms, sliding logs, chains,
 * overrides, ladders, pairs, meters, marks, shapers, groups, queues, HTTP fields, log gates, slips, longest debts. */

static tatcell_link_t link_to(tatcell_cell_t *cell, const tatcell_limit_t *limit) {
    tatcell_link_t link = TATCELL_LINK_INIT;
    link.cell = cell, link.limit = limit, link.cost = 1;
    return link;
}

/* A table with a secret of its own; 1000 ticks a unit, 5 at once, unless there are options. */
typedef struct table_of {
    TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES(1024)];
    tatcell_table_t table;
    tatcell_limit_t limit;
} table_of;

static int32_t make(table_of *t, tatcell_table_options_t options) {
    static const uint8_t seed[16] = "sixteen secret b";
    options.seed = seed;
    int32_t rc = tatcell_table_init(&t->table, t->memory, sizeof t->memory, &options);
    return rc == 0 && options.fastest ? tatcell_limit_init_table(&t->limit, &t->table, options.fastest) : rc;
}

TEST(windows_and_logs_count_as_ever) {
    tatcell_cell_t cells[4] = {TATCELL_CELL_INIT}, stamps[3] = {TATCELL_CELL_INIT};
    tatcell_limit_t limit;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    EQ(tatcell_limit_init_window(&limit, 3, 1000), 0);
    for (int i = 0; i < 4; i++) EQ(tatcell_cell_check(&cells[0], &limit, 5, 1, NULL), i == 3);
    EQ(tatcell_cell_check(&cells[0], &limit, 1005, 1, NULL), TATCELL_PASS);
    EQ(tatcell_limit_init_sliding(&limit, 3, 1000), 0);
    for (int i = 0; i < 4; i++) EQ(tatcell_cell_check(&cells[1], &limit, 5, 1, NULL), i == 3);
    EQ(tatcell_limit_init_quota_linear(&limit, 3, 1000), 0);
    for (int i = 0; i < 4; i++) EQ(tatcell_cell_check(&cells[2], &limit, 5, 1, NULL), i == 3);
    EQ(tatcell_limit_init_decay(&limit, 20, 1000000), 0);
    EQ(tatcell_cell_check(&cells[3], &limit, 5, 19, NULL), TATCELL_PASS);
    EQ(tatcell_cell_check(&cells[3], &limit, 5, 2, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_cell_check(&cells[3], &limit, 1000005, 10, NULL), TATCELL_PASS);
    tatcell_sliding_log_t log;
    EQ(tatcell_sliding_log_init(&log, stamps, 3, 1000, 0), 0);
    for (int i = 0; i < 4; i++) EQ(tatcell_sliding_log_check_ex(&log, 5, &d, NULL), i == 3);
    EQ(d.retry_after, 1000);
    EQ(tatcell_sliding_log_check(&log, 1005, NULL), TATCELL_PASS);
}

TEST(chains_charge_all_or_none_and_ask_overrides_first) {
    static table_of bans;
    tatcell_cell_t cells[2] = {TATCELL_CELL_INIT};
    tatcell_limit_t narrow, wide;
    tatcell_permit_t permits[2];
    tatcell_decision_t each[2], d = TATCELL_DECISION_INIT;
    tatcell_counters_t counters = TATCELL_COUNTERS_INIT;
    memset(permits, 0, sizeof permits);
    memset(each, 0, sizeof each);
    EQ(tatcell_limit_init(&narrow, 5, 1000, 2), 0);
    EQ(tatcell_limit_init(&wide, 100, 60000, 7), 0);
    tatcell_link_t links[2] = {link_to(&cells[0], &narrow), link_to(&cells[1], &wide)};
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    chain.links = links, chain.link_size = sizeof *links, chain.count = 2;
    chain.permits = permits, chain.decisions = each, chain.decision_size = sizeof *each, chain.counters = &counters;
    for (int i = 0; i < 3; i++) EQ(tatcell_chain_check(&chain, 0, &d), i == 2);
    EQ(d.policy, 0);
    EQ(d.retry_after, 200);
    EQ(each[1].remaining, 5);
    EQ(counters.conforming, 2);
    EQ(tatcell_chain_check(&chain, 200, &d), TATCELL_PASS);
    EQ(tatcell_chain_refund(&chain, 200), 0);
    EQ(tatcell_chain_peek(&chain, 200, &d), TATCELL_PASS);

    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    options.overrides = 1000000;
    EQ(make(&bans, options), 0);
    EQ(tatcell_table_ban(&bans.table, 1000, "mallory", 7, 61000), 0);
    EQ(tatcell_table_exempt(&bans.table, 1000, "alice", 5, 5000), 0);
    uint32_t kind = 0;
    uint64_t left = 0;
    EQ(tatcell_table_overridden(&bans.table, 2000, "mallory", 7, &kind, &left), 0);
    EQ(kind, TATCELL_OVERRIDE_BAN);
    EQ(left, 59000);
    tatcell_link_t asked = TATCELL_LINK_INIT;
    asked.flags = TATCELL_LINK_OVERRIDES, asked.table = &bans.table, asked.key = "mallory", asked.key_len = 7;
    links[1] = links[0], links[0] = asked;
    EQ(tatcell_chain_check(&chain, 2000, &d), TATCELL_NON_CONFORMING);
    EXPECT(d.flags & TATCELL_FLAG_BANNED);
    EQ(tatcell_table_lift(&bans.table, 2000, "mallory", 7), 0);
    EQ(tatcell_chain_check(&chain, 2000, &d), TATCELL_PASS);
    links[0].key = "alice", links[0].key_len = 5;
    for (int i = 0; i < 9; i++) EQ(tatcell_chain_check(&chain, 2000, &d), TATCELL_PASS);
    EXPECT(d.flags & TATCELL_FLAG_EXEMPT);
}

TEST(ladders_pairs_and_longest_debts_are_of_one_table) {
    static table_of t;
    tatcell_limit_spec_t one = TATCELL_LIMIT_SPEC_INIT, fastest, slowest;
    one.units = 10, one.period = 1000000000, one.burst = 5;
    fastest = slowest = one;
    EQ(tatcell_ladder_table_specs(&one, NULL, &fastest, &slowest), 0);
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    options.fastest = &fastest, options.slowest = &slowest;
    EQ(make(&t, options), 0);
    tatcell_ladder_t ladder;
    tatcell_permit_t permits[TATCELL_CHAIN_MAX];
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    const uint8_t address[4] = {198, 51, 100, 1};
    EQ(tatcell_ladder_init(&ladder, &t.table, &one, NULL), 0);
    EQ(tatcell_ladder_check(&ladder, &t.table, 0, address, 4, 5, &d, permits, NULL), TATCELL_PASS);
    EQ(tatcell_ladder_check(&ladder, &t.table, 0, address, 4, 1, &d, NULL, NULL), TATCELL_NON_CONFORMING);
    EQ(d.retry_after, 100000000);
    tatcell_rung_t rung;
    EQ(tatcell_ladder_rung(&ladder, address, 4, d.policy, &rung), 0);
    EQ(rung.bits, 32);
    tatcell_slot_t top[2];
    uint32_t found = 0;
    EQ(tatcell_table_top(&t.table, 0, top, 2, &found), 0);
    EQ(found, 2);
    EXPECT(top[0].reset_after >= 499000000 && top[0].reset_after <= 501000000);

    uint32_t keys[2] = {7, 7};
    tatcell_limit_t limit, second;
    EQ(tatcell_limit_init_table(&limit, &t.table, &one), 0);
    EQ(tatcell_limit_init_table(&second, &t.table, &one), 0);
    tatcell_burst_t burst = TATCELL_BURST_INIT;
    burst.limit = &limit, burst.now = 0, burst.count = 2;
    burst.keys = keys, burst.key_len = burst.stride = sizeof keys[0];
    static const uint32_t costs[2] = {3, 3};
    EQ(tatcell_table_check_pairs(&t.table, &burst, &second, costs, NULL), 0);
    EQ(burst.pass, 1);
}

TEST(meters_and_marks_give_their_colours) {
    static table_of t;
    tatcell_meter_t meter = TATCELL_METER_INIT;
    tatcell_meter_spec_t spec = TATCELL_METER_SPEC_INIT;
    tatcell_meter_params_t params;
    tatcell_meter_info_t info = TATCELL_METER_INFO_INIT;
    uint32_t colour = 77;
    spec.kind = TATCELL_METER_RFC2697, spec.cir = 1000, spec.cbs = 2048, spec.burst2 = 4096;
    spec.tick_hz = 1000000000;
    EQ(tatcell_meter_params_init(&params, &spec), 0);
    static const uint32_t want[3] = {TATCELL_GREEN, TATCELL_YELLOW, TATCELL_RED};
    for (int i = 0; i < 3; i++) {
        EQ(tatcell_meter_check(&meter, &params, 1, i == 2 ? 4000 : 2000, TATCELL_GREEN, &colour), i == 2);
        EQ(colour, want[i]);
    }
    EQ(tatcell_meter_params_info(&params, &info), 0);
    EQ(info.cbs, 2048);

    tatcell_limit_spec_t committed = ten_a_second(), peak = ten_a_second();
    peak.units = 20, peak.burst = 4;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    options.fastest = &peak, options.slowest = &committed;
    EQ(make(&t, options), 0);
    tatcell_limit_t first, second;
    EQ(tatcell_limit_init_table(&first, &t.table, &committed), 0);
    EQ(tatcell_limit_init_table(&second, &t.table, &peak), 0);
    tatcell_mark_t mark = TATCELL_MARK_INIT;
    mark.kind = TATCELL_METER_RFC2698, mark.committed = &first, mark.second = &second;
    static const uint32_t wants[5] = {TATCELL_GREEN, TATCELL_GREEN, TATCELL_GREEN, TATCELL_YELLOW, TATCELL_RED};
    for (int i = 0; i < 5; i++) {
        EQ(tatcell_table_mark(&t.table, &mark, 1, "flow", 4, 1, TATCELL_GREEN, &colour), i == 4);
        EQ(colour, wants[i]);
    }
}

TEST(shapers_groups_and_queues_tell_departures) {
    static uint64_t memory[TATCELL_SHAPER_BYTES(64, 16) / 8], room[TATCELL_LEAKY_QUEUE_BYTES(4) / 8];
    static tatcell_shaper_t shaper;
    static tatcell_leaky_queue_t queue;
    tatcell_cell_t cells[2] = {TATCELL_CELL_INIT};
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    tatcell_limit_t limit;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    tatcell_waiting_t due[4];
    uint32_t count = 77;
    spec.units = 1, spec.period = 100, spec.burst = 1, spec.max_delay = 500;
    EQ(tatcell_limit_init_spec(&limit, &spec), 0);
    EQ(tatcell_shaper_init(&shaper, memory, sizeof memory, 64, 16, 0), 0);
    tatcell_link_t link = link_to(&cells[0], &limit);
    for (uint64_t i = 0; i < 7; i++) {
        EQ(tatcell_shaper_submit(&shaper, 0, &link, NULL, i, &d), i == 6);
        if (i < 6) EQ(d.departure, 100 * i);
    }
    EQ(tatcell_shaper_release(&shaper, 200, due, 4, &count), 0);
    EQ(count, 3);
    for (uint64_t i = 0; i < 3; i++) EQ(due[i].handle, i);
    tatcell_shaper_info_t info = TATCELL_SHAPER_INFO_INIT;
    EQ(tatcell_shaper_info(&shaper, &info), 0);
    EQ(info.waiting, 3);

    tatcell_group_t group = TATCELL_GROUP_INIT;
    link.cell = &cells[1];
    EQ(tatcell_group_reserve(&group, 1000, &link, &d), TATCELL_PASS);
    uint64_t departure = 77, handle = 77;
    EQ(tatcell_leaky_queue_init(&queue, room, sizeof room, &limit, 0), 0);
    for (uint64_t i = 0; i < 3; i++) {
        EQ(tatcell_leaky_queue_push(&queue, 0, 1, 10 + i, &departure, NULL), 0);
        EQ(departure, 100 * i);
    }
    EQ(tatcell_leaky_queue_pop(&queue, 100, &handle), 0);
    EQ(handle, 10);
}

TEST(refusals_are_told_logged_and_thinned_out) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    EQ(tatcell_limit_init(&limit, 2, 1000, 10), 0);
    EQ(tatcell_cell_check_ex(&cell, &limit, 0, 7, 0, &d, NULL), TATCELL_PASS);
    tatcell_http_policy_t policy = TATCELL_HTTP_POLICY_INIT;
    policy.name = "p", policy.limit = &limit, policy.decision = &d;
    char text[100];
    EQ(tatcell_http_value(&policy, 1, 1000, TATCELL_HTTP_RATELIMIT, text, sizeof text), 11);
    EXPECT(strcmp(text, "\"p\";r=3;t=4") == 0);
    tatcell_log_t gate = TATCELL_LOG_INIT;
    uint32_t more = 77;
    EQ(tatcell_log_check(&gate, 1000, 5000, &more), TATCELL_PASS);
    EQ(tatcell_log_check(&gate, 1000, 5000, &more), TATCELL_NON_CONFORMING);
    EQ(tatcell_log_take(&gate, &more), 0);
    EQ(more, 1);
    tatcell_slip_t slip = TATCELL_SLIP_INIT;
    for (int i = 0; i < 4; i++) EQ(tatcell_slip_check(&slip, 2), i % 2);
}

static void since_0_3(void) {
    RUN(windows_and_logs_count_as_ever);
    RUN(chains_charge_all_or_none_and_ask_overrides_first);
    RUN(ladders_pairs_and_longest_debts_are_of_one_table);
    RUN(meters_and_marks_give_their_colours);
    RUN(shapers_groups_and_queues_tell_departures);
    RUN(refusals_are_told_logged_and_thinned_out);
}
