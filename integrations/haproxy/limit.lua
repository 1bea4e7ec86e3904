-- An action for HAProxy: http-request lua.tatcell. Sets txn.tatcell_refused and txn.tatcell_retry_after (seconds), and
-- txn.tatcell_undecided where there was no verdict: other threads won every attempt, or the source is no address.
-- SPDX-License-Identifier: MIT OR Apache-2.0
local tatcell = require "tatcell"

local limits = tatcell.new { name = "clients", rate = 10, burst = 20, slots = 65536 }
local refuse_undecided = false

-- Once a second and thread: a limiter without verdicts is something to look at.
local undecided, told = 0, 0
local function tell(why)
    local now = core.now().sec
    undecided = undecided + 1
    if now ~= told then
        core.log(core.err, string.format("tatcell: %s: %s; %d so far in this thread", why,
                                         refuse_undecided and "refused" or "passed", undecided))
        told = now
    end
end

core.register_action("tatcell", { "http-req" }, function (txn)
    local key = txn.f:src()
    local ok, retry_after
    if key then
        ok, retry_after = limits:check(key)
    else
        retry_after = "the source is no address"
    end
    if ok == nil then
        tell(retry_after)
    end
    txn:set_var("txn.tatcell_undecided", ok == nil)
    txn:set_var("txn.tatcell_refused", ok == false or ok == nil and refuse_undecided)
    if retry_after and ok == false then
        txn:set_var("txn.tatcell_retry_after", math.ceil(retry_after))
    end
end)
