/* lease.c - leases of one shared cell: the bound, the batch, what is given back, arguments. */
#include "kit.h"

enum { CORES = 4 };

TEST(zeroed_memory_is_a_lease_that_holds_nothing) {
    tatcell_lease_t lease = TATCELL_LEASE_INIT, zero;
    memset(&zero, 0, sizeof zero);
    EXPECT(memcmp(&lease, &zero, sizeof zero) == 0);
    EQ(tatcell_lease_size(), TATCELL_LEASE_SIZE);
    EQ(sizeof lease, TATCELL_LEASE_SIZE);
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit;
    uint64_t units = 77, given = 77;
    EQ(tatcell_limit_init(&limit, 1, 1000, 100), 0);
    EQ(tatcell_lease_held(&lease, &cell, &limit, 0, &units), 0);
    EQ(units, 0);
    EQ(tatcell_lease_return(&lease, &cell, &limit, 0, &given), 0);
    EQ(given, 0);
    EQ(cell.word, 0);
}

TEST(leases_pass_the_burst_of_the_cell_and_no_unit_more) {
    static const uint32_t batches[] = {0, 1, 8, 100, UINT32_MAX};
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        NOTE("batch %u", batches[b]);
        tatcell_cell_t cell = TATCELL_CELL_INIT;
        tatcell_lease_t leases[CORES] = {TATCELL_LEASE_INIT};
        tatcell_limit_t limit;
        EQ(tatcell_limit_init(&limit, 1, 1000, 100), 0);
        for (int c = 0; c < CORES; c++) leases[c].batch = batches[b];
        for (uint64_t now = 0; now <= 1000000; now += 100000) { /* 100 units later: full again, whatever was held */
            int passed = 0;
            uint64_t retry = 0;
            for (int i = 0; i < 1000; i++)
                passed += tatcell_lease_check(&leases[i % CORES], &cell, &limit, now, 1, &retry) == 0;
            EQ(passed, 100);
            EXPECT(retry > 0 && retry <= 1000);
        }
    }
}

TEST(what_was_taken_last_is_given_back) {
    tatcell_cell_t cell = TATCELL_CELL_INIT, twin = TATCELL_CELL_INIT;
    tatcell_lease_t lease = TATCELL_LEASE_INIT;
    tatcell_limit_t limit;
    uint64_t units = 0, given = 0;
    EQ(tatcell_limit_init(&limit, 1, 1000000, 1000), 0);
    for (int i = 0; i < 20; i++) {
        EQ(tatcell_lease_check(&lease, &cell, &limit, 5, 1, NULL), 0);
        EQ(tatcell_cell_check(&twin, &limit, 5, 1, NULL), 0);
    }
    EQ(tatcell_lease_held(&lease, &cell, &limit, 5, &units), 0);
    EXPECT(units > 0);
    EQ(tatcell_lease_return(&lease, &cell, &limit, 5, &given), 0);
    EQ(given, units * 1000000);
    EQ(cell.word, twin.word);
}

/* A lease knows its cell by address: what is promised of a cell that takes the place of another. */
TEST(a_returned_or_zeroed_lease_admits_no_more_than_the_new_cell_at_its_address) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_lease_t lease = TATCELL_LEASE_INIT;
    tatcell_limit_t limit;
    EQ(tatcell_limit_init(&limit, 1, 1000000, 8), 0);
    lease.batch = 4;
    for (int zeroed = 0; zeroed < 2; zeroed++) {
        int passed = 0;
        uint64_t units = 0;
        EQ(tatcell_lease_check(&lease, &cell, &limit, 0, 1, NULL), 0);
        EQ(tatcell_lease_held(&lease, &cell, &limit, 0, &units), 0);
        EXPECT(units > 0);
        if (zeroed) memset(&lease, 0, sizeof lease);
        else EQ(tatcell_lease_return(&lease, &cell, &limit, 0, NULL), 0);
        cell.word = 0;
        for (int i = 0; i < 20; i++) passed += tatcell_lease_check(&lease, &cell, &limit, 0, 1, NULL) == 0;
        EQ(passed, 8);
        memset(&lease, 0, sizeof lease);
        cell.word = 0;
        lease.batch = 4;
    }
}

