"""Rate limits, decided by libtatcell.

>>> from tatcell import Limiter
>>> clients = Limiter("10/s burst 20", keys=100_000)
>>> clients.hit("192.0.2.1")
True

A limit is read by the library: an amount, a slash, a time, and perhaps a burst ("100/15min", "1.5MB/s burst 64kB").
A key is str (its UTF-8), bytes, an int of 64 bits, or an address of ipaddress. Times are seconds, but `now`, which
every call takes in place of the monotonic clock, is nanoseconds.

Any number of threads may use one object. After a fork the child has a copy of the counts, unless the table is shared
(`shared=True` or a `name`). Objects hold no lock, so a fork is safe at any time.
"""

from ._core import Cell, Chain, Decision, Limiter, network
from ._limited import limited
from ._refused import RateLimited
from ._types import Algorithm, Full, Key

__all__ = [
    "Algorithm",
    "Cell",
    "Chain",
    "Decision",
    "Full",
    "Key",
    "Limiter",
    "RateLimited",
    "limited",
    "network",
]
