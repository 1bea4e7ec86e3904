/* dns_rrl.c: a DNS server over UDP that limits the answers to each network (response rate limiting).
 *
 *   cc -O2 -Iinclude examples/dns_rrl.c libtatcell.a -o dns_rrl
 *   ./dns_rrl 127.0.0.1 5300 '50/s burst 20'     answers each question for A with 192.0.2.1, for ever
 *   ./dns_rrl                                    tests itself on loopback
 *
 * A forged question makes a DNS server send its answer to a victim, so each network has a limit. One call decides for
 * up to 64 questions that have come, each by all networks of its address. Every second refused question gets an empty
 * answer with TC set: an honest client asks again by TCP, and a forger gains nothing. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tatcell.h"
#include "tatcell_host.h"

#define SECOND UINT64_C(1000000000) /* ticks are nanoseconds */
enum { SLOTS = 1 << 16, TURN = 64, SLIP = 2, HEADER = 12, RECORD = 16, MESSAGE = 512 };
static const tatcell_rung_t v4[] = {{24, 1}, {16, 64}}, v6[] = {{56, 1}, {48, 16}}; /* a /16 gets 64 times a /24 */
static tatcell_ladder_t ladder;
static tatcell_table_t table;
static tatcell_sweeper_t sweeper; /* of the table */
static tatcell_slip_t slip;
static tatcell_log_t gate;

/* Ends the program if a call failed. Verdicts are not failures. */
static void need(const char *what, int32_t rc, int error) {
    if (rc >= 0) return;
    fprintf(stderr, "dns_rrl: %s: %s\n", what, rc == TATCELL_ERR_SYSTEM ? strerror(error) : tatcell_strerror(rc));
    exit(1);
}

static void setup_limiter(const char *text) {
    tatcell_limit_spec_t one = TATCELL_LIMIT_SPEC_INIT, fastest = one, slowest = one;
    tatcell_ladder_spec_t rungs = TATCELL_LADDER_SPEC_INIT;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    tatcell_host_memory_t memory = TATCELL_HOST_MEMORY_INIT;
    uint8_t seed[16]; /* secret and new at every start: nobody can choose addresses that collide */
    int32_t error = 0, rc = tatcell_limit_spec_parse(&one, text, strlen(text), SECOND, NULL);
    need(text, rc, 0);
    rc = tatcell_host_random(seed, sizeof seed, &error), need("seed", rc, error);
    rc = tatcell_host_memory_map(tatcell_table_bytes(SLOTS), 0, &memory), need("memory", rc, memory.system_error);
    rungs.v4 = v4, rungs.v4_count = 2, rungs.v6 = v6, rungs.v6_count = 2;
    need(text, tatcell_ladder_table_specs(&one, &rungs, &fastest, &slowest), 0);
    options.fastest = &fastest, options.slowest = &slowest, options.seed = seed, options.policy = TATCELL_FULL_ADMIT;
    need(text, tatcell_table_init(&table, memory.memory, memory.bytes, &options), 0);
    need(text, tatcell_ladder_init(&ladder, &table, &one, &rungs), 0);
}

/* Says which network is over its limit: one line a second, and the number of those left out. */
static void report(const void *address, size_t length, uint64_t now) {
    tatcell_decision_t d = TATCELL_DECISION_INIT;
    tatcell_rung_t rung = {0, 0};
    uint32_t more = 0;
    char name[INET6_ADDRSTRLEN] = "?";
    int32_t rc = tatcell_log_check(&gate, SECOND, now, &more);
    if (need("log", rc, 0), rc != TATCELL_PASS) return;
    need("log", tatcell_ladder_peek(&ladder, &table, now, address, length, 1, &d), 0);
    need("log", tatcell_ladder_rung(&ladder, address, length, d.policy, &rung), 0);
    inet_ntop(length == 4 ? AF_INET : AF_INET6, address, name, sizeof name);
    fprintf(stderr, "%s: its /%u is over the limit; %u lines left out before\n", name, rung.bits, more);
}

/* Returns where the question ends, or 0 if the message is not a query of one question. */
static size_t question_end(const uint8_t *m, size_t length) {
    size_t end = HEADER;
    if (length < HEADER || (m[2] & 0xf8) != 0 || m[4] != 0 || m[5] != 1) return 0;
    while (end < length && m[end] != 0 && m[end] < 64) end += 1u + m[end];
    return end + 5 > length || m[end] != 0 ? 0 : end + 5;
}

/* Turns a question into its answer. Returns the length of the answer; 0 = none. */
static size_t answer(uint8_t *m, size_t end, int passes) {
    static const uint8_t record[RECORD] = {0xc0, HEADER, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1};
    m[2] = (uint8_t)(0x84 | (m[2] & 1)), m[3] = 0, memset(m + 6, 0, 6); /* authoritative, no record so far */
    if (!passes) {
        int32_t rc = tatcell_slip_check(&slip, SLIP);
        return need("slip", rc, 0), m[2] |= 2, rc == TATCELL_PASS ? end : 0;
    }
    if (memcmp(m + end - 4, "\0\1\0\1", 4) != 0) return end; /* not A of class IN */
    return memcpy(m + end, record, sizeof record), m[7] = 1, end + sizeof record;
}

