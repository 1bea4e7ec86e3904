/* traffic.c - packets for a policer, on a veth pair.
 *   traffic send IF MAC SECONDS SOURCE,PPS[,COUNT]...
 *                            UDP from forged sources (COUNT of them, one after the other), PPS packets a second
 *                            together, to port 9999; prints what was sent, the seconds that it took and those in which
 *                            nothing was sent for 50 ms or more, and the seconds of a CPU
 *   traffic receive SECONDS  prints "SOURCE PACKETS" lines
 *   traffic series SECONDS WORK
 *                            the same with WORK ns of work for each packet, and before them a line each 100 ms:
 *                            milliseconds, packets of sources 10.66.0.0/16, packets of others
 *   traffic spend IF SOURCE SECONDS
 *                            a process that spends from the source's key in the policer's table, 50 times a second;
 *                            prints how often it passed */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../maps.h"

#define PORT 9999
#define BATCH 64
#define FRAME 82
#define SOURCES 65536

struct stream {
    struct in6_addr from;
    int v6, count;
    double pps;
    uint64_t sent;
};

static void put16(unsigned char *at, unsigned n) {
    at[0] = (unsigned char)(n >> 8), at[1] = (unsigned char)n;
}

/* The ones' complement sum of big-endian words. */
static unsigned sum16(const unsigned char *at, size_t bytes, unsigned sum) {
    for (size_t i = 0; i < bytes; i += 2) sum += (unsigned)(at[i] << 8 | at[i + 1]);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* A datagram of 20 bytes from the next source of a stream; its length. */
static size_t frame_of(unsigned char *f, const unsigned char *mac, struct stream *s) {
    static const unsigned char TO4[4] = {10, 77, 0, 1}, TO6[16] = {0xfd, 0x77, [15] = 1};
    unsigned char *ip = f + 14, *udp = ip + (s->v6 ? 40 : 20), from[16];
    uint32_t low, step = (uint32_t)(s->sent % (uint64_t)s->count);
    memcpy(from, &s->from, 16);
    /* IPv4: the next address; IPv6: the next network of 64 bits. */
    memcpy(&low, from + (s->v6 ? 4 : 0), 4);
    low = htonl(ntohl(low) + step);
    memcpy(from + (s->v6 ? 4 : 0), &low, 4);
    memset(f, 0, FRAME);
    memcpy(f, mac, 6);
    f[6] = 2, f[11] = 7;
    put16(f + 12, s->v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IP);
    put16(udp, 40000), put16(udp + 2, PORT), put16(udp + 4, 28);
    if (s->v6) {
        ip[0] = 0x60, ip[5] = 28, ip[6] = IPPROTO_UDP, ip[7] = 64;
        memcpy(ip + 8, from, 16), memcpy(ip + 24, TO6, 16);
        put16(udp + 6, 0xffff ^ sum16(ip + 8, 32, sum16(udp, 28, 28 + IPPROTO_UDP)));
    } else {
        ip[0] = 0x45, ip[3] = 48, ip[8] = 64, ip[9] = IPPROTO_UDP;
        memcpy(ip + 12, from, 4), memcpy(ip + 16, TO4, 4);
        put16(ip + 10, 0xffff ^ sum16(ip, 20, 0));
    }
    s->sent++;
    return s->v6 ? 82 : 62;
}

static int do_send(int argc, char **argv) {
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(argv[2])};
    struct stream streams[16] = {0};
    unsigned char mac[6], frames[BATCH][FRAME];
    struct mmsghdr messages[BATCH] = {0};
    struct iovec vectors[BATCH];
    struct rusage used;
    int count = argc - 5, fd = socket(AF_PACKET, SOCK_RAW, 0);
    double seconds = atof(argv[4]), passed = 0, stalled = 0;
    uint64_t start = now();
    if (fd < 0 || to.sll_ifindex == 0 || count < 1 || count > 16) die("send: %s", strerror(errno));
    if (sscanf(argv[3], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) != 6)
        die("MAC");
    for (int i = 0; i < count; i++) {
        char *pps = strchr(argv[5 + i], ','), *sources = pps ? strchr(pps + 1, ',') : NULL;
        if (!pps) die("SOURCE,PPS[,COUNT]");
        *pps = 0;
        streams[i].v6 = strchr(argv[5 + i], ':') != NULL;
        inet_pton(streams[i].v6 ? AF_INET6 : AF_INET, argv[5 + i], &streams[i].from);
        streams[i].pps = atof(pps + 1), streams[i].count = sources ? atoi(sources + 1) : 1;
    }
    while (passed < seconds) {
        const double before = passed;
        passed = (double)(now() - start) / 1e9;
        if (passed - before >= 0.05) stalled += passed - before;
        for (int i = 0; i < count; i++) {
            struct stream *s = &streams[i];
            double due = s->pps * (passed < seconds ? passed : seconds) - (double)s->sent;
            unsigned n = 0;
            for (; n < BATCH && n < due; n++) {
                vectors[n] = (struct iovec){frames[n], frame_of(frames[n], mac, s)};
                messages[n].msg_hdr =
                    (struct msghdr){.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &vectors[n], .msg_iovlen = 1};
            }
            for (unsigned done = 0; done < n;) {
                int sent = sendmmsg(fd, messages + done, n - done, 0);
                if (sent < 0 && errno != ENOBUFS) die("send: %s", strerror(errno));
                if (sent > 0) done += (unsigned)sent;
            }
        }
        if (passed < seconds && streams[0].pps < 50000) usleep(500);
    }
    for (int i = 0; i < count; i++) printf("sent %s %llu\n", argv[5 + i], (unsigned long long)streams[i].sent);
    printf("took %.3f stalled %.3f\n", (double)(now() - start) / 1e9, stalled);
    getrusage(RUSAGE_SELF, &used);
    printf("cpu %.6f\n", (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                             (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
    return 0;
}

/* Sources seen, by open addressing. */
static struct seen {
    struct in6_addr from;
    uint64_t packets;
} seen[SOURCES];

static void see(const struct in6_addr *from) {
    uint32_t words[4], at;
    memcpy(words, from, 16);
    at = (words[0] ^ words[1] * 5 ^ words[2] * 7 ^ words[3]) * 2654435761u >> 16;
    for (int tries = 0; tries < 64; tries++, at++) {
        struct seen *s = &seen[at % SOURCES];
        if (s->packets && memcmp(&s->from, from, 16)) continue;
        s->from = *from, s->packets++;
        return;
    }
}

static int do_receive(double seconds, uint64_t work, int series) {
    struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)}, from;
    int fd = socket(AF_INET6, SOCK_DGRAM, 0), room = 8 << 20;
    struct timeval wait = {0, 20000};
    uint64_t start = now(), next = 100, classes[2] = {0, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    /* A small queue where the work counts, so that it is never stale. */
    if (!work) setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    if (bind(fd, (struct sockaddr *)&here, sizeof here)) die("receive: %s", strerror(errno));
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        char bytes[64];
        socklen_t length = sizeof from;
        ssize_t got = recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &length);
        uint64_t t = now(), ms = (t - start) / 1000000;
        while (series && ms >= next && next <= (uint64_t)(seconds * 1000)) {
            printf("%llu %llu %llu\n", (unsigned long long)next, (unsigned long long)classes[0],
                   (unsigned long long)classes[1]);
            classes[0] = classes[1] = 0, next += 100;
        }
        if ((double)ms >= seconds * 1000 && (got < 0 || series)) break;
        if (got < 0) continue;
        see(&from.sin6_addr);
        classes[!(from.sin6_addr.s6_addr[12] == 10 && from.sin6_addr.s6_addr[13] == 66)]++;
        while (now() - t < work) {}
    }
    for (int i = 0; i < SOURCES; i++) {
        char text[INET6_ADDRSTRLEN];
        if (!seen[i].packets) continue;
        inet_ntop(AF_INET6, &seen[i].from, text, sizeof text);
        printf("%s %llu\n", strncmp(text, "::ffff:", 7) ? text : text + 7, (unsigned long long)seen[i].packets);
    }
    return 0;
}

