"""Requests a second, p99, processor time and instructions: the converter beside no limiter and beside a stick table."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "testing")]

import daemon  # noqa: E402
import figures  # noqa: E402
import load  # noqa: E402

# The last one is the converter of C, where the module has it (HAPROXY_SRC).
LIMITERS = ["none", "stick table", "tatcell", "converter of C"]
if not os.environ.get("HAPROXY_SRC"):
    LIMITERS.pop()

CONF = """
global
    nbthread {threads}
    lua-prepend-path {build}/?.so cpath
    lua-load-per-thread {folder}/limit.lua
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
backend slow
    stick-table type string len 16 size 1m expire 10s store http_req_rate(1s)
backend fast
    stick-table type string len 16 size 1m expire 10s store http_req_rate(1s)
frontend web
    bind 127.0.0.1:{port}
    # The same work for all: the backend has the name of the path.
    use_backend %[path,word(1,/)]_%[path,word(2,/)]
backend slow_none
    http-request return status 200 content-type text/plain string "here"
backend fast_none
    http-request return status 200 content-type text/plain string "here"
backend slow_stick
    http-request track-sc0 url_param(k) table slow
    http-request return status 429 if {{ sc_http_req_rate(0,slow) gt 100 }}
    http-request return status 200 content-type text/plain string "here"
backend fast_stick
    http-request track-sc0 url_param(k) table fast
    http-request return status 429 if {{ sc_http_req_rate(0,fast) gt 1000000 }}
    http-request return status 200 content-type text/plain string "here"
backend slow_tatcell
    http-request set-var(txn.wait) url_param(k),lua.slow
    http-request return status 429 hdr Retry-After %[var(txn.wait)] if {{ var(txn.wait) -m int gt 0 }}
    http-request return status 200 content-type text/plain string "here"
backend fast_tatcell
    http-request set-var(txn.wait) url_param(k),lua.fast
    http-request return status 429 hdr Retry-After %[var(txn.wait)] if {{ var(txn.wait) -m int gt 0 }}
    http-request return status 200 content-type text/plain string "here"
backend slow_converter
    http-request return status 429 if {{ url_param(k),lua.slow_c gt 0 }}
    http-request return status 200 content-type text/plain string "here"
backend fast_converter
    http-request return status 429 if {{ url_param(k),lua.fast_c gt 0 }}
    http-request return status 200 content-type text/plain string "here"
"""

# What is sent, its path, the number of keys (None: one).
ROWS = [("1 hot key, all pass", "fast", None), ("1 hot key, nearly all refused", "slow", None),
        ("100 000 keys, all pass", "fast", 100000)]


def path(speed, limiter):
    return f"/{speed}/{limiter.split()[0]}?"


class Haproxy:
    def __init__(self, given, threads):
        self.folder = given.build / "measure"
        self.folder.mkdir(parents=True, exist_ok=True)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        # The recipe for each converter, with its name and its numbers. Without its line for C, it is all Lua.
        recipe = (HERE.parent / "limit.lua").read_text()
        text = ""
        for name, numbers in ("slow", "rate = 100, burst = 10"), ("fast", "rate = 1000000, burst = 10000"), \
                ("slow_c", "rate = 100, burst = 10"), ("fast_c", "rate = 1000000, burst = 10000"):
            assert "if limits.converter then" in recipe and 'limits:converter("tatcell"' in recipe
            way = recipe if name.endswith("_c") else recipe.replace("if limits.converter then", "if false then")
            own = way.replace('name = "clients", rate = 10, burst = 20, slots = 65536',
                                 f'name = "{name}", {numbers}, slots = 262144')
            text += "do\n" + re.sub(r'((?:register_\w+|converter)\()"tatcell', rf'\1"{name}', own) + "end\n"
        assert text.count("slots = 262144") == 4 and 'converters("slow"' in text
        (self.folder / "limit.lua").write_text(text)
        self.conf = self.folder / "haproxy.cfg"
        self.conf.write_text(CONF.format(threads=threads, folder=self.folder, build=given.build, port=self.port))
        self.line = ["haproxy", "-db", "-f", str(self.conf)]

    def wait(self):
        for _ in range(1200):
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("haproxy does not answer")


def run(given, seconds, rounds):
    version = subprocess.run(["haproxy", "-v"], capture_output=True, text=True).stdout.splitlines()[0]
    print(f"{version}, 2 threads, wrk -t2 -c64, {rounds} rounds of {seconds} s; {figures.machine()}")
    figures.head(LIMITERS, "requests/s / p99 ms / CPU us")
    h = Haproxy(given, 2)
    with open(h.folder / "log", "w") as log:
        process = subprocess.Popen(h.line, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            h.wait()
            for limiter in LIMITERS if rounds else []:
                load.wrk(h.port, path("fast", limiter) + "k=warm", 1, 64)
            for what, speed, keys in ROWS if rounds else []:
                def ask(limiter):
                    target = path(speed, limiter) + ("" if keys else "k=hot")
                    before = figures.cpu_seconds([process.pid])
                    total, refused, rate, _, p99 = load.wrk(h.port, target, seconds, 64, keys=keys)
                    spent = (figures.cpu_seconds([process.pid]) - before) / total * 1e6
                    share, expected = refused / total, limiter != "none" and speed == "slow"
                    assert (share > 0.9) == expected and (expected or share == 0), (what, limiter, share)
                    return rate, p99, spent
                figures.row(what, LIMITERS, rounds, ask)
        finally:
            daemon.end(process)
    if figures.valgrind():
        instructions(given)


def instructions(given):
    """Of one thread and one connection."""
    print("\ninstructions a request: " + ", ".join(LIMITERS))
    for what, speed in ("passes", "fast"), ("nearly all refused", "slow"):
        counts = [(collected(given, path(speed, limiter) + "k=hot", 3000) -
                   collected(given, path(speed, limiter) + "k=hot", 1000)) / 2000 for limiter in LIMITERS]
        print(f"{what}: " + ", ".join(f"{count:.0f}" for count in counts), flush=True)


def collected(given, target, requests):
    h = Haproxy(given, 1)

    def during(process):
        h.wait()
        with socket.create_connection(("127.0.0.1", h.port), 10) as s:
            for _ in range(requests):
                s.sendall(f"GET {target} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
                answer = b""
                while b"\r\n\r\n" not in answer:
                    answer += s.recv(4096)
                head, _, body = answer.partition(b"\r\n\r\n")
                length = int(re.search(rb"content-length: (\d+)", head, re.I)[1])
                while len(body) < length:
                    body += s.recv(4096)
        process.send_signal(signal.SIGTERM)
    return figures.collected(h.line, h.folder, during)
