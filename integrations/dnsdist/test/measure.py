"""Questions a second, processor time and instructions: the recipe beside no limiter and beside MaxQPSIPRule.

The recipe asks for an address and three networks of it at once; four rules of dnsdist do the like one after another.
Without networks it asks for the address alone, as one rule does.
"""

import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "testing")]

import figures  # noqa: E402

LIMITERS = ["none", "MaxQPSIPRule", "tatcell, one prefix", "four MaxQPSIPRules", "tatcell"]

FAST, SLOW = (500000, 20000), (100, 10)

# Before the rule that answers. Refused questions are answered by TC=1, so that who asks sees them.
RULES = {
    "none": lambda rate, burst: "",
    "MaxQPSIPRule": lambda rate, burst: f"addAction(MaxQPSIPRule({rate}, 32, 64, {burst}), TCAction())",
    "tatcell, one prefix": lambda rate, burst:
        f"addAction(AllRule(), tatcell.limit {{ rate = {rate}, burst = {burst}, slip = 1, networks = false }})",
    "four MaxQPSIPRules": lambda rate, burst: "\n".join(
        f"addAction(MaxQPSIPRule({rate * n}, {v4}, {v6}, {burst * n}), TCAction())"
        for n, v4, v6 in ((1, 32, 64), (32, 24, 56), (256, 20, 48), (768, 18, 32))),
    "tatcell": lambda rate, burst:
        f"addAction(AllRule(), tatcell.limit {{ rate = {rate}, burst = {burst}, slip = 1 }})",
}

ROWS = [("1 address, all pass", FAST), ("1 address, nearly all refused", SLOW)]


class Measured:
    """A dnsdist with one of the limiters."""

    def __init__(self, test, given, limiter, numbers):
        self.made = test.Dnsdist(given, "rate = 1", "")
        conf = self.made.conf.read_text()
        rule = "addAction(AllRule(), tatcell.limit { rate = 1 })"
        assert rule in conf
        self.made.conf.write_text(conf.replace(rule, RULES[limiter](*numbers)))


def perf(port, folder, seconds):
    """Questions that were answered, and how many a second."""
    names = folder / "names"
    names.write_text("www.example.org A\n" * 1000)
    done = subprocess.run(["dnsperf", "-s", "127.0.0.1", "-p", str(port), "-d", str(names), "-l", str(seconds),
                           "-c", "8", "-T", "2", "-q", "200"], capture_output=True, text=True, timeout=seconds + 60)
    assert done.returncode == 0, done.stderr
    return int(re.search(r"Queries completed:\s+(\d+)", done.stdout)[1]), \
        float(re.search(r"Queries per second:\s+([\d.]+)", done.stdout)[1])


def run(test, given, seconds, rounds):
    version = subprocess.run(["dnsdist", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    if not shutil.which("dnsperf"):
        print("SKIP questions a second: dnsperf is not installed: apt-get install dnsperf")
        rounds = 0
    print(f"{version}, 2 threads, dnsperf -T 2 -c 8 -q 200, {rounds} rounds of {seconds} s; "
          f"{figures.machine()}")
    figures.head(LIMITERS, "questions/s / CPU us")
    for what, numbers in ROWS if rounds else []:
        def ask(limiter):
            with Measured(test, given, limiter, numbers).made as d:
                before = figures.cpu_seconds([d.process.pid])
                total, rate = perf(d.port, d.folder, seconds)
                spent = (figures.cpu_seconds([d.process.pid]) - before) / total * 1e6
                full, truncated = d.ask("127.0.0.1", 200, 0.3)
                refuses = limiter != "none" and numbers is SLOW
                assert (truncated > 50) == refuses and (refuses or full == 200), (what, limiter, full, truncated)
                return rate, spent
        figures.row(what, LIMITERS, rounds, ask)
    if figures.valgrind():
        instructions(test, given)


def instructions(test, given):
    """Of all threads, one question after another."""
    print("\ninstructions a question: " + ", ".join(LIMITERS))
    for what, numbers in ROWS:
        counts = [(collected(test, given, limiter, numbers, 3000) - collected(test, given, limiter, numbers, 1000))
                  / 2000 for limiter in LIMITERS]
        print(f"{what}: " + ", ".join(f"{count:.0f}" for count in counts), flush=True)


def collected(test, given, limiter, numbers, questions):
    d = Measured(test, given, limiter, numbers).made
    line = ["dnsdist", "--supervised", "--disable-syslog", "-C", str(d.conf)]

    def during(process):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.connect(("127.0.0.1", d.port))
            s.settimeout(0.2)  # Until it answers; then a question that is asked again would count twice.
            got, end = 0, time.monotonic() + 120
            while got < questions and time.monotonic() < end and process.poll() is None:
                try:
                    s.send(test.question(got))
                    s.recv(512)
                    got += 1
                    s.settimeout(20)
                except OSError:
                    time.sleep(0.05 if not got else 0)
            assert got == questions, f"{got} of {questions} answered"
        process.send_signal(signal.SIGTERM)
    return figures.collected(line, d.folder, during, env=d.environment)
