"""Calls that wait for a limit: their order, what they ask, and what one that gives up leaves behind.

Time is a number here: when all tasks wait, it moves on to the next timer.
"""

import asyncio
import contextlib
import heapq
import itertools
import math
import os
import random
import selectors
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Literal

import pytest

from tatcell import Cell, Chain, Decision, Limiter, RateLimited, _limited, _lines, limited

SECOND = 1_000_000_000
MS = 1_000_000


class Model(selectors.DefaultSelector):
    """Waits for nothing but timers, and moves the clock of a world instead."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self.world = world

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "all tasks wait, and nothing wakes one"
        self.world.turns += 1
        assert self.world.turns < 5_000, "the calls ask without end"
        if timeout > 0:
            self.world.time += math.ceil(timeout * SECOND) + self.world.late
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    def __init__(self, world: "World") -> None:
        super().__init__(Model(world))
        self.world = world

    def time(self) -> float:
        return self.world.time / SECOND


class World:
    """A clock, and what the calls did: when they left, counted from the start, and how often they asked."""

    def __init__(self, patch: pytest.MonkeyPatch, model: bool = True) -> None:
        self.time = self.start = 1000 * SECOND
        self.late = 0  # by which timers are late, in nanoseconds
        self.turns = 0  # of the loop
        self.asks = 0
        self.left: list[tuple[int, Any]] = []
        real = _limited.asker

        def asker(limit: Any, needs: str) -> Any:
            ask = real(limit, needs)

            def counted(*args: Any) -> Any:
                self.asks += 1
                return ask(*args)

            return counted

        patch.setattr(_limited, "asker", asker)
        if model:
            patch.setattr(_lines, "clock", lambda: self.time)
            patch.setattr(_limited, "clock", lambda: self.time)

    def now(self) -> int:
        """Milliseconds since the start."""
        return (self.time - self.start) // MS

    def limited(self, limit: Any, **options: Any) -> Callable[..., Coroutine[Any, Any, None]]:
        @limited(limit, **options)
        async def leaves(name: Any) -> None:
            self.left.append((self.now(), name))

        return leaves

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=lambda: Loop(self)) as runner:
            return runner.run(main)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield World(monkeypatch)
    assert not _lines.lines


async def all_of(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    return await asyncio.gather(*calls, return_exceptions=True)


@pytest.mark.parametrize("rate, count", [(1000, 200), (50, 50), (3, 10)])
def test_each_call_leaves_at_its_own_instant_in_order(world: World, rate: int, count: int) -> None:
    call = world.limited(Cell(f"{rate}/s burst 1"), wait=60)
    world.run(all_of(*map(call, range(count))))
    assert world.left == [(number * 1000 // rate, number) for number in range(count)]
    # One that was refused begins the line. An interval that is no whole number of nanoseconds may cost another one.
    assert world.asks <= (count + 1 if 1000 % rate == 0 else 2 * count)


def test_a_burst_leaves_at_once_and_the_rest_by_the_rate(world: World) -> None:
    call = world.limited(Limiter("10/s burst 4", keys=10), key=lambda name: "ann", wait=60)
    world.run(all_of(*map(call, range(8))))
    assert world.left == [(when, number) for number, when in enumerate((0, 0, 0, 0, 100, 200, 300, 400))]
    assert world.asks == 9


def test_keys_wait_apart_from_each_other(world: World) -> None:
    call = world.limited(Limiter("1/s burst 1", keys=10), key=lambda name: name[0], wait=60)
    world.run(all_of(*map(call, ("a1", "a2", "b1", "a3", "b2"))))
    assert world.left == [(0, "a1"), (0, "b1"), (1000, "a2"), (1000, "b2"), (2000, "a3")]


def test_what_cannot_pass_in_time_is_refused_at_once_and_charged_nothing(world: World) -> None:
    cell = Cell("1/s burst 1")
    call = world.limited(cell, wait=2)

    async def main() -> None:
        first = asyncio.gather(*map(call, range(8)), return_exceptions=True)
        for _ in range(5):
            await asyncio.sleep(0)
        assert world.now() == 0
        answers = await first
        assert [type(answer) for answer in answers] == [type(None)] * 3 + [RateLimited] * 5
        assert world.left == [(0, 0), (1000, 1), (2000, 2)]
        # Three are charged. So a fourth leaves a second after the third.
        await call("next")
        assert world.left[3] == (3000, "next")

    when: list[int] = []

    async def refused(number: int) -> None:
        with contextlib.suppress(RateLimited):
            return await call(number)
        when.append(world.now())

    world.run(main())
    world.run(all_of(*map(refused, range(8))))
    assert when == [3000] * 6


def test_a_call_whose_turn_comes_too_late_does_not_wait_for_more(world: World) -> None:
    cell = Cell("1/s burst 1")
    call, short = world.limited(cell, wait=60), world.limited(cell, wait=2.2)

    async def main() -> None:
        calls = [asyncio.create_task(one) for one in (call(0), call(1), short("short"))]
        await asyncio.sleep(0.5)
        cell.reset()
        assert cell.hit(now=world.time)
        with pytest.raises(RateLimited):
            await calls[2]
        assert world.now() == 1500
        await asyncio.gather(*calls, return_exceptions=True)

    world.run(main())
    assert world.left == [(0, 0), (1500, 1)]


@pytest.mark.parametrize("gone", [range(1, 2), range(2, 3), range(5, 10), range(1, 9), (9, 4, 1, 2)])
def test_those_behind_a_call_that_gives_up_move_up(world: World, gone: Any) -> None:
    call = world.limited(Cell("1/s burst 1"), wait=60)

    async def main() -> None:
        tasks = [asyncio.create_task(call(number)) for number in range(10)]
        await asyncio.sleep(0.5)
        for number in gone:
            tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await call("next")

    world.run(main())
    stay = [number for number in range(10) if number not in gone] + ["next"]
    assert world.left == [(1000 * place, name) for place, name in enumerate(stay)]
    assert world.asks <= 2 * 11


def test_a_call_that_its_caller_stops_has_charged_nothing(world: World) -> None:
    call = world.limited(Cell("1/min burst 1"), wait=math.inf)

    async def main() -> None:
        await call("first")
        for _ in range(100):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await call("stopped")
        await call("second")

    world.run(main())
    assert world.left == [(0, "first"), (60_000, "second")]


@pytest.mark.parametrize("algorithm, when", [("gcra", 6000), ("fixed-window", 500)])
def test_a_small_call_moves_up_when_a_large_one_gives_up(world: World, algorithm: Any, when: int) -> None:
    cell = Cell("10/min", algorithm=algorithm)
    large, small = world.limited(cell, wait=120, cost=10), world.limited(cell, wait=120)

    async def main() -> None:
        await (large if algorithm == "gcra" else small)("first")
        calls = [asyncio.create_task(large("large")), asyncio.create_task(small("small"))]
        await asyncio.sleep(0.5)
        calls[0].cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    world.run(main())
    assert world.left == [(0, "first"), (when, "small")]


def test_a_cost_above_the_burst_waits_for_nobody(world: World) -> None:
    cell = Cell("1/s burst 2")
    call, never = world.limited(cell, wait=60), world.limited(cell, wait=60, cost=3)

    async def main() -> None:
        calls = [asyncio.create_task(call(number)) for number in range(6)]
        await asyncio.sleep(0.5)
        with pytest.raises(RateLimited, match="above the burst"):
            await never("never")
        assert world.now() == 500
        await asyncio.gather(*calls)

    world.run(main())


class Masked(str):
    def __repr__(self) -> str:
        return "***"


@pytest.mark.parametrize("one, other, same", [(Masked("a"), Masked("b"), False), ("a", b"a", True), (1, True, True)])
def test_a_line_is_that_of_the_key_which_the_library_reads(world: World, one: Any, other: Any, same: bool) -> None:
    call = world.limited(Limiter("1/s burst 1", keys=10), key=lambda name: name[0], wait=60)
    world.run(all_of(*map(call, [(one, 0), (one, 1), (other, 0)])))
    order = [(one, 0), (one, 1), (other, 0)] if same else [(one, 0), (other, 0), (one, 1)]
    assert [name for _, name in world.left] == order
    assert [when for when, _ in world.left] == ([0, 1000, 2000] if same else [0, 0, 1000])


def test_a_timer_that_is_early_lets_no_call_leave_early(world: World) -> None:
    # Those of uvloop are early by up to half a millisecond, because it rounds to milliseconds.
    cell = Cell("1/s burst 1")
    assert cell.hit(now=world.time)
    refusal = cell.check(now=world.time)
    call = _lines.steps(lambda now: cell.check(now=now), lambda: ["place"], 1, world.time, 60, refusal, threading.Event)
    assert next(call) == (None, 1.0)
    world.time += SECOND - 1
    assert next(call) == (None, 1 / SECOND)
    world.time += 1
    assert not list(call)


def test_a_call_at_the_moment_at_which_a_unit_is_free_stands_behind(world: World) -> None:
    call = world.limited(Cell("1/s burst 1"), wait=60)
    world.late = 5 * MS

    async def main() -> None:
        tasks = [asyncio.create_task(call(number)) for number in range(3)]
        await asyncio.sleep(0.5)
        world.time = world.start + 1001 * MS
        await asyncio.gather(*tasks, call("late"))

    world.run(main())
    assert [name for _, name in world.left] == [0, 1, 2, "late"]


def test_late_timers_do_not_lower_the_rate(world: World) -> None:
    call = world.limited(Cell("1000/s burst 1"), wait=60)
    world.late = 7 * MS
    world.run(all_of(*map(call, range(200))))
    assert [number for _, number in world.left] == list(range(200))
    assert 199 <= world.now() <= 199 + 8 and world.asks <= 2 * 200


def test_calls_that_all_wake_late_keep_the_rate(world: World) -> None:
    """Every wake-up comes 7 ms late, by a timer or by another call, as it does for threads on a busy processor."""
    cell, place = Cell("1000/s burst 1"), object()
    wakes: list[tuple[int, int, int]] = []
    calls: dict[int, Any] = {}
    done = [0] * 200

    class Turn:
        call: int | None = None

        def set(self) -> None:
            if self.call is not None:
                wake(self.call, 0)

    def wake(call: int, after: float) -> None:
        heapq.heappush(wakes, (world.time + round(after * SECOND) + 7 * MS, call, done[call]))

    def go_on(call: int) -> None:
        done[call] += 1
        try:
            turn, seconds = next(calls[call])
        except StopIteration:
            world.left.append((world.now(), call))
            return
        if turn:
            turn.call = call
        wake(call, seconds)

    def ask(now: int) -> Decision:
        world.asks += 1
        return cell.check(now=now)

    for call in range(200):
        refusal = None if _lines.lines else ask(world.time)
        if refusal:
            world.left.append((0, call))
        else:
            calls[call] = _lines.steps(ask, lambda: [place], 1, world.time, 60, refusal, Turn)
            go_on(call)
    while wakes:
        when, call, step = heapq.heappop(wakes)
        world.time = max(world.time, when)
        if step == done[call]:
            go_on(call)
    assert [call for _, call in world.left] == list(range(200))
    assert 199 <= world.now() <= 199 + 3 * 7 and world.asks <= 2 * 200


@pytest.mark.parametrize("late", [0, 3, 20, 100])
def test_a_delay_adds_at_most_its_bound_to_a_burst(world: World, late: int) -> None:
    call = world.limited(Cell("1000/s burst 2"), wait=60)
    world.late = late * MS
    world.run(all_of(*map(call, range(200))))
    times = [when for when, _ in world.left]
    assert len(times) == 200 and times == sorted(times)
    for first in range(200):
        for last in range(first, 200):
            most = 2 + times[last] - times[first] + 1 + 10
            assert last - first + 1 <= most


def test_others_may_use_the_limit_too(world: World) -> None:
    cell = Cell("100/s burst 1")
    call = world.limited(cell, wait=60)

    async def other() -> None:
        for _ in range(40):
            await asyncio.sleep(0.015)
            cell.hit(now=world.time)

    world.run(all_of(other(), *map(call, range(50))))
    assert [number for _, number in world.left] == list(range(50))
    assert world.asks <= 3 * 50


def test_two_processes_share_a_rate(world: World, shared_name: str) -> None:
    # The objects of one name are two tables of one memory, as those of two processes are.
    tables = [Limiter("100/s burst 1", keys=10, name=shared_name) for _ in range(2)]
    calls = [world.limited(table, key=lambda name: "key", wait=60) for table in tables]
    world.run(all_of(*(call((process, number)) for number in range(50) for process, call in enumerate(calls))))
    assert [when for when, _ in world.left] == list(range(0, 1000, 10))
    for process in range(2):
        assert [name[1] for _, name in world.left if name[0] == process] == list(range(50))
    assert world.asks <= 4 * 100


def test_functions_of_one_limit_stand_in_one_line(world: World) -> None:
    cell = Cell("10/s burst 3")
    one, three = world.limited(cell, wait=60), world.limited(cell, wait=60, cost=3)
    world.run(all_of(three("three"), one("one"), three("three"), one("one")))
    assert world.left == [(0, "three"), (100, "one"), (400, "three"), (500, "one")]


def test_keys_of_a_chain_that_share_a_limit_stand_in_one_line(world: World) -> None:
    chain = Chain(Limiter("1/s burst 1", keys=1000), Cell("100/s burst 1"))
    call = world.limited(chain, key=lambda name: (name,), wait=60)
    world.run(all_of(*map(call, range(100))))
    assert world.left == [(10 * number, number) for number in range(100)]
    assert world.asks <= 2 * 100


@pytest.mark.parametrize("order", [1, -1])
def test_a_call_that_its_own_limit_holds_up_holds_up_no_others(world: World, order: Literal[1, -1]) -> None:
    chain = Chain(*(Limiter("1/s burst 1", keys=10), Cell("100/s burst 1"))[::order])
    call = world.limited(chain, key=lambda name: (name[0],), wait=60)
    world.run(all_of(*map(call, ("a1", "a2", "a3", "b1", "c1", "b2"))))
    assert world.left[:3] == [(0, "a1"), (10, "b1"), (20, "c1")]
    assert [name for _, name in world.left[3:]] == ["a2", "b2", "a3"]
    assert [when for when, _ in world.left[3:]] == [1000, 1010, 2000]


@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("names", ["abcd", "abcdefgh"])
def test_no_call_of_a_chain_starves(world: World, late: int, order: Literal[1, -1], names: str) -> None:
    """Both limits hold up the calls: five callers for each key, who come again at once."""
    chain = Chain(*(Limiter("5/s burst 1", keys=10), Cell("20/s burst 1"))[::order])
    call = world.limited(chain, wait=math.inf, key=lambda name: (name,))
    world.late, world.turns = late * MS, -20_000
    longest = 0

    async def caller(name: str) -> None:
        nonlocal longest
        for _ in range(20):
            came = world.now()
            await call(name)
            longest = max(longest, world.now() - came)

    world.run(all_of(*(caller(name) for name in names for _ in range(5))))
    # In the order of arrival it would be 50 ms for each caller.
    assert len(world.left) == 100 * len(names) and longest <= 1.5 * 50 * 5 * len(names)
    assert world.asks <= 1.1 * len(world.left)


@pytest.mark.parametrize("first, second", itertools.product(["gcra", "fixed-window", "sliding-counter"], repeat=2))
def test_calls_of_a_chain_ask_no_end_of_times(world: World, first: Any, second: Any) -> None:
    """Random calls: some give up, others use the limits meanwhile, and timers are later than LATE."""
    chance = random.Random(31)
    chain = Chain(Limiter("5/s", keys=10, algorithm=first), Cell("20/s", algorithm=second))
    calls = [
        world.limited(chain, cost=cost, wait=wait, key=lambda name: (name % 3,))
        for cost in (0, 1, 2)
        for wait in (0.3, 2, math.inf)
    ]
    world.late = 20 * MS

    async def caller(name: int) -> None:
        await asyncio.sleep(3 * chance.random())
        async with asyncio.timeout(chance.choice([0.05, 0.5, None])):
            await chance.choice(calls)(name)

    async def others() -> None:
        for _ in range(30):
            await asyncio.sleep(0.1)
            if chance.random() < 0.4:
                chain.hit(0, now=world.time)

    world.run(all_of(others(), *map(caller, range(100))))
    assert world.asks <= 2 * 100


@pytest.mark.parametrize("algorithm", ["fixed-window", "sliding-counter", "quota-linear", "decay"])
def test_the_other_algorithms_wait_too(world: World, algorithm: Any) -> None:
    call = world.limited(Cell("5/s", algorithm=algorithm), wait=60)
    world.run(all_of(*map(call, range(20))))
    assert [number for _, number in world.left] == list(range(20))
    assert world.asks <= 2 * 20
    if algorithm == "fixed-window":
        assert [when for when, _ in world.left] == [1000 * (number // 5) for number in range(20)]


def test_an_error_of_the_limit_leaves_no_line(world: World) -> None:
    table = Limiter("1/s burst 1", keys=10)
    call = world.limited(table, key=lambda name: "key", wait=60)

    async def main() -> None:
        tasks = [asyncio.create_task(call(number)) for number in range(3)]
        await asyncio.sleep(0.5)
        table.close()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(answer) for answer in answers] == [type(None), ValueError, ValueError]

    world.run(main())


@pytest.mark.parametrize("joined", [False, True])
def test_a_call_that_a_signal_ends_while_it_joins_leaves_the_line(
    world: World, monkeypatch: pytest.MonkeyPatch, joined: bool
) -> None:
    call = world.limited(Cell("1/s burst 1"), wait=60)
    join = _lines.join

    def interrupted(*args: Any) -> None:
        if joined:
            join(*args)
        raise KeyboardInterrupt

    async def main() -> None:
        calls = [asyncio.create_task(call(number)) for number in range(3)]
        await asyncio.sleep(0.5)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(_lines, "join", interrupted)
            await call("interrupted")
        await asyncio.gather(*calls)

    world.run(main())
    assert world.left == [(0, 0), (1000, 1), (2000, 2)]


def test_threads_wait_by_their_own_instants(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, model=False)

    @limited(Cell("1000/s burst 1"), wait=600)
    def leaves() -> None:
        world.left.append((0, 0))

    threads = [threading.Thread(target=leaves) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each asks at most once when it comes, once out of turn, and, as the first one, again if it wakes very late.
    assert len(world.left) == 100 and world.asks <= 4 * 100 and not _lines.lines


def test_threads_wait_for_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, model=False)
    leaves = limited(Cell("1/10ms", algorithm="fixed-window"), wait=math.inf)(lambda: world.left.append((0, 0)))
    threads = [threading.Thread(target=leaves) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(world.left) == 5 and not _lines.lines


def test_after_a_fork_nobody_waits_behind_calls_of_the_parent() -> None:
    cell = Cell("2/s burst 1")
    slow = limited(cell, wait=60)(lambda: None)
    slow()
    thread = threading.Thread(target=slow)
    thread.start()
    while thread.is_alive() and not _lines.lines:
        pass
    held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with _lines.lock:
            held.set()
            forked.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(len(_lines.lines) + (not _lines.lock.acquire(blocking=False)))
    forked.set()
    holder.join()
    status = os.waitpid(child, 0)[1]
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0 and not _lines.lines


def test_a_decision_says_how_long_others_take() -> None:
    cell = Cell("10/s burst 2")
    assert cell.hit(2, now=SECOND)
    decision = cell.peek(now=SECOND)
    assert decision._waits(0) == (SECOND // 10,) and decision._waits(5) == (6 * SECOND // 10,)
    assert Cell("1/s").peek(2)._waits(2**64 - 1) == (2**64 - 1,)
    window = Cell("1/s", algorithm="fixed-window")
    assert window.hit(now=SECOND)
    assert window.peek(now=SECOND)._waits(7) == (SECOND,)
