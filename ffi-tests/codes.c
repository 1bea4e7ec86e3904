/* codes.c - every status and every error is reached through public functions, and has its own text. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/ptrace.h>
#endif

#include "kit.h"

enum { FIRST = TATCELL_ERR_NOT_PLAIN, LAST = TATCELL_END, CODES = LAST - FIRST + 1 };

static unsigned char seen[CODES];

static int32_t got(int32_t code) {
    if (code >= FIRST && code <= LAST) seen[code - FIRST] = 1;
    return code;
}

/* -13 was TATCELL_ERR_MEMORY of ABI 0; numbers between the blocks were never given. */
static int unused(int32_t code) {
    return code == -13 || (code < TATCELL_ERR_SHORT_SPAN && code > TATCELL_ERR_HTTP_NAME) ||
           (code < TATCELL_ERR_SYNTAX && code > TATCELL_ERR_LINKS);
}

#define GIVES(want, call) EQ(got(call), want)

TEST(verdicts_are_0_to_2) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit;
    GIVES(0, tatcell_limit_init(&limit, 1, SECOND, 2));
    GIVES(TATCELL_PASS, tatcell_cell_check(&cell, &limit, 0, 2, NULL));
    GIVES(TATCELL_NON_CONFORMING, tatcell_cell_check(&cell, &limit, 0, 1, NULL));
    uint64_t wait = 1;
    GIVES(TATCELL_NEVER, tatcell_cell_check(&cell, &limit, 0, 3, &wait));
    EQ(wait, UINT64_MAX);
}

TEST(bad_pointers_and_sizes_are_errors) {
    tatcell_limit_t limit;
    tatcell_limit_spec_t spec = kit_spec(1, SECOND, 2);
    GIVES(TATCELL_ERR_NULL, tatcell_limit_init(NULL, 1, 1, 1));
    GIVES(TATCELL_ERR_ALIGN, tatcell_limit_init((tatcell_limit_t *)(void *)((char *)&limit + 1), 1, 1, 1));
    spec.size = 0;
    GIVES(TATCELL_ERR_SIZE, tatcell_limit_init_spec(&limit, &spec));
}

TEST(bad_limits_are_errors) {
    tatcell_limit_t limit;
    tatcell_limit_spec_t spec = kit_spec(1, SECOND, 2);
    GIVES(TATCELL_ERR_RATE, tatcell_limit_init(&limit, 0, SECOND, 1));
    GIVES(TATCELL_ERR_PERIOD, tatcell_limit_init(&limit, 1, 0, 1));
    GIVES(TATCELL_ERR_BURST, tatcell_limit_init(&limit, 1, SECOND, 0));
    GIVES(TATCELL_ERR_REPRESENT, tatcell_limit_init(&limit, UINT64_MAX, 1, 1));
    GIVES(TATCELL_ERR_REPRESENT, tatcell_limit_init(&limit, 1, SECOND, UINT64_MAX));
    spec.max_delay = UINT64_MAX / 2;
    GIVES(TATCELL_ERR_HORIZON, tatcell_limit_init_spec(&limit, &spec));
    spec.max_delay = 0;
    spec.soft = 3;
    GIVES(TATCELL_ERR_SOFT, tatcell_limit_init_spec(&limit, &spec));
    spec.soft = 0;
    spec.flags = 32;
    GIVES(TATCELL_ERR_OPTION, tatcell_limit_init_spec(&limit, &spec));
    spec.flags = TATCELL_LIMIT_ALIGNED;
    GIVES(TATCELL_ERR_OPTION, tatcell_limit_init_spec(&limit, &spec));
    spec.algorithm = TATCELL_ALGORITHM_FIXED_WINDOW;
    GIVES(TATCELL_ERR_ALGORITHM, tatcell_limit_init_spec(&limit, &spec)); /* a burst of its own */
    spec.burst = 0;
    spec.phase = SECOND;
    GIVES(TATCELL_ERR_PHASE, tatcell_limit_init_spec(&limit, &spec));
    GIVES(TATCELL_ERR_UNITS, tatcell_limit_init_window(&limit, UINT64_MAX, SECOND));
    spec = kit_spec(1, SECOND, 2);
    spec.flags = TATCELL_LIMIT_RESOLUTION;
    spec.resolution = 64;
    GIVES(TATCELL_ERR_OPTION, tatcell_limit_init_spec(&limit, &spec));
    spec.resolution = 1 << 20;
    GIVES(TATCELL_ERR_OPTION, tatcell_limit_init_spec(&limit, &spec));
    spec.flags = TATCELL_LIMIT_HEAL, spec.period = 1000;
    GIVES(TATCELL_ERR_OPTION, tatcell_limit32_init_spec(&limit, &spec));
    GIVES(0, tatcell_limit_init_spec(&limit, &spec));
}

