"""A storage and a strategy for the package `limits`. SPDX-License-Identifier: MIT OR Apache-2.0

Importing this module registers the storage `tatcell://` and the strategy "tatcell". With the storage, the strategy
"moving-window" works, too: flask-limiter and slowapi take storage_uri="tatcell://" with strategy="moving-window". The
default of both, "fixed-window", counts, and raises NotImplementedError in each request. There is no storage for
limits.aio ("async+tatcell://"): a decision waits for nothing, so coroutines may call these as they are. Both strategies
decide by GCRA: a key may use its whole amount at once, and then gets it back evenly. So within one period a key may
pass up to twice its amount; a moving window admits it once. Refused requests cost nothing.

    tatcell://                 counts of this process
    tatcell:///api             counts that all processes of this user share; names of the shared memory begin with /api
    tatcell://?keys=1000000    for a million keys of each limit

A URI that says anything else raises ValueError.
"""

from __future__ import annotations

import time
import uuid
from urllib.parse import parse_qsl, urlsplit

from limits import RateLimitItem, strategies
from limits.storage import MovingWindowSupport, Storage
from limits.util import WindowStats

from ._core import Decision, Limiter


def back(decision: Decision) -> float:
    """When a refused key has a unit again, or else when it has all of them."""
    return time.time() + (decision.reset_after if decision else decision.retry_after)


def read(uri: str, options: dict[str, float | str | bool]) -> tuple[str | None, int]:
    """The name and the keys that a URI and its options ask for."""
    parts = urlsplit(uri)
    if parts.netloc:
        raise ValueError(
            f"{uri}: a name stands behind three slashes, tatcell:///{parts.netloc}; without one, write tatcell://"
        )
    if parts.path and not parts.path.strip("/"):
        raise ValueError(f"{uri}: the name is missing, as in tatcell:///api; without one, write tatcell://")
    if parts.fragment:
        raise ValueError(f"{uri}: leave '#{parts.fragment}' out: there is only ?keys= behind the name")
    given = [*parse_qsl(parts.query, keep_blank_values=True), *options.items()]
    for name, _ in given:
        if name != "keys":
            raise ValueError(f"{uri}: there is no option {name!r}: there is only keys, the number of keys of a limit")
    if len(given) > 1:
        raise ValueError(f"{uri}: keys is given twice")
    keys = given[0][1] if given else 100_000
    if isinstance(keys, str) and keys.isascii() and keys.isdigit():
        keys = int(keys)
    if isinstance(keys, bool) or not isinstance(keys, int):
        raise ValueError(f"{uri}: keys is a whole number, not {keys!r}")
    return parts.path or None, keys


class TatcellStorage(Storage, MovingWindowSupport):
    """One table for each limit."""

    STORAGE_SCHEME = ["tatcell"]

    def __init__(self, uri: str = "tatcell://", wrap_exceptions: bool = False, **options: float | str | bool) -> None:
        super().__init__(uri, wrap_exceptions, **options)
        self.name, self.keys = read(uri, options)
        # A name or a number that makes no table raises now, and in no request.
        name = f"{self.name}-{uuid.uuid4().hex}" if self.name else None
        with Limiter("1/s", keys=self.keys, name=name):
            if name:
                Limiter.unlink(name)
        self.tables: dict[tuple[int, int], Limiter] = {}

    @property
    def base_exceptions(self) -> type[Exception] | tuple[type[Exception], ...]:
        return (ValueError, OSError)

    def table(self, amount: int, seconds: int) -> Limiter:
        """The table of a limit; made when the limit is first used."""
        found = self.tables.get((amount, seconds))
        if found is None:
            name = f"{self.name}-{amount}-{seconds}" if self.name else None
            # Another thread may be here, too: both use the table that was stored first.
            found = self.tables.setdefault(
                (amount, seconds), Limiter(f"{amount}/{seconds}s", keys=self.keys, name=name)
            )
        return found

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        # An amount of 0 refuses all, as that of every storage. The library has no such limit.
        return limit > 0 and self.table(limit, expiry).hit(key, amount)

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        if limit == 0:
            return time.time(), 0
        decision = self.table(limit, expiry).peek(key)
        return back(decision) - expiry, limit - decision.remaining

    def check(self) -> bool:
        return True

    def reset(self) -> int | None:
        """Forgets all counts. What processes share cannot be forgotten for all of them at once: that raises."""
        if self.name:
            raise NotImplementedError(
                f"other processes use the tables of {self.name}, too: clear single keys, or stop them all and call"
                " Limiter.unlink for each name"
            )
        # A thread may be in a call: the memory goes with the last reference.
        tables, self.tables = self.tables, {}
        return len(tables)

    def clear(self, key: str) -> None:
        """For "moving-window", which does not say the limit: only those that this process has used are cleared."""
        for table in list(self.tables.values()):
            table.reset(key)

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        raise NotImplementedError(
            "tatcell:// decides and does not count: use the strategy 'moving-window' or 'tatcell'"
        )

    def get(self, key: str) -> int:
        return self.incr(key, 0)

    def get_expiry(self, key: str) -> float:
        return self.incr(key, 0)


class TatcellRateLimiter(strategies.RateLimiter):
    """The strategy "tatcell": fewer calls between `limits` and the table than "moving-window" has."""

    storage: TatcellStorage

    def __init__(self, storage: object) -> None:
        if not isinstance(storage, TatcellStorage):
            raise TypeError(f"the strategy 'tatcell' needs the storage tatcell://, not {type(storage).__name__}")
        super().__init__(storage)

    def hit(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        return item.amount > 0 and self.storage.table(item.amount, item.get_expiry()).hit(
            item.key_for(*identifiers), cost
        )

    def test(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        return item.amount > 0 and self.storage.table(item.amount, item.get_expiry()).test(
            item.key_for(*identifiers), cost
        )

    def peek(self, item: RateLimitItem, *identifiers: str) -> Decision:
        """The full answer to a request of cost 1, uncharged. A limit with an amount of 0 has none: ValueError."""
        return self.storage.table(item.amount, item.get_expiry()).peek(item.key_for(*identifiers))

    def clear(self, item: RateLimitItem, *identifiers: str) -> None:
        if item.amount > 0:
            self.storage.table(item.amount, item.get_expiry()).reset(item.key_for(*identifiers))

    def get_window_stats(self, item: RateLimitItem, *identifiers: str) -> WindowStats:
        if item.amount == 0:
            return WindowStats(time.time() + item.get_expiry(), 0)
        decision = self.peek(item, *identifiers)
        return WindowStats(back(decision), decision.remaining)


strategies.STRATEGIES["tatcell"] = TatcellRateLimiter  # type: ignore[assignment]
