/*
 * Tables and counters in named memory: table=/NAME and counters=/NAME, so that other programs can look at them.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   a cycle is made      the table is made under a name of its own, /NAME.PID
 *   the cycle stands     it takes its name: the one of before, if there is one, loses it in the same moment
 *   the cycle fails      it is removed
 *   nginx ends           the name is removed, unless another table has it meanwhile, as after an upgrade
 *
 * A lock on the file lasts as long as a process of this nginx: so another one that starts knows a table that is in use
 * from one that was left by a nginx that crashed. Everything else about it is in the memory of the master.
 */

#include "ngx_http_tatcell_module.h"

#include <sys/file.h>


/* Memory with counters, of which this nginx has one half. */
struct ngx_http_tatcell_counting_s {
    tatcell_host_memory_t  memory;
    ngx_uint_t             cycles;      /* that have it */
    uint32_t               first;       /* of the half */
    dev_t                  dev;
    ino_t                  ino;
    u_char                 path[1];     /* of the name */
};

struct ngx_http_tatcell_named_s {
    tatcell_host_memory_t  memory;
    ngx_uint_t             cycles;      /* that have it */
    ngx_fd_t               fd;
    dev_t                  dev;
    ino_t                  ino;
    unsigned               placed:1;    /* under its name, once */
    u_char                *path;        /* of the name */
    u_char                *own;         /* the name that is its own until it is placed */
    u_char                *own_path;
    u_char                 text[1];
};


static void ngx_http_tatcell_named_drop(void *data);
static ngx_int_t ngx_http_tatcell_counting_make(ngx_http_tatcell_zone_t *zone, ngx_log_t *log,
    ngx_http_tatcell_counting_t **made);
static ngx_int_t ngx_http_tatcell_counting_test(ngx_http_tatcell_zone_t *zone, ngx_log_t *log);
static ngx_int_t ngx_http_tatcell_counting_refuse(ngx_http_tatcell_zone_t *zone, ngx_log_t *log, int32_t rc,
    ngx_err_t err);
static void ngx_http_tatcell_counting_drop(void *data);


/* The path of a name: a name of shared memory has one slash. */
static u_char *
ngx_http_tatcell_named_path(u_char *p, u_char *name)
{
    if (ngx_strchr(name + 1, '/') == NULL) {
        p = ngx_cpymem(p, NGX_HTTP_TATCELL_SHM, sizeof(NGX_HTTP_TATCELL_SHM) - 1);
    }

    return ngx_cpymem(p, name, ngx_strlen(name));
}


static ngx_fd_t
ngx_http_tatcell_named_open(u_char *path)
{
    return open((char *) path, O_RDONLY|O_CLOEXEC|O_NOFOLLOW|O_NONBLOCK);
}


