/*
 * Rates as text ("10r/s", "5mB/s", "unlimited"), tatcell_rates, and the limits that are made of them.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "ngx_http_tatcell_module.h"


static char *ngx_http_tatcell_rates_line(ngx_conf_t *cf, ngx_command_t *dummy, void *conf);
static ngx_int_t ngx_http_tatcell_rates_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data);


typedef struct {
    ngx_conf_t                 *cf;             /* around the block: what is compiled belongs to http */
    ngx_http_tatcell_rates_t   *rates;
    ngx_hash_keys_arrays_t      keys;
    ngx_array_t                 regexes;        /* of ngx_http_map_regex_t */
} ngx_http_tatcell_rates_block_t;

/* Whether a size of nginx starts here: kB, mB or gB. */
static ngx_uint_t
ngx_http_tatcell_is_size(ngx_str_t *text, size_t i)
{
    u_char  c = text->data[i];

    return (c == 'k' || c == 'm' || c == 'g') && i + 1 < text->len && text->data[i + 1] == 'B';
}


/*
 * "unlimited", or a limit as the library reads it: "10r/s", "5/15min", "1.5MB/s burst 64kB". In sizes of nginx k, m and
 * g are powers of 1024, so the library is given Ki, Mi and Gi. After an error `at` is the first byte that is not read.
 */
ngx_int_t
ngx_http_tatcell_parse_rate(ngx_str_t *text, ngx_http_tatcell_rate_t *rate, size_t *at)
{
    u_char               *p, copy[2 * NGX_HTTP_TATCELL_RATE_LEN] = "";
    size_t                i, wrong = 0;
    tatcell_limit_spec_t  spec = TATCELL_LIMIT_SPEC_INIT;

    ngx_memzero(rate, sizeof(ngx_http_tatcell_rate_t));

    if (text->len == sizeof("unlimited") - 1 && ngx_strncmp(text->data, "unlimited", text->len) == 0) {
        rate->unlimited = 1;
        return NGX_OK;
    }

    *at = NGX_HTTP_TATCELL_RATE_LEN;
    if (text->len > *at) {
        return NGX_ERROR;
    }

    for (p = copy, i = 0; i < text->len; i++) {
        *p++ = text->data[i];
        if (ngx_http_tatcell_is_size(text, i)) {
            p[-1] = ngx_toupper(text->data[i]);
            *p++ = 'i';
        }
    }

    if (tatcell_limit_spec_parse(&spec, copy, p - copy, NGX_HTTP_TATCELL_HZ, &wrong) != 0) {
        for (i = 0, *at = 0; i < wrong; ++*at) {
            i += 1 + ngx_http_tatcell_is_size(text, *at);
        }
        return NGX_ERROR;
    }

    /* Without "burst", in which alone there is a b, the directive's burst counts, not that of the library. */
    rate->burst = ngx_strlchr(copy, p, 'b') ? spec.burst : 0;
    rate->bytes = ngx_strlchr(copy, ngx_strlchr(copy, p, '/'), 'B') != NULL;
    rate->units = spec.units;
    rate->period = spec.period;

    return NGX_OK;
}


/* What a parameter says that should be a rate, from which byte on it does not, and what to write instead. */
void
ngx_http_tatcell_no_rate(ngx_conf_t *cf, ngx_str_t *whole, size_t at)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid \"%V\" at byte %uz, \"%*s\": write a number above 0 and r/s, r/m, r/h, r/d, or kB/s, "
                       "mB/s and so on, and maybe burst=N, as in rate=10r/s; or unlimited, in tatcell_rates", whole,
                       at, whole->len - at, whole->data + at);
}


