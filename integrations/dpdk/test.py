"""Tests of the policer: packets go in by a pcap, come out by another, and each is held against an exact bucket."""
import argparse
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback

from buckets import (RATE, SECOND, SIZES, START, address, all_or_none, marker, of_flows, of_small_flows, of_sources,
                     single_rate, stream)
from frames import BURST, EAL, bursts, dscp_of, frame, network, read, run, write
from refused import refused_settings


class Tests:
    def __init__(self, build, folder):
        self.build, self.policer, self.folder = build, os.path.join(build, 'policer'), folder
        self.passed = self.failed = self.skipped = 0

    def say(self, kind, name, why=''):
        print(f'{kind} {name}{": " if why else ""}{why}', flush=True)
        counts = {'PASS': 'passed', 'FAIL': 'failed', 'SKIP': 'skipped'}
        setattr(self, counts[kind], getattr(self, counts[kind]) + 1)

    def test(self, name, body):
        try:
            why = body()
            self.say('SKIP' if why else 'PASS', name, why or '')
        except Exception as error:  # one line a failure, and where it came from
            traceback.print_exc(file=sys.stderr)
            self.say('FAIL', name, ' '.join(str(error).split())[:400])

    def through(self, packets, options, vdevs=None):
        """What comes out, and the numbers."""
        into, out = os.path.join(self.folder, 'in.pcap'), os.path.join(self.folder, 'out.pcap')
        write(into, packets)
        if os.path.exists(out):
            os.remove(out)
        names = {'rx': into, 'tx': out}
        vdevs = [v.format(**names) for v in vdevs or ['net_pcap0,rx_pcap={rx},tx_pcap={tx}']]
        numbers = run(self.policer, ['--clock', 'rx', *options], vdevs)
        if numbers['received'] != len(packets) or numbers['unsent'] != 0:
            raise AssertionError(f'{len(packets)} packets went in: {numbers}')
        return read(out), numbers

    def same(self, got, want):
        """Packet by packet, in order."""
        for i, (a, b) in enumerate(zip(got, want)):
            if a != b:
                raise AssertionError(f'packet {i} of {len(got)} is {a[:64].hex()}, not {b[:64].hex()}')
        if len(got) != len(want):
            raise AssertionError(f'{len(got)} packets came out, not {len(want)}')


def main():
    arguments = argparse.ArgumentParser()
    for name in ('build', 'stage', 'make'):
        arguments.add_argument('--' + name, required=True)
    a = arguments.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    lacks = None
    if shutil.which('pkg-config') is None or subprocess.run(['pkg-config', '--exists', 'libdpdk']).returncode != 0:
        lacks = 'DPDK is not installed (apt-get install libdpdk-dev libpcap-dev)'
    if lacks:
        print(f'SKIP dpdk: {lacks}\n0 passed, 0 failed, 1 skipped')
        return 0
    with tempfile.TemporaryDirectory(prefix='tatcell-dpdk-') as folder:
        t = Tests(a.build, folder)
        made = subprocess.run([a.make, '-s', '-C', here, f'STAGE={a.stage}', f'BUILD={a.build}', 'all'],
                              capture_output=True, text=True)
        if made.returncode != 0:
            t.say('FAIL', 'the_policer_builds_without_a_warning', ' '.join((made.stdout + made.stderr).split())[:2000])
        else:
            t.say('PASS', 'the_policer_builds_without_a_warning')
            everything(t)
        print(f'{t.passed} passed, {t.failed} failed, {t.skipped} skipped')
        return t.failed != 0


