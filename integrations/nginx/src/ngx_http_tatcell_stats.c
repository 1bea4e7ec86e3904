/*
 * tatcell_stats [json | prometheus] [top=N]: every zone with its counts, its load, and who owes most.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Each request reads all tables once, twice with top: a few milliseconds for a million slots. The text for Prometheus
 * is that of the library (tatcell_metrics_text), and what only this module counts.
 */

#include "ngx_http_tatcell_module.h"


/* All that is counted of a zone, by one process or by all. */
typedef struct {
    tatcell_counters_t       counters;
    ngx_http_tatcell_more_t  more;
} ngx_http_tatcell_counts_t;


static ngx_int_t ngx_http_tatcell_stats_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_tatcell_send(ngx_http_request_t *r, ngx_buf_t *b);
static u_char *ngx_http_tatcell_json(u_char *p, u_char *last, ngx_http_tatcell_zone_t *zone, ngx_uint_t top,
    uint64_t now);
static ngx_buf_t *ngx_http_tatcell_prometheus(ngx_http_request_t *r, ngx_http_tatcell_main_conf_t *mcf, uint64_t now);
static void ngx_http_tatcell_sum(ngx_http_tatcell_zone_t *zone, ngx_http_tatcell_counts_t *sum);
static u_char *ngx_http_tatcell_json_counts(u_char *p, u_char *last, ngx_http_tatcell_counts_t *counts);
static u_char *ngx_http_tatcell_json_top(u_char *p, u_char *last, ngx_http_tatcell_zone_t *zone, ngx_uint_t top,
    uint64_t now);


#define NGX_HTTP_TATCELL_JSON        0
#define NGX_HTTP_TATCELL_PROMETHEUS  1
#define NGX_HTTP_TATCELL_TOP         64

/* Bytes of one zone, of one process in it, and of one of its top. */
#define NGX_HTTP_TATCELL_ZONE_TEXT     4096
#define NGX_HTTP_TATCELL_PROCESS_TEXT  512
#define NGX_HTTP_TATCELL_TOP_TEXT      320
/* Bytes of one sample of a family of this module, without the name of the zone. */
#define NGX_HTTP_TATCELL_FAMILY_TEXT   96

typedef struct {
    const char  *name;
    size_t       offset;
} ngx_http_tatcell_count_t;

#define ngx_http_tatcell_count(name, field)  { name, offsetof(ngx_http_tatcell_counts_t, field) }

/* As JSON names them: the verdicts, of which each request has one in each of its zones, and what is told besides. */
static const ngx_http_tatcell_count_t  ngx_http_tatcell_json_names[] = {
    ngx_http_tatcell_count("passed", counters.conforming),
    ngx_http_tatcell_count("rejected", counters.non_conforming),
    ngx_http_tatcell_count("never", counters.never),
    ngx_http_tatcell_count("dry_run", counters.shadow),
    ngx_http_tatcell_count("undecided", counters.contended),
    ngx_http_tatcell_count("unlimited", more.unlimited),
    ngx_http_tatcell_count("delayed", more.delayed),
    ngx_http_tatcell_count("bad_rate", more.bad_rate),
    ngx_http_tatcell_count("untracked", counters.untracked),
    ngx_http_tatcell_count("inherited", counters.inherited),
    ngx_http_tatcell_count("forgiven", counters.forgiven),
    ngx_http_tatcell_count("new_keys", counters.inserted),
    { NULL, 0 }
};

/* What the text of the library does not have: families of Prometheus, and what they count. */
static const struct {
    const char                *help;
    ngx_http_tatcell_count_t   count;
} ngx_http_tatcell_families[] = {
    { "Conforming requests that were delayed.", ngx_http_tatcell_count("delayed_requests", more.delayed) },
    { "Requests whose rate was unlimited.", ngx_http_tatcell_count("unlimited_requests", more.unlimited) },
    { "Requests whose rate could not be read.", ngx_http_tatcell_count("bad_rate_requests", more.bad_rate) },
    { NULL, { NULL, 0 } }
};

static const char  *ngx_http_tatcell_policy_names[] = { "admit", "inherit", "deny", "sampled" };


