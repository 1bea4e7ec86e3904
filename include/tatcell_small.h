/*
 * tatcell_small.h - rate limits for small machines: Cortex-M0 to M4, RISC-V, anything with 32-bit registers.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   #include <tatcell_small.h>
 *
 *   // 10 a second, 5 at once; ticks are milliseconds. The compiler computes the limit: the target divides nothing.
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
 *          at one instant after idle. Answers and state words equal those of tatcell_cell_check and
 *          tatcell_cell32_check under the same limit, bit for bit.
 * ANSWER   One number; only 0 passes. The three largest numbers are codes: TATCELL_SMALL_NEVER (cost above the burst),
 *          TATCELL_SMALL_CONTENDED (no verdict, nothing charged; only on cores with ldrex/strex or lr/sc) and
 *          TATCELL_SMALL_REFUSED. Any other number is the ticks until the same request passes.
 * TIME     Your own tick count: 64 bits, or 32 bits that wrap (only differences count). A 32-bit cell that was idle
 *          for longer than TATCELL_SMALL32_SPAN(limit) ticks can read as a debt of at most one window, never as
 *          credit. The span is nearly 2^(32 - shift) ticks: 49 days of ms for 10 a second, but 262 s for the bytes of
 *          a UART. Charge each cell once per span, or call _idle for it (_sweep for a table) once per
 *          TATCELL_SMALL32_SWEEP_INTERVAL(limit).
 * SHARING  The main loop and interrupts may use the same cell or table at once. If the core has no atomics of that
 *          width, the archive that you link decides how the library keeps them apart:
 *            libtatcell-single.a     masks interrupts (PRIMASK, mstatus.MIE): one core, privileged code
 *            libtatcell-critical.a   calls tatcell_critical_enter and tatcell_critical_exit, which you write
 *          The _exclusive functions mask nothing: one caller at a time. PRIMASK does not mask an NMI or a hard fault:
 *          call nothing from there. If tatcell_critical_enter raises BASEPRI, call nothing from an interrupt of a
 *          higher priority. Unprivileged code on a Cortex-M cannot mask: tatcell_small_section_check detects it.
 * ONE USE  Check a cell, or reserve from it, not both: reservations take each unit in advance, so checks starve.
 * CHECKS   None. Unlike those of tatcell.h, these functions need objects that this header made. A NULL, a misaligned
 *          pointer or any other limit is undefined behaviour. This keeps the functions small.
 */
#ifndef TATCELL_SMALL_H
#define TATCELL_SMALL_H

#include "tatcell.h"

/** Precedes functions whose verdict must not be ignored. Define it yourself to replace it. */
#ifndef TATCELL_SMALL_VERDICT
#define TATCELL_SMALL_VERDICT TATCELL_NODISCARD
#endif

/** Answer: the request can never pass, because its cost is greater than the burst. */
#define TATCELL_SMALL_NEVER UINT64_MAX
/** Answer: no verdict, because interrupts won every attempt. Nothing was charged; ask again, or decide yourself. */
#define TATCELL_SMALL_CONTENDED (UINT64_MAX - 1)
/** Answer: the reservation would wait longer than max_delay. Nothing was charged. */
#define TATCELL_SMALL_REFUSED (UINT64_MAX - 2)
/** Answer of 32-bit functions: TATCELL_SMALL_NEVER. */
#define TATCELL_SMALL32_NEVER UINT32_MAX
/** Answer of 32-bit functions: TATCELL_SMALL_CONTENDED. */
#define TATCELL_SMALL32_CONTENDED (UINT32_MAX - 1)
/** Answer of 32-bit functions: TATCELL_SMALL_REFUSED, or the table has no seed yet. */
#define TATCELL_SMALL32_REFUSED (UINT32_MAX - 2)

