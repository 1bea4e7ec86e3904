# SPDX-License-Identifier: MIT OR Apache-2.0
"""The exception RateLimited, which can be sent to another process."""

from __future__ import annotations

import re
from typing import NamedTuple

from ._core import Cell, Decision


class Told(NamedTuple):
    """A decision that came from another process: all that a Decision has."""

    verdict: str
    cost: int
    burst: int
    remaining: int
    retry_after: float
    reset_after: float
    tracked: bool
    link: int
    fields: list[tuple[str, str]]

    @property
    def passes(self) -> bool:
        return self.verdict == "pass"

    def headers(self, *names: str, legacy: bool = False) -> list[tuple[str, str]]:
        fields = [(name, value) for name, value in self.fields if legacy or not name.startswith("X-")]
        if not names:
            return fields
        limits = self.fields[0][1].count(";q=")
        if len(names) != limits:
            raise ValueError(f"{len(names)} names for {limits} limits: pass one for each, or none")
        # The library checks and quotes a name.
        quoted = [Cell("1/s").peek().headers(name)[0][1].removesuffix(";q=1;w=1") for name in names]
        return [
            (name, re.sub('"(?:default|limit-([1-8]))"', lambda at: quoted[int(at[1] or 1) - 1], value))
            for name, value in fields
        ]

    def __bool__(self) -> bool:
        return self.passes


class RateLimited(Exception):
    """A call was refused by its limit. `decision` says for how long."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision

    def __reduce__(self) -> tuple[type[RateLimited], tuple[Told]]:
        numbers = (getattr(self.decision, name) for name in Told._fields[:-1])
        return type(self), (Told._make((*numbers, self.decision.headers(legacy=True))),)

    def __str__(self) -> str:
        if self.decision.verdict == "never":
            return f"refused: the cost {self.decision.cost} is above the burst {self.decision.burst}"
        return f"refused: retry after {self.decision.retry_after:.3f} s"
