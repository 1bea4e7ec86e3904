/* kernel.c OBJECT [STEPS [ROUNDS [untimed]]]: checks.bpf.c in the running kernel: that the verifier takes it, and what
 * it counts; the walks of walk.h by BPF_PROG_TEST_RUN; user space and BPF inserting the same keys at once; the cost of
 * a run. With `figures` in place of STEPS only the last. `kernel probe` exits with 0 where programs may be loaded. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "walk.h"

#include "request.h"

static struct bpf_object *object;
static const char *compiler = "";

/* Warnings, but for the log of a program that does not load: that is a claim. */
static int quiet(enum libbpf_print_level level, const char *format, va_list args) {
    return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static int fd_of(const char *program) {
    return bpf_program__fd(bpf_object__find_program_by_name(object, program));
}

/* Loads the programs, the image with room for a table of so many bytes, which is mapped. */
static void *load(const char *path, size_t bytes) {
    struct bpf_map *image;
    void *memory;
    if (object) bpf_object__close(object);
    object = bpf_object__open_file(path, NULL);
    if (!object) return NULL;
    image = bpf_object__find_map_by_name(object, "image");
    if (bpf_map__set_max_entries(image, (uint32_t)(bytes / 64)) || bpf_object__load(object)) return NULL;
    memory = mmap(NULL, (bytes + 4095) & ~(size_t)4095, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(image), 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void publish(const pair_t *p) {
    uint32_t zero = 0;
    bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "tables"), &zero, &p->bpf, 0);
    for (uint32_t i = 0; i < LIMITS; i++)
        bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "limits"), &i, &p->bpf_limits[i], 0);
}

static void run(int program, struct request *r) {
    LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = r, .data_size_in = sizeof *r, .data_out = r,
                .data_size_out = sizeof *r);
    if (bpf_prog_test_run_opts(program, &t)) {
        perror("BPF_PROG_TEST_RUN");
        exit(1);
    }
}

static void in_kernel(void *context, const asked_t *ask, answered_t *got) {
    struct request r = {
        .now = ask->now, .cost = ask->cost, .key = ask->key, .length = ask->length, .limit = ask->limit};
    run(*(int *)context, &r);
    got->verdict = r.verdict, got->retry_after = r.retry_after, got->tracking = r.tracking, got->flags = r.flags;
}

static void verifier(void) {
    struct bpf_program *program;
    char name[256];
    bpf_object__for_each_program(program, object) {
        struct bpf_prog_info info;
        uint32_t size = sizeof info;
        memset(&info, 0, sizeof info);
        if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size)) continue;
        snprintf(name, sizeof name,
                 "%s: verifier takes %s: %u instructions walked, %u translated, %u bytes of machine code", compiler,
                 bpf_program__name(program), info.verified_insns, info.xlated_prog_len / 8, info.jited_prog_len);
        claim(name, "");
    }
}

static void walks(const char *path, long steps) {
    for (size_t i = 0; i < WALK_COUNT; i++) {
        const walk_t *w = &WALKS[i];
        char why[256] = "", name[200];
        long counts[6] = {0};
        pair_t *p = calloc(1, sizeof *p);
        size_t bytes = tatcell_table_bytes(w->slots);
        void *a = aligned_alloc(64, bytes), *b = load(path, bytes);
        int program = b ? fd_of("check_table") : -1;
        int32_t rc = b ? walk_make(p, w, a, b) : -1;
        if (rc < 0) say(why, "%s", b ? tatcell_strerror(rc) : "it does not load");
        if (!why[0]) publish(p), walk(p, w, steps, in_kernel, &program, counts, why);
        snprintf(name, sizeof name,
                 "%s: kernel table %s: %ld steps equal (denied %ld, untracked %ld, inherited %ld, "
                 "forgiven %ld)",
                 compiler, w->name, steps, counts[0], counts[3], counts[4], counts[5]);
        claim(name, why);
        if (b) munmap(b, (bytes + 4095) & ~(size_t)4095);
        free(a), free(p);
    }
}

