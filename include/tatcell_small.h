/*
 * tatcell_small.h - rate limits for small machines: Cortex-M0 to M4, RISC-V, anything with 32-bit registers.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   #include <tatcell_small.h>
 *
 *   // 10 a second, 5 at once; ticks are milliseconds. Computed by the compiler: nothing divides on the target.
 *   static const tatcell_small32_limit_t limit = TATCELL_SMALL32_LIMIT(10, 1000, 5);
 *   static tatcell_cell32_t cell;                            // zeroed memory is a fresh cell
 *   void forward(void);                                      // yours
 *
 *   void on_packet(uint32_t now_ms) {                        // from the main loop, an interrupt, or both
 *       if (tatcell_small32_check_unit(&cell, &limit, now_ms) == 0)
 *           forward();
 *   }
 *
 * MODEL    That of tatcell.h, with plain limits: `units` per `period` ticks and a `burst`, the most units that pass
 *          at one instant after idle. Answers and state words are those of tatcell_cell_check and
 *          tatcell_cell32_check under the same limit, to the bit.
 * ANSWER   One number. 0 passes. Up to a window below half of the width: ticks until the same request passes. Three
 *          codes at the top: TATCELL_SMALL_NEVER (cost above the burst), TATCELL_SMALL_CONTENDED (no verdict, nothing
 *          charged; only on cores with ldrex/strex or lr/sc), TATCELL_SMALL_REFUSED. Only 0 passes.
 * TIME     Your own tick count: 64 bits, or 32 bits that wrap (only differences count). A 32-bit cell that rests for
 *          longer than TATCELL_SMALL32_SPAN(limit) ticks can read as a debt of at most one window, never as credit.
 *          That is nearly 2^(32 - shift) ticks: 49 days of ms for 10 a second, but 262 s for the bytes of a UART. Idle
 *          rule: a cell is charged once per span, or handed to _idle (a table to _sweep) once per
 *          TATCELL_SMALL32_SWEEP_INTERVAL(limit).
 * SHARING  The same cell or table may be used from the main loop and from interrupts at once. How the library keeps
 *          them apart where the core has no atomics of that width is the firmware's choice of archive:
 *            libtatcell-single.a     masks interrupts (PRIMASK, mstatus.MIE): one core, privileged code
 *            libtatcell-critical.a   calls tatcell_critical_enter and tatcell_critical_exit, which you write
 *          The _exclusive functions mask nothing: one caller at a time. PRIMASK does not keep out an NMI or a hard
 *          fault: call nothing from there. Unprivileged code of a Cortex-M cannot mask and is not told:
 *          tatcell_small_section_check says so. Where tatcell_critical_enter raises BASEPRI, call from no interrupt of
 *          a higher priority than that.
 * ONE USE  Who polls (check) a cell that others reserve from starves: a reservation takes each unit before it is there.
 *          Poll a cell, or reserve from it.
 * CHECKS   None. Unlike tatcell.h these functions take static objects of yours, made by the macros below; a NULL, a
 *          misaligned pointer or a limit from elsewhere is undefined behaviour. That is what makes them small.
 */
#ifndef TATCELL_SMALL_H
#define TATCELL_SMALL_H

#include "tatcell.h"

/** Stands before functions whose verdict must be looked at; yours if you define it. */
#ifndef TATCELL_SMALL_VERDICT
#if defined(__GNUC__)
#define TATCELL_SMALL_VERDICT __attribute__((warn_unused_result))
#else
#define TATCELL_SMALL_VERDICT TATCELL_NODISCARD
#endif
#endif

/** Answer: the cost is greater than the burst; the request can never pass. */
#define TATCELL_SMALL_NEVER UINT64_MAX
/** Answer: interrupts won every attempt; nothing charged, no verdict. Ask again or decide yourself. */
#define TATCELL_SMALL_CONTENDED (UINT64_MAX - 1)
/** Answer: a reservation that would wait longer than max_delay; nothing charged. */
#define TATCELL_SMALL_REFUSED (UINT64_MAX - 2)
/** Answer of 32-bit functions: as TATCELL_SMALL_NEVER. */
#define TATCELL_SMALL32_NEVER UINT32_MAX
/** Answer of 32-bit functions: as TATCELL_SMALL_CONTENDED. */
#define TATCELL_SMALL32_CONTENDED (UINT32_MAX - 1)
/** Answer of 32-bit functions: as TATCELL_SMALL_REFUSED, or the table has no seed yet. */
#define TATCELL_SMALL32_REFUSED (UINT32_MAX - 2)

