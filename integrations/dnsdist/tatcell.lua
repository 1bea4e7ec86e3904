-- Limits per client address for dnsdist, by tatcell.
-- SPDX-License-Identifier: MIT OR Apache-2.0
--
--   local tatcell = dofile("/etc/dnsdist/tatcell.lua")
--   addAction(AllRule(), tatcell.limit { rate = 20, burst = 50, slip = 2 })
--
-- One table for all threads of dnsdist. It is made here, once; each thread has a Lua of its own without a lock
-- (LuaFFIPerThreadAction) and is given the addresses of the table, the ladder and the counter of refusals.

local ffi = require "ffi"

local M = {}

-- The threads have addresses of these and nothing that Lua sees: a global keeps them for as long as dnsdist runs.
TATCELL_KEPT = TATCELL_KEPT or {}

local prefixes = { os.getenv("TATCELL_PREFIX") or "/usr/local", "/usr" }

local function find(name)
    for _, prefix in ipairs(prefixes) do
        local file = io.open(prefix .. name)
        if file then
            file:close()
            return prefix .. name
        end
    end
    error("tatcell: " .. name .. " is not in " .. table.concat(prefixes, " or ") ..
          ": install the library, or set TATCELL_PREFIX")
end

local header = find("/include/tatcell.ffi.h")
local library = find("/lib/libtatcell.so.1")

ffi.cdef(io.open(header):read("*a"))
local lib = ffi.load(library)

-- What every thread runs for every question. The ladder asks for the address and its networks at once.
local CODE = [[
    local ffi = require "ffi"
    ffi.cdef(io.open(%q):read("*a"))
    local lib = ffi.load(%q)
    local ladder = ffi.cast("const tatcell_ladder_t *", %s)
    local limits = ffi.cast("const tatcell_table_t *", %s)
    local slip = ffi.cast("tatcell_slip_t *", %s)
    local counts = ffi.cast("uint64_t *", %s)
    local every, refuse_undecided = %d, %s
    local address, length = ffi.new("const void *[1]"), ffi.new("size_t[1]")
    local now = ffi.new("uint64_t[1]")
    local answer, refuse, truncate = %d, %d, %d

    -- LuaJIT compiles no pointer that C hands a callback: it need not try, and nothing is looked up again.
    jit.off()
    local source, clock = ffi.C.dnsdist_ffi_dnsquestion_get_remoteaddr, lib.tatcell_host_clock
    local check = lib.tatcell_ladder_check

    return function (dq)
        source(dq, address, length)
        clock(0, now, nil)
        local verdict = check(ladder, limits, now[0], address[0], length[0], 1, nil, nil, nil)
        if verdict == 0 then
            return answer
        end
        if verdict < 0 or verdict == 3 then
            -- Threads may lose a count to one another.
            counts[0] = counts[0] + 1
            return refuse_undecided and refuse or answer
        end
        if every > 0 and not ffi.C.dnsdist_ffi_dnsquestion_get_tcp(dq)
           and lib.tatcell_slip_check(slip, every) == 0 then
            return truncate
        end
        return refuse
    end
]]

local function must(rc, what)
    if rc ~= 0 then
        error("tatcell: " .. what .. ": " .. ffi.string(lib.tatcell_strerror(rc)) .. " (" ..
              ffi.string(lib.tatcell_strerror_name(rc)) .. ")", 3)
    end
end

local function sized(kind)
    local object = ffi.new(kind)
    object.size = ffi.sizeof(kind)
    return object
end

local function number(options, name, default, least)
    local n = options[name]
    if n == nil then
        n = default
    end
    if type(n) ~= "number" or n < least or n ~= math.floor(n) then
        error("tatcell: " .. name .. " must be a whole number of at least " .. least .. ", not " .. tostring(n), 3)
    end
    return n
end

-- An address as text that Lua of another thread makes a pointer of.
local function pointer(object)
    return "0x" .. bit.tohex(ffi.cast("uint64_t", ffi.cast("uintptr_t", ffi.cast("void *", object))), 16) .. "ULL"
end

--- Questions without a verdict since dnsdist started, of all actions together.
function M.undecided()
    local sum = 0
    for _, kept in ipairs(TATCELL_KEPT) do
        sum = sum + tonumber(kept.counts[0])
    end
    return sum
