"""Requests a second, p99, processor time and instructions: resty.tatcell beside no limiter and beside lua_shared_dict.

What stands in its place counts in a lua_shared_dict: a fixed window by one incr, and a leaky bucket that keeps an
excess and the time of the last request by one get and one set. lua-resty-limit-traffic works like the second; no package
has it, so its algorithm is written here from its description.
"""

import os
import pathlib
import signal
import subprocess

import figures
import load

LIMITERS = ["none", "window", "leaky bucket", "tatcell"]

HTTP = """
lua_package_path "{lib}/?.lua;{root}/usr/share/lua/5.1/?.lua;;";
lua_shared_dict windows 64m;
lua_shared_dict excess 64m;
init_by_lua_block {{
    require "resty.core"
    local ffi = require "ffi"
    local tatcell = require "resty.tatcell"
    tslow = assert(tatcell.new {{ rate = 100, burst = 10, slots = 262144 }})
    tfast = assert(tatcell.new {{ rate = 1000000, burst = 10000, slots = 262144 }})
    ffi.cdef "typedef struct {{ uint64_t excess, last; }} figures_rec;"
    local record = ffi.new "figures_rec"
    local pointer, size = ffi.typeof "const figures_rec *", ffi.sizeof "figures_rec"
    local max, abs = math.max, math.abs

    function incr(key, most)
        local count, err = ngx.shared.windows:incr(key, 1, 0, 1)
        return count and count <= most
    end

    -- In thousandths of a request, as nginx counts. Not one step: two workers may read the same excess.
    function excess(key, rate, burst)
        local dict, now = ngx.shared.excess, ngx.now() * 1000
        local found, sum = dict:get(key), 0
        if found then
            local before = ffi.cast(pointer, found)
            sum = max(tonumber(before.excess) - rate * abs(now - tonumber(before.last)) + 1000, 0)
            if sum > burst * 1000 then
                return false
            end
        end
        record.excess, record.last = sum, now
        return dict:set(key, ffi.string(record, size))
    end
}}
"""


def location(path, ask):
    body = f"if not ({ask}) then return ngx.exit(429) end" if ask else ""
    access = f"access_by_lua_block {{ local key = ngx.var.arg_k {body} }}"
    return f"location = {path} {{ {access if ask else ''} content_by_lua_block {{ ngx.print 'page' }} }}\n"


def server():
    return "".join([
        location("/fast/none", None), location("/slow/none", None),
        location("/fast/window", "incr(key, 100000000)"), location("/slow/window", "incr(key, 100)"),
        location("/fast/leaky", "excess(key, 1000000, 9999)"), location("/slow/leaky", "excess(key, 100, 9)"),
        location("/fast/tatcell", "tfast:check(key)"), location("/slow/tatcell", "tslow:check(key)"),
    ])


# What is sent, its path, the number of keys (None: one).
ROWS = [("1 hot key, all pass", "fast", None), ("1 hot key, nearly all refused", "slow", None),
        ("100 000 keys, all pass", "fast", 100000)]


def path(speed, limiter):
    return f"/{speed}/{limiter.split()[0]}?"


def run(tests, seconds, rounds):
    conf = {"http": HTTP.format(root=tests.lua(), lib=tests.build / "lib"), "server": server(), "level": "crit"}
    with tests.nginx() as n:
        version = subprocess.run([n.binary, "-v"], capture_output=True, text=True).stderr.strip()
        print(f"{version} with lua, 4 workers, wrk -t2 -c64, {rounds} rounds of {seconds} s; "
              f"{figures.machine()}")
        figures.head(LIMITERS, "requests/s / p99 ms / CPU us")
        n.start(workers=4, **conf)
        for limiter in LIMITERS if rounds else []:
            load.wrk(n.port, path("fast", limiter) + "k=warm", 1, 64)
        for what, speed, keys in ROWS if rounds else []:
            def ask(limiter):
                target = path(speed, limiter) + ("" if keys else "k=hot")
                before = figures.cpu_seconds(n.children())
                total, refused, rate, _, p99 = load.wrk(n.port, target, seconds, 64, keys=keys)
                spent = (figures.cpu_seconds(n.children()) - before) / total * 1e6
                share, expected = refused / total, limiter != "none" and speed == "slow"
                assert (share > 0.9) == expected and (expected or share == 0), (what, limiter, share)
                return rate, p99, spent
            figures.row(what, LIMITERS, rounds, ask)
    if figures.valgrind():
        instructions(tests, conf)


def instructions(tests, conf):
    """Of one process and one connection, when LuaJIT has compiled what it will."""
    print("\ninstructions a request: " + ", ".join(LIMITERS))
    for what, speed in ("passes", "fast"), ("nearly all refused", "slow"):
        counts = [(collected(tests, conf, path(speed, limiter) + "k=hot", 4000) -
                   collected(tests, conf, path(speed, limiter) + "k=hot", 2000)) / 2000 for limiter in LIMITERS]
        print(f"{what}: " + ", ".join(f"{count:.0f}" for count in counts), flush=True)


def collected(tests, conf, target, requests):
    with tests.nginx() as n:
        n.write(**conf, main="master_process off;")
        file = pathlib.Path(n.run / "nginx.conf")
        file.write_text(file.read_text().replace("daemon on;", "daemon off;"))

        def during(process):
            n.wait(n.alive, 60)
            n.statuses(requests, target)
            process.send_signal(signal.SIGTERM)
        return figures.collected([n.binary, "-p", str(n.run), "-c", str(file)], n.run, during, env=os.environ)
