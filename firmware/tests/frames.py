"""Drives the firmware of frames/ in QEMU with UDP datagrams, and repeats every decision of its log: frames.py ELF

Only 127.0.0.1 is used. The limits are those of frames/main.c. All times are those of the firmware's clock.
"""

import select
import socket
import struct
import subprocess
import sys
import time

POLICE, SHAPE, CONTROL = 7000, 7001, 7009
# Microseconds a datagram costs, the burst, and the longest wait.
POLICED, SHAPED = (10000, 20, 0), (5000, 4, 150000)


def decide(debts, key, limit, now):
    """GCRA, the plain way: whether a datagram passes, and how long it waits or must come back later."""
    cost, burst, max_delay = limit
    debt = max(debts.get(key, now), now) - now + cost
    wait = max(debt - burst * cost, 0)
    if wait <= max_delay:
        debts[key] = now + debt
    return wait <= max_delay, wait


def wrong(entries, policed=POLICED):
    """Entries of the log that the plain way decides differently."""
    debts = {}
    return [
        e
        for e in entries
        if (e["shaped"] and (e["passed"], e["wait"] if e["passed"] else 0) != shaped(debts, e))
        or (not e["shaped"] and (e["passed"], e["wait"]) != decide(debts, e["from"], policed, e["now"]))
    ]


def shaped(debts, e):
    passed, wait = decide(debts, "line", SHAPED, e["now"])
    return passed, wait if passed else 0


def claim(name, holds, why=""):
    print(f"PASS frames_{name}" if holds else f"FAIL frames_{name}: {why}")
    return holds


def free_ports(n):
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    return [s.getsockname()[1] for s in sockets]


ports = dict(zip((POLICE, SHAPE, CONTROL), free_ports(3)))
forward = "".join(f",hostfwd=udp:127.0.0.1:{here}-10.0.2.15:{there}" for there, here in ports.items())
qemu = subprocess.Popen(
    ["qemu-system-arm", "-machine", "mps2-an385", "-nographic", "-monitor", "none", "-serial", "null"]
    + ["-semihosting-config", "enable=on,target=native", "-kernel", sys.argv[1]]
    + ["-netdev", "user,id=n0" + forward, "-net", "nic,netdev=n0"],
    stdin=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
    text=True,
)
flows = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(4)]
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.settimeout(0.5)
deadline = time.monotonic() + 300


def ask(question):
    """Asks until there is an answer: the first datagrams may be lost to address resolution."""
    while time.monotonic() < deadline:
        asker.sendto(question, ("127.0.0.1", ports[CONTROL]))
        try:
            answer = asker.recv(2048)
            if question[4:8] in (b"", answer[4:8]):
                return answer
        except socket.timeout:
            pass
    sys.exit("FAIL frames_firmware_answers: it does not")


try:
    for line in qemu.stderr:
        if "frames: ready" in line:
            break
    entries, echoes, sent = [], set(), 0

    def send(flow, port):
        global sent
        sent += 1
        flow.sendto(struct.pack(">I", sent) + b"." * 20, ("127.0.0.1", ports[port]))

    def read_log():
        while True:
            answer = ask(b"LOG " + struct.pack(">I", len(entries)))
            for entry in struct.iter_unpack(">IIII4sHBB", answer[8:]):
                now, wait, left, number, address, port, is_shaped, passed = entry
                # The clock of 32 bits wraps; here it goes on.
                last = entries[-1]["now"] if entries else now
                now = last + (now - last) % 2**32
                entries.append(
                    {"now": now, "wait": wait, "left": left and now + (left - now) % 2**32, "number": number}
                    | {"from": (address, port), "shaped": bool(is_shaped), "passed": bool(passed)}
                )
            if len(entries) >= struct.unpack(">I", answer[:4])[0]:
                return

    ask(b"LOG \0\0\0\0")
    def verdicts():
        return {(e["shaped"], e["passed"]) for e in entries}

    # In turns one flood for each port, until the clock has wrapped and gone on for half a second and both ports have said
    # yes and no. A flood holds 30 more than its port lets through at once, and fits the controller's buffer: so on a busy
    # machine too, where time passes between two floods, its end is refused.
    rounds = 0
    while not entries or entries[-1]["now"] < 2**32 + 500000 or len(verdicts()) < 4:
        if time.monotonic() > deadline or len(entries) > 30000:
            sys.exit(f"FAIL frames_clock_wraps_and_all_verdicts: not within {len(entries)} decisions: {verdicts()}")
        for n in range(100 if rounds % 2 == 0 else 64):
            send(flows[n % 2 + rounds % 4], POLICE) if rounds % 2 == 0 else send(flows[0], SHAPE)
        rounds += 1
        while ready := select.select(flows, [], [], 0.02)[0]:
            echoes |= {struct.unpack(">I", flow.recv(2048)[:4])[0] for flow in ready}
        read_log()
    # Once more, and all of it: what was queued has left since.
    entries.clear()
    read_log()
    ask(b"END ")
    status = qemu.wait(60)
finally:
    qemu.kill()

passed = {e["number"] for e in entries if e["passed"]}
bad = wrong(entries)
early = [e for e in entries if e["shaped"] and e["passed"] and e["left"] and e["left"] - e["now"] < e["wait"]]
delayed = [e for e in entries if e["shaped"] and e["left"] and e["wait"]]
print(f"frames: {sent} datagrams, {len(entries)} decisions, {len(passed)} passed, {len(echoes)} echoes seen")
holds = [
    claim("firmware_ends_with_status_0", status == 0, f"status {status}"),
    claim("every_decision_is_that_of_plain_arithmetic", len(entries) > 100 and not bad, f"{len(bad)}: {bad[:3]}"),
    claim("both_verdicts_of_both_ports_are_there", len(verdicts()) == 4, f"{verdicts()}"),
    claim("only_what_passed_comes_back", len(echoes) > 20 and echoes <= passed, f"{sorted(echoes - passed)[:9]}"),
    claim("nothing_leaves_before_its_time", delayed and not early, f"{early[:3]} of {len(delayed)}"),
    # A judge that cannot fail shows nothing.
    claim("control_another_limit_decides_otherwise", bool(wrong(entries, (10001, 20, 0))), "all the same"),
]
sys.exit(not all(holds))
