"""The module in a real HAProxy: several threads, one table."""

import http.client
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "testing")]

import claims as said  # noqa: E402
import daemon  # noqa: E402
import later  # noqa: E402
import load  # noqa: E402
import measure  # noqa: E402
from claims import Skip, bounded, counted_down, equal, patiently  # noqa: E402

# As in the README, but for ports and paths, and with a key of the request's own where a claim needs many.
CONF = """
global
    nbthread {threads}
    stats socket {folder}/stats mode 600 level admin
    lua-prepend-path {build}/?.so cpath
    lua-load-per-thread {folder}/limit.lua
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend web
    bind 127.0.0.1:{port}
    bind unix@{folder}/socket
    bind unix@{folder}/proxied accept-proxy
    acl named req.hdr(x-key) -m found
    http-request set-var(txn.wait) req.hdr(x-key),lua.tatcell if named
    http-request set-var(txn.wait) src,ipmask(32,64),lua.tatcell unless named
    http-request lua.tatcell_no_source unless {{ src -m found }}
    acl refused var(txn.wait) -m int gt 0
    http-request return status 429 hdr Retry-After %[var(txn.wait)] if refused
    http-request return status 200 hdr X-Wait %[var(txn.wait)] content-type text/plain string "here"
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Haproxy:
    def __init__(self, given, numbers, threads=2, undecided="false", environment=None):
        if not shutil.which("haproxy"):
            raise Skip("haproxy is not installed: apt-get install haproxy")
        self.port, self.folder, self.environment = free_port(), given.build / "run", environment
        self.folder.mkdir(parents=True, exist_ok=True)
        recipe = (HERE.parent / "limit.lua").read_text()
        assert "rate = 10, burst = 20" in recipe
        recipe = recipe.replace("rate = 10, burst = 20", numbers)
        assert "local refuse_undecided = false" in recipe
        recipe = recipe.replace("local refuse_undecided = false", "local refuse_undecided = " + undecided)
        self.recipe = self.folder / "limit.lua"
        self.recipe.write_text(recipe)
        self.conf = self.folder / "haproxy.cfg"
        self.conf.write_text(CONF.format(threads=threads, folder=self.folder, build=given.build, port=self.port))

    def check(self):
        done = subprocess.run(["haproxy", "-c", "-f", str(self.conf)], capture_output=True, text=True, timeout=30)
        return done.returncode == 0, done.stdout + done.stderr

    def __enter__(self):
        self.log = open(self.folder / "log", "w+")
        self.process = subprocess.Popen(["haproxy", "-db", "-f", str(self.conf)], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, env=self.environment)
        for _ in range(200):
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return self
            except OSError:
                time.sleep(0.05)
            if self.process.poll() is not None:
                break
        self.__exit__()
        raise AssertionError("haproxy does not answer: " + (self.folder / "log").read_text()[-600:])

    def __exit__(self, *_):
        daemon.end(self.process)
        self.log.close()

    def get(self, key=None, path=None, source=None):
        """The status and when to come back; from a source that a proxy names."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        if path or source:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(path or self.folder / "proxied"))
        if source:
            family = "TCP6" if ":" in source else "TCP4"
            connection.sock.sendall(f"PROXY {family} {source} {source} 1 2\r\n".encode())
        connection.request("GET", "/", headers={"x-key": key} if key else {})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, answer.getheader("retry-after")


