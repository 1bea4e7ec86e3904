/* binding.h - what the sources of tatcell._core share.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The module uses the limited API of Python 3.11, so one binary serves 3.11 and later. It has no state of its own
 * outside of its objects and `struct state`, so several interpreters may load it, each with its own lock.
 *
 * Every decision is a call of the library. An object is complete once its constructor returns: there is no __init__. */
#ifndef TATCELL_BINDING_H
#define TATCELL_BINDING_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <string.h>
#include <tatcell.h>
#include <tatcell_host.h>

/* Ticks are nanoseconds of CLOCK_MONOTONIC, or of the caller's own clock. */
#define TICKS_PER_SECOND 1000000000u

struct state {
    PyTypeObject *limiter, *cell, *chain, *decision;
    PyObject *addresses; /* (IPv4Address, IPv6Address), imported when the first such key comes */
};

/* A key as the library takes it. It points into the object, or to `own`. */
struct key {
    const void *bytes;
    size_t length;
    union {
        uint64_t number;
        unsigned char address[16];
    } own;
};

/* What every decision takes besides keys. */
struct call {
    uint64_t cost, now;
    bool timed; /* now= was given */
};

/* A limit, and a decision under it. */
struct answer {
    tatcell_limit_t limit;
    tatcell_decision_t decision;
};

typedef struct {
    PyObject_HEAD
    tatcell_table_t table;
    tatcell_limit_t limit;
    tatcell_limit_spec_t spec;
    tatcell_host_memory_t memory; /* empty once closed */
    uint64_t keys;
    tatcell_sweeper_t *sweeper; /* behind the table: processes that share one share both */
    PyObject *name;   /* of the shared memory; NULL without one */
    Py_ssize_t users; /* calls that run without the interpreter's lock or call back into Python */
    bool closing;     /* the last user unmaps the memory */
} Limiter;

typedef struct {
    PyObject_HEAD
    tatcell_cell_t cell;
    tatcell_limit_t limit;
    tatcell_limit_spec_t spec;
} Cell;

/* args.c. `any` is an object of one of the four types, through which the state is found. */
void *wrong_type(const char *wanted, PyObject *got);
void *fail(int32_t code, int32_t system_error, const char *what);
void *fail_limit(int32_t code, PyObject *limit);
bool to_bool(PyObject *value, const char *what, bool *out);
bool to_u64(PyObject *number, const char *what, uint64_t most, uint64_t *out);
bool to_key(PyObject *any, PyObject *object, struct key *key);
/* Reads cost and now. Behind the first `used` arguments, cost may be positional if `most` is 1; else by keyword. */
bool to_call(
    PyObject *const *args, Py_ssize_t used, Py_ssize_t count, Py_ssize_t most, PyObject *keywords, struct call *call);
bool to_choice(PyObject *value, const char *const *choices, const char *what, uint32_t *out);
/* Reads a limit such as "10/s burst 20", and the name of an algorithm; NULL is "gcra". */
bool to_spec(PyObject *limit, PyObject *algorithm, tatcell_limit_spec_t *spec);
PyObject *spec_text(const tatcell_limit_spec_t *spec);
PyObject *verdict(int32_t code);

/* decision.c */
PyObject *new_decision(PyObject *any, const tatcell_decision_t *decision, const struct answer *answers, uint32_t count);
extern PyType_Spec decision_spec;

/* limiter.c, many.c, shared.c, cell.c, chain.c */
extern PyType_Spec limiter_spec, cell_spec, chain_spec;
extern const char hit_many_doc[];
bool usable(const Limiter *self);
/* The same before a call. It sweeps what is due: words would wrap, and old debts count once more. A peek with now= may
 * be about another time, so it changes nothing; *time gets the latest time at which a table has no such debt. */
bool ready(Limiter *self, const struct call *call, bool peek, uint64_t *time);
void leave(Limiter *self);
PyObject *limiter_hit_many(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords);
bool open_private(Limiter *self, tatcell_table_options_t *options, bool shared);
bool open_named(Limiter *self, tatcell_table_options_t *options);

/* Methods of the fast calling convention. */
#define FAST(name, function, doc) {name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS, doc}

#endif
