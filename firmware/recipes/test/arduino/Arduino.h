/* Stands in for Arduino's core: what the example sketch uses. */
#pragma once
#include <stdint.h>
struct Stream {
    void begin(long);
    int read();
    void print(const char *);
    void println(const char *);
    void println(uint32_t);
};
extern Stream Serial;
uint32_t millis();
