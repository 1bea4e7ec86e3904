/* Numbers that a program must come to. */
#ifndef EXPECT_H
#define EXPECT_H

#include "board.h"

/* Prints a number, and what was wanted where that is another; returns whether it is. */
static inline int expect(const char *what, uint32_t got, uint32_t wanted) {
    print(what);
    print(" ");
    print_u32(got);
    if (got != wanted) {
        print(", wanted ");
        print_u32(wanted);
    }
    print("\n");
    return got != wanted;
}

#endif
