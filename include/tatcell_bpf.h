/*
 * tatcell_bpf.h - the checks of cells and tables as C that the BPF verifier accepts: for XDP, tc and other programs.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * MODEL    That of tatcell.h. Cells and table images in BPF maps are those of the library, and every decision and every
 *          stored word equals the library's. BPF programs decide. User space makes the table, sweeps it, reads its
 *          statistics, and may check the same keys.
 * SETUP    User space includes this header, too. A table is a BPF_MAP_TYPE_ARRAY of tatcell_bpf_line_t with
 *          BPF_F_MMAPABLE and one element for each 64 bytes of tatcell_table_bytes(slots). Map it, and call
 *          tatcell_table_init on the mapping. Then call tatcell_bpf_table_init and tatcell_bpf_limit_init, and pass
 *          the results to the program in a map of yours. A cell is a uint64_t in a map.
 * DECIDE   In the program:
 *
 *            uint64_t hash = tatcell_bpf_hash(table, low, high, length);
 *            uint32_t home = tatcell_bpf_home(table, hash), next = tatcell_bpf_next(table, home);
 *            tatcell_bpf_line_t *a = bpf_map_lookup_elem(&image, &home), *b = bpf_map_lookup_elem(&image, &next);
 *            if (a && b && tatcell_bpf_table_check(table, a, b, limit, bpf_ktime_get_ns(), hash, 1, &answer) > 0)
 *                return XDP_DROP;
 *
 * SCOPE    GCRA limits and tables; the _init functions refuse others (TATCELL_ERR_ALGORITHM). SipHash-1-3 hashes keys
 *          of up to 16 bytes here. BPF has no AES: make the table with TATCELL_HASH_SIPHASH13, or with
 *          TATCELL_HASH_CALLER and a keyed hash of yours.
 * BUILD    clang 14 or later: -O2 -g -target bpf -mcpu=v3. The slow path consists of global functions, which the
 *          verifier knows by their BTF (-g) and walks once each. They need kernel 5.13 or later.
 * ORDER    BPF before v4 has no load with acquire order. Processors that keep loads in order (x86-64, s390x) need
 *          none. For others (arm64, powerpc, riscv) define TATCELL_BPF_ORDERED: an insert then reads each slot with an
 *          atomic addition of 0, which is ordered everywhere.
 * CHECKS   None in the program: the _init functions, which fill the maps, check. Any 64-bit value in a slot is valid,
 *          so another writer of the image can make answers wrong, and no more.
 *
 * Since 0.3.
 */
#ifndef TATCELL_BPF_H
#define TATCELL_BPF_H

#if defined(__bpf__) && !defined(__VMLINUX_H__) && !defined(TATCELL_NO_STDINT)
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __SIZE_TYPE__ size_t;
#define TATCELL_NO_STDINT
#include "tatcell.h"
#undef TATCELL_NO_STDINT
#else
#include "tatcell.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Inlined into the program. */
#define TATCELL_BPF_INLINE static inline __attribute__((always_inline, unused))
/* A function that the verifier walks on its own: its arguments are numbers and memory of a known size. */
#if defined(__bpf__)
#define TATCELL_BPF_APART __attribute__((weak, noinline))
#else
#define TATCELL_BPF_APART static __attribute__((noinline, unused))
#endif
/* Hides a value from the compiler. BPF has no conditional move: a comparison that the compiler recognises becomes a
 * branch, and each branch in a loop over slots multiplies what the verifier walks. */
#define TATCELL_BPF_HIDE(value) __asm__ volatile("" : "+r"(value))

/* 64 ones, and the bit of a claim. Without <stdint.h> there is no UINT64_MAX. */
#define TATCELL_BPF_ONES 0xffffffffffffffffu
#define TATCELL_BPF_CLAIM 0x8000000000000000u

/** Lost swaps after which a check is contended, as in the library. */
#define TATCELL_BPF_MAX_LOST 8
/** Scans of a set after which an insert is contended, as in the library. */
#define TATCELL_BPF_MAX_LOOKS 24
/** In the answer's flags: the key was not in the table before. */
#define TATCELL_BPF_INSERTED 1
/** In the answer's flags: the request passes only because the limit is in shadow mode. */
#define TATCELL_BPF_SHADOWED 2

/** The part of a limit that a check needs, made by tatcell_bpf_limit_init. If it is zeroed, every request conforms. */
typedef struct tatcell_bpf_limit_t {
    /** The emission interval T, in q-units; 0 = unlimited. */
    uint64_t emission_q;
    /** The debt of a whole burst, in q-units. */
    uint64_t burst_q;
    /** H + S, horizon and skew, in q-units. */
    uint64_t window_q;
    /** The largest lead that refused requests may build, burst included; 0 = they cost nothing. */
    uint64_t penalty_q;
    /** The burst, in units: the largest cost that can conform. */
    uint64_t burst;
    /** TATCELL_LIMIT_HEAL and TATCELL_LIMIT_SHADOW have an effect. */
    uint32_t flags;
    /** A tick is 2^shift_left q-units. */
    uint32_t shift_left;
    /** A q-unit is 2^shift_right ticks. */
    uint32_t shift_right;
    /** 0. */
    uint32_t reserved;
} tatcell_bpf_limit_t;

/** The part of a table that a check needs, with the secret seed. Made by tatcell_bpf_table_init. */
typedef struct tatcell_bpf_table_t {
    /** The bits of a slot word that hold the payload. */
    uint64_t mask;
    /** H + S of the table, in q-units. */
    uint64_t window_q;
    /** The claim lifetime, in q-units. */
    uint64_t claim_lifetime_q;
    /** An empty slot can be taken if its version lies at most this far ahead. */
    uint64_t grace_q;
    /** The first 8 bytes of the seed, little-endian. */
    uint64_t seed_low;
    /** The other 8 bytes of the seed. */
    uint64_t seed_high;
    /** Lines of 8 slots, without the header. */
    uint32_t lines;
    /** Lines of the header; also the number of the first line of slots. */
    uint32_t first_line;
    /** A TATCELL_FULL_ constant. */
    uint32_t policy;
    /** A tick is 2^shift_left q-units. */
    uint32_t shift_left;
    /** A q-unit is 2^shift_right ticks. */
    uint32_t shift_right;
    /** 0. */
    uint32_t reserved;
} tatcell_bpf_table_t;

