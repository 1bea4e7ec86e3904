/* policer.bpf.c - limits packets by their source: an IPv4 address, or the first 64 bits of an IPv6 address. For XDP and
 * tc. The tool, policer.c, makes its maps. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <tatcell_bpf.h>

#include "policer.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, uint32_t);
    __type(value, tatcell_bpf_line_t);
} image SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, uint32_t);
    __type(value, struct settings);
} settings SEC(".maps");

/* The cell of the limit of all; a line of its own. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, uint32_t);
    __type(value, tatcell_bpf_line_t);
} all SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct counts);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, REFUSED_PLACES);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, uint32_t);
    __type(value, struct refused);
} refused SEC(".maps");

/* Headers, as they stand in a packet: at any address. */
struct ethernet {
    uint8_t to[6], from[6];
    uint16_t type;
} __attribute__((packed));
struct vlan {
    uint16_t tag, type;
} __attribute__((packed));
struct ip4 {
    uint8_t before[12];
    uint32_t source, destination;
} __attribute__((packed));
struct ip6 {
    uint8_t before[8];
    uint32_t source[4], destination[4];
} __attribute__((packed));

#define TYPE_IP4 0x0800
#define TYPE_IP6 0x86dd
#define TYPE_VLAN 0x8100
#define TYPE_QINQ 0x88a8

/* The key of a source. */
struct key {
    uint64_t low, high, length;
};

/* As numbers whose lowest bits are the first byte. */
static __always_inline uint64_t little(uint32_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap32(word);
#else
    return word;
#endif
}

static __always_inline void key_of_4(struct key *key, uint64_t address) {
    key->low = 4 | 32 << 8 | address << 16;
    key->high = 0;
    key->length = KEY_BYTES_4;
}

/* An IPv4 address inside an IPv6 one is that IPv4 address: mapped, NAT64's 64:ff9b::/96, 6to4. */
static __always_inline void key_of_6(struct key *key, const struct ip6 *ip) {
    uint64_t first = little(ip->source[0]) | little(ip->source[1]) << 32;
    bool mapped = first == 0 && ip->source[2] == bpf_htonl(0xffff);
    bool nat64 = ip->source[0] == bpf_htonl(0x0064ff9b) && ip->source[1] == 0 && ip->source[2] == 0;
    if (mapped || nat64) {
        key_of_4(key, little(ip->source[3]));
    } else if ((first & 0xffff) == 0x0220) {
        key_of_4(key, first >> 16 & 0xffffffff);
    } else {
        key->low = 6 | 64 << 8 | first << 16;
        key->high = first >> 48;
        key->length = KEY_BYTES_6;
    }
}

/* 0: no IP; -1: the headers are not all there. */
static __always_inline int parse(void *data, void *end, struct key *key) {
    struct ethernet *ethernet = data;
    void *next = ethernet + 1;
    uint16_t type;
    if (next > end) return -1;
    type = ethernet->type;
    for (int tags = 0; tags < 2; tags++) {
        struct vlan *vlan = next;
        if (type != bpf_htons(TYPE_VLAN) && type != bpf_htons(TYPE_QINQ)) break;
        if ((void *)(vlan + 1) > end) return -1;
        type = vlan->type;
        next = vlan + 1;
    }
    if (type == bpf_htons(TYPE_IP4)) {
        struct ip4 *ip = next;
        if ((void *)(ip + 1) > end) return -1;
        key_of_4(key, little(ip->source));
        return 1;
    }
    if (type == bpf_htons(TYPE_IP6)) {
        struct ip6 *ip = next;
        if ((void *)(ip + 1) > end) return -1;
        key_of_6(key, ip);
        return 1;
    }
    return 0;
}

/* No verdict: counted, and done as it is set. */
static __always_inline bool undecided(const struct settings *set, bool dry, struct counts *count) {
    count->of[UNDECIDED]++;
    return dry || !set->refuse_undecided;
}

