/* layout.c - sizes, alignments, numbers and initialisers are the ABI that the header promises. The offsets of every
 * field are in abi/layout.h, which compilers check. */
#include "kit.h"
#include "tatcell_host.h"

TEST(sizes_equal_their_run_time_twins) {
    EQ(sizeof(tatcell_cell_t), TATCELL_CELL_SIZE);
    EQ(tatcell_cell_size(), TATCELL_CELL_SIZE);
    EQ(tatcell_log_size(), TATCELL_LOG_SIZE);
    EQ(tatcell_key_log_size(), TATCELL_KEY_LOG_SIZE);
    EQ(tatcell_slip_size(), TATCELL_SLIP_SIZE);
    EQ(sizeof(tatcell_log_t), TATCELL_LOG_SIZE);
    EQ(sizeof(tatcell_key_log_t), TATCELL_KEY_LOG_SIZE);
    EQ(sizeof(tatcell_slip_t), TATCELL_SLIP_SIZE);
    EQ(sizeof(tatcell_cell32_t), TATCELL_CELL32_SIZE);
    EQ(tatcell_cell32_size(), TATCELL_CELL32_SIZE);
    EQ(sizeof(tatcell_limit_t), TATCELL_LIMIT_SIZE);
    EQ(tatcell_limit_size(), TATCELL_LIMIT_SIZE);
    EQ(sizeof(tatcell_lease_t), TATCELL_LEASE_SIZE);
    EQ(tatcell_lease_size(), TATCELL_LEASE_SIZE);
    EQ(sizeof(tatcell_table_t), TATCELL_TABLE_HANDLE_SIZE);
    EQ(tatcell_table_handle_size(), TATCELL_TABLE_HANDLE_SIZE);
    EQ(sizeof(tatcell_permit_t), TATCELL_PERMIT_SIZE);
    EQ(tatcell_permit_size(), TATCELL_PERMIT_SIZE);
    EQ(sizeof(tatcell_counters_t), TATCELL_COUNTERS_SIZE);
    EQ(tatcell_counters_size(), TATCELL_COUNTERS_SIZE);
    EQ(sizeof(tatcell_slot_t), TATCELL_SLOT_SIZE);
    EQ(tatcell_slot_size(), TATCELL_SLOT_SIZE);
    EQ(sizeof(tatcell_sweeper_t), TATCELL_SWEEPER_SIZE);
    EQ(sizeof(tatcell_meter_t), TATCELL_METER_SIZE);
    EQ(tatcell_meter_size(), TATCELL_METER_SIZE);
    EQ(sizeof(tatcell_meter_params_t), TATCELL_METER_PARAMS_SIZE);
    EQ(tatcell_meter_params_size(), TATCELL_METER_PARAMS_SIZE);
    EQ(sizeof(tatcell_shaper_t), TATCELL_SHAPER_SIZE);
    EQ(tatcell_shaper_size(), TATCELL_SHAPER_SIZE);
    EQ(sizeof(tatcell_waiting_t), TATCELL_WAITING_SIZE);
    EQ(sizeof(tatcell_group_t), TATCELL_GROUP_SIZE);
    EQ(tatcell_group_size(), TATCELL_GROUP_SIZE);
    EQ(sizeof(tatcell_leaky_queue_t), TATCELL_LEAKY_QUEUE_SIZE);
    EQ(tatcell_leaky_queue_size(), TATCELL_LEAKY_QUEUE_SIZE);
    EXPECT(tatcell_skew_none() == TATCELL_SKEW_NONE);
}

TEST(versions_equal_their_run_time_twins) {
    EQ(tatcell_version(), TATCELL_VERSION);
    EQ(tatcell_abi_version(), TATCELL_ABI_VERSION);
    EQ(TATCELL_VERSION, 400);
    EQ(TATCELL_ABI_VERSION, 1);
    EQ(TATCELL_LAYOUT_VERSION, 2);
}