def main():
    given = daemon.arguments()
    if given.measure:
        measure.run(given, given.seconds, given.rounds)
        return
    claims = said.Claims()

    def built():
        if not pathlib.Path("/usr/include/lua5.3/lua.h").exists():
            raise Skip("no headers of Lua: apt-get install liblua5.3-dev")
        done = subprocess.run(["make", "-s", "-C", str(HERE.parent), "all", f"STAGE={given.stage}",
                               f"BUILD={given.build}"], capture_output=True, text=True, env={
                                   k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")})
        assert done.returncode == 0, done.stderr
    claims.claim("the_module_builds_without_a_warning", built)
    if not claims.passed:
        claims.end()

    # All that follows asks the converter of C, if it was built, and otherwise that of Lua.
    def converter():
        if not os.environ.get("HAPROXY_SRC"):
            raise Skip("the module was built without it: make HAPROXY_SRC=folder of the unpacked source of HAProxy")
        with Haproxy(given, "rate = 1, burst = 1") as h:
            h.recipe.write_text(h.recipe.read_text().replace("if limits.converter then", "if true then"))
            equal(h.get()[0], 200)
    claims.claim("the_module_has_the_converter_of_c", converter)

    def burst():
        with Haproxy(given, "rate = 1, per = 60, burst = 3") as h:
            start = time.monotonic()
            equal([h.get()[0] for _ in range(5)], [200] * 3 + [429] * 2)
            counted_down("%s %s" % h.get(), "429 {}", 60, start)
            equal(h.get("another")[0], 200)
    claims.claim("a_burst_passes_and_then_429_tells_when_to_come_back", burst)

    def sources():
        with Haproxy(given, "rate = '1/h burst 2'") as h:
            for share, other in (["2001:db8:0:1::1", "2001:db8:0:1:ffff::2"], "2001:db8:0:2::1"), \
                                (["192.0.2.1", "192.0.2.1"], "192.0.2.2"):
                found = [h.get(source=share[i % 2])[0] for i in range(4)]
                equal(found, [200, 200, 429, 429], share)
                equal(h.get(source=other)[0], 200, other)
    claims.claim("a_source_is_an_ipv4_address_or_the_network_of_an_ipv6_one", sources)

    def threads():
        with Haproxy(given, "rate = 1, per = 3600, burst = 40", threads=4) as h:
            # Connections of their own: all threads are asked.
            equal([h.get("x")[0] for _ in range(120)].count(200), 40)
    claims.claim("all_threads_ask_one_table", threads)

    def silent():
        clock = later.Later(given.build)
        haproxy = Haproxy(given, "rate = 10, burst = 20", environment=clock.environment)
        with haproxy.recipe.open("a") as recipe:
            recipe.write("core.register_fetches('live', function () return (limits:stats()) end)\n"
                         "core.register_fetches('check', function () return tostring(limits:check('x', 20)) end)\n")
        for ask in "live", "check":
            line = f"    http-request return status 200 hdr Retry-After %[lua.{ask}] if {{ req.hdr(x-key) {ask} }}\n"
            haproxy.conf.write_text(haproxy.conf.read_text().replace("    http-request", line + "    http-request", 1))
        with haproxy as h:
            for silence in later.SILENCES:
                # Each ask ends a silence of its own. An old debt would refuse one of the burst.
                for key, times, want in ("live", 1, (200, "0")), ("x", 20, (200, None)), ("check", 1, (200, "true")):
                    assert any(h.get("x")[0] == 429 for _ in range(500)), "nobody is refused"
                    clock.move(silence)
                    equal([h.get(key) for _ in range(times)], [want] * times, f"{key} {silence} ns later")
    claims.claim("nobody_waits_for_an_old_debt_after_a_silence", silent)

    def exact():
        with Haproxy(given, "rate = 100, burst = 10", threads=2) as h:
            start = time.monotonic()
            total, refused, _, _, _ = load.wrk(h.port, "/", seconds=3, connections=16)
            passed, bound = total - refused, 10 + (time.monotonic() - start) * 100
            bounded(passed, bound)
            assert refused > 5000 and passed >= 100, f"too few requests: {passed} passed, {refused} did not"
    claims.claim("threads_admit_no_more_than_the_rate_under_load", patiently(exact))

    def undecided():
        # Who comes by a socket of this machine has no address.
        for word, status in [("false", 200), ("true", 429)]:
            with Haproxy(given, "rate = 10, burst = 20", threads=1, undecided=word) as h:
                start = time.monotonic()
                equal([h.get(path=h.folder / "socket")[0] for _ in range(30)], [status] * 30, word)
                most = time.monotonic() - start + 2
                equal(h.get()[0], 200, "who has an address")
                log = (h.folder / "log").read_text()
                lines = [line for line in log.splitlines() if "tatcell: the source is not an address" in line]
                assert 1 <= len(lines) <= most, (len(lines), log[-300:])
                assert ("refused" if status == 429 else "passed") in lines[0], lines[0]
    claims.claim("who_gets_no_verdict_passes_or_not_as_it_is_set_and_is_logged_once_a_second", undecided)

    def documented():
        # The settings of the README, with a port, a path and a backend of this machine.
        with Haproxy(given, "rate = 1, per = 60, burst = 3") as h:
            pass
        block = (HERE.parent / "README.md").read_text().split("```haproxy\n")[1].split("```")[0]
        for there, here in [("/usr/local/lib/haproxy", str(given.build)), (":80", f"127.0.0.1:{h.port}"),
                            ("/etc/haproxy", str(h.folder)), ("frontend", "defaults\n    mode http\n    timeout "
                             "client 9s\n    timeout connect 9s\n    timeout server 9s\nfrontend")]:
            assert there in block, there
            block = block.replace(there, here)
        h.conf.write_text(block + "backend app\n    http-request return status 200\n")
        with h:
            start = time.monotonic()
            equal([h.get()[0] for _ in range(5)], [200] * 3 + [429] * 2)
            counted_down("%s %s" % h.get(), "429 {}", 60, start)
    claims.claim("the_settings_of_the_readme_do_what_it_says", documented)

    def refused():
        daemon.refuses(lambda options: Haproxy(given, options).check(), [
            ("rate = 0", "rate must be"), ("burst = 5", "rate must be"),
            ("rate = 1, burst = -1", "burst must be"), ("rate = 1, per = 0", "per must be"),
            ("rate = 1, policy = 'none'", "policy must be admit, inherit"),
            ("rate = '10/fortnight'", 'at byte 3, "fortnight"'), ("rate = '5/m', per = 2", "5/15min"),
            ("rate = 2000000000", "tatcell: clients: rate and burst do not fit"),
            ("rate = 1, brust = 3", "unknown option brust: use name, rate"),
        ], "rate = 10, burst = 20")
    claims.claim("a_wrong_option_is_named_when_the_configuration_is_read", refused)
    claims.end()


if __name__ == "__main__":
    main()