/** A line of a table: one element of its map. */
typedef struct tatcell_bpf_line_t {
    /** Slots, or words of the header. */
    uint64_t word[8];
} tatcell_bpf_line_t;

/** The answer to a check, next to its verdict. */
typedef struct tatcell_bpf_answer_t {
    /** Ticks until the same cost conforms: 0 if it passes or is contended, UINT64_MAX if it never conforms. */
    uint64_t retry_after;
    /** TATCELL_TRACKED, TATCELL_UNTRACKED, TATCELL_INHERITED or TATCELL_FORGIVEN. */
    uint32_t tracking;
    /** Any of TATCELL_BPF_INSERTED, TATCELL_BPF_SHADOWED. */
    uint32_t flags;
} tatcell_bpf_answer_t;

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* The low 32 bits. */
TATCELL_BPF_INLINE uint32_t tatcell_bpf_low(uint64_t value) {
    return value & 0xffffffffu;
}

/* 1 if a value below 2^63 is 0. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_is_zero(uint64_t value) {
    TATCELL_BPF_HIDE(value);
    return (value - 1) >> 63;
}

/* 1 if a < b; both below 2^63. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_is_less(uint64_t a, uint64_t b) {
    uint64_t difference = a - b;
    TATCELL_BPF_HIDE(difference);
    return difference >> 63;
}

/* `a` if bit is 1, `b` if it is 0. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_select(uint64_t bit, uint64_t a, uint64_t b) {
    return b ^ ((a ^ b) & (0 - bit));
}

/* The number of the lowest of 16 bits that is set. */
TATCELL_BPF_INLINE uint32_t tatcell_bpf_lowest(uint32_t bits) {
    uint32_t below = ((bits & (0 - bits)) - 1) & 0xffff;
    below -= below >> 1 & 0x5555;
    below = (below & 0x3333) + (below >> 2 & 0x3333);
    below = (below + (below >> 4)) & 0x0f0f;
    return (below + (below >> 8)) & 15;
}

/* The caller's clock in q-units. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_clock(uint64_t now, uint32_t shift_left, uint32_t shift_right) {
    return now >> (shift_right & 63) << (shift_left & 63);
}

/* Ticks after now until q q-units have passed. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_ticks(uint64_t q, uint64_t now, uint32_t shift_left, uint32_t shift_right) {
    uint64_t one = 1;
    if (q == 0) return 0;
    q += (one << (shift_left & 63)) - 1;
    return (q >> (shift_left & 63) << (shift_right & 63)) - (now & ((one << (shift_right & 63)) - 1));
}

/* ---- words in memory -------------------------------------------------------------------------------------------- */

/* Loads a word whole; value only. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_load(const volatile uint64_t *word) {
    return *word;
}

/* Loads a word before every later load. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_load_first(uint64_t *word) {
#if defined(TATCELL_BPF_ORDERED)
    return __sync_fetch_and_add(word, 0);
#elif defined(__bpf__)
    return tatcell_bpf_load(word);
#else
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

/* Replaces old, and returns the word that was there. A full barrier. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_swap(uint64_t *word, uint64_t old, uint64_t replacement) {
    return __sync_val_compare_and_swap(word, old, replacement);
}

/* A full barrier, as the library has it between a claim and the scan that follows. */
TATCELL_BPF_INLINE void tatcell_bpf_fence(uint64_t *own) {
    (void)__sync_fetch_and_add(own, 0);
}

/* ---- one request on one lead ------------------------------------------------------------------------------------ */

/* The effect of a request on a lead. */
struct tatcell_bpf_step {
    uint64_t wait; /* q-units */
    uint64_t lead; /* to store */
    int32_t verdict;
    uint32_t stores;
    uint32_t shadows;
};

TATCELL_BPF_INLINE struct tatcell_bpf_step tatcell_bpf_decide(const tatcell_bpf_limit_t *limit, uint64_t lead,
                                                            uint64_t cost) {
    struct tatcell_bpf_step step = {0, lead, TATCELL_PASS, 0, 0};
    uint64_t charge = cost * limit->emission_q, next = lead + charge;
    if (limit->emission_q == 0) return step;
    if (cost <= limit->burst && next <= limit->burst_q) {
        step.lead = next;
        step.stores = charge != 0;
        return step;
    }
    if (limit->flags & TATCELL_LIMIT_SHADOW) {
        step.shadows = 1;
        return step;
    }
    if (cost > limit->burst) {
        step.verdict = TATCELL_NEVER;
        return step;
    }
    step.verdict = TATCELL_NON_CONFORMING;
    step.wait = next - limit->burst_q;
    if (lead < limit->penalty_q && charge != 0) {
        step.lead = next < limit->penalty_q ? next : limit->penalty_q;
        step.wait += step.lead - lead;
        step.stores = 1;
    }
    return step;
}

/**
 * Decides one request of a cell and charges it if it conforms. It equals tatcell_cell_check with a 64-bit limit.
 *
 * @param cell        the word, 8-byte aligned, in a map.
 * @param limit       made by tatcell_bpf_limit_init.
 * @param now         the clock, ticks: bpf_ktime_get_ns is CLOCK_MONOTONIC.
 * @param cost        units; 0 only peeks.
 * @param retry_after ticks until the same cost conforms, as for tatcell_cell_check; not NULL.
 * @retval TATCELL_PASS, TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED as tatcell_cell_check.
 * Thread: any number, also in user space. Cost: one swap if it passes, one load if not. Since 0.3.
 */
