/*
 * tatcell_zone and tatcell, and what is checked when all of the configuration is read.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "ngx_http_tatcell_module.h"


static char *ngx_http_tatcell_zone_name(ngx_conf_t *cf, ngx_http_tatcell_zone_t *zone, ngx_str_t *text,
    ssize_t *size);
static ngx_int_t ngx_http_tatcell_key_index(ngx_conf_t *cf, ngx_str_t *text);
static ngx_int_t ngx_http_tatcell_memory_name(ngx_conf_t *cf, ngx_str_t *whole, size_t skip, ngx_str_t *name);
static ngx_int_t ngx_http_tatcell_seed(ngx_conf_t *cf, ngx_http_tatcell_zone_t *zone, ngx_str_t *file);
static size_t ngx_http_tatcell_least(void);
static ngx_int_t ngx_http_tatcell_number(ngx_conf_t *cf, ngx_str_t *whole, size_t skip, uint64_t *n);
static ngx_int_t ngx_http_tatcell_check_use(ngx_conf_t *cf, ngx_http_tatcell_use_t *use);
static ngx_int_t ngx_http_tatcell_check_zone(ngx_conf_t *cf, ngx_http_tatcell_zone_t *zone);
static ngx_uint_t ngx_http_tatcell_is_variable(ngx_conf_t *cf, ngx_str_t *name);


static const ngx_str_t  ngx_http_tatcell_policies[] = {
    ngx_string("policy=admit"),     /* TATCELL_FULL_ADMIT */
    ngx_string("policy=inherit"),   /* TATCELL_FULL_INHERIT */
    ngx_string("policy=deny"),      /* TATCELL_FULL_DENY */
    ngx_string("policy=sampled"),   /* TATCELL_FULL_SAMPLED */
    ngx_null_string
};


#define ngx_http_tatcell_is(text, word)                                       \
    ((text)->len >= sizeof(word) - 1                                          \
     && ngx_strncmp((text)->data, word, sizeof(word) - 1) == 0)


/*
 * tatcell_zone KEY zone=NAME:SIZE rate=RATE [burst=N] [rate_by=$variable] [policy=POLICY] [tag_bits=N] [skew=TIME]
 *              [table=/NAME] [seed=FILE] [counters=/NAME]
 */
