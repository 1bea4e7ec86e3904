/* limiter.c - one limit for each of many keys.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The interpreter's lock guards the object: a call checks that the table is open, decides and returns without giving up
 * the lock in between. A call that gives it up counts as a user meanwhile, and close() leaves the memory to the last
 * user. Other processes may use the same memory at any time: that is what the library is made for. */
#include "binding.h"

#include <errno.h>

static PyObject *limiter_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *kwlist[] = {"limit", "keys", "name", "shared", "algorithm", "full", NULL};
    /* In the order of the constants TATCELL_FULL_. */
    static const char *const policies[] = {"admit", "inherit", "deny", "sampled", NULL};
    PyObject *limit, *keys = NULL, *name = NULL, *flag = NULL, *algorithm = NULL, *full = NULL;
    bool shared = false;
    if (!PyArg_ParseTupleAndKeywords(
            args, keywords, "O|$OOOOO:Limiter", kwlist, &limit, &keys, &name, &flag, &algorithm, &full))
        return NULL;
    if (name == Py_None) name = NULL;
    if (name && !PyUnicode_Check(name)) return wrong_type("name is str, such as '/api'", name);
    if (flag && !to_bool(flag, "shared", &shared)) return NULL;
    if (name && shared)
        return PyErr_Format(
            PyExc_ValueError, "name and shared exclude each other: memory with a name is shared already");
    Limiter *self = (Limiter *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    tatcell_host_memory_t none = TATCELL_HOST_MEMORY_INIT;
    tatcell_table_options_t options = TATCELL_TABLE_OPTIONS_INIT;
    self->memory = none, self->keys = 100000;
    options.fastest = &self->spec, options.tick_hz = TICKS_PER_SECOND;
    options.clock = TATCELL_CLOCK_MONOTONIC, options.flags = TATCELL_TABLE_ZEROED;
    if (!to_spec(limit, algorithm, &self->spec)) goto failed;
    if (full && !to_choice(full, policies, "full", &options.policy)) goto failed;
    if (options.policy == TATCELL_FULL_INHERIT && self->spec.algorithm != TATCELL_ALGORITHM_GCRA) {
        PyErr_SetString(PyExc_ValueError,
            "full='inherit' is for 'gcra' alone, a count cannot be inherited: pass 'admit', 'deny' or 'sampled'");
        goto failed;
    }
    if (keys && !to_u64(keys, "keys", SIZE_MAX, &self->keys)) goto failed;
    if (self->keys == 0) {
        PyErr_SetString(PyExc_ValueError, "keys is 0: pass how many keys are over idle at the same time");
        goto failed;
    }
    if (name) Py_INCREF(name), self->name = name;
    if (!(name ? open_named(self, &options) : open_private(self, &options, shared))) goto failed;
    int32_t rc = tatcell_limit_init_table(&self->limit, &self->table, &self->spec);
    if (rc == 0) return (PyObject *)self;
    fail_limit(rc, limit);
failed:
    Py_DECREF(self);
    return NULL;
}

static void unmap(Limiter *self) {
    /* A mapping that the library made can be unmapped. */
    (void)tatcell_host_memory_unmap(&self->memory);
}

void leave(Limiter *self) {
    if (--self->users == 0 && self->closing) unmap(self);
}

static void limiter_dealloc(PyObject *object) {
    Limiter *self = (Limiter *)object;
    PyTypeObject *type = Py_TYPE(object);
    unmap(self);
    Py_XDECREF(self->name);
    PyObject_Free(object);
    Py_DECREF(type);
}

bool usable(const Limiter *self) {
    if (self->memory.memory && !self->closing) return true;
    PyErr_SetString(PyExc_ValueError, "the limiter is closed: make a new one");
    return false;
}

bool ready(Limiter *self, const struct call *call, bool peek, uint64_t *time) {
    if (!usable(self)) return false;
    uint64_t at = call->now;
    int32_t rc = peek && call->timed ? tatcell_table_peek_time(&self->table, self->sweeper, call->now, &at)
                                     : tatcell_table_sweep_due(&self->table, self->sweeper, call->now);
    if (*time < at) *time = at;
    return rc == 0 || fail(rc, 0, "tatcell");
}

