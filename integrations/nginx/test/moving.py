"""Configurations of limit_req, moved by the rules of MOVING.md: the same requests get the same verdicts.

The rules are read from the table of the page. Each configuration runs in one nginx, its translation in another; both
get the same requests in the same order. Limits drain so slowly, or requests come so close, that no border is near.
"""

import pathlib
import re
import shutil
import subprocess
import threading
import time

from claims import Skip, equal, patiently
from server import free_port

PAGE = pathlib.Path(__file__).resolve().parents[1] / "MOVING.md"
# What limit_req answers by default; the page says that the module differs in it, and how to keep it.
KEEP_503 = "tatcell_status 503;"
# Each request and subrequest with its answer and its verdict, in both servers.
FORMAT = "log_format case '$request_uri $uri $status $limit_req_status'; log_subrequest on; "


def rules(page):
    """The rows of the page's table as pattern and replacement: words in capitals are whatever stands there."""
    found = []
    for left, right in re.findall(r"^\| (`.*) \| (`.*) \|$", page, re.M):
        for old, new in zip(re.findall("`([^`]+)`", left), re.findall("`([^`]+)`", right), strict=True):
            if (old, new) == ("limit_req", "tatcell"):
                continue
            words = re.findall(r"\b[A-Z]+\b", old)
            pattern = re.sub(r"\b[A-Z]+\b", r"([^\\s;:]+)", re.escape(old).replace(r"\ ", " "))
            found.append((rf"(?<![\w$]){pattern}(?!\w)", words, new))
    return found


def moved(text, page):
    for pattern, words, new in rules(page):
        def written(match):
            said = dict(zip(words, match.groups()))
            line = re.sub(r"\b([A-Z]+)\+1", lambda m: str(int(said[m[1]]) + 1), new)
            return re.sub(r"\b[A-Z]+\b", lambda m: said[m[0]], line)
        text = re.sub(pattern, written, text)
    return text


ZONE = "limit_req_zone $arg_k zone=a:1m rate=1r/m;"


class Case:
    """A configuration of limit_req, and paths that are asked one after the other, or all within 0.1 s."""

    def __init__(self, name, server, paths, http=ZONE, together=False, h2=False):
        self.name, self.http, self.server, self.paths = name, http, server, paths
        self.together, self.h2 = together, h2


def keys(text, path="/page"):
    return [f"{path}?k={key}" for key in text]


TWO = ZONE + "limit_req_zone $server_addr zone=all:1m rate=1r/m;"
QUICK = "limit_req_zone $arg_k zone=a:1m rate=2r/s;"
TWICE = ["/page?k=x", "/other?k=x"] * 3

