/* Checks of a cell that a C compiler puts into the loop: tatcell_inline.h. */

#include "peer.h"

#include <stdlib.h>
#include <tatcell_inline.h>

static const char *why = "";

typedef struct bed {
    tatcell_cell_t cell;
    tatcell_limit_t limit;
    tatcell_inline_limit_t here;
    uint64_t now;
} bed;

#define RUN(name, check) \
    static uint64_t name(void *at, const struct peer_visit *visit) { \
        bed *b = at; \
        uint64_t passed = 0, now = b->now; \
        for (uint64_t i = 0; i < visit->n; i++) { \
            now += visit->dt; \
            passed += check(&b->cell, &b->here, now, 1, NULL) == TATCELL_PASS; \
        } \
        b->now = now; \
        return passed; \
    }

RUN(shared, tatcell_inline_cell_check)
RUN(exclusive, tatcell_inline_cell_check_exclusive)

void *peer_open(uint32_t keys, uint64_t period, uint64_t burst, uint32_t debt) {
    bed *b = keys == 1 ? aligned_alloc(128, (sizeof *b + 127) / 128 * 128) : NULL;
    if (!b) return why = "not enough memory for one cell", (void *)0;
    b->cell = (tatcell_cell_t)TATCELL_CELL_INIT;
    b->now = PEER_START;
    if (tatcell_limit_init(&b->limit, 1, period, burst) < 0 || tatcell_inline_limit_init(&b->here, &b->limit) < 0)
        return why = "no such limit", free(b), (void *)0;
    while (debt--)
        if (tatcell_cell_check(&b->cell, &b->limit, b->now, 1, NULL) != TATCELL_PASS)
            return why = "more debt than the burst", free(b), (void *)0;
    return b;
}

peer_run *peer_kind(void *at, const char *kind) {
    (void)at;
    if (strcmp(kind, "shared") == 0) return shared;
    if (strcmp(kind, "exclusive") == 0) return exclusive;
    return why = "no such kind", (peer_run *)0;
}

const char *peer_why(void) {
    return why;
}
