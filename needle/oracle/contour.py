"""Tails of a softmax's verdict at any length, without a draw: one contour integral.

Σ softmax(τh) h exceeds t where Y = Σ y(h_ℓ) > 0, y(h) = (h − t)e^{τh}: a sum of independent terms.
With K(z) = log E e^{zY} and any s > 0,

    P(Y > 0) = (1/2πi) ∫ e^{K(z)} dz/z over s + iR,
    P(Y ≤ 0) = −(1/2πi) ∫ e^{K(z)} dz/z over −s + iR,

and at the saddle K'(s) = 0 tails of 10⁻³⁰⁰ have all their digits. A token above an edge wins by
itself: it is taken out before, so that K is finite for s > 0 too. Straws whose |zy| is small enter
K by their moments, and the mean of all by its closed form: L = 10³⁰⁰ costs no more than ten tokens.
Appendix A, alg-A-rare.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, wrightomega

from .straws import LOG_ROOT_2PI, log_between

Array = np.ndarray
SMALL, ORDER, LINEAR = 0.05, 7, 3.0  # |zy| of a series of six terms; and with its mean taken out
WINS, FAR = 4.5, 12.0  # spreads that are hardly ever made up, and never
SHARP = 60.0  # spreads of a pull that is as good as fixed, and is blurred to this
MANY = 1e14  # straws that are a Poisson crowd
STEP = 0.02  # of the grid of heights
FARTHEST = 100.0  # log of a pull that is told from others
NEVER = 40.0  # standard deviations that are worth e^-800, which is nothing
_X, _W = np.polynomial.legendre.leggauss(16)


class Verdict:
    """Y of L tokens with R needles N(θ, 1) among them, at sharpness τ and threshold t = τ + ε.

    In units of the spread of ordinary straws, or of what a token just below t takes away; `edge` is
    the height from which a token wins whatever the others are.
    """

    def __init__(
        self, L: float, R: int, theta: float, tau: float, eps: float, step: float = STEP
    ) -> None:
        self.n, self.R, self.tau, self.t, self.eps = float(L - R), R, tau, tau + eps, eps
        self.log_n = math.log(self.n) if self.n else -1e3
        self.step, self.precision = min(step, 0.15 / tau), (step / STEP) ** 3 * 3e-5
        wall = math.sqrt(2 * math.log(L))
        low = min(2 * tau, wall) - 10
        if 2 * tau > wall:  # what is lower weighs nothing
            low = max(low, wall - 45 / (2 * tau - wall))
        least = tau * self.t - 1 - math.log(tau)  # −y at its lowest, t − 1/τ
        spread = self._log_spread(np.arange(low, wall, self.step) + self.step / 2)
        self.unit = max(spread, least)
        usual = float(self._mean(np.array([wall]))[0])
        pull = max(-usual, 1e-300)
        self.pull, noise = pull, FAR * math.exp(spread - self.unit)
        self.blur = (pull / SHARP) ** 2 if pull > SHARP / FAR * noise else 0.0
        self.spread = max(math.hypot(noise / FAR, math.sqrt(self.blur)), 1e-300)
        with np.errstate(over="ignore"):
            typical = float(self._y(np.array([theta]))[0]) if R else 0.0
        self.usually_yes = R * typical + usual > 0
        level = pull + WINS / FAR * noise + 2 * R * math.exp(least - self.unit)
        self.edge = self._height(level)
        near, far = self._height(max(pull - noise, 1e-300)), self._height(pull + noise)
        self.alone = not R and self.edge > wall + 0.5 and self.edge * (far - near) < 0.3
        if self.alone:
            self.edge = self._height(pull)
        top = max(wall, self.t) + min(9.0, 60 / tau)
        top = min(max(top, (self.unit + FARTHEST) / tau), wall + NEVER)
        feet = np.arange(low, top, self.step)
        if pull > 2 * noise and not self.alone:  # fine where a token just balances the others
            fine = np.linspace(near, far, 49)
            feet = np.sort(np.append(feet, fine[fine < top]))
        inside = feet[feet < self.edge]
        self._set_straws(np.append(inside, min(inside[-1] + self.step, self.edge)))
        told = self.alone or self.edge < top
        self.log_tail = self.log_n + float(log_ndtr(-self.edge)) if told else -math.inf
        self.tail = math.exp(min(self.log_tail, 600.0))
        self.log_lone, self.log_none = self.log_tail, -self.tail
        if R:
            self._set_needles(theta)

    def _log_spread(self, h: Array) -> float:
        log_y2 = 2 * (np.log(np.abs(h - self.t) + 1e-9) + self.tau * h)
        each = self.log_n - h * h / 2 - LOG_ROOT_2PI + math.log(self.step) + log_y2
        return float(each.max() + math.log(np.exp(each - each.max()).sum())) / 2

    def _parts(self, c: Array) -> tuple[Array, Array]:
        """n E e^{τg}, beyond c or below it, whichever is less, and n E (g − τ)e^{τg} below c."""
        height, x = self.log_n + self.tau**2 / 2 - self.unit, c - self.tau
        less = np.exp(np.minimum(height + log_ndtr(-np.abs(x)), 690.0))
        return less, -np.exp(np.minimum(height - x * x / 2 - LOG_ROOT_2PI, 690.0))

    def _mean(self, c: Array) -> Array:
        """n E y(g; g < c)."""
        less, first = self._parts(c)
        whole = math.exp(min(self.log_n + self.tau**2 / 2 - self.unit, 690.0))
        return np.asarray(first - self.eps * np.where(c > self.tau, whole - less, less))

    def _set_straws(self, feet: Array) -> None:
        """Cells between feet: how many straws, their mean y, and half the y across a cell."""
        less, first = self._parts(feet)
        self.means = self._mean(feet)
        moved = np.where(
            feet[:-1] > self.tau, np.diff(first + self.eps * less), np.diff(self.means)
        )
        middle, width = (feet[1:] + feet[:-1]) / 2, np.diff(feet)
        self.w = np.exp(np.minimum(self.log_n + log_between(feet[:-1], feet[1:]), 690.0))
        self.y = np.divide(moved, self.w, out=self._y(middle), where=self.w > 1e-280)
        self.half = self._slope(middle) * width / 2
        self.size = np.maximum.accumulate(np.abs(self.y))
        spread = self.half**2 / 3  # of y inside a cell
        powers = [self.w * (self.y**2 + spread), self.w * (self.y**3 + 3 * self.y * spread)]
        powers += [self.w * self.y**k for k in range(4, ORDER)]
        self.moments = [
            np.append(0.0, np.cumsum(power)) / math.factorial(k)
            for k, power in enumerate(powers, 2)
        ]

    def _set_needles(self, theta: float) -> None:
        """Cells of a needle's height; below them its y is nothing."""
        high = min(self.edge, theta + 10)
        low = max(min(theta, self.t) - 13, theta - NEVER, self.t - 45 / self.tau)
        low = min(low, high - 1e-6)
        feet = np.linspace(low, high, math.ceil((high - low) / self.step) + 1)
        middle = (feet[1:] + feet[:-1]) / 2
        self.log_low = float(log_ndtr(low - theta))
        self.log_p = log_between(feet[:-1] - theta, feet[1:] - theta)
        self.needle_y = self._y(middle)
        self.needle_half = self._slope(middle) * np.diff(feet) / 2
        self.log_none += self.R * float(log_ndtr(self.edge - theta))
        lone = math.log(self.R) + float(log_ndtr(theta - self.edge))
        self.log_lone = float(np.logaddexp(self.log_lone, lone))

    def _height(self, y: float) -> float:
        """The height of a token that adds y > 0."""
        log_z = math.log(self.tau * y) + self.unit - self.tau * self.t
        return self.t + float(wrightomega(log_z).real) / self.tau

    def _y(self, h: Array) -> Array:
        return np.asarray((h - self.t) * np.exp(np.minimum(self.tau * h - self.unit, 600.0)))

    def _slope(self, h: Array) -> Array:
        tilted = np.exp(np.minimum(self.tau * h - self.unit, 600.0))
        return np.asarray((1 + self.tau * (h - self.t)) * tilted)

    def _cells(self, size: float) -> tuple[int, int]:
        """From where on |zy| is not small, and from where on it is large."""
        i, j = np.searchsorted(self.size * size, (SMALL, LINEAR))
        return int(i), int(j)

    def log_mean_exp(self, z: Array) -> Array:
        """K(z) for complex z (k,) of like size, no token above the edge."""
        i, j = self._cells(float(np.abs(z).max()))
        X, power = z * self.means[j] - self.tail, z
        for moment in self.moments:
            power = power * z
            X = X + power * moment[i]
        x = z[:, None] * self.y[i:]
        e = _mean_exp(x, z[:, None] * self.half[i:]) - 1
        e[:, : j - i] -= x[:, : j - i]
        X = X + e @ self.w[i:]
        found = self.n * np.log1p(X / self.n) if 0 < self.n < MANY else X
        if not self.n:
            found = 0 * z
        found = found + self.blur * z * z / 2
        if self.R:
            v = self.log_p + z[:, None] * self.needle_y
            top = max(float(v.real.max()), self.log_low)
            e = _mean_exp(v - top, z[:, None] * self.needle_half)
            each = e.sum(axis=1) + math.exp(self.log_low - top)
            found = found + self.R * (top + np.log(each))
        return np.asarray(found)

    def slope(self, s: float) -> float:
        """K'(s) for real s."""
        i, j = self._cells(abs(s))
        X, mean, power = s * self.means[j] - self.tail, float(self.means[j]), 1.0
        for k, moment in enumerate(self.moments, 2):
            power *= s
            mean += k * power * moment[i]
            X += power * s * moment[i]
        x = np.minimum(s * self.y[i:], 600.0)
        e, linear = np.exp(x), (np.arange(len(x)) < j - i) * 1.0
        mean += float(((e - linear) * self.y[i:]) @ self.w[i:])
        X += float((e - 1 - linear * x) @ self.w[i:])
        if 0 < self.n < MANY:
            mean /= 1 + X / self.n
        mean += self.blur * s
        if self.R:
            v = self.log_p + s * self.needle_y
            top = max(float(v.max()), self.log_low)
            p = np.exp(v - top)
            mean += self.R * float(p @ self.needle_y) / (p.sum() + math.exp(self.log_low - top))
        return mean

    def _saddle(self, side: float) -> float:
        """|s| where K'(s) = 0 on a side of 0, a small one if on the other, inf if nowhere."""
        tallest = float((side * self.y).max(initial=0.0))
        if self.R:
            tallest = max(tallest, float((side * self.needle_y).max()))
        low, farthest = 0.0, min(600 / max(tallest, 1e-300), 1e40)
        r = min(0.1, farthest / 2000, 0.3 / max(self.pull, 1e-300))
        while r < farthest and side * self.slope(side * r) < 0:
            low, r = r, 2 * r
        if r >= farthest:
            return math.inf
        return float(brentq(lambda x: self.slope(side * x), low, r, rtol=1e-4)) if low else r

    def _origin(self, s: float) -> float:
        """K(s) for real s."""
        return float(self.log_mean_exp(np.array([s + 0j]))[0].real)

    def log_tail_of(self, side: float) -> float:
        """log P(no token above the edge, side·Y > 0)."""
        r = self._saddle(side)
        if r == math.inf:
            return -math.inf
        origin = self._origin(side * r)
        if side > 0:  # if possible so far that bags without a tall token count for nothing
            more = min(8 / self.pull, 1 / self.spread)
            more = min(more, 300 / max(float(self.y.max()), 1e-300))
            while more > 1.2 * r and (top := self._origin(more)) > origin + 3:
                more /= 1.5
            if more > 1.2 * r:
                r, origin = more, top
        s, h = side * r, 1e-3 * r
        bend = (self.slope(s + h) - self.slope(s - h)) / (2 * h)
        width, left, total = min(1 / math.sqrt(max(bend, 1e-300)), 2 * r), 0.0, 0.0
        for _ in range(200):
            z = s + 1j * (left + width * (_X + 1) / 2)
            e = np.exp(self.log_mean_exp(z) - origin) / z
            total += width / 2 * float(_W @ e.real)
            left += width
            if float(np.abs(e).max()) * left < self.precision * abs(total):
                break
            width = min(1.3 * width, 7 / (self.pull + WINS * self.spread))
        return origin + math.log(max(side * total / math.pi, 1e-300))

    def logs(self) -> tuple[float, float]:
        """log P(Y ≤ 0), log P(Y > 0): the rarer one by its saddle."""
        if not self.usually_yes:
            alone = math.log(-math.expm1(self.log_none)) if self.log_lone > -25 else self.log_lone
            rest = -math.inf if self.alone else self.log_tail_of(1.0)
            yes = min(float(np.logaddexp(alone, rest)), -1e-300)
            if yes < -0.7:
                return math.log(-math.expm1(yes)), yes
        no = min(self.log_tail_of(-1.0), -1e-300)
        return no, math.log(-math.expm1(no))


def _mean_exp(x: Array, half: Array) -> Array:
    """e^x times sinh(half)/half: the mean of an exponential over a cell; `half` (k, cells)."""
    found = np.exp(x)
    wide = np.flatnonzero(np.abs(half).max(axis=0) > 0.05)
    if len(wide):
        half = half[:, wide]
        half = np.clip(half.real, -60.0, 60.0) + 1j * half.imag  # beyond it e^x is 0
        half[half == 0] = 1e-9
        found[:, wide] *= np.sinh(half) / half
    return found