TEST(bad_meters_are_errors) {
    tatcell_meter_params_t params;
    tatcell_meter_spec_t spec = TATCELL_METER_SPEC_INIT;
    spec.kind = TATCELL_METER_RFC2698;
    spec.cir = 2, spec.rate2 = 1, spec.cbs = spec.burst2 = 1, spec.tick_hz = SECOND;
    GIVES(TATCELL_ERR_PEAK, tatcell_meter_params_init(&params, &spec));
    spec.cir = spec.rate2 = 46000000, spec.cbs = spec.burst2 = 4096, spec.span = UINT64_MAX;
    GIVES(TATCELL_ERR_SHORT_SPAN, tatcell_meter_params_init(&params, &spec));
    spec.span = 0;
    GIVES(0, tatcell_meter_params_init(&params, &spec));
}

/* Heal needs a span of more than a year of nanoseconds: a resolution of at most 9. */
TEST(heal_is_refused_where_the_resolution_is_above_9) {
    tatcell_limit_t limit;
    tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
    tatcell_limit_spec_t spec = kit_spec(1, SECOND, 2);
    spec.flags = TATCELL_LIMIT_HEAL | TATCELL_LIMIT_RESOLUTION;
    for (spec.resolution = 0; spec.resolution <= 20; spec.resolution++) {
        NOTE("resolution %d", spec.resolution);
        GIVES(spec.resolution <= 9 ? 0 : TATCELL_ERR_OPTION, tatcell_limit_init_spec(&limit, &spec));
    }
    spec = kit_spec(10000000, SECOND, 2); /* 100 ns a unit: the library itself chooses a finer one */
    GIVES(0, tatcell_limit_init_spec(&limit, &spec));
    EQ(tatcell_limit_info(&limit, &info), 0);
    EXPECT(info.resolution > 9);
    spec.flags = TATCELL_LIMIT_HEAL;
    GIVES(TATCELL_ERR_OPTION, tatcell_limit_init_spec(&limit, &spec));
}

TEST(limits_of_another_word_or_table_are_errors) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_cell32_t cell32 = TATCELL_CELL32_INIT;
    tatcell_limit_t limit;
    kit_table fast, slow;
    EQ(kit_make(&fast, kit_spec(1000, SECOND, 10), 64, NULL), 0);
    EQ(kit_make(&slow, kit_spec(1, 86400 * SECOND, 100), 64, NULL), 0);
    GIVES(TATCELL_ERR_LIMIT, tatcell_cell_check(&cell, &fast.limit, 0, 1, NULL));
    GIVES(TATCELL_ERR_LIMIT, tatcell_cell32_check(&cell32, &fast.limit, 0, 1, NULL));
    EQ(tatcell_limit_init(&limit, 1, SECOND, 2), 0);
    GIVES(TATCELL_ERR_LIMIT, tatcell_table_check_hash(&fast.table, &limit, 0, 1, 1, NULL));
    GIVES(TATCELL_ERR_FOREIGN, tatcell_table_check_hash(&fast.table, &slow.limit, 0, 1, 1, NULL));
    GIVES(TATCELL_ERR_TOO_FAST, tatcell_limit_init_table(&limit, &fast.table, &slow.spec));
    EQ(tatcell_table_check_hash(&fast.table, &fast.limit, 0, 1, 1, NULL), 0);
    kit_free(&fast);
    kit_free(&slow);
}