char *
ngx_http_tatcell_stats(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_tatcell_loc_conf_t  *lcf = conf;

    ngx_int_t                  n;
    ngx_str_t                 *value;
    ngx_uint_t                 i;
    ngx_http_core_loc_conf_t  *clcf;

    if (lcf->stats) {
        return "is duplicate";
    }

    value = cf->args->elts;
    lcf->stats = 1;
    lcf->stats_top = 10;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "json") == 0) {
            lcf->stats_format = NGX_HTTP_TATCELL_JSON;
            continue;
        }

        if (ngx_strcmp(value[i].data, "prometheus") == 0) {
            lcf->stats_format = NGX_HTTP_TATCELL_PROMETHEUS;
            continue;
        }

        n = ngx_strncmp(value[i].data, "top=", 4) == 0 ? ngx_atoi(value[i].data + 4, value[i].len - 4) : NGX_ERROR;
        if (n == NGX_ERROR || n > NGX_HTTP_TATCELL_TOP) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid \"%V\": write json, prometheus or top=N, 0 to %d",
                               &value[i], NGX_HTTP_TATCELL_TOP);
            return NGX_CONF_ERROR;
        }

        lcf->stats_top = n;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_tatcell_stats_handler;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_tatcell_stats_handler(ngx_http_request_t *r)
{
    size_t                          size;
    uint64_t                        now;
    ngx_int_t                       rc;
    ngx_buf_t                      *b;
    ngx_uint_t                      i;
    ngx_http_tatcell_zone_t       **zones;
    ngx_http_tatcell_loc_conf_t    *lcf;
    ngx_http_tatcell_main_conf_t   *mcf;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_tatcell_module);
    mcf = ngx_http_get_module_main_conf(r, ngx_http_tatcell_module);
    zones = mcf->zones.elts;

    now = ngx_http_tatcell_now();

    if (lcf->stats_format == NGX_HTTP_TATCELL_PROMETHEUS) {
        ngx_str_set(&r->headers_out.content_type, "text/plain; version=0.0.4; charset=utf-8");

        b = ngx_http_tatcell_prometheus(r, mcf, now);
        if (b == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_tatcell_send(r, b);
    }

    size = NGX_HTTP_TATCELL_ZONE_TEXT
           + mcf->zones.nelts * (NGX_HTTP_TATCELL_ZONE_TEXT + lcf->stats_top * NGX_HTTP_TATCELL_TOP_TEXT
                                 + NGX_HTTP_TATCELL_PROCESSES * NGX_HTTP_TATCELL_PROCESS_TEXT);

    b = ngx_create_temp_buf(r->pool, size);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&r->headers_out.content_type, "application/json");
    b->last = ngx_slprintf(b->last, b->end, "{\"version\":%uD,\"pid\":%P,\"zones\":{", tatcell_version(), ngx_pid);

    for (i = 0; i < mcf->zones.nelts; i++) {
        b->last = ngx_slprintf(b->last, b->end, "%s", i ? "," : "");
        b->last = ngx_http_tatcell_json(b->last, b->end, zones[i], lcf->stats_top, now);
    }

    b->last = ngx_slprintf(b->last, b->end, "}}\n");

    return ngx_http_tatcell_send(r, b);
}


