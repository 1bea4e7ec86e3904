"""The middleware: HEAD, handshakes of WebSockets, wrong options, and who the client is behind proxies."""

import asyncio
import socket
import threading
import wsgiref.simple_server
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from tatcell import Cell, Chain, Limiter, asgi, network, wsgi


def hello(environ: Any, start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "5")])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [b"hello"]


def test_a_server_sends_no_body_after_the_head_of_a_refused_head() -> None:
    class Quiet(wsgiref.simple_server.WSGIRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    app = wsgi.RateLimitMiddleware(hello, Limiter("2/h", keys=10))
    with wsgiref.simple_server.make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def ask(method: str) -> tuple[str, str, bytes]:
            with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as connection:
                connection.sendall(b"%s / HTTP/1.0\r\n\r\n" % method.encode())
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
            head, _, body = answer.partition(b"\r\n\r\n")
            length = next(line for line in head.decode().split("\r\n") if line.startswith("Content-Length"))
            return head.decode().split()[1], length, body

        answers = [ask(method) for method in ("HEAD", "GET", "HEAD", "GET")]
        server.shutdown()
    assert [(status, len(body) > 0) for status, _, body in answers] == [
        ("200", False),
        ("200", True),
        ("429", False),
        ("429", True),
    ]
    # The length is that of the body that GET gets.
    assert answers[2][1] == answers[3][1] == f"Content-Length: {len(answers[3][2])}"


async def page(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "hello"})
        await send({"type": "websocket.close", "code": 1000})
    else:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello"})


def run(app: asgi.App, **scope: Any) -> list[Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("the middleware reads no message")

    async def main() -> None:
        await app({"client": ("192.0.2.1", 9), "headers": [], **scope}, receive, send)

    asyncio.run(main())
    return sent


def test_asgi_sends_no_body_to_a_refused_head() -> None:
    app = asgi.RateLimitMiddleware(page, Cell("1/h"))
    run(app, type="http", method="GET")
    head, body = run(app, type="http", method="HEAD")
    _, of_get = run(app, type="http", method="GET")
    assert (head["status"], body["body"]) == (429, b"") and of_get["body"]
    assert dict(head["headers"])[b"content-length"] == b"%d" % len(of_get["body"])


def test_asgi_limits_the_handshakes_of_websockets() -> None:
    app = asgi.RateLimitMiddleware(page, Limiter("2/h", keys=10))
    accepted = run(app, type="websocket")
    assert [message["type"] for message in accepted] == ["websocket.accept", "websocket.send", "websocket.close"]
    assert dict(accepted[0]["headers"])[b"ratelimit"].startswith(b'"default";r=1')
    assert run(app, type="websocket", client=("192.0.2.2", 9))[0]["type"] == "websocket.accept"
    # One message that closes before the handshake is done: the server answers 403.
    run(app, type="http")
    others: list[dict[str, Any]] = [{}, {"extensions": None}, {"extensions": {"http.response.push": {}}}]
    for scope in others:
        (closed,) = run(app, type="websocket", **scope)
        assert closed["type"] == "websocket.close"
    start, body = run(app, type="websocket", extensions={"websocket.http.response": {}})
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 429)
    assert b"retry-after" in dict(start["headers"])
    assert body == {"type": "websocket.http.response.body", "body": body["body"]} and b"Too many" in body["body"]
    # They count together with all other requests, and a key of None leaves them out.
    assert run(app, type="http")[0]["status"] == 429
    free = asgi.RateLimitMiddleware(page, Cell("1/h"), key=lambda scope: None if scope["type"] == "websocket" else "a")
    assert [run(free, type="websocket")[0]["type"] for _ in range(3)] == ["websocket.accept"] * 3


