/* checks.bpf.c - tatcell_bpf.h in the kernel: programs whose packet is a struct request, for BPF_PROG_TEST_RUN. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <tatcell_bpf.h>

#include "request.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, uint32_t);
    __type(value, tatcell_bpf_line_t);
} image SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 4);
    __type(key, uint32_t);
    __type(value, tatcell_bpf_limit_t);
} limits SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, tatcell_bpf_table_t);
} tables SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 16);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, uint32_t);
    __type(value, uint64_t);
} cells SEC(".maps");

static __always_inline struct request *request_of(struct xdp_md *ctx) {
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    return data + sizeof(struct request) > end ? NULL : data;
}

static __always_inline int decide(struct request *r) {
    uint32_t zero = 0, home, next, limit_at = r->limit;
    tatcell_bpf_answer_t answer;
    tatcell_bpf_table_t *table = bpf_map_lookup_elem(&tables, &zero);
    tatcell_bpf_limit_t *limit = bpf_map_lookup_elem(&limits, &limit_at);
    tatcell_bpf_line_t *a, *b;
    uint64_t hash;
    if (!table || !limit) return XDP_ABORTED;
    hash = tatcell_bpf_hash(table, r->key, 0, r->length & 15);
    home = tatcell_bpf_home(table, hash);
    next = tatcell_bpf_next(table, home);
    a = bpf_map_lookup_elem(&image, &home);
    b = bpf_map_lookup_elem(&image, &next);
    if (!a || !b) return XDP_ABORTED;
    r->verdict =
        tatcell_bpf_table_check(table, a, b, limit, r->now ? r->now : bpf_ktime_get_ns(), hash, r->cost, &answer);
    r->retry_after = answer.retry_after;
    r->tracking = answer.tracking;
    r->flags = answer.flags;
    return r->verdict == TATCELL_PASS ? XDP_PASS : XDP_DROP;
}

SEC("xdp") int check_table(struct xdp_md *ctx) {
    struct request *r = request_of(ctx);
    return r ? decide(r) : XDP_ABORTED;
}

/* What a race shares with user space: whose turn it is, and how often each key was admitted, by whom. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, uint32_t);
    __type(value, struct race);
} races SEC(".maps");

/* One turn of a race. The packet is that of a request; its key is the turn's. */
SEC("xdp") int check_race(struct xdp_md *ctx) {
    struct request *r = request_of(ctx);
    uint32_t zero = 0;
    struct race *race = bpf_map_lookup_elem(&races, &zero);
    uint64_t key;
    int32_t passed;
    if (!r || !race) return XDP_ABORTED;
    key = __sync_fetch_and_add(&race->turn, 1) / RACE_EACH;
    if (key >= RACE_KEYS) return XDP_PASS;
    r->key = key;
    passed = decide(r) == XDP_PASS;
    if (passed) __sync_fetch_and_add(&race->admitted[key], 1);
    if (passed) __sync_fetch_and_add(&race->by_bpf, 1);
    return XDP_PASS;
}

/* The same without a limiter: what a run costs by itself. */
SEC("xdp") int check_nothing(struct xdp_md *ctx) {
    struct request *r = request_of(ctx);
    if (!r) return XDP_ABORTED;
    r->verdict = bpf_ktime_get_ns() == 0;
    return XDP_PASS;
}

/* A new key each time: every run inserts. */
SEC("xdp") int check_flood(struct xdp_md *ctx) {
    struct request *r = request_of(ctx);
    if (!r) return XDP_ABORTED;
    r->key = bpf_get_prandom_u32();
    return decide(r);
}

SEC("xdp") int check_cell(struct xdp_md *ctx) {
    struct request *r = request_of(ctx);
    uint32_t cell_at, limit_at;
    tatcell_bpf_limit_t *limit;
    uint64_t *cell, retry_after;
    if (!r) return XDP_ABORTED;
    cell_at = r->key;
    limit_at = r->limit;
    cell = bpf_map_lookup_elem(&cells, &cell_at);
    limit = bpf_map_lookup_elem(&limits, &limit_at);
    if (!cell || !limit) return XDP_ABORTED;
    r->verdict = tatcell_bpf_cell_check(cell, limit, r->now ? r->now : bpf_ktime_get_ns(), r->cost, &retry_after);
    r->retry_after = retry_after;
    return r->verdict == TATCELL_PASS ? XDP_PASS : XDP_DROP;
}

char terms[] SEC("license") = "Dual MIT/GPL";
