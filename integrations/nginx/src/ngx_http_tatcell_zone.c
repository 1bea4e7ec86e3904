/*
 * The life of a zone: made at the first start, kept by a reload, or moved by it.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   same size and rate, and room for the limits         the memory stays and the new cycle attaches to it
 *   another rate, for all keys                          nginx makes new memory, the debts move there and keep units
 *   another size, policy, fewer tag bits                nginx makes new memory, the debts move there
 *   another key                                         new memory; debts of other keys mean nothing
 *   more tag bits                                       refused: the old slots do not have them
 *
 * The seed of the hash is in private memory alone, which a cycle hands to the next one.
 *
 * A debt is a time, so under another rate it is worth other units. To scale it where it lies, all workers would have to
 * stop first, and a cycle that fails after that would leave the old workers with the debts of the new rate.
 */

#include "ngx_http_tatcell_module.h"


static void ngx_http_tatcell_options(ngx_http_tatcell_zone_t *zone, tatcell_table_options_t *options);
static ngx_uint_t ngx_http_tatcell_has_other_rate(ngx_http_tatcell_zone_t *zone, ngx_http_tatcell_zone_t *old);
static ngx_int_t ngx_http_tatcell_limits(ngx_http_tatcell_zone_t *zone, ngx_log_t *log);
static ngx_int_t ngx_http_tatcell_make(ngx_http_tatcell_zone_t *zone, ngx_log_t *log);
static ngx_int_t ngx_http_tatcell_move(ngx_http_tatcell_zone_t *zone, ngx_log_t *log);
static void ngx_http_tatcell_sweep_idle(ngx_event_t *ev);
static void ngx_http_tatcell_stop_sweep(void *data);


/* Room for reloads, where the word has it: limits within these need no other table. */
#define NGX_HTTP_TATCELL_ROOM_RATE     10000
static const ngx_uint_t  ngx_http_tatcell_room_seconds[] = { 0, 0, 3600, 9 * 3600 };

/* Milliseconds. */
#define NGX_HTTP_TATCELL_SWEEP_EVERY   1000


static void
ngx_http_tatcell_widen(ngx_http_tatcell_zone_t *zone, const tatcell_limit_spec_t *spec)
{
    double  a, b;

    a = (double) spec->period / (double) spec->units;

    if (zone->fastest.units == 0 || a < (double) zone->fastest.period / (double) zone->fastest.units) {
        zone->fastest = (tatcell_limit_spec_t) TATCELL_LIMIT_SPEC_INIT;
        zone->fastest.units = spec->units;
        zone->fastest.period = spec->period;
        zone->fastest.burst = 1;
    }

    b = zone->slowest.units == 0 ? 0
        : (double) zone->slowest.period / (double) zone->slowest.units * (double) zone->slowest.burst
          + (double) zone->slowest.max_delay;

    if (a * (double) spec->burst + (double) spec->max_delay > b) {
        zone->slowest = *spec;
    }
}


/*
 * Finds a geometry for all limits of a zone, with room for others if it can be had; probe is a table of it, of one set,
 * that limits can be tried with.
 */
int32_t
ngx_http_tatcell_geometry(ngx_http_tatcell_zone_t *zone, tatcell_table_t *probe)
{
    static const uint8_t  seed[16] = { 1 };
    static TATCELL_ALIGNED(64) unsigned char  memory[TATCELL_TABLE_BYTES(16)];

    int32_t                    rc;
    ngx_uint_t                 i, k, room;
    tatcell_limit_spec_t       spec;
    ngx_http_tatcell_rate_t   *rate;
    ngx_http_tatcell_use_t   **uses, alone;
    tatcell_table_options_t    options;

    rc = 0;

    for (room = 4; room-- > 0; /* void */ ) {
        zone->fastest.units = 0;
        zone->slowest.units = 0;

        /* A zone that no directive uses is one with its own burst. */
        ngx_memzero(&alone, sizeof(ngx_http_tatcell_use_t));
        alone.burst = zone->burst;
        alone.nodelay = 1;
        ngx_http_tatcell_spec(&alone, &zone->rate, &spec);
        ngx_http_tatcell_widen(zone, &spec);

        uses = zone->uses.elts;
        for (i = 0; i < zone->uses.nelts; i++) {
            ngx_http_tatcell_spec(uses[i], &zone->rate, &spec);
            ngx_http_tatcell_widen(zone, &spec);

            rate = zone->rates ? zone->rates->elts : NULL;
            for (k = 0; rate && k < zone->rates->nelts; k++) {
                if (!rate[k].unlimited) {
                    ngx_http_tatcell_spec(uses[i], &rate[k], &spec);
                    ngx_http_tatcell_widen(zone, &spec);
                }
            }
        }

        /* At byte rates a word may be shorter than a minute: then the library says what it can tolerate. */
        if (room == 0) {
            if (zone->skew_given) {
                return rc;
            }
            zone->skew = 0;
        }

        if (room > 1) {
            /* Requests: up to a rate that few exceed. Bytes: up to four times the fastest. Hours of debt in both. */
            spec = zone->fastest;
            if (zone->rate.bytes) {
                spec.units *= 4;

            } else {
                spec.units = NGX_HTTP_TATCELL_ROOM_RATE;
                spec.period = NGX_HTTP_TATCELL_HZ;
            }
            ngx_http_tatcell_widen(zone, &spec);

            spec.units = 1;
            spec.period = NGX_HTTP_TATCELL_HZ;
            spec.burst = ngx_http_tatcell_room_seconds[room];
            spec.max_delay = 0;
            ngx_http_tatcell_widen(zone, &spec);
        }

        ngx_http_tatcell_options(zone, &options);
        options.seed = seed;

        rc = tatcell_table_init(probe, memory, sizeof(memory), &options);
        if (rc == 0) {
            return 0;
        }
    }

    return rc;
}


