"""Load: wrk where it is, with a key of its own for each request where that is asked for."""

import pathlib
import re
import shutil
import subprocess
import tempfile

from claims import Skip

KEYS = """
local threads = 0

function setup(thread)
    threads = threads + 1
    thread:set("number", threads)
end

function init()
    math.randomseed(number)
end

function request()
    return wrk.format("GET", "{path}k=" .. math.random({keys}))
end
"""


def wrk(port, path, seconds, connections, threads=2, keys=None):
    """Requests, refused ones, requests a second, and p50 and p99 in milliseconds."""
    if not shutil.which("wrk"):
        raise Skip("wrk is not installed: apt-get install wrk")
    line = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--latency"]
    with tempfile.TemporaryDirectory() as folder:
        if keys:
            script = pathlib.Path(folder) / "keys.lua"
            script.write_text(KEYS.format(path=path, keys=keys))
            line += ["-s", str(script)]
        done = subprocess.run([*line, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True,
                              timeout=seconds + 60)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    total = int(re.search(r"(\d+) requests in", text)[1])
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    return total, int(refused[1]) if refused else 0, rate, ms(text, "50%"), ms(text, "99%")


def ms(text, row):
    number, unit = re.search(rf"^\s+{row}\s+([\d.]+)(us|ms|s)", text, re.M).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]
