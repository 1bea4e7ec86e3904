/* args.c - reads arguments, and says what to change if they are wrong.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "binding.h"

#include <errno.h>

#define NUMBER_MISSING "a number is missing, as in '10/s burst 20'"
#define NUMBER_ZERO "the number is 0"

void *wrong_type(const char *wanted, PyObject *got) {
    PyObject *name = PyType_GetName(Py_TYPE(got));
    if (name) PyErr_Format(PyExc_TypeError, "%s, not %U", wanted, name);
    Py_XDECREF(name);
    return NULL;
}

/* The library's texts name what C and Rust have. These say the same about what Python has. */
static const char *text_of(int32_t code) {
    switch (code) {
    case TATCELL_ERR_REPRESENT: return "the rate is too fast or the burst too large: make it smaller";
    case TATCELL_ERR_HORIZON:
    case TATCELL_ERR_SPAN: return "the period is too long, or the burst too large: make it shorter or smaller";
    default: return tatcell_strerror(code);
    }
}

void *fail(int32_t code, int32_t system_error, const char *what) {
    if (code == TATCELL_ERR_SYSTEM) {
        errno = system_error;
        return *what == '/' ? PyErr_SetFromErrnoWithFilename(PyExc_OSError, what) : PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyErr_Format(PyExc_ValueError, "%s: %s (%s)", what, text_of(code), tatcell_strerror_name(code));
}

void *fail_limit(int32_t code, PyObject *limit) {
    return PyErr_Format(PyExc_ValueError, "limit '%U': %s (%s)", limit, text_of(code), tatcell_strerror_name(code));
}

bool to_bool(PyObject *value, const char *what, bool *out) {
    *out = value == Py_True;
    if (value == Py_True || value == Py_False) return true;
    PyObject *name = PyType_GetName(Py_TYPE(value));
    if (name) PyErr_Format(PyExc_TypeError, "%s is True or False, not %U", what, name);
    Py_XDECREF(name);
    return false;
}

bool to_u64(PyObject *number, const char *what, uint64_t most, uint64_t *out) {
    if (!PyIndex_Check(number)) {
        PyObject *name = PyType_GetName(Py_TYPE(number));
        if (name) PyErr_Format(PyExc_TypeError, "%s must be an int, not %U", what, name);
        Py_XDECREF(name);
        return false;
    }
    PyObject *index = PyNumber_Index(number);
    if (!index) return false;
    *out = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    bool failed = *out == UINT64_MAX && PyErr_Occurred();
    if (failed && !PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
    if (!failed && *out <= most) return true;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s is out of range: pass 0 to %llu", what, (unsigned long long)most);
    return false;
}

/* Whole numbers are 8 bytes in the machine's order, as the elements of an array of them. */
static bool number_key(PyObject *object, struct key *key) {
    PyObject *index = PyNumber_Index(object);
    if (!index) return false;
    key->own.number = (uint64_t)PyLong_AsLongLong(index);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        key->own.number = PyLong_AsUnsignedLongLong(index);
    }
    Py_DECREF(index);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
        PyErr_Clear();
        PyErr_SetString(PyExc_ValueError,
            "an int key has at most 64 bits (-2**63 to 2**64 - 1): "
            "pass its bytes, key.to_bytes(...)");
        return false;
    }
    key->bytes = &key->own, key->length = sizeof key->own.number;
    return true;
}

/* An IPv4 address has 4 bytes, also if it is written as an IPv6 one. */
static bool address_key(PyObject *object, struct key *key) {
    PyObject *packed = PyObject_GetAttrString(object, "packed");
    char *bytes;
    Py_ssize_t length;
    if (!packed) return false;
    if (PyBytes_AsStringAndSize(packed, &bytes, &length) < 0) {
        Py_DECREF(packed);
        return false;
    }
    size_t canonical = 0;
    int32_t rc = tatcell_address_canonical(bytes, (size_t)length, key->own.address, &canonical);
    Py_DECREF(packed);
    if (rc < 0) return fail(rc, 0, "key");
    key->bytes = &key->own, key->length = canonical;
    return true;
}

