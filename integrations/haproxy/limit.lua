-- A converter for HAProxy: http-request set-var(txn.wait) src,ipmask(32,64),lua.tatcell
-- It returns 0 if a request passes, -1 if it passes without a verdict, and else the seconds to wait.
-- A converter is cheaper than an action: for an action HAProxy makes an object of the whole transaction.
-- SPDX-License-Identifier: MIT OR Apache-2.0
local tatcell = require "tatcell"

local limits = tatcell.new { name = "clients", rate = 10, burst = 20, slots = 65536 }
local refuse_undecided = false

-- No verdict: other threads won every attempt, or the source is not an address. Each thread logs it once a second,
-- because somebody should look at a limiter without verdicts.
local undecided, told = 0, 0
local function without_verdict(why)
    local now = core.now().sec
    undecided = undecided + 1
    if now ~= told then
        core.log(core.err, string.format("tatcell: %s: %s; %d so far in this thread", why,
                                         refuse_undecided and "refused" or "passed", undecided))
        told = now
    end
    return refuse_undecided and 1 or -1
end

-- A module that was built with the headers of HAProxy has a converter of C, which is as fast as a stick table.
if limits.converter then
    limits:converter("tatcell", refuse_undecided)
else
    core.register_converters("tatcell", function (key)
        local ok, retry_after = limits:check(key)
        if ok then
            return 0
        end
        if ok == nil then
            return without_verdict(retry_after)
        end
        return math.ceil(retry_after or 86400) -- nil: never, the cost is above the burst
    end)
end

-- http-request lua.tatcell_no_source unless { src -m found }: without a source HAProxy calls no converter.
core.register_action("tatcell_no_source", { "http-req" }, function (txn)
    txn:set_var("txn.wait", without_verdict("the source is not an address"))
end)
