"""Attention's error in bags of up to a million tokens by sums on a lattice: a road of tests.

Σ softmax(τh) h exceeds t where Y = Σ y(h_ℓ) > 0, y(h) = (h − t)e^{τ(h−t)}: a sum of independent
terms. Its law is the Fourier sum of a power on a lattice, after the exponential tilt that brings
its mean to 0, where the verdict is: so tails of 10⁻³⁰ have all their digits. A token so tall that
it wins by itself is taken out before.

Wrong where short bags' pull is not the same in all (two tokens, far out), and by 6 % at
(10⁶, R = 1, θ = 10.5, π = 1e-3, τ = 4.2).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import lambertw, log_ndtr

from needle.data.tokens import SparseTokens
from needle.oracle.rules import OracleError, largest_token, two_gaussians
from needle.oracle.straws import LOG_ROOT_2PI

Array = np.ndarray
LONGEST, SHARPEST = 10**6, 0.8  # tokens, and sharpness in units of √(2 log L)
POINTS, CELLS = 2_000, 2**14
ROUGH = 700, 2**12  # points and cells while the best sharpness is looked for


class Tokens:
    """Weights of a grid of heights under N(0, 1) and under N(θ, 1), and y of each."""

    def __init__(
        self, L: float, R: int, theta: float, tau: float, points: int = POINTS, cells: int = CELLS
    ) -> None:
        self.L, self.R, self.theta, self.tau, self.cells = L, R, theta, tau, cells
        edge = np.linspace(-9.5, theta + 9.5, points + 1)
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
        """log P₋(Y > 0)."""
        return self._log_yes(t, 0)

    def log_miss(self, t: float) -> float:
        """log P₊(Y ≤ 0), from the other side where a typical positive is missed."""
        y = self.y(t)
        low = self.h < math.sqrt(2 * math.log(self.L))
        straws = y[low] @ np.exp(self.log_straw[low])
        needle = (self.theta - t) * math.exp(min(self.tau * (self.theta - t), 500.0))
        if self.L * float(straws) + self.R * needle <= 0:
            log_yes = self._log_yes(t, self.R)
            if log_yes < -0.05:
                return math.log(-math.expm1(log_yes))
        parts = [(self.L - self.R, self.log_straw), (float(self.R), self.log_needle)]
        return min(self._tail([part for part in parts if part[0]], y, up=False), 0.0)

    def _log_yes(self, t: float, needles: int) -> float:
        """log P(Y > 0): a token that wins alone, or none and the others together."""
        y = self.y(t)
        laws = [(self.L - needles, self.log_straw, 0.0)] if needles < self.L else []
        if needles:
            laws.append((float(needles), self.log_needle, self.theta))
        tame = self.h < max(t, math.sqrt(2 * math.log(self.L)))
        near = math.exp(min(math.log(self.L) + float(log_ndtr(3 / self.tau - t)), 0.0))
        mean = var = 0.0
        for n, log_p, _ in laws:
            p = np.exp(log_p[tame])
            mean, var = mean + n * float(p @ y[tame]), var + n * float(p @ y[tame] ** 2)
        if mean > 8 * math.sqrt(var):
            return 0.0
        lonely = near < 0.01  # above the wall: one token beats the typical pull of all others
        big = -mean if lonely else 8 * math.sqrt(var) - mean + min(1.0, 30 * near) * 3 / self.tau
        kept = y < big
        edge = float(self.h[kept][-1]) + (self.h[1] - self.h[0]) / 2
        if lonely:  # y(edge) = big
            edge = t + float(lambertw(big * self.tau).real) / self.tau
        tails = [math.log(n) + float(log_ndtr(theta - edge)) for n, _, theta in laws if n > 0]
        log_one = float(np.logaddexp.reduce(tails))
        none = sum(n * float(log_ndtr(edge - theta)) for n, _, theta in laws)
        alone = math.log(-math.expm1(max(none, -50.0))) if log_one > -25 else log_one
        if lonely:
            return float(min(alone, 0.0))
        rest = self._tail([(n, log_p[kept]) for n, log_p, _ in laws], y[kept], up=True)
        return float(min(np.logaddexp(alone, rest), 0.0))

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

        calm = np.minimum(y, 1 / self.tau) ** 2  # the few that are tall set no scale
        unit = 1 / math.sqrt(max(sum(n * float(np.exp(p) @ calm) for n, p in parts), 1e-300))
        side = 1.0 if up else -1.0
        if moments(0.0)[1] * side >= 0:
            s = 0.0
        else:
            far = side * unit
            while moments(far)[1] * side < 0 and abs(far) < 1e12 * unit:
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
        step = 2 * half / self.cells
        log_cf = np.zeros(self.cells // 2 + 1, complex)
        for n, w in laws:
            log_cf += n * np.log(np.fft.rfft(_lattice(y, w, step, self.cells)))
        g = np.maximum(np.fft.irfft(np.exp(log_cf), self.cells), 0.0)
        x = step * np.fft.fftfreq(self.cells, 1 / self.cells)
        chosen = (x > 0) if up else (x < 0)
        good = g > 1e-13 * g.max()
        mass = float(np.exp(-s * x[chosen & good]) @ g[chosen & good]) + g[0] / 2
        return value + math.log(max(mass, 1e-300))


def _lattice(y: Array, w: Array, step: float, cells: int) -> Array:
    """Atoms w at y on the points k·step, k modulo `cells`; three of them keep two moments."""
    k = np.rint(y / step)
    part = y / step - k
    inside = np.abs(k) < cells / 2 - 1
    out = np.zeros(cells)
    for shift, share in (
        (-1, part * (part - 1) / 2), (0, 1 - part**2), (1, part * (part + 1) / 2),
    ):  # fmt: skip
        place = (k + shift)[inside].astype(np.intp) % cells
        out += np.bincount(place, (w * share)[inside], cells)
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
        start = _best(Tokens(L, R, theta, tau, *ROUGH), pi)[1]
        log_error, _, t = _best(Tokens(L, R, theta, tau), pi, start)
        return OracleError(min(math.exp(log_error), pi, 1 - pi), 0.0, t, tau)
    near: float | None = None

    def at(log_tau: float) -> float:
        nonlocal near
        log_error, near, _ = _best(Tokens(L, R, theta, math.exp(log_tau), *ROUGH), pi, near)
        return log_error

    bounds = math.log(0.02 * unit), math.log(SHARPEST * unit)
    found = minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 0.05})
    soft = short_risk(L, R, theta, pi, math.exp(found.x))
    frozen = largest_token(SparseTokens(int(L), R, theta, pi))
    return soft if soft.error <= frozen.error else frozen


def _best(tokens: Tokens, pi: float, near: float | None = None) -> tuple[float, float, float]:
    """log of the least error at a sharpness, where it is in units x, and the threshold.

    t = mean + spread·sinh(x); near an x that was best at another sharpness, only there.
    """
    mean, spread = tokens.center()

    def f(x: float) -> float:
        return tokens.log_error(mean + spread * math.sinh(x), pi)

    last = math.asinh((max(tokens.theta - mean, 0.0) + 6) / spread)
    grid = np.linspace(-3.0, last, 25 if tokens.cells == CELLS else 17)
    if near is not None:
        grid = np.clip(near + np.linspace(-0.5, 0.5, 3), -3.0, last)
    values = [f(x) for x in grid]
    k = int(np.argmin(values))
    while near is not None and k in (0, len(grid) - 1):  # walk on to where it rises again
        x = grid[k] + (0.5 if k else -0.5)
        if not -3.5 < x < last + 0.5:
            break
        at = len(grid) if k else 0
        grid, values = np.insert(grid, at, x), [*values[:at], f(x), *values[at:]]
        k = int(np.argmin(values))
    bounds = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    options = {"xatol": 1e-2 if tokens.cells == CELLS else 5e-2}
    found = minimize_scalar(f, bounds=bounds, method="bounded", options=options)
    return float(found.fun), float(found.x), mean + spread * math.sinh(float(found.x))
