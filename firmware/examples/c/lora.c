/*
 * A LoRa node under a duty cycle: no more than 36 s of any hour, packets of 50 to 1500 ms.
 *
 * The node has a year to send as much as it may. Its clock has 32 bits of milliseconds, which wrap after 49.7 days;
 * some packets are aborted half way, and now and then the node sleeps for hours or weeks while the clock runs on. A
 * meter adds up every sliding hour to the millisecond; the exit status is 0 only if none is above 36 s.
 */
#include "board.h"
#include "tatcell_small.h"

enum { LONGEST = 1500, LAW = 36000, HOUR = 3600000 };

/* The recipe: one constant, one cell, three calls. */
static const tatcell_small32_limit_t law = TATCELL_SMALL32_DUTY(LAW, HOUR, LONGEST);
static tatcell_cell32_t radio;

/* Before a transmission: 0 = send now, else the ms until it may ask again. */
static uint32_t may_send(uint32_t now_ms, uint32_t airtime_ms) {
    return tatcell_small32_check(&radio, &law, now_ms, airtime_ms);
}

/* After one that was aborted: what was charged at `start_ms` and not sent is given back. */
static void aborted(uint32_t now_ms, uint32_t start_ms, uint32_t unsent_ms) {
    tatcell_small32_refund(&radio, &law, now_ms, start_ms, unsent_ms);
}

/* From a timer, or after a sleep: at least once per TATCELL_SMALL32_SWEEP_INTERVAL(law), which is three days. */
static void housekeeping(uint32_t now_ms) {
    tatcell_small32_idle(&radio, &law, now_ms);
}

/* The meter: transmissions of the hour that ends with the last one. */
enum { KEPT = 1024 };
static struct {
    uint64_t start;
    uint16_t ms;
} __attribute__((packed)) sent[KEPT];
static uint32_t oldest, next, held, most;

static void meter(uint64_t start, uint32_t ms) {
    const uint64_t end = start + ms;
    sent[next % KEPT].start = start;
    sent[next % KEPT].ms = (uint16_t)ms;
    next++;
    held += ms;
    while (end - sent[oldest % KEPT].start - sent[oldest % KEPT].ms >= HOUR)
        held -= sent[oldest++ % KEPT].ms;
    /* Of the oldest only what lies inside the hour. */
    const uint64_t ago = end - sent[oldest % KEPT].start;
    const uint32_t inside = held - (ago > HOUR ? (uint32_t)(ago - HOUR) : 0);
    if (inside > most)
        most = inside;
}

/* xorshift32: the same packets on each board. */
static uint32_t random_below(uint32_t n) {
    static uint32_t state = 0x5eed0401;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (state >> 16) * n >> 16;
}

int main(void) {
    const uint64_t year = 365ull * 24 * HOUR, boot = 0xFFFFFFFFull - 60000;
    uint64_t now = boot, swept = boot;
    uint32_t air = 0, packets = 0, breaks = 0, sleeps = 0, wrong = 0;
    while (now < boot + year) {
        const uint32_t airtime = 50 + random_below(LONGEST - 50 + 1);
        const uint64_t asked = now;
        uint32_t wait;
        while ((wait = may_send((uint32_t)now, airtime)) != 0) {
            if (wait >= TATCELL_SMALL32_REFUSED)
                board_exit(1);
            now += wait;
        }
        /* A second question is enough, and within the time that the whole burst takes. */
        wrong += now - asked > 170000;
        const uint64_t start = now;
        uint32_t took = airtime;
        if (random_below(50) == 0) {
            took = airtime >> 1;
            breaks++;
        }
        now += took;
        if (took != airtime)
            aborted((uint32_t)now, (uint32_t)start, airtime - took);
        meter(start, took);
        air += took;
        packets++;
        if (random_below(4000) == 0) {
            /* Hours, days or three weeks; the clock runs on, and wakes the node for its housekeeping. */
            sleeps++;
            for (uint32_t hours = 1u << random_below(10); hours > 0; hours--) {
                now += HOUR - random_below(60000);
                housekeeping((uint32_t)now);
            }
            swept = now;
        }
        if (now - swept > TATCELL_SMALL32_SWEEP_INTERVAL(law) / 2) {
            housekeeping((uint32_t)now);
            swept = now;
        }
    }
    print("packets ");
    print_u32(packets);
    print(" aborted ");
    print_u32(breaks);
    print(" sleeps ");
    print_u32(sleeps);
    print("\nms on air in the year ");
    print_u32(air);
    print("\nmost in any hour ");
    print_u32(most);
    print(" of 36000\nsweep interval, ms ");
    print_u32(TATCELL_SMALL32_SWEEP_INTERVAL(law));
    print("\n");
    wrong += most > LAW || most < LAW - LONGEST || packets < 100000;
    print(wrong ? "FAIL\n" : "PASS\n");
    return wrong != 0;
}
