"""Draws what comes out of the policer while a few sources flood: packets in by a pcap, out by another."""
import os
import random
import struct
import sys
import tempfile

from frames import frame, read, run, write

SECONDS, CLIENTS, ATTACKERS, STEP = 10, 40, 8, 100000
LIMIT = 12500  # bytes a second, of each source
WIDTH, HEIGHT, LEFT, TOP, GAP = 420, 190, 62, 56, 70
COLOURS = {'clients': '#2f6f9f', 'attackers': '#c9542b'}


def traffic():
    """(microseconds, who, frame): clients send 8 kB/s each; from 3 s to 7 s attackers send 250 kB/s each."""
    rng, packets = random.Random(7), []
    for i in range(CLIENTS + ATTACKERS):
        attacks = i >= CLIENTS
        rate, at, end = (250000, 3.0, 7.0) if attacks else (8000, 0.0, SECONDS)
        address = f'203.0.113.{i}' if attacks else f'10.0.0.{i}'
        while True:
            size = rng.choice((128, 594)) if not attacks else 594
            at += rng.expovariate(rate / size)
            if at >= end:
                break
            packets.append((int(at * 1e6), 'attackers' if attacks else 'clients', address, size))
    packets.sort()
    out = []
    for number, (at, who, address, size) in enumerate(packets):
        raw = bytearray(frame(address, size))
        struct.pack_into('>I', raw, 60, number)
        out.append((at + 1000000, who, bytes(raw)))
    return out


def rates(packets, numbers):
    """Kilobytes a second in each step, of clients and of attackers."""
    sums = {who: [0.0] * (SECONDS * 1000000 // STEP) for who in COLOURS}
    for number in numbers:
        at, who, raw = packets[number]
        sums[who][min((at - 1000000) // STEP, len(sums[who]) - 1)] += len(raw) * 1e6 / STEP / 1e3
    return sums


def panel(x, title, sums, top):
    """One chart: clients below, attackers on them."""
    steps = len(sums['clients'])
    px, py = WIDTH / steps, HEIGHT / top
    parts = [f'<text x="{x}" y="{TOP - 12}" class="t">{title}</text>']
    for level in range(0, int(top) + 1, 500):
        y = TOP + HEIGHT - level * py
        parts.append(f'<line x1="{x}" y1="{y:.1f}" x2="{x + WIDTH}" y2="{y:.1f}" class="g"/>')
        parts.append(f'<text x="{x - 6}" y="{y + 4:.1f}" class="n" text-anchor="end">{level}</text>')
    for second in range(0, SECONDS + 1, 2):
        parts.append(f'<text x="{x + WIDTH * second / SECONDS:.1f}" y="{TOP + HEIGHT + 16}" class="n" '
                     f'text-anchor="middle">{second} s</text>')
    base = [0.0] * steps
    for who, colour in COLOURS.items():
        high = [b + v for b, v in zip(base, sums[who])]
        points = [(x + i * px, TOP + HEIGHT - v * py) for i, v in enumerate(high)]
        points += [(x + i * px, TOP + HEIGHT - v * py) for i, v in reversed(list(enumerate(base)))]
        parts.append(f'<polygon fill="{colour}" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>')
        base = high
    return parts


def main():
    policer, to = sys.argv[1:]
    packets = traffic()
    with tempfile.TemporaryDirectory() as folder:
        into, out = os.path.join(folder, 'in.pcap'), os.path.join(folder, 'out.pcap')
        write(into, [(at, raw) for at, _, raw in packets])
        run(policer, ['--clock', 'rx', '--mode', 'bytes', '--bytes', f'{LIMIT}:2500'],
            [f'net_pcap0,rx_pcap={into},tx_pcap={out}'])
        passed = [struct.unpack_from('>I', raw, 60)[0] for raw in read(out)]
    before, after = rates(packets, range(len(packets))), rates(packets, passed)
    top = max(a + b for a, b in zip(*before.values())) * 1.05
    width, height = LEFT + 2 * WIDTH + GAP + 20, TOP + HEIGHT + 62
    clients = sum(1 for n in passed if packets[n][1] == 'clients') / sum(1 for p in packets if p[1] == 'clients')
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             'font-family="sans-serif">',
             '<style>.t{font-size:15px;font-weight:bold}.n{font-size:11px;fill:#555}.g{stroke:#ddd}</style>',
             f'<rect width="{width}" height="{height}" fill="#fff"/>',
             f'<text x="{LEFT}" y="20" class="n">kB/s between two ports: {CLIENTS} clients of 8 kB/s, and for four '
             f'seconds {ATTACKERS} attackers of 250 kB/s</text>']
    parts += panel(LEFT, 'No policer', before, top)
    parts += panel(LEFT + WIDTH + GAP, f'{LIMIT / 1000:g} kB/s and 2500 bytes at once for each source', after, top)
    for i, (who, colour) in enumerate(COLOURS.items()):
        x = LEFT + i * 110
        parts.append(f'<rect x="{x}" y="{height - 22}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="{height - 12}" class="n">{who}</text>')
    parts.append(f'<text x="{LEFT + WIDTH + GAP}" y="{height - 12}" class="n">{clients * 100:.1f} % of what clients '
                 'sent comes out</text></svg>')
    with open(to, 'w', encoding='utf-8') as f:
        f.write('\n'.join(parts) + '\n')


if __name__ == '__main__':
    main()
