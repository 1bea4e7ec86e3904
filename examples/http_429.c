/* http_429.c: an HTTP server that answers 200 or 429, and tells its clients when to come back.
 *
 *   cc -O2 -pthread -Iinclude examples/http_429.c libtatcell.a -o http_429
 *   ./http_429 8429 '30/m burst 5'     then: curl -i -H 'X-API-Key: ann' http://127.0.0.1:8429/
 *   ./http_429                         tests itself on loopback
 *
 * The key of a client is its API key. A key that the server does not know gets a 401 and no place in the table, or else
 * each made-up key would be a new client. (http_429.cpp limits addresses.) The threads share one table without a lock.
 * Seconds are rounded up, so a client that waits as long as it was told passes. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tatcell.h"
#include "tatcell_host.h"

#define SECOND UINT64_C(1000000000) /* ticks are nanoseconds */
enum { KEYS = 4096, THREADS = 4, HEAD = 4096, FIELDS = 1024, PATIENCE = 10 };
static const char *const known[] = {"ann", "bob"};
static tatcell_host_table_t clients = TATCELL_HOST_TABLE_INIT;
static _Atomic uint64_t simulated; /* the time of the test, which does not wait; 0 = the clock */
static int listener;

/* Ends the program if a call failed. Verdicts are not failures. */
static int32_t need(const char *what, int32_t rc, int error) {
    if (rc >= 0) return rc;
    fprintf(stderr, "http_429: %s: %s\n", what, rc == TATCELL_ERR_SYSTEM ? strerror(error) : tatcell_strerror(rc));
    exit(1);
}

static uint64_t clock_now(void) {
    uint64_t now = simulated;
    int32_t error = 0, rc = now != 0 ? 0 : tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &now, &error);
    return need("clock", rc, error), now;
}

/* The value of a header field, without the spaces around it; "" if the request has none. */
static const char *field(const char *head, const char *name, size_t *length) {
    for (const char *line = head; (line = strstr(line, "\r\n")) != NULL;) {
        line += 2;
        if (strncasecmp(line, name, strlen(name)) != 0 || line[strlen(name)] != ':') continue;
        line += strlen(name) + 1, line += strspn(line, " \t"), *length = strcspn(line, "\r\n");
        while (*length > 0 && strchr(" \t", line[*length - 1]) != NULL) --*length;
        return line;
    }
    return *length = 0, "";
}

/* Decides a request. Writes the header fields that tell the client about its limit, and returns the status. */
static int decide(const char *key, size_t length, char fields[FIELDS]) {
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    tatcell_http_policy_t policy = TATCELL_HTTP_POLICY_INIT;
    size_t i = 0, keys = sizeof known / sizeof known[0];
    while (i < keys && (strlen(known[i]) != length || memcmp(known[i], key, length) != 0)) i++;
    if (i == keys) return 401;
    uint64_t now = clock_now();
    need("sweep", tatcell_table_sweep_due(&clients.table, &clients.sweeper, now), 0);
    int32_t rc = tatcell_table_check_ex(&clients.table, &clients.limit, now, key, length, 1, 0, &d, NULL);
    need("check", rc, 0);
    policy.name = "client", policy.limit = &clients.limit, policy.decision = &d;
    int32_t n = need("fields", tatcell_http_lines(&policy, 1, SECOND, TATCELL_HTTP_ALL, fields, FIELDS), 0);
    if (n >= FIELDS) fields[0] = 0; /* too long for the buffer: none is better than half of them */
    switch (rc) {
    case TATCELL_PASS: return 200;
    case TATCELL_CONTENDED: return 503; /* no verdict; Retry-After is 1 */
    case TATCELL_NEVER: return 413;     /* the cost is above the burst, so no wait helps */
    default: return 429;
    }
}

/* Answers one request and closes the connection. */
static void serve(int fd) {
    char head[HEAD + 1] = "", fields[FIELDS] = "";
    struct timeval most = {.tv_sec = PATIENCE};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    size_t length = 0;
    uint64_t until = clock_now() + PATIENCE * SECOND;
    for (ssize_t n = 1; n > 0 && length < HEAD && strstr(head, "\r\n\r\n") == NULL && clock_now() < until;) {
        n = recv(fd, head + length, HEAD - length, 0);
        if (n > 0) length += (size_t)n, head[length] = 0;
    }
    if (strstr(head, "\r\n\r\n") != NULL) {
        const char *key = field(head, "X-API-Key", &length);
        int status = decide(key, length, fields);
        dprintf(fd, "HTTP/1.1 %d \r\n%sConnection: close\r\nContent-Length: 0\r\n\r\n", status, fields);
    }
    close(fd);
}

static void *worker(void *unused) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) serve(fd);
    }
    return unused;
}

/* A client: asks once. Returns the status, and the seconds of Retry-After; 0 = none. */
static int ask(const struct sockaddr_in *at, const char *key, unsigned *seconds) {
    char answer[HEAD + 1] = "";
    size_t length = 0;
    int status = 0, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) != 0) need("connect", TATCELL_ERR_SYSTEM, errno);
    dprintf(fd, "GET / HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\n\r\n", key);
    for (ssize_t n = 1; n > 0 && length < HEAD; length += (size_t)n)
        if ((n = recv(fd, answer + length, HEAD - length, 0)) < 0) n = 0;
    close(fd), *seconds = (unsigned)strtoul(field(answer, "Retry-After", &length), NULL, 10);
    return sscanf(answer, "HTTP/1.1 %d", &status) == 1 ? status : -1;
}

static int test(const struct sockaddr_in *at) {
    unsigned seconds = 0, passed = 0;
    alarm(60), atomic_store(&simulated, 1000 * SECOND);
    while (passed < 99 && ask(at, "ann", &seconds) == 200) passed++;
    printf("%u of a burst of 20 pass, then 429 with Retry-After: %u\n", passed, seconds);
    int right = passed == 20 && seconds == 180 && ask(at, "ann", &seconds) == 429 && ask(at, "bob", &seconds) == 200 &&
                ask(at, "made up", &seconds) == 401;
    simulated += 180 * SECOND;
    right = right && ask(at, "ann", &seconds) == 200 && ask(at, "ann", &seconds) == 429;
    return puts(right ? "PASS" : "FAIL"), !right;
}

int main(int argc, char **argv) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    const char *text = argc == 3 ? argv[2] : "20/h burst 20";
    socklen_t size = sizeof at;
    size_t byte = 0;
    int32_t rc = tatcell_limit_spec_parse(&spec, text, strlen(text), SECOND, &byte);
    if (rc < 0) fprintf(stderr, "'%s', byte %zu\n", text, byte);
    need("limit", rc, 0), rc = tatcell_host_table_open(&spec, KEYS, TATCELL_FULL_DENY, &clients);
    need("table", rc, clients.memory.system_error);
    at.sin_port = htons((uint16_t)(argc == 3 ? strtoul(argv[1], NULL, 10) : 0));
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0) need("listen", TATCELL_ERR_SYSTEM, errno);
    signal(SIGPIPE, SIG_IGN);
    pthread_t thread;
    for (int i = 0; i < THREADS; i++) if (pthread_create(&thread, NULL, worker, NULL) != 0) return 1;
    if (argc == 1) return test(&at);
    for (printf("http://127.0.0.1:%d/\n", ntohs(at.sin_port)), fflush(stdout);;) pause();
}
