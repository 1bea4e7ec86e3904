/* udp_gate.c: a UDP server that limits every source address with one tatcell call per burst of datagrams.
 *
 *   cc -O2 -Iinclude demo/udp_gate.c libtatcell.a -o udp_gate && ./udp_gate
 *
 * What makes it hold under attack: the limiter runs before any work for a request, and a refused request gets no
 * answer. The clock is read once per burst. The memory of the table never grows. The seed is secret and new at every
 * start, so nobody can choose addresses that collide. An answer is no longer than its request, so a forged source
 * address gains nothing.
 *
 * Options: -p port, -w rounds of work per answer, -b bytes of receive buffer, -l file (append every decision), -o
 * (start with the limiter off). SIGUSR1 toggles the limiter; SIGINT and SIGTERM end it. */
#define _GNU_SOURCE /* recvmmsg, sendmmsg */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tatcell.h"
#include "tatcell_host.h"

#define USAGE "udp_gate [-p port] [-w rounds] [-b bytes] [-l file] [-o]"
enum {
    BURST = TATCELL_BURST_MAX, /* datagrams per system call */
    KEYS = 1 << 14,            /* sources in debt at the same time */
    LEAST_BUFFER = 64 * 1024,  /* a smaller receive buffer overflows between two system calls */
};
struct message {               /* request and answer, of one length */
    uint64_t sent_ns;          /* the client's own, echoed */
    uint32_t source;           /* the client's own, echoed */
    uint32_t limited;          /* answer: 1 if the limiter was on */
    uint64_t decided_us;       /* answer: the time that the decision was made with */
    uint64_t digest;           /* answer: result of the work */
};
struct decision {              /* one item of the log, for a program that replays it */
    uint64_t now_us;
    uint32_t address;          /* network byte order */
    uint32_t passed;
};
static tatcell_host_table_t gate = TATCELL_HOST_TABLE_INIT;
static volatile sig_atomic_t stop, limiting = 1;

static void on_signal(int number) { if (number == SIGUSR1) limiting = !limiting; else stop = 1; }

static void die(const char *what, const char *why) {
    fprintf(stderr, "udp_gate: %s: %s\n", what, why);
    exit(1);
}
/* Ends the program if a call failed. Verdicts are not failures. */
static void need(const char *what, int32_t rc, int error) {
    if (rc < 0) die(what, rc == TATCELL_ERR_SYSTEM ? strerror(error) : tatcell_strerror(rc));
}
static uint64_t clock_ns(void) {
    uint64_t now = 0;
    int32_t error = 0, rc = tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &now, &error);
    return need("clock", rc, error), now;
}

static int setup_socket(unsigned long port, unsigned long bytes) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval wake = {.tv_usec = 100000}; /* so that a signal just before recvmmsg is seen */
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), buffer = (int)bytes;
    socklen_t len = sizeof buffer;
    at.sin_port = htons((uint16_t)port);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wake, sizeof wake) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, &len) != 0) die("socket", strerror(errno));
    if (buffer < LEAST_BUFFER) die("receive buffer", "too small for two bursts: use -b, or raise net.core.rmem_max");
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0) die("port", strerror(errno));
    printf("listening on 127.0.0.1 port %lu, receive buffer %d bytes\n", port, buffer);
    return fflush(stdout), fd;
}

/* Stands for the daemon's real work on a request: a chain of multiplications and shifts. */
static uint64_t work(const struct message *request, unsigned long rounds) {
    uint64_t h = request->sent_ns ^ request->source;
    while (rounds--) h = (h ^ h >> 29) * 0x9e3779b97f4a7c15u;
    return h;
}