static void
ngx_http_tatcell_options(ngx_http_tatcell_zone_t *zone, tatcell_table_options_t *options)
{
    *options = (tatcell_table_options_t) TATCELL_TABLE_OPTIONS_INIT;
    options->policy = zone->policy;
    options->hash = tatcell_hash_available(TATCELL_HASH_AES) == 0 ? TATCELL_HASH_AES : TATCELL_HASH_SIPHASH13;
    options->tag_bits = zone->tag_bits;
    options->fastest = &zone->fastest;
    options->slowest = &zone->slowest;
    options->seed = zone->seed;
    options->skew = zone->skew;
    options->tick_hz = NGX_HTTP_TATCELL_HZ;
    options->clock = TATCELL_CLOCK_MONOTONIC;
}


/*
 * Finds the zone of the running cycle, and says whether its memory can stay. The names of memory may be those of other
 * zones: a reload may rename a zone, and two of them may change names.
 */
void
ngx_http_tatcell_find_old(ngx_conf_t *cf, ngx_http_tatcell_zone_t *zone)
{
    ngx_uint_t                 i;
    ngx_shm_zone_t            *shm_zone;
    ngx_list_part_t           *part;
    tatcell_table_info_t       info = TATCELL_TABLE_INFO_INIT;
    ngx_http_tatcell_zone_t   *old;

    zone->old = NULL;
    zone->old_named = NULL;
    zone->old_counting = NULL;
    zone->old_shm_zone = NULL;

    if (cf->cycle->old_cycle == NULL || ngx_is_init_cycle(cf->cycle->old_cycle)) {
        return;
    }

    part = &cf->cycle->old_cycle->shared_memory.part;
    shm_zone = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                break;
            }
            part = part->next;
            shm_zone = part->elts;
            i = 0;
        }

        old = shm_zone[i].data;

        if (shm_zone[i].tag != zone->shm_zone->tag || old == NULL || old->shared == NULL) {
            continue;
        }

        if (ngx_http_tatcell_same(&zone->table_name, &old->table_name)) {
            zone->old_named = old->named;
        }

        if (ngx_http_tatcell_same(&zone->counters_name, &old->counters_name)) {
            zone->old_counting = old->counting;
        }

        if (ngx_http_tatcell_same(&zone->name, &old->name)) {
            zone->old_shm_zone = &shm_zone[i];
        }
    }

    if (zone->old_shm_zone == NULL) {
        return;
    }

    old = zone->old_shm_zone->data;

    if (zone->seed_given && ngx_memcmp(zone->seed, old->seed, sizeof(zone->seed)) != 0) {
        zone->shm_zone->noreuse = 1;
        ngx_log_error(NGX_LOG_WARN, cf->log, 0, "tatcell: zone \"%V\" has another seed: it starts empty, in %s:%ui",
                      &zone->name, zone->file, zone->line);
        return;
    }

    if (old->key.value.len != zone->key.value.len
        || ngx_strncmp(old->key.value.data, zone->key.value.data, zone->key.value.len) != 0)
    {
        zone->shm_zone->noreuse = 1;
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "tatcell: zone \"%V\" has another key, \"%V\" after \"%V\": it starts empty, in %s:%ui",
                      &zone->name, &zone->key.value, &old->key.value, zone->file, zone->line);
        return;
    }

    zone->old = old;

    /* Its own geometry decides, not what was asked for when it was made. */
    zone->table = old->table;

    if (tatcell_table_info(&old->table, &info) != 0
        || old->skew != zone->skew
        || info.policy != zone->policy
        || info.tag_bits != (zone->tag_bits ? zone->tag_bits : 20)
        || ngx_http_tatcell_has_other_rate(zone, old)
        || !ngx_http_tatcell_named_stays(zone, old)
        || ngx_http_tatcell_limits(zone, NULL) != NGX_OK)
    {
        zone->shm_zone->noreuse = 1;
    }
}


