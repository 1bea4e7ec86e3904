/* smtp_prefork.c: a mail server of several processes that share their limits, and lose none when one is killed.
 *
 *   cc -O2 -Iinclude examples/smtp_prefork.c libtatcell.a -o smtp_prefork
 *   ./smtp_prefork 2525     accepts mail on 127.0.0.1 and forgets it
 *   ./smtp_prefork          tests itself on loopback
 *
 * The table and the cell lie in memory that fork shares, and the handles that the parent made work in every worker.
 * A connection and a recipient each cost the client's networks one unit; a recipient also counts for all clients
 * together. No call holds a lock, so a worker that is killed in one blocks nobody, and its charges stay. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tatcell.h"
#include "tatcell_host.h"

#define SECOND UINT64_C(1000000000) /* ticks are nanoseconds */
enum { WORKERS = 4, SLOTS = 1 << 14, LINE = 1002, PATIENCE = 60, ALL_HOUR = 30 };
static struct shared {
    TATCELL_ALIGNED(64) unsigned char table[TATCELL_TABLE_BYTES(SLOTS)];
    tatcell_sweeper_t sweeper; /* of the table */
    tatcell_cell_t recipients;
} *shared;
static tatcell_table_t table;
static tatcell_ladder_t ladder;
static tatcell_limit_t all;

/* Ends the program if a call failed. Verdicts are not failures. */
static int32_t need(const char *what, int32_t rc, int error) {
    if (rc >= 0) return rc;
    fprintf(stderr, "smtp_prefork: %s: %s\n", what, rc == TATCELL_ERR_SYSTEM ? strerror(error) : tatcell_strerror(rc));
    exit(1);
}

static uint64_t clock_now(void) {
    uint64_t now = 0;
    int32_t error = 0, rc = tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &now, &error);
    return need("clock", rc, error), now;
}

static void setup(const char *client) {
    tatcell_limit_spec_t one = TATCELL_LIMIT_SPEC_INIT, fastest = one, slowest = one;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    tatcell_host_memory_t memory = TATCELL_HOST_MEMORY_INIT;
    uint8_t seed[16];
    int32_t error = 0, rc = tatcell_host_random(seed, sizeof seed, &error);
    need("seed", rc, error), rc = tatcell_host_memory_map(sizeof *shared, TATCELL_HOST_FORK_SHARED, &memory);
    need("memory", rc, memory.system_error), shared = memory.memory;
    need(client, tatcell_limit_spec_parse(&one, client, strlen(client), SECOND, NULL), 0);
    need("all", tatcell_limit_init(&all, ALL_HOUR, 3600 * SECOND, ALL_HOUR), 0);
    need(client, tatcell_ladder_table_specs(&one, NULL, &fastest, &slowest), 0);
    options.fastest = &fastest, options.slowest = &slowest, options.seed = seed, options.policy = TATCELL_FULL_DENY;
    need(client, tatcell_table_init(&table, shared->table, sizeof shared->table, &options), 0);
    need(client, tatcell_ladder_init(&ladder, &table, &one, NULL), 0);
}

/* Charges a connection or a recipient to its client. If it is refused, sets the seconds to wait. */
static int32_t charge(const struct in_addr *from, int recipient, int *seconds) {
    tatcell_permit_t permits[TATCELL_CHAIN_MAX];
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    uint64_t now = clock_now();
    need("sweep", tatcell_table_sweep_due(&table, &shared->sweeper, now), 0);
    int32_t rc = tatcell_ladder_check(&ladder, &table, now, from, sizeof *from, 1, &d, permits, NULL);
    if (need("client", rc, 0) == TATCELL_PASS && recipient) {
        rc = tatcell_cell_check(&shared->recipients, &all, now, 1, &d.retry_after);
        if (need("all", rc, 0) != TATCELL_PASS) /* the client has sent nothing, so it gets its unit back */
            need("refund", tatcell_ladder_refund(&ladder, &table, now, from, sizeof *from, permits), 0);
    }
    return *seconds = (int)((d.retry_after + SECOND - 1) / SECOND), rc; /* 0 with TATCELL_CONTENDED */
}

