"""Wrong arguments raise ValueError or TypeError that say what to change; nothing crashes."""

import copy
import gc
import ipaddress
import os
import pickle
import random
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tatcell import Cell, Chain, Decision, Limiter


@pytest.mark.parametrize(
    "limit, says",
    [
        ("", "character 1"),
        ("10", "character 3"),
        ("10/parsec", "character 4"),
        ("/s", "character 1"),
        ("10/s burst", "character"),
        ("99999999999999999999/s", "64 bits, at character 1"),
        ("0/s", "character 1"),
        ("1/0s", "character 3"),
        ("1/s burst 0", "character 11"),
        ("1/s burst 1000000000000", "burst smaller"),
        ("10/s\0", "character 5"),
        ("1000000000000/s", "make its burst smaller"),
    ],
)
def test_a_wrong_limit_says_where(limit: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Limiter(limit, keys=10)


def test_wrong_options_list_the_right_ones() -> None:
    make: Any = Limiter
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"algorithm": "x"}, ValueError, "'gcra', 'fixed-window'"),
        ({"full": "x"}, ValueError, "'admit', 'inherit'"),
        ({"keys": 0}, ValueError, "keys is 0"),
        ({"keys": -1}, ValueError, "out of range"),
        ({"keys": 2**70}, ValueError, "range"),
        ({"keys": 2**63}, ValueError, "no table is large enough"),
        ({"keys": 1.5}, TypeError, "must be an int"),
        ({"keys": 2**40}, ValueError, "no table"),
        ({"huge": 1}, TypeError, "huge"),
        ({"algorithm": 1}, TypeError, "str"),
        ({"algorithm": "fixed-window", "full": "inherit"}, ValueError, "TATCELL_ERR_INHERIT"),
    ]
    for options, error, says in wrong:
        with pytest.raises(error, match=says):
            make("10/s", **options)
    for args in [(), (1,), (b"10/s",), ("10/s", 5), (None,)]:
        with pytest.raises((TypeError, ValueError)):
            make(*args)


def test_wrong_calls_say_what_there_is() -> None:
    limiter: Any = Limiter("10/s burst 20", keys=100)
    wrong: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ((), {}, TypeError, "key is missing"),
        (("a", 1, 2), {}, TypeError, "too many"),
        (("a",), {"x": 1}, TypeError, "'x'"),
        (("a", 1), {"cost": 1}, TypeError, "twice"),
        (("a", -1), {}, ValueError, "cost is out of range"),
        (("a", 2**64), {}, ValueError, "out of range"),
        (("a", 1.0), {}, TypeError, "cost must be an int"),
        (("a", None), {}, TypeError, "cost must"),
        (("a",), {"now": -1}, ValueError, "now is out of range"),
        (("a",), {"now": 1.5}, TypeError, "now must"),
        ((1.5,), {}, TypeError, "not float"),
        ((None,), {}, TypeError, "NoneType"),
        ((2**64,), {}, ValueError, "to_bytes"),
        ((-(2**63) - 1,), {}, ValueError, "64 bits"),
        ((10**5000,), {}, ValueError, "64 bits"),
        (("\ud800",), {}, ValueError, "surrogates"),
        ((bytearray(b"x"),), {}, TypeError, "bytearray"),
        ((ipaddress.ip_network("192.0.2.0/24"),), {}, TypeError, "IPv4Network"),
    ]
    for args, options, error, says in wrong:
        for method in (limiter.hit, limiter.test, limiter.check, limiter.peek):
            with pytest.raises(error, match=re.escape(says)):
                method(*args, **options)
        if len(args) == 1:
            with pytest.raises(error, match=re.escape(says)):
                Chain(limiter).hit(*args, **options)
    assert limiter.peek("a").remaining == 20
    with pytest.raises(TypeError):
        limiter.reset("a", 1)


def test_closed_objects_raise() -> None:
    limiter = Limiter("10/s", keys=10)
    chain = Chain(limiter)
    limiter.close()
    limiter.close()
    for call in (
        lambda: limiter.hit("a"),
        lambda: limiter.test("a"),
        lambda: limiter.peek("a"),
        lambda: limiter.check("a"),
        lambda: limiter.reset("a"),
        lambda: limiter.hit_many(["a"]),
        lambda: chain.hit("a"),
        lambda: chain.peek("a"),
        lambda: Chain(limiter),
        limiter.__enter__,
    ):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_chains_take_what_they_say() -> None:
    make: Any = Chain
    limiter, cell = Limiter("10/s", keys=10), Cell("1/s")
    for args, error in [((), ValueError), ((cell,) * 9, ValueError), ((5,), TypeError), ((limiter, None), TypeError)]:
        with pytest.raises(error):
            make(*args)
    with pytest.raises(TypeError):
        make(limiter, x=1)
    chain = Chain(limiter, cell)
    for keys in [(), ("a", "b")]:
        with pytest.raises(TypeError, match="one key for each Limiter"):
            chain.hit(*keys)
    # One cell twice is one charge of both costs.
    assert not Chain(cell, cell).hit(now=0)


