/*
 * Real frames: a network device that polices one UDP port and shapes another, a limit for every sender.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   port 7000   polices: at most RATE datagrams a second and BURST at once for every sender (address and port);
 *               a conforming datagram is echoed, the others are dropped
 *   port 7001   shapes: at most RATE a second in all, one after the other; a datagram that would wait longer than
 *               MAX_DELAY is dropped, the others are echoed when their time has come
 *   port 7009   control: "LOG n" answers the log from entry n on, "END " ends the emulator
 *
 * Every decision is logged with the clock it was made at: the host repeats them all with its own arithmetic.
 * Time is the board's 32-bit microsecond counter; it wraps during every test.
 */
#include <stdint.h>
#include <string.h>

#include "board.h"
#include "lan9118.h"
#include "tatcell_small.h"

#define POLICE_RATE 100
#define POLICE_BURST 20
#define SHAPE_RATE 200
#define SHAPE_BURST 4
#define SHAPE_MAX_DELAY 150000

enum { ARP = 0x0806, IPV4 = 0x0800, UDP = 17, HEADERS = 42 };

static const uint8_t MAC[6] = {0x02, 't', 'a', 't', 'c', 'l'};
static const uint8_t ADDRESS[4] = {10, 0, 2, 15};

/* The limiter: limits computed by the compiler, 128 slots of 8 bytes in .bss. */
static tatcell_small_slot_t slots[128];
static tatcell_small_table_t table =
    TATCELL_SMALL_TABLE(slots, POLICE_RATE, 1000000, POLICE_BURST, TATCELL_FULL_DENY);
static const tatcell_small32_limit_t departures =
    TATCELL_SMALL32_LIMIT_SHAPED(SHAPE_RATE, 1000000, SHAPE_BURST, SHAPE_MAX_DELAY);
static tatcell_cell32_t line;

/* One logged decision; sent in network byte order. */
struct entry {
    uint32_t now;      /* clock of the decision */
    uint32_t wait;     /* policed: 0 or ticks until it would pass; shaped: ticks until departure */
    uint32_t sent;     /* clock when it was echoed, if it was */
    uint32_t sequence; /* first four bytes of the payload */
    uint8_t address[4];
    uint16_t port;
    uint8_t shaped;
    uint8_t passed;
};
enum { ENTRY_BYTES = 24, LOG_ENTRIES = 32768, PER_ANSWER = 57 };
static struct entry decisions[LOG_ENTRIES];
static uint32_t logged;

/* Frames that wait for their departure, first in first out: departures of one cell never overtake. */
enum { QUEUE = 64, QUEUE_BYTES = 256 };
static struct {
    uint32_t frame[QUEUE_BYTES / 4];
    uint32_t bytes;
    struct entry *entry;
} queue[QUEUE];
static uint32_t queue_head, queue_tail;

/* Two spare bytes in front would align the headers, but the driver wants the frame aligned: bytes are read singly. */
static uint32_t frame[(LAN9118_FRAME + 6) / 4];
static uint8_t *const f = (uint8_t *)frame;

static uint32_t get16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static uint32_t get32(const uint8_t *p) { return get16(p) << 16 | get16(p + 2); }
static uint8_t *put16(uint8_t *p, uint32_t v) { p[0] = (uint8_t)(v >> 8); p[1] = (uint8_t)v; return p + 2; }
static uint8_t *put32(uint8_t *p, uint32_t v) { return put16(put16(p, v >> 16), v & 0xffff); }

/* Turns the received datagram into an answer of `payload` bytes: everything swapped, checksums renewed. */
static uint32_t answer(uint32_t payload) {
    memcpy(f, f + 6, 6);
    memcpy(f + 6, MAC, 6);
    put16(f + 16, 28 + payload);
    put16(f + 24, 0);
    memcpy(f + 30, f + 26, 4);
    memcpy(f + 26, ADDRESS, 4);
    uint32_t sum = 0;
    for (uint32_t i = 14; i < 34; i += 2) sum += get16(f + i);
    sum = (sum & 0xffff) + (sum >> 16);
    put16(f + 24, ~(sum + (sum >> 16)) & 0xffff);
    uint32_t port = get16(f + 34);
    put16(put16(f + 34, get16(f + 36)), port);
    put16(put16(f + 38, 8 + payload), 0); /* no UDP checksum: allowed over IPv4 */
    return HEADERS + payload;
}

static void on_arp(uint32_t bytes) {
    static const uint8_t request[8] = {0, 1, 8, 0, 6, 4, 0, 1};
    if (bytes < 42 || memcmp(f + 14, request, 8) != 0 || memcmp(f + 38, ADDRESS, 4) != 0) return;
    f[21] = 2;
    memcpy(f + 32, f + 22, 10); /* target = sender */
    memcpy(f + 22, MAC, 6);
    memcpy(f + 28, ADDRESS, 4);
    memcpy(f, f + 32, 6);
    memcpy(f + 6, MAC, 6);
    lan9118_send(frame, 42);
}

