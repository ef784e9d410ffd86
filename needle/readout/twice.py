"""Capacity when query and readout see the same data.

Samples that the two gradient steps have seen have the features of `needle.readout.seen`, and their
noise has lost two sums. By conditioning and Gordon's comparison they stop being separable at the α
with

    1/α = D(α),   D = min over (ν, κ, b) max over ϑ of
          E[(√(1+κ²) G − y(⟨(ν, κ), c⟩ + b − ⟨ϑ, k⟩)/r)₊²] − |ϑ|²,

where the law of (y, c, k, r) is that of samples whose query was learned on α samples per dimension.
With k = 0 and fresh samples this is eq-d-J. Chapter 8, thm-8-capacity.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from scipy.optimize import brentq

from ..data.classifiers import attention
from ..data.tokens import SparseTokens
from ..kit.records import ConvergenceError
from ..steps.alignment import predict_alignment
from ..steps.rule import StepOptions
from .capacity import least_repair, predict_capacity, squared_repair
from .literal import two_step_features
from .seen import Seen, training_law
from .separable import separability

Array = np.ndarray
_RANGE = 0.2, 500.0  # capacities that are looked for


def _rows(law: Seen) -> Array:
    """Columns c₁, c₂, c₃, 1, −k₁, −k₂ over r, signed by the label."""
    columns = [*law.means, np.ones_like(law.r), *-law.taken]
    return np.column_stack(columns) * (law.y / law.r)[:, None]


def _repair(law: Seen) -> float:
    """D by Newton's method: convex in the first four unknowns, concave in the last two."""
    X, back = _rows(law), np.array([0.0, 0, 0, 0, 1, 1])
    fresh = not law.taken.any()
    J, β, settled = least_repair(X[:, :4], law.weight, 2, np.zeros(4))
    if fresh or not settled:
        if not settled:
            raise ConvergenceError("Newton's method did not settle on the capacity", J)
        return J
    β = np.append(β, [0.0, 0.0])
    for _ in range(200):
        value, gradient, hessian = squared_repair(X, law.weight, 2, β)
        gradient = gradient - 2 * back * β
        step = -np.linalg.solve(hessian - 2 * np.diag(back), gradient)
        length = 1.0
        while length > 1e-6:
            there = squared_repair(X, law.weight, 2, β + length * step)[1]
            if np.linalg.norm(there - 2 * back * (β + length * step)) < np.linalg.norm(gradient):
                break
            length /= 2
        β = β + length * step
        if np.abs(length * step).max() < 1e-10 * (1 + np.abs(β).max()):
            return float(value - back @ β**2)
    raise ConvergenceError("Newton's method did not settle on the capacity", value)


def log_excess(
    model: SparseTokens, log: float, *, temperature: float, **steps: Unpack[StepOptions]
) -> float:
    """log αD(α) at α = exp(log): above 0 the samples are not separable."""
    alpha = math.exp(log)
    laws = (
        training_law(model, alpha, temperature=temperature, seen=seen, **steps)[0]
        for seen in (True, False)
    )
    seen, fresh = map(_repair, laws)
    cos = predict_alignment(model, alpha, **steps).query_cos
    exact = predict_capacity(attention(model, temperature=temperature, cos=cos))
    return math.log(max(seen, 1e-12) / max(fresh, 1e-12)) - math.log(exact) + log


def predict_reused_capacity(
    model: SparseTokens,
    *,
    temperature: float,
    **steps: Unpack[StepOptions],
) -> float:
    """The largest α = n/d at which attention separates the very samples its query has learned from.

    Parameters
    ----------
    model : the token model
    temperature : T = β|q| > 0
    **steps : loss, lr_w, lr_b of the two steps (`needle.predict_alignment`)

    Returns
    -------
    the root of 1/α = D(α). D is taken at the same points for samples that were seen and for fresh
    ones, and their quotient applied to `predict_capacity` of the fresh ones, so that most of the
    error of the points cancels.

    Raises
    ------
    ConvergenceError : where there is no root between 0.2 and 500.

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> round(predict_reused_capacity(model, temperature=2.0), 1)
    3.7
    """

    def excess(log: float) -> float:
        return log_excess(model, log, temperature=temperature, **steps)

    left = right = math.log(4.0)
    value = start = excess(left)
    while value * start > 0:  # in octaves: D falls more slowly than 1/α
        left, right = right, right - math.copysign(math.log(2), start)
        if not math.log(_RANGE[0]) < right < math.log(_RANGE[1]):
            raise ConvergenceError(
                f"no capacity between {_RANGE[0]:g} and {_RANGE[1]:g}", math.exp(left)
            )
        value = excess(right)
    return math.exp(brentq(excess, min(left, right), max(left, right), xtol=1e-4))


def simulate_reused_separable(
    model: SparseTokens,
    d: int,
    alpha: float,
    rng: np.random.Generator,
    *,
    temperature: float,
    fresh: bool = False,
    **steps: Unpack[StepOptions],
) -> bool:
    """Whether n = alpha·d samples are separable behind the query that they have learned.

    With `fresh` other samples from the same law are put to the test. The answer is proved either
    way (`needle.readout.separable`).

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> rng = np.random.default_rng(0)
    >>> simulate_reused_separable(model, 60, 2.0, rng, temperature=2.0)
    True
    """
    features = two_step_features(
        model, d, alpha, rng, temperature=temperature, fresh=fresh, **steps
    )
    return separability(features.F, features.y).separable