static void cells(long steps) {
    char why[256] = "", name[128];
    int program = fd_of("check_cell"), map = bpf_object__find_map_fd_by_name(object, "cells");
    uint64_t *theirs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0), x = 3, now = 1;
    tatcell_cell_t ours[4] = {{0}, {0}, {0}, {0}};
    tatcell_limit_t limits[4];
    long denied = 0;
    for (uint32_t i = 0; i < 4; i++) {
        tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
        tatcell_bpf_limit_t bpf;
        spec.units = 1000, spec.period = 1000000000, spec.burst = 9, spec.penalty = i == 1 ? 4 : 0;
        spec.flags = i == 2 ? TATCELL_LIMIT_SHADOW : i == 3 ? TATCELL_LIMIT_HEAL | TATCELL_LIMIT_RESOLUTION : 0;
        if (tatcell_limit_init_spec(&limits[i], &spec) < 0 || tatcell_bpf_limit_init(&bpf, &limits[i]) < 0)
            say(why, "limit %u", i);
        bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "limits"), &i, &bpf, 0);
    }
    if (theirs == MAP_FAILED) say(why, "cells cannot be mapped");
    for (long i = 0; i < steps && !why[0]; i++) {
        uint64_t random = walk_random(&x), at = random & 3, cost = (random >> 40) % 4, retry = 0;
        struct request r = {.key = at, .limit = (uint32_t)at};
        now += random & 28 ? random >> 13 & 0xfffff : 0 - (random >> 30 & 0xfff);
        if ((random >> 50 & 31) == 0) cost = (random >> 8) % 20;
        if ((random >> 56) == 1) ours[at].word = theirs[at] = walk_random(&x);
        r.now = now, r.cost = cost;
        int32_t want = tatcell_cell_check(&ours[at], &limits[at], now, cost, &retry);
        run(program, &r);
        if (r.verdict != want || r.retry_after != retry || ours[at].word != theirs[at]) say(why, "step %ld", i);
        denied += want == TATCELL_NON_CONFORMING;
    }
    if (!why[0] && denied < steps / 100) say(why, "%ld denied", denied);
    snprintf(name, sizeof name, "%s: kernel cells: %ld steps equal (denied %ld)", compiler, steps, denied);
    claim(name, why);
}

/* Two threads of the library and two of BPF ask for the same fresh keys at one instant; each key has a burst of 3.
 * Every slot holds a key that has long drained, and the threads of the library sweep as they go: what is the best slot
 * for a key changes all the time, and only the claim protocol keeps it from getting two. */
static struct {
    tatcell_table_t table;
    tatcell_limit_t limit;
    tatcell_bpf_table_t bpf;
    uint64_t now;
    int program;
    struct race *shared;
} race;

static void *racer(void *argument) {
    uint64_t x = 1 + (uint64_t)(uintptr_t)&x;
    (void)argument;
    /* A run in the kernel takes its time to begin. */
    while (__atomic_load_n(&race.shared->by_bpf, __ATOMIC_RELAXED) == 0) {}
    for (;;) {
        uint64_t key = __atomic_fetch_add(&race.shared->turn, 1, __ATOMIC_RELAXED) / RACE_EACH, hash = 0, set;
        uint32_t bytes = (uint32_t)key;
        if (key >= RACE_KEYS) return NULL;
        (void)tatcell_table_hash(&race.table, &bytes, 4, &hash);
        set = (tatcell_bpf_home(&race.bpf, hash) - race.bpf.first_line) / 2;
        (void)tatcell_table_sweep(&race.table, race.now, set * 16 + walk_random(&x) % 16, 1, NULL);
        if (tatcell_table_check_hash(&race.table, &race.limit, race.now, hash, 1, NULL) != TATCELL_PASS) continue;
        __atomic_fetch_add(&race.shared->admitted[key], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&race.shared->by_user, 1, __ATOMIC_RELAXED);
    }
}