/* Whether all keys get another rate than they had. If there are several, a slot does not tell the rate of its key. */
static ngx_uint_t
ngx_http_tatcell_has_other_rate(ngx_http_tatcell_zone_t *zone, ngx_http_tatcell_zone_t *old)
{
    return zone->rate_by.len == 0 && old->rate_by.len == 0
           && (zone->rate.units != old->rate.units || zone->rate.period != old->rate.period);
}


/* The limits of all directives of a zone, for its table. */
static ngx_int_t
ngx_http_tatcell_limits(ngx_http_tatcell_zone_t *zone, ngx_log_t *log)
{
    int32_t                    rc;
    ngx_uint_t                 i, k;
    tatcell_limit_t            limit;
    ngx_http_tatcell_rate_t   *rate;
    ngx_http_tatcell_use_t   **uses;

    rc = 0;
    uses = zone->uses.elts;

    for (i = 0; rc == 0 && i < zone->uses.nelts; i++) {
        rc = ngx_http_tatcell_limit(uses[i], &zone->rate, &zone->table, &uses[i]->limit);

        rate = zone->rates ? zone->rates->elts : NULL;
        for (k = 0; rc == 0 && rate && k < zone->rates->nelts; k++) {
            rc = rate[k].unlimited ? 0 : ngx_http_tatcell_limit(uses[i], &rate[k], &zone->table, &limit);
        }
    }

    if (rc && log) {
        ngx_log_error(NGX_LOG_EMERG, log, 0, "tatcell: zone \"%V\": %s (%s)", &zone->name, tatcell_strerror(rc),
                      tatcell_strerror_name(rc));
    }

    return rc == 0 ? NGX_OK : NGX_ERROR;
}


/* Called by nginx for each cycle; data is the zone of the cycle before where the memory stays. */
ngx_int_t
ngx_http_tatcell_init_zone(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_tatcell_zone_t  *zone = shm_zone->data;
    ngx_http_tatcell_zone_t  *old = data;

    int32_t                   rc;
    ngx_int_t                 done;
    tatcell_attach_options_t  options = TATCELL_ATTACH_OPTIONS_INIT;

    /* Later versions of nginx (1.28 does) give the old data with new memory, too. */
    if (old != NULL && !shm_zone->noreuse) {
        ngx_memcpy(zone->seed, old->seed, sizeof(zone->seed));
        zone->shared = old->shared;
        zone->old = NULL;

        if (old->named && ngx_http_tatcell_named_keep(zone, old->named) != NGX_OK) {
            return NGX_ERROR;
        }

        options.seed = zone->seed;
        options.tick_hz = NGX_HTTP_TATCELL_HZ;

        rc = tatcell_table_attach(&zone->table, zone->shared->memory, zone->shared->bytes, &options);
        if (rc != 0) {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "tatcell: zone \"%V\" cannot be kept: %s (%s); restart nginx for a fresh one", &zone->name,
                          tatcell_strerror(rc), tatcell_strerror_name(rc));
            return NGX_ERROR;
        }

        if (ngx_http_tatcell_limits(zone, shm_zone->shm.log) != NGX_OK
            || ngx_http_tatcell_counters_open(zone, shm_zone->shm.log) != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_log_error(NGX_LOG_NOTICE, shm_zone->shm.log, 0, "tatcell: zone \"%V\" keeps its debts", &zone->name);
        return NGX_OK;
    }

    if (ngx_http_tatcell_make(zone, shm_zone->shm.log) != NGX_OK
        || ngx_http_tatcell_counters_open(zone, shm_zone->shm.log) != NGX_OK)
    {
        return NGX_ERROR;
    }

    done = ngx_http_tatcell_limits(zone, shm_zone->shm.log);
    zone->old = NULL;

    return done;
}


