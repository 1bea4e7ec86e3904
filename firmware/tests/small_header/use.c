/* What include/tatcell_small.h offers, as static data and as calls: tests/header.sh compiles it as each language. */
#include "tatcell_small.h"
static const tatcell_small_limit_t limit = TATCELL_SMALL_LIMIT_SHAPED(10, 1000000, 5, 20000);
static const tatcell_small32_limit_t limit32 = TATCELL_SMALL32_LIMIT(3, 1000, 5);
static const tatcell_small_limit_t duty = TATCELL_SMALL_DUTY(36000, 3600000, 1500);
static const tatcell_small32_limit_t duty32 = TATCELL_SMALL32_DUTY(36000, 3600000, 1500);
static tatcell_small_slot_t slots[64];
tatcell_small_table_t table = TATCELL_SMALL_TABLE(slots, 10, 1000, 5, TATCELL_FULL_INHERIT);
tatcell_cell_t cell;
tatcell_cell32_t cell32;
uint64_t ask(uint64_t now) {
    const uint8_t key[4] = {1, 2, 3, 4};
    return tatcell_small_check(&cell, &limit, now, 1) + tatcell_small32_check(&cell32, &limit32, (uint32_t)now, 1) +
           tatcell_small_table_check(&table, (uint32_t)now, key, sizeof key, 1) +
           TATCELL_SMALL32_SWEEP_INTERVAL(limit32) + TATCELL_SMALL32_SPAN(limit32) +
           tatcell_small_reserve(&cell, &duty, now, 50) + tatcell_small32_charge(&cell32, &duty32, 0, 50);
}
void (*write_line)(uint32_t left_out);
void line(uint32_t now) {
    uint32_t left_out;
    if (TATCELL_LOG_LIMITED(now, 2, 1000, 3, &left_out))
        write_line(left_out);
}
