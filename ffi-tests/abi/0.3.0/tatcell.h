/* The header of release 0.3.0, without its comments. Never changed: programs were built with it. */
#ifndef TATCELL_H
#define TATCELL_H 
#if defined(__KERNEL__)
#include <linux/types.h>
#elif !defined(TATCELL_NO_STDINT) && !defined(__VMLINUX_H__)
#include <stddef.h>
#include <stdint.h>
#endif
#ifndef TATCELL_ALIGNED
#if defined(_MSC_VER)
#define TATCELL_ALIGNED(n) __declspec(align(n))
#else
#define TATCELL_ALIGNED(n) __attribute__((aligned(n)))
#endif
#endif
#ifndef TATCELL_API
#define TATCELL_API 
#endif
#ifndef TATCELL_NODISCARD
#if defined(__cplusplus)
#if __cplusplus >= 201703L
#define TATCELL_NODISCARD [[nodiscard]]
#endif
#elif defined(__STDC_VERSION__)
#if __STDC_VERSION__ >= 202311L
#define TATCELL_NODISCARD [[nodiscard]]
#endif
#endif
#ifndef TATCELL_NODISCARD
#define TATCELL_NODISCARD 
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif
#define TATCELL_PASS 0
#define TATCELL_NON_CONFORMING 1
#define TATCELL_NEVER 2
#define TATCELL_CONTENDED 3
#define TATCELL_END 4
#define TATCELL_ERR_NULL -1
#define TATCELL_ERR_ALIGN -2
#define TATCELL_ERR_SIZE -3
#define TATCELL_ERR_RATE -4
#define TATCELL_ERR_PERIOD -5
#define TATCELL_ERR_BURST -6
#define TATCELL_ERR_REPRESENT -7
#define TATCELL_ERR_HORIZON -8
#define TATCELL_ERR_LIMIT -9
#define TATCELL_ERR_FOREIGN -10
#define TATCELL_ERR_OPTION -11
#define TATCELL_ERR_SEED -12
#define TATCELL_ERR_SPAN -14
#define TATCELL_ERR_HANDLE -15
#define TATCELL_ERR_NOT_READY -16
#define TATCELL_ERR_VERSION -17
#define TATCELL_ERR_GEOMETRY -18
#define TATCELL_ERR_WRONG_SEED -19
#define TATCELL_ERR_MODE -20
#define TATCELL_ERR_HASH -21
#define TATCELL_ERR_COUNT -22
#define TATCELL_ERR_SOFT -23
#define TATCELL_ERR_HASH_UNAVAILABLE -24
#define TATCELL_ERR_SYSTEM -25
#define TATCELL_ERR_UNSUPPORTED -26
#define TATCELL_ERR_NAME -27
#define TATCELL_ERR_EXISTS -28
#define TATCELL_ERR_ABSENT -29
#define TATCELL_ERR_TOO_SMALL -30
#define TATCELL_ERR_TOO_LARGE -31
#define TATCELL_ERR_OVERLAP -32
#define TATCELL_ERR_KEY_LENGTH -33
#define TATCELL_ERR_BUFFER -34
#define TATCELL_ERR_TOO_FAST -35
#define TATCELL_ERR_WRONG_SIZE -36
#define TATCELL_ERR_FOLDER -37
#define TATCELL_ERR_ALGORITHM -38
#define TATCELL_ERR_PHASE -39
#define TATCELL_ERR_UNITS -40
#define TATCELL_ERR_INHERIT -41
#define TATCELL_ERR_UNTIL -42
#define TATCELL_ERR_FULL_SET -43
#define TATCELL_ERR_CLASH -44
#define TATCELL_ERR_HTTP_NAME -55
#define TATCELL_ERR_FREQUENCY -56
#define TATCELL_ERR_POLICIES -57
#define TATCELL_ERR_PEAK -50
#define TATCELL_ERR_SHORT_SPAN -51
#define TATCELL_ERR_LINKS -60
#define TATCELL_ERR_TWO_LIMITS -61
#define TATCELL_ERR_COST -62
#define TATCELL_ERR_LADDER -63
#define TATCELL_ERR_ADDRESS -64
#define TATCELL_ERR_FULL -65
#define TATCELL_ERR_BEHIND -66
#define TATCELL_ERR_WHEEL -67
#define TATCELL_ERR_TOO_FAR -68
TATCELL_API
const char *tatcell_strerror(int32_t code);
TATCELL_API
const char *tatcell_strerror_name(int32_t code);
#define TATCELL_VERSION 300
#define TATCELL_ABI_VERSION 1
#define TATCELL_LAYOUT_VERSION 2
TATCELL_API
uint32_t tatcell_version(void);
TATCELL_API
uint32_t tatcell_abi_version(void);
#define TATCELL_LIMIT_SIZE 128
#define TATCELL_LIMIT_ALIGN 8
typedef struct TATCELL_ALIGNED(8) tatcell_limit_t {
    uint64_t opaque[16];
} tatcell_limit_t;
#define TATCELL_ALGORITHM_GCRA 0
#define TATCELL_ALGORITHM_FIXED_WINDOW 1
#define TATCELL_ALGORITHM_SLIDING_COUNTER 2
#define TATCELL_ALGORITHM_QUOTA_LINEAR 3
#define TATCELL_ALGORITHM_DECAY 4
#define TATCELL_ALGORITHM_OVERRIDES 5
#define TATCELL_LIMIT_HEAL 1
#define TATCELL_LIMIT_SHADOW 2
#define TATCELL_LIMIT_RESOLUTION 4
#define TATCELL_LIMIT_STRICT_REFUNDS 8
#define TATCELL_LIMIT_ALIGNED 16
#define TATCELL_SKEW_NONE (~0ULL)
typedef struct tatcell_limit_spec_t {
    uint32_t size;
    uint32_t flags;
    uint64_t units;
    uint64_t period;
    uint64_t burst;
    uint64_t soft;
    uint64_t max_room;
    uint64_t max_delay;
    uint64_t max_debt;
    uint64_t penalty;
    uint64_t skew;
    int32_t resolution;
    uint32_t epoch;
    uint32_t algorithm;
    uint32_t reserved;
    uint64_t phase;
} tatcell_limit_spec_t;
#define TATCELL_LIMIT_SPEC_MIN 88
#define TATCELL_LIMIT_SPEC_INIT {sizeof(tatcell_limit_spec_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_limit_init(tatcell_limit_t *limit,
                           uint64_t units,
                           uint64_t period,
                           uint64_t burst);
TATCELL_API
int32_t tatcell_limit_init_rate(tatcell_limit_t *limit,
                                uint64_t units_per_second,
                                uint64_t ticks_per_second,
                                uint64_t burst);
TATCELL_API
int32_t tatcell_limit_init_spec(tatcell_limit_t *limit,
                                const tatcell_limit_spec_t *spec);
TATCELL_API
int32_t tatcell_limit_init_unlimited(tatcell_limit_t *limit);
TATCELL_API
int32_t tatcell_limit_init_token_bucket(tatcell_limit_t *limit,
                                        uint64_t tokens,
                                        uint64_t period,
                                        uint64_t capacity);
