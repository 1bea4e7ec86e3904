/* shaper.c: an egress port that delays packets: six flows of two tenants share a gigabit, and two flows flood.
 *
 *   cc -O2 -Iinclude examples/shaper.c libtatcell.a -o shaper && ./shaper    tests itself; time is simulated
 *
 *   packet -> limit of its flow (250 Mbit/s) -> its tenant (600 Mbit/s) -> the port (1000 Mbit/s) -> out
 *             '---------- it waits in one timing wheel for its departure at each level ----------'
 *
 * There is no thread and no timer. A loop asks when the next packet is due and sleeps until then, with epoll, a
 * hardware timer or not at all. The floods get the rate of their tenant, and the other tenant loses nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tatcell.h"
#include "tatcell_host.h"

#define SECOND UINT64_C(1000000000) /* ticks are nanoseconds */
#define RUN (SECOND / 5)
enum { FLOWS = 6, TENANTS = 2, PACKET = 1500, WAITING = 1000, WHEEL = 1024, SLOT = 1 << 14, DUE = 32 };
static const uint64_t offered[FLOWS] = {900, 900, 140, 120, 120, 120}; /* Mbit/s; the first two flows flood */

struct packet {
    uint64_t arrival;
    uint32_t flow;
};
static struct counts { uint64_t offered, dropped, sent, waited; } counts[FLOWS];

static tatcell_host_table_t flows = TATCELL_HOST_TABLE_INIT;
static tatcell_cell_t tenants[TENANTS], port;
static tatcell_limit_t tenant_limit, port_limit;
static tatcell_shaper_t shaper;
static uint64_t memory[TATCELL_SHAPER_BYTES(WHEEL, WAITING) / 8]; /* 1024 slots of 16 us: 16.8 ms ahead */

/* Ends the program if a call failed. Verdicts are not failures. */
static int32_t need(const char *what, int32_t rc, int error) {
    if (rc >= 0) return rc;
    fprintf(stderr, "shaper: %s: %s\n", what, rc == TATCELL_ERR_SYSTEM ? strerror(error) : tatcell_strerror(rc));
    exit(1);
}

/* A unit is a byte. Two packets may leave at once, and a packet waits for at most `most_ms` milliseconds. */
static tatcell_limit_spec_t limit_of(const char *text, uint64_t most_ms) {
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    need(text, tatcell_limit_spec_parse(&spec, text, strlen(text), SECOND, NULL), 0);
    spec.max_delay = most_ms * SECOND / 1000;
    return spec;
}

static void setup(void) {
    tatcell_limit_spec_t flow = limit_of("31250kB/s burst 3kB", 5);
    tatcell_limit_spec_t tenant = limit_of("75MB/s burst 3kB", 10), line = limit_of("125MB/s burst 3kB", 10);
    int32_t rc = tatcell_host_table_open(&flow, 64, TATCELL_FULL_DENY, &flows);
    need("flows", rc, flows.memory.system_error);
    need("tenants", tatcell_limit_init_spec(&tenant_limit, &tenant), 0);
    need("port", tatcell_limit_init_spec(&port_limit, &line), 0);
    need("shaper", tatcell_shaper_init(&shaper, memory, sizeof memory, WHEEL, SLOT, 0), 0);
}

/* Sets the limit that a packet meets at a level. Returns 0 if it has passed all. */
static int level_of(uint32_t level, const uint32_t *flow, tatcell_link_t *link) {
    link->cost = PACKET;
    switch (level) {
    case 0:
        link->table = &flows.table, link->limit = &flows.limit, link->key = flow, link->key_len = sizeof *flow;
        break;
    case 1: link->cell = &tenants[*flow / 3], link->limit = &tenant_limit; break;
    case 2: link->cell = &port, link->limit = &port_limit; break;
    default: return 0;
    }
    return 1;
}

/* A packet arrives. Its handle is its index. */
static void arrive(uint64_t now, const struct packet *p, uint64_t handle) {
    tatcell_link_t link = TATCELL_LINK_INIT;
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    level_of(0, &p->flow, &link);
    need("sweep", tatcell_table_sweep_due(&flows.table, &flows.sweeper, now), 0);
    int32_t rc = tatcell_shaper_submit(&shaper, now, &link, NULL, handle, &d);
    counts[p->flow].offered++;
    if (rc == TATCELL_ERR_FULL) rc = TATCELL_NON_CONFORMING; /* WAITING packets wait: as good as a full queue */
    if (need("submit", rc, 0) != TATCELL_PASS) counts[p->flow].dropped++;
}

/* Moves the packets that are due to the next level, or out. */
static void depart(uint64_t now, const struct packet *packets) {
    tatcell_waiting_t due[DUE];
    uint32_t n = DUE;
    while (n == DUE) { /* fewer: nothing else is due */
        need("release", tatcell_shaper_release(&shaper, now, due, DUE, &n), 0);
        for (uint32_t i = 0; i < n; i++) {
            const struct packet *p = &packets[due[i].handle];
            tatcell_link_t link = TATCELL_LINK_INIT;
            tatcell_decision_t d = TATCELL_DECISION_INIT;
            struct counts *c = &counts[p->flow];
            if (!level_of(due[i].level + 1, &p->flow, &link)) c->sent++, c->waited += now - p->arrival;
            else if (need("forward", tatcell_shaper_forward(&shaper, now, &due[i], &link, &d), 0) != 0) c->dropped++;
        }
    }
}

/* Goes from departure to departure, up to a time. */
static void run(uint64_t until, const struct packet *packets) {
    uint64_t next = 0;
    while (need("next", tatcell_shaper_next(&shaper, &next), 0) == 0 && next <= until) depart(next, packets);
}

int main(void) {
    static struct packet packets[2300 * 1000 / 5 / 12 + FLOWS]; /* 2300 Mbit/s for RUN */
    size_t count = 0;
    setup();
    for (uint64_t now = 0; now < RUN; now += 1000) /* in order of arrival, to the microsecond */
        for (uint32_t f = 0; f < FLOWS; f++)
            if (now / 1000 * offered[f] / 12000 != (now / 1000 + 1) * offered[f] / 12000)
                packets[count++] = (struct packet){now, f};
    for (size_t i = 0; i < count; i++) run(packets[i].arrival, packets), arrive(packets[i].arrival, &packets[i], i);
    run(UINT64_MAX / 2, packets);

    tatcell_shaper_info_t info = TATCELL_SHAPER_INFO_INIT;
    need("info", tatcell_shaper_info(&shaper, &info), 0);
    uint64_t rates[TENANTS] = {0, 0};
    int right = info.waiting == 0;
    for (int f = 0; f < FLOWS; f++) {
        const struct counts *c = &counts[f];
        uint64_t rate = c->sent * PACKET * 8 * 1000 / RUN, wait = c->waited / (c->sent != 0 ? c->sent : 1) / 1000;
        printf("flow %d: %5" PRIu64 " offered, %5" PRIu64 " dropped, %5" PRIu64 " sent, %3" PRIu64 " Mbit/s, %4" PRIu64
               " us\n", f, c->offered, c->dropped, c->sent, rate, wait);
        right &= c->offered == c->dropped + c->sent && rate <= 257; /* its rate, and what waits at the end: 5 ms */
        right &= f < 3 || (c->dropped == 0 && wait < 500);
        rates[f / 3] += rate;
    }
    right &= rates[0] >= 600 && rates[0] <= 645 && rates[1] >= 358; /* 15 ms wait at two levels, after 200 */
    return puts(right ? "PASS" : "FAIL"), !right;
}
