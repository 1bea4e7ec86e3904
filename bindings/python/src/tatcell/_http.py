# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the middleware of ASGI and of WSGI share."""

from __future__ import annotations

from ._core import Decision, network


def client_key(peer: str | None, forwarded: str, trusted_hops: int, v4_bits: int, v6_bits: int) -> bytes | str:
    """The key of a client: the network of its address.

    Each of `trusted_hops` proxies appends the address that it saw to X-Forwarded-For. So the one that the first trusted
    proxy saw is that many places from the right; everything left of it is what the client wants us to believe. Clients
    without an address (a Unix socket) share one key.
    """
    address = peer or ""
    if trusted_hops > 0:
        hops = [hop.strip() for hop in forwarded.split(",") if hop.strip()]
        if len(hops) >= trusted_hops:
            address = hops[-trusted_hops]
    # Some proxies append the port: 192.0.2.1:4711, [2001:db8::1]:4711.
    if address.startswith("["):
        address = address[1:].partition("]")[0]
    elif address.count(":") == 1:
        address = address.partition(":")[0]
    try:
        return network(address.partition("%")[0], v4_bits, v6_bits)
    except ValueError:
        return address.encode("utf-8", "surrogateescape")


def refusal(decision: Decision) -> bytes:
    """The body of a response with status 429."""
    if decision.verdict == "never":
        return b"This request is larger than its limit allows at all.\n"
    return f"Too many requests: retry after {decision.retry_after:.1f} s.\n".encode()