/* In the first release of ABI 1 every structure has its least size. */
TEST(the_least_sizes_are_frozen) {
    EQ(TATCELL_LIMIT_SPEC_MIN, 88);
    EQ(TATCELL_DECISION_MIN, 144);
    EQ(TATCELL_STATS_MIN, 104);
    EQ(TATCELL_LIMIT_INFO_MIN, 80);
    EQ(TATCELL_LIMIT_NUMBERS_MIN, 104);
    EQ(TATCELL_TABLE_INFO_MIN, 112);
    EQ(TATCELL_TABLE_FIT_MIN, 32);
    EQ(TATCELL_TABLE_NUMBERS_MIN, 80);
    EQ(TATCELL_MIGRATED_MIN, 48);
    EQ(TATCELL_METER_SPEC_MIN, 72);
    EQ(TATCELL_METER_INFO_MIN, 136);
    EQ(TATCELL_TABLE_OPTIONS_MIN, sizeof(void *) == 8 ? 80 : 64);
    EQ(TATCELL_ATTACH_OPTIONS_MIN, sizeof(void *) == 8 ? 40 : 32);
    EQ(TATCELL_BURST_MIN, sizeof(void *) == 8 ? 640 : 600);
    EQ(TATCELL_HTTP_POLICY_MIN, sizeof(void *) == 8 ? 72 : 48);
    EQ(TATCELL_METRICS_MIN, sizeof(void *) == 8 ? 56 : 32);
    EQ(TATCELL_MARK_MIN, sizeof(void *) == 8 ? 32 : 24);
    EQ(TATCELL_LINK_MIN, sizeof(void *) == 8 ? 80 : 56);
    EQ(TATCELL_CHAIN_MIN, sizeof(void *) == 8 ? 56 : 40);
    EQ(TATCELL_LADDER_SPEC_MIN, sizeof(void *) == 8 ? 32 : 24);
    EQ(TATCELL_LADDER_BURST_MIN, sizeof(void *) == 8 ? 128 : 80);
    EQ(TATCELL_SHAPER_INFO_MIN, 40);
    EQ(TATCELL_HOST_GUARD_MIN, 24);
    EQ(TATCELL_HOST_TABLE_MIN, sizeof(void *) == 8 ? 704 : 696);
    EQ(TATCELL_HOST_MEMORY_MIN, sizeof(void *) == 8 ? 32 : 24);
}

TEST(static_memory_has_the_bytes_of_tatcell_table_bytes) {
    static const uint64_t slots[] = {0, 1, 15, 16, 17, 31, 32, 33, 1000, 4096, 65535, 65536, 1000001};
    static unsigned char memory[TATCELL_TABLE_BYTES(100)];
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        EQ(TATCELL_TABLE_BYTES(slots[i]), tatcell_table_bytes(slots[i]));
    EQ(sizeof memory, tatcell_table_bytes(100));
}

TEST(static_memory_has_the_bytes_of_shapers_and_queues) {
    static const uint32_t handles[] = {0, 1, 15, 1000, 1 << 20};
    static unsigned char memory[TATCELL_SHAPER_BYTES(64, 10) + TATCELL_LEAKY_QUEUE_BYTES(10)];
    for (uint32_t slots = 64; slots <= 4096; slots *= 2)
        for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
            EQ(TATCELL_SHAPER_BYTES(slots, handles[i]), tatcell_shaper_bytes(slots, handles[i]));
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
        EQ(TATCELL_LEAKY_QUEUE_BYTES(handles[i]), tatcell_leaky_queue_bytes(handles[i]));
    EQ(sizeof memory, tatcell_shaper_bytes(64, 10) + tatcell_leaky_queue_bytes(10));
}

TEST(alignments_are_explicit) {
    struct { char c; tatcell_cell_t x; } a;
    struct { char c; tatcell_cell32_t x; } b;
    struct { char c; tatcell_limit_t x; } c;
    struct { char c; tatcell_table_t x; } d;
    EQ((char *)&a.x - (char *)&a, TATCELL_CELL_ALIGN);
    EQ((char *)&b.x - (char *)&b, TATCELL_CELL32_ALIGN);
    EQ((char *)&c.x - (char *)&c, TATCELL_LIMIT_ALIGN);
    EQ((char *)&d.x - (char *)&d, TATCELL_TABLE_HANDLE_ALIGN);
    EQ(TATCELL_CELL_ALIGN, 8);
    EQ(TATCELL_CELL32_ALIGN, 4);
    EQ(TATCELL_LIMIT_ALIGN, 8);
    EQ(TATCELL_TABLE_HANDLE_ALIGN, 8);
    EQ(TATCELL_TABLE_MEMORY_ALIGN, 64);
}

