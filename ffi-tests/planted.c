/* planted.c - what the tools must report: a race, a write behind the end, a shift too far. Each is a defect on purpose,
 * which `make test-sanitizers` wants to see reported. Argument: which of them. */
#include <pthread.h>

#include "kit.h"

static uint64_t shared_word;

static void *writer(void *arg) {
    (void)arg;
    for (int i = 0; i < 1000; i++) *(volatile uint64_t *)&shared_word += 1;
    return NULL;
}

static void race(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, writer, NULL) != 0) abort();
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

/* The library is told of more memory than there is, and clears it: only instrumented Rust sees that. */
static void overflow(void) {
    tatcell_limit_spec_t spec = kit_spec(1, SECOND, 5);
    tatcell_table_options_t options = kit_options(&spec);
    tatcell_table_t table;
    void *memory = kit_memory(256);
    printf("init: %d\n", tatcell_table_init(&table, memory, 1024, &options));
    free(memory);
}

/* Two threads and one exclusive cell: only instrumented Rust sees that. */
static tatcell_cell_t cell;
static tatcell_limit_t limit;

static void *owner(void *arg) {
    (void)arg;
    for (uint64_t i = 0; i < 1000; i++)
        if (tatcell_cell_check_exclusive(&cell, &limit, i, 1, NULL) < 0) abort();
    return NULL;
}

static void two_owners(void) {
    pthread_t threads[2];
    if (tatcell_limit_init(&limit, 1, 1, 1000000) != 0) abort();
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, owner, NULL) != 0) abort();
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

static void shift(int by) {
    volatile int one = 1;
    printf("%d\n", one << by);
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "";
    if (strcmp(which, "race") == 0) race();
    else if (strcmp(which, "overflow") == 0) overflow();
    else if (strcmp(which, "two_owners") == 0) two_owners();
    else if (strcmp(which, "shift") == 0) shift(31 + argc);
    else return 2;
    printf("ran to its end\n");
    return 0;
}
