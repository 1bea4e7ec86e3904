/*
 * Calls each function of the library once between two marks, for the instruction counts (from a trace of the
 * emulator) and the stack depth (from a painted stack). tests/budget.sh and tests/steps.py read the lines
 * "case NAME stack BYTES answer N" and the trace.
 */
#include "board.h"
#include "tatcell_small.h"

/* 10 a second, 5 at once, ticks of 1 ms: the emission interval needs a shift of 10 in 64 bits, none in 32 bits. */
static const tatcell_small_limit_t limit = TATCELL_SMALL_LIMIT(10, 1000, 5);
static const tatcell_small32_limit_t limit32 = TATCELL_SMALL32_LIMIT(10, 1000, 5);
/* 3 a second: no whole number of ticks, so the 32-bit form shifts too. */
static const tatcell_small32_limit_t thirds32 = TATCELL_SMALL32_LIMIT(3, 1000, 5);
/* As the first two, and a reservation waits up to a second. */
static const tatcell_small_limit_t shaped = TATCELL_SMALL_LIMIT_SHAPED(10, 1000, 5, 1000);
static const tatcell_small32_limit_t shaped32 = TATCELL_SMALL32_LIMIT_SHAPED(10, 1000, 5, 1000);
/* Bytes: 100 000 a second, 3000 at once, ticks of 1 us. */
static const tatcell_small_limit_t bytes = TATCELL_SMALL_LIMIT(100000, 1000000, 3000);
static const tatcell_small32_limit_t bytes32 = TATCELL_SMALL32_LIMIT(100000, 1000000, 3000);
static tatcell_small_slot_t slots[64];
static tatcell_small_table_t table = TATCELL_SMALL_TABLE(slots, 10, 1000, 5, TATCELL_FULL_INHERIT);
static tatcell_cell_t cell;
static tatcell_cell32_t cell32;
static tatcell_small_log_t line;
static tatcell_small_limit_t made;
static tatcell_small32_limit_t made32;
/* Not constants for the compiler, as in a program. */
static volatile uint64_t now64 = 1000000;
static volatile uint32_t now32 = 1000000;
static const uint8_t key[4] = {192, 0, 2, 1};