/** A limit for 64-bit cells: static data, made by TATCELL_SMALL_LIMIT. */
typedef struct tatcell_small_limit_t {
    /** Emission interval in q-units of 2^-shift ticks. */
    uint64_t t;
    /** burst * t. */
    uint64_t limit;
    /** Largest lead that a live word can show. */
    uint64_t window;
    /** Most lead beyond limit that a reservation may build. */
    uint64_t delay;
    /** Units. */
    uint32_t burst;
    /** 0 to 31. */
    uint16_t shift;
    /** 31 - shift. */
    uint16_t back;
} tatcell_small_limit_t;

/** A limit for 32-bit cells and 32-bit ticks: static data, made by TATCELL_SMALL32_LIMIT. */
typedef struct tatcell_small32_limit_t {
    /** Emission interval in q-units of 2^-shift ticks. */
    uint32_t t;
    /** burst * t. */
    uint32_t limit;
    /** Largest lead that a live word can show. */
    uint32_t window;
    /** Most lead beyond limit that a reservation may build. */
    uint32_t delay;
    /** Units. */
    uint32_t burst;
    /** 0 to 31. */
    uint32_t shift;
} tatcell_small32_limit_t;

/** One slot of a keyed table: zeroed memory is empty. */
typedef struct tatcell_small_slot_t {
    /** Hash of the key; 0 = empty. */
    uint32_t tag;
    /** State word of the key. */
    uint32_t tat;
} tatcell_small_slot_t;

/** A keyed table under one limit, made by TATCELL_SMALL_TABLE. */
typedef struct tatcell_small_table_t {
    /** Limit of every key. */
    tatcell_small32_limit_t limit;
    /** The caller's slots. */
    tatcell_small_slot_t *slots;
    /** Sets of 16 slots, 1 to 65536. */
    uint32_t sets;
    /** TATCELL_FULL_ADMIT, TATCELL_FULL_INHERIT or TATCELL_FULL_DENY. */
    uint32_t policy;
    /** Secret; set it with tatcell_small_table_seed. */
    uint32_t seed[2];
    /** Requests of new keys that met a full set; wraps. */
    uint32_t full;
} tatcell_small_table_t;

/** The log of one place: zeroed memory is fresh. */
typedef struct tatcell_small_log_t {
    /** Lines that pass. */
    tatcell_cell32_t cell;
    /** Lines left out since the last one that passed; wraps. */
    uint32_t left_out;
} tatcell_small_log_t;

/* Compile-time arithmetic. Not for use outside this header; every name ends in an underscore. */
#define TATCELL_U_(x) ((uint64_t)(x))
/* 0 if ok holds. Otherwise, and where it is no constant of the compiler's, the program does not compile: in C for the
   width of a bit-field, which is negative or "not an integer constant", in C++ for a static_assert or because a
   "template argument" is no constant. */
#ifdef __cplusplus
extern "C++" {
template <bool ok> struct tatcell_require_ {
    static_assert(ok, "tatcell: this limit cannot be represented");
    enum { zero = 0 };
};
}
#define TATCELL_REQUIRE_(ok) ((unsigned)tatcell_require_<(ok)>::zero)
#else
#define TATCELL_REQUIRE_(ok) (0 * sizeof(struct { int tatcell_cannot_represent_this_limit : (ok) ? 1 : -1; }))
#endif
/* Is the emission interval still below m + 1 q-units at shift k? The shift wanted is the number of such k. */
#define TATCELL_COARSE_(u, p, m, k) (TATCELL_U_(p) <= ((m) * TATCELL_U_(u)) >> (k))
#define TATCELL_COARSE4_(u, p, m, k)                                                                        \
    (TATCELL_COARSE_(u, p, m, k) + TATCELL_COARSE_(u, p, m, (k) + 1) + TATCELL_COARSE_(u, p, m, (k) + 2) + \
     TATCELL_COARSE_(u, p, m, (k) + 3))
#define TATCELL_SHIFT_(u, p, m)                                                                           \
    (TATCELL_COARSE4_(u, p, m, 0) + TATCELL_COARSE4_(u, p, m, 4) + TATCELL_COARSE4_(u, p, m, 8) +         \
     TATCELL_COARSE4_(u, p, m, 12) + TATCELL_COARSE4_(u, p, m, 16) + TATCELL_COARSE4_(u, p, m, 20) +      \
     TATCELL_COARSE4_(u, p, m, 24) + TATCELL_COARSE4_(u, p, m, 28))
#define TATCELL_SANE_(u, p, b, d)                                                                       \
    ((u) > 0 && (p) > 0 && (b) > 0 && TATCELL_U_(u) >> 46 == 0 && TATCELL_U_(p) >> 62 == 0 && TATCELL_U_(d) >> 62 == 0)
