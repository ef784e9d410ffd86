"""Long bags in tokens of finite width: what chance does to the two gradient steps.

`needle.predict_alignment` sends d → ∞ at fixed L. When L is not small against d, the
imbalance of the labels that chance leaves, of relative size 1/√n₀, is multiplied by L−1 in the
echo B and no longer vanishes. `predict_chance` keeps four standard normal numbers: the imbalance ζ,
the chance part of w⁽¹⁾ along ξ, and the noise of q⁽²⁾ in the plane of ξ and w⁽¹⁾. Those of the
signal A, of relative size 1/√n₀ whatever L, are left out: in short bags, where the cosine varies by
O(1/√d) only, that spread is therefore not exact. Chapter 11, thm-11-chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Unpack

import numpy as np
from scipy.special import ndtri

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_integer, check_real
from ..kit.losses import SMOOTH, get_loss
from ..kit.nodes import sobol
from .alignment import indicator_length
from .rule import StepOptions, step_rule

Array = np.ndarray
_POINTS = 13  # log₂ of the quasi-random points
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)


@dataclass(frozen=True)
class Chance:
    """The law of the cosine s_q of one run with ξ, over runs.

    Attributes
    ----------
    query_cos : mean of s_q
    power : mean of s_q²
    flipped : probability that s_q < 0
    echo : root mean square of the ratio of echo to noise
    """

    query_cos: float
    power: float
    flipped: float
    echo: float


@lru_cache(maxsize=1)
def _normals() -> Array:
    return np.asarray(ndtri(sobol(4, _POINTS, 0)).T)


def imbalance(pi: float, *, loss: str = "logistic", lr_b: float = 0.5) -> float:
    """The factor k: chance makes the echo k√(L/d)·G times as long as the noise, G ~ N(0, 1).

    k² = π(1−π)(dΓ₁/dπ)²/Γ₂ at vanishing η_w, where the intercept η_b E γ_y moves with the labels:
    for balanced classes 1 − η_b/4 with the logistic loss and 1 − η_b with the square loss.

    Examples
    --------
    >>> [round(imbalance(0.5, lr_b=lr_b), 3) for lr_b in (0.0, 0.5, 4.0)]
    [1.0, 0.875, 0.0]
    """
    pi = check_real("pi", pi, 0, 1, open_low=True, open_high=True)
    get_loss(loss, SMOOTH)
    rule = step_rule(loss, 1.0, lr_b)
    shares = {1: pi, -1: 1 - pi}
    b = rule.lr_b * sum(shares[y] * rule.start[y] for y in shares)
    pull = {y: -float(rule.gradient(b, y)) for y in shares}
    step = 1e-5
    steepness = float(rule.gradient(b + step, 1) - rule.gradient(b - step, 1)) / (2 * step)
    tilt = pull[1] - pull[-1] - steepness * rule.lr_b * (rule.start[1] - rule.start[-1])
    power = sum(shares[y] * pull[y] ** 2 for y in shares)
    return tilt * math.sqrt(pi * (1 - pi) / power)


def chance_cosines(
    model: SparseTokens,
    d: int,
    alpha0: float,
    **steps: Unpack[StepOptions],
) -> tuple[Array, Array]:
    """Equally likely values of s_q, and of the ratio of echo to noise, in two arrays (8192,).

    The law is that of `predict_chance`.

    Examples
    --------
    >>> model = SparseTokens(L=10_000, R=1, theta=30.0, pi=0.5)
    >>> cos, _ = chance_cosines(model, 1000, 2.0)
    >>> np.quantile(cos, [0.1, 0.9]).round(2).tolist()
    [0.14, 0.79]
    """
    model, d = check_model(model), check_integer("d", d, 3)
    alpha0, rule = check_real("alpha0", alpha0, 0, open_low=True), step_rule(**steps)
    get_loss(rule.loss, SMOOTH)
    L, R, theta, n = model.L, model.R, model.theta, alpha0 * d
    if n < 1:
        raise ValueError(
            f"alpha0 = {alpha0!r} is not allowed: alpha0·d = {n:g} must be at least one sample"
        )
    zeta, g1, g2, g3 = _normals()
    share = model.pi + zeta * math.sqrt(model.pi * (1 - model.pi) / n)
    share = np.clip(share, 0.5 / n, 1 - 0.5 / n)
    shares = {1: share, -1: 1 - share}
    start2 = sum(shares[y] * rule.start[y] ** 2 for y in shares)
    bias = rule.lr_b * sum(shares[y] * rule.start[y] for y in shares)
    along = rule.lr_w * (share * rule.start[1] * theta * R / L + g1 * np.sqrt(start2 / (n * L)))
    across2 = rule.lr_w**2 * start2 * (d - 1) / (n * L)
    rho2 = along**2 + across2
    first, second = {}, {}
    for y in shares:
        centre = rule.lr_w * rule.start[y] / (alpha0 * L) + bias + (y > 0) * theta * R * along / L
        t = centre[:, None] + np.sqrt(rho2 / L)[:, None] * _NODES
        pull = -rule.gradient(t, y)
        first[y], second[y] = (shares[y] * (p @ _WEIGHTS) / _WEIGHTS.sum() for p in (pull, pull**2))
    excess = (theta * indicator_length(model)) ** 2
    A, B = excess * first[1], (L - 1) * (first[1] + first[-1])
    N = np.sqrt(
        ((L - 1) * rho2 * (second[1] + second[-1]) + excess * along**2 * second[1]) / alpha0
    )
    cos = along / np.sqrt(rho2)
    sin = np.sqrt(1 - cos**2)
    parallel = A * along * cos + B * np.sqrt(rho2) + N * np.sqrt(2 / d) * g3
    orthogonal = A * along * sin + N * g2 / np.sqrt(d)
    norm = np.sqrt(parallel**2 + orthogonal**2 + N**2 * (1 - 2 / d))
    s = (parallel * cos + orthogonal * sin) / norm
    return s, B * np.sqrt(rho2) / N


def predict_chance(
    model: SparseTokens,
    d: int,
    alpha0: float,
    **steps: Unpack[StepOptions],
) -> Chance:
    """The law of the query's cosine for tokens of finite width d, bags of any length.

    With n = α₀d, ζ, g₁, g₂, g₃ ~ N(0, 1) and π̂ = π + ζ√(π(1−π)/n) in place of π,

        ω = η_w(π̂γ₊θR/L + g₁√(Γ̄₂/(nL))),   |w⁽¹⁾|² = ω² + η_w²Γ̄₂(d−1)/(nL),
        L q⁽²⁾ = A ω ξ + B w⁽¹⁾ + N (g₂ e + √2 g₃ ŵ)/√d + N √(1−2/d) z,

    ŵ and e the directions of w⁽¹⁾ and of ξ off it, z a unit vector orthogonal to both,
    N² = ((L−1)ρ²Γ₂ + θ²R̄ω²Γ₂₊)/α₀. Correct where d is large, whatever L/d.

    Parameters
    ----------
    model : the token model
    d : token dimension ≥ 3
    alpha0, **steps : as in `needle.predict_alignment`

    Examples
    --------
    >>> model = SparseTokens(L=10_000, R=1, theta=30.0, pi=0.5)
    >>> for d in (10**6, 10**3):
    ...     silent, loud = (predict_chance(model, d, 2.0, lr_b=lr_b) for lr_b in (4.0, 0.5))
    ...     print(f"{silent.query_cos:.2f} {loud.query_cos:.2f}")
    0.80 0.80
    0.79 0.52
    """
    s, echo = chance_cosines(model, d, alpha0, **steps)
    return Chance(
        query_cos=float(s.mean()),
        power=float((s**2).mean()),
        flipped=float((s < 0).mean()),
        echo=float(np.sqrt((echo**2).mean())),
    )
