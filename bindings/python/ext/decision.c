/* decision.c - the full answer to a request: numbers, and the header fields of HTTP.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "binding.h"

/* The answers follow the object: one, or one for each link of a chain. `decision` is that of the link that decided. */
typedef struct {
    PyObject_VAR_HEAD
    tatcell_decision_t decision;
    uint32_t count;
} Decision;

static struct answer *answers_of(Decision *self) { return (struct answer *)(self + 1); }

PyObject *new_decision(
    PyObject *any, const tatcell_decision_t *decision, const struct answer *answers, uint32_t count) {
    struct state *state = PyType_GetModuleState(Py_TYPE(any));
    Decision *self = state ? (Decision *)PyType_GenericAlloc(state->decision, count) : NULL;
    if (!self) return NULL;
    self->decision = *decision, self->count = count;
    memcpy(answers_of(self), answers, count * sizeof *answers);
    return (PyObject *)self;
}

static void decision_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int passes(PyObject *self) { return ((Decision *)self)->decision.verdict == TATCELL_PASS; }

static PyObject *get_passes(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(passes(self));
}
static PyObject *get_verdict(PyObject *self, void *unused) {
    static const char *const names[] = {"pass", "refused", "never", "contended"};
    int32_t code = ((Decision *)self)->decision.verdict;
    (void)unused;
    return PyUnicode_FromString(code >= 0 && code < 4 ? names[code] : "contended");
}
static PyObject *get_tracked(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(((Decision *)self)->decision.tracking == TATCELL_TRACKED);
}
static PyObject *get_link(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((Decision *)self)->decision.policy);
}
/* The closure is the offset of a field. */
static uint64_t field(PyObject *self, void *offset) {
    return *(const uint64_t *)((const char *)&((Decision *)self)->decision + (uintptr_t)offset);
}
static PyObject *get_units(PyObject *self, void *offset) { return PyLong_FromUnsignedLongLong(field(self, offset)); }
static PyObject *get_seconds(PyObject *self, void *offset) {
    uint64_t ticks = field(self, offset);
    return PyFloat_FromDouble(ticks == UINT64_MAX ? Py_HUGE_VAL : (double)ticks / TICKS_PER_SECOND);
}