char *
ngx_http_tatcell_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    size_t                             at;
    ssize_t                            size;
    uint64_t                           n;
    ngx_str_t                         *value, text;
    ngx_uint_t                         i, k;
    ngx_http_tatcell_zone_t           *zone, **slot;
    ngx_http_tatcell_main_conf_t      *mcf;
    ngx_http_compile_complex_value_t   ccv;

    value = cf->args->elts;
    size = 0;

    zone = ngx_pcalloc(cf->pool, sizeof(ngx_http_tatcell_zone_t));
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    zone->pool = cf->pool;
    zone->burst = 1;
    zone->skew = NGX_HTTP_TATCELL_SKEW;
    zone->policy = TATCELL_FULL_ADMIT;
    zone->file = cf->conf_file->file.name.data;
    zone->line = cf->conf_file->line;

    if (ngx_array_init(&zone->uses, cf->pool, 2, sizeof(ngx_http_tatcell_use_t *)) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));
    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = &zone->key;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    zone->key_index = ngx_http_tatcell_key_index(cf, &value[1]);

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_http_tatcell_is(&value[i], "zone=")) {
            if (ngx_http_tatcell_zone_name(cf, zone, &value[i], &size) != NGX_CONF_OK) {
                return NGX_CONF_ERROR;
            }
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "rate=")) {
            text.data = value[i].data + 5;
            text.len = value[i].len - 5;

            at = 0;
            if (ngx_http_tatcell_parse_rate(&text, &zone->rate, &at) != NGX_OK || zone->rate.unlimited) {
                ngx_http_tatcell_no_rate(cf, &value[i], at + 5);
                return NGX_CONF_ERROR;
            }

            if (zone->rate.burst) {
                zone->burst = zone->rate.burst;
                zone->rate.burst = 0;
            }

            zone->rate_text = text;
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "burst=")) {
            if (ngx_http_tatcell_number(cf, &value[i], 6, &zone->burst) != NGX_OK) {
                return NGX_CONF_ERROR;
            }
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "rate_by=")) {
            text.data = value[i].data + 8;
            text.len = value[i].len - 8;

            if (text.len < 2 || text.data[0] != '$') {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "invalid \"%V\": name a variable, of tatcell_rates or map, as in rate_by=$plan_rate",
                                   &value[i]);
                return NGX_CONF_ERROR;
            }

            text.data++;
            text.len--;
            zone->rate_by = text;

            zone->rate_index = ngx_http_get_variable_index(cf, &text);
            if (zone->rate_index == NGX_ERROR) {
                return NGX_CONF_ERROR;
            }
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "tag_bits=")) {
            if (ngx_http_tatcell_number(cf, &value[i], 9, &n) != NGX_OK) {
                return NGX_CONF_ERROR;
            }

            if (n < 12 || n > 24) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "invalid \"%V\": write 12 to 24; more bits tell keys apart, fewer hold longer debts",
                                   &value[i]);
                return NGX_CONF_ERROR;
            }

            zone->tag_bits = (uint32_t) n;
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "skew=")) {
            text.data = value[i].data + 5;
            text.len = value[i].len - 5;

            k = ngx_parse_time(&text, 0);
            if ((ngx_int_t) k == NGX_ERROR || k == 0 || k > 86400000) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid \"%V\": write a time up to a day, as in skew=60s",
                                   &value[i]);
                return NGX_CONF_ERROR;
            }

            zone->skew = k * NGX_HTTP_TATCELL_MSEC;
            zone->skew_given = 1;
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "counters=")) {
            if (ngx_http_tatcell_memory_name(cf, &value[i], 9, &zone->counters_name) != NGX_OK) {
                return NGX_CONF_ERROR;
            }
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "table=")) {
            if (ngx_http_tatcell_memory_name(cf, &value[i], 6, &zone->table_name) != NGX_OK) {
                return NGX_CONF_ERROR;
            }
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "seed=")) {
            text.data = value[i].data + 5;
            text.len = value[i].len - 5;

            if (ngx_http_tatcell_seed(cf, zone, &text) != NGX_OK) {
                return NGX_CONF_ERROR;
            }
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "policy=")) {
            for (k = 0; ngx_http_tatcell_policies[k].len; k++) {
                if (ngx_http_tatcell_policies[k].len == value[i].len
                    && ngx_strncmp(ngx_http_tatcell_policies[k].data, value[i].data, value[i].len) == 0)
                {
                    break;
                }
            }

            if (ngx_http_tatcell_policies[k].len == 0) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "invalid \"%V\": write policy=admit, inherit, deny or sampled",
                                   &value[i]);
                return NGX_CONF_ERROR;
            }

            zone->policy = (uint32_t) k;
            continue;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown parameter \"%V\": write zone=, rate=, burst=, rate_by=, policy=, tag_bits=, "
                           "skew=, table=, seed= or counters=",
                           &value[i]);
        return NGX_CONF_ERROR;
    }

    if (zone->name.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "tatcell_zone has no zone=: add it, as in zone=clients:1m");
        return NGX_CONF_ERROR;
    }

    if (zone->rate.units == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "tatcell_zone has no rate=: add it, as in rate=10r/s");
        return NGX_CONF_ERROR;
    }

    if (zone->table_name.len) {
        /* The zone of nginx has what stands before the table. */
        zone->bytes = ngx_align(size, ngx_pagesize);
        size = ngx_http_tatcell_least();
    }

    zone->shm_zone = ngx_shared_memory_add(cf, &zone->name, size, &ngx_http_tatcell_module);
    if (zone->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (zone->shm_zone->data) {
        ngx_http_tatcell_zone_t *first = zone->shm_zone->data;

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" was defined in %s:%ui: give this one another name",
                           &zone->name, first->file, first->line);
        return NGX_CONF_ERROR;
    }

    zone->shm_zone->init = ngx_http_tatcell_init_zone;
    zone->shm_zone->data = zone;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_tatcell_module);
    slot = mcf->zones.elts;

    /* Counters of two zones under one name would be one sum, and one of two tables would have no name. */
    for (i = 0; i < mcf->zones.nelts; i++) {
        if (ngx_http_tatcell_same(&slot[i]->counters_name, &zone->counters_name)
            || ngx_http_tatcell_same(&slot[i]->table_name, &zone->table_name))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "zone \"%V\", defined in %s:%ui, has %s%V: give this one another name",
                               &slot[i]->name, slot[i]->file, slot[i]->line,
                               ngx_http_tatcell_same(&slot[i]->table_name, &zone->table_name) ? "table=" : "counters=",
                               ngx_http_tatcell_same(&slot[i]->table_name, &zone->table_name) ? &zone->table_name
                                                                                               : &zone->counters_name);
            return NGX_CONF_ERROR;
        }
    }

    if (ngx_http_tatcell_same(&zone->counters_name, &zone->table_name)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "table= and counters= have one name, %V: give one of them another",
                           &zone->table_name);
        return NGX_CONF_ERROR;
    }

    slot = ngx_array_push(&mcf->zones);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = zone;

    return NGX_CONF_OK;
}


