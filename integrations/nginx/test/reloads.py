"""Reloads, killed workers and a new binary: debts are kept or moved, and nothing is minted."""

import os
import pathlib
import signal
import threading
import time

from claims import Skip, equal
import later
import load
from limits import stats

KEYS = 2000


def conf(**zone):
    """A zone of keys with a burst of 2, and its stats."""
    z = {"size": "256k", "rate": "1r/h", "burst": 2, "key": "$arg_k", "more": "", **zone}
    return {"http": f"tatcell_zone {z['key']} zone=a:{z['size']} rate={z['rate']} burst={z['burst']} {z['more']};",
            "server": "location / { tatcell zone=a nodelay; } location /stats { tatcell_stats top=0; }",
            "level": "notice"}


def passed(n, keys, times):
    """How many of so many requests of each key pass."""
    connection = n.connection()
    count = sum(n.get(f"/page?k=client-{k}", connection).status == 200 for _ in range(times) for k in range(keys))
    connection.close()
    return count


def full(n, keys):
    """Take every key's burst of 2. The server draws its seed, and two keys of 2000 share a line and all 20 bits of their
    tags, and so one burst, in about one run of 500: two such pairs are let go, more are a defect."""
    first = passed(n, keys, 2)
    assert 2 * keys - 4 <= first <= 2 * keys, f"{first} of {2 * keys} passed"
    return first


