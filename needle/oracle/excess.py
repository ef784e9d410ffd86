"""The excess rule T = Σ(h² − t²) over heights above t: its error without a single draw.

A straw above t brings an excess with the tail e^{−x/2}; L of them are a compound binomial law, and
R needles join it. Both tails that matter are found on a lattice after an exponential tilt that puts
the bulk of the law where the threshold is, so that 10⁻³⁰⁰ is as exact as 10⁻¹. See
Chapter 3, thm-3-excess.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr

from .rules import OracleError, two_gaussians
from .straws import LOG_ROOT_2PI

Array = np.ndarray
_X, _W = np.polynomial.legendre.leggauss(4)
MANY = 1e5  # straws above the level, beyond which their excess is a normal law
CELLS = 2**14


def _power(z: Array, n: float) -> Array:
    """n log(1 + z/n)."""
    return n * np.log1p(z / n) if n < 1e12 else z


class Cells:
    """Heights at which the law of an excess x = h² − t² is summed, in cells of width `step`."""

    def __init__(self, level: float, step: float, count: int) -> None:
        edge = np.sqrt(level**2 + step * np.arange(count + 1))
        half = np.diff(edge)[:, None] / 2
        self.count, self.h = count, edge[:-1, None] + half * (1 + _X)
        self.x = self.h**2 - level**2
        self.log_dh = np.log(half * _W) - LOG_ROOT_2PI
        self.part = self.x / step - np.arange(count)[:, None]

    def mass(self, theta: float, tilt: float, shift: float) -> Array:
        """e^{shift + tilt·x} dP on lattice points 0, step, …; each cell keeps mass and mean."""
        m = np.exp(shift + tilt * self.x - (self.h - theta) ** 2 / 2 + self.log_dh)
        out = np.zeros(self.count + 1)
        out[1:] += (m * self.part).sum(axis=1)
        out[:-1] += (m * (1 - self.part)).sum(axis=1)
        return out


class Law:
    """The law of T with `straws` straws and R needles, seen through its exponential tilts."""

    def __init__(self, level: float, straws: float, R: int, theta: float) -> None:
        self.straws, self.R, self.theta = straws, R, theta
        self.log_n = math.log(max(straws, 1e-300))
        self.above = math.exp(self.log_n + log_ndtr(-level))  # how many straws are, on average
        self.rest = float(log_ndtr(level - theta))  # log P(a needle is below)
        edge = level + np.linspace(0, 1, 81) ** 2 * (max(theta - level, 0.0) + level + 14)
        half = np.diff(edge)[:, None] / 2
        self.h = (edge[:-1, None] + half * (1 + _X)).ravel()
        self.dh = (half * _W).ravel() * math.exp(-LOG_ROOT_2PI)
        self.x = self.h**2 - level**2

    def slope(self, tilt: float) -> tuple[float, float]:
        """log E e^{tilt·T} and its derivative."""
        m = np.exp(self.log_n + tilt * self.x - self.h**2 / 2) * self.dh
        z = float(m.sum()) - self.above
        n = self.straws
        value = float(_power(np.array(z), n)) if n else 0.0
        first = float(m @ self.x) / (1 + z / n if n else 1.0)
        if self.R:
            e = tilt * self.x - (self.h - self.theta) ** 2 / 2
            top = max(float(e.max()), self.rest)
            w = np.exp(e - top) * self.dh
            total = float(w.sum()) + math.exp(self.rest - top)
            value += self.R * (top + math.log(total))
            first += self.R * float(w @ self.x) / total
        return value, first

    def tilt(self, c: float, low: float, high: float) -> float:
        """The tilt at which the mean is c, or the end next to it."""
        if self.slope(low)[1] >= c:
            return low
        if self.slope(high)[1] <= c:
            return high
        return float(brentq(lambda s: self.slope(s)[1] - c, low, high, xtol=1e-4))

    def variance(self, tilt: float) -> float:
        """The variance of the tilted law."""
        return (self.slope(tilt)[1] - self.slope(tilt - 1e-3)[1]) / 1e-3

    def log_tail(self, cells: Cells, x: Array, tilt: float) -> Array:
        """log P(T > x) for a tilt upwards, log P(T ≤ x) for one down; inf where digits are lost.

        A lattice point stands for the cell around it, of which half counts; 0 is an atom.
        """
        value, g = self.density(cells, tilt)
        up = self.R == 0
        with np.errstate(divide="ignore"):
            log_g = np.log(g) - tilt * x + value
        half = log_g - math.log(2)
        half[0] = -np.inf if up else log_g[0]
        steps = log_g[::-1] if up else log_g
        before = np.append(-np.inf, np.logaddexp.accumulate(steps)[:-1])
        tail = np.logaddexp(before[::-1] if up else before, half)
        good = g > 1e-9 * g[1:].max()
        return np.where(good, tail, np.inf)

    def density(self, cells: Cells, tilt: float) -> tuple[float, Array]:
        """log E e^{tilt·T} and the tilted law on the lattice."""
        size, atom = 2 * (cells.count + 1), 0.0
        change = np.zeros(size // 2 + 1, complex)  # of log E e^{(tilt + iω)T}, from no straw on
        if self.straws:
            atom = float(_power(np.array(-self.above), self.straws))
            mass = np.fft.rfft(cells.mass(0.0, tilt, self.log_n), size)
            change = _power(mass - self.above, self.straws) - atom
        value = atom + float(change[0].real)
        if not self.R and value - atom < 1:  # a straw may be rarer than digits: none is left out
            g = np.maximum(np.fft.irfft(np.expm1(change), size)[: cells.count + 1], 0.0)
            g[0] += 1.0
            return atom, g
        cf = np.exp(change + atom - value)
        if self.R:
            e = tilt * cells.x - (cells.h - self.theta) ** 2 / 2
            top = max(float(e.max()), self.rest)
            m = cells.mass(self.theta, tilt, -top)
            m[0] += math.exp(self.rest - top)
            total = m.sum()
            cf = cf * np.fft.rfft(m / total, size) ** self.R
            value += self.R * (top + math.log(total))
        return value, np.maximum(np.fft.irfft(cf, size)[: cells.count + 1], 0.0)


def excess_risk(
    L: float, R: int, theta: float, pi: float, level: float | None = None
) -> OracleError:
    """The least error of comparing T with a threshold at level t, the best level unless given.

    The record's threshold is that on T. Exact but for a lattice: good to about 1 %, at L ≤ 10³⁰⁰.

    >>> round(excess_risk(1000, 4, 4.5, 0.5, 2.97).error, 4)
    0.0067
    """
    log_pi, log_no = math.log(pi), math.log1p(-pi)
    top = math.sqrt(2 * (math.log(L) + abs(log_pi - log_no)))
    theta = min(theta, 2 * top + 80 + (level or 0.0))  # beyond it the error is below 10⁻³⁰⁰
    if level is None:

        def at(t: float) -> float:
            return max(_least(L, R, theta, log_pi, log_no, t, 2**11)[0], -1e4)

        grid = np.linspace(0.0, 1.2, 9) * top
        k = int(np.argmin([at(t) for t in grid]))
        bounds, options = (grid[max(k - 1, 0)], grid[min(k + 1, 8)]), {"xatol": 0.01 * top}
        level = float(minimize_scalar(at, bounds=bounds, method="bounded", options=options).x)
    log_error, threshold = _least(L, R, theta, log_pi, log_no, level, 2**14)
    return OracleError(min(math.exp(log_error), pi, 1 - pi), threshold=threshold)


def _least(
    L: float, R: int, theta: float, log_pi: float, log_no: float, level: float, count: int
) -> tuple[float, float]:
    """log of the least error at a level, and the threshold on T that has it."""
    silent, signal = Law(level, L, 0, 0.0), Law(level, L - R, R, theta)
    if silent.above > MANY:
        return _normal(silent, signal, level, log_pi)

    def tilts(c: float) -> tuple[float, float]:
        return silent.tilt(c, 0.0, 0.499), signal.tilt(c, -30.0, 0.0)

    def gap(c: float) -> float:
        """log Chernoff bound of a miss minus that of a false alarm at threshold c."""
        up, down = tilts(c)
        return log_pi - log_no + signal.slope(down)[0] - down * c - silent.slope(up)[0] + up * c

    most = signal.slope(0.0)[1] + 4 * abs(log_pi - log_no) + 60
    c = 1e-9
    if gap(c) < 0:
        c = most if gap(most) < 0 else float(brentq(gap, c, most, xtol=0.05))
    never = (log_pi, math.inf) if log_pi < log_no else (log_no, -math.inf)
    for _ in range(4):
        up, down = tilts(c)
        sd = [math.sqrt(max(law.variance(s), 1.0)) for law, s in ((silent, up), (signal, down))]
        window = c + 30 + 12 * sd[1] + min(12 * sd[0], 60 / max(up, 1e-9))
        cells, x = Cells(level, window / count, count), window / count * np.arange(count + 1)
        log_alarm = silent.log_tail(cells, x, min(up, 0.5 - 14 / window))
        log_miss = signal.log_tail(cells, x, down)
        total = np.logaddexp(log_pi + log_miss, log_no + log_alarm)
        k = int(np.argmin(total))
        found = float(total[k]), float(x[k])
        if abs(found[1] - c) < 2 * min(sd):
            break
        c = found[1]
    return min(found, never)


def _normal(silent: Law, signal: Law, level: float, log_pi: float) -> tuple[float, float]:
    """So many straws above the level that their excess is a normal law."""
    parts = [Law(level, 0.0, signal.R, theta).slope(0.0)[1] for theta in (signal.theta, 0.0)]
    mass = np.exp(silent.log_n - silent.h**2 / 2) * silent.dh
    mean = float(mass @ silent.x)
    sd = math.sqrt(float(mass @ silent.x**2) - mean * (mean / silent.straws))
    found = two_gaussians(max(parts[0] - parts[1], 0.0) / sd, math.exp(log_pi))
    return (math.log(found.error) if found.error else -math.inf), mean + sd * found.threshold
