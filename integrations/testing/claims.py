"""PASS, FAIL and SKIP lines, and their counts."""

import sys
import time
import traceback


class Skip(Exception):
    """A claim cannot be looked at here: why, and how to get what is missing."""


class Claims:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def say(self, line):
        print(line, flush=True)

    def claim(self, name, ask):
        try:
            ask()
        except Skip as why:
            self.skip(name, str(why))
        except Exception as e:  # Whatever it is, the claim does not hold.
            for line in traceback.format_exc().splitlines()[-12:]:
                self.say(f"    {line}")
            self.failed += 1
            self.say(f"FAIL {name}: {' '.join(str(e).split())[:300] or type(e).__name__}")
        else:
            self.passed += 1
            self.say(f"PASS {name}")

    def skip(self, name, why):
        self.skipped += 1
        self.say(f"SKIP {name}: {why}")

    def end(self):
        self.say(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.exit(1 if self.failed else 0)


def equal(found, wanted, what=""):
    assert found == wanted, f"{what} {found!r} instead of {wanted!r}"


def counted_down(found, wanted, seconds, since):
    """Whole seconds that run down from `seconds` since some moment after `since`, at each {} of `wanted`."""
    least = max(0, seconds - int(time.monotonic() - since))
    texts = [wanted.format(*[left] * wanted.count("{}")) for left in range(least, seconds + 1)]
    assert found in texts, f"{found!r} instead of one from {texts[0]!r} to {texts[-1]!r}"


def patiently(ask, tries=5):
    """Times are judged: a busy machine gets another chance, a defect does not hold five times."""
    def claim():
        for i in range(tries):
            try:
                return ask()
            except (AssertionError, Skip):
                if i == tries - 1:
                    raise
    return claim


def bounded(passed, bound):
    """What passed, by its bound: one that is broken is a failure at once, also of a claim that is asked patiently."""
    if passed > bound:
        raise RuntimeError(f"{passed} passed, bound {bound:.1f}")
