// Accepts at most five lines a second from each sender, ten at once, and says how long to wait otherwise. A line is
// "SENDER: TEXT"; many senders may share the serial line, as on an RS-485 bus.
#include <tatcell_small.h>

static tatcell_small_slot_t slots[64];
static tatcell_small_table_t senders = TATCELL_SMALL_TABLE(slots, 5, 1000, 10, TATCELL_FULL_ADMIT); // ticks are milliseconds
static uint8_t sender[16];
static uint32_t length;
static bool named;

void setup() {
    Serial.begin(115200);
    // So that nobody can choose names that share a slot. Noise of an open pin is weak: take the chip's generator if it
    // has one.
    uint8_t seed[8];
    for (uint8_t i = 0; i < sizeof seed; i++)
        seed[i] = (uint8_t)(analogRead(0) ^ (analogRead(0) << 4) ^ micros());
    tatcell_small_table_seed(&senders, seed);
}

void loop() {
    int byte = Serial.read();
    if (byte < 0)
        return;
    if (byte != '\n') {
        named = named || byte == ':';
        if (!named && length < sizeof sender)
            sender[length++] = (uint8_t)byte;
        return;
    }
    // A line without a sender is from the sender without a name.
    uint32_t wait = tatcell_small_table_check(&senders, millis(), sender, named ? length : 0, 1);
    length = 0;
    named = false;
    if (wait == 0) {
        Serial.println("accepted");
    } else {
        Serial.print("too fast, ms to wait: ");
        Serial.println(wait);
    }
}
