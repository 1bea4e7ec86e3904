/* login.c: how a login limits guesses: per account exactly, per network, and with a ban for who does not stop.
 *
 *   cc -O2 -Iinclude examples/login.c libtatcell.a -o login && ./login       tests itself; time is simulated
 *
 * Copy setup() and login(). Any number of threads may call login().
 *   - An account takes at most 5 failures in any 10 minutes (a sliding log, exact).
 *   - An address and its networks may fail at a limited rate. An address that goes on is banned for a day.
 *   - Each attempt is charged before the password is looked at, or else parallel guesses would all be free. A right
 *     password gives the charges back, so only failures count.
 *   - Tell clients no more than "wrong, or too many attempts": they must not learn which accounts exist. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tatcell.h"
#include "tatcell_host.h"

#define SECOND UINT64_C(1000000000) /* ticks are nanoseconds of tatcell_host_clock */
#define MINUTE (60 * SECOND)
#define DAY (1440 * MINUTE)
enum { ACCOUNTS = 8, FAILURES = 5, SLOTS = 1 << 14 };
enum answer { WELCOME, WRONG, LOCKED, NETWORK, BANNED, BUSY };
static const char *const text[] = {"welcome", "wrong", "account is locked", "network is limited", "banned", "busy"};

struct account {
    const char *password; /* yours are hashed */
    tatcell_cell_t stamps[FAILURES];
    tatcell_sliding_log_t log;
};
static struct account accounts[ACCOUNTS];
static tatcell_table_t failures, bans;
static tatcell_sweeper_t failures_sweeper, bans_sweeper;
static tatcell_ladder_t ladder;

/* Ends the program if a call failed. Verdicts are not failures. */
static int32_t need(const char *what, int32_t rc, int error) {
    if (rc >= 0) return rc;
    fprintf(stderr, "login: %s: %s\n", what, rc == TATCELL_ERR_SYSTEM ? strerror(error) : tatcell_strerror(rc));
    exit(1);
}

/* Makes a table in memory from the system, with a seed that nobody knows. */
static void make_table(tatcell_table_t *table, tatcell_table_options_t *options) {
    tatcell_host_memory_t memory = TATCELL_HOST_MEMORY_INIT;
    uint8_t seed[16];
    options->seed = seed;
    int32_t error = 0, rc = tatcell_host_random(seed, sizeof seed, &error);
    need("seed", rc, error);
    rc = tatcell_host_memory_map(tatcell_table_bytes(SLOTS), 0, &memory);
    need("memory", rc, memory.system_error);
    need("table", tatcell_table_init(table, memory.memory, tatcell_table_bytes(SLOTS), options), 0);
}

static void setup(const char *per_address) {
    tatcell_limit_spec_t one = TATCELL_LIMIT_SPEC_INIT, fastest = one, slowest = one;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT, overrides = options;
    need(per_address, tatcell_limit_spec_parse(&one, per_address, strlen(per_address), SECOND, NULL), 0);
    need(per_address, tatcell_ladder_table_specs(&one, NULL, &fastest, &slowest), 0);
    options.fastest = &fastest, options.slowest = &slowest;
    options.policy = TATCELL_FULL_DENY; /* a full set refuses new addresses: guesses never pass uncounted */
    overrides.overrides = 2 * DAY;      /* no ban is longer */
    make_table(&failures, &options), make_table(&bans, &overrides);
    need("ladder", tatcell_ladder_init(&ladder, &failures, &one, NULL), 0);
    for (int i = 0; i < ACCOUNTS; i++) {
        struct account *a = &accounts[i];
        a->password = "correct horse";
        need("account", tatcell_sliding_log_init(&a->log, a->stamps, FAILURES, 10 * MINUTE, 0), 0);
    }
}

