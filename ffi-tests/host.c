/* host.c - clocks, ticks, memory and names of feature host. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "tatcell_host.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

static char name_[64], path_[64];

/* A name and a path that no other run uses. */
static void fresh_names(void) {
    static int n;
    snprintf(name_, sizeof name_, "/tatcell-ffi-%ld-%d", (long)getpid(), ++n);
    snprintf(path_, sizeof path_, "/tmp/tatcell-ffi-%ld-%d", (long)getpid(), n);
}

/* Units that pass at one instant for one key. */
static int spend(const tatcell_table_t *table, const tatcell_limit_t *limit, const char *key) {
    int passed = 0;
    for (int i = 0; i < 100; i++) passed += tatcell_table_check(table, limit, SECOND, key, strlen(key), 1, NULL) == 0;
    return passed;
}

TEST(clocks_go_forward) {
    for (uint32_t clock = TATCELL_HOST_CLOCK_MONOTONIC; clock <= TATCELL_HOST_CLOCK_BOOTTIME; clock++) {
        NOTE("clock %u", clock);
        uint64_t last = 0, now = 0, resolution = 0;
        int32_t error = -1;
        int32_t rc = tatcell_host_clock(clock, &last, &error);
        if (rc == TATCELL_ERR_UNSUPPORTED && clock != TATCELL_HOST_CLOCK_MONOTONIC) continue;
        EQ(rc, 0);
        EQ(error, 0);
        EXPECT(last > 0);
        for (int i = 0; i < 1000; i++) {
            EQ(tatcell_host_clock(clock, &now, NULL), 0);
            EXPECT(now >= last);
            last = now;
        }
        EQ(tatcell_host_clock_resolution(clock, &resolution, &error), 0);
        EXPECT(resolution >= 1 && resolution <= SECOND / 10);
    }
}

TEST(ticks_make_a_limit) {
    uint64_t rate = 0, uncertainty = 0, before, after;
    int32_t error = -1;
    EQ(tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &before, NULL), 0);
    int32_t rc = tatcell_host_ticks_calibrate(5000000, &rate, &uncertainty, &error);
    EQ(tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &after, NULL), 0);
    EQ(error, 0);
    if (rc == TATCELL_ERR_UNSUPPORTED) SKIP("this processor has no counter of constant rate");
    EQ(rc, 0);
    EXPECT(rate >= 1000 && uncertainty < SECOND);
    EXPECT(uncertainty == 0 || after - before >= 4900000); /* the two clocks may run 2 % apart, and do not */
    uint64_t start = tatcell_host_ticks();
    EXPECT(start != 0);
    EQ(tatcell_host_ticks_to_ns(rate, rate), SECOND);
    EQ(tatcell_host_ticks_from_ns(SECOND, rate), rate);
    EQ(tatcell_host_ticks_to_ns(1, 0), UINT64_MAX);

    tatcell_limit_t limit;
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    EQ(tatcell_limit_init_rate(&limit, 1, rate, 2), 0); /* 1 a second */
    uint64_t retry = 0;
    EQ(tatcell_cell_check(&cell, &limit, start, 2, NULL), 0);
    EQ(tatcell_cell_check(&cell, &limit, start, 1, &retry), TATCELL_NON_CONFORMING);
    EXPECT(tatcell_host_ticks_to_ns(retry, rate) <= SECOND + 20000 && tatcell_host_ticks_to_ns(retry, rate) >= SECOND);
}

/* A stamp that is days off neither moves the time by more than the step nor stops it. */
TEST(a_guard_holds_stamps_to_a_clock_that_nobody_can_set) {
    const uint64_t first = 1793491200 * SECOND, days = 7 * 86400 * SECOND, steps[] = {0, 5 * SECOND};
    const uint64_t stamps[] = {0, first - days, first, first + days, UINT64_MAX};
    tatcell_host_guard_t guard = TATCELL_HOST_GUARD_INIT;
    uint64_t now = 77, before, after;
    int32_t error = 1;
    EQ(tatcell_host_guard_now(&guard, first, &now, NULL), TATCELL_ERR_OPTION);
    EQ(now, 77);
    for (int i = 0; i < 2; i++) {
        EQ(tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &before, NULL), 0);
        EQ(tatcell_host_guard_start(&guard, first, steps[i], &error), 0);
        EQ(error, 0);
        for (int k = 0; k < 5; k++) {
            EQ(tatcell_host_guard_now(&guard, stamps[k], &now, &error), 0);
            EQ(tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &after, NULL), 0);
            if (stamps[k] == first) EXPECT(now >= first && now <= first + (after - before));
            else if (stamps[k] < first) EXPECT(now >= first - steps[i] && now <= first - steps[i] + (after - before));
            else EXPECT(now >= first + steps[i] && now <= first + steps[i] + (after - before));
        }
    }
    guard.size = 8;
    EQ(tatcell_host_guard_now(&guard, first, &now, NULL), TATCELL_ERR_SIZE);
    EQ(tatcell_host_guard_start(NULL, first, 0, NULL), TATCELL_ERR_NULL);
    EQ(tatcell_host_guard_now(NULL, first, &now, NULL), TATCELL_ERR_NULL);
}

