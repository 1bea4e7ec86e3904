/* defects.c - what the tools must report. Each defect is there on purpose; defects.sh wants the tool of its kind to
 * report it. Argument: which of them. */
#include <pthread.h>
#include <sched.h>

#include "kit.h"

enum { ROUNDS = 1000 };

typedef void step_fn(uint64_t round);
static step_fn *steps[2];
static uint64_t rounds[2];

static void *run(void *arg) {
    size_t me = *(const size_t *)arg;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        steps[me](i);
        __atomic_store_n(&rounds[me], i + 1, __ATOMIC_RELAXED);
        while (__atomic_load_n(&rounds[1 - me], __ATOMIC_RELAXED) < i) sched_yield();
    }
    return NULL;
}

/* Runs both in turns: a tool that forgets finished threads sees no race of threads that run one after the other. */
static void beside(step_fn *one, step_fn *other) {
    static size_t who[2] = {0, 1};
    pthread_t threads[2];
    steps[0] = one, steps[1] = other;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, run, &who[i]) != 0) abort();
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

static uint64_t *slot, live;
static kit_table table;
static tatcell_cell_t cell;
static tatcell_limit_t limit;

/* A word that is written without an atomic. */
__attribute__((noinline)) static void write_plainly(uint64_t round) {
    (void)round;
    *(volatile uint64_t *)slot = live;
}

static void charge(uint64_t round) {
    if (tatcell_table_check_hash(&table.table, &table.limit, round, 7, 1, NULL) < 0) abort();
}

/* The library charges a slot of a table beside it. */
static void race(void) {
    if (kit_make(&table, kit_spec(1, SECOND, 5), 64, NULL) != 0) abort();
    charge(0);
    uint64_t *end = (uint64_t *)table.memory + table.bytes / 8;
    for (slot = (uint64_t *)table.memory + 16; slot < end && *slot == 0;) slot++;
    if (slot == end) abort();
    live = *slot;
    beside(charge, write_plainly);
    kit_free(&table);
}

/* Two threads of the program itself write the same word. */
static void two_writers(void) {
    static uint64_t word;
    slot = &word;
    beside(write_plainly, write_plainly);
}

static void own(uint64_t round) {
    if (tatcell_cell_check_exclusive(&cell, &limit, round, 1, NULL) < 0) abort();
}

/* Two threads and one exclusive cell: only instrumented Rust sees that. */
static void two_owners(void) {
    if (tatcell_limit_init(&limit, 1, 1, 1000000) != 0) abort();
    beside(own, own);
}

/* The library is told of more memory than there is, and clears it. */
static void write_behind(void) {
    tatcell_limit_spec_t spec = kit_spec(1, SECOND, 5);
    tatcell_table_options_t options = kit_options(&spec);
    tatcell_table_t longer;
    void *memory = kit_memory(256);
    printf("init: %d\n", tatcell_table_init(&longer, memory, 1024, &options));
    free(memory);
}

/* The program itself reads behind the memory of a table. */
static void past_the_end(void) {
    volatile unsigned char *memory = kit_memory(256);
    printf("%u\n", memory[256]);
    free((void *)memory);
}

/* A key is said to be longer than it is, and the library hashes it. */
static void read_behind(void) {
    if (kit_make(&table, kit_spec(1, SECOND, 5), 64, NULL) != 0) abort();
    uint64_t hash = 0;
    char *key = malloc(24);
    if (key == NULL) abort();
    memset(key, 7, 24);
    int32_t rc = tatcell_table_hash(&table.table, key, 64, &hash);
    printf("hash: %d %llx\n", rc, (unsigned long long)hash);
    free(key);
    kit_free(&table);
}

/* A limit that nobody has filled: the library decides by what lay there. */
static void unset(void) {
    void *nothing = NULL;
    if (posix_memalign(&nothing, 16, sizeof(tatcell_limit_t)) != 0) abort();
    printf("check: %d\n", tatcell_cell_check(&cell, (const tatcell_limit_t *)nothing, 0, 1, NULL));
    free(nothing);
}

static void shift(int by) {
    volatile int one = 1;
    printf("%d\n", one << by);
}

/* An instruction of AVX2, which a processor with SSE2 alone does not have. */
static void wide(void) {
#if defined(__x86_64__)
    __asm__ volatile("vpxor %%ymm0, %%ymm0, %%ymm0\n vpabsb %%ymm0, %%ymm0" ::: "xmm0");
#endif
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "";
    if (strcmp(which, "race") == 0) race();
    else if (strcmp(which, "two_writers") == 0) two_writers();
    else if (strcmp(which, "wide") == 0) wide();
    else if (strcmp(which, "two_owners") == 0) two_owners();
    else if (strcmp(which, "write_behind") == 0) write_behind();
    else if (strcmp(which, "past_the_end") == 0) past_the_end();
    else if (strcmp(which, "read_behind") == 0) read_behind();
    else if (strcmp(which, "unset") == 0) unset();
    else if (strcmp(which, "shift") == 0) shift(31 + argc);
    else return 2;
    printf("ran to its end\n");
    return 0;
}
