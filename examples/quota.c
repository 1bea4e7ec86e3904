/* quota.c: units that each customer may take in a calendar month, exact, in a file that survives the process.
 *
 *   cc -O2 -Iinclude examples/quota.c libtatcell.a -o quota
 *   ./quota /var/lib/app/quota 7 100             takes 100 units of customer 7, or says how many are left
 *   ./quota /var/lib/app/quota 7 plan 2000001    changes the quota of customer 7 and keeps the count
 *   ./quota                                      tests itself: kill -9, restart, plan upgrade, jumps of the clock
 *
 * A request locks the file, reads the customer's sector with the images of cells, decides, and writes it back before it
 * is answered. So a process that is killed has charged or has not. (Call fdatasync against a loss of power.) The wall
 * clock counts once, at the start, and only near the last request, whose time the file starts with. Neighbouring months
 * have cells of their own, so a clock that is some days ahead takes from the next month and spares this one. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tatcell.h"
#include "tatcell_host.h"

enum { CUSTOMERS = 1000, FIRST_PLAN = 1000000, MOST = 1 << 30, MONTHS = 6, DAY = 86400, NEAR = 40 * DAY };
#define NS UINT64_C(1000000000)
struct customer { /* all zero: nothing was taken */
    uint64_t plan; /* units a month, 0 = FIRST_PLAN */
    uint64_t plan_of[MONTHS]; /* the plan that each image was saved under */
    tatcell_cell_image_t month[MONTHS];
    unsigned char rest[216]; /* of the sector */
};
static tatcell_host_guard_t guard = TATCELL_HOST_GUARD_INIT;

/* Ends the program if a call failed. Verdicts are not failures. */
static void need(const char *what, int32_t rc, int error) {
    if (rc >= 0) return;
    fprintf(stderr, "quota: %s: %s\n", what, rc == TATCELL_ERR_SYSTEM ? strerror(error) : tatcell_strerror(rc));
    exit(1);
}

static int open_file(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) perror(path), exit(1);
    return fd;
}

/* Starts a clock that nobody can set while the program runs. */
static void start_clock(uint64_t wall) {
    int32_t error = 0;
    need("clock", tatcell_host_guard_start(&guard, wall * NS, 0, &error), error);
}
static uint64_t seconds(void) {
    uint64_t ns = 0;
    int32_t error = 0;
    return need("clock", tatcell_host_guard_now(&guard, 0, &ns, &error), error), ns / NS;
}
static int is_near(uint64_t last, uint64_t now) { return last == 0 || (now <= last + NEAR && last <= now + NEAR); }

/* Makes the limit of the month of now. Returns the first second of the month, and the place of its cell. */
static uint64_t month_limit(tatcell_limit_t *limit, uint64_t plan, uint64_t now, int *at) {
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
    return *at = day.tm_mon % MONTHS, start;
}

/* Takes units of a customer if enough are left, after a change of the plan if that is not 0. */
static int32_t take(int fd, uint64_t who, uint64_t plan, uint64_t units, uint64_t now, tatcell_decision_t *d) {
    struct customer c = {0}; /* where the file has nothing yet */
    tatcell_limit_t before, limit;
    tatcell_cell_t cell = TATCELL_CELL_INIT;
    uint64_t saved = 0, last = 0, start;
    const off_t sector = (off_t)((who + 1) * sizeof c);
    ssize_t got = 0;
    int at;
    if (flock(fd, LOCK_EX) != 0 || pread(fd, &last, sizeof last, 0) < 0 || (got = pread(fd, &c, sizeof c, sector)) < 0)
        perror("file"), exit(1);
    if (got != 0 && got != sizeof c) need("the file ends within a customer", TATCELL_ERR_IMAGE, 0);
    if (!is_near(last, now)) fprintf(stderr, "quota: the clock is far from the last request\n"), exit(1);
    c.plan = plan != 0 ? plan : c.plan != 0 ? c.plan : FIRST_PLAN;
    start = month_limit(&limit, c.plan, now, &at);
    month_limit(&before, c.plan_of[at] != 0 ? c.plan_of[at] : c.plan, now, &at);
    int32_t rc = tatcell_cell_restore(&cell, &before, &c.month[at], 0, &saved);
    if (rc == TATCELL_ERR_OTHER_LIMIT && saved < start) rc = 0; /* of an earlier month: the cell stays fresh */
    need("file", rc, 0), c.plan_of[at] = c.plan;
    need("plan", tatcell_cell_change(&cell, &before, &limit, now, TATCELL_CHANGE_KEEP_UNITS), 0);
    rc = tatcell_cell_check_ex(&cell, &limit, now, units, 0, d, NULL);
    need("check", rc, 0), need("save", tatcell_cell_save(&cell, &limit, now, &c.month[at]), 0);
    if (pwrite(fd, &c, sizeof c, sector) != sizeof c || pwrite(fd, &now, sizeof now, 0) != sizeof now)
        perror("file"), exit(1);
    return flock(fd, LOCK_UN), rc;
}

/* Takes units and prints the answer. Returns the units that are left; -1 = refused. */
static int64_t ask(const char *what, int fd, uint64_t plan, uint64_t units, uint64_t now, uint64_t who) {
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    int32_t rc = take(fd, who, plan, units, now, &d);
    printf("%s: %s, %" PRIu64 " left for %" PRIu64 " s\n", what, tatcell_strerror(rc), d.remaining, d.reset_after);
    return rc == TATCELL_PASS ? (int64_t)d.remaining : -1;
}

static int test(void) {
    char folder[] = "/tmp/quota-XX" "XX" "XX", path[32]; /* mkdtemp replaces the six letters */
    const uint64_t november = 1793491200, december = november + 30 * DAY;
    if (mkdtemp(folder) == NULL || snprintf(path, sizeof path, "%s/f", folder) < 0) return perror(folder), 1;
    pid_t child = fork();
    if (child == 0) exit(ask("to be killed", open_file(path), 0, 999999, november, 7) == 1 && raise(SIGKILL));
    int status = 0, killed = waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    int f = open_file(path);
    int right = killed && ask("after kill -9", f, 0, 1, november, 7) == 0;
    right = right && ask("then", f, 0, 1, december - 1, 7) == -1;
    right = right && ask("with a larger plan", f, 2000001, 1, december - 1, 7) == 1000000;
    right = right && ask("with a clock 5 days ahead", f, 0, 5, december + 5 * DAY, 7) == 1999996;
    right = right && ask("and back", f, 0, 1, december - 1, 7) == 999999;
    right = right && ask("in the next month", f, 3000000, 1, december, 7) == 2999994;
    for (uint64_t month = 0; month < 13; month++)
        right = right && ask("month by month", f, 0, 1, december + month * 31 * DAY, 8) == 999999;
    right = right && is_near(december, december + DAY) && !is_near(december, december + 41 * DAY);
    start_clock(december);
    right = right && seconds() >= december && seconds() < december + DAY;
    unlink(path), rmdir(folder);
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
    start_clock((uint64_t)time(NULL));
    return ask(argv[2], open_file(argv[1]), plan ? units : 0, plan ? 0 : units, seconds(), who) < 0;
}
