"""Two groups among heights: ρ of the tokens stand at N(μ, 1), the others at N(0, 1).

The log likelihood ratio Σ log(1 − ρ + ρ exp(μx − μ²/2)) to no needles at all is concave in ρ for
every μ: a grid of μ with Newton steps in ρ finds its maximum, and a simplex polishes it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from .arrays import Array

HEIGHTS = np.geomspace(0.5, 40.0, 36)


class Mixture(NamedTuple):
    """ρ and μ, their standard errors, and twice the log likelihood ratio to one N(m, 1)."""

    share: float
    height: float
    share_error: float
    height_error: float
    gain: float


def mixture_gain(heights: Array) -> tuple[float, float, float]:
    """The gain on the grid, and the ρ and μ of its maximum: a search of a millisecond.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=5000) + 4.0 * (rng.random(5000) < 0.05)
    >>> gain, share, height = mixture_gain(x)
    >>> gain > 100, round(share, 2), round(height)
    (True, 0.05, 4)
    """
    x, count = _binned(heights)
    total, mean = float(count.sum()), float(count @ x / count.sum())
    ratio = np.expm1(np.clip(np.outer(HEIGHTS, x) - HEIGHTS[:, None] ** 2 / 2, -700, 300))
    rho = np.full(len(HEIGHTS), 0.02)
    for _ in range(40):
        part = ratio / (1 + rho[:, None] * ratio)
        slope, curve = part @ count, (part**2) @ count
        new = np.clip(rho + slope / np.maximum(curve, 1e-300), rho / 10, (9 * rho + 1) / 10)
        settled, rho = float(np.abs(new - rho).max()), np.clip(new, 1e-9, 0.999)
        if settled < 1e-7:
            break
    value = 2 * np.log1p(rho[:, None] * ratio) @ count - total * mean**2
    best = int(np.argmax(value))
    return float(value[best]), float(rho[best]), float(HEIGHTS[best])


def mixture(heights: Array) -> Mixture:
    """The maximum of the likelihood, with errors by its curvature there."""
    x, count = _binned(heights)
    total, mean = float(count.sum()), float(count @ x / count.sum())
    _, rho, mu = mixture_gain(heights)

    def loss(v: Array) -> float:
        rho, mu = float(expit(v[0])), math.exp(v[1])
        return -float(count @ np.log1p(rho * np.expm1(np.clip(mu * x - mu**2 / 2, -700, 700))))

    start = np.array([math.log(rho / (1 - rho)), math.log(mu)])
    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-4})
    rho, mu = float(expit(best.x[0])), math.exp(best.x[1])
    step = 1e-3 * np.eye(2)
    at = lambda a, b: loss(best.x + a * step[0] + b * step[1])  # noqa: E731
    cross = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4
    H = 1e6 * np.array(
        [
            [at(1, 0) - 2 * best.fun + at(-1, 0), cross],
            [cross, at(0, 1) - 2 * best.fun + at(0, -1)],
        ]
    )
    errors = np.sqrt(np.maximum(np.diag(np.linalg.pinv(H)), 0)) * [rho * (1 - rho), mu]
    gain = -2 * float(best.fun) - total * mean**2
    return Mixture(rho, mu, float(errors[0]), float(errors[1]), gain)


def _binned(heights: Array) -> tuple[Array, Array]:
    """Middles of bins of width 1/20 that hold something, and how many."""
    low = min(heights.min(), -5.0) - 0.05
    cell, count = np.unique(np.floor((heights - low) / 0.05), return_counts=True)  # where any are
    return low + 0.05 * (cell + 0.5), count.astype(float)