/* Numbers are never reused or changed. */
TEST(numbers_are_those_of_abi_1) {
    static const struct { long long got, want; } n[] = {
        {TATCELL_PASS, 0}, {TATCELL_NON_CONFORMING, 1}, {TATCELL_NEVER, 2}, {TATCELL_CONTENDED, 3},
        {TATCELL_ERR_NULL, -1}, {TATCELL_ERR_ALIGN, -2}, {TATCELL_ERR_SIZE, -3}, {TATCELL_ERR_RATE, -4},
        {TATCELL_ERR_PERIOD, -5}, {TATCELL_ERR_BURST, -6}, {TATCELL_ERR_REPRESENT, -7},
        {TATCELL_ERR_HORIZON, -8}, {TATCELL_ERR_LIMIT, -9}, {TATCELL_ERR_FOREIGN, -10},
        {TATCELL_ERR_OPTION, -11}, {TATCELL_ERR_SEED, -12},
        {TATCELL_ERR_SPAN, -14}, {TATCELL_ERR_HANDLE, -15}, {TATCELL_ERR_NOT_READY, -16},
        {TATCELL_ERR_VERSION, -17}, {TATCELL_ERR_GEOMETRY, -18}, {TATCELL_ERR_WRONG_SEED, -19},
        {TATCELL_ERR_MODE, -20}, {TATCELL_ERR_HASH, -21}, {TATCELL_ERR_COUNT, -22}, {TATCELL_ERR_SOFT, -23},
        {TATCELL_ERR_HASH_UNAVAILABLE, -24}, {TATCELL_ERR_SYSTEM, -25}, {TATCELL_ERR_UNSUPPORTED, -26},
        {TATCELL_ERR_NAME, -27}, {TATCELL_ERR_EXISTS, -28}, {TATCELL_ERR_ABSENT, -29}, {TATCELL_ERR_TOO_SMALL, -30},
        {TATCELL_ERR_TOO_LARGE, -31}, {TATCELL_ERR_OVERLAP, -32}, {TATCELL_ERR_KEY_LENGTH, -33},
        {TATCELL_ERR_BUFFER, -34}, {TATCELL_ERR_TOO_FAST, -35}, {TATCELL_ERR_WRONG_SIZE, -36},
        {TATCELL_ERR_FOLDER, -37},
        {TATCELL_ERR_HTTP_NAME, -55}, {TATCELL_ERR_FREQUENCY, -56}, {TATCELL_ERR_POLICIES, -57},
        {TATCELL_HTTP_RATELIMIT, 1}, {TATCELL_HTTP_RATELIMIT_POLICY, 2}, {TATCELL_HTTP_RETRY_AFTER, 4},
        {TATCELL_HTTP_X_LIMIT, 8}, {TATCELL_HTTP_X_REMAINING, 16}, {TATCELL_HTTP_X_RESET, 32}, {TATCELL_HTTP_ALL, 63},
        {TATCELL_HTTP_POLICIES_MAX, 8}, {TATCELL_LOG_MOST, 1LL << 30},
        {TATCELL_ERR_LINKS, -60}, {TATCELL_ERR_TWO_LIMITS, -61}, {TATCELL_ERR_COST, -62}, {TATCELL_CHAIN_MAX, 8},
            {TATCELL_ERR_NOT_PLAIN, -69},
            {TATCELL_LINK_HASH, 1}, {TATCELL_ERR_LADDER, -63}, {TATCELL_ERR_ADDRESS, -64}, {TATCELL_LADDER_SIZE, 2304},
            {TATCELL_PREPARED_CHAIN_SIZE, 768},
        {TATCELL_CHANGE_KEEP_TIME, 0}, {TATCELL_CHANGE_KEEP_UNITS, 1}, {TATCELL_CHANGE_RESET, 2},
        {TATCELL_LIMIT_HEAL, 1}, {TATCELL_LIMIT_SHADOW, 2}, {TATCELL_LIMIT_RESOLUTION, 4},
            {TATCELL_LIMIT_STRICT_REFUNDS, 8},
        {TATCELL_TABLE_EXCLUSIVE, 1}, {TATCELL_TABLE_RESOLUTION, 2}, {TATCELL_TABLE_POLICY, 4},
            {TATCELL_TABLE_ZEROED, 8}, {TATCELL_BURST_MAX, 64},
        {TATCELL_FULL_ADMIT, 0}, {TATCELL_FULL_INHERIT, 1}, {TATCELL_FULL_DENY, 2}, {TATCELL_FULL_SAMPLED, 3},
        {TATCELL_HASH_SIPHASH13, 0}, {TATCELL_HASH_CALLER, 1}, {TATCELL_HASH_AES, 2}, {TATCELL_TRACKED, 0},
            {TATCELL_UNTRACKED, 1},
        {TATCELL_INHERITED, 2}, {TATCELL_FORGIVEN, 3}, {TATCELL_FLAG_SOFT, 1}, {TATCELL_FLAG_SHADOW, 2},
        {TATCELL_FLAG_ELASTIC, 4}, {TATCELL_FLAG_BANNED, 8}, {TATCELL_FLAG_EXEMPT, 16}, {TATCELL_LINK_OVERRIDES, 2},
        {TATCELL_ERR_UNTIL, -42}, {TATCELL_ERR_FULL_SET, -43}, {TATCELL_ERR_CLASH, -44}, {TATCELL_ERR_PREFIX, -45},
        {TATCELL_ERR_KEEP_WINDOW, -46}, {TATCELL_ERR_KEEP_COUNT, -47}, {TATCELL_ERR_IMAGE, -48},
        {TATCELL_ERR_OTHER_LIMIT, -49}, {TATCELL_OVERRIDE_NONE, 0},
        {TATCELL_OVERRIDE_BAN, 1}, {TATCELL_OVERRIDE_EXEMPT, 2}, {TATCELL_ALGORITHM_OVERRIDES, 5},
    };
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        NOTE("number %d", (int)i);
        EQ(n[i].got, n[i].want);
    }
    EXPECT(TATCELL_SKEW_NONE == UINT64_MAX);
}