#define TATCELL_T_(u, p, s) ((((TATCELL_U_(p)) << (s)) - 1) / TATCELL_U_(u) + 1)
/* Horizon: burst and delay in q-units. */
#define TATCELL_H_(t, b, d, s) (TATCELL_U_(b) * (t) + (TATCELL_U_(d) << (s)))
/* Do burst * t and delay << s stay below 2^n? */
#define TATCELL_FITS_(t, b, d, s, n)                                                           \
    (TATCELL_U_(b) <= ((TATCELL_U_(1) << (n)) - 1) / (t) && TATCELL_U_(d) <= ((TATCELL_U_(1) << (n)) - 1) >> (s))

/* Skew: the larger of the horizon and what a thread or a cached clock may lag. */
#define TATCELL_MAX_(a, b) ((a) > (b) ? (a) : (b))
/* 64-bit cells: at least 2^16 q-units a unit; skew an eighth of the span where that is long, else a 64th of it, at most
   2^30 ticks, and at least the horizon. */
#define TATCELL_S64_(u, p) TATCELL_SHIFT_(u, p, 65535u)
#define TATCELL_T64_(u, p) TATCELL_T_(u, p, TATCELL_S64_(u, p) & 31)
#define TATCELL_LAG64_(s) (TATCELL_U_(1) << ((s) < 28 ? 30 + (s) : 58))
#define TATCELL_SKEW64_(s, h) ((s) <= 9 ? TATCELL_U_(1) << 61 : TATCELL_MAX_(h, TATCELL_LAG64_(s)))
#define TATCELL_WINDOW_(s, h) ((h) + TATCELL_SKEW64_(s, h))
#define TATCELL_OK64_(u, p, b, d)                                                                                \
    (TATCELL_SANE_(u, p, b, d) && TATCELL_S64_(u, p) <= 31 &&                                                    \
     TATCELL_FITS_(TATCELL_T64_(u, p), b, d, TATCELL_S64_(u, p) & 31, 62) &&                                     \
     TATCELL_WINDOW_(TATCELL_S64_(u, p), TATCELL_H_(TATCELL_T64_(u, p), b, d, TATCELL_S64_(u, p) & 31)) >> 63 == 0)

/* 32-bit cells: whole ticks where a unit takes a whole number of them, else at least 2^10 q-units; skew
   a 64th of the span, and at least the horizon. */
#define TATCELL_WINDOW32_(h) ((h) + TATCELL_MAX_(h, TATCELL_U_(1) << 26))
#define TATCELL_S32_(u, p) (TATCELL_U_(p) % TATCELL_U_(u) == 0 ? 0 : TATCELL_SHIFT_(u, p, 1023u))
#define TATCELL_T32_(u, p) TATCELL_T_(u, p, TATCELL_S32_(u, p) & 31)
#define TATCELL_OK32_(u, p, b, d)                                            \
    (TATCELL_SANE_(u, p, b, d) && TATCELL_S32_(u, p) <= 31 &&                \
     TATCELL_FITS_(TATCELL_T32_(u, p), b, d, TATCELL_S32_(u, p) & 31, 30) && \
     TATCELL_H_(TATCELL_T32_(u, p), b, d, TATCELL_S32_(u, p) & 31) >> 30 == 0)

/**
 * Initialiser of a tatcell_small_limit_t: `units` per `period` ticks, at most `burst` at one instant after idle.
 * Constants only: what cannot be represented does not compile, nor do variables (tatcell_small_limit_init takes them).
 */
#define TATCELL_SMALL_LIMIT(units, period, burst) TATCELL_SMALL_LIMIT_SHAPED(units, period, burst, 0)
/** As TATCELL_SMALL_LIMIT, and reservations may wait up to `max_delay` ticks. */
#define TATCELL_SMALL_LIMIT_SHAPED(units, period, burst, max_delay)                                             \
    {                                                                                                           \
        TATCELL_T64_(units, period) + TATCELL_REQUIRE_(TATCELL_OK64_(units, period, burst, max_delay)),         \
            TATCELL_U_(burst) * TATCELL_T64_(units, period),                                                    \
            TATCELL_WINDOW_(TATCELL_S64_(units, period), TATCELL_H_(TATCELL_T64_(units, period), burst,         \
                                                                    max_delay, TATCELL_S64_(units, period) & 31)), \
            TATCELL_U_(max_delay) << (TATCELL_S64_(units, period) & 31),                                        \
            (uint32_t)(TATCELL_U_(burst) > UINT32_MAX ? UINT32_MAX : TATCELL_U_(burst)),                        \
            (uint16_t)(TATCELL_S64_(units, period)), (uint16_t)(31 - TATCELL_S64_(units, period))               \
    }

