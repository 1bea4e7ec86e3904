/* check.h - one line per claim: "PASS name", "FAIL name: why" or "SKIP name: what is missing".
 *
 * TEST(name) { ... } states a claim, RUN(name) checks it. The first expectation that does not hold ends the test;
 * expectations inside helper functions end only the helper, so callers that go on ask `failed()`.
 * NOTE(...) says where a loop stands; it is printed with a failure. */
#ifndef TATCELL_CHECK_H
#define TATCELL_CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEST(name) static void name(void)
#define RUN(name) check_run(#name, name)

static int check_failures;
static char check_why[512], check_note[256], check_skip[256];

static inline int failed(void) {
    return check_why[0] != 0;
}

__attribute__((format(printf, 3, 4))) static inline void check_fail(const char *file, int line, const char *f, ...) {
    if (failed()) return;
    const char *base = strrchr(file, '/');
    int n = snprintf(check_why, sizeof check_why, "%s:%d: ", base ? base + 1 : file, line);
    va_list args;
    va_start(args, f);
    vsnprintf(check_why + n, sizeof check_why - (size_t)n, f, args);
    va_end(args);
}

__attribute__((format(printf, 1, 2))) static inline void NOTE(const char *f, ...) {
    va_list args;
    va_start(args, f);
    vsnprintf(check_note, sizeof check_note, f, args);
    va_end(args);
}

#define SKIP(...) do { snprintf(check_skip, sizeof check_skip, __VA_ARGS__); return; } while (0)
#define EXPECT(c) do { if (!(c)) { check_fail(__FILE__, __LINE__, "%s", #c); return; } } while (0)
#define EQ(got, want) \
    do { \
        unsigned long long g_ = (unsigned long long)(got), w_ = (unsigned long long)(want); \
        if (g_ != w_) { \
            check_fail(__FILE__, __LINE__, "%s is %lld (%#llx), not %lld", #got, (long long)g_, g_, (long long)w_); \
            return; \
        } \
    } while (0)
/* For helpers that expect something: leaves the caller too. */
#define DO(call) do { call; if (failed()) return; } while (0)

static inline void check_run(const char *name, void (*test)(void)) {
    check_why[0] = check_note[0] = check_skip[0] = 0;
    test();
    if (failed()) {
        check_failures++;
        printf("FAIL %s: %s%s%s\n", name, check_why, check_note[0] ? "; at " : "", check_note);
    } else if (check_skip[0]) {
        printf("SKIP %s: %s\n", name, check_skip);
    } else {
        printf("PASS %s\n", name);
    }
    fflush(stdout);
}

/* xorshift64*: the same numbers on every machine. */
static inline unsigned long long check_random(unsigned long long *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dULL;
}

#endif /* TATCELL_CHECK_H */