TEST(bad_table_options_are_errors) {
    tatcell_table_t table;
    tatcell_limit_spec_t fast = kit_spec(1000000000, SECOND, 1), slow = kit_spec(1, 31536000 * SECOND, 1000);
    tatcell_table_options_t o = kit_options(&fast);
    size_t bytes = tatcell_table_bytes(16);
    void *memory = kit_memory(bytes);
    o.seed = NULL;
    GIVES(TATCELL_ERR_SEED, tatcell_table_init(&table, memory, bytes, &o));
    o.seed = kit_seed;
    GIVES(TATCELL_ERR_TOO_SMALL, tatcell_table_init(&table, memory, bytes - 1, &o));
    GIVES(TATCELL_ERR_TOO_LARGE, tatcell_table_init(&table, memory, SIZE_MAX, &o));
    GIVES(TATCELL_ERR_OVERLAP, tatcell_table_init((tatcell_table_t *)memory, memory, bytes, &o));
    o.slowest = &slow;
    GIVES(TATCELL_ERR_SPAN, tatcell_table_init(&table, memory, bytes, &o));
    slow = kit_spec(10, SECOND, 0);
    slow.algorithm = TATCELL_ALGORITHM_FIXED_WINDOW;
    GIVES(TATCELL_ERR_ALGORITHM, tatcell_table_init(&table, memory, bytes, &o));
    o.fastest = &slow;
    o.policy = TATCELL_FULL_INHERIT;
    GIVES(TATCELL_ERR_INHERIT, tatcell_table_init(&table, memory, bytes, &o));
    o.fastest = &fast;
    o.policy = 0;
    o.slowest = NULL;
    o.tag_bits = 11;
    GIVES(TATCELL_ERR_OPTION, tatcell_table_init(&table, memory, bytes, &o));
    o.tag_bits = 25;
    GIVES(TATCELL_ERR_OPTION, tatcell_table_init(&table, memory, bytes, &o));
    o.tag_bits = 0;
    o.policy = 4;
    GIVES(TATCELL_ERR_OPTION, tatcell_table_init(&table, memory, bytes, &o));
    o.policy = 0;
    o.hash = 3;
    GIVES(TATCELL_ERR_OPTION, tatcell_table_init(&table, memory, bytes, &o));
    o.hash = 0;
    o.claim_lifetime = SECOND;
    GIVES(TATCELL_ERR_OPTION, tatcell_table_init(&table, memory, bytes, &o));
    free(memory);
}

TEST(bad_images_are_errors) {
    tatcell_table_t t;
    uint8_t other[16] = {9};
    kit_table k;
    memset(&t, 0, sizeof t);
    GIVES(TATCELL_ERR_HANDLE, tatcell_table_reset_hash(&t, 0, 1));
    EQ(kit_make(&k, kit_spec(10, SECOND, 10), 64, NULL), 0);
    uint64_t *header = (uint64_t *)k.memory, magic = header[0], shape = header[1];
    GIVES(TATCELL_ERR_WRONG_SEED, tatcell_table_attach(&t, k.memory, k.bytes, kit_attach(other, 0)));
    GIVES(TATCELL_ERR_SEED, tatcell_table_attach(&t, k.memory, k.bytes, kit_attach(NULL, 0)));
    GIVES(TATCELL_ERR_MODE, tatcell_table_attach(&t, k.memory, k.bytes, kit_attach(kit_seed, TATCELL_TABLE_EXCLUSIVE)));
    GIVES(TATCELL_ERR_GEOMETRY, tatcell_table_attach(&t, k.memory, k.bytes - 128, kit_attach(kit_seed, 0)));
    GIVES(TATCELL_ERR_OPTION, tatcell_table_attach(&t, k.memory, k.bytes, kit_attach(kit_seed, 2)));
    header[1] = shape ^ UINT64_C(0xff) << 24;
    GIVES(TATCELL_ERR_GEOMETRY, tatcell_table_attach(&t, k.memory, k.bytes, kit_attach(kit_seed, 0)));
    header[1] = shape;
    header[0] = magic + 1;
    GIVES(TATCELL_ERR_VERSION, tatcell_table_attach(&t, k.memory, k.bytes, kit_attach(kit_seed, 0)));
    header[0] = 0;
    GIVES(TATCELL_ERR_NOT_READY, tatcell_table_attach(&t, k.memory, k.bytes, kit_attach(kit_seed, 0)));
    header[0] = magic;
    GIVES(0, tatcell_table_attach(&t, k.memory, k.bytes, kit_attach(kit_seed, 0)));
    uint64_t image[8], *whole = (uint64_t *)malloc(k.bytes);
    EXPECT(whole != NULL);
    GIVES(TATCELL_ERR_BUFFER, tatcell_table_save(&k.table, 0, image, sizeof image, NULL));
    GIVES(0, tatcell_table_save(&k.table, 0, whole, k.bytes, NULL));
    void *less = kit_memory(k.bytes - 128);
    GIVES(TATCELL_ERR_WRONG_SIZE, tatcell_table_restore(&t, less, k.bytes - 128, whole, k.bytes,
        kit_attach(kit_seed, 0), 0));
    free(less);
    free(whole);
    tatcell_slot_t slot;
    GIVES(TATCELL_END, tatcell_table_next(&t, 0, 0, &slot));
    kit_free(&k);
}

