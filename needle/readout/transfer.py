"""A readout trained on one feature law and tested on another: other lengths, other sharpness.

The query direction q̂ is the same in both laws, so the order parameters (ν, κ, w_⊥, b) that the
training law determines (`needle.readout.limit.order_parameters`) meet the coefficients (a, c, r) of
the test law:

    error = E Φ(−y(θaμ + cν + b)/(rσ)),   μ = s_qν + s_⊥κ,   σ² = κ² + w_⊥².

Chapter 11, prop-11-transfer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ..data.law import FeatureLaw, Scores
from ..kit.checks import check_choice, check_integer, check_is, check_real, check_rng
from ..kit.records import ConvergenceError
from .fit import fit_readout
from .limit import OrderParameters, order_parameters
from .newton import TOLERANCE

Array = np.ndarray
INTERCEPTS = ("keep", "rate", "best")


@dataclass(frozen=True)
class Transfer:
    """A readout on a law that it was not trained on.

    Attributes
    ----------
    test_error : probability of a wrong label
    misses, false_alarms : its two parts, P(y = +1, no) and P(y = −1, yes)
    bias : the intercept in use
    """

    test_error: float
    misses: float
    false_alarms: float
    bias: float


def _misses_and_alarms(scores: Scores, shift: float) -> tuple[float, float]:
    y, mean, sd, weight = scores
    yes = ndtr((mean + shift) / sd)
    return float(weight @ ((1 - yes) * (y > 0))), float(weight @ (yes * (y < 0)))


def _excess(scores: Scores, pi: float, shift: float) -> float:
    return float(scores.weight @ ndtr((scores.mean + shift) / scores.sd)) - pi


def transferred(scores: Scores, bias: float, intercept: str, pi: float) -> Transfer:
    """Errors of scores that contain `bias`, after the intercept was moved.

    "keep" leaves it; "rate" makes the share of yes equal π, which needs no labels; "best" minimises
    the error, which needs the test law.
    """
    check_choice("intercept", intercept, INTERCEPTS)
    shift, reach = 0.0, float(np.abs(scores.mean).max() + 9 * scores.sd.max())
    if intercept == "rate":
        shift = float(brentq(partial(_excess, scores, pi), -reach, reach, xtol=1e-12))
    elif intercept == "best":
        grid = np.linspace(-reach, reach, 101)
        for _ in range(6):
            errors = [sum(_misses_and_alarms(scores, x)) for x in grid]
            k = int(np.argmin(errors))
            shift = float(grid[k])
            grid = np.linspace(grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)], 21)
    misses, alarms = _misses_and_alarms(scores, shift)
    return Transfer(misses + alarms, misses, alarms, bias + shift)


def _checked(law: Any, test: Any) -> tuple[FeatureLaw, FeatureLaw]:
    law, test = check_is("law", law, FeatureLaw), check_is("test", test, FeatureLaw)
    if (law.query, law.cos) != (test.query, test.cos):
        raise ValueError(
            f"test = {test.name!r} with cos = {test.cos:g} is not allowed: test must have the "
            f"query of law, cos = {law.cos:g}"
        )
    for name, given in (("law", law), ("test", test)):
        if given.copies != 1:
            raise ValueError(
                f"{name} = {given.name!r} is not allowed: {name} must not be vectorized, whose "
                "readout has one weight for each place"
            )
    return law, test


def predict_transfer(
    law: FeatureLaw,
    test: FeatureLaw,
    alpha: float,
    lam: float,
    *,
    loss: str = "logistic",
    intercept: str = "keep",
) -> Transfer:
    """Errors on the law `test` of the readout trained on αd samples of `law`, as d → ∞.

    Parameters
    ----------
    law, test : laws with the same query direction
    alpha, lam, loss : of the training, as in `needle.predict_readout` (alpha may be ∞)
    intercept : "keep", "rate" (move it until the share of yes is π; needs no labels) or "best"

    Examples
    --------
    >>> from needle import SparseTokens, attention
    >>> short, long = (SparseTokens(L=L, R=1, theta=5.0, pi=0.5) for L in (20, 2000))
    >>> law, test = (attention(model, temperature=2.0, cos=0.9) for model in (short, long))
    >>> for intercept in ("keep", "rate", "best"):
    ...     found = predict_transfer(law, test, 2.0, 0.01, intercept=intercept)
    ...     print(f"{found.test_error:.3f} {found.misses:.3f}")
    0.254 0.252
    0.156 0.078
    0.147 0.104
    """
    law, test = _checked(law, test)
    return _applied(_trained(law, alpha, lam, loss), law, test, alpha == math.inf, intercept)


def _trained(law: FeatureLaw, alpha: float, lam: float, loss: str) -> OrderParameters:
    o = order_parameters(law, alpha, lam, loss=loss)
    if not o.residual < TOLERANCE:
        raise ConvergenceError(f"alpha = {alpha:g}, lam = {lam:g}: no readout was found", o)
    return o


def _applied(
    o: OrderParameters, law: FeatureLaw, test: FeatureLaw, fine: bool, intercept: str
) -> Transfer:
    scores = test.limit_scores(*o.overlaps(law.cos), o.bias, fine=fine)
    return transferred(scores, o.bias, intercept, test.pi)


def simulate_transfer(
    law: FeatureLaw,
    test: FeatureLaw,
    d: int,
    alpha: float,
    lam: float,
    rng: np.random.Generator,
    *,
    loss: str = "logistic",
    intercept: str = "keep",
) -> Transfer:
    """Train on round(αd) samples of `law`, move the intercept, judge on fresh draws of `test`.

    The intercept is moved on one set of draws and judged on another.

    Examples
    --------
    >>> from needle import SparseTokens, attention
    >>> short, long = (SparseTokens(L=L, R=1, theta=5.0, pi=0.5) for L in (20, 2000))
    >>> law, test = (attention(model, temperature=2.0, cos=0.9) for model in (short, long))
    >>> found = simulate_transfer(law, test, 200, 2.0, 0.01, np.random.default_rng(0))
    >>> 0.2 < found.test_error < 0.3
    True
    """
    (law, test), d, rng = _checked(law, test), check_integer("d", d, 2), check_rng(rng)
    n = max(1, round(check_real("alpha", alpha, 0, open_low=True) * d))
    fit = fit_readout(*law.sample(n, d, rng), lam, loss=loss)
    moved = transferred(test.scores(fit.w, fit.b, rng), fit.b, intercept, test.pi)
    fresh = test.scores(fit.w, moved.bias, rng)
    return transferred(fresh, moved.bias, "keep", test.pi)
