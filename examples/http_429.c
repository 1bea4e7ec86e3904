/* http_429.c: an HTTP server that answers 200 or 429, and tells its clients when to come back.
 *
 *   cc -O2 -Iinclude examples/http_429.c libtatcell.a -o http_429 && ./http_429
 *   curl -i -H 'X-API-Key: me' http://127.0.0.1:8429/
 *
 * Copy into a daemon: setup_limiter(), key_of() and answer(). What to look at:
 *   - the key is the client's own where it has one (an API key), else its address; a letter in front tells the two
 *     apart, so that nobody can send the bytes of an address as a key. Here every API key is taken as it comes: a
 *     daemon looks first whether it is one of its own, or else each made-up key would be a new client;
 *   - one table for all connections; the clock is read once a turn of the loop;
 *   - RateLimit-Policy is the same in every response, so it is made once;
 *   - the other fields come from the decision: seconds are rounded up, so who waits as it was told passes;
 *   - one refusal a second and key is logged, and says how many were not.
 *
 * A connection that sends nothing for 10 seconds is closed; requests with a body are not read (411).
 *
 * Options: -p port (0 = any free one), -u units -w seconds -b burst. SIGINT and SIGTERM end. */
#define _GNU_SOURCE /* accept4 */
#define USAGE "http_429 [-p port] [-u units] [-w seconds] [-b burst]"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "tatcell.h"

#define SECOND UINT64_C(1000000000) /* ticks are nanoseconds */

enum {
    SLOTS = 1 << 12,    /* 8 bytes each; a key holds one until its debt has drained */
    GATES = 256,        /* of the log: keys that share one share its line */
    CONNECTIONS = 64,
    REQUEST = 4096,     /* longest head of a request */
    RESPONSE = 1024,
    KEY = 64,           /* longest API key */
    IDLE = 10,          /* seconds */
};

struct connection {
    int fd;             /* -1 = free */
    uint32_t address;   /* network byte order */
    uint64_t heard;     /* when it last sent something */
    size_t got, sent, length;
    int last;           /* close once the answer is sent */
    char request[REQUEST + 1], response[RESPONSE];
};

static _Alignas(TATCELL_TABLE_MEMORY_ALIGN) unsigned char table_memory[TATCELL_TABLE_BYTES(SLOTS)];
static tatcell_table_t table;
static tatcell_limit_t limit;
static tatcell_log_t log_gates[GATES];
static char policy_line[128]; /* RateLimit-Policy, made once */
static struct connection connections[CONNECTIONS];
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "http_429: %s: %s\n", what, why);
    exit(1);
}

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void setup_limiter(uint64_t units, uint64_t seconds, uint64_t burst)
{
    uint8_t seed[16];
    if (getrandom(seed, sizeof seed, 0) != sizeof seed)
        die("seed", strerror(errno));
    tatcell_limit_spec_t per_client = TATCELL_LIMIT_SPEC_INIT;
    per_client.units = units, per_client.period = seconds * SECOND, per_client.burst = burst;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    options.fastest = &per_client, options.seed = seed;
    int32_t rc = tatcell_table_init(&table, table_memory, sizeof table_memory, &options);
    if (rc == 0)
        rc = tatcell_limit_init_table(&limit, &table, &per_client);
    tatcell_http_policy_t policy = TATCELL_HTTP_POLICY_INIT;
    policy.name = "client", policy.limit = &limit;
    if (rc == 0)
        rc = tatcell_http_lines(&policy, 1, SECOND, TATCELL_HTTP_RATELIMIT_POLICY, policy_line, sizeof policy_line);
    if (rc < 0)
        die("limiter", tatcell_strerror(rc));
}

/* The value of a header field, without the spaces around it; NULL where the request has none. */
static const char *field(const char *head, const char *name, size_t *length)
{
    size_t n = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line != NULL && line[2] != '\r'; line = strstr(line + 2, "\r\n")) {
        const char *value = line + 2 + n;
        if (strncasecmp(line + 2, name, n) != 0 || *value != ':')
            continue;
        value += 1 + strspn(value + 1, " \t");
        *length = strcspn(value, "\r\n");
        while (*length > 0 && (value[*length - 1] == ' ' || value[*length - 1] == '\t'))
            --*length;
        return value;
    }
    return NULL;
}

