/*
 * Shaping a UART and a CAN bus, limits that come from a configuration, and a log that does not flood.
 *
 * Each flow reserves its departure and sends then; what is not reserved in time is refused. The figures are exact.
 */
#include "expect.h"
#include "tatcell_small.h"

/* A UART of 115 200 baud carries 11 520 bytes a second: what is handed to it never overruns a FIFO of 64 bytes. Ticks
   are ms: a unit is 0.087 of one, so the span is 262 s, and the cell is handed to _idle once in that time. */
static const tatcell_small32_limit_t uart_limit = TATCELL_SMALL32_LIMIT_SHAPED(11520, 1000, 64, 50);
static tatcell_cell32_t uart;

/* A third of a CAN bus of 500 kbit/s, in bits and us: frames of 8 bytes have at most 135 bits. Two at once. */
static const tatcell_small32_limit_t can_limit = TATCELL_SMALL32_LIMIT_SHAPED(166000, 1000000, 270, 5000);
static tatcell_cell32_t can;

struct flow {
    uint32_t sent, refused, longest_wait;
};

/* Offers a frame each `every` ticks, for `ticks`. */
static struct flow offer(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t units, uint32_t every,
                         uint32_t ticks) {
    struct flow flow = {0, 0, 0};
    for (uint32_t now = 0; now < ticks; now += every) {
        const uint32_t wait = tatcell_small32_reserve(cell, limit, now, units);
        if (wait >= TATCELL_SMALL32_REFUSED) {
            flow.refused++;
        } else {
            flow.sent++;
            if (wait > flow.longest_wait)
                flow.longest_wait = wait;
        }
    }
    return flow;
}

int main(void) {
    uint32_t wrong = 0;
    /* 16 bytes each ms are 16 000 a second. 64 at once and 10.05 s of 11 520 a second are 7240 frames; the emission
       interval is rounded up by 0.07 %. */
    const struct flow bytes = offer(&uart, &uart_limit, 16, 1, 10000);
    wrong += expect("UART frames of 16 bytes in 10 s", bytes.sent, 7235);
    wrong += expect("UART longest wait, ms", bytes.longest_wait, 50);
    wrong += expect("UART frames refused", bytes.refused, 10000 - bytes.sent);
    wrong += expect("UART span, ms", TATCELL_SMALL32_SPAN(uart_limit), 257992);

    /* A frame each 300 us would be 450 kbit/s. */
    const struct flow frames = offer(&can, &can_limit, 135, 300, 3000000);
    wrong += expect("CAN frames of 135 bits in 3 s", frames.sent, 3694);
    wrong += expect("CAN longest wait, us", frames.longest_wait, 5000);
    wrong += expect("CAN frames refused", frames.refused, 10000 - frames.sent);

    /* From a configuration: checked, and refused where it is wrong. */
    static tatcell_small32_limit_t configured;
    static tatcell_cell32_t cell;
    wrong += tatcell_small32_limit_init(&configured, 0, 1000, 5, 0) != TATCELL_ERR_RATE;
    wrong += tatcell_small32_limit_init(&configured, 10, 0, 5, 0) != TATCELL_ERR_PERIOD;
    wrong += tatcell_small32_limit_init(&configured, 10, 1000, 0, 0) != TATCELL_ERR_BURST;
    wrong += tatcell_small32_limit_init(&configured, UINT64_MAX, 1, 1, 0) != TATCELL_ERR_REPRESENT;
    wrong += tatcell_small32_limit_init(&configured, 1, 1u << 30, 1, 0) != TATCELL_ERR_HORIZON;
    wrong += expect("untouched by what was refused", configured.t, 0);
    wrong += tatcell_small32_limit_init(&configured, 10, 1000, 5, 0) != 0;
    wrong += expect("configured: five pass", tatcell_small32_check(&cell, &configured, 0, 5), 0);
    wrong += expect("configured: the next waits, ms", tatcell_small32_check(&cell, &configured, 0, 1), 100);
    wrong += tatcell_small_section_check() != 0;

    /* A fault that repeats each ms: two lines a second, three at once, and each tells of those before it. */
    uint32_t lines = 0, left_out = 0, told = 0;
    for (uint32_t now = 0; now < 10000; now++) {
        if (TATCELL_LOG_LIMITED(now, 2, 1000, 3, &left_out)) {
            lines++;
            told += left_out;
        }
    }
    wrong += expect("log lines in 10 s", lines, 3 + 19);
    wrong += expect("lines told as left out", told, 9500 - lines + 1);
    print(wrong ? "FAIL\n" : "PASS\n");
    return wrong != 0;
}