def everything(t):
    def limit(options, decide, make, n=6000, seed=1, cost=lambda raw: len(raw)):
        """Packets that pass by the bucket of their key are those that come out, in order and unchanged."""
        packets, keys = stream(n, make, seed)
        want = []
        for (now, raw), key in zip(bursts(packets), keys):
            if decide(now, key, cost(raw)):
                want.append(raw)
        assert n // 20 < len(want) < n // 20 * 19, f'{len(want)} of {n} should pass: a poor test'
        got, numbers = t.through(packets, options)
        t.same(got, want)
        assert numbers['green'] == len(want) and numbers['red'] == n - len(want), numbers
        assert numbers['untracked'] == 0, numbers

    t.test('sources_are_held_to_bytes', lambda: limit(
        ['--mode', 'bytes', '--key', 'source', '--bytes', f'{RATE}:6000'],
        all_or_none((RATE, 6000, True)), of_sources(25)))
    t.test('sources_are_held_to_packets', lambda: limit(
        ['--mode', 'packets', '--key', 'source', '--packets', '200/s burst 8'],
        all_or_none((200, 8, False)), of_sources(25), seed=2))

    def silent():
        """A burst at once, and then nothing until the words of microseconds have just wrapped."""
        packets, at = [], START
        for wraps in (1, 1, 2, 3, 1):
            packets += [(at + i, frame('10.0.0.1', 128)) for i in range(BURST)]
            at += wraps * 2 ** 43 - SECOND // 10
        got, numbers = t.through(packets, ['--mode', 'packets', '--packets', f'200:{BURST}'])
        t.same(got, [raw for _, raw in packets])
        assert numbers['red'] == 0, numbers
    t.test('nobody_waits_for_an_old_debt_after_a_silence', silent)

    def networks(bits):
        """Sources that differ from bit 60 on: those that are equal in their first bits have one limit."""
        def make(rng):
            low = rng.randrange(1 << 12) << (128 - 72)
            source = ipaddress.IPv6Address((0x20010db8 << 96) + low + rng.randrange(9))
            return low >> (128 - bits), frame(str(source), 128)
        limit(['--mode', 'packets', '--packets', '200:8', '--bits6', str(bits)], all_or_none((200, 8, False)), make,
              seed=22)
    for bits in (62, 64):
        t.test(f'networks_of_{bits}_bits_of_ipv6_share_a_limit', lambda bits=bits: networks(bits))
    t.test('flows_are_held_to_packets_and_bytes_all_or_none', lambda: limit(
        ['--mode', 'both', '--key', 'flow', '--packets', '100:6', '--bytes', f'{RATE // 5}:3000'],
        all_or_none((100, 6, False), (RATE // 5, 3000, True)), of_flows(12), seed=3))
    t.test('overhead_is_a_part_of_the_cost', lambda: limit(
        ['--mode', 'bytes', '--bytes', f'{RATE}:6000', '--overhead', '24'],
        all_or_none((RATE, 6000, True)), of_sources(25), seed=4, cost=lambda raw: len(raw) + 24))

    def vlans(rng):
        tags = rng.choice(((5,), (6,), (5, 6), (6, 5), (5, 5)))
        return tags, frame('10.0.0.1', rng.choice(SIZES), tags=tags)
    t.test('vlans_and_inner_vlans_are_keys', lambda: limit(
        ['--mode', 'packets', '--key', 'vlan', '--packets', '500:8'],
        all_or_none((500, 8, False)), vlans, seed=5))

    def tagged(rng):
        i, tags = rng.randrange(5), rng.choice(((), (5,), (7, 9)))
        return i, frame(address(i), rng.choice(SIZES), tags=tags)
    t.test('sources_are_found_behind_tags', lambda: limit(
        ['--mode', 'packets', '--packets', '500:8'], all_or_none((500, 8, False)), tagged, seed=6))

    def by_offset(rng):
        i = rng.randrange(1, 7)
        raw = bytearray(frame('10.0.0.1', 128))
        raw[100:105] = bytes([i]) * 5
        return i, bytes(raw)
    t.test('a_key_lies_where_the_caller_says', lambda: limit(
        ['--mode', 'packets', '--key', 'offset:100:5', '--packets', '500:8'],
        all_or_none((500, 8, False)), by_offset, seed=7))

    def fragments(rng):
        i, fragment = rng.randrange(3), rng.choice((0x2000, 0x2000 | 40, 80))
        return i, frame(f'10.0.0.{i}', 256, port=rng.randrange(9), fragment=fragment)
    t.test('fragments_of_two_hosts_are_one_flow', lambda: limit(
        ['--mode', 'packets', '--key', 'flow', '--packets', '500:8'],
        all_or_none((500, 8, False)), fragments, seed=8))

    def extended(rng):
        """A flow is the same behind whatever stands between its addresses and its ports."""
        between = rng.choice(((), ((0, bytes(8)),), ((60, b'\0\1' + bytes(14)),), ((0, bytes(8)), (43, bytes(8))),
                              ((0, bytes(8)), (60, bytes(8)), (51, b'\0\4' + bytes(22))), ((60, bytes(8)),) * 8))
        port, proto = 1000 + rng.randrange(3), rng.choice((6, 17))
        return (port, proto), frame('2001:db8::7', 256, port=port, proto=proto, extensions=between)
    t.test('flows_are_found_behind_extension_headers', lambda: limit(
        ['--mode', 'packets', '--key', 'flow', '--packets', '500:8'],
        all_or_none((500, 8, False)), extended, seed=16))

    def fragments_of_6(rng):
        i, proto = rng.randrange(3), rng.choice((6, 17))
        body = b'\0\0' + rng.randrange(65536).to_bytes(2, 'big') + bytes(4)
        between = rng.choice((((44, body),), ((0, bytes(8)), (44, body))))
        return i, frame(f'2001:db8::{i}', 256, port=rng.randrange(9), proto=proto, extensions=between)
    t.test('fragments_of_two_hosts_of_ipv6_are_one_flow', lambda: limit(
        ['--mode', 'packets', '--key', 'flow', '--packets', '500:8'],
        all_or_none((500, 8, False)), fragments_of_6, seed=17))

    def endless(rng):
        """More extension headers than are walked, or one that says to be longer than the packet: no ports."""
        return 0, frame('2001:db8::9', 256, port=rng.randrange(99), extensions=rng.choice(
            (((60, bytes(8)),) * 9, ((60, b'\0' + bytes([255]) + bytes(6)),) * 9)))
    t.test('extension_headers_without_an_end_are_one_flow', lambda: limit(
        ['--mode', 'packets', '--key', 'flow', '--packets', '500:8'],
        all_or_none((500, 8, False)), endless, seed=18))

    # Mbufs of 33 bytes: headers lie in two and three segments of a packet, and so does what is written into them.
    for room in ('33', '15', '100'):
        t.test(f'headers_lie_in_segments_of_{room}_bytes', lambda room=room: limit(
            ['--mode', 'both', '--key', 'flow', '--packets', '100:6', '--bytes', f'{RATE // 5}:3000', '--room', room],
            all_or_none((100, 6, False), (RATE // 5, 3000, True)), of_small_flows(12), seed=19))
        t.test(f'a_key_lies_across_segments_of_{room}_bytes', lambda room=room: limit(
            ['--mode', 'packets', '--key', 'offset:100:5', '--packets', '500:8', '--room', room],
            all_or_none((500, 8, False)), by_offset, seed=20))

    def others(policy):
        """Whatever has no key is never charged, and passes or not as it is told."""
        cut = [frame('10.0.0.1', 30), frame('2001:db8::1', 50), frame('10.0.0.1', 64, kind=0x0806),
               frame('10.0.0.1', 64, tags=(1,), kind=0x88a8), b'\2' * 13, bytes([255] * 64)]
        packets, _ = stream(1000, lambda rng: (0, rng.choice(cut)), 9)
        got, numbers = t.through(packets, ['--mode', 'packets', '--packets', '1:1', '--others', policy])
        t.same(got, [raw for _, raw in packets] if policy == 'pass' else [])
        assert (numbers['others'], numbers['inserted'], numbers['red']) == (1000, 0, 0), numbers
    t.test('packets_without_a_key_pass_where_they_may', lambda: others('pass'))
    t.test('packets_without_a_key_are_dropped_where_they_may_not', lambda: others('drop'))

    def between():
        """Packets with and without a key in one burst: each gets its own answer."""
        def make(rng):
            i = rng.randrange(12)
            return (i, frame(address(i), 128)) if i < 9 else (None, frame('10.0.0.1', 64, kind=0x0806))
        packets, keys = stream(4000, make, 14)
        decide = all_or_none((200, 8, False))
        want = [raw for (now, raw), key in zip(bursts(packets), keys) if key is None or decide(now, key, 1)]
        got, numbers = t.through(packets, ['--mode', 'packets', '--packets', '200:8', '--others', 'pass'])
        t.same(got, want)
        assert numbers['others'] == keys.count(None) and numbers['red'] > 500, numbers
    t.test('packets_with_and_without_a_key_come_in_one_burst', between)

    def garbage():
        """Frames cut and changed anywhere: whatever key is looked for, all of them come out as they went in."""
        def make(rng):
            tags = rng.choice(((), (5,), (5, 6)))
            raw = bytearray(frame(address(rng.randrange(9)), 128, tags=tags))
            for _ in range(rng.randrange(4)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            return None, bytes(raw[:rng.randrange(1, len(raw) + 1)])
        packets, _ = stream(20000, make, 15)
        for key in ('source', 'flow', 'vlan', 'offset:60:16'):
            got, numbers = t.through(packets, ['--mode', 'both', '--key', key, '--others', 'pass', '--packets',
                                               '1000000:1000000', '--bytes', '10000000:10000000'])
            t.same(got, [raw for _, raw in packets])
            assert 1000 < numbers['others'] < 19000, numbers
    t.test('frames_that_are_cut_and_changed_harm_nothing', garbage)

    def colours(mode, kind, decide, make, n=8000, seed=10, rates=(f'{RATE}:4000', f'{RATE * 2}:8000'), more=()):
        """DSCP 10 for green and 12 for yellow; red does not come out."""
        packets, keys = stream(n, make, seed)
        want, counts = [], [0, 0, 0]
        for (now, raw), key in zip(bursts(packets), keys):
            colour = decide(now, key, len(raw))
            counts[colour] += 1
            if colour != 2:
                want.append((raw, (10, 12)[colour]))
        assert min(counts) > n // 50, f'{counts}: a poor test'
        got, numbers = t.through(packets, ['--mode', mode, '--kind', str(kind), '--key', 'flow', '--dscp', '10:12',
                                           '--committed', rates[0], '--second', rates[1], *more])
        assert [numbers['green'], numbers['yellow'], numbers['red']] == counts, f'{numbers}, not {counts}'
        assert len(got) == len(want), f'{len(got)} packets came out, not {len(want)}'
        for i, (raw, (came, dscp)) in enumerate(zip(got, want)):
            found, sound = dscp_of(raw)
            assert sound, f'packet {i} has a wrong checksum'
            assert found == dscp, f'packet {i} has DSCP {found}, not {dscp}'
            at = network(raw)
            # Of IPv4 also the checksum is new.
            same = at + 12 if raw[at] >> 4 == 4 else at + 2
            assert raw[:at] == came[:at] and raw[same:] == came[same:], f'packet {i} was changed'
    for kind in (2698, 4115):
        t.test(f'flows_are_marked_by_rfc_{kind}', lambda kind=kind: colours(
            'mark', kind, marker(kind, (RATE // 5, 3000), (RATE // 5 * 2, 6000)), of_flows(4),
            rates=(f'{RATE // 5}:3000', f'{RATE // 5 * 2}:6000')))

    without_a_verdict(t, limit, colours)

    t.test('marks_are_written_across_segments', lambda: colours(
        'mark', 2698, marker(2698, (RATE // 25, 600), (RATE // 25 * 2, 1200)), of_small_flows(4), seed=21,
        rates=(f'{RATE // 25}:600', f'{RATE // 25 * 2}:1200'), more=('--room', '15')))

    def tagged_flows(rng):
        tag = rng.randrange(1, 4) * 1000
        return tag, frame(address(rng.randrange(9)), rng.choice(SIZES), tags=(tag,))
    for kind in (2698, 4115):
        t.test(f'meters_by_index_mark_by_rfc_{kind}', lambda kind=kind: colours(
            'meter', kind, marker(kind, (RATE, 4000), (RATE * 2, 8000)), tagged_flows, seed=11))
    t.test('meters_by_index_mark_by_rfc_2697', lambda: colours(
        'meter', 2697, single_rate(RATE, 4000, 8000), tagged_flows, seed=12, rates=(f'{RATE}:4000', '0:8000')))

    def ring():
        """From a pcap through the policer into a ring, out of the ring into another pcap."""
        packets, keys = stream(4000, of_sources(25), 13)
        decide = all_or_none((RATE, 6000, True))
        want = [raw for (now, raw), key in zip(bursts(packets), keys) if decide(now, key, len(raw))]
        got, _ = t.through(packets, ['--mode', 'bytes', '--bytes', f'{RATE}:6000', '--in', '0', '--out', '1',
                                     '--relay', '1:2'],
                           ['net_pcap0,rx_pcap={rx}', 'net_ring0', 'net_pcap1,tx_pcap={tx}'])
        t.same(got, want)
    t.test('what_passes_goes_through_a_ring', ring)

    def lcores(table):
        """Time stands still: each source passes exactly its burst, however many lcores there are."""
        if (os.cpu_count() or 1) < 2:
            return 'one processor'
        eal = ['-l', '0,1'] + EAL[2:]
        n = run(t.policer, ['--mode', 'packets', '--packets', '1000:50', '--fill', '2000', '--clock', 'fixed',
                            '--table', table, '--count', '1000000'], ['net_null0,size=64'], eal)
        assert n['sent'] == 2000 * 50 and n['inserted'] == 2000 and n['others'] == 0, n
        return None
    t.test('lcores_share_one_table_exactly', lambda: lcores('shared'))
    t.test('lcores_have_exclusive_tables_of_the_flows_that_they_get', lambda: lcores('lcore'))

    def telemetry():
        """Numbers over the socket of DPDK's telemetry, while packets run."""
        prefix = f'tatcell{os.getpid()}'
        eal = [o for o in EAL if o not in ('--no-telemetry', '--no-shconf')] + ['--file-prefix', prefix]
        command = [t.policer, *eal, '--vdev=net_null0', '--', '--mode', 'packets', '--packets', '1000:10',
                   '--fill', '100', '--idle', '0']
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            base = '/var/run' if os.geteuid() == 0 else os.environ.get('XDG_RUNTIME_DIR', '/tmp')
            path, answer = f'{base}/dpdk/{prefix}/dpdk_telemetry.v2', None
            for _ in range(100):
                if child.poll() is not None:
                    return f'DPDK does not start with telemetry here: {child.stdout.read()[-200:].strip()!r}'
                if os.path.exists(path):
                    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                        s.settimeout(5)
                        s.connect(path)
                        s.recv(4096)
                        s.send(b'/tatcell/stats')
                        answer = json.loads(s.recv(65536))['/tatcell/stats']
                    if answer and answer['received'] > 100000:
                        break
                time.sleep(0.1)
            if answer is None:
                return f'no socket at {path} (run as root, or set XDG_RUNTIME_DIR)'
            assert answer['inserted'] == 100 and answer['green'] >= 1000 and answer['red'] > 0, answer
            assert answer['sent'] <= answer['green'] <= answer['received'], answer
            return None
        finally:
            child.terminate()
            child.wait(30)
    t.test('telemetry_tells_what_was_received_sent_and_dropped', telemetry)
    refused_settings(t)


def without_a_verdict(t, limit, colours):
    """The policer whose table loses races (contended.c)."""
    def losing(loses, body):
        policer, t.policer, os.environ['TATCELL_LOSES'] = t.policer, os.path.join(t.build, 'contended'), loses
        try:
            return body()
        finally:
            t.policer = policer
            del os.environ['TATCELL_LOSES']
    by_bytes, by_packets = ['--mode', 'bytes', '--bytes', f'{RATE}:6000'], ['--mode', 'packets', '--packets', '200:8']
    both = ['--mode', 'both', '--packets', '100:6', '--bytes', f'{RATE // 5}:3000']
    for options, rates in ((by_bytes, [(RATE, 6000, True)]), (by_packets, [(200, 8, False)]),
                           (both, [(100, 6, False), (RATE // 5, 3000, True)])):
        t.test(f'who_lost_a_race_gets_its_verdict_by_{options[1]}', lambda options=options, rates=rates: losing(
            'once', lambda: limit(options, all_or_none(*rates), of_sources(25), seed=23)))
    t.test('who_lost_a_race_gets_its_colour', lambda: losing('once', lambda: colours(
        'mark', 2698, marker(2698, (RATE, 4000), (RATE * 2, 8000)), of_sources(9), seed=24, more=('--key', 'source'))))

    def always(options, what):
        """Packets without a verdict do as they are told, the others as their limits say; lines tell of it."""
        packets, keys = stream(6000, of_sources(25), 25)
        decide, want, lost = all_or_none((200, 8, False)), [], 0
        for (now, raw), key in zip(bursts(packets), keys):
            if key % 3 == 0:
                lost += 1
            if what == 'pass' if key % 3 == 0 else decide(now, key, 1):
                want.append(raw)
        started = time.monotonic()
        got, n = t.through(packets, [*options, '--undecided', what])
        t.same(got, want)
        assert n['undecided'] == lost and n['green'] + n['red'] == 6000 - lost and n['red'] > 500, (lost, n)
        lines = [line for line in n['said'].splitlines() if 'got no verdict and ' in line]
        assert 1 <= len(lines) <= 2 + time.monotonic() - started, n['said']
        assert ('passed' if what == 'pass' else 'dropped') in lines[0] and 'contended' in lines[0], lines
    for what in ('pass', 'drop'):
        t.test(f'packets_without_a_verdict_{what}', lambda what=what: losing(
            'always', lambda: always(by_packets, what)))

    def roomy(mode, what):
        """All packets with room for all of them: what comes out, by its colour, is what has a verdict, and the rest."""
        packets, _ = stream(6000, lambda rng: (0, frame(address(rng.randrange(25)), 128, tags=(5,))), 26)
        got, n = t.through(packets, ['--mode', mode, '--dscp', '10:12', '--undecided', what, *wide])
        found = [dscp_of(raw)[0] for raw in got]
        assert 500 < n['undecided'] < 3000 and n['green'] == 6000 - n['undecided'] and n['red'] == 0, n
        colour = 12 if mode in ('mark', 'meter') else 10
        left = n['undecided'] if what == 'pass' else 0
        assert found.count(colour) == left + (n['green'] if colour == 10 else 0), (found.count(colour), n)
        assert len(got) == n['green'] + left, (len(got), n)
    wide = ['--packets', '1000000:10000', '--committed', f'{SECOND}:{SECOND}', '--second', f'{SECOND}:{SECOND}']
    for loses, mode in (('always', 'mark'), ('always', 'meter'), ('table', 'packets'), ('table', 'mark')):
        for what in ('pass', 'drop'):
            name = {'always': 'lost', 'table': 'got_an_error'}[loses]
            t.test(f'packets_that_{name}_in_{mode}_{what}', lambda loses=loses, mode=mode, what=what: losing(
                loses, lambda: roomy(mode, what)))


if __name__ == '__main__':
    sys.exit(main())