/** Initialiser of a tatcell_small32_limit_t; as TATCELL_SMALL_LIMIT. The burst must refill within 2^30 q-units. */
#define TATCELL_SMALL32_LIMIT(units, period, burst) TATCELL_SMALL32_LIMIT_SHAPED(units, period, burst, 0)
/** As TATCELL_SMALL32_LIMIT, and reservations may wait up to `max_delay` ticks. */
#define TATCELL_SMALL32_LIMIT_SHAPED(units, period, burst, max_delay)                                                  \
    {                                                                                                                  \
        (uint32_t)(TATCELL_T32_(units, period) + TATCELL_REQUIRE_(TATCELL_OK32_(units, period, burst, max_delay))),    \
            (uint32_t)(TATCELL_U_(burst) * TATCELL_T32_(units, period)),                                               \
            (uint32_t)(TATCELL_WINDOW32_(TATCELL_H_(TATCELL_T32_(units, period), burst, max_delay,                     \
                                                    TATCELL_S32_(units, period) & 31))),                               \
            (uint32_t)(TATCELL_U_(max_delay) << (TATCELL_S32_(units, period) & 31)), (uint32_t)(burst),                \
            (uint32_t)(TATCELL_S32_(units, period))                                                                    \
    }

/**
 * Initialiser of a tatcell_small_limit_t for a duty cycle: no more than `on` ticks of transmission in any `window` of
 * ticks, wherever it begins, in transmissions of at most `longest` ticks. Charge each when it begins: cost = its ticks,
 * rounded up.
 *
 * The rate is what the burst leaves: in a window pass at most burst + rate * window = longest + (on - longest) units.
 * (A limit of `on` per `window` with a burst of `on` lets nearly twice that through.) One tick is added to the window
 * for a clock that shows whole ticks.
 */
#define TATCELL_SMALL_DUTY(on, window, longest) \
    TATCELL_SMALL_LIMIT(TATCELL_DUTY_(on, window, longest), TATCELL_U_(window) + 1, longest)
/** As TATCELL_SMALL_DUTY, a tatcell_small32_limit_t. */
#define TATCELL_SMALL32_DUTY(on, window, longest) \
    TATCELL_SMALL32_LIMIT(TATCELL_DUTY_(on, window, longest), TATCELL_U_(window) + 1, longest)
/* Units of the rate; 0, which is refused, where the longest is not below on or on is above the window. */
#define TATCELL_DUTY_(on, window, longest) \
    ((longest) > 0 && (longest) < (on) && (on) <= (window) ? TATCELL_U_(on) - TATCELL_U_(longest) : 0u)

/**
 * Ticks that a 32-bit cell may rest, from its last charge on, without ever reading as a debt: 2^32 q-units less a
 * window.
 * Of a 64-bit cell they are years.
 */
#define TATCELL_SMALL32_SPAN(limit_) ((0u - (limit_).window) >> (limit_).shift)
/** Ticks within which a 32-bit cell or table that may rest longer than that should be swept once. */
#define TATCELL_SMALL32_SWEEP_INTERVAL(limit_) ((0u - 2u * (limit_).window) >> (limit_).shift)

/**
 * Initialiser of a tatcell_small_table_t over an array of slots (a multiple of 16), one limit for every key, and what
 * to do with a new key whose set is full: TATCELL_FULL_ADMIT, TATCELL_FULL_INHERIT or TATCELL_FULL_DENY. Seed it
 * before use.
 */
#define TATCELL_SMALL_TABLE(slots_, units, period, burst, policy_)                                                   \
    {                                                                                                                \
        TATCELL_SMALL32_LIMIT(units, period, burst), slots_,                                                         \
            (uint32_t)(sizeof(slots_) / sizeof((slots_)[0]) / 16 +                                                   \
                       TATCELL_REQUIRE_(sizeof(slots_) >= 128 && sizeof(slots_) % 128 == 0 && (policy_) <= 2)),      \
            policy_, {0, 0}, 0                                                                                       \
    }

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Decides one request and charges it if it passes.
 *
 * @param cell  shared with interrupts as the archive's choice allows.
 * @param limit made by TATCELL_SMALL_LIMIT.
 * @param now   your clock, ticks.
 * @param cost  units; 0 looks and never writes.
 * @retval 0 passes, charged.
 * @retval TATCELL_SMALL_NEVER, TATCELL_SMALL_CONTENDED nothing charged.
 * @retval others ticks until the same request passes; nothing charged.
 * Thread: any context. Cost: one short masked section. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint64_t tatcell_small_check(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint32_t cost);