/* May a packet of this source pass? Decides and counts. */
static __always_inline bool police(const struct key *key, uint64_t length, struct counts *count) {
    uint32_t zero = 0, home, next, turn;
    struct settings *set = bpf_map_lookup_elem(&settings, &zero);
    tatcell_bpf_line_t *a, *b, *cell;
    tatcell_bpf_answer_t answer;
    uint64_t hash, cost, now = bpf_ktime_get_ns(), retry_after;
    int32_t verdict;
    bool dry;
    if (!set) return true;
    turn = *(volatile uint32_t *)&set->turn & 1;
    dry = set->source[turn].flags & TATCELL_LIMIT_SHADOW;
    cost = set->bytes ? length : 1;
    hash = tatcell_bpf_hash(&set->table, key->low, key->high, key->length);
    home = tatcell_bpf_home(&set->table, hash);
    next = tatcell_bpf_next(&set->table, home);
    a = bpf_map_lookup_elem(&image, &home);
    b = bpf_map_lookup_elem(&image, &next);
    if (!a || !b) { /* a map that is smaller than its table */
        bool passes = undecided(set, dry, count);
        count->of[passes ? PASSED : REFUSED]++;
        return passes;
    }
    verdict = tatcell_bpf_table_check(&set->table, a, b, &set->source[turn], now, hash, cost, &answer);
    if (answer.flags & TATCELL_BPF_INSERTED) count->of[INSERTED]++;
    if (answer.flags & TATCELL_BPF_SHADOWED) count->of[SHADOWED]++;
    if (answer.tracking == TATCELL_UNTRACKED) count->of[UNTRACKED]++;
    if (answer.tracking == TATCELL_INHERITED) count->of[INHERITED]++;
    if (answer.tracking == TATCELL_FORGIVEN) count->of[FORGIVEN]++;
    if (verdict == TATCELL_CONTENDED) {
        if (!undecided(set, dry, count)) {
            count->of[REFUSED]++;
            return false;
        }
    } else if (verdict != TATCELL_PASS || answer.flags & TATCELL_BPF_SHADOWED) {
        uint32_t place = hash & (REFUSED_PLACES - 1);
        struct refused *sample = bpf_map_lookup_elem(&refused, &place);
        if (sample) {
            sample->low = key->low;
            sample->high = key->high;
        }
        if (verdict != TATCELL_PASS) {
            count->of[verdict == TATCELL_NEVER ? NEVER : REFUSED]++;
            return false;
        }
    }
    cell = bpf_map_lookup_elem(&all, &zero);
    if (cell && set->all[turn].emission_q != 0) {
        verdict = tatcell_bpf_cell_check(&cell->word[0], &set->all[turn], now, cost, &retry_after);
        if (verdict == TATCELL_CONTENDED) {
            if (!undecided(set, dry, count)) {
                count->of[ALL]++;
                return false;
            }
        } else if (verdict != TATCELL_PASS && dry) {
            /* Counted once, if its source would have been refused as well. */
            if (!(answer.flags & TATCELL_BPF_SHADOWED)) count->of[SHADOWED]++;
        } else if (verdict != TATCELL_PASS) {
            count->of[ALL]++;
            return false;
        }
    }
    count->of[PASSED]++;
    return true;
}

SEC("xdp") int policer_xdp(struct xdp_md *ctx) {
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    uint32_t zero = 0;
    struct counts *count = bpf_map_lookup_elem(&counts, &zero);
    struct key key;
    if (!count) return XDP_PASS;
    if (parse(data, end, &key) <= 0) {
        count->of[OTHER]++;
        return XDP_PASS;
    }
    return police(&key, (uint64_t)(end - data), count) ? XDP_PASS : XDP_DROP;
}

SEC("tc") int policer_tc(struct __sk_buff *skb) {
    uint32_t zero = 0;
    struct counts *count = bpf_map_lookup_elem(&counts, &zero);
    struct key key;
    int ip;
    if (!count) return TC_ACT_UNSPEC;
    ip = parse((void *)(long)skb->data, (void *)(long)skb->data_end, &key);
    if (ip < 0) {
        /* The headers lie in pages: bring them in. */
        uint32_t headers = sizeof(struct ethernet) + 2 * sizeof(struct vlan) + sizeof(struct ip6);
        bpf_skb_pull_data(skb, skb->len < headers ? skb->len : headers);
        ip = parse((void *)(long)skb->data, (void *)(long)skb->data_end, &key);
    }
    if (ip <= 0) {
        count->of[OTHER]++;
        return TC_ACT_UNSPEC;
    }
    return police(&key, skb->len, count) ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

char terms[] SEC("license") = "Dual MIT/GPL";
