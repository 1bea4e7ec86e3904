"""The servers next to what stands in their place: processor time a request, p50 and p99 under load, on 1 and 2 cores.

    tests/measure.py throttled    next to redis-cell in Redis, and to INCR of the same Redis: redis-benchmark
    tests/measure.py ratelimit    Envoy with the server and without it: wrk

Every round asks all in turn, so that a busy moment of the machine hits all of them. On 1 core the servers have the
first core, and who asks has the others. TATCELL_REDIS_CELL and TATCELL_ENVOY are as tests/fetch.sh prints them.
"""

import argparse
import contextlib
import csv
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "integrations" / "testing")]

import figures  # noqa: E402
import load  # noqa: E402

BINARIES = HERE.parent / "target" / "release"
RULES = """
domain: edge
descriptors:
  - key: path
    rate_limit: {unit: second, requests_per_unit: %d}
"""

# A listener that asks the server, if there is a filter, before the other one answers.
ENVOY = """
admin: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {admin} }} }} }}
static_resources:
  listeners:
  - address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {{ prefix: "/" }}
                route:
                  cluster: app
                  rate_limits:
                  - actions: [ {{ request_headers: {{ header_name: ":path", descriptor_key: path }} }} ]
          http_filters:
          {filter}
          - name: envoy.filters.http.router
            typed_config: {{ "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
  - address: {{ socket_address: {{ address: 127.0.0.1, port_value: {app} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: app
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {{ prefix: "/" }}
                direct_response: {{ status: 200, body: {{ inline_string: "here" }} }}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{ "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
  clusters:
  - name: app
    type: STATIC
    load_assignment:
      cluster_name: app
      endpoints:
      - lb_endpoints:
        - endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {app} }} }} }}
  {limits}
"""

FILTER = """- name: envoy.filters.http.ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
              domain: edge
              failure_mode_deny: true
              timeout: 5s
              rate_limit_service:
                transport_api_version: V3
                grpc_service: { envoy_grpc: { cluster_name: limits } }"""

