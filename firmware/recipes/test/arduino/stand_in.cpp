// Types a line into the example sketch every 100 ms for two seconds. Five a second and ten at once: 19 are accepted.
#include "Arduino.h"

extern "C" void print(const char *text);
extern "C" __attribute__((noreturn)) void board_exit(int status);
extern "C" void on_timer(uint32_t) {}
void setup();
void loop();

static uint32_t lines, accepted;
Stream Serial;
void Stream::begin(long) {}
int Stream::read() { return '\n'; }
void Stream::print(const char *) {}
void Stream::println(uint32_t) {}
void Stream::println(const char *) { accepted++; }
uint32_t millis() { return 0u - 1000u + 100u * lines; }

extern "C" int main() {
    setup();
    for (; lines < 20; lines++)
        loop();
    /* At 1900 ms 10 + 9 units have been there, and twenty lines have come. */
    board_exit(accepted == 19 ? 0 : 1);
}