def test_objects_cannot_be_made_or_copied_behind_the_back() -> None:
    limiter = Limiter("10/s", keys=10)
    for thing in (limiter, Cell("1/s"), Chain(limiter), limiter.peek("a")):
        kind: Any = type(thing)
        for call in (
            lambda: copy.copy(thing),
            lambda: pickle.dumps(thing),
            lambda: object.__new__(kind),
            lambda: setattr(thing, "x", 1),
            lambda: setattr(kind, "hit", 1),
            lambda: type("Sub", (kind,), {}),
        ):
            with pytest.raises((TypeError, AttributeError)):
                call()
    with pytest.raises(TypeError):
        Decision()
    hit: Any = Limiter.hit
    with pytest.raises(TypeError):
        hit(Cell("1/s"), "a")


def test_random_calls_raise_or_answer() -> None:
    rng = random.Random(29)

    class Odd:
        def __index__(self) -> Any:
            return rng.choice([5, -1, "x", 2**99])

        def __len__(self) -> int:
            return rng.choice([5, 1000, -1])

        def __getitem__(self, index: int) -> Any:
            if index > 70:
                raise RuntimeError("odd")
            return index

    values: list[Callable[[], Any]] = [
        lambda: "key",
        lambda: b"k" * rng.randrange(300),
        lambda: rng.randrange(-(2**70), 2**70),
        lambda: None,
        lambda: 1.5,
        Odd,
        lambda: [values[rng.randrange(6)]() for _ in range(rng.randrange(200))],
        lambda: memoryview(bytes(64)).cast("Q"),
        lambda: memoryview(bytes(64)).cast("B", (8, 8)),
        lambda: memoryview(bytes(24)).cast("d"),
        lambda: range(99),
        dict,
        set,
        lambda: ipaddress.IPv6Address(rng.randrange(2**128)),
        lambda: "\ud800",
        lambda: True,
        lambda: iter("abc"),
    ]
    limits = ["10/s burst 20", "1/ns", "7/w", "1GB/s burst 64kB", "1/1000w", "5/17ms burst 3"]
    names = ["hit", "test", "check", "peek", "reset", "hit_many", "close", "limit", "__enter__", "nothing"]
    things: list[Any] = []
    answered = raised = 0
    for turn in range(20_000):
        if turn % 100 == 0:
            things = [Limiter(rng.choice(limits), keys=rng.choice([1, 10, 1000])), Cell(rng.choice(limits))]
            things.append(Chain(*(rng.choice(things) for _ in range(rng.randrange(1, 9)))))
        try:
            call = getattr(rng.choice(things), rng.choice(names))
            args = [rng.choice(values)() for _ in range(rng.randrange(4))]
            options = {name: rng.choice(values)() for name in ("cost", "now", "x") if rng.random() < 0.1}
            call(*args, **options)
            answered += 1
        except (TypeError, ValueError, AttributeError, RuntimeError, OSError) as error:
            assert str(error)
            raised += 1
    assert answered > 500 and raised > 500


def test_nothing_leaks() -> None:
    # The middle of each call is an error of another kind.
    limiter, cell = Limiter("10/s burst 20", keys=100), Cell("1/s")
    hit: Any = limiter.hit
    many: Any = limiter.hit_many
    rows = memoryview(bytes(640)).cast("B", (160, 4))

    def round_of_calls() -> None:
        chain = Chain(limiter, cell)
        chain.check("a").headers("one", "two", legacy=True)
        repr((limiter, cell, chain, limiter.peek(2**40)))
        many(["a", "ä" * 40, 5, ipaddress.IPv4Address(7)] * 40, 2)
        many(rows)
        Limiter("1/s", keys=10).close()
        for call in (
            lambda: hit(1.5),
            lambda: hit("a", -1),
            lambda: many(["a"] * 70 + [None]),
            lambda: Limiter("x"),
            lambda: Chain(limiter, cell, None),  # type: ignore
            lambda: Limiter("1/s", keys=10, full="x"),  # type: ignore
            lambda: chain.check("a").headers("one", ""),
        ):
            with pytest.raises((TypeError, ValueError)):
                call()

    for _ in range(200):
        round_of_calls()
    gc.collect()
    blocks, bytes_before = sys.getallocatedblocks(), resident()
    for _ in range(1000):
        round_of_calls()
    gc.collect()
    # One object lost in each round would be 1000 blocks. Blocks of more than 512 bytes are not counted.
    assert sys.getallocatedblocks() - blocks < 600
    assert resident() - bytes_before < 500_000


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
