/* request.h - what the test programs in the kernel are asked and what they answer: the whole of a packet. */
#ifndef REQUEST_H
#define REQUEST_H

struct request {
    uint8_t ethernet[16];
    uint64_t now; /* 0: the kernel's clock */
    uint64_t cost;
    uint64_t key;
    uint64_t length;
    uint32_t limit;
    int32_t verdict;
    uint64_t retry_after;
    uint32_t tracking;
    uint32_t flags;
};

/* What a race shares. Turn after turn asks for the key turn / RACE_EACH. */
#define RACE_KEYS 100000
#define RACE_EACH 8
struct race {
    uint64_t turn, by_bpf, by_user;
    uint32_t admitted[RACE_KEYS];
};

#endif
