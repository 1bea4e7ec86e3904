"""Ethernet frames, pcap files with microseconds, and runs of the policer over net_pcap."""
import ipaddress
import re
import struct
import subprocess

EAL = ['-l', '0', '--no-huge', '--no-pci', '-m', '512', '--no-telemetry', '--no-shconf', '--log-level', 'lib.eal:4']
BURST = 32
NUMBER = re.compile(r'(\w+) ([0-9.]+)')


def checksum(header):
    total = sum(struct.unpack('>%dH' % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def frame(source, size=64, port=1000, proto=17, tags=(), to='10.1.1.1', dscp=0, fragment=0, kind=None,
          extensions=()):
    """A frame of `size` bytes from an address, IPv4 or IPv6, with up to two VLAN tags. `extensions` of IPv6: pairs of
    a header's number and its bytes, the first of which the next number takes."""
    source = ipaddress.ip_address(source)
    ports = struct.pack('>HH', port, 53)
    head = b'\2' * 6 + b'\4' * 6
    for i, tag in enumerate(tags):
        head += struct.pack('>HH', 0x88a8 if len(tags) == 2 and i == 0 else 0x8100, tag)
    if kind is not None:
        head += struct.pack('>H', kind)
        return (head + bytes(size))[:size]
    if source.version == 4:
        length = max(size - len(head) - 2, 0)
        ip = struct.pack('>BBHHHBBH4s4s', 0x45, dscp << 2, length, 7, fragment, 64, proto, 0, source.packed,
                         ipaddress.ip_address(to).packed)
        ip = ip[:10] + struct.pack('>H', checksum(ip)) + ip[12:]
        head += b'\x08\x00' + ip
    else:
        length = max(size - len(head) - 2 - 40, 0)
        numbers = [number for number, _ in extensions] + [proto]
        head += b'\x86\xdd' + struct.pack('>IHBB', 6 << 28 | dscp << 22, length, numbers[0], 64)
        head += source.packed + ipaddress.ip_address('2001:db8::1').packed
        for (_, body), after in zip(extensions, numbers[1:]):
            head += bytes([after]) + body[1:]
    return (head + ports + bytes(size))[:size]


def network(raw):
    """Where IP starts in a frame."""
    at = 12
    while raw[at:at + 2] in (b'\x81\x00', b'\x88\xa8'):
        at += 4
    return at + 2


def dscp_of(raw):
    """DSCP of a frame and, of IPv4, whether its checksum holds."""
    ip = raw[network(raw):]
    if ip[0] >> 4 == 4:
        return ip[1] >> 2, checksum(ip[:20]) == 0
    return (struct.unpack('>I', ip[:4])[0] >> 22) & 63, True


def write(path, packets):
    """`packets`: (microseconds, bytes)."""
    with open(path, 'wb') as f:
        f.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for at, raw in packets:
            f.write(struct.pack('<IIII', at // 1000000, at % 1000000, len(raw), len(raw)) + raw)


def read(path):
    with open(path, 'rb') as f:
        data = f.read()
    at, out = 24, []
    while at < len(data):
        length = struct.unpack('<IIII', data[at:at + 16])[2]
        out.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return out


def run(policer, options, vdevs, eal=EAL, timeout=120):
    """Runs the policer to its end: its numbers, and what it said beside them."""
    command = [policer, *eal, *('--vdev=' + v for v in vdevs), '--', *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    lines = [line for line in done.stdout.splitlines() if line.startswith('received ')]
    if done.returncode != 0 or len(lines) != 1:
        raise RuntimeError(f'{" ".join(command)}: exit {done.returncode}: {done.stdout}{done.stderr}')
    lines += [line for line in done.stdout.splitlines() if line.startswith('ns ')]
    numbers = {name: float(n) if '.' in n else int(n) for name, n in NUMBER.findall(' '.join(lines))}
    return {**numbers, 'said': done.stderr}


def bursts(packets):
    """The packets as net_pcap hands them over, each with the reading of the clock that its burst has."""
    for i, (_, raw) in enumerate(packets):
        yield packets[i - i % BURST][0], raw
