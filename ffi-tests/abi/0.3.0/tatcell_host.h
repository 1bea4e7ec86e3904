/* The header of feature host of release 0.3.0, without its comments. Never changed: programs were built with it. */
#ifndef TATCELL_HOST_H
#define TATCELL_HOST_H 
#include "tatcell.h"
#ifdef __cplusplus
extern "C" {
#endif
#define TATCELL_HOST_CLOCK_MONOTONIC 0
#define TATCELL_HOST_CLOCK_RAW 1
#define TATCELL_HOST_CLOCK_COARSE 2
#define TATCELL_HOST_CLOCK_BOOTTIME 3
TATCELL_API
int32_t tatcell_host_clock(uint32_t clock, uint64_t *now, int32_t *system_error);
TATCELL_API
int32_t tatcell_host_clock_resolution(uint32_t clock, uint64_t *nanoseconds, int32_t *system_error);
TATCELL_API
uint64_t tatcell_host_ticks(void);
TATCELL_API
int32_t tatcell_host_ticks_calibrate(uint64_t interval_ns,
                                     uint64_t *ticks_per_second,
                                     uint64_t *uncertainty_ppb,
                                     int32_t *system_error);
TATCELL_API
uint64_t tatcell_host_ticks_to_ns(uint64_t ticks, uint64_t ticks_per_second);
TATCELL_API
uint64_t tatcell_host_ticks_from_ns(uint64_t ns, uint64_t ticks_per_second);
TATCELL_NODISCARD TATCELL_API
int32_t tatcell_host_random(void *bytes,
                            size_t count,
                            int32_t *system_error);
#define TATCELL_HOST_HUGE 1
#define TATCELL_HOST_FORK_SHARED 2
#define TATCELL_HOST_PAGES_NORMAL 0
#define TATCELL_HOST_PAGES_ADVISED 1
#define TATCELL_HOST_PAGES_HUGE 2
typedef struct tatcell_host_memory_t {
    uint32_t size;
    uint32_t pages;
    void *memory;
    size_t bytes;
    int32_t system_error;
    int32_t reserved;
} tatcell_host_memory_t;
#define TATCELL_HOST_MEMORY_MIN (16 + 2 * sizeof(void *))
#define TATCELL_HOST_MEMORY_INIT {sizeof(tatcell_host_memory_t), 0, 0, 0, 0, 0}
TATCELL_API
int32_t tatcell_host_memory_map(size_t bytes,
                                uint32_t flags,
                                tatcell_host_memory_t *memory);
TATCELL_API
int32_t tatcell_host_memory_create(const char *name,
                                   size_t bytes,
                                   uint32_t mode,
                                   tatcell_host_memory_t *memory);
TATCELL_API
int32_t tatcell_host_memory_attach(const char *name,
                                   size_t bytes,
                                   tatcell_host_memory_t *memory);
TATCELL_API
int32_t tatcell_host_memory_unmap(tatcell_host_memory_t *memory);
TATCELL_API
int32_t tatcell_host_memory_unlink(const char *name,
                                   int32_t *system_error);
TATCELL_API
int32_t tatcell_host_memory_huge_bytes(const tatcell_host_memory_t *memory,
                                       uint64_t *bytes,
                                       int32_t *system_error);
#ifdef __cplusplus
}
#endif
#endif
