"""Compares an axum server without a limiter, with tatcell-tower and with tower_governor: compare.py SERVER

Each has a processor to itself, and wrk another. The runs take turns, and a row has the medians. All requests pass if
there are 100 000 clients, and nearly none if there is one. SECONDS and ROUNDS are variables of the environment."""
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import time

PORT = int(os.environ.get('PORT', 47471))
SECONDS = int(os.environ.get('SECONDS', 4))
ROUNDS = int(os.environ.get('ROUNDS', 3))
LIMITERS = ('none', 'tatcell', 'governor')
CORES = sorted(os.sched_getaffinity(0))


def pinned(core, *command):
    return ['taskset', '-c', str(core), *command]


def listening():
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', PORT)) == 0


def resident(pid):
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    return int(re.search(r'VmRSS:\s+(\d+)', status)[1]) * 1024


def run(server, limiter, clients):
    """Requests a second, p99 in microseconds, the part that was refused, and bytes of the server."""
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
        script = pathlib.Path(__file__).with_name('clients.lua')
        wrk = pinned(CORES[-1], 'wrk', '-t', '1', '-c', '32', '-d', f'{SECONDS}s', '--timeout', '10s', '-s', script,
                     f'http://{url}/', '--', str(clients))
        said = subprocess.run(wrk, check=True, capture_output=True, text=True).stdout
        requests, duration, p99, refused = (int(word) for word in said.splitlines()[-1].split())
        if requests < clients:
            sys.exit(f'{requests} requests are fewer than {clients} clients: raise SECONDS')
        return requests * 1e6 / duration, p99, refused / requests, resident(process.pid)
    finally:
        process.kill()
        process.wait()


def main():
    print('| Clients | Limiter | Requests/s | p99 | Refused | Memory of the limiter |')
    print('|---|---|---|---|---|---|')
    for clients in (100_000, 1):
        seen = {limiter: [] for limiter in LIMITERS}
        for _ in range(ROUNDS):
            for limiter in LIMITERS:
                seen[limiter].append(run(sys.argv[1], limiter, clients))
        middle = {limiter: [statistics.median(each) for each in zip(*runs)] for limiter, runs in seen.items()}
        for limiter in LIMITERS:
            rate, p99, refused, memory = middle[limiter]
            more = '-' if limiter == 'none' else f"{(memory - middle['none'][3]) / 1e6:.1f} MB"
            print(f'| {clients} | {limiter} | {rate:.0f} | {p99 / 1e3:.2f} ms | {refused:.1%} | {more} |', flush=True)


if __name__ == '__main__':
    main()
