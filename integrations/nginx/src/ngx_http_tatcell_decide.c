/*
 * One request: asked of all its zones at once, charged to all or none, and perhaps delayed.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "ngx_http_tatcell_module.h"


static ngx_http_tatcell_ctx_t *ngx_http_tatcell_create_ctx(ngx_http_request_t *r, ngx_uint_t count);
static void ngx_http_tatcell_forget(void *data);
static ngx_int_t ngx_http_tatcell_link(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx,
    ngx_http_tatcell_use_t *use, const char **why);
static ngx_inline ngx_int_t ngx_http_tatcell_key(ngx_http_request_t *r, ngx_http_tatcell_zone_t *zone,
    ngx_str_t *key);
static int32_t ngx_http_tatcell_decide(ngx_http_tatcell_ctx_t *ctx);
static int32_t ngx_http_tatcell_ask(ngx_http_tatcell_ctx_t *ctx);
static int32_t ngx_http_tatcell_ask_brief(ngx_http_tatcell_ctx_t *ctx);
static void ngx_http_tatcell_inserted(ngx_http_tatcell_ctx_t *ctx, tatcell_counters_t *counters);
static ngx_int_t ngx_http_tatcell_undecided(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx,
    ngx_http_tatcell_zone_t *zone, const char *why);
static ngx_int_t ngx_http_tatcell_passed(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx);
static ngx_int_t ngx_http_tatcell_refused(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx);
static ngx_int_t ngx_http_tatcell_wait(ngx_http_request_t *r, ngx_msec_t delay);
static void ngx_http_tatcell_resume(ngx_http_request_t *r);


/* So often a request is asked: again where it lost every race for a word, or was asked with an old time. */
#define NGX_HTTP_TATCELL_ATTEMPTS  4


uint64_t
ngx_http_tatcell_now(void)
{
    struct timespec  now;

    /* CLOCK_MONOTONIC is on every Unix, and the address is good: no error can come. */
    (void) clock_gettime(CLOCK_MONOTONIC, &now);

    return (uint64_t) now.tv_sec * NGX_HTTP_TATCELL_HZ + (uint64_t) now.tv_nsec;
}


ngx_int_t
ngx_http_tatcell_handler(ngx_http_request_t *r)
{
    ngx_int_t                      rc;
    ngx_uint_t                     i;
    const char                    *why;
    ngx_http_tatcell_ctx_t        *ctx;
    ngx_http_tatcell_use_t       **uses;
    ngx_http_tatcell_loc_conf_t   *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_tatcell_module);

    /* As limit_req: a request is asked once, however often it is redirected inside, and a subrequest is asked if
     * neither its main request nor another subrequest was. */
    if (lcf->uses == NULL || ngx_http_tatcell_get_ctx(r->main)) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_tatcell_create_ctx(r, lcf->uses->nelts);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    uses = lcf->uses->elts;

    for (i = 0; i < lcf->uses->nelts; i++) {
        why = NULL;

        rc = ngx_http_tatcell_link(r, ctx, uses[i], &why);
        if (rc != NGX_OK) {
            return rc;
        }

        if (why) {
            return ngx_http_tatcell_undecided(r, ctx, uses[i]->zone, why);
        }
    }

    if (ctx->count == 0) {
        return NGX_DECLINED;
    }

    /* Fields that show more than the wait take the full answer; a variable takes it later. */
    ctx->brief = ctx->count == 1 && !ctx->reserve
                 && !(lcf->headers & (NGX_HTTP_TATCELL_H_RATELIMIT|NGX_HTTP_TATCELL_H_POLICY|NGX_HTTP_TATCELL_H_X));

    switch (ngx_http_tatcell_decide(ctx)) {

    case TATCELL_PASS:
        return ngx_http_tatcell_passed(r, ctx);

    case TATCELL_NON_CONFORMING:
    case TATCELL_NEVER:
        return ngx_http_tatcell_refused(r, ctx);

    case TATCELL_CONTENDED:
        return ngx_http_tatcell_undecided(r, ctx, ctx->uses[0]->zone, "other workers won every attempt");

    default:
        return ngx_http_tatcell_undecided(r, ctx, ctx->uses[0]->zone, tatcell_strerror(ctx->decision.verdict));
    }
}


