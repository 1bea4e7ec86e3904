-- resty.tatcell - limits per key in memory that all workers share.
-- SPDX-License-Identifier: MIT OR Apache-2.0
--
-- A `limits` object is a table of tatcell and the limits that keys of it have. Made in init_by_lua it is one for all
-- workers: its memory is a shared mapping that they inherit. Nothing here yields, locks or allocates shared memory on a
-- request. Times are seconds outside and nanoseconds of CLOCK_MONOTONIC inside.
--
-- Everything that the library keeps a pointer to is a field of the object: LuaJIT frees what nothing refers to.

local ffi = require "ffi"
local bit = require "bit"

local cdef = require "resty.tatcell.cdef"

local type, error, tonumber, tostring, setmetatable, pairs, ipairs, pcall, select =
    type, error, tonumber, tostring, setmetatable, pairs, ipairs, pcall, select
local floor, ceil = math.floor, math.ceil
local new, sizeof, str, cast = ffi.new, ffi.sizeof, ffi.string, ffi.cast

local NS = 1000000000

local _M = { _VERSION = "0.4.0-dev" }
local mt = { __index = _M }

ffi.cdef(cdef.text)

local lib = (function ()
    local tried = {}
    for _, name in ipairs { os.getenv("TATCELL_LIBRARY") or "libtatcell.so." .. cdef.abi, cdef.library } do
        local ok, found = pcall(ffi.load, name)
        if ok then
            return found
        end
        tried[#tried + 1] = tostring(found)
    end
    error("resty.tatcell: " .. table.concat(tried, "; ") ..
          ": run ldconfig, or set TATCELL_LIBRARY to the path of libtatcell.so")
end)()

if lib.tatcell_abi_version() ~= tonumber(cdef.abi) then
    error("resty.tatcell: the library has ABI " .. lib.tatcell_abi_version() .. ", the headers " .. cdef.abi ..
          ": install both from one release")
end

local POLICIES = { admit = 0, inherit = 1, deny = 2, sampled = 3 }
local TRACKING = { [0] = "tracked", "untracked", "inherited", "forgiven" }
local FIELDS = {
    { lib.TATCELL_HTTP_RATELIMIT_POLICY, "RateLimit-Policy" },
    { lib.TATCELL_HTTP_RATELIMIT, "RateLimit" },
    { lib.TATCELL_HTTP_RETRY_AFTER, "Retry-After" },
}
local NEVER = 0xffffffffffffffffULL

-- Boxes for results, one each for all calls: nothing yields between a call and the reading of its box.
local clock_box = new("uint64_t[1]")
local retry_box = new("uint64_t[1]")
local text_box = new("char[512]")
local position_box = new("size_t[1]")


local function sized(kind)
    local object = new(kind)
    object.size = sizeof(kind)
    return object
end


local function words(rc)
    return str(lib.tatcell_strerror(rc)) .. " (" .. str(lib.tatcell_strerror_name(rc)) .. ")"
end


local function now()
    lib.tatcell_host_clock(lib.TATCELL_HOST_CLOCK_MONOTONIC, clock_box, nil)
    return clock_box[0]
end


-- A request without a verdict is counted in its worker, and told once a second: what it gets, its caller says.
local function undecided(self)
    self.undecided = self.undecided + 1
    local at = now() / NS
    if ngx and ngx.log and at ~= self.told then
        self.told = at
        ngx.log(ngx.ERR, "resty.tatcell: ", self.name, ": no verdict, other workers won every attempt; ",
                self.undecided, " so far in this worker")
    end
end


local function seconds(ticks)
    return tonumber(ticks) / NS
end


-- A whole number above 0 of an option; level is where the caller's line is.
local function count(options, name, default)
    local n = options[name]
    if n == nil then
        n = default
    end
    if type(n) ~= "number" or n < 1 or n ~= floor(n) or n > 2 ^ 53 then
        return nil, name .. " must be a whole number above 0, not " .. tostring(n)
    end
    return n
end


-- The longest delay of each limit, in nanoseconds.
local MAX_DELAY = setmetatable({}, { __mode = "k" })
local LIMIT_OPTIONS = { "rate", "per", "burst", "max_delay", "max_debt", "shadow" }
local TABLE_OPTIONS = { "slots", "policy", "tag_bits", "name", "also", "keep" }


-- An option that there is not, as a misspelled one, and those that there are.
local function strange(options, ...)
    local known = {}
    for _, names in ipairs { ... } do
        for _, name in ipairs(names) do
            known[#known + 1], known[name] = name, true
        end
    end
    for name in pairs(options) do
        if not known[name] then
            return "unknown option " .. tostring(name) .. ": use " .. table.concat(known, ", ")
        end
    end
end


-- What a limit may say.
local function spec_of(options)
    if type(options) ~= "table" then
        return nil, "a limit must be a table: { rate = 100, burst = 20 }"
    end
    local text, per, delay, err = options.rate, options.per, options.max_delay or 0
    if type(text) ~= "string" then
        text, err = count(options, "rate")
        per = per or 1
        if not text then
            return nil, err
        end
        if type(per) ~= "number" or not (per > 0 and per < 1e9) then
            return nil, "per must be a number of seconds above 0, not " .. tostring(per)
        end
        text = string.format("%.0f/%.0fns", text, ceil(per * NS))
    elseif per then
        return nil, "per stands next to a rate that is text: write it into the text, as in \"5/15min\""
    end
    local spec = sized("tatcell_limit_spec_t")
    if lib.tatcell_limit_spec_parse(spec, text, #text, NS, position_box) ~= 0 then
        local at = tonumber(position_box[0])
        return nil, string.format("rate \"%s\" at byte %d, \"%s\": write a number, or text such as \"10/s burst 20\"",
                                  text, at, text:sub(at + 1))
    end
    local burst
    burst, err = count(options, "burst", tonumber(spec.burst))
    if not burst then
        return nil, err
    end
    if type(delay) ~= "number" or not (delay >= 0 and delay < 1e9) then
        return nil, "max_delay must be a number of seconds, not " .. tostring(delay)
    end
    spec.burst, spec.max_delay = burst, ceil(delay * NS)
    spec.max_debt = options.max_debt or 0
    if options.shadow then
        spec.flags = bit.bor(spec.flags, lib.TATCELL_LIMIT_SHADOW)
    end
    return spec
end


-- The interval of a limit and the longest debt that it makes, in nanoseconds.
local function extent(spec)
    local interval = tonumber(spec.period) / tonumber(spec.units)
    return interval, interval * (tonumber(spec.burst) + tonumber(spec.max_debt)) + tonumber(spec.max_delay)
end


-- The options of a table that all these limits can be used in.
local function geometry(self, specs)
    local fastest, slowest = specs[1], specs[1]
    for _, spec in ipairs(specs) do
        local interval, debt = extent(spec)
        local least = extent(fastest)
        local _, most = extent(slowest)
        if interval < least then
            fastest = spec
        end
        if debt > most then
            slowest = spec
        end
    end
    local options = sized("tatcell_table_options_t")
    options.fastest, options.slowest, options.seed = fastest, slowest, self.seed
    options.policy, options.tag_bits, options.tick_hz = self.policy, self.tag_bits, NS
    options.hash = lib.tatcell_hash_available(lib.TATCELL_HASH_AES) == 0 and lib.TATCELL_HASH_AES
        or lib.TATCELL_HASH_SIPHASH13
    self.kept = { fastest, slowest, options }
    return options
end


local function map(bytes)
    local memory = sized("tatcell_host_memory_t")
    local rc = lib.tatcell_host_memory_map(bytes, lib.TATCELL_HOST_FORK_SHARED, memory)
    if rc ~= 0 then
        return nil, "no memory for " .. tonumber(bytes) .. " bytes: " .. words(rc)
    end
    return memory
end


-- The bytes of a table, which are whole sets of 128, and of a line behind it, for what the library keeps of its sweeps.
local function with_sweeps(bytes)
    return tonumber(bytes) + 64
end


-- What a shared dictionary knows of the memory of before: "ADDRESS BYTES SEED". A dictionary lives as long as the
-- master process and those that it forks, and so do a shared mapping and its address.
local function recall(keep, name)
    local text = keep and keep:get("tatcell:" .. name)
    if not text then
        return nil
    end
    local address, bytes, seed = text:match("^(%x+) (%d+) (.*)$")
    if not address or #seed ~= 16 then
        return nil
    end
    return cast("void *", cast("uintptr_t", tonumber(address, 16))), tonumber(bytes), seed
end


local function remember(self, keep, name)
    if not keep then
        return true
    end
    local address = string.format("%x", tonumber(cast("uintptr_t", self.memory)))
    local ok, err = keep:set("tatcell:" .. name, address .. " " .. with_sweeps(self.bytes) .. " " .. str(self.seed, 16))
    if not ok then
        return nil, "the dictionary of keep cannot store the table: " .. tostring(err)
    end
    return true
end


-- Attaches to the memory of before the reload, or moves its debts to new memory where it does not fit any more.
local function take_over(self, options, memory, bytes)
    local attach = sized("tatcell_attach_options_t")
    attach.seed, attach.tick_hz = self.seed, NS
    local old = new("tatcell_table_t")
    -- The line behind the table is missing if an older version made it.
    local rc = lib.tatcell_table_attach(old, memory, bytes - bytes % 128, attach)
    if rc ~= 0 then
        return nil, "the table from before the reload: " .. words(rc)
    end
    local info = sized("tatcell_table_info_t")
    lib.tatcell_table_info(old, info)
    local fits = bytes == with_sweeps(self.bytes) and info.policy == self.policy and info.tag_bits == self.tag_bits
    local limit = new("tatcell_limit_t")
    for _, spec in ipairs(self.specs) do
        fits = fits and lib.tatcell_limit_init_table(limit, old, spec) == 0
    end
    if fits then
        self.table, self.memory = old, memory
        return "kept"
    end
    local mapped, err = map(with_sweeps(self.bytes))
    if not mapped then
        return nil, err
    end
    if bytes % 128 ~= 0 then
        -- After a silence an old debt would move, and count once more.
        local sweeper = cast("tatcell_sweeper_t *", cast("char *", memory) + (bytes - bytes % 128))
        lib.tatcell_table_sweep_due(old, sweeper, now())
    end
    local moved = sized("tatcell_migrated_t")
    self.table, self.memory = new("tatcell_table_t"), mapped.memory
    rc = lib.tatcell_table_migrate(self.table, mapped.memory, self.bytes, options, old, now(), moved)
    if rc ~= 0 then
        return nil, "the table from before the reload cannot be moved: " .. words(rc)
    end
    self.old = { old, memory }
    return "moved"
end


--- Makes a table and its limit. Called in init_by_lua, it is one for all workers.
-- Returns the object and "made", "kept" or "moved"; or nil and what is wrong.
function _M.new(options)
    local unknown = type(options) == "table" and strange(options, LIMIT_OPTIONS, TABLE_OPTIONS)
    if unknown then
        return nil, "resty.tatcell: " .. unknown
    end
    local spec, err = spec_of(options)
    if not spec then
        return nil, "resty.tatcell: " .. err
    end
    local slots
    slots, err = count(options, "slots", 65536)
    if not slots then
        return nil, "resty.tatcell: " .. err
    end
    local policy = POLICIES[options.policy or "admit"]
    if not policy then
        return nil, "resty.tatcell: policy must be admit, inherit, deny or sampled, not " .. tostring(options.policy)
    end
    local tag_bits = options.tag_bits or 20
    if type(tag_bits) ~= "number" or tag_bits < 12 or tag_bits > 24 then
        return nil, "resty.tatcell: tag_bits must be 12 to 24, not " .. tostring(tag_bits)
    end
    local name = options.name or "limit"
    if type(name) ~= "string" or name:find("[^\32-\126]") or #name > 200 then
        return nil, "resty.tatcell: name must be printable text of at most 200 bytes"
    end

    if options.keep and not (ngx and ngx.get_phase() == "init") then
        return nil, "resty.tatcell: keep works only in init_by_lua, whose memory all workers share"
    end

    local self = setmetatable({ undecided = 0, told = -1ULL, name = name, policy = policy, tag_bits = tag_bits, seed = new("uint8_t[16]"),
                                specs = { spec } }, mt)
    self.bytes = lib.tatcell_table_bytes(slots)
    for i, other in ipairs(options.also or {}) do
        self.specs[i + 1], err = spec_of(other)
        local strange_one = type(other) == "table" and strange(other, LIMIT_OPTIONS)
        if strange_one or not self.specs[i + 1] then
            return nil, "resty.tatcell: also: " .. (strange_one or err)
        end
    end

    local memory, bytes, seed = recall(options.keep, name)
    if memory then
        ffi.copy(self.seed, seed, 16)
    else
        local rc = lib.tatcell_host_random(self.seed, 16, nil)
        if rc ~= 0 then
            return nil, "resty.tatcell: the system has no secret bytes: " .. words(rc)
        end
    end
    local table_options = geometry(self, self.specs)

    local how = "made"
    if memory then
        how, err = take_over(self, table_options, memory, bytes)
        if not how then
            return nil, "resty.tatcell: " .. err
        end
    else
        local mapped
        mapped, err = map(with_sweeps(self.bytes))
        if not mapped then
            return nil, "resty.tatcell: " .. err
        end
        self.memory, self.table = mapped.memory, new("tatcell_table_t")
        local rc = lib.tatcell_table_init(self.table, self.memory, self.bytes, table_options)
        if rc == lib.TATCELL_ERR_SPAN then
            return nil, "resty.tatcell: the limits do not fit one word: use a smaller burst, max_delay or tag_bits"
        end
        if rc ~= 0 then
            return nil, "resty.tatcell: " .. words(rc)
        end
    end

    self.sweeper = cast("tatcell_sweeper_t *", cast("char *", self.memory) + self.bytes)
    -- Its sweeps begin here. If they began with the first request, debts that moved could count once more.
    lib.tatcell_table_sweep_due(self.table, self.sweeper, now())

    self.default, err = self:limit(options)
    if not self.default then
        return nil, err
    end
    local ok
    ok, err = remember(self, options.keep, name)
    if not ok then
        return nil, "resty.tatcell: " .. err
    end
    self.counters = new("tatcell_counters_t")
    return self, how
end


--- Makes another limit for keys of this table: for a plan, or an account.
function _M.limit(self, options)
    local spec, err = spec_of(options)
    err = err or strange(options, LIMIT_OPTIONS, TABLE_OPTIONS)
    if err then
        return nil, "resty.tatcell: " .. err
    end
    local limit = new("tatcell_limit_t")
    local rc = lib.tatcell_limit_init_table(limit, self.table, spec)
    MAX_DELAY[limit] = spec.max_delay
    if rc ~= 0 then
        return nil, "resty.tatcell: " .. words(rc) .. ": name the limit in also = { ... } of new"
    end
    return limit
end


-- The arguments of a request: units, or an error.
local function units(key, cost)
    if type(key) ~= "string" then
        error("resty.tatcell: a key must be a string, not a " .. type(key), 3)
    end
    if cost == nil then
        return 1
    end
    if type(cost) ~= "number" or not (cost >= 0 and cost <= 2 ^ 53) then
        error("resty.tatcell: a cost must be a number of units, not " .. tostring(cost), 3)
    end
    return ceil(cost)
end


-- Reads the clock, and sweeps what is due by then: words would wrap, and old debts count once more.
local function due(self)
    local at = now()
    lib.tatcell_table_sweep_due(self.table, self.sweeper, at)
    return at
end


--- Decides a request. Returns true; or false and the seconds until it passes; or false and nil where it never can;
-- or nil and "contended", where there is no verdict.
function _M.check(self, key, cost, limit)
    cost = units(key, cost)
    local rc = lib.tatcell_table_check(self.table, limit or self.default, due(self), key, #key, cost, retry_box)
    if rc == 0 then
        return true
    end
    if rc == 1 then
        return false, tonumber(retry_box[0]) / NS
    end
    if rc == 2 then
        return false, nil
    end
    if rc == 3 then
        undecided(self)
        return nil, "contended"
    end
    error("resty.tatcell: " .. words(rc), 2)
end


local function told(decision, at)
    local retry = decision.retry_after
    return {
        cdata = decision,
        allowed = decision.verdict == 0,
        never = decision.verdict == 2,
        contended = decision.verdict == 3,
        cost = tonumber(decision.cost),
        burst = tonumber(decision.burst),
        remaining = tonumber(decision.remaining),
        retry_after = retry ~= NEVER and seconds(retry) or nil,
        reset_after = seconds(decision.reset_after),
        next_unit = seconds(decision.next_unit),
        delay = decision.departure > at and seconds(decision.departure - at) or 0,
        tracking = TRACKING[decision.tracking],
        shadow = bit.band(decision.flags, lib.TATCELL_FLAG_SHADOW) ~= 0,
    }
end


--- Decides a request with the full answer: a table, see the documentation.
function _M.decide(self, key, cost, limit)
    cost = units(key, cost)
    local decision, at = sized("tatcell_decision_t"), due(self)
    limit = limit or self.default
    local rc = lib.tatcell_table_check_ex(self.table, limit, at, key, #key, cost, 0, decision, self.counters)
    if rc < 0 then
        error("resty.tatcell: " .. words(rc), 2)
    end
    if rc == 3 then
        undecided(self)
    end
    local answer = told(decision, at)
    answer.limit = limit
    return answer
end


--- Tells what a request would be answered, and charges nothing.
function _M.peek(self, key, cost, limit)
    cost = units(key, cost)
    local decision, at = sized("tatcell_decision_t"), due(self)
    limit = limit or self.default
    local rc = lib.tatcell_table_peek(self.table, limit, at, key, #key, cost, decision)
    if rc < 0 then
        error("resty.tatcell: " .. words(rc), 2)
    end
    local answer = told(decision, at)
    answer.limit = limit
    return answer
end


--- As incoming of resty.limit.req: the seconds to wait and what is left, or nil and "rejected". Without commit it
-- answers the same and charges nothing.
function _M.incoming(self, key, commit, cost, limit)
    cost = units(key, cost)
    local decision, at = sized("tatcell_decision_t"), due(self)
    limit = limit or self.default
    local rc, delay
    if commit then
        rc = lib.tatcell_table_reserve_ex(self.table, limit, at, key, #key, cost, decision, self.counters)
        delay = decision.departure > at and decision.departure - at or 0
    else
        -- A reservation would leave when the request conforms.
        rc = lib.tatcell_table_peek(self.table, limit, at, key, #key, cost, decision)
        delay = rc == 1 and decision.retry_after or 0
        if rc == 1 and delay <= MAX_DELAY[limit] then
            rc = 0
        end
    end
    if rc == 0 then
        return seconds(delay), tonumber(decision.remaining)
    end
    if rc == 1 or rc == 2 then
        return nil, "rejected"
    end
    if rc == 3 then
        undecided(self)
        return nil, "contended"
    end
    error("resty.tatcell: " .. words(rc), 2)
end


--- Gives back what a decision charged and what has not drained since. Returns the seconds of debt given back.
function _M.refund(self, key, answer, limit)
    units(key)
    local decision = type(answer) == "table" and answer.cdata or answer
    local rc = lib.tatcell_table_refund(self.table, limit or answer.limit or self.default, due(self), key, #key,
                                        decision.permit, retry_box)
    if rc == 3 then
        return nil, "contended"
    end
    if rc ~= 0 then
        error("resty.tatcell: " .. words(rc), 2)
    end
    return seconds(retry_box[0])
end


--- Makes a key full again.
function _M.reset(self, key)
    units(key)
    local rc = lib.tatcell_table_reset(self.table, due(self), key, #key)
    return rc == 0, rc ~= 0 and words(rc) or nil
end


--- Decides a request under several limits: all are charged, or none. Arguments are { limits, key, cost, limit } each.
-- Returns the answer of the one that decided, and its number.
function _M.all(...)
    local n, at = select("#", ...), now()
    local links, chain = new("tatcell_link_t[?]", n), sized("tatcell_chain_t")
    for i = 1, n do
        local link = select(i, ...)
        local limits, key = link[1], link[2]
        lib.tatcell_table_sweep_due(limits.table, limits.sweeper, at)
        links[i - 1].size, links[i - 1].cost = sizeof("tatcell_link_t"), units(key, link[3])
        links[i - 1].table, links[i - 1].limit = limits.table, link[4] or limits.default
        links[i - 1].key, links[i - 1].key_len = key, #key
    end
    chain.count, chain.links, chain.link_size = n, links, sizeof("tatcell_link_t")
    local decision = sized("tatcell_decision_t")
    local rc = lib.tatcell_chain_check(chain, at, decision)
    if rc < 0 then
        error("resty.tatcell: " .. words(rc), 2)
    end
    local number = decision.policy + 1
    local link = select(number, ...)
    local answer = told(decision, at)
    if rc == 3 then
        undecided(link[1])
    end
    answer.limit, answer.limits = link[4] or link[1].default, link[1]
    return answer, number
end


--- The fields of a response for a decision: name to value.
function _M.fields(self, answer)
    local limits = answer.limits or self
    local policy = sized("tatcell_http_policy_t")
    policy.name, policy.limit, policy.decision = limits.name, answer.limit, answer.cdata
    local found = {}
    for _, field in ipairs(FIELDS) do
        local length = lib.tatcell_http_value(policy, 1, NS, field[1], text_box, sizeof(text_box))
        if length > 0 and length < sizeof(text_box) then
            found[field[2]] = str(text_box, length)
        end
    end
    return found
end


--- Sets the fields of the response that is being made, before its body is sent.
function _M.set_headers(self, answer)
    for name, value in pairs(self:fields(answer)) do
        ngx.header[name] = value
    end
end


--- Numbers of the table; reads all of it.
function _M.stats(self)
    local stats = sized("tatcell_stats_t")
    local rc = lib.tatcell_table_stats(self.table, due(self), stats)
    if rc ~= 0 then
        return nil, words(rc)
    end
    return { slots = tonumber(stats.slots), live = tonumber(stats.live), load = stats.load_ppm / 1e6,
             undecided = self.undecided }
end


--- Empties slots that expired, from a slot number; returns where to go on. Requests do so by themselves.
function _M.sweep(self, from, slots)
    local next_box = new("uint64_t[1]")
    lib.tatcell_table_sweep(self.table, now(), from or 0, slots or 4096, next_box)
    return tonumber(next_box[0])
end


return _M
