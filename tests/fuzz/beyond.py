"""Cases of heads at other lengths, keys and values, several queries."""

from __future__ import annotations

from typing import Any

import needle
from needle.oracle import queries_error, span_cosine2, value_cosine
from needle.readout import two_heights

from .case import Arguments, Case, guess, within
from .domains import (
    ALPHA,
    HOPS,
    NOT_NUMBERS,
    PI,
    THETA,
    Domain,
    decades,
    model,
    positive,
    whole,
)


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


def is_relay(a: Arguments, found: Any) -> None:
    """Cosines in [0, 1], an error in [0, ½]; more bags teach no less."""
    within(found.test_error, 0, 0.5, 1e-6)
    more = needle.predict_relay(**{**a, "n": 2 * a["n"]})
    for name in ("first_match", "query", "match"):
        within(getattr(found, name), 0, 1)
        assert getattr(more, name) >= getattr(found, name) * (1 - 1e-9)


def is_subsample(a: Arguments, found: Any) -> None:
    """Weights add up to one, and each label keeps its share."""
    y, *_, weight = found.nodes
    assert abs(weight.sum() - 1) < 1e-9 > abs(weight[y > 0].sum() - a["model"].pi)


COSINE = Domain(decades(1e-3, 1.0), (1.1, *NOT_NUMBERS))
CASES = [
    Case(
        needle.predict_relay,
        HOPS | {"n": whole(1, 10**9)},
        is_relay,
        slow=True,
    ),
    Case(
        needle.subsampled,
        {
            "model": model(needles=50),
            "kept": whole(2, 5),
            "temperature": positive(1e-2, 30.0),
            "cos": COSINE,
        },
        is_subsample,
        {"resolution": 96},
    ),
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
            "model": model(longest=10**4, needles=1, weakest=0.1),
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
