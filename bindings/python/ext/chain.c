/* chain.c - several limits for one request: all are charged, or none.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "binding.h"

/* The links follow the object. */
typedef struct {
    PyObject_VAR_HEAD
    tatcell_prepared_chain_t prepared;
    uint32_t count, keys; /* links, and how many of them take a key */
} Chain;

struct member {
    PyObject *object; /* a Limiter or a Cell */
    bool keyed;
};

static struct member *members_of(Chain *self) { return (struct member *)(self + 1); }

static tatcell_link_t link_of(struct member *member) {
    tatcell_link_t link = TATCELL_LINK_INIT;
    if (member->keyed) {
        Limiter *limiter = (Limiter *)member->object;
        link.table = &limiter->table, link.limit = &limiter->limit, link.key = "";
    } else {
        Cell *cell = (Cell *)member->object;
        link.cell = &cell->cell, link.limit = &cell->limit;
    }
    return link;
}

static tatcell_chain_t chain_of(const tatcell_link_t *links, uint32_t count) {
    tatcell_chain_t chain = TATCELL_CHAIN_INIT;
    chain.links = links, chain.count = count, chain.link_size = sizeof *links;
    return chain;
}

static PyObject *chain_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    struct state *state = PyType_GetModuleState(type);
    Py_ssize_t count = PyTuple_Size(args);
    if (!state) return NULL;
    if (keywords && PyDict_Size(keywords)) return PyErr_Format(PyExc_TypeError, "Chain takes no keyword arguments");
    if (count < 1 || count > TATCELL_CHAIN_MAX)
        return PyErr_Format(PyExc_ValueError, "a chain has 1 to %d limits, not %zd", TATCELL_CHAIN_MAX, count);
    Chain *self = (Chain *)PyType_GenericAlloc(type, count);
    if (!self) return NULL;
    tatcell_link_t links[TATCELL_CHAIN_MAX];
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *object = PyTuple_GetItem(args, i);
        struct member *member = &members_of(self)[i];
        member->keyed = Py_IS_TYPE(object, state->limiter);
        if (!member->keyed && !Py_IS_TYPE(object, state->cell)) {
            wrong_type("a chain takes Limiter and Cell objects", object);
            goto failed;
        }
        if (member->keyed && !usable((Limiter *)object)) goto failed;
        Py_INCREF(object);
        member->object = object, self->count++, self->keys += member->keyed;
        links[i] = link_of(member);
    }
    tatcell_chain_t chain = chain_of(links, self->count);
    int32_t rc = tatcell_prepared_chain_init(&self->prepared, &chain);
    if (rc == 0) return (PyObject *)self;
    fail(rc, 0, "chain");
failed:
    Py_DECREF(self);
    return NULL;
}

