/*
 * What the files of the module share.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   ngx_http_tatcell_module.c   directives, configurations, and how they are merged and checked
 *   ngx_http_tatcell_conf.c     tatcell_zone and tatcell
 *   ngx_http_tatcell_rate.c     rates as text, tatcell_rates, and the limits that are made of them
 *   ngx_http_tatcell_zone.c     the life of a zone: made, kept or moved by a reload
 *   ngx_http_tatcell_named.c    tables and counters in named memory
 *   ngx_http_tatcell_decide.c   one request: all its zones or none, and the delay
 *   ngx_http_tatcell_headers.c  what the client is told
 *   ngx_http_tatcell_log.c      what the log is told, and the keys that are remembered for the stats
 *   ngx_http_tatcell_vars.c     $tatcell_status and others
 *   ngx_http_tatcell_stats.c    JSON and Prometheus text
 *
 *   zone (shared memory)                        worker (private memory)
 *   [ slab pool of nginx ]                      zone: seed, table handle, specifications
 *   [ shared_t: counters, log gates, samples ]    use:  a limit for each tatcell directive
 *   [ table: 8 bytes a key ]                    with table=, in memory of its own, which has a name
 *
 * Time is CLOCK_MONOTONIC in nanoseconds, read once a request: the cached time of nginx would be older than that of
 * another worker by a whole round of its event loop.
 */

#ifndef NGX_HTTP_TATCELL_MODULE_H
#define NGX_HTTP_TATCELL_MODULE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <tatcell.h>
#include <tatcell_host.h>

/* Ticks a second. */
#define NGX_HTTP_TATCELL_HZ         1000000000ULL
/* Ticks a millisecond, the finest wait of nginx. */
#define NGX_HTTP_TATCELL_MSEC       1000000ULL
/* Processes that count by themselves: two share counts only if more run at once. With counters= half of this. */
#define NGX_HTTP_TATCELL_PROCESSES  256
/* Log gates of a zone. A key shares its gate with one key in this many. */
#define NGX_HTTP_TATCELL_GATES      64
/* Refused keys that are remembered, to name those with the longest debts. */
#define NGX_HTTP_TATCELL_SAMPLES    64
#define NGX_HTTP_TATCELL_SAMPLE_LEN 55
/* Rates that come from a variable, and their limits, remembered by each tatcell directive. */
#define NGX_HTTP_TATCELL_CACHE      32
#define NGX_HTTP_TATCELL_RATE_LEN   47

/* A worker may be stopped for this long between reading its clock and its question, and nothing extra passes. */
#define NGX_HTTP_TATCELL_SKEW       (60 * NGX_HTTP_TATCELL_HZ)

/* The fields that a client is told. */
#define NGX_HTTP_TATCELL_H_RATELIMIT  0x0002
#define NGX_HTTP_TATCELL_H_POLICY     0x0004
#define NGX_HTTP_TATCELL_H_RETRY      0x0008
#define NGX_HTTP_TATCELL_H_X          0x0010
#define NGX_HTTP_TATCELL_H_OFF        0x0020

#define NGX_HTTP_TATCELL_UNDECIDED_PASS    0
#define NGX_HTTP_TATCELL_UNDECIDED_REFUSE  1

typedef struct {
    uint64_t   units;
    uint64_t   period;          /* nanoseconds */
    uint64_t   burst;           /* 0: that of the directive */
    unsigned   unlimited:1;
    unsigned   bytes:1;
} ngx_http_tatcell_rate_t;

/*
 * What one process counted of one zone besides the counters of the library; written by that process alone. Those have
 * as conforming what passed, at once or after a delay, as shadow what tatcell_dry_run let pass, and as contended what
 * had no verdict.
 */
typedef struct {
    uint64_t   delayed;         /* of the conforming: after a delay */
    uint64_t   unlimited;       /* the rate of the key was "unlimited"; the zone was not asked */
    uint64_t   bad_rate;        /* the rate of the key was none; the zone's was taken */
    uint64_t   reserved[5];
} ngx_http_tatcell_more_t;