CASES = [
    Case("plain", "location / { limit_req zone=a; }", keys("xxyxyz") + ["/page", "/page"]),
    Case("burst", "location / { limit_req zone=a burst=3; }", keys("xxxxxyx"), QUICK, together=True),
    Case("burst_nodelay", "location / { limit_req zone=a burst=3 nodelay; }", keys("xxxxxxyyyyyy")),
    Case("delay", "location / { limit_req zone=a burst=4 delay=2; }", keys("xxxxxxx"), QUICK, together=True),
    Case("nodelay_before_burst", "location / { limit_req zone=a nodelay burst=2; }", keys("xxxxx")),
    Case("two_zones",
         "location / { limit_req zone=a burst=2 nodelay; limit_req zone=all burst=5 nodelay; }",
         keys("xxxxyyyyzz"), TWO),
    Case("two_zones_and_delay",
         "location / { limit_req zone=a burst=9 delay=4; limit_req zone=all burst=3 nodelay; }",
         keys("xxxxxx"), TWO.replace("a:1m rate=1r/m", "a:1m rate=2r/s"), together=True),
    Case("one_zone_in_two_places",
         "location /page { limit_req zone=a burst=1 nodelay; } location /other { limit_req zone=a burst=3 nodelay; "
         "try_files /page =404; }", TWICE + keys("xxx", "/other")),
    Case("mirror",
         "location /page { mirror /copy; } location = /copy { internal; limit_req zone=a burst=1 nodelay; try_files "
         "/page =404; }", keys("xxxxy")),
    Case("mirror_of_a_limited_request",
         "location /page { limit_req zone=a burst=2 nodelay; mirror /copy; } location = /copy { internal; limit_req "
         "zone=a nodelay; try_files /page =404; }", keys("xxxxy")),
    Case("auth_request",
         "location /page { auth_request /auth; } location = /auth { internal; limit_req zone=all burst=2 nodelay; "
         "try_files /page =404; }", keys("xxxxy"), TWO),
    Case("auth_request_of_a_limited_request",
         "limit_req zone=all burst=4 nodelay; location /page { auth_request /auth; limit_req zone=a burst=1 nodelay; "
         "} location = /auth { internal; try_files /page =404; }", keys("xxxyyy"), TWO),
    Case("includes",
         "location = /whole { ssi on; ssi_types *; try_files /includes =404; } location /inc { limit_req zone=a "
         "burst=2 nodelay; try_files /page =404; }", keys("xxx", "/whole") + keys("xx", "/inc")),
    Case("index",
         "location = / { limit_req zone=all nodelay; } location /index.html { limit_req zone=a burst=1 nodelay; }",
         ["/?k=x", "/?k=x", "/index.html?k=x", "/index.html?k=x", "/index.html?k=x"], TWO),
    Case("try_files",
         "location /a { try_files /nothing /page?$args; } location /page { limit_req zone=a burst=1 nodelay; }",
         keys("xxx", "/a") + keys("xy")),
    Case("try_files_of_a_limited_request",
         "location /a { limit_req zone=all burst=3 nodelay; try_files /nothing /page?$args; } location /page { "
         "limit_req zone=a nodelay; }", keys("xxxxxy", "/a") + keys("xy"), TWO),
    Case("rewrite",
         "rewrite ^/old /page last; location / { limit_req zone=a burst=1 nodelay; }",
         keys("x", "/old") + keys("xx") + keys("y", "/old")),
    Case("empty_key_then_another_zone",
         "location /a { limit_req zone=none nodelay; error_page 404 /page?$args; } location /page { limit_req zone=a "
         "burst=1 nodelay; }", keys("xxxx", "/a"), TWO + "limit_req_zone $arg_none zone=none:1m rate=1r/m;"),
    Case("named_location",
         "location / { try_files /nothing @named; } location @named { limit_req zone=a burst=1 nodelay; try_files "
         "/page =404; }", keys("xxxy")),
    Case("named_location_of_a_limited_request",
         "location / { limit_req zone=a burst=2 nodelay; error_page 404 = @named; } location @named { limit_req "
         "zone=all nodelay; try_files /page =404; }", keys("xxxx", "/nothing") + keys("y"), TWO),
    Case("error_page",
         "location / { limit_req zone=a nodelay; error_page 503 /busy?$args; } location = /busy { limit_req zone=all "
         "nodelay; try_files /page =404; }", keys("xxxyy"), TWO),
    Case("error_page_with_another_status",
         "recursive_error_pages on; location / { limit_req zone=a burst=1 nodelay; error_page 503 =200 @busy; } "
         "location @busy { limit_req zone=all; error_page 404 =418 /page?$args; try_files /nothing =404; }",
         keys("xxxxyyy"), TWO),
    Case("dry_run",
         "limit_req_dry_run on; location / { limit_req zone=a burst=1 nodelay; } location /other { limit_req zone=a "
         "burst=1; limit_req_dry_run off; try_files /page =404; }", keys("xxxx") + keys("x", "/other")),
    Case("dry_delays", "location / { limit_req zone=a burst=2; limit_req_dry_run on; }", keys("xxxxx")),
    Case("status",
         "limit_req_status 444; location / { limit_req zone=a; limit_req_status 429; } location /other { limit_req "
         "zone=a; limit_req_status 599; try_files /page =404; }", keys("xxyy") + keys("xx", "/other")),
    Case("status_of_http",
         "location / { limit_req zone=a; }",
         keys("xxyy"), "limit_req_status 430; limit_req_log_level info; limit_req_zone $arg_k zone=a:1m rate=1r/m;"),
    Case("levels",
         "limit_req zone=a burst=1 nodelay; location /page { } location /other { limit_req zone=all burst=3 nodelay; "
         "try_files /page =404; location /other/deep { try_files /page =404; } }",
         keys("xxx") + keys("xxx", "/other") + keys("xxx", "/other/deep"), TWO),
    Case("level_of_http",
         "location /page { } location /other { limit_req zone=a burst=2 nodelay; try_files /page =404; } location "
         "/if { if ($arg_k) { set $y 1; } try_files /page =404; }",
         keys("yy") + keys("xxx", "/other") + keys("yy", "/if"), TWO + "limit_req zone=all burst=2 nodelay;"),
    Case("http2", "location / { limit_req zone=a burst=2 nodelay; }", keys("xxxxxy"), h2=True),
    Case("http2_at_once",
         "location / { limit_req zone=a burst=3 delay=1; } location /other { limit_req zone=a burst=3; "
         "limit_req_status 429; try_files /page =404; }",
         keys("xxxxxx") + keys("yyyyyy", "/other"), QUICK, together=True, h2=True),
]