/* What passes at once, and how much more waits: its length in time is a little more than it can be in any word. */
void
ngx_http_tatcell_spec(ngx_http_tatcell_use_t *use, ngx_http_tatcell_rate_t *rate, tatcell_limit_spec_t *spec)
{
    double    delay;
    uint64_t  burst, now;

    burst = rate->burst ? rate->burst : use->burst;
    now = use->nodelay ? burst : ngx_min(use->delay, burst);

    *spec = (tatcell_limit_spec_t) TATCELL_LIMIT_SPEC_INIT;
    spec->units = rate->units;
    spec->period = rate->period;
    spec->burst = now;

    if (burst > now) {
        delay = (double) (burst - now) * ((double) rate->period / (double) rate->units) * (1.0 + 1.0 / 512) + 2;
        spec->max_delay = delay < 9e18 ? (uint64_t) delay : (uint64_t) 9e18;
    }
}


/* The limit of a directive at a rate. */
int32_t
ngx_http_tatcell_limit(ngx_http_tatcell_use_t *use, ngx_http_tatcell_rate_t *rate, const tatcell_table_t *table,
    tatcell_limit_t *limit)
{
    int32_t                rc;
    uint64_t               more, units;
    tatcell_limit_info_t   info = TATCELL_LIMIT_INFO_INIT;
    tatcell_limit_spec_t   spec;

    ngx_http_tatcell_spec(use, rate, &spec);

    rc = tatcell_limit_init_table(limit, table, &spec);
    if (rc < 0 || spec.max_delay == 0) {
        return rc;
    }

    /*
     * The delay again, from the emission interval that the limit came out with: just as many requests wait as were
     * asked for, though the interval was rounded.
     */
    rc = tatcell_limit_info(limit, &info);
    if (rc < 0) {
        return rc;
    }

    units = (rate->burst ? rate->burst : use->burst) - spec.burst;
    more = units * info.emission_q;

    if (info.resolution > 0) {
        more = (more >> info.resolution) + ((more & (((uint64_t) 1 << info.resolution) - 1)) != 0);

    } else {
        more <<= -info.resolution;
    }

    spec.max_delay = more;

    return tatcell_limit_init_table(limit, table, &spec);
}


/*
 * The limit of a request under a directive: that of the zone, or of the rate that a variable gives. Texts that came
 * before are remembered; a text is made into a limit in some 200 ns.
 */
ngx_uint_t
ngx_http_tatcell_limit_of(ngx_http_request_t *r, ngx_http_tatcell_use_t *use, const tatcell_limit_t **limit,
    ngx_str_t *text)
{
    size_t                      at;
    ngx_http_tatcell_rate_t     rate;
    ngx_http_tatcell_cached_t  *cached;
    ngx_http_variable_value_t  *vv;

    *limit = &use->limit;

    if (use->cache == NULL) {
        return NGX_HTTP_TATCELL_LIMIT;
    }

    vv = ngx_http_get_indexed_variable(r, use->zone->rate_index);
    if (vv == NULL || vv->not_found || vv->len == 0) {
        return NGX_HTTP_TATCELL_LIMIT;
    }

    text->data = vv->data;
    text->len = vv->len;

    if (vv->len > NGX_HTTP_TATCELL_RATE_LEN) {
        return NGX_HTTP_TATCELL_BAD;
    }

    cached = &use->cache[ngx_crc32_short(vv->data, vv->len) % NGX_HTTP_TATCELL_CACHE];

    if (cached->len != vv->len || ngx_memcmp(cached->text, vv->data, vv->len) != 0) {
        cached->len = 0;

        if (ngx_http_tatcell_parse_rate(text, &rate, &at) != NGX_OK
            || (!rate.unlimited && rate.bytes != use->zone->rate.bytes))
        {
            cached->kind = NGX_HTTP_TATCELL_BAD;

        } else if (rate.unlimited) {
            cached->kind = NGX_HTTP_TATCELL_UNLIMITED;

        } else if (ngx_http_tatcell_limit(use, &rate, &use->zone->table, &cached->limit) != 0) {
            cached->kind = NGX_HTTP_TATCELL_BAD;

        } else {
            cached->kind = NGX_HTTP_TATCELL_LIMIT;
        }

        ngx_memcpy(cached->text, vv->data, vv->len);
        cached->len = vv->len;
    }

    if (cached->kind == NGX_HTTP_TATCELL_LIMIT) {
        *limit = &cached->limit;
    }

    return cached->kind;
}


