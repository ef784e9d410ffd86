"""The best any learner can do: Bayes-optimal learning of the needle, and where it is hard.

n = αd bags with known labels hide one direction ξ, uniform on the sphere. As d → ∞ the squared
cosine m of the best estimate with ξ solves, with the signal-to-noise ratio ϱ of that estimate and
the channel W, Ψ of one bag (`needle.learning.posterior`),

    m = ϱ/(1 + ϱ),   ϱ = απRθ² W(θ²m),

a stationary point of the free entropy per dimension απ Ψ(θ²m) + ½(m + log(1 − m)). Read backwards,
α is a function of m, so no solution can be lost where there are several.

In long bags (L/d not small) token norms count as well: they are one more Gaussian coordinate of a
token, of strength θ⁴(1−m)²/(2d), and W, Ψ are met at x = θ²m + θ⁴(1−m)²/(2d). That is what the
argument `d` adds; it asks for R = 1, θ² ≪ d and log L ≪ √d (prop-11-norms).
Chapter 9, thm-9-state, thm-9-posterior and prop-9-thresholds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_array, check_flag, check_integer, check_real
from ..kit.records import ConvergenceError, Learning, Thresholds
from .amp import SETTLED
from .posterior import channel
from .verdicts import bayes_error

Array = np.ndarray
PATIENCE = 10_000


def _strength(theta: float, m: Any, d: float) -> Any:
    """x = θ²m + θ⁴(1−m)²/(2d): the squared height of a needle, direction and norm together."""
    return theta**2 * m + (theta**2 * (1 - m)) ** 2 / (2 * d)


class _Curve:
    """log α as a function of t = log ϱ, for π = 1: log α(t) = t − log(Rθ² W(x(t)))."""

    def __init__(self, L: int, R: int, theta: float, d: float) -> None:
        self.theta, self.R, self.d, self.channel = theta, R, d, channel(L, R)
        r = np.linspace(0, min(theta, self.channel.end), 1202)[1:-1]
        t = np.log(r**2 / (theta**2 - r**2))
        ends = np.array([-5.0, 0.0, 5.0])
        t = np.unique(np.concatenate([t, t[0] + ends[:1], t[-1] + ends[2:]]))
        if d < math.inf:
            t = np.unique(np.concatenate([t, np.linspace(-25, 25, 2001)]))
        slope = self.slope(t)
        turns = np.flatnonzero(np.sign(slope[:-1]) * np.sign(slope[1:]) < 0)
        self.turns = [float(brentq(self.slope, t[k], t[k + 1], xtol=1e-12)) for k in turns]

    def strength(self, t: Array | float) -> Array:
        return _strength(self.theta, expit(t), self.d)

    def log_alpha(self, t: Array | float) -> Array:
        weight = self.channel.log_weight(self.strength(t))
        return t - math.log(self.R * self.theta**2) - weight

    def slope(self, t: Array | float) -> Array:
        away = expit(np.negative(t))
        rise = self.theta**2 * expit(t) * away * (1 - self.theta**2 * away / self.d)
        return 1 - self.channel.slope(self.strength(t)) * rise

    def solutions(self, log_alpha: float) -> list[float]:
        """All t with log α(t) = `log_alpha`, in order; between two turns the curve is monotone."""
        high = log_alpha + math.log(self.R * self.theta**2) + 1e-9
        low = high + float(self.channel.log_weight(0.0))
        knots = [low - 1e-3, *(t for t in self.turns if low < t < high), high]
        gaps = [float(self.log_alpha(t)) - log_alpha for t in knots]
        found = []
        for a, b, left, right in zip(knots, knots[1:], gaps, gaps[1:], strict=False):
            if left == 0 or left * right < 0:
                gap = lambda t: float(self.log_alpha(t)) - log_alpha  # noqa: E731
                found.append(a if left == 0 else float(brentq(gap, a, b, xtol=1e-13)))
        return found

    def free_entropy(self, t: float, log_alpha: float) -> float:
        m = float(expit(t))
        bag = float(self.channel.free(self.theta**2 * m))
        if self.d < math.inf:
            bag = self._evidence(m)
        return math.exp(log_alpha) * bag + float(m - np.logaddexp(0, t)) / 2

    def _evidence(self, m: float) -> float:
        """½Rθ² ∫₀ᵐ W: what a bag tells of the direction, beyond what norms tell without one."""
        x, w = np.polynomial.legendre.leggauss(6)
        cells = np.linspace(0, math.sqrt(m), 200)
        half = np.diff(cells)[:, None] / 2
        root = cells[:-1, None] + half * (1 + x)
        weight = np.exp(self.channel.log_weight(_strength(self.theta, root**2, self.d)))
        return float(self.R * self.theta**2 * (half * w * root * weight).sum())


@lru_cache(maxsize=256)
def _curve(L: int, R: int, theta: float, d: float) -> _Curve:
    return _Curve(L, R, theta, d)


def _check(model: object, alpha: object, d: object = None) -> tuple[SparseTokens, float, float]:
    model, width = _wide(model, d)
    return model, width, check_real("alpha", alpha, 0, open_low=True)


def _wide(model: object, d: object) -> tuple[SparseTokens, float]:
    """The model, and the width of its tokens (∞ where norms do not count)."""
    model = check_model(model)
    if d is None:
        return model, math.inf
    if model.R > 1:  # two needles of a bag are alike, which is more than their norms
        raise ValueError(f"R = {model.R} is not allowed: with d, R must be 1")
    return model, float(check_integer("d", d, 2))


def _path(
    model: SparseTokens, d: float, alpha: float, informed: bool, rounds: int, goal: float = math.nan
) -> list[float]:
    """The cosines of state evolution, until they come within 10⁻³ of the goal."""
    bag, path = channel(model.L, model.R), [0.0]
    gain = alpha * model.pi * model.R * model.theta**2
    while len(path) <= rounds and not (len(path) > 1 and abs(path[-1] - goal) <= SETTLED):
        known = informed and len(path) == 1
        weight = (
            1.0 if known else math.exp(bag.log_weight(_strength(model.theta, path[-1] ** 2, d)))
        )
        path.append(math.sqrt(gain * weight / (1 + gain * weight)))
    return path[1:]


def state_evolution(
    model: SparseTokens,
    alpha: float,
    rounds: int,
    *,
    d: int | None = None,
    informed: bool = False,
) -> Array:
    """The cosine after each round of approximate message passing, as d → ∞ (with norms: `d`).

    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> state_evolution(model, 4.0, 4).round(3)
    array([0.802, 0.962, 0.968, 0.968])
    """
    model, width, alpha = _check(model, alpha, d)
    informed, rounds = check_flag("informed", informed), check_integer("rounds", rounds, 1)
    return np.array(_path(model, width, alpha, informed, rounds))


def all_solutions(model: SparseTokens, alpha: float, *, d: int | None = None) -> list[Learning]:
    """Every fixed point of state evolution, by rising cosine: stable, unstable, stable, …

    >>> model = SparseTokens(L=1000, R=1, theta=6.0, pi=0.5)
    >>> [round(solution.cos, 2) for solution in all_solutions(model, 0.5)]
    [0.12, 0.22, 0.95]
    """
    model, width, alpha = _check(model, alpha, d)
    if model.theta**2 == 0:
        return [Learning(0.0, min(model.pi, 1 - model.pi), 0.0, 1)]
    curve, log_alpha = _curve(model.L, model.R, model.theta, width), math.log(alpha * model.pi)
    return [_record(model, curve, t, log_alpha, 0) for t in curve.solutions(log_alpha)]


def _record(
    model: SparseTokens, curve: _Curve, t: float, log_alpha: float, rounds: int
) -> Learning:
    cos = math.sqrt(expit(t))
    try:
        error = float(bayes_error(model, math.sqrt(curve.strength(t))))
    except ConvergenceError as rarer:  # of more than 12 needles, next to none
        error = float(rarer.estimate)
    return Learning(cos, error, curve.free_entropy(t, log_alpha), rounds)


def predict_learning(
    model: SparseTokens, alpha: float, *, d: int | None = None, informed: bool = False
) -> Learning:
    """What approximate message passing reaches as d → ∞ with n = αd bags.

    Parameters
    ----------
    model : the token model
    alpha : all bags over the token dimension, n/d > 0
    d : width of the tokens, where bags are so long against it that norms give needles away
        (R = 1; good for θ² ≪ d); then of `simulate_learning(…, norms=True)` and its rule, which
        reads norms too. None: norms do not count
    informed : False, from nothing: the smallest solution; True, from the truth: the largest. They
        differ only between the ends of the fold; the posterior has the one of larger free entropy

    Returns
    -------
    Learning : `cos` = √m; `test_error` of Bayes' rule along that direction (deterministic, good to
        10⁻⁴); `free_entropy` per dimension, 0 for an estimate that knows nothing; `rounds` until
        state evolution stays within 10⁻³ of `cos`, at most 10⁴

    Raises
    ------
    ConvergenceError : with the best estimate, if no solution satisfies its equation to 10⁻⁶

    Examples
    --------
    >>> model = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
    >>> for alpha in (0.1, 1.0):
    ...     best = predict_learning(model, alpha)
    ...     print(f"{best.cos:.3f} {best.test_error:.4f}")
    0.737 0.0849
    0.962 0.0230

    Bags thirty times longer than tokens are wide: without the norms nothing is found.

    >>> long = SparseTokens(L=3000, R=1, theta=5.6, pi=0.5)
    >>> [round(predict_learning(long, 1.0, d=d).cos, 3) for d in (None, 100)]
    [0.08, 0.968]
    """
    model, width, alpha = _check(model, alpha, d)
    informed = check_flag("informed", informed)
    if model.theta**2 == 0:
        return Learning(0.0, min(model.pi, 1 - model.pi), 0.0, 1)
    curve, log_alpha = _curve(model.L, model.R, model.theta, width), math.log(alpha * model.pi)
    found = curve.solutions(log_alpha)
    t = (found or [math.nan])[-1 if informed else 0]
    best = _record(model, curve, t, log_alpha, 0) if found else None
    if best is None or abs(float(curve.log_alpha(t)) - log_alpha) > 1e-6:
        raise ConvergenceError(f"no solution at alpha = {alpha!r}", best)
    return replace(best, rounds=len(_path(model, width, alpha, informed, PATIENCE, best.cos)))


def samples_for(model: SparseTokens, cos: Array | float, *, d: int | None = None) -> Array:
    """The α at which `cos` solves state evolution: the whole curve, folds and all.

    >>> model = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
    >>> round(float(samples_for(model, predict_learning(model, 1.0).cos)), 6)
    1.0
    """
    model, width = _wide(model, d)
    for value in (values := check_array("cos", np.ravel(cos), "n")):
        check_real("cos", value, 0, 1, open_low=True, open_high=True)
    if model.theta**2 == 0:
        return np.full(np.shape(cos), math.inf)
    curve, m = _curve(model.L, model.R, model.theta, width), values**2
    return (np.exp(curve.log_alpha(np.log(m / (1 - m)))) / model.pi).reshape(np.shape(cos))


def learning_thresholds(model: SparseTokens, *, d: int | None = None) -> Thresholds:
    """The samples per dimension at which learning becomes possible, and at which it becomes easy.

    - `information`: where the two stable solutions have equal free entropy. Below, even the
      posterior knows next to nothing of ξ; above, it knows ξ, if perhaps nobody can compute it.
    - `algorithm`: where the solution that approximate message passing reaches from nothing ends.
    - `lower`: where the fold begins; two stable solutions exist from here to `algorithm`.

    All three are nan where learning is gradual (one solution at every α), and inf for θ = 0.
    For L → ∞: π·algorithm ≃ L/(eθ⁴R²), and with ϱ = Rθ²π·information, 1 − log(1+ϱ)/ϱ =
    2 log C(L, R)/(Rθ²). With the width `d` of the tokens, norms count as well (R = 1, θ² ≪ d), and
    π·algorithm ≃ L e^{−ν²}/(eθ⁴), ν² = θ⁴/(2d), as long as ν² is small against log L.

    >>> found = learning_thresholds(SparseTokens(L=1000, R=1, theta=6.0, pi=0.5))
    >>> round(found.information, 3), round(found.algorithm, 3)
    (0.07, 0.587)
    """
    model, width = _wide(model, d)
    if model.theta**2 == 0:
        return Thresholds(math.inf, math.inf, math.inf)
    curve = _curve(model.L, model.R, model.theta, width)
    if len(curve.turns) < 2:
        return Thresholds(math.nan, math.nan, math.nan)
    heights = [float(curve.log_alpha(t)) for t in curve.turns]
    low, high = min(heights[1::2]), max(heights[::2])

    def gap(log_alpha: float) -> float:
        found = curve.solutions(log_alpha)
        return curve.free_entropy(found[-1], log_alpha) - curve.free_entropy(found[0], log_alpha)

    inside = 1e-7 * (high - low)
    information = float(brentq(gap, low + inside, high - inside, xtol=1e-10))
    return Thresholds(*(math.exp(x) / model.pi for x in (information, high, low)))
