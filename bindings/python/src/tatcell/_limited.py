# SPDX-License-Identifier: MIT OR Apache-2.0
"""The decorator `limited`, for functions and coroutine functions."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import math
import operator
import threading
import time
from collections.abc import Callable, Generator, Hashable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, SupportsIndex, TypeVar, cast

from ._core import Cell, Chain, Decision, Limiter
from ._lines import E, clock, lines, steps
from ._refused import RateLimited

if TYPE_CHECKING:
    from ._types import Key

P = ParamSpec("P")
R = TypeVar("R")


class Asker(Protocol):
    def __call__(self, key: Key | tuple[Key, ...] | None, cost: int, now: int | None = None, /) -> Decision: ...


class Turn:
    """An event for threads. One of threading can block its waiter for ever if a handler of signals raises in set()."""

    def __init__(self) -> None:
        lock = threading.Lock()
        lock.acquire()
        self.set = lock.release
        self.wait = lock.acquire


def keys_of(key: Key | tuple[Key, ...] | None) -> tuple[Key, ...]:
    return key if isinstance(key, tuple) else () if key is None else (key,)


def asker(limit: Limiter | Cell | Chain, needs: str) -> Asker:
    """Returns how to ask a limit of any kind. `needs` says where a key comes from."""
    if isinstance(limit, Cell):
        cell = limit
        return lambda key, cost, now=None: cell.check(cost, now=now)
    if isinstance(limit, Chain):
        chain = limit
        if chain.limiters == 0:
            return lambda key, cost, now=None: chain.check(cost=cost, now=now)
        return lambda key, cost, now=None: chain.check(*keys_of(key), cost=cost, now=now)
    if isinstance(limit, Limiter):
        table = limit
        return lambda key, cost, now=None: table.check(cast("Key", key), cost, now=now)
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


def name_of(key: object) -> Hashable:
    """The same for all keys that are one for the library: "a" and b"a", 1 and True."""
    if isinstance(key, str):
        return str.encode(key)
    if isinstance(key, bytes):
        return bytes(key)
    return operator.index(key) % 2**64 if isinstance(key, SupportsIndex) else repr(key)


def places_of(limit: Limiter | Cell | Chain, key: Key | tuple[Key, ...] | None, loop: object) -> list[Hashable]:
    """Names the line of each limit and key that a call must meet. Each event loop has lines of its own."""
    if not isinstance(limit, Chain):
        return [(limit, loop, 0, name_of(key))]
    keys = iter(keys_of(key))
    return [
        (limit, loop, link, name_of(next(keys, None)) if keyed else None) for link, keyed in enumerate(limit._keyed)
    ]


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def limited(
    limit: Limiter | Cell | Chain,
    *,
    key: Callable[..., Key | tuple[Key, ...]] | None = None,
    cost: int = 1,
    wait: float = 0.0,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Limits the calls of a function or of a coroutine function.

    `key` gets the arguments of the call and returns the key, or a tuple of keys for a Chain; a Cell needs none. A call
    that is over the limit waits if it can pass within `wait` seconds, else it raises RateLimited at once. Calls of one
    key pass in the order in which they came: those of the threads of a process, and those of an event loop. A call that
    is cancelled has charged nothing, and those behind it move up. A coroutine function waits by asyncio. Any other
    function in the thread of an event loop raises RuntimeError instead of waiting. An asynchronous generator is not a
    call that can wait: limit the coroutine function that reads it.
    """
    ask = asker(limit, "limited")
    if key is not None:
        needs_function("key", key)
    elif isinstance(limit, Limiter):
        raise TypeError("a Limiter needs a key: limited(limiter, key=lambda user: user)")
    elif isinstance(limit, Chain) and limit.limiters > 0:
        raise TypeError(f"a Chain of {limit.limiters} limiters needs key=, which returns a tuple of as many keys")
    never = trial(limit, cost).verdict == "never"
    if isinstance(wait, bool) or not isinstance(wait, int | float):
        raise TypeError(f"wait is a number of seconds, not {type(wait).__name__}")
    if math.isnan(wait) or wait < 0:
        raise ValueError(f"wait is {wait}: pass 0 or more seconds, math.inf for as long as it takes")

    def begin(
        args: tuple[Any, ...], kwargs: dict[str, Any], event: Callable[[], E], loop: object
    ) -> Generator[tuple[E | None, float], None, None] | None:
        """None: the call has passed. Otherwise what it must wait for."""
        of = key(*args, **kwargs) if key else None
        if not wait or never:
            if decision := ask(of, cost):
                return None
            raise RateLimited(decision)
        at, refusal = clock(), None
        if not lines:
            refusal = ask(of, cost, at)
            if refusal:
                return None
        return steps(lambda at: ask(of, cost, at), lambda: places_of(limit, of, loop), cost, at, wait, refusal, event)

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
                waiting = begin(args, kwargs, asyncio.Event, running_loop())
                if waiting:
                    with contextlib.closing(waiting):
                        for turn, seconds in waiting:
                            if turn is None:
                                await asyncio.sleep(seconds)
                                continue
                            with contextlib.suppress(TimeoutError):
                                async with asyncio.timeout(seconds):
                                    await turn.wait()
                return await cast(Any, function(*args, **kwargs))

            return cast(Callable[P, R], waits)

        @functools.wraps(function)
        def sleeps(*args: P.args, **kwargs: P.kwargs) -> R:
            waiting = begin(args, kwargs, Turn, None)
            if waiting:
                with contextlib.closing(waiting):
                    for turn, seconds in waiting:
                        if running_loop():
                            raise RuntimeError(
                                "this would stop the event loop: put limited() around a coroutine function, or take "
                                "wait=0"
                            )
                        if turn is None:
                            time.sleep(seconds)
                        else:
                            turn.wait(timeout=seconds)
            return function(*args, **kwargs)

        return sleeps

    return decorate
