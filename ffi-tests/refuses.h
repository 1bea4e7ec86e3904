/* refuses.h - for suites whose objects all lie in `w`, with another `before` of its type: a call that returns an error
 * changes none of them. */
#ifndef TATCELL_REFUSES_H
#define TATCELL_REFUSES_H

#include "check.h"

/* A pointer of the same type, one byte off. */
#define OFF(p) ((void *)((char *)(p) + 1))
#define REFUSES(code, call) \
    do { \
        memcpy(&before, &w, sizeof w); \
        EQ(call, code); \
        if (memcmp(&before, &w, sizeof w) != 0) { \
            check_fail(__FILE__, __LINE__, "%s changed something", #call); \
            return; \
        } \
    } while (0)

#endif