def claims(claims, server):
    def kept():
        with server() as n:
            n.start(**conf(burst=5))
            equal(passed(n, 1, 7), 5)
            assert n.reload(**conf(burst=6)), n.log()
            equal(passed(n, 1, 2), 1)
            equal(stats(n)["a"]["passed"], 6, "counts of before")
            assert 'zone "a" keeps its debts' in n.log(), n.log()
    claims.claim("a_reload_with_another_burst_keeps_the_debts", kept)

    def units():
        with server() as n:
            n.start(**conf(rate="3r/d", burst=3))
            equal(passed(n, 1, 5), 3)
            # The incident: three a day are used up, and more are needed now.
            assert n.reload(**conf(rate="1000r/d", burst=1000)), n.log()
            equal(passed(n, 1, 1000), 997)
            equal(stats(n)["a"]["passed"], 1000, "counts of before")
            assert n.log().count('zone "a" moved, its debts as units: ') == 1, n.log()
            # Fewer than were used: all of them are.
            assert n.reload(**conf(rate="5r/d", burst=5)), n.log()
            equal(passed(n, 1, 2), 0)
            assert "1 cut" in n.log(), n.log()
            assert n.reload(**conf(rate="7r/d", burst=7)), n.log()
            equal(passed(n, 1, 4), 2)
            equal(n.statuses(8, "/page?k=other"), [200] * 7 + [429])
    claims.claim("a_reload_with_another_rate_keeps_the_units_that_were_used", units)

    def silent():
        # Right after a move comes a silence, and words come round: no request and no timer has swept the new zone.
        with server() as n:
            clock = later.Later(n.run)
            n.environment, main = clock.environment, "env TATCELL_LATER;"
            n.start(**conf(rate="1r/s", burst=60), main=main)
            assert passed(n, 1, 100) < 100, "nobody is refused"
            assert n.reload(**conf(rate="1r/s", burst=60, size="512k"), main=main), n.log()
            assert " debts copied" in n.log() and " 0 debts copied" not in n.log(), n.log()
            # Words come round after a power of two of nanoseconds, of at most a week.
            clock.move(2 ** 50 - later.SECOND)
            equal(passed(n, 1, 60), 60)
    claims.claim("a_debt_that_moved_counts_once_after_a_silence", silent)

    def rates():
        with server() as n:
            by = {"more": "rate_by=$arg_r", "rate": "1r/h", "burst": 5}
            n.start(**conf(**by))
            equal(passed(n, 1, 7), 5)
            assert n.reload(**conf(**by | {"rate": "1r/m"})), n.log()
            # A minute each, of five hours.
            equal(passed(n, 1, 2), 0)
            assert 'zone "a" keeps its debts' in n.log(), n.log()
            assert int(n.get("/page?k=client-0").headers["retry-after"]) > 17000
    claims.claim("a_zone_with_rates_by_key_keeps_the_times", rates)

    def resized(size, more, words):
        with server() as n:
            n.start(**conf())
            first = full(n, KEYS)
            assert n.reload(**conf(size=size, more=more)), n.log()
            equal(passed(n, KEYS, 1), 0, "minted:")
            assert words in n.log(), n.log()
            assert "forgiven: 0 dropped, 0 cut, 0 sets opened" in n.log(), n.log()
            equal(stats(n)["a"]["passed"], first, "counts of before")

    for name, size, more in [
        ("of_twice_the_size", "512k", ""), ("of_another_size", "413k", ""), ("of_half_the_size", "160k", ""),
        ("of_another_policy", "256k", "policy=inherit"), ("of_another_skew", "256k", "skew=5s"),
        ("of_fewer_tag_bits", "256k", "tag_bits=16"),
    ]:
        claims.claim(f"a_reload_to_a_zone_{name}_moves_the_debts_and_mints_nothing",
                     lambda: resized(size, more, 'zone "a" moved, its debts as times: '))

    def moved_and_back():
        with server() as n:
            n.start(**conf())
            equal(passed(n, 50, 2), 100)
            for i in range(6):
                assert n.reload(**conf(size=["512k", "256k"][i % 2])), n.log()
            equal(passed(n, 50, 1), 0, "minted:")
            equal(stats(n)["a"]["policy"], "admit")
    claims.claim("reloads_to_and_fro_mint_nothing", moved_and_back)

    def memory():
        def mapped():
            maps = pathlib.Path(f"/proc/{n.pid()}/maps").read_text().splitlines()
            return sum("/dev/zero" in line or "rw-s" in line for line in maps)
        with server() as n:
            n.start(**conf())
            equal(passed(n, 20, 2), 40)
            before = mapped()
            for more in "policy=inherit", "policy=inherit", "", "", "policy=deny", "policy=deny", "policy=deny":
                assert n.reload(**conf(more=more)), n.log()
                equal(passed(n, 20, 1), 0, "minted:")
                equal(mapped(), before, "shared mappings of the master:")
    claims.claim("memory_that_was_left_is_freed_and_memory_in_use_is_not", memory)

    def too_fast():
        with server() as n:
            n.start(**conf())
            equal(passed(n, 10, 2), 20)
            # 1e6 a second is beyond what the table provides for: a new one is made, and the debts are in it.
            assert n.reload(**conf(rate="1000000r/s", burst=3)), n.log()
            assert 'zone "a" moved, its debts as units: ' in n.log(), n.log()
    claims.claim("a_rate_that_the_table_cannot_have_moves_it", too_fast)

    def other_key():
        with server() as n:
            n.start(**conf())
            equal(passed(n, 10, 3), 20)
            assert n.reload(**conf(key="$arg_k$host")), n.log()
            equal(passed(n, 10, 3), 20)
            assert "has another key" in n.log() and "starts empty" in n.log()
    claims.claim("a_zone_with_another_key_starts_empty_and_says_so", other_key)

    def refused():
        with server() as n:
            n.start(**conf())
            equal(passed(n, 10, 3), 20)
            for bad in conf(more="tag_bits=24"), conf(more="policy=none"), conf(size="16k"):
                assert not n.reload(**bad), "it was taken"
                equal(passed(n, 10, 1), 0)
            assert "cannot get more tag_bits" in n.log()
            assert n.reload(**conf()), n.log()
            equal(passed(n, 10, 1), 0)
    claims.claim("a_reload_that_cannot_be_is_refused_and_the_old_one_goes_on", refused)

    def under_load():
        with server() as n:
            hot = {"rate": "100r/s", "burst": 10}
            n.start(workers=4, **conf(**hot))
            start = time.monotonic()
            thread = threading.Thread(target=load.wrk, args=(n.port, "/page?k=hot", 4, 16))
            thread.start()
            for i in range(5):
                time.sleep(0.5)
                assert n.reload(workers=4, **conf(**hot)), n.log()
            thread.join()
            bound = 10 + (time.monotonic() - start) * 100
            s = stats(n)["a"]
            assert s["rejected"] > 1000 and 100 < s["passed"] <= bound, (s["passed"], s["rejected"], bound)
    claims.claim("reloads_under_load_admit_no_more_than_the_rate", needs_wrk(under_load))

    def rates_under_load():
        with server() as n:
            hot = {"rate": "100r/s", "burst": 10}
            n.start(workers=4, **conf(**hot))
            start = time.monotonic()
            thread = threading.Thread(target=load.wrk, args=(n.port, "/page?k=hot", 4, 16))
            thread.start()
            for i in range(4):
                time.sleep(0.5)
                assert n.reload(workers=4, **conf(**hot | {"rate": ["50r/s", "100r/s"][i % 2]})), n.log()
            thread.join()
            # What old workers charge once the debts are copied, the new ones do not see: at most both limits together.
            bound = 2 * (10 + (time.monotonic() - start) * 100)
            s = stats(n)["a"]
            assert s["rejected"] > 1000 and 100 < s["passed"] <= bound, (s["passed"], s["rejected"], bound)
            equal(n.log().count('zone "a" moved, its debts as units: '), 4)
    claims.claim("old_and_new_workers_admit_at_most_what_both_rates_do", needs_wrk(rates_under_load))

    def killed():
        with server() as n:
            hot = {"rate": "100r/s", "burst": 10}
            n.start(workers=4, **conf(**hot))
            start = time.monotonic()
            thread = threading.Thread(target=load.wrk, args=(n.port, "/page?k=hot", 4, 16))
            thread.start()
            killed = 0
            for _ in range(8):
                time.sleep(0.3)
                for pid in n.children():
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
                n.wait(lambda: len(n.children()) == 4)
            thread.join()
            bound = 10 + (time.monotonic() - start) * 100
            s = stats(n)["a"]
            assert killed >= 30 and s["rejected"] > 1000, (killed, s)
            assert 100 < s["passed"] <= bound, (s["passed"], bound)
            equal(passed(n, 20, 3), 60, "others are served:")
    claims.claim("workers_killed_at_any_moment_mint_nothing_and_block_nobody", needs_wrk(killed))

    def upgraded():
        with server() as n:
            n.start(**conf())
            equal(passed(n, 10, 3), 20)
            old = n.pid()
            os.kill(old, signal.SIGUSR2)
            new_pid = n.run / "nginx.pid"
            n.wait(lambda: (n.run / "nginx.pid.oldbin").exists() and new_pid.exists() and n.pid() != old
                   and n.children())
            os.kill(old, signal.SIGQUIT)
            n.wait(lambda: not pathlib.Path(f"/proc/{old}").exists())
            # As with limit_req, memory is not handed from one master to the next: the new one starts empty.
            equal(passed(n, 10, 3), 20)
    claims.claim("a_binary_upgrade_goes_through_and_starts_with_full_bursts", upgraded)


def needs_wrk(ask):
    def claim():
        if not load.shutil.which("wrk"):
            raise Skip("wrk is not installed: apt-get install wrk")
        ask()
    return claim