/* 5 ms apart; a counter has 1000 ticks a second at least. */
TEST(ticks_go_forward_where_the_processor_counts_them) {
    uint64_t first = tatcell_host_ticks(), start, now;
    EQ(tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &start, NULL), 0);
    for (now = start; now - start < 5000000;) EQ(tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &now, NULL), 0);
    uint64_t last = tatcell_host_ticks();
    if (first == 0) EQ(last, 0);
    else EXPECT(last > first);
}

TEST(memory_holds_a_table_and_goes_away) {
    static const uint32_t flags[] = {0, TATCELL_HOST_HUGE, TATCELL_HOST_FORK_SHARED,
        TATCELL_HOST_HUGE | TATCELL_HOST_FORK_SHARED};
    for (int i = 0; i < 4; i++) {
        NOTE("flags %u", flags[i]);
        tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT;
        EQ(tatcell_host_memory_map(100 * KIB, flags[i], &m), 0);
        EXPECT(m.memory && (uintptr_t)m.memory % 4096 == 0 && m.bytes >= 100 * KIB);
        EXPECT(m.pages <= TATCELL_HOST_PAGES_HUGE);
        if (flags[i] & TATCELL_HOST_HUGE) EXPECT((uintptr_t)m.memory % (2 * MIB) == 0 && m.bytes == 2 * MIB);
        else EQ(m.pages, TATCELL_HOST_PAGES_NORMAL);
        for (size_t b = 0; b < m.bytes; b++) EXPECT(((unsigned char *)m.memory)[b] == 0);

        tatcell_limit_spec_t spec = kit_spec(1, SECOND, 5);
        tatcell_table_options_t o = kit_options(&spec);
        tatcell_table_t table;
        tatcell_limit_t limit;
        EQ(tatcell_table_init(&table, m.memory, m.bytes, &o), 0);
        EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);
        EQ(spend(&table, &limit, "key"), 5);

        uint64_t huge = 0;
        int32_t error = 0, rc = tatcell_host_memory_huge_bytes(&m, &huge, &error);
        EXPECT(rc == 0 || rc == TATCELL_ERR_UNSUPPORTED);
        EXPECT(huge <= m.bytes);
        if (m.pages == TATCELL_HOST_PAGES_HUGE) EQ(huge, m.bytes);

        EQ(tatcell_host_memory_unmap(&m), 0);
        EXPECT(m.memory == NULL && m.bytes == 0);
        EQ(tatcell_host_memory_unmap(&m), 0);
    }
}

TEST(a_name_joins_two_processes) {
    for (int named = 0; named < 2; named++) {
        fresh_names();
        const char *name = named ? name_ : path_;
        NOTE("%s", name);
        tatcell_limit_spec_t spec = kit_spec(1, SECOND, 5);
        tatcell_table_options_t o = kit_options(&spec);
        tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT, other = TATCELL_HOST_MEMORY_INIT;
        tatcell_table_t table, seen;
        tatcell_limit_t limit;

        EQ(tatcell_host_memory_attach(name, 0, &other), TATCELL_ERR_ABSENT);
        EQ(tatcell_host_memory_create(name, 64 * KIB, 0, &m), 0);
        EQ(m.bytes, 64 * KIB);
        EQ(tatcell_host_memory_create(name, 64 * KIB, 0, &other), TATCELL_ERR_EXISTS);
        EQ(tatcell_host_memory_attach(name, 64 * KIB, &other), 0);
        EQ(tatcell_table_attach(&seen, other.memory, other.bytes, kit_attach(kit_seed, 0)), TATCELL_ERR_NOT_READY);
        EQ(tatcell_table_init(&table, m.memory, m.bytes, &o), 0);
        EQ(tatcell_table_attach(&seen, other.memory, other.bytes, kit_attach(kit_seed, 0)), 0);
        EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);

        pid_t pid = fork();
        EXPECT(pid >= 0);
        if (pid == 0) {
            tatcell_host_memory_t mine = TATCELL_HOST_MEMORY_INIT;
            tatcell_table_t t;
            if (tatcell_host_memory_attach(name, 0, &mine) != 0) _exit(100);
            if (tatcell_table_attach(&t, mine.memory, mine.bytes, kit_attach(kit_seed, 0)) != 0) _exit(101);
            int passed = 0;
            for (int i = 0; i < 2; i++) passed += tatcell_table_check(&t, &limit, SECOND, "key", 3, 1, NULL) == 0;
            _exit(passed);
        }
        int status = 0;
        EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        EQ(WEXITSTATUS(status), 2);
        EQ(spend(&seen, &limit, "key"), 3);
        EQ(spend(&table, &limit, "key"), 0);

        EQ(tatcell_host_memory_attach(name, 128 * KIB, &other), TATCELL_ERR_WRONG_SIZE);
        EQ(tatcell_host_memory_unlink(name, NULL), 0);
        EQ(tatcell_host_memory_unlink(name, NULL), TATCELL_ERR_ABSENT);
        EQ(spend(&seen, &limit, "another"), 5); /* the memory outlives its name */
        EQ(tatcell_host_memory_unmap(&m), 0);
        EQ(tatcell_host_memory_unmap(&other), 0);
    }
}