static void *bpf_racer(void *argument) {
    (void)argument;
    while (__atomic_load_n(&race.shared->turn, __ATOMIC_RELAXED) < (uint64_t)RACE_KEYS * RACE_EACH) {
        struct request r = {.now = race.now, .cost = 1, .length = 4};
        LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = &r, .data_size_in = sizeof r, .repeat = 1000000);
        if (bpf_prog_test_run_opts(race.program, &t) && errno != EINTR) exit(1);
    }
    return NULL;
}

static void races(const char *path, int rounds) {
    size_t bytes = tatcell_table_bytes(1 << 20), shared = (sizeof(struct race) + 4095) & ~(size_t)4095;
    void *memory = load(path, bytes);
    char why[256] = "", name[256];
    uint64_t by_user = 0, by_bpf = 0;
    int fd = memory ? bpf_object__find_map_fd_by_name(object, "races") : -1;
    race.shared = memory ? mmap(NULL, shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (race.shared == MAP_FAILED) say(why, "it does not load");
    for (int round = 0; round < rounds && !why[0]; round++) {
        pthread_t threads[4];
        tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
        tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
        tatcell_stats_t stats = TATCELL_STATS_INIT;
        tatcell_bpf_limit_t limit;
        uint32_t zero = 0;
        int32_t rc;
        uint64_t x = 77 + (uint64_t)round, *words = memory, clock;
        memset(race.shared, 0, sizeof *race.shared);
        race.now = 5000000000000u + (uint64_t)round, race.program = fd_of("check_race");
        spec.units = 1, spec.period = 1000000000, spec.burst = 3;
        options.fastest = &spec, options.seed = walk_seed, options.policy = TATCELL_FULL_DENY;
        if ((rc = tatcell_table_init(&race.table, memory, bytes, &options)) < 0) say(why, "%s", tatcell_strerror(rc));
        (void)tatcell_limit_init_table(&race.limit, &race.table, &spec);
        (void)tatcell_bpf_table_init(&race.bpf, &race.table, walk_seed);
        (void)tatcell_bpf_limit_init_table(&limit, &race.table, &race.limit);
        bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "tables"), &zero, &race.bpf, 0);
        bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "limits"), &zero, &limit, 0);
        clock = tatcell_bpf_clock(race.now, race.bpf.shift_left, race.bpf.shift_right);
        for (uint64_t i = race.bpf.first_line * 8; i < bytes / 8 && !why[0]; i++) {
            uint64_t age = race.bpf.window_q + 2 + walk_random(&x) % (race.bpf.mask / 8);
            words[i] = (walk_random(&x) & ~race.bpf.mask & ~TATCELL_BPF_CLAIM) | ((clock - age) & race.bpf.mask);
        }
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i & 1 ? bpf_racer : racer, NULL);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        for (int key = 0; key < RACE_KEYS; key++)
            if (race.shared->admitted[key] != 3)
                say(why, "round %d: key %d was admitted %u times", round, key, race.shared->admitted[key]);
        (void)tatcell_table_stats(&race.table, race.now, &stats);
        if (stats.live != RACE_KEYS || stats.claims != 0)
            say(why, "round %d: %llu live slots for %d keys, %llu claims", round, (unsigned long long)stats.live,
                RACE_KEYS, (unsigned long long)stats.claims);
        by_user += race.shared->by_user, by_bpf += race.shared->by_bpf;
    }
    if (!why[0] && (by_user < RACE_KEYS / 20 || by_bpf < RACE_KEYS / 20)) say(why, "only one side was admitted");
    snprintf(
        name, sizeof name,
        "%s: user space and BPF insert the same %d keys at once: each has exactly its burst and one slot in %d of %d "
        "rounds (admitted by user space %llu, by BPF %llu)",
        compiler, RACE_KEYS, rounds, rounds, (unsigned long long)by_user, (unsigned long long)by_bpf);
    claim(name, why);
    if (memory) munmap(memory, (bytes + 4095) & ~(size_t)4095);
    if (race.shared != MAP_FAILED) munmap(race.shared, shared);
}