bool to_key(PyObject *any, PyObject *object, struct key *key) {
    if (PyUnicode_Check(object)) {
        Py_ssize_t length;
        key->bytes = PyUnicode_AsUTF8AndSize(object, &length);
        key->length = (size_t)length;
        return key->bytes != NULL;
    }
    if (PyBytes_Check(object)) {
        key->bytes = PyBytes_AsString(object);
        key->length = (size_t)PyBytes_Size(object);
        return true;
    }
    if (PyIndex_Check(object)) return number_key(object, key);
    struct state *state = PyType_GetModuleState(Py_TYPE(any));
    if (!state) return false;
    if (!state->addresses) {
        PyObject *module = PyImport_ImportModule("ipaddress");
        PyObject *v4 = module ? PyObject_GetAttrString(module, "IPv4Address") : NULL;
        PyObject *v6 = v4 ? PyObject_GetAttrString(module, "IPv6Address") : NULL;
        PyObject *addresses = v6 ? PyTuple_Pack(2, v4, v6) : NULL;
        Py_XDECREF(module), Py_XDECREF(v4), Py_XDECREF(v6);
        if (!addresses) return false;
        /* The import may have run another thread that was here, too. */
        if (state->addresses)
            Py_DECREF(addresses);
        else
            state->addresses = addresses;
    }
    int is = PyObject_IsInstance(object, state->addresses);
    if (is > 0) return address_key(object, key);
    return is < 0 ? false : wrong_type("a key is str, bytes, int or an address of ipaddress", object);
}

static bool one_option(const char *name, PyObject *value, struct call *call, bool *timed) {
    if (name[0] == 'c') return to_u64(value, "cost", UINT64_MAX, &call->cost);
    if (value == Py_None) return true;
    *timed = true;
    return to_u64(value, "now", UINT64_MAX, &call->now);
}

bool to_call(
    PyObject *const *args, Py_ssize_t used, Py_ssize_t count, Py_ssize_t most, PyObject *keywords, struct call *call) {
    call->cost = 1, call->timed = false;
    if (count > used + most) {
        PyErr_Format(PyExc_TypeError, "too many arguments: at most %zd, then cost= and now=", used + most);
        return false;
    }
    if (count > used && !one_option("cost", args[used], call, &call->timed)) return false;
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(keywords, i);
        bool cost = PyUnicode_CompareWithASCIIString(name, "cost") == 0;
        if (!cost && PyUnicode_CompareWithASCIIString(name, "now") != 0) {
            PyErr_Format(PyExc_TypeError, "unexpected keyword argument '%U': there are cost and now", name);
            return false;
        }
        if (cost && count > used) {
            PyErr_SetString(PyExc_TypeError, "cost is given twice");
            return false;
        }
        if (!one_option(cost ? "cost" : "now", args[count + i], call, &call->timed)) return false;
    }
    if (call->timed) return true;
    int32_t error, rc = tatcell_host_clock(TATCELL_HOST_CLOCK_MONOTONIC, &call->now, &error);
    return rc == 0 || fail(rc, error, "clock");
}

bool to_choice(PyObject *value, const char *const *choices, const char *what, uint32_t *out) {
    PyObject *list = PyUnicode_FromString(""), *type = PyType_GetName(Py_TYPE(value));
    for (uint32_t i = 0; choices[i]; i++) {
        if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, choices[i]) == 0) {
            Py_XDECREF(list), Py_XDECREF(type);
            *out = i;
            return true;
        }
        PyObject *longer = list ? PyUnicode_FromFormat("%U%s'%s'", list, i ? ", " : "", choices[i]) : NULL;
        Py_XDECREF(list);
        list = longer;
    }
    if (list && PyUnicode_Check(value))
        PyErr_Format(PyExc_ValueError, "there is no %s '%U': choose one of %U", what, value, list);
    else if (list && type)
        PyErr_Format(PyExc_TypeError, "%s is str, one of %U, not %U", what, list, type);
    Py_XDECREF(list), Py_XDECREF(type);
    return false;
}