/* K and the API key, or A and the address. Returns its length. */
static size_t key_of(const struct connection *c, const char *head, unsigned char key[1 + KEY])
{
    size_t length = 0;
    const char *api = field(head, "X-API-Key", &length);
    if (api != NULL && length > 0 && length <= KEY) {
        key[0] = 'K';
        memcpy(key + 1, api, length);
        return 1 + length;
    }
    key[0] = 'A';
    memcpy(key + 1, &c->address, sizeof c->address);
    return 1 + sizeof c->address;
}

/* One line a second for each key, and in it how many there were. */
static void log_refusal(const struct connection *c, uint64_t hash, uint64_t now)
{
    uint32_t more = 0;
    if (tatcell_log_line(&log_gates[hash % GATES], now, SECOND, &more) != TATCELL_PASS)
        return;
    char address[INET_ADDRSTRLEN] = "?", others[48] = "";
    inet_ntop(AF_INET, &c->address, address, sizeof address);
    if (more > 0)
        snprintf(others, sizeof others, ", and %u more were not logged", (unsigned)more);
    printf("refused %s%s\n", address, others);
    fflush(stdout);
}

static void respond(struct connection *c, const char *status, const char *fields)
{
    int n = snprintf(c->response, sizeof c->response, "HTTP/1.1 %s\r\n%sContent-Type: text/plain\r\n%s"
                     "Content-Length: %zu\r\n\r\n%s\n", status, c->last ? "Connection: close\r\n" : "", fields,
                     strlen(status) + 1, status);
    if (n < 0 || (size_t)n >= sizeof c->response)
        die("response", "longer than its buffer");
    c->sent = 0, c->length = (size_t)n;
}

/* The whole limiter: one decision, and what the response says of it. */
static void answer(struct connection *c, const char *head, uint64_t now)
{
    unsigned char key[1 + KEY];
    size_t length = key_of(c, head, key);
    uint64_t hash = 0;
    tatcell_decision_t decision = TATCELL_DECISION_INIT;
    int32_t rc = tatcell_table_hash(&table, key, length, &hash);
    if (rc == 0)
        rc = tatcell_table_check_ex_hash(&table, &limit, now, hash, 1, 0, &decision, NULL);
    if (rc < 0)
        die("limiter", tatcell_strerror(rc));
    tatcell_http_policy_t policy = TATCELL_HTTP_POLICY_INIT;
    policy.name = "client", policy.decision = &decision;
    char fields[RESPONSE / 2];
    size_t made = strlen(policy_line);
    memcpy(fields, policy_line, made + 1);
    int32_t more = tatcell_http_lines(&policy, 1, SECOND, TATCELL_HTTP_ALL & ~(uint32_t)TATCELL_HTTP_RATELIMIT_POLICY,
                                      fields + made, sizeof fields - made);
    if (more < 0 || (size_t)more >= sizeof fields - made)
        die("fields", more < 0 ? tatcell_strerror(more) : "longer than their buffer");
    switch (rc) {
    case TATCELL_PASS: respond(c, "200 OK", fields); break;
    case TATCELL_CONTENDED: respond(c, "503 Service Unavailable", fields); break; /* no verdict; with Retry-After: 1 */
    default: respond(c, "429 Too Many Requests", fields); log_refusal(c, hash, now); break;
    }
}

static void hang_up(struct connection *c)
{
    close(c->fd);
    c->fd = -1;
}

