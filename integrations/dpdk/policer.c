/* policer.c - a policer between two ports: every flow, source or VLAN to its limits, on any number of lcores.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Usage: policer EAL-OPTIONS -- OPTIONS; see `usage` and the README. Each lcore has a queue of each port. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf_dyn.h>
#include <rte_telemetry.h>
#include <rte_udp.h>

#include "policer.h"

struct lcore lcores[RTE_MAX_LCORE];
static volatile sig_atomic_t stopped;

static void stop(int signal) {
    (void)signal;
    stopped = 1;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Headers into what net_null receives: a source of those of this queue, as RSS would have it; a VLAN by its number. */
static void fill(struct rte_mbuf *m, const struct lcore *l, uint32_t *state) {
    *state ^= *state << 13, *state ^= *state >> 17, *state ^= *state << 5;
    const uint32_t queues = rte_lcore_count(), key = *state % (uint32_t)s.fill / queues * queues + l->queue;
    uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
    memset(p, 0, 46);
    const uint16_t vlan = rte_cpu_to_be_16((uint16_t)(key % VLANS));
    const uint32_t source = rte_cpu_to_be_32(0x0a000000 | key);
    p[12] = 0x81, memcpy(p + 14, &vlan, 2), p[16] = 8;
    p[18] = 0x45, p[21] = 46, p[26] = 64, p[27] = IPPROTO_UDP, memcpy(p + 30, &source, 4), p[34] = 10;
    memcpy(p + 38, &source, 2), p[41] = 53, p[43] = 26;
}

static void free_all(struct rte_mbuf **m, uint32_t n) {
    rte_pktmbuf_free_bulk(m, n);
}

/* One meter of DPDK's own a packet: by index, for one lcore. */
static void decide_rte(struct tatcell_dpdk_burst *b, uint64_t now) {
    b->pass = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        struct tatcell_dpdk_frame f;
        const int tagged = tatcell_dpdk_frame(b->packets[i], &f) && f.tag_count != 0;
        const uint32_t vlan = tagged ? f.tags[f.tag_count - 1] : 0, bytes = rte_pktmbuf_pkt_len(b->packets[i]);
        const uint32_t cost = bytes + s.policer.overhead;
        b->colours[i] = (uint8_t)rte_meter_srtcm_color_blind_check(&rte_meters[vlan], &rte_profile, now, cost);
        b->marked[b->colours[i]]++;
        b->pass |= (uint64_t)(b->colours[i] != RTE_COLOR_RED) << i;
    }
}

static void forward(struct lcore *l, struct tatcell_dpdk_burst *b) {
    if (s.remark)
        for (uint32_t i = 0; i < b->count; i++)
            if (b->pass >> i & 1) tatcell_dpdk_remark(b->packets[i], s.dscp[b->colours[i] == TATCELL_YELLOW]);
    const uint16_t n = tatcell_dpdk_split(b);
    uint64_t bytes = 0;
    for (uint16_t i = 0; i < n; i++) bytes += rte_pktmbuf_pkt_len(b->out[i]);
    const uint16_t sent = n == 0 ? 0 : rte_eth_tx_burst((uint16_t)s.out, l->queue, b->out, n);
    l->sent += sent, l->unsent += n - sent, l->dropped += b->drop_count, l->sent_bytes += bytes;
    free_all(b->out + sent, n - sent);
    free_all(b->drop, b->drop_count);
    b->count = 0;
}

static void relay(struct lcore *l) {
    struct rte_mbuf *m[TATCELL_DPDK_BURST];
    const uint16_t n = rte_eth_rx_burst((uint16_t)s.relay[0], l->queue, m, TATCELL_DPDK_BURST);
    const uint16_t sent = n == 0 ? 0 : rte_eth_tx_burst((uint16_t)s.relay[1], l->queue, m, n);
    free_all(m + sent, n - sent);
}

static uint64_t now_of(const struct tatcell_dpdk_burst *b) {
    switch (s.clock) {
    case RX: return b->count == 0 ? 0 : *RTE_MBUF_DYNFIELD(b->packets[0], timestamp, rte_mbuf_timestamp_t *);
    case FIXED: return s.tick_hz;
    default: return rte_rdtsc();
    }
}

/* Packets got no verdict: told once a second at the most, by whichever lcore it is. */
static void tell_undecided(uint64_t now, uint64_t packets, int32_t rc) {
    static tatcell_log_t gate = TATCELL_LOG_INIT;
    uint32_t more;
    if (tatcell_log_line(&gate, now, rte_get_tsc_hz(), &more) != TATCELL_PASS) return;
    fprintf(stderr, "policer: %" PRIu64 " packets of a burst got no verdict and %s: %s", packets,
            s.policer.drop_undecided ? "were dropped" : "passed", tatcell_strerror(rc < 0 ? rc : TATCELL_CONTENDED));
    if (more != 0) fprintf(stderr, "; and so in %" PRIu32 " bursts since the line before", more);
    fputc('\n', stderr);
}