TATCELL_NODISCARD
TATCELL_BPF_INLINE int32_t tatcell_bpf_cell_check(uint64_t *cell, const tatcell_bpf_limit_t *limit, uint64_t now,
                                                  uint64_t cost, uint64_t *retry_after) {
    uint64_t clock = tatcell_bpf_clock(now, limit->shift_left, limit->shift_right), word = tatcell_bpf_load(cell);
    int tries;
    *retry_after = 0;
    for (tries = 0; tries < TATCELL_BPF_MAX_LOST; tries++) {
        uint64_t ahead = word - clock, lead = word != 0 && ahead - 1 < limit->window_q ? ahead : 0, next, found;
        struct tatcell_bpf_step step;
        /* Heal: a TAT further ahead than a window counts as a full debt of one burst. */
        int heals = (limit->flags & TATCELL_LIMIT_HEAL) != 0 && lead == 0 && word != 0;
        heals = heals && ahead - 1 < TATCELL_BPF_ONES >> 1;
        step = tatcell_bpf_decide(limit, heals ? limit->burst_q : lead, cost);
        if (step.stores || heals) {
            next = clock + step.lead;
            next += next == 0;
            found = tatcell_bpf_swap(cell, word, next);
            if (found != word) {
                word = found;
                continue;
            }
        }
        if (step.verdict == TATCELL_NEVER) *retry_after = TATCELL_BPF_ONES;
        if (step.verdict == TATCELL_NON_CONFORMING)
            *retry_after = tatcell_bpf_ticks(step.wait, now, limit->shift_left, limit->shift_right);
        return step.verdict;
    }
    return TATCELL_CONTENDED;
}

/* ---- slots ------------------------------------------------------------------------------------------------------ */

/* No slot of a set has this number. */
#define TATCELL_BPF_NONE 16

/* One request of one key, and the state of its insert. Slots of a set are numbered in search order: home line first. */
struct tatcell_bpf_ask {
    uint64_t mask, field, window, lifetime, grace; /* the table's */
    uint64_t tag, clock, cost;
    uint64_t own, known;       /* claims: placed by this request; seen in an earlier scan */
    uint64_t fence;            /* the word for tatcell_bpf_fence */
    uint64_t wait;             /* the answer, q-units */
    uint32_t own_at, known_at; /* the slots of own and known */
    uint32_t policy, sample;
    uint32_t turn; /* 8 if the home line is the second of its set: number ^ turn is the order of addresses */
    uint32_t looks, lost;     /* scans done, swaps lost */
    uint32_t tracking, flags; /* the answer */
    int32_t verdict;
};

/* The result of one scan of a set. */
struct tatcell_bpf_look {
    uint64_t live, claim, free, least; /* words */
    uint64_t live_at, claim_at, free_at, least_at;
    uint64_t soonest; /* the lead of the first slot to drain */
};

/* How far a payload lies ahead: 1..=H + S, else 0. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_lead(const struct tatcell_bpf_ask *ask, uint64_t word) {
    uint64_t ahead = (word - ask->clock) & ask->mask;
    return ahead & (0 - tatcell_bpf_is_less(ahead, ask->window + 1));
}

TATCELL_BPF_INLINE uint64_t *tatcell_bpf_slot(tatcell_bpf_line_t *home, tatcell_bpf_line_t *next, uint64_t at) {
    /* Otherwise the compiler merges both pointers into one with an offset that the verifier does not know. */
    TATCELL_BPF_HIDE(home);
    TATCELL_BPF_HIDE(next);
    if (at & 8) return &next->word[at & 7];
    return &home->word[at & 7];
}

/* Is the word LIVE, of the key? Then no bit above the payload differs. */
TATCELL_BPF_INLINE int tatcell_bpf_is_live_of(const struct tatcell_bpf_ask *ask, uint64_t word) {
    return (word ^ ask->tag) <= ask->mask;
}

TATCELL_BPF_INLINE uint64_t tatcell_bpf_live(const struct tatcell_bpf_ask *ask, uint64_t lead) {
    return ask->tag | ((ask->clock + lead) & ask->mask);
}

/* The claim that takes over a debt. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_claim_of_debt(const struct tatcell_bpf_ask *ask, uint64_t word) {
    return ask->tag | TATCELL_BPF_CLAIM | (((word + 1) | 1) & ask->mask);
}

/* The claim on a slot that may be taken. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_claim(const struct tatcell_bpf_ask *ask, uint64_t word) {
    uint64_t lead = tatcell_bpf_lead(ask, word), ahead = word == 0 ? 1 : lead + 1, version;
    if ((word & (ask->field | 1)) == 1 && lead != 0) return tatcell_bpf_claim_of_debt(ask, word);
    version = ask->clock + (ahead > ask->lifetime ? ahead : ask->lifetime);
    return ask->tag | TATCELL_BPF_CLAIM | ((version + (version & 1)) & ask->mask);
}

/* The lead on which a claim commits: the debt that it took over, or 0. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_claim_lead(const struct tatcell_bpf_ask *ask, uint64_t claim) {
    return (claim & 1) != 0 && ask->policy == TATCELL_FULL_INHERIT ? tatcell_bpf_lead(ask, claim - 1) : 0;
}

TATCELL_BPF_INLINE uint32_t tatcell_bpf_tracking(const struct tatcell_bpf_ask *ask, uint64_t claim) {
    if ((claim & 1) == 0) return TATCELL_TRACKED;
    if (ask->policy == TATCELL_FULL_INHERIT) return TATCELL_INHERITED;
    return ask->policy == TATCELL_FULL_SAMPLED ? TATCELL_FORGIVEN : TATCELL_TRACKED;
}

/* ---- the insert: src/table/set/insert.rs draws its protocol ------------------------------------------------------*/

