"""Runs `make compare` of each folder, and prints the table of docs/LANGUAGES.md: compare.py FOLDER...

A folder prints a table in Markdown, whose rows this one takes, and then a line with its version. What is timed runs at
real-time priority, where that is allowed: on the last processor, and the server over HTTP and its load on one each.
Builds run as usual. SPDX-License-Identifier: MIT OR Apache-2.0
"""

import datetime
import os
import pathlib
import re
import subprocess
import sys

LANGUAGES = {'tower': 'Rust, over HTTP', 'python': 'Python', 'node': 'Node', 'go': 'Go'}
COLUMNS = ('Language', 'Limiter', 'Decides by', 'one key, ns', 'each of 100 000 keys, ns', 'bytes a key', 'p99, ms')


def allowed(command):
    try:
        return subprocess.run([*command.split(), 'true'], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def machine():
    found = dict(re.findall(r'^(.*?)\t*: (.*)$', pathlib.Path('/proc/cpuinfo').read_text(), re.MULTILINE))
    name = f"{found.get('model name', 'unknown')} (family {found.get('cpu family')} model {found.get('model')})"
    load = os.getloadavg()[0]
    return f'{name}, {os.cpu_count()} processors, load {load:.1f} before; {datetime.date.today()}'


def main():
    where, versions = machine(), []
    two, one = 'chrt -r 20', f'chrt -r 20 taskset -c {max(os.sched_getaffinity(0))}'
    print('|', ' | '.join(COLUMNS), '|')
    print('|---' * len(COLUMNS), '|', sep='')
    for folder in sorted(sys.argv[1:], key=[*LANGUAGES].index):
        timed = two if folder == 'tower' else one
        if not allowed(timed):
            print(f'{folder}: no permission for {timed}', file=sys.stderr)
            timed = ''
        done = subprocess.run(['make', '-s', '-C', folder, 'compare'], env=os.environ | {'TIMED': timed}, check=False,
                              stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f'{folder}: make compare failed\n{done.stdout}')
        lines = done.stdout.strip().splitlines()
        rows = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines if line.startswith('| ')]
        for row in rows[1:]:
            row += [''] * (len(COLUMNS) - 1 - len(row))
            print('|', ' | '.join([LANGUAGES[folder], *row]), '|', flush=True)
        versions.append(f'{lines[-1]} ({timed or "no priority"})')
    print(f'\n{where}; {", ".join(versions)}')


if __name__ == '__main__':
    main()
