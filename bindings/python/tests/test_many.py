"""hit_many: the answers of single calls, from lists and from arrays."""

import array
import ipaddress
import random
import threading
from collections.abc import Iterable
from typing import Any

import pytest
from conftest import SECOND

from tatcell import Key, Limiter


def same(one: Iterable[bool], other: Iterable[bool]) -> bool:
    """Whether two tables gave the same answers. Two of thousands of keys may share a state, by the seed of a table."""
    return sum(a != b for a, b in zip(one, other, strict=True)) <= 4


def spelled(number: int, form: int) -> Key:
    forms: list[Key] = [f"user{number}", number, b"raw%d" % number, ipaddress.IPv4Address(number)]
    return forms[form] if form < 4 else ipaddress.IPv6Address(number << 96)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 1000])
def test_a_list_is_decided_as_single_calls_are(count: int) -> None:
    rng = random.Random(count)
    many, single = Limiter("10/s burst 3", keys=1000), Limiter("10/s burst 3", keys=1000)
    for now in range(0, SECOND, SECOND // 7):
        keys = [spelled(rng.randrange(50), rng.randrange(5)) for _ in range(count)]
        assert many.hit_many(keys, now=now) == [single.hit(key, now=now) for key in keys]
        assert many.hit_many(tuple(keys), 2, now=now) == [single.hit(key, 2, now=now) for key in keys]
        assert many.hit_many(dict.fromkeys(keys), now=now) == [single.hit(key, now=now) for key in dict.fromkeys(keys)]


@pytest.mark.parametrize("count", [0, 1, 65, 10_000])
@pytest.mark.parametrize("code", ["h", "H", "i", "I", "q", "Q"])
def test_an_array_of_numbers_has_the_keys_of_ints(code: str, count: int) -> None:
    rng = random.Random(count)
    low = -100 if code.islower() else 0
    numbers = array.array(code, [rng.randrange(low, 5000) for _ in range(count)])
    many, single = Limiter("10/s burst 1", keys=10_000), Limiter("10/s burst 1", keys=10_000)
    assert same(many.hit_many(numbers, now=0), [single.hit(key, now=0) for key in numbers])
    # Backwards, and every second one.
    backwards = many.hit_many(memoryview(numbers)[::-2], now=SECOND)
    assert same(backwards, [single.hit(key, now=SECOND) for key in list(numbers)[::-2]])


def test_rows_of_bytes_are_keys() -> None:
    numpy = pytest.importorskip("numpy", reason="no numpy: pip install numpy")
    addresses = [ipaddress.IPv4Address(n % 300) for n in range(1000)]
    rows = numpy.frombuffer(b"".join(address.packed for address in addresses), dtype=numpy.uint8).reshape(-1, 4)
    many, single = Limiter("10/s burst 2", keys=1000), Limiter("10/s burst 2", keys=1000)
    verdicts = numpy.asarray(many.hit_many(rows, now=0))
    assert verdicts.dtype == bool and verdicts.tolist() == [single.hit(address, now=0) for address in addresses]
    assert many.hit_many(numpy.arange(6, dtype=numpy.int64), now=0).tolist() == [True] * 6
    assert many.hit(numpy.int64(5), now=0) and not many.hit(5, now=0)
    for bad in (
        numpy.zeros(3),
        numpy.zeros((2, 2), dtype=int),
        numpy.zeros(3, dtype=complex),
        numpy.array(5),
        numpy.zeros((2, 4, 4), dtype=numpy.uint8),
        numpy.zeros((4, 8), dtype=numpy.uint8)[:, ::2],
        numpy.array(["a"]),
        numpy.arange(3).astype(">i8"),
        numpy.zeros(3, dtype=numpy.uint8),
    ):
        with pytest.raises(TypeError):
            many.hit_many(bad)
    rows = numpy.arange(12, dtype=numpy.uint8).reshape(3, 4)
    for scattered in (numpy.asfortranarray(rows), rows[:, ::2], rows[:, ::-1]):
        with pytest.raises(TypeError, match=r"pass numpy.ascontiguousarray\(keys\)"):
            many.hit_many(scattered)
        assert list(many.hit_many(numpy.ascontiguousarray(scattered), now=0)) == [True] * 3
    for code in (">i8", ">u2", ">u4"):
        turned = numpy.arange(3).astype(code)
        with pytest.raises(TypeError, match="byte order of this machine"):
            many.hit_many(turned)
        assert list(many.hit_many(turned.astype(turned.dtype.newbyteorder("=")), now=0)) == [True] * 3


def test_a_wrong_key_is_named_and_nothing_crashes() -> None:
    limiter = Limiter("10/s burst 2", keys=100)
    wrong: list[Any] = [1.5, None, [], ("a",), object(), bytearray(b"x")]
    for bad in wrong:
        with pytest.raises(TypeError, match="a key is str"):
            limiter.hit_many(["a"] * 200 + [bad])
    for bad in ("abc", b"abc", bytearray(b"abc")):  # a str is a sequence of str to a type checker
        with pytest.raises(TypeError, match="hit takes one key"):
            limiter.hit_many(bad)
    with pytest.raises(TypeError):
        limiter.hit_many(5)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="4294967295"):
        limiter.hit_many(["a"], 2**32)


def test_a_key_that_changes_the_list_does_no_harm() -> None:
    limiter = Limiter("10/s burst 9", keys=100)
    keys: list[Any] = []

    class Clears:
        def __index__(self) -> int:
            keys.clear()
            return 7

    keys += [Clears(), *(f"key{n}" * 50 for n in range(500))]
    assert limiter.hit_many(keys, now=0) == [True] * 501

    class Closes:
        def __index__(self) -> int:
            limiter.close()
            return 7

    # The call that runs finishes on the memory that it has; then it goes.
    assert limiter.hit_many([*range(300), Closes()], now=0) == [True] * 301
    assert limiter.closed and limiter.memory == 0
    with pytest.raises(ValueError, match="closed"):
        limiter.hit_many(["a"])
    other = Limiter("1/s", keys=10)

    class ClosesOther:
        def __index__(self) -> int:
            other.close()
            return 7

    with pytest.raises(ValueError, match="closed"):
        other.hit(ClosesOther())


def test_large_arrays_leave_the_lock_and_survive_a_close() -> None:
    numbers = array.array("Q", range(1_000_000))
    for _ in range(2):
        limiter = Limiter("10/s burst 2", keys=1000)
        started, counted = threading.Event(), 0
        answers: list[memoryview[bool]] = []

        def work() -> None:
            started.set()
            answers.append(limiter.hit_many(numbers, now=0))

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        while thread.is_alive():
            counted += 1
            if counted == 1000:
                limiter.close()
        thread.join()
        assert len(answers[0]) == len(numbers)
        limiter.close()
        assert limiter.memory == 0
    assert counted > 1000
