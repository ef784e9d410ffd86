"""Attention's error in bags of more than a million tokens, without a draw, however rare it is.

Σ softmax(τh) h against a threshold, both tails by `needle.oracle.contour`. The threshold is told by
the height u at which R needles just balance typical straws: misses grow with u, false alarms fall.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, log_ndtr

from ..data.tokens import SparseTokens
from .contour import NEVER, STEP, Verdict
from .detection import one_needle_bayes_error
from .rules import OracleError, largest_token, two_gaussians
from .straws import LOG_ROOT_2PI

FROZEN = 3.0  # sharpness, in units of √(2 log L), beyond which only the largest token is left
DEEP = 1e-30  # a rarer error may lose some per cent, but is not below the best possible
ROUGH = 0.05  # step of heights while the best sharpness is looked for


class Softmax:
    """The error at one sharpness as a function of u."""

    def __init__(
        self, L: float, R: int, theta: float, pi: float, tau: float, step: float = STEP
    ) -> None:
        self.L, self.R, self.theta, self.tau, self.step = L, R, theta, tau, step
        self.log_share = math.log(pi), math.log1p(-pi)
        x = math.sqrt(2 * math.log(L)) - tau  # of straws below the wall: log Σe^{τg}, mean − τ
        self.log_sum = math.log(L) + tau * tau / 2 + float(log_ndtr(x))
        self.shift = -math.exp(-x * x / 2 - LOG_ROOT_2PI - float(log_ndtr(x)))

    def threshold(self, u: float) -> float:
        """ε of the threshold τ + ε: the softmax's mean of R needles at u and typical straws."""
        odds = math.log(self.R) + self.tau * u - self.log_sum
        share, rest = float(expit(odds)), float(expit(-odds))
        return self.shift * rest + (u - self.tau) * share

    def parts(self, u: float) -> tuple[float, float]:
        """log π P₊(S ≤ t) and log (1 − π) P₋(S > t)."""
        eps = self.threshold(u)
        miss = Verdict(self.L, self.R, self.theta, self.tau, eps, self.step).logs()[0]
        alarm = Verdict(self.L, 0, 0.0, self.tau, eps, self.step).logs()[1]
        return self.log_share[0] + miss, self.log_share[1] + alarm

    def log_error(self, u: float) -> float:
        return float(np.logaddexp(*self.parts(u)))

    def even(self, near: float | None, xtol: float) -> float:
        """The u at which misses and false alarms cost the same, or the end that is next to it."""

        def gap(u: float) -> float:
            miss, alarm = self.parts(u)
            return miss - alarm

        least = self.tau + self.shift
        ends = (least, max(self.theta, least) + 2) if near is None else (near - 0.3, near + 0.3)
        low, high = ends
        left, right = gap(low), gap(high)
        while left > 0 and low > least - 1:
            low, high, left, right = low - 0.7, low, gap(low - 0.7), left
        while right < 0 and high < max(self.theta, least) + 3:
            low, high, left, right = high, high + 0.7, right, gap(high + 0.7)
        if left > 0 or right < 0:
            return low if left > 0 else high
        return float(brentq(gap, low, high, xtol=xtol))

    def best(self, near: float | None = None) -> tuple[float, float]:
        """The log of the least error, and the u where it is."""
        middle = self.even(near, 0.1)
        bounds, options = (middle - 0.4, middle + 0.7), {"xatol": 1.5 * self.step}
        found = minimize_scalar(self.log_error, bounds=bounds, method="bounded", options=options)
        return float(found.fun), float(found.x)


def _certain(theta: float, wall: float, tau: float) -> bool:
    """Whether a needle weighs four times all straws together and stands far above them.

    Needles and straws within `NEVER` of where they should be: all others are worth e^-800.
    """
    tallest = wall + NEVER
    weight = tau * (theta - NEVER - tallest) - wall * wall / 2
    return weight > math.log(4) and 0.8 * (theta - NEVER) > 1.2 * tallest


def soft_risk(L: float, R: int, theta: float, pi: float, tau: float | None) -> OracleError:
    """The error of attention at sharpness τ (the best unless given), R < L ≤ 10³⁰⁰, without a draw.

    Within 3 % down to errors of 1e-30. Beyond τ̂ = 3 what it errs more than the largest token does
    falls like τ̂⁻².

    >>> found = soft_risk(1e200, 2, 45.52, 0.5, 9.1)  # τ̂ = 0.3
    >>> f"{-math.log(2 * found.error) / math.log(1e200):.2f}"
    '0.28'
    """
    unit = math.sqrt(2 * math.log(L))
    if tau is not None and tau * unit < 1e-3:
        return two_gaussians(theta * R / math.sqrt(L), pi)
    if _certain(theta, unit, unit if tau is None else tau):
        return OracleError(0.0, 0.0, unit + NEVER, unit if tau is None else tau)
    near: float | None = None
    free, largest = tau is None, largest_token(SparseTokens(int(L), R, theta, pi))
    if free and not largest.error:
        return largest
    if tau is None:

        def at(log_tau: float) -> float:
            nonlocal near
            value, near = Softmax(L, R, theta, pi, math.exp(log_tau), ROUGH).best(near)
            return value

        bounds, options = (math.log(0.05 * unit), math.log(1.5 * unit)), {"xatol": 0.04}
        tau = math.exp(minimize_scalar(at, bounds=bounds, method="bounded", options=options).x)
    softmax = Softmax(L, R, theta, pi, min(tau, FROZEN * unit))
    log_error, u = softmax.best(near)
    if tau > softmax.tau and largest.error > 0:
        more = log_error - math.log(largest.error)
        log_error = math.log(largest.error) + more * (softmax.tau / tau) ** 2
    error, threshold = min(math.exp(log_error), pi, 1 - pi), softmax.tau + softmax.threshold(u)
    if R == 1 and error < DEEP:
        error = max(error, one_needle_bayes_error(L, theta, pi))
    return largest if free and largest.error < error else OracleError(error, 0.0, threshold, tau)
