-- Limits per client address for dnsdist, by tatcell.
-- SPDX-License-Identifier: MIT OR Apache-2.0
--
--   local tatcell = dofile("/usr/local/lib/dnsdist/tatcell.lua")
--   addAction(AllRule(), tatcell.limit { rate = 20, burst = 50, slip = 2 })
--
-- One table for all threads of dnsdist. It is made here, once; each thread has a Lua of its own without a lock
-- (LuaFFIPerThreadAction), in which dnsdist calls one function of tatcell_action.so for every question.

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
-- It stands next to this file.
local action = debug.getinfo(1, "S").source:match("^@(.*/)") .. "tatcell_action.so"

ffi.cdef(io.open(header):read("*a"))
local lib = ffi.load(library)

-- What an action asks and answers: as in action.c, which decides every question.
ffi.cdef [[
    typedef struct {
        const tatcell_ladder_t *ladder;
        const tatcell_limit_t *alone;
        const tatcell_table_t *limits;
        tatcell_sweeper_t *sweeper;
        tatcell_slip_t *slip;
        uint64_t *undecided;
        uint32_t every;
        int32_t pass, refuse, truncate, without_verdict;
    } tatcell_action_t;
]]

-- What every thread runs once: it gets the function that dnsdist calls.
local CODE = [[
    return assert(package.loadlib(%q, "tatcell_action"))(%q)
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

-- An address as text that another thread makes a pointer of.
local function pointer(object)
    return bit.tohex(ffi.cast("uint64_t", ffi.cast("uintptr_t", ffi.cast("void *", object))), 16)
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

local OPTIONS = { rate = true, burst = true, slip = true, undecided = true, slots = true, networks = true }

--- Makes an action: questions of an address pass while it and its networks conform.
-- rate, a number a second or a limit as text, and burst are those of one address; /24, /20, /18 of IPv4 and /64, /56,
-- /48, /32 of IPv6 have more.
-- networks = false: an address of IPv4 or a /64 of IPv6 alone has a limit.
-- undecided = "pass" or "refuse": what a question gets that gets no verdict.
-- slip = n: every n-th refused question of UDP is answered with TC=1, the others are dropped. 0: all are dropped.
function M.limit(options)
    for name in pairs(options) do
        if not OPTIONS[name] then
            error("tatcell: unknown option " .. tostring(name) .. ": use rate, burst, slip, undecided, slots, networks", 2)
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
    if options.networks ~= nil and type(options.networks) ~= "boolean" then
        error("tatcell: networks must be true or false, not " .. tostring(options.networks), 2)
    end
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
    local alone
    if options.networks == false then
        alone = ffi.new("tatcell_limit_t")
        must(lib.tatcell_limit_init_table(alone, limits, spec), "rate and burst")
    end

    local slip, counts, made = ffi.new("tatcell_slip_t"), ffi.new("uint64_t[1]"), ffi.new("tatcell_action_t")
    local sweeper = ffi.new("tatcell_sweeper_t")
    made.ladder, made.alone, made.limits, made.slip, made.undecided = ladder, alone, limits, slip, counts
    made.sweeper = sweeper
    made.every = number(options, "slip", 2, 0)
    made.pass, made.refuse, made.truncate = DNSAction.None, DNSAction.Drop, DNSAction.Truncate
    made.without_verdict = undecided == "refuse" and made.refuse or made.pass
    TATCELL_KEPT[#TATCELL_KEPT + 1] = { limits, ladder, made, slip, counts, sweeper, seed, memory, alone or false,
                                        counts = counts, told = 0 }

    -- Here, so that a module that does not load is an error of the configuration.
    local loads, why = package.loadlib(action, "tatcell_action")
    if not loads then
        error("tatcell: " .. why .. ": make tatcell_action.so, and copy it next to tatcell.lua", 2)
    end
    return LuaFFIPerThreadAction(CODE:format(action, pointer(made)))
end

return M
