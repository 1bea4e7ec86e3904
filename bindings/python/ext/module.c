/* module.c - the module tatcell._core.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "binding.h"

#include <arpa/inet.h>

/* An archive as cargo builds it names the handler of panics that unwind. Nothing calls it: no function panics. */
void rust_eh_personality(void);
__attribute__((weak)) void rust_eh_personality(void) {}

PyDoc_STRVAR(network_doc,
    "network($module, address, /, v4_bits=32, v6_bits=64)\n--\n\n"
    "The key of an address's network, as bytes: all addresses of it have one debt. An IPv4 address that is written as\n"
    "an IPv6 one is IPv4. Raises ValueError if the text is no address.");

static PyObject *network(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *kwlist[] = {"", "v4_bits", "v6_bits", NULL};
    PyObject *given, *v4 = NULL, *v6 = NULL;
    uint64_t v4_bits = 32, v6_bits = 64;
    unsigned char address[16], prefix[TATCELL_PREFIX_KEY_MAX];
    size_t length;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OO:network", kwlist, &given, &v4, &v6)) return NULL;
    if (!PyUnicode_Check(given)) return wrong_type("an address is str, such as '192.0.2.1'", given);
    Py_ssize_t text_length;
    const char *text = PyUnicode_AsUTF8AndSize(given, &text_length);
    if (!text) return NULL;
    if (v4 && !to_u64(v4, "v4_bits", 32, &v4_bits)) return NULL;
    if (v6 && !to_u64(v6, "v6_bits", 128, &v6_bits)) return NULL;
    size_t bytes = strlen(text) != (size_t)text_length        ? 0
        : inet_pton(AF_INET, text, address) == 1  ? 4
        : inet_pton(AF_INET6, text, address) == 1 ? 16
                                                  : 0;
    if (!bytes) return PyErr_Format(PyExc_ValueError, "'%U' is not an IPv4 or IPv6 address", given);
    int32_t rc = tatcell_address_prefix_key(address, bytes, (uint32_t)v4_bits, (uint32_t)v6_bits, prefix, &length);
    if (rc < 0) return fail(rc, 0, text);
    return PyBytes_FromStringAndSize((const char *)prefix, (Py_ssize_t)length);
}

static bool add(PyObject *module, PyType_Spec *spec, PyTypeObject **type) {
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *type && PyModule_AddType(module, *type) == 0;
}

static int module_exec(PyObject *module) {
    struct state *state = PyModule_GetState(module);
    if (tatcell_abi_version() != TATCELL_ABI_VERSION) {
        PyErr_Format(PyExc_ImportError, "the library has ABI %u, and the module was built for %u: build it anew",
            tatcell_abi_version(), TATCELL_ABI_VERSION);
        return -1;
    }
    bool done = add(module, &limiter_spec, &state->limiter) && add(module, &cell_spec, &state->cell) &&
        add(module, &chain_spec, &state->chain) && add(module, &decision_spec, &state->decision);
    return done ? 0 : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    struct state *state = PyModule_GetState(module);
    Py_VISIT(state->limiter);
    Py_VISIT(state->cell);
    Py_VISIT(state->chain);
    Py_VISIT(state->decision);
    Py_VISIT(state->addresses);
    return 0;
}
static int module_clear(PyObject *module) {
    struct state *state = PyModule_GetState(module);
    Py_CLEAR(state->limiter);
    Py_CLEAR(state->cell);
    Py_CLEAR(state->chain);
    Py_CLEAR(state->decision);
    Py_CLEAR(state->addresses);
    return 0;
}
static void module_free(void *module) { (void)module_clear(module); }

static PyMethodDef functions[] = {
    {"network", (PyCFunction)(void (*)(void))network, METH_VARARGS | METH_KEYWORDS, network_doc},
    {NULL, NULL, 0, NULL}};

/* The limited API of 3.11 does not name this slot, and 3.11 refuses it. */
#define MULTIPLE_INTERPRETERS 3
#define WITH_A_LOCK_OF_THEIR_OWN ((void *)2)
static PyModuleDef_Slot slots_3_11[] = {{Py_mod_exec, module_exec}, {0, NULL}};
static PyModuleDef_Slot slots_3_12[] = {
    {Py_mod_exec, module_exec}, {MULTIPLE_INTERPRETERS, WITH_A_LOCK_OF_THEIR_OWN}, {0, NULL}};
#define DEFINITION(slots)                                                                                              \
    {PyModuleDef_HEAD_INIT, "tatcell._core", "Rate limits per key, decided by libtatcell.", sizeof(struct state),      \
        functions, slots, module_traverse, module_clear, module_free}
static PyModuleDef definition_3_11 = DEFINITION(slots_3_11), definition_3_12 = DEFINITION(slots_3_12);

PyMODINIT_FUNC PyInit__core(void) {
    return PyModuleDef_Init(Py_Version >= 0x030C0000 ? &definition_3_12 : &definition_3_11);
}
