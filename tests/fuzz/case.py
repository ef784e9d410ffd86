"""A case: a public function, the domain of each argument, and what every answer keeps.

An invariant is a bound, a direction in which the answer may only rise or fall, a symmetry, or a
second route to the same number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .domains import ANY, LOSS, Domain, positive

Arguments = dict[str, Any]
PLAIN = {"loss": LOSS, "lr_w": positive(1e-6, 1e3), "lr_b": ANY}


class Case(NamedTuple):
    """`keeps` raises where the answer breaks its invariant, which is its docstring.

    `slow` : a call takes long enough that the short form has time for few
    """

    call: Callable[..., Any]
    domains: dict[str, Domain]
    keeps: Callable[[Arguments, Any], None]
    fixed: dict[str, Any] = {}  # noqa: RUF012
    slow: bool = False
    draws: bool = False

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, **arguments: Any) -> Any:
        """The answer; who draws, draws from a generator of its own."""
        rng = {"rng": np.random.default_rng(0)} if self.draws else {}
        return self.call(**{**self.fixed, **rng, **arguments})

    @property
    def name(self) -> str:
        return str(getattr(self.call, "__qualname__", self.call))


def within(x: float, low: float, high: float, slack: float = 1e-9) -> None:
    assert low - slack * max(abs(low), 1e-300) <= x <= high + slack * max(abs(high), 1e-300), (
        f"{x!r} is not in [{low!r}, {high!r}]"
    )


def guess(pi: float) -> float:
    return min(pi, 1 - pi)
