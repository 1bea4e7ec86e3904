"""A server that a test starts, and what all of them have in common: arguments, its end, settings that it refuses."""

import argparse
import pathlib
import signal
import subprocess


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def end(process):
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def refuses(check, wrong, right):
    """Each of the wrong settings is refused with its word, the right one is taken; `check` gives both."""
    for setting, word in wrong:
        taken, text = check(setting)
        assert not taken and word in text, (setting, text[-300:])
    taken, text = check(right)
    assert taken, text
