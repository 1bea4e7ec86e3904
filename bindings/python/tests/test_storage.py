"""What the URI and the options of the storage for `limits` may say."""

from typing import Any

import pytest
from conftest import in_shared_memory

limits = pytest.importorskip("limits", reason="no limits: pip install limits")


@pytest.mark.parametrize(
    "uri, options, says",
    [
        ("tatcell://api", {}, "three slashes, tatcell:///api"),
        ("tatcell://user@host:5/api", {}, "three slashes"),
        ("tatcell:///", {}, "the name is missing"),
        ("tatcell:///api?key=5", {}, "there is no option 'key': there is only keys"),
        ("tatcell://?", {"key": 5}, "there is no option 'key'"),
        ("tatcell://?5", {}, "there is no option '5'"),
        ("tatcell://?keys=5&keys=6", {}, "keys is given twice"),
        ("tatcell://?keys=5", {"keys": 5}, "keys is given twice"),
        ("tatcell://?keys=", {}, "keys is a whole number, not ''"),
        ("tatcell://?keys=1e6", {}, "keys is a whole number, not '1e6'"),
        ("tatcell://?keys=-5", {}, "keys is a whole number, not '-5'"),
        ("tatcell://", {"keys": 1.5}, "keys is a whole number, not 1.5"),
        ("tatcell://", {"keys": True}, "keys is a whole number, not True"),
        ("tatcell://?keys=0", {}, "keys is 0"),
        ("tatcell://?keys=1000000000000000", {}, "no table is large enough|bytes"),
        ("tatcell:///api#keys=5", {}, "leave '#keys=5' out"),
        ("tatcell:api", {}, "neither /name nor an absolute path"),
        ("tatcell:////api", {}, "name"),
        ("tatcell:///no/such/folder/api", {}, "folder"),
    ],
)
def test_a_wrong_uri_raises_when_the_storage_is_made(uri: str, options: dict[str, Any], says: str) -> None:
    from limits.storage import storage_from_string

    import tatcell.limits  # noqa: F401

    with pytest.raises((ValueError, OSError), match=says):
        storage_from_string(uri, **options)


def test_a_right_uri_says_name_and_keys(shared_name: str) -> None:
    from limits.storage import storage_from_string

    from tatcell.limits import TatcellStorage

    wanted: list[tuple[str, dict[str, Any], str | None, int]] = [
        ("tatcell://", {}, None, 100_000),
        ("tatcell://?keys=500", {}, None, 500),
        ("tatcell://", {"keys": "500"}, None, 500),
        (f"tatcell://{shared_name}", {"keys": 500}, shared_name, 500),
        (f"tatcell://{shared_name}?keys=500", {}, shared_name, 500),
    ]
    for uri, options, name, keys in wanted:
        storage = storage_from_string(uri, **options)
        assert isinstance(storage, TatcellStorage) and (storage.name, storage.keys) == (name, keys)
    # No name stays before a limit is used.
    assert isinstance(storage, TatcellStorage) and not in_shared_memory(shared_name)
    assert storage.table(1, 60).hit("ann") and in_shared_memory(shared_name) == [f"{shared_name}-1-60"]


def test_an_amount_of_0_refuses_all() -> None:
    from limits import RateLimitItemPerMinute, parse
    from limits.storage import MemoryStorage
    from limits.strategies import MovingWindowRateLimiter

    from tatcell.limits import TatcellRateLimiter, TatcellStorage

    nothing = RateLimitItemPerMinute(0)
    assert nothing == parse("0/minute")
    for strategy in (
        MovingWindowRateLimiter(MemoryStorage()),
        MovingWindowRateLimiter(TatcellStorage()),
        TatcellRateLimiter(TatcellStorage()),
    ):
        assert not strategy.hit(nothing, "ann") and not strategy.test(nothing, "ann")
        assert strategy.get_window_stats(nothing, "ann").remaining == 0
        strategy.clear(nothing, "ann")