/* Sweeps what is due, and answers up to TURN datagrams that have come. Returns how many there were. */
static int turn(int fd, uint64_t now) {
    static uint8_t m[TURN][MESSAGE + RECORD];
    struct sockaddr_in6 from[TURN]; /* or a sockaddr_in, which is shorter */
    struct mmsghdr in[TURN];
    struct iovec parts[TURN];
    const void *addresses[TURN];
    size_t end[TURN], lengths[TURN];
    int which[TURN];
    uint64_t pass = 0;
    tatcell_ladder_burst_t burst = TATCELL_LADDER_BURST_INIT;
    for (int i = 0; i < TURN; i++) {
        parts[i] = (struct iovec){m[i], MESSAGE};
        in[i].msg_hdr = (struct msghdr){&from[i], sizeof from[i], &parts[i], 1, NULL, 0, 0};
    }
    int n = recvmmsg(fd, in, TURN, MSG_DONTWAIT, NULL); /* -1: nothing there, or an error of an earlier answer */
    for (int i = 0; i < n; i++) {
        if ((end[i] = question_end(m[i], in[i].msg_len)) == 0) continue;
        int old = from[i].sin6_family == AF_INET;
        addresses[burst.count] = old ? (void *)&((struct sockaddr_in *)&from[i])->sin_addr : &from[i].sin6_addr;
        lengths[burst.count] = old ? 4 : 16, which[burst.count++] = i;
    }
    need("sweep", tatcell_table_sweep_due(&table, &sweeper, now), 0);
    burst.now = now, burst.address_pointers = addresses, burst.address_lens = lengths;
    need("check", tatcell_ladder_check_burst(&ladder, &table, &burst, &pass), 0);
    for (unsigned k = 0; k < burst.count; k++) {
        int i = which[k], passes = pass >> k & 1;
        size_t out = answer(m[i], end[i], passes);
        if (!passes) report(addresses[k], lengths[k], now);
        if (out > 0) sendto(fd, m[i], out, MSG_DONTWAIT, (struct sockaddr *)&from[i], in[i].msg_hdr.msg_namelen);
    }
    return n > 0 ? n : 0;
}

static int udp_socket(const char *host, const char *port) {
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM}, *at = NULL;
    if (getaddrinfo(host, port, &hints, &at) != 0) need(host, TATCELL_ERR_ADDRESS, 0);
    int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, at->ai_addr, at->ai_addrlen) != 0) need(host, TATCELL_ERR_SYSTEM, errno);
    return freeaddrinfo(at), fd;
}

/* Sends n questions from an address at one instant. Returns whether as many as expected are answered and truncated. */
static int ask(int server, const char *client, int n, uint64_t now, int answered, int truncated) {
    static const uint8_t question[] = {0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1};
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    struct pollfd ready = {.fd = server, .events = POLLIN};
    uint8_t m[MESSAGE];
    int got[2] = {0, 0}, seen = 0, fd = udp_socket(client, "0");
    if (getsockname(server, (struct sockaddr *)&at, &size) != 0) return 0;
    if (connect(fd, (struct sockaddr *)&at, size) != 0) return 0;
    for (int i = 0; i < n; i++) if (send(fd, question, sizeof question, 0) != (ssize_t)sizeof question) return 0;
    while (seen < n && poll(&ready, 1, -1) == 1) seen += turn(server, now);
    for (int i = 0; i < answered + truncated && recv(fd, m, sizeof m, 0) > 0; i++) got[m[2] >> 1 & 1]++;
    printf("%s: %d asked, %d answered, %d truncated\n", client, n, got[0], got[1]);
    return close(fd), seen == n && got[0] == answered && got[1] == truncated;
}

int main(int argc, char **argv) {
    if (argc != 1 && argc != 4) return fputs("usage: dns_rrl [ADDRESS PORT LIMIT]\n", stderr), 2;
    setup_limiter(argc == 4 ? argv[3] : "10/s burst 20");
    int fd = udp_socket(argc == 4 ? argv[1] : "127.0.0.1", argc == 4 ? argv[2] : "0");
    if (argc == 1 && alarm(60) == 0) { /* a burst, a neighbour in its network, another network, a second later */
        int right = ask(fd, "127.0.0.2", 60, SECOND, 20, 20) && ask(fd, "127.0.0.77", 10, SECOND, 0, 5) &&
                    ask(fd, "127.0.1.2", 5, SECOND, 5, 0) && ask(fd, "127.0.0.2", 30, 2 * SECOND, 10, 10);
        return puts(right ? "PASS" : "FAIL"), !right;
    }
    for (struct pollfd ready = {.fd = fd, .events = POLLIN};;) {
        if (poll(&ready, 1, 1000) < 0 && errno != EINTR) need("poll", TATCELL_ERR_SYSTEM, errno);
        uint64_t now = 0; /* the clock is read once a turn */
        int32_t error = 0, rc = tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &now, &error);
        need("clock", rc, error), turn(fd, now);
    }
}
