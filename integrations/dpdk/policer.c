/* policer.c - a policer between two ports: every flow, source or VLAN to its limits, on any number of lcores.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Usage: policer EAL-OPTIONS -- OPTIONS; see `usage` and the README. Each lcore has a queue of each port. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>
#include <rte_meter.h>
#include <rte_telemetry.h>
#include <rte_udp.h>

#include <tatcell_host.h>

#include "tatcell_dpdk.h"

enum { VLANS = 4096, QUEUE = 1024 };

/* Where `now` comes from. */
enum clock { TSC, RX, FIXED };

static struct settings {
    struct tatcell_dpdk_policer policer;
    int rte; /* rte_meter in place of tatcell's meters, for comparison */
    uint32_t kind;
    uint64_t bytes[2], packets[2], committed[2], second[2]; /* a second, and at once */
    uint64_t slots, tick_hz, fill, count, idle_ms, warm;
    uint32_t room; /* of an mbuf */
    int shared, remark, in, out, relay[2];
    uint8_t dscp[2]; /* of green and of yellow */
    enum clock clock;
} s = {
    .slots = 1 << 16, .room = RTE_MBUF_DEFAULT_DATAROOM, .idle_ms = 200, .shared = 1, .relay = {-1, -1},
    .kind = TATCELL_METER_RFC2698, .policer.source_bits6 = 64,
};

/* Of one lcore. */
static struct lcore {
    struct tatcell_dpdk_policer policer;
    struct tatcell_dpdk_burst bursts[2];
    uint64_t nows[2], received, sent, unsent, dropped, sent_bytes, cpu_ns, measured;
    uint16_t queue;
    int32_t rc;
    tatcell_table_t table;
    tatcell_limit_t limits[2];
    tatcell_mark_t mark;
} __rte_cache_aligned lcores[RTE_MAX_LCORE];

static tatcell_meter_t meters[VLANS];
static tatcell_meter_params_t meter_params;
static struct rte_meter_srtcm rte_meters[VLANS];
static struct rte_meter_srtcm_profile rte_profile;
static struct rte_mempool *pool;
static int timestamp = -1;
static volatile sig_atomic_t stopped;

static void stop(int signal) {
    (void)signal;
    stopped = 1;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static void usage(void) {
    fputs("policer EAL-OPTIONS -- OPTIONS\n"
          "  --mode none|bytes|packets|both|mark|meter|rte   what a packet is held to; none\n"
          "  --key source|flow|vlan|offset:AT:LENGTH         by which key; source\n"
          "  --bytes RATE:BURST, --packets RATE:BURST        a second, and at once\n"
          "  --kind 2697|2698|4115                           of --mode mark and meter; 2698\n"
          "  --committed RATE:BURST, --second RATE:BURST     bytes a second, bytes\n"
          "  --overhead BYTES                                that each packet costs beside its own; 0\n"
          "  --slots N, --table shared|lcore                 65536, shared; lcore: one each, exclusive\n"
          "  --others pass|drop                              packets without a key; drop\n"
          "  --dscp GREEN:YELLOW                             written into what passes\n"
          "  --bits6 N                                       of an IPv6 source that are its key; 64\n"
          "  --room BYTES                                    of an mbuf; longer packets have several; 2048\n"
          "  --clock tsc|rx|fixed                            rx: the timestamps of the packets, microseconds\n"
          "  --in PORT, --out PORT                           0 and 0\n"
          "  --relay IN:OUT                                  forwards between two other ports, unpoliced\n"
          "  --fill KEYS                                     writes headers of so many sources, for net_null\n"
          "  --count PACKETS, --idle MS                      ends after so many, or so long without one; none, 200\n"
          "  --warm PACKETS                                  that the nanoseconds leave out, of each lcore; 0\n",
          stderr);
    exit(2);
}

static uint64_t number(const char *text, char end, const char **rest) {
    char *after;
    const uint64_t n = strtoull(text, &after, 10);
    if (after == text || *after != end) usage();
    if (rest != NULL) *rest = after + 1;
    return n;
}

static void two(const char *text, uint64_t to[2]) {
    to[0] = number(text, ':', &text);
    to[1] = number(text, 0, NULL);
}

static int word(const char *text, const char *const *words) {
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(text, words[i]) == 0) return i;
    usage();
    return 0;
}

