-- A converter for HAProxy: http-request set-var(txn.wait) src,ipmask(32,64),lua.tatcell
-- It gives 0 where a request passes, else the seconds to wait, and -1 where there was no verdict and it passes.
-- A converter, and no action: for an action HAProxy makes an object of the whole transaction.
-- SPDX-License-Identifier: MIT OR Apache-2.0
local tatcell = require "tatcell"

local limits = tatcell.new { name = "clients", rate = 10, burst = 20, slots = 65536 }
local refuse_undecided = false

-- Without a verdict: other threads won every attempt, or the source is no address. Told once a second and thread: a
-- limiter without verdicts is something to look at.
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

core.register_converters("tatcell", function (key)
    local ok, retry_after = limits:check(key)
    if ok then
        return 0
    end
    if ok == nil then
        return without_verdict(retry_after)
    end
    return math.ceil(retry_after or 86400) -- nil: never, as a cost above the burst
end)

-- http-request lua.tatcell_no_source unless { src -m found }: HAProxy calls no converter for what is not there.
core.register_action("tatcell_no_source", { "http-req" }, function (txn)
    txn:set_var("txn.wait", without_verdict("the source is no address"))
end)