/**
 * As tatcell_small_check with cost 1: no multiplication.
 *
 * @param cell  as tatcell_small_check.
 * @param limit as tatcell_small_check.
 * @param now   your clock, ticks.
 * @retval as tatcell_small_check; never TATCELL_SMALL_NEVER.
 * Thread: any context. Cost: as tatcell_small_check. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint64_t tatcell_small_check_unit(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now);

/**
 * As tatcell_small_check for a cell that only one context uses: nothing is masked.
 *
 * @param cell  nobody else uses it during the call.
 * @param limit as tatcell_small_check.
 * @param now   your clock, ticks.
 * @param cost  units.
 * @retval as tatcell_small_check; never TATCELL_SMALL_CONTENDED.
 * Thread: one at a time. Cost: one load, one store. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint64_t tatcell_small_check_exclusive(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now,
                                       uint32_t cost);

/**
 * Reserves units for the earliest conforming instant, for shaping. Departures of one cell are monotone.
 *
 * @param cell  as tatcell_small_check.
 * @param limit made by TATCELL_SMALL_LIMIT_SHAPED.
 * @param now   your clock, ticks.
 * @param cost  units, at most the burst.
 * @retval 0 may leave now.
 * @retval TATCELL_SMALL_REFUSED, TATCELL_SMALL_NEVER, TATCELL_SMALL_CONTENDED nothing reserved.
 * @retval others ticks from now at which it may leave.
 * Thread: any context. Cost: as tatcell_small_check. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint64_t tatcell_small_reserve(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint32_t cost);

/**
 * Empties the cell if it has long expired, so that a wrapped clock cannot read it as a debt. Changes no answer.
 *
 * @param cell  as tatcell_small_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * Thread: any context. Cost: one short masked section. Since 0.1.
 */
void tatcell_small_idle(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now);

/**
 * Makes the cell fresh again: its full burst is available.
 *
 * @param cell as tatcell_small_check.
 * Thread: any context. Cost: one store. Since 0.1.
 */
void tatcell_small_reset(tatcell_cell_t *cell);

/**
 * Decides one request and charges it if it passes; 32-bit ticks that wrap.
 *
 * @param cell  shared with interrupts.
 * @param limit made by TATCELL_SMALL32_LIMIT.
 * @param now   your clock, ticks.
 * @param cost  units; 0 looks and never writes.
 * @retval 0 passes, charged.
 * @retval TATCELL_SMALL32_NEVER, TATCELL_SMALL32_CONTENDED nothing charged.
 * @retval others ticks until the same request passes; nothing charged.
 * Thread: any context. Cost: one ldrex/strex or lr/sc, or one short masked section on cores without. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small32_check(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                               uint32_t cost);

/**
 * As tatcell_small32_check with cost 1.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit as tatcell_small32_check.
 * @param now   your clock, ticks.
 * @retval as tatcell_small32_check; never TATCELL_SMALL32_NEVER.
 * Thread: any context. Cost: as tatcell_small32_check. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small32_check_unit(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now);

/**
 * Reserves units for the earliest conforming instant, for shaping. Departures of one cell are monotone.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit made by TATCELL_SMALL32_LIMIT_SHAPED.
 * @param now   your clock, ticks.
 * @param cost  units, at most the burst.
 * @retval 0 may leave now.
 * @retval TATCELL_SMALL32_REFUSED, TATCELL_SMALL32_NEVER, TATCELL_SMALL32_CONTENDED nothing reserved.
 * @retval others ticks from now at which it may leave.
 * Thread: any context. Cost: as tatcell_small32_check. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small32_reserve(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                                 uint32_t cost);

/**
 * Empties the cell if it has long expired, so that a wrapped clock cannot read it as a debt. Changes no answer. Call
 * it once per TATCELL_SMALL32_SWEEP_INTERVAL for a cell that may rest that long.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * Thread: any context. Cost: as tatcell_small32_check. Since 0.1.
 */
void tatcell_small32_idle(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now);

/**
 * Makes the cell fresh again: its full burst is available.
 *
 * @param cell as tatcell_small32_check.
 * Thread: any context. Cost: one store. Since 0.1.
 */
void tatcell_small32_reset(tatcell_cell32_t *cell);

/**
 * Sets the secret of a table: 8 random bytes of this device, once, before the first key. There is no default: until
 * then every check is refused.
 *
 * @param table made by TATCELL_SMALL_TABLE.
 * @param seed  8 bytes, not all zero. Copied.
 * Thread: one, before keys are checked. Cost: two stores. Since 0.1.
 */