/*
 * The index of the variable that is all of a key, as "$binary_remote_addr" is; NGX_ERROR for other keys. Its value is
 * read where it is, and a key of several parts is copied together first.
 */
static ngx_int_t
ngx_http_tatcell_key_index(ngx_conf_t *cf, ngx_str_t *text)
{
    u_char      c;
    ngx_str_t   name;
    ngx_uint_t  i;

    /* "$1" is a capture, not a variable. */
    if (text->len < 2 || text->data[0] != '$' || (text->data[1] >= '0' && text->data[1] <= '9')) {
        return NGX_ERROR;
    }

    name.data = text->data + 1;
    name.len = text->len - 1;

    for (i = 0; i < name.len; i++) {
        c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) {
            return NGX_ERROR;
        }
    }

    return ngx_http_get_variable_index(cf, &name);
}


/* A name of shared memory, or a path, behind the first bytes of a parameter. */
static ngx_int_t
ngx_http_tatcell_memory_name(ngx_conf_t *cf, ngx_str_t *whole, size_t skip, ngx_str_t *name)
{
    name->data = whole->data + skip;
    name->len = whole->len - skip;

    if (name->len < 2 || name->len > NGX_HTTP_TATCELL_PATH || name->data[0] != '/') {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\": write a name of shared memory or a path, as in %*s/clients", whole, skip,
                           whole->data);
        return NGX_ERROR;
    }

    /* The path of shared memory is one more spelling of its name. */
    if (ngx_http_tatcell_is(name, NGX_HTTP_TATCELL_SHM "/")
        && name->len > sizeof(NGX_HTTP_TATCELL_SHM)
        && ngx_strchr(name->data + sizeof(NGX_HTTP_TATCELL_SHM), '/') == NULL)
    {
        name->data += sizeof(NGX_HTTP_TATCELL_SHM) - 1;
        name->len -= sizeof(NGX_HTTP_TATCELL_SHM) - 1;
    }

    return NGX_OK;
}


/* Whether two zones have one name of memory. */
ngx_uint_t
ngx_http_tatcell_same(ngx_str_t *one, ngx_str_t *other)
{
    return one->len && one->len == other->len && ngx_strncmp(one->data, other->data, one->len) == 0;
}


