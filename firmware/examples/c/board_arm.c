/* Start-up, semihosting and SysTick of a Cortex-M: microbit (M0), lm3s6965evb and mps2-an385 (M3), mps2-an386 (M4F). */
#include "board.h"

#define SYST_CSR (*(volatile uint32_t *)0xE000E010)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018)
#define AIRCR (*(volatile uint32_t *)0xE000ED0C)
#define CPACR (*(volatile uint32_t *)0xE000ED88)

extern uint32_t stack_top[], data_start[], data_end[], data_load[], bss_start[], bss_end[];
int main(void);

static uint32_t semihosting(uint32_t op, const void *arg) {
    register uint32_t r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = arg;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

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
    AIRCR = 0x05FA0004; /* SYSRESETREQ */
    for (;;) {
    }
}

void timer_start(uint32_t first, uint32_t ticks) {
#ifdef BOARD_LM3S
    /* Run from the main oscillator without PLL: the emulator computes the core clock only when this is written. */
    *(volatile uint32_t *)0x400FE060 = 0x078E3AC0;
#endif
    SYST_CSR = 0;
    SYST_RVR = first - 1;
    SYST_CVR = 0;
    SYST_CSR = 7; /* core clock, interrupt, on */
    while (SYST_CVR == 0) {
    }
    SYST_RVR = ticks - 1; /* counts from the next time on */
}

/* Of programs that start no timer. */
void __attribute__((weak)) on_timer(uint32_t pc) {
    (void)pc;
}

void timer_stop(void) {
    SYST_CSR = 0;
}

/* The interrupted instruction lies in the frame that the core has pushed: r0-r3, r12, lr, pc, xPSR. */
static void __attribute__((naked)) systick(void) {
    __asm__ volatile("mov r0, sp\n ldr r0, [r0, #24]\n ldr r1, =on_timer\n bx r1\n");
}

static void fault(void) {
    print("fault\n");
    board_exit(99);
}

void __attribute__((noreturn)) reset(void) {
    uint32_t *from = data_load;
    for (uint32_t *to = data_start; to < data_end;)
        *to++ = *from++;
    for (uint32_t *to = bss_start; to < bss_end;)
        *to++ = 0;
#if defined(__ARM_FP)
    CPACR |= 0xF << 20;
    __asm__ volatile("dsb\n isb");
#endif
    board_exit(main());
}

/* Of programs that call no supervisor. */
void __attribute__((weak)) on_svc(void) {
    fault();
}

typedef void (*handler_t)(void);
__attribute__((section(".vectors"), used)) static const handler_t vectors[16] = {
    (handler_t)stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, on_svc, fault, 0, fault, systick,
};

#ifdef TATCELL_CRITICAL
/* The firmware's own critical section, for libtatcell-critical.a. With an RTOS: its lock. */
uint32_t tatcell_critical_enter(void) {
    uint32_t primask;
    __asm__ volatile("mrs %0, PRIMASK\n cpsid i" : "=r"(primask)::"memory");
    return primask;
}

void tatcell_critical_exit(uint32_t primask) {
    __asm__ volatile("msr PRIMASK, %0" ::"r"(primask) : "memory");
}
#endif