/* A structure that is used again tells its new mapping, and nothing of what it told before. */
TEST(a_reader_looks_without_seed_and_without_writing) {
    fresh_names();
    tatcell_limit_spec_t spec = kit_spec(1, SECOND, 5);
    tatcell_table_options_t o = kit_options(&spec);
    o.clock = TATCELL_CLOCK_COUNTER + 1;
    tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT, mapped = TATCELL_HOST_MEMORY_INIT;
    tatcell_table_t table, bare, keyed;
    tatcell_limit_t limit;
    EQ(tatcell_host_memory_attach_read_only(name_, 0, &mapped), TATCELL_ERR_ABSENT);
    EQ(tatcell_host_memory_create(name_, 64 * KIB, 0, &m), 0);
    EQ(tatcell_table_init(&table, m.memory, m.bytes, &o), TATCELL_ERR_OPTION);
    o.clock = TATCELL_CLOCK_BOOTTIME, o.reserved_number = 1;
    EQ(tatcell_table_init(&table, m.memory, m.bytes, &o), TATCELL_ERR_OPTION);
    o.reserved_number = 0;
    EQ(tatcell_table_init(&table, m.memory, m.bytes, &o), 0);
    EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);
    EQ(tatcell_table_check(&table, &limit, SECOND, "much", 4, 5, NULL), 0);
    EQ(tatcell_table_check(&table, &limit, SECOND, "little", 6, 1, NULL), 0);

    EQ(tatcell_host_memory_attach_read_only(name_, 128 * KIB, &mapped), TATCELL_ERR_WRONG_SIZE);
    EQ(tatcell_host_memory_attach_read_only(name_, 64 * KIB, &mapped), 0);
    EQ(tatcell_table_attach(&bare, mapped.memory, mapped.bytes, kit_attach(NULL, TATCELL_TABLE_READ_ONLY)), 0);
    EQ(tatcell_table_attach(&keyed, mapped.memory, mapped.bytes, kit_attach(kit_seed, TATCELL_TABLE_READ_ONLY)), 0);
    unsigned char other[16] = {1};
    EQ(tatcell_table_attach(&keyed, mapped.memory, mapped.bytes, kit_attach(other, TATCELL_TABLE_READ_ONLY)),
        TATCELL_ERR_WRONG_SEED);
    EQ(tatcell_table_attach(&keyed, mapped.memory, mapped.bytes,
           kit_attach(kit_seed, TATCELL_TABLE_READ_ONLY | TATCELL_TABLE_EXCLUSIVE)), TATCELL_ERR_OPTION);

    /* Every call that looks, on pages that cannot be written. */
    tatcell_table_info_t info = TATCELL_TABLE_INFO_INIT;
    EQ(tatcell_table_info(&bare, &info), 0);
    EQ(info.clock, TATCELL_CLOCK_BOOTTIME);
    tatcell_table_numbers_t numbers = TATCELL_TABLE_NUMBERS_INIT;
    EQ(tatcell_table_export(&bare, &numbers), 0);
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    EQ(tatcell_table_stats(&bare, SECOND, &stats), 0);
    EXPECT(stats.live == 2 && stats.full_sets == 0 && stats.longest == 5 * SECOND);
    tatcell_slot_t slot, top[4];
    EQ(tatcell_table_next(&bare, SECOND, 0, &slot), 0);
    uint32_t found = 0;
    EQ(tatcell_table_top(&bare, SECOND, top, 4, &found), 0);
    EXPECT(found == 2 && top[0].reset_after == 5 * SECOND && top[1].reset_after == SECOND);
    static uint64_t image[8 * 1024];
    size_t used = 0;
    EQ(tatcell_table_save(&bare, SECOND, image, sizeof image, &used), 0);
    EQ(used, info.image_bytes);

    /* A key needs the seed. */
    uint64_t hash = 0, same = 1;
    unsigned char address[4] = {192, 0, 2, 1};
    EQ(tatcell_table_hash(&bare, "much", 4, &hash), TATCELL_ERR_SEED);
    EQ(tatcell_address_prefix_hash(&bare, address, 4, 24, 56, &hash), TATCELL_ERR_SEED);
    EQ(tatcell_table_hash(&keyed, "much", 4, &hash), 0);
    EQ(tatcell_table_hash(&table, "much", 4, &same), 0);
    EQ(hash, same);
    EQ(tatcell_table_may_be(&bare, &top[0], hash), 0);
    EQ(tatcell_table_may_be(&bare, &top[1], hash), TATCELL_END);
    EQ(tatcell_address_prefix_hash(&keyed, address, 4, 24, 56, &hash), 0);

    /* No other call takes the handle. */
    EQ(tatcell_table_check(&keyed, &limit, SECOND, "much", 4, 1, NULL), TATCELL_ERR_HANDLE);
    EQ(tatcell_table_check_hash(&keyed, &limit, SECOND, hash, 1, NULL), TATCELL_ERR_HANDLE);
    EQ(tatcell_table_reset(&keyed, SECOND, "much", 4), TATCELL_ERR_HANDLE);
    EQ(tatcell_table_ban(&keyed, SECOND, "much", 4, 2 * SECOND), TATCELL_ERR_HANDLE);
    EQ(tatcell_table_sweep(&keyed, SECOND, 0, 16, NULL), TATCELL_ERR_HANDLE);
    EQ(tatcell_limit_init_table(&limit, &keyed, &spec), TATCELL_ERR_HANDLE);
    EQ(tatcell_table_restore(&table, m.memory, m.bytes, image, used,
           kit_attach(kit_seed, TATCELL_TABLE_READ_ONLY), 0), TATCELL_ERR_OPTION);
    EQ(tatcell_host_memory_unmap(&mapped), 0);
    EQ(tatcell_host_memory_unmap(&m), 0);
    EQ(tatcell_host_memory_unlink(name_, NULL), 0);
}