/* Adds one slot to the result of a scan, without a branch. */
TATCELL_BPF_INLINE void tatcell_bpf_weigh(const struct tatcell_bpf_ask *ask, struct tatcell_bpf_look *look,
                                          uint64_t at, uint64_t word) {
    uint64_t lead = tatcell_bpf_lead(ask, word), field = word & ask->field, claim = word >> 63, odd = word & 1;
    uint64_t empty = tatcell_bpf_is_zero(field), tagged = tatcell_bpf_is_zero(field ^ ask->tag);
    uint64_t drained = tatcell_bpf_is_zero(lead), never = tatcell_bpf_is_zero((word >> 1) | odd);
    uint64_t inherits = ask->policy == TATCELL_FULL_INHERIT, grace = tatcell_bpf_is_less(lead, ask->grace + 1);
    uint64_t debt = empty & odd & inherits & (1 - drained), tombstone = empty & (1 - never) & (1 - odd);
    uint64_t takes = (drained | (empty & (never | odd | grace))) & (1 - debt) & (1 - tagged);
    uint64_t holds = (1 - tagged) & (1 - takes) & (1 - (claim & (1 - empty)));
    uint64_t far = TATCELL_BPF_CLAIM >> 1, rank = at ^ ask->turn, first, better, age, free_age;
    /* The first LIVE slot of the key. */
    first = tagged & (1 - claim) & tatcell_bpf_is_less(at, look->live_at);
    look->live = tatcell_bpf_select(first, word, look->live);
    look->live_at = tatcell_bpf_select(first, at, look->live_at);
    /* The lowest claim of the key, in address order. */
    first = tagged & claim & tatcell_bpf_is_less(rank, look->claim_at);
    look->claim = tatcell_bpf_select(first, word, look->claim);
    look->claim_at = tatcell_bpf_select(first, rank, look->claim_at);
    /* The first EMPTY slot, else the one that expired longest ago. free_at: the slot, and above it its age + 1. */
    age = tatcell_bpf_select(empty, ask->mask + 1, (ask->clock - word) & ask->mask) + 1;
    free_age = look->free_at >> 5;
    better = takes & tatcell_bpf_is_less(free_age, age);
    look->free = tatcell_bpf_select(better, word, look->free);
    look->free_at = tatcell_bpf_select(better, age << 5 | at, look->free_at);
    /* The smallest debt, and the slot that drains first. */
    lead = tatcell_bpf_select(holds, lead, far);
    better = tatcell_bpf_is_less(lead, look->soonest);
    look->soonest = tatcell_bpf_select(better, lead, look->soonest);
    lead = tatcell_bpf_select(tombstone, far, lead);
    better = tatcell_bpf_is_less(lead, look->least_at >> 5);
    look->least = tatcell_bpf_select(better, word, look->least);
    look->least_at = tatcell_bpf_select(better, lead << 5 | at, look->least_at);
}

/* Scans all slots of a set. */
TATCELL_BPF_APART int tatcell_bpf_look_at(tatcell_bpf_line_t *home, tatcell_bpf_line_t *next,
                                          const struct tatcell_bpf_ask *ask, struct tatcell_bpf_look *look) {
    uint64_t at;
    if (!home || !next || !ask || !look) return 0;
    look->live_at = look->claim_at = look->free_at = TATCELL_BPF_NONE;
    look->soonest = TATCELL_BPF_CLAIM >> 1;
    look->least_at = TATCELL_BPF_CLAIM >> 1 | TATCELL_BPF_NONE;
    for (at = 0; at < 8; at++) tatcell_bpf_weigh(ask, look, at, tatcell_bpf_load_first(&home->word[at]));
    for (at = 0; at < 8; at++) tatcell_bpf_weigh(ask, look, at + 8, tatcell_bpf_load_first(&next->word[at]));
    return 0;
}

/* Drops every claim of the key that is higher than `than`. 0: one of them changed, or has committed; scan again. */
TATCELL_BPF_APART int tatcell_bpf_drop_higher(tatcell_bpf_line_t *home, tatcell_bpf_line_t *next,
                                              const struct tatcell_bpf_ask *ask, uint32_t than) {
    uint64_t at, word, *slot;
    if (!home || !next || !ask) return 0;
    for (at = 0; at < TATCELL_BPF_NONE; at++) {
        if ((at ^ ask->turn) <= than) continue;
        slot = tatcell_bpf_slot(home, next, at);
        word = tatcell_bpf_load_first(slot);
        if ((word & ~ask->mask) == (ask->tag | TATCELL_BPF_CLAIM)) {
            if (tatcell_bpf_swap(slot, word, (word + 2) & ask->mask) != word) return 0;
        } else if (tatcell_bpf_is_live_of(ask, word)) {
            return 0;
        }
    }
    return 1;
}

/* Turns the request's own claim, if any, back into an empty slot. If the swap fails, a faster thread did more. */
TATCELL_BPF_INLINE void tatcell_bpf_drop(tatcell_bpf_line_t *home, tatcell_bpf_line_t *next,
                                         const struct tatcell_bpf_ask *ask) {
    if (ask->own_at < TATCELL_BPF_NONE)
        (void)tatcell_bpf_swap(tatcell_bpf_slot(home, next, ask->own_at), ask->own, (ask->own + 2) & ask->mask);
}

TATCELL_BPF_INLINE int tatcell_bpf_end(struct tatcell_bpf_ask *ask, const struct tatcell_bpf_step *step,
                                       uint32_t tracking) {
    ask->verdict = step->verdict;
    ask->wait = step->wait;
    ask->tracking = tracking;
    ask->flags = step->shadows ? TATCELL_BPF_SHADOWED : 0;
    return 1;
}

