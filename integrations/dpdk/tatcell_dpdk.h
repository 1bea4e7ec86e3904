/* tatcell_dpdk.h - bursts of mbufs under the limits of a tatcell table.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One burst is decided while the keys of the next one are hashed and fetched:
 *
 *     struct tatcell_dpdk_burst b[2];                      // of one lcore
 *     tatcell_dpdk_init(&b[0]), tatcell_dpdk_init(&b[1]);
 *     for (unsigned i = 0;; i ^= 1) {
 *         struct tatcell_dpdk_burst *ready = &b[i], *next = &b[i ^ 1];
 *         next->count = rte_eth_rx_burst(port, queue, next->packets, TATCELL_DPDK_BURST);
 *         tatcell_dpdk_load(next, &policer);               // keys and lengths out of the packets
 *         tatcell_table_sweep_due(policer.table, &sweeper, now);
 *         rc = tatcell_dpdk_decide(&policer, ready, next, now);
 *         sent = rte_eth_tx_burst(port, queue, ready->out, tatcell_dpdk_split(ready));
 *         ...                                              // ready->drop, and what was not sent, are to be freed
 *         ready->count = 0, now = rte_rdtsc();
 *     }
 *
 * Nothing here allocates, locks or reads a clock. A burst and its counts belong to one lcore; a policer is only read,
 * and lcores may share it unless its table is exclusive. */
#ifndef TATCELL_DPDK_H
#define TATCELL_DPDK_H

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <tatcell.h>

/** Packets of a burst, at most TATCELL_BURST_MAX. */
#define TATCELL_DPDK_BURST 32
/** Bytes that the longest key takes: the five-tuple of IPv6, padded. */
#define TATCELL_DPDK_KEY 40
/** Bytes of a frame that are looked at, where they lie in more than one segment. */
#define TATCELL_DPDK_HEADERS 256
/** Extension headers of IPv6 that are walked. */
#define TATCELL_DPDK_EXTENSIONS 8

/** What of a packet is its key. Keys of 4 bytes (a VLAN) and of 16 are fastest. */
enum tatcell_dpdk_key {
    TATCELL_DPDK_SOURCE,  /**< source address, 16 bytes; IPv4 as ::ffff:a.b.c.d; of IPv6 its first source_bits6 */
    TATCELL_DPDK_FLOW,    /**< addresses, protocol, ports: 16 bytes of IPv4, 40 of IPv6, padded with zeros */
    TATCELL_DPDK_VLAN,    /**< VLAN identifier, and that of an inner tag: 4 bytes */
    TATCELL_DPDK_OFFSET,  /**< key_length bytes, up to 16, from key_offset of the frame, padded with zeros */
};

/** What a packet is held to. */
enum tatcell_dpdk_mode {
    TATCELL_DPDK_NONE,     /**< nothing: all pass */
    TATCELL_DPDK_BYTES,    /**< the limit `bytes` of its key */
    TATCELL_DPDK_PACKETS,  /**< the limit `packets` of its key */
    TATCELL_DPDK_BOTH,     /**< both limits of its key, all or none */
    TATCELL_DPDK_MARK,     /**< the mark of its key: green, yellow or red */
    TATCELL_DPDK_METER,    /**< a meter by index: the VLAN identifier modulo meter_count */
};

/** What packets are held to, and by which key. Zero it, then set what the mode needs. */
struct tatcell_dpdk_policer {
    enum tatcell_dpdk_mode mode;
    enum tatcell_dpdk_key key;
    uint16_t key_offset, key_length;
    /** Bits of an IPv6 source that are its key: 64, since who has one address of such a network has all. 0: 128. */
    uint8_t source_bits6;
    /** Bytes that a packet costs in addition to its own: 24 for what Ethernet adds on the wire (preamble, FCS, gap). */
    uint32_t overhead;
    /** Packets without a key (no IP, cut off, no tag): do they pass? They are never charged. */
    int pass_others;
    /** Packets without a verdict (other lcores won every race for a word, or an error): are they dropped? Else they
     * pass, yellow where the mode has colours. */
    int drop_undecided;
    const tatcell_table_t *table;
    const tatcell_limit_t *bytes, *packets;
    const tatcell_mark_t *mark;
    tatcell_meter_t *meters;
    uint32_t meter_count;
    const tatcell_meter_params_t *meter_params;
};

