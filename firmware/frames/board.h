/* The board: start-up, semihosting, a microsecond clock. SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FRAMES_BOARD_H
#define FRAMES_BOARD_H

#include <stdint.h>

/** Starts the microsecond clock a little before its 32-bit register wraps, so that every run meets the wrap. */
void clock_start(void);

/** Microseconds, modulo 2^32: wraps every 71 minutes. */
uint32_t clock_now(void);

/** Writes a line to the emulator's standard error. */
void say(const char *text);

/** Writes a name and a number. */
void say_number(const char *name, uint32_t number);

/** Ends the emulator with a status. */
void board_exit(uint32_t status) __attribute__((noreturn));

#endif
