"""Times tatcell and other limiters of PyPI, and prints a table in Markdown, then the version of Python.
SPDX-License-Identifier: MIT OR Apache-2.0

Every limiter gets the same limit, 10 a second and 20 at once, and the same keys, 100 000 addresses as str. Where a
limiter has no burst of its own, it is its kind's nearest: 20 in 2 seconds. Each runs in a process of its own:

1. one key     one key asked again and again, so most requests are refused
2. all keys    each key once, twice over: the keys are in memory by the second time
3. bytes       what the process grew by, for a key: all keys had their first request, and all state is still needed

A time is the least of five runs, and their median. `async` limiters are asked without waiting, if the limiter can be.
"""

import asyncio
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

KEYS = 100_000
RUNS = 5
Hit = Callable[[str], Any]


def tatcell_hit() -> Hit:
    from tatcell import Limiter

    return Limiter("10/s burst 20", keys=KEYS).hit


def tatcell_check() -> Hit:
    from tatcell import Limiter

    return Limiter("10/s burst 20", keys=KEYS).check


def tatcell_limits() -> Hit:
    import limits

    import tatcell.limits

    item, limiter = limits.parse("20/2 second"), tatcell.limits.TatcellRateLimiter(tatcell.limits.TatcellStorage())
    return lambda key: limiter.hit(item, key)


def throttled_gcra() -> Hit:
    from throttled import MemoryStore, Throttled, rate_limiter

    store = MemoryStore(options={"MAX_SIZE": 10 * KEYS})
    return Throttled(using="gcra", quota=rate_limiter.per_sec(10, burst=20), store=store).limit


def throttled_fixed() -> Hit:
    from throttled import MemoryStore, Throttled, rate_limiter

    store = MemoryStore(options={"MAX_SIZE": 10 * KEYS})
    return Throttled(using="fixed_window", quota=rate_limiter.per_duration(timedelta(seconds=2), 20), store=store).limit


def of_limits(strategy: str) -> Callable[[], Hit]:
    def make() -> Hit:
        import limits

        item = limits.parse("20/2 second")
        limiter = limits.strategies.STRATEGIES[strategy](limits.storage.MemoryStorage())
        return lambda key: limiter.hit(item, key)

    return make


def pyrate() -> Hit:
    from pyrate_limiter import BucketFactory, InMemoryBucket, Limiter, MonotonicClock, Rate, RateItem

    class Factory(BucketFactory):
        def __init__(self) -> None:
            self.clock, self.buckets = MonotonicClock(), {}

        def wrap_item(self, name: str, weight: int = 1) -> RateItem:
            return RateItem(name, self.clock.now(), weight=weight)

        def get(self, item: RateItem) -> InMemoryBucket:
            bucket = self.buckets.get(item.name)
            if bucket is None:
                bucket = self.buckets[item.name] = InMemoryBucket([Rate(20, 2000)])
            return bucket

    limiter = Limiter(Factory())
    return lambda key: limiter.try_acquire(key, blocking=False)


def aio() -> Hit:
    from aiolimiter import AsyncLimiter

    limiters: dict[str, Any] = {}

    # The body of acquire() when there is room, which is all that it does then: no task has to wait.
    def hit(key: str) -> bool:
        limiter = limiters.get(key)
        if limiter is None:
            limiter = limiters[key] = AsyncLimiter(20, 2)
        if not limiter.has_capacity():
            return False
        try:
            limiter.acquire().send(None)
        except StopIteration:
            return True
        raise AssertionError("it waits")

    return hit


# Name, package, what it decides by, how it is made.
LIMITERS: list[tuple[str, str, str, Callable[[], Hit]]] = [
    ("tatcell, `hit`", "tatcell", "GCRA", tatcell_hit),
    ("tatcell, `check` (all numbers)", "tatcell", "GCRA", tatcell_check),
    ("tatcell as a strategy of limits", "limits", "GCRA", tatcell_limits),
    ("throttled-py", "throttled-py", "GCRA", throttled_gcra),
    ("throttled-py", "throttled-py", "fixed window", throttled_fixed),
    ("limits", "limits", "fixed window", of_limits("fixed-window")),
    ("limits", "limits", "sliding window counter", of_limits("sliding-window-counter")),
    ("limits", "limits", "moving window (log)", of_limits("moving-window")),
    ("pyrate-limiter", "pyrate-limiter", "log in a bucket", pyrate),
    ("aiolimiter", "aiolimiter", "leaky bucket, one object a key", aio),
]


def grown() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def all_keys() -> list[str]:
    return [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(KEYS)]


def timed(work: Callable[[], object], calls: int) -> str:
    """The least of five times of a call, and their median, in nanoseconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        work()
        times.append((time.perf_counter_ns() - start) / calls)
    return f"{min(times):.0f} ({statistics.median(times):.0f})"


def measure(index: int) -> dict[str, str]:
    """In a process of its own."""
    keys = all_keys()
    gc.collect()

    async def main() -> dict[str, str]:
        LIMITERS[index][3]()("192.0.2.1")  # imports what it needs
        gc.collect()
        before = grown()
        hit = LIMITERS[index][3]()

        def every() -> None:
            for key in keys:
                hit(key)

        every()
        size = (grown() - before) / KEYS
        answers = {"bytes": f"{size:.0f}", "all": timed(every, KEYS)}

        def one() -> None:
            for _ in range(20_000):
                hit("192.0.2.1")

        return answers | {"one": timed(one, 20_000)}

    return asyncio.run(main())


def bursts() -> list[tuple[str, str]]:
    from array import array

    from tatcell import Limiter

    limiter, keys, numbers = Limiter("10/s burst 20", keys=KEYS), all_keys(), array("Q", range(KEYS))
    rows = []
    for name, given in ("a list of str", keys), ("an array of 64-bit numbers", numbers):
        limiter.hit_many(given)
        rows.append((f"tatcell, `hit_many`, {name}", timed(lambda: limiter.hit_many(given), KEYS)))
    return rows


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
        return
    print("| Limiter | Decides by | one key, ns | each of 100 000 keys, ns | bytes a key |\n|---|---|---|---|---|")
    for index, (name, package, kind, _) in enumerate(LIMITERS):
        done = subprocess.run([sys.executable, __file__, str(index)], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"| {name} | {kind} | it failed: {done.stderr.strip().splitlines()[-1]} | | |")
            continue
        row = json.loads(done.stdout)
        shown = name if name.startswith("tatcell") else f"{name} {importlib.metadata.version(package)}"
        print(f"| {shown} | {kind} | {row['one']} | {row['all']} | {row['bytes']} |", flush=True)
    for name, time_ns in bursts():
        print(f"| {name} | GCRA | | {time_ns} | the same |")
    print(f"\nPython {platform.python_version()}")


if __name__ == "__main__":
    main()
