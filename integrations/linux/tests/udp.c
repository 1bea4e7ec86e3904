/* udp.c NAME RATE BURST COUNT SOURCE...: COUNT datagrams from each SOURCE over loopback at once, and a claim about how
 * many arrive: the burst, and what the rate gives meanwhile. RATE 0: all of them. IPv4 and IPv6 sources; A+B are two
 * that share a limit. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static socklen_t address(struct sockaddr_storage *a, const char *text, int port) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)a;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)a;
    memset(a, 0, sizeof *a);
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET, v4->sin_port = htons((unsigned short)port);
        return sizeof *v4;
    }
    v6->sin6_family = AF_INET6, v6->sin6_port = htons((unsigned short)port);
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1) exit(2);
    return sizeof *v6;
}

int main(int argc, char **argv) {
    double rate, burst, start = now(), passed;
    int count, to, room = 1 << 22, bad = 0;
    struct sockaddr_storage here, from;
    socklen_t length = address(&here, "::", 9999);
    char said[1024] = "";
    if (argc < 6) return 2;
    rate = atof(argv[2]), burst = atof(argv[3]), count = atoi(argv[4]);
    to = socket(AF_INET6, SOCK_DGRAM, 0);
    setsockopt(to, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    if (bind(to, (struct sockaddr *)&here, length)) return perror("bind"), 2;
    for (int i = 5; i < argc; i++) {
        struct sockaddr_storage target;
        char byte, each[1024], *rest = each;
        int got = 0, sent = 0;
        start = now();
        snprintf(each, sizeof each, "%s", argv[i]);
        for (char *source; (source = strsep(&rest, "+")) != NULL;) {
            int out;
            length = address(&from, source, 0);
            address(&target, from.ss_family == AF_INET ? "127.0.0.1" : "::1", 9999);
            out = socket(from.ss_family, SOCK_DGRAM, 0);
            if (bind(out, (struct sockaddr *)&from, length)) return perror(source), 2;
            for (int k = 0; k < count; k++, sent++)
                if (sendto(out, "x", 1, 0, (struct sockaddr *)&target, length) != 1) return perror("sendto"), 2;
            close(out);
        }
        /* Loopback hands a datagram over before sendto returns, or soon after. */
        while (now() < start + 0.05) got += recv(to, &byte, 1, MSG_DONTWAIT) == 1;
        while (recv(to, &byte, 1, MSG_DONTWAIT) == 1) got++;
        passed = now() - start;
        bad |= rate == 0 ? got != sent : got < burst || got > burst + rate * passed + 1;
        snprintf(said + strlen(said), sizeof said - strlen(said), "%s%.60s %d of %d in %.0f ms", i > 5 ? ", " : "",
                 argv[i], got, sent, passed * 1e3);
    }
    printf("%s %s: %s\n", bad ? "FAIL" : "PASS", argv[1], said);
    return bad;
}