static enum answer login(uint64_t now, struct account *a, const char *password, const void *address, size_t length) {
    tatcell_permit_t permits[TATCELL_CHAIN_MAX];
    tatcell_decision_t per_network = TATCELL_DECISION_INIT, per_account = TATCELL_DECISION_INIT;
    uint8_t key[16]; /* ::ffff:192.0.2.1 is 192.0.2.1 */
    size_t key_length = 0;
    uint32_t kind = TATCELL_OVERRIDE_NONE;
    need("address", tatcell_address_canonical(address, length, key, &key_length), 0);
    need("sweep", tatcell_table_sweep_due(&failures, &failures_sweeper, now), 0);
    need("sweep", tatcell_table_sweep_due(&bans, &bans_sweeper, now), 0);
    need("bans", tatcell_table_overridden(&bans, now, key, key_length, &kind, NULL), 0);
    if (kind == TATCELL_OVERRIDE_BAN) return BANNED;
    int32_t rc = tatcell_ladder_check(&ladder, &failures, now, address, length, 1, &per_network, permits, NULL);
    if (need("network", rc, 0) == TATCELL_CONTENDED) return BUSY;
    if (rc != TATCELL_PASS && per_network.policy != 0) return NETWORK; /* its neighbours used up the limit */
    if (rc != TATCELL_PASS) {
        rc = tatcell_table_ban(&bans, now, key, key_length, now + DAY);
        if (rc == TATCELL_ERR_FULL_SET || rc == TATCELL_ERR_CLASH || rc == TATCELL_CONTENDED) return BUSY; /* not now */
        return need("ban", rc, 0), BANNED;
    }
    rc = tatcell_sliding_log_check_ex(&a->log, now, &per_account, NULL);
    if (need("account", rc, 0) != TATCELL_PASS) return rc == TATCELL_CONTENDED ? BUSY : LOCKED;
    if (strcmp(password, a->password) != 0) return WRONG; /* yours takes the same time for every password */
    /* TATCELL_CONTENDED here leaves a success counted as a failure, which ends by itself. */
    need("refund", tatcell_sliding_log_refund(&a->log, now, &per_account.permit, NULL), 0);
    need("refund", tatcell_ladder_refund(&ladder, &failures, now, address, length, permits), 0);
    return WELCOME;
}

/* Logs in n times. Returns whether each answer is as expected. */
static int expect(uint64_t now, int n, int account, const char *password, const char *from, enum answer wanted) {
    struct in6_addr address;
    int family = strchr(from, ':') != NULL ? AF_INET6 : AF_INET, right = inet_pton(family, from, &address) == 1;
    size_t length = family == AF_INET6 ? 16 : 4;
    enum answer got = wanted;
    for (int i = 0; i < n; i++) right &= (got = login(now, &accounts[account], password, &address, length)) == wanted;
    printf("%5d min: %2d attempts from %s: %s\n", (int)(now / MINUTE), n, from, text[got]);
    return right;
}

int main(void) {
    static const char *const good = "correct horse";
    uint64_t now = MINUTE;
    setup("20/h burst 20");
    int right = expect(now, 99, 0, good, "192.0.2.1", WELCOME); /* a success costs nothing */
    for (int i = 0; i < 5; i++) right &= expect(now + (uint64_t)i * MINUTE, 1, 0, "guess", "192.0.2.1", WRONG);
    right &= expect(now + 10 * MINUTE - 1, 1, 0, good, "192.0.2.9", LOCKED);
    right &= expect(now + 10 * MINUTE, 9, 0, good, "192.0.2.9", WELCOME); /* the first failure is 10 minutes old */
    now += 30 * MINUTE;
    for (int i = 0; i < 4; i++) right &= expect(now, 5, i, "guess", "198.51.100.9", WRONG); /* 20 on four accounts */
    right &= expect(now, 1, 7, good, "198.51.100.9", BANNED);
    right &= expect(now, 1, 7, good, "198.51.100.10", WELCOME);
    for (int i = 0; i < 8; i++) { /* one network of IPv6 with an address for each guess */
        char from[32];
        snprintf(from, sizeof from, "2001:db8::%d", i + 1);
        right &= expect(now + 60 * MINUTE, 5, i, "guess", from, WRONG);
    }
    right &= expect(now + 60 * MINUTE, 1, 7, good, "2001:db8::99", NETWORK);
    right &= expect(now + DAY - 1, 1, 7, good, "::ffff:198.51.100.9", BANNED); /* the same address */
    right &= expect(now + DAY, 1, 7, good, "198.51.100.9", WELCOME);
    return puts(right ? "PASS" : "FAIL"), !right;
}
