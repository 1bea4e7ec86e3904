"""The tests: the module in luajit, and in nginx with the Lua modules of OpenResty that Debian has."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "testing")]

import claims as said  # noqa: E402
import later  # noqa: E402
import load  # noqa: E402
import measure  # noqa: E402
from claims import Skip, bounded, counted_down, equal, patiently  # noqa: E402
from server import Nginx  # noqa: E402

# What nginx needs to run Lua. libluajit2 cannot be installed beside luajit: the packages are unpacked alone.
PACKAGES = ["libnginx-mod-http-lua", "libnginx-mod-http-ndk", "libluajit2-5.1-2", "lua-resty-core",
            "lua-resty-lrucache", "libpcre3"]

HTTP = """
lua_package_path "{lib}/?.lua;{root}/usr/share/lua/5.1/?.lua;;";
lua_shared_dict tatcell 64k;
init_by_lua_block {{
    tatcell = require "resty.tatcell"
    local how
    limits, how = tatcell.new {{ rate = {rate}, per = {per}, burst = {burst}, name = "clients", slots = {slots},
                                 policy = "{policy}", keep = {keep} }}
    if not limits then
        error(how)
    end
    ngx.log(ngx.NOTICE, "table ", how)
    shaped = assert(tatcell.new {{ rate = 10, burst = 1, max_delay = 1 }})
}}
"""

SERVER = """
location / {
    access_by_lua_block {
        local ok, retry = limits:check(ngx.var.arg_k or ngx.var.binary_remote_addr)
        if ok == false then
            if retry then
                ngx.header["Retry-After"] = math.ceil(retry)
            end
            return ngx.exit(429)
        end
    }
}
location /full {
    access_by_lua_block {
        local answer = limits:decide(ngx.var.arg_k)
        limits:set_headers(answer)
        if not answer.allowed then
            return ngx.exit(429)
        end
    }
    content_by_lua_block { ngx.say "full" }
}
location /shaped {
    access_by_lua_block {
        local delay, err = shaped:incoming(ngx.var.arg_k, true)
        if not delay then
            return ngx.exit(err == "rejected" and 429 or 500)
        end
        if delay >= 0.001 then
            ngx.sleep(delay)
        end
    }
    content_by_lua_block { ngx.say "shaped" }
}
location /stats {
    content_by_lua_block {
        local stats = limits:stats()
        ngx.say('{"live":', stats.live, ',"slots":', stats.slots, '}')
    }
}
"""


def lua_root(build):
    """Where the Lua modules are: the system, or a folder that Debian's packages are unpacked in."""
    if pathlib.Path("/usr/lib/nginx/modules/ngx_http_lua_module.so").exists():
        return pathlib.Path("/")
    root = build / "lua"
    if (root / "usr/lib/nginx/modules/ngx_http_lua_module.so").exists():
        return root
    get = f"apt-get install {' '.join(PACKAGES)}"
    if os.environ.get("TATCELL_NO_INSTALL") or not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise Skip(f"nginx has no Lua: {get}")
    packages = build / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["apt-get", "-qq", "download", *PACKAGES], cwd=packages, capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"nginx has no Lua, and it cannot be fetched: {get}")
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
    return root


