"""Compares an axum server without a limiter, with tatcell-tower and with tower_governor: compare.py SERVER

Each has a processor to itself, and wrk another. The runs take turns. All clients ask before a run, and it lasts a
second: at real-time priority, the kernel takes 50 ms of each longer one, which would be its p99. A row has the least
time of a request, which is a second by the requests in it, and the median; p99 is the least, memory the median. All
requests pass if there are 100 000 clients, and nearly none if there is one. Memory is what the server has more than
the one without a limiter, for each of the 100 000. SECONDS (to ask for all clients) and ROUNDS are variables of the
environment."""
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import time

PORT = int(os.environ.get('PORT', 47471))
SECONDS = int(os.environ.get('SECONDS', 2))
ROUNDS = int(os.environ.get('ROUNDS', 5))
TRIES = 5
# As the server calls it, its name, what it decides by.
LIMITERS = {
    'none': ('axum without a limiter', '-'),
    'tatcell': ('tatcell-tower', 'GCRA'),
    'governor': ('tower_governor', 'GCRA'),
}
CLIENTS = (1, 100_000)
CORES = sorted(os.sched_getaffinity(0))


def pinned(core, *command):
    return ['taskset', '-c', str(core), *command]


def listening():
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', PORT)) == 0


def resident(pid):
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    return int(re.search(r'VmRSS:\s+(\d+)', status)[1]) * 1024


def load(url, clients, seconds):
    """Requests, microseconds, p99 in microseconds, and refused requests."""
    script = pathlib.Path(__file__).with_name('clients.lua')
    wrk = pinned(CORES[-1], 'wrk', '-t', '1', '-c', '32', '-d', f'{seconds}s', '--timeout', '10s', '-s', script,
                 f'http://{url}/', '--', str(clients))
    said = subprocess.run(wrk, check=True, capture_output=True, text=True).stdout
    return [int(word) for word in said.splitlines()[-1].split()]


def run(server, limiter, clients):
    """Nanoseconds a request, p99 in microseconds, and bytes of the server."""
    url = f'127.0.0.1:{PORT}'
    if listening():
        sys.exit(f'port {PORT} is in use: set PORT')
    process = subprocess.Popen(pinned(CORES[0], server, limiter, url))
    try:
        deadline = time.monotonic() + 10
        while not listening():
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f'the server with {limiter} does not listen')
            time.sleep(0.05)
        # Again if other programs took the processors for a while.
        if not any(load(url, clients, SECONDS)[0] >= clients for _ in range(TRIES)):
            sys.exit(f'not all of {clients} clients were served in {SECONDS} s: raise SECONDS')
        requests, duration, p99, refused = load(url, clients, 1)
        if limiter != 'none' and not (refused > 0.99 * requests if clients == 1 else refused < 0.01 * requests):
            sys.exit(f'{limiter} refused {refused} of {requests} requests of {clients} clients')
        return duration * 1e3 / requests, p99, resident(process.pid)
    finally:
        process.kill()
        process.wait()


def version(crate):
    lock = pathlib.Path(__file__).parents[1] / 'Cargo.lock'
    return re.search(rf'name = "{crate}"\nversion = "(.*)"', lock.read_text())[1]


def main():
    seen = {}
    for _ in range(ROUNDS):
        for limiter in LIMITERS:
            for clients in CLIENTS:
                seen.setdefault((limiter, clients), []).append(run(sys.argv[1], limiter, clients))
    print('| Limiter | Decides by | one key, ns | each of 100 000 keys, ns | bytes a key | p99, ms |')
    print('|---|---|---|---|---|---|')
    memory = {limiter: statistics.median(row[2] for row in seen[limiter, CLIENTS[1]]) for limiter in LIMITERS}
    for limiter, (name, kind) in LIMITERS.items():
        cells, p99 = [], []
        for clients in CLIENTS:
            times, tails, _ = zip(*seen[limiter, clients])
            cells.append(f'{min(times):.0f} ({statistics.median(times):.0f})')
            p99.append(f'{min(tails) / 1e3:.1f}')
        grown = '-' if limiter == 'none' else f"{(memory[limiter] - memory['none']) / CLIENTS[1]:.0f}"
        shown = f"{name} {version('tower_governor')}" if limiter == 'governor' else name
        print(f'| {shown} | {kind} | {" | ".join(cells)} | {grown} | {", ".join(p99)} |')
    print(f"\naxum {version('axum')}")


if __name__ == '__main__':
    main()
