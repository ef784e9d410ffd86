"""Cases of heads at other lengths, keys and values, several queries."""

from __future__ import annotations

from typing import Any

from needle.oracle import queries_error, span_cosine2, value_cosine
from needle.readout import two_heights

from .case import Arguments, Case, guess, within
from .domains import ALPHA, NOT_NUMBERS, PI, THETA, Domain, decades, model, positive, whole


def is_cosine(a: Arguments, found: float) -> None:
    """A cosine that is not negative, or its square."""
    within(found, 0, 1)


def is_queries(a: Arguments, found: Any) -> None:
    """At most guessing."""
    within(found.error, 0, guess(a["pi"]))


def is_heights(a: Arguments, found: Any) -> None:
    """Errors in [0, 1]; a height of capture above 0."""
    within(found.test_error, 0, 1, 1e-6)
    assert found.capture > 0


CASES = [
    Case(
        value_cosine,
        {"L": whole(2, 10**9), "theta_k": THETA, "theta_v": THETA, "alpha0": ALPHA},
        is_cosine,
    ),
    Case(
        span_cosine2,
        {"model": model(needles=1), "directions": whole(1, 10**6), "alpha": ALPHA},
        is_cosine,
    ),
    Case(
        queries_error,
        {"L": whole(2, 10**9), "theta": THETA, "directions": whole(1, 50), "pi": PI},
        is_queries,
        {"queries": 1},
    ),
    Case(
        two_heights,
        {
            "model": model(longest=10**4, needles=1),
            "new": whole(2, 10**6),
            "temperature": positive(1e-2, 30.0),
            "cos": Domain(decades(1e-3, 1.0), (0.0, 1.1, *NOT_NUMBERS)),
            "alpha": Domain(decades(0.1, 1e3), (0.0, -1.0, *NOT_NUMBERS)),
            "lam": Domain(decades(1e-4, 1e2), (-1.0, *NOT_NUMBERS)),
        },
        is_heights,
        slow=True,
    ),
]