/** A burst: what was received, what it is charged, what was decided. Of one lcore. */
struct tatcell_dpdk_burst {
    /** Received. */
    struct rte_mbuf *packets[TATCELL_DPDK_BURST];
    uint32_t count;
    /** Bit i: packet i passes; and its colour where the mode has colours, else green. */
    uint64_t pass;
    uint8_t colours[TATCELL_DPDK_BURST];
    /** Once they are split: those that pass and those that do not. */
    struct rte_mbuf *out[TATCELL_DPDK_BURST], *drop[TATCELL_DPDK_BURST];
    uint32_t out_count, drop_count;
    /** Packets that had no key, those that got no verdict, and what came of all others: green, yellow, red (without
     * colours: passed, 0, not). */
    uint64_t others, undecided, marked[3];
    /** The table's counters. `contended` are first attempts; see `undecided` for what stayed without a verdict. */
    tatcell_counters_t counters;

    /* What follows is not for use. With a key are `keyed` packets, number i of them being packet index[i]. */
    uint32_t keyed;
    uint8_t index[TATCELL_DPDK_BURST], keyed_colours[TATCELL_DPDK_BURST];
    uint32_t costs[TATCELL_DPDK_BURST], meter[TATCELL_DPDK_BURST];
    size_t lengths[TATCELL_DPDK_BURST];
    uint64_t others_now;
    tatcell_burst_t burst;
    uint8_t keys[TATCELL_DPDK_BURST][TATCELL_DPDK_KEY] __rte_aligned(8);
};

/** An empty burst. */
static inline void tatcell_dpdk_init(struct tatcell_dpdk_burst *b) {
    const tatcell_burst_t empty = TATCELL_BURST_INIT;
    memset(b, 0, sizeof *b);
    b->burst = empty;
}

/** Where the headers of a frame lie: what follows Ethernet and up to two tags. */
struct tatcell_dpdk_frame {
    const uint8_t *l3;
    uint32_t left;
    /** Bytes from the start of the frame to l3. */
    uint32_t at;
    uint16_t type, tags[2];
    unsigned tag_count;
    /* Headers of several segments, brought together. */
    uint8_t together[TATCELL_DPDK_HEADERS];
};

/** Reads the Ethernet header. Tags that the network card has taken off count as well. False where it is cut off. */
static inline int tatcell_dpdk_frame(const struct rte_mbuf *m, struct tatcell_dpdk_frame *f) {
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    uint32_t left = rte_pktmbuf_data_len(m), at = 2 * RTE_ETHER_ADDR_LEN;
    if (unlikely(left < sizeof f->together && m->next != NULL)) {
        left = RTE_MIN(rte_pktmbuf_pkt_len(m), (uint32_t)sizeof f->together);
        p = (const uint8_t *)rte_pktmbuf_read(m, 0, left, f->together);
        if (p == NULL) return 0;
    }
    f->tag_count = 0, f->tags[0] = f->tags[1] = 0;
    if (m->ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED) f->tags[f->tag_count++] = m->vlan_tci_outer & 0xfff;
    if (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) f->tags[f->tag_count++] = m->vlan_tci & 0xfff;
    for (;;) {
        if (left < at + 2) return 0;
        f->type = (uint16_t)(p[at] << 8 | p[at + 1]);
        at += 2;
        if (f->type != RTE_ETHER_TYPE_VLAN && f->type != RTE_ETHER_TYPE_QINQ) break;
        if (f->tag_count == 2 || left < at + 2) return 0;
        f->tags[f->tag_count++] = (uint16_t)((p[at] << 8 | p[at + 1]) & 0xfff);
        at += 2;
    }
    f->l3 = p + at, f->left = left - at, f->at = at;
    return 1;
}

/** Ports where the packet has them whole, else zeros: fragments of a flow that are not its first count as one. */
static inline void tatcell_dpdk_ports(const uint8_t *l4, uint32_t left, uint8_t protocol, uint8_t *to) {
    const int has = protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP;
    if (has && left >= 4) memcpy(to, l4, 4);
}

/** What follows the extension headers of IPv6 that all parts of a datagram have, so that a flow is the same with them
 * and without: where it lies from the IPv6 header on, and its number. It stops at a fragment header, and at one that is
 * cut off. */
static inline uint32_t tatcell_dpdk_behind(const struct tatcell_dpdk_frame *f, uint8_t *protocol) {
    uint32_t at = 40;
    *protocol = f->l3[6];
    for (int i = 0; i < TATCELL_DPDK_EXTENSIONS && f->left >= at + 8; i++) {
        const uint8_t *header = f->l3 + at;
        if (*protocol == IPPROTO_AH) at += (header[1] + 2u) * 4;
        else if (*protocol == IPPROTO_HOPOPTS || *protocol == IPPROTO_ROUTING || *protocol == IPPROTO_DSTOPTS)
            at += (header[1] + 1u) * 8;
        else break;
        *protocol = header[0];
    }
    return RTE_MIN(at, f->left);
}

