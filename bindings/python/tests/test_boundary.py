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

from tatcell import Cell, Chain, Decision, Limiter, network


@pytest.mark.parametrize(
    "limit, says",
    [
        ("", "a number is missing, as in '10/s burst 20', at character 1"),
        ("  ", "a number is missing, as in '10/s burst 20', at character 3"),
        (".5/s", "a number is missing, as in '10/s burst 20', at character 1"),
        ("-1/s", "a number is missing, as in '10/s burst 20', at character 1"),
        ("/s", "a number is missing, as in '10/s burst 20', at character 1"),
        ("10/.5s", "a number is missing, as in '10/s burst 20', at character 4"),
        ("10/s burst", "a number is missing, as in '10/s burst 20', at character 11"),
        ("10/s burst = x", "a number is missing, as in '10/s burst 20', at character 14"),
        ("10/s burst ==5", "a number is missing, as in '10/s burst 20', at character 13"),
        ("10", "'/' and a time are missing, as in '10/s', at character 3"),
        ("10 5/s", "'/' and a time are missing, as in '10/s', at character 4"),
        ("1e3/s", "'/' and a time are missing, as in '10/s', at character 2"),
        ("10 per second", "'/' and a time are missing, as in '10/s', at character 4"),
        ("10/parsec", "not a unit of time: use ns, us, ms, s, m, h, d or w, at character 4"),
        ("10/", "not a unit of time: use ns, us, ms, s, m, h, d or w, at character 4"),
        ("10/-5s", "not a unit of time: use ns, us, ms, s, m, h, d or w, at character 4"),
        ("10/ 5 S", "not a unit of time: use ns, us, ms, s, m, h, d or w, at character 7"),
        ("10/1.2.3s", "not a unit of time: use ns, us, ms, s, m, h, d or w, at character 7"),
        ("10/5 5s", "not a unit of time: use ns, us, ms, s, m, h, d or w, at character 6"),
        ("10/sburst 5", "not a unit of time: use ns, us, ms, s, m, h, d or w, at character 4"),
        ("0/s", "the number is 0, at character 1"),
        (" 0.00k/s", "the number is 0, at character 2"),
        ("1/0s", "the number is 0, at character 3"),
        ("1/s burst 0", "the number is 0, at character 11"),
        ("1/s burst=0.0", "the number is 0, at character 11"),
        ("1/s burst 1.5", "a burst is a whole number of units, at character 11"),
        ("1/s burst 0.5B", "a burst is a whole number of units, at character 11"),
        ("10/s 5", "only 'burst' and a number may follow the rate, at character 6"),
        ("10/s bursty 5", "only 'burst' and a number may follow the rate, at character 6"),
        ("10/s\0", "only 'burst' and a number may follow the rate, at character 5"),
        ("10/s burst 20 \xe4", "only 'burst' and a number may follow the rate, at character 15"),
        ("99999999999999999999/s", "the number is too large for 64 bits, at character 1"),
        ("1/s burst 99999999999999999999", "the number is too large for 64 bits, at character 11"),
    ],
)
def test_a_wrong_limit_says_what_and_where(limit: str, says: str) -> None:
    makes: list[Callable[[], Any]] = [lambda: Limiter(limit, keys=10), lambda: Cell(limit)]
    for make in makes:
        with pytest.raises(ValueError, match=re.escape(f"limit '{limit}': {says}")):
            make()


def test_a_limit_that_no_table_or_cell_has_says_what_to_change() -> None:
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: Limiter("1/s burst 1000000000000"), "make its burst smaller"),
        (lambda: Limiter("1000000000000/s"), "make its burst smaller"),
        (lambda: Cell("1/s burst 1000000000000"), "the burst too large: make it smaller"),
        (lambda: Limiter("1000000000000/s", algorithm="fixed-window"), "make its amount smaller"),
        (lambda: Limiter("1000000000000/s", algorithm="decay"), "use larger units"),
        (lambda: Limiter("10/min burst 20", algorithm="fixed-window"), "only 'gcra' has a burst: leave it out"),
        (lambda: Cell("10/min burst 20", algorithm="decay"), "only 'gcra' has a burst: leave it out"),
        (lambda: Limiter("1.5/s", algorithm="quota-linear"), "write whole units, such as '3/2s' for '1.5/s'"),
    ]
    for make, says in wrong:
        with pytest.raises(ValueError, match=says) as caught:
            make()
        # Nothing in it is of another language.
        assert str(caught.value).startswith("limit '") and not re.search(
            "tatcell_|_FULL_|resolution|tick", str(caught.value)
        )


def test_wrong_options_list_the_right_ones() -> None:
    make: Any = Limiter
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"algorithm": "x"}, ValueError, "'gcra', 'fixed-window'"),
        ({"full": "x"}, ValueError, "'admit', 'inherit'"),
        ({"keys": 0}, ValueError, "keys is 0"),
        ({"keys": -1}, ValueError, "out of range"),
        ({"keys": 2**70}, ValueError, "range"),
        ({"keys": 2**63}, ValueError, "no table is large enough"),
        ({"keys": 1.5}, TypeError, "keys must be an int, not float"),
        ({"keys": 2**40}, ValueError, "no table"),
        ({"huge": 1}, TypeError, "huge"),
        ({"algorithm": 1}, TypeError, "algorithm is str, one of 'gcra', .*, not int"),
        ({"algorithm": None}, TypeError, "algorithm is str, one of 'gcra', .*, not NoneType"),
        ({"algorithm": "gcra\0"}, ValueError, "there is no algorithm"),
        ({"full": b"deny"}, TypeError, "full is str, one of 'admit', .*, not bytes"),
        ({"shared": "no"}, TypeError, "shared is True or False, not str"),
        ({"name": 5}, TypeError, "name is str, such as '/api', not int"),
        ({"algorithm": "fixed-window", "full": "inherit"}, ValueError, "pass 'admit', 'deny' or 'sampled'"),
    ]
    for options, error, says in wrong:
        with pytest.raises(error, match=says):
            make("10/s", **options)
    for args in [(), (1,), (b"10/s",), ("10/s", 5), (None,)]:
        with pytest.raises((TypeError, ValueError)):
            make(*args)
    with pytest.raises(TypeError, match="a limit is str, such as '10/s burst 20', not bytes"):
        make(b"10/s")
    cell: Any = Cell
    with pytest.raises(TypeError, match="algorithm is str"):
        cell("10/s", algorithm=5)
    fields: Any = Cell("1/s").peek().headers
    with pytest.raises(TypeError, match="legacy is True or False, not str"):
        fields(legacy="no")
    key: Any = network
    with pytest.raises(TypeError, match="an address is str, such as '192.0.2.1', not IPv4Address"):
        key(ipaddress.ip_address("192.0.2.1"))
    with pytest.raises(ValueError, match="is not an IPv4"):
        key("192.0.2.1\0")


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
