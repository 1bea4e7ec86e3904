/* settings.c - the command line of the policer.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_debug.h>

#include "policer.h"

/* A mode in addition to those of the header. */
enum { RTE = TATCELL_DPDK_METER + 1 };

struct settings s = {
    .slots = 1 << 16, .room = RTE_MBUF_DEFAULT_DATAROOM, .idle_ms = 200, .shared = 1, .relay = {-1, -1},
    .kind = TATCELL_METER_RFC2698, .policer.source_bits6 = 64,
};

static void __rte_noreturn usage(void) {
    fputs("policer EAL-OPTIONS -- OPTIONS\n"
          "  --mode none|bytes|packets|both|mark|meter|rte   what a packet is held to; none\n"
          "  --key source|flow|vlan|offset:AT:LENGTH         by which key; source\n"
          "  --bytes RATE:BURST, --packets RATE:BURST        a second, and at once; or \"2MB/s burst 64kB\"\n"
          "  --kind 2697|2698|4115                           of --mode mark and meter; 2698\n"
          "  --committed RATE:BURST, --second RATE:BURST     bytes a second, bytes\n"
          "  --overhead BYTES                                that each packet costs on top of its own; 0\n"
          "  --slots N, --table shared|lcore                 65536, shared; lcore: one each, exclusive\n"
          "  --others pass|drop                              packets without a key; drop\n"
          "  --undecided pass|drop                           packets that got no verdict, as other lcores won; pass\n"
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

void die(const char *format, ...) {
    va_list arguments;
    fputs("policer: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

/* What is being read: its option and its value, for what `die` says. */
static struct {
    const char *option, *value;
} at;

static void __rte_noreturn wrong(const char *cure) {
    die("--%s %s: %s", at.option, at.value, cure);
}

/* A number from `least` to `most` that ends with `end`; what follows it. */
static const char *number(const char *text, char end, uint64_t least, uint64_t most, uint64_t *to, const char *cure) {
    char *after;
    errno = 0;
    *to = strtoull(text, &after, 10);
    if (!isdigit((unsigned char)*text) || errno != 0 || *after != end || *to < least || *to > most) wrong(cure);
    return after + 1;
}

static uint64_t one(uint64_t least, uint64_t most, const char *cure) {
    uint64_t n;
    (void)number(at.value, 0, least, most, &n, cure);
    return n;
}

static void two(const char *text, uint64_t least, uint64_t most, uint64_t to[2], const char *cure) {
    text = number(text, ':', least, most, &to[0], cure);
    (void)number(text, 0, least, most, &to[1], cure);
}

/* RATE:BURST; or a limit as the library reads it, which cannot be 0. */
static void rate(uint64_t to[2]) {
    static const char cure[] = "it is RATE:BURST, what passes a second and what passes at once, or 2MB/s burst 64kB";
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    size_t where = 0;
    if (strchr(at.value, '/') == NULL) {
        two(at.value, 0, UINT64_MAX, to, cure);
        return;
    }
    if (tatcell_limit_spec_parse(&spec, at.value, strlen(at.value), 1, &where) != 0)
        die("--%s %s, byte %zu: %s", at.option, at.value, where, cure);
    if (spec.period != 1) wrong("it is a whole number a second");
    to[0] = spec.units, to[1] = spec.burst;
}

static int word(const char *const *words, const char *cure) {
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(at.value, words[i]) == 0) return i;
    wrong(cure);
}

static void key(void) {
    static const char *const keys[] = {"source", "flow", "vlan", NULL};
    static const char cure[] = "it is source, flow, vlan or offset:AT:LENGTH, with AT up to 65535 and LENGTH 1 to 16";
    uint64_t range[2];
    if (strncmp(at.value, "offset:", 7) != 0) {
        s.policer.key = (enum tatcell_dpdk_key)word(keys, cure);
        return;
    }
    two(at.value + 7, 0, UINT16_MAX, range, cure);
    if (range[1] == 0 || range[1] > 16) wrong(cure);
    s.policer.key = TATCELL_DPDK_OFFSET;
    s.policer.key_offset = (uint16_t)range[0], s.policer.key_length = (uint16_t)range[1];
}

/* Limits that the mode needs and nobody gave. */
static void complete(int mode) {
    static const char *const modes[] = {"none", "bytes", "packets", "both", "mark", "meter", "rte"};
    const struct {
        const char *option;
        const uint64_t *rate;
        int modes; /* bit m: mode m needs it */
    } needs[] = {
        {"bytes", s.bytes, 1 << TATCELL_DPDK_BYTES | 1 << TATCELL_DPDK_BOTH},
        {"packets", s.packets, 1 << TATCELL_DPDK_PACKETS | 1 << TATCELL_DPDK_BOTH},
        {"committed", s.committed, 1 << TATCELL_DPDK_MARK | 1 << TATCELL_DPDK_METER | 1 << RTE},
        {"second", s.second, 1 << TATCELL_DPDK_MARK | (s.kind != TATCELL_METER_RFC2697) << TATCELL_DPDK_METER},
    };
    for (size_t i = 0; i < RTE_DIM(needs); i++)
        if ((needs[i].modes >> mode & 1) && needs[i].rate[1] == 0)
            die("--mode %s: it needs --%s RATE:BURST, with a burst of 1 or more", modes[mode], needs[i].option);
    if (mode == TATCELL_DPDK_MARK && s.kind == TATCELL_METER_RFC2697)
        die("--kind 2697: a mark of a key is of 2698 or 4115; 2697 needs --mode meter");
}

void read_settings(int count, char **arguments) {
    static const struct option options[] = {
        {"mode", 1, NULL, 'm'},   {"key", 1, NULL, 'k'},       {"bytes", 1, NULL, 'b'},  {"packets", 1, NULL, 'p'},
        {"kind", 1, NULL, 'K'},   {"committed", 1, NULL, 'c'}, {"second", 1, NULL, 'C'}, {"overhead", 1, NULL, 'O'},
        {"slots", 1, NULL, 's'},  {"table", 1, NULL, 't'},     {"others", 1, NULL, 'o'}, {"dscp", 1, NULL, 'd'},
        {"clock", 1, NULL, 'T'},  {"in", 1, NULL, 'i'},        {"out", 1, NULL, 'u'},    {"relay", 1, NULL, 'r'},
        {"fill", 1, NULL, 'f'},   {"count", 1, NULL, 'n'},     {"idle", 1, NULL, 'I'},   {"warm", 1, NULL, 'w'},
        {"room", 1, NULL, 'R'},   {"bits6", 1, NULL, '6'},     {"undecided", 1, NULL, 'U'},
        {NULL, 0, NULL, 0},
    };
    static const char *const modes[] = {"none", "bytes", "packets", "both", "mark", "meter", "rte", NULL};
    static const char *const tables[] = {"lcore", "shared", NULL}, *const drop_pass[] = {"drop", "pass", NULL};
    static const char *const clocks[] = {"tsc", "rx", "fixed", NULL}, *const kinds[] = {"2697", "2698", "4115", NULL};
    static const uint32_t kind_codes[] = {TATCELL_METER_RFC2697, TATCELL_METER_RFC2698, TATCELL_METER_RFC4115};
    static const char port[] = "it is the number of a port, as the EAL counts them from 0";
    static const char any[] = "it is a whole number";
    uint64_t pair[2];
    int mode = TATCELL_DPDK_NONE;
    for (int c, i; (c = getopt_long(count, arguments, "", options, &i)) != -1;) {
        at.option = c == '?' ? NULL : options[i].name, at.value = optarg;
        switch (c) {
        case 'm':
            mode = word(modes, "it is none, bytes, packets, both, mark, meter or rte");
            s.rte = mode == RTE, s.policer.mode = s.rte ? TATCELL_DPDK_NONE : (enum tatcell_dpdk_mode)mode;
            break;
        case 'k': key(); break;
        case 'b': rate(s.bytes); break;
        case 'p': rate(s.packets); break;
        case 'K': s.kind = kind_codes[word(kinds, "it is 2697, 2698 or 4115")]; break;
        case 'c': rate(s.committed); break;
        case 'C': rate(s.second); break;
        case 'O': s.policer.overhead = (uint32_t)one(0, UINT16_MAX, "it is 0 to 65535 bytes"); break;
        case 's': s.slots = one(1, UINT64_MAX, "it is how many debts there is room for, 1 or more"); break;
        case 't': s.shared = word(tables, "it is shared or lcore"); break;
        case 'o': s.policer.pass_others = word(drop_pass, "it is pass or drop"); break;
        case 'U': s.policer.drop_undecided = !word(drop_pass, "it is pass or drop"); break;
        case 'd':
            two(at.value, 0, 63, pair, "it is GREEN:YELLOW, each 0 to 63");
            s.remark = 1, s.dscp[0] = (uint8_t)pair[0], s.dscp[1] = (uint8_t)pair[1];
            break;
        case 'T': s.clock = (enum clock)word(clocks, "it is tsc, rx or fixed"); break;
        case 'i': s.in = (int)one(0, RTE_MAX_ETHPORTS - 1, port); break;
        case 'u': s.out = (int)one(0, RTE_MAX_ETHPORTS - 1, port); break;
        case 'r':
            two(at.value, 0, RTE_MAX_ETHPORTS - 1, pair, "it is IN:OUT, the numbers of two ports");
            s.relay[0] = (int)pair[0], s.relay[1] = (int)pair[1];
            break;
        case 'f': s.fill = one(1, 1 << 24, "it is 1 to 16777216 sources"); break;
        case 'n': s.count = one(0, UINT64_MAX, any); break;
        case 'I': s.idle_ms = one(0, UINT32_MAX, "it is milliseconds, or 0 to run until it is stopped"); break;
        case 'R': s.room = (uint32_t)one(1, UINT16_MAX - RTE_PKTMBUF_HEADROOM, "it is 1 to 65407 bytes"); break;
        case '6': s.policer.source_bits6 = (uint8_t)one(1, 128, "it is 1 to 128 bits"); break;
        case 'w': s.warm = one(0, UINT64_MAX, any); break;
        default: usage(); /* which getopt has named */
        }
    }
    if (optind != count) die("%s: it belongs to no option", arguments[optind]);
    complete(mode);
}