/* What is wrong at a position at which the library stopped reading. It reads an amount, a slash, a number or not, a
 * unit of time, and perhaps "burst" and an amount. It stops at the first digit of a number that it does not take. */
static const char *wrong_at(const char *text, size_t length, size_t position) {
    char next = position < length ? text[position] : 0;
    bool digit = next >= '0' && next <= '9', zero = digit, point = false;
    for (size_t i = position; i < length; i++) {
        if (text[i] == '.' && !point)
            point = true;
        else if (text[i] >= '1' && text[i] <= '9')
            zero = false;
        else if (text[i] != '0')
            break;
    }
    size_t end = position, start = 0;
    while (end && strchr(" \t", text[end - 1])) end--;
    while (start < end && text[start] != '/') start++;
    if (end == 0) return zero ? NUMBER_ZERO : NUMBER_MISSING;
    if (start == end) return "'/' and a time are missing, as in '10/s'";
    start++, start += strspn(text + start, " \t");
    if (start >= end && (digit || next == '.')) return zero ? NUMBER_ZERO : NUMBER_MISSING;
    if (start >= end || start + strspn(text + start, "0123456789.") >= end)
        return "not a unit of time: use ns, us, ms, s, m, h, d or w";
    if (text[end - 1] == '=') end--;
    while (strchr(" \t", text[end - 1])) end--;
    if (end - start > 5 && memcmp(text + end - 5, "burst", 5) == 0)
        return zero ? NUMBER_ZERO : digit ? "a burst is a whole number of units" : NUMBER_MISSING;
    return "only 'burst' and a number may follow the rate";
}

bool to_spec(PyObject *limit, PyObject *algorithm, tatcell_limit_spec_t *spec) {
    /* In the order of the constants TATCELL_ALGORITHM_. */
    static const char *const algorithms[] = {"gcra", "fixed-window", "sliding-counter", "quota-linear", "decay", NULL};
    tatcell_limit_spec_t fresh = TATCELL_LIMIT_SPEC_INIT;
    size_t position = 0;
    Py_ssize_t length;
    *spec = fresh;
    if (!PyUnicode_Check(limit)) return wrong_type("a limit is str, such as '10/s burst 20'", limit) != NULL;
    const char *text = PyUnicode_AsUTF8AndSize(limit, &length);
    if (!text || (algorithm && !to_choice(algorithm, algorithms, "algorithm", &spec->algorithm))) return false;
    int32_t rc = tatcell_limit_spec_parse(spec, text, (size_t)length, TICKS_PER_SECOND, &position);
    if (rc == TATCELL_ERR_SYNTAX || rc == TATCELL_ERR_TOO_LARGE) {
        PyErr_Format(PyExc_ValueError, "limit '%U': %s, at character %zu", limit,
            rc == TATCELL_ERR_SYNTAX ? wrong_at(text, (size_t)length, position)
                                     : "the number is too large for 64 bits",
            position + 1);
        return false;
    }
    if (rc < 0) return fail_limit(rc, limit) != NULL;
    if (spec->algorithm == TATCELL_ALGORITHM_GCRA || spec->burst == spec->units) return true;
    if (strstr(text, "burst"))
        PyErr_Format(PyExc_ValueError,
            "limit '%U': only 'gcra' has a burst: leave it out, all units may come at once", limit);
    else
        PyErr_Format(PyExc_ValueError,
            "limit '%U': only 'gcra' counts parts of a unit: write whole units, such as '3/2s' for '1.5/s'", limit);
    return false;
}

PyObject *spec_text(const tatcell_limit_spec_t *spec) {
    unsigned long long ns = spec->period, second = TICKS_PER_SECOND;
    bool whole = ns % second == 0;
    return PyUnicode_FromFormat("%llu/%llu%s burst %llu", (unsigned long long)spec->units, whole ? ns / second : ns,
        whole ? "s" : "ns", (unsigned long long)spec->burst);
}

PyObject *verdict(int32_t code) {
    if (code < 0) return fail(code, 0, "tatcell");
    return PyBool_FromLong(code == TATCELL_PASS);
}