/* A zeroed structure with its size set is the same as its initialiser: everything but the size is zero, and the size
   is that of the structure. */
#define SIZE_THEN_ZERO(type, init) \
    do { \
        type is = init; \
        type want; \
        memset(&want, 0, sizeof want); \
        want.size = sizeof want; \
        EQ(memcmp(&is, &want, sizeof is), 0); \
    } while (0)

TEST(initialisers_set_the_size_and_nothing_else) {
    SIZE_THEN_ZERO(tatcell_limit_spec_t, TATCELL_LIMIT_SPEC_INIT);
    SIZE_THEN_ZERO(tatcell_table_options_t, TATCELL_TABLE_OPTIONS_INIT);
    SIZE_THEN_ZERO(tatcell_decision_t, TATCELL_DECISION_INIT);
    SIZE_THEN_ZERO(tatcell_stats_t, TATCELL_STATS_INIT);
    SIZE_THEN_ZERO(tatcell_attach_options_t, TATCELL_ATTACH_OPTIONS_INIT);
    SIZE_THEN_ZERO(tatcell_burst_t, TATCELL_BURST_INIT);
    SIZE_THEN_ZERO(tatcell_mark_t, TATCELL_MARK_INIT);
    SIZE_THEN_ZERO(tatcell_link_t, TATCELL_LINK_INIT);
    SIZE_THEN_ZERO(tatcell_chain_t, TATCELL_CHAIN_INIT);
    SIZE_THEN_ZERO(tatcell_ladder_spec_t, TATCELL_LADDER_SPEC_INIT);
    SIZE_THEN_ZERO(tatcell_ladder_burst_t, TATCELL_LADDER_BURST_INIT);
    SIZE_THEN_ZERO(tatcell_prefix_lengths_t, TATCELL_PREFIX_LENGTHS_INIT);
    SIZE_THEN_ZERO(tatcell_shaper_info_t, TATCELL_SHAPER_INFO_INIT);
    SIZE_THEN_ZERO(tatcell_limit_info_t, TATCELL_LIMIT_INFO_INIT);
    SIZE_THEN_ZERO(tatcell_table_info_t, TATCELL_TABLE_INFO_INIT);
    SIZE_THEN_ZERO(tatcell_table_fit_t, TATCELL_TABLE_FIT_INIT);
    SIZE_THEN_ZERO(tatcell_limit_numbers_t, TATCELL_LIMIT_NUMBERS_INIT);
    SIZE_THEN_ZERO(tatcell_table_numbers_t, TATCELL_TABLE_NUMBERS_INIT);
    SIZE_THEN_ZERO(tatcell_migrated_t, TATCELL_MIGRATED_INIT);
    SIZE_THEN_ZERO(tatcell_host_memory_t, TATCELL_HOST_MEMORY_INIT);
    SIZE_THEN_ZERO(tatcell_host_guard_t, TATCELL_HOST_GUARD_INIT);
    SIZE_THEN_ZERO(tatcell_http_policy_t, TATCELL_HTTP_POLICY_INIT);
    SIZE_THEN_ZERO(tatcell_metrics_t, TATCELL_METRICS_INIT);
    tatcell_log_t log_gate = TATCELL_LOG_INIT;
    tatcell_key_log_t key_log_gate = TATCELL_KEY_LOG_INIT;
    tatcell_slip_t slip = TATCELL_SLIP_INIT;
    tatcell_group_t group = TATCELL_GROUP_INIT;
    EQ(group.word, 0);
    EQ(log_gate.word, 0);
    EQ(key_log_gate.word, 0);
    EQ(slip.word, 0);
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_cell32_t cell32 = TATCELL_CELL32_INIT;
    tatcell_counters_t counters = TATCELL_COUNTERS_INIT;
    static const tatcell_counters_t zero;
    EQ(cell.word, 0);
    EQ(cell32.word, 0);
    EQ(memcmp(&counters, &zero, sizeof zero), 0);
}