TEST(bad_calls_on_a_table_are_errors) {
    kit_table k;
    tatcell_table_options_t o = kit_options(NULL);
    uint64_t hashes[TATCELL_BURST_MAX + 1] = {0}, pass = 0;
    o.hash = TATCELL_HASH_CALLER;
    o.seed = NULL;
    EQ(kit_make(&k, kit_spec(10, SECOND, 10), 64, &o), 0);
    GIVES(TATCELL_ERR_HASH, tatcell_table_check(&k.table, &k.limit, 0, "a", 1, 1, NULL));
    GIVES(TATCELL_ERR_HASH, tatcell_table_hash(&k.table, "a", 1, &pass));
    GIVES(TATCELL_ERR_KEY_LENGTH, tatcell_table_hash(&k.table, "a", SIZE_MAX, &pass));
    tatcell_burst_t burst = TATCELL_BURST_INIT;
    burst.limit = &k.limit;
    burst.hashes = hashes;
    burst.count = TATCELL_BURST_MAX + 1;
    GIVES(TATCELL_ERR_COUNT, tatcell_table_check_burst(&k.table, &burst, NULL));
    burst.count = TATCELL_BURST_MAX;
    GIVES(0, tatcell_table_check_burst(&k.table, &burst, NULL));
    kit_free(&k);
}

TEST(bad_calls_for_http_fields_are_errors) {
    tatcell_http_policy_t p = TATCELL_HTTP_POLICY_INIT;
    p.name = "a\nb";
    GIVES(TATCELL_ERR_HTTP_NAME, tatcell_http_lines(&p, 1, 1, TATCELL_HTTP_ALL, NULL, 0));
    p.name = "a";
    GIVES(TATCELL_ERR_FREQUENCY, tatcell_http_lines(&p, 1, 0, TATCELL_HTTP_ALL, NULL, 0));
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    GIVES(TATCELL_ERR_SYNTAX, tatcell_limit_spec_parse(&spec, "10", 2, SECOND, NULL));
    GIVES(TATCELL_ERR_POLICIES, tatcell_http_lines(&p, 9, 1, TATCELL_HTTP_ALL, NULL, 0));
    GIVES(0, tatcell_http_lines(&p, 1, 1, TATCELL_HTTP_ALL, NULL, 0));
}

