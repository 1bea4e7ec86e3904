#!/usr/bin/env python3
"""Loads tatcell.ffi.h as it is: in Python's cffi, and, as types worked out from it, in ctypes.

Usage: foreign.py LIBRARY. Prints TAP, a line for each claim."""
import ctypes
import re
import sys

TEXT = open("include/tatcell.ffi.h", encoding="utf-8").read()
LIBRARY = sys.argv[1]
FOREVER = 2**64 - 1
claims = failures = 0


def claim(name, test):
    global claims, failures
    claims += 1
    try:
        missing = test()
        print(f"ok {claims} - foreign: {name}" + (f" # SKIP {missing}" if missing else ""), flush=True)
    except Exception as problem:
        failures += 1
        print(f"not ok {claims} - foreign: {name}\n# {type(problem).__name__}: {problem}", flush=True)


def equal(got, want):
    if got != want:
        raise AssertionError(f"{got!r} is not {want!r}")


def header_is_plain():
    """No preprocessor, no attribute, no assert, one comment."""
    for word in ("#", "__attribute__", "_Static_assert", "TATCELL_API", "TATCELL_ALIGNED", "TATCELL_NODISCARD", "//"):
        if word in TEXT:
            raise AssertionError(f"{word} in tatcell.ffi.h")
    equal(TEXT.count("/*"), 1)


def functions_are_those_of_the_export_list():
    listed = re.findall(r"^    (tatcell_\w+);", open("include/tatcell.map", encoding="utf-8").read(), re.M)
    equal(sorted(set(re.findall(r"^\w.*?\b(tatcell_\w+)\(", TEXT, re.M)) ^ set(listed)), [])


def constants_are_those_of_the_header():
    enum = dict(re.findall(r"^    (TATCELL_\w+) = (-?\d+),?$", TEXT, re.M))
    both = open("include/tatcell.h", encoding="utf-8").read() + open("include/tatcell_host.h", encoding="utf-8").read()
    defined = dict(re.findall(r"^#define (TATCELL_\w+) \(?(-?\d+)\)?$", both, re.M))
    equal(sorted(set(enum.items()) ^ set(defined.items())), [])


def program(limit_init, check, retry, strerror):
    """The cell program of the header, and a clock beyond 32 bits."""
    equal(limit_init(), 0)
    equal([check(0) for _ in range(6)], [0, 0, 0, 0, 0, 1])
    equal(retry(), 10**9)
    equal(strerror(1), b"does not conform now")
    equal(check(2**40), 0)


def cffi_decides():
    try:
        import cffi
    except ImportError:
        return "cffi is not installed (apt-get install python3-cffi)"
    ffi = cffi.FFI()
    ffi.cdef(TEXT)
    lib = ffi.dlopen(LIBRARY)
    equal(lib.TATCELL_ERR_NULL, -1)
    equal(lib.tatcell_abi_version(), lib.TATCELL_ABI_VERSION)
    for name in ("cell", "cell32", "limit", "lease", "permit", "counters", "slot", "meter", "meter_params"):
        equal(getattr(lib, f"tatcell_{name}_size")(), ffi.sizeof(f"tatcell_{name}_t"))
    equal(lib.tatcell_table_handle_size(), ffi.sizeof("tatcell_table_t"))
    equal(lib.tatcell_skew_none(), FOREVER)
    cell, limit, retry = ffi.new("tatcell_cell_t *"), ffi.new("tatcell_limit_t *"), ffi.new("uint64_t *")
    program(lambda: lib.tatcell_limit_init(limit, 1, 10**9, 5),
            lambda now: lib.tatcell_cell_check(cell, limit, now, 1, retry), lambda: retry[0],
            lambda code: ffi.string(lib.tatcell_strerror(code)))
    # A lease in memory of cffi's own alignment, a thousand times.
    for _ in range(1000):
        equal(lib.tatcell_lease_check(ffi.new("tatcell_lease_t *"), cell, limit, 2**41, 0, ffi.NULL), 0)
    # A structure that is zeroed and has its size is its initialiser.
    spec, options = ffi.new("tatcell_limit_spec_t *"), ffi.new("tatcell_table_options_t *")
    spec.size, spec.units, spec.period, spec.burst = ffi.sizeof("tatcell_limit_spec_t"), 10, 10**9, 3
    seed = ffi.new("uint8_t[16]", b"not so secret 16")
    options.size, options.fastest, options.seed = ffi.sizeof("tatcell_table_options_t"), spec, seed
    size = lib.tatcell_table_bytes(1000)
    memory = ffi.new("char[]", size + 64)
    start = memory + (-int(ffi.cast("uintptr_t", memory))) % lib.TATCELL_TABLE_MEMORY_ALIGN
    table = ffi.new("tatcell_table_t *")
    equal(lib.tatcell_table_init(table, start, size, options), 0)
    equal(lib.tatcell_limit_init_table(limit, table, spec), 0)
    keys = ffi.new("char[]", b"abcdabcdabcdabcd")
    burst = ffi.new("tatcell_burst_t *")
    burst.size, burst.limit, burst.count = ffi.sizeof("tatcell_burst_t"), limit, 4
    burst.keys, burst.key_len, burst.stride = keys, 4, 4
    equal(lib.tatcell_table_check_burst(table, burst, ffi.NULL), 0)
    equal(getattr(burst, "pass"), 7)
    decision = ffi.new("tatcell_decision_t *")
    decision.size = ffi.sizeof("tatcell_decision_t")
    equal(lib.tatcell_table_peek(table, limit, 0, b"abcd", 4, 1, decision), lib.TATCELL_NON_CONFORMING)
    equal((decision.burst, decision.remaining, decision.retry_after), (3, 0, 10**8))


