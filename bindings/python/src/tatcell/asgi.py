# SPDX-License-Identifier: MIT OR Apache-2.0
"""Middleware for ASGI: Starlette, FastAPI, Litestar, Quart, Django."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from ._core import Cell, Chain, Limiter
from ._http import client_key, refusal
from ._limited import asker, checked

if TYPE_CHECKING:
    from ._core import Key

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def client_address(*, trusted_hops: int = 0, v4_bits: int = 32, v6_bits: int = 64) -> Callable[[Scope], bytes | str]:
    """Keys by the network of the client. Set `trusted_hops` to the number of proxies in front of the server."""

    def key(scope: Scope) -> bytes | str:
        client = scope.get("client")
        values = [value for name, value in scope.get("headers", ()) if name == b"x-forwarded-for"]
        forwarded = b",".join(values).decode("latin-1") if trusted_hops else ""
        return client_key(client[0] if client else None, forwarded, trusted_hops, v4_bits, v6_bits)

    return key


class RateLimitMiddleware:
    """Answers 429 to requests that are over the limit, and adds RateLimit fields to the responses of all others.

    `key` gets the scope and returns the key, a tuple of keys for a Chain, or None for a request that has no limit.
    Names are those of the limits in the fields. Wrong options raise at the start, and in no request. Requests other
    than HTTP pass.
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
        checked(limit, names, legacy, key is not None)
        self.key = key or client_address()
        self.names = names
        self.legacy = legacy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = self.key(scope) if scope["type"] == "http" else None
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
                if message["type"] == "http.response.start":
                    # A new message: the application may send its own again.
                    message = {**message, "headers": [*message.get("headers", ()), *fields]}
                await send(message)

            await self.app(scope, receive, with_fields)
            return
        body = refusal(decision)
        plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 429, "headers": plain + fields})
        await send({"type": "http.response.body", "body": body})