TATCELL_API
int32_t tatcell_limit_init_leaky_bucket(tatcell_limit_t *limit,
                                        uint64_t units,
                                        uint64_t period,
                                        uint64_t depth);
TATCELL_API
int32_t tatcell_limit_init_window(tatcell_limit_t *limit,
                                  uint64_t units,
                                  uint64_t period);
TATCELL_API
int32_t tatcell_limit_init_sliding(tatcell_limit_t *limit,
                                   uint64_t units,
                                   uint64_t period);
TATCELL_API
int32_t tatcell_limit_init_quota_linear(tatcell_limit_t *limit,
                                        uint64_t quota,
                                        uint64_t period);
TATCELL_API
int32_t tatcell_limit_init_decay(tatcell_limit_t *limit,
                                 uint64_t units,
                                 uint64_t half_life);
TATCELL_API
size_t tatcell_limit_size(void);
TATCELL_API
uint64_t tatcell_skew_none(void);
#define TATCELL_PERMIT_SIZE 64
typedef struct tatcell_permit_t {
    uint64_t tat;
    uint64_t stored;
    uint64_t tick;
    uint64_t generation;
    uint32_t epoch;
    uint32_t slot;
    uint64_t reserved[3];
} tatcell_permit_t;
#define TATCELL_TRACKED 0
#define TATCELL_UNTRACKED 1
#define TATCELL_INHERITED 2
#define TATCELL_FORGIVEN 3
#define TATCELL_FLAG_SOFT 1
#define TATCELL_FLAG_SHADOW 2
#define TATCELL_FLAG_ELASTIC 4
#define TATCELL_FLAG_BANNED 8
#define TATCELL_FLAG_EXEMPT 16
typedef struct tatcell_decision_t {
    uint32_t size;
    int32_t verdict;
    uint32_t flags;
    uint32_t tracking;
    uint32_t policy;
    uint32_t reserved;
    uint64_t cost;
    uint64_t burst;
    uint64_t remaining;
    uint64_t retry_after;
    uint64_t next_unit;
    uint64_t reset_after;
    uint64_t departure;
    tatcell_permit_t permit;
} tatcell_decision_t;
#define TATCELL_DECISION_MIN 144
#define TATCELL_DECISION_INIT {sizeof(tatcell_decision_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0, 0, 0, {0}}}
#define TATCELL_COUNTERS_SIZE 128
typedef struct tatcell_counters_t {
    uint64_t conforming;
    uint64_t soft;
    uint64_t shadow;
    uint64_t non_conforming;
    uint64_t never;
    uint64_t contended;
    uint64_t untracked;
    uint64_t inherited;
    uint64_t forgiven;
    uint64_t inserted;
    uint64_t reserved[6];
} tatcell_counters_t;
#define TATCELL_COUNTERS_INIT {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}}
TATCELL_API
int32_t tatcell_counters_add(tatcell_counters_t *counters,
                             const tatcell_counters_t *more);
TATCELL_API
size_t tatcell_permit_size(void);
TATCELL_API
size_t tatcell_counters_size(void);
#define TATCELL_CELL_SIZE 8
#define TATCELL_CELL_ALIGN 8
typedef struct TATCELL_ALIGNED(8) tatcell_cell_t {
    uint64_t word;
} tatcell_cell_t;
#define TATCELL_CELL_INIT {0}
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_cell_check(tatcell_cell_t *cell,
                           const tatcell_limit_t *limit,
                           uint64_t now,
                           uint64_t cost,
                           uint64_t *retry_after);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_cell_check_exclusive(tatcell_cell_t *cell,
                                     const tatcell_limit_t *limit,
                                     uint64_t now,
                                     uint64_t cost,
                                     uint64_t *retry_after);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_cell_check_ex(tatcell_cell_t *cell,
                              const tatcell_limit_t *limit,
                              uint64_t now,
                              uint64_t cost,
                              uint64_t room,
                              tatcell_decision_t *out,
                              tatcell_counters_t *counters);