/** The key of a packet: its bytes in `key`, which is zeroed, and how many; 0 where it has none. */
static inline size_t tatcell_dpdk_key(const struct tatcell_dpdk_policer *p, const struct rte_mbuf *m, uint8_t *key) {
    struct tatcell_dpdk_frame f;
    if (p->key == TATCELL_DPDK_OFFSET) {
        uint8_t together[16];
        if (p->key_length == 0 || p->key_length > sizeof together) return 0;
        const void *const bytes = rte_pktmbuf_read(m, p->key_offset, p->key_length, together);
        if (bytes == NULL) return 0;
        memcpy(key, bytes, p->key_length);
        return 16;
    }
    if (!tatcell_dpdk_frame(m, &f)) return 0;
    if (p->key == TATCELL_DPDK_VLAN) {
        if (f.tag_count == 0) return 0;
        memcpy(key, f.tags, 4);
        return 4;
    }
    if (f.type == RTE_ETHER_TYPE_IPV4 && f.left >= 20 && f.l3[0] >> 4 == 4) {
        const uint32_t header = (f.l3[0] & 15u) * 4;
        if (header < 20 || f.left < header) return 0;
        if (p->key == TATCELL_DPDK_SOURCE) {
            key[10] = key[11] = 0xff;
            memcpy(key + 12, f.l3 + 12, 4);
            return 16;
        }
        memcpy(key, f.l3 + 12, 8);
        key[8] = f.l3[9];
        /* Only the first fragment has ports: none of a fragmented packet counts with them. */
        if (((f.l3[6] << 8 | f.l3[7]) & 0x3fff) == 0)
            tatcell_dpdk_ports(f.l3 + header, f.left - header, f.l3[9], key + 12);
        return 16;
    }
    if (f.type == RTE_ETHER_TYPE_IPV6 && f.left >= 40 && f.l3[0] >> 4 == 6) {
        if (p->key == TATCELL_DPDK_SOURCE) {
            const unsigned bits = p->source_bits6 == 0 || p->source_bits6 > 128 ? 128 : p->source_bits6;
            memcpy(key, f.l3 + 8, bits / 8);
            if (bits % 8 != 0) key[bits / 8] = (uint8_t)(f.l3[8 + bits / 8] & 0xff00 >> bits % 8);
            return 16;
        }
        memcpy(key, f.l3 + 8, 32);
        const uint32_t at = tatcell_dpdk_behind(&f, &key[32]);
        tatcell_dpdk_ports(f.l3 + at, f.left - at, key[32], key + 36);
        return 40;
    }
    return 0;
}

/** Takes keys and lengths out of the received packets. Reads headers only; call it once a burst, before it is the next
 * of tatcell_dpdk_decide. */
static inline void tatcell_dpdk_load(struct tatcell_dpdk_burst *b, const struct tatcell_dpdk_policer *p) {
    uint32_t n = 0;
    size_t longest = 0, shortest = TATCELL_DPDK_KEY;
    b->others_now = 0, b->burst.prepared = 0, b->pass = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct rte_mbuf *m = b->packets[i];
        b->colours[i] = TATCELL_GREEN;
        if (p->mode == TATCELL_DPDK_NONE) continue;
        memset(b->keys[n], 0, sizeof b->keys[n]);
        size_t length = 0;
        if (p->mode == TATCELL_DPDK_METER) {
            struct tatcell_dpdk_frame f;
            if (p->meter_count != 0 && tatcell_dpdk_frame(m, &f) && f.tag_count != 0)
                length = 4, b->meter[n] = f.tags[f.tag_count - 1] % p->meter_count;
        } else {
            length = tatcell_dpdk_key(p, m, b->keys[n]);
        }
        if (length == 0) {
            b->others_now |= UINT64_C(1) << i;
            continue;
        }
        b->costs[n] = rte_pktmbuf_pkt_len(m) + p->overhead;
        b->lengths[n] = length;
        longest = RTE_MAX(longest, length), shortest = RTE_MIN(shortest, length);
        b->index[n++] = (uint8_t)i;
    }
    b->keyed = b->burst.count = n;
    b->burst.keys = b->keys, b->burst.stride = TATCELL_DPDK_KEY;
    b->burst.key_len = longest;
    b->burst.key_lens = n != 0 && longest != shortest ? b->lengths : NULL;
    b->burst.counters = &b->counters;
    b->burst.costs = p->mode == TATCELL_DPDK_BYTES || p->mode == TATCELL_DPDK_MARK ? b->costs : NULL;
    b->burst.limit = p->mode == TATCELL_DPDK_BYTES ? p->bytes : p->mode == TATCELL_DPDK_MARK ? NULL : p->packets;
}

