/*
 * limits.h - a table of the process, found by its name, for tatcell.c and converter.c.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef LIMITS_H
#define LIMITS_H

#include <tatcell.h>

/* Ticks: the clock counts nanoseconds. */
#define SECOND 1000000000ULL
#define MOST 32
#define NAME 64

/* A table, its limit, and the numbers that it was asked for with. */
struct limits {
    char name[NAME];
    long long slots, policy;
    tatcell_limit_spec_t spec;
    tatcell_table_t table;
    tatcell_limit_t limit;
    tatcell_sweeper_t sweeper; /* of the table */
};

/* Gives HAProxy the converter lua.NAME; returns what is wrong, or NULL. The caller holds the lock of the tables. */
const char *register_converter(struct limits *limits, const char *name, int refuse_undecided);

#endif /* LIMITS_H */