/* Adds the link of one directive, unless its key is empty or unlimited; why is set where there can be none. */
static ngx_int_t
ngx_http_tatcell_link(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx, ngx_http_tatcell_use_t *use,
    const char **why)
{
    int32_t                     rc;
    uint64_t                    units;
    ngx_int_t                   n;
    ngx_str_t                   key, cost, text;
    tatcell_limit_t            *copy;
    tatcell_link_t             *link;
    const tatcell_limit_t      *limit;
    ngx_http_tatcell_zone_t    *zone;

    zone = use->zone;

    if (ngx_http_tatcell_key(r, zone, &key) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (key.len == 0) {
        return NGX_OK;
    }

    units = 1;

    if (use->cost) {
        if (ngx_http_complex_value(r, use->cost, &cost) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (cost.len) {
            n = ngx_atoi(cost.data, cost.len);
            if (n == NGX_ERROR) {
                *why = "its cost is not a number";
                return NGX_OK;
            }
            units = n;
        }
    }

    switch (ngx_http_tatcell_limit_of(r, use, &limit, &text)) {

    case NGX_HTTP_TATCELL_UNLIMITED:
        ngx_http_tatcell_more(zone)->unlimited++;
        ctx->status = "UNLIMITED";
        return NGX_OK;

    case NGX_HTTP_TATCELL_BAD:
        ngx_http_tatcell_more(zone)->bad_rate++;
        ngx_http_tatcell_log_bad_rate(r, zone, &text);
        break;

    default:
        break;
    }

    /* What is remembered of a rate may be another's by the time that the fields are written. */
    if (limit != &use->limit) {
        copy = ngx_palloc(r->pool, sizeof(tatcell_limit_t));
        if (copy == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
        *copy = *limit;
        limit = copy;
    }

    link = &ctx->links[ctx->count];
    link->size = sizeof(tatcell_link_t);
    link->flags = TATCELL_LINK_HASH;
    link->cost = units;
    link->limit = limit;
    link->table = &zone->table;

    rc = tatcell_table_hash(&zone->table, key.data, key.len, &link->hash);
    if (rc != 0) {
        *why = tatcell_strerror(rc);
        return NGX_OK;
    }

    ctx->uses[ctx->count] = use;
    ctx->keys[ctx->count] = key;
    ctx->decisions[ctx->count].size = sizeof(tatcell_decision_t);
    ctx->reserve |= use->reserve;
    ctx->count++;

    return NGX_OK;
}


static ngx_inline ngx_int_t
ngx_http_tatcell_key(ngx_http_request_t *r, ngx_http_tatcell_zone_t *zone, ngx_str_t *key)
{
    ngx_http_variable_value_t  *vv;

    if (zone->key_index == NGX_ERROR) {
        return ngx_http_complex_value(r, &zone->key, key);
    }

    vv = ngx_http_get_flushed_variable(r, zone->key_index);

    key->len = vv == NULL || vv->not_found ? 0 : vv->len;
    key->data = key->len ? vv->data : NULL;

    return NGX_OK;
}


/*
 * A worker that is stopped between its clock and its question asks with an old time, and finds debts that drained
 * meanwhile. So a refusal is believed only if it still stands at the time that it was heard.
 */
static int32_t
ngx_http_tatcell_decide(ngx_http_tatcell_ctx_t *ctx)
{
    int32_t     rc;
    uint64_t    heard;
    ngx_uint_t  i, k;

    rc = TATCELL_CONTENDED;
    heard = ngx_http_tatcell_now();

    for (i = 0; i < NGX_HTTP_TATCELL_ATTEMPTS; i++) {
        ctx->now = heard;
        for (k = 0; k < ctx->count; k++) {
            ngx_http_tatcell_sweep(ctx->uses[k]->zone, heard);
        }

        rc = ctx->brief ? ngx_http_tatcell_ask_brief(ctx) : ngx_http_tatcell_ask(ctx);

        if (rc != TATCELL_CONTENDED && rc != TATCELL_NON_CONFORMING) {
            break;
        }

        heard = ngx_http_tatcell_now();

        if (rc == TATCELL_NON_CONFORMING && heard - ctx->now < ctx->decision.retry_after) {
            break;
        }
    }

    ctx->decision.verdict = rc;

    return rc;
}


/* One zone is asked by itself, which takes a sixth of the instructions of a chain of one. */
static int32_t
ngx_http_tatcell_ask(ngx_http_tatcell_ctx_t *ctx)
{
    int32_t             rc;
    tatcell_link_t     *link;
    tatcell_chain_t     chain = TATCELL_CHAIN_INIT;
    tatcell_counters_t  counters[TATCELL_CHAIN_MAX];

    /* Only the new keys are taken from them: what a request counts as is known later. */
    ngx_memzero(counters, ctx->count * sizeof(tatcell_counters_t));

    if (ctx->count == 1) {
        link = ctx->links;

        rc = ctx->reserve ? tatcell_table_reserve_ex_hash(link->table, link->limit, ctx->now, link->hash, link->cost,
                                                          &ctx->decision, counters)
                          : tatcell_table_check_ex_hash(link->table, link->limit, ctx->now, link->hash, link->cost,
                                                        0, &ctx->decision, counters);

        if (ctx->decisions != &ctx->decision) {
            ctx->decisions[0] = ctx->decision;
        }

        ngx_http_tatcell_inserted(ctx, counters);

        return rc;
    }

    chain.count = ctx->count;
    chain.links = ctx->links;
    chain.link_size = sizeof(tatcell_link_t);
    chain.decisions = ctx->decisions;
    chain.decision_size = sizeof(tatcell_decision_t);
    chain.link_counters = counters;

    rc = ctx->reserve ? tatcell_chain_reserve(&chain, ctx->now, &ctx->decision)
                      : tatcell_chain_check(&chain, ctx->now, &ctx->decision);

    ngx_http_tatcell_inserted(ctx, counters);

    return rc;
}


/* Counts the new keys of the zones that were asked. */
static void
ngx_http_tatcell_inserted(ngx_http_tatcell_ctx_t *ctx, tatcell_counters_t *counters)
{
    ngx_uint_t  i;

    for (i = 0; i < ctx->count; i++) {
        if (counters[i].inserted) {
            ngx_http_tatcell_counters(ctx->uses[i]->zone)->inserted += counters[i].inserted;
        }
    }
}


/* The verdict and the wait of one zone, in a third of the instructions of the full answer. */
static int32_t
ngx_http_tatcell_ask_brief(ngx_http_tatcell_ctx_t *ctx)
{
    static tatcell_counters_t  counters;

    int32_t          rc;
    tatcell_link_t  *link;

    link = ctx->links;

    rc = tatcell_table_check_counted_hash(link->table, link->limit, ctx->now, link->hash, link->cost,
                                          &ctx->decision.retry_after, &counters);

    ctx->decision.departure = ctx->now;
    ctx->decisions[0].departure = ctx->now;

    if (counters.untracked | counters.inherited | counters.forgiven | counters.inserted) {
        ctx->decisions[0].tracking = counters.untracked ? TATCELL_UNTRACKED
                                     : counters.inherited ? TATCELL_INHERITED
                                     : counters.forgiven ? TATCELL_FORGIVEN : TATCELL_TRACKED;
        ngx_http_tatcell_inserted(ctx, &counters);
        ngx_memzero(&counters, sizeof(counters));
    }

    return rc;
}


/* Adds the numbers that a brief answer lacks, as they are by now: other workers may have charged the key since. */
void
ngx_http_tatcell_fill(ngx_http_tatcell_ctx_t *ctx)
{
    tatcell_link_t      *link;
    tatcell_decision_t   now = TATCELL_DECISION_INIT;

    if (!ctx->brief) {
        return;
    }

    ctx->brief = 0;
    link = ctx->links;

    /* A cost of 0 asks what is left. */
    if (tatcell_table_peek_hash(link->table, link->limit, ctx->now, link->hash, 0, &now) >= 0) {
        ctx->decision.cost = link->cost;
        ctx->decision.burst = now.burst;
        ctx->decision.remaining = now.remaining;
    }
}


/* A limiter without a verdict does what the administrator said. */
static ngx_int_t
ngx_http_tatcell_undecided(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx, ngx_http_tatcell_zone_t *zone,
    const char *why)
{
    ngx_http_tatcell_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_tatcell_module);

    ctx->count = 0;
    ctx->status = "UNDECIDED";
    ngx_http_tatcell_counters(zone)->contended++;
    ngx_http_tatcell_log_undecided(r, zone, why);

    if (lcf->undecided == NGX_HTTP_TATCELL_UNDECIDED_PASS || lcf->dry_run) {
        return NGX_DECLINED;
    }

    return lcf->status;
}


static ngx_int_t
ngx_http_tatcell_passed(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx)
{
    uint64_t                      now, wait;
    ngx_uint_t                    i;
    tatcell_counters_t           *counts;
    ngx_http_tatcell_loc_conf_t  *lcf;

    now = ctx->now;
    lcf = ngx_http_get_module_loc_conf(r, ngx_http_tatcell_module);

    for (i = 0; i < ctx->count; i++) {
        counts = ngx_http_tatcell_counters(ctx->uses[i]->zone);
        counts->conforming++;
        if (ctx->decisions[i].departure >= now + NGX_HTTP_TATCELL_MSEC) {
            ngx_http_tatcell_more(ctx->uses[i]->zone)->delayed++;
        }
        counts->untracked += ctx->decisions[i].tracking == TATCELL_UNTRACKED;
        counts->inherited += ctx->decisions[i].tracking == TATCELL_INHERITED;
        counts->forgiven += ctx->decisions[i].tracking == TATCELL_FORGIVEN;
    }

    if (!lcf->dry_run && ngx_http_tatcell_send_fields(r, ctx, lcf->headers) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    wait = ctx->decision.departure > now ? ctx->decision.departure - now : 0;

    if (wait < NGX_HTTP_TATCELL_MSEC) {
        ctx->status = "PASSED";
        return NGX_DECLINED;
    }

    ngx_http_tatcell_log_delayed(r, ctx, now);

    if (lcf->dry_run) {
        ctx->status = "DELAYED_DRY_RUN";
        return NGX_DECLINED;
    }

    ctx->status = "DELAYED";

    return ngx_http_tatcell_wait(r, (wait + NGX_HTTP_TATCELL_MSEC - 1) / NGX_HTTP_TATCELL_MSEC);
}


static ngx_int_t
ngx_http_tatcell_refused(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx)
{
    ngx_uint_t                    i;
    tatcell_counters_t           *counts;
    ngx_http_tatcell_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_tatcell_module);

    i = ctx->decision.policy;
    counts = ngx_http_tatcell_counters(ctx->uses[i]->zone);

    counts->untracked += ctx->decisions[i].tracking == TATCELL_UNTRACKED;
    counts->inherited += ctx->decisions[i].tracking == TATCELL_INHERITED;
    counts->forgiven += ctx->decisions[i].tracking == TATCELL_FORGIVEN;

    ngx_http_tatcell_remember(ctx->uses[i]->zone, ctx->links[i].hash, &ctx->keys[i]);

    if (r->connection->log->log_level >= lcf->log_level) {
        ngx_http_tatcell_log_refused(r, ctx, ctx->now);
    }

    if (lcf->dry_run) {
        counts->shadow++;
        ctx->status = "REJECTED_DRY_RUN";
        return NGX_DECLINED;
    }

    if (ctx->decision.verdict == TATCELL_NEVER) {
        counts->never++;

    } else {
        counts->non_conforming++;
    }

    ctx->status = "REJECTED";

    if (ngx_http_tatcell_send_fields(r, ctx, lcf->headers) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return lcf->status;
}


static ngx_int_t
ngx_http_tatcell_wait(ngx_http_request_t *r, ngx_msec_t delay)
{
    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_tatcell_resume;

    r->connection->write->delayed = 1;
    ngx_add_timer(r->connection->write, delay);

    return NGX_AGAIN;
}


static void
ngx_http_tatcell_resume(ngx_http_request_t *r)
{
    uint64_t                 now;
    ngx_event_t             *wev;
    ngx_http_tatcell_ctx_t  *ctx;

    wev = r->connection->write;
    ctx = ngx_http_tatcell_get_ctx(r);

    if (!wev->delayed && ctx != NULL) {
        now = ngx_http_tatcell_now();

        /* Timers count from the start of a round of the event loop, and so may be early. */
        if (now + NGX_HTTP_TATCELL_MSEC <= ctx->decision.departure) {
            wev->delayed = 1;
            ngx_add_timer(wev, (ctx->decision.departure - now) / NGX_HTTP_TATCELL_MSEC);
        }
    }

    if (wev->delayed) {
        if (ngx_handle_write_event(wev, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }
        return;
    }

    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


/* The context hangs on a cleanup of the pool, where an internal redirect does not clear it. */
static ngx_http_tatcell_ctx_t *
ngx_http_tatcell_create_ctx(ngx_http_request_t *r, ngx_uint_t count)
{
    u_char                  *p;
    ngx_pool_cleanup_t      *cln;
    ngx_http_tatcell_ctx_t  *ctx;

    /* As ngx_pool_cleanup_add, with one allocation for the cleanup and its data. */
    cln = ngx_palloc(r->pool, sizeof(ngx_pool_cleanup_t) + sizeof(ngx_http_tatcell_ctx_t)
                              + count * (sizeof(tatcell_link_t) + sizeof(ngx_str_t)
                                         + sizeof(ngx_http_tatcell_use_t *))
                              + (count > 1 ? count * sizeof(tatcell_decision_t) : 0));
    if (cln == NULL) {
        return NULL;
    }

    ctx = (ngx_http_tatcell_ctx_t *) (cln + 1);
    cln->data = ctx;
    cln->next = r->pool->cleanup;
    r->pool->cleanup = cln;

    /* A decision is written whole, or brief: then these fields of it are set, and none but these is read. */
    ctx->status = NULL;
    ctx->count = 0;
    ctx->reserve = 0;
    ctx->decision.size = sizeof(tatcell_decision_t);
    ctx->decision.policy = 0;
    ctx->decision.tracking = TATCELL_TRACKED;

    p = (u_char *) (ctx + 1);
    ctx->decisions = &ctx->decision;
    ctx->links = (tatcell_link_t *) p;
    p += count * sizeof(tatcell_link_t);

    /* A chain reads all of its links; one link is read by the names of its fields. */
    if (count > 1) {
        ngx_memzero(ctx->links, count * sizeof(tatcell_link_t));
        ctx->decisions = (tatcell_decision_t *) p;
        ngx_memzero(p, count * sizeof(tatcell_decision_t));
        p += count * sizeof(tatcell_decision_t);
    }

    ctx->keys = (ngx_str_t *) p;
    p += count * sizeof(ngx_str_t);
    ctx->uses = (ngx_http_tatcell_use_t **) p;

    cln->handler = ngx_http_tatcell_forget;
    ngx_http_set_ctx(r, ctx, ngx_http_tatcell_module);
    ngx_http_set_ctx(r->main, ctx, ngx_http_tatcell_module);

    return ctx;
}


/* Marks the cleanup as that of this module; the pool frees the rest. */
static void
ngx_http_tatcell_forget(void *data)
{
}


/* The context of a request that was asked already, NULL for others. */
ngx_http_tatcell_ctx_t *
ngx_http_tatcell_get_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t      *cln;
    ngx_http_tatcell_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_tatcell_module);

    if (ctx == NULL && (r->internal || r->filter_finalize)) {
        for (cln = r->pool->cleanup; cln; cln = cln->next) {
            if (cln->handler == ngx_http_tatcell_forget) {
                ctx = cln->data;
                break;
            }
        }
    }

    /* One without a zone was not asked. */
    return ctx != NULL && (ctx->count || ctx->status) ? ctx : NULL;
}
