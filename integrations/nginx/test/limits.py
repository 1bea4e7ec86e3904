"""What passes and what does not: bursts, keys, zones together, costs, rates from variables, fields, logs."""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import time
import uuid

from claims import Skip, bounded, counted_down, equal, patiently
import later
import load

FILTER = pathlib.Path(__file__).resolve().parent.parent / "fail2ban" / "nginx-tatcell.conf"
FIELDS = "tatcell_headers ratelimit policy retry_after x;"


def stats(n, path="/stats"):
    return json.loads(n.get(path).body)["zones"]


def claims(claims, server):
    def burst():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=3r/m burst=3;",
                    server="location / { tatcell zone=a nodelay; }")
            start = time.monotonic()
            equal(n.statuses(5, "/?k=x"), [200, 200, 200, 429, 429])
            equal(n.statuses(1, "/?k=y"), [200], "another key")
            counted_down(n.get("/?k=x").headers["retry-after"], "{}", 20, start)
            equal(n.statuses(9, "/"), [200] * 9, "an empty key")
    claims.claim("a_burst_passes_and_the_next_request_is_told_when_to_come_back", burst)

    def comes_back():
        with server() as n:
            clock = later.Later(n.run)
            n.environment = clock.environment
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/m burst=1;",
                    server="location / { tatcell zone=a nodelay; }", main="env TATCELL_LATER;")
            equal(n.statuses(2, "/?k=x"), [200, 429])
            clock.move(60 * later.SECOND)
            equal(n.statuses(2, "/?k=x"), [200, 429])
    claims.claim("who_waits_passes", comes_back)

    def subrequests():
        """Four includes in a page, and 20 requests with a mirror: as many get through as with limit_req."""
        with server() as n:
            places = ["ssi on; default_type text/html; location = /stats { tatcell_stats; }"]
            for x, inc, mirror in (("l", "limit_req zone=li", "limit_req zone=lm"),
                                   ("t", "tatcell zone=ti nodelay", "tatcell zone=tm nodelay")):
                include = f'<!--# include virtual="/inc-{x}" -->'
                places += [f"location = /page-{x} {{ return 200 '{4 * include}'; }}",
                           f"location = /inc-{x} {{ {inc}; try_files /page =404; }}",
                           f"location = /mirrored-{x} {{ mirror /mirror-{x}; try_files /page =404; }}",
                           f"location = /mirror-{x} {{ internal; {mirror}; try_files /page =404; }}"]
            zones = "limit_req_zone %s zone=l%s:1m rate=1r/m; tatcell_zone %s zone=t%s:1m rate=1r/m;"
            n.start(http=zones % (("i",) * 4) + zones % (("m",) * 4), server="".join(places))
            page = n.get("/page").body
            # The first include is asked for all of them: it passes once a minute.
            for shown in 4, 3, 3:
                equal([n.get(f"/page-{x}").body.count(page) for x in "lt"], [shown] * 2, "includes")
            for _ in range(20):
                equal([n.get(f"/mirrored-{x}").status for x in "lt"], [200, 200])
            zones = stats(n)
            equal((zones["tm"]["passed"], zones["tm"]["rejected"]), (1, 19), "mirrored")
    claims.claim("a_subrequest_is_limited_if_its_main_request_was_not", subrequests)

    def fields():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=3r/m burst=3;",
                    server=f"{FIELDS} location / {{ tatcell zone=a nodelay; }} location /off {{ tatcell zone=a nodelay;"
                           " tatcell_headers off; try_files /page =404; }")
            start = time.monotonic()
            first = n.get("/?k=x").headers
            equal([first.get(f) for f in ("ratelimit-policy", "ratelimit", "retry-after", "x-ratelimit-limit",
                                          "x-ratelimit-remaining")],
                  ['"a";q=3;w=60', '"a";r=2;t=20', None, "3", "2"])
            n.statuses(2, "/?k=x")
            last = n.get("/?k=x")
            equal((last.status, last.headers.get("x-ratelimit-remaining")), (429, "0"))
            counted_down(" ".join(last.headers.get(f, "-") for f in ("ratelimit", "retry-after")), '"a";r=0;t={} {}',
                         20, start)
            off = n.get("/off?k=x")
            equal((off.status, [f for f in off.headers if "ratelimit" in f or f == "retry-after"]), (429, []))
    claims.claim("fields_are_on_200_and_429", fields)

    def together():
        with server() as n:
            n.start(http="tatcell_zone $arg_a zone=many:1m rate=1r/h burst=100; tatcell_zone $arg_b zone=few:1m "
                         "rate=1r/h burst=2;",
                    server=f"{FIELDS} location / {{ tatcell zone=many nodelay; tatcell zone=few nodelay; }}"
                           "location = /stats { tatcell_stats; }")
            equal(n.statuses(12, "/?a=1&b=1"), [200] * 2 + [429] * 10)
            # The ten that zone few refused cost nothing in zone many.
            equal(n.get("/?a=1&b=2").headers["ratelimit"].split(", ")[0].split(";")[:2], ['"many"', "r=97"])
            s = stats(n)
            equal((s["many"]["rejected"], s["few"]["rejected"], s["few"]["passed"]), (0, 10, 3))
    claims.claim("several_zones_are_charged_all_or_none", together)

    def shared_debt():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/h burst=2;",
                    server="location /page { tatcell zone=a burst=5 nodelay; } location / { tatcell zone=a nodelay; }")
            equal(n.statuses(4, "/?k=x"), [200, 200, 429, 429])
            equal(n.statuses(5, "/page?k=x"), [200] * 3 + [429] * 2)
    claims.claim("locations_with_other_bursts_share_the_debt_of_a_key", shared_debt)

    def costs():
        with server() as n:
            # Every line is looked for: one key in 64 would share its group of the log with another.
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/h burst=10; tatcell_zone $arg_k zone=b:1m rate=1kB/s "
                         "burst=5000; tatcell_log_interval 0;",
                    server="location / { tatcell zone=a cost=$arg_c nodelay; }"
                           "location /page { tatcell zone=b cost=$arg_c nodelay; }")
            equal([n.get(f"/?k=x&c={c}").status for c in (4, 4, 4, 2, 0, 1)], [200, 200, 429, 200, 200, 429])
            over = n.get("/?k=y&c=11")
            equal((over.status, over.headers.get("retry-after")), (429, None), "a cost above the burst")
            assert "cost 11 is above the burst of 10" in n.log()
            equal(n.get("/?k=z").status, 200, "an empty cost is 1")
            equal([n.get(f"/page?k=x&c={c}").status for c in (4000, 2000, 900)], [200, 429, 200])
    claims.claim("requests_cost_what_a_variable_says", costs)

    def sizes():
        """The same rate and burst in other words: k, m and g before a B are those of nginx, 1024 and its powers."""
        words = ["rate=1kB/h burst=2048", "'rate=1kB/h burst 2kB'", "'rate=1KiB/h burst=2KiB'",
                 "rate=1024B/h burst=2048", "rate=0.001953125mB/2h burst=2048", "'rate=2kB/2hours burst=3' burst=2048"]
        with server() as n:
            n.start(http="".join(f"tatcell_zone $arg_k zone=z{i}:1m {text};" for i, text in enumerate(words)),
                    server="".join(f"location /{i} {{ tatcell zone=z{i} cost=$arg_c nodelay; try_files /page =404; }}"
                                   for i in range(len(words))))
            for i, text in enumerate(words):
                start = time.monotonic()
                for cost, status in (2049, 429), (2048, 200), (1024, 429):
                    answer = n.get(f"/{i}?k=x&c={cost}")
                    equal((answer.status, "retry-after" in answer.headers), (status, cost == 1024), f"{text}, {cost}:")
                counted_down(answer.headers["retry-after"], "{}", 3600, start)
    claims.claim("sizes_of_nginx_and_of_the_library_are_rates", sizes)

    def rates():
        with server() as n:
            n.start(http="""tatcell_rates $arg_p $rate { gold 1r/h burst=7; ~^s 1r/h burst=3; free unlimited; }
                    map $arg_p $by_map { gold '1r/h burst=7'; odd '5 a day'; }
                    tatcell_zone $arg_k zone=a:1m rate=1r/h burst=2 rate_by=$rate;
                    tatcell_zone $arg_k zone=b:1m rate=1r/h burst=2 rate_by=$by_map;""",
                    server="location / { tatcell zone=a nodelay; } location /page { tatcell zone=b nodelay; }"
                           "location /stats { tatcell_stats; }")
            for path in "/", "/page":
                equal(n.statuses(9, path + "?k=1&p=gold").count(200), 7, "gold")
                equal(n.statuses(9, path + "?k=2&p=none").count(200), 2, "the zone's own")
            equal(n.statuses(9, "/?k=3&p=SILVER").count(200), 2, "a regular expression minds the case")
            equal(n.statuses(9, "/?k=4&p=silver").count(200), 3, "by a regular expression")
            equal(n.statuses(30, "/?k=5&p=free").count(200), 30, "unlimited")
            equal(n.statuses(9, "/page?k=6&p=odd").count(200), 2, "no rate: the zone's own")
            s = stats(n)
            equal((s["b"]["bad_rate"], s["a"]["unlimited"]), (9, 30))
            lines = [line for line in n.log().splitlines() if "not a rate that zone" in line]
            equal(len(lines), 1, "lines about a bad rate")
            assert '$by_map is "5 a day"' in lines[0] and "tatcell_rates" in lines[0], lines
    claims.claim("rates_come_from_variables_and_bad_ones_are_counted_and_told", rates)

    def dry_run():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/h burst=2;",
                    server=f"access_log {n.run}/verdict.log verdict; location / {{ tatcell zone=a nodelay; {FIELDS} "
                           "tatcell_dry_run on; } location /stats { tatcell_stats; access_log off; }")
            equal(n.statuses(5, "/?k=x"), [200] * 5)
            equal([v[1] for v in n.verdicts(5)], ["PASSED"] * 2 + ["REJECTED_DRY_RUN"] * 3)
            equal((stats(n)["a"]["dry_run"], stats(n)["a"]["rejected"]), (3, 0))
            assert not [h for h in n.get("/?k=x").headers if "ratelimit" in h], "the client is told"
            assert "refused, dry run," in n.log()
    claims.claim("a_dry_run_counts_and_passes", dry_run)

    def dry_delays():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/m burst=3;",
                    server=f"access_log {n.run}/verdict.log verdict; location / {{ tatcell zone=a; "
                           "tatcell_dry_run on; }")
            start = time.monotonic()
            equal(n.statuses(4, "/page?k=x"), [200] * 4)
            assert time.monotonic() - start < 30, "it waited"
            equal([v[1] for v in n.verdicts(4)], ["PASSED"] + ["DELAYED_DRY_RUN"] * 2 + ["REJECTED_DRY_RUN"])
    claims.claim("a_dry_run_tells_delays_and_makes_none", dry_delays)

    def full(policy, wanted):
        with server() as n:
            n.start(http=f"tatcell_zone $arg_k zone=a:96k rate=1r/h policy={policy};",
                    server="location / { tatcell zone=a nodelay; } location /stats { tatcell_stats top=0; }",
                    level="crit")
            # A busy machine asks less in two seconds than there are slots.
            for _ in range(10):
                load.wrk(n.port, "/page?", seconds=2, connections=16, keys=1000000)
                s = stats(n)["a"]
                if s["passed"] + s["rejected"] > 2 * s["slots"]:
                    break
            assert s["live"] > 0.9 * s["slots"], f"{s['live']} of {s['slots']} slots: not full"
            found = {name: s[name] > 100 for name in ("untracked", "inherited", "forgiven")}
            equal(found, {name: name in wanted for name in found}, str(s))
            equal(s["policy"], policy)
            # Who fails closed never lets more in than there are slots, each of which owes for an hour.
            equal(s["passed"] <= s["slots"], policy in ("inherit", "deny"), f"{s['passed']} of {s['slots']}:")

    for policy, wanted in [("admit", ["untracked"]), ("inherit", ["inherited"]), ("deny", ["untracked"]),
                           ("sampled", ["untracked", "forgiven"])]:
        claims.claim(f"a_full_zone_does_as_its_policy_says_{policy}", lambda: full(policy, wanted))

    def variables():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/m burst=2; tatcell_zone $arg_k zone=d:1m rate=2r/s "
                         "burst=9;",
                    server=f"access_log {n.run}/verdict.log verdict; location / {{ tatcell zone=a nodelay; "
                           "tatcell_status 503; } location /page { tatcell zone=d; }"
                           "location /off { tatcell off; return 204; }")
            equal(n.statuses(3, "/?k=x"), [200, 200, 503])
            n.get("/off")
            n.statuses(2, "/page?k=x")
            found = n.verdicts(6)
            equal(found[0][:4], ["200", "PASSED", "a", "1"])
            equal(found[2][:4] + found[2][5:], ["503", "REJECTED", "a", "0", "0.000"])
            assert 59 < float(found[2][4]) <= 60, found
            equal(found[3], ["204"] + ["-"] * 5)
            equal(found[5][:3], ["200", "DELAYED", "d"])
            assert 0.2 < float(found[5][5]) <= 0.5, found
    claims.claim("variables_say_what_was_decided", patiently(variables))

    def undecided():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/h burst=2;",
                    server="location / { tatcell zone=a nodelay cost=$arg_c; } location /page { tatcell zone=a nodelay "
                           "cost=$arg_c; tatcell_undecided refuse; tatcell_status 503; }"
                           "location /stats { tatcell_stats; }")
            start = time.monotonic()
            equal(n.statuses(20, "/?k=x&c=abc"), [200] * 20)
            equal(n.statuses(5, "/page?k=x&c=-1"), [503] * 5)
            quick = time.monotonic() - start < 0.9
            equal(stats(n)["a"]["undecided"], 25)
            time.sleep(1.1)
            n.get("/?k=x&c=abc")
            lines = [line for line in n.log().splitlines() if "undecided by zone" in line]
            if quick:
                equal(len(lines), 2)
                assert "and 24 more lines were left out" in lines[1], lines
            assert "its cost is not a number: passed" in lines[0], lines
    claims.claim("what_cannot_be_decided_does_as_it_is_told_and_is_logged_once_a_second", undecided)

    def banned():
        """What fail2ban's filter matches in a log with refusals, dry runs, delays and keys that look like addresses."""
        if not shutil.which("fail2ban-regex"):
            raise Skip("fail2ban-regex is not installed: apt-get install fail2ban")
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/h burst=1;",
                    server="tatcell_log_interval 0; location / { tatcell zone=a nodelay; } location /page "
                           "{ tatcell zone=a nodelay; tatcell_dry_run on; }")
            attack = '/?k=x":%20retry%20after%201.0%20s,%20client:%20192.0.2.9,'
            for path in ("/?k=x", "/?k=x", "/?k=x", "/page?k=x", attack, attack):
                n.get(path)
            equal(n.log().count("refused by zone") + n.log().count("refused, dry run,"), 4)
            done = subprocess.run(["fail2ban-regex", "--out", "<ip>", str(n.run / "error.log"), str(FILTER)],
                                  capture_output=True, text=True)
            equal(done.stdout.split(), ["127.0.0.1"] * 3, done.stderr)
    claims.claim("the_filter_for_fail2ban_names_the_client_of_each_refusal", banned)

    def log_lines():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/h burst=1;",
                    server="location / { tatcell zone=a nodelay; } location /page { tatcell zone=a nodelay; "
                           "tatcell_log_interval 0; tatcell_log_level warn; }")
            n.get("/?k=x")
            told = refused = 0
            start = time.monotonic()
            while time.monotonic() < start + 2.6:
                refused += n.statuses(20, "/?k=x").count(429)
            elapsed = time.monotonic() - start
            lines = [line for line in n.log().splitlines() if "refused by zone" in line]
            for line in lines:
                more = re.search(r"and (\d+) more lines", line)
                told += 1 + (int(more[1]) if more else 0)
            assert 2 <= len(lines) <= int(elapsed) + 1, f"{len(lines)} lines in {elapsed:.1f} s"
            assert all("[error]" in line and 'key "x"' in line for line in lines)
            assert 0 < told <= refused and refused - told < refused, (told, refused)
            n.get("/page?k=y")
            n.statuses(5, "/page?k=y")
            lines = [line for line in n.log().splitlines() if 'key "y"' in line and "[warn]" in line]
            equal(len(lines), 5, "lines without an interval")
    claims.claim("refusals_are_logged_once_an_interval_with_the_count_of_the_others", log_lines)

    def keys():
        with server() as n:
            n.start(http="tatcell_zone $binary_remote_addr zone=a:1m rate=1r/h burst=1; tatcell_zone $http_x zone=b:1m "
                         "rate=1r/h burst=1;",
                    server="location / { tatcell zone=a nodelay; } location /page { tatcell zone=b nodelay; }"
                           "location /stats { tatcell_stats; }")
            n.statuses(2, "/")
            n.statuses(2, "/page", X='say "hi"\\there')
            log = n.log()
            assert 'key "127.0.0.1"' in log, log
            assert 'key "say %22hi%22%5cthere"' in log, log
            s = stats(n)
            equal([s[z]["top"][0]["key"] for z in "ab"], ["127.0.0.1", "say %22hi%22%5cthere"])
    claims.claim("keys_are_printable_in_log_and_stats", keys)

    def redirect():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/h burst=4;",
                    server="error_page 404 = /page?$args;"
                           "location / { tatcell zone=a nodelay; try_files /nowhere /page; }"
                           "location /gone { tatcell zone=a nodelay; }"
                           "location = /page { tatcell zone=a nodelay; } location /stats { tatcell_stats; }")
            equal(n.statuses(3, "/?k=x"), [200] * 3)
            equal(stats(n)["a"]["passed"], 3)
            equal(n.get("/gone/?k=x").status, 200)
            equal(n.statuses(1, "/?k=x"), [429])
    claims.claim("a_request_is_charged_once_however_it_is_sent_on", redirect)

    def counted():
        with server() as n:
            n.start(workers=2,
                    http="tatcell_zone $arg_k zone=a:1m rate=1r/h burst=5; tatcell_zone $arg_k zone=b:1m rate=1r/h;",
                    server="location / { tatcell zone=a nodelay; } location /stats { tatcell_stats; }"
                           "location /metrics { tatcell_stats prometheus; }")
            for _ in range(20):
                n.get("/?k=x")
            n.get("/?k=y")
            s = stats(n)["a"]
            equal((s["passed"], s["rejected"], s["live"], s["rate"], s["policy"]), (6, 15, 2, "1r/h", "admit"))
            equal(sum(p["rejected"] for p in s["processes"].values()), 15)
            assert s["slots"] > 100000 and s["tag_bits"] == 20, s
            equal([t["key"] for t in s["top"]], ["x", None])
            text = n.get("/metrics").body
            metrics = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
            equal(metrics['tatcell_requests_total{table="a",verdict="conforming"}'], "6")
            equal(metrics['tatcell_requests_total{table="a",verdict="non_conforming"}'], "15")
            equal(metrics['tatcell_new_keys_total{table="a"}'], "2")
            equal(metrics['tatcell_live_keys{table="a"}'], "2")
            equal(metrics['tatcell_live_keys{table="b"}'], "0")
            equal(metrics['tatcell_nginx_delayed_requests_total{table="b"}'], "0")
            # 5 requests of an hour each were charged at once.
            assert 17000 < float(metrics['tatcell_longest_debt_seconds{table="a"}']) <= 18000, text
            names = {line.split("{")[0] for line in text.splitlines() if not line.startswith("#")}
            equal(names, {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")})
            if shutil.which("promtool"):
                done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
                equal((done.returncode, done.stdout + done.stderr), (0, ""))
            equal(n.connection().request("POST", "/stats"), None)
    claims.claim("stats_are_json_and_prometheus_text_and_add_up", counted)

    def shared():
        name = f"/tatcell-nginx-{os.getpid()}-{uuid.uuid4().hex}"
        file = pathlib.Path("/dev/shm" + name)

        def counted():
            # Two lines of a header, and then 16 words for each process.
            words = struct.unpack(f"={file.stat().st_size // 8}Q", file.read_bytes())[16:]
            equal(len(words), 16 * 256)
            return sum(words[0::16]), sum(words[3::16]), sum(words[9::16])

        try:
            with server() as n:
                # Four ways to ask: for the verdict, with fields, two zones, and with leave to wait.
                conf = dict(workers=2, http=f"tatcell_zone $arg_k zone=a:1m rate=1r/h burst=5 counters={name};"
                                            "tatcell_zone $arg_k zone=b:1m rate=1r/h burst=9;",
                            server="location = /page { tatcell zone=a nodelay; } location /two { tatcell zone=a nodelay; "
                                   "tatcell zone=b nodelay; } location /fields { tatcell zone=a nodelay; "
                                   "tatcell_headers ratelimit; } location /wait { tatcell zone=a delay=4; } "
                                   "location /stats { tatcell_stats; }")
                n.start(**conf)
                for way, count in ("page", 7), ("two", 7), ("fields", 7), ("wait", 4):
                    for _ in range(count):
                        n.get(f"/{way}?k={way}")
                s = stats(n)["a"]
                equal(counted(), (s["passed"], s["rejected"], s["new_keys"]))
                equal(counted(), (19, 6, 4))
                equal(oct(file.stat().st_mode & 0o777), "0o644")
                n.reload(**conf)
                n.get("/page?k=another")
                equal(counted(), (20, 6, 5))
                equal(stats(n)["a"]["passed"], 20)
        finally:
            file.unlink(missing_ok=True)
    claims.claim("counters_in_named_memory_are_those_of_the_stats_and_survive_a_reload", shared)

    def inherited():
        with server() as n:
            n.start(http="tatcell_zone $arg_k zone=a:1m rate=1r/h burst=1;",
                    server="tatcell zone=a nodelay; location / { } location /off { tatcell off; return 204; }"
                           "location /metrics { tatcell_stats prometheus; if ($arg_x) { set $y 1; } }"
                           "location /stats { tatcell_stats; if ($arg_x) { set $y 1; } }")
            equal(n.statuses(2, "/?k=x"), [200, 429])
            equal(n.statuses(2, "/stats?k=x"), [200, 200])
            equal(n.statuses(2, "/off?k=x"), [204, 204])
            # A block of if has the handler of its location, and its format.
            for path in ("/metrics", "/metrics?x=1"):
                assert n.get(path).body.startswith("# "), n.get(path).body[:80]
            equal(len(json.loads(n.get("/stats?x=1").body)["zones"]["a"]["top"]), 1)
    claims.claim("limits_are_inherited_but_not_by_the_stats", inherited)

    def old_debts():
        # Words of so fast a rate come round each 0.14 s. A key owes its burst for a millisecond, and asks again later.
        with server() as n:
            n.start(workers=2, http="tatcell_zone $arg_k zone=a:1m rate=100gB/s burst=100000000;",
                    server="keepalive_requests 10000; location / { tatcell zone=a cost=100000000 nodelay; }")
            times = [i * 0.001 for i in range(600)]
            times = sorted([(t, i) for i, t in enumerate(times)] + [(t + 0.1 + t / 12, i) for i, t in enumerate(times)])
            connection, begin = n.connection(), time.monotonic()
            for t, i in times:
                time.sleep(max(0, begin + t - time.monotonic()))
                equal(n.get(f"/page?k={i}", connection).status, 200, f"key {i} at {t:.4f} s")
            connection.close()
    claims.claim("an_old_debt_counts_once_though_words_come_round_between_two_sweeps", old_debts)

    def exact():
        with server() as n:
            n.start(workers=4, http="tatcell_zone $arg_k zone=a:1m rate=100r/s burst=10;",
                    server="location / { tatcell zone=a nodelay; } location /stats { tatcell_stats; }")
            start = time.monotonic()
            load.wrk(n.port, "/?k=hot", seconds=3, connections=32)
            bound = 10 + (time.monotonic() - start) * 100
            s = stats(n)["a"]
            bounded(s["passed"], bound)
            assert s["rejected"] > 1000, "too few requests"
            assert s["passed"] >= 100, s
            assert sum(p["passed"] > 0 or p["rejected"] > 0 for p in s["processes"].values()) == 4, "not four workers"
    claims.claim("four_workers_admit_no_more_than_the_rate", patiently(exact))
