# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the middleware of ASGI and of WSGI share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import AnyStr

from ._core import Cell, Chain, Decision, Limiter, network
from ._limited import needs_function, trial

# Some proxies append the port: 192.0.2.1:4711, [2001:db8::1]:4711.
ENTRY = re.compile(r"\[([^][]*)\](?::[0-9]+)?|([^:]*):[0-9]+|([^][]*)")
MOST_HOPS = 255


def checked_address(trusted_hops: int, v4_bits: int, v6_bits: int) -> None:
    """Raises what the first request would raise, and what no request would."""
    network("192.0.2.1", v4_bits, v6_bits)
    if not isinstance(trusted_hops, int):
        raise TypeError(f"trusted_hops must be an int, not {type(trusted_hops).__name__}")
    if not 0 <= trusted_hops <= MOST_HOPS:
        raise ValueError(f"trusted_hops is the number of proxies in front of the server: pass 0 to {MOST_HOPS}")


def address_key(text: str, v4_bits: int, v6_bits: int) -> bytes | None:
    found = ENTRY.fullmatch(text.strip(" \t"))
    if not found:
        return None
    address = found[1] or found[2] or found[3] or ""
    try:
        return network(address.partition("%")[0], v4_bits, v6_bits)
    except ValueError:
        return None


def client_key(peer: str | None, forwarded: str, trusted_hops: int, v4_bits: int, v6_bits: int) -> bytes:
    """The key of a client: the network of its address.

    Each of `trusted_hops` proxies appends the address that it saw to X-Forwarded-For. So the one that the first trusted
    proxy saw is that many entries from the right; everything left of it is what the client wants us to believe. Every
    entry counts, also an empty one: the next one to the left may be the client's. If there is no such entry, or it is
    not an address, the client is the peer, which nobody can make up. Clients whose peer has no address (a Unix socket)
    share one key.
    """
    key = None
    if trusted_hops > 0:
        entries = forwarded.rsplit(",", trusted_hops)
        if len(entries) >= trusted_hops:
            key = address_key(entries[-trusted_hops], v4_bits, v6_bits)
    if key is None:
        key = address_key(peer or "", v4_bits, v6_bits)
    return b"" if key is None else key


def needs_request_function(key: object, protocol: str) -> None:
    needs_function("key", key)
    try:
        inspect.signature(key).bind(None)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError("key is called with one argument, the request: client_address() returns such a function")
    except ValueError:
        pass  # A function in C, which may have no signature.
    made_for = getattr(key, "__module__", None)
    if made_for in ("tatcell.asgi", "tatcell.wsgi") and made_for != protocol:
        raise TypeError(f"key is of {made_for}, and the middleware of {protocol}: take both from one of them")


def checked(
    protocol: str,
    app: Callable[..., object],
    limit: Limiter | Cell | Chain,
    key: Callable[..., object] | None,
    names: tuple[str, ...],
    legacy: bool,
) -> tuple[str, ...]:
    """Raises what the first request would raise, and returns the names."""
    if not callable(app):
        raise TypeError(f"app is an application, which can be called, not {type(app).__name__}")
    if key is not None:
        needs_request_function(key, protocol)
    if not isinstance(names, tuple | list):
        raise TypeError(f"names are a tuple, such as ('address',), not {type(names).__name__}")
    if isinstance(limit, Chain) and key is None and limit.limiters > 1:
        raise TypeError(f"a Chain of {limit.limiters} limiters needs key=, which returns a tuple of as many keys")
    trial(limit, 1).headers(*names, legacy=legacy)
    return tuple(names)


def merged(
    headers: Iterable[tuple[AnyStr, AnyStr]], fields: list[tuple[AnyStr, AnyStr]]
) -> list[tuple[AnyStr, AnyStr]]:
    """Adds the fields of a limit to a response. The X-RateLimit fields have one value: that of the last limit stays."""
    headers = list(headers)
    names = {name.lower() for name, _ in headers}
    return headers + [field for field in fields if not is_single(field[0]) or field[0].lower() not in names]


def is_single(name: str | bytes) -> bool:
    # Python warns (-b) where a str is compared with bytes.
    return name.startswith(b"x-") if isinstance(name, bytes) else name.startswith("X-")


def refusal(decision: Decision, method: str) -> tuple[int, bytes]:
    """The body of a response with status 429, and its length. HEAD has the length alone."""
    if decision.verdict == "never":
        text = "This request is larger than its limit allows at all.\n"
    else:
        text = f"Too many requests: retry after {decision.retry_after:.1f} s.\n"
    return len(text), b"" if method == "HEAD" else text.encode()
