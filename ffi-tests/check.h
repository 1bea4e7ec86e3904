/* check.h - a test program prints TAP, which prove reads: a line "ok 1 - name" or "not ok 1 - name" for each claim.
 *
 * TEST(name) { ... } states a claim, RUN(name) checks it, and main ends with `return check_end();`. CHECK_NAME in the
 * environment, which the script `run` sets, stands before each name. The first expectation that does not hold ends the
 * test; expectations inside helper functions end only the helper, so callers that go on ask `failed()`.
 * NOTE(...) says where a loop stands; it is printed with a failure. */
#ifndef TATCELL_CHECK_H
#define TATCELL_CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST(name) static void name(void)
#define RUN(name) check_run(#name, name)

static int check_claims, check_failures;
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
    const char *program = getenv("CHECK_NAME");
    check_why[0] = check_note[0] = check_skip[0] = 0;
    test();
    if (failed()) check_failures++;
    printf("%sok %d - ", failed() ? "not " : "", ++check_claims);
    printf("%s%s%s", program ? program : "", program ? ": " : "", name);
    if (failed()) printf("\n# %s%s%s\n", check_why, check_note[0] ? "; at " : "", check_note);
    else if (check_skip[0]) printf(" # SKIP %s\n", check_skip);
    else printf("\n");
    fflush(stdout);
}

/* The last line: how many claims there were. A program that ends without it is a failure. Returns main's result. */
static inline int check_end(void) {
    printf("1..%d\n", check_claims);
    return check_failures != 0;
}

/* xorshift64*: the same numbers on every machine. */
static inline unsigned long long check_random(unsigned long long *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dULL;
}

#endif /* TATCELL_CHECK_H */
