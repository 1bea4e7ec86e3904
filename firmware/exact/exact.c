/*
 * Main loop and timer interrupt use one cell, or one table, at once. In each round they ask for more than the burst
 * holds; the units admitted must be the burst exactly. The timer's period differs from round to round, so that the
 * interrupt lands on every instruction (run it with -icount: one instruction is a fixed time).
 *
 * Reservations go on for DELAYED units that wait: each of these has a departure of its own. Of log lines each is
 * written, or told by one that is, or still counted.
 *
 * Linked with a symbol `traced` it runs one round, without the timer, for a trace of the instructions that could be
 * interrupted: the same code at the same addresses.
 *
 * VARIANT: CELL32, CELL32_WEIGHTED, CELL64, CELL64_WEIGHTED, TABLE, RESERVE32, RESERVE64, ADJUST32, CANCEL32, LOG; and
 * the controls that must fail, where both contexts use the functions for one owner: CELL64_PLAIN, TABLE_PLAIN.
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
#define RESERVE32 8
#define RESERVE64 9
#define ADJUST32 10
#define LOG 11
#define CANCEL32 12

extern const char traced[] __attribute__((weak));
/* 256 times 4: see main. */
enum { ROUNDS = 1024 };
enum { BURST = 24, SOON = 20, PERIOD = 400, KEYS = 2 };
#define T (1 << 20)
#if VARIANT == RESERVE32 || VARIANT == RESERVE64
enum { DELAYED = 4, LEFT = 0 };
#elif VARIANT == CANCEL32
/* Main gives up what waits, the interrupt keeps it. */
enum { DELAYED = 24, LEFT = 0 };
#elif VARIANT == ADJUST32
/* A request needs three units for a moment, of which it keeps one. */
enum { DELAYED = 0, LEFT = 2 };
#else
enum { DELAYED = 0, LEFT = 0 };
#endif

static const tatcell_small32_limit_t limit32 = TATCELL_SMALL32_LIMIT_SHAPED(1, T, BURST, DELAYED * T);
static const tatcell_small_limit_t limit64 = TATCELL_SMALL_LIMIT_SHAPED(1, T, BURST, DELAYED * T);
static tatcell_small_slot_t slots[64];
static tatcell_small_table_t table = TATCELL_SMALL_TABLE(slots, 1, T, BURST, TATCELL_FULL_DENY);
static tatcell_cell_t cell64;
static tatcell_cell32_t cell32;
static tatcell_small_log_t line;

/* Written by one context each: main, interrupt. */
enum { MAIN, INTERRUPT, CONTEXTS };
static volatile uint32_t admitted[CONTEXTS][KEYS];
/* Units that leave at each instant after the burst; lines that were asked for, and told as left out. */
static volatile uint32_t departures[CONTEXTS][DELAYED + 1], asked[CONTEXTS], told[CONTEXTS];
static volatile uint32_t interrupts, hits;
static uint8_t hit[2048];
static uint32_t round_number;
extern const char library_start[], library_end[];

/* One request; the interrupt's clock is 7 ticks ahead, as if main had been stopped after reading it. */
static uint32_t ask(int who, uint32_t now, uint32_t key, uint32_t cost) {
    const uint32_t name = round_number * KEYS + key;
    const uint8_t bytes[4] = {name & 255, name >> 8 & 255, name >> 16 & 255, name >> 24};
    (void)bytes;
    (void)key;
    (void)cost;
    (void)limit32;
    (void)limit64;
    asked[who]++;
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
#elif VARIANT == RESERVE32 || VARIANT == RESERVE64
#if VARIANT == RESERVE32
    const uint32_t wait = tatcell_small32_reserve(&cell32, &limit32, now, 1);
#else
    const uint32_t wait = (uint32_t)tatcell_small_reserve(&cell64, &limit64, now, 1);
#endif
    if (wait >= TATCELL_SMALL32_REFUSED)
        return 0;
    /* What does not wait leaves by now, and is counted by the units admitted. */
    const uint32_t at = (now + wait - 1000) / T;
    if (at <= DELAYED)
        departures[who][at]++;
    return 1;
#elif VARIANT == ADJUST32
    /* A transmission that is charged, and of which 2 units are given back. */
    if (tatcell_small32_check(&cell32, &limit32, now, 3) != 0)
        return 0;
    const uint32_t back = tatcell_small32_refund(&cell32, &limit32, now, now, 2);
    return back == 2 * T ? 1 : 3;
#elif VARIANT == CANCEL32
    const uint32_t wait = tatcell_small32_reserve(&cell32, &limit32, now, 1);
    if (wait >= TATCELL_SMALL32_REFUSED)
        return 0;
    if (wait == 0 || cost != 2)
        return 1;
    /* A place that waits is free again, unless the interrupt has taken one behind it. */
    const uint32_t back = tatcell_small32_cancel(&cell32, &limit32, now, now, wait, 1);
    return back == T ? 0 : back == 0 ? 1 : 100;
#elif VARIANT == LOG
    uint32_t count;
    if (!tatcell_small_log(&line, &limit32, now, &count))
        return 0;
    told[who] += count;
    return 1;
#endif
}

