/* quota.c: units that each customer may take in a calendar month, exact, in a file that survives the process.
 *
 *   cc -O2 -Iinclude examples/quota.c libtatcell.a -o quota
 *   ./quota /var/lib/app/quota 7 100             takes 100 units of customer 7, or says how many are left
 *   ./quota /var/lib/app/quota 7 plan 2000001    changes the quota of customer 7 and keeps the count
 *   ./quota                                      tests itself: kill -9, restart, plan upgrade, jumps of the clock
 *
 * All processes share the file's memory, so a killed one loses nothing. (Call msync against a loss of power.) A process
 * reads the wall clock once, and refuses to start if that is far from the last request in the file. Each of the 12
 * months has a cell of its own, so a clock that is some days ahead takes from the next month and spares this one. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tatcell.h"
#include "tatcell_host.h"

#define FORMAT UINT64_C(0x31617461756f7174) /* of the file; another one if MOST or a structure changes */
enum { CUSTOMERS = 1000, FIRST_PLAN = 1000000, MOST = 1 << 30, DAY = 86400, NEAR = 40 * DAY };

struct customer {
    _Atomic uint64_t plan; /* units a month; 0 = FIRST_PLAN */
    tatcell_cell_t month[12];
};
struct file { /* all zero is a valid file: nobody has taken anything */
    _Atomic uint64_t format, last; /* last: time of the last request, seconds of UTC */
    struct customer customer[CUSTOMERS];
};
static uint64_t offset; /* of the wall clock at the start to the running clock, seconds */

/* Ends the program if a call failed. Verdicts are not failures. */
static void need(const char *what, int32_t rc, int error) {
    if (rc >= 0) return;
    fprintf(stderr, "quota: %s: %s\n", what, rc == TATCELL_ERR_SYSTEM ? strerror(error) : tatcell_strerror(rc));
    exit(1);
}

static struct file *open_file(const char *path) {
    tatcell_host_memory_t m = TATCELL_HOST_MEMORY_INIT;
    int32_t rc = tatcell_host_memory_create(path, sizeof(struct file), 0, &m);
    if (rc == TATCELL_ERR_EXISTS) rc = tatcell_host_memory_attach(path, sizeof(struct file), &m);
    need(path, rc, m.system_error); /* TATCELL_ERR_NOT_READY that stays: its creator was killed; remove the file */
    struct file *f = m.memory; /* a new one gets its format from whoever comes first */
    uint64_t was = 0;
    if (!atomic_compare_exchange_strong(&f->format, &was, FORMAT) && was != FORMAT) need(path, TATCELL_ERR_VERSION, 0);
    return f;
}

/* Seconds of a clock that runs in sleep, too, and that nobody can set. */
static uint64_t running_clock(void) {
    uint64_t ns = 0;
    int32_t error = 0, rc = tatcell_host_clock(TATCELL_HOST_CLOCK_BOOTTIME, &ns, &error);
    if (rc == TATCELL_ERR_UNSUPPORTED) rc = tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &ns, &error);
    return need("clock", rc, error), ns / 1000000000;
}

/* Returns whether the wall clock is near the last request. From now on time is the running clock and an offset. */
static int start_clock(const struct file *f, uint64_t wall) {
    offset = wall - running_clock();
    return f->last == 0 || (wall <= f->last + NEAR && f->last <= wall + NEAR);
}

static uint64_t plan_of(const struct customer *c) { return c->plan != 0 ? c->plan : FIRST_PLAN; }
/* Makes the limit of the month of now, which a daemon keeps for the month. Returns the month, 0 to 11. */
static int month_limit(tatcell_limit_t *limit, uint64_t plan, uint64_t now) {
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
    time_t t = (time_t)now;
    struct tm day;
    if (gmtime_r(&t, &day) == NULL) need("time", TATCELL_ERR_PERIOD, 0);
    struct tm first = {.tm_year = day.tm_year, .tm_mon = day.tm_mon, .tm_mday = 1}, next = first;
    next.tm_mon++;
    uint64_t start = (uint64_t)timegm(&first), end = (uint64_t)timegm(&next); /* or localtime_r and mktime */
    spec.algorithm = TATCELL_ALGORITHM_FIXED_WINDOW, spec.flags = TATCELL_LIMIT_ALIGNED;
    spec.units = plan, spec.period = end - start, spec.phase = start % spec.period;
    spec.max_debt = MOST - plan; /* so all plans count with the same bits, and a word means the same under each */
    need("limit", tatcell_limit_init_spec(limit, &spec), 0);
    need("limit", tatcell_limit_info(limit, &info), 0);
    if (info.border_error != 0 || info.span < 2 * 366 * DAY) need("limit is not exact", TATCELL_ERR_REPRESENT, 0);
    return day.tm_mon;
}