/* Whether a path is still that of a file. */
static ngx_uint_t
ngx_http_tatcell_is_at(u_char *path, dev_t dev, ino_t ino)
{
    struct stat  st;

    return lstat((char *) path, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}


/* Whether its name is still that of its memory. */
ngx_uint_t
ngx_http_tatcell_is_named(ngx_http_tatcell_named_t *named)
{
    return ngx_http_tatcell_is_at(named->path, named->dev, named->ino);
}


/*
 * Whether a process that runs has the table of this name, and is neither this nginx nor the one that it replaces. nginx
 * never resets ngx_inherited, which holds for the first cycle alone. Until a cycle stands, ngx_cycle is the one before.
 */
static ngx_uint_t
ngx_http_tatcell_named_taken(ngx_http_tatcell_named_t *named, ngx_http_tatcell_zone_t *zone)
{
    ngx_fd_t     fd;
    ngx_uint_t   taken;
    struct stat  st;

    if (ngx_test_config || (ngx_inherited && ngx_is_init_cycle(ngx_cycle))) {
        return 0;
    }

    if (zone->old_named && ngx_http_tatcell_is_named(zone->old_named)) {
        return 0;
    }

    fd = ngx_http_tatcell_named_open(named->path);
    if (fd == NGX_INVALID_FILE) {
        return 0;
    }

    /* What others than root and this user lock does not count: anybody can, where anybody may make a name. */
    taken = fstat(fd, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid())
            && flock(fd, LOCK_EX|LOCK_NB) != 0 && ngx_errno == EWOULDBLOCK;

    (void) close(fd);

    return taken;
}


/* Makes memory for the table of a zone, whose name it gets once the cycle stands. */
ngx_int_t
ngx_http_tatcell_named_make(ngx_http_tatcell_zone_t *zone, ngx_log_t *log)
{
    int32_t                    rc;
    size_t                     len;
    u_char                    *p;
    struct stat                st;
    ngx_http_tatcell_named_t  *named;

    len = zone->table_name.len + sizeof(NGX_HTTP_TATCELL_SHM) + NGX_INT64_LEN + 2;

    named = ngx_calloc(sizeof(ngx_http_tatcell_named_t) + 3 * len, log);
    if (named == NULL) {
        return NGX_ERROR;
    }

    named->memory = (tatcell_host_memory_t) TATCELL_HOST_MEMORY_INIT;
    named->fd = NGX_INVALID_FILE;

    /* Zeroed, so each text ends with a 0. */
    named->path = named->text;
    (void) ngx_http_tatcell_named_path(named->path, zone->table_name.data);

    named->own = named->path + len;
    p = ngx_cpymem(named->own, zone->table_name.data, zone->table_name.len);
    (void) ngx_sprintf(p, ".%P", ngx_pid);

    named->own_path = named->own + len;
    (void) ngx_http_tatcell_named_path(named->own_path, named->own);

    if (ngx_http_tatcell_named_keep(zone, named) != NGX_OK) {
        ngx_free(named);
        return NGX_ERROR;
    }

    if (ngx_http_tatcell_named_taken(named, zone)) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "tatcell: zone \"%V\" cannot have table=%V: a process that runs has it; give another name, in "
                      "%s:%ui", &zone->name, &zone->table_name, zone->file, zone->line);
        return NGX_ERROR;
    }

    /* What a process of this number left. Only root and this user read it: with the tags of keys and some guesses the
       seed might be found out. */
    (void) tatcell_host_memory_unlink((char *) named->own, NULL);
    rc = tatcell_host_memory_create((char *) named->own, zone->bytes, 0600, &named->memory);

    if (rc != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, named->memory.system_error,
                      "tatcell: zone \"%V\" cannot have table=%V: %s (%s); give another name, in %s:%ui", &zone->name,
                      &zone->table_name, tatcell_strerror(rc), tatcell_strerror_name(rc), zone->file, zone->line);
        return NGX_ERROR;
    }

    named->fd = ngx_http_tatcell_named_open(named->own_path);

    if (named->fd == NGX_INVALID_FILE || fstat(named->fd, &st) != 0 || flock(named->fd, LOCK_EX|LOCK_NB) != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno, "tatcell: zone \"%V\": \"%s\" cannot be locked", &zone->name,
                      named->own_path);
        return NGX_ERROR;
    }

    named->dev = st.st_dev;
    named->ino = st.st_ino;

    /* A test of the configuration ends without a word. */
    if (ngx_test_config) {
        (void) unlink((char *) named->own_path);
    }

    return NGX_OK;
}


/* Lets a zone of a cycle have the memory, for as long as that cycle lives. */
ngx_int_t
ngx_http_tatcell_named_keep(ngx_http_tatcell_zone_t *zone, ngx_http_tatcell_named_t *named)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(zone->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_tatcell_named_drop;
    cln->data = named;

    named->cycles++;
    zone->named = named;

    return NGX_OK;
}


