"""The recipe in a real dnsdist: floods over loopback from one address and from many."""

import contextlib
import os
import pathlib
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "testing")]

import claims as said  # noqa: E402
import daemon  # noqa: E402
import later  # noqa: E402
import measure  # noqa: E402
from claims import Skip, bounded, equal, patiently  # noqa: E402

CONF = """
setSecurityPollSuffix("")
setLocal("127.0.0.1:{port}", {{ reusePort = true }})
setACL("127.0.0.0/8")
addLocal("127.0.0.1:{port}", {{ reusePort = true }})
local tatcell = dofile("{recipe}")
addAction(AllRule(), tatcell.limit {{ {options} }})
{more}
addAction(AllRule(), SpoofAction({{ "192.0.2.1" }}))
tatcell = nil
collectgarbage()
collectgarbage()
"""

# Of ask: as many questions as there is time for.
ENDLESS = 10 ** 9
# Seconds for answers that must come; whoever has them all waits no longer.
PATIENCE = 10


def free_port():
    """One that is free for UDP and for TCP."""
    while True:
        with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            try:
                udp.bind(tcp.getsockname())
            except OSError:
                continue
            return tcp.getsockname()[1]


def question(number):
    name = b"".join(bytes([len(label)]) + label for label in (b"www", b"example", b"org")) + b"\0"
    return struct.pack(">HHHHHH", number & 0xffff, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)


class Dnsdist:
    def __init__(self, given, options, more="", environment=None):
        if not shutil.which("dnsdist"):
            raise Skip("dnsdist is not installed: apt-get install dnsdist")
        self.port = free_port()
        self.folder = given.build / "run"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.conf = self.folder / "dnsdist.conf"
        self.conf.write_text(CONF.format(port=self.port, recipe=given.build / "tatcell.lua", options=options,
                                         more=more))
        self.environment = {**(environment or os.environ), "TATCELL_PREFIX": str(given.stage)}

    def check(self):
        done = subprocess.run(["dnsdist", "-C", str(self.conf), "--check-config"], capture_output=True, text=True,
                              env=self.environment, timeout=30)
        return done.returncode == 0, done.stdout + done.stderr

    def __enter__(self):
        self.log = open(self.folder / "log", "w+")
        self.process = subprocess.Popen(["dnsdist", "--supervised", "--disable-syslog", "-C", str(self.conf)],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=self.environment)
        # Another address than those of the claims asks until there is an answer.
        for _ in range(100):
            if self.ask("127.9.9.9", 1, seconds=0.05)[0]:
                return self
            if self.process.poll() is not None:
                break
        self.__exit__()
        self.log = open(self.folder / "log")
        raise AssertionError("dnsdist does not answer: " + self.log.read()[-600:])

    def __exit__(self, *_):
        daemon.end(self.process)
        self.log.close()

    def ask(self, source, count, seconds, pause=0.0):
        """Sends so many questions from an address; how many are answered, and how many of these with TC=1.

        It ends once all are answered, or else after so many seconds, when all are sent and 0.3 s passed in silence.
        """
        full = truncated = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind((source, 0))
            s.connect(("127.0.0.1", self.port))
            s.setblocking(False)
            last = time.monotonic()
            end = last + seconds
            sent = 0
            while full + truncated < count and (
                    (now := time.monotonic()) < end or (count < ENDLESS and (sent < count or now < last + 0.3))):
                if sent < count:
                    try:
                        s.send(question(sent))
                        sent += 1
                        last = now
                    except (BlockingIOError, ConnectionRefusedError):
                        time.sleep(0.01)
                    if pause:
                        time.sleep(pause)
                if sent == count:
                    select.select([s], [], [], 0.02)
                try:
                    answer = s.recv(512)
                except (BlockingIOError, ConnectionRefusedError):
                    continue
                last = now
                if answer[2] & 2:
                    truncated += 1
                else:
                    full += 1
        return full, truncated

    def dropped(self):
        """Datagrams for which the sockets of the server had no room."""
        rows = [line.split() for line in pathlib.Path("/proc/net/udp").read_text().splitlines()[1:]]
        return sum(int(row[-1]) for row in rows if row[1].endswith(f":{self.port:04X}"))

    def wait_for(self, words):
        end = time.monotonic() + 20
        while words not in (self.folder / "log").read_text():
            assert time.monotonic() < end, f"no {words} in the log"
            time.sleep(0.05)

    def told(self):
        """The counts in the log's lines about questions without a verdict."""
        return [int(n) for n in re.findall(r"tatcell: (\d+) questions got no", (self.folder / "log").read_text())]

    def ask_once(self, sources, seconds):
        """Sends one question from each address, all together; how many are answered."""
        with contextlib.ExitStack() as stack:
            asked = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in sources]
            for s, source in zip(asked, sources):
                s.bind((source, 0))
                s.connect(("127.0.0.1", self.port))
            for s in asked:
                s.send(question(1))
            time.sleep(seconds)
            return sum(bool(select.select([s], [], [], 0)[0]) for s in asked)