/* The seed of a zone, from a file: 16 bytes, or 32 hexadecimal digits. Whoever has it can tell whose a debt is. */
static ngx_int_t
ngx_http_tatcell_seed(ngx_conf_t *cf, ngx_http_tatcell_zone_t *zone, ngx_str_t *file)
{
    u_char      text[64];
    ssize_t     n;
    ngx_fd_t    fd;
    ngx_int_t   byte;
    ngx_uint_t  i;

    if (ngx_conf_full_name(cf->cycle, file, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    fd = ngx_open_file(file->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    n = fd == NGX_INVALID_FILE ? -1 : ngx_read_fd(fd, text, sizeof(text));

    if (n < 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno, "seed=\"%V\" cannot be read", file);
    }

    if (fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(fd);
    }

    if (n < 0) {
        return NGX_ERROR;
    }

    zone->seed_given = 1;

    if (n == sizeof(zone->seed)) {
        ngx_memcpy(zone->seed, text, sizeof(zone->seed));
        return NGX_OK;
    }

    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' ')) {
        n--;
    }

    for (i = 0; n == 2 * sizeof(zone->seed) && i < sizeof(zone->seed); i++) {
        byte = ngx_hextoi(&text[2 * i], 2);
        if (byte == NGX_ERROR) {
            break;
        }
        zone->seed[i] = (uint8_t) byte;
    }

    if (n != 2 * sizeof(zone->seed) || i < sizeof(zone->seed)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "seed=\"%V\" is no seed: write 16 bytes or 32 hexadecimal digits",
                           file);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* The smallest zone: the pool of nginx, what stands before the table, and a table of one page. */
static size_t
ngx_http_tatcell_least(void)
{
    return ngx_align(sizeof(ngx_slab_pool_t) + sizeof(ngx_http_tatcell_shared_t) + 8 * ngx_pagesize, 32 * 1024);
}


/* zone=NAME:SIZE. The name is shown to clients, in structured fields and in labels of Prometheus. */
static char *
ngx_http_tatcell_zone_name(ngx_conf_t *cf, ngx_http_tatcell_zone_t *zone, ngx_str_t *text, ssize_t *size)
{
    size_t      least;
    u_char     *p, c;
    ngx_str_t   s;
    ngx_uint_t  i;

    p = ngx_strlchr(text->data, text->data + text->len, ':');
    if (p == NULL || p == text->data + 5) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid \"%V\": write zone=NAME:SIZE, as in zone=clients:1m", text);
        return NGX_CONF_ERROR;
    }

    zone->name.data = text->data + 5;
    zone->name.len = p - zone->name.data;

    for (i = 0; i < zone->name.len; i++) {
        c = zone->name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'
              || c == '.'))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid zone name \"%V\": use letters, digits, _ - and .",
                               &zone->name);
            return NGX_CONF_ERROR;
        }
    }

    s.data = p + 1;
    s.len = text->data + text->len - s.data;

    *size = ngx_parse_size(&s);
    if (*size == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid size in \"%V\": write bytes, or a number and k or m", text);
        return NGX_CONF_ERROR;
    }

    least = ngx_http_tatcell_least();

    if (*size < (ssize_t) least) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is too small: at least %uzk; a key takes 8 bytes",
                           &zone->name, least / 1024);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* The number behind the first bytes of a parameter. */
static ngx_int_t
ngx_http_tatcell_number(ngx_conf_t *cf, ngx_str_t *whole, size_t skip, uint64_t *n)
{
    ngx_int_t  i;

    i = ngx_atoi(whole->data + skip, whole->len - skip);

    if (i > 0 && i <= (ngx_int_t) NGX_MAX_INT32_VALUE) {
        *n = i;
        return NGX_OK;
    }

    if (i == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\": write at least 1; the first request counts, so a 0 of limit_req is a 1 "
                           "here", whole);

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid \"%V\": write a number, 1 to %d", whole,
                           NGX_MAX_INT32_VALUE);
    }

    return NGX_ERROR;
}


/* tatcell zone=NAME [burst=N] [delay=N | nodelay] [cost=STRING], or tatcell off */
char *
ngx_http_tatcell(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_tatcell_loc_conf_t  *lcf = conf;

    ngx_str_t                         *value, text;
    ngx_uint_t                         i;
    ngx_http_tatcell_use_t            *use, **slot, **uses;
    ngx_http_tatcell_main_conf_t      *mcf;
    ngx_http_compile_complex_value_t   ccv;

    value = cf->args->elts;

    if (cf->args->nelts == 2 && value[1].len == 3 && ngx_strncmp(value[1].data, "off", 3) == 0) {
        if (lcf->uses || lcf->off == 1) {
            return "is next to another tatcell: remove one";
        }

        lcf->off = 1;
        return NGX_CONF_OK;
    }

    if (lcf->off == 1) {
        return "is next to tatcell off: remove one";
    }

    use = ngx_pcalloc(cf->pool, sizeof(ngx_http_tatcell_use_t));
    if (use == NULL) {
        return NGX_CONF_ERROR;
    }

    use->file = cf->conf_file->file.name.data;
    use->line = cf->conf_file->line;
    use->delay = 1;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_http_tatcell_is(&value[i], "zone=")) {
            use->zone_name.data = value[i].data + 5;
            use->zone_name.len = value[i].len - 5;
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "burst=")) {
            if (ngx_http_tatcell_number(cf, &value[i], 6, &use->burst) != NGX_OK) {
                return NGX_CONF_ERROR;
            }
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "delay=")) {
            if (ngx_http_tatcell_number(cf, &value[i], 6, &use->delay) != NGX_OK) {
                return NGX_CONF_ERROR;
            }
            continue;
        }

        if (value[i].len == 7 && ngx_strncmp(value[i].data, "nodelay", 7) == 0) {
            use->nodelay = 1;
            continue;
        }

        if (ngx_http_tatcell_is(&value[i], "cost=")) {
            text.data = value[i].data + 5;
            text.len = value[i].len - 5;

            use->cost = ngx_pcalloc(cf->pool, sizeof(ngx_http_complex_value_t));
            if (use->cost == NULL) {
                return NGX_CONF_ERROR;
            }

            ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));
            ccv.cf = cf;
            ccv.value = &text;
            ccv.complex_value = use->cost;

            if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
                return NGX_CONF_ERROR;
            }

            if (use->cost->lengths == NULL && ngx_atoi(text.data, text.len) == NGX_ERROR) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid \"%V\": write a number or a variable", &value[i]);
                return NGX_CONF_ERROR;
            }
            continue;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown parameter \"%V\": write zone=, burst=, delay=, nodelay, cost= or off",
                           &value[i]);
        return NGX_CONF_ERROR;
    }

    if (use->zone_name.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "tatcell has no zone=: name one of tatcell_zone, or write off");
        return NGX_CONF_ERROR;
    }

    if (lcf->uses == NULL) {
        lcf->uses = ngx_array_create(cf->pool, 2, sizeof(ngx_http_tatcell_use_t *));
        if (lcf->uses == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    if (lcf->uses->nelts == TATCELL_CHAIN_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "more than %d zones in one place: remove some",
                           TATCELL_CHAIN_MAX);
        return NGX_CONF_ERROR;
    }

    uses = lcf->uses->elts;
    for (i = 0; i < lcf->uses->nelts; i++) {
        if (uses[i]->zone_name.len == use->zone_name.len
            && ngx_strncmp(uses[i]->zone_name.data, use->zone_name.data, use->zone_name.len) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "zone \"%V\" is here twice: remove one, because a key has one debt in it",
                               &use->zone_name);
            return NGX_CONF_ERROR;
        }
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_tatcell_module);

    slot = ngx_array_push(lcf->uses);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }
    *slot = use;

    slot = ngx_array_push(&mcf->uses);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }
    *slot = use;

    return NGX_CONF_OK;
}


