/* Decimal output without division, which a Cortex-M0 does not have. */
#include "board.h"

void print_u32(uint32_t n) {
    static const uint32_t powers[] = {1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1};
    char text[11];
    int length = 0;
    for (unsigned i = 0; i < 10; i++) {
        char digit = '0';
        for (; n >= powers[i]; n -= powers[i])
            digit++;
        if (digit != '0' || length != 0 || i == 9)
            text[length++] = digit;
    }
    text[length] = 0;
    print(text);
}