TEST(counters_in_a_name_are_read_by_others) {
    fresh_names();
    tatcell_limit_spec_t spec = kit_spec(1, SECOND, 5);
    tatcell_table_options_t o = kit_options(&spec);
    static _Alignas(64) unsigned char memory[4 * 1024];
    tatcell_table_t table;
    tatcell_limit_t limit;
    EQ(tatcell_table_init(&table, memory, sizeof memory, &o), 0);
    EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);

    tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT, seen = TATCELL_HOST_MEMORY_INIT;
    tatcell_counters_t *first = NULL, *second = NULL, total = TATCELL_COUNTERS_INIT;
    EQ(tatcell_host_counters_attach(name_, &seen), TATCELL_ERR_ABSENT);
    EQ(tatcell_host_counters_open(name_, 0, 0, &m), TATCELL_ERR_TOO_SMALL);
    EQ(tatcell_host_counters_open(name_, 2, 010000, &m), TATCELL_ERR_OPTION);
    /* A creator that died before it was done. */
    EQ(tatcell_host_memory_create(name_, (2 + 2 * 2) * 64, 0, &m), 0);
    EQ(tatcell_host_memory_unmap(&m), 0);
    EQ(tatcell_host_counters_attach(name_, &seen), TATCELL_ERR_NOT_READY);
    EQ(tatcell_host_counters_open(name_, 2, 0, &m), 0);
    EQ(tatcell_host_counters_attach(name_, &seen), 0);
    EQ(tatcell_host_counters_block(m.memory, m.bytes, 0, &first), 0);
    EQ(tatcell_host_counters_block(m.memory, m.bytes, 1, &second), 0);
    EXPECT(second == first + 1);
    EQ(tatcell_host_counters_block(m.memory, m.bytes, 2, &second), TATCELL_ERR_COUNT);
    EQ(tatcell_host_counters_block(memory, sizeof memory, 0, &second), TATCELL_ERR_VERSION);
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    for (int i = 0; i < 7; i++)
        EXPECT(tatcell_table_check_ex(&table, &limit, SECOND, "key", 3, 1, 0, &d, first) >= 0);
    second->never = 4;
    EQ(tatcell_host_counters_sum(seen.memory, seen.bytes, &total), 0);
    EXPECT(total.conforming == 5 && total.non_conforming == 2 && total.never == 4 && total.inserted == 1);
    EQ(tatcell_host_counters_sum(memory, sizeof memory, &total), TATCELL_ERR_VERSION);

    tatcell_host_memory_t again = TATCELL_HOST_MEMORY_INIT;
    EQ(tatcell_host_counters_open(name_, 3, 0, &again), TATCELL_ERR_WRONG_SIZE);
    EQ(tatcell_host_memory_unmap(&seen), 0);
    EQ(tatcell_host_memory_unmap(&m), 0);
    EQ(tatcell_host_counters_open(name_, 2, 0, &again), 0);
    EQ(tatcell_host_memory_unmap(&again), 0);
    EQ(tatcell_host_memory_unlink(name_, NULL), 0);
}