/* Lays a zone out in fresh memory, and moves the debts of the zone before it, if there is one. */
static ngx_int_t
ngx_http_tatcell_make(ngx_http_tatcell_zone_t *zone, ngx_log_t *log)
{
    int32_t                   rc, system_error;
    ngx_slab_pool_t          *pool;
    tatcell_table_options_t   options;

    pool = (ngx_slab_pool_t *) zone->shm_zone->shm.addr;

    zone->shared = ngx_slab_calloc(pool, sizeof(ngx_http_tatcell_shared_t));
    if (zone->shared == NULL) {
        return NGX_ERROR;
    }

    pool->data = zone->shared;

    if (zone->table_name.len) {
        if (ngx_http_tatcell_named_make(zone, log) != NGX_OK) {
            return NGX_ERROR;
        }

        zone->shared->memory = ngx_http_tatcell_named_memory(zone->named, &zone->shared->bytes);

    } else {
        /* What is left of the pool is the table. A page is aligned to its size. */
        zone->shared->bytes = pool->pfree * ngx_pagesize;
        zone->shared->memory = ngx_slab_alloc(pool, zone->shared->bytes);
        if (zone->shared->memory == NULL) {
            return NGX_ERROR;
        }
    }

    pool->log_nomem = 0;

    if (zone->old) {
        return ngx_http_tatcell_move(zone, log);
    }

    rc = zone->seed_given ? 0 : tatcell_host_random(zone->seed, sizeof(zone->seed), &system_error);
    if (rc != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, system_error, "tatcell: zone \"%V\" got no secret bytes", &zone->name);
        return NGX_ERROR;
    }

    ngx_http_tatcell_options(zone, &options);

    rc = tatcell_table_init(&zone->table, zone->shared->memory, zone->shared->bytes, &options);
    if (rc != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, 0, "tatcell: zone \"%V\": %s (%s)", &zone->name, tatcell_strerror(rc),
                      tatcell_strerror_name(rc));
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_tatcell_move(ngx_http_tatcell_zone_t *zone, ngx_log_t *log)
{
    int32_t                   rc;
    uint64_t                  now, forgiven;
    ngx_uint_t                i, level;
    tatcell_migrated_t        moved = TATCELL_MIGRATED_INIT;
    tatcell_limit_spec_t      before = TATCELL_LIMIT_SPEC_INIT;
    tatcell_limit_spec_t      after = TATCELL_LIMIT_SPEC_INIT;
    ngx_http_tatcell_use_t  **uses;
    tatcell_table_options_t   options;

    ngx_memcpy(zone->seed, zone->old->seed, sizeof(zone->seed));
    ngx_http_tatcell_options(zone, &options);

    if (ngx_http_tatcell_has_other_rate(zone, zone->old)) {
        before.units = zone->old->rate.units;
        before.period = zone->old->rate.period;
        before.burst = 1;

        after.units = zone->rate.units;
        after.period = zone->rate.period;
        after.burst = zone->burst;

        /* Delays are part of a burst here. */
        uses = zone->uses.elts;
        for (i = 0; i < zone->uses.nelts; i++) {
            after.burst = ngx_max(after.burst, uses[i]->burst);
        }

        options.old_limit = &before;
        options.new_limit = &after;
    }

    now = ngx_http_tatcell_now();
    ngx_http_tatcell_sweep(zone->old, now);
    rc = tatcell_table_migrate(&zone->table, zone->shared->memory, zone->shared->bytes, &options, &zone->old->table,
                               now, &moved);

    if (rc == TATCELL_ERR_OPTION) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "tatcell: zone \"%V\" cannot get more tag_bits in a reload: restart nginx, or keep the old "
                      "tag_bits, in %s:%ui", &zone->name, zone->file, zone->line);
        return NGX_ERROR;
    }

    if (rc != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, 0, "tatcell: zone \"%V\" cannot be moved: %s (%s), in %s:%ui", &zone->name,
                      tatcell_strerror(rc), tatcell_strerror_name(rc), zone->file, zone->line);
        return NGX_ERROR;
    }

    /* Its sweeps begin here. If they began with the first request, debts that moved could count once more. */
    ngx_http_tatcell_sweep(zone, now);

    ngx_memcpy(zone->shared->counters, zone->old->shared->counters, sizeof(zone->shared->counters));
    ngx_memcpy(zone->shared->more, zone->old->shared->more, sizeof(zone->shared->more));
    ngx_memcpy(zone->shared->samples, zone->old->shared->samples, sizeof(zone->shared->samples));

    forgiven = moved.dropped + moved.clamped + moved.opened;

    level = forgiven ? NGX_LOG_WARN : NGX_LOG_NOTICE;
    ngx_log_error(level, log, 0,
                  "tatcell: zone \"%V\" moved, its debts as %s: %uL debts copied, %uL merged; forgiven: %uL dropped, "
                  "%uL cut, %uL sets opened; %uL us", &zone->name, options.old_limit ? "units" : "times", moved.copied,
                  moved.merged, moved.dropped, moved.clamped, moved.opened, (ngx_http_tatcell_now() - now) / 1000);

    return NGX_OK;
}


