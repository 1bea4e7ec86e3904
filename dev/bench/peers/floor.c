/* Floors of calls from C: functions with the arguments of tatcell's that look at these arguments as they have to, make
 * one bare operation, and answer. What they take above the bare operation alone, the call and its arguments take. */

#include <stddef.h>
#include <stdint.h>

#define PASS 0
#define NON_CONFORMING 1
#define WRONG (-1)

/* The first word of a limit and of a table that were made. */
#define MARK UINT64_C(0x7c132130748aaac8)

/* One test for the alignment of all pointers, one each for NULL, one of the limit's mark, two of the cost. */
#define LOOK(object, limit, retry, cost) \
    do { \
        if (((uintptr_t)(object) | (uintptr_t)(limit) | (uintptr_t)(retry)) & 7) \
            return WRONG; \
        if (!(object) || !(limit) || *(limit) != MARK || (cost) - 1 >= (limit)[1]) \
            return WRONG; \
    } while (0)

static inline int32_t answer(uint64_t *retry, uint64_t ticks, int32_t code) {
    if (retry)
        *retry = ticks;
    return code;
}

static inline int32_t swap(uint64_t *word, uint64_t *retry) {
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(word, &seen, seen + 64, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return WRONG;
    return answer(retry, 0, PASS);
}

int32_t floor_swap(uint64_t *cell, const uint64_t *limit, uint64_t now, uint64_t cost, uint64_t *retry);
int32_t floor_load(uint64_t *cell, const uint64_t *limit, uint64_t now, uint64_t cost, uint64_t *retry);
int32_t floor_store(uint64_t *cell, const uint64_t *limit, uint64_t now, uint64_t cost, uint64_t *retry);
int32_t floor_lease(uint64_t *lease, uint64_t *cell, const uint64_t *limit, uint64_t now, uint64_t cost,
                    uint64_t *retry);
int32_t floor_table(uint64_t *table, const uint64_t *limit, uint64_t now, const void *key, size_t len, uint64_t cost,
                    uint64_t *retry);

int32_t floor_swap(uint64_t *cell, const uint64_t *limit, uint64_t now, uint64_t cost, uint64_t *retry) {
    (void)now;
    LOOK(cell, limit, retry, cost);
    return swap(cell, retry);
}

int32_t floor_load(uint64_t *cell, const uint64_t *limit, uint64_t now, uint64_t cost, uint64_t *retry) {
    LOOK(cell, limit, retry, cost);
    const uint64_t ahead = __atomic_load_n(cell, __ATOMIC_RELAXED) - now;
    if (ahead > limit[1])
        return answer(retry, ahead, NON_CONFORMING);
    return answer(retry, 0, PASS);
}

int32_t floor_store(uint64_t *cell, const uint64_t *limit, uint64_t now, uint64_t cost, uint64_t *retry) {
    LOOK(cell, limit, retry, cost);
    if (*cell > now + limit[1])
        return answer(retry, *cell - now, NON_CONFORMING);
    *cell = now;
    return answer(retry, 0, PASS);
}

/* As long as a lease has units it asks no cell. */
int32_t floor_lease(uint64_t *lease, uint64_t *cell, const uint64_t *limit, uint64_t now, uint64_t cost,
                    uint64_t *retry) {
    LOOK(lease, limit, retry, cost);
    if (((uintptr_t)cell & 7) || !cell || *lease > now + limit[1])
        return WRONG;
    *lease = now;
    return answer(retry, 0, PASS);
}

int32_t floor_table(uint64_t *table, const uint64_t *limit, uint64_t now, const void *key, size_t len, uint64_t cost,
                    uint64_t *retry) {
    (void)now;
    LOOK(table, limit, retry, cost);
    if ((!key && len) || *table != MARK)
        return WRONG;
    return swap(table + 1, retry);
}
