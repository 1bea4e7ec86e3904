"""What figures have in common: the machine, medians of rounds in which all take turns, processor time, instructions."""

import datetime
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess


def cpu():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    found = [re.search(rf"^{name}\s*: (.*)$", text, re.M) for name in ("model name", "cpu family", "model")]
    return "{}, family {}, model {}".format(*(f[1] for f in found)) if all(found) else platform.machine()


def machine():
    """With the load of before: figures of a machine that did something else are worth less."""
    return f"{cpu()}, {os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}, {datetime.date.today()}"


def cpu_seconds(pids):
    """Processor time of processes, user and system."""
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def head(limiters, what):
    print("| | " + " | ".join(f"{name}: {what}" for name in limiters) + " |")
    print("|---" * (1 + len(limiters)) + "|", flush=True)


def row(what, limiters, rounds, ask):
    """Prints what `ask(limiter)` gives, a tuple of numbers of which the first is a rate: the medians, and the best."""
    found = {name: [] for name in limiters}
    for _ in range(rounds):
        for name in limiters:
            found[name].append(ask(name))

    def best(column):
        return (max if column is columns[0] else min)(column)
    for which, of in ("median", statistics.median), ("best", best):
        cells = []
        for name in limiters:
            columns = list(zip(*found[name]))
            numbers = [of(column) for column in columns]
            cells.append(" / ".join(f"{n:,.0f}" if n >= 1000 else f"{n:.1f}" for n in numbers).replace(",", " "))
        print(f"| {what}, {which} | " + " | ".join(cells) + " |", flush=True)


def valgrind():
    if shutil.which("valgrind"):
        return True
    print("SKIP instructions: valgrind is not installed: apt-get install valgrind")
    return False


def wait(process):
    """Until it ends. A signal that comes right before a program waits for events is seen when the next one comes."""
    for _ in range(60):
        try:
            return process.wait(1)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
    raise AssertionError("the program does not end")


def collected(line, folder, during, **options):
    """Instructions of a program, user space alone, all its threads; `during` uses it and lets it end."""
    folder = pathlib.Path(folder)
    # Lua makes code as it runs.
    line = ["valgrind", "--tool=callgrind", "--smc-check=all-non-file", f"--callgrind-out-file={folder}/callgrind",
            *line]
    with open(folder / "valgrind", "w+") as said:
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, **options)
        try:
            during(process)
            wait(process)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        said.seek(0)
        return int(re.search(r"Collected : (\d+)", said.read())[1])