/* The cycle stands: others find the table under its name from here on. */
void
ngx_http_tatcell_named_place(ngx_http_tatcell_named_t *named, ngx_log_t *log)
{
    if (named->placed || ngx_test_config) {
        return;
    }

    if (rename((char *) named->own_path, (char *) named->path) != 0) {
        /* The limits do not need it, and it is too late to refuse the configuration. */
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno, "tatcell: the table \"%s\" cannot have the name \"%s\"",
                      named->own_path, named->path);
        return;
    }

    named->placed = 1;
}


/* A cycle ends. The name goes with the last one that has it, in the master: a worker only lets go. */
static void
ngx_http_tatcell_named_drop(void *data)
{
    ngx_http_tatcell_named_t  *named = data;

    if (--named->cycles) {
        return;
    }

    if (ngx_process == NGX_PROCESS_MASTER || ngx_process == NGX_PROCESS_SINGLE) {

        if (!named->placed) {
            (void) unlink((char *) named->own_path);

        } else if (ngx_http_tatcell_is_named(named)) {
            (void) unlink((char *) named->path);
        }
    }

    if (named->fd != NGX_INVALID_FILE) {
        (void) close(named->fd);
    }

    (void) tatcell_host_memory_unmap(&named->memory);
    ngx_free(named);
}


void *
ngx_http_tatcell_named_memory(ngx_http_tatcell_named_t *named, size_t *bytes)
{
    *bytes = named->memory.bytes;

    return named->memory.memory;
}


/* Whether the zone of a cycle can go on with the memory of the one before. */
ngx_uint_t
ngx_http_tatcell_named_stays(ngx_http_tatcell_zone_t *zone, ngx_http_tatcell_zone_t *old)
{
    u_char  path[NGX_MAX_PATH];

    if (zone->table_name.len == 0 || old->named == NULL) {
        return zone->table_name.len == 0 && old->named == NULL;
    }

    ngx_memzero(path, sizeof(path));
    (void) ngx_http_tatcell_named_path(path, zone->table_name.data);

    /* Somebody may have removed the name, or an upgrade that was given up may have taken it. */
    return ngx_strcmp(path, old->named->path) == 0 && zone->bytes == old->named->memory.bytes
           && ngx_http_tatcell_is_named(old->named);
}


/*
 * Finds the counters of the zone: those of its memory, or with counters= those in named memory, which other programs
 * may read. There counts go on over a restart. This nginx has one half of the blocks, and hands it from cycle to cycle:
 * a lock keeps others out of it, until the last of its workers has ended. So an upgraded nginx, or another one with the
 * same name, has the other half, and no count is lost. If both are taken, the zone counts in its own memory until a
 * later reload finds one free: nginx starts without a metric, too.
 */