/** A limit for 64-bit cells: static data, made by TATCELL_SMALL_LIMIT. */
typedef struct tatcell_small_limit_t {
    /** Emission interval in q-units of 2^-shift ticks. */
    uint64_t t;
    /** burst * t. */
    uint64_t limit;
    /** Largest lead that a live word can show. */
    uint64_t window;
    /** The most lead that a reservation may add above limit. */
    uint64_t delay;
    /** The burst, in units. */
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
    /** The most lead that a reservation may add above limit. */
    uint32_t delay;
    /** The burst, in units. */
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

/** A table of keys under one limit, made by TATCELL_SMALL_TABLE. */
typedef struct tatcell_small_table_t {
    /** The limit of every key. */
    tatcell_small32_limit_t limit;
    /** The caller's slots. */
    tatcell_small_slot_t *slots;
    /** Sets of 16 slots, 1 to 65536. */
    uint32_t sets;
    /** TATCELL_FULL_ADMIT, TATCELL_FULL_INHERIT or TATCELL_FULL_DENY. */
    uint32_t policy;
    /** The secret; tatcell_small_table_seed sets it. */
    uint32_t seed[2];
    /** Requests of new keys whose set was full; wraps. */
    uint32_t full;
} tatcell_small_table_t;

/** The log state of one place in the code: zeroed memory is fresh. */
typedef struct tatcell_small_log_t {
    /** Limits the written lines. */
    tatcell_cell32_t cell;
    /** Lines left out since the last written one; wraps. */
    uint32_t left_out;
} tatcell_small_log_t;

/* Compile-time arithmetic. Do not use it outside this header; every name ends in an underscore. */
#define TATCELL_U_(x) ((uint64_t)(x))
/* 0 if both hold. If one is false or not a constant, the program does not compile. In C, the width of a bit-field is
   negative or "not an integer constant". In C++, a static_assert fails or a "template argument" is not constant. */
#ifdef __cplusplus
extern "C++" {
template <bool limit, bool table> struct tatcell_require_ {
    static_assert(limit, "tatcell: this limit cannot be represented: a value is 0, the burst is too large or the rate "
                         "too fast (use larger units or slower ticks), or a duty cycle is not longest < on <= window");
    static_assert(table, "tatcell: slots must be a multiple of 16, and the policy ADMIT, INHERIT or DENY");
    enum { zero = 0 };
};
}
#define TATCELL_REQUIRE_(limit, table) ((unsigned)tatcell_require_<(limit), (table)>::zero)
#else
#define TATCELL_REQUIRE_(limit, table)                                    \
    (0 * sizeof(struct {                                                  \
         int tatcell_this_limit_cannot_be_represented : (limit) ? 1 : -1; \
         int tatcell_slots_must_be_a_multiple_of_16 : (table) ? 1 : -1;   \
     }))
#endif
/* Is the emission interval below m + 1 q-units at shift k? The shift is the number of such k. */
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

/* Skew: the horizon, or the time by which a thread or a cached clock may lag, if that is longer. */
#define TATCELL_MAX_(a, b) ((a) > (b) ? (a) : (b))
/* 64-bit cells: at least 2^16 q-units a unit. The skew is an eighth of the span if the span is long; else a 64th of it,
   at most 2^30 ticks, at least the horizon. */
#define TATCELL_S64_(u, p) TATCELL_SHIFT_(u, p, 65535u)
#define TATCELL_T64_(u, p) TATCELL_T_(u, p, TATCELL_S64_(u, p) & 31)
#define TATCELL_LAG64_(s) (TATCELL_U_(1) << ((s) < 28 ? 30 + (s) : 58))
#define TATCELL_SKEW64_(s, h) ((s) <= 9 ? TATCELL_U_(1) << 61 : TATCELL_MAX_(h, TATCELL_LAG64_(s)))
#define TATCELL_WINDOW_(s, h) ((h) + TATCELL_SKEW64_(s, h))
#define TATCELL_OK64_(u, p, b, d)                                                                                \
    (TATCELL_SANE_(u, p, b, d) && TATCELL_S64_(u, p) <= 31 &&                                                    \
     TATCELL_FITS_(TATCELL_T64_(u, p), b, d, TATCELL_S64_(u, p) & 31, 62) &&                                     \
     TATCELL_WINDOW_(TATCELL_S64_(u, p), TATCELL_H_(TATCELL_T64_(u, p), b, d, TATCELL_S64_(u, p) & 31)) >> 63 == 0)

/* 32-bit cells: whole ticks if a unit takes a whole number of them, else at least 2^10 q-units a unit. The skew is a
   64th of the span, at least the horizon. */
#define TATCELL_WINDOW32_(h) ((h) + TATCELL_MAX_(h, TATCELL_U_(1) << 26))
#define TATCELL_S32_(u, p) (TATCELL_U_(p) % TATCELL_U_(u) == 0 ? 0 : TATCELL_SHIFT_(u, p, 1023u))
#define TATCELL_T32_(u, p) TATCELL_T_(u, p, TATCELL_S32_(u, p) & 31)
#define TATCELL_OK32_(u, p, b, d)                                            \
    (TATCELL_SANE_(u, p, b, d) && TATCELL_S32_(u, p) <= 31 &&                \
     TATCELL_FITS_(TATCELL_T32_(u, p), b, d, TATCELL_S32_(u, p) & 31, 30) && \
     TATCELL_H_(TATCELL_T32_(u, p), b, d, TATCELL_S32_(u, p) & 31) >> 30 == 0)

/**
 * Initialises a tatcell_small_limit_t: `units` per `period` ticks, and at most `burst` units at one instant after idle.
 * Constants only (tatcell_small_limit_init takes variables). It does not compile if a value is 0, or if the burst is
 * too large or the rate too fast: then use larger units or slower ticks.
 */
#define TATCELL_SMALL_LIMIT(units, period, burst) TATCELL_SMALL_LIMIT_SHAPED(units, period, burst, 0)
/** Initialises as TATCELL_SMALL_LIMIT; reservations may wait up to `max_delay` ticks. */
#define TATCELL_SMALL_LIMIT_SHAPED(units, period, burst, max_delay)                                             \
    {                                                                                                           \
        TATCELL_T64_(units, period) + TATCELL_REQUIRE_(TATCELL_OK64_(units, period, burst, max_delay), 1),      \
            TATCELL_U_(burst) * TATCELL_T64_(units, period),                                                    \
            TATCELL_WINDOW_(TATCELL_S64_(units, period), TATCELL_H_(TATCELL_T64_(units, period), burst,         \
                                                                    max_delay, TATCELL_S64_(units, period) & 31)), \
            TATCELL_U_(max_delay) << (TATCELL_S64_(units, period) & 31),                                        \
            (uint32_t)(TATCELL_U_(burst) > UINT32_MAX ? UINT32_MAX : TATCELL_U_(burst)),                        \
            (uint16_t)(TATCELL_S64_(units, period)), (uint16_t)(31 - TATCELL_S64_(units, period))               \
    }

/** Initialiser of a tatcell_small32_limit_t; as TATCELL_SMALL_LIMIT. The burst must refill within 2^30 q-units. */
#define TATCELL_SMALL32_LIMIT(units, period, burst) TATCELL_SMALL32_LIMIT_SHAPED(units, period, burst, 0)
/** Initialises as TATCELL_SMALL32_LIMIT; reservations may wait up to `max_delay` ticks. */
#define TATCELL_SMALL32_LIMIT_SHAPED(units, period, burst, max_delay)                                                  \
    {                                                                                                                  \
        (uint32_t)(TATCELL_T32_(units, period) + TATCELL_REQUIRE_(TATCELL_OK32_(units, period, burst, max_delay), 1)), \
            (uint32_t)(TATCELL_U_(burst) * TATCELL_T32_(units, period)),                                               \
            (uint32_t)(TATCELL_WINDOW32_(TATCELL_H_(TATCELL_T32_(units, period), burst, max_delay,                     \
                                                    TATCELL_S32_(units, period) & 31))),                               \
            (uint32_t)(TATCELL_U_(max_delay) << (TATCELL_S32_(units, period) & 31)), (uint32_t)(burst),                \
            (uint32_t)(TATCELL_S32_(units, period))                                                                    \
    }

/**
 * Initialises a tatcell_small_limit_t for a duty cycle: at most `on` ticks of transmission in any `window` ticks,
 * if none is longer than `longest` ticks. Charge each transmission when it begins: cost = its ticks, rounded up.
 *
 * At most burst + rate * window = longest + (on - longest) units pass in a window. (A limit of `on` per `window` with a
 * burst of `on` passes nearly twice as many.) The window is one tick longer, because a clock shows whole ticks.
 */
#define TATCELL_SMALL_DUTY(on, window, longest) \
    TATCELL_SMALL_LIMIT(TATCELL_DUTY_(on, window, longest), TATCELL_U_(window) + 1, longest)
/** Initialises a tatcell_small32_limit_t, as TATCELL_SMALL_DUTY. */
#define TATCELL_SMALL32_DUTY(on, window, longest) \
    TATCELL_SMALL32_LIMIT(TATCELL_DUTY_(on, window, longest), TATCELL_U_(window) + 1, longest)
/* Units of the rate. 0, which is refused, unless longest < on <= window. */
#define TATCELL_DUTY_(on, window, longest) \
    ((longest) > 0 && (longest) < (on) && (on) <= (window) ? TATCELL_U_(on) - TATCELL_U_(longest) : 0u)

/**
 * Ticks after its last charge for which a 32-bit cell may be idle and never reads as a debt: 2^32 q-units less a
 * window. For a 64-bit cell it is years.
 */
#define TATCELL_SMALL32_SPAN(limit_) ((0u - (limit_).window) >> (limit_).shift)
/** The most ticks between two sweeps of a 32-bit cell or table that may be idle for longer. */
#define TATCELL_SMALL32_SWEEP_INTERVAL(limit_) ((0u - 2u * (limit_).window) >> (limit_).shift)

/**
 * Initialises a tatcell_small_table_t over an array of slots (a multiple of 16), with one limit for every key. The
 * policy decides a new key whose set is full: TATCELL_FULL_ADMIT, TATCELL_FULL_INHERIT or TATCELL_FULL_DENY. Seed the
 * table before use.
 */
#define TATCELL_SMALL_TABLE(slots_, units, period, burst, policy_)                                                   \
    {                                                                                                                \
        TATCELL_SMALL32_LIMIT(units, period, burst), slots_,                                                         \
            (uint32_t)(sizeof(slots_) / sizeof((slots_)[0]) / 16 +                                                   \
                       TATCELL_REQUIRE_(1, sizeof(slots_) >= 128 && sizeof(slots_) % 128 == 0 && (policy_) <= 2)),   \
            policy_, {0, 0}, 0                                                                                       \
    }

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Decides one request and charges it if it passes.
 *
 * @param cell  may be shared with interrupts, as the archive allows (see SHARING).
 * @param limit made by TATCELL_SMALL_LIMIT.
 * @param now   your clock, ticks.
 * @param cost  units; 0 only peeks and never writes.
 * @retval 0 passes, and is charged.
 * @retval TATCELL_SMALL_NEVER, TATCELL_SMALL_CONTENDED does not pass; nothing is charged.
 * @retval others ticks until the same request passes; nothing is charged.
 * Thread: any context. Cost: one short masked section. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint64_t tatcell_small_check(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint32_t cost);

/**
 * Decides one request of cost 1. It equals tatcell_small_check, without a multiplication.
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
 * Decides one request, for a cell with one owner. It equals tatcell_small_check, but masks nothing.
 *
 * @param cell  no other context uses it during the call.
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
 * Reserves units for the earliest instant at which they conform, for shaping. Departures of one cell never step back.
 *
 * @param cell  as tatcell_small_check.
 * @param limit made by TATCELL_SMALL_LIMIT_SHAPED.
 * @param now   your clock, ticks.
 * @param cost  units, at most the burst.
 * @retval 0 reserved; may leave now.
 * @retval TATCELL_SMALL_REFUSED, TATCELL_SMALL_NEVER, TATCELL_SMALL_CONTENDED nothing is reserved.
 * @retval others reserved; may leave this many ticks after now.
 * Thread: any context. Cost: as tatcell_small_check. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint64_t tatcell_small_reserve(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint32_t cost);

/**
 * Empties the cell if it has long expired, so that it cannot read as a debt when the clock wraps. Changes no answer.
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
 * Decides one request and charges it if it passes, with 32-bit ticks that wrap.
 *
 * @param cell  may be shared with interrupts.
 * @param limit made by TATCELL_SMALL32_LIMIT.
 * @param now   your clock, ticks.
 * @param cost  units; 0 only peeks and never writes.
 * @retval 0 passes, and is charged.
 * @retval TATCELL_SMALL32_NEVER, TATCELL_SMALL32_CONTENDED does not pass; nothing is charged.
 * @retval others ticks until the same request passes; nothing is charged.
 * Thread: any context. Cost: one ldrex/strex or lr/sc; without these, one short masked section. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small32_check(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                               uint32_t cost);

/**
 * Decides one request of cost 1. It equals tatcell_small32_check, without a multiplication.
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
 * Reserves units for the earliest instant at which they conform, for shaping. Departures of one cell never step back.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit made by TATCELL_SMALL32_LIMIT_SHAPED.
 * @param now   your clock, ticks.
 * @param cost  units, at most the burst.
 * @retval 0 reserved; may leave now.
 * @retval TATCELL_SMALL32_REFUSED, TATCELL_SMALL32_NEVER, TATCELL_SMALL32_CONTENDED nothing is reserved.
 * @retval others reserved; may leave this many ticks after now.
 * Thread: any context. Cost: as tatcell_small32_check. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small32_reserve(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                                 uint32_t cost);

/**
 * Empties the cell if it has long expired, so that it cannot read as a debt when the clock wraps. Changes no answer.
 * Call it once per TATCELL_SMALL32_SWEEP_INTERVAL for a cell that may be idle that long.
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
 * Sets the secret of a table: 8 random bytes of this device. Call it once, before the first key. There is no default;
 * without a secret tatcell_small_table_check refuses every request.
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
 * @param key   len bytes. If keys of several kinds share a table, start them with a byte for the kind.
 * @param len   bytes.
 * @return the hash for tatcell_small_table_check_hash; 0 without a seed.
 * Thread: any context. Cost: about 130 instructions, and 30 for each 4 bytes. Since 0.1.
 */
uint32_t tatcell_small_table_hash(const tatcell_small_table_t *table, const uint8_t *key, uint32_t len);

/**
 * Decides one request of a key and charges it if it passes. A new key takes a free or expired slot of its set of 16.
 *
 * @param table seeded; may be shared with interrupts, as the archive allows.
 * @param now   your clock, 32-bit ticks that may wrap.
 * @param key   len bytes.
 * @param len   bytes.
 * @param cost  units; 0 only peeks and never writes.
 * @retval 0 passes, and is charged. If the set is full, TATCELL_FULL_ADMIT passes it untracked (see full).
 * @retval TATCELL_SMALL32_REFUSED the table has no seed.
 * @retval TATCELL_SMALL32_NEVER the cost is greater than the burst.
 * @retval others ticks until the same request passes; nothing is charged.
 * Thread: any context. Cost: one hash, and one masked section over 16 slots. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small_table_check(tatcell_small_table_t *table, uint32_t now, const uint8_t *key, uint32_t len,
                                   uint32_t cost);

/**
 * Decides as tatcell_small_table_check, for a hash made by tatcell_small_table_hash or by another keyed hash.
 *
 * @param table needs no seed if another function made the hash.
 * @param now   your clock, ticks.
 * @param hash  all 32 bits must depend on a secret.
 * @param cost  units.
 * @retval as tatcell_small_table_check.
 * Thread: any context. Cost: one masked section over 16 slots. Since 0.1.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small_table_check_hash(tatcell_small_table_t *table, uint32_t now, uint32_t hash, uint32_t cost);

/**
 * Decides as tatcell_small_table_check, for a table with one owner. It masks nothing.
 *
 * @param table no other context uses it during the call.
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
 * Empties every slot that has long expired, so that none can read as a debt when the clock wraps. Changes no answer.
 * Call it at least once per TATCELL_SMALL32_SWEEP_INTERVAL(table.limit).
 *
 * @param table as tatcell_small_table_check.
 * @param now   your clock, ticks.
 * Thread: any context. Cost: one short masked section for each slot. Since 0.1.
 */
void tatcell_small_table_sweep(tatcell_small_table_t *table, uint32_t now);

/**
 * Makes the limit of TATCELL_SMALL_LIMIT_SHAPED from numbers that are known at run time, or returns an error if that
 * would not compile. It takes about 5000 instructions (shifts, subtractions): call it at the start.
 *
 * @param limit     to initialise. Nothing is changed on error.
 * @param units     units per `period`.
 * @param period    ticks.
 * @param burst     most units at one instant after idle.
 * @param max_delay longest delay of a reservation, ticks; 0 without reservations.
 * @retval 0 done.
 * @retval TATCELL_ERR_RATE, TATCELL_ERR_PERIOD, TATCELL_ERR_BURST units, period or burst is 0.
 * @retval TATCELL_ERR_REPRESENT the rate is too fast for 31 bits of fraction, or the burst does not fit.
 * @retval TATCELL_ERR_HORIZON burst and delay together are too long.
 * Thread: one writer, no reader. Cost: two loops of up to 95 and 62 rounds. Since 0.4.
 */
TATCELL_SMALL_VERDICT
int32_t tatcell_small_limit_init(tatcell_small_limit_t *limit, uint64_t units, uint64_t period, uint64_t burst,
                                 uint64_t max_delay);

/**
 * Makes the limit of TATCELL_SMALL32_LIMIT_SHAPED from numbers that are known at run time.
 *
 * @param limit     to initialise. Nothing is changed on error.
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
 * Charges units that were sent already, until the debt is burst and max_delay together.
 *
 * @param cell  as tatcell_small_check.
 * @param limit as tatcell_small_check; a max_delay gives room above the burst.
 * @param now   your clock, ticks.
 * @param cost  units, at most the burst.
 * @retval 0 all is charged.
 * @retval TATCELL_SMALL_NEVER, TATCELL_SMALL_CONTENDED nothing is charged.
 * @retval others the debt reached its maximum; this many ticks of the charge did not fit.
 * Thread: any context. Cost: as tatcell_small_check. Since 0.4.
 */
uint64_t tatcell_small_charge(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint32_t cost);

/**
 * Gives back units that a check or charge took, if a transmission did not take place or was shorter. Give back a
 * reservation with tatcell_small_cancel instead. The part that has drained is not given back. The charge counts as
 * draining since `then`, so no order of refunds gives back a unit twice.
 *
 * @param cell  as tatcell_small_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param then  `now` of the call that charged. Refund a charge once, and within the limit's span.
 * @param cost  units, at most what was charged.
 * @retval TATCELL_SMALL_CONTENDED nothing is changed; ask again.
 * @retval others ticks of debt removed, rounded down; 0 if all has drained.
 * Thread: any context. Cost: as tatcell_small_check. Since 0.4.
 */
uint64_t tatcell_small_refund(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint64_t then,
                              uint32_t cost);

/**
 * Cancels a reservation. The last one of a cell is given back as a whole. If another one waits behind it, nothing is
 * given back: that one leaves at its time, and the next one would leave too soon after it. Refund only checks.
 *
 * @param cell  as tatcell_small_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param then  `now` of the reservation. Cancel it once, and before it leaves.
 * @param wait  what the reservation returned. If that was 0, the part that has drained is not given back.
 * @param cost  units, as reserved.
 * @retval TATCELL_SMALL_CONTENDED nothing is changed; ask again.
 * @retval others ticks of debt removed, rounded down; 0 if another one waits behind it.
 * Thread: any context. Cost: as tatcell_small_check. Since 0.4.
 */
uint64_t tatcell_small_cancel(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint64_t then,
                              uint64_t wait, uint32_t cost);

/**
 * Reads the debt, to save it over a reset or a sleep that stops the clock.
 *
 * @param cell  as tatcell_small_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @return ticks until the full burst is available again, rounded up; 0 = it is.
 * Thread: any context. Cost: one load. Since 0.4.
 */
uint64_t tatcell_small_debt(const tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now);

/**
 * Sets the debt, whatever it was. The clock may have restarted.
 *
 * After a sleep of `asleep` ticks (rounded down), set `saved > asleep ? saved - asleep : 0`. This forgives nothing, and
 * refuses nothing for more than two ticks longer than if the clock had run on.
 *
 * @param cell  as tatcell_small_check; a charge of another context at the same time is lost.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param ticks debt; cut to burst and max_delay together.
 * Thread: any context. Cost: one store. Since 0.4.
 */
void tatcell_small_set_debt(tatcell_cell_t *cell, const tatcell_small_limit_t *limit, uint64_t now, uint64_t ticks);

/**
 * Charges units that were sent already: tatcell_small_charge with 32-bit ticks that wrap.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit as tatcell_small32_check; a max_delay gives room above the burst.
 * @param now   your clock, ticks.
 * @param cost  units, at most the burst.
 * @retval 0 all is charged.
 * @retval TATCELL_SMALL32_NEVER, TATCELL_SMALL32_CONTENDED nothing is charged.
 * @retval others the debt reached its maximum; this many ticks of the charge did not fit.
 * Thread: any context. Cost: as tatcell_small32_check. Since 0.4.
 */
uint32_t tatcell_small32_charge(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                                uint32_t cost);

/**
 * Gives back units that a check or charge took: tatcell_small_refund with 32-bit ticks that wrap.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param then  `now` of the call that charged. Refund a charge once, and within TATCELL_SMALL32_SPAN.
 * @param cost  units, at most what was charged.
 * @retval TATCELL_SMALL32_CONTENDED nothing is changed; ask again.
 * @retval others ticks of debt removed, rounded down; 0 if all has drained.
 * Thread: any context. Cost: as tatcell_small32_check. Since 0.4.
 */
uint32_t tatcell_small32_refund(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                                uint32_t then, uint32_t cost);

/**
 * Cancels a reservation: tatcell_small_cancel with 32-bit ticks that wrap.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param then  `now` of the reservation. Cancel it once, and before it leaves.
 * @param wait  what the reservation returned. If that was 0, the part that has drained is not given back.
 * @param cost  units, as reserved.
 * @retval TATCELL_SMALL32_CONTENDED nothing is changed; ask again.
 * @retval others ticks of debt removed, rounded down; 0 if another one waits behind it.
 * Thread: any context. Cost: as tatcell_small32_check. Since 0.4.
 */
uint32_t tatcell_small32_cancel(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                                uint32_t then, uint32_t wait, uint32_t cost);

/**
 * Reads the debt: tatcell_small_debt with 32-bit ticks that wrap.
 *
 * @param cell  as tatcell_small32_check.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @return ticks until the full burst is available again, rounded up; 0 = it is.
 * Thread: any context. Cost: one load. Since 0.4.
 */
uint32_t tatcell_small32_debt(const tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now);

/**
 * Sets the debt: tatcell_small_set_debt with 32-bit ticks that wrap.
 *
 * @param cell  as tatcell_small32_check; a charge of another context at the same time is lost.
 * @param limit the cell's limit.
 * @param now   your clock, ticks.
 * @param ticks debt; cut to burst and max_delay together.
 * Thread: any context. Cost: one store. Since 0.4.
 */
void tatcell_small32_set_debt(tatcell_cell32_t *cell, const tatcell_small32_limit_t *limit, uint32_t now,
                              uint32_t ticks);

/**
 * Decides whether one place writes a log line or counts it. TATCELL_LOG_LIMITED makes the log and limit of a place.
 *
 * @param log      zeroed at first; one for each place.
 * @param limit    made by TATCELL_SMALL32_LIMIT.
 * @param now      your clock, 32-bit ticks that may wrap.
 * @param left_out if the call returns 1: gets the count of lines left out since the last written one.
 * @retval 1 write the line.
 * @retval 0 leave it out; it is counted.
 * Thread: any context; each line left out is in the count of one written line, or still in log->left_out. Cost: as
 * tatcell_small32_check_unit, and one addition. Since 0.4.
 */
TATCELL_SMALL_VERDICT
uint32_t tatcell_small_log(tatcell_small_log_t *log, const tatcell_small32_limit_t *limit, uint32_t now,
                           uint32_t *left_out);

/**
 * Reports whether the library's masked sections keep interrupts out of the calling code. Call it once at the start if
 * unprivileged code uses libtatcell-single.a: there the masking instruction does nothing.
 *
 * @retval 0 they do. (With libtatcell-critical.a the sections are your functions, and are not tested.)
 * @retval TATCELL_ERR_UNSUPPORTED they do not: the code is unprivileged. Use libtatcell-critical.a, or check from a
 * supervisor call.
 * Thread: any context. Cost: one masked section. Since 0.4.
 */
TATCELL_SMALL_VERDICT
int32_t tatcell_small_section_check(void);

#if defined(__GNUC__)
/**
 * Decides one log line of this place: at most `burst` lines at once, and `n` per `per` ticks. True: write it; *left_out
 * were left out since the last one. The place takes 8 bytes of RAM and 24 of flash.
 *
 *   uint32_t left_out;
 *   if (TATCELL_LOG_LIMITED(now_ms, 2, 1000, 3, &left_out))
 *       printf("queue full (%u more were not logged)\n", (unsigned)left_out);
 *
 * If a function is inlined or instantiated several times, each copy that the compiler makes has its own.
 */
#define TATCELL_LOG_LIMITED(now, n, per, burst, left_out)                                           \
    __extension__({                                                                                 \
        static const tatcell_small32_limit_t tatcell_limit_ = TATCELL_SMALL32_LIMIT(n, per, burst); \
        static tatcell_small_log_t tatcell_log_;                                                    \
        tatcell_small_log(&tatcell_log_, &tatcell_limit_, now, left_out) != 0;                      \
    })
#endif

/**
 * Write this function yourself for libtatcell-critical.a. It keeps out every context that uses the same cells
 * (interrupts, tasks, the other core), and returns what tatcell_critical_exit needs to undo it. Sections nest.
 *
 * @return the state before, for example PRIMASK.
 */
uint32_t tatcell_critical_enter(void);

/**
 * Write this function yourself for libtatcell-critical.a. It undoes the matching tatcell_critical_enter.
 *
 * @param state the value that tatcell_critical_enter returned.
 */
void tatcell_critical_exit(uint32_t state);

#ifdef __cplusplus
}
#endif

#endif /* TATCELL_SMALL_H */