/* Charges the live slot of a scan while it stays the key's. 1: decided; 0: it changed hands, scan again. */
TATCELL_BPF_APART int tatcell_bpf_charge(tatcell_bpf_line_t *home, tatcell_bpf_line_t *next,
                                         struct tatcell_bpf_ask *ask, const tatcell_bpf_limit_t *limit,
                                         const struct tatcell_bpf_look *look) {
    uint64_t word, found, *slot;
    int tries;
    if (!home || !next || !ask || !limit || !look) return 1;
    slot = tatcell_bpf_slot(home, next, look->live_at);
    word = look->live;
    for (tries = 0; tries < TATCELL_BPF_MAX_LOST; tries++) {
        struct tatcell_bpf_step step = tatcell_bpf_decide(limit, tatcell_bpf_lead(ask, word), ask->cost);
        if (ask->lost >= TATCELL_BPF_MAX_LOST) break;
        if (!step.stores) return tatcell_bpf_end(ask, &step, TATCELL_TRACKED);
        found = tatcell_bpf_swap(slot, word, tatcell_bpf_live(ask, step.lead));
        if (found == word) return tatcell_bpf_end(ask, &step, TATCELL_TRACKED);
        ask->lost++;
        word = found;
        if (!tatcell_bpf_is_live_of(ask, word)) return 0;
    }
    return 1;
}

/* Commits the claim that two scans saw: the request's own, or one that it helps. 1: decided; 0: scan again. */
TATCELL_BPF_APART int tatcell_bpf_commit(tatcell_bpf_line_t *home, tatcell_bpf_line_t *next,
                                         struct tatcell_bpf_ask *ask, const tatcell_bpf_limit_t *limit,
                                         const struct tatcell_bpf_look *look) {
    uint64_t claim, ahead, lead, *slot;
    struct tatcell_bpf_step step;
    uint32_t rank, tracking;
    if (!home || !next || !ask || !limit || !look) return 1;
    claim = look->claim;
    rank = look->claim_at & 15;
    tracking = tatcell_bpf_tracking(ask, claim);
    step = tatcell_bpf_decide(limit, tatcell_bpf_claim_lead(ask, claim), ask->cost);
    if (!step.stores || step.verdict != TATCELL_PASS) {
        tatcell_bpf_drop(home, next, ask);
        return tatcell_bpf_end(ask, &step, tracking);
    }
    if (tatcell_bpf_drop_higher(home, next, ask, rank)) {
        /* Never below the claim, except for a takeover: its lead contains the debt. */
        ahead = tatcell_bpf_lead(ask, claim);
        lead = (claim & 1) != 0 || step.lead > ahead ? step.lead : ahead;
        slot = tatcell_bpf_slot(home, next, rank ^ ask->turn);
        if (tatcell_bpf_swap(slot, claim, tatcell_bpf_live(ask, lead)) == claim) {
            tatcell_bpf_end(ask, &step, tracking);
            ask->flags |= TATCELL_BPF_INSERTED;
            return 1;
        }
    }
    ask->lost++;
    return 0;
}

/* The key is absent: claims a slot, or the policy of a full set decides. 1: decided; 0: scan again. */
TATCELL_BPF_APART int tatcell_bpf_place(tatcell_bpf_line_t *home, tatcell_bpf_line_t *next,
                                        struct tatcell_bpf_ask *ask, const tatcell_bpf_limit_t *limit,
                                        const struct tatcell_bpf_look *look) {
    struct tatcell_bpf_step step;
    uint64_t word, claim;
    uint32_t at, policy;
    if (!home || !next || !ask || !limit || !look) return 1;
    policy = ask->policy;
    step = tatcell_bpf_decide(limit, 0, ask->cost);
    if (!step.stores || step.verdict != TATCELL_PASS) return tatcell_bpf_end(ask, &step, TATCELL_TRACKED);
    if (look->free_at != TATCELL_BPF_NONE) {
        at = look->free_at & 15;
        word = look->free;
        claim = tatcell_bpf_claim(ask, word);
    } else if (look->least_at >> 62 == 0 &&
               (policy == TATCELL_FULL_INHERIT || (policy == TATCELL_FULL_SAMPLED && ask->sample))) {
        at = look->least_at & 15;
        word = look->least;
        claim = tatcell_bpf_claim_of_debt(ask, word);
        if (policy == TATCELL_FULL_INHERIT) {
            step = tatcell_bpf_decide(limit, tatcell_bpf_claim_lead(ask, claim), ask->cost);
            /* Nothing would be stored, so no key loses its slot. */
            if (!step.stores || step.verdict != TATCELL_PASS) return tatcell_bpf_end(ask, &step, TATCELL_INHERITED);
        }
    } else {
        int drains = look->soonest >> 62 == 0;
        /* Other inserts hold every slot at this moment. Return no verdict, rather than guess. */
        if (policy == TATCELL_FULL_INHERIT && !drains) {
            tatcell_bpf_drop(home, next, ask);
            return 1;
        }
        if (policy == TATCELL_FULL_DENY || policy == TATCELL_FULL_INHERIT) {
            step.shadows = (limit->flags & TATCELL_LIMIT_SHADOW) != 0;
            step.verdict = step.shadows ? TATCELL_PASS : TATCELL_NON_CONFORMING;
            step.wait = drains ? look->soonest : 1;
        }
        return tatcell_bpf_end(ask, &step, TATCELL_UNTRACKED);
    }
    if (tatcell_bpf_swap(tatcell_bpf_slot(home, next, at), word, claim) == word) {
        ask->own = ask->known = claim;
        ask->own_at = ask->known_at = at;
    } else {
        ask->lost++;
    }
    return 0;
}

/* How good a slot is for an insert that met no word of its tag: the first EMPTY one is best, then the one that expired
 * longest ago. 0: it cannot be taken. The lowest bits are 15 minus its number. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_worth(const struct tatcell_bpf_ask *ask, uint64_t at, uint64_t word) {
    uint64_t age = ((ask->clock - word) & ask->mask) + 1, empty = tatcell_bpf_is_zero(word & ask->field);
    age = tatcell_bpf_select(tatcell_bpf_is_zero(tatcell_bpf_lead(ask, word)), age, 0);
    age = tatcell_bpf_select(empty, TATCELL_BPF_CLAIM >> 5, age);
    return (age << 4 | (15 - at)) & (0 - (1 - tatcell_bpf_is_zero(age)));
}

/* Bit i: word i of a line has the key's tag, LIVE or CLAIM. `worth` rises to the worth of its best slot. */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_tagged(const struct tatcell_bpf_ask *ask, tatcell_bpf_line_t *line,
                                               uint64_t first, uint64_t *worth) {
    uint64_t bits = 0, at;
    for (at = 0; at < 8; at++) {
        uint64_t word = tatcell_bpf_load_first(&line->word[at]);
        bits |= tatcell_bpf_is_zero((word & ask->field) ^ ask->tag) << at;
        if (worth) {
            uint64_t its = tatcell_bpf_worth(ask, first + at, word);
            *worth = tatcell_bpf_select(tatcell_bpf_is_less(*worth, its), its, *worth);
        }
    }
    return bits;
}

