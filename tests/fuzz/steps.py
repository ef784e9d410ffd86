"""Cases of the first two gradient steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

import needle
from needle.steps import sign_intercepts

from .case import PLAIN, Arguments, Case, within
from .domains import (
    ALPHA,
    ANY,
    FLAG,
    LOSS,
    NOT_NUMBERS,
    PI,
    SHARES,
    Domain,
    chosen,
    decades,
    model,
    positive,
    whole,
)


def is_alignment(a: Arguments, found: Any) -> None:
    """|cos| ≤ 1, that of w⁽¹⁾ is 1/√(1 + L/(απ²θ²R²)), that of q⁽²⁾ is 0 at θ = 0."""
    task = a["model"]
    within(found.query_cos, -1, 1)
    power = a["alpha0"] * (task.pi * task.theta * task.R) ** 2
    expected = math.sqrt(power / (power + task.L))
    assert abs(found.readout_cos - expected) <= 1e-9 * expected + 1e-300
    if task.theta == 0:
        assert found.query_cos == 0
    assert found.readout_norm >= 0
    assert found.query_norm >= 0


def is_draw(a: Arguments, found: Any) -> None:
    """|cos| ≤ 1 and lengths ≥ 0, whatever is drawn."""
    for name in ("readout_cos", "query_cos"):
        within(getattr(found, name), -1, 1)
    for name in ("readout_norm", "query_norm", "noise"):
        assert getattr(found, name) >= 0


def is_rate(a: Arguments, found: float) -> None:
    """log(π/(1−π))/(π−½), at least 4, the same for π and 1 − π; 1 for the square loss."""
    if a["loss"] == "square":
        assert found == 1
        return
    pi = a["pi"]
    assert found >= 4
    if abs(pi - 0.5) > 1e-3:
        two = (math.log(pi) - math.log1p(-pi)) / (pi - 0.5)
        assert abs(found / two - 1) < 1e-9
    mirrored = needle.calibrated_rate(1 - (1 - pi), loss=a["loss"])
    assert abs(needle.calibrated_rate(1 - pi) / mirrored - 1) < 1e-9


def is_sign(a: Arguments, found: Any) -> None:
    """The side of the query is the sign of the predicted cosine, at rates off the boundary."""
    assert not math.isnan(found.rate)
    both = {key: a[key] for key in ("model", "alpha0", "loss", "lr_w", "balanced")}
    for lr_b in (0.1, 3.0, -3.0):
        if abs(lr_b * found.balance - found.intercept) < 1e-6 * (1 + abs(found.intercept)):
            continue
        at = needle.predict_alignment(**both, lr_b=lr_b)
        if abs(at.query_cos) > 1e-9:
            assert (at.query_cos > 0) == found.aligned(lr_b)


def is_spread(a: Arguments, found: Any) -> None:
    """Limits of variances are not negative."""
    assert found.readout_cos >= -1e-9
    assert found.query_cos >= -1e-6


def is_gap(a: Arguments, found: Any) -> None:
    """Finite; that of w⁽¹⁾ by its formula where γ₊ = −γ₋, at π = ½."""
    task, alpha = a["model"], a["alpha0"]
    assert math.isfinite(found.readout_cos)
    assert math.isfinite(found.query_cos)
    if task.pi == 0.5:
        tangent = task.L / (alpha * (task.pi * task.theta * task.R) ** 2)  # its square
        told = tangent * (1 + tangent) ** -2.5 * (0.5 - tangent / 4 - 3 / (2 * alpha))
        assert abs(found.readout_cos - told) <= 2e-3 * abs(told) + 1e-6


WEAK = model(longest=1000, needles=20, weakest=0.1)
MIDDLE = positive(0.05, 50.0)
MILD = {"loss": LOSS, "lr_w": positive(1e-3, 2.0)}


def are_intercepts(a: Arguments, found: Any) -> None:
    """Finite, one for each share; at small rates b_c rises with the share of positives."""
    shares = np.array(a["shares"])
    assert found.shape == shares.shape
    assert np.isfinite(found).all()
    if not a["balanced"] and a["lr_w"] == 0:
        assert (np.diff(found[np.argsort(shares)]) >= -1e-9).all()


CASES = [
    Case(needle.predict_alignment, {"model": model(), "alpha0": ALPHA, **PLAIN}, is_alignment),
    Case(
        needle.simulate_alignment,
        {
            "model": model(),
            "d": whole(1, 100),
            "alpha0": Domain(decades(1.0, 10.0), (0.0, -1.0)),
            **PLAIN,
        },
        is_draw,
        draws=True,
    ),
    Case(needle.calibrated_rate, {"pi": PI, "loss": LOSS}, is_rate),
    Case(
        needle.sign_condition,
        {
            "model": model(longest=10**4, needles=100, weakest=0.1),
            "alpha0": Domain(decades(1e-2, 1e3), (0.0, -1.0, *NOT_NUMBERS)),
            "balanced": FLAG,
            "loss": chosen("logistic", "square", "hinge", "exponential"),
            "lr_w": Domain(decades(1e-3, 10.0), (-1.0, *NOT_NUMBERS)),
        },
        is_sign,
        slow=True,
    ),
    Case(
        needle.predict_spread,
        {"model": WEAK, "alpha0": MIDDLE, **MILD, "lr_b": ANY},
        is_spread,
        slow=True,
    ),
    Case(
        needle.predict_gap,
        {"model": WEAK, "alpha0": MIDDLE, **MILD, "lr_b": Domain(decades(1e-3, 2.0), ANY.bad)},
        is_gap,
        slow=True,
    ),
    Case(
        sign_intercepts,
        {
            "model": model(weakest=1e-6),
            "alpha0": Domain(ALPHA.good, (0.0, -1.0, *NOT_NUMBERS)),
            "shares": Domain(st.lists(SHARES, min_size=1, max_size=4), ([], [0.0], 0.5, "x")),
            "loss": LOSS,
            "lr_w": Domain(st.one_of(st.just(0.0), decades(1e-6, 1e3)), (-1.0, *NOT_NUMBERS)),
            "balanced": FLAG,
        },
        are_intercepts,
    ),
]
