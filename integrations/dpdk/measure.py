"""Nanoseconds of CPU time a packet, net_null in and out: no policer, rte_meter by index, and tatcell by key."""
import sys

from frames import run

# Sources, slots, rounds, packets that count, and packets before them.
SIZES = ((10000, 1 << 16, 12, 2000000, 100000), (1000000, 1 << 22, 4, 4000000, 4000000))
FAST = ['--bytes', '12500000000:1000000', '--packets', '10000000:10000', '--committed', '6250000000:1000000',
        '--second', '12500000000:2000000']
SLOW = ['--bytes', '1000:2000', '--packets', '10:20', '--committed', '500:1000', '--second', '1000:2000']
ROWS = (
    ('no policer', ['--mode', 'none']),
    ('rte_meter, srTCM, by index (not shareable)', ['--mode', 'rte']),
    ('meter by index, RFC 2697', ['--mode', 'meter', '--kind', '2697']),
    ('bytes by source', ['--mode', 'bytes']),
    ('bytes by source, a table of one lcore', ['--mode', 'bytes', '--table', 'lcore']),
    ('packets by flow', ['--mode', 'packets', '--key', 'flow']),
    ('packets and bytes by source', ['--mode', 'both']),
    ('RFC 2698 by source', ['--mode', 'mark', '--kind', '2698']),
    ('RFC 4115 by source', ['--mode', 'mark', '--kind', '4115']),
)


def main():
    policer = sys.argv[1]
    for keys, slots, rounds, packets, warm in SIZES:
        print(f'{keys} sources, minimum of {rounds} rounds of {packets} packets; ns a packet, and beside no policer')
        print(f'{"":44} {"all pass":>14} {"few pass":>14}')
        best = {}
        for _ in range(rounds):
            for name, options in ROWS:
                for column, rates in enumerate((FAST, SLOW)):
                    n = run(policer, [*options, *rates, '--fill', str(keys), '--slots', str(slots), '--count',
                                      str(packets + warm), '--warm', str(warm)], ['net_null0,size=64'])
                    at = (name, column)
                    best[at] = min(best.get(at, n['ns']), n['ns'])
        for name, _ in ROWS:
            cells = [f'{best[name, c]:6.1f} {best[name, c] - best[ROWS[0][0], c]:+6.1f}' for c in (0, 1)]
            print(f'{name:44} {cells[0]:>14} {cells[1]:>14}', flush=True)


if __name__ == '__main__':
    main()
