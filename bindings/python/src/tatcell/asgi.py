# SPDX-License-Identifier: MIT OR Apache-2.0
"""Middleware for ASGI: Starlette, FastAPI, Litestar, Quart, Django."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from ._core import Cell, Chain, Limiter
from ._http import checked, checked_address, client_key, merged, refusal
from ._limited import asker

if TYPE_CHECKING:
    from ._types import Key

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Messages with the header fields of a response.
STARTS = ("http.response.start", "websocket.accept", "websocket.http.response.start")


def client_address(*, trusted_hops: int = 0, v4_bits: int = 32, v6_bits: int = 64) -> Callable[[Scope], bytes]:
    """Keys by the network of the client. Set `trusted_hops` to the number of proxies in front of the server."""
    checked_address(trusted_hops, v4_bits, v6_bits)

    def key(scope: Scope) -> bytes:
        client = scope.get("client")
        values = [value for name, value in scope.get("headers", ()) if name == b"x-forwarded-for"]
        forwarded = b",".join(values).decode("latin-1") if trusted_hops else ""
        return client_key(client[0] if client else None, forwarded, trusted_hops, v4_bits, v6_bits)

    return key


class RateLimitMiddleware:
    """Answers 429 to requests that are over the limit, and adds RateLimit fields to the responses of all others.

    `key` gets the scope and returns the key, a tuple of keys for a Chain, or None for a request that has no limit.
    Names are those of the limits in the fields. Wrong options raise at the start, and in no request.

    The handshake of a WebSocket is a request as any other; its messages are not counted. If it is over the limit, it
    gets 429 from servers with the extension "websocket.http.response", and from others their 403.
    """

    def __init__(
        self,
        app: App,
        limit: Limiter | Cell | Chain,
        *,
        key: Callable[[Scope], Key | tuple[Key, ...] | None] | None = None,
        names: tuple[str, ...] = (),
        legacy: bool = False,
    ) -> None:
        self.app = app
        self.ask = asker(limit, "RateLimitMiddleware")
        self.names = checked(__name__, app, limit, key, names, legacy)
        self.key = key or client_address()
        self.legacy = legacy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        key = self.key(scope) if kind in ("http", "websocket") else None
        if key is None:
            await self.app(scope, receive, send)
            return
        decision = self.ask(key, 1)
        fields = [
            (name.lower().encode("ascii"), value.encode("ascii"))
            for name, value in decision.headers(*self.names, legacy=self.legacy)
        ]
        if decision:

            async def with_fields(message: Message) -> None:
                if message["type"] in STARTS:
                    # A new message: the application may send its own again.
                    message = {**message, "headers": merged(message.get("headers", ()), fields)}
                await send(message)

            await self.app(scope, receive, with_fields)
            return
        response = "http.response"
        if kind == "websocket":
            response = "websocket.http.response"
            if response not in (scope.get("extensions") or {}):
                await send({"type": "websocket.close", "code": 1013, "reason": "too many requests"})
                return
        length, body = refusal(decision, scope.get("method", "GET"))
        plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % length)]
        await send({"type": f"{response}.start", "status": 429, "headers": plain + fields})
        await send({"type": f"{response}.body", "body": body})
