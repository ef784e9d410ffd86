"""Attention's error in bags of any length, without a draw, however rare it is.

Σ softmax(τh) h against a threshold, both tails by `needle.oracle.contour`. The threshold is told by
the height u at which R needles just balance typical straws: misses grow with u, false alarms fall.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, log_ndtr

from ..data.tokens import SparseTokens
from .contour import STEP, Verdict
from .rules import OracleError, largest_token, two_gaussians
from .straws import LOG_ROOT_2PI

FROZEN = 3.0  # sharpness, in units of √(2 log L), beyond which only the largest token is left
NEVER = -1e5  # log of what is not there
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
        return max(self.log_share[0] + miss, NEVER), max(self.log_share[1] + alarm, NEVER)

    def best(self, near: float | None = None) -> tuple[float, float]:
        """The log of the least error, and the u where it is; near: the u at another sharpness.

        Both parts are all but parabolas in u: the least of their sum through the three looks that
        are next to it, and a look there, until it stays where it is.
        """
        low = self.tau + self.shift - 1
        high = max(self.theta, low) + 4
        looks: dict[float, tuple[float, float]] = {}

        def gap(u: float) -> float:
            looks[u] = self.parts(u)
            return looks[u][0] - looks[u][1]

        self._bracket(gap, min(max(self._guess() if near is None else near, low), high), low, high)
        for _ in range(8):
            predicted, u = _least(looks, low, high)
            found = min(float(np.logaddexp(*parts)) for parts in looks.values())
            if predicted > found - self.step / 20:  # then with a look close by on either side
                best = min(looks, key=lambda x: float(np.logaddexp(*looks[x])))
                sides = [d for d in (0.15, -0.15) if low < best + d < high]
                lone = [d for d in sides if not any(0 < (x - best) / d <= 1.4 for x in looks)]
                if not lone:
                    break
                u = best + lone[0]
            elif min(abs(u - x) for x in looks) < 1e-3:
                break
            gap(u)
        best = min(looks, key=lambda x: float(np.logaddexp(*looks[x])))
        return float(np.logaddexp(*looks[best])), best

    def _guess(self) -> float:
        """The u where a straw of this height and needles that low cost the same."""

        def gap(u: float) -> float:
            miss = self.log_share[0] + self.R * float(log_ndtr(u - self.theta))
            return miss - self.log_share[1] - math.log(self.L) - float(log_ndtr(-u))

        low, high = -10.0, self.theta + math.sqrt(2 * math.log(self.L)) + 10
        if gap(low) >= 0 or gap(high) <= 0:
            return low if gap(low) >= 0 else high
        return float(brentq(gap, low, high, xtol=1e-2))

    def _bracket(self, gap: Callable[[float], float], u: float, low: float, high: float) -> None:
        """Looks until one is next to even, or two hold the even one close by."""
        rate, value = max(u, 1.0) + self.R * max(self.theta - u, 0.5), gap(u)
        left = right = None
        for _ in range(12):
            if value > 0:
                right = u, value
            else:
                left = u, value
            if abs(value) < 0.5 or (left and right and right[0] - left[0] < 0.2):
                break
            if left and right:
                share = min(max(-left[1] / (right[1] - left[1]), 0.15), 0.85)
                new = left[0] + share * (right[0] - left[0])
            else:
                new = u - min(max(1.1 * value / rate, -1.5), 1.5)
                new, rate = min(max(new, low), high), rate / 1.5
            if new == u:
                break
            u, value = new, gap(new)


def _least(looks: dict[float, tuple[float, float]], low: float, high: float) -> tuple[float, float]:
    """The least log of a sum of two parts, each a parabola through the looks next to it."""
    at = sorted(looks, key=lambda u: float(np.logaddexp(*looks[u])))
    best = at[0]
    near = sorted(looks, key=lambda u: abs(u - best))[:3]
    ends = max(min(near), best - 0.1) - 0.3, min(max(near), best + 0.1) + 0.3
    u = np.linspace(max(ends[0], low), min(ends[1], high), 401)
    parts = []
    for k in (0, 1):
        values = [looks[x][k] for x in near]
        parts.append(np.polyval(np.polyfit(np.array(near) - best, values, len(near) - 1), u - best))
    sums = np.logaddexp(*parts)
    k = int(np.argmin(sums))
    return float(sums[k]), float(u[k])


def soft_risk(L: float, R: int, theta: float, pi: float, tau: float | None) -> OracleError:
    """The error of attention at sharpness τ (the best unless given), R ≤ L ≤ 10³⁰⁰, without a draw.

    Within 1 % of lattice sums, of two tokens' exact law and of weighted tokens, L from 2 on; for
    one needle not below Bayes by more, down to 1e-150. Rarer errors than 1e-300 are 0. Beyond τ̂ = 3
    what it errs more than the largest token does falls like τ̂⁻².

    >>> found = soft_risk(1e200, 2, 45.52, 0.5, 9.1)  # τ̂ = 0.3
    >>> f"{-math.log(2 * found.error) / math.log(1e200):.2f}"
    '0.28'
    """
    unit, averaged = math.sqrt(2 * math.log(L)), two_gaussians(theta * R / math.sqrt(L), pi)
    if tau is not None and tau * unit < 1e-3:
        return averaged
    near: float | None = None
    free, largest = tau is None, largest_token(SparseTokens(int(L), R, theta, pi))
    if free and not largest.error:
        return largest
    if tau is None:

        def at(log_tau: float) -> float:
            nonlocal near
            value, near = Softmax(L, R, theta, pi, math.exp(log_tau), ROUGH).best(near)
            return value

        bounds = math.log(max(min(0.05 * unit, theta / 3), 2e-3)), math.log(1.5 * unit)
        options = {"xatol": 0.06}
        tau = math.exp(minimize_scalar(at, bounds=bounds, method="bounded", options=options).x)
    softmax = Softmax(L, R, theta, pi, min(tau, FROZEN * unit))
    log_error, u = softmax.best(near)
    if tau > softmax.tau and largest.error > 0:
        more = log_error - math.log(largest.error)
        log_error = math.log(largest.error) + more * (softmax.tau / tau) ** 2
    error, threshold = min(math.exp(log_error), pi, 1 - pi), softmax.tau + softmax.threshold(u)
    found = OracleError(error, 0.0, threshold, tau)
    return min(found, largest, averaged, key=float) if free else found
