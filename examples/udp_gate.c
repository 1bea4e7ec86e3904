/* udp_gate.c: a UDP server that limits every source address with one tatcell call per burst.
 *
 *   cc -O2 -Iinclude examples/udp_gate.c libtatcell.a -o udp_gate && ./udp_gate
 *
 * Copy into a daemon: setup_limiter() and the first half of main's loop. What makes it hold under attack:
 *   - the limiter runs before any work is done for a request, and a refused request gets no answer;
 *   - the clock is read once per burst: tatcell never reads one, time is a parameter;
 *   - the table is static memory, written once at the start: no attack makes the process grow;
 *   - the seed is secret and new at every start: nobody can choose addresses that collide;
 *   - an answer is no longer than its request: a forged source address gains nothing.
 *
 * Options: -p port, -w rounds of work per answer, -b bytes of receive buffer, -l file (append every
 * decision), -o (start with the limiter off). SIGUSR1 toggles the limiter, SIGINT and SIGTERM end. */
#define _GNU_SOURCE /* recvmmsg, sendmmsg */
#define USAGE "udp_gate [-p port] [-w rounds] [-b bytes] [-l file] [-o]"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "tatcell.h"

enum {
    BURST = TATCELL_BURST_MAX, /* datagrams per system call */
    SLOTS = 1 << 16,           /* 8 bytes each; a source holds one until its debt has drained */
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

static _Alignas(TATCELL_TABLE_MEMORY_ALIGN) unsigned char table_memory[TATCELL_TABLE_BYTES(SLOTS)];
static tatcell_table_t table;
static tatcell_limit_t limit;
static volatile sig_atomic_t stop, limiting = 1;

static void on_signal(int number)
{
    if (number == SIGUSR1) limiting = !limiting; else stop = 1;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "udp_gate: %s: %s\n", what, why);
    exit(1);
}

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void setup_limiter(void)
{
    uint8_t seed[16];
    if (getrandom(seed, sizeof seed, 0) != sizeof seed)
        die("seed", strerror(errno));
    tatcell_limit_spec_t per_source = TATCELL_LIMIT_SPEC_INIT;
    /* Ticks are microseconds: 10 units a second, 20 at one instant after idle. A slot's clock spans 101 days:
     * a daemon that runs longer sweeps all slots once in that time (sweep_interval of tatcell_table_info). */
    per_source.units = 10, per_source.period = 1000000, per_source.burst = 20;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    options.fastest = &per_source;
    options.seed = seed;
    options.policy = TATCELL_FULL_ADMIT; /* a full set lets new sources pass and still holds the known ones */
    int32_t rc = tatcell_table_init(&table, table_memory, sizeof table_memory, &options);
    if (rc == 0)
        rc = tatcell_limit_init_table(&limit, &table, &per_source);
    if (rc != 0)
        die("limiter", tatcell_strerror(rc));
}

static int setup_socket(uint16_t port, int buffer)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct timeval wake = { .tv_usec = 100000 }; /* so that a signal just before recvmmsg is seen */
    socklen_t len = sizeof buffer;
    char what[64];
    snprintf(what, sizeof what, "127.0.0.1 port %u", (unsigned)port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wake, sizeof wake) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, &len) != 0)
        die("socket", strerror(errno));
    if (buffer < LEAST_BUFFER)
        die("receive buffer", "too small for two bursts: ask for more with -b, or raise net.core.rmem_max");
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0)
        die(what, strerror(errno));
    printf("listening on %s, receive buffer %d bytes\n", what, buffer);
    fflush(stdout);
    return fd;
}

/* Stands for the daemon's real work on a request: a chain of multiplications and shifts. */
static uint64_t work(const struct message *request, unsigned long rounds)
{
    uint64_t h = request->sent_ns ^ request->source;
    while (rounds--)
        h = (h ^ h >> 29) * 0x9e3779b97f4a7c15u;
    return h;
}