ngx_int_t
ngx_http_tatcell_counters_open(ngx_http_tatcell_zone_t *zone, ngx_log_t *log)
{
    ngx_pool_cleanup_t           *cln;
    ngx_http_tatcell_counting_t  *counting;

    zone->counters = zone->shared->counters;
    zone->first = 0;
    zone->mask = NGX_HTTP_TATCELL_PROCESSES - 1;

    if (zone->counters_name.len == 0) {
        return NGX_OK;
    }

    /* A test must not take the half that an upgrade of this moment needs, and makes no file. */
    if (ngx_test_config) {
        return ngx_http_tatcell_counting_test(zone, log);
    }

    cln = ngx_pool_cleanup_add(zone->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    counting = zone->old_counting;

    /* Somebody may have removed the name, so that the counts start from 0. */
    if (counting == NULL || !ngx_http_tatcell_is_at(counting->path, counting->dev, counting->ino)) {

        if (ngx_http_tatcell_counting_make(zone, log, &counting) != NGX_OK) {
            return NGX_ERROR;
        }

        if (counting == NULL) {
            return NGX_OK;
        }
    }

    cln->handler = ngx_http_tatcell_counting_drop;
    cln->data = counting;

    counting->cycles++;
    zone->counting = counting;
    zone->first = counting->first;
    zone->mask = NGX_HTTP_TATCELL_PROCESSES / 2 - 1;

    /* It was opened, so it has blocks. */
    (void) tatcell_host_counters_block(counting->memory.memory, counting->memory.bytes, 0, &zone->counters);

    return NGX_OK;
}


/* Only looks at what has the name. */
static ngx_int_t
ngx_http_tatcell_counting_test(ngx_http_tatcell_zone_t *zone, ngx_log_t *log)
{
    int32_t                rc;
    tatcell_host_memory_t  memory = TATCELL_HOST_MEMORY_INIT;

    rc = tatcell_host_counters_attach((char *) zone->counters_name.data, &memory);

    if (rc != 0 && rc != TATCELL_ERR_ABSENT) {
        return ngx_http_tatcell_counting_refuse(zone, log, rc, memory.system_error);
    }

    (void) tatcell_host_memory_unmap(&memory);

    return NGX_OK;
}


static ngx_int_t
ngx_http_tatcell_counting_refuse(ngx_http_tatcell_zone_t *zone, ngx_log_t *log, int32_t rc, ngx_err_t err)
{
    ngx_log_error(NGX_LOG_EMERG, log, err,
                  "tatcell: zone \"%V\" cannot have counters=%V: %s (%s); give another name, in %s:%ui", &zone->name,
                  &zone->counters_name, tatcell_strerror(rc), tatcell_strerror_name(rc), zone->file, zone->line);

    return NGX_ERROR;
}


/* Takes a half; gives NULL if others have both. */
static ngx_int_t
ngx_http_tatcell_counting_make(ngx_http_tatcell_zone_t *zone, ngx_log_t *log, ngx_http_tatcell_counting_t **made)
{
    char                         *name;
    int32_t                       rc;
    ngx_err_t                     err;
    struct stat                   st;
    ngx_http_tatcell_counting_t  *counting;

    *made = NULL;

    counting = ngx_calloc(sizeof(ngx_http_tatcell_counting_t) + sizeof(NGX_HTTP_TATCELL_SHM) + zone->counters_name.len,
                          log);
    if (counting == NULL) {
        return NGX_ERROR;
    }

    counting->memory = (tatcell_host_memory_t) TATCELL_HOST_MEMORY_INIT;
    (void) ngx_http_tatcell_named_path(counting->path, zone->counters_name.data);

    name = (char *) zone->counters_name.data;
    rc = tatcell_host_counters_open_some(name, NGX_HTTP_TATCELL_PROCESSES, NGX_HTTP_TATCELL_PROCESSES / 2, 0644,
                                         &counting->memory, &counting->first);

    if (rc == TATCELL_ERR_UNSUPPORTED) {
        /* No locks on this system, or on this file system. */
        rc = tatcell_host_counters_open(name, NGX_HTTP_TATCELL_PROCESSES, 0644, &counting->memory);
    }

    if (rc != 0) {
        err = counting->memory.system_error;
        ngx_free(counting);

        if (rc != TATCELL_ERR_SYSTEM || err != EBUSY) {
            return ngx_http_tatcell_counting_refuse(zone, log, rc, err);
        }

        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "tatcell: zone \"%V\" counts without counters=%V: two other nginx have it; reload when one has "
                      "ended, or give another name, in %s:%ui", &zone->name, &zone->counters_name, zone->file,
                      zone->line);
        return NGX_OK;
    }

    /* Zeroed, which no file has, if the name is gone again: then the next reload opens it anew. */
    if (lstat((char *) counting->path, &st) == 0) {
        counting->dev = st.st_dev;
        counting->ino = st.st_ino;
    }

    *made = counting;

    return NGX_OK;
}


static void
ngx_http_tatcell_counting_drop(void *data)
{
    ngx_http_tatcell_counting_t  *counting = data;

    if (--counting->cycles == 0) {
        (void) tatcell_host_memory_unmap(&counting->memory);
        ngx_free(counting);
    }
}
