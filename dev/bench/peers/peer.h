/* What a peer library gives the bench (dev/bench/src/foreign.rs), and the keys, which are those of
 * dev/bench/src/keys.rs.
 *
 * A bed is one limit and the state of all its keys. A run decides a whole visit, so that no call between languages is
 * charged to a single decision. Time is a number that the run moves on. */
#ifndef PEER_H
#define PEER_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* n decisions, for the keys ids[0..n], each moved on by `by` modulo the number of keys; dt ticks between two. */
struct peer_visit {
    const uint32_t *ids;
    uint64_t n;
    uint64_t dt;
    uint32_t by;
};

/* Makes the decisions of a visit and returns how many passed. */
typedef uint64_t peer_run(void *bed, const struct peer_visit *visit);

/* A bed of `keys` keys: one unit in `period` ticks, at most `burst` at once, `debt` units charged to each key before
 * the first run. NULL where that cannot be. It lives as long as the program. */
void *peer_open(uint32_t keys, uint64_t period, uint64_t burst, uint32_t debt);

/* The run of this name, after building what it needs. NULL where that cannot be. */
peer_run *peer_kind(void *bed, const char *kind);

/* Why the last call of this library returned NULL. */
const char *peer_why(void);

#ifdef __cplusplus
}
#endif

#define PEER_KEY 16
#define PEER_START ((uint64_t)1 << 40)

/* The key of decision i. */
static inline uint32_t peer_id(const struct peer_visit *visit, uint64_t i, uint32_t keys) {
    const uint32_t id = visit->ids[i] + visit->by;
    return id >= keys ? id - keys : id;
}

/* A constant prefix (2001:db8:0:1 on a little-endian machine), loaded for each key so that no compiler hashes it in
 * advance, and the id in network order. */
static inline void peer_key(unsigned char key[PEER_KEY], uint64_t id) {
    static const volatile uint64_t prefix = UINT64_C(0x01000000b80d0120);
    const uint64_t halves[2] = {prefix, __builtin_bswap64(id)};
    memcpy(key, halves, PEER_KEY);
}

#endif
