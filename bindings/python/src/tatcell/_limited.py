# SPDX-License-Identifier: MIT OR Apache-2.0
"""The decorator `limited`, for functions and coroutine functions."""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from ._core import Cell, Chain, Decision, Limiter
from ._refused import RateLimited

if TYPE_CHECKING:
    from ._types import Key

P = ParamSpec("P")
R = TypeVar("R")


def asker(limit: Limiter | Cell | Chain, needs: str) -> Callable[[Key | tuple[Key, ...] | None, int], Decision]:
    """Returns how to ask a limit of any kind. `needs` says where a key comes from."""
    if isinstance(limit, Cell):
        cell = limit
        return lambda key, cost: cell.check(cost)
    if isinstance(limit, Chain):
        chain = limit
        if chain.limiters == 0:
            return lambda key, cost: chain.check(cost=cost)
        return lambda key, cost: chain.check(
            *key if isinstance(key, tuple) else () if key is None else (key,), cost=cost
        )
    if isinstance(limit, Limiter):
        table = limit
        return lambda key, cost: table.check(cast("Key", key), cost)
    raise TypeError(f"{needs} takes a Limiter, a Cell or a Chain, not {type(limit).__name__}")


def trial(limit: Limiter | Cell | Chain, cost: int) -> Decision:
    """Asks a limit about some key without a charge. It raises if the cost is wrong, or the limit is closed."""
    if isinstance(limit, Chain):
        return limit.peek(*[b"key"] * limit.limiters, cost=cost)
    return limit.peek(cost) if isinstance(limit, Cell) else limit.peek(b"key", cost)


def needs_function(name: str, value: object) -> None:
    if not callable(value):
        raise TypeError(f"{name} is a function that returns the key, not {type(value).__name__}")
    if is_coroutine(value):
        raise TypeError(f"{name} is a coroutine function: it must return the key itself")


def is_coroutine(function: Callable[..., Any]) -> bool:
    """Whether a call returns a coroutine: also that of an object, or of a partial."""
    if isinstance(function, functools.partial):
        return is_coroutine(function.func)
    if inspect.isclass(function):
        return False
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))


def sleep(seconds: float) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        time.sleep(seconds)
    else:
        raise RuntimeError("this would stop the event loop: put limited() around a coroutine function, or take wait=0")


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
    no order among each other. A coroutine function waits by asyncio. Any other function in the thread of an event loop
    raises RuntimeError instead of waiting. An asynchronous generator is not a call that can wait: limit the coroutine
    function that reads it.
    """
    ask = asker(limit, "limited")
    if key is not None:
        needs_function("key", key)
    elif isinstance(limit, Limiter):
        raise TypeError("a Limiter needs a key: limited(limiter, key=lambda user: user)")
    elif isinstance(limit, Chain) and limit.limiters > 0:
        raise TypeError(f"a Chain of {limit.limiters} limiters needs key=, which returns a tuple of as many keys")
    trial(limit, cost)
    if isinstance(wait, bool) or not isinstance(wait, int | float):
        raise TypeError(f"wait is a number of seconds, not {type(wait).__name__}")
    if math.isnan(wait) or wait < 0:
        raise ValueError(f"wait is {wait}: pass 0 or more seconds, math.inf for as long as it takes")

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
        if isinstance(function, staticmethod | classmethod):
            return cast(Callable[P, R], type(function)(decorate(function.__func__)))
        if not callable(function):
            raise TypeError(
                f"limited takes a function, not {type(function).__name__}: put it below @property and the like"
            )
        if inspect.isasyncgenfunction(function):
            raise TypeError(f"{function!r} is an asynchronous generator: limit the coroutine that reads it")
        if is_coroutine(function):

            @functools.wraps(function)
            async def waits(*args: P.args, **kwargs: P.kwargs) -> Any:
                end = time.monotonic() + wait
                while (seconds := delay(end, args, kwargs)) is not None:
                    await asyncio.sleep(seconds)
                return await cast(Any, function(*args, **kwargs))

            return cast(Callable[P, R], waits)

        @functools.wraps(function)
        def sleeps(*args: P.args, **kwargs: P.kwargs) -> R:
            end = time.monotonic() + wait
            while (seconds := delay(end, args, kwargs)) is not None:
                sleep(seconds)
            return function(*args, **kwargs)

        return sleeps

    return decorate