TEST(bad_chains_and_ladders_are_errors) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit, slower;
    EQ(tatcell_limit_init(&limit, 1, SECOND, 2), 0);
    EQ(tatcell_limit_init(&slower, 1, 2 * SECOND, 2), 0);
    tatcell_link_t links[2] = {{.cell = &cell, .limit = &limit, .cost = 1}, {.cell = &cell, .limit = &slower}};
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    chain.links = links, chain.link_size = sizeof *links;
    GIVES(TATCELL_ERR_LINKS, tatcell_chain_check(&chain, 0, NULL));
    chain.count = 2;
    GIVES(TATCELL_ERR_TWO_LIMITS, tatcell_chain_check(&chain, 0, NULL));
    links[1].limit = &limit, links[1].cost = UINT64_MAX;
    GIVES(TATCELL_ERR_COST, tatcell_chain_check(&chain, 0, NULL));
    tatcell_decision_t out = TATCELL_DECISION_INIT;
    EQ(tatcell_limit_init_window(&limit, 1, SECOND), 0);
    chain.count = 1;
    GIVES(TATCELL_ERR_ALGORITHM, tatcell_chain_reserve(&chain, 0, &out));
    GIVES(TATCELL_ERR_NOT_PLAIN, tatcell_chain_verdict(&chain, 0));
    EQ(cell.word, 0);
    tatcell_limit_spec_t one = kit_spec(1, SECOND, 2), fastest = one, slowest = one;
    tatcell_rung_t rung = {33, 1};
    tatcell_ladder_spec_t rungs = TATCELL_LADDER_SPEC_INIT;
    rungs.v4 = &rung, rungs.v4_count = 1;
    GIVES(TATCELL_ERR_LADDER, tatcell_ladder_table_specs(&one, &rungs, &fastest, &slowest));
    uint8_t canonical[16];
    size_t length;
    uint32_t bits;
    GIVES(TATCELL_ERR_ADDRESS, tatcell_address_canonical("12345", 5, canonical, &length));
    GIVES(TATCELL_ERR_PREFIX, tatcell_address_network("1234", 4, 33, canonical, &length, &bits));
}

TEST(bad_shapers_are_errors) {
    static uint64_t memory[TATCELL_SHAPER_BYTES(64, 1) / 8];
    tatcell_shaper_t shaper;
    tatcell_waiting_t waiting = {1, 64, 0, 0};
    GIVES(TATCELL_ERR_WHEEL, tatcell_shaper_init(&shaper, memory, sizeof memory, 63, 1, 0));
    GIVES(0, tatcell_shaper_init(&shaper, memory, sizeof memory, 64, 1, 0));
    GIVES(TATCELL_ERR_TOO_FAR, tatcell_shaper_insert(&shaper, 0, &waiting));
    waiting.departure = 5;
    GIVES(0, tatcell_shaper_insert(&shaper, 0, &waiting));
    GIVES(TATCELL_ERR_FULL, tatcell_shaper_insert(&shaper, 0, &waiting));
    static uint64_t more[TATCELL_SHAPER_BYTES(64, 2) / 8];
    GIVES(0, tatcell_shaper_init(&shaper, more, sizeof more, 64, 1, 0));
    GIVES(0, tatcell_shaper_insert(&shaper, 0, &waiting));
    waiting.departure = 100;
    GIVES(TATCELL_ERR_BEHIND, tatcell_shaper_insert(&shaper, 100, &waiting));
}

#ifdef __linux__
/* What the stepped child shares with the one who steps it. */
static struct stepped {
    tatcell_cell_t cell;
    int32_t rc;
    TATCELL_ALIGNED(64) unsigned char memory[TATCELL_TABLE_BYTES(16)];
} *stepped;
static tatcell_limit_t stepped_limit, slower_limit;
static tatcell_table_t stepped_table;
static tatcell_permit_t stepped_permit;

static int32_t charge_the_cell(void) {
    return tatcell_cell_charge(&stepped->cell, &stepped_limit, 0, 1, NULL);
}

static int32_t change_the_limit(void) {
    return tatcell_cell_change(&stepped->cell, &stepped_limit, &slower_limit, 0, TATCELL_CHANGE_KEEP_UNITS);
}

static int32_t refund_the_charge(void) {
    return tatcell_cell_refund(&stepped->cell, &stepped_limit, 0, &stepped_permit, NULL);
}