/* The counts of this process: old and new workers of a reload have slots of their own. */
tatcell_counters_t *
ngx_http_tatcell_counters(ngx_http_tatcell_zone_t *zone)
{
    return &zone->counters[zone->first + ((ngx_uint_t) ngx_process_slot & zone->mask)];
}


ngx_http_tatcell_more_t *
ngx_http_tatcell_more(ngx_http_tatcell_zone_t *zone)
{
    return &zone->shared->more[zone->first + ((ngx_uint_t) ngx_process_slot & zone->mask)];
}


/*
 * The new cycle stands. nginx frees the memory of an old zone unless size and name are those of a new one and the old
 * one may be reused: so that mark goes from the zone that was made to the one that it was made instead of, or memory
 * would be lost now, and memory in use be freed by the next reload.
 */
ngx_int_t
ngx_http_tatcell_init_module(ngx_cycle_t *cycle)
{
    ngx_uint_t                      i;
    ngx_http_tatcell_zone_t       **zones;
    ngx_http_tatcell_main_conf_t   *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_tatcell_module);

    if (mcf == NULL) {
        return NGX_OK;
    }

    zones = mcf->zones.elts;

    for (i = 0; i < mcf->zones.nelts; i++) {
        if (zones[i]->shm_zone->noreuse && zones[i]->old_shm_zone) {
            zones[i]->old_shm_zone->noreuse = 1;
            zones[i]->shm_zone->noreuse = 0;
        }

        zones[i]->old_shm_zone = NULL;

        if (zones[i]->named) {
            ngx_http_tatcell_named_place(zones[i]->named, cycle->log);
        }
    }

    return NGX_OK;
}


/* Words come round, some within a second, and then old debts would count once more. So all that read a table sweep. */
void
ngx_http_tatcell_sweep(ngx_http_tatcell_zone_t *zone, uint64_t now)
{
    (void) tatcell_table_sweep_due(&zone->table, &zone->shared->sweeper, now);
}


/*
 * One worker sweeps while no request comes: for those who look at a table from outside, and so that no request has to
 * empty a large zone after a silence. Words that come round within its second may still show old debts outside.
 */
ngx_int_t
ngx_http_tatcell_init_process(ngx_cycle_t *cycle)
{
    ngx_event_t                    *ev;
    ngx_pool_cleanup_t             *cln;
    ngx_http_tatcell_main_conf_t   *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_tatcell_module);

    if (mcf == NULL || mcf->zones.nelts == 0 || ngx_worker != 0) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(cycle->pool, sizeof(ngx_event_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    ev = cln->data;
    ngx_memzero(ev, sizeof(ngx_event_t));
    cln->handler = ngx_http_tatcell_stop_sweep;

    ev->handler = ngx_http_tatcell_sweep_idle;
    ev->data = mcf;
    ev->log = cycle->log;
    ev->cancelable = 1;

    ngx_add_timer(ev, NGX_HTTP_TATCELL_SWEEP_EVERY);

    return NGX_OK;
}


static void
ngx_http_tatcell_sweep_idle(ngx_event_t *ev)
{
    ngx_http_tatcell_main_conf_t  *mcf = ev->data;

    uint64_t                   now;
    ngx_uint_t                 i;
    ngx_http_tatcell_zone_t  **zones;

    now = ngx_http_tatcell_now();
    zones = mcf->zones.elts;

    for (i = 0; i < mcf->zones.nelts; i++) {
        ngx_http_tatcell_sweep(zones[i], now);
    }

    ngx_add_timer(ev, NGX_HTTP_TATCELL_SWEEP_EVERY);
}


/* Where there is no master, a cycle ends and its process goes on. */
static void
ngx_http_tatcell_stop_sweep(void *data)
{
    ngx_event_t  *ev = data;

    if (ev->timer_set) {
        ngx_del_timer(ev);
    }
}
