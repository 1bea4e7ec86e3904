#!/usr/bin/env python3
"""Drives the frames firmware in QEMU with real UDP datagrams and checks every decision it made.

    drive.py user|dgram FIRMWARE.elf PCAP

user    QEMU's user network; the host's own sockets on 127.0.0.1 reach the firmware through a forwarded port.
dgram   every Ethernet frame is one datagram on 127.0.0.1; the script makes the frames, from 40 source addresses.

Only loopback is used, and everything ends within two minutes. Prints PASS and FAIL lines; the exit status is 1 after
a FAIL. SPDX-License-Identifier: MIT OR Apache-2.0
"""
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time

# The limits of main.c, in its microseconds.
POLICE_T, POLICE_BURST = 10_000, 20
SHAPE_T, SHAPE_BURST, SHAPE_DELAY = 5_000, 4, 150_000
POLICE, SHAPE, CONTROL = 7000, 7001, 7009
ENTRY = struct.Struct(">IIII4sHBB")
WRAP = 1 << 32
GUEST, MAC = "10.0.2.15", b"\x02tatcl"

mode = "?"
failures = 0


def check(name, ok, why=""):
    global failures
    name = f"frames_{mode}_{name}"
    if ok:
        print(f"PASS {name}", flush=True)
    else:
        failures += 1
        print(f"FAIL {name}: {why}", flush=True)


def free_ports(count):
    """UDP ports of 127.0.0.1 that nobody uses now."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class User:
    """Flows are sockets; the firmware sees them as 10.0.2.2 with their own port."""

    def __init__(self, flows):
        self.ports = dict(zip((POLICE, SHAPE, CONTROL), free_ports(3)))
        forward = "".join(f",hostfwd=udp:127.0.0.1:{p}-{GUEST}:{g}" for g, p in self.ports.items())
        self.netdev = f"user,id=n0{forward}"
        self.sockets = []
        for _ in range(flows):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            s.bind(("127.0.0.1", 0))
            s.setblocking(False)
            self.sockets.append(s)

    def name(self, flow):
        return ("10.0.2.2", self.sockets[flow].getsockname()[1])

    def send(self, flow, port, payload):
        self.sockets[flow].sendto(payload, ("127.0.0.1", self.ports[port]))

    def receive(self, timeout):
        """(flow, guest port, payload) of what has arrived."""
        back = {p: g for g, p in self.ports.items()}
        ready, _, _ = select.select(self.sockets, [], [], timeout)
        for s in ready:
            while True:
                try:
                    payload, (_, port) = s.recvfrom(2048)
                except BlockingIOError:
                    break
                yield self.sockets.index(s), back[port], payload


class Dgram:
    """Flows are made up: flow i comes from 192.0.2.(i + 1), port 40000 + i."""

    def __init__(self, flows):
        qemu, own = free_ports(2)
        self.netdev = (
            f"dgram,id=n0,local.type=inet,local.host=127.0.0.1,local.port={qemu},"
            f"remote.type=inet,remote.host=127.0.0.1,remote.port={own}"
        )
        self.flows = flows
        self.qemu = ("127.0.0.1", qemu)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(("127.0.0.1", own))
        self.socket.setblocking(False)
        self.sockets = [self.socket]

    def name(self, flow):
        return (f"192.0.2.{flow + 1}", 40000 + flow)

    def send(self, flow, port, payload):
        address, source = self.name(flow)
        udp = struct.pack(">HHHH", source, port, 8 + len(payload), 0) + payload
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0)
        head += socket.inet_aton(address) + socket.inet_aton(GUEST)
        head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
        frame = MAC + b"\x02host\x00" + b"\x08\x00" + head + udp
        self.socket.sendto(frame.ljust(60, b"\0"), self.qemu)

    def receive(self, timeout):
        ready, _, _ = select.select([self.socket], [], [], timeout)
        while ready:
            try:
                frame = self.socket.recv(2048)
            except BlockingIOError:
                return
            parsed = parse(frame)
            if parsed is None or parsed[0][0] != GUEST:
                continue
            (_, port), (address, to), payload = parsed
            flow = int(address.split(".")[3]) - 1
            if 0 <= flow < self.flows and self.name(flow) == (address, to):
                yield flow, port, payload


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def parse(frame):
    """((source, port), (destination, port), payload) of an IPv4 UDP frame with right checksums, else None."""
    if len(frame) < 42 or frame[12:14] != b"\x08\x00" or frame[14] != 0x45 or frame[23] != 17:
        return None
    if checksum(frame[14:34]) != 0:
        return None
    source, to, length = struct.unpack(">HHH", frame[34:40])
    return (socket.inet_ntoa(frame[26:30]), source), (socket.inet_ntoa(frame[30:34]), to), frame[42:34 + length]


def pcap_frames(path):
    with open(path, "rb") as f:
        data = f.read()
    if struct.unpack("<I", data[:4])[0] != 0xA1B2C3D4:
        raise ValueError("not a pcap")
    at = 24
    while at + 16 <= len(data):
        kept, whole = struct.unpack("<II", data[at + 8:at + 16])
        if kept == whole:
            yield data[at + 16:at + 16 + kept]
        at += 16 + kept


def drops(sockets):
    """Datagrams that the host's kernel dropped because this script was too slow to take them."""
    ports = {s.getsockname()[1] for s in sockets}
    with open("/proc/net/udp") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return sum(int(r[-1]) for r in rows if int(r[1].split(":")[1], 16) in ports)