TEST(each_block_of_counters_has_one_opener) {
    fresh_names();
    tatcell_host_memory_t m[3] = {TATCELL_HOST_MEMORY_INIT, TATCELL_HOST_MEMORY_INIT, TATCELL_HOST_MEMORY_INIT};
    uint32_t first = 9;
    EQ(tatcell_host_counters_open_some(name_, 4, 0, 0, &m[0], &first), TATCELL_ERR_TOO_SMALL);
    EQ(tatcell_host_counters_open_some(name_, 4, 5, 0, &m[0], &first), TATCELL_ERR_TOO_LARGE);
    EQ(tatcell_host_counters_open_some(name_, 4, 2, 010000, &m[0], &first), TATCELL_ERR_OPTION);
    EQ(tatcell_host_counters_open_some(name_, 4, 2, 0, &m[0], NULL), TATCELL_ERR_NULL);
    EQ(first, 9);
    for (uint32_t i = 0; i < 2; i++) {
        tatcell_counters_t *block = NULL;
        EQ(tatcell_host_counters_open_some(name_, 4, 2, 0, &m[i], &first), 0);
        EQ(first, 2 * i);
        EQ(tatcell_host_counters_block(m[i].memory, m[i].bytes, first, &block), 0);
        block->never += 3;
    }
    EQ(tatcell_host_counters_open_some(name_, 4, 2, 0, &m[2], &first), TATCELL_ERR_SYSTEM);
    EQ(m[2].system_error, EBUSY);
    EQ(tatcell_host_memory_unmap(&m[0]), 0);
    EQ(tatcell_host_counters_open(name_, 4, 0, &m[2]), TATCELL_ERR_SYSTEM);
    EQ(m[2].system_error, EBUSY);
    EQ(tatcell_host_counters_open_some(name_, 4, 2, 0, &m[0], &first), 0);
    EQ(first, 0);
    EQ(tatcell_host_memory_unmap(&m[0]), 0);
    EQ(tatcell_host_memory_unmap(&m[1]), 0);
    tatcell_counters_t total = TATCELL_COUNTERS_INIT;
    EQ(tatcell_host_counters_open(name_, 4, 0, &m[2]), 0);
    EQ(tatcell_host_counters_sum(m[2].memory, m[2].bytes, &total), 0);
    EQ(total.never, 6);
    EQ(tatcell_host_memory_unmap(&m[2]), 0);
    EQ(tatcell_host_memory_unlink(name_, NULL), 0);
}

TEST(a_structure_tells_the_mapping_that_it_has_now) {
    fresh_names();
    for (int call = 0; call < 3; call++) {
        NOTE("call %d", call);
        tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT;
        EQ(tatcell_host_memory_map(SIZE_MAX / 2 - 63, 0, &m), TATCELL_ERR_SYSTEM);
        EXPECT(m.system_error != 0);
        m.pages = TATCELL_HOST_PAGES_HUGE; /* the caller may have copied it, and kept the copy */
        if (call == 0) EQ(tatcell_host_memory_map(4 * KIB, 0, &m), 0);
        if (call == 1) EQ(tatcell_host_memory_create(path_, 4 * KIB, 0, &m), 0);
        if (call == 2) EQ(tatcell_host_memory_attach(path_, 0, &m), 0);
        EQ(m.size, sizeof m);
        EQ(m.pages, TATCELL_HOST_PAGES_NORMAL);
        EXPECT(m.memory && m.bytes >= 4 * KIB);
        EQ(m.system_error, 0);
        EQ(tatcell_host_memory_unmap(&m), 0);
    }
    EQ(tatcell_host_memory_unlink(path_, NULL), 0);
}