#define FIELD(name) (void *)offsetof(tatcell_decision_t, name)
static PyGetSetDef decision_getset[] = {
    {"passes", get_passes, NULL, "Whether the request passes; bool(decision) is the same.", NULL},
    {"verdict", get_verdict, NULL,
        "'pass', 'refused' (for now), 'never' (the cost exceeds the burst) or 'contended' "
        "(other threads won every attempt: nothing was charged, ask again).",
        NULL},
    {"cost", get_units, NULL, "Units that the request asked for.", FIELD(cost)},
    {"burst", get_units, NULL, "The most units that pass at one instant after a pause.", FIELD(burst)},
    {"remaining", get_units, NULL, "Units that would pass right after this decision, rounded down.", FIELD(remaining)},
    {"retry_after", get_seconds, NULL,
        "Seconds until the same cost would pass: 0.0 if it passes, inf if it never does.", FIELD(retry_after)},
    {"reset_after", get_seconds, NULL, "Seconds until the whole burst is available again.", FIELD(reset_after)},
    {"tracked", get_tracked, NULL, "False if the table had no slot for the key, so that `full` decided.", NULL},
    {"link", get_link, NULL, "Of a chain: the index of the limit that refused, or that has least left.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyObject *decision_repr(PyObject *self) {
    PyObject *verdict = get_verdict(self, NULL), *result = NULL;
    PyObject *retry = get_seconds(self, FIELD(retry_after)), *reset = get_seconds(self, FIELD(reset_after));
    if (verdict && retry && reset)
        result = PyUnicode_FromFormat("<tatcell.Decision %U, remaining=%llu, retry_after=%R, reset_after=%R>", verdict,
            (unsigned long long)field(self, FIELD(remaining)), retry, reset);
    Py_XDECREF(verdict), Py_XDECREF(retry), Py_XDECREF(reset);
    return result;
}

static bool append_field(
    PyObject *list, const tatcell_http_policy_t *policies, uint32_t count, uint32_t which, const char *name) {
    char small[512], *text = small;
    int32_t length = tatcell_http_value(policies, count, TICKS_PER_SECOND, which, small, sizeof small);
    if (length >= (int32_t)sizeof small) {
        text = PyMem_Malloc((size_t)length + 1);
        if (!text) return PyErr_NoMemory(), false;
        length = tatcell_http_value(policies, count, TICKS_PER_SECOND, which, text, (size_t)length + 1);
    }
    PyObject *pair = NULL;
    if (length > 0)
        pair = Py_BuildValue("(ss#)", name, text, (Py_ssize_t)length);
    else if (length < 0)
        fail(length, 0, "header fields");
    bool done = length == 0 || (pair && PyList_Append(list, pair) == 0);
    Py_XDECREF(pair);
    if (text != small) PyMem_Free(text);
    return done;
}

/* The nanoseconds after which this request would pass if `units` others went before it: one number for each limit. Only
 * GCRA has a rate at which it gives units back; under the other algorithms others may go at the same time. */
static PyObject *decision_waits(PyObject *object, PyObject *units) {
    Decision *self = (Decision *)object;
    uint64_t ahead;
    if (!to_u64(units, "units", UINT64_MAX, &ahead)) return NULL;
    PyObject *waits = PyTuple_New(self->count);
    for (uint32_t i = 0; waits && i < self->count; i++) {
        const struct answer *answer = &answers_of(self)[i];
        tatcell_limit_info_t info = TATCELL_LIMIT_INFO_INIT;
        uint64_t wait = answer->decision.retry_after;
        int32_t rc = tatcell_limit_info(&answer->limit, &info);
        double more = info.algorithm == TATCELL_ALGORITHM_GCRA && info.units
            ? (double)ahead * (double)info.period / (double)info.units
            : 0;
        wait = more < (double)(UINT64_MAX - wait) ? wait + (uint64_t)more : UINT64_MAX;
        PyObject *number = rc < 0 ? fail(rc, 0, "tatcell") : PyLong_FromUnsignedLongLong(wait);
        if (!number || PyTuple_SetItem(waits, i, number) < 0) Py_CLEAR(waits);
    }
    return waits;
}

PyDoc_STRVAR(headers_doc,
    "headers($self, /, *names, legacy=False)\n--\n\n"
    "Header fields for a response, as a list of (name, value): RateLimit-Policy, RateLimit, and Retry-After if the\n"
    "request was refused. legacy=True adds the X-RateLimit-* fields.\n\n"
    "Names are those of the limits, one each; left out, \"default\", or \"limit-1\", \"limit-2\" for a chain.");

static PyObject *decision_headers(PyObject *object, PyObject *names, PyObject *keywords) {
    static const struct {
        uint32_t field;
        const char *name;
    } fields[] = {{TATCELL_HTTP_RATELIMIT_POLICY, "RateLimit-Policy"}, {TATCELL_HTTP_RATELIMIT, "RateLimit"},
        {TATCELL_HTTP_RETRY_AFTER, "Retry-After"}, {TATCELL_HTTP_X_LIMIT, "X-RateLimit-Limit"},
        {TATCELL_HTTP_X_REMAINING, "X-RateLimit-Remaining"}, {TATCELL_HTTP_X_RESET, "X-RateLimit-Reset"}};
    static const char *const numbered[] = {
        "limit-1", "limit-2", "limit-3", "limit-4", "limit-5", "limit-6", "limit-7", "limit-8"};
    static char *kwlist[] = {"legacy", NULL};
    Decision *self = (Decision *)object;
    Py_ssize_t given = PyTuple_Size(names);
    bool legacy = false;
    PyObject *none = PyTuple_New(0), *flag = NULL;
    bool parsed = none && PyArg_ParseTupleAndKeywords(none, keywords, "|$O:headers", kwlist, &flag);
    Py_XDECREF(none);
    if (!parsed || (flag && !to_bool(flag, "legacy", &legacy))) return NULL;
    if (given && given != (Py_ssize_t)self->count)
        return PyErr_Format(
            PyExc_ValueError, "%zd names for %u limits: pass one for each, or none", given, self->count);
    tatcell_http_policy_t fresh = TATCELL_HTTP_POLICY_INIT, policies[TATCELL_CHAIN_MAX];
    for (uint32_t i = 0; i < self->count; i++) {
        struct answer *answer = &answers_of(self)[i];
        policies[i] = fresh;
        policies[i].limit = &answer->limit, policies[i].decision = &answer->decision;
        policies[i].name = self->count == 1 ? "default" : numbered[i];
        if (!given) continue;
        PyObject *name = PyTuple_GetItem(names, i);
        Py_ssize_t length;
        if (!PyUnicode_Check(name)) return wrong_type("a name is str", name);
        policies[i].name = PyUnicode_AsUTF8AndSize(name, &length);
        if (!policies[i].name) return NULL;
        if (length == 0) return PyErr_Format(PyExc_ValueError, "a name must not be empty");
        policies[i].name_len = (size_t)length;
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < (legacy ? 6 : 3); i++)
        if (!append_field(list, policies, self->count, fields[i].field, fields[i].name)) Py_CLEAR(list);
    return list;
}

static PyMethodDef decision_methods[] = {
    {"headers", (PyCFunction)(void (*)(void))decision_headers, METH_VARARGS | METH_KEYWORDS, headers_doc},
    {"_waits", decision_waits, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static PyType_Slot decision_slots[] = {{Py_tp_dealloc, decision_dealloc}, {Py_tp_repr, decision_repr},
    {Py_tp_getset, decision_getset}, {Py_tp_methods, decision_methods}, {Py_nb_bool, passes},
    {Py_tp_doc, "The full answer to one request. It is true if the request passes. Times are seconds."}, {0, NULL}};
PyType_Spec decision_spec = {"tatcell.Decision", sizeof(Decision), sizeof(struct answer),
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, decision_slots};