/* A refused key. Written without a lock: who reads it checks that the key has the hash. */
typedef struct {
    uint64_t   hash;
    u_char     len;
    u_char     key[NGX_HTTP_TATCELL_SAMPLE_LEN];
} ngx_http_tatcell_sample_t;

/* In the shared memory of a zone, before its table. */
typedef struct {
    tatcell_counters_t         counters[NGX_HTTP_TATCELL_PROCESSES];   /* where the zone has no counters= */
    ngx_http_tatcell_more_t    more[NGX_HTTP_TATCELL_PROCESSES];
    tatcell_key_log_t          refused[NGX_HTTP_TATCELL_GATES];
    tatcell_key_log_t          delayed[NGX_HTTP_TATCELL_GATES];
    tatcell_log_t              undecided;
    tatcell_log_t              bad_rate;
    ngx_http_tatcell_sample_t  samples[NGX_HTTP_TATCELL_SAMPLES];
    tatcell_sweeper_t          sweeper;
    void                      *memory;
    size_t                     bytes;
} ngx_http_tatcell_shared_t;

/* Where Linux has shared memory with names. */
#define NGX_HTTP_TATCELL_SHM        "/dev/shm"

/* The most bytes of a path. */
#define NGX_HTTP_TATCELL_PATH       1023

typedef struct ngx_http_tatcell_named_s     ngx_http_tatcell_named_t;
typedef struct ngx_http_tatcell_counting_s  ngx_http_tatcell_counting_t;

/* A tatcell_zone directive. */
typedef struct ngx_http_tatcell_zone_s  ngx_http_tatcell_zone_t;

struct ngx_http_tatcell_zone_s {
    ngx_str_t                   name;
    ngx_shm_zone_t             *shm_zone;
    ngx_http_complex_value_t    key;
    ngx_int_t                   key_index;      /* of the variable that is all of the key; NGX_ERROR: none is */
    ngx_http_tatcell_rate_t     rate;
    ngx_str_t                   rate_text;
    ngx_str_t                   rate_by;        /* name of the variable, empty: none */
    ngx_int_t                   rate_index;
    uint64_t                    burst;
    uint32_t                    policy;
    uint32_t                    tag_bits;
    uint64_t                    skew;           /* nanoseconds; 0: that of the library, for words that are short */
    ngx_uint_t                  skew_given;
    u_char                     *file;
    ngx_uint_t                  line;
    ngx_array_t                 uses;           /* of ngx_http_tatcell_use_t * */
    ngx_array_t                *rates;          /* of ngx_http_tatcell_rate_t: what tatcell_rates can give, or NULL */

    /* What the table provides for. */
    tatcell_limit_spec_t        fastest;
    tatcell_limit_spec_t        slowest;

    /* The zone of this name in the cycle before, while this cycle is made. */
    ngx_http_tatcell_zone_t    *old;
    ngx_shm_zone_t             *old_shm_zone;

    ngx_str_t                   table_name;     /* of table=, ends with a 0; empty: none */
    size_t                      bytes;          /* of a table with a name */
    ngx_http_tatcell_named_t   *named;          /* its memory */
    ngx_http_tatcell_named_t   *old_named;      /* of any zone of the cycle before, with the name of table= */

    uint8_t                     seed[16];
    ngx_uint_t                  seed_given;
    tatcell_table_t             table;
    ngx_http_tatcell_shared_t  *shared;
    ngx_str_t                   counters_name;  /* of counters=, ends with a 0; empty: none */
    tatcell_counters_t         *counters;       /* NGX_HTTP_TATCELL_PROCESSES of them */
    ngx_uint_t                  first;          /* of those that this nginx has */
    ngx_uint_t                  mask;           /* of the slot of a process: as many as it has, less one */
    ngx_http_tatcell_counting_t  *counting;     /* the memory of counters= */
    ngx_http_tatcell_counting_t  *old_counting;  /* of any zone of the cycle before, with this name */
    ngx_pool_t                 *pool;           /* of the cycle */
};

