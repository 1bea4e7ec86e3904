/* rules.h - the algorithms that count, by their textbooks: one state a key, times in units of u ticks, counts as they
 * are. Each rule says whether n units pass at `now`, and how many are left then. */
#ifndef TATCELL_RULES_H
#define TATCELL_RULES_H

#include <stdint.h>

__extension__ typedef unsigned __int128 u128;

/* A limit: `units` in a window of `ticks`, which is w units of time. */
typedef struct shape {
    uint64_t units, ticks, u, w, phase;
    int aligned;
} shape;

/* What a key has: the start (sliding), end (fixed, quota) or number (aligned) of its window, the time at which a smooth
 * key is full, and counts. */
typedef struct state {
    uint64_t at, smooth, now, before;
    int live;
} state;

typedef int (*rule)(const shape *, state *, uint64_t now, uint64_t n, uint64_t *left);

/* Anchored: a window begins with the first request behind the one before, and ends with a whole unit of time. Aligned:
 * at the phase and each window after it. Who is behind counts in the latest window. */
static inline int fixed(const shape *l, state *s, uint64_t now, uint64_t n, uint64_t *left) {
    uint64_t t = now / l->u * l->u, at;
    int same;
    if (l->aligned) {
        at = (t + l->ticks - l->phase) / l->ticks;
        same = s->live && at <= s->at;
    } else {
        at = (now + l->ticks + l->u - 1) / l->u * l->u;
        same = s->live && t < s->at;
    }
    state next = same ? *s : (state){.at = at, .live = 1};
    int fits = next.now + n <= l->units;
    if (fits) next.now += n, *s = next;
    *left = l->units - (next.now < l->units ? next.now : l->units);
    return fits;
}

static inline int sliding(const shape *l, state *s, uint64_t now, uint64_t n, uint64_t *left) {
    uint64_t t = now / l->u;
    state next = *s;
    if (!next.live || t >= next.at + 2 * l->w) next = (state){.at = t, .live = 1};
    else if (t >= next.at + l->w) next.before = next.now, next.now = 0, next.at += l->w;
    u128 seen = l->w - (t > next.at ? t - next.at : 0), weight = next.before * seen;
    int fits = weight + (u128)(next.now + n) * l->w <= (u128)l->units * l->w;
    if (fits) next.now += n, *s = next;
    uint64_t taken = next.now + (uint64_t)((weight + l->w - 1) / l->w);
    *left = l->units > taken ? l->units - taken : 0;
    return fits;
}

/* Finch's: a quota in a window; who uses it up gets one unit each emission interval, until all has drained. The request
 * that begins a window never switches. The interval is a whole number of units of time here. */
static inline int quota(const shape *l, state *s, uint64_t now, uint64_t n, uint64_t *left) {
    const uint64_t emission = l->w / l->units, t = now / l->u, full = l->units * emission;
    state next = *s;
    const int begins = !next.live || t >= (next.smooth ? next.smooth : next.at);
    int fits;
    if (begins) next = (state){.at = t + l->w, .live = 1};
    if (next.smooth) {
        fits = next.smooth + n * emission <= t + full;
        if (fits) next.smooth += n * emission;
    } else {
        fits = next.now + n <= l->units;
        if (fits) next.now += n;
        if (fits && next.now == l->units && !begins) next.smooth = next.at - emission + full;
    }
    if (fits) *s = next;
    if (next.smooth) *left = t + full > next.smooth ? (t + full - next.smooth) / emission : 0;
    else *left = l->units - next.now;
    return fits;
}

/* Gives n units back to the window that was charged, where that is still the current one, and no quota is used up. */
static inline uint64_t give_back(const shape *l, rule by, state *s, uint64_t now, const state *charged, uint64_t n) {
    uint64_t t = now / l->u;
    int goes_on;
    if (by == sliding) goes_on = t < s->at + l->w;
    else if (by == quota) goes_on = t < s->at && !s->smooth && !charged->smooth;
    else if (l->aligned) goes_on = (t * l->u + l->ticks - l->phase) / l->ticks <= s->at;
    else goes_on = t * l->u < s->at;
    if (!goes_on || s->at != charged->at) return 0;
    if (n > s->now) n = s->now;
    s->now -= n;
    return n;
}

#endif /* TATCELL_RULES_H */
