/* policer.h - what the parts of the policer share: settings (settings.c), what is made of them before packets come
 * (make.c), and the lcores that run (policer.c).
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef POLICER_H
#define POLICER_H

#include <rte_lcore.h>
#include <rte_meter.h>

#include "tatcell_dpdk.h"

enum { VLANS = 4096, QUEUE = 1024 };

/* Where `now` comes from. */
enum clock { TSC, RX, FIXED };

struct settings {
    struct tatcell_dpdk_policer policer;
    int rte; /* rte_meter in place of tatcell's meters, for comparison */
    uint32_t kind;
    uint64_t bytes[2], packets[2], committed[2], second[2]; /* a second, and at once */
    uint64_t slots, tick_hz, fill, count, idle_ms, warm;
    uint32_t room; /* of an mbuf */
    int shared, remark, in, out, relay[2];
    uint8_t dscp[2]; /* of green and of yellow */
    enum clock clock;
};

/* What one lcore has. */
struct lcore {
    struct tatcell_dpdk_policer policer;
    struct tatcell_dpdk_burst bursts[2];
    uint64_t nows[2], received, sent, unsent, dropped, sent_bytes, cpu_ns, measured;
    uint16_t queue;
    tatcell_table_t table;
    tatcell_sweeper_t own_sweeper, *sweeper; /* of the table; shared if the table is */
    tatcell_limit_t limits[2];
    tatcell_mark_t mark;
} __rte_cache_aligned;

extern struct settings s;
extern struct lcore lcores[RTE_MAX_LCORE];
extern struct rte_meter_srtcm rte_meters[VLANS];
extern struct rte_meter_srtcm_profile rte_profile;
extern int timestamp; /* of packets, where `clock` is RX */

/* Of the command line behind the EAL's; ends the program with a line where it is wrong. */
void read_settings(int count, char **arguments);

/* Ends the program: what is wrong, and the cure. */
void die(const char *format, ...) __rte_format_printf(1, 2) __rte_noreturn;
void check(const char *what, int32_t rc);

/* Ports that run, and the policer of every lcore. */
void start_ports(void);
void make_policers(void);

#endif /* POLICER_H */
