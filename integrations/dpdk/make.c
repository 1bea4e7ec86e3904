/* make.c - what the policer needs before packets come: ports, tables, limits and meters.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_debug.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>

#include <tatcell_host.h>

#include "policer.h"

static tatcell_meter_t meters[VLANS];
static tatcell_meter_params_t meter_params;
struct rte_meter_srtcm rte_meters[VLANS];
struct rte_meter_srtcm_profile rte_profile;
int timestamp = -1;

void check(const char *what, int32_t rc) {
    if (rc < 0) die("%s: %s", what, tatcell_strerror(rc));
}

static tatcell_limit_spec_t limit_of(const uint64_t rate[2]) {
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    spec.units = rate[0], spec.period = s.tick_hz, spec.burst = rate[1];
    return spec;
}

/* The table of an lcore, or of all of them, and its limits. */
static void make_table(struct lcore *l) {
    const enum tatcell_dpdk_mode mode = s.policer.mode;
    const uint64_t *first = mode == TATCELL_DPDK_MARK ? s.committed : s.packets;
    const uint64_t *second = mode == TATCELL_DPDK_MARK ? s.second : s.bytes;
    const char *options_of[2] = {"--packets", "--bytes"};
    if (mode == TATCELL_DPDK_MARK) options_of[0] = "--committed", options_of[1] = "--second";
    if (mode == TATCELL_DPDK_BYTES) first = second, options_of[0] = "--bytes";
    if (mode == TATCELL_DPDK_PACKETS) second = first, options_of[1] = "--packets";
    const tatcell_limit_spec_t specs[2] = {limit_of(first), limit_of(second)};
    /* Before the table, so that what is said names the option. */
    for (int i = 0; i < 2; i++) check(options_of[i], tatcell_limit_init_spec(&l->limits[i], &specs[i]));
    const int faster = specs[1].units > specs[0].units;
    /* Whose burst lasts longer. */
    const double lasts[2] = {(double)first[1] / (double)first[0], (double)second[1] / (double)second[0]};
    const int slower = lasts[1] > lasts[0];
    const size_t bytes = tatcell_table_bytes(s.slots);
    void *memory = bytes == 0 ? NULL : rte_zmalloc("tatcell", bytes, TATCELL_TABLE_MEMORY_ALIGN);
    if (bytes == 0) die("--slots %" PRIu64 ": more than a table has", s.slots);
    if (memory == NULL)
        die("--slots %" PRIu64 ": %zu bytes were asked for and not had; give the EAL more memory (-m) or take fewer",
            s.slots, bytes);
    uint8_t seed[16];
    check("seed", tatcell_host_random(seed, sizeof seed, NULL));
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    options.fastest = &specs[faster], options.slowest = &specs[slower], options.seed = seed;
    options.hash = tatcell_hash_available(TATCELL_HASH_AES) == 0 ? TATCELL_HASH_AES : TATCELL_HASH_SIPHASH13;
    options.tick_hz = s.tick_hz;
    if (!s.shared) options.flags = TATCELL_TABLE_EXCLUSIVE;
    check("table", tatcell_table_init(&l->table, memory, bytes, &options));
    for (int i = 0; i < 2; i++) check(options_of[i], tatcell_limit_init_table(&l->limits[i], &l->table, &specs[i]));
    const tatcell_mark_t fresh = TATCELL_MARK_INIT;
    l->mark = fresh;
    l->mark.kind = s.kind, l->mark.committed = &l->limits[0], l->mark.second = &l->limits[1];
    /* A look: what is wrong with a mark is told before a packet comes. */
    if (mode == TATCELL_DPDK_MARK)
        check("--kind, --committed and --second",
              tatcell_table_mark(&l->table, &l->mark, 0, "", 0, 0, TATCELL_GREEN, NULL));
}