static int run(void *unused) {
    struct lcore *l = &lcores[rte_lcore_id()];
    const uint64_t patience = s.idle_ms * (rte_get_tsc_hz() / 1000);
    uint64_t last = rte_rdtsc(), start = cpu_ns(), left_out = 0;
    uint32_t state = 12345 + l->queue;
    const int keyed = l->policer.mode >= TATCELL_DPDK_BYTES && l->policer.mode <= TATCELL_DPDK_MARK;
    (void)unused;
    for (unsigned i = 0;; i ^= 1) {
        struct tatcell_dpdk_burst *ready = &l->bursts[i], *next = &l->bursts[i ^ 1];
        const int over = stopped || (s.count != 0 && l->received >= s.count);
        next->count = over ? 0 : rte_eth_rx_burst((uint16_t)s.in, l->queue, next->packets, TATCELL_DPDK_BURST);
        for (uint32_t k = 0; s.fill != 0 && k < next->count; k++) fill(next->packets[k], l, &state);
        l->received += next->count;
        if (left_out == 0 && s.warm != 0 && l->received >= s.warm) left_out = l->received, start = cpu_ns();
        /* One reading of the clock a burst: when it came, or now. */
        l->nows[i ^ 1] = now_of(next);
        if (s.relay[0] >= 0) relay(l);
        if (next->count != 0) {
            last = rte_rdtsc();
        } else if (ready->count == 0) {
            if (over || (s.idle_ms != 0 && rte_rdtsc() - last > patience)) break;
            /* Else a lull would be a silence, and the next burst would wait while the table is emptied. */
            if (keyed && s.clock == TSC) (void)tatcell_table_sweep_due(l->policer.table, l->sweeper, l->nows[i ^ 1]);
            continue;
        }
        tatcell_dpdk_load(next, &l->policer);
        if (s.rte) {
            decide_rte(ready, l->nows[i]);
        } else {
            const uint64_t before = ready->undecided;
            /* Words wrap, some after seconds, and then old debts count once more. */
            if (keyed && ready->count != 0) (void)tatcell_table_sweep_due(l->policer.table, l->sweeper, l->nows[i]);
            const int32_t rc = tatcell_dpdk_decide(&l->policer, ready, next, l->nows[i]);
            if (unlikely(ready->undecided != before)) tell_undecided(rte_rdtsc(), ready->undecided - before, rc);
        }
        forward(l, ready);
    }
    l->cpu_ns = cpu_ns() - start, l->measured = l->received - left_out;
    for (int i = 0; s.relay[0] >= 0 && i < 100; i++) relay(l);
    return 0;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

struct totals {
    uint64_t received, sent, unsent, dropped, sent_bytes, cpu_ns, measured, others, undecided, marked[3];
    tatcell_counters_t counters;
};

/* Sums of all lcores; each number as of its reading. */
static struct totals sum(void) {
    struct totals t;
    unsigned lcore;
    memset(&t, 0, sizeof t);
    RTE_LCORE_FOREACH(lcore) {
        const struct lcore *l = &lcores[lcore];
        t.received += l->received, t.sent += l->sent, t.unsent += l->unsent, t.dropped += l->dropped;
        t.sent_bytes += l->sent_bytes, t.cpu_ns += l->cpu_ns, t.measured += l->measured;
        for (int i = 0; i < 2; i++) {
            t.others += l->bursts[i].others, t.undecided += l->bursts[i].undecided;
            for (int c = 0; c < 3; c++) t.marked[c] += l->bursts[i].marked[c];
            (void)tatcell_counters_add(&t.counters, &l->bursts[i].counters);
        }
    }
    return t;
}

static int tell(const char *command, const char *parameters, struct rte_tel_data *d) {
    const struct totals t = sum();
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {
        {"received", t.received},     {"sent", t.sent},           {"unsent", t.unsent},       {"dropped", t.dropped},
        {"sent_bytes", t.sent_bytes}, {"others", t.others},       {"green", t.marked[0]},     {"yellow", t.marked[1]},
        {"red", t.marked[2]},         {"inserted", t.counters.inserted}, {"untracked", t.counters.untracked},
        {"contended", t.counters.contended},                             {"undecided", t.undecided},
    };
    (void)command, (void)parameters;
    rte_tel_data_start_dict(d);
    for (size_t i = 0; i < RTE_DIM(fields); i++) rte_tel_data_add_dict_u64(d, fields[i].name, fields[i].value);
    return 0;
}

int main(int count, char **arguments) {
    const int eal = rte_eal_init(count, arguments);
    if (eal < 0) return 1;
    read_settings(count - eal, arguments + eal);
    s.tick_hz = s.clock == RX ? 1000000 : s.clock == FIXED ? 1000000000 : rte_get_tsc_hz();
    make_policers();
    start_ports();
    rte_telemetry_register_cmd("/tatcell/stats", tell, "Packets received, sent, dropped and marked. No parameters.");
    signal(SIGINT, stop), signal(SIGTERM, stop);
    rte_eal_mp_remote_launch(run, NULL, CALL_MAIN);
    rte_eal_mp_wait_lcore();
    const struct totals t = sum();
    printf("received %" PRIu64 " sent %" PRIu64 " unsent %" PRIu64 " dropped %" PRIu64 " others %" PRIu64
           " green %" PRIu64 " yellow %" PRIu64 " red %" PRIu64 " inserted %" PRIu64 " untracked %" PRIu64
           " undecided %" PRIu64 "\n",
           t.received, t.sent, t.unsent, t.dropped, t.others, t.marked[0], t.marked[1], t.marked[2],
           t.counters.inserted, t.counters.untracked, t.undecided);
    /* Only where it ends by itself: else the time has empty polls in it. */
    if (s.count != 0 && t.measured != 0) printf("ns %.1f\n", (double)t.cpu_ns / (double)t.measured);
    uint16_t port;
    RTE_ETH_FOREACH_DEV(port) {
        (void)rte_eth_dev_stop(port);
        (void)rte_eth_dev_close(port);
    }
    rte_eal_cleanup();
    return 0;
}
