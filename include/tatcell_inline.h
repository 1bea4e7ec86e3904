/*
 * tatcell_inline.h - checks of 64-bit cells as inline functions, for paths where a function call costs too much.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * MODEL    That of tatcell.h. The inline code decides most checks. It calls the library if another thread won the swap,
 *          if the cost is 0 or above the burst, and if the limit is unlimited, not of GCRA, or has heal, shadow, a
 *          penalty or q-units longer than a tick. Every answer and every stored word equals the library's, so both
 *          kinds of calls may use one cell.
 * SETUP    Keep a tatcell_inline_limit_t next to the limit. tatcell_inline_limit_init fills it in:
 *
 *   #include <stdio.h>
 *   #include <tatcell_inline.h>
 *
 *   static tatcell_cell_t cell;
 *   static tatcell_limit_t limit;
 *   static tatcell_inline_limit_t here;
 *
 *   int main(void) {
 *       if (tatcell_limit_init(&limit, 1000, 1000000000, 200) < 0) return 1; // 1000 a second, 200 at once
 *       if (tatcell_inline_limit_init(&here, &limit) < 0) return 1;
 *       int passed = 0;
 *       for (int packet = 0; packet < 300; packet++)         // all at one instant
 *           if (tatcell_inline_cell_check(&cell, &here, 0, 1, NULL) == TATCELL_PASS) passed++;
 *       printf("%d of 300 packets pass\n", passed);          // 200
 *       return 0;
 *   }
 *
 * CHECKS   The inline code checks no pointer: the caller must pass a valid cell and limit. A zeroed
 *          tatcell_inline_limit_t is refused (TATCELL_ERR_NULL).
 * ABI      This header uses the numbers of tatcell_limit_export, and the way in which the word of a cell holds a TAT.
 *          Both are part of the ABI. It contains nothing else of the library.
 * BUILD    C99 or C++11, gcc or clang. With another compiler, or without a 64-bit compare-and-swap, every check of a
 *          shared cell is a call. A check that passes takes about 25 instructions.
 *
 * Since 0.4.
 */
#ifndef TATCELL_INLINE_H
#define TATCELL_INLINE_H

#include "tatcell.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && defined(__GCC_ATOMIC_LLONG_LOCK_FREE)
#if __GCC_ATOMIC_LLONG_LOCK_FREE == 2
#define TATCELL_INLINE_ATOMICS 1
#endif
#endif

/* Inlined, whatever the optimiser decides; and a condition that nearly always holds. */
#if defined(__GNUC__)
#define TATCELL_INLINE static inline __attribute__((always_inline, unused))
#define TATCELL_INLINE_LIKELY(condition) __builtin_expect(condition, 1)
#else
#define TATCELL_INLINE static inline
#define TATCELL_INLINE_LIKELY(condition) (condition)
#endif

/** A limit with what its inline checks need. tatcell_inline_limit_init initialises it; after that it is read-only. */
typedef struct tatcell_inline_limit_t {
    /** The emission interval T, in q-units. */
    uint64_t emission_q;
    /** The debt of a whole burst, in q-units. */
    uint64_t burst_q;
    /** H + S, horizon and skew, in q-units: a word is live iff 1 <= TAT - now <= this. */
    uint64_t window_q;
    /** The largest cost that is decided inline, in units; 0 = every check is a call. */
    uint64_t most;
    /** The library decides the other checks by this limit. */
    const tatcell_limit_t *limit;
    /** A tick is 2^shift q-units. */
    uint32_t shift;
    /** 0. */
    uint32_t reserved;
} tatcell_inline_limit_t;

/**
 * Prepares the inline checks of a limit.
 *
 * @param to    to initialise; not NULL.
 * @param limit 64-bit limit of any algorithm; not NULL. It must live as long as `to` is used.
 * @retval 0 done.
 * @retval TATCELL_ERR_LIMIT the limit is not initialised for 64-bit cells.
 * @retval TATCELL_ERR_NULL, TATCELL_ERR_ALIGN bad pointer. Nothing is changed on error.
 * Thread: one writer. Cost: none. Since 0.4.
 */
static inline int32_t tatcell_inline_limit_init(tatcell_inline_limit_t *to, const tatcell_limit_t *limit) {
    tatcell_limit_numbers_t from = TATCELL_LIMIT_NUMBERS_INIT;
    const uint32_t calls = TATCELL_LIMIT_HEAL | TATCELL_LIMIT_SHADOW;
    int32_t rc = to ? tatcell_limit_export(limit, &from) : TATCELL_ERR_NULL;
    int plain = rc == 0 && (from.flags & calls) == 0 && from.penalty_q == 0 && from.emission_q != 0 &&
                from.shift_right == 0;
    if (rc == TATCELL_ERR_ALGORITHM) {
        tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
        rc = tatcell_limit_info(limit, &info);
        from.bits = info.bits;
    }
    if (rc < 0) return rc;
    if (from.bits != 64) return TATCELL_ERR_LIMIT;
    to->emission_q = from.emission_q;
    to->burst_q = from.burst_q;
    to->window_q = from.window_q;
    to->most = plain ? from.burst : 0;
    to->limit = limit;
    to->shift = from.shift_left;
    to->reserved = 0;
    return 0;
}

