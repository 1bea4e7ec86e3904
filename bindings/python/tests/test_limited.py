"""The decorator, the middleware of ASGI and WSGI, and the package `limits`."""

import asyncio
import functools
import io
import math
import pickle
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

from tatcell import Cell, Chain, Limiter, RateLimited, asgi, limited, wsgi


def test_a_function_raises_once_it_is_over_the_limit() -> None:
    @limited(Limiter("1/h burst 2", keys=10), key=lambda user, **_: user)
    def greet(user: str, *, loud: bool = False) -> str:
        """Greets."""
        return f"hello {user}"

    assert greet("ann") == "hello ann" and greet("ann", loud=True) and greet("bob")
    assert (greet.__name__, greet.__doc__) == ("greet", "Greets.")
    with pytest.raises(RateLimited, match="retry after 3[56]") as caught:
        greet("ann")
    assert caught.value.decision.verdict == "refused"


def test_cells_and_chains_limit_functions_too() -> None:
    one = limited(Cell("1/h"))(lambda: 1)
    assert one() == 1
    with pytest.raises(RateLimited):
        one()
    both = limited(Chain(Limiter("1/h", keys=10), Cell("3/h")), key=lambda name: (name,))(lambda name: name)
    assert both("a") == "a" and both("b") == "b"
    with pytest.raises(RateLimited):
        both("a")
    large = limited(Cell("1/h"), cost=2)(lambda: 1)
    with pytest.raises(RateLimited, match="the cost 2 is above the burst 1"):
        large()


async def later(user: str) -> str:
    return user