def ask(n, case, h2_port):
    """The answers of the paths in their order; all together: in any order."""
    paths = [f"{path}{'&' if '?' in path else '?'}i={i}" for i, path in enumerate(case.paths)]
    answers = [None] * len(paths)

    def one(i):
        answers[i] = by_curl(h2_port, paths[i]) if case.h2 else by_hand(n, paths[i])
    if not case.together:
        for i in range(len(paths)):
            one(i)
        return answers
    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(paths))]
    for thread in threads:
        thread.start()
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    return sorted(answers)


def by_hand(n, path):
    try:
        answer = n.get(path)
    except ConnectionError:
        return 0, "closed"
    return answer.status, answer.body if answer.status == 200 else ""


def by_curl(port, path):
    """By HTTP/2, on a connection of its own."""
    done = subprocess.run(["curl", "-s", "--http2-prior-knowledge", "-o", "/dev/null", "-w",
                           "%{http_code} %{http_version}", f"http://127.0.0.1:{port}{path}"], capture_output=True,
                          text=True, timeout=60)
    status, version = done.stdout.split()
    equal(version, "2", "version of HTTP")
    return int(status), ""


def claims(claims, server):
    page = PAGE.read_text()

    def example():
        blocks = re.findall(r"^```nginx\n(.*?)^```$", page, re.M | re.S)
        equal(len(blocks), 2, "configurations on the page:")
        # An eighth of the size is enough, and more does no harm.
        equal(moved(blocks[0], page).replace(":8m", ":1m"), blocks[1])
        assert KEEP_503 in page, "the page does not say how to keep 503"
    claims.claim("the_example_of_the_page_follows_from_its_rules", example)

    def same(case):
        if case.h2 and (not shutil.which("curl") or "HTTP2" not in
                        subprocess.run(["curl", "-V"], capture_output=True, text=True).stdout):
            raise Skip("curl with HTTP/2 is not installed: apt-get install curl")
        found = {}
        for name in "limit_req", "tatcell":
            with server() as n:
                h2 = free_port()
                http = FORMAT + case.http
                places = f"access_log {n.run}/case.log case; {case.server}"
                places += f" listen 127.0.0.1:{h2} http2;" if case.h2 else ""
                if name == "tatcell":
                    http = moved(http, page) + ("" if "_status" in case.http else KEEP_503)
                    places = moved(places, page)
                    assert "limit_req" not in http + places, "the page has no rule for a word"
                assert http + places != case.http + case.server, "nothing was moved"
                (n.run / "html" / "includes").write_text('<!--# include virtual="/inc?k=x" -->' * 5)
                n.start(http=http, server=places)
                answers = ask(n, case, h2)
                time.sleep(0.05)  # The last line of the log follows its answer.
                log = (n.run / "case.log").read_text()
                # Which of the requests that come together is the first, nobody says.
                log = re.sub(r"&i=\d+", "", log) if case.together else log
                found[name] = answers, sorted(log.splitlines())
        equal(found["tatcell"][0], found["limit_req"][0], "answers")
        equal(found["tatcell"][1], found["limit_req"][1], "verdicts")
        verdicts = " ".join(found["limit_req"][1])
        assert "PASSED" in verdicts and ("REJECTED" in verdicts or "DELAYED" in verdicts), verdicts

    for case in CASES:
        claims.claim(f"moved_from_limit_req_{case.name}", patiently(lambda: same(case)))

    def default():
        with server() as n:
            n.start(http=moved("limit_req_zone $arg_k zone=a:1m rate=1r/m;", page),
                    server=moved("location / { limit_req zone=a; }", page))
            equal(n.statuses(2, "/page?k=x"), [200, 429])
    claims.claim("a_moved_configuration_refuses_with_429", default)
