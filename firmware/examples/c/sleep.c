/*
 * A debt that outlasts resets and a sleep that stops the clock.
 *
 * A radio under a duty cycle uses its burst up and goes down: by a reset after which the clock starts at 0 while an RTC
 * has run on, by one without an RTC, by a deep sleep. Each time the debt is saved before and set afterwards, and the
 * wait is the one that a device that ran on would have. A fresh cell would send at once.
 */
#include "expect.h"
#include "tatcell_small.h"

static const tatcell_small32_limit_t law = TATCELL_SMALL32_DUTY(36000, 3600000, 1500);
static tatcell_cell32_t radio;

/* What is kept: in a product in backup registers of the RTC, or in RAM that no start-up clears. */
enum { MAGIC = 0x7A7CE111 };
struct kept {
    uint32_t magic, boots, rtc_ms, saved_at, debt, wrong;
};
#define KEPT ((volatile struct kept *)backup)

/* The recipe: before the device goes down, */
static void save(uint32_t now_ms, uint32_t rtc_ms) {
    KEPT->debt = tatcell_small32_debt(&radio, &law, now_ms);
    KEPT->saved_at = rtc_ms;
}

/* and after it came up, under a clock that may have started anew. Without an RTC nothing counts as asleep: the debt is
   then too long by the time that the reset took, and never too short. */
static void restore(uint32_t now_ms, uint32_t rtc_ms) {
    const uint32_t asleep = rtc_ms - KEPT->saved_at, debt = KEPT->debt;
    tatcell_small32_set_debt(&radio, &law, now_ms, debt > asleep ? debt - asleep : 0);
}

static uint32_t wait_for(uint32_t now_ms, uint32_t airtime_ms) {
    return tatcell_small32_check(&radio, &law, now_ms, airtime_ms);
}

/* The stand-in for an RTC: it runs on over a reset. */
static void rtc_runs(uint32_t ms) {
    KEPT->rtc_ms = KEPT->rtc_ms + ms;
}

int main(void) {
    uint32_t wrong = 0;
    if (KEPT->magic != MAGIC) {
        KEPT->magic = MAGIC;
        KEPT->boots = KEPT->rtc_ms = KEPT->wrong = 0;
    }
    const uint32_t boot = KEPT->boots;
    KEPT->boots = boot + 1;
    if (boot == 0) {
        wrong += expect("power on: a packet of 1500 ms waits", wait_for(0, 1500), 0);
        /* T is 104.375 ms: 1500 ms are a debt of 156 562.5 ms, of which 1600 have drained. */
        wrong += expect("after 1600 ms the next one waits", wait_for(1600, 1500), 154963);
        save(1600, KEPT->rtc_ms);
        rtc_runs(100000);
    } else if (boot == 1) {
        /* The clock starts at 0, the cell is zeroed: as it is, it would send at once. */
        restore(0, KEPT->rtc_ms);
        wrong += expect("100 s later by the RTC it waits", wait_for(0, 1500), 54963);
        save(963, KEPT->rtc_ms);
    } else if (boot == 2) {
        restore(7, KEPT->rtc_ms);
        wrong += expect("after a reset that no clock measured", wait_for(7, 1500), 54000);
        /* Deep sleep that stops the tick at 1007: no reset, the cell is as it was, but the clock stood still. */
        save(1007, KEPT->rtc_ms);
        rtc_runs(50000);
        restore(1007, KEPT->rtc_ms);
        wrong += expect("after 50 s of deep sleep", wait_for(1007, 1500), 3000);
        save(1007, KEPT->rtc_ms);
        rtc_runs(3600000);
    } else {
        restore(5, KEPT->rtc_ms);
        wrong += expect("an hour later", wait_for(5, 1500), 0);
        /* Backup memory that holds garbage: a full debt, and no more. */
        KEPT->debt = 0xFFFFFFF0;
        restore(5, KEPT->saved_at);
        wrong += expect("garbage is a full debt", tatcell_small32_debt(&radio, &law, 5), 156563);
        KEPT->wrong = KEPT->wrong + wrong;
        print(KEPT->wrong ? "FAIL\n" : "PASS\n");
        return KEPT->wrong != 0;
    }
    KEPT->wrong = KEPT->wrong + wrong;
    board_reset();
}
