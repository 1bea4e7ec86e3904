# SPDX-License-Identifier: MIT OR Apache-2.0
"""The types of arguments, for annotations."""

from ipaddress import IPv4Address, IPv6Address
from typing import Literal, SupportsIndex, TypeAlias

Key: TypeAlias = str | bytes | SupportsIndex | IPv4Address | IPv6Address
Algorithm: TypeAlias = Literal["gcra", "fixed-window", "sliding-counter", "quota-linear", "decay"]
Full: TypeAlias = Literal["admit", "inherit", "deny", "sampled"]
