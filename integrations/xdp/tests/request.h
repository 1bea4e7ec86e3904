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

#endif