/*
 * tatcell_rates STRING $variable { VALUE RATE [burst=N]; ... }
 *
 * A map whose values are rates, so that a wrong one is found when the configuration is read.
 */
char *
ngx_http_tatcell_rates(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                              *rv;
    ngx_str_t                         *value, name;
    ngx_conf_t                         save;
    ngx_hash_init_t                    hash;
    ngx_http_variable_t               *var;
    ngx_http_tatcell_rates_t          *rates, **slot;
    ngx_http_tatcell_main_conf_t      *mcf;
    ngx_http_tatcell_rates_block_t     block;
    ngx_http_compile_complex_value_t   ccv;

    value = cf->args->elts;

    name = value[2];
    if (name.len < 2 || name.data[0] != '$') {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" is not a variable: write \"$%V\"", &name, &name);
        return NGX_CONF_ERROR;
    }
    name.data++;
    name.len--;

    rates = ngx_pcalloc(cf->pool, sizeof(ngx_http_tatcell_rates_t));
    if (rates == NULL) {
        return NGX_CONF_ERROR;
    }

    rates->variable = name;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));
    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = &rates->source;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    var = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_CHANGEABLE);
    if (var == NULL) {
        return NGX_CONF_ERROR;
    }

    var->get_handler = ngx_http_tatcell_rates_variable;
    var->data = (uintptr_t) rates;

    ngx_memzero(&block, sizeof(ngx_http_tatcell_rates_block_t));
    block.rates = rates;
    block.keys.pool = cf->pool;
    block.keys.temp_pool = cf->temp_pool;

    if (ngx_hash_keys_array_init(&block.keys, NGX_HASH_SMALL) != NGX_OK
        || ngx_array_init(&rates->rates, cf->pool, 4, sizeof(ngx_http_tatcell_rate_t)) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

#if (NGX_PCRE)
    if (ngx_array_init(&block.regexes, cf->pool, 2, sizeof(ngx_http_map_regex_t)) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
#endif

    save = *cf;
    block.cf = &save;
    cf->ctx = &block;
    cf->handler = ngx_http_tatcell_rates_line;
    cf->handler_conf = conf;
    rv = ngx_conf_parse(cf, NULL);
    *cf = save;

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (block.keys.keys.nelts) {
        hash.key = ngx_hash_key_lc;
        hash.max_size = 2048;
        hash.bucket_size = ngx_align(64, ngx_cacheline_size);
        hash.name = "tatcell_rates_hash";
        hash.pool = cf->pool;
        hash.hash = &rates->map.hash.hash;
        hash.temp_pool = NULL;

        if (ngx_hash_init(&hash, block.keys.keys.elts, block.keys.keys.nelts) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

#if (NGX_PCRE)
    rates->map.regex = block.regexes.elts;
    rates->map.nregex = block.regexes.nelts;
#endif

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_tatcell_module);

    slot = ngx_array_push(&mcf->rates);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = rates;

    return NGX_CONF_OK;
}


/* One line of a tatcell_rates block. */
static char *
ngx_http_tatcell_rates_line(ngx_conf_t *cf, ngx_command_t *dummy, void *conf)
{
    u_char                          *p;
    size_t                           at;
    ngx_str_t                       *value, text;
    ngx_uint_t                       i;
    ngx_http_tatcell_rate_t          rate, *more;
    ngx_http_variable_value_t       *vv;
    ngx_http_tatcell_rates_block_t  *block;
#if (NGX_PCRE)
    ngx_regex_compile_t              rc;
    ngx_http_map_regex_t            *regex;
    u_char                           errstr[NGX_MAX_CONF_ERRSTR];
#endif

    block = cf->ctx;
    value = cf->args->elts;

    if (cf->args->nelts == 2 && value[0].len == 7 && ngx_strncmp(value[0].data, "include", 7) == 0) {
        return ngx_conf_include(cf, dummy, conf);
    }

    if (cf->args->nelts < 2) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "write a line of tatcell_rates as value, rate and maybe burst: gold 100r/s burst=200;");
        return NGX_CONF_ERROR;
    }

    for (text.len = 0, i = 1; i < cf->args->nelts; i++) {
        text.len += value[i].len + 1;
    }

    text.data = ngx_pnalloc(cf->pool, text.len);
    if (text.data == NULL) {
        return NGX_CONF_ERROR;
    }

    for (p = text.data, i = 1; i < cf->args->nelts; i++) {
        p = ngx_cpymem(p, value[i].data, value[i].len);
        *p++ = ' ';
    }
    text.len--;

    if (ngx_http_tatcell_parse_rate(&text, &rate, &at) != NGX_OK) {
        ngx_http_tatcell_no_rate(cf, &text, at);
        return NGX_CONF_ERROR;
    }

    more = ngx_array_push(&block->rates->rates);
    vv = ngx_pcalloc(cf->pool, sizeof(ngx_http_variable_value_t));
    if (more == NULL || vv == NULL) {
        return NGX_CONF_ERROR;
    }

    *more = rate;
    vv->valid = 1;
    vv->data = text.data;
    vv->len = text.len;

    if (value[0].len == 7 && ngx_strncmp(value[0].data, "default", 7) == 0) {
        if (block->rates->default_value) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "tatcell_rates has two defaults: remove one");
            return NGX_CONF_ERROR;
        }

        block->rates->default_value = vv;
        return NGX_CONF_OK;
    }

    if (value[0].len && value[0].data[0] == '~') {
#if (NGX_PCRE)
        regex = ngx_array_push(&block->regexes);
        if (regex == NULL) {
            return NGX_CONF_ERROR;
        }

        value[0].len--;
        value[0].data++;

        ngx_memzero(&rc, sizeof(ngx_regex_compile_t));

        if (value[0].len && value[0].data[0] == '*') {
            value[0].len--;
            value[0].data++;
            rc.options = NGX_REGEX_CASELESS;
        }

        rc.pattern = value[0];
        rc.err.len = NGX_MAX_CONF_ERRSTR;
        rc.err.data = errstr;

        regex->regex = ngx_http_regex_compile(block->cf, &rc);
        if (regex->regex == NULL) {
            return NGX_CONF_ERROR;
        }

        regex->value = vv;
        return NGX_CONF_OK;
#else
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" needs an nginx that was built with PCRE", &value[0]);
        return NGX_CONF_ERROR;
#endif
    }

    /* A value that starts with a backslash is taken as it is behind that, as map does it. */
    if (value[0].len && value[0].data[0] == '\\') {
        value[0].len--;
        value[0].data++;
    }

    switch (ngx_hash_add_key(&block->keys, &value[0], vv, 0)) {

    case NGX_OK:
        return NGX_CONF_OK;

    case NGX_BUSY:
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" is in tatcell_rates twice: remove one", &value[0]);
        return NGX_CONF_ERROR;

    default:
        return NGX_CONF_ERROR;
    }
}


static ngx_int_t
ngx_http_tatcell_rates_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                   source;
    ngx_http_tatcell_rates_t   *rates;
    ngx_http_variable_value_t  *value;

    rates = (ngx_http_tatcell_rates_t *) data;

    if (ngx_http_complex_value(r, &rates->source, &source) != NGX_OK) {
        return NGX_ERROR;
    }

    value = ngx_http_map_find(r, &rates->map, &source);
    if (value == NULL) {
        value = rates->default_value;
    }

    if (value == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    *v = *value;

    return NGX_OK;
}