/* Inserts a key that no other thread inserts, into a set with a free slot: scan, claim, scan again, commit. 1: decided;
 * 0: tatcell_bpf_settle must decide. */
TATCELL_BPF_APART int tatcell_bpf_insert(tatcell_bpf_line_t *home, tatcell_bpf_line_t *next,
                                         struct tatcell_bpf_ask *ask, const tatcell_bpf_limit_t *limit) {
    struct tatcell_bpf_step step;
    uint64_t worth = 0, bits, word, lead, claim, *slot, *unasked = 0;
    uint32_t at;
    if (!home || !next || !ask || !limit) return 0;
    bits = tatcell_bpf_tagged(ask, home, 0, &worth);
    if ((bits | tatcell_bpf_tagged(ask, next, 8, &worth)) != 0) return 0;
    step = tatcell_bpf_decide(limit, 0, ask->cost);
    if (!step.stores || step.verdict != TATCELL_PASS) return tatcell_bpf_end(ask, &step, TATCELL_TRACKED);
    if (worth == 0) return 0;
    at = 15 - (worth & 15);
    slot = tatcell_bpf_slot(home, next, at);
    word = tatcell_bpf_load_first(slot);
    lead = tatcell_bpf_lead(ask, word);
    /* A debt to inherit, a tombstone, or a slot that changed since the scan. */
    if (lead != 0 && ((word & ask->field) != 0 || (word & 1 && ask->policy == TATCELL_FULL_INHERIT))) return 0;
    if (lead > ask->grace && word != 0 && (word & 1) == 0) return 0;
    if ((word & ask->field) == ask->tag) return 0;
    claim = tatcell_bpf_claim(ask, word);
    ask->looks = 1;
    if (tatcell_bpf_swap(slot, word, claim) != word) {
        ask->lost = 1;
        return 0;
    }
    ask->own = ask->known = claim;
    ask->own_at = ask->known_at = at;
    /* The swap is the barrier between the claim and this scan. */
    bits = tatcell_bpf_tagged(ask, home, 0, unasked) | tatcell_bpf_tagged(ask, next, 8, unasked) << 8;
    if (bits >> at != 1 || (bits & ((1u << at) - 1)) != 0) return 0;
    lead = tatcell_bpf_lead(ask, claim);
    if ((claim & 1) != 0 || step.lead > lead) lead = step.lead;
    if (tatcell_bpf_swap(slot, claim, tatcell_bpf_live(ask, lead)) != claim) {
        ask->looks = 2;
        ask->lost = 1;
        return 0;
    }
    tatcell_bpf_end(ask, &step, tatcell_bpf_tracking(ask, claim));
    ask->flags |= TATCELL_BPF_INSERTED;
    return 1;
}