void on_timer(uint32_t pc) {
    const uint32_t at = (pc - (uint32_t)library_start) / 2;
    if (pc >= (uint32_t)library_start && pc < (uint32_t)library_end && at < sizeof hit && !hit[at]) {
        hit[at] = 1;
        hits++;
    }
    const uint32_t key = interrupts++ % KEYS;
    admitted[INTERRUPT][key] += ask(INTERRUPT, 1007, key, 3);
}

/* Marks, in a trace, where interrupts begin. */
__attribute__((noinline)) void window(void) {
    __asm__ volatile("");
}

int main(void) {
    static const uint8_t seed[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const uint32_t keys = VARIANT == TABLE || VARIANT == TABLE_PLAIN ? KEYS : 1;
    const uint32_t rounds = traced ? 1 : ROUNDS;
    uint32_t wrong = 0, most = 0, idle = 0, all = 0;
    tatcell_small_table_seed(&table, seed);
    for (round_number = 0; round_number < rounds; round_number++) {
        tatcell_small_reset(&cell64);
        tatcell_small32_reset(&cell32);
        for (int i = 0; i < 64; i++)
            slots[i].tag = slots[i].tat = 0;
        line.cell = (tatcell_cell32_t){0};
        line.left_out = 0;
        for (int who = 0; who < CONTEXTS; who++) {
            for (uint32_t key = 0; key < KEYS; key++)
                admitted[who][key] = 0;
            for (int at = 0; at <= DELAYED; at++)
                departures[who][at] = 0;
            asked[who] = told[who] = 0;
        }
        interrupts = 0;
        if (rounds != 1)
            timer_start(SOON + round_number % 256, PERIOD + round_number % 512);
        /* So that the soonest interrupts come before the first request, and later ones inside it. */
        for (volatile int i = 0; i < 8;)
            i++;
        /* An instruction may lie between two ticks of the timer: not in all rounds, so. Each of the 256 first periods
           meets each of the four delays in 1024 rounds. */
        for (uint32_t i = 0; i < (round_number + (round_number >> 8)) % 4; i++)
            __asm__ volatile("nop");
        window();
        for (uint32_t i = 0; i < 2 * BURST * keys; i++)
            admitted[MAIN][i % keys] += ask(MAIN, 1000, i % keys, 2);
        timer_stop();
        /* What the costs of 2 and 3, and places given up, left over. */
        for (uint32_t key = 0; key < keys; key++)
            for (int i = 0; i < 3 + DELAYED; i++)
                admitted[MAIN][key] += ask(MAIN, 1007, key, 1);
        uint32_t bad = 0;
        for (uint32_t key = 0; key < keys; key++) {
            const uint32_t total =
                admitted[MAIN][key] + admitted[INTERRUPT][key] + (keys == 1 ? admitted[INTERRUPT][1] : 0);
            bad |= total != BURST + DELAYED - LEFT;
            if (total > most)
                most = total;
        }
#if VARIANT != CANCEL32
        for (int at = 1; at <= DELAYED; at++)
            bad |= departures[MAIN][at] + departures[INTERRUPT][at] != 1;
#endif
#if VARIANT == LOG
        bad |= asked[MAIN] + asked[INTERRUPT] - BURST != told[MAIN] + told[INTERRUPT] + line.left_out;
#endif
        wrong += bad;
        idle += interrupts == 0;
        all += interrupts;
    }
    print("rounds ");
    print_u32(rounds);
    print(" wrong ");
    print_u32(wrong);
    print(" most ");
    print_u32(most);
    print(" of ");
    print_u32(BURST + DELAYED - LEFT);
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
