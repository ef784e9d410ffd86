"""The error of a trained readout and its slopes in everything that a recipe sets.

The saddle point x solves ∇F(x; p) = 0, and the error is E(x; p). Along a change of the recipe p

    dE/dp = ∂Λ/∂p  at fixed x and v,   Λ(p) = E(x; p) − ⟨v, ∇F(x; p)⟩,   H v = ∂E/∂x,

with H the Hessian of F: one linear system of five unknowns serves all slopes, and no saddle point
but x is computed; Λ itself is the error to second order in what x is off. Ridge and samples stand
in ∇F openly; sharpness and cosine act through the law, whose points are kept in their cells while
it moves. Appendix C, thm-c-saddle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ..data.law import FeatureLaw
from ..readout.newton import settle
from ..readout.saddle import LogisticSaddle, Problem, Saddle, SquareSaddle

Array = np.ndarray
LOG10 = math.log(10)


class Sloped(NamedTuple):
    """Error, the saddle point x, and slopes of the error.

    In log₁₀ of the ridge, in log α, in the chance of the intercept, and the differences to the laws
    that were given.
    """

    error: float
    x: Array
    ridge: float
    alpha: float
    chance: float
    laws: list[float]


def _error(problem: Problem, x: Array, chance: float) -> tuple[float, Array, float]:
    """The error averaged over b ± chance, and its derivatives in x and in the chance."""
    q, sigma = problem, math.hypot(x[1], x[2])
    s, slope = q.r * sigma, np.zeros(5)
    error = along = 0.0
    for sign in (0.5, -0.5):
        z = q.y * (q.A @ x[[0, 1, 3]] + 2 * sign * chance) / s
        density = q.weight * np.exp(-z * z / 2) / (s * math.sqrt(2 * math.pi)) / 2
        error += float(q.weight @ ndtr(-z)) / 2
        mean = -q.y * density
        slope[[0, 1, 3]] += q.A.T @ mean
        slope[1:3] += float(density @ (z * q.r)) * x[1:3] / sigma
        along += 2 * sign * float(mean.sum())
    return error, slope, along


def sloped(
    law: FeatureLaw,
    alpha: float,
    ridge: float,
    *,
    chance: float,
    loss: str = "logistic",
    beside: Sequence[FeatureLaw] = (),
    start: Array | None = None,
) -> Sloped | None:
    """Error and slopes at a recipe; None where no saddle point is found.

    Parameters
    ----------
    law, alpha, ridge, loss : as in `predict_readout`
    chance : the error is averaged over the intercept plus and minus this
    beside : laws nearby, of `law.beside`: for each the first-order change of the error
    start : a saddle point nearby
    """
    problem = Problem(law, law.nodes, alpha, ridge, True)
    found = settle(problem, loss, start)
    if found is None and start is not None:
        found = settle(problem, loss)
    if found is None:
        return None
    x, saddle = found
    gradient, _, H = saddle.equations(x)
    error, slope, along = _error(problem, x, chance)
    on = problem.active
    scale = np.sqrt(np.abs(np.diag(H)))[on]
    v = np.zeros(5)
    v[on] = np.linalg.solve(H[np.ix_(on, on)] / np.outer(scale, scale), slope[on] / scale) / scale
    held = error - float(v @ gradient)
    moved = []
    for other in beside:
        there = _moved(saddle, Problem(other, other.nodes, alpha, ridge, True))
        moved.append(_error(there.problem, x, chance)[0] - float(v @ there.equations(x)[0]) - held)
    by_ridge = -ridge * LOG10 * float(v[:3] @ x[:3])
    by_alpha = -float(v[2] * x[4] + v[4] * x[2]) / (2 * alpha)
    return Sloped(held, x, by_ridge, by_alpha, along, moved)


def _moved(saddle: Saddle, problem: Problem) -> Saddle:
    if isinstance(saddle, LogisticSaddle):
        return LogisticSaddle(problem, saddle.step, saddle.z)
    return SquareSaddle(problem)
