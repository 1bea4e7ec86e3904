/* What the programs here need of a board: text out, an exit status, a reset, a periodic timer interrupt. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/** Prints text, by semihosting. */
void print(const char *text);

/** Prints a number in decimal. */
void print_u32(uint32_t n);

/** Ends the program; the emulator exits with this status. */
void board_exit(int status) __attribute__((noreturn));

/** Resets the device: main runs anew, with zeroed variables. */
void board_reset(void) __attribute__((noreturn));

/** 64 bytes that outlast a reset, as the backup registers of an RTC do; anything when the device gets power. */
extern uint32_t backup[16];

/** Starts the timer: on_timer runs after `first` and then every `ticks` of it (cycles of SysTick, ticks of mtime). */
void timer_start(uint32_t first, uint32_t ticks);

/** Stops the timer. */
void timer_stop(void);

/** Yours: runs in the timer interrupt. `pc` is the instruction that it interrupted. */
void on_timer(uint32_t pc);

#endif