void make_policers(void) {
    const enum tatcell_dpdk_mode mode = s.policer.mode;
    const int keyed = mode >= TATCELL_DPDK_BYTES && mode <= TATCELL_DPDK_MARK;
    if (mode == TATCELL_DPDK_METER) {
        tatcell_meter_spec_t spec = TATCELL_METER_SPEC_INIT;
        spec.kind = s.kind, spec.tick_hz = s.tick_hz, spec.cir = s.committed[0], spec.cbs = s.committed[1];
        spec.rate2 = s.kind == TATCELL_METER_RFC2697 ? 0 : s.second[0], spec.burst2 = s.second[1];
        check("--kind, --committed and --second", tatcell_meter_params_init(&meter_params, &spec));
    }
    if (s.rte) {
        struct rte_meter_srtcm_params rfc2697 = {.cir = s.committed[0], .cbs = s.committed[1], .ebs = s.second[1]};
        if (rte_meter_srtcm_profile_config(&rte_profile, &rfc2697) != 0)
            die("--committed or --second: rte_meter does not take it");
        for (int i = 0; i < VLANS; i++) rte_meter_srtcm_config(&rte_meters[i], &rte_profile);
    }
    unsigned lcore;
    uint16_t queue = 0;
    struct lcore *first = NULL;
    RTE_LCORE_FOREACH(lcore) {
        struct lcore *l = &lcores[lcore];
        if (keyed && (first == NULL || !s.shared)) make_table(l);
        if (first == NULL) first = l;
        struct lcore *of = s.shared ? first : l;
        l->policer = s.policer;
        l->policer.table = &of->table, l->policer.packets = &of->limits[0], l->policer.bytes = &of->limits[1];
        l->policer.mark = &of->mark, l->sweeper = &of->own_sweeper;
        l->policer.meters = meters, l->policer.meter_count = VLANS, l->policer.meter_params = &meter_params;
        l->queue = queue++;
        tatcell_dpdk_init(&l->bursts[0]), tatcell_dpdk_init(&l->bursts[1]);
    }
}

void start_ports(void) {
    const struct {
        const char *option;
        int port;
    } ports[] = {{"--in", s.in}, {"--out", s.out}, {"--relay", s.relay[0]}, {"--relay", s.relay[1]}};
    for (size_t i = 0; i < RTE_DIM(ports); i++)
        if (ports[i].port >= 0 && !rte_eth_dev_is_valid_port((uint16_t)ports[i].port))
            die("%s %d: there is no such port; the EAL has found %u (-a of a card, or --vdev, makes one)",
                ports[i].option, ports[i].port, rte_eth_dev_count_avail());
    const uint16_t queues = (uint16_t)rte_lcore_count();
    /* Every queue full in both directions, and what lcores hold and keep in their caches. */
    const uint32_t held = 256 * 3 / 2 + 3 * TATCELL_DPDK_BURST;
    const uint32_t most = queues * (2u * QUEUE * rte_eth_dev_count_avail() + held);
    const uint16_t room = (uint16_t)(s.room + RTE_PKTMBUF_HEADROOM);
    struct rte_mempool *const pool =
        rte_pktmbuf_pool_create("packets", RTE_MAX(most, 8191u), 256, 0, room, SOCKET_ID_ANY);
    if (pool == NULL)
        die("%u mbufs of %u bytes: %s; give the EAL more memory (-m)", RTE_MAX(most, 8191u), room,
            rte_strerror(rte_errno));
    uint16_t port;
    RTE_ETH_FOREACH_DEV(port) {
        struct rte_eth_dev_info info;
        struct rte_eth_conf conf;
        memset(&conf, 0, sizeof conf);
        if (rte_eth_dev_info_get(port, &info) != 0) die("port %u: it gives no information", port);
        /* Packets of one flow on one lcore; those of one key, where tables are the lcores' own and the card can. */
        static const uint64_t spreads[] = {
            [TATCELL_DPDK_SOURCE] = RTE_ETH_RSS_L3_SRC_ONLY,
            [TATCELL_DPDK_VLAN] = RTE_ETH_RSS_C_VLAN | RTE_ETH_RSS_S_VLAN,
        };
        const uint64_t can = info.flow_type_rss_offloads;
        const uint64_t by_key = s.policer.key < RTE_DIM(spreads) ? spreads[s.policer.key] : 0;
        uint64_t wanted = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;
        if (!s.shared && queues > 1 && s.policer.key != TATCELL_DPDK_FLOW) {
            if ((can & by_key) != 0)
                wanted = s.policer.key == TATCELL_DPDK_SOURCE ? RTE_ETH_RSS_IP | by_key : by_key;
            else
                fprintf(stderr, "policer: port %u spreads flows: a key that several lcores see has its limit in each "
                        "of their tables; take --table shared\n", port);
        }
        conf.rx_adv_conf.rss_conf.rss_hf = can & wanted;
        if (queues > 1 && conf.rx_adv_conf.rss_conf.rss_hf != 0) conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        if (rte_eth_dev_configure(port, queues, queues, &conf) != 0)
            die("port %u: it has no queue for each of %u lcores; give the EAL fewer (-l)", port, queues);
        for (uint16_t q = 0; q < queues; q++)
            if (rte_eth_rx_queue_setup(port, q, QUEUE, SOCKET_ID_ANY, NULL, pool) != 0 ||
                rte_eth_tx_queue_setup(port, q, QUEUE, SOCKET_ID_ANY, NULL) != 0)
                die("port %u: queue %u cannot be set up", port, q);
        if (rte_eth_dev_start(port) != 0) die("port %u: it does not start", port);
    }
    if (s.clock == RX) {
        timestamp = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
        if (timestamp < 0) die("--clock rx: no port gives timestamps; take tsc");
    }
}