end

-- dnsdist calls maintenance once a second: a line of the log where there were questions without a verdict.
-- A configuration that has a maintenance of its own calls TATCELL_TELL in it.
function TATCELL_TELL()
    for _, kept in ipairs(TATCELL_KEPT) do
        local so_far = tonumber(kept.counts[0])
        if so_far ~= kept.told then
            errlog("tatcell: " .. (so_far - kept.told) .. " questions got no verdict")
            kept.told = so_far
        end
    end
end
local maintenance_before = maintenance
function maintenance()
    if maintenance_before then
        maintenance_before()
    end
    TATCELL_TELL()
end

local OPTIONS = { rate = true, burst = true, slip = true, undecided = true, slots = true }

--- Makes an action: questions of an address pass while it and its networks conform.
-- rate, a number a second or a limit as text, and burst are those of one address; /24, /20, /18 of IPv4 and /64, /56,
-- /48, /32 of IPv6 have more.
-- undecided = "pass" or "refuse": what a question gets that gets no verdict.
-- slip = n: every n-th refused question of UDP is answered with TC=1, the others are dropped. 0: all are dropped.
function M.limit(options)
    for name in pairs(options) do
        if not OPTIONS[name] then
            error("tatcell: unknown option " .. tostring(name) .. ": use rate, burst, slip, undecided, slots", 2)
        end
    end
    local spec, fastest, slowest =
        sized("tatcell_limit_spec_t"), sized("tatcell_limit_spec_t"), sized("tatcell_limit_spec_t")
    local text, at = options.rate, ffi.new("size_t[1]")
    if type(text) ~= "string" then
        text = string.format("%.0f/s", number(options, "rate", nil, 1))
    end
    if lib.tatcell_limit_spec_parse(spec, text, #text, 1000000000, at) ~= 0 then
        local wrong = tonumber(at[0])
        error(("tatcell: rate = \"%s\" at byte %d, \"%s\": write a number a second, or \"20/s burst 50\"")
              :format(text, wrong, text:sub(wrong + 1)), 2)
    end
    spec.burst = number(options, "burst", tonumber(spec.burst), 1)
    must(lib.tatcell_ladder_table_specs(spec, nil, fastest, slowest), "rate and burst")

    local undecided = options.undecided or "pass"
    if undecided ~= "pass" and undecided ~= "refuse" then
        error("tatcell: undecided must be \"pass\" or \"refuse\", not " .. tostring(undecided), 2)
    end

    local seed = ffi.new("uint8_t[16]")
    must(lib.tatcell_host_random(seed, 16, nil), "secret bytes")

    local memory = sized("tatcell_host_memory_t")
    local bytes = lib.tatcell_table_bytes(number(options, "slots", 1048576, 16))
    must(lib.tatcell_host_memory_map(bytes, 0, memory), "memory for slots")

    local table_options = sized("tatcell_table_options_t")
    table_options.fastest, table_options.slowest, table_options.seed = fastest, slowest, seed
    if lib.tatcell_hash_available(lib.TATCELL_HASH_AES) == 0 then
        table_options.hash = lib.TATCELL_HASH_AES
    end

    local limits, ladder = ffi.new("tatcell_table_t"), ffi.new("tatcell_ladder_t")
    local rc = lib.tatcell_table_init(limits, memory.memory, bytes, table_options)
    if rc == lib.TATCELL_ERR_SPAN then
        error("tatcell: rate = " .. tostring(options.rate) .. " and its burst do not fit one word: use smaller ones", 2)
    end
    must(rc, "table")
    must(lib.tatcell_ladder_init(ladder, limits, spec, nil), "ladder")

    local slip, counts = ffi.new("tatcell_slip_t"), ffi.new("uint64_t[1]")
    TATCELL_KEPT[#TATCELL_KEPT + 1] = { limits, ladder, slip, counts, seed, memory, counts = counts, told = 0 }

    return LuaFFIPerThreadAction(CODE:format(header, library, pointer(ladder), pointer(limits), pointer(slip),
                                             pointer(counts), number(options, "slip", 2, 0),
                                             tostring(undecided == "refuse"),
                                             DNSAction.None, DNSAction.Drop, DNSAction.Truncate))
end

return M