class Run:
    def __init__(self, net, elf, pcap):
        self.net = net
        self.echoes = {POLICE: {}, SHAPE: {}}
        self.answers = []
        self.sent = {POLICE: 0, SHAPE: 0}
        self.sequence = 0
        self.errors = tempfile.TemporaryFile()
        self.qemu = subprocess.Popen(
            ["qemu-system-arm", "-machine", "mps2-an385", "-nographic", "-monitor", "none", "-serial", "null",
             "-semihosting-config", "enable=on,target=native", "-kernel", elf, "-netdev", net.netdev,
             "-net", "nic,netdev=n0", "-object", f"filter-dump,id=dump,netdev=n0,file={pcap}"],
            stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors)

    def text(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def wait_ready(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.qemu.poll() is None:
            if "frames: ready" in self.text():
                return True
            time.sleep(0.05)
        return False

    def send(self, flow, port):
        self.sequence += 1
        self.sent[port] += 1
        self.net.send(flow, port, struct.pack(">I", self.sequence) + b"." * 20)

    def drain(self, timeout=0.0):
        for flow, port, payload in self.net.receive(timeout):
            if port == CONTROL:
                self.answers.append(payload)
            elif port in self.echoes:
                self.echoes[port].setdefault(flow, []).append(struct.unpack(">I", payload[:4])[0])

    def ask(self, payload):
        for _ in range(20):
            self.answers.clear()
            self.net.send(0, CONTROL, payload)
            deadline = time.monotonic() + 0.5
            while time.monotonic() < deadline:
                self.drain(0.05)
                for answer in self.answers:
                    if payload[:3] == b"END" or answer[4:8] == payload[4:8]:
                        return answer
        raise TimeoutError("the firmware does not answer")

    def log(self):
        entries = []
        while True:
            answer = self.ask(b"LOG " + struct.pack(">I", len(entries)))
            total = struct.unpack(">I", answer[:4])[0]
            entries += [ENTRY.unpack_from(answer, at) for at in range(8, len(answer), ENTRY.size)]
            if len(entries) >= total:
                return unwrap(entries)

    def end(self):
        try:
            self.ask(b"END ")
            return self.qemu.wait(timeout=20)
        except (TimeoutError, subprocess.TimeoutExpired):
            return None


def unwrap(entries):
    """(now, wait, sent, sequence, address, port, shaped, passed), the 32-bit clock continued beyond its wrap."""
    whole, last, wide = [], None, 0
    for now, wait, sent, *rest in entries:
        wide = now if last is None else wide + (now - last) % WRAP
        last = now
        whole.append((wide, wait, wide + (sent - now) % WRAP, *rest))
    return whole


def replay_police(entries, burst=POLICE_BURST):
    """Every policed decision again, from its clock alone. Returns the number that differ."""
    tats, wrong = {}, 0
    for now, wait, _, _, address, port, _, passed in entries:
        key = (address, port)
        lead = max(0, tats.get(key, 0) - now)
        if lead + POLICE_T <= burst * POLICE_T:
            expected = (1, 0)
            tats[key] = now + lead + POLICE_T
        else:
            expected = (0, lead + POLICE_T - burst * POLICE_T)
        wrong += expected != (passed, wait)
    return wrong


def replay_shape(entries):
    tat, wrong = 0, 0
    for now, departs_in, _, _, _, _, _, passed in entries:
        lead = max(0, tat - now)
        wait = max(0, lead + SHAPE_T - SHAPE_BURST * SHAPE_T)
        if wait > SHAPE_DELAY:
            wrong += passed != 0
        else:
            wrong += (passed, departs_in) != (1, wait)
            tat = now + lead + SHAPE_T
    return wrong


def exercise(run, flows):
    # 1. A burst of 60 from one sender, as fast as the host can.
    for _ in range(60):
        run.send(0, POLICE)
    settle = time.monotonic() + 0.5
    while time.monotonic() < settle:
        run.drain(0.05)
    # 2. A flood: every other sender far above its limit for two seconds, together with shaped datagrams.
    end, i = time.monotonic() + 2.0, 0
    while time.monotonic() < end and run.sequence < 25_000:  # the firmware's log holds 32768 decisions
        for flow in range(1, flows):
            run.send(flow, POLICE)
        if i % 2 == 0:
            run.send(0, SHAPE)
        i += 1
        pause = time.monotonic() + 0.002
        while time.monotonic() < pause:
            run.drain(0.0005)
    # 3. A burst into the shaper, longer than it may delay.
    for _ in range(60):
        run.send(0, SHAPE)
    settle = time.monotonic() + 1.0
    while time.monotonic() < settle:
        run.drain(0.05)


def judge(run, net, entries, pcap, flows):
    police = [e for e in entries if e[6] == 0]
    shape = [e for e in entries if e[6] == 1]
    spread = (entries[-1][0] - entries[0][0]) / 1e6 if entries else 0
    print(f"note: {mode}: {run.sent[POLICE]} + {run.sent[SHAPE]} datagrams sent, {len(police)} + {len(shape)} decided "
          f"in {spread:.3f} s of the firmware's clock")
    check("most_datagrams_are_decided", len(entries) >= 0.5 * sum(run.sent.values()),
          f"{len(entries)} of {sum(run.sent.values())}")
    check("clock_wraps_during_the_test", entries[0][0] >> 32 != entries[-1][0] >> 32,
          "the 32-bit counter did not wrap")
    check("every_policed_verdict_is_exact", replay_police(police) == 0, f"{replay_police(police)} of {len(police)} differ")
    check("control_a_burst_one_larger_is_noticed", replay_police(police, POLICE_BURST + 1) > 0, "replay sees nothing")
    check("every_shaped_departure_is_exact", replay_shape(shape) == 0, f"{replay_shape(shape)} of {len(shape)} differ")

    # What left the board, as the emulator recorded it: it loses nothing.
    wire = {POLICE: {}, SHAPE: {}}
    for frame in pcap_frames(pcap):
        parsed = parse(frame)
        if parsed and parsed[0][0] == GUEST and parsed[0][1] in wire:
            wire[parsed[0][1]].setdefault(parsed[1], []).append(struct.unpack(">I", parsed[2][:4])[0])
    for flow in range(flows):
        address, port = net.name(flow)
        own = [e for e in police if (socket.inet_ntoa(e[4]), e[5]) == (address, port)]
        echoes = wire[POLICE].get((address, port), [])
        passed = [e[3] for e in own if e[7]]
        if echoes != passed:
            check("echoes_are_what_conformed", False, f"flow {flow}: {len(echoes)} echoes, {len(passed)} conformed")
            break
        # The limit by its definition: never more than burst + rate * time, and not less while it is flooded.
        span = own[-1][0] - own[0][0]
        gap = max((b[0] - a[0] for a, b in zip(own, own[1:])), default=0)
        most = POLICE_BURST + span // POLICE_T
        least = min(len(own), POLICE_BURST + max(0, span - gap) // POLICE_T - 1)
        if not least <= len(echoes) <= most or len(own) <= POLICE_BURST:
            check("every_sender_gets_its_limit", False,
                  f"flow {flow}: {len(echoes)} of {len(own)} echoed, limit allows {least}..{most}")
            break
    else:
        total = sum(map(len, wire[POLICE].values()))
        print(f"note: {mode}: {total} of {len(police)} policed datagrams of {flows} senders echoed")
        check("echoes_are_what_conformed", True)
        check("every_sender_gets_its_limit", True)

    sent = [e for e in shape if e[7]]
    out = wire[SHAPE].get(net.name(0), [])
    check("shaped_datagrams_leave_in_order", out == [e[3] for e in sent], f"{len(out)} echoes, {len(sent)} promised")
    check("shaper_refuses_what_would_wait_too_long", 0 < len(sent) < len(shape), f"{len(sent)} of {len(shape)}")
    check("nothing_leaves_before_its_departure", all(e[2] >= e[0] + e[1] for e in sent), "early")
    times = [e[0] + e[1] for e in sent]
    # In any window of departures: at most burst + rate * time, in whole microseconds.
    low = excess = 0
    for i, t in enumerate(times):
        level = i * SHAPE_T - t
        low = min(low, level) if i else level
        excess = max(excess, level - low + SHAPE_T)
    check("departures_keep_the_rate_in_every_window", excess <= SHAPE_BURST * SHAPE_T,
          f"{excess / SHAPE_T} at once")
    late = max((e[2] - e[0] - e[1] for e in sent), default=0)
    print(f"note: {mode}: {len(sent)} of {len(shape)} shaped datagrams sent, the latest {late} us after its departure")

    received = {port: {net.name(flow): list_ for flow, list_ in run.echoes[port].items()} for port in wire}
    lost = drops(net.sockets)
    if lost == 0:
        check("host_receives_what_the_pcap_shows", received == wire, "the lists differ")
    else:
        count = sum(len(l) for flows_ in received.values() for l in flows_.values())
        want = sum(len(l) for flows_ in wire.values() for l in flows_.values())
        check("host_receives_what_the_pcap_shows", count + lost == want, f"{count} + {lost} dropped, {want} recorded")


def main():
    global mode
    mode, elf, pcap = sys.argv[1:4]
    flows = 4 if mode == "user" else 40
    net = User(flows) if mode == "user" else Dgram(flows)
    run = Run(net, elf, pcap)
    try:
        if not run.wait_ready():
            check("firmware_starts", False, run.text().strip().replace("\n", " / "))
            return 1
        # The first datagram may be lost to address resolution: a question that is repeated settles it.
        run.ask(b"LOG " + struct.pack(">I", 0))
        exercise(run, flows)
        entries = run.log()
        rc = run.end()
        check("firmware_ends_with_status_0", rc == 0, f"status {rc}")
        print("note: " + "; ".join(l for l in run.text().splitlines() if l.startswith("frames: ")))
        judge(run, net, entries, pcap, flows)
    except Exception as e:  # whatever went wrong, the reader of the log gets one line
        check("runs_to_its_end", False, f"{type(e).__name__}: {e}")
    finally:
        if run.qemu.poll() is None:
            run.qemu.kill()
            run.qemu.wait()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
