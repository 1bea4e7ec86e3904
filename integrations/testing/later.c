/*
 * later.c - CLOCK_MONOTONIC of a process, moved on by a test: LD_PRELOAD this, and name a file in TATCELL_LATER.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The file has the nanoseconds to add, as text.
 */

#define _GNU_SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int
clock_gettime(clockid_t id, struct timespec *out)
{
    long rc = syscall(SYS_clock_gettime, id, out);
    const char *name = getenv("TATCELL_LATER");
    FILE *file = rc == 0 && id == CLOCK_MONOTONIC && name != NULL ? fopen(name, "r") : NULL;
    unsigned long long more = 0;

    if (file == NULL) return (int)rc;
    if (fscanf(file, "%llu", &more) == 1) {
        more += (unsigned long long)out->tv_nsec;
        out->tv_sec += (time_t)(more / 1000000000);
        out->tv_nsec = (long)(more % 1000000000);
    }
    (void)fclose(file);
    return 0;
}
