/*
 * Variables for logs and conditions.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   $tatcell_status       PASSED, DELAYED, REJECTED, DELAYED_DRY_RUN, REJECTED_DRY_RUN, UNDECIDED, UNLIMITED
 *   $tatcell_zone         the zone that refused or delayed, or has least left
 *   $tatcell_remaining    units that would pass right now
 *   $tatcell_retry_after  seconds, with milliseconds, until the same cost passes
 *   $tatcell_delay        seconds, with milliseconds, that it was delayed
 */

#include "ngx_http_tatcell_module.h"


static ngx_int_t ngx_http_tatcell_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data);


#define NGX_HTTP_TATCELL_V_STATUS     0
#define NGX_HTTP_TATCELL_V_ZONE       1
#define NGX_HTTP_TATCELL_V_REMAINING  2
#define NGX_HTTP_TATCELL_V_RETRY      3
#define NGX_HTTP_TATCELL_V_DELAY      4

static ngx_http_variable_t  ngx_http_tatcell_variables[] = {

    { ngx_string("tatcell_status"), NULL, ngx_http_tatcell_variable, NGX_HTTP_TATCELL_V_STATUS,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("tatcell_zone"), NULL, ngx_http_tatcell_variable, NGX_HTTP_TATCELL_V_ZONE,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("tatcell_remaining"), NULL, ngx_http_tatcell_variable, NGX_HTTP_TATCELL_V_REMAINING,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("tatcell_retry_after"), NULL, ngx_http_tatcell_variable, NGX_HTTP_TATCELL_V_RETRY,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("tatcell_delay"), NULL, ngx_http_tatcell_variable, NGX_HTTP_TATCELL_V_DELAY,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_tatcell_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_tatcell_variables; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_tatcell_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                  *p;
    uint64_t                 n;
    ngx_str_t               *name;
    ngx_http_tatcell_ctx_t  *ctx;

    ctx = ngx_http_tatcell_get_ctx(r->main);

    if (ctx == NULL || ctx->status == NULL || (data != NGX_HTTP_TATCELL_V_STATUS && ctx->count == 0)) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    if (data == NGX_HTTP_TATCELL_V_STATUS) {
        v->data = (u_char *) ctx->status;
        v->len = ngx_strlen(ctx->status);
        return NGX_OK;
    }

    if (data == NGX_HTTP_TATCELL_V_ZONE) {
        name = &ctx->uses[ctx->decision.policy]->zone->name;
        v->data = name->data;
        v->len = name->len;
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN + sizeof(".000"));
    if (p == NULL) {
        return NGX_ERROR;
    }

    v->data = p;

    switch (data) {

    case NGX_HTTP_TATCELL_V_REMAINING:
        ngx_http_tatcell_fill(ctx);
        v->len = ngx_sprintf(p, "%uL", ctx->decision.remaining) - p;
        return NGX_OK;

    case NGX_HTTP_TATCELL_V_RETRY:
        if (ctx->decision.verdict == TATCELL_NEVER) {
            v->not_found = 1;
            return NGX_OK;
        }
        n = ctx->decision.retry_after;
        break;

    default:
        n = ctx->decision.departure;
        n = ctx->decision.verdict == TATCELL_PASS && n > ctx->now ? n - ctx->now : 0;
        break;
    }

    /* Rounded up, as a time to come back is. */
    n = n / 1000000 + (n % 1000000 != 0);
    v->len = ngx_sprintf(p, "%uL.%03uL", n / 1000, n % 1000) - p;

    return NGX_OK;
}