/** Asks the table for packets of one burst or for one packet. `costs` are those of the second limit. */
static inline int32_t tatcell_dpdk_ask(const struct tatcell_dpdk_policer *p, tatcell_burst_t *burst,
                                       const uint32_t *costs, uint8_t *colours, tatcell_burst_t *ahead) {
    switch (p->mode) {
    case TATCELL_DPDK_BYTES:
    case TATCELL_DPDK_PACKETS: return tatcell_table_check_burst(p->table, burst, ahead);
    case TATCELL_DPDK_BOTH: return tatcell_table_check_pairs(p->table, burst, p->bytes, costs, ahead);
    case TATCELL_DPDK_MARK: return tatcell_table_mark_burst(p->table, burst, p->mark, NULL, colours, NULL, ahead);
    default: return 0;
    }
}

/* A burst tells how many of its packets lost every race, not which. Those that did not pass are asked for once more,
 * one by one: who was refused is refused again, since a key owes no less at the same time, and who lost gets a verdict,
 * or is one of those that this gives: bit i, the packet index[i]. (A limit with a penalty takes it twice.) */
static __rte_unused __rte_noinline __rte_cold uint64_t tatcell_dpdk_again(const struct tatcell_dpdk_policer *p,
                                                                          struct tatcell_dpdk_burst *b) {
    tatcell_burst_t one = b->burst;
    uint64_t undecided = 0;
    one.count = 1, one.key_lens = NULL;
    for (uint32_t i = 0; i < b->keyed; i++) {
        if (b->burst.pass >> i & 1) continue;
        tatcell_counters_t counters;
        memset(&counters, 0, sizeof counters);
        one.keys = b->keys[i], one.key_len = b->lengths[i], one.costs = b->burst.costs == NULL ? NULL : &b->costs[i];
        one.counters = &counters, one.prepared = one.pass = 0;
        const int32_t rc = tatcell_dpdk_ask(p, &one, &b->costs[i], &b->keyed_colours[i], NULL);
        if (rc < 0 || counters.contended != 0) {
            undecided |= UINT64_C(1) << i;
        } else if (one.pass != 0) {
            b->burst.pass |= UINT64_C(1) << i;
            (void)tatcell_counters_add(&b->counters, &counters);
        }
    }
    return undecided;
}

/* One meter a packet, by index. Gives those without a verdict. */
static inline uint64_t tatcell_dpdk_meter(const struct tatcell_dpdk_policer *p, struct tatcell_dpdk_burst *b,
                                          int32_t *rc) {
    uint64_t undecided = 0;
    b->burst.pass = 0;
    for (uint32_t i = 0; i < b->keyed; i++) {
        uint32_t colour = TATCELL_RED;
        const int32_t code = tatcell_meter_check(&p->meters[b->meter[i]], p->meter_params, b->burst.now, b->costs[i],
                                                 TATCELL_GREEN, &colour);
        b->keyed_colours[i] = (uint8_t)colour;
        b->burst.pass |= (uint64_t)(code == TATCELL_PASS) << i;
        undecided |= (uint64_t)(code == TATCELL_CONTENDED || code < 0) << i;
        if (code < 0) *rc = code;
    }
    return undecided;
}

/* Packets without a verdict do as they are told. The burst has them among its others already. */
static __rte_unused __rte_noinline __rte_cold void tatcell_dpdk_undecided(const struct tatcell_dpdk_policer *p,
                                                                          struct tatcell_dpdk_burst *b,
                                                                          uint64_t undecided, uint8_t colour) {
    for (uint32_t i = 0; i < b->keyed; i++) {
        if ((undecided >> i & 1) == 0) continue;
        const uint64_t packet = UINT64_C(1) << b->index[i];
        uint8_t *const of = &b->colours[b->index[i]];
        b->marked[*of]--, b->undecided++;
        *of = p->drop_undecided ? TATCELL_RED : colour;
        b->pass = p->drop_undecided ? b->pass & ~packet : b->pass | packet;
    }
}

/** Decides a burst at `now`, and hashes and fetches the keys of the next one; NULL = none follows. 0, or a negative
 * code of tatcell: then none of its packets with a key has a verdict. A policer without a mode lets all pass. */
