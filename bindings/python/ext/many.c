/* many.c - hit_many: bursts of 64 keys, the next burst hashed and prefetched while one is decided.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A list is decided with the interpreter's lock held: half of the time goes into the list itself. An array needs no
 * object of Python, so a large one is decided without the lock. A thread that gives the lock up while another thread
 * computes gets it back after that thread's interval, 5 ms. So a small array keeps the lock: with a busy thread next to
 * it, 16 384 keys took 4 ms without the lock, and would take 0.2 ms with it. */
#include "binding.h"

#define BURST TATCELL_BURST_MAX
/* Keys of an array from which the lock is given up: 3 to 5 ms of work. */
#define UNLOCK (1 << 18)

const char hit_many_doc[] =
    "hit_many($self, keys, cost=1, /, *, now=None)\n--\n\n"
    "Decide one request of each key, in order, at one instant; several times as fast as as many calls of hit().\n\n"
    "An iterable of keys gives a list of bool. An array gives a memoryview of bool (numpy.asarray takes it).\n"
    "It has one dimension of whole numbers, each a key like an int, or two of bytes, each row a key.\n"
    "If a key has a wrong type, the keys up to 128 places before it and all earlier ones may have been charged.";

/* One burst, and what its keys need. */
struct load {
    tatcell_burst_t burst;
    const void *pointers[BURST];
    size_t lengths[BURST];
    struct key keys[BURST];
    uint64_t numbers[BURST];
};

struct work {
    struct load loads[2];
    uint32_t costs[BURST];
};

static struct work *new_work(const Limiter *self, const struct call *call) {
    if (call->cost > UINT32_MAX)
        return PyErr_SetString(PyExc_ValueError, "the cost of each key of hit_many is at most 4294967295"), NULL;
    struct work *work = PyMem_Malloc(sizeof *work);
    if (!work) return (struct work *)PyErr_NoMemory();
    const tatcell_burst_t fresh = TATCELL_BURST_INIT;
    for (int i = 0; i < BURST; i++) work->costs[i] = (uint32_t)call->cost;
    for (int i = 0; i < 2; i++) {
        work->loads[i].burst = fresh;
        work->loads[i].burst.limit = &self->limit, work->loads[i].burst.now = call->now;
        work->loads[i].burst.costs = call->cost == 1 ? NULL : work->costs;
    }
    return work;
}

/* Fills a burst with the keys from `from` on; 0 if there are none. -1: an exception is set. */
static int load_tuple(PyObject *self, struct load *load, PyObject *keys, Py_ssize_t from, Py_ssize_t total) {
    tatcell_burst_t *burst = &load->burst;
    int count = (int)(total - from < BURST ? total - from : BURST);
    for (int i = 0; i < count; i++) {
        struct key *key = &load->keys[i];
        if (!to_key(self, PyTuple_GetItem(keys, from + i), key)) return -1;
        load->pointers[i] = key->bytes, load->lengths[i] = key->length;
    }
    burst->key_pointers = load->pointers, burst->key_lens = load->lengths, burst->count = (uint32_t)count;
    return count;
}

static PyObject *many_of_tuple(Limiter *self, PyObject *keys, struct work *work) {
    Py_ssize_t total = PyTuple_Size(keys);
    PyObject *verdicts = PyList_New(total);
    if (!verdicts) return NULL;
    bool good = load_tuple((PyObject *)self, &work->loads[0], keys, 0, total) >= 0;
    for (Py_ssize_t at = 0, turn = 0; good && at < total; turn ^= 1) {
        tatcell_burst_t *burst = &work->loads[turn].burst, *next = &work->loads[turn ^ 1].burst;
        Py_ssize_t count = burst->count;
        good = load_tuple((PyObject *)self, &work->loads[turn ^ 1], keys, at + count, total) >= 0;
        if (!good) break;
        int32_t rc = tatcell_table_check_burst(&self->table, burst, next);
        if (rc < 0) fail(rc, 0, "tatcell"), good = false;
        for (Py_ssize_t i = 0; good && i < count; i++) {
            PyObject *pass = burst->pass >> i & 1 ? Py_True : Py_False;
            Py_INCREF(pass);
            good = PyList_SetItem(verdicts, at + i, pass) == 0;
        }
        at += count;
    }
    if (!good) Py_CLEAR(verdicts);
    return verdicts;
}

/* An array: whole numbers of 2, 4 or 8 bytes, or rows of bytes. */
struct array {
    const char *first;
    Py_ssize_t total, stride, width;
    bool widen, is_signed;
};

static uint64_t number_at(const struct array *array, Py_ssize_t index) {
    const char *at = array->first + index * array->stride;
    union {
        uint16_t u2;
        uint32_t u4;
    } value = {0};
    memcpy(&value, at, (size_t)array->width);
    if (array->width == 2) return array->is_signed ? (uint64_t)(int16_t)value.u2 : value.u2;
    return array->is_signed ? (uint64_t)(int32_t)value.u4 : value.u4;
}

