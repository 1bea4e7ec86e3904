/*
 * The directives, the configurations of the module, and how they are merged and checked.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#include "ngx_http_tatcell_module.h"


static ngx_int_t ngx_http_tatcell_preconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_tatcell_postconfiguration(ngx_conf_t *cf);
static void *ngx_http_tatcell_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_tatcell_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_tatcell_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);
static char *ngx_http_tatcell_check_status(ngx_conf_t *cf, void *post, void *data);


static ngx_conf_enum_t  ngx_http_tatcell_log_levels[] = {
    { ngx_string("info"), NGX_LOG_INFO },
    { ngx_string("notice"), NGX_LOG_NOTICE },
    { ngx_string("warn"), NGX_LOG_WARN },
    { ngx_string("error"), NGX_LOG_ERR },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_http_tatcell_undecided[] = {
    { ngx_string("pass"), NGX_HTTP_TATCELL_UNDECIDED_PASS },
    { ngx_string("refuse"), NGX_HTTP_TATCELL_UNDECIDED_REFUSE },
    { ngx_null_string, 0 }
};

static ngx_conf_bitmask_t  ngx_http_tatcell_headers[] = {
    { ngx_string("ratelimit"), NGX_HTTP_TATCELL_H_RATELIMIT },
    { ngx_string("policy"), NGX_HTTP_TATCELL_H_POLICY },
    { ngx_string("retry_after"), NGX_HTTP_TATCELL_H_RETRY },
    { ngx_string("x"), NGX_HTTP_TATCELL_H_X },
    { ngx_string("off"), NGX_HTTP_TATCELL_H_OFF },
    { ngx_null_string, 0 }
};

static ngx_conf_post_t  ngx_http_tatcell_status_post = { ngx_http_tatcell_check_status };

#define NGX_HTTP_TATCELL_ANYWHERE  NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF

static ngx_command_t  ngx_http_tatcell_commands[] = {

    { ngx_string("tatcell_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE,
      ngx_http_tatcell_zone,
      0,
      0,
      NULL },

    { ngx_string("tatcell_rates"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_BLOCK|NGX_CONF_TAKE2,
      ngx_http_tatcell_rates,
      0,
      0,
      NULL },

    { ngx_string("tatcell"),
      NGX_HTTP_TATCELL_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_tatcell,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("tatcell_dry_run"),
      NGX_HTTP_TATCELL_ANYWHERE|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_tatcell_loc_conf_t, dry_run),
      NULL },

    { ngx_string("tatcell_status"),
      NGX_HTTP_TATCELL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_tatcell_loc_conf_t, status),
      &ngx_http_tatcell_status_post },

    { ngx_string("tatcell_log_level"),
      NGX_HTTP_TATCELL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_tatcell_loc_conf_t, log_level),
      &ngx_http_tatcell_log_levels },

    { ngx_string("tatcell_log_interval"),
      NGX_HTTP_TATCELL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_tatcell_loc_conf_t, log_interval),
      NULL },

    { ngx_string("tatcell_undecided"),
      NGX_HTTP_TATCELL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_tatcell_loc_conf_t, undecided),
      &ngx_http_tatcell_undecided },

    { ngx_string("tatcell_headers"),
      NGX_HTTP_TATCELL_ANYWHERE|NGX_CONF_1MORE,
      ngx_conf_set_bitmask_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_tatcell_loc_conf_t, headers),
      &ngx_http_tatcell_headers },

    { ngx_string("tatcell_stats"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE12,
      ngx_http_tatcell_stats,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_tatcell_module_ctx = {
    ngx_http_tatcell_preconfiguration,     /* preconfiguration */
    ngx_http_tatcell_postconfiguration,    /* postconfiguration */

    ngx_http_tatcell_create_main_conf,     /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_tatcell_create_loc_conf,      /* create location configuration */
    ngx_http_tatcell_merge_loc_conf        /* merge location configuration */
};