void tatcell_small_table_seed(tatcell_small_table_t *table, const uint8_t *seed);

/**
 * Hashes a key: HalfSipHash-1-3 under the table's secret.
 *
 * @param table seeded.
 * @param key   len bytes; start them with a family byte where keys of several kinds share a table.
 * @param len   bytes.
 * @return the hash for tatcell_small_table_check_hash; 0 without a seed.
 * Thread: any context. Cost: some 30 instructions for each 4 bytes and 130 more. Since 0.1.
 */
uint32_t tatcell_small_table_hash(const tatcell_small_table_t *table, const uint8_t *key, uint32_t len);

/**
 * Decides one request of a key and charges it if it passes. A new key takes a free or expired slot of its set of 16.
 *
 * @param table seeded; shared with interrupts as the archive's choice allows.
 * @param now   your clock, 32-bit ticks that may wrap.
 * @param key   len bytes.
 * @param len   bytes.
 * @param cost  units; 0 looks and never writes.
 * @retval 0 passes, charged (or untracked where the set was full and the policy is TATCELL_FULL_ADMIT: see full).
 * @retval TATCELL_SMALL32_REFUSED the table has no seed.
 * @retval TATCELL_SMALL32_NEVER the cost is greater than the burst.
 * @retval others ticks until the same request passes; nothing charged.
 * Thread: any context. Cost: one hash, and one masked section over 16 slots. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small_table_check(tatcell_small_table_t *table, uint32_t now, const uint8_t *key, uint32_t len,
                                   uint32_t cost);

/**
 * As tatcell_small_table_check for a hash made before, by tatcell_small_table_hash or another keyed hash.
 *
 * @param table needs no seed for hashes of another function.
 * @param now   your clock, ticks.
 * @param hash  all 32 bits must depend on a secret.
 * @param cost  units.
 * @retval as tatcell_small_table_check.
 * Thread: any context. Cost: one masked section over 16 slots. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small_table_check_hash(tatcell_small_table_t *table, uint32_t now, uint32_t hash, uint32_t cost);

/**
 * As tatcell_small_table_check for a table that only one context uses: nothing is masked.
 *
 * @param table nobody else uses it during the call.
 * @param now   your clock, ticks.
 * @param key   len bytes.
 * @param len   bytes.
 * @param cost  units.
 * @retval as tatcell_small_table_check.
 * Thread: one at a time. Cost: one hash, and a search of 16 slots. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small_table_check_exclusive(tatcell_small_table_t *table, uint32_t now, const uint8_t *key,
                                             uint32_t len, uint32_t cost);

/**
 * Empties every slot that has long expired, so that a wrapped clock cannot read it as a debt. Changes no answer. Call
 * it once per TATCELL_SMALL32_SWEEP_INTERVAL(table.limit), or more often.
 *
 * @param table as tatcell_small_table_check.
 * @param now   your clock, ticks.
 * Thread: any context. Cost: one short masked section for each slot. Since 0.1.
 */
void tatcell_small_table_sweep(tatcell_small_table_t *table, uint32_t now);

/**
 * As the macro TATCELL_SMALL_LIMIT_SHAPED for numbers that are known when the program runs: the same limit, or an error
 * where that does not compile. By shifts and subtractions, some 5000 instructions: at the start, not on each check.
 *
 * @param limit     is written; as it was where an error is returned.
 * @param units     units per `period`.
 * @param period    ticks.
 * @param burst     most units at one instant after idle.
 * @param max_delay longest delay of a reservation, ticks; 0 where there are none.
 * @retval 0 made.
 * @retval TATCELL_ERR_RATE, TATCELL_ERR_PERIOD, TATCELL_ERR_BURST units, period or burst is 0.
 * @retval TATCELL_ERR_REPRESENT the rate is too fast for 31 bits of fraction, or the burst does not fit.
 * @retval TATCELL_ERR_HORIZON burst and delay together are too long.
 * Thread: one; nobody uses the limit meanwhile. Cost: two loops of up to 95 and 62 rounds. Since 0.4.
 */
TATCELL_SMALL_VERDICT
int32_t tatcell_small_limit_init(tatcell_small_limit_t *limit, uint64_t units, uint64_t period, uint64_t burst,
                                 uint64_t max_delay);