TEST(a_lease_takes_no_more_ahead_than_its_batch) {
    static const uint32_t batches[] = {1, 7, 32};
    tatcell_limit_t limit;
    EQ(tatcell_limit_init(&limit, 1, 1000, 1000), 0);
    for (int b = 0; b < 3; b++) {
        tatcell_cell_t cell = TATCELL_CELL_INIT;
        tatcell_lease_t lease = TATCELL_LEASE_INIT;
        uint64_t held = 0, most = 0;
        lease.batch = batches[b];
        while (tatcell_lease_check(&lease, &cell, &limit, 0, 1, NULL) == 0) {
            EQ(tatcell_lease_held(&lease, &cell, &limit, 0, &held), 0);
            if (held > most) most = held;
        }
        EXPECT(most <= batches[b] && most >= batches[b] / 2);
    }
}

TEST(bad_arguments_change_nothing) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_lease_t lease = TATCELL_LEASE_INIT, zero = TATCELL_LEASE_INIT;
    tatcell_lease_t *odd = (tatcell_lease_t *)(void *)((char *)&lease + 4);
    tatcell_limit_t limit, none;
    uint64_t n = 77;
    memset(&none, 0, sizeof none);
    EQ(tatcell_limit_init(&limit, 1, 1000, 100), 0);
    EQ(tatcell_lease_check(NULL, &cell, &limit, 0, 1, &n), TATCELL_ERR_NULL);
    EQ(tatcell_lease_check(&lease, NULL, &limit, 0, 1, &n), TATCELL_ERR_NULL);
    EQ(tatcell_lease_check(&lease, &cell, NULL, 0, 1, &n), TATCELL_ERR_NULL);
    EQ(tatcell_lease_check(&lease, &cell, &none, 0, 1, &n), TATCELL_ERR_LIMIT);
    EQ(tatcell_lease_check(odd, &cell, &limit, 0, 1, &n), TATCELL_ERR_ALIGN);
    EQ(tatcell_lease_return(odd, &cell, &limit, 0, &n), TATCELL_ERR_ALIGN);
    EQ(tatcell_lease_return(&lease, &cell, &none, 0, &n), TATCELL_ERR_LIMIT);
    EQ(tatcell_lease_held(&lease, &cell, &limit, 0, NULL), TATCELL_ERR_NULL);
    /* A cell or limit inside the lease, which the call writes. */
    EQ(tatcell_lease_check(&lease, (tatcell_cell_t *)(void *)&lease.opaque[3], &limit, 0, 1, &n), TATCELL_ERR_OVERLAP);
    EQ(tatcell_lease_held(&lease, &cell, (const tatcell_limit_t *)(void *)&lease, 0, &n), TATCELL_ERR_OVERLAP);
    EQ(tatcell_lease_return((tatcell_lease_t *)(void *)&limit, &cell, &limit, 0, &n), TATCELL_ERR_OVERLAP);
    EQ(tatcell_lease_check((tatcell_lease_t *)(void *)&limit, &cell, &limit, 0, 1, &n), TATCELL_ERR_OVERLAP);
    EQ(n, 77);
    EQ(cell.word, 0);
    EXPECT(memcmp(&lease, &zero, sizeof zero) == 0);
    EQ(tatcell_lease_check(&lease, &cell, &limit, 0, 101, &n), TATCELL_NEVER);
    EQ(n, UINT64_MAX);
    EQ(cell.word, 0);
}

int main(void) {
    RUN(zeroed_memory_is_a_lease_that_holds_nothing);
    RUN(leases_pass_the_burst_of_the_cell_and_no_unit_more);
    RUN(what_was_taken_last_is_given_back);
    RUN(a_returned_or_zeroed_lease_admits_no_more_than_the_new_cell_at_its_address);
    RUN(a_lease_takes_no_more_ahead_than_its_batch);
    RUN(bad_arguments_change_nothing);
    return check_end();
}
