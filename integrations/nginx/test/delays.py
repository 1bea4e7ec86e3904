"""tatcell beside limit_req in one server: the same requests at one time, the same verdicts, the same departures."""

import random
import re
import threading
import time

from claims import Skip, equal, patiently


def moved(line):
    """A limit_req configuration moved over, by the rules of MOVING.md."""
    line = re.sub(r"limit_req_zone (\S+) zone=(\w+):", r"tatcell_zone \1 zone=moved_\2:", line)
    line = re.sub(r"limit_req zone=(\w+)", r"tatcell zone=moved_\1", line)
    line = re.sub(r"(burst|delay)=(\d+)", lambda m: f"{m[1]}={int(m[2]) + 1}", line)
    return line.replace("limit_req_", "tatcell_")


class Oracle:
    """The exact bucket: burst + 1 requests at one instant, as limit_req counts; times in seconds."""

    def __init__(self, rate, burst):
        self.interval, self.tolerance, self.tat = 1 / rate, burst / rate, 0.0

    def margin(self, now):
        """How far the request is from the border; below 0 it does not conform."""
        return self.tolerance - max(0.0, self.tat - now)

    def pass_at(self, now):
        self.tat = max(self.tat, now) + self.interval


def side_by_side(n, paths, times):
    """Sends a request to every path at each of these times; returns statuses and times of the answers by path."""
    answers = {path: [None] * len(times) for path in paths}
    start = time.monotonic() + 0.2

    def one(path, i):
        time.sleep(max(0, start + times[i] - time.monotonic()))
        answer = n.get(path)
        answers[path][i] = (answer.status, answer.sent - start, answer.sent + answer.seconds - start)

    threads = [threading.Thread(target=one, args=(p, i)) for i in range(len(times)) for p in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def claims(claims, server):
    def verdicts():
        rate, burst, seed = 5, 4, 7
        chance, oracle = random.Random(seed), Oracle(rate, burst)
        times, wanted, now = [], [], 0.0
        while len(times) < 60:
            now += chance.choice([0.03, 0.04, 0.05, 0.09, 0.17, 0.26, 0.9])
            # Requests take milliseconds to arrive: none is sent where that would decide.
            if abs(oracle.margin(now)) < 0.03:
                now += 0.06
            if abs(oracle.margin(now)) < 0.03:
                continue
            good = oracle.margin(now) > 0
            if good:
                oracle.pass_at(now)
            times.append(now)
            wanted.append(200 if good else 429)
        http = f"limit_req_zone $arg_k zone=a:1m rate={rate}r/s; limit_req_status 429;"
        use = f"limit_req zone=a burst={burst} nodelay;"
        with server() as n:
            n.start(http=http + moved(http),
                    server=f"location / {{ {use} }} location /page {{ {moved(use)} }}")
            got = side_by_side(n, ["/?k=x", "/page?k=x"], times)
            found = {path: [a[0] for a in answers] for path, answers in got.items()}
            late = max(a[1] - t for answers in got.values() for a, t in zip(answers, times))
            if late > 0.02:
                raise Skip(f"requests left {late * 1000:.0f} ms late, where 30 decide: run it on a quieter machine")
            assert 0 < wanted.count(429) < len(wanted) / 2
            equal(found["/?k=x"], wanted, f"limit_req, seed {seed}:")
            equal(found["/page?k=x"], wanted, f"tatcell, seed {seed}:")
    claims.claim("moved_configurations_give_the_verdicts_of_limit_req", patiently(verdicts))

    def departures(use, count, passes):
        http = "limit_req_zone $arg_k zone=a:1m rate=20r/s; limit_req_status 429;"
        with server() as n:
            n.start(http=http + moved(http), server=f"location / {{ {use} }} location /page {{ {moved(use)} }}")
            got = side_by_side(n, ["/?k=x", "/page?k=x"], [0] * count)
            late = max(a[1] for answers in got.values() for a in answers)
            if late > 0.04:
                raise Skip(f"requests left {late * 1000:.0f} ms late, where 50 decide: run it on a quieter machine")
            left = {p: sorted(a[2] for a in answers if a[0] == 200) for p, answers in got.items()}
            equal({p: len(times) for p, times in left.items()}, {"/?k=x": passes, "/page?k=x": passes}, "passed:")
            first, second = left.values()
            apart = max(abs(a - b) for a, b in zip(first, second))
            assert apart <= 0.010, f"departures are {apart * 1000:.1f} ms apart"

    for name, use, count, passes in [
        ("delay", "limit_req zone=a burst=20 delay=4;", 30, 21),
        ("burst", "limit_req zone=a burst=12;", 20, 13),
        ("nodelay", "limit_req zone=a burst=9 nodelay;", 20, 10),
        ("no_burst", "limit_req zone=a;", 5, 1),
    ]:
        claims.claim(f"departures_with_{name}_are_those_of_limit_req_within_10_ms",
                     patiently(lambda: departures(use, count, passes)))

    def several():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=slow:1m rate=10r/s burst=6; tatcell_zone $arg_k zone=hard:1m "
                         "rate=1r/h burst=3;",
                    server="location / { tatcell zone=slow; tatcell zone=hard nodelay; } location /stats "
                           "{ tatcell_stats; }")
            got = side_by_side(n, ["/?k=x"], [0] * 6)["/?k=x"]
            equal(sorted(a[0] for a in got), [200] * 3 + [429] * 3)
            left = sorted(a[2] for a in got if a[0] == 200)
            for i in range(3):
                assert 0.1 * i - 0.002 <= left[i] <= 0.1 * i + 0.05, left
            # What the zone without delay refused has no place in the queue of the other one.
            again = n.get("/?k=x")
            equal(again.status, 429)
    claims.claim("a_request_waits_for_the_slowest_zone_and_not_where_another_refuses", patiently(several))

    def never_early():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=50r/s burst=40;",
                    server=f"access_log {n.run}/verdict.log verdict; location / {{ tatcell zone=a; }}")
            got = side_by_side(n, ["/?k=x"], [0] * 30)["/?k=x"]
            left = sorted(a[2] for a in got)
            first = min(a[1] for a in got)
            for i, t in enumerate(left):
                assert t - first >= 0.02 * i - 0.001, f"departure {i} after {t - first:.4f} s"
    claims.claim("no_request_leaves_before_its_time", never_early)
