/*
 * Main loop and timer interrupt use one cell, or one table, at once. In each round they ask for more than the burst
 * holds; the units admitted must be the burst exactly. The timer's period differs from round to round, so that the
 * interrupt lands on every instruction (run it with -icount: one instruction is a fixed time).
 *
 * With TRACE one round runs without the timer, for a trace of the instructions that could be interrupted.
 *
 * VARIANT: CELL32, CELL32_WEIGHTED, CELL64, CELL64_WEIGHTED, TABLE; and the controls that must fail, where both
 * contexts use the functions for one owner: CELL64_PLAIN, TABLE_PLAIN.
 */
#include "board.h"
#include "tatcell_small.h"

#define CELL32 1
#define CELL32_WEIGHTED 2
#define CELL64 3
#define CELL64_WEIGHTED 4
#define TABLE 5
#define CELL64_PLAIN 6
#define TABLE_PLAIN 7

#ifdef TRACE
enum { ROUNDS = 1 };
#else
enum { ROUNDS = 400 };
#endif
enum { BURST = 24, SOON = 20, PERIOD = 400, KEYS = 2 };
#define T (1 << 20)

static const tatcell_small32_limit_t limit32 = TATCELL_SMALL32_LIMIT(1, T, BURST);
static const tatcell_small_limit_t limit64 = TATCELL_SMALL_LIMIT(1, T, BURST);
static tatcell_small_slot_t slots[64];
static tatcell_small_table_t table = TATCELL_SMALL_TABLE(slots, 1, T, BURST, TATCELL_FULL_DENY);
static tatcell_cell_t cell64;
static tatcell_cell32_t cell32;

/* Written by one context each: main, interrupt. */
static volatile uint32_t admitted[2][KEYS];
static volatile uint32_t interrupts, hits;
static uint8_t hit[2048];
static uint32_t round_number;
extern const char library_start[], library_end[];

/* One request; the interrupt's clock is 7 ticks ahead, as if main had been stopped after reading it. */
static uint32_t ask(uint32_t now, uint32_t key, uint32_t cost) {
    const uint32_t name = round_number * KEYS + key;
    const uint8_t bytes[4] = {name & 255, name >> 8 & 255, name >> 16 & 255, name >> 24};
    (void)bytes;
    (void)key;
    (void)cost;
    (void)limit32;
    (void)limit64;
#if VARIANT == CELL32
    return tatcell_small32_check_unit(&cell32, &limit32, now) == 0;
#elif VARIANT == CELL32_WEIGHTED
    return tatcell_small32_check(&cell32, &limit32, now, cost) == 0 ? cost : 0;
#elif VARIANT == CELL64
    return tatcell_small_check_unit(&cell64, &limit64, now) == 0;
#elif VARIANT == CELL64_WEIGHTED
    return tatcell_small_check(&cell64, &limit64, now, cost) == 0 ? cost : 0;
#elif VARIANT == TABLE
    return tatcell_small_table_check(&table, now, bytes, 4, 1) == 0;
#elif VARIANT == CELL64_PLAIN
    return tatcell_small_check_exclusive(&cell64, &limit64, now, 1) == 0;
#elif VARIANT == TABLE_PLAIN
    return tatcell_small_table_check_exclusive(&table, now, bytes, 4, 1) == 0;
#endif
}

void on_timer(uint32_t pc) {
    const uint32_t at = (pc - (uint32_t)library_start) / 2;
    if (pc >= (uint32_t)library_start && pc < (uint32_t)library_end && at < sizeof hit && !hit[at]) {
        hit[at] = 1;
        hits++;
    }
    const uint32_t key = interrupts++ % KEYS;
    admitted[1][key] += ask(1007, key, 3);
}

/* Marks, in a trace, where interrupts begin. */
__attribute__((noinline)) void window(void) {
    __asm__ volatile("");
}

int main(void) {
    static const uint8_t seed[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const uint32_t keys = VARIANT == TABLE || VARIANT == TABLE_PLAIN ? KEYS : 1;
    uint32_t wrong = 0, most = 0, idle = 0, all = 0;
    tatcell_small_table_seed(&table, seed);
    for (round_number = 0; round_number < ROUNDS; round_number++) {
        tatcell_small_reset(&cell64);
        tatcell_small32_reset(&cell32);
        for (int i = 0; i < 64; i++)
            slots[i].tag = slots[i].tat = 0;
        for (uint32_t key = 0; key < KEYS; key++)
            admitted[0][key] = admitted[1][key] = 0;
        interrupts = 0;
#ifndef TRACE
        timer_start(SOON + round_number % 256, PERIOD + round_number);
#endif
        /* So that the soonest interrupts come before the first request, and later ones inside it. */
        for (volatile int i = 0; i < 8;)
            i++;
        window();
        for (uint32_t i = 0; i < 2 * BURST * keys; i++)
            admitted[0][i % keys] += ask(1000, i % keys, 2);
        timer_stop();
        /* What the costs of 2 and 3 left over. */
        for (uint32_t key = 0; key < keys; key++)
            for (int i = 0; i < 3; i++)
                admitted[0][key] += ask(1007, key, 1);
        uint32_t bad = 0;
        for (uint32_t key = 0; key < keys; key++) {
            const uint32_t total = admitted[0][key] + admitted[1][key] + (keys == 1 ? admitted[1][1] : 0);
            bad |= total != BURST;
            if (total > most)
                most = total;
        }
        wrong += bad;
        idle += interrupts == 0;
        all += interrupts;
    }
    print("rounds ");
    print_u32(ROUNDS);
    print(" wrong ");
    print_u32(wrong);
    print(" most ");
    print_u32(most);
    print(" of ");
    print_u32(BURST);
    print(" interrupts ");
    print_u32(all);
    print(" quiet_rounds ");
    print_u32(idle);
    print(" instructions_hit ");
    print_u32(hits);
    print("\n");
    /* Where: halfwords from the start of the library. */
    for (uint32_t at = 0; at < sizeof hit; at++)
        if (hit[at]) {
            print("hit ");
            print_u32(at);
            print("\n");
        }
    return wrong != 0 || idle != 0;
}