/* Takes units of a customer if there are so many. Any number of threads and processes may call it. */
static int32_t take(struct file *f, size_t who, uint64_t units, uint64_t now, tatcell_decision_t *d) {
    struct customer *c = &f->customer[who];
    tatcell_limit_t limit;
    tatcell_cell_t *cell = &c->month[month_limit(&limit, plan_of(c), now)];
    f->last = now;
    int32_t rc = tatcell_cell_check_ex(cell, &limit, now, units, 0, d, NULL);
    return need("check", rc, 0), rc; /* TATCELL_CONTENDED took nothing: the caller asks again, or answers 503 */
}

static void change_plan(struct file *f, size_t who, uint64_t plan, uint64_t now) {
    struct customer *c = &f->customer[who];
    tatcell_limit_t before, after;
    tatcell_cell_t *cell = &c->month[month_limit(&before, plan_of(c), now)];
    month_limit(&after, plan, now);
    int32_t rc = TATCELL_CONTENDED;
    while (rc == TATCELL_CONTENDED) rc = tatcell_cell_change(cell, &before, &after, now, TATCELL_CHANGE_KEEP_UNITS);
    need("plan", rc, 0);
    c->plan = plan; /* a process that is killed before this line leaves the old plan, with the same count */
}

/* Takes units and prints the answer. Returns the units that are left; -1 = refused. */
static int64_t ask(const char *what, struct file *f, uint64_t who, uint64_t units, uint64_t now) {
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    int32_t rc = take(f, who, units, now, &d);
    printf("%s: %s, %" PRIu64 " left for %" PRIu64 " s\n", what, tatcell_strerror(rc), d.remaining, d.reset_after);
    return rc == TATCELL_PASS ? (int64_t)d.remaining : -1;
}

static int test(void) {
    char folder[] = "/tmp/quota-XX" "XX" "XX", path[32]; /* mkdtemp replaces the six letters */
    const uint64_t november = 1793491200, december = november + 30 * DAY;
    if (mkdtemp(folder) == NULL || snprintf(path, sizeof path, "%s/f", folder) < 0) return perror(folder), 1;
    pid_t child = fork();
    if (child == 0) exit(ask("to be killed", open_file(path), 7, 999999, november) == 1 && raise(SIGKILL));
    int status = 0, killed = waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    struct file *f = open_file(path);
    int right = killed && ask("after kill -9", f, 7, 1, november) == 0 && ask("then", f, 7, 1, december - 1) == -1;
    change_plan(f, 7, 2000001, december - 1);
    right = right && ask("with a larger plan", f, 7, 1, december - 1) == 1000000;
    right = right && ask("with a clock 5 days ahead", f, 7, 5, december + 5 * DAY) == 1999996;
    right = right && ask("and back", f, 7, 1, december - 1) == 999999;
    right = right && ask("in the next month", f, 7, 1, december) == 1999995;
    right = right && start_clock(f, december + DAY) && !start_clock(f, december + 41 * DAY);
    need(path, tatcell_host_memory_unlink(path, NULL), 0), rmdir(folder);
    return puts(right ? "PASS" : "FAIL"), !right;
}

int main(int argc, char **argv) {
    char *tail = argv[0], *rest = argv[0];
    if (argc == 1) return test();
    int plan = argc == 5 && strcmp(argv[3], "plan") == 0;
    uint64_t who = argc == 4 || plan ? strtoull(argv[2], &tail, 10) : 0;
    uint64_t units = argc == 4 || plan ? strtoull(argv[argc - 1], &rest, 10) : 0;
    if (*tail != 0 || *rest != 0 || who >= CUSTOMERS || units > MOST || (plan && units == 0))
        return fputs("usage: quota [FILE CUSTOMER [plan] UNITS]\n", stderr), 2;
    struct file *f = open_file(argv[1]);
    if (!start_clock(f, (uint64_t)time(NULL))) return fputs("quota: the clock is far from the file's\n", stderr), 1;
    if (plan) change_plan(f, who, units, running_clock() + offset), units = 0;
    return ask(argv[2], f, who, units, running_clock() + offset) < 0;
}