/**
 * As tatcell_small_limit_init, for TATCELL_SMALL32_LIMIT_SHAPED.
 *
 * @param limit     is written; as it was where an error is returned.
 * @param units     units per `period`.
 * @param period    ticks.
 * @param burst     most units at one instant after idle.
 * @param max_delay longest delay of a reservation, ticks; 0 where there are none.
 * @retval as tatcell_small_limit_init; TATCELL_ERR_HORIZON also where the burst needs more than 2^30 q-units.
 * Thread: as tatcell_small_limit_init. Cost: as tatcell_small_limit_init. Since 0.4.
 */
TATCELL_SMALL_VERDICT
int32_t tatcell_small32_limit_init(tatcell_small32_limit_t *limit, uint64_t units, uint64_t period, uint64_t burst,
                                   uint64_t max_delay);

/**
 * Charges after the fact what was sent anyway, up to a debt of burst and max_delay together.
 *
 * @param cell  as tatcell_small_check.
 * @param limit as tatcell_small_check; with a max_delay there is room above the burst.
 * @param now   your clock, ticks.
 * @param cost  units, at most the burst.
 * @retval 0 all is charged.
 * @retval TATCELL_SMALL_NEVER, TATCELL_SMALL_CONTENDED nothing charged.
 * @retval others the debt is as large as it can be, and so many ticks of the charge found no room.
 * Thread: any context. Cost: as tatcell_small_check. Since 0.4.
 */
uint64_t tatcell_small_charge(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint32_t cost);

/**
 * Gives back units that a check or charge took: a transmission that was not made, or the rest of it. A reservation is
 * given up with tatcell_small_cancel instead. What has drained since then is not given back; the charge counts as
 * draining from `then` on, so that no order of refunds gives a unit twice.
 *
 * @param cell  as tatcell_small_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param then  `now` of the call that charged: refund a charge once, and within the limit's span.
 * @param cost  units, at most what was charged.
 * @retval TATCELL_SMALL_CONTENDED nothing changed; ask again.
 * @retval others ticks of debt taken off, rounded down; 0 where all has drained.
 * Thread: any context. Cost: as tatcell_small_check. Since 0.4.
 */
uint64_t tatcell_small_refund(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint64_t then,
                              uint32_t cost);

/**
 * Gives up a place in the line: a reservation that does not leave. The last place is undone whole; where another waits
 * behind it nothing is given back, because that one leaves when it was told, and whoever reserved next would leave too
 * soon after it. (A refund knows of no line: it is for checks.)
 *
 * @param cell  as tatcell_small_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param then  `now` of the reservation: cancel it once, and before it leaves.
 * @param wait  what the reservation answered. After 0, as after a check, what has drained is not given back.
 * @param cost  units, as reserved.
 * @retval TATCELL_SMALL_CONTENDED nothing changed; ask again.
 * @retval others ticks of debt taken off, rounded down; 0 where another waits behind it.
 * Thread: any context. Cost: as tatcell_small_check. Since 0.4.
 */
uint64_t tatcell_small_cancel(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint64_t then,
                              uint64_t wait, uint32_t cost);

/**
 * Reads the debt, for keeping it over a reset or a sleep that stops the clock.
 *
 * @param cell  as tatcell_small_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @return ticks until the full burst is available again, rounded up; 0 = it is.
 * Thread: any context. Cost: one load. Since 0.4.
 */
uint64_t tatcell_small_debt(const tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now);

/**
 * Sets the debt, whatever it was, under a clock that may have started anew.
 *
 * After `asleep` ticks (rounded down) set `saved > asleep ? saved - asleep : 0`: nothing is forgiven, and nothing is
 * refused for more than two ticks longer than if the clock had run on.
 *
 * @param cell  as tatcell_small_check; a charge of another context at the same time is lost.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param ticks debt; more than burst and max_delay is cut to that.
 * Thread: any context. Cost: one store. Since 0.4.
 */
void tatcell_small_set_debt(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint64_t ticks);

/**
 * As tatcell_small_charge; 32-bit ticks that wrap.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit as tatcell_small32_check; with a max_delay there is room above the burst.
 * @param now   your clock, ticks.
 * @param cost  units, at most the burst.
 * @retval 0 all is charged.
 * @retval TATCELL_SMALL32_NEVER, TATCELL_SMALL32_CONTENDED nothing charged.
 * @retval others the debt is as large as it can be, and so many ticks of the charge found no room.
 * Thread: any context. Cost: as tatcell_small32_check. Since 0.4.
 */
uint32_t tatcell_small32_charge(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                                uint32_t cost);