TEST(meters_have_the_alignment_and_numbers_of_abi_1) {
    struct { char c; tatcell_meter_t x; } a;
    struct { char c; tatcell_meter_params_t x; } b;
    EQ((char *)&a.x - (char *)&a, TATCELL_METER_ALIGN);
    EQ((char *)&b.x - (char *)&b, TATCELL_METER_PARAMS_ALIGN);
    EQ(TATCELL_METER_ALIGN, 8);
    EQ(TATCELL_METER_PARAMS_ALIGN, 8);
    EQ(TATCELL_METER_PARAMS_SIZE, 192);
    SIZE_THEN_ZERO(tatcell_meter_spec_t, TATCELL_METER_SPEC_INIT);
    SIZE_THEN_ZERO(tatcell_meter_info_t, TATCELL_METER_INFO_INIT);
    tatcell_meter_t fresh = TATCELL_METER_INIT;
    EQ(fresh.word, 0);
    EQ(TATCELL_ERR_PEAK, -50);
    EQ(TATCELL_ERR_SHORT_SPAN, -51);
    EQ(TATCELL_METER_RFC2697, 2697);
    EQ(TATCELL_METER_RFC2698, 2698);
    EQ(TATCELL_METER_RFC4115, 4115);
    EQ(TATCELL_METER_COUPLED, 1);
    EQ(TATCELL_GREEN, 0);
    EQ(TATCELL_YELLOW, 1);
    EQ(TATCELL_RED, 2);
}

static tatcell_cell_t static_cell;
static tatcell_cell32_t static_cell32;
static tatcell_limit_t static_limit;
static tatcell_table_t static_table;