int main(int argc, char **argv) {
    unsigned long port = 47474, rounds = 10000, buffer = 4 << 20;
    const char *file = NULL;
    int log = -1;
    for (int option; (option = getopt(argc, argv, "p:w:b:l:o")) != -1;) {
        switch (option) {
        case 'p': port = strtoul(optarg, NULL, 10); break;
        case 'w': rounds = strtoul(optarg, NULL, 10); break;
        case 'b': buffer = strtoul(optarg, NULL, 10); break;
        case 'o': limiting = 0; break;
        case 'l': log = open(optarg, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), file = optarg; break;
        default: die("usage", USAGE);
        }
    }
    if (file != NULL && log < 0) die(file, strerror(errno));
    if (port == 0 || port > UINT16_MAX || buffer > INT32_MAX || optind != argc) die("usage", USAGE);
    struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART: a signal ends recvmmsg */
    sigaction(SIGINT, &act, NULL), sigaction(SIGTERM, &act, NULL), sigaction(SIGUSR1, &act, NULL);
    tatcell_limit_spec_t per_source = TATCELL_LIMIT_SPEC_INIT; /* ticks are microseconds */
    need("limit", tatcell_limit_spec_parse(&per_source, "10/s burst 20", 13, 1000000, NULL), 0);
    /* A full set lets new sources pass and still holds the known ones. */
    int32_t rc = tatcell_host_table_open(&per_source, KEYS, TATCELL_FULL_ADMIT, &gate);
    need("table", rc, gate.memory.system_error);
    int fd = setup_socket(port, buffer);

    static struct message message[BURST];
    static struct sockaddr_in from[BURST];
    static struct decision decided[BURST];
    struct iovec iov[BURST];
    struct mmsghdr in[BURST] = {0}, out[BURST];
    for (int i = 0; i < BURST; i++) {
        iov[i] = (struct iovec){&message[i], sizeof message[i]};
        in[i].msg_hdr = (struct msghdr){.msg_name = &from[i], .msg_namelen = sizeof from[i],
                                        .msg_iov = &iov[i], .msg_iovlen = 1};
    }
    tatcell_burst_t burst = TATCELL_BURST_INIT; /* key i is the address in from[i] */
    burst.limit = &gate.limit;
    burst.keys = &from[0].sin_addr, burst.key_len = sizeof from[0].sin_addr, burst.stride = sizeof from[0];
    uint64_t bursts = 0, decisions = 0, decision_ns = 0;
    while (!stop) {
        int n = recvmmsg(fd, in, BURST, MSG_WAITFORONE, NULL);
        if (n < 0 && errno != EINTR && errno != EAGAIN) die("recvmmsg", strerror(errno));
        uint64_t now_ns = clock_ns(), now_us = now_ns / 1000, pass = UINT64_MAX;
        uint32_t limited = limiting != 0;
        if (limited && n > 0) { /* the whole limiter: bit i of pass is the verdict of key i */
            burst.now = now_us, burst.count = (uint32_t)n;
            need("sweep", tatcell_table_sweep_due(&gate.table, &gate.sweeper, now_us), 0);
            need("limiter", tatcell_table_check_burst(&gate.table, &burst, NULL), 0), pass = burst.pass;
            decision_ns += clock_ns() - now_ns, decisions += (uint64_t)n, bursts++; /* only for the figures below */
        }
        if (limited && log >= 0 && n > 0) {
            for (int i = 0; i < n; i++) decided[i] = (struct decision){now_us, from[i].sin_addr.s_addr, pass >> i & 1};
            if (write(log, decided, (size_t)n * sizeof decided[0]) < 0) die("log", strerror(errno));
        }
        unsigned answers = 0;
        for (int i = 0; i < n; i++) {
            if (!(pass >> i & 1) || in[i].msg_len != sizeof message[i]) continue;
            message[i].limited = limited, message[i].decided_us = now_us, message[i].digest = work(&message[i], rounds);
            out[answers++] = in[i];
        }
        for (unsigned done = 0; done < answers;) { /* an answer that cannot be sent is lost, as UDP may lose it */
            int sent = sendmmsg(fd, out + done, answers - done, 0);
            done += sent > 0 ? (unsigned)sent : 1;
        }
    }
    printf("bursts %" PRIu64 "\ndecisions %" PRIu64 "\nns_per_decision %.1f\n", bursts, decisions,
           decisions ? (double)decision_ns / (double)decisions : 0.0);
}
