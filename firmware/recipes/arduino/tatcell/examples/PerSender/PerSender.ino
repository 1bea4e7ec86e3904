// Accepts at most five lines a second from the serial line, ten at once; tells how long to wait otherwise.
#include <tatcell_small.h>

static const tatcell_small32_limit_t limit = TATCELL_SMALL32_LIMIT(5, 1000, 10); // ticks are milliseconds
static tatcell_cell32_t cell;

void setup() { Serial.begin(115200); }

void loop() {
    int byte = Serial.read();
    if (byte != '\n')
        return;
    uint32_t wait = tatcell_small32_check_unit(&cell, &limit, millis());
    if (wait == 0) {
        Serial.println("accepted");
    } else {
        Serial.print("too fast, ms to wait: ");
        Serial.println(wait);
    }
}