/* Answers the first request that is there as a whole; those behind it wait until it is sent. */
static void serve(struct connection *c, uint64_t now)
{
    c->request[c->got] = 0;
    char *end = strstr(c->request, "\r\n\r\n");
    size_t length;
    const char *value;
    if (end == NULL && c->got < REQUEST)
        return;
    if (end == NULL) {
        c->last = 1, c->got = 0;
        respond(c, "431 Request Header Fields Too Large", "");
        return;
    }
    end += 4;
    char after = *end;
    *end = 0; /* the head alone */
    value = field(c->request, "Connection", &length);
    c->last = value != NULL && length == 5 && strncasecmp(value, "close", 5) == 0;
    if (strncmp(c->request, "GET ", 4) != 0 || field(c->request, "Content-Length", &length) != NULL ||
        field(c->request, "Transfer-Encoding", &length) != NULL) {
        c->last = 1; /* where the next request begins is not known */
        respond(c, "411 Length Required", "");
    } else {
        answer(c, c->request, now);
    }
    *end = after;
    c->got -= (size_t)(end - c->request);
    memmove(c->request, end, c->got);
}

static void turn(struct connection *c, short events, uint64_t now)
{
    if (c->length == 0 && events != 0) {
        ssize_t n = recv(c->fd, c->request + c->got, REQUEST - c->got, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            hang_up(c);
            return;
        }
        if (n > 0)
            c->got += (size_t)n, c->heard = now;
        serve(c, now);
    }
    while (c->length > 0) {
        ssize_t n = send(c->fd, c->response + c->sent, c->length - c->sent, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return; /* poll says when there is room */
        if (n < 0) {
            hang_up(c);
            return;
        }
        c->sent += (size_t)n;
        if (c->sent < c->length)
            continue;
        c->length = 0;
        if (c->last) {
            hang_up(c);
            return;
        }
        serve(c, now); /* what came behind the request */
    }
}

static void take_new(int listener, uint64_t now)
{
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    int fd = accept4(listener, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *c = &connections[i];
        if (c->fd >= 0)
            continue;
        c->fd = fd, c->address = from.sin_addr.s_addr, c->heard = now;
        c->got = c->sent = c->length = 0, c->last = 0;
        return;
    }
    close(fd); /* full */
}

static int setup_listener(uint16_t port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
    socklen_t length = sizeof at;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &length) != 0)
        die("listen on 127.0.0.1", strerror(errno));
    printf("listening on http://127.0.0.1:%u/\n", (unsigned)ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv)
{
    unsigned long port = 8429, units = 30, seconds = 60, burst = 5;
    int option;
    while ((option = getopt(argc, argv, "p:u:w:b:")) != -1) {
        switch (option) {
        case 'p': port = strtoul(optarg, NULL, 10); break;
        case 'u': units = strtoul(optarg, NULL, 10); break;
        case 'w': seconds = strtoul(optarg, NULL, 10); break;
        case 'b': burst = strtoul(optarg, NULL, 10); break;
        default: die("usage", USAGE);
        }
    }
    if (port > UINT16_MAX || seconds > 31536000 || optind != argc)
        die("usage", USAGE);
    struct sigaction act = { .sa_handler = on_signal }; /* no SA_RESTART: a signal ends poll */
    sigaction(SIGINT, &act, NULL), sigaction(SIGTERM, &act, NULL);
    setup_limiter(units, seconds, burst);
    int listener = setup_listener((uint16_t)port);
    for (int i = 0; i < CONNECTIONS; i++)
        connections[i].fd = -1;
    while (!stop) {
        struct pollfd polled[1 + CONNECTIONS] = { { .fd = listener, .events = POLLIN } };
        for (int i = 0; i < CONNECTIONS; i++) { /* poll passes over what is negative */
            short events = connections[i].length > 0 ? POLLOUT : POLLIN;
            polled[1 + i] = (struct pollfd){ .fd = connections[i].fd, .events = events };
        }
        if (poll(polled, 1 + CONNECTIONS, 1000) < 0 && errno != EINTR)
            die("poll", strerror(errno));
        uint64_t now = clock_ns(); /* once a turn */
        for (int i = 0; i < CONNECTIONS; i++) {
            struct connection *c = &connections[i];
            if (c->fd >= 0 && polled[1 + i].revents != 0)
                turn(c, polled[1 + i].revents, now);
            if (c->fd >= 0 && now - c->heard > IDLE * SECOND)
                hang_up(c);
        }
        if (polled[0].revents != 0)
            take_new(listener, now);
    }
    return 0;
}