class Tests:
    def __init__(self, build):
        self.build, self.numbers = build, 0

    def nginx(self):
        if not shutil.which("nginx"):
            raise Skip("nginx is not installed: apt-get install nginx")
        self.lua()
        libs = [self.root / "usr/lib/x86_64-linux-gnu", self.root / "lib/x86_64-linux-gnu"]
        os.environ["LD_LIBRARY_PATH"] = ":".join(str(p) for p in libs)
        modules = self.root / "usr/lib/nginx/modules"
        self.numbers += 1
        return Nginx("nginx", [modules / "ndk_http_module.so", modules / "ngx_http_lua_module.so"],
                     self.build / "run" / str(self.numbers))

    def lua(self):
        self.root = lua_root(self.build)
        return self.root

    def conf(self, **more):
        values = {"rate": 1, "per": 3600, "burst": 3, "slots": 65536, "policy": "admit", "keep": "ngx.shared.tatcell",
                  "lib": self.build / "lib", **more}
        # The path to what the library is not: server.py loads nothing else.
        return {"http": HTTP.format(root=self.root, **values), "server": SERVER, "level": "notice"}

    def all(self):
        return [getattr(self, name) for name in sorted(vars(Tests)) if name.startswith("claim_")]

    def claim_a_table_is_shared_by_all_workers(self):
        with self.nginx() as n:
            n.start(workers=4, **self.conf(burst=10))
            start = time.monotonic()
            found = [n.get("/page?k=x").status for _ in range(40)]
            equal(found.count(200), 10)
            last = n.get("/page?k=x")
            equal(last.status, 429)
            counted_down(last.headers["retry-after"], "{}", 3600, start)
            equal(json.loads(n.get("/stats").body)["live"], 1)

    def claim_four_workers_admit_no_more_than_the_rate(self):
        with self.nginx() as n:
            n.start(workers=4, **self.conf(rate=100, per=1, burst=10))
            start = time.monotonic()
            total, refused, _, _, _ = load.wrk(n.port, "/page?k=hot", seconds=3, connections=32)
            passed, bound = total - refused, 10 + (time.monotonic() - start) * 100
            bounded(passed, bound)
            assert refused > 5000 and passed >= 100, f"too few requests: {passed} passed, {refused} did not"

    def claim_fields_are_on_200_and_429(self):
        with self.nginx() as n:
            n.start(**self.conf(rate=3, per=60))
            start = time.monotonic()
            found = [n.get("/full?k=x") for _ in range(4)]
            equal([a.status for a in found], [200] * 3 + [429])
            equal(found[0].headers["ratelimit"], '"clients";r=2;t=20')
            equal(found[0].headers["ratelimit-policy"], '"clients";q=3;w=60')
            counted_down(found[3].headers["retry-after"], "{}", 20, start)
            assert "retry-after" not in found[0].headers

    def claim_requests_wait_for_their_turn(self):
        with self.nginx() as n:
            n.start(**self.conf())
            start = time.monotonic()
            equal(n.statuses(4, "/shaped?k=x"), [200] * 4)
            assert time.monotonic() - start >= 0.299, time.monotonic() - start

    def claim_a_reload_keeps_or_moves_the_debts(self):
        with self.nginx() as n:
            n.start(workers=2, **self.conf())
            equal(n.statuses(5, "/page?k=x").count(200), 3)
            for more, how in [({}, "kept"), ({"slots": 262144}, "moved"), ({"policy": "inherit"}, "moved"),
                              ({}, "moved"), ({"burst": 2}, "kept")]:
                assert n.reload(workers=2, **self.conf(**more)), n.log()
                equal(n.statuses(2, "/page?k=x"), [429, 429], str(more))
                assert f"table {how}" in n.log().split("reconfiguring")[-1], n.log()

    def claim_without_keep_a_reload_starts_empty(self):
        with self.nginx() as n:
            n.start(**self.conf(keep="nil"))
            equal(n.statuses(5, "/page?k=x").count(200), 3)
            assert n.reload(**self.conf(keep="nil")), n.log()
            equal(n.statuses(5, "/page?k=x").count(200), 3)

    def claim_a_killed_worker_takes_nothing_along(self):
        with self.nginx() as n:
            n.start(workers=2, **self.conf())
            equal(n.statuses(5, "/page?k=x").count(200), 3)
            for pid in n.children():
                os.kill(pid, signal.SIGKILL)
            n.wait(lambda: len(n.children()) == 2)
            equal(n.statuses(2, "/page?k=x"), [429, 429])

    def claim_the_synopsis_is_a_good_configuration(self):
        with self.nginx() as n:
            page = (HERE.parent / "README.md").read_text()
            path = f'lua_package_path "{self.build}/lib/?.lua;{self.root}/usr/share/lua/5.1/?.lua;;";'
            (n.run / "README.md").write_text(page.replace("http {\n", "http {\n" + path, 1))
            found = list(n.documented(n.run / "README.md"))
            assert len(found) == 1 and found[0][0], found

    def claim_a_bad_limit_stops_the_start_with_words(self):
        with self.nginx() as n:
            n.write(**self.conf(rate=0))
            done = n.command()
            assert done.returncode != 0 and "rate must be a whole number above 0" in n.log() + done.stderr, done.stderr


def unit(claims, build, *arguments):
    if not shutil.which("luajit"):
        claims.skip("luajit", "luajit is not installed: apt-get install luajit")
        return
    path = f"{build}/lib/?.lua;;"
    if not arguments and not shutil.which("cc"):
        claims.skip("luajit", "cc is not installed: apt-get install gcc")
        return
    environment = os.environ if arguments else later.Later(build).environment
    done = subprocess.run(["luajit", str(HERE / "unit.lua"), *arguments], capture_output=True, text=True,
                          env={**environment, "LUA_PATH": path})
    for line in done.stdout.splitlines():
        word, _, name = line.partition(" ")
        if word == "PASS":
            claims.passed += 1
            claims.say(f"PASS luajit: {name}")
        elif word == "FAIL":
            claims.failed += 1
            claims.say(f"FAIL luajit: {name}")
        else:
            claims.say(line)
    if done.returncode or not done.stdout:
        claims.failed += 1
        claims.say(f"FAIL luajit: ended with {done.returncode}: {done.stderr.strip()[-300:]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    tests = Tests(given.build.resolve())
    claims = said.Claims()
    if given.measure:
        unit(claims, tests.build, "measure")
        measure.run(tests, given.seconds, given.rounds)
        return
    unit(claims, tests.build)
    for ask in tests.all():
        name = ask.__name__.removeprefix("claim_")
        # A busy machine asks less.
        claims.claim("nginx: " + name, patiently(ask) if name == "four_workers_admit_no_more_than_the_rate" else ask)
    claims.end()


if __name__ == "__main__":
    main()
