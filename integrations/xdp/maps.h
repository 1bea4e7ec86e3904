/* maps.h - the maps of one policer: made and pinned, or found again where they are pinned. */
#ifndef MAPS_H
#define MAPS_H

#include <stdint.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <tatcell_host.h>

#include <tatcell_bpf.h>

#include "policer.h"

/* A policer of an interface. */
struct policer {
    const char *interface;
    int index;
    tatcell_table_t table;
    struct settings *settings;
    tatcell_bpf_line_t *all;
    const struct refused *refused;
    int counts; /* file descriptor */
};

/* How an interface runs the program. */
enum mode { AUTO, NATIVE, GENERIC, TC };

/* What a table is made with. */
struct shape {
    uint64_t slots;
    uint32_t policy;
    /* The limits that it must be able to hold: tatcell_table_options_t. */
    tatcell_limit_spec_t fastest, slowest;
};

/* Says what is wrong and exits. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/* A code of the library that is none: dies and says what was tried. */
void must(int32_t rc, const char *what);

/* The clock of the programs: bpf_ktime_get_ns. */
uint64_t now(void);

/* Loads the program, makes the table, and pins the maps. */
void make(struct policer *p, const char *object, const struct shape *shape);

/* Lets the program decide. After `make`, and once the settings have a limit. */
void attach(struct policer *p, enum mode mode);

/* Finds the maps of a policer that runs. */
void find(struct policer *p);

/* Waits until no other tool changes limits, which would write over one another; for as long as this one runs. */
void alone(const struct policer *p);

/* Ends one: the interface forgets the program, and nothing stays pinned. 0: none was there. */
int detach(struct policer *p);

/* The sum over all CPUs. */
struct counts total(const struct policer *p);

#endif