/* The limit of one rate text. */
typedef struct {
    size_t                      len;            /* 0: nothing is remembered */
    u_char                      text[NGX_HTTP_TATCELL_RATE_LEN];
    u_char                      kind;           /* NGX_HTTP_TATCELL_LIMIT, ... */
    tatcell_limit_t             limit;
} ngx_http_tatcell_cached_t;

#define NGX_HTTP_TATCELL_LIMIT      1
#define NGX_HTTP_TATCELL_UNLIMITED  2
#define NGX_HTTP_TATCELL_BAD        3

/* A tatcell directive: a zone with a burst and a delay. */
typedef struct {
    ngx_http_tatcell_zone_t    *zone;
    ngx_str_t                   zone_name;
    uint64_t                    burst;          /* 0: that of the zone */
    uint64_t                    delay;          /* what passes at once; burst: all of it */
    ngx_http_complex_value_t   *cost;
    u_char                     *file;
    ngx_uint_t                  line;
    unsigned                    nodelay:1;
    unsigned                    reserve:1;      /* a request may be delayed */
    tatcell_limit_t             limit;
    ngx_http_tatcell_cached_t  *cache;          /* of a zone with rate_by; a worker's own after the fork */
} ngx_http_tatcell_use_t;

/* A tatcell_rates block. */
typedef struct {
    ngx_str_t                   variable;
    ngx_http_complex_value_t    source;
    ngx_http_map_t              map;
    ngx_http_variable_value_t  *default_value;
    ngx_array_t                 rates;          /* of ngx_http_tatcell_rate_t */
} ngx_http_tatcell_rates_t;

typedef struct {
    ngx_array_t                 zones;          /* of ngx_http_tatcell_zone_t * */
    ngx_array_t                 uses;           /* of ngx_http_tatcell_use_t * */
    ngx_array_t                 rates;          /* of ngx_http_tatcell_rates_t * */
} ngx_http_tatcell_main_conf_t;

typedef struct {
    ngx_array_t                *uses;           /* of ngx_http_tatcell_use_t *; NULL: inherited */
    ngx_flag_t                  off;
    ngx_flag_t                  dry_run;
    ngx_uint_t                  status;
    ngx_uint_t                  log_level;
    ngx_msec_t                  log_interval;
    ngx_uint_t                  undecided;
    ngx_uint_t                  headers;
    ngx_uint_t                  stats_format;
    ngx_uint_t                  stats_top;
    unsigned                    stats:1;
} ngx_http_tatcell_loc_conf_t;

/* One request; lives as long as its pool, internal redirects included. */
typedef struct {
    const char                 *status;         /* NULL: not limited */
    ngx_uint_t                  count;          /* of the links that follow, one a zone whose key is not empty */
    ngx_http_tatcell_use_t    **uses;
    ngx_str_t                  *keys;
    tatcell_link_t             *links;
    tatcell_decision_t         *decisions;      /* of one link: the decision below */
    uint64_t                    now;            /* when it was asked */
    ngx_uint_t                  reserve;        /* whether a link may be delayed */
    ngx_uint_t                  brief;          /* the decision has no numbers but its wait: see tatcell_fill */
    tatcell_decision_t          decision;       /* of all of them; its policy is the link that decided */
    u_char                      retry[NGX_INT64_LEN];  /* the text of Retry-After */
} ngx_http_tatcell_ctx_t;

extern ngx_module_t  ngx_http_tatcell_module;

/* Nothing outside the module calls these, so they are called without a table of addresses. */
#pragma GCC visibility push(hidden)