/* Nanoseconds a run, the least of 9 times `repeat` runs. */
static unsigned cost(const char *program, struct request r, int repeat) {
    unsigned least = ~0u;
    for (int i = 0; i < 9; i++) {
        LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = &r, .data_size_in = sizeof r, .repeat = repeat);
        if (bpf_prog_test_run_opts(fd_of(program), &t) == 0 && t.duration < least) least = t.duration;
    }
    return least;
}

static void figures(const char *path, int repeat) {
    size_t bytes = tatcell_table_bytes(131072);
    void *memory = load(path, bytes), *a = aligned_alloc(64, bytes);
    pair_t *p = calloc(1, sizeof *p);
    static const walk_t W = {"", TATCELL_FULL_ADMIT, 20, 0, 0, 131072, 1, 0, 0};
    struct request known = {.cost = 1, .key = 5, .length = 4}, denied = known;
    unsigned nothing, insert, pass, deny, cell;
    tatcell_limit_spec_t fast = TATCELL_LIMIT_SPEC_INIT;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    tatcell_limit_t limit;
    tatcell_bpf_limit_t bpf;
    uint32_t three = 3;
    char name[256], why[256] = "";
    if (!memory || walk_make(p, &W, a, memory) < 0) say(why, "no table");
    publish(p);
    denied.limit = 1;
    nothing = cost("check_nothing", known, repeat);
    deny = cost("check_table", denied, repeat);
    insert = cost("check_flood", known, repeat);
    fast.units = 100000000, fast.period = 1000000000, fast.burst = 100;
    options.fastest = &fast, options.seed = walk_seed;
    if (tatcell_table_init(&p->theirs, memory, bytes, &options) < 0 ||
        tatcell_bpf_table_init(&p->bpf, &p->theirs, walk_seed) < 0 ||
        tatcell_limit_init_table(&p->limits[0], &p->theirs, &fast) < 0 ||
        tatcell_bpf_limit_init_table(&p->bpf_limits[0], &p->theirs, &p->limits[0]) < 0)
        say(why, "no fast table");
    publish(p);
    pass = cost("check_table", known, repeat);
    if (tatcell_limit_init_spec(&limit, &fast) < 0 || tatcell_bpf_limit_init(&bpf, &limit) < 0) say(why, "no limit");
    bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "limits"), &three, &bpf, 0);
    known.limit = 3, known.key = 1;
    cell = cost("check_cell", known, repeat);
    snprintf(name, sizeof name,
             "%s: ns a run, the clock included: no limiter %u, cell %u, known key that passes %u, one that "
             "does not %u, new key %u",
             compiler, nothing, cell, pass, deny, insert);
    claim(name, why);
}

/* May this process load a program at all? The least there is: it returns 0. */
static int probe(void) {
    static const struct bpf_insn LEAST[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
    int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "probe", "GPL", LEAST, 2, NULL);
    if (fd < 0) printf("%s\n", strerror(errno));
    return fd < 0;
}

int main(int argc, char **argv) {
    long steps = argc > 2 ? atol(argv[2]) : 100000;
    int rounds = argc > 3 ? atoi(argv[3]) : 11;
    const char *slash;
    if (argc < 2) return 2;
    if (!strcmp(argv[1], "probe")) return probe();
    slash = strrchr(argv[1], '/');
    compiler = slash ? slash + 1 : argv[1];
    libbpf_set_print(quiet);
    if (argc > 2 && !strcmp(argv[2], "figures")) {
        figures(argv[1], 1000000);
        return check_end();
    }
    if (!load(argv[1], tatcell_table_bytes(64))) {
        claim("the verifier takes it", strerror(errno));
        return check_end();
    }
    verifier();
    cells(steps);
    walks(argv[1], steps);
    races(argv[1], rounds);
    /* In QEMU time says nothing. */
    if (argc < 5) figures(argv[1], 100000);
    return check_end();
}
