/* bucket.h - an exact token bucket in 128-bit integers, as a debt in q-units. It knows no window and no wrap. */
#ifndef TATCELL_BUCKET_H
#define TATCELL_BUCKET_H

#include "kit.h"

__extension__ typedef unsigned __int128 u128;

typedef struct bucket {
    u128 t, burst, room, debt_cap, delay, soft, horizon; /* q-units; `room` and `burst` in units */
    u128 tat;
    int s;
    int cell_bits; /* of a cell's word; 0 in a table */
} bucket;

typedef struct answer {
    int32_t verdict;
    uint32_t flags;
    u128 lead, wait, stored;
} answer;

static inline u128 clock_q(const bucket *b, u128 now) {
    return b->s >= 0 ? now << b->s : now >> -b->s;
}

static inline u128 lead_at(const bucket *b, u128 q) {
    return b->tat > q ? b->tat - q : 0;
}

static inline answer keep(int32_t verdict, u128 lead, u128 wait) {
    return (answer){verdict, 0, lead, wait, 0};
}

/* A cell whose word is 0 is fresh, so a TAT that would be 0 there is stored as 1: a q-unit late, never early. */
static inline void set_tat(bucket *b, u128 tat) {
    int zero = b->cell_bits && (tat & (((u128)1 << b->cell_bits) - 1)) == 0;
    b->tat = tat + (u128)zero;
}

static inline answer charge_to(bucket *b, u128 q, u128 lead, u128 stored) {
    answer a = keep(0, lead + stored, 0);
    a.stored = stored;
    if (a.lead > b->soft) a.flags |= TATCELL_FLAG_SOFT;
    if (stored) set_tat(b, q + a.lead);
    return a;
}

static inline answer oracle_check(bucket *b, u128 q, u128 cost, u128 room) {
    u128 lead = lead_at(b, q), c = cost * b->t, limit;
    if (room > b->room) room = b->room;
    limit = (b->burst + room) * b->t;
    if (cost > b->burst + room) return keep(TATCELL_NEVER, lead, 0);
    if (lead + c > limit) return keep(TATCELL_NON_CONFORMING, lead, lead + c - limit);
    answer a = charge_to(b, q, lead, c);
    if (a.lead > b->burst * b->t) a.flags |= TATCELL_FLAG_ELASTIC;
    return a;
}

static inline answer oracle_charge(bucket *b, u128 q, u128 cost) {
    u128 lead = lead_at(b, q), next = lead + cost * b->t;
    if (next > b->debt_cap) next = b->debt_cap > lead ? b->debt_cap : lead;
    return charge_to(b, q, lead, next - lead);
}

static inline answer oracle_reserve(bucket *b, u128 q, u128 cost) {
    u128 lead = lead_at(b, q), next = lead + cost * b->t, limit = b->burst * b->t;
    u128 wait = next > limit ? next - limit : 0;
    if (cost > b->burst) return keep(TATCELL_NEVER, lead, 0);
    if (wait > b->delay) return keep(TATCELL_NON_CONFORMING, lead, wait - b->delay);
    answer a = charge_to(b, q, lead, cost * b->t);
    a.wait = wait;
    return a;
}

static inline u128 oracle_refund(bucket *b, u128 q, u128 stored, u128 tat) {
    u128 lead = lead_at(b, q), left = tat > q ? tat - q : 0;
    if (left > b->horizon) left = 0;
    if (left > stored) left = stored;
    if (left > lead) left = lead;
    if (left) b->tat = q + lead - left;
    return left;
}

/* Ticks after `now` at which the q-clock has advanced by `q`: the definition, not a formula that might be shared. */
static inline u128 ticks(const bucket *b, u128 now, u128 q) {
    if (q == 0) return 0;
    if (b->s >= 0) return (q + ((u128)1 << b->s) - 1) >> b->s;
    return ((clock_q(b, now) + q) << -b->s) - now;
}

/* Moves the debt to another rate, in time; what the new one cannot hold is cut. A bucket that has drained moves not. */
static inline int oracle_change(bucket *b, u128 q, const bucket *to) {
    u128 lead = lead_at(b, q), tat = b->tat;
    if (lead == 0) return 0;
    *b = *to;
    if (lead > b->horizon) set_tat(b, q + b->horizon);
    else b->tat = tat;
    return 1;
}

static inline uint64_t retry_of(const bucket *b, u128 now, const answer *a) {
    return a->verdict == TATCELL_NEVER ? UINT64_MAX : a->verdict == 0 ? 0 : (uint64_t)ticks(b, now, a->wait);
}

static inline void compare(const bucket *b, u128 now, uint32_t cost, const answer *a, const tatcell_decision_t *d) {
    u128 full = b->burst * b->t, left = a->lead < full ? (full - a->lead) / b->t : 0;
    EQ(d->verdict, a->verdict);
    EQ(d->flags, a->flags);
    EQ(d->cost, cost);
    EQ(d->burst, b->burst);
    EQ(d->remaining, left);
    EQ(d->retry_after, retry_of(b, now, a));
    EQ(d->next_unit, left == b->burst ? 0 : ticks(b, now, a->lead + (left + 1) * b->t - full));
    EQ(d->reset_after, ticks(b, now, a->lead));
}

#endif /* TATCELL_BUCKET_H */