/* Reads a key and what follows it. Reading may run code of Python, which may close the limiter. */
static bool request(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords, bool peek,
    struct key *key, struct call *call) {
    uint64_t time = 0;
    if (count < 1) return PyErr_SetString(PyExc_TypeError, "the key is missing"), false;
    if (!to_key(self, args[0], key) || !to_call(args, 1, count, 1, keywords, call)) return false;
    if (!ready((Limiter *)self, call, peek, &time)) return false;
    call->now = time;
    return true;
}

static PyObject *limiter_hit(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    Limiter *self = (Limiter *)object;
    struct key key;
    struct call call;
    if (!request(object, args, count, keywords, false, &key, &call)) return NULL;
    return verdict(tatcell_table_check(&self->table, &self->limit, call.now, key.bytes, key.length, call.cost, NULL));
}

static bool answered(
    PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords, bool peek, struct answer *answer) {
    Limiter *self = (Limiter *)object;
    struct key key;
    struct call call;
    tatcell_decision_t fresh = TATCELL_DECISION_INIT;
    answer->limit = self->limit, answer->decision = fresh;
    if (!request(object, args, count, keywords, peek, &key, &call)) return false;
    int32_t rc = peek
        ? tatcell_table_peek(&self->table, &self->limit, call.now, key.bytes, key.length, call.cost, &answer->decision)
        : tatcell_table_check_ex(
              &self->table, &self->limit, call.now, key.bytes, key.length, call.cost, 0, &answer->decision, NULL);
    return rc >= 0 || fail(rc, 0, "tatcell");
}
static PyObject *limiter_check(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    struct answer answer;
    return answered(self, args, count, keywords, false, &answer) ? new_decision(self, &answer.decision, &answer, 1)
                                                                 : NULL;
}
static PyObject *limiter_peek(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    struct answer answer;
    return answered(self, args, count, keywords, true, &answer) ? new_decision(self, &answer.decision, &answer, 1)
                                                                : NULL;
}
static PyObject *limiter_test(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    struct answer answer;
    return answered(self, args, count, keywords, true, &answer) ? verdict(answer.decision.verdict) : NULL;
}

static PyObject *limiter_reset(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    Limiter *self = (Limiter *)object;
    struct key key;
    struct call call;
    if (count > 1) return PyErr_Format(PyExc_TypeError, "reset takes one key, and now=");
    if (!request(object, args, count, keywords, false, &key, &call)) return NULL;
    int32_t rc = tatcell_table_reset(&self->table, call.now, key.bytes, key.length);
    if (rc < 0) return fail(rc, 0, "tatcell");
    return PyBool_FromLong(rc == 0);
}

static PyObject *limiter_close(PyObject *object, PyObject *unused) {
    Limiter *self = (Limiter *)object;
    (void)unused;
    self->closing = true;
    if (self->users == 0) unmap(self);
    Py_RETURN_NONE;
}
static PyObject *limiter_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    if (!usable((Limiter *)self)) return NULL;
    Py_INCREF(self);
    return self;
}
static PyObject *limiter_exit(PyObject *self, PyObject *args) {
    (void)args;
    return limiter_close(self, NULL);
}

static PyObject *limiter_limit(PyObject *self, void *unused) {
    (void)unused;
    return spec_text(&((Limiter *)self)->spec);
}
static PyObject *limiter_closed(PyObject *object, void *unused) {
    Limiter *self = (Limiter *)object;
    (void)unused;
    return PyBool_FromLong(self->closing || !self->memory.memory);
}
static PyObject *limiter_memory(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(((Limiter *)self)->memory.bytes);
}
static PyObject *limiter_keys(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(((Limiter *)self)->keys);
}
static PyObject *limiter_name(PyObject *self, void *unused) {
    PyObject *name = ((Limiter *)self)->name;
    (void)unused;
    if (!name) Py_RETURN_NONE;
    Py_INCREF(name);
    return name;
}
static PyObject *limiter_repr(PyObject *object) {
    Limiter *self = (Limiter *)object;
    PyObject *text = limiter_limit(object, NULL),
             *name = self->name ? PyObject_Repr(self->name) : PyUnicode_FromString("");
    PyObject *result = NULL;
    if (text && name)
        result = PyUnicode_FromFormat("<tatcell.Limiter '%U', keys=%llu%s%U%s>", text, (unsigned long long)self->keys,
            self->name ? ", name=" : "", name, self->closing ? ", closed" : "");
    Py_XDECREF(text), Py_XDECREF(name);
    return result;
}