/* The word after a charge, and its lead. */
struct tatcell_inline_step {
    uint64_t lead, tat;
};

/* A TAT at most H + S ahead of the clock moves on by the charge. (A TAT of now gives the result of a full cell.) Else
 * the cell is full and starts from now. Branches, not selections: the next check needs this word, and with a predicted
 * branch it waits for one addition only. */
TATCELL_INLINE struct tatcell_inline_step tatcell_inline_charge(const tatcell_inline_limit_t *limit, uint64_t word,
                                                                uint64_t clock, uint64_t cost) {
    uint64_t charge = cost * limit->emission_q, ahead = word - clock;
    struct tatcell_inline_step step = {charge, clock + charge};
    if (TATCELL_INLINE_LIKELY(word != 0 && ahead <= limit->window_q)) {
        step.lead = ahead + charge;
        step.tat = word + charge;
    }
    if (TATCELL_INLINE_LIKELY(step.tat != 0)) return step;
    step.tat = 1; /* 0 means a cell that was never charged */
    return step;
}

/* Refuses: the same cost conforms in q q-units. */
TATCELL_INLINE int32_t tatcell_inline_wait(const tatcell_inline_limit_t *limit, uint64_t q, uint64_t *retry_after) {
    uint64_t one = 1;
    if (retry_after) *retry_after = (q + (one << (limit->shift & 63)) - 1) >> (limit->shift & 63);
    return TATCELL_NON_CONFORMING;
}

/* Passes. */
TATCELL_INLINE int32_t tatcell_inline_pass(uint64_t *retry_after) {
    if (retry_after) *retry_after = 0;
    return TATCELL_PASS;
}

/**
 * Decides one request and charges it if it conforms. It equals tatcell_cell_check.
 *
 * @param cell        not NULL.
 * @param limit       made by tatcell_inline_limit_init; not NULL.
 * @param now         the caller's clock, ticks.
 * @param cost        units; 0 only peeks and never writes.
 * @param retry_after ticks until the same cost conforms, as for tatcell_cell_check; NULL = not wanted.
 * @retval as tatcell_cell_check.
 * Thread: any number on one cell, also in other calls. Cost: one compare-and-swap if it charges, else one load; a call
 * if not decided inline. Since 0.4.
 */
TATCELL_NODISCARD
TATCELL_INLINE int32_t tatcell_inline_cell_check(tatcell_cell_t *cell, const tatcell_inline_limit_t *limit,
                                                 uint64_t now, uint64_t cost, uint64_t *retry_after) {
#if defined(TATCELL_INLINE_ATOMICS)
    if (cost - 1 < limit->most) { /* 1..=burst, so nothing here overflows */
        /* ORDERING: relaxed, as in the library; the word is the whole state and orders nothing else. */
        uint64_t clock = now << (limit->shift & 63), word = __atomic_load_n(&cell->word, __ATOMIC_RELAXED);
        struct tatcell_inline_step step = tatcell_inline_charge(limit, word, clock, cost);
        if (step.lead > limit->burst_q) return tatcell_inline_wait(limit, step.lead - limit->burst_q, retry_after);
        if (__atomic_compare_exchange_n(&cell->word, &word, step.tat, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return tatcell_inline_pass(retry_after);
    }
#endif
    return tatcell_cell_check(cell, limit->limit, now, cost, retry_after);
}

/**
 * Decides one request and charges it if it conforms, for a cell with one owner. It equals tatcell_cell_check_exclusive.
 *
 * @param cell        not NULL; no other thread uses it during the call.
 * @param limit       made by tatcell_inline_limit_init; not NULL.
 * @param now         the caller's clock, ticks.
 * @param cost        units; 0 only peeks and never writes.
 * @param retry_after ticks until the same cost conforms, as for tatcell_cell_check; NULL = not wanted.
 * @retval as tatcell_cell_check_exclusive.
 * Thread: one at a time on one cell. Cost: one load, one store if it charges; a call if not decided inline. Since 0.4.
 */
TATCELL_NODISCARD
TATCELL_INLINE int32_t tatcell_inline_cell_check_exclusive(tatcell_cell_t *cell, const tatcell_inline_limit_t *limit,
                                                           uint64_t now, uint64_t cost, uint64_t *retry_after) {
    if (cost - 1 < limit->most) { /* 1..=burst, so nothing here overflows */
        uint64_t clock = now << (limit->shift & 63);
        struct tatcell_inline_step step = tatcell_inline_charge(limit, cell->word, clock, cost);
        if (step.lead > limit->burst_q) return tatcell_inline_wait(limit, step.lead - limit->burst_q, retry_after);
        cell->word = step.tat;
        return tatcell_inline_pass(retry_after);
    }
    return tatcell_cell_check_exclusive(cell, limit->limit, now, cost, retry_after);
}

#ifdef __cplusplus
}
#endif

#endif
