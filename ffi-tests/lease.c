/* lease.c - leases of one shared cell: the bound, several threads, arguments. */
#include <pthread.h>
#include <stdatomic.h>

#include "kit.h"

enum { CORES = 4, REQUESTS = 50000 };

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

/* Spends one by one until the lease holds at least `units` ahead. */
static void fill(tatcell_lease_t *lease, tatcell_cell_t *cell, const tatcell_limit_t *limit, uint64_t units) {
    uint64_t held = 0;
    while (held < units) {
        EQ(tatcell_lease_check(lease, cell, limit, 0, 1, NULL), 0);
        EQ(tatcell_lease_held(lease, cell, limit, 0, &held), 0);
    }
}

/* Units that pass at `now`, one by one. */
static uint64_t spend(tatcell_lease_t *lease, tatcell_cell_t *cell, const tatcell_limit_t *limit, uint64_t now) {
    uint64_t passed = 0;
    while (passed < 1000000 && tatcell_lease_check(lease, cell, limit, now, 1, NULL) == 0) passed++;
    return passed;
}

TEST(units_of_one_cell_are_not_spent_on_another) {
    tatcell_cell_t a = TATCELL_CELL_INIT, b = TATCELL_CELL_INIT;
    tatcell_lease_t lease = TATCELL_LEASE_INIT;
    tatcell_limit_t limit;
    uint64_t held = 77;
    EQ(tatcell_limit_init(&limit, 1, 1000000, 100), 0);
    lease.batch = 32;
    DO(fill(&lease, &a, &limit, 7));
    EQ(tatcell_lease_held(&lease, &b, &limit, 0, &held), 0);
    EQ(held, 0);
    EQ(spend(&lease, &b, &limit, 0), 100);
    EQ(tatcell_cell_check(&b, &limit, 0, 1, NULL), TATCELL_NON_CONFORMING);
}

TEST(a_cell_is_not_lowered_under_the_piece_of_another) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_lease_t one = TATCELL_LEASE_INIT, other = TATCELL_LEASE_INIT;
    tatcell_limit_t limit;
    uint64_t given = 77;
    EQ(tatcell_limit_init(&limit, 1, 1000, 100), 0);
    one.batch = other.batch = 16;
    DO(fill(&one, &cell, &limit, 7));
    DO(fill(&other, &cell, &limit, 7));
    uint64_t word = cell.word;
    EQ(tatcell_lease_return(&one, &cell, &limit, 0, &given), 0);
    EQ(given, 0);
    EQ(cell.word, word);
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

TEST(what_is_held_lapses_as_time_passes) {
    tatcell_limit_t limit;
    EQ(tatcell_limit_init(&limit, 1, 1000, 100), 0);
    for (uint64_t now = 0; now <= 40000; now += 500) {
        tatcell_cell_t cell = TATCELL_CELL_INIT;
        tatcell_lease_t lease = TATCELL_LEASE_INIT;
        lease.batch = 32;
        NOTE("%d ticks later", (int)now);
        DO(fill(&lease, &cell, &limit, 16));
        EXPECT(spend(&lease, &cell, &limit, now) <= 100);
    }
}

/* Threads, each with a lease, on one cell and one clock that only counts. */
static _Atomic uint64_t clock_, admitted_;
static tatcell_cell_t shared_;
static tatcell_limit_t limit_;

static void *core(void *arg) {
    tatcell_lease_t lease = TATCELL_LEASE_INIT;
    lease.batch = *(const uint32_t *)arg;
    uint64_t passed = 0;
    for (int i = 0; i < REQUESTS; i++) {
        uint64_t now = atomic_fetch_add_explicit(&clock_, i & 1, memory_order_relaxed);
        passed += tatcell_lease_check(&lease, &shared_, &limit_, now, 1, NULL) == 0;
    }
    atomic_fetch_add(&admitted_, passed);
    return NULL;
}

TEST(threads_with_leases_stay_within_the_limit) {
    static uint32_t batches[] = {1, 16, 0};
    for (int b = 0; b < 3; b++) {
        NOTE("batch %u", batches[b]);
        tatcell_limit_spec_t spec = kit_spec(1, 4, 500);
        spec.skew = 1 << 20; /* a thread that lost its processor comes back with an old reading */
        EQ(tatcell_limit_init_spec(&limit_, &spec), 0);
        clock_ = admitted_ = 0;
        shared_.word = 0;
        pthread_t threads[CORES];
        for (int c = 0; c < CORES; c++) EQ(pthread_create(&threads[c], NULL, core, &batches[b]), 0);
        for (int c = 0; c < CORES; c++) EQ(pthread_join(threads[c], NULL), 0);
        EXPECT(admitted_ <= 500 + clock_ / 4);
        EXPECT(admitted_ >= 500);
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
    RUN(units_of_one_cell_are_not_spent_on_another);
    RUN(a_cell_is_not_lowered_under_the_piece_of_another);
    RUN(a_lease_takes_no_more_ahead_than_its_batch);
    RUN(what_is_held_lapses_as_time_passes);
    RUN(threads_with_leases_stay_within_the_limit);
    RUN(bad_arguments_change_nothing);
    return check_end();
}