static void read_settings(int count, char **arguments) {
    static const struct option options[] = {
        {"mode", 1, NULL, 'm'},   {"key", 1, NULL, 'k'},       {"bytes", 1, NULL, 'b'},  {"packets", 1, NULL, 'p'},
        {"kind", 1, NULL, 'K'},   {"committed", 1, NULL, 'c'}, {"second", 1, NULL, 'C'}, {"overhead", 1, NULL, 'O'},
        {"slots", 1, NULL, 's'},  {"table", 1, NULL, 't'},     {"others", 1, NULL, 'o'}, {"dscp", 1, NULL, 'd'},
        {"clock", 1, NULL, 'T'},  {"in", 1, NULL, 'i'},        {"out", 1, NULL, 'u'},    {"relay", 1, NULL, 'r'},
        {"fill", 1, NULL, 'f'},   {"count", 1, NULL, 'n'},     {"idle", 1, NULL, 'I'},   {"warm", 1, NULL, 'w'},
        {"room", 1, NULL, 'R'},   {"bits6", 1, NULL, '6'},
        {NULL, 0, NULL, 0},
    };
    static const char *const modes[] = {"none", "bytes", "packets", "both", "mark", "meter", "rte", NULL};
    static const char *const tables[] = {"lcore", "shared", NULL}, *const others[] = {"drop", "pass", NULL};
    static const char *const clocks[] = {"tsc", "rx", "fixed", NULL}, *const keys[] = {"source", "flow", "vlan", NULL};
    uint64_t pair[2];
    for (int c; (c = getopt_long(count, arguments, "", options, NULL)) != -1;) {
        switch (c) {
        case 'm': {
            const int mode = word(optarg, modes);
            s.rte = mode == 6, s.policer.mode = s.rte ? TATCELL_DPDK_NONE : (enum tatcell_dpdk_mode)mode;
            break;
        }
        case 'k':
            if (strncmp(optarg, "offset:", 7) == 0) {
                two(optarg + 7, pair);
                s.policer.key = TATCELL_DPDK_OFFSET;
                s.policer.key_offset = (uint16_t)pair[0], s.policer.key_length = (uint16_t)pair[1];
                if (pair[0] > UINT16_MAX || pair[1] == 0 || pair[1] > 16) usage();
            } else {
                s.policer.key = (enum tatcell_dpdk_key)word(optarg, keys);
            }
            break;
        case 'b': two(optarg, s.bytes); break;
        case 'p': two(optarg, s.packets); break;
        case 'K': s.kind = (uint32_t)number(optarg, 0, NULL); break;
        case 'c': two(optarg, s.committed); break;
        case 'C': two(optarg, s.second); break;
        case 'O': s.policer.overhead = (uint32_t)number(optarg, 0, NULL); break;
        case 's': s.slots = number(optarg, 0, NULL); break;
        case 't': s.shared = word(optarg, tables); break;
        case 'o': s.policer.pass_others = word(optarg, others); break;
        case 'd':
            two(optarg, pair);
            s.remark = 1, s.dscp[0] = pair[0] & 63, s.dscp[1] = pair[1] & 63;
            break;
        case 'T': s.clock = (enum clock)word(optarg, clocks); break;
        case 'i': s.in = (int)number(optarg, 0, NULL); break;
        case 'u': s.out = (int)number(optarg, 0, NULL); break;
        case 'r':
            two(optarg, pair);
            s.relay[0] = (int)pair[0], s.relay[1] = (int)pair[1];
            break;
        case 'f': s.fill = number(optarg, 0, NULL); break;
        case 'n': s.count = number(optarg, 0, NULL); break;
        case 'I': s.idle_ms = number(optarg, 0, NULL); break;
        case 'R':
            s.room = (uint32_t)number(optarg, 0, NULL);
            if (s.room == 0 || s.room > UINT16_MAX - RTE_PKTMBUF_HEADROOM) usage();
            break;
        case '6':
            pair[0] = number(optarg, 0, NULL);
            if (pair[0] == 0 || pair[0] > 128) usage();
            s.policer.source_bits6 = (uint8_t)pair[0];
            break;
        case 'w': s.warm = number(optarg, 0, NULL); break;
        default: usage();
        }
    }
    if (optind != count) usage();
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void die(const char *what, const char *why) {
    rte_exit(1, "policer: %s: %s\n", what, why);
}

static void check(const char *what, int32_t rc) {
    if (rc < 0) die(what, tatcell_strerror(rc));
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
    if (mode == TATCELL_DPDK_BYTES) first = second;
    if (mode == TATCELL_DPDK_PACKETS) second = first;
    const tatcell_limit_spec_t specs[2] = {limit_of(first), limit_of(second)};
    const int faster = specs[1].units > specs[0].units;
    /* Whose burst lasts longer. */
    const double lasts[2] = {(double)first[1] / (double)first[0], (double)second[1] / (double)second[0]};
    const int slower = lasts[1] > lasts[0];
    const size_t bytes = tatcell_table_bytes(s.slots);
    void *memory = rte_zmalloc("tatcell", bytes, TATCELL_TABLE_MEMORY_ALIGN);
    if (memory == NULL || bytes == 0) die("table", "no memory");
    uint8_t seed[16];
    check("seed", tatcell_host_random(seed, sizeof seed, NULL));
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    options.fastest = &specs[faster], options.slowest = &specs[slower], options.seed = seed;
    options.hash = tatcell_hash_available(TATCELL_HASH_AES) == 0 ? TATCELL_HASH_AES : TATCELL_HASH_SIPHASH13;
    options.tick_hz = s.tick_hz;
    if (!s.shared) options.flags = TATCELL_TABLE_EXCLUSIVE;
    check("table", tatcell_table_init(&l->table, memory, bytes, &options));
    for (int i = 0; i < 2; i++) check("limit", tatcell_limit_init_table(&l->limits[i], &l->table, &specs[i]));
    const tatcell_mark_t fresh = TATCELL_MARK_INIT;
    l->mark = fresh;
    l->mark.kind = s.kind, l->mark.committed = &l->limits[0], l->mark.second = &l->limits[1];
}

static void make_policers(void) {
    const enum tatcell_dpdk_mode mode = s.policer.mode;
    const int keyed = mode >= TATCELL_DPDK_BYTES && mode <= TATCELL_DPDK_MARK;
    if (mode == TATCELL_DPDK_METER) {
        tatcell_meter_spec_t spec = TATCELL_METER_SPEC_INIT;
        spec.kind = s.kind, spec.tick_hz = s.tick_hz, spec.cir = s.committed[0], spec.cbs = s.committed[1];
        spec.rate2 = s.kind == TATCELL_METER_RFC2697 ? 0 : s.second[0], spec.burst2 = s.second[1];
        check("meter", tatcell_meter_params_init(&meter_params, &spec));
    }
    if (s.rte) {
        struct rte_meter_srtcm_params rfc2697 = {.cir = s.committed[0], .cbs = s.committed[1], .ebs = s.second[1]};
        if (rte_meter_srtcm_profile_config(&rte_profile, &rfc2697) != 0) die("rte_meter", "rates");
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
        l->policer.mark = &of->mark;
        l->policer.meters = meters, l->policer.meter_count = VLANS, l->policer.meter_params = &meter_params;
        l->queue = queue++;
        tatcell_dpdk_init(&l->bursts[0]), tatcell_dpdk_init(&l->bursts[1]);
    }
}

static void start_ports(void) {
    const uint16_t queues = (uint16_t)rte_lcore_count();
    /* Every queue full in both directions, and what lcores hold and keep in their caches. */
    const uint32_t held = 256 * 3 / 2 + 3 * TATCELL_DPDK_BURST;
    const uint32_t most = queues * (2u * QUEUE * rte_eth_dev_count_avail() + held);
    const uint16_t room = (uint16_t)(s.room + RTE_PKTMBUF_HEADROOM);
    pool = rte_pktmbuf_pool_create("packets", RTE_MAX(most, 8191u), 256, 0, room, SOCKET_ID_ANY);
    if (pool == NULL) die("pool", rte_strerror(rte_errno));
    uint16_t port;
    RTE_ETH_FOREACH_DEV(port) {
        struct rte_eth_dev_info info;
        struct rte_eth_conf conf;
        memset(&conf, 0, sizeof conf);
        if (rte_eth_dev_info_get(port, &info) != 0) die("port", "no information");
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
        if (rte_eth_dev_configure(port, queues, queues, &conf) != 0) die("port", "as many queues as lcores");
        for (uint16_t q = 0; q < queues; q++)
            if (rte_eth_rx_queue_setup(port, q, QUEUE, SOCKET_ID_ANY, NULL, pool) != 0 ||
                rte_eth_tx_queue_setup(port, q, QUEUE, SOCKET_ID_ANY, NULL) != 0)
                die("port", "queue");
        if (rte_eth_dev_start(port) != 0) die("port", "does not start");
    }
    const int ports[4] = {s.in, s.out, s.relay[0], s.relay[1]};
    for (int i = 0; i < 4; i++)
        if (ports[i] >= 0 && !rte_eth_dev_is_valid_port((uint16_t)ports[i])) die("port", "there is no such port");
    if (s.clock == RX) {
        timestamp = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
        if (timestamp < 0) die("clock", "the port gives no timestamps");
    }
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

static int run(void *unused) {
    struct lcore *l = &lcores[rte_lcore_id()];
    const uint64_t patience = s.idle_ms * (rte_get_tsc_hz() / 1000);
    uint64_t last = rte_rdtsc(), start = cpu_ns(), left_out = 0;
    uint32_t state = 12345 + l->queue;
    (void)unused;
    for (unsigned i = 0; l->rc >= 0; i ^= 1) {
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
            continue;
        }
        tatcell_dpdk_load(next, &l->policer);
        if (s.rte) decide_rte(ready, l->nows[i]);
        else l->rc = tatcell_dpdk_decide(&l->policer, ready, next, l->nows[i]);
        forward(l, ready);
    }
    l->cpu_ns = cpu_ns() - start, l->measured = l->received - left_out;
    for (int i = 0; s.relay[0] >= 0 && i < 100; i++) relay(l);
    return 0;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

struct totals {
    uint64_t received, sent, unsent, dropped, sent_bytes, cpu_ns, measured, others, marked[3];
    tatcell_counters_t counters;
    int32_t rc;
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
            t.others += l->bursts[i].others;
            for (int c = 0; c < 3; c++) t.marked[c] += l->bursts[i].marked[c];
            (void)tatcell_counters_add(&t.counters, &l->bursts[i].counters);
        }
        if (l->rc < 0) t.rc = l->rc;
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
        {"contended", t.counters.contended},
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
    start_ports();
    make_policers();
    rte_telemetry_register_cmd("/tatcell/stats", tell, "Packets received, sent, dropped and marked. No parameters.");
    signal(SIGINT, stop), signal(SIGTERM, stop);
    rte_eal_mp_remote_launch(run, NULL, CALL_MAIN);
    rte_eal_mp_wait_lcore();
    const struct totals t = sum();
    printf("received %" PRIu64 " sent %" PRIu64 " unsent %" PRIu64 " dropped %" PRIu64 " others %" PRIu64
           " green %" PRIu64 " yellow %" PRIu64 " red %" PRIu64 " inserted %" PRIu64 " untracked %" PRIu64
           "\n",
           t.received, t.sent, t.unsent, t.dropped, t.others, t.marked[0], t.marked[1], t.marked[2],
           t.counters.inserted, t.counters.untracked);
    /* Only where it ends by itself: else the time has empty polls in it. */
    if (s.count != 0 && t.measured != 0) printf("ns %.1f\n", (double)t.cpu_ns / (double)t.measured);
    uint16_t port;
    RTE_ETH_FOREACH_DEV(port) {
        (void)rte_eth_dev_stop(port);
        (void)rte_eth_dev_close(port);
    }
    rte_eal_cleanup();
    check("decide", t.rc);
    return 0;
}
