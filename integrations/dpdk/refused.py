"""Settings that make no sense: each is refused by its name, with the cure."""
from frames import run

CASES = (
    (['--mode', 'mad'], 'it is none, bytes'),
    (['--bytes', '5'], 'RATE:BURST'),
    (['--bytes', '5/fortnight'], 'byte 2: it is RATE:BURST'),
    (['--packets', '5/m burst 2'], 'a whole number a second'),
    (['--bytes', '-5:1'], 'RATE:BURST'),
    (['--packets', '1:99999999999999999999'], 'RATE:BURST'),
    (['--key', 'offset:1:17'], 'LENGTH 1 to 16'),
    (['--key', 'offset:65536:1'], 'AT up to 65535'),
    (['--mode', 'bytes'], '--bytes RATE:BURST'),
    (['--mode', 'both', '--bytes', '9:9'], '--packets'),
    (['--bytes', '0:9', '--mode', 'bytes'], 'rate'),
    (['--bits6', '129'], '1 to 128'),
    (['--bits6', '0'], '1 to 128'),
    (['--room', '0'], '1 to 65407'),
    (['--dscp', '64:1'], '0 to 63'),
    (['--fill', '0'], '1 to 16777216'),
    (['--undecided', 'maybe'], 'pass or drop'),
    (['--kind', '2696'], '2697, 2698'),
    (['--kind', '2697', '--mode', 'mark', '--committed', '2:1', '--second', '1:1'], '--mode meter'),
    (['--committed', '2:1', '--second', '1:1', '--mode', 'mark'], 'peak'),
    (['--in', '7'], 'no such port'),
    (['--slots', '99999999999', '--mode', 'bytes', '--bytes', '9:9'], '-m'),
    (['--idle', '1s'], 'milliseconds'),
)


def refused_settings(t):
    def refused(options, cure):
        """What is wrong and what is right are in one line."""
        try:
            run(t.policer, [*options, '--count', '100'], ['net_null0'])
        except RuntimeError as error:
            said = str(error).splitlines()[-1].partition(': exit 1: policer: ')[2]
            assert options[0] in said and cure in said, f'{options}: {said}'
            return
        raise AssertionError(f'{options} were taken')
    for options, cure in CASES:
        t.test(f'refused_is {" ".join(options)}', lambda options=options, cure=cure: refused(options, cure))