TEST(zeroed_storage_is_a_fresh_cell) {
    tatcell_limit_t limit, limit32;
    tatcell_limit_spec_t spec = kit_spec(1, SECOND, 3);
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    EQ(tatcell_limit_init_spec(&limit, &spec), 0);
    EQ(tatcell_limit32_init(&limit32, 1, 1000, 3), 0);
    EQ(tatcell_cell_peek(&static_cell, &limit, 7, 3, &d), 0);
    EQ(d.remaining, 3);
    EQ(d.reset_after, 0);
    EQ(tatcell_cell32_peek(&static_cell32, &limit32, 7, 3, &d), 0);
    EQ(d.remaining, 3);
    tatcell_cell_t *many = (tatcell_cell_t *)calloc(100, sizeof *many);
    EXPECT(many != NULL);
    for (int i = 0; i < 100; i++) EQ(tatcell_cell_check(&many[i], &limit, 0, 3, NULL), 0);
    free(many);
}

TEST(zeroed_limits_handles_and_images_are_refused) {
    tatcell_table_t table;
    tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
    void *memory = kit_memory(tatcell_table_bytes(16));
    EQ(tatcell_cell_check(&static_cell, &static_limit, 0, 0, NULL), TATCELL_ERR_LIMIT);
    EQ(tatcell_cell32_check(&static_cell32, &static_limit, 0, 0, NULL), TATCELL_ERR_LIMIT);
    EQ(tatcell_table_info(&static_table, &info), TATCELL_ERR_HANDLE);
    EQ(tatcell_table_attach(&table, memory, tatcell_table_bytes(16), kit_attach(kit_seed, 0)), TATCELL_ERR_NOT_READY);
    free(memory);
}

TEST(a_decision_is_written_to_its_last_byte_and_no_further) {
    struct { tatcell_decision_t d; unsigned char guard[64]; } out;
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit;
    EQ(tatcell_limit_init(&limit, 1, SECOND, 3), 0);
    memset(&out, 0xa5, sizeof out);
    out.d.size = sizeof out.d;
    EQ(tatcell_cell_check_ex(&cell, &limit, 5, 2, 0, &out.d, NULL), 0);
    EQ(out.d.size, sizeof out.d);
    EQ(out.d.verdict, 0);
    EQ(out.d.flags, 0);
    EQ(out.d.tracking, TATCELL_TRACKED);
    EQ(out.d.policy, 0);
    EQ(out.d.cost, 2);
    EQ(out.d.burst, 3);
    EQ(out.d.remaining, 1);
    EQ(out.d.retry_after, 0);
    EQ(out.d.next_unit, SECOND);
    EQ(out.d.reset_after, 2 * SECOND);
    EQ(out.d.permit.tat, 5 + 2 * SECOND);
    EQ(out.d.permit.stored, 2 * SECOND);
    EQ(out.d.permit.tick, 5);
    EQ(out.d.permit.generation, 0);
    EQ(out.d.departure, 5);
    EQ(out.d.reserved, 0);
    EQ(out.d.permit.epoch, 0);
    EQ(out.d.permit.slot, 0);
    for (size_t i = 0; i < sizeof out.guard; i++) EQ(out.guard[i], 0xa5);
}

TEST(a_limit_is_never_read_or_written_beyond_its_size) {
    struct { tatcell_limit_t limit; unsigned char guard[64]; } x;
    memset(&x, 0xa5, sizeof x);
    EQ(tatcell_limit_init(&x.limit, 1, SECOND, 3), 0);
    for (size_t i = 0; i < sizeof x.guard; i++) EQ(x.guard[i], 0xa5);
}

int main(void) {
    RUN(sizes_equal_their_run_time_twins);
    RUN(versions_equal_their_run_time_twins);
    RUN(the_least_sizes_are_frozen);
    RUN(static_memory_has_the_bytes_of_tatcell_table_bytes);
    RUN(static_memory_has_the_bytes_of_shapers_and_queues);
    RUN(alignments_are_explicit);
    RUN(numbers_are_those_of_abi_1);
    RUN(initialisers_set_the_size_and_nothing_else);
    RUN(meters_have_the_alignment_and_numbers_of_abi_1);
    RUN(zeroed_storage_is_a_fresh_cell);
    RUN(zeroed_limits_handles_and_images_are_refused);
    RUN(a_decision_is_written_to_its_last_byte_and_no_further);
    RUN(a_limit_is_never_read_or_written_beyond_its_size);
    return check_end();
}
