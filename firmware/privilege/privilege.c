/*
 * Unprivileged code of a Cortex-M3 cannot mask interrupts: the instruction has no effect there.
 * tatcell_small_section_check reports that; a check of a limit could not notice it.
 */
#include "board.h"
#include "tatcell_small.h"

static volatile int32_t before, after;

static void say(const char *who, int32_t code) {
    print(who);
    print(code < 0 ? "-" : "");
    print_u32((uint32_t)(code < 0 ? -code : code));
    print("\n");
}

/* With the privileges of an exception: text and exit need them. */
void on_svc(void) {
    say("privileged: ", before);
    say("unprivileged: ", after);
    board_exit(before != 0 || after != TATCELL_ERR_UNSUPPORTED);
}

int main(void) {
    before = tatcell_small_section_check();
    __asm__ volatile("msr CONTROL, %0\n isb" ::"r"(1) : "memory");
    after = tatcell_small_section_check();
    __asm__ volatile("svc 0");
    return 1;
}
