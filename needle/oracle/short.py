"""Attention's error in bags of up to a million tokens, without a draw, however rare it is.

Σ softmax(τh) h exceeds t where Y = Σ y(h_ℓ) > 0, y(h) = (h − t)e^{τ(h−t)}: a sum of independent
terms. Its law is the Fourier sum of a power on a lattice, after the exponential tilt that brings
its mean to 0, where the verdict is: so tails of 10⁻³⁰ have all their digits. A token so tall that
it wins by itself is taken out before. Appendix A, alg-A-rare.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr

from ..data.tokens import SparseTokens
from .rules import OracleError, largest_token, two_gaussians
from .straws import LOG_ROOT_2PI

Array = np.ndarray
LONGEST, SHARPEST = 10**6, 0.8  # tokens, and sharpness in units of √(2 log L)
POINTS, CELLS = 2_000, 2**14


class Tokens:
    """Weights of a grid of heights under N(0, 1) and under N(θ, 1), and y of each."""

    def __init__(self, L: float, R: int, theta: float, tau: float) -> None:
        self.L, self.R, self.theta, self.tau = L, R, theta, tau
        edge = np.linspace(-9.5, theta + 9.5, POINTS + 1)
        self.h = (edge[1:] + edge[:-1]) / 2
        log_step = math.log(edge[1] - edge[0]) - LOG_ROOT_2PI
        self.log_straw = log_step - self.h**2 / 2
        self.log_needle = log_step - (self.h - theta) ** 2 / 2

    def y(self, t: float) -> Array:
        return (self.h - t) * np.exp(np.minimum(self.tau * (self.h - t), 500.0))

    def center(self) -> tuple[float, float]:
        """Where the S of a negative is, and how far it strays."""
        low = self.h < math.sqrt(2 * math.log(self.L)) + 0.5
        weight = np.exp(self.log_straw + self.tau * self.h) * low
        mean = float(weight @ self.h / weight.sum())
        square = float((weight * np.exp(self.tau * self.h)) @ (self.h - mean) ** 2)
        return mean, math.sqrt(square / self.L) / float(weight.sum())

    def log_error(self, t: float, pi: float) -> float:
        """log of π P₊(Y ≤ 0) + (1 − π) P₋(Y > 0)."""
        miss, alarm = self.log_miss(t), self.log_alarm(t)
        return float(np.logaddexp(math.log(pi) + miss, math.log1p(-pi) + alarm))

    def log_alarm(self, t: float) -> float:
        """log P₋(Y > 0): a token that wins alone, or none and the others together."""
        y, p = self.y(t), np.exp(self.log_straw)
        tame = self.h < max(t, math.sqrt(2 * math.log(self.L)))
        mean, var = self.L * float(p[tame] @ y[tame]), self.L * float(p[tame] @ y[tame] ** 2)
        if mean > 0:
            return 0.0
        big = 8 * math.sqrt(var) - mean + 3 / self.tau
        kept = y < big
        edge = float(self.h[kept][-1]) + (self.h[1] - self.h[0]) / 2
        log_one = math.log(self.L) + float(log_ndtr(-edge))
        alone = math.log(-math.expm1(-math.exp(min(log_one, 50.0)))) if log_one > -700 else log_one
        rest = self._tail([(self.L, self.log_straw[kept])], y[kept], up=True)
        return float(min(np.logaddexp(alone, rest), 0.0))

    def log_miss(self, t: float) -> float:
        """log P₊(Y ≤ 0)."""
        parts = [(self.L - self.R, self.log_straw), (float(self.R), self.log_needle)]
        return min(self._tail([part for part in parts if part[0]], self.y(t), up=False), 0.0)

    def _tail(self, parts: list[tuple[float, Array]], y: Array, *, up: bool) -> float:
        """log P(Y > 0) or log P(Y ≤ 0) for sums of n tokens of each log law."""

        def moments(s: float) -> tuple[float, float, float, list[tuple[float, Array]]]:
            value = mean = var = 0.0
            laws = []
            for n, log_p in parts:
                e = log_p + s * y
                top = float(e.max())
                w = np.exp(e - top)
                total = float(w.sum())
                first, second = float(w @ y) / total, float(w @ y**2) / total
                value += n * (top + math.log(total))
                mean, var = mean + n * first, var + n * (second - first**2)
                laws.append((n, w / total))
            return value, mean, var, laws

        unit = 1 / math.sqrt(max(moments(0.0)[2], 1e-300))
        side = 1.0 if up else -1.0
        if moments(0.0)[1] * side >= 0:
            s = 0.0
        else:
            far = side * unit
            while moments(far)[1] * side < 0 and abs(far) < 1e6 * unit:
                far *= 2
            if moments(far)[1] * side < 0:
                return -math.inf
            ends, wide = sorted((0.0, far)), abs(far)
            s = float(brentq(lambda x: moments(x)[1], *ends, xtol=1e-5 * wide, rtol=1e-3))
        for _ in range(200):
            value, mean, var, laws = moments(s)
            heavy = max(float(y[w > 1e-14].max()) for _, w in laws)
            half = 12 * math.sqrt(var) + abs(mean) + max(heavy, 0.0)
            if up or heavy < 300 * math.sqrt(var):  # a heavy tail would blur what is below 0
                break
            s = 2 * s - unit / 8
        step = 2 * half / CELLS
        log_cf = np.zeros(CELLS // 2 + 1, complex)
        for n, w in laws:
            log_cf += n * np.log(np.fft.rfft(_lattice(y, w, step)))
        g = np.maximum(np.fft.irfft(np.exp(log_cf), CELLS), 0.0)
        x = step * np.fft.fftfreq(CELLS, 1 / CELLS)
        chosen = (x > 0) if up else (x < 0)
        good = g > 1e-13 * g.max()
        mass = float(np.exp(-s * x[chosen & good]) @ g[chosen & good]) + g[0] / 2
        return value + math.log(max(mass, 1e-300))


def _lattice(y: Array, w: Array, step: float) -> Array:
    """Atoms w at y on the points k·step, k modulo CELLS; three points keep two moments of each."""
    k = np.rint(y / step)
    part = y / step - k
    inside = np.abs(k) < CELLS / 2 - 1
    out = np.zeros(CELLS)
    for shift, share in (
        (-1, part * (part - 1) / 2), (0, 1 - part**2), (1, part * (part + 1) / 2),
    ):  # fmt: skip
        place = (k + shift)[inside].astype(np.intp) % CELLS
        out += np.bincount(place, (w * share)[inside], CELLS)
    return out


def short_risk(L: float, R: int, theta: float, pi: float, tau: float | None) -> OracleError:
    """The error of attention at sharpness τ ≤ 0.8 √(2 log L), L ≤ 10⁶, without a draw.

    Unless τ is given, that at the best of these, or at τ = ∞ if that is better.

    >>> round(short_risk(1000, 4, 4.5, 0.5, 1.2).error, 4)
    0.008
    """
    unit = math.sqrt(2 * math.log(L))
    theta = min(theta, 2 * unit + 80 + 0.1 * math.sqrt(L))  # beyond it the error is below 10⁻³⁰⁰
    if tau == 0:
        return two_gaussians(theta * R / math.sqrt(L), pi)
    if tau is not None:
        log_error, t = _best(L, R, theta, pi, tau, 25)
        return OracleError(min(math.exp(log_error), pi, 1 - pi), 0.0, t, tau)

    def at(log_tau: float) -> float:
        return _best(L, R, theta, pi, math.exp(log_tau), 17)[0]

    bounds = math.log(0.02 * unit), math.log(SHARPEST * unit)
    found = minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 0.05})
    soft = short_risk(L, R, theta, pi, math.exp(found.x))
    frozen = largest_token(SparseTokens(int(L), R, theta, pi))
    return soft if soft.error <= frozen.error else frozen


def _best(
    L: float, R: int, theta: float, pi: float, tau: float, points: int
) -> tuple[float, float]:
    """log of the least error at a sharpness, and the threshold."""
    tokens = Tokens(L, R, theta, tau)
    mean, spread = tokens.center()

    def f(x: float) -> float:
        return tokens.log_error(mean + spread * math.sinh(x), pi)

    grid = np.linspace(-3.0, math.asinh((max(theta - mean, 0.0) + 6) / spread), points)
    k = int(np.argmin([f(x) for x in grid]))
    bounds = grid[max(k - 1, 0)], grid[min(k + 1, points - 1)]
    found = minimize_scalar(f, bounds=bounds, method="bounded", options={"xatol": 2e-3})
    return float(found.fun), mean + spread * math.sinh(float(found.x))