static inline int32_t tatcell_dpdk_decide(const struct tatcell_dpdk_policer *p, struct tatcell_dpdk_burst *ready,
                                          struct tatcell_dpdk_burst *next, uint64_t now) {
    const uint64_t contended = ready->counters.contended;
    uint64_t undecided = 0;
    int32_t rc = 0;
    if (p->mode == TATCELL_DPDK_NONE) {
        ready->pass = ready->count == 0 ? 0 : UINT64_MAX >> (64 - ready->count);
        ready->marked[TATCELL_GREEN] += ready->count;
        return 0;
    }
    ready->burst.now = now;
    memset(ready->keyed_colours, TATCELL_RED, sizeof ready->keyed_colours);
    if (p->mode == TATCELL_DPDK_METER) {
        undecided = tatcell_dpdk_meter(p, ready, &rc);
    } else {
        rc = tatcell_dpdk_ask(p, &ready->burst, ready->costs, ready->keyed_colours, next == NULL ? NULL : &next->burst);
        if (unlikely(rc < 0)) ready->burst.pass = 0, undecided = UINT64_MAX;
        else if (unlikely(ready->counters.contended != contended)) undecided = tatcell_dpdk_again(p, ready);
    }
    const int colours = p->mode == TATCELL_DPDK_MARK || p->mode == TATCELL_DPDK_METER;
    ready->pass = p->pass_others ? ready->others_now : 0;
    ready->others += (uint64_t)__builtin_popcountll(ready->others_now);
    for (uint32_t i = 0; i < ready->keyed; i++) {
        const uint64_t passes = ready->burst.pass >> i & 1;
        const uint8_t colour = colours ? ready->keyed_colours[i] : passes ? TATCELL_GREEN : TATCELL_RED;
        ready->pass |= passes << ready->index[i];
        ready->colours[ready->index[i]] = colour;
        ready->marked[colour]++;
    }
    if (unlikely(undecided != 0))
        tatcell_dpdk_undecided(p, ready, undecided, colours ? TATCELL_YELLOW : TATCELL_GREEN);
    return rc;
}

/** Parts a decided burst, in order: those that pass into `out`, the others into `drop`. Gives how many pass. */
static inline uint16_t tatcell_dpdk_split(struct tatcell_dpdk_burst *b) {
    b->out_count = b->drop_count = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->pass >> i & 1) b->out[b->out_count++] = b->packets[i];
        else b->drop[b->drop_count++] = b->packets[i];
    }
    return (uint16_t)b->out_count;
}

/** A byte of a packet that has more than `at` of them, in whichever segment it lies. */
static inline uint8_t *tatcell_dpdk_byte(struct rte_mbuf *m, uint32_t at) {
    while (at >= rte_pktmbuf_data_len(m)) at -= rte_pktmbuf_data_len(m), m = m->next;
    return rte_pktmbuf_mtod(m, uint8_t *) + at;
}

/** Writes a DSCP into a packet that is this lcore's own: IPv4, with its checksum, or IPv6. Others stay as they are. */
static inline void tatcell_dpdk_remark(struct rte_mbuf *m, uint8_t dscp) {
    struct tatcell_dpdk_frame f;
    if (!tatcell_dpdk_frame(m, &f)) return;
    if (f.type == RTE_ETHER_TYPE_IPV4 && f.left >= 20) {
        /* RFC 1624: HC' = ~(~HC + ~m + m'). */
        const uint8_t class = (uint8_t)(dscp << 2 | (f.l3[1] & 3));
        const uint16_t before = (uint16_t)(f.l3[0] << 8 | f.l3[1]), after = (uint16_t)(f.l3[0] << 8 | class);
        const uint16_t sum = (uint16_t)(f.l3[10] << 8 | f.l3[11]);
        uint32_t fresh = (uint16_t)~sum + (uint32_t)(uint16_t)~before + after;
        fresh = (fresh & 0xffff) + (fresh >> 16);
        fresh = ~((fresh & 0xffff) + (fresh >> 16));
        *tatcell_dpdk_byte(m, f.at + 1) = class;
        *tatcell_dpdk_byte(m, f.at + 10) = (uint8_t)(fresh >> 8);
        *tatcell_dpdk_byte(m, f.at + 11) = (uint8_t)fresh;
    } else if (f.type == RTE_ETHER_TYPE_IPV6 && f.left >= 40) {
        const uint8_t low = f.l3[1] & 0x3f, high = f.l3[0] & 0xf0;
        *tatcell_dpdk_byte(m, f.at) = (uint8_t)(high | dscp >> 2);
        *tatcell_dpdk_byte(m, f.at + 1) = (uint8_t)(low | dscp << 6);
    }
}

#endif /* TATCELL_DPDK_H */
