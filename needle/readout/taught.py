"""The width of the transition when query and readout see the same data, by repairs that are drawn.

Samples are not separable if and only if the cone of {Π Sᵀu : y∘u ≥ 0, Σu = 0, Σ u c = 0} meets the
kernel of a Gaussian matrix with d − 3 rows: s_i weights a token of sample i, c_i is the feature in
the span of ξ, w⁽¹⁾ and q, and Π takes away the two directions in which the steps have summed the
tokens. The mean squared projection of noise on the cone,

    M_n = min over (ν, b) max over ϑ of Σ_i (y_i(h_i − ⟨ν, c_i⟩ − b + ⟨ϑ, k_i⟩)/r_i)₊² − |ϑ|²,

h = S Π g, is a problem in six variables. Its mean over d has the limit αD(α), and all that moves
the transition at order 1/√d is in its variance: samples, noise, and what their query happens to be.
Chapter 8, thm-8-capacity and eq-8-width.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Unpack

import numpy as np
from scipy.special import softmax

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_integer, check_real, check_rng
from ..kit.records import ConvergenceError, Measured
from ..kit.threads import in_one_thread
from ..steps.alignment import predict_alignment
from ..steps.rule import StepOptions, StepRule, step_rule
from .twice import log_excess, predict_reused_capacity

Array = np.ndarray
_AROUND = 0.1  # of log α, to either side, for the slope of log αD


class _Projections(NamedTuple):
    """Labels (n,), tokens' heights along ξ, w⁽¹⁾ and q (3, n, L), marks (2, nL), and log weights.

    Heights are along an orthonormal basis that begins with ξ; `logits` are ⟨x, q⟩ of every token.
    """

    y: Array
    heights: Array
    marks: Array
    logits: Array


def _projections(
    model: SparseTokens, d: int, n: int, rule: StepRule, rng: np.random.Generator
) -> _Projections:
    """n samples in R^d and two steps on them, drawn in the three directions that matter.

    Exact in law: given what the steps have summed, Z e = |Zᵀb| b + noise across b for the direction
    e of a sum Zᵀb (lem-e-conditioning), and the length of a new sum is a χ.
    """
    L, marks, lengths = model.L, np.zeros((2, n * model.L)), np.zeros(2)
    y = np.where(rng.random(n) < model.pi, 1, -1)
    shift = model.theta * np.outer(y > 0, np.arange(L) < model.R).ravel()
    heights = np.zeros((3, n * L))
    heights[0] = rng.standard_normal(n * L) + shift

    def summed(F: Array, k: int) -> Array:
        """Σ X_iᵀF_i in the basis, whose direction k + 1 it opens."""
        found = heights[: k + 1] @ F
        rest = F - (F @ marks[:k].T) @ marks[:k]
        size = float(np.linalg.norm(rest))
        marks[k], lengths[k] = rest / size, math.sqrt(rng.chisquare(d - 1 - k))
        noise = rng.standard_normal(n * L)
        known = marks[: k + 1]
        heights[k + 1] = noise - (known @ noise) @ known + lengths[k] * marks[k]
        return np.append(found, size * lengths[k])

    slope = rule.gradient(np.zeros(n), y)
    w = -rule.lr_w / n * summed(np.repeat(slope / L, L), 0)
    scores = (w @ heights[:2]).reshape(n, L)
    means = scores.mean(axis=1)
    pull = rule.gradient(means - rule.lr_b * slope.mean(), y)[:, None]
    q = -summed((pull * (scores - means[:, None])).ravel(), 1) / (n * L)
    return _Projections(y, heights.reshape(3, n, L), marks, (q @ heights).reshape(n, L))


@in_one_thread
def simulate_reused_repair(
    model: SparseTokens,
    d: int,
    alpha: float,
    rng: np.random.Generator,
    *,
    temperature: float,
    **steps: Unpack[StepOptions],
) -> float:
    """One draw of M_n, n = alpha·d, over d − 3: above 1 the samples tend not to be separable.

    Exact in law at finite d; costs n·L numbers, not n·L·d.

    Parameters
    ----------
    model, d, alpha, rng : tokens, their dimension d ≥ 5, n/d, and the source of randomness
    temperature, **steps : as in `predict_reused_capacity`

    Examples
    --------
    >>> model, rng = SparseTokens(L=10, R=1, theta=3.0, pi=0.5), np.random.default_rng(0)
    >>> draws = [simulate_reused_repair(model, 200, 3.7, rng, temperature=2.0) for _ in range(40)]
    >>> bool(0.9 < np.mean(draws) < 1.1)
    True
    """
    model, d, rng = check_model(model), check_integer("d", d, 5), check_rng(rng)
    T = check_real("temperature", temperature, 0, open_low=True)
    alpha = check_real("alpha", alpha, 0, open_low=True)
    rule, n = step_rule(**steps), max(2, round(alpha * d))
    norm = predict_alignment(model, alpha, **steps).query_norm
    y, heights, marks, logits = _projections(model, d, n, rule, rng)
    s = softmax(T / norm * logits, axis=1)
    noise = rng.standard_normal(n * model.L)
    noise -= (marks @ noise) @ marks
    read = lambda A: np.einsum("nl,knl->kn", s, A.reshape(-1, n, model.L))  # noqa: E731
    unit = y / np.linalg.norm(s, axis=1)
    (h,), c, k = read(noise) * unit, read(heights) * unit, read(marks) * unit
    return _saddle(h, np.vstack([c, unit]).T, k.T) / (d - 3)


def _saddle(h: Array, X: Array, K: Array) -> float:
    """min over β max over ϑ of Σ (h − Xβ + Kϑ)₊² − |ϑ|²: Newton on a piecewise quadratic."""
    p, A = X.shape[1], np.hstack([-X, K])
    fold = np.append(np.zeros(p), np.ones(K.shape[1]))

    def slopes(x: Array) -> tuple[Array, Array]:
        left = np.maximum(h + A @ x, 0)
        return left, A.T @ left - fold * x

    x = np.zeros(A.shape[1])
    left, gradient = slopes(x)
    for _ in range(200):
        active = A[left > 0]
        step = -np.linalg.lstsq(active.T @ active - np.diag(fold), gradient, rcond=None)[0]
        size = float(np.linalg.norm(gradient))
        while True:
            there, new = slopes(x + step)
            if np.linalg.norm(new) < size or np.abs(step).max() < 1e-12:
                break
            step /= 2
        x, left, gradient = x + step, there, new
        if np.linalg.norm(gradient) <= 1e-9 * (1 + math.sqrt(len(h))):
            return float(left @ left - fold @ x**2)
    raise ConvergenceError("Newton's method did not settle on a repair", float(left @ left))


def predict_reused_capacity_width(
    model: SparseTokens,
    *,
    temperature: float,
    d: int = 200,
    draws: int = 2000,
    seed: int = 0,
    **steps: Unpack[StepOptions],
) -> Measured:
    """The σ of P(n = αd samples are separable behind their query) ≃ Φ((α* − α)√d/σ).

    With M_n of `simulate_reused_repair` at α* of `predict_reused_capacity`,

        σ = (α*/κ) (Var(M_n)/d − 2)^½,   κ = d log(αD(α))/d log α at α*,

    which for k = 0 and a law that does not know α (κ = 1) is `predict_capacity_width`. The variance
    is that of `draws` repairs at dimension d, so the result is a `Measured`, its standard error
    that of this variance.

    Examples
    --------
    >>> model = SparseTokens(L=5, R=1, theta=2.0, pi=0.3)
    >>> width = predict_reused_capacity_width(model, temperature=3.0, draws=200)
    >>> 2.0 < width < 4.0
    True
    """
    d, draws = check_integer("d", d, 20), check_integer("draws", draws, 20)
    capacity = predict_reused_capacity(model, temperature=temperature, **steps)
    at = math.log(capacity)
    high, low = (
        log_excess(model, at + side, temperature=temperature, **steps)
        for side in (_AROUND, -_AROUND)
    )
    rise = (high - low) / (2 * _AROUND)
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    found = [
        simulate_reused_repair(model, d, capacity, rng, temperature=temperature, **steps)
        for _ in range(draws)
    ]
    squares = (d - 3) * (np.array(found) - np.mean(found)) ** 2 * draws / (draws - 1)
    inside = float(squares.mean()) - 2
    if inside <= 0:
        raise ConvergenceError(
            f"draws = {draws}: the variance of the repairs is lost in their "
            "scatter; take more draws",
            math.nan,
        )
    scale = capacity / rise
    error = scale * float(squares.std(ddof=1)) / math.sqrt(draws) / (2 * math.sqrt(inside))
    return Measured(scale * math.sqrt(inside), error, draws)
