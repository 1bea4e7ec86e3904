"""Requests a second, p99 and processor time without a limiter, with limit_req and with tatcell: wrk on loopback.

Prints a table of medians. Every round asks each limiter in turn, so that a busy moment of the machine hits all three.
The processor time of the workers a request is what a limiter costs, also where others use the machine meanwhile.
"""

import argparse
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "testing"))

import figures  # noqa: E402
import load  # noqa: E402
from server import Nginx  # noqa: E402

HTTP = """
limit_req_zone $arg_k zone=slow:1m rate=100r/s;
limit_req_zone $arg_k zone=fast:64m rate=1000000r/s;
limit_req_status 429;
tatcell_zone $arg_k zone=tslow:1m rate=100r/s burst=10;
tatcell_zone $arg_k zone=tfast:8m rate=1000000r/s burst=10000;
"""

SERVER = """
location /none { alias %(html)s; }
location /limit_req { alias %(html)s; limit_req zone=slow burst=9 nodelay; }
location /tatcell { alias %(html)s; tatcell zone=tslow nodelay; }
location /bare { alias %(html)s; tatcell zone=tslow nodelay; tatcell_headers off; }
location /fast/none { alias %(html)s; }
location /fast/limit_req { alias %(html)s; limit_req zone=fast burst=9999 nodelay; }
location /fast/tatcell { alias %(html)s; tatcell zone=tfast nodelay; }
location /fast/bare { alias %(html)s; tatcell zone=tfast nodelay; tatcell_headers off; }
"""

LIMITERS = ["none", "limit_req", "tatcell"]

# What is sent, its path, the number of keys (None: one), and whether refusals are logged.
ROWS = [
    ("1 hot key, all pass", "/fast/%s/page?", None, False),
    ("1 hot key, nearly all refused, log off", "/%s/page?", None, False),
    ("1 hot key, nearly all refused, log as shipped", "/%s/page?", None, True),
    ("100 000 keys, all pass", "/fast/%s/page?", 100000, False),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nginx", default="nginx")
    parser.add_argument("--module", required=True)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    given.build, given.module = given.build.resolve(), pathlib.Path(given.module).resolve()
    version = subprocess.run([given.nginx, "-v"], capture_output=True, text=True).stderr.strip()
    print(f"{version}, 4 workers, wrk -t2 -c64, {given.rounds} rounds of {given.seconds} s; {figures.machine()}")
    figures.head(LIMITERS, "requests/s / p99 ms / CPU us")
    for what, path, keys, logged in ROWS if given.rounds else []:
        with Nginx(given.nginx, given.module, given.build / "measure") as n:
            n.start(workers=4, http=HTTP, server=SERVER % {"html": f"{n.run}/html"},
                    level="error" if logged else "crit")
            for name in LIMITERS:
                load.wrk(n.port, path % name + "k=hot", 1, 64)

            def ask(name):
                before = figures.cpu_seconds(n.children())
                total, refused, rate, _, p99 = load.wrk(n.port, path % name + ("" if keys else "k=hot"), given.seconds,
                                                        64, keys=keys)
                spent = (figures.cpu_seconds(n.children()) - before) / total * 1e6
                share, expected = refused / total, name != "none" and "refused" in what
                assert (share > 0.9) == expected and (expected or share == 0), (what, name, share)
                return rate, p99, spent
            figures.row(what, LIMITERS, given.rounds, ask)
    instructions(given)


def instructions(given):
    """Instructions a request of one process, by valgrind: the same on a busy machine."""
    if not shutil.which("valgrind"):
        print("SKIP instructions: valgrind is not installed: apt-get install valgrind")
        return
    limiters = LIMITERS + ["bare"]
    print("\ninstructions a request, one connection, log off; bare is tatcell with tatcell_headers off: "
          + ", ".join(limiters))
    for what, path in ("passes", "/fast/%s/page?k=hot"), ("nearly all refused", "/%s/page?k=hot"):
        counts = [(collected(given, path % name, 3500) - collected(given, path % name, 500)) / 3000
                  for name in limiters]
        print(f"{what}: " + ", ".join(f"{count:.0f}" for count in counts), flush=True)


def collected(given, path, requests):
    with Nginx(given.nginx, given.module, given.build / "measure") as n:
        n.write(http=HTTP, server=SERVER % {"html": f"{n.run}/html"}, level="crit", main="master_process off;")
        conf = n.run / "nginx.conf"
        conf.write_text(conf.read_text().replace("daemon on;", "daemon off;"))
        line = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={n.run}/callgrind", n.binary, "-p", str(n.run),
                "-c", str(conf)]
        with open(n.run / "valgrind", "w+") as said:
            process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=said)
            n.wait(n.alive, 60)
            n.statuses(requests, path)
            process.send_signal(signal.SIGTERM)
            figures.wait(process)
            said.seek(0)
            return int(re.search(r"Collected : (\d+)", said.read())[1])


if __name__ == "__main__":
    main()
