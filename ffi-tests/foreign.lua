-- Loads tatcell.ffi.h as it is into LuaJIT: foreign.lua LIBRARY. Prints TAP.
local ffi = require("ffi")
local file = assert(io.open("include/tatcell.ffi.h"))
ffi.cdef(file:read("*a"))
file:close()
local lib = ffi.load(arg[1])

local function decides()
    assert(lib.TATCELL_ERR_NULL == -1 and lib.tatcell_abi_version() == lib.TATCELL_ABI_VERSION)
    for _, name in ipairs({"cell", "cell32", "limit", "lease", "permit", "counters", "slot"}) do
        assert(lib["tatcell_" .. name .. "_size"]() == ffi.sizeof("tatcell_" .. name .. "_t"), name)
    end
    local cell, limit, retry = ffi.new("tatcell_cell_t"), ffi.new("tatcell_limit_t"), ffi.new("uint64_t[1]")
    assert(lib.tatcell_limit_init(limit, 1, 1000000000, 5) == 0)
    for i = 1, 6 do
        assert(lib.tatcell_cell_check(cell, limit, 0, 1, retry) == (i < 6 and 0 or lib.TATCELL_NON_CONFORMING))
    end
    assert(retry[0] == 1000000000ULL)
    assert(lib.tatcell_cell_check(cell, limit, 0x10000000000ULL, 1, retry) == 0)
    assert(cell.word > 0x10000000000ULL)
    assert(ffi.string(lib.tatcell_strerror_name(-1)) == "TATCELL_ERR_NULL")
    assert(lib.tatcell_skew_none() == -1ULL)
    local spec = ffi.new("tatcell_limit_spec_t", {size = ffi.sizeof("tatcell_limit_spec_t")})
    spec.units, spec.period, spec.burst = 10, 1000000000, 3
    assert(lib.tatcell_limit_init_spec(limit, spec) == 0)
end

local ok, problem = pcall(decides)
print((ok and "ok" or "not ok") .. " 1 - luajit: luajit_loads_the_header_and_decides")
if not ok then print("# " .. tostring(problem)) end
print("1..1")
os.exit(ok and 0 or 1)
