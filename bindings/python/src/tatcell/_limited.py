# SPDX-License-Identifier: MIT OR Apache-2.0
"""The decorator `limited`, for functions and coroutine functions."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from ._core import Cell, Chain, Decision, Limiter

if TYPE_CHECKING:
    from ._core import Key

P = ParamSpec("P")
R = TypeVar("R")


class RateLimited(Exception):
    """A call was refused by its limit. `decision` says for how long."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision

    def __str__(self) -> str:
        if self.decision.verdict == "never":
            return f"refused: the cost {self.decision.cost} is above the burst {self.decision.burst}"
        return f"refused: retry after {self.decision.retry_after:.3f} s"


def asker(limit: Limiter | Cell | Chain, needs: str) -> Callable[[Key | tuple[Key, ...] | None, int], Decision]:
    """Returns how to ask a limit of any kind. `needs` says where a key comes from."""
    if isinstance(limit, Cell):
        cell = limit
        return lambda key, cost: cell.check(cost)
    if isinstance(limit, Chain):
        chain = limit
        return lambda key, cost: chain.check(
            *key if isinstance(key, tuple) else () if key is None else (key,), cost=cost
        )
    if isinstance(limit, Limiter):
        table = limit
        return lambda key, cost: table.check(cast("Key", key), cost)
    raise TypeError(f"{needs} takes a Limiter, a Cell or a Chain, not {type(limit).__name__}")


def limited(
    limit: Limiter | Cell | Chain,
    *,
    key: Callable[..., Key | tuple[Key, ...]] | None = None,
    cost: int = 1,
    wait: float = 0.0,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Limits the calls of a function or of a coroutine function.

    `key` gets the arguments of the call and returns the key, or a tuple of keys for a Chain; a Cell needs none. A call
    that is over the limit waits if it can pass within `wait` seconds, else it raises RateLimited. Calls that wait have
    no order among each other. A coroutine function waits by asyncio. An asynchronous generator is not a call that can
    wait: limit the coroutine function that reads it.
    """
    if isinstance(limit, Limiter) and key is None:
        raise TypeError("a Limiter needs a key: limited(limiter, key=lambda user: user)")
    ask = asker(limit, "limited")

    def delay(end: float, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float | None:
        """None: the call may go on. Otherwise the seconds to wait before the next attempt."""
        decision = ask(key(*args, **kwargs) if key else None, cost)
        if decision:
            return None
        left = end - time.monotonic()
        if decision.verdict == "never" or left <= 0 or decision.retry_after > left:
            raise RateLimited(decision)
        return decision.retry_after

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__name__} is an asynchronous generator: limit the coroutine that reads it")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def waits(*args: P.args, **kwargs: P.kwargs) -> Any:
                end = time.monotonic() + wait
                while (seconds := delay(end, args, kwargs)) is not None:
                    await asyncio.sleep(seconds)
                return await function(*args, **kwargs)

            return cast(Callable[P, R], waits)

        @functools.wraps(function)
        def sleeps(*args: P.args, **kwargs: P.kwargs) -> R:
            end = time.monotonic() + wait
            while (seconds := delay(end, args, kwargs)) is not None:
                time.sleep(seconds)
            return function(*args, **kwargs)

        return sleeps

    return decorate