int main(int argc, char **argv)
{
    unsigned long port = 47474, rounds = 10000, buffer = 4 << 20;
    int log = -1, option;
    while ((option = getopt(argc, argv, "p:w:b:l:o")) != -1) {
        switch (option) {
        case 'p': port = strtoul(optarg, NULL, 10); break;
        case 'w': rounds = strtoul(optarg, NULL, 10); break;
        case 'b': buffer = strtoul(optarg, NULL, 10); break;
        case 'o': limiting = 0; break;
        case 'l':
            if ((log = open(optarg, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) < 0)
                die(optarg, strerror(errno));
            break;
        default: die("usage", USAGE);
        }
    }
    if (port == 0 || port > UINT16_MAX || buffer > INT32_MAX || optind != argc)
        die("usage", USAGE);
    struct sigaction act = { .sa_handler = on_signal }; /* no SA_RESTART: a signal ends recvmmsg */
    sigaction(SIGINT, &act, NULL), sigaction(SIGTERM, &act, NULL), sigaction(SIGUSR1, &act, NULL);
    setup_limiter();
    int fd = setup_socket((uint16_t)port, (int)buffer);

    static struct message message[BURST];
    static struct sockaddr_in from[BURST];
    static struct decision decided[BURST];
    struct iovec iov[BURST];
    struct mmsghdr in[BURST] = { 0 }, out[BURST];
    for (int i = 0; i < BURST; i++) {
        iov[i] = (struct iovec){ &message[i], sizeof message[i] };
        in[i].msg_hdr = (struct msghdr){ .msg_name = &from[i], .msg_namelen = sizeof from[i],
                                         .msg_iov = &iov[i], .msg_iovlen = 1 };
    }
    tatcell_counters_t counters = TATCELL_COUNTERS_INIT;
    tatcell_burst_t burst = TATCELL_BURST_INIT; /* key i is the address in from[i] */
    burst.limit = &limit, burst.counters = &counters;
    burst.keys = &from[0].sin_addr, burst.key_len = sizeof from[0].sin_addr, burst.stride = sizeof from[0];
    uint64_t bursts = 0, decisions = 0, decision_ns = 0;
    while (!stop) {
        int n = recvmmsg(fd, in, BURST, MSG_WAITFORONE, NULL);
        if (n <= 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            die("recvmmsg", strerror(errno));
        uint64_t now_ns = clock_ns(), now_us = now_ns / 1000, pass = UINT64_MAX;
        uint32_t limited = limiting != 0;
        if (limited) { /* the whole limiter: bit i of pass is the verdict of key i */
            burst.now = now_us, burst.count = (uint32_t)n;
            int32_t rc = tatcell_table_check_burst(&table, &burst, NULL);
            if (rc != 0)
                die("limiter", tatcell_strerror(rc));
            pass = burst.pass;
            decision_ns += clock_ns() - now_ns; /* only for the figures below */
            decisions += (uint64_t)n, bursts++;
        }
        if (limited && log >= 0) {
            for (int i = 0; i < n; i++)
                decided[i] = (struct decision){ now_us, from[i].sin_addr.s_addr, pass >> i & 1 };
            if (write(log, decided, (size_t)n * sizeof decided[0]) < 0)
                die("log", strerror(errno));
        }
        unsigned answers = 0;
        for (int i = 0; i < n; i++) {
            if (!(pass >> i & 1) || in[i].msg_len != sizeof message[i])
                continue;
            message[i].limited = limited;
            message[i].decided_us = now_us;
            message[i].digest = work(&message[i], rounds);
            out[answers++] = in[i];
        }
        for (unsigned done = 0; done < answers;) { /* an answer that cannot be sent is lost, as UDP may lose it */
            int sent = sendmmsg(fd, out + done, answers - done, 0);
            done += sent > 0 ? (unsigned)sent : 1;
        }
    }
    printf("bursts %" PRIu64 "\ndecisions %" PRIu64 "\nns_per_decision %.1f\n", bursts, decisions,
           decisions ? (double)decision_ns / (double)decisions : 0.0);
    printf("conforming %" PRIu64 "\nnon_conforming %" PRIu64 "\ncontended %" PRIu64 "\nuntracked %" PRIu64 "\n",
           counters.conforming, counters.non_conforming, counters.contended, counters.untracked);
    return 0;
}
