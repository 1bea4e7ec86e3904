/* check.h - one line per claim: "PASS name", "FAIL name: why" or "SKIP name: what is missing, how to get it". The first
 * expectation of a claim that does not hold is the one that is told. tests/run counts the lines. */
#ifndef CHECK_H
#define CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int check_failed;

/* Tells what a claim came to: "" is a pass. */
__attribute__((unused)) static void claim(const char *name, const char *why) {
    if (why[0]) {
        printf("FAIL %s: %s\n", name, why);
        check_failed++;
    } else {
        printf("PASS %s\n", name);
    }
    fflush(stdout);
}

/* Writes why a claim does not hold, once. */
__attribute__((unused, format(printf, 2, 3))) static void say(char why[256], const char *format, ...) {
    va_list args;
    if (why[0]) return;
    va_start(args, format);
    vsnprintf(why, 256, format, args);
    va_end(args);
}

/* What a program exits with. */
__attribute__((unused)) static int check_end(void) {
    return check_failed != 0;
}

#endif
