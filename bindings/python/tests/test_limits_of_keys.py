"""Limiter, Cell, Chain and Decision: the answers of the library arrive as they are."""

import ipaddress
import math
import pathlib
import random
from typing import Any

import pytest
from conftest import SECOND

import tatcell
from tatcell import Cell, Chain, Decision, Limiter, network

VECTORS = pathlib.Path(__file__).resolve().parents[3] / "tests" / "data" / "vectors.tsv"


def test_a_burst_passes_and_then_one_unit_per_interval() -> None:
    limiter = Limiter("10/s burst 3", keys=100)
    assert [limiter.hit("a", now=0) for _ in range(5)] == [True, True, True, False, False]
    assert not limiter.hit("a", now=SECOND // 10 - 1)
    assert limiter.hit("a", now=SECOND // 10)
    assert not limiter.hit("a", now=SECOND // 10)
    assert limiter.hit("b", now=0)


def test_the_system_clock_is_the_default() -> None:
    limiter = Limiter("1/h burst 2", keys=100)
    assert [limiter.hit("a") for _ in range(3)] == [True, True, False]
    assert 3590 < limiter.peek("a").retry_after <= 3600


def test_test_and_peek_charge_nothing_and_check_does() -> None:
    limiter = Limiter("10/s burst 2", keys=100)
    assert all(limiter.test("a", now=0) for _ in range(9))
    assert limiter.peek("a", now=0).remaining == 2
    assert limiter.check("a", now=0).remaining == 1
    assert limiter.check("a", now=0).remaining == 0
    assert not limiter.test("a", now=0)
    refused = limiter.check("a", now=0)
    assert not refused and not refused.passes
    assert (refused.verdict, refused.burst, refused.cost, refused.tracked) == ("refused", 2, 1, True)
    assert refused.retry_after == pytest.approx(0.1, rel=0.01) and refused.reset_after == pytest.approx(0.2, rel=0.01)


def test_a_cost_above_the_burst_never_passes() -> None:
    decision = Limiter("10/s burst 5", keys=100).check("a", 6, now=0)
    assert (decision.verdict, decision.retry_after, decision.remaining) == ("never", math.inf, 5)


def test_reset_gives_the_burst_back() -> None:
    limiter = Limiter("10/s burst 3", keys=100)
    assert limiter.hit("a", 3, now=SECOND) and not limiter.hit("a", now=SECOND)
    assert limiter.reset("a", now=SECOND) is True
    assert limiter.hit("a", 3, now=SECOND)


def test_keys_of_one_spelling_are_one_key() -> None:
    limiter = Limiter("1/h burst 1", keys=100)
    v4 = ipaddress.ip_address("192.0.2.1")
    pairs: list[tuple[Any, Any]] = [
        ("ä", "ä".encode()),
        (7, (7).to_bytes(8, "little")),
        (-1, 2**64 - 1),
        (v4, v4.packed),
        (ipaddress.ip_address("::ffff:198.51.100.1"), ipaddress.ip_address("198.51.100.1")),
        (True, 1),
    ]
    for first, second in pairs:
        assert limiter.hit(first, now=0) and not limiter.hit(second, now=0), (first, second)
    assert limiter.hit("", now=0) and not limiter.hit(b"", now=0)
    assert limiter.hit("7", now=0) and limiter.hit(ipaddress.ip_address("2001:db8::1"), now=0)


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "sliding-counter", "quota-linear", "decay"])
def test_every_algorithm_admits_its_units(algorithm: str) -> None:
    limiter = Limiter("10/min", keys=100, algorithm=algorithm, full="deny")  # type: ignore[arg-type]
    assert [limiter.hit("a", now=SECOND) for _ in range(11)] == [True] * 10 + [False]
    cell = Cell("10/min", algorithm=algorithm)  # type: ignore[arg-type]
    assert [cell.hit(now=SECOND) for _ in range(11)] == [True] * 10 + [False]


def test_a_key_stays_free_when_its_word_would_wrap() -> None:
    limiter = Limiter("10/s burst 20", keys=1000)
    chain = Chain(limiter)
    assert limiter.hit("a", 20, now=SECOND)
    # Words of this table wrap after 2.4 hours.
    for second in range(10, 30_000):
        assert limiter.hit("b", now=second * SECOND) and limiter.test("a", 20, now=second * SECOND)
    assert limiter.hit("a", 20, now=30_000 * SECOND)
    for second in range(30_010, 60_000):
        assert chain.hit("b", now=second * SECOND) and chain.test("a", cost=20, now=second * SECOND)
    assert limiter.hit("a", 20, now=60_000 * SECOND)
    assert all(limiter.hit_many(["b"], now=second * SECOND) for second in range(60_010, 90_000))
    assert all(limiter.peek("a", 20, now=(60_000 + second) * SECOND) for second in range(8790, 8800))


def test_a_quiet_table_is_swept_in_time() -> None:
    limiter, rng = Limiter("5/15min"), random.Random(29)
    # One call in ten minutes: no key can be over the limit. Each comes back after hours or days.
    answers = [limiter.hit(rng.randrange(150), now=call * 600 * SECOND) for call in range(6000)]
    assert answers.count(False) == 0


HOUR = 3600 * SECOND
# Just before words of nanoseconds wrap, so that old debts count once more, some times; and long silences.
SILENCES = [k * 2**43 - SECOND for k in (1, 2, 3, 14, 982)] + [HOUR, 3 * HOUR, 36 * HOUR, 2400 * HOUR]


@pytest.mark.parametrize("limit", ["10/s burst 20", "5/15min", "7/3s burst 20", "1000000/s burst 20", "1/h burst 2"])
def test_nobody_waits_for_an_old_debt_after_a_silence(limit: str) -> None:
    limiter = Limiter(limit, keys=1000)
    chain = Chain(limiter)
    burst, now = limiter.check("first", now=SECOND).burst, SECOND
    asks: list[Any] = [
        lambda key: limiter.test(key, burst, now=now),
        lambda key: limiter.peek(key, burst, now=now),
        lambda key: chain.test(key, cost=burst, now=now),
        lambda key: chain.peek(key, cost=burst, now=now),
        lambda key: limiter.hit(key, burst, now=now),
        lambda key: limiter.check(key, burst, now=now),
        lambda key: chain.hit(key, cost=burst, now=now),
        lambda key: chain.check(key, cost=burst, now=now),
        lambda key: limiter.hit_many([key], burst, now=now)[0],
    ]
    for silence in SILENCES:
        for ask in asks:
            for key in range(30):
                limiter.hit(key, burst, now=now)
            now += max(silence, 2 * HOUR if limit == "1/h burst 2" else HOUR)
            assert ask(7), (silence, asks.index(ask))
            assert limiter.hit(8, burst, now=now) and not limiter.hit(8, now=now)


def test_a_look_at_another_time_forgets_no_debt() -> None:
    limiter = Limiter("1/h burst 2", keys=100)
    chain = Chain(limiter)
    start, day = 1_000_000 * SECOND, 24 * 3600 * SECOND
    looks: list[Any] = [limiter.test, limiter.peek, chain.test, chain.peek]
    for key, look in enumerate(looks):
        assert limiter.hit(key, 2, now=start)
        for now in (start + day, 0, start - day):
            look("other", now=now)
            assert not limiter.test(key, now=start)
    # Nor does a charge by an older clock.
    for call in (limiter.hit, limiter.check, chain.hit, limiter.reset):
        call("other", now=start - 10 * day)
        assert limiter.peek(0, now=start).remaining == 0


def test_a_full_table_asks_its_policy() -> None:
    answers = {}
    for full in ("admit", "deny"):
        limiter = Limiter("1/h burst 1", keys=1, full=full)
        answers[full] = [limiter.check(i, now=0) for i in range(2000)]
    # A few keys may share the state of a key that has a slot.
    assert sum(map(bool, answers["admit"])) > 1990 and not all(answers["deny"])
    assert not all(decision.tracked for decision in answers["admit"])


def test_a_cell_is_a_limiter_with_one_key() -> None:
    cell = Cell("2/s burst 2")
    assert [cell.hit(now=0), cell.test(now=0), bool(cell.check(now=0)), cell.hit(now=0)] == [True, True, True, False]
    assert cell.peek(now=0).retry_after == 0.5
    cell.reset()
    assert cell.hit(2, now=0)


def test_a_chain_charges_all_or_none() -> None:
    address, user, everybody = (
        Limiter("10/s burst 2", keys=100),
        Limiter("10/s burst 9", keys=100),
        Cell("10/s burst 9"),
    )
    chain = Chain(address, user, everybody)
    assert [chain.hit("192.0.2.1", 7, now=0) for _ in range(3)] == [True, True, False]
    assert user.peek(7, now=0).remaining == 7 and everybody.peek(now=0).remaining == 7
    refused = chain.check("192.0.2.1", 7, now=0)
    assert refused.verdict == "refused" and refused.link == 0
    assert chain.test("192.0.2.2", 7, now=0) and chain.peek("192.0.2.2", 7, now=0).link == 0
    assert chain.check("192.0.2.2", 7, cost=10, now=0).verdict == "never"
    assert user.peek(7, now=0).remaining == 7


def test_a_chain_keeps_its_limits_alive() -> None:
    chain = Chain(Limiter("10/s burst 2", keys=100), Cell("10/s burst 9"))
    assert [chain.hit("a", now=0) for _ in range(3)] == [True, True, False]


def test_header_fields_come_from_the_library() -> None:
    limiter = Limiter("10/s burst 3", keys=100)
    assert limiter.check("a", now=0).headers() == [
        ("RateLimit-Policy", '"default";q=3;w=1'),
        ("RateLimit", '"default";r=2;t=1'),
    ]
    assert limiter.check("a", 3, now=0).headers('say "hi"', legacy=True) == [
        ("RateLimit-Policy", '"say \\"hi\\"";q=3;w=1'),
        ("RateLimit", '"say \\"hi\\"";r=2;t=1'),
        ("Retry-After", "1"),
        ("X-RateLimit-Limit", "3"),
        ("X-RateLimit-Remaining", "2"),
        ("X-RateLimit-Reset", "1"),
    ]
    chain = Chain(limiter, Cell("1/min burst 1"))
    assert chain.check("b", now=0).headers("address", "all")[1] == ("RateLimit", '"address";r=2;t=1, "all";r=0;t=60')
    assert chain.check("b", now=0).headers()[1] == ("RateLimit", '"limit-1";r=2;t=1, "limit-2";r=0;t=60')
    long = "n" * 1024
    assert dict(limiter.check("c", now=0).headers(long))["RateLimit"] == f'"{long}";r=2;t=1'
    for names, error in [
        ((long + "n",), ValueError),
        (("",), ValueError),
        (("ä",), ValueError),
        (("a", "b"), ValueError),
        ((1,), TypeError),
    ]:
        with pytest.raises(error):
            limiter.check("d", now=0).headers(*names)  # type: ignore[arg-type]


def test_networks_of_one_prefix_are_one_key() -> None:
    assert network("192.0.2.1") != network("192.0.2.2")
    assert network("192.0.2.1", v4_bits=24) == network("192.0.2.2", v4_bits=24)
    assert network("2001:db8::1") == network("2001:db8::2") != network("2001:db8:0:1::1")
    assert network("::ffff:192.0.2.1") == network("192.0.2.1")
    for text in ("", "192.0.2", "192.0.2.1/24", "fe80::1%eth0", "host"):
        with pytest.raises(ValueError):
            network(text)
    with pytest.raises(ValueError):
        network("192.0.2.1", 33)


def test_objects_say_what_they_are() -> None:
    with Limiter("1.5k/min burst 20", keys=100) as limiter:
        assert repr(limiter) == "<tatcell.Limiter '1500/60s burst 20', keys=100>"
        assert (limiter.limit, limiter.keys, limiter.name, limiter.closed) == ("1500/60s burst 20", 100, None, False)
        assert 100 * 8 < limiter.memory < 100 * 100
    assert limiter.closed and limiter.memory == 0
    assert repr(Cell("1/3ms")) == "<tatcell.Cell '1/3000000ns burst 1'>"
    assert repr(Cell("1/s").peek(now=0)) == "<tatcell.Decision pass, remaining=1, retry_after=0.0, reset_after=0.0>"
    types = {"Algorithm", "Full", "Key"}
    assert all(getattr(tatcell, name).__doc__ for name in set(tatcell.__all__) - types)
    for kind in (Limiter, Cell, Chain, Decision):
        assert all(getattr(kind, name).__doc__ for name in vars(kind) if not name.startswith("_")), kind


@pytest.mark.skipif(not VECTORS.is_file(), reason="the vectors are in a checkout")
def test_the_vectors_of_other_projects() -> None:
    cells: dict[str, Cell] = {}
    rows = [line.split("\t") for line in VECTORS.read_text().splitlines() if not line.startswith("#")]
    for vector, interval, burst, _, now, cost, verdict, remaining, reset, retry, *_ in rows:
        limit = f"1/{interval}ns burst {burst}"
        decision = cells.setdefault(vector + limit, Cell(limit)).check(int(cost), now=int(now))
        assert decision.verdict == {"ok": "pass", "deny": "refused", "never": "never"}[verdict]
        assert decision.remaining == int(remaining)
        assert decision.reset_after == pytest.approx(int(reset) / SECOND, abs=1e-9)
        wanted = {"": 0.0, "never": math.inf}.get(retry)
        assert decision.retry_after == pytest.approx(int(retry) / SECOND if wanted is None else wanted, abs=1e-9)
    assert len(rows) > 20
