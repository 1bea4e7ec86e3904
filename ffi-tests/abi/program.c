/* program.c - a program as of each release: built with that release's headers or with today's, it runs with the
 * libraries of that release and of every other one.
 *
 * -I says whose headers. -DRELEASE=n, the older of header and library: 2 uses what 0.2.0 had (limits with options,
 * cells, full answers, permits, leases, tables, bursts, images, what tatcell_host.h has), 3 what 0.3.0 brought, too. */
#include <stdlib.h>
#include <tatcell.h>
#include <tatcell_host.h>

#include "../check.h"

static tatcell_limit_spec_t ten_a_second(void) {
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    spec.units = 10, spec.period = 1000000000, spec.burst = 3;
    return spec;
}

TEST(limits_and_cells_answer_as_ever) {
    static tatcell_cell_t cell;
    tatcell_limit_spec_t spec = ten_a_second();
    spec.soft = 2;
    tatcell_limit_t limit;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    EQ(tatcell_limit_init_spec(&limit, &spec), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        EQ(tatcell_cell_check_ex(&cell, &limit, 5, 1, 0, &d, NULL), TATCELL_PASS);
        EQ(d.remaining, 3 - i);
        EQ(d.flags & TATCELL_FLAG_SOFT, i == 3 ? TATCELL_FLAG_SOFT : 0);
        EQ(d.size, sizeof d);
    }
    EQ(tatcell_cell_check_ex(&cell, &limit, 5, 1, 0, &d, NULL), TATCELL_NON_CONFORMING);
    EQ(d.retry_after, 100000000);
    EQ(d.reset_after, 300000000);
    uint64_t back = 0;
    EQ(tatcell_cell_check_ex(&cell, &limit, 100000005, 1, 0, &d, NULL), TATCELL_PASS);
    EQ(tatcell_cell_refund(&cell, &limit, 100000005, &d.permit, &back), TATCELL_PASS);
    EQ(back, 100000000);
    EQ(tatcell_cell_check(&cell, &limit, 100000005, 4, NULL), TATCELL_NEVER);
}

TEST(tables_bursts_and_images_work_as_ever) {
    static TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES(256)], copy[sizeof memory];
    tatcell_limit_spec_t spec = ten_a_second();
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    const uint8_t seed[16] = "sixteen secret b";
    options.fastest = &spec, options.seed = seed;
    tatcell_table_t table, other;
    tatcell_limit_t limit;
    EQ(tatcell_table_init(&table, memory, sizeof memory, &options), 0);
    EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);
    uint32_t keys[4] = {7, 8, 7, 7};
    for (int round = 0; round < 2; round++) {
        tatcell_burst_t burst = TATCELL_BURST_INIT;
        burst.limit = &limit, burst.now = 1000, burst.count = 4;
        burst.keys = keys, burst.key_len = burst.stride = sizeof keys[0];
        EQ(tatcell_table_check_burst(&table, &burst, NULL), 0);
        EQ(burst.pass, round == 0 ? 0xf : 0x2);
    }
    uint64_t retry = 0;
    EQ(tatcell_table_check(&table, &limit, 1000, &keys[0], sizeof keys[0], 1, &retry), TATCELL_NON_CONFORMING);
    EXPECT(retry > 99000000 && retry <= 100000000);
    tatcell_attach_options_t attach = TATCELL_ATTACH_OPTIONS_INIT;
    attach.seed = seed;
    EQ(tatcell_table_attach(&other, memory, sizeof memory, &attach), 0);
    EQ(tatcell_table_check(&other, &limit, 1000, &keys[1], sizeof keys[0], 1, NULL), TATCELL_PASS);
    memcpy(copy, memory, sizeof memory);
    EQ(tatcell_table_attach(&other, copy, sizeof copy, &attach), 0);
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    EQ(tatcell_table_stats(&other, 1000, &stats), 0);
    EQ(stats.live, 2);
    tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
    EQ(tatcell_table_info(&other, &info), 0);
    EQ(info.size, sizeof info);
}

TEST(what_is_wrong_has_the_number_it_had) {
    tatcell_limit_spec_t spec = ten_a_second();
    tatcell_limit_t limit;
    spec.burst = 0;
    EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_BURST);
    EQ(TATCELL_ERR_BURST, -6);
    spec.burst = 1, spec.size = 1;
    EQ(tatcell_limit_init_spec(&limit, &spec), TATCELL_ERR_SIZE);
    EQ(tatcell_abi_version(), 1);
}

TEST(leases_spend_what_they_took) {
    static tatcell_cell_t cell;
    tatcell_lease_t lease = TATCELL_LEASE_INIT;
    tatcell_limit_t limit;
    EQ(tatcell_limit_init(&limit, 10, 1000, 6), 0);
    lease.batch = 4;
    for (int i = 0; i < 5; i++) EQ(tatcell_lease_check(&lease, &cell, &limit, 7, 1, NULL), TATCELL_PASS);
    EQ(tatcell_lease_return(&lease, &cell, &limit, 7, NULL), 0);
    EQ(tatcell_cell_check(&cell, &limit, 7, 1, NULL), TATCELL_PASS);
    EQ(tatcell_cell_check(&cell, &limit, 7, 1, NULL), TATCELL_NON_CONFORMING);
}

TEST(the_host_gives_time_secrets_and_memory) {
    uint64_t now = 0, later = 0;
    uint8_t seed[16] = {0};
    tatcell_host_memory_t memory = TATCELL_HOST_MEMORY_INIT;
    EQ(tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &now, NULL), 0);
    EQ(tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &later, NULL), 0);
    EXPECT(now > 0 && later >= now);
    EQ(tatcell_host_ticks_to_ns(3, 2), 1500000000);
    EQ(tatcell_host_random(seed, sizeof seed, NULL), 0);
    EQ(tatcell_host_memory_map(TATCELL_TABLE_BYTES(256), 0, &memory), 0);
    EXPECT(memory.memory != NULL && memory.bytes >= TATCELL_TABLE_BYTES(256));
    EQ(memory.size, sizeof memory);
    tatcell_limit_spec_t spec = ten_a_second();
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    options.fastest = &spec, options.seed = seed;
    tatcell_table_t table;
    EQ(tatcell_table_init(&table, memory.memory, memory.bytes, &options), 0);
    EQ(tatcell_host_memory_unmap(&memory), 0);
    EXPECT(memory.memory == NULL);
}

#if RELEASE >= 3
#include "program_0_3.h"
#endif

int main(void) {
    RUN(limits_and_cells_answer_as_ever);
    RUN(tables_bursts_and_images_work_as_ever);
    RUN(what_is_wrong_has_the_number_it_had);
    RUN(leases_spend_what_they_took);
    RUN(the_host_gives_time_secrets_and_memory);
#if RELEASE >= 3
    since_0_3();
#endif
    return check_end();
}