LIMITS = """- name: limits
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http2_protocol_options: {} }
    load_assignment:
      cluster_name: limits
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: %d } } }"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cores(count):
    """The cores of the servers, and of who asks."""
    all_of_them = sorted(os.sched_getaffinity(0))
    return (all_of_them[:1], all_of_them[1:] or all_of_them) if count == 1 else (all_of_them, all_of_them)


@contextlib.contextmanager
def server(line, port, on, folder):
    """A process on these cores, when it listens."""
    with open(pathlib.Path(folder) / f"log{port}", "w+") as log:
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   preexec_fn=lambda: os.sched_setaffinity(0, on))
        try:
            end = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    log.seek(0)
                    assert process.poll() is None and time.monotonic() < end, log.read()[-600:]
                    time.sleep(0.05)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def asked(port, on, count, pipeline, command):
    """Commands a second, p50 and p99 in ms."""
    done = subprocess.run(["redis-benchmark", "-p", str(port), "-n", str(count), "-c", "50", "-P", str(pipeline), "-r",
                           "100000", "--csv", *command], capture_output=True, text=True, timeout=300,
                          preexec_fn=lambda: os.sched_setaffinity(0, on))
    assert done.returncode == 0 and "rror" not in done.stdout, done.stdout + done.stderr
    row = list(csv.DictReader(done.stdout.splitlines()))[-1]
    return float(row["rps"]), float(row["p50_latency_ms"]), float(row["p99_latency_ms"])


def throttled(given):
    throttle = ["CL.THROTTLE", "user:__rand_int__", "15", "30", "60"]
    cell = os.environ.get("TATCELL_REDIS_CELL")
    which = [("tatcell-throttled", throttle)]
    if cell:
        which.append(("redis-cell", throttle))
    else:
        print("SKIP redis-cell: set TATCELL_REDIS_CELL as tests/fetch.sh servers prints it")
    which.append(("INCR of Redis", ["INCR", "user:__rand_int__"]))
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()[2]
    print(f"Redis {version}, redis-benchmark -c 50 -r 100000, {given.rounds} rounds; {figures.machine()}")
    for count in 1, 2:
        own, others = cores(count)
        print(f"\n{count} cores for the servers")
        figures.head([name for name, _ in which], "commands/s / p50 ms / p99 ms / CPU us")
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            at = {}
            for name, _ in which:
                port = free_port()
                line = ["redis-server", "--port", str(port), "--save", "", "--dir", folder]
                if name == "redis-cell":
                    line += ["--loadmodule", cell]
                if name == "tatcell-throttled":
                    line = [str(BINARIES / name), "--listen", f"127.0.0.1:{port}", "--metrics",
                            f"127.0.0.1:{free_port()}", "--threads", str(count)]
                at[name] = port, stack.enter_context(server(line, port, own, folder))
            for pipeline, commands in (1, given.commands), (16, 8 * given.commands):
                def ask(name):
                    port, process = at[name]
                    before = figures.cpu_seconds([process.pid])
                    rate, p50, p99 = asked(port, others, commands, pipeline, dict(which)[name])
                    return rate, p50, p99, (figures.cpu_seconds([process.pid]) - before) / commands * 1e6
                figures.row(f"{pipeline} at once on each connection", list(at), given.rounds, ask)


def ratelimit(given):
    envoy = os.environ.get("TATCELL_ENVOY") or shutil.which("envoy")
    if not envoy:
        print("SKIP Envoy: set TATCELL_ENVOY as tests/fetch.sh servers prints it")
        return
    said = subprocess.run([envoy, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"/(\d+\.\d+\.\d+)", said)
    print(f"Envoy {version[1] if version else said}, wrk -t1 -c64, {given.rounds} rounds of "
          f"{given.seconds} s; {figures.machine()}")
    for count in 1, 2:
        own, others = cores(count)
        names = ["no limiter", "all pass", "nearly all refused"]
        print(f"\n{count} cores for Envoy and the server")
        figures.head(names, "requests/s / p50 ms / p99 ms / CPU us of Envoy / of the server")
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            at = {}
            for name in names:
                port, limits = free_port(), free_port()
                pids = [None]
                if name != "no limiter":
                    rules = folder / f"rules{limits}.yaml"
                    rules.write_text(RULES % (100 if "refused" in name else 1000000))
                    line = [str(BINARIES / "tatcell-ratelimit"), "--rules", str(rules), "--listen",
                            f"127.0.0.1:{limits}", "--metrics", f"127.0.0.1:{free_port()}", "--threads", str(count)]
                    pids = [stack.enter_context(server(line, limits, own, folder)).pid]
                conf = folder / f"envoy{port}.yaml"
                limited = name != "no limiter"
                conf.write_text(ENVOY.format(
                    port=port, admin=free_port(), app=free_port(), filter=FILTER if limited else "",
                    limits=LIMITS % limits if limited else ""))
                line = [envoy, "-c", str(conf), "--concurrency", str(count), "--use-dynamic-base-id", "-l", "error"]
                at[name] = port, stack.enter_context(server(line, port, own, folder)).pid, pids[0]
            os.sched_setaffinity(0, others)  # wrk has the cores of its parent

            def ask(name):
                port, proxy, limiter = at[name]
                pids = [proxy] + ([limiter] if limiter else [])
                before = [figures.cpu_seconds([pid]) for pid in pids]
                total, refused, rate, p50, p99 = load.wrk(port, "/hot", given.seconds, 64, threads=1)
                spent = [(figures.cpu_seconds([pid]) - b) / total * 1e6 for pid, b in zip(pids, before)]
                assert (refused / total > 0.5) == ("refused" in name) and ("refused" in name or not refused), \
                    (name, refused, total)
                return (rate, p50, p99, *spent)
            figures.row("1 hot key", names, given.rounds, ask)
            os.sched_setaffinity(0, set(own) | set(others))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("server", choices=["throttled", "ratelimit"])
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commands", type=int, default=20000)
    given = parser.parse_args()
    {"throttled": throttled, "ratelimit": ratelimit}[given.server](given)


if __name__ == "__main__":
    main()
