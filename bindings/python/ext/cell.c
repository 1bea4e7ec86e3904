/* cell.c - one limit, one state.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "binding.h"

static PyObject *cell_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *kwlist[] = {"limit", "algorithm", NULL};
    PyObject *limit, *algorithm = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$O:Cell", kwlist, &limit, &algorithm)) return NULL;
    Cell *self = (Cell *)PyType_GenericAlloc(type, 0);
    if (!self) return NULL;
    int32_t rc = 0;
    if (!to_spec(limit, algorithm, &self->spec) ||
        ((rc = tatcell_limit_init_spec(&self->limit, &self->spec)) < 0 && !fail_limit(rc, limit)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void cell_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *cell_hit(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    Cell *self = (Cell *)object;
    struct call call;
    if (!to_call(args, 0, count, 1, keywords, &call)) return NULL;
    return verdict(tatcell_cell_check(&self->cell, &self->limit, call.now, call.cost, NULL));
}

/* answered SELF ... PEEK: the full answer, charged or not. */
static bool answered(
    PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords, bool peek, struct answer *answer) {
    Cell *self = (Cell *)object;
    struct call call;
    tatcell_decision_t fresh = TATCELL_DECISION_INIT;
    answer->limit = self->limit, answer->decision = fresh;
    if (!to_call(args, 0, count, 1, keywords, &call)) return false;
    int32_t rc = peek
        ? tatcell_cell_peek(&self->cell, &self->limit, call.now, call.cost, &answer->decision)
        : tatcell_cell_check_ex(&self->cell, &self->limit, call.now, call.cost, 0, &answer->decision, NULL);
    return rc >= 0 || fail(rc, 0, "tatcell");
}
static PyObject *cell_check(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    struct answer answer;
    return answered(self, args, count, keywords, false, &answer) ? new_decision(self, &answer.decision, &answer, 1)
                                                                 : NULL;
}
static PyObject *cell_peek(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    struct answer answer;
    return answered(self, args, count, keywords, true, &answer) ? new_decision(self, &answer.decision, &answer, 1)
                                                                : NULL;
}
static PyObject *cell_test(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    struct answer answer;
    return answered(self, args, count, keywords, true, &answer) ? verdict(answer.decision.verdict) : NULL;
}

static PyObject *cell_reset(PyObject *self, PyObject *unused) {
    (void)unused;
    int32_t rc = tatcell_cell_reset(&((Cell *)self)->cell);
    if (rc < 0) return fail(rc, 0, "tatcell");
    Py_RETURN_NONE;
}

static PyObject *cell_limit(PyObject *self, void *unused) {
    (void)unused;
    return spec_text(&((Cell *)self)->spec);
}
static PyObject *cell_repr(PyObject *self) {
    PyObject *text = cell_limit(self, NULL);
    PyObject *result = text ? PyUnicode_FromFormat("<tatcell.Cell '%U'>", text) : NULL;
    Py_XDECREF(text);
    return result;
}

static PyMethodDef cell_methods[] = {
    FAST("hit", cell_hit, "hit($self, cost=1, /, *, now=None)\n--\n\nDecide one request and charge it if it passes."),
    FAST("test", cell_test, "test($self, cost=1, /, *, now=None)\n--\n\nWhether hit() would pass. Charges nothing."),
    FAST("check", cell_check, "check($self, cost=1, /, *, now=None)\n--\n\nLike hit(), with the full answer."),
    FAST("peek", cell_peek, "peek($self, cost=1, /, *, now=None)\n--\n\nLike test(), with the full answer."),
    {"reset", cell_reset, METH_NOARGS, "reset($self, /)\n--\n\nMake the full burst available at once."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef cell_getset[] = {
    {"limit", cell_limit, NULL, "The limit, as text.", NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot cell_slots[] = {{Py_tp_new, cell_new}, {Py_tp_dealloc, cell_dealloc}, {Py_tp_repr, cell_repr},
    {Py_tp_methods, cell_methods}, {Py_tp_getset, cell_getset},
    {Py_tp_doc, "Cell(limit, *, algorithm='gcra')\n--\n\nOne limit for one thing, in 8 bytes of state."}, {0, NULL}};
PyType_Spec cell_spec = {"tatcell.Cell", sizeof(Cell), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, cell_slots};