static int32_t check_the_key(void) {
    return tatcell_table_check_hash(&stepped_table, &stepped_limit, 0, 7, 1, NULL);
}

/* A rival at every single instruction: a child is stepped through one call, and the word changes at each step, as
 * another process sharing it might change it. Every attempt is lost, on any machine. */
static void loses_every_attempt(int32_t (*call)(void), uint64_t *word) {
    stepped->rc = 12345;
    const uint64_t before = *word;
    fflush(stdout);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(1);
        raise(SIGSTOP);
        stepped->rc = call();
        raise(SIGSTOP);
        _exit(0);
    }
    int status = 0;
    uint64_t steps = 0;
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) SKIP("ptrace is not permitted here (containers: --cap-add=SYS_PTRACE)");
    while (steps < 100000 && stepped->rc == 12345) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 || waitpid(child, &status, 0) != child) break;
        if (!WIFSTOPPED(status)) break;
        if (stepped->rc == 12345) {
            (*word)++;
            steps++;
        }
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    EQ(got(stepped->rc), TATCELL_CONTENDED);
    EQ(*word, before + steps);
    EXPECT(steps < 50000); /* bounded */
}
#endif

TEST(a_call_that_loses_every_attempt_is_contended_and_changes_nothing) {
#ifdef __linux__
    tatcell_limit_spec_t spec = kit_spec(1, 1 << 16, UINT64_C(1) << 40), key = kit_spec(1, 1 << 16, 1 << 20);
    stepped = mmap(NULL, sizeof *stepped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(stepped != MAP_FAILED);
    EQ(tatcell_limit_init_spec(&stepped_limit, &spec), 0);
    stepped->cell.word = 1;
    DO(loses_every_attempt(charge_the_cell, &stepped->cell.word));
    if (check_skip[0]) return;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    spec.period *= 2;
    EQ(tatcell_limit_init_spec(&slower_limit, &spec), 0);
    DO(loses_every_attempt(change_the_limit, &stepped->cell.word));
    EQ(tatcell_cell_charge(&stepped->cell, &stepped_limit, 0, 1, &d), 0);
    stepped_permit = d.permit;
    DO(loses_every_attempt(refund_the_charge, &stepped->cell.word));
    tatcell_table_options_t o = kit_options(&key);
    o.hash = TATCELL_HASH_CALLER, o.seed = NULL;
    EQ(tatcell_table_init(&stepped_table, stepped->memory, sizeof stepped->memory, &o), 0);
    EQ(tatcell_limit_init_table(&stepped_limit, &stepped_table, &key), 0);
    EQ(check_the_key(), 0);
    DO(loses_every_attempt(check_the_key, (uint64_t *)(void *)(stepped->memory + 128)));
    munmap(stepped, sizeof *stepped);
#else
    SKIP("needs ptrace of Linux");
#endif
}

/* Hashes that differ in neither line nor tag, and a set that fills. */
TEST(overrides_that_cannot_be_are_errors) {
    static TATCELL_ALIGNED(64) unsigned char bans[TATCELL_TABLE_BYTES(16)];
    tatcell_table_options_t o = TATCELL_TABLE_OPTIONS_INIT;
    tatcell_table_t overrides;
    o.overrides = 1000, o.hash = TATCELL_HASH_CALLER;
    EQ(tatcell_table_init(&overrides, bans, sizeof bans, &o), 0);
    GIVES(TATCELL_ERR_UNTIL, tatcell_table_ban_hash(&overrides, 5, 1, 5));
    EQ(tatcell_table_ban_hash(&overrides, 5, 1, 9), 0);
    GIVES(TATCELL_ERR_CLASH, tatcell_table_ban_hash(&overrides, 5, 1 | 1 << 25, 9));
    for (uint64_t i = 2; i < 9; i++) EQ(tatcell_table_ban_hash(&overrides, 5, i, 9), 0);
    GIVES(TATCELL_ERR_FULL_SET, tatcell_table_ban_hash(&overrides, 5, 9, 9));
}

TEST(changes_that_would_lose_something_are_errors) {
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    tatcell_limit_t limit, longer, fewer;
    EQ(tatcell_limit_init_window(&limit, 1000, SECOND), 0);
    EQ(tatcell_limit_init_window(&longer, 1000, SECOND + 1), 0);
    EQ(tatcell_limit_init_window(&fewer, 100, SECOND), 0);
    EQ(tatcell_cell_check(&cell, &limit, 5, 1000, NULL), 0);
    GIVES(TATCELL_ERR_KEEP_WINDOW, tatcell_cell_change(&cell, &limit, &longer, 5, TATCELL_CHANGE_KEEP_UNITS));
    GIVES(TATCELL_ERR_KEEP_COUNT, tatcell_cell_change(&cell, &limit, &fewer, 5, TATCELL_CHANGE_KEEP_UNITS));
}

/* A saved cell comes back under the limit of the save only, whole, and where its windows are. */
TEST(images_of_cells_that_do_not_fit_are_errors) {
    tatcell_cell_t cell = TATCELL_CELL_INIT, back = {77};
    tatcell_cell32_t small = TATCELL_CELL32_INIT, small_back = {77};
    tatcell_cell_image_t image = TATCELL_CELL_IMAGE_INIT, bad;
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    tatcell_limit_t limit, other, months, ms;
    uint64_t saved = 77;
    spec.units = 20, spec.period = 1000, spec.algorithm = TATCELL_ALGORITHM_FIXED_WINDOW;
    spec.flags = TATCELL_LIMIT_ALIGNED;
    EQ(tatcell_limit_init_spec(&months, &spec), 0);
    EQ(tatcell_limit_init(&limit, 1, 1000, 5), 0);
    EQ(tatcell_limit_init(&other, 1, 1000, 6), 0);
    EQ(tatcell_limit32_init(&ms, 1, 1000, 5), 0);
    EQ(tatcell_cell_restore(&back, &limit, &image, 5, &saved), 0);
    EQ(back.word, 0);
    EQ(saved, 0);
    EQ(tatcell_cell_check(&cell, &limit, 5000, 5, NULL), 0);
    EQ(tatcell_cell_save(&cell, &limit, 5000, &image), 0);
    for (size_t i = 0; i < sizeof image; i++) {
        bad = image;
        ((unsigned char *)&bad)[i] ^= 32;
        back.word = 77;
        GIVES(TATCELL_ERR_IMAGE, tatcell_cell_restore(&back, &limit, &bad, 0, &saved));
        EQ(back.word, 77);
        EQ(saved, 0);
    }
    GIVES(TATCELL_ERR_OTHER_LIMIT, tatcell_cell_restore(&back, &other, &image, 0, &saved));
    EQ(back.word, 77);
    EQ(saved, 5000);
    EQ(tatcell_cell_restore(&back, &limit, &image, 0, &saved), 0);
    EQ(back.word, cell.word);
    EQ(saved, 5000);
    /* A clock that is 4000 ms behind. */
    EQ(tatcell_cell_restore(&back, &limit, &image, -4000, NULL), 0);
    EQ(tatcell_cell_check(&back, &limit, 1999, 1, NULL), TATCELL_NON_CONFORMING);
    EQ(tatcell_cell_check(&back, &limit, 2000, 1, NULL), 0);
    EQ(tatcell_cell_save(&cell, &months, 5000, &image), 0);
    GIVES(TATCELL_ERR_PHASE, tatcell_cell_restore(&back, &months, &image, 1500, NULL));
    EQ(tatcell_cell_restore(&back, &months, &image, 2000, NULL), 0);
    GIVES(TATCELL_ERR_LIMIT, tatcell_cell_save(&cell, &ms, 5000, &image));
    EQ(tatcell_cell32_check(&small, &ms, 5000, 5, NULL), 0);
    EQ(tatcell_cell32_save(&small, &ms, 5000, &image), 0);
    GIVES(TATCELL_ERR_OTHER_LIMIT, tatcell_cell_restore(&back, &limit, &image, 0, NULL));
    EQ(tatcell_cell32_restore(&small_back, &ms, &image, 0, &saved), 0);
    EQ(small_back.word, small.word);
    GIVES(TATCELL_ERR_LIMIT, tatcell_cell32_restore(&small_back, &limit, &image, 0, NULL));
}

TEST(every_code_was_produced) {
    for (int32_t c = FIRST; c <= LAST; c++) {
        if (c == TATCELL_CONTENDED) continue; /* a test above steps calls to it, where it may trace */
        if (c == TATCELL_ERR_HASH_UNAVAILABLE) continue; /* only on a processor without AES */
        if (c <= TATCELL_ERR_SYSTEM && c >= TATCELL_ERR_ABSENT) continue; /* host.c */
        if (c == TATCELL_ERR_FOLDER) continue; /* host.c */
        if (strcmp(tatcell_strerror_name(c), "unknown") == 0) continue; /* a number that is not used any more */
        NOTE("code %d, %s", c, tatcell_strerror(c));
        EXPECT(seen[c - FIRST]);
    }
}

TEST(every_code_has_its_own_text_and_name) {
    for (int32_t a = FIRST; a <= LAST; a++) {
        NOTE("code %d", a);
        EXPECT(tatcell_strerror(a) != NULL && tatcell_strerror_name(a) != NULL);
        EQ(strcmp(tatcell_strerror(a), "unknown code") == 0, unused(a));
        EQ(strcmp(tatcell_strerror_name(a), "unknown") == 0, unused(a));
        if (unused(a)) continue;
        EXPECT(strlen(tatcell_strerror(a)) > 5);
        EXPECT(strncmp(tatcell_strerror_name(a), a < 0 ? "TATCELL_ERR_" : "TATCELL_", a < 0 ? 12 : 8) == 0);
        for (int32_t b = FIRST; b < a; b++) {
            if (unused(b)) continue;
            EXPECT(strcmp(tatcell_strerror(a), tatcell_strerror(b)) != 0);
            EXPECT(strcmp(tatcell_strerror_name(a), tatcell_strerror_name(b)) != 0);
        }
    }
#define NAMED(code) EQ(strcmp(tatcell_strerror_name(code), #code), 0)
    NAMED(TATCELL_PASS);
    NAMED(TATCELL_CONTENDED);
    NAMED(TATCELL_END);
    NAMED(TATCELL_ERR_NULL);
    NAMED(TATCELL_ERR_OVERLAP);
    NAMED(TATCELL_ERR_FOLDER);
    NAMED(TATCELL_ERR_PEAK);
    NAMED(TATCELL_ERR_SHORT_SPAN);
}

TEST(other_codes_are_unknown) {
    static const int32_t codes[] = {FIRST - 1, LAST + 1, INT32_MIN, INT32_MAX, 1000, -1000};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) EQ(strcmp(tatcell_strerror(codes[i]), "unknown code"), 0);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) EQ(strcmp(tatcell_strerror_name(codes[i]), "unknown"), 0);
}

int main(void) {
    RUN(verdicts_are_0_to_2);
    RUN(bad_pointers_and_sizes_are_errors);
    RUN(bad_limits_are_errors);
    RUN(bad_meters_are_errors);
    RUN(heal_is_refused_where_the_resolution_is_above_9);
    RUN(limits_of_another_word_or_table_are_errors);
    RUN(bad_table_options_are_errors);
    RUN(bad_images_are_errors);
    RUN(bad_calls_on_a_table_are_errors);
    RUN(bad_calls_for_http_fields_are_errors);
    RUN(bad_chains_and_ladders_are_errors);
    RUN(overrides_that_cannot_be_are_errors);
    RUN(changes_that_would_lose_something_are_errors);
    RUN(bad_shapers_are_errors);
    RUN(a_call_that_loses_every_attempt_is_contended_and_changes_nothing);
    RUN(images_of_cells_that_do_not_fit_are_errors);
    RUN(every_code_was_produced);
    RUN(every_code_has_its_own_text_and_name);
    RUN(other_codes_are_unknown);
    return check_end();
}