static void session(FILE *in, int out, const struct in_addr *from) {
    char line[LINE] = "";
    int seconds = 0, open = charge(from, 0, &seconds) == TATCELL_PASS;
    dprintf(out, open ? "220 worker %d\r\n" : "421 4.7.0 retry in %d s\r\n", open ? (int)getpid() : seconds);
    while (open && fgets(line, LINE, in) != NULL && strchr(line, '\n') != NULL) {
        open = strncasecmp(line, "QUIT", 4) != 0;
        if (strncasecmp(line, "RCPT TO:", 8) == 0 && charge(from, 1, &seconds) != TATCELL_PASS)
            dprintf(out, "450 4.7.1 too many recipients, retry in %d s\r\n", seconds);
        else if (strncasecmp(line, "DATA", 4) == 0) {
            dprintf(out, "354 end with a dot\r\n");
            while (fgets(line, LINE, in) != NULL && strcmp(line, ".\r\n") != 0) continue;
            dprintf(out, "250 2.0.0 forgotten\r\n");
        } else dprintf(out, "250 2.0.0 well\r\n");
    }
}

static void start_worker(int listener) {
    pid_t parent = getpid(), pid = fork();
    need("fork", pid < 0 ? TATCELL_ERR_SYSTEM : 0, errno);
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) exit(1); /* ends with its parent */
    while (pid == 0) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        int fd = accept(listener, (struct sockaddr *)&from, &size);
        FILE *in = fdopen(fd, "r");
        if (in == NULL) exit(1); /* the parent starts another worker, also after a session that takes too long */
        alarm(PATIENCE), session(in, fd, &from.sin_addr), fclose(in), alarm(0);
    }
}

/* A client. Returns how many recipients are accepted; -1 = the connection is not. */
static int client(const char *address, struct sockaddr_in *to, int recipients, int kills) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address)};
    char line[LINE] = "";
    int fd = socket(AF_INET, SOCK_STREAM, 0), worker = 0, accepted = 0;
    if (bind(fd, (struct sockaddr *)&own, sizeof own) || connect(fd, (struct sockaddr *)to, sizeof *to)) return -2;
    FILE *in = fdopen(fd, "r");
    if (in == NULL || fgets(line, LINE, in) == NULL || sscanf(line, "220 worker %d", &worker) != 1) accepted = -1;
    for (int i = 0; i < recipients && accepted >= 0 && dprintf(fd, "RCPT TO:<user%d@example.org>\r\n", i) > 0; i++)
        if (fgets(line, LINE, in) != NULL) accepted += line[0] == '2';
    if (kills) kill(worker, SIGKILL);
    printf("%s: %d of %d accepted, last: %s", address, accepted, recipients, line);
    return fclose(in), accepted;
}

int main(int argc, char **argv) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    pid_t pid, tester = 0;
    sigset_t ended;
    int listener = socket(AF_INET, SOCK_STREAM, 0), status = 0;
    at.sin_port = htons((uint16_t)(argc == 2 ? strtoul(argv[1], NULL, 10) : 0));
    if (bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0) need("listen", TATCELL_ERR_SYSTEM, errno);
    setup("20/h burst 20");
    sigemptyset(&ended), sigaddset(&ended, SIGCHLD), sigprocmask(SIG_BLOCK, &ended, NULL), signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < WORKERS; i++) start_worker(listener);
    if (argc == 1 && (tester = fork()) == 0 && alarm(PATIENCE) == 0) {
        int right = client("127.0.0.2", &at, 25, 1) == 19; /* a connection and 19 recipients; kills its worker */
        right = right && client("127.0.0.2", &at, 1, 0) == -1 && client("127.0.1.2", &at, 15, 0) == 11;
        for (int i = 0; i < 8; i++) right = right && client("127.0.1.2", &at, 0, 0) == 0; /* 4 units came back */
        return right = right && client("127.0.1.2", &at, 0, 0) == -1, puts(right ? "PASS" : "FAIL"), !right;
    }
    for (;; sigwaitinfo(&ended, NULL))
        for (; (pid = waitpid(-1, &status, WNOHANG)) > 0; start_worker(listener))
            if (pid == tester && shutdown(listener, SHUT_RDWR) == 0) { /* accept fails, so the workers end */
                while (wait(NULL) > 0) continue;
                return status != 0;
            }
}
