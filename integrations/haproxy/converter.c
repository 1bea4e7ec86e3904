/*
 * converter.c - a converter of HAProxy that asks a table without a line of Lua.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * HAProxy exports its functions to what it loads. So a module of Lua can register a converter of C, which HAProxy calls
 * as one of its own. The structures are those of its headers, so this file is built for one branch of HAProxy
 * (HAPROXY_SRC), and refuses any other when it is loaded.
 */

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <haproxy/sample-t.h>

#include "limits.h"

/* Of HAProxy. */
void sample_register_convs(struct sample_conv_kw_list *list);
void send_log(struct proxy *p, int level, const char *format, ...);
extern char haproxy_version[];

/* A converter, and whether it refuses a request without a verdict. */
struct converter {
    struct limits *limits;
    int refuse_undecided;
    struct sample_conv_kw_list *list;
};

static struct converter converters[MOST];
static int registered;

/* Counts a request without a verdict; each thread logs it once a second. */
static int64_t
without_verdict(const struct converter *c, time_t now)
{
    static __thread unsigned long undecided;
    static __thread time_t told;

    undecided++;
    if (now != told) {
        told = now;
        send_log(NULL, 3, "tatcell: contended: %s; %lu so far in this thread\n",
                 c->refuse_undecided ? "refused" : "passed", undecided);
    }
    return c->refuse_undecided ? 1 : -1;
}

/* The seconds to wait, rounded up; 0: it passes. */
static int
convert(const struct arg *args, struct sample *smp, void *private)
{
    int32_t rc;
    uint64_t ticks, retry_after = 0;
    struct timespec now;
    const struct converter *c = private;

    (void)args;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    ticks = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
    (void)tatcell_table_sweep_due(&c->limits->table, &c->limits->sweeper, ticks);
    rc = tatcell_table_check(&c->limits->table, &c->limits->limit, ticks, smp->data.u.str.area,
                             smp->data.u.str.data, 1, &retry_after);

    smp->data.type = SMP_T_SINT;
    switch (rc) {
    case TATCELL_PASS:
        smp->data.u.sint = 0;
        return 1;
    case TATCELL_NON_CONFORMING:
        smp->data.u.sint = (long long)(retry_after / SECOND + (retry_after % SECOND != 0));
        return 1;
    case TATCELL_NEVER:
        smp->data.u.sint = 86400;
        return 1;
    default:
        smp->data.u.sint = without_verdict(c, now.tv_sec);
        return 1;
    }
}

const char *
register_converter(struct limits *limits, const char *name, int refuse_undecided)
{
    int i;
    char *word;
    struct converter *c;

    if (strncmp(haproxy_version, HAPROXY_BRANCH, strlen(HAPROXY_BRANCH)) != 0 ||
        (haproxy_version[strlen(HAPROXY_BRANCH)] != '.' && haproxy_version[strlen(HAPROXY_BRANCH)] != '-'))
        return "this module was built for HAProxy " HAPROXY_BRANCH ": build it with the HAPROXY_SRC of this HAProxy";

    /* Every thread loads the file; the first one registers. */
    for (i = 0; i < registered; i++)
        if (strcmp(converters[i].list->kw[0].kw + 4, name) == 0) return NULL;
    if (registered == MOST) return "there are more than 32 converters: use one of them";

    c = &converters[registered];
    c->list = calloc(1, sizeof *c->list + 2 * sizeof(struct sample_conv));
    word = calloc(1, strlen(name) + 5);
    if (c->list == NULL || word == NULL) return "no memory for a converter";
    memcpy(word, "lua.", 4);
    memcpy(word + 4, name, strlen(name));
    c->limits = limits;
    c->refuse_undecided = refuse_undecided;
    c->list->list.n = c->list->list.p = &c->list->list;
    c->list->kw[0] = (struct sample_conv){.kw = word, .process = convert, .in_type = SMP_T_BIN,
        .out_type = SMP_T_SINT, .private = c};
    sample_register_convs(c->list);
    registered++;
    return NULL;
}