static void chain_dealloc(PyObject *object) {
    Chain *self = (Chain *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (uint32_t i = 0; i < self->count; i++) Py_DECREF(members_of(self)[i].object);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* Reads one key for each table. Reading may run code of Python, which may close a limiter. */
static bool request(Chain *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords, bool peek,
    struct key *keys, struct call *call) {
    uint64_t time = 0;
    if (count != (Py_ssize_t)self->keys) {
        PyErr_Format(PyExc_TypeError, "%zd keys for %u limiters: pass one key for each Limiter, none for a Cell", count,
            self->keys);
        return false;
    }
    for (uint32_t i = 0, taken = 0; i < self->count; i++)
        if (members_of(self)[i].keyed && !to_key((PyObject *)self, args[taken++], &keys[i])) return false;
    if (!to_call(args, count, count, 0, keywords, call)) return false;
    for (uint32_t i = 0; i < self->count; i++)
        if (members_of(self)[i].keyed && !ready((Limiter *)members_of(self)[i].object, call, peek, &time)) return false;
    /* A cell has no such time. */
    if (self->keys == self->count) call->now = time;
    return true;
}

static PyObject *chain_hit(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    Chain *self = (Chain *)object;
    struct key keys[TATCELL_CHAIN_MAX];
    struct call call;
    tatcell_chain_key_t bytes[TATCELL_CHAIN_MAX] = {{0}};
    uint64_t costs[TATCELL_CHAIN_MAX];
    if (!request(self, args, count, keywords, false, keys, &call)) return NULL;
    for (uint32_t i = 0; i < self->count; i++) {
        costs[i] = call.cost;
        if (members_of(self)[i].keyed) bytes[i].key = keys[i].bytes, bytes[i].key_len = keys[i].length;
    }
    return verdict(tatcell_prepared_chain_check(&self->prepared, call.now, bytes, costs, NULL));
}

typedef int32_t decide(const tatcell_chain_t *chain, uint64_t now, tatcell_decision_t *out);

static PyObject *answered(
    PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords, decide *function, bool full) {
    Chain *self = (Chain *)object;
    struct key keys[TATCELL_CHAIN_MAX];
    struct call call;
    tatcell_link_t links[TATCELL_CHAIN_MAX];
    tatcell_decision_t fresh = TATCELL_DECISION_INIT, out = TATCELL_DECISION_INIT, each[TATCELL_CHAIN_MAX];
    struct answer answers[TATCELL_CHAIN_MAX];
    if (!request(self, args, count, keywords, function == tatcell_chain_peek, keys, &call)) return NULL;
    for (uint32_t i = 0; i < self->count; i++) {
        struct member *member = &members_of(self)[i];
        links[i] = link_of(member), links[i].cost = call.cost, each[i] = fresh;
        if (member->keyed) links[i].key = keys[i].bytes, links[i].key_len = keys[i].length;
    }
    tatcell_chain_t chain = chain_of(links, self->count);
    chain.decisions = each, chain.decision_size = sizeof *each;
    int32_t rc = function(&chain, call.now, &out);
    if (rc < 0) return fail(rc, 0, "tatcell");
    if (!full) return verdict(rc);
    for (uint32_t i = 0; i < self->count; i++) answers[i].limit = *links[i].limit, answers[i].decision = each[i];
    return new_decision(object, &out, answers, self->count);
}
static PyObject *chain_check(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    return answered(self, args, count, keywords, tatcell_chain_check, true);
}
static PyObject *chain_peek(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    return answered(self, args, count, keywords, tatcell_chain_peek, true);
}
static PyObject *chain_test(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    return answered(self, args, count, keywords, tatcell_chain_peek, false);
}

static PyObject *chain_repr(PyObject *self) {
    return PyUnicode_FromFormat("<tatcell.Chain of %u limits>", ((Chain *)self)->count);
}

static PyObject *chain_limiters(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((Chain *)self)->keys);
}

static PyObject *chain_keyed(PyObject *object, void *unused) {
    Chain *self = (Chain *)object;
    PyObject *keyed = PyTuple_New(self->count);
    (void)unused;
    for (uint32_t i = 0; keyed && i < self->count; i++)
        if (PyTuple_SetItem(keyed, i, PyBool_FromLong(members_of(self)[i].keyed)) < 0) Py_CLEAR(keyed);
    return keyed;
}

static PyGetSetDef chain_attributes[] = {
    {"_keyed", chain_keyed, NULL, "Whether each limit takes a key.", NULL},
    {"limiters", chain_limiters, NULL, "How many of the limits are Limiters: a request has one key for each.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef chain_methods[] = {
    FAST("hit", chain_hit,
        "hit($self, /, *keys, cost=1, now=None)\n--\n\n"
        "Charge all limits if the request conforms to all, else none. Pass one key for each Limiter, in order."),
    FAST("test", chain_test,
        "test($self, /, *keys, cost=1, now=None)\n--\n\nWhether hit() would pass. Charges nothing."),
    FAST("check", chain_check, "check($self, /, *keys, cost=1, now=None)\n--\n\nLike hit(), with the full answer."),
    FAST("peek", chain_peek, "peek($self, /, *keys, cost=1, now=None)\n--\n\nLike test(), with the full answer."),
    {NULL, NULL, 0, NULL}};
static PyType_Slot chain_slots[] = {{Py_tp_new, chain_new}, {Py_tp_dealloc, chain_dealloc}, {Py_tp_repr, chain_repr},
    {Py_tp_methods, chain_methods}, {Py_tp_getset, chain_attributes},
    {Py_tp_doc,
        "Chain(*limits)\n--\n\nUp to 8 limits that a request must meet together. Put the one that refuses most first."},
    {0, NULL}};
PyType_Spec chain_spec = {
    "tatcell.Chain", sizeof(Chain), sizeof(struct member), Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, chain_slots};