static PyObject *limiter_unlink(PyObject *type, PyObject *name) {
    int32_t error = 0;
    (void)type;
    if (!PyUnicode_Check(name)) return wrong_type("a name is str", name);
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(name, &length);
    if (!text) return NULL;
    if (strlen(text) != (size_t)length) return PyErr_Format(PyExc_ValueError, "name has a NUL character");
    int32_t rc = tatcell_host_memory_unlink(text, &error);
    if (rc == TATCELL_ERR_ABSENT) {
        PyObject *absent = Py_BuildValue("isO", ENOENT, "there is no table of this name", name);
        if (absent) PyErr_SetObject(PyExc_FileNotFoundError, absent);
        Py_XDECREF(absent);
        return NULL;
    }
    if (rc < 0) return fail(rc, error, text);
    Py_RETURN_NONE;
}

static PyMethodDef limiter_methods[] = {
    FAST("hit", limiter_hit,
        "hit($self, key, cost=1, /, *, now=None)\n--\n\n"
        "Decide one request of a key and charge it if it passes. Returns whether it passes."),
    FAST("test", limiter_test,
        "test($self, key, cost=1, /, *, now=None)\n--\n\n"
        "Whether hit() would pass. Charges nothing."),
    FAST("check", limiter_check,
        "check($self, key, cost=1, /, *, now=None)\n--\n\n"
        "Like hit(), with the full answer."),
    FAST("peek", limiter_peek,
        "peek($self, key, cost=1, /, *, now=None)\n--\n\n"
        "Like test(), with the full answer."),
    FAST("reset", limiter_reset,
        "reset($self, key, /, *, now=None)\n--\n\n"
        "Make the full burst of a key available at once. Returns False if other threads won every attempt."),
    FAST("hit_many", limiter_hit_many, hit_many_doc),
    {"close", limiter_close, METH_NOARGS,
        "close($self, /)\n--\n\n"
        "Give the memory back. Calls that run meanwhile finish first; later ones raise ValueError."},
    {"__enter__", limiter_enter, METH_NOARGS, "Return the limiter, which is closed at the end of the block."},
    {"__exit__", limiter_exit, METH_VARARGS, "Close the limiter."},
    {"unlink", limiter_unlink, METH_O | METH_STATIC,
        "unlink(name, /)\n--\n\n"
        "Remove the name of a shared table. Processes that have it open keep it."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef limiter_getset[] = {{"limit", limiter_limit, NULL, "The limit, as text.", NULL},
    {"keys", limiter_keys, NULL, "The number of keys that it was made for.", NULL},
    {"name", limiter_name, NULL, "The name of its shared memory, or None.", NULL},
    {"memory", limiter_memory, NULL, "Bytes of memory of its table; 0 once closed.", NULL},
    {"closed", limiter_closed, NULL, "Whether close() was called.", NULL}, {NULL, NULL, NULL, NULL, NULL}};
PyDoc_STRVAR(limiter_doc,
    "Limiter(limit, *, keys=100000, name=None, shared=False, algorithm='gcra', full='admit')\n--\n\n"
    "One limit for each of many keys, such as \"10/s burst 20\".\n\n"
    "keys is the number of keys that are in debt at the same time; memory is about 35 bytes for each of them. If more\n"
    "come, `full` decides about new ones: 'admit', 'inherit', 'deny' or 'sampled'.\n\n"
    "name, such as '/api', puts the table into shared memory: every process that opens the name has the same counts.\n"
    "shared=True shares it with processes that are forked later.");
static PyType_Slot limiter_slots[] = {{Py_tp_new, limiter_new}, {Py_tp_dealloc, limiter_dealloc},
    {Py_tp_repr, limiter_repr}, {Py_tp_methods, limiter_methods}, {Py_tp_getset, limiter_getset},
    {Py_tp_doc, (void *)limiter_doc}, {0, NULL}};
PyType_Spec limiter_spec = {
    "tatcell.Limiter", sizeof(Limiter), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, limiter_slots};