__attribute__((noinline)) void mark_begin(void) {
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void mark_end(void) {
    __asm__ volatile("" ::: "memory");
}

void on_timer(uint32_t pc) {
    (void)pc;
}

enum { PAINT = 256 };
/* Different in each word, so that a register that still holds one does not pass for paint when it is pushed. */
#define PAINTED(i) (0xA5A50000u + (uint32_t)(i))

/* sp is that of this frame: what lies below belongs to the call. */
#ifdef __riscv
#define READ_SP "mv %0, sp"
#else
#define READ_SP "mov %0, sp"
#endif
#define SP() __extension__({ uint32_t sp_; __asm__ volatile(READ_SP : "=r"(sp_)); (volatile uint32_t *)sp_; })

#define CASE(name, call)                                 \
    do {                                                 \
        print("case " name " stack ");                   \
        volatile uint32_t *const sp = SP();              \
        for (int i = 1; i <= PAINT; i++)                 \
            sp[-i] = PAINTED(i);                         \
        mark_begin();                                    \
        const uint64_t answer = (call);                  \
        mark_end();                                      \
        int deep = PAINT;                                \
        while (deep > 0 && sp[-deep] == PAINTED(deep))   \
            deep--;                                      \
        print_u32(4 * (uint32_t)deep);                   \
        print(" answer ");                               \
        print_u32((uint32_t)answer);                     \
        print(" ");                                      \
        print(answer >> 32 ? "high\n" : "low\n");        \
    } while (0)

static void fresh(void) {
    tatcell_small_reset(&cell);
    tatcell_small32_reset(&cell32);
}

/* A debt of some units. */
static void owe(uint32_t units) {
    fresh();
    if (tatcell_small_check(&cell, &limit, now64, units) != 0 ||
        tatcell_small32_check(&cell32, &limit32, now32, units) != 0)
        board_exit(1);
}

static void spent(void) {
    owe(5);
}

/* What a busy cell looks like. */
static void busy(void) {
    owe(1);
}

static void owe_bytes(void) {
    fresh();
    if (tatcell_small_check(&cell, &bytes, now64, 1500) != 0 ||
        tatcell_small32_check(&cell32, &bytes32, now32, 1500) != 0)
        board_exit(1);
}

int main(void) {
    static const uint8_t seed[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    busy();
    CASE("tatcell_small_check conforming", tatcell_small_check(&cell, &limit, now64, 1));
    spent();
    CASE("tatcell_small_check denied", tatcell_small_check(&cell, &limit, now64, 1));
    owe_bytes();
    CASE("tatcell_small_check:1500 conforming", tatcell_small_check(&cell, &bytes, now64, 1500));
    CASE("tatcell_small_check:1500 denied", tatcell_small_check(&cell, &bytes, now64, 1500));
    CASE("tatcell_small_check:4000 never", tatcell_small_check(&cell, &bytes, now64, 4000));
    busy();
    CASE("tatcell_small_check_unit conforming", tatcell_small_check_unit(&cell, &limit, now64));
    spent();
    CASE("tatcell_small_check_unit denied", tatcell_small_check_unit(&cell, &limit, now64));
    busy();
    CASE("tatcell_small_check_exclusive conforming", tatcell_small_check_exclusive(&cell, &limit, now64, 1));
    spent();
    CASE("tatcell_small_check_exclusive denied", tatcell_small_check_exclusive(&cell, &limit, now64, 1));
    busy();
    CASE("tatcell_small_reserve conforming", tatcell_small_reserve(&cell, &shaped, now64, 1));
    spent();
    CASE("tatcell_small_reserve waiting", tatcell_small_reserve(&cell, &shaped, now64, 1));
    CASE("tatcell_small_reserve denied", tatcell_small_reserve(&cell, &limit, now64, 1));
    busy();
    CASE("tatcell_small32_check_unit conforming", tatcell_small32_check_unit(&cell32, &limit32, now32));
    spent();
    CASE("tatcell_small32_check_unit denied", tatcell_small32_check_unit(&cell32, &limit32, now32));
    busy();
    CASE("tatcell_small32_check conforming", tatcell_small32_check(&cell32, &limit32, now32, 1));
    spent();
    CASE("tatcell_small32_check denied", tatcell_small32_check(&cell32, &limit32, now32, 1));
    owe_bytes();
    CASE("tatcell_small32_check:1500 conforming", tatcell_small32_check(&cell32, &bytes32, now32, 1500));
    CASE("tatcell_small32_check:1500 denied", tatcell_small32_check(&cell32, &bytes32, now32, 1500));
    busy();
    CASE("tatcell_small32_reserve conforming", tatcell_small32_reserve(&cell32, &shaped32, now32, 1));
    spent();
    CASE("tatcell_small32_reserve waiting", tatcell_small32_reserve(&cell32, &shaped32, now32, 1));
    CASE("tatcell_small32_reserve denied", tatcell_small32_reserve(&cell32, &limit32, now32, 1));
    fresh();
    if (tatcell_small32_check(&cell32, &thirds32, now32, 1) != 0)
        return 1;
    CASE("tatcell_small32_check_unit:shifted conforming", tatcell_small32_check_unit(&cell32, &thirds32, now32));

    busy();
    CASE("tatcell_small_charge conforming", tatcell_small_charge(&cell, &limit, now64, 2));
    CASE("tatcell_small_charge denied", tatcell_small_charge(&cell, &limit, now64, 5));
    CASE("tatcell_small_refund conforming", tatcell_small_refund(&cell, &limit, now64, now64, 2));
    uint64_t place = tatcell_small_reserve(&cell, &shaped, now64, 2);
    CASE("tatcell_small_cancel conforming", tatcell_small_cancel(&cell, &shaped, now64, now64, place, 2));
    CASE("tatcell_small_debt read", tatcell_small_debt(&cell, &limit, now64));
    CASE("tatcell_small_set_debt set", (tatcell_small_set_debt(&cell, &limit, now64, 300), 0));
    busy();
    CASE("tatcell_small32_charge conforming", tatcell_small32_charge(&cell32, &limit32, now32, 2));
    CASE("tatcell_small32_charge denied", tatcell_small32_charge(&cell32, &limit32, now32, 5));
    CASE("tatcell_small32_refund conforming", tatcell_small32_refund(&cell32, &limit32, now32, now32, 2));
    uint32_t place32 = tatcell_small32_reserve(&cell32, &shaped32, now32, 2);
    CASE("tatcell_small32_cancel conforming", tatcell_small32_cancel(&cell32, &shaped32, now32, now32, place32, 2));
    CASE("tatcell_small32_debt read", tatcell_small32_debt(&cell32, &limit32, now32));
    CASE("tatcell_small32_set_debt set", (tatcell_small32_set_debt(&cell32, &limit32, now32, 300), 0));
    uint32_t left_out = 0;
    CASE("tatcell_small_log conforming", tatcell_small_log(&line, &limit32, now32, &left_out));
    spent();
    line.cell = cell32;
    CASE("tatcell_small_log denied", tatcell_small_log(&line, &limit32, now32, &left_out));
    CASE("tatcell_small_limit_init made", (uint32_t)tatcell_small_limit_init(&made, 100000, 1000000, 3000, 20000));
    CASE("tatcell_small32_limit_init made", (uint32_t)tatcell_small32_limit_init(&made32, 11520, 1000, 64, 0));
    CASE("tatcell_small_section_check works", (uint32_t)tatcell_small_section_check());

    tatcell_small_table_seed(&table, seed);
    CASE("tatcell_small_table_check:new conforming", tatcell_small_table_check(&table, now32, key, 4, 1));
    CASE("tatcell_small_table_check:first conforming", tatcell_small_table_check(&table, now32, key, 4, 1));
    CASE("tatcell_small_table_check:first denied", tatcell_small_table_check(&table, now32, key, 4, 4));
    /* Move the key to the last slot of its set, others before it: the longest search. */
    uint32_t at = 0;
    while (slots[at].tag == 0)
        at++;
    const tatcell_small_slot_t mine = slots[at];
    for (uint32_t i = 0; i < 15; i++) {
        slots[at + i].tag = i + 1;
        slots[at + i].tat = now32 + 200;
    }
    slots[at + 15] = mine;
    CASE("tatcell_small_table_check:last conforming", tatcell_small_table_check(&table, now32, key, 4, 1));
    CASE("tatcell_small_table_check:last denied", tatcell_small_table_check(&table, now32, key, 4, 4));
    slots[at + 15].tag = 99;
    CASE("tatcell_small_table_check:full conforming", tatcell_small_table_check(&table, now32, key, 4, 1));
    CASE("tatcell_small_table_check_exclusive:first conforming",
         tatcell_small_table_check_exclusive(&table, now32, key, 4, 1));
    CASE("tatcell_small_table_hash 4", tatcell_small_table_hash(&table, key, 4));
    return 0;
}
