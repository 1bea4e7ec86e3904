"""Streams of packets, and the exact buckets that they are held against."""
import random

from frames import BURST, frame

SECOND = 1000000
START = 1000 * SECOND
# Rates of which a byte, and a packet, takes a whole number of microseconds: nothing rounds.
RATE, SIZES = 125000, (64, 128, 594, 1500)


class Bucket:
    """Exact: the time at which it is full again, in microseconds."""

    def __init__(self, rate, burst):
        self.each, self.burst, self.full = SECOND // rate, burst, 0
        assert SECOND % rate == 0

    def fits(self, now, cost):
        return max(self.full - now, 0) + cost * self.each <= self.burst * self.each

    def pay(self, now, cost):
        self.full = max(self.full, now) + cost * self.each


def all_or_none(*rates):
    """A function of (now, key, size) that says whether a packet passes; rates are (rate, burst, bytes?)."""
    flows = {}

    def decide(now, key, size):
        buckets = flows.setdefault(key, [Bucket(rate, burst) for rate, burst, _ in rates])
        costs = [size if by_bytes else 1 for *_, by_bytes in rates]
        passes = all(bucket.fits(now, cost) for bucket, cost in zip(buckets, costs))
        for bucket, cost in zip(buckets, costs) if passes else ():
            bucket.pay(now, cost)
        return passes
    return decide


def marker(kind, committed, second):
    """A function of (now, key, size) that gives the colour of RFC 2698 or RFC 4115: 0, 1, 2."""
    flows = {}

    def decide(now, key, size):
        c, e = flows.setdefault(key, (Bucket(*committed), Bucket(*second)))
        if kind == 2698:
            if not e.fits(now, size):
                return 2
            e.pay(now, size)
            if not c.fits(now, size):
                return 1
            c.pay(now, size)
            return 0
        for colour, bucket in ((0, c), (1, e)):
            if bucket.fits(now, size):
                bucket.pay(now, size)
                return colour
        return 2
    return decide


def single_rate(rate, cbs, ebs):
    """RFC 2697, in tokens of a microsecond: what overflows C fills E."""
    flows, each = {}, SECOND // rate

    def decide(now, key, size):
        state = flows.setdefault(key, [cbs * each, ebs * each, now])
        room = cbs * each - state[0]
        passed = now - state[2]
        state[0] += min(passed, room)
        state[1] = min(state[1] + max(passed - room, 0), ebs * each)
        state[2] = now
        for colour in (0, 1):
            if state[colour] >= size * each:
                state[colour] -= size * each
                return colour
        return 2
    return decide


def stream(n, make, seed, gap=300):
    """Packets in bursts and pauses; `make(random)` gives a key and a frame."""
    rng, now, packets, keys = random.Random(seed), START, [], []
    for i in range(n):
        if i % BURST == 0:
            now += rng.randrange(gap * BURST) * (20 if rng.randrange(50) == 0 else 1)
        key, raw = make(rng)
        packets.append((now + i % BURST, raw))
        keys.append(key)
    return packets, keys


def address(i):
    return f'10.0.0.{i}' if i % 3 else f'2001:db8:0:{i:x}::1'


def of_sources(count):
    def make(rng):
        i = rng.randrange(count)
        return i, frame(address(i), rng.choice(SIZES), port=rng.randrange(4))
    return make


def of_flows(count):
    def make(rng):
        i, port, proto = rng.randrange(count), 1000 + rng.randrange(3), rng.choice((6, 17))
        return (i, port, proto), frame(address(i), rng.choice(SIZES), port=port, proto=proto)
    return make


def of_small_flows(count):
    def make(rng):
        i, port, tags = rng.randrange(count), 1000 + rng.randrange(3), rng.choice(((), (5,), (5, 6)))
        return (i, port), frame(address(i), rng.choice((80, 128, 200)), port=port, tags=tags)
    return make
