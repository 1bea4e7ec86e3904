/*
 * What the client is told: RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers), Retry-After and the
 * X-RateLimit fields, with the status of a refusal and with every other.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "ngx_http_tatcell_module.h"


static ngx_int_t ngx_http_tatcell_send_retry_after(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx);
static ngx_int_t ngx_http_tatcell_push(ngx_http_request_t *r, const ngx_str_t *name, u_char *text, size_t length);


typedef struct {
    ngx_uint_t   header;        /* NGX_HTTP_TATCELL_H_ */
    uint32_t     field;         /* TATCELL_HTTP_ */
    ngx_str_t    name;
} ngx_http_tatcell_field_t;

static const ngx_http_tatcell_field_t  ngx_http_tatcell_fields[] = {
    { NGX_HTTP_TATCELL_H_POLICY, TATCELL_HTTP_RATELIMIT_POLICY, ngx_string("RateLimit-Policy") },
    { NGX_HTTP_TATCELL_H_RATELIMIT, TATCELL_HTTP_RATELIMIT, ngx_string("RateLimit") },
    { NGX_HTTP_TATCELL_H_RETRY, TATCELL_HTTP_RETRY_AFTER, ngx_string("Retry-After") },
    { NGX_HTTP_TATCELL_H_X, TATCELL_HTTP_X_LIMIT, ngx_string("X-RateLimit-Limit") },
    { NGX_HTTP_TATCELL_H_X, TATCELL_HTTP_X_REMAINING, ngx_string("X-RateLimit-Remaining") },
    { NGX_HTTP_TATCELL_H_X, TATCELL_HTTP_X_RESET, ngx_string("X-RateLimit-Reset") },
    { 0, 0, ngx_null_string }
};

static const ngx_str_t  ngx_http_tatcell_retry_after = ngx_string("Retry-After");


/* Adds the fields that the location asks for; one that has nothing to say is left out. */
ngx_int_t
ngx_http_tatcell_send_fields(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx, ngx_uint_t headers)
{
    u_char                          *copy;
    int32_t                          length;
    ngx_uint_t                       i;
    ngx_http_tatcell_zone_t         *zone;
    const ngx_http_tatcell_field_t  *field;
    u_char                           text[1024];
    char                             names[TATCELL_CHAIN_MAX][64];
    tatcell_http_policy_t            policies[TATCELL_CHAIN_MAX];

    headers &= ~NGX_CONF_BITMASK_SET;

    if (headers == NGX_HTTP_TATCELL_H_OFF) {
        return NGX_OK;
    }

    /* The shipped case, by itself: the decision has the longest wait of all zones. */
    if (headers == NGX_HTTP_TATCELL_H_RETRY) {
        return ctx->decision.verdict == TATCELL_NON_CONFORMING ? ngx_http_tatcell_send_retry_after(r, ctx) : NGX_OK;
    }

    for (i = 0; i < ctx->count; i++) {
        zone = ctx->uses[i]->zone;
        ngx_cpystrn((u_char *) names[i], zone->name.data, ngx_min(zone->name.len + 1, sizeof(names[i])));

        policies[i] = (tatcell_http_policy_t) TATCELL_HTTP_POLICY_INIT;
        policies[i].name = names[i];
        policies[i].unit = zone->rate.bytes ? "content-bytes" : NULL;
        policies[i].limit = ctx->links[i].limit;
        policies[i].decision = &ctx->decisions[i];
    }

    for (field = ngx_http_tatcell_fields; field->name.len; field++) {
        if (!(headers & field->header)) {
            continue;
        }

        length = tatcell_http_value(policies, ctx->count, NGX_HTTP_TATCELL_HZ, field->field, (char *) text,
                                    sizeof(text));
        if (length <= 0 || (size_t) length >= sizeof(text)) {
            continue;
        }

        copy = ngx_pnalloc(r->pool, length);
        if (copy == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(copy, text, length);

        if (ngx_http_tatcell_push(r, &field->name, copy, length) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* An attacker gets this with every refusal: no format is read, and the text is a part of the context. */
static ngx_int_t
ngx_http_tatcell_send_retry_after(ngx_http_request_t *r, ngx_http_tatcell_ctx_t *ctx)
{
    u_char    *p, *last;
    uint64_t   seconds;

    seconds = ctx->decision.retry_after / NGX_HTTP_TATCELL_HZ
              + (ctx->decision.retry_after % NGX_HTTP_TATCELL_HZ != 0);

    last = ctx->retry + sizeof(ctx->retry);
    p = last;

    do {
        *--p = (u_char) ('0' + seconds % 10);
        seconds /= 10;
    } while (seconds);

    return ngx_http_tatcell_push(r, &ngx_http_tatcell_retry_after, p, last - p);
}


/* The text must live as long as the request. */
static ngx_int_t
ngx_http_tatcell_push(ngx_http_request_t *r, const ngx_str_t *name, u_char *text, size_t length)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
#if (nginx_version >= 1023000)
    h->next = NULL;
#endif
    h->key = *name;
    h->value.len = length;
    h->value.data = text;

    return NGX_OK;
}