def main():
    given = daemon.arguments()
    if given.measure:
        measure.run(sys.modules[__name__], given, given.seconds, given.rounds)
        return
    claims = said.Claims()

    def built():
        done = subprocess.run(["make", "-s", "-C", str(HERE.parent), f"STAGE={given.stage}", f"BUILD={given.build}"],
                              capture_output=True, text=True, env={
                                  k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")})
        assert done.returncode == 0, done.stderr
    claims.claim("the_action_builds_without_a_warning", built)
    if not claims.passed:
        claims.end()

    def burst():
        with Dnsdist(given, "rate = 1, burst = 5, slip = 0") as d:
            equal(d.ask("127.0.0.2", 5, PATIENCE), (5, 0))
            full, truncated = d.ask("127.0.0.2", 50, 0.3)
            assert full <= 2 and truncated == 0, (full, truncated)
            equal(d.ask("127.0.0.3", 5, PATIENCE), (5, 0), "another address")
    claims.claim("an_address_has_its_burst_and_no_more", patiently(burst))

    def silent():
        clock = later.Later(given.build)
        for networks in ("true", "false"):
            options = f"rate = 10, burst = 20, slip = 0, networks = {networks}"
            with Dnsdist(given, options, environment=clock.environment) as d:
                for silence in later.SILENCES:
                    assert d.ask("127.0.0.2", 200, 0.1)[0] < 200, "nobody is refused"
                    clock.move(silence)
                    equal(d.ask("127.0.0.2", 1, PATIENCE), (1, 0), f"{silence} ns later")
    claims.claim("nobody_waits_for_an_old_debt_after_a_silence", patiently(silent))

    def flood():
        with Dnsdist(given, "rate = '50/s burst 10', slip = 0") as d:
            start = time.monotonic()
            got = []
            threads = [threading.Thread(target=lambda: got.append(d.ask("127.0.0.2", ENDLESS, 2.5, pause=0.0005)))
                       for _ in range(2)]
            quiet = []
            threads.append(threading.Thread(target=lambda: quiet.append(d.ask("127.77.0.1", 40, 2.5, pause=0.05))))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            bound = 10 + (time.monotonic() - start) * 50
            full = sum(f for f, _ in got)
            bounded(full, bound)
            # A server that gets no processor for a while answers less than the 135 of this time.
            assert full >= 50, full
            if 0 < 40 - sum(f for f, _ in quiet) <= d.dropped():
                raise Skip("datagrams were dropped before dnsdist read them: run it on a quieter machine")
            equal(quiet, [(40, 0)], "a quiet client beside it:")
    claims.claim("two_threads_answer_a_flood_no_faster_than_its_rate_and_others_as_ever", patiently(flood))

    def slip():
        with Dnsdist(given, "rate = 1, burst = 5, slip = 2") as d:
            full, truncated = d.ask("127.0.0.2", 105, 0.6, pause=0.002)
            refused = 105 - full
            assert 5 <= full <= 7, full
            assert abs(truncated - refused / 2) <= 1, (truncated, refused)
    claims.claim("every_second_refusal_is_a_truncated_answer", patiently(slip))

    def network():
        # The /24 has 32 times the limit of one address: 64 at once, and 32 a second.
        with Dnsdist(given, "rate = 1, burst = 2, slip = 0") as d:
            start = time.monotonic()
            full = d.ask_once([f"127.0.5.{i}" for i in range(1, 201)], 0.3)
            bound = 64 + 32 * (time.monotonic() - start)
            bounded(full, bound)
            assert full >= 64, full
            equal(d.ask_once(["127.99.0.1", "127.99.1.1"], 0.3), 2, "another network")
    claims.claim("addresses_of_one_network_share_its_limit", patiently(network))

    def alone():
        with Dnsdist(given, "rate = 1, burst = 2, slip = 0, networks = false") as d:
            equal(d.ask_once([f"127.0.5.{i}" for i in range(1, 201)], 0.3), 200)
            full, _ = d.ask("127.0.6.1", 20, 0.3)
            assert 2 <= full <= 4, full
    claims.claim("without_networks_an_address_has_its_limit_alone", patiently(alone))

    def undecided():
        # A ladder that is gone has no verdicts.
        gone = given.build / "gone"
        for word, answers in [("pass", 20), ("refuse", 0)]:
            gone.unlink(missing_ok=True)
            with Dnsdist(given, f'rate = 1, burst = 1, slip = 0, undecided = "{word}"',
                         f'LADDER = TATCELL_KEPT[1][2]\nfunction maintenance() TATCELL_TELL() local f = io.open("{gone}") '
                         'if f and not GONE then require("ffi").fill(LADDER, 64) GONE = true errlog("it is gone") end '
                         'end') as d:
                gone.write_text("")
                d.wait_for("it is gone")
                equal(d.ask("127.0.0.2", 20, PATIENCE if answers else 0.5), (answers, 0), word)
                # A second may end among the questions.
                end = time.monotonic() + 10
                while sum(d.told()) < 20 and time.monotonic() < end:
                    time.sleep(0.1)
                assert sum(d.told()) == 20 and len(d.told()) <= 2, d.told()
    claims.claim("what_gets_no_verdict_passes_or_not_as_it_is_set_and_is_logged_once_a_second", patiently(undecided))

    def documented():
        # The lines of the README, from this folder, before the rule that answers.
        block = (HERE.parent / "README.md").read_text().split("```lua\n")[1].split("```")[0]
        assert '"/usr/local/lib/dnsdist/tatcell.lua"' in block
        d = Dnsdist(given, "rate = 1")
        lines = d.conf.read_text().splitlines()
        at = [i for i, line in enumerate(lines) if line.startswith("local tatcell")][0]
        lines[at:at + 2] = [block.replace("/usr/local/lib/dnsdist", str(given.build))]
        d.conf.write_text("\n".join(lines))
        with d:
            equal(d.ask("127.0.0.2", 50, PATIENCE), (50, 0))
            full, truncated = d.ask("127.0.0.2", 100, 0.5)
            assert full <= 30 and truncated >= 30, (full, truncated)
    claims.claim("the_lines_of_the_readme_do_what_it_says", patiently(documented))

    def refused():
        daemon.refuses(lambda options: Dnsdist(given, options).check(), [
            ("burst = 5", "rate must be"), ("rate = 0", "rate must be"), ("rate = 1, burst = 1.5", "burst must be"),
            ("rate = 1, slots = 1", "slots must be"), ("rate = 1, slip = -1", "slip must be"),
            ("rate = 1, undecided = 'maybe'", "undecided must be"), ("rate = 1, networks = 4", "networks must be"),
            ("rate = 1, brust = 3", "unknown option brust: use rate, burst"),
            ("rate = '10/fortnight'", 'at byte 3, "fortnight"'), ("rate = '5/s', burst = 0", "burst must be"),
            ("rate = 2000000000", "its burst do not fit"),
        ], "rate = 20, burst = 50")
    claims.claim("a_wrong_option_is_named_when_the_configuration_is_read", refused)
    claims.end()


if __name__ == "__main__":
    main()
