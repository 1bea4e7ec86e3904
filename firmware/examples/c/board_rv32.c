/* Start-up, semihosting and machine timer of QEMU's riscv32 `virt` machine (rv32imc and rv32imac code). */
#include "board.h"

#define TEST_FINISHER (*(volatile uint32_t *)0x00100000)
#define MTIMECMP_LOW (*(volatile uint32_t *)0x02004000)
#define MTIMECMP_HIGH (*(volatile uint32_t *)0x02004004)
#define MTIME_LOW (*(volatile uint32_t *)0x0200BFF8)

extern uint32_t bss_start[], bss_end[];
int main(void);
static uint32_t reload;

/* The three instructions must be uncompressed and on one page. */
uint32_t semihosting(uint32_t op, const void *arg);
__asm__(".section .text.semihosting\n"
        ".balign 16\n"
        ".option push\n"
        ".option norvc\n"
        ".globl semihosting\n"
        "semihosting:\n"
        "    slli x0, x0, 0x1f\n"
        "    ebreak\n"
        "    srai x0, x0, 7\n"
        "    ret\n"
        ".option pop\n");

void print(const char *text) {
    semihosting(0x04, text); /* SYS_WRITE0 */
}

void board_exit(int status) {
    const uint32_t block[2] = {0x20026, (uint32_t)status}; /* ADP_Stopped_ApplicationExit */
    semihosting(0x20, block);                              /* SYS_EXIT_EXTENDED */
    for (;;) {
    }
}

void board_reset(void) {
    TEST_FINISHER = 0x7777; /* of this machine of QEMU */
    for (;;) {
    }
}

void timer_start(uint32_t first, uint32_t ticks) {
    reload = ticks;
    MTIMECMP_HIGH = 0;
    MTIMECMP_LOW = MTIME_LOW + first;
    __asm__ volatile("csrs mie, %0\n csrsi mstatus, 8" ::"r"(1 << 7));
}

/* Of programs that start no timer. */
void __attribute__((weak)) on_timer(uint32_t pc) {
    (void)pc;
}

void timer_stop(void) {
    __asm__ volatile("csrc mie, %0" ::"r"(1 << 7));
}

static void __attribute__((interrupt, aligned(4))) trap(void) {
    uint32_t cause, pc;
    __asm__ volatile("csrr %0, mcause\n csrr %1, mepc" : "=r"(cause), "=r"(pc));
    if (cause != 0x80000007) {
        print("fault\n");
        board_exit(99);
    }
    on_timer(pc);
    /* From its end on: main must come on, too, where the handler takes longer than the period. */
    MTIMECMP_LOW = MTIME_LOW + reload;
}

static void __attribute__((noreturn, used)) start(void) {
    for (uint32_t *to = bss_start; to < bss_end;)
        *to++ = 0;
    __asm__ volatile("csrw mtvec, %0" ::"r"(trap));
    board_exit(main());
}

__asm__(".section .vectors\n"
        ".globl reset\n"
        "reset:\n"
        "    la sp, stack_top\n"
        "    j start\n");

#ifdef TATCELL_CRITICAL
/* The firmware's own critical section, for libtatcell-critical.a. With an RTOS: its lock. */
uint32_t tatcell_critical_enter(void) {
    uint32_t mstatus;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(mstatus)::"memory");
    return mstatus & 8;
}

void tatcell_critical_exit(uint32_t mie) {
    __asm__ volatile("csrs mstatus, %0" ::"r"(mie) : "memory");
}
#endif
