"""Ridge-penalized logistic regression for many ridges at once, with weights.

    min over w, b:   Σᵢ ωᵢ ℓ(⟨w, fᵢ⟩ + b; yᵢ) / Σᵢ ωᵢ + (λ/2)|w|²,

in the eigenvectors of the features' Gram matrix, its smaller form, where the curvature at b = w = 0
is diagonal: L-BFGS so preconditioned walks the path from the largest λ to the smallest in a few
steps each. `exact` adds Newton steps until the gradient is 1e-10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit

from ..kit.checks import check_array, check_labels, check_real
from ..kit.records import ConvergenceError
from .arrays import Array

GOAL = 1e-10


class Line(NamedTuple):
    """A readout: the score of features f is ⟨w, f⟩ + b."""

    w: Array
    b: float

    def __call__(self, F: Array) -> Array:
        return F @ self.w + self.b


class Principal:
    """Features (n, p) as coordinates along their principal directions, and back."""

    def __init__(self, F: Array, weight: Array) -> None:
        self.center = weight @ F
        centered, root = F - self.center, np.sqrt(weight)[:, None]
        n, p = F.shape
        if p <= n:
            square, self.back = np.linalg.eigh((weight[:, None] * centered).T @ centered)
        else:
            square, vector = np.linalg.eigh((root * centered) @ (root * centered).T)
            kept = square > 1e-12 * max(square[-1], 1e-300)
            square, vector = square[kept], vector[:, kept]
            self.back = (centered.T @ (root * vector)) / np.sqrt(square)
        self.square = np.maximum(square, 0)
        self.along = centered @ self.back


def readouts(
    F: Array, y: Array, ridges: Sequence[float], *, weight: Array | None = None, exact: bool = True
) -> list[Line]:
    """The readout for each ridge λ > 0, in their order.

    Parameters
    ----------
    F, y : features (n, p), labels −1 or +1 (n,);  weight : ω ≥ 0 (n,), by default all 1
    exact : False for a search, to a gradient of about 1e-4

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> F, y = rng.normal(size=(50, 3)), np.where(rng.random(50) < 0.5, 1, -1)
    >>> from needle.readout.fit import fit_readout
    >>> [line] = readouts(F, y, [0.1])
    >>> bool(np.allclose(line.w, fit_readout(F, y, 0.1).w, atol=1e-6))
    True
    """
    F = check_array("F", F, "n", "p")
    y = check_labels("y", y, len(F))
    share = np.full(len(F), 1 / len(F)) if weight is None else weight / weight.sum()
    if not (share[y > 0].sum() > 0 and share[y < 0].sum() > 0):
        raise ValueError("y with one label is not allowed: y must hold both labels")
    ridges = [check_real("ridges", lam, 0, open_low=True) for lam in ridges]
    axes = Principal(F, share)
    point, found = np.zeros(len(axes.square) + 1), {}
    yes = float(share[y > 0].sum())
    point[-1] = np.log(yes / (1 - yes))
    for lam in sorted(ridges, reverse=True):
        point = _walk(axes, y, share, lam, point, 1e-6 if exact else 1e-4)
        if exact:
            point = _newton(axes, y, share, lam, point)
        w = axes.back @ point[:-1]
        found[lam] = Line(w, float(point[-1] - axes.center @ w))
    return [found[lam] for lam in ridges]


def _walk(axes: Principal, y: Array, share: Array, lam: float, start: Array, goal: float) -> Array:
    scale = np.append(np.sqrt(axes.square / 4 + lam), 0.5)

    def objective(t: Array) -> tuple[float, Array]:
        v = t / scale
        margin = y * (axes.along @ v[:-1] + v[-1])
        pull = -share * y * expit(-margin)
        value = share @ np.logaddexp(0, -margin) + lam / 2 * (v[:-1] @ v[:-1])
        return float(value), np.append(pull @ axes.along + lam * v[:-1], pull.sum()) / scale

    options = {"gtol": goal, "ftol": 0 if goal < 1e-5 else 1e-9, "maxiter": 500}
    best = minimize(objective, start * scale, jac=True, method="L-BFGS-B", options=options)
    return best.x / scale


def _newton(axes: Principal, y: Array, share: Array, lam: float, v: Array) -> Array:
    along = np.column_stack([axes.along, np.ones(len(y))])
    ridge = np.append(np.full(len(v) - 1, lam), 0.0)
    size = np.inf
    for _ in range(30):
        score = along @ v
        gradient = (-share * y * expit(-y * score)) @ along + ridge * v
        size = float(np.linalg.norm(gradient))
        if size <= GOAL:
            return v
        curve = share * expit(score) * expit(-score)
        hessian = (curve[:, None] * along).T @ along
        hessian[np.diag_indices(len(v))] += ridge + 1e-14
        step = cho_solve(cho_factor(hessian), gradient)
        reach = 1.0
        while reach > 1e-4 and _gain(along, y, share, ridge, v, reach * step) < 0:
            reach /= 2
        v = v - reach * step
    if size > 1e-7:
        line = Line(axes.back @ v[:-1], float(v[-1] - axes.center @ (axes.back @ v[:-1])))
        raise ConvergenceError(f"lam = {lam:g}: gradient {size:.1e}; take a larger ridge", line)
    return v


def _gain(along: Array, y: Array, share: Array, ridge: Array, v: Array, step: Array) -> float:
    """How much smaller the objective is after the step, up to its rounding."""
    old, new = (
        float(share @ np.logaddexp(0, -y * (along @ u)) + ridge @ u**2 / 2) for u in (v, v - step)
    )
    return old - new + 1e-13 * abs(old)
