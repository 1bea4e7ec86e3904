/*
 * What the error log is told: one line an interval, and how many were left out; and the refused keys that the stats
 * name.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A flood must not fill a disk. A zone has NGX_HTTP_TATCELL_GATES gates that all workers share; a key has one of them
 * by its hash, so that a hot key does not silence the others.
 */

#include "ngx_http_tatcell_module.h"


static ngx_uint_t ngx_http_tatcell_may_log(tatcell_log_t *gate, uint64_t interval, uint64_t now, u_char *more,
    size_t bytes);
static ngx_uint_t ngx_http_tatcell_may_log_key(tatcell_key_log_t *gates, uint64_t hash, uint64_t interval, uint64_t now,
    u_char *more, size_t bytes);


/* Longest part of a key in the log. */
#define NGX_HTTP_TATCELL_KEY_TEXT  160
/* ", and 1073741824 more lines of another key were left out" */
#define NGX_HTTP_TATCELL_MORE      64


void
ngx_http_tatcell_log_refused(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx, uint64_t now)
{
    u_char                        more[NGX_HTTP_TATCELL_MORE], key[NGX_HTTP_TATCELL_KEY_TEXT];
    size_t                        len;
    ngx_uint_t                    i, level;
    ngx_http_tatcell_zone_t      *zone;
    ngx_http_tatcell_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_tatcell_module);

    i = ctx->decision.policy;
    zone = ctx->uses[i]->zone;
    level = lcf->log_level;

    if (!ngx_http_tatcell_may_log_key(zone->shared->refused, ctx->links[i].hash, lcf->log_interval * 1000000ULL, now,
                                      more, sizeof(more)))
    {
        return;
    }

    len = ngx_http_tatcell_key_text(key, sizeof(key), ctx->keys[i].data, ctx->keys[i].len);

    if (ctx->decision.verdict == TATCELL_NEVER) {
        ngx_http_tatcell_fill(ctx);
        ngx_log_error(level, r->connection->log, 0,
                      "tatcell: refused%s by zone \"%V\", key \"%*s\": cost %uL is above the burst of %uL%s",
                      lcf->dry_run ? ", dry run," : "", &zone->name, len, key, ctx->decision.cost,
                      ctx->decision.burst, more);
        return;
    }

    ngx_log_error(level, r->connection->log, 0,
                  "tatcell: refused%s by zone \"%V\", key \"%*s\": retry after %uL.%03uL s%s",
                  lcf->dry_run ? ", dry run," : "", &zone->name, len, key,
                  ctx->decision.retry_after / NGX_HTTP_TATCELL_HZ,
                  ctx->decision.retry_after / 1000000 % 1000, more);
}


/* Delays are told one level below refusals, as limit_req does it. */
void
ngx_http_tatcell_log_delayed(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx, uint64_t now)
{
    u_char                        more[NGX_HTTP_TATCELL_MORE], key[NGX_HTTP_TATCELL_KEY_TEXT];
    size_t                        len;
    ngx_uint_t                    i, k, level;
    ngx_http_tatcell_zone_t      *zone;
    ngx_http_tatcell_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_tatcell_module);
    level = lcf->log_level == NGX_LOG_INFO ? NGX_LOG_INFO : lcf->log_level + 1;

    if (r->connection->log->log_level < level) {
        return;
    }

    /* The one that waits longest. */
    for (i = 0, k = 1; k < ctx->count; k++) {
        if (ctx->decisions[k].departure > ctx->decisions[i].departure) {
            i = k;
        }
    }

    zone = ctx->uses[i]->zone;

    if (!ngx_http_tatcell_may_log_key(zone->shared->delayed, ctx->links[i].hash, lcf->log_interval * 1000000ULL, now,
                                      more, sizeof(more)))
    {
        return;
    }

    len = ngx_http_tatcell_key_text(key, sizeof(key), ctx->keys[i].data, ctx->keys[i].len);

    ngx_log_error(level, r->connection->log, 0, "tatcell: delayed%s %uL ms by zone \"%V\", key \"%*s\"%s",
                  lcf->dry_run ? ", dry run," : "", (ctx->decision.departure - now) / 1000000, &zone->name, len, key,
                  more);
}


/* Once a second, whatever the level of refusals is: somebody has to look at it. */
void
ngx_http_tatcell_log_undecided(ngx_http_request_t *r, ngx_http_tatcell_zone_t *zone, const char *why)
{
    u_char                        more[NGX_HTTP_TATCELL_MORE];
    ngx_http_tatcell_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_tatcell_module);

    if (ngx_http_tatcell_may_log(&zone->shared->undecided, NGX_HTTP_TATCELL_HZ, ngx_http_tatcell_now(), more,
                                 sizeof(more)))
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "tatcell: undecided by zone \"%V\", %s: %s%s", &zone->name,
                      why, lcf->undecided == NGX_HTTP_TATCELL_UNDECIDED_PASS || lcf->dry_run ? "passed" : "refused",
                      more);
    }
}


