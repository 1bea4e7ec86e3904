/* What include/tatcell_small.h must refuse: -Dname compiles one case, and tests/header.sh reads the names from here. */
#include "tatcell_small.h"
tatcell_small_slot_t slots[8], set[16];
#define VARIABLE(type, value) type f(unsigned n) { type x = value; return x; }

/* Limits that cannot be represented. */
#if defined rate_0
static const tatcell_small_limit_t x = TATCELL_SMALL_LIMIT(0, 1000, 5);
#elif defined burst_0
static const tatcell_small32_limit_t x = TATCELL_SMALL32_LIMIT(1, 1000, 0);
#elif defined what_32_bits_cannot_hold
static const tatcell_small32_limit_t x = TATCELL_SMALL32_LIMIT(1, 86400000000, 1);
#elif defined a_table_of_half_a_set
tatcell_small_table_t x = TATCELL_SMALL_TABLE(slots, 1, 1000, 5, TATCELL_FULL_DENY);
#elif defined a_duty_cycle_without_a_rest
static const tatcell_small32_limit_t x = TATCELL_SMALL32_DUTY(1500, 3600000, 1500);
#elif defined a_duty_cycle_above_its_window
static const tatcell_small_limit_t x = TATCELL_SMALL_DUTY(3600001, 3600000, 1500);

/* What is no constant: out of the window's range first, then inside it. */
#elif defined a_wrong_variable
VARIABLE(tatcell_small32_limit_t, TATCELL_SMALL32_LIMIT(1u, 604800000u * n, 5u))
#elif defined a_variable_period
VARIABLE(tatcell_small_limit_t, TATCELL_SMALL_LIMIT(10, 1000 * n, 5))
#elif defined a_variable_duty
VARIABLE(tatcell_small32_limit_t, TATCELL_SMALL32_DUTY(n, 3600000, 1500))
#elif defined a_variable_burst_of_a_table
VARIABLE(tatcell_small_table_t, TATCELL_SMALL_TABLE(set, 10, 1000, n, TATCELL_FULL_DENY))
#elif defined a_variable_log
int f(unsigned n) { unsigned l; return TATCELL_LOG_LIMITED(0, n, 1000, 3, &l); }
#elif defined a_variable_delay
VARIABLE(tatcell_small32_limit_t, TATCELL_SMALL32_LIMIT_SHAPED(10, 1000, 5, n))

/* The control, which must compile; and a verdict that nobody looks at, an error where warnings are. */
#else
VARIABLE(tatcell_small32_limit_t, TATCELL_SMALL32_LIMIT(10, 1000, 5 + 0 * sizeof n))
#ifdef VERDICT
void g(tatcell_cell32_t *c, const tatcell_small32_limit_t *l) { tatcell_small32_check(c, l, 0, 1); }
#endif
#endif
