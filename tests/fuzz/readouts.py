"""Cases of features and of the readouts trained on them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle

from .case import PLAIN, Arguments, Case, guess, within
from .domains import (
    ALIKE,
    COS,
    LAW,
    LOSS,
    NOT_NUMBERS,
    PI,
    SHORT_LAW,
    Domain,
    chosen,
    decades,
    model,
    models,
    positive,
    whole,
)


def is_readout(a: Arguments, found: Any) -> None:
    """Errors in [0, 1]; loss + λ|w|²/2 ≤ the loss of w = 0, b = 0; |⟨w, ξ⟩| ≤ |w|."""
    within(found.test_error, 0, 1)
    within(found.train_error, 0, 1)
    start = math.log(2) if a["loss"] == "logistic" else 0.5
    ridge = a["lam"] * found.norm**2 / 2
    assert found.train_loss >= -1e-12
    assert found.train_loss + ridge <= start * (1 + 1e-5)
    assert abs(found.signal) <= found.norm * (1 + 1e-6) + 1e-12


def is_reuse(a: Arguments, found: Any) -> None:
    """Errors in [0, 1], a loss no larger than that of w = 0, all finite."""
    within(found.test_error, 0, 1, 1e-3)
    within(found.train_loss, 0, math.log(2) if a["loss"] == "logistic" else 0.5, 1e-3)
    assert math.isfinite(found.norm)


def is_capacity(a: Arguments, found: float) -> None:
    """At least 1 (in general position αd ≤ d points are separable), perhaps infinite."""
    assert found >= 1 - 1e-6


def is_margin(a: Arguments, found: Any) -> None:
    """The largest margin only falls with α, by two calls; it is finite."""
    value = found.margin
    assert math.isfinite(value)
    more = needle.predict_margin(a["law"], 1.5 * a["alpha"]).margin
    assert more <= value * (1 + 1e-4) + 1e-6


def is_law(a: Arguments, found: Any) -> None:
    """Weights of a law add up to one, each label has its share; 0 < r ≤ 1 (1.05 at corners)."""
    y, _, _, r, weight = found.nodes
    assert abs(weight.sum() - 1) < 1e-9
    assert abs(weight[y > 0].sum() - a["model"].pi) < 1e-9
    assert np.isfinite(np.concatenate(found.nodes[1:])).all()
    assert r.max() <= 1.3


def is_transfer(a: Arguments, found: Any) -> None:
    """Errors in [0, 1]."""
    within(found.test_error, 0, 1)


def is_share(a: Arguments, found: Any) -> None:
    """Both labels have their share, and the law can be read at points that weigh one."""
    assert 0 < found.pi < 1
    y, _, _, _, weight = found.nodes
    assert abs(weight.sum() - 1) < 1e-6
    assert abs(weight[y > 0].sum() - found.pi) < 1e-6


def is_collapse(a: Arguments, found: float) -> None:
    """Positive, perhaps infinite; the same for π and 1 − π; no sooner for a stronger needle."""
    assert found > 0
    law = a["law"]
    mirrored, back = (
        needle.collapse_alpha(replace(law, pi=x)) for x in (1 - law.pi, 1 - (1 - law.pi))
    )
    assert mirrored == back or abs(mirrored / back - 1) < 1e-9
    assert needle.collapse_alpha(replace(law, theta=2 * law.theta)) >= found * (1 - 1e-6)


def is_crossing(a: Arguments, found: float) -> None:
    """A cosine, or infinite where a perfect query loses too."""
    assert 0 <= found <= 1 or found == math.inf


def is_sharpness(a: Arguments, found: Any) -> None:
    """0 ≤ best ≤ losing, and best ≤ θ."""
    assert 0 <= found.best <= a["model"].theta * (1 + 1e-9)
    assert found.best <= found.losing


def is_rescaled(a: Arguments, found: float) -> None:
    """T itself at the same length, and no lower at a larger one."""
    assert found >= 0
    same = needle.rescaled(a["temperature"], a["L"], a["L"], rule=a["rule"])
    if a["rule"] in ("none", "root", "log", "yarn"):
        assert abs(same - a["temperature"]) <= 1e-9 * a["temperature"]
    more = needle.rescaled(a["temperature"], a["L"], 2 * a["new"], rule=a["rule"])
    assert more >= found * (1 - 1e-9)


def is_width(a: Arguments, found: float) -> None:
    """Positive and finite."""
    assert 0 < found < math.inf


def is_reused_width(a: Arguments, found: Any) -> None:
    """Positive and finite, with a standard error."""
    assert 0 < float(found) < math.inf


def is_curve(a: Arguments, found: list[Any]) -> None:
    """Each point as a call of its own gives it."""
    one = needle.predict_readout(a["law"], a["alpha"], a["lam"], loss=a["loss"])
    assert abs(found[0].test_error - one.test_error) <= 1e-6


def _milder(task: needle.SparseTokens, theta: float, pi: float) -> needle.SparseTokens:
    return needle.SparseTokens(task.L, task.R, theta, pi)


EASY = st.builds(  # where both classes are there, and not separable at every α
    needle.SparseTokens,
    st.integers(3, 30),
    st.integers(1, 2),
    st.floats(0.5, 4),
    st.floats(0.1, 0.9),
)
TASK = model(longest=10**4, needles=50, weakest=0.1)


# where averages and attention can differ, and now and then anywhere
CONTESTED = Domain(
    st.one_of(
        TASK.good,
        *2 * [st.builds(_milder, TASK.good, decades(0.3, 30.0), st.floats(0.05, 0.95))],
    ),
    TASK.bad,
)
LARGE = Domain(decades(1e-8, 1e8), (0.0, -1.0, *NOT_NUMBERS))  # and infinite

RIDGE = Domain(decades(1e-8, 1e8), (-1.0, *NOT_NUMBERS))

SMALL = model(longest=30, needles=3)


def is_contest(a: Arguments, found: Any) -> None:
    """Errors in [0, 1], |cos| ≤ 1; the winner beats pooling or is pooling."""
    for error in (found.pooling, found.learned, found.perfect):
        within(error, 0, 1)
    within(found.cos, -1, 1)
    best = {"pooling": found.pooling, "learned": found.learned, "perfect": found.perfect}
    assert best[found.winner] <= found.pooling


def is_long_bags(a: Arguments, found: Any) -> None:
    """0 ≤ error ≤ min(π, 1−π), a capacity of 2 or more (random labels), a finite constant."""
    within(found.error, 0, guess(a["model"].pi), 1e-6)
    assert found.capacity >= 2 - 1e-6
    assert math.isfinite(found.rate)


CASES = [
    Case(
        needle.predict_readout,
        {"law": LAW, "alpha": LARGE, "lam": RIDGE, "loss": LOSS},
        is_readout,
        slow=True,
    ),
    Case(
        needle.simulate_readout,
        {
            "law": SHORT_LAW,
            "d": whole(1, 30),
            "alpha": Domain(decades(1.0, 10.0), (0.0, -1.0)),
            "lam": RIDGE,
            "loss": chosen("square"),
        },
        is_readout,
        draws=True,
    ),
    Case(
        needle.predict_reuse,
        {
            "model": SMALL,
            "alpha": positive(1e-3, 1e3),
            "lam": positive(1e-4, 1e4),
            "temperature": positive(1e-2, 30.0),
            **PLAIN,
        },
        is_reuse,
        slow=True,
    ),
    Case(needle.predict_capacity, {"law": LAW}, is_capacity, slow=True),
    Case(needle.predict_margin, {"law": LAW, "alpha": positive(1e-2, 1e2)}, is_margin, slow=True),
    Case(needle.pooled, {"model": model()}, is_law),
    Case(
        needle.attention,
        {
            "model": model(),
            "temperature": Domain(decades(1e-6, 1e3), (-1.0, *NOT_NUMBERS)),
            "cos": COS,
        },
        is_law,
        {"resolution": 96, "bits": 9},
    ),
    Case(
        needle.predict_transfer,
        {"law": ALIKE, "test": ALIKE, "alpha": LARGE, "lam": RIDGE, "loss": LOSS},
        is_transfer,
        slow=True,
    ),
    Case(
        needle.teacher,
        {
            "gamma": Domain(decades(1e-3, 1e3), (-1.0, math.inf, *NOT_NUMBERS)),
            "offset": Domain(st.floats(-3, 3), (math.inf, *NOT_NUMBERS)),
            "link": chosen("logistic", "probit", "sign"),
        },
        is_share,
    ),
    Case(
        needle.gaussian_mixture,
        {
            "mean": Domain(st.floats(0, 1e3), (-1.0, math.inf, *NOT_NUMBERS)),
            "var_pos": positive(1e-6, 1e6),
            "var_neg": positive(1e-6, 1e6),
            "pi": PI,
        },
        is_share,
    ),
    Case(needle.vectorized, {"model": model()}, is_share),
    Case(
        needle.collapse_alpha,
        {"law": Domain(models(longest=10**6, needles=50).map(needle.pooled), (None, 3.0))},
        is_collapse,
    ),
    Case(
        needle.crossing_law,
        {"model": TASK, "temperature": positive(1e-2, 5.0)},
        is_crossing,
        slow=True,
    ),
    Case(
        needle.predict_crossing,
        {"model": CONTESTED, "temperature": positive(1e-1, 3.0)},
        is_crossing,
        slow=True,
    ),
    Case(needle.sharpness_law, {"model": TASK}, is_sharpness),
    Case(
        needle.rescaled,
        {
            "temperature": Domain(decades(1e-6, 1e3), (-1.0, *NOT_NUMBERS)),
            "L": Domain(decades(2.0, 1e300), (1.0, math.inf, *NOT_NUMBERS)),
            "new": Domain(decades(2.0, 1e300), (1.0, math.inf, *NOT_NUMBERS)),
            "rule": chosen("none", "root", "log", "yarn", "llama4", "capture"),
        },
        is_rescaled,
    ),
    Case(needle.predict_capacity_width, {"law": LAW}, is_width, slow=True),
    Case(
        needle.predict_reused_capacity_width,
        {
            "model": Domain(EASY, (None, 3.0)),
            "temperature": positive(0.3, 3.0),
            "loss": LOSS,
        },
        is_reused_width,
        {"draws": 60, "d": 40},
        slow=True,
    ),
    Case(
        needle.predict_reused_capacity,
        {
            "model": Domain(EASY, (None, 3.0)),
            "temperature": positive(0.3, 3.0),
            "loss": LOSS,
        },
        is_capacity,
        slow=True,
    ),
    Case(
        needle.learning_curve,
        {
            "law": LAW,
            "alpha": Domain(decades(1e-3, 1e3), (0.0, -1.0)),
            "lam": Domain(decades(1e-4, 1e4), (-1.0, "3", None)),
            "loss": LOSS,
        },
        is_curve,
        slow=True,
    ),
    Case(
        needle.predict_contest,
        {
            "model": model(longest=1000, needles=12),
            "alpha0": positive(1e-2, 1e4),
            "alpha": positive(1e-2, 1e4),
            "temperature": Domain(decades(1e-2, 30.0), (-1.0, *NOT_NUMBERS)),
            "lam": Domain(decades(1e-3, 1e3), (-1.0, *NOT_NUMBERS)),
            **PLAIN,
        },
        is_contest,
        {"resolution": 48, "bits": 8},
        slow=True,
    ),
    Case(
        needle.predict_long_bags,
        {
            "model": model(weakest=1e-3),
            "temperature": Domain(decades(1e-2, 2.0), (-1.0, *NOT_NUMBERS)),
            "cos": COS,
        },
        is_long_bags,
        slow=True,
    ),
]
