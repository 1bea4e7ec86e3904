"""An attack, without a limiter and with it.

A server that can do some 110 requests a second behind nginx, 20 clients of 2 requests a second, and for a while 8
addresses of 40 connections each. Writes a picture and a verdict.
"""

import argparse
import asyncio
import datetime
import http.server
import multiprocessing
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "testing"))

from server import Nginx, free_port  # noqa: E402

SECONDS, BEGIN, END, BIN = 10, 3, 7, 0.5
CLIENTS, ATTACKERS, CONNECTIONS = 20, 8, 40
WORK = 0.008

HTTP = "tatcell_zone $binary_remote_addr zone=clients:1m rate=5r/s burst=10; upstream app {{ server 127.0.0.1:{app}; }}"
SERVER = """
proxy_read_timeout 30s; proxy_connect_timeout 30s; proxy_http_version 1.0;
location /none {{ proxy_pass http://app; }}
location /tatcell {{ tatcell zone=clients nodelay; proxy_pass http://app; }}
"""


class App(http.server.BaseHTTPRequestHandler):
    """One request after the other, so long each."""

    def do_GET(self):
        time.sleep(WORK)
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *_):
        pass


class Server(http.server.HTTPServer):
    def handle_error(self, *_):
        """The client did not wait."""


def app(port):
    server = Server(("127.0.0.1", port), App)
    server.socket.listen(512)
    server.serve_forever()


async def ask(reader, writer, path):
    writer.write(f"GET {path} HTTP/1.1\r\nHost: app\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    await reader.readexactly(length)
    return int(head.split()[1])


async def client(port, path, number, start, seen):
    """Asks twice a second, waits a second for the answer, and notes whether it came."""
    for i in range(2 * SECONDS):
        at = start + i / 2 + number * 0.5 / CLIENTS
        await asyncio.sleep(max(0, at - time.monotonic()))
        good = False
        try:
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection("127.0.0.1", port,
                                                               local_addr=(f"127.1.0.{number + 1}", 0))
                good = await ask(reader, writer, path) == 200
                writer.close()
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass
        seen.append((at - start, good))


async def attacker(port, path, number, start, seen):
    """Asks again soon after there is an answer."""
    await asyncio.sleep(max(0, start + BEGIN - time.monotonic()))
    while time.monotonic() < start + END:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(f"127.2.0.{number + 1}", 0))
            while time.monotonic() < start + END:
                status = await ask(reader, writer, path)
                seen.append((time.monotonic() - start, status == 200))
                # Five times a second on each of many connections; without a pause this would measure Python.
                await asyncio.sleep(0.2)
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.2)


async def run(port, path):
    start, clients, attackers = time.monotonic() + 0.3, [], []
    tasks = [client(port, path, i, start, clients) for i in range(CLIENTS)]
    tasks += [attacker(port, path, i, start, attackers) for i in range(ATTACKERS) for _ in range(CONNECTIONS)]
    await asyncio.gather(*tasks)
    return clients, attackers


def bins(events, value):
    found = []
    for i in range(int(SECONDS / BIN)):
        found.append(value([good for at, good in events if i * BIN <= at < (i + 1) * BIN]))
    return found


def share(events):
    return 100 * sum(events) / len(events) if events else 0


def rate(events):
    return sum(events) / BIN


def line(values, x, y, width, height, top, colour):
    points = " ".join(f"{x + width * (i + 0.5) / len(values):.1f},{y + height * (1 - min(v, top) / top):.1f}"
                      for i, v in enumerate(values))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'


def picture(rows, caption):
    """Two panels: what clients get, and what the attackers get."""
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 300" font-family="sans-serif" font-size="12">',
           '<rect width="760" height="300" fill="#ffffff"/>']
    panels = [(60, "requests of clients answered within 1 s, %", 100, [0, 50, 100], 0),
              (440, "requests of attackers answered with 200, per s", 240, [0, 80, 160, 240], 1)]
    for x, title, top, ticks, which in panels:
        y, width, height = 40, 280, 190
        out.append(f'<text x="{x}" y="24">{title}</text>')
        left, right = (x + width * t / SECONDS for t in (BEGIN, END))
        out.append(f'<rect x="{left}" y="{y}" width="{right - left}" height="{height}" fill="#f3e3e3"/>')
        out.append(f'<text x="{(left + right) / 2}" y="{y + 14}" text-anchor="middle" fill="#995555">attack</text>')
        for tick in ticks:
            at = y + height * (1 - tick / top)
            out.append(f'<line x1="{x}" y1="{at}" x2="{x + width}" y2="{at}" stroke="#dddddd"/>')
            out.append(f'<text x="{x - 6}" y="{at + 4}" text-anchor="end">{tick}</text>')
        for second in range(0, SECONDS + 1, 2):
            out.append(f'<text x="{x + width * second / SECONDS}" y="{y + height + 16}" text-anchor="middle">'
                       f'{second} s</text>')
        for name, colour, series in rows:
            out.append(line(series[which], x, y, width, height, top, colour))
    for i, (name, colour, _) in enumerate(rows):
        out.append(f'<line x1="{60 + 160 * i}" y1="268" x2="{84 + 160 * i}" y2="268" stroke="{colour}" '
                   f'stroke-width="2"/><text x="{90 + 160 * i}" y="272">{name}</text>')
    out.append(f'<text x="60" y="292" fill="#666666">{caption}</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nginx", default="nginx")
    parser.add_argument("--module", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--svg", required=True, type=pathlib.Path)
    given = parser.parse_args()
    port = free_port()
    process = multiprocessing.Process(target=app, args=(port,), daemon=True)
    process.start()
    rows, shares = [], {}
    with Nginx(given.nginx, given.module.resolve(), given.build / "attack") as n:
        n.start(workers=2, http=HTTP.format(app=port), server=SERVER.format(), level="crit")
        for name, path, colour in ("without a limiter", "/none", "#b03030"), ("with tatcell", "/tatcell", "#2060a0"):
            clients, attackers = asyncio.run(run(n.port, path))
            attack = [good for at, good in clients if BEGIN + 0.5 <= at < END]
            got = sum(good for _, good in attackers)
            shares[name] = share(attack)
            print(f"{name}: {share(attack):.1f} % of {len(attack)} requests of clients answered during the attack; "
                  f"{got} of {len(attackers)} requests of attackers")
            rows.append((name, colour, (bins(clients, share), bins(attackers, rate))))
            time.sleep(1)
    process.terminate()
    version = f"nginx, 2 workers; {CLIENTS} clients, {ATTACKERS} attackers; {datetime.date.today()}"
    given.svg.write_text(picture(rows, version))
    good = shares["with tatcell"] >= 95
    print(f"{'PASS' if good else 'FAIL'} clients_are_served_under_attack")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
