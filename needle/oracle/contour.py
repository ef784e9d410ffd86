"""Tails of a softmax's verdict at any length, without a draw: one contour integral.

Σ softmax(τh) h exceeds t where Y = Σ y(h_ℓ) > 0, y(h) = (h − t)e^{τh}: a sum of independent terms.
With K(z) = log E e^{zY} and any s > 0,

    P(Y > 0) = (1/2πi) ∫ e^{K(z)} dz/z over s + iR,
    P(Y ≤ 0) = −(1/2πi) ∫ e^{K(z)} dz/z over −s + iR,

and at the saddle K'(s) = 0 tails of 10⁻³⁰⁰ have all their digits. A token above an edge wins by
itself: it is taken out before, so that K is finite for s > 0 too. For P(Y > 0) bags with a rare
token, above t or half-way to the edge, and bags without are summed apart, so that neither hides the
other; without a token above t there is no yes. Straws whose |zy| is small enter K by their moments,
and the mean of all by its closed form: L = 10³⁰⁰ costs no more than ten tokens.
Appendix A, alg-A-rare.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr, wrightomega

from .cells import Law, log1p, mean_exp
from .panels import log_integral
from .straws import LOG_ROOT_2PI, log_between

Array = np.ndarray
SMALL, ORDER, LINEAR = 0.05, 7, 3.0  # |zy| of a series of six terms; and with its mean taken out
WINS, FAR = 4.5, 12.0  # spreads that are hardly ever made up, and never
FAINT = 1e-3  # of what a token just below t takes away: a lesser pull is as good as this one
APART = 8.0  # widths of a blur that must lie between straws' pull and 0
FEW, MANY = 100, 1e13  # straws that are a law each, like needles; that are a Poisson crowd
STEP = 0.02  # of the grid of heights
FARTHEST = 100.0  # log of a pull that is told from others
NEVER = 40.0  # standard deviations that are worth e^-800, which is nothing


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
        self.step, self.precision = min(step, 7.5 * step / tau), (step / STEP) ** 3 * 3e-5
        wall = math.sqrt(2 * math.log(L))
        low = min(2 * tau, wall) - 10
        if 2 * tau > wall:  # what is lower weighs nothing
            low = max(low, wall - 45 / (2 * tau - wall))
        least = tau * self.t - 1 - math.log(tau)  # −y at its lowest, t − 1/τ
        spread = self._log_spread(np.arange(low, wall, self.step) + self.step / 2)
        self.unit = max(spread, least)
        usual = float(self._mean(np.array([wall]))[0])
        noise = FAR * math.exp(spread - self.unit)
        faint = self.n > 0 and abs(usual) + noise < FAINT
        pull = FAINT if faint else max(-usual, 1e-300)
        self.pull, self.spread = pull, max(noise / FAR, 1e-300)
        calm = pull > APART * self.spread  # straws pull evenly: Y is far from 0 where they do
        self.apart = (pull / APART if calm else self.spread / 50) if self.n else 0.1
        self.drift = -usual - FAINT if faint else 0.0
        with np.errstate(over="ignore"):
            typical = float(self._y(np.array([theta]))[0]) if R else 0.0
        self.usually_yes = R * typical + usual > 0
        level = pull + WINS * max(noise / FAR, pull / APART)
        level += 2 * R * math.exp(least - self.unit)
        self.edge = self._height(level)
        near, far = self._height(max(pull - noise, 1e-300)), self._height(pull + noise)
        self.alone = not R and self.edge > wall + 0.5 and self.edge * (far - near) < 0.3
        if self.alone:
            self.edge = self._height(pull)
        top = max(wall, self.t) + min(9.0, 60 / tau)
        top = min(max(top, (self.unit + FARTHEST) / tau), wall + NEVER)
        feet = np.arange(low, top, self.step)
        self.fine = np.array([])
        if pull > 2 * noise and not self.alone:  # fine where a token just balances the others
            self.fine = np.linspace(near, far, 49)
            feet = np.append(feet, self.fine[self.fine < top])
        self.split = self._split(theta)
        self.parting = self._height(self.split) if 0 < self.split < math.inf else self.t
        feet = np.unique(np.append(feet, max(low, min(self.parting, top))))
        inside = np.append(min(low, self.edge - 1.0), feet[feet < self.edge])
        inside = np.unique(inside)
        self._set_straws(np.append(inside, min(inside[-1] + self.step, self.edge)))
        told = self.alone or self.edge < top
        self.log_tail = self.log_n + float(log_ndtr(-self.edge)) if told else -math.inf
        self.tail = math.exp(min(self.log_tail, 600.0))
        self.log_lone = self.log_tail
        self.log_none = self.n * float(log_ndtr(self.edge)) if self.n < 1e6 else -self.tail
        self.crowd = self.n > FEW
        self.laws = [self._law(theta, R)] if R else []
        if R:
            self.log_none += R * float(log_ndtr(self.edge - theta))
            lone = math.log(R) + float(log_ndtr(theta - self.edge))
            self.log_lone = float(np.logaddexp(self.log_lone, lone))
        if 0 < self.n <= FEW:
            self.laws.append(self._law(0.0, self.n))

    def _split(self, theta: float) -> float:
        """y of a token that is rare and counts by itself: half of an even pull, or 0 where tokens
        above t are rare, and inf where rare ones are nothing special."""

        def above(h: float) -> float:
            return self.n * float(ndtr(-h)) + self.R * float(ndtr(theta - h))

        if self.pull > APART * self.spread and above(self._height(self.pull / 2)) < 0.5:
            return self.pull / 2
        return 0.0 if above(self.t) < 3 else math.inf

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
        self.y = np.divide(
            moved, self.w, out=self._mean_y(middle, width, 0.0), where=self.w > 1e-280
        )
        far = (np.abs(self._slope(middle)) + np.abs(self._bend(middle)) * width) * width
        self.y = np.clip(self.y, self._y(middle) - far, self._y(middle) + far)  # but for rounding
        self.half = self._slope(middle) * width / 2
        self.tall = int((middle > self.parting).sum()) if self.split < math.inf else 0
        self.size = np.maximum.accumulate(np.abs(self.y))
        spread = self.half**2 / 3  # of y inside a cell
        powers = [self.w * (self.y**2 + spread), self.w * (self.y**3 + 3 * self.y * spread)]
        powers += [self.w * self.y**k for k in range(4, ORDER)]
        self.moments = [
            np.append(0.0, np.cumsum(power)) / math.factorial(k)
            for k, power in enumerate(powers, 2)
        ]

    def _law(self, theta: float, count: float) -> Law:
        """Of `count` tokens N(θ, 1) each: cells of its height below the edge."""
        high = min(self.edge, theta + 10)
        low = max(min(theta, self.t) - 13, theta - NEVER, self.t - 45 / self.tau)
        low = min(low, high - 1e-6)
        feet = np.linspace(low, high, math.ceil((high - low) / self.step) + 1)
        more = np.append(self.fine, self.parting)
        feet = np.unique(np.append(feet, more[(low < more) & (more < high)]))
        middle, width = (feet[1:] + feet[:-1]) / 2, np.diff(feet)
        y, half = self._mean_y(middle, width, theta), self._slope(middle) * width / 2
        log_p = log_between(feet[:-1] - theta, feet[1:] - theta)
        return Law(count, log_p, y, half, float(log_ndtr(low - theta)), self.split)

    def _height(self, y: float) -> float:
        """The height of a token that adds y > 0."""
        log_z = math.log(self.tau * y) + self.unit - self.tau * self.t
        return self.t + float(wrightomega(log_z).real) / self.tau

    def _y(self, h: Array) -> Array:
        return np.asarray((h - self.t) * np.exp(np.minimum(self.tau * h - self.unit, 600.0)))

    def _slope(self, h: Array) -> Array:
        tilted = np.exp(np.minimum(self.tau * h - self.unit, 600.0))
        return np.asarray((1 + self.tau * (h - self.t)) * tilted)

    def _bend(self, h: Array) -> Array:
        tilted = np.exp(np.minimum(self.tau * h - self.unit, 600.0))
        return np.asarray(self.tau * (2 + self.tau * (h - self.t)) * tilted)

    def _mean_y(self, h: Array, width: Array, center: float) -> Array:
        """Of heights N(center, 1) in a narrow cell around h."""
        return self._y(h) + width**2 / 24 * (self._bend(h) + 2 * (center - h) * self._slope(h))

    def _cells(self, size: float) -> tuple[int, int]:
        """From where on |zy| is not small, and from where on it is large."""
        i, j = np.searchsorted(self.size * size, (SMALL, LINEAR))
        rare = len(self.y) - self.tall
        return min(int(i), rare), min(int(j), rare)

    def log_mean_exp(self, z: Array) -> tuple[Array, Array]:
        """log E e^{zY} for complex z (k,) of like size: bags without a rare token; and what
        rare tokens below the edge add to it."""
        K, D = self.drift * z, 0 * z
        for law in self.laws:
            whole, won = law.log_mean_exp(z)
            K, D = K + whole, D + won
        if not self.crowd:
            return K, D
        i, j = self._cells(float(np.abs(z).max()))
        X, power = z * self.means[j] - self.tail, z
        for moment in self.moments:
            power = power * z
            X = X + power * moment[i]
        x = z[:, None] * self.y[i:]
        e, k = mean_exp(x, z[:, None] * self.half[i:]), len(self.y) - self.tall
        tall = e[:, k - i :] @ self.w[k:]
        e, x = e[:, : k - i] - 1, x[:, : j - i]
        e[:, : j - i] -= x
        X = X + e @ self.w[i:k] - float(self.w[k:].sum())
        if self.n >= MANY:
            return K + X, D + tall
        return K + self.n * log1p(X / self.n), D + self.n * log1p(tall / (self.n + X))

    def _all_y(self) -> list[Array]:
        return [law.y for law in self.laws] + [self.y] * self.crowd

    def _log(self, z: Array, part: str) -> Array:
        """log of the mean of e^{zY} over all bags, those with a rare token, or those without."""
        K, D = self.log_mean_exp(z)
        if part == "none":
            return K
        if part == "all":
            return K + D
        with np.errstate(divide="ignore"):
            return np.asarray(K + D + np.log(-np.expm1(-D)))

    def log_yes(self) -> float:
        """log P(no token above the edge, Y > 0): bags with a rare token, and those without."""
        if self.split == math.inf:
            return self.log_tail_of(1.0, "all")
        some = self.log_tail_of(1.0, "some")
        if self.split == 0:  # no token above t, no yes
            return some
        return float(np.logaddexp(some, self.log_tail_of(1.0, "none")))

    def log_tail_of(self, side: float, part: str = "all") -> float:
        """log P(no token above the edge, side·Y > 0) of a part of the bags."""

        def log_part(z: Array) -> Array:
            return self._log(z, part)

        r = self._least(side, part)
        if r == math.inf:
            return -math.inf
        return log_integral(log_part, side * r, self.apart, self.precision)

    def _least(self, side: float, part: str) -> float:
        """The r > 0 where the mean of e^{side·rY}/r over a part of the bags is least."""
        most = self.split if part == "none" else math.inf
        tallest = max(float((side * y).max(initial=0.0, where=y <= most)) for y in self._all_y())
        if side < 0:  # what pulls may lie below all cells
            tallest = max(tallest, self.pull / 2)
        if tallest <= 0:
            return math.inf
        farthest = min(600 / tallest, 1e40)

        def value(x: float) -> float:
            found = float(self._log(np.array([side * math.exp(x) + 0j]), part)[0].real) - x
            return (
                found if -math.inf < found < 1e4 else 1e4 + x
            )  # so far out that nothing can be told

        nearest = min(1e-6 * farthest, 1e-3 / max(self.pull, self.spread))
        bounds, options = (math.log(nearest), math.log(farthest)), {"xatol": 0.05}
        found = minimize_scalar(value, bounds=bounds, method="bounded", options=options)
        return math.exp(found.x)

    @np.errstate(all="ignore")  # far out, where nothing can be told, nothing is taken
    def logs(self) -> tuple[float, float]:
        """log P(Y ≤ 0), log P(Y > 0): the rarer one by its saddle."""
        if not self.usually_yes:
            alone = math.log(-math.expm1(self.log_none)) if self.log_lone > -25 else self.log_lone
            rest = -math.inf if self.alone else self.log_yes()
            yes = min(float(np.logaddexp(alone, rest)), -1e-300)
            if yes < -0.7:
                return math.log(-math.expm1(yes)), yes
        no = min(self.log_tail_of(-1.0), -1e-300)
        return no, math.log(-math.expm1(no))
