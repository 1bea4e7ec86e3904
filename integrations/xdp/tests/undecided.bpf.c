/* undecided.bpf.c - the policer, whose limit of all never gets a verdict, as if other CPUs won every race for its word:
 * real ones lose too seldom for a test. */
#include <tatcell_bpf.h>
#define tatcell_bpf_cell_check(cell, limit, now, cost, retry_after) \
    ((void)(cell), (void)(limit), (void)(cost), *(retry_after) = 0, TATCELL_CONTENDED)
#include "../policer.bpf.c"