TATCELL_API
int32_t tatcell_cell_peek(const tatcell_cell_t *cell,
                          const tatcell_limit_t *limit,
                          uint64_t now,
                          uint64_t cost,
                          tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_cell_charge(tatcell_cell_t *cell,
                            const tatcell_limit_t *limit,
                            uint64_t now,
                            uint64_t cost,
                            tatcell_decision_t *out);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_cell_reserve(tatcell_cell_t *cell,
                             const tatcell_limit_t *limit,
                             uint64_t now,
                             uint64_t cost,
                             tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_cell_refund(tatcell_cell_t *cell,
                            const tatcell_limit_t *limit,
                            uint64_t now,
                            const tatcell_permit_t *permit,
                            uint64_t *credited);
#define TATCELL_CHANGE_KEEP_TIME 0
#define TATCELL_CHANGE_KEEP_UNITS 1
#define TATCELL_CHANGE_RESET 2
TATCELL_API
int32_t tatcell_cell_change(tatcell_cell_t *cell,
                            const tatcell_limit_t *old_limit,
                            const tatcell_limit_t *new_limit,
                            uint64_t now,
                            uint32_t how);
TATCELL_API
int32_t tatcell_cell_reset(tatcell_cell_t *cell);
TATCELL_API
size_t tatcell_cell_size(void);
#define TATCELL_LEASE_SIZE 64
#define TATCELL_LEASE_ALIGN 8
typedef struct TATCELL_ALIGNED(8) tatcell_lease_t {
    uint32_t batch;
    uint32_t reserved;
    uint64_t opaque[7];
} tatcell_lease_t;
#define TATCELL_LEASE_INIT {0, 0, {0}}
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_lease_check(tatcell_lease_t *lease,
                            tatcell_cell_t *cell,
                            const tatcell_limit_t *limit,
                            uint64_t now,
                            uint64_t cost,
                            uint64_t *retry_after);
TATCELL_API
int32_t tatcell_lease_return(tatcell_lease_t *lease,
                             tatcell_cell_t *cell,
                             const tatcell_limit_t *limit,
                             uint64_t now,
                             uint64_t *given);
TATCELL_API
int32_t tatcell_lease_held(tatcell_lease_t *lease,
                           tatcell_cell_t *cell,
                           const tatcell_limit_t *limit,
                           uint64_t now,
                           uint64_t *units);
TATCELL_API
size_t tatcell_lease_size(void);
#define TATCELL_SLIDING_LOG_SIZE 64
#define TATCELL_SLIDING_LOG_ALIGN 8
typedef struct TATCELL_ALIGNED(8) tatcell_sliding_log_t {
    uint64_t opaque[8];
} tatcell_sliding_log_t;
TATCELL_API
int32_t tatcell_sliding_log_init(tatcell_sliding_log_t *log,
                                 tatcell_cell_t *stamps,
                                 size_t count,
                                 uint64_t window,
                                 uint64_t skew);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_sliding_log_check(const tatcell_sliding_log_t *log,
                                  uint64_t now,
                                  uint64_t *retry_after);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_sliding_log_check_exclusive(const tatcell_sliding_log_t *log,
                                            uint64_t now,
                                            uint64_t *retry_after);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_sliding_log_check_ex(const tatcell_sliding_log_t *log,
                                     uint64_t now,
                                     tatcell_decision_t *out,
                                     tatcell_counters_t *counters);
TATCELL_API
int32_t tatcell_sliding_log_peek(const tatcell_sliding_log_t *log,
                                 uint64_t now,
                                 tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_sliding_log_refund(const tatcell_sliding_log_t *log,
                                   uint64_t now,
                                   const tatcell_permit_t *permit,
                                   uint64_t *credited);
TATCELL_API
int32_t tatcell_sliding_log_reset(const tatcell_sliding_log_t *log);
TATCELL_API
size_t tatcell_sliding_log_size(void);
#define TATCELL_TABLE_HANDLE_SIZE 512
#define TATCELL_TABLE_HANDLE_ALIGN 8
#define TATCELL_TABLE_MEMORY_ALIGN 64
#define TATCELL_TABLE_BYTES(slots) \
    (128 * sizeof(char) + ((slots) < 16 ? sizeof(char) : ((slots) + 15 * sizeof(char)) / 16) * 128)
typedef struct TATCELL_ALIGNED(8) tatcell_table_t {
    uint64_t opaque[64];
} tatcell_table_t;
TATCELL_API
size_t tatcell_table_bytes(uint64_t slots);
TATCELL_API
size_t tatcell_table_size_for(uint64_t slots_busy,
                              uint64_t target_ppb);
TATCELL_API
uint64_t tatcell_table_full_ppb(uint64_t load_ppm);
#define TATCELL_TABLE_EXCLUSIVE 1
#define TATCELL_TABLE_RESOLUTION 2
#define TATCELL_TABLE_POLICY 4
#define TATCELL_FULL_ADMIT 0
#define TATCELL_FULL_INHERIT 1
#define TATCELL_FULL_DENY 2
#define TATCELL_FULL_SAMPLED 3
#define TATCELL_HASH_SIPHASH13 0
#define TATCELL_HASH_CALLER 1
#define TATCELL_HASH_AES 2
TATCELL_API
int32_t tatcell_hash_available(uint32_t hash);
typedef struct tatcell_table_options_t {
    uint32_t size;
    uint32_t flags;
    uint32_t policy;
    uint32_t hash;
    uint32_t tag_bits;
    int32_t resolution;
    const tatcell_limit_spec_t *fastest;
    const tatcell_limit_spec_t *slowest;
    const uint8_t *seed;
    const void *reserved;
    uint64_t skew;
    uint64_t claim_lifetime;
    uint64_t tick_hz;
    uint64_t guard;
    uint64_t overrides;
} tatcell_table_options_t;
#define TATCELL_TABLE_OPTIONS_MIN (48 + 4 * sizeof(void *))
#define TATCELL_TABLE_OPTIONS_INIT {sizeof(tatcell_table_options_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
typedef struct tatcell_attach_options_t {
    uint32_t size;
    uint32_t flags;
    uint32_t policy;
    uint32_t reserved;
    const uint8_t *seed;
    const void *reserved_pointer;
    uint64_t tick_hz;
} tatcell_attach_options_t;
#define TATCELL_ATTACH_OPTIONS_MIN (24 + 2 * sizeof(void *))
#define TATCELL_ATTACH_OPTIONS_INIT {sizeof(tatcell_attach_options_t), 0, 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_table_init(tatcell_table_t *table,
                           void *memory,
                           size_t bytes,
                           const tatcell_table_options_t *options);
TATCELL_API
int32_t tatcell_table_attach(tatcell_table_t *table,
                             void *memory,
                             size_t bytes,
                             const tatcell_attach_options_t *options);
TATCELL_API
int32_t tatcell_table_save(const tatcell_table_t *table,
                           uint64_t now,
                           void *image,
                           size_t bytes,
                           size_t *used);
TATCELL_API
int32_t tatcell_table_restore(tatcell_table_t *table,
                              void *memory,
                              size_t bytes,
                              const void *image,
                              size_t image_bytes,
                              const tatcell_attach_options_t *options,
                              int64_t clock_offset);
TATCELL_API
int32_t tatcell_limit_init_table(tatcell_limit_t *limit,
                                 const tatcell_table_t *table,
                                 const tatcell_limit_spec_t *spec);
TATCELL_API
int32_t tatcell_limit_init_unlimited_table(tatcell_limit_t *limit,
                                           const tatcell_table_t *table);
TATCELL_API
size_t tatcell_table_handle_size(void);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_check(const tatcell_table_t *table,
                            const tatcell_limit_t *limit,
                            uint64_t now,
                            const void *key,
                            size_t key_len,
                            uint64_t cost,
                            uint64_t *retry_after);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_check_hash(const tatcell_table_t *table,
                                 const tatcell_limit_t *limit,
                                 uint64_t now,
                                 uint64_t hash,
                                 uint64_t cost,
                                 uint64_t *retry_after);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_check_ex(const tatcell_table_t *table,
                               const tatcell_limit_t *limit,
                               uint64_t now,
                               const void *key,
                               size_t key_len,
                               uint64_t cost,
                               uint64_t room,
                               tatcell_decision_t *out,
                               tatcell_counters_t *counters);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_check_ex_hash(const tatcell_table_t *table,
                                    const tatcell_limit_t *limit,
                                    uint64_t now,
                                    uint64_t hash,
                                    uint64_t cost,
                                    uint64_t room,
                                    tatcell_decision_t *out,
                                    tatcell_counters_t *counters);
TATCELL_API
int32_t tatcell_table_peek(const tatcell_table_t *table,
                           const tatcell_limit_t *limit,
                           uint64_t now,
                           const void *key,
                           size_t key_len,
                           uint64_t cost,
                           tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_table_peek_hash(const tatcell_table_t *table,
                                const tatcell_limit_t *limit,
                                uint64_t now,
                                uint64_t hash,
                                uint64_t cost,
                                tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_table_charge(const tatcell_table_t *table,
                             const tatcell_limit_t *limit,
                             uint64_t now,
                             const void *key,
                             size_t key_len,
                             uint64_t cost,
                             tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_table_charge_hash(const tatcell_table_t *table,
                                  const tatcell_limit_t *limit,
                                  uint64_t now,
                                  uint64_t hash,
                                  uint64_t cost,
                                  tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_table_charge_ex(const tatcell_table_t *table,
                                const tatcell_limit_t *limit,
                                uint64_t now,
                                const void *key,
                                size_t key_len,
                                uint64_t cost,
                                tatcell_decision_t *out,
                                tatcell_counters_t *counters);
TATCELL_API
int32_t tatcell_table_charge_ex_hash(const tatcell_table_t *table,
                                     const tatcell_limit_t *limit,
                                     uint64_t now,
                                     uint64_t hash,
                                     uint64_t cost,
                                     tatcell_decision_t *out,
                                     tatcell_counters_t *counters);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_reserve(const tatcell_table_t *table,
                              const tatcell_limit_t *limit,
                              uint64_t now,
                              const void *key,
                              size_t key_len,
                              uint64_t cost,
                              tatcell_decision_t *out);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_reserve_hash(const tatcell_table_t *table,
                                   const tatcell_limit_t *limit,
                                   uint64_t now,
                                   uint64_t hash,
                                   uint64_t cost,
                                   tatcell_decision_t *out);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_reserve_ex(const tatcell_table_t *table,
                                 const tatcell_limit_t *limit,
                                 uint64_t now,
                                 const void *key,
                                 size_t key_len,
                                 uint64_t cost,
                                 tatcell_decision_t *out,
                                 tatcell_counters_t *counters);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_reserve_ex_hash(const tatcell_table_t *table,
                                      const tatcell_limit_t *limit,
                                      uint64_t now,
                                      uint64_t hash,
                                      uint64_t cost,
                                      tatcell_decision_t *out,
                                      tatcell_counters_t *counters);
TATCELL_API
int32_t tatcell_table_refund(const tatcell_table_t *table,
                             const tatcell_limit_t *limit,
                             uint64_t now,
                             const void *key,
                             size_t key_len,
                             const tatcell_permit_t *permit,
                             uint64_t *credited);
TATCELL_API
int32_t tatcell_table_refund_hash(const tatcell_table_t *table,
                                  const tatcell_limit_t *limit,
                                  uint64_t now,
                                  uint64_t hash,
                                  const tatcell_permit_t *permit,
                                  uint64_t *credited);
TATCELL_API
int32_t tatcell_table_reset(const tatcell_table_t *table,
                            uint64_t now,
                            const void *key,
                            size_t key_len);
TATCELL_API
int32_t tatcell_table_reset_hash(const tatcell_table_t *table,
                                 uint64_t now,
                                 uint64_t hash);
TATCELL_API
int32_t tatcell_table_hash(const tatcell_table_t *table,
                           const void *key,
                           size_t key_len,
                           uint64_t *hash);
#define TATCELL_BURST_MAX 64
typedef struct tatcell_burst_t {
    uint32_t size;
    uint32_t flags;
    uint32_t count;
    uint32_t decision_size;
    uint64_t now;
    uint64_t pass;
    uint64_t prepared;
    int64_t stride;
    const tatcell_limit_t *limit;
    const tatcell_limit_t *const *limits;
    const void *keys;
    const void *const *key_pointers;
    const uint64_t *hashes;
    const size_t *key_lens;
    size_t key_len;
    const uint32_t *costs;
    tatcell_decision_t *decisions;
    tatcell_counters_t *counters;
    uint64_t scratch[64];
} tatcell_burst_t;
#define TATCELL_BURST_MIN (560 + 10 * sizeof(void *))
#define TATCELL_BURST_INIT {sizeof(tatcell_burst_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}}
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_check_burst(const tatcell_table_t *table,
                                  tatcell_burst_t *burst,
                                  tatcell_burst_t *next);
TATCELL_API
int32_t tatcell_table_prefetch(const tatcell_table_t *table,
                               const uint64_t *hashes,
                               uint32_t count);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_check_pairs(const tatcell_table_t *table,
                                  tatcell_burst_t *burst,
                                  const tatcell_limit_t *second,
                                  const uint32_t *second_costs,
                                  tatcell_burst_t *next);
TATCELL_API
uint64_t tatcell_hash_second(uint64_t hash);
TATCELL_API
int32_t tatcell_table_sweep(const tatcell_table_t *table,
                            uint64_t now,
                            uint64_t from,
                            uint64_t count,
                            uint64_t *next);
#define TATCELL_STATS_MIN 104
typedef struct tatcell_stats_t {
    uint32_t size;
    uint32_t load_ppm;
    uint64_t slots;
    uint64_t live;
    uint64_t claims;
    uint64_t expired;
    uint64_t debt[8];
} tatcell_stats_t;
#define TATCELL_STATS_INIT {sizeof(tatcell_stats_t), 0, 0, 0, 0, 0, {0}}
TATCELL_API
int32_t tatcell_table_stats(const tatcell_table_t *table,
                            uint64_t now,
                            tatcell_stats_t *out);
#define TATCELL_SLOT_SIZE 64
typedef struct tatcell_slot_t {
    uint64_t number;
    uint64_t reset_after;
    uint32_t tag;
    uint32_t reserved;
    uint64_t more[5];
} tatcell_slot_t;
TATCELL_API
int32_t tatcell_table_next(const tatcell_table_t *table,
                           uint64_t now,
                           uint64_t from,
                           tatcell_slot_t *out);
TATCELL_API
int32_t tatcell_table_top(const tatcell_table_t *table,
                          uint64_t now,
                          tatcell_slot_t *top,
                          uint32_t count,
                          uint32_t *found);
TATCELL_API
int32_t tatcell_table_may_be(const tatcell_table_t *table,
                             const tatcell_slot_t *slot,
                             uint64_t hash);
TATCELL_API
size_t tatcell_slot_size(void);
#define TATCELL_MIGRATED_MIN 48
typedef struct tatcell_migrated_t {
    uint32_t size;
    uint32_t reserved;
    uint64_t copied;
    uint64_t merged;
    uint64_t dropped;
    uint64_t clamped;
    uint64_t opened;
} tatcell_migrated_t;
#define TATCELL_MIGRATED_INIT {sizeof(tatcell_migrated_t), 0, 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_table_migrate(tatcell_table_t *table,
                              void *memory,
                              size_t bytes,
                              const tatcell_table_options_t *options,
                              const tatcell_table_t *from,
                              uint64_t now,
                              tatcell_migrated_t *migrated);
TATCELL_API
int32_t tatcell_table_migrate_foresee(const tatcell_table_t *from,
                                      size_t bytes,
                                      const tatcell_table_options_t *options,
                                      uint64_t now,
                                      tatcell_migrated_t *migrated);
#define TATCELL_LIMIT_INFO_MIN 80
typedef struct tatcell_limit_info_t {
    uint32_t size;
    uint32_t flags;
    uint32_t bits;
    int32_t resolution;
    uint64_t units;
    uint64_t period;
    uint64_t burst;
    uint64_t emission_q;
    uint64_t horizon;
    uint64_t skew;
    uint64_t span;
    uint64_t rate_error_ppb;
    uint32_t algorithm;
    uint32_t count_bits;
} tatcell_limit_info_t;
#define TATCELL_LIMIT_INFO_INIT {sizeof(tatcell_limit_info_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_limit_info(const tatcell_limit_t *limit,
                           tatcell_limit_info_t *info);
#define TATCELL_TABLE_INFO_MIN 112
typedef struct tatcell_table_info_t {
    uint32_t size;
    uint32_t flags;
    uint32_t policy;
    uint32_t hash;
    uint32_t tag_bits;
    int32_t resolution;
    uint64_t slots;
    uint64_t lines;
    uint64_t image_bytes;
    uint64_t horizon;
    uint64_t skew;
    uint64_t window;
    uint64_t span;
    uint64_t sweep_interval;
    uint64_t claim_lifetime;
    uint64_t tick_hz;
    uint64_t generation;
    uint32_t algorithm;
    uint32_t count_bits;
    uint64_t guard;
} tatcell_table_info_t;
#define TATCELL_TABLE_INFO_INIT {sizeof(tatcell_table_info_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_table_info(const tatcell_table_t *table, tatcell_table_info_t *info);
#define TATCELL_LIMIT_NUMBERS_MIN 104
typedef struct tatcell_limit_numbers_t {
    uint32_t size;
    uint32_t flags;
    uint32_t bits;
    uint32_t shift_left;
    uint32_t shift_right;
    uint32_t epoch;
    uint64_t emission_q;
    uint64_t burst_q;
    uint64_t horizon_q;
    uint64_t window_q;
    uint64_t soft_q;
    uint64_t delay_q;
    uint64_t debt_q;
    uint64_t penalty_q;
    uint64_t burst;
    uint64_t room;
} tatcell_limit_numbers_t;
#define TATCELL_LIMIT_NUMBERS_INIT {sizeof(tatcell_limit_numbers_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_limit_export(const tatcell_limit_t *limit,
                             tatcell_limit_numbers_t *numbers);
#define TATCELL_TABLE_NUMBERS_MIN 80
typedef struct tatcell_table_numbers_t {
    uint32_t size;
    uint32_t flags;
    uint32_t policy;
    uint32_t hash;
    uint32_t shift_left;
    uint32_t shift_right;
    uint32_t lines;
    uint32_t header_bytes;
    uint64_t mask;
    uint64_t horizon_q;
    uint64_t window_q;
    uint64_t claim_lifetime_q;
    uint64_t grace_q;
    uint64_t generation;
} tatcell_table_numbers_t;
#define TATCELL_TABLE_NUMBERS_INIT {sizeof(tatcell_table_numbers_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_table_export(const tatcell_table_t *table,
                             tatcell_table_numbers_t *numbers);
#define TATCELL_CELL32_SIZE 4
#define TATCELL_CELL32_ALIGN 4
typedef struct TATCELL_ALIGNED(4) tatcell_cell32_t {
    uint32_t word;
} tatcell_cell32_t;
#define TATCELL_CELL32_INIT {0}
TATCELL_API
int32_t tatcell_limit32_init(tatcell_limit_t *limit,
                             uint64_t units,
                             uint64_t period,
                             uint64_t burst);
TATCELL_API
int32_t tatcell_limit32_init_rate(tatcell_limit_t *limit,
                                  uint64_t units_per_second,
                                  uint64_t ticks_per_second,
                                  uint64_t burst);
TATCELL_API
int32_t tatcell_limit32_init_spec(tatcell_limit_t *limit,
                                  const tatcell_limit_spec_t *spec);
TATCELL_API
int32_t tatcell_limit32_init_unlimited(tatcell_limit_t *limit);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_cell32_check(tatcell_cell32_t *cell,
                             const tatcell_limit_t *limit,
                             uint64_t now,
                             uint32_t cost,
                             uint64_t *retry_after);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_cell32_check_ex(tatcell_cell32_t *cell,
                                const tatcell_limit_t *limit,
                                uint64_t now,
                                uint32_t cost,
                                uint64_t room,
                                tatcell_decision_t *out,
                                tatcell_counters_t *counters);
TATCELL_API
int32_t tatcell_cell32_peek(const tatcell_cell32_t *cell,
                            const tatcell_limit_t *limit,
                            uint64_t now,
                            uint32_t cost,
                            tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_cell32_charge(tatcell_cell32_t *cell,
                              const tatcell_limit_t *limit,
                              uint64_t now,
                              uint32_t cost,
                              tatcell_decision_t *out);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_cell32_reserve(tatcell_cell32_t *cell,
                               const tatcell_limit_t *limit,
                               uint64_t now,
                               uint32_t cost,
                               tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_cell32_refund(tatcell_cell32_t *cell,
                              const tatcell_limit_t *limit,
                              uint64_t now,
                              const tatcell_permit_t *permit,
                              uint64_t *credited);
TATCELL_API
int32_t tatcell_cell32_change(tatcell_cell32_t *cell,
                              const tatcell_limit_t *old_limit,
                              const tatcell_limit_t *new_limit,
                              uint64_t now,
                              uint32_t how);
TATCELL_API
int32_t tatcell_cell32_reset(tatcell_cell32_t *cell);
TATCELL_API
size_t tatcell_cell32_size(void);
#define TATCELL_METER_SIZE 8
#define TATCELL_METER_ALIGN 8
#define TATCELL_METER_PARAMS_SIZE 192
#define TATCELL_METER_PARAMS_ALIGN 8
typedef struct TATCELL_ALIGNED(8) tatcell_meter_t {
    uint64_t word;
} tatcell_meter_t;
#define TATCELL_METER_INIT {0}
typedef struct TATCELL_ALIGNED(8) tatcell_meter_params_t {
    uint64_t opaque[24];
} tatcell_meter_params_t;
#define TATCELL_METER_RFC2697 2697
#define TATCELL_METER_RFC2698 2698
#define TATCELL_METER_RFC4115 4115
#define TATCELL_METER_COUPLED 1
typedef struct tatcell_meter_spec_t {
    uint32_t size;
    uint32_t flags;
    uint32_t kind;
    uint32_t reserved;
    uint64_t cir;
    uint64_t cbs;
    uint64_t rate2;
    uint64_t burst2;
    uint64_t tick_hz;
    uint64_t span;
    uint64_t skew;
} tatcell_meter_spec_t;
#define TATCELL_METER_SPEC_MIN 72
#define TATCELL_METER_SPEC_INIT {sizeof(tatcell_meter_spec_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_meter_params_init(tatcell_meter_params_t *params,
                                  const tatcell_meter_spec_t *spec);
#define TATCELL_GREEN 0
#define TATCELL_YELLOW 1
#define TATCELL_RED 2
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_meter_check(tatcell_meter_t *meter,
                            const tatcell_meter_params_t *params,
                            uint64_t now,
                            uint64_t cost,
                            uint32_t pre,
                            uint32_t *colour);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_meter_check_exclusive(tatcell_meter_t *meter,
                                      const tatcell_meter_params_t *params,
                                      uint64_t now,
                                      uint64_t cost,
                                      uint32_t pre,
                                      uint32_t *colour);
TATCELL_API
int32_t tatcell_meter_peek(const tatcell_meter_t *meter,
                           const tatcell_meter_params_t *params,
                           uint64_t now,
                           uint64_t cost,
                           uint32_t pre,
                           uint32_t *colour);
TATCELL_API
int32_t tatcell_meter_sweep(tatcell_meter_t *meter,
                            const tatcell_meter_params_t *params,
                            uint64_t now,
                            uint32_t *swept);
TATCELL_API
int32_t tatcell_meter_reset(tatcell_meter_t *meter);
#define TATCELL_METER_INFO_MIN 136
typedef struct tatcell_meter_info_t {
    uint32_t size;
    uint32_t flags;
    uint32_t kind;
    uint32_t word_bits;
    int32_t resolution;
    uint32_t committed_k;
    uint32_t second_k;
    uint32_t reserved;
    uint64_t cir;
    uint64_t cbs;
    uint64_t rate2;
    uint64_t burst2;
    uint64_t tick_hz;
    uint64_t committed_m;
    uint64_t second_m;
    uint64_t horizon;
    uint64_t skew;
    uint64_t span;
    uint64_t sweep_interval;
    uint64_t committed_rounding_ppb;
    uint64_t second_rounding_ppb;
} tatcell_meter_info_t;
#define TATCELL_METER_INFO_INIT \
    {sizeof(tatcell_meter_info_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_meter_params_info(const tatcell_meter_params_t *params,
                                  tatcell_meter_info_t *info);
TATCELL_API
size_t tatcell_meter_size(void);
TATCELL_API
size_t tatcell_meter_params_size(void);
typedef struct tatcell_mark_t {
    uint32_t size;
    uint32_t flags;
    uint32_t kind;
    uint32_t reserved;
    const tatcell_limit_t *committed;
    const tatcell_limit_t *second;
} tatcell_mark_t;
#define TATCELL_MARK_MIN (16 + 2 * sizeof(void *))
#define TATCELL_MARK_INIT {sizeof(tatcell_mark_t), 0, 0, 0, 0, 0}
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_mark(const tatcell_table_t *table,
                           const tatcell_mark_t *mark,
                           uint64_t now,
                           const void *key,
                           size_t key_len,
                           uint64_t cost,
                           uint32_t pre,
                           uint32_t *colour);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_mark_hash(const tatcell_table_t *table,
                                const tatcell_mark_t *mark,
                                uint64_t now,
                                uint64_t hash,
                                uint64_t cost,
                                uint32_t pre,
                                uint32_t *colour);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_mark_burst(const tatcell_table_t *table,
                                 tatcell_burst_t *burst,
                                 const tatcell_mark_t *mark,
                                 const uint8_t *pre,
                                 uint8_t *colours,
                                 uint64_t *counts,
                                 tatcell_burst_t *next);
#define TATCELL_LOG_SIZE 8
#define TATCELL_LOG_ALIGN 8
#define TATCELL_LOG_MOST 1073741824
typedef struct TATCELL_ALIGNED(8) tatcell_log_t {
    uint64_t word;
} tatcell_log_t;
#define TATCELL_LOG_INIT {0}
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_log_check(tatcell_log_t *log,
                          uint64_t interval,
                          uint64_t now,
                          uint32_t *left_out);
TATCELL_API
int32_t tatcell_log_take(tatcell_log_t *log,
                         uint32_t *left_out);
TATCELL_API
size_t tatcell_log_size(void);
#define TATCELL_SLIP_SIZE 8
#define TATCELL_SLIP_ALIGN 8
typedef struct TATCELL_ALIGNED(8) tatcell_slip_t {
    uint64_t word;
} tatcell_slip_t;
#define TATCELL_SLIP_INIT {0}
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_slip_check(tatcell_slip_t *slip,
                           uint32_t n);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_slip_check_exclusive(tatcell_slip_t *slip,
                                     uint32_t n);
TATCELL_API
size_t tatcell_slip_size(void);
#define TATCELL_HTTP_RATELIMIT 1
#define TATCELL_HTTP_RATELIMIT_POLICY 2
#define TATCELL_HTTP_RETRY_AFTER 4
#define TATCELL_HTTP_X_LIMIT 8
#define TATCELL_HTTP_X_REMAINING 16
#define TATCELL_HTTP_X_RESET 32
#define TATCELL_HTTP_ALL 63
#define TATCELL_HTTP_POLICIES_MAX 8
typedef struct tatcell_http_policy_t {
    uint32_t size;
    uint32_t flags;
    const char *name;
    const char *unit;
    const void *partition;
    size_t partition_len;
    const tatcell_limit_t *limit;
    const tatcell_decision_t *decision;
    uint64_t quota;
    uint64_t window;
} tatcell_http_policy_t;
#define TATCELL_HTTP_POLICY_MIN (24 + 6 * sizeof(void *))
#define TATCELL_HTTP_POLICY_INIT {sizeof(tatcell_http_policy_t), 0, 0, 0, 0, 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_http_value(const tatcell_http_policy_t *policies,
                           uint32_t count,
                           uint64_t ticks_per_second,
                           uint32_t field,
                           char *buffer,
                           size_t bytes);
TATCELL_API
int32_t tatcell_http_lines(const tatcell_http_policy_t *policies,
                           uint32_t count,
                           uint64_t ticks_per_second,
                           uint32_t fields,
                           char *buffer,
                           size_t bytes);
#define TATCELL_CHAIN_MAX 8
#define TATCELL_LINK_HASH 1
#define TATCELL_LINK_OVERRIDES 2
typedef struct tatcell_link_t {
    uint32_t size;
    uint32_t flags;
    uint64_t cost;
    uint64_t extra;
    uint64_t hash;
    const tatcell_limit_t *limit;
    tatcell_cell_t *cell;
    tatcell_cell32_t *cell32;
    const tatcell_table_t *table;
    const void *key;
    size_t key_len;
} tatcell_link_t;
#define TATCELL_LINK_MIN (32 + 6 * sizeof(void *))
#define TATCELL_LINK_INIT {sizeof(tatcell_link_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
typedef struct tatcell_chain_t {
    uint32_t size;
    uint32_t flags;
    uint32_t count;
    uint32_t link_size;
    uint32_t decision_size;
    uint32_t reserved;
    const tatcell_link_t *links;
    tatcell_permit_t *permits;
    tatcell_decision_t *decisions;
    tatcell_counters_t *counters;
} tatcell_chain_t;
#define TATCELL_CHAIN_MIN (24 + 4 * sizeof(void *))
#define TATCELL_CHAIN_INIT {sizeof(tatcell_chain_t), 0, 0, 0, 0, 0, 0, 0, 0, 0}
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_chain_check(const tatcell_chain_t *chain,
                            uint64_t now,
                            tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_chain_peek(const tatcell_chain_t *chain,
                           uint64_t now,
                           tatcell_decision_t *out);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_chain_reserve(const tatcell_chain_t *chain,
                              uint64_t now,
                              tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_chain_refund(const tatcell_chain_t *chain,
                             uint64_t now);
#define TATCELL_LADDER_SIZE 2304
#define TATCELL_LADDER_ALIGN 8
typedef struct TATCELL_ALIGNED(8) tatcell_ladder_t {
    uint64_t opaque[288];
} tatcell_ladder_t;
typedef struct tatcell_rung_t {
    uint32_t bits;
    uint32_t multiplier;
} tatcell_rung_t;
typedef struct tatcell_ladder_spec_t {
    uint32_t size;
    uint32_t flags;
    uint32_t v4_count;
    uint32_t v6_count;
    const tatcell_rung_t *v4;
    const tatcell_rung_t *v6;
} tatcell_ladder_spec_t;
#define TATCELL_LADDER_SPEC_MIN (16 + 2 * sizeof(void *))
#define TATCELL_LADDER_SPEC_INIT {sizeof(tatcell_ladder_spec_t), 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_ladder_table_specs(const tatcell_limit_spec_t *spec,
                                   const tatcell_ladder_spec_t *rungs,
                                   tatcell_limit_spec_t *fastest,
                                   tatcell_limit_spec_t *slowest);
TATCELL_API
int32_t tatcell_ladder_init(tatcell_ladder_t *ladder,
                            const tatcell_table_t *table,
                            const tatcell_limit_spec_t *spec,
                            const tatcell_ladder_spec_t *rungs);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_ladder_check(const tatcell_ladder_t *ladder,
                             const tatcell_table_t *table,
                             uint64_t now,
                             const void *address,
                             size_t address_len,
                             uint64_t cost,
                             tatcell_decision_t *out,
                             tatcell_permit_t *permits,
                             tatcell_counters_t *counters);
TATCELL_API
int32_t tatcell_ladder_peek(const tatcell_ladder_t *ladder,
                            const tatcell_table_t *table,
                            uint64_t now,
                            const void *address,
                            size_t address_len,
                            uint64_t cost,
                            tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_ladder_refund(const tatcell_ladder_t *ladder,
                              const tatcell_table_t *table,
                              uint64_t now,
                              const void *address,
                              size_t address_len,
                              tatcell_permit_t *permits);
TATCELL_API
int32_t tatcell_ladder_rung(const tatcell_ladder_t *ladder,
                            const void *address,
                            size_t address_len,
                            uint32_t policy,
                            tatcell_rung_t *rung);
TATCELL_API
int32_t tatcell_address_canonical(const void *address,
                                  size_t address_len,
                                  uint8_t *canonical,
                                  size_t *canonical_len);
TATCELL_API
size_t tatcell_ladder_size(void);
#define TATCELL_SHAPER_SIZE 256
#define TATCELL_SHAPER_ALIGN 8
#define TATCELL_WAITING_SIZE 24
#define TATCELL_SHAPER_BYTES(slots,handles) \
    (8 * sizeof(char) * ((slots) / 64 + (slots)) + 24 * sizeof(char) * (handles))
typedef struct TATCELL_ALIGNED(8) tatcell_shaper_t {
    uint64_t opaque[32];
} tatcell_shaper_t;
typedef struct tatcell_waiting_t {
    uint64_t handle;
    uint64_t departure;
    uint32_t level;
    uint32_t reserved;
} tatcell_waiting_t;
#define TATCELL_GROUP_SIZE 8
#define TATCELL_GROUP_ALIGN 8
typedef struct TATCELL_ALIGNED(8) tatcell_group_t {
    uint64_t word;
} tatcell_group_t;
#define TATCELL_GROUP_INIT {0}
TATCELL_API
size_t tatcell_shaper_bytes(uint32_t slots, uint32_t handles);
TATCELL_API
int32_t tatcell_shaper_init(tatcell_shaper_t *shaper,
                            void *memory,
                            size_t bytes,
                            uint32_t slots,
                            uint64_t granularity,
                            uint64_t now);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_shaper_submit(tatcell_shaper_t *shaper,
                              uint64_t now,
                              const tatcell_link_t *link,
                              tatcell_group_t *group,
                              uint64_t handle,
                              tatcell_decision_t *out);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_shaper_submit_chain(tatcell_shaper_t *shaper,
                                    uint64_t now,
                                    const tatcell_chain_t *chain,
                                    uint64_t handle,
                                    tatcell_decision_t *out);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_shaper_forward(tatcell_shaper_t *shaper,
                               uint64_t now,
                               const tatcell_waiting_t *waiting,
                               const tatcell_link_t *link,
                               tatcell_decision_t *out);
TATCELL_API
int32_t tatcell_shaper_insert(tatcell_shaper_t *shaper,
                              uint64_t now,
                              const tatcell_waiting_t *waiting);
TATCELL_API
int32_t tatcell_shaper_release(tatcell_shaper_t *shaper,
                               uint64_t now,
                               tatcell_waiting_t *due,
                               uint32_t most,
                               uint32_t *count);
TATCELL_API
int32_t tatcell_shaper_take(tatcell_shaper_t *shaper,
                            tatcell_waiting_t *first);
TATCELL_API
int32_t tatcell_shaper_next(tatcell_shaper_t *shaper,
                            uint64_t *departure);
typedef struct tatcell_shaper_info_t {
    uint32_t size;
    uint32_t reserved;
    uint64_t waiting;
    uint64_t capacity;
    uint64_t granularity;
    uint64_t horizon;
} tatcell_shaper_info_t;
#define TATCELL_SHAPER_INFO_MIN 40
#define TATCELL_SHAPER_INFO_INIT {sizeof(tatcell_shaper_info_t), 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_shaper_info(tatcell_shaper_t *shaper, tatcell_shaper_info_t *info);
TATCELL_API
size_t tatcell_shaper_size(void);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_group_reserve(tatcell_group_t *group,
                              uint64_t now,
                              const tatcell_link_t *link,
                              tatcell_decision_t *out);
TATCELL_API
size_t tatcell_group_size(void);
#define TATCELL_LEAKY_QUEUE_SIZE 256
#define TATCELL_LEAKY_QUEUE_ALIGN 8
#define TATCELL_LEAKY_QUEUE_BYTES(handles) (16 * sizeof(char) * (handles))
typedef struct TATCELL_ALIGNED(8) tatcell_leaky_queue_t {
    uint64_t opaque[32];
} tatcell_leaky_queue_t;
TATCELL_API
size_t tatcell_leaky_queue_bytes(uint32_t handles);
TATCELL_API
int32_t tatcell_leaky_queue_init(tatcell_leaky_queue_t *queue,
                                 void *memory,
                                 size_t bytes,
                                 const tatcell_limit_t *limit,
                                 uint64_t now);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_leaky_queue_push(tatcell_leaky_queue_t *queue,
                                 uint64_t now,
                                 uint64_t cost,
                                 uint64_t handle,
                                 uint64_t *departure,
                                 uint64_t *retry_after);
TATCELL_API
int32_t tatcell_leaky_queue_pop(tatcell_leaky_queue_t *queue,
                                uint64_t now,
                                uint64_t *handle);
TATCELL_API
int32_t tatcell_leaky_queue_take(tatcell_leaky_queue_t *queue,
                                 uint64_t *handle);
TATCELL_API
int32_t tatcell_leaky_queue_next(tatcell_leaky_queue_t *queue, uint64_t *departure);
TATCELL_API
int32_t tatcell_leaky_queue_count(tatcell_leaky_queue_t *queue,
                                  size_t *waiting,
                                  size_t *capacity);
TATCELL_API
size_t tatcell_leaky_queue_size(void);
#define TATCELL_OVERRIDE_NONE 0
#define TATCELL_OVERRIDE_BAN 1
#define TATCELL_OVERRIDE_EXEMPT 2
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_ban(const tatcell_table_t *table,
                          uint64_t now,
                          const void *key,
                          size_t key_len,
                          uint64_t until);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_ban_hash(const tatcell_table_t *table,
                               uint64_t now,
                               uint64_t hash,
                               uint64_t until);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_exempt(const tatcell_table_t *table,
                             uint64_t now,
                             const void *key,
                             size_t key_len,
                             uint64_t until);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_exempt_hash(const tatcell_table_t *table,
                                  uint64_t now,
                                  uint64_t hash,
                                  uint64_t until);
TATCELL_API
int32_t tatcell_table_lift(const tatcell_table_t *table,
                           uint64_t now,
                           const void *key,
                           size_t key_len);
TATCELL_API
int32_t tatcell_table_lift_hash(const tatcell_table_t *table, uint64_t now, uint64_t hash);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_overridden(const tatcell_table_t *table,
                                 uint64_t now,
                                 const void *key,
                                 size_t key_len,
                                 uint32_t *kind,
                                 uint64_t *left);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_table_overridden_hash(const tatcell_table_t *table,
                                      uint64_t now,
                                      uint64_t hash,
                                      uint32_t *kind,
                                      uint64_t *left);
#ifdef __cplusplus
}
#endif
#ifndef TATCELL_NO_ASSERT
#if defined(__cplusplus)
#if __cplusplus >= 201103L
#define TATCELL_ASSERT_(test,name) static_assert(test, name)
#define TATCELL_ALIGNOF_(type) alignof(type)
#endif
#elif defined(__STDC_VERSION__)
#if __STDC_VERSION__ >= 201112L
#define TATCELL_ASSERT_(test,name) _Static_assert(test, name)
#define TATCELL_ALIGNOF_(type) _Alignof(type)
#endif
#endif
#ifdef TATCELL_ASSERT_
TATCELL_ASSERT_(sizeof(tatcell_cell_t) == TATCELL_CELL_SIZE, "cell size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_cell_t) == TATCELL_CELL_ALIGN, "cell alignment");
TATCELL_ASSERT_(sizeof(tatcell_cell32_t) == TATCELL_CELL32_SIZE, "32-bit cell size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_cell32_t) == TATCELL_CELL32_ALIGN, "32-bit cell alignment");
TATCELL_ASSERT_(sizeof(tatcell_lease_t) == TATCELL_LEASE_SIZE, "lease size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_lease_t) == TATCELL_LEASE_ALIGN, "lease alignment");
TATCELL_ASSERT_(sizeof(tatcell_sliding_log_t) == TATCELL_SLIDING_LOG_SIZE, "sliding log size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_sliding_log_t) == TATCELL_SLIDING_LOG_ALIGN, "sliding log alignment");
TATCELL_ASSERT_(sizeof(tatcell_limit_t) == TATCELL_LIMIT_SIZE, "limit size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_limit_t) == TATCELL_LIMIT_ALIGN, "limit alignment");
TATCELL_ASSERT_(sizeof(tatcell_table_t) == TATCELL_TABLE_HANDLE_SIZE, "table handle size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_table_t) == TATCELL_TABLE_HANDLE_ALIGN, "table handle alignment");
TATCELL_ASSERT_(sizeof(tatcell_permit_t) == TATCELL_PERMIT_SIZE, "permit size");
TATCELL_ASSERT_(sizeof(tatcell_counters_t) == TATCELL_COUNTERS_SIZE, "counters size");
TATCELL_ASSERT_(sizeof(tatcell_slot_t) == TATCELL_SLOT_SIZE, "slot size");
TATCELL_ASSERT_(sizeof(tatcell_meter_t) == TATCELL_METER_SIZE, "meter size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_meter_t) == TATCELL_METER_ALIGN, "meter alignment");
TATCELL_ASSERT_(sizeof(tatcell_meter_params_t) == TATCELL_METER_PARAMS_SIZE, "meter parameters size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_meter_params_t) == TATCELL_METER_PARAMS_ALIGN, "meter parameters alignment");
TATCELL_ASSERT_(sizeof(tatcell_meter_spec_t) >= TATCELL_METER_SPEC_MIN, "meter specification size");
TATCELL_ASSERT_(sizeof(tatcell_decision_t) >= TATCELL_DECISION_MIN, "decision size");
TATCELL_ASSERT_(sizeof(tatcell_limit_spec_t) >= TATCELL_LIMIT_SPEC_MIN, "specification size");
TATCELL_ASSERT_(sizeof(tatcell_table_options_t) >= TATCELL_TABLE_OPTIONS_MIN, "table options size");
TATCELL_ASSERT_(sizeof(tatcell_attach_options_t) >= TATCELL_ATTACH_OPTIONS_MIN, "attach options size");
TATCELL_ASSERT_(sizeof(tatcell_burst_t) >= TATCELL_BURST_MIN, "burst size");
TATCELL_ASSERT_(sizeof(tatcell_log_t) == TATCELL_LOG_SIZE, "log gate size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_log_t) == TATCELL_LOG_ALIGN, "log gate alignment");
TATCELL_ASSERT_(sizeof(tatcell_slip_t) == TATCELL_SLIP_SIZE, "slip size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_slip_t) == TATCELL_SLIP_ALIGN, "slip alignment");
TATCELL_ASSERT_(sizeof(tatcell_http_policy_t) >= TATCELL_HTTP_POLICY_MIN, "HTTP policy size");
TATCELL_ASSERT_(sizeof(tatcell_mark_t) >= TATCELL_MARK_MIN, "mark size");
TATCELL_ASSERT_(sizeof(tatcell_link_t) >= TATCELL_LINK_MIN, "link size");
TATCELL_ASSERT_(sizeof(tatcell_chain_t) >= TATCELL_CHAIN_MIN, "chain size");
TATCELL_ASSERT_(sizeof(tatcell_ladder_spec_t) >= TATCELL_LADDER_SPEC_MIN, "ladder specification size");
TATCELL_ASSERT_(sizeof(tatcell_ladder_t) == TATCELL_LADDER_SIZE, "ladder size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_ladder_t) == TATCELL_LADDER_ALIGN, "ladder alignment");
TATCELL_ASSERT_(sizeof(tatcell_shaper_t) == TATCELL_SHAPER_SIZE, "shaper size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_shaper_t) == TATCELL_SHAPER_ALIGN, "shaper alignment");
TATCELL_ASSERT_(sizeof(tatcell_waiting_t) == TATCELL_WAITING_SIZE, "waiting size");
TATCELL_ASSERT_(sizeof(tatcell_shaper_info_t) >= TATCELL_SHAPER_INFO_MIN, "shaper information size");
TATCELL_ASSERT_(sizeof(tatcell_group_t) == TATCELL_GROUP_SIZE, "group size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_group_t) == TATCELL_GROUP_ALIGN, "group alignment");
TATCELL_ASSERT_(sizeof(tatcell_leaky_queue_t) == TATCELL_LEAKY_QUEUE_SIZE, "leaky queue size");
TATCELL_ASSERT_(TATCELL_ALIGNOF_(tatcell_leaky_queue_t) == TATCELL_LEAKY_QUEUE_ALIGN, "leaky queue alignment");
#endif
#undef TATCELL_ASSERT_
#undef TATCELL_ALIGNOF_
#endif
#endif