TEST(an_empty_file_is_not_ready) {
    fresh_names();
    FILE *f = fopen(path_, "w");
    EXPECT(f != NULL);
    fclose(f);
    tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT;
    EQ(tatcell_host_memory_attach(path_, 64 * KIB, &m), TATCELL_ERR_NOT_READY);
    EXPECT(m.memory == NULL);
    EQ(tatcell_host_memory_unlink(path_, NULL), 0);
}

TEST(system_errors_carry_errno) {
    tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT;
    EQ(tatcell_host_memory_map(SIZE_MAX / 2 - 63, 0, &m), TATCELL_ERR_SYSTEM);
    EQ(m.system_error, ENOMEM);
    fresh_names();
    EXPECT(mkdir(path_, 0700) == 0);
    EQ(tatcell_host_memory_attach(path_, 0, &m), TATCELL_ERR_SYSTEM);
    EQ(m.system_error, EISDIR);
    EQ(tatcell_host_memory_attach("/tmp/no such file", 0, &m), TATCELL_ERR_ABSENT);
    EQ(m.system_error, 0);
    int32_t error = 0;
    EQ(tatcell_host_memory_unlink(path_, &error), TATCELL_ERR_SYSTEM);
    EXPECT(error != 0);
    EXPECT(rmdir(path_) == 0);
    char here;
    tatcell_host_memory_t none = {sizeof none, 0, &here, 64, 0, 0};
    if ((uintptr_t)&here % 4096 != 0) {
        EQ(tatcell_host_memory_unmap(&none), TATCELL_ERR_SYSTEM);
        EQ(none.system_error, EINVAL);
    }
}

/* The rule of names: one slash is shared memory, more are a path; no folder, nothing that is a folder. */
TEST(names_and_paths_have_a_rule) {
    static const char *const bad[] = {"", "/", "relative", "/.", "/..", "//name", "/folder/", "/folder/.",
        "/folder/.."};
    tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        NOTE("name %s", bad[i]);
        EQ(tatcell_host_memory_create(bad[i], 4096, 0, &m), TATCELL_ERR_NAME);
        EQ(tatcell_host_memory_attach(bad[i], 0, &m), TATCELL_ERR_NAME);
        EQ(tatcell_host_memory_unlink(bad[i], NULL), TATCELL_ERR_NAME);
    }
    EQ(tatcell_host_memory_create("/no such folder/file", 4096, 0, &m), TATCELL_ERR_FOLDER);
    EQ(tatcell_host_memory_attach("/no such folder/file", 0, &m), TATCELL_ERR_ABSENT);
    EQ(m.system_error, 0);
}

TEST(random_bytes_are_of_the_system) {
    uint8_t a[256], b[256];
    int32_t error = 7;
    memset(a, 0, sizeof a);
    EQ(tatcell_host_random(a, 16, &error), 0);
    EQ(error, 0);
    for (int i = 16; i < 256; i++) EQ(a[i], 0); /* no byte more */
    EQ(tatcell_host_random(a, sizeof a, NULL), 0);
    EQ(tatcell_host_random(b, sizeof b, NULL), 0);
    EXPECT(memcmp(a, b, sizeof a) != 0);
    error = 7;
    EQ(tatcell_host_random(NULL, 16, &error), TATCELL_ERR_NULL);
    EQ(tatcell_host_random(a, 0, &error), TATCELL_ERR_TOO_SMALL);
    EQ(tatcell_host_random(a, 257, &error), TATCELL_ERR_TOO_LARGE);
    EQ(tatcell_host_random(a, SIZE_MAX, &error), TATCELL_ERR_TOO_LARGE);
    EQ(error, 7);
}