/**
 * As tatcell_small_refund; 32-bit ticks that wrap.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param then  `now` of the call that charged: refund a charge once, and within TATCELL_SMALL32_SPAN.
 * @param cost  units, at most what was charged.
 * @retval TATCELL_SMALL32_CONTENDED nothing changed; ask again.
 * @retval others ticks of debt taken off, rounded down; 0 where all has drained.
 * Thread: any context. Cost: as tatcell_small32_check. Since 0.4.
 */
uint32_t tatcell_small32_refund(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                                uint32_t then, uint32_t cost);

/**
 * As tatcell_small_cancel; 32-bit ticks that wrap.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param then  `now` of the reservation: cancel it once, and before it leaves.
 * @param wait  what the reservation answered. After 0, as after a check, what has drained is not given back.
 * @param cost  units, as reserved.
 * @retval TATCELL_SMALL32_CONTENDED nothing changed; ask again.
 * @retval others ticks of debt taken off, rounded down; 0 where another waits behind it.
 * Thread: any context. Cost: as tatcell_small32_check. Since 0.4.
 */
uint32_t tatcell_small32_cancel(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                                uint32_t then, uint32_t wait, uint32_t cost);

/**
 * As tatcell_small_debt; 32-bit ticks that wrap.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @return ticks until the full burst is available again, rounded up; 0 = it is.
 * Thread: any context. Cost: one load. Since 0.4.
 */
uint32_t tatcell_small32_debt(const tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now);

/**
 * As tatcell_small_set_debt; 32-bit ticks that wrap.
 *
 * @param cell  as tatcell_small32_check; a charge of another context at the same time is lost.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param ticks debt; more than burst and max_delay is cut to that.
 * Thread: any context. Cost: one store. Since 0.4.
 */
void tatcell_small32_set_debt(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                              uint32_t ticks);

/**
 * Decides one log line of a place: written, or counted. TATCELL_LOG_LIMITED makes log and limit for its place.
 *
 * @param log      zeroed at first; one for each place.
 * @param limit    made by TATCELL_SMALL32_LIMIT.
 * @param now      your clock, 32-bit ticks that may wrap.
 * @param left_out is written where 1 is returned: lines left out since the last one that was written.
 * @retval 1 write the line.
 * @retval 0 leave it out; it is counted.
 * Thread: any context; each line left out is told by one written line, or still in log->left_out. Cost: as
 * tatcell_small32_check_unit, and one addition. Since 0.4.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small_log(tatcell_small_log_t *log, const tatcell_small32_limit_t *limit, uint32_t now,
                           uint32_t *left_out);

/**
 * Says whether the library's sections keep interrupts out of the code that calls this. Ask once at the start, where
 * libtatcell-single.a is used beside code without privileges: there the instruction that masks does nothing.
 *
 * @retval 0 they do. (With libtatcell-critical.a they are your functions, and this is not looked at.)
 * @retval TATCELL_ERR_UNSUPPORTED they do not: the code is unprivileged. Use libtatcell-critical.a, or ask from a call
 * of the supervisor.
 * Thread: any context. Cost: one masked section. Since 0.4.
 */
TATCELL_SMALL_VERDICT
int32_t tatcell_small_section_check(void);

#if defined(__GNUC__)
/**
 * Decides one log line of this place: at most `burst` lines at once and `n` per `per` ticks. True: write it, and
 * *left_out before it were not written since the last one. The place has 8 bytes of RAM and 24 of flash for it.
 *
 *   uint32_t left_out;
 *   if (TATCELL_LOG_LIMITED(now_ms, 2, 1000, 3, &left_out))
 *       printf("queue full (%u more were not logged)\n", (unsigned)left_out);
 *
 * In a function that is inlined or instantiated several times each copy that the compiler keeps apart has its own.
 */
#define TATCELL_LOG_LIMITED(now, n, per, burst, left_out)                                           \
    __extension__({                                                                                 \
        static const tatcell_small32_limit_t tatcell_limit_ = TATCELL_SMALL32_LIMIT(n, per, burst); \
        static tatcell_small_log_t tatcell_log_;                                                    \
        tatcell_small_log(&tatcell_log_, &tatcell_limit_, now, left_out) != 0;                      \
    })
#endif

/**
 * Yours to write, for libtatcell-critical.a: keeps out every context that uses the same cells (interrupts, tasks, the
 * other core), and returns what tatcell_critical_exit needs to undo it. Sections nest.
 *
 * @return the state before, for example PRIMASK.
 */
uint32_t tatcell_critical_enter(void);

/**
 * Yours to write, for libtatcell-critical.a: undoes the matching tatcell_critical_enter.
 *
 * @param state what that returned.
 */
void tatcell_critical_exit(uint32_t state);

#ifdef __cplusplus
}
#endif

#endif /* TATCELL_SMALL_H */