/* Decides everything but a hit: inserts, rivals, abandoned claims, full sets. Puts the answer into `ask`. */
TATCELL_BPF_APART int tatcell_bpf_settle(tatcell_bpf_line_t *home, tatcell_bpf_line_t *next,
                                         struct tatcell_bpf_ask *ask, const tatcell_bpf_limit_t *limit) {
    struct tatcell_bpf_look look = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    int i, decided = 0;
    uint32_t at;
    if (!home || !next || !ask || !limit) return 0;
    if (tatcell_bpf_insert(home, next, ask, limit)) return 0;
    ask->verdict = TATCELL_CONTENDED;
    for (i = 0; i < TATCELL_BPF_MAX_LOOKS; i++) {
        if (ask->looks >= TATCELL_BPF_MAX_LOOKS || ask->lost >= TATCELL_BPF_MAX_LOST) break;
        if (ask->looks++ != 0) tatcell_bpf_fence(&ask->fence);
        tatcell_bpf_look_at(home, next, ask, &look);
        at = tatcell_bpf_low(look.claim_at) ^ ask->turn;
        if (look.live_at < TATCELL_BPF_NONE) {
            if (tatcell_bpf_charge(home, next, ask, limit, &look)) break;
        } else if (look.claim_at >= TATCELL_BPF_NONE) {
            decided = tatcell_bpf_place(home, next, ask, limit, &look);
        } else if (ask->known_at == at && ask->known == look.claim) {
            decided = tatcell_bpf_commit(home, next, ask, limit, &look);
        } else {
            /* Another thread inserts this key. Its claim counts after two scans saw it. */
            ask->known_at = at;
            ask->known = look.claim;
        }
        if (decided) return 0;
    }
    tatcell_bpf_drop(home, next, ask);
    return 0;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

/**
 * Returns the number of the home line of a hash: the element of the image.
 *
 * @param table made by tatcell_bpf_table_init.
 * @param hash  of the key.
 * @return the number, below the count of lines.
 * Thread: any. Cost: one multiplication. Since 0.3.
 */
TATCELL_BPF_INLINE uint32_t tatcell_bpf_home(const tatcell_bpf_table_t *table, uint64_t hash) {
    return table->first_line + tatcell_bpf_low((hash >> 32) * table->lines >> 32);
}

/**
 * Returns the number of the other line of a set.
 *
 * @param table made by tatcell_bpf_table_init.
 * @param home  from tatcell_bpf_home.
 * @return the number of the element.
 * Thread: any. Cost: none. Since 0.3.
 */
TATCELL_BPF_INLINE uint32_t tatcell_bpf_next(const tatcell_bpf_table_t *table, uint32_t home) {
    return table->first_line + ((home - table->first_line) ^ 1);
}

/* One round of SipHash on four words. */
#define TATCELL_BPF_TURN(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))
#define TATCELL_BPF_ROUND(a, b, c, d) \
    do { \
        a += b, b = TATCELL_BPF_TURN(b, 13) ^ a, a = TATCELL_BPF_TURN(a, 32); \
        c += d, d = TATCELL_BPF_TURN(d, 16) ^ c; \
        a += d, d = TATCELL_BPF_TURN(d, 21) ^ a; \
        c += b, b = TATCELL_BPF_TURN(b, 17) ^ c, c = TATCELL_BPF_TURN(c, 32); \
    } while (0)

/**
 * Hashes a key of up to 16 bytes with the table's secret. It equals tatcell_table_hash under TATCELL_HASH_SIPHASH13.
 *
 * @param table  made by tatcell_bpf_table_init.
 * @param low    the first 8 bytes of the key, the first in the lowest bits; 0 beyond its end.
 * @param high   the other bytes, in the same way.
 * @param length bytes of the key, 0..16.
 * @return the hash.
 * Thread: any. Cost: 4 rounds of SipHash, and one for each whole 8 bytes. Since 0.3.
 */
TATCELL_BPF_INLINE uint64_t tatcell_bpf_hash(const tatcell_bpf_table_t *table, uint64_t low, uint64_t high,
                                             uint64_t length) {
    uint64_t a = table->seed_low ^ 0x736f6d6570736575u, b = table->seed_high ^ 0x646f72616e646f6du;
    uint64_t c = table->seed_low ^ 0x6c7967656e657261u, d = table->seed_high ^ 0x7465646279746573u;
    uint64_t last = low;
    if (length >= 8) {
        d ^= low;
        TATCELL_BPF_ROUND(a, b, c, d);
        a ^= low;
        last = high;
    }
    if (length >= 16) {
        d ^= high;
        TATCELL_BPF_ROUND(a, b, c, d);
        a ^= high;
        last = 0;
    }
    last |= length << 56;
    d ^= last;
    TATCELL_BPF_ROUND(a, b, c, d);
    a ^= last;
    c ^= 0xff;
    TATCELL_BPF_ROUND(a, b, c, d);
    TATCELL_BPF_ROUND(a, b, c, d);
    TATCELL_BPF_ROUND(a, b, c, d);
    return a ^ b ^ c ^ d;
}

/* Bit i is set if word i of a line is LIVE of the key. */
TATCELL_BPF_INLINE uint32_t tatcell_bpf_hits(const struct tatcell_bpf_ask *ask, const tatcell_bpf_line_t *line) {
    uint64_t bits = 0, at;
    for (at = 0; at < 8; at++)
        bits |= tatcell_bpf_is_zero(((tatcell_bpf_load(&line->word[at]) ^ ask->tag) & ~ask->mask) >> 1) << at;
    return tatcell_bpf_low(bits);
}

/**
 * Decides one request of a key and charges it if it conforms. It equals tatcell_table_check_hash.
 *
 * @param table  made by tatcell_bpf_table_init.
 * @param home   the element of the image with the number from tatcell_bpf_home; not NULL.
 * @param next   the element with the number from tatcell_bpf_next; not NULL.
 * @param limit  made by tatcell_bpf_limit_init_table for this table.
 * @param now    the clock, ticks: bpf_ktime_get_ns is CLOCK_MONOTONIC.
 * @param hash   of the key.
 * @param cost   units; 0 only peeks and never writes.
 * @param answer gets the answer; not NULL.
 * @retval TATCELL_PASS, TATCELL_NON_CONFORMING, TATCELL_NEVER, TATCELL_CONTENDED as tatcell_table_check_hash.
 * Thread: any number, also in user space. Cost: for a known key one or two lines, and one swap if it passes. Since 0.3.
 */
TATCELL_NODISCARD
TATCELL_BPF_INLINE int32_t tatcell_bpf_table_check(const tatcell_bpf_table_t *table, tatcell_bpf_line_t *home,
                                                   tatcell_bpf_line_t *next, const tatcell_bpf_limit_t *limit,
                                                   uint64_t now, uint64_t hash, uint64_t cost,
                                                   tatcell_bpf_answer_t *answer) {
    struct tatcell_bpf_ask ask = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t hits, decided = 0;
    answer->retry_after = 0;
    answer->tracking = TATCELL_TRACKED;
    answer->flags = 0;
    if (limit->emission_q == 0) return TATCELL_PASS;
    ask.mask = table->mask;
    ask.field = ~table->mask & (TATCELL_BPF_ONES >> 1);
    ask.window = table->window_q;
    ask.lifetime = table->claim_lifetime_q;
    ask.grace = table->grace_q;
    ask.policy = table->policy;
    ask.cost = cost;
    ask.clock = tatcell_bpf_clock(now, table->shift_left, table->shift_right);
    ask.tag = hash * (table->mask + 1) & ask.field;
    if (ask.tag == 0) ask.tag = table->mask + 1;
    ask.turn = tatcell_bpf_low((hash >> 32) * table->lines >> 32 & 1) << 3;
    ask.sample = ((hash ^ ask.clock) * 0x9e3779b97f4a7c15u) >> 60 == 0;
    ask.own_at = ask.known_at = TATCELL_BPF_NONE;
    hits = tatcell_bpf_hits(&ask, home);
    if (!hits) hits = tatcell_bpf_hits(&ask, next) << 8;
    if (hits) {
        /* One attempt on the live slot. */
        uint64_t *slot = tatcell_bpf_slot(home, next, tatcell_bpf_lowest(hits)), word = tatcell_bpf_load(slot);
        if (tatcell_bpf_is_live_of(&ask, word)) {
            struct tatcell_bpf_step step = tatcell_bpf_decide(limit, tatcell_bpf_lead(&ask, word), cost);
            if (!step.stores || tatcell_bpf_swap(slot, word, tatcell_bpf_live(&ask, step.lead)) == word) {
                tatcell_bpf_end(&ask, &step, TATCELL_TRACKED);
                decided = 1;
            }
        }
    }
    if (!decided) tatcell_bpf_settle(home, next, &ask, limit);
    if (ask.verdict == TATCELL_NEVER) answer->retry_after = TATCELL_BPF_ONES;
    if (ask.verdict == TATCELL_NON_CONFORMING)
        answer->retry_after = tatcell_bpf_ticks(ask.wait, now, table->shift_left, table->shift_right);
    answer->tracking = ask.tracking;
    answer->flags = ask.flags;
    return ask.verdict;
}

/* ---- user space ------------------------------------------------------------------------------------------------- */

#if !defined(__bpf__)

/**
 * Makes the limit of a program from a limit for a 64-bit cell or a table.
 *
 * A limit of a table is only for that table; tatcell_bpf_limit_init_table checks this.
 *
 * @param to    to initialise; not NULL. Write it to the map in one update, or write an element that no program reads.
 * @param limit for a 64-bit cell or a table; not NULL.
 * @retval 0 done.
 * @retval TATCELL_ERR_ALGORITHM the limit is not of GCRA.
 * @retval TATCELL_ERR_LIMIT the limit is for 32-bit cells, or not initialised.
 * @retval others as tatcell_limit_export. Nothing is changed on error.
 * Thread: one writer. Cost: none. Since 0.3.
 */
static inline int32_t tatcell_bpf_limit_init(tatcell_bpf_limit_t *to, const tatcell_limit_t *limit) {
    tatcell_limit_numbers_t from = TATCELL_LIMIT_NUMBERS_INIT;
    int32_t rc = to ? tatcell_limit_export(limit, &from) : TATCELL_ERR_NULL;
    if (rc < 0) return rc;
    if (from.bits <= 32) return TATCELL_ERR_LIMIT;
    to->emission_q = from.emission_q;
    to->burst_q = from.burst_q;
    to->window_q = from.window_q;
    to->penalty_q = from.penalty_q;
    to->burst = from.burst;
    to->flags = from.flags;
    to->shift_left = from.shift_left;
    to->shift_right = from.shift_right;
    to->reserved = 0;
    return 0;
}

/**
 * Makes the limit of a program from a limit for a table.
 *
 * @param to    as tatcell_bpf_limit_init.
 * @param table handle; not NULL.
 * @param limit made by tatcell_limit_init_table for this table; not NULL.
 * @retval 0 done.
 * @retval TATCELL_ERR_FOREIGN the limit is not for this table.
 * @retval others as tatcell_bpf_limit_init and tatcell_table_peek_hash. Nothing is changed on error.
 * Thread: one writer. Cost: one peek at the table. Since 0.3.
 */
static inline int32_t tatcell_bpf_limit_init_table(tatcell_bpf_limit_t *to, const tatcell_table_t *table,
                                                   const tatcell_limit_t *limit) {
    tatcell_decision_t look = TATCELL_DECISION_INIT;
    int32_t rc = tatcell_table_peek_hash(table, limit, 0, 0, 0, &look);
    return rc < 0 ? rc : tatcell_bpf_limit_init(to, limit);
}

/**
 * Makes the table of a program, with the secret of its hash.
 *
 * @param to    to initialise; not NULL.
 * @param table handle; not NULL.
 * @param seed  the 16 secret bytes that the table was made with; NULL if the caller hashes.
 * @retval 0 done.
 * @retval TATCELL_ERR_ALGORITHM the table is not of GCRA.
 * @retval TATCELL_ERR_MODE the table is exclusive.
 * @retval TATCELL_ERR_HASH_UNAVAILABLE the table hashes by AES, which BPF does not have.
 * @retval TATCELL_ERR_SEED the table hashes, and seed is NULL; TATCELL_ERR_WRONG_SEED seed is not the table's.
 * @retval others as tatcell_table_export. Nothing is changed on error.
 * Thread: one writer. Cost: two hashes. Since 0.3.
 */
static inline int32_t tatcell_bpf_table_init(tatcell_bpf_table_t *to, const tatcell_table_t *table,
                                             const uint8_t *seed) {
    tatcell_table_numbers_t from = TATCELL_TABLE_NUMBERS_INIT;
    tatcell_bpf_table_t made = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    int32_t rc = to ? tatcell_table_export(table, &from) : TATCELL_ERR_NULL;
    uint64_t probe = 0;
    uint32_t i;
    if (rc < 0) return rc;
    if (from.flags & TATCELL_TABLE_EXCLUSIVE) return TATCELL_ERR_MODE;
    if (from.hash == TATCELL_HASH_AES) return TATCELL_ERR_HASH_UNAVAILABLE;
    if (from.hash != TATCELL_HASH_CALLER && !seed) return TATCELL_ERR_SEED;
    for (i = 0; seed && i < 8; i++) {
        uint64_t low = seed[i], high = seed[i + 8];
        made.seed_low |= low << 8 * i;
        made.seed_high |= high << 8 * i;
    }
    if (from.hash != TATCELL_HASH_CALLER) {
        rc = tatcell_table_hash(table, "tatcell", 7, &probe);
        if (rc < 0) return rc;
        /* The same seven bytes, with the first in the lowest bits. */
        if (tatcell_bpf_hash(&made, 0x6c6c6563746174u, 0, 7) != probe) return TATCELL_ERR_WRONG_SEED;
    }
    made.mask = from.mask;
    made.window_q = from.window_q;
    made.claim_lifetime_q = from.claim_lifetime_q;
    made.grace_q = from.grace_q;
    made.lines = from.lines;
    made.first_line = from.header_bytes / 64;
    made.policy = from.policy;
    made.shift_left = from.shift_left;
    made.shift_right = from.shift_right;
    *to = made;
    return 0;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