/* All of the configuration is read: binds directives to zones, and asks for what cannot be. */
ngx_int_t
ngx_http_tatcell_check(ngx_conf_t *cf)
{
    ngx_uint_t                      i;
    ngx_http_tatcell_use_t        **uses;
    ngx_http_tatcell_zone_t       **zones;
    ngx_http_tatcell_main_conf_t   *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_tatcell_module);

    uses = mcf->uses.elts;
    for (i = 0; i < mcf->uses.nelts; i++) {
        if (ngx_http_tatcell_check_use(cf, uses[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    zones = mcf->zones.elts;
    for (i = 0; i < mcf->zones.nelts; i++) {
        if (ngx_http_tatcell_check_zone(cf, zones[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_tatcell_check_use(ngx_conf_t *cf, ngx_http_tatcell_use_t *use)
{
    ngx_uint_t                      i;
    ngx_http_tatcell_use_t        **slot;
    ngx_http_tatcell_zone_t       **zones;
    ngx_http_tatcell_main_conf_t   *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_tatcell_module);

    zones = mcf->zones.elts;
    for (i = 0; i < mcf->zones.nelts; i++) {
        if (zones[i]->name.len == use->zone_name.len
            && ngx_strncmp(zones[i]->name.data, use->zone_name.data, use->zone_name.len) == 0)
        {
            use->zone = zones[i];
        }
    }

    if (use->zone == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "unknown zone \"%V\": define it with tatcell_zone KEY zone=%V:1m rate=... in http, in %s:%ui",
                      &use->zone_name, &use->zone_name, use->file, use->line);
        return NGX_ERROR;
    }

    if (use->burst == 0) {
        use->burst = use->zone->burst;
    }

    if (use->delay > use->burst) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "delay=%uL is more than burst=%uL: delay is the part of the burst that passes at once; write "
                      "nodelay for all of it, in %s:%ui", use->delay, use->burst, use->file, use->line);
        return NGX_ERROR;
    }

    if (use->zone->rate.bytes && use->cost == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "zone \"%V\" counts bytes, and this tatcell has no cost: add cost=$request_length or another, "
                      "in %s:%ui", &use->zone_name, use->file, use->line);
        return NGX_ERROR;
    }

    use->reserve = !use->nodelay && (use->delay < use->burst || use->zone->rate_by.len);

    if (use->zone->rate_by.len) {
        use->cache = ngx_pcalloc(cf->pool, NGX_HTTP_TATCELL_CACHE * sizeof(ngx_http_tatcell_cached_t));
        if (use->cache == NULL) {
            return NGX_ERROR;
        }
    }

    slot = ngx_array_push(&use->zone->uses);
    if (slot == NULL) {
        return NGX_ERROR;
    }
    *slot = use;

    return NGX_OK;
}


static ngx_int_t
ngx_http_tatcell_check_zone(ngx_conf_t *cf, ngx_http_tatcell_zone_t *zone)
{
    int32_t                         rc;
    ngx_uint_t                      i, k;
    tatcell_table_t                 probe;
    tatcell_limit_t                 limit;
    ngx_http_tatcell_rate_t        *rate;
    ngx_http_tatcell_use_t        **uses;
    ngx_http_tatcell_rates_t      **rates;
    ngx_http_tatcell_main_conf_t   *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_tatcell_module);

    if (zone->rate_by.len && !ngx_http_tatcell_is_variable(cf, &zone->rate_by)) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "rate_by=$%V of zone \"%V\" is not a variable: define it with tatcell_rates or map, in %s:%ui",
                      &zone->rate_by, &zone->name, zone->file, zone->line);
        return NGX_ERROR;
    }

    rates = mcf->rates.elts;
    for (i = 0; i < mcf->rates.nelts; i++) {
        if (rates[i]->variable.len == zone->rate_by.len
            && ngx_strncasecmp(rates[i]->variable.data, zone->rate_by.data, zone->rate_by.len) == 0)
        {
            zone->rates = &rates[i]->rates;
        }
    }

    if (zone->rates) {
        rate = zone->rates->elts;
        for (i = 0; i < zone->rates->nelts; i++) {
            if (!rate[i].unlimited && rate[i].bytes != zone->rate.bytes) {
                ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                              "tatcell_rates of $%V counts %s, and zone \"%V\" counts %s: use one of the two for all "
                              "rates of a zone, in %s:%ui", &zone->rate_by, rate[i].bytes ? "bytes" : "requests",
                              &zone->name, zone->rate.bytes ? "bytes" : "requests", zone->file, zone->line);
                return NGX_ERROR;
            }
        }
    }

    rc = ngx_http_tatcell_geometry(zone, &probe);

    /* Every limit of the zone, once, so that a wrong one is named with its line. */
    uses = zone->uses.elts;
    for (i = 0; rc == 0 && i < zone->uses.nelts; i++) {
        rc = ngx_http_tatcell_limit(uses[i], &zone->rate, &probe, &uses[i]->limit);

        if (zone->rates) {
            rate = zone->rates->elts;
            for (k = 0; rc == 0 && k < zone->rates->nelts; k++) {
                rc = rate[k].unlimited ? 0 : ngx_http_tatcell_limit(uses[i], &rate[k], &probe, &limit);
            }
        }

        if (rc) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "zone \"%V\" cannot have this burst and delay: %s (%s), in %s:%ui",
                          &zone->name, tatcell_strerror(rc), tatcell_strerror_name(rc), uses[i]->file,
                          uses[i]->line);
            return NGX_ERROR;
        }
    }

    if (rc) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "zone \"%V\" cannot hold its rates and bursts: %s (%s); use smaller bursts, or tag_bits=16, "
                      "which holds debts 16 times as long, in %s:%ui",
                      &zone->name, tatcell_strerror(rc), tatcell_strerror_name(rc), zone->file, zone->line);
        return NGX_ERROR;
    }

    ngx_http_tatcell_find_old(cf, zone);

    return NGX_OK;
}


/* Whether something defines this variable; nginx itself would name no line. */
static ngx_uint_t
ngx_http_tatcell_is_variable(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_uint_t                  i;
    ngx_hash_key_t             *key;
    ngx_http_variable_t        *prefix;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    key = cmcf->variables_keys->keys.elts;
    for (i = 0; i < cmcf->variables_keys->keys.nelts; i++) {
        if (key[i].key.len == name->len && ngx_strncasecmp(key[i].key.data, name->data, name->len) == 0) {
            return 1;
        }
    }

    prefix = cmcf->prefix_variables.elts;
    for (i = 0; i < cmcf->prefix_variables.nelts; i++) {
        if (name->len >= prefix[i].name.len
            && ngx_strncasecmp(name->data, prefix[i].name.data, prefix[i].name.len) == 0)
        {
            return 1;
        }
    }

    return 0;
}
