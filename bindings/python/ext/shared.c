/* shared.c - memory of a table: private, for processes that are forked later, or with a name.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * All memory holds the image of the table and then a trailer of one line. Table sizes are whole sets of two lines, so
 * programs that look at an image by its name (`tatcell show`) ignore the trailer. Memory with a name is for its user
 * alone (0600), and so is the seed in it; without a name the trailer has no seed.
 *
 *     0              bytes               bytes + 64
 *     | image of the table | seed, limit, sweeper |
 */
#include "binding.h"

#include <errno.h>
#include <time.h>

/* Chance, in billionths, that a new key finds its set full while `keys` keys are in debt. */
#define FULL_SET_PPB 1000
#define HUGE_PAGE ((size_t)2 << 20)
/* How long to wait for another process that is making the table. */
#define PATIENCE (UINT64_C(5) * TICKS_PER_SECOND)

typedef struct {
    uint8_t seed[16];
    uint64_t units, period, burst, algorithm;
    tatcell_sweeper_t sweeper;
    uint64_t reserved;
} Trailer;
_Static_assert(sizeof(Trailer) == 64, "one line");

static Trailer *trailer_of(Limiter *self, size_t bytes) {
    Trailer *trailer = (Trailer *)((char *)self->memory.memory + bytes);
    self->sweeper = &trailer->sweeper;
    return trailer;
}

static bool table_bytes(const Limiter *self, size_t *bytes) {
    *bytes = tatcell_table_size_for(self->keys, FULL_SET_PPB);
    if (*bytes && *bytes <= SIZE_MAX / 2) return true;
    PyErr_Format(PyExc_ValueError, "keys is %llu: no table is large enough", (unsigned long long)self->keys);
    return false;
}

/* A limit that fits no table of nanoseconds: says which part of it is in the way. */
static bool no_fit(int32_t code, const tatcell_table_options_t *options) {
    static const char *const parts[] = {NULL, "burst", "room", "delay", "debt", "penalty", "skew", "time", "amount"};
    tatcell_table_fit_t fit = TATCELL_TABLE_FIT_INIT;
    PyObject *text = spec_text(options->fastest);
    if (!text) return false;
    bool known = (code == TATCELL_ERR_SPAN || code == TATCELL_ERR_UNITS || code == TATCELL_ERR_HORIZON) &&
        tatcell_table_options_fit(options, &fit) == 0 && fit.culprit >= 1 && fit.culprit <= 8 &&
        fit.needed > fit.available;
    if (known)
        PyErr_Format(PyExc_ValueError,
            "limit '%U': it needs %llu ms of horizon, and a table has %llu ms at this rate: "
            "make its %s smaller, or the rate lower",
            text, (unsigned long long)fit.needed / 1000000, (unsigned long long)fit.available / 1000000,
            parts[fit.culprit]);
    else
        fail_limit(code, text);
    Py_DECREF(text);
    return false;
}

/* Memory that the system does not give: says how much it was, and the name of shared memory. */
static bool no_memory(int32_t code, int32_t error, size_t bytes, PyObject *name) {
    if (code != TATCELL_ERR_SYSTEM) {
        const char *what = name ? PyUnicode_AsUTF8AndSize(name, NULL) : "memory";
        return what && fail(code, error, what);
    }
    PyObject *text = PyUnicode_FromFormat("%s: the table needs %zu bytes%s", strerror(error), bytes,
        error == ENOSPC || error == ENOMEM ? ", pass fewer keys" : "");
    PyObject *args = text ? Py_BuildValue(name ? "iOO" : "iO", error, text, name) : NULL;
    if (args) PyErr_SetObject(PyExc_OSError, args);
    Py_XDECREF(text), Py_XDECREF(args);
    return false;
}

bool open_private(Limiter *self, tatcell_table_options_t *options, bool shared) {
    size_t bytes;
    int32_t error;
    uint8_t seed[16];
    if (!table_bytes(self, &bytes)) return false;
    /* Huge pages are 2 MiB each: a small table would waste most of one. */
    uint32_t flags = (bytes >= HUGE_PAGE ? TATCELL_HOST_HUGE : 0) | (shared ? TATCELL_HOST_FORK_SHARED : 0);
    int32_t rc = tatcell_host_memory_map(bytes + sizeof(Trailer), flags, &self->memory);
    if (rc < 0) return no_memory(rc, self->memory.system_error, bytes, NULL);
    (void)trailer_of(self, bytes);
    rc = tatcell_host_random(seed, sizeof seed, &error);
    if (rc < 0) return fail(rc, error, "seed"), false;
    options->seed = seed;
    rc = tatcell_table_init(&self->table, self->memory.memory, bytes, options);
    return rc == 0 || no_fit(rc, options);
}

