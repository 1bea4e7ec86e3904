# SPDX-License-Identifier: MIT OR Apache-2.0
"""Middleware for WSGI: Flask, Django, Pyramid, Bottle."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ._core import Cell, Chain, Limiter
from ._http import checked, checked_address, client_key, merged, refusal
from ._limited import asker

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from ._types import Key


def client_address(
    *, trusted_hops: int = 0, v4_bits: int = 32, v6_bits: int = 64
) -> Callable[[WSGIEnvironment], bytes]:
    """Keys by the network of the client. Set `trusted_hops` to the number of proxies in front of the server."""
    checked_address(trusted_hops, v4_bits, v6_bits)

    def key(environ: WSGIEnvironment) -> bytes:
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
        self.names = checked(__name__, app, limit, key, names, legacy)
        self.key = key or client_address()
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
                return start_response(status, merged(headers, fields), *more)

            return self.app(environ, with_fields)
        # Servers send whatever they get here, also after the head of a response to HEAD.
        length, body = refusal(decision, environ.get("REQUEST_METHOD", "GET"))
        plain = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(length))]
        start_response("429 Too Many Requests", plain + fields)
        return [body] if body else []
