-- Requests of CLIENTS clients in turn, for wrk: wrk -s clients.lua URL -- CLIENTS
local clients, at, requests = 1, 0, {}

function init(args)
    clients = tonumber(args[1])
    for i = 0, clients - 1 do
        local address = string.format("10.%d.%d.%d", math.floor(i / 65536), math.floor(i / 256) % 256, i % 256)
        requests[i] = wrk.format("GET", "/", { ["X-Forwarded-For"] = address })
    end
    -- The kernel counts what this took at real-time priority against the first second of the run.
    os.execute("sleep 1")
end

function request()
    at = (at + 1) % clients
    return requests[at]
end

function done(summary, latency)
    io.write(string.format("%d %d %d %d\n", summary.requests, summary.duration, latency:percentile(99),
        summary.errors.status))
end