@pytest.mark.parametrize("legacy", [False, True])
def test_fields_of_one_value_are_those_of_the_last_limit(legacy: bool) -> None:
    last, first = Cell("2/h"), Cell("9/h")
    for _ in range(2):
        told: list[list[tuple[str, str]]] = []

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            told.append([(name.lower(), value) for name, value in headers])

        inner_wsgi = wsgi.RateLimitMiddleware(hello, last, legacy=legacy)
        environ = {"REQUEST_METHOD": "GET", "REMOTE_ADDR": "192.0.2.1"}
        list(wsgi.RateLimitMiddleware(inner_wsgi, first, legacy=legacy)(environ, start))
        inner = asgi.RateLimitMiddleware(page, last, legacy=legacy)
        sent = run(asgi.RateLimitMiddleware(inner, first, legacy=legacy), type="http", method="GET")
        told.append([(name.decode(), value.decode()) for name, value in sent[0]["headers"]])
        for fields in told:
            old = [field for field in fields if field[0].startswith("x-ratelimit-")]
            assert len(old) == (3 if legacy else 0) and (not legacy or ("x-ratelimit-limit", "2") in old)
            assert [name for name, _ in fields].count("ratelimit") == 2


async def later(scope: Any) -> str:
    return "key"


@pytest.mark.parametrize(
    "options, error, says",
    [
        ({"key": "x-api-key"}, TypeError, "key is a function that returns the key, not str"),
        ({"key": later}, TypeError, "key is a coroutine function"),
        ({"key": lambda: "key"}, TypeError, "key is called with one argument"),
        ({"key": asgi.client_address}, TypeError, r"client_address\(\) returns such a function"),
        ({"key": wsgi.client_address}, TypeError, r"client_address\(\) returns such a function"),
        ({"names": "ann"}, TypeError, "names are a tuple"),
        ({"names": 5}, TypeError, "names are a tuple.*not int"),
        ({"names": ("a", "b")}, ValueError, "2 names for 1 limits"),
        ({"legacy": "no"}, TypeError, "legacy is True or False, not str"),
        ({"app": None}, TypeError, "app is an application, which can be called, not NoneType"),
        ({"limit": "10/s"}, TypeError, "takes a Limiter, a Cell or a Chain, not str"),
        ({"limit": Chain(Limiter("1/h", keys=10), Limiter("1/h", keys=10))}, TypeError, "needs key="),
        ({"trusted_hops": 1}, TypeError, "trusted_hops"),
    ],
)
def test_wrong_options_of_the_middleware_are_named_at_the_start(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    for module in (asgi, wsgi):
        make: Any = module.RateLimitMiddleware
        with pytest.raises(error, match=says):
            make(**{"app": page, "limit": Limiter("10/s", keys=10), **options})


@pytest.mark.parametrize(
    "options, error, says",
    [
        ({"trusted_hops": -1}, ValueError, "trusted_hops is the number of proxies.*pass 0 to 255"),
        ({"trusted_hops": 256}, ValueError, "pass 0 to 255"),
        ({"trusted_hops": "1"}, TypeError, "trusted_hops must be an int, not str"),
        ({"trusted_hops": None}, TypeError, "trusted_hops must be an int"),
        ({"trusted_hops": 1.0}, TypeError, "trusted_hops must be an int"),
        ({"v4_bits": 40}, ValueError, "v4_bits is out of range: pass 0 to 32"),
        ({"v4_bits": None}, TypeError, "v4_bits must be an int, not NoneType"),
        ({"v6_bits": "64"}, TypeError, "v6_bits must be an int, not str"),
        ({"v6_bits": -1}, ValueError, "v6_bits is out of range: pass 0 to 128"),
    ],
)
def test_wrong_options_of_client_address_are_named_at_the_start(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    for make in (asgi.client_address, wsgi.client_address):
        with pytest.raises(error, match=says):
            make(**options)


def test_a_key_of_the_other_protocol_is_refused() -> None:
    # Every client would have the same key.
    with pytest.raises(TypeError, match="key is of tatcell.wsgi, and the middleware of tatcell.asgi"):
        asgi.RateLimitMiddleware(page, Cell("1/h"), key=wsgi.client_address())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="key is of tatcell.asgi, and the middleware of tatcell.wsgi"):
        wsgi.RateLimitMiddleware(hello, Cell("1/h"), key=asgi.client_address())
    wsgi.RateLimitMiddleware(hello, Cell("1/h"), key=wsgi.client_address())
    wsgi.RateLimitMiddleware(hello, Cell("1/h"), key=str)  # a class, without a signature in some versions


def test_names_are_read_once() -> None:
    names = ["address"]
    of_asgi = asgi.RateLimitMiddleware(page, Cell("1/h"), names=names)  # type: ignore[arg-type]
    of_wsgi = wsgi.RateLimitMiddleware(hello, Cell("1/h"), names=names)  # type: ignore[arg-type]
    names.append("another")
    assert run(of_asgi, type="http")[0]["headers"] and of_asgi.names == of_wsgi.names == ("address",)


PEER = "192.0.2.1"


@pytest.mark.parametrize(
    "hops, forwarded, client",
    [
        (0, "198.51.100.7", PEER),
        (1, "198.51.100.7", "198.51.100.7"),
        (1, "spoofed, 198.51.100.7", "198.51.100.7"),
        (2, "spoofed, 198.51.100.7, 10.0.0.1", "198.51.100.7"),
        (2, ",198.51.100.7,\t10.0.0.1 ", "198.51.100.7"),
        # It came around the proxies.
        (1, "", PEER),
        (2, "198.51.100.7", PEER),
        (255, "198.51.100.7", PEER),
        # What a proxy appends takes its place, also if it is nothing: the next entry is of the client.
        (1, "198.51.100.7,", PEER),
        (1, " , ", PEER),
        (2, "198.51.100.7, , 10.0.0.1", PEER),
        (1, "198.51.100.7, unknown", PEER),
        (1, "198.51.100.7, unix:", PEER),
        (1, "unknown", PEER),
        (1, "198.51.100", PEER),
        (1, "198.51.100.7/24", PEER),
        (1, "198.51.100.7:x", PEER),
        (1, "[198.51.100.7", PEER),
        (1, "198.51.100.7\0", PEER),
        (1, "198.51.100.7\xff", PEER),
        (1, "198.51.100.7:4711", "198.51.100.7"),
        (1, "[198.51.100.7]:80", "198.51.100.7"),
        (1, "::ffff:198.51.100.7", "198.51.100.7"),
        (1, "[2001:db8::7]:4711", "2001:db8::7"),
        (1, "[2001:db8::7]", "2001:db8::7"),
        (1, "2001:db8::7", "2001:db8::7"),
        (1, "fe80::1%eth0", "fe80::1"),
    ],
)
def test_the_client_is_an_entry_from_the_right_or_the_peer(hops: int, forwarded: str, client: str) -> None:
    assert key_of(hops, forwarded, PEER) == network(client)


def key_of(hops: int, forwarded: str, peer: str | None) -> bytes:
    """The key of both kinds of middleware."""
    of_asgi, of_wsgi = asgi.client_address(trusted_hops=hops), wsgi.client_address(trusted_hops=hops)
    scope = {"client": (peer, 1) if peer is not None else None}
    environ = {"REMOTE_ADDR": peer} if peer is not None else {}
    # Servers of WSGI join the lines of a field.
    lines = forwarded.encode("latin-1").split(b"|")
    key = of_asgi({**scope, "headers": [(b"x-forwarded-for", line) for line in lines]})
    assert of_wsgi({**environ, "HTTP_X_FORWARDED_FOR": forwarded.replace("|", ",")}) == key
    return key


def test_the_peer_is_an_address_in_any_spelling() -> None:
    for peer, same_as in [
        ("2001:db8::1", "2001:db8::2"),
        ("fe80::1%eth0", "fe80::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ]:
        assert key_of(0, "", peer) == network(same_as)


def test_lines_of_a_field_are_one_list() -> None:
    assert key_of(1, "spoofed|198.51.100.7", PEER) == network("198.51.100.7")
    assert key_of(2, "198.51.100.7|10.0.0.1", PEER) == network("198.51.100.7")
    assert key_of(1, "198.51.100.7|", PEER) == network(PEER)


def test_made_up_names_give_no_fresh_keys() -> None:
    made_up = [f"client-{n}" for n in range(50)] + [f"_hidden{n}:80" for n in range(50)]
    assert {key_of(1, text, PEER) for text in made_up} == {network(PEER)}
    # All clients whose peer has no address share one key, whatever they are called.
    assert {key_of(1, text, peer) for text in made_up for peer in (None, "", "unix:", "testclient")} == {b""}
    app: Callable[..., Awaitable[None]] = asgi.RateLimitMiddleware(page, Limiter("1/h", keys=10))
    assert [run(app, type="http", client=None)[0]["status"] for _ in range(2)] == [200, 429]
