/*
 * A firmware that polices packets per source, shapes one flow and limits its own log, in static memory.
 *
 * The clock is a millisecond counter that starts 5 s before it wraps. A packet source plays ten seconds: a polite
 * device, a flooding one, and a crowd of new addresses. The timer interrupt polices a flow of its own in the same
 * table while the main loop uses it. The report says what was sent and what passed; the exit status is 0 only if
 * every number is the exact one.
 */
#include "board.h"
#include "tatcell_small.h"

/* 10 packets a second, 5 at once, for every source. 64 slots of 8 bytes, in .bss. */
static tatcell_small_slot_t slots[64];
static tatcell_small_table_t table = TATCELL_SMALL_TABLE(slots, 10, 1000, 5, TATCELL_FULL_DENY);

/* 2000 bytes a second and 3000 at once, shaped: a frame waits up to 2 s. */
static const tatcell_small_limit_t shape = TATCELL_SMALL_LIMIT_SHAPED(2000, 1000, 3000, 2000);
static tatcell_cell_t shaper;

/* One line of log a second, 3 at once. */
static const tatcell_small32_limit_t log_limit = TATCELL_SMALL32_LIMIT(1, 1000, 3);
static tatcell_cell32_t log_cell;

enum { POLITE, FLOOD, CROWD, TIMER, SOURCES };
static const char *const names[SOURCES] = {"polite", "flood", "crowd", "timer"};
static volatile uint32_t sent[SOURCES], passed[SOURCES];
static volatile uint32_t now_ms = 0u - 5000u;

static int police(int source, uint32_t address, uint32_t now) {
    const uint8_t key[5] = {4, address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255};
    sent[source]++;
    if (tatcell_small_table_check(&table, now, key, sizeof key, 1) != 0)
        return 0;
    passed[source]++;
    return 1;
}

/* An interrupt that polices its own packets in the table that it has interrupted. */
void on_timer(uint32_t pc) {
    (void)pc;
    police(TIMER, 0x7F000001, now_ms);
}

static int expect(const char *what, uint32_t got, uint32_t wanted) {
    print(what);
    print(" ");
    print_u32(got);
    if (got != wanted) {
        print(", wanted ");
        print_u32(wanted);
    }
    print("\n");
    return got != wanted;
}

int main(void) {
    /* Eight bytes of this device's random source. An emulator has none: never use a constant in a product. */
    static const uint8_t seed[8] = {0x9d, 0x1c, 0x7f, 0x52, 0x0e, 0xa8, 0x33, 0x61};
    tatcell_small_table_seed(&table, seed);

    uint32_t lines = 0, logged = 0, wrong = 0;
    timer_start(2500, 2500);
    for (uint32_t ms = 0; ms < 10000; ms++) {
        const uint32_t now = now_ms;
        if ((ms & 127) == 0)
            police(POLITE, 0xC0000201, now); /* 7.8 a second */
        if (!police(FLOOD, 0xC0000202, now)) {
            lines++;
            if (tatcell_small32_check_unit(&log_cell, &log_limit, now) == 0)
                logged++;
        }
        if ((ms & 255) == 0)
            police(CROWD, 0x0A000000 + ms, now); /* a new address each time */
        now_ms = now + 1;
    }
    timer_stop();

    /* Ten frames of 500 bytes at once: six leave now, then one every 250 ms. */
    uint32_t shaped = 0, refused = 0, last = 0;
    for (uint32_t frame = 0; frame < 12; frame++) {
        const uint64_t wait = tatcell_small_reserve(&shaper, &shape, 1000000, 500);
        if (wait == TATCELL_SMALL_REFUSED) {
            refused++;
        } else {
            wrong += wait != (frame < 6 ? 0 : (frame - 5) * 250);
            last = (uint32_t)wait;
            shaped++;
        }
    }
    tatcell_small_table_sweep(&table, now_ms);

    print("source sent passed\n");
    for (int i = 0; i < SOURCES; i++) {
        print(names[i]);
        print(" ");
        print_u32(sent[i]);
        print(" ");
        print_u32(passed[i]);
        print("\n");
    }
    /* T = 100 ms, burst 5: five at once, then one each 100 ms of ten seconds. */
    wrong += expect("flood passed", passed[FLOOD], 5 + 99);
    wrong += expect("polite passed", passed[POLITE], 79);
    wrong += expect("crowd passed", passed[CROWD], 40);
    wrong += expect("log lines dropped by the limiter", lines - logged, lines - (3 + 9));
    wrong += expect("frames shaped", shaped, 12);
    wrong += expect("last frame waits, ms", last, 1500);
    wrong += expect("keys that met a full set", table.full, 0);
    wrong += sent[TIMER] < passed[TIMER] || passed[TIMER] < 5 || passed[TIMER] > 5 + 99;
    print(wrong ? "FAIL\n" : "PASS\n");
    return wrong != 0;
}