static ngx_int_t
ngx_http_tatcell_send(ngx_http_request_t *r, ngx_buf_t *b)
{
    ngx_int_t    rc;
    ngx_chain_t  out;

    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = b->last - b->pos;

    b->last_buf = (r == r->main) ? 1 : 0;
    b->last_in_chain = 1;

    rc = ngx_http_send_header(r);
    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


static uint64_t
ngx_http_tatcell_get(const ngx_http_tatcell_counts_t *counts, const ngx_http_tatcell_count_t *count)
{
    return *(const uint64_t *) ((const u_char *) counts + count->offset);
}


/* Counts of another process may be older than those next to them. */
static void
ngx_http_tatcell_sum(ngx_http_tatcell_zone_t *zone, ngx_http_tatcell_counts_t *sum)
{
    ngx_uint_t  i;

    ngx_memzero(sum, sizeof(ngx_http_tatcell_counts_t));

    for (i = 0; i < NGX_HTTP_TATCELL_PROCESSES; i++) {
        (void) tatcell_counters_add(&sum->counters, &zone->counters[i]);
        sum->more.delayed += zone->shared->more[i].delayed;
        sum->more.unlimited += zone->shared->more[i].unlimited;
        sum->more.bad_rate += zone->shared->more[i].bad_rate;
    }
}


static u_char *
ngx_http_tatcell_json(u_char *p, u_char *last, ngx_http_tatcell_zone_t *zone, ngx_uint_t top, uint64_t now)
{
    ngx_uint_t                   i, first;
    tatcell_stats_t              stats = TATCELL_STATS_INIT;
    tatcell_table_info_t         info = TATCELL_TABLE_INFO_INIT;
    ngx_http_tatcell_counts_t    sum, one, none;

    ngx_http_tatcell_sweep(zone, now);
    (void) tatcell_table_stats(&zone->table, now, &stats);
    (void) tatcell_table_info(&zone->table, &info);
    ngx_http_tatcell_sum(zone, &sum);

    p = ngx_slprintf(p, last,
                     "\"%V\":{\"rate\":\"%V\",\"burst\":%uL,\"policy\":\"%s\",\"tag_bits\":%uD,\"slots\":%uL,"
                     "\"live\":%uL,\"expired\":%uL,\"load_ppm\":%uD,"
                     "\"full_ppb\":%uL,",
                     &zone->name, &zone->rate_text, zone->burst, ngx_http_tatcell_policy_names[info.policy],
                     info.tag_bits, stats.slots, stats.live, stats.expired, stats.load_ppm,
                     tatcell_table_full_ppb(stats.load_ppm));

    p = ngx_http_tatcell_json_counts(p, last, &sum);
    p = ngx_slprintf(p, last, ",\"processes\":{");

    ngx_memzero(&none, sizeof(ngx_http_tatcell_counts_t));

    for (first = 1, i = 0; i < NGX_HTTP_TATCELL_PROCESSES; i++) {
        one.counters = zone->counters[i];
        one.more = zone->shared->more[i];

        if (ngx_memcmp(&one, &none, sizeof(none)) != 0) {
            p = ngx_slprintf(p, last, "%s\"%ui\":{", first ? "" : ",", i);
            p = ngx_http_tatcell_json_counts(p, last, &one);
            p = ngx_slprintf(p, last, "}");
            first = 0;
        }
    }

    p = ngx_slprintf(p, last, "}");

    if (top) {
        p = ngx_http_tatcell_json_top(p, last, zone, top, now);
    }

    return ngx_slprintf(p, last, "}");
}


static u_char *
ngx_http_tatcell_json_counts(u_char *p, u_char *last, ngx_http_tatcell_counts_t *counts)
{
    const ngx_http_tatcell_count_t  *count;

    for (count = ngx_http_tatcell_json_names; count->name; count++) {
        p = ngx_slprintf(p, last, "\"%s\":%uL%s", count->name, ngx_http_tatcell_get(counts, count),
                         count[1].name ? "," : "");
    }

    return p;
}


/*
 * The longest debts, and whose they are where a refused key is remembered that may be it. A key was written without a
 * lock, so it counts only if it has the hash that stands beside it.
 */
static u_char *
ngx_http_tatcell_json_top(u_char *p, u_char *last, ngx_http_tatcell_zone_t *zone, ngx_uint_t top, uint64_t now)
{
    u_char                      text[192];
    size_t                      len;
    uint32_t                    found, i;
    uint64_t                    hash;
    ngx_uint_t                  k;
    tatcell_slot_t              slots[NGX_HTTP_TATCELL_TOP];
    ngx_http_tatcell_sample_t   sample;

    found = 0;
    (void) tatcell_table_top(&zone->table, now, slots, (uint32_t) top, &found);

    p = ngx_slprintf(p, last, ",\"top\":[");

    for (i = 0; i < found; i++) {
        p = ngx_slprintf(p, last, "%s{\"debt_ms\":%uL,\"key\":", i ? "," : "", slots[i].reset_after / 1000000);

        for (k = 0; k < NGX_HTTP_TATCELL_SAMPLES; k++) {
            sample = zone->shared->samples[k];

            if (sample.len > 0 && sample.len <= NGX_HTTP_TATCELL_SAMPLE_LEN
                && tatcell_table_may_be(&zone->table, &slots[i], sample.hash) == 0
                && tatcell_table_hash(&zone->table, sample.key, sample.len, &hash) == 0
                && hash == sample.hash)
            {
                break;
            }
        }

        if (k == NGX_HTTP_TATCELL_SAMPLES) {
            p = ngx_slprintf(p, last, "null}");
            continue;
        }

        len = ngx_http_tatcell_key_text(text, sizeof(text), sample.key, sample.len);
        p = ngx_slprintf(p, last, "\"%*s\"}", len, text);
    }

    return ngx_slprintf(p, last, "]");
}


/* The text of the library for all zones, and then the families of this module. */
static ngx_buf_t *
ngx_http_tatcell_prometheus(ngx_http_request_t *r, ngx_http_tatcell_main_conf_t *mcf, uint64_t now)
{
    size_t                            size;
    int32_t                           length;
    ngx_buf_t                        *b;
    ngx_uint_t                        i, k;
    tatcell_stats_t                  *stats;
    tatcell_metrics_t                *metrics;
    tatcell_table_info_t             *info;
    ngx_http_tatcell_zone_t         **zones;
    ngx_http_tatcell_counts_t        *sum;
    const ngx_http_tatcell_count_t   *count;

    zones = mcf->zones.elts;

    k = mcf->zones.nelts;
    sum = ngx_palloc(r->pool, k * sizeof(ngx_http_tatcell_counts_t) + 1);
    stats = ngx_palloc(r->pool, k * sizeof(tatcell_stats_t) + 1);
    info = ngx_palloc(r->pool, k * sizeof(tatcell_table_info_t) + 1);
    metrics = ngx_palloc(r->pool, k * sizeof(tatcell_metrics_t) + 1);

    if (sum == NULL || stats == NULL || info == NULL || metrics == NULL) {
        return NULL;
    }

    size = NGX_HTTP_TATCELL_ZONE_TEXT;

    for (i = 0; i < mcf->zones.nelts; i++) {
        stats[i] = (tatcell_stats_t) TATCELL_STATS_INIT;
        info[i] = (tatcell_table_info_t) TATCELL_TABLE_INFO_INIT;
        ngx_http_tatcell_sweep(zones[i], now);
        (void) tatcell_table_stats(&zones[i]->table, now, &stats[i]);
        (void) tatcell_table_info(&zones[i]->table, &info[i]);
        ngx_http_tatcell_sum(zones[i], &sum[i]);

        metrics[i] = (tatcell_metrics_t) TATCELL_METRICS_INIT;
        metrics[i].name = (char *) zones[i]->name.data;
        metrics[i].name_len = zones[i]->name.len;
        metrics[i].counters = &sum[i].counters;
        metrics[i].stats = &stats[i];
        metrics[i].info = &info[i];

        size += 3 * (NGX_HTTP_TATCELL_FAMILY_TEXT + zones[i]->name.len);
    }

    length = tatcell_metrics_text(metrics, mcf->zones.nelts, TATCELL_METRICS_PROMETHEUS, NULL, 0);
    if (length < 0) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "tatcell: no text for Prometheus: %s (%s)",
                      tatcell_strerror(length), tatcell_strerror_name(length));
        return NULL;
    }

    b = ngx_create_temp_buf(r->pool, length + 1 + size);
    if (b == NULL) {
        return NULL;
    }

    b->last += tatcell_metrics_text(metrics, mcf->zones.nelts, TATCELL_METRICS_PROMETHEUS, (char *) b->last,
                                    length + 1);

    for (k = 0; ngx_http_tatcell_families[k].help; k++) {
        count = &ngx_http_tatcell_families[k].count;
        b->last = ngx_slprintf(b->last, b->end,
                               "# TYPE tatcell_nginx_%s_total counter\n# HELP tatcell_nginx_%s_total %s\n",
                               count->name, count->name, ngx_http_tatcell_families[k].help);

        for (i = 0; i < mcf->zones.nelts; i++) {
            b->last = ngx_slprintf(b->last, b->end, "tatcell_nginx_%s_total{table=\"%V\"} %uL\n", count->name,
                                   &zones[i]->name, ngx_http_tatcell_get(&sum[i], count));
        }
    }

    return b;
}
