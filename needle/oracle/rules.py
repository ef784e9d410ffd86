"""A rule and its error: the record, the best threshold, and the rules whose error is a formula.

A threshold (and a sharpness) chosen on the trials that judge it would flatter the rule, so
`cross_fit` chooses on one half and judges on the other, both ways. Appendix A, def-A-oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr

from ..data.noise import Function
from ..data.tokens import SparseTokens


@dataclass(frozen=True)
class OracleError:
    """The error of the best rule of a kind; `float()` gives the error.

    Attributes
    ----------
    error, standard_error : test error and its Monte Carlo standard error (0 for a closed form)
    threshold : decide y = +1 when the statistic exceeds it
    tau : sharpness of attention and element-wise statistics, None elsewhere
    optimism : cross-fitted minus in-sample error; in expectation the best error lies in
        [error − optimism, error], since in-sample minima are too small and real rules too large
    """

    error: float
    standard_error: float = 0.0
    threshold: float = math.nan
    tau: float | None = None
    optimism: float = 0.0

    def __float__(self) -> float:
        return self.error


def two_gaussians(distance: float, pi: float) -> OracleError:
    """Classes N(0, 1) and N(δ, 1): the posterior is 1/2 at t = δ/2 + log((1−π)/π)/δ."""
    odds = math.log((1 - pi) / pi)
    if distance == 0:
        return OracleError(min(pi, 1 - pi), threshold=math.copysign(math.inf, odds))
    t = distance / 2 + odds / distance
    return OracleError(float(pi * ndtr(t - distance) + (1 - pi) * ndtr(-t)), threshold=t)


def largest_token(model: SparseTokens) -> OracleError:
    """Attention at τ = ∞ compares the largest h with t: P(miss) = Φ(t)^{L−R} Φ(t−θ)^R, any L."""

    L, R, theta, pi = float(model.L), model.R, model.theta, model.pi

    def log_error(t: np.ndarray) -> np.ndarray:
        # log Φ(t), in the digits of its tail, which L may raise from 10⁻³⁰⁰
        log_quiet = np.where(np.less(t, 5), L * log_ndtr(t), -np.exp(math.log(L) + log_ndtr(-t)))
        miss = (1 - R / L) * log_quiet + R * log_ndtr(t - theta)
        with np.errstate(divide="ignore"):
            alarm = np.log(-np.expm1(log_quiet))
        return np.logaddexp(math.log(pi) + miss, math.log1p(-pi) + alarm)

    t, lowest = minimum(log_error, -9, 14 + theta + math.sqrt(2 * math.log(L)))
    return OracleError(math.exp(lowest), threshold=t, tau=math.inf)


def minimum(f: Function, low: float, high: float) -> tuple[float, float]:
    """Where f is least on [low, high], and its value there: a grid, then Brent."""
    grid = np.linspace(low, high, 60)
    k = int(np.argmin(f(grid)))
    bounds = grid[max(k - 1, 0)], grid[min(k + 1, 59)]
    x = minimize_scalar(f, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x
    return float(x), float(f(x))


def best_threshold(S: np.ndarray, step: np.ndarray) -> tuple[float, float]:
    """Minimise Σ step[S ≤ t] over t, where step is the cost of turning a yes into a no."""
    order = np.argsort(S, axis=None)
    path = np.cumsum(step.ravel()[order])
    path[:-1][np.diff(S.ravel()[order]) == 0] = np.inf  # no threshold parts equal values
    k = int(np.argmin(path))
    if path[k] >= 0:
        return 0.0, -math.inf
    ends = S.ravel()[order[k : k + 2]]
    return float(path[k]), float(ends.mean()) if len(ends) == 2 else math.inf


def cross_fit(
    statistic: Callable[[float], np.ndarray],
    tau: float | None,
    ceiling: float,
    yes: np.ndarray,
    no: np.ndarray,
) -> OracleError:
    """Choose t (and τ ≤ ceiling or ∞) on one half of the trials, judge on the other, both ways.

    yes and no (trials, 2, strata) are the risks of either decision.
    """
    seen = lru_cache(maxsize=2)(statistic)
    halves = slice(0, None, 2), slice(1, None, 2)
    risk, taus, optimism = np.empty(len(yes)), [], 0.0
    for half, other in (halves, halves[::-1]):

        def cost(tau: float, half: slice = half) -> float:
            return best_threshold(seen(tau)[half], no[half] - yes[half])[0]

        best = tau
        if best is None:
            options = {"bounds": (0, ceiling), "method": "bounded"}
            inside = minimize_scalar(cost, options={"xatol": ceiling / 200}, **options)
            best = inside.x if inside.fun < cost(math.inf) else math.inf
        S = seen(best)
        least, t = best_threshold(S[half], (no - yes)[half])
        risk[other] = np.where(S[other] > t, yes[other], no[other]).sum(axis=(1, 2))
        optimism += (risk[other].mean() - (least + yes[half].sum()) / len(yes[half])) / 2
        taus.append(best)
    tau = float(np.mean(taus))
    _, threshold = best_threshold(seen(tau), no - yes)
    return OracleError(float(risk.mean()), standard_error(risk), threshold, tau, float(optimism))


def averaged(risk: np.ndarray, threshold: float, tau: float | None = None) -> OracleError:
    """The error of a rule chosen beforehand, from its independent risks."""
    return OracleError(float(risk.mean()), standard_error(risk), threshold, tau)


def standard_error(risk: np.ndarray) -> float:
    """Of the mean of independent risks."""
    return float(risk.std(ddof=1)) / math.sqrt(len(risk))


def pool(parts: Sequence[OracleError], share: np.ndarray) -> OracleError:
    """Average independent blocks of trials; the rule is that of the first."""
    error, optimism = (float(x) for x in share @ [(p.error, p.optimism) for p in parts])
    spread = math.hypot(*(share * [p.standard_error for p in parts]))
    return replace(parts[0], error=error, standard_error=spread, optimism=optimism)