void
ngx_http_tatcell_log_bad_rate(ngx_http_request_t *r, ngx_http_tatcell_zone_t *zone, ngx_str_t *text)
{
    u_char  more[NGX_HTTP_TATCELL_MORE], shown[NGX_HTTP_TATCELL_KEY_TEXT];
    size_t  len;

    if (ngx_http_tatcell_may_log(&zone->shared->bad_rate, NGX_HTTP_TATCELL_HZ, ngx_http_tatcell_now(), more,
                                 sizeof(more)))
    {
        len = ngx_http_tatcell_key_text(shown, sizeof(shown), text->data, text->len);

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "tatcell: $%V is \"%*s\", not a rate that zone \"%V\" can have: %V was used; write 10r/s, "
                      "10r/s burst=20 or unlimited, best in tatcell_rates, which checks it%s",
                      &zone->rate_by, len, shown, &zone->name, &zone->rate_text, more);
    }
}


/* Whether a line is written; then what is said of those that were not. */
static ngx_uint_t
ngx_http_tatcell_may_log(tatcell_log_t *gate, uint64_t interval, uint64_t now, u_char *more, size_t bytes)
{
    uint32_t   left_out;

    if (tatcell_log_line(gate, now, interval, &left_out) != TATCELL_PASS) {
        return 0;
    }

    more[0] = '\0';

    if (left_out) {
        *ngx_snprintf(more, bytes - 1, ", and %uD more lines were left out", left_out) = '\0';
    }

    return 1;
}


/* The same for a line about a key, with whose lines were not written. */
static ngx_uint_t
ngx_http_tatcell_may_log_key(tatcell_key_log_t *gates, uint64_t hash, uint64_t interval, uint64_t now, u_char *more,
    size_t bytes)
{
    uint32_t     left_out, tag;
    const char  *whose;

    if (tatcell_key_log_line(&gates[hash % NGX_HTTP_TATCELL_GATES], now, hash, interval, &left_out, &tag)
        != TATCELL_PASS)
    {
        return 0;
    }

    more[0] = '\0';

    if (left_out) {
        whose = tag == 0 ? "several keys" : tag == tatcell_key_log_tag(hash) ? "this key" : "another key";

        *ngx_snprintf(more, bytes - 1, ", and %uD more lines of %s were left out", left_out, whose) = '\0';
    }

    return 1;
}


/* Keeps a refused key where the next one of its place overwrites it. */
void
ngx_http_tatcell_remember(ngx_http_tatcell_zone_t *zone, uint64_t hash, ngx_str_t *key)
{
    ngx_http_tatcell_sample_t  *sample;

    if (key->len > NGX_HTTP_TATCELL_SAMPLE_LEN) {
        return;
    }

    sample = &zone->shared->samples[(hash >> 8) % NGX_HTTP_TATCELL_SAMPLES];

    if (sample->hash != hash) {
        sample->len = (u_char) key->len;
        ngx_memcpy(sample->key, key->data, key->len);
        sample->hash = hash;
    }
}


/*
 * A key as text that cannot break a line, a quoted string of JSON or a label: an address where it has the bytes of one
 * ($binary_remote_addr), else its printable characters, and %HH for the others. Returns the length.
 */
size_t
ngx_http_tatcell_key_text(u_char *buffer, size_t bytes, u_char *key, size_t len)
{
    u_char      *p, *last;
    ngx_uint_t   i, printable;

    printable = 1;
    for (i = 0; i < len; i++) {
        if (key[i] < 0x20 || key[i] > 0x7e) {
            printable = 0;
        }
    }

    if (!printable && len == 4) {
        return ngx_inet_ntop(AF_INET, key, buffer, bytes);
    }

#if (NGX_HAVE_INET6)
    if (!printable && len == 16) {
        return ngx_inet_ntop(AF_INET6, key, buffer, bytes);
    }
#endif

    p = buffer;
    last = buffer + bytes;

    for (i = 0; i < len; i++) {
        if (last - p < 8) {
            p = ngx_cpymem(p, "...", 3);
            break;
        }

        if (key[i] < 0x20 || key[i] > 0x7e || key[i] == '"' || key[i] == '\\') {
            p = ngx_sprintf(p, "%%%02xd", (int) key[i]);

        } else {
            *p++ = key[i];
        }
    }

    return p - buffer;
}