static void load_array(struct load *load, const struct array *array, Py_ssize_t from) {
    tatcell_burst_t *burst = &load->burst;
    Py_ssize_t left = array->total - from, count = left < BURST ? left : BURST;
    burst->count = (uint32_t)count;
    burst->keys = array->first + from * array->stride;
    burst->stride = array->stride, burst->key_len = (size_t)array->width;
    if (!array->widen) return;
    for (Py_ssize_t i = 0; i < count; i++) load->numbers[i] = number_at(array, from + i);
    burst->keys = load->numbers, burst->stride = sizeof(uint64_t), burst->key_len = sizeof(uint64_t);
}

/* Touches no object of Python. */
static int32_t decide_array(
    const tatcell_table_t *table, const struct array *array, struct work *work, char *verdicts) {
    load_array(&work->loads[0], array, 0);
    for (Py_ssize_t at = 0, turn = 0; at < array->total; turn ^= 1) {
        tatcell_burst_t *burst = &work->loads[turn].burst;
        Py_ssize_t count = burst->count;
        load_array(&work->loads[turn ^ 1], array, at + count);
        int32_t rc = tatcell_table_check_burst(table, burst, &work->loads[turn ^ 1].burst);
        if (rc < 0) return rc;
        for (Py_ssize_t i = 0; i < count; i++) verdicts[at + i] = burst->pass >> i & 1;
        at += count;
    }
    return 0;
}

static bool to_array(const Py_buffer *view, struct array *array) {
    const char *format = view->format ? view->format : "B";
#if PY_LITTLE_ENDIAN
    if (*format == '@' || *format == '=' || *format == '<') format++;
#else
    if (*format == '@' || *format == '=' || *format == '>') format++;
#endif
    bool one = format[0] && !format[1];
    array->first = view->buf, array->width = view->itemsize, array->widen = view->itemsize < 8;
    array->is_signed = one && strchr("hilqn", *format);
    array->total = view->ndim ? view->shape[0] : 0, array->stride = view->ndim ? view->strides[0] : 0;
    if (view->ndim == 1 && one && strchr("hHiIlLqQnN", *format) && view->itemsize <= 8) return true;
    if (view->ndim == 2 && one && strchr("Bbc", *format) && (view->strides[1] == 1 || view->shape[1] < 2)) {
        array->width = view->shape[1], array->widen = false;
        return true;
    }
    bool rows = view->ndim == 2 && one && strchr("Bbc", *format);
    bool turned = view->ndim == 1 && *format && strchr("<>!", *format) && format[1] && strchr("hHiIlLqQ", format[1]);
    if (rows)
        PyErr_SetString(PyExc_TypeError,
            "the bytes of a row of keys must lie next to each other: pass numpy.ascontiguousarray(keys)");
    else if (turned)
        PyErr_Format(PyExc_TypeError,
            "numbers of format '%s' are not in the byte order of this machine: pass "
            "keys.astype(keys.dtype.newbyteorder('='))",
            format);
    else
        PyErr_Format(PyExc_TypeError,
            "an array of keys has whole numbers of 16 to 64 bits in one dimension, or bytes in two "
            "(a row is a key), not format '%s' in %d: pass a list",
            format, view->ndim);
    return false;
}

static PyObject *many_of_buffer(Limiter *self, PyObject *keys, struct work *work) {
    Py_buffer view;
    struct array array;
    char *bytes;
    PyObject *plain = NULL, *verdicts = NULL, *result = NULL;
    if (PyObject_GetBuffer(keys, &view, PyBUF_RECORDS_RO) < 0) return NULL;
    if (to_array(&view, &array)) plain = PyBytes_FromStringAndSize(NULL, array.total);
    if (plain && (bytes = PyBytes_AsString(plain))) {
        int32_t rc;
        if (array.total < UNLOCK)
            rc = decide_array(&self->table, &array, work, bytes);
        else {
            Py_BEGIN_ALLOW_THREADS
            rc = decide_array(&self->table, &array, work, bytes);
            Py_END_ALLOW_THREADS
        }
        if (rc < 0)
            fail(rc, 0, "tatcell");
        else
            verdicts = PyMemoryView_FromObject(plain);
    }
    if (verdicts) result = PyObject_CallMethod(verdicts, "cast", "s", "?");
    Py_XDECREF(plain), Py_XDECREF(verdicts);
    PyBuffer_Release(&view);
    return result;
}

PyObject *limiter_hit_many(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    Limiter *self = (Limiter *)object;
    struct call call;
    if (count < 1) return PyErr_Format(PyExc_TypeError, "the keys are missing");
    if (!to_call(args, 1, count, 1, keywords, &call)) return NULL;
    if (PyUnicode_Check(args[0]) || PyBytes_Check(args[0]) || PyByteArray_Check(args[0]))
        return wrong_type("hit_many takes a list, a tuple or an array of keys; hit takes one key", args[0]);
    bool buffer = PyObject_CheckBuffer(args[0]);
    /* A tuple of its own: the list may change while a key is read. */
    PyObject *keys = buffer ? NULL : PySequence_Tuple(args[0]), *verdicts = NULL;
    if (!buffer && !keys) return NULL;
    uint64_t time = 0;
    struct work *work = ready(self, &call, false, &time) ? new_work(self, &call) : NULL;
    if (work) {
        self->users++;
        verdicts = buffer ? many_of_buffer(self, args[0], work) : many_of_tuple(self, keys, work);
        leave(self);
        PyMem_Free(work);
    }
    Py_XDECREF(keys);
    return verdicts;
}
