# SPDX-License-Identifier: MIT OR Apache-2.0
"""Middleware for WSGI: Flask, Django, Pyramid, Bottle."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ._core import Cell, Chain, Limiter
from ._http import client_key, refusal
from ._limited import asker, checked

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from ._core import Key


def client_address(
    *, trusted_hops: int = 0, v4_bits: int = 32, v6_bits: int = 64
) -> Callable[[WSGIEnvironment], bytes | str]:
    """Keys by the network of the client. Set `trusted_hops` to the number of proxies in front of the server."""

    def key(environ: WSGIEnvironment) -> bytes | str:
        forwarded = environ.get("HTTP_X_FORWARDED_FOR", "") if trusted_hops else ""
        return client_key(environ.get("REMOTE_ADDR"), forwarded, trusted_hops, v4_bits, v6_bits)

    return key


class RateLimitMiddleware:
    """Answers 429 to requests that are over the limit, and adds RateLimit fields to the responses of all others.

    `key` gets the environ and returns the key, a tuple of keys for a Chain, or None for a request that has no limit.
    Names are those of the limits in the fields. Wrong options raise at the start, and in no request.
    """

    def __init__(
        self,
        app: WSGIApplication,
        limit: Limiter | Cell | Chain,
        *,
        key: Callable[[WSGIEnvironment], Key | tuple[Key, ...] | None] | None = None,
        names: tuple[str, ...] = (),
        legacy: bool = False,
    ) -> None:
        self.app = app
        self.ask = asker(limit, "RateLimitMiddleware")
        checked(limit, names, legacy, key is not None)
        self.key = key or client_address()
        self.names = names
        self.legacy = legacy

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        key = self.key(environ)
        if key is None:
            return self.app(environ, start_response)
        decision = self.ask(key, 1)
        fields = decision.headers(*self.names, legacy=self.legacy)
        if decision:

            def with_fields(
                status: str, headers: list[tuple[str, str]], error: Any = None, /
            ) -> Callable[[bytes], object]:
                more = (error,) if error is not None else ()
                return start_response(status, [*headers, *fields], *more)

            return self.app(environ, with_fields)
        body = refusal(decision)
        plain = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        start_response("429 Too Many Requests", plain + fields)
        return [body]
