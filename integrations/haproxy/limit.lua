-- An action for HAProxy: http-request lua.tatcell. Sets txn.tatcell_refused and txn.tatcell_retry_after (seconds).
-- SPDX-License-Identifier: MIT OR Apache-2.0
local tatcell = require "tatcell"

local limits = tatcell.new { name = "clients", rate = 10, burst = 20, slots = 65536 }

core.register_action("tatcell", { "http-req" }, function (txn)
    local ok, retry_after = limits:check(txn.f:src())
    txn:set_var("txn.tatcell_refused", ok == false)
    if retry_after and ok == false then
        txn:set_var("txn.tatcell_retry_after", math.ceil(retry_after))
    end
end)