ngx_module_t  ngx_http_tatcell_module = {
    NGX_MODULE_V1,
    &ngx_http_tatcell_module_ctx,          /* module context */
    ngx_http_tatcell_commands,             /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_tatcell_init_module,          /* init module */
    ngx_http_tatcell_init_process,         /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_tatcell_preconfiguration(ngx_conf_t *cf)
{
    if (tatcell_abi_version() != TATCELL_ABI_VERSION) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "tatcell: the library has ABI %ui, and the module was built for %ui: rebuild the module",
                      (ngx_uint_t) tatcell_abi_version(), (ngx_uint_t) TATCELL_ABI_VERSION);
        return NGX_ERROR;
    }

    return ngx_http_tatcell_add_variables(cf);
}


static ngx_int_t
ngx_http_tatcell_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    if (ngx_http_tatcell_check(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_tatcell_handler;

    return NGX_OK;
}


static void *
ngx_http_tatcell_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_tatcell_main_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_tatcell_main_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&conf->zones, cf->pool, 4, sizeof(ngx_http_tatcell_zone_t *)) != NGX_OK
        || ngx_array_init(&conf->uses, cf->pool, 4, sizeof(ngx_http_tatcell_use_t *)) != NGX_OK
        || ngx_array_init(&conf->rates, cf->pool, 1, sizeof(ngx_http_tatcell_rates_t *)) != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


static void *
ngx_http_tatcell_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_tatcell_loc_conf_t  *conf;

    /* Set by ngx_pcalloc: uses = NULL, headers = 0, stats = 0, stats_format = 0, stats_top = 0. */
    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_tatcell_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->off = NGX_CONF_UNSET;
    conf->dry_run = NGX_CONF_UNSET;
    conf->status = NGX_CONF_UNSET_UINT;
    conf->log_level = NGX_CONF_UNSET_UINT;
    conf->log_interval = NGX_CONF_UNSET_MSEC;
    conf->undecided = NGX_CONF_UNSET_UINT;

    return conf;
}


static char *
ngx_http_tatcell_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_tatcell_loc_conf_t  *prev = parent;
    ngx_http_tatcell_loc_conf_t  *conf = child;

    /* The stats have no limit but one of their own, nor has a location that says so. */
    if (conf->uses == NULL && conf->off != 1 && !conf->stats) {
        conf->uses = prev->uses;
    }

    /* The handler of a location serves its blocks of if, too. */
    if (!conf->stats) {
        conf->stats_format = prev->stats_format;
        conf->stats_top = prev->stats_top;
    }

    ngx_conf_merge_value(conf->dry_run, prev->dry_run, 0);
    ngx_conf_merge_uint_value(conf->status, prev->status, NGX_HTTP_TOO_MANY_REQUESTS);
    ngx_conf_merge_uint_value(conf->log_level, prev->log_level, NGX_LOG_ERR);
    ngx_conf_merge_msec_value(conf->log_interval, prev->log_interval, 1000);
    ngx_conf_merge_uint_value(conf->undecided, prev->undecided, NGX_HTTP_TATCELL_UNDECIDED_PASS);
    ngx_conf_merge_bitmask_value(conf->headers, prev->headers, (NGX_CONF_BITMASK_SET|NGX_HTTP_TATCELL_H_RETRY));

    if ((conf->headers & NGX_HTTP_TATCELL_H_OFF) && (conf->headers & ~(NGX_CONF_BITMASK_SET|NGX_HTTP_TATCELL_H_OFF)))
    {
        return "has \"off\" next to other words for tatcell_headers: write \"off\" alone, or remove it";
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_tatcell_check_status(ngx_conf_t *cf, void *post, void *data)
{
    ngx_uint_t  *status = data;

    if (*status < 400 || *status > 599) {
        return "value must be a status of an error, 400 to 599; 429 is \"Too Many Requests\"";
    }

    return NGX_CONF_OK;
}