TEST(bad_arguments_change_nothing) {
    uint64_t n = 77;
    int32_t error = 77;
    EQ(tatcell_host_clock(4, &n, &error), TATCELL_ERR_OPTION);
    EQ(tatcell_host_clock(UINT32_MAX, &n, &error), TATCELL_ERR_OPTION);
    EQ(tatcell_host_clock(0, NULL, &error), TATCELL_ERR_NULL);
    EQ(tatcell_host_clock(0, (uint64_t *)(void *)((char *)&n + 1), &error), TATCELL_ERR_ALIGN);
    EQ(tatcell_host_clock_resolution(9, &n, NULL), TATCELL_ERR_OPTION);
    EQ(tatcell_host_ticks_calibrate(1, &n, NULL, NULL), TATCELL_ERR_OPTION);
    EQ(tatcell_host_ticks_calibrate(UINT64_MAX, &n, NULL, NULL), TATCELL_ERR_OPTION);
    EQ(tatcell_host_ticks_calibrate(5000000, NULL, NULL, NULL), TATCELL_ERR_NULL);
    EQ(n, 77);

    tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT, unset;
    memset(&unset, 0, sizeof unset);
    EQ(tatcell_host_memory_map(4096, 0, NULL), TATCELL_ERR_NULL);
    EQ(tatcell_host_memory_map(4096, 0, &unset), TATCELL_ERR_SIZE);
    EQ(tatcell_host_memory_map(4096, 4, &m), TATCELL_ERR_OPTION);
    EQ(tatcell_host_memory_map(0, 0, &m), TATCELL_ERR_TOO_SMALL);
    EQ(tatcell_host_memory_map(SIZE_MAX, TATCELL_HOST_HUGE, &m), TATCELL_ERR_TOO_LARGE);
    EQ(tatcell_host_memory_create(NULL, 4096, 0, &m), TATCELL_ERR_NULL);
    EQ(tatcell_host_memory_create("/x/y", 4096, 010000, &m), TATCELL_ERR_OPTION);
    EQ(tatcell_host_memory_create("relative", 4096, 0, &m), TATCELL_ERR_NAME);
    EQ(tatcell_host_memory_create("", 4096, 0, &m), TATCELL_ERR_NAME);
    EQ(tatcell_host_memory_create("/", 4096, 0, &m), TATCELL_ERR_NAME);
    char path[400];
    memset(path, 'x', sizeof path);
    path[0] = '/', path[sizeof path - 1] = 0;
    EQ(tatcell_host_memory_create(path, 4096, 0, &m), TATCELL_ERR_NAME);
    EQ(tatcell_host_memory_attach(path, 0, &m), TATCELL_ERR_NAME);
    EQ(tatcell_host_memory_attach(NULL, 0, &m), TATCELL_ERR_NULL);
    EQ(tatcell_host_memory_attach("/x/y", 0, &unset), TATCELL_ERR_SIZE);
    EQ(tatcell_host_memory_unlink(NULL, NULL), TATCELL_ERR_NULL);
    EQ(tatcell_host_memory_unlink(path, NULL), TATCELL_ERR_NAME);
    EQ(tatcell_host_memory_unmap(NULL), TATCELL_ERR_NULL);
    EQ(tatcell_host_memory_unmap(&unset), TATCELL_ERR_SIZE);
    EQ(tatcell_host_memory_huge_bytes(NULL, &n, NULL), TATCELL_ERR_NULL);
    EQ(tatcell_host_memory_huge_bytes(&m, NULL, NULL), TATCELL_ERR_NULL);
    EQ(tatcell_host_memory_huge_bytes(&unset, &n, NULL), TATCELL_ERR_SIZE);
    EXPECT(m.memory == NULL && m.bytes == 0);
    EQ(n, 77);
}

TEST(names_that_no_memory_can_have_are_refused) {
    static const char *const names[] = {"/.", "/..", "//", "//x", "/x/", "/tmp/", "/tmp/.", "/tmp/..", "/no/such/.."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        NOTE("%s", names[i]);
        tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT;
        EQ(tatcell_host_memory_create(names[i], 4096, 0, &m), TATCELL_ERR_NAME);
        EQ(tatcell_host_memory_attach(names[i], 0, &m), TATCELL_ERR_NAME);
        EQ(tatcell_host_memory_unlink(names[i], NULL), TATCELL_ERR_NAME);
    }
}

TEST(permissions_are_those_asked_for) {
    fresh_names();
    tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT;
    struct stat st;
    EQ(tatcell_host_memory_create(path_, 4096, 0, &m), 0);
    EXPECT(stat(path_, &st) == 0);
    EQ(st.st_mode & 0777, 0600);
    EQ(tatcell_host_memory_unlink(path_, NULL), 0);
    EQ(tatcell_host_memory_unmap(&m), 0);
}

TEST(what_is_said_to_be_zero_is_not_written_and_what_is_not_is_refused) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 16 * page;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED);
    tatcell_limit_spec_t spec = kit_spec(10, SECOND, 3);
    tatcell_table_options_t o = kit_options(&spec);
    tatcell_table_t table;
    tatcell_limit_t limit;
    o.flags = TATCELL_TABLE_ZEROED;
    /* Whoever writes a slot of a page behind the header's ends here. */
    EQ(mprotect(memory + page, bytes - page, PROT_READ), 0);
    EQ(tatcell_table_init(&table, memory, bytes, &o), 0);
    EQ(mprotect(memory + page, bytes - page, PROT_READ | PROT_WRITE), 0);
    EQ(tatcell_limit_init_table(&limit, &table, &spec), 0);
    EQ(spend(&table, &limit, "a key"), 3);
    /* It is a table now, and not zero; without the promise it is made anew. */
    EQ(tatcell_table_init(&table, memory, bytes, &o), TATCELL_ERR_MODE);
    EQ(spend(&table, &limit, "a key"), 0);
    o.flags = 0;
    EQ(tatcell_table_init(&table, memory, bytes, &o), 0);
    EQ(spend(&table, &limit, "a key"), 3);
    EQ(munmap(memory, bytes), 0);
}

