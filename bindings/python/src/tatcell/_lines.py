# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lines in which calls wait for a limit.

Each limit of each key has a line of its own while calls wait for it. Under GCRA each call of a line knows from its
place when it can pass, and asks the limit then; under the other algorithms the first call asks, and the others wait for
their turn. A call that gives up has charged nothing, and those behind it move up. A call that several limits of a chain
refuse stands in the line of the limit that takes longest. At its turn it stands in the lines of the others, too, before
it asks: each time behind those who came earlier.

A call asks about the instant that it waited for, also if it wakes a little later. So late timers do not lower the rate.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from typing import Protocol, TypeVar

from ._core import Decision
from ._refused import RateLimited

SECOND = 1_000_000_000
# Nanoseconds. A timer of asyncio is late by up to 1 ms, and a thread by 5 ms if another one computes. A longer delay is
# lost: if a process stops for a second, the calls of a second must not leave at once.
LATE = 10_000_000


class Event(Protocol):
    """An event of threading or of asyncio."""

    def set(self) -> None: ...


E = TypeVar("E", bound=Event)

# Held for a few instructions, and never while a call waits. The garbage collector may end a forgotten call meanwhile.
lock = threading.RLock()


class Line:
    """The calls that wait for one limit of one key."""

    def __init__(self, link: int, first: Event, refusal: Decision, at: int) -> None:
        self.link = link
        self.first = first
        self.calls: OrderedDict[Event, tuple[int, int]] = OrderedDict()  # the number and the cost of each, in order
        self.units = 0  # the sum of the costs
        self.refusal = refusal  # the latest one
        self.since = at  # the instant that it is about
        self.passed = 0  # units that passed since then

    def answered(self, decision: Decision, at: int, cost: int) -> None:
        with lock:
            if decision:
                self.passed += cost
            else:
                self.refusal, self.since, self.passed = decision, at, 0

    def before(self, turn: Event) -> int:
        """The units of the calls before this one."""
        with lock:
            others = itertools.takewhile(lambda other: other is not turn, self.calls)
            return sum(self.calls[other][1] for other in others)

    def due(self, cost: int, before: int = 0) -> int:
        """The earliest instant at which a call can pass if calls of `before` units pass first."""
        with lock:
            more = self.passed + before + cost - self.refusal.cost
            if more < 0:
                # The call that was refused asked for more, and gave up.
                return self.since
            return self.since + self.refusal._waits(more)[self.link]


lines: dict[Hashable, Line] = {}
numbers = itertools.count()  # of the calls, in the order in which they came


def forget() -> None:
    """Drops the calls of the parent after a fork: none of them goes on in the child."""
    global lock
    lock = threading.RLock()
    lines.clear()


os.register_at_fork(after_in_child=forget)


def clock() -> int:
    """Reads the clock that the library reads."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def join(
    place: Hashable, link: int, turn: Event, number: int, cost: int, refusal: Decision | None, at: int
) -> tuple[Line, int] | None:
    """Stands in a line before those who came later, but behind the first one, and returns the units before it.

    A refusal begins a line if there is none. A call comes late to a line if it waited for another limit of a chain.
    """
    with lock:
        line = lines.get(place)
        if line is None:
            if refusal is None:
                return None
            line = lines[place] = Line(link, turn, refusal, at)
        calls, first = line.calls, line.first
        later = [*itertools.takewhile(lambda other: other is not first and calls[other][0] > number, reversed(calls))]
        before = line.units - sum(calls[other][1] for other in later)
        calls[turn] = number, cost
        line.units += cost
        for other in reversed(later):
            calls.move_to_end(other)
        return line, before


def leave(place: Hashable, turn: Event) -> None:
    """Leaves the line of a place, if the call stands in it. In a forked child it does not."""
    with lock:
        line = lines.get(place)
        if line is None or turn not in line.calls:
            return
        line.units -= line.calls.pop(turn)[1]
        if not line.calls:
            del lines[place]
        elif line.first is turn:
            line.first = next(iter(line.calls))
            line.first.set()


def steps(
    ask: Callable[[int], Decision],
    places: Callable[[], list[Hashable]],
    cost: int,
    at: int,
    wait: float,
    refusal: Decision | None,
    event: Callable[[], E],
) -> Generator[tuple[E | None, float], None, None]:
    """Yields what a call must wait for until it has passed: an event for at most these seconds, or only the seconds.

    The call came at the instant `at`. It was refused then; or it has not asked, because there are lines. `ask` asks the
    limit about an instant, and `places` names the line of each link. Raises RateLimited if the call cannot pass within
    `wait` seconds.
    """
    due, number = at, next(numbers)
    end = alarm = at + wait * SECOND
    stood: list[Hashable] = []  # the places in which it stood since it asked
    line: Line | None = None
    place: Hashable = None  # of that line
    turn = event()  # in that line

    def stand(link: int) -> None:
        """Leaves the line, if the call stands in one, and goes to that of a link."""
        nonlocal line, place, turn, alarm
        leave(place, turn)
        line, place, turn = None, places()[link], event()
        joined = join(place, link, turn, number, cost, refusal, at)
        if not joined:
            return
        line, before = joined
        alarm = line.due(cost, before)
        if alarm > end:
            raise RateLimited(line.refusal)
        # Under algorithms without a rate all calls would ask at once.
        alarm = alarm if alarm > line.due(cost) else end

    def seconds(until: float) -> float:
        return min(max(0, until - clock()) / SECOND, threading.TIMEOUT_MAX)

    try:
        if refusal is None:
            # Nobody overtakes those who wait already.
            held = [link for link, place in enumerate(places()) if place in lines]
            if held:
                stand(held[0])
        while True:
            if refusal is not None:
                due, link = at, None
                if refusal.verdict == "refused":
                    waits = refusal._waits(0)
                    link = max(range(len(waits)), key=waits.__getitem__)
                    due = at + waits[link]
                if due > end:
                    raise RateLimited(refusal)
                if line and link is not None and place == places()[link]:
                    line.answered(refusal, at, cost)
                elif link is not None:
                    stand(link)
            if line and line.first is not turn:
                yield turn, seconds(alarm)
                if line.first is not turn and line.due(cost, line.before(turn)) > clock():
                    # Others use the limit, too, so this call must wait for those before it.
                    alarm = end
                    yield turn, seconds(end)
                if line.first is not turn and alarm == end:
                    raise RateLimited(line.refusal)
                # Those before it may be late to wake. It asks out of turn once; then others use the limit, too.
                alarm = end
                due = max(due, line.due(cost))
                if due > end:
                    raise RateLimited(line.refusal)
            while due > clock():
                yield None, seconds(due)
            if line:
                # It overtakes nobody who waits for another limit either.
                stood.append(place)
                held = [link for link, other in enumerate(places()) if other in lines and other not in stood]
                if held:
                    refusal = None
                    stand(held[0])
                    continue
            stood.clear()
            at = max(due, clock() - LATE)
            refusal = ask(at)
            if refusal:
                if line:
                    line.answered(refusal, at, cost)
                return
    finally:
        # A handler of signals may have raised in join(), so `line` does not say whether the call stands in one.
        leave(place, turn)
