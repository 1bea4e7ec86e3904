"""One nginx with a configuration of a test's own, in a folder of its own, on a free port of loopback.

Modules are one path or several. The log format verdict has the variables of the module for nginx, and is left out
where another one is loaded.
"""

import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

CONF = """
{load}
daemon on;
{user}
worker_processes {workers};
pid {run}/nginx.pid;
error_log {run}/error.log {level};
{main}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {run}/b;
    proxy_temp_path {run}/p;
    fastcgi_temp_path {run}/f;
    uwsgi_temp_path {run}/u;
    scgi_temp_path {run}/s;
    keepalive_requests 1000000;
    {verdict}
    {http}
    server {{
        listen 127.0.0.1:{port} reuseport backlog=4096;
        root {run}/html;
        {server}
    }}
}}
"""


VERDICT = ("log_format verdict '$status $tatcell_status $tatcell_zone $tatcell_remaining $tatcell_retry_after "
           "$tatcell_delay';")


class Answer:
    def __init__(self, status, headers, body, sent, seconds):
        self.status, self.headers, self.body = status, headers, body
        self.sent, self.seconds = sent, seconds


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Nginx:
    """A server: `with Nginx(binary, module, folder) as n: n.start(http=..., server=...)`."""

    def __init__(self, binary, module, folder):
        # In full: for an upgrade nginx starts itself again by this name.
        self.binary = shutil.which(binary)
        self.module, self.run = module, pathlib.Path(folder).resolve()
        self.port = free_port()
        self.started = False
        self.environment = None

    def __enter__(self):
        shutil.rmtree(self.run, ignore_errors=True)
        (self.run / "html").mkdir(parents=True)
        (self.run / "html" / "index.html").write_text("here\n")
        (self.run / "html" / "page").write_text("page\n")
        (self.run / "logs").mkdir()
        return self

    def __exit__(self, *_):
        if self.started:
            self.stop()

    def write(self, http="", server="", workers=1, level="info", main=""):
        modules = self.module if isinstance(self.module, list) else [self.module]
        load = " ".join(f"load_module {m};" for m in modules)
        verdict = VERDICT if any("tatcell" in str(m) for m in modules) else ""
        user = "user root;" if os.getuid() == 0 else ""
        (self.run / "nginx.conf").write_text(CONF.format(
            load=load, verdict=verdict, user=user, workers=workers, run=self.run, port=self.port, http=http,
            server=server, level=level, main=main))

    def command(self, *arguments):
        line = [self.binary, "-p", str(self.run), "-c", str(self.run / "nginx.conf"), *arguments]
        return subprocess.run(line, capture_output=True, text=True, timeout=60, env=self.environment)

    def documented(self, page):
        """Whether each nginx block of a document is a good configuration for nginx -t, and what that says."""
        for block in re.findall(r"^```nginx\n(.*?)^```$", pathlib.Path(page).read_text(), re.M | re.S):
            block = block if block.startswith("http {") else f"http {{\n{block}server {{\n}}\n}}\n"
            block = block.replace("server {", f"server {{ listen 127.0.0.1:{self.port};")
            block = block.replace("/var/log/nginx", str(self.run)).replace("/etc/nginx", str(self.run))
            block = block.replace("counters=/", f"counters={self.run}/")
            (self.run / "clients.seed").write_text(16 * "ab")
            self.write()
            conf = self.run / "nginx.conf"
            head = conf.read_text().split("http {")[0]
            conf.write_text(head + block)
            done = self.command("-t")
            yield done.returncode == 0, done.stderr

    def test(self, **conf):
        """What nginx -t says of a configuration, and whether it is good."""
        self.write(**conf)
        done = self.command("-t")
        return done.returncode == 0, done.stderr

    def start(self, **conf):
        self.write(**conf)
        done = self.command()
        assert done.returncode == 0, f"nginx does not start: {done.stderr}"
        self.started = True
        self.wait(lambda: self.alive())
        return self

    def alive(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False

    def pid(self):
        """Of the master; its file is empty for a moment where another master takes over."""
        file = self.run / "nginx.pid"
        self.wait(lambda: file.exists() and file.read_text().strip())
        return int(file.read_text())

    def children(self, pid=None):
        text = pathlib.Path(f"/proc/{pid or self.pid()}/task/{pid or self.pid()}/children").read_text()
        return [int(p) for p in text.split()]

    @staticmethod
    def wait(done, seconds=15):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if done():
                return
            time.sleep(0.02)
        raise AssertionError("waited too long")

    def reload(self, **conf):
        """Reloads, and waits until the workers of before have gone; says whether the configuration was taken."""
        self.write(**conf)
        before, errors = set(self.children()), self.log().count("[emerg]")
        os.kill(self.pid(), signal.SIGHUP)

        def settled():
            now = set(self.children())
            return self.log().count("[emerg]") > errors or (now and not now & before)
        self.wait(settled)
        return self.log().count("[emerg]") == errors

    def stop(self):
        self.started = False
        pid = self.pid()
        os.kill(pid, signal.SIGTERM)
        self.wait(lambda: not pathlib.Path(f"/proc/{pid}").exists() or not (self.run / "nginx.pid").exists())

    def log(self):
        return (self.run / "error.log").read_text(errors="surrogateescape")

    def verdicts(self, count):
        """The lines of the access log; nginx writes them after the answers."""
        log = self.run / "verdict.log"
        self.wait(lambda: log.read_text().count("\n") >= count)
        return [line.split() for line in log.read_text().splitlines()]

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path="/", connection=None, **headers):
        own = connection or self.connection()
        sent = time.monotonic()
        own.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = own.getresponse()
        body = answer.read()
        seconds = time.monotonic() - sent
        if connection is None:
            own.close()
        fields = {}
        for name, value in answer.getheaders():
            fields.setdefault(name.lower(), value)
        return Answer(answer.status, fields, body.decode(errors="replace"), sent, seconds)

    def statuses(self, count, path="/", **headers):
        connection = self.connection()
        try:
            return [self.get(path, connection, **headers).status for _ in range(count)]
        finally:
            connection.close()