@pytest.mark.parametrize(
    "options, error, says",
    [
        ({"limit": 5}, TypeError, "takes a Limiter, a Cell or a Chain, not int"),
        ({"limit": len}, TypeError, "takes a Limiter, a Cell or a Chain"),
        ({"limit": Limiter("1/h", keys=10)}, TypeError, "needs a key"),
        ({"limit": Chain(Limiter("1/h", keys=10), Cell("1/h"))}, TypeError, "a Chain of 1 limiters needs key="),
        ({"key": "user"}, TypeError, "key is a function that returns the key, not str"),
        ({"key": later}, TypeError, "key is a coroutine function"),
        ({"cost": -1}, ValueError, "cost is out of range"),
        ({"cost": 1.0}, TypeError, "cost must be an int, not float"),
        ({"cost": None}, TypeError, "cost must be an int, not NoneType"),
        ({"wait": math.nan}, ValueError, "wait is nan: pass 0 or more seconds"),
        ({"wait": -1}, ValueError, "wait is -1: pass 0 or more seconds"),
        ({"wait": "1"}, TypeError, "wait is a number of seconds, not str"),
        ({"wait": None}, TypeError, "wait is a number of seconds, not NoneType"),
        ({"wait": True}, TypeError, "wait is a number of seconds, not bool"),
    ],
)
def test_wrong_options_of_limited_are_named_at_the_start(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    make: Any = limited
    with pytest.raises(error, match=says):
        make(**{"limit": Cell("1/h"), **options})
    closed = Limiter("1/h", keys=10)
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        limited(closed, key=lambda: "a")


def test_only_functions_are_limited() -> None:
    decorate: Any = limited(Cell("1/h"))
    for thing in (property(lambda self: 1), functools.cached_property(lambda self: 1), 5, None):
        with pytest.raises(TypeError, match=f"takes a function, not {type(thing).__name__}: put it below @property"):
            decorate(thing)

    class Thing:
        @property
        @limited(Cell("1/h"))
        def one(self) -> int:
            return 1

    assert Thing().one == 1
    with pytest.raises(RateLimited):
        Thing().one


def test_what_can_never_pass_raises_at_once() -> None:
    large = limited(Cell("1/h"), cost=2, wait=math.inf)(lambda: 1)
    with pytest.raises(RateLimited, match="above the burst"):
        large()


def test_an_asynchronous_generator_is_refused() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(TypeError, match="asynchronous generator"):
        limited(Cell("1/h"))(numbers)


def test_a_call_waits_as_long_as_it_may() -> None:
    calls = []
    slow = limited(Cell("20/s burst 1"), wait=5)(lambda: calls.append(1))
    for _ in range(3):
        slow()
    assert len(calls) == 3
    hasty = limited(Cell("1/min"), wait=0.5)(lambda: 1)
    assert hasty() == 1
    with pytest.raises(RateLimited):
        hasty()


def test_what_returns_a_coroutine_waits_by_asyncio() -> None:
    class Caller:
        async def __call__(self) -> int:
            return 1

        @limited(Cell("5/s burst 1"), wait=10)
        @staticmethod
        async def static() -> int:
            return 1

    async def plain() -> int:
        return 1

    @functools.wraps(plain)
    def wrapper() -> Any:
        return plain()

    async def all_of_them(function: Callable[[], Any]) -> None:
        # Nothing else may stop while a call waits.
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(others())
        await asyncio.sleep(0)
        assert [await function(), await function()] == [1, 1] and turns > 10
        task.cancel()

    within = limited(Cell("5/s burst 1"), wait=10)
    for function in (within(Caller()), within(functools.partial(plain)), Caller.static, Caller().static):
        asyncio.run(all_of_them(function))

    # A class whose objects are awaited is called as a function.
    assert isinstance(limited(Cell("1/h"))(Caller)(), Caller)

    async def stops() -> None:
        function = limited(Cell("1/s burst 1"), wait=2)(wrapper)
        assert await function() == 1
        with pytest.raises(RuntimeError, match="event loop"):
            await function()

    asyncio.run(stops())


class Own(RateLimited):
    pass


def test_a_refusal_comes_back_from_another_process() -> None:
    function = limited(Cell("1/h"))(len)
    function("")
    with pytest.raises(RateLimited) as refused:
        function("")
    error = pickle.loads(pickle.dumps(refused.value))
    assert type(pickle.loads(pickle.dumps(Own(refused.value.decision)))) is Own
    assert str(error) == str(refused.value) and error.decision.verdict == "refused" and not error.decision
    assert 3599 < error.decision.retry_after <= 3600 and error.decision.burst == 1


def test_a_refusal_from_another_process_has_all_that_a_decision_has() -> None:
    chain = Chain(Limiter("10/min", keys=10), Cell("1/h"))
    named: list[tuple[Cell | Chain, tuple[str, ...]]] = [(chain, ("address", 'say "\\1"')), (Cell("1/h"), ("all",))]
    for limit, names in named:
        function = limited(limit, key=(lambda: "ann") if isinstance(limit, Chain) else None)(lambda: 1)
        function()
        with pytest.raises(RateLimited) as refused:
            function()
        here = refused.value.decision
        there = pickle.loads(pickle.dumps(refused.value)).decision
        twice = pickle.loads(pickle.dumps(RateLimited(there))).decision
        for name in (name for name in vars(type(here)) if not name.startswith("_") and name != "headers"):
            assert getattr(there, name) == getattr(here, name) == getattr(twice, name), name
        for legacy in (False, True):
            for given in ((), names):
                assert there.headers(*given, legacy=legacy) == here.headers(*given, legacy=legacy)
                assert twice.headers(*given, legacy=legacy) == here.headers(*given, legacy=legacy)
        for wrong in (("a", "b", "c"), (*names[:-1], ""), (*names[:-1], "\n")):
            for decision in (here, there):
                with pytest.raises(ValueError):
                    decision.headers(*wrong)


def test_wrong_options_of_the_middleware_raise_at_the_start() -> None:
    ann, bob = Limiter("1/h", keys=10), Limiter("1/h", keys=10)
    for module in (asgi, wsgi):
        middleware: Any = functools.partial(module.RateLimitMiddleware, lambda *_: None)
        wrong: list[tuple[Any, dict[str, Any], type[Exception]]] = [
            (ann, {"names": ("a", "b")}, ValueError),
            (ann, {"names": ("a\n",)}, ValueError),
            (ann, {"names": (5,)}, TypeError),
            (ann, {"names": "ann"}, TypeError),
            (Chain(ann, bob), {}, TypeError),
        ]
        for limit, options, error in wrong:
            with pytest.raises(error):
                middleware(limit, **options)
        middleware(Chain(ann, bob), key=lambda scope: ("a", "b"), names=("ann", "bob"))
        middleware(Chain(ann, Cell("1/h")))
        middleware(Chain(Cell("1/h")))
    assert ann.hit("key") and bob.hit("key")


def test_a_coroutine_function_stays_one() -> None:
    @limited(Cell("20/s burst 1"), wait=5)
    async def fetch(number: int) -> int:
        return number

    @limited(Cell("1/h burst 1"))
    async def once() -> None:
        pass

    async def main() -> list[int]:
        await once()
        with pytest.raises(RateLimited):
            await once()
        return await asyncio.gather(*(fetch(number) for number in range(4)))

    assert asyncio.iscoroutinefunction(fetch) and asyncio.run(main()) == [0, 1, 2, 3]


def get(
    app: asgi.App, client: tuple[str, int] | None = ("192.0.2.1", 9), forwarded: str = ""
) -> tuple[int, dict[str, str]]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("the middleware reads no body")

    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []

    async def main() -> None:
        await app({"type": "http", "client": client, "headers": headers}, receive, send)

    asyncio.run(main())
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


async def plain_asgi(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-app", b"1")]})
    await send({"type": "http.response.body", "body": b"hello"})


def test_asgi_answers_429_with_the_fields() -> None:
    app = asgi.RateLimitMiddleware(plain_asgi, Limiter("1/min burst 2", keys=100))
    status, headers = get(app)
    assert status == 200 and headers == {
        "x-app": "1",
        "ratelimit-policy": '"default";q=2;w=120',
        "ratelimit": '"default";r=1;t=60',
    }
    get(app)
    status, headers = get(app)
    assert (status, headers["retry-after"], headers["ratelimit"][:15]) == (429, "60", '"default";r=0;t')
    assert get(app, ("192.0.2.2", 9))[0] == 200
    # All clients without an address have one key.
    assert [get(app, None)[0] for _ in range(3)] == [200, 200, 429]


def test_asgi_leaves_the_message_of_the_application_alone() -> None:
    start = {"type": "http.response.start", "status": 200, "headers": [(b"x-app", b"1")]}

    async def constant(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        await send(start)
        await send({"type": "http.response.body", "body": b"hello"})

    app = asgi.RateLimitMiddleware(constant, Limiter("9/min", keys=10))
    assert "ratelimit" in get(app)[1] and "ratelimit" in get(app)[1]
    assert start["headers"] == [(b"x-app", b"1")]


def test_asgi_leaves_alone_what_has_no_key() -> None:
    app = asgi.RateLimitMiddleware(plain_asgi, Limiter("1/min", keys=10), key=lambda scope: None)
    assert [get(app) for _ in range(3)] == [(200, {"x-app": "1"})] * 3
    seen = []

    async def lifespan(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        seen.append(scope["type"])

    app = asgi.RateLimitMiddleware(lifespan, Cell("1/min"))

    async def main() -> None:
        for _ in range(3):
            await app({"type": "lifespan"}, None, None)  # type: ignore[arg-type]

    asyncio.run(main())
    assert seen == ["lifespan"] * 3


def test_asgi_asks_a_chain_under_its_names() -> None:
    chain = Chain(Limiter("9/min burst 9", keys=10), Cell("1/min burst 1"))
    app = asgi.RateLimitMiddleware(plain_asgi, chain, names=("address", "all"), legacy=True)
    assert get(app)[1]["ratelimit"] == '"address";r=8;t=7, "all";r=0;t=60'
    status, headers = get(app)
    assert status == 429 and headers["x-ratelimit-remaining"] == "0"


def test_wsgi_answers_429_with_the_fields() -> None:
    closed = []

    class Body(io.BytesIO):
        def close(self) -> None:
            closed.append(1)
            super().close()

    def plain(environ: Any, start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [("X-App", "1")])
        return Body(b"hello")

    app = wsgi.RateLimitMiddleware(plain, Limiter("1/min burst 1", keys=100))
    said: list[Any] = []

    def call(environ: Any) -> tuple[str, dict[str, str], bytes]:
        def start_response(status: str, headers: Any, error: Any = None, /) -> Any:
            said.append((status, dict(headers)))
            return said.append

        body = app(environ, start_response)
        text = b"".join(body)
        if hasattr(body, "close"):
            body.close()
        return (*said[-1], text)

    status, headers, text = call({"REMOTE_ADDR": "192.0.2.1"})
    assert (status, headers["X-App"], headers["RateLimit"], text) == ("200 OK", "1", '"default";r=0;t=60', b"hello")
    assert closed == [1]
    status, headers, text = call({"REMOTE_ADDR": "192.0.2.1"})
    assert (status, headers["Retry-After"], text[:18]) == ("429 Too Many Requests", "60", b"Too many requests:")
    assert call({"REMOTE_ADDR": "192.0.2.2"})[0] == "200 OK"

    def failing(environ: Any, start_response: Any) -> Iterable[bytes]:
        start_response("500 Oops", [], ("kind", "error", "trace"))
        return []

    given: list[Any] = []
    list(wsgi.RateLimitMiddleware(failing, Cell("1/h"))({}, lambda *args: given.append(args)))  # type: ignore[arg-type]
    assert given[0][2] == ("kind", "error", "trace") and len(given) == 1
    free = wsgi.RateLimitMiddleware(plain, Cell("1/h"), key=lambda environ: None)
    assert all(list(free({}, lambda status, headers, error=None: said.append)) for _ in range(3))


def test_the_package_limits_decides_by_tatcell(shared_name: str) -> None:
    limits = pytest.importorskip("limits", reason="no limits: pip install limits")
    from limits import strategies
    from limits.storage import MemoryStorage, storage_from_string

    import tatcell.limits

    for uri in ("tatcell://", f"tatcell://{shared_name}?keys=1000"):
        for strategy in ("tatcell", "moving-window"):
            storage = storage_from_string(uri)
            assert isinstance(storage, tatcell.limits.TatcellStorage) and storage.check()
            limiter = strategies.STRATEGIES[strategy](storage)
            item = limits.parse("3/minute")
            assert limiter.test(item, "ann") and [limiter.hit(item, "ann") for _ in range(4)] == [
                True,
                True,
                True,
                False,
            ]
            assert (
                not limiter.test(item, "ann")
                and limiter.hit(item, "bob", cost=3)
                and not limiter.hit(item, "cy", cost=4)
            )
            assert (
                limiter.get_window_stats(item, "ann").remaining == 0
                and limiter.get_window_stats(item, "new").remaining == 3
            )
            assert limiter.hit(limits.parse("3/hour"), "ann")
            limiter.clear(item, "ann")
            assert limiter.hit(item, "ann")
            other = strategies.STRATEGIES[strategy](storage_from_string(uri))
            assert other.hit(item, "bob") is (uri == "tatcell://")
            if uri == "tatcell://":
                assert storage.reset() == 2 and limiter.hit(item, "bob")
                continue
            with pytest.raises(NotImplementedError, match="stop them all"):
                storage.reset()
            assert not limiter.hit(item, "bob")
            for name in storage.tables.values():
                Limiter.unlink(str(name.name))
    with pytest.raises(NotImplementedError, match="moving-window"):
        strategies.FixedWindowRateLimiter(storage_from_string("tatcell://")).hit(limits.parse("1/second"))
    with pytest.raises(TypeError, match="tatcell://"):
        strategies.STRATEGIES["tatcell"](MemoryStorage())


def test_the_package_limits_says_when_a_request_passes_again() -> None:
    limits = pytest.importorskip("limits", reason="no limits: pip install limits")
    from limits import strategies
    from limits.storage import storage_from_string

    import tatcell.limits  # noqa: F401

    for strategy in ("tatcell", "moving-window"):
        limiter = strategies.STRATEGIES[strategy](storage_from_string("tatcell://"))
        item, begun = limits.parse("60/minute"), time.time()
        assert all(limiter.hit(item, "ann") for _ in range(30))
        # Each drains in a second, the first from when it passed.
        assert begun + 29.9 < limiter.get_window_stats(item, "ann").reset_time <= time.time() + 30
        while limiter.hit(item, "ann"):
            begun = time.time()
        # A second for the next unit, and not the minute for all of them.
        assert begun < limiter.get_window_stats(item, "ann").reset_time <= time.time() + 1


def test_workers_of_the_package_limits_clear_what_others_use(shared_name: str) -> None:
    limits = pytest.importorskip("limits", reason="no limits: pip install limits")
    from tatcell.limits import TatcellRateLimiter, TatcellStorage

    first, second, third = (TatcellRateLimiter(TatcellStorage(f"tatcell://{shared_name}")) for _ in range(3))
    minute, hour = limits.parse("1/minute"), limits.parse("1/hour")
    assert first.hit(minute, "ann") and first.hit(hour, "ann") and not first.hit(minute, "ann")
    # The third has not used the limit yet.
    third.clear(minute, "ann")
    assert second.hit(minute, "ann") and not second.hit(hour, "ann")
    Limiter.unlink(f"{shared_name}-1-60")
    Limiter.unlink(f"{shared_name}-1-3600")


def test_flask_limiter_needs_the_strategy() -> None:
    flask = pytest.importorskip("flask", reason="no flask-limiter: pip install flask-limiter")
    flask_limiter = pytest.importorskip("flask_limiter", reason="no flask-limiter: pip install flask-limiter")
    import tatcell.limits  # noqa: F401

    for options, statuses in [({"strategy": "moving-window"}, [200, 200, 429]), ({}, [500])]:
        app = flask.Flask("app")
        flask_limiter.Limiter(lambda: "ann", app=app, default_limits=["2/minute"], storage_uri="tatcell://", **options)
        app.add_url_rule("/", view_func=lambda: "hello")
        client = app.test_client()
        assert [client.get("/").status_code for _ in statuses] == statuses