static struct entry *log_decision(uint32_t now, uint32_t shaped, uint32_t passed, uint32_t wait) {
    struct entry *e = &decisions[logged < LOG_ENTRIES ? logged++ : LOG_ENTRIES - 1];
    e->now = now;
    e->wait = wait;
    e->sequence = get32(f + HEADERS);
    memcpy(e->address, f + 26, 4);
    e->port = (uint16_t)get16(f + 34);
    e->shaped = (uint8_t)shaped;
    e->passed = (uint8_t)passed;
    return e;
}

static void police(uint32_t now, uint32_t payload) {
    uint8_t key[6]; /* address and port of the sender, in network order */
    memcpy(key, f + 26, 4);
    memcpy(key + 4, f + 34, 2);
    uint32_t answered = tatcell_small_table_check_exclusive(&table, now, key, sizeof key, 1);
    struct entry *e = log_decision(now, 0, answered == 0, answered);
    if (answered != 0) return;
    e->sent = now;
    lan9118_send(frame, answer(payload));
}

static void shape(uint32_t now, uint32_t payload) {
    if (HEADERS + payload > QUEUE_BYTES || queue_head - queue_tail == QUEUE) return;
    uint32_t wait = tatcell_small32_reserve(&line, &departures, now, 1);
    uint32_t reserved = wait < TATCELL_SMALL32_REFUSED; /* else refused, never or contended: not sent */
    struct entry *e = log_decision(now, 1, reserved, wait);
    if (!reserved) return;
    uint32_t at = queue_head++ % QUEUE;
    queue[at].bytes = answer(payload);
    queue[at].entry = e;
    memcpy(queue[at].frame, frame, queue[at].bytes);
}

static void send_due(uint32_t now) {
    while (queue_tail != queue_head) {
        uint32_t at = queue_tail % QUEUE;
        struct entry *e = queue[at].entry;
        if (now - e->now < e->wait) return; /* differences only: the counter wraps */
        e->sent = now;
        lan9118_send(queue[at].frame, queue[at].bytes);
        queue_tail++;
    }
}

static void control(uint32_t payload) {
    uint8_t *p = f + HEADERS;
    if (payload >= 8 && memcmp(p, "LOG ", 4) == 0) {
        uint32_t from = get32(p + 4), count = 0;
        uint8_t *to = put32(put32(p, logged), from);
        for (; count < PER_ANSWER && from + count < logged; count++) {
            const struct entry *e = &decisions[from + count];
            to = put32(put32(put32(put32(to, e->now), e->wait), e->sent), e->sequence);
            memcpy(to, e->address, 4);
            to = put16(to + 4, e->port);
            *to++ = e->shaped;
            *to++ = e->passed;
        }
        lan9118_send(frame, answer(8 + count * ENTRY_BYTES));
    } else if (payload >= 4 && memcmp(p, "END ", 4) == 0) {
        uint32_t passed = 0;
        for (uint32_t i = 0; i < logged; i++) passed += decisions[i].passed;
        lan9118_send(frame, answer(4));
        say_number("frames: decisions", logged);
        say_number("frames: passed", passed);
        say_number("frames: dropped by the controller", lan9118_dropped());
        board_exit(0);
    }
}

static void on_frame(uint32_t bytes) {
    uint32_t type = get16(f + 12);
    if (type == ARP) { on_arp(bytes); return; }
    /* IPv4 without options, not a fragment, UDP, for us, long enough for what it claims. */
    if (type != IPV4 || bytes < HEADERS + 4 || f[14] != 0x45 || (get16(f + 20) & 0x3fff) != 0 || f[23] != UDP) return;
    if (memcmp(f + 30, ADDRESS, 4) != 0) return;
    uint32_t length = get16(f + 38);
    if (length < 12 || 34 + length > bytes) return;
    /* The clock starts just before the first decision, so that it wraps during the test, however slow the host is. */
    if (logged == 0) clock_start();
    uint32_t now = clock_now();
    switch (get16(f + 36)) {
    case 7000: police(now, length - 8); break;
    case 7001: shape(now, length - 8); break;
    case 7009: control(length - 8); break;
    default: break;
    }
}

int main(void) {
    /* A real device takes eight bytes from its random source; a test must repeat. */
    static const uint8_t seed[8] = {0x6e, 0x6f, 0x74, 0x20, 0x61, 0x20, 0x6b, 0x65};
    tatcell_small_table_seed(&table, seed);
    if (lan9118_start(MAC) != 0) {
        say("FAIL frames_firmware: no LAN9118\n");
        board_exit(1);
    }
    say("frames: ready\n");
    for (;;) {
        uint32_t bytes = lan9118_receive(frame);
        if (bytes != 0) on_frame(bytes);
        send_due(clock_now());
    }
}
