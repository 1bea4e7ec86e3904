/* Start-up, semihosting and clock of mps2-an385. SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "board.h"

extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];
int main(void);

void reset_handler(void);
void fault_handler(void);

void reset_handler(void) {
    uint32_t *from = data_load;
    for (uint32_t *to = data_start; to < data_end;) *to++ = *from++;
    for (uint32_t *to = bss_start; to < bss_end;) *to++ = 0;
    board_exit((uint32_t)main());
}

/* Any exception: nothing here enables an interrupt, so it is a fault. */
void fault_handler(void) {
    say("FAIL frames_firmware: fault\n");
    board_exit(111);
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    stack_top,     reset_handler, fault_handler, fault_handler, fault_handler, fault_handler,
    fault_handler, 0,             0,             0,             0,             fault_handler,
    fault_handler, 0,             fault_handler, fault_handler,
};

static uint32_t semihosting(uint32_t operation, const void *parameter) {
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = parameter;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void say(const char *text) { semihosting(0x04, text); }

void say_number(const char *name, uint32_t number) {
    char digits[12], line[64];
    uint32_t n = 0, i = 0;
    do digits[n++] = (char)('0' + number % 10); while ((number /= 10) != 0);
    while (name[i] != 0 && i < 48) { line[i] = name[i]; i++; }
    line[i++] = ' ';
    while (n > 0) line[i++] = digits[--n];
    line[i++] = '\n';
    line[i] = 0;
    say(line);
}

void board_exit(uint32_t status) {
    const uint32_t block[2] = {0x20026, status}; /* application exit, status */
    semihosting(0x20, block);
    for (;;) {}
}

/* FPGA I/O block: a free-running counter of the 25 MHz clock behind a prescaler. */
#define FPGAIO_COUNTER (*(volatile uint32_t *)0x40028018u)
#define FPGAIO_PRESCALE (*(volatile uint32_t *)0x4002801cu)

void clock_start(void) {
    FPGAIO_PRESCALE = 24;                /* one count a microsecond */
    FPGAIO_COUNTER = (uint32_t)-1500000; /* wraps after 1.5 s */
}

uint32_t clock_now(void) { return FPGAIO_COUNTER; }