static int do_spend(const char *interface, const char *source, double seconds) {
    struct policer p = {.interface = interface};
    tatcell_limit_spec_t spec = TATCELL_LIMIT_SPEC_INIT;
    unsigned char key[KEY_BYTES_4] = {4, 32};
    tatcell_limit_t limit;
    uint64_t start, passed = 0;
    find(&p);
    spec.units = 100, spec.period = 1000000000, spec.burst = 50;
    must(tatcell_limit_init_table(&limit, &p.table, &spec), "limit");
    inet_pton(AF_INET, source, key + 2);
    for (start = now(); (double)(now() - start) < seconds * 1e9; usleep(20000))
        passed += tatcell_table_check(&p.table, &limit, now(), key, sizeof key, 1, NULL) == TATCELL_PASS;
    printf("%llu\n", (unsigned long long)passed);
    return 0;
}

int main(int argc, char **argv) {
    const char *verb = argc > 2 ? argv[1] : "";
    if (argc > 5 && !strcmp(verb, "send")) return do_send(argc, argv);
    if (argc > 2 && !strcmp(verb, "receive"))
        return do_receive(atof(argv[2]), 0, 0);
    if (argc > 3 && !strcmp(verb, "series")) return do_receive(atof(argv[2]), (uint64_t)atoll(argv[3]), 1);
    if (argc > 4 && !strcmp(verb, "spend")) return do_spend(argv[2], argv[3], atof(argv[4]));
    return 2;
}
