"""What the page "Your own numbers" shows: `plan`, live.

With a kernel every number is that of `needle.plan`. On the built page it is interpolated
between stored plans (`experiments/numbers.toml`), in coordinates in which all settings look alike:
strengths are counted from `edge`, where a needle stands as high as the highest of L straws.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from needle.data.classifiers import attention, pooled
from needle.data.tokens import SparseTokens
from needle.planning import Plan, PlanRow, plan
from needle.planning.tuner import FINE
from needle.readout.capacity import predict_capacity
from needle.steps.rates import calibrated_cosine

from .base import Explorer, Slider, integers, stops

Array = np.ndarray
TOKENS = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
NEEDLES = (1, 2, 3, 5, 10)
SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
BUDGET = (0.1, 100.0)  # n/d of the stored plans
BEYOND = 1e6  # samples per dimension
CURVE = (-1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0)  # places of the curves, see `strength`


def edge(L: int, R: int, pi: float, alpha: float) -> float:
    """The strength at which θ times the cosine of two steps on all data is √(2 log L).

    >>> round(edge(1000, 3, 0.3, 8.0), 3)
    4.974
    """

    def gap(log_theta: float) -> float:
        theta = math.exp(log_theta)
        cos = calibrated_cosine(SparseTokens(L, R, theta, pi), alpha)
        return math.log(theta * cos) - math.log(2 * math.log(L)) / 2

    return math.exp(float(brentq(gap, -6, 12, xtol=1e-9)))


def strength(edge: float, w: Any) -> Any:
    """The strength at a place w ∈ [−1, 1] of the window around `edge`, denser in its middle.

    >>> round(float(strength(5.0, 1.0)), 2)
    11.7
    """
    w = np.asarray(w, dtype=float)
    return edge * np.exp(0.35 * w + 0.5 * w**3)


def place(edge: float, theta: float) -> float:
    """The place w of a strength: the other way round.

    >>> round(place(5.0, 11.7), 2)
    1.0
    """
    u = math.log(theta / edge)
    return float(brentq(lambda w: 0.35 * w + 0.5 * w**3 - u, -4, 4))


class Heights(NamedTuple):
    """Where the channel of a bag is tabulated: √s of log W, and the strengths of Bayes' rule."""

    weight: Array
    bayes: Array


def heights(L: int) -> Heights:
    """The places for bags of L tokens, from nothing to where all needles are found."""
    top = math.sqrt(2 * math.log(L))
    return Heights(np.linspace(0, top + 11, 81), np.linspace(0, top + 5, 21))


@lru_cache(maxsize=64)
def _plan(L: int, R: int, d: int, n: int, pi: float, theta: tuple[float, ...]) -> Plan:
    return plan(L=L, R=R, d=d, n=n, pi=pi, theta=theta, balanced=False)


def steps_capacity(L: int, R: int, pi: float, row: PlanRow) -> float:
    """Bags per dimension that a readout separates behind the better of the plan's two queries."""
    twice = row.twice is not None and row.twice < row.attention
    T = row.twice_temperature if twice else row.temperature
    cos = row.twice_cosine if twice else row.cosine
    assert T is not None and cos is not None
    model = SparseTokens(L, R, row.theta, pi)
    return predict_capacity(attention(model, temperature=T, cos=cos, **FINE))


def recipe(row: PlanRow) -> dict[str, float | None] | None:
    """Share, sharpness, ridge and cosine of the learner that the plan chooses."""
    found: tuple[float | None, ...]
    if row.choice == "attention":
        found = (row.share, row.temperature, row.ridge, row.cosine)
    elif row.choice == "twice":
        found = (1.0, row.twice_temperature, row.twice_ridge, row.twice_cosine)
    else:
        return None
    return dict(zip(("share", "sharpness", "ridge", "cosine"), found, strict=True))


def numbers(p: dict[str, Any]) -> dict[str, Any]:
    """One plan: errors around the edge and at θ, cosine, capacities, recipe, advice, warnings."""
    L, R, d, n, pi = (p[key] for key in ("L", "R", "d", "n", "pi"))
    around = tuple(strength(edge(L, R, pi, n / d), CURVE).tolist())
    curve = _plan(L, R, d, n, pi, around).rows
    made = _plan(L, R, d, n, pi, (p["theta"],))
    [here] = made.rows
    model = SparseTokens(L, R, p["theta"], pi)
    return {
        "strengths": [row.theta for row in curve],
        "pooled": [row.pooled for row in curve],
        "steps": [_steps(row) for row in curve],
        "best": [row.best_possible for row in curve],
        "here": {
            "pooled": here.pooled,
            "split": here.attention,
            "twice": here.twice,
            "steps": _steps(here),
            "best": here.best_possible,
        },
        "cosine": calibrated_cosine(model, n / d),
        "capacity": {
            "pooled": _countable(predict_capacity(pooled(model))),
            "steps": _countable(steps_capacity(L, R, pi, here)),
        },
        "choice": here.choice,
        "recipe": recipe(here),
        "advice": here.advice,
        "warnings": [*made.warnings, *here.warnings],
    }


def _countable(capacity: float) -> float | None:
    """None for what no data can reach."""
    return capacity if capacity < BEYOND else None


def _steps(row: PlanRow) -> float:
    """The error of two gradient steps, their data split or used twice."""
    return row.attention if row.twice is None else min(row.attention, row.twice)


EXPLORER = Explorer(
    title="Your own numbers: which classifier, with which settings, and how good can it be?",
    sliders=(
        Slider("L", "L", "tokens in a bag", TOKENS),
        Slider("R", "R", "needles in a positive bag", NEEDLES),
        Slider("theta", "θ", "strength of a needle", stops(0.5, 50, 61, log=True)),
        Slider("pi", "π", "share of positives", SHARES),
        Slider("n", "n", "labeled bags", integers(50, 50_000)),
        Slider("d", "d", "dimension of a token", integers(10, 5000)),
    ),
    start={"L": 1000, "R": 3, "theta": 5.0, "pi": 0.3, "n": 4000, "d": 500},
    values=numbers,
)