NUMBERS = {"uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64, "uint32_t": ctypes.c_uint32,
           "int32_t": ctypes.c_int32, "uint8_t": ctypes.c_uint8, "size_t": ctypes.c_size_t}


def ctypes_of():
    """Structures and functions from the text: every function gets argtypes, without which ctypes cuts 64 bits."""
    types = dict(NUMBERS)

    def parse(text):
        name = re.search(r"(\w+)(\[\d+\])?$", text).group(1)
        count = re.search(r"\[(\d+)\]$", text)
        base = re.sub(r"\bconst\b", "", text[:text.rindex(name)])
        stars, base = base.count("*"), base.replace("*", "").strip()
        if stars:
            kind = ctypes.c_char_p if base == "char" and stars == 1 else ctypes.c_void_p
        else:
            kind = types[base]
        return name, kind * int(count.group(1)) if count else kind

    for name, body in re.findall(r"typedef struct (\w+) \{\n(.*?)\n\} \1;", TEXT, re.S):
        fields = [parse(line.strip().rstrip(";")) for line in body.split("\n")]
        types[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    lib = ctypes.CDLL(LIBRARY)
    for result, name, arguments in re.findall(r"^([\w ]+?[ *]+)(tatcell_\w+)\(([^)]*)\);", TEXT, re.M):
        function = getattr(lib, name)
        function.restype = parse(result + " x")[1]
        function.argtypes = [parse(a.strip())[1] for a in re.split(r",\s*", arguments) if a != "void"]
    return types, lib


def ctypes_decides():
    types, lib = ctypes_of()
    for name in ("cell", "cell32", "limit", "lease", "permit", "counters", "slot", "meter", "meter_params"):
        equal(getattr(lib, f"tatcell_{name}_size")(), ctypes.sizeof(types[f"tatcell_{name}_t"]))
    cell, limit, retry = types["tatcell_cell_t"](), types["tatcell_limit_t"](), ctypes.c_uint64()
    program(lambda: lib.tatcell_limit_init(ctypes.byref(limit), 1, 10**9, 5),
            lambda now: lib.tatcell_cell_check(ctypes.byref(cell), ctypes.byref(limit), now, 1, ctypes.byref(retry)),
            lambda: retry.value, lib.tatcell_strerror)
    equal(cell.word > 2**40, True)
    for name in ("tatcell_limit_spec_t", "tatcell_decision_t", "tatcell_burst_t", "tatcell_table_options_t"):
        equal(ctypes.sizeof(types[name]) % 8, 0)
    decision = types["tatcell_decision_t"](size=ctypes.sizeof(types["tatcell_decision_t"]))
    equal(lib.tatcell_cell_peek(ctypes.byref(cell), ctypes.byref(limit), 2**40, 1, ctypes.byref(decision)), 0)
    equal((decision.cost, decision.burst, decision.remaining), (1, 5, 4))


claim("ffi_header_has_no_preprocessor_attribute_or_assert", header_is_plain)
claim("ffi_header_declares_the_export_list", functions_are_those_of_the_export_list)
claim("ffi_header_has_every_number_of_the_headers", constants_are_those_of_the_header)
claim("cffi_loads_the_header_and_decides", cffi_decides)
claim("ctypes_types_from_the_header_decide", ctypes_decides)
print(f"1..{claims}")
sys.exit(failures != 0)