static bool same_limit(const Trailer *trailer, const tatcell_limit_spec_t *spec) {
    return trailer->units == spec->units && trailer->period == spec->period && trailer->burst == spec->burst &&
        trailer->algorithm == spec->algorithm;
}

/* Makes the table in fresh memory. If that fails, the name goes. */
static bool make(Limiter *self, tatcell_table_options_t *options, const char *name, size_t bytes) {
    Trailer *trailer = trailer_of(self, bytes);
    const tatcell_limit_spec_t *spec = &self->spec;
    int32_t error = 0, rc = tatcell_host_random(trailer->seed, sizeof trailer->seed, &error);
    if (rc < 0) fail(rc, error, "seed");
    trailer->units = spec->units, trailer->period = spec->period;
    trailer->burst = spec->burst, trailer->algorithm = spec->algorithm;
    options->seed = trailer->seed;
    /* The header of the image is stored last: who finds it finds the trailer, too. */
    if (rc == 0 && (rc = tatcell_table_init(&self->table, self->memory.memory, bytes, options)) < 0)
        no_fit(rc, options);
    if (rc < 0) (void)tatcell_host_memory_unlink(name, NULL);
    return rc == 0;
}

/* join ...: TATCELL_ERR_NOT_READY if another process is still making the table; 1 if an exception is set. */
static int32_t join(Limiter *self, const tatcell_table_options_t *options, const char *name, size_t bytes) {
    tatcell_attach_options_t attach = TATCELL_ATTACH_OPTIONS_INIT;
    const Trailer *trailer = trailer_of(self, bytes);
    if (self->memory.bytes != bytes + sizeof *trailer) {
        PyErr_Format(PyExc_ValueError,
            "'%s' was made for another number of keys or by another program: pass the same, or remove it with "
            "Limiter.unlink('%s')",
            name, name);
        return 1;
    }
    attach.seed = trailer->seed, attach.tick_hz = TICKS_PER_SECOND;
    attach.flags = TATCELL_TABLE_POLICY, attach.policy = options->policy;
    int32_t rc = tatcell_table_attach(&self->table, self->memory.memory, bytes, &attach);
    /* The seed was read before the header came. */
    if (rc == TATCELL_ERR_WRONG_SEED) return TATCELL_ERR_NOT_READY;
    if (rc == TATCELL_ERR_NOT_READY) return rc;
    if (rc == 0 && same_limit(trailer, &self->spec)) return 0;
    if (rc == 0 || rc == TATCELL_ERR_MODE)
        PyErr_Format(PyExc_ValueError,
            "'%s' was made with another limit or another `full`: pass the same, or remove it "
            "with Limiter.unlink('%s')",
            name, name);
    else
        fail(rc, 0, name);
    return 1;
}

bool open_named(Limiter *self, tatcell_table_options_t *options) {
    size_t bytes;
    Py_ssize_t length;
    const struct timespec pause = {0, 1000000};
    const char *name = PyUnicode_AsUTF8AndSize(self->name, &length);
    if (!name || !table_bytes(self, &bytes)) return false;
    if (strlen(name) != (size_t)length) return PyErr_SetString(PyExc_ValueError, "name has a NUL character"), false;
    for (uint64_t now = 0, end = 0; now <= end;) {
        int32_t error, rc = tatcell_host_memory_create(name, bytes + sizeof(Trailer), 0600, &self->memory);
        if (rc == 0) return make(self, options, name, bytes);
        if (rc == TATCELL_ERR_EXISTS) {
            rc = tatcell_host_memory_attach(name, 0, &self->memory);
            if (rc == 0) rc = join(self, options, name, bytes);
            if (rc == 0) return true;
            if (rc == 1) return false;
            if (self->memory.memory) (void)tatcell_host_memory_unmap(&self->memory);
        }
        /* Absent: somebody has just removed it. */
        if (rc != TATCELL_ERR_NOT_READY && rc != TATCELL_ERR_ABSENT)
            return no_memory(rc, self->memory.system_error, bytes, self->name);
        Py_BEGIN_ALLOW_THREADS(void)
        nanosleep(&pause, NULL);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0) return false;
        rc = tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &now, &error);
        if (rc < 0) return fail(rc, error, "clock"), false;
        if (end == 0) end = now + PATIENCE;
    }
    PyErr_Format(PyExc_ValueError,
        "'%s' exists, but it was made by another program, or its process did not finish: remove it with "
        "Limiter.unlink('%s')",
        name, name);
    return false;
}