/* conf */
ngx_uint_t ngx_http_tatcell_same(ngx_str_t *one, ngx_str_t *other);
char *ngx_http_tatcell_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_tatcell(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_int_t ngx_http_tatcell_check(ngx_conf_t *cf);

/* rate */
ngx_int_t ngx_http_tatcell_parse_rate(ngx_str_t *text, ngx_http_tatcell_rate_t *rate, size_t *at);
void ngx_http_tatcell_no_rate(ngx_conf_t *cf, ngx_str_t *whole, size_t at);
char *ngx_http_tatcell_rates(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
void ngx_http_tatcell_spec(ngx_http_tatcell_use_t *use, ngx_http_tatcell_rate_t *rate, tatcell_limit_spec_t *spec);
int32_t ngx_http_tatcell_limit(ngx_http_tatcell_use_t *use, ngx_http_tatcell_rate_t *rate,
    const tatcell_table_t *table, tatcell_limit_t *limit);
ngx_uint_t ngx_http_tatcell_limit_of(ngx_http_request_t *r, ngx_http_tatcell_use_t *use,
    const tatcell_limit_t **limit, ngx_str_t *text);

/* zone */
void ngx_http_tatcell_sweep(ngx_http_tatcell_zone_t *zone, uint64_t now);
int32_t ngx_http_tatcell_geometry(ngx_http_tatcell_zone_t *zone, tatcell_table_t *probe);
void ngx_http_tatcell_find_old(ngx_conf_t *cf, ngx_http_tatcell_zone_t *zone);
ngx_int_t ngx_http_tatcell_init_zone(ngx_shm_zone_t *shm_zone, void *data);
ngx_int_t ngx_http_tatcell_init_module(ngx_cycle_t *cycle);
ngx_int_t ngx_http_tatcell_init_process(ngx_cycle_t *cycle);
tatcell_counters_t *ngx_http_tatcell_counters(ngx_http_tatcell_zone_t *zone);
ngx_http_tatcell_more_t *ngx_http_tatcell_more(ngx_http_tatcell_zone_t *zone);

/* named */
ngx_int_t ngx_http_tatcell_named_make(ngx_http_tatcell_zone_t *zone, ngx_log_t *log);
ngx_int_t ngx_http_tatcell_named_keep(ngx_http_tatcell_zone_t *zone, ngx_http_tatcell_named_t *named);
void ngx_http_tatcell_named_place(ngx_http_tatcell_named_t *named, ngx_log_t *log);
ngx_uint_t ngx_http_tatcell_named_stays(ngx_http_tatcell_zone_t *zone, ngx_http_tatcell_zone_t *old);
ngx_uint_t ngx_http_tatcell_is_named(ngx_http_tatcell_named_t *named);
ngx_int_t ngx_http_tatcell_counters_open(ngx_http_tatcell_zone_t *zone, ngx_log_t *log);
void *ngx_http_tatcell_named_memory(ngx_http_tatcell_named_t *named, size_t *bytes);

/* decide */
ngx_int_t ngx_http_tatcell_handler(ngx_http_request_t *r);
ngx_http_tatcell_ctx_t *ngx_http_tatcell_get_ctx(ngx_http_request_t *r);
void ngx_http_tatcell_fill(ngx_http_tatcell_ctx_t *ctx);
uint64_t ngx_http_tatcell_now(void);

/* headers */
ngx_int_t ngx_http_tatcell_send_fields(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx, ngx_uint_t headers);

/* log */
void ngx_http_tatcell_log_refused(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx, uint64_t now);
void ngx_http_tatcell_log_delayed(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx, uint64_t now);
void ngx_http_tatcell_log_undecided(ngx_http_request_t *r, ngx_http_tatcell_zone_t *zone, const char *why);
void ngx_http_tatcell_log_bad_rate(ngx_http_request_t *r, ngx_http_tatcell_zone_t *zone, ngx_str_t *text);
void ngx_http_tatcell_remember(ngx_http_tatcell_zone_t *zone, uint64_t hash, ngx_str_t *key);
size_t ngx_http_tatcell_key_text(u_char *buffer, size_t bytes, u_char *key, size_t len);

/* vars */
ngx_int_t ngx_http_tatcell_add_variables(ngx_conf_t *cf);

/* stats */
char *ngx_http_tatcell_stats(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

#pragma GCC visibility pop

#endif /* NGX_HTTP_TATCELL_MODULE_H */