TEST(a_table_opens_with_one_call_and_closes) {
    tatcell_host_table_t t = TATCELL_HOST_TABLE_INIT, empty = TATCELL_HOST_TABLE_INIT;
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    tatcell_stats_t stats = TATCELL_STATS_INIT;
    uint64_t retry = 0;
    EQ(tatcell_limit_spec_parse(&spec, "10/s burst 20", 13, SECOND, NULL), 0);
    EQ(tatcell_host_table_open(&spec, 100000, TATCELL_FULL_INHERIT, &t), 0);
    EXPECT(t.memory.bytes >= 100000 * 16 && t.memory.bytes < 100000 * 64);
    EXPECT(memcmp(t.seed, empty.seed, sizeof t.seed) != 0);
    EQ(tatcell_table_sweep_due(&t.table, &t.sweeper, SECOND), 0);
    EQ(tatcell_table_check(&t.table, &t.limit, SECOND, "192.0.2.1", 9, 20, &retry), 0);
    EQ(tatcell_table_check(&t.table, &t.limit, SECOND, "192.0.2.1", 9, 1, &retry), TATCELL_NON_CONFORMING);
    EQ(retry, SECOND / 10);
    EQ(tatcell_table_stats(&t.table, SECOND, &stats), 0);
    EQ(stats.live, 1);
    /* After nearly 2^43 ns the word has wrapped. */
    uint64_t later = SECOND + (UINT64_C(1) << 43) - SECOND;
    EQ(tatcell_table_check(&t.table, &t.limit, later, "192.0.2.1", 9, 20, &retry), TATCELL_NON_CONFORMING);
    EQ(tatcell_table_sweep_due(&t.table, &t.sweeper, later), 0);
    EQ(tatcell_table_check(&t.table, &t.limit, later, "192.0.2.1", 9, 20, &retry), 0);
    EQ(tatcell_host_table_close(&t), 0);
    EQ(memcmp(&t, &empty, sizeof t), 0);
    EQ(tatcell_host_table_close(&t), 0);
    /* What cannot be opened leaves nothing behind. */
    EQ(tatcell_host_table_open(&spec, 0, TATCELL_FULL_ADMIT, &t), TATCELL_ERR_TOO_SMALL);
    EQ(tatcell_host_table_open(&spec, SIZE_MAX, TATCELL_FULL_ADMIT, &t), TATCELL_ERR_TOO_LARGE);
    EQ(tatcell_host_table_open(&spec, 1000, 77, &t), TATCELL_ERR_OPTION);
    spec.units = 0;
    EQ(tatcell_host_table_open(&spec, 1000, TATCELL_FULL_ADMIT, &t), TATCELL_ERR_RATE);
    EQ(memcmp(&t, &empty, sizeof t), 0);
    t.size = 8;
    EQ(tatcell_host_table_open(&spec, 1000, TATCELL_FULL_ADMIT, &t), TATCELL_ERR_SIZE);
}

int main(void) {
    RUN(clocks_go_forward);
    RUN(a_guard_holds_stamps_to_a_clock_that_nobody_can_set);
    RUN(ticks_make_a_limit);
    RUN(ticks_go_forward_where_the_processor_counts_them);
    RUN(memory_holds_a_table_and_goes_away);
    RUN(a_name_joins_two_processes);
    RUN(a_reader_looks_without_seed_and_without_writing);
    RUN(counters_in_a_name_are_read_by_others);
    RUN(each_block_of_counters_has_one_opener);
    RUN(a_structure_tells_the_mapping_that_it_has_now);
    RUN(an_empty_file_is_not_ready);
    RUN(system_errors_carry_errno);
    RUN(names_and_paths_have_a_rule);
    RUN(random_bytes_are_of_the_system);
    RUN(bad_arguments_change_nothing);
    RUN(names_that_no_memory_can_have_are_refused);
    RUN(permissions_are_those_asked_for);
    RUN(a_table_opens_with_one_call_and_closes);
    RUN(what_is_said_to_be_zero_is_not_written_and_what_is_not_is_refused);
    return check_end();
}
